"""Models that were asked for the same rows: which is best, and which of the others are as good as far as rows tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from softcount.records import dataclass

ERRORS = 2.0
"""Standard errors within which a difference is a tie."""


@dataclass(frozen=True, slots=True)
class Behind:
    """How far one model is behind another, a row: the mean of what they differ by, and its standard error.

    The error is that of the rows at hand, each paired with itself: how far the mean would move with other rows held
    out, the models staying as they are.
    """

    mean: float
    error: float

    @property
    def is_tie(self) -> bool:
        """Whether the rows cannot tell the two apart.

        >>> Behind(0.01, 0.006).is_tie, Behind(0.01, 0.004).is_tie, Behind(0.0, 0.0).is_tie
        (True, False, True)
        """
        return self.mean <= ERRORS * self.error


def behind(losses: np.ndarray, best: np.ndarray) -> Behind:
    """How much more each row costs than under the best; a single row tells nothing of how sure that is.

    >>> behind(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]))
    Behind(mean=1.0, error=0.5773502691896258)
    """
    more = losses - best
    if len(more) < 2:
        return Behind(float(more.mean()), float("inf"))
    return Behind(float(more.mean()), float(more.std(ddof=1) / np.sqrt(len(more))))


def ranked(losses: Mapping[str, np.ndarray]) -> list[str]:
    """Names from the lowest mean loss up; of equals the one that was named first, which is the simpler."""
    return sorted(losses, key=lambda name: float(losses[name].mean()))


def verdict(losses: Mapping[str, np.ndarray], what: str) -> str:
    """Who is best, in words, and who ties with it; names come from the simplest on.

    >>> rows = np.arange(8.0)
    >>> print(verdict({"plain": rows + 1, "pairs": rows}, "log-loss"))
    by log-loss pairs is best, and no other is within two standard errors of it.
    >>> print(verdict({"plain": rows[::-1], "pairs": rows}, "log-loss"))
    by log-loss it is a tie between plain and pairs: within two standard errors of each other. plain is the simplest.
    """
    first = ranked(losses)[0]
    tied = [name for name in losses if name == first or behind(losses[name], losses[first]).is_tie]
    if len(losses) == 1:
        return f"by {what} there is only {first}."
    if len(tied) == 1:
        return f"by {what} {first} is best, and no other is within two standard errors of it."
    near = "each other" if len(tied) == 2 else f"{first}, whose mean is the best"
    return f"by {what} it is a tie between {joined_by_and(tied)}: within two standard errors of {near}. " + (
        f"{tied[0]} is the simplest."
    )


def joined_by_and(names: Sequence[str]) -> str:
    """Names in a row, the last after an "and".

    >>> joined_by_and(["a"]), joined_by_and(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
