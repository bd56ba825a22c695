"""The product form of independent normal columns, with which an E-step of complete rows is two matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

STEADY = 1e5
"""Largest terms of a product form for rows of typical size: a row's score may be off by 1e-16 of them, 1e-11."""


def square_form(compiled: Any, units: np.ndarray) -> np.ndarray | None:
    """(groups, 1 + 2 d) that multiply 1, t and t^2 of t = (x - anchor) * scale; None where that would lose digits.

    `compiled` are means, inverse deviations and constants in the user's units, as `score_reals` takes them.
    """
    means, inverse, constants = compiled
    anchors, scales = units
    with np.errstate(over="ignore", invalid="ignore"):
        pace, off = inverse / scales, (means - anchors) * inverse
        reach = np.abs(off) + 1.0
        eta = np.concatenate(
            [(constants - 0.5 * off * off).sum(axis=1, keepdims=True), pace * off, -0.5 * pace * pace], axis=1
        )
        steady = np.sqrt((reach**4).sum(axis=1)).max(initial=0.0) < STEADY
    return eta if steady and np.isfinite(eta).all() else None
