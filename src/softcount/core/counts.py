"""Counts: observed, prior and expected counts, all as arrays that add."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping

import numpy as np
from msgspec import Struct, field

from softcount.core.twofold import Twofold
from softcount.errors import DataError


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
        own = ROOT if name == str(ROOT) and name not in self.arrays else name
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
