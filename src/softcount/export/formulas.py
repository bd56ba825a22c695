"""Formulas of what a column adds to the score of every group: a few operations that any machine has.

A formula stands for one number in each group. Its leaves are cells of a row, which all groups share, numbers by group,
and tables that are looked up by a code.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
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
    """An operation on one formula or two; "exp" is of nothing above 0, and of what is far below it nothing."""

    operation: Operation
    parts: tuple[Formula, ...]


class Test:
    """What is true of a row or not, in each group."""


@dataclass(frozen=True)
class Missing(Test):
    """Whether a cell is missing; where not `wanted`, whether it is there."""

    key: Key
    wanted: bool = True


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


@dataclass(frozen=True, eq=False)
class CombinedCode(Code):
    """Codes together, the last turning fastest: of a code of `size` or more the value is 0."""

    codes: tuple[Code, ...]
    sizes: tuple[int, ...]


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
    return reduce(lambda a, b: Apply("largest", (a, b)), parts)


def smallest(one: Formula, other: Any) -> Formula:
    """The smaller of two."""
    return formula(0.0) - largest([formula(0.0) - one, formula(0.0) - other])


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
