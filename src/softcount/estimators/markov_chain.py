"""Markov chains: what comes next, from how often it came after the same steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from msgspec.structs import replace
from scipy.optimize import minimize_scalar
from sklearn.utils.validation import check_is_fitted

from softcount.chains.counts import (
    GAP,
    Alphabet,
    ContextCounts,
    Predictions,
    back_off,
    count_contexts,
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
from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.base import Estimator
from softcount.estimators.chain_inputs import CodedSequences, coded, coded_as
from softcount.estimators.chain_reports import ChainReports
from softcount.estimators.other_faces import ChainFace
from softcount.estimators.pages_above import Reporting
from softcount.estimators.parameters import Parameter
from softcount.priors import Dirichlet
from softcount.table import NARROW_LEVELS, Schema
from softcount.table.levels import in_order

BACK_OFF = "kneser-ney"
"""The prior of contexts that leave a part to what shorter ones predict."""


def _check_prior(name: str, value: Any) -> None:
    if isinstance(value, str):
        raise DataError(f"{name}={value!r} is not known. Use 'kneser-ney', 'auto', a number or a Dirichlet.")
    if not isinstance(value, Dirichlet):
        Parameter(float, "").check(name, value)


class MarkovChain(ChainFace, ChainReports, Reporting, Estimator):
    """A Markov chain of symbols: each step depends on the `order` steps before it and on nothing else.

    `order` is a number; "auto" for the one with the most evidence; or "variable" for contexts that are each as long as
    the evidence has them. `prior` is "kneser-ney", under which a context leaves a part of its counts to what the next
    shorter one predicts; a number of imagined steps to each symbol after every context (0 for plain shares), or a
    `Dirichlet` of such numbers; or "auto", the number with the most evidence. With `ends` the beginning and the end of
    a sequence are states. `symbols` are all that may come, where sequences may not show them all.

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
            return most
        if self.order == "auto":
            return self._best_order(found, alphabet, most)
        if self.order > max(longest, 0):
            at = int(found.sequences.lengths.argmax())
            raise DataError(
                f"order={self.order}, but no sequence is as long: {found.sequences.called(at)}, the longest, has "
                f"{longest - 2 * self.ends + 1} steps. Choose an order of {max(longest, 0)} or less."
            )
        return int(self.order)

    def _best_order(self, found: CodedSequences, alphabet: Alphabet, most: int) -> int:
        if self.prior == BACK_OFF:
            blocks = StepBlocks.of(found.codes, found.starts, alphabet, most, found.weights)
            best, self.evidence_ = best_order(partial(blocks.evidence, learn=back_off), most)
            return best
        counts = count_contexts(found.codes, found.starts, alphabet, most, found.weights)
        best, self.evidence_ = best_order(lambda order: self._flat_evidence(counts.shorter(order)), most)
        return best

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
        from softcount.estimators.chain_files import save_chain

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
