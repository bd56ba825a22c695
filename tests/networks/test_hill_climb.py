"""The best graph, against all graphs of four nodes, and from rows of known networks."""

import gzip
import math

import numpy as np
import pytest
from msgspec.structs import replace

from networks.plain_structures import all_graphs, drawn_codes
from softcount.errors import DataError
from softcount.networks import structure_search as exact_module
from softcount.networks.network import Graph
from softcount.networks.scores import Bdeu, Bic, CodeCounts, EdgeRules, FamilyScores, family_score, network_score
from softcount.networks.structure_search import ADD, DROP, TURN, Effort, GraphClimb, best_move, search_graph

GRAPHS = all_graphs(4)
CLIMB = Effort(restarts=40, exact=0)


def edges(graph):
    return {(parent, child) for child, own in enumerate(graph.parents) for parent in own}


def best_of_all(rows, score, keep=lambda graph: True):
    return max(
        sum(family_score(rows, score, node, own) for node, own in enumerate(graph.parents))
        for graph in GRAPHS
        if keep(graph)
    )


@pytest.mark.parametrize("score", [Bic(), Bdeu(1.0), Bdeu(10.0)], ids=repr)
@pytest.mark.parametrize("effort", [Effort(), CLIMB], ids=["exact", "climb"])
@pytest.mark.parametrize("seed", range(4))
def test_no_graph_of_four_nodes_is_better(score, effort, seed):
    codes, sizes = drawn_codes(seed, 4, 200)
    rows = CodeCounts(codes, sizes, np.random.default_rng(seed).integers(1, 4, 200) * 1.0)
    found = search_graph(rows, score, effort=effort)
    assert found.exact == (effort.exact > 0)
    assert found.score == pytest.approx(best_of_all(rows, score), abs=1e-9)
    assert found.score == pytest.approx(network_score(rows, score, found.graph), abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_no_graph_that_keeps_the_rules_is_better_and_a_climb_ends_where_no_move_gains(seed):
    codes, sizes = drawn_codes(seed, 4, 300)
    rows = CodeCounts(codes, sizes)
    rng = np.random.default_rng(seed)
    pairs = [tuple(pair) for pair in rng.permutation([(a, b) for a in range(4) for b in range(4) if a != b]).tolist()]
    rules = EdgeRules(frozenset(pairs[:1]), frozenset(pairs[1:5]), max_parents=2, max_cells=20)

    def keeps(graph):
        tables = [math.prod(sizes[node] for node in family) for family in graph.families if len(family) > 1]
        return (
            rules.required <= edges(graph)
            and not rules.forbidden & edges(graph)
            and all(len(own) <= 2 for own in graph.parents)
            and all(cells <= 20 for cells in tables)
        )

    best = search_graph(rows, Bdeu(), rules)
    assert keeps(best.graph)
    assert best.score == pytest.approx(best_of_all(rows, Bdeu(), keeps), abs=1e-9)
    climbed = search_graph(rows, Bdeu(), rules, effort=CLIMB)
    assert keeps(climbed.graph)
    moves = GraphClimb(FamilyScores(rows, Bdeu(), rules), climbed.graph.parents)
    assert max(moves.gains()[tuple(move)] for move in np.ndindex(3, 4, 4) if moves.is_legal(*move)) <= 1e-8


@pytest.mark.parametrize("seed", range(4))
def test_a_climb_of_eight_nodes_comes_to_the_best_of_all(seed):
    codes, sizes = drawn_codes(seed, 8, 400)
    rows = CodeCounts(codes, sizes)
    rules = EdgeRules(max_parents=3)
    best = search_graph(rows, Bic(), rules)
    climbed = search_graph(rows, Bic(), rules, effort=CLIMB)
    assert best.exact
    assert not climbed.exact
    assert climbed.score == pytest.approx(best.score, abs=1e-8)


def test_large_tables_are_climbed_not_weighed(monkeypatch):
    codes, sizes = drawn_codes(1, 5, 100)
    monkeypatch.setattr(exact_module, "CELLS", 5 * 2 * 3**4 - 1)
    assert not search_graph(CodeCounts(codes, sizes), Bic()).exact


@pytest.mark.parametrize("seed", range(3))
def test_gains_and_paths_are_right_after_any_moves(seed):
    codes, sizes = drawn_codes(seed, 6, 150)
    rows = CodeCounts(codes, sizes)
    rules = EdgeRules(required=frozenset({(0, 1)}), forbidden=frozenset({(2, 3)}), max_parents=3)
    families = FamilyScores(rows, Bdeu(), rules)
    climb = GraphClimb(families, ((), (0,), (), (), (), ()))
    rng = np.random.default_rng(seed)
    for _ in range(40):
        moves = [move for move in np.argwhere(np.isfinite(climb.gains())).tolist() if climb.is_legal(*move)]
        assert {tuple(move) for move in moves} == allowed_moves(climb.parents, rules)
        kind, parent, child = moves[rng.integers(len(moves))]
        before, gain = network_of(rows, climb), climb.gains()[kind, parent, child]
        climb.move(kind, parent, child)
        assert climb.total == pytest.approx(network_of(rows, climb), abs=1e-9)
        assert climb.total - before == pytest.approx(gain, abs=1e-9)


def network_of(rows, climb):
    return network_score(rows, Bdeu(), Graph(tuple(range(6)), climb.parents))


def allowed_moves(parents, rules):
    """Every add, drop and turn that leaves a graph, by making it."""
    found = set()
    for a in range(len(parents)):
        for b in range(len(parents)):
            there = a in parents[b]
            if a == b or (there and (a, b) in rules.required):
                continue
            kinds = [DROP, TURN] if there else [] if b in parents[a] else [ADD]
            for kind in kinds:
                changed = [{*own} for own in parents]
                changed[b] ^= {a}
                if kind == TURN:
                    changed[a] |= {b}
                pairs = {(parent, child) for child, own in enumerate(changed) for parent in own}
                if kind != DROP and (rules.forbidden & pairs or max(map(len, changed)) > rules.max_parents):
                    continue
                try:
                    Graph(tuple(range(len(parents))), tuple(tuple(sorted(own)) for own in changed))
                except DataError:
                    continue
                found.add((kind, a, b))
    return found


def test_of_moves_that_differ_by_rounding_the_first_is_made():
    codes, sizes = drawn_codes(1, 3, 50)
    climb = GraphClimb(FamilyScores(CodeCounts(codes, sizes), Bic(), EdgeRules()), ((), (), ()))
    gains = np.full((3, 3, 3), -np.inf)
    gains[ADD, 0, 1], gains[ADD, 1, 0], gains[ADD, 1, 2] = 1.0, 1.0 + 1e-12, 0.5
    assert best_move(climb, gains, 1e-9) == (ADD, 0, 1)


def test_the_same_seed_gives_the_same_graph_in_any_order_of_rows():
    codes, sizes = drawn_codes(3, 12, 300)
    effort = Effort(seed=5)
    one = search_graph(CodeCounts(codes, sizes), Bic(), effort=effort)
    assert search_graph(CodeCounts(codes, sizes), Bic(), effort=effort) == one
    assert search_graph(CodeCounts(codes[::-1], sizes), Bic(), effort=effort) == one


def test_constant_columns_are_left_alone():
    codes, sizes = drawn_codes(2, 4, 80)
    more, levels = np.concatenate([codes, np.zeros((80, 2), dtype=int)], axis=1), (*sizes, 1, 3)
    for effort in (Effort(), Effort(exact=0)):
        found = search_graph(CodeCounts(more, levels), Bic(), effort=effort).graph
        assert not {4, 5} & {node for edge in found.edges for node in edge}


def test_one_node_no_node_and_no_rows():
    assert search_graph(CodeCounts(np.array([[0], [1]]), (2,)), Bic()).graph.parents == ((),)
    for effort in (Effort(), Effort(exact=0)):
        assert search_graph(CodeCounts(np.zeros((0, 3), dtype=int), (2, 2, 2)), Bdeu(), effort=effort).graph.edges == []


@pytest.mark.parametrize("column", [[0, 1, -1], [-1, -1, -1]])
def test_holes_are_refused(column):
    rows = CodeCounts(np.array([[0, 1, 1], column, [1, 0, 1]]).T, (2, 2, 2))
    with pytest.raises(DataError, match=r"node 1 was not seen in all rows.*structural EM"):
        search_graph(rows, Bic())


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (EdgeRules(required=frozenset({(0, 1), (1, 2), (2, 0)})), "the edges form a cycle"),
        (EdgeRules(frozenset({(0, 2), (1, 2)}), max_cells=7), "node 2 starts with 8 cells"),
    ],
)
def test_rules_that_cannot_be_kept_are_refused(rules, words):
    rows = CodeCounts(np.zeros((4, 3), dtype=int), (2, 2, 2))
    with pytest.raises(DataError, match=words):
        search_graph(rows, Bic(), rules)


@pytest.mark.parametrize("score", [Bic(), Bdeu(1.0)], ids=repr)
@pytest.mark.parametrize("name", ["cancer", "earthquake", "survey", "asia", "sachs"])
def test_known_networks_are_found_again(name, score, data, tmp_path):
    """From 100,000 rows, up to arrows that rows cannot show; asia's weak edge from `asia` to `tub` among them."""
    codes, sizes, truth = drawn_from(data(f"bif/{name}.bif.gz"), tmp_path, 100_000)
    rows = CodeCounts(codes, sizes)
    for effort in (Effort(), Effort(exact=0)):
        found = search_graph(rows, score, effort=effort)
        assert found.graph.is_equivalent(truth)


def drawn_from(path, folder, rows):
    """Rows of a network that pyAgrum reads, and its graph."""
    gum = pytest.importorskip("pyagrum")
    plain = folder / "network.bif"
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    network = gum.loadBN(str(plain))
    rng, codes = np.random.default_rng(1), {}
    for node in network.topologicalOrder():
        table = network.cpt(node)
        parents = [network.idFromName(name) for name in table.names[:0:-1]]
        shares = np.broadcast_to(table.toarray()[tuple(codes[each] for each in parents)], (rows, table.shape[0]))
        codes[node] = (rng.random(rows)[:, None] > shares.cumsum(axis=1)[:, :-1]).sum(axis=1)
    nodes = sorted(codes)
    graph = Graph(tuple(nodes), tuple(tuple(sorted(network.parents(node))) for node in nodes))
    assert nodes == list(range(len(nodes)))
    sizes = tuple(network.variable(node).domainSize() for node in nodes)
    return np.stack([codes[node] for node in nodes], axis=1), sizes, replace(graph, names=tuple(nodes))
