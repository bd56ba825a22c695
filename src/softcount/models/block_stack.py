"""The stack of a correlated block, and that of numbers which depend on numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, reduce
from math import prod
from typing import ClassVar, cast

import numpy as np
from msgspec import Struct

from softcount.core.counts import Twofold, concatenate, two_sum
from softcount.core.special import HALF_LOG_2PI, inverse_of_lower
from softcount.errors import DataError
from softcount.families import Normal, Setting
from softcount.families.density import Density, patterns
from softcount.families.linear import LinearDensity
from softcount.families.multinormal import block_density
from softcount.families.normal import NormalDensity
from softcount.kernels.reference import completed
from softcount.models.nodes import Bundle, Name, Params
from softcount.models.stacks import STEADY, Kernels, SingleStack, Tallies, one_hot, wanted
from softcount.sources import wording
from softcount.table.chunk import Chunk
from softcount.table.schema import Key, Schema

NARROW = 32
"""Number of columns up to which products are faster than centring (50 columns, 10 groups: 124 ms against 131)."""

upper = cache(np.triu_indices)
Form = tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray] | None]
"""Means, covariances and, for Student's t, degrees of freedom and spread."""
Data = tuple[np.ndarray, np.ndarray]
"""The rows, and the bits of their missing cells."""


class Densities(Struct, frozen=True, eq=False):
    """The density of every group in the form of the kernels.

    `centres` (groups, 2, d) holds the mean in the user's units, and its rounding error in counting units. `eta` is the
    product form, None if it would lose digits or time. `student` holds degrees of freedom and spread.
    """

    centres: np.ndarray
    covariances: np.ndarray
    roots: np.ndarray
    dets: np.ndarray
    eta: np.ndarray | None
    student: tuple[np.ndarray, np.ndarray] | None


class Block(SingleStack, frozen=True, eq=False):
    """One correlated block of real columns; each group has a mean and a covariance."""

    clamped: ClassVar[bool] = False

    @property
    def units(self) -> np.ndarray:
        return np.stack([self.node.setting.anchor, self.node.setting.scale])

    def prepare(self, chunk: Chunk) -> Data:
        rows = np.ascontiguousarray(wanted(chunk.reals, self.places))
        return rows, missing_bits(rows)

    def compile(self, params: Params) -> Densities:
        own = params[self.node.key]
        student = (own["freedom"], own["spread"]) if "freedom" in own else None
        return densities((own["mean"], own["covariance"], student), self.units)

    def score(self, data: Data, compiled: Densities, out: np.ndarray) -> None:
        rows, missing = data
        if not missing.any():
            self._score_whole(rows, compiled, out)
            return
        order, starts = sort_by_pattern(missing)
        whole, holed = order[: starts[0]], order[starts[0] :]
        part = np.zeros((len(whole), out.shape[1]))
        self._score_whole(rows[whole], compiled, part)
        out[whole] += part
        holed_rows, starts, scales = rows[holed], starts - starts[0], self.units[1]
        distances, dets = self.kernels.score_patterns(
            holed_rows, starts, scales, compiled.centres, compiled.covariances
        )
        there = ~np.isnan(holed_rows[starts[:-1]])
        dets -= (there * np.log(scales)).sum(axis=1, keepdims=True)
        which = np.repeat(np.arange(len(there)), np.diff(starts))
        out[holed] += block_density(distances, dets[which], there.sum(axis=1, keepdims=True)[which], compiled.student)

    def _score_whole(self, rows: np.ndarray, found: Densities, out: np.ndarray) -> None:
        if found.eta is not None:
            self.kernels.score_products(rows, self.units, found.eta, out)
            return
        scales, d = self.units[1], rows.shape[1]
        if found.student is None:
            constants = np.log(scales).sum() - found.dets - d * HALF_LOG_2PI
            self.kernels.score_centred(rows, scales, found.centres, found.roots, constants, out)
            return
        apart = np.zeros_like(out)
        self.kernels.score_centred(rows, scales, found.centres, found.roots, np.zeros(out.shape[1]), apart)
        out += block_density(-2.0 * apart, found.dets - np.log(scales).sum(), d, found.student)

    def count(self, data: Data, memberships: np.ndarray, compiled: Densities | None) -> Tallies:
        (rows, missing), found = data, compiled
        if not missing.any():
            return {self.name: self._count_whole(rows, memberships, found)}
        order, starts = sort_by_pattern(missing)
        whole, holed = order[: starts[0]], order[starts[0] :]
        total = self._count_whole(rows[whole], memberships[whole], found)
        if found is None:
            # The same for all groups: mean and variance of each column, or those of its unit while they are unknown.
            d, groups = len(self.places), memberships.shape[1]
            mean, variance, _ = self.node.setting.blank or (np.zeros(d), np.ones(d), None)
            apart = np.diag(np.maximum(variance, 1e-300))
            found = densities((np.tile(mean, (groups, 1)), np.tile(apart, (groups, 1, 1)), None), self.units)
        patterns = rows[holed], starts - starts[0], memberships[holed], self.units, found.centres, found.covariances
        total = total + Twofold(*self.kernels.count_patterns(*patterns))
        return {self.name: total}

    def _count_whole(self, rows: np.ndarray, memberships: np.ndarray, found: Densities | None) -> Twofold:
        if found is not None and found.eta is not None:
            return Twofold(*self.kernels.count_products(rows, memberships, self.units))
        anchors, scales = self.units
        if found is not None:
            centres = np.ascontiguousarray(found.centres[:, 0])
        else:  # each group's mean in these rows, in the user's units
            mass = memberships.sum(axis=0)[:, None]
            with np.errstate(invalid="ignore", over="ignore"):
                means = memberships.T @ ((rows - anchors) * scales) / np.where(mass > 0, mass, 1.0) / scales + anchors
            centres = np.asarray(np.where(np.isfinite(means), means, anchors))
        return Twofold(*self.kernels.count_centred(rows, memberships, centres, anchors, scales))

    def count_labelled(self, data: Data, labels: np.ndarray, weights: np.ndarray | None, groups: int) -> Tallies:
        rows, missing = data
        if missing.any():
            return self.count(data, one_hot(labels, weights, groups), None)
        d = rows.shape[1]
        high, low = np.zeros((groups, 1 + d + d * d)), np.zeros((groups, 1 + d + d * d))
        order = np.argsort(labels, kind="stable")
        bounds = np.searchsorted(labels[order], np.arange(groups + 1))
        for g in np.flatnonzero(np.diff(bounds)):
            own = order[bounds[g] : bounds[g + 1]]
            heavy = np.ones((len(own), 1)) if weights is None else weights[own, None]
            pair = self._count_whole(rows[own], heavy, None)
            high[g], low[g] = pair.hi[0], pair.lo[0]
        return {self.name: Twofold(high, low)}

    def unsettled(self, data: Data) -> np.ndarray | bool:
        return np.asarray(data[1].any(axis=1))

    def expect(
        self, data: Data, compiled: Densities, log_shares: np.ndarray, weights: np.ndarray | None
    ) -> tuple[Twofold, Twofold, float] | None:
        """Compute counts, those of the groups, and the log-likelihood in one kernel, if this is the only stack.

        None if scoring and counting must follow each other.
        """
        rows, missing = data
        if compiled.eta is None or missing.any():
            return None
        eta = compiled.eta.copy()
        eta[:, 0] += log_shares
        high, low, likelihood = self.kernels.expect_products(rows, weights, self.units, eta)
        return Twofold(high, low), Twofold(high[:, 0], low[:, 0]), likelihood

    def features(self, data: Data) -> np.ndarray | None:
        """Return 1, the numbers and their products; None if rows are incomplete."""
        rows, missing = data
        if missing.any():
            return None
        moved = np.ascontiguousarray(((rows - self.units[0]) * self.units[1]).T)
        d, n = moved.shape
        features = np.empty((1 + d + d * (d + 1) // 2, n))
        features[0], features[1 : d + 1], at = 1.0, moved, d + 1
        for first in range(d):
            np.multiply(moved[first], moved[first:], out=features[at : at + d - first])
            at += d - first
        return features.T

    @property
    def common(self) -> int | None:
        """First product, if all groups have one covariance."""
        return 1 + len(self.places) if self.node.family.facts.shared_by_groups else None

    def naturals(self, params: Params, wide: int) -> np.ndarray:
        mean, covariance = params[self.node.key]["mean"], params[self.node.key]["covariance"]
        _, roots, dets = factorise(covariance if self.common is None else covariance[:1])
        return whole_product_form(mean, roots, np.log(self.units[1]).sum() - dets)

    def statistics(self, totals: np.ndarray) -> dict[Name, np.ndarray]:
        d = len(self.places)
        first, second = upper(d)
        place = np.empty((d, d), dtype=np.int64)
        place[first, second] = place[second, first] = np.arange(len(first))
        return {self.bundles[0].name: totals[..., np.concatenate([np.arange(1 + d), 1 + d + place.ravel()])]}


def densities(form: Form, units: np.ndarray) -> Densities:
    """Compute densities from means, covariances and, for Student's t, freedom and spread, in counting units."""
    mean, covariance, student = form
    unit, roots, dets = factorise(covariance)
    roots = np.ascontiguousarray(roots)
    eta = None if student else product_form(mean, unit, roots, np.log(units[1]).sum() - dets)
    return Densities(centres_of(mean, units), np.ascontiguousarray(covariance), roots, dets, eta, student)


def factorise(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return deviations, inverse Cholesky factors and half the log-determinants of covariances (..., d, d)."""
    unit = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    lower = np.linalg.cholesky(covariance / (unit[..., :, None] * unit[..., None, :]))
    dets = np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum(axis=-1) + np.log(unit).sum(axis=-1)
    return unit, inverse_of_lower(lower) / unit[..., None, :], dets


def centres_of(mean: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Return (groups, 2, d) means in the user's units, and their rounding errors in counting units."""
    anchors, scales = units
    at = mean / scales + anchors
    step, rest = two_sum(at, np.broadcast_to(-anchors, at.shape))
    return np.stack([at, (mean - step * scales) - rest * scales], axis=1)


def product_form(mean: np.ndarray, unit: np.ndarray, roots: np.ndarray, heights: np.ndarray) -> np.ndarray | None:
    """Return (groups, features) that multiply 1, x_i and x_i x_j (i <= j); None if it would lose digits or time."""
    d = mean.shape[1]
    precision = roots.swapaxes(1, 2) @ roots
    reach = np.abs(mean) + unit
    terms = precision * (reach[:, :, None] * reach[:, None, :])
    if d > NARROW or not np.sqrt((terms * terms).sum(axis=(1, 2))).max() < STEADY:
        return None
    return whole_product_form(mean, roots, heights)


def whole_product_form(mean: np.ndarray, roots: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Return (..., features) that multiply 1, x_i and x_i x_j (i <= j), even if that loses digits."""
    d = mean.shape[-1]
    precision = roots.swapaxes(-1, -2) @ roots
    turned = (roots @ mean[..., None])[..., 0]
    first, second = upper(d)
    squares = precision[..., first, second] * np.where(first == second, -0.5, -1.0)
    constants = heights - d * HALF_LOG_2PI - 0.5 * (turned * turned).sum(axis=-1)
    squares = np.broadcast_to(squares, (*mean.shape[:-1], squares.shape[-1]))
    return np.concatenate([constants[..., None], (precision @ mean[..., None])[..., 0], squares], axis=-1)


def missing_bits(rows: np.ndarray) -> np.ndarray:
    """Return (rows, words) bits, one for each missing cell. Rows with equal bits have the same pattern."""
    missing = np.isnan(rows)
    bits = np.zeros((len(rows), -(-rows.shape[1] // 64) * 8), dtype=np.uint8)
    if missing.any():
        packed = np.packbits(missing, axis=1)
        bits[:, : packed.shape[1]] = packed
    return bits.view(np.uint64)


def sort_by_pattern(missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows in order of their patterns, complete ones first.

    Also return the start of each incomplete pattern, and the end.
    """
    order = np.lexsort(missing.T) if missing.shape[1] > 1 else np.argsort(missing[:, 0], kind="stable")
    sorted_bits = missing[order]
    new = np.flatnonzero((sorted_bits[1:] != sorted_bits[:-1]).any(axis=1)) + 1
    starts = np.concatenate([new if not sorted_bits[0].any() else np.insert(new, 0, 0), [len(order)]])
    return order, starts


# Numbers joined by edges are jointly normal given their discrete parents. In every configuration of these parents, the
# numbers of a part have one mean and one covariance, computed from their regressions. Rows are scored and counted as
# those of a correlated block. The counts are then split by number: each with the numbers it depends on, by its own
# discrete parents.

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
        parents = tuple(tuple(place[key] for key in node.family.facts.number_parents) for node in nodes)
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
            density = cast("NormalDensity | LinearDensity", node.density(params))
            start, slopes, spread = (part[own] for part in density.regression())
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
        return rows, missing_bits(rows)

    def there(self, data: Data, node: int = 0) -> np.ndarray:
        return np.asarray(~np.isnan(data[0][:, node]))

    def unsettled(self, data: Data) -> np.ndarray:
        return np.asarray((self.wanted(data[0]) & np.isnan(data[0])).any(axis=1))

    def count(self, data: Data, memberships: np.ndarray, compiled: Densities | None) -> Tallies:
        """Return expected statistics of every number, from the rows that have information about it."""
        rows, missing = data
        total = self._pack([None] * len(self.nodes))
        for some, counted in patterns(self.wanted(rows)):
            if counted.any():
                block = Block.count(self, (rows[some], missing[some]), memberships[some], compiled)[self.name]
                parts = [self._of_one(block, j) if there else None for j, there in enumerate(counted)]
                total = total + self._pack(parts)
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
            found = block.count_labelled((rows, missing_bits(rows)), labels[some, j], heavy, node.setting.groups)
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

    def conditional(self, found: Densities, cells: np.ndarray, want: int) -> Density:
        """Return one number given the other cells of a row: a normal in every configuration."""
        full, left = self._complete_rows(found, self.hiding((cells[None], cells), [want])[0])
        anchors, scales = self.units
        at = (found.centres[:, 0, want] - anchors[want]) * scales[want]
        own = {"mean": at + full[:, 0, 1 + want], "variance": left[:, 1 + want, 1 + want]}
        node = self.nodes[want]
        setting = Setting((node.key,), len(at), (), anchors[want : want + 1], scales[want : want + 1])
        return Normal().density(own, setting)

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
        missing = np.flatnonzero(np.isnan(cells))
        values = np.tile(cells, (len(configurations), 1))
        for c in np.unique(configurations):
            here = np.flatnonzero(configurations == c)
            root = np.linalg.cholesky(left[c][np.ix_(1 + missing, 1 + missing)])
            off = full[c, 0, 1 + missing] + rng.standard_normal((len(here), len(missing))) @ root.T
            values[np.ix_(here, missing)] = found.centres[c, 0, missing] + off / self.units[1][missing]
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


def groups_of_numbers(scope: Sequence[int], sizes: Sequence[int], above: Sequence[Sequence[int]]) -> np.ndarray:
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


def group_joined_numbers(follows: Mapping[Key, Sequence[Key]]) -> list[list[Key]]:
    """Return groups of numbers joined by edges, parents first; numbers without such edges are left out."""
    part = {key: {key} for key in follows}
    for key, parents in follows.items():
        together = reduce(set.union, [part[parent] for parent in parents], part[key])
        part |= dict.fromkeys(together, together)
    found = {id(own): own for own in part.values() if len(own) > 1}
    return [[key for key in follows if key in own] for own in found.values()]
