"""Markov chains of symbols: the next step, from how often it followed the same steps before it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from sklearn.utils.validation import check_is_fitted

from softcount.chains.chain import Chain, ChainShape, Context, hitting_times, stationary
from softcount.chains.counts import (
    GAP,
    Alphabet,
    ContextCounts,
    ContextLevel,
    Predictions,
    back_off,
    count_contexts,
    flat_predictions,
)
from softcount.chains.order import LONGEST, best_alpha, best_order, context_tree
from softcount.core import remedies
from softcount.errors import DataError, ModelFileError
from softcount.estimators import inputs
from softcount.estimators.base import SequenceEstimator
from softcount.estimators.docstrings import IGNORED, SEQUENCE_WEIGHT
from softcount.estimators.inputs import ArrayLike, RandomState, attribute
from softcount.estimators.parameters import SETTLED, Parameter, check_arguments, check_whole
from softcount.estimators.result_frames import Frame, arrow_table, frame_like
from softcount.files.codec import Arrays, Document, decode, encode, key_of
from softcount.learn.record import retry_wider
from softcount.priors import Dirichlet
from softcount.run.local import Runner
from softcount.sequences import Sequences, open_sequences
from softcount.sources import wording
from softcount.table import NARROW_LEVELS, Chunk, Schema, Table
from softcount.table.levels import in_order
from softcount.table.schema import MOST_LEVELS, Field, Key, Kind, apart

KNESER_NEY = "kneser-ney"
LONGEST_DRAWN = 100_000
"""Steps after which a drawn sequence is cut if its end does not come."""
CHARACTER = "character"
"""The column of steps that are characters of a text."""


class CodedSequences(Struct, frozen=True, eq=False):
    """Codes of all steps end to end (0 is missing, symbols from 1), and the schema with the symbols."""

    sequences: Sequences
    codes: np.ndarray
    schema: Schema

    @property
    def symbols(self) -> list[Any]:
        return list(self.schema.used[0].levels)

    @classmethod
    def of_any(cls, X: Any, weights: Any, ends: bool, symbols: Sequence[Any] | None) -> CodedSequences:
        """Sequences in the alphabet that they have, in order; `symbols` are in it whether they occur or not."""
        sequences = _open_symbols(X, weights, empty=ends)
        levels = None if symbols is None else {sequences.source.keys[0]: list(symbols)}

        def read(table: Table) -> CodedSequences:
            chunks = list(table.chunks())
            settled = table.settle()
            return cls(sequences, _codes([settled.recoded(chunk) for chunk in chunks]), settled.schema)

        found = retry_wider(sequences.table(kinds="categorical", levels=levels), read, Runner())
        if not found.symbols:
            raise DataError("every step is missing. A chain needs at least one symbol.")
        if symbols is not None:
            known = set(symbols)
            other = [place for place, symbol in enumerate(found.symbols, start=1) if symbol not in known]
            found._refuse_codes(np.isin(found.codes, other), "is not one of the `symbols` given")
        return found

    @classmethod
    def of_alphabet(cls, X: Any, weights: Any, schema: Schema) -> CodedSequences:
        """Sequences in the alphabet of a chain; another symbol raises an error."""
        sequences = _open_symbols(X, weights, empty=True)
        own = Schema((replace(schema.used[0], key=sequences.source.keys[0]),), schema.missing)
        found = cls(sequences, _codes(list(sequences.table(schema=own).chunks())), schema)
        found._refuse_codes(found.codes > len(found.symbols), "did not occur in the sequences of the fit")
        return found

    def _refuse_codes(self, wrong: np.ndarray, what: str) -> None:
        if wrong.any():
            row = int(np.argmax(wrong))
            cell = self.sequences.source.table.column(0)[row].as_py()
            raise DataError(
                f"{self.sequences.place(row)}: {wording.cell(cell)} {what}. Give None for a step that is not known, "
                "or fit with symbols=[...], a list of all possible symbols."
            )


def _open_symbols(X: Any, weights: Any, empty: bool) -> Sequences:
    sequences = open_sequences(X, weights=weights, empty=empty)
    keys = sequences.source.keys
    if len(keys) > 1:
        raise DataError(
            f"a chain is of one column, but a step has {len(keys)}: {wording.and_others(keys)}. Name one: "
            f"{remedies.either('read_sequences(..., columns=[...])', '--symbols COL')}."
        )
    return sequences


def _codes(chunks: list[Chunk]) -> np.ndarray:
    parts = [chunk.codes if chunk.codes.shape[1] else chunk.wide for chunk in chunks]
    return np.concatenate([part[:, 0] for part in parts]) if parts else np.zeros(0, dtype=np.uint8)


def _check_prior(name: str, value: Any) -> None:
    if isinstance(value, str):
        raise DataError(f"{name}={value!r} is not known. Use 'kneser-ney', 'auto', a number or a Dirichlet.")
    if not isinstance(value, Dirichlet):
        Parameter(float, "").check(name, value)


class SavedChain(Struct, frozen=True):
    """What a chain counted; the schema has one column of symbols."""

    order: int
    column: Key
    missing: tuple[str, ...]
    symbols: tuple[Any, ...]
    notes: list[str]
    evidence: tuple[tuple[int, float], ...]
    levels: tuple[ContextLevel, ...]


def _check_level(level: ContextLevel, alphabet: Alphabet, back: int) -> None:
    keys, counts = level.keys, level.counts
    if keys.dtype != np.int64 or counts.dtype != np.float64 or keys.ndim != 1 or keys.shape != counts.shape:
        raise ModelFileError("its keys and counts are not one for one.")
    if len(keys) and (keys[0] < 0 or keys[-1] >= alphabet.base ** (back + 1) or (np.diff(keys) <= 0).any()):
        raise ModelFileError("its contexts are not in order, or none of this alphabet.")
    last = keys % alphabet.base
    if ((last < 1) | (last > alphabet.predicted)).any() or not (np.isfinite(counts) & (counts > 0)).all():
        raise ModelFileError("its counts are not those of symbols.")
    if back == 0 and not len(keys):
        raise ModelFileError("nothing was counted.")


class MarkovChain(SequenceEstimator):
    """A Markov chain of symbols: each step depends on the `order` steps before it and on nothing else.

    Sequences may have any form that `read_sequences` accepts; strings are sequences of characters. No transition into a
    missing step or out of it is counted. The probability of a sequence is summed over the possible symbols of its
    missing steps. The first steps of a sequence are predicted from the fewer steps before them.

    See Also
    --------
    HiddenMarkov : States that are not observed, with steps of any columns.
    read_sequences : Reads sequences from tables, files and folders.
    families.Markov : A column of short sequences as one column of a table.

    References
    ----------
    .. [1] R. Kneser and H. Ney (1995).
       "Improved backing-off for m-gram language modeling". ICASSP 1995, 181-184.
    .. [2] C. C. Strelioff, J. P. Crutchfield and A. W. Huebler (2007). "Inferring Markov chains: Bayesian estimation,
       model comparison, entropy rate, and out-of-class modeling". Physical Review E 76, 011106.
    .. [3] F. M. J. Willems, Y. M. Shtarkov and T. J. Tjalkens (1995). "The context-tree weighting method: basic
       properties". IEEE Transactions on Information Theory 41 (3), 653-664.

    Examples
    --------
    >>> chain = MarkovChain(prior=0).fit(["aababb", "abba"])
    >>> chain.symbols_, chain.transitions_
    (['a', 'b'], array([[0.25, 0.75],
           [0.5 , 0.5 ]]))
    >>> chain.predict(["ab", "ba"]).tolist()
    ['a', 'b']
    """

    _learned: ClassVar = "counts_"
    _arguments: ClassVar = {
        "X": ("list, str, DataFrame, Arrow table, file name or `read_sequences(...)`", "Sequences."),
        "y": IGNORED,
        "sample_weight": SEQUENCE_WEIGHT,
        "n_samples": ("int", "Number of sequences."),
        "other": ("", "A fitted chain of the same order."),
    }
    counts_: Annotated[ContextCounts, "Counts of every symbol after every context."]
    predictions_: Annotated[Predictions, "Probabilities of the next symbol, by length of context."]
    schema_: Annotated[Schema, "The column of symbols, with its alphabet."]
    order_: Annotated[int, "Number of steps that the next one depends on: the given one, or the one chosen."]
    evidence_: Annotated[dict[int, float], "Log marginal likelihood of the orders that were tried."]
    input_notes_: Annotated[list[str], "Remarks on the sequences that were read."]

    _varied: ClassVar = SETTLED | {
        "prior": Parameter(
            "float or Dirichlet",
            "'kneser-ney' moves a part of the counts of a context to the next shorter context. A number is the "
            "prior count "
            "of each symbol after every context; 'auto' chooses that number by marginal likelihood.",
            (KNESER_NEY, "auto"), checked=_check_prior,
        ),
    }  # fmt: skip

    def __init__(
        self,
        order: Any = 1,
        prior: Any = KNESER_NEY,
        ends: bool = False,
        symbols: Any = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self._keep_parameters(locals())

    # -- learning

    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Count the steps of sequences.

        Parameters
        ----------
        X : list, str, DataFrame, Arrow table, file name or `read_sequences(...)`
            Sequences of symbols. A string is a sequence of characters.
        """
        self._check_settings()
        found = CodedSequences.of_any(X, sample_weight, self.ends, self.symbols)
        self.schema_, self.evidence_, self.input_notes_ = found.schema, {}, list(found.sequences.notes)
        alphabet, lengths = Alphabet(len(found.symbols), self.ends), found.sequences.lengths
        longest = int(lengths.max()) - 1 + 2 * self.ends
        most = min(longest, alphabet.most_order, LONGEST)
        if self.order == "auto":
            rows = found.codes, found.sequences.starts, found.sequences.weights
            prior = None if self._backs_off else self._alpha
            self.order_, self.evidence_ = best_order(*rows, alphabet, most, prior)
        else:
            self.order_ = int(most if self.order == "variable" else self.order)
        if self.order_ > max(longest, 0):
            raise DataError(
                f"order={self.order}, but no sequence is as long: {found.sequences.called(int(lengths.argmax()))}, the "
                f"longest, has {longest - 2 * self.ends + 1} steps. Choose an order of {max(longest, 0)} or less."
            )
        return self._set_counts(self._count(found))

    def partial_fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add the steps of further sequences. New symbols extend the alphabet."""
        if not hasattr(self, "counts_"):
            return self.fit(X, y, sample_weight)
        found = CodedSequences.of_any(X, sample_weight, self.ends, self.symbols)
        return self._add(found.schema, self._count(found))

    def merge(self, other: MarkovChain) -> Self:
        """Return a new chain with the counts of both.

        Examples
        --------
        >>> both = MarkovChain(prior=0).fit(["abab"]).merge(MarkovChain(prior=0).fit(["aab"]))
        >>> both.transitions_
        array([[0.25, 0.75],
               [1.  , 0.  ]])
        """
        inputs.refuse_unlike(self, other, MarkovChain)
        for name, mine, theirs in (("order", self.order_, other.order_), ("ends", self.ends, other.ends)):
            if mine != theirs:
                raise DataError(f"the chains differ in {name}: {mine!r} and {theirs!r}. Fit both with the same.")
        merged = self._like_this("order_", "evidence_", "input_notes_", "schema_", "counts_")
        return merged._add(other.schema_, other.counts_)

    def forget(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Subtract sequences that were learned from.

        Raises
        ------
        DataError
            If a count would fall below zero, or nothing would be left.
        """
        left = self.counts_ - self._count(self._read(X, sample_weight))
        if any((level.counts < 0).any() for level in left.levels):
            raise DataError("these sequences hold steps that were never counted, so they cannot be forgotten.")
        if not left.steps:
            raise DataError("forget would remove all counts of the chain. Keep some sequences.")
        return self._set_counts(left)

    def _count(self, found: CodedSequences) -> ContextCounts:
        alphabet, rows = Alphabet(len(found.symbols), self.ends), found.sequences
        return count_contexts(found.codes, rows.starts, alphabet, self.order_, rows.weights)

    def _add(self, schema: Schema, counts: ContextCounts) -> Self:
        """Add counts, in the alphabet of both."""
        (mine,), (theirs,) = self.schema_.used, schema.used
        symbols = in_order(list(dict.fromkeys([*mine.levels, *theirs.levels])))
        digit = {symbol: at for at, symbol in enumerate(symbols, start=1)}
        first, second = (
            part.rename(np.array([digit[symbol] for symbol in spec.levels]), len(symbols))
            for part, spec in ((self.counts_, mine), (counts, theirs))
        )
        self.schema_ = self.schema_.with_field(replace(mine, levels=tuple(symbols), wide=len(symbols) > NARROW_LEVELS))
        return self._set_counts(first + second)

    def _set_counts(self, counts: ContextCounts) -> Self:
        """Keep counts, and the predictions that follow from them."""
        self.counts_, size = counts, counts.alphabet.predicted
        if self.order == "variable":
            # Kneser-Ney: one prior step in all after a context that may be split.
            alpha = np.full(size, 1.0 / size) if self._backs_off else np.maximum(self._alpha(counts), 1e-3)
            counts = context_tree(counts, alpha)
        self.predictions_ = back_off(counts) if self._backs_off else flat_predictions(counts, self._alpha(counts))
        return self

    @property
    def _backs_off(self) -> bool:
        return isinstance(self.prior, str) and self.prior == KNESER_NEY

    def _alpha(self, counts: ContextCounts) -> np.ndarray:
        """The prior counts of everything that may come next."""
        size = counts.alphabet.predicted
        if not isinstance(self.prior, Dirichlet):
            return np.full(size, best_alpha(counts) if self.prior == "auto" else float(self.prior))
        alpha = np.atleast_1d(self.prior.alpha)
        if self.prior.levels is None and len(alpha) != size:
            raise DataError(
                f"the Dirichlet prior has {len(alpha)} numbers, but {size} things may come next. Give one for each, or "
                "name their levels."
            )
        given = dict(zip(self.prior.levels or self.next_symbols_, alpha, strict=False))
        return np.array([float(given.get(symbol, 0.0)) for symbol in self.next_symbols_], dtype=np.float64)

    # -- answers on sequences

    @property
    def _chain(self) -> Chain:
        return Chain(self._fitted, self.predictions_)

    def _read(self, X: Any, weights: Any = None) -> CodedSequences:
        check_is_fitted(self)
        return CodedSequences.of_alphabet(X, weights, self.schema_)

    def _logs(self, X: Any, weights: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The log-probability of each sequence, how many of its steps are known, and its weight."""
        found = self._read(X, weights)
        return *self._chain.log_probabilities(found.codes, found.sequences.starts), found.sequences.weights

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-probability of each sequence; a missing step is summed over all symbols."""
        return self._logs(X)[0]

    def _total(self, X: Any, sample_weight: Any = None) -> tuple[float, float, float]:
        logs, steps, weights = self._logs(X, sample_weight)
        weights = np.ones(len(logs)) if weights is None else weights
        return float(weights @ logs), float(weights.sum()), float(weights @ steps)

    def perplexity(self, X: Any) -> float:
        """Return the perplexity per known step: exp of minus the mean log-probability.

        It is the number of equally probable symbols that would be as hard to predict.

        Returns
        -------
        float
            Perplexity.

        Examples
        --------
        >>> round(MarkovChain(prior=0).fit(["aababb", "abba"]).perplexity(["abab"]), 3)
        1.633
        """
        logs, steps, _ = self._logs(X)
        if not steps.sum():
            raise DataError("no step of these sequences is known, so the perplexity is not defined.")
        return float(np.exp(-logs.sum() / steps.sum()))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each symbol that may follow each sequence.

        Returns
        -------
        ndarray of shape (n_sequences, n_symbols)
            Probabilities in the order of `next_symbols_`.
        """
        found = self._read(X)
        return self._chain.next_probabilities(found.codes, found.sequences.starts)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable next symbol of each sequence.

        Returns
        -------
        ndarray of shape (n_sequences,)
            Symbols.

        Examples
        --------
        >>> MarkovChain(order=2).fit(["abcabcabc"]).predict(["ab", "bc"]).tolist()
        ['c', 'a']
        """
        names = np.empty(len(self.next_symbols_), dtype=object)
        names[:] = self.next_symbols_
        return np.asarray(names[self.predict_proba(X).argmax(axis=1)])

    def explain(self, X: Any) -> Frame:
        """Return how probable each known step was, and after which context.

        Returns
        -------
        DataFrame
            A line for each known step: `sequence`, `step`, `symbol`, the context `after`, its `probability`, the
            surprise in `bits` (-log2 of the probability), the `gain` in bits over a prediction without context, and the
            `likeliest` symbol. After a missing step the context is empty.
        """
        coded, chain = self._read(X), self._chain
        steps, probabilities = chain.score_steps(coded.codes, coded.sequences.starts)
        rows, digits = steps.rows, steps.digits
        contexts = [
            tuple(digits[row - back : row].tolist())
            for row, back in zip(rows.tolist(), steps.known.tolist(), strict=True)
        ]
        best = {context: int(self.predictions_.after(context).argmax()) for context in set(contexts)}
        with np.errstate(divide="ignore"):
            bits, plain = -np.log2(probabilities), -np.log2(self.predictions_.after(())[digits[rows] - 1])
        names, between = self.next_symbols_, "" if self._is_text else " "
        before = [self.begin_, *map(str, self.symbols_)]
        table = arrow_table(
            {
                "sequence": [str(coded.sequences.names[at]) for at in steps.sequence.tolist()],
                "step": steps.age + 1 - self.ends,
                "symbol": [str(names[digit - 1]) for digit in digits[rows].tolist()],
                "after": [between.join(before[digit] for digit in context if digit != GAP) for context in contexts],
                "probability": probabilities,
                "bits": bits,
                "gain": plain - bits,
                "likeliest": [str(names[best[context]]) for context in contexts],
            }
        )
        return frame_like(X, table)

    def _parts(self, arrays: Arrays) -> Document:
        check_is_fitted(self)
        (spec,) = self.schema_.used
        saved = SavedChain(
            self.order_, spec.key, self.schema_.missing, tuple(self.symbols_), list(self.input_notes_),
            tuple(self.evidence_.items()), tuple(self.counts_.levels),
        )  # fmt: skip
        return {"chain": encode(saved, arrays, "chain")}

    def _restore(self, document: Document, arrays: Arrays) -> None:
        saved = decode(SavedChain, document["chain"], arrays, "chain", "its chain", infinite=("evidence",))
        symbols, order = tuple(map(key_of, saved.symbols)), saved.order
        plain = all(isinstance(symbol, str | int | float | bool) for symbol in symbols)
        if not 0 < len(symbols) <= MOST_LEVELS + 1 or not plain or len(set(symbols)) != len(symbols):
            raise ModelFileError("its symbols are not all different texts or numbers.")
        spec = Field(saved.column, Kind.CATEGORICAL, "symbols", symbols, wide=len(symbols) > NARROW_LEVELS)
        self.schema_ = Schema((spec,), saved.missing)
        self.order_, self.evidence_, self.input_notes_ = order, dict(saved.evidence), saved.notes
        if order < 0 or (type(self.order) is int and order != self.order) or len(saved.levels) != order + 1:
            raise ModelFileError("its order is not that of its settings, or of its counts.")
        alphabet = Alphabet(len(symbols), self.ends)
        alphabet.check_order(order)
        for back, level in enumerate(saved.levels):
            _check_level(level, alphabet, back)
        self._set_counts(ContextCounts(alphabet, saved.levels))

    # -- what was learned

    @property
    def notes_(self) -> list[str]:
        """Remarks on the chosen order and on whether every symbol can be reached."""
        notes = list(self.input_notes_)
        if self.order == "auto":
            tried = ", ".join(f"{order}: {height:,.1f}" for order, height in self.evidence_.items())
            notes.append(f"order {self.order_} has the most evidence (log-evidence by order, {tried})")
        if self.order == "variable":
            kept = sum(len(level.contexts) for level in self.predictions_.levels)
            notes.append(f"{kept:,} contexts are distinguished, of up to {self.predictions_.order} steps")
        return [*notes, f"observed transitions: {self.shape_.describe()}"]

    symbols_: list[Any] = attribute(
        lambda schema: list(schema.used[0].levels), "Symbols of the alphabet, in order.", "schema_"
    )
    end_: str = attribute(partial(apart, "(end)"), "Name of the end of a sequence among the next symbols.", "symbols_")
    begin_: str = attribute(
        partial(apart, "(begin)"), "Name of the beginning of a sequence among the contexts.", "symbols_"
    )

    @property
    def next_symbols_(self) -> list[Any]:
        """Symbols that may come next: the alphabet and, if ends are states, the end."""
        return [*self.symbols_, self.end_] if self.ends else self.symbols_

    @property
    def contexts_(self) -> list[Any]:
        """Contexts of the rows of `transitions_`: symbols for order 1, tuples of them for higher orders.

        For order 1 they are all symbols, after the beginning if that is a state; for higher orders those that occurred.
        """
        return [self._name(context) for context in self._chain.contexts()]

    def _name(self, context: Context) -> Any:
        before = [self.begin_, *self.symbols_]
        names = tuple(before[digit] for digit in context)
        return names[0] if len(names) == 1 and self.predictions_.order == 1 else names

    transitions_: np.ndarray = attribute(
        lambda chain: np.array([chain.predictions.after(context) for context in chain.contexts()]),
        "Probability of each next symbol after each context, shape (n_contexts, n_next_symbols).",
        "_chain",
    )

    @property
    def shares_(self) -> dict[Any, float]:
        """Share of each symbol among the counted steps; with `ends=True` the end is a symbol too."""
        level = self.counts_.levels[0]
        counts = np.bincount(level.keys - 1, level.counts, minlength=self.counts_.alphabet.predicted)
        return dict(zip(self.next_symbols_, (counts / counts.sum()).tolist(), strict=True))

    shape_: ChainShape = attribute(
        Chain.shape,
        "Whether the transitions that occurred lead from every symbol to every other, and with what period.\n\n"
        "If ends are states, another sequence starts after an end.",
        "_chain",
    )
    irreducible_: bool = attribute(
        "irreducible", "Whether the transitions that occurred lead from every symbol to every other.", "shape_"
    )
    period_: int = attribute("period", "Period of the chain: 1 if it is aperiodic.", "shape_")

    def stationary(self) -> dict[Any, float]:
        """Return the stationary distribution: the long-run share of each symbol.

        If ends are states, another sequence starts after an end, and ends have a share too.

        Examples
        --------
        >>> shares = MarkovChain(prior=0).fit(["aababb", "abba"]).stationary()
        >>> {symbol: round(share, 3) for symbol, share in shares.items()}
        {'a': 0.4, 'b': 0.6}
        """
        states, square = self._chain.transitions()
        found = dict.fromkeys(self.next_symbols_, 0.0)
        for state, share in zip(states, stationary(square), strict=True):
            found[self.end_ if state[-1] == 0 else self.symbols_[state[-1] - 1]] += float(share)
        return found

    def hitting_times(self, to: Any) -> dict[Any, float]:
        """Return the expected number of steps from each context until a symbol first occurs.

        Parameters
        ----------
        to : object
            The symbol. If ends are states, the expected remaining length of a sequence is the hitting time of `end_`.

        Returns
        -------
        dict
            Expected steps by context, 0 for the symbol itself.

        References
        ----------
        .. [1] J. G. Kemeny and J. L. Snell (1960).
           Finite Markov Chains. Van Nostrand.

        Examples
        --------
        >>> round(MarkovChain(prior=0).fit(["aababb", "abba"]).hitting_times("b")["a"], 3)
        1.333
        """
        if to not in self.next_symbols_:
            raise DataError(f"{to!r} is not a symbol of the chain. Its symbols are {self.next_symbols_[:8]}.")
        states, square = self._chain.transitions()
        is_end = self.ends and to == self.end_
        digit = 0 if is_end else self.symbols_.index(to) + 1
        target = np.array([state[-1] == digit for state in states])
        times = hitting_times(square, target)
        if is_end:  # an end is where the next sequence begins, which has all of it before it
            times[target] = 1.0 + square[target] @ times
        return {self._name(state): float(time) for state, time in zip(states, times, strict=True)}

    def run_lengths(self) -> dict[Any, float]:
        """Return the expected length of a run of each symbol.

        Returns
        -------
        dict
            Expected number of steps by symbol, 1 or more.

        Examples
        --------
        >>> MarkovChain(prior=0).fit(["aabaab"]).run_lengths()
        {'a': 2.0, 'b': 1.0}
        """
        return {self.symbols_[digit - 1]: length for digit, length in self._chain.run_lengths().items()}

    @check_arguments
    def sample(
        self, n_samples: int = 1, length: int | None = None, start: Any = None, random_state: RandomState = None
    ) -> list[Any]:
        """Draw sequences from the chain.

        Parameters
        ----------
        length : int, default=None
            Steps of each sequence. By default 100, or up to the end of each if ends are states.
        start : list or str, default=None
            Symbols that every sequence begins with.

        Returns
        -------
        list
            The sequences: strings if the steps of the fit were characters, else lists of symbols.
        """
        chain, symbols, begin = self._chain, self.symbols_, []
        n_samples = check_whole("n_samples", n_samples, 0)
        if length is None:
            length = LONGEST_DRAWN if self.ends else 100
        for step, symbol in enumerate([] if start is None else list(start), start=1):
            if symbol not in symbols:
                raise DataError(f"start, step {step}: {symbol!r} is not a symbol of the chain.")
            begin.append(symbols.index(symbol) + 1)
        rng = inputs.make_generator(random_state)
        drawn = chain.sample(begin, [check_whole("length", length, 1)] * n_samples, rng)
        found = [[symbols[digit - 1] for digit in digits] for digits in drawn]
        return ["".join(map(str, sequence)) for sequence in found] if self._is_text else found

    @property
    def _is_text(self) -> bool:
        return bool(self.schema_.used[0].key == CHARACTER)
