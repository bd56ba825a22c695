"""Better than where Lloyd's steps end: single rows moved to another cluster, single centres moved elsewhere."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softcount.learn.kmeans.seeds import drawn
from softcount.learn.kmeans.together import FewRows, SmallEnd, StartStack, ended, in_parts

SAME = 1e-9
"""Costs that differ by less than this, relative to the best, are one optimum."""

PLACES = 2
"""Rows that are drawn as new places for each centre."""

TRIED = 3
"""Moves tried at once for each failure allowed: those after which the cost is least before anything else moves."""

ALONE_AFTER = 4
"""Updates after which it is seen which of the moves is worth following."""

FAILURES = 2, 6
"""How often in a row no move may help before the search ends: at least, on larger tables, and at most."""

AFFORDED = 1_100_000
"""The work of one assignment that decides between the two: iris in ten clusters is 54,000, digits 1,725,000."""

TOO_MUCH = 10_000_000
"""The work of one assignment beyond which no centre is moved: a descent of all starts takes half a second there."""

ALONE = 1e-12
"""What is left of a cluster without a row, relative to the row, that is nothing."""

SWEEPS, LAST_SWEEPS = 4, 100
"""Times that rows may be exchanged after one descent, and at the end: in noise the first four bring most of it."""

EXCHANGED = 2
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


def exchanged(few: FewRows, end: SmallEnd, sweeps: int = SWEEPS) -> SmallEnd:
    """The end after single rows went where that lowers the cost although their nearest centre is their own.

    Moving a row moves both centres; Lloyd's steps do not see that (Hartigan). Where no row gains any more, every row's
    own centre is its nearest too.
    """
    if few.unit or not end.converged or not few.has_room(len(end.centres)):
        return end
    now = weigh_moves(few, end.labels, end.centres)
    for _ in range(sweeps):
        gaining = np.flatnonzero(now.gain > SAME * now.cost)
        if not len(gaining):
            break
        labels = now.labels.copy()
        labels[gaining] = now.target[gaining]
        again = weigh_moves(few, labels, now.centres)
        if not again.cost < now.cost * (1 - SAME):  # each would gain alone, not all of them together
            again = weigh_moves(few, one_by_one(few, now, gaining), now.centres)
            if not again.cost < now.cost * (1 - SAME):
                break
        now = again
    return SmallEnd(now.centres, now.labels, now.cost, True)


class Moves(NamedTuple):
    """Clusters, their cost, and for each row how far it would fall by moving the row to where that is most."""

    labels: np.ndarray
    centres: np.ndarray
    mass: np.ndarray
    cost: float
    target: np.ndarray
    gain: np.ndarray


def weigh_moves(few: FewRows, labels: np.ndarray, before: np.ndarray) -> Moves:
    """The centres of such clusters, and what moving single rows would bring."""
    rows, weights = np.arange(len(few)), few.weights
    own = labels == np.arange(len(before))[:, None]
    mass = own @ weights
    centres = few.means(few.sums(own), mass, before)
    squares = few.squares(centres)
    here, rest = squares[labels, rows], mass[labels] - weights
    alone = rest <= ALONE * weights
    leaving = np.where(alone, 0.0, here * mass[labels] / np.where(alone, 1.0, rest))
    squares *= mass[:, None] / np.maximum(mass[:, None] + weights, 1e-300)
    squares[labels, rows] = np.inf
    target = squares.argmin(axis=0)
    return Moves(labels, centres, mass, float(here @ weights), target, weights * (leaving - squares[target, rows]))


def one_by_one(few: FewRows, now: Moves, gaining: np.ndarray) -> np.ndarray:
    """Labels after each of some rows, the most gaining first, went where it costs least, the centres following."""
    rows = gaining[np.argsort(-now.gain[gaining], kind="stable")]
    labels, centres, mass = now.labels.copy(), now.centres.copy(), now.mass.copy()
    for row, weight, cells in zip(rows.tolist(), few.weights[rows].tolist(), few.cells(rows), strict=True):
        old = labels[row]
        rest = mass[old] - weight
        if rest <= ALONE * weight:
            continue
        differences = centres - cells
        costs = np.einsum("kj,kj->k", differences, differences) * mass
        here = costs[old] / rest
        costs /= mass + weight
        costs[old] = np.inf
        new = int(costs.argmin())
        if costs[new] < here:
            labels[row], mass[old], mass[new] = new, rest, mass[new] + weight
            centres[old] += differences[old] * (weight / mass[old])
            centres[new] -= differences[new] * (weight / mass[new])
    return labels


def moved_elsewhere(few: FewRows, best: SmallEnd, rng: np.random.Generator, most: int) -> SmallEnd:
    """The best after moving one of its centres to a row far from all, until that failed often enough in a row."""
    work = len(best.centres) * few.work
    if work > TOO_MUCH:
        return best
    failures, failed = int(np.clip(AFFORDED // work, *FAILURES)), 0
    while failed < failures and len(best.centres) > 1 and best.cost > 0:
        moves = in_parts(few, promising(few, best, rng, failures * TRIED))
        ends = [end for part in moves for end in ended(StartStack.near(few, best, part), most, best.cost, ALONE_AFTER)]
        again = exchanged(few, min(ends, key=lambda end: end.cost)) if ends else best
        failed = 0 if again.cost < best.cost * (1 - SAME) else failed + 1
        best = best if failed else again
    return exchanged(few, best, LAST_SWEEPS)


def promising(few: FewRows, best: SmallEnd, rng: np.random.Generator, most: int) -> np.ndarray:
    """(moves x clusters x columns) centres, one of each set put on a row drawn by weight times squared distance.

    Of the places drawn for each centre the best ones come first, and of these the best moves.
    """
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
    rank = np.argsort(np.argsort(costs, axis=1), axis=1)
    chosen = np.lexsort((costs.ravel(), rank.ravel()))[:most]
    centres = np.repeat(best.centres[None], len(chosen), axis=0)
    centres[np.arange(len(chosen)), chosen // PLACES] = places[chosen]
    return centres
