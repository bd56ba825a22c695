"""Markov chains again, in plain loops over steps: counts, shares, Kneser and Ney's back-off, gaps by every path."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

BEGIN, END = "<begin>", "<end>"
Context = tuple[Any, ...]
Table = Mapping[Context, Mapping[Any, float]]


def written_out(sequence: Sequence[Any], ends: bool) -> list[Any]:
    return [BEGIN, *sequence, END] if ends else list(sequence)


def counted(
    sequences: Iterable[Sequence[Any]], order: int, ends: bool, weights: Sequence[float] | None = None
) -> list[dict[Context, Counter[Any]]]:
    """For each length of context, how often each symbol came after it."""
    levels: list[dict[Context, Counter[Any]]] = [defaultdict(Counter) for _ in range(order + 1)]
    for at, sequence in enumerate(sequences):
        steps = written_out(sequence, ends)
        for place, symbol in enumerate(steps):
            if symbol is None or symbol == BEGIN:
                continue
            for back in range(order + 1):
                context = tuple(steps[place - back : place]) if place >= back else None
                if context is None or None in context:
                    break
                levels[back][context][symbol] += 1.0 if weights is None else weights[at]
    return levels


def flat_after(
    levels: Sequence[Table], alpha: float, after: Sequence[Any], size: int, context: Context
) -> dict[Any, float]:
    """Shares with alpha imagined steps, by the longest context that was met."""
    back = max(
        (j for j in range(len(levels)) if j <= len(context) and levels[j].get(context[len(context) - j :])), default=0
    )
    own = levels[back].get(context[len(context) - back :], {})
    total = sum(own.values()) + alpha * size
    return {symbol: (own.get(symbol, 0.0) + alpha) / total for symbol in after}


def kneser_ney_after(
    levels: Sequence[Table], after: Sequence[Any], context: Context, otherwise: Sequence[tuple[float, float]]
) -> dict[Any, float]:
    """Interpolated, with three discounts for each length; where none can be told, `otherwise` one and a strength."""
    shared = [dict(levels[-1])]
    for back in range(len(levels) - 2, -1, -1):
        kinds: dict[Context, Counter[Any]] = defaultdict(Counter)
        longer: dict[Context, Counter[Any]] = defaultdict(Counter)
        for long, row in levels[back + 1].items():
            for symbol, count in row.items():
                kinds[long[1:]][symbol] += 1
                longer[long[1:]][symbol] += count
        for short, row in levels[back].items():
            for symbol, count in row.items():
                kinds[short][symbol] += count - longer[short][symbol]
        shared.insert(0, kinds)
    chances = dict.fromkeys(after, 1.0 / len(after))
    for back, table in enumerate(shared):
        if back > len(context):
            break
        row = table.get(context[len(context) - back :])
        if not row:
            continue
        taken, strength = discounts(table), 0.0
        if taken is None:
            discount, strength = otherwise[back]
            taken = dict.fromkeys((1, 2, 3), discount)
        kept = {symbol: count - taken[min(count, 3)] for symbol, count in row.items() if count}
        left = sum(row.values()) - sum(kept.values()) + strength
        chances = {x: (kept.get(x, 0.0) + left * p) / (sum(row.values()) + strength) for x, p in chances.items()}
    return chances


def discounts(table: Table) -> dict[float, float] | None:
    """Chen and Goodman's, from how many counts are 1, 2, 3 and 4."""
    every = [count for row in table.values() for count in row.values() if count]
    one, two, three, four = (every.count(size) for size in (1, 2, 3, 4))
    if not (one and two):
        return None
    share = one / (one + 2 * two)
    if not (three and four):
        return dict.fromkeys((1, 2, 3), share)
    raw = {1: 1 - 2 * share * two / one, 2: 2 - 3 * share * three / two, 3: 3 - 4 * share * four / three}
    return {size: min(max(d, share / 10), size - 0.01) for size, d in raw.items()}


def log_probability(after: Any, sequence: Sequence[Any], symbols: Sequence[Any], ends: bool, order: int) -> float:
    """By every way to fill the gaps; `after(context)` says what comes next."""
    gaps = [place for place, symbol in enumerate(sequence) if symbol is None]
    total = 0.0
    for filling in product(symbols, repeat=len(gaps)):
        filled = list(sequence)
        for place, symbol in zip(gaps, filling, strict=True):
            filled[place] = symbol
        steps, chance = written_out(filled, ends), 1.0
        for place, symbol in enumerate(steps):
            if symbol != BEGIN:
                chance *= after(tuple(steps[max(0, place - order) : place]))[symbol]
        total += chance
    return float(np.log(total)) if total > 0 else -np.inf
