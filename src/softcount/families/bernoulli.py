"""Yes-or-no columns: a categorical that always has its two levels, seen or not."""

from __future__ import annotations

from dataclasses import dataclass

from softcount.families.base import register
from softcount.families.categorical import Categorical


@register
@dataclass(frozen=True, slots=True)
class Bernoulli(Categorical):
    """Success or failure; the last level in sorted order is the success."""

    name = "bernoulli"
