"""Defaults of learning that take more than a few lines: slopes, marginal likelihoods, checks of parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.core.counts import Twofold
from softcount.errors import DataError
from softcount.families.floors import deviation
from softcount.families.setting import SMALLEST, How, Hyper, Line, Params, Setting

if TYPE_CHECKING:
    from softcount.families.base import Family

STEP = 1e-3
"""Relative step of a parameter: with five points the error is near 1e-12 of the slope."""
POINTS = ((-2.0, 1 / 12), (-1.0, -2 / 3), (1.0, 2 / 3), (2.0, -1 / 12))
"""Five-point difference: offsets in steps from the parameter, and their weights."""


def slope_by_differences(family: Family, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params:
    """Return the derivative of `completed` plus `log_prior` by each parameter of the chart, by five-point differences.

    If several groups or columns share a parameter, its slope is divided between them.
    """
    chart = {name: np.array(params[name], dtype=float) for name in family.facts.chart}
    extra = family._prior_stats(hyper, how)
    known = None if extra is None else stats.value + extra

    def height(there: Params) -> Any:
        """Return the objective: of each group if it is a product, else of all groups together."""
        if known is not None:
            return product(known, family.natural(there))
        return family.completed(stats, params | there) + np.sum(family.log_prior(params | there, hyper, how))

    found = {}
    for name, line in family.facts.chart.items():
        units, apart = _steps(family, chart, name, line), np.ndim(height(chart))
        found[name] = np.zeros(chart[name].shape)
        for inner in np.ndindex(*chart[name].shape[apart:]):
            spot = (*[slice(None)] * apart, *inner)
            total: Any = 0.0
            for by, weight in POINTS:
                moved = chart[name].copy()
                moved[spot] += by * units[spot]
                total = total + weight * height(chart | {name: moved})
            found[name][spot] = total / units[spot]
    return {
        name: np.broadcast_to(value.mean(axis=0), value.shape) if name in family.facts.shared_by_groups else value
        for name, value in found.items()
    }


def product(stats: np.ndarray, natural: np.ndarray) -> np.ndarray:
    """Return statistics times natural parameters, summed over the features; 0 times infinity is 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(stats != 0, stats * natural, 0.0).sum(axis=-1))


def _steps(family: Family, params: Params, name: str, line: Line) -> np.ndarray:
    """Return the step for each number of a parameter, small enough to stay in its range."""
    value = params[name]
    if line == "plain":
        return np.broadcast_to(STEP * np.asarray(deviation(family, params)), value.shape)
    if line == "covariance":
        wide = np.sqrt(np.diagonal(value, axis1=-2, axis2=-1))
        return np.asarray(STEP * wide[..., :, None] * wide[..., None, :])
    room = np.minimum(value, 1.0 - value) if line == "share" else value
    return np.maximum(STEP * room, SMALLEST)


def schwarz_evidence(family: Family, stats: Twofold, hyper: Hyper) -> float:
    """Return the log marginal likelihood of rows with these statistics, in counting units and without `base`.

    With a proper prior it is the log of the product of one-step-ahead predictions. For a parameter with an improper
    prior, the part of the prior is left out: only priors of that kind can be compared. Without a closed form, the
    default is the likelihood at the posterior mean less half the logarithm of the rows for every parameter (Schwarz's
    approximation to Laplace's).
    """
    params = family.estimate(stats, hyper, "mean")
    size = sum(params[name].size for name in family.facts.chart)
    rows = observed_rows(family, stats.value)
    return family.completed(stats, params) - 0.5 * size * float(np.log(max(rows or 1.0, 1.0)))


def count_free(
    family: Family,
    setting: Setting,
    groups: int,
    columns: int = 1,
    names: Collection[str] | None = None,
    hyper: Hyper | None = None,
) -> int:
    """Return the number of free parameters over all groups, or of those with these names.

    It is for this many similar columns. A parameter that groups or columns share counts once. With prior parameters, it
    is the number after decisions made by the counts.
    """
    facts, total = family.facts, 0
    if hyper is not None and "place" in hyper and "points" not in hyper:  # cells, perhaps grouped into intervals
        return _count_shares(len(hyper["edges"]) - 1, hyper.get("interval"), groups, columns)
    if hyper is not None and "group" in hyper:
        return _count_shares(len(setting.levels), hyper["group"], groups, columns)
    for name in facts.chart if names is None else names:
        each = 1 if name in facts.shared_by_groups else groups
        times = 1 if facts.shared_by_columns and name == facts.spread else columns
        total += each * times * family._free_numbers(name, setting)
    return total


def _count_shares(levels: int, group: np.ndarray | None, groups: int, columns: int) -> int:
    """Return the free shares of categories: of their groups in every class, and within the groups in all classes."""
    found = levels if group is None else int(group.max(initial=-1)) + 1
    return columns * (groups * max(found - 1, 0) + levels - found)


def observed_rows(family: Family, stats: np.ndarray) -> float | None:
    """Return the weight of the rows that had a value; None if the statistics do not show it."""
    rows = family.facts.rows
    return None if rows is None else float(stats[..., rows].sum())


def convert_stats(family: Family, stats: Twofold, was: Family, old: Setting, new: Setting) -> Twofold:
    """Convert statistics of `was` in another setting to this family and setting. Raises an error for another family."""
    if type(was) is not type(family):
        raise DataError(
            f"column {old.key!r} is {was.name} in one model and {family.name} in the other. "
            "Declare it the same in both with kinds."
        )
    return family.rebase(stats, was, old, new)


def find_range_fault(chart: Mapping[str, Line], params: Params) -> str | None:
    """Return a description of parameters that are out of range according to their chart, or None."""
    shares = [name for name, line in chart.items() if line == "shares"]
    if any(not sums_to_one(params[name]) for name in shares):
        return f"its {_plural(shares)} do not sum to one"
    between = [name for name, line in chart.items() if line == "share"]
    if any(not ((params[name] >= 0) & (params[name] <= 1)).all() for name in between):
        return f"its {_plural(between)} are not between 0 and 1"
    positive = [name for name, line in chart.items() if line == "log"]
    if any(not (params[name] > 0).all() for name in positive):
        return f"its {_plural(positive)} are not all positive"
    for name in chart:  # a missing parameter raises a KeyError with its name
        params[name]
    return None


def sums_to_one(shares: np.ndarray) -> bool:
    """Return whether the numbers are shares that sum to one in every group; true for zero categories."""
    if not shares.shape[-1]:
        return True
    return bool((shares >= 0).all() and np.abs(shares.sum(axis=-1) - 1).max(initial=0.0) <= 1e-9)


def _plural(names: list[str]) -> str:
    endings = {"y": "ies", "s": "ses"}
    return " and ".join(name[:-1] + endings.get(name[-1], f"{name[-1]}s") for name in names)
