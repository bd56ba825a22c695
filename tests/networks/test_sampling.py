"""Answers by sampling, held against the whole joint table, and their stated errors against what they are off by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from networks.drawn_networks import loaded_tree
from small_networks import SmallNetwork, drawn, marginal, random_network, spread
from softcount.errors import DataError
from softcount.networks.junction_tree import JunctionTree
from softcount.networks.network import Graph
from softcount.networks.queries import Evidence
from softcount.networks.sampling import Estimate, SampledLanes, draw_levels, gibbs, weigh_samples

Sampler = Callable[..., Estimate]
samplers = pytest.mark.parametrize("sampler", [weigh_samples, gibbs])


def exact(network: SmallNetwork, of: list[int], given: dict[int, np.ndarray]) -> np.ndarray:
    joint = network.joint
    for node, likelihood in given.items():
        joint = joint * spread(likelihood, (node,), len(network.sizes))
    found = marginal(joint, tuple(of))
    return found / found.sum()


def random_question(rng: np.random.Generator, network: SmallNetwork) -> tuple[list[int], dict[int, np.ndarray]]:
    """One node or two, given some that were seen, one of a set, or likely to some degree."""
    nodes = rng.permutation(len(network.sizes))
    of, known = [int(node) for node in nodes[: rng.integers(1, 3)]], nodes[3 : 3 + rng.integers(0, 4)]
    row = drawn(rng, network, 1)[0]
    given = {}
    for node in known:
        likelihood = np.eye(network.sizes[node])[row[node]]
        kind = rng.integers(3)
        if kind:
            likelihood = np.maximum(
                likelihood, rng.random(len(likelihood)) if kind == 2 else rng.random(len(likelihood)) < 0.5
            )
        given[int(node)] = likelihood.astype(float)
    return of, given


@samplers
def test_answers_are_within_five_standard_errors(sampler: Sampler) -> None:
    rng = np.random.default_rng(1)
    for seed in range(25):
        network = random_network(rng, int(rng.integers(4, 9)))
        of, given = random_question(rng, network)
        found = sampler(network.graph, network.tables, of, given, 5000, seed)
        right = exact(network, of, given)
        assert found.probabilities.shape == right.shape
        np.testing.assert_allclose(found.probabilities.sum(), 1.0, rtol=1e-12)
        assert (abs(found.probabilities - right) <= 5 * found.errors).all()
        assert found.errors.max() < 0.05


@samplers
def test_the_stated_error_is_what_answers_are_off_by(sampler: Sampler) -> None:
    rng = np.random.default_rng(4)
    network = random_network(rng, 6)
    of, given = [0], {5: np.eye(network.sizes[5])[0], 2: np.linspace(0.2, 1.0, network.sizes[2])}
    right = exact(network, of, given)[0]
    found = [sampler(network.graph, network.tables, of, given, 1000, seed) for seed in range(100)]
    off = np.array([each.probabilities[0] - right for each in found])
    stated = np.array([each.errors[0] for each in found])
    assert 0.55 < (abs(off) < stated).mean() < 0.82
    assert (abs(off) < 2 * stated).mean() > 0.9
    assert 0.75 < np.sqrt((off**2).mean()) / stated.mean() < 1.3


def test_weights_tell_how_many_samples_the_answer_is_worth() -> None:
    graph = Graph.of([("a", "b")])
    tables = [np.array([0.9, 0.1]), np.array([[0.999, 0.001], [0.2, 0.8]])]
    free = weigh_samples(graph, tables, [0], {}, 4000, 0)
    rare = weigh_samples(graph, tables, [0], {1: np.array([0.0, 1.0])}, 4000, 0)
    assert free.effective == pytest.approx(4000)
    assert rare.effective < 1000
    assert rare.errors[0] == pytest.approx(np.sqrt(rare.probabilities.prod() / rare.effective), rel=0.9)


@samplers
def test_a_level_that_was_never_drawn_may_still_be(sampler: Sampler) -> None:
    network = [np.array([1.0 - 1e-9, 1e-9])]
    found = sampler(Graph.of([], ["a"]), network, [0], {}, 1000, 0)
    assert found.probabilities[1] == 0.0
    assert found.errors[1] > 1e-9


@samplers
def test_evidence_that_never_comes_up_is_refused(sampler: Sampler) -> None:
    graph = Graph.of([("a", "b")])
    tables = [np.array([0.5, 0.5]), np.array([[1.0, 0.0], [1.0, 0.0]])]
    with pytest.raises(DataError, match="samples agrees with the evidence on b: it is impossible, or too rare"):
        sampler(graph, tables, [0], {1: np.array([0.0, 1.0])}, 500, 0)


@samplers
def test_questions_that_make_no_sense_are_refused(sampler: Sampler) -> None:
    graph, tables = Graph.of([], ["a"]), [np.array([0.5, 0.5])]
    with pytest.raises(DataError, match="one node, or for several different nodes"):
        sampler(graph, tables, [0, 0], {}, 10, 0)


def test_the_mean_weight_is_the_probability_of_what_was_seen() -> None:
    rng = np.random.default_rng(9)
    network = random_network(rng, 6)
    codes = drawn(rng, network, 1)[0]
    codes[[0, 2, 3]] = -1
    lanes = SampledLanes(network.graph, network.tables, np.tile(codes, (20_000, 1)))
    states, weights = lanes.forward(rng)
    place = tuple(slice(None) if code < 0 else int(code) for code in codes)
    np.testing.assert_allclose(np.exp(weights).mean(), network.joint[place].sum(), rtol=0.05)
    assert (states[:, codes >= 0] == codes[codes >= 0]).all()


def test_a_level_that_cannot_be_is_never_drawn() -> None:
    rng = np.random.default_rng(2)
    with np.errstate(divide="ignore"):
        scores = np.log(np.tile([0.0, 0.3, 0.0, 0.7 - 1e-16, 0.0], (50_000, 1))) - 2000
    drawn_levels, totals = draw_levels(scores, rng)
    np.testing.assert_allclose(np.bincount(drawn_levels, minlength=5) / 50_000, [0, 0.3, 0, 0.7, 0], atol=0.01)
    assert set(drawn_levels.tolist()) == {1, 3}
    np.testing.assert_allclose(totals, -2000.0, rtol=1e-12)


@samplers
def test_nodes_that_decide_others_are_answered_within_the_stated_error(sampler: Sampler) -> None:
    """A chain cannot leave `either`; where chains begin must be right, and the error wide."""
    graph = Graph.of([("a", "either"), ("b", "either"), ("either", "seen")])
    either = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    tables = [np.array([0.7, 0.3]), either, np.array([0.6, 0.4]), np.array([[0.9, 0.1], [0.3, 0.7]])]
    network = SmallNetwork(graph, (2, 2, 2, 2), tables)
    given = {graph.place("seen"): np.array([0.0, 1.0])}
    for of in ([graph.place("either")], [graph.place("a"), graph.place("b")]):
        right = exact(network, of, given)
        found = sampler(graph, tables, of, given, 10_000, 3)
        assert (abs(found.probabilities - right) <= 5 * found.errors).all()
        assert found.errors.max() < 0.06


@samplers
def test_thirty_nodes_are_answered_as_by_junction_tree(sampler: Sampler) -> None:
    rng = np.random.default_rng(12)
    network = random_network(rng, 30, levels=4)
    tree = JunctionTree.build(network.sizes, network.graph.families)
    states = SampledLanes(network.graph, network.tables, np.full((1, 30), -1)).forward(rng)[0]
    nodes = rng.permutation(30)
    for of in nodes[:5]:
        codes = np.full((1, 30), -1)
        codes[0, nodes[20:24]] = states[0, nodes[20:24]]
        [right] = loaded_tree(tree, network.tables).answer([(int(of),)], Evidence(codes)).posteriors
        given = {int(node): np.eye(network.sizes[node])[codes[0, node]] for node in nodes[20:24]}
        found = sampler(network.graph, network.tables, [int(of)], given, 5000, 7)
        assert (abs(found.probabilities - right[0]) <= 5 * found.errors).all()
        assert found.effective > 50
