"""The stack of one column of numbers that is counted at each different value and scored cell by cell."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from softcount.models.nodes import Name, Params
from softcount.models.stacks import Stack, Tallies
from softcount.numerics.twofold import Twofold
from softcount.records import dataclass
from softcount.table.chunk import Chunk


@dataclass(frozen=True, slots=True, eq=False)
class PointStack(Stack):
    """Rows are numbers, NaN where missing; the family itself says where each is counted and what its cell is worth."""

    clamped: ClassVar[bool] = False

    def prepare(self, chunk: Chunk) -> np.ndarray:
        own = self.column(chunk)
        self.node.family.check(own, self.node.key, chunk.start)
        return own

    def column(self, chunk: Chunk, node: int = 0) -> np.ndarray:
        return np.ascontiguousarray(chunk.reals[:, self.places[0].slot])

    def base(self, data: np.ndarray) -> float:
        return 0.0

    def compile(self, params: Params) -> Any:
        return self.node.family.scorable(params[self.node.key], self.node.setting)

    def score(self, data: np.ndarray, compiled: Any, out: np.ndarray) -> None:
        out += self.node.family.score(data, compiled, self.node.setting)

    def score_node(self, data: np.ndarray, compiled: Any, node: int, out: np.ndarray) -> None:
        self.score(data, compiled, out)

    def count(self, data: np.ndarray, memberships: np.ndarray, compiled: Any) -> Tallies:
        return {self.name: self.node.family.count(data, memberships, None, self.node.setting)}

    def count_labelled(self, data: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, groups: int) -> Tallies:
        return {self.name: self.node.family.count_labels(data, labels, weights, groups, self.node.setting)}

    def split(self, counts: Twofold) -> dict[Name, Twofold]:
        return {self.bundles[0].name: counts}

    def features(self, data: np.ndarray) -> None:
        return None
