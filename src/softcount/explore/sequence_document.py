"""What the page needs of a model of sequences: its first steps as a network, in which every step hangs on earlier ones.

A chain's step depends on as many before it as its order says, and on all of them where they are fewer. A hidden state
depends on the state before it, and what a step shows on its own state. Steps that depend alike share one table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.chains.counts import StepKeys
from softcount.errors import ResourceError
from softcount.explore.net_document import ROOM, network_document
from softcount.explore.number_bars import number_document
from softcount.explore.packed_arrays import packed
from softcount.explore.star_document import said_left_out, said_levels
from softcount.fitted.answers import labels_in
from softcount.networks.junction_tree import JunctionTree
from softcount.table.schema import apart

if TYPE_CHECKING:
    from softcount.chains.counts import Predictions
    from softcount.fitted.states import FittedStates
    from softcount.models.nodes import Node

Document = dict[str, Any]
MOST_STEPS = 8
FEWEST_STATES = 3
"""Steps of hidden states, at least."""
MOST_CARDS = 40
"""Nodes of a page, about, that hidden states are cut to."""


def chain_document(chain: Any) -> Document:
    """A node for each of the first steps; after the end of a sequence nothing comes but its end."""
    predictions: Predictions = chain.predictions_
    order, names = predictions.order, chain.next_symbols_
    steps = _steps(len(names), order)
    nodes: list[Document] = []
    for step in range(steps):
        before = min(step, order)
        node: Document = {"name": f"step {step + 1}", "scope": list(range(step - before, step + 1))}
        if step > order:
            nodes.append(node | {"like": order})
        else:
            table = packed(after_contexts(predictions, before, first=step < order))
            nodes.append(node | {"kind": "levels", **said_levels(names), "table": table})
    return _document(nodes, [], [len(names)] * steps, min(order, steps - 1)) | {"steps": steps}


def _steps(symbols: int, order: int) -> int:
    """As many steps as a page has room for."""
    if symbols ** (order + 1) > ROOM:
        raise ResourceError(
            f"a chain of order {order} over {symbols:,} symbols has {float(symbols) ** (order + 1):,.0f} cells, and a "
            f"page can go through {ROOM:,}.\n  Ask it what comes next: softcount predict, or predict_proba"
        )
    return min(MOST_STEPS, order + int(ROOM // symbols ** (order + 1)))


def after_contexts(predictions: Predictions, before: int, first: bool) -> np.ndarray:
    """(symbols x ... x symbols) the probability of each after so many others, oldest first; `first`, of a sequence."""
    alphabet = predictions.alphabet
    size = alphabet.predicted
    digits = 1 + np.indices((size,) * (before + 1)).reshape(before + 1, -1)  # the oldest step first, the new one last
    if first and alphabet.ends:
        digits = np.concatenate([np.zeros_like(digits[:1]), digits])
    known = len(digits) - 1
    keys = [digits[-1]]
    for back in range(1, known + 1):
        keys.append(keys[-1] + digits[-1 - back] * alphabet.base**back)
    found = predictions.of_steps(StepKeys(keys, np.full(digits.shape[1], known), np.arange(digits.shape[1])))
    if alphabet.ends:
        over = (digits[:-1] == size).any(axis=0)
        found = np.where(over, digits[-1] == size, found)
    return found.reshape((size,) * (before + 1))


def states_document(model: FittedStates) -> Document:
    """A node for the state of each of the first steps, and one for everything that a step shows."""
    shown = model.shown
    names = labels_in(shown)
    columns = [_shown(model, leaf) for leaf in model.chain.leaves]
    kept = [(names[leaf.key], own) for leaf, own in zip(model.chain.leaves, columns, strict=True) if own is not None]
    left_out = [
        names[key] for leaf, own in zip(model.chain.leaves, columns, strict=True) if own is None for key in leaf.columns
    ]
    steps = max(FEWEST_STATES, min(MOST_STEPS, MOST_CARDS // (1 + len(kept))))
    state = apart("state", [name for name, _ in kept])
    nodes: list[Document] = []
    leaves: list[Document] = []
    sizes: list[int] = []
    order: list[str] = []
    like: dict[str, int] = {}
    for step in range(1, steps + 1):
        here = len(nodes)
        nodes.append({"name": f"{state} {step}"} | _state(model, step, here, like))
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
    found = _document(nodes, leaves, sizes, middle, order)
    return found | {"steps": steps, "notes": [*found["notes"], *said_left_out(left_out)]}


def _state(model: FittedStates, step: int, here: int, like: dict[str, int]) -> Document:
    """The state of a step, after that of the step before: the last node that is one."""
    if step == 1:
        like["(state)"] = here
        return {"kind": "levels", **said_levels(model.names), "scope": [here], "table": packed(model.first)}
    before, like["(state)"] = like["(state)"], here
    if step > 2:
        return {"scope": [before, here], "like": before}
    table = packed(model.transitions)
    return {"kind": "levels", **said_levels(model.names), "scope": [before, here], "table": table}


def _shown(model: FittedStates, leaf: Node) -> Document | None:
    """What the states show in a column; None for one that the page cannot compute."""
    if len(leaf.columns) != 1 or leaf.family.counted or leaf.family.words_of(leaf.setting) is not None:
        return None
    places = list(model.chain.links.shown)
    states = {name: part[places] for name, part in model.shown.estimates[leaf.key].items()}
    own = leaf.family.scorable(states, leaf.setting)
    levels = leaf.family.levels_of(leaf.setting, 0)
    cells = np.full(1, np.nan) if levels is None else np.zeros(1)
    family, params = leaf.family.conditional(own, leaf.setting, cells, 0)
    if levels is None:
        return number_document(model.stationary, family, params, leaf)
    return {"kind": "levels", **said_levels(levels), "table": packed(params["probability"])}


def _document(
    nodes: list[Document], leaves: list[Document], sizes: Sequence[int], asked: int, order: Sequence[str] = ()
) -> Document:
    names = [node["name"] for node in nodes]
    tree = JunctionTree.build(sizes, [tuple(node["scope"]) for node in nodes], ROOM, names)
    return network_document(nodes, leaves, tree, order or names, asked) | {"elsewhere": False, "notes": []}
