"""Densities on cells, in plain loops: histograms, cuts and kernels, where cells are known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

Group = dict[str, Any]


def cell_of(value: float, edges: Sequence[float]) -> int:
    """The cell a number lies in; the last one has its end too."""
    for k in range(len(edges) - 1):
        if edges[k] <= value < edges[k + 1]:
            return k
    return 0 if value < edges[0] else len(edges) - 2


def cell_density(cell: Any, group: Group, levels: Any = ()) -> float:
    """The log-density of a number: even within its cell, falling off by one law outside of all of them."""
    edges, shares, beyond = list(group["edges"]), list(group["probability"]), float(group["beyond"])
    if cell is None or len(edges) < 2:
        return 0.0
    reach, k = (edges[-1] - edges[0]) / 4, cell_of(cell, edges)
    off = max(edges[0] - cell, cell - edges[-1])
    if off > 0:
        return _log(shares[k]) + _log(beyond) - math.log(reach) - 2 * math.log1p(off / reach)
    kept = (k == 0) + (k == len(edges) - 2)
    return _log(shares[k]) - math.log(edges[k + 1] - edges[k]) + kept * math.log1p(-beyond)


def kernel_density(cell: Any, group: Group, levels: Any = ()) -> float:
    """The same, but for a line in the log-density: half of the rise between the cells before and after it."""
    edges, shares, flat = list(group["edges"]), list(group["probability"]), cell_density(cell, group)
    k = 0 if cell is None else cell_of(cell, edges)
    if (
        cell is None
        or not 0 < k < len(edges) - 2
        or not edges[0] <= cell <= edges[-1]
        or not min(shares[k - 1 : k + 2])
    ):
        return flat
    widths = [b - a for a, b in itertools.pairwise(edges[k - 1 : k + 3])]
    before, after = (math.log(shares[j + 1] / shares[j]) for j in (k - 1, k))
    rise = (before + after) / 2
    if max(widths) > min(widths) * (1 + 1e-6) or abs(after - before) > 1.0 or not rise:
        return flat
    part = (cell - edges[k]) / widths[1] - 0.5
    return flat + rise * part - math.log(2 * math.sinh(rise / 2) / rise)


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def binned(family: Any, cells: Sequence[Any], members: Any, prior: float, how: str, hyper: Any) -> list[Group]:
    """Shares of the cells in every group; a histogram's imagined rows lie where all rows do, a cut's are even."""
    edges = list(hyper["edges"])
    bins = range(len(edges) - 1)
    held = [[_mass(cells, members, g, k, edges) for k in bins] for g in range(len(members[0]))]
    rows = math.fsum(map(math.fsum, held))
    given = family.name == "histogram" and isinstance(family.bins, tuple) and family.bins[0] != "count"
    even = float(given or not rows)  # one more row, spread evenly over given bins, which may be empty
    pooled = [math.fsum([*(own[k] for own in held), even / len(bins)]) / (rows + even) for k in bins]
    imagined = [prior * len(bins) * share if family.name == "histogram" else prior for share in pooled]
    mode = 1.0 if family.name == "cut" else 0.0
    extra = [{"ml": 0.0, "map": each - mode}.get(how, each) for each in imagined]
    if "interval" in hyper:
        return [_tied(own, hyper, prior, how, rows) for own in held]
    return [_group([n + more for n, more in zip(own, extra, strict=True)], edges, rows, how) for own in held]


def _tied(held: Sequence[float], hyper: Any, prior: float, how: str, rows: float) -> Group:
    """The share of a cell's interval in the group, times the cell's share of its interval, alike in all groups."""
    number = [int(k) for k in hyper["interval"]]
    together = [
        math.fsum(n for n, k in zip(held, number, strict=True) if k == interval) for interval in range(number[-1] + 1)
    ]
    raw = [n + {"ml": 0.0, "map": prior - 1.0}.get(how, prior) for n in together]
    group = _group(raw, list(hyper["edges"]), rows, how)
    shares = [group["probability"][k] * within for k, within in zip(number, hyper["within"], strict=True)]
    return group | {"probability": shares, "interval": hyper["interval"]}


def _mass(cells: Sequence[Any], members: Any, g: int, k: int, edges: Sequence[float]) -> float:
    pairs = zip(cells, members, strict=True)
    return math.fsum(row[g] for cell, row in pairs if cell is not None and cell_of(cell, edges) == k)


def _group(raw: Sequence[float], edges: Sequence[float], rows: float, how: str) -> Group:
    whole = math.fsum(raw)
    shares = [mass / whole if whole > 0 else 1 / len(raw) for mass in raw]
    return {"probability": shares, "edges": edges, "beyond": 0.0 if how == "ml" else 1 / (rows + 2)}


def kernelled(family: Any, cells: Sequence[Any], members: Any, prior: float, how: str, hyper: Any) -> list[Group]:
    """A bump on every number of a group, as much of it in each cell as lies there; what is below zero comes back."""
    edges, there = list(hyper["edges"]), [(c, row) for c, row in zip(cells, members, strict=True) if c is not None]
    rows, found = math.fsum(value for _, row in there for value in row), []
    span, whole = (edges[-1] - edges[0]), max(float(hyper["whole"] * hyper["factor"]), float(hyper["least"]))
    together = _bumped([(c, math.fsum(row)) for c, row in there], edges, whole, family.kernel)
    even = [(b - a) / span for a, b in itertools.pairwise(edges)]
    for g in range(len(members[0])):
        own = [(c, row[g]) for c, row in there if row[g] > 0]
        width = float(hyper["widths"][g])
        mass = [share * math.fsum(w for _, w in own) for share in _bumped(own, edges, width, family.kernel)]
        extra = 0.0 if how == "ml" else prior / 2
        raw = [m + extra * (a + b) for m, a, b in zip(mass, together, even, strict=True)]
        group = _group(raw, edges, rows, how)
        found.append(group | {"bandwidth": width} | ({} if math.fsum(raw) > 0 else {"probability": even}))
    return found


def grouped(cells: Sequence[Any], members: Any, prior: float, how: str, known: Any) -> list[Group]:
    """The share of a level's group in the class, times its own share of the rows of all classes in that group."""
    levels, number = known["levels"], [int(x) for x in known["group"]]
    size = [number.count(k) for k in range(max(number, default=-1) + 1)]
    imagined = 0.0 if how == "ml" else prior
    pooled = [
        math.fsum(math.fsum(row) for cell, row in zip(cells, members, strict=True) if cell == level)
        + imagined / size[number[i]]
        for i, level in enumerate(levels)
    ]
    found = []
    for g in range(len(members[0])):
        held = [
            math.fsum(row[g] for cell, row in zip(cells, members, strict=True) if group_of(cell, known) == k)
            for k in range(len(size))
        ]
        raw = [n + {"ml": 0.0, "map": prior - 1.0}.get(how, prior) for n in held]
        whole = math.fsum(raw)
        shares = [n / whole if whole > 0 else 1 / len(raw) for n in raw]
        rest = math.fsum(held) + prior * (len(size) + 1)
        found.append(
            {
                "probability": [shares[k] * within(i, number, pooled) for i, k in enumerate(number)],
                "unseen": imagined / rest if imagined else 0.0,
                "group": known["group"],
            }
        )
    return found


def group_of(cell: Any, known: Any) -> int | None:
    """The number of a level's group; None where there is no level."""
    return None if cell is None else int(known["group"][list(known["levels"]).index(cell)])


def within(level: int, number: Sequence[int], pooled: Sequence[float]) -> float:
    """The share of a level among those of its group."""
    own = [mass for mass, k in zip(pooled, number, strict=True) if k == number[level]]
    return pooled[level] / math.fsum(own) if math.fsum(own) > 0 else 1 / len(own)


def _bumped(rows: Sequence[tuple[float, float]], edges: Sequence[float], h: float, kernel: str) -> list[float]:
    if not rows:
        return [0.0] * (len(edges) - 1)
    if edges[0] >= 0:
        rows = [*rows, *((-value, weight) for value, weight in rows)]
    mass = [
        math.fsum(w * (_below((b - x) / h, kernel) - _below((a - x) / h, kernel)) for x, w in rows)
        for a, b in itertools.pairwise(edges)
    ]
    return [m / math.fsum(mass) for m in mass]


def _below(z: float, kernel: str) -> float:
    if kernel == "gaussian":
        return 0.5 * math.erfc(-z / math.sqrt(2))
    z = min(max(z, -1.0), 1.0)
    return 0.5 + 0.75 * (z - z**3 / 3)
