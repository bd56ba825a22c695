"""What may be known of a column short of its value: a range, one of several values, anything but some.

>>> not_(between(100, 200))
not (100 to 200)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.families import Family, Params, Setting
from softcount.records import dataclass
from softcount.sources import wording
from softcount.table.cell_forms import CellForm, as_cell, is_plain
from softcount.table.schema import Key

NUMBERS = (int, float, np.integer, np.floating)
INF = float("inf")


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the line of numbers, with or without its ends; where they are one number, that number."""

    low: float
    high: float
    low_in: bool = True
    high_in: bool = True

    def holds(self, values: np.ndarray) -> np.ndarray:
        """Which of the numbers lie in it."""
        above = values >= self.low if self.low_in else values > self.low
        return np.asarray(above & (values <= self.high if self.high_in else values < self.high))

    def both(self, other: Piece) -> Piece | None:
        """What it has in common with another."""
        low, low_out = max((self.low, not self.low_in), (other.low, not other.low_in))
        high, high_in = min((self.high, self.high_in), (other.high, other.high_in))
        piece = Piece(low, high, not low_out, high_in)
        return piece if low < high or (low == high and piece.low_in and piece.high_in) else None


Convert = Callable[[Any], float]
Pieces = list[Piece]


class Condition:
    """What is known of a column; made by `between`, `above`, `below`, `any_of` and `not_`."""

    def pieces(self, convert: Convert) -> Pieces:
        """The numbers it allows, as pieces of the line; `convert` makes a number of what a user writes."""
        raise NotImplementedError

    def allows(self, levels: Levels) -> np.ndarray:
        """Which of the levels it allows."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Levels:
    """Levels of which conditions speak, and of what they are; cut numbers have intervals, which begin above `edges`."""

    what: str
    levels: Sequence[Any]
    edges: np.ndarray | None = None

    def place(self, level: Any) -> int:
        """Where a level stands; what is none is refused."""
        for known, wanted in ((list(self.levels), level), (list(map(str, self.levels)), str(level))):
            if wanted in known:
                return known.index(wanted)
        near = get_close_matches(str(level), list(map(str, self.levels)), n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"It has: {wording.and_others(self.levels)}."
        raise DataError(f"{self.what} has no level {wording.cell(level)}. {hint}")

    def within(self, pieces: Pieces) -> np.ndarray:
        """Levels that are numbers in one of the pieces, and intervals that reach into one."""
        if self.edges is not None:
            ends = [-INF, *self.edges.tolist(), INF]
            own = [Piece(low, high, False) for low, high in pairwise(ends)]
            return np.array([any(part.both(piece) for piece in pieces) for part in own])
        if not all(is_number(level) for level in self.levels):
            raise DataError(f"{self.what} has no numbers for levels, so a range means nothing. Name levels.")
        return within(pieces, self.levels)


@dataclass(frozen=True, slots=True, repr=False)
class Range(Condition):
    """From one end to the other; the ends are in it unless said otherwise, and None is no end."""

    low: Any = None
    high: Any = None
    low_in: bool = True
    high_in: bool = True

    def __repr__(self) -> str:
        low, high = spoken(self.low), spoken(self.high)
        if self.low is None:
            return f"{'at most' if self.high_in else 'below'} {high}"
        if self.high is None:
            return f"{'at least' if self.low_in else 'above'} {low}"
        return f"{low} to {high}"

    def pieces(self, convert: Convert) -> Pieces:
        low = -INF if self.low is None else convert(self.low)
        high = INF if self.high is None else convert(self.high)
        if low > high or (low == high and not (self.low_in and self.high_in)):
            raise DataError(f"the range from {spoken(self.low)} to {spoken(self.high)} holds nothing.")
        return [Piece(low, high, self.low_in, self.high_in)]

    def allows(self, levels: Levels) -> np.ndarray:
        return levels.within(self.pieces(number_of))


@dataclass(frozen=True, slots=True, repr=False)
class AnyOf(Condition):
    """One of several values or conditions."""

    values: tuple[Any, ...]

    def __repr__(self) -> str:
        return " or ".join(map(spoken, self.values))

    def pieces(self, convert: Convert) -> Pieces:
        found: Pieces = []
        for value in self.values:
            found += _outside(_pieces(value, convert), found)
        return found

    def allows(self, levels: Levels) -> np.ndarray:
        found = np.zeros(len(levels.levels), dtype=bool)
        for value in self.values:
            if isinstance(value, Condition):
                found |= value.allows(levels)
            elif levels.edges is not None and is_number(value):
                found |= levels.within(_pieces(value, number_of))
            else:
                found[levels.place(value)] = True
        return found


@dataclass(frozen=True, slots=True, repr=False)
class Not(Condition):
    """Anything but what a condition allows."""

    condition: Condition

    def __repr__(self) -> str:
        plain = isinstance(self.condition, AnyOf) and len(self.condition.values) == 1
        return f"not {self.condition!r}" if plain else f"not ({self.condition!r})"

    def pieces(self, convert: Convert) -> Pieces:
        return _outside([Piece(-INF, INF)], self.condition.pieces(convert))

    def allows(self, levels: Levels) -> np.ndarray:
        if levels.edges is not None:
            return levels.within(self.pieces(number_of))
        return ~self.condition.allows(levels)


def _outside(pieces: Pieces, others: Pieces) -> Pieces:
    """What of some pieces lies outside of others."""
    for other in others:
        sides = Piece(-INF, other.low, True, not other.low_in), Piece(other.high, INF, not other.high_in)
        pieces = [part for own in pieces for side in sides if (part := own.both(side))]
    return pieces


def _pieces(value: Any, convert: Convert) -> Pieces:
    if isinstance(value, Condition):
        return value.pieces(convert)
    number = convert(value)
    return [Piece(number, number)]


# -- how they are said


def between(low: Any = None, high: Any = None) -> Condition:
    """A value from low to high, both of them included; None is no end.

    >>> between(100, 200), between(low=5), between(high=5)
    (100 to 200, at least 5, at most 5)
    """
    if low is None and high is None:
        raise DataError("between has an end at least: between(100, 200), between(low=100) or between(high=200).")
    return Range(low, high)


def above(low: Any) -> Condition:
    """A value above low."""
    return Range(low=low, low_in=False)


def below(high: Any) -> Condition:
    """A value below high."""
    return Range(high=high, high_in=False)


def any_of(*values: Any) -> Condition:
    """One of several values, or whatever one of several conditions allows.

    >>> any_of("disc", "rim"), any_of(0, above(100))
    (disc or rim, 0 or above 100)
    """
    if not values:
        raise DataError("any_of names the values that are possible: any_of('disc', 'rim').")
    return AnyOf(values)


def not_(*values: Any) -> Condition:
    """Anything but these values, or what these conditions allow.

    >>> not_("disc"), not_("disc", "rim")
    (not disc, not (disc or rim))
    """
    return Not(values[0] if len(values) == 1 and isinstance(values[0], Condition) else any_of(*values))


def condition_of(value: Any) -> Condition | None:
    """What is given of a column, where it is no single value: two numbers in a tuple are a range, others a set."""
    if isinstance(value, Condition):
        return value
    if isinstance(value, tuple) and len(value) == 2 and all(end is None or is_number(end) for end in value):
        return between(*value)
    if isinstance(value, (list, tuple, set, frozenset)) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return AnyOf(tuple(value))
    return None


def is_number(value: Any) -> bool:
    """Whether a value is a number."""
    return isinstance(value, NUMBERS) and not isinstance(value, bool)


def number_of(value: Any) -> float:
    """An end of a range of numbers."""
    if not is_number(value) or value != value:
        raise DataError(f"a range has numbers for ends, not {wording.cell(value)}.")
    return float(value)


def spoken(value: Any) -> str:
    """A value or a condition as a person says it."""
    return repr(value) if isinstance(value, Condition) else f"{value:,.10g}" if is_number(value) else str(value)


def spoken_given(given: Mapping[Key, Any]) -> dict[Key, str]:
    """What is given of each column, in words that follow its name.

    >>> spoken_given({"town": ["small", "middle"], "age": (20.0, 30.0), "sex": "f", "wet": {"yes": 0.8}})
    {'town': 'small or middle', 'age': '20 to 30', 'sex': '= f', 'wet': 'yes (likelihood 0.8)'}
    """
    return {key: _said(value) for key, value in given.items()}


def _said(value: Any) -> str:
    if isinstance(value, Mapping):
        return " or ".join(f"{level} (likelihood {weight:g})" for level, weight in value.items())
    condition = condition_of(value)
    return f"= {value}" if condition is None else repr(condition)


def written_given(given: Mapping[Key, Any], forms: Mapping[Key, CellForm | None]) -> dict[Key, Any]:
    """What is given with the numbers of each column as its cells are written: dates, not seconds."""
    return {key: _written(value, forms.get(key)) for key, value in given.items()}


def _written(value: Any, form: CellForm | None) -> Any:
    if is_plain(form) or isinstance(value, Mapping):
        return value
    condition = condition_of(value)
    if isinstance(condition, Range):
        return replace(condition, low=_written(condition.low, form), high=_written(condition.high, form))
    if isinstance(condition, AnyOf):
        return replace(condition, values=tuple(_written(part, form) for part in condition.values))
    if isinstance(condition, Not):
        return replace(condition, condition=_written(condition.condition, form))
    return as_cell(form, value)


def given_data(given: Mapping[Key, Any]) -> dict[Key, Any]:
    """What is given of each column, as lists and mappings.

    >>> given_data({"age": (20, 30), "town": not_("small", "middle"), "sex": "f", "pay": above(5)})
    {'age': {'from': 20, 'to': 30}, 'town': {'not': ['small', 'middle']}, 'sex': 'f', 'pay': {'above': 5}}
    """
    return {key: _data(value) for key, value in given.items()}


def _data(value: Any) -> Any:
    condition = condition_of(value)
    if isinstance(condition, Range):
        names = "from" if condition.low_in else "above", "to" if condition.high_in else "below"
        ends = zip(names, (condition.low, condition.high), strict=True)
        return {name: end for name, end in ends if end is not None}
    if isinstance(condition, AnyOf):
        return [_data(part) for part in condition.values]
    return {"not": _data(condition.condition)} if isinstance(condition, Not) else value


def within(pieces: Pieces, values: Any) -> np.ndarray:
    """Which of the numbers lie in one of the pieces."""
    numbers = np.asarray(values, dtype=float)
    return np.asarray(reduce(np.logical_or, [piece.holds(numbers) for piece in pieces], np.zeros(len(numbers), bool)))


# -- what they say of groups


def share_within(family: Family, params: Params, pieces: Iterable[Piece]) -> np.ndarray:
    """The probability, in every group, of a number in one of the pieces, which do not overlap.

    Of pieces high up what lies above their ends is subtracted, of others what lies below: no digit is lost.
    """
    parts = [_share_of(family, params, piece) for piece in pieces]
    return np.asarray(sum(parts[1:], parts[0])) if parts else np.zeros(1)


def _share_of(family: Family, params: Params, piece: Piece) -> np.ndarray:
    if piece.low == piece.high:
        return family.mass_at(params, piece.low)
    low, high = _reach(family, piece)
    if low == -INF or high == INF:
        whole = np.ones(len(next(iter(params.values()))))
        return whole if low == -high else family.cdf(params, high) if low == -INF else family.survival(params, low)
    below = family.cdf(params, low)
    up = family.survival(params, low) - family.survival(params, high)
    return np.asarray(np.maximum(np.where(below > 0.5, up, family.cdf(params, high) - below), 0.0))


def _reach(family: Family, piece: Piece) -> tuple[float, float]:
    """The largest number below a piece, and the largest in it."""
    if family.whole_numbers:
        low = np.ceil(piece.low) - 1.0 if piece.low_in else np.floor(piece.low)
        return float(low), float(np.floor(piece.high) if piece.high_in else np.ceil(piece.high) - 1.0)
    low = np.nextafter(piece.low, -INF) if piece.low_in else piece.low
    return float(low), float(piece.high if piece.high_in else np.nextafter(piece.high, -INF))


def evidence_within(key: Key, family: Family, params: Params, pieces: Pieces) -> np.ndarray:
    """What pieces say of every group: their probability or, of single numbers that have none, their densities' sum."""
    if not family.has_cdf:
        raise DataError(f"column {key!r} is {family.title}, of which ranges have no exact probability. Give a value.")
    found = share_within(family, params, pieces)
    points = np.array([piece.low for piece in pieces if piece.low == piece.high])
    if found.any() or len(points) < len(pieces):
        return found
    return np.asarray(np.exp(density_logs(family, params, points)).sum(axis=0))


def density_logs(family: Family, params: Params, values: np.ndarray) -> np.ndarray:
    """(values x groups) log-density of numbers in every group."""
    scored = family.score(values, params, Setting()) + np.atleast_1d(family.base(values))[:, None]
    return np.asarray(scored)
