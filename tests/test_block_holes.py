"""Correlated blocks with holes: exact conditional expectations, row by row in plain loops, and marginal likelihoods."""

from __future__ import annotations

import math
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.kernels import fused, reference
from softcount.models.block_stack import densities, missing_bits, sort_by_pattern

KERNELS = pytest.mark.parametrize("kernels", [reference, fused], ids=["reference", "fused"])
CASES = pytest.mark.parametrize(
    ("rows", "columns", "groups", "holes"),
    [(1, 1, 1, 0.0), (1, 2, 1, 0.6), (40, 2, 3, 0.4), (300, 3, 2, 0.2), (90, 8, 9, 0.5), (150, 5, 17, 0.3)],
)


class Made:
    """Rows with holes and the groups they came from, in the user's units."""

    def __init__(self, rows: int, columns: int, groups: int, holes: float, far: float = 3.0) -> None:
        rng = np.random.default_rng(7 * rows + columns)
        self.units = np.stack([rng.normal(size=columns) * 10, 2.0 ** rng.integers(-2, 3, columns)])
        turns = rng.normal(size=(groups, columns, columns)) / (2 * columns**0.5) + np.eye(columns)
        self.mean = rng.normal(size=(groups, columns)) * far
        self.covariance = turns @ turns.swapaxes(1, 2)
        label = rng.integers(0, groups, rows)
        noise = np.einsum("nij,nj->ni", turns[label], rng.normal(size=(rows, columns)))
        self.rows = (self.mean[label] + noise) / self.units[1] + self.units[0]
        self.rows[rng.random(self.rows.shape) < holes] = np.nan
        order, _ = sort_by_pattern(missing_bits(self.rows))
        self.rows = self.rows[order]
        _, starts = sort_by_pattern(missing_bits(self.rows))
        self.starts = starts if starts[0] == 0 else np.insert(starts, 0, 0)
        self.members = rng.dirichlet(np.ones(groups), rows) * rng.choice([0.5, 1.0, 2.0], (rows, 1))
        self.bells = densities((self.mean, self.covariance, None), self.units)

    def marginal(self, row: np.ndarray, g: int) -> float:
        """Log-density of what is there of a row in counting units, from the marginal's own inverse and determinant."""
        there = ~np.isnan(row)
        off = ((row - self.units[0]) * self.units[1] - self.mean[g])[there]
        own = self.covariance[g][np.ix_(there, there)]
        log_det = np.linalg.slogdet(own)[1]
        return float(-0.5 * (off @ np.linalg.inv(own) @ off + log_det + there.sum() * math.log(2 * math.pi)))

    def completed(self, row: np.ndarray, g: int) -> tuple[np.ndarray, np.ndarray]:
        """Expected cells and expected products of a row, hole by hole in plain loops."""
        t, mean, covariance = (row - self.units[0]) * self.units[1], self.mean[g], self.covariance[g]
        seen, holes = [j for j in range(len(t)) if not math.isnan(t[j])], [j for j in range(len(t)) if math.isnan(t[j])]
        inverse = np.linalg.inv(covariance[np.ix_(seen, seen)])
        full, products = t.copy(), np.zeros((len(t), len(t)))
        for h in holes:
            pull = [sum(covariance[h, j] * inverse[a, b] for a, j in enumerate(seen)) for b in range(len(seen))]
            full[h] = mean[h] + sum(p * (t[j] - mean[j]) for p, j in zip(pull, seen, strict=True))
            for k in holes:
                products[h, k] = covariance[h, k] - sum(p * covariance[j, k] for p, j in zip(pull, seen, strict=True))
        return full, products + np.outer(full, full)


@KERNELS
@CASES
def test_what_is_there_scores_as_its_marginal(
    kernels: ModuleType, rows: int, columns: int, groups: int, holes: float
) -> None:
    made = Made(rows, columns, groups, holes)
    distances, dets = kernels.score_patterns(
        made.rows, made.starts, made.units[1], made.bells.centres, made.bells.covariances
    )
    which = np.repeat(np.arange(len(made.starts) - 1), np.diff(made.starts))
    sizes = (~np.isnan(made.rows)).sum(axis=1)[:, None]
    mine = -0.5 * distances - dets[which] - 0.5 * sizes * math.log(2 * math.pi)
    right = [[made.marginal(row, g) for g in range(groups)] for row in made.rows]
    np.testing.assert_allclose(mine, right, rtol=1e-11, atol=1e-11)


@KERNELS
@CASES
def test_holes_count_as_their_conditional_expectations(
    kernels: ModuleType, rows: int, columns: int, groups: int, holes: float
) -> None:
    made = Made(rows, columns, groups, holes)
    high, low = kernels.count_patterns(
        made.rows, made.starts, made.members, made.units, made.bells.centres, made.bells.covariances
    )
    right = np.zeros((groups, 1 + columns + columns**2))
    for row, members in zip(made.rows, made.members, strict=True):
        if np.isnan(row).all():
            continue
        for g in range(groups):
            full, products = made.completed(row, g)
            right[g] += members[g] * np.concatenate([[1.0], full, products.ravel()])
    np.testing.assert_allclose(high + low, right, rtol=1e-11, atol=1e-10)


@KERNELS
def test_a_group_far_from_the_anchor_keeps_the_covariance_of_its_holes(kernels: ModuleType) -> None:
    """Counted around the mean and around the anchor: the sums less n times the squared mean leave the same scatter."""
    near, far = Made(300, 3, 2, 0.3, far=0.0), Made(300, 3, 2, 0.3, far=0.0)
    shift = np.array([2.0**20, -(2.0**21), 2.0**18])
    far.rows = np.round(near.rows * 1024) / 1024
    near.rows = far.rows.copy()
    far.rows = far.rows + shift / far.units[1]
    far.mean = far.mean + shift
    scatters = []
    for made in (near, far):
        made.units[0] = 0.0
        bells = densities((made.mean, made.covariance, None), made.units)
        pair = kernels.count_patterns(
            made.rows, made.starts, made.members, made.units, bells.centres, bells.covariances
        )
        wide = [part.astype(np.longdouble) for part in pair]
        total = wide[0] + wide[1]
        mean = total[:, 1:4] / total[:, :1]
        outer = mean[:, :, None] * mean[:, None, :]
        scatters.append((total[:, 4:].reshape(2, 3, 3) / total[:, :1, None] - outer).astype(float))
    np.testing.assert_allclose(scatters[0], scatters[1], rtol=1e-6, atol=1e-6)


def holed_table(rows: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    label = rng.random(rows) < 0.4
    X = np.where(label[:, None], [0.0, 0.0, 0.0], [5.0, -4.0, 3.0]) + rng.normal(size=(rows, 3))
    X[:, 2] += 0.8 * X[:, 0]
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def mixture(X: np.ndarray, **how: Any) -> Any:
    settings = {"kinds": "multinormal", "estimate": "ml", "n_init": 2, "random_state": 0, "tol": 1e-10} | how
    return sc.Mixture(2, **settings).fit(X)


def test_the_likelihood_of_a_fit_is_the_marginal_likelihood_of_its_cells() -> None:
    X = holed_table(400)
    model = mixture(X)
    params = model.params_[(0, 1, 2)]
    total = 0.0
    for row in X:
        there = ~np.isnan(row)
        parts = []
        for share, mean, covariance in zip(model.weights_, params["mean"], params["covariance"], strict=True):
            own, off = covariance[np.ix_(there, there)], (row - mean)[there]
            log_det = np.linalg.slogdet(own)[1] if there.any() else 0.0
            distance = off @ np.linalg.inv(own) @ off if there.any() else 0.0
            parts.append(math.log(share) - 0.5 * (distance + log_det + there.sum() * math.log(2 * math.pi)))
        total += float(np.logaddexp.reduce(parts))
    assert model.log_likelihood_ == pytest.approx(total, rel=1e-12)
    assert model.score_samples(X).sum() == pytest.approx(total, rel=1e-12)
    assert np.diff(model.trace_).min() >= -1e-12 * abs(total)


def test_means_are_recovered_through_the_holes() -> None:
    params = mixture(holed_table(4000)).params_[(0, 1, 2)]
    means = params["mean"][np.argsort(params["mean"][:, 0])]
    np.testing.assert_allclose(means, [[0, 0, 0], [5, -4, 7]], atol=0.15)
    np.testing.assert_allclose(params["covariance"][:, 0, 2], 0.8, atol=0.12)


@pytest.mark.parametrize("rows", [500, 40_000], ids=["plain", "compiled"])
def test_threads_change_no_bit_and_order_only_the_last(rows: int) -> None:
    X = holed_table(rows)
    few = {"max_iter": 5, "tol": 0, "accelerate": False, "n_init": 1}
    one, two = mixture(X, n_jobs=1, **few), mixture(X, n_jobs=2, **few)
    assert one.trace_ == two.trace_
    other = mixture(np.random.default_rng(1).permutation(X), **few)
    np.testing.assert_allclose(one.trace_, other.trace_, rtol=1e-11)


def test_compiled_and_plain_kernels_fit_alike() -> None:
    """A table just above the border between them, beside the same rows twice at half their weight."""
    X = holed_table(20_000)
    few = {"max_iter": 4, "tol": 0, "accelerate": False, "n_init": 1, "n_jobs": 1}
    start = {"weights": [0.5, 0.5], (0, 1, 2): {"mean": [[0, 0, 0], [5, -4, 7]], "covariance": [np.eye(3)] * 2}}
    plain = sc.Mixture(2, kinds="multinormal", estimate="ml", init=start, **few).fit(X)
    twice = sc.Mixture(2, kinds="multinormal", estimate="ml", init=start, **few).fit(
        np.concatenate([X, X]), sample_weight=np.full(2 * len(X), 0.5)
    )
    np.testing.assert_allclose(plain.trace_, twice.trace_, rtol=1e-12)


@pytest.mark.parametrize("words", [1, 2], ids=["40 columns", "70 columns"])
def test_rows_are_arranged_by_pattern_whatever_the_width(words: int) -> None:
    rng = np.random.default_rng(words)
    rows = np.zeros((60, 40 if words == 1 else 70))
    rows[rng.integers(0, 60, 40), rng.integers(0, rows.shape[1], 40)] = np.nan
    bits = missing_bits(rows)
    assert bits.shape == (60, words)
    order, starts = sort_by_pattern(bits)
    sorted_rows = np.isnan(rows[order])
    assert not sorted_rows[: starts[0]].any() and starts[-1] == 60
    distinct = [sorted_rows[a] for a in starts[:-1]]
    assert len({row.tobytes() for row in distinct}) == len(distinct)
    for a, b in pairwise(starts):
        assert (sorted_rows[a:b] == sorted_rows[a]).all() and sorted_rows[a].any()


@pytest.mark.parametrize("covariance", ["full", "tied", "diagonal", "spherical"])
@pytest.mark.parametrize("change", [(1e8, 1.0), (0.0, 1e-150), (0.0, 1e150)], ids=["offset", "tiny", "huge"])
def test_units_change_nothing(covariance: str, change: tuple[float, float]) -> None:
    """Same labels, and the log-likelihood per row within 1e-9 after the change of variable."""
    offset, scale = change
    X = np.round(holed_table(250, seed=3) * 4096) / 4096
    families = {"kinds": sc.families.Multinormal(covariance), "n_init": 1}
    one, other = mixture(X, **families), mixture(X * scale + offset, **families)
    np.testing.assert_array_equal(one.predict(X), other.predict(X * scale + offset))
    cells = (~np.isnan(X)).sum()
    moved = other.log_likelihood_ + cells * math.log(scale)
    assert moved / len(X) == pytest.approx(one.log_likelihood_ / len(X), abs=1e-9)
