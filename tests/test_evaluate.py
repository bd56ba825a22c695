"""Figures on labelled rows: against scikit-learn's, and a lift table by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

import softcount as sc
from softcount.evaluate.ranking import Ranking, ScoredRows

ROWS = np.random.default_rng(3)
Y = ROWS.integers(0, 3, 200)
X = ROWS.normal(np.stack([Y, -Y, 0 * Y], axis=1), 1.5)
WEIGHTS = ROWS.integers(0, 4, 200).astype(float)


@pytest.fixture(scope="module")
def model() -> sc.NaiveBayes:
    return sc.NaiveBayes().fit(X[:100], Y[:100])


@pytest.mark.parametrize("weights", [None, WEIGHTS[100:]])
def test_figures_are_those_of_scikit_learn(model, weights):
    found = model.evaluate(X[100:], Y[100:], sample_weight=weights)
    y, proba, said = Y[100:], model.predict_proba(X[100:]), model.predict(X[100:])
    how = {"sample_weight": weights}
    assert found.accuracy == pytest.approx(metrics.accuracy_score(y, said, **how), rel=1e-13)
    assert found.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(y, said, **how), rel=1e-13)
    assert found.log_loss == pytest.approx(metrics.log_loss(y, proba, **how), rel=1e-12)
    np.testing.assert_allclose(found.confusion, metrics.confusion_matrix(y, said, **how))
    each = [metrics.roc_auc_score(y == k, proba[:, k], **how) for k in range(3)]
    assert found.auc == pytest.approx(np.mean(each), rel=1e-12)
    squares = ((proba - np.eye(3)[y]) ** 2).sum(axis=1)
    assert found.brier == pytest.approx(np.average(squares, weights=weights), rel=1e-12)
    assert found.n_rows == (100 if weights is None else int((weights > 0).sum()))


def test_the_baseline_says_the_shares_of_training(model):
    found = model.evaluate(X[100:], Y[100:])
    shares, y = model.class_prior_, Y[100:]
    assert found.baseline_accuracy == np.mean(y == shares.argmax())
    assert found.baseline_log_loss == pytest.approx(-np.log(shares[y]).mean(), rel=1e-13)
    assert found.baseline_brier == pytest.approx(((shares - np.eye(3)[y]) ** 2).sum(axis=1).mean(), rel=1e-13)


def test_rows_without_a_label_are_passed_over(model):
    some = [None if row % 3 == 0 else int(label) for row, label in enumerate(Y[100:])]
    kept = np.arange(100) % 3 != 0
    assert model.evaluate(X[100:], some) == model.evaluate(X[100:][kept], Y[100:][kept])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(1, 3)), min_size=2, max_size=30))
def test_the_area_under_the_curve_counts_pairs(rows):
    scores, hit, weights = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
    pairs = won = 0.0
    for i in range(len(rows)):
        for j in range(len(rows)):
            if hit[i] and not hit[j]:
                pairs += weights[i] * weights[j]
                won += weights[i] * weights[j] * (0.5 if scores[i] == scores[j] else float(scores[i] > scores[j]))
    found = Ranking.of(scores, hit, weights).auc
    assert np.isnan(found) if pairs == 0 else found == pytest.approx(won / pairs, rel=1e-12)


def test_a_lift_table_by_hand():
    # The five likeliest rows hold 3 of the 4 of the class; the two of score .5 share the one among them evenly.
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.5, 0.4, 0.3, 0.2, 0.1])
    hit = np.array([1, 1, 0, 0, 1, 0, 0, 1, 0, 0], dtype=float)
    lines = Ranking.of(scores, hit, np.ones(10)).lift(2)
    assert [line.of_class for line in lines] == [2.5, 1.5]
    assert [line.lift for line in lines] == pytest.approx([1.25, 0.75])
    assert [line.captured for line in lines] == pytest.approx([0.625, 1.0])
    assert [line.lift_so_far for line in lines] == pytest.approx([1.25, 1.0])
    ten = Ranking.of(scores, hit, np.ones(10)).lift(10)
    assert [line.of_class for line in ten] == pytest.approx([1, 1, 0, 0, 0.5, 0.5, 0, 1, 0, 0])
    assert ten[1].lift_so_far == pytest.approx(2.5) and ten[-1].captured == 1.0


def test_lift_is_of_the_rarer_class_unless_said(model):
    two = sc.NaiveBayes().fit(X, Y == 0)
    table = two.lift(X, Y == 0, parts=4)
    assert len(table) == 4 and sum(table["of_class"].tolist()) == pytest.approx((Y == 0).sum())
    assert table["lift"][0] > 1.3
    assert sum(model.lift(X, Y, of=2)["of_class"].tolist()) == pytest.approx((Y == 2).sum())
    with pytest.raises(sc.DataError, match=r"there are 3\. Name one"):
        model.lift(X, Y)
    with pytest.raises(sc.DataError, match="no class 7"):
        model.lift(X, Y, of=7)
    with pytest.raises(sc.DataError, match="no row with a label is of class 2"):
        model.lift(X[Y < 2], Y[Y < 2], of=2)


def test_thresholds_by_hand():
    proba = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    labels = np.array([0, 0, 1, 0, 1, 1])
    held = ScoredRows(np.stack([proba, 1 - proba], axis=1), labels, np.ones(6), np.zeros(6, dtype=int))
    ranking = held.ranking(0)
    # From .8 on 2 of 2 are right; from .6 on 3 of 4, which are all there are.
    assert [ranking.scores[ranking.threshold("precision", p)] for p in (1.0, 0.76, 0.75, 0.5)] == [0.8, 0.8, 0.6, 0.4]
    assert [ranking.scores[ranking.threshold("recall", r)] for r in (0.3, 0.6, 1.0)] == [0.9, 0.8, 0.6]


def test_labels_that_cannot_be_compared_are_refused(model):
    with pytest.raises(sc.DataError, match="row 2: class 5 is not one of the model's: 0, 1, 2"):
        model.evaluate(X[:2], [0, 5])
    with pytest.raises(sc.DataError, match="labels are text"):
        model.evaluate(X[:2], ["0", "1"])
    with pytest.raises(sc.DataError, match="no row has a label"):
        model.evaluate(X[:2], [None, None])
    with pytest.raises(sc.DataError, match="inconsistent numbers"):
        model.evaluate(X[:2], [0, 1, 2])
