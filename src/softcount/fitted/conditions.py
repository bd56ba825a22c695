"""Conditions on columns: values, ranges and sets, and the probability of each group given them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core import remedies
from softcount.errors import DataError, warn
from softcount.families.base import family_title
from softcount.families.density import Density
from softcount.sources import wording
from softcount.table import Chunk, Table
from softcount.table.cell_forms import CellForm, is_plain, write_cell
from softcount.table.schema import Field, Key, Kind, Schema

if TYPE_CHECKING:
    pass

NUMBERS = (int, float, np.integer, np.floating)
INF = float("inf")


class Piece(Struct, frozen=True):
    """An interval of numbers with open or closed ends; a single number if both ends are equal."""

    low: float
    high: float
    low_in: bool = True
    high_in: bool = True

    def holds(self, values: np.ndarray) -> np.ndarray:
        above = values >= self.low if self.low_in else values > self.low
        return np.asarray(above & (values <= self.high if self.high_in else values < self.high))

    def both(self, other: Piece) -> Piece | None:
        """Return the intersection with another interval, or None if it is empty."""
        low, low_out = max((self.low, not self.low_in), (other.low, not other.low_in))
        high, high_in = min((self.high, self.high_in), (other.high, other.high_in))
        piece = Piece(low, high, not low_out, high_in)
        return piece if low < high or (low == high and piece.low_in and piece.high_in) else None


Convert = Callable[[Any], float]
Pieces = list[Piece]


class Levels(Struct, frozen=True):
    """The categories that conditions refer to, and the name of their column.

    `edges` are the cut points if the categories are bins of a number.
    """

    what: str
    levels: Sequence[Any]
    edges: np.ndarray | None = None

    def place(self, level: Any) -> int:
        for known, wanted in ((list(self.levels), level), (list(map(str, self.levels)), str(level))):
            if wanted in known:
                return known.index(wanted)
        hint = remedies.similar(level, self.levels, f"It has: {wording.and_others(self.levels)}.")
        raise DataError(f"{self.what} has no category {wording.cell(level)}. {hint}")

    def within(self, pieces: Pieces) -> np.ndarray:
        """Mark categories that are numbers inside one of the pieces, and bins that overlap one."""
        if self.edges is not None:
            ends = [-INF, *self.edges.tolist(), INF]
            own = [Piece(low, high, False) for low, high in pairwise(ends)]
            return np.array([any(part.both(piece) for piece in pieces) for part in own])
        if not all(is_number(level) for level in self.levels):
            raise DataError(f"{self.what} has no numbers for levels, so a range means nothing. Name levels.")
        return within(pieces, self.levels)


# A condition gives its allowed numbers as disjoint `pieces` (`convert` turns a user's value into a number), marks the
# categories that it `allows`, and can `map` every value by a change; `turned` states that this reverses their order.


class Range(Struct, frozen=True):
    """A range of values; both ends are included by default, and None leaves an end open."""

    low: Any = None
    high: Any = None
    low_in: bool = True
    high_in: bool = True

    def __repr__(self) -> str:
        low, high = describe_value(self.low), describe_value(self.high)
        if self.low is None:
            return f"{'at most' if self.high_in else 'below'} {high}"
        if self.high is None:
            return f"{'at least' if self.low_in else 'above'} {low}"
        return f"{low} to {high}"

    def pieces(self, convert: Convert) -> Pieces:
        low = -INF if self.low is None else convert(self.low)
        high = INF if self.high is None else convert(self.high)
        if low > high or (low == high and not (self.low_in and self.high_in)):
            raise DataError(f"the range from {describe_value(self.low)} to {describe_value(self.high)} holds nothing.")
        return [Piece(low, high, self.low_in, self.high_in)]

    def allows(self, levels: Levels) -> np.ndarray:
        return levels.within(self.pieces(number_of))

    def map(self, change: Callable[[Any], Any], turned: bool = False) -> Condition:
        low, high = (None if end is None else change(end) for end in (self.low, self.high))
        return Range(high, low, self.high_in, self.low_in) if turned else replace(self, low=low, high=high)


class AnyOf(Struct, frozen=True):
    values: tuple[Any, ...]

    def __repr__(self) -> str:
        return " or ".join(map(describe_value, self.values))

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

    def map(self, change: Callable[[Any], Any], turned: bool = False) -> Condition:
        return AnyOf(tuple(x.map(change, turned) if isinstance(x, Condition) else change(x) for x in self.values))


class Not(Struct, frozen=True):
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

    def map(self, change: Callable[[Any], Any], turned: bool = False) -> Condition:
        return Not(self.condition.map(change, turned))


Condition = Range | AnyOf | Not
"""A condition on a column, made by `between`, `above`, `below`, `any_of` or `not_`."""


def _outside(pieces: Pieces, others: Pieces) -> Pieces:
    """Return the parts of `pieces` that lie outside all of `others`."""
    for other in others:
        sides = Piece(-INF, other.low, True, not other.low_in), Piece(other.high, INF, not other.high_in)
        pieces = [part for own in pieces for side in sides if (part := own.both(side))]
    return pieces


def _pieces(value: Any, convert: Convert) -> Pieces:
    if isinstance(value, Condition):
        return value.pieces(convert)
    number = convert(value)
    return [Piece(number, number)]


# -- notation


def between(low: Any = None, high: Any = None) -> Condition:
    """Allow values from low to high, both included.

    Parameters
    ----------
    low : number or str, default=None
        Least value. None leaves this end open.
    high : number or str, default=None
        Greatest value. None leaves this end open.

    Returns
    -------
    Condition
        A condition for `given` in `query`, `sample` and `explain`.

    See Also
    --------
    above : Values greater than an end.
    below : Values less than an end.

    Examples
    --------
    >>> between(100, 200), between(low=5), between(high=5)
    (100 to 200, at least 5, at most 5)
    """
    if low is None and high is None:
        raise DataError("between needs at least one end: between(100, 200), between(low=100) or between(high=200).")
    return Range(low, high)


def above(low: Any) -> Condition:
    """Allow values greater than `low`.

    Parameters
    ----------
    low : number or str
        The end, which is excluded. A text is read like a cell of the column, such as a date.

    Returns
    -------
    Condition
        A condition for `given`.

    See Also
    --------
    between : Values of a range, with both ends.
    below : Values less than an end.

    Examples
    --------
    >>> above(5)
    above 5
    """
    return Range(low=low, low_in=False)


def below(high: Any) -> Condition:
    """Allow values less than `high`.

    Parameters
    ----------
    high : number or str
        The end, which is excluded. A text is read like a cell of the column, such as a date.

    Returns
    -------
    Condition
        A condition for `given`.

    See Also
    --------
    between : Values of a range, with both ends.
    above : Values greater than an end.

    Examples
    --------
    >>> below(5)
    below 5
    """
    return Range(high=high, high_in=False)


def any_of(*values: Any) -> Condition:
    """Allow any of several values, or any value that one of several conditions allows.

    Parameters
    ----------
    *values : value or Condition
        Categories, numbers or conditions.

    Returns
    -------
    Condition
        A condition for `given`.

    See Also
    --------
    not_ : Everything except some values.

    Examples
    --------
    >>> any_of("disc", "rim"), any_of(0, above(100))
    (disc or rim, 0 or above 100)
    """
    if not values:
        raise DataError("any_of needs at least one possible value: any_of('disc', 'rim').")
    return AnyOf(values)


def not_(*values: Any) -> Condition:
    """Exclude these values, and the values that these conditions allow.

    Parameters
    ----------
    *values : value or Condition
        Categories, numbers or conditions.

    Returns
    -------
    Condition
        A condition for `given`.

    See Also
    --------
    any_of : Some of several values.

    Examples
    --------
    >>> not_("disc"), not_("disc", "rim")
    (not disc, not (disc or rim))
    """
    return Not(values[0] if len(values) == 1 and isinstance(values[0], Condition) else any_of(*values))


def condition_of(value: Any) -> Condition | None:
    """Return the condition given for a column, or None if it is a single value.

    A tuple of two numbers is a range; other tuples, lists and sets are sets of values.
    """
    if isinstance(value, Condition):
        return value
    if isinstance(value, tuple) and len(value) == 2 and all(end is None or is_number(end) for end in value):
        return between(*value)
    if isinstance(value, (list, tuple, set, frozenset)) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return AnyOf(tuple(value))
    return None


def is_number(value: Any) -> bool:
    return isinstance(value, NUMBERS) and not isinstance(value, bool)


def number_of(value: Any) -> float:
    if not is_number(value) or value != value:
        raise DataError(f"the ends of a range must be numbers, not {wording.cell(value)}.")
    return float(value)


def describe_value(value: Any) -> str:
    return repr(value) if isinstance(value, Condition) else f"{value:,.10g}" if is_number(value) else str(value)


def describe_given(given: Mapping[Key, Any]) -> dict[Key, str]:
    """Return given values in words that follow the column's name.

    >>> describe_given({"town": ["small", "middle"], "age": (20.0, 30.0), "sex": "f", "wet": {"yes": 0.8}})
    {'town': 'small or middle', 'age': '20 to 30', 'sex': '= f', 'wet': 'yes (likelihood 0.8)'}
    """
    found = {}
    for key, value in given.items():
        condition = condition_of(value)
        if isinstance(value, Mapping):
            found[key] = " or ".join(f"{level} (likelihood {weight:g})" for level, weight in value.items())
        else:
            found[key] = f"= {value}" if condition is None else repr(condition)
    return found


def write_given(given: Mapping[Key, Any], forms: Mapping[Key, CellForm | None]) -> dict[Key, Any]:
    """Write given numbers like the column's cells, for example as dates instead of seconds."""
    found = dict(given)
    for key, value in given.items():
        form, condition = forms.get(key), condition_of(value)
        if not is_plain(form) and not isinstance(value, Mapping):
            found[key] = write_cell(form, value) if condition is None else condition.map(partial(write_cell, form))
    return found


def encode_condition(value: Any) -> Any:
    """Return what is given of a column as lists and mappings, ready for JSON.

    >>> [encode_condition(value) for value in ((20, 30), not_("small", "middle"), "f", above(5))]
    [{'from': 20, 'to': 30}, {'not': ['small', 'middle']}, 'f', {'above': 5}]
    """
    condition = condition_of(value)
    if isinstance(condition, Range):
        names = "from" if condition.low_in else "above", "to" if condition.high_in else "below"
        ends = zip(names, (condition.low, condition.high), strict=True)
        return {name: end for name, end in ends if end is not None}
    if isinstance(condition, AnyOf):
        return [encode_condition(part) for part in condition.values]
    return {"not": encode_condition(condition.condition)} if isinstance(condition, Not) else value


def within(pieces: Pieces, values: Any) -> np.ndarray:
    """Mark the numbers that lie in one of the pieces."""
    numbers = np.asarray(values, dtype=float)
    return np.asarray(reduce(np.logical_or, [piece.holds(numbers) for piece in pieces], np.zeros(len(numbers), bool)))


# -- likelihood of groups


def share_within(density: Density, pieces: Iterable[Piece]) -> np.ndarray:
    """Return the probability, in every group, of a number in one of the disjoint pieces.

    Pieces in the upper half subtract survival functions and the others subtract distribution functions, so no digits
    are lost.
    """
    parts = [_share_of(density, piece) for piece in pieces]
    return np.asarray(sum(parts[1:], parts[0])) if parts else np.zeros(1)


def _share_of(density: Density, piece: Piece) -> np.ndarray:
    if piece.low == piece.high:
        return density.mass_at(piece.low)
    # P(low < x <= high): low is the largest number below the piece, high the largest in it.
    if density.family.facts.kind.whole:
        low = float(np.ceil(piece.low) - 1.0 if piece.low_in else np.floor(piece.low))
        high = float(np.floor(piece.high) if piece.high_in else np.ceil(piece.high) - 1.0)
    else:
        low = float(np.nextafter(piece.low, -INF)) if piece.low_in else piece.low
        high = piece.high if piece.high_in else float(np.nextafter(piece.high, -INF))
    if low == -INF or high == INF:
        if low == -high:
            return np.ones(density.groups)
        return density.cdf(high) if low == -INF else density.cdf(low, above=True)
    below = density.cdf(low)
    up = density.cdf(low, above=True) - density.cdf(high, above=True)
    return np.asarray(np.maximum(np.where(below > 0.5, up, density.cdf(high) - below), 0.0))


def evidence_within(key: Key, density: Density, pieces: Pieces) -> np.ndarray:
    """Return the probability of the pieces in every group.

    If all pieces are single numbers with probability zero, it is the sum of their densities.
    """
    if not density.has_cdf:
        raise DataError(
            f"column {key!r} is {family_title(density.family)}, for which the probability of a range has no exact "
            f"formula. Give a value."
        )
    found = share_within(density, pieces)
    points = np.array([piece.low for piece in pieces if piece.low == piece.high])
    if found.any() or len(points) < len(pieces):
        return found
    return np.asarray(np.exp(density.log_pdf(points)).sum(axis=0))


# Checks of given cells: refuse several values, warn about unknown ones.

LARGEST_WHOLE = 2**53
"""Integers up to this size are exact as floats."""
BRACKETS, QUOTES, BETWEEN = "[](){} ", "'\" ", re.compile(r"[,;|]")
"""Characters around a list of categories written as text and around each item, and the separators between items."""


def refuse_several(schema: Schema, given: Mapping[Key, Any]) -> None:
    """Raise if a column is given several values, also if they are written in one string."""
    for key, value in given.items():
        several = isinstance(value, (Condition, Mapping)) or condition_of(value) is not None or np.ndim(value) > 0
        if not several and schema[key].kind.coded:  # a string that is not a category itself but names at least two
            known, text = {str(level) for level in schema[key].levels}, str(value)
            parts = [part.strip(QUOTES) for part in BETWEEN.split(text.strip(BRACKETS))]
            several = text not in known and sum(part in known for part in parts) > 1
        if several:
            raise DataError(
                f"{wording.column(key)} is given {wording.cell(value)}, which is several values. A row holds one; of "
                f"several that are possible: {remedies.either('any_of(...)', 'COL=A|B')}"
            )


def plain_row(schema: Schema, given: Mapping[Key, Any]) -> Chunk | None:
    """Return one row of the given values if all are known categories and plain numbers of the right kind.

    None means that the values must be read as a table, which takes 0.06 s the first time to load Arrow.
    """
    if schema.texts:
        return None
    stores = {name: len(schema.stored(name)) for name in ("reals", "codes", "wide")}
    reals = np.full((1, stores["reals"]), np.nan)
    codes, wide = np.zeros((1, stores["codes"]), np.uint8), np.zeros((1, stores["wide"]), np.int32)
    arrays: dict[str, np.ndarray] = {"reals": reals, "codes": codes, "wide": wide}
    for key, value in given.items():
        cell = None if value is None else _plain_cell(schema[key], value)
        if cell is None and value is not None:
            return None
        if cell is not None:
            store, slot = schema.places[key]
            arrays[store][0, slot] = cell
    return Chunk(0, 1, reals, codes, wide)


def _plain_cell(spec: Field, value: Any) -> float | None:
    """Return the number or the code of a cell; None if it must be read as a table."""
    if type(value) not in (str, int, float):
        return None
    if spec.kind.coded:
        places = [place for place, level in enumerate(spec.levels, start=1) if level == value]
        return places[0] if places and type(spec.levels[places[0] - 1]) is type(value) else None
    if isinstance(value, str) or not is_plain(spec.written) or not abs(value) <= LARGEST_WHOLE:
        return None
    fine = {Kind.REAL: True, Kind.POSITIVE: value > 0, Kind.COUNT: value >= 0 and float(value).is_integer()}
    return float(value) if fine.get(spec.kind, False) else None


def warn_of_given(table: Table, given: Mapping[Key, Any]) -> None:
    """Warn about values that were not seen in training or do not fit the column."""
    for key, value in given.items():
        spec = table.schema[key]
        if spec.kind.coded and table.unseen[key]:
            held = f"It held {wording.and_others(spec.levels)}."
            hint = remedies.similar(value, spec.levels, held, any_case=True)
            warn(f"{wording.column(key)} never held {wording.cell(value)} in training. {hint}")
        if key in table.outside:
            warn(f"{wording.column(key)} is {spec.kind} ({spec.why}), so {wording.cell(value)} is not evidence.")


def impossible(what: str = "model") -> DataError:
    return DataError(f"what is given has probability zero under this {what}, so there is no answer.")


def refuse_words(model: Any, given: Mapping[Key, Any]) -> None:
    """Raise an error if a given value of a numeric column is not a number; missing values are allowed."""
    for key, value in given.items():
        if value is not None and model.schema.places[key].store == "reals":
            number_reader(model, key)(value)


def number_reader(model: Any, key: Key) -> Callable[[Any], float]:
    """Return a function that reads an end of a range like a cell of the column."""

    def read(value: Any) -> float:
        if is_number(value):
            return float(value)
        found = float("nan")
        with suppress(DataError):
            table = model.table({spec.key: [value if spec.key == key else None] for spec in model.schema.used})
            store, slot = model.schema.places[key]
            found = float(getattr(next(task() for task in table.tasks()), store)[0, slot])
        if found != found:
            message = f"{wording.column(key)} holds numbers, and {wording.cell(value)} is not a number."
            raise DataError(message) from None
        return found

    return read
