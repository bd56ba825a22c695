"""Spark: one row of bytes for each task and pass, by `mapInArrow`; parts are read in the tasks and stay on their host.

What a task needs is in the closure, so that Spark Connect, which has no broadcasts, is served as well.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from softcount.errors import DataError
from softcount.records import dataclass
from softcount.run.remote_rows import WorkersEngine
from softcount.run.worker_parts import RowPart, do_parts
from softcount.sources.frames import frame_source
from softcount.sources.parts import MadePart, PartsSource
from softcount.sources.source import LOOK_ROWS, Key, Source, TablePiece, Wanted

EXTRA = 'pip install "softcount[spark]"'
ANSWER = "number long, answer binary"
"""What a task gives: the number of a part, and what the job gave for it."""
CHANGING = (
    "the rows of the Spark frame are not in the same partitions in every pass, as after repartitionByRange or a random "
    "function. Cache the frame, or write it to files and fit those."
)


class SparkEngine(WorkersEngine):
    """Runs steps in the tasks of a Spark session."""

    name = "Spark"

    def __init__(self, session: Any) -> None:
        super().__init__()
        self.session = session
        self._digests: dict[int, str] = {}

    def run(self, job: bytes, parts: Sequence[RowPart]) -> list[Any]:
        frame = next((part.frame for part in parts if isinstance(part, PartitionPart)), None)
        if frame is None:
            frame, task = self.session.range(len(parts)), _of_files(job, [pickle.dumps(part) for part in parts])
        else:
            task = _of_partitions(job)
        with failing_in_a_line():
            answers = frame.mapInArrow(task, ANSWER).collect()
        found = {}
        for row in answers:
            number, (digest, found[number]) = row["number"], pickle.loads(bytes(row["answer"]))
            if digest is not None and self._digests.setdefault(number, digest) != digest:
                raise DataError(CHANGING)
        if len(found) != len(parts):
            raise DataError(CHANGING)
        return [found[number] for number in range(len(parts))]

    def forget(self, table: str) -> None:
        """Nothing to do: a Python worker gives up the oldest table by itself, and all of them when it ends."""


def _of_files(job: bytes, parts: Sequence[bytes]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A task over numbers of parts, which it reads by itself."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _answer(number, None, do_parts(job, [(number, pickle.loads(parts[number]))]))

    return task


def _of_partitions(job: bytes) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A task over a partition of the user's own frame, which Spark hands over in batches of rows."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        number = _partition()
        part = HandedOver(f"partition {number}", batches)
        found = do_parts(job, [(number, part)])
        yield _answer(number, part.digest, found)
        deque(batches, maxlen=0)  # a worker that leaves rows unread ends, and with it what it keeps

    return task


def _answer(number: int, digest: str | None, found: list[tuple[int, Any]]) -> Any:
    import pyarrow as pa

    ((_, answer),) = found
    told = pa.array([pickle.dumps((digest, answer))], pa.binary())
    return pa.RecordBatch.from_pydict({"number": pa.array([number], pa.int64()), "answer": told})


# -- frames


@dataclass(slots=True)
class HandedOver:
    """Rows that Spark hands to a task; read only where the worker does not have them yet, and then told by a digest."""

    name: str
    batches: Iterator[Any]
    digest: str | None = None

    def open(self) -> Source | None:
        import pyarrow as pa

        found = [batch for batch in self.batches if batch.num_rows]
        content = hashlib.blake2b(digest_size=16)
        for batch in found:
            content.update(batch.serialize())
        self.digest = content.hexdigest()
        return frame_source(pa.Table.from_batches(found)) if found else None


@dataclass(slots=True)
class PartitionPart:
    """A partition of a frame, which only its own task can read."""

    name: str
    frame: Any

    def open(self) -> Source | None:
        raise DataError(f"{self.name} is read where Spark has it, not here.")


class SparkFrameSource(PartsSource):
    """The partitions of a Spark frame as one table: its first rows are looked at here, the others where they are."""

    def __init__(self, frame: Any) -> None:
        self.frame, self.owner = frame, frame.sparkSession
        with failing_in_a_line():
            first = frame.limit(LOOK_ROWS).toArrow()
            numbers = frame.mapInArrow(_numbered, "number long").collect()
        super().__init__([MadePart("the first rows", lambda: frame_source(first) if len(first) else None)])
        self.parts = [PartitionPart(f"partition {number}", frame) for number in range(len(numbers))]

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        """A few columns brought here, a partition at a time: a column that turned out otherwise is looked at again."""
        names = [str(key) for key in wanted] or self.frame.columns[:1]
        some, start = self.frame.select(*(f"`{name.replace('`', '``')}`" for name in names)), 0
        for number in range(len(self.parts)):
            with failing_in_a_line():
                found = some.mapInArrow(_only(number), some.schema).toArrow()
            for piece in frame_source(found).pieces(wanted) if len(found) else ():
                yield TablePiece(start, piece.n_rows, piece.load)
                start += piece.n_rows


def spark_source(data: Any) -> SparkFrameSource:
    """The partitions of a frame of Spark's, of a session here or of one that is connected to, as one table."""
    if not hasattr(data, "mapInArrow"):
        raise DataError("of Spark's collections, DataFrames are taken.")
    return SparkFrameSource(data)


def _numbered(batches: Iterator[Any]) -> Iterator[Any]:
    """A row for each partition, none of whose rows are asked for."""
    import pyarrow as pa

    yield pa.RecordBatch.from_pydict({"number": pa.array([0], pa.int64())})


def _only(number: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The rows of one partition."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        return batches if _partition() == number else iter(())

    return task


def _partition() -> int:
    """The number of the partition that a task is for."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


# -- sessions


@contextmanager
def session_at(address: str | None, workers: int | None) -> Iterator[SparkEngine]:
    """The engine of a session at a master's address, or of one that is started here and ends with it."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise DataError(f"Spark is not installed. {EXTRA}") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    quiet = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    builder = SparkSession.builder.appName("softcount").config(map=quiet)
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
    """What Spark says of a failure, on a hundred lines, in one."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("pyspark", "py4j"):
            raise
        raise DataError(f"Spark could not finish a pass: {said_by(error)}") from None


def said_by(error: Exception) -> str:
    """The one line of a failure of Spark's that says what happened: the last of a Python trace, or its first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Killed\w*): ", line) and "pyspark" not in line]
    return (ours or lines or [type(error).__name__])[-1 if ours else 0][:300]
