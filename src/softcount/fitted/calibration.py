"""Calibration of class probabilities: temperatures, isotonic curves, and reliability in bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, get_args

import numpy as np
from msgspec import Struct

from softcount.core.ranges import Amount, Floats, NotNegative, Positive, Share
from softcount.core.special import log_of

Method = Literal["temperature", "isotonic"]
METHODS = get_args(Method)
BINS = 10
FARTHEST = 1e30
"""Log-odds are clipped to this absolute value."""


class Bin(Struct, frozen=True):
    """Predictions with a probability in one interval.

    Attributes
    ----------
    low, high : float
        Ends of the interval.
    rows : float
        Weight of the predictions.
    stated : float
        Their mean probability.
    right : float
        Share of correct ones.
    """

    low: Share
    high: Share
    rows: Positive
    stated: Share
    right: Share


def bin_sums(stated: np.ndarray, right: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return (bins x 3) sums: weight, weight times stated probability, and weight of correct predictions.

    The sums of parts of a table can be added.
    """
    place = np.minimum((stated * BINS).astype(np.int64), BINS - 1)
    terms = (weights, weights * stated, weights * right)
    return np.stack([np.bincount(place, term, minlength=BINS) for term in terms], axis=1)


def bins_of(sums: np.ndarray) -> tuple[Bin, ...]:
    """Return the bins that are not empty.

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
    """Return the mean absolute difference between stated probability and share correct (expected calibration error)."""
    return sum(b.rows * abs(b.stated - b.right) for b in bins) / sum(b.rows for b in bins)


def find_overstated(bins: Sequence[Bin]) -> Bin | None:
    """Return the bin that overstates most, if the predictions overall overstate by at least two percentage points.

    Return None also if chance could explain the excess: it must exceed three standard deviations of the number correct.
    """
    total = sum(b.rows for b in bins)
    excess = sum(b.rows * (b.stated - b.right) for b in bins)
    chance = sum(b.rows * b.stated * (1.0 - b.stated) for b in bins) ** 0.5
    if not excess > max(0.02 * total, 3.0 * chance):
        return None
    return max(bins, key=lambda b: b.rows * (b.stated - b.right))


class Curve(Struct, frozen=True, eq=False):
    """A piecewise linear probability that increases with the log-odds and is constant beyond its ends."""

    odds: Annotated[np.ndarray, Floats()]
    share: Annotated[np.ndarray, Floats(("odds",), positive=True)]

    def __post_init__(self) -> None:
        rising = len(self.odds) > 0 and (np.diff(self.odds) > 0).all() and (np.diff(self.share) >= 0).all()
        if not rising or self.share[-1] >= 1:
            raise ValueError("a curve does not rise from point to point")

    def __call__(self, odds: np.ndarray) -> np.ndarray:
        return np.asarray(np.interp(np.clip(odds, -FARTHEST, FARTHEST), self.odds, self.share))


class Calibration(Struct, frozen=True, eq=False):
    """A correction of a model's probabilities, and its effect on rows that neither of the two has seen.

    Attributes
    ----------
    method : {'temperature', 'isotonic'}
        Form of the correction.
    rows : int
        Number of the rows.
    log_loss_before, log_loss_after : float
        Log-loss without and with the correction.
    before, after : tuple of Bin
        Reliability without and with it.
    temperature : float or None
        Divisor of the log joint probabilities. Above 1 the model becomes less certain.
    curves : tuple of Curve
        A curve for each class against all others, or a single one for the second of two classes.
    """

    method: Method
    rows: Amount
    log_loss_before: NotNegative
    log_loss_after: NotNegative
    before: tuple[Bin, ...]
    after: tuple[Bin, ...]
    temperature: Positive | None = None
    curves: tuple[Curve, ...] = ()

    def __post_init__(self) -> None:
        if (self.temperature is None) != bool(self.curves) or not self.rows:
            raise ValueError("it has neither a temperature nor curves, or both, or no rows")

    def proba(self, joint: np.ndarray) -> np.ndarray:
        if self.temperature is not None:
            return np.asarray(np.exp(soften_log_proba(joint, self.temperature)))
        return apply_curves(joint, self.curves)

    def log_proba(self, joint: np.ndarray) -> np.ndarray:
        """Return log-probabilities; at a temperature they stay exact if a probability underflows."""
        if self.temperature is not None:
            return soften_log_proba(joint, self.temperature)
        return np.asarray(np.log(apply_curves(joint, self.curves)))


def soften_log_proba(joint: np.ndarray, temperature: float) -> np.ndarray:
    """Return log-probabilities at a temperature, from the log of share times density."""
    peaks = joint.max(axis=1, keepdims=True)
    # Subtract the best class before dividing by the temperature: this keeps the digits of near ties.
    logs = (joint - np.where(np.isfinite(peaks), peaks, 0.0)) / temperature
    total = log_of(np.exp(logs).sum(axis=1, keepdims=True))
    return logs - np.where(np.isfinite(total), total, 0.0)


def apply_curves(joint: np.ndarray, curves: Sequence[Curve]) -> np.ndarray:
    """Return probabilities from the curves of the classes, normalised to sum to 1."""
    odds = log_odds(joint)
    if len(curves) == 1:
        second = curves[0](odds[:, 1])
        return np.stack([1.0 - second, second], axis=1)
    shares = np.stack([curve(odds[:, k]) for k, curve in enumerate(curves)], axis=1)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def log_odds(joint: np.ndarray) -> np.ndarray:
    """Return (rows x groups) log-odds of each group against all others together.

    The leading group is compared with a sum that leaves it out, because its own probability would round to 1.

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
