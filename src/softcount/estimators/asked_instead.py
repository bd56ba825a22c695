"""Estimators that hand questions on: methods that ask what was learned beside the model, or are refused with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

from softcount.errors import DataError

Estimator = TypeVar("Estimator", bound=type)


def handing_on(
    other: str, asked: Sequence[str], not_asked: Sequence[str], because: str
) -> Callable[[Estimator], Estimator]:
    """A class decorator: where there is an attribute `other`, some methods ask it and others are refused."""

    def decorated(estimator: Estimator) -> Estimator:
        for name in asked:
            setattr(estimator, name, _asking(getattr(estimator, name), other))
        for name in not_asked:
            setattr(estimator, name, _refusing(getattr(estimator, name), other, because))
        return estimator

    return decorated


def _asking(method: Callable[..., Any], other: str) -> Callable[..., Any]:
    @wraps(method)
    def asked(self: Any, *given: Any, **named: Any) -> Any:
        whole = getattr(self, other, None)
        return method(self, *given, **named) if whole is None else getattr(whole, method.__name__)(*given, **named)

    return asked


def _refusing(method: Callable[..., Any], other: str, because: str) -> Callable[..., Any]:
    @wraps(method)
    def refused(self: Any, *given: Any, **named: Any) -> Any:
        if getattr(self, other, None) is not None:
            raise DataError(f"{method.__name__} is {because}")
        return method(self, *given, **named)

    return refused
