"""The reasons for rows' classes: of every row, or of a few with their words and documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softcount.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from softcount.fitted.answers import Explanation
    from softcount.fitted.fitted_model import Fitted
    from softcount.fitted.marking_words import Moved
    from softcount.table import Chunk, Chunks, Table


@dataclass(frozen=True, slots=True)
class Told:
    """One row: its figures, what its cells hold, how probable its class is, and the words of its documents."""

    line: Mapping[str, Any]
    cells: Mapping[str, str]
    title: str
    probability: float
    words: list[tuple[Moved, str | None]]


def chunks_with(fitted: Fitted, table: Table, rows: Iterable[int]) -> Chunks:
    """The chunks that hold the rows (counted from 1); every chunk where none are named."""
    from softcount.table import Chunks

    wanted, kept, n_rows = set(rows), [], 0
    for chunk in fitted.chunks(table):
        n_rows += chunk.n_rows
        here = range(chunk.start + 1, chunk.start + chunk.n_rows + 1)
        if not wanted or not wanted.isdisjoint(here):
            kept.append(chunk)
    for row in sorted(wanted):
        if row > n_rows:
            raise DataError(f"there is no row {row}: the table has {n_rows:,}. Rows are counted from 1.")
    return Chunks(kept, n_rows)


def every_row(fitted: Fitted, table: Table, against: str | None) -> pa.Table:
    """A line of reasons for every row."""
    from softcount.fitted.answers import explained
    from softcount.report.reason_page import reasons_table, rows_of

    kept: Any = chunks_with(fitted, table, ())
    rows = rows_of(kept.chunks)
    return _with_files(table, reasons_table(fitted, explained(fitted, kept, _other(fitted, against)), rows), rows)


def some_rows(
    fitted: Fitted, table: Table, rows: Sequence[int], against: str | None, title: str | None
) -> tuple[pa.Table, list[Told]]:
    """A line of reasons for each of the rows, counted from 1, and all there is to tell about it."""
    from softcount.cli.library_calls import proba
    from softcount.fitted.answers import explained
    from softcount.fitted.marking_words import row_of
    from softcount.report.reason_page import reasons_table
    from softcount.table import Chunks

    other = _other(fitted, against)
    kept: Any = chunks_with(fitted, table, rows)
    single: Any = Chunks([row_of(fitted, kept, row - 1) for row in rows])
    why = explained(fitted, single, other)
    _refuse_itself(rows, why, against, title)
    reasons = _with_files(table, reasons_table(fitted, why, rows), rows)
    likely = proba(fitted, single)[range(len(rows)), why.chosen].tolist()
    told = []
    for chunk, line, probability in zip(single.chunks, reasons.to_pylist(), likely, strict=True):
        words = _words(fitted, table, chunk, other)
        told.append(Told(line, _cells(fitted, chunk, words), title or _name(table, chunk.start), probability, words))
    return reasons, told


def _refuse_itself(rows: Sequence[int], why: Explanation, against: str | None, title: str | None) -> None:
    """Raise where a row is in the very class that it is to be compared with."""
    if against is None:
        return
    for row, same in zip(rows, why.chosen == why.against, strict=True):
        if same:
            raise DataError(
                f"{title or f'row {row}'} is in class {against!r} itself. "
                "Name another class with --against, or leave that out for the runner-up."
            )


def _with_files(table: Table, reasons: pa.Table, rows: Sequence[int]) -> pa.Table:
    """The lines with the file of each row, where each row is a file."""
    from softcount.report.reason_page import FILE

    files = table.source.files
    return reasons if not files else reasons.add_column(1, FILE, [[files[row - 1] for row in rows]])


def _words(fitted: Fitted, table: Table, chunk: Chunk, other: Any) -> list[tuple[Moved, str | None]]:
    """The words of each column of text in a chunk's only row, and the document they are in."""
    from softcount.fitted.marking_words import moved
    from softcount.table.texts import document_at

    found = moved(fitted, chunk, other) if fitted.schema.texts else []
    return [(part, document_at(table, part.key, chunk.start)) for part in found]


def _cells(fitted: Fitted, chunk: Chunk, words: list[tuple[Moved, str | None]]) -> dict[str, str]:
    """What the row holds; a document is told by how it begins."""
    from softcount.fitted.answers import label
    from softcount.report.reason_page import cells_of
    from softcount.report.word_page import beginning

    held = cells_of(fitted, [chunk], chunk.start + 1)
    return {**held, **{label(part.key): beginning(text) for part, text in words}}


def _name(table: Table, row: int) -> str:
    files = table.source.files
    return f"Row {row + 1} ({files[row]})" if files else f"Row {row + 1}"


def _other(fitted: Fitted, against: str | None) -> Any:
    from softcount.cli.named_columns import class_value

    return None if against is None else class_value(fitted, against, "--against")
