"""The number of classes, where nobody said: found in planted tables, not changed by what must not, never a spike."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import log
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import softcount as sc
from softcount.errors import DataError, DataWarning
from softcount.estimators.result_frames import arrow_of as arrow
from softcount.fitted.fitted import Fitted
from softcount.learn import choose, how_many
from softcount.learn.choose import FOLDS, ClassSearch, merge_classes, search_classes, split_classes
from softcount.learn.how_many import MOST_GROUPS, PATIENCE, grow
from softcount.learn.mixture import Starts
from softcount.learn.prepare import prepare
from softcount.learn.record import Plan, Stop, Trial
from softcount.models.declare import read_kinds
from softcount.run.local import Threads
from softcount.table import open_table
from softcount.table.chunk import Split

KINDS = {"size": "normal", "colour": "categorical", "visits": "poisson"}
ROWS = 90
MIDDLES = np.array([-6.0, 0.0, 7.0])


def planted(rows: int = ROWS, seed: int = 0, holes: float = 0.0) -> tuple[pd.DataFrame, np.ndarray]:
    """Three kinds of things, and which each row is."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, rows)
    colours = np.array(["red", "green", "blue"])
    frame = pd.DataFrame(
        {
            "size": rng.normal(MIDDLES[kind], 1.0),
            "colour": np.where(rng.random(rows) < 0.8, colours[kind], rng.choice(colours, rows)),
            "visits": rng.poisson(np.array([2.0, 9.0, 25.0])[kind]).astype(float),
        }
    )
    return frame.mask(rng.random(frame.shape) < holes), kind


def auto(frame: Any, kinds: Any = KINDS, criterion: str = "evidence", jobs: int = 1, **how: Any) -> Fitted:
    declared = read_kinds(kinds)
    settings = {name: how.pop(name) for name in ("prior", "estimate") if name in how}
    starts = Starts(1, how.pop("init", "k-means++"), n_init=1, seed=0)
    table = open_table(frame, kinds=declared.forced, **how)
    plan = Plan(declared=declared, stop=Stop(accelerate=True), **{"prior": "row", **settings})
    with Threads(jobs) as threads:
        return Fitted.of(search_classes(table, plan, starts, threads, criterion).chosen())


def by_kind(model: Fitted, frame: pd.DataFrame, kind: np.ndarray) -> np.ndarray:
    """(classes x kinds) how many rows of each kind each class has."""
    with Threads(1) as threads:
        found = model.proba(model.table(frame), threads).argmax(axis=1)
    return np.array([np.bincount(kind[found == g], minlength=3) for g in range(model.n_groups)])


# -- what is found


@pytest.fixture(scope="module")
def found() -> Fitted:
    return auto(planted()[0])


def test_three_planted_classes_are_found_in_a_mixed_table(found: Fitted) -> None:
    frame, kind = planted()
    assert found.n_groups == 3 and by_kind(found, frame, kind).max(axis=1).sum() == ROWS


@pytest.mark.parametrize("criterion", choose.CRITERIA)
def test_they_are_found_through_holes_by_every_criterion(criterion: str) -> None:
    frame, kind = planted(holes=0.1)
    model = auto(frame, criterion=criterion)
    assert model.n_groups == 3 and by_kind(model, frame, kind).max(axis=1).sum() >= 0.95 * ROWS


def test_noise_is_one_class() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.normal(size=120), "b": rng.choice(list("xyz"), 120), "c": rng.normal(size=120)})
    assert auto(frame, {"a": "normal", "b": "categorical", "c": "normal"}).n_groups == 1


def test_the_table_of_trials_says_what_the_formulas_say(found: Fitted) -> None:
    assert found.selection is not None
    for trial in found.selection:
        assert trial.n_parameters == trial.classes - 1 + trial.classes * (2 + 2 + 1)
        assert trial.bic == pytest.approx(trial.n_parameters * log(ROWS) - 2 * trial.log_likelihood, rel=1e-12)
        assert trial.icl >= trial.bic - 1e-9 and trial.cv is None
    chosen = next(trial for trial in found.selection if trial.classes == 3)
    assert chosen.log_likelihood == found.log_likelihood
    assert chosen.evidence == max(trial.evidence for trial in found.selection if trial.reached == trial.classes)


def test_the_estimator_has_the_table_in_arrow() -> None:
    frame, _ = planted()
    model = sc.Mixture(kinds=KINDS, random_state=0, n_init=1).fit(frame)
    assert model.weights_.shape == (3,)
    assert arrow(model.selection_).column_names == [
        "classes", "log_likelihood", "n_parameters", "bic", "mdl", "icl", "evidence", "cv", "reached",
    ]  # fmt: skip
    assert {1, 2, 3} <= set(arrow(model.selection_)["classes"].to_pylist())
    bits = model.selection_["mdl"].to_numpy()
    np.testing.assert_allclose(bits, model.selection_["bic"].to_numpy() / (2 * np.log(2)), rtol=1e-15)
    chosen = arrow(model.selection_)["classes"].to_pylist().index(model.n_components_)
    assert model.description_length(frame) == pytest.approx(bits[chosen], rel=1e-9)


def test_held_out_rows_of_one_class_are_scored_by_the_other_folds() -> None:
    words = list("aababbbaabacabacbbca" * 3)
    model = auto(pd.DataFrame({"w": words}), {"w": "categorical"}, "cv")
    assert model.selection is not None
    fold = Split(FOLDS, 0).of(SimpleNamespace(start=0, n_rows=len(words)))  # type: ignore[arg-type]
    total = 0.0
    for word, own in zip(words, fold, strict=True):
        others = [other for other, f in zip(words, fold, strict=True) if f != own]
        total += log((others.count(word) + 1 / 3) / (len(others) + 1))
    assert model.selection[0].cv == pytest.approx(total / len(words), rel=1e-10)


# -- what must not matter


def test_weight_two_is_the_row_twice() -> None:
    frame, _ = planted(60)
    heavy = auto(frame, weights=np.where(np.arange(60) < 20, 2.0, 1.0))
    twice = auto(pd.concat([frame.iloc[:20], frame], ignore_index=True))
    assert heavy.n_groups == twice.n_groups
    assert heavy.selection is not None and twice.selection is not None
    for left, right in zip(heavy.selection, twice.selection, strict=True):
        assert left.evidence == pytest.approx(right.evidence, abs=1e-3)
        assert left.bic == pytest.approx(right.bic, abs=1e-3)


def test_threads_do_not_change_a_bit(found: Fitted) -> None:
    other = auto(planted()[0], jobs=2)
    assert found.selection == other.selection
    assert np.array_equal(found.shares, other.shares)


def test_a_large_table_is_searched_by_a_sample_and_climbed_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "SMALL", 0)
    frame, kind = planted()
    model, other = auto(frame), auto(frame, jobs=2)
    assert model.selection == other.selection and np.array_equal(model.shares, other.shares)
    assert model.n_groups == 3 and by_kind(model, frame, kind).max(axis=1).sum() == ROWS


# -- what must not win


@pytest.mark.parametrize("criterion", ["evidence", "bic", "icl"])
def test_repeated_values_are_no_class_of_infinite_density(criterion: str) -> None:
    rng = np.random.default_rng(5)
    values = np.append(rng.normal(size=80), [0.25] * 5)
    model = auto(
        pd.DataFrame({"x": values, "y": rng.normal(size=85)}), {"x": "normal", "y": "normal"}, criterion, estimate="ml"
    )
    assert model.n_groups == 1


def test_an_outlier_has_no_class_of_its_own() -> None:
    values = np.append(np.random.default_rng(6).normal(size=60), 40.0)
    model = auto(pd.DataFrame({"x": values}), {"x": "normal"})
    assert model.counts["(groups)"].min() > 1.5


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_few_rows_are_an_answer_too(rows: int) -> None:
    model = auto(pd.DataFrame({"x": np.arange(float(rows)), "w": ["a"] * rows}), {"x": "normal", "w": "categorical"})
    assert model.n_groups == 1 and np.isfinite(model.selection[0].evidence)  # type: ignore[index]


def test_fifty_identical_rows_are_one_class() -> None:
    model = auto(pd.DataFrame({"x": [2.5] * 50, "w": ["a"] * 50}), {"x": "normal", "w": "categorical"})
    assert model.n_groups == 1 and [trial.classes for trial in model.selection or []] == [1]


# -- labels that are known


def test_there_are_at_least_as_many_classes_as_have_names() -> None:
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"x": rng.normal(size=60), "y": rng.normal(size=60)})
    names = [None] * 50 + ["ripe", "sour"] * 5
    model = sc.Mixture(random_state=0, n_init=1).fit(frame, names)
    assert arrow(model.selection_)["classes"][0].as_py() == 2 and len(model.weights_) >= 2


def test_named_classes_stay_first_when_others_are_found() -> None:
    frame, kind = planted()
    names = [("red" if k == 0 else "green") if i < 40 and k < 2 else None for i, k in enumerate(kind)]
    model = sc.Mixture(kinds=KINDS, random_state=0, n_init=1).fit(frame, names)
    found = model.predict_proba(frame).argmax(axis=1)
    assert len(model.weights_) == 3 and (found == np.array([1, 0, 2])[kind]).mean() > 0.98


# -- the way through the numbers


@given(st.integers(1, 40), st.integers(0, 60))
def test_numbers_grow_by_at_most_half(least: int, more: int) -> None:
    numbers = list(grow(least, least + more))
    assert numbers[0] == least and numbers[-1] == least + more and numbers == sorted(set(numbers))
    assert all(b - a <= max(1, a / 2) for a, b in pairwise(numbers))


class Foretold(ClassSearch):
    """A search of which it is known beforehand what every number of classes comes to."""

    merits: Mapping[int, float] = MappingProxyType({})

    def attempt(self, classes: int) -> None:
        assert classes not in self.trials
        merit = self.merits.get(classes, -1e6)
        self.trials[classes] = Trial(classes, merit, classes, 0.0, 0.0, merit, None, classes)


def foretold(merits: dict[int, float]) -> Foretold:
    rows: Any = SimpleNamespace(named=None, most_groups=50)
    nothing: Any = None
    found = Foretold(rows, nothing, nothing, nothing, criterion="evidence")
    found.merits = merits
    return found


@given(st.integers(1, 15), st.floats(0.1, 10))
def test_a_single_hill_is_climbed_to_its_top(top: int, slope: float) -> None:
    search = foretold({classes: -slope * abs(classes - top) for classes in range(1, MOST_GROUPS + 1)})
    search.run()
    assert search.best == top


@given(st.lists(st.floats(-1e6, 1e6), min_size=MOST_GROUPS, max_size=MOST_GROUPS))
def test_the_search_ends_and_the_best_tried_is_taken(merits: list[float]) -> None:
    search = foretold(dict(enumerate(merits, 1)))
    search.run()
    assert search.trials[search.best].evidence == max(trial.evidence for trial in search.trials.values())
    beyond = [tried for tried in search.trials if tried > search.best]
    assert len(beyond) >= PATIENCE or MOST_GROUPS in search.trials


def test_a_number_whose_classes_died_does_not_stand() -> None:
    dead = Trial(4, 0.0, 1, -10.0, -10.0, 10.0, None, 3)
    assert all(dead.merit(criterion) == -np.inf for criterion in choose.CRITERIA)
    assert Trial(1, 0.0, 1, 5.0, 5.0, 10.0, None, 0).merit("evidence") == 10.0


# -- neighbours


def neighbour(groups: int) -> tuple[Any, Fitted, Plan]:
    frame, _ = planted()
    plan = Plan(declared=read_kinds(KINDS), prior="row", stop=Stop(accelerate=True))
    with Threads(1) as threads:
        prepared = prepare(open_table(frame, kinds=plan.declared.forced), plan, threads)
        return prepared, choose.fit_prepared(prepared, plan, Starts(groups, n_init=4, seed=0), threads), plan


def means(params: Any) -> np.ndarray:
    return np.sort(params["size"]["mean"])


def test_the_class_that_is_two_is_split() -> None:
    prepared, two, _ = neighbour(2)
    _, three, _ = neighbour(3)
    with Threads(1) as threads:
        start = split_classes(prepared, two, 3, threads, seed=0)[0](three.model, three.imagined)
    np.testing.assert_allclose(means(start), means(three.estimates), atol=0.15 * np.ptp(means(three.estimates)))


def test_the_halves_of_one_class_are_made_one() -> None:
    _, four, _ = neighbour(4)
    _, three, _ = neighbour(3)
    start = merge_classes(four, 3)(three.model, three.imagined)
    np.testing.assert_allclose(means(start), means(three.estimates), atol=0.05 * np.ptp(means(three.estimates)))


# -- refusals and interruptions


def test_what_cannot_be_is_refused() -> None:
    frame, _ = planted(20)
    with pytest.raises(DataError, match=r"criterion='aic' is not known\. Use one of evidence, bic, icl, cv"):
        auto(frame, criterion="aic")
    with pytest.raises(DataError, match="fix the number of classes"):
        auto(frame, init=np.full((20, 2), 0.5))


class Pressed(ClassSearch):
    """A search in which somebody presses Ctrl-C once more classes than these are tried."""

    most = 2

    def attempt(self, classes: int) -> None:
        if classes > self.most:
            raise KeyboardInterrupt
        super().attempt(classes)


class PressedAtOnce(Pressed):
    most = 0


def test_ctrl_c_keeps_the_best_so_far() -> None:
    plan = Plan(declared=read_kinds(KINDS), stop=Stop(accelerate=True), prior="row")
    table = open_table(planted()[0], kinds=plan.declared.forced)
    with Threads(1) as threads:
        asked = prepare(table, plan, threads), plan, Starts(1, n_init=3, seed=0), threads
        search = Pressed(*asked)
        search.run()
        with pytest.warns(DataWarning, match="interrupted"):
            model = search.chosen()
        with pytest.raises(KeyboardInterrupt):
            PressedAtOnce(*asked).run()
    assert model.interrupted and model.n_groups == 2
    assert model.notes == ["interrupted: this is the best of the numbers of classes tried so far."]
    assert [trial.classes for trial in model.selection or []] == [1, 2]


def test_a_search_ends_where_another_is_farther_ahead_than_it_still_gains_and_goes_on_if_asked() -> None:
    ahead = foretold({1: -900.0, 2: -300.0, 3: -100.0})
    ahead.run(pause=2)
    behind = foretold({1: -800.0, 2: -400.0, 3: -250.0, 4: -190.0, 6: -170.0})
    behind.run(enough=lambda: ahead.far_ahead(behind))
    assert sorted(behind.trials) == [1, 2, 3, 4] and not behind.exhausted  # 90 behind, where the last gained 60
    behind.run()
    assert behind.best == 6 and behind.exhausted


def test_the_most_that_were_tried_are_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "MOST_GROUPS", 2)
    monkeypatch.setattr(how_many, "MOST_GROUPS", 2)
    model = auto(planted()[0])
    assert model.n_groups == 2 and any("the largest number tried, 2 classes" in note for note in model.notes)


@pytest.mark.parametrize(("worth", "classes", "said"), [(1.0, 2, False), (1 / 200, 1, True)])
def test_weights_that_sum_to_one_are_said_to_speak_for_one_row(worth: float, classes: int, said: bool) -> None:
    rng = np.random.default_rng(0)
    table = np.concatenate([rng.normal(0, 1, (100, 2)), rng.normal(8, 1, (100, 2))])
    found = sc.Mixture(n_init=2, random_state=0).fit(table, sample_weight=np.full(200, worth))
    assert found.n_components_ == classes
    assert any("sum to 1," in note for note in found.notes_) == said


class Disappointing(ClassSearch):
    """Three classes, the best of all numbers, turn out worse when they are climbed to their end."""

    def converge(self, fitted: Any, plan: Plan) -> Any:
        return replace(ClassSearch.converge(self, fitted, plan), interrupted=fitted.n_groups == 3)

    def measure(self, fitted: Any, classes: int, cv: float | None = None) -> Trial:
        trial = ClassSearch.measure(self, fitted, classes, cv)
        return replace(trial, evidence=trial.evidence - 1e3) if fitted.interrupted else trial


def test_what_is_climbed_to_its_end_is_weighed_again() -> None:
    plan = Plan(declared=read_kinds(KINDS), stop=Stop(accelerate=True), prior="row")
    table = open_table(planted()[0], kinds=plan.declared.forced)
    with Threads(1) as threads:
        search = Disappointing(prepare(table, plan, threads), plan, Starts(1, n_init=2, seed=0), threads)
        search.run()
        assert search.best == 3
        model = search.chosen()
    assert model.selection is not None
    best = max(model.selection, key=lambda trial: trial.merit("evidence"))
    assert model.n_groups == best.classes != 3
    assert best.log_likelihood == model.log_likelihood


def test_rows_held_out_by_their_counts_are_those_of_the_table_written_out():
    rng = np.random.default_rng(4)
    rows = pd.DataFrame({"a": rng.choice(list("xyz"), 40), "b": rng.choice(list("uvw"), 40)})
    times = rng.integers(1, 6, 40)
    short = sc.Mixture(criterion="cv", random_state=0, n_init=2).fit(rows, sample_weight=times.astype(float))
    long = sc.Mixture(criterion="cv", random_state=0, n_init=2).fit(rows.loc[rows.index.repeat(times)])
    for one, other in zip(arrow(short.selection_).to_pylist(), arrow(long.selection_).to_pylist(), strict=True):
        assert one["cv"] == pytest.approx(other["cv"], abs=1e-6)
