"""The plate of a correlated block: which kernel scores and counts it, and the order of its rows with holes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import gammaln

from softcount.families import Params
from softcount.families.normal import HALF_LOG_2PI
from softcount.models.nodes import Node
from softcount.models.plates import Kernels, Tallies, one_hot
from softcount.models.squares import STEADY
from softcount.numerics.twofold import Twofold, two_sum
from softcount.table.chunk import Chunk

NARROW = 32
"""Columns up to which products are faster than centring each group (50 columns, 10 groups: 124 ms against 131)."""

Data = tuple[np.ndarray, np.ndarray]
"""Rows as they came, and the bits of their holes."""


@dataclass(frozen=True, slots=True, eq=False)
class Bells:
    """Every group's density as the kernels want it.

    `centres` (groups, 2, d): the mean in the user's units, and what rounding it left over in counting ones. `eta` is
    the product form, None where it would lose digits or time. `student` holds degrees of freedom and spread.
    """

    centres: np.ndarray
    covariances: np.ndarray
    roots: np.ndarray
    dets: np.ndarray
    eta: np.ndarray | None
    student: tuple[np.ndarray, np.ndarray] | None


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One correlated block of real columns, each group with a mean and a covariance."""

    leaves: tuple[Node, ...]
    slots: tuple[int, ...]
    names: tuple[Hashable, ...]
    kernels: Kernels
    _recent: list[tuple[Params, Bells]] = field(default_factory=list, repr=False)

    @property
    def units(self) -> np.ndarray:
        """The columns' anchors and scales."""
        setting = self.leaves[0].setting
        return np.stack([setting.anchor, setting.scale])

    def prepare(self, chunk: Chunk) -> Data:
        rows = chunk.reals
        if self.slots != tuple(range(rows.shape[1])):
            rows = rows[:, list(self.slots)]
        rows = np.ascontiguousarray(rows)
        return rows, holes_of(rows)

    def base(self, data: Data) -> float:
        return 0.0

    def compile(self, params: list[Params]) -> Bells:
        """The densities these parameters stand for; the last ones are kept, because counting asks for them again."""
        recent = self._recent[:1]
        if recent and recent[0][0] is params[0]:
            return recent[0][1]
        bells = bells_of(params[0], self.units)
        self._recent[:] = [(params[0], bells)]
        return bells

    def score(self, data: Data, compiled: Bells, out: np.ndarray) -> None:
        rows, holes = data
        if not holes.any():
            self._score_whole(rows, compiled, out)
            return
        order, starts = arranged(holes)
        whole, holed = order[: starts[0]], order[starts[0] :]
        part = np.zeros((len(whole), out.shape[1]))
        self._score_whole(rows[whole], compiled, part)
        out[whole] += part
        if len(holed):
            out[holed] += self._score_holed(rows[holed], starts - starts[0], compiled)

    def _score_whole(self, rows: np.ndarray, bells: Bells, out: np.ndarray) -> None:
        if bells.eta is not None:
            self.kernels.score_products(rows, self.units, bells.eta, out)
            return
        scales, d = self.units[1], rows.shape[1]
        if bells.student is None:
            constants = np.log(scales).sum() - bells.dets - d * HALF_LOG_2PI
            self.kernels.score_centred(rows, scales, bells.centres, bells.roots, constants, out)
            return
        apart = np.zeros_like(out)
        self.kernels.score_centred(rows, scales, bells.centres, bells.roots, np.zeros(out.shape[1]), apart)
        out += density(-2.0 * apart, bells.dets - np.log(scales).sum(), np.array([[d]]), bells)

    def _score_holed(self, rows: np.ndarray, starts: np.ndarray, bells: Bells) -> np.ndarray:
        scales = self.units[1]
        distances, dets = self.kernels.score_patterns(rows, starts, scales, bells.centres, bells.covariances)
        there = ~np.isnan(rows[starts[:-1]])
        dets -= (there * np.log(scales)).sum(axis=1, keepdims=True)
        which = np.repeat(np.arange(len(there)), np.diff(starts))
        return density(distances, dets[which], there.sum(axis=1, keepdims=True)[which], bells)

    def count(self, data: Data, memberships: np.ndarray, params: list[Params] | None) -> Tallies:
        rows, holes = data
        bells = None if params is None else self.compile(params)
        if not holes.any():
            return {self.names[0]: self._count_whole(rows, memberships, bells)}
        order, starts = arranged(holes)
        whole, holed = order[: starts[0]], order[starts[0] :]
        total = self._count_whole(rows[whole], memberships[whole], bells)
        if len(holed):
            bells = bells or bells_of(self._blank(memberships.shape[1]), self.units)
            total = total + Twofold(
                *self.kernels.count_patterns(
                    rows[holed], starts - starts[0], memberships[holed], self.units, bells.centres, bells.covariances
                )
            )
        return {self.names[0]: total}

    def _count_whole(self, rows: np.ndarray, memberships: np.ndarray, bells: Bells | None) -> Twofold:
        if bells is not None and bells.eta is not None:
            return Twofold(*self.kernels.count_products(rows, memberships, self.units))
        centres = self._middles(rows, memberships) if bells is None else np.ascontiguousarray(bells.centres[:, 0])
        return Twofold(*self.kernels.count_centred(rows, memberships, centres, *self.units))

    def _middles(self, rows: np.ndarray, memberships: np.ndarray) -> np.ndarray:
        """Each group's mean in these rows, in the user's units."""
        anchors, scales = self.units
        mass = memberships.sum(axis=0)[:, None]
        with np.errstate(invalid="ignore", over="ignore"):
            middles = memberships.T @ ((rows - anchors) * scales) / np.where(mass > 0, mass, 1.0) / scales + anchors
        return np.where(np.isfinite(middles), middles, anchors)

    def _blank(self, groups: int) -> Params:
        """Groups alike: each column's own mean and variance, or those of its unit while they are not known."""
        d = len(self.slots)
        mean, variance = self.leaves[0].setting.blank or (np.zeros(d), np.ones(d))
        apart = np.diag(np.maximum(variance, 1e-300))
        return {"mean": np.tile(mean, (groups, 1)), "covariance": np.tile(apart, (groups, 1, 1))}

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
        return {self.names[0]: Twofold(high, low)}

    def expect(
        self, data: Data, compiled: Bells, log_shares: np.ndarray, weights: np.ndarray | None
    ) -> tuple[Tallies, Twofold, float] | None:
        """Expected counts, those of the groups and the log-likelihood in one go, where this block is all there is.

        None where it takes scoring and counting one after the other.
        """
        rows, holes = data
        if compiled.eta is None or holes.any():
            return None
        eta = compiled.eta.copy()
        eta[:, 0] += log_shares
        high, low, likelihood = self.kernels.expect_products(rows, weights, self.units, eta)
        return {self.names[0]: Twofold(high, low)}, Twofold(high[:, 0], low[:, 0]), likelihood

    def stats(self, tallies: Any, leaf: int) -> Twofold:
        return tallies[self.names[0]]


def bells_of(params: Params, units: np.ndarray) -> Bells:
    """Densities from parameters in counting units."""
    anchors, scales = units
    mean, covariance = params["mean"], params["covariance"]
    at = mean / scales + anchors
    step, rest = two_sum(at, np.broadcast_to(-anchors, at.shape))
    centres = np.stack([at, (mean - step * scales) - rest * scales], axis=1)
    unit = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    lower = np.linalg.cholesky(covariance / (unit[:, :, None] * unit[:, None, :]))
    dets = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1) + np.log(unit).sum(axis=1)
    roots = np.ascontiguousarray(np.tril(np.linalg.inv(lower)) / unit[:, None, :])
    student = (params["freedom"], params["spread"]) if "freedom" in params else None
    eta = None if student else product_form(mean, unit, roots, np.log(scales).sum() - dets)
    return Bells(centres, np.ascontiguousarray(covariance), roots, dets, eta, student)


def product_form(mean: np.ndarray, unit: np.ndarray, roots: np.ndarray, heights: np.ndarray) -> np.ndarray | None:
    """(groups, features) that multiply 1, x_i and x_i x_j (i <= j); None where it would lose digits or time."""
    d = mean.shape[1]
    precision = roots.swapaxes(1, 2) @ roots
    reach = np.abs(mean) + unit
    terms = precision * (reach[:, :, None] * reach[:, None, :])
    if d > NARROW or not np.sqrt((terms * terms).sum(axis=(1, 2))).max() < STEADY:
        return None
    turned = np.einsum("gij,gj->gi", roots, mean)
    first, second = np.triu_indices(d)
    squares = precision[:, first, second] * np.where(first == second, -0.5, -1.0)
    constants = heights - d * HALF_LOG_2PI - 0.5 * (turned * turned).sum(axis=1)
    return np.concatenate([constants[:, None], np.einsum("gij,gj->gi", precision, mean), squares], axis=1)


def density(distances: np.ndarray, dets: np.ndarray, there: np.ndarray, bells: Bells) -> np.ndarray:
    """Log-density of rows at these squared distances, `there` columns of them present; 0 where there is none."""
    if bells.student is None:
        return -0.5 * distances - dets - there * HALF_LOG_2PI
    nu, spread = bells.student
    top = gammaln((nu + there) / 2) - gammaln(nu / 2) - 0.5 * there * np.log(nu * np.pi * spread)
    return top - dets - 0.5 * (nu + there) * np.log1p(distances / (spread * nu))


def holes_of(rows: np.ndarray) -> np.ndarray:
    """(rows, words) bits, one for each missing cell: rows with equal bits have one pattern of holes."""
    missing = np.isnan(rows)
    bits = np.zeros((len(rows), -(-rows.shape[1] // 64) * 8), dtype=np.uint8)
    if missing.any():
        packed = np.packbits(missing, axis=1)
        bits[:, : packed.shape[1]] = packed
    return bits.view(np.uint64)


def arranged(holes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows in order of their patterns, whole ones first, and where each pattern with holes starts; then the end."""
    order = np.lexsort(holes.T) if holes.shape[1] > 1 else np.argsort(holes[:, 0], kind="stable")
    sorted_bits = holes[order]
    new = np.flatnonzero((sorted_bits[1:] != sorted_bits[:-1]).any(axis=1)) + 1
    starts = np.concatenate([new if not sorted_bits[0].any() else np.insert(new, 0, 0), [len(order)]])
    return order, starts
