"""Worked example 4: flavour and wrapper, a network of two nodes and complete rows."""

import numpy as np
import pytest

import softcount as sc
from worked.test_06_candy import CANDIES, TABLE, TIMES

PAIRS = {name: TABLE[name] for name in ("Flavor", "Wrapper")}


@pytest.fixture(scope="module")
def net():
    return sc.BayesNet([("Flavor", "Wrapper")], estimate="ml").fit(PAIRS, sample_weight=TIMES)


def test_the_shares_are_the_counted_ones(net):
    assert net.query("Flavor")["cherry"] == pytest.approx(0.56, abs=5e-7)
    assert net.query("Wrapper", {"Flavor": "cherry"})["red"] == pytest.approx(0.653571, abs=5e-7)
    assert net.query("Wrapper", {"Flavor": "lime"})["red"] == pytest.approx(0.406818, abs=5e-7)


def test_log_likelihood(net):
    assert net.log_likelihood_ == pytest.approx(-1344.545111, abs=5e-7)
    assert np.array(TIMES) @ net.score_samples(PAIRS) == pytest.approx(-1344.545111, abs=5e-7)
    assert net.n_parameters_ == 3


def test_the_table_of_the_wrapper_is_a_ratio_of_counts(net):
    def number(flavor, wrapper):
        return sum(n for (c, r, _), n in CANDIES.items() if (c, r) == (flavor, wrapper))

    wanted = np.array([[number(c, r) for r in (0, 1)] for c in (1, 0)])
    np.testing.assert_array_equal(net.counts_["Wrapper"], wanted)
    assert net.levels_["Wrapper"] == ["green", "red"]
    np.testing.assert_allclose(
        net.params_["Wrapper"]["probability"], wanted / wanted.sum(axis=1, keepdims=True), rtol=1e-15
    )
