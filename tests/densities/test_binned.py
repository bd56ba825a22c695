"""Binned densities: bins that add and refine, curves within the error said beforehand, and tails that are exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from densities.plain_densities import plain_cdf, plain_density, plain_log_gaussian
from softcount.densities.density import BLOCK, DENSE, BinnedDensity, bins_of, level_for
from softcount.densities.kernels import KERNELS, WeightedPoints, near_cdf, near_log_density
from softcount.errors import DataError

SMOOTH = [KERNELS["gaussian"], KERNELS["logistic"]]
every_smooth = pytest.mark.parametrize("kernel", SMOOTH, ids=lambda kernel: kernel.name)
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda kernel: kernel.name)
numbers = st.floats(-1e3, 1e3, allow_nan=False, width=32)


def plain_bins(values, weights, level):
    """Each value shared out between the two nodes around it, in a dictionary."""
    found = {}
    for x, w in zip(values, weights, strict=True):
        place = x / 2.0**level
        node = int(np.floor(place))
        for at, share in ((node, node + 1 - place), (node + 1, place - node)):
            if w * share:
                found[at] = found.get(at, 0.0) + w * share
    return found


def binned(values, kernel, h, weights=None):
    points = WeightedPoints(np.asarray(values, dtype=float), weights)
    return BinnedDensity(bins_of(points, level_for(h)), kernel, h, points)


def same(one, other):
    assert one.level == other.level
    ours, theirs = one.points(), other.points()
    np.testing.assert_array_equal(ours.values, theirs.values)
    np.testing.assert_array_equal(ours.weights, theirs.weights)


# Bins


@settings(max_examples=40)
@given(st.lists(st.tuples(numbers, st.floats(0.1, 10)), min_size=1, max_size=30), st.integers(-12, 8))
def test_bins_are_those_of_a_plain_loop(rows, level):
    values, weights = np.array(rows).T
    points = bins_of(WeightedPoints(values, weights), level).points()
    expected = plain_bins(values, weights, level)
    found = dict(zip((points.values / 2.0**level).astype(int).tolist(), points.weights.tolist(), strict=True))
    for node in found.keys() | expected.keys():
        assert found.get(node, 0.0) == pytest.approx(expected.get(node, 0.0), abs=1e-5 * weights.max())
    assert sum(found.values()) == pytest.approx(weights.sum(), rel=1e-12)


@settings(max_examples=40)
@given(st.lists(numbers, min_size=2, max_size=40), st.integers(-12, 6), st.integers(0, 5), st.randoms())
def test_halves_add_to_the_whole_in_any_order_bit_for_bit(values, level, up, random):
    whole = bins_of(WeightedPoints(np.array(values)), level)
    random.shuffle(values)
    cut = random.randint(1, len(values) - 1)
    parts = [bins_of(WeightedPoints(np.array(part)), level) for part in (values[:cut], values[cut:])]
    both = parts[0].points().plus(parts[1].points())
    same(bins_of(both, level), whole)
    same(bins_of(both, level + up), bins_of(whole.points(), level + up))


def test_a_coarser_grid_is_what_the_rows_would_have_made_there():
    values = np.random.default_rng(0).integers(-5000, 5000, 500) / 64
    fine = bins_of(WeightedPoints(values), -8)
    for level in (-8, -7, -3, 0, 4):
        same(bins_of(fine.points(), level), bins_of(WeightedPoints(values), level))


def test_values_far_apart_are_binned_block_by_block():
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(size=300), rng.standard_cauchy(300) * 1e6, [BLOCK - 0.25, 2 * BLOCK - 0.5]])
    bins = bins_of(WeightedPoints(values), 0)
    assert np.ptp(values) > DENSE and len(bins.blocks) <= 2 * len(values)
    found = bins.points()
    expected = plain_bins(values, np.ones(len(values)), 0)
    assert set(found.values.astype(int)) <= expected.keys()
    for node, weight in zip(found.values.astype(int), found.weights, strict=True):
        assert weight == pytest.approx(expected[node], abs=1e-5)
    assert found.weights.sum() == len(values)


def test_values_too_far_apart_for_the_cells_are_refused():
    with pytest.raises(DataError, match=r"too far apart.*exact=True"):
        bins_of(WeightedPoints(np.array([0.0, 1e300])), -10)


# Sums over near points


@every_kernel
def test_near_sums_are_plain_loops(kernel):
    rng = np.random.default_rng(2)
    values, weights = rng.normal(size=30), rng.integers(1, 4, 30).astype(float)
    queries = np.concatenate([rng.normal(size=150) * 2, values[:20] + 0.3])  # a kernel's edge too
    points = WeightedPoints(values, weights)
    for h in (0.3, 1.7):
        density = np.exp(near_log_density(points, queries, kernel, h))
        np.testing.assert_allclose(density, plain_density(values, weights, queries, kernel, h), rtol=1e-11, atol=1e-14)
        share = near_cdf(points, queries, kernel, h)
        np.testing.assert_allclose(share, plain_cdf(values, weights, queries, kernel, h), atol=1e-12)


def test_where_no_kernel_reaches_the_density_is_zero_and_far_out_it_is_not():
    points = WeightedPoints(np.array([0.0, 1.0]))
    assert near_log_density(points, np.array([5.0]), KERNELS["biweight"], 1.0)[0] == -np.inf
    far = near_log_density(points, np.array([1e6, -1e6, np.inf]), KERNELS["gaussian"], 1.0)
    assert far[0] == pytest.approx(-0.5 * (1e6 - 1) ** 2, rel=1e-9) and far[1] == pytest.approx(-0.5e12, rel=1e-9)
    assert far[2] == -np.inf
    np.testing.assert_array_equal(near_cdf(points, np.array([-np.inf, np.inf]), KERNELS["gaussian"], 1.0), [0, 1])


# Curves


def shapes(seed):
    """Smooth, spiky, rounded, far from 0, and with wild outliers."""
    rng = np.random.default_rng(seed)
    return {
        "normal": rng.normal(size=400),
        "two atoms": np.array([0.0, 1.0]),
        "atoms a bend apart": np.repeat([0.0, 1.65, 3.3], [3, 8, 3]),
        "rounded": rng.normal(size=400).round(1),
        "far from zero": 1e7 + rng.normal(size=200),
        "tiny": 1e-9 * rng.exponential(size=200),
        "cauchy": rng.standard_cauchy(300) * 50,
        "outlier": np.append(rng.normal(size=200), 1e8),
    }


@every_smooth
@pytest.mark.parametrize("name", shapes(0))
def test_the_error_is_within_the_bound_said_beforehand(kernel, name):
    for seed, wide in enumerate((0.05, 0.31, 1.0, 3.0)):
        values = shapes(seed)[name]
        unit = np.subtract(*np.quantile(values, [0.75, 0.25])) or 1.0
        h = wide * unit
        density = binned(values, kernel, h)
        assert density.error <= 1e-6
        rng = np.random.default_rng(seed)
        queries = rng.choice(values, 500) + h * rng.uniform(-8, 8, 500)
        exact = np.exp(near_log_density(density.points, queries, kernel, h))
        # The curve's own highest point is the peak, from below.
        off = np.abs(np.exp(density.log_density(queries)) - exact).max()
        assert off <= density.error * max(density.curve.max(), exact.max())
        np.testing.assert_allclose(density.cdf(queries), near_cdf(density.points, queries, kernel, h), atol=1e-6)


@every_smooth
def test_the_bound_is_not_idle(kernel):
    """A coarser grid is wrong by more than the fine one's bound, and says so."""
    points = WeightedPoints(np.array([0.3, 1.4]))
    coarse = BinnedDensity(bins_of(points, level_for(1.0) + 4), kernel, 1.0, points)
    queries = np.linspace(-3, 5, 999)
    exact = np.exp(near_log_density(points, queries, kernel, 1.0))
    off = np.abs(np.exp(coarse.log_density(queries)) - exact).max() / exact.max()
    assert 1e-6 < off < coarse.error


def test_far_tails_are_exact():
    rng = np.random.default_rng(5)
    values, h = rng.normal(size=200), 0.2
    queries = np.concatenate(
        [values.max() + h * np.array([6, 10, 20, 1e3, 1e6]), values.min() - h * np.array([7, 20, 400])]
    )
    density = binned(values, KERNELS["gaussian"], h)
    np.testing.assert_allclose(
        density.log_density(queries), plain_log_gaussian(values, np.ones(200), queries, h), rtol=1e-13
    )
    gap = binned(np.array([0.0, 100.0]), KERNELS["gaussian"], 1.0)
    np.testing.assert_allclose(
        gap.log_density(np.array([50.0, 20.0])), plain_log_gaussian([0.0, 100.0], [1, 1], [50.0, 20.0], 1.0), rtol=1e-13
    )


def test_weights_and_bins_of_bins_say_the_same():
    rng = np.random.default_rng(6)
    values, weights = rng.normal(size=300), rng.integers(1, 5, 300)
    queries = np.linspace(-4, 4, 200)
    weighed = binned(values, KERNELS["gaussian"], 0.3, weights.astype(float))
    repeated = binned(np.repeat(values, weights), KERNELS["gaussian"], 0.3)
    np.testing.assert_allclose(weighed.log_density(queries), repeated.log_density(queries), rtol=1e-9)


@every_smooth
def test_a_cdf_rises_from_nothing_to_everything_across_gaps(kernel):
    density = binned([0.0, 1.0, 5000.0, 5001.0], kernel, 0.5)
    asked = np.array([-1e9, -1e3, 0.5, 800.0, 2500.0, 4000.0, 5000.5, 7000.0, 1e12])
    np.testing.assert_allclose(density.cdf(asked), [0, 0, 0.25, 0.5, 0.5, 0.5, 0.75, 1, 1], atol=1e-9)
