"""Guards that nothing else notices when they give way: of leaps, of blocks with few rows, of ties between starts."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from softcount.families import Multinormal
from softcount.learn.em import Converging
from softcount.learn.initialise import members_counts
from softcount.learn.prepare import Prepared, prepare, sizes, starved
from softcount.learn.record import EMRun, Plan, Stop
from softcount.learn.search import StartRun, best_run
from softcount.models.base import Problem
from softcount.models.declare import priors_of, read_kinds
from softcount.models.nodes import ROOT, Imagined, Params
from softcount.run.local import Threads
from softcount.table import open_table


def prepared(rows: np.ndarray, kinds: Any) -> Prepared:
    plan = Plan(read_kinds(kinds), prior="row", estimate="ml")
    with Threads(1) as threads:
        return prepare(open_table(rows, kinds=dict(plan.declared.forced) or None), plan, threads)


# -- a leap must gain what the plain map is sure to gain: one that only does not fall would crawl for ever


class Leap:
    """An extrapolation that leads a share of the way to where the next map leads anyway."""

    def __init__(self, state: Converging, mapped: Params, share: float) -> None:
        here, there = (state.coordinates.vector(params) for params in (state.params, mapped))
        self.ready, self.ends = np.array([True]), (here + share * (there - here))[None]
        self.longest, self.turns, self.moves, self.known = np.full(1, 4.0), [here], [here], [here]
        self.kept = False

    def lengthen(self, sets: np.ndarray) -> None:
        self.kept = True


@pytest.mark.parametrize(("share", "kept"), [(0.02, False), (0.3, False), (1.0, True)])
def test_a_leap_that_gains_less_than_the_map_is_sure_to_is_refused(share: float, kept: bool) -> None:
    rng = np.random.default_rng(4)
    rows = np.concatenate([rng.normal(0, 1, (80, 2)), rng.normal(2.5, 1, (80, 2))])
    found = prepared(rows, {0: "normal", 1: "normal"})
    model = found.model(2)
    counts = members_counts(model, found.ready, rng.dirichlet(np.ones(2), len(rows)))
    priors = {ROOT: 0.0, **priors_of(0.0, model.leaves, "row")}
    problem = Problem(model, Imagined(model.nodes.hypers(model.nodes.unstacked(counts), priors), "ml"), found.ready)
    state = Converging(problem, Stop(accelerate=True))
    state.begin(problem.estimate(counts))
    mapped, before = problem.estimate(state.counts), state.height
    sure = problem.bound(state.counts, mapped) - problem.bound(state.counts, state.params)
    leap: Any = Leap(state, mapped, share)
    state.anderson = leap
    assert state.seen(state.coordinates.params(leap.ends[0], mapped))[1] > before  # it would not fall
    assert state.leaped(mapped, sure) is kept and leap.kept is kept and bool(leap.turns) is kept
    assert (state.height >= before + sure * (1 - 1e-9)) if kept else (state.trace == [before, before])


# -- a full covariance of d columns needs d + 1 rows


@pytest.mark.parametrize("columns", [2, 3, 5])
@pytest.mark.parametrize(("shape", "least"), [("full", None), ("diagonal", 2), ("spherical", 2), ("tied", 0)])
def test_a_group_is_starved_where_its_covariance_cannot_be_one(columns: int, shape: Any, least: int | None) -> None:
    rng = np.random.default_rng(columns)
    rows = rng.normal(size=(60, columns))
    needed = columns + 1 if least is None else least
    if least is None:  # d rows lie in a plane, d + 1 do not
        ranks = [np.linalg.matrix_rank(np.cov(rows[:size].T)) for size in (columns, columns + 1)]
        assert ranks == [columns - 1, columns]
    found = prepared(rows, {tuple(range(columns)): Multinormal(shape)})
    model = found.model(2)
    for size in range(1, columns + 3):
        members = np.zeros((60, 2))
        members[:size, 0], members[size:, 1] = 1.0, 1.0
        counts = members_counts(model, found.ready, members)
        assert starved(model, sizes(counts), "ml").tolist() == [size < needed, False], size


# -- of starts that came to the same height the first is the one, whatever the order they are looked at


def test_of_equal_starts_the_first_is_kept() -> None:
    def run(number: int, height: float) -> StartRun:
        climb = EMRun(params=None, counts=None, trace=[height], converged=True)  # type: ignore[arg-type]
        return StartRun(climb, None, number, 1)  # type: ignore[arg-type]

    rounding = 1e-12 * 1234.5
    runs = [run(0, -1234.5), run(1, -1234.5 + rounding), run(2, -1234.5 - rounding), run(3, -1240.0)]
    for order in permutations(runs):
        assert best_run(order).number == 0
    better = run(4, -1230.0)
    assert best_run([*runs, better]).number == 4 and best_run([better, *runs]).number == 4
