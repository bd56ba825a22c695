"""Priors and starts of networks: numbers, words, an expert's tables, an older network's counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.fitted.fitted_net import FittedNet
from softcount.models.base import GraphModel
from softcount.models.net import Net, levels_of
from softcount.models.nodes import Imagined, Node, Params
from softcount.networks.network import Network
from softcount.priors import Dirichlet
from softcount.table.schema import Key


def network_priors(model: GraphModel, prior: Any, sample_size: float) -> dict[Key, Any]:
    """The prior of every node.

    A number or word is for all nodes ("bdeu" shares `sample_size` imagined rows over the table of each); a mapping has
    those of some; a network is an expert: the tables of one that was read times `sample_size`, the counts of a fitted.
    """
    assert isinstance(model, Net)
    said = _tables(prior)
    if said is not None:
        return {node.key: _expert(node, said, sample_size) for node in model.each}
    if isinstance(prior, Mapping):
        for key in prior:
            model.graph.place(key)
        return {node.key: _one(node, prior.get(node.key, 1.0), sample_size) for node in model.each}
    return {node.key: _one(node, prior, sample_size) for node in model.each}


def prior_levels(prior: Any) -> dict[Key, list[Any]]:
    """The levels that a prior names: they join those that are met."""
    said = _tables(prior)
    if said is None:
        return inputs.prior_levels(prior)
    return {key: list(levels) for key, (levels, _, _) in said.items()}


def _tables(prior: Any) -> dict[Key, tuple[list[Any], np.ndarray, bool]] | None:
    """Levels, (configurations x levels) and whether they are counts, by node, of a network that is a prior."""
    fitted = getattr(prior, "fitted_", None)
    if isinstance(fitted, FittedNet):
        return {key: (levels, _believed(fitted, key), True) for key, levels in fitted.levels.items()}
    if isinstance(prior, Network):
        names = prior.graph.names
        return {
            name: (list(levels), np.asarray(table).reshape(-1, len(levels)), False)
            for name, levels, table in zip(names, prior.levels, prior.tables, strict=True)
        }
    return None


def _believed(fitted: FittedNet, key: Key) -> np.ndarray:
    """What a network has counted and imagined of a node."""
    counts = np.maximum(fitted.counts.arrays[key].value, 0.0)
    return np.asarray(counts + np.broadcast_to(fitted.imagined.hypers[key]["alpha"], counts.shape))


def _expert(node: Node, said: Mapping[Key, tuple[list[Any], np.ndarray, bool]], sample_size: float) -> Any:
    if node.key not in said:
        return 1.0
    levels, table, counted = said[node.key]
    own = list(levels_of(node) or ())
    known = [str(level) for level in levels]
    if len(table) != node.setting.groups or any(str(level) not in known for level in own):
        raise DataError(f"prior: node {node.key!r} has other parents or levels there than here.")
    ordered = table[:, [known.index(str(level)) for level in own]]
    return Dirichlet(ordered if counted else ordered * sample_size)


def _one(node: Node, prior: Any, sample_size: float) -> Any:
    """A node's prior as its family takes it."""
    levels = levels_of(node)
    if isinstance(prior, str) and prior == "bdeu":
        return sample_size / (node.setting.groups * max(len(levels or (0,)), 1))
    if isinstance(prior, (list, np.ndarray)) and levels is not None:
        return Dirichlet(np.asarray(prior, dtype=float).reshape(-1, len(levels)))
    return prior


def start_of(init: Any) -> Callable[[GraphModel, Imagined], Params] | None:
    """What makes the parameters that EM starts from; None where they are drawn."""
    if init is None or (isinstance(init, str) and init in ("random", "k-means++")):
        return None
    if not isinstance(init, Mapping):
        tables = _tables(init)
        if tables is None:
            raise DataError(f"init is a network, or a mapping of nodes to tables, not {init!r}.")
        init = {key: dict(zip(levels, table.T, strict=True)) for key, (levels, table, _) in tables.items()}
    return lambda model, imagined: _started(model, imagined, init)


def _started(model: GraphModel, imagined: Imagined, init: Mapping[Key, Any]) -> Params:
    """Given tables where there are some; the others even."""
    assert isinstance(model, Net)
    for key in init:
        model.graph.place(key)
    empty = {x.name: _nothing(x.groups, len(x.nodes), x.width, x.alone) for x in model.nodes.bundles}
    even = model.nodes.estimate(_counts(empty), imagined)
    named = {node.key: even[node.key] for node in model.each}
    for key, said in init.items():
        node = model.nodes[key]
        named[key] = node.family.given(_said(node, said), node.setting, node.setting.groups)
    return model.nodes.params(named)


def _nothing(groups: int, nodes: int, width: int, alone: bool) -> np.ndarray:
    return np.zeros((groups, width) if alone else (groups, nodes, width))


def _counts(arrays: Mapping[Any, np.ndarray]) -> Any:
    from softcount.counts import Counts
    from softcount.numerics.twofold import Twofold

    return Counts({name: Twofold.of(array) for name, array in arrays.items()})


def _said(node: Node, said: Any) -> Mapping[Any, Any]:
    """A table as probabilities by level, one for each configuration of the parents."""
    levels = levels_of(node)
    if isinstance(said, Mapping):
        return said
    if levels is None:
        raise DataError(f"init: {node.key!r} is a number; give its parameters by name.")
    table = np.asarray(said, dtype=float).reshape(-1, len(levels))
    return {level: table[:, place] for place, level in enumerate(levels)}
