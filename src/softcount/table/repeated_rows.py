"""Identical rows: copies of one observation, or independent observations that agree by chance.

Cross-validation must not train on a copy of a row that it scores. A row of weight n and a row that a file holds n times
are treated alike, so the data alone decide which of the two they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softcount.numerics.mixed_bits import mixed
from softcount.records import dataclass
from softcount.table.chunk import Chunk, Repeats, RowUnits, Split

Weights = Callable[[], Iterable[tuple[int, np.ndarray | None]]]
"""The first row and the weights of every chunk."""

LEAST_SHARE = 0.02
"""Share of rows that repeat an earlier one up to which folds ignore the repeats."""
FEW_VALUES = 12
"""Distinct values up to which a number counts as discrete."""
LEAST_DISAGREEMENT = 0.1
"""Disagreement of the labels of identical rows, relative to rows drawn at random, that proves them independent."""
CHANCE = 10.0
"""Pairs of identical rows per pair expected from independent columns that discrete tables have without copies."""
MOST_COMPARED = 20_000
"""Rows that are compared with each other where folds are dealt by the number of a row."""
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
    columns within each class predict. Otherwise they are copies. With a single class the frequency alone decides.
    """
    _, groups = np.unique(keys, return_inverse=True)
    classes = int(labels.max(initial=0)) + 1
    pairs, cells = np.unique(groups * classes + labels, return_inverse=True)
    same = np.bincount(cells, times)  # rows of each distinct row with its label
    rows, repeats = float(times.sum()), float(times.sum() - (same > 0).sum())
    if repeats <= LEAST_SHARE * rows:
        return RepeatedRows(round(rows), round(repeats), copies=False)
    alike = np.bincount(groups, times)
    if (alike > 0).sum() < 2:  # a single distinct row cannot be both learned from and held out
        return RepeatedRows(round(rows), round(repeats), copies=False)
    others = np.maximum(alike - 1.0, 1.0)
    agreeing = np.bincount(pairs // classes, same * (same - 1.0), len(alike)) / others
    repeated = alike > 1
    disagreement = 1.0 - agreeing[repeated].sum() / alike[repeated].sum()
    shares = np.bincount(labels, times * repeated[groups], classes) / alike[repeated].sum()
    if disagreement >= LEAST_DISAGREEMENT * (1.0 - shares @ shares) and (shares > 0).sum() > 1:
        return RepeatedRows(round(rows), round(repeats), copies=False)
    numbers = (column for block in blocks if block.dtype.kind == "f" for column in block.T)
    fine = (len(np.unique(column[~np.isnan(column)])) > FEW_VALUES for column in numbers)
    copies = has_text or (classes > 1 and any(fine))
    if not copies:
        found = float((same * (same - 1.0)).sum())
        copies = found > CHANCE * _expected_pairs(labels, times, blocks)
    return RepeatedRows(round(rows), round(repeats), copies)


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


def units_of(blocks: Sequence[np.ndarray], labels: np.ndarray) -> tuple[RepeatedRows, np.ndarray]:
    """Repeats among rows of numbers and codes, and the fold unit of each row."""
    keys = row_keys(blocks)
    found = find_repeats(keys, labels, np.ones(len(keys)), blocks)
    return found, fold_units(keys, labels, found.copies)


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


def deal_repeats(split: Split, chunks: Sequence[Chunk], weights: Weights, complete: bool) -> Split:
    """The split with copies of a row in one fold, or with whole weights as independent repetitions of a row.

    The rows of some chunks decide; if these are not `complete`, copies that have weights are each in one fold. The
    `weights` of all chunks are read only if they are repetitions.
    """
    independent = replace(split, repeats=Repeats.of(weights)) if any(x.weights is not None for x in chunks) else split
    if not chunks:
        return independent
    heavy = np.concatenate([np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights for chunk in chunks])
    classes = np.concatenate([np.zeros(x.n_rows, np.int32) if x.labels is None else x.labels for x in chunks])
    keys = np.concatenate([row_keys((chunk.reals, chunk.codes, chunk.wide), chunk.bags) for chunk in chunks])
    blocks = [np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("reals", "codes", "wide")]
    whole = bool((heavy == np.floor(heavy)).all())
    known = np.flatnonzero((classes >= 0) & (heavy > 0))
    times = heavy[known] if whole else np.ones(len(known))
    found = find_repeats(keys[known], classes[known], times, [block[known] for block in blocks], bool(chunks[0].bags))
    if not found.copies:
        return independent
    if not complete:
        return split
    there = np.flatnonzero(heavy > 0)
    units = np.zeros(len(keys), dtype=np.int64)
    units[there] = fold_units(keys[there], classes[there], copies=True)
    return replace(split, units=RowUnits(units, whole))


def _by_first(marks: np.ndarray) -> np.ndarray:
    """Numbers 0, 1, ... for different marks, in the order in which they are first met."""
    _, first, found = np.unique(marks, return_index=True, return_inverse=True)
    ranks = np.empty(len(first), dtype=np.int64)
    ranks[np.argsort(first)] = np.arange(len(first))
    return np.asarray(ranks[found])
