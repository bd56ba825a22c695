"""Which kind of source some data is: by its content, never by its file name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from softcount.core.remedies import POSTGRES
from softcount.errors import DataError
from softcount.sources.arrow_files import (
    ARROW_MAGIC,
    PARQUET_MAGIC,
    ArrowFileSource,
    ParquetSource,
    is_stream,
    stream_source,
)
from softcount.sources.bytestream import Progress, TextFile, first_bytes, is_passing, spooled
from softcount.sources.csv_file import CsvSource
from softcount.sources.databases import part_source
from softcount.sources.documents import DocumentsSource, archive_of
from softcount.sources.frames import DenseSource, SparseSource, collected, columns_source, frame_source, is_frame
from softcount.sources.joined_files import JoinedSource, matching, table_parts
from softcount.sources.json_and_arff import declared_source, json_source
from softcount.sources.source import CONTENT_DECIDES, FileFormat, Source


def open_source(data: Any, missing: tuple[str, ...], form: FileFormat, progress: Progress | None) -> Source:
    """A source of rows from a path, a frame, an array, a sparse matrix, or a mapping of columns; a source as it is."""
    if isinstance(data, str | os.PathLike):
        make = partial(file_source, missing=missing, form=form, progress=progress)
        return from_path(os.fsdecode(data), make, form)
    if isinstance(data, list | tuple) and data and all(isinstance(file, os.PathLike) for file in data):
        make = partial(file_source, missing=missing, form=form, progress=progress)
        return joined_files([os.fsdecode(file) for file in data], make, form)
    data = collected(data)
    if hasattr(data, "pieces") and hasattr(data, "head"):
        source: Source = data
        return source
    if isinstance(data, np.ndarray):
        return _array_source(data)
    if type(data).__module__.startswith("scipy.sparse"):  # without importing SciPy
        if data.dtype.kind == "c":
            raise DataError("Complex data not supported: a table holds real numbers, counts and categories.")
        if data.ndim != 2:
            raise DataError(f"Expected 2D array, got {data.ndim}D array instead. Reshape your data.")
        rows = data.tocsr()
        return SparseSource(rows if rows.dtype == np.float64 else rows.astype(np.float64))
    if is_stream(data):
        return stream_source(data)
    if is_frame(data):
        return frame_source(data)
    if isinstance(data, Mapping):
        return columns_source(data)
    return _array_source(_nested_array(data))


def joined_files(files: Sequence[str], make: Callable[[str, str], Source], form: FileFormat) -> Source:
    """The rows of several files, each opened by `make`, as one table."""
    return JoinedSource([from_path(file, make) for file in files], files, form.file_column)


def from_path(path: str, make: Callable[[str, str], Source], form: FileFormat = CONTENT_DECIDES) -> Source:
    """What `make(path, name)` opens; what can be read only once is copied first, and the copy goes with the source.

    A pattern stands for all files that match it, a folder of rows for all files in it, and `data.db::table` for a table
    in a file of several.
    """
    if path.startswith(POSTGRES):
        found = part_source(path)
        assert found is not None
        return found
    parts = table_parts(path)
    if parts:
        sources = [from_path(part.path, make) for part in parts]
        return JoinedSource(sources, [part.path for part in parts], form.file_column, [part.said for part in parts])
    files = matching(path)
    if files or form.file_column is not None:
        return joined_files(files or [path], make, form)
    part = None if is_passing(path) else part_source(path)
    if part is not None:
        part.form = form
        return part
    if not is_passing(path):
        return make(path, path)
    copy = spooled(path)
    try:
        source = make(copy.path, "standard input" if path == "-" else path)
    except BaseException:
        copy.remove()
        raise
    copy.remove_with(source)
    return source


def file_source(path: str, name: str, missing: tuple[str, ...], form: FileFormat, progress: Progress | None) -> Source:
    """The source of a file of rows, or of a folder or tar file of documents."""
    archive = archive_of(path, name, progress)
    if archive is not None:
        return DocumentsSource(archive, progress=progress)
    if first_bytes(path, len(PARQUET_MAGIC)) == PARQUET_MAGIC:
        return ParquetSource(path, name, progress)
    if first_bytes(path, len(ARROW_MAGIC)) == ARROW_MAGIC:
        return ArrowFileSource(path, name)
    file = TextFile(path, name, progress, form.encoding)
    notes = file.detect_encoding()
    found: Source = declared_source(file) or json_source(file) or CsvSource(file, missing, form)
    found.form = form
    found.notes = (*notes, *found.notes)
    return found


def _array_source(array: np.ndarray) -> Source:
    if array.dtype.kind in "iufb" or array.ndim != 2 or array.dtype.kind == "c" or 0 in array.shape:
        return DenseSource(_plain(array))
    return columns_source({place: array[:, place] for place in range(array.shape[1])}, named=False)


def _plain(array: np.ndarray) -> np.ndarray:
    """The array itself; one of half or extended precision as float64."""
    if isinstance(array, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(array), np.nan, array.data.astype(np.float64))
    if type(array) is not np.ndarray:
        array = np.asarray(array)
    return array.astype(np.float64) if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8) else array


def _nested_array(data: Any) -> np.ndarray:
    """Rows given as lists; numbers become an array of numbers, anything else keeps each cell as it is."""
    if not hasattr(data, "__len__") and not hasattr(data, "__array__"):
        raise DataError(f"a {type(data).__name__} is no table. Pass a file name, a frame, or a 2-D array.")
    try:
        array = np.asarray(data)
    except ValueError:
        raise DataError(f"the rows differ in length: {_uneven(data)}. Rows of one table have one length.") from None
    if array.dtype.kind in "iufbc":
        return array
    return np.asarray(data, dtype=object)


def _uneven(data: Any) -> str:
    lengths = [len(row) if hasattr(row, "__len__") else 1 for row in data]
    odd = next(place for place, length in enumerate(lengths) if length != lengths[0])
    return f"row 1 has {lengths[0]} cells, row {odd + 1} has {lengths[odd]}"
