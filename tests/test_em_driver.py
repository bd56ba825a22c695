"""The driver: it stops where nothing is left to gain, leaps without falling, shows the bound, can be interrupted."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import softcount as sc
from small_tables import fruit, mixture
from softcount.families import Multinormal
from softcount.learn.em import run_em
from softcount.learn.record import Stop
from softcount.models.base import Problem
from softcount.models.coordinates import Coordinates
from worked.test_06_candy import START, TABLE, TIMES


def overlapping(rows: int = 20_000, seed: int = 0) -> np.ndarray:
    """Two normal components that lie so close that plain EM needs thousands of maps."""
    rng = np.random.default_rng(seed)
    own = rng.random(rows) < 0.4
    return np.where(own, rng.normal(0.0, 1.0, rows), rng.normal(1.5, 1.3, rows))[:, None]


def one_start(**how: Any) -> Any:
    return sc.Mixture(2, kinds="normal", n_init=1, random_state=0, **how)


def test_overlapping_components_are_climbed_to_the_top_in_a_tenth_of_the_maps() -> None:
    rows = overlapping(6_000)
    near = one_start().fit(rows)  # the default settings
    top = one_start(tol=1e-15, max_iter=3000).fit(rows)
    assert near.converged_ and top.converged_
    assert near.trace_[-1] >= top.trace_[-1] - 1e-6
    plain = one_start(accelerate=False, tol=0, max_iter=10 * near.n_iter_).fit(rows)
    assert near.trace_[-1] - plain.trace_[-1] > 1e-6  # ten times as many maps are not enough
    # From the top plain EM, however long, finds nothing more.
    after = one_start(init={"weights": near.weights_, **near.params_}, accelerate=False, tol=0, max_iter=100).fit(rows)
    assert after.trace_[-1] - near.trace_[-1] < 1e-6


def test_plain_maps_stop_when_what_is_left_is_below_the_tolerance() -> None:
    """The candies of worked example 6: the prediction is of all that is left, not of the next step."""
    how = {"init": START, "n_init": 1, "estimate": "ml", "max_iter": 5000}
    top = sc.Mixture(2, tol=1e-15, **how).fit(TABLE, sample_weight=TIMES).trace_[-1]
    for tol in (1e-5, 1e-6, 1e-7, 1e-9):
        for accelerate in (False, True):
            model = sc.Mixture(2, tol=tol, accelerate=accelerate, **how).fit(TABLE, sample_weight=TIMES)
            assert model.converged_
            assert top - model.trace_[-1] <= tol * abs(top)


def test_easy_tables_take_few_maps() -> None:
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(0, 1, (300, 3)), rng.normal(6, 1, (300, 3))])
    assert one_start().fit(rows).n_iter_ <= 6


def test_no_tolerance_takes_every_map_and_no_leap() -> None:
    frame, _ = fruit()
    leaping, plain = (mixture(tol=0, max_iter=25, accelerate=word).fit(frame) for word in (True, False))
    assert leaping.n_iter_ == 25 and len(leaping.trace_) == 26
    assert leaping.trace_ == plain.trace_


def test_leaps_of_correlated_blocks_save_maps() -> None:
    rng = np.random.default_rng(4)
    own = rng.random(300) < 0.5
    block = rng.normal(size=(300, 2)) @ [[1.0, 0.5], [0.0, 1.0]] + np.where(own, 0.0, 1.7)[:, None]
    how = {"kinds": {(0, 1): Multinormal()}, "n_init": 1, "random_state": 1, "max_iter": 6000}
    plain, leaping = (sc.Mixture(2, accelerate=word, **how).fit(block) for word in (False, True))
    assert leaping.n_iter_ * 3 < plain.n_iter_
    assert leaping.trace_[-1] >= plain.trace_[-1] - 1e-6


# -- the bound


def test_half_steps_show_the_bound_and_the_objective_in_turn() -> None:
    how = {"init": START, "n_init": 1, "estimate": "ml", "tol": 0, "max_iter": 10}
    model = sc.Mixture(2, half_steps=True, **how).fit(TABLE, sample_weight=TIMES)
    assert model.trace_[:3] == pytest.approx([-2044.260365, -2030.137260, -2021.026239], abs=5e-7)
    assert len(model.trace_) == 21 and model.n_iter_ == 10
    assert all(low <= high for low, high in pairwise(model.trace_))
    assert model.trace_[::2] == sc.Mixture(2, **how).fit(TABLE, sample_weight=TIMES).trace_


@pytest.mark.parametrize("how", ["ml", "map", "mean"])
def test_bound_and_objective_climb_in_turn_under_every_prior(how: str) -> None:
    frame, _ = fruit(120)
    model = mixture(n_components=3, half_steps=True, estimate=how, prior=1.0, max_iter=60).fit(frame)
    assert (np.diff(model.trace_) >= -1e-12 * np.abs(model.trace_[1:])).all()


# -- the chart


def test_the_chart_leads_there_and_back() -> None:
    frame, _ = fruit(120)
    frame["width"] = frame["size"] * 0.5 + np.linspace(0, 1, 120)
    kinds = {("size", "width"): Multinormal(), "colour": "categorical", "visits": "poisson"}
    fitted = mixture(n_components=3, kinds=kinds).fit(frame).fitted_
    chart = Coordinates(fitted.model, fitted.imagined)
    there = chart.params(chart.vector(fitted.estimates), fitted.estimates)
    np.testing.assert_allclose(there.shares, fitted.estimates.shares, rtol=1e-13)
    for node in fitted.model.nodes:
        for name in node.family.facts.chart:
            np.testing.assert_allclose(there[node.key][name], fitted.estimates[node.key][name], rtol=1e-11)


# -- control


class Stopped:
    """Watches a climb and interrupts it as Ctrl-C would."""

    def __init__(self, after: int) -> None:
        self.after = after

    def __call__(self, iteration: int, objective: float) -> None:
        if iteration >= self.after:
            raise KeyboardInterrupt


def test_an_interrupted_climb_keeps_the_best_so_far() -> None:
    from softcount.learn.prepare import prepare
    from softcount.learn.record import Plan
    from softcount.models.declare import read_kinds
    from softcount.run.local import Threads
    from softcount.table import open_table

    frame, _ = fruit()
    fitted = mixture(max_iter=1, tol=0).fit(frame).fitted_
    plan = Plan(read_kinds({"size": "normal", "colour": "categorical", "visits": "poisson"}), prior="row")
    with Threads(1) as threads:
        ready = prepare(open_table(frame, kinds=dict(plan.declared.forced)), plan, threads).ready
        problem, stop = Problem(fitted.model, fitted.imagined, ready, threads), Stop(50, 1e-12)
        whole, cut = (run_em(problem, fitted.estimates, stop, watch) for watch in (None, Stopped(4)))
    assert cut.interrupted and not cut.converged and not whole.interrupted
    assert cut.trace == whole.trace[: len(cut.trace)] and len(cut.trace) == 5
    assert cut.objective == cut.trace[-1]


def test_an_interrupt_ends_cross_validation() -> None:
    from softcount.evaluate.scores import cross_validate
    from softcount.learn.record import Plan
    from softcount.run.local import Threads
    from softcount.table import open_table

    def stopped(start: int, of: int, iteration: int, objective: float) -> None:
        raise KeyboardInterrupt

    frame, labels = fruit()
    table = open_table(frame.assign(y=np.where(np.arange(60) % 3 == 0, None, labels)), target="y")
    with Threads(1) as threads, pytest.raises(KeyboardInterrupt):
        cross_validate(table, Plan(target="y", unlabelled_weight=1.0, watch=stopped), threads)
