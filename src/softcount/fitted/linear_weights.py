"""Weights of features that classes are told by in place of what the families say: a logistic regression."""

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
    """By leaf (groups x features) weights, the bias of every class, and how they were learned.

    The `penalty` drew them to this `share` of those of naive Bayes, which is 0 in a plain logistic regression; where
    it is infinite they are those.
    """

    weights: Mapping[Key, np.ndarray]
    bias: np.ndarray
    share: float
    penalty: float
    n_iter: int

    def of(self, model: ClassModel) -> LinearStar:
        """The model with these weights."""
        assert isinstance(model, Star)
        return LinearStar(model, self.weights, self.bias)
