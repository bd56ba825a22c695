"""Structure learning: trees, hill climbing, exact search, edge probabilities and structural EM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import prod

import numpy as np
from msgspec import Struct

from softcount.core.special import log_sum_exp
from softcount.errors import DataError
from softcount.networks.elimination import bits
from softcount.networks.expected_counts import IncompleteRows
from softcount.networks.network import Graph
from softcount.networks.queries import Evidence, Questions
from softcount.networks.scores import (
    Bdeu,
    CodeCounts,
    EdgeRules,
    FamilyScores,
    Pair,
    Parents,
    Score,
    mutual_informations,
)

ADD, DROP, TURN = 0, 1, 2
REGION, TURNS = 12, 5
"""Maximum number of nodes among which a restart removes the edges, and the number of edges that it reverses."""


class Effort(Struct, frozen=True):
    """Number of moves without a gain before the search stops, moves for which a pair is tabu, and restarts.

    Up to `exact` nodes, exact search replaces hill climbing, unless tables are large.
    """

    patience: int = 5
    tabu: int = 10
    restarts: int = 10
    seed: int = 0
    exact: int = 8


def hill_climb(families: FamilyScores, start: Parents, effort: Effort) -> Parents:
    """Return the best graph found by moves of one edge with restarts; deterministic given scores and effort."""
    best, score = _climb(GraphClimb(families, start), effort)
    rng = np.random.default_rng(effort.seed)
    for _ in range(effort.restarts):
        again = GraphClimb(families, best)
        again.forget(rng)
        parents, total = _climb(again, effort)
        # Accept an equally good graph too: moving between equal graphs can lead to one from which the score improves.
        if total > score - families.tie:
            best, score = parents, total
    return best


class GraphClimb:
    """A graph during the search, with the gain of every move and the reachability of nodes.

    Matrices are (parent x child). A move changes only the columns of the affected children.
    """

    def __init__(self, families: FamilyScores, parents: Parents) -> None:
        count = len(parents)
        self.families = families
        self.parents = parents
        self.edges = np.zeros((count, count), dtype=bool)
        self.leads = np.zeros((count, count), dtype=bool)
        self.adding = np.full((count, count), -np.inf)
        self.dropping = np.full((count, count), -np.inf)
        self.own = np.zeros(count)
        for child, own in enumerate(parents):
            for parent in own:
                self._join(parent, child)
        for child in range(count):
            self._refresh(child)

    @property
    def total(self) -> float:
        return float(self.own.sum())

    def _refresh(self, child: int) -> None:
        own = tuple(np.flatnonzero(self.edges[:, child]).tolist())
        self.parents = (*self.parents[:child], own, *self.parents[child + 1 :])
        self.own[child] = self.families.of(child, own)
        self.adding[:, child] = self.families.adding(child, own) - self.own[child]
        self.dropping[:, child] = -np.inf
        for parent in own:
            if (parent, child) not in self.families.rules.required:
                fewer = tuple(each for each in own if each != parent)
                self.dropping[parent, child] = self.families.of(child, fewer) - self.own[child]

    def gains(self) -> np.ndarray:
        """Return the gain of every move, (add, drop, turn) x parent x child; -inf if the move is impossible.

        Reversing an edge may still close a cycle: see `is_legal`.
        """
        adds = np.where(self.leads.T, -np.inf, self.adding)
        return np.stack([adds, self.dropping, self.dropping + self.adding.T])

    def is_legal(self, kind: int, parent: int, child: int) -> bool:
        """Return whether a move leaves no cycle.

        An edge cannot be reversed if another path leads from parent to child.
        """
        return kind != TURN or not self.leads[self.edges[parent], child].any()

    def move(self, kind: int, parent: int, child: int) -> None:
        if kind != ADD:
            self.edges[parent, child] = False
            above = np.flatnonzero(self.leads[:, parent]).tolist()
            reach = self.leads.sum(axis=1)
            for node in [parent, *sorted(above, key=lambda each: int(reach[each]))]:
                self.leads[node] = self.edges[node] | self.leads[self.edges[node]].any(axis=0)
        if kind == TURN:
            self._join(child, parent)
            self._refresh(parent)
        if kind == ADD:
            self._join(parent, child)
        self._refresh(child)

    def _join(self, parent: int, child: int) -> None:
        self.edges[parent, child] = True
        above, below = self.leads[:, parent].copy(), self.leads[child].copy()
        above[parent] = below[child] = True
        self.leads |= above[:, None] & below

    def forget(self, rng: np.random.Generator) -> None:
        """Drop the edges within a random connected region, and reverse some edges at no cost in score.

        Wrong directions chosen early keep each other in place. On 20,000 rows of the alarm network, 30 such regions
        reached a BIC of -211,602 to -211,672 in most runs; 40 times eleven random moves reached -212,810.
        """
        near = self.edges | self.edges.T
        region = {int(rng.integers(len(near)))}
        size = min(REGION, max(2, len(near) // 2))
        while len(region) < size:
            border = sorted({*np.flatnonzero(near[list(region)].any(axis=0)).tolist()} - region)
            if not border:
                break
            region.add(border[rng.integers(len(border))])
        for parent, child in np.argwhere(np.isfinite(self.dropping)).tolist():
            if parent in region and child in region:
                self.move(DROP, parent, child)
        for _ in range(TURNS):
            turns = np.argwhere(np.isfinite(self.gains()[TURN])).tolist()
            # Reversing an edge leaves the score unchanged if both nodes have the same other parents.
            pairs = [(a, b) for a, b in turns if int((self.edges[:, a] ^ self.edges[:, b]).sum()) == 1]
            if pairs:
                self.move(TURN, *pairs[rng.integers(len(pairs))])


def _climb(climb: GraphClimb, effort: Effort) -> tuple[Parents, float]:
    """Make the best move, even if it lowers the score, until `patience` runs out.

    Return the best graph and its score.
    """
    tie = climb.families.tie
    best, score, since, recent = climb.parents, climb.total, 0, list[Pair]()
    while since <= effort.patience:
        gains = climb.gains()
        if recent:  # tabu pairs are moved again only for a new best
            a, b = np.array(recent).T
            pairs = slice(None), np.concatenate([a, b]), np.concatenate([b, a])
            gains[pairs] = np.where(gains[pairs] > score - climb.total + tie, gains[pairs], -np.inf)
        move = best_move(climb, gains, tie)
        if move is None:
            break
        climb.move(*move)
        recent = [*recent, move[1:]][-effort.tabu :] if effort.tabu else []
        since += 1
        if climb.total > score + tie:
            best, score, since = climb.parents, climb.total, 0
    return best, score


def best_move(climb: GraphClimb, gains: np.ndarray, tie: float) -> tuple[int, int, int] | None:
    """Return the legal move with the largest gain; the first one if several gain the same."""
    while (top := gains.max(initial=-np.inf)) > -np.inf:
        kind, parent, child = map(int, np.unravel_index(int(np.argmax(gains >= top - tie)), gains.shape))
        if climb.is_legal(kind, parent, child):
            return kind, parent, child
        gains[kind, parent, child] = -np.inf
    return None


# Exact search for few nodes: dynamic programming over orders (Silander and Myllymaki).

CELLS = 1 << 24
"""Maximum number of cells of all tables for exact search: about a second."""


def is_affordable(families: FamilyScores, nodes: int) -> bool:
    """Return whether the network has at most `nodes` nodes and all possible tables are small enough to count."""
    sizes = families.counting.sizes
    if len(sizes) > nodes:
        return False
    all_sets = prod(1 + size for size in sizes)
    return sum(size * (all_sets // (1 + size)) for size in sizes) <= CELLS


def exact_search(families: FamilyScores) -> Parents:
    """Return the best graph that the rules allow; ties are resolved deterministically.

    Sets of nodes are bit masks.
    """
    count = len(families.counting.sizes)
    best = [_best_within(families, node) for node in range(count)]
    totals, last = np.zeros(1 << count), np.zeros(1 << count, dtype=int)
    for nodes in range(1, 1 << count):
        found = -np.inf
        for node in bits(nodes):
            rest = nodes ^ (1 << node)
            total = totals[rest] + best[node][0][rest]
            if total > found + families.tie:
                found, last[nodes] = total, node
        totals[nodes] = found
    parents: list[tuple[int, ...]] = [()] * count
    nodes = (1 << count) - 1
    while nodes:
        node = int(last[nodes])
        nodes ^= 1 << node
        parents[node] = tuple(bits(int(best[node][1][nodes])))
    return tuple(parents)


def _best_within(families: FamilyScores, node: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, for every set of nodes, the best score of parents within it and the mask of these parents."""
    count = len(families.counting.sizes)
    scores, chosen = np.full(1 << count, -np.inf), np.arange(1 << count)
    for parents in families.allowed_sets(node):
        scores[sum(1 << parent for parent in parents)] = families.of(node, parents)
    for bit in range(count):
        without = np.flatnonzero(np.arange(1 << count) >> bit & 1 == 0)
        more = without | (1 << bit)
        worse = scores[more] <= scores[without] + families.tie
        scores[more] = np.where(worse, scores[without], scores[more])
        chosen[more] = np.where(worse, chosen[without], chosen[more])
    return scores, chosen


# Search with either method: exact for few nodes, hill climbing for more.


class FoundGraph(Struct, frozen=True):
    """The best graph found, its score, and whether it is proved optimal."""

    graph: Graph
    score: float
    exact: bool


def search_graph(
    counting: CodeCounts, score: Score, rules: EdgeRules | None = None, effort: Effort | None = None
) -> FoundGraph:
    """Search for the best graph that contains the required edges. Names of nodes are their numbers.

    Every node must be observed in the same rows. The same counts, rules and effort give the same graph.

    >>> import numpy as np
    >>> from softcount.networks.scores import Bic, CodeCounts
    >>> rows = CodeCounts(np.array([[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]] * 10), (2, 2, 2))
    >>> search_graph(rows, Bic()).graph.skeleton == {frozenset({0, 1})}
    True
    """
    rules, effort = rules or EdgeRules(), effort or Effort()
    first = rules.required_graph(counting.sizes)
    families = FamilyScores(counting, score, rules)
    exact = is_affordable(families, effort.exact)
    parents = exact_search(families) if exact else hill_climb(families, first.parents, effort)
    total = sum(families.of(node, own) for node, own in enumerate(parents))
    return FoundGraph(Graph(first.names, parents), total, exact)


# Trees by mutual information: Chow-Liu trees and tree-augmented naive Bayes.

NOTHING = 1e-12
"""Mutual information in nats that rounding may leave between independent nodes."""


def information_tree(counting: CodeCounts, given: tuple[int, ...] = ()) -> Graph:
    """Return the tree with the highest total I(a; b | given), directed away from its first node.

    All its nodes have `given` as parents. Without `given` it is the Chow-Liu tree, which has the highest likelihood;
    given a class, it is tree-augmented naive Bayes. Independent nodes are not connected. Ties go to the first pairs.
    """
    nodes = [node for node in range(len(counting.sizes)) if node not in given]
    weights = np.zeros((len(nodes), len(nodes)))
    for at, node in enumerate(nodes[:-1]):
        others = nodes[at + 1 :]
        sizes = [counting.sizes[other] for other in others]
        table = counting.with_each((*given, node), others).reshape(-1, counting.sizes[node], sum(sizes))
        weights[at, at + 1 :] = weights[at + 1 :, at] = mutual_informations(table, sizes)[0]
    near: dict[int, list[int]] = {node: [] for node in nodes}
    for a, b in heaviest_tree(weights):
        near[nodes[a]].append(nodes[b])
        near[nodes[b]].append(nodes[a])
    parents: dict[int, tuple[int, ...]] = dict.fromkeys(given, ())
    for root in nodes:
        ahead = [] if root in parents else [root]
        parents.setdefault(root, given)
        while ahead:
            node = ahead.pop()
            for other in near[node]:
                if other not in parents:
                    parents[other] = (*given, node)
                    ahead.append(other)
    return Graph(tuple(range(len(counting.sizes))), tuple(parents[node] for node in range(len(counting.sizes))))


def heaviest_tree(weights: np.ndarray) -> list[tuple[int, int]]:
    """Return the pairs of a maximum spanning tree, or of a forest if some weights are zero or less.

    Weights that differ only by rounding count as equal, and the first pair is taken.

    >>> heaviest_tree(np.array([[0, 1, 3], [1, 0, 2], [3, 2, 0]]))
    [(0, 2), (1, 2)]
    """
    a, b = np.triu_indices(len(weights), 1)
    each = np.round(weights[a, b] / NOTHING) * NOTHING
    part = np.arange(len(weights))
    found: list[tuple[int, int]] = []
    for place in np.lexsort((b, a, -each)):
        one, other = int(a[place]), int(b[place])
        if each[place] <= NOTHING or len(found) == len(weights) - 1:
            break
        if part[one] != part[other]:
            part[part == part[other]] = part[one]
            found.append((one, other))
    return found


# Confidence in edges: by bootstrap, by marginal likelihood over graphs, and over all spanning trees.


class EdgeShares(Struct, frozen=True):
    """Shares of graphs that contain an edge, each a matrix (parent x child).

    `joined` counts the edge in either direction, `directed` in this direction. `compelled` counts graphs all of whose
    equivalent graphs have this direction; only such directions can be learned from data.
    """

    joined: np.ndarray
    directed: np.ndarray
    compelled: np.ndarray

    @classmethod
    def of(cls, graphs: Sequence[Graph], weights: np.ndarray) -> EdgeShares:
        """Compute shares from graphs over the same nodes and their weights, which sum to 1."""
        count = len(graphs[0].parents)
        directed, compelled = np.zeros((count, count)), np.zeros((count, count))
        for graph, weight in zip(graphs, weights.tolist(), strict=True):
            directed += weight * edge_matrix(graph)
            compelled += weight * compelled_edges(graph)
        return cls(directed + directed.T, directed, compelled)


def bootstrap_edges(
    counting: CodeCounts, learn: Callable[[CodeCounts], Graph], replicates: int = 100, seed: int = 0
) -> EdgeShares:
    """Return how often each edge is learned from resample rows. Only the weights of the rows are drawn."""
    if replicates < 1:
        raise DataError(f"an edge's share needs at least one replicate, not {replicates}.")
    rng = np.random.default_rng(seed)
    graphs = [learn(resample(counting, rng)) for _ in range(replicates)]
    return EdgeShares.of(graphs, np.full(replicates, 1 / replicates))


def resample(counting: CodeCounts, rng: np.random.Generator) -> CodeCounts:
    """Draw as many rows as there are, with replacement. Weights that are not integers keep their total."""
    _, weights = counting.distinct
    total = weights.sum()
    if total <= 0:
        raise DataError("there are no rows to draw from.")
    drawn = rng.multinomial(max(1, round(total)), weights / total)
    return counting.reweighted(drawn * (total / drawn.sum()))


def evidence_weights(log_evidence: Sequence[float]) -> np.ndarray:
    """Return posterior weights of graphs, or of any models, from their log marginal likelihoods.

    >>> evidence_weights([-1000.0, -1000.0 + np.log(3)]).round(3).tolist()
    [0.25, 0.75]
    """
    each = np.asarray(log_evidence, dtype=float)
    if not each.size or not np.isfinite(each.max()):
        raise DataError("none of the models has evidence to weigh it by.")
    return np.asarray(np.exp(each - log_sum_exp(each)))


def edge_matrix(graph: Graph) -> np.ndarray:
    found = np.zeros((len(graph.parents), len(graph.parents)), dtype=bool)
    for child, own in enumerate(graph.parents):
        found[list(own), child] = True
    return found


def compelled_edges(graph: Graph) -> np.ndarray:
    """Return the edges with the same direction in every equivalent graph, (parent x child).

    These are the edges of v-structures, and all edges that follow from them without a new v-structure or a cycle
    (Meek's rules).
    """
    edges = edge_matrix(graph)
    near = edges | edges.T
    found = np.zeros_like(edges)
    for child, own in enumerate(graph.parents):
        for a, b in combinations(own, 2):
            if not near[a, b]:
                found[[a, b], child] = True
    while True:
        more = found.copy()
        for parent, child in np.argwhere(edges & ~found):
            into_parent = found[:, parent]
            if (into_parent & ~near[:, child]).any() or (found[parent] & found[:, child]).any():
                more[parent, child] = True
            else:
                undirected = near & ~found & ~found.T
                between = np.flatnonzero(undirected[parent] & found[:, child])
                more[parent, child] = any(not near[a, b] for a, b in combinations(between, 2))
        if np.array_equal(more, found):
            return found
        found = more


def tree_edges(counting: CodeCounts, imagined: float = 1.0) -> np.ndarray:
    """Return the posterior probability of each edge over all spanning trees, with a uniform prior (Meila and Jaakkola).

    Tables have prior rows as in BDeu, so that the marginal likelihood of a tree is a product over its edges.
    """
    count = len(counting.sizes)
    gains, score = np.zeros((count, count)), Bdeu(imagined)
    for node in range(count - 1):
        sizes = counting.sizes[node + 1 :]
        table = counting.with_each((node,), range(node + 1, len(counting.sizes)))[None]
        alone = np.add.reduceat(table, np.cumsum((0, *sizes[:-1])), axis=2)
        found: np.ndarray = score.of_tables(table, sizes) - score.of_tables(alone, [1] * len(sizes))
        gains[node, node + 1 :] += found
        gains[node + 1 :, node] += found
    return spanning_tree_edges(gains)


def spanning_tree_edges(log_weights: np.ndarray) -> np.ndarray:
    """Return the probability of each edge in a random spanning tree whose weight is the product of its edges' weights.

    An edge's probability is its weight over the conductance between its ends (weighted matrix-tree theorem). Nodes are
    eliminated from the Laplacian by sums of positive terms only, all in logarithms. Weights from exp(-100,000) to
    exp(100,000) therefore neither overflow nor cancel.

    The nodes are split into four parts, and every pair of nodes lies in two of them. For each pair of parts the other
    half of the nodes is eliminated, and the split is repeated on the remaining half.

    >>> spanning_tree_edges(np.zeros((3, 3))).round(4).tolist()
    [[0.0, 0.6667, 0.6667], [0.6667, 0.0, 0.6667], [0.6667, 0.6667, 0.0]]
    """
    count = len(log_weights)
    room = max(2, 1 << (count - 1).bit_length())  # padding nodes have no edges
    weights = np.full((room, room), -np.inf)
    weights[:count, :count] = np.where(np.eye(count, dtype=bool), -np.inf, log_weights)
    reduced, nodes = weights[None], np.arange(room)[None]
    while nodes.shape[1] > 2:
        parts = np.arange(nodes.shape[1]).reshape(4, -1)
        kept = [np.concatenate(pair) for pair in combinations(parts, 2)]
        reduced = np.concatenate([_eliminated(reduced, keep) for keep in kept])
        nodes = np.concatenate([nodes[:, keep] for keep in kept])
    a, b = nodes.T
    there = weights[a, b] > -np.inf
    found = np.zeros((room, room))
    found[a[there], b[there]] = np.exp(weights[a, b][there] - reduced[there, 0, 1])
    return np.maximum(found, found.T)[:count, :count]


def _eliminated(reduced: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Return the log conductances between the kept nodes after eliminating the others; the first axis is a batch."""
    order = np.concatenate([np.setdiff1d(np.arange(reduced.shape[1]), keep), keep])
    left: np.ndarray = reduced[:, order[:, None], order]
    for _ in range(len(order) - len(keep)):
        star = left[:, 0, 1:]
        total = np.asarray(log_sum_exp(star, axis=1))
        star = star - np.where(np.isfinite(total), total, 0.0)[:, None] / 2
        left = np.logaddexp(left[:, 1:, 1:], star[:, :, None] + star[:, None, :])
    return left


# Structural EM: alternate between sampling missing values from the current network and learning a structure.

MOST_TURNS = 8
EM_STEPS = 20
DRAWN_ROWS = 4000
"""Target number of completed rows. Few rows are completed several times to reduce sampling noise."""
MOST_DRAWS = 5

Learn = Callable[[CodeCounts], Graph]


def structural_em(
    codes: np.ndarray, sizes: tuple[int, ...], weights: np.ndarray, learn: Learn, seed: int = 0
) -> tuple[Graph, int]:
    """Return a structure that `learn` finds again in rows completed by its network, and the number of iterations.

    Stops after `MOST_TURNS` iterations.
    """
    rng = np.random.default_rng(seed)
    graph = information_tree(CodeCounts(codes, sizes, weights))
    draws = max(1, min(MOST_DRAWS, DRAWN_ROWS // max(len(codes), 1)))
    for turn in range(1, MOST_TURNS + 1):
        questions = Questions(graph, sizes, estimate_tables(graph, sizes, codes, weights))
        filled = np.concatenate([questions.draw(Evidence(codes), rng) for _ in range(draws)])
        found = learn(CodeCounts(filled, sizes, np.tile(weights, draws) / draws))
        if found.is_equivalent(graph):
            return found, turn
        graph = found
    return graph, MOST_TURNS


def estimate_tables(graph: Graph, sizes: Sequence[int], codes: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
    """Estimate tables by at most `EM_STEPS` EM steps, with one prior row in every configuration."""
    rows = IncompleteRows.of(graph, sizes, codes, weights)
    tables = [np.full([sizes[node] for node in family], 1.0 / sizes[family[-1]]) for family in graph.families]
    before = -np.inf
    for _ in range(EM_STEPS):
        found = rows.expect(tables)
        raised = [own + 1.0 / own.shape[1] for own in found.counts]
        shares = [own / own.sum(axis=1, keepdims=True) for own in raised]
        tables = [np.asarray(own.reshape(table.shape)) for own, table in zip(shares, tables, strict=True)]
        if found.log_likelihood - before < 1e-4 * abs(found.log_likelihood) / max(len(codes), 1):
            break
        before = found.log_likelihood
    return tables
