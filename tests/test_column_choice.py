"""Which columns are worth having, against exhaustive search and by hand."""

from __future__ import annotations

from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import gammaln, softmax

import softcount as sc
from contract.checking import worked
from contract.examples import Example, every_example
from softcount.estimators.column_choice import _compute_evidence, score_columns
from softcount.estimators.result_frames import arrow_of as arrow
from softcount.evaluate.columns import select_forward
from softcount.fitted.explain import measure_column_evidence


def subsets(columns: int) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(range(columns), size) for size in range(1, columns + 1)))


def polya(counts: np.ndarray, alpha: float = 1.0) -> float:
    """Log-probability of a sequence with these counts under a Dirichlet, by hand."""
    n, m = counts.sum(), len(counts)
    return gammaln(m * alpha) - gammaln(m * alpha + n) + (gammaln(alpha + counts) - gammaln(alpha)).sum()


def coded(rows: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Codes of which 0 and 3 hang on the class, and 4 is a copy of 0."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, rows)
    X = rng.integers(0, 3, (rows, 5))
    X[:, 0] = np.where(rng.random(rows) < 0.7, y, X[:, 0])
    X[:, 3] = np.where(rng.random(rows) < 0.6, y, X[:, 3])
    X[:, 4] = X[:, 0]
    return X.astype(str), y


def test_what_a_column_adds_is_the_evidence_by_hand_and_the_best_set_that_of_all_sets():
    X, y = coded()
    found = sc.select_columns(sc.NaiveBayes(), X, y)
    adds = {line["column"]: line["adds"] for line in arrow(found.table).to_pylist()}
    apart, whole = [], []
    for column in X.T:
        levels = np.unique(column)
        by_class = [np.array([(column[y == k] == level).sum() for level in levels]) for k in (0, 1)]
        apart.append(sum(map(polya, by_class)))
        whole.append(polya(sum(by_class)))
    for place in range(5):
        assert adds[str(place)] == pytest.approx(apart[place] - whole[place], rel=1e-10)
    best = max(subsets(5), key=lambda s: sum(apart[j] if j in s else whole[j] for j in range(5)))
    assert sorted(found.columns) == list(best) == [0, 3, 4]
    assert [line["column"] for line in arrow(found.table).to_pylist()] == sorted(adds, key=lambda key: -adds[key])


@every_example
def test_every_family_says_what_it_adds(example: Example):
    found = measure_column_evidence(worked(example))
    assert set(found) == set(example.keys) and all(np.isfinite(list(found.values())))


@pytest.mark.filterwarnings("ignore::softcount.DataWarning")
def test_columns_held_out_are_what_refits_of_any_set_say():
    rng = np.random.default_rng(1)
    y = np.array(["a", "b", "c"])[np.arange(90) % 3]
    X = rng.normal((np.arange(90) % 3)[:, None], 1.5, size=(90, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    scores = score_columns(sc.NaiveBayes(), X, y)
    for columns in [(0,), (1, 3), (0, 1, 2, 3)]:
        told = softmax(joint(scores, columns), axis=1)
        for fold in range(5):
            inside = scores.folds == fold
            other = sc.NaiveBayes().fit(X[~inside][:, columns], y[~inside])
            np.testing.assert_allclose(told[inside], other.predict_proba(X[inside][:, columns]), rtol=1e-8)


def joint(scores, columns):
    return scores.shares + scores.parts[:, np.asarray(columns, dtype=int)].sum(axis=1)


def test_forward_steps_reach_what_the_best_of_all_sets_has():
    X, y = coded(400)
    scores = score_columns(sc.NaiveBayes(), X, y)
    found = sc.select_columns(sc.NaiveBayes(), X, y, criterion="log-loss")
    best = min(np.mean(scores.losses(joint(scores, columns))) for columns in subsets(5))
    reached = np.mean(scores.losses(joint(scores, found.columns)))
    assert reached == pytest.approx(best, abs=0.004)
    # Of the two copies one is kept, and what comes first took most off the log-loss.
    assert len({0, 4} & set(found.columns)) == 1 and 3 in found.columns
    steps = select_forward(scores)
    alone = [np.mean(scores.losses(joint(scores, [place]))) for place in range(5)]
    assert steps[0].log_loss == pytest.approx(min(alone), rel=1e-12)
    kept = [step.place for step in steps if step.kept]
    assert [step.kept for step in steps] == [True] * len(kept) + [False] * (5 - len(kept))
    for number, step in enumerate(steps):
        before = kept[: min(number, len(kept))]
        gains = scores.losses(joint(scores, before)) - scores.losses(joint(scores, [*before, step.place]))
        assert step.adds == pytest.approx(gains.mean(), abs=1e-12)
        assert step.standard_error == pytest.approx(gains.std() / np.sqrt(400), rel=1e-9)
        assert step.kept == (step.adds > step.standard_error)


def test_what_is_impossible_costs_a_finite_loss():
    X, y = coded()
    X[:, 1] = np.where(y == 1, X[:, 1], "never elsewhere")
    found = sc.select_columns(sc.NaiveBayes(estimate="ml"), X, y, criterion="log-loss")
    assert found.columns[0] == 1 and np.isfinite(found.table["log_loss"].to_numpy()).all()


def planted(rows: int = 150) -> np.ndarray:
    """Three groups that columns 1 and 3 tell apart; 0 and 2 are noise."""
    rng = np.random.default_rng(2)
    group = np.arange(rows) % 3
    X = rng.normal(size=(rows, 4))
    X[:, 1] += 4 * group
    X[:, 3] -= 5 * (group == 1)
    return X


def gain(X: np.ndarray, columns: tuple[int, ...]) -> float:
    """The evidence for three groups in these columns over one."""
    part = X[:, columns]
    three, one = (sc.Mixture(k, random_state=0, n_init=4).fit(part) for k in (3, 1))
    return _compute_evidence(three) - _compute_evidence(one)


def test_columns_that_carry_groups_are_the_best_of_all_sets():
    X = planted()
    found = sc.select_columns(sc.Mixture(3, random_state=0, n_init=4), X)
    best = max(subsets(4), key=lambda columns: gain(X, columns))
    assert sorted(found.columns) == list(best) == [1, 3]
    assert found.model.predict(X).shape == (150,) and set(found.model.params_) == {1, 3}
    adds = {line["column"]: line["adds"] for line in arrow(found.table).to_pylist()}
    assert adds["0"] < 0 < adds["1"] and adds["2"] < 0 < adds["3"]


def test_noise_carries_no_groups():
    noise = np.random.default_rng(3).normal(size=(80, 3))
    found = sc.select_columns(sc.Mixture("auto", random_state=0, n_init=2), noise)
    assert found.columns == [] and found.model.n_components_ == 1 and "none" in str(found)
    known = sc.select_columns(sc.NaiveBayes(), noise, np.arange(80) % 2, criterion="log-loss")
    assert known.columns == [] and known.model is None


@pytest.mark.parametrize("criterion", ["evidence", "log-loss"])
def test_at_most_so_many_are_kept_and_the_model_takes_the_whole_table(criterion: str, tmp_path: Path):
    X, y = coded()
    frame = pd.DataFrame(X, columns=list("abcde")).assign(sort=y)
    whole = sc.select_columns(sc.NaiveBayes(), frame, "sort", criterion=criterion)
    one = sc.select_columns(sc.NaiveBayes(), frame, "sort", max_columns=1, criterion=criterion)
    assert one.columns == whole.columns[:1] and "1 of 5 columns" in str(one)
    assert list(one.model.params_) == one.columns
    alone = sc.NaiveBayes().fit(frame[one.columns], y)
    np.testing.assert_allclose(one.model.predict_proba(frame), alone.predict_proba(frame[one.columns]), rtol=1e-12)
    one.model.save(tmp_path / "one.sc")
    assert (sc.load(tmp_path / "one.sc").predict(frame) == one.model.predict(frame)).all()
    groups = sc.select_columns(sc.Mixture(3, random_state=0, n_init=2), planted(), max_columns=1)
    assert groups.columns in ([1], [3])


def test_a_classifier_of_the_columns_kept_is_one_of_its_kind():
    X, y = coded()
    found = sc.select_columns(sc.Classifier(), X, y, criterion="log-loss")
    assert isinstance(found.model, sc.Classifier)
    assert found.columns == sc.select_columns(sc.NaiveBayes(), X, y, criterion="log-loss").columns
    calibrated = sc.select_columns(sc.NaiveBayes(calibration="temperature"), X, y)
    assert calibrated.model.calibration_ is not None and sorted(calibrated.columns) == [0, 3, 4]


def test_kinds_and_blocks_stay_what_they_were():
    X = planted()
    y = np.arange(150) % 3
    kinds: dict[Any, Any] = {(1, 3): "multinormal", 0: sc.families.Normal(tied="classes")}
    found = sc.select_columns(sc.NaiveBayes(kinds=kinds), X, y)
    assert found.columns == [(1, 3)] and list(found.model.params_) == [(1, 3)]
    every = sc.select_columns(sc.NaiveBayes(kinds="normal"), X, y)
    assert sorted(every.columns) == [1, 3]


def test_what_cannot_be_chosen_from_is_refused():
    X, y = coded()
    for settings, said in (
        ({"criterion": "bic"}, "Use 'evidence' or 'log-loss'"),
        ({"max_columns": 0}, "max_columns must be a whole number of at least 1"),
    ):
        with pytest.raises(sc.DataError, match=said):
            sc.select_columns(sc.NaiveBayes(), X, y, **settings)
    with pytest.raises(sc.DataError, match="chosen by evidence"):
        sc.select_columns(sc.Mixture(2), planted(), criterion="log-loss")
    counts = sparse.csr_matrix(np.random.default_rng(0).poisson(1.0, (20, 4)))
    with pytest.raises(sc.DataError, match="one block of counts"):
        sc.select_columns(sc.NaiveBayes(), counts, np.arange(20) % 2)
    with pytest.raises(sc.DataError, match="too few rows have a label"):
        sc.select_columns(sc.NaiveBayes(), X[:1], y[:1], criterion="log-loss")
