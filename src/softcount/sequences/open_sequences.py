"""Whatever holds sequences, opened: lists, arrays, columns of lists, long tables, lines of text, folders of files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from softcount import remedies
from softcount.errors import DataError
from softcount.sequences.long_table import all_columns, in_order, long_table
from softcount.sequences.nested import (
    is_list_column,
    is_list_type,
    list_column,
    list_columns,
    list_of_sequences,
    stacked,
)
from softcount.sequences.steps import Sequences, Steps
from softcount.sequences.text_symbols import text_steps, without_blank
from softcount.sources import wording
from softcount.sources.archives import FolderArchive, archive_of
from softcount.sources.bytestream import Progress, TextFile
from softcount.sources.detect import file_source, from_path, open_source
from softcount.sources.document_files import DocumentsSource, LinesSource, one_document
from softcount.sources.file_format import CONTENT_DECIDES, FileFormat
from softcount.sources.frames import TEXT, is_frame, refuse_elsewhere, text_column
from softcount.sources.source import Key, Source
from softcount.table import MISSING
from softcount.table.cell_values import MissingWords
from softcount.table.text_columns import CELLS

LINE, FILE = "line", "file"
"""What is one sequence where text is read: a line of a file, or the whole of it."""


def open_sequences(  # noqa: PLR0913
    data: Any,
    *,
    sequence: Key | None = None,
    order: Key | None = None,
    weight: Key | None = None,
    weights: Any = None,
    steps: str | None = None,
    columns: Sequence[Key] | None = None,
    missing: Sequence[str] = MISSING,
    form: FileFormat = CONTENT_DECIDES,
    empty: bool = False,
    progress: Progress | None = None,
) -> Sequences:
    """Sequences from anything that holds them, as `Sequences`: the rows of one table, and where each sequence starts.

    - A list of sequences: lists or arrays of symbols or numbers; of rows (2-D arrays, lists of tuples or of
      dictionaries) where a step has several columns; of frames. None and NaN are gaps. Strings are sequences of
      characters, or with `steps="words"` of words.
    - A column of lists, from Arrow, polars or Parquet; lists of structs have several columns, and so has a
      table of several such columns.
    - A long table (a file or a frame) with a row for each step: `sequence` names the column that says which
      sequence, `order` the one that says when, `weight` one with the weight of the whole sequence.
    - A text file, with `steps="characters"` or "words": each line is a sequence, or with `sequence="file"` the
      whole of it. A folder of such files: each file is one. Without `steps` each file of a folder is a table of steps.

    `columns` are those that a step has, where there are more. `weights` are one for each sequence. An empty sequence is
    refused unless `empty`.

    >>> open_sequences(["emma", "ava"]).lengths.tolist()
    [4, 3]
    >>> clicks = {"who": ["b", "a", "b"], "at": [2, 1, 1], "page": ["buy", "home", "home"]}
    >>> found = open_sequences(clicks, sequence="who", order="at")
    >>> found.names, found.lengths.tolist(), found.notes
    (['b', 'a'], [2, 1], ("1 sequence was not in order of 'at' and put so, first 'b'",))
    """
    refuse_elsewhere(data)
    if isinstance(data, Sequences):
        return data if weights is None else data.weighed(weights)
    said = (missing,) if isinstance(missing, str) else tuple(map(str, missing))
    if isinstance(data, str | os.PathLike):
        opened = _PathReader(os.fsdecode(data), said, form, progress)
        return opened.steps(sequence, order, weight, steps).only(columns).sequences(weights, empty)
    if sequence is not None or order is not None or weight is not None:
        source = open_source(data, said, form, progress)
        return _long(source, sequence, order, weight, said).only(columns).sequences(weights, empty)
    return _in_memory(data, steps).only(columns).sequences(weights, empty)


def _in_memory(data: Any, steps: str | None) -> Steps:
    texts = text_column(data)
    if texts is not None and len(data):
        return _strings(texts[TEXT], steps)
    if steps is not None:
        raise DataError(f"steps={steps!r} is for text, but the data are no list of strings.")
    if is_list_column(data):
        return list_column(data)
    if isinstance(data, Mapping) or (is_frame(data) and hasattr(data, "columns")):
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
    """Columns of lists, side by side; other columns are left out with a note."""
    heads = source.head(source.keys)
    keys = [key for key in source.keys if is_list_type(heads[key].type)]
    if not keys:
        raise _say_sequence(source)
    columns = all_columns(source, keys)
    found = list_columns(columns) if len(keys) > 1 else list_column(columns[keys[0]])
    if found.by_position and len(found.columns) == 1:
        found = replace(found, columns={keys[0]: found.columns[0]}, by_position=not source.named)
    other = [key for key in source.keys if key not in keys]
    notes = (f"left out, as they hold no lists: {wording.and_others(other)}",) if other else ()
    return replace(found, notes=(*source.notes, *notes))


def _say_sequence(source: Source) -> DataError:
    which = remedies.either("sequence='...'", "--sequence COLUMN")
    steps = remedies.either("steps='characters' or 'words'", "--steps characters or words")
    return DataError(
        f"a table with a row for each step needs the column that says which sequence: {which}. "
        f"Its columns are {wording.and_others(source.keys)}. "
        f"Text is read with {steps}."
    )


def _long(
    source: Source, sequence: Key | None, order: Key | None, weight: Key | None, missing: tuple[str, ...]
) -> Steps:
    if sequence is None:
        raise _say_sequence(source)
    words = MissingWords.besides_null(missing) if source.verbatim else MissingWords.of(missing, source.text_file)
    return long_table(source, sequence, order, weight, words)


class _PathReader:
    """The sequences of a path: a table, text, or a folder of either."""

    def __init__(self, path: str, missing: tuple[str, ...], form: FileFormat, progress: Progress | None) -> None:
        self.path, self.missing, self.form, self.progress = path, missing, form, progress

    def steps(self, sequence: Key | None, order: Key | None, weight: Key | None, steps: str | None) -> Steps:
        if steps is not None:
            if order is not None or weight is not None or sequence not in (None, LINE, FILE):
                raise DataError(
                    "text has no columns: with steps, sequence is 'line' or 'file', and order and weight none."
                )
            return self._texts(sequence, steps)
        if os.path.isdir(self.path):
            if sequence is not None:
                raise DataError("in a folder each file is a sequence: leave out the name of a sequence column.")
            return self._tables(order)
        make = partial(file_source, missing=self.missing, form=self.form, progress=self.progress)
        source = from_path(self.path, make)
        if sequence is None and order is None and weight is None:
            return _table_of_lists(source)
        return _long(source, sequence, order, weight, self.missing)

    def _texts(self, sequence: Key | None, steps: str) -> Steps:
        source = from_path(self.path, partial(self._text_source, whole=sequence == FILE))
        texts = [text or "" for piece in source.pieces({TEXT: CELLS}) for text in piece.load()[TEXT].to_pylist()]
        folder = isinstance(source, DocumentsSource)
        kept, names, notes = without_blank(texts, list(source.files), "file" if folder else "line")
        return text_steps(kept, steps, names, (*source.notes, *notes))

    def _text_source(self, path: str, name: str, whole: bool) -> Source:
        archive = archive_of(path, name, self.progress)
        if archive is not None:
            return DocumentsSource(archive, progress=self.progress)
        file = TextFile(path, name, self.progress)
        return one_document(file) if whole else LinesSource(file)

    def _tables(self, order: Key | None) -> Steps:
        """A table in each file of a folder, a row for each step."""
        names = FolderArchive(self.path).names
        if not names:
            raise DataError(f"{self.path} holds no files.")
        make = partial(open_source, missing=self.missing, form=self.form, progress=None)
        sources = [make(os.path.join(self.path, name)) for name in names]
        found = stacked([all_columns(source) for source in sources], names, any(x.text_file for x in sources))
        return found if order is None else in_order(found, order, self.missing)
