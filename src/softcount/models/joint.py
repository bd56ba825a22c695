"""The columns of a joint model: independent marginals, beside which its fitted class holds the mixture of trees."""

from __future__ import annotations

from typing import ClassVar

from softcount.models.base import register_model
from softcount.models.star import Star


@register_model
class JointColumns(Star, frozen=True, eq=False, dict=True):
    """Marginal distributions of the columns: a naive Bayes structure of one group."""

    name: ClassVar[str] = "joint"
