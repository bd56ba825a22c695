"""The stack of a correlated block: which kernel scores and counts it, and the order of incomplete rows."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

import numpy as np
from msgspec import Struct

from softcount.core.counts import Twofold, two_sum
from softcount.core.special import inverse_of_lower
from softcount.families.multinormal import block_density
from softcount.families.normal import HALF_LOG_2PI
from softcount.models.nodes import Name, Params
from softcount.models.stacks import STEADY, SingleStack, Tallies, one_hot, wanted
from softcount.table.chunk import Chunk

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
        return rows, holes_of(rows)

    def compile(self, params: Params) -> Densities:
        own = params[self.node.key]
        student = (own["freedom"], own["spread"]) if "freedom" in own else None
        return densities((own["mean"], own["covariance"], student), self.units)

    def score(self, data: Data, compiled: Densities, out: np.ndarray) -> None:
        rows, holes = data
        if not holes.any():
            self._score_whole(rows, compiled, out)
            return
        order, starts = arranged(holes)
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
        (rows, holes), found = data, compiled
        if not holes.any():
            return {self.name: self._count_whole(rows, memberships, found)}
        order, starts = arranged(holes)
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
        rows, holes = data
        if holes.any():
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
        rows, holes = data
        if compiled.eta is None or holes.any():
            return None
        eta = compiled.eta.copy()
        eta[:, 0] += log_shares
        high, low, likelihood = self.kernels.expect_products(rows, weights, self.units, eta)
        return Twofold(high, low), Twofold(high[:, 0], low[:, 0]), likelihood

    def features(self, data: Data) -> np.ndarray | None:
        """Return 1, the numbers and their products; None if rows are incomplete."""
        rows, holes = data
        if holes.any():
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
        return 1 + len(self.places) if self.node.family.shared_by_groups else None

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


def holes_of(rows: np.ndarray) -> np.ndarray:
    """Return (rows, words) bits, one for each missing cell. Rows with equal bits have the same pattern."""
    missing = np.isnan(rows)
    bits = np.zeros((len(rows), -(-rows.shape[1] // 64) * 8), dtype=np.uint8)
    if missing.any():
        packed = np.packbits(missing, axis=1)
        bits[:, : packed.shape[1]] = packed
    return bits.view(np.uint64)


def arranged(holes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows in order of their patterns, complete ones first.

    Also return the start of each incomplete pattern, and the end.
    """
    order = np.lexsort(holes.T) if holes.shape[1] > 1 else np.argsort(holes[:, 0], kind="stable")
    sorted_bits = holes[order]
    new = np.flatnonzero((sorted_bits[1:] != sorted_bits[:-1]).any(axis=1)) + 1
    starts = np.concatenate([new if not sorted_bits[0].any() else np.insert(new, 0, 0), [len(order)]])
    return order, starts
