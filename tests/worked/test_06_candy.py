"""Worked example 6: a thousand candies from two mixed bags, by EM."""

from itertools import pairwise

import numpy as np
import pytest

import softcount as sc

# (cherry, red, hole): how many
CANDIES = {
    (1, 1, 1): 273, (1, 1, 0): 93, (1, 0, 1): 104, (1, 0, 0): 90,
    (0, 1, 1): 79, (0, 1, 0): 100, (0, 0, 1): 94, (0, 0, 0): 167,
}  # fmt: skip
TABLE = {
    "Flavor": ["cherry" if c else "lime" for c, _, _ in CANDIES],
    "Wrapper": ["red" if r else "green" for _, r, _ in CANDIES],
    "Hole": [bool(h) for _, _, h in CANDIES],
}
TIMES = list(CANDIES.values())
COLUMNS = {"Flavor": ("cherry", "lime"), "Wrapper": ("red", "green"), "Hole": (True, False)}


def bags(theta, first, second):
    """Parameters in the shape that `init` takes: the share of bag 1, then (cherry, red, hole) in each bag."""
    start = {"weights": [theta, 1 - theta]}
    for (name, (yes, no)), a, b in zip(COLUMNS.items(), first, second, strict=True):
        start[name] = {yes: [a, b], no: [1 - a, 1 - b]}
    return start


START = bags(0.6, [0.6] * 3, [0.4] * 3)


def climbed(iterations, start=START, table=TABLE, weights=TIMES):
    mixture = sc.Mixture(2, init=start, n_init=1, max_iter=iterations, tol=0, accelerate=False, estimate="ml")
    return mixture.fit(table, sample_weight=weights)


def shares(mixture):
    """(bags x columns) probability of cherry, of red, of a hole."""
    found = [
        mixture.params_[name]["probability"][:, mixture.levels_[name].index(yes)] for name, (yes, _) in COLUMNS.items()
    ]
    return np.stack(found, axis=1)


def test_log_likelihood_at_the_start_and_of_the_truth():
    assert climbed(0).log_likelihood_ == pytest.approx(-2044.260365, abs=5e-7)
    truth = climbed(0, bags(0.5, [0.8] * 3, [0.3] * 3))
    assert truth.log_likelihood_ == pytest.approx(-1982.213774, abs=5e-7)


def test_after_one_iteration():
    mixture = climbed(1)
    assert mixture.weights_[0] == pytest.approx(0.612431, abs=5e-7)
    wanted = [[0.668408, 0.648312, 0.655848], [0.388695, 0.381748, 0.382741]]
    np.testing.assert_allclose(shares(mixture), wanted, atol=5e-7)
    assert mixture.log_likelihood_ == pytest.approx(-2021.026239, abs=5e-7)


def test_bound_and_likelihood_climb_in_turn():
    before, after = climbed(0), climbed(1)
    members = before.predict_proba(TABLE)
    expected = np.log(after.weights_) * before.counts_["(groups)"]
    complete = expected.sum() + sum(
        (before.counts_[name] * np.log(after.params_[name]["probability"])).sum() for name in COLUMNS
    )
    entropy = -(np.array(TIMES) @ (members * np.log(members)).sum(axis=1))
    bound = complete + entropy
    assert bound == pytest.approx(-2030.137260, abs=5e-7)
    assert before.log_likelihood_ < bound < after.log_likelihood_


def test_half_steps_show_the_bound():
    how = {"init": START, "n_init": 1, "tol": 0, "accelerate": False, "estimate": "ml", "half_steps": True}
    mixture = sc.Mixture(2, max_iter=3, **how).fit(TABLE, sample_weight=TIMES)
    wanted = [-2044.260365, -2030.137260, -2021.026239]
    np.testing.assert_allclose(mixture.trace_[:3], wanted, atol=5e-7)
    np.testing.assert_allclose(mixture.trace_[::2], climbed(3).trace_, rtol=1e-13)
    assert mixture.n_iter_ == 3 and len(mixture.trace_) == 7
    assert all(low <= high for low, high in pairwise(mixture.trace_))


def test_the_way_up():
    trace = climbed(10).trace_
    assert len(trace) == 11
    assert trace[2] == pytest.approx(-2003.025050, abs=5e-7)
    assert trace[3] == pytest.approx(-1990.967733, abs=5e-7)
    assert trace[10] == pytest.approx(-1982.017785, abs=5e-7)
    assert trace[9] < -1982.213774 < trace[10]
    assert all(low <= high for low, high in pairwise(trace))


def test_the_limit():
    mixture = climbed(1500)
    assert mixture.log_likelihood_ == pytest.approx(-1979.360127, abs=5e-7)
    assert mixture.weights_[0] == pytest.approx(0.419424, abs=5e-7)
    wanted = [[0.893377, 0.797449, 0.836496], [0.319159, 0.362624, 0.343027]]
    np.testing.assert_allclose(shares(mixture), wanted, atol=5e-7)


def test_the_default_settings_reach_the_limit():
    mixture = sc.Mixture(2, estimate="ml", tol=1e-10, max_iter=5000, random_state=0).fit(TABLE, sample_weight=TIMES)
    assert mixture.log_likelihood_ == pytest.approx(-1979.360127, abs=1e-6)
    assert mixture.converged_


def test_equal_rows_are_one_row_with_a_weight():
    every = [row for row, times in CANDIES.items() for _ in range(times)]
    table = {
        "Flavor": ["cherry" if c else "lime" for c, _, _ in every],
        "Wrapper": ["red" if r else "green" for _, r, _ in every],
        "Hole": [bool(h) for _, _, h in every],
    }
    long, short = climbed(3, table=table, weights=None), climbed(3)
    np.testing.assert_allclose(long.trace_, short.trace_, rtol=1e-13)
    np.testing.assert_allclose(shares(long), shares(short), rtol=1e-12)


# The same as a network: a hidden bag, of which flavour, wrapper and hole are the children

EDGES = [("Bag", name) for name in COLUMNS]


def network(iterations, start=START, table=TABLE, weights=TIMES):
    init = {"Bag" if key == "weights" else key: said for key, said in start.items()}
    how = {"n_init": 1, "max_iter": iterations, "tol": 0, "accelerate": False, "estimate": "ml"}
    return sc.BayesNet(EDGES, {"Bag": 2}, init=init, **how).fit(table, sample_weight=weights)


def test_the_network_climbs_the_same_way():
    net = network(10)
    np.testing.assert_allclose(net.trace_, climbed(10).trace_, rtol=1e-13)
    assert net.trace_[1] == pytest.approx(-2021.026239, abs=5e-7)
    assert net.trace_[10] == pytest.approx(-1982.017785, abs=5e-7)
    assert net.n_iter_ == 10 and not net.converged_


def test_the_network_after_one_iteration():
    net = network(1)
    assert net.query("Bag")[0] == pytest.approx(0.612431, abs=5e-7)
    wanted = [[0.668408, 0.648312, 0.655848], [0.388695, 0.381748, 0.382741]]
    np.testing.assert_allclose(shares(net), wanted, atol=5e-7)


def test_the_limit_of_the_network():
    net = network(1500)
    assert net.log_likelihood_ == pytest.approx(-1979.360127, abs=5e-7)
    assert net.query("Bag")[0] == pytest.approx(0.419424, abs=5e-7)
    np.testing.assert_allclose(shares(net), [[0.893377, 0.797449, 0.836496], [0.319159, 0.362624, 0.343027]], atol=5e-7)


def test_the_default_settings_of_the_network_reach_the_limit():
    net = sc.BayesNet(EDGES, {"Bag": 2}, estimate="ml", tol=1e-10, max_iter=5000, random_state=0)
    net.fit(TABLE, sample_weight=TIMES)
    assert net.log_likelihood_ == pytest.approx(-1979.360127, abs=1e-6)
    assert net.converged_
