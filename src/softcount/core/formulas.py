"""Scoring formulas: expressions over the cells of a row.

A family gives its log-density as one (`Family.formula`); SQL, ONNX and the explorer write it in their own language.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from softcount.core.lazy import gammaln

Key = Hashable
Keys = tuple[Key, ...]
Sizes = Sequence[int]
"""Numbers of levels of columns."""
BlockForm = Mapping[str, np.ndarray]
"""Means and covariances of a block in every group, and degrees of freedom and spread of Student's t."""
CLAMPED = -1e200
"""Stands for the logarithm of 0, because a product must stay finite."""

Operation = Literal["add", "subtract", "multiply", "divide", "log", "exp", "largest"]


class Formula:
    """One number in each group; operators combine formulas."""

    def __add__(self, other: Any) -> Formula:
        return Apply("add", (self, formula(other)))

    def __sub__(self, other: Any) -> Formula:
        return Apply("subtract", (self, formula(other)))

    def __mul__(self, other: Any) -> Formula:
        return Apply("multiply", (self, formula(other)))

    def __truediv__(self, other: Any) -> Formula:
        return Apply("divide", (self, formula(other)))


class GroupNumbers(Formula, Struct, frozen=True, eq=False):
    """A constant, one for each group or one for all."""

    values: np.ndarray


class Cell(Formula, Struct, frozen=True):
    """The number in a cell, or missing."""

    key: Key


class Apply(Formula, Struct, frozen=True, eq=False):
    """An operation on one formula or two, or the largest of several; the argument of "exp" is at most 0."""

    operation: Operation
    parts: tuple[Formula, ...]


class Once(Formula, Struct, frozen=True, eq=False):
    """A formula that is used several times and computed once."""

    of: Formula


class Computed(Formula, Struct, frozen=True):
    """The result of an earlier step by the name of its columns, to which the number of the group is added."""

    name: str


class AllKnown(Formula, Struct, frozen=True, eq=False):
    """0 if all of these codes are known, otherwise missing."""

    codes: tuple[Code, ...]


class Whole(Formula):
    """A formula over many columns that an exporter may compute in its own way, or write out."""

    @cached_property
    def out(self) -> Formula:
        raise NotImplementedError


class Test:
    """A condition on a row, in each group."""


class Missing(Test, Struct, frozen=True):
    """Whether a cell is missing, or if not `wanted`, whether it is there."""

    key: Key
    wanted: bool = True


def there(keys: Sequence[Key]) -> tuple[Missing, ...]:
    return tuple(Missing(key, wanted=False) for key in keys)


class Compare(Test, Struct, frozen=True, eq=False):
    """Whether one formula is below another, or equal to it."""

    sign: Literal["<", "="]
    left: Formula
    right: Formula


class Choose(Formula, Struct, frozen=True, eq=False):
    """One formula if all tests are true, otherwise another."""

    tests: tuple[Test, ...]
    then: Formula
    otherwise: Formula


class Code:
    """A whole number from 0 that is a row of a table."""


class LevelCode(Code, Struct, frozen=True):
    """0 if a cell is missing, else its level counted from 1; `size` + 1 for an unseen level."""

    key: Key
    size: int


class IntervalCode(Code, Struct, frozen=True, eq=False):
    """0 if a number is missing, else 1 plus the number of edges that it is not below."""

    key: Key
    edges: np.ndarray


class WordsCode(Code, Struct, frozen=True):
    """All words of a document: a look-up is the sum over them, each counted `once` or as many `times` as it occurs.

    Or each times the logarithm of one plus its count (`log`), or the square of that. A table of one column is for all
    groups.
    """

    key: Key
    each: Literal["once", "times", "log", "square"]


class CombinedCode(Code, Struct, frozen=True, eq=False):
    """Several codes as one, the last changing fastest; a code of its `size` or more counts as 0."""

    codes: tuple[Code, ...]
    sizes: tuple[int, ...]


def code_key(code: Code) -> Hashable:
    """A key that is equal for equal codes."""
    if isinstance(code, IntervalCode):
        return (code.key, code.edges.tobytes())
    return (*map(code_key, code.codes), code.sizes) if isinstance(code, CombinedCode) else code


class LookUp(Formula, Struct, frozen=True, eq=False):
    """A row of a (codes x groups) table."""

    code: Code
    table: np.ndarray


def formula(value: Any) -> Formula:
    """A formula as it is, or numbers as a formula; minus infinity becomes finite, so that sums stay numbers."""
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
    """The sum, as a tree: engines refuse an expression that is a thousand levels deep."""
    if not parts:
        return formula(0.0)
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return total(parts[:middle]) + total(parts[middle:])


def summands(of: Formula) -> Iterator[Formula]:
    """The terms of a sum; any other formula is its own term."""
    if isinstance(of, Apply) and of.operation == "add":
        for part in of.parts:
            yield from summands(part)
    else:
        yield of


def merge_terms(terms: Sequence[Formula]) -> list[Formula]:
    """The terms of a sum with tables of the same code added up, and constants too."""
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


def walk(of: Formula | Test) -> Iterator[Formula | Test]:
    """A formula and all its parts; parts that are computed once are not entered."""
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
    """The formulas that are computed once: those that need no other, then those that need only these, and so on."""
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
    """log(1 + x) in all digits, also for tiny x (Kahan)."""
    more = of + 1.0
    return Choose((Compare("=", more, formula(1.0)),), of, log(more) * of / (more - 1.0))


def log_sum(parts: Sequence[Formula]) -> Formula:
    top = largest(parts)
    return top + log(total([Apply("exp", (part - top,)) for part in parts]))


def clamp(table: np.ndarray) -> np.ndarray:
    """A table without minus infinity."""
    return np.asarray(np.maximum(table, CLAMPED))


# -- blocks of dependent numbers; missing ones are integrated out

HALF_LOG_2PI = 0.9189385332046727
MOST_PATTERNS = 16
"""Patterns of missing values in a block that are written out."""
MOST_KEPT, MOST_INLINED = 1_000, 200
"""Numbers of a row that elimination of missing values keeps in between: databases have room for 1,664 columns.

Databases that cannot compute a step once take minutes to plan more than a few."""

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
        """The density of rows with missing values; impossible if more than `most` numbers had to be kept in between."""
        if self.kept <= most:
            return _eliminated(self.form, self.keys, self.values)
        return Choose(tuple(map(Missing, self.keys)), formula(0.0), NOWHERE)

    @property
    def kept(self) -> int:
        """Numbers of a row that elimination keeps in between."""
        return len(self.form["mean"]) * len(self.keys) * (len(self.keys) + 3) // 2


def blocks_in(of: Formula) -> list[BlockDensity]:
    """The blocks in a formula, without those of few columns."""
    if isinstance(of, Apply):
        return [one for part in of.parts for one in blocks_in(part)]
    return [of] if isinstance(of, BlockDensity) and not of.few else []


def with_blocks_computed(of: Formula, names: Mapping[int, str]) -> Formula:
    """The formula with its blocks replaced by the results of earlier steps."""
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
    """The density of `present` numbers at a squared distance, for a covariance of determinant one."""
    if "freedom" not in form:
        return formula(-present * HALF_LOG_2PI) - distance * 0.5
    freedom, stretch, tops = student_tops(form, present)
    return formula(tops[present]) - log1p(distance / (freedom * stretch)) * (0.5 * (freedom + present))


def student_tops(form: BlockForm, columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Degrees of freedom, the factor of covariances, and the log-density at the mean of 0, 1, ... columns."""
    freedom: np.ndarray = form["freedom"]
    stretch = form.get("spread", np.ones(len(freedom)))
    present = np.arange(columns + 1)[:, None]
    tops = gammaln((freedom + present) / 2) - gammaln(freedom / 2) - 0.5 * present * np.log(freedom * np.pi * stretch)
    return freedom, stretch, tops


def _eliminated(form: BlockForm, keys: tuple[Key, ...], values: Sequence[Formula]) -> Formula:
    """The density of the observed numbers, by eliminating one column after the other from the covariance.

    A missing number has the variance one, depends on no other and is at its mean, so that it adds nothing.
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
        """The density by the number of observed cells, which is between these."""
        if least == most:
            return _at(form, least, distance) if least else formula(0.0)
        middle = (least + most) // 2
        below = Compare("<", present, formula(middle + 0.5))
        return Choose((below,), between(least, middle), between(middle + 1, most))

    return between(0, len(keys)) - log_det


# -- densities


def normal_density(x: Formula, mean: Any, deviation: Any) -> Formula:
    """The logarithm, without the constant."""
    z = (x - formula(mean)) / formula(deviation)
    return formula(-np.log(deviation)) - z * z * 0.5


def unless_missing(key: Key, of: Formula) -> Formula:
    """A formula that is 0 if a cell is missing."""
    return Choose((Missing(key),), formula(0.0), of)
