"""A table that is open for reading: its schema as guessed or given, and its rows as chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.table import wording
from softcount.table.anchors import LOOKED_AT, anchor_of, log_anchor_of
from softcount.table.arrays import arrow_of
from softcount.table.chunk import Chunk
from softcount.table.columns import MissingWords, numbers
from softcount.table.dense import DenseSource
from softcount.table.dense_encode import DenseEncoder
from softcount.table.encode import (
    ArrowEncoder,
    BagEncoder,
    LevelCoder,
    is_watched,
    label_codes,
    vocabulary_for,
)
from softcount.table.labels import check_weight_values, class_levels, continuous, no_weight
from softcount.table.plan import Becomes, Contradiction, Plan
from softcount.table.schema import Field, Key, Kind, Schema
from softcount.table.source import Piece, Source, SparseSource, Wanted
from softcount.table.tally import Tally, add_counts
from softcount.table.texts import (
    CELLS,
    Map,
    TextColumn,
    gather,
    held_pieces,
    notes_on,
    refuse_wordless,
    text_columns,
    told_by,
    with_words,
)
from softcount.table.vocabulary import MOST_LEVELS, OTHER, in_order, order_codes

Task = Callable[[], Chunk]


@dataclass(frozen=True, slots=True)
class Settled:
    """What a full pass has shown: the schema with its levels in order, and the new code of every code handed out.

    `remap[key][old]` is the new code of a level; `classes` are the labels in order, `label_remap[old]` their new codes.
    """

    schema: Schema
    remap: dict[Key, np.ndarray]
    classes: list[Any]
    label_remap: np.ndarray


@dataclass(frozen=True, slots=True)
class Sides:
    """What a row has besides its features: where its label and weight come from."""

    target: Plan | None = None
    floats: bool = False
    weight: Key | None = None
    labels: np.ndarray | None = None
    weights: np.ndarray | None = None

    @property
    def gaps(self) -> bool:
        """Whether some rows may have no label; of a column one knows when it is read."""
        return self.target is not None or (self.labels is not None and bool((self.labels < 0).any()))


class Table:
    """Rows to be read, as often as needed, as chunks that are the same for any batching and any number of threads.

    `notes` say what its owner should know: columns left out, re-read otherwise, not found.
    """

    def __init__(
        self,
        source: Source,
        plans: Sequence[Plan],
        words: MissingWords,
        missing: tuple[str, ...],
        *,
        sides: Sides = Sides(),  # noqa: B008 - frozen
        notes: Sequence[str] = (),
        closed: Schema | None = None,
        located: Mapping[Key, Key] | None = None,
        checked: bool = True,
        texts: Mapping[Key, TextColumn] | None = None,
    ) -> None:
        self.source, self.plans, self.words, self.sides = source, list(plans), words, sides
        self.notes = list(notes)
        self.closed = closed
        self.checked = checked
        self.located: dict[Key, Any] = dict(located) if located is not None else {plan.key: plan.key for plan in plans}
        self._texts = text_columns(self.plans, closed is not None, texts or {})
        self.schema = closed or Schema(tuple(plan.field for plan in plans), missing)
        self.bag_width: int | None = source.width if isinstance(source, SparseSource) else None
        self._coders = {plan.key: self._coder(plan) for plan in self.plans if is_coded(plan)}
        self._label_coder = self._coder_of_labels()
        self._encoder: Any = None
        self._tally = Tally()
        self._deferred: dict[Key, int] | None = None
        self._gathered = False

    @property
    def keys(self) -> list[Key]:
        """The columns in order, those left out included; labels and weights are no columns."""
        return [spec.key for spec in self.schema.fields]

    @property
    def n_rows(self) -> int | None:
        """How many rows; None for a stream not read to its end yet."""
        return self.source.n_rows

    @property
    def n_words(self) -> int:
        """How many different words the documents have, added up over the documents; 0 before they are gathered."""
        return sum(text.chosen.cells for text in self._texts.values() if text.chosen is not None)

    @property
    def unseen(self) -> dict[Key, int]:
        """Cells per column, in the last pass, with levels that a settled schema does not have."""
        return {spec.key: self._tally.unseen.get(spec.key, 0) for spec in self.schema.used}

    @property
    def unknown_labels(self) -> int:
        """Rows without a label in the last pass."""
        return self._tally.unknown_labels

    @property
    def missing(self) -> dict[Key, int]:
        """Missing cells per column in the last pass."""
        counts = self._tally.missing if self.checked else {**self._tally.missing, **self._missing_in_array()}
        return {spec.key: counts.get(spec.key, 0) for spec in self.schema.used}

    def _missing_in_array(self) -> dict[Key, int]:
        """Missing cells of an array that was handed over unread, counted when someone asks."""
        if self._deferred is None:
            self._deferred = {}
            for piece in self.source.pieces({}):
                block = piece.load()
                counts = np.count_nonzero(np.isnan(block), axis=0) if block.dtype.kind == "f" else []
                add_counts(
                    self._deferred, {key: int(counts[place]) for key, place in self.located.items() if len(counts)}
                )
        return self._deferred

    def unchecked(self) -> Table:
        """The same table for an engine that notices infinite numbers itself: arrays are handed over unread."""
        return self._again(self.plans, self.notes, checked=not isinstance(self.source, DenseSource))

    def _again(self, plans: Sequence[Plan], notes: Sequence[str], **changed: Any) -> Table:
        kept: dict[str, Any] = {
            "sides": self.sides,
            "closed": self.closed,
            "located": self.located,
            "checked": self.checked,
            "texts": self._texts,
        }
        return Table(self.source, plans, self.words, self.schema.missing, notes=notes, **{**kept, **changed})

    def texts_read(self, missing: tuple[str, ...]) -> Mapping[Key, TextColumn]:
        """The columns of text as they were read, for a table of the same rows where the same cells are missing."""
        read = self.closed is None and missing == self.schema.missing
        return self._texts if read and all(text.among is None for text in self._texts.values()) else {}

    def _coder(self, plan: Plan) -> LevelCoder:
        closed = self.closed is not None
        return LevelCoder(plan, vocabulary_for(plan, closed), self.words, closed)

    def _coder_of_labels(self) -> LevelCoder | None:
        plan = self.sides.target
        return None if plan is None else LevelCoder(plan, vocabulary_for(plan, False), self.words)

    def _wanted(self) -> dict[Key, Wanted]:
        """The columns to be read, by their name in the source."""
        wanted: dict[Key, Wanted] = {}
        for plan in self.plans:
            if plan.key in self.located and (plan.field.used or (self.closed is None and is_watched(plan))):
                if plan.key in self._texts:
                    wanted |= {} if self._texts[plan.key].complete else {self.located[plan.key]: CELLS}
                    continue
                padded = plan.field.declared or self.closed is not None
                wanted[self.located[plan.key]] = Wanted(plan.field.used and plan.field.kind.numeric, padded)
        if self.sides.target is not None:
            wanted[self.sides.target.key] = Wanted(numeric=False)
        if self.sides.weight is not None:
            wanted[self.sides.weight] = Wanted(numeric=True, padded=True)
        return wanted

    def gather_words(self, run: Map = map, labelled: bool = False) -> None:
        """Read the columns of text once, with `run` as the `map`, to find their words; `labelled`: of labelled rows."""
        told = told_by(self.sides.target, self._labels) if labelled and self._texts and self.sides.gaps else None
        gather(self.source, self._texts, self.located, self.words, run, told)
        if self._texts and self.closed is None and not self._gathered:
            self._gathered = True
            self.plans = [with_words(plan, self._texts) for plan in self.plans]
            self.schema = Schema(tuple(plan.field for plan in self.plans), self.schema.missing)
            self.notes += [note for note in notes_on(self._texts) if note not in self.notes]
            refuse_wordless(self.plans, self._texts)

    def tasks(self) -> Iterator[Task]:
        """One task per chunk, in row order; each may be called in any thread, and reads its own rows."""
        self.gather_words()
        self._tally = tally = Tally()
        encoder = self._ready_encoder()
        for piece in self._pieces():
            yield partial(self._chunk, piece, encoder, tally)
        self._refuse_unused_sides()

    def _pieces(self) -> Iterator[Piece]:
        """The rows to be read; where their words are all there is to them, and are held, nothing is read again."""
        wanted = self._wanted()
        held = bool(self._texts) and not wanted and all(text.complete for text in self._texts.values())
        return held_pieces(self._texts) if held else self.source.pieces(wanted)

    def _ready_encoder(self) -> Any:
        if self._encoder is None:
            self._encoder = self._make_encoder()
        return self._encoder

    def _make_encoder(self) -> Any:
        closed = self.closed is not None
        if isinstance(self.source, SparseSource):
            return BagEncoder()
        if isinstance(self.source, DenseSource):
            coders, located = self._coders, self.located
            return DenseEncoder(self.source.array, self.plans, coders, located, self.words, closed, self.checked)
        return ArrowEncoder(self.plans, self._coders, self.words, closed, self._texts)

    def _chunk(self, piece: Piece, encoder: Any, tally: Tally) -> Chunk:
        raw = piece.load()
        encoded = encoder.encode(piece, self._renamed(raw))
        chunk = Chunk(
            piece.start,
            piece.n_rows,
            encoded.reals,
            encoded.codes,
            encoded.wide,
            encoded.bags,
            self._labels(piece, raw),
            self._weights(piece, raw),
        )
        tally.add(chunk, encoded)
        return chunk

    def _renamed(self, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        return {key: raw[name] for key, name in self.located.items() if name in raw}

    def _labels(self, piece: Piece, raw: Any) -> np.ndarray | None:
        if self._label_coder is not None and self.sides.target is not None:
            return label_codes(self._label_coder, self._side_column(raw, self.sides.target.key), piece.start)
        return _sliced(self.sides.labels, piece, "labels")

    def _weights(self, piece: Piece, raw: Any) -> np.ndarray | None:
        key = self.sides.weight
        if key is None:
            return _sliced(self.sides.weights, piece, "weights")
        found = numbers(self._side_column(raw, key), self.words, key, piece.start, padded=True)
        check_weight_values(found, piece.start, f"the weight ({wording.column(key)})")
        return found

    def _side_column(self, raw: Any, key: Any) -> Any:
        """A label or weight column of what was loaded; arrays load as arrays."""
        return raw[key] if isinstance(raw, Mapping) else arrow_of(raw[:, key])

    def _refuse_unused_sides(self) -> None:
        for name, side in (("labels", self.sides.labels), ("weights", self.sides.weights)):
            if side is not None and self.n_rows is not None and len(side) != self.n_rows:
                raise _unequal(name, len(side), self.n_rows)

    def settle(self) -> Settled:
        """After a full pass: levels and classes in order, and the new code of each old one."""
        if self.sides.weight is not None and self._tally.weight == 0:
            raise no_weight()
        remap: dict[Key, np.ndarray] = {}
        fields = []
        for plan in self.plans:
            spec = plan.field
            if plan.key in self._coders:
                levels = self._coders[plan.key].vocabulary.levels
                ordered = levels if self.closed is not None else in_order(levels)
                remap[plan.key] = order_codes(levels, ordered)
                spec = replace(spec, levels=tuple(ordered))
            fields.append(spec)
        schema = self.closed or Schema(tuple(fields), self.schema.missing)
        classes, label_remap = self._settled_labels()
        return Settled(schema, remap, classes, label_remap)

    def _settled_labels(self) -> tuple[list[Any], np.ndarray]:
        if self._label_coder is None:
            return [], np.zeros(0, dtype=np.int32)
        levels = self._label_coder.vocabulary.levels
        new = order_codes(levels, in_order(levels))[1:] - 1
        return class_levels(levels, self.sides.floats), new

    def labels(self) -> list[Any]:
        """The label of every row, None where it is unknown; nothing but the labels is read."""
        if self._label_coder is None or self.sides.target is None:
            return []
        key, coder = self.sides.target.key, self._label_coder
        pieces = self.source.pieces({key: Wanted(numeric=False)})
        codes = [label_codes(coder, self._side_column(piece.load(), key), piece.start) for piece in pieces]
        names, order = self._settled_labels()
        return [None if code < 0 else names[order[code]] for part in codes for code in part]

    def widened(self, why: Contradiction) -> Table:
        """The same table, with the contradicted column read as what it turned out to be."""
        target = self.sides.target
        if target is not None and why.key == target.key:
            return self._again(self.plans, self.notes, sides=replace(self.sides, target=_labels_after(target, why)))
        plan = next(plan for plan in self.plans if plan.key == why.key)
        changed = plan.cap(self._first_levels(plan)) if why.becomes is Becomes.CAPPED else plan.after(why)
        if changed.field.kind.numeric and (plan.plain is None or plan.constant is not None):
            changed = self._anchored(changed)
        plans = [changed if plan.key == why.key else plan for plan in self.plans]
        return self._again(plans, [*self._notes_without(why.key), _note(changed, why)])

    def _notes_without(self, key: Key) -> list[str]:
        return [note for note in self.notes if not note.startswith(wording.column(key) + " ")]

    def _alone(self, plan: Plan) -> Table:
        """This column by itself, read in order: what comes first must not depend on threads."""
        plans = [other if other.key == plan.key else _unused(other) for other in self.plans]
        plans = [plan if other.key == plan.key else other for other in plans]
        return self._again(plans, (), sides=Sides())

    def _first_levels(self, plan: Plan) -> list[object]:
        alone = self._alone(plan)
        try:
            for task in alone.tasks():
                task()
        except Contradiction:
            pass
        return alone._coders[plan.key].vocabulary.levels[:MOST_LEVELS]

    def _anchored(self, plan: Plan) -> Plan:
        """The plan with anchors from the first numbers of the column, wherever in the table they stand."""
        alone, found = self._alone(plan), np.zeros(0)
        for task in alone.tasks():
            column = task().reals[:, 0]
            found = np.concatenate([found, column[~np.isnan(column)]])
            if len(found) >= LOOKED_AT:
                break
        anchored = replace(plan, plain=anchor_of(found), logged=log_anchor_of(found))
        return anchored.as_kind(plan.field.kind, plan.field.why)


def is_coded(plan: Plan) -> bool:
    """Whether a column is used and has levels."""
    return plan.field.used and plan.field.kind.coded


def _unused(plan: Plan) -> Plan:
    return replace(plan, field=Field(plan.key, Kind.IDENTIFIER, "", used=False))


def _note(plan: Plan, why: Contradiction) -> str:
    name = wording.column(plan.key)
    if why.becomes is Becomes.CAPPED:
        return f"{name} has more than {MOST_LEVELS:,} levels: those after the first {MOST_LEVELS:,} share {OTHER!r}"
    if why.becomes is Becomes.WIDE:
        return f"{name} has many levels: {why.reason}"
    return f"{name} is read as {plan.field.kind}: {plan.field.why}"


def _labels_after(target: Plan, why: Contradiction) -> Plan:
    if why.becomes is Becomes.WORDS:
        return target.after(why)
    if why.becomes is Becomes.NUMBERS:
        raise continuous(float(why.reason.rsplit(" ", 1)[-1]), why.row, target.key)
    raise DataError(f"{wording.column(target.key)} has more than {MOST_LEVELS:,} classes. Name another target.")


def _sliced(side: np.ndarray | None, piece: Piece, name: str) -> np.ndarray | None:
    if side is None:
        return None
    part = side[piece.start : piece.start + piece.n_rows]
    if len(part) != piece.n_rows:
        raise _unequal(name, len(side), piece.start + piece.n_rows)
    return part


def _unequal(name: str, count: int, rows: int) -> DataError:
    return DataError(
        f"Found input variables with inconsistent numbers of samples: {count} {name} for a table of {rows} rows. "
        "Give one per row."
    )
