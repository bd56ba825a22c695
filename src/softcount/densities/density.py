"""Kernel densities of one column or of several."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from msgspec import Struct

from softcount.densities.binned import LINEAR, BinnedDensity, bins_of, level_for
from softcount.densities.kernels import (
    DIGITS,
    OPEN,
    Images,
    Reflection,
    SmoothingKernel,
    WeightedPoints,
    near_cdf,
    near_log_density,
)

SUMMED = 4096
"""Points up to which every sum is made one by one: less work than waking the compiled loops."""
HALVINGS = 1100
"""Enough to get from any number to any other."""


class ColumnDensity(Struct, frozen=True, dict=True):
    """Points under a kernel of one bandwidth.

    Smooth kernels on many points are binned, unless `exact`; a kernel with an end has its edges where the points are,
    and is summed over the points near each query.
    """

    points: WeightedPoints
    kernel: SmoothingKernel
    h: float
    exact: bool = False
    ends: Reflection = OPEN

    @cached_property
    def binned(self) -> BinnedDensity | None:
        """The curve of the binned points, where there is one."""
        if self.exact or self.kernel.bends is None or len(self.points.values) <= SUMMED:
            return None
        level = level_for(self.h) if self.points.level is None else max(level_for(self.h), self.points.level)
        return BinnedDensity(bins_of(self.points, level), self.kernel, self.h, self.points)

    @property
    def error(self) -> float:
        """The most by which a density can be wrong, as a share of the peak; rounding apart."""
        binned = 0.0 if self.binned is None else self.binned.error
        if self.points.level is None:
            return binned
        second = self.kernel.bends[0] if self.kernel.bends else np.inf
        return binned + LINEAR * second * (2.0**self.points.level / self.h) ** 2

    @cached_property
    def reach(self) -> float:
        """How far from a point its kernel still counts."""
        return self.h * float(self.kernel.reach(np.zeros(1), DIGITS)[0])

    @cached_property
    def images(self) -> Images:
        """The images of a query behind the ends."""
        return self.ends.images(self.reach)

    def log_density(self, queries: np.ndarray) -> np.ndarray:
        """The logarithm of the density at each query: minus infinity beyond the ends."""
        if self.binned is not None:
            found = self.binned.log_density(queries, self.images)
        else:
            found = near_log_density(self.points, queries, self.kernel, self.h, self.images)
        if len(self.images) > 1:
            found[~self.ends.inside(queries)] = -np.inf
        return found

    def cdf(self, queries: np.ndarray) -> np.ndarray:
        """The probability of a value at or below each query; of a missing one, missing."""
        missing = np.isnan(queries)
        if missing.any():
            found = self.cdf(np.where(missing, 0.0, queries))
            found[missing] = np.nan
            return found
        if len(self.images) == 1:
            return self._whole_cdf(queries)
        queries = np.clip(queries, self.ends.low, self.ends.high)
        found = np.zeros(len(queries))
        for sign, shift in self.images:
            start = sign * np.array([self.ends.low if self.ends.low > -np.inf else self.ends.high]) + shift
            found += sign * (self._whole_cdf(sign * queries + shift) - self._whole_cdf(start))
        return np.clip(found + (0.0 if self.ends.low > -np.inf else 1.0), 0.0, 1.0)

    def _whole_cdf(self, queries: np.ndarray) -> np.ndarray:
        """The cumulative density before anything is folded back."""
        if self.binned is not None:
            return self.binned.cdf(queries)
        return near_cdf(self.points, queries, self.kernel, self.h)

    def quantile(self, shares: np.ndarray) -> np.ndarray:
        """The value that has each share of the density at or below it, found by halving."""
        low = np.full(len(shares), max(float(self.points.values.min()) - self.reach, self.ends.low))
        high = np.full(len(shares), min(float(self.points.values.max()) + self.reach, self.ends.high))
        for _ in range(HALVINGS):
            middle = 0.5 * low + 0.5 * high
            if not ((low < middle) & (middle < high)).any():
                break
            above = self.cdf(middle) >= shares
            low, high = np.where(above, low, middle), np.where(above, middle, high)
            if (high - low <= 1e-13 * np.maximum(np.abs(low), np.abs(high))).all() or (
                high - low <= 1e-13 * self.h
            ).all():
                break
        return np.where(shares <= 0, self._first(), np.where(shares >= 1, self._last(), high))

    def _first(self) -> float:
        """Where the density begins."""
        return max(float(self.points.values.min()) - self.h * self.kernel.support, self.ends.low)

    def _last(self) -> float:
        """Where the density ends."""
        return min(float(self.points.values.max()) + self.h * self.kernel.support, self.ends.high)

    def sample(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """Values drawn: a point by its weight, a step by the kernel, folded back at the ends."""
        values, _ = self.points.ordered
        drawn = np.searchsorted(self.points.below[1:], rng.random(number) * self.points.below[-1], side="right")
        steps = self.h * self.kernel.draw(rng, number)
        return self.ends.folded(values[np.minimum(drawn, len(values) - 1)] + steps)


# Kernel density of several columns: at every row a product of kernels, one per column.

CELLS = 1 << 18


class ProductDensity(Struct, frozen=True):
    """(rows x columns) points with weights under a kernel, with a bandwidth and ends for each column.

    All sums are exact, in blocks. A missing cell of a query is left out: the density is that of its other cells.
    """

    values: np.ndarray
    weights: np.ndarray
    kernel: SmoothingKernel
    h: np.ndarray
    ends: tuple[Reflection, ...]

    def log_density(self, queries: np.ndarray) -> np.ndarray:
        """The logarithm of the density of each row."""
        found = np.empty(len(queries))
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.weights / self.weights.sum())
        for block in _blocks(len(queries), len(self.values)):
            logs = np.broadcast_to(log_weights, (len(queries[block]), len(self.values))).copy()
            for column in range(queries.shape[1]):
                logs += self._log_kernels(queries[block, column], column)
            top = logs.max(axis=1)
            held = np.where(np.isfinite(top), top, 0.0)
            with np.errstate(divide="ignore"):
                found[block] = held + np.log(np.exp(logs - held[:, None]).sum(axis=1))
        return found

    def _log_kernels(self, cells: np.ndarray, column: int) -> np.ndarray:
        """(queries x rows) the logarithm of one column's kernels, their images added; 0 for missing cells."""
        ends, h = self.ends[column], self.h[column]
        found: np.ndarray | None = None
        for sign, shift in ends.images(float(self.kernel.reach(np.zeros(1), DIGITS)[0]) * h):
            with np.errstate(invalid="ignore"):
                logs = self.kernel.log_pdf(((sign * cells + shift)[:, None] - self.values[:, column]) / h)
            found = logs if found is None else np.logaddexp(found, logs)
        assert found is not None
        found -= np.log(h)
        found[~ends.inside(cells)] = -np.inf
        found[np.isnan(cells)] = 0.0
        return found

    def integral(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The probability of the box between each pair of corners."""
        found = np.empty(len(low))
        for block in _blocks(len(low), len(self.values)):
            shares = np.broadcast_to(self.weights / self.weights.sum(), (len(low[block]), len(self.values))).copy()
            for column in range(low.shape[1]):
                shares *= self._share_between(low[block, column], high[block, column], column)
            found[block] = shares.sum(axis=1)
        return np.clip(found, 0.0, 1.0)

    def _share_between(self, low: np.ndarray, high: np.ndarray, column: int) -> np.ndarray:
        """(boxes x rows) the share of one column's kernels between two values."""
        ends, h = self.ends[column], self.h[column]
        low, high = np.clip(low, ends.low, ends.high), np.clip(high, ends.low, ends.high)
        found = np.zeros((len(low), len(self.values)))
        for sign, shift in ends.images(float(self.kernel.reach(np.zeros(1), DIGITS)[0]) * h):
            for edge, side in ((high, sign), (low, -sign)):
                found += side * self.kernel.cdf(((sign * edge + shift)[:, None] - self.values[:, column]) / h)
        return np.clip(found, 0.0, 1.0)

    def sample(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """(number x columns) rows drawn: a row by its weight, a step in each column."""
        drawn = rng.choice(len(self.values), number, p=self.weights / self.weights.sum())
        columns = []
        for column, ends in enumerate(self.ends):
            step = self.h[column] * self.kernel.draw(rng, number)
            columns.append(ends.folded(self.values[drawn, column] + step))
        return np.stack(columns, axis=1)


def _blocks(queries: int, rows: int) -> Iterator[slice]:
    step = max(1, CELLS // max(rows, 1))
    for start in range(0, queries, step):
        yield slice(start, start + step)
