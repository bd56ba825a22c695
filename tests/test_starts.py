"""Where EM starts: the law of k-means++, every kind of start, known rows, copies nudged apart, and control."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

import softcount as sc
from softcount.errors import DataError, DataWarning
from softcount.fitted.fitted import Fitted
from softcount.learn.initialise import INITS, SKETCH_ROWS, Measures, Sketch, far_from, link_rows, seeds, sketch_rows
from softcount.learn.mixture import Starts, fit_groups, fit_prepared
from softcount.learn.prepare import prepare
from softcount.learn.record import Plan, Stop
from softcount.models.declare import read_kinds
from softcount.run.local import Threads
from softcount.table import Chunk, open_table


def seed_rows(rows: Sketch, groups: int, seed: int) -> list[int]:
    return [int(row) for row in seeds(rows, groups, [np.random.default_rng(seed)])[0][0]]


def chunk_of(reals: Any, weights: Any = None, labels: Any = None) -> Chunk:
    reals = np.asarray(reals, dtype=float)
    nothing = np.zeros((len(reals), 0))
    return Chunk(
        0, len(reals), reals, nothing.astype(np.uint8), nothing.astype(np.int32), (),
        None if labels is None else np.asarray(labels, dtype=np.int32),
        None if weights is None else np.asarray(weights, dtype=float),
    )  # fmt: skip


def blobs(rows: int = 60, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(middle, 1.0, (rows, 2)) for middle in ([0, 0], [7, 0], [0, 9])])


# -- the law


def test_seeds_are_drawn_by_weight_times_squared_distance() -> None:
    rows = sketch_rows([chunk_of([[0.0], [1.0], [3.0], [7.0]], weights=[1.0, 2.0, 1.0, 4.0])])
    w = rows.weights
    law = {}
    for a in range(4):
        far = w * far_from(rows, np.array([a]))[0]
        law |= {(a, b): w[a] / w.sum() * far[b] / far.sum() for b in range(4) if b != a}
    drawn = Counter(tuple(seed_rows(rows, 2, seed)) for seed in range(6000))
    pairs = sorted(law)
    assert sum(law.values()) == pytest.approx(1.0)
    assert set(drawn) <= set(pairs)
    assert chisquare([drawn[pair] for pair in pairs], [6000 * law[pair] for pair in pairs]).pvalue > 1e-3


def test_columns_that_share_a_width_are_compared_in_one_unit() -> None:
    """For spherical classes a column a hundred times as wide is a hundred times as far, whatever its deviation."""
    wide = np.random.default_rng(0).normal(size=(30, 3)) * [1.0, 100.0, 7.0]
    chunk = chunk_of(wide)
    rows = sketch_rows([chunk], Measures(in_one_unit=[[0, 1]]))
    order = np.argsort(rows.chunk.reals[:, 0])
    given = wide[np.argsort(wide[:, 0])]
    steps, own = np.diff(rows.points[order], axis=0), np.diff(given, axis=0)
    unit = np.sqrt(np.mean(wide[:, :2].var(axis=0)))
    np.testing.assert_allclose(steps[:, :2], own[:, :2] / unit, rtol=1e-9)
    np.testing.assert_allclose(steps[:, 2], own[:, 2] / wide[:, 2].std(), rtol=1e-9)


def test_spherical_classes_are_seeded_in_the_units_of_the_table() -> None:
    """Two far blobs along a wide column, and a narrow column of noise: a standardised one would hide them."""
    rng = np.random.default_rng(1)
    apart = np.concatenate([rng.normal(0.0, 1.0, 60), rng.normal(1000.0, 1.0, 6)])
    X = np.column_stack([apart, *rng.normal(0.0, 1e-3, (20, 66))])
    with Threads(1) as threads:
        prepared = prepare(open_table(X), Plan(declared=read_kinds(sc.families.Normal("columns"))), threads)
    drawn = [seed_rows(prepared.sketch, 2, seed) for seed in range(40)]
    places = prepared.sketch.chunk.reals[:, 0] > 500
    assert all(places[a] != places[b] for a, b in drawn)


def test_known_rows_seed_their_own_classes() -> None:
    rows = sketch_rows([chunk_of([[0.0], [1.0], [3.0], [7.0]], labels=[-1, 1, -1, 0])])
    labels = rows.chunk.labels
    for seed in range(20):
        chosen = seed_rows(rows, 3, seed)
        assert [labels[row] for row in chosen[:2]] == [0, 1]


# -- the sketch


def test_a_sketch_does_not_depend_on_order_or_repetition() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(3 * SKETCH_ROWS, 2))
    plain, shuffled = (
        sketch_rows([chunk_of(values)]),
        sketch_rows([chunk_of(p) for p in np.array_split(values[::-1], 3)]),
    )
    twice = sketch_rows([chunk_of(np.repeat(values, 2, axis=0))])
    np.testing.assert_array_equal(plain.chunk.reals, shuffled.chunk.reals)
    np.testing.assert_array_equal(plain.chunk.reals, twice.chunk.reals)
    np.testing.assert_array_equal(2 * plain.weights, twice.weights)
    assert not plain.whole
    assert plain.mass == 3 * SKETCH_ROWS


def test_a_small_sketch_is_the_whole_table() -> None:
    rows = sketch_rows([chunk_of([[1.0], [2.0], [1.0]]), chunk_of([[2.0], [np.nan]])])
    assert rows.whole
    assert sorted(rows.weights) == [1.0, 2.0, 2.0]


# -- kinds of start


@pytest.mark.parametrize("init", INITS)
def test_every_way_of_drawing_finds_three_clear_classes(init: str) -> None:
    x = blobs()
    model = sc.Mixture(3, init=init, kinds="normal", random_state=0, n_init=4).fit(x)
    truth = np.repeat([0, 1, 2], 60)
    assert len(set(zip(truth, model.predict(x), strict=True))) <= 5
    assert model.agreed_[1] == 4


@pytest.mark.parametrize("init", INITS)
def test_mixed_columns_with_holes_can_be_drawn_from(init: str) -> None:
    x = blobs(30)
    frame = pd.DataFrame({"x": x[:, 0], "colour": np.repeat(["red", "green", "blue"], 30), "y": x[:, 1]})
    frame.loc[::7, "x"] = np.nan
    frame.loc[::11, "colour"] = None
    model = sc.Mixture(3, init=init, random_state=0, n_init=3).fit(frame)
    assert np.isfinite(model.log_likelihood_)
    assert len(set(model.predict(frame))) == 3


def test_ward_joins_what_is_near() -> None:
    rows = sketch_rows([chunk_of(blobs(20))])
    clusters = link_rows(rows, 3, np.random.default_rng(0))
    assert sorted(np.bincount(clusters)) == [20, 20, 20]


def test_labels_are_a_start_only() -> None:
    x = blobs()
    labels = np.repeat([2, 0, 1], 60)
    labels[::10] = -1
    labels[1] = 0
    model = sc.Mixture(3, init=labels, kinds="normal").fit(x)
    assert (model.predict(x) == np.repeat([2, 0, 1], 60)).mean() > 0.98


def test_labels_are_memberships_of_one() -> None:
    x, labels = blobs(), np.repeat([2, 0, 1], 60)
    labels[::10] = -1
    members = np.where(labels[:, None] < 0, 1 / 3, np.eye(3)[labels])
    settings = {"kinds": "normal", "max_iter": 1, "tol": 0}
    by_labels, by_members = (sc.Mixture(3, init=start, **settings).fit(x) for start in (labels, members))
    np.testing.assert_array_equal(by_labels.predict_proba(x), by_members.predict_proba(x))


def test_labels_that_name_no_class_are_refused_with_their_row() -> None:
    labels = np.zeros(180)
    labels[4] = 3
    with pytest.raises(DataError, match="row 5 is labelled 3"):
        sc.Mixture(3, init=labels, kinds="normal").fit(blobs())
    with pytest.raises(DataError, match="one for each of 180 rows"):
        sc.Mixture(3, init=np.zeros(7), kinds="normal").fit(blobs())


def test_an_unknown_start_is_refused_and_the_known_ones_named() -> None:
    with pytest.raises(DataError, match="agglomerative"):
        sc.Mixture(2, init="kmeans").fit(blobs())


def test_copies_are_nudged_apart_and_said_to_be() -> None:
    x = blobs()
    alike = {"weights": [0.5, 0.5], 0: {"mean": [3.0, 3.0], "variance": [9.0, 9.0]}}
    alike[1] = {"mean": [3.0, 3.0], "variance": [9.0, 9.0]}
    model = sc.Mixture(2, init=alike, kinds="normal").fit(x)
    assert any("changed slightly" in note for note in model.notes_)
    assert abs(np.diff(model.params_[0]["mean"])).max() + abs(np.diff(model.params_[1]["mean"])).max() > 3
    again = sc.Mixture(2, init=alike, kinds="normal").fit(x)
    assert model.log_likelihood_ == again.log_likelihood_
    members = np.full((len(x), 2), 0.5)
    assert any("changed slightly" in note for note in sc.Mixture(2, init=members, kinds="normal").fit(x).notes_)


# -- classes known for some rows


@pytest.mark.parametrize("init", INITS)
def test_rows_of_known_class_keep_it_whatever_the_start(init: str) -> None:
    x = blobs()
    labels = np.full(180, -1)
    labels[[0, 1, 2]], labels[[60, 61]] = 1, 0
    plan = Plan(prior="row", named=["far", "near"], stop=Stop(accelerate=True))
    with Threads(1) as threads:
        fitted = Fitted.of(fit_groups(open_table(x, labels=labels), plan, Starts(3, init, 4, 0), threads))
        members = fitted.proba(fitted.table(x), threads)
    assert fitted.named == ["far", "near"]
    assert (members.argmax(axis=1) == np.repeat([1, 0, 2], 60)).mean() > 0.98


def test_more_known_classes_than_asked_for_are_refused() -> None:
    table = open_table(blobs(), labels=np.arange(180) % 3)
    with Threads(1) as threads, pytest.raises(DataError, match="3 classes are known, but only 2"):
        fit_groups(table, Plan(prior="row"), Starts(2), threads)


# -- control


def stop_after(calls: int) -> Any:
    """A watch that presses Ctrl-C after so many iterations of all starts together."""
    met = 0

    def watch(start: int, of: int, iteration: int, objective: float) -> None:
        nonlocal met
        met += 1
        if met == calls:
            raise KeyboardInterrupt

    return watch


@pytest.mark.parametrize("calls", [3, 12, 60])
def test_ctrl_c_keeps_the_best_so_far_and_says_so(calls: int) -> None:
    x = np.random.default_rng(4).normal(size=(300, 3))
    plan = Plan(prior="row", stop=Stop(accelerate=True, tol=1e-12), watch=stop_after(calls))
    with Threads(1) as threads, pytest.warns(DataWarning, match="interrupted"):
        fitted = fit_groups(open_table(x), plan, Starts(4, seed=0), threads)
    assert fitted.interrupted
    assert np.isfinite(fitted.log_likelihood)
    assert 1 <= fitted.agreed[0] <= fitted.agreed[1]
    assert any("interrupted" in note for note in fitted.notes)


def test_ctrl_c_before_anything_was_scored_goes_on() -> None:
    def pressed(*_: Any) -> None:
        raise KeyboardInterrupt

    with Threads(1) as threads, pytest.raises(KeyboardInterrupt):
        fit_groups(open_table(blobs()), Plan(prior="row"), Starts(2, init=pressed, seed=0), threads)


def test_the_watch_is_told_which_start_of_how_many() -> None:
    told: list[tuple[int, int, int, float]] = []
    plan = Plan(prior="row", watch=lambda *said: told.append(said))
    with Threads(1) as threads:
        fit_groups(open_table(blobs()), plan, Starts(3, n_init=4, seed=0), threads)
    assert {of for _, of, _, _ in told} == {4}
    assert {start for start, _, _, _ in told} == {1, 2, 3, 4}


@pytest.mark.parametrize("rows", [200, 3 * SKETCH_ROWS])
def test_one_seed_gives_the_same_bits_on_any_number_of_threads(rows: int) -> None:
    x = np.random.default_rng(5).normal(size=(rows, 2)) + np.arange(rows)[:, None] % 2 * 4
    found = [sc.Mixture(2, random_state=3, n_init=3, n_jobs=jobs).fit(x) for jobs in (1, 1, 2)]
    assert len({model.log_likelihood_ for model in found}) == 1
    assert len({model.params_[0]["mean"].tobytes() for model in found}) == 1
    assert all(model.trace_ == found[0].trace_ for model in found)


def test_a_prepared_table_serves_any_number_of_classes() -> None:
    x = blobs()
    plan = Plan(prior="row", stop=Stop(accelerate=True))
    with Threads(1) as threads:
        prepared = prepare(open_table(x), plan, threads)
        for groups in (1, 3, 2):
            shared = fit_prepared(prepared, plan, Starts(groups, seed=1, n_init=2), threads)
            alone = fit_groups(open_table(x), plan, Starts(groups, seed=1, n_init=2), threads)
            assert shared.log_likelihood == alone.log_likelihood
        three = fit_prepared(prepared, plan, Starts(3, seed=1), threads)
        extra = fit_prepared(prepared, plan, Starts(3, n_init=0), threads, [lambda star, imagined: three.estimates])
    assert extra.agreed == (1, 1)
    assert extra.log_likelihood == pytest.approx(three.log_likelihood, abs=1e-6)
