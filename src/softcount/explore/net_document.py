"""What the page needs of a network: its tables, the tree that exact answers are computed on, numbers as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcount.errors import DataError, ResourceError
from softcount.explore.number_bars import number_document
from softcount.explore.packed_arrays import packed
from softcount.explore.star_document import said_left_out, said_levels
from softcount.fitted.network import FittedNet
from softcount.fitted.network_numbers import NumberNode
from softcount.models.nodes import Node
from softcount.networks.elimination import Evidence
from softcount.networks.junction_tree import JunctionTree
from softcount.table.schema import labels

Document = dict[str, Any]
ROOM = 2_000_000
"""Cells of a tree that a page may go through: 16 MB, and about 30 ms an answer."""


def net_document(model: FittedNet) -> Document:
    """The discrete nodes with their tables, the numbers that hang on them, and the cliques of their tree."""
    net, names = model.net, labels(model.net.graph.names)
    nodes = [_node(model, new, place, names) for new, place in enumerate(net.places)]
    leaves: list[Document] = []
    left_out: list[str] = []
    for place, (own, scope) in enumerate(zip(net.stacks, net.parents_of_leaves, strict=True)):
        if len(own.nodes) > 1 or own.nodes[0].family.words_of(own.nodes[0].setting) is not None:
            left_out += [names[node.key] for node in own.nodes]
        else:
            number = NumberNode(net, model.estimates, model.compiled[1][place], place, 0)
            leaves.append(_leaf(model, number) | {"name": names[own.nodes[0].key], "scope": list(scope)})
    tree = _tree(model, [tuple(leaf["scope"]) for leaf in leaves])
    order = [names[net.graph.names[place]] for place in net.graph.order]
    asked = 0 if model.target is None else net.discrete.place(model.target)
    return network_document(nodes, leaves, tree, [name for name in order if name not in left_out], asked) | {
        "notes": said_left_out(left_out)
    }


def network_document(
    nodes: list[Document], leaves: list[Document], tree: JunctionTree, order: Sequence[str], asked: int
) -> Document:
    """Nodes with their tables, the numbers that hang on them, and the tree that the page computes answers on."""
    return {
        "kind": "network",
        "nodes": nodes,
        "leaves": leaves,
        "cliques": [list(clique) for clique in tree.cliques],
        "above": list(tree.above),
        "order": list(order),
        "asked": asked,
    }


def _node(model: FittedNet, new: int, place: int, names: Any) -> Document:
    key = model.net.each[place].key
    found = {"name": names[key], "kind": "levels", **said_levels(model.levels[key])}
    if key in model.net.cuts:
        found["cuts"] = model.net.cuts[key].tolist()
    return found | {"scope": list(model.net.discrete.families[new]), "table": packed(model.compiled[0][new])}


def _leaf(model: FittedNet, number: NumberNode) -> Document:
    """A number's bars in every configuration of the nodes above it."""
    node: Node = number.node
    family, params = node.family, number.node.family.scorable(model.estimates[node.key], node.setting)
    nothing = Evidence(np.full((1, len(model.net.places)), -1))
    scope = number.scope
    shares = model.questions.posterior(scope, nothing).ravel() if scope else np.ones(1)
    return number_document(shares, family, params, node)


def _tree(model: FittedNet, more: list[tuple[int, ...]]) -> JunctionTree:
    net = model.net
    if not net.places:
        raise DataError("the network has no node with levels, so there is nothing for the page to ask by clicks.")
    scopes = [*net.discrete.families, *(scope for scope in more if scope)]
    try:
        return JunctionTree.build(net.sizes, scopes, ROOM, net.discrete.names)
    except ResourceError as error:
        needs = str(error).split("; at most")[0]  # what comes after is how `query` is given more room
        raise ResourceError(
            f"the network is too dense for a page, whether it is a file or served: {needs}, and a browser can go "
            f"through {ROOM:,}.\n  Ask it by: softcount query, which has more room and can draw samples"
        ) from None
