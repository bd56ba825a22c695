"""Rows on other machines: an engine runs steps over parts where they are, and small results come back in order."""

from __future__ import annotations

import pickle
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import add
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from softcount.errors import DataError
from softcount.run.rows import Rows, Step
from softcount.run.spill import Spill
from softcount.run.worker_parts import Fold, Made, PartFailure, PartJob, PartReading, RowPart
from softcount.sources.parts import parts_of
from softcount.table.coded_parts import PartFacts
from softcount.table.column_plan import Contradiction

if TYPE_CHECKING:
    from softcount.sources.source import Key, Wanted
    from softcount.table import Settled, Table
    from softcount.table.encode import RowCoding


class WorkersEngine(ABC):
    """A runner whose workers have the rows: each part is read by a worker, and steps run there.

    What needs no rows runs here, in this thread.
    """

    n_jobs = 1
    shares_memory = False
    keeps_rows = False
    shares_disk = False
    """Whether the workers of a host share what they encode."""
    name = "the engine"

    def __init__(self) -> None:
        self.spill = Spill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.spill.close()

    def map(self, work: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        """Results in the order of the tasks, made here."""
        return map(work, tasks)

    @abstractmethod
    def run(self, job: PartJob, parts: Sequence[RowPart]) -> list[Any]:
        """What `do_parts` gives for every part, in their order."""

    @abstractmethod
    def forget(self, table: str) -> None:
        """Tell the workers to give up what they have of a table."""

    def encoded(self, table: Table) -> Rows:
        """All rows of a table, encoded on the workers; the table learns what they met."""
        if table.sides.labels is not None or table.sides.weights is not None:
            raise DataError(f"on {self.name} labels and weights are columns of the table: give their names.")
        parts = self._parts(table)
        coding, wanted = table.coding_elsewhere()
        reading = PartReading(uuid.uuid4().hex, pickle.dumps((coding, wanted)), self.shares_disk)
        rows = RemoteRows(self, parts, reading)
        try:
            rows.facts = rows.read()
        except (DataError, Contradiction):
            rows.close()
            raise
        table.absorb_parts(rows.facts, rows.starts)
        return rows

    def met(self, table: Table, coding: RowCoding, wanted: Mapping[Key, Wanted]) -> list[PartFacts]:
        """What every part has met when it was read by some coding; no row is kept."""
        reading = PartReading(uuid.uuid4().hex, pickle.dumps((coding, wanted)), self.shares_disk)
        rows = RemoteRows(self, self._parts(table), reading)
        try:
            return rows.read()
        finally:
            rows.close()

    def _parts(self, table: Table) -> Sequence[RowPart]:
        parts = parts_of(table.source)
        if parts is None:
            raise DataError(
                f"rows in memory are fitted where they are: {self.name} is for files that its workers can read, and "
                "for its own collections. Leave the engine out, or give the path of the files."
            )
        return parts

    def settled(self, table: Table, rows: Rows, settled: Settled) -> Rows:
        """The same rows in their settled codes."""
        assert isinstance(rows, RemoteRows)
        return rows.derived(Made(uuid.uuid4().hex, "settled", table.final_order(settled), rows.starts))


class RemoteRows(Rows):
    """The parts of a table on the workers of an engine, and what has been made of them."""

    def __init__(
        self, engine: WorkersEngine, parts: Sequence[RowPart], reading: PartReading, made: tuple[Made, ...] = ()
    ) -> None:
        self.engine, self.parts, self.reading, self.made_of = engine, parts, reading, made
        self.facts: list[PartFacts] = []

    @property
    def starts(self) -> list[int]:
        """The number of every part's first row."""
        found, total = [], 0
        for facts in self.facts:
            found.append(total)
            total += facts.n_rows
        return found

    @property
    def n_rows(self) -> int:
        return sum(facts.n_rows for facts in self.facts)

    @property
    def here(self) -> Sequence[Any]:
        raise DataError(
            f"what was asked needs every row on one machine, and these are on {self.engine.name}. Leave the engine out."
        )

    def read(self) -> list[PartFacts]:
        """Encode all parts, and what that has shown."""
        return self._asked(None, "facts")

    def each(self, step: Step) -> Iterator[Any]:
        return (result for part in self._asked(step, "each") for result in part)

    def total(self, step: Step) -> Any:
        return reduce(add, (result for part in self._asked(step, "total") for result in part))

    def made(self, step: Step) -> RemoteRows:
        return self.derived(Made(uuid.uuid4().hex, "each", step))

    def arranged(self, step: Step) -> RemoteRows:
        return self.derived(Made(uuid.uuid4().hex, "together", step))

    def derived(self, made: Made) -> RemoteRows:
        """The same rows after something more was made of them."""
        found = RemoteRows(self.engine, self.parts, self.reading, (*self.made_of, made))
        found.facts = self.facts
        return found

    def close(self) -> None:
        self.engine.forget(self.reading.table)

    def _asked(self, step: Step | None, fold: Fold) -> list[Any]:
        found, start = self.engine.run(PartJob(self.reading, self.made_of, step, fold), self.parts), 0
        for part, result in zip(self.parts, found, strict=True):
            if isinstance(result, PartFailure):
                raise _placed(result.error, part.name, start)
            start += result.n_rows if isinstance(result, PartFacts) else 0
        return found


def _placed(error: Exception, name: str, start: int) -> Exception:
    """What went wrong with a part, in the terms of the table: the first in the order of the parts is told."""
    if isinstance(error, Contradiction):
        return Contradiction(error.key, error.row + start, error.reason, error.becomes)
    said = str(error)
    return DataError(said if name in said else f"{name}: {said}")
