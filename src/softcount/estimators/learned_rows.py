"""Rows that a model was learned from, kept until somebody asks what speaks against it, or wants a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.errors import SoftcountError
from softcount.fitted.fitted_model import Fitted
from softcount.learn.plan import Plan
from softcount.models.declared import Declared
from softcount.models.nodes import Node
from softcount.records import dataclass
from softcount.run.threads import Threads
from softcount.table import Table
from softcount.table.chunk import Split
from softcount.table.column_plan import Contradiction
from softcount.table.column_summary import TableSummary, summarise

if TYPE_CHECKING:
    from softcount.evaluate.calibrate import HeldOut
    from softcount.evaluate.evaluation import Evaluation

FOLDS = 5
MOST_CELLS = 1_000_000
"""Cells of a table up to which its rows are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class LearnedRows:
    """Rows with their labels and weights, how a model was learned from them, and the classes of coded labels."""

    data: Any
    sides: Mapping[str, Any]
    plan: Plan
    classes: Sequence[Any] | None
    _tried: list[HeldOut | None] = field(default_factory=list)

    @classmethod
    def of(
        cls, table: Table, data: Any, sides: Mapping[str, Any], plan: Plan, classes: Sequence[Any] | None
    ) -> LearnedRows | None:
        """The rows of a table that was read; None where they are too many, or cannot be read again."""
        if table.n_rows is None or table.n_rows * max(1, len(table.keys)) > MOST_CELLS:
            return None
        return cls(data, sides, plan, classes)

    def _plan(self, fitted: Fitted) -> Plan:
        """How it was learned, with the families that rows chose."""
        open_plan = self.plan.declared.leaves_open
        return replace(self.plan, declared=declared_like(fitted.model.leaves)) if open_plan else self.plan

    def doubts(self, fitted: Fitted, n_jobs: int | None) -> list[str]:
        """What speaks against the model.

        Rows that cannot be read again as they were, a file that is gone or labels whose kind changed on the way, leave
        what the model itself tells.
        """
        from softcount.evaluate.model_doubts import class_notes, looked_for

        try:
            with Threads(n_jobs) as threads:
                table = fitted.table(self.data, **self.sides)
                return looked_for(fitted, table, partial(self._held, fitted, table, threads))
        except (SoftcountError, Contradiction, OSError):
            return class_notes(fitted)

    def summary(self, fitted: Any) -> TableSummary | None:
        """What the table's columns look like; None where it cannot be read again as it was."""
        if getattr(fitted, "bag", False):
            return None
        try:
            return summarise(fitted.table(self.data, **self.sides).chunks(), fitted.schema)
        except (SoftcountError, Contradiction, OSError):
            return None

    def evaluation(self, fitted: Any) -> Evaluation | None:
        """How models of the same plan did on rows that they had not seen; None where that plan is not all there is."""
        if not isinstance(fitted, Fitted) or fitted.classes is None or fitted.n_groups < 2:
            return None
        if fitted.pool is not None or fitted.learned_weights is not None or fitted.calibration is not None:
            return None
        try:
            with Threads(1) as threads:
                held = self._held(fitted, fitted.table(self.data, **self.sides), threads)
        except (SoftcountError, Contradiction, OSError):
            return None
        return None if held is None else folds_judged(held, fitted.shares, FOLDS)

    def _held(self, fitted: Fitted, table: Table, threads: Threads) -> HeldOut | None:
        """What models of the other folds say of every row: of a usual table found once, for doubts and reports."""
        from softcount.evaluate.calibrate import held_out

        if self._tried:
            return self._tried[0]
        found = held_out(table, self._plan(fitted), threads, Split(FOLDS, 0), self.classes)
        held = None if found is None else found[0]
        if held is None or held.logs.size <= MOST_CELLS:
            self._tried.append(held)
        return held


def folds_judged(held: Any, shares: np.ndarray, folds: int) -> Evaluation:
    """Rows that were held out as a report shows them; `held` has their log-posteriors."""
    from softcount.evaluate.judge import judged
    from softcount.evaluate.ranking import ScoredRows

    proba = held.proba if isinstance(held, ScoredRows) else np.exp(held.logs)
    tested = len(np.unique(held.folds))
    how = f"{folds}-fold cross-validation" if tested == folds else f"{tested} of {folds} folds held out"
    return replace(judged(ScoredRows(proba, held.labels, held.weights, held.folds), shares, by_fold=True), how=how)


def declared_like(leaves: Sequence[Node]) -> Declared:
    """The declared under which columns get the families that these leaves have."""
    whole = next((leaf.family for leaf in leaves if not leaf.columns), None)
    return Declared({leaf.key: leaf.family for leaf in leaves if leaf.columns}, everything=whole)
