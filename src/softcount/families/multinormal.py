"""Correlated blocks: several real columns with one covariance per group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import gammaln, multigammaln

from softcount.errors import DataError
from softcount.families.base import Family, How, Hyper, Params, Setting, register, scalar_prior
from softcount.families.normal import HALF_LOG_2PI, known_rows
from softcount.numerics.twofold import Twofold
from softcount.priors import NormalInverseWishart
from softcount.table.schema import Kind

Covariance = Literal["full", "tied", "diagonal", "spherical"]
NARROWEST = 1e-10
"""Least variance along any direction, columns scaled to one: below it a density has no digit that can be trusted."""


@register
@dataclass(frozen=True, slots=True)
class Multinormal(Family):
    """A block of correlated real columns: `{("x", "y"): "multinormal"}`.

    Statistics are rows, sums and products of `(x - anchor) * scale`. A row with holes counts with the conditional
    expectations of what is missing, so fitting such a block takes EM even when every class is known.
    """

    covariance: Covariance = "full"

    name = "multinormal"
    kind = Kind.REAL
    block = True
    exact = False

    def __post_init__(self) -> None:
        if self.covariance not in ("full", "tied", "diagonal", "spherical"):
            raise DataError(f"covariance={self.covariance!r}: use 'full', 'tied', 'diagonal' or 'spherical'.")

    def width(self, setting: Setting) -> int:
        d = len(setting.anchor)
        return 1 + d + d * d

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        """For complete rows; a row with holes counts through `count`."""
        moved = (column - setting.anchor) * setting.scale
        moved = np.where(np.isnan(moved).any(axis=1, keepdims=True), 0.0, moved)
        whole = ~np.isnan(column).any(axis=1, keepdims=True)
        products = moved[:, :, None] * moved[:, None, :]
        return np.concatenate([whole.astype(float), moved, products.reshape(len(moved), -1)], axis=1)

    def count(self, column: np.ndarray, memberships: np.ndarray, params: Params | None, setting: Setting) -> Twofold:
        """(groups x width) expected statistics, each group centred on its own rows before it is anchored."""
        moved = (column - setting.anchor) * setting.scale
        if params is None and setting.blank is not None:
            params = _alike(setting.blank, memberships.shape[1])
        totals = Twofold.of(np.zeros((memberships.shape[1], self.width(setting))))
        for rows, present in patterns(column):
            if present.any():
                totals = totals + self._of_pattern(moved[rows], memberships[rows], present, params)
        return totals

    def _of_pattern(
        self, moved: np.ndarray, members: np.ndarray, present: np.ndarray, params: Params | None
    ) -> Twofold:
        d, groups = moved.shape[1], members.shape[1]
        parts = []
        for g in range(groups):
            filled, extra = self._completed(moved, present, params, g)
            parts.append(_anchored(filled, members[:, g], extra, d))
        return Twofold(np.stack([p.hi for p in parts]), np.stack([p.lo for p in parts]))

    def _completed(
        self, moved: np.ndarray, present: np.ndarray, params: Params | None, g: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows with their holes at the conditional mean, and the conditional covariance left over."""
        d = moved.shape[1]
        extra = np.zeros((d, d))
        if present.all():
            return moved, extra
        filled = moved.copy()
        if params is None:
            filled[:, ~present] = 0.0
            extra[~present, ~present] = 1.0
            return filled, extra
        mean, cov = params["mean"][g], params["covariance"][g]
        gain = np.linalg.solve(cov[np.ix_(present, present)], cov[np.ix_(present, ~present)])
        filled[:, ~present] = mean[~present] + (moved[:, present] - mean[present]) @ gain
        extra[np.ix_(~present, ~present)] = cov[np.ix_(~present, ~present)] - cov[np.ix_(~present, present)] @ gain
        return filled, extra

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        rows, mean, scatter = block_moments(stats.sum(0).spread(0))
        d, mass, middle = mean.shape[-1], float(rows.ravel()[0]), mean[0]
        spread = np.diagonal(scatter[0], axis1=-2, axis2=-1) / mass if mass > 0 else np.ones(d)
        if setting.blank is not None:
            middle, spread = setting.blank
        # A column with no spread at all still needs a width: its own resolution.
        resolution = np.finfo(float).eps * np.maximum(np.abs(middle), np.abs(setting.anchor * setting.scale))
        whole = np.maximum(spread, np.maximum(resolution, 1e-140) ** 2)
        hyper = {"centre": middle, "whole": whole, "floor": np.array(max(setting.floor, NARROWEST))}
        if isinstance(prior, NormalInverseWishart):
            unit = setting.scale
            return hyper | {
                "mu": (np.asarray(prior.mean) - setting.anchor) * unit,
                "kappa": np.array(float(prior.kappa)),
                "nu": np.array(float(prior.nu)),
                "scatter": np.asarray(prior.scale) * np.outer(unit, unit),
            }
        nu = scalar_prior(prior, self, groups=setting.groups)
        scatter0 = nu * whole[..., None] * np.eye(d)
        return hyper | {"mu": middle, "kappa": np.array(0.0), "nu": np.array(nu), "scatter": scatter0}

    def estimate(self, stats: Twofold, hyper: Hyper, how: How) -> Params:
        rows, mean, scatter = block_moments(stats)
        kappa, nu = (0.0, 0.0) if how == "ml" else (hyper["kappa"], hyper["nu"])
        weight = rows + kappa
        pull = np.where(weight > 0, kappa / np.where(weight > 0, weight, 1.0), 0.0)
        off = mean - hyper["mu"]
        if how != "ml":
            scatter = (
                scatter + hyper["scatter"] + (pull * rows)[..., None, None] * off[..., :, None] * off[..., None, :]
            )
        mean = np.where(weight[..., None] > 0, mean - pull[..., None] * off, hyper["centre"])
        covariance = self._shaped(scatter, rows + nu, hyper)
        params = {"mean": mean, "covariance": covariance}
        if how == "predictive":
            known = rows + nu if self.covariance != "tied" else np.broadcast_to((rows + nu).sum(0), rows.shape)
            params["freedom"] = np.maximum(known - mean.shape[-1] + 1, 1.0)
            wider = np.maximum(known, 1.0) / params["freedom"]
            params["spread"] = wider * (1.0 + 1.0 / known_rows(weight))
        return params

    def _shaped(self, scatter: np.ndarray, rows: np.ndarray, hyper: Hyper) -> np.ndarray:
        d = scatter.shape[-1]
        if self.covariance == "tied":
            scatter = np.broadcast_to(scatter.sum(axis=0, keepdims=True), scatter.shape)
            rows = np.broadcast_to(rows.sum(axis=0, keepdims=True), rows.shape)
        safe = np.where(rows > 0, rows, 1.0)[..., None, None]
        empty = hyper["whole"][..., None] * np.eye(d)
        covariance = np.where(rows[..., None, None] > 0, scatter / safe, empty)
        if self.covariance in ("diagonal", "spherical"):
            covariance = covariance * np.eye(d)
        whole = hyper["whole"]
        if self.covariance == "spherical":
            covariance = np.trace(covariance, axis1=-2, axis2=-1)[..., None, None] / d * np.eye(d)
            whole = np.full(whole.shape, whole.mean())
        return floored(covariance, whole, float(hyper["floor"]))

    def score(self, column: np.ndarray, params: Params, setting: Setting) -> np.ndarray:
        out = np.zeros((len(column), len(params["mean"])))
        for rows, present in patterns(column):
            if present.any():
                for g in range(out.shape[1]):
                    out[rows, g] = self._density(column[rows][:, present], params, g, present)
        return out

    def _density(self, values: np.ndarray, params: Params, g: int, present: np.ndarray) -> np.ndarray:
        mean, cov = params["mean"][g][present], params["covariance"][g][np.ix_(present, present)]
        d, stretch = present.sum(), params["spread"][g] if "spread" in params else 1.0
        unit = np.sqrt(np.diagonal(cov))
        factor = np.linalg.cholesky(cov / np.outer(unit, unit))
        z = np.linalg.solve(factor, ((values - mean) / unit).T)
        distance = (z * z).sum(axis=0) / stretch
        log_det = np.log(np.diagonal(factor)).sum() + np.log(unit).sum() + 0.5 * d * np.log(stretch)
        if "freedom" not in params:
            return -0.5 * distance - log_det - d * HALF_LOG_2PI
        nu = params["freedom"][g]
        top = gammaln((nu + d) / 2) - gammaln(nu / 2) - 0.5 * d * np.log(nu * np.pi)
        return top - log_det - 0.5 * (nu + d) * np.log1p(distance / nu)

    def completed(self, stats: Twofold, params: Params) -> float:
        rows, mean, scatter = block_moments(stats)
        covariance, off = params["covariance"], mean - params["mean"]
        around = scatter + rows[..., None, None] * off[..., :, None] * off[..., None, :]
        distance = np.einsum("...ij,...ji->...", np.linalg.inv(covariance), around)
        width = np.linalg.slogdet(covariance)[1] + 2 * mean.shape[-1] * HALF_LOG_2PI
        return float((-0.5 * (distance + rows * width)).sum())

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> float:
        if how == "ml":
            return 0.0
        covariance = params["covariance"]
        inverse = np.linalg.inv(covariance)
        off = params["mean"] - hyper["mu"]
        pull = hyper["kappa"] * np.einsum("...i,...ij,...j->...", off, inverse, off)
        spread = hyper["nu"] * np.linalg.slogdet(covariance)[1] + np.einsum(
            "...ij,...ji->...", inverse, hyper["scatter"]
        )
        return float(-0.5 * (spread + pull).sum())

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        rows, _, scatter = block_moments(stats)
        d, nu = scatter.shape[-1], hyper["nu"] + scatter.shape[-1] - 1
        prior, after = np.linalg.slogdet(hyper["scatter"])[1], np.linalg.slogdet(scatter + hyper["scatter"])[1]
        top = np.array([multigammaln((nu + n) / 2, d) for n in rows.ravel()]).reshape(rows.shape)
        return float((top - multigammaln(float(nu) / 2, d) + 0.5 * nu * prior - 0.5 * (nu + rows) * after).sum())

    def log_unit(self, stats: Twofold, setting: Setting) -> float:
        return float(stats.value[..., 0].sum() * np.log(setting.scale).sum())

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> NormalInverseWishart:
        params = self.public(self.estimate(stats, hyper, "mean"), setting)
        rows = stats.value[..., 0]
        nu = rows + hyper["nu"]
        return NormalInverseWishart(
            params["mean"], rows + hyper["kappa"], nu, params["covariance"] * nu[..., None, None]
        )

    def public(self, params: Params, setting: Setting) -> Params:
        unit = 1.0 / setting.scale
        outer = np.outer(unit, unit)
        return params | {"mean": params["mean"] * unit + setting.anchor, "covariance": params["covariance"] * outer}

    def private(self, params: Params, setting: Setting) -> Params:
        mean = (np.asarray(params["mean"], float) - setting.anchor) * setting.scale
        return {
            "mean": mean,
            "covariance": np.asarray(params["covariance"], float) * np.outer(setting.scale, setting.scale),
        }

    def free(self, setting: Setting, groups: int) -> int:
        d = len(setting.anchor)
        full = d * (d + 1) // 2
        return (
            groups * d
            + {"full": groups * full, "tied": full, "diagonal": groups * d, "spherical": groups}[self.covariance]
        )

    def draw(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        noise = rng.standard_normal((len(groups), params["mean"].shape[-1]))
        if "freedom" in params:
            nu = params["freedom"][groups]
            noise *= np.sqrt(params["spread"][groups] * nu / rng.chisquare(nu))[:, None]
        return params["mean"][groups] + np.einsum("nij,nj->ni", np.linalg.cholesky(params["covariance"])[groups], noise)

    def describe(self, params: Params, setting: Setting) -> list[str]:
        return ["mean " + ", ".join(f"{m:.4g}" for m in mean) for mean in params["mean"]]

    def divergence(self, params: Params, shares: np.ndarray) -> np.ndarray:
        mean, covariance = params["mean"], params["covariance"]
        off = mean - shares @ mean
        whole = np.einsum("g,gij->ij", shares, covariance + off[:, :, None] * off[:, None, :])
        inverse = np.linalg.inv(whole)
        spread = np.einsum("ij,gji->g", inverse, covariance) + np.einsum("gi,ij,gj->g", off, inverse, off)
        dets = np.linalg.slogdet(whole)[1] - np.linalg.slogdet(covariance)[1]
        return 0.5 * (spread - mean.shape[1] + dets)

    def check_params(self, params: Params) -> str | None:
        spreads = np.linalg.eigvalsh(params["covariance"])
        return None if (spreads > 0).all() else "its covariance is not positive definite"


def _alike(blank: tuple[np.ndarray, np.ndarray], groups: int) -> Params:
    """Groups that all have the columns' own means and variances."""
    mean, variance = blank
    apart = np.diag(np.maximum(variance, 1e-300))
    return {"mean": np.tile(mean, (groups, 1)), "covariance": np.tile(apart, (groups, 1, 1))}


def block_moments(stats: Twofold) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, means and centred products (..., d, d) of a block's statistics."""
    d = int((np.sqrt(4 * (stats.shape[-1] - 1) + 1) - 1) / 2)
    rows, total = stats[..., :1], stats[..., 1 : d + 1]
    mean = total.over(rows.broadcast(total.shape))
    outer = mean.spread(-1).broadcast((*mean.shape, d)) * total.spread(-2).broadcast((*mean.shape, d))
    flat = stats[..., d + 1 :]
    products = Twofold(flat.hi.reshape(outer.shape), flat.lo.reshape(outer.shape))
    scatter = (products - outer).value
    return rows.value[..., 0], mean.value, 0.5 * (scatter + np.swapaxes(scatter, -1, -2))


def patterns(block: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Row numbers that share a pattern of holes, with that pattern (true where present)."""
    present = ~np.isnan(block)
    if present.all():
        yield np.arange(len(block)), np.ones(block.shape[1], dtype=bool)
        return
    distinct, which = np.unique(present, axis=0, return_inverse=True)
    for i, pattern in enumerate(distinct):
        yield np.flatnonzero(which.ravel() == i), pattern


def floored(covariance: np.ndarray, whole: np.ndarray, floor: float) -> np.ndarray:
    """Eigenvalues clipped from below in units of each column's whole spread: the exact constrained maximum."""
    unit = np.sqrt(whole)
    outer = unit[..., :, None] * unit[..., None, :]
    values, vectors = np.linalg.eigh(covariance / outer)
    if (values >= floor).all():
        return covariance
    clipped = np.maximum(values, floor)
    return np.einsum("...ij,...j,...kj->...ik", vectors, clipped, vectors) * outer


def _anchored(filled: np.ndarray, weights: np.ndarray, extra: np.ndarray, d: int) -> Twofold:
    rows = weights.sum()
    centre = weights @ filled / rows if rows > 0 else np.zeros(d)
    moved = filled - centre
    total = Twofold.of(weights @ moved)
    products = Twofold.of((moved * weights[:, None]).T @ moved + rows * extra)
    n, shift = Twofold.of(np.full(1, rows)), Twofold.of(centre)
    crossed = total.spread(1).broadcast((d, d)) * shift.spread(0).broadcast((d, d))
    flipped = Twofold(crossed.hi.T, crossed.lo.T)
    square = shift.spread(1).broadcast((d, d)) * shift.spread(0).broadcast((d, d))
    products = products + crossed + flipped + square * float(rows)
    sums = total + shift * float(rows)
    hi = np.concatenate([n.hi, sums.hi, products.hi.ravel()])
    return Twofold(hi, np.concatenate([n.lo, sums.lo, products.lo.ravel()]))
