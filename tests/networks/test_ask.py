"""Questions to networks against the whole joint table written out, and against pyAgrum on real networks."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyagrum
import pytest

from enumerated import Row, log, margin, normalised, random_codes, random_enumerated, random_likelihoods, soft_evidence
from softcount.errors import DataError, ResourceError
from softcount.networks import network as network_module
from softcount.networks import queries
from softcount.networks.network import Graph, distinct_rows
from softcount.networks.queries import Evidence, Questions

ROWS = 4


def random_rows(rng: np.random.Generator, sizes: list[int]) -> tuple[Evidence, list[Row]]:
    """Every row with other nodes seen, or all with the same, or rows that come again; also sets and likelihoods."""
    codes = random_codes(rng, sizes, ROWS, rng.choice([0.0, 0.4, 0.8, 1.0]))
    kind = rng.integers(3)
    if kind == 1:
        codes = np.where(codes[0] >= 0, random_codes(rng, sizes, ROWS, 0.0), -1)
    elif kind == 2:
        codes = codes[rng.integers(0, 2, ROWS)]
    likelihoods = random_likelihoods(rng, sizes, ROWS) if rng.random() < 0.5 else {}
    told = [Row(codes[row], {node: given[row] for node, given in likelihoods.items()}) for row in range(ROWS)]
    return soft_evidence(codes, likelihoods), told


@pytest.mark.parametrize("seed", range(50))
def test_a_thousand_networks_answer_as_enumeration_does(seed: int) -> None:
    rng = np.random.default_rng([21, seed])
    for _ in range(20):
        network = random_enumerated(rng)
        evidence, told = random_rows(rng, network.sizes)
        questions = Questions(network.graph, network.sizes, network.tables)
        of = tuple(int(node) for node in rng.permutation(len(network.sizes))[: rng.integers(1, 4)])
        together, each = questions.posterior(of, evidence), questions.each(of, evidence)
        logs = questions.log_evidence(evidence)
        likeliest, heights = questions.most_probable(evidence)
        joint = network.joint()
        for row in range(ROWS):
            left = told[row].left(joint)
            posterior = normalised(left)
            assert logs[row] == pytest.approx(log(left.sum()), rel=1e-12, abs=1e-12)
            np.testing.assert_allclose(together[row], margin(posterior, of), rtol=0, atol=1e-12)
            for node, answer in zip(of, each, strict=True):
                np.testing.assert_allclose(answer[row], margin(posterior, (node,)), rtol=0, atol=1e-12)
            assert heights[row] == pytest.approx(log(left.max()), rel=1e-12, abs=1e-12)
            if left.max() > 0:
                assert left[tuple(likeliest[row])] == pytest.approx(left.max(), rel=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_factors_on_several_nodes_are_weighed_too(seed: int) -> None:
    rng = np.random.default_rng([22, seed])
    network = random_enumerated(rng, most=6)
    scope = (2, 0)
    logs = rng.normal(size=(ROWS, network.sizes[2] * network.sizes[0])) * 4
    codes = random_codes(rng, network.sizes, ROWS, 0.5)
    questions = Questions(network.graph, network.sizes, network.tables)
    found = questions.posterior([1, 2], Evidence(codes, {scope: logs}))
    for row in range(ROWS):
        left = Row(codes[row], {}, {scope: logs[row]}).left(network.joint())
        np.testing.assert_allclose(found[row], margin(normalised(left), (1, 2)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_many_rows_together_answer_as_each_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng([23, seed])
    network = random_enumerated(rng)
    codes = random_codes(rng, network.sizes, 40, 0.5)
    codes[20:] = np.where(codes[3] >= 0, random_codes(rng, network.sizes, 20, 0.0), -1)
    questions = Questions(network.graph, network.sizes, network.tables)
    alone = np.concatenate([questions.posterior([1], Evidence(codes[row : row + 1])) for row in range(40)])
    for rows_worth_a_tree in (1, 8, 10**6):
        monkeypatch.setattr(queries, "ROWS_WORTH_A_TREE", rows_worth_a_tree)
        np.testing.assert_allclose(questions.posterior([1], Evidence(codes)), alone, rtol=0, atol=1e-13)


def tree_of(questions: Questions, of: tuple[int, ...], cut: tuple[int, ...]) -> set[int]:
    """The nodes of the tree that such a question gets."""
    return set(questions._pruned((of,), queries.Known(cut, (), ())).tree.tops)


def test_only_what_matters_is_in_the_tree() -> None:
    # 0 -> 1 -> 2 -> 3 and 2 -> 4: nobody asked or saw 4.
    rng = np.random.default_rng(24)
    graph = Graph(tuple("abcde"), ((), (0,), (1,), (2,), (2,)))
    tables = [rng.dirichlet([1, 1], size=[2] * len(own)) for own in graph.parents]
    questions = Questions(graph, [2] * 5, tables)
    assert tree_of(questions, (1,), ()) == {0, 1}
    assert tree_of(questions, (1,), (3,)) == {0, 1, 2}
    assert tree_of(questions, (1,), (2, 3)) == {0, 1}
    assert tree_of(questions, (3,), (2, 0)) == {3}


def test_a_question_on_a_small_part_of_a_dense_network_is_answered() -> None:
    nodes = 40
    graph = Graph(tuple(range(nodes)), tuple(tuple(range(max(0, node - 12), node)) for node in range(nodes)))
    rng = np.random.default_rng(25)
    tables = [rng.dirichlet([1, 1], size=[2] * len(own)) for own in graph.parents]
    questions = Questions(graph, [2] * nodes, tables, room=1000)
    nothing = Evidence(np.full((1, nodes), -1))
    expected = tables[0] @ tables[1]
    np.testing.assert_allclose(questions.posterior([1], nothing)[0], expected, rtol=0, atol=1e-13)
    with pytest.raises(ResourceError, match="by sampling"):
        questions.posterior([nodes - 1], nothing)


def test_what_is_impossible_far_from_the_question_is_noticed() -> None:
    # 0 stands alone; 1 -> 2 can never both be 1.
    graph = Graph(("a", "b", "c"), ((), (), (1,)))
    tables = [np.array([0.3, 0.7]), np.array([0.5, 0.5]), np.array([[0.5, 0.5], [1.0, 0.0]])]
    questions = Questions(graph, [2, 2, 2], tables)
    codes = np.array([[-1, 1, 1], [-1, 0, 1], [-1, -1, 1]])
    with np.errstate(all="raise"):
        for rows in (codes, codes[:1], np.repeat(codes, 200, axis=0)):
            found = questions.posterior([0], Evidence(rows))
            impossible = (rows == [-1, 1, 1]).all(axis=1)
            np.testing.assert_allclose(found, np.where(impossible[:, None], 0, [0.3, 0.7]), rtol=1e-14)
            np.testing.assert_array_equal(questions.log_evidence(Evidence(rows)) == -np.inf, impossible)


def test_separated_evidence_changes_nothing() -> None:
    rng = np.random.default_rng(26)
    for _ in range(200):
        network = random_enumerated(rng)
        names = network.graph.names
        one, other, *given = (int(node) for node in rng.permutation(len(names))[:4])
        if not network.graph.is_separated(names[one], names[other], [names[node] for node in given]):
            continue
        codes = np.full((2, len(names)), -1)
        codes[:, given] = random_codes(rng, [network.sizes[node] for node in given], 1, 0.0)
        codes[1, other] = rng.integers(network.sizes[other])
        questions = Questions(network.graph, network.sizes, network.tables)
        without, told = (questions.posterior([one], Evidence(codes[row : row + 1])) for row in range(2))
        if told.any():
            np.testing.assert_allclose(told, without, rtol=0, atol=1e-13)


def test_a_tree_is_made_once_for_a_question_that_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    network = random_enumerated(np.random.default_rng(27))
    questions = Questions(network.graph, network.sizes, network.tables)
    monkeypatch.setattr(queries, "KEPT", 2)
    asked = [((node,),) for node in (0, 1, 0, 2, 0)]
    trees = [questions._pruned(of, queries.Known((), (), ())) for of in asked]
    assert trees[2] is trees[0]
    assert len(questions._kept) <= 2
    assert trees[4].tree == trees[0].tree


def test_rows_with_equal_keys_are_still_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(28).integers(-1, 3, (100, 3))
    for multipliers in (None, np.zeros(3, dtype=np.uint64)):
        if multipliers is not None:
            monkeypatch.setattr(network_module, "_hash_rows", lambda rows: np.zeros(len(rows)))
        first, again = distinct_rows(rows)
        np.testing.assert_array_equal(rows[first][again], rows)
        assert len(first) == len({tuple(row) for row in rows.tolist()})


def test_bad_questions_are_refused() -> None:
    graph = Graph(("a", "b"), ((), (0,)))
    questions = Questions(graph, [2, 2], [np.array([0.5, 0.5]), np.array([[0.5, 0.5], [0.2, 0.8]])])
    for of in ([], [0, 0]):
        with pytest.raises(DataError, match="one node, or for several different nodes"):
            questions.posterior(of, Evidence(np.full((1, 2), -1)))


def read(path: Path, folder: Path) -> tuple[pyagrum.BayesNet, Questions]:
    """A network by pyAgrum's own reader, which keeps seven digits: rows made to add up to one, for it and for us."""
    plain = folder / "network.bif"
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    network = pyagrum.loadBN(str(plain))
    names = sorted(network.names())
    parents, tables = [], []
    for name in names:
        table = network.cpt(name).normalizeAsCPT()
        axes = list(reversed(table.names))
        order = [*(other for other in axes if other != name), name]
        parents.append(tuple(names.index(other) for other in order[:-1]))
        tables.append(np.asarray(table.toarray()).transpose([axes.index(other) for other in order]))
    sizes = [network.variable(name).domainSize() for name in names]
    return network, Questions(Graph(tuple(names), tuple(parents)), sizes, tables)


@pytest.mark.parametrize(
    "name", ["asia", "cancer", "survey", "earthquake", "sachs", "insurance", "alarm", "hailfinder"]
)
def test_real_networks_answer_as_pyagrum_does(name: str, data: Callable[[str], Path], tmp_path: Path) -> None:
    network, questions = read(data(f"bif/{name}.bif.gz"), tmp_path)
    names, sizes, rng = questions.graph.names, questions.sizes, np.random.default_rng(29)
    codes = np.where(rng.random((4, len(names))) < 0.15, rng.integers(0, sizes, (4, len(names))), -1)
    codes[0] = -1
    answers = questions.each(range(len(names)), Evidence(codes))
    logs = questions.log_evidence(Evidence(codes))
    compared = 0
    for row in np.flatnonzero(logs > -np.inf):
        theirs = pyagrum.LazyPropagation(network)
        theirs.setEvidence({names[node]: int(code) for node, code in enumerate(codes[row]) if code >= 0})
        theirs.makeInference()
        for node, answer in enumerate(answers):
            np.testing.assert_allclose(answer[row], theirs.posterior(names[node]).toarray(), rtol=0, atol=1e-9)
            compared += 1
    assert compared >= len(names)
