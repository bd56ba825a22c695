"""Steps after gaps: what a chain says of them, whatever the missing steps were."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount.chains.context_counts import GAP
from softcount.chains.predictions import Predictions
from softcount.errors import DataError

MOST_PATHS = 1 << 20
"""Contexts kept apart at a time, times what may follow."""

Context = tuple[int, ...]


class GapPaths:
    """The contexts that may be there, each as likely as the known steps make it, while gaps are gone through."""

    def __init__(self, predictions: Predictions, context: Sequence[int]) -> None:
        self.predictions, self.order = predictions, predictions.order
        self.weights: dict[Context, float] = {self._last(tuple(context)): 1.0}
        self.log_probability = 0.0
        self._known: dict[Context, np.ndarray] = {}

    def _last(self, context: Context) -> Context:
        return context[len(context) - min(len(context), self.order) :]

    def after(self, context: Context) -> np.ndarray:
        """What comes after one context."""
        if context not in self._known:
            self._known[context] = self.predictions.after(context)
        return self._known[context]

    def next(self) -> np.ndarray:
        """The probability of everything that may come next."""
        found: np.ndarray = sum(weight * self.after(context) for context, weight in self.weights.items())  # type: ignore[assignment]
        return found

    def go(self, digit: int) -> None:
        """One step further, known or missing; a missing one is a symbol, never the end."""
        alphabet = self.predictions.alphabet
        if digit == GAP and len(self.weights) * alphabet.symbols > MOST_PATHS:
            raise DataError(
                f"there are more than {MOST_PATHS:,} ways to fill the gaps of a sequence, which is too many at order "
                f"{self.order}. Part the sequence at its gaps, or choose a smaller order."
            )
        moved: dict[Context, float] = {}
        for context, weight in self.weights.items():
            chances = self.after(context)
            for step in range(1, alphabet.symbols + 1) if digit == GAP else (digit,):
                chance = weight * float(chances[step - 1])
                if chance > 0:
                    to = self._last((*context, step))
                    moved[to] = moved.get(to, 0.0) + chance
        total = sum(moved.values())
        with np.errstate(divide="ignore"):
            self.log_probability += float(np.log(total))
        self.weights = {context: weight / total for context, weight in moved.items()} if total > 0 else self.weights


def gap_log_probability(predictions: Predictions, digits: np.ndarray, first: int, last: int, start: int) -> float:
    """The log-probability of digits `first` to `last` of a sequence that starts at `start`, all before being known."""
    context = digits[max(start, first - predictions.order) : first].tolist()
    paths = GapPaths(predictions, context)
    for digit in digits[first:last].tolist():
        paths.go(digit)
    return paths.log_probability
