"""Parts of rows with holes summed over their unseen nodes: in NumPy, or compiled where there is much."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from softcount.networks.flat_tables import in_blocks, positions, runs
from softcount.networks.hole_parts import HoleParts
from softcount.networks.summing_steps import Lookups
from softcount.records import dataclass

WORTH_COMPILING = 200_000
"""Numbers looked up in one pass from which, over the passes of a fit, compiled sums pay for importing Numba: at 30
nanoseconds each, against 8, a hundred passes take half a second less."""


@dataclass(frozen=True)
class PartSums:
    """The expected counts of all cells (those behind the shared ones without weights), and every part's logarithm."""

    cells: np.ndarray
    logs: np.ndarray


@dataclass(frozen=True)
class PlainStep:
    """The same step of all parts that have so many: a place for each configuration of its clique, part by part.

    Lookups are (most that a part has x places), filled up with the one behind the last.
    """

    cells: np.ndarray
    weights: np.ndarray
    """What each of these cells is counted by."""
    inputs: np.ndarray
    groups: np.ndarray
    """Where the places begin that are summed together."""
    group: np.ndarray
    """Of each place."""
    out: np.ndarray
    """Where each sum goes."""


@dataclass(frozen=True)
class SummedParts:
    """Parts, and in `expect` their sums over the cells of a flat table of which the first `shared` are weighted."""

    parts: HoleParts
    shared: int
    size: int

    @property
    def is_large(self) -> bool:
        return self.parts.work >= WORTH_COMPILING

    @cached_property
    def expect(self) -> Callable[[np.ndarray, np.ndarray], PartSums]:
        """From all cells and their logarithms to sums; which way is decided by the size alone."""
        return self.compiled if self.is_large else self.plain

    @cached_property
    def lookups(self) -> Lookups:
        return self.parts.steps.lookups(self.parts.shape)

    def compiled(self, table: np.ndarray, logs: np.ndarray) -> PartSums:
        """In probabilities, parts with products that underflow once more in logarithms."""
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
        return PartSums(self._cells(shares, ends), messages[ends])

    def _cells(self, shares: list[np.ndarray], ends: np.ndarray) -> np.ndarray:
        """The posteriors of cliques, from the last step to the first, added to the cells they came from."""
        counted, posteriors = [np.zeros(0)], np.zeros(self._messages[-1] + 1)
        posteriors[ends] = 1.0
        for step, share in zip(reversed(self.plain_steps), reversed(shares), strict=True):
            found = share * posteriors[step.out][step.group]
            for inputs in step.inputs:
                posteriors += np.bincount(inputs, found, len(posteriors))
            counted.append((found * step.weights).ravel())
        return np.bincount(self._places, np.concatenate(counted), self.size + 1)[:-1].astype(float)

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
        """What `plain` needs."""
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
    """What the first, second, ... entry of every run says of its places; a number given where a run has no such."""
    find, otherwise = found_by
    found = np.full((int((end - begin).max(initial=0)), len(run)), otherwise)
    for slot in range(len(found)):
        has = np.flatnonzero((begin + slot < end)[run])
        found[slot, has] = find((begin + slot)[run[has]], run[has], place[has])
    return found
