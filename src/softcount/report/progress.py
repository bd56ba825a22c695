"""How far the work is, on a terminal's standard error and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Protocol

from softcount.report.page import on_terminal


class Tell(Protocol):
    """Called with what is being done, how much is done and how much there is, and a word on where it is."""

    def __call__(self, what: str, done: float, of: float, detail: str = "") -> None: ...


def keep_quiet(what: str, done: float, of: float, detail: str = "") -> None:
    """The progress of work nobody watches."""


@contextmanager
def progress_on(stream: IO[str]) -> Iterator[Tell]:
    """A function to call as work gets done; the bars it draws are gone when the work is."""
    if not on_terminal(stream):
        yield keep_quiet
        return
    with _bars(stream) as tell:
        yield tell


@contextmanager
def _bars(stream: IO[str]) -> Iterator[Tell]:
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from softcount.report.screen import console_on

    label = TextColumn("{task.description} {task.fields[detail]}", markup=False)
    columns = (label, BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console_on(stream), transient=True) as bars:

        def tell(what: str, done: float, of: float, detail: str = "") -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=of, detail=detail)
            bars.update(tasks[what], completed=done, total=of, detail=detail)

        yield tell
