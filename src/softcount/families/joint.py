"""Joint tables: several dependent discrete columns as one, a probability for every combination of levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from scipy.special import xlogy

from softcount.errors import ResourceError
from softcount.families.base import How, Hyper, Params, Setting, register
from softcount.families.categorical import SMALLEST, Categorical, concentration, estimated, imagined_counts
from softcount.families.holes import Shared, extended, spread_back
from softcount.numerics.twofold import Twofold
from softcount.priors import Dirichlet

MOST_CELLS = 20_000_000


@register
@dataclass(frozen=True, slots=True)
class Joint(Categorical):
    """A block of discrete columns: `{("a", "b"): "categorical"}`.

    Statistics count every pattern of levels, a missing cell being one more level of its column, so rows with some
    cells missing are kept and shared out over the combinations they could be.
    """

    shape: tuple[int, ...] = ()

    name = "joint"
    block = True

    def width(self, setting: Setting) -> int:
        return prod(m + 1 for m in self.shape)

    def observed(self, stats: np.ndarray) -> float | None:
        return None

    def combine(self, codes: np.ndarray) -> np.ndarray:
        """One code for each row's pattern of levels; 0 where every cell is missing, a new level being missing."""
        combined = np.zeros(len(codes), dtype=np.int32)
        for column, m in zip(codes.T, self.shape, strict=True):
            combined = combined * np.int32(m + 1) + np.where(column > m, 0, column).astype(np.int32)
        return combined

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        """Imagined counts of every combination of levels; patterns with a missing cell have none."""
        return {"alpha": concentration(prior, self, setting, prod(self.shape))}

    def _split(self, stats: Twofold) -> tuple[np.ndarray, np.ndarray]:
        """Counts of whole combinations, and of patterns in which some cell (but not all) is missing."""
        counts = np.maximum(stats.value, 0.0)
        counts[..., 0] = 0.0
        partial = counts.reshape(*stats.shape[:-1], *(m + 1 for m in self.shape))
        inside: Any = (..., *(slice(1, None),) * len(self.shape))
        whole = partial[inside].copy()
        partial[inside] = 0.0
        return whole, partial

    def estimate(self, stats: Twofold, hyper: Hyper, how: How) -> Params:
        whole, partial = self._split(stats)
        flat = whole.reshape(*stats.shape[:-1], -1)
        if partial.any():
            shares = Shared(whole, partial, hyper["alpha"], how, len(self.shape)).shares()
        else:
            shares = estimated(flat, hyper["alpha"], how, self.name)
        return {"probability": shares, "unseen": np.zeros(shares.shape[:-1])}

    def table(self, params: Params) -> np.ndarray:
        shares = params["probability"]
        full = extended(shares.reshape(*shares.shape[:-1], *self.shape), len(self.shape))
        full = full.reshape(*shares.shape[:-1], -1)
        full[..., 0] = 1.0
        with np.errstate(divide="ignore"):
            flat = np.log(full)
        return np.concatenate([flat, np.zeros((*flat.shape[:-1], 1))], axis=-1)

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        return (column[:, None] == np.arange(self.width(setting))).astype(np.float64)

    def completed(self, stats: Twofold, params: Params) -> float:
        return float(xlogy(stats.value, np.exp(self.table(params)[..., :-1])).sum())

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params | None:
        whole, partial = self._split(stats)
        shares = params["probability"]
        patterns, there = extended(shares.reshape(whole.shape), len(self.shape)), partial > 0
        ratio = np.divide(partial, patterns, out=np.zeros_like(partial), where=there)
        counts = whole.reshape(shares.shape) + imagined_counts(hyper, how)
        behind = spread_back(ratio, len(self.shape)).reshape(shares.shape)
        return {"probability": counts / np.maximum(shares, SMALLEST) + behind}

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        """Exact where no row has a hole in the block; others are completed as expected (Cheeseman and Stutz)."""
        whole, partial = self._split(stats)
        if not partial.any():
            return Categorical().evidence(Twofold.of(whole.reshape(*stats.shape[:-1], -1)), hyper)
        params = self.estimate(stats, hyper, "mean")
        filled = Twofold.of(
            Shared(whole, partial, hyper["alpha"], "mean", len(self.shape)).filled(params["probability"])
        )
        seen, complete = self.completed(stats, params), Categorical().completed(filled, params)
        return Categorical().evidence(filled, hyper) + seen - complete

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> Dirichlet:
        shares = self.estimate(stats, hyper, "ml")["probability"]
        seen = stats.value[..., 1:].sum(axis=-1, keepdims=True)
        return Dirichlet(shares * seen + hyper["alpha"])

    def free(self, setting: Setting, groups: int) -> int:
        return groups * (prod(self.shape) - 1)


def joint_of(levels: list[Sequence[object]], groups: int) -> tuple[Joint, tuple[object, ...]]:
    """The family for these columns and its combined levels; refused before anything is allocated if too large."""
    shape = tuple(len(part) for part in levels)
    cells = prod(m + 1 for m in shape) * groups
    if cells > MOST_CELLS:
        raise ResourceError(
            f"a joint table of {len(shape)} columns needs {cells:,} cells; at most {MOST_CELLS:,} are allowed. "
            "Split the block into smaller ones, or model the columns one by one."
        )
    return Joint(shape), tuple(product(*levels))
