"""The base of all estimators: declared parameters, and the record of a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any, ClassVar, Self

from msgspec import Struct
from msgspec.structs import replace
from sklearn.base import BaseEstimator

import softcount
from softcount.errors import DataError, SoftcountError
from softcount.estimators.parameters import PARAMETERS, Parameter, document, missing_words
from softcount.evaluate.warnings import class_notes
from softcount.fit import Request, complete
from softcount.fitted.fitted import Fitted
from softcount.learn.record import FitRecord, Provenance
from softcount.models.declare import Declared
from softcount.models.nodes import Node
from softcount.run.local import Threads
from softcount.table import Contradiction, Table


class Estimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator whose constructor names its parameters; `parameters.PARAMETERS` says what they may be.

    `_varied` holds those that are something else in this estimator, `_removed` former ones and what to use in their
    place.
    """

    _varied: ClassVar[Mapping[str, Parameter]] = {}
    _removed: ClassVar[Mapping[str, str]] = {}
    _declared: ClassVar[Mapping[str, Parameter]] = {}

    def __init_subclass__(cls, **how: Any) -> None:
        super().__init_subclass__(**how)
        varied = {name: own for base in reversed(cls.__mro__) for name, own in vars(base).get("_varied", {}).items()}
        if cls.__init__ is not object.__init__:
            given = list(signature(cls.__init__).parameters.values())[1:]
            cls._declared = {own.name: varied.get(own.name) or PARAMETERS[own.name] for own in given}
            cls.__doc__ = document(cls.__doc__, cls._declared, {own.name: own.default for own in given})

    def __new__(cls, *given: Any, **named: Any) -> Self:
        for name in cls._removed.keys() & named.keys():
            raise DataError(f"{cls.__name__} has no parameter {name!r} any more. Use {cls._removed[name]}.")
        made: Self = super().__new__(cls)
        return made

    def _keep_parameters(self, given: Mapping[str, Any]) -> None:
        """Keep the arguments of the constructor, its `locals()`, as attributes: all that scikit-learn wants there."""
        for name in self._declared:
            setattr(self, name, given[name])

    def _check_settings(self) -> None:
        """Raise an error at the first parameter that cannot be used, by its name."""
        for name, declared in self._declared.items():
            declared.check(name, getattr(self, name))

    def _missing(self) -> tuple[str, ...]:
        """The cells that mean missing: the usual ones, and those that `missing` adds."""
        return missing_words(getattr(self, "missing", None))


# The rows that a model was learned from, kept until its notes, a report or a file need what costs as much as the fit.

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
