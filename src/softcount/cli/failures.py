"""What each failure says and which exit code it ends with."""

from __future__ import annotations

import os
import re
import traceback

import click

from softcount.errors import DataError, ModelFileError, SoftcountError, is_shortage
from softcount.report.plain_text import printable
from softcount.sources.databases import without_password

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
    if is_shortage(error) or is_shortage(error.__cause__) or _is_scarcity(error):
        return RESOURCES
    return DATA if isinstance(error, DataError | OSError) else INTERNAL


def _is_scarcity(error: Exception) -> bool:
    return not isinstance(error, SoftcountError) and _SCARCE.search(str(error)) is not None


def message_lines(error: Exception) -> list[str]:
    """The message, then what to do about it."""
    if isinstance(error, click.Abort):
        return ["interrupted"]
    if isinstance(error, click.ClickException):
        return _usage_lines(error)
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


def _usage_lines(error: click.ClickException) -> list[str]:
    lines = _own_lines(error.format_message())
    context = getattr(error, "ctx", None)
    return [*lines, f"Try: {context.command_path} --help"] if context else lines


def _system_line(error: OSError) -> str:
    said = error.strerror or str(error)
    reason = said[:1].lower() + said[1:]
    return f"{os.fsdecode(error.filename)}: {reason}" if isinstance(error.filename, str | bytes) else reason
