"""Correlated blocks: several real columns with one covariance per group."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from threading import local
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import gammaln, psi

from softcount.errors import DataError
from softcount.families.base import Family, How, Hyper, Line, Params, Setting, register, scalar_prior
from softcount.families.normal import HALF_LOG_2PI, LOOSE, known_rows, scale_evidence
from softcount.numerics.logspace import log_rising
from softcount.numerics.twofold import Twofold
from softcount.priors import NormalInverseWishart
from softcount.table.schema import Key, Kind

Moments = tuple[np.ndarray, np.ndarray, np.ndarray]
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
    dotted = False
    signed = True
    chart: ClassVar[Mapping[str, Line]] = {"mean": "plain", "covariance": "covariance"}

    def __post_init__(self) -> None:
        if self.covariance not in ("full", "tied", "diagonal", "spherical"):
            raise DataError(f"covariance={self.covariance!r}: use 'full', 'tied', 'diagonal' or 'spherical'.")

    def width(self, setting: Setting) -> int:
        d = len(setting.anchor)
        return 1 + d + d * d

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        """For complete rows; one with holes counts with its conditional expectations, which its plate knows."""
        moved = (column - setting.anchor) * setting.scale
        moved = np.where(np.isnan(moved).any(axis=1, keepdims=True), 0.0, moved)
        whole = ~np.isnan(column).any(axis=1, keepdims=True)
        products = moved[:, :, None] * moved[:, None, :]
        return np.concatenate([whole.astype(float), moved, products.reshape(len(moved), -1)], axis=1)

    def hidden(self, key: Key, holes: bool) -> str:
        return f"holes in the block {key}" if holes else ""

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
                "explicit": np.array(1.0),
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

    def held(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params) -> Params:
        """With the mean fixed, the covariance is around that mean."""
        params = Family.held(self, stats, hyper, how, fixed)
        if "mean" in fixed and "covariance" not in fixed:
            rows, mean, scatter = block_moments(stats)
            kappa, nu = (0.0, 0.0) if how == "ml" else (hyper["kappa"], hyper["nu"])
            off, pull = mean - fixed["mean"], fixed["mean"] - hyper["mu"]
            scatter = scatter + rows[..., None, None] * off[..., :, None] * off[..., None, :]
            if how != "ml":
                scatter = scatter + hyper["scatter"] + kappa * pull[..., :, None] * pull[..., None, :]
            params["covariance"] = self._shaped(scatter, rows + nu, hyper)
        return params

    def held_free(self, names: Collection[str], setting: Setting, groups: int) -> int:
        means = groups * len(setting.anchor)
        spreads = self.free(setting, groups) - means if "covariance" in names else 0
        return spreads + (means if "mean" in names else 0)

    def within(self, params: Params, hyper: Hyper) -> Params:
        whole = hyper["whole"]
        if self.covariance == "spherical":
            whole = np.full(whole.shape, whole.mean())
        return params | {"covariance": floored(params["covariance"], whole, float(hyper["floor"]))}

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

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params | None:
        rows, mean, scatter = block_moments(stats)
        kappa, nu = (0.0, 0.0) if how == "ml" else (hyper["kappa"], hyper["nu"])
        off, pull, inverse = mean - params["mean"], hyper["mu"] - params["mean"], np.linalg.inv(params["covariance"])
        around = scatter + rows[..., None, None] * off[..., :, None] * off[..., None, :]
        if how != "ml":
            around = around + hyper["scatter"] + kappa * pull[..., :, None] * pull[..., None, :]
        spread = 0.5 * (inverse @ around @ inverse - (rows + nu)[..., None, None] * inverse)
        lift = np.einsum("...ij,...j->...i", inverse, rows[..., None] * off + kappa * pull)
        return {"mean": lift, "covariance": self._shared_slope(spread)}

    def _shared_slope(self, spread: np.ndarray) -> np.ndarray:
        """The covariances' slope along what their shape lets them do."""
        d = spread.shape[-1]
        if self.covariance == "tied":
            return np.broadcast_to(spread.mean(axis=0), spread.shape)
        if self.covariance == "full":
            return spread
        if self.covariance == "spherical":
            return np.trace(spread, axis1=-2, axis2=-1)[..., None, None] / d * np.eye(d)
        return spread * np.eye(d)

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
        """Of means without imagined rows only what their prior does not decide; a tied covariance is integrated once.

        Imagined rows are those of an inverse Wishart of nu + d - 1 degrees of freedom: with one column, of nu. A prior
        given as an inverse Wishart is that one.
        """
        rows, mean, scatter = block_moments(stats)
        kappa, off = np.broadcast_to(hyper["kappa"], rows.shape), mean - hyper["mu"]
        pull = rows * kappa / np.where(rows > 0, rows + kappa, 1.0)
        scatter = scatter + pull[..., None, None] * off[..., :, None] * off[..., None, :]
        means = np.where(kappa > 0, -0.5 * np.log1p(rows / np.where(kappa > 0, kappa, 1.0)), 0.0)
        before = np.broadcast_to(hyper["scatter"], scatter.shape)
        d, nu = mean.shape[-1], np.broadcast_to(hyper["nu"], rows.shape)
        freedom = 0 if "explicit" in hyper else d - 1
        return float(d * means.sum() + self._spread_evidence(rows, scatter, nu, before, freedom))

    def _spread_evidence(
        self, rows: np.ndarray, scatter: np.ndarray, nu: np.ndarray, before: np.ndarray, freedom: int
    ) -> float:
        """The covariance's part: products around the mean, when it is nu rows worth the products `before` a priori."""
        d = scatter.shape[-1]
        if self.covariance in ("diagonal", "spherical"):
            squares, whole = (np.diagonal(part, axis1=-2, axis2=-1) for part in (scatter, before))
            if self.covariance == "diagonal":
                return float(scale_evidence(rows[..., None], squares, nu[..., None], whole).sum())
            return float(scale_evidence(d * rows, squares.sum(axis=-1), d * nu, whole.sum(axis=-1)).sum())
        if self.covariance == "tied":
            rows, scatter, nu, before = (part.sum(axis=0, keepdims=True) for part in (rows, scatter, nu, before))
        return float(_wishart_evidence(rows, scatter, nu + freedom, before).sum())

    def proper(self, hyper: Hyper) -> Hyper:
        """Where nothing is imagined: a row's worth of the columns' variances, and means anywhere in the columns."""
        nothing = hyper["nu"] <= 0
        loose = np.where(hyper["kappa"] > 0, hyper["kappa"], LOOSE)
        scatter = np.where(nothing, hyper["whole"][..., None] * np.eye(len(hyper["whole"])), hyper["scatter"])
        return hyper | {"kappa": loose, "nu": np.where(nothing, 1.0, hyper["nu"]), "scatter": scatter}

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

    def entropy(self, params: Params) -> np.ndarray:
        d = params["mean"].shape[1]
        half = 0.5 * np.linalg.slogdet(params["covariance"])[1]
        if "freedom" not in params:
            return half + d * (HALF_LOG_2PI + 0.5)
        nu = np.minimum(params["freedom"], 1e6)  # beyond it a normal, for which the difference below would cancel
        top = gammaln((nu + d) / 2) - gammaln(nu / 2) - 0.5 * d * np.log(nu * np.pi)
        return half + 0.5 * d * np.log(params["spread"]) - top + 0.5 * (nu + d) * (psi((nu + d) / 2) - psi(nu / 2))

    def check_params(self, params: Params) -> str | None:
        if not is_symmetric(params["covariance"]):
            return "its covariance is not symmetric"
        spreads = np.linalg.eigvalsh(params["covariance"])
        return None if (spreads > 0).all() else "its covariance is not positive definite"


def is_symmetric(matrices: np.ndarray) -> bool:
    """Whether each matrix is its own mirror image, to eight digits of its diagonal."""
    unit = np.sqrt(np.abs(np.diagonal(matrices, axis1=-2, axis2=-1)))
    uneven = np.abs(matrices - np.swapaxes(matrices, -1, -2))
    return bool((uneven <= 1e-8 * unit[..., :, None] * unit[..., None, :]).all())


def _wishart_evidence(rows: np.ndarray, scatter: np.ndarray, nu: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Log evidence of products around a mean under an inverse Wishart of nu degrees of freedom.

    Determinants are of columns scaled to one: products of columns with deviations of 1e-40 would be nothing.
    """
    d = scatter.shape[-1]
    unit = np.sqrt(np.diagonal(before, axis1=-2, axis2=-1))
    outer = unit[..., :, None] * unit[..., None, :]
    start = np.linalg.slogdet(before / outer)[1]
    grown = np.linalg.slogdet((before + scatter) / outer)[1] - start
    level = start + 2 * np.log(unit).sum(axis=-1)
    shapes = np.asarray(log_rising((nu[..., None] - np.arange(d)) / 2, rows[..., None] / 2)).sum(axis=-1)
    return shapes - nu / 2 * grown - rows / 2 * (grown + level + d * np.log(np.pi))


_last = local()


def block_moments(stats: Twofold) -> Moments:
    """Rows, means and centred products (..., d, d) of a block's statistics.

    Worked out once for the same statistics: an EM step asks three times, a quarter of its time on a small table.
    """
    if getattr(_last, "stats", None) is not stats:
        _last.found = _moments_of(stats)
        _last.stats = stats
    found: Moments = _last.found
    return found


def _moments_of(stats: Twofold) -> Moments:
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
