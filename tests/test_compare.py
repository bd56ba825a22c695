"""Classifiers side by side: the figures against scikit-learn's own, ties, learning curves, tables that do not do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import softcount as sc
from softcount.errors import DataError
from softcount.estimators import comparison
from softcount.estimators.comparison import MixturePerClass, draw_nested_rows, list_sizes
from softcount.estimators.result_frames import arrow_of as arrow
from softcount.evaluate.ranking import compare_losses, verdict

EVERY_CANDIDATE = comparison.list_candidates


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is learned at once."""
    every, quick = comparison.list_candidates, ("naive Bayes", "discretised naive Bayes", "logistic regression")
    monkeypatch.setattr(comparison, "list_candidates", lambda *how: [x for x in every(*how) if x.name in quick])


def table(rows: int = 60, seed: int = 0) -> tuple[dict[str, Any], list[str]]:
    rng = np.random.default_rng(seed)
    x, word = rng.normal(size=rows), rng.choice(["red", "blue"], rows)
    labels = np.where(x + (word == "red") + 0.5 * rng.normal(size=rows) > 0.5, "yes", "no")
    return {"x": x.tolist(), "word": word.tolist()}, labels.tolist()


def by_hand(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of rows held out and their classes, fold after fold."""
    proba, labels = [], []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        proba.append(model.fit(X[train], y[train]).predict_proba(X[test]))
        labels.append(y[test])
    return np.concatenate(proba), np.concatenate(labels)


def test_figures_are_those_of_scikit_learn() -> None:
    X, y = load_iris(return_X_y=True)
    found = {line["model"]: line for line in arrow(sc.compare(X, y).table).to_pylist()}
    models = {
        "naive Bayes": sc.NaiveBayes(),
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    }
    for name, model in models.items():
        proba, labels = by_hand(model, X, y)
        line = found[name]
        assert line["log_loss"] == pytest.approx(log_loss(labels, proba), rel=1e-6)
        assert line["accuracy"] == pytest.approx(accuracy_score(labels, proba.argmax(axis=1)))
        assert line["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(labels, proba.argmax(axis=1)))
        assert line["brier"] == pytest.approx(((proba - np.eye(3)[labels]) ** 2).sum(axis=1).mean(), rel=1e-6)
        assert line["auc"] == pytest.approx(roc_auc_score(labels, proba, multi_class="ovr"), rel=1e-6)
        assert line["seconds"] > 0 and (line["bytes"] is None) == (name == "logistic regression")


def test_the_log_loss_of_whole_rows_is_that_of_the_model() -> None:
    X, y = load_iris(return_X_y=True)
    found = {line["model"]: line["joint_log_loss"] for line in arrow(sc.compare(X, y).table).to_pylist()}
    nats = 0.0
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        params = sc.NaiveBayes().fit(X[train], y[train])
        for column in range(4):
            own = params.params_[column]
            nats -= norm.logpdf(X[test, column], own["mean"][y[test]], np.sqrt(own["variance"][y[test]])).sum()
        nats -= np.log(params.class_prior_[y[test]]).sum()
    assert found["naive Bayes"] == pytest.approx(nats / len(y), rel=1e-9)
    assert found["discretised naive Bayes"] is not None and found["logistic regression"] is None


def test_a_mixture_per_class_is_bayes_rule_over_the_densities_of_the_classes() -> None:
    rng = np.random.default_rng(0)
    side, x = rng.integers(0, 2, 120), rng.normal(size=120)
    labels = rng.integers(0, 2, 120)
    columns = pa.table({"a": x + 6 * side, "b": rng.normal(size=120) + 6 * (side ^ labels)})
    model = MixturePerClass({}, 0).fit(columns, labels)
    rows, joint = np.column_stack([columns["a"], columns["b"]]), []
    for share, mixture in zip(np.bincount(labels) / 120, model.mixtures_, strict=True):
        density = mixture.weights_.copy() * np.ones((120, 1))
        for place, name in enumerate("ab"):
            own = mixture.params_[name]
            density *= norm.pdf(rows[:, [place]], own["mean"], np.sqrt(own["variance"]))
        joint.append(np.log(share * density.sum(axis=1)))
    np.testing.assert_allclose(model.joint(columns), np.transpose(joint), rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(columns).sum(axis=1), 1.0, rtol=1e-12)
    assert (model.predict_proba(columns).argmax(axis=1) == labels).mean() > 0.95  # naive Bayes: half


def test_a_level_that_one_class_has_alone_is_a_level_to_all_mixtures() -> None:
    columns = pa.table({"word": ["u", "v"] * 20 + ["w"] * 20, "same": [1.5] * 40 + [2.5] * 20})
    model = MixturePerClass({"same": "normal"}, 0).fit(columns, np.repeat([0, 1], [40, 20]))
    assert {len(mixture.levels_["word"]) for mixture in model.mixtures_} == {3}
    assert np.isfinite(model.joint(columns)).all()


def test_a_mixture_per_class_is_compared_with_its_size_and_density(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "mixture per class"
    monkeypatch.setattr(
        comparison, "list_candidates", lambda *how: [x for x in EVERY_CANDIDATE(*how) if x.name == name]
    )
    found = sc.compare(*table(), folds=2)
    line = arrow(found.table).to_pylist()[0]
    assert not found.failed and line["model"] == name and line["bytes"] > 0
    assert np.isfinite(line["joint_log_loss"]) and line["log_loss"] < np.log(2)


def test_differences_are_paired_by_row() -> None:
    rng = np.random.default_rng(1)
    best, other = rng.exponential(size=200), rng.exponential(size=200) + 0.1
    found = compare_losses(other, best)
    assert found.mean == pytest.approx(other.mean() - best.mean())
    assert found.error == pytest.approx(np.std(other - best, ddof=1) / np.sqrt(200))
    assert compare_losses(best, best).is_tie and not compare_losses(best + 0.1, best).is_tie
    assert "a tie between one and two" in verdict({"one": best, "two": best}, "log-loss")


def test_the_lowest_log_loss_is_first_and_the_simplest_of_equals_named() -> None:
    found = sc.compare(*table())
    losses = found.table["log_loss"].tolist()
    assert losses == sorted(losses) and found.table["behind"][0] == 0 and found.best.name in str(found)
    assert found.verdicts[0].startswith("by log-loss") and found.verdicts[1].startswith("by accuracy")


def test_the_same_table_in_another_form_gives_the_same_figures(tmp_path: Any) -> None:
    columns, labels = table()
    path = tmp_path / "t.csv"
    cells = zip(columns["x"], columns["word"], labels, strict=True)
    path.write_text("x,word,y\n" + "\n".join(f"{x!r},{word},{label}" for x, word, label in cells) + "\n")
    ours, theirs = sc.compare(columns, labels), sc.compare(str(path), "y")
    assert ours.table["log_loss"].tolist() == theirs.table["log_loss"].tolist()


def test_learning_curves_end_where_everything_was_learned_from() -> None:
    found = sc.compare(*table(), curve=True)
    assert found.curves is not None and found.curves.sizes.tolist() == [20, 48]
    last = {line["model"]: line["log_loss"] for line in found.curves.table.to_pylist() if line["rows"] == 48}
    assert last == dict(zip(found.table["model"].tolist(), found.table["log_loss"].tolist(), strict=True))
    assert found.curves.words.startswith("lowest log-loss: ") and found.curves.svg().count("<path") >= len(last)


@given(st.lists(st.integers(0, 3), min_size=12, max_size=60), st.integers(4, 12), st.integers(0, 5))
def test_fewer_rows_are_among_more_and_every_class_is_there(labels: list[int], size: int, seed: int) -> None:
    codes = np.array(labels)
    small, large = draw_nested_rows(codes, size, seed), draw_nested_rows(codes, len(codes) - 1, seed)
    assert len(small) == min(size, len(codes)) and set(small) <= set(draw_nested_rows(codes, size + 1, seed))
    assert set(codes[small]) == set(codes) and len(large) == len(codes) - 1


@given(st.integers(2, 100), st.integers(1, 10_000))
def test_sizes_rise_to_the_last(least: int, most: int) -> None:
    sizes = list_sizes(least, most)
    assert sizes[-1] == most and sizes == sorted(set(sizes))


# -- tables that do not do


def test_rows_without_a_class_are_left_out_and_said() -> None:
    columns, labels = table(40)
    found = sc.compare(columns, [None if row == 6 else label for row, label in enumerate(labels)])
    assert found.rows == 39 and "rows without a class are left out: 1, row 7 the first." in found.notes


def test_a_class_that_not_every_fold_can_hold_is_left_out_and_said() -> None:
    columns, labels = table(40)
    found = sc.compare(columns, ["odd" if row < 3 else label for row, label in enumerate(labels)])
    assert found.rows == 37 and found.classes == ["no", "yes"] and any("odd (3)" in note for note in found.notes)


def test_a_column_with_one_value_in_a_fold_is_named() -> None:
    columns, labels = table(40)
    columns["rare"] = ["a" if row else "b" for row in range(40)]
    found = sc.compare(columns, labels)
    assert (
        any("column rare has one value in the training rows of fold" in note for note in found.notes)
        and not found.failed
    )


def test_holes_everywhere_do_no_harm() -> None:
    columns, labels = table(40)
    columns["x"] = [None if row % 3 else x for row, x in enumerate(columns["x"])]
    columns["word"] = [None if row % 4 == 1 else word for row, word in enumerate(columns["word"])]
    found = sc.compare(columns, labels)
    assert not found.failed and np.isfinite(found.table["log_loss"].tolist()).all()


@pytest.mark.parametrize(
    ("columns", "labels", "line"),
    [
        ({"x": [1.0, 2.5, 3.0]}, ["a", "b", "a"], "3 rows with a class, fewer than 5 folds. Give folds=3"),
        ({"x": np.arange(20) + 0.5}, ["a"] * 20, "only 'a' has 5 rows or more"),
        ({"x": np.arange(20) + 0.5}, ["a"] * 18 + ["b"] * 2, "only 'a' has 5 rows or more"),
        ({"x": np.arange(400) + 0.5}, [f"row {row}" for row in range(400)], "400 different values"),
    ],
)
def test_what_cannot_be_compared_is_refused(columns: Any, labels: Any, line: str) -> None:
    with pytest.raises(DataError, match=line):
        sc.compare(columns, labels)


def test_settings_that_make_no_sense_are_refused() -> None:
    columns, labels = table(20)
    with pytest.raises(DataError, match="folds must be a whole number of at least 2"):
        sc.compare(columns, labels, folds=1)
    with pytest.raises(DataError, match="names a column, but X has no names"):
        sc.compare(np.zeros((4, 2)), "y")
    with pytest.raises(DataError, match="there is no column 'z' in X"):
        sc.compare(columns, "z")
    with pytest.raises(DataError, match="kinds must be a mapping"):
        sc.compare(columns, labels, kinds="normal")  # type: ignore[arg-type]


def test_text_is_refused_with_a_remedy() -> None:
    columns, labels = table(20)
    columns["note"] = [f"some words of row {row} and more of them" for row in range(20)]
    with pytest.raises(DataError, match="column 'note' is text"):
        sc.compare(columns, labels, kinds={"note": "text"})


def test_one_that_fails_is_told_and_the_others_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*how: Any) -> Any:
        raise DataError("too few rows.\nmore")

    every = comparison.list_candidates
    monkeypatch.setattr(
        comparison, "list_candidates", lambda *how: [*every(*how), comparison.Candidate("broken", broken)]
    )  # fmt: skip
    found = sc.compare(*table(30))
    assert found.failed == {"broken": "too few rows."} and "broken" not in found.table["model"].tolist()


def test_many_rows_are_held_out_once_and_more_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "MANY_ROWS", 30)
    monkeypatch.setattr(comparison, "MOST_COMPARED_ROWS", 45)
    found = sc.compare(*table(60))
    assert found.how.startswith("a third of the rows held out once") and found.rows == 45
    assert "45 of 60 rows are drawn to compare on." in found.notes and len(found.best.losses) == 15
