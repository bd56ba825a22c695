"""How often each symbol came after each context, for contexts of every length up to an order: counts that add."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from softcount.errors import DataError
from softcount.kernels.transitions import count_pairs
from softcount.records import dataclass

GAP = -1
"""The digit of a step that is missing."""

MOST_CELLS = 1 << 22
"""Cells of a table of counts that is filled place by place, at least; larger ones are sorted."""


@dataclass(frozen=True, eq=False)
class Alphabet:
    """Digits of steps: 0 before a sequence, 1 to `symbols` the symbols, `symbols` + 1 after its end.

    With `ends` beginning and end are states: contexts may start with the one, and the other is predicted.
    """

    symbols: int
    ends: bool = False

    @property
    def base(self) -> int:
        return self.symbols + 2

    @property
    def predicted(self) -> int:
        """How many different things may come next."""
        return self.symbols + self.ends

    @property
    def most_order(self) -> int:
        """The longest context whose steps, and the symbol after it, are digits of one whole number of 63 bits."""
        return int(62 / np.log2(self.base)) - 1

    def check_order(self, order: int) -> None:
        """Raise where contexts of so many steps do not fit."""
        if order > self.most_order:
            raise DataError(
                f"order={order} is too long for {self.symbols:,} symbols: {self.most_order} is the most. Choose a "
                "smaller order, or order='auto'."
            )

    def digits(self, codes: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The digits of steps end to end (code 0 is a gap), ends put in where they are states, and where each starts.

        `starts` are the first rows of the sequences and the number of rows last, in what goes in and what comes out.
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


@dataclass(frozen=True, eq=False)
class StepKeys:
    """Steps that are to be predicted, each with the contexts it has: `keys[j][i]` is context and symbol, j steps back.

    `known[i]` is how many steps before step i are known, as many as the order at most: longer keys of it are no keys.
    `rows` says where in the digits each stands.
    """

    keys: list[np.ndarray]
    known: np.ndarray
    rows: np.ndarray


def steps_of(digits: np.ndarray, starts: np.ndarray, alphabet: Alphabet, order: int) -> StepKeys:
    """Every step that is known, with its contexts up to the order; a context ends at a gap and where a sequence starts.

    A key has the symbol as its last digit and the oldest step as its first.
    """
    alphabet.check_order(order)
    rows = np.flatnonzero(digits > 0)
    age = rows - np.repeat(starts[:-1], np.diff(starts))[rows]
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
    return StepKeys(keys, known, rows)


def summed(keys: np.ndarray, *values: np.ndarray) -> tuple[np.ndarray, ...]:
    """The different keys in order, and the sums of the values of each.

    Keys come in a few rising runs, which a stable sort merges: choosing the order of a million characters took 4.8 s
    of processor time in place of 6.4.
    """
    if not len(keys):
        return (keys, *(np.zeros(0) for _ in values))
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    firsts = np.flatnonzero(np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]]))
    return (sorted_keys[firsts], *(np.add.reduceat(value[order], firsts) for value in values))


@dataclass(frozen=True, eq=False)
class ContextLevel:
    """Contexts of one length: sorted keys of context and symbol, and how often each was met."""

    keys: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, keys: np.ndarray, weights: np.ndarray | None, size: int) -> ContextLevel:
        """From keys as they come, `size` being one more than the largest may be."""
        if size <= max(MOST_CELLS, 4 * len(keys)):
            table = np.bincount(keys, weights, minlength=0).astype(np.float64)
            return cls.dense(table)
        return cls(*summed(keys, np.ones(len(keys)) if weights is None else weights))

    @classmethod
    def dense(cls, table: np.ndarray) -> ContextLevel:
        """From a table of counts, place by place."""
        found = np.flatnonzero(table)
        return cls(found.astype(np.int64), np.asarray(table[found], dtype=np.float64))

    def plus(self, other: ContextLevel, sign: float = 1.0) -> ContextLevel:
        """The sum of both, or with a sign of -1 what is left."""
        both = np.concatenate([self.counts, sign * other.counts])
        found, counts = summed(np.concatenate([self.keys, other.keys]), both)
        kept = np.abs(counts) > 1e-9 * max(1.0, float(np.abs(counts).max(initial=0.0)))
        return ContextLevel(found[kept], counts[kept])

    def without_oldest(self, base: int, back: int) -> tuple[ContextLevel, ContextLevel]:
        """The same steps by a context one step shorter: how many of them, and of how many longer contexts."""
        short = self.keys % base**back
        found, counts, kinds = summed(short, self.counts, np.ones(len(short)))
        return ContextLevel(found, counts), ContextLevel(found, kinds)


@dataclass(frozen=True, eq=False)
class ContextCounts:
    """Counts for contexts of 0 to `order` steps: `levels[j]` has every step that has j known ones before it.

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
        """How many steps were counted, as they weigh."""
        return float(self.levels[0].counts.sum())

    def __add__(self, other: ContextCounts) -> ContextCounts:
        return self._with(other, 1.0)

    def __sub__(self, other: ContextCounts) -> ContextCounts:
        return self._with(other, -1.0)

    def _with(self, other: ContextCounts, sign: float) -> ContextCounts:
        levels = (mine.plus(theirs, sign) for mine, theirs in zip(self.levels, other.levels, strict=True))
        return replace(self, levels=tuple(levels))

    def shorter(self, order: int) -> ContextCounts:
        """The same with contexts up to this order only."""
        return replace(self, levels=self.levels[: order + 1])

    def renamed(self, places: np.ndarray, symbols: int) -> ContextCounts:
        """In another alphabet: `places[i]` is the new digit of symbol i + 1."""
        new = Alphabet(symbols, self.alphabet.ends)
        new.check_order(self.order)
        moved = np.concatenate([[0], places, [symbols + 1]]).astype(np.int64)
        if symbols == self.alphabet.symbols and (moved == np.arange(len(moved))).all():
            return self
        levels = []
        for back, level in enumerate(self.levels):
            digits = _digits(level.keys, self.alphabet.base, back + 1)
            keys = (moved[digits] * new.base ** np.arange(back + 1)).sum(axis=1)
            order = np.argsort(keys)
            levels.append(ContextLevel(keys[order], level.counts[order]))
        return ContextCounts(new, tuple(levels))

    def starting(self, back: int) -> ContextLevel:
        """The steps whose context of this length is all they have: those at the start and after gaps."""
        if back == self.order:
            return self.levels[back]
        longer, _ = self.levels[back + 1].without_oldest(self.alphabet.base, back + 1)
        return self.levels[back].plus(longer, -1.0)


def _digits(keys: np.ndarray, base: int, count: int) -> np.ndarray:
    """(keys x digits) the last digit first."""
    return np.asarray(keys[:, None] // base ** np.arange(count) % base)


def digits_of(keys: np.ndarray, base: int, count: int) -> np.ndarray:
    """(keys x digits) of contexts, the oldest step first."""
    return _digits(keys, base, count)[:, ::-1]


def count_contexts(
    codes: np.ndarray, starts: np.ndarray, alphabet: Alphabet, order: int, weights: np.ndarray | None = None
) -> ContextCounts:
    """Counts of steps end to end: codes from 1 up, 0 for a gap; `weights` is one for each sequence.

    A step after a gap has only the context since the gap, and one at the start only what came before it.
    """
    alphabet.check_order(order)
    if order <= 1 and not alphabet.ends and alphabet.base**2 <= MOST_CELLS:
        return _plain(codes, starts, alphabet, order, weights)
    digits, begins = alphabet.digits(codes, starts)
    found = steps_of(digits, begins, alphabet, order)
    each = None if weights is None else np.repeat(weights, np.diff(begins))[found.rows]
    levels = []
    for back, keys in enumerate(found.keys):
        has = found.known >= back
        size = alphabet.base ** (back + 1)
        levels.append(ContextLevel.of(keys[has], None if each is None else each[has], size))
    return ContextCounts(alphabet, tuple(levels))


def _plain(
    codes: np.ndarray, starts: np.ndarray, alphabet: Alphabet, order: int, weights: np.ndarray | None
) -> ContextCounts:
    """Symbols and pairs of them in one pass over the codes."""
    alone, pairs = count_pairs(codes, starts, weights, alphabet.base)
    levels = (ContextLevel.dense(alone), ContextLevel.dense(pairs.ravel()))
    return ContextCounts(alphabet, levels[: order + 1])
