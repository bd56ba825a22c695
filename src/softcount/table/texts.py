"""Columns of text: their words gathered in one pass before the first chunk, and counted row by row in every chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcount.errors import DataError
from softcount.table import wording
from softcount.table.arrays import arrow_of, truths_of_array
from softcount.table.chunk import UNKNOWN
from softcount.table.columns import Cells, MissingWords, cells_of, flat
from softcount.table.frames import arrow_column, is_frame, is_missing
from softcount.table.plan import Plan
from softcount.table.schema import MISSING, Field, Key, Kind
from softcount.table.source import Piece, Source, Wanted
from softcount.text import Block, Chosen, Gathered, Reading, Words, block_of, matrix_of

if TYPE_CHECKING:
    from softcount.table.table import Table

Map = Callable[..., Iterable[Any]]
"""How work is done over pieces: `map` itself, or the `map` of a pool of threads."""

TEXT = "text"
"""The name of the column that documents given without one are."""

CELLS = Wanted(numeric=False, text=True)

MOST_WORDS = 1_000_000
"""Different words kept of a column whose owner has not said how many."""

DEFAULT_READING = Reading(max_words=MOST_WORDS)

MOST_HELD = 64_000_000
"""Counts kept from gathering the words of all columns (five bytes each); documents beyond are read a second time."""

SHORT = 64
"""Bytes of the longest cell that is compared with the words for a missing one."""

NO_WORDS = Words.of(())


def is_text(said: Any) -> bool:
    """Whether what was said of a column declares it text."""
    return isinstance(said, Reading) or (isinstance(said, str) and said == Kind.TEXT)


@dataclass(slots=True)
class TextColumn:
    """The words of one column of text, and what is held of the documents they were gathered from.

    `held` has, by the first row of each piece, its words by the numbers under which they were gathered, and `places`
    the column of a bag that each number became. A table read for prediction has only the `words` of its model.
    `complete`: every piece is held, so that no document need be read again. `lost`: how often a word may have been met
    that was given up while too many were gathered. `among`: how many labelled rows the words were chosen among, where
    others have no label.
    """

    reading: Reading
    words: Words | None = None
    chosen: Chosen | None = None
    places: np.ndarray = field(default_factory=lambda: np.zeros(1, dtype=np.int32))
    held: dict[int, Block] = field(default_factory=dict)
    complete: bool = False
    lost: int = 0
    among: int | None = None

    def bag(self, piece: Piece, key: Key, cells: Any, missing: MissingWords) -> Any:
        """The rows of a piece as a matrix: 1 where there is a document, then how often each word occurs in it.

        Without cells, and where nothing is held, no row has a document.
        """
        assert self.words is not None
        block, places = self.held.get(piece.start), self.places
        if block is None:
            there = cells is not None
            block = marked(*read_cells(key, cells, self.reading, missing)) if there else no_documents(piece.n_rows)
            places = _places(self.words.columns(block.words))
        return matrix_of(block, places, 1 + len(self.words))

    def settle(self, gathered: Gathered, held: dict[int, Block], complete: bool) -> None:
        """Choose the words, once all are gathered. Where some were given up on the way, documents are read again."""
        self.chosen = gathered.chosen()
        self.words, self.places = self.chosen.words, _places(self.chosen.columns)
        self.lost = gathered.lost
        if not gathered.given_up:
            self.held, self.complete = held, complete


def _places(columns: np.ndarray) -> np.ndarray:
    """Where in a bag the words of a block go, the mark of a document before them."""
    return np.concatenate([[0], np.where(columns < 0, -1, columns + 1)]).astype(np.int32)


def bag_holes(bag: Any) -> tuple[int, int]:
    """How many rows of a bag have no document, and how many a document without a known word."""
    lengths = np.diff(bag.indptr)
    return int(np.count_nonzero(lengths == 0)), int(np.count_nonzero(lengths == 1))


# -- cells to blocks


def read_cells(key: Key, column: Any, reading: Reading, missing: MissingWords) -> tuple[Block, np.ndarray]:
    """The words of a column's cells, and which of the cells are documents."""
    cells = documents_of(key, column, missing)
    return block_of(cells, reading), truths_of_array(cells.is_valid(), False)


def marked(block: Block, known: np.ndarray) -> Block:
    """The block with one word before its own, number 0, once wherever there is a document."""
    at = block.indptr[:-1][known]
    ends = block.indptr + np.concatenate([[0], np.cumsum(known)])
    return Block(ends, np.insert(block.ids + np.int32(1), at, 0), np.insert(block.counts, at, 1), block.words)


def no_documents(n_rows: int) -> Block:
    """A block of rows without a document."""
    nothing = np.zeros(0, dtype=np.int32)
    return Block(np.zeros(n_rows + 1, dtype=np.int64), nothing, nothing, NO_WORDS)


def documents_of(key: Key, column: Any, missing: MissingWords) -> Any:
    """A column as text, null where there is no document; numbers, dates and truth values as they are written.

    In a text file, and wherever words for a missing cell were asked for, a cell that is one of them is missing, and
    so is an empty one. Elsewhere only a null is: an empty string is a document without words.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = flat(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if cells_of(column.type) is Cells.NESTED:
        raise DataError(f"{wording.column(key)} holds nested or binary values, which are no text.")
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    if cells_of(column.type) is not Cells.TEXT:
        column = column.cast(pa.large_string())
    if not missing.trim and missing.missing == frozenset(MISSING):
        return column
    return without_marks(column, missing.missing)


def without_marks(column: Any, marks: frozenset[str]) -> Any:
    """Cells of text with those that are one of the marks made null; blanks around a cell do not count."""
    import pyarrow as pa
    import pyarrow.compute as pc

    longest = max(SHORT, 2 * max((len(mark.encode()) for mark in marks), default=0))
    short = np.flatnonzero(truths_of_array(pc.less_equal(pc.binary_length(column), longest), False))
    cells = column.take(arrow_of(short)).to_pylist()
    gone = short[[cell.strip() in marks for cell in cells]]
    if not len(gone):
        return column
    marked = np.zeros(len(column), dtype=bool)
    marked[gone] = True
    return pc.if_else(arrow_of(marked), pa.scalar(None, column.type), column)


# -- the pass that gathers


class Told(NamedTuple):
    """Which rows have a label: columns to be read beside the text, and how the rows of a piece tell."""

    wanted: Mapping[Key, Wanted]
    rows: Callable[[Piece, Any], np.ndarray]


def told_by(target: Plan | None, labels: Callable[[Piece, Any], Any]) -> Told:
    """Rows that have a label in the column `target`, or where `labels` has them from."""
    wanted = {} if target is None else {target.key: Wanted(numeric=False)}
    return Told(wanted, lambda piece, cells: labels(piece, cells) != UNKNOWN)


def text_columns(plans: Iterable[Plan], closed: bool, older: Mapping[Key, TextColumn]) -> dict[Key, TextColumn]:
    """The columns of text that are used; what an earlier table of the same rows has gathered stays."""
    found: dict[Key, TextColumn] = {}
    for plan in plans:
        if plan.field.used and plan.field.kind is Kind.TEXT:
            reading = plan.field.reading or DEFAULT_READING
            old = older.get(plan.key)
            if closed:
                found[plan.key] = TextColumn(reading, _words(plan.field.levels))
            else:
                found[plan.key] = old if old is not None and old.reading == reading else TextColumn(reading)
    return found


def _words(levels: Any) -> Words:
    return levels if isinstance(levels, Words) else Words.of(levels)


def gather(
    source: Source,
    columns: Mapping[Key, TextColumn],
    located: Mapping[Key, Key],
    missing: MissingWords,
    run: Map,
    told: Told | None = None,
) -> None:
    """Read the columns whose words are not known yet, all in one pass, and choose the words of each.

    Pieces may be read by several threads; their words are numbered in the order of the rows. With `told`, words are
    chosen among the rows that have a label.
    """
    new = {key: column for key, column in columns.items() if column.words is None}
    if not new:
        return

    def read(piece: Piece) -> tuple[int, np.ndarray, list[tuple[Block, np.ndarray]]]:
        cells = piece.load()
        known = np.ones(piece.n_rows, dtype=bool) if told is None else told.rows(piece, cells)
        return piece.start, known, [read_cells(key, cells[located[key]], new[key].reading, missing) for key in new]

    gathered = {key: Gathered(column.reading) for key, column in new.items()}
    held: dict[Key, dict[int, Block]] = {key: {} for key in new}
    room = MOST_HELD
    wanted = {**{located[key]: CELLS for key in new}, **({} if told is None else told.wanted)}
    rows = among = 0
    for start, labelled, blocks in run(read, source.pieces(wanted)):
        rows, among = rows + len(labelled), among + int(np.count_nonzero(labelled))
        for key, (block, known) in zip(new, blocks, strict=True):
            some = None if labelled.all() else known & labelled
            numbers = gathered[key].add(block, int(np.count_nonzero(known)), some)
            room -= len(block.ids) + len(known)
            if room >= 0:
                held[key][start] = _compact(marked(replace(block, ids=numbers[block.ids]), known))
    if told is not None and not among:  # nothing can be learned of these classes; the words are not to blame
        return gather(source, columns, located, missing, run)
    for key, column in new.items():
        column.among = among if among < rows else None
        column.settle(gathered[key], held[key], complete=room >= 0)


def _compact(block: Block) -> Block:
    """The same counts in as few bytes as they need, of words known by their number alone."""
    least = np.min_scalar_type(int(block.counts.max(initial=0)))
    return Block(block.indptr, block.ids, block.counts.astype(least), NO_WORDS)


def held_pieces(columns: Mapping[Key, TextColumn]) -> Iterator[Piece]:
    """The pieces that were held, in row order, with nothing more to load."""
    for start, block in sorted(next(iter(columns.values())).held.items()):
        yield Piece(start, block.n_documents, dict)


# -- what was found


def with_words(plan: Plan, columns: Mapping[Key, TextColumn]) -> Plan:
    """The plan of a column of text with the words gathered for it."""
    column = columns.get(plan.key)
    if column is None or column.words is None or plan.field.levels is column.words:
        return plan
    why = f"{plan.field.why}; {len(column.words):,} different words"
    return replace(plan, field=replace(plan.field, levels=column.words, reading=column.reading, why=why))


def notes_on(columns: Mapping[Key, TextColumn]) -> list[str]:
    """What gathering the words has to say, column by column."""
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
    return notes


WORDLESS = "is text without words"


class Wordless(DataError):
    """A table of nothing but text that holds no word; `fields` are its columns."""

    fields: tuple[Field, ...] = ()


def refuse_wordless(plans: Sequence[Plan], columns: Mapping[Key, TextColumn]) -> None:
    """Raise where a table is nothing but text without a word."""
    used = [plan.key for plan in plans if plan.field.used]
    chosen = [columns[key].chosen for key in used if key in columns]
    if len(chosen) == len(used) and all(found is not None and not len(found.words) for found in chosen):
        name = wording.column(used[0])
        error = Wordless(f"{name} {WORDLESS}, and there is nothing else to model: {_why_none(chosen[0])}.")
        error.fields = tuple(plan.field for plan in plans)
        raise error


def _why_none(chosen: Any) -> str:
    if not chosen.n_documents:
        return "every document is missing"
    if not len(chosen.columns):
        what = "a word has two or more letters or digits, unless (in Python) pattern or analyzer says otherwise"
        return f"none in {chosen.n_documents:,} documents, stop words apart; {what}"
    if chosen.unlabelled == len(chosen.columns):
        return f"the rows that have a label hold none of the {chosen.unlabelled:,} of the others; label rows that do"
    met = f"of {len(chosen.columns):,} different ones none is kept"
    return f"{met}; lower min_count, min_df or drop_top, or raise max_df (--min-count, --min-df, --drop-top, --max-df)"


def document_at(table: Table, key: Key, row: int) -> str | None:
    """The document at a row, counted from 0, as it was written; None where it is missing, or the column not there."""
    name = table.located.get(key)
    if name is None:
        return None
    for piece in table.source.pieces({name: CELLS}):
        if piece.start <= row < piece.start + piece.n_rows:
            cell = piece.load()[name].slice(row - piece.start, 1)
            found: str | None = documents_of(key, cell, table.words)[0].as_py()
            return found
    return None


# -- documents given without a table


def text_column(data: Any) -> Mapping[Key, Any] | None:
    """Documents in a row (a list, an array, a series of strings, None where missing) as a table of one column.

    None for anything else: a table, numbers, rows of cells.

    >>> text_column(["free money", None])["text"].null_count
    1
    >>> text_column([1.5, 2.5]) is None
    True
    """
    if isinstance(data, str | bytes | Mapping) or not hasattr(data, "__len__") or hasattr(data, "columns"):
        return None
    if getattr(data, "ndim", 1) != 1 or getattr(getattr(data, "dtype", None), "kind", "O") not in "OUT":
        return None
    column = _arrow_series(data) if is_frame(data) else _strings(data)
    return None if column is None or cells_of(column.type) not in (Cells.TEXT, Cells.EMPTY) else {TEXT: column}


def _arrow_series(data: Any) -> Any:
    import pyarrow as pa

    if isinstance(data, pa.Array | pa.ChunkedArray):
        return data
    try:
        return pa.chunked_array(data)
    except (pa.ArrowException, ValueError, TypeError):
        return _strings(list(data))


def _strings(cells: Any) -> Any:
    """Strings as Arrow text; None where a cell is anything else, missing ones apart."""
    import pyarrow as pa

    first = next((cell for cell in cells if not is_missing(cell)), None)
    if not isinstance(first, str):
        return None
    try:
        return pa.array(cells, pa.large_string())
    except (pa.ArrowException, TypeError, UnicodeError):
        known = [None if is_missing(cell) else cell for cell in cells]
    return arrow_column(TEXT, known) if all(cell is None or isinstance(cell, str) for cell in known) else None
