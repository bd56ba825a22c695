"""The schema of a table: fields, kinds, names and plans of columns."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import replace

from softcount.core.ranges import NotNegative, Positive
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.source import CONTENT_DECIDES, FileFormat
from softcount.sources.source import Key as Key
from softcount.table.cell_forms import WHOLE, DurationForm, NumberForm, TimeForm
from softcount.text.words import Reading


def label(key: Key) -> str:
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def apart(name: str, theirs: Container[object]) -> str:
    """Enclose a name in parentheses until it differs from all others.

    >>> apart("(prior)", ["age"]), apart("(prior)", ["age", "(prior)"])
    ('(prior)', '((prior))')
    """
    while name in theirs:
        name = f"({name})"
    return name


def labels(keys: Iterable[Key]) -> dict[Key, str]:
    """Return a distinct text for each key: named columns keep their names, others get parentheses if necessary.

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


# -- the distinct numbers of a column, or of a fine grid if there are too many, at which rows are counted

MOST_POINTS = 2048
FEWEST_POINTS = 128
MOST_COUNTS = 1 << 21
"""Approximate limit of counts over all columns and classes."""


def points_for(classes: int, columns: int) -> int:
    """Return how many distinct numbers each column may have, a power of two, for about `MOST_COUNTS` counts in all.

    >>> points_for(2, 6), points_for(1000, 30)
    (2048, 128)
    """
    each = MOST_COUNTS // max(classes * columns, 1)
    return int(np.clip(2 ** int(np.log2(max(each, 1))), FEWEST_POINTS, MOST_POINTS))


class CountedPoints(Struct, frozen=True):
    """At most `most` sorted numbers; with a `step` they are the midpoints of the cells of a grid of that width.

    >>> CountedPoints.of([np.array([3.0, 1.0, np.nan, 3.0])])
    CountedPoints(values=(1.0, 3.0), step=0.0, most=2048)
    >>> CountedPoints((0.25, 0.75, 1.75), 0.5).united(CountedPoints((0.5, 1.5), 1.0)).values
    (0.5, 1.5)
    """

    values: tuple[float, ...] = ()
    step: NotNegative = 0.0
    most: Annotated[int, Meta(ge=1, le=MOST_POINTS)] = MOST_POINTS

    @staticmethod
    def of(columns: Iterable[np.ndarray], most: int = MOST_POINTS) -> CountedPoints:
        """Return the distinct finite numbers of some columns."""
        parts = [np.unique(column[np.isfinite(column)]) for column in columns]
        return _few(np.unique(np.concatenate([np.zeros(0), *parts])) + 0.0, 0.0, most)

    def places(self, column: np.ndarray) -> np.ndarray:
        """Return the place of each number among the points; a number that is not a point goes to a neighbour."""
        found = np.searchsorted(self.values, on_grid(column, self.step))
        return np.minimum(found, max(len(self.values) - 1, 0))

    def united(self, other: CountedPoints) -> CountedPoints:
        step = max(self.step, other.step)
        both = np.union1d(on_grid(np.array(self.values), step), on_grid(np.array(other.values), step))
        return _few(both, step, min(self.most, other.most))


def on_grid(values: np.ndarray, step: float) -> np.ndarray:
    return (np.floor(values / step) + 0.5) * step if step else values


def _few(values: np.ndarray, step: float, most: int) -> CountedPoints:
    """Return distinct numbers on the finest grid that leaves at most `most` of them."""
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


# -- fields: kinds, categories, anchors, and their places in a chunk

NARROW_LEVELS = 254
"""Most categories that a one-byte code can hold: 0 is missing and the last code is for unseen categories."""

MOST_LEVELS = 100_000
"""Most categories of a column with a code each; the rarer ones share `OTHER`."""

OTHER = "(other)"

BLANK = "(no value)"
"""The category of missing cells in a column that otherwise has a single value, such as a tick box."""

EXCEL_ERRORS = ("#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")
MISSING = ("", "NA", "na", "N/A", "n/a", "<NA>", "NaN", "nan", "null", "NULL", "None", "?", *EXCEL_ERRORS)
"""Cells read as missing by default."""

DASHES = ("-", ".")
"""Cells that mean missing, unless + occurs too, as in a column of signs."""

STRATEGIES = ("informative", "ignore", "drop", "impute", "error", "raise", "keep", "category", "indicator", "mean",
              "median", "mode", "most_frequent", "constant", "auto", "default")  # fmt: skip
"""Names of missing-value strategies in other libraries, which are unlikely to be words for missing."""


def with_usual(added: str | Iterable[str]) -> tuple[str, ...]:
    """Return the default words for missing, followed by those of the user, even if they are the same."""
    if isinstance(added, str) and added in STRATEGIES:
        raise DataError(
            f"missing={added!r} is not a setting: `missing` lists the cells that mean missing, and these are never "
            f"evidence. If the word itself means missing: missing=[{added!r}]"
        )
    return (*MISSING, *((added,) if isinstance(added, str) else map(str, added)))


def asked_words(missing: Sequence[str]) -> tuple[str, ...]:
    """Return the words for missing that the user named: the only ones in tables with real nulls.

    >>> asked_words(with_usual(["NA"])), asked_words(["x"])
    (('NA',), ('x',))
    """
    usual = len(MISSING)
    return tuple(missing[usual:] if tuple(missing[:usual]) == MISSING else missing)


class Kind(StrEnum):
    """The kind of a column's values.

    `numeric`: numbers, `coded`: categories with codes, `whole`: counts, `logged`: spread is measured on logarithms.
    """

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
    whole: bool
    logged: bool

    def __init__(self, name: str) -> None:
        # Attributes, because comparing enum members takes longer and happens several times per column.
        self.numeric = name in ("real", "positive", "amount", "count")
        self.coded = not self.numeric and name != "text"
        self.whole = name == "count"
        self.logged = name == "positive"


class ColumnPlace(NamedTuple):
    """Where a column is stored in every chunk: the name of an array and the column of that array."""

    store: str  # "reals" | "codes" | "wide" | "bags"
    slot: int


class Derived(Struct, frozen=True):
    """How a column that is left out follows from the column `lead`; without a lead it is always `constant`.

    Categories are given by pairs (category of `lead`, own category); a number is `intercept + slope * lead`.
    """

    lead: Key | None = None
    levels: tuple[tuple[object, object], ...] = ()
    slope: float = 1.0
    intercept: float = 0.0
    constant: object = None


class Field(Struct, frozen=True):
    """One column: its kind, the reason for it, and all that is needed to encode it.

    `levels` are the categories, sorted once a table is settled. Statistics of a numeric column are of `(x - anchor) *
    scale`; the chunk itself holds the values unchanged. `used` is false for columns left out (identifier, constant,
    short text, or ignored by request). `wide` columns have too many categories for a one-byte code. A text column has a
    `reading`, and its `levels` are `Words`. `points` are the numbers at which a nonparametric density is counted.
    `missing` are cells that mean missing in this column, in addition to the words of the table. `written` is the form
    of its numbers, if not plain. `cells` names the Arrow type of its cells, so that values can be returned in it; it is
    empty for columns of text files. `derived` is how a column that is left out follows from another.
    """

    key: Key
    kind: Kind
    why: str
    levels: Sequence[object] = ()
    anchor: float = 0.0
    scale: Positive = 1.0
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
    """Bounds of sampled and predicted numbers."""

    def __eq__(self, other: object) -> bool:
        """Whether the columns are modelled alike: `cells`, `derived` and `bounds` are not compared."""
        if type(other) is not type(self):
            return NotImplemented
        compared = attrgetter(*type(self).__match_args__[:-3])
        return bool(compared(self) == compared(other))

    def __hash__(self) -> int:
        return hash((self.key, self.kind, self.anchor, self.scale))

    @property
    def whole(self) -> bool:
        return self.kind is Kind.COUNT or (self.kind.numeric and self.written == WHOLE)


MOST_TEXTS = 8_500
"""Most text columns of a model file, which has seven entries for each."""


class Schema(Struct, frozen=True, dict=True):
    """The fields of a table in order, the words that mean missing, and the file format."""

    fields: tuple[Field, ...]
    missing: tuple[str, ...] = MISSING
    form: FileFormat = CONTENT_DECIDES

    @cached_property
    def used(self) -> tuple[Field, ...]:
        return tuple(filter(attrgetter("used"), self.fields))

    @cached_property
    def by_key(self) -> dict[Key, Field]:
        return {spec.key: spec for spec in self.fields}

    @cached_property
    def places(self) -> dict[Key, ColumnPlace]:
        places, filled = {}, {"reals": 0, "codes": 0, "wide": 0, "bags": 0}
        for spec in self.used:
            coded = "wide" if spec.wide else "codes"
            store = "bags" if spec.kind is Kind.TEXT else "reals" if spec.kind.numeric else coded
            places[spec.key] = ColumnPlace(store, filled[store])
            filled[store] += 1
        return places

    def __getitem__(self, key: Key) -> Field:
        return self.by_key[key]

    def stored(self, store: str) -> tuple[Field, ...]:
        return tuple(spec for spec in self.used if self.places[spec.key].store == store)

    def is_plain(self, width: int) -> bool:
        """Whether the table is `width` columns of real numbers without names, all of them used."""
        plain = len(self.fields) == width and self.missing == MISSING
        return plain and all(x.key == i and x.used and x.kind is Kind.REAL for i, x in enumerate(self.fields))

    @property
    def texts(self) -> list[Key]:
        return [spec.key for spec in self.used if spec.kind is Kind.TEXT]

    @property
    def unsaveable(self) -> str | None:
        """Why a model of this table cannot be saved, or None."""
        number = len(self.texts) if len(self.used) > MOST_TEXTS else 0
        room = f"a model file has room for {MOST_TEXTS:,}. Join some, or leave them out."
        return f"{number:,} columns are text, and {room}" if number > MOST_TEXTS else None

    @property
    def only_text(self) -> Key | None:
        """The only used column if it is text, else None."""
        texts = self.texts
        return texts[0] if len(texts) == len(self.used) == 1 else None

    def with_field(self, changed: Field) -> Schema:
        return replace(self, fields=tuple(changed if spec.key == changed.key else spec for spec in self.fields))


# -- plans: how each column is read, and how that changes if later rows contradict the first ones

FARTHEST = 2.0**120
"""Units that a number may lie from its anchor: squares of that size can still be added, whatever the weights."""
LOOKED_AT = 1_024
"""Rows whose median is the anchor."""


class Anchor(NamedTuple):
    """Statistics are of `(x - at) * scale`; `scale` is a power of two, so that multiplication by it is exact."""

    at: float = 0.0
    scale: float = 1.0


NO_ANCHOR = Anchor()


def anchor_of(values: np.ndarray) -> Anchor:
    """Return the median of the first finite values, and a power of two that scales typical distances to about 1."""
    finite = values[np.isfinite(values)][:LOOKED_AT]
    if not len(finite):
        return NO_ANCHOR
    at, scale = anchors_of(finite[:, None])
    return Anchor(float(at[0]), float(scale[0]))


def log_anchor_of(values: np.ndarray) -> Anchor:
    return anchor_of(np.log(values[np.isfinite(values) & (values > 0)][:LOOKED_AT]))


def anchors_of(block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # Divide by the largest power of two: differences of numbers near 1e308 would overflow.
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
    """Return the median of each row of finite numbers; `np.median` would import masked arrays."""
    last = rows.shape[1] // 2
    first = last - 1 + rows.shape[1] % 2
    found: np.ndarray = np.partition(rows, sorted({first, last}), axis=1)[:, [first, last]].mean(axis=1)
    return found


class Becomes(StrEnum):
    """How a column is read after a row contradicted its guessed kind."""

    WORDS = "categories spelt as text"
    NUMBERS = "numbers"
    AMOUNTS = "numbers of 0 or more"
    LEVELS = "categories"
    WIDE = "many categories"
    CAPPED = "the most frequent categories and one for the rest"
    FARTHER = "numbers in larger units"


class Contradiction(Exception):
    """A row contradicts the guessed kind of its column: start again with `table.widened(this)`."""

    def __init__(self, key: Key, row: int, reason: str, becomes: Becomes) -> None:
        super().__init__(f"{wording.column(key)}, row {row}: {reason}")
        self.key = key
        self.row = row
        self.reason = reason
        self.becomes = becomes

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.key, self.row, self.reason, self.becomes)


class ColumnPlan(Struct, frozen=True):
    """One column: its field, and how its cells are read.

    `as_numbers`: categories are numbers, even if cells are text. `constant`: the only value so far. `plain` and
    `logged` are anchors of the numbers and of their logarithms. `capped`: the only categories with a code each.
    `number_like`: its first cells were numbers, so that it may become real. `extra`: categories that exist in addition
    to those `seen` in the first rows, in order. `most_levels`: how many categories have a code each. `guessed`: earlier
    rows suggested its kind, which stays fixed: a number that it cannot hold is read as missing.
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
        """Add the anchors of these numbers, unless the plan has anchors."""
        logged = log_anchor_of(values) if self.logged == NO_ANCHOR else self.logged
        return replace(self, plain=self.plain or anchor_of(values), logged=logged)

    def as_kind(self, kind: Kind, why: str, *, used: bool = True) -> ColumnPlan:
        """Read the column as another kind, with the anchor of that kind."""
        anchor = self.logged if kind is Kind.POSITIVE else self.plain or NO_ANCHOR
        constant = kind is Kind.CONSTANT and self.constant is not None
        derived = Derived(constant=self.constant) if constant else None
        changed = replace(
            self.field, kind=kind, why=why, used=used, anchor=anchor.at, scale=anchor.scale, derived=derived
        )
        return replace(self, field=changed)

    def after(self, why: Contradiction) -> ColumnPlan:
        if self.is_tick_box:
            return replace(self, extra=()).after(why)
        reason = f"{why.reason} (row {why.row})"
        if why.becomes is Becomes.WORDS:
            return replace(self.as_kind(Kind.CATEGORICAL, reason), as_numbers=False, number_like=False, seen=())
        if why.becomes in (Becomes.NUMBERS, Becomes.AMOUNTS):
            kind = Kind.REAL if why.becomes is Becomes.NUMBERS else Kind.AMOUNT
            return replace(self.as_kind(kind, reason), as_numbers=False)
        if why.becomes is Becomes.WIDE:
            return replace(self, field=replace(self.field, wide=True))
        if isinstance(self.constant, float):
            return self.as_kind(Kind.REAL, reason)
        as_numbers = not isinstance(self.constant, str | bool)
        return replace(self.as_kind(Kind.CATEGORICAL, reason), as_numbers=as_numbers, number_like=as_numbers)

    @property
    def is_tick_box(self) -> bool:
        return BLANK in self.extra and not self.field.declared
