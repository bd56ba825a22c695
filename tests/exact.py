"""Numbers around a mean, again and in exact arithmetic: normals, lognormals and correlated blocks, row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

Cells = Sequence[Any]
Group = dict[str, Any]
Members = Sequence[Sequence[float]]
Matrix = list[list[float]]
Moments = tuple[Fraction, Any, Any]


# -- small matrices


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> tuple[list[float], float]:
    """x with matrix x = right, and the log-determinant, by exact elimination of a positive definite matrix."""
    rows = [[*map(Fraction, line), Fraction(value)] for line, value in zip(matrix, right, strict=True)]
    log_det, size = 0.0, len(rows)
    for i in range(size):
        log_det += _log_fraction(rows[i][i])
        for k in range(i + 1, size):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    x = [Fraction(0)] * size
    for i in reversed(range(size)):
        x[i] = (rows[i][-1] - sum(rows[i][k] * x[k] for k in range(i + 1, size))) / rows[i][i]
    return [float(value) for value in x], log_det


def _log_fraction(x: Fraction) -> float:
    return math.log(x.numerator) - math.log(x.denominator)


def part_of(matrix: Any, rows: Sequence[int], columns: Sequence[int]) -> Matrix:
    return [[float(matrix[i][j]) for j in columns] for i in rows]


# -- numbers around a mean, in exact arithmetic


def normals(family: Any, columns: Sequence[Cells], members: Members, prior: float, how: str) -> list[list[Group]]:
    """The groups of every column that shares `family`; variances are shared as `tied` says, or known."""
    if family.name == "lognormal":
        columns = [[None if cell is None else math.log(cell) for cell in cells] for cells in columns]
    moments = [[moments_of(cells, [row[g] for row in members]) for g in range(len(members[0]))] for cells in columns]
    wholes = [moments_of(cells, [math.fsum(row) for row in members]) for cells in columns]
    imagined = 0.0 if how == "ml" else prior
    pooled = [_pooled(own, whole, imagined) for own, whole in zip(moments, wholes, strict=True)]
    return [
        [_normal_group(family, pooled, moments, wholes, (j, g), how, imagined) for g in range(len(members[0]))]
        for j in range(len(columns))
    ]


def moments_of(cells: Cells, weights: Sequence[float]) -> Moments:
    """Weight, mean and squares about the mean, exactly."""
    there = [(Fraction(cell), Fraction(w)) for cell, w in zip(cells, weights, strict=True) if cell is not None and w]
    rows = sum((w for _, w in there), Fraction(0))
    mean = _ratio(sum((w * x for x, w in there), Fraction(0)), rows)
    return rows, mean, sum((w * (x - mean) ** 2 for x, w in there), Fraction(0))


def _pooled(own: Sequence[Moments], whole: Moments, imagined: float) -> list[tuple[Fraction, Fraction]]:
    """Squares and weight of each group of a column, with the imagined rows; none for a column nobody saw."""
    extra = Fraction(imagined if whole[0] else 0)
    return [(squares + extra * _spread(whole), rows + extra) for rows, _, squares in own]


def _spread(whole: Moments) -> Fraction:
    """A column's variance; one, where nobody saw a value of it."""
    return whole[2] / whole[0] if whole[0] else Fraction(1)


def _ratio(top: Fraction, bottom: Fraction) -> Fraction:
    return top / bottom if bottom else Fraction(0)


def _normal_group(
    family: Any, pooled: Any, moments: Any, wholes: Any, at: tuple[int, int], how: str, imagined: float
) -> Group:
    j, g = at
    columns = range(len(pooled)) if family.tied in ("columns", "both") else [j]
    groups = range(len(pooled[0])) if family.tied in ("classes", "both") else [g]
    squares = sum(pooled[c][k][0] for c in columns for k in groups)
    weight = sum(pooled[c][k][1] for c in columns for k in groups)
    rows, mean, _ = moments[j][g]
    whole = float(_spread(wholes[j]))
    variance = family.variance or (float(squares / weight) if weight else whole)
    group = {"mean": float(mean if rows else wholes[j][1]), "variance": variance, "whole": whole}
    if how == "predictive":
        lost = sum(1 for c in columns for k in groups if moments[c][k][0])
        freedom = float(weight) if imagined and wholes[j][0] else max(float(weight) - lost, 1.0)
        group["freedom"] = math.inf if family.variance else freedom
        group["spread"] = variance * (1 + 1 / max(float(rows), 1.0))
    return group


# -- correlated blocks


def multinormals(
    family: Any, cells: Cells, members: Members, prior: float, how: str, before: Sequence[Group] | None = None
) -> list[Group]:
    """The groups of a block; holes count with their conditional expectations under the parameters `before`."""
    d = len(cells[0])
    weights = [[row[g] for row in members] for g in range(len(members[0]))]
    parts = [_block_moments(cells, own, before[g] if before else None) for g, own in enumerate(weights)]
    columns = [moments_of([cell[i] for cell in cells], [math.fsum(row) for row in members]) for i in range(d)]
    whole, middle = [float(_spread(column)) for column in columns], [column[1] for column in columns]
    imagined = 0.0 if how == "ml" else prior
    scatters = [_with_prior(part[2], imagined, whole) for part in parts]
    masses = [float(part[0]) + imagined for part in parts]
    if family.covariance == "tied":
        scatters = [[[math.fsum(s[i][j] for s in scatters) for j in range(d)] for i in range(d)]] * len(parts)
        masses = [math.fsum(masses)] * len(parts)
    apart = [[whole[i] if i == j else 0.0 for j in range(d)] for i in range(d)]
    pairs = [(scatter, mass) if mass else (apart, 1.0) for scatter, mass in zip(scatters, masses, strict=True)]
    shaped = [_shaped(family.covariance, scatter, mass, d) for scatter, mass in pairs]
    return [
        {"mean": [float(m) for m in (part[1] if part[0] else middle)], "covariance": covariance, "whole": whole}
        for part, covariance in zip(parts, shaped, strict=True)
    ]


def _with_prior(scatter: Any, imagined: float, whole: Sequence[float]) -> Matrix:
    size = range(len(whole))
    return [[float(scatter[i][j]) + (imagined * whole[i] if i == j else 0.0) for j in size] for i in size]


def _block_moments(cells: Cells, weights: Sequence[float], before: Group | None) -> Moments:
    """Weight, mean and centred products of a block, with what the holes are expected to add."""
    d = len(cells[0])
    filled = [
        (Fraction(w), *completed(cell, before))
        for cell, w in zip(cells, weights, strict=True)
        if w and any(part is not None for part in cell)
    ]
    rows = sum((w for w, _, _ in filled), Fraction(0))
    mean = [_ratio(sum((w * x[i] for w, x, _ in filled), Fraction(0)), rows) for i in range(d)]
    scatter = [[Fraction(0)] * d for _ in range(d)]
    for w, x, extra in filled:
        for i, j in product(range(d), range(d)):
            scatter[i][j] += w * ((x[i] - mean[i]) * (x[j] - mean[j]) + extra[i][j])
    return rows, mean, scatter


def completed(cell: Sequence[Any], group: Group | None) -> tuple[list[Fraction], list[list[Fraction]]]:
    """A row with its holes at their conditional means, and the covariance that is left."""
    d = len(cell)
    there = [i for i in range(d) if cell[i] is not None]
    holes = [i for i in range(d) if cell[i] is None]
    extra = [[Fraction(0)] * d for _ in range(d)]
    filled = [Fraction(0 if part is None else part) for part in cell]
    if not holes:
        return filled, extra
    assert group is not None, "a row with holes needs parameters to be completed"
    mean, covariance = group["mean"], group["covariance"]
    known = part_of(covariance, there, there)
    off = [float(Fraction(cell[i]) - Fraction(mean[i])) for i in there]
    for h in holes:
        gain, _ = solve(known, [float(covariance[i][h]) for i in there])
        filled[h] = Fraction(mean[h]) + Fraction(math.fsum(a * b for a, b in zip(gain, off, strict=True)))
        for k in holes:
            explained = math.fsum(a * float(covariance[i][k]) for a, i in zip(gain, there, strict=True))
            extra[h][k] = Fraction(float(covariance[h][k]) - explained)
    return filled, extra


def _shaped(shape: str, scatter: Matrix, weight: float, d: int) -> Matrix:
    covariance = [[scatter[i][j] / weight for j in range(d)] for i in range(d)]
    if shape in ("diagonal", "spherical"):
        covariance = [[covariance[i][j] if i == j else 0.0 for j in range(d)] for i in range(d)]
    if shape == "spherical":
        middle = math.fsum(covariance[i][i] for i in range(d)) / d
        covariance = [[middle if i == j else 0.0 for j in range(d)] for i in range(d)]
    return covariance
