"""A fitted model: what the estimators and the command line both wrap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from scipy import sparse

from softcount.counts import ROOT, Counts
from softcount.errors import DataError
from softcount.families import Family, Params
from softcount.fitted.calibration import Calibration
from softcount.fitted.influence import departures
from softcount.models.parts import refuse_scores
from softcount.models.star import TILE, Imagined, Ready, Star, StarParams
from softcount.run.threads import Threads
from softcount.table import Chunk, Table, open_table
from softcount.table.schema import Key, Kind, Schema


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Structure, counts, priors and the parameters they give, with the story of the fit.

    `classes` names the groups of a model of known classes and is None for a mixture, whose groups are numbered; `named`
    are the classes of a mixture that some labels told, its first groups in this order. `selection` is the table of what
    was tried where the number of groups was looked for; with `half_steps` the trace has two entries for each iteration.
    """

    star: Star
    estimates: StarParams
    counts: Counts
    imagined: Imagined
    classes: list[Any] | None = None
    target: Key | None = None
    notes: list[str] = field(default_factory=list)
    prior: Any = 1.0
    class_prior: Any = None
    estimate: str = "mean"
    missing: dict[Key, float] = field(default_factory=dict)
    trace: list[float] = field(default_factory=list)
    converged: bool = True
    log_likelihood: float | None = None
    objective: str = ""
    agreed: tuple[int, int] | None = None
    named: list[Any] | None = None
    selection: list[Any] | None = None
    half_steps: bool = False
    interrupted: bool = False
    calibration: Calibration | None = None

    # -- what was learned

    @property
    def schema(self) -> Schema:
        return self.star.schema

    @property
    def n_groups(self) -> int:
        return self.star.groups

    @property
    def shares(self) -> np.ndarray:
        return self.estimates.shares

    @property
    def params(self) -> dict[Key, Params]:
        return self.star.public(self.estimates)

    @property
    def levels(self) -> dict[Key, Sequence[object]]:
        """Levels of discrete columns, words of text columns, in the order of their probabilities."""
        kept = [x for x in self.star.leaves if x.family.discrete or x.family.kind is Kind.TEXT]
        return {x.key: list(x.setting.levels) if x.family.discrete else x.setting.levels for x in kept}

    @property
    def families(self) -> dict[Key, Family]:
        return {x.key: x.family for x in self.star.leaves}

    @property
    def bag(self) -> bool:
        """Whether the table is one sparse block of counts."""
        return any(not leaf.columns for leaf in self.star.leaves)

    @property
    def n_rows(self) -> float:
        return self.counts.rows

    @property
    def group_rows(self) -> np.ndarray:
        """The rows of each group; of known classes those that were counted, whatever share they are given."""
        if self.classes is None:
            return self.shares * self.n_rows
        return np.asarray(self.counts.arrays[ROOT].value, dtype=float)

    @property
    def n_iter(self) -> int:
        return max(len(self.trace) - 1, 0) // (2 if self.half_steps else 1)

    @property
    def n_parameters(self) -> int:
        return self.star.n_parameters(self.imagined.fixed_shares is not None, self.imagined.fixed)

    @property
    def names(self) -> list[Any]:
        """The groups' names: classes as far as they are known, the others numbered from 0."""
        known = (self.named or []) if self.classes is None else self.classes
        names = [name.item() if isinstance(name, np.generic) else name for name in known]
        while len(names) < self.n_groups:
            names.append(next(number for number in count(len(names)) if number not in names))
        return names

    def posterior(self, key: Key) -> Any:
        """The posterior of one column's parameters in every group, as a conjugate object."""
        leaf = self.star.leaf(key)
        return leaf.family.posterior(self.counts.arrays[key], self.imagined.leaves[key], leaf.setting)

    def influence(self) -> list[tuple[Key, float]]:
        """Columns by how far the groups depart from the whole table, in nats summed over the groups; largest first."""
        values = [(key, float(far.sum())) for key, far in departures(self).items()]
        return sorted(values, key=lambda pair: -pair[1])

    def cards(self) -> list[Any]:
        """A card for every group: its size, its typical row, and what sets it apart from the whole table."""
        from softcount.fitted.classes import cards

        return cards(self)

    def describe(self, key: Key) -> list[str]:
        """One column in a few words for every group."""
        leaf = self.star.leaf(key)
        if leaf.family.kind is Kind.TEXT:
            from softcount.fitted.marking_words import said

            return [own for own, _ in said(self, leaf)]
        return leaf.family.describe(self.params[key], leaf.setting)

    # -- scoring

    def table(self, data: Any, **how: Any) -> Table:
        """Data to be answered for, read under this model's schema."""
        return open_table(data, schema=self.schema, missing=self.schema.missing, **how)

    def log_proba(self, table: Table, threads: Threads) -> np.ndarray:
        """(rows x groups) log-probability of each group given the row, calibrated where the model is."""
        return self._each_row(table, threads, self._log_posterior)

    def proba(self, table: Table, threads: Threads) -> np.ndarray:
        """(rows x groups) probability of each group given the row, calibrated where the model is."""
        return self._each_row(table, threads, self._posterior)

    def score_rows(self, table: Table, threads: Threads) -> np.ndarray:
        """Log-density of each row, summed over the groups."""
        refuse_scores(self.star.leaves, "has no density")
        return self._each_row(table, threads, self._evidence, width=None)

    def log_joint(self, table: Table, threads: Threads) -> np.ndarray:
        """(rows x groups) log of share times density, up to what no group changes."""
        return self._each_row(table, threads, lambda ready, joint, out: None)

    def _posterior(self, ready: Ready, joint: np.ndarray, out: np.ndarray) -> None:
        better = None if self.calibration is None else self.calibration.proba(joint)
        evidence = self.star.kernels.normalise(joint)
        if not np.isfinite(evidence).all():
            raise _Impossible(int(np.argmin(np.isfinite(evidence))))
        if better is not None:
            joint[:] = better

    def _log_posterior(self, ready: Ready, joint: np.ndarray, out: np.ndarray) -> None:
        evidence = self.star.kernels.normalise(joint.copy())
        if not np.isfinite(evidence).all():
            raise _Impossible(int(np.argmin(np.isfinite(evidence))))
        joint -= evidence[:, None]
        if self.calibration is not None:
            joint[:] = self.calibration.log_proba(joint)

    def _evidence(self, ready: Ready, joint: np.ndarray, out: np.ndarray) -> None:
        out[:] = self.star.kernels.normalise(joint)

    def _each_row(
        self, table: Table, threads: Threads, finish: Callable[..., None], width: int | None = -1
    ) -> np.ndarray:
        """Score every chunk in tiles and finish each tile in place."""
        compiled = self.star.compile(self.estimates, contrast=width is not None)
        shape = () if width is None else (self.n_groups,)
        whole = None if table.n_rows is None else np.empty((table.n_rows, *shape))

        def work(task: Callable[[], Chunk]) -> np.ndarray:
            chunk = task()
            room = (
                np.empty((chunk.n_rows, *shape)) if whole is None else whole[chunk.start : chunk.start + chunk.n_rows]
            )
            return self._one_chunk(chunk, compiled, finish, room)

        parts = list(threads.map(work, table.tasks()))
        if whole is not None:
            return whole
        return np.concatenate(parts) if parts else np.empty((0, *shape))

    def _one_chunk(self, chunk: Chunk, compiled: list[Any], finish: Callable[..., None], out: np.ndarray) -> np.ndarray:
        rows_only = out.ndim == 1
        ready = self.star.prepare(chunk, base=rows_only)
        for a in range(0, chunk.n_rows, TILE):
            rows = slice(a, min(a + TILE, chunk.n_rows))
            joint = self.star.score(ready, compiled, rows, None if rows_only else out[rows])
            try:
                finish(ready, joint, out[rows])
            except _Impossible as where:
                raise self._impossible(chunk, a + where.row) from None
        if rows_only:
            out += ready.base
        return out

    def refuse_impossible(self, chunk: Chunk, joint: np.ndarray, rows: np.ndarray | None = None) -> None:
        """Raise at the first of these rows that no group can have made."""
        rows = np.arange(len(joint)) if rows is None else rows
        possible = np.isfinite(joint[rows]).any(axis=1)
        if not possible.all():
            raise self._impossible(chunk, int(rows[np.argmin(possible)]))

    def _impossible(self, chunk: Chunk, row: int) -> DataError:
        values = chunk.reals[row]
        if np.isinf(values).any():
            key = self.schema.stored("reals")[int(np.argmax(np.isinf(values)))].key
            return DataError(
                f"column {key!r}, row {chunk.start + row + 1}: Input contains infinity, which no model can score."
            )
        return DataError(
            f"row {chunk.start + row + 1} is impossible under every class (probability zero), so no class can be "
            "preferred. Fit with a prior (estimate='mean') so that nothing is impossible."
        )

    def chunks(self, table: Table) -> Iterator[Chunk]:
        for task in table.tasks():
            yield task()

    def single(self, given: Mapping[Key, Any]) -> Chunk:
        """One row that holds what is given and misses everything else."""
        known = [spec.key for spec in self.schema.used]
        for key in given:
            if key not in known:
                raise DataError(f"the model has no column {key!r}. It has: {', '.join(map(str, known))}.")
        if self.bag:
            nothing = np.zeros((1, 0))
            empty = sparse.csr_matrix((1, len(self.star.leaves[0].setting.levels)))
            return Chunk(0, 1, nothing, nothing.astype(np.uint8), nothing.astype(np.int32), (empty,))
        columns = {key: [given.get(key)] for key in known}
        return next(self.chunks(self.table(columns)))


class _Impossible(Exception):
    def __init__(self, row: int) -> None:
        self.row = row
