"""Densities of one column, each learned from some values and asked for others: bins, kernels, families, mixtures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from softcount.densities.bandwidths import bandwidth_of
from softcount.densities.column_density import ColumnDensity
from softcount.densities.histogram_edges import counts_of, edges_of
from softcount.densities.reflection import OPEN, Reflection
from softcount.densities.smoothing_kernels import named_kernel
from softcount.densities.weighted_points import WeightedPoints
from softcount.evaluate.learn_model import ClassSearch, learn_model
from softcount.families import Spiked
from softcount.fitted.fitted_model import Fitted
from softcount.learn.groups import Starts
from softcount.learn.plan import Plan
from softcount.learn.rules import Stop
from softcount.models.declared import read_kinds
from softcount.numerics.logspace import log_sum_exp
from softcount.records import dataclass
from softcount.run.threads import Threads
from softcount.table import open_table

COLUMN = "x"
MIXTURE_ROWS = 4000
"""Values that a mixture is learned from: with 16,000 the ranking of a column took 20 s, and a mixture gained 0.01."""
OFTEN = 0.05
LogDensity = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class ColumnFit:
    """A density that was learned: what it is in words, and its logarithm at any values."""

    told: str
    log_density: LogDensity


@dataclass(frozen=True)
class ValueGrid:
    """What is known of a column before any of its rows: whether its values end at 0, are whole, and are rounded.

    `step` is the power of ten that all values are whole numbers of, 0 where there is none: no density may be narrower.
    `often_zero` says that at least a twentieth of them is 0, and as much is not.
    """

    positive: bool
    not_negative: bool
    whole: bool
    step: float
    often_zero: bool = False

    @classmethod
    def of(cls, values: np.ndarray) -> ValueGrid:
        """What these values have in common.

        >>> ValueGrid.of(np.array([0.5, 3.25]))
        ValueGrid(positive=True, not_negative=True, whole=False, step=0.01, often_zero=False)
        """
        step = rounding_step(values)
        least = float(values.min())
        zeros = float(np.mean(values == 0))
        return cls(least > 0, least >= 0, bool(step >= 1), step, OFTEN <= zeros <= 1 - OFTEN)


def rounding_step(values: np.ndarray) -> float:
    """The largest power of ten that all values are whole numbers of; 0 where none from a million to a millionth is."""
    for digits in range(-6, 7):
        scaled = values * 10.0**digits
        if np.abs(scaled).max(initial=0.0) > 1e15:
            return 0.0
        if (np.abs(scaled - np.round(scaled)) <= 1e-9 * np.maximum(1.0, np.abs(scaled))).all():
            return float(10.0**-digits)
    return 0.0


Learn = Callable[[np.ndarray, ValueGrid], ColumnFit]


def learn_histogram(values: np.ndarray, grid: ValueGrid) -> ColumnFit:
    """Bins of the least description length; one imagined row is spread inside, and one outside, falling off."""
    points = WeightedPoints(values)
    edges = between_steps(edges_of("auto", points), grid.step)
    counts = counts_of(points, edges)
    widths, rows, span = np.diff(edges), len(values), float(edges[-1] - edges[0])
    with np.errstate(divide="ignore"):
        heights = np.log((counts + widths / span) / ((rows + 2) * widths))
    tail = -np.log(2.0 * (rows + 2) * span)

    def log_density(x: np.ndarray) -> np.ndarray:
        outside = np.maximum(np.maximum(edges[0] - x, x - edges[-1]), 0.0)
        place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(heights) - 1)
        return np.asarray(np.where(outside > 0, tail - outside / span, heights[place]))

    return ColumnFit("1 bin" if len(counts) == 1 else f"{len(counts)} bins", log_density)


def between_steps(edges: np.ndarray, step: float) -> np.ndarray:
    """Edges of values that are rounded: each halfway between two that a value can have, so that no bin is narrower."""
    if step == 0:
        return edges
    low, high = np.round(edges[0] / step) - 0.5, np.round(edges[-1] / step) + 0.5
    inner = np.floor(edges[1:-1] / step) + 0.5
    return np.unique(np.concatenate([[low], inner, [high]])) * step


def learn_kernel(values: np.ndarray, grid: ValueGrid, rule: str = "isj") -> ColumnFit:
    """Gaussian kernels, reflected at 0 where no value is below it, no narrower than half a rounding step."""
    points, kernel = WeightedPoints(values), named_kernel("gaussian")
    h = max(bandwidth_of(rule, points, kernel), grid.step / 2)
    ends = Reflection(0.0, np.inf) if grid.not_negative else OPEN
    density = ColumnDensity(points, kernel, h, ends=ends)
    told = f"bandwidth {h:.4g}" + (", reflected at 0" if grid.not_negative else "")
    return ColumnFit(told, density.log_density)


def learn_family(values: np.ndarray, grid: ValueGrid, kind: Any) -> ColumnFit:
    """A family of distributions, by its name or with its settings."""
    fitted = _fitted(values, kind, 1, 1)
    return ColumnFit(fitted.describe(COLUMN, parameters=True)[0], partial(_scored, fitted))


def learn_positive(values: np.ndarray, grid: ValueGrid, kind: str) -> ColumnFit:
    """A family of numbers above 0; below, nothing is possible."""
    fit = learn_family(values, grid, kind)

    def log_density(x: np.ndarray) -> np.ndarray:
        return np.asarray(np.where(x > 0, fit.log_density(np.where(x > 0, x, 1.0)), -np.inf))

    return ColumnFit(fit.told, log_density)


def learn_counts(values: np.ndarray, grid: ValueGrid, kind: str) -> ColumnFit:
    """A family of counts, each as a bar that is one wide."""
    fit = learn_family(values, grid, kind)

    def log_density(x: np.ndarray) -> np.ndarray:
        nearest = np.floor(x + 0.5)
        return np.asarray(np.where(nearest >= 0, fit.log_density(np.maximum(nearest, 0.0)), -np.inf))

    return ColumnFit(fit.told, log_density)


def learn_mixture(values: np.ndarray, grid: ValueGrid) -> ColumnFit:
    """As many normals as there is evidence for, learned from some of the values where there are many."""
    if len(values) > MIXTURE_ROWS:
        values = np.random.default_rng(0).choice(values, MIXTURE_ROWS, replace=False)
    fitted = _fitted(values, "normal", None, 2)
    words, shares = fitted.describe(COLUMN, parameters=True), fitted.shares
    parts = [f"{100 * share:.0f} % {word}" for share, word in zip(shares[:3], words, strict=False)]
    told = "; ".join(parts) + ("; ..." if len(words) > 3 else "")
    return ColumnFit(f"{fitted.n_groups} normal{'' if fitted.n_groups == 1 else 's'}: {told}", partial(_scored, fitted))


def _fitted(values: np.ndarray, kind: Any, groups: int | None, starts: int) -> Fitted:
    """A mixture of one column, with so many groups or as many as there is evidence for."""
    plan = Plan(declared=read_kinds({COLUMN: kind}), prior="row", stop=Stop(accelerate=True))
    table = open_table({COLUMN: values}, kinds=plan.declared.forced)
    search = ClassSearch(Starts(groups or 1, n_init=starts, seed=0), None if groups else "evidence")
    with Threads(1) as threads:
        return learn_model(table, plan, threads, search)


def _scored(fitted: Fitted, values: np.ndarray) -> np.ndarray:
    with Threads(1) as threads:
        return fitted.score_rows(fitted.table({COLUMN: values}), threads)


def on_steps(learn: Learn, values: np.ndarray, grid: ValueGrid) -> ColumnFit:
    """A density of values that are rounded: where they would add up to more than one, all of it is divided.

    A peak narrower than the rounding says more of the values it stands on than any probability of theirs could be.
    """
    fit = learn(values, grid)
    if grid.step == 0:
        return fit
    excess = float(log_sum_exp(fit.log_density(np.unique(values)))) + float(np.log(grid.step))
    return fit if excess <= 0 else ColumnFit(fit.told, lambda x: np.asarray(fit.log_density(x) - excess))


def candidates(grid: ValueGrid) -> dict[str, Learn]:
    """Every density that may fit such a column, by its name."""
    found: dict[str, Learn] = {"normal": partial(learn_family, kind="normal")}
    if grid.positive:
        found |= {kind: partial(learn_positive, kind=kind) for kind in ("lognormal", "gamma")}
    found["student"] = partial(learn_family, kind="student")
    if grid.whole and grid.not_negative:
        found["poisson"] = partial(learn_counts, kind="poisson")
    if grid.often_zero and grid.step > 0:
        found["spiked"] = partial(
            learn_family, kind=Spiked("lognormal" if grid.not_negative else "normal", 0.0, grid.step)
        )
    found["histogram"] = learn_histogram
    found |= {"kernel (isj)": learn_kernel, "kernel (cv)": partial(learn_kernel, rule="cv")}
    found["mixture"] = learn_mixture
    return {name: partial(on_steps, learn) for name, learn in found.items()}
