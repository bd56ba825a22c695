"""Progress on a terminal's standard error, and what an interrupt does to the work."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


def console_on(stream: IO[str]) -> Console:
    """A console that obeys NO_COLOR and does not interpret markup, emoji codes or links."""
    from rich.console import Console

    return Console(file=stream, markup=False, emoji=False, highlight=False, soft_wrap=False)


def starts_told(tell: Tell, what: str = "starts") -> Callable[[int, int, int, float], None]:
    """A watch over a search for classes: which start of how many, its iteration and its objective so far.

    >>> starts_told(lambda *progress: print(*progress))(3, 10, 25, -1234.5678)
    starts 2 10 iteration 25, objective -1234.57
    """

    def watch(start: int, of: int, iteration: int, objective: float) -> None:
        tell(what, start - 1, of, f"iteration {iteration}, objective {objective:.6g}")

    return watch


@contextmanager
def progress_on(stream: IO[str]) -> Iterator[Tell]:
    """A function to report progress with; its bars disappear at the end."""
    if not on_terminal(stream):
        yield keep_quiet
        return
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

    label = TextColumn("{task.description} {task.fields[detail]}", markup=False)
    columns = (label, BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console_on(stream), transient=True) as bars:

        def tell(what: str, done: float, of: float, detail: str = "") -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=of, detail=detail)
            bars.update(tasks[what], completed=done, total=of, detail=detail)

        yield tell


# -- interrupts

_ending: list[bool] = []


@contextmanager
def interrupts_end(end: bool = True) -> Iterator[None]:
    """Let an interrupt end the work, as in cross-validation and in every command but `fit`.

    Outside such a block EM answers an interrupt with its best model so far. Inside, that model would be one of many,
    and the work would go on: a comparison ran for minutes after SIGTERM.
    """
    _ending.append(end)
    try:
        yield
    finally:
        _ending.pop()


def best_so_far() -> None:
    """Re-raise the interrupt being handled if it ends the work; else the caller keeps its best model so far."""
    if _ending and _ending[-1]:
        raise
