"""Text tables read in blocks of whole lines."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec.structs import replace

from softcount.core import remedies
from softcount.core.lazy import pa
from softcount.errors import DataError
from softcount.sources import csv_dialect, wording
from softcount.sources.bytestream import BOM, LONGEST, TextFile
from softcount.sources.frames import filled, flat
from softcount.sources.source import (
    BLANKS,
    CONTENT_DECIDES,
    FEW_ROWS,
    LOOK_ROWS,
    FileFormat,
    Key,
    Source,
    TablePiece,
    Wanted,
    chunk_rows_for,
    look_rows_for,
    spoken_delimiter,
)

_quoted = re.compile(rb'"(?:[^"]|"")*"(?=\s|$)|\S+')


def clean_lines(blocks: Iterable[bytes], skip: int = 0, comment: bytes = b"", blanks: bool = False) -> Iterator[bytes]:
    r"""Remove the first `skip` lines and comments; with `blanks`, replace blanks between cells by one tab.

    >>> b"".join(clean_lines([b"title\r", b"\n\na,b\n", b" # 1\n1,2\n"], skip=2, comment=b"#"))
    b'a,b\n1,2\n'
    >>> b"".join(clean_lines([b'  x  y\n1 "a b"\n'], blanks=True))
    b'x\ty\n1\t"a b"\n'
    """
    tail = b""
    for block, last in csv_dialect.with_last(blocks):
        data = tail + block
        # A newline may follow a return that ends the block.
        cut = len(data) if last else max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1
        tail, lines = data[cut:], data[:cut].splitlines(keepends=True)
        lines, skip = lines[skip:], max(0, skip - len(lines))
        if comment:
            lines = [line for line in lines if not line.lstrip().startswith(comment)]
        if blanks:
            lines = [b"\t".join(_quoted.findall(line) if b'"' in line else line.split()) + b"\n" for line in lines]
        if lines:
            yield b"".join(lines)


# -- plain rows read by a compiled kernel: the same columns as from Arrow, at twice its speed

LONGEST_WORD = 7
"""Bytes of the longest missing word that the kernel compares."""


def plain_columns(
    run: csv_dialect.RowBytes, keys: Sequence[Key], delimiter: str, wanted: Mapping[Key, Wanted], missing: Sequence[str]
) -> dict[Key, Any] | None:
    """Return the wanted columns as Arrow arrays of numbers or categories; None if some cell is not plain."""
    from softcount.kernels import csv_cells

    if any(want.text for want in wanted.values()):
        return None
    if any(len(x.encode()) > LONGEST_WORD or x[:1].isdigit() or x.startswith(("+", "-", ".")) for x in missing):
        return None
    data, n_rows = run.data, run.n_rows
    numbers, coded = ([key for key in keys if key in wanted and wanted[key].numeric is kind] for kind in (True, False))
    reals, codes = np.empty((len(numbers), n_rows)), np.empty((len(coded), n_rows), dtype=np.int32)
    tables = np.zeros((len(coded), csv_cells.CELLS, 2), dtype=np.uint64)
    stores = np.empty((len(coded), csv_cells.STORE), dtype=np.uint8)
    offsets = np.zeros((len(coded), csv_cells.MOST_LEVELS + 1), dtype=np.int64)
    met = np.zeros(len(coded), dtype=np.int64)
    of_numbers = {True: csv_cells.PADDED, False: csv_cells.NUMBER}
    kinds = np.array(
        [
            csv_cells.SKIP if want is None else of_numbers[want.padded] if want.numeric else csv_cells.LEVEL
            for want in map(wanted.get, keys)
        ],
        dtype=np.int64,
    )
    words = np.array([int.from_bytes(word.encode(), "little") for word in missing], dtype=np.uint64)
    letters, room = np.frombuffer(data + bytes(8), dtype=np.uint8), (reals, codes, tables, stores, offsets, met)
    if not csv_cells.read_cells(letters, n_rows, ord(delimiter), kinds, words, room):
        return None
    columns: dict[Key, Any] = {}
    for key, line in zip(numbers, reals, strict=True):
        buffers = [_validity(~np.isnan(line)), pa.py_buffer(line)]
        columns[key] = pa.Array.from_buffers(pa.float64(), n_rows, buffers)
    for place, key in enumerate(coded):
        ends = offsets[place, : met[place] + 1].tolist()
        spelt = stores[place, : ends[-1]].tobytes()
        try:
            columns[key] = _levels(codes[place], [spelt[a:b].decode() for a, b in pairwise(ends)], missing)
        except UnicodeDecodeError:  # Arrow reports which
            return None
    return {key: columns[key] for key in wanted}


def _levels(codes: np.ndarray, texts: list[str], missing: Sequence[str]) -> Any:
    there = np.array([text not in missing for text in texts], dtype=bool)
    places = (np.cumsum(there) - there).astype(np.int32)[codes]
    kept = [text for text in texts if text not in missing]
    indices = pa.Array.from_buffers(pa.int32(), len(codes), [_validity(there[codes]), pa.py_buffer(places)])
    return pa.DictionaryArray.from_arrays(indices, pa.array(kept, pa.string()))


def _validity(known: np.ndarray) -> Any:
    return None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))


# -- CSV and TSV files: chunks of rows as bytes, parsed by Arrow in any thread

LOOK_BYTES = 48 << 20
"""Bytes of rows that decide the kinds, so that very long rows do not fill the memory."""
CHUNK_BYTES = 64 << 20
"""Bytes of rows after which a chunk ends, however few rows these are."""
LOOK_RUN = 4_096
FEW_LINES = 10
"""Rows within which an uneven one may mean that the file begins with a title."""

ANY = Wanted(numeric=False)

_UNEVEN = re.compile(r"^CSV parse error: Row #(\d+): Expected \d+ columns, got (\d+)")
"""Arrow's message on a row with too few or too many cells."""


class CsvSource(Source):
    """A text table in a file. Arrow parses each column as a given type, and infers none."""

    text_file = True

    def __init__(self, file: TextFile, missing: tuple[str, ...], form: FileFormat = CONTENT_DECIDES) -> None:
        self.file, self.form = file, form
        self.missing = list(dict.fromkeys(("", *missing)))
        self._blanks = declared = form.delimiter == BLANKS
        self.dialect = self._dialect()
        self.keys, self.delimiter = list(self.dialect.names), self.dialect.delimiter
        self._nothing = " ".join(["", *self.keys]) if self.dialect.trailing else None  # longer than any name
        otherwise = remedies.either("delimiter", "--delimiter")
        blanks = (
            (f"cells are separated by blanks (set {otherwise} to change this)",) if self._blanks != declared else ()
        )
        self.notes = (*blanks, *self.dialect.notes)
        self._long = False
        self._look_run = min(LOOK_RUN, chunk_rows_for(0, columns=len(self.keys)))
        total, size = self._count_ahead()
        if not total:
            raise DataError(f"{file.name} has column names but no rows.")
        self._long = total > FEW_ROWS
        self.n_rows = None if self._long else total
        self.chunk_rows = chunk_rows_for(total, size / total, CHUNK_BYTES, len(self.keys))

    def quietly(self) -> CsvSource:
        """Return a copy of this source that reports no progress."""
        found = copy(self)
        found.file = copy(self.file)
        found.file.progress = None
        return found

    def _blocks(self, quiet: bool = False) -> Iterator[bytes]:
        blocks, form = self.file.blocks(quiet=quiet), self.form
        if not (form.skip_lines or form.comment or self._blanks):
            return blocks
        return clean_lines(blocks, form.skip_lines, form.comment.encode(), self._blanks)

    def _dialect(self) -> csv_dialect.Dialect:
        head, blank = bytearray(), 0
        for block, last in csv_dialect.with_last(self._blocks(quiet=True)):
            kept = block if head else block.lstrip(b"\r\n")
            head, blank = head + kept, blank + len(block) - len(kept)
            if blank > LONGEST:
                raise DataError(f"{self.file.name} begins with more than {LONGEST >> 20} MB of blank lines.")
            if len(head) >= csv_dialect.HEAD or last:
                undecided = not self._blanks and self.form.delimiter is None
                if (
                    undecided
                    and csv_dialect.best_delimiter(bytes(head[: csv_dialect.HEAD])) is None
                    and csv_dialect.is_blank_separated(bytes(head))
                ):
                    self._blanks = True
                    return self._dialect()
                form = replace(self.form, delimiter="\t") if self._blanks else self.form
                found = csv_dialect.dialect_of(self.file.name, bytes(head), last, form)
                if found is not None:
                    return found._replace(skip=found.skip + blank)
        raise DataError(f"{self.file.name} is empty. A table needs a line of column names and at least one row.")

    def _count_ahead(self) -> tuple[int, int]:
        """Return the number of rows and bytes, as far as the size of chunks depends on it."""
        total = size = broken = 0
        noted = False
        for run in self._runs(self._look_run, quiet=True):
            total, size = total + run.n_rows, size + len(run.data)
            returns = run.data.count(b"\r")
            broken += (run.data.count(b"\n") + (returns - run.data.count(b"\r\n") if returns else 0)) - run.n_rows
            if broken and not noted:  # allowed, but a stray quote looks the same
                noted, breaks = True, "1 line break" if broken == 1 else f"{broken:,} line breaks"
                where = f"rows {run.start + 1:,} to {run.start + run.n_rows:,}"
                self.notes = (*self.notes, f"{breaks} inside quoted cells ({where}) kept as part of the cell")
            if total > FEW_ROWS:
                break
        return total, size

    def _runs(self, rows: int, quiet: bool = False) -> Iterator[csv_dialect.RowBytes]:
        blocks = _skip_bytes(self._blocks(quiet), self.dialect.skip)
        return csv_dialect.runs(blocks, rows, self.dialect.delimiter, CHUNK_BYTES, lambda: self._compiled)

    @property
    def _compiled(self) -> bool:
        """Whether compiled loops are used: only if Numba is loaded already, since loading takes 1.2 s and 100 MB.

        The engine loads it for long tables.
        """
        return self._long and "numba" in sys.modules

    def head(self, keys: Sequence[Key]) -> Mapping[Key, Any]:
        wanted, parts = dict.fromkeys(keys, ANY), []
        rows, size, most = 0, 0, min(LOOK_ROWS, look_rows_for(len(self.keys)))
        for run in self._runs(self._look_run, quiet=True):
            parts.append(self._parse(run, wanted, as_read=True))
            rows, size = rows + run.n_rows, size + len(run.data)
            if size >= LOOK_BYTES or rows >= most:
                break
        return {key: pa.chunked_array([chunk for part in parts for chunk in part[key].chunks]) for key in keys}

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        total = 0
        for run in self._runs(self.chunk_rows):
            yield TablePiece(run.start, run.n_rows, partial(self._load, run, wanted))
            total += run.n_rows
        self.n_rows = total

    def _load(self, run: csv_dialect.RowBytes, wanted: Mapping[Key, Wanted]) -> Mapping[Key, Any]:
        """Return the wanted columns of a run: as numbers if they are plain, else as text for the caller to parse."""
        if self._compiled and self._nothing is None:
            found = plain_columns(run, self.keys, self.dialect.delimiter, wanted, self.missing)
            if found is not None:
                return found
        strict = [key for key, want in wanted.items() if want.numeric and not want.padded]
        as_text = {key: want if want.text else ANY for key, want in wanted.items()}
        if strict:
            padded = csv_dialect.padded_columns(run.data, self.dialect.delimiter, len(self.keys))
            if padded is None or any(self.keys[place] in strict for place in padded):
                return self._parse(run, as_text)
        try:
            columns = self._parse(run, wanted)
        except pa.ArrowInvalid:
            return self._parse(run, as_text)
        numeric = (columns[key] for key, want in wanted.items() if want.numeric)
        finite = all(np.isfinite(filled(flat(column), null=0.0)).all() for column in numeric)
        return columns if finite else self._parse(run, as_text)

    def _parse(self, run: csv_dialect.RowBytes, wanted: Mapping[Key, Wanted], as_read: bool = False) -> dict[Key, Any]:
        """Parse the wanted columns of a run; `as_read`: as text in which only empty cells are null."""
        from pyarrow import csv

        levels = pa.string() if as_read else pa.dictionary(pa.int32(), pa.string())
        nothing = [] if self._nothing is None else [self._nothing]
        types = {(True, False): pa.float64(), (False, True): pa.large_string(), (False, False): levels}
        # Only at the start of a file is this a byte-order mark, and this is not the start. Arrow removes one, so pass
        # two.
        data = BOM + run.data if run.data.startswith(BOM) else run.data
        names = [*self.keys, *nothing]
        try:
            table = csv.read_csv(
                pa.BufferReader(data),
                read_options=csv.ReadOptions(column_names=names, block_size=len(data) + 1, use_threads=False),
                parse_options=csv.ParseOptions(delimiter=self.dialect.delimiter, newlines_in_values=True),
                convert_options=csv.ConvertOptions(
                    column_types={key: types[want.numeric, want.text] for key, want in wanted.items()}
                    | dict.fromkeys(nothing, pa.null()),
                    include_columns=[*wanted, *nothing],
                    null_values=[""] if as_read else self.missing,
                    strings_can_be_null=True,
                ),
            )
        except pa.ArrowInvalid as error:
            self._explain(run, str(error))
            raise
        if table.num_rows != run.n_rows:
            raise DataError(
                f"rows {run.start + 1} to {run.start + run.n_rows} of {self.file.name} cannot be separated: "
                "a quote is in the wrong place. Write a quote inside a cell twice."
            )
        return {key: table.column(key) for key in wanted}

    def _explain(self, run: csv_dialect.RowBytes, message: str) -> None:
        """Raise Arrow's error in the user's terms; return if it only reports a cell that is not a number."""
        uneven, spoken = _UNEVEN.search(message), spoken_delimiter(self.dialect.delimiter)
        if uneven:
            row, expected = run.start + int(uneven[1]), len(self.keys)
            hint = "Check for a delimiter or quote inside a cell"
            if expected == 1:
                hint = "Check that all lines use the same delimiter (comma, semicolon, tab or bar)"
            if row <= FEW_LINES:
                skip = remedies.either("skip_lines=N", "--skip-lines N")
                hint += f"; if the file begins with other lines, skip them: {skip}"
            raise DataError(
                f"row {row} of {self.file.name} has {uneven[2]} cells where the {spoken}-separated header "
                f"has {expected} columns ({wording.and_others(self.keys, 3)}). {hint}."
            )
        if "utf8" in message.lower():
            row = run.start
            try:
                run.data.decode("utf-8")
            except UnicodeDecodeError as error:
                row += csv_dialect.rows_before(run.data, error.start, self.dialect.delimiter) + 1
            decoder, done = codecs.getincrementaldecoder("utf-8")(), 0
            for block in self.file.blocks(quiet=True):
                try:
                    decoder.decode(block)
                except UnicodeDecodeError as error:
                    done += error.start
                    break
                done += len(block)
            raise csv_dialect.not_utf8(self.file.name, done, row)
        if "conversion error to null" in message:
            raise DataError(
                f"{self.file.name}: rows end with a {spoken}, but in rows {run.start + 1} to "
                f"{run.start + run.n_rows} a cell follows it. Give every column a name in the first line."
            )
        if "conversion error" not in message:
            raise DataError(f"{self.file.name}, rows {run.start + 1} to {run.start + run.n_rows}: {message}.")


def _skip_bytes(blocks: Iterator[bytes], skip: int) -> Iterator[bytes]:
    for block in blocks:
        yield block[skip:]
        skip = max(0, skip - len(block))
