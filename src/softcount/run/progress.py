"""Progress on a terminal's standard error, and what an interrupt does to the work."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import IO, TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console


class Tell(Protocol):
    """Called with the kind of work, how much is done, how much there is, and a detail."""

    def __call__(self, what: str, done: float, of: float, detail: str = "") -> None: ...


def keep_quiet(what: str, done: float, of: float, detail: str = "") -> None:
    """Report no progress."""


def on_terminal(stream: IO[str]) -> bool:
    """Whether the stream is a terminal that can do more than print."""
    return stream.isatty() and os.environ.get("TERM", "") != "dumb"


def columns_of_output() -> int:
    """Columns of the terminal on standard output; 120 if it is none."""
    return shutil.get_terminal_size((120, 40)).columns if on_terminal(sys.stdout) else 120


def console_on(stream: IO[str]) -> Console:
    """A console that obeys NO_COLOR and does not interpret markup, emoji codes or links."""
    from rich.console import Console

    return Console(file=stream, markup=False, emoji=False, highlight=False, soft_wrap=False)


def report_starts(tell: Tell, what: str = "EM initialisation") -> Callable[[int, int, int, float], None]:
    """A watch over a search for classes: which initialisation of how many, its iteration and its objective so far.

    Starts run side by side, and a search over numbers of classes runs them for each number: no share of the work done
    is known.

    >>> report_starts(lambda *progress: print(*progress))(3, 10, 25, -1234.5678)
    EM initialisation 0 0 3 of 10, iteration 25, objective -1234.57
    """

    def watch(start: int, of: int, iteration: int, objective: float) -> None:
        tell(what, 0, 0, f"{start} of {of}, iteration {iteration}, objective {objective:.6g}")

    return watch


READING = "reading"
_watching: list[Tell] = []


def announce(phase: str, done: float = 0, of: float = 0, detail: str = "") -> None:
    """Show a phase of the work on the progress bar, if there is one; `of` is 0 if the amount of work is not known."""
    if _watching:
        _watching[-1](phase, done, of, detail)


@contextmanager
def progress_on(stream: IO[str]) -> Iterator[Tell]:
    """A function to report progress with; a bar goes when its phase ends."""
    if not on_terminal(stream):
        yield keep_quiet
        return
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

    label = TextColumn("{task.description} {task.fields[detail]}", markup=False)
    columns = (label, BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    lock = Lock()
    with Progress(*columns, console=console_on(stream), transient=True) as bars:

        def tell(what: str, done: float, of: float, detail: str = "") -> None:
            with lock:
                if what not in tasks:
                    tasks[what] = bars.add_task(what, total=None, detail=detail)
                for other, task in tasks.items():
                    if READING not in (what, other) and other != what:
                        bars.update(task, visible=False)
                unfinished = what != READING or done < of
                bars.update(tasks[what], completed=done, total=of or None, detail=detail, visible=unfinished)

        _watching.append(tell)
        try:
            yield tell
        finally:
            _watching.pop()


# -- interrupts

_ending: list[bool] = []


@contextmanager
def end_on_interrupt(end: bool = True) -> Iterator[None]:
    """Let an interrupt end the work, as in cross-validation and in every command but `fit`.

    Outside such a block EM answers an interrupt with its best model so far. Inside, that model would be one of many,
    and the work would go on: a comparison ran for minutes after SIGTERM.
    """
    _ending.append(end)
    try:
        yield
    finally:
        _ending.pop()


def raise_if_ending() -> None:
    """Re-raise the interrupt being handled if it ends the work; else the caller keeps its best model so far."""
    if _ending and _ending[-1]:
        raise
