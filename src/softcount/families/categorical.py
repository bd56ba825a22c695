"""Categorical columns: a probability for each level, looked up by code and never multiplied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import xlogy

from softcount.errors import DataError
from softcount.families.base import Family, How, Hyper, Line, Params, Setting, register, scalar_prior
from softcount.numerics.logspace import log_rising
from softcount.numerics.twofold import Twofold
from softcount.priors import Beta, Dirichlet, Expert
from softcount.table.schema import Kind

SMALLEST = 1e-300


def concentration(prior: Any, family: Family, setting: Setting, levels: int) -> np.ndarray:
    """Imagined counts per level that a prior stands for, in the order of the levels."""
    if isinstance(prior, Expert):
        prior = prior.as_beta() if levels == 2 and np.ndim(prior.n) == 0 else prior.as_dirichlet()
    if isinstance(prior, Beta):
        if levels != 2:
            raise DataError(f"column {setting.keys[0]!r} has {levels} levels; a Beta prior is for two. Use Dirichlet.")
        return np.array([prior.beta, prior.alpha], dtype=np.float64)
    if isinstance(prior, Dirichlet):
        return _named(prior, setting, levels)
    return np.full(levels, scalar_prior(prior, family, levels, setting.groups))


def _named(prior: Dirichlet, setting: Setting, levels: int) -> np.ndarray:
    alpha = np.asarray(prior.alpha, dtype=np.float64)
    names = getattr(prior, "levels", None)
    if names is not None:
        given = dict(zip(names, alpha, strict=True))
        return np.array([given.get(level, 0.0) for level in setting.levels])
    if alpha.shape[-1] != levels:
        raise DataError(
            f"column {setting.keys[0]!r} has {levels} levels {list(setting.levels)[:8]}, "
            f"but its Dirichlet prior has {alpha.shape[-1]}. Give one number per level, in sorted order."
        )
    return alpha


def estimated(counts: np.ndarray, alpha: np.ndarray, how: How, what: str) -> np.ndarray:
    """Shares from counts and imagined counts along the last axis; nothing seen at all gives equal shares."""
    if how == "map":
        alpha = alpha - 1.0
        if (counts + alpha < 0).any():
            raise DataError(
                f"{what}: a count plus its concentration is below one, so the posterior has no interior mode. "
                "Use estimate='mean', or a prior of 1 or more."
            )
    raw = counts if how == "ml" else counts + alpha
    total = raw.sum(axis=-1, keepdims=True)
    return np.where(total > 0, raw / np.where(total > 0, total, 1.0), 1.0 / max(raw.shape[-1], 1))


def imagined_counts(hyper: Hyper, how: How) -> np.ndarray:
    """Imagined counts per level, as far as they are in the objective."""
    alpha = hyper["alpha"]
    return np.zeros_like(alpha) if how == "ml" else alpha - 1.0 if how == "map" else alpha


@register
@dataclass(frozen=True, slots=True)
class Categorical(Family):
    """One of several levels.

    Statistics are the number of rows at each level. A level never seen has the prior's reserved mass
    a / (N + a (m + 1)); under `ml` it is no evidence.
    """

    name = "categorical"
    kind = Kind.CATEGORICAL
    discrete = True
    chart: ClassVar[Mapping[str, Line]] = {"probability": "shares"}

    def width(self, setting: Setting) -> int:
        return len(setting.levels)

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        return (column[:, None] == np.arange(1, self.width(setting) + 1)).astype(np.float64)

    def observed(self, stats: np.ndarray) -> float | None:
        return float(stats.sum())

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        return {"alpha": concentration(prior, self, setting, stats.shape[-1])}

    def estimate(self, stats: Twofold, hyper: Hyper, how: How) -> Params:
        counts, alpha = np.maximum(stats.value, 0.0), hyper["alpha"]
        reserve = 0.0 if how == "ml" else alpha.sum(axis=-1) / max(alpha.shape[-1], 1)
        unseen = reserve / np.maximum(counts.sum(axis=-1) + alpha.sum(axis=-1) + reserve, 1e-300)
        return {"probability": estimated(counts, alpha, how, self.name), "unseen": unseen}

    def natural(self, params: Params) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(params["probability"])

    def score(self, column: np.ndarray, params: Params, setting: Setting) -> np.ndarray:
        return self.table(params).T[column]

    def table(self, params: Params) -> np.ndarray:
        """Log-probability by code: missing (no evidence), each level, never seen."""
        known, unseen = self.natural(params), params["unseen"]
        with np.errstate(divide="ignore"):
            last = np.where(unseen > 0, np.log(unseen), 0.0)
        return np.concatenate([np.zeros_like(last)[..., None], known, last[..., None]], axis=-1)

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params | None:
        counts = np.maximum(stats.value, 0.0) + imagined_counts(hyper, how)
        return {"probability": counts / np.maximum(params["probability"], SMALLEST)}

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> float:
        exponent = imagined_counts(hyper, how)
        return float(xlogy(np.broadcast_to(exponent, params["probability"].shape), params["probability"]).sum())

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        counts, alpha = np.maximum(stats.value, 0.0), np.broadcast_to(hyper["alpha"], stats.shape)
        seen = np.asarray(log_rising(alpha.sum(axis=-1), counts.sum(axis=-1)))
        return float(np.asarray(log_rising(alpha, counts)).sum() - seen.sum())

    def proper(self, hyper: Hyper) -> Hyper:
        """Where nothing is imagined of any level, one row shared by all of them."""
        alpha = hyper["alpha"]
        nothing = alpha.sum(axis=-1, keepdims=True) <= 0
        return hyper | {"alpha": np.where(nothing, 1.0 / max(alpha.shape[-1], 1), alpha)}

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> Dirichlet:
        return Dirichlet(np.maximum(stats.value, 0.0) + hyper["alpha"])

    def free(self, setting: Setting, groups: int) -> int:
        return groups * max(self.width(setting) - 1, 0)

    def draw(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Level codes, 1 for the first level."""
        edges = np.cumsum(params["probability"], axis=1)[groups]
        return (rng.random(len(groups))[:, None] * edges[:, -1:] >= edges).sum(axis=1) + 1

    def describe(self, params: Params, setting: Setting) -> list[str]:
        return [_top_levels(row, setting.levels) for row in params["probability"]]

    def divergence(self, params: Params, shares: np.ndarray) -> np.ndarray:
        return divergence_of_shares(params["probability"], shares)

    def entropy(self, params: Params) -> np.ndarray:
        return -xlogy(params["probability"], params["probability"]).sum(axis=-1)

    def check_params(self, params: Params) -> str | None:
        shares = params["probability"]
        if shares.shape[-1] and ((shares < 0).any() or np.abs(shares.sum(axis=-1) - 1).max(initial=0.0) > 1e-9):
            return "its probabilities do not sum to one"
        unseen = params.get("unseen", np.zeros(1))
        return None if ((unseen >= 0) & (unseen <= 1)).all() else "its share for levels never seen is no share"


def divergence_of_shares(table: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Kullback-Leibler divergence of each group's probabilities from their average, in nats."""
    whole = shares @ table
    return (xlogy(table, table) - xlogy(table, np.where(whole > 0, whole, 1.0))).sum(axis=1)


def _top_levels(shares: np.ndarray, levels: Sequence[object], most: int = 3) -> str:
    order = np.argsort(-shares, kind="stable")[:most]
    names = {i: level if isinstance(level := levels[i], str) else f"{_spoken(level)}:" for i in order.tolist()}
    # Levels of less than half a percent say nothing beside the first: "Third 100 %, Second 0 %".
    return ", ".join(f"{names[i]} {100 * shares[i]:.0f} %" for i in order if i == order[0] or shares[i] >= 0.005)


def _spoken(level: object) -> str:
    """A level in words: a combination of levels is its parts."""
    return " and ".join(map(str, level)) if isinstance(level, tuple) else str(level)
