"""Identical rows: copies of one observation, or independent observations that agree by chance.

Cross-validation must not train on a copy of a row that it scores. A row of weight n and a row that a file holds n times
are treated alike, so the data alone decide which of the two they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcount.numerics.mixed_bits import mixed
from softcount.records import dataclass

LEAST_SHARE = 0.02
"""Share of rows that repeat an earlier one up to which folds ignore the repeats."""
FEW_VALUES = 12
"""Distinct values up to which a number counts as discrete."""
LEAST_DISAGREEMENT = 0.1
"""Disagreement of the labels of identical rows, relative to rows drawn at random, that proves them independent."""
CHANCE = 10.0
"""Pairs of identical rows per pair expected from independent columns that discrete tables have without copies."""
FEW_DISTINCT = 10
"""Distinct rows of a class below which a common divisor of their numbers may be chance."""


@dataclass(frozen=True, slots=True)
class RepeatedRows:
    """Rows, how many of them repeat an earlier row, and whether the repeats are copies of one observation."""

    rows: int
    repeats: int
    copies: bool

    def describe(self) -> str | None:
        """A line for the user, or None if there are too few repeats to matter."""
        if self.repeats <= LEAST_SHARE * self.rows:
            return None
        line = f"{self.repeats:,} of {self.rows:,} rows repeat an earlier row"
        if self.copies:
            return f"{line}. Cross-validation keeps identical rows in one fold."
        return f"{line}. The columns have few distinct values, so cross-validation treats them as independent rows."


def row_keys(blocks: Sequence[np.ndarray], bags: Sequence[Any] = ()) -> np.ndarray:
    """One 64-bit key per row, equal for rows with equal cells; a missing number equals a missing number.

    `blocks` are matrices of numbers or codes, `bags` sparse matrices of word counts.
    """
    rows = len(blocks[0]) if blocks else bags[0].shape[0]
    keys = np.zeros(rows, dtype=np.uint64)
    for place, block in enumerate(blocks):
        if block.dtype.kind == "f":
            bits = np.where(np.isnan(block), np.nan, block + 0.0).astype(np.float64).view(np.uint64)
        else:
            bits = block.astype(np.uint64)
        salts = mixed(np.arange(1, 1 + block.shape[1], dtype=np.uint64) + np.uint64(place << 32))
        with np.errstate(over="ignore"):
            keys += mixed(mixed(bits) ^ salts).sum(axis=1, dtype=np.uint64)
    for place, bag in enumerate(bags):
        each = mixed(np.arange(1, 1 + bag.shape[1], dtype=np.uint64)).astype(np.float64) / 2.0**64
        with np.errstate(over="ignore"):
            keys += mixed(np.asarray(bag @ each).view(np.uint64) + np.uint64(place + 1))
    return keys


def find_repeats(
    keys: np.ndarray, labels: np.ndarray, times: np.ndarray, blocks: Sequence[np.ndarray], has_text: bool = False
) -> RepeatedRows:
    """Count repeated rows and decide whether they are copies, whatever the order of the rows.

    Row i occurs `times[i]` times with class `labels[i]`, 0 or more. Identical rows are independent observations if
    their labels disagree, or if the columns are discrete and identical rows are about as frequent as independent
    columns within each class predict. Otherwise they are copies.
    """
    _, groups = np.unique(keys, return_inverse=True)
    classes = int(labels.max(initial=0)) + 1
    pairs, cells = np.unique(groups * classes + labels, return_inverse=True)
    same = np.bincount(cells, times)  # rows of each distinct row with its label
    rows, repeats = float(times.sum()), float(times.sum() - (same > 0).sum())
    if repeats <= LEAST_SHARE * rows:
        return RepeatedRows(round(rows), round(repeats), copies=False)
    alike = np.bincount(groups, times)
    others = np.maximum(alike - 1.0, 1.0)
    agreeing = np.bincount(pairs // classes, same * (same - 1.0), len(alike)) / others
    repeated = alike > 1
    disagreement = 1.0 - agreeing[repeated].sum() / alike[repeated].sum()
    shares = np.bincount(labels, times * repeated[groups], classes) / alike[repeated].sum()
    if disagreement >= LEAST_DISAGREEMENT * (1.0 - shares @ shares) and (shares > 0).sum() > 1:
        return RepeatedRows(round(rows), round(repeats), copies=False)
    copies = has_text or any(_is_fine(column) for block in blocks if block.dtype.kind == "f" for column in block.T)
    if not copies:
        found = float((same * (same - 1.0)).sum())
        copies = found > CHANCE * _expected_pairs(labels, times, blocks)
    return RepeatedRows(round(rows), round(repeats), copies)


def _is_fine(column: np.ndarray) -> bool:
    return len(np.unique(column[~np.isnan(column)])) > FEW_VALUES


def _expected_pairs(labels: np.ndarray, times: np.ndarray, blocks: Sequence[np.ndarray]) -> float:
    """Ordered pairs of identical rows of a class if its columns were independent."""
    total = 0.0
    for label in np.unique(labels):
        own = labels == label
        size = float(times[own].sum())
        if size <= 0:
            continue
        chance = 1.0
        for block in blocks:
            for column in block[own].T:
                _, values = np.unique(column, return_inverse=True)  # NaN equals NaN
                shares = np.bincount(values, times[own]) / size
                chance *= float(shares @ shares)
        total += size * (size - 1.0) * chance
    return total


def fold_units(keys: np.ndarray, labels: np.ndarray, copies: bool) -> np.ndarray:
    """A unit for each row, numbered as they are first met: rows of one unit belong to one fold.

    Identical rows are one unit if they are copies. If they are independent, each is a unit, unless the numbers of all
    distinct rows of a class have a common divisor, as weights that are the same for all rows of the class give: then
    that many identical rows are a unit.
    """
    if copies:
        return _by_first(keys)
    marks = mixed(keys ^ mixed(labels.astype(np.uint64)))
    _, cells, sizes = np.unique(marks, return_inverse=True, return_counts=True)
    if sizes.max(initial=0) < 2:
        return np.arange(len(keys))
    order = np.argsort(cells, kind="stable")
    turn = np.empty(len(keys), dtype=np.int64)  # how many equal rows came before
    turn[order] = np.arange(len(keys)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    divisors = np.ones(int(labels.max()) + 1, dtype=np.int64)
    own = labels[order[np.cumsum(sizes) - sizes]]
    for label in np.unique(own):
        if (own == label).sum() >= FEW_DISTINCT:
            divisors[label] = np.gcd.reduce(sizes[own == label])
    return _by_first(cells * (1 + int(turn.max())) + turn // divisors[labels])


def _by_first(marks: np.ndarray) -> np.ndarray:
    """Numbers 0, 1, ... for different marks, in the order in which they are first met."""
    _, first, found = np.unique(marks, return_index=True, return_inverse=True)
    ranks = np.empty(len(first), dtype=np.int64)
    ranks[np.argsort(first)] = np.arange(len(first))
    return np.asarray(ranks[found])
