"""Correlated blocks of numbers as formulas: missing ones are integrated out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from softcount.export.formulas import (
    Apply,
    Choose,
    Compare,
    Computed,
    Formula,
    GroupNumbers,
    Missing,
    Once,
    Whole,
    formula,
    log,
    log1p,
    there,
    total,
)  # fmt: skip
from softcount.families.setting import ClosedForm
from softcount.numerics.late_scipy import gammaln
from softcount.records import dataclass
from softcount.table.schema import Key

HALF_LOG_2PI = 0.9189385332046727
MOST_PATTERNS = 16
"""Patterns of holes in a block that are written out."""
MOST_KEPT, MOST_INLINED = 1_000, 200
"""Numbers of a row that are kept in between where holes are found by elimination: databases have room for 1,664.

Those that compute no step once take minutes to plan more than a few."""

NOWHERE = GroupNumbers(np.array([-1e250]))
"""What is impossible, whatever weight a block has."""


@dataclass(frozen=True, eq=False)
class BlockDensity(Whole):
    """Numbers made of these columns as one block."""

    form: ClosedForm
    keys: tuple[Key, ...]
    values: tuple[Formula, ...]

    @property
    def few(self) -> bool:
        """Whether it has so few columns that every pattern of holes is written out."""
        return bool(2 ** len(self.keys) <= MOST_PATTERNS)

    def _written_out(self) -> Formula:
        if self.few:
            return _by_patterns(self.form, self.keys, self.values)
        return Choose(there(self.keys), self.of_whole_rows(), self.of_others())

    def of_whole_rows(self) -> Formula:
        """The density of rows without holes."""
        return _density(self.form, self.values, list(range(len(self.keys))))

    def of_others(self, most: int = MOST_KEPT) -> Formula:
        """That of rows with holes; nowhere where more than so many numbers would have to be kept in between."""
        if self.kept <= most:
            return _eliminated(self.form, self.keys, self.values)
        return Choose(tuple(map(Missing, self.keys)), formula(0.0), NOWHERE)

    @property
    def kept(self) -> int:
        """Numbers of a row that are kept in between where holes are found by elimination."""
        return len(self.form["mean"]) * len(self.keys) * (len(self.keys) + 3) // 2


def block_formula(form: ClosedForm, keys: tuple[Key, ...], values: Sequence[Formula]) -> Formula:
    """Numbers made of these columns as one block."""
    return BlockDensity(form, keys, tuple(values))


def blocks_in(of: Formula) -> list[BlockDensity]:
    """The blocks that a formula holds, apart from those of few columns."""
    if isinstance(of, Apply):
        return [one for part in of.parts for one in blocks_in(part)]
    return [of] if isinstance(of, BlockDensity) and not of.few else []


def with_blocks_computed(of: Formula, names: Mapping[int, str]) -> Formula:
    """The formula with blocks as what earlier steps have computed, called so."""
    if isinstance(of, Apply):
        return Apply(of.operation, tuple(with_blocks_computed(part, names) for part in of.parts))
    return Computed(names[id(of)]) if id(of) in names else of


def _by_patterns(form: ClosedForm, keys: tuple[Key, ...], values: Sequence[Formula]) -> Formula:
    found: Formula = formula(0.0)
    for holes in sorted(product((False, True), repeat=len(keys)), key=sum, reverse=True):
        present = [place for place, hole in enumerate(holes) if not hole]
        if present:
            found = Choose(there([keys[place] for place in present]), _density(form, values, present), found)
    return found


def _density(form: ClosedForm, values: Sequence[Formula], present: list[int]) -> Formula:
    """The density of some numbers that are all there."""
    mean, covariance = form["mean"][:, present], form["covariance"][:, present][:, :, present]
    unit = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    root = np.linalg.cholesky(covariance / (unit[:, :, None] * unit[:, None, :]))
    turn = np.linalg.solve(root, np.broadcast_to(np.eye(len(present)), root.shape))

    def once(of: Formula) -> Formula:
        return Once(of) if 2 ** len(present) > MOST_PATTERNS else of

    offs = [once((values[place] - mean[:, j]) / unit[:, j]) for j, place in enumerate(present)]
    lines = [once(total([offs[j] * turn[:, i, j] for j in range(i + 1)])) for i in range(len(present))]
    distance = once(total([line * line for line in lines]))
    log_det = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1) + np.log(unit).sum(axis=1)
    return _at(form, len(present), distance) - formula(log_det)


def _at(form: ClosedForm, present: int, distance: Formula) -> Formula:
    """The density of so many numbers at a squared distance, where the covariance has determinant one."""
    if "freedom" not in form:
        return formula(-present * HALF_LOG_2PI) - distance * 0.5
    freedom, stretch, tops = student_tops(form, present)
    return formula(tops[present]) - log1p(distance / (freedom * stretch)) * (0.5 * (freedom + present))


def student_tops(form: ClosedForm, columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Degrees of freedom, what covariances are stretched by, and the density at the mean of 0, 1, ... columns."""
    freedom: np.ndarray = form["freedom"]
    stretch = form.get("spread", np.ones(len(freedom)))
    present = np.arange(columns + 1)[:, None]
    tops = gammaln((freedom + present) / 2) - gammaln(freedom / 2) - 0.5 * present * np.log(freedom * np.pi * stretch)
    return freedom, stretch, tops


def _eliminated(form: ClosedForm, keys: tuple[Key, ...], values: Sequence[Formula]) -> Formula:
    """The density of the numbers that are there, by eliminating one column after the other from the covariance.

    A missing number has the variance one, depends on no other and is at its mean, so that it adds nothing.
    """
    unit = np.sqrt(np.diagonal(form["covariance"], axis1=1, axis2=2))
    covariance = form["covariance"] / (unit[:, :, None] * unit[:, None, :])
    columns = range(len(keys))
    offs: list[Formula] = [
        Once(Choose((Missing(key),), formula(0.0), (value - form["mean"][:, j]) / unit[:, j]))
        for j, (key, value) in enumerate(zip(keys, values, strict=True))
    ]
    rest: dict[tuple[int, int], Formula] = {
        (i, j): Once(Choose(there([keys[i], keys[j]]), formula(covariance[:, i, j]), formula(float(i == j))))
        for i in columns
        for j in range(i + 1)
    }
    squares, pivots = [], []
    for k in columns:
        pivot, off = rest[k, k], offs[k]
        squares.append(off * off / pivot)
        pivots.append(log(pivot))
        for i in range(k + 1, len(keys)):
            share = rest[i, k] / pivot
            offs[i] = Once(offs[i] - share * off)
            for j in range(k + 1, i + 1):
                rest[i, j] = Once(rest[i, j] - share * rest[j, k])
    units = [Choose((Missing(key),), formula(0.0), formula(np.log(unit[:, j]))) for j, key in enumerate(keys)]
    log_det = total(pivots) * 0.5 + total(units)
    return _of_present(form, keys, Once(total(squares))) - log_det


def _of_present(form: ClosedForm, keys: tuple[Key, ...], distance: Formula) -> Formula:
    """The density by how many numbers are there."""
    present = Once(total([Choose((Missing(key),), formula(0.0), formula(1.0)) for key in keys]))

    def between(least: int, most: int) -> Formula:
        if least == most:
            return _at(form, least, distance) if least else formula(0.0)
        middle = (least + most) // 2
        below = Compare("<", present, formula(middle + 0.5))
        return Choose((below,), between(least, middle), between(middle + 1, most))

    return between(0, len(keys))
