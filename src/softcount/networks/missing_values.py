"""Rows with missing values: components of missing nodes, summed exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.networks.elimination import (
    FlatTables,
    Lookups,
    Scope,
    SummingSteps,
    eliminate,
    in_blocks,
    number_alike,
    positions,
    runs,
)
from softcount.networks.large_networks import LargeRows
from softcount.networks.network import Graph

BLOCK = 2**18
"""Parts of rows that are compared at once."""


class HolePatterns(Struct, frozen=True):
    """Patterns of missing nodes, each once, with the connected sets of nodes (shapes) it falls into."""

    number: np.ndarray
    missing: np.ndarray
    """Patterns x nodes."""
    pattern: np.ndarray
    """The pattern of each set, pattern by pattern."""
    shape: np.ndarray
    starts: np.ndarray
    nodes: np.ndarray
    """Shape s has the nodes `nodes[starts[s] : starts[s + 1]]`, in the order of elimination."""

    @classmethod
    def of(cls, codes: np.ndarray, scopes: Sequence[Scope], order: Sequence[int]) -> HolePatterns:
        """`order` is the elimination order of the nodes."""
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


class HoleParts(Struct, frozen=True):
    """The shape of each part, the cells its tables begin at, and its weight.

    The bases of part p, `bases[starts[p] : starts[p + 1]]`, are for the entries of its shape, in their order.
    """

    steps: SummingSteps
    shape: np.ndarray
    starts: np.ndarray
    bases: np.ndarray
    weights: np.ndarray

    @property
    def work(self) -> int:
        return int(self.steps.cost[self.shape].sum())

    def take(self, which: np.ndarray) -> HoleParts:
        lengths = np.diff(self.starts)[which]
        bases = self.bases[positions(self.starts[which], lengths)[1]]
        return HoleParts(self.steps, self.shape[which], runs(lengths), bases, self.weights[which])


def parts_of_rows(
    row: np.ndarray, shape: np.ndarray, steps: SummingSteps, flat: FlatTables, codes: np.ndarray, weights: np.ndarray
) -> tuple[HoleParts, np.ndarray]:
    """The distinct parts, given by row and shape; and for each given, its number among them.

    Parts are compared in blocks: memory grows with the distinct ones.
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
    """Merge equal parts and add their weights; return also the number of each among the distinct ones."""
    number, one = number_alike(parts.shape, parts.starts, parts.bases)
    # Shape by shape, each in the order of rows: what belongs to one row is then read and written in order.
    order = np.lexsort((one, parts.shape[one]))
    one, number = one[order], np.argsort(order)[number]
    return replace(parts.take(one), weights=np.bincount(number, parts.weights, len(one)).astype(float)), number


# Parts of rows with holes summed over their unseen nodes: in NumPy, or compiled where there is much.

WORTH_COMPILING = 200_000
"""Lookups per pass from which compiled sums pay for importing Numba: at 30 nanoseconds each, against 8, a hundred
passes take half a second less.
"""


class PartSums(Struct, frozen=True):
    """Expected counts of all cells (those after the shared ones without weights), and every part's logarithm."""

    cells: np.ndarray
    logs: np.ndarray


class PlainStep(Struct, frozen=True):
    """One elimination step of all parts that have it: a place for each configuration of its clique, part by part.

    Lookups are (most of a part x places), padded with the index after the last.
    """

    cells: np.ndarray
    weights: np.ndarray
    inputs: np.ndarray
    groups: np.ndarray
    """Where the places begin that are summed together."""
    group: np.ndarray
    out: np.ndarray


class SummedParts(Struct, frozen=True, dict=True):
    """Parts, and in `expect` their sums over the cells of a flat table of which the first `shared` are weighted."""

    parts: HoleParts
    shared: int
    size: int

    @property
    def is_large(self) -> bool:
        return self.parts.work >= WORTH_COMPILING

    @cached_property
    def expect(self) -> Callable[[np.ndarray, np.ndarray], PartSums]:
        """From all cells and their logarithms to sums; the size alone decides how."""
        return self.compiled if self.is_large else self.plain

    @cached_property
    def lookups(self) -> Lookups:
        return self.parts.steps.lookups(self.parts.shape)

    def compiled(self, table: np.ndarray, logs: np.ndarray) -> PartSums:
        """In probabilities; parts with products that underflow again in logarithms."""
        from softcount.kernels.part_sums import sum_parts

        own, steps, at = self.parts, self.parts.steps, self.lookups
        cells, found = sum_parts(
            table,
            self.shared,
            (steps.starts, steps.size, steps.entries, steps.inputs, steps.source),
            (at.places, at.sums, at.entry_starts, at.entry_offsets, at.input_starts, at.input_offsets),
            (own.shape, own.starts, own.bases, own.weights),
        )
        lost = np.flatnonzero(np.isnan(found))
        for block in in_blocks(lost, steps.cost[own.shape[lost]]):
            again = SummedParts(own.take(block), self.shared, self.size).plain(table, logs)
            cells += again.cells
            found[block] = again.logs
        return PartSums(cells, found)

    def plain(self, table: np.ndarray, logs: np.ndarray) -> PartSums:
        """In logarithms: nothing underflows."""
        logs = np.append(logs, 0.0)
        messages, shares = np.zeros(self._messages[-1] + 1), []
        for step in self.plain_steps:
            values = logs[step.cells].sum(axis=0) + messages[step.inputs].sum(axis=0)
            top = np.maximum.reduceat(values, step.groups)
            top = np.where(np.isfinite(top), top, 0.0)
            values = np.exp(values - top[step.group])
            totals = np.add.reduceat(values, step.groups)
            with np.errstate(divide="ignore"):
                messages[step.out] = np.log(totals) + top
            shares.append(values / np.where(totals > 0, totals, 1.0)[step.group])
        ends = self._messages[1:] - 1
        counted, posteriors = [np.zeros(0)], np.zeros(self._messages[-1] + 1)
        posteriors[ends] = 1.0
        for step, share in zip(reversed(self.plain_steps), reversed(shares), strict=True):
            found = share * posteriors[step.out][step.group]
            for inputs in step.inputs:
                posteriors += np.bincount(inputs, found, len(posteriors))
            counted.append((found * step.weights).ravel())
        cells = np.bincount(self._places, np.concatenate(counted), self.size + 1)[:-1].astype(float)
        return PartSums(cells, messages[ends])

    @cached_property
    def _places(self) -> np.ndarray:
        """The cells of all steps, the last step first."""
        return np.concatenate([np.zeros(0, np.int64), *(step.cells.ravel() for step in reversed(self.plain_steps))])

    @cached_property
    def _messages(self) -> np.ndarray:
        """Where the sums of every part begin, and where they end."""
        steps, sums = self.parts.steps, self.lookups.sums
        return runs(np.diff(sums[steps.starts])[self.parts.shape])

    @cached_property
    def plain_steps(self) -> list[PlainStep]:
        depth = np.diff(self.parts.steps.starts)[self.parts.shape]
        return [self._plain_step(at, np.flatnonzero(depth > at)) for at in range(depth.max(initial=0))]

    def _plain_step(self, at: int, parts: np.ndarray) -> PlainStep:
        own, steps, lookups = self.parts, self.parts.steps, self.lookups
        first = steps.starts[own.shape[parts]]
        step = first + at
        run, place = positions(np.zeros(len(parts), np.int64), np.diff(lookups.places)[step])
        message = self._messages[parts] - lookups.sums[first]
        bases = own.starts[parts] - steps.entries[first]

        def cell(entry: np.ndarray, run: np.ndarray, place: np.ndarray) -> np.ndarray:
            base = own.bases[bases[run] + entry]
            return np.asarray(base + lookups.entry_offsets[lookups.entry_starts[entry] + place])

        def result(number: np.ndarray, run: np.ndarray, place: np.ndarray) -> np.ndarray:
            base = lookups.sums[steps.source[number]] + message[run]
            return np.asarray(base + lookups.input_offsets[lookups.input_starts[number] + place])

        cells = _padded(steps.entries[step], steps.entries[step + 1], run, place, (cell, self.size))
        inputs = _padded(steps.inputs[step], steps.inputs[step + 1], run, place, (result, int(self._messages[-1])))
        groups = np.flatnonzero(place % steps.size[step][run] == 0)
        group = np.repeat(np.arange(len(groups)), np.diff(np.append(groups, len(place))))
        out = (message + lookups.sums[step])[run[groups]] + (place // steps.size[step][run])[groups]
        weights = np.where(cells < self.shared, own.weights[parts][run], 1.0)
        return PlainStep(cells, weights, inputs, groups, group, out)


Finder = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def _padded(
    begin: np.ndarray, end: np.ndarray, run: np.ndarray, place: np.ndarray, found_by: tuple[Finder, int]
) -> np.ndarray:
    """(most entries of a run x places) results of `find`, padded with a given number."""
    find, otherwise = found_by
    found = np.full((int((end - begin).max(initial=0)), len(run)), otherwise)
    for slot in range(len(found)):
        has = np.flatnonzero((begin + slot < end)[run])
        found[slot, has] = find((begin + slot)[run[has]], run[has], place[has])
    return found


# What no E-step changes of rows with holes: their parts, what they show whole, and which of them cost too much.

ROOM = 2**25
"""Lookups of all shapes together: 128 megabytes."""


class HolePlan(Struct, frozen=True, dict=True):
    """Everything that stays the same between E-steps, computed when it is first needed. Extra scopes are distinct."""

    graph: Graph
    sizes: tuple[int, ...]
    codes: np.ndarray
    weights: np.ndarray
    extras: list[Scope]

    @property
    def scopes(self) -> list[Scope]:
        return [*self.graph.families, *self.extras]

    @cached_property
    def flat(self) -> FlatTables:
        return FlatTables.of(self.sizes, self.graph.families, self.extras, len(self.codes))

    @cached_property
    def patterns(self) -> HolePatterns:
        return HolePatterns.of(self.codes, self.scopes, self.order)

    @cached_property
    def order(self) -> tuple[int, ...]:
        return eliminate(self.sizes, self.scopes, room=2**4096).order

    @cached_property
    def steps(self) -> SummingSteps:
        rank = np.argsort(self.order)
        return SummingSteps.of(self.patterns.starts, self.patterns.nodes, rank, np.array(self.sizes), self.flat)

    @cached_property
    def is_large(self) -> np.ndarray:
        """Rows with a part of a shape for which there is no room once all cheaper shapes have theirs."""
        patterns, cost = self.patterns, self.steps.cost
        cheapest = np.argsort(cost, kind="stable")
        large = np.zeros(len(cost), bool)
        large[cheapest] = np.cumsum(cost[cheapest]) > ROOM
        with_large = np.bincount(patterns.pattern[large[patterns.shape]], minlength=len(patterns.missing)) > 0
        return np.asarray(with_large[patterns.number])

    @cached_property
    def large(self) -> LargeRows:
        rows = np.flatnonzero(self.is_large)
        return LargeRows(self.graph, self.sizes, self.codes[rows], self.weights[rows], self.extras, rows)

    @cached_property
    def parts(self) -> tuple[SummedParts, np.ndarray, np.ndarray]:
        """The distinct parts of the rows that are not large; the row of every part, and its number among them."""
        row, shape = self.patterns.parts_of(np.flatnonzero(~self.is_large))
        parts, number = parts_of_rows(row, shape, self.steps, self.flat, self.codes, self.weights)
        return SummedParts(parts, self.flat.shared, self.flat.size), row, number

    @property
    def summed(self) -> SummedParts:
        return self.parts[0]

    def shown(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows, without large ones, in which all nodes of a scope are known; and their cells."""
        holes = self.patterns.missing[:, list(self.scopes[number])].any(axis=1)
        rows = np.flatnonzero(~np.asarray(holes)[self.patterns.number] & ~self.is_large)
        return rows, self.flat.cells_in(self._columns, rows, number)

    @cached_property
    def _columns(self) -> np.ndarray:
        """Codes node by node: a column of 200,000 rows is read ten times as fast."""
        return np.ascontiguousarray(self.codes.T)

    @cached_property
    def seen_counts(self) -> np.ndarray:
        """Counts of families whose nodes are all known."""
        found = np.zeros(self.flat.shared)
        for node in range(len(self.sizes)):
            rows, cells = self.shown(node)
            found += np.bincount(cells, self.weights[rows], self.flat.shared)
        return found

    @cached_property
    def seen_extras(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [self.shown(number) for number in range(len(self.sizes), len(self.scopes))]
