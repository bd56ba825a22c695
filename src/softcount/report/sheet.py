"""Rows for other programs: CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import IO

import pyarrow as pa

ROWS_AT_ONCE = 10_000


def write_csv(table: pa.Table, sink: IO[bytes]) -> None:
    """UTF-8, one header line, quotes only where a cell needs them; a missing cell is empty.

    A cell that begins like a formula is left as it is: the file is for programs, and changing data is worse.
    """
    sink.write(csv_lines([table.column_names]))
    for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
        sink.write(csv_lines(_rows(batch)))
    sink.flush()


def csv_lines(rows: Iterator[Sequence[object]] | list[list[str]]) -> bytes:
    r"""The rows as CSV text.

    >>> csv_lines([["a", 'b"c', "d,e"]])
    b'a,"b""c","d,e"\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "surrogatepass")


def _rows(batch: pa.RecordBatch) -> Iterator[Sequence[object]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def write_parquet(table: pa.Table, sink: IO[bytes]) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, sink)
