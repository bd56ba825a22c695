"""k-means again, row by row, in plain loops."""

from __future__ import annotations

import itertools


def square(row, centre):
    return sum((float(x) - float(c)) ** 2 for x, c in zip(row, centre, strict=True))


def nearest(row, centres):
    """The first of the nearest centres."""
    apart = [square(row, centre) for centre in centres]
    return apart.index(min(apart))


def cost(rows, weights, labels, centres):
    return sum(w * square(row, centres[k]) for row, w, k in zip(rows, weights, labels, strict=True))


def means(rows, weights, labels, centres):
    """The weighted mean of each cluster; an empty one stays where it is."""
    found = []
    for k, old in enumerate(centres):
        mine = [(w, row) for row, w, label in zip(rows, weights, labels, strict=True) if label == k]
        mass = sum(w for w, _ in mine)
        found.append([sum(w * row[j] for w, row in mine) / mass for j in range(len(old))] if mine else list(old))
    return found


def lloyd(rows, weights, centres, most=300):
    """Centres, labels and J after every assignment and every update, until no row changes (no cluster may empty)."""
    trace, before = [], None
    for _ in range(most + 1):
        labels = [nearest(row, centres) for row in rows]
        trace.append(cost(rows, weights, labels, centres))
        if labels == before:
            return centres, labels, trace
        before = labels
        centres = means(rows, weights, labels, centres)
        trace.append(cost(rows, weights, labels, centres))
    return centres, labels, trace


def plus_plus_law(rows, weights, clusters):
    """The probability of every ordered choice of centres by k-means++, by going through all of them."""
    law = {}
    for chosen in itertools.permutations(range(len(rows)), clusters):
        p = weights[chosen[0]] / sum(weights)
        for at in range(1, clusters):
            share = [w * min(square(row, rows[c]) for c in chosen[:at]) for row, w in zip(rows, weights, strict=True)]
            p *= share[chosen[at]] / sum(share)
        law[chosen] = p
    return law
