"""How sure an edge is, and what rows say of two nodes: questions to data rather than to a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.errors import DataError
from softcount.fit.network_structure import WORDS, Structure, learner
from softcount.learn.prepare import read_all
from softcount.learn.settings import retyping
from softcount.models.declare import Coded
from softcount.networks.network import Graph
from softcount.networks.scores import CodeCounts, Dependence, dependence
from softcount.networks.structure_search import bootstrap_edges, tree_edges
from softcount.run.local import Threads
from softcount.table import Table
from softcount.table.schema import Key

if TYPE_CHECKING:
    from softcount.estimators.bayes_net import BayesNet


def coded(net: BayesNet, X: Any, y: Any, sample_weight: Any) -> tuple[Coded, Key | None]:
    """Rows as a search for edges sees them, numbers cut; and the node of the class."""
    table, target, classes = net._opened(X, y, sample_weight)
    request, kept = net._request(target, classes), list[Coded]()

    def keep(found: Coded) -> tuple[Graph, list[str]]:
        kept.append(found)
        return Graph.of([], found.names), []

    def build(opened: Table) -> None:
        with Threads(1) as threads:
            chunks, settled = read_all(opened, request.plan, threads, None)
        request.declare(opened, Structure(search=keep)).build(settled, chunks.here)

    with Threads(1) as threads:
        retyping(table, build, threads, known_classes=False)
    return kept[-1], target


def edge_strength(net: BayesNet, X: Any, y: Any, sample_weight: Any, replicates: int, exact: bool) -> dict[str, Any]:
    """For each pair of nodes that was joined at least once: how often, which way, and which way it must be."""
    rows, target = coded(net, X, y, sample_weight)
    counting = CodeCounts(rows.codes, rows.sizes, rows.weights)
    names = rows.names
    if exact:
        shares = tree_edges(counting)
        pairs = [(a, b) for a in range(len(names)) for b in range(a + 1, len(names))]
        order = sorted(pairs, key=lambda pair: -shares[pair])
        return {
            "node": [names[a] for a, _ in order],
            "other": [names[b] for _, b in order],
            "probability": [float(shares[pair]) for pair in order],
        }
    word = net.edges if isinstance(net.edges, str) and net.edges in WORDS else "search"
    if word in ("naive", "joint"):
        raise DataError(f"edges={word!r} are the same whatever the rows say. Ask for 'tan', 'chow-liu' or 'search'.")
    found = bootstrap_edges(counting, learner(word, rows, target, net._search_settings()), replicates)
    pairs = [(int(a), int(b)) for a, b in np.argwhere(found.directed > 0)]
    order = sorted(pairs, key=lambda pair: (-found.joined[pair], -found.directed[pair], pair))
    return {
        "parent": [names[a] for a, _ in order],
        "child": [names[b] for _, b in order],
        "joined": [float(found.joined[pair]) for pair in order],
        "directed": [float(found.directed[pair]) for pair in order],
        "compelled": [float(found.compelled[pair]) for pair in order],
    }


def dependence_in(net: BayesNet, X: Any, a: Key, b: Key, given: list[Key], y: Any = None) -> Dependence[Key]:
    """What rows say of two columns given others."""
    rows, _ = coded(net, X, y, None)
    number = {name: place for place, name in enumerate(rows.names)}
    for name in (a, b, *given):
        if name not in number:
            raise DataError(f"the table has no column {name!r}. It has: {', '.join(map(str, rows.names))}.")
    counting = CodeCounts(rows.codes, rows.sizes, rows.weights)
    found = dependence(counting, number[a], number[b], [number[name] for name in given])
    return Dependence(a, b, tuple(given), found.information, found.freedom, found.weight, found.copy)
