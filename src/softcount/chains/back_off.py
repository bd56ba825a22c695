"""Contexts that leave a part of their counts to what the next shorter context predicts: Kneser and Ney's way.

A shorter context counts how many longer ones a symbol followed, not how often. Discounts come from how many counts are
1, 2, 3 and 4 (Chen and Goodman). Where there are too few such counts to tell, as with two symbols in a long sequence,
a discount and a strength come from the evidence of a Pitman-Yor process with one table for each symbol.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from softcount.chains.context_counts import ContextCounts, ContextLevel
from softcount.chains.predictions import ContextShares, Predictions
from softcount.numerics.late_scipy import gammaln
from softcount.records import dataclass

LEAST_DISCOUNT, MOST_DISCOUNT = 1e-6, 0.995
LEAST_STRENGTH, MOST_STRENGTH = 1e-3, 1e6
STARTS = ((0.5, 1.0), (0.02, 5.0))
"""Where the best discount and strength are looked for first."""
LARGEST = 3
"""Counts from here on have one discount."""


@dataclass(frozen=True)
class LevelDiscounts:
    """What is taken from counts of 1, of 2, and of 3 or more, and the strength of what is imagined besides."""

    discounts: tuple[float, float, float]
    strength: float = 0.0

    def of(self, counts: np.ndarray) -> np.ndarray:
        """The discount of each count, never more than there is."""
        place = np.clip(np.rint(counts), 1, LARGEST).astype(np.int64) - 1
        return np.asarray(np.minimum(np.array(self.discounts)[place], counts))


def back_off(counts: ContextCounts) -> Predictions:
    """What every context predicts, discounts and strengths settled for every length by itself."""
    alphabet = counts.alphabet
    shares = []
    for level in shared_levels(counts):
        found = level_discounts(level, alphabet.base)
        shares.append(ContextShares.of(level, alphabet.base, found.of(level.counts), found.strength))
    measure = np.full(alphabet.predicted, 1.0 / alphabet.predicted)
    return Predictions(alphabet, tuple(shares), measure, False)


def shared_levels(counts: ContextCounts) -> list[ContextLevel]:
    """What each length of context counts: the longest its steps, the others one for each longer context, and starts."""
    levels = [counts.levels[-1]]
    for back in range(counts.order - 1, -1, -1):
        _, kinds = levels[0].without_oldest(counts.alphabet.base, back + 1)
        levels.insert(0, kinds.plus(counts.starting(back)))
    return levels


def level_discounts(level: ContextLevel, base: int) -> LevelDiscounts:
    """From the numbers of counts of 1 to 4; from the evidence where there is no 1 or no 2."""
    ones, twos, threes, fours = (int(np.count_nonzero(np.rint(level.counts) == size)) for size in (1, 2, 3, 4))
    if not ones or not twos:
        return best_discount(level, base)
    share = ones / (ones + 2 * twos)
    if not threes or not fours:
        return LevelDiscounts((share, share, share))
    raw = (1 - 2 * share * twos / ones, 2 - 3 * share * threes / twos, 3 - 4 * share * fours / threes)
    # Without a floor a context of large counts alone would leave nothing to a symbol it was never followed by.
    first, second, third = (float(np.clip(d, share / 10, size - 0.01)) for size, d in enumerate(raw, start=1))
    return LevelDiscounts((first, second, third))


class LevelEvidence:
    """The logarithm of the evidence of one length of context, as a function of discount and strength.

    Equal counts give equal terms, so each distinct one is looked at once, with how often it occurs.
    """

    def __init__(self, level: ContextLevel, base: int) -> None:
        counts = np.maximum(level.counts, 1.0)
        _, firsts = np.unique(level.keys // base, return_index=True)
        totals = np.add.reduceat(counts, firsts) if len(firsts) else np.zeros(0)
        kinds = np.diff(np.append(firsts, len(counts)))
        self.counts, self.times = np.unique(counts, return_counts=True)
        self.totals, self.total_times = np.unique(totals, return_counts=True)
        self.kinds, self.kind_times = np.unique(kinds, return_counts=True)

    def __call__(self, discount: float, strength: float) -> float:
        ratio = strength / discount
        tables = (self.kinds - 1) * np.log(discount) + gammaln(ratio + self.kinds) - gammaln(ratio + 1)
        seats = gammaln(strength + self.totals) - gammaln(strength + 1)
        inside = gammaln(self.counts - discount) - gammaln(1 - discount)
        return float(self.kind_times @ tables - self.total_times @ seats + self.times @ inside)


def best_discount(level: ContextLevel, base: int) -> LevelDiscounts:
    """The discount and strength under which the counts of one length of context are most probable."""
    evidence = LevelEvidence(level, base)
    low = np.array([_logit(LEAST_DISCOUNT), np.log(LEAST_STRENGTH)])
    high = np.array([_logit(MOST_DISCOUNT), np.log(MOST_STRENGTH)])

    def loss(point: np.ndarray) -> float:
        return -evidence(*_read(np.clip(point, low, high)))

    ends = []
    for discount, strength in STARTS:
        start = np.array([_logit(discount), np.log(strength)])
        found = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-7, "maxiter": 300})
        ends.append((float(found.fun), np.clip(found.x, low, high)))
    discount, strength = _read(min(ends, key=lambda end: end[0])[1])
    return LevelDiscounts((discount, discount, discount), strength)


def _logit(share: float) -> float:
    return float(np.log(share) - np.log1p(-share))


def _read(point: np.ndarray) -> tuple[float, float]:
    return float(1 / (1 + np.exp(-point[0]))), float(np.exp(point[1]))
