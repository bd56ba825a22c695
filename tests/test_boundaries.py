"""The boundary between two classes as a quadratic, and the error nobody can do better than."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import softcount as sc

KINDS = {
    "free": None,
    "shared": sc.families.Normal(tied="classes"),
    "a block": {(0, 1): "multinormal"},
    "a shared block": {(0, 1): sc.families.Multinormal("tied")},
    "a spherical block": {(0, 1): sc.families.Multinormal("spherical")},
}


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("kinds", KINDS)
def test_the_quadratic_is_the_log_odds(kinds, offset):
    rng = np.random.default_rng(7)
    y = np.arange(30) % 3
    X = rng.normal(y[:, None], 1.0 + y[:, None], size=(30, 3)) + offset
    model = sc.NaiveBayes(kinds=KINDS[kinds]).fit(X, y)
    logs = model.predict_log_proba(X)
    form = model.to_quadratic(2, 0)
    assert form.classes == (2, 0) and sorted(form.columns) == [0, 1, 2]
    np.testing.assert_allclose(form(X[:, list(form.columns)]), logs[:, 2] - logs[:, 0], rtol=1e-9, atol=1e-8)
    if "shared" in kinds:
        own = [form.columns.index(column) for column in ((0, 1) if "block" in kinds else (0, 1, 2))]
        np.testing.assert_allclose(form.square[np.ix_(own, own)], 0.0, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 1e8]))
def test_at_the_roots_the_classes_are_equally_likely(seed, offset):
    rng = np.random.default_rng(seed)
    y = np.arange(12) % 2
    model = sc.NaiveBayes().fit(rng.normal(y, 1.0 + 2 * y)[:, None] + offset, y)
    form = model.to_quadratic()
    for root in form.roots:
        logs = model.predict_log_proba(np.array([[root]]))[0]
        assert logs[0] - logs[1] == pytest.approx(0.0, abs=1e-6)
    assert list(form.roots) == sorted(form.roots) and len(form.roots) <= 2
    wide = offset + np.linspace(-60, 60, 20_001)
    changes = int((np.diff(np.sign(form(wide))) != 0).sum())
    inside = [root for root in form.roots if wide[0] < root < wide[-1]]
    assert changes == len(inside)


def test_what_is_no_quadratic_is_refused():
    y = ["a", "b"] * 10
    frame = pd.DataFrame({"colour": ["red", "blue", "blue", "blue"] * 5, "size": np.arange(20.0)})
    model = sc.NaiveBayes(kinds={"size": "normal"}).fit(frame, y)
    with pytest.raises(sc.DataError, match=r"'colour'.*to_linear"):
        model.to_quadratic()
    sizes = sc.NaiveBayes(kinds="normal").fit(frame[["size"]], y)
    with pytest.raises(sc.DataError, match="no class 'c'"):
        sizes.to_quadratic("a", "c")
    logged = sc.NaiveBayes(kinds="lognormal").fit(frame[["size"]] + 1, y)
    with pytest.raises(sc.DataError, match="'size'"):
        logged.to_quadratic()
    three = sc.NaiveBayes(kinds="normal").fit(frame[["size"]], list("abcd") * 5)
    with pytest.raises(sc.DataError, match="which two of the 4"):
        three.to_quadratic()
    two = sc.NaiveBayes(kinds="normal").fit(frame.assign(more=frame["size"] ** 2)[["size", "more"]], y)
    with pytest.raises(sc.DataError, match="roots are of one column"):
        _ = two.to_quadratic().roots


# The error nobody can do better than


def test_the_best_error_of_two_normals_is_the_tail_beyond_the_middle():
    rng = np.random.default_rng(0)
    y = np.arange(200_000) % 2
    X = rng.normal(2.0 * y)[:, None]
    model = sc.NaiveBayes(kinds=sc.families.Normal(tied="classes")).fit(X, y)
    found = model.bayes_error(random_state=1)
    assert abs(found.error - norm.sf(1.0)) < 4 * found.standard_error + 0.002
    assert 0 < found.standard_error < 0.001 and found.rows == 100_000 and f"{found.error:.5f}" in str(found)


def test_the_error_of_a_model_tends_to_the_best_where_its_assumptions_hold():
    rng = np.random.default_rng(2)
    truth = sc.NaiveBayes().fit(rng.normal(np.outer(np.arange(60) % 3, [1.0, 0.5, 2.0]), 2.0), np.arange(60) % 3)
    rows = np.column_stack([truth.sample(60_000, random_state=3)[name] for name in "012"])
    labels = np.array(truth.sample(60_000, random_state=3)["(class)"])
    best = truth.bayes_error(random_state=4)
    excess = []
    for n in (12, 120, 12_000):
        model = sc.NaiveBayes().fit(rows[:n], labels[:n])
        excess.append(1.0 - model.score(rows[20_000:], labels[20_000:]) - best.error)
    assert excess[0] > excess[1] > excess[2]
    assert abs(excess[2]) < 4 * np.sqrt(best.error / 40_000) + 4 * best.standard_error


def test_every_way_to_hold_rows_has_a_best_error():
    rng = np.random.default_rng(5)
    y = np.arange(80) % 2
    frame = pd.DataFrame({"a": np.where(rng.random(80) < 0.3 + 0.4 * y, "x", "z"), "b": rng.normal(y)})
    counts = rng.poisson(1.0 + y[:, None], size=(80, 4))
    for model in (
        sc.NaiveBayes(calibration="isotonic").fit(frame, y),
        sc.BayesNet.tan(frame[["a"]], y),
        sc.NaiveBayes(kinds={"a": "ignore"}).fit(frame, y),
    ):
        assert 0.1 < model.bayes_error(2000, random_state=0).error < 0.5
    plain, calibrated = (sc.NaiveBayes(calibration=how).fit(frame, y) for how in (None, "temperature"))
    assert plain.bayes_error(2000, random_state=0) == calibrated.bayes_error(2000, random_state=0)
    assert sc.NaiveBayes(kinds="poisson").fit(counts, y).bayes_error(2000, random_state=0).error < 0.4
    with pytest.raises(sc.DataError, match="bins of discretised numbers"):
        sc.BayesNet.tan(frame, y).bayes_error(100)
    with pytest.raises(sc.DataError, match="whole number of at least 2"):
        plain.bayes_error(1)
    with pytest.raises(sc.DataError, match="learned without a class"):
        sc.BayesNet([("a", "b")], cut={"b": 2}).fit(frame).bayes_error()
