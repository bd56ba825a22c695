"""Binomial blocks: successes of trials, two columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from softcount.core.lazy_scipy import betaln, gammaln
from softcount.core.twofold import Twofold
from softcount.errors import DataError
from softcount.families.base import Family, check_counts, register, where_first
from softcount.families.categorical import Categorical, estimated, imagined_counts
from softcount.families.examples import Cells, example
from softcount.families.setting import CLAMPED, SMALLEST, ClosedForm, How, Hyper, Line, Params, Setting
from softcount.priors import Beta
from softcount.table.schema import Key, Kind


@register
class Binomial(Family, Struct, frozen=True):
    """Successes of trials: `{("hits", "shots"): "binomial"}`. Statistics are failures and successes."""

    name = "binomial"
    kind = Kind.COUNT
    block = True
    chart: ClassVar[Mapping[str, Line]] = {"probability": "share"}

    def for_key(self, key: Key) -> Family:
        family = Family.for_key(self, key)
        if len(key) != 2:  # type: ignore[arg-type]  # a tuple, or it would have been refused
            raise DataError(f"binomial takes two columns, successes and trials, not {key!r}.")
        return family

    def width(self, setting: Setting) -> int:
        return 2

    def check(self, column: np.ndarray, key: Key, start: int) -> None:
        for part, name in zip(column.T, key if isinstance(key, tuple) else (key, key), strict=True):
            check_counts(part, name, start)
        bad = column[:, 0] > column[:, 1]
        if bad.any():
            raise DataError(f"block {key!r}: row {where_first(bad, start)} has more successes than trials.")

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        successes, trials = column.T
        counts = [trials - successes, np.where(np.isnan(trials), np.nan, successes)]
        return np.asarray(np.nan_to_num(np.stack(counts, axis=1)))

    def base(self, column: np.ndarray) -> np.ndarray | float:
        failures, successes = self.features(column, Setting()).T
        return np.asarray(gammaln(failures + successes + 1) - gammaln(failures + 1) - gammaln(successes + 1))

    def estimate(self, stats: Twofold, hyper: Hyper, how: How) -> Params:
        counts = np.maximum(stats.value, 0.0)
        params = {"probability": estimated(counts, hyper["alpha"], how, self.name)[..., 1]}
        if how == "predictive":
            params["alpha"] = counts + hyper["alpha"]
        return params

    def natural(self, params: Params) -> np.ndarray:
        p = params["probability"]
        with np.errstate(divide="ignore"):
            return np.asarray(np.maximum(np.stack([np.log1p(-p), np.log(p)], axis=-1), CLAMPED))

    def score(self, column: np.ndarray, params: Params, setting: Setting) -> np.ndarray:
        counts = self.features(column, setting)
        if "alpha" not in params:
            return np.asarray(counts @ self.natural(params).T)
        beta, alpha = params["alpha"][:, 0], params["alpha"][:, 1]
        return np.asarray(betaln(alpha + counts[:, 1:], beta + counts[:, :1]) - betaln(alpha, beta))

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params:
        counts, p = np.maximum(stats.value, 0.0) + imagined_counts(hyper, how), params["probability"]
        hits, misses = counts[..., 1] / np.maximum(p, SMALLEST), counts[..., 0] / np.maximum(1.0 - p, SMALLEST)
        return {"probability": hits - misses}

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        return Categorical().log_prior(_both(params), hyper, how)

    hyper = Categorical.hyper
    evidence = Categorical.evidence
    proper = Categorical.proper

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> Beta:
        after = np.maximum(stats.value, 0.0) + hyper["alpha"]
        return Beta(after[..., 1], after[..., 0])

    def draw(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One trial per row: the number of trials is not modelled."""
        hits = (rng.random(len(groups)) < params["probability"][groups]).astype(np.float64)
        return np.stack([hits, np.ones(len(groups))], axis=1)

    def describe(self, params: Params, setting: Setting) -> list[str]:
        return [f"{100 * p:.1f} % successes" for p in params["probability"]]

    def divergence(self, params: Params, shares: np.ndarray) -> np.ndarray:
        return Categorical().divergence(_both(params), shares)

    def entropy(self, params: Params) -> np.ndarray:
        """Of one trial: their number is not modelled."""
        return Categorical().entropy(_both(params))

    # -- what it says

    def closed_form(self, params: Params) -> ClosedForm | None:
        if "alpha" in params:
            return None
        failure, success = self.natural(params).T
        return {"form": "trials", "failure": failure, "success": success}

    counted = True

    def typical(self, params: Params, setting: Setting) -> list[Any]:
        return list(params["probability"].tolist())


def _both(params: Params) -> Params:
    """Failure and success as two levels."""
    return {"probability": np.stack([1 - params["probability"], params["probability"]], axis=-1)}


EXAMPLES = (
    example(
        Binomial(),
        "hits shots",
        [(1, 3), (0, 2), (None, 4), (5, 6), (2, 2), (0, 0), (1, None)],
        Cells("counts", most=6),
        rising=True,
    ),
)
