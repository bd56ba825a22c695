"""Whether few different whole numbers are levels or numbers: by which of the two says more of rows left out.

Every row is told by all others of its class, from one count of classes and values. The two compare because both are
probabilities: a density's is that of all that is rounded to the whole number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from softcount.table.schema import Kind

FEWEST, MOST = 5, 30
"""Different values of columns that are asked: fewer are told by levels as shortly, more have too few rows each."""
LEAST_ROWS = 50
"""Rows from which on they are asked: on 25 drawn ratings either choice was worse than the rule of thumb."""
WORTH = 0.01
"""Nats a row that numbers can save at most, by having fewer parameters, from which on levels are asked."""
MOST_CELLS = 10_000
"""Classes times values that are still asked."""
CLEAR = 0.1
"""Nats a row that levels must say more of values before numbers, which know their neighbours, give way to them."""
TIE = 0.005
"""Nats a row that numbers must say more of values before levels give way to them."""
SMALLEST = 1e-300


def counted(values: np.ndarray, groups: np.ndarray | None) -> tuple[np.ndarray, np.ndarray] | None:
    """The different values, and how often each class has each; None where they are not to be asked.

    `groups` are the classes of the rows, below 0 where unknown; without any, all rows are of one.
    """
    if groups is not None and (groups < 0).any():
        known = groups >= 0
        values, groups = (values[known], groups[known]) if known.any() else (values, None)
    if len(values) < LEAST_ROWS:
        return None
    different, codes = np.unique(values, return_inverse=True)
    classes = 1 if groups is None else int(groups.max()) + 1
    if not FEWEST <= len(different) <= MOST or classes * len(different) > MOST_CELLS:
        return None
    cells = codes if groups is None else codes + len(different) * groups
    counts = np.bincount(cells, minlength=classes * len(different)).reshape(classes, -1).astype(np.float64)
    return different, counts[counts.sum(axis=1) > 0]


def may_be_numbers(counts: np.ndarray) -> bool:
    """Whether levels have so few rows each that numbers, with fewer parameters, could say noticeably more."""
    return bool(len(counts) * (counts.shape[1] - 1) > 2.0 * WORTH * counts.sum())


class Gain(NamedTuple):
    """Nats a row by which levels say more of rows left out than numbers do: of values in a class, and of classes."""

    values: float
    classes: float

    @property
    def of_levels(self) -> bool:
        """Whether levels are clearly better than numbers."""
        return self.values > CLEAR and self.classes > 0

    @property
    def of_numbers(self) -> bool:
        return self.values < -TIE and self.classes <= 0


def gain_of_levels(different: np.ndarray, counts: np.ndarray, kind: Kind) -> Gain:
    """What levels say more of rows left out than numbers of a kind; one row is imagined of either in each class.

    >>> gain_of_levels(np.arange(5.0), np.array([[30.0, 1.0, 1.0, 1.0, 30.0]]), Kind.REAL).values > CLEAR
    True
    """
    levels, numbers = (_said(different, counts, how) for how in (_levels, _NUMBERS[kind]))
    return Gain(*((levels - numbers) / counts.sum()).tolist())


def _said(different: np.ndarray, counts: np.ndarray, how: Callable[..., np.ndarray]) -> np.ndarray:
    """Log-probabilities of all rows, each told by the others: of their values given the class, and the other way."""
    alone = np.maximum(how(different, counts, 1.0), SMALLEST)
    shares = counts.sum(axis=1, keepdims=True)
    joint = shares * np.maximum(how(different, counts, 0.0), SMALLEST)
    here = shares * alone
    seen = counts > 0  # no other is weighed
    of_class = here / (joint.sum(axis=0) - joint + here)
    return np.array([counts[seen] @ np.log(alone[seen]), counts[seen] @ np.log(of_class[seen])])


# -- the probability of each value in each class, by the class's rows without so many of that value


def _levels(different: np.ndarray, counts: np.ndarray, without: float) -> np.ndarray:
    """With one row imagined at every level; one that nobody else has, has as much."""
    rows = counts.sum(axis=1, keepdims=True)
    return np.asarray((np.maximum(counts - without, 0.0) + 1.0) / (rows - without + counts.shape[1]))


def _rounded_normal(different: np.ndarray, counts: np.ndarray, without: float) -> np.ndarray:
    return _between(different, counts, (different - 0.5, different + 0.5), without)


def _rounded_lognormal(different: np.ndarray, counts: np.ndarray, without: float) -> np.ndarray:
    return _between(np.log(different), counts, (np.log(different - 0.5), np.log(different + 0.5)), without)


def _rounded_amount(different: np.ndarray, counts: np.ndarray, without: float) -> np.ndarray:
    """Zeros by their share, the others by a lognormal."""
    rows = counts.sum(axis=1, keepdims=True)
    none = counts[:, :1]
    none_of = (np.maximum(none - without, 0.0) + 1.0) / (rows - without + 2.0)
    some_of = (np.maximum(rows - none - without, 0.0) + 1.0) / (rows - without + 2.0)
    above = _rounded_lognormal(different[1:], counts[:, 1:], without)
    return np.concatenate([none_of, some_of * above], axis=1)


def _poisson(different: np.ndarray, counts: np.ndarray, without: float) -> np.ndarray:
    rows, total = counts.sum(axis=1, keepdims=True), (counts @ different)[:, None]
    rate = (np.maximum(total - without * different, 0.0) + total.sum() / rows.sum()) / (rows - without + 1.0)
    factorials = np.array([math.lgamma(value + 1.0) for value in different.tolist()])
    return np.asarray(np.exp(different * np.log(rate) - rate - factorials))


def _between(at: np.ndarray, counts: np.ndarray, edges: tuple[np.ndarray, np.ndarray], without: float) -> np.ndarray:
    """What a normal of each class, with one row of the whole column's spread imagined, has between two edges."""
    pooled = counts.sum(axis=0)
    centre = float(pooled @ at / pooled.sum())
    at = at - centre
    squared = at * at
    rows = np.maximum(counts.sum(axis=1, keepdims=True) - without, 0.0)
    mean = ((counts @ at)[:, None] - without * at) / np.maximum(rows, 1.0)
    squares = (counts @ squared)[:, None] - without * squared - rows * mean * mean
    spread = float(pooled @ squared / pooled.sum())
    deviation = np.sqrt(2.0 * (np.maximum(squares, 0.0) + spread) / (rows + 1.0))
    low, high = ((edge - centre - mean) / deviation for edge in edges)
    low, high = np.where(low > 0, low, -high), np.where(low > 0, high, -low)  # in the upper tail no digits are lost
    found = [math.erfc(a) - math.erfc(b) for a, b in zip(low.ravel().tolist(), high.ravel().tolist(), strict=True)]
    return 0.5 * np.array(found).reshape(low.shape)


_NUMBERS = {
    Kind.REAL: _rounded_normal,
    Kind.POSITIVE: _rounded_lognormal,
    Kind.AMOUNT: _rounded_amount,
    Kind.COUNT: _poisson,
}
