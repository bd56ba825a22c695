"""What naive Bayes gets wrong: columns that depend on each other within the classes, copies among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from softcount.fitted.fitted_model import Fitted
from softcount.networks.code_counts import CodeCounts
from softcount.networks.dependence import Dependence, dependence, dependent_pairs
from softcount.table import Chunk, Table
from softcount.table.cuts import equal_count
from softcount.table.schema import Field, Key

MOST_CELLS = 1_000_000
"""Of tables with more cells pairs of columns are not looked at: that would take longer than the fit."""
MOST_COLUMNS = 100
MOST_LEVELS = 64
"""Columns with more levels are left aside: of them chance alone shows much."""
INTERVALS = 5
"""Into which a column of numbers is cut."""
WORTH_SAYING = 0.05
"""Nats that two columns must say of each other."""
CHANCE = 0.001
"""How often chance may show as much in any pair of the table."""
MOST_PAIRS = 5
REMEDY = "naive Bayes takes columns for independent within a class; a network minds such pairs: --net tan"


@dataclass(frozen=True, slots=True)
class DependentColumns:
    """Two columns and the nats they say of each other within the classes.

    `same` says that each level of one goes with one of the other's, `follows` that the second follows from the first.
    """

    first: Key
    second: Key
    information: float
    same: bool = False
    follows: bool = False

    def __str__(self) -> str:
        if self.same or self.follows:
            how = "says the same as" if self.same else "follows from"
            return f"{self.second!r} {how} {self.first!r}, and naive Bayes takes it for evidence of its own."
        return (
            f"{self.first!r} and {self.second!r} depend on each other within the classes ({self.information:.2f} nats)."
        )


def dependence_notes(fitted: Fitted, table: Table) -> list[str]:
    """Copies of the class and the most dependent pairs, a note each; the table is read under the model's schema."""
    found = _coded(fitted, table)
    if found is None:
        return []
    keys, counting = found
    pairs = [_pair(counting, keys, pair) for pair in _worth_saying(dependent_pairs(counting, 0), fitted, keys)]
    return [*_copies_of_class(counting, keys), *map(str, pairs), *([REMEDY] if pairs else [])]


def _coded(fitted: Fitted, table: Table) -> tuple[list[Key], CodeCounts] | None:
    """Columns, and counts of the class (node 0) and of them; None where pairs are too many, or there is none."""
    texts = set(fitted.schema.texts)
    plain = [spec for spec in fitted.schema.used if spec.key not in texts]
    fields = [spec for spec in plain if spec.kind.numeric or 1 < len(spec.levels) <= MOST_LEVELS]
    if not 1 <= len(fields) <= MOST_COLUMNS or (table.n_rows or 0) * len(fields) > MOST_CELLS:
        return None
    chunks = [task() for task in table.tasks()]
    labels = np.concatenate([np.asarray(chunk.labels, dtype=np.int64) for chunk in chunks])
    weights = np.concatenate([np.ones(x.n_rows) if x.weights is None else x.weights for x in chunks])
    codes = np.stack([labels, *(_codes(fitted, spec, chunks, weights) for spec in fields)], axis=1)
    sizes = [int(column.max(initial=0)) + 1 for column in codes.T]
    return [spec.key for spec in fields], CodeCounts(codes, sizes, weights)


def _copies_of_class(counting: CodeCounts, keys: Sequence[Key]) -> list[str]:
    """Columns that tell the class one to one, which may be known only once the class is."""
    found = []
    for place, key in enumerate(keys, start=1):
        pair = dependence(counting, 0, place)
        if pair.copy and pair.p_value * len(keys) < CHANCE and all(_follows(counting, 0, place)):
            found.append(f"{key!r} says the same as the class. If it is not known before: --kind {key}=ignore")
    return found


def _follows(counting: CodeCounts, a: int, b: int) -> tuple[bool, bool]:
    """Whether b follows from a, and a from b."""
    seen = counting.counts((a, b)) > 0
    return bool(seen.sum(axis=1).max() <= 1), bool(seen.sum(axis=0).max() <= 1)


def _codes(fitted: Fitted, spec: Field, chunks: Sequence[Chunk], weights: np.ndarray) -> np.ndarray:
    """A column as numbers of levels, -1 where it is missing or has a level that the model does not know."""
    store, slot = fitted.schema.places[spec.key]
    cells = np.concatenate([getattr(chunk, store)[:, slot] for chunk in chunks])
    if not spec.kind.numeric:
        own = cells.astype(np.int64)
        return np.where(own > len(spec.levels), 0, own) - 1
    there = np.isfinite(cells)
    edges = equal_count(cells[there], weights[there], INTERVALS)
    return np.where(there, np.searchsorted(edges, cells), -1)


def _worth_saying(pairs: Sequence[Dependence[int]], fitted: Fitted, keys: Sequence[Key]) -> list[Dependence[int]]:
    """The first pairs that say enough of each other, by more than chance; those of one block are modelled together."""
    block = {column: leaf.key for leaf in fitted.model.leaves for column in leaf.columns}
    found = (
        pair
        for pair in pairs
        if pair.information >= WORTH_SAYING
        and pair.p_value * len(pairs) < CHANCE
        and block.get(keys[pair.a - 1]) != block.get(keys[pair.b - 1])
    )
    return list(islice(found, MOST_PAIRS))


def _pair(counting: CodeCounts, keys: Sequence[Key], pair: Dependence[int]) -> DependentColumns:
    first, second = keys[pair.a - 1], keys[pair.b - 1]
    if not pair.copy:
        return DependentColumns(first, second, pair.information)
    forth, back = _follows(counting, pair.a, pair.b)
    if not forth:
        first, second = second, first
    return DependentColumns(first, second, pair.information, same=forth and back, follows=True)
