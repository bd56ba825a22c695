"""The base of all estimators: parameters that are declared once, checked together, and documented."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from softcount.errors import DataError
from softcount.estimators.parameters import PARAMETERS, Parameter, document, missing_words


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
        if "__init__" in vars(cls):
            given = list(signature(cls.__init__).parameters.values())[1:]
            cls._declared = {own.name: varied.get(own.name) or PARAMETERS[own.name] for own in given}
            cls.__doc__ = document(cls.__doc__, cls._declared, {own.name: own.default for own in given})

    def __new__(cls, *given: Any, **named: Any) -> Self:
        for name in cls._removed.keys() & named.keys():
            raise DataError(f"{cls.__name__} has no parameter {name!r} any more. Use {cls._removed[name]}.")
        return super().__new__(cls)

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
