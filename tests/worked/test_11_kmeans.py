"""Worked example 11: k-means is EM with equal shares, fixed equal spherical variances and hard assignment."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import softcount as sc

START = [(-1.75, 1.0), (1.75, -1.0)]
COSTS = [
    1201.957842, 252.290779, 119.169959, 80.670249, 79.613137, 79.342883, 79.313142, 79.283401, 79.283401,
]  # fmt: skip
"""J after the first assignment, the first update, the second assignment, ..."""


@pytest.fixture(scope="module")
def geyser(data):
    """Old Faithful, each column standardised by its deviation (n - 1)."""
    frame = pd.read_csv(data("r_datasets/faithful.csv"))
    return ((frame - frame.mean()) / frame.std()).to_numpy()


def hard(rows, start, steps, variance=1.0, assign="hard"):
    return sc.GaussianMixture(
        len(start), "tied_spherical", assign=assign, fixed={"weights": [0.5, 0.5], "covariances": variance},
        means_init=start, max_iter=steps, tol=0.0, half_steps=True,
    ).fit(rows)  # fmt: skip


def cost(objective, rows):
    """J, from the log-likelihood of rows that each belong to one component of variance one."""
    n, d = rows.shape
    return -2 * (np.asarray(objective) + n * np.log(2) + n * d * np.log(2 * np.pi) / 2)


def plain_steps(rows, centres, steps):
    """Lloyd's algorithm in plain loops: centres and J after every assignment and every update."""
    costs = []
    for _ in range(steps + 1):
        labels = [int(np.argmin([((row - c) ** 2).sum() for c in centres])) for row in rows]
        costs.append(sum(((row - centres[label]) ** 2).sum() for row, label in zip(rows, labels, strict=True)))
        last = centres
        centres = [np.mean([row for row, x in zip(rows, labels, strict=True) if x == g], axis=0) for g in (0, 1)]
        costs.append(sum(((row - centres[label]) ** 2).sum() for row, label in zip(rows, labels, strict=True)))
    return last, labels, costs[:-1]


def test_the_cost_is_the_published_one_after_every_half_step(geyser):
    mixture = hard(geyser, START, 4)
    np.testing.assert_allclose(cost(mixture.trace_, geyser), COSTS, atol=5e-7)
    assert all(low <= high for low, high in pairwise(mixture.trace_))
    assert mixture.n_iter_ == 4


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4])
def test_hard_em_has_the_centres_and_assignments_of_k_means_step_by_step(geyser, steps):
    mixture = hard(geyser, START, steps)
    centres, labels, costs = plain_steps(geyser, [np.array(c) for c in START], steps)
    np.testing.assert_allclose(mixture.means_, centres, rtol=1e-12)
    np.testing.assert_array_equal(mixture.predict(geyser), labels)
    np.testing.assert_allclose(cost(mixture.trace_, geyser), costs, rtol=1e-12)


def test_k_means_takes_the_same_steps(geyser):
    clusters = sc.KMeans(2, init=np.array(START), n_init=1, tol=0.0).fit(geyser)
    np.testing.assert_allclose(clusters.trace_, COSTS, atol=5e-7)
    mixture = hard(geyser, START, 4)
    np.testing.assert_allclose(clusters.trace_, cost(mixture.trace_, geyser), rtol=1e-12)
    np.testing.assert_allclose(clusters.cluster_centers_, mixture.means_, rtol=1e-12)
    np.testing.assert_array_equal(clusters.labels_, mixture.predict(geyser))


def test_soft_em_tends_to_k_means_as_the_variance_shrinks(geyser):
    centres = hard(geyser, START, 8).means_
    far = [np.abs(hard(geyser, START, 60, v, "soft").means_ - centres).max() for v in (0.3, 0.1, 0.01, 0.001)]
    assert all(one > other for one, other in pairwise(far))
    assert far[-1] < 1e-3


def test_dividing_by_n_instead_scales_the_cost(geyser):
    rows = geyser * np.sqrt(len(geyser) / (len(geyser) - 1))
    assert cost(hard(rows, START, 8).trace_, rows)[-1] == pytest.approx(79.575959, abs=5e-7)
