"""Text tables read in blocks of whole lines."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from softcount.core import remedies
from softcount.core.lazy import pa
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.bytestream import BOM, LONGEST, TextFile
from softcount.sources.csv_dialect import (
    HEAD,
    Dialect,
    RowBytes,
    best_delimiter,
    dialect_of,
    is_blank_separated,
    not_utf8,
    padded_columns,
    rows_before,
    runs,
    with_last,
)
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
)

_quoted = re.compile(rb'"(?:[^"]|"")*"(?=\s|$)|\S+')


def without_first_lines(blocks: Iterable[bytes], count: int) -> Iterator[bytes]:
    r"""The same without the first lines, however they end.

    >>> b"".join(without_first_lines([b"title\r", b"\n\na,b\n", b"1,2\n"], 2))
    b'a,b\n1,2\n'
    """
    lines = _split_lines(blocks) if count else ()
    for _, _line in zip(range(count), lines, strict=False):
        pass
    return iter(lines if count else blocks)


def without_comments(blocks: Iterable[bytes], comment: bytes) -> Iterator[bytes]:
    r"""The same without the lines that begin with a comment's sign, blanks before it or not.

    >>> b"".join(without_comments([b"# by hand\na,b\n #", b" 1\n1,2\n"], b"#"))
    b'a,b\n1,2\n'
    """
    if not comment:
        return iter(blocks)
    return _mapped(blocks, lambda line: b"" if line.lstrip().startswith(comment) else line)


def with_single_tabs(blocks: Iterable[bytes]) -> Iterator[bytes]:
    r"""The same with a tab between cells in place of blanks and tabs, which stay inside quotes only.

    >>> b"".join(with_single_tabs([b'  x  y\n1 "a b"\n']))
    b'x\ty\n1\t"a b"\n'
    """
    return _mapped(blocks, lambda line: b"\t".join(_quoted.findall(line) if b'"' in line else line.split()) + b"\n")


def _mapped(blocks: Iterable[bytes], change: Callable[[bytes], bytes]) -> Iterator[bytes]:
    for lines in _line_blocks(blocks):
        yield b"".join(map(change, lines))


def _split_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    for lines in _line_blocks(blocks):
        yield from lines


def _line_blocks(blocks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The whole lines of each block, with what ended them; a line that goes on waits for its end."""
    tail = b""
    for block in blocks:
        data = tail + block
        cut = max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1  # after a last return a newline may follow
        tail = data[cut:]
        if cut:
            yield data[:cut].splitlines(keepends=True)
    if tail:
        yield tail.splitlines(keepends=True)


# Rows of a text table read by a kernel of ours where they are plain: what Arrow would give, at twice its speed.

LONGEST_WORD = 7
"""Bytes of a word for missing that the kernel compares at once."""


class PlainRows(NamedTuple):
    """Rows as bytes, the columns they have, and what stands between their cells."""

    run: RowBytes
    keys: Sequence[Key]
    delimiter: str


def plain_columns(rows: PlainRows, wanted: Mapping[Key, Wanted], missing: Sequence[str]) -> dict[Key, Any] | None:
    """The wanted columns as Arrow arrays: numbers, or levels as they are met; None where some cell is not plain."""
    from softcount.kernels import csv_cells

    if any(want.text for want in wanted.values()) or not all(map(_is_plain, missing)):
        return None
    data, n_rows = rows.run.data, rows.run.n_rows
    numbers, coded = (
        [key for key in rows.keys if key in wanted and wanted[key].numeric is kind] for kind in (True, False)
    )
    reals, codes = np.empty((len(numbers), n_rows)), np.empty((len(coded), n_rows), dtype=np.int32)
    tables = np.zeros((len(coded), csv_cells.CELLS, 2), dtype=np.uint64)
    levels = np.empty((len(coded), csv_cells.MOST_LEVELS, 2), dtype=np.int64)
    met = np.zeros(len(coded), dtype=np.int64)
    kinds = np.array([_kind(wanted.get(key)) for key in rows.keys], dtype=np.int64)
    words = np.array([int.from_bytes(word.encode(), "little") for word in missing], dtype=np.uint64)
    letters, room = np.frombuffer(data + bytes(8), dtype=np.uint8), (reals, codes, tables, levels, met)
    if not csv_cells.read_cells(letters, n_rows, ord(rows.delimiter), kinds, words, room):
        return None
    columns: dict[Key, Any] = {key: _numbers(line) for key, line in zip(numbers, reals, strict=True)}
    for place, key in enumerate(coded):
        spans = levels[place, : met[place]] - [letters.ctypes.data, 0]
        texts = [data[begun : begun + size] for begun, size in spans.tolist()]
        try:
            columns[key] = _levels(codes[place], [text.decode() for text in texts], missing)
        except UnicodeDecodeError:  # Arrow says which
            return None
    return {key: columns[key] for key in wanted}


def _is_plain(word: str) -> bool:
    """Whether a word for missing is short enough to be compared, and no number."""
    return len(word.encode()) <= LONGEST_WORD and not (word[:1].isdigit() or word.startswith(("+", "-", ".")))


def _kind(want: Wanted | None) -> int:
    from softcount.kernels import csv_cells

    if want is None:
        return csv_cells.SKIP
    if not want.numeric:
        return csv_cells.LEVEL
    return csv_cells.PADDED if want.padded else csv_cells.NUMBER


def _numbers(values: np.ndarray) -> Any:
    return pa.Array.from_buffers(pa.float64(), len(values), [_validity(~np.isnan(values)), pa.py_buffer(values)])


def _levels(codes: np.ndarray, texts: list[str], missing: Sequence[str]) -> Any:
    """A dictionary array; levels that mean missing are null."""
    there = np.array([text not in missing for text in texts], dtype=bool)
    places = (np.cumsum(there) - there).astype(np.int32)[codes]
    kept = [text for text in texts if text not in missing]
    indices = pa.Array.from_buffers(pa.int32(), len(codes), [_validity(there[codes]), pa.py_buffer(places)])
    return pa.DictionaryArray.from_arrays(indices, pa.array(kept, pa.string()))


def _validity(known: np.ndarray) -> Any:
    return None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))


# CSV and TSV files: cut into chunks of rows as bytes, parsed by Arrow in whichever thread asks.

LOOK_BYTES = 48 << 20
"""Bytes of rows that are looked at at most, so that very long rows do not fill the memory."""

CHUNK_BYTES = 64 << 20
"""Bytes of rows after which a chunk ends, however few they are."""

LOOK_RUN = 4_096
FEW_LINES = 10
"""Rows within which an uneven one may be because the file begins with a title."""

ANY = Wanted(numeric=False)

_UNEVEN = re.compile(r"^CSV parse error: Row #(\d+): Expected \d+ columns, got (\d+)")
"""What Arrow says of a row with too few or too many cells."""


class CsvSource(Source):
    """A text table in a file. Types are ours to decide: Arrow parses only what it was told each column is."""

    text_file = True

    def __init__(self, file: TextFile, missing: tuple[str, ...], form: FileFormat = CONTENT_DECIDES) -> None:
        self.file, self.form = file, form
        self.missing = list(dict.fromkeys(("", *missing)))
        self._blanks = asked = form.delimiter == BLANKS
        self.dialect = self._dialect()
        self.keys, self.delimiter = list(self.dialect.names), self.dialect.delimiter
        self._nothing = " ".join(["", *self.keys]) if self.dialect.trailing else None  # longer than any name
        otherwise = remedies.either("delimiter", "--delimiter")
        said = (f"cells are parted by blanks ({otherwise} says otherwise)",) if self._blanks != asked else ()
        self.notes = (*said, *self.dialect.notes)
        self._long = False
        total, size = self._count_ahead()
        if not total:
            raise DataError(f"{file.name} has column names but no rows.")
        self._long = total > FEW_ROWS
        self.n_rows = None if self._long else total
        self.chunk_rows = chunk_rows_for(total, size / total, CHUNK_BYTES, len(self.keys))

    def quietly(self) -> CsvSource:
        """The same file for somebody else, who tells no progress."""
        found = copy(self)
        found.file = copy(self.file)
        found.file.progress = None
        return found

    def _blocks(self, quiet: bool = False) -> Iterator[bytes]:
        """The bytes of the file without the lines that are no rows."""
        blocks = without_first_lines(self.file.blocks(quiet=quiet), self.form.skip_lines)
        blocks = without_comments(blocks, self.form.comment.encode())
        return with_single_tabs(blocks) if self._blanks else blocks

    def _dialect(self) -> Dialect:
        head, blank = bytearray(), 0
        for block, last in with_last(self._blocks(quiet=True)):
            kept = block if head else block.lstrip(b"\r\n")
            head, blank = head + kept, blank + len(block) - len(kept)
            if blank > LONGEST:
                raise DataError(f"{self.file.name} begins with more than {LONGEST >> 20} MB of blank lines.")
            if len(head) >= HEAD or last:
                if self._seems_blank_separated(bytes(head)):
                    self._blanks = True
                    return self._dialect()
                form = replace(self.form, delimiter="\t") if self._blanks else self.form
                found = dialect_of(self.file.name, bytes(head), last, form)
                if found is not None:
                    return found._replace(skip=found.skip + blank)
        raise DataError(f"{self.file.name} is empty. A table needs a line of column names and at least one row.")

    def _seems_blank_separated(self, head: bytes) -> bool:
        if self._blanks or self.form.delimiter is not None or best_delimiter(head[:HEAD]) is not None:
            return False
        return is_blank_separated(head)

    def _count_ahead(self) -> tuple[int, int]:
        """How many rows and bytes there are, counting no further than the size of chunks depends on it."""
        total = size = broken = 0
        noted = False
        for run in self._runs(self._look_run, quiet=True):
            total, size = total + run.n_rows, size + len(run.data)
            returns = run.data.count(b"\r")
            broken += (run.data.count(b"\n") + (returns - run.data.count(b"\r\n") if returns else 0)) - run.n_rows
            if broken and not noted:
                noted, self.notes = True, (*self.notes, *_note_of_breaks(run, broken))
            if total > FEW_ROWS:
                break
        return total, size

    def _first_runs(self) -> Iterator[RowBytes]:
        rows, size, most = 0, 0, min(LOOK_ROWS, look_rows_for(len(self.keys)))
        for run in self._runs(self._look_run, quiet=True):
            yield run
            rows, size = rows + run.n_rows, size + len(run.data)
            if size >= LOOK_BYTES or rows >= most:
                return

    @property
    def _look_run(self) -> int:
        return min(LOOK_RUN, chunk_rows_for(0, columns=len(self.keys)))

    def _runs(self, rows: int, quiet: bool = False) -> Iterator[RowBytes]:
        blocks = _after(self._blocks(quiet), self.dialect.skip)
        return runs(blocks, rows, self.dialect.delimiter, CHUNK_BYTES, lambda: self._compiled)

    @property
    def _compiled(self) -> bool:
        """Only where Numba is awake (the engine wakes it for long tables): waking it takes 1.2 s and 100 MB."""
        return self._long and "numba" in sys.modules

    def head(self, keys: Sequence[Key]) -> Mapping[Key, Any]:
        wanted = dict.fromkeys(keys, ANY)
        parts = [self._parse(run, wanted, as_read=True) for run in self._first_runs()]
        return {key: pa.chunked_array([chunk for part in parts for chunk in part[key].chunks]) for key in keys}

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        total = 0
        for run in self._runs(self.chunk_rows):
            yield TablePiece(run.start, run.n_rows, partial(self._load, run, wanted))
            total += run.n_rows
        self.n_rows = total

    def _load(self, run: RowBytes, wanted: Mapping[Key, Wanted]) -> Mapping[Key, Any]:
        """The wanted columns of a run: parsed at once where its numbers are plain, else as text for us to judge."""
        if self._compiled and self._nothing is None:
            found = plain_columns(PlainRows(run, self.keys, self.dialect.delimiter), wanted, self.missing)
            if found is not None:
                return found
        strict = [key for key, want in wanted.items() if want.numeric and not want.padded]
        as_text = {key: want if want.text else ANY for key, want in wanted.items()}
        if strict and self._is_padded(run, strict):
            return self._parse(run, as_text)
        try:
            columns = self._parse(run, wanted)
        except pa.ArrowInvalid:
            return self._parse(run, as_text)
        numeric = (columns[key] for key, want in wanted.items() if want.numeric)
        finite = all(np.isfinite(filled(flat(column), null=0.0)).all() for column in numeric)
        return columns if finite else self._parse(run, as_text)

    def _is_padded(self, run: RowBytes, strict: list[Key]) -> bool:
        found = padded_columns(run.data, self.dialect.delimiter, len(self.keys), compiled=self._compiled)
        return found is None or any(self.keys[place] in strict for place in found)

    def _parse(self, run: RowBytes, wanted: Mapping[Key, Wanted], as_read: bool = False) -> dict[Key, Any]:
        """The wanted columns of a run; `as_read`: as text in which only empty cells are null."""
        try:
            table = self._arrow(run.data, wanted, as_read)
        except pa.ArrowInvalid as error:
            self._explain(run, str(error))
            raise
        if table.num_rows != run.n_rows:
            raise DataError(
                f"rows {run.start + 1} to {run.start + run.n_rows} of {self.file.name} cannot be told apart: "
                "a quote stands where none should. Double a quote inside a cell."
            )
        return {key: table.column(key) for key in wanted}

    def _arrow(self, data: bytes, wanted: Mapping[Key, Wanted], as_read: bool) -> Any:
        from pyarrow import csv

        levels = pa.string() if as_read else pa.dictionary(pa.int32(), pa.string())
        nothing = [] if self._nothing is None else [self._nothing]
        types = {(True, False): pa.float64(), (False, True): pa.large_string(), (False, False): levels}
        # A byte-order mark is one only where the file begins, which is not here: Arrow takes one off, so it gets two.
        whole = BOM + data if data.startswith(BOM) else data
        return csv.read_csv(
            pa.BufferReader(whole),
            read_options=csv.ReadOptions(
                column_names=[*self.keys, *nothing], block_size=len(whole) + 1, use_threads=False
            ),
            parse_options=csv.ParseOptions(delimiter=self.dialect.delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types={key: types[want.numeric, want.text] for key, want in wanted.items()}
                | dict.fromkeys(nothing, pa.null()),
                include_columns=[*wanted, *nothing],
                null_values=[""] if as_read else self.missing,
                strings_can_be_null=True,
            ),
        )

    def _explain(self, run: RowBytes, said: str) -> None:
        """Raise what is wrong with a run in the user's terms; return where it is only a number that is none."""
        uneven = _UNEVEN.search(said)
        if uneven:
            raise self._uneven(run.start + int(uneven[1]), int(uneven[2]))
        if "UTF8" in said or "utf8" in said.lower():
            row = run.start
            try:
                run.data.decode("utf-8")
            except UnicodeDecodeError as error:
                row += rows_before(run.data, error.start, self.dialect.delimiter) + 1
            raise not_utf8(self.file.name, _offset_of_bad_byte(self.file.blocks(quiet=True)), row)
        if "conversion error to null" in said:
            raise DataError(
                f"{self.file.name}: rows end with a {self.dialect.spoken}, but in rows {run.start + 1} to "
                f"{run.start + run.n_rows} something stands after one. Give every column a name in the first line."
            )
        if "conversion error" not in said:
            raise DataError(f"{self.file.name}, rows {run.start + 1} to {run.start + run.n_rows}: {said}.")

    def _uneven(self, row: int, cells: int) -> DataError:
        expected = len(self.keys)
        hint = "Check for a delimiter or quote inside a cell"
        if expected == 1:
            hint = "Check that all lines use the same delimiter (comma, semicolon, tab or bar)"
        if row <= FEW_LINES:
            skip = remedies.either("skip_lines=N", "--skip-lines N")
            hint += f"; where the file begins with other lines, leave them out: {skip}"
        return DataError(
            f"row {row} of {self.file.name} has {cells} cells where the {self.dialect.spoken}-separated header has "
            f"{expected} columns ({wording.and_others(self.keys, 3)}). {hint}."
        )


def _note_of_breaks(run: RowBytes, broken: int) -> tuple[str, ...]:
    """A note where quoted cells run over several lines: that is allowed, and also what a stray quote looks like."""
    if not broken:
        return ()
    breaks = "1 line break" if broken == 1 else f"{broken:,} line breaks"
    where = f"rows {run.start + 1:,} to {run.start + run.n_rows:,}"
    return (f"{breaks} inside quoted cells ({where}) kept as part of the cell",)


def _after(blocks: Iterator[bytes], skip: int) -> Iterator[bytes]:
    for block in blocks:
        yield block[skip:]
        skip = max(0, skip - len(block))


def _offset_of_bad_byte(blocks: Iterator[bytes]) -> int:
    decoder = codecs.getincrementaldecoder("utf-8")()
    done = 0
    for block in blocks:
        try:
            decoder.decode(block)
        except UnicodeDecodeError as error:
            return done + error.start
        done += len(block)
    return done
