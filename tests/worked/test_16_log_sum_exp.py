"""Worked example 16: log-sum-exp far below where exp underflows."""

import numpy as np
import pytest

from softcount.core.special import log_sum_exp


def test_of_three_very_small_numbers():
    assert log_sum_exp(np.array([-1000.0, -1001.0, -3000.0])) == pytest.approx(-999.686738, abs=5e-7)


def test_of_all_minus_infinity():
    assert log_sum_exp(np.full(4, -np.inf)) == -np.inf


def test_of_nothing():
    assert log_sum_exp(np.array([])) == -np.inf
