"""Markov chains: probabilities of sequences with missing steps, samples, and long-run behaviour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from math import gcd

import numpy as np
from msgspec import Struct
from scipy import linalg
from scipy.sparse.csgraph import connected_components, dijkstra

from softcount.chains.counts import GAP, ContextCounts, Predictions, StepKeys, digits_of, steps_of
from softcount.core.lazy import sparse
from softcount.core.special import log_of
from softcount.errors import DataError

MOST_PATHS = 1 << 20
"""Most contexts that are possible after missing steps, times the symbols that may follow."""
MOST_STATES = 3_000
"""Most contexts of a chain whose long run is computed; the time grows with the cube of their number."""

Context = tuple[int, ...]
After = Callable[[Context], np.ndarray]


class Chain(Struct, frozen=True, eq=False):
    """A chain in digits: 0 is the beginning, 1 to n are the symbols, n + 1 is the end, GAP is a missing step."""

    counts: ContextCounts
    predictions: Predictions

    @property
    def order(self) -> int:
        return self.predictions.order

    def score_steps(self, codes: np.ndarray, starts: np.ndarray) -> tuple[StepKeys, np.ndarray]:
        """Return the known steps and the probability of each."""
        steps = steps_of(codes, starts, self.counts.alphabet, self.order)
        return steps, self.predictions.of_steps(steps.keys, steps.known)

    def log_probabilities(self, codes: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log-probability of each sequence, summed over missing steps, and its number of known steps."""
        steps, probabilities = self.score_steps(codes, starts)
        digits, starts, order = steps.digits, steps.starts, self.order
        whole = steps.known >= np.minimum(steps.age, order)
        logs = log_of(probabilities)
        out = np.bincount(steps.sequence[whole], logs[whole], minlength=len(starts) - 1).astype(np.float64)
        after = cache(self.predictions.after)
        gaps = np.flatnonzero(digits == GAP)
        places = np.searchsorted(starts, gaps, "right") - 1
        # Runs from a gap to where as many steps as the order are known again; none extends beyond its sequence.
        ends = np.minimum(gaps + 1 + order, starts[places + 1])
        begins = np.flatnonzero(gaps >= np.append(0, ends)[:-1])
        lasts = np.append(begins[1:], len(gaps))[: len(begins)] - 1
        for first, last, at in np.stack([gaps[begins], ends[lasts], places[begins]], axis=1).tolist():
            before = digits[max(int(starts[at]), first - order) : first].tolist()
            out[at] += self._pass_gaps(before, digits[first:last].tolist(), after)[1]
        return out, np.bincount(steps.sequence, minlength=len(starts) - 1)

    def next_probabilities(self, codes: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return the probabilities of the step after each sequence, of shape (sequences, predicted symbols)."""
        alphabet, order, after = self.counts.alphabet, self.order, cache(self.predictions.after)
        out = np.empty((len(starts) - 1, alphabet.predicted))
        for at in range(len(out)):
            steps = codes[starts[at] : starts[at + 1]].astype(np.int64)
            digits = [*([0] if alphabet.ends else []), *np.where(steps == 0, GAP, steps).tolist()]
            first = len(digits)
            while GAP in digits[max(0, first - order) : first]:
                first -= 1
            paths, _ = self._pass_gaps(digits[max(0, first - order) : first], digits[first:], after)
            out[at] = sum(weight * after(context) for context, weight in paths.items())
        return out

    def _pass_gaps(
        self, before: Sequence[int], digits: Sequence[int], after: After
    ) -> tuple[dict[Context, float], float]:
        """Return the contexts possible after some digits with their probabilities, and the digits' log-probability.

        A missing step is a symbol, never the end.
        """
        symbols, total_log = self.counts.alphabet.symbols, 0.0
        paths: dict[Context, float] = {tuple(before): 1.0}
        for digit in digits:
            if digit == GAP and len(paths) * symbols > MOST_PATHS:
                raise DataError(
                    f"there are more than {MOST_PATHS:,} ways to fill the missing steps of a sequence, too many at "
                    f"order {self.order}. Split the sequence at its missing steps, or choose a smaller order."
                )
            moved: dict[Context, float] = {}
            for context, weight in paths.items():
                chances = after(context)
                for step in range(1, symbols + 1) if digit == GAP else (digit,):
                    chance = weight * float(chances[step - 1])
                    if chance > 0:
                        to = self._cut((*context, step))
                        moved[to] = moved.get(to, 0.0) + chance
            total = sum(moved.values())
            total_log += float(log_of(total))
            paths = {context: weight / total for context, weight in moved.items()} if total > 0 else paths
        return paths, total_log

    def _cut(self, context: Context) -> Context:
        return context[len(context) - min(len(context), self.order) :]

    def contexts(self) -> list[Context]:
        """Return the contexts.

        For order 1 these are all symbols, and the beginning if it is a state; for longer orders, those that were seen.
        """
        alphabet, order = self.counts.alphabet, self.order
        if order == 0:
            return [()]
        if order == 1:
            return [(digit,) for digit in range(0 if alphabet.ends else 1, alphabet.symbols + 1)]
        found = digits_of(self.predictions.levels[order].contexts, alphabet.base, order)
        return [tuple(context) for context in found.tolist()]

    def shape(self) -> ChainShape:
        """Return which symbols follow each other in the observed transitions. After an end another sequence starts."""
        size = self.counts.alphabet.predicted
        possible = np.zeros((size, size), dtype=bool)
        if self.counts.order == 0:
            met = self.counts.levels[0].keys - 1
            possible[np.ix_(met, met)] = True
        else:
            before, after = digits_of(self.counts.levels[1].keys, self.counts.alphabet.base, 2).T
            possible[np.where(before == 0, size, before) - 1, after - 1] = True
        return shape_of(possible)

    def transitions(self) -> tuple[list[Context], np.ndarray]:
        """Return all contexts that the chain can be in, and the (before x after) matrix of transition probabilities.

        After an end another sequence starts.
        """
        symbols, ends, order = self.counts.alphabet.symbols, self.counts.alphabet.ends, max(self.order, 1)
        if sum(symbols**length for length in range(1 if ends else order, order + 1)) > MOST_STATES:
            raise DataError(
                f"{symbols:,} symbols at order {order} are more than {MOST_STATES:,} states, too many to compute "
                f"the stationary distribution. Fit a chain of a smaller order."
            )
        states: list[Context] = [
            (*([0] if ends and length < order else []), *context)
            for length in (range(0, order + 1) if ends else (order,))
            for context in product(range(1, symbols + 1), repeat=length)
        ]
        place = {state: at for at, state in enumerate(states)}
        square = np.zeros((len(states), len(states)))
        for at, state in enumerate(states):
            chances = self.predictions.after(state)
            for digit in range(1, symbols + 1):
                square[at, place[(*state, digit)[-order:]]] += chances[digit - 1]
            if ends:
                square[at, place[(0,)]] += chances[symbols]
        return states, square

    def run_lengths(self) -> dict[int, float]:
        """Return the expected length of a run of each symbol, by its digit; infinite if it is never left."""
        states, square = self.transitions()
        last = np.array([state[-1] for state in states])
        symbols = range(1, self.counts.alphabet.symbols + 1)
        if self.order <= 1:
            with np.errstate(divide="ignore"):
                lengths = 1.0 / (1.0 - np.diagonal(square))
            return {digit: float(lengths[last == digit][0]) for digit in symbols}
        shares, found = stationary(square), {}
        for digit in symbols:
            inside = last == digit
            entered = float(shares[~inside] @ square[np.ix_(~inside, inside)].sum(axis=1))
            found[digit] = float(shares[inside].sum()) / entered if entered > 0 else np.inf
        return found

    def sample(self, begin: Sequence[int], lengths: Sequence[int], rng: np.random.Generator) -> list[list[int]]:
        """Draw sequences that begin with the digits `begin`, each up to its length or to the end."""
        alphabet, first = self.counts.alphabet, int(self.counts.alphabet.ends)
        cumulative = cache(lambda context: np.cumsum(self.predictions.after(context)))
        drawn = []
        for length in lengths:
            digits = [*([0] if first else []), *begin]
            while len(digits) - first < length:
                chances = cumulative(tuple(digits[len(digits) - min(self.order, len(digits)) :]))
                digit = int(np.searchsorted(chances, rng.random() * chances[-1], "right")) + 1
                if digit > alphabet.symbols:
                    break
                digits.append(digit)
            drawn.append(digits[first:])
        return drawn


# -- the long run


class ChainShape(Struct, frozen=True):
    """Which states of a chain reach each other: `classes[i]` is the class of state i, `closed` the classes never left.

    `period` is the greatest common divisor of the lengths of all ways back to a state, 1 for an aperiodic chain. With
    several closed classes it is the period of the first.
    """

    classes: np.ndarray
    closed: tuple[int, ...]
    period: int

    @property
    def irreducible(self) -> bool:
        return int(self.classes.max(initial=0)) == 0

    def describe(self) -> str:
        if not self.irreducible:
            number = int(self.classes.max()) + 1
            ends = "1 of them is" if len(self.closed) == 1 else f"{len(self.closed)} of them are"
            return f"not irreducible: its states fall into {number} classes, and {ends} never left"
        return "irreducible, " + ("aperiodic" if self.period == 1 else f"periodic with period {self.period}")


def shape_of(possible: np.ndarray) -> ChainShape:
    """Return the shape of a chain, given the (before x after) matrix of possible transitions.

    >>> shape_of(np.array([[0, 1], [1, 0]], dtype=bool)).describe()
    'irreducible, periodic with period 2'
    """
    graph = sparse.csr_matrix(possible)
    number, classes = connected_components(graph, directed=True, connection="strong")
    before, after = graph.nonzero()
    left = set(classes[before[classes[before] != classes[after]]].tolist())
    closed = tuple(place for place in range(number) if place not in left)
    inside = np.flatnonzero(classes == closed[0])
    # The period of a class is the common divisor of the excess lengths of its cycles over the shortest paths.
    graph = graph[inside][:, inside]
    depth = dijkstra(graph, unweighted=True, indices=0).astype(np.int64)
    before, after = graph.nonzero()
    period = gcd(*np.unique(np.abs(depth[before] + 1 - depth[after])).tolist())
    return ChainShape(classes, closed, max(period, 1))


def stationary(transitions: np.ndarray) -> np.ndarray:
    """Return the stationary distribution, which must be unique.

    >>> stationary(np.array([[0.9, 0.1], [0.5, 0.5]])).round(6).tolist()
    [0.833333, 0.166667]
    """
    shape = shape_of(transitions > 0)
    if len(shape.closed) > 1:
        raise DataError(
            f"the chain has {len(shape.closed)} sets of states that it never leaves, so its long-run distribution "
            f"depends on the start. Use a prior above 0."
        )
    inside = np.flatnonzero(shape.classes == shape.closed[0])
    own = transitions[np.ix_(inside, inside)]
    # One equation follows from the others. Replace it: the shares sum to one.
    system = np.eye(len(inside)) - own.T
    system[-1] = 1.0
    right = np.zeros(len(inside))
    right[-1] = 1.0
    out = np.zeros(len(transitions))
    out[inside] = np.maximum(linalg.solve(system, right), 0.0)
    return np.asarray(out / out.sum())


def hitting_times(transitions: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the expected steps from each state to the first target state; infinite if it may never be reached.

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
    """Return the states from which a goal can be reached through the allowed states."""
    found = goal.copy()
    while True:
        more = (found | ((graph @ found.astype(np.int64) > 0) & through)).astype(bool)
        if (more == found).all():
            return found
        found = more
