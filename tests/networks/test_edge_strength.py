"""How sure an edge is, against all trees, all equivalent graphs and plain resampling."""

import math
from itertools import product

import numpy as np
import pytest

from networks.plain_structures import all_graphs, all_trees, drawn_codes
from softcount.errors import DataError
from softcount.networks.network import Graph
from softcount.networks.scores import Bdeu, Bic, CodeCounts, network_score
from softcount.networks.structure_search import (
    EdgeShares,
    bootstrap_edges,
    compelled_edges,
    edge_matrix,
    evidence_weights,
    information_tree,
    resample,
    search_graph,
    spanning_tree_edges,
    tree_edges,
)


def tree_graph(count, pairs):
    """A tree hung from node 0."""
    parents, ahead = {0: ()}, [0]
    while ahead:
        node = ahead.pop()
        for other in [b if a == node else a for a, b in pairs if node in (a, b)]:
            if other not in parents:
                parents[other] = (node,)
                ahead.append(other)
    return Graph(tuple(range(count)), tuple(parents[node] for node in range(count)))


def shares_of_trees(count, log_weights):
    """Edge probabilities by adding up all trees, with their logarithms."""
    trees = all_trees(count)
    logs = np.array([math.fsum(log_weights[a, b] for a, b in tree) for tree in trees])
    each = np.exp(logs - logs.max())
    found = np.zeros((count, count))
    for tree, weight in zip(trees, each / each.sum(), strict=True):
        for a, b in tree:
            found[a, b] += weight
            found[b, a] += weight
    return found


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 1_000.0, 100_000.0])
@pytest.mark.parametrize("seed", range(3))
def test_edges_of_random_trees_are_those_of_all_trees(spread, seed):
    weights = np.random.default_rng(seed).normal(size=(5, 5)) * spread
    weights = weights + weights.T
    np.testing.assert_allclose(spanning_tree_edges(weights), shares_of_trees(5, weights), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("count", [2, 3, 4, 7, 16, 21])
def test_edges_of_larger_trees_agree_with_determinants(count):
    weights = np.random.default_rng(count).normal(size=(count, count))
    weights = weights + weights.T
    plain = np.exp(weights)
    np.fill_diagonal(plain, 0)
    inverse = np.linalg.pinv(np.diag(plain.sum(axis=0)) - plain)
    own = np.diag(inverse)
    expected = plain * (own[:, None] + own - 2 * inverse)
    found = spanning_tree_edges(weights)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert found.sum() / 2 == pytest.approx(count - 1, abs=1e-10)


def test_equal_weights_are_shared_evenly_however_large():
    for weight in (-1e6, 0.0, 1e6):
        found = spanning_tree_edges(np.full((6, 6), weight))
        np.testing.assert_allclose(found, (1 - np.eye(6)) * 2 / 6, rtol=1e-9)


def test_one_node_and_none_have_no_edges():
    assert spanning_tree_edges(np.zeros((1, 1))).tolist() == [[0.0]]
    assert spanning_tree_edges(np.zeros((0, 0))).shape == (0, 0)


@pytest.mark.parametrize("imagined", [1.0, 8.0])
@pytest.mark.parametrize("seed", range(3))
def test_tree_edges_are_the_evidence_of_all_trees(imagined, seed):
    codes, sizes = drawn_codes(seed, 5, 25)
    rows = CodeCounts(codes, sizes)
    trees = all_trees(5)
    weights = evidence_weights([network_score(rows, Bdeu(imagined), tree_graph(5, tree)) for tree in trees])
    expected = EdgeShares.of([tree_graph(5, tree) for tree in trees], weights).joined
    np.testing.assert_allclose(tree_edges(rows, imagined), expected, rtol=1e-9, atol=1e-14)


def test_many_rows_leave_one_tree():
    codes, sizes = drawn_codes(4, 5, 500)
    rows = CodeCounts(codes, sizes, np.full(500, 1e4))
    found = tree_edges(rows)
    assert np.isfinite(found).all()
    assert found.sum() / 2 == pytest.approx(4, abs=1e-9)


def test_holes_and_columns_that_say_nothing_leave_edges_even():
    codes = np.full((20, 3), -1)
    codes[:, 0] = np.arange(20) % 2
    found = tree_edges(CodeCounts(codes, (2, 2, 1)))
    np.testing.assert_allclose(found, (1 - np.eye(3)) * 2 / 3, rtol=1e-9)


def test_compelled_edges_point_one_way_in_all_equivalent_graphs():
    graphs = all_graphs(4)
    classes = {}
    for graph in graphs:
        key = frozenset(graph.skeleton), frozenset(graph.meetings)
        classes.setdefault(key, []).append(edge_matrix(graph))
    for graph in graphs:
        own = classes[frozenset(graph.skeleton), frozenset(graph.meetings)]
        assert np.array_equal(compelled_edges(graph), np.all(own, axis=0)), graph


@pytest.mark.parametrize("seed", range(20))
def test_compelled_edges_of_six_nodes(seed):
    """Long chains of what follows need more than four nodes."""
    rng = np.random.default_rng(seed)
    there = np.triu(rng.random((6, 6)) < 0.5, 1)
    while there.sum() > 8:
        there[tuple(rng.choice(np.argwhere(there)))] = False
    order = rng.permutation(6)
    graph = graph_of((int(order[a]), int(order[b])) for a, b in np.argwhere(there))
    own = [edge_matrix(other) for other in turned(graph) if other.is_equivalent(graph)]
    assert np.array_equal(compelled_edges(graph), np.all(own, axis=0)), graph


def graph_of(pairs):
    parents = [[] for _ in range(6)]
    for parent, child in pairs:
        parents[child].append(parent)
    return Graph(tuple(range(6)), tuple(map(tuple, parents)))


def turned(graph):
    """All graphs without cycles that join the same nodes."""
    for flips in product([1, -1], repeat=len(graph.edges)):
        try:
            yield graph_of(edge[::flip] for edge, flip in zip(graph.edges, flips, strict=True))
        except DataError:
            continue


def test_shares_are_weighted_means_over_graphs():
    chain, meeting = Graph((0, 1, 2), ((), (0,), (1,))), Graph((0, 1, 2), ((), (0, 2), ()))
    found = EdgeShares.of([chain, meeting], np.array([0.25, 0.75]))
    assert found.directed.tolist() == [[0, 1, 0], [0, 0, 0.25], [0, 0.75, 0]]
    assert found.joined.tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert found.compelled.tolist() == [[0, 0.75, 0], [0, 0, 0], [0, 0.75, 0]]


def test_bootstrap_counts_what_is_learned_from_each_draw():
    codes, sizes = drawn_codes(2, 5, 60)
    rows = CodeCounts(codes, sizes)
    found = bootstrap_edges(rows, information_tree, replicates=20, seed=3)
    rng = np.random.default_rng(3)
    distinct, weights = rows.distinct
    expected = np.zeros((5, 5))
    for _ in range(20):
        drawn = rng.multinomial(60, weights / 60)
        again = np.repeat(distinct, drawn, axis=0)
        assert len(again) == 60
        expected += edge_matrix(information_tree(CodeCounts(again, sizes))) / 20
    np.testing.assert_allclose(found.directed, expected, atol=1e-12)
    np.testing.assert_allclose(found.joined, expected + expected.T, atol=1e-12)


def test_a_strong_edge_is_sure_and_a_weak_one_is_not():
    rng = np.random.default_rng(0)
    one = rng.integers(0, 2, 200)
    codes = np.stack([one, one ^ (rng.random(200) < 0.1), rng.integers(0, 2, 200), rng.integers(0, 2, 200)], axis=1)
    found = bootstrap_edges(CodeCounts(codes, (2,) * 4), lambda rows: search_graph(rows, Bic()).graph, 50)
    assert found.joined[0, 1] == pytest.approx(1.0)
    assert found.joined[2, 3] < 0.5


def test_weights_that_are_no_whole_numbers_keep_their_total():
    codes, sizes = drawn_codes(2, 3, 60)
    rows = CodeCounts(codes, sizes, np.random.default_rng(0).random(60))
    total = float(rows.counts(()))
    assert float(resample(rows, np.random.default_rng(1)).counts(())) == pytest.approx(total, rel=1e-12)


def test_evidence_far_below_zero_weighs_without_underflow():
    np.testing.assert_allclose(evidence_weights([-1e6, -1e6 + math.log(3), -np.inf]), [0.25, 0.75, 0], rtol=1e-9)


def test_nothing_to_weigh_or_draw_is_refused():
    for evidence in ([], [-np.inf], [np.nan, 1.0]):
        with pytest.raises(DataError, match="none of the models has evidence"):
            evidence_weights(evidence)
    rows = CodeCounts(np.zeros((2, 1), dtype=int), (2,))
    with pytest.raises(DataError, match="at least one replicate"):
        bootstrap_edges(rows, information_tree, replicates=0)
    with pytest.raises(DataError, match="no rows to draw from"):
        bootstrap_edges(CodeCounts(np.zeros((0, 1), dtype=int), (2,)), information_tree)
