"""From what the user says of a network, and a table that was read, to its nodes: columns, hidden nodes, cut numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from softcount import remedies
from softcount.errors import DataError
from softcount.families import Categorical, Linear, Setting
from softcount.models.declared import Declared, nodes_of
from softcount.models.net import Net, levels_of
from softcount.models.nodes import Node
from softcount.models.stacks import Kernels
from softcount.networks.graph import Graph
from softcount.records import dataclass
from softcount.sources import wording
from softcount.table import Chunk, Settled
from softcount.table.cuts import MOST_INTERVALS, IntervalDensity, by_class, equal_count, interval_names
from softcount.table.schema import Key, Schema

FLOOR = 1e-6
"""Of the column's variance: the least variance of a number in a configuration of its parents."""
MOST_PARAMETERS = 1 << 22
"""Cells of all tables together: no table of rows fills as many, and holes in it would take minutes to share out."""
MOST_LEVELS = 1 << 16
"""Of a hidden node."""


@dataclass(frozen=True, slots=True)
class Coded:
    """A table as a search for edges sees it: codes (-1 where missing), how many levels, what nodes are called."""

    names: tuple[Key, ...]
    codes: np.ndarray
    sizes: tuple[int, ...]
    weights: np.ndarray


Search = Callable[[Coded], tuple[Graph, list[str]]]
Shape = Callable[[Sequence[Key]], Graph]


@dataclass(frozen=True, slots=True)
class DeclaredNet:
    """What was said: kinds, edges or how to find them, hidden nodes, numbers to cut; the class that cuts go by."""

    declared: Declared = field(default_factory=Declared)
    graph: Graph | None = None
    shape: Shape | None = None
    search: Search | None = None
    hidden: Mapping[Key, int | Sequence[object]] = field(default_factory=dict)
    cut: Mapping[Key, Any] = field(default_factory=dict)
    target: Key | None = None
    classes: Sequence[Any] | None = None
    told_classes: Sequence[Any] = ()
    cells: int = 0
    intervals: int = MOST_INTERVALS

    def build(self, settled: Settled, chunks: Sequence[Chunk]) -> tuple[Net, list[str]]:
        """The network of a table, and what is to be said of it."""
        schema = settled.schema
        notes: list[str] = []
        columns = {x.key: _blanked(x, schema, chunks) for x in nodes_of(schema, self.declared, 1, None, FLOOR)}
        hidden = self._hidden(columns)
        known = {**self._class(settled), **columns, **hidden}
        graph = self.graph if self.shape is None else self.shape(tuple(known))
        wanted = self._wanted(known, graph)
        cuts = self._cuts(columns, wanted, chunks, schema, notes)
        known |= {
            key: _level_node(key, interval_names(list(edges), schema[key].written)) for key, edges in cuts.items()
        }
        if graph is None:
            assert self.search is not None
            flat = Net(schema, Graph.of([], known), tuple(known.values()), Kernels(0), cuts, self.target)
            graph, said = self.search(_coded(flat, chunks))
            notes += said
        left = [key for key in columns if key not in graph.number]
        if left:
            notes.append(f"{wording.and_others(left)}: in no edge, so not in the network.")
        self._refuse_left_out(graph)
        nodes = tuple(_following(known[name], graph, known, schema) for name in graph.names)
        _refuse_empty(nodes)
        _refuse_points(nodes)
        refuse_too_large(graph, [len(levels_of(node) or (0,)) for node in nodes])
        cuts = {key: edges for key, edges in cuts.items() if key in graph.number}
        within = {
            key: IntervalDensity.of(*_cells(schema, chunks, key)[:2], edges, schema[key].whole)
            for key, edges in cuts.items()
        }
        notes += [
            f"only numbers depend on {key!r}: declared normal, it would not be cut."
            for key in cuts
            if key not in self.cut and _only_numbers_below(graph, graph.number[key], nodes)
        ]
        target = self.target if self.target in graph.number else None
        return Net(schema, graph, nodes, Kernels(self.cells), cuts, target, within), notes

    def _refuse_left_out(self, graph: Graph) -> None:
        """Raise where a hidden node or the class is in no edge."""
        for key in self.hidden:
            if key not in graph.number or not (graph.parents[graph.number[key]] or graph.children[graph.number[key]]):
                raise DataError(f"hidden: {key!r} is in no edge, so nothing tells of it. Give the edges that it has.")
        if self.target is not None and self.target not in graph.number:
            raise DataError(f"the class {self.target!r} is in no edge. Give it one, or fit without y.")

    def _class(self, settled: Settled) -> dict[Key, Node]:
        if self.target is None:
            return {}
        classes = settled.classes if self.classes is None else self.classes
        names = [name.item() if isinstance(name, np.generic) else name for name in classes]
        names += [
            name for name in self.told_classes if name not in names
        ]  # behind: rows have the numbers of the others
        return {self.target: _level_node(self.target, tuple(names))}

    def _hidden(self, columns: Mapping[Key, Node]) -> dict[Key, Node]:
        found = {}
        for key, said in self.hidden.items():
            if key in columns or key == self.target:
                raise DataError(f"{key!r} is a column of the table, so it is not hidden. Leave one of the two out.")
            found[key] = _level_node(key, _hidden_levels(key, said))
        return found

    def _wanted(self, known: Mapping[Key, Node], graph: Graph | None) -> set[Key]:
        """The columns of numbers that the network needs as levels; names nobody knows are refused."""
        for name in graph.names if graph is not None else ():
            if name not in known:
                raise DataError(
                    f"the table has no column {name!r}. It has: {wording.and_others(known)}. "
                    "A node that no column shows is named with its number of levels: "
                    f"{remedies.of_column('hidden', name, 2)}."
                )
        for key in self.cut:
            if key not in known:
                raise DataError(f"cut names {key!r}, which is no column of the table.")
            if levels_of(known[key]) is not None:
                raise DataError(f"cut names {key!r}, which has levels of its own. Numbers are cut.")
        numbers = {key for key, node in known.items() if levels_of(node) is None}
        return numbers if graph is None else _needed_as_levels(graph, known, numbers, set(self.cut))

    def _cuts(
        self,
        columns: Mapping[Key, Node],
        wanted: set[Key],
        chunks: Sequence[Chunk],
        schema: Schema,
        notes: list[str],
    ) -> dict[Key, np.ndarray]:
        """Where each column of numbers that is needed as levels is cut."""
        found: dict[Key, np.ndarray] = {}
        labels = _labels(chunks) if wanted and self.target is not None else None
        for key in (key for key in columns if key in wanted):
            if schema.places[key].store != "reals":
                out = remedies.kind(key, "ignore")
                raise DataError(f"column {key!r} cannot be cut into levels. Leave it out: {out}.")
            cells, weights, rows = _cells(schema, chunks, key)
            said = self.cut.get(key)
            if said is not None and not _is_number_of_intervals(said):
                found[key] = _given_edges(key, said)
                continue
            if said is None and labels is not None:
                found[key] = _by_class(cells, labels[rows], weights)
                how = "where the classes change"
            else:
                found[key] = equal_count(cells, weights, self.intervals if said is None else int(said))
                how = "of about equal count"
            notes.append(f"column {key!r} is {_intervals(found[key])} {how}.{_remedy(key, found[key], said)}")
        return found


def _refuse_points(nodes: Sequence[Node]) -> None:
    """Raise where a node is a density of any shape."""
    for node in nodes:
        if node.family.counts_points:
            normal, cut = remedies.kind(node.key, "normal"), remedies.of_column("cut", node.key, 5)
            raise DataError(
                f"column {node.key!r} is {node.family.title}, which nodes of a network cannot be. Declare it normal "
                f"({normal}), or cut it into levels ({cut})."
            )


def _refuse_empty(nodes: Sequence[Node]) -> None:
    """Raise where there is no node, or a node without a level."""
    if not nodes:
        raise DataError("no edges are given, so the network has no nodes. Give edges, or a word for how to find them.")
    for node in nodes:
        if levels_of(node) is not None and not levels_of(node):
            raise DataError(
                f"column {node.key!r} has no value in any row. Leave it out, or rename it and hide it: "
                f"{remedies.of_column('hidden', 'name', 2)}."
            )


def _hidden_levels(key: Key, said: Any) -> tuple[object, ...]:
    """The levels of a hidden node from their number or their names."""
    if isinstance(said, (int, np.integer)) and not isinstance(said, bool) and 0 < said <= MOST_LEVELS:
        return tuple(range(int(said)))
    if isinstance(said, (list, tuple)) and said:
        return tuple(said)
    raise DataError(
        f"hidden: {key!r} has a number of levels (1 or more, at most {MOST_LEVELS:,}), their names, or 'auto', "
        f"not {said!r}."
    )


def _blanked(node: Node, schema: Schema, chunks: Sequence[Chunk]) -> Node:
    """The node with what a hole is taken for before anything is known of its group, where its family needs that."""
    places = [schema.places[column] for column in node.columns]
    if node.family.exact or any(place.store != "reals" for place in places):
        return node
    slots: Any = [place.slot for place in places] if node.family.alone else places[0].slot
    columns = [chunk.reals[:, slots] for chunk in chunks]
    weights = [np.ones(x.n_rows) if x.weights is None else x.weights for x in chunks]
    return replace(node, setting=replace(node.setting, blank=node.family.blank(columns, weights, node.setting)))


def _needed_as_levels(graph: Graph, known: Mapping[Key, Node], numbers: set[Key], said: set[Key]) -> set[Key]:
    """Those that were to be cut, that levels depend on, or that no straight line can start from; children first."""
    found = numbers & said
    for place in reversed(graph.order):
        key = graph.names[place]
        below = {graph.names[child] for child in graph.children[place]}
        if key in numbers and below and (below - numbers or below & found or not known[key].family.joins_numbers):
            found.add(key)
    return found


def _only_numbers_below(graph: Graph, place: int, nodes: Sequence[Node]) -> bool:
    below = graph.children[place]
    return bool(below) and all(levels_of(nodes[child]) is None for child in below)


def _following(node: Node, graph: Graph, known: Mapping[Key, Node], schema: Schema) -> Node:
    """The node itself; where it depends on numbers, along a straight line of them."""
    above = tuple(graph.names[parent] for parent in graph.parents[graph.number[node.key]])
    numbers = tuple(key for key in above if levels_of(known[key]) is None)
    if not numbers:
        return node
    if not node.family.joins_numbers:
        raise DataError(
            f"{node.key!r} depends on the number {numbers[0]!r}, but is {node.family.title}: only a normal number can. "
            f"Declare it normal ({remedies.kind(node.key, 'normal')}), or cut the other into levels "
            f"({remedies.of_column('cut', numbers[0], 5)})."
        )
    fields = [schema[key] for key in (node.key, *numbers)]
    return Node(node.key, (node.key,), *Linear(numbers).set_up(node.key, fields, 1, FLOOR))


def _labels(chunks: Sequence[Chunk]) -> np.ndarray | None:
    parts = [chunk.labels for chunk in chunks if chunk.labels is not None]
    return np.concatenate(parts).astype(np.int64) if len(parts) == len(chunks) else None


def _level_node(key: Key, levels: tuple[object, ...]) -> Node:
    """A node that no column of levels shows."""
    if len(set(levels)) < len(levels) or not levels:
        raise DataError(f"node {key!r} needs levels with different names, at least one.")
    return Node(key, (), Categorical(), Setting(keys=(key,), levels=levels))


def _cells(schema: Schema, chunks: Sequence[Chunk], key: Key) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The numbers of a column that are there, their weights and their rows."""
    slot = schema.places[key].slot
    cells = np.concatenate([chunk.reals[:, slot] for chunk in chunks])
    weights = _weights(chunks)
    rows = np.flatnonzero(~np.isnan(cells) & (weights > 0))
    return cells[rows], weights[rows], rows


def _weights(chunks: Sequence[Chunk]) -> np.ndarray:
    return np.concatenate([np.ones(x.n_rows) if x.weights is None else x.weights for x in chunks])


def _by_class(cells: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    seen = labels >= 0
    return by_class(cells[seen], labels[seen], weights[seen], int(labels.max(initial=0)) + 1)


def _is_number_of_intervals(said: Any) -> bool:
    return isinstance(said, (int, np.integer)) and not isinstance(said, bool) and bool(said > 0)


def _given_edges(key: Key, said: Any) -> np.ndarray:
    try:
        edges = np.asarray(said, dtype=np.float64)
    except (TypeError, ValueError):
        edges = np.zeros(())
    if edges.ndim != 1 or not np.isfinite(edges).all() or not (np.diff(edges) > 0).all():
        raise DataError(f"cut: the cuts of {key!r} are rising numbers, or how many intervals there are, not {said!r}.")
    return edges


def _intervals(edges: np.ndarray) -> str:
    return f"cut into {len(edges) + 1} intervals" if len(edges) else "one level, which says nothing: no cut is found"


def _remedy(key: Key, edges: np.ndarray, said: Any) -> str:
    """How to cut a column that no cut was found for and nobody spoke of."""
    if len(edges) or said is not None:
        return ""
    return f" Cut it anyway: {remedies.of_column('cut', key, 5)}."


def _coded(flat: Net, chunks: Sequence[Chunk]) -> Coded:
    codes = np.concatenate([flat.codes(chunk) for chunk in chunks])
    return Coded(tuple(flat.discrete.names), codes, flat.sizes, _weights(chunks))


def refuse_too_large(graph: Graph, sizes: Sequence[int]) -> None:
    """Raise before a table is made that no machine holds."""
    cells = []
    for family in graph.families:
        total = 1
        for node in family:
            total *= max(sizes[node], 1)
        cells.append(total)
    if sum(cells) > MOST_PARAMETERS:
        most = max(range(len(cells)), key=cells.__getitem__)
        raise DataError(
            f"the table of {graph.names[most]!r} has {cells[most]:,} cells, one for every combination of its levels "
            f"and those of its {len(graph.parents[most])} parents ({sum(cells):,} in the whole network; at most "
            f"{MOST_PARAMETERS:,}). "
            "Give it fewer parents, or hide a node between them."
        )
