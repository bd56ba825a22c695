"""Sequences as rows of a table, one row per step."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.lazy import pa
from softcount.errors import DataError
from softcount.sources.frames import ArrowSource, arrow_of, text_of
from softcount.sources.source import Key, chunk_rows_for
from softcount.table import Chunk, Table, check_weights, open_table

Map = Callable[..., Iterable[Any]]


class StepSource(ArrowSource):
    """The steps of all sequences in pieces of whole sequences.

    `starts` holds the first row of each sequence, then the number of rows. Sequences may have no step.
    """

    may_be_empty = True

    def __init__(
        self,
        table: Any,
        keys: Sequence[Any],
        named: bool,
        notes: tuple[str, ...],
        starts: np.ndarray,
        text_file: bool = False,
        verbatim: bool = False,
    ) -> None:
        self.starts, self.text_file, self.verbatim = starts, text_file, verbatim
        super().__init__(table, keys, named, notes)

    def spans(self) -> Iterator[tuple[int, int]]:
        for first, stop in split_between(self.starts, chunk_rows_for(int(self.starts[-1]))):
            if self.starts[stop] > self.starts[first]:
                yield int(self.starts[first]), int(self.starts[stop] - self.starts[first])


def split_between(borders: np.ndarray, rows: int) -> Iterator[tuple[int, int]]:
    """Yield runs of sequences (first, after the last) of at most `rows` rows; a longer sequence is a run by itself."""
    first = 0
    while first < len(borders) - 1:
        fits = int(np.searchsorted(borders, borders[first] + rows, "right")) - 1
        yield first, max(first + 1, fits)
        first = max(first + 1, fits)


class Sequences(Struct, frozen=True, eq=False):
    """Sequences of any lengths, with the steps of all of them in one table, one row per step.

    Sequence i has the rows `starts[i]` to `starts[i + 1]` of the `source`, whose columns are those of a step: one for
    symbols, several for steps of mixed kinds. A missing cell is no evidence. `names[i]` is the name of a sequence and
    `weights[i]` its weight; None stands for weights of 1. Only `open_sequences(..., empty=True)` gives empty sequences.

    `table` opens the steps as a table. `chunks` yields its chunks, each of whole sequences; `borders` are the rows of
    the chunk at which a sequence starts, of which row 0 is always one.

    >>> from softcount.sequences import open_sequences
    >>> found = open_sequences([["a", "b", None], ["b"]])
    >>> table = found.table(kinds="categorical")
    >>> [(chunk.codes[:, 0].tolist(), chunk.borders.tolist()) for chunk in found.chunks(table)]
    [([1, 2, 0, 2], [0, 3])]
    """

    source: StepSource
    names: Sequence[Hashable]
    weights: np.ndarray | None = None
    named: bool = False

    def __len__(self) -> int:
        return len(self.source.starts) - 1

    def __repr__(self) -> str:
        columns = ", ".join(map(repr, self.source.keys))
        return f"<{type(self).__name__}: {len(self):,} sequences, {self.n_steps:,} steps of {columns}>"

    @property
    def starts(self) -> np.ndarray:
        return self.source.starts

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.starts)

    @property
    def n_steps(self) -> int:
        return int(self.starts[-1])

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on reading, such as lines left out and rows sorted."""
        return self.source.notes

    def without_zeros(self) -> Sequences:
        """Return the sequences with a weight above zero: others add no counts and no categories."""
        if self.weights is None or (self.weights > 0).all() or not (self.weights > 0).any():
            return self
        keep = self.weights > 0
        rows = self.source.table.filter(pa.array(np.repeat(keep, self.lengths)))
        starts = borders_of(self.lengths[keep])
        names = [self.names[at] for at in np.flatnonzero(keep).tolist()]
        own = self.source
        source = StepSource(rows, own.keys, own.named, own.notes, starts, own.text_file, own.verbatim)
        return replace(self, source=source, names=names, named=True, weights=self.weights[keep])

    def table(self, **how: Any) -> Table:
        """Open the steps as a table, weighted by their sequences; `how` are arguments of `open_table`."""
        weights = None if self.weights is None else np.repeat(self.weights, self.lengths)
        return open_table(self.source, weights=weights, **how)

    def chunks(self, table: Table, run: Map = map) -> Iterator[Chunk]:
        return map(self.bordered, table.chunks(run))

    def bordered(self, chunk: Chunk) -> Chunk:
        """Add to a chunk of the table the rows at which its sequences start."""
        first, stop = self.within(chunk)
        return replace(chunk, borders=self.starts[first:stop] - chunk.start)

    def within(self, chunk: Chunk) -> tuple[int, int]:
        """Return the number of the first sequence of a chunk, and of the one after its last."""
        first = int(np.searchsorted(self.starts[:-1], chunk.start, "left"))
        stop = int(np.searchsorted(self.starts[:-1], chunk.start + chunk.n_rows, "left"))
        return first, stop

    def place(self, row: int) -> str:
        at = int(np.searchsorted(self.starts, row, "right")) - 1
        return f"{self.called(at)}, step {row - int(self.starts[at]) + 1}"

    def called(self, at: int) -> str:
        """Return how messages name a sequence: by its name, or by its number from 1."""
        return f"sequence {self.names[at]!r}" if self.named else f"sequence {at + 1}"


class Steps(Struct, frozen=True):
    """What was read: columns of all steps as Arrow arrays, lengths and names of the sequences, notes."""

    columns: Mapping[Key, Any]
    lengths: np.ndarray
    names: Sequence[Hashable] = ()
    weights: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    by_position: bool = False
    text_file: bool = False
    verbatim: bool = True

    def sequences(self, weights: Any = None, empty: bool = False) -> Sequences:
        """Check the sequences and concatenate their steps; `weights` holds one weight per sequence."""
        if not len(self.lengths):
            raise DataError("there are no sequences. Give a list with at least one.")
        starts = borders_of(self.lengths)
        names = self.names if len(self.names) else range(1, len(self.lengths) + 1)
        given = self.weights if weights is None else check_sequence_weights(weights, len(self.lengths))
        none = np.flatnonzero(self.lengths == 0)
        if len(none) and not empty:
            more = "" if len(none) == 1 else f" (and {len(none) - 1:,} more are)"
            raise DataError(
                f"sequence {names[int(none[0])]!r} is empty: it has no step{more}. Leave it out, or give its steps as "
                "missing."
            )
        arrays = list(self.columns.values())
        table = pa.table(arrays, names=[str(place) for place in range(len(arrays))])
        keys = list(self.columns)
        source = StepSource(table, keys, not self.by_position, self.notes, starts, self.text_file, self.verbatim)
        return Sequences(source, names, given, len(self.names) > 0)


def borders_of(lengths: np.ndarray) -> np.ndarray:
    """Return the first row of each sequence, then the number of rows."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def check_sequence_weights(weights: Any, count: int) -> np.ndarray:
    if len(weights) != count:
        raise DataError(f"{len(weights)} weights for {count} sequences. Give one for each sequence.")
    return check_weights(weights, count)


# Texts as sequences of characters or of words.

WORD = re.compile(r"\w+(?:['\u2019-]\w+)*|[^\w\s]")
"""A word, with apostrophes and hyphens inside it, or one mark of punctuation."""


def text_steps(texts: Sequence[str], symbols: str, names: Sequence[str] = (), notes: tuple[str, ...] = ()) -> Steps:
    """Split each text into characters, or into words and punctuation marks, without changing their case.

    >>> found = text_steps(["It's me!"], "words")
    >>> found.columns["word"].dictionary.to_pylist()
    ["It's", 'me', '!']
    """
    if symbols == "characters":
        text = "".join(texts)
        try:
            points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
        except UnicodeEncodeError as error:
            raise DataError(f"a text is not valid Unicode: {error}. Decode it with errors='replace'.") from None
        met = np.zeros(int(points.max(initial=0)) + 1, dtype=bool)  # at most 1,114,112 of them
        met[points] = True
        levels, places = [chr(point) for point in np.flatnonzero(met).tolist()], (np.cumsum(met) - 1)[points]
        lengths = [*map(len, texts)]
    elif symbols == "words":
        words = [WORD.findall(text) for text in texts]
        cells = [word for line in words for word in line]
        place = {word: at for at, word in enumerate(dict.fromkeys(cells))}
        levels, places = list(place), np.fromiter(map(place.__getitem__, cells), np.int32, len(cells))
        lengths = [*map(len, words)]
    else:
        raise DataError(f"steps={symbols!r} is not known. Text is read as 'characters' or as 'words'.")
    column = pa.DictionaryArray.from_arrays(arrow_of(places.astype(np.int32)), text_of(levels))
    return Steps({symbols[:-1]: column}, np.array(lengths, np.int64), names, None, notes)
