"""Everything again, row by row, in plain loops: what the engine must agree with.

Cells are Python values, None where missing; a block's cell is a tuple. Parameters are those of one group, by the names
that `params_` has. Memberships are a list of weights per row, one for each group; a row of known class has one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from scipy import stats

from celled import binned, cell_density, grouped, kernel_density, kernelled
from exact import multinormals, normals, part_of, solve
from mixed_parts import mixed_density, mixed_height, mixed_step
from shaped import gamma_density, gammas, student_height, students
from worded import sequence_density, sequence_fit, text_density, text_fit

Cells = Sequence[Any]
Group = dict[str, Any]
Members = Sequence[Sequence[float]]

__all__ = [
    "estimate",
    "log_density",
    "log_joint",
    "log_sum",
    "mixed_height",
    "mixed_step",
    "multinormals",
    "normals",
    "posterior",
    "shares",
    "spike_shares",
    "student_height",
    "students",
]

STEPS = 1_000


# -- the log-density of one cell in one group


def log_density(family: Any, cell: Any, group: Group, levels: Sequence[Any] = ()) -> float:
    """The log-density of one cell; nothing there says nothing."""
    if family.name == "text":
        return text_density(family.model, cell, group, levels)
    if family.name == "markov":
        return sequence_density(family.order, cell, group, levels)
    if family.name == "spiked":
        return _spiked(family, cell, group, levels)
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


def _spiked(family: Any, cell: Any, group: Group, levels: Sequence[Any]) -> float:
    """A share of the rows at the spike, over its width; or the other family's density times the rest."""
    if cell is None:
        return 0.0
    if cell == family.at:
        return _log(group["spike"]) - math.log(family.rounding)
    return _log(1 - group["spike"]) + log_density(family.inner, cell, group, levels)


def spike_shares(family: Any, cells: Cells, members: Members, prior: float, how: str) -> list[float]:
    """The share of rows at the spike in every group."""
    there = [(cell == family.at, row) for cell, row in zip(cells, members, strict=True) if cell is not None]
    counts = [
        [math.fsum(row[g] for at, row in there if at == side) for side in (True, False)] for g in _groups(members)
    ]
    return [_shares(own, prior, how)[0] for own in counts]


def _poisson(cell: Any, group: Group, levels: Sequence[Any]) -> float:
    if cell is None:
        return 0.0
    if "shape" not in group:
        return _times_log(cell, group["rate"]) - group["rate"] - math.lgamma(cell + 1)
    shape, rows = group["shape"], group["rows"]
    ways = math.lgamma(shape + cell) - math.lgamma(shape) - math.lgamma(cell + 1)
    return ways + shape * math.log(rows / (rows + 1)) - cell * math.log(rows + 1)


def _geometric(cell: Any, group: Group, levels: Sequence[Any]) -> float:
    if cell is None:
        return 0.0
    if "successes" not in group:
        return _log(group["success"]) + _times_log(cell, 1 - group["success"])
    return _integrated((cell, 1), (group["failures"], group["successes"]))


def _exponential(cell: Any, group: Group, levels: Sequence[Any]) -> float:
    if cell is None:
        return 0.0
    if "rows" not in group:
        return math.log(group["rate"]) - group["rate"] * cell
    rows, total = group["rows"], group["total"]
    return math.log(rows / total) - (rows + 1) * math.log1p(cell / total)


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
    covariance = part_of(group["covariance"], there, there)
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
    "geometric": _geometric,
    "exponential": _exponential,
    "multinomial": _multinomial,
    "binomial": _binomial,
    "multinormal": _multinormal,
    "gamma": gamma_density,
    "student": _normal,
    "mixed": mixed_density,
    "mixed_block": mixed_density,
    "grouped": _categorical,
    "histogram": cell_density,
    "cut": cell_density,
    "kde": kernel_density,
}


REFERENCES: dict[str, Callable[[Group], Any]] = {
    "poisson": lambda group: stats.poisson(group["rate"]),
    "geometric": lambda group: stats.geom(group["success"], loc=-1),
    "exponential": lambda group: stats.expon(scale=1 / group["rate"]),
}
"""One group's distribution as SciPy has it, of families without a settings-dependent one."""


# -- what a table's rows say: the parameters of every group


def estimate(
    family: Any, cells: Cells, members: Members, prior: float, how: str, levels: Sequence[Any] = ()
) -> list[Group]:
    """Each group's parameters from the rows' memberships and a prior of `prior` imagined counts."""
    if family.name == "text":
        return text_fit(family.model, cells, members, prior, how, levels)
    if family.facts.counts_points:
        return (kernelled if family.name == "kde" else binned)(family, cells, members, prior, how, levels)
    if family.name == "markov":
        return sequence_fit(family.order, cells, members, prior, how, levels)
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
        unseen = prior / rest if how != "ml" and rest > 0 and levels else 0.0
        found.append({"probability": _shares(counts, prior, how), "unseen": unseen})
    return found


def _joint_fit(cells: Cells, members: Members, prior: float, how: str, levels: Sequence[Any]) -> list[Group]:
    """Rows with holes are shared out over what they could be, again and again until nothing changes.

    Where the best share of a combination is nothing this comes only near it: compare `joint_height` there.
    """
    found = []
    for g in _groups(members):
        table = [1 / len(levels)] * len(levels)
        for _ in range(STEPS):
            before, table = table, _shares(_shared_out(cells, members, g, table, levels), prior, how)
            if max(abs(a - b) for a, b in zip(before, table, strict=True)) < 1e-15:
                break
        found.append({"probability": table, "unseen": 0.0})
    return found


def joint_height(
    cells: Cells, weights: Sequence[float], table: Sequence[float], levels: Sequence[Any], extra: float
) -> float:
    """What the shares of a joint table climb: the rows' log-likelihood with `extra` imagined counts a combination."""
    group = {"probability": table}
    rows = math.fsum(w * _joint(cell, group, levels) for cell, w in zip(cells, weights, strict=True) if w)
    return rows + math.fsum(_times_log(extra, share) for share in table)


def _shared_out(cells: Cells, members: Members, g: int, table: Sequence[float], levels: Sequence[Any]) -> list[float]:
    counts = [0.0] * len(levels)
    for cell, row in zip(cells, members, strict=True):
        could = [i for i, combination in enumerate(levels) if agrees(cell, combination)]
        mass = math.fsum(table[i] for i in could)
        if row[g] > 0 and any(part is not None for part in cell) and mass > 0:
            for i in could:
                counts[i] += row[g] * table[i] / mass
    return counts


def _of_totals(fit: Callable[..., Group], names: tuple[str, str]) -> Callable[..., list[Group]]:
    """The fit of a family of which rows and total say all; `names` are theirs in its predictive form."""

    def fits(cells: Cells, members: Members, prior: float, how: str, levels: Sequence[Any]) -> list[Group]:
        there = [(cell, row) for cell, row in zip(cells, members, strict=True) if cell is not None]
        mass = math.fsum(value for _, row in there for value in row)
        events = math.fsum(cell * value for cell, row in there for value in row)
        whole = (events or 0.5) / max(mass, 0.5)  # nothing but zeros is taken for half an event
        imagined = 0.0 if how == "ml" else prior
        found = []
        for g in _groups(members):
            rows = math.fsum(row[g] for _, row in there) + imagined
            total = math.fsum(cell * row[g] for cell, row in there) + imagined * whole
            after = dict(zip(names, (rows, total), strict=True)) if how == "predictive" else {}
            found.append(fit(*(rows, total) if rows > 0 else (1.0, whole), whole) | after)
        return found

    return fits


def _waiting(rows: float, total: float, whole: float) -> Group:
    """A rate, without bound where all rows are zeros, and the variances that tell whether a floor holds it."""
    return {"rate": rows / total if total else math.inf, "variance": (total / rows) ** 2, "whole": whole**2}


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
    "poisson": _of_totals(lambda rows, total, _: {"rate": total / rows}, ("rows", "shape")),
    "geometric": _of_totals(lambda rows, total, _: {"success": rows / (rows + total)}, ("successes", "failures")),
    "exponential": _of_totals(_waiting, ("rows", "total")),
    "multinomial": _multinomial_fit,
    "binomial": _binomial_fit,
    "gamma": gammas,
    "grouped": grouped,
}
