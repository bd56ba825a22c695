"""Where results and messages go, and what a failure says: standard output, files, notes, errors and exit codes."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from softcount.cli.options import QUIET, loudness
from softcount.core.remedies import without_password
from softcount.errors import DataError, DataWarning, ModelFileError, SoftcountError, is_shortage
from softcount.pictures.text import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from softcount.report.page import Page
    from softcount.run.progress import Tell


STANDARD = "-"


def check_output(output: str | None, *inputs: str) -> None:
    """Refuse a file that could not be written, or is one of the inputs, before any work is done for it."""
    if output is None or output == STANDARD:
        return
    from softcount.files import check_writable

    for name in inputs:
        if name != STANDARD and same_file(output, name):
            raise click.UsageError(f"the output {output!r} is also an input, and would be overwritten")
    check_writable(output)


def check_plot(plot: str | None, data: str, json_wanted: bool) -> None:
    """Refuse a picture that could not be written, or would go where an answer in JSON goes."""
    check_output(plot, data)
    if plot == STANDARD and json_wanted:
        raise click.UsageError("--json and --plot - cannot both go to standard output")


@contextmanager
def progress() -> Iterator[Tell]:
    """What to call as work gets done: click's `obj` where a caller in Python gave one, else bars on a terminal."""
    from softcount.run.progress import progress_on

    watching = click.get_current_context().obj
    if watching is not None:
        yield watching
        return
    with progress_on(io.StringIO() if loudness() == QUIET else sys.stderr) as tell:
        yield tell


def put_answer(
    document: Callable[[], Any], page: Callable[[], Page], json_wanted: bool, on_error_stream: bool = False
) -> None:
    """One JSON document on standard output, or else a page for a person, there or on standard error."""
    from softcount.report.page import as_json, show_page

    if json_wanted:
        put_bytes(as_json(document()).encode(), STANDARD)
    else:
        show_page(page(), sys.stderr if on_error_stream else sys.stdout)


def put_rows(table: pa.Table, output: str | None, json_wanted: bool) -> None:
    """The rows as CSV, as Parquet where the file's name says so, or as a JSON list of objects."""
    from softcount.report.answers import write_csv, write_parquet
    from softcount.report.page import as_json

    if json_wanted:
        put_bytes(as_json(table.to_pylist()).encode(), output)
        return
    write = write_parquet if is_parquet(output) else write_csv
    with _sink(output) as sink:
        write(table, sink)


def is_parquet(output: str | None) -> bool:
    """Whether rows go to a Parquet file, by its name."""
    return str(output).lower().endswith((".parquet", ".pq"))


def same_file(one: str, other: str) -> bool:
    """Whether both names are of one existing file, which reading and writing at once would ruin."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


@contextmanager
def _sink(output: str | None) -> Iterator[Any]:
    """Where bytes go: standard output, or a file that is there whole or not at all."""
    if output is None or output == STANDARD:
        sys.stdout.flush()
        stream = TerminalSafe(sys.stdout.buffer) if sys.stdout.isatty() else sys.stdout.buffer
        yield stream
        stream.flush()
        return
    from softcount.files import atomic_writer

    with atomic_writer(output, "wb") as sink:
        yield sink


class TerminalSafe:
    """Standard output while a person looks at it: data as it is for programs, but no escape sequence for a terminal."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, content: bytes) -> None:
        """The content, with what a terminal would obey spelled out."""
        lines = content.decode("utf-8", "surrogateescape").split("\n")
        self._stream.write("\n".join(map(printable, lines)).encode())

    def flush(self) -> None:
        self._stream.flush()


def put_bytes(content: bytes, output: str | None) -> None:
    """Bytes as they are, to a file or to standard output."""
    with _sink(output) as sink:
        sink.write(content)


def save_by(write: Callable[[Any], None], output: str) -> None:
    """Save a model whole or not at all by something that takes a path; "-" sends it to standard output."""
    if output != "-":
        write(output)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.sc"
        write(path)
        put_bytes(path.read_bytes(), output)


@contextmanager
def ready_streams() -> Iterator[None]:
    """While a command runs: warnings about data are notes, and a closed pipe ends it quietly."""
    for name in ("stdout", "stderr"):
        if hasattr(getattr(sys, name), "reconfigure"):  # a character that its encoding lacks is spelled out
            getattr(sys, name).reconfigure(errors="backslashreplace")
    with warnings.catch_warnings():
        if os.environ.get("SOFTCOUNT_DEBUG", "") in ("", "0"):
            warnings.simplefilter("ignore")
        warnings.simplefilter("always", DataWarning)
        warnings.showwarning = _show_note
        try:
            yield
            sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()
            raise click.exceptions.Exit(0) from None
        except OSError:
            try:
                sys.stdout.flush()
            except OSError:
                _drop_output()
            raise


class ClosedOutput(io.TextIOBase):
    """Standard output where the shell has closed it: what is written there is not lost without a word."""

    @property
    def buffer(self) -> Any:
        return self

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        raise OSError(errno.EBADF, "standard output is closed")


def replace_closed_streams() -> None:
    """Streams that the shell has closed: results cannot be delivered, messages need not be."""
    if sys.stdout is None:
        sys.stdout = ClosedOutput()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - open as long as the process


def _show_note(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    text = " ".join(str(message).split())
    if issubclass(category, DataWarning):
        say_note(text)
    else:
        say(f"{category.__name__}: {text}")


def say_note(message: str) -> None:
    """Something that its owner wants to know."""
    inform(f"note: {message}")


def inform(message: str) -> None:
    """A message that is no result and no error, unless nothing but those is to be said."""
    if loudness() > QUIET:
        say(message)


def _drop_output() -> None:
    """Point standard output at nothing, so that closing it at exit cannot fail again."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(message: str) -> None:
    """A message to the person, on standard error, which no escape sequence in it can reach."""
    click.echo(printable(message), err=True)


# -- failures: what each says, and which exit code it ends with

INTERNAL, USAGE, DATA, MODEL, RESOURCES, INTERRUPTED = 1, 2, 3, 4, 5, 130

_SCARCE = re.compile(r"can't start new thread|launch worker thread|out of memory|allocate memory|map segment", re.I)
"""What libraries say, by errors of any kind, where there is no memory left."""


def report_failure(error: Exception) -> int:
    """Say on standard error what went wrong, one line and its hints, and give the exit code."""
    if os.environ.get("SOFTCOUNT_DEBUG", "") not in ("", "0"):
        traceback.print_exception(error)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return USAGE
    first, *hints = map(without_password, message_lines(error))
    click.echo(f"error: {printable(first)}", err=True)
    for hint in hints:
        click.echo(f"  {printable(hint)}", err=True)
    return exit_code(error)


def exit_code(error: Exception) -> int:
    """The exit code documented for this kind of failure."""
    if isinstance(error, click.Abort):
        return INTERRUPTED
    if isinstance(error, click.ClickException):
        return USAGE
    if isinstance(error, ModelFileError):
        return MODEL
    if (
        is_shortage(error)
        or is_shortage(error.__cause__)
        or (not isinstance(error, SoftcountError) and _SCARCE.search(str(error)) is not None)
    ):
        return RESOURCES
    return DATA if isinstance(error, DataError | OSError) else INTERNAL


def message_lines(error: Exception) -> list[str]:
    """The message, then what to do about it."""
    if isinstance(error, click.Abort):
        return ["interrupted"]
    if isinstance(error, click.ClickException):
        lines = _own_lines(error.format_message())
        context = getattr(error, "ctx", None)
        return [*lines, f"Try: {context.command_path} --help"] if context else lines
    if isinstance(error, OSError) and error.strerror:
        return [_system_line(error)]
    if exit_code(error) == RESOURCES and not isinstance(error, SoftcountError):
        return [": ".join(["not enough memory", *_own_lines(str(error))[:1]])]
    if exit_code(error) != INTERNAL:
        return _own_lines(str(error)) or [type(error).__name__]
    return [
        f"internal error: {type(error).__name__}: {' '.join(str(error).split())}",
        "This is a fault of softcount, not of your data. SOFTCOUNT_DEBUG=1 shows where it happened.",
    ]


def _own_lines(message: str) -> list[str]:
    return [line.strip() for line in message.splitlines() if line.strip()]


def _system_line(error: OSError) -> str:
    said = error.strerror or str(error)
    reason = said[:1].lower() + said[1:]
    return f"{os.fsdecode(error.filename)}: {reason}" if isinstance(error.filename, str | bytes) else reason
