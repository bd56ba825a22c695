"""How sets of unseen nodes are summed out, one node after another: the same for all rows that lack the same nodes.

A step takes the tables, and the sums of earlier steps, that have its node; multiplies them for all levels of the nodes
they have (its clique); and adds up over the levels of its node. What it finds goes to the step of the next node there.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from softcount.networks.flat_tables import FlatTables, in_blocks, positions, runs
from softcount.records import dataclass


@dataclass(frozen=True)
class SummingSteps:
    """The steps of many shapes, one after another: those of shape s are `starts[s]` to `starts[s + 1]`.

    `axes` (steps x widest) are the levels of the clique's nodes, the step's own node last, then ones. An entry is a
    table in a step, an input the result of an earlier one; either has a stride for every axis.
    """

    starts: np.ndarray
    width: np.ndarray
    axes: np.ndarray
    entries: np.ndarray
    """The entries of step t are `entries[t]` to `entries[t + 1]`."""
    scope: np.ndarray
    entry_strides: np.ndarray
    inputs: np.ndarray
    source: np.ndarray
    """The step an input comes from."""
    input_strides: np.ndarray

    @classmethod
    def of(
        cls, starts: np.ndarray, nodes: np.ndarray, rank: np.ndarray, sizes: np.ndarray, flat: FlatTables
    ) -> SummingSteps:
        """For shapes with these nodes, each in the order of `rank`."""
        shape = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        touch_step, touch_entry, entry_step, scope, stride = _touches(starts, shape, nodes, flat, len(sizes))
        cliques = np.zeros((len(nodes), len(sizes)), bool)
        cliques[entry_step[touch_entry], rank[nodes[touch_step]]] = True
        target = _pass_on(cliques, starts, nodes, rank)
        axis = cliques.sum(axis=1, keepdims=True) - cliques.cumsum(axis=1)
        step, place = np.nonzero(cliques)
        width = cliques.sum(axis=1)
        axes = np.ones((len(nodes), width.max(initial=1)), np.int64)
        by_rank = np.empty(len(sizes), np.int64)
        by_rank[rank] = sizes
        axes[step, axis[step, place]] = by_rank[place]
        by_step = np.argsort(entry_step, kind="stable")
        entry_strides = np.zeros((len(scope), axes.shape[1]), np.int64)
        entry_strides[touch_entry, axis[entry_step[touch_entry], rank[nodes[touch_step]]]] = stride
        source = np.argsort(target, kind="stable")
        source = source[target[source] >= 0]
        input_strides = np.zeros((len(nodes), axes.shape[1]), np.int64)
        passed = (place != rank[nodes[step]]) & (target[step] >= 0)
        from_step, at = step[passed], place[passed]
        below = np.cumprod(np.concatenate([axes, np.ones((len(axes), 1), np.int64)], axis=1)[:, :0:-1], axis=1)[:, ::-1]
        input_strides[from_step, axis[target[from_step], at]] = (
            below[from_step, axis[from_step, at]] // sizes[nodes[from_step]]
        )
        return cls(
            starts,
            width,
            axes,
            runs(np.bincount(entry_step, minlength=len(nodes))),
            scope[by_step],
            entry_strides[by_step],
            runs(np.bincount(target[target >= 0], minlength=len(nodes))),
            source,
            input_strides[source],
        )

    @cached_property
    def cells(self) -> np.ndarray:
        """Configurations of each step's clique, as floats: there may be more than any integer holds."""
        return np.asarray(self.axes.astype(float).prod(axis=1))

    @cached_property
    def size(self) -> np.ndarray:
        """Levels of each step's own node."""
        return np.asarray(self.axes[np.arange(len(self.axes)), self.width - 1])

    @cached_property
    def cost(self) -> np.ndarray:
        """Numbers that each shape looks up."""
        by_step = self.cells * (np.diff(self.entries) + np.diff(self.inputs))
        return np.asarray(np.add.reduceat(by_step, self.starts[:-1]) if len(by_step) else by_step)

    def lookups(self, shapes: np.ndarray) -> Lookups:
        """The lookups of some shapes."""
        wanted = np.zeros(len(self.starts) - 1, bool)
        wanted[shapes] = True
        step = np.repeat(wanted, np.diff(self.starts))
        entry_step = np.repeat(np.arange(len(step)), np.diff(self.entries))
        input_step = np.repeat(np.arange(len(step)), np.diff(self.inputs))
        places = np.where(step, self.cells, 0.0).astype(np.int64)
        within = runs(places // self.size)
        return Lookups(
            runs(places),
            within,
            *_offsets(self, entry_step, self.entry_strides, step),
            *_offsets(self, input_step, self.input_strides, step),
        )


@dataclass(frozen=True)
class Lookups:
    """Where in its tables and inputs each configuration of a step finds its numbers.

    Steps have their configurations, and their sums, one after another: those of step t begin at `places[t]` and
    `sums[t]`. Configuration q adds `entry_offsets[entry_starts[e] + q]` to the base of entry e; inputs likewise.
    """

    places: np.ndarray
    sums: np.ndarray
    entry_starts: np.ndarray
    entry_offsets: np.ndarray
    input_starts: np.ndarray
    input_offsets: np.ndarray


def _touches(
    starts: np.ndarray, shape: np.ndarray, nodes: np.ndarray, flat: FlatTables, n_nodes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Every node of every shape in every scope: its step, the entry, and the stride; of entries, step and scope."""
    node, scope, stride = flat.touched_by()
    begin = np.searchsorted(node, np.arange(n_nodes + 1))
    step, at = positions(begin[nodes], np.diff(begin)[nodes])
    key, entry = np.unique(shape[step] * flat.scopes + scope[at], return_inverse=True)
    first = np.full(len(key), len(nodes))
    np.minimum.at(first, entry, step)
    return step, entry, first, key % flat.scopes, stride[at]


def _pass_on(cliques: np.ndarray, starts: np.ndarray, nodes: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Add to each clique what earlier steps leave to it; to which step each leaves something, or -1."""
    target = np.full(len(nodes), -1)
    depth = np.diff(starts)
    step_of = np.full((len(depth), len(rank)), -1)
    step_of[np.repeat(np.arange(len(depth)), depth), rank[nodes]] = np.arange(len(nodes))
    for at in range(depth.max(initial=0)):
        shapes = np.flatnonzero(depth > at)
        step = starts[shapes] + at
        left = cliques[step]
        left[np.arange(len(step)), rank[nodes[step]]] = False
        some = left.any(axis=1)
        to = step_of[shapes[some], left[some].argmax(axis=1)]
        cliques[to] |= left[some]
        target[step[some]] = to
    return target


def _offsets(
    steps: SummingSteps, step: np.ndarray, strides: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For each list of strides, given its step, the offsets of the clique's configurations; and where they begin."""
    lengths = np.where(wanted[step], steps.cells[step], 0.0).astype(np.int64)
    starts = runs(lengths)
    offsets = np.zeros(starts[-1], np.int32)
    for width in np.unique(steps.width):
        which = np.flatnonzero((steps.width[step] == width) & wanted[step])
        for block in in_blocks(which, lengths[which]):
            owner, found = block, np.zeros(len(block), np.int64)
            for axis in range(width):
                run, level = positions(np.zeros(len(owner), np.int64), steps.axes[step[owner], axis])
                owner = owner[run]
                found = found[run] + level * strides[owner, axis]
            offsets[positions(starts[block], lengths[block])[1]] = found
    return starts[:-1], offsets
