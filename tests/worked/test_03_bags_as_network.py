"""Worked example 3: five kinds of candy bag, the draws as a network of the bag and what comes out of it."""

import numpy as np
import pytest

import softcount as sc
from softcount.files.bif import write_network
from softcount.networks.network import Graph, Network

KINDS = ["h1", "h2", "h3", "h4", "h5"]
CHERRY = np.array([1.0, 0.75, 0.5, 0.25, 0.0])
PRIOR = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
AFTER = {
    0: [0.1, 0.2, 0.4, 0.2, 0.1],
    1: [0, 0.1, 0.4, 0.3, 0.2],
    2: [0, 0.038462, 0.307692, 0.346154, 0.307692],
    3: [0, 0.013158, 0.210526, 0.355263, 0.421053],
    10: [0, 0.000002, 0.003499, 0.100872, 0.895628],
}
NEXT = {0: 0.5, 1: 0.65, 2: 0.730769, 3: 0.796053, 4: 0.847107, 10: 0.973031}


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    """The bag and eleven draws from it, written to a file and read as a user would."""
    draws = [f"draw{i}" for i in range(1, 12)]
    graph = Graph.of([("Bag", draw) for draw in draws], ["Bag", *draws])
    tables = [PRIOR, *[np.stack([CHERRY, 1 - CHERRY], axis=1)] * len(draws)]
    path = tmp_path_factory.mktemp("bags") / "bags.bif"
    write_network(Network(graph, [KINDS, *[["cherry", "lime"]] * len(draws)], tables), path)
    return sc.BayesNet.read(path)


def limes(n):
    return {f"draw{i}": "lime" for i in range(1, n + 1)}


@pytest.mark.parametrize("n", AFTER)
def test_the_kind_of_bag_after_so_many_limes(net, n):
    found = net.query("Bag", limes(n))
    np.testing.assert_allclose([found[kind] for kind in KINDS], AFTER[n], atol=5e-7)


@pytest.mark.parametrize("n", NEXT)
def test_the_next_candy(net, n):
    assert net.query(f"draw{n + 1}", limes(n))["lime"] == pytest.approx(NEXT[n], abs=5e-7)


def test_one_cherry_rules_the_lime_bag_out(net):
    found = net.query("Bag", limes(10) | {"draw4": "cherry"})
    assert found["h1"] == found["h5"] == 0
    assert sum(found.values()) == pytest.approx(1, rel=1e-12)


def test_the_likeliest_kind_of_all_is_the_map_hypothesis(net):
    wanted = ["h3", "h3", "h4", "h5"]
    for n, kind in enumerate(wanted):
        found = net.query("Bag", limes(n))
        assert max(found, key=found.get) == kind
    chosen = [net.do(Bag=kind).query("draw1")["lime"] for kind in wanted]
    assert chosen == [0.5, 0.5, 0.75, 1.0]


def test_description_length_after_three(net):
    lengths = []
    for kind in KINDS:
        prior, likelihood = net.query("Bag")[kind], net.do(Bag=kind).query("draw1")["lime"] ** 3
        lengths.append(-np.log2(prior) - np.log2(likelihood) if likelihood > 0 else np.inf)
    np.testing.assert_allclose(lengths, [np.inf, 8.3219, 4.3219, 3.5670, 3.3219], atol=5e-5)
    posterior = net.query("Bag", limes(3))
    assert KINDS[int(np.argmin(lengths))] == max(posterior, key=posterior.get)
