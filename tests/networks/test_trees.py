"""Chow and Liu's tree and the tree that augments naive Bayes, against all trees."""

from itertools import combinations

import numpy as np
import pytest

from networks.plain_structures import all_trees, drawn_codes, plain_information
from softcount.networks.network import Graph
from softcount.networks.scores import CodeCounts, LogLikelihood, dependence, network_score
from softcount.networks.structure_search import heaviest_tree, information_tree


def pairs_of(graph):
    return {tuple(sorted(pair)) for pair in graph.skeleton}


def star(count, target, pairs):
    """Naive Bayes with these pairs of attributes joined, away from the first."""
    parents = [[] if node == target else [target] for node in range(count)]
    near = {node: [b if a == node else a for a, b in pairs if node in (a, b)] for node in range(count)}
    seen = {target}
    for root in range(count):
        ahead = [] if root in seen else [root]
        seen.add(root)
        while ahead:
            node = ahead.pop()
            for other in near[node]:
                if other not in seen:
                    seen.add(other)
                    parents[other].append(node)
                    ahead.append(other)
    return Graph(tuple(range(count)), tuple(map(tuple, parents)))


def hung(count, pairs):
    joined = star(count + 1, count, pairs)
    return Graph(joined.names[:-1], tuple(tuple(p for p in own if p != count) for own in joined.parents[:-1]))


@pytest.mark.parametrize("holes", [0.0, 0.2])
@pytest.mark.parametrize("given", [(), (3,)])
def test_information_is_what_a_loop_says(holes, given):
    codes, sizes = drawn_codes(1, 5, 120, holes)
    weights = np.random.default_rng(0).random(120)
    rows = CodeCounts(codes, sizes, weights)
    for a, b in combinations([0, 1, 2, 4], 2):
        expected = plain_information(codes, weights, a, b, given)
        assert dependence(rows, a, b, given).information == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("seed", range(8))
def test_no_tree_is_likelier(seed):
    codes, sizes = drawn_codes(seed, 5, 100)
    rows = CodeCounts(codes, sizes)
    scored = [network_score(rows, LogLikelihood(), hung(5, pairs)) for pairs in all_trees(5)]
    found = information_tree(rows)
    assert network_score(rows, LogLikelihood(), found) == pytest.approx(max(scored), abs=1e-9)
    assert all(len(own) <= 1 for own in found.parents)


@pytest.mark.parametrize("seed", range(8))
def test_no_augmented_naive_bayes_is_likelier(seed):
    codes, sizes = drawn_codes(seed, 5, 100)
    rows = CodeCounts(codes, sizes)
    scored = [network_score(rows, LogLikelihood(), star(5, 4, pairs)) for pairs in all_trees(4)]
    found = information_tree(rows, (4,))
    assert network_score(rows, LogLikelihood(), found) == pytest.approx(max(scored), abs=1e-9)
    assert found.parents[4] == ()
    assert all(own[0] == 4 and len(own) <= 2 for own in found.parents[:4])


def test_exclusive_or_is_found_given_the_target():
    codes = np.array([[a, b, a ^ b] for a in (0, 1) for b in (0, 1)] * 5)
    assert pairs_of(information_tree(CodeCounts(codes, (2, 2, 2)), (2,))) == {(0, 1), (0, 2), (1, 2)}
    assert information_tree(CodeCounts(codes, (2, 2, 2))).edges == []


def test_of_equal_trees_the_first_pairs_are_taken():
    one = np.random.default_rng(0).integers(0, 2, 50)
    copies = CodeCounts(np.stack([one] * 5, axis=1), (2,) * 5)
    assert information_tree(copies).parents == ((), (0,), (0,), (0,), (0,))


def test_the_same_tree_in_any_order_of_rows_and_with_rounding_in_the_weights():
    codes, sizes = drawn_codes(9, 6, 200)
    expected = information_tree(CodeCounts(codes, sizes))
    assert information_tree(CodeCounts(codes[::-1], sizes, np.full(200, 0.1))) == expected


def test_columns_that_say_nothing_stay_alone():
    codes = np.array([[0, 0, 0, -1], [1, 0, 1, -1], [1, 0, 1, -1]])
    found = information_tree(CodeCounts(codes, (2, 1, 2, 3)))
    assert found.parents == ((), (), (0,), ())
    assert information_tree(CodeCounts(codes, (2, 1, 2, 3)), (0,)).parents == ((), (0,), (0,), (0,))


def test_one_node_is_a_tree():
    assert information_tree(CodeCounts(np.array([[0], [1]]), (2,))).parents == ((),)
    assert information_tree(CodeCounts(np.array([[0], [1]]), (2,)), (0,)).parents == ((),)


def test_weights_that_differ_by_rounding_are_equal():
    weights = np.full((4, 4), 0.3)
    weights[2, 3] = weights[3, 2] = 0.1 + 0.2
    assert weights[2, 3] > weights[0, 1]
    assert heaviest_tree(weights) == [(0, 1), (0, 2), (0, 3)]


def test_weights_of_zero_or_less_join_nothing():
    weights = np.array([[0, 5, -1], [5, 0, 0], [-1, 0, 0]])
    assert heaviest_tree(weights) == [(0, 1)]
