"""Sequences from long tables, nested lists and text."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from msgspec.structs import replace

from softcount.core import remedies
from softcount.core.lazy import pa
from softcount.errors import DataError
from softcount.sequences.steps import Sequences, Steps, borders_of, check_sequence_weights, text_steps
from softcount.sources import frames, wording
from softcount.sources.bytestream import Progress, TextFile
from softcount.sources.documents import DocumentsSource, FolderArchive, LinesSource, archive_of, one_document
from softcount.sources.open_source import file_source, from_path, open_source
from softcount.sources.source import CONTENT_DECIDES, FileFormat, Key, Source, Wanted
from softcount.table import MISSING
from softcount.table.cell_values import MissingWords, distinct, numbers
from softcount.table.text_columns import CELLS


def long_table(
    source: Source, sequence: Key | None, sort_by: Key | None, weight: Key | None, missing: tuple[str, ...]
) -> Steps:
    """Gather the rows of each sequence, in order of the sequences' first rows, and sort them by `sort_by`.

    Without `sort_by`, rows stay in their order. Raise an error if two rows of a sequence have the same time.
    """
    if sequence is None:
        raise _no_sequence_column(source)
    words = MissingWords.of(missing, source.text_file, nulls=source.verbatim)
    for key, what in ((sequence, "sequence"), (sort_by, "sort_by"), (weight, "weight")):
        if key is not None:
            wording.refuse_unknown(source.keys, key, what)
    columns = all_columns(source)
    names, places = _distinct_names(sequence, columns.pop(sequence), words)
    number: dict[Any, int] = {}
    for place in places[np.sort(np.unique(places, return_index=True)[1])].tolist():
        number.setdefault(names[place], len(number))
    places = np.array([number.get(name, -1) for name in names], dtype=np.int64)[places]
    names = list(number)
    rows, notes = _sort_rows(sequence, sort_by, names, places, columns, words)
    weights = None
    if weight is not None:
        weights = numbers(columns.pop(weight), words, weight, 0, padded=True)
        _refuse_missing(weight, np.isnan(weights))
    if not columns:
        raise DataError("all columns are named for other purposes, so no column is left for the steps.")
    lengths = np.bincount(places, minlength=len(names)).astype(np.int64)
    if weights is not None:
        each, starts = weights[rows], borders_of(lengths)[:-1]
        weights = np.asarray(each[starts])
        differs = np.flatnonzero(each != np.repeat(weights, lengths))
        if len(differs):
            at = int(np.searchsorted(starts, differs[0], "right")) - 1
            raise DataError(
                f"sequence {names[at]!r}, step {differs[0] - starts[at] + 1}: its weight {each[differs[0]]:g} in "
                f"{wording.column(weight)} differs from {weights[at]:g} at step 1. A weight is of a whole sequence."
            )
    if (np.diff(rows) != 1).any():
        columns = {key: column.take(frames.arrow_of(rows)) for key, column in columns.items()}
    notes = (*source.notes, *notes)
    return Steps(columns, lengths, names, weights, notes, not source.named, source.text_file, source.verbatim)


def all_columns(source: Source, keys: Sequence[Key] | None = None) -> dict[Key, Any]:
    if not source.keys:
        raise DataError("a sparse matrix has no columns to name a sequence by. Give a frame or a file.")
    wanted = {key: Wanted(numeric=False) for key in keys or source.keys}
    pieces = [piece.load() for piece in source.pieces(wanted)]
    if any(isinstance(piece, np.ndarray) for piece in pieces):
        pieces = [{key: frames.arrow_of(piece[:, place]) for place, key in enumerate(source.keys)} for piece in pieces]
    found = {}
    for key in wanted:
        found[key] = frames.flat(pa.chunked_array(frames.unify(piece[key] for piece in pieces)).unify_dictionaries())
    return found


def _distinct_names(key: Key, column: Any, words: MissingWords) -> tuple[Sequence[Any], np.ndarray]:
    """Return the distinct cells of a column and the place of each row's cell. Raise an error if one is missing."""
    names, places = distinct(column, words)
    _refuse_missing(key, np.array([name is None for name in (*names, None)])[places])
    return names, places


def _refuse_missing(key: Key, gone: np.ndarray) -> None:
    if gone.any():
        row = int(np.argmax(gone)) + 1
        raise DataError(
            f"{wording.column(key)}, row {row}: missing, so the row belongs nowhere. Fill it, or drop the row."
        )


ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d.*)?")
"""Dates and times whose alphabetical order is the order of time."""


def _times(key: Key, column: Any, words: MissingWords) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return a number for each row that sorts rows, and notes: numbers and times by value, text alphabetically.

    A note says so for text, except for dates in ISO 8601.
    """
    cells = frames.cell_type(column.type)
    if cells in (frames.CellType.WHOLE, frames.CellType.FLOAT, frames.CellType.TIME, frames.CellType.TRUTH):
        column = frames.flat(column.dictionary_decode() if pa.types.is_dictionary(column.type) else column)
        _refuse_missing(key, ~frames.numpy_of(column.is_valid())[0])
        if cells is frames.CellType.TIME:
            wide = pa.int32() if column.type.bit_width == 32 else pa.int64()
            column = column.cast(wide)
        column = column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column
        values = frames.numpy_of(column)[0]
        if values.dtype.kind == "f":
            _refuse_missing(key, np.isnan(values))
        return values, ()
    if cells is frames.CellType.NESTED:
        raise DataError(f"{wording.column(key)} holds nested values, which have no order.")
    names, places = _distinct_names(key, column, words)
    texts = [str(name) for name in names]
    spelt, bad = frames.floats_of(texts, frames.PLAIN)
    if not bad.any():
        return np.asarray(spelt[places]), ()
    rank = {text: at for at, text in enumerate(sorted(set(texts)))}
    dates = all(ISO.fullmatch(text) for text in texts)
    notes = () if dates else (f"{wording.column(key)} is text and sorted by its spelling, first {min(texts)!r}",)
    return np.asarray(np.array([rank[text] for text in texts], dtype=np.int64)[places]), notes


def _sort_rows(
    sequence: Key,
    sort_by: Key | None,
    names: Sequence[Any],
    places: np.ndarray,
    columns: dict[Key, Any],
    words: MissingWords,
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the rows in the order of their steps, and notes on it. Removes the column `sort_by` from `columns`."""
    if sort_by is None:
        return np.argsort(places, kind="stable"), (
            f"no sort_by column: rows of one {sequence!r} are steps in the order of the table",
        )
    when, notes = _times(sort_by, columns.pop(sort_by), words)
    rows = np.lexsort((when, places))
    here, at = places[rows], when[rows]
    again = np.flatnonzero((here[1:] == here[:-1]) & (at[1:] == at[:-1]))
    if len(again):
        first, second = int(rows[again[0]]), int(rows[again[0] + 1])
        step = int(again[0]) - int(np.searchsorted(here, here[again[0]])) + 2
        raise DataError(
            f"sequence {names[here[again[0]]]!r}, step {step}: rows {first + 1} and {second + 1} have the same "
            f"{sort_by!r}. Which comes first must be known: sort by another column, or drop one of them."
        )
    moved = np.unique(here[1:][(here[1:] == here[:-1]) & (rows[1:] < rows[:-1])])
    if not len(moved):
        return rows, notes
    were = wording.count(len(moved), "sequence was", "sequences were")
    return rows, (*notes, f"{were} not in order of {sort_by!r} and sorted, first {names[moved[0]]!r}")


# Sequences that are nested in Python or in Arrow: lists of lists, of arrays, of frames; columns of lists.


def is_list_type(kind: Any) -> bool:
    return any(test(kind) for test in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list))


def list_column(column: Any) -> Steps:
    """Return the steps of a column of lists; structs are steps of several columns. Raise an error for a null list."""
    column = frames.flat(column)
    if column.null_count:
        known = frames.numpy_of(column.is_valid())[0]
        raise DataError(f"sequence {int(np.argmin(known)) + 1} is missing. Leave it out.")
    lengths = frames.numpy_of(column.value_lengths())[0].astype(np.int64)
    values = frames.flat(column.flatten())
    if pa.types.is_struct(values.type):
        names = [values.type.field(place).name for place in range(values.type.num_fields)]
        return Steps(dict(zip(names, values.flatten(), strict=True)), lengths)
    if is_list_type(values.type):
        return list_of_sequences(column.to_pylist())
    return Steps({0: values}, lengths, by_position=True)


def list_of_sequences(data: Sequence[Any]) -> Steps:
    parts = [_steps_of(at, sequence) for at, sequence in enumerate(data, start=1)]
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    if parts and all(frames.is_frame(part) and hasattr(part, "columns") for part in parts):
        sources = [frames.frame_source(part) for part in parts]
        columns = [dict(zip(source.keys, source.table.columns, strict=True)) for source in sources]
        return replace(stack_tables(columns), by_position=not sources[0].named)
    if parts and all(isinstance(part, np.ndarray) and part.dtype.kind in "iufb" for part in parts):
        axes = [part.ndim for part in parts]
        if max(axes) > 2:
            raise DataError(f"sequence {axes.index(max(axes)) + 1} has {max(axes)} axes. A sequence has one or two.")
        widths = [part.shape[1] if part.ndim == 2 else 1 for part in parts]
        _refuse_widths(widths)
        whole = np.concatenate([part.reshape(len(part), width) for part, width in zip(parts, widths, strict=True)])
        by_place: dict[Hashable, Any] = {
            place: frames.arrow_column(place, whole[:, place]) for place in range(widths[0])
        }
        return Steps(by_place, lengths, by_position=True)
    cells = list(chain.from_iterable(part.tolist() if isinstance(part, np.ndarray) else part for part in parts))
    first = next((cell for cell in cells if not _is_gap(cell)), None)
    if isinstance(first, Mapping):
        return _records(cells, lengths)
    if isinstance(first, list | tuple | np.ndarray):
        width = len(first)
        rows = [[None] * width if _is_gap(cell) else cell for cell in cells]
        found = [len(row) if isinstance(row, list | tuple | np.ndarray) else 1 for row in rows]
        _refuse_widths(found, lengths)
        cells_of: dict[Hashable, Any] = {
            place: frames.arrow_column(place, [row[place] for row in rows]) for place in range(width)
        }
        return Steps(cells_of, lengths, by_position=True)
    place = next((i for i, cell in enumerate(cells) if isinstance(cell, list | tuple | Mapping | np.ndarray)), None)
    if place is not None:
        raise DataError(
            f"{_step_name(lengths, place)} has several values, but sequence 1 has 1 for a step. All steps have the "
            "same columns; give None for a value that is missing."
        )
    return Steps({0: frames.arrow_column(0, cells)}, lengths, by_position=True)


def _steps_of(at: int, sequence: Any) -> Any:
    if isinstance(sequence, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(sequence), np.nan, sequence.data.astype(np.float64))
    single = isinstance(sequence, str | bytes | Mapping) or not hasattr(sequence, "__len__")
    if single or getattr(sequence, "ndim", 1) == 0:
        raise DataError(
            f"a list of sequences is wanted, but item {at} is {wording.cell(sequence)}. Put a single sequence into "
            f"a list: [sequence]."
        )
    plain = isinstance(sequence, np.ndarray | list | tuple) or (
        frames.is_frame(sequence) and hasattr(sequence, "columns")
    )
    return sequence if plain else list(sequence)


def _is_gap(cell: Any) -> bool:
    return not isinstance(cell, np.ndarray | list | tuple) and frames.is_missing(cell)


def _step_name(lengths: np.ndarray, row: int) -> str:
    starts = borders_of(lengths)
    at = int(np.searchsorted(starts, row, "right")) - 1
    return f"sequence {at + 1}, step {row - int(starts[at]) + 1}"


def _refuse_widths(widths: Sequence[int], lengths: np.ndarray | None = None) -> None:
    """Raise an error for the first sequence, or step if `lengths` are given, that has not the width of the first."""
    odd = next((place for place, width in enumerate(widths) if width != widths[0]), None)
    if odd is not None:
        where = f"sequence {odd + 1}" if lengths is None else f"{_step_name(lengths, odd)},"
        raise DataError(
            f"{where} has {widths[odd]} values for a step, but sequence 1 has {widths[0]}. "
            "All steps have the same columns; give None for a value that is missing."
        )


def _records(cells: list[Any], lengths: np.ndarray) -> Steps:
    """Return steps given as dictionaries; a name that a step does not have is a missing cell."""
    for place, cell in enumerate(cells):
        if not (isinstance(cell, Mapping) or _is_gap(cell)):
            raise DataError(
                f"{_step_name(lengths, place)} is {wording.cell(cell)}, but other steps are dictionaries. Give one "
                "there too."
            )
    names = list(dict.fromkeys(name for cell in cells if isinstance(cell, Mapping) for name in cell))
    known = [cell if isinstance(cell, Mapping) else {} for cell in cells]
    columns = {
        key: [cell.get(name) for cell in known] for key, name in zip(frames.plain_keys(names), names, strict=True)
    }
    return Steps({key: frames.arrow_column(key, column) for key, column in columns.items()}, lengths)


def stack_tables(tables: Sequence[Mapping[Key, Any]], names: Sequence[str] = (), text_file: bool = False) -> Steps:
    """Concatenate tables with the same columns, each of them a sequence. Columns are matched by name."""
    keys = list(tables[0])
    for at, table in enumerate(tables, start=1):
        odd = sorted(map(str, set(table) ^ set(keys)))
        if odd:
            which, first = (names[at - 1], names[0]) if names else (at, 1)
            raise DataError(
                f"sequence {which!r} has other columns than sequence {first!r}: {wording.and_others(odd)}. "
                "All have the same."
            )
    lengths = np.array([len(table[keys[0]]) for table in tables], dtype=np.int64)
    columns = {}
    for key in keys:
        arrays = [frames.flat(table[key]) for table in tables]
        arrays = [array.dictionary_decode() if pa.types.is_dictionary(array.type) else array for array in arrays]
        columns[key] = pa.concat_arrays(frames.unify(arrays, mixed=pa.large_string()))
    return Steps(columns, lengths, names, text_file=text_file, verbatim=not text_file)


# Opening sequences from any source: lists, arrays, columns of lists, long tables, lines of text, folders of files.

LINE, FILE = "line", "file"
"""What a sequence is in a text file: a line, or the whole file."""


def open_sequences(  # noqa: PLR0913
    data: Any,
    *,
    sequence: Key | None = None,
    sort_by: Key | None = None,
    weight: Key | None = None,
    weights: Any = None,
    steps: str | None = None,
    columns: Sequence[Key] | None = None,
    missing: Sequence[str] = MISSING,
    form: FileFormat = CONTENT_DECIDES,
    empty: bool = False,
    progress: Progress | None = None,
) -> Sequences:
    """Open sequences from a list, a column of lists, a long table, a text file or a folder.

    - A list of sequences: lists or arrays of symbols or numbers; of rows if a step has several columns (2-D arrays,
      lists of tuples or of dictionaries); of frames. None and NaN are missing steps. A string is a sequence of
      characters, or of words with `steps="words"`.
    - A column of lists (Arrow, polars or Parquet), or a table of several such columns. Lists of structs have several
      columns.
    - A long table (a file or a frame) with one row per step: `sequence` is the column with the name of the sequence,
      `sort_by` the column that sorts its steps (a time or a number), `weight` the column with the sequence's weight.
    - A text file, with `steps="characters"` or "words": each line is a sequence, or the whole file with
      `sequence="file"`. In a folder each file is a sequence: of text with `steps`, otherwise a table of steps.

    `columns` selects columns of the steps. `weights` holds one weight per sequence. An empty sequence raises an error
    unless `empty` is True.

    >>> open_sequences(["emma", "ava"]).lengths.tolist()
    [4, 3]
    >>> clicks = {"who": ["b", "a", "b"], "at": [2, 1, 1], "page": ["buy", "home", "home"]}
    >>> found = open_sequences(clicks, sequence="who", sort_by="at")
    >>> found.names, found.lengths.tolist(), found.notes
    (['b', 'a'], [2, 1], ("1 sequence was not in order of 'at' and sorted, first 'b'",))
    """
    frames.refuse_elsewhere(data)
    if isinstance(data, Sequences):
        return data if weights is None else replace(data, weights=check_sequence_weights(weights, len(data)))
    words = (missing,) if isinstance(missing, str) else tuple(map(str, missing))
    named = (sequence, sort_by, weight)
    if isinstance(data, str | os.PathLike):
        path = os.fsdecode(data)
        if steps is not None:
            found = _text_file(path, named, steps, progress)
        elif os.path.isdir(path):
            found = _folder_of_tables(path, named, words, form)
        else:
            source = from_path(path, partial(file_source, missing=words, form=form, progress=progress))
            found = _table_of_lists(source) if named == (None, None, None) else long_table(source, *named, words)
    elif named != (None, None, None):
        found = long_table(open_source(data, words, form, progress), *named, words)
    else:
        found = _in_memory(data, steps)
    if columns is not None:
        for key in columns:
            wording.refuse_unknown(found.columns, key, "columns")
        found = replace(found, columns={key: found.columns[key] for key in columns})
    return found.sequences(weights, empty)


def _in_memory(data: Any, steps: str | None) -> Steps:
    texts = frames.text_column(data)
    if texts is not None and len(data):
        return _strings(texts[frames.TEXT], steps)
    if steps is not None:
        raise DataError(f"steps={steps!r} is for text, but the data are not a list of strings.")
    column = data if isinstance(data, pa.Array | pa.ChunkedArray) else None
    if column is None and frames.is_frame(data) and not hasattr(data, "columns"):
        with suppress(pa.ArrowException, ValueError, TypeError):
            column = pa.chunked_array(data)
    if column is not None and is_list_type(column.type):
        return list_column(column)
    if isinstance(data, Mapping) or (frames.is_frame(data) and hasattr(data, "columns")):
        return _table_of_lists(open_source(data, MISSING, CONTENT_DECIDES, None))
    if isinstance(data, np.ndarray) and data.dtype.kind != "O" and data.ndim < 3:
        ways = "[array] for one sequence" + (", or list(array) for a sequence in each row" if data.ndim == 2 else "")
        raise DataError(f"an array of {data.ndim} axes may be read in several ways. Give a list: {ways}.")
    if not hasattr(data, "__iter__") or hasattr(data, "tocsr"):
        raise DataError(
            f"a {type(data).__name__} holds no sequences. Give a list of them, a column of lists or a file."
        )
    return list_of_sequences(list(data))


def _strings(column: Any, steps: str | None) -> Steps:
    texts = column.to_pylist()
    gone = next((place for place, text in enumerate(texts) if text is None), None)
    if gone is not None:
        raise DataError(f"sequence {gone + 1} is missing. Leave it out.")
    if steps is None and len(texts) > 1 and all(len(text) <= 1 for text in texts):
        raise DataError(
            "a list of strings is a list of texts, but each has one character. One sequence of symbols goes into a "
            "list of its own: [sequence]; texts of one character need steps='characters'."
        )
    return text_steps(texts, steps or "characters")


def _table_of_lists(source: Source) -> Steps:
    """Return the steps of all columns of lists; a note names the columns that are left out."""
    heads = source.head(source.keys)
    keys = [key for key in source.keys if is_list_type(heads[key].type)]
    if not keys:
        raise _no_sequence_column(source)
    columns = all_columns(source, keys)
    first, *others = parts = [list_column(columns[key]) for key in keys]
    for key, part in zip(keys[1:], others, strict=True):
        differs = np.flatnonzero(part.lengths != first.lengths)
        if len(differs):
            at = int(differs[0])
            raise DataError(
                f"sequence {at + 1} has {first.lengths[at]} steps in {wording.column(keys[0])} and {part.lengths[at]} "
                f"in {wording.column(key)}. Columns of one sequence have one length."
            )
    found = first
    if others:
        found = Steps({key: part.columns[0] for key, part in zip(keys, parts, strict=True)}, first.lengths)
    elif found.by_position and len(found.columns) == 1:
        found = replace(found, columns={keys[0]: found.columns[0]}, by_position=not source.named)
    other = [key for key in source.keys if key not in keys]
    notes = (f"left out, as they hold no lists: {wording.and_others(other)}",) if other else ()
    return replace(found, notes=(*source.notes, *notes))


def _no_sequence_column(source: Source) -> DataError:
    which = remedies.either("sequence='...'", "--sequence COLUMN")
    steps = remedies.either("steps='characters' or 'words'", "--steps characters or words")
    return DataError(
        f"a table with a row for each step needs the column that says which sequence: {which}. "
        f"Its columns are {wording.and_others(source.keys)}. "
        f"Text is read with {steps}."
    )


def _text_file(path: str, named: tuple[Any, Any, Any], steps: str, progress: Progress | None) -> Steps:
    """Return the lines of a text file, the whole file, or the files of a folder as sequences."""
    sequence, sort_by, weight = named
    if sort_by is not None or weight is not None or sequence not in (None, LINE, FILE):
        raise DataError(
            "text has no columns: with steps, sequence is 'line' or 'file', and sort_by and weight are None."
        )

    def open_text(path: str, name: str) -> Source:
        archive = archive_of(path, name, progress)
        if archive is not None:
            return DocumentsSource(archive, progress=progress)
        file = TextFile(path, name, progress)
        return one_document(file) if sequence == FILE else LinesSource(file)

    source = from_path(path, open_text)
    texts = [
        text or "" for piece in source.pieces({frames.TEXT: CELLS}) for text in piece.load()[frames.TEXT].to_pylist()
    ]
    what = "file" if isinstance(source, DocumentsSource) else "line"
    kept = [place for place, text in enumerate(texts) if text.strip()]
    if not kept:
        raise DataError(f"there is no {what} that holds anything.")
    were = wording.count(len(texts) - len(kept), f"empty {what} was", f"empty {what}s were")
    notes = (f"{were} left out",) if len(kept) < len(texts) else ()
    names = [source.files[place] for place in kept] if source.files else []
    return text_steps([texts[place] for place in kept], steps, names, (*source.notes, *notes))


def _folder_of_tables(path: str, named: tuple[Any, Any, Any], missing: tuple[str, ...], form: FileFormat) -> Steps:
    sequence, sort_by, _ = named
    if sequence is not None:
        raise DataError("in a folder each file is a sequence: leave out the name of a sequence column.")
    names = FolderArchive(path).names
    if not names:
        raise DataError(f"{path} holds no files.")
    sources = [open_source(os.path.join(path, name), missing, form, None) for name in names]
    found = stack_tables([all_columns(source) for source in sources], names, any(x.text_file for x in sources))
    if sort_by is None:
        return found
    wording.refuse_unknown(found.columns, sort_by, "sort_by")
    columns = dict(found.columns)
    places = np.repeat(np.arange(len(found.lengths)), found.lengths)
    words = MissingWords.of(missing, found.text_file)
    rows, notes = _sort_rows("sequence", sort_by, found.names, places, columns, words)
    taken = {key: column.take(frames.arrow_of(rows)) for key, column in columns.items()}
    return replace(found, columns=taken, notes=(*found.notes, *notes))
