"""Elimination order of the nodes of a network, and its cost."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from math import ceil, inf, isfinite, log2, prod
from typing import Any

from msgspec import Struct

from softcount.core import remedies
from softcount.errors import DataError, ResourceError

Scope = tuple[int, ...]

ROOM = 2**26
"""Maximum number of cells of all cliques of a tree: half a gigabyte for one row."""

UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "B": 1}

BEYOND = 2**12
"""The search for an order stops at a clique of more than `BEYOND` times the allowed cells.

Smaller costs are computed exactly.
"""

CHEAP = 2**12
"""If the first order needs at most this number of cells, the second is not tried."""

MOST_ADVISED = 2**33
"""Number of cells (64 gigabytes) above which the error message does not suggest more memory."""

SHOWN = 8
"""Maximum number of nodes that an error message names."""


class Elimination(Struct, frozen=True):
    """Elimination order of the nodes, with the neighbours that each node has when it is eliminated.

    A node and its neighbours form a clique. `cliques` merges the cliques that are subsets of another clique.

    >>> eliminate([2, 2, 3], [(0,), (0, 1), (1, 2)])
    Elimination(order=(0, 1, 2), neighbours=((1,), (2,), ()))
    """

    order: Scope
    neighbours: tuple[Scope, ...]

    def cliques(self) -> tuple[list[list[int]], list[int], dict[int, int]]:
        """Return the maximal cliques, the parent clique of each (-1 for a root), and the clique of each node.

        A parent precedes its children.
        """
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
    def __init__(self, clique: Scope) -> None:
        self.clique = clique


def eliminate(
    sizes: Sequence[int], scopes: Sequence[Scope], room: int = ROOM, names: Sequence[Hashable] = ()
) -> Elimination:
    """Return the cheaper of two greedy orders: fewest new neighbours first, or smallest clique first.

    Raise ResourceError if the cliques need more than `room` cells. Nodes that are in no scope are left out.
    """
    best: Elimination | None = None
    least, refused = inf, []
    near: dict[int, int] = {}  # the neighbours of each node as a bit mask
    for scope in scopes:
        bits = sum(1 << node for node in set(scope))
        for node in scope:
            near[node] = near.get(node, 0) | bits
    near = {node: near[node] & ~(1 << node) for node in sorted(near)}
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


def bits(mask: int) -> Iterator[int]:
    """Yield the members of a set of nodes given as a bit mask, in ascending order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


Score = Callable[[dict[int, int], list[float], int], tuple[float, ...]]


def _fill_first(near: dict[int, int], logs: list[float], node: int) -> tuple[float, ...]:
    mine, fill, weight = near[node], 0, logs[node]
    for other in bits(mine):
        fill += (mine & ~near[other]).bit_count() - 1
        weight += logs[other]
    return fill, weight


def _weight_first(near: dict[int, int], logs: list[float], node: int) -> tuple[float, ...]:
    return (logs[node] + sum(logs[other] for other in bits(near[node])),)


def _greedy(near: dict[int, int], sizes: Sequence[int], score: Score, most_cells: int) -> Elimination:
    """Eliminate the node with the lowest score first; ties go to the lowest number. Consumes `near`."""
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
        clique = tuple(bits(mine))
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
    """Connect the neighbours of an eliminated node with each other. Return all nodes whose score may have changed."""
    touched, own = mine, 1 << node
    for other in bits(mine):
        before = near[other] ^ own
        after = before | mine & ~(1 << other)
        near[other] = after
        if after != before:
            touched |= after
    return bits(touched)


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
    advice = "D"
    if total is not None and total <= MOST_ADVISED:
        size = f"{ceil(8 * total / 10**6)}MB" if total < 10**8 else f"{ceil(8 * total / 10**9)}GB"
        more_memory = remedies.either(f"memory='{size}'", f"--memory {size}")
        advice = f"Allow more memory ({more_memory}), or d"
    return ResourceError(
        f"an exact answer needs {cost}; at most {room:,} are allowed. {advice}rop edges between these nodes, "
        f"or take an answer by sampling ({remedies.either('samples=10_000', '--samples 10000')})."
    )


def cells_within(memory: Any) -> int:
    """Return the number of tree cells that fit in `memory`, given in bytes or as a string such as "2GB".

    None means half a gigabyte.

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
        raise DataError(f"memory={memory!r} is not a size. Give bytes, or a text such as '2GB'.")
    return int(size // 8)


def _plain(cells: int) -> str:
    return f"{cells:,}" if cells < 10**12 else f"about 10^{len(str(cells)) - 1}"
