"""What a worker of another engine does with the parts of a table: read once, kept on its disk, asked in every pass.

A job says, as one string of bytes, how rows are read, what has been made of them since, and what is to be done now. It
travels once a pass to every worker; rows never travel.
"""

from __future__ import annotations

import pickle
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import add
from typing import Any, Literal, Protocol

from softcount.errors import DataError
from softcount.records import dataclass
from softcount.run.base import one_blas_thread
from softcount.run.rows import Step
from softcount.run.shared_parts import SharedFolder, remove_shared
from softcount.run.spill import Spill
from softcount.sources.source import Source
from softcount.table.chunk import Chunk
from softcount.table.coded_parts import FinalOrder, PartFacts, read_part
from softcount.table.column_plan import Contradiction

MOST_TABLES = 2
"""Tables whose parts a worker keeps."""
MOST_MADE = 8
"""Things made of a part that a worker keeps: encoded, settled, prepared, arranged, and what came of other settings."""
MOST_MAPPED = 256
"""Parts that a worker maps: each takes a descriptor of the process, of which there may be no more than 1,024."""

Fold = Literal["facts", "each", "total"]


class RowPart(Protocol):
    """Some rows of a table, named, and small to send: whoever has it can read them."""

    @property
    def name(self) -> str:
        """How it is called in messages."""
        ...

    @property
    def digest(self) -> str | None:
        """Of the rows that were read, where they may be others the next time."""
        ...

    def open(self) -> Source | None:
        """Its rows; None where there are none."""
        ...


@dataclass(frozen=True, slots=True)
class PartReading:
    """How parts are encoded: pickled, because every part learns levels in a copy of its own."""

    table: str
    coding: bytes
    shared: bool = False
    """Whether the workers of a host share what they encode."""


@dataclass(frozen=True, slots=True)
class Made:
    """Something made of the rows, once: settled codes, each part by a step, or all neighbours by one."""

    key: str
    how: Literal["settled", "each", "together"]
    step: Any
    starts: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class PartJob:
    """What is to be done in a pass."""

    reading: PartReading
    made: tuple[Made, ...]
    step: Step | None
    fold: Fold


@dataclass(frozen=True, slots=True)
class PartFailure:
    """What went wrong with a part, in words or as a contradiction."""

    error: Exception


def do_parts(job: bytes, parts: Sequence[tuple[int, RowPart]]) -> list[tuple[int, Any]]:
    """What a job gives for each of some parts, by their numbers: the one function that runs on other machines."""
    asked: PartJob = pickle.loads(job)
    with one_blas_thread(), _lock:
        work = None if asked.step is None else asked.step.begin()
        return [(number, _done(asked, work, number, part)) for number, part in parts]


def _done(job: PartJob, work: Callable[[Any], Any] | None, number: int, part: RowPart) -> Any:
    try:
        kept = _table(job.reading)
        rows, facts = kept.rows(job, number, part)
        if work is None:
            return facts
        found = [work(own) for own in rows]
        return found if job.fold == "each" else [reduce(add, found)] if found else []
    except (DataError, Contradiction) as error:
        return PartFailure(error)


class KeptTable:
    """What a worker has of one table: the parts it was asked for, in a file on its disk.

    Where workers share a folder, a part is there as it was encoded, and only what was made of it is the worker's own.
    """

    def __init__(self, shared: SharedFolder | None = None) -> None:
        self.spill, self.shared = Spill(tempfile.gettempdir()), shared
        self._made: OrderedDict[tuple[int, str], list[Any]] = OrderedDict()
        self._facts: dict[int, PartFacts] = {}

    def rows(self, job: PartJob, number: int, part: RowPart) -> tuple[list[Any], PartFacts]:
        """A part as the job wants it, made of what is there already."""
        have = next((i for i in range(len(job.made), 0, -1) if (number, job.made[i - 1].key) in self._made), 0)
        if have:
            found = self._made[number, job.made[have - 1].key]
        elif (number, "") in self._made:
            found = self._made[number, ""]
        else:
            found = self._read(job.reading, number, part) if self.shared is None else self._shared(job, number, part)
        for made in job.made[have:]:
            found = self._keep(number, made.key, _made(made, found, self._facts.get(number), number))
        return found, self._facts[number]

    def digest(self, number: int) -> str | None:
        """The digest of a part's rows; None where it has none."""
        return self._facts[number].digest if number in self._facts else None

    def _read(self, reading: PartReading, number: int, part: RowPart) -> list[Any]:
        chunks: list[Any] = []
        self._facts[number] = _encoded(reading, part, lambda chunk: chunks.append(self.spill.kept(chunk)))
        return self._remember(number, "", chunks)

    def _shared(self, job: PartJob, number: int, part: RowPart) -> list[Any]:
        """A part as any worker of this host has encoded it, or as this one does now."""
        assert self.shared is not None
        mapped = len(self._facts) < MOST_MAPPED
        found = self.shared.found(number, mapped)
        if found is None:
            self.shared.keep(number, partial(_encoded, job.reading, part))
            found = self.shared.found(number, mapped)
        if found is None:
            raise DataError(f"{self.shared.path!r} was removed while it was written to. Fit again.")
        self._facts[number], chunks = found
        keep = self.spill.kept_elsewhere if mapped else self.spill.kept
        return self._remember(number, "", [keep(chunk) for chunk in chunks])

    def _keep(self, number: int, key: str, parts: Iterable[Any]) -> list[Any]:
        return self._remember(number, key, [self.spill.kept(part) for part in parts])

    def _remember(self, number: int, key: str, kept: list[Any]) -> list[Any]:
        self._made[number, key] = kept
        own = [place for place in self._made if place[0] == number]
        for place in own[: max(0, len(own) - MOST_MADE)]:
            if place[1]:  # what was read is kept
                del self._made[place]
        return kept


def _encoded(reading: PartReading, part: RowPart, keep: Callable[[Any], None]) -> PartFacts:
    """Read a part, hand its chunks over, and give what was seen of it."""
    coding, wanted = pickle.loads(reading.coding)
    source = part.open()
    if source is None:
        return PartFacts()
    facts = read_part(source, coding, wanted, keep)
    return replace(facts, digest=part.digest)


def _made(made: Made, parts: list[Any], facts: PartFacts | None, number: int) -> Iterable[Any]:
    if made.how == "settled":
        order: FinalOrder = made.step
        assert facts is not None
        chunks: list[Chunk] = parts
        return (order.settled(chunk, facts, made.starts[number]) for chunk in chunks)
    work = made.step.begin()
    if made.how == "each":
        return map(work, parts)
    return work(parts) if parts else ()


_lock = threading.Lock()
_tables: OrderedDict[str, KeptTable] = OrderedDict()


def _table(reading: PartReading) -> KeptTable:
    name = reading.table
    for gone in [own for own, kept in _tables.items() if kept.shared is not None and not kept.shared.exists]:
        _tables.pop(gone).spill.close()
    if name not in _tables:
        _tables[name] = KeptTable(SharedFolder(name) if reading.shared else None)
        while len(_tables) > MOST_TABLES:
            _tables.popitem(last=False)[1].spill.close()
    _tables.move_to_end(name)
    return _tables[name]


def forget_table(name: str) -> bool:
    """Give up what a worker has of a table, and what the workers of its host share; whether they had any."""
    with _lock:
        kept = _tables.pop(name, None)
        if kept is not None:
            kept.spill.close()
        return remove_shared(name)


def digest_of(reading: PartReading, number: int) -> str | None:
    """The digest of a part that was asked for just now, of the rows that were counted; None where it has none."""
    with _lock:
        kept = _tables.get(reading.table)
        return None if kept is None else kept.digest(number)
