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
    parts: np.ndarray, labels: np.ndarray, heavy: np.ndarray, centre: np.ndarray, penalty: float, doubt: float = 0.0
) -> SharedWeights:
    """The weights under which the classes of these rows are likeliest, drawn to `centre` by so many rows' worth.

    With a `doubt` every row is taken to be of its class but for that share, which is of the others alike: rows that are
    all told rightly would else say that nothing is sure enough.

    `parts` is (rows x parts x classes): what was said of rows by those who had not seen them. `heavy` is what each row
    weighs. Classes that the rows do not hold keep a bias near zero.
    """
    problem = _Weighing(parts, labels, heavy, centre, penalty)
    problem.believe(doubt)
    number = len(centre)
    at = np.concatenate([np.clip(centre, 0.0, LARGEST), np.zeros(parts.shape[2])])
    value, slope, curve = problem.at(at)
    for _ in range(MOST_STEPS):
        step = problem.step(at, slope, curve)
        share = 1.0
        while share > 1e-6:
            ahead = problem.within(at + share * step)
            found = problem.at(ahead)
            if found[0] < value:
                break
            share /= 2.0
        else:
            break
        gained, at = value - found[0], ahead
        value, slope, curve = found
        if gained < 1e-9 * (1.0 + abs(value)):
            break
    return SharedWeights(at[:number], at[number:])


MOST_STEPS = 50
"""Newton steps; ten are usual."""


class _Weighing:
    """The penalised loss of weights and biases, its slope and curvature, and Newton's step within the bounds."""

    def __init__(
        self, parts: np.ndarray, labels: np.ndarray, heavy: np.ndarray, centre: np.ndarray, penalty: float
    ) -> None:
        rows, number, classes = parts.shape
        apart = (parts - parts.mean(axis=2, keepdims=True)).transpose(0, 2, 1)
        biases = np.broadcast_to(np.eye(classes), (rows, classes, classes))
        self.features = np.concatenate([apart, biases], axis=2)  # (rows x classes x unknowns)
        self.heavy = heavy
        self.told = self.features[np.arange(rows), labels]
        self.centre = np.concatenate([centre, np.zeros(classes)])
        self.pull = np.concatenate([np.full(number, penalty), np.ones(classes)])
        self.low = np.concatenate([np.zeros(number), np.full(classes, -np.inf)])
        self.high = np.concatenate([np.full(number, LARGEST), np.full(classes, np.inf)])

    def believe(self, doubt: float) -> None:
        """Take each row to be of its class but for so much."""
        share = doubt / max(self.features.shape[1] - 1, 1)
        self.told = (1.0 - doubt - share) * self.told + share * self.features.sum(axis=1)

    def at(self, given: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Loss, slope and curvature."""
        rows, classes, unknowns = self.features.shape
        flat = self.features.reshape(-1, unknowns)
        scores = (flat @ given).reshape(rows, classes)
        shares, evidence = softmax_rows(scores)
        apart = given - self.centre
        value = float(self.heavy @ (evidence - self.told @ given)) + 0.5 * float(self.pull @ apart**2)
        mass = (shares * self.heavy[:, None]).ravel()
        means = (flat * shares.ravel()[:, None]).reshape(rows, classes, unknowns).sum(axis=1)
        curve = (flat * mass[:, None]).T @ flat - (means * self.heavy[:, None]).T @ means
        slope = self.heavy @ (means - self.told) + self.pull * apart
        return value, slope, curve + np.diag(self.pull)

    def step(self, at: np.ndarray, slope: np.ndarray, curve: np.ndarray) -> np.ndarray:
        """Newton's step of the unknowns that are not held at a bound."""
        held = ((at <= self.low) & (slope > 0)) | ((at >= self.high) & (slope < 0))
        free = np.flatnonzero(~held)
        found = np.zeros_like(at)
        found[free] = -np.linalg.solve(curve[np.ix_(free, free)], slope[free])
        return found

    def within(self, at: np.ndarray) -> np.ndarray:
        return np.asarray(np.clip(at, self.low, self.high))
