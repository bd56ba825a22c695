"""Networks whose tree for all rows is large or refused: rows are answered all the same, in bounded memory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import softcount as sc
from enumerated import random_codes, random_enumerated, random_likelihoods, soft_evidence
from networks.drawn_networks import drawn_tables
from softcount.errors import DataError, ResourceError
from softcount.networks import queries
from softcount.networks.elimination import cells_within
from softcount.networks.network import Graph, Network
from softcount.networks.queries import Evidence, Questions

SIDE = 16


def grid_network(seed: int) -> Network:
    """A square of binary nodes, each below and right of others: a tree of them all is far too large."""
    place = [[f"{row},{column}" for column in range(SIDE)] for row in range(SIDE)]
    edges = [edge for line in place for edge in pairwise(line)]
    edges += [edge for upper, lower in pairwise(place) for edge in zip(upper, lower, strict=True)]
    graph = Graph.of(edges, [name for line in place for name in line])
    sizes = [2] * len(graph.names)
    return Network(graph, [["n", "y"]] * len(sizes), drawn_tables(np.random.default_rng(seed), graph, sizes))


@pytest.fixture(scope="module")
def grid() -> tuple[Network, Questions]:
    network = grid_network(1)
    return network, Questions(network.graph, network.sizes, network.tables, room=2**12)


@pytest.mark.parametrize("seed", range(10))
def test_a_tree_for_every_pattern_answers_as_one_tree_for_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng([31, seed])
    network = random_enumerated(rng)
    codes = random_codes(rng, network.sizes, 12, 0.5)
    evidence = soft_evidence(codes, random_likelihoods(rng, network.sizes, 12) if seed % 2 else {})
    found = []
    for cells in (queries.CELLS_WORTH_A_TREE, 0):
        monkeypatch.setattr(queries, "CELLS_WORTH_A_TREE", cells)
        questions = Questions(network.graph, network.sizes, network.tables)
        found.append((questions.posterior([0], evidence), questions.log_evidence(evidence)))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-12, atol=1e-12)


def test_rows_are_answered_where_only_the_tree_of_all_is_refused(grid: tuple[Network, Questions]) -> None:
    """Every row shows most of the square, so that little of it is left, but other nodes each time."""
    _, questions = grid
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 2, (6, SIDE * SIDE))
    codes[rng.random(codes.shape) < 0.2] = -1
    codes[:, 0] = -1
    with pytest.raises(ResourceError, match="an exact answer needs"):
        questions.log_evidence(Evidence(np.full((1, SIDE * SIDE), -1), {(SIDE * SIDE - 1,): np.zeros((1, 2))}))
    together = questions.posterior([0], Evidence(codes))
    logs = questions.log_evidence(Evidence(codes))
    for row in range(len(codes)):
        alone = Evidence(codes[row : row + 1])
        np.testing.assert_allclose(together[row], questions.posterior([0], alone)[0], rtol=0, atol=1e-12)
        assert logs[row] == pytest.approx(questions.log_evidence(alone)[0], rel=1e-12)


def test_each_node_is_answered_where_all_of_them_together_are_refused() -> None:
    network = grid_network(3)
    nodes, nothing = [9 * SIDE + 4, 4 * SIDE + 9, 1], Evidence(np.full((1, SIDE * SIDE), -1))
    whole = Questions(network.graph, network.sizes, network.tables)
    expected = whole.each(nodes, nothing)
    room = max(whole._pruned(((node,),), queries.Known((), (), ())).tree.cells for node in nodes)
    questions = Questions(network.graph, network.sizes, network.tables, room)
    with pytest.raises(ResourceError):
        questions._answer(nothing, tuple((node,) for node in nodes))
    for found, own in zip(questions.each(nodes, nothing), expected, strict=True):
        np.testing.assert_allclose(found, own, rtol=0, atol=1e-12)


def test_what_is_given_is_cut_out_before_the_likeliest_levels_are_looked_for(grid: tuple[Network, Questions]) -> None:
    network, questions = grid
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 2, (1, SIDE * SIDE))
    unseen = [3, 4, 40]
    codes[0, unseen] = -1
    likeliest, heights = questions.most_probable(Evidence(codes))
    heights_of = {}
    for number in range(2 ** len(unseen)):
        codes[0, unseen] = levels = [number >> place & 1 for place in range(len(unseen))]
        heights_of[tuple(levels)] = sum(
            np.log(table[tuple(codes[0, list(family)])])
            for table, family in zip(network.tables, network.graph.families, strict=True)
        )
    best = max(heights_of, key=heights_of.__getitem__)
    assert tuple(likeliest[0, unseen]) == best
    assert heights[0] == pytest.approx(heights_of[best], rel=1e-12)
    codes[0, unseen] = best
    np.testing.assert_array_equal(likeliest, codes)


def test_trees_that_are_kept_have_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    network = grid_network(5)
    questions = Questions(network.graph, network.sizes, network.tables)
    monkeypatch.setattr(queries, "KEPT_CELLS", 10_000)
    nothing = Evidence(np.full((1, SIDE * SIDE), -1))
    for node in range(8 * SIDE):
        questions.posterior([node], nothing)
        trees = [tree.tree.cells for tree in questions._kept.values()]
        assert sum(trees) <= 10_000 or len(trees) == 1


@pytest.mark.parametrize("memory", ["much", "-1GB", 0, True, float("nan"), "GB"])
def test_a_memory_that_is_none_is_refused(memory: object) -> None:
    with pytest.raises(DataError, match="memory"):
        sc.BayesNet([("a", "b")], memory=memory).fit({"a": ["x", "y"], "b": ["x", "y"]})


def test_more_memory_allows_what_less_refuses() -> None:
    net = sc.BayesNet._of_network(grid_network(6)).set_params(memory="10 kB")
    with pytest.raises(ResourceError, match=r"Allow more memory \(memory='[0-9]+MB'\)"):
        net.query(f"{SIDE // 2},{SIDE - 1}")
    answer = net.set_params(memory="50MB").query(f"{SIDE // 2},{SIDE - 1}")
    assert sum(answer.values()) == pytest.approx(1, abs=1e-12)
    assert cells_within("1kb") == 125
