"""Kinds of columns: category, count or real number."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcount.core import remedies
from softcount.sources import wording
from softcount.table.schema import Key, Kind

if TYPE_CHECKING:
    from softcount.table.column_facts import Facts

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

# What columns of numbers are, where their owner has said nothing: levels, counts, amounts, identifiers or plain.

IDENTIFIER_ROWS = 10
IDENTIFIER_SHARE = 0.5
"""The share of different values from which on a column with the name of an identifier is left out."""
COUNTABLE = 20.0
"""The mean up to which whole numbers may be counts: of larger ones a normal says as much, and of temperatures too."""
ZEROS = 0.1
"""The share of zeros from which on numbers of 0 or more are amounts, whatever the others are like."""

_ID_NAME = re.compile(
    r"(?i:(?:.*[_. -])?(?:id|uuid|guid|index|idx)|row_?(?:num|number|names?|id)|unnamed: 0)|.*[a-z]I[dD]"
)
_MEASURED_NAME = re.compile(
    r"(?i:(?:.*[_. -])?(?:age|years?|temp(?:erature)?s?|degrees?|scores?|grades?|marks?)(?:[_. -].*)?)"
)


class Verdict(NamedTuple):
    """A column's kind and why; a note where its owner should know."""

    kind: Kind
    why: str
    used: bool = True
    note: str = ""


def decide_numbers(facts: Facts, named: bool, groups: np.ndarray | None = None) -> Verdict:
    """The kind of a column of numbers that vary; only `named` ones may be identifiers. `groups` are rows' classes."""
    return _decide_whole(facts, named, groups) if facts.whole else _decide_real(facts, "numbers with decimals")


def _decide_whole(facts: Facts, named: bool, groups: np.ndarray | None) -> Verdict:
    few = is_few(facts.different, facts.known)
    identifier = named and (
        is_run(facts) or (isinstance(facts.key, str) and _ID_NAME.fullmatch(facts.key.strip()) is not None)
    )
    if identifier and not few:
        return _identifier(facts)
    levels = Verdict(Kind.CATEGORICAL, f"whole numbers, {facts.different} distinct")
    if identifier or not FEWEST <= facts.different <= MOST:
        return levels if few else _as_numbers(facts)
    return _by_rows_left_out(facts, levels if few else None, groups)


def _as_numbers(facts: Facts) -> Verdict:
    if _varies_as_counts(facts.key, facts.values):
        return Verdict(Kind.COUNT, "whole numbers from 0 up, spread like counts")
    return _decide_real(facts, f"whole numbers, {facts.different} distinct")


def _by_rows_left_out(facts: Facts, levels: Verdict | None, groups: np.ndarray | None) -> Verdict:
    """`levels` where a rule of thumb says so, else numbers, unless rows left out are told better by the other.

    Where no classes are known numbers stay numbers: what makes levels of them may be classes to be found. Levels do not
    become amounts, which told digits and Titanic worse than levels did, whatever one column alone had promised.
    """
    assert facts.values is not None
    known = None if groups is None or facts.there is None else groups[: facts.rows][facts.there]
    asked = counted(facts.values, known) if levels is not None or known is not None else None
    if asked is None or (levels is not None and not may_be_numbers(asked[1])):
        return levels or _as_numbers(facts)
    numbers = _as_numbers(facts)
    if levels is not None and numbers.kind in (Kind.AMOUNT, Kind.POSITIVE):
        return levels
    gain = gain_of_levels(*asked, numbers.kind)
    if levels is None and gain.of_levels:
        return Verdict(Kind.CATEGORICAL, f"whole numbers, {facts.different} distinct: told better as levels")
    if levels is not None and gain.of_numbers:
        return numbers._replace(why=f"{numbers.why}: told better as numbers")
    return levels or numbers


def _identifier(facts: Facts) -> Verdict:
    """Left out where most values differ; the levels of something that is numbered where they are met again."""
    name, count, rows = wording.column(facts.key), facts.different, facts.known
    if rows < IDENTIFIER_ROWS or count < IDENTIFIER_SHARE * rows:
        return Verdict(Kind.CATEGORICAL, f"whole numbers under the name of an identifier, {count} distinct")
    keep = remedies.kind(facts.key, "real")
    if count == rows:
        note = f"{name} numbers the rows: left out as an identifier ({keep} to keep it)"
        return Verdict(Kind.IDENTIFIER, "whole numbers, every value different", False, note)
    said = f"{100 * count / rows:.0f} % of its values differ"
    note = f"{name} is named as an identifier, and {said}: left out ({keep} to keep it)"
    return Verdict(Kind.IDENTIFIER, f"whole numbers, {said}", False, note)


def is_few(count: int, rows: int) -> bool:
    """Whether so many distinct whole numbers in so many rows are categories rather than numbers."""
    few = count <= 10 or (count <= 20 and rows >= 20 * count)
    return count <= 2 or (few and rows >= 2 * count)


def is_run(facts: Facts) -> bool:
    """Whether whole numbers, all different, run without a gap."""
    if facts.values is None or not facts.different == facts.known >= IDENTIFIER_ROWS:
        return False
    return float(facts.values.max()) - float(facts.values.min()) == facts.known - 1


def _varies_as_counts(key: Key, values: Any) -> bool:
    measured = isinstance(key, str) and _MEASURED_NAME.fullmatch(key.strip()) is not None
    mean = float(values.mean())
    if measured or values.min() < 0 or mean > COUNTABLE:
        return False
    return 0.5 * mean <= float(values.var()) <= 1.5 * mean


def _decide_real(facts: Facts, why: str) -> Verdict:
    if is_skewed(facts.values):
        return Verdict(Kind.POSITIVE, f"{why}, above zero over several sizes")
    if is_amount(facts.values):
        share = np.count_nonzero(facts.values == 0) / facts.known
        return Verdict(Kind.AMOUNT, f"{why}, {100 * share:.0f} % of them 0 and the others above")
    return Verdict(Kind.REAL, why)


def is_skewed(values: Any) -> bool:
    """Whether numbers are all above zero, span a factor of 100, and are more like a lognormal than like a normal."""
    low, high = float(values.min()), float(values.max())
    if low <= 0 or low >= high / 100:
        return False
    unit = values / high
    logs = np.log(values) - np.log(high)
    return bool(-0.5 * np.log(logs.var()) - logs.mean() > -0.5 * np.log(unit.var()))


def is_amount(values: Any) -> bool:
    """Whether numbers of 0 or more are often 0, or are skewed but for zeros: rain, capital gains, fares."""
    if float(values.min()) != 0.0:
        return False
    above = values[values > 0]
    if len(np.unique(above)) < 2:
        return False
    return len(above) <= (1.0 - ZEROS) * len(values) or is_skewed(above)
