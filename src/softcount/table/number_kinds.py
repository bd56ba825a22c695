"""What columns of numbers are, where their owner has said nothing: levels, counts, amounts, identifiers or plain."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcount import remedies
from softcount.sources import wording
from softcount.table.levels_or_numbers import FEWEST, MOST, counted, gain_of_levels, may_be_numbers
from softcount.table.schema import Key, Kind

if TYPE_CHECKING:
    from softcount.table.column_facts import Facts

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
    identifier = named and (is_run(facts) or has_identifier_name(facts.key))
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


def has_identifier_name(key: Key) -> bool:
    """Whether a column is called as identifiers are."""
    return isinstance(key, str) and _ID_NAME.fullmatch(key.strip()) is not None


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
