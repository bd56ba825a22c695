"""Rows that a model was learned from, kept until somebody asks what speaks against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from softcount.errors import SoftcountError
from softcount.fitted.fitted_model import Fitted
from softcount.learn.plan import Plan
from softcount.models.declared import Declared
from softcount.run.threads import Threads
from softcount.table import Table
from softcount.table.column_plan import Contradiction

MOST_CELLS = 1_000_000
"""Cells of a table up to which its rows are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class LearnedRows:
    """Rows with their labels and weights, how a model was learned from them, and the classes of coded labels."""

    data: Any
    sides: Mapping[str, Any]
    plan: Plan
    classes: Sequence[Any] | None

    @classmethod
    def of(
        cls, table: Table, data: Any, sides: Mapping[str, Any], plan: Plan, classes: Sequence[Any] | None
    ) -> LearnedRows | None:
        """The rows of a table that was read; None where they are too many, or cannot be read again."""
        if table.n_rows is None or table.n_rows * max(1, len(table.keys)) > MOST_CELLS:
            return None
        return cls(data, sides, plan, classes)

    def doubts(self, fitted: Fitted, chosen: Declared, n_jobs: int | None) -> list[str]:
        """What speaks against the model; `chosen` are its families, where rows chose them.

        Rows that cannot be read again as they were, a file that is gone or labels whose kind changed on the way, leave
        what the model itself tells.
        """
        from softcount.evaluate.model_doubts import class_notes, looked_for

        plan = replace(self.plan, declared=chosen) if self.plan.declared.leaves_open else self.plan
        try:
            with Threads(n_jobs) as threads:
                return looked_for(fitted, fitted.table(self.data, **self.sides), plan, threads, self.classes)
        except (SoftcountError, Contradiction):
            return class_notes(fitted)
