"""Steps after gaps: what a chain says of them, whatever the missing steps were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from softcount.chains.context_counts import GAP
from softcount.chains.predictions import Predictions
from softcount.errors import DataError

MOST_PATHS = 1 << 20
"""Contexts kept apart at a time, times what may follow."""

Context = tuple[int, ...]


class GapPaths:
    """The contexts that may be there, each as likely as the known steps make it, while gaps are gone through."""

    def __init__(
        self, predictions: Predictions, context: Sequence[int], known: dict[Context, np.ndarray] | None = None
    ) -> None:
        self.predictions, self.order = predictions, predictions.order
        self.weights: dict[Context, float] = {self._last(tuple(context)): 1.0}
        self.log_probability = 0.0
        self._known = {} if known is None else known  # shared by all gaps, contexts are worked out once

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


def gap_log_probabilities(
    predictions: Predictions, digits: np.ndarray, starts: np.ndarray
) -> Iterator[tuple[int, float]]:
    """Where each gap begins, and the log-probability from there to where all is known again as far as the order looks.

    `starts` are where sequences start, and the number of digits last.
    """
    known: dict[Context, np.ndarray] = {}
    for first, last in windows(digits, starts, predictions.order):
        start = int(starts[np.searchsorted(starts, first, "right") - 1])
        context = digits[max(start, first - predictions.order) : first].tolist()
        paths = GapPaths(predictions, context, known)
        for digit in digits[first:last].tolist():
            paths.go(digit)
        yield first, paths.log_probability


def windows(digits: np.ndarray, starts: np.ndarray, order: int) -> list[tuple[int, int]]:
    """Runs of digits from a gap to where the order's steps since are known, or the sequence ends; starts all known."""
    gaps = np.flatnonzero(digits == GAP)
    ends = starts[np.searchsorted(starts, gaps, "right")]
    out: list[tuple[int, int]] = []
    for gap, end in zip(gaps.tolist(), ends.tolist(), strict=True):
        last = min(gap + 1 + order, end)
        if out and gap < out[-1][1]:  # in the same sequence, as no run goes beyond its end
            out[-1] = (out[-1][0], last)
        else:
            out.append((gap, last))
    return out
