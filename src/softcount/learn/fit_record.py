"""What is kept of a fit besides the model: how it did on unseen rows, what its table was like, where it is from."""

from __future__ import annotations

from typing import Any

from softcount.learn.start_traces import Traces
from softcount.records import dataclass
from softcount.table.column_summary import TableSummary


@dataclass(frozen=True, slots=True)
class Provenance:
    """Which version learned the model, by which command and seed, from which data; `sha256` is of its bytes."""

    version: str
    command: str
    seed: int
    data: str
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class FitRecord:
    """All that is kept. `evaluation` is an `evaluate.scores.Evaluation`, or None where the model was not tried.

    `criterion` is what the number of classes was chosen by, where it was looked for; `starts` are the objectives of the
    search's starts, step by step. `gains` are the nats per held-out row by which each column lowers the log-loss of the
    classes: numbers first, then levels, then texts; empty if they are not known.
    """

    evaluation: Any = None
    table: TableSummary | None = None
    provenance: Provenance | None = None
    criterion: str | None = None
    starts: Traces = ()
    gains: tuple[float, ...] = ()
