"""What mistakes cost, classes as frequent as they will be, thresholds: every figure by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import norm

import softcount as sc
from softcount.fitted.decisions import Decision, apply_class_prior, estimate_shares, read_shares

# Ten apples, of which 6 are red; ten plums, of which 1 is red.
COLOUR = np.array([["red"]] * 6 + [["green"]] * 4 + [["red"]] * 1 + [["green"]] * 9)
FRUIT = ["apple"] * 10 + ["plum"] * 10
NEW = np.array([["red"], ["green"]])


@pytest.fixture(scope="module")
def fruit() -> sc.NaiveBayes:
    return sc.NaiveBayes(estimate="ml").fit(COLOUR, FRUIT)


def test_shares_of_use_replace_those_of_training(fruit):
    np.testing.assert_allclose(fruit.predict_proba(NEW), [[6 / 7, 1 / 7], [4 / 13, 9 / 13]], rtol=1e-14)
    # One apple in ten: red is .6 * .1 against .1 * .9.
    np.testing.assert_allclose(fruit.predict_proba(NEW, class_prior={"apple": 0.1})[0], [6 / 15, 9 / 15], rtol=1e-13)
    np.testing.assert_allclose(fruit.predict_proba(NEW, class_prior=[0.1, 0.9])[1], [4 / 85, 81 / 85], rtol=1e-13)
    assert fruit.predict(NEW, class_prior={"apple": 0.1}).tolist() == ["plum", "plum"]
    np.testing.assert_allclose(
        np.exp(fruit.predict_log_proba(NEW, class_prior=[0.1, 0.9])),
        fruit.predict_proba(NEW, class_prior=[0.1, 0.9]),
        rtol=1e-14,
    )


def test_shares_given_at_the_fit_and_at_prediction_say_the_same():
    asked = sc.NaiveBayes(class_prior=[0.3, 0.7]).fit(COLOUR, FRUIT)
    plain = sc.NaiveBayes().fit(COLOUR, FRUIT)
    np.testing.assert_allclose(asked.predict_proba(NEW), plain.predict_proba(NEW, class_prior=[0.3, 0.7]), rtol=1e-13)
    np.testing.assert_allclose(asked.predict_proba(NEW, class_prior="uniform"), plain.predict_proba(NEW), rtol=1e-13)


def test_the_cheapest_class_is_decided_for(fruit):
    # A red one is a plum with 1/7: calling it an apple costs c/7, calling it a plum 6/7.
    for cost, class_ in ((5.9, "apple"), (6.1, "plum")):
        costs = {("plum", "apple"): cost, ("apple", "plum"): 1}
        assert fruit.predict(NEW, costs=costs).tolist() == [class_, "plum"]
        assert fruit.predict(NEW, costs={"plum": {"apple": cost}}).tolist() == [class_, "plum"]
        assert fruit.predict(NEW, costs=[[0, 1], [cost, 0]]).tolist() == [class_, "plum"]
    # Costs and shares together: at one apple in ten a red one is an apple with 6/15.
    assert fruit.predict(NEW, costs=[[0, 1.49], [1, 0]], class_prior=[0.1, 0.9]).tolist() == ["plum", "plum"]
    assert fruit.predict(NEW, costs=[[0, 1.51], [1, 0]], class_prior=[0.1, 0.9]).tolist() == ["apple", "plum"]


def test_a_threshold_calls_by_one_class_from_a_probability_on(fruit):
    assert fruit.predict(NEW, threshold={"apple": 0.3}).tolist() == ["apple", "apple"]
    assert fruit.predict(NEW, threshold={"plum": 0.1}).tolist() == ["plum", "plum"]
    assert fruit.predict(NEW, threshold={"apple": 0.9}).tolist() == ["plum", "plum"]


def test_a_removed_parameter_names_its_replacement():
    with pytest.raises(sc.DataError, match=r"Use BayesNet\.tan\(X, y\)"):
        sc.NaiveBayes(dependence="tan")


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5), st.integers(0, 10_000))
def test_deciding_is_the_row_by_row_loop(classes, seed):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(classes, 0.5), size=7)
    costs = rng.integers(-2, 9, size=(classes, classes)).astype(float)
    found = Decision.of(range(classes), costs)(proba)
    for row, decided in zip(proba, found, strict=True):
        each = [sum(row[t] * costs[t, d] for t in range(classes)) for d in range(classes)]
        assert each[decided] <= min(each) + 1e-12
    usual = Decision.of(range(classes), 1.0 - np.eye(classes))(proba)
    assert (proba[np.arange(7), usual] >= proba.max(axis=1) - 1e-15).all()
    place, at = int(rng.integers(classes)), float(rng.random())
    for row, decided in zip(proba, Decision.of(range(classes), threshold={place: at})(proba), strict=True):
        rest = [row[k] for k in range(classes) if k != place]
        assert decided == place if row[place] >= at or classes == 1 else row[decided] == max(rest)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 5), st.integers(0, 10_000))
def test_shares_there_and_back_again_change_nothing(classes, seed):
    rng = np.random.default_rng(seed)
    was, now = rng.dirichlet(np.ones(classes), size=2)
    logs = np.log(rng.dirichlet(np.ones(classes), size=4))
    names = list(range(classes))
    moved = apply_class_prior(logs, now, names, was)
    np.testing.assert_allclose(np.exp(moved).sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(apply_class_prior(moved, was, names, now), logs, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(apply_class_prior(logs, was, names, was), logs, rtol=1e-12, atol=1e-13)


# Shares estimated from rows without a label


def test_estimated_shares_are_where_the_likelihood_and_the_imagined_row_peak():
    rng = np.random.default_rng(0)
    proba = rng.beta(0.5, 1.5, 40)
    logs, was = np.log(np.stack([proba, 1 - proba], axis=1)), np.array([0.4, 0.6])

    def misfit(share: float) -> float:
        now = np.array([share, 1 - share])
        return -np.log(np.exp(logs) @ (now / was)).sum() - was @ np.log(now)

    best = minimize_scalar(misfit, bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-10}).x
    np.testing.assert_allclose(estimate_shares(logs, was)[0], best, atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 5), st.integers(1, 60), st.floats(0.2, 3.0), st.integers(0, 10_000))
def test_estimated_shares_are_where_plain_steps_end(classes, rows, sure, seed):
    rng = np.random.default_rng(seed)
    was, proba = rng.dirichlet(np.ones(classes)) + 0.01, rng.dirichlet(np.full(classes, 1.0 / sure), size=rows) + 1e-9
    was, proba = was / was.sum(), proba / proba.sum(axis=1, keepdims=True)
    plain = was
    for _ in range(1500):
        posterior = proba / was * plain
        plain = ((posterior / posterior.sum(axis=1, keepdims=True)).sum(axis=0) + was) / (rows + 1)
    np.testing.assert_allclose(estimate_shares(np.log(proba), was), plain, atol=1e-6)


def test_shares_of_other_rows_are_found_and_put_right():
    rng = np.random.default_rng(1)
    train, use = rng.random(4000) < 0.5, rng.random(20_000) < 0.1
    rows = {"train": rng.normal(2.0 * train)[:, None], "use": rng.normal(2.0 * use)[:, None]}
    model = sc.NaiveBayes().fit(rows["train"], train)
    assert model.estimate_class_prior(rows["use"])[True] == pytest.approx(0.1, abs=0.02)
    plain, better = (np.mean(model.predict(rows["use"], class_prior=shares) == use) for shares in (None, "estimate"))
    # The best rule there is calls a row where .1 n(x - 2) > .9 n(x), from 1 + log(9) / 2 on.
    cut = 1.0 + np.log(9.0) / 2
    best = 0.9 * norm.cdf(cut) + 0.1 * norm.sf(cut - 2)
    assert plain < 0.86 and better == pytest.approx(best, abs=0.006)
    np.testing.assert_allclose(
        model.predict_proba(rows["use"], class_prior="estimate"),
        model.predict_proba(rows["use"], class_prior=model.estimate_class_prior(rows["use"])),
        rtol=1e-6,
    )


def test_one_row_alone_does_not_decide_for_all():
    shares = estimate_shares(np.log([[0.6, 0.4]]), np.array([0.5, 0.5]))
    assert 0.5 < shares[0] < 0.75


def test_a_classifier_that_decides_for_itself_decides_by_costs_too():
    X, y = overlapping(200)
    model = sc.Classifier().fit(X, y)
    proba = model.predict_proba(X)
    moved = proba / model.class_prior_ * [0.5, 0.5]
    np.testing.assert_allclose(
        model.predict_proba(X, class_prior="uniform"), moved / moved.sum(axis=1, keepdims=True), rtol=1e-9
    )
    said = model.predict(X, costs={("ill", "well"): 4})
    np.testing.assert_array_equal(said == "ill", 4 * proba[:, 0] > proba[:, 1])
    assert model.evaluate(X, y).accuracy == model.score(X, y)
    if model.ensemble_ is not None:
        with pytest.raises(sc.DataError, match="needs naive Bayes"):
            model.to_quadratic()


# Thresholds chosen on rows held out


def overlapping(rows: int = 600) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    ill = rng.random(rows) < 0.2
    return rng.normal(np.outer(ill, [1.5, 0.5])), np.where(ill, "ill", "well")


@pytest.mark.parametrize(("rate", "wanted"), [("precision", 0.8), ("recall", 0.9)])
def test_a_threshold_gives_the_wanted_rate_on_rows_held_out(rate, wanted):
    X, y = overlapping()
    model = sc.NaiveBayes().fit(X, y)
    found = model.choose_threshold(X, y, "ill", **{rate: wanted})
    assert getattr(found, rate) >= wanted - 1e-12 and found.rows == 600
    assert getattr(found, f"checked_{rate}") == pytest.approx(wanted, abs=0.08)
    called = model.predict(X, threshold=found) == "ill"
    assert called.mean() == pytest.approx(found.called, abs=0.02)
    assert f"{rate} {wanted:g}" in str(found) and f"{found.recall:.3f}" in str(found)


def test_the_fold_models_of_a_threshold_have_not_seen_its_rows():
    X, y = overlapping(60)
    held, names = sc.NaiveBayes()._hold_out(X, y, 3, None)
    for fold in range(3):
        inside = held.folds == fold
        other = sc.NaiveBayes().fit(X[~inside], y[~inside])
        np.testing.assert_allclose(held.proba[inside], other.predict_proba(X[inside]), rtol=1e-10)
    assert names == ["ill", "well"] and np.bincount(held.folds[held.labels == 0]).max() <= 1 + (y == "ill").sum() // 3


def test_the_target_may_be_a_column_of_the_table(tmp_path):
    X, y = overlapping(90)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "state": y})
    model = sc.NaiveBayes().fit(frame, "state")
    by_name = model.choose_threshold(frame, "state", "ill", recall=0.8)
    assert by_name == model.choose_threshold(frame[["a", "b"]], y, "ill", recall=0.8)
    assert model.evaluate(frame, "state") == model.evaluate(frame[["a", "b"]], y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    from_file = model.evaluate(str(tmp_path / "rows.csv"), "state")
    assert from_file.log_loss == pytest.approx(model.evaluate(frame, "state").log_loss, rel=1e-12)
    from_file = model.choose_threshold(str(tmp_path / "rows.csv"), "state", "ill", recall=0.8)
    assert from_file.value == pytest.approx(by_name.value, rel=1e-9)


# What makes no sense is refused in a line

BAD = {
    "costs of another shape": ({"costs": [[0, 1, 2]]}, r"shape \(1, 3\), but there are 2 classes"),
    "costs that are one number": ({"costs": 3}, r"shape \(\), but there are 2"),
    "costs that are NaN": ({"costs": [[0, np.nan], [1, 0]]}, "deciding for 'plum' where 'apple' is true"),
    "costs of words": ({"costs": [["a", "b"], ["c", "d"]]}, "costs must be numbers"),
    "costs of a class unknown": ({"costs": {("pear", "plum"): 2}}, "costs: there is no class 'pear'.*'apple', 'plum'"),
    "costs of one class": ({"costs": {"apple": 2}}, "not a pair"),
    "a prior of a class unknown": ({"class_prior": {"pear": 0.2}}, "class_prior: there is no class 'pear'"),
    "a prior that sums to two": ({"class_prior": [1.0, 1.0]}, "sum to one, but these are 1, 1"),
    "a prior of three": ({"class_prior": [0.2, 0.3, 0.5]}, "takes 2 shares"),
    "a prior that is NaN": ({"class_prior": [np.nan, 1.0]}, "sum to one"),
    "a prior by a name above one": ({"class_prior": {"apple": 1.2}}, "a number from 0 to 1"),
    "a prior that is a word": ({"class_prior": "flat"}, "Use shares by class, 'uniform' or 'estimate'"),
    "a threshold of no class": ({"threshold": {"pear": 0.2}}, "threshold: there is no class 'pear'"),
    "a threshold above one": ({"threshold": {"apple": 1.2}}, "a number from 0 to 1"),
    "a threshold without a class": ({"threshold": 0.3}, "one class and its probability"),
    "both costs and a threshold": ({"costs": [[0, 1], [1, 0]], "threshold": {"apple": 0.2}}, "Give only one"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_questions_are_refused_in_a_line(fruit, name):
    asked, said = BAD[name]
    with pytest.raises(sc.DataError, match=said):
        fruit.predict(NEW, **asked)


def test_a_class_without_rows_in_training_cannot_be_given_a_share():
    model = sc.NaiveBayes(class_prior=[0.0, 1.0]).fit(COLOUR, FRUIT)
    with pytest.raises(sc.DataError, match="'apple' had no share in training"):
        model.predict(NEW, class_prior="uniform")


def test_one_class_is_always_decided_for():
    model = sc.NaiveBayes().fit(COLOUR[:10], FRUIT[:10])
    assert model.predict(NEW, costs=[[0.0]], class_prior=[1.0]).tolist() == ["apple", "apple"]
    assert model.predict(NEW, class_prior="estimate").tolist() == ["apple", "apple"]
    with pytest.raises(sc.DataError, match="at least two classes"):
        model.choose_threshold(COLOUR[:10], FRUIT[:10], "apple", recall=0.5)


def test_thresholds_that_cannot_be_are_refused(fruit):
    with pytest.raises(sc.DataError, match="either precision or recall"):
        fruit.choose_threshold(COLOUR, FRUIT, "apple")
    with pytest.raises(sc.DataError, match="precision is a number above 0"):
        fruit.choose_threshold(COLOUR, FRUIT, "apple", precision=90)
    with pytest.raises(sc.DataError, match="no class 'pear'"):
        fruit.choose_threshold(COLOUR, FRUIT, "pear", recall=0.5)
    with pytest.raises(sc.DataError, match=r"reaches a precision of 0\.99.*the highest is"):
        fruit.choose_threshold(COLOUR, FRUIT, "apple", precision=0.99)


def test_shares_not_named_divide_the_rest_as_in_training():
    was = np.array([0.2, 0.6, 0.2])
    np.testing.assert_allclose(read_shares({"c": 0.5}, "abc", was), [0.125, 0.375, 0.5])
    np.testing.assert_allclose(read_shares({"a": 0.5, "c": 0.5}, "abc", was), [0.5, 0.0, 0.5])
    with pytest.raises(sc.DataError, match=r"sum to 1\.2"):
        read_shares({"a": 0.6, "b": 0.6}, "abc", was)
