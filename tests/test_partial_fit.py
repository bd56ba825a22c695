"""Rows learned in any batches, joined from two tables, or taken back out, are the rows learned at once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import softcount as sc
from small_tables import KINDS, fruit, with_cell
from softcount.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")  # missing cells, met on purpose

ROWS = 48
CLASSES = ["a", "b", "c"]


def holed(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(len(values)) < 0.15, np.nan, values)


def measured() -> tuple[pd.DataFrame, np.ndarray]:
    """Columns for every family, with holes where the family counts them in one pass."""
    rng = np.random.default_rng(3)
    y = np.array(CLASSES)[rng.integers(0, 3, ROWS)]
    shift = np.searchsorted(CLASSES, y)
    trials = rng.integers(1, 9, ROWS)
    words = rng.choice(["u", "v", "w"], ROWS).astype(object)
    words[3::7] = None
    frame = pd.DataFrame(
        {
            "real": holed(rng.normal(shift, 1.0), rng),
            "far": 1e8 + rng.normal(shift, 0.5),
            "tiny": 1e-9 * rng.normal(shift, 0.5),
            "positive": holed(np.exp(rng.normal(shift, 0.4)), rng),
            "count": holed(rng.poisson(2.0 + shift).astype(float), rng),
            "word": words,
            "other word": rng.choice(["m", "n"], ROWS),
            "truth": rng.random(ROWS) < 0.3 + 0.2 * shift,
            "hits": rng.binomial(trials, 0.4),
            "shots": trials,
        }
    )
    return frame, y


FRAME, Y = measured()
FAMILIES = {
    "normal": {"real": "normal", "far": "normal", "tiny": "normal"},
    "normal tied by classes": {"real": sc.families.Normal(tied="classes"), "far": sc.families.Normal(tied="classes")},
    "normal of known variance": {"real": sc.families.Normal(variance=2.0), "far": sc.families.Normal(variance=0.25)},
    "lognormal": {"positive": "lognormal"},
    "poisson": {"count": "poisson"},
    "categorical": {"word": "categorical", "other word": "categorical"},
    "bernoulli": {"truth": "bernoulli"},
    "multinomial": {("count", "shots"): "multinomial"},
    "binomial": {("hits", "shots"): "binomial"},
    "multinormal": {("far", "tiny"): "multinormal"},
    "joint": {("word", "other word"): "categorical"},
    "all kinds": {
        "real": "normal",
        "positive": "lognormal",
        "count": "poisson",
        "word": "categorical",
        ("hits", "shots"): "binomial",
    },
}


def columns_of(kinds: dict) -> list[str]:
    return [name for key in kinds for name in (key if isinstance(key, tuple) else (key,))]


def batches(cuts: list[int]) -> list[slice]:
    edges = [0, *sorted(set(cuts)), ROWS]
    return [slice(a, b) for a, b in pairwise(edges)]


def same_model(model: sc.NaiveBayes, whole: sc.NaiveBayes, X: pd.DataFrame, rtol: float = 1e-13) -> None:
    """Counts, parameters and answers agree; levels and classes are in the same order."""
    assert model.classes_.tolist() == whole.classes_.tolist()
    assert model.levels_ == whole.levels_
    np.testing.assert_allclose(model.class_prior_, whole.class_prior_, rtol=rtol)
    for key, params in whole.params_.items():
        for name, value in params.items():
            np.testing.assert_allclose(model.params_[key][name], value, rtol=rtol, err_msg=f"{key} {name}")
    # At 1e8 deviations from zero the last bit of a mean moves a log-density by 1e-8.
    loose = 1e-6 if "far" in X else 1e-11
    np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), rtol=loose, atol=1e-13)


@pytest.mark.parametrize("estimate", ["mean", "ml", "predictive"])
@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=6, deadline=None)
@given(cuts=st.lists(st.integers(1, ROWS - 1), max_size=6))
def test_any_batching_gives_the_model_of_all_rows(name, estimate, cuts):
    kinds = FAMILIES[name]
    X = FRAME[columns_of(kinds)]
    whole = sc.NaiveBayes(kinds=kinds, estimate=estimate, n_jobs=1).fit(X, Y)
    model = sc.NaiveBayes(kinds=kinds, estimate=estimate, n_jobs=1)
    for rows in batches(cuts):
        model.partial_fit(X[rows], Y[rows], classes=CLASSES)
    same_model(model, whole, X)


@pytest.mark.parametrize("name", FAMILIES)
def test_one_row_at_a_time_gives_the_model_of_all_rows(name):
    kinds = FAMILIES[name]
    X = FRAME[columns_of(kinds)]
    model = sc.NaiveBayes(kinds=kinds, n_jobs=1)
    for row in range(ROWS):
        model.partial_fit(X[row : row + 1], Y[row : row + 1], classes=CLASSES)
    same_model(model, sc.NaiveBayes(kinds=kinds, n_jobs=1).fit(X, Y), X)


def test_weights_are_counted_in_every_batch():
    weights = np.random.default_rng(0).integers(0, 4, ROWS).astype(float)
    kinds = FAMILIES["all kinds"]
    X = FRAME[columns_of(kinds)]
    whole = sc.NaiveBayes(kinds=kinds).fit(X, Y, sample_weight=weights)
    model = sc.NaiveBayes(kinds=kinds)
    for rows in batches([5, 20]):
        model.partial_fit(X[rows], Y[rows], classes=CLASSES, sample_weight=weights[rows])
    same_model(model, whole, X)


def test_batches_of_a_sparse_table_add_up():
    counts = np.random.default_rng(0).poisson(1.0, (ROWS, 6))
    model = sc.NaiveBayes()
    for rows in batches([1, 30]):
        model.partial_fit(sparse.csr_matrix(counts[rows]), Y[rows], classes=CLASSES)
    whole = sc.NaiveBayes().fit(sparse.csr_matrix(counts), Y)
    np.testing.assert_allclose(model.predict_proba(counts), whole.predict_proba(counts), rtol=1e-12)


def test_batches_of_an_array_add_up():
    X = np.random.default_rng(0).normal(1e6, 2.0, (ROWS, 3))
    model = sc.NaiveBayes()
    for rows in batches([1, 2, 30]):
        model.partial_fit(X[rows], Y[rows], classes=CLASSES)
    np.testing.assert_allclose(
        model.predict_proba(X), sc.NaiveBayes().fit(X, Y).predict_proba(X), rtol=1e-9, atol=1e-13
    )


# Classes and levels to come


def test_classes_of_the_first_call_exist_before_they_are_seen():
    frame, y = fruit()
    model = sc.NaiveBayes(kinds=KINDS).partial_fit(frame, y, classes=["sour", "ripe", "rotten"])
    assert model.classes_.tolist() == ["ripe", "rotten", "sour"]
    assert model.class_count_[1] == 0.0
    proba = model.predict_proba(frame)
    assert (proba[:, 1] == 0.0).all()
    plain = sc.NaiveBayes(kinds=KINDS).fit(frame, y).predict_proba(frame)
    np.testing.assert_allclose(proba[:, [0, 2]], plain, rtol=1e-12)
    more = model.partial_fit(frame[:4], ["rotten"] * 4)
    assert more.class_count_[1] == 4.0


def test_without_classes_the_first_block_says_which_there_are():
    frame, y = fruit()
    model = sc.NaiveBayes(kinds=KINDS).partial_fit(frame, y)
    assert model.partial_fit(frame, y).class_count_.sum() == 120.0


def test_a_class_that_was_not_announced_is_refused_and_nothing_is_learned():
    frame, y = fruit()
    model = sc.NaiveBayes(kinds=KINDS).partial_fit(frame, y)
    before = model.counts_
    with pytest.raises(DataError, match=r"class 'rotten' .*first call.*classes"):
        model.partial_fit(frame, np.where(y == "sour", "rotten", y))
    assert model.counts_ is before


def test_a_class_in_y_but_not_in_classes_is_refused():
    frame, y = fruit()
    with pytest.raises(DataError, match=r"class 'sour' is in y but not in `classes`"):
        sc.NaiveBayes(kinds=KINDS).partial_fit(frame, y, classes=["ripe"])


def test_classes_that_change_between_calls_are_refused():
    frame, y = fruit()
    model = sc.NaiveBayes(kinds=KINDS).partial_fit(frame, y, classes=["ripe", "sour"])
    model.partial_fit(frame, y, classes=["sour", "ripe"])
    with pytest.raises(DataError, match="first call of partial_fit"):
        model.partial_fit(frame, y, classes=["ripe", "sour", "rotten"])


def test_a_level_first_met_later_joins_the_others():
    frame, y = fruit()
    early, late = frame[frame.colour != "green"], frame[frame.colour == "green"]
    y = pd.Series(y)
    model = sc.NaiveBayes(kinds=KINDS).partial_fit(early, y[early.index].to_numpy())
    assert model.levels_["colour"] == ["blue", "red"]
    model.partial_fit(late, y[late.index].to_numpy())
    assert model.levels_["colour"] == ["blue", "green", "red"]
    same_model(model, sc.NaiveBayes(kinds=KINDS).fit(frame, y.to_numpy()), frame)


def test_a_column_without_any_value_in_the_first_batch_is_learned_from_the_next():
    frame, y = fruit()
    empty = frame[:10].assign(colour=None, size=np.nan, visits=np.nan)
    model = sc.NaiveBayes(kinds=KINDS).partial_fit(empty, y[:10]).partial_fit(frame[10:], y[10:])
    same_model(model, sc.NaiveBayes(kinds=KINDS).fit(pd.concat([empty, frame[10:]]), y), frame)


def test_what_the_first_row_made_odd_is_not_said_of_the_whole():
    frame, y = fruit()
    model = sc.NaiveBayes(kinds=KINDS).partial_fit(frame[:1], y[:1])
    assert any("only one class" in note for note in model.notes_)
    assert any("does not vary" in note for note in model.notes_)
    same = y == y[0]
    model.partial_fit(frame[same][1:], y[same][1:])
    assert not any("does not vary" in note for note in model.notes_)
    assert any("only one class" in note for note in model.notes_)


def test_a_later_batch_is_read_by_the_first_ones_kinds():
    frame, y = fruit()
    model = sc.NaiveBayes(kinds=KINDS).partial_fit(frame, y)
    with pytest.raises(DataError, match=r"'size'.*'2 or 3'"):
        model.partial_fit(with_cell(frame, "size", 2, "2 or 3"), y)
    with pytest.raises(DataError, match=r"'visits'"):
        model.partial_fit(frame.drop(columns="visits"), y)


def test_a_word_among_the_numbers_of_a_later_batch_is_missing_and_said():
    frame, y = fruit()
    model = sc.NaiveBayes(kinds=KINDS).partial_fit(frame, y)
    model.partial_fit(with_cell(frame, "size", 2, "many"), y)
    assert any("'size'" in note and "'many' (1): taken as missing" in note for note in model.notes_)
    gap = sc.NaiveBayes(kinds=KINDS).partial_fit(frame, y).partial_fit(with_cell(frame, "size", 2, None), y)
    np.testing.assert_array_equal(model.counts_["size"], gap.counts_["size"])


# Joining and forgetting


@pytest.mark.parametrize("name", FAMILIES)
def test_two_models_merged_are_the_model_of_both_tables_in_either_order(name):
    kinds = FAMILIES[name]
    X = FRAME[columns_of(kinds)]
    first, second = (sc.NaiveBayes(kinds=kinds).fit(X[rows], Y[rows]) for rows in batches([17]))
    whole = sc.NaiveBayes(kinds=kinds).fit(X, Y)
    same_model(first.merge(second), whole, X)
    same_model(second.merge(first), whole, X)


def test_merging_changes_neither_model():
    frame, y = fruit()
    first, second = sc.NaiveBayes(kinds=KINDS).fit(frame, y), sc.NaiveBayes(kinds=KINDS).fit(frame[:20], y[:20])
    before = [model.predict_proba(frame) for model in (first, second)]
    merged = first.merge(second)
    assert merged.class_count_.sum() == 80.0
    for model, expected in zip((first, second), before, strict=True):
        np.testing.assert_array_equal(model.predict_proba(frame), expected)


def test_models_of_different_classes_and_levels_merge_into_all_of_them():
    frame, y = fruit()
    renamed = frame.assign(colour=frame.colour.replace("green", "yellow"))
    first = sc.NaiveBayes(kinds=KINDS).fit(frame, y)
    second = sc.NaiveBayes(kinds=KINDS).fit(renamed, np.where(y == "sour", "rotten", y))
    merged = first.merge(second)
    assert merged.classes_.tolist() == ["ripe", "rotten", "sour"]
    assert merged.levels_["colour"] == ["blue", "green", "red", "yellow"]
    both = pd.concat([frame, renamed])
    whole = sc.NaiveBayes(kinds=KINDS).fit(both, np.concatenate([y, np.where(y == "sour", "rotten", y)]))
    same_model(merged, whole, both)


def test_a_merged_model_is_saved_and_loaded(tmp_path):
    frame, y = fruit()
    model = sc.NaiveBayes(kinds=KINDS).fit(frame, y)
    merged = model.merge(model)
    merged.save(tmp_path / "m.sc")
    np.testing.assert_array_equal(sc.load(tmp_path / "m.sc").predict_proba(frame), merged.predict_proba(frame))


def test_a_loaded_model_goes_on_learning(tmp_path):
    X = FRAME[columns_of(FAMILIES["all kinds"])]
    sc.NaiveBayes(kinds=FAMILIES["all kinds"]).fit(X[:20], Y[:20]).save(tmp_path / "m.sc")
    model = sc.load(tmp_path / "m.sc").partial_fit(X[20:], Y[20:])
    same_model(model, sc.NaiveBayes(kinds=FAMILIES["all kinds"]).fit(X, Y), X)


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=4, deadline=None)
@given(cut=st.integers(18, ROWS - 1))
def test_forgetting_rows_returns_to_the_model_without_them(name, cut):
    kinds = FAMILIES[name]
    X = FRAME[columns_of(kinds)]
    before = sc.NaiveBayes(kinds=kinds).fit(X[:cut], Y[:cut])
    model = sc.NaiveBayes(kinds=kinds).fit(X, Y).forget(X[cut:], Y[cut:])
    same_model(model, before, X, rtol=1e-12)


def test_forgetting_may_use_weights():
    frame, y = fruit()
    model = sc.NaiveBayes(kinds=KINDS).fit(frame, y, sample_weight=np.full(60, 2.0)).forget(frame, y)
    same_model(model, sc.NaiveBayes(kinds=KINDS).fit(frame, y), frame, rtol=1e-12)


FOREIGN = {
    "rows twice": lambda frame, y: (pd.concat([frame, frame]), np.concatenate([y, y])),
    "another class": lambda frame, y: (frame[:2], np.array(["rotten", "ripe"])),
    "another level": lambda frame, y: (frame[:2].assign(colour="violet"), y[:2]),
    "another number": lambda frame, y: (frame[:2].assign(size=1e6), y[:2]),
    "a larger count": lambda frame, y: (frame[:2].assign(visits=10**6), y[:2]),
    "all rows": lambda frame, y: (frame, y),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_forgetting_what_was_not_learned_is_refused_and_changes_nothing(name):
    frame, y = fruit()
    model = sc.NaiveBayes(kinds=KINDS).fit(frame, y)
    before = model.predict_proba(frame)
    with pytest.raises(DataError, match="forgotten"):
        model.forget(*FOREIGN[name](frame, y))
    np.testing.assert_array_equal(model.predict_proba(frame), before)
    assert model.levels_["colour"] == ["blue", "green", "red"]


def test_columns_and_families_must_match_to_be_merged():
    frame, y = fruit()
    model = sc.NaiveBayes(kinds=KINDS).fit(frame, y)
    with pytest.raises(DataError, match=r"different columns: .*'visits'"):
        model.merge(sc.NaiveBayes().fit(frame[["size", "colour"]], y))
    with pytest.raises(DataError, match=r"'visits' is normal in one model and poisson in the other"):
        model.merge(sc.NaiveBayes(kinds=KINDS | {"visits": "normal"}).fit(frame, y))
    with pytest.raises(DataError, match="not with Mixture"):
        model.merge(sc.Mixture(2, n_init=1).fit(frame))
    narrow, wide = (sc.NaiveBayes().fit(sparse.csr_matrix(np.ones((60, width))), y) for width in (3, 4))
    with pytest.raises(DataError, match="4 columns in one model and 3 in the other"):
        narrow.merge(wide)


def test_a_later_part_without_a_column_of_a_block_is_refused_by_name() -> None:
    table = {"a": ["x", "y", "x", "y"], "b": ["u", "u", "v", "v"]}
    model = sc.NaiveBayes(kinds={("a", "b"): "categorical"}).fit(table, [0, 1, 0, 1])
    with pytest.raises(sc.DataError, match=r"no column 'b', which the block \('a', 'b'\) needs"):
        model.partial_fit({"a": ["x"]}, [1])
