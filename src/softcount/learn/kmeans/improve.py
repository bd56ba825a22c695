"""Better than where Lloyd's steps end: single rows moved to another cluster, single centres moved elsewhere."""

from __future__ import annotations

import numpy as np

from softcount.learn.kmeans.seeds import drawn
from softcount.learn.kmeans.together import FewRows, SmallEnd, Stack, ended, in_parts

SAME = 1e-9
"""Costs that differ by less than this, relative to the best, are one optimum."""

PLACES = 2
"""Rows that are drawn as new places for each centre, of which the better one counts."""

TRIED = 6
"""Moves of a centre that are tried at once: those after which the cost would be least before anything else moves."""

GIVEN_UP = 5, 2
"""Updates after which it is seen which moves are worth following, and how many are."""

FAILURES = 2, 6
"""How often in a row no move may help before the search ends: on large tables, and on small ones."""

AFFORDED = 600_000
"""Cells times centres that may be compared between such failures, where that is more often than the least."""

TOO_MANY = 4_000_000
"""Cells times centres beyond which no centre is moved: a descent of all starts takes half a second there."""

ALONE = 1e-12
"""What is left of a cluster without a row, relative to the row, that is nothing."""

SWEEPS = 100
"""Times that rows may be exchanged after one descent."""

EXCHANGED = 3
"""Different ends of starts whose rows are exchanged."""


def best_exchanged(few: FewRows, ends: list[SmallEnd]) -> list[SmallEnd]:
    """Ends of starts, best first, the best few after rows were exchanged; equal ones are taken for one."""
    found: list[SmallEnd] = []
    before, different = -1.0, 0
    for end in sorted(ends, key=lambda end: end.cost):
        is_new = not found or end.cost > before * (1 + SAME)
        different += is_new
        before = end.cost
        found.append(found[-1] if not is_new else exchanged(few, end) if different <= EXCHANGED else end)
    return found


def exchanged(few: FewRows, end: SmallEnd) -> SmallEnd:
    """The end after single rows went where that lowers the cost although their nearest centre is their own.

    Moving a row moves both centres; Lloyd's steps do not see that (Hartigan). Where no row gains any more, every row's
    own centre is its nearest too.
    """
    if few.unit or not end.converged:
        return end
    labels, centres, squares = end.labels.copy(), end.centres.copy(), few.squares(end.centres)
    mass = np.bincount(labels, few.weights, len(centres))
    for _ in range(SWEEPS):
        gain, cost = gains(few, labels, mass, squares)
        gaining = np.flatnonzero(gain > SAME * cost)
        if not len(gaining):
            break
        moved = move_rows(few, gaining[np.argsort(-gain[gaining], kind="stable")], labels, (centres, mass))
        squares[moved] = few.squares(centres[moved])
    return SmallEnd(centres, labels, cost, True)


def gains(few: FewRows, labels: np.ndarray, mass: np.ndarray, squares: np.ndarray) -> tuple[np.ndarray, float]:
    """How far the cost would fall by moving each row to where that is most, and the cost."""
    rows, weights = np.arange(len(few)), few.weights
    here, rest = squares[labels, rows], mass[labels] - weights
    alone = rest <= ALONE * weights
    leaving = np.where(alone, 0.0, here * mass[labels] / np.where(alone, 1.0, rest))
    joining = squares * (mass[:, None] / np.maximum(mass[:, None] + weights, 1e-300))
    joining[labels, rows] = np.inf
    return weights * (leaving - joining.min(axis=0)), float(here @ weights)


def move_rows(
    few: FewRows, rows: np.ndarray, labels: np.ndarray, clusters: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """One row after the other to the cluster where it costs least; labels, centres and mass are changed in place.

    Which clusters changed comes back.
    """
    centres, mass = clusters
    moved = np.zeros(len(mass), bool)
    cells = few.cells(rows)
    for at, (row, weight) in enumerate(zip(rows.tolist(), few.weights[rows].tolist(), strict=True)):
        old = labels[row]
        rest = mass[old] - weight
        if rest <= ALONE * weight:
            continue
        differences = centres - cells[at]
        costs = np.einsum("kj,kj->k", differences, differences) * mass
        here = costs[old] / rest
        costs /= mass + weight
        costs[old] = np.inf
        new = int(costs.argmin())
        if costs[new] < here:
            mass[old], mass[new], labels[row] = rest, mass[new] + weight, new
            centres[old] += differences[old] * (weight / mass[old])
            centres[new] -= differences[new] * (weight / mass[new])
            moved[[old, new]] = True
    return moved


def moved_elsewhere(few: FewRows, best: SmallEnd, rng: np.random.Generator, most: int) -> SmallEnd:
    """The best after moving one of its centres to a row far from all, until that failed often enough in a row."""
    size = best.centres.size * len(few)
    failures, failed = int(np.clip(AFFORDED // size, *FAILURES)) if size <= TOO_MANY else 0, 0
    while failed < failures and len(best.centres) > 1 and best.cost > 0:
        moves = in_parts(few, promising(few, best, rng))
        ends = [end for part in moves for end in ended(Stack.near(few, best, part), most, GIVEN_UP)]
        again = exchanged(few, min(ends, key=lambda end: end.cost))
        failed = 0 if again.cost < best.cost * (1 - SAME) else failed + 1
        best = best if failed else again
    return best


def promising(few: FewRows, best: SmallEnd, rng: np.random.Generator) -> np.ndarray:
    """(moves x clusters x columns) centres, one of each set put on a row drawn by weight times squared distance."""
    clusters, rows = np.arange(len(best.centres)), np.arange(len(few))
    squares = few.squares(best.centres)
    first = squares[best.labels, rows]
    squares[best.labels, rows] = np.inf
    second = squares.min(axis=0)
    places = few.cells(drawn(few.weights * first, rng.random(len(clusters) * PLACES)))
    there = few.squares(places)
    with_it = np.minimum(first, there)
    # Rows of the centre that goes have their second nearest, or the new one.
    more = ((np.minimum(second, there) - with_it) * few.weights).reshape(len(clusters), PLACES, -1)
    costs = (with_it @ few.weights).reshape(len(clusters), PLACES)
    costs = costs + np.einsum("kpn,kn->kp", more, best.labels == clusters[:, None])
    chosen = np.argsort(costs.min(axis=1), kind="stable")[:TRIED]
    centres = np.repeat(best.centres[None], len(chosen), axis=0)
    centres[clusters[: len(chosen)], chosen] = places.reshape(len(clusters), PLACES, -1)[
        chosen, costs.argmin(axis=1)[chosen]
    ]
    return centres
