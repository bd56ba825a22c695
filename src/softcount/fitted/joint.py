"""A fitted joint model: a mixture of trees over all columns, which answers any question about any columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from softcount.core.special import log_of, log_sum_exp
from softcount.errors import DataError
from softcount.families import Family, Params
from softcount.fitted.answers import Expect, absent_cells
from softcount.fitted.classes import Anomaly, cells
from softcount.fitted.derived_columns import Fills, join_fills, move_to_leads
from softcount.fitted.fitted import Fitted, FittedTable, register_fitted
from softcount.fitted.joint_answers import JointGiven, bounds_in
from softcount.models.joint import JointColumns as JointColumns  # registers the model
from softcount.run.local import Runner
from softcount.table import Chunk, Table
from softcount.table.schema import Key, Kind
from softcount.tree_mixtures.columns import Categories, Coding, ColumnParts, Levels, Number
from softcount.tree_mixtures.learn import Trial
from softcount.tree_mixtures.mixture import Parts, TreeMixture

USUAL_ROWS = 400
"""Rows drawn from the model to find how surprising each column usually is."""
REDRAWS = 20
"""Times that a number beyond the bounds of its column is drawn again before it is clipped."""


class Trees(Struct, frozen=True, eq=False):
    """What a joint model learned: the parts of the columns, the mixture, the trials of the search, and its outcome.

    `held_out` is the mean log-density of the held-out rows of the search, in nats.
    """

    coding: Coding
    mixture: TreeMixture
    units: str
    trials: list[Trial]
    held_out: float


@register_fitted("joint")
class FittedJoint(FittedTable, frozen=True, eq=False, dict=True):
    """A fitted joint model of a table."""

    trees: Trees = None  # type: ignore[assignment]  # fields after those of `Learned` need a default

    single: ClassVar[Any] = Fitted.single
    chunks: ClassVar[Any] = Fitted.chunks

    @property
    def title(self) -> str:
        return f"Joint model: mixture of {self.mixture.n_components} trees"

    def suitable_estimator(self) -> tuple[str, dict[str, Any]]:
        return "JointModel", {}

    @property
    def mixture(self) -> TreeMixture:
        return self.trees.mixture

    # -- facts

    @property
    def names(self) -> list[Any]:
        return []

    @property
    def params(self) -> dict[Key, Params]:
        return self.model.public(self.estimates)

    @property
    def levels(self) -> dict[Key, Sequence[object]]:
        return {leaf.key: list(levels) for leaf in self.model.leaves if (levels := leaf.levels_of()) is not None}

    @property
    def families(self) -> dict[Key, Family]:
        return {leaf.key: leaf.family for leaf in self.model.leaves}

    @property
    def column_families(self) -> dict[Key, Family]:
        return self.families

    @property
    def n_parameters(self) -> int:
        return self.mixture.n_parameters

    @property
    def answering_model(self) -> str:
        count = self.mixture.n_components
        return f"mixture of {count} trees" if count > 1 else "tree"

    # -- rows as parts

    @cached_property
    def parts_by_key(self) -> dict[Key, ColumnParts]:
        return {own.key: own for own in self.trees.coding.columns}

    def part_of(self, key: Key) -> ColumnParts:
        if key not in self.parts_by_key:
            raise DataError(f"column {key!r} is not part of the joint model: {self.schema[key].why}.")
        return self.parts_by_key[key]

    @cached_property
    def units(self) -> tuple[np.ndarray, ...]:
        """First knots of the numbers, their knots, and the bounds in their units, as the kernels take them."""
        own = self.trees.coding.numbers
        starts = np.cumsum([0, *(len(number.unit.x) for number in own)]).astype(np.int64)
        bounds = [bounds_in(number.unit, self.bounds(number.key)) for number in own]
        x = np.concatenate([np.zeros(0), *(number.unit.x - self._origin(number) for number in own)])
        z = np.concatenate([np.zeros(0), *(number.unit.z for number in own)])
        return starts, x, z, np.array(bounds, dtype=float).reshape(-1, 2)

    @staticmethod
    def _origin(number: Number) -> float:
        return float(number.unit.x[len(number.unit.x) // 2])

    def bounds(self, key: Key) -> tuple[float, float]:
        own, known = self.parts_by_key[key], self.schema[key].bounds or (-np.inf, np.inf)
        low, high = own.bounds if isinstance(own, Number) else (-np.inf, np.inf)
        return max(low, known[0]), min(high, known[1])

    def columns(self, chunk: Chunk) -> list[np.ndarray]:
        """Return the columns of a chunk that the model has: codes of categories, and numbers."""
        return [chunk.column(self.schema.places[own.key]) for own in self.trees.coding.columns]

    def encode(self, chunk: Chunk) -> tuple[Parts, np.ndarray]:
        """Return the parts of rows, and the (rows x columns) constants of their log-densities."""
        columns = self.columns(chunk)
        codes, numbers, logs = self.trees.coding.encode(columns)
        return Parts(codes.reshape(chunk.n_rows, -1), numbers.reshape(chunk.n_rows, -1), np.ones(chunk.n_rows)), logs

    # -- scores

    def score_rows(self, table: Table, threads: Runner) -> np.ndarray:
        parts = list(threads.map(self._score_task, table.tasks()))
        return np.concatenate(parts) if parts else np.zeros(0)

    def _score_task(self, task: Any) -> np.ndarray:
        parts, logs = self.encode(task())
        return np.asarray(self.mixture.log_density(parts) + logs.sum(axis=1))

    def proba(self, table: Table, threads: Runner) -> np.ndarray:
        """Return (rows x components) posterior probabilities."""

        def work(task: Any) -> np.ndarray:
            logs = self.mixture.log_joint(self.encode(task())[0])
            return np.asarray(np.exp(logs - np.asarray(log_sum_exp(logs, axis=1))[:, None]))

        parts = list(threads.map(work, table.tasks()))
        return np.concatenate(parts) if parts else np.zeros((0, self.mixture.n_components))

    def anomaly_scores(self, table: Table, runner: Runner) -> np.ndarray:
        """Return how much less likely each row is than usual for the columns that it shows, in nats."""

        def work(task: Any) -> np.ndarray:
            parts, logs = self.encode(task())
            usual = self._seen(parts) @ self.usual
            return np.asarray(-self.mixture.log_density(parts) - logs.sum(axis=1) - usual)

        found = list(runner.map(work, table.tasks()))
        return np.concatenate(found) if found else np.zeros(0)

    def surprises(self, chunk: Chunk) -> np.ndarray:
        """Return (rows x columns) parts of the anomaly score, which add up to it; 0 for a missing cell."""
        parts, logs = self.encode(chunk)
        return np.asarray((self._surprises(parts, logs) - self.usual) * self._seen(parts))

    def surprises_of(self, table: Table, rows: np.ndarray) -> np.ndarray:
        """Return the (rows x columns) surprises of some rows of a table."""
        found = np.zeros((len(rows), len(self.trees.coding.columns)))
        for task in table.tasks():
            chunk = task()
            here = np.flatnonzero((rows >= chunk.start) & (rows < chunk.start + chunk.n_rows))
            if len(here):
                found[here] = self.surprises(chunk.take(rows[here] - chunk.start))
        return found

    def find_anomalies(self, table: Table, runner: Runner, most: int) -> list[Anomaly]:
        """Return the rows that fit worst, worst first, with the surprise of each column."""
        scores, logs = self.anomaly_scores(table, runner), self.score_rows(table, runner)
        worst = np.argsort(-scores, kind="stable")[:most]
        parts, keys = self.surprises_of(table, worst), [own.key for own in self.trees.coding.columns]
        held: dict[int, dict[Key, Any]] = {}
        for task in table.tasks():
            chunk = task()
            for row in worst[(worst >= chunk.start) & (worst < chunk.start + chunk.n_rows)].tolist():
                one = chunk.take(np.array([row - chunk.start]))
                held[row] = cells(self, one)  # type: ignore[arg-type]  # it reads the leaves alone
        return [
            Anomaly(
                row, float(scores[row]), float(logs[row]), 0, 1.0,
                {keys[at]: float(own[at]) for at in np.argsort(-own, kind="stable")}, held[row],
            )
            for row, own in zip(worst.tolist(), parts, strict=True)
        ]  # fmt: skip

    def _seen(self, parts: Parts) -> np.ndarray:
        """Mark (rows x columns) observed cells."""
        seen = [
            ~np.isnan(parts.numbers[:, own.number])
            if isinstance(own, Number) and own.part < 0
            else parts.codes[:, own.part] >= 0
            for own in self.trees.coding.columns
        ]
        return np.column_stack([np.zeros((parts.n_rows, 0)), *seen])

    def _surprises(self, parts: Parts, logs: np.ndarray) -> np.ndarray:
        """Return the (rows x columns) negative log-densities of every column given others.

        It is the mean over two orders of the chain rule: given the columns before it, and given those after it.
        """
        count = len(self.trees.coding.columns)
        found = -logs.astype(float)
        for order in (range(count), range(count - 1, -1, -1)):
            shown = Parts(np.full_like(parts.codes, -1), np.full_like(parts.numbers, np.nan), parts.weights)
            before = np.zeros(parts.n_rows)
            for at in order:
                self._show(at, parts, shown)
                now = self.mixture.log_density(shown)
                found[:, at] -= 0.5 * (now - before)
                before = now
        return found

    def _show(self, at: int, parts: Parts, shown: Parts) -> None:
        own = self.trees.coding.columns[at]
        if own.part >= 0:
            shown.codes[:, own.part] = parts.codes[:, own.part]
        if isinstance(own, Number):
            shown.numbers[:, own.number] = parts.numbers[:, own.number]

    @cached_property
    def usual(self) -> np.ndarray:
        """The mean surprise of every column in rows drawn from the model."""
        nothing = self._nothing(USUAL_ROWS)
        codes, numbers, _ = self.mixture.draw(nothing, np.random.default_rng(0))
        logs = np.zeros((USUAL_ROWS, len(self.trees.coding.columns)))
        for at, own in enumerate(self.trees.coding.columns):
            if isinstance(own, Number):
                free = codes[:, own.part] == 0 if own.part >= 0 else np.ones(USUAL_ROWS, dtype=bool)
                slope = own.unit.forward(own.unit.backward(numbers[:, own.number]))[1]
                logs[:, at] = np.where(free, slope, 0.0)
                numbers[:, own.number] = np.where(free, numbers[:, own.number], np.nan)
            elif isinstance(own, Levels):
                logs[:, at] = -own.log_step
            else:
                within_code = np.bincount(
                    own.codes[1:-1], own.shares * log_of(np.maximum(own.shares, 1e-300)), own.size
                )
                logs[:, at] = within_code[codes[:, own.part]]
        return np.asarray(self._surprises(Parts(codes, numbers, np.ones(USUAL_ROWS)), logs).mean(axis=0))

    def _nothing(self, rows: int) -> Parts:
        sizes, count = self.trees.coding.sizes, len(self.trees.coding.numbers)
        return Parts(np.full((rows, len(sizes)), -1), np.full((rows, count), np.nan), np.ones(rows))

    # -- questions

    def several(self, of: Any) -> list[Key] | None:
        """Return the columns of a list, or None if one column is named."""
        several = isinstance(of, list | set) or (isinstance(of, tuple) and of not in self.schema.by_key)
        return list(of) if several else None

    def asked(self, of: Any) -> list[Key]:
        asked = super().asked(of) if self.several(of) is None else list(of)
        for key in asked:
            if key not in self.schema.by_key:
                self.single({key: None})  # an error that names columns alike
        return asked

    def read_given(self, given: Any) -> dict[Key, Any]:
        return {key: value for key, value in super().read_given(given).items() if value is not None}

    def condition(self, given: Any) -> JointGiven:
        return JointGiven.of(self, move_to_leads(self.schema, self.read_given(given)))

    # -- draws

    def draw_numbers(self, fixed: Parts, first: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
        """Draw missing numbers, again if one is beyond the bounds of its column; at last it is clipped."""
        mixture, (*_, bounds) = self.mixture, self.units
        found = mixture.draw(fixed, rng, first)[1]
        free = np.isnan(fixed.numbers)
        for _ in range(REDRAWS):
            beyond = np.flatnonzero((free & ((found < bounds[:, 0]) | (found > bounds[:, 1]))).any(axis=1))
            if not len(beyond):
                return found
            again = mixture.draw(fixed.take(beyond), rng, None if first is None else first[beyond])[1]
            found[beyond] = again
        return np.where(free, np.clip(found, bounds[:, 0], bounds[:, 1]), found)

    def decode(self, codes: np.ndarray, numbers: np.ndarray, rng: np.random.Generator) -> dict[Key, Any]:
        """Return the values of columns that codes and numbers stand for."""
        found: dict[Key, Any] = {}
        for own in self.trees.coding.columns:
            if isinstance(own, Categories):
                levels = list(self.schema[own.key].levels)
                found[own.key] = [levels[place] for place in self._draw_categories(own, codes[:, own.part], rng)]
                continue
            if isinstance(own, Levels):
                values = own.values[codes[:, own.part]]
            else:
                values = own.unit.backward(numbers[:, own.number])
                if own.part >= 0:
                    code = codes[:, own.part]
                    values = np.where(code > 0, own.spikes[np.maximum(code, 1) - 1], values)
            whole = self.schema[own.key].kind is Kind.COUNT
            found[own.key] = np.maximum(np.round(values), 0.0).astype(np.int64) if whole else values
        return found

    def _draw_categories(self, own: Categories, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a category for each code: of those that share a code, one by their shares."""
        places = np.argsort(own.codes[1:-1], kind="stable")
        ends = np.searchsorted(own.codes[1:-1][places], np.arange(own.size + 1))
        mass = np.concatenate([[0.0], np.cumsum(own.shares[places])])
        drawn = mass[ends[codes]] + rng.random(len(codes)) * (mass[ends[codes + 1]] - mass[ends[codes]])
        return np.asarray(
            places[np.clip(np.searchsorted(mass, drawn, side="right") - 1, ends[codes], ends[codes + 1] - 1)]
        )

    # -- missing cells

    @property
    def imputed_columns(self) -> list[Key]:
        return list(self.parts_by_key)

    def expected_cells(self, table: Table) -> Iterator[tuple[Chunk, Expect]]:
        for task in table.tasks():
            chunk = task()
            parts = self.encode(chunk)[0]
            absent = np.isnan(parts.numbers).any(axis=1) | (parts.codes < 0).any(axis=1)
            place = np.cumsum(absent) - 1
            answers = self.mixture.beliefs(parts.take(np.flatnonzero(absent)), self.units)
            yield chunk, partial(self._expect, place=place, beliefs=answers[0], moments=answers[1])

    def _expect(
        self, key: Key, rows: np.ndarray, place: np.ndarray, beliefs: np.ndarray, moments: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the mean or the most probable category of missing cells, and the probabilities of all categories."""
        own, rows = self.parts_by_key[key], place[rows]
        start = int(self.mixture.layout.starts[own.part]) if own.part >= 0 else 0
        codes = beliefs[rows, start : start + own.size]
        if isinstance(own, Categories):
            shares = codes[:, own.codes[1:-1]] * own.shares
            levels = np.array([*self.schema[key].levels, None], dtype=object)[:-1]
            return levels[shares.argmax(axis=1)], shares
        if isinstance(own, Levels):
            return codes @ own.values, None
        mean = np.clip(moments[rows, own.number, 0] + self._origin(own), *self.bounds(key))
        return (mean if own.part < 0 else codes[:, 0] * mean + codes[:, 1:] @ own.spikes), None

    def predict_column(self, table: Table, key: Key) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the mean or the most probable category of a column in every row given the others.

        For categories, also return the (rows x categories) probabilities.
        """
        own, values, shares = self.part_of(key), [], []
        for task in table.tasks():
            parts = self.encode(task())[0]
            if own.part >= 0:
                parts.codes[:, own.part] = -1
            if isinstance(own, Number):
                parts.numbers[:, own.number] = np.nan
            beliefs, moments = self.mixture.beliefs(parts, self.units)
            found = self._expect(key, np.arange(parts.n_rows), np.arange(parts.n_rows), beliefs, moments)
            values.append(found[0])
            shares.append(found[1])
        if not values:
            return np.zeros(0), None
        return np.concatenate(values), None if shares[0] is None else np.concatenate(
            [x for x in shares if x is not None]
        )

    def draw_fills(self, table: Table, rng: np.random.Generator) -> Fills:
        """Return the rows with missing cells and draws from their joint conditional distribution, by column."""
        found: dict[Key, list[tuple[np.ndarray, np.ndarray]]] = {}
        for task in table.tasks():
            chunk = task()
            absent = {key: absent_cells(self.schema, chunk, key) for key in self.parts_by_key}
            for key, rows in table.outside.items():
                if key in absent:
                    absent[key][rows[(rows >= chunk.start) & (rows < chunk.start + chunk.n_rows)] - chunk.start] = False
            some = np.flatnonzero(np.any([np.zeros(chunk.n_rows, dtype=bool), *absent.values()], axis=0))
            if len(some):
                values = self._draw_cells(self.encode(chunk.take(some))[0], rng)
                for key, own in absent.items():
                    rows = np.flatnonzero(own[some])
                    if len(rows):
                        found.setdefault(key, []).append((some[rows] + chunk.start, values[key][rows]))
        return join_fills(self.schema, table, found, {})

    def _draw_cells(self, parts: Parts, rng: np.random.Generator) -> dict[Key, np.ndarray]:
        codes, _, members = self.mixture.draw(parts, rng)
        first = np.full((parts.n_rows, self.mixture.n_components), -np.inf)
        first[np.arange(parts.n_rows), members] = 0.0
        values = self.decode(codes, self.draw_numbers(Parts(codes, parts.numbers, parts.weights), first, rng), rng)
        return {key: np.array([*x, None], dtype=object)[:-1] if isinstance(x, list) else x for key, x in values.items()}
