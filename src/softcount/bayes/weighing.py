"""How much each hypothesis counts in a prediction: by its posterior, or only the best of them."""

from __future__ import annotations

import numpy as np

from softcount.errors import DataError
from softcount.numerics.logspace import log_sum_exp

By = str | int
"""`"all"`, `"map"`, `"ml"`, or how many of the most probable."""

RULES: dict[str, By] = {"bayes": "all", "map": "map", "ml": "ml"}
"""The three predictions of a history."""

TIE = 9
"""Log-probabilities alike to so many decimals are a tie: sums of the same logarithms in another order are that near."""


def best(logs: np.ndarray, count: int = 1) -> np.ndarray:
    """The places of the largest in each line, largest first and ties in their order; one alone without its axis.

    >>> best(np.log([[0.2, 0.4, 0.4]])), best(np.log([[0.2, 0.4, 0.4]]), 2)
    (array([1]), array([[1, 2]]))
    """
    below = np.round(logs - logs.max(axis=1, keepdims=True), TIE)
    order = np.argsort(-below, axis=1, kind="stable")
    return np.asarray(order[:, 0] if count == 1 else order[:, :count])


def log_weights(by: By, joint: np.ndarray, likelihood: np.ndarray) -> np.ndarray:
    """Lines x hypotheses of logarithms of weights that sum to one, from joint log-probabilities and log-likelihoods."""
    logs = likelihood if by == "ml" else joint
    if by != "all":
        chosen = best(logs, 1 if by in ("map", "ml") else int(by)).reshape(len(logs), -1)
        kept = np.full(logs.shape, -np.inf)
        np.put_along_axis(kept, chosen, np.take_along_axis(logs, chosen, axis=1), axis=1)
        logs = kept
    return np.asarray(logs - np.asarray(log_sum_exp(logs, axis=1))[:, None])


def checked_by(by: By, count: int) -> None:
    """Refuse a rule that is none, naming those there are."""
    whole = isinstance(by, int) and not isinstance(by, bool) and 1 <= by <= count
    if not whole and by not in ("all", "map", "ml"):
        raise DataError(f"by is {by!r}. Predictions are by 'all', 'map', 'ml', or the best 1 to {count} hypotheses.")
