"""The rows that a model was learned from, kept until its notes, a report or a file need what costs as much as the fit.

A fit itself takes no longer for it: rows of small tables are held, and looked at when they are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sklearn.base import BaseEstimator

import softcount
from softcount.errors import SoftcountError
from softcount.evaluate.warnings import class_notes
from softcount.fit import Request, complete
from softcount.fitted.fitted import Fitted
from softcount.learn.record import FitRecord, Provenance
from softcount.models.declare import Declared
from softcount.models.nodes import Node
from softcount.run.local import Threads
from softcount.table import Contradiction, Table

MOST_CELLS = 1_000_000
"""Cells of a table up to which its rows are kept."""


class LearnedRows(Struct, frozen=True, eq=False):
    """A table, and the request by which a model was learned from it."""

    table: Table
    request: Request

    @classmethod
    def of(cls, table: Table, request: Request) -> LearnedRows | None:
        """The rows of a table that was read; None if they are too many."""
        if table.n_rows is None or table.n_rows * max(1, len(table.keys)) > MOST_CELLS:
            return None
        return cls(table, request)

    def complete(self, fitted: Any, n_jobs: int | None) -> Any:
        """The model with its evaluation, warnings, and the summary of its table.

        If the rows cannot be read again, because a file is gone, there are the warnings that the counts alone give.
        """
        try:
            with Threads(n_jobs) as threads:
                return complete(fitted, self.table, self.request, threads)
        except (SoftcountError, Contradiction, OSError):
            if not isinstance(fitted, Fitted) or fitted.classes is None:
                return fitted
            return replace(fitted, notes=[*class_notes(fitted), *fitted.notes])


class KeptRecord:
    """An estimator whose `fitted_` has a record; `_rows` are those it learned from, while they are at hand."""

    fitted_: Any
    n_jobs: int | None
    _rows: LearnedRows | None = None

    def __getstate__(self) -> Any:
        """What is pickled, without the rows."""
        state: Any = super().__getstate__()
        return {key: part for key, part in state.items() if key != "_rows"}

    def _complete(self) -> None:
        """Evaluate the model, and look for what speaks against it, if that was not done yet."""
        rows, self._rows = self._rows, None
        if rows is not None:
            self.fitted_ = rows.complete(self.fitted_, self.n_jobs)

    def _recorded(self) -> Any:
        """The fitted model with its record, as far as that can be made now."""
        self._complete()
        record = self.fitted_.record or FitRecord()
        if record.provenance is None and "_library" in self.__dict__:  # a file that was loaded has its own, or none
            self.fitted_ = replace(self.fitted_, record=replace(record, provenance=self._origin()))
        return self.fitted_

    def _origin(self) -> Provenance:
        made = " ".join(BaseEstimator.__repr__(self, N_CHAR_MAX=2000).split())
        seed = getattr(self, "random_state", None)
        whose = {"pandas": "a frame of pandas", "polars": "a frame of polars"}
        data = whose.get(self.__dict__["_library"], "a table in Python")
        return Provenance(softcount.__version__, f"{made}.fit", seed if type(seed) is int else 0, data)


def declared_like(leaves: Sequence[Node]) -> Declared:
    """The declaration under which columns get the families that these leaves have."""
    whole = next((leaf.family for leaf in leaves if not leaf.columns), None)
    return Declared({leaf.key: leaf.family for leaf in leaves if leaf.columns}, everything=whole)
