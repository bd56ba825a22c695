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
from softcount.families.setting import initial_params
from softcount.files.bif import read_network
from softcount.fit import reread
from softcount.fitted.fitted import fitted_table
from softcount.fitted.network import FittedNet, as_fitted
from softcount.learn.networks import AUTO, GraphStarts, fit_hidden_levels, fit_network
from softcount.learn.record import Plan, prior_levels
from softcount.models.align import rearrange
from softcount.models.declare import Coded, DeclaredNet
from softcount.models.network import Net, levels_of
from softcount.models.nodes import Imagined, Node, Params
from softcount.networks.network import Edge, Graph, Network, pair_of
from softcount.networks.scores import Bdeu, Bic, CodeCounts, EdgeRules
from softcount.networks.structure_search import information_tree, search_graph, structural_em
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


# -- structure: pairs, parents by child, text, a file, or the name of a search


class SearchSettings(Struct, frozen=True):
    """Score of a search for edges, and its constraints."""

    score: str = "bic"
    required: tuple[Edge, ...] = ()
    forbidden: tuple[Edge, ...] = ()
    max_parents: int | None = None
    sample_size: float = 1.0


def declare_structure(edges: Any, target: Key | None, settings: SearchSettings) -> DeclaredNet:
    """Return a network with a graph, a function from the names of the nodes to a graph, or a search in the rows.

    The default is the best tree: of all columns or, with a class, of the columns given the class.
    """
    if edges is None:
        edges = "chow-liu" if target is None else "tan"
    if not (isinstance(edges, str) and edges in WORDS):
        return DeclaredNet(graph=read_graph(edges))
    if target is None and edges in ("naive", "joint", "tan"):
        raise DataError(f"edges={edges!r} needs the class: give y, the labels or the name of their column.")
    if edges in ("naive", "joint"):
        return DeclaredNet(shape=partial(_connect_class, target, edges == "joint"))
    return DeclaredNet(search=partial(_find_edges, edges, target, settings))


def _connect_class(target: Key, joint: bool, names: Sequence[Key]) -> Graph:
    """Connect the class to every other node and, if `joint`, every node to all later ones."""
    order = [target, *(name for name in names if name != target)]
    parents = (order[:place] if joint else order[:1] for place in range(1, len(order)))
    edges = [(parent, name) for name, own in zip(order[1:], parents, strict=True) for parent in own]
    return Graph.of(edges, order if joint else names)


def _find_edges(word: str, target: Key | None, settings: SearchSettings, coded: Coded) -> tuple[Graph, list[str]]:
    """Return the graph of coded rows, and notes.

    A search by score needs the same rows for every node, so missing cells are drawn.
    """
    learn, notes = make_search(word, coded, target, settings), []
    announce("searching edges")
    if not (word == "search" and (coded.codes < 0).any()):
        graph = learn(CodeCounts(coded.codes, coded.sizes, coded.weights))
    else:
        graph, turns = structural_em(coded.codes, coded.sizes, coded.weights, learn)
        notes.append(
            f"edges were searched in rows whose missing cells were drawn from the network so far, {turns} times."
        )
    return Graph(coded.names, graph.parents), notes


def make_search(word: str, coded: Coded, target: Key | None, settings: SearchSettings) -> Callable[[CodeCounts], Graph]:
    """Return the function that finds a graph of numbered nodes from their counts."""
    if word == "tan":
        return lambda counting: information_tree(counting, (coded.names.index(target),))
    return information_tree if word == "chow-liu" else partial(_search, settings=settings, names=coded.names)


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


def read_graph(edges: Any) -> Graph:
    """Read a graph from pairs (parent, child), from parents by child, from text such as "A>B, B>C", or from a file."""
    if isinstance(edges, Graph):
        return edges
    if isinstance(edges, Mapping):
        parents = {child: [own] if isinstance(own, str) else list(own) for child, own in edges.items()}
        return Graph.of([(parent, child) for child, own in parents.items() for parent in own], edges)
    if isinstance(edges, Path) or (isinstance(edges, str) and edges.lower().endswith(SUFFIXES)):
        return read_network(edges).graph
    if isinstance(edges, str):
        return parse_graph(edges)
    if not isinstance(edges, Iterable):
        raise DataError(f"edges are pairs (parent, child), not {edges!r}.")
    return Graph.of(list(edges))


def parse_graph(text: str) -> Graph:
    """Parse a graph such as "Bag>Flavor, Bag>Wrapper"; a single name is a node without edges.

    >>> parse_graph("Rain>Wet, Sprinkler -> Wet").edges
    [('Rain', 'Wet'), ('Sprinkler', 'Wet')]
    """
    edges, names = _parse_edges(text)
    if not edges and len(names) == 1:
        raise DataError(
            f"{text!r} is neither a list of edges (A>B, B>C) nor one of {', '.join(WORDS)}, nor the name of a network "
            "file (.bif)."
        )
    return Graph.of(edges, dict.fromkeys(names))


def read_edges(edges: Any) -> tuple[Edge, ...]:
    """Read pairs (parent, child), or text with pairs, which may form cycles."""
    if isinstance(edges, str):
        return tuple(_parse_edges(edges)[0])
    if edges is not None and not isinstance(edges, Iterable):
        raise DataError(f"edges are pairs (parent, child), not {edges!r}.")
    return tuple(pair_of(edge) for edge in edges or ())


def _parse_edges(text: str) -> tuple[list[Edge], list[str]]:
    """Return the edges in a text and all names in it."""
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


def as_fitted_network(given: Any) -> FittedNet | None:
    """Return a network as a fitted one, or the network of an estimator; None for anything else."""
    fitted: Any = as_fitted(given) if isinstance(given, Network) else fitted_table(given)
    return fitted if hasattr(fitted, "net") else None


def _rearrange_table(other: Net, model: Net, key: Key, array: np.ndarray, what: str) -> np.ndarray:
    """Return (configurations x rest) parameters of another network in the order of this model's parents and levels."""
    parents, theirs = ({net.graph.names[x] for x in net.graph.parents[net.graph.place(key)]} for net in (model, other))
    if parents != theirs:
        raise DataError(f"{what}: node {key!r} has other parents there than here.")
    for name in (key, *parents):
        if (levels_of(other.nodes[name]) is None) != (levels_of(model.nodes[name]) is None):
            raise DataError(f"{what}: {name!r} has levels in one network and is a number in the other.")
    return rearrange(array, other, model, key, levels_of(model.nodes[key]) is not None, guess=True)


def network_priors(model: Net, prior: Any, sample_size: float) -> dict[Key, Any]:
    """Return the prior of every node.

    A number or a word is the prior of all nodes ("bdeu" divides `sample_size` pseudo-counts over the table of each); a
    mapping has the priors of some. A network is an expert: tables read from a file count `sample_size` rows per
    configuration, a fitted network adds its counts.
    """
    other = as_fitted_network(prior)
    if other is None:
        named = isinstance(prior, Mapping)
        for key in prior if named else ():
            model.graph.place(key)
        return {
            node.key: _node_prior(node, prior.get(node.key, 1.0) if named else prior, sample_size)
            for node in model.each
        }
    found: dict[Key, Any] = {node.key: 1.0 for node in model.each}
    for key in (key for key in found if key in other.levels):
        counts = np.maximum(other.counts.arrays[key].value, 0.0)
        table = counts + np.broadcast_to(other.imagined.hypers[key]["alpha"], counts.shape)
        table = _rearrange_table(other.net, model, key, table, "prior")
        for name in (key, *(other.net.graph.names[x] for x in other.net.graph.parents[other.net.graph.number[key]])):
            known = set(map(str, levels_of(other.net.nodes[name]) or ()))
            for level in levels_of(model.nodes[name]) or ():
                if str(level) not in known:
                    raise DataError(f"prior: node {name!r} has no category {level!r} there.")
        found[key] = Dirichlet(table if other.counts.rows > 0 else table * sample_size)
    return found


def _node_prior(node: Node, prior: Any, sample_size: float) -> Any:
    levels = levels_of(node)
    if isinstance(prior, str) and prior == "bdeu":
        return sample_size / (node.setting.groups * max(len(levels or (0,)), 1))
    if isinstance(prior, (list, np.ndarray)) and levels is not None:
        return Dirichlet(_check_table(node, prior, "prior"))
    return prior


def named_levels(prior: Any) -> dict[Key, list[Any]]:
    """Return the categories that a prior or another network names, which exist whether seen or not."""
    other = as_fitted_network(prior)
    if other is None:
        return prior_levels(prior)
    return {key: list(levels) for key, levels in other.levels.items() if key not in other.net.cuts}


def make_start(init: Any) -> Callable[[Net, Imagined], Params] | None:
    """Return the function that makes the initial parameters of EM; None if they are drawn."""
    if init is None or (isinstance(init, str) and init in ("random", "k-means++")):
        return None
    if isinstance(init, Mapping):
        return lambda model, imagined: _start_from_tables(model, imagined, init)
    other = as_fitted_network(init)
    if other is None:
        raise DataError(f"init is a network, or a mapping of nodes to tables, not {init!r}.")
    return lambda model, imagined: _start_from_tables(model, imagined, _shared_parameters(model, other))


def _shared_parameters(model: Net, other: FittedNet) -> dict[Key, Any]:
    """Return the parameters of another network for the nodes that both have."""
    found: dict[Key, Any] = {}
    levels, params = other.levels, other.params
    for key in (key for key in model.graph.names if key in params):
        if key in levels:
            table = _rearrange_table(other.net, model, key, params[key]["probability"], "init")
            found[key] = table / table.sum(axis=1, keepdims=True)
            continue
        own = {
            name: _rearrange_table(other.net, model, key, np.asarray(part), "init")
            for name, part in params[key].items()
        }
        parents = model.nodes[key].family.facts.number_parents
        if parents:  # in the order of the new model
            known = other.net.nodes[key].family.facts.number_parents
            own["coefficients"] = own["coefficients"][..., [known.index(x) for x in parents]]
        found[key] = own
    return found


def _start_from_tables(model: Net, imagined: Imagined, init: Mapping[Key, Any]) -> Params:
    """Return the given parameters; nodes without any get those of a table without rows."""
    for key in init:
        model.graph.place(key)
    sizes = {x.name: (x.groups, x.width) if x.alone else (x.groups, len(x.nodes), x.width) for x in model.nodes.bundles}
    empty = Counts({name: Twofold.of(np.zeros(size)) for name, size in sizes.items()})
    even = model.nodes.estimate(empty, imagined)
    named = {node.key: even[node.key] for node in model.each}
    for key, given in init.items():
        node = model.nodes[key]
        levels = levels_of(node)
        if not isinstance(given, Mapping):
            if levels is None:
                raise DataError(f"init: {key!r} is a number; give its parameters by name.")
            given = dict(zip(levels, _check_table(node, given, "init").T, strict=True))
        named[key] = initial_params(node.family, given, node.setting, node.setting.groups)
    return model.nodes.params(named)


def _check_table(node: Node, given: Any, what: str) -> np.ndarray:
    """Return (configurations x levels) numbers; they may be given with an axis for every parent, or once for all."""
    groups, levels = node.setting.groups, len(levels_of(node) or ())
    try:
        table = np.asarray(given, dtype=float)
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

    `edges` is anything that `declare_structure` takes; `classes` are the names of coded labels, and `class_levels`
    further categories of the class that a prior names. The class is evaluated in `folds` (None: not at all), or on the
    share `holdout` of the rows.
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
        return table, self

    def learn(self, table: Table, runner: Runner) -> FittedNet:
        declared = self.declare(table, declare_structure(self.edges, self.plan.target, self.search))
        priors = partial(network_priors, prior=self.prior, sample_size=self.sample_size)
        fit = partial(fit_network, table, priors_of=priors, plan=self.plan, starts=self.starts, runner=runner)
        return replace(FittedNet.of(fit_hidden_levels(declared, fit)), target=self.plan.target)

    def declare(self, table: Table, structure: DeclaredNet) -> DeclaredNet:
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
        """Count missing cells, and evaluate the predictions of the class by cross-validation."""
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
        """Fit every fold's network again, with its edges if they are searched; None if too few rows have a class."""
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
        """Return the probabilities of the class in some rows under a network learned with these weights."""
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
    """Return the number of the class of every row of a table opened with its target; -1 if unknown."""
    known = {str(level): place for place, level in enumerate(fitted.levels[fitted.target])}
    return np.array([-1 if x is None else known.get(str(x), -1) for x in table.labels()], dtype=np.int64)
