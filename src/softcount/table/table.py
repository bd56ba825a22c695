"""A table: a source with its schema, encoded in chunks."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.errors import DataError
from softcount.pictures.inline_html import boxed, small_table
from softcount.pictures.text import printable
from softcount.sources import wording
from softcount.sources.frames import DenseSource, SparseSource, level_of
from softcount.sources.source import Source, TablePiece, Wanted
from softcount.table import encode, text_columns
from softcount.table.cell_values import MissingWords
from softcount.table.chunk import Chunk, Settled, reach_of
from softcount.table.encode import ChunkTask, CodedChunk, FinalOrder, PartFacts, RowCoding, Tally
from softcount.table.labels import NUMBERED_CLASSES, no_weight, numeric_target, refuse_many_numbers
from softcount.table.levels import LevelCoder, SideColumns, Vocabulary, frequent_levels, in_order, order_codes
from softcount.table.schema import (
    FARTHEST,
    LOOKED_AT,
    OTHER,
    Anchor,
    Becomes,
    ColumnPlan,
    Contradiction,
    Field,
    Key,
    Kind,
    Schema,
    anchor_of,
    apart,
    log_anchor_of,
)
from softcount.table.text_columns import CELLS, Map, TextColumn

ENOUGH = 3
"""Number of similar notes on columns from which they are merged into one."""
NAMED = 3
"""Most columns that such a note names."""
ALIKE = (
    (re.compile(r"column (?P<name>.+?) (?P<more>is always .*): left out"), "never vary and are left out"),
    (
        re.compile(r"column (?P<name>.+?) (?P<more>is .*) or missing: read as a tick box, missing is a category"),
        "hold one value or none and are read as tick boxes, missing is a category",
    ),
    (re.compile(r"column (?P<name>.+?) has no values(?P<more>): left out"), "have no values and are left out"),
    (
        re.compile(r"column (?P<name>.+?) differs in every row: left out as an identifier(?P<more>) \(.*\)"),
        "differ in every row and are left out as identifiers",
    ),
)


def grouped_notes(notes: Sequence[str]) -> list[str]:
    """Return the notes without repeats; several similar notes on columns are merged into one.

    >>> grouped_notes([f"column {name!r} is always 1: left out" for name in "abc"])
    ["3 columns never vary and are left out: 'a' (always 1), 'b' (always 1), 'c' (always 1)"]
    """
    kept = list(dict.fromkeys(notes))
    for pattern, summary in ALIKE:
        found = {}
        for note in kept:
            match = pattern.fullmatch(note)
            if match is not None:
                found[note] = match
        if len(found) >= ENOUGH:
            matches = list(found.values())
            names = [
                f"{match['name']} ({match['more'].removeprefix('is ')})" if match["more"] else match["name"]
                for match in matches
            ]
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            first, shared = next(iter(found)), f"{len(names)} columns {summary}: {', '.join(names[:NAMED])}{more}"
            kept = [shared if note == first else note for note in kept if note == first or note not in found]
    return kept


MOST_HELD = 1 << 25
"""Bytes of chunks that a table keeps for the next pass; rows of arrays are in memory anyway."""
Watch = Callable[["Table"], Callable[[Chunk], None] | None]
"""Called when a pass of a table begins; returns a function that is called with every chunk, or None."""
MetThere = Callable[["Table", RowCoding, Mapping[Key, Wanted]], Sequence[PartFacts]]
"""Reads the parts of a table on other machines by a coding, and returns their facts."""
OUTSIDE = "that the kind guessed for their column cannot hold were treated as unknown"


class Sides(Struct, frozen=True):
    """The labels and weights of the rows: columns (`target`, `weight`) or arrays. `floats`: classes are floats."""

    target: ColumnPlan | None = None
    floats: bool = False
    weight: Key | None = None
    labels: np.ndarray | None = None
    weights: np.ndarray | None = None

    def part(self, name: str, piece: TablePiece) -> np.ndarray | None:
        """Return the "labels" or "weights" of a piece's rows if they came as an array, else None."""
        whole: np.ndarray | None = getattr(self, name)
        end = piece.start + piece.n_rows
        if whole is not None and len(whole) < end:
            refuse_unequal(name, whole, end)
        return None if whole is None else whole[piece.start : end]

    @property
    def gaps(self) -> bool:
        """Whether some rows may have no label; True for any column of labels."""
        return self.target is not None or (self.labels is not None and bool((self.labels < 0).any()))


def refuse_unequal(name: str, side: Sequence[Any] | np.ndarray | None, rows: int | None) -> None:
    if side is not None and rows is not None and len(side) != rows:
        raise DataError(
            f"Found input variables with inconsistent numbers of samples: {len(side)} {name} for a table of "
            f"{rows} rows. Give one per row."
        )


class TableParts(Struct, frozen=True):
    """The parts of a table: rows, how each column is read, and settings.

    `closed` is the schema of a table read for prediction, and `located` maps each of its fields to a column of the
    source. If not `checked`, arrays are passed on unread. `texts` are text columns that were read before.
    """

    source: Source
    plans: tuple[ColumnPlan, ...]
    words: MissingWords
    missing: tuple[str, ...]
    sides: Sides = Sides()
    notes: tuple[str, ...] = ()
    closed: Schema | None = None
    located: Mapping[Key, Key] | None = None
    checked: bool = True
    texts: Mapping[Key, TextColumn] = field(default_factory=dict)
    watch: Watch | None = None


class Table:
    """Rows that can be read as often as needed, in chunks that do not depend on batching or the number of threads.

    `notes` are remarks for the user: columns left out, read in another way, or not found. `keys` are the columns in
    order, including those left out, without labels and weights.
    """

    def __init__(self, parts: TableParts) -> None:
        self.parts, self.source, self.words, self.sides = parts, parts.source, parts.words, parts.sides
        self.plans, self.notes = list(parts.plans), list(parts.notes)
        self.closed, self.checked = parts.closed, parts.checked
        self.located: dict[Key, Any] = {} if parts.located is None else dict(parts.located)
        self.bag_width: int | None = self.source.width if isinstance(self.source, SparseSource) else None
        self._coders: dict[Key, LevelCoder] = {}
        self.keys: list[Key] = []
        fields, texts = [], []
        for plan in self.plans:
            spec = plan.field
            fields.append(spec)
            self.keys.append(spec.key)
            if parts.located is None:
                self.located[spec.key] = spec.key
            if spec.used and spec.kind.coded:
                self._coders[spec.key] = LevelCoder.of(plan, self.words, self.closed is not None)
            elif spec.used and spec.kind is Kind.TEXT:
                texts.append(plan)
        self.schema = self.closed or Schema(tuple(fields), parts.missing, parts.source.form)
        self._texts = text_columns.text_columns(texts, self.closed is not None, parts.texts) if texts else {}
        self.has_texts = bool(texts)
        target = None if self.sides.target is None else LevelCoder.of(self.sides.target, self.words)
        self._side_columns = SideColumns(target, self.sides.weight, self.words)
        self._tally = Tally()
        self._deferred: dict[Key, int] | None = None
        self._gathered = False
        self._held: list[CodedChunk] | None = None
        self._in_order: tuple[Settled, list[Chunk]] | None = None

    def __repr__(self) -> str:
        rows = "a stream of rows" if self.n_rows is None else f"{self.n_rows:,} rows"
        used = ", ".join(f"{printable(spec.key)[:40]} ({spec.kind})" for spec in self.schema.used)
        left = len(self.schema.fields) - len(self.schema.used)
        return f"<{type(self).__name__} of {rows}: {used}{f'; {left:,} columns left out' if left else ''}>"

    def _repr_html_(self) -> str:
        rows = "a stream of rows" if self.n_rows is None else f"{self.n_rows:,} rows"
        lines = [(spec.key, spec.kind if spec.used else "left out", spec.why) for spec in self.schema.fields]
        return boxed("Table", f"{rows}, {len(lines):,} columns", [small_table(("column", "kind", "why"), lines)])

    @property
    def all_notes(self) -> list[str]:
        return grouped_notes(self.notes)

    @property
    def n_rows(self) -> int | None:
        """The number of rows; None for a stream before its end."""
        return self.source.n_rows

    @property
    def n_words(self) -> int:
        """Distinct words of each document, summed over documents; 0 before they are gathered."""
        if not self._texts:
            return 0
        return sum(text.chosen.cells for text in self._texts.values() if text.chosen is not None)

    @property
    def unseen(self) -> dict[Key, int]:
        """Cells with categories that are not in the schema, per column, in the last pass."""
        return {spec.key: self._tally.unseen.get(spec.key, 0) for spec in self.schema.used}

    @property
    def outside(self) -> dict[Key, np.ndarray]:
        """By column, the rows of the last pass (from 0) whose number its guessed kind cannot hold."""
        return {key: np.sort(np.concatenate(rows)) for key, rows in self._tally.outside.items()}

    @property
    def outside_note(self) -> str:
        counts = {key: len(rows) for key, rows in self.outside.items()}
        where = ", ".join(f"{key!r} ({count:,})" for key, count in counts.items())
        return f"{sum(counts.values()):,} numbers {OUTSIDE}: {where}" if counts else ""

    @property
    def unknown_labels(self) -> int:
        return self._tally.unknown_labels

    @property
    def missing(self) -> dict[Key, int]:
        """Missing cells per column in the last pass; those of an unchecked array are counted on first access."""
        if not self.checked and self._deferred is None:
            self._deferred = {}
            for piece in self.source.pieces({}):
                block = piece.load()
                counts = np.count_nonzero(np.isnan(block), axis=0) if block.dtype.kind == "f" else []
                for key, place in self.located.items() if len(counts) else ():
                    self._deferred[key] = self._deferred.get(key, 0) + int(counts[place])
        found = {**self._tally.missing, **(self._deferred or {})}
        return {spec.key: found.get(spec.key, 0) for spec in self.schema.used}

    def unchecked(self) -> Table:
        """Return the table for an engine that detects infinite numbers itself: arrays are passed on unread."""
        return self._again(checked=False) if self.checked and isinstance(self.source, DenseSource) else self

    def watched(self, watch: Watch) -> Table:
        return self._again(watch=watch)

    def _again(self, **changed: Any) -> Table:
        now: dict[str, Any] = {"plans": tuple(self.plans), "notes": tuple(self.notes), "texts": self._texts}
        return Table(replace(self.parts, **{**now, **changed}))

    def chosen(self, plans: Mapping[Key, tuple[ColumnPlan, str]]) -> Table:
        """Return the table with other plans for some numeric columns, each with a reason."""
        changed = {key: replace(plan, field=replace(plan.field, why=why)) for key, (plan, why) in plans.items()}
        return self._again(plans=tuple(changed.get(plan.key, plan) for plan in self.plans))

    def texts_read(self, missing: tuple[str, ...]) -> Mapping[Key, TextColumn]:
        """Return the text columns that were read, for a table of the same rows with the same missing words."""
        read = self.closed is None and missing == self.schema.missing
        return self._texts if read and all(text.among is None for text in self._texts.values()) else {}

    def _wanted(self) -> dict[Key, Wanted]:
        wanted: dict[Key, Wanted] = {}
        for plan in self.plans:
            spec = plan.field
            if spec.key in self.located and (spec.used or (self.closed is None and encode.is_watched(plan))):
                if spec.key in self._texts:
                    wanted |= {} if self._texts[spec.key].complete else {self.located[spec.key]: CELLS}
                    continue
                padded = spec.declared or self.closed is not None
                # One cell that Arrow cannot parse would make it reject all columns of a chunk.
                spelt = spec.missing or (spec.written is not None and spec.written.is_text)
                numeric = spec.used and spec.kind.numeric and not spelt
                wanted[self.located[spec.key]] = Wanted(numeric, padded)
        if self.sides.target is not None:
            wanted[self.sides.target.key] = Wanted(numeric=False)
        if self.sides.weight is not None:
            wanted[self.sides.weight] = Wanted(numeric=True, padded=True)
        return wanted

    def gather_words(self, run: Map = map, labelled: bool = False, there: MetThere | None = None) -> None:
        """Read the text columns once to find their words; if `labelled`, only words of labelled rows.

        `run` is used as `map`. `there` reads rows on other machines.
        """
        if not self._texts:
            return
        new = {key: text for key, text in self._texts.items() if text.words is None}
        if new:
            among = labelled and self.sides.gaps
            # without any label, use the words of all rows
            if not (among and self._gather(new, run, self._side_columns, there)):
                self._gather(new, run, None, there)
        if self.closed is None and not self._gathered:
            self._gathered = True
            self.plans = text_columns.with_words(self.plans, self._texts)
            self.schema = replace(self.schema, fields=tuple(plan.field for plan in self.plans))
            notes = text_columns.notes_on(self.plans, self._texts)
            self.notes += [note for note in notes if note not in self.notes]

    def _gather(
        self, new: Mapping[Key, TextColumn], run: Map, sides: SideColumns | None, there: MetThere | None
    ) -> bool:
        readings = {key: (self.located[key], text.reading) for key, text in new.items()}
        reader = text_columns.WordReader(readings, self.words, sides)
        if there is not None:
            coding = RowCoding(encode.WordsEncoder(reader), SideColumns(None, None, self.words))
            gathered = text_columns.WordGathering({key: text.reading for key, text in new.items()})
            for part in there(self, coding, reader.wanted):
                if part.levels:
                    gathered.join(part.levels[encode.WORDS])
            return gathered.settle(new, {}, complete=False)
        given = Sides() if sides is None else self.sides
        pieces = self.source.pieces(reader.wanted)
        parts = (text_columns.TextPiece(piece, given.part("labels", piece)) for piece in pieces)
        return text_columns.gather(new, reader, parts, run)

    def tasks(self) -> Iterator[ChunkTask]:
        """Yield one task per chunk, in row order; each may be called in any thread, and reads its own rows."""
        self.gather_words()
        self._tally = tally = Tally(None if self.parts.watch is None else self.parts.watch(self))
        wanted = self._wanted()
        pieces = self.source.pieces(wanted)
        if self._texts and not wanted and all(text.complete for text in self._texts.values()):
            held = sorted(next(iter(self._texts.values())).held.items())
            pieces = (TablePiece(start, block.n_documents, dict) for start, block in held)
        for piece in pieces:
            labels, weights = self.sides.part("labels", piece), self.sides.part("weights", piece)
            yield ChunkTask(piece, self._coding, tally, labels, weights)
        refuse_unequal("labels", self.sides.labels, self.n_rows)
        refuse_unequal("weights", self.sides.weights, self.n_rows)

    def chunks(self, run: Map = map) -> Iterator[Chunk]:
        """Yield all chunks in row order, read with `run` as `map`. A small table is kept in memory."""
        self.gather_words(run)
        if self._held is not None:
            self._tally = Tally()
            for found in self._held:
                self._tally.add(found)
                yield found.chunk
            return
        room = -1 if self.holds_rows or self._texts else MOST_HELD
        held: list[CodedChunk] = []
        for found in run(ChunkTask.coded, self.tasks()):
            self._tally.add(found)
            room -= found.chunk.reals.nbytes + found.chunk.codes.nbytes + found.chunk.wide.nbytes
            held = [*held, found] if room >= 0 else []
            yield found.chunk
        self._held = held if room >= 0 else None

    def in_order(self, chunks: Iterable[Chunk], settled: Settled) -> Iterable[Chunk]:
        """Return all chunks of a pass in settled codes; the result is kept if the chunks are in memory."""
        if self._in_order is not None and settled.moves_alike(self._in_order[0]):
            return self._in_order[1]
        if self._held is None:
            return map(settled.recoded, chunks)
        self._in_order = settled, [settled.recoded(chunk) for chunk in chunks]
        return self._in_order[1]

    @property
    def holds_rows(self) -> bool:
        """Whether its rows are in memory as an array."""
        return isinstance(self.source, DenseSource | SparseSource)

    def coding_elsewhere(self) -> tuple[RowCoding, dict[Key, Wanted]]:
        """Return the coding of parts on other machines and the columns they read; this begins a pass."""
        self._tally = Tally()
        own = self._coding.encoder.without_documents()  # documents in memory are not sent
        return replace(self._coding, encoder=own), self._wanted()

    def absorb_parts(self, facts: Sequence[PartFacts], starts: Sequence[int]) -> None:
        """Add the facts of parts that start at these rows, in the order of the parts."""
        labels = self._side_columns.labels
        for own, start in zip(facts, starts, strict=True):
            for coder, levels in [*((self._coders[key], own.levels[key]) for key in own.levels), (labels, own.labels)]:
                if coder is not None and levels is not None:
                    coder.learn(levels, start)
            self._tally.add(own, start)
        self.source.n_rows = sum(own.n_rows for own in facts)

    def final_order(self, settled: Settled) -> FinalOrder:
        coder = self._side_columns.labels
        return FinalOrder(settled.schema, None if coder is None else in_order(coder.vocabulary.levels))

    @cached_property
    def _coding(self) -> RowCoding:
        coding = self._coders, self.words, self.located, self.closed is not None
        if isinstance(self.source, SparseSource):
            encoder: encode.Encoder = encode.BagEncoder()
        elif isinstance(self.source, DenseSource):
            encoder = encode.DenseEncoder(self.source.array, self.checked, self.plans, *coding)
        else:
            encoder = encode.ArrowEncoder(self.plans, self._texts, *coding)
        return RowCoding(encoder, self._side_columns)

    def settle(self, two_levels: Collection[Key] = (), classes: Sequence[Any] | None = None) -> Settled:
        """Return categories and classes in order after a full pass, and the new code of each old code.

        Columns in `two_levels` always have two categories, even if only one of yes and no occurs. `classes` are given
        if labels were coded in their order.
        """
        if self.sides.weight is not None and self._tally.weight == 0:
            raise no_weight()
        remap: dict[Key, np.ndarray] = {}
        fields = []
        for plan in self.plans:
            spec = plan.field
            if plan.key in self._coders:
                levels = self._coders[plan.key].vocabulary.levels
                ordered = levels if self.closed is not None else in_order(levels, plan.capped is not None)
                remap[plan.key] = order_codes(levels, ordered)
                spec = replace(spec, levels=tuple(ordered))
            fields.append(spec)
        changed = bool(remap) and self.closed is None
        schema = replace(self.schema, fields=tuple(fields)) if changed else self.schema
        found, order = self._settled_labels() if classes is None else (list(classes), None)
        target = self.sides.target
        if target is not None and not target.field.declared and len(found) > NUMBERED_CLASSES:
            refuse_many_numbers(found, target.key)
        settled = Settled(schema, remap, found, order, [self.outside_note] if self._tally.outside else [])
        return settled.with_opposites(two_levels) if two_levels else settled

    def _settled_labels(self) -> tuple[list[Any], np.ndarray]:
        """Return the sorted classes of a target column and their new codes; floats stay floats, as in scikit-learn."""
        coder = self._side_columns.labels
        if coder is None:
            return [], np.zeros(0, dtype=np.int32)
        levels = coder.vocabulary.levels
        ordered: list[Any] = in_order(levels)
        classes = [float(level) if self.sides.floats else level_of(level) for level in ordered]
        return classes, order_codes(levels, ordered)[1:] - 1

    def labels(self) -> list[Any]:
        """Return the label of every row, None if unknown; only the labels are read."""
        coder = self._side_columns.labels
        if coder is None:
            return []
        pieces = self.source.pieces({coder.plan.key: Wanted(numeric=False)})
        try:
            found = [self._side_columns.labels_in(piece.load(), piece.start) for piece in pieces]
        except Contradiction as why:
            return self.widened(why).labels()
        names, order = self._settled_labels()
        return [None if code < 0 else names[order[code]] for codes in found if codes is not None for code in codes]

    @property
    def has_weights(self) -> bool:
        return self.sides.weight is not None or self.sides.weights is not None

    def weights(self) -> Iterator[tuple[int, np.ndarray | None]]:
        """Yield the first row and the weights of every chunk, None for all ones; only the weights are read."""
        column = self.sides.weight
        for piece in self.source.pieces({} if column is None else {column: Wanted(numeric=True, padded=True)}):
            own = None if column is None else self._side_columns.weights_in(piece.load(), piece.start)
            yield piece.start, self.sides.part("weights", piece) if own is None else own

    def widened(self, why: Contradiction) -> Table:
        """Return the table with the contradicted column read in another way."""
        target = self.sides.target
        if target is not None and why.key == target.key:
            if why.becomes is Becomes.WORDS:
                return self._again(sides=replace(self.sides, target=target.after(why)))
            if why.becomes is Becomes.NUMBERS:
                raise numeric_target(target.key, f"row {why.row:,} holds {why.reason.rsplit(' ', 1)[-1]}")
            name = wording.column(target.key)
            raise DataError(f"{name} has more than {target.most_levels:,} classes. Name another target.")
        plan = next(plan for plan in self.plans if plan.key == why.key)
        if why.becomes is Becomes.FARTHER:
            chunks = (task() for task in self._alone(plan).tasks())
            off = (np.abs(chunk.reals[:, 0] - plan.field.anchor) for chunk in chunks)
            most = max(float(np.nanmax(part, initial=0.0)) for part in off)
            scale = min(plan.field.scale, float(np.ldexp(1.0, -np.frexp(most / FARTHEST)[1])))
            anchor = Anchor(plan.field.anchor, scale)
            return self._with_plan(replace(plan, field=replace(plan.field, scale=scale), plain=anchor))
        if why.becomes is Becomes.CAPPED:
            return self._capped(plan)
        changed = plan.after(why)
        if changed.field.kind.numeric and (plan.plain is None or plan.constant is not None):
            alone, found = self._alone(changed), np.zeros(0)
            for read in alone.tasks():
                column = read().reals[:, 0]
                found = np.concatenate([found, column[~np.isnan(column)]])
                if len(found) >= LOOKED_AT:
                    break
            anchored = replace(changed, plain=anchor_of(found), logged=log_anchor_of(found))
            changed = anchored.as_kind(changed.field.kind, changed.field.why)
        name = wording.column(changed.key)
        if why.becomes is Becomes.WIDE:
            return self._with_plan(changed, f"{name} has many categories: {why.reason}")
        return self._with_plan(changed, f"{name} is read as {changed.field.kind}: {changed.field.why}")

    def _with_plan(self, changed: ColumnPlan, note: str | None = None) -> Table:
        """Return the table with another plan of a column; `note` replaces all notes on that column."""
        plans = tuple(changed if plan.key == changed.key else plan for plan in self.plans)
        if note is None:
            return self._again(plans=plans)
        others = [old for old in self.notes if not old.startswith(wording.column(changed.key) + " ")]
        return self._again(plans=plans, notes=(*others, note))

    def _capped(self, plan: ColumnPlan) -> Table:
        """Return the table with the most frequent categories of a column, and one shared by all others."""
        try:
            kept = frequent_levels(partial(self._level_counts, plan), plan.most_levels, map(level_of, plan.extra))
        except Contradiction as another:  # a later row contradicts the kind of the column
            return self.widened(another)
        levels = kept.levels[: plan.most_levels]
        other = apart(OTHER, set(levels))
        more = f"{'at least ' if kept.at_least else ''}{kept.others:,}"
        note = (
            f"{wording.column(plan.key)} has more than {plan.most_levels:,} categories: the most frequent are kept, "
            f"the rarest {more} share {other!r}"
        )
        return self._with_plan(replace(plan, capped=(*levels, other), field=replace(plan.field, wide=True)), note)

    def within_reach(self, chunks: Iterable[Chunk]) -> Table:
        """Return this table if its numbers can be squared and added; otherwise raise a contradiction or an error."""
        parts = iter(chunks)
        reach = reach_of(self.schema, next(parts))
        for chunk in parts:
            reach += reach_of(self.schema, chunk)
        reach.check(self.schema)
        return self

    def _alone(self, plan: ColumnPlan, sides: Sides | None = None) -> Table:
        """Return a table of this column only, read in order: the first values must not depend on threads."""
        unused = {other.key: Field(other.key, Kind.IDENTIFIER, "", used=False) for other in self.plans}
        plans = (plan if other.key == plan.key else replace(other, field=unused[other.key]) for other in self.plans)
        return self._again(plans=tuple(plans), notes=(), sides=sides or Sides())

    def _level_counts(self, plan: ColumnPlan) -> Iterator[tuple[list[Any], np.ndarray]]:
        """Yield the categories of each chunk and their weights."""
        alone = self._alone(plan, replace(self.sides, target=None, labels=None))
        coder = alone._coders[plan.key]
        for task in alone.tasks():
            coder.vocabulary = Vocabulary(room=task.piece.n_rows)
            chunk = task()
            levels = coder.vocabulary.levels
            yield levels, np.bincount(chunk.wide[:, 0], chunk.weights, 1 + len(levels))[1:]


def document_at(table: Table, key: Key, row: int) -> str | None:
    """Return the text of the document at a row, counted from 0; None if it is missing."""
    name = table.located.get(key)
    if name is None:
        return None
    for piece in table.source.pieces({name: CELLS}):
        if piece.start <= row < piece.start + piece.n_rows:
            cell = piece.load()[name].slice(row - piece.start, 1)
            return text_columns.written(key, cell, table.words)
    return None
