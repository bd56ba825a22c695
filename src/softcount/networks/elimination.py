"""In which order to sum nodes out, and what it costs: known before anything is allocated."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from math import ceil, inf, isfinite, log2, prod
from typing import Any

from softcount import remedies
from softcount.errors import DataError, ResourceError
from softcount.records import dataclass

Scope = tuple[int, ...]

ROOM = 2**26
"""Cells that the cliques of a tree may have together: half a gigabyte for one row."""

UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "B": 1}

BEYOND = 2**12
"""How many times the room a clique may have before the search for an order ends: up to there the cost is exact."""

CHEAP = 2**12
"""Cells for which the first order is good enough: looking for a better one would take longer."""

MOST_ADVISED = 2**33
"""Cells beyond which nobody is advised to allow more memory: 64 gigabytes."""

SHOWN = 8
"""Nodes that a refusal names."""


@dataclass(frozen=True)
class Elimination:
    """Nodes in the order they are summed out, and for each the neighbours it has then.

    A node with its neighbours is a clique; those that lie within another are not worth a table.

    >>> eliminate([2, 2, 3], [(0,), (0, 1), (1, 2)])
    Elimination(order=(0, 1, 2), neighbours=((1,), (2,), ()))
    """

    order: Scope
    neighbours: tuple[Scope, ...]

    def cliques(self) -> tuple[list[list[int]], list[int], dict[int, int]]:
        """Maximal cliques, each after the one it hangs on; the number of that one (-1: none); every node's clique."""
        cliques: list[list[int]] = []
        above: list[int] = []
        clique_of: dict[int, int] = {}
        place = {node: at for at, node in enumerate(self.order)}
        for node, near in zip(reversed(self.order), reversed(self.neighbours), strict=True):
            upper = clique_of[min(near, key=place.__getitem__)] if near else -1
            if near and len(cliques[upper]) == len(near):
                cliques[upper].append(node)
            else:
                above.append(upper)
                upper = len(cliques)
                cliques.append([*near, node])
            clique_of[node] = upper
        return cliques, above, clique_of


class _Stopped(Exception):
    """A clique was met that is far too large."""

    def __init__(self, clique: Scope) -> None:
        self.clique = clique


def eliminate(
    sizes: Sequence[int], scopes: Sequence[Scope], room: int = ROOM, names: Sequence[Hashable] = ()
) -> Elimination:
    """The cheaper of two greedy orders: fewest new neighbours first, or smallest clique first.

    What costs more than `room` cells is refused. Nodes in no scope are left out.
    """
    best: Elimination | None = None
    least, refused = inf, []
    near = _moral(scopes)
    for score in (_fill_first, _weight_first):
        try:
            found = _greedy(dict(near), sizes, score, room * BEYOND)
        except _Stopped as stop:
            refused.append(stop.clique)
            continue
        cost = sum(prod(sizes[node] for node in clique) for clique in found.cliques()[0])
        if cost < least:
            best, least = found, cost
        if cost <= CHEAP:
            break
    if best is None:
        raise _refusal(min(refused, key=lambda clique: prod(sizes[node] for node in clique)), sizes, room, names)
    if least > room:
        largest = max(best.cliques()[0], key=lambda clique: prod(sizes[node] for node in clique))
        raise _refusal(tuple(largest), sizes, room, names, int(least))
    return best


def _moral(scopes: Sequence[Scope]) -> dict[int, int]:
    """Every node's neighbours as the bits of a number."""
    near: dict[int, int] = {}
    for scope in scopes:
        bits = 0
        for node in scope:
            bits |= 1 << node
        for node in scope:
            near[node] = near.get(node, 0) | bits
    return {node: near[node] & ~(1 << node) for node in sorted(near)}


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


Score = Callable[[dict[int, int], list[float], int], tuple[float, ...]]


def _fill_first(near: dict[int, int], logs: list[float], node: int) -> tuple[float, ...]:
    mine, fill, weight = near[node], 0, logs[node]
    for other in _bits(mine):
        fill += (mine & ~near[other]).bit_count() - 1
        weight += logs[other]
    return fill, weight


def _weight_first(near: dict[int, int], logs: list[float], node: int) -> tuple[float, ...]:
    return (logs[node] + sum(logs[other] for other in _bits(near[node])),)


def _greedy(near: dict[int, int], sizes: Sequence[int], score: Score, most_cells: int) -> Elimination:
    """Always the node with the lowest score, of equals the first; `near` is used up."""
    logs, most = [log2(size) for size in sizes], log2(most_cells) + 1e-9
    rate = partial(score, near, logs)
    scores = {node: rate(node) for node in near}
    heap = [(scores[node], node) for node in near]
    heapq.heapify(heap)
    order, neighbours = [], []
    while heap:
        rated, node = heapq.heappop(heap)
        if scores.get(node) != rated:
            continue
        del scores[node]
        mine = near.pop(node)
        clique = tuple(_bits(mine))
        order.append(node)
        neighbours.append(clique)
        if logs[node] + sum(logs[other] for other in clique) > most:
            raise _Stopped((node, *clique))
        for other in _join(near, node, mine):
            rated = rate(other)
            if rated != scores[other]:
                scores[other] = rated
                heapq.heappush(heap, (rated, other))
    return Elimination(tuple(order), tuple(neighbours))


def _join(near: dict[int, int], node: int, mine: int) -> Iterator[int]:
    """Makes the neighbours of a node that goes neighbours of each other; all whose score may have changed."""
    touched, own = mine, 1 << node
    for other in _bits(mine):
        before = near[other] ^ own
        after = before | mine & ~(1 << other)
        near[other] = after
        if after != before:
            touched |= after
    return _bits(touched)


def _refusal(
    clique: Scope, sizes: Sequence[int], room: int, names: Sequence[Hashable], total: int | None = None
) -> ResourceError:
    cells = prod(sizes[node] for node in clique)
    shown = ", ".join(str(names[node] if names else node) for node in sorted(clique)[:SHOWN])
    more = f" and {len(clique) - SHOWN} more" if len(clique) > SHOWN else ""
    table = f"one table of {len(clique)} nodes ({shown}{more})"
    cost = f"more than {_plain(cells)} cells, the size of {table}"
    if total is not None:
        cost = f"{_plain(total)} cells, {_plain(cells)} of them in {table}"
    more = "" if total is None or total > MOST_ADVISED else f"Allow more memory ({_size(total)}), or d"
    return ResourceError(
        f"an exact answer needs {cost}; at most {room:,} are allowed. {more or 'D'}rop edges between these nodes, "
        f"or take an answer by sampling ({remedies.either('samples=10_000', '--samples 10000')})."
    )


def _size(cells: int) -> str:
    """How to ask for so many cells."""
    size = f"{ceil(8 * cells / 10**6):,}MB".replace(",", "") if cells < 10**8 else f"{ceil(8 * cells / 10**9)}GB"
    return remedies.either(f"memory='{size}'", f"--memory {size}")


def cells_within(memory: Any) -> int:
    """How many cells a tree may have in so much memory: bytes, or a text such as "2GB"; None is half a gigabyte.

    >>> cells_within("2 GB"), cells_within(4096), cells_within(None) == ROOM
    (250000000, 512, True)
    """
    if memory is None:
        return ROOM
    text = str(memory).strip().upper()
    unit = next((each for each in UNITS if text.endswith(each)), "")
    try:
        size = float(text.removesuffix(unit)) * UNITS.get(unit, 1)
    except ValueError:
        size = inf
    if isinstance(memory, bool) or not isfinite(size) or size < 8:
        raise DataError(f"memory={memory!r} is no size. Give bytes, or a text such as '2GB'.")
    return int(size // 8)


def _plain(cells: int) -> str:
    return f"{cells:,}" if cells < 10**12 else f"about 10^{len(str(cells)) - 1}"
