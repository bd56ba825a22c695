"""Tables that leave a classifier little to go by: a clear line, or a clear refusal, and finite figures."""

import numpy as np
import pytest

import softcount as sc
from softcount.errors import DataError
from softcount.images import neighbourhood_accuracy

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
SIGN = np.where(X[:, 0] > 0, "up", "down")


@pytest.mark.parametrize("model", [sc.Classifier(), sc.NaiveBayes(weights="columns")], ids=["decides", "weighted"])
def test_a_class_that_most_folds_lack_is_said_and_does_no_harm(model):
    label = np.array(["often"] * 39 + ["once"])
    found = model.fit(X, label)
    assert "class 'once' has one row: its predictions cannot be checked on held-out rows." in found.notes_
    assert np.isfinite(found.predict_log_proba(X)).all()


@pytest.mark.parametrize("model", [sc.Classifier(), sc.NaiveBayes(weights="columns")], ids=["decides", "weighted"])
def test_a_column_that_most_folds_see_constant_does_no_harm(model):
    rare = np.column_stack([X[:, 1:], np.arange(40) == 7])
    found = model.fit(rare, SIGN)
    assert np.isfinite(found.predict_log_proba(rare)).all()


def test_fewer_rows_than_folds_get_the_textbooks_model_and_say_so():
    model = sc.Classifier().fit(X[:4], ["a", "b", "a", "b"])
    assert "standard naive Bayes alone: fewer than 10 rows have a label." in model.notes_[-1]
    assert np.isfinite(model.predict_proba(X)).all()


def test_classes_told_without_a_mistake_are_said_to_be_and_stay_finite():
    far = X + 50.0 * (SIGN == "up")[:, None]
    model = sc.Classifier().fit(far, SIGN)
    assert "Cross-validation made no errors, so probabilities on new data may be overconfident." in model.notes_
    logs = model.predict_log_proba(far)
    assert np.isfinite(logs).all() and (model.predict(far) == SIGN).all()


REFUSED = {
    "costs of another shape": (lambda: sc.NaiveBayes().fit(X, SIGN).predict(X, costs=np.zeros((3, 2))), r"\(3, 2\)"),
    "a grid of another size": (lambda: neighbourhood_accuracy(X, SIGN, shape=(2, 2)), "4 places, but there are 3"),
    "fewer rows than folds": (lambda: sc.compare(X[:4], SIGN[:4]), "4 rows with a class, fewer than 5 folds"),
    "a budget below nothing": (lambda: sc.Classifier(budget=-1).fit(X, SIGN), "budget must be 0 or more"),
    "a budget in words": (lambda: sc.Classifier(budget="soon").fit(X, SIGN), "0 or more or None, not 'soon'"),
    "no row that weighs": (lambda: sc.Classifier().fit(X, SIGN, sample_weight=np.zeros(40)), "all weights are zero"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_makes_no_sense_is_refused_in_a_sentence(what):
    work, said = REFUSED[what]
    with pytest.raises(DataError, match=said):
        work()
