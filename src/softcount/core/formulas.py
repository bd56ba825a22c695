"""Scoring formulas: expressions over the cells of a row.

A family returns its log-density as a formula (`Family.formula`). SQL, ONNX and the explorer render it in their own
language.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from softcount.core.special import log_student

Key = Hashable
Keys = tuple[Key, ...]
Sizes = Sequence[int]
"""Numbers of categories of the columns."""
BlockForm = Mapping[str, np.ndarray]
"""Means and covariances of a block in every group; for Student's t also its degrees of freedom and spread."""
CLAMPED = -1e200
"""Replaces the logarithm of 0, because products must stay finite."""

Operation = Literal["add", "subtract", "multiply", "divide", "log", "exp", "largest"]


class Formula:
    """An expression with one value per group. Operators combine formulas."""

    def __add__(self, other: Any) -> Formula:
        return Apply("add", (self, formula(other)))

    def __sub__(self, other: Any) -> Formula:
        return Apply("subtract", (self, formula(other)))

    def __mul__(self, other: Any) -> Formula:
        return Apply("multiply", (self, formula(other)))

    def __truediv__(self, other: Any) -> Formula:
        return Apply("divide", (self, formula(other)))


class GroupNumbers(Formula, Struct, frozen=True, eq=False):
    """A constant: one value per group, or one for all groups."""

    values: np.ndarray


class Cell(Formula, Struct, frozen=True):
    """The number in a cell, or missing."""

    key: Key


class Apply(Formula, Struct, frozen=True, eq=False):
    """An operation on one or two formulas, or the maximum of several. The argument of "exp" is at most 0."""

    operation: Operation
    parts: tuple[Formula, ...]


class Once(Formula, Struct, frozen=True, eq=False):
    """A formula that is used several times and computed once."""

    of: Formula


class Computed(Formula, Struct, frozen=True):
    """The result of an earlier step. `name` is the prefix of its columns; the number of the group is appended."""

    name: str


class AllKnown(Formula, Struct, frozen=True, eq=False):
    """0 if all of these codes are known, otherwise missing."""

    codes: tuple[Code, ...]


class Whole(Formula):
    """A formula over many columns that an exporter may compute in its own way, or write out as `out`."""

    @cached_property
    def out(self) -> Formula:
        raise NotImplementedError


class Test:
    """A condition on a row, in each group."""


class Missing(Test, Struct, frozen=True):
    """Whether a cell is missing; with `wanted=False`, whether it is present."""

    key: Key
    wanted: bool = True


def there(keys: Sequence[Key]) -> tuple[Missing, ...]:
    return tuple(Missing(key, wanted=False) for key in keys)


class Compare(Test, Struct, frozen=True, eq=False):
    """Whether the left formula is less than the right one, or equal to it."""

    sign: Literal["<", "="]
    left: Formula
    right: Formula


class Choose(Formula, Struct, frozen=True, eq=False):
    """`then` if all tests are true, else `otherwise`."""

    tests: tuple[Test, ...]
    then: Formula
    otherwise: Formula


class Code:
    """A non-negative integer that selects a row of a table."""


class LevelCode(Code, Struct, frozen=True):
    """0 if a cell is missing, else the position of its category counted from 1; `size` + 1 for an unseen category."""

    key: Key
    size: int


class IntervalCode(Code, Struct, frozen=True, eq=False):
    """0 if a number is missing, else 1 plus the number of edges less than or equal to it."""

    key: Key
    edges: np.ndarray


class WordsCode(Code, Struct, frozen=True):
    """All words of a document; a look-up is the weighted sum of the table over its words.

    The weight of a word with count n is 1 (`once`), n (`times`), log(1 + n) (`log`) or the square of that (`square`). A
    table with one column serves all groups.
    """

    key: Key
    each: Literal["once", "times", "log", "square"]


class CombinedCode(Code, Struct, frozen=True, eq=False):
    """Several codes as one, the last changing fastest. A code that is not below its size counts as 0."""

    codes: tuple[Code, ...]
    sizes: tuple[int, ...]


def code_key(code: Code) -> Hashable:
    """Return a hashable key that is equal for equal codes."""
    if isinstance(code, IntervalCode):
        return (code.key, code.edges.tobytes())
    return (*map(code_key, code.codes), code.sizes) if isinstance(code, CombinedCode) else code


class LookUp(Formula, Struct, frozen=True, eq=False):
    """A row of a (codes x groups) table."""

    code: Code
    table: np.ndarray


def formula(value: Any) -> Formula:
    """Convert numbers to a formula.

    Minus infinity becomes `CLAMPED`, so that sums stay finite; a formula is returned as is.
    """
    if isinstance(value, Formula):
        return value
    return GroupNumbers(np.maximum(np.atleast_1d(np.asarray(value, dtype=np.float64)), CLAMPED))


def log(of: Formula) -> Formula:
    return Apply("log", (of,))


def largest(parts: Sequence[Formula]) -> Formula:
    return Apply("largest", tuple(parts)) if len(parts) > 1 else parts[0]


def smallest(one: Formula, other: Any) -> Formula:
    return formula(0.0) - largest([formula(0.0) - one, formula(0.0) - other])


def clip(one: Formula, most: float) -> Formula:
    return smallest(largest([one, formula(-most)]), formula(most))


def total(parts: Sequence[Formula]) -> Formula:
    """Sum the formulas as a balanced tree: engines refuse an expression that is a thousand levels deep."""
    if not parts:
        return formula(0.0)
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return total(parts[:middle]) + total(parts[middle:])


def summands(of: Formula) -> Iterator[Formula]:
    """Yield the terms of a sum. Any other formula is its only term."""
    if isinstance(of, Apply) and of.operation == "add":
        for part in of.parts:
            yield from summands(part)
    else:
        yield of


def merge_terms(terms: Sequence[Formula]) -> list[Formula]:
    """Merge the terms of a sum: add up constants, and tables that share a code."""
    tables: dict[Hashable, list[LookUp]] = {}
    numbers: list[np.ndarray] = []
    others: list[Formula] = []
    for term in terms:
        if isinstance(term, LookUp):
            tables.setdefault(code_key(term.code), []).append(term)
        elif isinstance(term, GroupNumbers):
            numbers.append(term.values)
        else:
            others.append(term)
    looked = [LookUp(own[0].code, clamp(np.sum([one.table for one in own], axis=0))) for own in tables.values()]
    return [formula(sum(numbers, np.zeros(1))), *looked, *others]


def scale_terms(terms: Iterable[Formula], weight: float) -> list[Formula]:
    """Multiply the terms of a sum, tables by their entries."""
    return [
        LookUp(term.code, clamp(weight * term.table)) if isinstance(term, LookUp) else term * weight for term in terms
    ]


def walk(of: Formula | Test) -> Iterator[Formula | Test]:
    """Yield a formula and all its parts, depth first. Parts of `Once` are not visited."""
    yield of
    inside: tuple[Formula | Test, ...] = ()
    if isinstance(of, Apply):
        inside = of.parts
    elif isinstance(of, Choose):
        inside = (*of.tests, of.then, of.otherwise)
    elif isinstance(of, Compare):
        inside = (of.left, of.right)
    elif isinstance(of, Whole):
        inside = (of.out,)
    for part in inside:
        yield from walk(part)


def stages(terms: Sequence[Formula]) -> list[list[Once]]:
    """Return the `Once` formulas in order of dependence.

    First come those that need no other, then those that need only these, and so on.
    """
    levels: dict[int, int] = {}
    found: list[list[Once]] = []

    def place(of: Formula) -> int:
        below = (visit(part) for part in walk(of) if isinstance(part, Once))
        return max(below, default=0)

    def visit(one: Once) -> int:
        if id(one) not in levels:
            level = place(one.of)
            levels[id(one)] = level + 1
            found.extend([] for _ in range(level + 1 - len(found)))
            found[level].append(one)
        return levels[id(one)]

    for term in terms:
        place(term)
    return found


def log1p(of: Formula) -> Formula:
    """Return log(1 + x) to full precision, also for tiny x (Kahan)."""
    more = of + 1.0
    return Choose((Compare("=", more, formula(1.0)),), of, log(more) * of / (more - 1.0))


def log_sum(parts: Sequence[Formula]) -> Formula:
    top = largest(parts)
    return top + log(total([Apply("exp", (part - top,)) for part in parts]))


def clamp(table: np.ndarray) -> np.ndarray:
    """Replace minus infinity by a finite number."""
    return np.asarray(np.maximum(table, CLAMPED))


# -- blocks of dependent numbers; missing numbers are integrated out

HALF_LOG_2PI = 0.9189385332046727
MOST_PATTERNS = 16
"""Largest number of patterns of missing values in a block that is written out."""
MOST_KEPT, MOST_INLINED = 1_000, 200
"""Most intermediate values per row when missing values are eliminated: databases have at most 1,664 columns.

`MOST_INLINED` is for databases that cannot compute a step once: they take minutes to plan more than a few.
"""
NOWHERE = GroupNumbers(np.array([-1e250]))
"""An impossible score, whatever the weight of its block."""


class BlockDensity(Whole, Struct, frozen=True, eq=False):
    """The density of a block of numbers, each a formula of one column."""

    form: BlockForm
    keys: tuple[Key, ...]
    values: tuple[Formula, ...]

    @property
    def few(self) -> bool:
        """Whether every pattern of missing values is written out."""
        return bool(2 ** len(self.keys) <= MOST_PATTERNS)

    @cached_property
    def out(self) -> Formula:
        if self.few:
            found: Formula = formula(0.0)
            for holes in sorted(product((False, True), repeat=len(self.keys)), key=sum, reverse=True):
                present = [place for place, hole in enumerate(holes) if not hole]
                if present:
                    found = Choose(
                        there([self.keys[place] for place in present]), _density(self.form, self.values, present), found
                    )
            return found
        return Choose(there(self.keys), self.of_whole_rows(), self.of_others())

    def of_whole_rows(self) -> Formula:
        return _density(self.form, self.values, list(range(len(self.keys))))

    def of_others(self, most: int = MOST_KEPT) -> Formula:
        """Return the density of rows with missing values; impossible if it needs over `most` intermediate values."""
        if self.kept <= most:
            return _eliminated(self.form, self.keys, self.values)
        return Choose(tuple(map(Missing, self.keys)), formula(0.0), NOWHERE)

    @property
    def kept(self) -> int:
        """Number of intermediate values per row that elimination needs."""
        return len(self.form["mean"]) * len(self.keys) * (len(self.keys) + 3) // 2


def blocks_in(of: Formula) -> list[BlockDensity]:
    """Return the blocks in a formula, except those of few columns."""
    if isinstance(of, Apply):
        return [one for part in of.parts for one in blocks_in(part)]
    return [of] if isinstance(of, BlockDensity) and not of.few else []


def with_blocks_computed(of: Formula, names: Mapping[int, str]) -> Formula:
    """Replace the blocks in a formula by the results of earlier steps."""
    if isinstance(of, Apply):
        return Apply(of.operation, tuple(with_blocks_computed(part, names) for part in of.parts))
    return Computed(names[id(of)]) if id(of) in names else of


def _density(form: BlockForm, values: Sequence[Formula], present: list[int]) -> Formula:
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


def _at(form: BlockForm, present: int, distance: Formula) -> Formula:
    """Return the log-density of `present` numbers at a squared distance, for a covariance with determinant 1."""
    if "freedom" not in form:
        return formula(-present * HALF_LOG_2PI) - distance * 0.5
    freedom, stretch, tops = student_tops(form, present)
    return formula(tops[present]) - log1p(distance / (freedom * stretch)) * (0.5 * (freedom + present))


def student_tops(form: BlockForm, columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return degrees of freedom, the factor of covariances, and the log-density at the mean of 0, 1, ... columns."""
    freedom: np.ndarray = form["freedom"]
    stretch = form.get("spread", np.ones(len(freedom)))
    present = np.arange(columns + 1)[:, None]
    tops = log_student(0.0, freedom, present, 0.5 * present * np.log(stretch))
    return freedom, stretch, tops


def _eliminated(form: BlockForm, keys: tuple[Key, ...], values: Sequence[Formula]) -> Formula:
    """Return the log-density of the observed numbers by eliminating the columns of the covariance one by one.

    A missing number gets variance 1, no covariances and a deviation of 0, so that it adds nothing.
    """
    unit = np.sqrt(np.diagonal(form["covariance"], axis1=1, axis2=2))
    covariance = form["covariance"] / (unit[:, :, None] * unit[:, None, :])
    columns = range(len(keys))
    offs: list[Formula] = [
        Once(unless_missing(key, (value - form["mean"][:, j]) / unit[:, j]))
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
    units = [unless_missing(key, formula(np.log(unit[:, j]))) for j, key in enumerate(keys)]
    log_det = total(pivots) * 0.5 + total(units)
    distance = Once(total(squares))
    present = Once(total([unless_missing(key, formula(1.0)) for key in keys]))

    def between(least: int, most: int) -> Formula:
        """Return the density, given that between `least` and `most` cells are observed."""
        if least == most:
            return _at(form, least, distance) if least else formula(0.0)
        middle = (least + most) // 2
        below = Compare("<", present, formula(middle + 0.5))
        return Choose((below,), between(least, middle), between(middle + 1, most))

    return between(0, len(keys)) - log_det


# -- densities


def normal_density(x: Formula, mean: Any, deviation: Any) -> Formula:
    """Return the logarithm of the normal density without its constant."""
    z = (x - formula(mean)) / formula(deviation)
    return formula(-np.log(deviation)) - z * z * 0.5


def unless_missing(key: Key, of: Formula) -> Formula:
    return Choose((Missing(key),), formula(0.0), of)
