"""Many sets of parameters at once are what each is by itself: expected counts, estimates, objectives, vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from contract.examples import EXAMPLES, Example, every_climb
from contract.models import memberships
from softcount.learn.em import run_em
from softcount.learn.initialise import draw_memberships, start_params
from softcount.learn.mixture import Starts, Task
from softcount.learn.prepare import prepare
from softcount.learn.record import Plan, Stop
from softcount.learn.search import Race
from softcount.models.base import Problem
from softcount.models.batched import SideBySide
from softcount.models.coordinates import Coordinates
from softcount.models.declare import read_kinds
from softcount.models.nodes import Imagined, Params
from softcount.run.local import Threads
from softcount.table import open_table

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
SETS = 4
NO_PRODUCTS = {"student", "spiked", "mixed", "mixed_block", "gamma", "joint", "text", "markov", "histogram", "cut"}
"""Families whose scores are no product of features, or not of few."""


def case(example: Example, how: Any, weights: Any = None) -> tuple[Task, Imagined]:
    """A mixture of two groups of an example's rows, ready to be searched."""
    declared = read_kinds(example.kinds)
    table = open_table(example.table(example.values), kinds=declared.forced, weights=weights)
    plan = Plan(declared=declared, prior=1.0, estimate=how, stop=Stop(accelerate=True))
    with Threads(1) as threads:
        prepared = prepare(table, plan, threads)
        task = Task(prepared, plan, Starts(2, n_init=SETS, seed=0), threads, prepared.model(2))
        one_step = replace(task, plan=replace(plan, stop=Stop(max_iter=1)), starts=Starts(2, n_init=1, seed=0))
        return task, one_step.search(())[1]


def sets_of(task: Task, imagined: Imagined) -> list[Params]:
    """Parameters that drawn memberships imply, of which no two sets are alike."""
    rows, rng = task.prepared.sketch, np.random.default_rng(0)
    members = [draw_memberships(rows, 2, "random", [rng])[:, 0].T for _ in range(SETS)]
    return [start_params(task.model, imagined, rows, own) for own in members]


def by_itself(task: Task, imagined: Imagined) -> Problem:
    return Problem(task.model, imagined, [task.model.prepare(task.prepared.sketch.as_heavy_as_the_table())])


@every_climb
@pytest.mark.parametrize("how", ["ml", "mean"])
@pytest.mark.parametrize("weighed", [False, True])
def test_sets_climb_as_each_does_alone(example: Example, how: Any, weighed: bool) -> None:
    weights = np.linspace(0.5, 2.0, len(example.values)) if weighed else None
    task, imagined = case(example, how, weights)
    many = task.prepared.side_by_side(task.model, imagined)
    if many is None:
        holes = any(cell is None for row in example.values for cell in row)
        assert example.family.name in NO_PRODUCTS or (example.family.facts.block and holes), "this could be raced"
        return
    alone, params = sets_of(task, imagined), many.together(sets_of(task, imagined))
    for _ in range(4):
        stats, heights = many.expected(params)
        params = many.estimate(stats)
    for place, start in enumerate(alone):
        reached = run_em(by_itself(task, imagined), start, Stop(max_iter=3, tol=0.0))
        assert heights[place] == pytest.approx(reached.trace[-1], rel=1e-9, abs=1e-9)
        counts = many.counts(stats, place)
        for name, own in reached.counts.arrays.items():
            np.testing.assert_allclose(counts[name], own.value, rtol=1e-7, atol=1e-9)


@every_climb
def test_vectors_are_those_of_each_set_in_some_order_and_lead_back(example: Example) -> None:
    task, imagined = case(example, "mean")
    many = task.prepared.side_by_side(task.model, imagined)
    if many is None:
        return
    alone = sets_of(task, imagined)
    params = many.together(alone)
    chart, vectors, weights = (
        Coordinates(task.model, imagined),
        many.coordinates.vector(params),
        many.coordinates.weights(params),
    )
    for place, own in enumerate(
        () if example.family.facts.shared_by_groups else alone
    ):  # here what is shared stands once
        np.testing.assert_allclose(np.sort(vectors[place]), np.sort(chart.vector(own)), rtol=1e-12)
        np.testing.assert_allclose(np.sort(weights[place]), np.sort(chart.weights(own)), rtol=1e-12)
    back = many.coordinates.params(vectors, params)
    np.testing.assert_allclose(many.coordinates.vector(back), vectors, rtol=1e-9, atol=1e-9)


@every_climb
def test_a_race_never_falls_and_is_no_lower_than_plain_maps(example: Example) -> None:
    task, imagined = case(example, "mean")
    many = task.prepared.side_by_side(task.model, imagined)
    if many is None:
        return
    params = many.together(sets_of(task, imagined))
    leaping, plain = (Race(many, params, np.arange(SETS), Stop(accelerate=True)) for _ in range(2))
    leaping.run(40)
    plain.run(12, plain=True)
    traces = np.array(leaping.traces)
    assert (np.diff(traces, axis=0) >= -1e-10 * np.abs(traces[1:])).all()
    assert (leaping.heights >= plain.heights - 1e-6 * np.abs(plain.heights)).all()


def two_blobs() -> tuple[SideBySide, list[Params]]:
    rng = np.random.default_rng(0)
    table = open_table(np.concatenate([rng.normal(size=(40, 2)), rng.normal(6.0, 1.0, (40, 2))]))
    plan = Plan(prior=1.0, stop=Stop(accelerate=True))
    with Threads(1) as threads:
        prepared = prepare(table, plan, threads)
        task = Task(prepared, plan, Starts(2, n_init=SETS, seed=0), threads, prepared.model(2))
        imagined = task.search(())[1]
    many = prepared.side_by_side(task.model, imagined)
    assert many is not None
    return many, sets_of(task, imagined)


def test_sets_may_join_on_the_way_and_go_as_if_they_had_started_then() -> None:
    many, sets = two_blobs()
    late, early = Race(many, many.together(sets[2:]), np.arange(2), Stop(accelerate=True)), many.together(sets[:2])
    race = Race(many, early, np.arange(2), Stop(accelerate=True))
    race.run(5)
    race.join(many.together(sets[2:]), np.array([7, 8]))
    race.run(9)
    late.run(9)
    assert race.owners.tolist() == [0, 1, 7, 8] and race.met[3] == frozenset({8})
    np.testing.assert_allclose(np.array(race.traces)[5:, 2:], np.array(late.traces), rtol=1e-12)
    assert np.isneginf(np.array(race.traces)[:5, 2:]).all() and (race.hopes(10.0) >= race.heights).all()


def test_sets_may_join_a_race_that_all_others_have_left() -> None:
    many, sets = two_blobs()
    race, alone = (Race(many, many.together(sets[:2]), np.arange(2), Stop(accelerate=True)) for _ in "ab")
    race.run(3)
    race.keep(np.zeros(0, dtype=int))
    race.join(many.together(sets[:2]), np.arange(2))
    race.run(6)
    alone.run(6)
    np.testing.assert_allclose(race.heights, alone.heights, rtol=1e-12)


def test_sets_may_be_left_out_on_the_way() -> None:
    many, sets = two_blobs()
    races = [Race(many, many.together(sets), np.arange(SETS), Stop(accelerate=True)) for _ in "ab"]
    for race in races:
        race.run(5)
    races[1].keep(np.array([2, 0]))
    for race in races:
        race.run(10)
    np.testing.assert_allclose(races[1].heights, races[0].heights[[2, 0]], rtol=1e-12)
    assert races[1].owners.tolist() == [2, 0] and len(races[1].traces[0]) == 2


@pytest.mark.parametrize("init", ["k-means++", "k-means", "random", "agglomerative"])
@pytest.mark.parametrize("known", [False, True])
def test_starts_drawn_together_are_those_drawn_one_by_one(init: str, known: bool) -> None:
    rng = np.random.default_rng(3)
    holed = np.where(rng.random(50) < 0.2, np.nan, rng.normal(size=50))
    frame = {"x": rng.normal(size=50), "c": rng.choice(list("abc"), 50), "z": holed}
    labels = np.where(np.arange(50) < 6, np.arange(50) % 3, -1) if known else None
    plan = Plan(prior="row")
    with Threads(1) as threads:
        rows = prepare(open_table(frame, labels=labels), plan, threads).sketch
    rngs = [[np.random.default_rng(seed) for seed in range(5)] for _ in "ab"]
    together = draw_memberships(rows, 3, init, rngs[0])
    for place, own in enumerate(rngs[1]):
        np.testing.assert_array_equal(together[:, place], draw_memberships(rows, 3, init, [own])[:, 0])


def test_memberships_of_the_contract_start_a_race_too() -> None:
    """What the contract's mixtures start from is counted alike for many sets and for one."""
    example = next(e for e in EXAMPLES if e.title == "normal")
    task, imagined = case(example, "mean")
    many = task.prepared.side_by_side(task.model, imagined)
    assert isinstance(many, SideBySide)
    own = memberships(["uv"[i % 2] for i in range(len(task.prepared.sketch.weights))])
    both = many.estimate(many.counted(np.stack([own, own[:, ::-1]]).transpose(2, 0, 1)))
    one = start_params(task.model, imagined, task.prepared.sketch, own)
    np.testing.assert_allclose(
        many.coordinates.vector(both)[0], many.coordinates.vector(many.together([one]))[0], rtol=1e-9
    )
