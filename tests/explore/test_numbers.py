"""Bars of numbers: their shares add up, far tails keep their digits, and formulas are the densities they stand for."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm, poisson

import softcount as sc
from explored_models import STARS
from softcount.core import formulas as fm
from softcount.explore.classes import answer_edges, log_shares
from softcount.families import Setting
from softcount.fitted.answers import Answer


def columns_of(kind: str) -> list[Any]:
    """Every single column of numbers of a model: its density, and the shares of the groups."""
    fitted = STARS[kind]().model.fitted_
    found = []
    for leaf in fitted.model.leaves:
        if len(leaf.columns) == 1 and leaf.levels_of(0) is None:
            found.append(pytest.param(leaf.density(fitted.estimates), fitted.shares, id=f"{kind}-{leaf.key}"))
    return found


NUMBERS = [*columns_of("naive_bayes"), *columns_of("predictive_bayes")]


@pytest.mark.parametrize(("density", "shares"), NUMBERS)
def test_shares_of_bars_are_differences_of_the_distribution_function(density: Any, shares: Any) -> None:
    answer = Answer(shares, density)
    edges = answer_edges(answer)
    found = np.exp(log_shares(density, edges))
    assert found.sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    below = np.stack([density.cdf(edge) for edge in edges], axis=1)
    assert np.cumsum(found, axis=1)[:, :-1] == pytest.approx(below, abs=1e-5)
    assert 8 <= len(edges) <= 40
    assert (np.diff(edges) > 0).all()


OPERATIONS = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "log": np.log, "exp": np.exp,
    "largest": lambda *parts: np.max(np.broadcast_arrays(*parts), axis=0),
}  # fmt: skip


def evaluated(of: Any, x: float) -> Any:
    """A formula of one number at x, in every group."""
    if isinstance(of, fm.GroupNumbers):
        return of.values
    if isinstance(of, fm.Cell):
        return x
    if isinstance(of, fm.LookUp):
        assert isinstance(of.code, fm.IntervalCode)
        return of.table[1 + np.searchsorted(of.code.edges, x, side="right")]
    if isinstance(of, fm.Compare):
        left, right = evaluated(of.left, x), evaluated(of.right, x)
        return left < right if of.sign == "<" else left == right
    if isinstance(of, fm.Choose):
        chosen = np.all(np.broadcast_arrays(*(evaluated(test, x) for test in of.tests)), axis=0)
        return np.where(chosen, evaluated(of.then, x), evaluated(of.otherwise, x))
    with np.errstate(all="ignore"):  # of the side that is not chosen
        return OPERATIONS[of.operation](*(evaluated(part, x) for part in of.parts))


@pytest.mark.parametrize(("density", "shares"), NUMBERS)
def test_a_formula_differs_from_the_score_by_what_no_group_changes(density: Any, shares: Any) -> None:
    form, answer = density.formula(("x",), (0,)), Answer(shares, density)
    for share in (0.02, 0.3, 0.55, 0.8, 0.97):
        x = answer.quantile(share)
        off = evaluated(form, x) - density.score(np.array([x]))[0]
        assert np.ptp(off) < 1e-9


def test_a_share_far_out_in_a_tail_is_no_zero() -> None:
    """Thirty deviations out a difference of distribution functions has no digit left."""
    params = {"mean": np.array([0.0, 40.0]), "variance": np.array([1.0, 1.0])}
    edges = np.arange(-2.0, 43.0, 2.0)
    found = log_shares(sc.families.Normal().density(params, Setting(groups=2)), edges)
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    for group, mean in enumerate((0.0, 40.0)):
        for bar, (low, high) in enumerate(pairwise(ends - mean)):
            tail = norm.logsf if low > 0 else norm.logcdf  # the smaller of the two has all digits
            near, far = (tail(low), tail(high)) if low > 0 else (tail(high), tail(low))
            assert found[group, bar] == pytest.approx(near + np.log1p(-np.exp(far - near)), abs=1e-7)


def test_whole_numbers_have_tails_too() -> None:
    params = {"rate": np.array([2.0, 300.0])}
    edges = np.arange(0.0, 330.0, 10.0)
    found = log_shares(sc.families.Poisson().density(params, Setting(groups=2)), edges)
    inside = logsumexp(poisson.logpmf(np.arange(201, 211), 2.0))
    assert found[0, 21] == pytest.approx(inside, abs=1e-9)
    assert found[1, 0] == pytest.approx(poisson.logpmf(0, 300.0), rel=1e-9)


def test_a_column_that_is_a_mixture_can_be_asked_for_its_distribution() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-3, 1, 300), rng.normal(3, 1, 300)])
    model = sc.NaiveBayes(kinds={"x": sc.families.Mixed("normal", 2)}).fit({"x": x}, ["p"] * 600)
    answer = model.query("x")
    assert answer.cdf(0.0) == pytest.approx(0.5, abs=0.02)
    assert answer.mean == pytest.approx(x.mean(), abs=0.05)
    assert answer.quantile(0.25) == pytest.approx(-3, abs=0.2)
