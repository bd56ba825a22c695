"""Which density fits a column best, by the log-likelihood of held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.core.special import log_sum_exp
from softcount.errors import DataError
from softcount.families.base import family_title
from softcount.families.candidates import candidates
from softcount.learn.density_choice import SAMPLE, Contest, FamilyTrial, Numbers
from softcount.pictures.inline_html import boxed, small_table
from softcount.run.progress import Tell, end_on_interrupt, keep_quiet
from softcount.table import open_table

COLUMN = "x"
FEW_STEPS = 1000
"""Rounding steps between the least and the largest value up to which all possible values are summed."""
LEAST_ROWS = 10
"""Rows of a group below which folds say nothing."""
CLOSEST, FURTHEST = 1e-150, 1e150
"""Half of the range of values between which squares are finite."""
STEPS = 48, 12
"""EM steps on all rows, and from there without a fold: Student's t is slow if it is nearly normal."""


class ColumnFit(Struct, frozen=True):
    """A fitted density: its parameters in words, and its logarithm at any values.

    `excess` was taken off the logarithm, so that the probabilities of rounded values do not add up to more than 1.
    """

    description: str
    log_density: Callable[[np.ndarray], np.ndarray]
    excess: float = 0.0


class RankedDensity(Struct, frozen=True):
    """A density and how well it fits held-out rows.

    Attributes
    ----------
    name : str
        Name of the density.
    log_likelihood : float
        Held-out log-likelihood in nats per row.
    behind : float
        Difference from the best density.
    error : float
        Standard error of the difference.
    impossible : int
        Number of held-out rows with density 0.
    fits : dict of ColumnFit
        The density fitted to each group; the key is None if there are no groups.
    bits_behind : float
        The difference in bits.
    """

    name: str
    log_likelihood: float
    behind: float
    error: float
    impossible: int
    fits: Mapping[Any, ColumnFit]

    @property
    def bits_behind(self) -> float:
        return self.behind / float(np.log(2))


class DensityRanking(Struct, frozen=True):
    """Densities of a column, the best first.

    Attributes
    ----------
    densities : list of RankedDensity
        The densities.
    best : RankedDensity
        The first of them.
    groups : dict of ndarray
        Values of each group.
    rows : int
        Number of values.
    ranked_rows : int
        Number of values the ranking is based on.
    left_out : dict
        Groups that are too small, with their number of rows.
    failed : dict
        Densities that could not be fitted, with the reason.
    unlabelled : int
        Number of values without a group.
    step : float
        Power of ten that the values are rounded to, or 0.
    """

    densities: list[RankedDensity]
    groups: dict[Any, np.ndarray]
    rows: int
    ranked_rows: int
    left_out: dict[Any, int]
    failed: dict[str, str]
    unlabelled: int
    step: float

    def __repr__(self) -> str:
        found = [f"{density.name} {density.log_likelihood:.4g}" for density in self.densities]
        return f"<{type(self).__name__} of {self.ranked_rows:,} values, log-likelihood per row: {', '.join(found)}>"

    def _repr_html_(self) -> str:
        rows = [(found.name, f"{found.log_likelihood:.4g}", f"{found.behind:.3g}") for found in self.densities]
        table = small_table(("density", "log-likelihood per row", "behind the best"), rows)
        return boxed(type(self).__name__, f"{self.ranked_rows:,} values", [table])

    @property
    def best(self) -> RankedDensity:
        return self.densities[0]


@end_on_interrupt()
def rank_densities(values: Any, by: Any = None, seed: int = 0, tell: Tell = keep_quiet) -> DensityRanking:
    """Rank the densities of a numeric column by the log-likelihood of held-out rows, in five folds.

    The candidates are those of `kinds="auto"`, as far as they can hold the values: normal, lognormal, gamma,
    exponential, Student's t, Poisson and geometric; a spike mixed with another density; two to four normals; histograms
    and kernels. Of more than 10,000 values, 10,000 are drawn.

    Parameters
    ----------
    values : array of shape (n_rows,)
        The column. Missing values (NaN) are left out.
    by : array of shape (n_rows,), default=None
        A label for each row. Every group gets a density of its own; groups of fewer than ten rows are left out.
    seed : int, default=0
        Seed of the drawn rows and of the folds.
    tell : callable, default=keep_quiet
        Function that is called with the progress.

    Returns
    -------
    DensityRanking
        `densities`, best first, and what was left out.

    See Also
    --------
    compare : Compares classifiers on held-out rows.
    KernelDensity : A density as a mean of kernels.
    Histogram : A density in steps.

    Examples
    --------
    >>> found = rank_densities(np.random.default_rng(0).normal(size=200))
    >>> found.best.name, found.best.fits[None].description
    ('normal', 'mean 0.01526, sd 0.961')
    """
    column = np.asarray(values, dtype=float)
    groups, left_out = _split_groups(column, by)
    every = np.concatenate(list(groups.values()))
    drawn = {name: _draw(own, len(every), seed) for name, own in groups.items()}
    tried = np.concatenate(list(drawn.values()))
    labels = np.repeat(np.arange(len(drawn)), [len(own) for own in drawn.values()])
    least, whole, step = float(every.min()), bool((every == np.floor(every)).all()), rounding_step(every)
    facts = Numbers(tried, labels, np.ones(len(tried)), least, whole).facts
    table = open_table({COLUMN: every}, kinds={COLUMN: "real"})
    plans = {plan.key: plan for plan in table.plans}
    contests = {}
    for name, own in drawn.items():
        numbers = Numbers(own, np.zeros(len(own), dtype=int), np.ones(len(own)), least, whole, seed=seed)
        contests[name] = Contest(COLUMN, numbers, plans, "mean", 1.0, strict=False, steps=STEPS)
    families = [family for kind in candidates(facts) for family in kind]
    heights: dict[str, np.ndarray] = {}
    fits: dict[str, dict[Any, ColumnFit]] = {}
    failed: dict[str, str] = {}
    for place, family in enumerate(families):
        tell("densities", place, len(families))
        title = family_title(family)
        try:
            entries = {name: contest.enter(family) for name, contest in contests.items()}
        except DataError as error:
            failed[title] = str(error)
            continue
        found = {name: _fit(entry.trial, step) for name, entry in entries.items() if entry is not None}
        scores = np.concatenate([entry.scores - found[name].excess for name, entry in entries.items() if entry])
        if title not in heights or scores.mean() > heights[title].mean():  # the better of two histograms
            heights[title], fits[title] = scores, found
    unlabelled = int((~np.isnan(column)).sum()) - len(every) - sum(left_out.values())
    failed = {title: why for title, why in failed.items() if title not in heights}
    return DensityRanking(_rank(heights, fits), groups, len(every), len(tried), left_out, failed, unlabelled, step)


def _split_groups(values: np.ndarray, by: Any) -> tuple[dict[Any, np.ndarray], dict[Any, int]]:
    """The values of every group, largest first, and the sizes of the groups that are too small."""
    if np.isinf(values).any():
        raise DataError(f"row {int(np.argmax(np.isinf(values))) + 1} is infinite. Leave it out, or make it missing.")
    labels = [None] * len(values) if by is None else list(by)
    if len(labels) != len(values):
        raise DataError(f"there are {len(values):,} values and {len(labels):,} labels. Give one for each.")
    places: dict[Any, list[int]] = {}
    for place, (label, known) in enumerate(zip(labels, ~np.isnan(values), strict=True)):
        if known and (by is None or label is not None):
            places.setdefault(label, []).append(place)
    found = {name: values[own] for name, own in sorted(places.items(), key=lambda item: -len(item[1]))}
    kept = {name: own for name, own in found.items() if len(own) >= LEAST_ROWS and own.max() > own.min()}
    if not kept:
        if len(found) == 1 and len(own := next(iter(found.values()))) >= LEAST_ROWS:
            raise DataError(f"all {len(own):,} values are {own[0]:g}, so there is no density to choose.")
        where, most = " in any group" if len(found) > 1 else "", max(map(len, found.values()), default=0)
        rows = f"{most:,} values{where} ({len(values):,} rows)"
        raise DataError(f"there are {rows}, and folds need {LEAST_ROWS} that are not all equal.")
    for own in kept.values():
        if not CLOSEST < own.max() / 2 - own.min() / 2 < FURTHEST:
            between = f"from {own.min():g} to {own.max():g}"
            raise DataError(
                f"values {between} lie too far apart, or too close together, to be squared: change their unit."
            )
    return kept, {name: len(own) for name, own in found.items() if name not in kept}


def _draw(values: np.ndarray, total: int, seed: int) -> np.ndarray:
    """The values; of more than `SAMPLE` in all groups, this group's share of as many."""
    if total <= SAMPLE:
        return values
    size = max(LEAST_ROWS, round(SAMPLE * len(values) / total))
    places = np.random.default_rng(seed).choice(len(values), min(size, len(values)), replace=False)
    return values[np.sort(places)]


def _fit(trial: FamilyTrial, step: float) -> ColumnFit:
    """The density of all rows; a count's probability is a bar of width 1.

    A peak narrower than the rounding `step` would give the values it stands on more probability than there is.
    """
    family, setting = trial.node.family, trial.node.setting
    density = family.density(trial.whole, setting)
    below_zero = float(np.max(density.cdf(-5e-324))) > 0

    def log_density(x: np.ndarray) -> np.ndarray:
        at = np.floor(x + 0.5) if family.facts.kind.whole else x
        with np.errstate(all="ignore"):
            found = density.log_pdf(at)[:, 0]
        return np.where((found < np.inf) & (below_zero | (at >= 0)), found, -np.inf)

    description, excess = density.describe()[0], 0.0
    if step > 0:
        points = np.unique(trial.numbers.values)
        steps = round((points[-1] - points[0]) / step)
        if steps <= FEW_STEPS:
            points = points[0] + step * np.arange(-steps, 2 * steps + 1)
        half = not below_zero and not family.facts.kind.whole  # what is written 0 was from 0 to half a step
        widths = np.where((points == 0) & half, step / 2, step)
        excess = max(0.0, float(log_sum_exp(log_density(points) + np.log(widths))))
    return ColumnFit(description, lambda x: log_density(x) - excess, excess)


def _rank(heights: Mapping[str, np.ndarray], fits: Mapping[str, Mapping[Any, ColumnFit]]) -> list[RankedDensity]:
    if not heights:
        raise DataError("no density could be learned from these values.")
    order = sorted(heights, key=lambda name: -heights[name].mean())
    best, found = heights[order[0]], []
    for name in order:
        own = heights[name]
        impossible = int(np.isneginf(own).sum())
        behind = best - own if not impossible else np.full(1, np.inf)
        error = float(behind.std(ddof=1) / sqrt(len(behind))) if len(behind) > 1 else np.nan
        found.append(RankedDensity(name, float(own.mean()), float(behind.mean()), error, impossible, fits[name]))
    return found


def rounding_step(values: np.ndarray) -> float:
    """The largest power of ten, from 1e6 to 1e-6, that divides all values; 0 if there is none.

    >>> rounding_step(np.array([0.5, 3.25]))
    0.01
    """
    for digits in range(-6, 7):
        scaled = values * 10.0**digits
        if np.abs(scaled).max(initial=0.0) > 1e15:
            return 0.0
        if (np.abs(scaled - np.round(scaled)) <= 1e-9 * np.maximum(1.0, np.abs(scaled))).all():
            return float(10.0**-digits)
    return 0.0


def between_steps(edges: np.ndarray, step: float) -> np.ndarray:
    """Bin edges moved halfway between two rounded values, so that no bin is narrower than the rounding."""
    if step == 0:
        return edges
    low, high = np.round(edges[0] / step) - 0.5, np.round(edges[-1] / step) + 0.5
    inner = np.floor(edges[1:-1] / step) + 0.5
    return np.unique(np.concatenate([[low], inner, [high]])) * step
