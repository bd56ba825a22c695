"""The graph that explains the rows best: the best of all for a few nodes, the best that a climb finds for more."""

from __future__ import annotations

from softcount.errors import DataError
from softcount.networks.code_counts import Counting
from softcount.networks.exact_search import exact_search, is_affordable
from softcount.networks.family_scores import EdgeRules, FamilyScores
from softcount.networks.graph import Graph
from softcount.networks.graph_scores import Score
from softcount.networks.hill_climb import Effort, hill_climb
from softcount.records import dataclass


@dataclass(frozen=True, slots=True)
class FoundGraph:
    """The best graph that was met, its score, and whether no other can be better."""

    graph: Graph
    score: float
    exact: bool


def search_graph(
    counting: Counting,
    score: Score,
    rules: EdgeRules | None = None,
    start: Graph | None = None,
    effort: Effort | None = None,
) -> FoundGraph:
    """The best graph found from `start` (no edges but those required); names of nodes are their numbers.

    Counts must be of the same rows for every node. The same counts, rules and effort give the same graph.

    >>> import numpy as np
    >>> from softcount.networks.code_counts import CodeCounts
    >>> from softcount.networks.graph_scores import Bic
    >>> rows = CodeCounts(np.array([[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]] * 10), (2, 2, 2))
    >>> search_graph(rows, Bic()).graph.skeleton == {frozenset({0, 1})}
    True
    """
    rules, effort = rules or EdgeRules(), effort or Effort()
    rules.check_pairs(len(counting.sizes))
    first = _start(len(counting.sizes), rules, start)
    rules.check_graph(first, counting.sizes)
    families = FamilyScores(counting, score, rules)
    exact = is_affordable(families, effort.exact)
    parents = exact_search(families) if exact else hill_climb(families, first.parents, effort)
    total = sum(families.of(node, own) for node, own in enumerate(parents))
    return FoundGraph(Graph(first.names, parents), total, exact)


def _start(count: int, rules: EdgeRules, start: Graph | None) -> Graph:
    parents = [{*own} for own in start.parents] if start else [set() for _ in range(count)]
    if len(parents) != count:
        raise DataError(f"the graph to start from has {len(parents)} nodes, but the counts are of {count}.")
    for parent, child in rules.required:
        parents[child].add(parent)
    return Graph(tuple(range(count)), tuple(tuple(sorted(own)) for own in parents))
