"""What comes after a context, from its own counts and from what the contexts shorter than it predict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount.chains.context_counts import GAP, Alphabet, ContextCounts, ContextLevel, StepKeys
from softcount.records import dataclass


@dataclass(frozen=True, eq=False)
class ContextShares:
    """Contexts of one length: the share of each symbol in their own counts, and the `rest`, which others divide.

    Keys `firsts[i]` to `firsts[i + 1]` are those of `contexts[i]`, whose shares and rest sum to one.
    """

    keys: np.ndarray
    shares: np.ndarray
    contexts: np.ndarray
    firsts: np.ndarray
    rest: np.ndarray

    @classmethod
    def of(cls, level: ContextLevel, base: int, taken: np.ndarray, strength: float) -> ContextShares:
        """Each count less what is taken from it, beside the strength and all that was taken from its context."""
        contexts, firsts = np.unique(level.keys // base, return_index=True)
        ends = np.append(firsts, len(level.keys))
        kept = level.counts - taken
        own, left = (np.add.reduceat(part, firsts) if len(firsts) else np.zeros(0) for part in (kept, taken))
        given = strength + left
        total = own + given
        known = total > 0
        total = np.where(known, total, 1.0)
        shares = kept / np.repeat(total, np.diff(ends))
        return cls(level.keys, shares, contexts, ends, np.where(known, given / total, 1.0))

    def looked_up(self, keys: np.ndarray, base: int) -> tuple[np.ndarray, np.ndarray]:
        """The share of each key's symbol after its context, and the rest of the context, NaN for one never met."""
        return _looked_up(self.keys, self.shares, keys, 0.0), _looked_up(self.contexts, self.rest, keys // base, np.nan)

    def after(self, context: int, base: int, others: np.ndarray) -> np.ndarray | None:
        """The probability of every symbol after a context, others dividing the rest; None for a context never met."""
        at = int(np.searchsorted(self.contexts, context))
        if at == len(self.contexts) or self.contexts[at] != context:
            return None
        here = slice(self.firsts[at], self.firsts[at + 1])
        out = np.asarray(others * self.rest[at])
        out[self.keys[here] % base - 1] += self.shares[here]
        return out


def _looked_up(known: np.ndarray, values: np.ndarray, keys: np.ndarray, default: float) -> np.ndarray:
    if not len(known):
        return np.full(len(keys), default)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[at] == keys, values[at], default)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Probabilities of what comes next: `levels[j]` has contexts of j steps, the `measure` is what no context knows.

    Where contexts are `alone`, each divides its rest by the measure; else by what the shorter context predicts. A
    context never met predicts as the next shorter one.

    >>> from softcount.chains.context_counts import count_contexts
    >>> pair = Alphabet(2)
    >>> counts = count_contexts(np.array([1, 2, 2, 1, 2]), np.array([0, 5]), pair, 1)
    >>> flat_predictions(counts.levels, pair, np.ones(2)).after([1]).tolist()
    [0.25, 0.75]
    """

    alphabet: Alphabet
    levels: tuple[ContextShares, ...]
    measure: np.ndarray
    alone: bool

    @property
    def order(self) -> int:
        return len(self.levels) - 1

    def of_steps(self, steps: StepKeys) -> np.ndarray:
        """The probability of each step, given what is known before it."""
        nothing = np.asarray(self.measure[steps.keys[0] - 1])
        found = nothing.copy()
        for back, level in enumerate(self.levels[: len(steps.keys)]):
            has = np.flatnonzero(steps.known >= back)
            share, rest = level.looked_up(steps.keys[back][has], self.alphabet.base)
            met = ~np.isnan(rest)
            has, share, rest = has[met], share[met], rest[met]
            found[has] = share + rest * (nothing if self.alone else found)[has]
        return found

    def log_probability(self, counts: ContextCounts) -> float:
        """The log-probability of all steps that were counted, each looked at once however often it came."""
        base, found = self.alphabet.base, 0.0
        for back in range(counts.order + 1):
            level = counts.starting(back)
            keys = [level.keys % base ** (length + 1) for length in range(back + 1)]
            steps = StepKeys(keys, np.full(len(level.keys), back), np.arange(len(level.keys)))
            with np.errstate(divide="ignore"):
                found += float(level.counts @ np.log(self.of_steps(steps)))
        return found

    def after(self, context: Sequence[int]) -> np.ndarray:
        """The probability of every symbol after these digits, the last of them being the step before."""
        base, found, key = self.alphabet.base, self.measure.copy(), 0
        for back, level in enumerate(self.levels):
            if back:
                if back > len(context) or context[-back] == GAP:
                    break
                key += int(context[-back]) * base ** (back - 1)
            own = level.after(key, base, self.measure if self.alone else found)
            found = found if own is None else own
        return found


def flat_predictions(levels: Sequence[ContextLevel], alphabet: Alphabet, alpha: np.ndarray) -> Predictions:
    """From `alpha` imagined steps to each symbol after every context; where none are, shares are those counted."""
    imagined = float(alpha.sum())
    measure = alpha / imagined if imagined > 0 else np.full(len(alpha), 1.0 / len(alpha))
    shares = tuple(ContextShares.of(level, alphabet.base, np.zeros(len(level.keys)), imagined) for level in levels)
    return Predictions(alphabet, shares, measure, imagined > 0)
