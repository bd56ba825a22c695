"""Numbers that depend on numbers: numbers joined by edges are jointly normal, given the discrete parents.

In every configuration of their discrete parents, the numbers of a part have one mean and one covariance, computed from
their regressions. Rows are scored and counted as those of a correlated block. The counts are then split by number: each
with the numbers it depends on, by its own discrete parents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import prod

import numpy as np

from softcount.core.counts import Twofold, concatenate
from softcount.errors import DataError
from softcount.families import Normal, Setting
from softcount.families import Params as Own
from softcount.families.answers import patterns
from softcount.kernels.reference import completed
from softcount.models.block_stack import Block, Data, Densities, centres_of, holes_of, product_form
from softcount.models.nodes import Bundle, Name, Params
from softcount.models.stacks import Kernels, Tallies
from softcount.sources import wording
from softcount.table.schema import Key, Schema

MOST_NUMBERS = 1 << 18
"""Limit of the numbers in all covariances of a part: with 1,000 rows per configuration they take half a gigabyte."""


class NumberPart(Block, frozen=True, eq=False):
    """Numbers joined by edges, parents before children.

    `groups_of` (configurations x numbers) is the group of each number; `parents` are positions in the part.
    """

    groups_of: np.ndarray
    parents: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, bundles: Sequence[Bundle], schema: Schema, kernels: Kernels, groups_of: np.ndarray) -> NumberPart:
        nodes = tuple(bundle.nodes[0] for bundle in bundles)
        place = {node.key: j for j, node in enumerate(nodes)}
        parents = tuple(tuple(place[key] for key in node.family.number_parents) for node in nodes)
        places = tuple(schema.places[node.key] for node in nodes)
        return cls(("numbers", nodes[0].key), nodes, tuple(bundles), places, kernels, groups_of, parents)

    @property
    def keys(self) -> list[Key]:
        return [node.key for node in self.nodes]

    @property
    def units(self) -> np.ndarray:
        return np.array([[float(getattr(x.setting, name)[0]) for x in self.nodes] for name in ("anchor", "scale")])

    # -- parameters

    def compile(self, params: Params) -> Densities:
        """Return one normal for each configuration; complete rows are scored by the residuals of the regressions."""
        configurations, d = self.groups_of.shape
        mean, variance = np.zeros((2, configurations, d))
        steps = np.tile(np.eye(d), (configurations, 1, 1))
        for j, node in enumerate(self.nodes):
            own = self.groups_of[:, j]
            start, slopes, spread = (part[own] for part in node.family.regression(params[node.key]))
            above = list(self.parents[j])
            mean[:, j] = start + (slopes * mean[:, above]).sum(axis=1)
            variance[:, j] = spread
            steps[:, j, above] = -slopes
        roots = steps / np.sqrt(variance)[:, :, None]
        spreads = np.linalg.inv(roots)
        covariance = spreads @ spreads.swapaxes(1, 2)
        dets = 0.5 * np.log(variance).sum(axis=1)
        unit = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        eta = product_form(mean, unit, roots, np.log(self.units[1]).sum() - dets)
        return Densities(centres_of(mean, self.units), covariance, np.ascontiguousarray(roots), dets, eta, None)

    # -- rows

    def wanted(self, rows: np.ndarray) -> np.ndarray:
        """Return which numbers are counted (rows x numbers): those that are observed, and all their ancestors."""
        found = ~np.isnan(rows)
        for j in reversed(range(len(self.nodes))):
            for above in self.parents[j]:
                found[:, above] |= found[:, j]
        return np.asarray(found)

    def hiding(self, data: Data, numbers: Sequence[int]) -> Data:
        rows = data[0].copy()
        rows[:, list(numbers)] = np.nan
        return rows, holes_of(rows)

    def there(self, data: Data, node: int = 0) -> np.ndarray:
        return np.asarray(~np.isnan(data[0][:, node]))

    def unsettled(self, data: Data) -> np.ndarray:
        return np.asarray((self.wanted(data[0]) & np.isnan(data[0])).any(axis=1))

    def count(self, data: Data, memberships: np.ndarray, compiled: Densities | None) -> Tallies:
        """Return expected statistics of every number, from the rows that have information about it."""
        rows, holes = data
        total = self._pack([None] * len(self.nodes))
        for some, wanted in patterns(self.wanted(rows)):
            if wanted.any():
                block = Block.count(self, (rows[some], holes[some]), memberships[some], compiled)[self.name]
                total = total + self._pack(
                    [self._of_one(block, j) if there else None for j, there in enumerate(wanted)]
                )
        return {self.name: total}

    def count_labelled(self, data: Data, labels: np.ndarray, weights: np.ndarray | None, groups: int) -> Tallies:
        known = np.where(self.unsettled(data), -1, labels)
        own = np.where((known >= 0)[:, None], self.groups_of[np.maximum(known, 0)], -1)
        return self.count_shown(data, own, weights)

    def count_shown(self, data: Data, labels: np.ndarray, weights: np.ndarray | None) -> Tallies:
        """Count every number in rows that show it and all its parents; `labels` has shape (rows, numbers)."""
        parts: list[Twofold | None] = []
        for j, (node, bundle) in enumerate(zip(self.nodes, self.bundles, strict=True)):
            columns = np.array([j, *self.parents[j]])
            some = np.flatnonzero((labels[:, j] >= 0) & ~np.isnan(data[0][:, columns]).any(axis=1))
            rows = np.ascontiguousarray(data[0][np.ix_(some, columns)])
            block = Block(node.key, (node,), (bundle,), tuple(self.places[c] for c in columns), self.kernels)
            heavy = None if weights is None else weights[some]
            found = block.count_labelled((rows, holes_of(rows)), labels[some, j], heavy, node.setting.groups)
            parts.append(found[node.key])
        return {self.name: self._pack(parts)}

    def _of_one(self, block: Twofold, j: int) -> Twofold:
        """Return the statistics of one number, by its groups, from those of the whole part by configuration."""
        d, groups, columns = len(self.nodes), self.nodes[j].setting.groups, np.array([j, *self.parents[j]])
        picked = np.concatenate([[0], 1 + columns, (1 + d + columns[:, None] * d + columns).ravel()])
        order = np.argsort(self.groups_of[:, j], kind="stable")
        shape = (groups, len(order) // groups, len(picked))
        return block.map(lambda half: half[np.ix_(order, picked)].reshape(shape)).sum(1)

    def _sizes(self) -> list[tuple[int, int]]:
        return [(bundle.groups, bundle.width) for bundle in self.bundles]

    def _pack(self, parts: Sequence[Twofold | None]) -> Twofold:
        """Concatenate the statistics of all numbers; zeros for None."""
        whole = [
            Twofold.of(np.zeros(size)) if part is None else part
            for size, part in zip(self._sizes(), parts, strict=True)
        ]
        return concatenate([part.map(np.ravel) for part in whole], axis=0)

    def split(self, counts: Twofold) -> dict[Name, Twofold]:
        found, at = {}, 0
        for bundle, (groups, width) in zip(self.bundles, self._sizes(), strict=True):
            flat = counts[at : at + groups * width]
            shape = (groups, width) if bundle.alone else (groups, 1, width)
            found[bundle.name] = Twofold(flat.hi.reshape(shape), flat.lo.reshape(shape))
            at += groups * width
        return found

    # -- answers about one number

    def conditional(self, found: Densities, cells: np.ndarray, want: int) -> tuple[Normal, Own]:
        """Return one number given the other cells of a row: a normal in every configuration, for `Normal.score`."""
        full, left = self._complete_rows(found, self.hiding((cells[None], cells), [want])[0])
        anchors, scales = self.units
        at = (found.centres[:, 0, want] - anchors[want]) * scales[want]
        own = {"mean": at + full[:, 0, 1 + want], "variance": left[:, 1 + want, 1 + want]}
        node = self.nodes[want]
        setting = Setting((node.key,), len(at), (), anchors[want : want + 1], scales[want : want + 1])
        return Normal(), Normal().scorable(own, setting)

    def conditional_means(self, found: Densities, rows: np.ndarray, want: int) -> np.ndarray:
        """Return (rows x configurations) expected values of one number, given the other cells of each row."""
        rows, _ = self.hiding((rows, rows), [want])
        means = np.empty((len(rows), len(found.centres)))
        for some, _ in patterns(~np.isnan(rows)):
            full, _ = self._complete_rows(found, rows[some])
            means[some] = (found.centres[:, :1, want] + full[:, :, 1 + want] / self.units[1][want]).T
        return means

    def drawn(
        self, found: Densities, configurations: np.ndarray, cells: np.ndarray, rng: np.random.Generator
    ) -> Mapping[Key, np.ndarray]:
        """Draw each number of new rows in these configurations; cells that are not NaN stay fixed."""
        full, left = self._complete_rows(found, cells[None])
        holes = np.flatnonzero(np.isnan(cells))
        values = np.tile(cells, (len(configurations), 1))
        for c in np.unique(configurations):
            here = np.flatnonzero(configurations == c)
            root = np.linalg.cholesky(left[c][np.ix_(1 + holes, 1 + holes)])
            off = full[c, 0, 1 + holes] + rng.standard_normal((len(here), len(holes))) @ root.T
            values[np.ix_(here, holes)] = found.centres[c, 0, holes] + off / self.units[1][holes]
        return dict(zip(self.keys, values.T, strict=True))

    def _complete_rows(self, found: Densities, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return completed(rows, ~np.isnan(rows[0]), self.units[1], found.centres, found.covariances)


def refuse_too_many(numbers: Sequence[Key], above: Sequence[Key], configurations: int) -> None:
    """Raise an error before a covariance is made for each of too many configurations."""
    if configurations * len(numbers) ** 2 > MOST_NUMBERS:
        raise DataError(
            f"the numbers {wording.and_others(numbers)} depend on each other, and together on "
            f"{wording.and_others(above)}, which have {configurations:,} configurations: too many for a covariance in "
            "each of them. Give these numbers fewer parents with levels."
        )


def own_groups(scope: Sequence[int], sizes: Sequence[int], above: Sequence[Sequence[int]]) -> np.ndarray:
    """Return (configurations x numbers) the group of each number in every configuration of `scope`.

    `above` holds the discrete parents of each number.
    """
    levels = np.indices([sizes[node] for node in scope]).reshape(len(scope), prod(sizes[node] for node in scope))
    found = np.zeros((levels.shape[1], len(above)), dtype=np.int64)
    for j, own in enumerate(above):
        if own:
            at = tuple(levels[scope.index(node)] for node in own)
            found[:, j] = np.ravel_multi_index(at, [sizes[node] for node in own])
    return found


def joined_numbers(follows: Mapping[Key, Sequence[Key]]) -> list[list[Key]]:
    """Return groups of numbers joined by edges, parents first; numbers without such edges are left out."""
    part = {key: {key} for key in follows}
    for key, parents in follows.items():
        together = reduce(set.union, [part[parent] for parent in parents], part[key])
        part |= dict.fromkeys(together, together)
    found = {id(own): own for own in part.values() if len(own) > 1}
    return [[key for key in follows if key in own] for own in found.values()]
