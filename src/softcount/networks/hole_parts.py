"""The unseen nodes of rows, in parts that do not depend on each other.

Two unseen nodes belong together where a scope (a node with its parents, or an extra one) holds both. A part then has
only to be summed over its own nodes, whatever else the row says. Parts with the same unseen nodes have one shape; parts
whose scopes stand at the same cells as well are one part with their rows' weights added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from softcount.networks.elimination import Scope
from softcount.networks.flat_tables import FlatTables, number_alike, positions, runs
from softcount.networks.summing_steps import SummingSteps
from softcount.records import dataclass

BLOCK = 2**18
"""Parts of rows of which equal ones are looked for at once."""


@dataclass(frozen=True)
class HolePatterns:
    """Which nodes rows lack: every pattern once, with the sets of nodes (shapes) it falls into."""

    number: np.ndarray
    """The pattern of every row."""
    missing: np.ndarray
    """Patterns x nodes."""
    pattern: np.ndarray
    """The pattern of each of its sets, pattern by pattern."""
    shape: np.ndarray
    """The shape of each set."""
    starts: np.ndarray
    nodes: np.ndarray
    """The nodes of shape s, in the order they are summed out, are `nodes[starts[s] : starts[s + 1]]`."""

    @classmethod
    def of(cls, codes: np.ndarray, scopes: Sequence[Scope], order: Sequence[int]) -> HolePatterns:
        """`order` is the nodes in the order in which those of a set shall be summed out."""
        bits = np.packbits(codes < 0, axis=1)
        number, first = number_alike(
            np.zeros(len(codes)), np.arange(0, bits.size + 1, bits.shape[1]), bits.astype(np.int64).ravel()
        )
        missing = codes[first] < 0
        labels = connected(missing, scopes)[:, order]
        pattern, place = np.nonzero(missing[:, order])
        label = labels[pattern, place]
        together = np.lexsort((place, label, pattern))
        pattern, place, label = pattern[together], place[together], label[together]
        begins = np.ones(len(pattern), bool)
        begins[1:] = (np.diff(pattern) != 0) | (np.diff(label) != 0)
        starts = np.concatenate([np.flatnonzero(begins), [len(pattern)]])
        shape, one = number_alike(np.zeros(len(starts) - 1), starts, place)
        lengths = np.diff(starts)[one]
        nodes = np.asarray(order, np.int64)[place[positions(starts[one], lengths)[1]]]
        return cls(number, missing, pattern[begins], shape, runs(lengths), nodes)

    def parts_of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Every part of these rows: its row and its shape."""
        begin = np.searchsorted(self.pattern, np.arange(len(self.missing) + 1))
        own = self.number[rows]
        run, at = positions(begin[own], np.diff(begin)[own])
        return rows[run], self.shape[at]


def connected(missing: np.ndarray, scopes: Sequence[Scope]) -> np.ndarray:
    """A label for every missing node of every pattern, equal for nodes that a chain of scopes connects."""
    nodes = missing.shape[1]
    kind = np.int16 if nodes < 2**15 else np.int32  # there may be millions of patterns
    labels = np.ascontiguousarray(np.where(missing, np.arange(nodes, dtype=kind), kind(nodes)).T)
    there = np.ascontiguousarray(missing.T)
    joined = [list(scope) for scope in scopes if len(scope) > 1]
    while True:
        before = labels.copy()
        for scope in [*joined, *reversed(joined)]:
            least = labels[scope].min(axis=0)
            for node in scope:
                np.copyto(labels[node], least, where=there[node])
        if np.array_equal(before, labels):
            return labels.T


@dataclass(frozen=True)
class HoleParts:
    """Parts ready to be summed: the shape of each, the cells its tables begin at, and its weight.

    The bases of part p, `bases[starts[p] : starts[p + 1]]`, are for the entries of its shape, in their order.
    """

    steps: SummingSteps
    shape: np.ndarray
    starts: np.ndarray
    bases: np.ndarray
    weights: np.ndarray

    @property
    def work(self) -> int:
        """Numbers looked up in one pass."""
        return int(self.steps.cost[self.shape].sum())

    def take(self, which: np.ndarray) -> HoleParts:
        """Some of the parts."""
        lengths = np.diff(self.starts)[which]
        bases = self.bases[positions(self.starts[which], lengths)[1]]
        return HoleParts(self.steps, self.shape[which], runs(lengths), bases, self.weights[which])


def parts_of_rows(
    row: np.ndarray, shape: np.ndarray, steps: SummingSteps, flat: FlatTables, codes: np.ndarray, weights: np.ndarray
) -> tuple[HoleParts, np.ndarray]:
    """The distinct ones of parts given by row and shape; and for each given, which it is.

    Many are taken in blocks, whose distinct ones are then put together: what is held grows with those.
    """
    entries = steps.entries[steps.starts]
    blocks: list[HoleParts] = []
    numbers: list[np.ndarray] = []
    for start in range(0, max(len(row), 1), BLOCK):
        own, rows = shape[start : start + BLOCK], row[start : start + BLOCK]
        lengths = np.diff(entries)[own]
        run, at = positions(entries[own], lengths)
        cells = flat.cells_at(codes, rows[run], steps.scope[at])
        parts, number = _distinct(HoleParts(steps, own, runs(lengths), cells, weights[rows]))
        numbers.append(number + sum(len(block.shape) for block in blocks))
        blocks.append(parts)
    if len(blocks) == 1:
        return blocks[0], numbers[0]
    lengths = np.concatenate([np.diff(block.starts) for block in blocks])
    shapes, bases, summed = (
        np.concatenate(each) for each in zip(*((x.shape, x.bases, x.weights) for x in blocks), strict=True)
    )
    parts, number = _distinct(HoleParts(steps, shapes, runs(lengths), bases, summed))
    return parts, number[np.concatenate(numbers)]


def _distinct(parts: HoleParts) -> tuple[HoleParts, np.ndarray]:
    """Equal parts made one, of all their weight; and which each has become."""
    number, one = number_alike(parts.shape, parts.starts, parts.bases)
    # Shape by shape, each in the order of rows: what belongs to one row is then read and written in order.
    order = np.lexsort((one, parts.shape[one]))
    one, number = one[order], np.argsort(order)[number]
    return replace(parts.take(one), weights=np.bincount(number, parts.weights, len(one)).astype(float)), number
