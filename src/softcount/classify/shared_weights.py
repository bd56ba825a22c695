"""One weight for each part of a sum of scores, the same for all classes, by conditional likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softcount.numerics.logspace import softmax_rows

LARGEST = 3.0
"""A weight is between nothing and this."""


@dataclass(frozen=True, slots=True, eq=False)
class SharedWeights:
    """The weight of every part, 0 or more, and what is added to the score of every class."""

    weights: np.ndarray
    bias: np.ndarray

    def scores(self, parts: np.ndarray) -> np.ndarray:
        """(rows x classes) from (rows x parts x classes)."""
        return np.asarray(np.tensordot(parts, self.weights, (1, 0)) + self.bias)


def learned_weights(
    parts: np.ndarray, labels: np.ndarray, heavy: np.ndarray, centre: np.ndarray, penalty: float
) -> SharedWeights:
    """The weights under which the classes of these rows are likeliest, drawn to `centre` by so many rows' worth.

    `parts` is (rows x parts x classes): what was said of rows by those who had not seen them. `heavy` is what each row
    weighs. Classes that the rows do not hold keep a bias near zero.
    """
    from scipy.optimize import minimize

    rows, number, classes = parts.shape
    flat = np.ascontiguousarray((parts - parts.mean(axis=2, keepdims=True)).transpose(0, 2, 1)).reshape(-1, number)
    own = np.arange(rows)

    def objective(given: np.ndarray) -> tuple[float, np.ndarray]:
        weights, bias = given[:number], given[number:]
        scores = (flat @ weights).reshape(rows, classes) + bias
        shares, evidence = softmax_rows(scores)
        value = float(heavy @ (evidence - scores[own, labels]))
        shares[own, labels] -= 1.0
        shares *= heavy[:, None]
        apart = weights - centre
        value += 0.5 * penalty * float(apart @ apart) + 0.5 * float(bias @ bias)
        return value, np.concatenate([shares.ravel() @ flat + penalty * apart, shares.sum(axis=0) + bias])

    bounds = [(0.0, LARGEST)] * number + [(None, None)] * classes
    first = np.concatenate([centre, np.zeros(classes)])
    found = minimize(objective, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 200}).x
    return SharedWeights(found[:number], found[number:])
