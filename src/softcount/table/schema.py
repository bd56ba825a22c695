"""The schema of a table: fields, kinds, names and plans of columns."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.source import CONTENT_DECIDES, FileFormat
from softcount.sources.source import Key as Key
from softcount.table.cell_forms import WHOLE, DurationForm, NumberForm, TimeForm
from softcount.text.words import Reading


def label(key: Key) -> str:
    """A column's or block's name as text."""
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def apart(name: str, theirs: Container[object]) -> str:
    """A name of ours, in one more pair of parentheses as long as it is one of theirs.

    >>> apart("(prior)", ["age"]), apart("(prior)", ["age", "(prior)"])
    ('(prior)', '((prior))')
    """
    while name in theirs:
        name = f"({name})"
    return name


def labels(keys: Iterable[Key]) -> dict[Key, str]:
    """Every key's name as text, no two alike: columns that have names keep them, blocks and numbers stand back.

    >>> labels(["a", "b", "a, b", ("a", "b")])
    {'a': 'a', 'b': 'b', 'a, b': 'a, b', ('a', 'b'): '(a, b)'}
    """
    keys = list(dict.fromkeys(keys))
    found: dict[Key, str] = {key: key for key in keys if isinstance(key, str)}
    taken = set(found.values())
    for key in keys:
        if key not in found:
            found[key] = apart(label(key), taken)
            taken.add(found[key])
    return {key: found[key] for key in keys}


# The different numbers of a column, or of a fine grid where there are too many: what rows are counted at.

MOST_POINTS = 2048
"""Different numbers of a column that are counted apart."""
FEWEST_POINTS = 128
MOST_COUNTS = 1 << 21
"""CountedPoints of all columns in all classes, about, whatever the number of classes."""


def points_for(classes: int, columns: int) -> int:
    """How many different numbers each column may have, so that counts in all classes stay small; a power of two.

    >>> points_for(2, 6), points_for(1000, 30)
    (2048, 128)
    """
    each = MOST_COUNTS // max(classes * columns, 1)
    return int(np.clip(2 ** int(np.log2(max(each, 1))), FEWEST_POINTS, MOST_POINTS))


class CountedPoints(Struct, frozen=True):
    """At most so many numbers in order; with a `step` they are the middles of the cells of a grid of that width.

    >>> CountedPoints.of([np.array([3.0, 1.0, np.nan, 3.0])])
    CountedPoints(values=(1.0, 3.0), step=0.0, most=2048)
    >>> CountedPoints((0.25, 0.75, 1.75), 0.5).united(CountedPoints((0.5, 1.5), 1.0)).values
    (0.5, 1.5)
    """

    values: tuple[float, ...] = ()
    step: float = 0.0
    most: int = MOST_POINTS

    @staticmethod
    def of(columns: Iterable[np.ndarray], most: int = MOST_POINTS) -> CountedPoints:
        """The different numbers of some columns; those that are missing or infinite are passed over."""
        parts = [np.unique(column[np.isfinite(column)]) for column in columns]
        return _few(np.unique(np.concatenate([np.zeros(0), *parts])) + 0.0, 0.0, most)

    def places(self, column: np.ndarray) -> np.ndarray:
        """Where each number of a column is among the points; a number that is not there goes to a neighbour."""
        found = np.searchsorted(self.values, on_grid(column, self.step))
        return np.minimum(found, max(len(self.values) - 1, 0))

    def united(self, other: CountedPoints) -> CountedPoints:
        """The points of two tables together."""
        step = max(self.step, other.step)
        both = np.union1d(on_grid(np.array(self.values), step), on_grid(np.array(other.values), step))
        return _few(both, step, min(self.most, other.most))


def on_grid(values: np.ndarray, step: float) -> np.ndarray:
    """Numbers as the middles of the cells they lie in; as they are where there is no grid."""
    return (np.floor(values / step) + 0.5) * step if step else values


def _few(values: np.ndarray, step: float, most: int) -> CountedPoints:
    """Different numbers on the finest grid that leaves few enough of them."""
    found = CountedPoints((), step, most)
    if len(values) <= most:
        return replace(found, values=tuple(values.tolist()))
    fine = int(np.frexp(step or 4.0 * np.spacing(np.abs(values[[0, -1]]).max()))[1]) - 1
    coarse = int(np.frexp(values[-1] / 2 - values[0] / 2)[1]) + 2
    while fine < coarse:
        power = (fine + coarse) // 2
        cells = np.count_nonzero(np.diff(np.floor(np.ldexp(values, -power)))) + 1
        fine, coarse = (fine, power) if cells <= most else (power + 1, coarse)
    step = float(np.ldexp(1.0, coarse))
    return replace(found, values=tuple(np.unique(on_grid(values, step)).tolist()), step=step)


# What is known of a table's columns: kinds, levels, anchors, and where each is stored in a chunk.

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


class Derived(Struct, frozen=True):
    """How a column that is left out follows from the column `lead`; without a lead it is always `constant`.

    Of levels it is a function, given by pairs (level of `lead`, own level); a number is `intercept + slope * lead`.
    """

    lead: Key | None = None
    levels: tuple[tuple[object, object], ...] = ()
    slope: float = 1.0
    intercept: float = 0.0
    constant: object = None


class Field(Struct, frozen=True):
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
    written: NumberForm | TimeForm | DurationForm | None = None
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


class Schema(Struct, frozen=True, dict=True):
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


# How each column is to be read, where its numbers lie, and what happens when later rows contradict the first ones.

FARTHEST = 2.0**120
"""Units that a number may lie from its anchor: squares of so many still add up, whatever rows weigh."""
LOOKED_AT = 1_024
"""Rows that decide an anchor: the median of so many is near enough for any column."""


class Anchor(NamedTuple):
    """Statistics are of `(x - at) * scale`; `scale` is a power of two, so that multiplying by it is exact."""

    at: float = 0.0
    scale: float = 1.0


NO_ANCHOR = Anchor()
"""For columns without a number to go by."""


def anchor_of(values: np.ndarray) -> Anchor:
    """Median of the first finite values, and the power of two that makes the typical distance from it about 1."""
    finite = values[np.isfinite(values)][:LOOKED_AT]
    if not len(finite):
        return NO_ANCHOR
    at, scale = anchors_of(finite[:, None])
    return Anchor(float(at[0]), float(scale[0]))


def log_anchor_of(values: np.ndarray) -> Anchor:
    """The anchor of the logarithms of what is above zero."""
    return anchor_of(np.log(values[np.isfinite(values) & (values > 0)][:LOOKED_AT]))


def anchors_of(block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Anchors and scales of all columns of a block of finite numbers."""
    # Work on values divided by their largest power of two: differences of numbers near 1e308 would overflow.
    largest = np.frexp(np.max(np.abs(block), axis=0))[1]
    unit = np.ascontiguousarray(np.ldexp(block, -largest).T)  # medians of long rows are found twice as fast
    middle = medians(unit)
    apart = np.abs(unit - middle[:, None])
    half, most = medians(apart), np.max(apart, axis=1)
    typical = np.select([half > 0, most > 0], [half, most], np.abs(middle))
    typical = np.maximum(typical, most / FARTHEST)
    power = np.where(typical > 0, -np.round(np.log2(np.where(typical > 0, typical, 1.0))) - largest, 0)
    scale = np.ldexp(1.0, np.clip(power, -1_022, 1_023).astype(int))
    return np.ldexp(middle, largest), scale


def medians(rows: np.ndarray) -> np.ndarray:
    """The median of each row of finite numbers, as `np.median` has it, which loads masked arrays to ask for NaN."""
    last = rows.shape[1] // 2
    first = last - 1 + rows.shape[1] % 2
    found: np.ndarray = np.partition(rows, sorted({first, last}), axis=1)[:, [first, last]].mean(axis=1)
    return found


class Becomes(StrEnum):
    """What a column turns into when a row contradicts what was guessed of it."""

    WORDS = "categories spelt as text"
    NUMBERS = "numbers"
    AMOUNTS = "numbers of 0 or more"
    LEVELS = "categories"
    WIDE = "many categories"
    CAPPED = "the most frequent categories and one for the rest"
    FARTHER = "numbers in larger units"


class Contradiction(Exception):
    """A row that does not fit what the first rows said of its column: start again with `table.widened(this)`."""

    def __init__(self, key: Key, row: int, reason: str, becomes: Becomes) -> None:
        super().__init__(f"{wording.column(key)}, row {row}: {reason}")
        self.key = key
        self.row = row
        self.reason = reason
        self.becomes = becomes

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.key, self.row, self.reason, self.becomes)


class ColumnPlan(Struct, frozen=True):
    """One column: its field, and what its cells are read as.

    `as_numbers`: levels are numbers, also where cells are text. `constant`: the one value seen so far. `plain` and
    `logged` are anchors of the numbers and of their logarithms. `capped`: the only levels kept apart.
    `number_like`: its cells were numbers when looked at, so that it can fall back to being real. `extra`: levels that
    exist besides those seen. `seen`: levels found when looking, in order. `most_levels` are kept apart at most.
    `guessed`: earlier rows suggested its kind, which stays: a number it cannot hold is no evidence.
    """

    field: Field
    as_numbers: bool = False
    number_like: bool = False
    constant: object = None
    plain: Anchor | None = None
    logged: Anchor = NO_ANCHOR
    capped: tuple[object, ...] | None = None
    extra: tuple[object, ...] = ()
    seen: tuple[object, ...] = ()
    most_levels: int = MOST_LEVELS
    guessed: bool = False

    @property
    def key(self) -> Any:
        return self.field.key

    def anchored(self, values: np.ndarray) -> ColumnPlan:
        """The same column with anchors of these numbers where it has none yet."""
        logged = log_anchor_of(values) if self.logged == NO_ANCHOR else self.logged
        return replace(self, plain=self.plain or anchor_of(values), logged=logged)

    def as_kind(self, kind: Kind, why: str, *, used: bool = True) -> ColumnPlan:
        """The same column read as another kind, with the anchor that kind needs."""
        anchor = self.logged if kind is Kind.POSITIVE else self.plain or NO_ANCHOR
        constant = kind is Kind.CONSTANT and self.constant is not None
        derived = Derived(constant=self.constant) if constant else None
        changed = replace(
            self.field, kind=kind, why=why, used=used, anchor=anchor.at, scale=anchor.scale, derived=derived
        )
        return replace(self, field=changed)

    def after(self, why: Contradiction) -> ColumnPlan:
        """How to read the column once a row has contradicted this plan."""
        if self.is_tick_box:
            return replace(self, extra=()).after(why)
        said = f"{why.reason} (row {why.row})"
        if why.becomes is Becomes.WORDS:
            return replace(self.as_kind(Kind.CATEGORICAL, said), as_numbers=False, number_like=False, seen=())
        if why.becomes in (Becomes.NUMBERS, Becomes.AMOUNTS):
            kind = Kind.REAL if why.becomes is Becomes.NUMBERS else Kind.AMOUNT
            return replace(self.as_kind(kind, said), as_numbers=False)
        if why.becomes is Becomes.WIDE:
            return replace(self, field=replace(self.field, wide=True))
        if isinstance(self.constant, float):
            return self.as_kind(Kind.REAL, said)
        as_numbers = not isinstance(self.constant, str | bool)
        return replace(self.as_kind(Kind.CATEGORICAL, said), as_numbers=as_numbers, number_like=as_numbers)

    def reaching(self, most: float) -> ColumnPlan:
        """The same column in units in which a distance of `most` from the anchor is not too far."""
        scale = min(self.field.scale, float(np.ldexp(1.0, -np.frexp(most / FARTHEST)[1])))
        plain = Anchor(self.field.anchor, scale)
        return replace(self, field=replace(self.field, scale=scale), plain=plain)

    @property
    def is_tick_box(self) -> bool:
        """Whether missing cells are a category, because the column seemed to have one value or none."""
        return BLANK in self.extra and not self.field.declared

    def cap(self, levels: list[object]) -> ColumnPlan:
        """The same column with only these levels kept apart."""
        kept = levels[: self.most_levels]
        kept.append(apart(OTHER, set(kept)))
        return replace(self, capped=tuple(kept), field=replace(self.field, wide=True))
