"""Expected counts of rows with holes, held against the whole joint table written out for every row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from small_networks import Scope, SmallNetwork, drawn, marginal, random_network, spread, with_holes
from softcount import BayesNet
from softcount.networks import expected_counts
from softcount.networks.expected_counts import Expected, IncompleteRows
from softcount.networks.network import Graph


@dataclass(frozen=True)
class Case:
    network: SmallNetwork
    codes: np.ndarray
    weights: np.ndarray
    extras: tuple[Scope, ...] = ()
    factors: tuple[np.ndarray, ...] = ()

    @property
    def plan(self) -> IncompleteRows:
        return IncompleteRows.of(self.network.graph, self.network.sizes, self.codes, self.weights, self.extras)

    def expect(self) -> Expected:
        return self.plan.expect(self.network.tables, self.factors)

    def take(self, rows: np.ndarray) -> Case:
        factors = tuple(factor[rows] for factor in self.factors)
        return Case(self.network, self.codes[rows], self.weights[rows], self.extras, factors)


def posterior_of_row(case: Case, row: int) -> tuple[np.ndarray, float]:
    """Of the whole joint table, what the row leaves; and the logarithm of what that was."""
    sizes = case.network.sizes
    joint, log = case.network.joint, 0.0
    for scope, factor in zip(case.extras, case.factors, strict=True):
        top = max(factor[row].max(), -1e300)
        log += top
        joint = joint * spread(np.exp(factor[row] - top).reshape([sizes[node] for node in scope]), scope, len(sizes))
    for node, code in enumerate(case.codes[row]):
        if code >= 0:
            joint = joint * spread(np.eye(sizes[node])[code], (node,), len(sizes))
    total = joint.sum()
    if total == 0:
        return joint, -np.inf
    return joint / total, log + np.log(total)


def by_hand(case: Case) -> tuple[Expected, np.ndarray]:
    """The oracle: row by row, cell by cell."""
    families, sizes = case.network.graph.families, case.network.sizes
    counts = [np.zeros(table.shape) for table in case.network.tables]
    cells = [int(np.prod([sizes[node] for node in scope])) for scope in case.extras]
    posteriors = [np.zeros((len(case.codes), each)) for each in cells]
    logs = np.zeros(len(case.codes))
    for row, weight in enumerate(case.weights):
        joint, logs[row] = posterior_of_row(case, row)
        for count, scope in zip(counts, families, strict=True):
            count += weight * marginal(joint, scope)
        for posterior, scope in zip(posteriors, case.extras, strict=True):
            posterior[row] = marginal(joint, scope).ravel()
    there = case.weights > 0
    total = float((case.weights[there] * logs[there]).sum())
    flat = [count.reshape(-1, size) for count, size in zip(counts, sizes, strict=True)]
    return Expected(flat, total, posteriors, 0), logs


def assert_alike(found: Expected, right: Expected, within: float = 1e-12) -> None:
    for one, other in zip(found.counts, right.counts, strict=True):
        np.testing.assert_allclose(one, other, rtol=within, atol=within)
    for one, other in zip(found.posteriors, right.posteriors, strict=True):
        np.testing.assert_allclose(one, other, rtol=within, atol=within)
    np.testing.assert_allclose(found.log_likelihood, right.log_likelihood, rtol=within, atol=within)


def random_case(seed: int, zeros: float = 0.0, extras: int = 0, rows: int = 25) -> Case:
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 8))
    network = random_network(rng, nodes, zeros)
    codes = with_holes(rng, drawn(rng, network, rows), rng.choice([0.1, 0.4, 0.7]), int(rng.integers(0, 3)))
    scopes = tuple(
        tuple(int(node) for node in rng.choice(nodes, rng.integers(1, min(nodes, 3) + 1), replace=False))
        for _ in range(extras)
    )
    factors = tuple(rng.normal(size=(rows, int(np.prod([network.sizes[x] for x in scope])))) * 3 for scope in scopes)
    return Case(network, codes, rng.integers(0, 4, rows) * rng.random(), scopes, factors)


def each_way(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """All parts enumerated, in probabilities where these suffice or in logarithms; or all rows through a tree."""
    monkeypatch.setattr(expected_counts, "TINY", np.inf if way == "logs" else 1e-200)
    monkeypatch.setattr(expected_counts, "ROOM", 0 if way == "tree" else 2**25)


ways = pytest.mark.parametrize("way", ["plain", "logs", "tree"])


@ways
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_counts_and_likelihood_are_those_of_the_whole_joint_table(
    monkeypatch: pytest.MonkeyPatch, way: str, zeros: float
) -> None:
    each_way(monkeypatch, way)
    for seed in range(60):
        case = random_case(seed, zeros)
        right, logs = by_hand(case)
        assert_alike(case.expect(), right)
        np.testing.assert_allclose(case.plan.row_logs(case.network.tables), logs, rtol=1e-12, atol=1e-13)


@ways
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_something_that_hangs_on_nodes_row_by_row_counts_as_their_evidence(
    monkeypatch: pytest.MonkeyPatch, way: str, zeros: float
) -> None:
    each_way(monkeypatch, way)
    for seed in range(60):
        case = random_case(seed, zeros, extras=1 + seed % 3)
        right, logs = by_hand(case)
        assert_alike(case.expect(), right)
        found = case.plan.row_logs(case.network.tables, case.factors)
        np.testing.assert_allclose(found, logs, rtol=1e-12, atol=1e-13)


def test_one_scope_given_twice_is_its_two_factors_multiplied() -> None:
    case = random_case(3, extras=1)
    scope, factor = case.extras[0], case.factors[0]
    twice = Case(case.network, case.codes, case.weights, (scope, scope), (factor / 3, factor * 2 / 3))
    found, right = twice.expect(), case.expect()
    assert_alike(Expected(found.counts, found.log_likelihood, found.posteriors[:1], 0), right)
    np.testing.assert_array_equal(found.posteriors[0], found.posteriors[1])


@ways
def test_every_node_is_counted_as_often_as_there_are_rows(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    each_way(monkeypatch, way)
    for seed in range(20):
        case = random_case(seed, rows=200)
        for count in case.expect().counts:
            np.testing.assert_allclose(count.sum(), case.weights.sum(), rtol=1e-13)


@ways
def test_two_halves_add_to_the_whole_and_the_order_of_rows_is_nothing(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    each_way(monkeypatch, way)
    for seed in range(20):
        case = random_case(seed, extras=seed % 2, rows=120)
        rows = np.random.default_rng(seed).permutation(120)
        whole, mixed = case.expect(), case.take(rows).expect()
        one, other = case.take(rows[:40]).expect(), case.take(rows[40:]).expect()
        halves = [a + b for a, b in zip(one.counts, other.counts, strict=True)]
        shuffled = [posterior[rows] for posterior in whole.posteriors]
        assert_alike(mixed, Expected(whole.counts, whole.log_likelihood, shuffled, 0), 1e-13)
        total = one.log_likelihood + other.log_likelihood
        assert_alike(Expected(halves, total, [], 0), Expected(whole.counts, whole.log_likelihood, [], 0), 1e-13)


def test_a_weight_of_two_is_the_row_twice() -> None:
    case = random_case(11, rows=30)
    weighed = Case(case.network, case.codes, np.where(np.arange(30) < 10, 2.0, 1.0))
    repeated = Case(case.network, np.concatenate([case.codes, case.codes[:10]]), np.ones(40))
    assert_alike(weighed.expect(), repeated.expect(), 1e-13)


@ways
def test_a_hidden_class_over_columns_is_a_mixture(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    each_way(monkeypatch, way)
    rng = np.random.default_rng(5)
    rows, classes = 400, 5
    share, seen = rng.dirichlet(np.ones(classes)), rng.dirichlet(np.ones(3), classes)
    codes = np.stack([np.full(rows, -1), rng.integers(0, 3, rows)], axis=1)
    density = -0.5 * (rng.normal(size=(rows, 1)) * 9 - np.arange(classes)) ** 2
    graph = Graph.of([("class", "column")])
    found = IncompleteRows.of(graph, (classes, 3), codes, extras=[(0,)]).expect([share, seen], [density])
    joint = np.log(share) + np.log(seen[:, codes[:, 1]].T) + density
    evidence = np.logaddexp.reduce(joint, axis=1)
    posterior = np.exp(joint - evidence[:, None])
    np.testing.assert_allclose(found.posteriors[0], posterior, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.counts[0][0], posterior.sum(axis=0), rtol=1e-13)
    np.testing.assert_allclose(found.counts[1], posterior.T @ np.eye(3)[codes[:, 1]], rtol=1e-13)
    np.testing.assert_allclose(found.log_likelihood, evidence.sum(), rtol=1e-13)


@ways
def test_densities_far_beyond_what_a_double_holds_are_shared_out(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    each_way(monkeypatch, way)
    graph = Graph.of([("a", "b")])
    tables = [np.array([0.5, 0.5]), np.array([[1.0, 0.0], [0.25, 0.75]])]
    rows = IncompleteRows.of(graph, (2, 2), np.array([[-1, 1], [-1, -1]]), extras=[(0,), (1,)])
    factors = [np.array([[0.0, -5000.0], [-4000.0, 0.0]]), np.array([[0.0, -3000.0], [0.0, -4000.0]])]
    found = rows.expect(tables, factors)
    np.testing.assert_allclose(found.posteriors[0], [[0, 1], [0, 1]], atol=1e-290)
    np.testing.assert_allclose(found.log_likelihood, np.log(0.375) - 8000 + np.log(0.125), rtol=1e-14)


@ways
def test_tables_down_to_1e_300_lose_no_digits(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    each_way(monkeypatch, way)
    graph = Graph.of([("a", "b"), ("a", "c"), ("a", "d")])
    rare = np.array([[1e-300, 1.0], [3e-300, 1.0]])
    tables = [np.array([0.25, 0.75]), rare, rare, rare]
    found = IncompleteRows.of(graph, (2, 2, 2, 2), np.array([[-1, 0, 0, 0], [-1, 0, 0, -1]])).expect(tables)
    first = np.array([0.25, 0.75 * 27]) / (0.25 + 0.75 * 27)
    second = np.array([0.25, 0.75 * 9]) / (0.25 + 0.75 * 9)
    np.testing.assert_allclose(found.counts[0][0], first + second, rtol=1e-12)
    right = np.log(0.25 + 0.75 * 27) + np.log(0.25 + 0.75 * 9) - 1500 * np.log(10)
    np.testing.assert_allclose(found.log_likelihood, right, rtol=1e-14)


@ways
def test_a_row_that_cannot_be_is_named_and_counts_for_nothing(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    each_way(monkeypatch, way)
    graph = Graph.of([("a", "b"), ("c", "d")])
    tables = [np.array([0.5, 0.5]), np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([0.4, 0.6]), np.full((2, 2), 0.5)]
    codes = np.array([[-1, 1, -1, 0], [-1, 0, -1, 1], [0, 0, 1, 1], [-1, 1, 1, -1]])
    rows = IncompleteRows.of(graph, (2, 2, 2, 2), codes, np.array([1.0, 2.0, 3.0, 4.0]), [(2,)])
    factors = [np.zeros((4, 2))]
    found = rows.expect(tables, factors)
    assert found.log_likelihood == -np.inf
    possible = np.array([0, 3])
    right = IncompleteRows.of(graph, (2, 2, 2, 2), codes[possible], np.array([1.0, 4.0])).expect(tables)
    assert_alike(Expected(found.counts, 0.0, [], 0), Expected(right.counts, 0.0, [], 0))
    np.testing.assert_allclose(found.posteriors[0], [[0.4, 0.6], [0, 0], [0, 0], [0, 1]])
    np.testing.assert_array_equal(np.isinf(rows.row_logs(tables, factors)), [False, True, True, False])
    possible_tables = [tables[0], np.full((2, 2), 0.5), *tables[2:]]
    assert np.isfinite(rows.row_logs(possible_tables, factors)).all()


def test_a_row_of_no_weight_that_cannot_be_is_no_harm() -> None:
    graph = Graph.of([("a", "b")])
    tables = [np.array([0.5, 0.5]), np.array([[0.0, 1.0], [0.0, 1.0]])]
    found = IncompleteRows.of(graph, (2, 2), np.array([[-1, 0], [0, 1]]), np.array([0.0, 1.0])).expect(tables)
    np.testing.assert_allclose(found.log_likelihood, np.log(0.5))
    np.testing.assert_array_equal(found.counts[0], [[1.0, 0.0]])


def test_no_rows_and_no_holes_are_fine() -> None:
    case = random_case(2)
    none = case.take(np.arange(0)).expect()
    assert none.log_likelihood == 0.0
    assert all(not count.any() for count in none.counts)
    codes = drawn(np.random.default_rng(1), case.network, 50)
    whole = Case(case.network, codes, np.ones(50))
    assert_alike(whole.expect(), by_hand(whole)[0])


@pytest.mark.parametrize("room", [0, 40])
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_rows_with_parts_that_have_no_room_are_the_same_by_junction_tree(
    monkeypatch: pytest.MonkeyPatch, room: int, zeros: float
) -> None:
    monkeypatch.setattr(expected_counts, "ROOM", room)
    for seed in range(40):
        case = random_case(seed, zeros, extras=seed % 3)
        right, logs = by_hand(case)
        found = case.expect()
        assert_alike(found, right)
        assert found.sampled == 0
        np.testing.assert_allclose(case.plan.row_logs(case.network.tables, case.factors), logs, rtol=1e-12, atol=1e-13)


@ways
@pytest.mark.parametrize("least", [0.1, 1e-140])
def test_a_long_hidden_chain_is_summed_node_by_node(monkeypatch: pytest.MonkeyPatch, way: str, least: float) -> None:
    """2 to the 700th configurations, far less likely than any double; by hand, forwards."""
    each_way(monkeypatch, way)
    rng = np.random.default_rng(8)
    length, rows = 700, 3
    parents = [() if not at else (at - 1,) for at in range(length)] + [(at,) for at in range(length)]
    graph = Graph(tuple(range(2 * length)), tuple(parents))
    start, move = rng.dirichlet(np.ones(2)), rng.dirichlet(np.ones(2), 2)
    show = np.array([[least, 2 * least, 1 - 3 * least], [3 * least, 1 - 4 * least, least]])
    shown = rng.integers(0, 3, (rows, length))
    codes = np.concatenate([np.full((rows, length), -1), shown], axis=1)
    plan = IncompleteRows.of(graph, (2,) * length + (3,) * length, codes)
    logs = plan.row_logs([start] + [move] * (length - 1) + [show] * length)
    ahead = np.log(start) + np.log(show[:, shown[:, 0]].T)
    for at in range(1, length):
        ahead = np.logaddexp.reduce(ahead[:, :, None] + np.log(move), axis=1) + np.log(show[:, shown[:, at]].T)
    assert logs.max() < -740
    np.testing.assert_allclose(logs, np.logaddexp.reduce(ahead, axis=1), rtol=1e-13)


def test_impossible_rows_without_room_are_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected_counts, "ROOM", 0)
    graph = Graph.of([("a", "b"), ("b", "c")])
    tables = [np.array([0.5, 0.5]), np.array([[0.0, 1.0], [0.0, 1.0]]), np.full((2, 2), 0.5)]
    rows = IncompleteRows.of(graph, (2, 2, 2), np.array([[-1, 1, 0], [-1, 0, 0], [0, 1, 1]]))
    found = rows.expect(tables)
    assert found.log_likelihood == -np.inf
    np.testing.assert_array_equal(np.isinf(rows.row_logs(tables)), [False, True, False])
    np.testing.assert_allclose(found.counts[0], [[1.5, 0.5]])
    np.testing.assert_allclose(found.counts[1].sum(), 2.0)


def test_where_exact_counts_cost_too_much_they_are_sampled_and_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected_counts, "ROOM", 0)
    monkeypatch.setattr(expected_counts, "TREE_CELLS", 1)
    monkeypatch.setattr(expected_counts, "PATTERN_TREE_CELLS", 1)
    for seed in range(4):
        case = random_case(seed, extras=seed % 3, rows=300)
        right, _ = by_hand(case)
        found = case.expect()
        assert found.sampled == (case.codes < 0).any(axis=1).sum()
        total = case.weights.sum()
        for one, other in zip(found.counts, right.counts, strict=True):
            np.testing.assert_allclose(one.sum(), total, rtol=1e-12)
            np.testing.assert_allclose(one, other, atol=0.02 * total)
        for one, other in zip(found.posteriors, right.posteriors, strict=True):
            np.testing.assert_allclose(one.sum(axis=1), 1.0, rtol=1e-12)
            assert abs(one - other).mean() < 0.03
        assert abs(found.log_likelihood / right.log_likelihood - 1) < 0.03
        again = case.expect()
        assert found.log_likelihood == again.log_likelihood
        np.testing.assert_array_equal(found.counts[0], again.counts[0])


@pytest.mark.parametrize("tree", [None, "large"])
@pytest.mark.parametrize("seed", range(6))
def test_rows_with_trees_of_their_own_are_exact(seed: int, tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected_counts, "ROOM", 0)
    if tree is None:
        monkeypatch.setattr(expected_counts, "TREE_CELLS", 1)
    monkeypatch.setattr(expected_counts, "WORTH_A_TREE", 0)
    case = random_case(seed, extras=seed % 3, rows=60)
    right, _ = by_hand(case)
    found = case.expect()
    assert found.sampled == 0
    assert found.log_likelihood == pytest.approx(right.log_likelihood, rel=1e-12)
    for one, other in zip(found.counts, right.counts, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)
    for one, other in zip(found.posteriors, right.posteriors, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)


def test_some_rows_have_trees_and_the_others_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected_counts, "ROOM", 0)
    monkeypatch.setattr(expected_counts, "TREE_CELLS", 1)
    monkeypatch.setattr(expected_counts, "PATTERN_TREE_CELLS", 12)
    case = random_case(1, extras=0, rows=300)
    right, _ = by_hand(case)
    found = case.expect()
    assert 0 < found.sampled < (case.codes < 0).any(axis=1).sum()
    total = case.weights.sum()
    for one, other in zip(found.counts, right.counts, strict=True):
        np.testing.assert_allclose(one.sum(), total, rtol=1e-12)
        np.testing.assert_allclose(one, other, atol=0.02 * total)
    assert abs(found.log_likelihood / right.log_likelihood - 1) < 0.03


def test_a_fit_says_of_how_many_rows_it_knows_by_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": ["x", "y", None, "x"], "b": ["x", None, "y", "y"], "c": ["x", "y", "y", None]}
    edges = [("a", "b"), ("b", "c"), ("a", "c")]
    assert not any("sampling" in note for note in BayesNet(edges).fit(rows).notes_)
    monkeypatch.setattr(expected_counts, "ROOM", 0)
    monkeypatch.setattr(expected_counts, "TREE_CELLS", 1)
    assert not any("sampling" in note for note in BayesNet(edges).fit(rows).notes_)
    monkeypatch.setattr(expected_counts, "PATTERN_TREE_CELLS", 1)
    assert any(note.startswith("3 rows show too little") for note in BayesNet(edges).fit(rows).notes_)


def test_a_network_too_dense_for_a_junction_tree_is_sampled() -> None:
    rng = np.random.default_rng(3)
    nodes = 80
    parents = tuple(tuple(int(x) for x in rng.choice(node, min(node, 7), replace=False)) for node in range(nodes))
    graph = Graph(tuple(range(nodes)), parents)
    tables = [rng.dirichlet(np.ones(2) * 3, (2,) * len(own)) for own in parents]
    codes = rng.integers(0, 2, (6, nodes))
    codes[:4, :70] = -1
    found = IncompleteRows.of(graph, (2,) * nodes, codes).expect(tables)
    assert found.sampled == 4
    assert np.isfinite(found.log_likelihood)
    for count in found.counts:
        np.testing.assert_allclose(count.sum(), 6.0, rtol=1e-12)


def test_equal_parts_are_found_in_whatever_block_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(10):
        case = random_case(seed, rows=60)
        whole = case.plan
        right = whole.expect(case.network.tables)
        monkeypatch.setattr(expected_counts, "BLOCK", 7)
        found = case.plan
        assert_alike(found.expect(case.network.tables), right, 1e-13)
        assert [len(group.weights) for group in found.groups] == [len(group.weights) for group in whole.groups]
        np.testing.assert_allclose(
            found.row_logs(case.network.tables), whole.row_logs(case.network.tables), rtol=1e-13, atol=1e-14
        )
        monkeypatch.undo()


@ways
def test_em_on_expected_counts_never_lowers_the_likelihood(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    each_way(monkeypatch, way)
    for seed in range(5):
        case = random_case(seed, rows=80)
        rng = np.random.default_rng(seed)
        tables = [rng.dirichlet(np.ones(table.shape[-1]), table.shape[:-1]) for table in case.network.tables]
        reached = -np.inf
        for _ in range(15):
            found = case.plan.expect(tables)
            assert found.log_likelihood >= reached - 1e-10
            reached = found.log_likelihood
            totals = [count.sum(axis=1, keepdims=True) for count in found.counts]
            tables = [
                np.where(total > 0, count / np.where(total > 0, total, 1.0), 1 / count.shape[1]).reshape(table.shape)
                for count, total, table in zip(found.counts, totals, tables, strict=True)
            ]


def test_all_ways_have_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(20):
        case = random_case(seed, zeros=0.2 * (seed % 2), extras=seed % 3, rows=60)
        found = []
        for way in ("plain", "logs", "tree"):
            each_way(monkeypatch, way)
            found.append(case.expect())
        assert_alike(found[0], found[1], 1e-13)
        assert_alike(found[0], found[2], 1e-13)


@ways
def test_totals_of_many_rows_keep_their_digits(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    each_way(monkeypatch, way)
    rng = np.random.default_rng(6)
    network = random_network(rng, 6)
    rows = 60_000
    codes = with_holes(rng, drawn(rng, network, rows), 0.3, 1)
    weights, factor = rng.random(rows) + 0.1, rng.normal(size=(rows, network.sizes[0]))
    plan = IncompleteRows.of(network.graph, network.sizes, codes, weights, [(0,)])
    found = plan.expect(network.tables, [factor])
    for count in found.counts:
        np.testing.assert_allclose(math.fsum(count.ravel()), math.fsum(weights), rtol=1e-14)
    right = [math.fsum(weights * column) for column in found.posteriors[0].T]
    np.testing.assert_allclose(found.counts[0].sum(axis=0), right, rtol=1e-13)
    logs = plan.row_logs(network.tables, [factor])
    np.testing.assert_allclose(found.log_likelihood, math.fsum(weights * logs), rtol=1e-13)
