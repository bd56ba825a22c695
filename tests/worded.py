"""Text again in plain loops: documents are strings of words apart by spaces, None where missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

Group = dict[str, Any]


def text_density(model: str, cell: str | None, group: Group, words: Sequence[str]) -> float:
    """The log-probability of a document, by the model of its words; for complement, what it adds to the class."""
    if cell is None:
        return 0.0
    counts = [cell.split().count(word) for word in words]
    if model == "bernoulli":
        pairs = zip(counts, group["probability"], strict=True)
        return math.fsum(_log(p if count else 1 - p) for count, p in pairs)
    if model == "complement":
        return -math.fsum(count * math.log(p) for count, p in zip(counts, group["others"], strict=True))
    ways = math.lgamma(sum(counts) + 1) - math.fsum(math.lgamma(count + 1) for count in counts)
    if "alpha" in group:
        return ways + _one_by_one(counts, group["alpha"])
    return ways + math.fsum(count * _log(p) for count, p in zip(counts, group["probability"], strict=True) if count)


def _one_by_one(counts: Sequence[int], alpha: Sequence[float]) -> float:
    total, mass, so_far = 0.0, math.fsum(alpha), 0
    for count, imagined in zip(counts, alpha, strict=True):
        for seen in range(count):
            total += math.log(imagined + seen) - math.log(mass + so_far)
            so_far += 1
    return total


def text_fit(
    model: str, cells: Sequence[Any], members: Sequence[Sequence[float]], prior: float, how: str, words: Sequence[str]
) -> list[Group]:
    """Each group's parameters from its documents and a prior of `prior` imagined words, or documents, a word."""
    there = [(cell.split(), row) for cell, row in zip(cells, members, strict=True) if cell is not None]
    groups = range(len(members[0]))
    tables = [[math.fsum(row[g] * own.count(word) for own, row in there) for word in words] for g in groups]
    sizes = [math.fsum(row[g] for _, row in there) for g in groups]
    holding = [[math.fsum(row[g] for own, row in there if word in own) for word in words] for g in groups]
    if model == "bernoulli":
        return [_there(held, size, prior, how) for held, size in zip(holding, sizes, strict=True)]
    whole = sum(map(math.fsum, tables)) / sum(sizes) if sum(sizes) else 0.0
    found = []
    for g in groups:
        length = math.fsum(tables[g]) / sizes[g] if sizes[g] else whole
        others = [math.fsum(tables[h][i] for h in groups if h != g) for i in range(len(words))]
        group = {"probability": _shares(tables[g], prior, how), "length": length}
        group |= {"alpha": [n + prior for n in tables[g]], "others": _shares(others, prior, how)}
        found.append(group)
    return found


def _there(held: Sequence[float], size: float, prior: float, how: str) -> Group:
    extra = {"ml": 0.0, "map": prior - 1.0}.get(how, prior)
    total = size + 2 * extra
    shares = [(n + extra) / total if total > 0 else 0.5 for n in held]
    return {"probability": shares, "length": math.fsum(shares)}


def _shares(counts: Sequence[float], prior: float, how: str) -> list[float]:
    extra = {"ml": 0.0, "map": prior - 1.0}.get(how, prior)
    total = math.fsum(counts) + extra * len(counts)
    return [(n + extra) / total if total > 0 else 1 / len(counts) for n in counts]


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


# -- sequences of characters


def _transitions(cell: str, order: int) -> list[tuple[str, str]]:
    """What stands before each character, the beginning being a blank of its own, and the character."""
    found = []
    for place, symbol in enumerate(cell):
        before = cell[max(0, place - order) : place]
        found.append((before.rjust(order, "^"), symbol))
    return found


def _contexts(words: Sequence[str]) -> dict[str, list[str]]:
    """The steps after each context, as the words of a column have them."""
    found: dict[str, list[str]] = {}
    for word in words:
        *before, symbol = word.split(" \u2192 ")
        found.setdefault("".join(step or "^" for step in before), []).append(symbol)
    return found


def sequence_density(order: int, cell: str | None, group: Group, words: Sequence[str]) -> float:
    """The log-probability of a sequence of so many steps."""
    contexts = _contexts(words)
    places = {context: at for at, context in enumerate(contexts)}
    total, met = 0.0, [[0] * len(after) for after in contexts.values()]
    for before, symbol in _transitions(cell or "", order):
        if before not in places or symbol not in contexts[before]:
            continue
        at, next_one = places[before], contexts[before].index(symbol)
        if "alpha" in group:
            own = group["alpha"][at]
            total += math.log(own[next_one] + met[at][next_one]) - math.log(math.fsum(own) + sum(met[at]))
            met[at][next_one] += 1
        else:
            total += _log(group["probability"][at][next_one])
    return total


def sequence_fit(
    order: int, cells: Sequence[Any], members: Sequence[Sequence[float]], prior: float, how: str, words: Sequence[str]
) -> list[Group]:
    """Each group's parameters from its sequences and `prior` imagined steps to each after every context."""
    contexts = _contexts(words)
    groups, found = range(len(members[0])), []
    there = [(cell, row) for cell, row in zip(cells, members, strict=True) if cell is not None]
    moves = [(_transitions(cell, order), row) for cell, row in there]
    whole = [math.fsum(row[g] for _, row in there) for g in groups]
    totals = [math.fsum(row[g] * len(pairs) for pairs, row in moves) for g in groups]
    for g in groups:
        table = [
            [math.fsum(row[g] * pairs.count((before, symbol)) for pairs, row in moves) for symbol in after]
            for before, after in contexts.items()
        ]
        length = totals[g] / whole[g] if whole[g] else (sum(totals) / sum(whole) if sum(whole) else 0.0)
        often = _shares([math.fsum(row) for row in table], 0.0, "ml")
        group = {"probability": [_shares(row, prior, how) for row in table], "length": length, "often": often}
        found.append(group | {"alpha": [[n + prior for n in row] for row in table]})
    return found
