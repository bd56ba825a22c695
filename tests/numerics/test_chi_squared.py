"""The tail of chi-squared, added up where degrees of freedom are few, against SciPy's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from softcount.core.special import FEW, chi_squared_tail


@given(st.integers(1, FEW + 50), st.floats(0.0, 3.0))
def test_the_tail_is_scipys(freedom, times):
    value = freedom * times
    assert chi_squared_tail(freedom, value) == pytest.approx(chi2.sf(value, freedom), rel=1e-11)


@pytest.mark.parametrize("freedom", [1, 2, 7, FEW, FEW + 1])
def test_far_out_it_is_still_a_number(freedom):
    assert chi_squared_tail(freedom, 0.0) == 1.0
    assert chi_squared_tail(freedom, 1e-300) == pytest.approx(1.0)
    assert chi_squared_tail(freedom, 1e6) == 0.0
    assert 0.0 < chi_squared_tail(freedom, 1000.0) == pytest.approx(chi2.sf(1000.0, freedom), rel=1e-10)
