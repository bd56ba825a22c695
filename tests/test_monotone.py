"""The objective never falls: more than 100,000 EM steps over random tables of every family, plain and accelerated.

Tables are tiny, so that groups run empty, variances meet their floors and probabilities go to nothing: that is where
an objective falls if it can. Every other table is climbed in longer steps too. SOFTCOUNT_TRIES multiplies the number
of tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from softcount.core.counts import ROOT
from softcount.errors import DataError
from softcount.families import FAMILIES, Family, Multinormal, Normal
from softcount.learn.em import run_em
from softcount.learn.initialise import members_counts
from softcount.learn.prepare import prepare
from softcount.learn.record import EMRun, Plan, Stop
from softcount.models.base import Problem
from softcount.models.declare import priors_of, read_kinds
from softcount.models.nodes import Imagined
from softcount.models.stacks import Kernels
from softcount.run.local import Threads
from softcount.table import open_table

Maker = Callable[[np.random.Generator, int, float], tuple[dict[str, Any], dict[Any, Any]]]
TRIES = max(1, int(os.environ.get("SOFTCOUNT_TRIES", "0")))
STEPS, FEWER = 330, 150
"""Maps of a climb; of families whose maps take longest, fewer."""
SCALES = (1e-3, 1.0, 1e3)


def reals(rng: np.random.Generator, rows: int, scale: float, columns: int) -> np.ndarray:
    """Numbers in clumps, some of them repeated, a few missing."""
    cells = rng.normal(rng.integers(0, 3, (rows, 1)) * rng.choice([0.5, 2.0, 20.0]), 1.0, (rows, columns)) * scale
    cells[rng.random(rows) < 0.2] = cells[0]
    return np.where(rng.random(cells.shape) < 0.1, np.nan, cells)


def columns_of(cells: np.ndarray, names: str) -> dict[str, Any]:
    return {name: [None if x != x else x for x in column.tolist()] for name, column in zip(names, cells.T, strict=True)}


def real_columns(family: Family) -> Maker:
    return lambda rng, rows, scale: (columns_of(reals(rng, rows, scale, 2), "xy"), dict.fromkeys("xy", family))


def real_block(family: Family) -> Maker:
    return lambda rng, rows, scale: (columns_of(reals(rng, rows, scale, 3), "uvw"), {tuple("uvw"): family})


def positive(name: str) -> Maker:
    def make(rng: np.random.Generator, rows: int, scale: float) -> tuple[dict[str, Any], dict[Any, Any]]:
        return columns_of(scale * np.exp(0.5 * reals(rng, rows, 1.0, 2)), "pq"), dict.fromkeys("pq", name)

    return make


def levels(kinds: dict[Any, Any]) -> Maker:
    def make(rng: np.random.Generator, rows: int, scale: float) -> tuple[dict[str, Any], dict[Any, Any]]:
        codes = rng.integers(0, 2, (rows, 1)) + rng.integers(0, 2, (rows, 3))
        codes[:, 0] = np.minimum(codes[:, 0], 1)
        cells = np.where(rng.random(codes.shape) < 0.15, -1, codes)
        table = {name: [None if x < 0 else f"l{x}" for x in part] for name, part in zip("abc", cells.T, strict=True)}
        return table, kinds

    return make


def counts(kinds: dict[Any, Any]) -> Maker:
    def make(rng: np.random.Generator, rows: int, scale: float) -> tuple[dict[str, Any], dict[Any, Any]]:
        cells = rng.poisson(rng.choice([0.3, 3.0, 30.0], (rows, 1)), (rows, 2)).astype(float)
        cells[:, 1] += cells[:, 0]
        return columns_of(np.where(rng.random(cells.shape) < 0.1, np.nan, cells), "mn"), kinds

    return make


def mixed(rng: np.random.Generator, rows: int, scale: float) -> tuple[dict[str, Any], dict[Any, Any]]:
    """A column or block of most families at once."""
    chosen = ("normal", "multinormal", "lognormal", "categorical", "poisson")
    parts = [MAKERS[name](rng, rows, scale) for name in chosen]
    table = {key: cells for part, _ in parts for key, cells in part.items()}
    return table, {key: kind for _, kinds in parts for key, kind in kinds.items()}


MAKERS: dict[str, Maker] = {
    "normal": real_columns(Normal()),
    "normal-classes": real_columns(Normal(tied="classes")),
    "normal-columns": real_columns(Normal(tied="columns")),
    "normal-both": real_columns(Normal(tied="both")),
    "multinormal": real_block(Multinormal()),
    "multinormal-tied": real_block(Multinormal("tied")),
    "multinormal-diagonal": real_block(Multinormal("diagonal")),
    "multinormal-spherical": real_block(Multinormal("spherical")),
    "student": real_columns(FAMILIES["student"]()),
    "lognormal": positive("lognormal"),
    "gamma": positive("gamma"),
    "categorical": levels(dict.fromkeys("abc", "categorical")),
    "bernoulli": levels({"a": "bernoulli", "b": "ignore", "c": "ignore"}),
    "joint": levels({("a", "b"): "categorical", "c": "categorical"}),
    "poisson": counts(dict.fromkeys("mn", "poisson")),
    "multinomial": counts({("m", "n"): "multinomial"}),
    "binomial": counts({("m", "n"): "binomial"}),
    "mixed": mixed,
}
QUICK = ("categorical", "bernoulli", "poisson", "multinomial", "binomial")
SLOW = (
    "joint",
    "multinormal",
    "multinormal-tied",
    "multinormal-diagonal",
    "multinormal-spherical",
    "student",
    "gamma",
    "mixed",
)
TABLES = {name: TRIES * (44 if name in QUICK else 7 if name in SLOW else 14) for name in MAKERS}
"""Tables for each family: three scales, two to eight groups."""
MAPS = {name: FEWER if name in SLOW else STEPS for name in MAKERS}
PRIORS: dict[str, tuple[Any, ...]] = {"ml": (0.0,), "map": (1.0, 2.0), "mean": ("row", 1.0, 0.25)}


def climbed(rng: np.random.Generator, make: Maker, groups: int, scale: float, stop: Stop) -> EMRun:
    """One climb from random memberships, or from one row to a group."""
    how = ("ml", "map", "mean")[int(rng.integers(3))]
    prior = PRIORS[how][int(rng.integers(len(PRIORS[how])))]
    table, kinds = make(rng, int(rng.integers(groups + 4, 30)), scale)
    weights = rng.choice([0.25, 1.0, 3.0], len(next(iter(table.values())))) if rng.random() < 0.3 else None
    plan = Plan(read_kinds(kinds), prior=prior, estimate=how)  # type: ignore[arg-type]
    with Threads(1) as threads:
        prepared = prepare(open_table(table, kinds=dict(plan.declared.forced), weights=weights), plan, threads)
        star: Any = replace(prepared.model(groups), kernels=Kernels(int(rng.choice([1, 1 << 40], p=[0.2, 0.8]))))
        rows = sum(part.n_rows for part in prepared.ready)
        members = rng.dirichlet(np.full(groups, rng.choice([0.1, 1.0, 10.0])), rows)
        found = members_counts(star, prepared.ready, members)
        priors = {ROOT: prior, **priors_of(prior, star.leaves, "row")}
        imagined = Imagined(star.nodes.hypers(star.nodes.unstacked(found), priors), how)  # type: ignore[arg-type]
        problem = Problem(star, imagined, prepared.ready, threads)
        return run_em(problem, problem.estimate(found), stop)


def falls(way: EMRun) -> float:
    """The largest fall of the objective, in proportion."""
    heights = np.array(way.trace)
    heights = heights[np.isfinite(heights)]
    return float(np.max((heights[:-1] - heights[1:]) / np.maximum(1.0, np.abs(heights[1:])), initial=0.0))


@pytest.mark.parametrize("accelerate", [False, True], ids=["plain", "accelerated"])
@pytest.mark.parametrize("name", MAKERS)
def test_no_step_lowers_the_objective(name: str, accelerate: bool) -> None:
    stop = Stop(MAPS[name], 1e-15 if accelerate else 0.0, accelerate)
    for number in range(0, TABLES[name], 2 if accelerate else 1):
        rng = np.random.default_rng((number, accelerate, sum(map(ord, name))))
        try:
            way = climbed(rng, MAKERS[name], 2 + number % 7, SCALES[number % 3], stop)
        except DataError as refused:
            assert "no interior mode" in str(refused)
            continue
        assert np.isfinite(way.trace[1:]).all(), (number, way.trace)
        assert way.fell == 0.0, (number, way.fell, way.n_iter)
        assert falls(way) <= 1e-12, (number, falls(way))
        assert accelerate or way.n_iter == MAPS[name]


def test_these_are_more_than_a_hundred_thousand_steps() -> None:
    assert sum(TABLES[name] * MAPS[name] for name in MAKERS) > 100_000
