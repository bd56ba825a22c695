"""The order of a Markov chain, missing steps, and its stationary distribution."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import gcd

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from scipy import linalg
from scipy.sparse.csgraph import breadth_first_order, connected_components

from softcount.chains.counts import GAP, Alphabet, ContextCounts, ContextLevel, Predictions, StepKeys, steps_of
from softcount.core.lazy import gammaln, sparse
from softcount.errors import DataError

BLOCKS = 6
"""Blocks in which the steps are predicted, each from all before it; each is as long as those together."""
FEW_SEQUENCES = 64
"""Sequences from which on blocks are made of whole ones."""
PATIENCE = 2
"""Orders in a row that must have less evidence than the best before no longer one is tried."""
LONGEST = 12
"""The longest order that is tried."""

Learn = Callable[[ContextCounts], Predictions]


class StepBlocks(Struct, frozen=True, eq=False):
    """Steps with their keys for every length up to the longest, what each weighs, and the block it is in."""

    alphabet: Alphabet
    steps: StepKeys
    weights: np.ndarray | None
    blocks: np.ndarray
    held: dict[tuple[int, int, bool], ContextLevel] = field(default_factory=dict)

    @classmethod
    def of(
        cls, codes: np.ndarray, starts: np.ndarray, alphabet: Alphabet, order: int, weights: np.ndarray | None
    ) -> StepBlocks:
        """Blocks are of whole sequences, picked by a hash of their numbers; of neighbouring steps if there are few."""
        digits, begins = alphabet.digits(codes, starts)
        steps = steps_of(digits, begins, alphabet, order)
        each = None if weights is None else np.repeat(weights, np.diff(begins))[steps.rows]
        sequences = len(starts) - 1
        if sequences >= FEW_SEQUENCES:
            mixed = np.arange(sequences, dtype=np.uint64) * np.uint64(11400714819323198485)
            place = np.argsort(np.argsort(mixed, kind="stable"), kind="stable") / sequences
            share = np.repeat(place, np.diff(begins))[steps.rows]
        else:
            share = np.arange(len(steps.rows)) / max(1, len(steps.rows))
        edges = 2.0 ** -np.arange(BLOCKS - 1, 0, -1)
        return cls(alphabet, steps, each, np.searchsorted(edges, share, "right"))

    def level(self, back: int, block: int, alone: bool = False) -> ContextLevel:
        """Counts of one length of context in all blocks up to one, or in that one alone."""
        if (back, block, alone) not in self.held:
            if alone:
                here = np.flatnonzero((self.steps.known >= back) & (self.blocks == block))
                weights = None if self.weights is None else self.weights[here]
                found = ContextLevel.of(self.steps.keys[back][here], weights, self.alphabet.base ** (back + 1))
            else:
                own = self.level(back, block, alone=True)
                found = self.level(back, block - 1).plus(own) if block else own
            self.held[back, block, alone] = found
        return self.held[back, block, alone]

    def counts(self, order: int, block: int, alone: bool = False) -> ContextCounts:
        """Such counts for contexts of every length up to an order."""
        return ContextCounts(self.alphabet, tuple(self.level(back, block, alone) for back in range(order + 1)))

    def evidence(self, order: int, learn: Learn) -> float:
        """The log-probability of every block but the first as predicted from those before it by contexts so long."""
        found = 0.0
        for block in range(1, BLOCKS):
            before, own = self.counts(order, block - 1), self.counts(order, block, alone=True)
            if before.steps and own.steps:
                found += learn(before).log_probability(own)
        return found


def best_order(evidence: Callable[[int], float], longest: int) -> tuple[int, dict[int, float]]:
    """The order with the most evidence and what each that was tried has; it stops once longer ones only have less."""
    found: dict[int, float] = {}
    for order in range(min(longest, LONGEST) + 1):
        found[order] = evidence(order)
        best = max(found, key=lambda tried: found[tried])
        if order - best >= PATIENCE:
            break
    return best, found


def flat_evidence(counts: ContextCounts, alpha: np.ndarray) -> float:
    """The log-probability of all steps, contexts of the order each having `alpha` imagined steps; exact.

    Steps at the start or after a gap, whose contexts are shorter, have tables of their own.
    """
    return sum(
        float(_table_evidence(counts.starting(back), counts.alphabet.base, alpha)[1].sum())
        for back in range(counts.order + 1)
    )


def _table_evidence(level: ContextLevel, base: int, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Contexts, and the log-probability of the steps after each."""
    contexts, firsts = np.unique(level.keys // base, return_index=True)
    if not len(firsts):
        return contexts, np.zeros(0)
    own = alpha[level.keys % base - 1]
    totals = np.add.reduceat(level.counts, firsts)
    gained = np.add.reduceat(gammaln(own + level.counts) - gammaln(own), firsts)
    return contexts, gained - gammaln(alpha.sum() + totals) + gammaln(alpha.sum())


def context_tree(counts: ContextCounts, alpha: np.ndarray) -> ContextCounts:
    """The counts of those contexts only that a tree of contexts of the best evidence has.

    Whether a context is told apart further is one bit before any data. Bottom up, each context has the better of two:
    its own steps under one table, or those of all contexts one step longer.
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
    """The levels as far as contexts are told apart: the empty context always is there."""
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


# Steps after gaps, summed over the missing steps.

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


# Long-run behaviour: stationary distribution, hitting times, irreducibility.


class ChainShape(Struct, frozen=True):
    """Which states of a chain reach each other: `classes[i]` is the class of state i, `closed` those never left.

    `period` is the greatest common divisor of the lengths of all ways back to a state, 1 for a chain that is not
    periodic; of a chain with several closed classes it is that of the first.
    """

    classes: np.ndarray
    closed: tuple[int, ...]
    period: int

    @property
    def irreducible(self) -> bool:
        """Whether every state is reached from every other."""
        return int(self.classes.max(initial=0)) == 0

    def described(self) -> str:
        """One line: whether every state reaches every other, and whether it does so in step."""
        if not self.irreducible:
            number = int(self.classes.max()) + 1
            ends = "1 of them is" if len(self.closed) == 1 else f"{len(self.closed)} of them are"
            return f"not irreducible: its states fall into {number} classes, and {ends} never left"
        return "irreducible, " + ("aperiodic" if self.period == 1 else f"periodic with period {self.period}")


def shape_of(possible: np.ndarray) -> ChainShape:
    """The shape of a chain from which of its transitions are possible, (before x after).

    >>> shape_of(np.array([[0, 1], [1, 0]], dtype=bool)).described()
    'irreducible, periodic with period 2'
    """
    graph = sparse.csr_matrix(possible)
    number, classes = connected_components(graph, directed=True, connection="strong")
    before, after = graph.nonzero()
    left = set(classes[before[classes[before] != classes[after]]].tolist())
    closed = tuple(place for place in range(number) if place not in left)
    inside = np.flatnonzero(classes == closed[0])
    return ChainShape(classes, closed, _period(graph[inside][:, inside]))


def _period(graph: sparse.csr_matrix) -> int:
    """Of one class: the divisor of how much longer a way round is than the shortest way there."""
    order, parents = breadth_first_order(graph, 0, directed=True)
    depth = np.zeros(graph.shape[0], dtype=np.int64)
    for state in order[1:]:
        depth[state] = depth[parents[state]] + 1
    before, after = graph.nonzero()
    period = 0
    for more in np.unique(np.abs(depth[before] + 1 - depth[after])).tolist():
        period = gcd(period, more)
    return max(period, 1)


def stationary(transitions: np.ndarray) -> np.ndarray:
    """The shares of time in each state that the transitions leave as they are; they must be the only such.

    >>> stationary(np.array([[0.9, 0.1], [0.5, 0.5]])).round(6).tolist()
    [0.833333, 0.166667]
    """
    shape = shape_of(transitions > 0)
    if len(shape.closed) > 1:
        raise DataError(
            f"the chain has {len(shape.closed)} sets of states that it never leaves, so where it stays depends on "
            "where it starts. A prior above 0 joins them."
        )
    inside = np.flatnonzero(shape.classes == shape.closed[0])
    own = transitions[np.ix_(inside, inside)]
    # One equation says the same as the others together; in its place the shares sum to one.
    system = np.eye(len(inside)) - own.T
    system[-1] = 1.0
    right = np.zeros(len(inside))
    right[-1] = 1.0
    out = np.zeros(len(transitions))
    out[inside] = np.maximum(linalg.solve(system, right), 0.0)
    return np.asarray(out / out.sum())


def hitting_times(transitions: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Expected steps until the first of the target states, from each state; 0 there, infinite where it may never be.

    >>> hitting_times(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([False, True])).tolist()
    [2.0, 0.0]
    """
    graph = sparse.csr_matrix(transitions > 0)
    surely = ~_reaching(graph, ~_reaching(graph, target, np.ones(len(target), dtype=bool)), ~target)
    out = np.where(target, 0.0, np.inf)
    rows = np.flatnonzero(surely & ~target)
    if len(rows):
        own = transitions[np.ix_(rows, rows)]
        out[rows] = linalg.solve(np.eye(len(rows)) - own, np.ones(len(rows)))
    return out


def _reaching(graph: sparse.csr_matrix, goal: np.ndarray, through: np.ndarray) -> np.ndarray:
    """States from which a goal may be reached by states that one may go through."""
    found = goal.copy()
    while True:
        more = (found | ((graph @ found.astype(np.int64) > 0) & through)).astype(bool)
        if (more == found).all():
            return found
        found = more


def run_lengths(transitions: np.ndarray) -> np.ndarray:
    """Expected length of a run of each state, once it is entered; infinite for one that is never left."""
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / (1.0 - np.diagonal(transitions)))
