"""A longer step along the way EM is going (SQUAREM): two EM maps say where the series of steps is heading.

Probabilities and means are extrapolated as they are, variances and rates by their logarithm. The driver scores what
comes out and takes it only if the objective has risen, so acceleration can cost a pass but never a nat.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softcount.models.star import Star, StarParams

LOGGED = ("variance", "rate")
SHARES = ("probability",)
EXTRAPOLATED = ("mean", *LOGGED, *SHARES)
Vector = dict[tuple[object, str], np.ndarray]


def can_extrapolate(star: Star) -> bool:
    """Whether every parameter lives where a straight line makes sense; covariances do not."""
    return all(leaf.family.name not in ("multinormal", "binomial") for leaf in star.leaves)


@dataclass(frozen=True, slots=True)
class Leap:
    """Parameters further along, and what the two steps say about the pace: the share of a step the next one keeps."""

    params: StarParams
    rate: float


def leap(start: StarParams, first: StarParams, second: StarParams, longest: float) -> Leap:
    """Where two EM steps point to, at most `longest` steps ahead."""
    here, there, beyond = _vector(start), _vector(first), _vector(second)
    step = {name: there[name] - here[name] for name in here}
    bend = {name: (beyond[name] - there[name]) - step[name] for name in here}
    length, turn = _norm(step), _norm(bend)
    far = min(max(length / turn, 1.0), longest) if turn > 0 else 1.0
    moved = {name: here[name] + 2 * far * step[name] + far * far * bend[name] for name in here}
    rate = min(max(1.0 - turn / length, 0.0), 1.0 - 1e-6) if length > 0 else 0.0
    return Leap(_params(moved, second), rate)


def _norm(vector: Vector) -> float:
    return float(np.sqrt(sum(float((part * part).sum()) for part in vector.values())))


def _vector(params: StarParams) -> Vector:
    out: Vector = {("(shares)", "probability"): params.shares}
    for key, part in params.leaves.items():
        for name in EXTRAPOLATED:
            if name in part:
                out[key, name] = np.log(np.maximum(part[name], 1e-300)) if name in LOGGED else part[name]
    return out


def _params(vector: Vector, like: StarParams) -> StarParams:
    leaves = {}
    for key, part in like.leaves.items():
        moved = {name: _back(vector[key, name], name, part[name]) for name in EXTRAPOLATED if name in part}
        leaves[key] = part | moved
    return StarParams(_back(vector["(shares)", "probability"], "probability", like.shares), leaves)


def _back(moved: np.ndarray, name: str, like: np.ndarray) -> np.ndarray:
    if name in LOGGED:
        return np.exp(np.clip(moved, -690.0, 690.0))
    if name not in SHARES:
        return moved
    inside = np.where(moved > 0, moved, 0.01 * like)
    return inside / inside.sum(axis=-1, keepdims=True)
