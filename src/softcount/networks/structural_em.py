"""A structure from rows with holes: what a network says of them is drawn, a better structure looked for, and again.

Scores need counts of any nodes together, of which a fitted network knows only those of its families. So holes are
filled by draws from the network so far, exact ones, and the search counts the filled rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from softcount.networks.ask import Questions
from softcount.networks.code_counts import CodeCounts
from softcount.networks.expect import RowsWithHoles
from softcount.networks.graph import Graph
from softcount.networks.row_evidence import Evidence
from softcount.networks.trees import chow_liu

MOST_TURNS = 8
EM_STEPS = 20
DRAWN_ROWS = 4000
"""Rows that are filled in all: few rows are filled several times, so that chance has less to say."""
MOST_DRAWS = 5

Learn = Callable[[CodeCounts], Graph]


def structural_em(
    codes: np.ndarray, sizes: tuple[int, ...], weights: np.ndarray, learn: Learn, seed: int = 0
) -> tuple[Graph, int]:
    """The structure that `learn` finds again in rows filled by its own network, and the number of turns it took."""
    rng = np.random.default_rng(seed)
    graph = chow_liu(CodeCounts(codes, sizes, weights))
    draws = max(1, min(MOST_DRAWS, DRAWN_ROWS // max(len(codes), 1)))
    for turn in range(1, MOST_TURNS + 1):
        tables = fitted_tables(graph, sizes, codes, weights)
        filled = np.concatenate([filled_rows(graph, sizes, tables, codes, rng) for _ in range(draws)])
        found = learn(CodeCounts(filled, sizes, np.tile(weights, draws) / draws))
        if found.is_equivalent(graph):
            return found, turn
        graph = found
    return graph, MOST_TURNS


def fitted_tables(graph: Graph, sizes: Sequence[int], codes: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
    """Tables by some steps of EM, with one imagined row in every configuration."""
    rows = RowsWithHoles.of(graph, sizes, codes, weights)
    tables = [np.full([sizes[node] for node in family], 1.0 / sizes[family[-1]]) for family in graph.families]
    before = -np.inf
    for _ in range(EM_STEPS):
        found = rows.expect(tables)
        tables = [_estimated(own, table) for own, table in zip(found.counts, tables, strict=True)]
        if found.log_likelihood - before < 1e-4 * abs(found.log_likelihood) / max(len(codes), 1):
            break
        before = found.log_likelihood
    return tables


def _estimated(counts: np.ndarray, like: np.ndarray) -> np.ndarray:
    raised = counts + 1.0 / counts.shape[1]
    return np.asarray((raised / raised.sum(axis=1, keepdims=True)).reshape(like.shape))


def filled_rows(
    graph: Graph, sizes: Sequence[int], tables: Sequence[np.ndarray], codes: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Rows whose holes are drawn, node after node, each given all that the row shows and those drawn before."""
    found = np.array(codes, dtype=np.int64)
    questions = Questions(graph, sizes, tables)
    for node in graph.order:
        rows = np.flatnonzero(found[:, node] < 0)
        if len(rows):
            shares = questions.posterior([node], Evidence(found[rows]))
            edges = np.cumsum(shares, axis=1)
            found[rows, node] = (rng.random(len(rows))[:, None] * edges[:, -1:] >= edges[:, :-1]).sum(axis=1)
    return found
