"""Text columns: their words are gathered in one pass before the first chunk, and counted in every chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core import remedies
from softcount.core.lazy import pa, pc
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.frames import CellType, arrow_of, cell_type, filled, flat
from softcount.sources.source import TablePiece, Wanted
from softcount.table.cell_values import MissingWords
from softcount.table.chunk import UNKNOWN
from softcount.table.levels import SideColumns
from softcount.table.schema import MISSING, ColumnPlan, Field, Key, Kind
from softcount.text import Chosen, Gathered, Reading, WordBlock, Words, block_of, matrix_of
from softcount.text.count_words import all_transitions, transition_block

Map = Callable[..., Iterable[Any]]
"""The builtin `map`, or the `map` of a pool of threads or processes."""

CELLS = Wanted(numeric=False, text=True)

MOST_WORDS = 1_000_000
"""Most distinct words of a column by default."""

DEFAULT_READING = Reading(max_words=MOST_WORDS)

MOST_HELD = 64_000_000
"""Most word counts kept in memory while words are gathered (five bytes each); later documents are read again."""

SHORT = 64
"""Least number of bytes up to which a cell is compared with the missing words."""

NO_WORDS = Words.of(())


def is_text(kind: Any) -> bool:
    return isinstance(kind, Reading) or (isinstance(kind, str) and kind == Kind.TEXT)


NO_PLACES = np.zeros(1, dtype=np.int32)


class TextColumn(Struct):
    """The words of a text column, and the counts kept of the documents that they were gathered from.

    `held` maps the first row of each piece to the numbers of its words, and `places` has the column of a bag for each
    number. A table read for prediction has only the `words` of its model. `complete`: every piece is held, so that no
    document is read again. `lost`: the largest count of a word that was dropped because there were too many. `among`:
    the number of labelled rows that the words were chosen from, if other rows have no label.
    """

    reading: Reading
    words: Words | None = None
    chosen: Chosen | None = None
    places: np.ndarray = field(default_factory=lambda: NO_PLACES)
    held: dict[int, WordBlock] = field(default_factory=dict)
    complete: bool = False
    lost: int = 0
    among: int | None = None

    def bag(self, piece: TablePiece, key: Key, cells: Any, missing: MissingWords) -> Any:
        """Return the rows of a piece as a matrix: 1 for a document, then its word counts.

        No documents if `cells` is None.
        """
        assert self.words is not None
        block, places = self.held.get(piece.start), self.places
        if block is None:
            if cells is None:
                nothing = np.zeros(0, dtype=np.int32)
                block = WordBlock(np.zeros(piece.n_rows + 1, dtype=np.int64), nothing, nothing, NO_WORDS)
            else:
                block = marked(*read_cells(key, cells, self.reading, missing))
            places = _places(self.words.columns(block.words))
        return matrix_of(block, places, 1 + len(self.words))

    def without_documents(self) -> TextColumn:
        return replace(self, held={}, chosen=None, places=NO_PLACES)

    def settle(self, gathered: Gathered, held: dict[int, WordBlock], complete: bool) -> None:
        """Choose the words once all are gathered. If some were dropped, documents are read again."""
        self.chosen = gathered.chosen()
        columns = self.chosen.columns
        if self.reading.analyzer == "steps":
            every = all_transitions(self.chosen.words, self.reading.ngrams[0])
            columns, self.chosen = every.columns(gathered.words), replace(self.chosen, words=every)
        self.words, self.places = self.chosen.words, _places(columns)
        self.lost = gathered.lost
        if not gathered.given_up:
            self.held, self.complete = held, complete


def _places(columns: np.ndarray) -> np.ndarray:
    """Return the columns of a bag for the words of a block; column 0 marks a document."""
    return np.concatenate([[0], np.where(columns < 0, -1, columns + 1)]).astype(np.int32)


# -- cells to blocks


def read_cells(key: Key, column: Any, reading: Reading, missing: MissingWords) -> tuple[WordBlock, np.ndarray]:
    if reading.analyzer == "steps" and cell_type(flat(column).type) is CellType.NESTED:
        rows = flat(column).to_pylist()
        return transition_block(rows, reading, key), np.array([row is not None for row in rows], dtype=bool)
    cells = documents_of(key, column, missing)
    if reading.analyzer == "steps":
        return transition_block(cells.to_pylist(), reading, key), filled(cells.is_valid(), False)
    return block_of(cells, reading), filled(cells.is_valid(), False)


def marked(block: WordBlock, known: np.ndarray) -> WordBlock:
    """Add a word 0 before the others, once in every document."""
    at = block.indptr[:-1][known]
    ends = block.indptr + np.concatenate([[0], np.cumsum(known)])
    return WordBlock(ends, np.insert(block.ids + np.int32(1), at, 0), np.insert(block.counts, at, 1), block.words)


def documents_of(key: Key, column: Any, missing: MissingWords) -> Any:
    """Return a column as text, null for a missing document; numbers, dates and Booleans become text.

    In a text file, or if the user named missing words, cells with these words and empty cells are missing. Otherwise
    only null is missing, and an empty string is a document without words.
    """
    column = flat(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if cell_type(column.type) is CellType.NESTED:
        raise DataError(f"{wording.column(key)} holds nested or binary values, which are no text.")
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    if cell_type(column.type) is not CellType.TEXT:
        column = column.cast(pa.large_string())
    if not missing.trim and missing.missing == frozenset(MISSING):
        return column
    return without_marks(column, missing.missing)


def written(key: Key, cell: Any, missing: MissingWords) -> str | None:
    """Return the only cell of a column as text; the steps of a sequence are separated by blanks."""
    if cell_type(flat(cell).type) is CellType.NESTED:
        steps = cell[0].as_py()
        return None if steps is None else " ".join("?" if step is None else str(step) for step in steps)
    found: str | None = documents_of(key, cell, missing)[0].as_py()
    return found


def without_marks(column: Any, marks: frozenset[str]) -> Any:
    """Replace the missing words `marks` by null, also with blanks around them."""
    longest = max(SHORT, 2 * max((len(mark.encode()) for mark in marks), default=0))
    short = np.flatnonzero(filled(pc.less_equal(pc.binary_length(column), longest), False))
    cells = column.take(arrow_of(short)).to_pylist()
    gone = short[[cell.strip() in marks for cell in cells]]
    if not len(gone):
        return column
    marked = np.zeros(len(column), dtype=bool)
    marked[gone] = True
    return pc.if_else(arrow_of(marked), pa.scalar(None, column.type), column)


# -- the pass that gathers words


def text_columns(plans: Iterable[ColumnPlan], closed: bool, older: Mapping[Key, TextColumn]) -> dict[Key, TextColumn]:
    """Return the columns of text that these plans read; those of an `older` table of the same rows are reused."""
    found: dict[Key, TextColumn] = {}
    for plan in plans:
        reading, old = plan.field.reading or DEFAULT_READING, older.get(plan.key)
        if closed:
            levels: Any = plan.field.levels
            found[plan.key] = TextColumn(reading, levels if isinstance(levels, Words) else Words.of(levels))
        else:
            found[plan.key] = old if old is not None and old.reading == reading else TextColumn(reading)
    return found


class TextPiece(NamedTuple):
    """A piece whose words are to be gathered, and the labels of its rows unless they are a column."""

    piece: TablePiece
    labels: np.ndarray | None


class WordReader(Struct, frozen=True):
    """Reads the words of text columns in any process; with `sides` also which rows have a label.

    `readings` has the name of each column in the source, and how it is read.
    """

    readings: Mapping[Key, tuple[Key, Reading]]
    missing: MissingWords
    sides: SideColumns | None = None

    @property
    def wanted(self) -> dict[Key, Wanted]:
        wanted = {name: CELLS for name, _ in self.readings.values()}
        if self.sides is not None and self.sides.labels is not None:
            wanted[self.sides.labels.plan.key] = Wanted(numeric=False)
        return wanted

    def __call__(self, part: TextPiece) -> tuple[int, np.ndarray, list[tuple[WordBlock, np.ndarray]]]:
        """Return the first row, a mask of labelled rows, and for each column its words and a mask of documents."""
        piece, cells = part.piece, part.piece.load()
        labels = None if self.sides is None else self.sides.labels_in(cells, piece.start, part.labels)
        labelled = np.ones(piece.n_rows, dtype=bool) if labels is None else labels != UNKNOWN
        blocks = [read_cells(key, cells[name], how, self.missing) for key, (name, how) in self.readings.items()]
        return piece.start, labelled, blocks


class WordGathering:
    """The words of text columns, gathered piece by piece: `rows` so far, `among` of which have a label."""

    def __init__(self, readings: Mapping[Key, Reading]) -> None:
        self.gathered = {key: Gathered(reading) for key, reading in readings.items()}
        self.rows = self.among = 0

    def add(self, labelled: np.ndarray, blocks: Iterable[tuple[WordBlock, np.ndarray]]) -> list[np.ndarray]:
        """Add a block of words and its known documents for every column.

        Return the numbers of the words of each block.
        """
        self.rows, self.among = self.rows + len(labelled), self.among + int(np.count_nonzero(labelled))
        numbers = []
        for gathered, (block, known) in zip(self.gathered.values(), blocks, strict=True):
            some = None if labelled.all() else known & labelled
            numbers.append(gathered.add(block, int(np.count_nonzero(known)), some))
        return numbers

    def join(self, other: WordGathering) -> None:
        self.rows, self.among = self.rows + other.rows, self.among + other.among
        for key, gathered in self.gathered.items():
            gathered.join(other.gathered[key])

    def settle(
        self, columns: Mapping[Key, TextColumn], held: Mapping[Key, dict[int, WordBlock]], complete: bool
    ) -> bool:
        """Choose the words of each column; return False, without a choice, if there are rows but none has a label."""
        if self.rows and not self.among:
            return False
        for key, column in columns.items():
            column.among = self.among if self.among < self.rows else None
            column.settle(self.gathered[key], held.get(key, {}), complete)
        return True


def gather(columns: Mapping[Key, TextColumn], reader: WordReader, pieces: Iterable[TextPiece], run: Map) -> bool:
    """Read these columns in one pass and choose the words of each; return False if no row has a label.

    Pieces may be read by several threads; their words are numbered in row order. If some rows have no label, words are
    chosen from the labelled rows.
    """
    words = WordGathering({key: column.reading for key, column in columns.items()})
    held: dict[Key, dict[int, WordBlock]] = {key: {} for key in columns}
    room = MOST_HELD
    for start, labelled, blocks in run(reader, pieces):
        for key, (block, known), numbers in zip(columns, blocks, words.add(labelled, blocks), strict=True):
            room -= len(block.ids) + len(known)
            if room >= 0:
                # Held blocks have only the numbers of words, and counts in the smallest sufficient type.
                compact = marked(replace(block, ids=numbers[block.ids]), known)
                least = np.min_scalar_type(int(compact.counts.max(initial=0)))
                held[key][start] = WordBlock(compact.indptr, compact.ids, compact.counts.astype(least), NO_WORDS)
    return words.settle(columns, held, complete=room >= 0)


def with_words(plans: Iterable[ColumnPlan], columns: Mapping[Key, TextColumn]) -> list[ColumnPlan]:
    found = []
    for plan in plans:
        column = columns.get(plan.key)
        if column is not None and column.words is not None and plan.field.levels is not column.words:
            why = f"{plan.field.why}; {counted_words(len(column.words), column.reading)}"
            spec = replace(plan.field, levels=column.words, reading=column.reading, why=why)
            plan = replace(plan, field=spec)
        found.append(plan)
    return found


def counted_words(number: int, reading: Reading) -> str:
    return f"{number:,} transitions of sequences" if reading.analyzer == "steps" else f"{number:,} different words"


WORDLESS = "is text without words"


class Wordless(DataError):
    """The table has only text, and no words; `fields` are its columns."""

    fields: tuple[Field, ...] = ()


def notes_on(plans: Sequence[ColumnPlan], columns: Mapping[Key, TextColumn]) -> list[str]:
    """Return notes on the words of text columns.

    Raise an error if the table has nothing else and there are no words.
    """
    notes = []
    for key, column in columns.items():
        if column.chosen is not None:
            name, kept, most = wording.column(key), len(column.chosen.words), column.reading.max_words
            if not kept:
                notes.append(f"{name} {WORDLESS}: {_why_none(column.chosen)}")
            elif column.among is not None:
                rows = "one labelled row holds" if column.among == 1 else f"{column.among:,} labelled rows hold"
                notes.append(f"{name}: its words are those that the {rows}")
            if kept == most and len(column.chosen.columns) > kept:
                met = "once" if column.lost == 1 else f"{column.lost:,} times or fewer"
                but = f", save that one met {met} may be missed" if column.lost else ""
                notes.append(f"{name} has more than {most:,} different words: the most frequent {most:,} are kept{but}")
    used = [plan.key for plan in plans if plan.field.used]
    chosen = [columns[key].chosen for key in used if key in columns]
    if len(chosen) == len(used) and all(found is not None and not len(found.words) for found in chosen):
        name = wording.column(used[0])
        error = Wordless(f"{name} {WORDLESS}, and there is nothing else to model: {_why_none(chosen[0])}.")
        error.fields = tuple(plan.field for plan in plans)
        raise error
    return notes


def _why_none(chosen: Any) -> str:
    if not chosen.n_documents:
        return "every document is missing"
    if not len(chosen.columns):
        what = "a word has two or more letters or digits, unless (in Python) pattern or analyzer says otherwise"
        return f"none in {chosen.n_documents:,} documents, except for stop words; {what}"
    if chosen.unlabelled == len(chosen.columns):
        return f"the rows that have a label hold none of the {chosen.unlabelled:,} of the others; label rows that do"
    met = f"of {len(chosen.columns):,} different ones none is kept"
    lower = remedies.either("min_count, min_df or drop_top", "--min-count, --min-df or --drop-top")
    return f"{met}; lower {lower}, or raise {remedies.either('max_df', '--max-df')}"
