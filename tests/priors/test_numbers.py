"""Normals under hard numbers: offsets, scales, weights, classical intervals, certainty."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from softcount.priors import Beta, Dirichlet, Gamma, NormalInverseChi2, NormalInverseWishart, NormalKnownVariance

VALUES = [1.5, -2.0, 4.25, 0.5, 0.75]


def exact_variance(values):
    """The divided-by-n variance of the doubles as they are stored, without rounding."""
    exact = [Fraction(v) for v in values]
    mean = sum(exact) / len(exact)
    return float(sum((v - mean) ** 2 for v in exact) / len(exact))


@pytest.mark.parametrize("offset", [0.0, 1e8, 1e10, -1e12])
def test_a_far_offset_costs_no_digits_of_the_variance(offset):
    moved = [v + offset for v in VALUES]
    learned = NormalInverseChi2(0, 0, 0, 0).update(moved)
    assert learned.variance == pytest.approx(exact_variance(moved), rel=1e-13)
    assert learned.mean == pytest.approx(float(sum(map(Fraction, moved)) / 5), rel=1e-15)


@pytest.mark.parametrize("scale", [1e-150, 1e-4, 1e4, 1e150])
def test_the_units_of_a_column_only_shift_the_log_density(scale):
    prior, wide = NormalInverseChi2(0.5, 1, 2, 1.5), NormalInverseChi2(0.5 * scale, 1, 2, 1.5 * scale**2)
    scaled = np.array(VALUES) * scale
    moved = -5 * math.log(scale)
    assert wide.log_evidence(scaled) == pytest.approx(prior.log_evidence(VALUES) + moved, rel=1e-12)
    after, wider = prior.update(VALUES), wide.update(scaled)
    assert wider.predict_log(2 * scale) == pytest.approx(after.predict_log(2.0) - math.log(scale), rel=1e-12)
    known, unknown = NormalKnownVariance(0, 1, 2), NormalKnownVariance(0, scale**2, 2 * scale**2)
    assert unknown.update(scaled).mean / scale == pytest.approx(known.update(VALUES).mean, rel=1e-13)
    assert unknown.log_evidence(scaled) == pytest.approx(known.log_evidence(VALUES) + moved, rel=1e-12)


def test_flat_on_the_mean_with_a_rows_is_the_smoothed_variance():
    """The rule of the normal column: the sample mean, and variance (SS + a s2) / (n + a)."""
    scatter = float(np.var(VALUES) * 5)
    after = NormalInverseChi2(mean=99.0, kappa=0, nu=1.0, variance=7.0).update(VALUES)
    assert after.mean == pytest.approx(np.mean(VALUES))
    assert after.variance == pytest.approx((scatter + 7.0) / 6)


def test_the_reference_prior_gives_the_classical_t_interval():
    after = NormalInverseChi2(mean=0, kappa=0, nu=-1, variance=0).update(VALUES)
    classical = stats.t.interval(0.95, 4, np.mean(VALUES), stats.sem(VALUES))
    assert after.interval(0.95) == pytest.approx(classical, rel=1e-12)
    assert after.variance == pytest.approx(np.var(VALUES, ddof=1))
    assert NormalInverseChi2(mean=7, kappa=0, nu=-1, variance=5).update(VALUES) == after  # neither is believed
    one_by_one = NormalInverseChi2(mean=0, kappa=0, nu=-1, variance=0)
    for value in VALUES:
        one_by_one = one_by_one.update([value])
    assert one_by_one.variance == pytest.approx(after.variance)


def test_moments_and_values_teach_the_same():
    n, mean, squares = 5, np.mean(VALUES), np.var(VALUES) * 5
    prior = NormalInverseChi2(0.5, 1, 2, 1.5)
    by_value, by_moment = prior.update(VALUES), prior.update(rows=n, mean=mean, sum_squares=squares)
    assert (by_value.mean, by_value.variance) == pytest.approx((by_moment.mean, by_moment.variance), rel=1e-14)
    assert prior.log_evidence(VALUES) == pytest.approx(prior.log_evidence(rows=n, mean=mean, sum_squares=squares))
    known = NormalKnownVariance(0, 1, 2)
    assert known.update(VALUES).mean == pytest.approx(known.update(rows=n, mean=mean).mean)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6))
def test_a_missing_value_changes_nothing(values):
    holed = [math.nan, *values, math.nan]
    prior = NormalInverseChi2(0.5, 1, 2, 1.5)
    one, other = prior.update(holed), prior.update(values)
    assert (one.kappa, one.nu) == (other.kappa, other.nu)
    assert (one.mean, one.variance) == pytest.approx((other.mean, other.variance), rel=1e-12, abs=1e-12)
    assert prior.log_evidence(holed) == pytest.approx(prior.log_evidence(values), rel=1e-12)
    known = NormalKnownVariance(0, 1, 2)
    assert known.update(holed).mean_variance == known.update(values).mean_variance
    assert known.update(holed).mean == pytest.approx(known.update(values).mean, rel=1e-12, abs=1e-12)
    counts = [math.floor(abs(v)) for v in values]
    assert Gamma(1, 1).update(values=[*counts, math.nan]) == Gamma(1, 1).update(values=counts)


def test_equal_values_scatter_by_exactly_nothing():
    after = NormalInverseChi2(0, 0, 0, 0).update([0.1] * 7)
    assert (after.mean, after.variance) == (0.1, 0.0)
    block = NormalInverseWishart([0, 0], 0, 0, np.zeros((2, 2))).update([[0.1, 1.0], [0.1, 2.0], [0.1, 4.0]])
    assert block.scale[0].tolist() == [0.0, 0.0]


def test_no_limit_on_the_mean_is_the_sample_mean_and_certainty_never_moves():
    loose = NormalKnownVariance(99.0, math.inf, 2.0).update(VALUES)
    assert (loose.mean, loose.mean_variance) == pytest.approx((np.mean(VALUES), 2 / 5))
    assert NormalKnownVariance(99.0, math.inf, 2.0).update([]) == NormalKnownVariance(99.0, math.inf, 2.0)
    assert NormalKnownVariance(3.0, 0.0, 2.0).update(VALUES) == NormalKnownVariance(3.0, 0.0, 2.0)


def test_a_million_rows_predict_to_the_last_digits():
    """At nu = 2e6 a Student-t is a normal but for terms of order 1 / nu; lost digits would show at 1e-9."""
    belief = NormalInverseChi2(0.0, 1e300, 2e6, 1.0)
    z = 1.5
    expanded = (z**4 - 2 * z**2 - 1) / (4 * 2e6)
    assert belief.predict_log(z) == pytest.approx(stats.norm.logpdf(z) + expanded, abs=1e-12)


def test_large_counts_keep_the_evidence_of_one_more():
    assert Beta(1e9, 3e9).log_evidence(successes=1) == pytest.approx(math.log(0.25), rel=1e-13)
    assert Dirichlet([1e9, 3e9]).log_evidence([1, 1]) == pytest.approx(math.log(0.25 * 3e9 / (4e9 + 1)), rel=1e-13)
    assert Gamma(1e9, 1e9).predict_log(0) == pytest.approx(-1 + 5e-10, rel=1e-14)


def test_a_point_far_away_is_improbable_but_not_nan():
    coming = NormalInverseChi2(0, 1, 3, 1).predict()
    assert coming.log_pdf(1e200) == pytest.approx(coming.log_pdf(1e150) - 4 * math.log(1e50), rel=1e-12)
    np.testing.assert_allclose(coming.log_pdf([0.0, 1e3]), stats.t.logpdf([0, 1e3], 3, 0, math.sqrt(2)), rtol=1e-13)


def test_tiny_concentrations_still_draw_shares_that_sum_to_one():
    shares = Dirichlet([1e-4, 1e-4, 1e-4]).sample(500, random_state=0)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(shares.mean(axis=0), 1 / 3, atol=0.1)


def test_draws_of_mean_and_variance_match_their_intervals():
    belief = NormalInverseChi2(1.0, 2.0, 6.0, 3.0)
    means, variances = belief.sample(20000, random_state=4)
    for drawn, (low, high) in ((means, belief.interval(0.8)), (variances, belief.variance_interval(0.8))):
        assert np.mean(drawn < low) == pytest.approx(0.1, abs=0.01)
        assert np.mean(drawn > high) == pytest.approx(0.1, abs=0.01)


def test_a_block_whose_squares_underflow_is_still_counted():
    prior = NormalInverseWishart([1.0, -1.0], 0.5, 4.0, [[2.0, 0.5], [0.5, 1.0]])
    tiny = prior.update(values=[[1.7e-158, 0.0], [0.0, 1.0]])
    zero = prior.update(values=[[0.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(tiny.scale, zero.scale, rtol=1e-15)
