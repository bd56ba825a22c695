"""A star whose leaves score by weights of their own: what tells classes once those are learned by conditional loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from softcount.models.nodes import Params
from softcount.models.star import Star
from softcount.models.tiles import TILE, Ready, rows_of
from softcount.records import dataclass
from softcount.table.schema import Key


@dataclass(frozen=True, slots=True, eq=False)
class LinearStar:
    """Scores are each leaf's features times (groups x features) weights, and a bias for every class.

    It only tells classes: densities, samples and everything else are the star's own. A missing cell adds nothing, and
    neither does a level never seen.
    """

    star: Star
    weights: Mapping[Key, np.ndarray]
    bias: np.ndarray

    def compile(self, params: Params) -> list[Any]:
        """The bias, and for every stack the weights of its nodes; no parameter of the star matters."""
        return [
            np.tile(self.bias, (TILE, 1)),
            *([self.weights[node.key] for node in stack.nodes] for stack in self.star.stacks),
        ]

    def score(self, ready: Ready, compiled: list[Any], rows: slice, out: np.ndarray | None = None) -> np.ndarray:
        """(rows x groups) the sum."""
        joint = np.empty((rows.stop - rows.start, self.star.groups)) if out is None else out
        joint[:] = self.bias
        for stack, data, weights in zip(self.star.stacks, ready.data, compiled[1:], strict=True):
            here = rows_of(data, rows)
            for place, own in enumerate(weights):
                stack.score_linear(here, place, own, joint)
        return joint

    def score_parts(self, compiled: list[Any], ready: Ready) -> dict[Key, np.ndarray]:
        """Each leaf's own part of the sum."""
        found: dict[Key, np.ndarray] = {}
        for stack, data, weights in zip(self.star.stacks, ready.data, compiled[1:], strict=True):
            for place, (node, own) in enumerate(zip(stack.nodes, weights, strict=True)):
                found[node.key] = np.zeros((ready.n_rows, self.star.groups))
                stack.score_linear(data, place, own, found[node.key])
        return {leaf.key: found[leaf.key] for leaf in self.star.leaves}
