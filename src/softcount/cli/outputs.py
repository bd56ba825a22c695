"""Results and messages of a command: standard output, files, notes, errors and exit codes."""

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

from softcount.cli.options import QUIET, Request, verbosity
from softcount.core.lazy import lazy_function
from softcount.core.remedies import in_shell, without_password
from softcount.core.scratch import reserve_room
from softcount.errors import DataError, DataWarning, ModelFileError, SoftcountError, is_shortage
from softcount.pictures.text import printable
from softcount.run.progress import Tell, end_on_interrupt, progress_on

if TYPE_CHECKING:
    import pyarrow as pa

    from softcount.report.page import Page

STANDARD = "-"
"""The name of standard input and standard output."""

as_json = lazy_function("softcount.report.page", "as_json")
show_page = lazy_function("softcount.report.page", "show_page")
write_csv = lazy_function("softcount.report.answers", "write_csv")
write_parquet = lazy_function("pyarrow.parquet", "write_table")
atomic_writer = lazy_function("softcount.files", "atomic_writer")
check_writable = lazy_function("softcount.files", "check_writable")

ROW_WRITERS = {".parquet": write_parquet, ".pq": write_parquet}
"""Functions that write a table to an open file, by the ending of its name; other names get CSV."""


def run_command(command: Callable[[], None]) -> None:
    """Run a command with its streams prepared, remedies in the words of the shell, and Ctrl-C as an error."""
    reserve_room()
    with in_shell(), prepared_streams(), end_on_interrupt():
        command()


def check_output(output: str | None, *inputs: str | None) -> None:
    """Refuse a file that cannot be written, or is one of the inputs, before any work is done for it."""
    if output is None or output == STANDARD:
        return
    for name in inputs:
        with suppress(OSError):  # one of the two is not there
            if name not in (None, STANDARD) and os.path.samefile(output, str(name)):
                raise click.UsageError(f"the output {output!r} is also an input, and would be overwritten")
    check_writable(output)


@contextmanager
def progress() -> Iterator[Tell]:
    """The function to call as work gets done: click's `obj` if a caller in Python gave one, else bars on a terminal."""
    watching = click.get_current_context().obj
    if watching is not None:
        yield watching
        return
    with progress_on(io.StringIO() if verbosity() == QUIET else sys.stderr) as tell:
        yield tell


def write_answer(
    as_data: bool, document: Callable[..., Any], page: Callable[..., Page], *found: Any, to_stderr: bool = False
) -> None:
    """Print findings as one JSON document, or as a page for a person."""
    if as_data:
        write_bytes(as_json(document(*found)).encode(), STANDARD)
    else:
        show_page(page(*found), sys.stderr if to_stderr else sys.stdout)


def write_rows(table: pa.Table, request: Request) -> None:
    """Write rows to the output of a command: as a JSON list with --json, otherwise in the format of its ending."""
    if request.json:
        write_bytes(as_json(table.to_pylist()).encode(), request.output)
        return
    with _open_output(request.output) as sink:
        ROW_WRITERS.get(_ending(request.output), write_csv)(table, sink)


def writes_csv(request: Request) -> bool:
    return not request.json and _ending(request.output) not in ROW_WRITERS


def _ending(output: str | None) -> str:
    return os.path.splitext(output or "")[1].lower()


@contextmanager
def _open_output(output: str | None) -> Iterator[Any]:
    """Standard output, or a file that is written completely or not at all."""
    if output is None or output == STANDARD:
        sys.stdout.flush()
        stream = TerminalSafe(sys.stdout.buffer) if sys.stdout.isatty() else sys.stdout.buffer
        yield stream
        stream.flush()
        return
    with atomic_writer(output, "wb") as sink:
        yield sink


class TerminalSafe:
    """Standard output on a terminal: escape sequences in the data are spelled out, so that it cannot obey them."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, content: bytes) -> None:
        lines = content.decode("utf-8", "surrogateescape").split("\n")
        self._stream.write("\n".join(map(printable, lines)).encode())

    def flush(self) -> None:
        self._stream.flush()


def write_bytes(content: bytes, output: str | None) -> None:
    with _open_output(output) as sink:
        sink.write(content)


def save_model_to(output: str, save: Callable[[Any], None]) -> None:
    """Call a function that saves a model to a path; "-" sends the file to standard output."""
    if output != STANDARD:
        save(output)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.sc"
        save(path)
        write_bytes(path.read_bytes(), output)


@contextmanager
def prepared_streams() -> Iterator[None]:
    """While a command runs, warnings about data are notes, and a closed pipe ends it quietly."""
    for name in ("stdout", "stderr"):
        if hasattr(getattr(sys, name), "reconfigure"):  # spell out characters that the encoding lacks
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
    """Standard output that the shell has closed: writing to it is an error."""

    @property
    def buffer(self) -> Any:
        return self

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        raise OSError(errno.EBADF, "standard output is closed")


def replace_closed_streams() -> None:
    """Replace streams that the shell has closed: results then raise an error, messages are dropped."""
    if sys.stdout is None:
        sys.stdout = ClosedOutput()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - open as long as the process


def _show_note(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    text = " ".join(str(message).split())
    if issubclass(category, DataWarning):
        print_note(text)
    else:
        print_message(f"{category.__name__}: {text}")


def print_note(message: str) -> None:
    print_info(f"note: {message}")


def print_info(message: str) -> None:
    """Print a message that is neither a result nor an error, unless -q is given."""
    if verbosity() > QUIET:
        print_message(message)


def print_message(message: str) -> None:
    """Print to standard error, with escape sequences spelled out."""
    click.echo(printable(message), err=True)


def _drop_output() -> None:
    """Point standard output at nothing, so that closing it at exit cannot fail again."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# -- failures: messages and exit codes

INTERNAL, USAGE, DATA, MODEL, RESOURCES, INTERRUPTED = 1, 2, 3, 4, 5, 130

_SCARCE = re.compile(r"can't start new thread|launch worker thread|out of memory|allocate memory|map segment", re.I)
"""Messages of libraries, in errors of any kind, if no memory is left."""


def report_failure(error: Exception) -> int:
    """Print the message of an error and its hints to standard error; returns the exit code."""
    if os.environ.get("SOFTCOUNT_DEBUG", "") not in ("", "0"):
        traceback.print_exception(error)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return USAGE
    first, *hints = map(without_password, message_lines(error))
    print_message(f"error: {first}")
    for hint in hints:
        print_message(f"  {hint}")
    return exit_code(error)


def exit_code(error: Exception) -> int:
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
    """The message, then its hints."""
    if isinstance(error, click.Abort):
        return ["interrupted"]
    if isinstance(error, click.ClickException):
        lines = _split_lines(error.format_message())
        context = getattr(error, "ctx", None)
        return [*lines, f"Try: {context.command_path} --help"] if context else lines
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror[:1].lower() + error.strerror[1:]
        return [f"{os.fsdecode(error.filename)}: {reason}" if isinstance(error.filename, str | bytes) else reason]
    if exit_code(error) == RESOURCES and not isinstance(error, SoftcountError):
        return [": ".join(["not enough memory", *_split_lines(str(error))[:1]])]
    if exit_code(error) != INTERNAL:
        return _split_lines(str(error)) or [type(error).__name__]
    return [
        f"internal error: {type(error).__name__}: {' '.join(str(error).split())}",
        "This is a bug in softcount, not an error in your data. SOFTCOUNT_DEBUG=1 shows the traceback.",
    ]


def _split_lines(message: str) -> list[str]:
    return [line.strip() for line in message.splitlines() if line.strip()]
