"""The hidden chain: a state per step, with transitions and a distribution of the columns in each state."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from importlib import import_module
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import force_setattr, replace

from softcount.core.counts import Counts, Twofold
from softcount.core.counts import stack as stack_pairs
from softcount.errors import DataError, ModelFileError
from softcount.families import Categorical, Setting
from softcount.families import Params as Own
from softcount.models.base import Assign, DeadEnd, Model, register_model, with_weight
from softcount.models.nodes import Bundle, Node, Nodes, Params
from softcount.models.stacks import Kernels
from softcount.models.star import TILE, Ready, Star, rows_of, scratch
from softcount.sequences.steps import split_between
from softcount.table.chunk import Chunk
from softcount.table.schema import Key, Schema

FIRST: Key = ("(first state)", 0)
"""Key of the first states. No block of columns has this key: those of a table are all names or all positions."""


def after(state: int) -> Key:
    return ("(after state)", state)


class Links(Struct, frozen=True):
    """Which states may be first, which may follow each, and which share an emission (those with equal numbers)."""

    firsts: tuple[int, ...]
    nexts: tuple[tuple[int, ...], ...]
    shown: tuple[int, ...]

    @classmethod
    def free(cls, states: int) -> Links:
        """Return links in which every state may be first and follow any other, and each has its own emission."""
        every = tuple(range(states))
        return cls(every, (every,) * states, every)

    @property
    def states(self) -> int:
        return len(self.nexts)

    @property
    def emissions(self) -> int:
        return max(self.shown) + 1

    @property
    def is_free(self) -> bool:
        return self == Links.free(self.states)

    def in_line(self) -> list[int] | None:
        """Return the states in an order in which no step goes back; None if there is no such order."""
        left, order = set(range(self.states)), list[int]()
        while left:
            ahead = {j for i in left for j in self.nexts[i] if j != i}
            free = sorted(left - ahead)
            if not free:
                return None
            order += free
            left -= set(free)
        return order if self.states > 1 and not self.is_free else None

    @property
    def rows(self) -> list[tuple[Key, tuple[int, ...]]]:
        """The keys of the first state and of the transitions from each state, with the states that are possible."""
        return [(FIRST, self.firsts), *((after(i), levels) for i, levels in enumerate(self.nexts))]

    def nodes(self) -> tuple[Node, ...]:
        """Return a categorical node for each of the `rows`; its categories are the possible states."""
        return tuple(Node(key, (), Categorical(), Setting((key,), 1, levels)) for key, levels in self.rows)


WORTH_COMPILING = 512
"""Cells times passes from which on paths are compiled: in plain NumPy a step takes 60 microseconds."""


class CompiledChain(Struct, frozen=True):
    """Parameters in the form of a pass: first states, transitions, and the compiled emissions."""

    first: np.ndarray
    following: np.ndarray
    emissions: list[Any]


class FiledChain(Struct, frozen=True):
    groups: Annotated[int, Meta(ge=1)]
    shown: tuple[int, ...]
    cells: Annotated[int, Meta(ge=0)]


@register_model
class HiddenChain(Model, Struct, frozen=True, eq=False, dict=True):
    """The structure: the emissions of each state, and which state may follow which."""

    schema: Schema
    leaves: tuple[Node, ...]
    links: Links
    kernels: Kernels

    name: ClassVar[str] = "hidden-chain"

    def __post_init__(self) -> None:
        force_setattr(self, "leaves", self.star.leaves)

    @cached_property
    def star(self) -> Star:
        """The emissions, as a model of single steps."""
        return Star(self.schema, self.leaves, self.links.emissions, self.kernels)

    @cached_property
    def nodes(self) -> Nodes:  # type: ignore[override]
        own = self.links.nodes()
        # A single emission has one group, like the nodes of the chain. They must not be bundled with what stacks count.
        apart = {node.key for node in own} if self.star.groups == 1 else set()
        return Nodes((*own, *self.leaves), self.star.nodes.apart | apart)

    @property
    def groups(self) -> int:
        return self.star.groups

    @property
    def states(self) -> int:
        return self.links.states

    @property
    def paths(self) -> Any:
        """Kernels for paths: compiled unless there are very few steps."""
        return import_module(f"softcount.kernels.{'hidden_paths' if self.worth_threads() else 'reference_paths'}")

    # -- rows -> counts

    def prepare(self, chunk: Chunk, base: bool = True) -> PathRows:
        return PathRows.of(self.star.prepare(chunk, base), chunk)

    def arranged(self, ready: list[PathRows]) -> list[PathRows]:
        """Return parts of whole sequences that two threads share fairly, each with the number of its first sequence."""
        found, number = [], 0
        for part in ready:
            for first, last in split_between(part.borders, SEQUENCE_PORTION):
                found.append(replace(part.part(first, last), first=number))
                number += last - first
        return found

    def worth_threads(self) -> bool:
        return self.kernels.cells >= WORTH_COMPILING

    def compile(self, params: Params) -> CompiledChain:
        parts = [stack.compile(params) for stack in self.star.stacks]
        return CompiledChain(*self.transitions(params), [np.zeros((TILE, self.groups)), *parts])

    def transitions(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        """Return probabilities of the first state (states,) and of the next (states x states); zero if impossible."""
        found = np.zeros((self.states + 1, self.states))
        for row, (key, levels) in zip(found, self.links.rows, strict=True):
            row[list(levels)] = params[key]["probability"][0]
        return found[0], found[1:]

    def scores(self, compiled: CompiledChain, ready: PathRows, own: bool = True) -> np.ndarray:
        """Return (rows x states) log-densities of each step, without the part that is equal for all states.

        If the state of a step is known, all others have minus infinity. Unless the caller needs its `own` memory, the
        thread reuses the memory.
        """
        found = np.empty((ready.n_rows, self.states)) if own else scratch(ready.n_rows, self.states)
        for tile in ready.tiles():
            part = self.star.score(ready, compiled.emissions, tile, found[tile] if self._each_its_own else None)
            if not self._each_its_own:
                found[tile] = part[:, list(self.links.shown)]
        if ready.labels is not None:
            known = np.flatnonzero(ready.labels >= 0)
            found[known] = np.where(np.arange(self.states) == ready.labels[known, None], found[known], -np.inf)
        return found

    @property
    def _each_its_own(self) -> bool:
        return self.links.shown == tuple(range(self.states))

    def expect(self, compiled: CompiledChain, ready: PathRows, assign: Assign | None = None) -> Counts:
        members = self.scores(compiled, ready, own=False)
        heavy, weights = ready.sequence_weights, ready.weights
        logs, firsts, nexts = self.paths.expect_paths(members, ready.borders, heavy, compiled.first, compiled.following)
        likelihood = logs if heavy is None else np.where(heavy > 0, logs * heavy, 0.0)
        base = np.broadcast_to(ready.base, ready.n_rows)
        extra = base.sum() if weights is None else base @ weights
        arrays = self._count(ready, members, compiled) | self._steps(firsts, nexts)
        mass = ready.n_rows if weights is None else weights.sum()
        return Counts(arrays, float(mass), float(likelihood.sum() + extra))

    def _count(self, ready: PathRows, members: np.ndarray, compiled: CompiledChain | None) -> dict[Hashable, Twofold]:
        parts = [None] * len(self.star.stacks) if compiled is None else compiled.emissions[1:]
        total: Counts | None = None
        for tile in ready.tiles():
            own = members[tile] if self._each_its_own else members[tile] @ self.sharing
            arrays: dict[Hashable, Twofold] = {}
            for stack, data, part in zip(self.star.stacks, ready.data, parts, strict=True):
                arrays |= stack.count(rows_of(data, tile), np.ascontiguousarray(own), part)
            total = Counts(arrays) if total is None else total + Counts(arrays)
        assert total is not None
        return dict(total.arrays)

    @property
    def sharing(self) -> np.ndarray:
        """Indicators of shape (states, groups): 1 if the state has that emission."""
        return np.eye(self.groups)[list(self.links.shown)]

    def _steps(self, firsts: np.ndarray, nexts: np.ndarray) -> dict[Hashable, Twofold]:
        rows = zip(self.links.rows, [firsts, *nexts], strict=True)
        return {key: Twofold.of(row[None, list(levels)]) for (key, levels), row in rows}

    def with_steps(self, shown: Counts, firsts: np.ndarray, nexts: np.ndarray) -> Counts:
        arrays = {stack.name: shown.arrays[stack.name] for stack in self.star.stacks}
        return Counts({**arrays, **self._steps(firsts, nexts)}, shown.rows)

    def step_params(self, first: np.ndarray, following: np.ndarray) -> dict[Key, Own]:
        found: dict[Key, Own] = {}
        for (key, levels), row in zip(self.links.rows, [first, *following], strict=True):
            shares = row[None, list(levels)]
            if shares.sum() < 1 - 1e-9:
                raise DataError(f"{key[0]} {key[1]}: an impossible transition has a probability above zero.")  # type: ignore[index]
            found[key] = {"probability": shares, "unseen": np.zeros(1)}
        return found

    def counts_under(self, ready: PathRows, members: np.ndarray) -> Counts:
        """Count under (steps x states) memberships, as if the state of a step were independent of the previous one."""
        if ready.weights is not None:
            members = members * ready.weights[:, None]
        inside = np.ones(ready.n_rows, dtype=bool)
        inside[ready.borders[:-1]] = False
        here = np.flatnonzero(inside)
        heavy = members[here - 1].sum(axis=1, keepdims=True)
        nexts = members[here - 1].T @ (members[here] / np.where(heavy > 0, heavy, 1.0))
        arrays = self._count(ready, members, None) | self._steps(members[ready.borders[:-1]].sum(axis=0), nexts)
        return Counts(arrays, float(members.sum()))

    def gathered(self, counts: Counts) -> Counts:
        arrays: dict[Hashable, Twofold] = {}
        for stack in self.star.stacks:
            arrays |= stack.split(counts.arrays[stack.name])
        for bundle in self.nodes.bundles:
            if bundle.keys[0] in counts.arrays and bundle.name not in arrays:
                own = [counts.arrays[key] for key in bundle.keys]
                arrays[bundle.name] = stack_pairs(own, axis=1)
        return replace(counts, arrays=arrays)

    def impossible_row(self, compiled: CompiledChain, ready: PathRows) -> DataError | None:
        scores, heavy = self.scores(compiled, ready), ready.sequence_weights
        heights = self.paths.filter_paths(scores, ready.borders, compiled.first, compiled.following)
        weighted = True if heavy is None else np.repeat(heavy > 0, np.diff(ready.borders))
        ended = np.flatnonzero(~np.isfinite(heights) & weighted)
        return DeadEnd(ready.start + int(ended[0])) if len(ended) else None

    # -- states

    def occupied(self, counts: Counts) -> np.ndarray:
        """Return the number of steps in each state, from counts under the names of the nodes."""
        total = np.zeros(self.states)
        for key, levels in self.links.rows:
            total[list(levels)] += counts[key][0]
        return total

    def long_run(self, params: Params) -> np.ndarray:
        """Return the long-run share of each state if a chain begins with the initial probabilities.

        The lazy chain (I + P) / 2 has the same stationary shares and no period. Its matrix is squared 40 times: 2^40
        steps.
        """
        first, following = self.transitions(params)
        lazy = 0.5 * (following + np.eye(self.states))
        for _ in range(40):
            lazy = lazy @ lazy
            lazy /= lazy.sum(axis=1, keepdims=True)
        return np.asarray(first @ lazy)

    def group_shares(self, params: Params, bundle: Bundle) -> np.ndarray:
        if not bundle.nodes[0].columns and bundle.groups == 1:
            return np.ones(1)
        return np.asarray(self.long_run(params) @ self.sharing)

    def by_group(self, params: Params) -> np.ndarray:
        first, following = self.transitions(params)
        shown = list(self.links.shown)
        leaves = [params[leaf.key] for leaf in self.leaves]
        parts = [part[shown].reshape(self.states, -1) for own in leaves for part in own.values()]
        return np.concatenate([first[:, None], np.diag(following)[:, None], np.sort(following, axis=1), *parts], axis=1)

    def cells_per_row(self) -> int:
        return max(1, len(self.schema.used)) * self.groups + self.states**2

    def reordered(self, params: Params, counts: Counts, order: np.ndarray) -> tuple[Params, Counts]:
        """Return parameters and counts with the states in this order; only if states are exchangeable."""
        assert self.links.is_free
        steps = {FIRST: FIRST} | {after(new): after(int(old)) for new, old in enumerate(order)}
        own: dict[Key, Own] = {
            new: params[old] | {"probability": params[old]["probability"][:, order]} for new, old in steps.items()
        }
        own |= {x.key: {name: part[order] for name, part in params[x.key].items()} for x in self.leaves}
        arrays: dict[Hashable, Twofold] = {new: counts.arrays[old][:, order] for new, old in steps.items()}
        arrays |= {leaf.key: counts.arrays[leaf.key][order] for leaf in self.leaves}
        return self.nodes.params(own), replace(counts, arrays=arrays)

    # -- files

    filed_as = FiledChain

    def filed(self) -> FiledChain:
        return FiledChain(self.states, self.links.shown, int(self.kernels.cells))

    @classmethod
    def from_filed(cls, filed: FiledChain, schema: Schema, nodes: tuple[Node, ...]) -> HiddenChain:
        states, shown = filed.groups, filed.shown
        known = {node.key: node for node in nodes if not node.columns}
        keys = [FIRST, *map(after, range(states))]
        if not set(known) >= set(keys):
            raise ModelFileError(f"its states are {states}, but not every one of them has successors.")
        firsts, *nexts = (_levels(known[key], states) for key in keys)
        if len(shown) != states or sorted(set(shown)) != list(range(max(shown) + 1)):
            raise ModelFileError("the states that share their distributions make no sense.")
        links = Links(firsts, tuple(nexts), shown)
        leaves = tuple(node for node in nodes if node.key not in keys)
        if not leaves or any(leaf.setting.groups != links.emissions for leaf in leaves):
            raise ModelFileError("the distributions of some states are missing.")
        return cls(schema, leaves, links, Kernels(filed.cells))


def _levels(node: Node, states: int) -> tuple[int, ...]:
    """Check and return the states that are categories of a node."""
    levels = node.setting.levels
    if not levels or not all(type(x) is int and 0 <= x < states for x in levels) or len(set(levels)) < len(levels):
        raise ModelFileError(f"what comes in {node.key!r} is {levels!r:.80}, which are not some of {states} states.")
    return tuple(levels)  # type: ignore[arg-type]


# Prepared sequences.

SEQUENCE_PORTION = 8192
"""Steps of whole sequences that form one part of the work."""


class PathRows(Ready, frozen=True, kw_only=True):
    """Prepared rows of whole sequences, the borders between these, their weights, and the number of the first."""

    borders: np.ndarray
    sequence_weights: np.ndarray | None
    first: int = 0

    @classmethod
    def of(cls, rows: Ready, chunk: Chunk) -> PathRows:
        """Return the prepared rows of a chunk as sequences."""
        borders = np.zeros(1, np.int64) if chunk.borders is None else chunk.borders
        weights = None if chunk.weights is None else np.ascontiguousarray(chunk.weights[borders])
        borders = np.append(borders, chunk.n_rows).astype(np.int64)
        return cls.of_rows(rows, borders=borders, sequence_weights=weights)

    def part(self, first: int, last: int) -> PathRows:
        """Return the sequences from `first` to before `last`."""
        start, stop = self.borders[[first, last]].tolist()
        weights = None if self.sequence_weights is None else self.sequence_weights[first:last]
        borders = self.borders[first : last + 1] - start
        return replace(self.cut(start, stop), borders=borders, sequence_weights=weights)

    def shortened(self, rows: int) -> PathRows:
        """Return the sequences, or only this many steps of a single long sequence."""
        if self.n_rows <= rows:
            return self
        weights = None if self.sequence_weights is None else self.sequence_weights[:1]
        return replace(self.cut(0, rows), borders=np.array([0, rows], np.int64), sequence_weights=weights)

    def heavier(self, factor: float) -> PathRows:
        each = np.ones(len(self.borders) - 1) if self.sequence_weights is None else self.sequence_weights
        heavy: PathRows = with_weight(self, factor)
        return replace(heavy, sequence_weights=each * factor)
