"""How a row's posterior becomes memberships: soft, hard, or drawn."""

from __future__ import annotations

from typing import Literal

import numpy as np

from softcount.models.star import Assign

Assignment = Literal["soft", "hard", "drawn"]
ASSIGNMENTS = ("soft", "hard", "drawn")


def hard(members: np.ndarray, start: int) -> None:
    """Every row wholly in its likeliest group, the lowest where several are; a row no group can have made in none."""
    top = members.argmax(axis=1)
    some = members.max(axis=1, initial=0.0) > 0
    members[:] = 0.0
    members[np.flatnonzero(some), top[some]] = 1.0


def drawn(seed: int, turn: int) -> Assign:
    """Every row wholly in one group drawn from its posterior; the draws depend on seed, turn and row alone."""

    def assign(members: np.ndarray, start: int) -> None:
        edges = np.cumsum(members, axis=1)
        chances = np.random.default_rng((seed, turn, start)).random(len(members))
        own = (chances[:, None] * edges[:, -1:] >= edges[:, :-1]).sum(axis=1)
        some = edges[:, -1] > 0
        members[:] = 0.0
        members[np.flatnonzero(some), own[some]] = 1.0

    return assign
