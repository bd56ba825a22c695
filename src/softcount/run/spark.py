"""Spark: one row of bytes for each part and pass, by `mapInArrow`; parts are read in the tasks and stay on their host.

The first pass encodes the parts, of files or of a frame, and leaves them on the disk of the host. What it answers, a
row for each part, is persisted, so that Spark sends further passes over these rows to where the parts are, and encodes
those of a lost executor again. What a task needs is in the closure, so that Spark Connect, which has no broadcasts, is
served as well.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
import zlib
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from itertools import chain
from types import TracebackType
from typing import Any

from msgspec import Struct

from softcount.errors import DataError, import_extra
from softcount.run.workers import PartJob, RowPart, WorkersEngine, digest_of, do_parts, forget_table
from softcount.sources.arrow_files import BatchSource
from softcount.sources.frames import frame_source, text_bytes
from softcount.sources.open_source import PartsSource, SourcePart
from softcount.sources.source import FEW_ROWS, LOOK_ROWS, Key, Source, TablePiece, Wanted
from softcount.table.encode import PartFacts

ANSWER = "number long, answer binary"
"""Columns of a task's result: the number of a part and its answer, null if the host does not have the part."""
EVERYWHERE = 1_000
"""Enough numbers to reach every task that runs at once."""
CHANGING = (
    "the rows of the Spark frame are not in the same partitions in every pass, as after repartitionByRange or a random "
    "function. Cache the frame, or write it to files and fit those."
)

Task = Callable[[Iterator[Any]], Iterator[Any]]


class SparkEngine(WorkersEngine):
    """Runs steps in the tasks of a Spark session."""

    name = "Spark"
    shares_disk = True

    def __init__(self, session: Any) -> None:
        super().__init__()
        self.session = session
        self._tables: dict[str, FileTable | FrameTable] = {}

    def run(self, job: PartJob, parts: Sequence[RowPart]) -> list[Any]:
        name = job.reading.table
        with failing_in_a_line():
            if name in self._tables:
                return self._tables[name].asked(job)
            self._tables[name] = (
                FrameTable(job, parts) if isinstance(parts, FrameParts) else FileTable(job, self.session, parts)
            )
            return self._tables[name].read()

    def forget(self, table: str) -> None:
        found = self._tables.pop(table, None)
        if found is not None:
            removed = forget_table(table)
            with suppress(Exception):  # a session that ended has nothing left but what lies on disks
                found.encoded.unpersist()
                if not (removed and _is_here(self.session)):
                    self.session.range(EVERYWHERE).mapInArrow(_forgetting(table), "number long").collect()

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        super().__exit__(kind, error, trace)
        for table in list(self._tables):
            self.forget(table)


class FileTable:
    """Files that tasks read by themselves, also if a part was lost.

    The parts are on the disks of the hosts; the persisted rows `encoded` know where.
    """

    def __init__(self, job: PartJob, session: Any, parts: Sequence[RowPart]) -> None:
        self.count, self._parts = len(parts), [pickle.dumps(part) for part in parts]
        self.encoded = session.range(len(parts)).mapInArrow(self._task(job), ANSWER).persist()

    def read(self) -> list[Any]:
        return self._in_order(self.encoded)

    def asked(self, job: PartJob) -> list[Any]:
        return self._in_order(self.encoded.select("number").mapInArrow(self._task(job), ANSWER))

    def _task(self, job: PartJob) -> Task:
        return _of_numbers(pickle.dumps(job), self._parts)

    def _in_order(self, answers: Any) -> list[Any]:
        found = {row["number"]: pickle.loads(bytes(row["answer"]))[1] for row in answers.collect()}
        return [found[number] for number in range(self.count)]


class FrameTable:
    """A DataFrame: Spark hands over all rows once, and later only those of lost partitions."""

    def __init__(self, job: PartJob, parts: FrameParts) -> None:
        _, wanted = pickle.loads(job.reading.coding)
        self._parts = parts
        self._filled: Set[int] = set()
        self._columns = tuple(str(key) for key in wanted) or tuple(parts.frame.columns[:1])
        self._frame = _with_numbers(parts.frame.select(*map(_quoted, self._columns)))
        self.encoded = self._frame.mapInArrow(_of_frame(pickle.dumps(job)), ANSWER).persist()

    def read(self) -> list[Any]:
        found = self._checked(self.encoded.collect())
        self._filled, self._parts.length = found.keys(), 1 + max(found, default=-1)
        return [found.get(number, PartFacts()) for number in range(len(self._parts))]

    def asked(self, job: PartJob) -> list[Any]:
        work = pickle.dumps(job)
        # A task costs 60 ms of Spark's own: as many as run at once, each with the partitions of its host.
        numbers = self.encoded.select("number").coalesce(_at_once(self._parts.frame.sparkSession))
        answers = numbers.mapInArrow(_of_numbers(work, None), ANSWER).collect()
        missing = frozenset(row["number"] for row in answers if row["answer"] is None)
        if missing:
            answers = [row for row in answers if row["answer"] is not None]
            answers += self._frame.mapInArrow(_of_frame(work, missing), ANSWER).collect()
        found = self._checked(answers)
        if found.keys() != self._filled:
            raise DataError(CHANGING)
        return [found.get(number, []) for number in range(len(self._parts))]

    def _checked(self, answers: Iterable[Any]) -> dict[int, Any]:
        """The answers by partition; raises an error if a partition has other rows than before."""
        found = {}
        for row in answers:
            number, (digest, found[number]) = row["number"], pickle.loads(bytes(row["answer"]))
            if digest is not None and self._parts.digests.setdefault((number, self._columns), digest) != digest:
                raise DataError(CHANGING)
        return found


def _context(session: Any) -> Any:
    return getattr(session, "sparkContext", None)


def _is_here(session: Any) -> bool:
    context = _context(session)
    return context is not None and str(context.master).startswith("local")


def _at_once(session: Any) -> int:
    context = _context(session)
    if context is not None:
        return max(1, int(context.defaultParallelism))
    (row,) = _with_numbers(session.range(EVERYWHERE)).groupBy().max(NUMBER).collect()
    return 1 + int(row[0])


# -- tasks


def _of_numbers(job: bytes, parts: Sequence[bytes] | None) -> Task:
    """A task over numbers of parts: those it can read by itself, or else those that its host has."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _answer(job, number, NotHere(number) if parts is None else pickle.loads(parts[number]))

    return task


def _of_frame(job: bytes, only: frozenset[int] | None = None) -> Task:
    """A task over a partition of the user's DataFrame, in batches; the last column is its number."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        number = int(first.column(first.num_columns - 1)[0].as_py())
        if only is None or number in only:
            yield _answer(job, number, HandedOver(number, chain([first], batches)))
            deque(batches, maxlen=0)  # a worker that leaves rows unread ends, and another has to start

    return task


def _answer(job: bytes, number: int, part: RowPart) -> Any:
    import pyarrow as pa

    try:
        ((_, found),) = do_parts(job, [(number, part)])
        answer = pickle.dumps((digest_of(pickle.loads(job).reading, number), found))
    except NotHereError:
        answer = None
    cells = [pa.array([number], pa.int64()), pa.array([answer], pa.binary())]
    return pa.RecordBatch.from_arrays(cells, names=["number", "answer"])


def _forgetting(table: str) -> Task:
    def task(batches: Iterator[Any]) -> Iterator[Any]:
        forget_table(table)
        for batch in batches:
            yield batch.slice(0, 0)

    return task


# -- frames

NUMBER = "softcount partition"


class NotHereError(Exception):
    """A partition that this host neither has nor can read."""


class NotHere(Struct):
    """A partition that can only be found on the disk."""

    number: int
    digest: str | None = None

    @property
    def name(self) -> str:
        return f"partition {self.number}"

    def open(self) -> Source | None:
        raise NotHereError


class HandedOver:
    """Rows that Spark hands to a task, with a digest of those that were read."""

    def __init__(self, number: int, batches: Iterator[Any]) -> None:
        self.name, self._batches = f"partition {number}", batches
        self._source: HandedOverSource | None = None

    @property
    def digest(self) -> str | None:
        return None if self._source is None else self._source.digest

    def open(self) -> Source | None:
        self._source = HandedOverSource(batch.select(range(batch.num_columns - 1)) for batch in self._batches)
        return self._source


class HandedOverSource(BatchSource):
    """Batches of rows that come once, with a checksum per column."""

    def __init__(self, batches: Iterator[Any]) -> None:
        first, rows, size = [], 0, 0
        for batch in batches:
            first.append(batch)
            rows, size = rows + batch.num_rows, size + text_bytes(batch)
            if rows > FEW_ROWS:
                break
        super().__init__(first[0].schema, rows, size / max(1, rows), known=rows <= FEW_ROWS)
        self._batches, self._sums, self._rows = chain(first, batches), [0] * len(self.keys), 0

    @property
    def digest(self) -> str:
        return f"{self._rows} {self._sums}"

    def batches(self, keys: Sequence[str], plain: Container[Key] = ()) -> Iterator[Any]:
        for batch in self._batches:
            self._rows += batch.num_rows
            for place, column in enumerate(batch.columns):
                for buffer in column.buffers():
                    self._sums[place] = self._sums[place] if buffer is None else zlib.crc32(buffer, self._sums[place])
            yield batch.select(list(keys))


class FrameParts(Sequence[Any]):
    """The partitions of a DataFrame; their number is known once they have been read."""

    def __init__(self, frame: Any) -> None:
        self.frame, self.length = frame, 0
        self.digests: dict[tuple[int, tuple[str, ...]], str] = {}
        """By the number of a partition and the columns that were read: fewer columns may lie otherwise."""

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, place: Any) -> Any:
        return [NotHere(number) for number in range(self.length)][place]


class SparkFrameSource(PartsSource):
    """A Spark DataFrame as a table: the first rows are read here, the others by tasks."""

    def __init__(self, frame: Any) -> None:
        self.frame, self.owner = frame, frame.sparkSession
        with failing_in_a_line():
            # Of one partition after another: without that so many rows of each are read.
            first = frame.coalesce(1).limit(LOOK_ROWS).toArrow()
        super().__init__([SourcePart("the first rows", lambda: frame_source(first) if len(first) else None)])
        self.parts = FrameParts(frame)

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        """Some columns fetched into this process, a partition at a time."""
        names = [str(key) for key in wanted] or self.frame.columns[:1]
        some, start = self.frame.select(*map(_quoted, names)), 0
        with failing_in_a_line():
            count = len(some.mapInArrow(_numbered, "number long").collect())
        for number in range(count):
            with failing_in_a_line():
                found = some.mapInArrow(_only(number), some.schema).toArrow()
            for piece in frame_source(found).pieces(wanted) if len(found) else ():
                yield TablePiece(start, piece.n_rows, piece.load)
                start += piece.n_rows


def spark_source(data: Any) -> SparkFrameSource:
    """A Spark DataFrame, of a local session or of Spark Connect, as a table."""
    if not hasattr(data, "mapInArrow"):
        raise DataError("only Spark DataFrames are supported.")
    return SparkFrameSource(data)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _with_numbers(frame: Any) -> Any:
    """The DataFrame with the number of its partition in every row."""
    return frame.selectExpr("*", f"spark_partition_id() AS `{NUMBER}`")


def _numbered(batches: Iterator[Any]) -> Iterator[Any]:
    """One row per partition."""
    import pyarrow as pa

    yield pa.RecordBatch.from_pydict({"number": pa.array([0], pa.int64())})


def _only(number: int) -> Task:
    def task(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        return batches if (0 if context is None else int(context.partitionId())) == number else iter(())

    return task


# -- sessions


@contextmanager
def session_at(address: str | None, workers: int | None) -> Iterator[SparkEngine]:
    """The engine of a session at a master's address, or of a session that is started here and ends with it."""
    library = import_extra("pyspark.sql", 'Spark is not installed. pip install "softcount[spark]"')
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    quiet = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    builder = library.SparkSession.builder.appName("softcount").config(map=quiet)
    if address is not None and address.startswith("sc://"):
        builder = builder.remote(address)
    else:
        builder = builder.master(address or f"local[{workers or '*'}]").config("spark.ui.enabled", "false")
    try:
        session = builder.getOrCreate()
    except Exception as error:
        where = "" if address is None else f" at {address}"
        raise DataError(f"Spark{where} cannot be started ({said_by(error)}). It needs Java 17 or newer.") from None
    try:
        with SparkEngine(session) as engine:
            yield engine
    finally:
        session.stop()


@contextmanager
def failing_in_a_line() -> Iterator[None]:
    """Raise errors of Spark as a one-line `DataError`."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("pyspark", "py4j"):
            raise
        raise DataError(f"Spark could not finish a pass: {said_by(error)}") from None


def said_by(error: Exception) -> str:
    """The line of a Spark error that says what happened: the last of a Python trace, or the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Killed\w*): ", line) and "pyspark" not in line]
    return (ours or lines or [type(error).__name__])[-1 if ours else 0][:300]
