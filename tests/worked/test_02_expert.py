"""Worked example 2: an expert's counts, n of m imagined trials."""

import pytest

from softcount.priors import Expert


@pytest.mark.parametrize(("n", "m", "after"), [(2, 3, 3 / 13), (2000, 3000, 2001 / 3010)])
def test_one_success_and_nine_failures(n, m, after):
    assert Expert(n=n, m=m).update(successes=1, failures=9).estimate == after


def test_a_success_adds_one_to_both_and_a_failure_to_m_alone():
    assert Expert(2, 3).update(successes=1) == Expert(3, 4)
    assert Expert(2, 3).update(failures=1) == Expert(2, 4)


def test_the_imagined_counts_have_the_estimate_as_their_mean():
    expert = Expert(2, 3).update(successes=1, failures=9)
    assert expert.as_beta().mean == pytest.approx(3 / 13, abs=1e-15)
    assert expert.as_dirichlet().mean[0] == pytest.approx(3 / 13, abs=1e-15)
