"""Rows on the workers of an engine: parts, shared arrays and remote rows."""

from __future__ import annotations

import mmap
import os
import pickle
import re
import shutil
import stat
import tempfile
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial, reduce
from itertools import accumulate
from operator import add
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from softcount.errors import DataError
from softcount.run.local import LINE, SMALL, Rows, Runner, Spill, Step, begin, one_blas_thread, spill_error
from softcount.sources.open_source import parts_of
from softcount.sources.source import Source
from softcount.table.chunk import Chunk
from softcount.table.encode import FinalOrder, PartFacts, read_part
from softcount.table.schema import Contradiction

if TYPE_CHECKING:
    from softcount.sources.source import Key, Wanted
    from softcount.table import Settled, Table
    from softcount.table.encode import RowCoding

_OURS = re.compile(r"softcount-parts-[0-9a-f]{32}")
LEFT_BEHIND = 86_400
"""Seconds after which an untouched folder belongs to a dead session."""
LENGTH = 8
"""Bytes at the end of a file that hold the length of the description before them."""


class SharedFolder:
    """The parts of one table that this host has."""

    def __init__(self, table: str) -> None:
        self.path = _folder_of(table)
        with suppress(OSError), os.scandir(os.path.dirname(self.path)) as entries:
            for path in [entry.path for entry in entries if _OURS.fullmatch(entry.name)]:
                with suppress(OSError):
                    found = os.lstat(path)
                    if _is_private(found) and time.time() - found.st_mtime > LEFT_BEHIND:
                        shutil.rmtree(path, ignore_errors=True)
        with _naming_folder(self.path):
            with suppress(FileExistsError):
                os.mkdir(self.path, 0o700)
            found = os.lstat(self.path)
        if not _is_private(found):
            raise DataError(f"{self.path!r} is not a folder that only this user can enter. Remove it, and fit again.")

    @property
    def exists(self) -> bool:
        """Whether the folder is still there; also marks it as used."""
        try:
            os.utime(self.path)
        except OSError:
            return False
        return True

    def keep(self, number: int, write: Callable[[Callable[[Any], None]], Any]) -> None:
        """Write a part: `write` hands over its pieces one by one, and returns facts about all of them.

        The arrays come first in the file, then how pieces are made of them, then the length of that description.
        """
        path = os.path.join(self.path, f".{number}-{os.urandom(6).hex()}")
        forms: list[tuple[bytes, list[tuple[int, int]]]] = []

        def add(piece: Any) -> None:
            places: list[tuple[int, int]] = []

            def stays(buffer: pickle.PickleBuffer) -> bool:
                """Whether an array is small and stays in the description; others are written."""
                raw = buffer.raw()
                if raw.nbytes >= SMALL:
                    with _naming_folder(self.path):
                        file.write(bytes(-file.tell() % LINE))
                        places.append((file.tell(), raw.nbytes))
                        file.write(raw)
                return raw.nbytes < SMALL

            forms.append((pickle.dumps(piece, protocol=5, buffer_callback=stays), places))

        try:
            with _naming_folder(self.path):
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
            with os.fdopen(handle, "wb") as file:
                description = pickle.dumps((write(add), forms))
                with _naming_folder(self.path):
                    file.write(description)
                    file.write(len(description).to_bytes(LENGTH, "little"))
                    file.flush()
            os.replace(path, self._path(number))
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise

    def found(self, number: int, mapped: bool) -> tuple[Any, list[Any]] | None:
        """The facts and pieces of a part, mapped or in memory; None if this host does not have it."""
        try:
            with open(self._path(number), "rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if mapped else bytearray(file.read())
        except FileNotFoundError:
            return None
        view = memoryview(content)
        size = int.from_bytes(view[-LENGTH:], "little")
        facts, forms = pickle.loads(view[-LENGTH - size : -LENGTH])
        pieces = [
            pickle.loads(form, buffers=[view[start : start + length] for start, length in places])
            for form, places in forms
        ]
        return facts, pieces

    def _path(self, number: int) -> str:
        return os.path.join(self.path, f"{number}.rows")


def remove_shared(table: str) -> bool:
    """Remove this host's parts of a table; returns whether there were any. Mapped parts stay until released."""
    path = _folder_of(table)
    found = os.path.isdir(path)
    shutil.rmtree(path, ignore_errors=True)
    return found


def _folder_of(table: str) -> str:
    return os.path.join(tempfile.gettempdir(), f"softcount-parts-{table}")


@contextmanager
def _naming_folder(folder: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise spill_error(os.path.dirname(folder), error, "TMPDIR=DIR for the workers") from error


def _is_private(found: os.stat_result) -> bool:
    """Whether a path is a folder that only this user can enter."""
    if not hasattr(os, "geteuid"):  # a system without such rights
        return stat.S_ISDIR(found.st_mode)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


# Workers of another engine: they read their parts once, cache them on disk, and count them in every pass.

MOST_TABLES = 2
"""Tables whose parts a worker keeps."""
MOST_MADE = 8
"""Derived forms of a part that a worker keeps: encoded, settled, prepared, arranged."""
MOST_MAPPED = 256
"""Parts that a worker maps: each takes a file descriptor, of which there may be only 1,024."""

Fold = Literal["facts", "each", "total"]


class RowPart(Protocol):
    """Some rows of a table, small to send: any worker can read them."""

    @property
    def name(self) -> str:
        """The name in messages."""
        ...

    @property
    def digest(self) -> str | None:
        """A digest of the rows that were read, if a second reading may give others."""
        ...

    def open(self) -> Source | None:
        """Its rows; None if there are none."""
        ...


class PartReading(Struct, frozen=True):
    """How parts are encoded; pickled, because every part learns levels in its own copy."""

    table: str
    coding: bytes
    shared: bool = False
    """Whether the workers of a host share encoded parts."""


class Made(Struct, frozen=True):
    """A derived form of the rows: settled codes, each part by a step, or all neighbours by one."""

    key: str
    how: Literal["settled", "each", "together"]
    step: Any
    starts: Sequence[int] = ()


class PartJob(Struct, frozen=True):
    """The work of one pass."""

    reading: PartReading
    made: tuple[Made, ...]
    step: Step | None
    fold: Fold


def do_parts(job: bytes, parts: Sequence[tuple[int, RowPart]]) -> list[tuple[int, Any]]:
    """The results of a job for some parts, by their numbers: the function that runs on other machines."""
    found: PartJob = pickle.loads(job)
    with one_blas_thread(), _lock:
        work = None if found.step is None else begin(found.step)
        return [(number, _run_job(found, work, number, part)) for number, part in parts]


def _run_job(job: PartJob, work: Callable[[Any], Any] | None, number: int, part: RowPart) -> Any:
    try:
        name = job.reading.table
        for gone in [own for own, kept in _tables.items() if kept.shared is not None and not kept.shared.exists]:
            _tables.pop(gone).spill.close()
        if name not in _tables:
            _tables[name] = KeptTable(SharedFolder(name) if job.reading.shared else None)
            while len(_tables) > MOST_TABLES:
                _tables.popitem(last=False)[1].spill.close()
        _tables.move_to_end(name)
        kept = _tables[name]
        rows, facts = kept.rows(job, number, part)
        if work is None:
            return facts
        found = [work(own) for own in rows]
        return found if job.fold == "each" else [reduce(add, found)] if found else []
    except (DataError, Contradiction) as error:
        return error  # raised where the number of the part's first row is known


class KeptTable:
    """A worker's parts of one table, in a file on its disk.

    If workers share a folder, encoded parts are there, and only derived forms are the worker's own.
    """

    def __init__(self, shared: SharedFolder | None = None) -> None:
        self.spill, self.shared = Spill(tempfile.gettempdir()), shared
        self._made: OrderedDict[tuple[int, str], list[Any]] = OrderedDict()
        self.facts: dict[int, PartFacts] = {}

    def rows(self, job: PartJob, number: int, part: RowPart) -> tuple[list[Any], PartFacts]:
        """A part in the form of the job, made from the latest form that is kept."""
        keys = ["", *(made.key for made in job.made)]
        have = next((i for i in range(len(job.made), -1, -1) if (number, keys[i]) in self._made), None)
        if have is not None:
            found = self._made[number, keys[have]]
        else:
            have, found = 0, (self._read if self.shared is None else self._shared)(job.reading, number, part)
        for made in job.made[have:]:
            parts = _derive(made, found, self.facts.get(number), number)
            found = self._remember(number, made.key, [self.spill.kept(part) for part in parts])
        return found, self.facts[number]

    def _read(self, reading: PartReading, number: int, part: RowPart) -> list[Any]:
        chunks: list[Any] = []
        self.facts[number] = _encode_part(reading, part, lambda chunk: chunks.append(self.spill.kept(chunk)))
        return self._remember(number, "", chunks)

    def _shared(self, reading: PartReading, number: int, part: RowPart) -> list[Any]:
        """A part as encoded by any worker of this host, or by this one now."""
        assert self.shared is not None
        mapped = len(self.facts) < MOST_MAPPED
        found = self.shared.found(number, mapped)
        if found is None:
            self.shared.keep(number, partial(_encode_part, reading, part))
            found = self.shared.found(number, mapped)
        if found is None:
            raise DataError(f"{self.shared.path!r} was removed while it was written to. Fit again.")
        self.facts[number], chunks = found
        keep = self.spill.kept_elsewhere if mapped else self.spill.kept
        return self._remember(number, "", [keep(chunk) for chunk in chunks])

    def _remember(self, number: int, key: str, kept: list[Any]) -> list[Any]:
        self._made[number, key] = kept
        own = [place for place in self._made if place[0] == number]
        for place in own[: max(0, len(own) - MOST_MADE)]:
            if place[1]:  # what was read is kept
                del self._made[place]
        return kept


def _encode_part(reading: PartReading, part: RowPart, keep: Callable[[Any], None]) -> PartFacts:
    """Read a part, hand over its chunks, and return facts about it."""
    coding, wanted = pickle.loads(reading.coding)
    source = part.open()
    if source is None:
        return PartFacts()
    facts = read_part(source, coding, wanted, keep)
    return replace(facts, digest=part.digest)


def _derive(made: Made, parts: list[Any], facts: PartFacts | None, number: int) -> Iterable[Any]:
    if made.how == "settled":
        order: FinalOrder = made.step
        assert facts is not None
        chunks: list[Chunk] = parts
        return (order.settled(chunk, facts, made.starts[number]) for chunk in chunks)
    work = begin(made.step)
    if made.how == "each":
        return map(work, parts)
    return work(parts) if parts else ()


_lock = threading.Lock()
_tables: OrderedDict[str, KeptTable] = OrderedDict()


def forget_table(name: str) -> bool:
    """Drop a worker's parts of a table and those its host shares; returns whether there were any."""
    with _lock:
        kept = _tables.pop(name, None)
        if kept is not None:
            kept.spill.close()
        return remove_shared(name)


def digest_of(reading: PartReading, number: int) -> str | None:
    """The digest of the rows of a part that was counted just now; None if it has none."""
    with _lock:
        kept = _tables.get(reading.table)
        return None if kept is None or number not in kept.facts else kept.facts[number].digest


# Rows on other machines: the engine runs steps on the parts and returns small results in order.


class WorkersEngine(Runner, ABC):
    """A runner whose workers have the rows: each part is read by a worker, and steps run there.

    All other work runs here, in this thread.
    """

    keeps_rows = False
    shares_disk = False
    """Whether the workers of a host share encoded parts."""
    name = "the engine"

    @abstractmethod
    def run(self, job: PartJob, parts: Sequence[RowPart]) -> list[Any]:
        """The results of `do_parts` for every part, in order."""

    @abstractmethod
    def forget(self, table: str) -> None:
        """Tell the workers to drop a table."""

    def encoded(self, table: Table) -> Rows:
        """Encode all rows on the workers; the table learns the levels they met."""
        if table.sides.labels is not None or table.sides.weights is not None:
            raise DataError(f"on {self.name} labels and weights are columns of the table: give their names.")
        rows = self._rows(table, *table.coding_elsewhere())
        try:
            rows.facts = rows.run(None, "facts")
        except (DataError, Contradiction):
            rows.close()
            raise
        table.absorb_parts(rows.facts, rows.starts)
        return rows

    def met(self, table: Table, coding: RowCoding, wanted: Mapping[Key, Wanted]) -> list[PartFacts]:
        """Facts about every part when read by some coding; no row is kept."""
        rows = self._rows(table, coding, wanted)
        try:
            return rows.run(None, "facts")
        finally:
            rows.close()

    def _rows(self, table: Table, coding: RowCoding, wanted: Mapping[Key, Wanted]) -> RemoteRows:
        parts = parts_of(table.source)
        if parts is None:
            raise DataError(
                f"rows in memory are fitted where they are: {self.name} is for files that its workers can read, and "
                "for its own collections. Leave the engine out, or give the path of the files."
            )
        return RemoteRows(self, parts, PartReading(uuid.uuid4().hex, pickle.dumps((coding, wanted)), self.shares_disk))

    def settled(self, table: Table, rows: Rows, settled: Settled) -> Rows:
        assert isinstance(rows, RemoteRows)
        return rows.derived(Made(uuid.uuid4().hex, "settled", table.final_order(settled), rows.starts))


class RemoteRows(Rows):
    """The parts of a table on the workers of an engine, in some derived form."""

    def __init__(
        self, engine: WorkersEngine, parts: Sequence[RowPart], reading: PartReading, made: tuple[Made, ...] = ()
    ) -> None:
        self.engine, self.parts, self.reading, self.made_of = engine, parts, reading, made
        self.facts: list[PartFacts] = []

    @property
    def starts(self) -> list[int]:
        return list(accumulate((facts.n_rows for facts in self.facts), initial=0))[:-1]

    @property
    def n_rows(self) -> int:
        return sum(facts.n_rows for facts in self.facts)

    @property
    def here(self) -> Sequence[Any]:
        raise DataError(
            f"this method needs all rows on one machine, and these are on {self.engine.name}. Leave the engine out."
        )

    def each(self, step: Step) -> Iterator[Any]:
        return (result for part in self.run(step, "each") for result in part)

    def total(self, step: Step) -> Any:
        return reduce(add, (result for part in self.run(step, "total") for result in part))

    def made(self, step: Step) -> RemoteRows:
        return self.derived(Made(uuid.uuid4().hex, "each", step))

    def arranged(self, step: Step) -> RemoteRows:
        return self.derived(Made(uuid.uuid4().hex, "together", step))

    def derived(self, made: Made) -> RemoteRows:
        found = RemoteRows(self.engine, self.parts, self.reading, (*self.made_of, made))
        found.facts = self.facts
        return found

    def close(self) -> None:
        self.engine.forget(self.reading.table)

    def run(self, step: Step | None, fold: Fold) -> list[Any]:
        """The results of a step for every part, in order; the facts about the parts without a step."""
        found, start = self.engine.run(PartJob(self.reading, self.made_of, step, fold), self.parts), 0
        for part, result in zip(self.parts, found, strict=True):
            if isinstance(result, Exception):
                raise _renumber_error(result, part.name, start)
            start += result.n_rows if isinstance(result, PartFacts) else 0
        return found


def _renumber_error(error: Exception, name: str, start: int) -> Exception:
    """The error of a part with rows numbered as in the table."""
    if isinstance(error, Contradiction):
        return Contradiction(error.key, error.row + start, error.reason, error.becomes)
    message = str(error)
    return DataError(message if name in message else f"{name}: {message}")
