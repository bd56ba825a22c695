"""The kernel density of a few columns: at every row a product of kernels, one for each column."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softcount.densities.near_sums import DIGITS
from softcount.densities.reflection import Reflection
from softcount.densities.smoothing_kernels import SmoothingKernel
from softcount.records import dataclass

CELLS = 1 << 18


@dataclass(frozen=True)
class ProductDensity:
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
