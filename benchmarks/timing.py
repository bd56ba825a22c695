"""Timing ours, the peer and the limit side by side, and the tables that come of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

THREADS = (1, 2)
LONG_ENOUGH = 6.0
"""Seconds after which a race ends early, once every contestant has been timed: what takes long varies less."""
SLOW = 2.0
"""Seconds of one go of a peer's that need no second."""
BLOCK = 32_768
"""Rows that one thread reads or multiplies at a time when the limit is measured."""

Run = Callable[[int], object]
"""Something to be timed, given how many threads it may use."""

Best = dict[tuple[str, int], float]
"""Least seconds, by name and number of threads."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Seconds of ours and of a peer for the same work; the peer should take at least `target` times as long."""

    work: str
    threads: int
    ours: float
    peer: float
    against: str
    target: float | None = None
    limits: Mapping[str, float] | None = None

    @property
    def ratio(self) -> float:
        return self.peer / self.ours

    @property
    def met(self) -> bool | None:
        return None if self.target is None else self.ratio >= self.target

    def cells(self) -> list[str]:
        target = "" if self.target is None else f"{self.target:g}x"
        limits = ", ".join(f"{name} {spell(took)}" for name, took in (self.limits or {}).items())
        return [
            self.work, str(self.threads), spell(self.ours), f"{self.against} {spell(self.peer)}",
            f"{self.ratio:.1f}x", target, word(self.met), limits,
        ]  # fmt: skip

    def facts(self) -> dict[str, Any]:
        return {
            "work": self.work, "threads": self.threads, "ours_seconds": self.ours, "peer": self.against,
            "peer_seconds": self.peer, "ratio": self.ratio, "target": self.target, "met": self.met,
            "limit_seconds": dict(self.limits or {}),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bound:
    """A quantity that should stay at or below `most`."""

    work: str
    measured: float
    unit: str
    most: float | None = None
    beside: str = ""

    @property
    def met(self) -> bool | None:
        return None if self.most is None else self.measured <= self.most

    def cells(self) -> list[str]:
        most = "" if self.most is None else f"at most {self.most:g} {self.unit}"
        return [self.work, f"{self.measured:.3g} {self.unit}", most, word(self.met), self.beside]

    def facts(self) -> dict[str, Any]:
        return {
            "work": self.work, "measured": self.measured, "unit": self.unit, "most": self.most, "met": self.met,
            "beside": self.beside,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Paired:
    """Seconds of ours and of a peer; ours at most `most` times the peer's, or below what anybody notices.

    `objectives` are ours and theirs, more is better; with `same`, ours may be lower by this share of theirs at most.
    """

    work: str
    ours: float
    peer: float
    against: str
    most: float
    unnoticed: float = 0.0
    objectives: tuple[float, float] | None = None
    same: float | None = None

    @property
    def is_as_good(self) -> bool:
        if self.objectives is None or self.same is None:
            return True
        ours, theirs = self.objectives
        return ours >= theirs - self.same * abs(theirs)

    @property
    def met(self) -> bool:
        return self.is_as_good and self.ours <= max(self.most * self.peer, self.unnoticed)

    def cells(self) -> list[str]:
        target = f"{self.most:g}x" + (f" or {spell(self.unnoticed)}" if self.unnoticed else "")
        told = "" if self.objectives is None else "{:.7g} / {:.7g}".format(*self.objectives)
        return [
            self.work, spell(self.ours), f"{self.against} {spell(self.peer)}", f"{self.ours / self.peer:.2f}x", target,
            word(self.met) + ("" if self.is_as_good else ": worse"), told,
        ]  # fmt: skip

    def facts(self) -> dict[str, Any]:
        return {
            "work": self.work, "ours_seconds": self.ours, "peer": self.against, "peer_seconds": self.peer,
            "most": self.most, "unnoticed_seconds": self.unnoticed, "met": self.met, "objectives": self.objectives,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds of something by itself on each number of threads."""

    work: str
    rows: int
    seconds: Mapping[int, float]
    met: None = None

    def cells(self) -> list[str]:
        return [self.work, *map(spell, self.seconds.values()), f"{1e9 * self.seconds[1] / self.rows:.1f} ns"]

    def facts(self) -> dict[str, Any]:
        return {"work": self.work, "rows": self.rows, "seconds": dict(self.seconds)}


Result = Ratio | Paired | Bound | Span

RATIO_HEAD = ["work", "threads", "ours", "peer", "ratio", "target", "", "limit"]
PAIRED_HEAD = ["case", "ours", "peer", "ratio", "at most", "", "objective, ours / peer's"]
BOUND_HEAD = ["work", "measured", "target", "", "beside"]
SPAN_HEAD = ["work", *(f"{count} threads" if count > 1 else "1 thread" for count in THREADS), "a row"]


def word(met: bool | None) -> str:
    return "" if met is None else "met" if met else "NOT MET"


def spell(seconds: float) -> str:
    """A time in the unit it is easiest read in.

    >>> spell(2.5), spell(0.0125)
    ('2.50 s', '12.5 ms')
    """
    if seconds >= 1.0:
        return f"{seconds:.2f} s"
    return f"{1e3 * seconds:.3g} ms"


def seconds(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def race(
    contestants: Mapping[str, Run], rounds: int, threads: Sequence[int] = THREADS, alone: Collection[str] = ()
) -> Best:
    """The least seconds of each contestant on each number of threads.

    All take turns within a round, so that what else the machine is doing hits all of them; the round before the first
    is not counted, because it compiles, loads and touches memory for the first time. BLAS gets as many threads.
    What takes long of others than ours is done once, in that round: it varies little, and loading is little of it.
    Those `alone` have no use for a second thread: their time on the first number of threads stands for the others.
    """
    best: Best = {}
    slow: set[tuple[str, int]] = set()
    begun = time.perf_counter()
    for turn in range(rounds + 1):
        if turn > 1 and time.perf_counter() - begun > LONG_ENOUGH:
            break
        for count in threads:
            with threadpool_limits(count):
                for name, run in contestants.items():
                    if (name, count) in slow or (name in alone and count != threads[0]):
                        continue
                    took = seconds(lambda run=run, count=count: run(count))  # type: ignore[misc]
                    if not turn and took > SLOW and not name.startswith("ours"):
                        slow.add((name, count))
                    if turn or (name, count) in slow:
                        best[name, count] = min(took, best.get((name, count), np.inf))
    return best | {(name, count): best[name, threads[0]] for name in alone for count in threads}


def in_blocks(work: Callable[[int, int], object], rows: int, threads: int) -> None:
    """Do `work` with rows start to stop, block by block, on so many threads."""
    spans = [(start, min(start + BLOCK, rows)) for start in range(0, rows, BLOCK)]
    if threads == 1:
        for span in spans:
            work(*span)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda span: work(*span), spans))


def read(array: np.ndarray) -> Run:
    """The least that touching the memory costs: a bitwise sum that no rounding slows down."""
    words = array.view(np.uint64) if array.itemsize == 8 else array
    return lambda threads: in_blocks(lambda a, b: np.bitwise_or.reduce(words[a:b], axis=None), len(words), threads)


def gemm(left: np.ndarray, right: np.ndarray) -> Run:
    """A bare product of matrices, rows in blocks: one thread of BLAS to a block."""

    def run(threads: int) -> None:
        with threadpool_limits(1):
            in_blocks(lambda a, b: np.dot(left[a:b], right), len(left), threads)

    return run


def ratios(
    work: str, best: Best, against: str, targets: Sequence[float] | None, limits: Iterable[str] = ()
) -> list[Ratio]:
    """One line per number of threads from a race between "ours", a peer and some limits."""
    counts = sorted({count for _, count in best})
    return [
        Ratio(
            work, count, best["ours", count], best[against, count], against,
            None if targets is None else targets[counts.index(count)], {name: best[name, count] for name in limits},
        )
        for count in counts
    ]  # fmt: skip


def second_core(work: str, best: Best) -> Ratio:
    """One thread's time beside two threads', and what a second core adds to a plain read where that was timed."""
    limits = {f"a read on {count}": best["a read", count] for count in THREADS if ("a read", count) in best}
    return Ratio(f"{work}: a second core", 2, best["ours", 2], best["ours", 1], "one core", 1.6, limits)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, its columns lined up."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    rule = ["-" * width for width in widths]
    lines = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in (head, rule, *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tables(results: Sequence[Result]) -> str:
    """Ratios, pairs, bounds and spans, each in a table of their own."""
    parts = []
    for kind, head in ((Ratio, RATIO_HEAD), (Paired, PAIRED_HEAD), (Bound, BOUND_HEAD), (Span, SPAN_HEAD)):
        rows = [result.cells() for result in results if isinstance(result, kind)]
        if rows:
            parts.append(markdown(head, rows))
    return "\n\n".join(parts)
