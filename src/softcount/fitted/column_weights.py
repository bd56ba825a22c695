"""A weight for every column where classes are told."""

from __future__ import annotations

import numpy as np

from softcount.models.base import ClassModel
from softcount.models.star import Star
from softcount.models.weighed_star import WeighedStar
from softcount.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class ColumnWeights:
    """The weight of every leaf in the order of the model, the bias of every class, and the penalty that was chosen."""

    weights: np.ndarray
    bias: np.ndarray
    penalty: float

    def of(self, model: ClassModel) -> WeighedStar:
        """The model with these weights."""
        assert isinstance(model, Star)
        return WeighedStar(model, self.weights, self.bias)
