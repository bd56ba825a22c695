"""A mixture that keeps several numbers of classes: densities, samples and queries are asked of their average."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from sklearn.base import clone

from softcount.errors import DataError

ASKED = ("score_samples", "sample", "query")
"""What the average answers by the same name."""
NOT_ASKED = ("bic", "aic", "icl", "description_length")
"""What is of one number of classes."""

Estimator = TypeVar("Estimator", bound=type)


def with_averages(estimator: Estimator) -> Estimator:
    """A class decorator: where there is an `average_`, the methods above ask it, or are refused."""
    for name in ASKED:
        setattr(estimator, name, _asking(getattr(estimator, name)))
    for name in NOT_ASKED:
        setattr(estimator, name, _refusing(getattr(estimator, name)))
    return estimator


def _asking(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def asked(self: Any, *given: Any, **named: Any) -> Any:
        whole = self.average_
        return method(self, *given, **named) if whole is None else getattr(whole, method.__name__)(*given, **named)

    return asked


def _refusing(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def refused(self: Any, *given: Any, **named: Any) -> Any:
        if self.average_ is not None:
            raise DataError(f"{method.__name__} is of one number of classes, and these are averaged: see selection_.")
        return method(self, *given, **named)

    return refused


def averaged_numbers(mixture: Any, fits: list[Any]) -> Any:
    """The average of a mixture's fits, each as a mixture of its own with that number of classes."""
    from softcount.estimators.model_average import average

    members = {}
    for fitted in sorted(fits, key=lambda fitted: fitted.n_groups):
        member = clone(mixture).set_params(n_components=fitted.n_groups)
        member._keep(fitted)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(mixture, name):
                setattr(member, name, getattr(mixture, name))
        members[f"{fitted.n_groups} class{'' if fitted.n_groups == 1 else 'es'}"] = member
    return average(members, by=mixture.criterion)
