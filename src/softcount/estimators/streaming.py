"""Mixtures learned from a stream: batch after batch, each seen once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.parameters import check_half_life
from softcount.learn.known_classes import Batch, StepSize, finished, stepped
from softcount.learn.prepare import check_reach
from softcount.models.align import growing, read_in_parts, united_schema
from softcount.run.local import Threads
from softcount.run.rows import HeldRows
from softcount.table import Contradiction, open_table
from softcount.table.schema import Kind, Schema

if TYPE_CHECKING:
    from softcount.fitted.fitted import Fitted


class Streaming:
    """What adds `partial_fit` to a mixture."""

    fitted_: Fitted
    _labels: np.ndarray | None = None

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        half_life: float | None = None,
        step: float = 0.6,
        finish: bool = False,
    ) -> Self:
        """Learn from one more batch, by stepwise EM: near to what `fit` on all rows would find, in one pass.

        The first batch is fitted as `fit` does and decides kinds and, where it is to be found, the number of
        components, so let it be some thousand rows; later ones may bring new levels. A batch of the k-th part of all
        rows so far moves the counts by (k + 2) ** -step: 0.6 by default, 0.5 learns faster and settles later, 1 slower.
        With `half_life` rows count half after so many others, which follows what drifts; `step` is not used then. With
        `finish` X is all rows, and EM climbs on them from where the stream has come to. A batch in which every cell is
        missing changes nothing. A model that was saved goes on where it was. `y` is not used.
        """
        self._check_stream(half_life, step)
        if not hasattr(self, "fitted_"):
            fitted: Self = self.fit(X, sample_weight=sample_weight)  # type: ignore[attr-defined]
            return fitted
        data = self._as_fitted(inputs.checked(self, X, reset=False))  # type: ignore[attr-defined]
        data, weights, _ = inputs.without_zeros(data, inputs.weights_of(sample_weight, data), None)
        with Threads(self.n_jobs) as threads:  # type: ignore[attr-defined]
            batch = self._batch(data, weights, threads)
            if batch.empty:
                return self
            plan = self._plan(self._stop())  # type: ignore[attr-defined]
            plan = self._with_fixed(plan, self.fitted_, self.fitted_.n_groups)  # type: ignore[attr-defined]
            if finish:
                self.fitted_ = finished(self.fitted_, batch, plan, threads)  # type: ignore[assignment]
            else:
                self.fitted_ = stepped(self.fitted_, batch, plan, StepSize(step, half_life), threads)  # type: ignore[assignment]
        self._labels = None
        return self

    def _check_stream(self, half_life: Any, step: Any) -> None:
        self._check_settings()  # type: ignore[attr-defined]
        check_half_life("half_life", half_life)
        if isinstance(step, bool) or not isinstance(step, (int, float, np.number)) or not 0.5 <= step <= 1:
            raise DataError(f"step is a number from 0.5 to 1, not {step!r}.")
        if self.assign != "soft":  # type: ignore[attr-defined]
            raise DataError(f"assign={self.assign!r} is for all rows at once: learning in parts is soft.")  # type: ignore[attr-defined]

    def _batch(self, data: Any, weights: np.ndarray | None, threads: Threads) -> Batch:
        """The rows, read under the schema with the levels and words that they bring."""
        schema = self._grown_schema(data, weights, threads)
        table = open_table(data, schema=schema, missing=schema.missing, weights=weights)
        chunks = list(table.chunks(threads.map))
        try:
            check_reach(table, HeldRows(chunks, threads))
        except Contradiction as why:
            raise DataError(
                f"{why}: too far from those of the first batch to be counted with them. Take the row out, or fit all "
                "rows at once."
            ) from None
        inputs.warn_of_outside(table)
        return Batch(chunks, schema, {key: float(n) for key, n in table.missing.items()})

    def _grown_schema(self, data: Any, weights: np.ndarray | None, threads: Threads) -> Schema:
        """The schema of the model; with new levels, where columns hold some."""
        schema = self.fitted_.schema
        words = growing(schema)
        open_ended = {spec.key for spec in schema.used if spec.key in words or spec.kind.coded}
        here = set(inputs.known_columns(data)) or {spec.key for spec in schema.fields}
        if not open_ended & here or self.fitted_.bag:
            return schema
        forced = {spec.key: inputs.kind_in(spec) if spec.key in open_ended else "ignore" for spec in schema.fields}
        kinds, _ = read_in_parts({key: kind for key, kind in forced.items() if key in here})
        table = open_table(data, kinds=kinds, missing=self._missing(), weights=weights)  # type: ignore[attr-defined]
        try:
            table.gather_words(threads.map)
            for _ in table.chunks(threads.map):
                pass
            other = table.settle().schema
        except Contradiction:
            return schema  # reading it under the model's own schema says what is wrong
        fresh = [
            spec.key
            for spec in other.used
            if spec.kind is not Kind.TEXT and set(spec.levels) - set(schema[spec.key].levels)
        ]
        texts = [spec.key for spec in other.used if spec.kind is Kind.TEXT and spec.key in words]
        return united_schema(schema, other, words) if fresh or texts else schema
