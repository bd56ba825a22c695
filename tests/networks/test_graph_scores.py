"""Scores of families and networks, against plain loops and by hand."""

import math

import numpy as np
import pytest

from networks.plain_structures import all_graphs, drawn_codes, plain_bdeu, plain_bic, plain_likelihood
from softcount.errors import DataError
from softcount.networks.network import Graph
from softcount.networks.scores import (
    Bdeu,
    Bic,
    CodeCounts,
    EdgeRules,
    FamilyScores,
    LogLikelihood,
    family_score,
    network_score,
)

SCORES = [LogLikelihood(), Bic(), Bdeu(1.0), Bdeu(7.5)]


def plain(score, codes, weights, sizes, node, parents):
    if isinstance(score, Bdeu):
        return plain_bdeu(codes, weights, sizes, node, parents, score.imagined)
    if isinstance(score, Bic):
        return plain_bic(codes, weights, sizes, node, parents)
    return plain_likelihood(codes, weights, node, parents)


@pytest.mark.parametrize("score", SCORES, ids=repr)
@pytest.mark.parametrize("seed", range(5))
def test_a_family_scores_what_a_loop_says(score, seed):
    codes, sizes = drawn_codes(seed, 4, 70)
    weights = np.random.default_rng(seed).random(70) * 3
    rows = CodeCounts(codes, sizes, weights)
    for node, parents in [(0, ()), (1, (0,)), (3, (2, 0)), (2, (0, 1, 3))]:
        expected = plain(score, codes, weights, sizes, node, parents)
        assert family_score(rows, score, node, parents) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("score", SCORES, ids=repr)
def test_candidates_side_by_side_score_as_each_does(score):
    codes, sizes = drawn_codes(11, 6, 200)
    families = FamilyScores(CodeCounts(codes, sizes), score, EdgeRules())
    for node, parents in [(0, ()), (2, (4,)), (5, (0, 3))]:
        found = families.adding(node, parents)
        for other in range(6):
            more = tuple(sorted((*parents, other)))
            allowed = other != node and other not in parents
            expected = families.of(node, more) if allowed else -np.inf
            assert found[other] == pytest.approx(expected, rel=1e-12)


def test_bdeu_by_hand():
    """One binary node, two rows of one level and none of the other, two imagined rows: 1/2 * 2/3."""
    rows = CodeCounts(np.array([[0], [0]]), (2,))
    assert family_score(rows, Bdeu(2.0), 0, ()) == pytest.approx(math.log(1 / 3), abs=1e-14)


def test_bic_by_hand():
    """Three of four rows alike: 3 log 3/4 + log 1/4, less half of log 4."""
    rows = CodeCounts(np.array([[0], [0], [0], [1]]), (2,))
    expected = 3 * math.log(3 / 4) + math.log(1 / 4) - math.log(4) / 2
    assert family_score(rows, Bic(), 0, ()) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("score", [Bic(), Bdeu(1.0), Bdeu(5.0)], ids=repr)
def test_equivalent_graphs_score_the_same_and_others_do_not(score):
    codes, sizes = drawn_codes(3, 4, 150)
    rows = CodeCounts(codes, sizes)
    classes = []
    for graph in all_graphs(4):
        total = network_score(rows, score, graph)
        own = [known for known in classes if known[0].is_equivalent(graph)]
        if not own:
            classes.append((graph, total))
        else:
            assert total == pytest.approx(own[0][1], abs=1e-9)
    assert len(classes) == 185
    assert len({round(total, 6) for _, total in classes}) > 150


@pytest.mark.parametrize("score", SCORES, ids=repr)
def test_weight_two_is_the_row_twice(score):
    codes, sizes = drawn_codes(6, 4, 60)
    graph = Graph(tuple(range(4)), ((), (0,), (0, 1), (2,)))
    twice = network_score(CodeCounts(np.concatenate([codes, codes]), sizes), score, graph)
    assert network_score(CodeCounts(codes, sizes, np.full(60, 2.0)), score, graph) == pytest.approx(twice, rel=1e-13)


@pytest.mark.parametrize("score", SCORES, ids=repr)
def test_an_empty_row_changes_nothing(score):
    codes, sizes = drawn_codes(6, 3, 60)
    graph = Graph(tuple(range(3)), ((), (0,), (0, 1)))
    more = np.concatenate([codes, np.full((5, 3), -1)])
    expected = network_score(CodeCounts(codes, sizes), score, graph)
    assert network_score(CodeCounts(more, sizes), score, graph) == expected


def test_holes_are_refused_where_rows_would_differ():
    rows = CodeCounts(np.array([[0, 1], [1, -1], [1, 0]]), (2, 2))
    with pytest.raises(DataError, match="node 1 was not seen in all rows"):
        network_score(rows, Bic(), Graph((0, 1), ((), (0,))))


@pytest.mark.parametrize("imagined", [0.0, -1.0, np.inf, np.nan])
def test_imagined_rows_must_weigh_something(imagined):
    with pytest.raises(DataError, match="prior rows is above zero"):
        Bdeu(imagined)
