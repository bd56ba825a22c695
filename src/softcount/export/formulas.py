"""Formulas of what a column adds to the score of every group: a few operations that any machine has.

A formula stands for one number in each group. Its leaves are cells of a row, which all groups share, numbers by group,
and tables that are looked up by a code.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np

from softcount.families.setting import CLAMPED
from softcount.records import dataclass
from softcount.table.schema import Key

Operation = Literal["add", "subtract", "multiply", "divide", "log", "exp", "largest"]


class Formula:
    """One number in each group; `a + b` and such make larger ones."""

    def __add__(self, other: Any) -> Formula:
        return Apply("add", (self, formula(other)))

    def __sub__(self, other: Any) -> Formula:
        return Apply("subtract", (self, formula(other)))

    def __mul__(self, other: Any) -> Formula:
        return Apply("multiply", (self, formula(other)))

    def __truediv__(self, other: Any) -> Formula:
        return Apply("divide", (self, formula(other)))


@dataclass(frozen=True, eq=False)
class GroupNumbers(Formula):
    """A number that is known, one for each group or one for all."""

    values: np.ndarray


@dataclass(frozen=True)
class Cell(Formula):
    """A cell that holds a number, or nothing."""

    key: Key


@dataclass(frozen=True, eq=False)
class Apply(Formula):
    """An operation on one formula or two, or the largest of several.

    "exp" is of nothing above 0, and of what is far below it nothing.
    """

    operation: Operation
    parts: tuple[Formula, ...]


@dataclass(frozen=True, eq=False)
class Once(Formula):
    """A formula that others ask for several times, and that is computed once, for every row whatever it holds."""

    of: Formula


@dataclass(frozen=True)
class Computed(Formula):
    """What an earlier step has computed, by what its columns are called; a group's number follows."""

    name: str


@dataclass(frozen=True, eq=False)
class AllKnown(Formula):
    """0, and nothing where one of these codes is not known."""

    codes: tuple[Code, ...]


class Whole(Formula):
    """A formula that a machine may have a way of its own for, over all columns at once; others write it out."""

    @cached_property
    def out(self) -> Formula:
        """The same written out."""
        return self._written_out()

    def _written_out(self) -> Formula:
        raise NotImplementedError


class Test:
    """What is true of a row or not, in each group."""


@dataclass(frozen=True)
class Missing(Test):
    """Whether a cell is missing; where not `wanted`, whether it is there."""

    key: Key
    wanted: bool = True


def there(keys: Sequence[Key]) -> tuple[Missing, ...]:
    """That none of these cells is missing."""
    return tuple(Missing(key, wanted=False) for key in keys)


@dataclass(frozen=True, eq=False)
class Compare(Test):
    """Whether one formula is below another, or equal to it."""

    sign: Literal["<", "="]
    left: Formula
    right: Formula


@dataclass(frozen=True, eq=False)
class Choose(Formula):
    """One formula where all tests are true, and another where one is not."""

    tests: tuple[Test, ...]
    then: Formula
    otherwise: Formula


class Code:
    """A whole number from 0 that a row has: a place in a table."""


@dataclass(frozen=True)
class LevelCode(Code):
    """0 where a cell is missing, then its level counted from 1; `size` levels, and one more for what was never seen."""

    key: Key
    size: int


@dataclass(frozen=True, eq=False)
class IntervalCode(Code):
    """0 where a number is missing, else 1 and one more for every edge that it is not below."""

    key: Key
    edges: np.ndarray


@dataclass(frozen=True)
class WordsCode(Code):
    """All words of a document: what is looked up is the sum over them, of each `once` or so many `times` as it occurs.

    Or times the logarithm of one more than that (`log`), or the square of it. One column of a table is for all groups.
    """

    key: Key
    each: Literal["once", "times", "log", "square"]


@dataclass(frozen=True, eq=False)
class CombinedCode(Code):
    """Codes together, the last turning fastest: of a code of `size` or more the value is 0."""

    codes: tuple[Code, ...]
    sizes: tuple[int, ...]


def code_key(code: Code) -> Hashable:
    """What makes two codes the same."""
    if isinstance(code, IntervalCode):
        return (code.key, code.edges.tobytes())
    return (*map(code_key, code.codes), code.sizes) if isinstance(code, CombinedCode) else code


@dataclass(frozen=True, eq=False)
class LookUp(Formula):
    """A row of a (codes x groups) table."""

    code: Code
    table: np.ndarray


def formula(value: Any) -> Formula:
    """A formula as it is; numbers as one, minus infinity as a number that stays one in sums."""
    if isinstance(value, Formula):
        return value
    return GroupNumbers(np.maximum(np.atleast_1d(np.asarray(value, dtype=np.float64)), CLAMPED))


def log(of: Formula) -> Formula:
    """The logarithm."""
    return Apply("log", (of,))


def largest(parts: Sequence[Formula]) -> Formula:
    """The largest of several."""
    return Apply("largest", tuple(parts)) if len(parts) > 1 else parts[0]


def smallest(one: Formula, other: Any) -> Formula:
    """The smaller of two."""
    return formula(0.0) - largest([formula(0.0) - one, formula(0.0) - other])


def clipped(one: Formula, most: float) -> Formula:
    """A number, bounded by `most` on either side."""
    return smallest(largest([one, formula(-most)]), formula(most))


def total(parts: Sequence[Formula]) -> Formula:
    """The sum, as a tree: engines refuse an expression that is a thousand levels deep.

    >>> depth(total([Cell(str(j)) for j in range(1000)]))
    10
    """
    if not parts:
        return formula(0.0)
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return total(parts[:middle]) + total(parts[middle:])


def summands(of: Formula) -> Iterator[Formula]:
    """What a sum adds up; what is none, by itself."""
    if isinstance(of, Apply) and of.operation == "add":
        for part in of.parts:
            yield from summands(part)
    else:
        yield of


def gathered(terms: Sequence[Formula]) -> list[Formula]:
    """Terms of the same sum, tables of the same code and numbers that are known being one each."""
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
    looked = [LookUp(own[0].code, clamped(np.sum([one.table for one in own], axis=0))) for own in tables.values()]
    return [formula(sum(numbers, np.zeros(1))), *looked, *others]


def walked(of: Formula | Test) -> Iterator[Formula | Test]:
    """A formula and all it is made of; what is computed once by its name alone."""
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
        yield from walked(part)


def stages(terms: Sequence[Formula]) -> list[list[Once]]:
    """What is computed once: those that need no other, then those that need only these, and so on."""
    levels: dict[int, int] = {}
    found: list[list[Once]] = []

    def place(of: Formula) -> int:
        below = (visit(part) for part in walked(of) if isinstance(part, Once))
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


def depth(of: Formula) -> int:
    """How many operations stand in one another."""
    return 1 + max(map(depth, of.parts)) if isinstance(of, Apply) else 0


def log1p(of: Formula) -> Formula:
    """log(1 + x) in all digits also where x is next to nothing (Kahan)."""
    more = of + 1.0
    return Choose((Compare("=", more, formula(1.0)),), of, log(more) * of / (more - 1.0))


def log_sum(parts: Sequence[Formula]) -> Formula:
    """The logarithm of the sum of exponentials."""
    top = largest(parts)
    return top + log(total([Apply("exp", (part - top,)) for part in parts]))


def clamped(table: np.ndarray) -> np.ndarray:
    """A table without minus infinity."""
    return np.asarray(np.maximum(table, CLAMPED))
