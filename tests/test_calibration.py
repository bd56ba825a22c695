"""Calibrated probabilities mean what they say, agree with scikit-learn's, and touch nothing else."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import PredefinedSplit, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import softcount as sc
from small_tables import KINDS, fruit, refused
from softcount.errors import ModelFileError
from softcount.estimators.result_frames import arrow_of as arrow
from softcount.evaluate import calibrate
from softcount.evaluate.calibrate import HeldOut, learn_calibration
from softcount.files import read, write
from softcount.fitted.calibration import (
    BINS,
    Bin,
    Calibration,
    Curve,
    bin_sums,
    bins_of,
    calibration_error,
    find_overstated,
    log_odds,
    soften_log_proba,
)
from softcount.table import Chunk
from softcount.table.chunk import Split

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")

METHODS = ["temperature", "isotonic"]
COPIES = 4
LOUD = {f"{name}{k}": kind for k in range(COPIES) for name, kind in KINDS.items()}
"""Columns said several times over: the model takes them for as many witnesses, and is too sure."""


def loud(rows: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    frame, y = fruit(rows, seed)
    return pd.concat([frame.add_suffix(str(k)) for k in range(COPIES)], axis=1), y


def three(rows: int = 500, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Three classes in noisy columns, two of which say the same."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    x = rng.normal(size=(rows, 2)) * 1.5 + np.array([[0, 0], [2, 0], [0, 2]])[y]
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "again": x[:, 0]}), np.array(["k", "l", "m"])[y]


NUMBERS = {"a": "normal", "b": "normal", "again": "normal"}
FRAME, Y = loud()
NAMES = ["two classes", "three classes"]
TABLES = {"two classes": (loud, LOUD), "three classes": (three, NUMBERS)}


def folds_of(rows: int) -> np.ndarray:
    nothing = np.zeros((rows, 0))
    return Split(5, 0).of(Chunk(0, rows, nothing, nothing.astype(np.uint8), nothing.astype(np.int32)))


def peer(name: str, method: str, **how) -> tuple[sc.NaiveBayes, CalibratedClassifierCV, pd.DataFrame]:
    """Ours and scikit-learn's calibration of the same model on the same folds, and other rows."""
    make, kinds = TABLES[name]
    frame, y = make()
    ours = sc.NaiveBayes(kinds=kinds, calibration=method, **how).fit(frame, y)
    cv = PredefinedSplit(folds_of(len(y)))
    theirs = CalibratedClassifierCV(sc.NaiveBayes(kinds=kinds, **how), method=method, cv=cv, ensemble=False)
    return ours, theirs.fit(frame, y), make(seed=1)[0]


# Against scikit-learn


@pytest.mark.skipif(sklearn.__version__ < "1.8", reason="scikit-learn has temperatures from 1.8 on")
@pytest.mark.parametrize("name", NAMES)
def test_the_temperature_is_scikit_learns(name):
    ours, theirs, fresh = peer(name, "temperature")
    inverse = float(theirs.calibrated_classifiers_[0].calibrators[0].beta_)
    assert ours.calibration_.temperature == pytest.approx(1 / inverse, rel=1e-3)
    np.testing.assert_allclose(ours.predict_proba(fresh), theirs.predict_proba(fresh), atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_isotonic_curves_are_near_scikit_learns(name):
    """Ours run between the same points in log-odds instead of probability, and stop a row short of 0 and 1."""
    ours, theirs, fresh = peer(name, "isotonic")
    apart = np.abs(ours.predict_proba(fresh) - theirs.predict_proba(fresh))
    assert apart.mean() < 0.005
    assert np.quantile(apart, 0.99) < 0.05


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_scikit_learn_can_calibrate_our_model_itself(method):
    wrapped = CalibratedClassifierCV(sc.NaiveBayes(kinds=LOUD), method=method, cv=3).fit(FRAME, Y)
    fresh, y = loud(seed=1)
    plain = sc.NaiveBayes(kinds=LOUD).fit(FRAME, Y)
    assert log_loss(y, wrapped.predict_proba(fresh)) < log_loss(y, plain.predict_proba(fresh))


# What it does


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_a_model_that_is_too_sure_is_made_honest_on_other_rows(name, method):
    make, kinds = TABLES[name]
    plain = sc.NaiveBayes(kinds=kinds).fit(*make())
    better = sc.NaiveBayes(kinds=kinds, calibration=method).fit(*make())
    fresh, y = make(seed=1)
    assert log_loss(y, better.predict_proba(fresh)) < log_loss(y, plain.predict_proba(fresh))
    found = better.calibration_
    assert found.method == method and found.rows == len(y)
    assert found.log_loss_after < found.log_loss_before
    assert calibration_error(found.after) < calibration_error(found.before)
    assert better.notes_ == plain.notes_


def test_a_temperature_changes_no_prediction_and_a_curve_predicts_what_it_says():
    plain = sc.NaiveBayes(kinds=NUMBERS).fit(*three())
    fresh, _ = three(seed=1)
    soft = sc.NaiveBayes(kinds=NUMBERS, calibration="temperature").fit(*three())
    assert soft.calibration_.temperature > 1.2
    np.testing.assert_array_equal(soft.predict(fresh), plain.predict(fresh))
    curved = sc.NaiveBayes(kinds=NUMBERS, calibration="isotonic").fit(*three())
    np.testing.assert_array_equal(curved.predict(fresh), curved.classes_[curved.predict_proba(fresh).argmax(axis=1)])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_probabilities_sum_to_one_and_their_logarithms_are_theirs(name, method):
    make, kinds = TABLES[name]
    model = sc.NaiveBayes(kinds=kinds, calibration=method).fit(*make())
    fresh, _ = make(seed=1)
    proba = model.predict_proba(fresh)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    assert (proba > 0).all()
    np.testing.assert_allclose(np.log(proba), model.predict_log_proba(fresh), atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_explanations_and_densities_stay_those_of_the_counts(method):
    plain = sc.NaiveBayes(kinds=LOUD).fit(FRAME, Y)
    model = sc.NaiveBayes(kinds=LOUD, calibration=method).fit(FRAME, Y)
    assert model.explain(FRAME[:20]).equals(plain.explain(FRAME[:20]))
    np.testing.assert_array_equal(model.score_samples(FRAME), plain.score_samples(FRAME))
    assert model.calibration_ is not None and plain.calibration_ is None


def test_only_a_calibrated_model_has_a_reliability_table():
    model = sc.NaiveBayes(kinds=LOUD, calibration="temperature").fit(FRAME, Y)
    table = arrow(model.reliability_)
    assert table.column_names == ["low", "high", "rows", "stated", "right"]
    assert sum(table["rows"].to_pylist()) == len(Y)
    assert not hasattr(sc.NaiveBayes(kinds=LOUD).fit(FRAME, Y), "reliability_")


def test_impossible_rows_are_still_refused():
    frame = pd.DataFrame({"colour": ["red"] * 20 + ["blue"] * 20, "shape": (["flat", "round"] * 20)})
    y = ["a"] * 20 + ["b"] * 20
    model = sc.NaiveBayes(calibration="temperature", estimate="ml", kinds={"colour": "categorical", "shape": "ignore"})
    model.fit(frame.assign(shape="flat"), y)
    odd = pd.DataFrame({"colour": ["red"], "shape": ["flat"]})
    assert model.predict(odd) == ["a"]
    assert np.isneginf(model.predict_log_proba(odd)[0, 1])


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("method", METHODS)
def test_any_number_of_threads_gives_the_same_bits(jobs, method):
    one, many = (sc.NaiveBayes(kinds=LOUD, calibration=method, n_jobs=n).fit(FRAME, Y) for n in (1, jobs))
    np.testing.assert_array_equal(one.predict_proba(FRAME), many.predict_proba(FRAME))


def test_a_column_named_as_the_target_gives_the_same():
    by_name = sc.NaiveBayes(kinds=LOUD, calibration="temperature").fit(FRAME.assign(state=Y[::1]), "state")
    apart = sc.NaiveBayes(kinds=LOUD, calibration="temperature").fit(FRAME, Y)
    assert by_name.calibration_.temperature == apart.calibration_.temperature


def test_it_is_a_setting_like_any_other():
    model = sc.NaiveBayes(kinds=LOUD, calibration="isotonic")
    assert clone(model).calibration == "isotonic"
    assert cross_val_score(model, FRAME, Y, cv=3, scoring="neg_log_loss").mean() > -0.7
    refused(lambda: sc.NaiveBayes(kinds=LOUD, calibration="platt").fit(FRAME, Y), "platt", "temperature")


def test_the_checks_of_scikit_learn_pass_but_those_that_repeat_rows():
    """A row is in a fold by its number, so a row that is there twice is in two folds, as in scikit-learn's own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(sc.NaiveBayes(calibration="temperature"), on_fail=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    assert all(name.startswith("check_sample_weight_equivalence") for name in failed), failed


# Rows seen later


def test_calibrating_on_rows_not_seen_is_a_call_too():
    model = sc.NaiveBayes(kinds=LOUD).fit(FRAME, Y)
    others, names = loud(seed=2)
    names = names.astype(object)
    names[3] = None
    assert model.calibrate(others, names) is model
    held = sc.NaiveBayes(kinds=LOUD, calibration="temperature").fit(FRAME, Y)
    assert model.calibration_.rows == 399
    assert model.calibration_.temperature == pytest.approx(held.calibration_.temperature, rel=0.3)
    by_name = sc.NaiveBayes(kinds=LOUD).fit(FRAME, Y).calibrate(others.assign(state=names), "state")
    assert by_name.calibration_.temperature == model.calibration_.temperature
    refused(lambda: model.calibrate(others, np.full(400, "rotten")), "rotten", "ripe")
    refused(lambda: model.calibrate(others, np.full(400, "ripe")), "two classes")
    refused(lambda: model.calibrate(others, names[:-1]), "399 labels")


def test_adding_and_taking_away_rows_drops_it_and_says_so():
    def fitted(rows=slice(None)):
        return sc.NaiveBayes(kinds=LOUD, calibration="temperature").fit(FRAME[rows], Y[rows])

    half, rest = slice(0, 200), slice(200, 400)
    plain = sc.NaiveBayes(kinds=LOUD).fit(FRAME, Y)
    for model in (
        fitted(half).merge(fitted(rest)),
        fitted(half).partial_fit(FRAME[rest], Y[rest]),
        sc.NaiveBayes(kinds=LOUD, calibration="isotonic").partial_fit(FRAME, Y),
    ):
        assert model.calibration_ is None
        assert sum("not calibrated" in note for note in model.notes_) == 1
        np.testing.assert_allclose(model.predict_proba(FRAME), plain.predict_proba(FRAME), atol=1e-9)
    less = fitted().forget(FRAME[rest], Y[rest])
    assert less.calibration_ is None and "calibrate(X, y)" in less.notes_[-1]
    again = less.calibrate(FRAME[rest], Y[rest])
    assert again.calibration_ is not None and not any("calibrated" in note for note in again.notes_)


# Too little to go by


def test_too_little_to_go_by_leaves_the_model_as_it_is_and_is_said():
    one = sc.NaiveBayes(kinds=LOUD, calibration="temperature").fit(FRAME, np.full(400, "ripe"))
    assert one.calibration_ is None and any("only one class" in note for note in one.notes_)
    few = sc.NaiveBayes(kinds=LOUD, calibration="isotonic").fit(FRAME[:1], Y[:1])
    assert few.calibration_ is None


def test_rows_without_a_label_are_not_held_out():
    gaps = Y.astype(object)
    gaps[::4] = None
    model = sc.NaiveBayes(kinds=LOUD, calibration="temperature", unlabelled_weight=0.1).fit(FRAME, gaps)
    assert model.calibration_.rows == 300
    assert not any("calibrated" in note for note in model.notes_)
    out = sc.NaiveBayes(kinds=LOUD, calibration="temperature", unlabelled_weight=0.0).fit(FRAME, gaps)
    assert out.calibration_.rows == 300 and not any("labelled rows alone" in note for note in out.notes_)


def test_of_a_long_table_a_random_part_is_enough(monkeypatch):
    monkeypatch.setattr(calibrate, "MOST_CELLS", 1000)
    frame, y = loud(2000)
    model = sc.NaiveBayes(kinds=LOUD, calibration="temperature").fit(frame, y)
    assert 400 < model.calibration_.rows < 600
    assert any("random part" in note for note in model.notes_)
    whole = sc.NaiveBayes(kinds=LOUD).fit(frame, y)
    assert model.calibration_.temperature > 1.5
    np.testing.assert_array_equal(model.counts_["size0"], whole.counts_["size0"])


def test_rows_that_are_all_right_do_not_make_it_certain():
    x = np.concatenate([np.zeros(60), np.full(60, 9.0)]) + np.random.default_rng(0).normal(size=120)
    model = sc.NaiveBayes(calibration="temperature").fit(x[:, None], np.repeat(["a", "b"], 60))
    assert model.calibration_.temperature == 1.0
    assert any("the temperature stays 1" in note and "no temperature above" in note for note in model.notes_)
    assert model.calibration_.log_loss_after == pytest.approx(model.calibration_.log_loss_before)


def sure(odds: float, rows: int = 200, wrong: int = 0) -> HeldOut:
    """Rows told apart with these odds, all of them rightly but for the first few."""
    labels = np.arange(rows, dtype=np.int32) % 2
    logs = np.log(np.where(np.eye(2, dtype=bool)[labels], odds, 1.0) / (1.0 + odds)).astype(np.float32)
    labels[:wrong] = 1 - labels[:wrong]
    return HeldOut(logs, labels, np.ones(rows), (np.arange(rows) // 2 % 5).astype(np.int8))


@pytest.mark.parametrize("odds", [1.0, 1.5, 1e3, 1e30])
def test_rows_that_are_all_right_leave_odds_what_they_are(odds):
    """Odds of 1.5 would be 1.5 ** 20 = 3,325 at a temperature of 0.05."""
    found = learn_calibration(sure(odds), "temperature")
    assert found.temperature == 1.0
    np.testing.assert_allclose(found.proba(np.log([[0.6, 0.4]])), [[0.6, 0.4]])


@pytest.mark.parametrize("wrong", [5, 20, 60])
def test_a_modest_model_is_made_surer_as_far_as_rows_that_are_wrong_allow(wrong):
    """Rows of one margin: at the best temperature its odds are those of being right."""
    found = learn_calibration(sure(1.5, wrong=wrong), "temperature")
    right = (200 - wrong) / 200
    assert found.proba(np.log([[0.6, 0.4]]))[0, 0] == pytest.approx(right, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.floats(1.01, 1e4), st.integers(4, 400))
def test_no_curve_is_surer_than_one_row_in_all_of_them_and_one_more(odds, rows):
    found = learn_calibration(sure(odds, rows), "isotonic")
    told = found.proba(np.log([[odds, 1.0], [1.0, odds], [1.0, 1e-300]]))
    assert told.max() <= (rows + 1) / (rows + 2) + 1e-12


def test_calibrating_on_rows_that_are_all_right_says_so_until_it_is_done_again():
    frame, y = pd.DataFrame({"x": [0.0, 0.1, 5.0, 5.1] * 10}), ["a", "a", "b", "b"] * 10
    model = sc.NaiveBayes(kinds={"x": "normal"}).fit(frame, y).calibrate(frame, y)
    assert [note for note in model.notes_ if "stays 1" in note] and model.calibration_.temperature == 1.0
    model.calibrate(frame, y)
    assert sum("stays 1" in note for note in model.notes_) == 1
    model.calibrate(frame, ["b", "a", "b", "b"] * 10)
    assert model.calibration_.temperature > 1 and not any("stays 1" in note for note in model.notes_)


# Saved models


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_a_saved_model_is_calibrated_the_same(name, method, tmp_path):
    make, kinds = TABLES[name]
    model = sc.NaiveBayes(kinds=kinds, calibration=method).fit(*make())
    model.save(tmp_path / "m.sc")
    back = sc.load(tmp_path / "m.sc")
    fresh, _ = make(seed=1)
    np.testing.assert_array_equal(back.predict_proba(fresh), model.predict_proba(fresh))
    assert arrow(back.reliability_).equals(arrow(model.reliability_)) and back.calibration == method
    assert back.calibration_.log_loss_after == model.calibration_.log_loss_after


def point_array(document, part):
    """The name of the array of odds or shares of the first curve."""
    return document["scorer"]["calibration"]["curves"][0][part]["array"]


def curve(make, part="share"):
    def change(document, stored):
        name = point_array(document, part)
        stored[name] = make(stored[name])

    return change


def odds(make):
    return curve(make, "odds")


def said(**what):
    return lambda document, stored: document["scorer"]["calibration"].update(what)


SPOILT = {
    "a falling curve": curve(lambda share: share[::-1].copy()),
    "a share of one": curve(lambda share: np.ones_like(share)),
    "a share that is not a number": curve(lambda share: np.full_like(share, np.nan)),
    "fewer shares than points": curve(lambda share: share[1:].copy()),
    "points in no order": odds(lambda at: at[::-1].copy()),
    "an infinite point": odds(lambda at: np.concatenate([at[:-1], [np.inf]])),
    "whole numbers": odds(lambda at: np.arange(len(at))),
    "no such method": said(method="platt"),
    "a temperature beside curves": said(temperature=2.0),
    "a curve too few": said(curves=[]),
    "a curve too many": lambda document, stored: document["scorer"]["calibration"]["curves"].extend(
        document["scorer"]["calibration"]["curves"]
    ),
    "curves that are not there": said(curves=[{"odds": {"array": "x"}, "share": {"array": "y"}}]),
    "no rows": said(rows=0),
    "a log-loss below zero": said(log_loss_before=-1.0),
    "no log-loss": said(log_loss_after=None),
    "a log-loss that is infinite": said(log_loss_after={"float": "inf"}),
    "a bin of nothing": said(after=[{"low": 0, "high": 1, "rows": 0, "stated": 0.5, "right": 0.5}]),
    "a share beyond one": said(after=[{"low": 0, "high": 1, "rows": 3, "stated": 0.5, "right": 1.5}]),
    "a bin that is none": said(before=[{"low": 0}]),
    "words": said(method=["isotonic"]),
    "nothing known": lambda document, stored: document.update(calibration={}),
    "a list": lambda document, stored: document.update(calibration=[1, 2]),
    "arrays gone": lambda document, stored: stored.pop(point_array(document, "odds")),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "m.sc"
    sc.NaiveBayes(kinds=LOUD, calibration="isotonic").fit(FRAME, Y).save(path)
    return path


@pytest.mark.parametrize("name", SPOILT)
def test_a_calibration_that_makes_no_sense_is_refused(name, sound, tmp_path):
    document, stored = read(sound)
    SPOILT[name](document, stored)
    write(tmp_path / "spoilt.sc", document, stored)
    with pytest.raises(ModelFileError, match=r"spoilt\.sc"):
        sc.load(tmp_path / "spoilt.sc")


@pytest.mark.parametrize("degrees", [0, -2.0, "hot", None, True])
def test_a_temperature_that_is_none_is_refused(degrees, tmp_path):
    sc.NaiveBayes(kinds=LOUD, calibration="temperature").fit(FRAME, Y).save(tmp_path / "m.sc")
    document, stored = read(tmp_path / "m.sc")
    document["scorer"]["calibration"]["temperature"] = degrees
    write(tmp_path / "spoilt.sc", document, stored)
    with pytest.raises(ModelFileError, match="calibration"):
        sc.load(tmp_path / "spoilt.sc")


def test_a_file_without_a_calibration_is_of_a_model_without(tmp_path):
    sc.NaiveBayes(kinds=LOUD).fit(FRAME, Y).save(tmp_path / "m.sc")
    assert "scorer" not in read(tmp_path / "m.sc")[0]
    assert sc.load(tmp_path / "m.sc").calibration_ is None


# The arithmetic

JOINTS = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(2, 5)), elements=st.floats(-900, 50))


@settings(max_examples=60)
@given(JOINTS)
def test_log_odds_are_those_of_each_group_against_the_others(joint):
    found = log_odds(joint)
    for row, line in zip(joint, found, strict=True):
        for k, value in enumerate(line):
            others = [x for j, x in enumerate(row) if j != k]
            rest = max(others) + math.log(math.fsum(math.exp(x - max(others)) for x in others))
            assert value == pytest.approx(row[k] - rest, rel=1e-9, abs=1e-9)


def test_log_odds_of_what_is_impossible_are_infinite():
    assert log_odds(np.array([[0.0, -np.inf, -np.inf]])).tolist() == [[np.inf, -np.inf, -np.inf]]


@settings(max_examples=60)
@given(JOINTS, st.floats(0.05, 1000))
def test_a_temperature_keeps_the_order_of_the_groups(joint, temperature):
    soft = np.exp(soften_log_proba(joint, temperature))
    np.testing.assert_allclose(soft.sum(axis=1), 1.0, atol=1e-12)
    leading = joint[np.arange(len(joint)), soft.argmax(axis=1)]
    assert (leading >= joint.max(axis=1) - 1e-12 * temperature).all()


@settings(max_examples=40)
@given(st.data())
def test_bins_hold_what_a_loop_over_rows_would_put_there(data):
    rows = data.draw(st.integers(1, 30))
    stated = np.array(data.draw(st.lists(st.floats(0.01, 1.0), min_size=rows, max_size=rows)))
    right = np.array(data.draw(st.lists(st.booleans(), min_size=rows, max_size=rows)), dtype=float)
    weights = np.array(data.draw(st.lists(st.integers(1, 4), min_size=rows, max_size=rows)), dtype=float)
    found = bins_of(bin_sums(stated, right, weights))
    kept = []
    for k in range(BINS):
        inside = [i for i in range(rows) if min(int(stated[i] * BINS), BINS - 1) == k]
        mass = sum(weights[i] for i in inside)
        if inside:
            kept.append((k / BINS, mass, sum(weights[i] * stated[i] for i in inside) / mass,
                         sum(weights[i] * right[i] for i in inside) / mass))  # fmt: skip
    assert [b.low for b in found] == [low for low, *_ in kept]
    np.testing.assert_allclose([(b.rows, b.stated, b.right) for b in found], [part[1:] for part in kept])
    error = sum(mass * abs(s - r) for _, mass, s, r in kept) / weights.sum()
    assert calibration_error(found) == pytest.approx(error)


def test_overstated_needs_more_than_chance():
    assert find_overstated((Bin(0.9, 1.0, 1000.0, 0.99, 0.88),)) is not None
    assert find_overstated((Bin(0.9, 1.0, 1000.0, 0.99, 0.98),)) is None  # one point
    assert find_overstated((Bin(0.5, 0.6, 20.0, 0.55, 0.45),)) is None  # could be chance
    assert find_overstated((Bin(0.5, 0.6, 500.0, 0.55, 0.75),)) is None  # too modest
    worst = Bin(0.9, 1.0, 900.0, 0.99, 0.85)
    assert find_overstated((Bin(0.5, 0.6, 100.0, 0.55, 0.3), worst)) is worst


def held_rows(rows: int = 200, classes: int = 3, seed: int = 0) -> HeldOut:
    rng = np.random.default_rng(seed)
    joint = rng.normal(size=(rows, classes)) * 4
    labels = (joint + rng.gumbel(size=joint.shape) * 3).argmax(axis=1).astype(np.int32)
    logs = soften_log_proba(joint, 1.0).astype(np.float32)
    return HeldOut(logs, labels, np.ones(rows), (np.arange(rows) % 5).astype(np.int8))


@pytest.mark.parametrize("method", METHODS)
def test_weight_two_is_the_row_twice(method):
    once = held_rows()
    heavy = HeldOut(once.logs, once.labels, np.full(200, 2.0), once.folds)
    double = once.take(np.repeat(np.arange(200), 2))
    first, second = learn_calibration(heavy, method), learn_calibration(double, method)
    assert first.log_loss_after == pytest.approx(second.log_loss_after, abs=1e-6)
    joint = held_rows(seed=1).logs.astype(float)
    np.testing.assert_allclose(first.proba(joint), second.proba(joint), atol=1e-5)


def test_the_temperature_that_made_the_labels_is_found():
    found = learn_calibration(held_rows(20_000), "temperature")
    assert found.temperature == pytest.approx(3.0, rel=0.05)


def test_figures_after_are_of_rows_the_correction_had_not_seen():
    """Labels at random: curves that had seen the rows would claim to gain by them."""
    rows = held_rows(300)
    random = HeldOut(rows.logs, np.random.default_rng(3).integers(0, 3, 300).astype(np.int32), rows.weights, rows.folds)
    assert learn_calibration(random, "isotonic").log_loss_after > math.log(3) - 0.02


def test_a_class_absent_from_the_other_folds_costs_what_it_must():
    rows = held_rows(100)
    logs = rows.logs.copy()
    logs[0, rows.labels[0]] = -np.inf
    found = learn_calibration(HeldOut(logs, rows.labels, rows.weights, rows.folds), "temperature")
    assert math.isfinite(found.log_loss_after) and 0.05 < found.temperature < 100


def test_curves_of_two_classes_are_one():
    line = Curve(np.array([-1.0, 1.0]), np.array([0.2, 0.8]))
    one = Calibration("isotonic", 10, 1.0, 1.0, (), (), curves=(line,))
    proba = one.proba(np.log([[0.5, 0.5], [0.99, 0.01], [1.0, 1e-300]]))
    np.testing.assert_allclose(proba, [[0.5, 0.5], [0.8, 0.2], [0.8, 0.2]])


# Real messages


def test_messages_are_stated_too_surely_and_corrected(data):
    lines = data("sms_spam/SMSSpamCollection").read_text(encoding="utf-8").splitlines()
    names, notes = zip(*(line.split("\t", 1) for line in lines), strict=True)
    frame = pd.DataFrame({"note": notes})
    model = sc.NaiveBayes(kinds={"note": "text"}, calibration="temperature").fit(frame, list(names))
    found = model.calibration_
    assert found.temperature > 1.5
    assert found.log_loss_after < 0.8 * found.log_loss_before
