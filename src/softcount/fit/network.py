"""Bayesian networks: structure, priors, initial tables, categories of hidden nodes, and an evaluation of the class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core.counts import Counts, Twofold
from softcount.errors import DataError
from softcount.evaluate.scores import Evaluation, cross_validate_refits
from softcount.files.bif import read_network
from softcount.fit import prior_levels, reread
from softcount.fitted.fitted import fitted_table
from softcount.fitted.network import FittedNet, as_fitted
from softcount.learn.networks import AUTO, GraphStarts, fit_hidden_levels, fit_network
from softcount.learn.record import Plan
from softcount.models.align import rearrange
from softcount.models.declare import Coded, DeclaredNet
from softcount.models.network import Net, levels_of
from softcount.models.nodes import Imagined, Node, Params
from softcount.networks.network import Edge, Graph, Network, pair_of
from softcount.networks.scores import Bdeu, Bic, CodeCounts, EdgeRules
from softcount.networks.structure_search import chow_liu, search_graph, structural_em, tree_augmented
from softcount.priors import Dirichlet
from softcount.run.local import Runner
from softcount.run.progress import announce
from softcount.table import Chunk, Chunks, Key, Table, open_table
from softcount.table.chunk import Split
from softcount.table.discretise import MOST_INTERVALS

FOLDS = 5
WORDS = ("naive", "tan", "chow-liu", "search", "joint")
ARROW, LONG_ARROW = ">", "->"
SUFFIXES = (".bif", ".xml", ".xmlbif", ".gz")


# -- structure: pairs, parents by child, text, a file, or a word for how to find edges


class SearchSettings(Struct, frozen=True):
    """What a search for edges keeps to: its score, edges that must or must not be, at most so many parents."""

    score: str = "bic"
    required: tuple[Edge, ...] = ()
    forbidden: tuple[Edge, ...] = ()
    max_parents: int | None = None
    sample_size: float = 1.0


def structure_of(edges: Any, target: Key | None, settings: SearchSettings) -> DeclaredNet:
    """A network with the structure that `edges` describes: its graph, what makes one of the names of the nodes, or what
    finds one in the rows. By default that is a tree, of the columns or, with a class, given the class.
    """
    if edges is None:
        edges = "chow-liu" if target is None else "tan"
    if not (isinstance(edges, str) and edges in WORDS):
        return DeclaredNet(graph=graph_of(edges))
    if target is None and edges in ("naive", "joint", "tan"):
        raise DataError(f"edges={edges!r} needs the class: give y, the labels or the name of their column.")
    if edges in ("naive", "joint"):
        return DeclaredNet(shape=partial(_class_first, target, edges == "joint"))
    return DeclaredNet(search=partial(_find_edges, edges, target, settings))


def _class_first(target: Key, joint: bool, names: Sequence[Key]) -> Graph:
    """Edges from the class to every other node; in a `joint` graph, also from every node to those after it."""
    order = [target, *(name for name in names if name != target)]
    parents = (order[:place] if joint else order[:1] for place in range(1, len(order)))
    edges = [(parent, name) for name, own in zip(order[1:], parents, strict=True) for parent in own]
    return Graph.of(edges, order if joint else names)


def _find_edges(word: str, target: Key | None, settings: SearchSettings, coded: Coded) -> tuple[Graph, list[str]]:
    """The graph of coded rows; a search by score needs the same rows for every node: missing cells are drawn."""
    learn, notes = learner(word, coded, target, settings), []
    announce("searching edges")
    if not (word == "search" and (coded.codes < 0).any()):
        graph = learn(CodeCounts(coded.codes, coded.sizes, coded.weights))
    else:
        graph, turns = structural_em(coded.codes, coded.sizes, coded.weights, learn)
        notes.append(
            f"edges were searched in rows whose missing cells were drawn from the network so far, {turns} times."
        )
    return Graph(coded.names, graph.parents), notes


def learner(word: str, coded: Coded, target: Key | None, settings: SearchSettings) -> Callable[[CodeCounts], Graph]:
    """From counts of nodes by number to a graph of them."""
    if word == "tan":
        return lambda counting: tree_augmented(counting, coded.names.index(target))
    return chow_liu if word == "chow-liu" else partial(_search, settings=settings, names=coded.names)


def _search(counting: CodeCounts, settings: SearchSettings, names: Sequence[Key]) -> Graph:
    for parent, child in settings.required:
        if (parent, child) in settings.forbidden:
            raise DataError(f"the edge from {parent!r} to {child!r} is both required and forbidden.")
        own = sum(other == child for _, other in settings.required)
        if settings.max_parents is not None and own > settings.max_parents:
            raise DataError(f"{child!r} has {own} required parents, but max_parents is {settings.max_parents}.")
    number = {name: place for place, name in enumerate(names)}
    for name in (name for edge in (*settings.required, *settings.forbidden) for name in edge):
        if name not in number:
            raise DataError(f"the table has no column {name!r}, which an edge is required or forbidden for.")
    edges = settings.required, settings.forbidden
    required, forbidden = (frozenset((number[a], number[b]) for a, b in own) for own in edges)
    score = Bdeu(settings.sample_size) if settings.score == "bdeu" else Bic()
    return search_graph(counting, score, EdgeRules(required, forbidden, settings.max_parents)).graph


def graph_of(edges: Any) -> Graph:
    """A graph from pairs (parent, child), from parents by child, from text such as "A>B, B>C", or from a file."""
    if isinstance(edges, Graph):
        return edges
    if isinstance(edges, Mapping):
        return Graph.of(
            [
                (parent, child)
                for child, own in edges.items()
                for parent in ([own] if isinstance(own, str) else list(own))
            ],
            edges,
        )
    if isinstance(edges, Path) or (isinstance(edges, str) and edges.lower().endswith(SUFFIXES)):
        return read_network(edges).graph
    if isinstance(edges, str):
        return graph_of_text(edges)
    if not isinstance(edges, Iterable):
        raise DataError(f"edges are pairs (parent, child), not {edges!r}.")
    return Graph.of(list(edges))


def graph_of_text(text: str) -> Graph:
    """A graph from text: "Bag>Flavor, Bag>Wrapper"; a name alone is a node without edges.

    >>> graph_of_text("Rain>Wet, Sprinkler -> Wet").edges
    [('Rain', 'Wet'), ('Sprinkler', 'Wet')]
    """
    edges, names = _written(text)
    if not edges and len(names) == 1:
        raise DataError(
            f"{text!r} is neither a list of edges (A>B, B>C) nor one of {', '.join(WORDS)}, nor the name of a network "
            "file (.bif)."
        )
    return Graph.of(edges, dict.fromkeys(names))


def pairs_of(edges: Any) -> tuple[Edge, ...]:
    """Pairs (parent, child), as such or as text, that need not be a graph."""
    if isinstance(edges, str):
        return tuple(_written(edges)[0])
    if edges is not None and not isinstance(edges, Iterable):
        raise DataError(f"edges are pairs (parent, child), not {edges!r}.")
    return tuple(pair_of(edge) for edge in edges or ())


def _written(text: str) -> tuple[list[Edge], list[str]]:
    """The edges that a text names, and the names in it."""
    edges: list[Edge] = []
    names: list[str] = []
    for part in text.split(","):
        along = [name.strip() for name in part.replace(LONG_ARROW, ARROW).split(ARROW)]
        if not all(along):
            close = f" Words for finding them are: {', '.join(WORDS)}." if ARROW not in text else ""
            raise DataError(f"edges are written A>B, separated by commas, not {text!r}.{close}")
        names += along
        edges += list(pairwise(along))
    return edges, names


# -- priors and initial tables: numbers, words, an expert's tables, an older network's counts


def other_network(said: Any) -> FittedNet | None:
    """A network that was given as a prior or as a start, as a fitted one; None for anything else."""
    fitted = as_fitted(said) if isinstance(said, Network) else fitted_table(said)
    return fitted if hasattr(fitted, "net") else None


def _laid(other: Net, model: Net, key: Key, array: np.ndarray, what: str) -> np.ndarray:
    """(configurations x rest) of another network in the order of this model's parents and levels."""
    parents, theirs = ({net.graph.names[x] for x in net.graph.parents[net.graph.place(key)]} for net in (model, other))
    if parents != theirs:
        raise DataError(f"{what}: node {key!r} has other parents there than here.")
    for name in (key, *parents):
        if (levels_of(other.nodes[name]) is None) != (levels_of(model.nodes[name]) is None):
            raise DataError(f"{what}: {name!r} has levels in one network and is a number in the other.")
    return rearrange(array, other, model, key, levels_of(model.nodes[key]) is not None, guess=True)


def _refuse_unknown_levels(other: Net, model: Net, key: Key) -> None:
    """Raise where a node or one of its parents has a level that the other network does not know."""
    for name in (key, *(other.graph.names[parent] for parent in other.graph.parents[other.graph.number[key]])):
        known = set(map(str, levels_of(other.nodes[name]) or ()))
        for level in levels_of(model.nodes[name]) or ():
            if str(level) not in known:
                raise DataError(f"prior: node {name!r} has no category {level!r} there.")


def network_priors(model: Net, prior: Any, sample_size: float) -> dict[Key, Any]:
    """The prior of every node.

    A number or word is for all nodes ("bdeu" shares `sample_size` imagined rows over the table of each); a mapping has
    those of some; a network is an expert: the tables of one that was read times `sample_size`, the counts of a fitted.
    """
    other = other_network(prior)
    if other is not None:
        found: dict[Key, Any] = {node.key: 1.0 for node in model.each}
        for key in (key for key in found if key in other.levels):
            counts = np.maximum(other.counts.arrays[key].value, 0.0)
            table = counts + np.broadcast_to(other.imagined.hypers[key]["alpha"], counts.shape)
            table = _laid(other.net, model, key, table, "prior")
            _refuse_unknown_levels(other.net, model, key)
            found[key] = Dirichlet(table if other.counts.rows > 0 else table * sample_size)
        return found
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
    return {key: list(levels) for key, levels in other.levels.items() if key not in other.net.cuts}


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
    other = other_network(init)
    if other is None:
        raise DataError(f"init is a network, or a mapping of nodes to tables, not {init!r}.")
    return lambda model, imagined: _started(model, imagined, _start_from(model, other))


def _start_from(model: Net, other: FittedNet) -> dict[Key, Any]:
    """What another network says of the nodes that both have, by parameter."""
    found: dict[Key, Any] = {}
    levels, params = other.levels, other.params
    for key in (key for key in model.graph.names if key in params):
        if key in levels:
            table = _laid(other.net, model, key, params[key]["probability"], "init")
            found[key] = table / table.sum(axis=1, keepdims=True)
            continue
        laid = {name: _laid(other.net, model, key, np.asarray(own), "init") for name, own in params[key].items()}
        parents = model.nodes[key].family.number_parents
        if parents:  # in the order of the new model
            known = other.net.nodes[key].family.number_parents
            laid["coefficients"] = laid["coefficients"][..., [known.index(x) for x in parents]]
        found[key] = laid
    return found


def _started(model: Net, imagined: Imagined, init: Mapping[Key, Any]) -> Params:
    """Given tables where there are some; the others even."""
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


# -- the request


class NetworkRequest(Struct, frozen=True):
    """A Bayesian network of a table's columns, of `hidden` nodes, and of the target of the plan.

    `edges` is anything that `structure_of` takes; `classes` are the names of coded labels, and
    `class_levels` further levels of the class that a prior names. The class is evaluated in `folds` (None: not at all),
    or on the share `holdout` of the rows.
    """

    plan: Plan
    edges: Any = None
    search: SearchSettings = field(default_factory=SearchSettings)
    hidden: Any = None
    cut: Mapping[Key, Any] = field(default_factory=dict)
    prior: Any = 1.0
    sample_size: float = 1.0
    starts: GraphStarts = field(default_factory=GraphStarts)
    classes: list[Any] | None = None
    class_levels: list[Any] = field(default_factory=list)
    intervals: int = MOST_INTERVALS
    folds: int | None = None
    holdout: float | None = None
    seed: int = 0

    def settle(self, table: Table, runner: Runner, evaluated: bool = False) -> tuple[Table, Self]:
        """Nothing is left to the rows before they are learned from."""
        return table, self

    def learn(self, table: Table, runner: Runner) -> FittedNet:
        """The network: its edges, where they are to be found, and its tables; by EM where something is not seen."""
        declared = self.declare(table, structure_of(self.edges, self.plan.target, self.search))
        priors = partial(network_priors, prior=self.prior, sample_size=self.sample_size)
        fit = partial(fit_network, table, priors_of=priors, plan=self.plan, starts=self.starts, runner=runner)
        return replace(FittedNet.of(fit_hidden_levels(declared, fit)), target=self.plan.target)

    def declare(self, table: Table, structure: DeclaredNet) -> DeclaredNet:
        """What is said of the network, for a table whose columns are known."""
        target, hidden = self.plan.target, self.hidden or {}
        if hidden == AUTO:
            named = () if structure.graph is None else structure.graph.names
            hidden = {name: AUTO for name in named if name not in table.keys and name != target}
        cells = 0 if table.n_rows is None else table.n_rows * max(1, len(table.schema.used))
        return replace(
            structure, declared=self.plan.declared, hidden=dict(hidden), cut=dict(self.cut), target=target,
            classes=self.classes, declared_classes=self.class_levels, cells=cells, intervals=self.intervals,
        )  # fmt: skip

    def complete(self, fitted: FittedNet, table: Table, runner: Runner) -> FittedNet:
        """Count missing cells, and evaluate how the class of unseen rows is predicted."""
        again = reread(table, fitted.schema)
        for task in again.tasks():
            task()
        missing = {key: float(n) for key, n in again.missing.items() if key in fitted.net.graph.number}
        if self.plan.target is not None:
            missing[self.plan.target] = float(again.unknown_labels)
        fitted = replace(fitted, missing=missing)
        if self.plan.target is None or not self.folds:
            return fitted
        evaluation = self._evaluate(fitted, table, again, runner)
        return replace(fitted, record=replace(fitted.record, evaluation=evaluation))

    def _evaluate(self, fitted: FittedNet, table: Table, again: Table, runner: Runner) -> Evaluation | None:
        """Fit a network to the other rows for every fold, with a structure of its own if structure is searched.

        None if too few rows have a class.
        """
        codes = class_codes(fitted, again)
        parts = [np.ones(0), *(w for _, w in again.weights() if w is not None)]
        weights = np.concatenate(parts) if again.has_weights else np.ones(len(codes))
        classes = len(fitted.levels[fitted.target])
        folds = FOLDS if self.folds is None else self.folds
        split, how = Split(folds, self.seed), f"{folds}-fold cross-validation"
        if self.holdout is not None:
            split, how = Split(2, self.seed, self.holdout), f"{100 * self.holdout:g} % held out"
        answer = partial(self._refit, fitted, table, runner)
        return cross_validate_refits(codes, weights, classes, split, how, answer)

    def _refit(
        self, fitted: FittedNet, table: Table, runner: Runner, weights: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        """The probabilities of the class in some rows, by a network that was learned with these weights."""
        kinds: Any = dict(self.plan.declared.forced)
        if table.sides.weight is not None:
            kinds[table.sides.weight] = "ignore"
        missing, target = table.schema.missing, self.plan.target
        weighted = open_table(table.source, kinds=kinds, missing=missing, target=target, weights=weights)
        net = replace(self, plan=replace(self.plan, watch=None)).learn(weighted, runner)
        taken: list[Chunk] = []
        for chunk in (task() for task in reread(table, net.schema).tasks()):
            own = rows[(rows >= chunk.start) & (rows < chunk.start + chunk.n_rows)] - chunk.start
            if len(own):
                taken.append(chunk.take(own))
        some: Any = Chunks(taken)
        order = [net.levels[target].index(level) for level in fitted.levels[target]]
        return net.proba(some, of=target)[:, order]


def class_codes(fitted: FittedNet, table: Table) -> np.ndarray:
    """The class of every row of a table that is open with its target, as the network numbers it; -1 where unknown."""
    known = {str(level): place for place, level in enumerate(fitted.levels[fitted.target])}
    return np.array([-1 if x is None else known.get(str(x), -1) for x in table.labels()], dtype=np.int64)
