"""Gamma and Student columns, again and row by row: densities, one EM step, and the heights that steps climb."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from exact import moments_of

Cells = Sequence[Any]
Group = dict[str, Any]
Members = Sequence[Sequence[float]]
MOST = 1e12
"""The largest shape of a gamma column."""


def digamma(x: float) -> float:
    """The slope of log gamma: pushed up to where its series has all digits, then back."""
    down = 0.0
    while x < 30.0:
        down += 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    return math.log(x) - 0.5 / x - r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r / 240))) - down


def shape_of(c: float, most: float) -> float:
    """The k with log k - digamma(k) = c, by halving; at most `most`."""
    gap = (lambda k: math.log(k) - digamma(k)) if c > 1e-6 else (lambda k: 0.5 / k + 1 / (12 * k * k))
    low, high = 1e-6, most
    if c <= 0 or gap(high) >= c:
        return most
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if gap(middle) > c else (low, middle)
    return middle


# -- gamma


def gamma_density(cell: Any, group: Group, levels: Sequence[Any]) -> float:
    """In fifty digits: at a shape of 1e12 the terms are a hundred million million times their sum."""
    if cell is None:
        return 0.0
    with localcontext(prec=50):
        k, x = Decimal(float(group["shape"])), Decimal(float(cell))
        ratio = x / Decimal(float(group["mean"]))
        return float(k * (k.ln() + ratio.ln() - ratio) - x.ln() - _log_gamma(k))


def _log_gamma(k: Decimal) -> Decimal:
    back = Decimal(0)
    while k < 200:
        back += k.ln()
        k += 1
    r = 1 / (k * k)
    rest = (1 - r / 30 * (1 - 2 * r / 7 * (1 - 3 * r / 4))) / (12 * k)
    return (k - Decimal("0.5")) * k.ln() - k + Decimal("0.91893853320467274178032973640562") + rest - back


def gammas(cells: Cells, members: Members, prior: float, how: str, levels: Sequence[Any]) -> list[Group]:
    """The mean is the rows' own; imagined rows lie from it as all rows do from theirs."""
    imagined = 0.0 if how == "ml" else prior
    _, middle, whole = _apart(cells, [math.fsum(row) for row in members])
    found = []
    for g in range(len(members[0])):
        rows, mean, apart = _apart(cells, [row[g] for row in members])
        weight = rows + imagined
        spare = (rows * apart + imagined * whole) / weight if weight else whole
        group = {"mean": mean if rows else middle, "shape": shape_of(spare, MOST)}
        found.append(group | {"whole": middle**2, "usual": shape_of(whole, MOST)})
    return found


def _apart(cells: Cells, weights: Sequence[float]) -> tuple[float, float, float]:
    """Rows, mean, and the logarithm of the mean less the mean logarithm, in fifty digits."""
    with localcontext(prec=50):
        there = [(Decimal(float(cell)), Decimal(w)) for cell, w in zip(cells, weights, strict=True) if cell and w]
        rows = sum((w for _, w in there), Decimal(0))
        if not rows:
            return 0.0, 1.0, 1.0
        mean = sum(w * x for x, w in there) / rows
        logs = sum(w * x.ln() for x, w in there) / rows
        return float(rows), float(mean), max(float(mean.ln() - logs), 0.0)


# -- Student


def student_density(cell: float, group: Group) -> float:
    """The log-density of Student's t."""
    nu, spread = float(group["freedom"]), float(group["spread"])
    off = float(Fraction(cell) - Fraction(float(group["mean"]))) / math.sqrt(spread)
    top = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * (math.log(nu * math.pi) + math.log(spread))
    return top - (nu + 1) / 2 * math.log1p(off * off / nu)


def student_weight(cell: float, group: Group) -> tuple[float, float]:
    """What a row's hidden weight is expected to be, and its logarithm."""
    off = float(Fraction(cell) - Fraction(float(group["mean"]))) / math.sqrt(group["spread"])
    nu = float(group["freedom"])
    weight = (nu + 1) / (nu + off * off)
    return weight, math.log(weight) + digamma((nu + 1) / 2) - math.log((nu + 1) / 2)


def students(
    family: Any, cells: Cells, members: Members, prior: float, how: str, before: Sequence[Group]
) -> list[Group]:
    """One EM step from the groups `before`."""
    imagined = 0.0 if how == "ml" else prior
    whole = whole_student(cells, [math.fsum(row) for row in members], family.freedom or 4.0)
    found = []
    for g, group in enumerate(before):
        there = [(cell, row[g]) for cell, row in zip(cells, members, strict=True) if cell is not None and row[g]]
        told = [student_weight(cell, group) for cell, _ in there]
        rows = math.fsum(r for _, r in there)
        mass, mean, squares = moments_of(
            [cell for cell, _ in there], [r * u for (_, r), (u, _) in zip(there, told, strict=True)]
        )
        worth = rows + imagined
        spread = (float(squares) + imagined * whole["spread"]) / worth if worth else whole["spread"]
        spare = math.fsum(r * (u - log) for (_, r), (u, log) in zip(there, told, strict=True)) / (rows or 1.0) - 1.0
        freedom = family.freedom or (min(max(2 * shape_of(spare, 100.0), 1.0), 200.0) if rows else 4.0)
        centre = float(mean) if mass else whole["mean"]
        found.append({"mean": centre, "spread": spread, "freedom": freedom, "whole": whole["spread"]})
    return found


def whole_student(cells: Cells, weights: Sequence[float], freedom: float) -> Group:
    """The whole column's mean and spread, found by steps that divide by the weights instead of the rows."""
    there = [(cell, w) for cell, w in zip(cells, weights, strict=True) if cell is not None and w]
    if not there:
        return {"mean": 0.0, "spread": 1.0}
    _, mean, squares = moments_of([cell for cell, _ in there], [w for _, w in there])
    variance = float(squares) / math.fsum(w for _, w in there)
    group = {"mean": float(mean), "spread": variance, "freedom": freedom}
    for _ in range(300 if variance else 0):
        weights = [w * student_weight(cell, group)[0] for cell, w in there]
        mass, mean, squares = moments_of([cell for cell, _ in there], weights)
        group |= {"mean": float(mean), "spread": max(float(squares / mass), 1e-6 * variance)}
    return group


def student_height(cells: Cells, weights: Sequence[float], group: Group, imagined: float) -> float:
    """What the parameters of one group climb: log-likelihood and log-prior."""
    there = [(cell, w) for cell, w in zip(cells, weights, strict=True) if w and cell is not None]
    rows = math.fsum(w * student_density(cell, group) for cell, w in there)
    return rows - 0.5 * imagined * (math.log(group["spread"]) + group["whole"] / group["spread"])
