"""What is known of a table's columns: kinds, levels, anchors, and where each is stored in a chunk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from softcount.errors import DataError
from softcount.records import dataclass
from softcount.sources.file_format import CONTENT_DECIDES, FileFormat
from softcount.sources.source import Key as Key
from softcount.table.cell_forms import WHOLE, CellForm
from softcount.table.counted_points import CountedPoints
from softcount.text.word_rules import Reading

NARROW_LEVELS = 254
"""Most levels a one-byte code can hold: 0 is missing and the last code is for levels never seen."""

MOST_LEVELS = 100_000
"""Levels kept apart in one column, the most frequent; others share `OTHER`."""

OTHER = "(other)"
"""The level that stands for all levels beyond `MOST_LEVELS`."""

BLANK = "(no value)"
"""The category of missing cells in a column that has one value or none, as a tick box has; others leave them out."""

EXCEL_ERRORS = ("#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")
MISSING = ("", "NA", "na", "N/A", "n/a", "<NA>", "NaN", "nan", "null", "NULL", "None", "?", *EXCEL_ERRORS)
"""Cells read as missing unless the caller says otherwise."""

DASHES = ("-", ".")
"""Cells that mean missing among numbers, and among words unless + is one of them, as in a column of signs."""


STRATEGIES = ("informative", "ignore", "drop", "impute", "error", "raise", "keep", "category", "indicator", "mean",
              "median", "mode", "most_frequent", "constant", "auto", "default")  # fmt: skip
"""Words that other libraries take for how to treat missing cells: one of them alone is hardly a cell."""


def with_usual(added: str | Iterable[str]) -> tuple[str, ...]:
    """The usual words for missing, followed by those that the user adds, even if they are usual ones."""
    if isinstance(added, str) and added in STRATEGIES:
        raise DataError(
            f"missing={added!r} is not a setting: `missing` lists the cells that mean missing, and these are never "
            f"evidence. If the word itself means missing: missing=[{added!r}]"
        )
    return (*MISSING, *((added,) if isinstance(added, str) else map(str, added)))


def asked_words(missing: Sequence[str]) -> tuple[str, ...]:
    """Those words for missing that the user named; of tables with real nulls the usual ones are not among them.

    >>> asked_words(with_usual(["NA"])), asked_words(["x"])
    (('NA',), ('x',))
    """
    usual = len(MISSING)
    return tuple(missing[usual:] if tuple(missing[:usual]) == MISSING else missing)


class Kind(StrEnum):
    """What the values of a column are; of each, whether they are numbers, and whether they are levels with codes."""

    CATEGORICAL = "categorical"
    REAL = "real"
    POSITIVE = "positive"
    AMOUNT = "amount"
    COUNT = "count"
    TEXT = "text"
    IDENTIFIER = "identifier"
    CONSTANT = "constant"

    numeric: bool
    coded: bool

    def __init__(self, name: str) -> None:
        # Asked several times for every column: names of an enumeration take longer to look up than this.
        self.numeric = name in ("real", "positive", "amount", "count")
        self.coded = not self.numeric and name != "text"


class ColumnPlace(NamedTuple):
    """Where a column lives in every chunk: an array's name and the column of that array."""

    store: str  # "reals" | "codes" | "wide" | "bags"
    slot: int


@dataclass(frozen=True, slots=True)
class Derived:
    """How a column that is left out follows from the column `lead`; without a lead it is always `constant`.

    Of levels it is a function, given by pairs (level of `lead`, own level); a number is `intercept + slope * lead`.
    """

    lead: Key | None = None
    levels: tuple[tuple[object, object], ...] = ()
    slope: float = 1.0
    intercept: float = 0.0
    constant: object = None


@dataclass(frozen=True, slots=True)
class Field:
    """One column: its kind and why, and what is needed to encode it.

    `levels` are sorted once a table is settled. A numeric column is stored as `(x - anchor) * scale` in statistics;
    the chunk itself holds the values as they came. `used` is false for columns left out (identifier, constant,
    short text, or ignored by request). `wide` columns have too many levels for a one-byte code. A text column
    has a `reading`, and its `levels` are `Words`. `points` are where numbers of a density of any shape are counted.
    `missing` are cells that mean missing in this column, besides those that do in all. `written` is how its numbers
    are written where they are not plain. `cells` names the Arrow type that its cells had, so that values can be given
    back in it; it is empty for columns of text files. `derived` is how a column that is left out follows from another.
    """

    key: Key
    kind: Kind
    why: str
    levels: Sequence[object] = ()
    anchor: float = 0.0
    scale: float = 1.0
    used: bool = True
    wide: bool = False
    declared: bool = False
    reading: Reading | None = None
    points: CountedPoints | None = None
    missing: tuple[str, ...] = ()
    written: CellForm | None = None
    cells: str = ""
    derived: Derived | None = None
    bounds: tuple[float, float] | None = None
    """Between which numbers are drawn and answered; None: anywhere that its density goes."""

    def __eq__(self, other: object) -> bool:
        """Whether the columns are modelled alike: `cells`, `derived` and `bounds` do not count."""
        if type(other) is not type(self):
            return NotImplemented
        compared = attrgetter(*type(self).__match_args__[:-3])
        return bool(compared(self) == compared(other))

    def __hash__(self) -> int:
        return hash((self.key, self.kind, self.anchor, self.scale))

    @property
    def whole(self) -> bool:
        """Whether its numbers are whole."""
        return self.kind is Kind.COUNT or (self.kind.numeric and self.written == WHOLE)


MOST_TEXTS = 8_500
"""Columns of text whose words and counts, in seven entries each, a model file has room for."""


@dataclass(frozen=True)
class Schema:
    """The fields of a table in order, those that are used, which cells count as missing, and how files are read."""

    fields: tuple[Field, ...]
    missing: tuple[str, ...] = MISSING
    form: FileFormat = CONTENT_DECIDES

    @cached_property
    def used(self) -> tuple[Field, ...]:
        return tuple(spec for spec in self.fields if spec.used)

    @cached_property
    def by_key(self) -> dict[Key, Field]:
        return {spec.key: spec for spec in self.fields}

    @cached_property
    def places(self) -> dict[Key, ColumnPlace]:
        """Where each used column is in a chunk."""
        places, filled = {}, {"reals": 0, "codes": 0, "wide": 0, "bags": 0}
        for spec in self.used:
            store = _store(spec)
            places[spec.key] = ColumnPlace(store, filled[store])
            filled[store] += 1
        return places

    def __getitem__(self, key: Key) -> Field:
        return self.by_key[key]

    def stored(self, store: str) -> tuple[Field, ...]:
        """The fields of one array of a chunk, in slot order."""
        return tuple(spec for spec in self.used if self.places[spec.key].store == store)

    def is_plain(self, width: int) -> bool:
        """Whether so many columns known by their places are numbers that may be any, all of them used."""
        plain = len(self.fields) == width and self.missing == MISSING
        return plain and all(x.key == i and x.used and x.kind is Kind.REAL for i, x in enumerate(self.fields))

    @property
    def texts(self) -> list[Key]:
        """The columns of text that are used."""
        return [spec.key for spec in self.used if spec.kind is Kind.TEXT]

    @property
    def unsaveable(self) -> str | None:
        """Why a model of this table would not go into a file, if it would not."""
        number = len(self.texts)
        if number <= MOST_TEXTS:
            return None
        return (
            f"{number:,} columns are text, and a model file has room for {MOST_TEXTS:,}. Join some, or leave them out."
        )

    @property
    def only_text(self) -> Key | None:
        """The one column that is used, where it is text."""
        texts = self.texts
        return texts[0] if len(texts) == len(self.used) == 1 else None

    def with_field(self, changed: Field) -> Schema:
        return replace(self, fields=tuple(changed if spec.key == changed.key else spec for spec in self.fields))


def _store(spec: Field) -> str:
    if spec.kind is Kind.TEXT:
        return "bags"
    return "reals" if spec.kind.numeric else "wide" if spec.wide else "codes"
