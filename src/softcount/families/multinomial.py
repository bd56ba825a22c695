"""Multinomial blocks: several counts per row, such as words of a text, sharing one set of probabilities.

A block is an array, or a sparse matrix where most counts are nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from softcount.core.lazy_scipy import gammaln
from softcount.core.special import log_rising
from softcount.core.twofold import Twofold
from softcount.errors import DataError
from softcount.families.base import Family, register, where_first
from softcount.families.categorical import Categorical, estimated
from softcount.families.examples import Cells, example
from softcount.families.setting import CLAMPED, ClosedForm, How, Hyper, Line, Params, Setting
from softcount.table.schema import Key, Kind


@register
class Multinomial(Family, Struct, frozen=True):
    """A block of counts. Statistics are the totals of each column; a missing count adds nothing."""

    name = "multinomial"
    kind = Kind.COUNT
    block = True
    takes_bag = True
    chart: ClassVar[Mapping[str, Line]] = {"probability": "shares"}

    def node_key(self, setting: Setting) -> Key:
        """A whole sparse table has one key, and its columns are numbered."""
        return setting.keys if tuple(setting.levels) == setting.keys else setting.keys[0]

    width = Categorical.width
    hyper = Categorical.hyper
    slope = Categorical.slope
    log_prior = Categorical.log_prior
    evidence = Categorical.evidence
    proper = Categorical.proper
    posterior = Categorical.posterior
    free = Categorical.free
    describe = Categorical.describe
    divergence = Categorical.divergence
    entropy = Categorical.entropy  # of one count: the block's size is not modelled
    _moved = Categorical._moved

    def check(self, column: np.ndarray, key: Key, start: int) -> None:
        bad = column < 0
        if bad.any():
            row = where_first(bad, start)
            raise DataError(f"Negative values in data: row {row} of block {key!r} has a count below 0.")

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        return column if hasattr(column, "indptr") else np.where(np.isnan(column), 0.0, column)

    def base(self, column: np.ndarray) -> np.ndarray | float:
        if hasattr(column, "indptr"):
            return log_ways(column)
        counts = np.where(np.isnan(column), 0.0, column)
        return np.asarray(gammaln(counts.sum(axis=1) + 1.0) - gammaln(counts + 1.0).sum(axis=1))

    def estimate(self, stats: Twofold, hyper: Hyper, how: How) -> Params:
        counts = np.maximum(stats.value, 0.0)
        params = {"probability": estimated(counts, hyper["alpha"], how, self.name)}
        if how == "predictive":
            params["alpha"] = counts + hyper["alpha"]
        return params

    def natural(self, params: Params) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.maximum(np.log(params["probability"]), CLAMPED)

    def score(self, column: np.ndarray, params: Params, setting: Setting) -> np.ndarray:
        counts = self.features(column, setting)
        if "alpha" not in params:
            return np.asarray(counts @ self.natural(params).T)
        if hasattr(counts, "indptr"):
            return polya(counts, params["alpha"])
        return np.stack([_polya(counts, alpha) for alpha in params["alpha"]], axis=1)

    def draw(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One draw of a single count per row: the block's size is not modelled."""
        shares = params["probability"][groups]
        return rng.multinomial(1, shares / shares.sum(axis=1, keepdims=True)).astype(np.float64)

    # -- what it says

    def closed_form(self, params: Params) -> ClosedForm | None:
        """A sum of straight lines, unless it is predictive."""
        return None if "alpha" in params else {"form": "sum", "slopes": self.natural(params)}

    def weighted_form(self, weights: np.ndarray, setting: Setting) -> ClosedForm | None:
        return {"form": "sum", "slopes": weights}

    counted = True
    typical = Categorical.typical

    def linear(self, params: Params, setting: Setting) -> tuple[np.ndarray, np.ndarray] | None:
        logs = Categorical().natural(params)
        return logs, np.zeros(len(logs))

    def check_columns(self, key: Key, columns: tuple[Key, ...], alone: bool) -> None:
        if columns or not alone:  # a sparse table has no columns of its own
            Family.check_columns(self, key, columns, alone)


def _polya(counts: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Log-probability of each row's counts, the probabilities integrated out."""
    total, mass = counts.sum(axis=1), alpha.sum()
    parts = (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=1)
    return np.asarray(parts + gammaln(mass) - gammaln(mass + total))


@cache
def factorials() -> np.ndarray:
    """Logarithms of factorials: nearly every count is small, and looking it up takes a tenth of the time."""
    return np.asarray(gammaln(np.arange(256) + 1.0))


def log_ways(column: Any, first: int = 0) -> np.ndarray:
    """Logarithm of the ways to order each sparse row's counts; columns before `first` are no counts."""
    counts, places = column.data, column.data.astype(np.intp)
    small = bool(((places < len(factorials())) & (places == counts)).all())
    logs = factorials()[places] if small else gammaln(counts + 1.0)
    ones = np.ones(column.shape[1])
    each = type(column)((logs, column.indices, column.indptr), shape=column.shape) @ ones
    ones[:first] = 0.0
    return np.asarray(gammaln(column @ ones + 1.0) - each)


def polya(column: Any, alpha: np.ndarray) -> np.ndarray:
    """(rows x groups) log-probability of each sparse row's counts, the probabilities integrated out.

    Almost every word is met once, and log(alpha) tells it; only the others take a gamma function each.
    """
    there = type(column)((np.ones(len(column.data)), column.indices, column.indptr), shape=column.shape)
    out = np.asarray(there @ np.log(alpha).T)
    more = np.flatnonzero(column.data != 1)
    rows = np.repeat(np.arange(column.shape[0]), np.diff(column.indptr))[more]
    ids, times = column.indices[more], column.data[more]
    for g, own in enumerate(alpha if len(more) else ()):
        a = own[ids]
        out[:, g] += np.bincount(rows, gammaln(a + times) - gammaln(a) - np.log(a), minlength=len(out))
    total = np.asarray(column.sum(axis=1), dtype=np.float64).reshape(-1, 1)
    return np.asarray(out - np.asarray(log_rising(alpha.sum(axis=-1), total)))


EXAMPLES = (
    example(
        Multinomial(),
        "ant bee cat",
        [(1, 0, 2), (0, 3, 1), (None, 2, 2), (4, 0, 0), (0, 1, 5), (0, 0, 0)],
        Cells("counts", most=9),
    ),
)
