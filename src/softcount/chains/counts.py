"""Counts of contexts in sequences, and predictions of the next step with back-off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.lazy import gammaln
from softcount.errors import DataError

GAP = -1
"""Digit of a missing step."""

MOST_CELLS = 1 << 22
"""Tables of up to this many cells, or four per key if that is more, are counted densely; larger ones are sorted."""


class Alphabet(Struct, frozen=True, eq=False):
    """Digits of steps: 0 before a sequence, 1 to `symbols` the symbols, `symbols` + 1 after its end.

    With `ends`, beginning and end are states: contexts may start with the beginning, and the end is predicted.
    """

    symbols: int
    ends: bool = False

    @property
    def base(self) -> int:
        return self.symbols + 2

    @property
    def predicted(self) -> int:
        return self.symbols + self.ends

    @property
    def most_order(self) -> int:
        """Longest context that fits, together with the symbol after it, into one integer of 63 bits."""
        return int(62 / np.log2(self.base)) - 1

    def check_order(self, order: int) -> None:
        if order > self.most_order:
            raise DataError(
                f"order={order} is too long for {self.symbols:,} symbols: {self.most_order} is the most. Choose a "
                "smaller order, or order='auto'."
            )

    def digits(self, codes: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the digits of the steps (GAP for code 0), with ends inserted if they are states, and the new starts.

        `starts` holds the first row of each sequence, then the number of rows, on input and on output.
        """
        plain = codes.astype(np.int64)
        plain[plain == 0] = GAP
        if not self.ends:
            return plain, starts
        begins = starts[:-1] + 2 * np.arange(len(starts) - 1)
        moved = np.append(begins, starts[-1] + 2 * (len(starts) - 1))
        out = np.zeros(moved[-1], dtype=np.int64)
        inside = np.ones(len(out), dtype=bool)
        inside[begins] = inside[moved[1:] - 1] = False
        out[inside], out[moved[1:] - 1] = plain, self.symbols + 1
        return out, moved


class StepKeys(Struct, frozen=True, eq=False):
    """Known steps, each with its contexts: `keys[j][i]` encodes the symbol of step i and the j steps before it.

    `known[i]` is the number of known steps before step i, at most the order; its longer keys are invalid. `digits` are
    those of all steps and `starts` the first of each sequence. Step i is digit `rows[i]`, with `age[i]` digits before
    it in the sequence `sequence[i]`.
    """

    keys: list[np.ndarray]
    known: np.ndarray
    digits: np.ndarray
    starts: np.ndarray
    rows: np.ndarray
    sequence: np.ndarray
    age: np.ndarray


def steps_of(codes: np.ndarray, starts: np.ndarray, alphabet: Alphabet, order: int) -> StepKeys:
    """Return every known step of concatenated sequences with its contexts up to the order.

    A context ends at a gap and at the start of a sequence. The symbol is the last digit of a key, the oldest step the
    first.
    """
    alphabet.check_order(order)
    digits, starts = alphabet.digits(codes, starts)
    rows = np.flatnonzero(digits > 0)
    sequence = np.repeat(np.arange(len(starts) - 1), np.diff(starts))[rows]
    age = rows - starts[sequence]
    key = digits[rows].copy()
    keys, known, power = [key], np.zeros(len(rows), dtype=np.int64), 1
    going = np.ones(len(rows), dtype=bool)
    for back in range(1, order + 1):
        power *= alphabet.base
        before = digits[np.maximum(rows - back, 0)]
        going = going & (age >= back) & (before != GAP)
        known += going
        key = key + np.where(going, before, 0) * power
        keys.append(key)
    return StepKeys(keys, known, digits, starts, rows, sequence, age)


def summed(keys: np.ndarray, *values: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the distinct keys in order, and the sums of the values of each.

    Keys come in a few rising runs, which a stable sort merges: choosing the order of a million characters takes 4.8 s
    of processor time instead of 6.4 s.
    """
    if not len(keys):
        return (keys, *(np.zeros(0) for _ in values))
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    firsts = np.flatnonzero(np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]]))
    return (sorted_keys[firsts], *(np.add.reduceat(value[order], firsts) for value in values))


class ContextLevel(Struct, frozen=True, eq=False):
    """Contexts of one length: sorted keys of context and symbol, and their counts."""

    keys: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, keys: np.ndarray, weights: np.ndarray | None, size: int) -> ContextLevel:
        """Count unsorted keys, all below `size`."""
        if size <= max(MOST_CELLS, 4 * len(keys)):
            table = np.bincount(keys, weights, minlength=0).astype(np.float64)
            return cls.dense(table)
        return cls(*summed(keys, np.ones(len(keys)) if weights is None else weights))

    @classmethod
    def dense(cls, table: np.ndarray) -> ContextLevel:
        found = np.flatnonzero(table)
        return cls(found.astype(np.int64), np.asarray(table[found], dtype=np.float64))

    def plus(self, other: ContextLevel, sign: float = 1.0) -> ContextLevel:
        """Add the counts, or subtract them with a sign of -1. Counts that cancel are dropped."""
        both = np.concatenate([self.counts, sign * other.counts])
        found, counts = summed(np.concatenate([self.keys, other.keys]), both)
        kept = np.abs(counts) > 1e-9 * max(1.0, float(np.abs(counts).max(initial=0.0)))
        return ContextLevel(found[kept], counts[kept])

    def drop_oldest(self, base: int, back: int) -> tuple[ContextLevel, ContextLevel]:
        """Drop the oldest step of each context: return counts of steps, and numbers of distinct longer contexts."""
        short = self.keys % base**back
        found, counts, kinds = summed(short, self.counts, np.ones(len(short)))
        return ContextLevel(found, counts), ContextLevel(found, kinds)


class ContextCounts(Struct, frozen=True, eq=False):
    """Counts for contexts of 0 to `order` steps: `levels[j]` counts every step with j known steps before it.

    >>> letters = Alphabet(2)
    >>> one = count_contexts(np.array([1, 2, 2, 1, 2]), np.array([0, 5]), letters, 1)
    >>> one.levels[1].keys.tolist(), one.levels[1].counts.tolist()  # 1 then 2, 2 then 1, 2 then 2
    ([6, 9, 10], [2.0, 1.0, 1.0])
    >>> (one + one).levels[0].counts.tolist()
    [4.0, 6.0]
    """

    alphabet: Alphabet
    levels: tuple[ContextLevel, ...]

    @property
    def order(self) -> int:
        return len(self.levels) - 1

    @property
    def steps(self) -> float:
        return float(self.levels[0].counts.sum())

    def __add__(self, other: ContextCounts, sign: float = 1.0) -> ContextCounts:
        levels = (mine.plus(theirs, sign) for mine, theirs in zip(self.levels, other.levels, strict=True))
        return replace(self, levels=tuple(levels))

    def __sub__(self, other: ContextCounts) -> ContextCounts:
        return self.__add__(other, -1.0)

    def shorten(self, order: int) -> ContextCounts:
        return replace(self, levels=self.levels[: order + 1])

    def rename(self, places: np.ndarray, symbols: int) -> ContextCounts:
        """Convert the counts to another alphabet: `places[i]` is the new digit of symbol i + 1."""
        new = Alphabet(symbols, self.alphabet.ends)
        new.check_order(self.order)
        moved = np.concatenate([[0], places, [symbols + 1]]).astype(np.int64)
        if symbols == self.alphabet.symbols and (moved == np.arange(len(moved))).all():
            return self
        levels = []
        for back, level in enumerate(self.levels):
            digits = digits_of(level.keys, self.alphabet.base, back + 1)
            keys = (moved[digits] * new.base ** np.arange(back, -1, -1)).sum(axis=1)
            order = np.argsort(keys)
            levels.append(ContextLevel(keys[order], level.counts[order]))
        return ContextCounts(new, tuple(levels))

    def starting(self, back: int) -> ContextLevel:
        """Count the steps that have no longer context: those at the start of a sequence and after gaps."""
        if back == self.order:
            return self.levels[back]
        longer, _ = self.levels[back + 1].drop_oldest(self.alphabet.base, back + 1)
        return self.levels[back].plus(longer, -1.0)


def digits_of(keys: np.ndarray, base: int, count: int) -> np.ndarray:
    """Return the digits of each key, of shape (keys, count), oldest step first."""
    return np.asarray(keys[:, None] // base ** np.arange(count) % base)[:, ::-1]


def count_contexts(
    codes: np.ndarray, starts: np.ndarray, alphabet: Alphabet, order: int, weights: np.ndarray | None = None
) -> ContextCounts:
    """Count the contexts of concatenated sequences: codes from 1 up, 0 for a gap, one weight per sequence.

    A step after a gap has only the context since the gap.
    """
    alphabet.check_order(order)
    if order <= 1 and not alphabet.ends and alphabet.base**2 <= MOST_CELLS:
        from softcount.kernels.transitions import count_pairs  # compiled

        alone, pairs = count_pairs(codes, starts, weights, alphabet.base)
        return ContextCounts(alphabet, (ContextLevel.dense(alone), ContextLevel.dense(pairs.ravel()))[: order + 1])
    found = steps_of(codes, starts, alphabet, order)
    each = None if weights is None else weights[found.sequence]
    levels = []
    for back, keys in enumerate(found.keys):
        has = found.known >= back
        size = alphabet.base ** (back + 1)
        levels.append(ContextLevel.of(keys[has], None if each is None else each[has], size))
    return ContextCounts(alphabet, tuple(levels))


# Predictions after a context, from its counts and from shorter contexts.


class ContextShares(Struct, frozen=True, eq=False):
    """Contexts of one length: the share of each symbol in their own counts, and the `rest` left to a shorter context.

    Keys `firsts[i]` to `firsts[i + 1]` belong to `contexts[i]`; their shares and the rest sum to one.
    """

    keys: np.ndarray
    shares: np.ndarray
    contexts: np.ndarray
    firsts: np.ndarray
    rest: np.ndarray

    @classmethod
    def of(cls, level: ContextLevel, base: int, taken: np.ndarray, strength: float) -> ContextShares:
        """Subtract its discount from each count. The rest of a context is the strength plus all its discounts."""
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

    def after(self, context: int, base: int, others: np.ndarray) -> np.ndarray | None:
        """Return the probability of every symbol after a context; `others` divides the rest.

        None for an unseen context.
        """
        at = int(np.searchsorted(self.contexts, context))
        if at == len(self.contexts) or self.contexts[at] != context:
            return None
        here = slice(self.firsts[at], self.firsts[at + 1])
        out = np.asarray(others * self.rest[at])
        out[self.keys[here] % base - 1] += self.shares[here]
        return out


def _look_up(known: np.ndarray, values: np.ndarray, keys: np.ndarray, default: float) -> np.ndarray:
    if not len(known):
        return np.full(len(keys), default)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[at] == keys, values[at], default)


class Predictions(Struct, frozen=True, eq=False):
    """Probabilities of the next step: `levels[j]` has contexts of j steps, `measure` is the base distribution.

    If contexts are `alone`, each spreads its rest by the measure, else by the prediction of the next shorter context.
    An unseen context predicts as the next shorter one does.

    >>> pair = Alphabet(2)
    >>> counts = count_contexts(np.array([1, 2, 2, 1, 2]), np.array([0, 5]), pair, 1)
    >>> flat_predictions(counts, np.ones(2)).after([1]).tolist()
    [0.25, 0.75]
    """

    alphabet: Alphabet
    levels: tuple[ContextShares, ...]
    measure: np.ndarray
    alone: bool

    @property
    def order(self) -> int:
        return len(self.levels) - 1

    def of_steps(self, keys: Sequence[np.ndarray], known: np.ndarray) -> np.ndarray:
        """Return the probability of each step, given its `keys` and number of `known` steps as in `StepKeys`."""
        nothing = np.asarray(self.measure[keys[0] - 1])
        found = nothing.copy()
        for back, level in enumerate(self.levels[: len(keys)]):
            has = np.flatnonzero(known >= back)
            own = keys[back][has]
            share = _look_up(level.keys, level.shares, own, 0.0)
            rest = _look_up(level.contexts, level.rest, own // self.alphabet.base, np.nan)
            met = ~np.isnan(rest)
            has, share, rest = has[met], share[met], rest[met]
            found[has] = share + rest * (nothing if self.alone else found)[has]
        return found

    def log_probability(self, counts: ContextCounts) -> float:
        """Return the log-probability of all counted steps. Each distinct step is evaluated once."""
        base, found = self.alphabet.base, 0.0
        for back in range(counts.order + 1):
            level = counts.starting(back)
            keys = [level.keys % base ** (length + 1) for length in range(back + 1)]
            with np.errstate(divide="ignore"):
                found += float(level.counts @ np.log(self.of_steps(keys, np.full(len(level.keys), back))))
        return found

    def after(self, context: Sequence[int]) -> np.ndarray:
        """Return the probability of every symbol after these digits, the most recent step last."""
        base, found, key = self.alphabet.base, self.measure.copy(), 0
        for back, level in enumerate(self.levels):
            if back:
                if back > len(context) or context[-back] == GAP:
                    break
                key += int(context[-back]) * base ** (back - 1)
            own = level.after(key, base, self.measure if self.alone else found)
            found = found if own is None else own
        return found


def flat_predictions(counts: ContextCounts, alpha: np.ndarray) -> Predictions:
    """Predict with `alpha` prior counts of each symbol after every context; if they are 0, by relative frequency."""
    prior, base = float(alpha.sum()), counts.alphabet.base
    measure = alpha / prior if prior > 0 else np.full(len(alpha), 1.0 / len(alpha))
    shares = tuple(ContextShares.of(level, base, np.zeros(len(level.keys)), prior) for level in counts.levels)
    return Predictions(counts.alphabet, shares, measure, prior > 0)


# Kneser-Ney discounting: each context leaves part of its counts to the next shorter context.

LEAST_DISCOUNT, MOST_DISCOUNT = 1e-6, 0.995
LEAST_STRENGTH, MOST_STRENGTH = 1e-3, 1e6
STARTS = ((0.5, 1.0), (0.02, 5.0))
"""Initial values of discount and strength in the search for the best."""
LARGEST = 3
"""Counts of at least this have one common discount."""


def back_off(counts: ContextCounts) -> Predictions:
    """Predict with Kneser-Ney discounting; discounts and strengths are estimated for each length of context."""
    alphabet = counts.alphabet
    shares = []
    for level in shared_levels(counts):
        discounts, strength = level_discounts(level, alphabet.base)
        place = np.clip(np.rint(level.counts), 1, LARGEST).astype(np.int64) - 1
        taken = np.minimum(discounts[place], level.counts)
        shares.append(ContextShares.of(level, alphabet.base, taken, strength))
    measure = np.full(alphabet.predicted, 1.0 / alphabet.predicted)
    return Predictions(alphabet, tuple(shares), measure, False)


def shared_levels(counts: ContextCounts) -> list[ContextLevel]:
    """Return the Kneser-Ney counts: steps for the longest contexts, else the number of longer contexts, plus starts."""
    levels = [counts.levels[-1]]
    for back in range(counts.order - 1, -1, -1):
        _, kinds = levels[0].drop_oldest(counts.alphabet.base, back + 1)
        levels.insert(0, kinds.plus(counts.starting(back)))
    return levels


def level_discounts(level: ContextLevel, base: int) -> tuple[np.ndarray, float]:
    """Return the discounts of counts of 1, of 2, and of 3 or more, and the strength of the prior counts.

    They are estimated from the numbers of counts of 1 to 4, or by marginal likelihood if none is 1 or none 2.
    """
    ones, twos, threes, fours = (int(np.count_nonzero(np.rint(level.counts) == size)) for size in (1, 2, 3, 4))
    if not ones or not twos:
        discount, strength = best_discount(level, base)
        return np.full(LARGEST, discount), strength
    share = ones / (ones + 2 * twos)
    if not threes or not fours:
        return np.full(LARGEST, share), 0.0
    raw = (1 - 2 * share * twos / ones, 2 - 3 * share * threes / twos, 3 - 4 * share * fours / threes)
    # Without a floor, a context that has only large counts would leave nothing to symbols never seen after it.
    return np.clip(raw, share / 10, np.arange(1, LARGEST + 1) - 0.01), 0.0


def best_discount(level: ContextLevel, base: int) -> tuple[float, float]:
    """Return the discount of all counts and the strength with the largest marginal likelihood."""
    from scipy.optimize import minimize

    counts = np.maximum(level.counts, 1.0)
    _, firsts = np.unique(level.keys // base, return_index=True)
    totals = np.add.reduceat(counts, firsts) if len(firsts) else np.zeros(0)
    kinds = np.diff(np.append(firsts, len(counts)))
    # Equal counts give equal terms: compute each distinct one once and weight it by its frequency.
    (counts, times), (totals, total_times), (kinds, kind_times) = (
        np.unique(values, return_counts=True) for values in (counts, totals, kinds)
    )
    low = np.array([_logit(LEAST_DISCOUNT), np.log(LEAST_STRENGTH)])
    high = np.array([_logit(MOST_DISCOUNT), np.log(MOST_STRENGTH)])

    def read(point: np.ndarray) -> tuple[float, float]:
        logit, log = np.clip(point, low, high)
        return float(1 / (1 + np.exp(-logit))), float(np.exp(log))

    def loss(point: np.ndarray) -> float:
        discount, strength = read(point)
        ratio = strength / discount
        tables = (kinds - 1) * np.log(discount) + gammaln(ratio + kinds) - gammaln(ratio + 1)
        seats = gammaln(strength + totals) - gammaln(strength + 1)
        inside = gammaln(counts - discount) - gammaln(1 - discount)
        return -float(kind_times @ tables - total_times @ seats + times @ inside)

    options = {"xatol": 1e-4, "fatol": 1e-7, "maxiter": 300}
    starts = [np.array([_logit(discount), np.log(strength)]) for discount, strength in STARTS]
    ends = [minimize(loss, start, method="Nelder-Mead", options=options) for start in starts]
    return read(min(ends, key=lambda end: float(end.fun)).x)


def _logit(share: float) -> float:
    return float(np.log(share) - np.log1p(-share))
