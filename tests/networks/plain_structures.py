"""Counts, scores, graphs and trees again, in plain loops: what the search for structures must agree with."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, permutations, product

import numpy as np

from softcount.networks.network import Graph


def drawn_codes(seed: int, nodes: int, rows: int, holes: float = 0.0, levels: int = 3):
    """Rows of a random network with at most two parents a node, in a random order of nodes: codes and sizes."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, levels, nodes, endpoint=True)
    codes = np.zeros((rows, nodes), dtype=int)
    for node in range(nodes):
        cell = np.zeros(rows, dtype=int)
        for parent in rng.permutation(node)[: rng.integers(0, 3)]:
            cell = cell * sizes[parent] + codes[:, parent]
        tables = rng.dirichlet(np.full(sizes[node], 0.7), cell.max() + 1)
        codes[:, node] = (rng.random(rows)[:, None] > tables[cell].cumsum(axis=1)[:, :-1]).sum(axis=1)
    codes[rng.random(codes.shape) < holes] = -1
    order = rng.permutation(nodes)
    return codes[:, order], tuple(int(size) for size in sizes[order])


def plain_counts(codes, weights, axes) -> Counter:
    """The weight of rows by their levels of the axes, holes left out."""
    found = Counter()
    for row, weight in zip(np.asarray(codes).tolist(), weights, strict=True):
        levels = tuple(row[axis] for axis in axes)
        if -1 not in levels:
            found[levels] += weight
    return found


def plain_likelihood(codes, weights, node, parents) -> float:
    joint = plain_counts(codes, weights, (*parents, node))
    own = plain_counts(codes, weights, parents)
    return math.fsum(n * math.log(n / own[key[:-1]]) for key, n in joint.items() if n)


def plain_bic(codes, weights, sizes, node, parents) -> float:
    free = (sizes[node] - 1) * math.prod(sizes[parent] for parent in parents)
    return plain_likelihood(codes, weights, node, parents) - math.log(sum(weights)) / 2 * free


def plain_bdeu(codes, weights, sizes, node, parents, imagined) -> float:
    joint = plain_counts(codes, weights, (*parents, node))
    configurations = math.prod(sizes[parent] for parent in parents)
    a, total = imagined / configurations, []
    for levels in product(*(range(sizes[parent]) for parent in parents)):
        counts = [joint[(*levels, own)] for own in range(sizes[node])]
        total.append(math.lgamma(a) - math.lgamma(a + sum(counts)))
        total += [math.lgamma(a / sizes[node] + n) - math.lgamma(a / sizes[node]) for n in counts]
    return math.fsum(total)


def plain_information(codes, weights, a, b, given=()) -> float:
    joint = plain_counts(codes, weights, (*given, a, b))
    with_a, with_b, alone = Counter(), Counter(), Counter()
    for key, n in joint.items():
        with_a[key[:-1]] += n
        with_b[(*key[:-2], key[-1])] += n
        alone[key[:-2]] += n
    terms = [
        n * math.log(n * alone[key[:-2]] / (with_a[key[:-1]] * with_b[(*key[:-2], key[-1])]))
        for key, n in joint.items()
        if n
    ]
    return math.fsum(terms) / sum(joint.values()) if terms else 0.0


def all_graphs(nodes: int) -> list[Graph]:
    """Every graph without cycles: 543 of four nodes."""
    found = set()
    for order in permutations(range(nodes)):
        pairs = list(combinations(order, 2))
        for there in product([False, True], repeat=len(pairs)):
            parents = [[] for _ in range(nodes)]
            for (parent, child), kept in zip(pairs, there, strict=True):
                if kept:
                    parents[child].append(parent)
            found.add(tuple(tuple(sorted(own)) for own in parents))
    return [Graph(tuple(range(nodes)), parents) for parents in sorted(found)]


def all_trees(nodes: int) -> list[tuple[tuple[int, int], ...]]:
    """Every tree that spans the nodes: 125 of five."""
    return [pairs for pairs in combinations(combinations(range(nodes), 2), nodes - 1) if _spans(nodes, pairs)]


def _spans(nodes: int, pairs) -> bool:
    part = list(range(nodes))
    for a, b in pairs:
        if part[a] == part[b]:
            return False
        part = [part[a] if each == part[b] else each for each in part]
    return True
