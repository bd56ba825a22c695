"""The rows of a table that have a class; of very many a random part, chosen as they go by and all that is held."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

import numpy as np
from msgspec import Struct

from softcount.classify.encode import EncodedRows, column_keys
from softcount.core.special import mixed
from softcount.fitted.fitted import Fitted
from softcount.run.local import Runner
from softcount.table import Chunk, Table
from softcount.table.schema import Schema

MOST_ROWS = 100_000
"""Rows that an ensemble is learned from at most; the counts are of all rows."""
MOST_CELLS = 1 << 24
"""Cells and words of these rows, where there are many; a tenth of the rows is always taken."""
SALT = np.uint64(0xD1B54A32D192ED03)
"""So that which rows are drawn has nothing to do with the fold they are in."""


class KnownRows(Struct, frozen=True, eq=False):
    """Rows that have a class and some weight: their numbers in the table, and how many there are in all."""

    rows: EncodedRows
    labels: np.ndarray
    weights: np.ndarray
    numbers: np.ndarray
    of: int

    def take(self, some: np.ndarray) -> KnownRows:
        """Some of them."""
        return KnownRows(self.rows.take(some), self.labels[some], self.weights[some], self.numbers[some], self.of)


def known_rows(fitted: Fitted, table: Table, runner: Runner, classes: Sequence[object] | None = None) -> KnownRows:
    """The rows of a table that have a class; of very many, some that their numbers in the table have chosen.

    A long table is read once and never held. `classes` are those of labels that are given as codes. Of rows on other
    machines those that were chosen are brought here: the same as of a table here.
    """
    if not runner.keeps_rows:
        return _known_there(fitted, table, runner)
    found = _Drawn(fitted.schema, _usual_words(fitted))
    for chunk in table.chunks(runner.map):
        found.add(chunk)
    drawn = found.known(class_places(fitted, table, classes))
    if len(drawn.labels) < drawn.of:
        _give_back()
    return drawn


def _known_there(fitted: Fitted, table: Table, engine: Runner) -> KnownRows:
    """The same of rows that the workers of an engine have: each part is asked for what may be among the lowest."""
    found, raw = _Drawn(fitted.schema, _usual_words(fitted)), engine.encoded(table)
    try:
        rows, known = engine.settled(table, raw, table.settle()), raw.n_rows - table.unknown_labels
        if known > found.most:  # six deviations more than are wanted, of which the lowest are kept
            found.limit = np.uint64((found.most + 6.0 * found.most**0.5) / known * (2.0**64 - 2.0**12))
        for part in rows.each(partial(draw_rows, fitted.schema, found.words, found.limit)):
            found.join(part)
    finally:
        raw.close()
    places = {name: place for place, name in enumerate(fitted.names)}
    return found.known(np.array([places.get(name, -1) for name in table.settle().classes], dtype=np.int64))


def draw_rows(schema: Schema, words: int, limit: np.uint64, chunk: Chunk) -> _Drawn:
    """The rows of a chunk whose mixed numbers are below a limit."""
    found = _Drawn(schema, words)
    found.limit = limit
    found.add(chunk)
    return found


def _give_back() -> None:
    """Hand what a long table was read into back to the system: what comes now needs room of its own.

    Of a CSV of 300 MB it is 50 MB: freed, and kept by Arrow and by the C library for what they may be asked next.
    """
    import ctypes

    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def class_places(fitted: Fitted, table: Table, classes: Sequence[object] | None) -> np.ndarray:
    """The place among the model's classes of every code that labels were given."""
    settled = table.settle(classes=classes)
    places = {name: place for place, name in enumerate(fitted.names)}
    order = np.array([places.get(name, -1) for name in settled.classes], dtype=np.int64)
    return order if settled.label_remap is None else order[settled.label_remap]


def _usual_words(fitted: Fitted) -> int:
    """The words that a row has in all its texts, on average."""
    leaves = [leaf for leaf in fitted.model.leaves if fitted.model.is_sparse(leaf)]
    total = sum(float(fitted.counts.arrays[leaf.key].hi.sum()) for leaf in leaves)
    return int(total / max(fitted.counts.rows, 1.0))


class _Drawn:
    """The rows whose numbers, mixed, are lowest: which these are does not depend on how the rows are cut in chunks.

    A row is taken to have so many `words`.
    """

    def __init__(self, schema: Schema, words: int) -> None:
        self.schema, self.words = schema, words
        cells = max(1, len(column_keys(schema)) + words)
        self.most = max(MOST_ROWS // 10, min(MOST_ROWS, MOST_CELLS // cells))
        self.limit = np.uint64(2**64 - 1)
        self.of = np.zeros(0, dtype=np.int64)  # rows of every label, by its code
        self.parts: list[tuple[np.ndarray, KnownRows]] = []

    def add(self, chunk: Chunk) -> None:
        """Look at some rows more."""
        labels = np.full(chunk.n_rows, -1) if chunk.labels is None else chunk.labels
        weights = np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights
        known = np.flatnonzero((labels >= 0) & (weights > 0))
        counted = np.bincount(labels[known], minlength=len(self.of))
        counted[: len(self.of)] += self.of
        self.of = counted
        keys = mixed(mixed(known.astype(np.uint64) + np.uint64(chunk.start)) ^ SALT)
        kept = keys <= self.limit
        rows = known[kept]
        encoded = EncodedRows.of(self.schema, [chunk.take(rows)])
        part = KnownRows(encoded, labels[rows].astype(np.int64), weights[rows], rows + chunk.start, len(rows))
        self.parts.append((keys[kept], part))
        self._draw_from_many()

    def join(self, other: _Drawn) -> None:
        """Take in the rows that were drawn from others."""
        counted = np.zeros(max(len(self.of), len(other.of)), dtype=np.int64)
        counted[: len(self.of)] += self.of
        counted[: len(other.of)] += other.of
        self.of = counted
        self.parts += other.parts
        self._draw_from_many()

    def _draw_from_many(self) -> None:
        if sum(len(own) for own, _ in self.parts) > self.most + self.most // 4:
            self._draw()

    def _draw(self) -> None:
        """Keep as many rows as there may be."""
        keys = np.concatenate([own for own, _ in self.parts])
        if len(keys) > self.most:
            self.limit = np.partition(keys, self.most - 1)[self.most - 1]
            self.parts = [(own[own <= self.limit], part.take(own <= self.limit)) for own, part in self.parts]

    def known(self, places: np.ndarray) -> KnownRows:
        """The rows drawn, in the order of the table, their labels being `places` of those that were met."""
        self._draw()
        parts = [part for _, part in self.parts]
        if not parts:
            parts = [KnownRows(EncodedRows.of(self.schema, []), *(np.zeros(0, dtype=np.int64),) * 3, 0)]
        rows = EncodedRows.together([part.rows for part in parts])
        labels, weights, numbers = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("labels", "weights", "numbers")
        )
        labels, named = places[labels], places[: len(self.of)] >= 0
        found = KnownRows(rows, labels, weights, numbers, int(self.of[: len(places)][named].sum()))
        return found if (labels >= 0).all() else found.take(np.flatnonzero(labels >= 0))
