"""Weights of a logistic regression on the features of the families."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from softcount.models.base import ClassModel
from softcount.models.linear_star import LinearStar
from softcount.models.star import Star
from softcount.records import dataclass
from softcount.table.schema import Key


@dataclass(frozen=True, slots=True, eq=False)
class LinearWeights:
    """By leaf (groups x features) weights, the bias of every class, and the penalty and iterations they took."""

    weights: Mapping[Key, np.ndarray]
    bias: np.ndarray
    penalty: float
    n_iter: int

    def of(self, model: ClassModel) -> LinearStar:
        """The model with these weights."""
        assert isinstance(model, Star)
        return LinearStar(model, self.weights, self.bias)
