"""Standard output and error, made ready for text from anywhere and for readers that leave early."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from softcount.errors import DataWarning
from softcount.report.plain_text import printable


@contextmanager
def ready_streams() -> Iterator[None]:
    """While a command runs: warnings about data are notes, and a closed pipe ends it quietly."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open as long as the process
        _accept_any_text(getattr(sys, name))
    with warnings.catch_warnings():
        _show_warnings_as_notes()
        try:
            yield
            sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()
            raise click.exceptions.Exit(0) from None
        except OSError:
            _drop_what_cannot_be_written()
            raise


def _accept_any_text(stream: Any) -> None:
    """A character the terminal's encoding lacks is spelled out instead of ending the command."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")


def _show_warnings_as_notes() -> None:
    if os.environ.get("SOFTCOUNT_DEBUG", "") in ("", "0"):
        warnings.simplefilter("ignore")
    warnings.simplefilter("always", DataWarning)
    warnings.showwarning = _show_note


def _show_note(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    label = "note" if issubclass(category, DataWarning) else category.__name__
    say(f"{label}: {' '.join(str(message).split())}")


def _drop_what_cannot_be_written() -> None:
    """A full disk fails once, in our words, and not again when Python closes standard output."""
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()


def _drop_output() -> None:
    """Point standard output at nothing, so that closing it at exit cannot fail again."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(message: str) -> None:
    """A message to the person, on standard error, which no escape sequence in it can reach."""
    click.echo(printable(message), err=True)
