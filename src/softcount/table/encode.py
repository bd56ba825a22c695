"""Encoding of cells as codes, numbers and word counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from threading import Lock
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core import remedies
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.frames import CellType, arrow_of, cell_type, flat, number_of
from softcount.sources.source import Source, TablePiece, Wanted
from softcount.table.cell_values import MissingWords, distinct, numbers, refuse_infinite, without
from softcount.table.chunk import UNKNOWN, Chunk, Settled
from softcount.table.levels import LevelCoder, Recoder, SideColumns, order_codes, row_of
from softcount.table.schema import Becomes, ColumnPlan, Contradiction, Key, Kind, Schema
from softcount.table.text_columns import TextColumn, TextPiece, WordGathering, WordReader


class CodedChunk(Struct, frozen=True):
    """A chunk, and its missing and unseen cells by column.

    `outside` are the rows, counted from 0, with a number that the column's guessed kind cannot hold.
    """

    chunk: Chunk
    missing: dict[Key, int] = field(default_factory=dict)
    unseen: dict[Key, int] = field(default_factory=dict)
    outside: dict[Key, np.ndarray] = field(default_factory=dict)
    weight: float = 0.0
    unknown_labels: int = 0


Bounds = tuple[Callable[[np.ndarray], np.ndarray], str, str, str]
BOUNDS: dict[Kind, Bounds] = {
    Kind.COUNT: (
        lambda x: (x < 0) | (x != np.floor(x)) & ~np.isnan(x), "a count", "not a count", "Counts are 0, 1, 2, ...",
    ),
    Kind.POSITIVE: (lambda x: x <= 0, "positive", "not above zero", "Positive numbers are above zero."),
    Kind.AMOUNT: (lambda x: x < 0, "an amount", "below zero", "Amounts are 0 or above."),
}  # fmt: skip
"""Kinds with bounds: a test for numbers outside, the name of such a column, the error in a number, and the rule."""


def without_outside(
    reals: np.ndarray, plans: Iterable[tuple[int, ColumnPlan]], start: int
) -> tuple[np.ndarray, dict[Key, np.ndarray]]:
    """Replace numbers that a guessed kind cannot hold by NaN, and return their rows; the array is copied if changed.

    A declared kind raises an error. A guess that can still be changed raises a contradiction.
    """
    outside: dict[Key, np.ndarray] = {}
    for slot, plan in plans:
        is_outside, is_a, wrong, right = BOUNDS[plan.field.kind]
        rows = np.flatnonzero(is_outside(reals[:, slot]))
        if not len(rows):
            continue
        if not plan.guessed:
            row, value = start + int(rows[0]) + 1, float(reals[rows[0], slot])
            if not plan.field.declared:
                amount = plan.field.kind is Kind.POSITIVE and value == 0
                becomes = Becomes.AMOUNTS if amount else Becomes.NUMBERS
                raise Contradiction(plan.key, row, f"{wrong}: {value}", becomes)
            real, ignore = remedies.kind(plan.key, "real"), remedies.kind(plan.key, "ignore")
            raise DataError(
                f"{wording.column(plan.key)} is {is_a}, but row {row} holds {value}. {right} "
                f"Declare it real: {real}, or leave it out: {ignore}"
            )
        reals = reals if outside else reals.copy()
        reals[rows, slot] = np.nan
        outside[plan.key] = rows + start
    return reals, outside


def check_constant(plan: ColumnPlan, column: Any, start: int, words: MissingWords) -> None:
    """Raise a contradiction if a column that had one value in the first rows has another value here."""
    column = flat(column)
    if cell_type(column.type) is CellType.TIME:
        column = arrow_of(numbers(column, words, plan.key, start))
    values, places = distinct(column, words.among(plan.field.missing))
    for place, value in enumerate(values):
        level = number_of(value.strip()) if isinstance(value, str) and not isinstance(plan.constant, str) else value
        if value is not None and (level is None or level != plan.constant) and level not in words.numbers:
            reason = f"not always the same: {wording.cell(value)}"
            raise Contradiction(plan.key, row_of(places, place, start), reason, Becomes.LEVELS)


class Encoder:
    """Turns loaded rows into the arrays of a chunk."""

    coders: Mapping[Key, LevelCoder] = MappingProxyType({})

    def encode(self, piece: TablePiece, raw: Any) -> CodedChunk:
        raise NotImplementedError

    def without_documents(self) -> Encoder:
        """Return an encoder that holds no documents in memory."""
        return self

    def levels(self) -> dict[Key, Any]:
        """All categories met so far by column, including the known ones."""
        return {key: coder.vocabulary.levels for key, coder in self.coders.items()}


class ColumnEncoder(Encoder):
    """Encodes columns by their plans. If `closed`, the table is read for prediction and learns no categories.

    `located` has the column of the source for each key.
    """

    def __init__(
        self,
        plans: Sequence[ColumnPlan],
        coders: Mapping[Key, LevelCoder],
        words: MissingWords,
        located: Mapping[Key, Any],
        closed: bool,
    ) -> None:
        self.coders, self.words, self.located, self.closed = coders, words, located, closed
        self.numeric: list[ColumnPlan] = []
        self.bounded: list[tuple[int, ColumnPlan]] = []
        self.narrow: list[LevelCoder] = []
        self.wide: list[LevelCoder] = []
        for plan in plans:
            if plan.key in coders:
                (self.wide if plan.field.wide else self.narrow).append(coders[plan.key])
            elif plan.field.used and plan.field.kind.numeric:
                if plan.field.kind in BOUNDS:
                    self.bounded.append((len(self.numeric), plan))
                self.numeric.append(plan)


class ArrowEncoder(ColumnEncoder):
    """Encodes Arrow columns: files, frames and streams."""

    def __init__(self, plans: Sequence[ColumnPlan], texts: Mapping[Key, TextColumn], *coding: Any) -> None:
        super().__init__(plans, *coding)
        self.texts = texts
        self.constants = () if self.closed else tuple(filter(is_watched, plans))

    def without_documents(self) -> ArrowEncoder:
        found = copy(self)
        found.texts = {key: text.without_documents() for key, text in self.texts.items()}
        return found

    def encode(self, piece: TablePiece, raw: Mapping[Key, Any]) -> CodedChunk:
        """Encode one piece; a planned column that is absent is missing in every row."""
        columns = {key: raw[name] for key, name in self.located.items() if name in raw}
        for plan in self.constants:
            check_constant(plan, columns[plan.key], piece.start, self.words)
        missing: dict[Key, int] = {}
        unseen: dict[Key, int] = {}
        reals = np.empty((piece.n_rows, len(self.numeric)))
        for slot, plan in enumerate(self.numeric):
            column, spec = columns.get(plan.key), plan.field
            if column is None:
                reals[:, slot] = np.nan
            else:
                padded, words = spec.declared or self.closed, self.words.among(spec.missing)
                reals[:, slot] = numbers(column, words, spec.key, piece.start, padded=padded, form=spec.written)
            missing[spec.key] = int(np.count_nonzero(np.isnan(reals[:, slot])))
        reals, outside = without_outside(reals, self.bounded, piece.start)
        narrow = _levels(self.narrow, columns, piece, missing, unseen, np.uint8)
        wide = _levels(self.wide, columns, piece, missing, unseen, np.int32)
        bags = []
        for key, text in self.texts.items():
            bags.append(text.bag(piece, key, columns.get(key), self.words))
            entries = np.diff(bags[-1].indptr)  # 0 without a document, 1 for a document without a known word
            missing[key] = int(np.count_nonzero(entries == 0))
            unseen[key] = int(np.count_nonzero(entries == 1)) if self.closed else 0
        return CodedChunk(Chunk(piece.start, piece.n_rows, reals, narrow, wide, tuple(bags)), missing, unseen, outside)


def _levels(
    coders: Sequence[LevelCoder],
    columns: Mapping[Key, Any],
    piece: TablePiece,
    missing: dict[Key, int],
    unseen: dict[Key, int],
    kind: type[np.integer[Any]],
) -> np.ndarray:
    """Return a column of codes from each coder, and count missing cells and cells unseen by a closed vocabulary."""
    out = np.zeros((len(coders), piece.n_rows), dtype=kind)
    for slot, coder in enumerate(coders):
        key = coder.plan.key
        if key in columns:
            codes = coder.codes(columns[key], piece.start)
            unseen[key] = int(np.count_nonzero(codes == coder.vocabulary.beyond)) if coder.closed else 0
            out[slot] = codes
        missing[key] = int(piece.n_rows - np.count_nonzero(out[slot]))
    return out.T.copy()


def is_watched(plan: ColumnPlan) -> bool:
    """Whether a column was left out because it seemed constant, so that later rows must be checked."""
    return plan.field.kind is Kind.CONSTANT and not plan.field.used and not plan.field.declared


class BagEncoder(Encoder):
    """Wraps the rows of a sparse matrix as chunks."""

    def encode(self, piece: TablePiece, rows: Any) -> CodedChunk:
        nothing = np.empty((piece.n_rows, 0))
        if not np.isfinite(rows.data).all():
            at = int(np.argmax(~np.isfinite(rows.data)))
            row = int(np.searchsorted(rows.indptr, at, side="right"))
            raise DataError(
                f"column {int(rows.indices[at])}, row {piece.start + row}: {rows.data[at]} in a sparse table. "
                "Its cells are finite numbers; leave out a cell that is not known."
            )
        codes, wide = nothing.astype(np.uint8), nothing.astype(np.int32)
        return CodedChunk(Chunk(piece.start, piece.n_rows, nothing, codes, wide, (rows,)))


class DenseEncoder(ColumnEncoder):
    """Encodes rows of one array of numbers: as views if possible, else with one conversion per chunk.

    If `checked`, every number is read once to find infinite and missing ones. An engine whose own sums would reveal
    them can skip this: reading 400 MB a second time costs as much as a naive Bayes fit.
    """

    def __init__(self, array: np.ndarray, checked: bool, *coding: Any) -> None:
        super().__init__(*coding)
        self.checked = checked
        self.at = [self.located[plan.key] for plan in self.numeric]
        self.as_is = self.at == list(range(array.shape[1])) and array.dtype == np.float64 and not self.words.numbers
        whole = array.dtype.kind in "iub" and not self.words.numbers
        places = [self.located[coder.plan.key] for coder in self.narrow]
        self.recoder = Recoder(array, self.narrow, places) if self.narrow and whole else None

    def encode(self, piece: TablePiece, block: np.ndarray) -> CodedChunk:
        missing: dict[Key, int] = {}
        unseen: dict[Key, int] = {}
        reals = block
        if not self.as_is:
            reals = without(np.ascontiguousarray(block[:, self.at], dtype=np.float64), self.words.numbers)
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow of the sum only costs a second check
            finite = math.isfinite(float(reals.sum())) if self.checked or not self.as_is else True
        if not finite:
            for slot, plan in enumerate(self.numeric):
                refuse_infinite(reals[:, slot], plan.key, piece.start)
                missing[plan.key] = int(np.count_nonzero(np.isnan(reals[:, slot])))
        reals, outside = without_outside(reals, self.bounded, piece.start)
        if self.recoder is not None:
            codes, counts = self.recoder.codes(block, piece.start)
            unseen.update(zip((coder.plan.key for coder in self.narrow), counts, strict=True))
        else:
            codes = _levels(self.narrow, self._columns(self.narrow, block), piece, missing, unseen, np.uint8)
        wide = _levels(self.wide, self._columns(self.wide, block), piece, missing, unseen, np.int32)
        return CodedChunk(Chunk(piece.start, piece.n_rows, reals, codes, wide), missing, unseen, outside)

    def _columns(self, coders: Sequence[LevelCoder], block: np.ndarray) -> dict[Key, Any]:
        return {coder.plan.key: arrow_of(block[:, self.located[coder.plan.key]]) for coder in coders}


# -- tasks


class RowCoding(Struct, frozen=True):
    """How rows become chunks: the encoder of their columns, and the columns of labels and weights."""

    encoder: Encoder
    sides: SideColumns


class ChunkTask(Struct, frozen=True):
    """Encodes one piece when called, in any thread. `labels` and `weights` are those of its rows, unless columns."""

    piece: TablePiece
    coding: RowCoding
    tally: Tally
    labels: np.ndarray | None = None
    weights: np.ndarray | None = None

    def __call__(self) -> Chunk:
        found = self.coded()
        self.tally.add(found)
        return found.chunk

    def coded(self) -> CodedChunk:
        piece, sides = self.piece, self.coding.sides
        raw = piece.load()
        found = self.coding.encoder.encode(piece, raw)
        labels = sides.labels_in(raw, piece.start, self.labels)
        weights = self.weights if sides.weight is None else sides.weights_in(raw, piece.start)
        unknown = 0 if labels is None else int(np.count_nonzero(labels == UNKNOWN))
        weight = float(piece.n_rows if weights is None else weights.sum())
        chunk = replace(found.chunk, labels=labels, weights=weights)
        return replace(found, chunk=chunk, weight=weight, unknown_labels=unknown)


class Tally:
    """Counts of one pass; a chunk read twice counts once.

    `watch` is called once with every chunk, in any order, one at a time.
    """

    def __init__(self, watch: Callable[[Chunk], None] | None = None) -> None:
        self._lock, self._watch = Lock(), watch
        self._seen: set[int] = set()
        self.missing: dict[Key, int] = {}
        self.unseen: dict[Key, int] = {}
        self.outside: dict[Key, list[np.ndarray]] = {}
        self.unknown_labels = 0
        self.weight = 0.0

    def add(self, found: CodedChunk | PartFacts, start: int = 0) -> None:
        """Add the counts of a chunk, or of a part whose rows begin at `start`."""
        with self._lock:
            if isinstance(found, CodedChunk):
                if found.chunk.start in self._seen:
                    return
                self._seen.add(found.chunk.start)
                if self._watch is not None:
                    self._watch(found.chunk)
            self.unknown_labels += found.unknown_labels
            self.weight += found.weight
            for totals, counts in ((self.missing, found.missing), (self.unseen, found.unseen)):
                for key, count in counts.items():
                    totals[key] = totals.get(key, 0) + count
            for key, rows in found.outside.items():
                self.outside.setdefault(key, []).append(rows + start)


# -- parts of a table that are encoded on other machines: chunks stay there, and facts come back


class PartFacts(Struct, frozen=True):
    """Facts of a pass over a part; categories in order of first occurrence, including the known ones."""

    n_rows: int = 0
    weight: float = 0.0
    unknown_labels: int = 0
    missing: Mapping[Key, int] = field(default_factory=dict)
    unseen: Mapping[Key, int] = field(default_factory=dict)
    outside: Mapping[Key, np.ndarray] = field(default_factory=dict)
    levels: Mapping[Key, Any] = field(default_factory=dict)
    labels: list[Any] | None = None
    digest: str | None = None
    """Digest of the cells, if they may differ when the part is read again."""


def read_part(
    source: Source, coding: RowCoding, wanted: Mapping[Key, Wanted], keep: Callable[[Chunk], Any]
) -> PartFacts:
    """Read a part and return its facts; `keep` is called with each chunk.

    Categories are coded in order of first occurrence, and rows are numbered from the start of the part.
    """
    tally, rows = Tally(), 0
    for piece in source.pieces(wanted):
        chunk = ChunkTask(piece, coding, tally)()
        keep(chunk)
        rows += chunk.n_rows
    labels = None if coding.sides.labels is None else coding.sides.labels.vocabulary.levels
    outside = {key: np.sort(np.concatenate(rows)) for key, rows in tally.outside.items()}
    counts = rows, tally.weight, tally.unknown_labels, tally.missing, tally.unseen, outside
    return PartFacts(*counts, coding.encoder.levels(), labels)


class FinalOrder(Struct, frozen=True):
    schema: Schema
    labels: list[Any] | None

    def settled(self, chunk: Chunk, facts: PartFacts, start: int) -> Chunk:
        remap = {key: order_codes(own, self.schema[key].levels) for key, own in facts.levels.items()}
        labels = None
        if self.labels is not None and facts.labels is not None:
            labels = order_codes(facts.labels, self.labels)[1:] - 1
        found = Settled(self.schema, remap, [], labels).recoded(chunk)
        return replace(found, start=chunk.start + start)


# -- words of such parts: each part gathers its words, and the table chooses among all

WORDS = "words"
"""The key of a part's words in its facts."""


class WordsEncoder(Encoder):
    """Gathers the words of rows; its chunks are empty."""

    def __init__(self, reader: WordReader) -> None:
        self.reader = reader
        self.words = WordGathering({key: reading for key, (_, reading) in reader.readings.items()})

    def encode(self, piece: TablePiece, raw: Any) -> CodedChunk:
        _, labelled, blocks = self.reader(TextPiece(piece._replace(load=lambda: raw), None))
        self.words.add(labelled, blocks)
        nothing = np.empty((piece.n_rows, 0))
        return CodedChunk(Chunk(piece.start, piece.n_rows, nothing, nothing.astype(np.uint8), nothing.astype(np.int32)))

    def levels(self) -> dict[Key, Any]:
        return {WORDS: self.words}
