"""The simulated trade of bias against variance is the one that the theory of normal samples gives."""

from __future__ import annotations

import numpy as np
import pytest

from softcount.densities.kernels import KERNELS

GRID = np.linspace(-6.0, 6.0, 241)
"""Where densities are compared: beyond, a standard normal has 2e-9 of its mass."""


def bias_variance(widths, rows=100, samples=200, seed=0):
    """Squared bias, variance and their sum, integrated, of Gaussian kernel densities of standard normal samples."""
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


def exact(h, n):
    """Integrated squared bias and variance of Gaussian kernels on a standard normal (Fryer, 1976), in closed form."""

    def overlap(variance):
        return 1 / np.sqrt(2 * np.pi * variance)

    smoothed = overlap(2 + 2 * h**2)
    bias = smoothed - 2 * overlap(2 + h**2) + overlap(2)
    return bias, (1 / (2 * h * np.sqrt(np.pi)) - smoothed) / n


@pytest.mark.parametrize("h", [0.05, 0.337, 2.0])
def test_the_figures_at_a_width_are_those_of_theory(h):
    found = bias_variance([h], rows=100, samples=300, seed=1)
    bias, variance = exact(h, 100)
    # Four deviations: of the bias times the noise of the mean, and of that noise squared.
    noise = 4 * 2 * np.sqrt(0.4 * bias / (100 * 300)) + variance / 300
    assert found["bias"][0] == pytest.approx(bias, abs=noise)
    assert found["variance"][0] == pytest.approx(variance, rel=0.1)
    np.testing.assert_allclose(found["error"], found["bias"] + found["variance"])


def test_along_the_curve_bias_grows_and_variance_falls_and_the_best_width_is_theorys():
    widths = np.geomspace(0.05, 2.0, 25)
    found = bias_variance(widths.tolist(), rows=200, samples=100, seed=2)
    assert (np.diff(found["variance"]) < 0).all()
    assert (np.diff(found["bias"][12:]) > 0).all()  # before, it is next to nothing
    theory = [sum(exact(h, 200)) for h in widths]
    assert abs(int(np.argmin(found["error"])) - int(np.argmin(theory))) <= 1
    assert found["error"].min() < 0.2 * min(found["error"][0], found["error"][-1])
