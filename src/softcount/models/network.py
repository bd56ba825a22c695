"""Bayesian networks: discrete nodes that depend on each other, and columns of any family that depend on them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from msgspec import Meta, Struct, field
from msgspec.structs import force_setattr, replace

from softcount.core import remedies
from softcount.core.counts import ROOT, Counts, Twofold
from softcount.errors import DataError, ModelFileError
from softcount.families.base import IMPOSSIBLE
from softcount.models.base import Assign, Model, register_model
from softcount.models.block_stack import NumberPart, group_joined_numbers, groups_of_numbers, refuse_too_many
from softcount.models.nodes import Node, Nodes, Params
from softcount.models.stacks import Kernels, Stack
from softcount.models.star import Ready, joined, rows_of, stack_apart
from softcount.networks.expected_counts import Expected, IncompleteRows
from softcount.networks.network import Graph
from softcount.table.chunk import Chunk
from softcount.table.discretise import PIECES, IntervalDensity
from softcount.table.schema import Key, Schema

MOST_CELLS = 1 << 22
"""Most numbers (rows x configurations) that the leaves of a part of the rows may fill."""
FEWEST_ROWS = 1024


class NetRows(Ready, frozen=True, kw_only=True, dict=True):
    """Prepared rows of a network: the data for the stacks of its leaves, and codes of discrete nodes, -1 if missing."""

    model: Net
    codes: np.ndarray
    weights: np.ndarray
    base: np.ndarray

    def cut(self, start: int, stop: int) -> Self:
        return replace(super().cut(start, stop), codes=self.codes[start:stop])

    @cached_property
    def incomplete(self) -> IncompleteRows:
        """The plan for incomplete rows, which does not depend on parameters; made on first use."""
        net = self.model
        return IncompleteRows.of(net.discrete, net.sizes, self.codes, self.weights, net.scopes)

    @cached_property
    def settled(self) -> list[tuple[Twofold, np.ndarray, Any]]:
        """For each leaf: statistics of rows that no parameter changes, the other rows, and their data for its stack."""
        found, net = [], self.model
        for own, data, scope in zip(net.stacks, self.data, net.parents_of_leaves, strict=True):
            known = np.where(own.unsettled(data), -1, self.known(scope)).astype(np.int32)
            total = own.count_labelled(data, known, self.weights, net.configurations(scope))[own.name]
            left = np.flatnonzero(known < 0)
            found.append((total, left, rows_of(data, left)))
        return found

    def known(self, scope: tuple[int, ...]) -> np.ndarray:
        """Return the configuration of these nodes in each row; -1 if one of them is missing."""
        if not scope:
            return np.zeros(self.n_rows, dtype=np.int64)
        found = self.codes[:, scope[0]]
        for node in scope[1:]:
            found = found * self.model.sizes[node] + self.codes[:, node]
        missing = [node for node in scope if node in self.with_missing]
        return np.where((self.codes[:, missing] < 0).any(axis=1), -1, found) if missing else found

    @cached_property
    def with_missing(self) -> frozenset[int]:
        """Discrete nodes that are missing in some row."""
        return frozenset(np.flatnonzero((self.codes < 0).any(axis=0)).tolist())

    @cached_property
    def alike(self) -> bool:
        return bool((self.weights == 1.0).all())


class FiledCuts(Struct, frozen=True):
    """A discretised node by its position, and the density within its intervals; the outer `edges` are no cut points."""

    node: int
    edges: list[float]
    means: list[float]
    shares: list[list[float]]
    beyond: tuple[float, float]

    def density(self, key: Key) -> IntervalDensity:
        shares, intervals = np.array(self.shares), len(self.edges) - 1
        if shares.shape != (intervals, PIECES) or len(self.means) != intervals:
            raise ModelFileError(f"node {key!r} has not one density for each of its intervals.")
        sound = (shares > 0).all() and np.allclose(shares.sum(axis=1), 1.0)
        if not sound or not all(0 < x < 0.5 for x in self.beyond):
            raise ModelFileError(f"node {key!r} has an impossible density within its intervals.")
        return IntervalDensity(np.array(self.edges), shares, np.array(self.means), self.beyond)


class FiledNet(Struct, frozen=True):
    """Nodes by their positions; `cuts` belong to the discretised nodes, `label` is the class."""

    parents: tuple[tuple[int, ...], ...]
    cuts: list[FiledCuts]
    label: int | None
    cells: Annotated[int, Meta(ge=0)]
    groups: Literal[1] = 1

    def __post_init__(self) -> None:
        known = set(range(len(self.parents)))
        for own in self.parents:
            if len(set(own)) < len(own):
                raise ValueError("a node has a parent twice")
            if not known.issuperset(own):
                raise ValueError(f"the parents {own!r} are not all there")
        if not known.issuperset([own.node for own in self.cuts] + ([] if self.label is None else [self.label])):
            raise ValueError("a cut node, or the class, is not there")
        if not all((np.diff(own.edges) > 0).all() for own in self.cuts):
            raise ValueError("cut points are not in ascending order")


@register_model
class Net(Model, Struct, frozen=True, eq=False, dict=True):
    """The structure: the graph, its nodes in the order of the graph, and the cut points of discretised numbers.

    `cuts[key]` are the cut points of a numeric column, and `target` is the node of the labels. A node with neither
    columns nor cut points nor labels is hidden. `within[key]` is the density of a number within its intervals.
    """

    schema: Schema
    graph: Graph
    each: tuple[Node, ...]
    kernels: Kernels
    cuts: Mapping[Key, np.ndarray] = field(default_factory=dict)
    target: Key | None = None
    within: Mapping[Key, IntervalDensity] = field(default_factory=dict)

    name: ClassVar[str] = "network"

    def __post_init__(self) -> None:
        for place, own in enumerate(self.graph.parents):
            numbers = [self.each[parent] for parent in own if levels_of(self.each[parent]) is None]
            follows = tuple(node.key for node in numbers)
            if follows != self.each[place].family.facts.number_parents or not all(
                x.family.facts.joins_numbers for x in numbers
            ):
                child = self.graph.names[place]
                name = next((key for key in follows), child)
                raise DataError(
                    f"{child!r} depends on {name!r}, which is a number. Cut it into levels "
                    f"({remedies.of_column('cut', name, 5)}), or turn the edge round."
                )
        sizes = [len(levels_of(node) or (0,)) for node in self.each]
        groups = [prod(sizes[parent] for parent in own) for own in self.graph.parents]
        each = tuple(node.with_groups(own) for node, own in zip(self.each, groups, strict=True))
        force_setattr(self, "each", each)

    @cached_property
    def nodes(self) -> Nodes:  # type: ignore[override]
        return Nodes(self.each, frozenset(node.key for node in self.each if levels_of(node) is None))

    # -- the discrete nodes, which form a network by themselves, and the leaves that depend on them

    @cached_property
    def with_levels(self) -> tuple[Node, ...]:
        """The discrete nodes, in the order of the graph; their numbers are the positions here."""
        return tuple(node for node in self.each if levels_of(node) is not None)

    @cached_property
    def discrete(self) -> Graph:
        keys = dict.fromkeys(node.key for node in self.with_levels)
        return (
            self.graph if len(keys) == len(self.each) else Graph.of((x for x in self.graph.edges if x[1] in keys), keys)
        )

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(levels_of(node) or ()) for node in self.with_levels)

    @cached_property
    def _columns_by_store(self) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """By store of a chunk: its discrete nodes that are columns, their slots, and their numbers of categories."""
        found: dict[str, list[tuple[int, int, int]]] = {}
        for new, node in enumerate(self.with_levels):
            if node.columns:
                store, slot = self.schema.places[node.key]
                found.setdefault(store, []).append((new, slot, self.sizes[new]))
        columns = {store: np.array(each).T for store, each in found.items()}
        kinds = {"codes": np.uint8, "wide": np.int32}
        return {store: (each[0], each[1], each[2].astype(kinds[store])) for store, each in columns.items()}

    @cached_property
    def stacks(self) -> tuple[Stack, ...]:
        """Stacks of the leaves, the columns without categories.

        Numbers joined by edges share one stack; every other column has its own.
        """
        bundles = {bundle.name: bundle for bundle in self.nodes.bundles if bundle.name in self.levels_above}
        numbers = [self.each[place] for place in self.graph.order if self.each[place].key in bundles]
        joined = group_joined_numbers({node.key: node.family.facts.number_parents for node in numbers})
        parts = []
        for keys in joined:
            scope = self._scope(keys)
            refuse_too_many(keys, [self.discrete.names[node] for node in scope], self.configurations(scope))
            groups = groups_of_numbers(scope, self.sizes, [self.levels_above[key] for key in keys])
            parts.append(NumberPart.of([bundles.pop(key) for key in keys], self.schema, self.kernels, groups))
        return *(stack_apart(bundle, self.schema, self.kernels) for bundle in bundles.values()), *parts

    @cached_property
    def levels_above(self) -> dict[Key, tuple[int, ...]]:
        """For each leaf, the discrete nodes that it depends on, by their numbers among the discrete ones."""
        number, names = self.discrete.number, self.graph.names
        return {
            node.key: tuple(number[names[parent]] for parent in own if names[parent] in number)
            for node, own in zip(self.each, self.graph.parents, strict=True)
            if node.key not in number
        }

    def _scope(self, keys: Iterable[Key]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(node for key in keys for node in self.levels_above[key]))

    @cached_property
    def parents_of_leaves(self) -> tuple[tuple[int, ...], ...]:
        """For each leaf stack, the discrete nodes that it depends on, by their numbers among the discrete ones."""
        return tuple(self._scope(node.key for node in x.nodes) for x in self.stacks)

    def configurations(self, scope: Sequence[int]) -> int:
        return prod(self.sizes[node] for node in scope)

    @cached_property
    def scopes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(scope for scope in self.parents_of_leaves if scope)

    @cached_property
    def hidden(self) -> tuple[int, ...]:
        """Discrete nodes that no column shows, by their numbers among the discrete ones."""
        return tuple(
            new
            for new, node in enumerate(self.with_levels)
            if not node.columns and node.key not in {*self.cuts, self.target}
        )

    # -- rows -> counts

    def prepare(self, chunk: Chunk, base: bool = True) -> NetRows:
        leaves = [x.prepare(chunk) for x in self.stacks]
        weights = np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights
        below = np.zeros(chunk.n_rows)
        for own, data in zip(self.stacks, leaves, strict=True) if base else ():
            below = below + own.base(data)
        return NetRows(
            model=self, codes=self.codes(chunk), data=leaves, labels=None, weights=weights, base=below,
            start=chunk.start, n_rows=chunk.n_rows,
        )  # fmt: skip

    def codes(self, chunk: Chunk) -> np.ndarray:
        """Return (rows x discrete nodes) positions of categories, -1 if hidden, missing or unseen in training."""
        # Transposed, so that the codes of a node are contiguous.
        found = np.empty((len(self.with_levels), chunk.n_rows), dtype=np.int64).T
        for store, (nodes, slots, levels) in self._columns_by_store.items():
            own = getattr(chunk, store).T[slots]
            never_met = own > levels[:, None]
            if never_met.any():
                own[never_met] = 0
            found.T[nodes] = np.subtract(own, 1, dtype=np.promote_types(own.dtype, np.int16))
        for new, node in enumerate(self.with_levels):
            if node.columns:
                continue
            if node.key in self.cuts:
                cells = chunk.reals[:, self.schema.places[node.key].slot]
                found[:, new] = np.where(np.isnan(cells), -1, np.searchsorted(self.cuts[node.key], cells))
            elif node.key == self.target and chunk.labels is not None:
                found[:, new] = chunk.labels
            else:
                found[:, new] = -1
        return found

    def density_within(self, key: Key) -> IntervalDensity:
        """Return the density of a discretised number within its intervals; uniform if no rows were counted."""
        return self.within[key] if key in self.within else IntervalDensity.without_rows(self.cuts[key])

    def log_densities_within(self, chunk: Chunk) -> np.ndarray:
        """Return the log-density of each row's discretised numbers given their intervals."""
        found = np.zeros(chunk.n_rows)
        for key in self.cuts:
            found += self.density_within(key).log_densities(chunk.reals[:, self.schema.places[key].slot])
        return found

    def arranged(self, ready: list[NetRows]) -> list[NetRows]:
        """Concatenate all rows, in parts of bounded size if there are leaves."""
        whole = ready[0]
        if len(ready) > 1:
            whole = NetRows.of_rows(joined(ready), model=self, codes=np.concatenate([part.codes for part in ready]))
        widest = sum(prod(self.sizes[place] for place in scope) for scope in self.scopes)
        step = max(FEWEST_ROWS, MOST_CELLS // widest) if widest else max(whole.n_rows, 1)
        if step >= whole.n_rows:
            return [whole]
        return [whole.cut(a, min(a + step, whole.n_rows)) for a in range(0, whole.n_rows, step)]

    def compile(self, params: Params) -> tuple[list[np.ndarray], list[Any]]:
        """Return the tables of the discrete nodes, and the parameters of the leaves in the form of their stacks."""
        return self.tables(params), [x.compile(params) for x in self.stacks]

    def tables(self, params: Params) -> list[np.ndarray]:
        """Return the table of every discrete node: one axis per parent, its own categories last."""
        flat = np.empty(self._bounds[-1])
        for name, cells in self._cells.items():
            flat[cells] = params.bundles[name]["probability"]
        shapes = ([self.sizes[node] for node in family] for family in self.discrete.families)
        return [flat[a:b].reshape(shape) for (a, b), shape in zip(pairwise(self._bounds), shapes, strict=True)]

    @cached_property
    def _bounds(self) -> list[int]:
        """Offsets of the tables of all discrete nodes in one array, and its length."""
        return [0, *accumulate(prod(self.sizes[node] for node in family) for family in self.discrete.families)]

    @cached_property
    def _cells(self) -> dict[Key, np.ndarray]:
        """For every bundle of discrete nodes, the positions of its cells in the array of all tables."""
        begin = dict(zip(self.discrete.names, self._bounds, strict=False))
        bundles = [bundle for bundle in self.nodes.bundles if bundle.name in begin]
        own = {x.name: np.arange(x.groups * x.width).reshape(x.groups, 1, x.width) for x in bundles}
        return {x.name: own[x.name] + np.array([begin[key] for key in x.keys])[:, None] for x in bundles}

    def factors(self, compiled: tuple[list[np.ndarray], list[Any]], ready: NetRows) -> list[np.ndarray]:
        """Return, for each leaf, (rows x configurations of its parents) log-densities without `base`."""
        found = []
        for own, data, params, scope in zip(self.stacks, ready.data, compiled[1], self.parents_of_leaves, strict=True):
            scored = np.zeros((ready.n_rows, self.configurations(scope)))
            own.score(data, params, scored)
            found.append(np.where(scored < IMPOSSIBLE, -np.inf, scored) if own.clamped else scored)
        return found

    def split_factors(
        self, compiled: tuple[list[np.ndarray], list[Any]], ready: NetRows
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the factors of leaves with discrete parents, and each row's log-density of everything else."""
        scored = list(zip(self.factors(compiled, ready), self.parents_of_leaves, strict=True))
        alone = ready.base + sum((factor[:, 0] for factor, scope in scored if not scope), 0.0)
        return [factor for factor, scope in scored if scope], alone

    def expect(
        self, compiled: tuple[list[np.ndarray], list[Any]], ready: NetRows, assign: Assign | None = None
    ) -> Counts:
        factors, alone = self.split_factors(compiled, ready)
        found = ready.incomplete.expect(compiled[0], factors) if self.sizes else Expected([], 0.0, [], 0)
        arrays: dict[Hashable, Twofold] = {ROOT: _end_to_end(found.counts)}
        shares = iter(found.posteriors)
        for own, scope, params, settled in zip(
            self.stacks, self.parents_of_leaves, compiled[1], ready.settled, strict=True
        ):
            posterior = next(shares) if scope else np.ones((ready.n_rows, 1))
            # Statistics of a leaf: complete rows count in their configuration, the others by their posterior.
            members = posterior * ready.weights[:, None]
            total, left, data = settled
            arrays[own.node.key] = (
                total + own.count(data, np.ascontiguousarray(members[left]), params)[own.name] if len(left) else total
            )
        likelihood = found.log_likelihood + float(np.where(ready.weights > 0, alone * ready.weights, 0.0).sum())
        return Counts(arrays, float(ready.weights.sum()), likelihood)

    def gathered(self, counts: Counts) -> Counts:
        arrays: dict[Hashable, Twofold] = {}
        for own in self.stacks:
            arrays |= own.split(counts.arrays[own.node.key])
        for bundle in self.nodes.bundles:
            if bundle.name not in arrays:
                arrays[bundle.name] = counts.arrays[ROOT][self._cells[bundle.name]]
        return replace(counts, arrays=arrays)

    def seen(self, ready: NetRows, all_numbers: bool = False) -> Counts:
        """Count, by node, the rows that show it and all of its parents, without any expectation.

        With `all_numbers`, numbers of unknown group are counted in the first group, so that priors see all of them.
        """
        totals = []
        for family in self.discrete.families:
            known, weights = ready.known(family), None if ready.alike else ready.weights
            if not ready.with_missing.isdisjoint(family):
                there = known >= 0
                known, weights = known[there], None if weights is None else weights[there]
            totals.append(np.bincount(known, weights, prod(self.sizes[node] for node in family)))
        arrays: dict[Hashable, Twofold] = {ROOT: _end_to_end(totals)}
        for own, data in zip(self.stacks, ready.data, strict=True):
            groups = np.stack([ready.known(self.levels_above[node.key]) for node in own.nodes], axis=1)
            labels = np.maximum(groups, 0 if all_numbers else -1).astype(np.int32)
            arrays[own.node.key] = own.count_shown(data, labels, ready.weights)[own.name]
        return self.nodes.unstacked(self.gathered(Counts(arrays, float(ready.weights.sum()))))

    def needs_em(self, ready: NetRows) -> bool:
        """Return whether EM has missing values to fill in these rows.

        A missing node without an observed descendant carries no information about the others: EM would not change it.
        """
        silent: dict[int, np.ndarray] = {}
        above_leaves = {node for scope in self.scopes for node in scope}
        for node in reversed(self.discrete.order):
            if node not in ready.with_missing:
                continue
            missing = ready.codes[:, node] < 0
            below = [silent.get(child, np.zeros(ready.n_rows, dtype=bool)) for child in self.discrete.children[node]]
            silent[node] = missing & np.logical_and.reduce(below, axis=0) if below else missing
            if node in above_leaves or (missing & ~silent[node]).any():
                return True
        return any(np.any(own.unsettled(data)) for own, data in zip(self.stacks, ready.data, strict=True))

    def impossible_row(self, compiled: tuple[list[np.ndarray], list[Any]], ready: NetRows) -> DataError | None:
        factors, _ = self.split_factors(compiled, ready)
        logs = ready.incomplete.row_logs(compiled[0], factors) if self.sizes else np.zeros(0)
        lost = np.flatnonzero(logs == -np.inf)
        if not len(lost):
            return None
        return DataError(
            f"row {ready.start + lost[0] + 1} has probability zero under the network that EM starts from. "
            "Start from probabilities above zero."
        )

    # -- files

    filed_as = FiledNet

    def filed(self) -> FiledNet:
        within = {place: self.density_within(node.key) for place, node in enumerate(self.each) if node.key in self.cuts}
        return FiledNet(
            self.graph.parents,
            [FiledCuts(k, x.edges.tolist(), x.means.tolist(), x.shares.tolist(), x.beyond) for k, x in within.items()],
            None if self.target is None else self.graph.number[self.target],
            int(self.kernels.cells),
        )

    @classmethod
    def from_filed(cls, filed: FiledNet, schema: Schema, nodes: tuple[Node, ...]) -> Net:
        if len(filed.parents) != len(nodes):
            raise ModelFileError("its nodes and their parents are not as many.")
        cuts = {nodes[own.node].key: np.array(own.edges[1:-1]) for own in filed.cuts}
        net = cls(
            schema, Graph(tuple(node.key for node in nodes), filed.parents), nodes, Kernels(filed.cells), cuts,
            None if filed.label is None else nodes[filed.label].key,
        )  # fmt: skip
        for before, node in zip(nodes, net.each, strict=True):
            levels = node.setting.levels
            if before.setting.groups != node.setting.groups:
                raise ModelFileError(f"node {node.key!r} has {before.setting.groups} configurations of its parents.")
            if node.columns:
                if node.key == net.target:
                    raise ModelFileError(f"node {node.key!r} is both a column and the class.")
            elif len(set(levels)) < len(levels):
                raise ModelFileError(f"node {node.key!r} has a level twice.")
            elif node.key == net.target and node.key in cuts:
                raise ModelFileError(f"node {node.key!r} is both cut and the class.")
            elif node.key not in {net.target, *cuts} and node.key in schema.by_key:
                raise ModelFileError(f"node {node.key!r} is a column, but its cuts are missing.")
        for key, edges in cuts.items():
            if key not in schema.by_key or schema.places[key].store != "reals" or net.nodes[key].columns:
                raise ModelFileError(f"node {key!r} is cut, but is not a column of numbers.")
            if len(edges) + 1 != len(net.nodes[key].setting.levels):
                raise ModelFileError(f"node {key!r} has not one level more than it has cuts.")
        return replace(net, within={nodes[own.node].key: own.density(nodes[own.node].key) for own in filed.cuts})


def _end_to_end(counts: Sequence[np.ndarray]) -> Twofold:
    return Twofold.of(np.concatenate([np.zeros(0), *(own.ravel() for own in counts)]))


def levels_of(node: Node) -> Sequence[object] | None:
    """Return the categories of a discrete node; None for a number."""
    return node.levels_of(0)
