"""Reading DATA: a table to learn from, or a table, documents or lines put to a model."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from softcount.cli.options import InputFormat, Request, TextUnit, find_name
from softcount.core.lazy import lazy_function
from softcount.errors import DataError
from softcount.families import FAMILIES
from softcount.learn.record import Learned, retry_wider
from softcount.models.declare import Declared, read_kinds
from softcount.run.local import Threads
from softcount.run.progress import READING, Tell, keep_quiet
from softcount.sources.arrow_files import PARQUET_MAGIC
from softcount.sources.bytestream import TextFile, first_bytes
from softcount.sources.csv_dialect import DELIMITERS
from softcount.sources.documents import DocumentsSource, LinesSource, archive_of, is_tar, lines_of, one_document
from softcount.sources.frames import source_columns
from softcount.sources.open_source import file_source, from_path, open_source, table_parts
from softcount.sources.source import Source
from softcount.table import MISSING, Chunk, Chunks, Key, Schema, Settled, Table, open_table
from softcount.table.cell_values import count_decimals, format_cell
from softcount.table.schema import apart, labels

if TYPE_CHECKING:
    from softcount.sequences import Sequences


query_source = lazy_function("softcount.sources.databases", "query_source")
class_codes = lazy_function("softcount.fit.network", "class_codes")
open_sequences = lazy_function("softcount.sequences", "open_sequences")
arrow_of = lazy_function("softcount.estimators.result_frames", "arrow_of")
fill_arrow = lazy_function("softcount.estimators.result_frames", "fill_arrow")

UNITS: dict[TextUnit, str] = {"lines": "each line as a document", "document": "the whole as a document"}
FIRST_LINES = 50
FEW_LINES = 5
"""Fewer lines than this with the same number of commas are not taken for a table."""
SENTENCE = 3
"""Words in a line, on average, from which lines may be sentences."""
TABLES = (".csv", ".tsv", ".tab")
"""Endings of names of tables."""


def list_missing(form: InputFormat, usual: tuple[str, ...] = MISSING) -> tuple[str, ...]:
    """The cells that mean missing: the usual ones, or those of a model, and those that were added."""
    return form.only_missing or (*usual, *form.missing)


def holds_classes(data: str) -> bool:
    """Whether DATA may be documents in folders, which are their classes."""
    if os.path.isdir(data):
        return not table_parts(data)
    return os.path.isfile(data) and is_tar(data)


# -- to learn from


def declare_kinds(kinds: Mapping[Any, Any]) -> Declared:
    """The kinds of columns that --kind declares. Commas divide the columns of a block; "" stands for all others."""
    named = {key: kind for key, kind in kinds.items() if key}
    blocks = {name for name, family in FAMILIES.items() if family().facts.block}
    found = read_kinds({tuple(key.split(",")) if kind in blocks else key: kind for key, kind in named.items()})
    return replace(found, all_auto=len(named) < len(kinds))


def open_data(data: str, kinds: Declared, form: InputFormat, tell: Tell = keep_quiet) -> Table:
    with may_be_lines(data, form):
        return make_table(open_data_source(data, form, tell), kinds, form)


def make_table(source: Source, kinds: Declared, form: InputFormat, **sides: Any) -> Table:
    forced: Any = kinds.forced
    return open_table(source, kinds=forced, missing=list_missing(form), **sides)


def read_through(table: Table) -> tuple[Schema, int, dict[Key, int], list[str]]:
    """The schema after all rows were read, the number of rows, the missing cells of each column, and notes."""
    with Threads() as threads:

        def attempt(table: Table) -> tuple[Schema, int, dict[Key, int], list[str]]:
            rows = sum(threads.map(lambda task: task().n_rows, table.tasks()))
            return table.settle().schema, rows, table.missing, table.notes

        return retry_wider(table, attempt, threads, known_classes=False)


def open_data_source(data: str, form: InputFormat, tell: Tell) -> Any:
    progress = partial(tell, READING)
    if form.sql is not None:
        return query_source(form.sql, data)
    if form.unit == "lines":
        encoding = form.file.encoding
        return from_path(
            data, lambda path, name: LinesSource(TextFile(_refuse_folder(path, name), name, progress, encoding))
        )
    return open_source(data, list_missing(form), form.file, progress)


def _refuse_folder(path: str, name: str) -> str:
    """The path of a file to be read line by line; folders and tar files are refused."""
    if holds_classes(path):
        raise DataError(f"{name} holds documents in files of their own. Leave out --lines, or name one of its files.")
    return path


# -- to be answered for by a model


def open_like(fitted: Learned, data: str, form: InputFormat, tell: Tell = keep_quiet) -> Table:
    """A table read in the format of the training data, or documents if the model reads text."""
    with may_be_lines(data, form) if fitted.schema.texts else nullcontext():
        source = open_source_like(fitted, data, form, tell)
        return open_table(source, schema=fitted.schema, missing=list_missing(form, fitted.schema.missing))


def open_source_like(fitted: Learned, data: str, form: InputFormat, tell: Tell) -> Any:
    """The rows of DATA for a model: a table, or documents if the model reads text.

    Folders and tar files hold a document in each file. Any other file is a table, unless the model reads nothing but
    text and the first line does not name its column: then each line is a document.
    """
    if form.sql is not None:
        return query_source(form.sql, data)
    file, progress = form.file.over(fitted.schema.form), partial(tell, READING)

    def open_file(path: str, name: str) -> Source:
        shelf = archive_of(_refuse_folder(path, name) if form.unit == "lines" else path, name, progress)
        if shelf is not None:
            return DocumentsSource(shelf, find_text_column(fitted, f"{name} holds documents"), progress)
        is_table = form.file.header is False or form.file.names
        unit = form.unit or (None if is_table else _guess_unit(fitted, form, path, name))
        if unit is None:
            return file_source(path, name, list_missing(form, fitted.schema.missing), file, progress)
        content, plural = TextFile(path, name, progress), "documents" if unit == "lines" else "a document"
        column = find_text_column(fitted, f"{name} is to be read as {plural}")
        return LinesSource(content, column) if unit == "lines" else one_document(content, column)

    return from_path(data, open_file, file)


def find_text_column(fitted: Learned, what: str) -> Any:
    """The model's only column of text; a model that has none, or several, is refused."""
    keys = fitted.schema.texts
    if len(keys) == 1:
        return keys[0]
    columns = ", ".join(repr(spec.key) for spec in fitted.schema.used[:5])
    if not keys:
        raise DataError(f"{what}, but the model reads no text. Give it a table with its columns: {columns}.")
    raise DataError(f"{what}, but the model reads {len(keys)} columns of text. Give it a table with {columns}.")


def _guess_unit(fitted: Learned, form: InputFormat, path: str, name: str) -> TextUnit | None:
    """The unit of documents in a file that is not a table; None if it is one, or if the model reads more than text."""
    key = fitted.schema.only_text
    if key is None or first_bytes(path, len(PARQUET_MAGIC)) == PARQUET_MAGIC:
        return None
    lines = _read_first_lines(path, name)
    named = (row for mark in DELIMITERS for row in _split_rows(lines[:1], mark, csv.QUOTE_MINIMAL))
    if any(str(key) == cell.strip() for row in named for cell in row):
        return None
    width = find_width(lines)
    if width and (fitted.schema.form.header is False or fitted.schema.form.names):
        return None
    if width or name.lower().removesuffix(".gz").endswith(TABLES):
        looks = f"looks like a table of {width} columns" if width else "is named like a table"
        remedy = "Name it there" + (" (or --no-header)" if re.fullmatch(r"c\d+", str(key)) else "")
        raise DataError(
            f"{name} {looks}, and its first line does not name the column that the model reads, {str(key)!r}.\n"
            f"  {remedy}; to take {UNITS[form.default_unit]}: --{form.default_unit}"
        )
    return form.default_unit


def _read_first_lines(path: str, name: str) -> list[str]:
    found = lines_of(TextFile(path, name).blocks(quiet=True), name)
    return [line.decode("utf-8", "replace") for line in islice(found, FIRST_LINES)]


@contextmanager
def may_be_lines(data: str, form: InputFormat) -> Iterator[None]:
    """If DATA cannot be used as a table and its lines are sentences, let the error mention --lines."""
    try:
        yield
    except DataError as error:
        if type(error) is not DataError or form.unit is not None or not os.path.isfile(data):
            raise
        lines: list[str] = []
        with suppress(DataError):
            lines = [line for line in _read_first_lines(data, data) if line.strip()]
        words = sum(len(line.split()) for line in lines) / max(len(lines), 1)
        if words < SENTENCE or find_width(lines) or any("\0" in line for line in lines):
            raise
        raise DataError(f"{error}\n  If each line is a document: --lines") from None


def find_width(lines: list[str]) -> int:
    r"""The number of columns of a table with these lines, with or without quoting; 0 if they are not a table.

    If there are two columns, no space may follow the comma, as it does in sentences.

    >>> find_width(["a\t1"] * 5), find_width(["well, hello"] * 5), find_width(["1,2,3"] * 4)
    (2, 0, 0)
    >>> find_width(['ham,"well, hello"', "spam,free"] * 3)
    2
    """
    for delimiter in DELIMITERS:
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
            rows = _split_rows(lines, delimiter, quoting)
            width = len(rows[0]) if len(rows) >= FEW_LINES else 0
            tight = delimiter == "\t" or not any(cell.startswith(" ") for row in rows for cell in row[1:])
            if width >= 2 and all(len(row) == width for row in rows) and (width > 2 or tight):
                return width
    return 0


def _split_rows(lines: list[str], delimiter: str, quoting: Any) -> list[list[str]]:
    """The rows under a delimiter; the last line may be in the middle of one."""
    try:
        rows = [row for row in csv.reader((f"{line}\n" for line in lines), delimiter=delimiter, quoting=quoting) if row]
    except csv.Error:  # a cell that is longer than cells may be
        return []
    return rows[:-1] if len(lines) == FIRST_LINES else rows


def open_rows(fitted: Any, data: str, form: InputFormat, of: Any, tell: Tell = keep_quiet) -> tuple[Table, Any]:
    """A table for a model, and its rows: for a network with their classes as evidence if another node is predicted."""
    table = open_like(fitted, data, form, tell)
    label = fitted.net.target if hasattr(fitted, "net") else None
    if label is None or of == label or label not in table.source.keys:
        return table, table
    words = list_missing(form, fitted.schema.missing)
    table = open_table(table.source, schema=fitted.schema, missing=words, target=label)
    codes = class_codes(fitted, table)
    chunks = (task() for task in table.tasks())
    return table, Chunks([replace(x, labels=codes[x.start : x.start + x.n_rows]) for x in chunks])


# -- sequences


def read_sequences(
    request: Request, weight: str | None = None, column: Any = None, tell: Tell = keep_quiet
) -> Sequences:
    """The sequences in DATA; of a long table one column, if it is given."""
    layout = request.layout
    found: Sequences = open_sequences(
        request.data, sequence=layout.sequence, sort_by=layout.sort_by, weight=weight, steps=layout.steps,
        columns=[column] if isinstance(column, str) and layout.steps is None else None,
        missing=list_missing(request.form), form=request.form.file, progress=partial(tell, READING),
    )  # fmt: skip
    return found


# -- columns as they are written in DATA


ALL = "all"


Fills = Mapping[Any, tuple["np.ndarray", "np.ndarray"]]


def keep_columns(predicted: pa.Table, source: Source, keep: Sequence[str]) -> pa.Table:
    """The predictions after the kept columns of DATA; a prediction of the same name gets brackets."""
    if not keep:
        return predicted
    names = labels(source.keys)
    known = {name: key for key, name in names.items()}
    chosen: list[Key] = []
    for text in keep:  # a name, several with commas between them, or all
        listed = list(known) if text == ALL and ALL not in known else [text] if text in known else text.split(",")
        chosen += [find_name(known, name, "--keep", "the table has no column") for name in listed]
    kept = {names[key]: cells for key, cells in source_columns(source, list(dict.fromkeys(chosen))).items()}
    ours = {apart(name, list(kept)): predicted.column(name) for name in predicted.column_names}
    return pa.table({**kept, **ours})


SIGNIFICANT = 6
"""Significant digits of a probability in CSV, unless --digits is given."""


def round_numbers(table: pa.Table, digits: int | None, for_text: bool = False) -> pa.Table:
    """Round numbers to these digits after the point; `for_text`, without digits, to six significant ones."""
    if digits is None and not for_text:
        return table
    import pyarrow.compute as pc  # 60 ms

    for place, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            column = table.column(place)
            shorter = _round_significant(column) if digits is None else pc.round(column, digits)
            table = table.set_column(place, field.name, shorter)
    return table


def _round_significant(column: pa.ChunkedArray) -> pa.Array:
    """Round to six significant digits, but never before the point; missing cells stay."""
    values = column.to_numpy()
    sizes = np.abs(np.where(np.isfinite(values) & (values != 0), values, 1.0))
    scales = 10.0 ** np.clip(SIGNIFICANT - 1 - np.floor(np.log10(sizes)), 0, 300)
    return pa.array(np.round(values * scales) / scales, type=column.type, mask=column.is_null().to_numpy())


def fill_columns(source: Source, fills: Fills, digits: int | None) -> pa.Table:
    """DATA with its missing cells filled; columns that only the model has come last."""
    columns: dict[Key, Any] = dict(source_columns(source, source.keys))
    for key, (rows, values) in fills.items():
        own = columns.get(key)
        if own is not None and bool(
            pa.types.is_string(own.type) or pa.types.is_large_string(own.type) or pa.types.is_string_view(own.type)
        ):
            columns[key] = _fill_text(own, rows, values, digits)
        else:
            columns[key] = fill_arrow(key, own, rows, values)
    return pa.table(list(columns.values()), names=list(labels(columns).values()))


def _fill_text(column: Any, rows: np.ndarray, values: np.ndarray, digits: int | None) -> Any:
    """The column with its fills as text: with these digits, the decimals of the other cells, or six digits."""
    cells = column.to_pylist()
    own = set(rows.tolist())
    decimals = count_decimals([cell for row, cell in enumerate(cells) if row not in own])
    for row, value in zip(rows.tolist(), values.tolist(), strict=True):
        cells[row] = format_cell(value, decimals)
        if isinstance(value, float) and digits is not None:
            cells[row] = f"{round(value, digits):.{digits}f}"
        elif isinstance(value, float) and not decimals:
            cells[row] = f"{value:.6g}"
    return pa.array(cells, pa.large_string())


# -- one column as numbers

MOST_GROUPS = 50
"""Categories of `--by` beyond which the densities cannot be distinguished in a picture."""


def read_column(request: Request, tell: Tell) -> tuple[np.ndarray, list[Any] | None, int]:
    """The numbers of --column, NaN if missing; the category of --by of each row; and how many numbers are missing."""
    data, by, form = request.data, request.by, request.form
    source = open_data_source(data, form, tell)
    names = {str(key): key for key in source.keys}
    column = find_name(names, request.column, "--column", f"{data} has no column")
    group = None if by is None else find_name(names, by, "--by", f"{data} has no column")
    if request.column == by:
        raise DataError(f"--by: {by!r} is the column itself. Name another one, whose categories divide the rows.")
    wanted = {key: "normal" if key == column else "categorical" if key == group else "ignore" for key in names.values()}
    with Threads(1) as threads:
        chunks, settled = retry_wider(make_table(source, declare_kinds(wanted), form), _read_all, threads)
    places = settled.schema.places
    values = np.concatenate([chunk.reals[:, places[column].slot] for chunk in chunks] or [np.zeros(0)])
    labels = None
    if group is not None:
        levels = settled.schema[group].levels
        if len(levels) > MOST_GROUPS:
            raise DataError(f"--by: column {by!r} has {len(levels):,} levels, and at most {MOST_GROUPS} can be shown.")
        store, slot = places[group]
        codes = np.concatenate([getattr(chunk, store)[:, slot] for chunk in chunks])
        labels = [None, *levels, None]
        labels = [labels[code] for code in codes.tolist()]
    return values, labels, int(np.isnan(values).sum())


def _read_all(table: Table) -> tuple[list[Chunk], Settled]:
    chunks = list(table.chunks())
    settled = table.settle()
    return list(table.in_order(chunks, settled)), settled
