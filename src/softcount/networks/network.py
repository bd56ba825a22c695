"""A network whose nodes are all discrete: a graph, the levels of its nodes, and a table of probabilities for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from softcount.errors import DataError
from softcount.networks.graph import Graph, Name
from softcount.records import dataclass

CLOSE_TO_ONE = 1e-6
"""How far from one the probabilities of a configuration may sum."""

ROUNDED = 1e-12
"""Sums nearer to one are left as they are, so that a table written and read again has the same bits."""

MOST_AXES = 64
"""What an array may have: a node and 63 parents."""


@dataclass(frozen=True, eq=False)
class Network:
    """A graph, the levels of each node as text, and for each node the probabilities of its levels given its parents.

    Rows that sum to one but for rounding are divided by their sums. Tables cannot be written to.

    >>> wet = Network(Graph.of([("Rain", "Wet")]), [("no", "yes"), ("no", "yes")], [[0.8, 0.2], [[1, 0], [0.1, 0.9]]])
    >>> wet.sizes, wet.n_parameters
    ((2, 2), 3)
    >>> np.exp(wet.log_prob([[1, 1], [0, 1]])).round(3).tolist()
    [0.18, 0.0]
    """

    graph: Graph
    levels: Sequence[Sequence[str]]
    tables: Sequence[np.ndarray]

    def __post_init__(self) -> None:
        names = self.graph.names
        for what, given in (("levels", self.levels), ("tables", self.tables)):
            if len(given) != len(names):
                raise DataError(f"the network has {len(names)} nodes, but {what} are given for {len(given)}.")
        object.__setattr__(self, "levels", tuple(map(_checked_levels, names, self.levels)))
        tables = tuple(self._checked_table(node, table) for node, table in enumerate(self.tables))
        object.__setattr__(self, "tables", tables)

    def _checked_table(self, node: int, table: object) -> np.ndarray:
        name, family = self.graph.names[node], self.graph.families[node]
        if len(family) > MOST_AXES:
            raise DataError(f"node {name!r} has {len(family) - 1} parents; a table can have {MOST_AXES - 1} at most.")
        try:
            found = np.array(table, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(f"the table of node {name!r} is no array of numbers.") from None
        shape = tuple(self.sizes[place] for place in family)
        if found.shape != shape:
            raise DataError(f"the table of node {name!r} has the shape {found.shape}; its parents make it {shape}.")
        rows = found.reshape(-1, shape[-1])
        if complaint := first_bad_row(rows, CLOSE_TO_ONE):
            parents = self.graph.parents[node]
            names = [self.graph.names[parent] for parent in parents]
            given = in_words(names, [self.levels[parent] for parent in parents], complaint[0])
            raise DataError(f"the table of node {name!r}{given} {complaint[1]}.")
        found = normalised(rows).reshape(shape)
        found.flags.writeable = False
        return found

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many levels each node has."""
        return tuple(map(len, self.levels))

    @property
    def n_parameters(self) -> int:
        """Free probabilities: one less than the levels, for every configuration of the parents."""
        return sum(table.size // size * (size - 1) for table, size in zip(self.tables, self.sizes, strict=True))

    def text_names(self) -> tuple[str, ...]:
        """The nodes' names as a file has them; refused where two of them would be the same text."""
        names = tuple(map(str, self.graph.names))
        if len(set(names)) < len(names):
            raise DataError("two nodes have names that are the same as text. Give them different ones.")
        return names

    def log_prob(self, codes: np.ndarray | Sequence[Sequence[int]]) -> np.ndarray:
        """The log-probability of each row, in which every node was seen."""
        rows = self._checked_codes(codes)
        total = np.zeros(len(rows))
        with np.errstate(divide="ignore"):
            for table, family in zip(self.tables, self.graph.families, strict=True):
                total += np.log(table[tuple(rows[:, node] for node in family)])
        return total

    def _checked_codes(self, codes: np.ndarray | Sequence[Sequence[int]]) -> np.ndarray:
        rows = np.asarray(codes)
        if rows.ndim != 2 or rows.shape[1] != len(self.sizes) or rows.dtype.kind not in "iu":
            raise DataError(f"codes are whole numbers, rows x {len(self.sizes)} nodes, not {rows.dtype} {rows.shape}.")
        bad = np.argwhere((rows < 0) | (rows >= np.array(self.sizes, dtype=np.int64)))
        if len(bad):
            row, node = map(int, bad[0])
            name, last = self.graph.names[node], self.sizes[node] - 1
            raise DataError(f"row {row} has the code {rows[row, node]} for node {name!r}; its codes are 0 to {last}.")
        return rows

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn from the network, as codes; nodes are drawn parents first, all rows of a node at once."""
        codes = np.zeros((n, len(self.sizes)), dtype=np.int64)
        for node in self.graph.order:
            table, parents = self.tables[node], self.graph.parents[node]
            chosen = np.ravel_multi_index(tuple(codes[:, p] for p in parents), table.shape[:-1]) if parents else 0
            below = table.reshape(-1, table.shape[-1]).cumsum(axis=1)
            below /= below[:, -1:]  # exactly one at the end: a level of probability zero is never drawn
            draws = rng.random(n)
            for bound in below.T[:-1]:
                codes[:, node] += draws >= bound[chosen]
        return codes


def _checked_levels(name: object, levels: Sequence[str]) -> tuple[str, ...]:
    if isinstance(levels, str) or not len(levels) or not all(isinstance(level, str) for level in levels):
        raise DataError(f"the levels of node {name!r} are a list of texts, at least one, not {levels!r}.")
    if len(set(levels)) < len(levels):
        raise DataError(f"two levels of node {name!r} have the same name: {', '.join(map(repr, levels))}.")
    return tuple(levels)


def in_words(names: Sequence[Name], levels: Sequence[Sequence[str]], configuration: int) -> str:
    """Which configuration of a node's parents is meant, to follow the node's name in a message.

    >>> in_words(["Rain", "Wind"], [("no", "yes"), ("none", "some", "much")], 4)
    " where Rain = 'yes', Wind = 'some'"
    """
    said = []
    for name, own in zip(reversed(names), reversed(levels), strict=True):
        configuration, level = divmod(configuration, len(own))
        said.append(f"{name} = {own[level]!r}")
    return f" where {', '.join(reversed(said))}" if said else ""


def first_bad_row(rows: np.ndarray, tolerance: float) -> tuple[int, str] | None:
    """The first configuration that holds no probabilities or whose sum is not nearly one, and what is wrong with it."""
    wrong = ~(rows >= 0).all(axis=1) | (rows > 1 + tolerance).any(axis=1)
    sums = np.where(wrong, np.nan, 1.0)
    sums[~wrong] = rows[~wrong].sum(axis=1)
    bad = np.flatnonzero(~(np.abs(sums - 1) <= tolerance))
    if not len(bad):
        return None
    place = int(bad[0])
    if not math.isnan(sums[place]):
        return place, f"sums to {sums[place]:.9g} instead of 1"
    value = next(float(value) for value in rows[place] if not 0 <= value <= 1 + tolerance)
    return place, f"holds {value:.9g}, which is no probability"


def normalised(rows: np.ndarray) -> np.ndarray:
    """The rows, those divided by their sums whose sums are not one."""
    sums = rows.sum(axis=1, keepdims=True)
    return np.where(np.abs(sums - 1) > ROUNDED, rows / sums, rows)
