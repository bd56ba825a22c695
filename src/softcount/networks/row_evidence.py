"""What was seen, row by row, as arrays along the axes of nodes with the rows (lanes) last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache, cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from softcount.errors import DataError
from softcount.networks.elimination import Scope
from softcount.records import dataclass

Array = np.ndarray


class LaneInput(NamedTuple):
    """Factors over a scope, one for each lane: (levels of each node ..., lanes); one lane serves for all."""

    scope: Scope
    values: Array
    logs: bool = False
    """Whether the values are logarithms."""


@dataclass(frozen=True)
class Evidence:
    """Codes (rows x nodes, -1 unseen), and what else speaks of a row.

    `likelihoods` of a node are (rows x levels): a set of levels is ones and zeros. `factors` are by scope, which must
    lie within a clique: logarithms, (rows x cells), the scope's first node changing slowest.
    """

    codes: Array
    likelihoods: Mapping[int, Array] = field(default_factory=dict)
    factors: Mapping[Scope, Array] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return len(self.codes)

    @cached_property
    def columns(self) -> Array:
        return np.ascontiguousarray(self.codes.T, dtype=np.intp)

    @cached_property
    def seen(self) -> Scope:
        """Nodes seen in some row."""
        return tuple(np.flatnonzero((self.columns >= 0).any(axis=1)).tolist())

    @property
    def soft(self) -> tuple[Scope, ...]:
        """Scopes of which likelihoods or factors speak."""
        return (*((node,) for node in self.likelihoods), *self.factors)

    def take(self, rows: Array) -> Evidence:
        """Of some rows."""
        return Evidence(
            self.codes[rows],
            {node: given[rows] for node, given in self.likelihoods.items()},
            {scope: given[rows] for scope, given in self.factors.items()},
        )

    def check(self, sizes: Sequence[int]) -> None:
        """Refuses what is no evidence on nodes of these sizes."""
        if self.codes.ndim != 2 or self.codes.shape[1] != len(sizes):
            raise DataError(f"codes are (rows x {len(sizes)} nodes), not {self.codes.shape}.")
        if self.codes.dtype.kind not in "iu":
            raise DataError(f"codes are whole numbers, not {self.codes.dtype}.")
        wrong = (self.codes < -1) | (self.codes >= np.asarray(sizes, dtype=np.intp))
        if wrong.any():
            row, node = map(int, np.argwhere(wrong)[0])
            raise DataError(
                f"row {row} has code {self.codes[row, node]} for node {node}; "
                f"its levels are 0 to {sizes[node] - 1}, and -1 is unseen."
            )
        for node, given in self.likelihoods.items():
            self._check_shape(f"likelihoods of node {node}", given, sizes[node])
            if not (np.isfinite(given) & (given >= 0)).all():
                raise DataError(f"likelihoods of node {node} are finite numbers from 0 on.")
        for scope, logs in self.factors.items():
            self._check_shape(f"factors of nodes {scope}", logs, prod(sizes[node] for node in scope))
            if not (logs < np.inf).all():
                raise DataError(f"factors of nodes {scope} are logarithms: finite, or minus infinity.")

    def _check_shape(self, what: str, given: Array, cells: int) -> None:
        if given.shape != (self.rows, cells):
            raise DataError(f"{what} are ({self.rows} rows x {cells} cells), not {given.shape}.")

    def inputs(self, sizes: Sequence[int], block: slice, nodes: Iterable[int]) -> Iterator[LaneInput]:
        """The lanes of a block of rows: the levels of these nodes, and all likelihoods and factors."""
        for node in nodes:
            yield LaneInput((node,), _indicators(sizes[node]).take(self.columns[node, block], axis=1))
        for node, given in self.likelihoods.items():
            top = given[block].max(axis=1)
            yield LaneInput((), top)
            yield LaneInput((node,), np.ascontiguousarray((given[block] / np.where(top > 0, top, 1.0)[:, None]).T))
        for scope, logs in self.factors.items():
            lanes = np.ascontiguousarray(logs[block].T).reshape(*(sizes[node] for node in scope), -1)
            yield LaneInput(scope, lanes, logs=True)


@cache
def _indicators(levels: int) -> Array:
    """A column for each code; the last, which is also that of -1, is all ones."""
    return np.concatenate([np.eye(levels), np.ones((levels, 1))], axis=1)


def unlogged(inputs: Sequence[LaneInput]) -> tuple[list[LaneInput], Array | float]:
    """Inputs as plain numbers, the largest of a lane being one, and the logarithm of what they were divided by."""
    found: list[LaneInput] = []
    shift: Array | float = 0.0
    for each in inputs:
        if each.logs:
            top = each.values.reshape(-1, each.values.shape[-1]).max(axis=0)
            top = np.where(top > -np.inf, top, 0.0)
            shift = shift + top
            each = LaneInput(each.scope, np.exp(each.values - top))
        found.append(each)
    return found, shift
