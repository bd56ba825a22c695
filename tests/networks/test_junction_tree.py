"""Junction trees against the whole joint table written out."""

from __future__ import annotations

from itertools import combinations
from math import prod

import numpy as np
import pytest

from enumerated import (
    EnumeratedNetwork,
    Row,
    along,
    log,
    margin,
    normalised,
    random_codes,
    random_enumerated,
    random_likelihoods,
    soft_evidence,
)
from networks.drawn_networks import loaded_tree
from softcount.errors import DataError, ResourceError
from softcount.networks import queries
from softcount.networks.elimination import eliminate
from softcount.networks.junction_tree import JunctionTree
from softcount.networks.queries import Evidence, PrunedTree

ROWS = 3


def load(network: EnumeratedNetwork, *extra: tuple[int, ...]) -> PrunedTree:
    return loaded_tree(JunctionTree.build(network.sizes, [*network.graph.families, *extra]), network.tables)


def some_pair(rng: np.random.Generator, nodes: int) -> tuple[int, ...]:
    return tuple(int(node) for node in rng.choice(nodes, 2, replace=False))


def random_evidence(
    rng: np.random.Generator, network: EnumeratedNetwork, pair: tuple[int, ...], rows: int = ROWS
) -> tuple[Evidence, list[Row]]:
    codes = random_codes(rng, network.sizes, rows, rng.choice([0.2, 0.6, 0.9, 1.0]))
    likelihoods = random_likelihoods(rng, network.sizes, rows) if rng.random() < 0.5 else {}
    cells = prod(network.sizes[node] for node in pair)
    factors = {pair: rng.normal(size=(rows, cells)) * 5} if rng.random() < 0.3 else {}
    told = [
        Row(
            codes[row],
            {node: given[row] for node, given in likelihoods.items()},
            {scope: logs[row] for scope, logs in factors.items()},
        )
        for row in range(rows)
    ]
    return soft_evidence(codes, likelihoods, factors), told


@pytest.mark.parametrize("seed", range(50))
def test_a_thousand_networks_agree_with_enumeration(seed: int) -> None:
    rng = np.random.default_rng([11, seed])
    for _ in range(20):
        network = random_enumerated(rng)
        pair = some_pair(rng, len(network.sizes))
        evidence, rows = random_evidence(rng, network, pair)
        loaded, weights = load(network, pair), rng.random(ROWS)
        scopes = [*network.graph.families, pair, *((node,) for node in range(len(network.sizes)))]
        found = loaded.answer(scopes, evidence, weights)
        likeliest, heights = loaded.most_probable(evidence)
        joint = network.joint()
        counts = [np.zeros(count.shape) for count in found.counts]
        for row, told in enumerate(rows):
            left = told.left(joint)
            posterior = normalised(left)
            assert found.log_evidence[row] == pytest.approx(log(left.sum()), rel=1e-12, abs=1e-12)
            for scope, answer in zip(scopes, found.posteriors, strict=True):
                np.testing.assert_allclose(answer[row], margin(posterior, scope).ravel(), rtol=0, atol=1e-12)
            for count, scope in zip(counts, network.graph.families, strict=True):
                count += weights[row] * margin(posterior, scope)
            assert heights[row] == pytest.approx(log(left.max()), rel=1e-12, abs=1e-12)
            if left.max() > 0:
                assert left[tuple(likeliest[row])] == pytest.approx(left.max(), rel=1e-12)
            else:
                assert (likeliest[row] == -1).all()
        for count, answer in zip(counts, found.counts, strict=True):
            np.testing.assert_allclose(answer, count, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_one_pass_and_both_passes_say_the_same(seed: int) -> None:
    rng = np.random.default_rng([12, seed])
    network = random_enumerated(rng)
    pair = some_pair(rng, len(network.sizes))
    evidence, _ = random_evidence(rng, network, pair)
    loaded = load(network, pair)
    found = loaded.answer([pair], evidence, np.ones(ROWS))
    rooted = loaded_tree(JunctionTree.build(network.sizes, network.graph.families, root=pair), network.tables)
    assert set(pair) <= set(rooted.tree.cliques[0])
    np.testing.assert_allclose(rooted.answer([pair], evidence).posteriors[0], found.posteriors[0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(loaded.answer([], evidence).log_evidence, found.log_evidence, rtol=1e-13, atol=1e-13)


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(13)
    for _ in range(20):
        network = random_enumerated(rng)
        pair = some_pair(rng, len(network.sizes))
        evidence, _ = random_evidence(rng, network, pair, rows=11)
        loaded, weights = load(network, pair), rng.random(11)
        monkeypatch.undo()
        whole, likeliest = loaded.answer([pair], evidence, weights), loaded.most_probable(evidence)
        monkeypatch.setattr(queries, "BLOCK", 1)
        monkeypatch.setattr(queries, "FEWEST", 3)
        parts, again = loaded.answer([pair], evidence, weights), loaded.most_probable(evidence)
        np.testing.assert_allclose(parts.log_evidence, whole.log_evidence, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(parts.posteriors[0], whole.posteriors[0], rtol=0, atol=1e-13)
        for one, other in zip(parts.counts, whole.counts, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(again[0], likeliest[0])


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 10_000])
@pytest.mark.parametrize("cells", [0, 1, 1000, 2**17, 2**22, 2**26])
def test_blocks_hold_every_row_once_and_bounded_memory(rows: int, cells: int) -> None:
    found = list(queries.blocks(rows, cells))
    assert [row for block in found for row in range(rows)[block]] == list(range(rows))
    assert all(block.stop - block.start == 1 or (block.stop - block.start) * cells <= 2**24 for block in found)


@pytest.mark.parametrize("seed", range(100))
def test_cliques_are_maximal_and_hang_together(seed: int) -> None:
    rng = np.random.default_rng([14, seed])
    nodes = int(rng.integers(1, 30))
    sizes = [int(size) for size in rng.integers(1, 4, nodes)]
    scopes = [
        tuple(int(node) for node in rng.choice(nodes, rng.integers(0, min(nodes, 4) + 1), replace=False))
        for _ in range(rng.integers(1, 40))
    ]
    tree = JunctionTree.build(sizes, scopes)
    for scope, home in zip(scopes, tree.homes, strict=True):
        assert set(scope) <= set(tree.cliques[home]) if scope else home == -1
    for one, other in combinations(tree.cliques, 2):
        assert not set(one) <= set(other)
        assert not set(other) <= set(one)
    for number, (clique, over, common) in enumerate(zip(tree.cliques, tree.above, tree.shared, strict=True)):
        assert over < number
        border = clique[len(clique) - common :]
        assert list(border) == [node for node in (tree.cliques[over] if over >= 0 else ()) if node in border]
        # A node of the border is the only kind that may come again above.
        earlier = {node for upper in tree.cliques[:number] for node in upper}
        assert earlier & set(clique) == set(border)
    assert set(tree.tops) == {node for scope in scopes for node in scope}


def test_the_same_tree_every_time() -> None:
    network = random_enumerated(np.random.default_rng(15))
    one = JunctionTree.build(network.sizes, network.graph.families)
    assert one == JunctionTree.build(network.sizes, network.graph.families)
    assert one == JunctionTree.build(tuple(network.sizes), list(network.graph.families))


def test_a_chain_has_cliques_of_two_and_a_grid_no_more_than_its_width() -> None:
    chain = JunctionTree.build([3] * 50, [(node, node + 1) for node in range(49)])
    assert chain.cells == 49 * 9
    width, length = 4, 12
    across = [(width * row + at, width * row + at + 1) for row in range(length) for at in range(width - 1)]
    down = [(node, node + width) for node in range(width * (length - 1))]
    grid = JunctionTree.build([2] * width * length, across + down)
    assert max(map(len, grid.cliques)) <= width + 1


def test_the_order_is_no_worse_than_others() -> None:
    rng = np.random.default_rng(16)
    for _ in range(30):
        nodes = 14
        sizes = [int(size) for size in rng.choice([2, 3, 30], nodes)]
        scopes = [tuple(int(n) for n in rng.choice(nodes, 2, replace=False)) for _ in range(26)]
        cells = JunctionTree.build(sizes, scopes, room=2**60).cells
        best = min(
            sum(prod(sizes[node] for node in clique) for clique in _cliques_of_order(scopes, order))
            for order in (eliminate(sizes, scopes, 2**60).order, rng.permutation(nodes), range(nodes))
        )
        assert cells == best


def _cliques_of_order(scopes: list[tuple[int, ...]], order: object) -> list[frozenset[int]]:
    """Maximal cliques by the book: sum out one node after the other."""
    left, met = [frozenset(scope) for scope in scopes], []
    for node in order:  # type: ignore[attr-defined]
        if touched := [scope for scope in left if node in scope]:
            clique = frozenset().union(*touched)
            met.append(clique)
            left = [scope for scope in left if node not in scope] + [clique - {node}]
    return [clique for clique in set(met) if not any(clique < other for other in met)]


def test_impossible_rows_are_minus_infinity_and_zeros_without_a_warning() -> None:
    tables = [np.array([1.0, 0.0]), np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([0.3, 0.7])]
    tree = JunctionTree.build([2, 2, 2], [(0,), (0, 1), (2,)])
    codes = np.array([[-1, 1, -1], [-1, 0, 0], [1, -1, -1], [-1, -1, -1]])
    likelihoods = {2: np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [0.0, 0.0]])}
    with np.errstate(all="raise"):
        found = loaded_tree(tree, tables).answer([(0,), (1,), (2,)], soft_evidence(codes, likelihoods), np.ones(4))
        likeliest, heights = loaded_tree(tree, tables).most_probable(soft_evidence(codes, likelihoods))
    possible = np.array([False, True, False, False])
    np.testing.assert_array_equal(found.log_evidence > -np.inf, possible)
    np.testing.assert_array_equal(heights > -np.inf, possible)
    np.testing.assert_array_equal(likeliest, [[-1] * 3, [0, 0, 0], [-1] * 3, [-1] * 3])
    for posterior in found.posteriors:
        np.testing.assert_array_equal(posterior.sum(axis=1), possible)
    np.testing.assert_allclose([count.sum() for count in found.counts], 1)


def test_nothing_underflows_in_a_class_with_a_thousand_leaves() -> None:
    # The first half of the leaves speaks for class 0 by 10^-1500, the second, a little more strongly, for class 1.
    leaves = 1000
    strength = np.where(np.arange(leaves) < 500, 1e-3, 1e3)
    strength[-1] = 1e4
    tables = [np.array([0.5, 0.5])]
    for ratio in strength:
        seen = np.array([1.0, ratio]) / (1 + ratio)
        tables.append(np.stack([1 - seen, seen], axis=1))
    tree = JunctionTree.build([2] * (leaves + 1), [(0,), *((0, leaf + 1) for leaf in range(leaves))])
    codes = np.ones((2, leaves + 1), dtype=int)
    codes[:, 0] = -1
    codes[1, -1] = -1
    with np.errstate(all="raise"):
        found = loaded_tree(tree, tables).answer([(0,)], Evidence(codes), np.ones(2))
    logs = np.log(0.5) + np.log([table[:, 1] for table in tables[1:]]).sum(axis=0)
    assert found.log_evidence[0] == pytest.approx(np.logaddexp(*logs), rel=1e-12)
    np.testing.assert_allclose(found.posteriors[0][0], [1 / 11, 10 / 11], rtol=1e-10)
    np.testing.assert_allclose(found.posteriors[0][1], [1000 / 1001, 1 / 1001], rtol=1e-10)


def test_a_chain_of_a_thousand_nodes_keeps_its_logarithm() -> None:
    rng, nodes = np.random.default_rng(17), 1000
    tables = [rng.dirichlet([1] * 3), *(rng.dirichlet([0.05] * 3, size=3) for _ in range(nodes - 1))]
    tree = JunctionTree.build([3] * nodes, [(0,), *((node, node + 1) for node in range(nodes - 1))])
    codes = np.where(rng.random((5, nodes)) < 0.5, -1, rng.integers(0, 3, (5, nodes)))
    found = loaded_tree(tree, tables).answer([], Evidence(codes)).log_evidence
    for row in range(5):
        with np.errstate(divide="ignore"):
            forward = np.log(tables[0])
            for node in range(nodes):
                if node:
                    forward = np.logaddexp.reduce(forward[:, None] + np.log(tables[node]), axis=0)
                if codes[row, node] >= 0:
                    forward = np.where(np.arange(3) == codes[row, node], forward, -np.inf)
        assert found[row] == pytest.approx(np.logaddexp.reduce(forward), rel=1e-11)


@pytest.mark.parametrize("seed", range(10))
def test_tiny_numbers_are_as_right_as_others(seed: int) -> None:
    """Every table times ten to a large negative power: the same posteriors, and logarithms that much lower."""
    rng = np.random.default_rng([18, seed])
    network = random_enumerated(rng, most=6)
    pair = some_pair(rng, len(network.sizes))
    evidence, _ = random_evidence(rng, network, pair)
    tiny = loaded_tree(load(network, pair).tree, [table * 1e-290 for table in network.tables])
    usual, found = (each.answer([pair], evidence, np.ones(ROWS)) for each in (load(network, pair), tiny))
    shift = len(network.sizes) * np.log(1e-290)
    np.testing.assert_allclose(found.log_evidence, usual.log_evidence + shift, rtol=1e-12)
    np.testing.assert_allclose(found.posteriors[0], usual.posteriors[0], rtol=0, atol=1e-10)
    for one, other in zip(found.counts, usual.counts, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)


def test_a_small_likelihood_of_a_small_probability_is_not_lost() -> None:
    # Node 1 all but excludes level 0 of node 0; node 2 then excludes level 1 altogether.
    tables = [np.array([0.5, 0.5]), np.array([[1e-200, 1.0], [0.5, 0.5]]), np.array([[0.5, 0.5], [0.0, 1.0]])]
    loaded = loaded_tree(JunctionTree.build([2, 2, 2], [(0,), (0, 1), (0, 2)]), tables)
    codes = np.array([[-1, -1, 0], [-1, -1, 0]])
    found = loaded.answer([(0,), (1,)], soft_evidence(codes, {1: np.array([[1.0, 0.0], [1e-200, 0.0]])}), np.ones(2))
    np.testing.assert_allclose(found.log_evidence, np.log(0.25) - np.array([200, 400]) * np.log(10), rtol=1e-13)
    both = {1: np.array([[1e-200, 1e-320], [1e-200, 1e-320]])}
    found = loaded.answer([(0,), (1,)], soft_evidence(codes, both), np.ones(2))
    np.testing.assert_allclose(found.posteriors[0], [[1, 0], [1, 0]], atol=1e-13)
    np.testing.assert_allclose(found.posteriors[1], [[0, 1], [0, 1]], atol=1e-13)


@pytest.mark.parametrize("weight", [1.0, 1e12])
def test_large_weights_of_unlikely_rows_are_counted(weight: float) -> None:
    # What node 1 says is all but excluded by the only level of node 0 that node 2 leaves.
    tables = [np.array([0.5, 0.5]), np.array([[0.0, 1.0], [1.0, 1e-300]]), np.array([[0.0, 1.0], [0.5, 0.5]])]
    loaded = loaded_tree(JunctionTree.build([2, 2, 2], [(0,), (0, 1), (0, 2)], root=(0, 2)), tables)
    found = loaded.answer([], Evidence(np.array([[-1, 1, 0]] * 2)), np.full(2, weight))
    np.testing.assert_allclose(found.counts[1], [[0, 0], [0, 2 * weight]], rtol=1e-13)
    np.testing.assert_allclose(found.counts[2], [[0, 0], [2 * weight, 0]], rtol=1e-13)


def test_factors_far_apart_are_weighed_by_their_logarithms() -> None:
    tree = JunctionTree.build([2, 2], [(0,), (0, 1)])
    loaded = loaded_tree(tree, [np.array([0.5, 0.5]), np.array([[0.5, 0.5], [0.5, 0.5]])])
    one = np.array([[-5000.0, -9000.0], [3000.0, -np.inf], [-np.inf, -np.inf]])
    other = np.array([[-4000.0, 1.0, 1.0, 2.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    found = loaded.answer([(0,)], Evidence(np.full((3, 2), -1), {(0,): one, (0, 1): other}), np.ones(3))
    np.testing.assert_allclose(found.log_evidence, [-4999 + np.log(0.25), 3000 + np.log(0.5), -np.inf], rtol=1e-13)
    np.testing.assert_allclose(found.posteriors[0], [[1, 0], [1, 0], [0, 0]], atol=1e-13)


@pytest.mark.parametrize("spread", [30.0, 300.0, 3000.0])
@pytest.mark.parametrize("seed", range(20))
def test_logarithms_that_contradict_each_other_are_added_up(seed: int, spread: float) -> None:
    """Each of several factors all but excludes what the others want; the oracle adds logarithms up."""
    rng = np.random.default_rng([20, seed])
    network = random_enumerated(rng, most=6)
    nodes, sizes = len(network.sizes), network.sizes
    scopes = [*{some_pair(rng, nodes) for _ in range(3)}, (int(rng.integers(nodes)),)]
    factors = {scope: rng.normal(size=(ROWS, prod(sizes[node] for node in scope))) * spread for scope in scopes}
    loaded = load(network, *scopes)
    evidence = Evidence(np.full((ROWS, nodes), -1), factors)
    with np.errstate(all="raise"):
        found = loaded.answer(scopes, evidence, np.ones(ROWS))
    with np.errstate(divide="ignore"):
        logs = np.log(network.joint())
    for row in range(ROWS):
        left = logs + sum(
            along(given[row].reshape([sizes[node] for node in scope]), scope, nodes) for scope, given in factors.items()
        )
        total = np.logaddexp.reduce(left, axis=None)
        assert found.log_evidence[row] == pytest.approx(total, rel=1e-12)
        for scope, answer in zip(scopes, found.posteriors, strict=True):
            np.testing.assert_allclose(answer[row], margin(np.exp(left - total), scope).ravel(), rtol=0, atol=1e-11)


def test_no_rows_and_no_nodes() -> None:
    tree = JunctionTree.build([2, 3], [(0,), (0, 1)])
    loaded = loaded_tree(tree, [np.array([0.5, 0.5]), np.full((2, 3), 1 / 3)])
    found = loaded.answer([(1,)], Evidence(np.zeros((0, 2), dtype=int)), np.zeros(0))
    assert found.log_evidence.shape == (0,)
    assert found.posteriors[0].shape == (0, 3)
    assert all(not count.any() for count in found.counts)
    empty = loaded_tree(JunctionTree.build([], [()]), [np.array(0.25)])
    np.testing.assert_allclose(empty.answer([], Evidence(np.zeros((2, 0), dtype=int))).log_evidence, np.log(0.25))


def test_a_network_too_dense_is_refused_by_name_and_cost() -> None:
    nodes = 60
    pairs = list(combinations(range(nodes), 2))
    with pytest.raises(ResourceError, match="sampling") as refused:
        JunctionTree.build([2] * nodes, pairs, names=[f"gene {node}" for node in range(nodes)])
    message = str(refused.value)
    assert "gene 0, gene 1" in message
    assert "67,108,864 are allowed" in message
    assert f"one table of {nodes} nodes" in message
    assert "about 10^18" in message


def test_a_total_beyond_the_room_is_refused_though_no_table_is() -> None:
    scopes = [(0, node) for node in range(1, 40)]
    assert JunctionTree.build([4] * 40, scopes, room=39 * 16).cells == 39 * 16
    with pytest.raises(ResourceError, match=r"needs 624 cells, 16 of them in one table of 2 nodes \(0, "):
        JunctionTree.build([4] * 40, scopes, room=39 * 16 - 1)


def test_a_thousand_nodes_are_ordered_or_refused() -> None:
    rng, nodes = np.random.default_rng(19), 1000
    local = [
        (*sorted({max(0, node - int(back)) for back in rng.integers(1, 6, 3)} - {node}), node) for node in range(nodes)
    ]
    assert JunctionTree.build([3] * nodes, local).cells < 2**20
    far = [(*(int(other) for other in rng.choice(node, min(node, 3), replace=False)), node) for node in range(nodes)]
    with pytest.raises(ResourceError, match=r"needs more than \d+,.* cells, the size of one table of \d\d nodes"):
        JunctionTree.build([3] * nodes, far)


def test_scopes_outside_the_cliques_are_refused() -> None:
    tree = JunctionTree.build([2, 3, 2], [(0,), (0, 1), (2,)])
    loaded = loaded_tree(tree, [np.full(2, 0.5)])
    with pytest.raises(DataError, match=r"no clique of the tree holds the nodes \(0, 2\)"):
        loaded.answer([(0, 2)], Evidence(np.full((1, 3), -1)))
    with pytest.raises(DataError, match="no clique"):
        loaded_tree(JunctionTree.build([2, 2], [(0,)]), []).answer(
            [], Evidence(np.full((1, 2), -1), {(1,): np.zeros((1, 2))})
        )
