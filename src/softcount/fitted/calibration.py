"""Probabilities made to mean what they say: a temperature, or a rising curve for every class.

Naive Bayes counts columns that say the same thing twice, so the classes it prefers are stated too surely. How much too
surely is seen on rows held out, and undone here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount.records import dataclass

METHODS = ("temperature", "isotonic")
BINS = 10
FARTHEST = 1e30
"""Log-odds beyond this are as sure as can be."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Predictions stated with a probability from `low` to `high`: their weight, mean probability and share right."""

    low: float
    high: float
    rows: float
    stated: float
    right: float


def bin_sums(stated: np.ndarray, right: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(bins x 3) weight, weight times stated probability, weight of what was right; sums of parts of a table add."""
    place = np.minimum((stated * BINS).astype(np.int64), BINS - 1)
    terms = (weights, weights * stated, weights * right)
    return np.stack([np.bincount(place, term, minlength=BINS) for term in terms], axis=1)


def bins_of(sums: np.ndarray) -> tuple[Bin, ...]:
    """The bins that hold anything.

    >>> sums = bin_sums(np.array([0.95, 0.97, 0.55]), np.array([1, 0, 1]), np.ones(3))
    >>> [(b.low, b.rows, round(b.stated, 2), b.right) for b in bins_of(sums)]
    [(0.5, 1.0, 0.55, 1.0), (0.9, 2.0, 0.96, 0.5)]
    """
    return tuple(
        Bin(k / BINS, (k + 1) / BINS, float(rows), float(stated / rows), float(right / rows))
        for k, (rows, stated, right) in enumerate(sums)
        if rows > 0
    )


def calibration_error(bins: Sequence[Bin]) -> float:
    """How far the stated probability is from the share right, averaged over the rows."""
    return sum(b.rows * abs(b.stated - b.right) for b in bins) / sum(b.rows for b in bins)


def overstated(bins: Sequence[Bin]) -> Bin | None:
    """The bin that claims most too much, if all together claim at least two points more than they keep.

    None also where chance could do it: three standard deviations of how often stated probabilities come true.
    """
    total = sum(b.rows for b in bins)
    excess = sum(b.rows * (b.stated - b.right) for b in bins)
    chance = sum(b.rows * b.stated * (1.0 - b.stated) for b in bins) ** 0.5
    if not excess > max(0.02 * total, 3.0 * chance):
        return None
    return max(bins, key=lambda b: b.rows * (b.stated - b.right))


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A probability that rises with the log-odds: straight between its points, flat beyond them."""

    odds: np.ndarray
    share: np.ndarray

    def __call__(self, odds: np.ndarray) -> np.ndarray:
        return np.asarray(np.interp(np.clip(odds, -FARTHEST, FARTHEST), self.odds, self.share))


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """How a model's probabilities are corrected, and what that did on rows held out.

    `temperature` divides the log joint; above 1 it makes the model less sure. `curves` are one for each class, against
    all others, or a single one for the second of two. The log-losses are of rows that neither the model nor the
    correction had seen, each fold corrected by what the others showed; `before` and `after` are their reliability.
    """

    method: str
    rows: int
    log_loss_before: float
    log_loss_after: float
    before: tuple[Bin, ...]
    after: tuple[Bin, ...]
    temperature: float | None = None
    curves: tuple[Curve, ...] = ()

    def proba(self, joint: np.ndarray) -> np.ndarray:
        """(rows x groups) calibrated probabilities from the log of share times density."""
        if self.temperature is not None:
            return softened(joint, self.temperature)
        return curved(joint, self.curves)

    def log_proba(self, joint: np.ndarray) -> np.ndarray:
        """Their logarithms, exact where a probability is too small for a float."""
        if self.temperature is not None:
            return log_softened(joint, self.temperature)
        return np.asarray(np.log(curved(joint, self.curves)))


def softened(joint: np.ndarray, temperature: float) -> np.ndarray:
    """Each row's probabilities at this temperature."""
    return np.asarray(np.exp(log_softened(joint, temperature)))


def log_softened(joint: np.ndarray, temperature: float) -> np.ndarray:
    """Their logarithms, from the log of share times density."""
    peaks = joint.max(axis=1, keepdims=True)
    # The best class is taken off first: 1 / temperature of a difference keeps the digits of near ties.
    logs = (joint - np.where(np.isfinite(peaks), peaks, 0.0)) / temperature
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(logs).sum(axis=1, keepdims=True))
    return logs - np.where(np.isfinite(total), total, 0.0)


def curved(joint: np.ndarray, curves: Sequence[Curve]) -> np.ndarray:
    """Each row's probabilities by the curves of the classes, made to sum to one."""
    odds = log_odds(joint)
    if len(curves) == 1:
        second = curves[0](odds[:, 1])
        return np.stack([1.0 - second, second], axis=1)
    shares = np.stack([curve(odds[:, k]) for k, curve in enumerate(curves)], axis=1)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def log_odds(joint: np.ndarray) -> np.ndarray:
    """(rows x groups) log-odds of each group against all others together.

    The leading group is set against the others without itself: its probability would round to 1, and rows that are
    sure would all be alike.

    >>> log_odds(np.log([[0.4, 0.3, 0.3]])).round(4).tolist(), log_odds(np.array([[0.0, -900.0]])).tolist()
    ([[-0.4055, -0.8473, -0.8473]], [[900.0, -900.0]])
    """
    rows, top = np.arange(len(joint)), joint.argmax(axis=1)
    peak = joint[rows, top]
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = joint - peak[:, None]
        shares = np.exp(relative)
        odds: np.ndarray = relative - np.log(shares.sum(axis=1, keepdims=True) - shares)
        relative[rows, top] = -np.inf
        second = relative.max(axis=1, keepdims=True)
        rest = second[:, 0] + np.log(np.exp(relative - second).sum(axis=1))
    odds[rows, top] = np.where(np.isneginf(second[:, 0]), np.inf, -rest)
    return odds
