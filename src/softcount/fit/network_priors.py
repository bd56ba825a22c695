"""Priors and starts of networks: numbers, words, an expert's tables, an older network's counts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.core.counts import Counts
from softcount.core.twofold import Twofold
from softcount.errors import DataError
from softcount.families import Family
from softcount.fit import prior_levels
from softcount.fitted.network import FittedNet
from softcount.models.network import Net, levels_of
from softcount.models.nodes import Imagined, Node, Params
from softcount.networks.network import Graph, Network
from softcount.priors import Dirichlet
from softcount.table.schema import Key


class OtherNetwork(Struct, frozen=True):
    """A network that is a prior or a start: levels and parents by node, and arrays with an axis for every parent.

    `tables` are of nodes with levels and end in an axis of the node's own: counts, or shares that are worth an imagined
    row in every configuration. `numbers` are the families and parameters of the other nodes.
    """

    levels: Mapping[Key, Sequence[Any]]
    parents: Mapping[Key, Sequence[Key]]
    tables: Mapping[Key, np.ndarray]
    numbers: Mapping[Key, tuple[Family, Mapping[str, np.ndarray]]]
    cuts: Collection[Key] = ()
    counted: bool = False

    def laid(self, model: Net, key: Key, array: np.ndarray, own: bool, what: str) -> np.ndarray:
        """(configurations x rest) in the order of this model's parents and levels; of those it lacks, the mean."""
        parents = [model.graph.names[parent] for parent in model.graph.parents[model.graph.place(key)]]
        if set(parents) != set(self.parents[key]):
            raise DataError(f"{what}: node {key!r} has other parents there than here.")
        for name in (key, *parents):
            if (name in self.levels) != (levels_of(model.nodes[name]) is not None):
                raise DataError(f"{what}: {name!r} has levels in one network and is a number in the other.")
        before, axes = ([name for name in own if name in self.levels] for own in (self.parents[key], parents))
        turned = array.transpose([*(before.index(name) for name in axes), *range(len(axes), array.ndim)])
        known = [*axes, key] if own else axes
        rest = array.shape[len(known) :]
        room = [(0, 0), *((0, 1) for _ in known), *((0, 0) for _ in rest)]
        padded = np.pad(turned[None], room, mode="mean")  # an axis in front, because a number alone has none
        picks = [[0], *(self._places(model.nodes[name]) for name in known), *map(range, rest)]
        return np.asarray(padded[np.ix_(*picks)].reshape(model.nodes[key].setting.groups, -1, *rest))

    def _places(self, node: Node) -> list[int]:
        """Where the levels of a node are here; the place after the last for one that is not."""
        known = {str(level): place for place, level in enumerate(self.levels[node.key])}
        return [known.get(str(level), len(known)) for level in levels_of(node) or ()]

    def refuse_unknown_levels(self, model: Net, key: Key) -> None:
        """Raise where a node or one of its parents has a level that is not known here."""
        for name in (key, *self.parents[key]):
            for level, place in zip(levels_of(model.nodes[name]) or (), self._places(model.nodes[name]), strict=True):
                if place == len(self.levels[name]):
                    raise DataError(f"prior: node {name!r} has no level {level!r} there.")


def other_network(said: Any, shares: bool = False) -> OtherNetwork | None:
    """A network that was given as a prior or, as `shares`, as a start; None for anything else."""
    if isinstance(said, Network):
        graph = said.graph
        levels = dict(zip(graph.names, said.levels, strict=True))
        return OtherNetwork(
            levels, _parents(graph), dict(zip(graph.names, map(np.asarray, said.tables), strict=True)), {}
        )
    fitted = getattr(said, "fitted_", None)
    if not isinstance(fitted, FittedNet):
        return None
    net, known = fitted.net, fitted.levels
    sizes = {key: len(levels) for key, levels in known.items()}
    parents = _parents(net.graph)
    above = {key: [sizes[name] for name in own if name in sizes] for key, own in parents.items()}
    counted = fitted.counts.rows > 0
    tables = {
        key: (fitted.params[key]["probability"] if shares else _believed(fitted, key)).reshape(*above[key], sizes[key])
        for key in known
    }
    numbers = {
        key: (
            net.nodes[key].family,
            {name: np.asarray(own).reshape((*above[key], *np.shape(own)[1:])) for name, own in params.items()},
        )
        for key, params in fitted.params.items()
        if key not in known
    }
    return OtherNetwork(known, parents, tables, numbers, list(net.cuts), counted)


def _parents(graph: Graph) -> dict[Key, list[Key]]:
    names = graph.names
    return {name: [names[parent] for parent in own] for name, own in zip(names, graph.parents, strict=True)}


def _believed(fitted: FittedNet, key: Key) -> np.ndarray:
    """What a network has counted and imagined of a node."""
    counts = np.maximum(fitted.counts.arrays[key].value, 0.0)
    return np.asarray(counts + np.broadcast_to(fitted.imagined.hypers[key]["alpha"], counts.shape))


def network_priors(model: Net, prior: Any, sample_size: float) -> dict[Key, Any]:
    """The prior of every node.

    A number or word is for all nodes ("bdeu" shares `sample_size` imagined rows over the table of each); a mapping has
    those of some; a network is an expert: the tables of one that was read times `sample_size`, the counts of a fitted.
    """
    assert isinstance(model, Net)
    other = other_network(prior)
    if other is not None:
        return {node.key: _expert(model, node, other, sample_size) for node in model.each}
    if isinstance(prior, Mapping):
        for key in prior:
            model.graph.place(key)
        return {node.key: _one(node, prior.get(node.key, 1.0), sample_size) for node in model.each}
    return {node.key: _one(node, prior, sample_size) for node in model.each}


def node_levels(prior: Any) -> dict[Key, list[Any]]:
    """The levels that a prior, or another network, names: they join those that are met."""
    other = other_network(prior)
    if other is None:
        return prior_levels(prior)
    return {key: list(levels) for key, levels in other.levels.items() if key not in other.cuts}


def _expert(model: Net, node: Node, other: OtherNetwork, sample_size: float) -> Any:
    if node.key not in other.tables:
        return 1.0
    table = other.laid(model, node.key, other.tables[node.key], True, "prior")
    other.refuse_unknown_levels(model, node.key)
    return Dirichlet(table if other.counted else table * sample_size)


def _one(node: Node, prior: Any, sample_size: float) -> Any:
    """A node's prior as its family takes it."""
    levels = levels_of(node)
    if isinstance(prior, str) and prior == "bdeu":
        return sample_size / (node.setting.groups * max(len(levels or (0,)), 1))
    if isinstance(prior, (list, np.ndarray)) and levels is not None:
        return Dirichlet(_shaped(node, prior, "prior"))
    return prior


def start_of(init: Any) -> Callable[[Net, Imagined], Params] | None:
    """What makes the parameters that EM starts from; None where they are drawn."""
    if init is None or (isinstance(init, str) and init in ("random", "k-means++")):
        return None
    if isinstance(init, Mapping):
        return lambda model, imagined: _started(model, imagined, init)
    other = other_network(init, shares=True)
    if other is None:
        raise DataError(f"init is a network, or a mapping of nodes to tables, not {init!r}.")
    return lambda model, imagined: _started(model, imagined, _start_from(model, other))


def _start_from(model: Net, other: OtherNetwork) -> dict[Key, Any]:
    """What another network says of the nodes that both have, by parameter."""
    assert isinstance(model, Net)
    found: dict[Key, Any] = {}
    for key in model.graph.names:
        if key in other.tables:
            table = other.laid(model, key, other.tables[key], True, "init")
            found[key] = table / table.sum(axis=1, keepdims=True)
        elif key in other.numbers:
            family, own = other.numbers[key]
            laid = {name: other.laid(model, key, array, False, "init")[:, 0] for name, array in own.items()}
            found[key] = model.nodes[key].family.as_named(laid, family)
    return found


def _started(model: Net, imagined: Imagined, init: Mapping[Key, Any]) -> Params:
    """Given tables where there are some; the others even."""
    assert isinstance(model, Net)
    for key in init:
        model.graph.place(key)
    sizes = {x.name: (x.groups, x.width) if x.alone else (x.groups, len(x.nodes), x.width) for x in model.nodes.bundles}
    empty = Counts({name: Twofold.of(np.zeros(size)) for name, size in sizes.items()})
    even = model.nodes.estimate(empty, imagined)
    named = {node.key: even[node.key] for node in model.each}
    for key, said in init.items():
        node = model.nodes[key]
        named[key] = node.family.given(_said(node, said), node.setting, node.setting.groups)
    return model.nodes.params(named)


def _said(node: Node, said: Any) -> Mapping[Any, Any]:
    """A table as probabilities by level, one for each configuration of the parents."""
    levels = levels_of(node)
    if isinstance(said, Mapping):
        return said
    if levels is None:
        raise DataError(f"init: {node.key!r} is a number; give its parameters by name.")
    table = _shaped(node, said, "init")
    return {level: table[:, place] for place, level in enumerate(levels)}


def _shaped(node: Node, said: Any, what: str) -> np.ndarray:
    """A table as somebody wrote it: (configurations x levels), or an axis for every parent."""
    groups, levels = node.setting.groups, len(levels_of(node) or ())
    try:
        table = np.asarray(said, dtype=float)
    except (TypeError, ValueError):
        table = np.zeros(0)
    if table.shape[-1:] != (levels,) or table.size not in (levels, groups * levels):
        raise DataError(
            f"{what}: the table of node {node.key!r} has a number for each of its {levels} levels in each of "
            f"{groups} configurations of its parents."
        )
    return np.broadcast_to(table.reshape(-1, levels), (groups, levels))
