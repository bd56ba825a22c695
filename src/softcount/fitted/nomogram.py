"""What each value of each column adds to the log-odds of one class against another: the figures of `explain`.

Class against class they add up exactly, with any number of classes; one class against all the rest they would not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.fitted.column_shapes import column_range
from softcount.records import dataclass
from softcount.table.schema import Key

if TYPE_CHECKING:
    from softcount.fitted.fitted_model import Fitted

VALUES = 23
"""Values of a column of numbers that are looked at."""


@dataclass(frozen=True, slots=True)
class NomogramColumn:
    """A column: some of its values, and (values x groups) what each adds to the score of every group."""

    key: Key
    values: Sequence[Any]
    scores: np.ndarray
    numeric: bool

    def odds(self, first: int, second: int) -> np.ndarray:
        """What each value adds to the log-odds of one group against another."""
        return np.asarray(self.scores[:, first] - self.scores[:, second])


@dataclass(frozen=True, slots=True)
class Nomogram:
    """All columns that speak for themselves, and the scores that groups start from; `left_out` speak only together."""

    start: np.ndarray
    columns: tuple[NomogramColumn, ...]
    left_out: tuple[Key, ...]

    def reach(self, first: int, second: int) -> list[NomogramColumn]:
        """The columns by how far they can move the log-odds of two groups, farthest first."""

        def span(column: NomogramColumn) -> float:
            odds = column.odds(first, second)
            odds = odds[np.isfinite(odds)]
            return float(np.ptp(odds)) if len(odds) else 0.0

        return sorted(self.columns, key=span, reverse=True)


def nomogram_of(fitted: Fitted, values: Mapping[Key, Sequence[Any]] | None = None) -> Nomogram | None:
    """What values of the columns add, those given or some chosen; None where columns tell the classes only together."""
    pool = fitted.pool
    if fitted.n_groups < 2 or (pool is not None and pool.together):
        return None
    if pool is not None:  # columns add up in complete rows; with missing cells those that are there count for more
        fitted = replace(fitted, pool=replace(pool, sparse=None))
    leaves = fitted.model.leaves
    alone = [key for leaf in leaves for key in leaf.columns if len(leaf.columns) == 1 or pool is not None]
    alone = [key for key in alone if fitted.schema[key].kind.numeric or fitted.schema[key].kind.coded]
    if not alone:
        return None
    chosen = {key: values_of(fitted, key) for key in alone} if values is None else values
    left_out = tuple(leaf.key for leaf in leaves if not set(alone).issuperset(leaf.columns))
    start, scores = _scores(fitted, chosen)
    columns = tuple(
        NomogramColumn(key, list(chosen[key]), scores[key], fitted.schema[key].kind.numeric) for key in chosen
    )
    return Nomogram(start, columns, left_out)


def values_of(fitted: Fitted, key: Key) -> list[Any]:
    """The levels of a column, the most frequent first where that is known; of numbers, some over their range."""
    spec = fitted.schema[key]
    if spec.kind.numeric:
        low, high = column_range(fitted, key)
        whole = all(float(x).is_integer() for x in (low, high)) and high - low < VALUES
        return np.arange(low, high + 1).tolist() if whole else np.linspace(low, high, VALUES).tolist()
    known = None if fitted.record is None or fitted.record.table is None else fitted.record.table.column(key)
    if known is None:
        return list(spec.levels)
    return [spec.levels[place] for place, _ in known.levels]


def _scores(fitted: Fitted, chosen: Mapping[Key, Sequence[Any]]) -> tuple[np.ndarray, dict[Key, np.ndarray]]:
    """The scores of a row that holds nothing, and what each value adds to them, asked for in rows of nothing else."""
    total = sum(map(len, chosen.values()))
    rows: dict[Key, list[Any]] = {spec.key: [None] * (total + 1) for spec in fitted.schema.used}
    places, at = {}, 0
    for key, values in chosen.items():
        rows[key][at : at + len(values)] = list(values)
        places[key] = slice(at, at + len(values))
        at += len(values)
    compiled = fitted.compiled()
    pieces = [fitted.parts_of(chunk, compiled) for chunk in fitted.chunks(fitted.table(rows))]
    found = {key: np.concatenate([parts[key] for parts, _ in pieces]) for key in pieces[0][0]}
    start = pieces[-1][1][-1] + np.sum([part[-1] for part in found.values()], axis=0)
    return start, {key: found[key][places[key]] - found[key][-1] for key in chosen}


def read_out(fitted: Fitted, row: Mapping[Key, Any], first: int, second: int) -> float:
    """The log-odds of two groups for a row, read column by column and added up."""
    used = {spec.key for spec in fitted.schema.used}
    given = {key: [value] for key, value in row.items() if key in used and value is not None and value == value}
    found = nomogram_of(fitted, given)
    assert found is not None
    return float(found.start[first] - found.start[second] + sum(x.odds(first, second)[0] for x in found.columns))
