"""The interface of engines, threads on one machine, and encoded rows between passes, in memory or on disk."""

from __future__ import annotations

import errno
import mmap
import os
import pickle
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, cached_property, partial, reduce
from itertools import chain, islice, pairwise
from operator import add
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np
from msgspec import Struct

from softcount.core import remedies
from softcount.errors import DataError

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from softcount.table import Settled, Table

Task = TypeVar("Task")
Result = TypeVar("Result")


class Runner:
    """Runs work over tasks in the calling thread. Subclasses run `n_jobs` tasks at a time, or on other machines."""

    n_jobs = 1
    keeps_rows = True
    """Whether rows are kept in this process rather than on workers, so that work can change a table."""

    spill_folder: str | None = None

    @cached_property
    def spill(self) -> Spill:
        """Where rows are kept between passes."""
        return Spill(self.spill_folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if "spill" in vars(self):
            self.spill.close()

    def map(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Results in the order of the tasks, a few tasks ahead at most so that memory stays bounded."""
        return map(work, tasks)

    def encoded(self, table: Table) -> Rows:
        chunks = table.chunks(self.map)
        return HeldRows(map(self.spill.kept_elsewhere, chunks) if table.holds_rows else chunks, self)

    def settled(self, table: Table, rows: Rows, settled: Settled) -> Rows:
        return HeldRows(table.in_order(rows.here, settled), self)


def total(runner: Runner, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Result | None:
    """The sum of the results in the order of the tasks; None for no tasks."""
    result: Result | None = None
    for part in runner.map(work, tasks):
        result = part if result is None else result + part  # type: ignore[operator]
    return result


class Threads(Runner):
    """Runs work over tasks on `n_jobs` threads (None: all cores, but one inside another library's workers).

    The threads start when they are first needed.

    >>> with Threads(2) as threads:
    ...     list(threads.map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    def __init__(self, n_jobs: int | None = None, spill: str | None = None) -> None:
        self.n_jobs, self.spill_folder = workers(n_jobs), spill
        self._pool: Executor | None = None

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        super().__exit__(kind, error, trace)

    def map(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        tasks = iter(tasks)
        head = list(islice(tasks, 2))
        with one_blas_thread():
            if len(head) < 2 or self.n_jobs == 1:
                yield from map(work, chain(head, tasks))
                return
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(self.n_jobs, thread_name_prefix="softcount")
            waiting: deque[Future[Result]] = deque()
            try:
                for task in chain(head, tasks):
                    waiting.append(self._pool.submit(work, task))
                    if len(waiting) > 2 * self.n_jobs:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()


@cache
def _controller(with_scipy: bool) -> Any:
    """The BLAS libraries that are loaded; SciPy brings its own, which is loaded late or never."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def limit_blas() -> Any:
    """Limit BLAS to one thread, for good or until the end of a `with` block of the result."""
    return _controller("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas")


_here = threading.local()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A block in which BLAS uses one thread: our threads are busy, and the bits must not depend on its threads.

    A nested block costs nothing; limiting takes 80 microseconds, as long as a small pass.
    """
    if getattr(_here, "limited", False):
        yield
        return
    with limit_blas():
        _here.limited = True
        try:
            yield
        finally:
            _here.limited = False


def workers(n_jobs: int | None) -> int:
    if n_jobs is not None:
        return max(1, int(n_jobs) if n_jobs > 0 else (os.cpu_count() or 1) + 1 + int(n_jobs))
    processes = sys.modules.get("multiprocessing")
    nested = (
        processes is not None and processes.parent_process() is not None
    ) or threading.current_thread() is not threading.main_thread()
    if nested or os.environ.get("JOBLIB_SPAWNED_PROCESS"):
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# Rows: what a step does with every part, and where the parts are.


class Prepares(Protocol):
    """A step whose function of a part is made once per pass and process, because parameters are compiled for it.

    Without `threads` it holds the interpreter, so that a second thread would only wait.
    """

    @property
    def threads(self) -> bool: ...
    def begin(self) -> Callable[[Any], Any]: ...


Step = Callable[[Any], Any] | Prepares
"""What is done with every part; it pickles."""


def begin(step: Step) -> Callable[[Any], Any]:
    return step.begin() if hasattr(step, "begin") else step


class Rows(ABC):
    """The rows of a table in parts, wherever they are."""

    @abstractmethod
    def each(self, step: Step) -> Iterator[Any]:
        """Results of a step for every part, in order; they should be small."""

    def total(self, step: Step) -> Any:
        """The sum of the results, in the order of the parts."""
        return reduce(add, self.each(step))

    @abstractmethod
    def made(self, step: Step) -> Rows:
        """The rows with each part replaced by the result of a step, computed once."""

    @abstractmethod
    def arranged(self, step: Step) -> Rows:
        """The rows in other parts: the step makes an iterable of parts from neighbouring ones, once."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """How many rows there are."""

    @property
    @abstractmethod
    def here(self) -> Sequence[Any]:
        """The parts themselves; raises an error if they are on other machines."""

    @abstractmethod
    def close(self) -> None:
        """Give back what the rows take up."""


# The on-disk row cache: arrays in a temporary file, memory-mapped when needed.

LINE = 64
"""Alignment of arrays in the file, in bytes."""
SMALL = 4096
"""Arrays of fewer bytes stay in memory."""
FIRST_SEGMENT, LARGEST_SEGMENT = 1 << 24, 1 << 30
"""Bytes of the file that are mapped at once: each map takes a file descriptor."""
ALWAYS = 1 << 26
"""Bytes of rows that are held without checking the free memory."""
SHARE = 4
"""Held rows may take one part in this many of the free memory: prepared they take as much again."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Spill:
    """Keeps parts in memory while there is room, then in a file (the on-disk row cache).

    With a `folder` all parts go to a file there; without one the file is in the folder of temporary files.
    """

    def __init__(self, folder: str | None = None) -> None:
        self.folder = folder
        self._room: int | None = 0 if folder is not None else None
        self._file: SpillFile | None = None
        self._known = Memory()
        self._held = 0

    @property
    def used(self) -> bool:
        return self._file is not None

    def kept_elsewhere(self, part: Any) -> Any:
        """Register the arrays of a part that stay in memory anyway."""
        for array in arrays_in(part):
            self._known.add(array)
        return part

    def kept(self, part: Any) -> Any:
        """The part, or a copy with its arrays in the file."""
        new = sum(array.nbytes for array in arrays_in(part) if array not in self._known)
        if not new or self._has_room(self._held + new):
            self._held += new
            return self.kept_elsewhere(part)
        if self._file is None:
            self._file = SpillFile(self.folder or tempfile.gettempdir(), self._known)
        return self._file.kept(part)

    def takes(self, size: int) -> bool:
        """Reserve this many bytes of memory, if there is room."""
        if not self._has_room(self._held + size):
            return False
        self._held += size
        return True

    def _has_room(self, size: int) -> bool:
        if self._room is None and size > ALWAYS:
            self._room = free_memory() // SHARE
        return size <= (ALWAYS if self._room is None else self._room)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._held, self._known = None, 0, Memory()


class Memory:
    """Intervals of memory that are in use."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, array: np.ndarray) -> None:
        while isinstance(array.base, np.ndarray):
            array = array.base
        start = _address(array)
        place = bisect_right(self._starts, start)
        if not (place and start + array.nbytes <= self._ends[place - 1]):
            self._starts.insert(place, start)
            self._ends.insert(place, start + array.nbytes)

    def __contains__(self, array: np.ndarray) -> bool:
        at = _address(array)
        place = bisect_right(self._starts, at)
        return place > 0 and at < self._ends[place - 1]


def _address(array: np.ndarray) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


class SpillFile:
    """A file to which arrays are appended, and from which they are mapped."""

    def __init__(self, folder: str, known: Memory) -> None:
        self.folder, self._known = folder, known
        try:
            with tempfile.TemporaryFile(dir=folder) as file:  # it has no name, and is gone with its last descriptor
                self._handle = os.dup(file.fileno())
        except OSError as error:
            raise spill_error(self.folder, error) from error
        self._segment: mmap.mmap | None = None
        self._start = self._end = 0  # where the segment begins in the file, and where it is free

    def kept(self, part: Any) -> Any:
        """The part with its arrays in the file, except those whose memory is in use anyway."""
        buffers: list[pickle.PickleBuffer] = []
        # Only how the part is put together is pickled, and stays in memory; what is written are its arrays.
        form = pickle.dumps(part, protocol=5, buffer_callback=buffers.append)
        return pickle.loads(form, buffers=[self._placed(buffer) for buffer in buffers])

    def _placed(self, buffer: pickle.PickleBuffer) -> Any:
        raw = buffer.raw()
        if raw.nbytes < SMALL or np.frombuffer(raw, np.uint8) in self._known:
            return buffer
        try:
            size = -(-raw.nbytes // LINE) * LINE
            if self._segment is None or self._end + size > len(self._segment):
                self._segment = self._next_segment(size)
            at = self._end
            # Written, not copied into the map: a full disk is then an error, and no signal that ends the process.
            done = 0
            while done < raw.nbytes:  # a call may write only some of the bytes
                done += os.pwrite(self._handle, raw[done:], self._start + at + done)
            self._end += size
            return memoryview(self._segment)[at : at + raw.nbytes]
        except OSError as error:
            raise spill_error(self.folder, error) from error

    def _next_segment(self, least: int) -> mmap.mmap:
        """Map a further part of the file, twice as long as the one before."""
        before = 0 if self._segment is None else len(self._segment)
        page = mmap.ALLOCATIONGRANULARITY
        size = max(min(2 * before, LARGEST_SEGMENT), FIRST_SEGMENT, -(-least // page) * page)
        self._start, self._end = self._start + before, 0
        os.ftruncate(self._handle, self._start + size)
        mapped = mmap.mmap(self._handle, size, offset=self._start)
        self._known.add(np.frombuffer(mapped, np.uint8))
        return mapped

    def close(self) -> None:
        os.close(self._handle)
        self._segment = None


def spill_error(folder: str, error: OSError, another: str = "") -> DataError:
    """The error of a folder that cannot take rows; `another` is the remedy."""
    reason = (error.strerror or str(error)).lower()
    another = another or remedies.either("spill=FOLDER", "--spill DIR")
    remedy = f"Name another folder: {another}"
    if error.errno in FULL:
        remedy = f"Free some space, or name a folder that has more: {another}"
    elif error.errno == errno.ENOMEM:
        remedy = "Allow the process more memory"
    return DataError(f"rows that do not fit into memory cannot be kept in {folder!r}: {reason}. {remedy}.")


def arrays_in(part: Any) -> Iterator[np.ndarray]:
    if isinstance(part, np.ndarray):
        yield part
    elif isinstance(part, (list, tuple)):
        for own in part:
            yield from arrays_in(own)
    elif isinstance(part, dict):
        for own in part.values():
            yield from arrays_in(own)
    elif hasattr(part, "indptr") and hasattr(part, "indices"):
        yield from (part.data, part.indices, part.indptr)
    elif isinstance(part, Struct):
        for spec in part.__struct_fields__:
            yield from arrays_in(getattr(part, spec))


def free_memory() -> int:
    """Bytes that this process may still take, by the machine, the container and the limit of the process."""
    found = [1 << 62]
    with suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as lines:
        found += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    for limit, taken in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        with suppress(OSError, ValueError), open(limit, encoding="ascii") as most, open(taken, encoding="ascii") as now:
            found.append(max(int(most.read()) - int(now.read()), 0))
    with suppress(ImportError, OSError, ValueError, AttributeError):
        import resource

        soft = resource.getrlimit(resource.RLIMIT_AS)[0]
        if soft != resource.RLIM_INFINITY:
            with open("/proc/self/statm", encoding="ascii") as pages:
                found.append(max(soft - int(pages.read().split()[0]) * mmap.PAGESIZE, 0))
    return min(found)


# Rows of this process, in memory or in the on-disk cache.

LONGEST_RUN = 8


class HeldRows(Rows, Sequence[Any]):
    """Parts that this process has, in memory or in a mapped file."""

    def __init__(self, parts: Iterable[Any], runner: Runner) -> None:
        keep = runner.spill.kept
        self._parts, self.runner = [keep(part) for part in parts], runner

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, place: Any) -> Any:
        return self._parts[place]

    @property
    def n_rows(self) -> int:
        return sum(part.n_rows for part in self._parts)

    @property
    def here(self) -> Sequence[Any]:
        return self._parts

    def each(self, step: Step) -> Iterator[Any]:
        # On plain NumPy two threads wait for the interpreter: 20,000 rows took 223 ms in place of 144.
        runs = runs_of(self._parts, self.runner.n_jobs) if getattr(step, "threads", True) else [self._parts]
        return chain.from_iterable(self.runner.map(partial(_run_each, begin(step)), runs))

    def made(self, step: Step) -> HeldRows:
        return HeldRows(self.runner.map(begin(step), self._parts), self.runner)

    def arranged(self, step: Step) -> HeldRows:
        return HeldRows(begin(step)(self._parts), self.runner)

    def close(self) -> None:
        self._parts = []


def _run_each(work: Callable[[Any], Any], run: Sequence[Any]) -> list[Any]:
    return [work(part) for part in run]


def rows_here(parts: Rows | Sequence[Any], runner: Runner) -> Rows:
    return parts if isinstance(parts, Rows) else HeldRows(parts, runner)


def runs_of(ready: Sequence[Any], n_jobs: int) -> list[Sequence[Any]]:
    """Neighbouring parts done in one go: two runs for every thread, but at most eight parts at a time.

    Waking a thread for each small part took as long as the part. Counts are still added part by part, so that the bits
    do not depend on the number of threads.
    """
    runs = max(2 * n_jobs, -(-len(ready) // LONGEST_RUN))
    edges = [len(ready) * i // runs for i in range(runs + 1)]
    return [ready[a:b] for a, b in pairwise(edges) if a < b]


# Numeric rows as one array, in memory or memory-mapped from a file.


def join_rows(parts: Iterable[np.ndarray], spill: Spill, rows: int | None = None) -> np.ndarray:
    """All parts, (rows, columns) float64, in one array of their own.

    With a known number of `rows` they are put in place as they come.
    """
    parts, held = iter(parts), []
    for part in parts:
        held.append(part)
        if rows and len(held) == 1 and spill.takes(rows * part.shape[1] * 8):
            cells, at = np.empty((rows, part.shape[1])), 0
            for own in chain(held, parts):
                cells[at : at + len(own)] = own
                at += len(own)
            return cells[:at]
        if rows or not spill.takes(part.nbytes):
            return _write_rows(chain(held, parts), spill.folder or tempfile.gettempdir())
    return np.concatenate(held)


def _write_rows(parts: Iterable[np.ndarray], folder: str) -> np.ndarray:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            for part in parts:
                file.write(np.ascontiguousarray(part, np.float64).data)
            file.flush()
            # The map stays when the file is closed; the space is free again once the array is gone.
            return np.asarray(np.memmap(file, np.float64, "r+")).reshape(-1, part.shape[1])
    except OSError as error:
        raise spill_error(folder, error) from error
