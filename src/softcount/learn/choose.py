"""How many classes there are, where nobody said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softcount.models.fitted import Fitted

MOST_CLASSES = 20
PATIENCE = 2
"""Larger numbers tried in vain before the search ends."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A number of classes, and its Bayesian information criterion: smaller is better."""

    classes: int
    bic: float


def best_of(fit: Callable[[int], Fitted]) -> tuple[int, list[Trial]]:
    """The number of classes with the smallest BIC, and all that were tried: 1, 2, ... until two bring nothing."""
    trials = [Trial(1, bic(fit(1)))]
    chosen = trials[0]
    while len(trials) < min(chosen.classes + PATIENCE, MOST_CLASSES):
        classes = len(trials) + 1
        trials.append(Trial(classes, bic(fit(classes))))
        chosen = min(chosen, trials[-1], key=lambda trial: trial.bic)
    return chosen.classes, trials


def bic(fitted: Fitted) -> float:
    """Twice the misfit plus what the parameters cost."""
    return fitted.n_parameters * log(max(fitted.n_rows, 1.0)) - 2 * (fitted.log_likelihood or 0.0)
