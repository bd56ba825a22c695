"""Rows that show so much that little of the network is left, but more than a shared sum can hold: a tree for each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from softcount.errors import ResourceError
from softcount.networks.ask import distinct_rows
from softcount.networks.elimination import Scope
from softcount.networks.graph import Graph
from softcount.networks.junction_tree import JunctionTree
from softcount.networks.loaded_tree import LoadedTree
from softcount.networks.row_evidence import Evidence
from softcount.records import dataclass

ROW_TREE_CELLS = 2**20
"""Cells of the tree of one row, which take some milliseconds in every pass; Gibbs chains take as long for a row."""


class UnseenPart(NamedTuple):
    """What is left of the tables when the nodes that a row shows are cut out, and the tree of it."""

    tree: JunctionTree
    cut: list[tuple[int | None, ...]]
    """For each table, the nodes whose level is to be taken; None along an axis that is left whole."""


class RowTreeShare(NamedTuple):
    """What rows add to the counts of families, and their log-likelihoods."""

    counts: list[np.ndarray]
    logs: np.ndarray


@dataclass(frozen=True)
class RowTrees:
    """Codes and weights of rows, and by pattern of what they show the tree of what they do not."""

    graph: Graph
    sizes: tuple[int, ...]
    codes: np.ndarray
    weights: np.ndarray

    @cached_property
    def _patterns(self) -> tuple[list[UnseenPart | None], np.ndarray]:
        first, again = distinct_rows(self.codes >= 0)
        return [self._part(self.codes[row] >= 0) for row in first], again

    def _part(self, seen: np.ndarray) -> UnseenPart | None:
        """None where the tree would be too large."""
        families = self.graph.families
        free = [tuple(node for node in family if not seen[node]) for family in families]
        try:
            tree = JunctionTree.build(self.sizes, free, ROW_TREE_CELLS)
        except ResourceError:
            return None
        return UnseenPart(tree, [tuple(node if seen[node] else None for node in family) for family in families])

    @property
    def exact(self) -> np.ndarray:
        """Which rows have a tree."""
        parts, again = self._patterns
        return np.asarray(np.array([part is not None for part in parts], bool)[again])

    def expect(self, tables: Sequence[np.ndarray]) -> RowTreeShare:
        """Of the rows that have a tree; the others add nothing, and their log-likelihood is nought."""
        counts, logs = [np.zeros_like(table) for table in tables], np.zeros(len(self.codes))
        parts, again = self._patterns
        unseen = Evidence(np.full((1, len(self.sizes)), -1))
        for row, codes in enumerate(self.codes):
            part = parts[again[row]]
            if part is None:
                continue
            places = [_place(cut, codes) for cut in part.cut]
            own = [table[place] for table, place in zip(tables, places, strict=True)]
            found = LoadedTree(part.tree, own).expected(unseen, self.weights[row : row + 1])
            logs[row] = found.log_evidence[0]
            for total, place, count in zip(counts, places, found.counts, strict=True):
                total[place] += count
        return RowTreeShare(counts, logs)


def _place(cut: Scope | tuple[int | None, ...], codes: np.ndarray) -> tuple[int | slice, ...]:
    """The index of what is left of a table in a row with these codes."""
    return tuple(slice(None) if node is None else int(codes[node]) for node in cut)
