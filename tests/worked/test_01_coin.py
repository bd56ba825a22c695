"""Worked example 1: a coin, one win and two losses."""

import numpy as np
import pytest

from softcount.priors import Beta, Dirichlet


def test_ml_is_the_share_of_wins():
    assert Beta(0, 0).update(successes=1, failures=2).mean == pytest.approx(1 / 3, abs=1e-15)


def test_a_prior_of_five_and_three_moves_the_answer():
    posterior = Beta(5, 3).update(successes=1, failures=2)
    assert posterior == Beta(6, 5)
    assert posterior.mode == pytest.approx(5 / 9, abs=1e-15)
    assert posterior.mean == pytest.approx(6 / 11, abs=1e-15)
    assert posterior.predict() == posterior.mean


def test_four_and_seven_with_one_success_and_four_failures():
    assert Beta(4, 7).update(successes=1, failures=4) == Beta(5, 11)


def test_mode_and_mean_of_two_and_three():
    assert Beta(2, 3).mode == pytest.approx(1 / 3, abs=1e-15)
    assert Beta(2, 3).mean == pytest.approx(2 / 5, abs=1e-15)


def test_the_flat_prior_with_map_is_ml():
    for won, lost in [(1, 2), (3, 0), (0, 5), (7, 7)]:
        assert Beta(1, 1).update(won, lost).mode == pytest.approx(won / (won + lost), abs=1e-15)


def test_a_die_is_the_same_with_dirichlet():
    die = Dirichlet([5, 3]).update([1, 2])
    assert die == Dirichlet([6, 5])
    np.testing.assert_allclose(die.mode, [5 / 9, 4 / 9], atol=1e-15)
    np.testing.assert_allclose(die.predict(), [6 / 11, 5 / 11], atol=1e-15)
    rolls = [2, 0, 1, 0, 3, 4]
    np.testing.assert_allclose(Dirichlet.symmetric(1, 6).update(rolls).mode, np.array(rolls) / 10, atol=1e-15)
