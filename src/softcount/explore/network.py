"""What the explorer needs of a network, or of the first steps of a sequence as one: tables, and the tree of answers.

A chain's step depends on as many steps before it as its order says, or on all of them if they are fewer. A hidden state
depends on the state before it, and what a step shows on its own state. Steps that depend alike share one table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.errors import DataError, ResourceError
from softcount.explore.classes import level_document, note_left_out, number_document, pack
from softcount.fitted.answers import labels_in
from softcount.fitted.network import FittedNet
from softcount.models.nodes import Node
from softcount.networks.junction_tree import JunctionTree
from softcount.networks.queries import Evidence
from softcount.pictures.text import cell_width
from softcount.report.graph import place_network
from softcount.table.column_summary import TableSummary
from softcount.table.schema import Key, apart, labels

if TYPE_CHECKING:
    from softcount.chains.counts import Predictions
    from softcount.fitted.states import FittedStates

Document = dict[str, Any]
ROOM = 2_000_000
"""Cells of a tree that a page may go through: 16 MB, and about 30 ms an answer."""


def network_document(model: FittedNet, given: TableSummary | None = None) -> Document:
    """Describe the discrete nodes with their tables, the numbers below them, the cliques of their tree and the graph.

    `given` is the summary of the table that came with the model, for histograms.
    """
    net, names = model.net, labels(model.net.graph.names)
    nodes = [_node(model, new, node.key, names) for new, node in enumerate(net.with_levels)]
    leaves: list[Document] = []
    left_out: list[str] = []
    for own, scope in zip(net.stacks, net.parents_of_leaves, strict=True):
        if len(own.nodes) > 1 or own.nodes[0].family.facts.words:
            left_out += [names[node.key] for node in own.nodes]
        else:
            node = own.nodes[0]
            [shares] = model.configuration_shares(scope, Evidence(np.full((1, len(net.sizes)), -1)))
            tables = (model.record.table, given)
            seen = [None if table is None else table.column(node.key) for table in tables]
            leaf = number_document(shares, node.density(model.estimates), None, *seen)
            leaves.append(leaf | {"name": names[node.key], "scope": list(scope)})
    tree = _tree(model, [tuple(leaf["scope"]) for leaf in leaves])
    order = [names[net.graph.names[place]] for place in net.graph.order]
    asked = 0 if model.target is None else net.discrete.place(model.target)
    order = [name for name in order if name not in left_out]
    return _document(nodes, leaves, tree, order, asked, left_out) | {"graph": _graph(model, names)}


GRAPH_NODES = 80
"""Nodes up to which the page draws the graph."""
NODE_HEIGHT = 40.0


def _graph(model: FittedNet, names: Mapping[Key, str]) -> Document | None:
    """Place the nodes by name, and the edges as points from parent to child."""
    graph = model.net.graph
    if len(graph.names) > GRAPH_NODES or not graph.edges:
        return None
    sizes = []
    # Room for the name and, if it is not too long, for the longest category with its probability.
    for key in graph.names:
        longest = max((cell_width(str(level)) for level in model.levels.get(key, ())), default=0)
        width = min(max(124.0, 8.0 * cell_width(names[key]) + 20, 7.0 * (longest + 9) + 14), 210.0)
        sizes.append((width, NODE_HEIGHT))
    placed = place_network(graph, sizes)
    nodes = [
        {"name": names[name], "x": round(x), "y": round(y), "width": round(size[0])}
        for name, (x, y), size in zip(graph.names, placed.corners, sizes, strict=True)
    ]
    arcs = [[[round(x, 1), round(y, 1)] for x, y in path] for path in placed.arcs.values()]
    return {"nodes": nodes, "arcs": arcs, "width": round(placed.size[0]), "height": round(placed.size[1])}


def _document(
    nodes: list[Document], leaves: list[Document], tree: JunctionTree, order: Sequence[str], asked: int,
    left_out: Sequence[str],
) -> Document:  # fmt: skip
    return {
        "kind": "network",
        "nodes": nodes,
        "leaves": leaves,
        "cliques": [list(clique) for clique in tree.cliques],
        "above": list(tree.above),
        "order": list(order),
        "asked": asked,
        "notes": note_left_out(left_out),
    }


def _node(model: FittedNet, new: int, key: Key, names: Any) -> Document:
    found = {"name": names[key], "kind": "levels", **level_document(model.levels[key])}
    if key in model.net.cuts:
        found["cuts"] = model.net.cuts[key].tolist()
    return found | {"scope": list(model.net.discrete.families[new]), "table": pack(model.compiled[0][new])}


def _tree(model: FittedNet, more: list[tuple[int, ...]]) -> JunctionTree:
    net = model.net
    if not net.sizes:
        raise DataError("the network has no node with levels, so the page has nothing to click on.")
    scopes = [*net.discrete.families, *(scope for scope in more if scope)]
    try:
        return JunctionTree.build(net.sizes, scopes, ROOM, net.discrete.names)
    except ResourceError as error:
        needs = str(error).split("; at most")[0]  # what comes after is how `query` is given more room
        raise ResourceError(
            f"the network is too dense for a page, whether it is a file or served: {needs}, and a browser can go "
            f"through {ROOM:,}.\n  Ask it by: softcount query, which has more room and can draw samples"
        ) from None


MOST_STEPS = 8
FEWEST_STATES = 3
"""Steps of hidden states, at least."""
MOST_CARDS = 40
"""Nodes of a page, about, that hidden states are cut to."""


def chain_document(chain: Any) -> Document:
    """Describe a node for each of the first steps; after the end of a sequence comes only its end."""
    predictions: Predictions = chain.predictions_
    order, names = predictions.order, chain.next_symbols_
    cells = len(names) ** (order + 1)
    if cells > ROOM:
        raise ResourceError(
            f"a chain of order {order} over {len(names):,} symbols has {float(cells):,.0f} cells, and a "
            f"page can go through {ROOM:,}.\n  Ask it what comes next: softcount predict, or predict_proba"
        )
    steps = min(MOST_STEPS, order + ROOM // cells)
    nodes: list[Document] = []
    for step in range(steps):
        before = min(step, order)
        node: Document = {"name": f"step {step + 1}", "scope": list(range(step - before, step + 1))}
        if step > order:
            nodes.append(node | {"like": order})
        else:
            table = pack(after_contexts(predictions, before, first=step < order))
            nodes.append(node | {"kind": "levels", **level_document(names), "table": table})
    return _sequence_document(nodes, [], [len(names)] * steps, min(order, steps - 1), steps)


def after_contexts(predictions: Predictions, before: int, first: bool) -> np.ndarray:
    """Return (symbols x ... x symbols) the probability of each after others, oldest first; `first`: of a sequence."""
    alphabet = predictions.alphabet
    size = alphabet.predicted
    digits = 1 + np.indices((size,) * (before + 1)).reshape(before + 1, -1)  # the oldest step first, the new one last
    if first and alphabet.ends:
        digits = np.concatenate([np.zeros_like(digits[:1]), digits])
    known = len(digits) - 1
    keys = [digits[-1]]
    for back in range(1, known + 1):
        keys.append(keys[-1] + digits[-1 - back] * alphabet.base**back)
    found = predictions.of_steps(keys, np.full(digits.shape[1], known))
    if alphabet.ends:
        over = (digits[:-1] == size).any(axis=0)
        found = np.where(over, digits[-1] == size, found)
    return found.reshape((size,) * (before + 1))


def states_document(model: FittedStates) -> Document:
    """Describe a node for the state of each of the first steps, and one for each column that a step shows."""
    shown = model.shown
    names = labels_in(shown)
    shown_leaves = [(leaf, _shown(model, leaf)) for leaf in model.chain.leaves]
    kept = [(names[leaf.key], own) for leaf, own in shown_leaves if own is not None]
    left_out = [names[key] for leaf, own in shown_leaves if own is None for key in leaf.columns]
    steps = max(FEWEST_STATES, min(MOST_STEPS, MOST_CARDS // (1 + len(kept))))
    state = apart("state", [name for name, _ in kept])
    nodes: list[Document] = []
    leaves: list[Document] = []
    sizes: list[int] = []
    order: list[str] = []
    like: dict[str, int] = {}
    before: list[int] = []  # the node of the state before
    for step in range(1, steps + 1):
        here = len(nodes)
        found: Document = {"scope": [*before, here]}
        if step > 2:
            found["like"] = before[0]
        else:
            table = pack(model.transitions if before else model.first)
            found = {"kind": "levels", **level_document(model.names), **found, "table": table}
        nodes.append({"name": f"{state} {step}"} | found)
        before = [here]
        sizes.append(model.n_states)
        order.append(nodes[-1]["name"])
        for name, own in kept:
            into = leaves if own["kind"] == "number" else nodes
            scope = [here] if own["kind"] == "number" else [here, len(nodes)]
            alike = {"like": like[name]} if name in like else own
            like.setdefault(name, len(into))
            into.append({"name": f"{name} {step}", "scope": scope} | alike)
            order.append(into[-1]["name"])
            sizes += [] if own["kind"] == "number" else [len(own["levels"])]
    middle = next(at for at, node in enumerate(nodes) if node["name"] == f"{state} {(steps + 1) // 2}")
    return _sequence_document(nodes, leaves, sizes, middle, steps, order, left_out)


def _shown(model: FittedStates, leaf: Node) -> Document | None:
    """Describe a column in each state; None for one that the page cannot compute."""
    if len(leaf.columns) != 1 or leaf.family.facts.counted or leaf.family.facts.words:
        return None
    places = list(model.chain.links.shown)
    states = {name: part[places] for name, part in model.shown.estimates[leaf.key].items()}
    levels = leaf.levels_of(0)
    cells = np.full(1, np.nan) if levels is None else np.zeros(1)
    density = leaf.family.density(states, leaf.setting).conditional(cells, 0)
    if levels is None:
        return number_document(model.stationary, density)
    return {"kind": "levels", **level_document(levels), "table": pack(density.params["probability"])}


def _sequence_document(
    nodes: list[Document], leaves: list[Document], sizes: Sequence[int], asked: int, steps: int,
    order: Sequence[str] = (), left_out: Sequence[str] = (),
) -> Document:  # fmt: skip
    names = [node["name"] for node in nodes]
    tree = JunctionTree.build(sizes, [tuple(node["scope"]) for node in nodes], ROOM, names)
    return _document(nodes, leaves, tree, order or names, asked, left_out) | {"elsewhere": False, "steps": steps}
