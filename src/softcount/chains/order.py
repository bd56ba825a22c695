"""Choose the order of a Markov chain by marginal likelihood, or a tree of contexts of different lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from scipy.optimize import minimize_scalar

from softcount.chains.counts import Alphabet, ContextCounts, ContextLevel, StepKeys, back_off, count_contexts, steps_of
from softcount.core.lazy import gammaln

BLOCKS = 6
"""Number of blocks of steps. Each block is predicted from all earlier ones and is as long as they are together."""
FEW_SEQUENCES = 64
"""With at least this many sequences, blocks consist of whole sequences."""
PATIENCE = 2
"""The search stops after this many orders in a row with a lower marginal likelihood than the best."""
LONGEST = 12
"""Longest order that is tried."""

Prior = Callable[[ContextCounts], np.ndarray]
"""Returns the prior counts of every predicted symbol, the same after every context."""


def best_alpha(counts: ContextCounts) -> float:
    size = counts.alphabet.predicted

    def loss(log: float) -> float:
        return -flat_evidence(counts, np.full(size, np.exp(log)))

    found = minimize_scalar(loss, bounds=(np.log(1e-6), np.log(1e4)), method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x))


def best_order(
    codes: np.ndarray,
    starts: np.ndarray,
    weights: np.ndarray | None,
    alphabet: Alphabet,
    longest: int,
    prior: Prior | None,
) -> tuple[int, dict[int, float]]:
    """Return the order with the largest evidence, and the log-evidence of each order that was tried.

    With a prior, the evidence is the marginal likelihood. Without one, it is how well Kneser-Ney predicts each block of
    steps from the blocks before it.
    """
    evidence: Callable[[int], float]
    if prior is None:
        evidence = StepBlocks.of(codes, starts, alphabet, longest, weights).evidence
    else:
        whole = count_contexts(codes, starts, alphabet, longest, weights)
        evidence = lambda order: flat_evidence(  # noqa: E731
            whole.shorten(order), np.maximum(prior(whole.shorten(order)), 1e-300)
        )
    found: dict[int, float] = {}
    for order in range(min(longest, LONGEST) + 1):
        found[order] = evidence(order)
        best = max(found, key=lambda tried: found[tried])
        if order - best >= PATIENCE:
            break
    return best, found


class StepBlocks(Struct, frozen=True, eq=False):
    """Steps with their keys for every length up to the longest, their weights and their blocks."""

    alphabet: Alphabet
    steps: StepKeys
    weights: np.ndarray | None
    blocks: np.ndarray
    held: dict[int, tuple[list[ContextLevel], list[ContextLevel]]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, codes: np.ndarray, starts: np.ndarray, alphabet: Alphabet, order: int, weights: np.ndarray | None
    ) -> StepBlocks:
        """Assign whole sequences to blocks by a hash of their numbers, or runs of steps if there are few sequences."""
        steps = steps_of(codes, starts, alphabet, order)
        each = None if weights is None else weights[steps.sequence]
        sequences = len(starts) - 1
        if sequences >= FEW_SEQUENCES:
            mixed = np.arange(sequences, dtype=np.uint64) * np.uint64(11400714819323198485)
            place = np.argsort(np.argsort(mixed, kind="stable"), kind="stable") / sequences
            share = place[steps.sequence]
        else:
            share = np.arange(len(steps.rows)) / max(1, len(steps.rows))
        edges = 2.0 ** -np.arange(BLOCKS - 1, 0, -1)
        return cls(alphabet, steps, each, np.searchsorted(edges, share, "right"))

    def levels(self, back: int) -> tuple[list[ContextLevel], list[ContextLevel]]:
        """Count one length of context: in each block, and in all blocks before each block but the first."""
        if back not in self.held:
            own = []
            for block in range(BLOCKS):
                here = np.flatnonzero((self.steps.known >= back) & (self.blocks == block))
                weights = None if self.weights is None else self.weights[here]
                own.append(ContextLevel.of(self.steps.keys[back][here], weights, self.alphabet.base ** (back + 1)))
            self.held[back] = own, list(accumulate(own[:-1], ContextLevel.plus))
        return self.held[back]

    def evidence(self, order: int) -> float:
        """Return the log-probability of every block but the first, each predicted by Kneser-Ney from those before."""
        found, levels = 0.0, [self.levels(back) for back in range(order + 1)]
        for block in range(1, BLOCKS):
            own = ContextCounts(self.alphabet, tuple(alone[block] for alone, _ in levels))
            before = ContextCounts(self.alphabet, tuple(earlier[block - 1] for _, earlier in levels))
            if before.steps and own.steps:
                found += back_off(before).log_probability(own)
        return found


def flat_evidence(counts: ContextCounts, alpha: np.ndarray) -> float:
    """Return the exact log-probability of all steps, with `alpha` prior counts in each context.

    Steps at the start or after a gap, whose contexts are shorter, have separate tables.
    """
    return sum(
        float(_table_evidence(counts.starting(back), counts.alphabet.base, alpha)[1].sum())
        for back in range(counts.order + 1)
    )


def _table_evidence(level: ContextLevel, base: int, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the contexts, and the log-probability of the steps after each."""
    contexts, firsts = np.unique(level.keys // base, return_index=True)
    if not len(firsts):
        return contexts, np.zeros(0)
    own = alpha[level.keys % base - 1]
    totals = np.add.reduceat(level.counts, firsts)
    gained = np.add.reduceat(gammaln(own + level.counts) - gammaln(own), firsts)
    return contexts, gained - gammaln(alpha.sum() + totals) + gammaln(alpha.sum())


def context_tree(counts: ContextCounts, alpha: np.ndarray) -> ContextCounts:
    """Keep only the contexts of the context tree with the largest evidence.

    Splitting a context or not has prior probability 1/2. Bottom up, each context takes the better of two options: one
    table for its own steps, or the tables of all contexts one step longer.
    """
    base, order = counts.alphabet.base, counts.order
    below_contexts, below = np.zeros(0, dtype=np.int64), np.zeros(0)
    splits: list[np.ndarray] = []
    for back in range(order, -1, -1):
        contexts, own = _table_evidence(counts.levels[back], base, alpha)
        if back < order:
            parted = np.zeros(len(contexts))
            np.add.at(parted, np.searchsorted(contexts, below_contexts % base**back), below)
            ending, rest = _table_evidence(counts.starting(back), base, alpha)
            parted[np.searchsorted(contexts, ending)] += rest
            splits.insert(0, contexts[parted > own])
            own = np.maximum(own, parted) - np.log(2)
        below_contexts, below = contexts, own
    return replace(counts, levels=tuple(_kept_levels(counts, splits)))


def _kept_levels(counts: ContextCounts, splits: list[np.ndarray]) -> Iterator[ContextLevel]:
    """Yield the levels as far as contexts are split; the empty context is always kept."""
    base, kept = counts.alphabet.base, np.zeros(1, dtype=np.int64)
    for back, level in enumerate(counts.levels):
        contexts = level.keys // base
        if back:
            parents = kept[np.isin(kept, splits[back - 1])]
            here = np.isin(contexts % base ** (back - 1), parents)
            if not here.any():
                return
            level = ContextLevel(level.keys[here], level.counts[here])
            kept = np.unique(contexts[here])
        yield level
