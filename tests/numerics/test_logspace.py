"""Laws of the log-space sums."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from softcount.core.special import log_rising, log_sum_exp, softmax_rows

LOGS = st.one_of(st.floats(-800, 800), st.just(-math.inf))
TABLES = arrays(float, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=LOGS)


def plain_log_sum(terms):
    """The same in plain loops, the largest term taken out."""
    top = max(terms, default=-math.inf)
    if top == -math.inf:
        return -math.inf
    return top + math.log(math.fsum(math.exp(t - top) for t in terms))


@given(TABLES)
def test_log_sum_exp_matches_plain_loops_along_either_axis(table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        along_rows, along_columns, of_all = log_sum_exp(table, 1), log_sum_exp(table, 0), log_sum_exp(table)
    np.testing.assert_allclose(along_rows, [plain_log_sum(row) for row in table], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(along_columns, [plain_log_sum(col) for col in table.T], rtol=1e-13, atol=1e-13)
    assert of_all == pytest.approx(plain_log_sum(table.ravel()), rel=1e-13, abs=1e-13)


def test_an_empty_axis_sums_to_minus_infinity():
    assert log_sum_exp(np.zeros((3, 0)), axis=1).tolist() == [-math.inf] * 3
    assert log_sum_exp(np.zeros((0, 2)), axis=0).tolist() == [-math.inf] * 2


def test_plus_infinity_and_nan_are_not_hidden():
    assert log_sum_exp([math.inf, 0.0]) == math.inf
    assert math.isnan(log_sum_exp([math.nan, 0.0]))


@given(TABLES)
def test_softmax_shares_sum_to_one_or_to_nothing_without_warnings(table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior, evidence = softmax_rows(table)
    possible = np.isfinite(table).any(axis=1)
    np.testing.assert_allclose(posterior.sum(axis=1), possible.astype(float), atol=1e-14)
    np.testing.assert_allclose(evidence, [plain_log_sum(row) for row in table], rtol=1e-13, atol=1e-13)
    for row, shares, total in zip(table[possible], posterior[possible], evidence[possible], strict=True):
        np.testing.assert_allclose(shares, [math.exp(t - total) for t in row], rtol=1e-12, atol=1e-300)


def test_softmax_leaves_its_input_alone():
    joint = np.log([[0.3, 0.1]])
    before = joint.copy()
    softmax_rows(joint)
    assert np.array_equal(joint, before)


@given(st.one_of(st.floats(1e-3, 40.0), st.floats(1.0, 1e12)), st.integers(0, 60))
def test_log_rising_is_the_sum_of_logarithms(a, n):
    exact = math.fsum(math.log(a + i) for i in range(n))
    assert log_rising(a, n) == pytest.approx(exact, rel=1e-14, abs=5e-14)


@pytest.mark.parametrize("a", [10.0, 1e3, 1e8, 1e15])
def test_log_rising_keeps_the_ratio_of_two_half_steps(a):
    """gamma(a + 1/2) / gamma(a), twice over from a and a + 1/2, is exactly a."""
    both = log_rising(a, 0.5) + log_rising(a + 0.5, 0.5)
    assert both == pytest.approx(math.log(a), rel=3e-15)


def test_log_rising_counts_from_zero():
    assert log_rising(0.0, 0.0) == 0.0
    assert log_rising(0.0, 2.0) == -math.inf


def test_log_rising_matches_exact_fractions_where_subtraction_would_lose_digits():
    a, n = 10**8, 7
    exact = math.log(math.prod(Fraction(a + i, a) for i in range(n))) + n * math.log(a)
    assert log_rising(float(a), n) == pytest.approx(exact, rel=1e-15)
