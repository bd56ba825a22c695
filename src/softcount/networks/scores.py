"""Scores of network structures, from counts of codes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from itertools import chain, combinations, pairwise
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np
from msgspec import Struct

from softcount.core.lazy import sparse, xlogy
from softcount.core.special import chi_squared_tail, log_rising
from softcount.errors import DataError, ResourceError
from softcount.networks.network import Graph, distinct_rows

ROOM = 1 << 27
"""Maximum number of cells of a counted table."""
KEPT = 1 << 22
"""Maximum number of cells of cached tables."""
BLOCK = 1 << 24
"""Maximum number of indicators, or of cells of tables side by side, per block."""
SMALL = 1 << 17
"""Product of cells and rows below which matrices are dense: importing sparse matrices would take longer."""
SIDE_BY_SIDE = 32
"""Average number of levels per node above which indicators cost more than counting one node after the other."""


class CodeCounts:
    """Weighted counts over rows of codes. A row with a missing value in the counted axes is left out of that count.

    Equal rows are merged once the number of counted tables makes it worthwhile.

    >>> rows = CodeCounts(np.array([[0, 1], [0, 1], [1, 0], [1, -1]]), sizes=(2, 2))
    >>> rows.counts((0, 1)).tolist(), rows.counts([0]).tolist(), float(rows.counts([]))
    ([[0.0, 2.0], [1.0, 0.0]], [2.0, 2.0], 4.0)
    """

    def __init__(self, codes: np.ndarray, sizes: Sequence[int], weights: np.ndarray | None = None) -> None:
        self.sizes = tuple(int(size) for size in sizes)
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.intp)
        self._levels = [np.arange(start, end) for start, end in pairwise(self._starts)]
        self._kept: OrderedDict[tuple[int, ...], np.ndarray] = OrderedDict()
        self._kept_cells = 0
        self._tables = 0
        self._first: np.ndarray | None = None
        small = np.min_scalar_type(-max(self.sizes, default=1))
        self._take(codes.astype(small, copy=False), np.ones(len(codes)) if weights is None else weights)

    def _take(self, codes: np.ndarray, weights: np.ndarray) -> None:
        there = weights > 0
        self._columns = np.array((codes if there.all() else codes[there]).T, order="C")
        self._weights = weights[there]
        self._holes = self._columns.min(axis=1, initial=0) < 0

    @cached_property
    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """Distinct rows, in an order that depends only on their values, and their weights."""
        first, again = distinct_rows(self._columns.T)
        self._take(self._columns.T[first], np.bincount(again, self._weights, len(first)))
        return self._columns.T, self._weights

    def reweighted(self, weights: np.ndarray) -> CodeCounts:
        """Return counts of the rows of `distinct` with other weights. Rows of weight 0 are left out."""
        found = CodeCounts(self.distinct[0], self.sizes, weights)
        found.distinct = found._columns.T, found._weights
        return found

    def counts(self, axes: Sequence[int]) -> np.ndarray:
        """Return the weight of rows by the levels of some nodes, one axis each. Without nodes, return the total weight.

        The array is read-only, because it is cached.
        """
        key = tuple(sorted(axes))
        if key not in self._kept:
            self._tables += 1
            if self._tables > len(self.sizes):
                self.distinct  # noqa: B018 - merges equal rows from here on
            shape = tuple(self.sizes[axis] for axis in key)
            cells = prod(shape)
            if cells > ROOM:
                raise ResourceError(f"a table of the nodes {', '.join(map(str, key))} would have {cells:,} cells.")
            found = np.bincount(self._cells(key, slice(None)), self._weights, cells + 1)
            table = found[:cells].reshape(shape)
            table.flags.writeable = False
            self._kept[key] = table
            self._kept_cells += table.size
            while len(self._kept) > 1 and self._kept_cells > KEPT:
                self._kept_cells -= self._kept.popitem(last=False)[1].size
        self._kept.move_to_end(key)
        return self._kept[key].transpose([key.index(axis) for axis in axes])

    def _cells(self, axes: Sequence[int], rows: slice) -> np.ndarray:
        """Return the cell of the axes that each row falls into, or the number of cells if a value is missing."""
        cell = np.zeros(self._weights[rows].size, dtype=np.intp)
        for axis in axes:
            cell *= self.sizes[axis]
            cell += self._columns[axis, rows]
        for axis in axes:
            if self._holes[axis]:
                cell[self._columns[axis, rows] < 0] = prod(self.sizes[axis] for axis in axes)
        return cell

    def with_each(self, axes: Sequence[int], others: Sequence[int]) -> np.ndarray:
        """Count the axes with one other node at a time: (cells of the axes x levels of all others).

        If the table is small enough, one pass multiplies indicators of the axes' cells by indicators of the levels of
        all nodes.
        """
        cells, levels = prod(self.sizes[axis] for axis in axes), int(self._starts[-1])
        if levels > SIDE_BY_SIDE * len(self.sizes) or cells * levels > BLOCK:
            return np.concatenate([self.counts((*axes, other)).reshape(cells, -1) for other in others], axis=1)
        self.distinct  # noqa: B018 - merges equal rows
        places = np.concatenate([self._levels[node] for node in others])
        if len(axes) == 1 and levels * levels <= BLOCK:
            start = self._starts[axes[0]]
            return self._pairs[start : start + cells, places]
        found = np.zeros((cells, int(self._starts[-1])))
        for rows, shown in self._indicators():
            cell = self._cells(axes, rows)
            weights = self._weights[rows].astype(shown.dtype)
            found += (_members(cell, weights, cells + 1) @ shown)[:-1]
        return found[:, places]

    @cached_property
    def _pairs(self) -> np.ndarray:
        """Counts of all pairs of nodes, (levels of all nodes x levels of all nodes)."""
        found = np.zeros((self._starts[-1], self._starts[-1]))
        for rows, shown in self._indicators():
            found += shown.T @ (shown * self._weights[rows, None].astype(shown.dtype))
        return found

    def _indicators(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield indicators (rows x levels of all nodes) in blocks; the first block is cached."""
        step = max(1, BLOCK // int(self._starts[-1]))
        for start in range(0, self._weights.size, step):
            rows = slice(start, start + step)
            if start:
                yield rows, self._shown(rows)
            else:
                self._first = self._shown(rows) if self._first is None else self._first
                yield rows, self._first

    def _shown(self, rows: slice) -> np.ndarray:
        # float32 is exact for integers up to 2^24 and twice as fast.
        whole = self._weights.sum() < 2**24 and bool((self._weights == np.floor(self._weights)).all())
        codes = self._columns[:, rows].T
        shown = np.zeros((len(codes), int(self._starts[-1])), dtype=np.float32 if whole else np.float64)
        row, node = np.nonzero(codes >= 0)
        shown[row, self._starts[node] + codes[row, node]] = 1
        return shown


def _members(cell: np.ndarray, weights: np.ndarray, cells: int) -> Any:
    """Return (cells x rows): the weight of each row in its cell. The matrix is dense if it is small."""
    if cells * cell.size > SMALL:
        return sparse.csc_array((weights, cell, np.arange(cell.size + 1)), (cells, cell.size))
    found = np.zeros((cells, cell.size), dtype=weights.dtype)
    found[cell, np.arange(cell.size)] = weights
    return found


# Conditional mutual information of two nodes, and its test.

Node = TypeVar("Node", bound=Hashable)


class Dependence(Struct, Generic[Node], frozen=True):
    """Conditional mutual information of two columns, and the G2 test that it is zero.

    Attributes
    ----------
    a, b : object
        The columns.
    given : tuple
        Columns conditioned on.
    information : float
        I(a; b | given) in nats.
    freedom : int
        Degrees of freedom; categories that do not occur in a stratum add none.
    weight : float
        Weight of the rows in which all columns are observed.
    copy : bool
        Whether one of the two is a function of the other in those rows.
    g2 : float
        2 * weight * information, chi-squared distributed if a and b are independent.
    p_value : float
        Probability of a G2 at least as large.
    """

    a: Node
    b: Node
    given: tuple[Node, ...]
    information: float
    freedom: int
    weight: float
    copy: bool

    @property
    def g2(self) -> float:
        """Twice the weight times the information: chi-squared distributed if a and b are independent."""
        return 2 * self.weight * self.information

    @property
    def p_value(self) -> float:
        return chi_squared_tail(self.freedom, self.g2) if self.freedom else 1.0

    def __str__(self) -> str:
        given = f" given {', '.join(map(repr, self.given))}" if self.given else ""
        return (
            f"{self.a!r} and {self.b!r}{given}: {self.information:.4g} nats, "
            f"G2 {self.g2:.4g} with {self.freedom} degrees of freedom, p {self.p_value:.3g}, {self.weight:g} rows"
        )


def dependence(counting: CodeCounts, a: int, b: int, given: Sequence[int] = ()) -> Dependence[int]:
    nodes = (*given, a, b)
    if len(set(nodes)) < len(nodes):
        raise DataError(f"nodes {a} and {b} given {list(given)}: a node is named twice.")
    return _with_each(counting, a, [b], tuple(given))[0]


def dependent_pairs(counting: CodeCounts, target: int) -> list[Dependence[int]]:
    """Return all pairs of other nodes given the target, most dependent first."""
    nodes = [node for node in range(len(counting.sizes)) if node != target]
    found: list[Dependence[int]] = []
    for at, node in enumerate(nodes[:-1]):
        found += _with_each(counting, node, nodes[at + 1 :], (target,))
    return sorted(found, key=lambda pair: (-round(pair.information, 12), pair.a, pair.b))


def _with_each(counting: CodeCounts, a: int, others: list[int], given: tuple[int, ...]) -> list[Dependence[int]]:
    """Return the dependence of a node on each of several others, one pair at a time."""
    sizes = [counting.sizes[other] for other in others]
    table = counting.with_each((*given, a), others).reshape(-1, counting.sizes[a], sum(sizes))
    information, weight = mutual_informations(table, sizes)
    seen = table > 0
    of_a = np.logical_or.reduceat(seen, _starts(sizes), axis=2).sum(axis=1)
    of_b = np.add.reduceat(seen.any(axis=1), _starts(sizes), axis=1, dtype=int)
    freedom = (np.maximum(of_a - 1, 0) * np.maximum(of_b - 1, 0)).sum(axis=0)
    copy = _copies(table.sum(axis=0) > 0, sizes)
    return [
        Dependence(a, b, given, float(information[at]), int(freedom[at]), float(weight[at]), bool(copy[at]))
        for at, b in enumerate(others)
    ]


def mutual_informations(table: np.ndarray, sizes: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return I(a; b | stratum) in nats for several b side by side, and the weight of the rows of each.

    `table` is (strata x levels of a x levels of all b). `sizes` holds the number of levels of each b.
    """
    starts = _starts(sizes)
    with_b = table.sum(axis=1, keepdims=True)
    with_a = np.add.reduceat(table, starts, axis=2)
    of_stratum = with_a.sum(axis=1, keepdims=True)
    alone = np.repeat(with_a / np.where(of_stratum > 0, of_stratum, 1.0), sizes, axis=2) * with_b
    shares = np.where(table > 0, table / np.where(alone > 0, alone, 1.0), 1.0)
    nats = (table * np.log(shares)).sum(axis=(0, 1))
    weight = of_stratum.sum(axis=(0, 1))
    found: np.ndarray = np.maximum(np.add.reduceat(nats, starts), 0.0) / np.where(weight > 0, weight, 1.0)
    return found, weight


def _copies(seen: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Return whether one of two nodes is a function of the other and both vary."""
    starts = _starts(sizes)
    of_b = np.add.reduceat(seen, starts, axis=1, dtype=int)
    of_a = np.maximum.reduceat(seen.sum(axis=0), starts)
    levels_of_b = np.add.reduceat(seen.any(axis=0), starts, dtype=int)
    varied = ((of_b > 0).sum(axis=0) > 1) & (levels_of_b > 1)
    return np.asarray(varied & ((of_b.max(axis=0) <= 1) | (of_a <= 1)))


def _starts(sizes: Sequence[int]) -> np.ndarray:
    return np.cumsum([0, *sizes[:-1]])


# Scores of a node and its parents, higher is better: BIC, BDeu or log-likelihood. The score of a network is their sum.
# `of_tables` scores several candidates as the last parent. `table` is (configurations of the other parents x levels of
# the node x levels of all candidates side by side), and `sizes` holds the number of levels of each candidate.


class LogLikelihood(Struct, frozen=True):
    """The log-likelihood at the maximum likelihood estimates."""

    def of_tables(self, table: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
        rows = table.sum(axis=1, keepdims=True)
        return _by_parent(xlogy(table, table / np.where(rows > 0, rows, 1.0)).sum(axis=(0, 1)), sizes)


class Bic(Struct, frozen=True):
    """The log-likelihood minus log(weight of rows) / 2 for every free parameter."""

    def of_tables(self, table: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
        free = table.shape[0] * (table.shape[1] - 1) * np.array(sizes)
        rows = _by_parent(table.sum(axis=(0, 1)), sizes)
        price = np.log(np.maximum(rows, 1.0)) / 2
        return np.asarray(LogLikelihood().of_tables(table, sizes) - price * free)


class Bdeu(Struct, frozen=True):
    """The log marginal likelihood with `imagined` prior rows for every node, spread evenly over its table."""

    imagined: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.imagined < np.inf:
            raise DataError(f"the weight of prior rows is above zero and finite, not {self.imagined}.")

    def of_tables(self, table: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
        share = np.repeat(self.imagined / (table.shape[0] * np.array(sizes)), sizes)
        cells = _risen(share / table.shape[1], table.reshape(-1, table.shape[2]))
        return _by_parent(cells - _risen(share, table.sum(axis=1)), sizes)


Score = LogLikelihood | Bic | Bdeu


def _risen(prior: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the sum of log rising factorials of the counts in every column."""
    row, column = np.nonzero(counts)
    return np.bincount(column, log_rising(prior[column], counts[row, column]), counts.shape[1])


def _by_parent(levels: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    return np.asarray(np.add.reduceat(levels, _starts(sizes)))


def family_score(counting: CodeCounts, score: Score, node: int, parents: Sequence[int]) -> float:
    table = counting.counts((*parents, node)).reshape(-1, counting.sizes[node], 1)
    return float(score.of_tables(table, [1])[0])


def network_score(counting: CodeCounts, score: Score, graph: Graph) -> float:
    """Return the score of a graph. Markov equivalent graphs have equal BIC and BDeu scores."""
    weight_of_rows(counting)
    return sum(family_score(counting, score, node, own) for node, own in enumerate(graph.parents))


def weight_of_rows(counting: CodeCounts) -> float:
    """Return the weight of all rows. Raise DataError if a node has missing values.

    Families with different missing values are counted over different rows, and a table of fewer rows always fits
    better.
    """
    totals = [float(counting.counts([node]).sum()) for node in range(len(counting.sizes))]
    if min(totals, default=0.0) < max(totals, default=0.0) * (1 - 1e-9):
        raise DataError(
            f"node {totals.index(min(totals))} was not seen in all rows, so that scores of families would be of"
            " different rows. Keep the complete rows, or score expected counts (structural EM)."
        )
    return max(totals, default=0.0)


# Constraints on edges, and cached scores of families.

Pair = tuple[int, int]
Parents = tuple[tuple[int, ...], ...]

AT_ONCE = 1 << 22
"""Maximum number of cells of the candidates' tables per pass."""


class EdgeRules(Struct, frozen=True):
    """Constraints on a graph: required and forbidden edges (parent, child), number of parents, cells of a table.

    Required edges must not be forbidden, and no node may have more of them than `max_parents`.
    """

    required: frozenset[Pair] = frozenset()
    forbidden: frozenset[Pair] = frozenset()
    max_parents: int | None = None
    max_cells: int = 1 << 20

    def required_graph(self, sizes: Sequence[int]) -> Graph:
        """Return the graph of the required edges.

        Raise DataError if it breaks a rule. Names of nodes are their numbers.
        """
        count = len(sizes)
        parents = [tuple(sorted(a for a, b in self.required if b == child)) for child in range(count)]
        for child, own in enumerate(parents):
            cells = prod(sizes[node] for node in (*own, child))
            if own and cells > self.max_cells:
                raise DataError(f"the table of node {child} starts with {cells:,} cells, more than {self.max_cells:,}.")
        return Graph(tuple(range(count)), tuple(parents))


class FamilyScores:
    """Scores of nodes with their parents, each computed once per search."""

    def __init__(self, counting: CodeCounts, score: Score, rules: EdgeRules) -> None:
        self.counting, self.score, self.rules = counting, score, rules
        # Smaller gains are rounding errors. Without this limit, a search could alternate between equal graphs forever.
        self.tie = 1e-11 * (1 + weight_of_rows(counting))
        self._sizes = np.array(counting.sizes)
        self._allowed = ~np.eye(len(counting.sizes), dtype=bool)
        for pair in rules.forbidden:
            self._allowed[pair] = False
        self._own: dict[tuple[int, tuple[int, ...]], float] = {}
        self._adding: dict[tuple[int, tuple[int, ...]], np.ndarray] = {}

    def of(self, node: int, parents: tuple[int, ...]) -> float:
        """Return the score of a node with these parents, in ascending order."""
        key = node, parents
        if key not in self._own:
            # The set may have been scored already as a smaller set plus one candidate.
            fewer = ((parent, (node, parents[:at] + parents[at + 1 :])) for at, parent in enumerate(parents))
            known = (float(self._adding[rest][parent]) for parent, rest in fewer if rest in self._adding)
            found = next(known, None)
            self._own[key] = family_score(self.counting, self.score, node, parents) if found is None else found
        return self._own[key]

    def adding(self, node: int, parents: tuple[int, ...]) -> np.ndarray:
        """Return, for every node, the score with it as an additional parent; -inf if that is not allowed."""
        key = node, parents
        if key not in self._adding:
            found = np.full(len(self.counting.sizes), -np.inf)
            cells = self._sizes * prod(self.counting.sizes[each] for each in (*parents, node))
            allowed = self._allowed[:, node] & (cells <= self.rules.max_cells)
            allowed[list(parents)] = False
            if self.rules.max_parents is not None and len(parents) >= self.rules.max_parents:
                allowed[:] = False
            every = np.flatnonzero(allowed)
            portion = np.cumsum(cells[every]) // AT_ONCE
            for number in np.unique(portion):
                others = every[portion == number]
                sizes = self._sizes[others]
                table = self.counting.with_each((*parents, node), others.tolist())
                found[others] = self.score.of_tables(table.reshape(-1, self.counting.sizes[node], sizes.sum()), sizes)
            self._adding[key] = found
        return self._adding[key]

    def allowed_sets(self, node: int) -> Iterator[tuple[int, ...]]:
        sizes, rules = self.counting.sizes, self.rules
        required = {parent for parent, child in rules.required if child == node}
        others = np.flatnonzero(self._allowed[:, node]).tolist()
        most = len(others) if rules.max_parents is None else min(rules.max_parents, len(others))
        for parents in chain.from_iterable(combinations(others, length) for length in range(most + 1)):
            cells = prod(sizes[each] for each in (*parents, node))
            if required.issubset(parents) and (not parents or cells <= rules.max_cells):
                yield parents
