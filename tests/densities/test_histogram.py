"""Histograms: bins as said, the best of all cuts where cuts are chosen, and a density that adds up to one."""

from __future__ import annotations

import pickle
from itertools import combinations
from math import comb, lgamma, log, pi, sqrt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import kstest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import softcount as sc
from softcount.densities.histogram import RULES, description_length, edges_of
from softcount.densities.kernels import WeightedPoints
from softcount.errors import DataError

WAYS = [1, 7, ("count", 5), *RULES]
every_way = pytest.mark.parametrize("bins", WAYS, ids=str)


def steps(n=400, seed=0):
    """A tenth of the range holds four fifths of the rows."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.8, rng.uniform(4.0, 5.0, n), rng.uniform(0.0, 10.0, n))


def plain_length(values, edges, places):
    """Nats by the definition: the multinomial's normaliser by its recurrence from a plain sum for two."""
    n, counts = len(values), np.histogram(values, edges)[0]
    fit = sum(c * log(c / (n * w)) for c, w in zip(counts, np.diff(edges), strict=True) if c)
    two = sum(comb(n, k) * (k / n) ** k * ((n - k) / n) ** (n - k) for k in range(n + 1))
    normalisers = [1.0, two]
    for k in range(3, len(counts) + 1):
        normalisers.append(normalisers[-1] + n / (k - 2) * normalisers[-2])
    chosen = lgamma(places + 1) - lgamma(len(counts)) - lgamma(places - len(counts) + 2) if places else 0.0
    return -fit + log(normalisers[len(counts) - 1]) + chosen + 2 * log(len(counts) + 1)


def test_equal_widths_and_freedman_and_diaconis_are_numpys():
    values = steps()
    for bins in (1, 4, 31, "fd"):
        model = sc.Histogram(bins).fit(values)
        counts, edges = np.histogram(values, bins)
        np.testing.assert_allclose(model.edges_, edges, rtol=1e-12)
        np.testing.assert_array_equal(model.counts_, counts)


EDGES = [[0, 2, 4, 4.5, 5, 10], (4.0, 4.5, 5.0), np.linspace(-5, 20, 11), pd.Series([0.0, 10.0]).to_numpy(), range(11)]


@pytest.mark.parametrize("edges", EDGES, ids=str)
def test_given_edges_count_as_numpy_does(edges, tmp_path):
    values = np.concatenate([steps(), [0.0, 4.0, 4.5, 5.0, 10.0]])
    outside = ((values < edges[0]) | (values > edges[-1])).sum()
    counts, wanted = np.histogram(values, edges)
    if outside:
        with pytest.warns(sc.DataWarning, match=f"{outside} of 405 rows lie outside the edges 4 and 5 and are not"):
            model = sc.Histogram(edges).fit(values)
    else:
        model = sc.Histogram(edges).fit(values)
    np.testing.assert_array_equal(model.edges_, wanted)
    np.testing.assert_array_equal(model.counts_, counts)
    shares = (counts + np.diff(wanted) / (wanted[-1] - wanted[0])) / (counts.sum() + 1)
    density = np.exp(model.score_samples((wanted[1:] + wanted[:-1]) / 2))
    np.testing.assert_allclose(density, shares / np.diff(wanted), rtol=1e-12)
    assert (model.score_samples([wanted[0] - 0.1, wanted[-1] + 0.1]) == -np.inf).all()
    # NumPy has no prior row: with many rows both densities are the same.
    many = sc.Histogram(edges).fit(np.repeat(values[(values >= wanted[0]) & (values <= wanted[-1])], 1000))
    plain = np.histogram(values, edges, density=True)[0]
    np.testing.assert_allclose(many.probabilities_ / np.diff(wanted), plain, atol=1e-5)
    model.save(tmp_path / "edges.sc")
    again = sc.load(tmp_path / "edges.sc")
    np.testing.assert_array_equal(np.asarray(again.bins, float), wanted)
    np.testing.assert_array_equal(again.cdf(values), model.cdf(values))
    np.testing.assert_array_equal(clone(again).fit([4.2]).edges_, wanted)


def test_given_edges_need_no_spread_and_count_weights():
    assert sc.Histogram([0, 5]).fit([3.0, 3.0]).counts_.tolist() == [2]
    weighed = sc.Histogram([0, 1, 5]).fit([0.5, 3.0, 4.0], sample_weight=[0.5, 2.0, 1.0])
    assert weighed.counts_.tolist() == np.histogram([0.5, 3, 4], [0, 1, 5], weights=[0.5, 2, 1])[0].tolist()


def test_equal_counts_hold_as_many_rows_each():
    model = sc.Histogram(("count", 8)).fit(steps())
    assert np.abs(model.counts_ - 50).max() <= 1
    tied = sc.Histogram(("count", 4)).fit([1.0] * 50 + [2.0, 3.0, 4.0])
    assert tied.counts_.sum() == 53 and (np.diff(tied.edges_) > 0).all()


def test_the_description_length_is_that_of_its_definition():
    values = steps(60)
    for edges, places in (
        (np.linspace(values.min(), values.max(), 6), 0),
        (np.array([values.min(), 4, 5, values.max()]), 59),
    ):
        ours = description_length(WeightedPoints(values), edges, places)
        assert ours == pytest.approx(plain_length(values, edges, places), abs=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_the_cuts_are_the_best_of_all_there_are(seed):
    rng = np.random.default_rng(seed)
    values = np.sort(np.concatenate([rng.uniform(0, 1, 9), rng.uniform(5, 5.2, 8)]))
    middles = (values[1:] + values[:-1]) / 2
    every = [np.array([values[0], *cuts, values[-1]]) for k in range(5) for cuts in combinations(middles, k)]
    lengths = [description_length(WeightedPoints(values), edges, len(middles)) for edges in every]
    best = every[int(np.argmin(lengths))]
    np.testing.assert_array_equal(edges_of("mdl", WeightedPoints(values)), best)

    def fitness(edges):
        counts = np.histogram(values, edges)[0]
        price = 4 - log(73.53 * 0.05 * len(values) ** -0.478)
        return sum(c * log(c / w) for c, w in zip(counts, np.diff(edges), strict=True) if c) - price * len(counts)

    assert fitness(edges_of("blocks", WeightedPoints(values))) >= max(map(fitness, every)) - 1e-9


@pytest.mark.parametrize("bins", ["mdl", "blocks"])
def test_chosen_cuts_find_the_steps_that_are_there_and_none_in_noise(bins):
    edges = sc.Histogram(bins).fit(steps(3000)).edges_
    assert 4 <= len(edges) <= 6
    assert np.abs(edges[:, None] - [4.0, 5.0]).min(axis=0).max() < 0.05
    for rule in (bins, "auto"):
        assert len(sc.Histogram(rule).fit(np.random.default_rng(1).random(1000)).edges_) == 2


def test_auto_is_no_longer_than_free_cuts_or_equal_widths():
    for values in (steps(200), np.random.default_rng(2).normal(size=200), np.random.default_rng(3).lognormal(size=200)):
        points = WeightedPoints(values)
        chosen, free = edges_of("auto", points), edges_of("mdl", points)
        even = np.allclose(np.diff(chosen, 2), 0)
        told = description_length(points, chosen, 0 if even else 199)
        assert told <= description_length(points, free, 199) + 1e-9
        assert all(told <= description_length(points, edges_of(k, points)) + 1e-9 for k in (1, 2, 4, 8))


@every_way
def test_it_is_a_density_with_a_little_mass_everywhere(bins):
    values = steps()
    model = sc.Histogram(bins).fit(values)
    middles = (model.edges_[1:] + model.edges_[:-1]) / 2
    density = np.exp(model.score_samples(middles))
    assert (density > 0).all() and (density * np.diff(model.edges_)).sum() == pytest.approx(1)
    assert model.counts_.sum() == 400
    span = values.max() - values.min()
    expected = (model.counts_ + np.diff(model.edges_) / span) / (401 * np.diff(model.edges_))
    np.testing.assert_allclose(density, expected)
    outside = model.score_samples([values.min() - 0.1, values.max() + 0.1, values.min(), values.max()])
    assert (outside[:2] == -np.inf).all() and np.isfinite(outside[2:]).all()
    assert model.score(values) == pytest.approx(model.score_samples(values).mean())


@every_way
def test_cdf_quantile_and_draws_go_together(bins):
    model = sc.Histogram(bins).fit(steps())
    grid = np.linspace(-1, 11, 24_001)
    density = np.exp(model.score_samples(grid))
    np.testing.assert_allclose(model.cdf(grid[1:]), np.cumsum(density[1:]) * (grid[1] - grid[0]), atol=5e-3)
    shares = np.array([0.0, 0.2, 0.5, 0.93, 1.0])
    np.testing.assert_allclose(model.cdf(model.quantile(shares)), shares, atol=1e-12)
    assert model.quantile(0.5) == model.quantile(shares)[2]
    drawn = model.sample(2000, random_state=0)
    assert drawn.shape == (2000,) and kstest(drawn, model.cdf).pvalue > 1e-3


@every_way
def test_weights_order_holes_and_units_do_what_they_should(bins):
    values = steps(150).round(2)
    weights = np.random.default_rng(4).integers(0, 3, 150)
    weighed = sc.Histogram(bins).fit(values, sample_weight=weights)
    repeated = sc.Histogram(bins).fit(np.random.default_rng(5).permutation(np.repeat(values, weights)))
    np.testing.assert_allclose(weighed.edges_, repeated.edges_)
    np.testing.assert_array_equal(weighed.counts_, repeated.counts_)
    holed = sc.Histogram(bins).fit([*values, None, np.nan])
    np.testing.assert_array_equal(holed.edges_, sc.Histogram(bins).fit(values).edges_)
    assert holed.score_samples([np.nan])[0] == 0
    scaled = sc.Histogram(bins).fit(values * 2.0**-14)
    np.testing.assert_allclose(scaled.edges_, holed.edges_ * 2.0**-14)


def test_heavy_values_rounded_columns_and_long_tails_give_bins():
    rng = np.random.default_rng(6)
    for values in ([0.0] * 500 + list(rng.lognormal(size=500)), rng.integers(17, 90, 5000), rng.standard_cauchy(2000)):
        for bins in RULES:
            model = sc.Histogram(bins).fit(values)
            assert (np.diff(model.edges_) > 0).all() and np.isfinite(model.score(values))


def test_scikit_learns_habits():
    model = sc.Histogram(3).fit(pd.Series(steps()))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).cdf([4.5]), model.cdf([4.5]))
    np.testing.assert_array_equal(sc.Histogram(3).fit(pa.array(steps())).counts_, model.counts_)
    assert sc.Histogram(3).fit(steps()[:, None]).sample(4, random_state=1).shape == (4, 1)
    with pytest.raises(NotFittedError):
        clone(model).score_samples([1.0])


@pytest.mark.parametrize(
    "bins, X, problem",
    [
        (0, [1.0, 2.0], "whole number from 1"),
        (2.5, [1.0, 2.0], "whole number from 1"),
        (True, [1.0, 2.0], "whole number from 1"),
        (("count", 0), [1.0, 2.0], "whole number from 1"),
        ([3], [1.0, 2.0], "two or more finite numbers"),
        ([], [1.0, 2.0], "two or more finite numbers"),
        ([0, np.nan], [1.0, 2.0], "two or more finite numbers"),
        ([[0, 1], [1, 2]], [1.0, 2.0], "two or more finite numbers"),
        (["a", "b"], [1.0, 2.0], "two or more finite numbers"),
        ([0, 3, 3], [1.0, 2.0], "must ascend, but 3 is followed by 3"),
        ([0, 3, 2], [1.0, 2.0], "must ascend, but 3 is followed by 2"),
        ([5, 6], [1.0, 2.0], "no value lies between the edges 5 and 6"),
        ("best", [1.0, 2.0], "no rule 'best' for bins"),
        ("auto", [3.0, 3.0], "all values equal 3"),
        ("auto", [3.0], "one row only"),
        ("auto", [], "no row"),
        ("auto", [1.0, np.inf], "row 2 holds inf"),
        ("auto", np.ones((3, 2)), "for one column, and X has 2"),
        ("auto", ["a", "b"], "needs numbers"),
    ],
)
def test_what_cannot_be_a_histogram_is_named(bins, X, problem):
    with pytest.raises(DataError, match=problem):
        sc.Histogram(bins).fit(X)
    with pytest.raises(DataError, match="between 0 and 1"):
        sc.Histogram(2).fit([1.0, 2.0]).quantile(1.5)


def test_the_normaliser_of_two_shares_is_close_to_its_sum():
    from softcount.densities.histogram import _regret

    for n in (20, 50, 500):
        exact = sum(comb(n, k) * (k / n) ** k * ((n - k) / n) ** (n - k) for k in range(n + 1))
        assert _regret(float(n), 2)[1] == pytest.approx(log(exact), abs=1e-3)
        assert exact == pytest.approx(sqrt(n * pi / 2), rel=0.4)
