"""Learning in parts: batches, merging, forgetting, and labels with gaps, against one fit and against plain loops."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc

KINDS = {
    "visits": "poisson",
    "income": "lognormal",
    "size": "normal",
    "town": "categorical",
    ("height", "weight"): "multinormal",
    ("colour", "rich"): "categorical",
}
pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")


def people(n: int = 90, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A mixed table of two classes with a block of each kind."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    body = rng.normal(size=(n, 2)) @ [[1, 0.6], [0, 1]] + 2 * y[:, None] + 170
    frame = pd.DataFrame({"colour": rng.choice(["blue", "green", "red"], n), "rich": rng.random(n) < 0.2 + 0.5 * y})
    frame = frame.assign(size=rng.normal(2.0 * y), visits=rng.poisson(2 + 3 * y), income=np.exp(rng.normal(y)))
    return frame.assign(height=body[:, 0], weight=body[:, 1], town=rng.choice(["Oslo", "Turin"], n)), y


def same_model(one: sc.NaiveBayes, other: sc.NaiveBayes, table: pd.DataFrame, slack: float = 1e-9) -> None:
    assert one.classes_.tolist() == other.classes_.tolist()
    assert one.levels_ == other.levels_
    np.testing.assert_allclose(one.class_count_, other.class_count_, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(one.predict_proba(table), other.predict_proba(table), rtol=0, atol=slack)
    np.testing.assert_allclose(one.score_samples(table), other.score_samples(table), rtol=slack, atol=slack)


@pytest.mark.parametrize("estimate", ["ml", "mean", "predictive"])
@pytest.mark.parametrize("batches", [2, 5])
def test_batches_are_the_whole(batches, estimate):
    frame, y = people()
    whole = sc.NaiveBayes(kinds=KINDS, estimate=estimate).fit(frame, y)
    parts = sc.NaiveBayes(kinds=KINDS, estimate=estimate)
    for rows in np.array_split(np.arange(len(y)), batches):
        parts.partial_fit(frame.iloc[rows], y[rows], classes=[0, 1])
    same_model(parts, whole, frame)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 89))
def test_two_halves_merge_to_the_whole_either_way_round(seed, cut):
    frame, y = people(seed=seed)
    whole = sc.NaiveBayes(kinds=KINDS).fit(frame, y)
    one, other = (sc.NaiveBayes(kinds=KINDS).fit(frame[part], y[part]) for part in (slice(cut), slice(cut, None)))
    same_model(one.merge(other), whole, frame)
    same_model(other.merge(one), whole, frame)


def test_merging_leaves_both_models_as_they_were():
    frame, y = people()
    one, other = (sc.NaiveBayes(kinds=KINDS).fit(frame[r], y[r]) for r in (slice(50), slice(50, None)))
    before = one.predict_proba(frame), other.predict_proba(frame)
    one.merge(other)
    np.testing.assert_array_equal(one.predict_proba(frame), before[0])
    np.testing.assert_array_equal(other.predict_proba(frame), before[1])


def test_levels_and_classes_of_merged_models_are_united():
    one = sc.NaiveBayes().fit({"fruit": ["apple", "pear", "apple"]}, ["a", "a", "b"])
    other = sc.NaiveBayes().fit({"fruit": ["pear", "banana", "pear"]}, ["c", "b", "c"])
    whole = sc.NaiveBayes().fit({"fruit": ["apple", "pear", "apple", "pear", "banana", "pear"]}, list("aabcbc"))
    merged = one.merge(other)
    assert merged.levels_["fruit"] == ["apple", "banana", "pear"]
    np.testing.assert_allclose(
        merged.params_["fruit"]["probability"], whole.params_["fruit"]["probability"], rtol=1e-14
    )
    np.testing.assert_allclose(merged.class_prior_, whole.class_prior_, rtol=1e-14)


def test_forgetting_rows_is_never_having_met_them():
    frame, y = people()
    rest, gone = np.arange(90) % 4 != 0, np.arange(90) % 4 == 0
    model = sc.NaiveBayes(kinds=KINDS).fit(frame, y).forget(frame[gone], y[gone])
    same_model(model, sc.NaiveBayes(kinds=KINDS).fit(frame[rest], y[rest]), frame, slack=1e-8)


def test_forgetting_what_was_added_gives_the_model_back():
    frame, y = people()
    model = sc.NaiveBayes(kinds=KINDS).fit(frame[:60], y[:60])
    before = model.predict_proba(frame)
    model.partial_fit(frame[60:], y[60:])
    assert not np.allclose(model.predict_proba(frame), before)
    np.testing.assert_allclose(model.forget(frame[60:], y[60:]).predict_proba(frame), before, atol=1e-9)


def test_more_than_was_learned_cannot_be_forgotten():
    frame, y = people()
    model = sc.NaiveBayes().fit(frame[:20], y[:20])
    with pytest.raises(sc.DataError, match="more rows of a class"):
        model.forget(frame, y)


def test_a_level_with_fewer_rows_than_are_forgotten_is_refused():
    """Rows that were never learned: the class has enough of them, the level has not."""
    model = sc.NaiveBayes().fit({"fruit": ["apple", "apple", "pear"]}, [0, 0, 0])
    with pytest.raises(sc.DataError, match="fruit"):
        model.forget({"fruit": ["pear", "pear"]}, [0, 0])


def test_a_new_class_in_a_later_batch_is_refused_by_name():
    frame, y = people()
    model = sc.NaiveBayes().partial_fit(frame[:30], np.zeros(30, dtype=int))
    with pytest.raises(sc.DataError, match="class 1 did not occur"):
        model.partial_fit(frame, y)


def test_a_class_named_at_first_may_come_later():
    frame, y = people()
    order = np.argsort(y, kind="stable")
    model = sc.NaiveBayes(kinds=KINDS)
    for rows in np.array_split(order, 6):
        model.partial_fit(frame.iloc[rows], y[rows], classes=[0, 1])
    same_model(model, sc.NaiveBayes(kinds=KINDS).fit(frame, y), frame)


def test_models_of_other_columns_are_not_merged():
    frame, y = people()
    with pytest.raises(sc.DataError, match="different columns"):
        sc.NaiveBayes().fit(frame[["size"]], y).merge(sc.NaiveBayes().fit(frame[["size", "town"]], y))


def test_a_column_of_another_family_is_not_merged():
    frame, y = people()
    one = sc.NaiveBayes(kinds={"visits": "poisson"}).fit(frame[["visits"]], y)
    other = sc.NaiveBayes(kinds={"visits": "normal"}).fit(frame[["visits"]], y)
    with pytest.raises(sc.DataError, match=r"'visits' is .*(poisson.*normal|normal.*poisson)"):
        one.merge(other)


# -- labels with gaps


def gaps(y: np.ndarray, every: int = 3) -> list:
    return [None if i % every else int(label) for i, label in enumerate(y)]


def step_by_hand(frame, labels, params, weight, a):
    """One EM step over the unknown labels in plain loops: class shares ML, columns with prior a."""
    shares, tables, levels = params
    counts = {name: np.zeros((2, len(levels[name]))) for name in levels}
    sizes = np.zeros(2)
    for i, label in enumerate(labels):
        if label is None:
            joint = shares.copy()
            for name in levels:
                joint = joint * tables[name][:, levels[name].index(frame[name].iloc[i])]
            member = weight * joint / joint.sum()
        else:
            member = np.eye(2)[label]
        sizes += member
        for name in levels:
            counts[name][:, levels[name].index(frame[name].iloc[i])] += member
    tables = {name: (c + a) / (c + a).sum(axis=1, keepdims=True) for name, c in counts.items()}
    return sizes / sizes.sum(), tables, levels


@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize("steps", [1, 4])
def test_each_step_over_unknown_labels_is_the_one_by_hand(weight, steps):
    frame, y = people()
    table, labels, a = frame[["colour", "rich", "town"]], gaps(y), 0.5
    levels = {"colour": ["blue", "green", "red"], "rich": [False, True], "town": ["Oslo", "Turin"]}
    model = sc.NaiveBayes(prior=a, unlabelled_weight=weight, max_iter=steps, tol=0).fit(table, labels)
    known = [i for i, label in enumerate(labels) if label is not None]
    start = sc.NaiveBayes(prior=a).fit(table.iloc[known], y[known])
    params = start.class_prior_, {name: start.params_[name]["probability"] for name in levels}, levels
    for _ in range(steps):
        params = step_by_hand(table, labels, params, weight, a)
    np.testing.assert_allclose(model.class_prior_, params[0], rtol=1e-12)
    for name in levels:
        np.testing.assert_allclose(model.params_[name]["probability"], params[1][name], rtol=1e-12)


def test_where_em_stops_another_step_changes_nothing():
    frame, y = people()
    model = sc.NaiveBayes(kinds=KINDS, unlabelled_weight=1.0, tol=1e-12, max_iter=5000).fit(frame, gaps(y))
    assert any("60 rows without a label" in note for note in model.notes_)
    members = model.predict_proba(frame)
    known = np.array([label is not None for label in gaps(y)])
    members[known] = np.eye(2)[y[known]]
    np.testing.assert_allclose(model.class_prior_, members.mean(axis=0), atol=1e-5)
    size = frame["size"].to_numpy()
    np.testing.assert_allclose(model.params_["size"]["mean"], members.T @ size / members.sum(axis=0), atol=1e-4)


@pytest.mark.parametrize("unknown", [None, float("nan"), pd.NA])
def test_unlabelled_rows_of_weight_zero_are_not_there(unknown):
    frame, y = people()
    labels = pd.Series([unknown if label is None else label for label in gaps(y)], dtype=object)
    known = labels.notna().to_numpy()
    model = sc.NaiveBayes(kinds=KINDS, unlabelled_weight=0).fit(frame, labels)
    same_model(model, sc.NaiveBayes(kinds=KINDS).fit(frame[known], y[known]), frame)


def test_an_unlabelled_weight_is_a_sample_weight():
    frame, y = people()
    labels = gaps(y)
    weights = np.array([0.25 if label is None else 1.0 for label in labels])
    lighter = sc.NaiveBayes(kinds=KINDS, unlabelled_weight=0.25, max_iter=30, tol=0).fit(frame, labels)
    weighted = sc.NaiveBayes(kinds=KINDS, unlabelled_weight=1.0, max_iter=30, tol=0).fit(
        frame, labels, sample_weight=weights
    )
    same_model(lighter, weighted, frame)


def test_unlabelled_rows_help():
    """Two clear groups and one label in each: the unlabelled rows say where the groups are."""
    rng = np.random.default_rng(5)
    truth = np.arange(400) % 2
    X = rng.normal(size=(400, 2)) + 4 * truth[:, None]
    labels = [int(t) if i < 6 else None for i, t in enumerate(truth)]
    few = sc.NaiveBayes().fit(X[:6], truth[:6]).score(X, truth)
    model = sc.NaiveBayes(unlabelled_weight=1.0).fit(X, labels)
    assert model.score(X, truth) >= max(few, 0.98)
    np.testing.assert_allclose(model.params_[0]["mean"], [0, 4], atol=0.3)


def test_every_label_unknown_names_mixture():
    frame, _ = people()
    with pytest.raises(sc.DataError, match="Mixture"):
        sc.NaiveBayes().fit(frame, [None] * len(frame))
