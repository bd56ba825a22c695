"""One weight for each part of a sum of scores, the same for all classes, by conditional likelihood."""

from __future__ import annotations

import numpy as np

from softcount.numerics.logspace import softmax_rows
from softcount.records import dataclass

LARGEST = 3.0
"""A weight is between nothing and this."""
AT_ONCE = 1 << 18
"""Numbers that are held at a time beside the parts themselves."""


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
        self.rows, number, self.classes = parts.shape
        self.apart = (parts - parts.mean(axis=2, keepdims=True)).transpose(0, 2, 1)  # (rows x classes x parts)
        self.labels, self.doubt = labels, 0.0
        self.heavy = heavy
        self.centre = np.concatenate([centre, np.zeros(self.classes)])
        self.pull = np.concatenate([np.full(number, penalty), np.ones(self.classes)])
        self.low = np.concatenate([np.zeros(number), np.full(self.classes, -np.inf)])
        self.high = np.concatenate([np.full(number, LARGEST), np.full(self.classes, np.inf)])

    def believe(self, doubt: float) -> None:
        """Take each row to be of its class but for so much."""
        self.doubt = doubt

    def at(self, given: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Loss, slope and curvature; rows are gone through in blocks, so that little is held besides them."""
        apart = given - self.centre
        value, slope, curve = 0.5 * float(self.pull @ apart**2), self.pull * apart, np.diag(self.pull)
        step = max(1, AT_ONCE // (self.classes * len(given)))
        for first in range(0, self.rows, step):
            own = self._of(given, slice(first, first + step))
            value, slope, curve = value + own[0], slope + own[1], curve + own[2]
        return value, slope, curve

    def _of(self, given: np.ndarray, rows: slice) -> tuple[float, np.ndarray, np.ndarray]:
        """The same of some rows, without the penalty."""
        apart, heavy, unknowns = self.apart[rows], self.heavy[rows], len(given)
        biases = np.broadcast_to(np.eye(self.classes), (len(apart), self.classes, self.classes))
        features = np.concatenate([apart, biases], axis=2)  # (rows x classes x unknowns)
        share = self.doubt / max(self.classes - 1, 1)
        told = (1.0 - self.doubt - share) * features[np.arange(len(apart)), self.labels[rows]]
        told = told + share * features.sum(axis=1)
        flat = features.reshape(-1, unknowns)
        shares, evidence = softmax_rows((flat @ given).reshape(-1, self.classes))
        mass = (shares * heavy[:, None]).ravel()
        means = (flat * shares.ravel()[:, None]).reshape(-1, self.classes, unknowns).sum(axis=1)
        curve = (flat * mass[:, None]).T @ flat - (means * heavy[:, None]).T @ means
        return float(heavy @ (evidence - told @ given)), heavy @ (means - told), curve

    def step(self, at: np.ndarray, slope: np.ndarray, curve: np.ndarray) -> np.ndarray:
        """Newton's step of the unknowns that are not held at a bound."""
        held = ((at <= self.low) & (slope > 0)) | ((at >= self.high) & (slope < 0))
        free = np.flatnonzero(~held)
        found = np.zeros_like(at)
        found[free] = -np.linalg.solve(curve[np.ix_(free, free)], slope[free])
        return found

    def within(self, at: np.ndarray) -> np.ndarray:
        return np.asarray(np.clip(at, self.low, self.high))
