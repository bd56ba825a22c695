"""How well a node is explained by its parents: BIC, BDeu, the likelihood alone; a network's score is their sum."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, prod
from typing import Protocol

import numpy as np

from softcount.errors import DataError
from softcount.networks.code_counts import Counting
from softcount.networks.graph import Graph
from softcount.numerics.late_scipy import xlogy
from softcount.numerics.logspace import log_rising
from softcount.records import dataclass


class Score(Protocol):
    """A number for a node and its parents, the higher the better."""

    def of_tables(self, table: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
        """A score for every last parent of several, whose levels lie side by side on the last axis.

        `table` is (configurations of the other parents x levels of the node x levels of all last parents), and `sizes`
        are the levels of each.
        """
        ...


@dataclass(frozen=True, slots=True)
class LogLikelihood:
    """The log-likelihood of the rows where every table is estimated from their shares."""

    def of_tables(self, table: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
        """As in `Score`."""
        rows = table.sum(axis=1, keepdims=True)
        return _by_parent(xlogy(table, table / np.where(rows > 0, rows, 1.0)).sum(axis=(0, 1)), sizes)


@dataclass(frozen=True, slots=True)
class Bic:
    """The log-likelihood less half the logarithm of the weight of rows for every free parameter."""

    def of_tables(self, table: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
        """As in `Score`."""
        free = table.shape[0] * (table.shape[1] - 1) * np.array(sizes)
        rows = _by_parent(table.sum(axis=(0, 1)), sizes)
        found: np.ndarray = LogLikelihood().of_tables(table, sizes) - price(rows) * free
        return found


@dataclass(frozen=True, slots=True)
class Bdeu:
    """The log-evidence under imagined rows, so many in all for every node, shared out evenly over its table."""

    imagined: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.imagined < np.inf:
            raise DataError(f"the weight of imagined rows is above zero and finite, not {self.imagined}.")

    def of_tables(self, table: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
        """As in `Score`."""
        share = np.repeat(self.imagined / (table.shape[0] * np.array(sizes)), sizes)
        cells = _risen(share / table.shape[1], table.reshape(-1, table.shape[2]))
        return _by_parent(cells - _risen(share, table.sum(axis=1)), sizes)


def price(rows: np.ndarray) -> np.ndarray:
    """What a free parameter costs under BIC, in nats, for so much weight of rows."""
    found: np.ndarray = np.log(np.maximum(rows, 1.0)) / 2
    return found


def _risen(prior: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The log-evidence of the counts in every column; a count of zero has none."""
    row, column = np.nonzero(counts)
    return np.bincount(column, log_rising(prior[column], counts[row, column]), counts.shape[1])


def _by_parent(levels: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    found: np.ndarray = np.add.reduceat(levels, np.cumsum([0, *sizes[:-1]]))
    return found


def family_score(counting: Counting, score: Score, node: int, parents: Sequence[int]) -> float:
    """The score of one node with its parents."""
    table = counting.counts((*parents, node)).reshape(-1, counting.sizes[node], 1)
    return float(score.of_tables(table, [1])[0])


def network_score(counting: Counting, score: Score, graph: Graph) -> float:
    """The score of a graph; with BIC and BDeu, equal for graphs that say the same of what is independent."""
    weight_of_rows(counting)
    return sum(family_score(counting, score, node, own) for node, own in enumerate(graph.parents))


def n_parameters(sizes: Sequence[int], graph: Graph) -> int:
    """How many numbers the tables of a network leave free."""
    return sum((sizes[node] - 1) * prod(sizes[p] for p in own) for node, own in enumerate(graph.parents))


def description_length(counting: Counting, graph: Graph) -> float:
    """Bits to write the rows down with a network's help, and the network: its BIC, in bits and with the sign turned."""
    return -network_score(counting, Bic(), graph) / log(2)


def weight_of_rows(counting: Counting) -> float:
    """How much weight every node was counted with; counts in which some node was seen less often are refused.

    Families with different holes are counted over different rows, and a table of fewer rows always fits better.
    """
    totals = [float(counting.counts([node]).sum()) for node in range(len(counting.sizes))]
    if min(totals, default=0.0) < max(totals, default=0.0) * (1 - 1e-9):
        raise DataError(
            f"node {totals.index(min(totals))} was not seen in all rows, so that scores of families would be of"
            " different rows. Keep the rows without holes, or score expected counts (structural EM)."
        )
    return max(totals, default=0.0)
