"""Everything again, row by row, in plain loops: what the engine must agree with.

Cells are Python values, None where missing; a block's cell is a tuple. Parameters are those of one group, by the names
that `params_` has. Memberships are a list of weights per row, one for each group; a row of known class has one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

Cells = Sequence[Any]
Group = dict[str, Any]
Members = Sequence[Sequence[float]]
Matrix = list[list[float]]

HOWS = ("ml", "map", "mean", "predictive")
STEPS = 5_000


# -- the log-density of one cell in one group


def log_density(family: Any, cell: Any, group: Group, levels: Sequence[Any] = ()) -> float:
    """The log-density of one cell; nothing there says nothing."""
    return DENSITIES[family.name](cell, group, levels)


def log_joint(leaves: Sequence[tuple[Any, Any, Group, Sequence[Any]]], share: float) -> float:
    """The log of a group's share times the densities of a row's cells, each (family, cell, group, levels)."""
    return _log(share) + math.fsum(log_density(*leaf) for leaf in leaves)


def log_sum(terms: Sequence[float]) -> float:
    """The logarithm of a sum whose terms are given by their logarithms."""
    top = max(terms)
    return top if math.isinf(top) else top + math.log(math.fsum(math.exp(term - top) for term in terms))


def posterior(terms: Sequence[float]) -> list[float]:
    """Shares of the groups in a row, from its log-joints."""
    whole = log_sum(terms)
    return [math.exp(term - whole) for term in terms]


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def _times_log(count: float, share: float) -> float:
    return count * _log(share) if count else 0.0


def _categorical(cell: Any, group: Group, levels: Sequence[Any]) -> float:
    if cell is None:
        return 0.0
    if cell in levels:
        return _log(group["probability"][list(levels).index(cell)])
    return _log(group["unseen"]) if group["unseen"] > 0 else 0.0


def _joint(cell: Any, group: Group, levels: Sequence[Any]) -> float:
    if all(part is None for part in cell):
        return 0.0
    pairs = zip(levels, group["probability"], strict=True)
    return _log(math.fsum(share for combination, share in pairs if agrees(cell, combination)))


def agrees(cell: Sequence[Any], combination: Sequence[Any]) -> bool:
    """Whether a row with holes could be this combination."""
    return all(part is None or part == level for part, level in zip(cell, combination, strict=True))


def _normal(cell: Any, group: Group, levels: Sequence[Any]) -> float:
    if cell is None:
        return 0.0
    if "freedom" in group:
        return _student(cell, group)
    off = float(Fraction(cell) - Fraction(group["mean"])) / math.sqrt(group["variance"])
    return -0.5 * (math.log(2 * math.pi) + math.log(group["variance"]) + off * off)


def _student(cell: float, group: Group) -> float:
    nu, spread = group["freedom"], group["spread"]
    if math.isinf(nu):
        return _normal(cell, {"mean": group["mean"], "variance": spread}, ())
    off = float(Fraction(cell) - Fraction(group["mean"])) / math.sqrt(spread)
    top = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * math.log(nu * math.pi * spread)
    return top - (nu + 1) / 2 * math.log1p(off * off / nu)


def _lognormal(cell: Any, group: Group, levels: Sequence[Any]) -> float:
    return 0.0 if cell is None else _normal(math.log(cell), group, levels) - math.log(cell)


def _poisson(cell: Any, group: Group, levels: Sequence[Any]) -> float:
    if cell is None:
        return 0.0
    if "shape" not in group:
        return _times_log(cell, group["rate"]) - group["rate"] - math.lgamma(cell + 1)
    shape, rows = group["shape"], group["rows"]
    ways = math.lgamma(shape + cell) - math.lgamma(shape) - math.lgamma(cell + 1)
    return ways + shape * math.log(rows / (rows + 1)) - cell * math.log(rows + 1)


def _multinomial(cell: Any, group: Group, levels: Sequence[Any]) -> float:
    counts = [0 if part is None else part for part in cell]
    ways = math.lgamma(sum(counts) + 1) - math.fsum(math.lgamma(count + 1) for count in counts)
    if "alpha" in group:
        return ways + _integrated(counts, group["alpha"])
    return ways + math.fsum(_times_log(count, p) for count, p in zip(counts, group["probability"], strict=True))


def _integrated(counts: Sequence[float], alpha: Sequence[float]) -> float:
    """The log-probability of an order of counts, shares integrated out: one factor for every single count."""
    total, mass, so_far = 0.0, math.fsum(alpha), 0
    for count, imagined in zip(counts, alpha, strict=True):
        for seen in range(int(count)):
            total += math.log(imagined + seen) - math.log(mass + so_far)
            so_far += 1
    return total


def _binomial(cell: Any, group: Group, levels: Sequence[Any]) -> float:
    failures, successes = trials_of(cell)
    ways = math.log(math.comb(int(failures + successes), int(successes)))
    if "alpha" in group:
        return ways + _integrated((failures, successes), group["alpha"])
    return ways + _times_log(failures, 1 - group["probability"]) + _times_log(successes, group["probability"])


def trials_of(cell: Sequence[Any]) -> tuple[float, float]:
    """Failures and successes; without both numbers there were no trials."""
    return (0, 0) if None in cell else (cell[1] - cell[0], cell[0])


def _multinormal(cell: Any, group: Group, levels: Sequence[Any]) -> float:
    there = [i for i, part in enumerate(cell) if part is not None]
    if not there:
        return 0.0
    off = [float(Fraction(cell[i]) - Fraction(group["mean"][i])) for i in there]
    covariance = _part(group["covariance"], there, there)
    solved, log_det = solve(covariance, off)
    stretch, d = group.get("spread", 1.0), len(there)
    distance = math.fsum(a * b for a, b in zip(off, solved, strict=True)) / stretch
    half_det = 0.5 * (log_det + d * math.log(stretch))
    if "freedom" not in group:
        return -0.5 * (d * math.log(2 * math.pi) + distance) - half_det
    nu = group["freedom"]
    top = math.lgamma((nu + d) / 2) - math.lgamma(nu / 2) - 0.5 * d * math.log(nu * math.pi)
    return top - half_det - 0.5 * (nu + d) * math.log1p(distance / nu)


DENSITIES: dict[str, Callable[[Any, Group, Sequence[Any]], float]] = {
    "categorical": _categorical,
    "bernoulli": _categorical,
    "joint": _joint,
    "normal": _normal,
    "lognormal": _lognormal,
    "poisson": _poisson,
    "multinomial": _multinomial,
    "binomial": _binomial,
    "multinormal": _multinormal,
}


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


def _part(matrix: Any, rows: Sequence[int], columns: Sequence[int]) -> Matrix:
    return [[float(matrix[i][j]) for j in columns] for i in rows]


# -- what a table's rows say: the parameters of every group


def estimate(
    family: Any, cells: Cells, members: Members, prior: float, how: str, levels: Sequence[Any] = ()
) -> list[Group]:
    """Each group's parameters from the rows' memberships, the prior counting `prior` as `params_` says."""
    if family.name in ("normal", "lognormal"):
        return normals(family, [cells], members, prior, how)[0]
    return ESTIMATES[family.name](cells, members, prior, how, levels)


def shares(members: Members, imagined: float = 0.0, how: str = "ml") -> list[float]:
    """The groups' own shares."""
    return _shares([math.fsum(row[g] for row in members) for g in range(len(members[0]))], imagined, how)


def _shares(counts: Sequence[float], imagined: float, how: str) -> list[float]:
    extra = {"ml": 0.0, "map": imagined - 1.0}.get(how, imagined)
    raw = [count + extra for count in counts]
    total = math.fsum(raw)
    return [value / total if total > 0 else 1 / len(raw) for value in raw]


def _groups(members: Members) -> range:
    return range(len(members[0]))


def _categorical_fit(cells: Cells, members: Members, prior: float, how: str, levels: Sequence[Any]) -> list[Group]:
    found = []
    for g in _groups(members):
        counts = [math.fsum(row[g] for cell, row in zip(cells, members, strict=True) if cell == x) for x in levels]
        rest = math.fsum(counts) + prior * (len(levels) + 1)
        unseen = prior / rest if how != "ml" and rest > 0 else 0.0
        found.append({"probability": _shares(counts, prior, how), "unseen": unseen})
    return found


def _joint_fit(cells: Cells, members: Members, prior: float, how: str, levels: Sequence[Any]) -> list[Group]:
    """Rows with holes are shared out over what they could be, again and again until nothing changes."""
    found = []
    for g in _groups(members):
        table = [1 / len(levels)] * len(levels)
        for _ in range(STEPS):
            before, table = table, _shares(_shared_out(cells, members, g, table, levels), prior, how)
            if max(abs(a - b) for a, b in zip(before, table, strict=True)) < 1e-15:
                break
        found.append({"probability": table, "unseen": 0.0})
    return found


def _shared_out(cells: Cells, members: Members, g: int, table: Sequence[float], levels: Sequence[Any]) -> list[float]:
    counts = [0.0] * len(levels)
    for cell, row in zip(cells, members, strict=True):
        could = [i for i, combination in enumerate(levels) if agrees(cell, combination)]
        mass = math.fsum(table[i] for i in could)
        if row[g] > 0 and any(part is not None for part in cell) and mass > 0:
            for i in could:
                counts[i] += row[g] * table[i] / mass
    return counts


def _poisson_fit(cells: Cells, members: Members, prior: float, how: str, levels: Sequence[Any]) -> list[Group]:
    there = [(cell, row) for cell, row in zip(cells, members, strict=True) if cell is not None]
    mass = math.fsum(value for _, row in there for value in row)
    whole = math.fsum(cell * value for cell, row in there for value in row) / mass if mass else 0.0
    imagined = 0.0 if how == "ml" else prior
    found = []
    for g in _groups(members):
        rows = math.fsum(row[g] for _, row in there) + imagined
        total = math.fsum(cell * row[g] for cell, row in there) + imagined * whole
        group = {"rate": total / rows if rows > 0 else whole}
        found.append(group | ({"shape": total, "rows": rows} if how == "predictive" else {}))
    return found


def _multinomial_fit(cells: Cells, members: Members, prior: float, how: str, levels: Sequence[Any]) -> list[Group]:
    counts = [[0 if part is None else part for part in cell] for cell in cells]
    found = []
    for g in _groups(members):
        weights = [row[g] for row in members]
        totals = [math.fsum(w * n for w, n in zip(weights, own, strict=True)) for own in zip(*counts, strict=True)]
        found.append({"probability": _shares(totals, prior, how), "alpha": [total + prior for total in totals]})
    return found


def _binomial_fit(cells: Cells, members: Members, prior: float, how: str, levels: Sequence[Any]) -> list[Group]:
    both = _multinomial_fit([trials_of(cell) for cell in cells], members, prior, how, levels)
    return [{"probability": group["probability"][1], "alpha": group["alpha"]} for group in both]


ESTIMATES: dict[str, Callable[..., list[Group]]] = {
    "categorical": _categorical_fit,
    "bernoulli": _categorical_fit,
    "joint": _joint_fit,
    "poisson": _poisson_fit,
    "multinomial": _multinomial_fit,
    "binomial": _binomial_fit,
}


# -- numbers around a mean, in exact arithmetic


def normals(family: Any, columns: Sequence[Cells], members: Members, prior: float, how: str) -> list[list[Group]]:
    """The groups of every column that shares `family`; variances are shared as `tied` says, or known."""
    if family.name == "lognormal":
        columns = [[None if cell is None else math.log(cell) for cell in cells] for cells in columns]
    moments = [[_moments(cells, [row[g] for row in members]) for g in _groups(members)] for cells in columns]
    wholes = [_moments(cells, [math.fsum(row) for row in members]) for cells in columns]
    imagined = 0.0 if how == "ml" else prior
    pooled = [
        [(squares + Fraction(imagined) * _ratio(whole[2], whole[0]), rows + Fraction(imagined)) for rows, _, squares in own]
        for own, whole in zip(moments, wholes, strict=True)
    ]
    return [
        [_normal_group(family, pooled, moments, wholes, (j, g), how, imagined) for g in _groups(members)]
        for j in range(len(columns))
    ]


def _moments(cells: Cells, weights: Sequence[float]) -> tuple[Fraction, Fraction, Fraction]:
    """Weight, mean and squares about the mean, exactly."""
    there = [(Fraction(cell), Fraction(w)) for cell, w in zip(cells, weights, strict=True) if cell is not None and w]
    rows = sum((w for _, w in there), Fraction(0))
    mean = _ratio(sum((w * x for x, w in there), Fraction(0)), rows)
    return rows, mean, sum((w * (x - mean) ** 2 for x, w in there), Fraction(0))


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
    whole = float(_ratio(wholes[j][2], wholes[j][0]))
    variance = family.variance or (float(squares / weight) if weight else whole)
    group = {"mean": float(mean if rows else wholes[j][1]), "variance": variance, "whole": whole}
    if how == "predictive":
        lost = sum(1 for c in columns for k in groups if moments[c][k][0])
        freedom = float(weight) if imagined else max(float(weight) - lost, 1.0)
        group["freedom"] = math.inf if family.variance else freedom
        group["spread"] = variance * (1 + 1 / max(float(rows), 1.0))
    return group


# -- correlated blocks


def multinormals(
    family: Any, cells: Cells, members: Members, prior: float, how: str, before: Sequence[Group] | None = None
) -> list[Group]:
    """The groups of a block; holes count with their conditional expectations under the parameters `before`."""
    d = len(cells[0])
    weights = [[row[g] for row in members] for g in _groups(members)]
    parts = [_block_moments(cells, own, before[g] if before else None) for g, own in enumerate(weights)]
    whole = _whole_spreads(parts, d)
    imagined = 0.0 if how == "ml" else prior
    scatters = [_with_prior(part[2], imagined, whole) for part in parts]
    masses = [float(part[0]) + imagined for part in parts]
    if family.covariance == "tied":
        scatters = [[[math.fsum(s[i][j] for s in scatters) for j in range(d)] for i in range(d)]] * len(parts)
        masses = [math.fsum(masses)] * len(parts)
    return [
        {"mean": [float(m) for m in part[1]], "covariance": _shaped(family.covariance, scatter, mass, d), "whole": whole}
        for part, scatter, mass in zip(parts, scatters, masses, strict=True)
    ]


def _with_prior(scatter: Any, imagined: float, whole: Sequence[float]) -> Matrix:
    size = range(len(whole))
    return [[float(scatter[i][j]) + (imagined * whole[i] if i == j else 0.0) for j in size] for i in size]


def _whole_spreads(parts: Sequence[Any], d: int) -> list[float]:
    """Each column's variance over all rows, groups joined."""
    rows = sum(part[0] for part in parts)
    spreads = []
    for i in range(d):
        middle = sum(part[0] * part[1][i] for part in parts) / rows
        spreads.append(float(sum(part[2][i][i] + part[0] * (part[1][i] - middle) ** 2 for part in parts) / rows))
    return spreads


def _block_moments(cells: Cells, weights: Sequence[float], before: Group | None) -> tuple[Fraction, list[Fraction], Any]:
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
    known = _part(covariance, there, there)
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


def combinations(levels: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Every combination of levels, the last column fastest."""
    return list(product(*levels))
