"""Sequences of symbols as codes: in the alphabet they have, or in that of a chain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from scipy.optimize import minimize_scalar
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from softcount.chains import order as long_run
from softcount.chains.counts import (
    GAP,
    Alphabet,
    ContextCounts,
    Predictions,
    back_off,
    count_contexts,
    digits_of,
    flat_predictions,
    steps_of,
)
from softcount.chains.order import (
    LONGEST,
    ChainShape,
    GapPaths,
    StepBlocks,
    best_order,
    context_tree,
    flat_evidence,
    gap_log_probabilities,
)
from softcount.core import remedies
from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.base import Estimator
from softcount.estimators.parameters import Parameter, check_whole
from softcount.estimators.repr import SequencePages
from softcount.estimators.result_frames import arrow_table, as_frame, sequences_library
from softcount.estimators.saving import save_chain
from softcount.learn.settings import retyping
from softcount.priors import Dirichlet
from softcount.run.local import AtOnce
from softcount.sequences import Sequences, open_sequences
from softcount.sources import wording
from softcount.table import NARROW_LEVELS, Chunk, Schema, Table
from softcount.table.levels import in_order
from softcount.table.schema import apart


class CodedSequences(Struct, frozen=True, eq=False):
    """Codes of all steps end to end (0 is a gap, symbols from 1), what they stand for, and the sequences they are."""

    sequences: Sequences
    codes: np.ndarray
    schema: Schema

    @property
    def symbols(self) -> list[Any]:
        return list(self.schema.used[0].levels)

    @property
    def weights(self) -> np.ndarray | None:
        return self.sequences.weights

    @property
    def starts(self) -> np.ndarray:
        return self.sequences.starts


def coded(X: Any, weights: Any, ends: bool, symbols: Sequence[Any] | None) -> CodedSequences:
    """Sequences in the alphabet that they have, in order; `symbols` are in it whether met or not."""
    sequences = open_sequences(X, weights=weights, empty=ends)
    _refuse_wide(sequences)
    key = sequences.source.keys[0]
    table = sequences.table(kinds="categorical", levels={key: list(symbols)} if symbols is not None else None)

    def read(table: Table) -> CodedSequences:
        chunks = list(table.chunks())
        settled = table.settle()
        return CodedSequences(sequences, _codes([settled.recoded(chunk) for chunk in chunks]), settled.schema)

    found = retyping(table, read, AtOnce())
    if not len(found.symbols):
        raise DataError("every step is missing. A chain needs at least one symbol.")
    if symbols is not None:
        _refuse_other(found, set(symbols))
    return found


def coded_as(X: Any, weights: Any, schema: Schema) -> CodedSequences:
    """Sequences in the alphabet of a chain; a symbol that it does not have is refused by its place."""
    sequences = open_sequences(X, weights=weights, empty=True)
    _refuse_wide(sequences)
    table = sequences.table(schema=_as_named(schema, sequences))
    found = CodedSequences(sequences, _codes(list(table.chunks())), schema)
    beyond = np.flatnonzero(found.codes > len(found.symbols))
    if len(beyond):
        raise _never_seen(sequences, int(beyond[0]), "was never met when the chain was fitted")
    return found


def _as_named(schema: Schema, sequences: Sequences) -> Schema:
    """The chain's one column under the name that it has here: there is no other it could be."""
    (spec,) = schema.used
    return Schema((replace(spec, key=sequences.source.keys[0]),), schema.missing)


def _codes(chunks: list[Chunk]) -> np.ndarray:
    parts = [chunk.codes if chunk.codes.shape[1] else chunk.wide for chunk in chunks]
    return np.concatenate([part[:, 0] for part in parts]) if parts else np.zeros(0, dtype=np.uint8)


def _refuse_wide(sequences: Sequences) -> None:
    keys = sequences.source.keys
    if len(keys) > 1:
        raise DataError(
            f"a chain is of one column, but a step has {len(keys)}: {wording.and_others(keys)}. Name one: "
            f"{remedies.either('read_sequences(..., columns=[...])', '--symbols COL')}."
        )


def _refuse_other(found: CodedSequences, symbols: set[Any]) -> None:
    other = [place for place, symbol in enumerate(found.symbols, start=1) if symbol not in symbols]
    if other:
        row = int(np.argmax(np.isin(found.codes, other)))
        raise _never_seen(found.sequences, row, "is none of the `symbols` given")


def _never_seen(sequences: Sequences, row: int, what: str) -> DataError:
    cell = sequences.source.table.column(0)[row].as_py()
    return DataError(
        f"{sequences.place(row)}: {wording.cell(cell)} {what}. Give None for a step that is not known, or fit with "
        "symbols=[...], all that may come."
    )


# What a fitted chain says of itself: transitions, its long run, new sequences, and why a step surprises.

MOST_STATES = 3_000
"""Contexts of a chain whose long run is worked out: it takes the cube of their number."""
LONGEST_DRAWN = 100_000
"""Steps after which a drawn sequence is cut where its end does not come."""
CHARACTER = "character"
"""The column of steps that are characters of a text."""

Context = tuple[int, ...]


# Markov chains: what comes next, from how often it came after the same steps.

BACK_OFF = "kneser-ney"
"""The prior of contexts that leave a part to what shorter ones predict."""


def _check_prior(name: str, value: Any) -> None:
    if isinstance(value, str):
        raise DataError(f"{name}={value!r} is not known. Use 'kneser-ney', 'auto', a number or a Dirichlet.")
    if not isinstance(value, Dirichlet):
        Parameter(float, "").check(name, value)


class MarkovChain(SequencePages, Estimator):
    """A Markov chain of symbols: each step depends on the `order` steps before it and on nothing else.

    Sequences are whatever `read_sequences` reads; strings are sequences of characters. A missing step is no evidence:
    no transition into it or out of it is counted, and its probability is summed over all it may have been. The first
    steps of a sequence are predicted from as many as there are before them.

    >>> chain = MarkovChain(prior=0).fit(["aababb", "abba"])
    >>> chain.symbols_, chain.transitions_
    (['a', 'b'], array([[0.25, 0.75],
           [0.5 , 0.5 ]]))
    >>> chain.predict(["ab", "ba"]).tolist()
    ['a', 'b']
    """

    counts_: ContextCounts
    schema_: Schema
    order_: int
    evidence_: dict[int, float]
    input_notes_: list[str]

    _varied: ClassVar = {
        "prior": Parameter(
            "float or Dirichlet",
            "'kneser-ney' leaves a part of the counts of a context to the next shorter. A number is the prior count "
            "of each symbol after every context; 'auto' chooses that number by marginal likelihood.",
            (BACK_OFF, "auto"), checked=_check_prior,
        ),
    }  # fmt: skip

    def __init__(self, order: Any = 1, prior: Any = BACK_OFF, ends: bool = False, symbols: Any = None) -> None:
        self._keep_parameters(locals())

    # -- learning

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MarkovChain:
        """Count the steps of sequences. `sample_weight` is one weight for each sequence; `y` is not used."""
        self._check_settings()
        found = coded(X, sample_weight, self.ends, self.symbols)
        alphabet = Alphabet(len(found.symbols), self.ends)
        self.schema_, self.evidence_, self.input_notes_ = found.schema, {}, list(found.sequences.notes)
        self.order_ = self._settle_order(found, alphabet)
        self._keep(self._counted(found, alphabet))
        return self

    def _settle_order(self, found: CodedSequences, alphabet: Alphabet) -> int:
        """The order as given, by evidence, or the longest that a context may be told apart by."""
        longest = int(found.sequences.lengths.max()) - 1 + 2 * self.ends
        most = min(longest, alphabet.most_order, LONGEST)
        if self.order == "variable":
            return int(most)
        if self.order == "auto":
            if self.prior == BACK_OFF:
                blocks = StepBlocks.of(found.codes, found.starts, alphabet, most, found.weights)
                best, self.evidence_ = best_order(partial(blocks.evidence, learn=back_off), most)
                return best
            counts = count_contexts(found.codes, found.starts, alphabet, most, found.weights)
            best, self.evidence_ = best_order(lambda order: self._flat_evidence(counts.shorter(order)), most)
            return best
        if self.order > max(longest, 0):
            at = int(found.sequences.lengths.argmax())
            raise DataError(
                f"order={self.order}, but no sequence is as long: {found.sequences.called(at)}, the longest, has "
                f"{longest - 2 * self.ends + 1} steps. Choose an order of {max(longest, 0)} or less."
            )
        return int(self.order)

    def _flat_evidence(self, counts: ContextCounts) -> float:
        return flat_evidence(counts, np.maximum(self._alpha(counts), 1e-300))

    def _counted(self, found: CodedSequences, alphabet: Alphabet) -> ContextCounts:
        return count_contexts(found.codes, found.starts, alphabet, self.order_, found.weights)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MarkovChain:
        """Add sequences to what was counted; new symbols become part of the alphabet. The order stays as it is."""
        if not hasattr(self, "counts_"):
            return self.fit(X, y, sample_weight)
        more = self._like(self)
        found = coded(X, sample_weight, self.ends, self.symbols)
        more.schema_ = found.schema
        more.counts_ = more._counted(found, Alphabet(len(found.symbols), self.ends))
        self._join(more)
        return self

    def merge(self, other: MarkovChain) -> MarkovChain:
        """A new chain of both: their counts, added."""
        inputs.refuse_unlike(self, other, MarkovChain)
        for name, mine, theirs in (("order", self.order_, other.order_), ("ends", self.ends, other.ends)):
            if mine != theirs:
                raise DataError(f"the chains differ in {name}: {mine!r} and {theirs!r}. Fit both with the same.")
        merged = self._like(self)
        merged.schema_, merged.counts_ = self.schema_, self.counts_
        merged._join(other)
        return merged

    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> MarkovChain:
        """Take sequences that were learned from back out of the counts."""
        check_is_fitted(self, "counts_")
        found = coded_as(X, sample_weight, self.schema_)
        gone = self._counted(found, self.counts_.alphabet)
        left = self.counts_ - gone
        if any((level.counts < 0).any() for level in left.levels):
            raise DataError("these sequences hold steps that were never counted, so they cannot be forgotten.")
        if not left.steps:
            raise DataError("nothing would be left of the chain: forgetting takes all that was counted.")
        self._keep(left)
        return self

    @staticmethod
    def _like(chain: MarkovChain) -> MarkovChain:
        made = type(chain)(**chain.get_params(deep=False))
        made.order_, made.evidence_, made.input_notes_ = chain.order_, chain.evidence_, chain.input_notes_
        return made

    def _join(self, other: MarkovChain) -> None:
        """Add another's counts, both in the alphabet of the two."""
        (mine,), (theirs,) = self.schema_.used, other.schema_.used
        schema = joined_alphabet(self.schema_, other.schema_)
        place = {symbol: at for at, symbol in enumerate(schema.used[0].levels, start=1)}
        parts = (
            counts.renamed(np.array([place[symbol] for symbol in spec.levels]), len(place))
            for counts, spec in ((self.counts_, mine), (other.counts_, theirs))
        )
        first, second = parts
        self.schema_ = schema
        self._keep(first + second)

    def _keep(self, counts: ContextCounts) -> None:
        """Take counts, and what follows from them."""
        self.counts_ = counts
        used = context_tree(counts, self._tree_alpha(counts)) if self.order == "variable" else counts
        self.predictions_: Predictions = self._learn(used)

    def _learn(self, counts: ContextCounts) -> Predictions:
        if isinstance(self.prior, str) and self.prior == BACK_OFF:
            return back_off(counts)
        return flat_predictions(counts.levels, counts.alphabet, self._alpha(counts))

    def _tree_alpha(self, counts: ContextCounts) -> np.ndarray:
        """One imagined step in all after a context that may be told apart, unless the prior says how many."""
        if isinstance(self.prior, str) and self.prior == BACK_OFF:
            return np.full(counts.alphabet.predicted, 1.0 / counts.alphabet.predicted)
        return np.asarray(np.maximum(self._alpha(counts), 1e-3))

    def _alpha(self, counts: ContextCounts) -> np.ndarray:
        """The imagined steps to everything that may come next."""
        size = counts.alphabet.predicted
        if isinstance(self.prior, Dirichlet):
            given = dict(zip(self.prior.levels or self.next_symbols_, np.atleast_1d(self.prior.alpha), strict=False))
            if self.prior.levels is None and len(np.atleast_1d(self.prior.alpha)) != size:
                raise DataError(
                    f"the Dirichlet prior has {len(np.atleast_1d(self.prior.alpha))} numbers, but {size} things may "
                    "come next. Give one for each, or name their levels."
                )
            return np.array([float(given.get(symbol, 0.0)) for symbol in self.next_symbols_], dtype=np.float64)
        if self.prior == "auto":
            return np.full(size, _best_alpha(counts))
        return np.full(size, float(self.prior))

    # -- what it says

    def _asked(self, X: Any, weights: Any = None) -> CodedSequences:
        check_is_fitted(self, "counts_")
        return coded_as(X, weights, self.schema_)

    def log_prob(self, X: Any) -> np.ndarray:
        """The log-probability of each sequence; a missing step is summed over all it may have been."""
        return self._scored(self._asked(X))[0]

    def _scored(self, found: CodedSequences) -> tuple[np.ndarray, np.ndarray]:
        """The log-probability of each sequence, and of how many steps it is one."""
        alphabet, order = self.counts_.alphabet, self.predictions_.order
        digits, starts = alphabet.digits(found.codes, found.starts)
        steps = steps_of(digits, starts, alphabet, order)
        of = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        age = steps.rows - starts[of[steps.rows]]
        whole = steps.known >= np.minimum(age, order)
        with np.errstate(divide="ignore"):
            logs = np.log(self.predictions_.of_steps(steps))
        out = np.bincount(of[steps.rows[whole]], logs[whole], minlength=len(starts) - 1).astype(np.float64)
        for first, height in gap_log_probabilities(self.predictions_, digits, starts):
            out[of[first]] += height
        return out, np.bincount(of[steps.rows], minlength=len(starts) - 1)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The log-probability of all sequences together."""
        found = self._asked(X, sample_weight)
        logs = self._scored(found)[0]
        return float(logs.sum() if found.weights is None else logs @ found.weights)

    def perplexity(self, X: Any) -> float:
        """How many equally likely symbols each known step would be as hard to guess as: exp of minus their mean log."""
        logs, steps = self._scored(self._asked(X))
        if not steps.sum():
            raise DataError("no step of these sequences is known, so there is nothing to be perplexed by.")
        return float(np.exp(-logs.sum() / steps.sum()))

    def predict_proba(self, X: Any) -> np.ndarray:
        """(sequences x `next_symbols_`) the probability of what comes after each sequence."""
        found = self._asked(X)
        order, begin = self.predictions_.order, [0] if self.ends else []
        out = np.empty((len(found.sequences), self.counts_.alphabet.predicted))
        known: dict[tuple[int, ...], np.ndarray] = {}
        for at in range(len(found.sequences)):
            digits = found.codes[found.starts[at] : found.starts[at + 1]].astype(np.int64)
            recent = [*begin, *np.where(digits == 0, GAP, digits).tolist()]
            context = tuple(recent[len(recent) - min(order, len(recent)) :])
            if GAP in context:
                out[at] = self._after_gaps(recent).next()
                continue
            if context not in known:
                known[context] = self.predictions_.after(context)
            out[at] = known[context]
        return out

    def _after_gaps(self, digits: list[int]) -> GapPaths:
        """Where the chain may be after digits with gaps."""
        order = self.predictions_.order
        first = len(digits)
        while GAP in digits[max(0, first - order) : first]:
            first -= 1
        paths = GapPaths(self.predictions_, digits[max(0, first - order) : first])
        for digit in digits[first:]:
            paths.go(digit)
        return paths

    def predict(self, X: Any) -> np.ndarray:
        """What most probably comes after each sequence."""
        names = np.empty(len(self.next_symbols_), dtype=object)
        names[:] = self.next_symbols_
        return np.asarray(names[self.predict_proba(X).argmax(axis=1)])

    def save(self, path: Any) -> None:
        """Write the counts and settings to a file that `softcount.load` reads."""
        check_is_fitted(self, "counts_")
        save_chain(self, path)

    @property
    def notes_(self) -> list[str]:
        """What was chosen and why, and whether the chain gets everywhere."""
        shape: ChainShape = self.shape_
        return [*self.input_notes_, *self._chosen(), f"transitions that were met: {shape.described()}"]

    def _chosen(self) -> list[str]:
        if self.order == "auto":
            tried = ", ".join(f"{order}: {height:,.1f}" for order, height in self.evidence_.items())
            return [f"order {self.order_} has the most evidence (log-evidence by order, {tried})"]
        if self.order == "variable":
            kept = sum(len(level.contexts) for level in self.predictions_.levels)
            return [f"{kept:,} contexts are told apart, of up to {self.predictions_.order} steps"]
        return []

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

    def sample(self, n: int = 1, start: Any = None, random_state: Any = None) -> Any:
        """A new sequence of n steps; where ends are states n new sequences, each to its end.

        `start` is how a sequence begins: symbols, or a string of them. Steps that were characters come as text.
        """
        check_is_fitted(self, "counts_")
        check_whole("n", n, 1)
        rng = np.random.default_rng(int(check_random_state(random_state).randint(2**31 - 1)))
        place = {symbol: at for at, symbol in enumerate(self.symbols_, start=1)}
        given = [] if start is None else list(start)
        for step, symbol in enumerate(given, start=1):
            if symbol not in place:
                raise DataError(f"start, step {step}: {symbol!r} is no symbol of the chain.")
        begin = [place[symbol] for symbol in given]
        if not self.ends:
            return self._spelt(self._drawn(begin, int(n), rng, {}))
        known: dict[Context, np.ndarray] = {}
        return [self._spelt(self._drawn(begin, LONGEST_DRAWN, rng, known)) for _ in range(int(n))]

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

    def explain(self, X: Any) -> Any:
        """A frame with a line for each known step: what came, after what, how probable, and what was likeliest.

        `bits` is the surprise, minus the logarithm of the probability to base 2; a step after a gap is judged by what
        is known since the gap. `gain` is how many bits fewer that is than without any context.
        """
        found = self._asked(X)
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


def joined_alphabet(first: Schema, second: Schema) -> Schema:
    """The schema of the first with the symbols of both, in order."""
    (mine,), (theirs,) = first.used, second.used
    symbols = in_order(list(dict.fromkeys([*mine.levels, *theirs.levels])))
    return first.with_field(replace(mine, levels=tuple(symbols), wide=len(symbols) > NARROW_LEVELS))


def _best_alpha(counts: ContextCounts) -> float:
    size = counts.alphabet.predicted
    height: Callable[[float], float] = lambda log: -flat_evidence(counts, np.full(size, np.exp(log)))  # noqa: E731
    found = minimize_scalar(height, bounds=(np.log(1e-6), np.log(1e4)), method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x))
