"""One weight for each part of a sum of scores, the same for all classes, by conditional likelihood."""

from __future__ import annotations

import numpy as np

from softcount.numerics.logspace import softmax_rows
from softcount.records import dataclass

LARGEST = 3.0
"""A weight is between nothing and this."""
MOST_TEMPERED = 20
"""Newton steps of one weight for all; a few are usual."""
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
    return Weighing.of(parts, labels, heavy, centre, penalty, doubt).lowest()


def temper(logs: np.ndarray, labels: np.ndarray, heavy: np.ndarray, prior: np.ndarray | float = 0.0) -> float:
    """The one weight of (rows x classes) log-posteriors under which the rows' classes are likeliest.

    By Newton's steps from 1, each at most to the double or the half. `prior` is added without a weight.

    >>> sure = np.log(np.array([[0.99, 0.01]] * 4))
    >>> round(temper(sure, np.array([0, 0, 0, 1]), np.ones(4)), 3)  # three in four are log(3) / log(99) as sure
    0.239
    """
    own, share = heavy @ logs[np.arange(len(labels)), labels], 1.0
    for _ in range(MOST_TEMPERED):
        shares = softmax_rows(prior + share * logs)[0]
        means = np.vecdot(shares, logs)
        slope = float(heavy @ means - own)
        curve = float(heavy @ (np.vecdot(shares, logs * logs) - means**2))
        last, share = share, min(max(share - slope / max(curve, 1e-300), share / 2.0), share * 2.0, LARGEST)
        if abs(share - last) < 1e-3 * last:
            break
    return share


MOST_STEPS = 50
"""Newton steps; seven are usual."""
ENOUGH = 1e-7
"""Share of the loss that a step must gain for another to follow: digits double with every step near the optimum."""


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """The penalised loss of weights and biases, its slope and curvature, and Newton's step within the bounds.

    `features` are (rows x columns x parts): of two classes the second against the first, of more all of them. The
    unknowns are the weights of the parts, and then the biases of the classes.
    """

    features: np.ndarray
    heavy: np.ndarray
    told: np.ndarray  # the unknowns' factors in what the rows say of their classes
    centre: np.ndarray
    pull: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(
        cls,
        parts: np.ndarray,
        labels: np.ndarray,
        heavy: np.ndarray,
        centre: np.ndarray,
        penalty: float,
        doubt: float,
    ) -> Weighing:
        rows, number, classes = parts.shape
        if classes == 2:
            features = (parts[:, :, 1] - parts[:, :, 0])[:, None]
            believed = np.where(labels == 1, 1.0 - doubt, doubt)[:, None] * heavy[:, None]
            biases = np.array([-1.0, 1.0]) * believed.sum()
        else:
            features = np.ascontiguousarray((parts - parts.mean(axis=2, keepdims=True)).transpose(0, 2, 1))
            believed = np.full((rows, classes), doubt / max(classes - 1, 1))
            believed[np.arange(rows), labels] = 1.0 - doubt
            believed *= heavy[:, None]
            biases = believed.sum(axis=0)
        return cls(
            features, heavy, np.concatenate([believed.reshape(-1) @ features.reshape(-1, number), biases]),
            np.concatenate([centre, np.zeros(classes)]),
            np.concatenate([np.full(number, penalty), np.ones(classes)]),
            np.concatenate([np.zeros(number), np.full(classes, -np.inf)]),
            np.concatenate([np.full(number, LARGEST), np.full(classes, np.inf)]),
        )  # fmt: skip

    def lowest(self, start: SharedWeights | None = None) -> SharedWeights:
        """Where the loss is least, by Newton's steps from a start or from the centre."""
        number = self.features.shape[2]
        at = self.within(self.centre) if start is None else np.concatenate([start.weights, start.bias])
        value, slope, curve = self.at(at)
        for _ in range(MOST_STEPS):
            step = self.step(at, slope, curve)
            share = 1.0
            while share > 1e-6:
                ahead = self.within(at + share * step)
                found = self.at(ahead)
                if found[0] < value:
                    break
                share /= 2.0
            else:
                break
            gained, at = value - found[0], ahead
            value, slope, curve = found
            if gained < ENOUGH * (1.0 + abs(value)):
                break
        return SharedWeights(at[:number], at[number:])

    def at(self, given: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Loss, slope and curvature; rows are gone through in blocks, so that little is held besides them."""
        apart = given - self.centre
        value, slope = 0.5 * float(self.pull @ apart**2), self.pull * apart
        value, slope, curve = value - float(self.told @ given), slope - self.told, np.diag(self.pull)
        work = self._of_two if self.features.shape[1] == 1 else self._of_several
        step = max(1, AT_ONCE // self.features[0].size)
        for first in range(0, len(self.features), step):
            own = work(given, slice(first, first + step))
            value, slope, curve = value + own[0], slope + own[1], curve + own[2]
        return value, slope, curve

    def _of_two(self, given: np.ndarray, rows: slice) -> tuple[float, np.ndarray, np.ndarray]:
        """What some rows cost before it is known which class they are of, and its slope and curvature."""
        parts, heavy = self.features[rows, 0], self.heavy[rows]
        features = np.hstack([parts, np.tile([-1.0, 1.0], (len(parts), 1))])
        odds = features @ given
        small = np.exp(-np.abs(odds))
        cost = np.log1p(small) + np.maximum(odds, 0.0)
        share = np.where(odds >= 0, 1.0, small) / (1.0 + small)
        curve = (features * (heavy * small / (1.0 + small) ** 2)[:, None]).T @ features
        return float(heavy @ cost), (heavy * share) @ features, curve

    def _of_several(self, given: np.ndarray, rows: slice) -> tuple[float, np.ndarray, np.ndarray]:
        """Loss, slope and curvature of some rows, for more than two classes; a bias of one class needs no feature."""
        features, heavy = self.features[rows], self.heavy[rows]
        number = features.shape[2]
        shares, evidence = softmax_rows(features @ given[:number] + given[number:])
        means, heavily = (shares[:, None] @ features)[:, 0], shares * heavy[:, None]
        flat, curve = features.reshape(-1, number), np.empty((len(given), len(given)))
        curve[:number, :number] = (flat * heavily.reshape(-1, 1)).T @ flat - (means * heavy[:, None]).T @ means
        curve[:number, number:] = np.einsum("rkp,rk->pk", features, heavily, optimize=True) - means.T @ heavily
        curve[number:, :number] = curve[:number, number:].T
        curve[number:, number:] = np.diag(heavily.sum(axis=0)) - heavily.T @ shares
        return float(heavy @ evidence), np.concatenate([heavy @ means, heavily.sum(axis=0)]), curve

    def step(self, at: np.ndarray, slope: np.ndarray, curve: np.ndarray) -> np.ndarray:
        """Newton's step of the unknowns that are not held at a bound."""
        held = ((at <= self.low) & (slope > 0)) | ((at >= self.high) & (slope < 0))
        free = np.flatnonzero(~held)
        found = np.zeros_like(at)
        found[free] = -np.linalg.solve(curve[free[:, None], free], slope[free])
        return found

    def within(self, at: np.ndarray) -> np.ndarray:
        return np.asarray(np.minimum(np.maximum(at, self.low), self.high))
