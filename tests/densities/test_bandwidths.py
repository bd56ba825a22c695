"""Bandwidths: R's figures, the data's units, weights, and values of which nothing can be said."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from densities.plain_densities import plain_leave_one_out
from softcount.densities import bandwidths as looking
from softcount.densities.bandwidths import RULES, bandwidth_of, leave_one_out
from softcount.densities.kernels import KERNELS, WeightedPoints
from softcount.errors import DataError

GAUSSIAN = KERNELS["gaussian"]
every_rule = pytest.mark.parametrize("rule", RULES)


def width(rule, values, weights=None, kernel=GAUSSIAN):
    return bandwidth_of(rule, WeightedPoints(np.asarray(values, dtype=float), weights), kernel)


@pytest.fixture(scope="session")
def eruptions(data):
    with open(data("r_datasets/faithful.csv")) as rows:
        return np.array([float(row["eruptions"]) for row in csv.DictReader(rows)])


def two_humps(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.4, rng.normal(-3, 0.5, n), rng.normal(2, 1, n))


# R 4: bw.nrd0, bw.SJ(method = "ste"), bw.SJ(method = "dpi"), bw.ucv of faithful$eruptions
@pytest.mark.parametrize(
    "rule, said, digits",
    [("silverman", 0.3347770345, 10), ("sj", 0.1400435, 7), ("sj-dpi", 0.1652728, 7), ("ucv", 0.1019193, 7)],
)
def test_the_bandwidths_are_those_of_r(eruptions, rule, said, digits):
    assert round(width(rule, eruptions), digits) == said


def test_the_leave_one_out_likelihood_is_the_published_one(eruptions):
    assert leave_one_out(WeightedPoints(eruptions), 0.3347770345) == pytest.approx(-302.113287, abs=5e-7)


def test_scott_is_scipys():
    values = two_humps()
    assert width("scott", values) == pytest.approx(values.std(ddof=1) * len(values) ** -0.2, rel=1e-12)


@every_rule
def test_it_follows_the_units(rule):
    values = two_humps()
    usual = width(rule, values)
    for unit in (1e-4, 2.0**20, 1e7, 1e-30, 1e30):
        assert width(rule, values * unit) == pytest.approx(usual * unit, rel=1e-4)


@every_rule
def test_a_weight_of_two_is_the_row_twice(rule):
    values = two_humps()
    weights = np.random.default_rng(1).integers(1, 4, len(values))
    once = width(rule, values, weights.astype(float))
    assert once == pytest.approx(width(rule, np.repeat(values, weights)), rel=1e-9)


@every_rule
def test_order_does_not_matter(rule):
    values = two_humps()
    shuffled = np.random.default_rng(2).permutation(values)
    assert width(rule, values) == pytest.approx(width(rule, shuffled), rel=1e-9)


@pytest.mark.parametrize("rule", ["isj", "cv"])
def test_two_far_humps_get_the_width_of_one(rule):
    rng = np.random.default_rng(3)
    hump = rng.normal(size=500)
    apart = np.concatenate([hump, hump + 200.0])
    assert width(rule, apart) == pytest.approx(width(rule, hump), rel=0.35)
    assert width("sj", apart) < width("silverman", apart) / 10 and width("ucv", apart) < width("silverman", apart) / 10
    assert width("silverman", apart) > 10 * width("silverman", hump)


def test_botevs_rule_solves_its_equation():
    """The same fixed point by plain sums over the cosines of the points themselves, with no bins."""
    values = two_humps(200, 4)
    span = 2 * np.ptp(values)
    place = (values - values.min()) / span + 0.25
    numbers = np.arange(1, 400)
    squares = np.cos(np.pi * numbers[:, None] * place).mean(axis=1) ** 2

    def rough(s, t):
        return 2 * np.pi ** (2 * s) * np.sum(numbers ** (2.0 * s) * squares * np.exp(-((numbers * np.pi) ** 2) * t))

    def implied(t):
        f = rough(7, t)
        for s in range(6, 1, -1):
            odd = np.prod(np.arange(1, 2 * s, 2)) / np.sqrt(2 * np.pi)
            f = rough(s, (2 * (1 + 0.5 ** (s + 0.5)) / 3 * odd / (200 * f)) ** (2 / (3 + 2 * s)))
        return (2 * 200 * np.sqrt(np.pi) * f) ** -0.4

    found = (width("isj", values) / span) ** 2
    assert implied(found) == pytest.approx(found, rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_leaving_one_out_is_two_plain_loops(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=40).round(1)  # with some rows equal
    values[0] = 30.0  # so far out that its own kernel hides all others
    for h in (0.05, 0.5, 4.0):
        assert leave_one_out(WeightedPoints(values), h) == pytest.approx(plain_leave_one_out(values, h), rel=1e-11)


def test_leaving_one_out_of_bins_is_leaving_one_out(monkeypatch):
    points = WeightedPoints(np.append(two_humps(3000), [40.0, 41.0]))
    summed = leave_one_out(points, 0.2)
    monkeypatch.setattr(looking, "SUMMED", 100)
    assert leave_one_out(points, 0.2) == pytest.approx(summed, rel=1e-7)


def test_the_likeliest_width_is_no_less_likely_than_its_neighbours():
    points = WeightedPoints(two_humps())
    best = bandwidth_of("cv", points, GAUSSIAN)
    top = leave_one_out(points, best)
    assert all(leave_one_out(points, best * factor) < top for factor in (0.5, 0.9, 0.98, 1.02, 1.1, 2))


def test_other_kernels_get_the_width_at_which_they_smooth_as_much():
    values = two_humps()
    assert width("scott", values, kernel=KERNELS["epanechnikov"]) / width("scott", values) == pytest.approx(
        2.2138, abs=1e-4
    )
    for name in KERNELS:
        assert width(0.25, values, kernel=KERNELS[name]) == 0.25


@pytest.mark.parametrize("given", [0, -1.0, np.nan, np.inf, True, None, [0.1]])
def test_a_bandwidth_is_above_zero(given):
    with pytest.raises(DataError, match=r"bandwidth must be a number above 0"):
        width(given, [1.0, 2.0])


def test_an_unknown_rule_is_named_beside_those_there_are():
    with pytest.raises(DataError, match=r"no bandwidth rule 'best'.*silverman"):
        width("best", [1.0, 2.0])


@every_rule
def test_equal_values_have_no_bandwidth(rule):
    with pytest.raises(DataError, match=r"all values equal 7.*as a number"):
        width(rule, [7.0, 7.0, 7.0])
    with pytest.raises(DataError, match="no row"):
        width(rule, [])


def test_weights_that_are_shares_are_refused():
    with pytest.raises(DataError, match="weights sum to 1"):
        width("scott", [1.0, 2.0], np.array([0.5, 0.5]))


@every_rule
def test_two_or_three_rows_and_rounded_ones_give_a_width_or_a_reason(rule):
    for values in ([0.0, 1.0], [0.0, 0.0, 1.0], [1, 2, 3, 4, 5] * 40, [0.0] * 90 + [1.0, 2.0]):
        try:
            found = width(rule, values)
        except DataError as error:
            assert "too few or too rounded" in str(error)
        else:
            assert 0 < found < 10
