"""A star whose leaves have a weight each: what tells classes where columns repeat each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.models.bag_stack import Bag
from softcount.models.nodes import Params
from softcount.models.star import Star
from softcount.models.tiles import TILE, Ready, rows_of
from softcount.records import dataclass
from softcount.table.schema import Key

LOWEST = -1e3
"""What an impossible cell adds to a score, times the weight of its column."""


def bounded(own: np.ndarray, words: bool) -> np.ndarray:
    """What a leaf adds to the classes' scores, no less than the lowest; of words no less than that below the best.

    A document of two hundred words has a log-density below the lowest in every class, and would tell none.
    """
    if words:
        best = own.max(axis=-1, keepdims=True)
        own = own - np.where(np.isfinite(best), best, 0.0)
    return np.asarray(np.maximum(own, LOWEST))


@dataclass(frozen=True, slots=True, eq=False)
class WeighedStar:
    """Scores are the leaves' log-densities, each times its weight, and a bias for every class in place of the shares.

    It only tells classes: densities, samples and everything else are the star's own.
    """

    star: Star
    weights: np.ndarray  # in the order of the star's leaves
    bias: np.ndarray

    def compile(self, params: Params) -> list[Any]:
        """The bias, and for every stack its parameters, weighed where that is possible, and else the weights beside."""
        by_key = dict(zip((leaf.key for leaf in self.star.leaves), self.weights.tolist(), strict=True))
        compiled = self.star.compile(params, contrast=True)
        found: list[Any] = [np.tile(self.bias, (TILE, 1))]
        for stack, part in zip(self.star.stacks, compiled[1:], strict=True):
            own = np.array([by_key[node.key] for node in stack.nodes])
            weighed = stack.weighed(part, own)
            found.append((part, own) if weighed is None else (weighed, None))
        return found

    def score(self, ready: Ready, compiled: list[Any], rows: slice, out: np.ndarray | None = None) -> np.ndarray:
        """(rows x groups) the sum."""
        joint = np.empty((rows.stop - rows.start, self.star.groups)) if out is None else out
        for a in range(0, len(joint), TILE):
            joint[a : a + TILE] = compiled[0][: len(joint) - a]
        for stack, data, (part, weights) in zip(self.star.stacks, ready.data, compiled[1:], strict=True):
            here = rows_of(data, rows)
            if weights is None:
                stack.score(here, part, joint)
            else:
                own = stack.score_nodes(here, part, np.zeros((len(weights), *joint.shape)))
                joint += np.tensordot(weights, bounded(own, isinstance(stack, Bag)), 1)
        return joint

    def score_parts(self, compiled: list[Any], ready: Ready) -> dict[Key, np.ndarray]:
        """Each leaf's own part of the sum."""
        found: dict[Key, np.ndarray] = {}
        for stack, data, (part, weights) in zip(self.star.stacks, ready.data, compiled[1:], strict=True):
            own = stack.score_nodes(data, part, np.zeros((len(stack.nodes), ready.n_rows, self.star.groups)))
            if weights is not None:
                own = bounded(own, isinstance(stack, Bag)) * weights[:, None, None]
            found |= {node.key: own[place] for place, node in enumerate(stack.nodes)}
        return {leaf.key: found[leaf.key] for leaf in self.star.leaves}
