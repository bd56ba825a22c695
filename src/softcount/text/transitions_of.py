"""Sequences as documents whose words are transitions: what came, after which steps.

A transition is written `home → buy`; at the beginning of a sequence nothing stands before: ` → home`. With an order
of two there are two steps before: `home → shop → buy`, and at the beginning ` →  → home`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from softcount.chains.context_counts import Alphabet, digits_of, steps_of
from softcount.errors import DataError
from softcount.text.word_blocks import WordBlock
from softcount.text.word_list import Words
from softcount.text.word_rules import Reading

TO = " → "
"""What stands between the steps of a transition."""
MOST_TRANSITIONS = 1_000_000
"""Transitions that a column may have, met or not."""


def transition_block(rows: Sequence[Sequence[Any] | str | None], reading: Reading, key: object) -> WordBlock:
    """How often each row has each transition; None in a sequence is a gap, and no row has a transition over one.

    >>> block = transition_block(["aba", None], Reading("steps", lowercase=False), "clicks")
    >>> list(block.words), block.counts.tolist()
    ([' → a', 'a → b', 'b → a'], [1, 1, 1])
    """
    steps = [_split(row, reading) for row in rows]
    flat = [step for row in steps for step in row]
    place = {symbol: at for at, symbol in enumerate(dict.fromkeys(x for x in flat if x is not None), start=1)}
    odd = next((symbol for symbol in place if TO.strip() in symbol), None)
    if odd is not None:
        raise DataError(f"column {key!r} has the step {odd!r}: steps of sequences cannot hold an arrow. Rename it.")
    codes = np.array([0 if step is None else place[step] for step in flat], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum([len(row) for row in steps])]).astype(np.int64)
    alphabet, order = Alphabet(len(place), ends=True), reading.ngrams[0]
    digits, begins = alphabet.digits(codes, starts)
    found = steps_of(digits, begins, alphabet, order)
    of = np.repeat(np.arange(len(rows)), np.diff(begins))[found.rows]
    age = found.rows - begins[of]
    kept = (digits[found.rows] <= len(place)) & (found.known == np.minimum(age, order))
    pairs, counts = np.unique(np.stack([of[kept], found.keys[order][kept]]), axis=1, return_counts=True)
    keys, ids = np.unique(pairs[1], return_inverse=True)
    ends = np.searchsorted(pairs[0], np.arange(len(rows) + 1))
    words = _write_pairs(keys, alphabet, [*place], order)
    return WordBlock(ends.astype(np.int64), ids.ravel().astype(np.int32), counts.astype(np.int32), Words.of(words))


def _split(row: Sequence[Any] | str | None, reading: Reading) -> list[str | None]:
    if row is None:
        return []
    if isinstance(row, str):
        return list(row) if reading.pattern is None else list(re.findall(reading.pattern, row))
    return [None if step is None or step != step or step == "" else str(step) for step in row]


def _write_pairs(keys: np.ndarray, alphabet: Alphabet, symbols: list[str], order: int) -> list[str]:
    """Transitions as text, nothing being written where nothing was before."""
    names = ["", *symbols]
    return [TO.join(names[digit] for digit in digits) for digits in digits_of(keys, alphabet.base, order + 1).tolist()]


def symbols_in(words: Sequence[str]) -> list[str]:
    """The steps that transitions are between, in the order of their spelling."""
    return sorted({step for word in words for step in word.split(TO) if step})


def all_transitions(words: Words, order: int) -> Words:
    """Every transition between the steps that some of them are between, met or not, in the order of their spelling.

    Those after one context stand together, as many as there are steps, and in the same order after each.
    """
    symbols = symbols_in(list(words))
    size = transitions_of(len(symbols), order)
    if size > MOST_TRANSITIONS:
        raise DataError(
            f"{len(symbols):,} different steps have {size:,} transitions at order {order}, more than "
            f"{MOST_TRANSITIONS:,}. Choose a smaller order, or give rare steps one name."
        )
    if size == len(words):
        return words
    contexts = [
        (*[""] * (order - length), *before) for length in range(order + 1) for before in product(symbols, repeat=length)
    ]
    every = Words.of([TO.join((*context, symbol)) for context in contexts for symbol in symbols])
    return every.take(every.order())


def transitions_of(symbols: int, order: int) -> int:
    """How many transitions there are between so many steps."""
    return symbols * sum(int(symbols**length) for length in range(order + 1))


def symbols_behind(transitions: int, order: int) -> int:
    """Between how many steps there are so many transitions; 0 where no number of steps has them.

    >>> symbols_behind(20, 1), symbols_behind(transitions_of(7, 3), 3), symbols_behind(5, 1)
    (4, 7, 0)
    """
    near = round(transitions ** (1 / (order + 1)))
    return next((m for m in range(max(near - order - 1, 0), near + 2) if transitions_of(m, order) == transitions), 0)
