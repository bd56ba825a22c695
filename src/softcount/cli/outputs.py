"""Where results go: standard output, or a file written whole or not at all."""

from __future__ import annotations

import os
import sys
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pyarrow as pa

    from softcount.report.page import Page

STANDARD = "-"


def to_standard(output: str | None) -> bool:
    return output is None or output == STANDARD


def check_output(output: str | None) -> None:
    """Refuse a file that could not be written, before any work is done for it."""
    if output is not None and output != STANDARD:
        from softcount.files import check_writable

        check_writable(output)


def put_page(page: Page, on_error_stream: bool = False) -> None:
    from softcount.report.page import show

    show(page, sys.stderr if on_error_stream else sys.stdout)


def put_document(value: Any) -> None:
    """One JSON document on standard output, in UTF-8 whatever the terminal's encoding."""
    from softcount.report.json_page import as_json

    put_bytes(as_json(value).encode(), STANDARD)


def put_rows(table: pa.Table, output: str | None, json_wanted: bool) -> None:
    """The rows as a table for other programs, or as a JSON list of objects."""
    if not json_wanted:
        put_table(table, output)
        return
    from softcount.report.json_page import as_json

    put_bytes(as_json(table.to_pylist()).encode(), output)


def put_table(table: pa.Table, output: str | None) -> None:
    """The rows as CSV, or as Parquet where the file's name says so."""
    from softcount.report.sheet import write_csv, write_parquet

    if to_standard(output):
        write_csv(table, _standard_bytes())
        return
    from softcount.files import atomic_writer

    write = write_parquet if str(output).lower().endswith((".parquet", ".pq")) else write_csv
    with atomic_writer(str(output), "wb") as sink:
        write(table, sink)


def same_file(one: str, other: str) -> bool:
    """Whether both names are of one existing file, which reading and writing at once would ruin."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def refuse_overwriting(output: str | None, *inputs: str) -> None:
    for name in inputs:
        if output is not None and STANDARD not in (output, name) and same_file(output, name):
            raise click.UsageError(f"the output {output!r} is also an input, and would be overwritten")


def _standard_bytes() -> Any:
    sys.stdout.flush()
    return SpelledOut(sys.stdout.buffer) if sys.stdout.isatty() else sys.stdout.buffer


class SpelledOut:
    """Standard output while a person looks at it: data as it is for programs, but no escape sequence for a terminal."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, content: bytes) -> None:
        from softcount.report.plain_text import printable

        lines = content.decode("utf-8", "surrogateescape").split("\n")
        self._stream.write("\n".join(map(printable, lines)).encode())

    def flush(self) -> None:
        self._stream.flush()


def put_bytes(content: bytes, output: str | None) -> None:
    if to_standard(output):
        stream = _standard_bytes()
        stream.write(content)
        stream.flush()
        return
    from softcount.files import atomic_writer

    with atomic_writer(str(output), "wb") as sink:
        sink.write(content)
