"""The last digits by L-BFGS: slopes checked by differences for every family, and the same top as EM alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softcount as sc
from small_tables import fruit, mixture, refused
from softcount.core.counts import ROOT
from softcount.families import Family, Gamma, Multinormal, Normal
from softcount.learn.initialise import members_counts
from softcount.learn.prepare import prepare
from softcount.learn.record import Plan
from softcount.models.base import Problem
from softcount.models.coordinates import Coordinates
from softcount.models.declare import priors_of, read_kinds
from softcount.models.nodes import Imagined, Params
from softcount.run.local import Threads
from softcount.table import open_table
from test_monotone import MAKERS


def problem(name: str, how: Any, prior: Any) -> tuple[Problem, Params]:
    """A star of rows with what its priors imagine, and parameters that are nobody's optimum."""
    rng = np.random.default_rng(5)
    table, kinds = MAKERS[name](rng, 40, 1.0)
    plan = Plan(read_kinds(kinds), prior=prior, estimate=how)
    with Threads(1) as threads:
        prepared = prepare(open_table(table, kinds=dict(plan.declared.forced)), plan, threads)
    star = prepared.model(3)
    found = star.nodes.unstacked(members_counts(star, prepared.ready, rng.dirichlet(np.ones(3), 40)))
    imagined = Imagined(star.nodes.hypers(found, {ROOT: prior, **priors_of(prior, star.leaves, "row")}), how)
    other = members_counts(star, prepared.ready, rng.dirichlet(np.full(3, 2.0), 40))
    return Problem(star, imagined, prepared.ready), star.nodes.estimate(other, imagined)


@pytest.mark.parametrize(("how", "prior"), [("ml", 0.0), ("map", 2.0), ("mean", 1.0)])
@pytest.mark.parametrize("name", MAKERS)
def test_the_slope_from_the_expected_counts_is_that_of_differences(name: str, how: str, prior: float) -> None:
    here, params = problem(name, how, prior)
    chart = Coordinates(here.model, here.imagined)
    at = chart.vector(params)

    def height(vector: np.ndarray) -> float:
        there = chart.params(vector, params, free=True)
        return here.expected(there).log_likelihood + here.log_prior(there)

    slopes = here.nodes.slope(here.expected(params), params, here.imagined)
    assert slopes is not None
    gradient = chart.gradient(at, slopes)
    for direction in directions(here.model, chart, params, np.random.default_rng(1)):
        far = 1e-4
        plain = (height(at + far * direction) - height(at - far * direction)) / (2 * far)
        twice = (height(at + 2 * far * direction) - height(at - 2 * far * direction)) / (4 * far)
        assert gradient @ direction == pytest.approx((4 * plain - twice) / 3, rel=2e-6, abs=2e-6 * here.n_rows)


def directions(star: Any, chart: Coordinates, params: Any, rng: np.random.Generator) -> list[np.ndarray]:
    """Ways to go that leave what is tied tied: differences between estimates, as EM and L-BFGS go."""
    own = chart.vector(params)
    found = []
    for _ in range(4):
        leaves = {}
        for leaf in star.leaves:
            part = dict(params[leaf.key])
            for name in leaf.family.facts.chart:
                part[name] = nudged(part[name], leaf.family, name, rng)
            leaves[leaf.key] = part
        shares = params.shares * np.exp(0.3 * rng.normal(size=params.shares.shape))
        found.append(chart.vector(star.params(shares / shares.sum(), leaves)) - own)
    return found


def nudged(value: np.ndarray, family: Any, name: str, rng: np.random.Generator) -> np.ndarray:
    line, tied = family.facts.chart[name], getattr(family, "tied", None)
    if line == "covariance":
        mixing = np.eye(value.shape[-1]) + 0.1 * rng.normal(size=value.shape[-1:] * 2)
        if family.covariance == "diagonal":
            mixing = np.diag(np.diagonal(mixing))
        if family.covariance == "spherical":
            mixing = np.eye(len(mixing)) * mixing[0, 0]
        return mixing @ value @ mixing.T
    if line == "plain":
        return value + 0.1 * rng.normal(size=value.shape)
    if line == "share":
        return np.clip(value * np.exp(0.1 * rng.normal(size=value.shape)), 0.0, 1.0)
    factor = np.exp(0.2 * rng.normal(size=value.shape if tied is None else ()))
    moved = value * (factor if name != "variance" or tied is None else 1.25)
    return moved / moved.sum(axis=-1, keepdims=True) if line == "shares" else moved


def overlapping(rows: int = 4000) -> np.ndarray:
    rng = np.random.default_rng(2)
    own = rng.random(rows) < 0.4
    return np.where(own, rng.normal(0.0, 1.0, rows), rng.normal(1.6, 1.3, rows))[:, None]


@pytest.mark.parametrize("kinds", ["normal", Normal(tied="classes")])
def test_finishing_comes_to_the_top_that_em_comes_to(kinds: Any) -> None:
    rows, how = overlapping(), {"kinds": kinds, "n_init": 1, "random_state": 0, "estimate": "ml", "prior": 0.0}
    top = sc.Mixture(2, tol=1e-15, max_iter=20_000, **how).fit(rows)
    ended = sc.Mixture(2, finish="lbfgs", **how).fit(rows)
    assert ended.converged_ and ended.log_likelihood_ == pytest.approx(top.log_likelihood_, abs=1e-6)
    assert (np.diff(ended.trace_) >= 0).all() and len(ended.trace_) == ended.n_iter_ + 1


def test_finishing_a_mixed_table_with_blocks() -> None:
    rng = np.random.default_rng(0)
    own = rng.random(600) < 0.5
    block = rng.normal(size=(600, 2)) @ [[1.0, 0.4], [0.0, 1.0]] + np.where(own, 0.0, 1.5)[:, None]
    table = {"x": block[:, 0], "y": block[:, 1], "n": rng.poisson(np.where(own, 2.0, 3.0)).astype(float)}
    how = {"kinds": {("x", "y"): Multinormal(), "n": "poisson"}, "n_init": 1, "random_state": 0}
    plain, ended = (sc.Mixture(2, finish=word, tol=1e-12, max_iter=5000, **how).fit(table) for word in (None, "lbfgs"))
    assert ended.converged_ and ended.trace_[-1] == pytest.approx(plain.trace_[-1], abs=1e-6)


def test_passes_are_counted_and_limited() -> None:
    ended = sc.Mixture(2, kinds="normal", finish="lbfgs", max_iter=12, n_init=1, random_state=0).fit(overlapping())
    assert not ended.converged_ and ended.n_iter_ <= 12 and (np.diff(ended.trace_) >= 0).all()


class ByDifferences(Gamma, frozen=True):
    """A gamma column that does not say its slope."""

    slope = Family.slope


def test_a_family_without_a_slope_of_its_own_is_finished_by_differences() -> None:
    rows, how = np.exp(overlapping(300)), {"finish": "lbfgs", "n_init": 1, "random_state": 0}
    own, plain = (sc.Mixture(2, kinds=family, **how).fit(rows) for family in (Gamma(), ByDifferences()))
    assert plain.converged_ and plain.trace_[-1] == pytest.approx(own.trace_[-1], abs=1e-6)


def test_what_does_not_go_with_it_is_refused() -> None:
    refused(lambda: mixture(finish="newton").fit(fruit()[0]), "newton", "lbfgs")
    refused(lambda: mixture(finish="lbfgs", assign="hard").fit(fruit()[0]), "lbfgs", "soft")


def test_finishing_needs_a_tolerance() -> None:
    with pytest.raises(sc.DataError, match="finish='lbfgs' needs a tolerance above 0"):
        sc.Mixture(2, kinds="normal", finish="lbfgs", tol=0).fit(overlapping(60))
