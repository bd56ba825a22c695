"""What a report needs of a fit, kept by fits in Python: summary of the table, how it did on unseen rows, its origin.

A fit itself takes no longer for it: rows of small tables are held, and looked at when a report or a file is made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.base import BaseEstimator

import softcount
from softcount.estimators.learned_rows import LearnedRows
from softcount.learn.fit_record import FitRecord, Provenance


class KeptRecord:
    """An estimator whose `fitted_` has a record; `_rows` are those it learned from, while they are at hand."""

    fitted_: Any
    _rows: LearnedRows | None = None

    def __getstate__(self) -> Any:
        """What is pickled, without the rows."""
        state: Any = super().__getstate__()
        return {key: part for key, part in state.items() if key != "_rows"}

    def _recorded(self) -> Any:
        """The fitted model with its record, as far as that can be made now."""
        fitted = self.fitted_
        rows, self._rows = self._rows, None
        record = fitted.record or FitRecord()
        if record.table is None and rows is not None:
            record = replace(record, table=rows.summary(fitted))
        if record.evaluation is None and rows is not None:
            record = replace(record, evaluation=rows.evaluation(fitted))
        if record.provenance is None and "_library" in self.__dict__:  # a file that was loaded has its own, or none
            record = replace(record, provenance=self._origin())
        if record != fitted.record:
            self.fitted_ = replace(fitted, record=record)
        return self.fitted_

    def _origin(self) -> Provenance:
        made = " ".join(BaseEstimator.__repr__(self, N_CHAR_MAX=2000).split())
        seed = getattr(self, "random_state", None)
        whose = {"pandas": "a frame of pandas", "polars": "a frame of polars"}
        data = whose.get(self.__dict__["_library"], "a table in Python")
        return Provenance(softcount.__version__, f"{made}.fit", seed if type(seed) is int else 0, data)
