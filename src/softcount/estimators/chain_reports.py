"""What a fitted chain says of itself: transitions, its long run, new sequences, and why a step surprises."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from softcount.chains import order as long_run
from softcount.chains.counts import GAP, ContextCounts, Predictions, digits_of, steps_of
from softcount.chains.order import ChainShape
from softcount.errors import DataError
from softcount.estimators.parameters import check_whole
from softcount.estimators.result_frames import arrow_table, as_frame, sequences_library
from softcount.table.schema import apart

MOST_STATES = 3_000
"""Contexts of a chain whose long run is worked out: it takes the cube of their number."""
LONGEST_DRAWN = 100_000
"""Steps after which a drawn sequence is cut where its end does not come."""
CHARACTER = "character"
"""The column of steps that are characters of a text."""

Context = tuple[int, ...]


class ChainReports:
    """The reports of a chain; `counts_` and `predictions_` are what it has learned."""

    counts_: ContextCounts
    predictions_: Predictions
    schema_: Any
    ends: bool
    order_: int

    @property
    def symbols_(self) -> list[Any]:
        """The alphabet, in order."""
        return list(self.schema_.used[0].levels)

    @property
    def end_(self) -> str:
        """What the end of a sequence is called among what may come next."""
        return apart("(end)", self.symbols_)

    @property
    def begin_(self) -> str:
        """What the beginning of a sequence is called among contexts."""
        return apart("(begin)", self.symbols_)

    @property
    def next_symbols_(self) -> list[Any]:
        """What may come next: the alphabet and, where ends are states, the end."""
        return [*self.symbols_, self.end_] if self.ends else self.symbols_

    # -- transitions

    @property
    def contexts_(self) -> list[Any]:
        """The contexts that `transitions_` has a line for: symbols where the order is 1, tuples of them beyond.

        Of a longer order they are those that were met; of order 1 all symbols, the beginning first where it is a state.
        """
        return [self._named(context) for context in self._contexts()]

    def _contexts(self) -> list[Context]:
        order, symbols = self.predictions_.order, len(self.symbols_)
        if order == 0:
            return [()]
        if order == 1:
            return [*([(0,)] if self.ends else []), *((digit,) for digit in range(1, symbols + 1))]
        found = digits_of(self.predictions_.levels[order].contexts, self.counts_.alphabet.base, order)
        return [tuple(context) for context in found.tolist()]

    def _named(self, context: Context) -> Any:
        names = [self.begin_ if digit == 0 else self.symbols_[digit - 1] for digit in context]
        return names[0] if len(names) == 1 and self.predictions_.order == 1 else tuple(names)

    @property
    def transitions_(self) -> np.ndarray:
        """(`contexts_` x `next_symbols_`) the probability of what comes after each context."""
        return np.array([self.predictions_.after(context) for context in self._contexts()])

    @property
    def shares_(self) -> dict[Any, float]:
        """The share of each symbol, and of ends where those are states, among the steps that were counted."""
        level = self.counts_.levels[0]
        counts = np.bincount(level.keys - 1, level.counts, minlength=self.counts_.alphabet.predicted)
        return dict(zip(self.next_symbols_, (counts / counts.sum()).tolist(), strict=True))

    @property
    def shape_(self) -> ChainShape:
        """Whether the transitions that were met lead from every symbol to every other, and in what period.

        Where ends are states, another sequence starts after an end.
        """
        size = len(self.symbols_) + self.ends
        possible = np.zeros((size, size), dtype=bool)
        if self.counts_.order == 0:
            met = self.counts_.levels[0].keys - 1
            possible[np.ix_(met, met)] = True
        else:
            before, after = digits_of(self.counts_.levels[1].keys, self.counts_.alphabet.base, 2).T
            possible[np.where(before == 0, size, before) - 1, after - 1] = True
        return long_run.shape_of(possible)

    @property
    def irreducible_(self) -> bool:
        """Whether the transitions that were met lead from every symbol to every other."""
        return self.shape_.irreducible

    @property
    def period_(self) -> int:
        """1 for a chain that may come back to a symbol at any time later on; else the step of its rhythm."""
        return self.shape_.period

    # -- the long run

    def _square(self) -> tuple[list[Context], np.ndarray]:
        """All contexts that the chain may be in, and (before x after) the probabilities of going from one to the next.

        After an end another sequence starts.
        """
        check_is_fitted(self, "counts_")
        order, symbols = max(self.predictions_.order, 1), len(self.symbols_)
        if sum(symbols**length for length in range(1 if self.ends else order, order + 1)) > MOST_STATES:
            raise DataError(
                f"{symbols:,} symbols at order {order} are more than {MOST_STATES:,} states, too many to work out the "
                "long run of. Fit a chain of a smaller order."
            )
        lengths = range(0, order + 1) if self.ends else (order,)
        states: list[Context] = [
            (*([0] if self.ends and length < order else []), *context)
            for length in lengths
            for context in product(range(1, symbols + 1), repeat=length)
        ]
        place = {state: at for at, state in enumerate(states)}
        square = np.zeros((len(states), len(states)))
        for at, state in enumerate(states):
            chances = self.predictions_.after(state)
            for digit in range(1, symbols + 1):
                square[at, place[(*state, digit)[-order:]]] += chances[digit - 1]
            if self.ends:
                square[at, place[(0,)]] += chances[symbols]
        return states, square

    def stationary(self) -> dict[Any, float]:
        """The share of each symbol in the long run; where ends are states, of ends too, one sequence after another."""
        states, square = self._square()
        shares = long_run.stationary(square)
        found = dict.fromkeys([*self.symbols_, *([self.end_] if self.ends else [])], 0.0)
        for state, share in zip(states, shares, strict=True):
            found[self.end_ if state[-1] == 0 else self.symbols_[state[-1] - 1]] += float(share)
        return found

    def hitting_times(self, to: Any) -> dict[Any, float]:
        """Expected steps from each context until `to` comes for the first time, 0 where it is there already.

        `to` may be the end, `end_`, where that is a state: that is how long a sequence still goes on, the end as one.
        """
        states, square = self._square()
        if to == self.end_ and self.ends:
            target = np.array([state == (0,) for state in states])
        elif to in self.symbols_:
            target = np.array([state[-1] == self.symbols_.index(to) + 1 for state in states])
        else:
            raise DataError(f"{to!r} is no symbol of the chain. Its symbols are {self.next_symbols_[:8]}.")
        times = long_run.hitting_times(square, target)
        if to == self.end_ and self.ends:  # an end is where the next sequence begins, which has all of it before it
            times[target] = 1.0 + square[target] @ times
        return {self._named(state): float(time) for state, time in zip(states, times, strict=True)}

    def run_lengths(self) -> dict[Any, float]:
        """How long a run of each symbol is expected to be, once it has begun."""
        states, square = self._square()
        last = np.array([state[-1] for state in states])
        if max(self.predictions_.order, 1) == 1:
            lengths = long_run.run_lengths(square)
            return {self.symbols_[digit - 1]: float(lengths[last == digit][0]) for digit in last if digit}
        shares = long_run.stationary(square)
        found = {}
        for digit, symbol in enumerate(self.symbols_, start=1):
            inside = last == digit
            entered = float(shares[~inside] @ square[np.ix_(~inside, inside)].sum(axis=1))
            found[symbol] = float(shares[inside].sum()) / entered if entered > 0 else np.inf
        return found

    # -- new sequences

    def sample(self, n: int = 1, start: Any = None, random_state: Any = None) -> Any:
        """A new sequence of n steps; where ends are states n new sequences, each to its end.

        `start` is how a sequence begins: symbols, or a string of them. Steps that were characters come as text.
        """
        check_is_fitted(self, "counts_")
        check_whole("n", n, 1)
        rng = np.random.default_rng(int(check_random_state(random_state).randint(2**31 - 1)))
        begin = self._digits_of(start)
        if not self.ends:
            return self._spelt(self._drawn(begin, int(n), rng, {}))
        known: dict[Context, np.ndarray] = {}
        return [self._spelt(self._drawn(begin, LONGEST_DRAWN, rng, known)) for _ in range(int(n))]

    def _digits_of(self, start: Any) -> list[int]:
        place = {symbol: at for at, symbol in enumerate(self.symbols_, start=1)}
        given = [] if start is None else list(start)
        for step, symbol in enumerate(given, start=1):
            if symbol not in place:
                raise DataError(f"start, step {step}: {symbol!r} is no symbol of the chain.")
        return [place[symbol] for symbol in given]

    def _drawn(self, begin: list[int], n: int, rng: np.random.Generator, known: dict[Context, np.ndarray]) -> list[int]:
        order, digits = self.predictions_.order, [*([0] if self.ends else []), *begin]
        first, end = int(self.ends), len(self.symbols_) + 1
        while len(digits) - first < n:
            context = tuple(digits[len(digits) - min(order, len(digits)) :])
            if context not in known:
                known[context] = np.cumsum(self.predictions_.after(context))
            chances = known[context]
            digit = int(np.searchsorted(chances, rng.random() * chances[-1], "right")) + 1
            if digit == end:
                break
            digits.append(digit)
        return digits[first:]

    def _spelt(self, digits: list[int]) -> Any:
        symbols = [self.symbols_[digit - 1] for digit in digits]
        return "".join(map(str, symbols)) if self.schema_.used[0].key == CHARACTER else symbols

    # -- why

    def explain(self, X: Any) -> Any:
        """A frame with a line for each known step: what came, after what, how probable, and what was likeliest.

        `bits` is the surprise, minus the logarithm of the probability to base 2; a step after a gap is judged by what
        is known since the gap. `gain` is how many bits fewer that is than without any context.
        """
        found = self._asked(X)  # type: ignore[attr-defined]
        alphabet, order = self.counts_.alphabet, self.predictions_.order
        digits, starts = alphabet.digits(found.codes, found.starts)
        steps = steps_of(digits, starts, alphabet, order)
        of = np.repeat(np.arange(len(starts) - 1), np.diff(starts))[steps.rows]
        chances = self.predictions_.of_steps(steps)
        alone = self.predictions_.after(())[digits[steps.rows] - 1]
        contexts = [
            tuple(digits[row - back : row].tolist())
            for row, back in zip(steps.rows.tolist(), steps.known.tolist(), strict=True)
        ]
        likeliest = {context: int(self.predictions_.after(context).argmax()) for context in set(contexts)}
        with np.errstate(divide="ignore"):
            bits, plain = -np.log2(chances), -np.log2(alone)
        said = [self._text(self.next_symbols_[digit - 1]) for digit in digits[steps.rows].tolist()]
        table = arrow_table(
            {
                "sequence": [str(found.sequences.names[at]) for at in of.tolist()],
                "step": steps.rows - starts[of] + 1 - self.ends,
                "symbol": said,
                "after": [self._joined(context) for context in contexts],
                "probability": chances,
                "bits": bits,
                "gain": plain - bits,
                "likeliest": [self._text(self.next_symbols_[likeliest[context]]) for context in contexts],
            }
        )
        return as_frame(table, sequences_library(X))

    @staticmethod
    def _text(symbol: Any) -> str:
        return str(symbol)

    def _joined(self, context: Context) -> str:
        names = [self.begin_ if digit == 0 else str(self.symbols_[digit - 1]) for digit in context if digit != GAP]
        return ("" if self.schema_.used[0].key == CHARACTER else " ").join(names)
