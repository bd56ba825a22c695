"""Counts: observed, prior and expected counts, as arrays of the unevaluated sum of two doubles, about 31 digits.

Such a statistic can be merged, shifted and subtracted in any order. The variance survives even in a group that lies a
million standard deviations from its column's anchor.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
from msgspec import Struct, field

from softcount.errors import DataError

Index = Any
ZERO = np.zeros(())
HI, LO = attrgetter("hi"), attrgetter("lo")
SPLITTER = 134217729.0  # 2**27 + 1 splits a double into two halves whose products are exact


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounded sum and its exact rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounded product and its exact rounding error (for magnitudes below 1e150)."""
    product = a * b
    a_wide, b_wide = SPLITTER * a, SPLITTER * b
    a_high, b_high = a_wide - (a_wide - a), b_wide - (b_wide - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


class Twofold:
    """An array whose every value is `hi + lo`, with `|lo|` far below `|hi|`.

    >>> tiny = Twofold.of(np.array([1.0])) + Twofold.of(np.array([1e-20]))
    >>> (tiny - Twofold.of(np.array([1.0]))).value
    array([1.e-20])
    """

    __slots__ = ("hi", "lo")

    def __init__(self, hi: np.ndarray, lo: np.ndarray) -> None:
        self.hi = hi
        self.lo = lo

    @classmethod
    def of(cls, values: np.ndarray) -> Twofold:
        values = np.asarray(values, dtype=np.float64)
        return cls(values, np.zeros_like(values))

    def alike(self, hi: np.ndarray, lo: np.ndarray) -> Twofold:
        """Return an array of the same type with other values."""
        return Twofold(hi, lo)

    @property
    def value(self) -> np.ndarray:
        found: np.ndarray = self.hi + self.lo
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        return self.hi.shape

    def __add__(self, other: Twofold) -> Twofold:
        total, lost = two_sum(self.hi, other.hi)
        return _normal(total, lost + (self.lo + other.lo))

    def __sub__(self, other: Twofold) -> Twofold:
        return self + Twofold(-other.hi, -other.lo)

    def __mul__(self, other: Twofold | float | np.ndarray) -> Twofold:
        if not isinstance(other, Twofold):
            other = Twofold.of(np.asarray(other, dtype=np.float64))
        product, lost = two_product(self.hi, other.hi)
        return _normal(product, lost + (self.hi * other.lo + self.lo * other.hi))

    def map(self, work: Callable[[np.ndarray], np.ndarray]) -> Twofold:
        """Apply a function that moves or repeats values to both halves."""
        return Twofold(work(self.hi), work(self.lo))

    def __getitem__(self, index: Index) -> Twofold:
        return Twofold(self.hi[index], self.lo[index])

    def spread(self, axis: int) -> Twofold:
        return self.map(partial(np.expand_dims, axis=axis))

    def broadcast(self, shape: tuple[int, ...]) -> Twofold:
        return self.map(partial(np.broadcast_to, shape=shape))

    def take(self, index: np.ndarray, axis: int) -> Twofold:
        return self.map(partial(np.take, indices=index, axis=axis))

    def over(self, divisor: Twofold) -> Twofold:
        """Divide; a zero divisor gives zero."""
        safe = np.where(divisor.hi == 0, 1.0, divisor.hi)
        first = np.where(divisor.hi == 0, 0.0, self.hi / safe)
        rest = self - divisor * first
        return _normal(first, np.where(divisor.hi == 0, 0.0, rest.hi / safe))

    def sum(self, axis: int, keepdims: bool = False) -> Twofold:
        """Sum along one axis, slice by slice in twofold arithmetic."""
        # Views, because `take` would copy the whole array for every slice if its columns come first, as words do.
        hi, lo = np.moveaxis(self.hi, axis, 0), np.moveaxis(self.lo, axis, 0)
        total = Twofold.of(np.zeros(hi.shape[1:]))
        for part in range(len(hi)):
            total = total + Twofold(hi[part], lo[part])
        return total.spread(axis) if keepdims else total


class Single(Twofold):
    """Plain doubles with the interface of `Twofold`, for many approximate totals."""

    __slots__ = ()

    @classmethod
    def of(cls, values: np.ndarray) -> Single:
        return cls(values, ZERO)

    @property
    def value(self) -> np.ndarray:
        return self.hi

    def __add__(self, other: Twofold) -> Single:
        return Single(self.hi + other.hi, ZERO)

    def __sub__(self, other: Twofold) -> Single:
        return Single(self.hi - other.hi, ZERO)

    def __mul__(self, other: Twofold | float | np.ndarray) -> Single:
        return Single(self.hi * (other.hi if isinstance(other, Twofold) else other), ZERO)

    def map(self, work: Callable[[np.ndarray], np.ndarray]) -> Single:
        return Single(work(self.hi), ZERO)

    def __getitem__(self, index: Index) -> Single:
        return Single(self.hi[index], ZERO)

    def over(self, divisor: Twofold) -> Single:
        nothing = divisor.hi == 0
        return Single(np.where(nothing, 0.0, self.hi / np.where(nothing, 1.0, divisor.hi)), ZERO)

    def sum(self, axis: int, keepdims: bool = False) -> Single:
        return Single(self.hi.sum(axis=axis, keepdims=keepdims), ZERO)


def _normal(hi: np.ndarray, lo: np.ndarray) -> Twofold:
    total = hi + lo
    with np.errstate(invalid="ignore"):
        return Twofold(total, lo - (total - hi))


def stack(parts: Sequence[Twofold], axis: int) -> Twofold:
    return Twofold(np.stack(list(map(HI, parts)), axis), np.stack(list(map(LO, parts)), axis))


def concatenate(parts: Sequence[Twofold], axis: int) -> Twofold:
    return Twofold(np.concatenate(list(map(HI, parts)), axis), np.concatenate(list(map(LO, parts)), axis))


# Counts by name.


class _Groups:
    """Key of the groups themselves. It is not a string, because any string can be the name of a column."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "(groups)"

    def __reduce__(self) -> str:
        return "ROOT"  # unpickles to the one module-level object


ROOT = _Groups()
"""Key of the counts of the groups, and of their parameters."""


class Counts(Struct, frozen=True, eq=False):
    """Named totals of shape (groups, features), with the weight of the rows and their log-likelihood.

    `+` adds two fits of one schema, `-` removes rows, `*` changes their weight. If two arrays differ in width, the
    narrower one is padded with zeros, because vocabularies only grow.

    >>> half = Counts({"coin": Twofold.of(np.array([[1.0, 2.0]]))}, rows=3.0)
    >>> (half + half)["coin"]
    array([[2., 4.]])
    """

    arrays: Mapping[Hashable, Twofold]
    rows: float = 0.0
    log_likelihood: float = 0.0
    notes: Mapping[str, float] = field(default_factory=dict)

    def __getitem__(self, name: Hashable) -> np.ndarray:
        """Return one array. The name "(groups)" selects the counts of the groups, unless a column has that name."""
        own = ROOT if name == "(groups)" and name not in self.arrays else name
        return self.arrays[own].value

    def __contains__(self, name: Hashable) -> bool:
        return name in self.arrays

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.arrays)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name!r} {array.shape}" for name, array in self.arrays.items())
        return f"<{type(self).__name__} of {self.rows:,.6g} rows: {shapes}>"

    def keys(self) -> list[Hashable]:
        return list(self.arrays)

    def __add__(self, other: Counts) -> Counts:
        return self._combine(other, 1.0)

    def __sub__(self, other: Counts) -> Counts:
        return self._combine(other, -1.0)

    def __mul__(self, factor: float) -> Counts:
        if not np.isfinite(factor) or factor < 0:
            raise DataError(f"counts can be weighed by a number of 0 or more, not by {factor}.")
        arrays = {name: array * factor for name, array in self.arrays.items()}
        return Counts(arrays, self.rows * factor, self.log_likelihood * factor, self.notes)

    __rmul__ = __mul__

    @property
    def finite(self) -> bool:
        return all(bool(np.isfinite(array.hi).all()) for array in self.arrays.values())

    def map(self, change: Callable[[Twofold], Twofold]) -> Counts:
        arrays = {name: change(array) for name, array in self.arrays.items()}
        return Counts(arrays, self.rows, self.log_likelihood, self.notes)

    def _combine(self, other: Counts, sign: float) -> Counts:
        if set(self.arrays) != set(other.arrays):
            odd = sorted(map(str, set(self.arrays) ^ set(other.arrays)))
            raise DataError(f"these counts are of different tables: {', '.join(odd)} is in one of them only.")
        arrays: dict[Hashable, Twofold] = {}
        for name, left in self.arrays.items():
            right = other.arrays[name]
            join = getattr(left, "joined", None) if type(left) is type(right) and sign > 0 else None
            if join is not None:
                arrays[name] = join(right)  # lazy counts, added up later
                continue
            if left.shape != right.shape:
                shape = tuple(max(pair) for pair in zip(left.shape, right.shape, strict=True))
                left, right = _pad(left, shape), _pad(right, shape)
            arrays[name] = left + right if sign > 0 else left - right
        notes = {k: self.notes.get(k, 0.0) + sign * other.notes.get(k, 0.0) for k in {*self.notes, *other.notes}}
        rows = self.rows + sign * other.rows
        return Counts(arrays, rows, self.log_likelihood + sign * other.log_likelihood, notes)


def _pad(array: Twofold, shape: tuple[int, ...]) -> Twofold:
    if array.shape == shape:
        return array
    widths = [(0, want - have) for want, have in zip(shape, array.shape, strict=True)]
    return Twofold(np.pad(array.hi, widths), np.pad(array.lo, widths))
