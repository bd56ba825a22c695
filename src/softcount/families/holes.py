"""Rows of a joint table with some cells missing, shared out over the combinations they could be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from softcount.families.base import How
from softcount.families.categorical import estimated

STEPS = 500


@dataclass(frozen=True, slots=True)
class Shared:
    """Counts of whole combinations (groups x ...), counts of patterns with holes, and imagined counts."""

    whole: np.ndarray
    partial: np.ndarray
    alpha: np.ndarray
    how: How
    columns: int

    def shares(self) -> np.ndarray:
        """The best shares of the combinations, to convergence.

        Two steps and a leap: where the best share is nothing, it would still be near 1/200 after 200 plain steps.
        """
        flat = self.whole.reshape(self.whole.shape[0], -1)
        shares = estimated(flat, np.ones(flat.shape[-1]), "mean", "joint")
        for _ in range(STEPS):
            first = self.step(shares)
            second = self.step(first)
            ahead = self.step(leap(shares, first, second))
            better = self.height(ahead) > self.height(second)
            before, shares = shares, np.where(better[:, None], ahead, second)
            if np.abs(shares - before).max() < 1e-15:
                break
        return shares

    def step(self, shares: np.ndarray) -> np.ndarray:
        """Shares that count a partly missing row towards every combination it could be, by the shares before."""
        return estimated(self.filled(shares), self.alpha, self.how, "joint")

    def filled(self, shares: np.ndarray) -> np.ndarray:
        """Expected counts of every combination, in a row for each group."""
        table = shares.reshape(self.whole.shape)
        patterns, there = extended(table, self.columns), self.partial > 0
        ratio = np.divide(self.partial, patterns, out=np.zeros_like(self.partial), where=there)
        return (self.whole + table * spread_back(ratio, self.columns)).reshape(shares.shape)

    def height(self, shares: np.ndarray) -> np.ndarray:
        """Each group's log-likelihood and log-prior, which no step lowers."""
        patterns = extended(shares.reshape(self.whole.shape), self.columns)
        imagined = {"ml": 0.0 * self.alpha, "map": self.alpha - 1.0}.get(self.how, self.alpha)
        own = xlogy(self.whole.reshape(shares.shape) + imagined, shares)
        return own.sum(axis=1) + xlogy(self.partial, patterns).reshape(len(shares), -1).sum(axis=1)


def leap(start: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Where two steps point to, group by group; a share that would be nothing becomes a hundredth of what it was."""
    step, bend = first - start, second - 2 * first + start
    turn = np.sqrt((bend * bend).sum(axis=-1, keepdims=True))
    far = np.maximum(np.sqrt((step * step).sum(axis=-1, keepdims=True)) / np.where(turn > 0, turn, np.inf), 1.0)
    moved = start + 2 * far * step + far * far * bend
    inside = np.where(moved > 0, moved, 0.01 * second)
    return inside / inside.sum(axis=-1, keepdims=True)


def extended(table: np.ndarray, columns: int) -> np.ndarray:
    """The table with a 'missing' level first in each column, holding the sum over that column."""
    for axis in range(table.ndim - columns, table.ndim):
        table = np.concatenate([table.sum(axis=axis, keepdims=True), table], axis=axis)
    return table


def spread_back(ratio: np.ndarray, columns: int) -> np.ndarray:
    """For every full combination, the sum over the patterns it could stand behind."""
    for axis in range(ratio.ndim - columns, ratio.ndim):
        ratio = np.take(ratio, [0], axis) + np.take(ratio, range(1, ratio.shape[axis]), axis)
    return ratio
