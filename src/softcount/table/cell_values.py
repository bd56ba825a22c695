"""Raw cells of a column to numbers or distinct values, missing words, and values back to cells of the same type.

In a column of numbers, a few cells with words without a digit mean missing, and a note lists them. Cells with a digit,
such as 80+ or <5, may carry information: they raise an error with a remedy, unless they are rare (`MOST_STRAY`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core import remedies
from softcount.core.lazy import arrow_compute, pa
from softcount.errors import DataError
from softcount.sources import frames, wording
from softcount.sources.frames import (
    PADDED,
    CellType,
    arrow_of,
    call,
    cell_type,
    filled,
    flat,
    number_of,
    numpy_of,
    text_of,
)
from softcount.table.cell_forms import CellForm, is_plain, seconds_of
from softcount.table.schema import DASHES, MISSING, Key, asked_words

FEW_ROWS = 10
"""Cells below which odd cells are not judged."""

MOST_ODD = 0.2
"""Share of odd cells up to which they may mean missing."""

MARKED = 3
"""Cells with the same number below 0, and no others below 0, that are taken for a mark of missing."""
MOST_STRAY = 0.01
"""Share of odd cells, whatever their spelling, up to which a column stays numeric."""

FEW_WORDS = 5
"""Most distinct words that may mean missing in one column."""

SHORT = 8
"""Most characters of a dash together with the blanks around it."""

TAKEN = ": taken as missing"

_digit = re.compile(r"\d")
_padded = re.compile(PADDED[1:-1])
_nines = re.compile(r"-9{1,6}|9{2,6}")
_infinite = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)


class OddCells(NamedTuple):
    """Distinct cells that are not numbers, most frequent first, with their counts, and the number of numeric cells."""

    words: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    numbers: int = 0

    @classmethod
    def of(cls, texts: Sequence[Any], places: np.ndarray, bad: np.ndarray) -> OddCells:
        """Collect the distinct values that are `bad`; `places` has the index of the value of every row."""
        counts = np.bincount(places + 1, minlength=len(texts) + 1)[1:]
        spelt: dict[str, int] = {}
        for place in np.flatnonzero(bad).tolist():
            word = texts[place].strip()
            spelt[word] = spelt.get(word, 0) + int(counts[place])
        words = sorted(spelt, key=spelt.__getitem__, reverse=True)
        known = np.array([value is not None for value in texts], dtype=bool)
        return cls(tuple(words), tuple(map(spelt.__getitem__, words)), int(counts[known & ~bad].sum()))

    def describe(self) -> str:
        """Return, for example, `55 of 60 cells are numbers; the others are 'n/a' (5)`."""
        shown = [f"{wording.cell(word)} ({n:,})" for word, n in zip(self.words, self.counts, strict=True)][:FEW_WORDS]
        more = len(self.words) - len(shown)
        others = ", ".join(shown) + (f" and {more:,} more" if more else "")
        return f"{self.numbers:,} of {self.numbers + sum(self.counts):,} cells are numbers; the others are {others}"

    def remedy(self, key: Key) -> str:
        words = [word for word in self.words if not _digit.search(word)][:FEW_WORDS]
        missing = f"If they mean missing: {remedies.missing(*words or self.words[:FEW_WORDS])}; "
        number = (
            "" if len(words) == len(self.words[:FEW_WORDS]) else "if they are numbers, write them as the others are; "
        )
        return f"{missing}{number}if they are categories: {remedies.kind(key, 'categorical')}"

    def judge(self, key: Key, few_levels: bool) -> tuple[bool, str]:
        """Return whether the cells mean missing, and a note; if they do not, all cells of the column are text.

        It is an error if nearly all cells are numbers and others contain digits.
        """
        odd, name = sum(self.counts), wording.column(key)
        cells = self.numbers + odd
        if cells < FEW_ROWS or few_levels or any(map(_padded.fullmatch, self.words)):
            return False, ""
        stray = odd <= MOST_STRAY * cells
        few = len(self.words) <= FEW_WORDS and max(map(len, self.words)) <= wording.LONGEST
        if not stray and (not few or odd > MOST_ODD * cells):
            enough = 2 * self.numbers >= cells
            return False, f"{name} is read as words: {self.describe()}. {self.remedy(key)}" if enough else ""
        if any(map(_infinite.fullmatch, self.words)):
            raise DataError(f"{name}: {self.describe()}. Infinite values cannot be counted. {self.remedy(key)}")
        if not stray and any(map(_digit.search, self.words)):
            raise DataError(f"{name}: {self.describe()}. {self.remedy(key)}")
        kept = remedies.kind(key, "categorical")
        return True, f"{name}: {self.describe()}{TAKEN} ({kept} keeps them as categories)"


def find_dashes(texts: Sequence[Any]) -> tuple[str, ...]:
    """Return the dashes of a column, which mean missing; empty if + is a cell too, because - is then a sign."""
    short = {text.strip() for text in texts if text is not None and len(text) <= SHORT}
    found = tuple(dash for dash in DASHES if dash in short)
    if not found or "+" in short or all(text is None or text.strip() in DASHES for text in texts):
        return ()
    return found


def missing_notes(notes: Sequence[str]) -> list[str]:
    return [note for note in notes if TAKEN in note]


def note_of_marks(key: Key, values: np.ndarray | None) -> str:
    """Return a note on numbers such as -999 that lie farther from the rest than the rest is wide; empty without any.

    A whole number below 0 that is repeated among numbers of 0 and more, such as -200, is noted too.
    """
    if values is None or len(values) < FEW_ROWS:
        return ""
    ends = {float(values.min()), float(values.max())}
    marks = [end for end in sorted(ends) if _nines.fullmatch(f"{end:.17g}")]
    least = values.min()
    if not marks and least < 0 and least == round(least) and np.count_nonzero(values < 0) >= MARKED:
        marks = [float(least)] if (values[values < 0] == least).all() else []
    if not marks:
        return ""
    rest = values[~np.isin(values, marks)]
    if not len(rest):
        return ""
    low, high = float(rest.min()), float(rest.max())
    far = [mark for mark in marks if max(low - mark, mark - high) > max(high - low, 1.0)]
    if not far:
        return ""
    found = " and ".join(f"{mark:.17g} in {int((values == mark).sum()):,} cells" for mark in far)
    options = remedies.missing(*(f"{mark:.17g}" for mark in far))
    rest_is = f"far from the rest ({low:g} to {high:g})"
    return f"{wording.column(key)} holds {found}, {rest_is}. If that means missing: {options}"


# -- one Arrow column: its numbers, or its distinct values and the place of each row's value


class MissingWords(Struct, frozen=True):
    """Which cells count as missing; `trim`: blanks around text are not part of the cell, as in text files.

    `usual`: the user did not replace the default words, so that other number forms and odd cells are detected.
    `dashes`: a dash may mean missing, as in text files.
    """

    missing: frozenset[str] = frozenset(MISSING)
    numbers: tuple[float, ...] = ()
    trim: bool = False
    usual: bool = True
    dashes: bool = True

    @classmethod
    def of(cls, missing: tuple[str, ...], trim: bool = False, nulls: bool = False) -> MissingWords:
        """Return the words of a text file (`trim`) or another table.

        With real `nulls`, only words named by the user.
        """
        named = asked_words(missing)
        only_named = nulls and named != missing
        words = frozenset(map(str.strip, named if only_named else ("", *map(str, missing))))
        numbers = frames.number_words(tuple(map(str.strip, named))) if named else ()
        return cls(words, numbers, trim and not nulls, only_named or words.issuperset(MISSING), not only_named)

    def among(self, more: tuple[str, ...]) -> MissingWords:
        return replace(self, missing=self.missing.union(more)) if more else self

    @property
    def among_numbers(self) -> MissingWords:
        """The words for a column of numbers, where an empty cell and a dash can only mean missing."""
        return self.among(("", *DASHES) if self.dashes else ("",)) if self.usual else self


def distinct(column: Any, words: MissingWords) -> tuple[list[Any], np.ndarray]:
    """Return the distinct values of a column, None if missing, and the place of each row's value (-1 for null)."""
    column = flat(column)
    if cell_type(column.type) is CellType.EMPTY:
        return [], np.full(len(column), -1, dtype=np.int32)
    if pa.types.is_boolean(column.type):
        places, known = numpy_of(column)
        places, values = places.astype(np.int32), arrow_of(np.array([False, True]))
    else:
        column = column if pa.types.is_dictionary(column.type) else call("dictionary_encode", column)
        (places, known), values = numpy_of(column.indices), column.dictionary
    places = places if known is None else np.where(known, places, np.int32(-1))
    # Slices of a column share its dictionary: drop the entries that no row uses.
    seen = np.bincount(places + 1, minlength=len(values) + 1)[1:] > 0
    if not seen.all():
        values = values.take(arrow_of(np.flatnonzero(seen)))
        places = np.append(np.cumsum(seen) - 1, -1).astype(np.int32)[places]
    cells = cell_type(values.type)
    if cells is CellType.TEXT:
        found = []
        for cell in values.to_pylist():
            bare = None if cell is None else cell.strip()
            found.append(None if bare is None or bare in words.missing else bare if words.trim else cell)
        return found, places
    if cells is CellType.TIME:
        return [None if value is None else str(value) for value in values.to_pylist()], places
    if cells is CellType.FLOAT:
        values = values.cast(pa.float64(), safe=False)
    gone = (None, *words.numbers)
    levels = map(frames.level_of, values.to_pylist())
    return [None if level in gone or level != level else level for level in levels], places


NAMED_WORDS, NAMED_COLUMNS = 5, 3
"""Most words for missing that a note lists, and most columns that it names for each."""


def mask_words(
    columns: Mapping[Key, Any], words: MissingWords, spelt: Collection[Key], n_rows: int | None
) -> tuple[dict[Key, Any], tuple[str, ...]]:
    """Replace words for missing by null in the first cells of columns, and return a note that lists the usual words.

    Words with a blank before or after them are found too. The empty cell is not a word. In the columns `spelt` a dash
    is a category; in others the note counts it.
    """
    kept = {key: flat(column) for key, column in columns.items()}
    lookups = {kind: _lookup(words, kind) for kind in (pa.string(), pa.large_string())}
    found: dict[str, dict[Key, int]] = {}
    for key, column in kept.items():
        hit = call("is_in", column, options=lookups[column.type]) if column.type in lookups else None
        if hit is None or not filled(hit).any():
            continue
        counts = {
            each["values"]: each["counts"] for each in call("value_counts", call("filter", column, hit)).to_pylist()
        }
        dashes = set(counts) - {cell for cell in counts if cell.strip() in words.missing}
        if dashes and (key in spelt or not words.usual or not find_dashes(call("unique", column).to_pylist())):
            counts = {cell: count for cell, count in counts.items() if cell not in dashes}
        for cell, count in counts.items():
            by_column = found.setdefault(cell.strip(), {})
            by_column[key] = by_column.get(key, 0) + count
        if len(counts) > len(dashes & set(counts)):
            where = call("is_in", column, options=_lookup(words, column.type, ())) if dashes else hit
            kept[key] = call("if_else", where, pa.nulls(len(column), column.type), column)
    rows = max((len(column) for column in kept.values()), default=0)
    usual = {word: found[word] for word in found if words.usual and word in (*MISSING, *DASHES)}
    if not usual:
        return kept, ()
    listed = sorted(usual, key=lambda word: -sum(usual[word].values()))
    shown = [
        f"{word!r} ({sum(usual[word].values()):,} in {wording.and_others(usual[word], NAMED_COLUMNS)})"
        for word in listed[:NAMED_WORDS]
    ]
    more = f" and {len(listed) - NAMED_WORDS} more words" if len(listed) > NAMED_WORDS else ""
    where = "" if rows == n_rows else f" in the first {rows:,} rows"
    keep = remedies.either("only_missing=['']", "--only-missing ''")
    return kept, (f"read as missing{where}: {', '.join(shown)}{more} ({keep} keeps such words)",)


def _lookup(words: MissingWords, kind: Any, more: Sequence[str] = DASHES) -> Any:
    """Return options of Arrow's `is_in` for the words and dashes, with or without one blank before or after them."""
    wanted = dict.fromkeys((*filter(None, words.missing), *more))
    spelt = [f"{before}{word}{after}" for word in wanted for before in ("", " ") for after in ("", " ")]
    values = call("cast", text_of(spelt), options=arrow_compute.CastOptions.safe(kind))
    return arrow_compute.SetLookupOptions(values, skip_nulls=True)


def numbers(
    column: Any, words: MissingWords, key: Key, start: int, *, padded: bool = False, form: CellForm | None = None
) -> np.ndarray:
    """Return a column as float64, NaN if missing; text is parsed in its `form`, dates become seconds since 1970.

    Infinite values and words raise an error that names column and row. `padded` allows leading zeros.
    """
    column = flat(column)
    cells = cell_type(column.type)
    if cells is CellType.NESTED:
        raise DataError(f"{wording.column(key)} holds nested or binary values, where the model has numbers.")
    if cells is CellType.TEXT:
        pattern = frames.PADDED if padded else frames.PLAIN
        texts, places = distinct(column, words.among_numbers)
        plain = form is None or is_plain(form)
        floats, bad = frames.floats_of(texts, pattern) if plain else form.read(texts)  # type: ignore[union-attr]
        if bad.any() or np.isinf(floats).any():
            raise _unreadable(key, start, texts, places, bad, floats)
        return without(np.append(floats, np.nan)[places], words.numbers)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if cells is CellType.EMPTY:
        found = np.full(len(column), np.nan)
    elif cells is CellType.TIME:
        found = seconds_of(column)
    else:
        column = column.cast(pa.int8()) if cells is CellType.TRUTH else column
        found = filled(column if pa.types.is_float64(column.type) else column.cast(pa.float64(), safe=False))
    refuse_infinite(found, key, start)
    return without(found, words.numbers)


def without(found: np.ndarray, marks: tuple[float, ...]) -> np.ndarray:
    """Replace the numbers `marks`, which mean missing, by NaN; the same array is returned if none occurs."""
    for mark in marks:
        hit = found == mark
        if hit.any():
            found = np.where(hit, np.nan, found)
    return found


def _unreadable(
    key: Key, start: int, texts: Sequence[Any], places: np.ndarray, bad: np.ndarray, floats: np.ndarray
) -> DataError:
    """Return the error for the first cell that is not a number, or else infinite."""
    infinite = np.isinf(floats)
    row = int(np.argmax(np.isin(places, np.flatnonzero(bad if bad.any() else infinite))))
    if not bad.any():
        return too_large(key, start + row, texts[places[row]])
    odd = OddCells.of(texts, places, bad)
    word = odd.words[0]
    where = f"{wording.column(key)} holds numbers, but row {start + row + 1} holds {wording.cell(word)}."
    if _infinite.fullmatch(word):
        return DataError(f"{where} Infinite values cannot be counted; if it means missing: {remedies.missing(word)}")
    if len(word) > wording.LONGEST:  # a document, which is neither a missing word nor a category
        return DataError(
            f"{where} If it is text: {remedies.kind(key, 'text')}; or leave it out: {remedies.kind(key, 'ignore')}"
        )
    if odd.numbers and 1 < len(odd.words) <= FEW_WORDS:
        return DataError(f"{where} {odd.describe()}. {odd.remedy(key)}")
    level = remedies.kind(key, "categorical")
    return DataError(f"{where} If it means missing: {remedies.missing(word)}; if it is a category: {level}")


def too_large(key: Key, row: int, shown: object) -> DataError:
    """Return the error for an infinite number in a row counted from 0."""
    return DataError(
        f"{wording.column(key)}, row {row + 1}: {wording.cell(shown)} is infinite or too large for a number. "
        f"Correct it, or make it missing, or leave the column out: {remedies.kind(key, 'ignore')}"
    )


def refuse_infinite(found: np.ndarray, key: Key, start: int) -> None:
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow of the sum only costs a second check
        finite = np.isfinite(found.sum())
    if not finite and (infinite := np.isinf(found)).any():
        row = int(np.argmax(infinite))
        raise too_large(key, start + row, float(found[row]))


# -- values as cells of the type that a column had

CATEGORY = "category:"
"""Prefix of the type name of a dictionary column: a pandas or polars categorical."""
_NAMED = re.compile(
    rf"({CATEGORY})?(string|bool|u?int(8|16|32|64)|halffloat|float|double|date32\[day\]|date64\[ms\]"
    r"|(timestamp|time32|time64|duration)\[(s|ms|us|ns)\])"
)


def type_name(kind: Any) -> str:
    """Return the name of an Arrow type that values can be cast to; empty for other types (decimal, time zones)."""
    if pa.types.is_dictionary(kind):
        name = type_name(kind.value_type)
        return name and CATEGORY + name
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    name = "string" if text else str(kind)
    return name if _NAMED.fullmatch(name) else ""


def is_type_name(name: str) -> bool:
    return _NAMED.fullmatch(name) is not None


def cast_to_type(values: Any, name: str, decimals: int = 0, levels: Sequence[object] = ()) -> Any:
    """Return values as an Arrow array of a named type; unchanged if that type cannot hold them.

    Numbers in a column of text are written with `decimals`. `levels` are the categories of a dictionary column.

    >>> cast_to_type([1, 2], "string", 1).to_pylist(), cast_to_type([1, 2], "double").to_pylist()
    (['1.0', '2.0'], [1.0, 2.0])
    """
    plain = name.removeprefix(CATEGORY)
    try:
        if plain == "string":
            found = pa.array(format_cells(values, decimals), pa.string())
        else:
            found = values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True)
            if pa.types.is_boolean(found.type) != (plain == "bool"):
                return values
            found = found.cast(pa.type_for_alias(plain))
        if plain == name:
            return found
        if not levels:
            return found.dictionary_encode()
        known = cast_to_type(list(levels), plain, decimals)
        places = {level: place for place, level in enumerate(known.to_pylist())}
        return pa.DictionaryArray.from_arrays(pa.array([places.get(x) for x in found.to_pylist()], pa.int32()), known)
    except (pa.ArrowException, AttributeError, OverflowError, TypeError):
        return values


def format_cells(values: Any, decimals: int = 0) -> list[str | None]:
    listed = values.to_pylist() if hasattr(values, "to_pylist") else values
    return [None if value is None or value != value else format_cell(value, decimals) for value in listed]


def format_cell(value: Any, decimals: int = 0) -> str:
    """Return a value as text; a number has `decimals` decimals, or as few as it needs if that is 0.

    >>> format_cell(2, 1), format_cell(2.0), format_cell(2.25), format_cell(True)
    ('2.0', '2', '2.25', 'True')
    """
    if isinstance(value, str | bool | np.bool_) or not isinstance(value, int | float | np.number):
        return str(value)
    if decimals:
        return f"{value:.{decimals}f}"
    return np.format_float_positional(value, trim="-") if isinstance(value, float | np.floating) else str(value)


def count_decimals(cells: Sequence[str | None]) -> int:
    """Return the decimals that all numeric cells are written with; 0 if they differ between cells.

    >>> count_decimals(["1.0", None, "2.0", "?"]), count_decimals(["1.0", "2"]), count_decimals(["7", "8"])
    (1, 0, 0)
    """
    found = 0
    for cell in cells:
        if cell is None or number_of(cell.strip()) is None:
            continue
        own = len(cell.strip().partition(".")[2])
        if not own or (found and own != found) or "e" in cell.lower():
            return 0
        found = own
    return found
