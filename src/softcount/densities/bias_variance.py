"""What a bandwidth trades: how far off a kernel density is on average, and how much samples differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount.densities.smoothing_kernels import KERNELS

GRID = np.linspace(-6.0, 6.0, 241)
"""Where densities are compared: beyond, a standard normal has 2e-9 of its mass."""

Trade = dict[str, np.ndarray]


def bias_variance(widths: Sequence[float], rows: int = 100, samples: int = 200, seed: int = 0) -> Trade:
    """Squared bias, variance and their sum, integrated, of Gaussian kernel densities of standard normal samples.

    A narrow kernel follows the sample (much variance, little bias), a wide one forgets it (the other way round).

    >>> trade = bias_variance([0.05, 0.337, 2.0])
    >>> for figures in zip(*trade.values()):
    ...     print(*(f"{x:.4f}" for x in figures))
    0.0500 0.0001 0.0544 0.0544
    0.3370 0.0006 0.0061 0.0067
    2.0000 0.0824 0.0002 0.0826
    """
    kernel, rng = KERNELS["gaussian"], np.random.default_rng(seed)
    truth = kernel.pdf(GRID)
    step = GRID[1] - GRID[0]
    mean, square = np.zeros((2, len(widths), len(GRID)))
    for _ in range(samples):
        away = GRID[:, None] - rng.standard_normal(rows)
        density = np.array([kernel.pdf(away / h).mean(axis=1) / h for h in widths])
        mean += density / samples
        square += density**2 / samples
    variance = (square - mean**2).sum(axis=1) * step * samples / (samples - 1)
    bias = ((mean - truth) ** 2).sum(axis=1) * step - variance / samples  # what the mean's own noise adds
    return {"width": np.array(widths, dtype=np.float64), "bias": bias, "variance": variance, "error": bias + variance}
