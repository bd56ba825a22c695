"""Ctrl-C during a fit: once to keep the best so far, twice to stop at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from softcount.cli.failures import INTERRUPTED
from softcount.cli.streams import say


@contextmanager
def interruptible() -> Iterator[None]:
    """The first Ctrl-C is a KeyboardInterrupt, which the search for classes answers with what it has; the second ends.

    A process that was told to ignore Ctrl-C (nohup, a script in the background) goes on ignoring it.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _keep)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _keep(number: int, frame: Any) -> None:
    signal.signal(signal.SIGINT, _stop)
    raise KeyboardInterrupt


def _stop(number: int, frame: Any) -> None:
    say("error: interrupted twice; nothing was saved")
    raise SystemExit(INTERRUPTED)


def end_interrupted(saved: str) -> None:
    """Say that the best so far was kept, and end as interrupted commands do."""
    say(f"interrupted: the best so far is saved in {saved}" if saved != "-" else "interrupted: this is the best so far")
    raise click.exceptions.Exit(INTERRUPTED)
