"""Mixtures of normals within a group, again and row by row: the density of a cell, one EM step, and its height."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from exact import moments_of

Cells = Sequence[Any]
Group = dict[str, Any]
WITHIN = 0.01
"""Of the column's variance, that of rows imagined in one of several parts."""
Members = Sequence[Sequence[float]]


def _cells(cell: Any) -> tuple[Any, ...]:
    return cell if isinstance(cell, tuple) else (cell,)


def _parts(group: Group) -> list[tuple[float, list[float], list[float]]]:
    """Share, means and variances of every part; a single column is a block of one."""
    share = [float(s) for s in group["share"]]
    lines = [[np.atleast_1d(part).tolist() for part in group[name]] for name in ("mean", "variance")]
    return list(zip(share, *lines, strict=True))


def _joint(cell: Any, group: Group) -> list[float]:
    """The log of share times density of every part."""
    found = []
    for share, means, variances in _parts(group):
        total = math.log(share) if share > 0 else -math.inf
        for x, mean, variance in zip(_cells(cell), means, variances, strict=True):
            if x is not None:
                off = float(Fraction(x) - Fraction(mean)) / math.sqrt(variance)
                total -= 0.5 * (math.log(2 * math.pi) + math.log(variance) + off * off)
        found.append(total)
    return found


def _log_sum(terms: Sequence[float]) -> float:
    top = max(terms)
    return top + math.log(math.fsum(math.exp(term - top) for term in terms))


def mixed_density(cell: Any, group: Group, levels: Sequence[Any]) -> float:
    """The log-density of a row's cells; where none is there they say nothing."""
    return 0.0 if all(x is None for x in _cells(cell)) else _log_sum(_joint(cell, group))


def mixed_step(cells: Cells, members: Members, prior: float, how: str, before: Sequence[Group]) -> list[Group]:
    """One EM step from the groups `before`: parts as likely as their densities say, then as those rows have it."""
    imagined = 0.0 if how == "ml" else prior
    extra = {"ml": 0.0, "map": prior - 1.0}.get(how, prior)
    columns = list(zip(*map(_cells, cells), strict=True))
    heavy = [math.fsum(row) for row in members]
    usual = [_moments(column, heavy) for column in columns]
    whole = [variance for _, _, variance in usual]
    found = []
    for g, group in enumerate(before):
        shares = []
        for cell, row in zip(cells, members, strict=True):
            joint = _joint(cell, group)
            here = row[g] if any(x is not None for x in _cells(cell)) else 0.0
            shares.append([here * math.exp(term - _log_sum(joint)) for term in joint])
        mass = [math.fsum(row[p] for row in shares) + extra for p in range(len(group["share"]))]
        total = math.fsum(mass)
        parts = [[_part(c, [row[p] for row in shares], imagined, u) for c, u in zip(columns, usual, strict=True)]
                 for p in range(len(mass))]  # fmt: skip
        squeeze = (lambda line: line[0]) if len(columns) == 1 else (lambda line: line)
        found.append({
            "share": [m / total if total > 0 else 1 / len(mass) for m in mass],
            "mean": [squeeze([mean for mean, _ in part]) for part in parts],
            "variance": [squeeze([variance for _, variance in part]) for part in parts],
            "whole": whole[0] if len(columns) == 1 else np.array(whole),
        })  # fmt: skip
    return found


def _moments(column: Cells, weights: Sequence[float]) -> tuple[float, float, float]:
    """Rows, mean and variance of the cells that are there."""
    there = [(x, w) for x, w in zip(column, weights, strict=True) if x is not None and w]
    if not there:
        return 0.0, 0.0, 1.0
    mass, mean, squares = moments_of([x for x, _ in there], [w for _, w in there])
    return float(mass), float(mean), float(squares / mass)


def _part(
    column: Cells, weights: Sequence[float], imagined: float, usual: tuple[float, float, float]
) -> tuple[float, float]:
    rows, mean, variance = _moments(column, weights)
    if not rows:
        return usual[1], usual[2]
    return mean, (rows * variance + imagined * WITHIN * usual[2]) / (rows + imagined)


def mixed_height(cells: Cells, weights: Sequence[float], group: Group, imagined: float, how: str) -> float:
    """What the parameters of one group climb: log-likelihood and log-prior."""
    rows = math.fsum(w * mixed_density(cell, group, ()) for cell, w in zip(cells, weights, strict=True) if w)
    extra = {"ml": 0.0, "map": imagined - 1.0}.get(how, imagined)
    shares = math.fsum(extra * math.log(share) for share, _, _ in _parts(group)) if extra else 0.0
    whole = np.atleast_1d(group["whole"]).tolist()
    spreads = math.fsum(
        math.log(v) + WITHIN * w / v for _, _, variances in _parts(group) for v, w in zip(variances, whole, strict=True)
    )
    return rows + shares - 0.5 * imagined * spreads
