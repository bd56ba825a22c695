"""Chains: transitions of 10,000,000 steps beside a plain read of their codes, and a chain of letters beside a Counter.

The plain read is NumPy's own sum of the codes, which goes over the same bytes once and keeps one number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from benchmarks.timing import Bound, Ratio, Result, race

STEPS, SYMBOLS = 10_000_000, 26
LINES, LINE = 20_000, 40


def codes() -> np.ndarray:
    return np.random.default_rng(0).integers(1, SYMBOLS + 1, STEPS).astype(np.uint8)


def lines() -> list[str]:
    letters = np.random.default_rng(1).integers(97, 97 + SYMBOLS, (LINES, LINE)).astype(np.uint8)
    return [row.tobytes().decode() for row in letters]


def counted(texts: list[str]) -> Counter[tuple[str, str]]:
    """Pairs of letters as Python counts them."""
    found: Counter[tuple[str, str]] = Counter()
    for text in texts:
        found.update(pairwise(text))
    return found


def run(rounds: int) -> Iterator[Result]:
    import softcount as sc
    from softcount.kernels.transitions import count_pairs

    steps = codes()
    borders = np.array([0, STEPS])
    best = race(
        {"ours": lambda _: count_pairs(steps, borders, None, SYMBOLS + 2), "read": lambda _: steps.sum()},
        5 * rounds,
        (1,),
    )
    times = best["ours", 1] / best["read", 1]
    yield Bound(f"transitions of {STEPS:,} steps, in plain reads of their codes", times, "", 2.0, "NumPy's sum")
    texts = lines()
    chain = sc.MarkovChain(1, prior=0).fit(texts)
    alike = counted(texts)
    names = chain.symbols_
    for (before, after), count in list(alike.items())[:50]:
        row = chain.counts_.levels[1]
        key = (names.index(before) + 1) * chain.counts_.alphabet.base + names.index(after) + 1
        assert row.counts[np.searchsorted(row.keys, key)] == count
    work = f"a chain of {LINES * LINE:,} letters in {LINES:,} lines, from strings to transitions"
    found = race(
        {"ours": lambda _: sc.MarkovChain(1, prior=0).fit(texts), "Counter": lambda _: counted(texts)}, rounds, (1,)
    )
    yield Ratio(work, 1, found["ours", 1], found["Counter", 1], "collections.Counter")
