"""How a hypothesis judges what is seen: by a table of probabilities, by a function, or by a fitted model."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from numbers import Real
from typing import Any, Protocol

import numpy as np

from softcount.errors import DataError

CLOSE = 1e-9
"""Probabilities whose sum is this near to one sum to one."""


class Likelihood(Protocol):
    """The log-likelihood of what is seen under one hypothesis, and the values it knows by name."""

    @property
    def known(self) -> tuple[Hashable, ...]: ...
    @property
    def takes_tables(self) -> bool: ...
    def logs(self, seen: Any) -> np.ndarray: ...


class LevelLikelihood:
    """The probability of each value; a value that is left out has none.

    >>> LevelLikelihood("fair", {"heads": 0.5, "tails": 0.5}).logs(["heads", "tails"]).round(4).tolist()
    [-0.6931, -0.6931]
    """

    takes_tables = False

    def __init__(self, name: Hashable, shares: Mapping[Any, float]) -> None:
        self.shares = {value: checked_share(share, f"{name!r} gives {value!r}") for value, share in shares.items()}
        sums_to_one(self.shares.values(), f"the probabilities of the values under {name!r}")

    @property
    def known(self) -> tuple[Hashable, ...]:
        return tuple(self.shares)

    def logs(self, seen: Any) -> np.ndarray:
        return logs_of([self.shares.get(value, 0.0) for value in seen])


class FunctionLikelihood:
    """A function that says how probable, or how dense, one value is.

    >>> FunctionLikelihood("flat", lambda x: 0.25 if 0 <= x <= 4 else 0.0).logs([1.5, 7.0]).round(4).tolist()
    [-1.3863, -inf]
    """

    takes_tables = False
    known = ()

    def __init__(self, name: Hashable, function: Callable[[Any], Any]) -> None:
        self.name, self.function = name, function

    def logs(self, seen: Any) -> np.ndarray:
        return logs_of([checked_likelihood(self.function(value), self.name, repr(value)) for value in seen])


class ModelLikelihood:
    """A fitted model: its log-density of every row, or of all rows together where it says no more."""

    takes_tables = True
    known = ()

    def __init__(self, name: Hashable, model: Any) -> None:
        self.name = name
        self.score = getattr(model, "score_samples", None) or model.log_likelihood

    def logs(self, seen: Any) -> np.ndarray:
        logs = np.asarray(self.score(seen), dtype=float)
        if logs.ndim > 1:
            raise DataError(f"the model {self.name!r} gives scores of shape {logs.shape}. One for each row is needed.")
        if np.isnan(logs).any() or np.isposinf(logs).any():
            raise DataError(f"the model {self.name!r} gives a log-likelihood of {logs.max():g}. It must be below inf.")
        return logs


def likelihood_of(name: Hashable, said: Any) -> Likelihood:
    """The way a hypothesis judges, from what the user gave for it."""
    if isinstance(said, Mapping):
        return LevelLikelihood(name, said)
    if hasattr(said, "score_samples") or hasattr(said, "log_likelihood"):
        return ModelLikelihood(name, said)
    if callable(said):
        return FunctionLikelihood(name, said)
    raise DataError(
        f"the likelihood of {name!r} is {said!r}. "
        "Give the probability of each value, a function of a value, or a fitted model."
    )


def checked_share(share: Any, told: str) -> float:
    """A probability as a float, refused where it is none."""
    if not isinstance(share, Real) or not 0 <= float(share) <= 1:
        raise DataError(f"{told} the probability {share!r}. A probability is a number from 0 to 1.")
    return float(share)


def checked_likelihood(said: Any, name: Hashable, what: str) -> float:
    """A likelihood as a float: a probability or a density, so finite and 0 or more."""
    try:
        likelihood = float(said)
    except (TypeError, ValueError):
        likelihood = math.nan
    if not 0 <= likelihood < math.inf:
        raise DataError(f"{name!r} gives {what} the likelihood {said!r}. A likelihood is finite and 0 or more.")
    return likelihood


def sums_to_one(shares: Any, told: str) -> None:
    """Refuse probabilities that do not sum to one."""
    total = math.fsum(shares)
    if abs(total - 1) > CLOSE:
        raise DataError(f"{told} sum to {total:.10g}. Probabilities sum to one: divide each by their sum.")


def logs_of(likelihoods: list[float]) -> np.ndarray:
    """Their logarithms; -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.array(likelihoods, dtype=float)))
