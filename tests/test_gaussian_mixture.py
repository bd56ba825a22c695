"""GaussianMixture: scikit-learn's names and shapes, starts, labels with gaps, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import softcount as sc
from small_tables import fruit, refused
from softcount.estimators.gaussian_mixture import CHOSEN_FROM
from softcount.estimators.result_frames import arrow_of as arrow
from softcount.learn.record import Trial

SHAPES = {"full": (2, 3, 3), "tied": (3, 3), "diag": (2, 3), "spherical": (2,), "tied_diag": (3,), "tied_spherical": ()}
TYPES = list(SHAPES)


def rows(seed: int = 0, size: int = 90) -> np.ndarray:
    """Two groups of points in three columns."""
    rng = np.random.default_rng(seed)
    side = np.where(np.arange(size) % 3 == 0, 4.0, -1.0)[:, None]
    return side + rng.normal(size=(size, 3)) @ np.array([[1.0, 0.3, 0.0], [0.0, 0.8, 0.2], [0.0, 0.0, 0.6]])


X = rows()
TRUTH = np.where(np.arange(90) % 3 == 0, "high", "low")


def mixture(kind="full", components=2, **how):
    return sc.GaussianMixture(components, kind, **{"random_state": 0, "n_init": 2, **how})


# Names and shapes


@pytest.mark.parametrize("kind", TYPES)
def test_what_was_learned_has_the_names_and_shapes_of_scikit_learn(kind):
    model = mixture(kind).fit(X)
    assert model.means_.shape == (2, 3) and model.weights_.shape == (2,)
    for learned in (model.covariances_, model.precisions_, model.precisions_cholesky_):
        assert np.shape(learned) == SHAPES[kind]
    assert model.n_features_in_ == 3 and model.n_components_ == 2
    assert model.converged_ and model.n_iter_ == len(model.trace_) - 1
    assert model.lower_bound_ == pytest.approx(model.score(X), rel=1e-12)
    assert model.lower_bound_ * 90 == pytest.approx(model.log_likelihood_, rel=1e-12)
    assert model.icl(X) >= model.bic(X)


@pytest.mark.parametrize("kind", TYPES)
def test_precisions_are_inverses(kind):
    model = mixture(kind).fit(X)
    if kind in ("full", "tied"):
        product = model.covariances_ @ model.precisions_
        np.testing.assert_allclose(product, np.broadcast_to(np.eye(3), product.shape), atol=1e-10)
        assert np.array_equal(model.precisions_cholesky_, np.triu(model.precisions_cholesky_))
    else:
        np.testing.assert_allclose(model.covariances_ * model.precisions_, 1.0, rtol=1e-12)


FREE = {"full": 12 + 6 + 1, "tied": 6 + 6 + 1, "diag": 6 + 6 + 1, "spherical": 6 + 2 + 1}
FREE |= {"tied_diag": 6 + 3 + 1, "tied_spherical": 6 + 1 + 1}


@pytest.mark.parametrize("kind", TYPES)
def test_free_parameters_are_counted(kind):
    assert mixture(kind).fit(X).n_parameters_ == FREE[kind]


@pytest.mark.parametrize("kind", TYPES)
def test_parameters_are_natural_too(kind):
    model = mixture(kind).fit(pd.DataFrame(X, columns=["a", "b", "c"]))
    if kind in ("full", "tied"):
        assert list(model.params_) == [("a", "b", "c")]
        np.testing.assert_array_equal(model.params_["a", "b", "c"]["mean"], model.means_)
    else:
        assert list(model.params_) == ["a", "b", "c"]
        np.testing.assert_array_equal(model.params_["b"]["mean"], model.means_[:, 1])
    assert model.query("a", {"b": 4.0}).mean > model.query("a", {"b": -1.0}).mean


@pytest.mark.parametrize("kind", TYPES)
def test_a_sample_is_rows_and_the_components_they_came_from(kind):
    model = mixture(kind).fit(X)
    drawn, components = model.sample(4000, random_state=1)
    assert drawn.shape == (4000, 3) and components.shape == (4000,)
    assert np.mean(components == 0) == pytest.approx(model.weights_[0], abs=0.03)
    np.testing.assert_allclose(drawn[components == 1].mean(axis=0), model.means_[1], atol=0.15)
    again, _ = model.sample(4000, random_state=1)
    np.testing.assert_array_equal(drawn, again)
    held, _ = model.sample(50, given={0: 4.0}, random_state=1)
    assert (held[:, 0] == 4.0).all()


def test_fit_predict_is_fit_then_predict():
    np.testing.assert_array_equal(mixture().fit_predict(X), mixture().fit(X).predict(X))


# What may be a column


@pytest.mark.parametrize("kind", TYPES)
def test_single_precision_rows_are_the_numbers_they_are(kind):
    single = X.astype(np.float32)
    one, other = mixture(kind).fit(single), mixture(kind).fit(single.astype(float))
    np.testing.assert_allclose(one.means_, other.means_, rtol=1e-12)
    np.testing.assert_allclose(one.predict_proba(single), other.predict_proba(single.astype(float)), atol=1e-12)


def test_whole_numbers_and_truths_are_numbers():
    frame = pd.DataFrame({"n": np.arange(60) % 7, "b": np.arange(60) % 2 == 0, "c": 1})
    plain = mixture("tied").fit(frame.astype(float))
    np.testing.assert_array_equal(mixture("tied").fit(frame).means_, plain.means_)
    assert plain.means_.shape == (2, 3)


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_words_are_refused_by_column_with_a_word_on_mixture(kind):
    frame, _ = fruit()
    refused(lambda: mixture(kind).fit(frame), "'colour'", "row 1", "Mixture")
    refused(lambda: mixture(kind).fit(np.array([["a"], ["b"]])), "column 0", "row 1", "Mixture")


def test_sparse_rows_are_refused():
    refused(lambda: mixture().fit(sparse.csr_matrix(np.eye(5))), "[Ss]parse", "toarray")


def test_a_file_and_a_table_opened_without_a_column_are_taken(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(name="x")
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = sc.read(tmp_path / "t.csv", kinds={"name": "ignore"})
    model = mixture().fit(table)
    np.testing.assert_allclose(model.means_, mixture().fit(X).means_, rtol=1e-9)


# Labels with gaps


def gaps(every: int = 6) -> np.ndarray:
    return np.where(np.arange(90) % every < 2, TRUTH, None)


@pytest.mark.parametrize("kind", TYPES)
def test_known_rows_stay_in_their_class_and_components_have_its_place(kind):
    model = mixture(kind).fit(X, gaps())
    assert model.classes_.tolist() == ["high", "low"]
    assert model.means_[0].min() > 2.0 > model.means_[1].max()
    np.testing.assert_array_equal(model.predict(X), TRUTH)


def test_labels_hold_against_what_the_numbers_say():
    y = np.where(np.arange(90) % 6 < 2, np.where(TRUTH == "high", "b", "a"), None)
    assert mixture().fit(X, y).means_[0].max() < mixture().fit(X, y).means_[1].min()
    swapped = np.full(90, None, dtype=object)
    swapped[[0, 1]] = "a", "a"  # one of each group, both said to be a
    model = mixture(n_init=5).fit(X, swapped)
    counts = model.counts_["(groups)"]
    assert counts.sum() == pytest.approx(90.0)
    members = model.predict_proba(X)
    assert counts[0] == pytest.approx(members[2:, 0].sum() + 2.0, abs=1e-3)  # pinned, whatever their density


def test_a_column_of_the_table_may_hold_the_labels(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    apart = mixture().fit(frame, gaps())
    inside = mixture().fit(frame.assign(side=gaps()), "side")
    np.testing.assert_array_equal(inside.means_, apart.means_)
    assert inside.classes_.tolist() == ["high", "low"] and inside.feature_names_in_.tolist() == ["a", "b", "c"]
    frame.assign(side=gaps()).to_csv(tmp_path / "t.csv", index=False)
    assert mixture().fit(tmp_path / "t.csv", "side").classes_.tolist() == ["high", "low"]


def test_labels_without_a_gap_are_not_used_and_this_is_said():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    plain = mixture().fit(frame)
    for model in (mixture().fit(frame, TRUTH), mixture().fit(frame.assign(side=TRUTH), "side")):
        np.testing.assert_array_equal(model.means_, plain.means_)
        assert any("not used" in note and "NaiveBayes" in note for note in model.notes_)
        assert not hasattr(model, "classes_")
    assert not hasattr(mixture().fit(X, [None] * 90), "classes_")
    mixture().fit(X, X[:, 0])  # numbers that are no labels are not used either


def test_more_classes_than_components_are_refused():
    y = np.where(np.arange(90) % 6 < 4, np.arange(90) % 4, np.nan)
    refused(lambda: mixture().fit(X, y), "4 classes", "at least 4")
    refused(lambda: mixture().fit(pd.DataFrame(X).assign(y=y).rename(columns=str), "y"), "4", "at least")
    assert mixture(components=5).fit(X, y).n_components_ == 5


def test_a_class_of_rows_without_weight_does_not_exist():
    y, weights = gaps(), np.ones(90)
    y[5] = "odd"
    weights[5] = 0.0
    model = mixture().fit(X, y, sample_weight=weights)
    assert model.classes_.tolist() == ["high", "low"]
    keep = weights > 0
    np.testing.assert_allclose(model.means_, mixture().fit(X[keep], y[keep]).means_, rtol=1e-9)


def test_mixtures_of_mixed_columns_take_labels_with_gaps_too():
    frame, labels = fruit()
    y = np.where(np.arange(60) % 3 == 0, labels, None)
    model = sc.Mixture(2, random_state=0, n_init=2).fit(frame, y)
    assert model.classes_.tolist() == ["ripe", "sour"]
    assert np.mean(model.predict(frame) == labels) > 0.6
    assert set(model.query("(class)", {"colour": "red"})) == {"ripe", "sour"}


# Starts


def test_means_to_start_from_keep_their_order():
    model = mixture(means_init=[[-1.0] * 3, [4.0] * 3]).fit(X)
    assert model.means_[0].max() < model.means_[1].min()
    assert model.agreed_ == (1, 1)


@pytest.mark.parametrize("kind", TYPES)
def test_a_start_from_means_alone_is_the_whole_tables_spread_and_equal_shares(kind):
    start = mixture(kind, means_init=[[-1.0] * 3, [4.0] * 3], max_iter=0).fit(X)
    np.testing.assert_allclose(start.weights_, 0.5)
    np.testing.assert_allclose(start.means_, [[-1.0] * 3, [4.0] * 3], rtol=1e-12)
    variances = X.var(axis=0)
    wanted = {"full": [np.diag(variances)] * 2, "tied": np.diag(variances), "diag": [variances] * 2}
    wanted |= {"tied_diag": variances, "spherical": [variances.mean()] * 2, "tied_spherical": variances.mean()}
    np.testing.assert_allclose(start.covariances_, wanted[kind], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", TYPES)
def test_a_start_from_what_a_model_learned_is_that_model(kind):
    known = mixture(kind, max_iter=3, tol=0.0).fit(X)
    start = {"weights_init": known.weights_, "means_init": known.means_, "precisions_init": known.precisions_}
    again = mixture(kind, max_iter=0, **start).fit(X)
    assert again.log_likelihood_ == pytest.approx(known.log_likelihood_, rel=1e-12)


def test_a_warm_start_goes_on_where_the_last_fit_stopped():
    cold = mixture(max_iter=4, tol=0.0, accelerate=False, n_init=1)
    cold.fit(X)
    warm = mixture(max_iter=2, tol=0.0, accelerate=False, n_init=1, warm_start=True)
    first = list(warm.fit(X).trace_)
    second = list(warm.fit(X).trace_)
    assert first[-1] <= second[0] <= second[-1]
    np.testing.assert_allclose([*first, *second], [*cold.trace_, second[-1]], rtol=1e-12)


INITS = {
    "k-means++": "k-means++",
    "random": "random",
    "k-means": "k-means",
    "agglomerative": "agglomerative",
    "labels": (TRUTH == "high").astype(int),
    "memberships": np.where((TRUTH == "high")[:, None], [[0.9, 0.1]], [[0.1, 0.9]]),
    "a model": mixture("diag").fit(X + 0.1),
    "parameters": {"weights": [0.3, 0.7], **{j: {"mean": [4.0, -1.0], "variance": [1.0, 2.0]} for j in range(3)}},
}


@pytest.mark.parametrize("name", INITS)
def test_every_start_of_mixtures_is_taken(name):
    model = mixture("diag", init=INITS[name], n_init=4).fit(X)
    assert model.log_likelihood_ == pytest.approx(mixture("diag").fit(X).log_likelihood_, rel=1e-6)


def test_the_start_says_how_many_components_where_nobody_does():
    for name in ("memberships", "a model", "parameters"):
        assert mixture("diag", components="auto", init=INITS[name]).fit(X).n_components_ == 2
    assert mixture(components="auto", means_init=[[-1.0] * 3, [4.0] * 3, [0.0] * 3]).fit(X).n_components_ == 3
    labels = np.where(np.arange(90) < 20, TRUTH == "high", np.nan)
    assert mixture(components="auto", init=labels).fit(X).n_components_ == 2


# What is held


@pytest.mark.parametrize("kind", TYPES)
def test_covariances_can_be_held_as_one_number(kind):
    model = mixture(kind, fixed={"covariances": 1.5}).fit(X)
    wanted = {"full": [1.5 * np.eye(3)] * 2, "tied": 1.5 * np.eye(3)}.get(kind, np.full(SHAPES[kind], 1.5))
    np.testing.assert_allclose(model.covariances_, wanted, rtol=1e-12, atol=1e-12)
    assert model.n_parameters_ == 6 + 1


@pytest.mark.parametrize("kind", TYPES)
def test_covariances_can_be_held_in_the_shape_they_have(kind):
    learned = mixture(kind).fit(X[:60]).covariances_
    model = mixture(kind, fixed={"covariances": learned}).fit(X)
    np.testing.assert_allclose(model.covariances_, learned, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", TYPES)
def test_means_and_weights_can_be_held(kind):
    means = np.array([[4.0, 3.9, 3.8], [-1.0, -1.1, -1.2]])
    model = mixture(kind, fixed={"weights": [0.25, 0.75], "means": means}).fit(X)
    np.testing.assert_allclose(model.means_, means, rtol=1e-12)
    np.testing.assert_allclose(model.weights_, [0.25, 0.75], rtol=1e-12)
    assert model.n_parameters_ == FREE[kind] - 6 - 1
    scatter = (X[TRUTH == "high"] - means[0]) ** 2  # a held mean is what the variance is around
    if kind == "diag":
        np.testing.assert_allclose(model.covariances_[0], scatter.mean(axis=0), rtol=1e-2)


@pytest.mark.parametrize("kind", TYPES)
def test_one_covariance_can_be_held_while_the_number_is_looked_for(kind):
    model = mixture(kind, components="auto", n_init=1, fixed={"covariances": 1.5}).fit(X)
    assert model.n_components_ == 2
    np.testing.assert_allclose(np.max(model.covariances_), 1.5)
    refused(lambda: mixture(kind, components="auto", fixed={"means": [[1.0] * 3]}).fit(X), "means", "n_components")
    refused(lambda: mixture(kind, components="auto", fixed={"weights": [1.0]}).fit(X), "weights", "n_components")


# The number of components


@pytest.mark.parametrize("criterion", ["bic", "icl", "evidence", "cv"])
def test_the_number_of_components_is_found_and_shown(criterion):
    model = mixture("tied", components="auto", criterion=criterion, n_init=1).fit(X)
    assert model.n_components_ == 2
    assert isinstance(model.selection_, pd.DataFrame)
    table = arrow(model.selection_)
    assert table["classes"].to_pylist()[:2] == [1, 2]
    assert {"log_likelihood", "n_parameters", "bic", "icl", "evidence", "cv", "reached"} <= set(table.column_names)
    assert mixture(max_iter=1).fit(X).selection_ is None


def test_known_classes_are_the_least_number():
    y = np.where(np.arange(90) % 6 < 4, np.arange(90) % 3, np.nan)
    model = mixture("tied", components="auto", n_init=1).fit(X, y)
    assert model.n_components_ >= 3
    assert model.classes_.tolist() == [0.0, 1.0, 2.0]


# What is refused

BAD = {
    "covariance_type": ["round", None, 3, "Full"],
    "n_components": [0, "two", 1.5, None],
    "criterion": ["aic", None, 3],
    "assign": ["firm", None],
    "finish": ["newton", True],
    "half_steps": ["yes", 1, None],
    "verbose": ["loud", 2],
    "warm_start": ["yes", None],
    "accelerate": ["yes", None],
    "estimate": ["banana"],
    "init": ["banana", 5, None],
    "fixed": [{"variances": 1.0}, {"covariances": -1.0}, {"covariances": [1.0, 2.0, 3.0, 4.0]}, 3],
    "means_init": [[[1.0, 2.0]], [[math.nan] * 3] * 2, "far apart"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_a_setting_that_means_nothing_is_refused_by_name(name, value):
    refused(lambda: sc.GaussianMixture(**{"n_components": 2, "n_init": 1, name: value}).fit(X), name)


def test_starts_that_make_no_sense_are_refused():
    means = [[-1.0] * 3, [4.0] * 3]
    refused(lambda: mixture(weights_init=[0.5, 0.5]).fit(X), "means_init")
    refused(lambda: mixture(means_init=means, weights_init=[0.5, 0.6]).fit(X), "sum to one")
    refused(lambda: mixture(means_init=means, precisions_init=np.zeros((2, 3, 3))).fit(X), "precisions_init", "pos")
    refused(lambda: mixture("diag", means_init=means, precisions_init=-np.ones((2, 3))).fit(X), "precisions_init")
    refused(lambda: mixture(means_init=means, precisions_init=np.ones(2)).fit(X), "precisions_init", r"\(2, 3, 3\)")
    refused(lambda: mixture(fixed={"weights": [0.5, 0.6]}).fit(X), "weights")
    refused(lambda: mixture(fixed={"means": [[1.0, 2.0]]}).fit(X), "means", r"\(2, 3\)")


# Files


@pytest.mark.parametrize("kind", TYPES)
def test_a_saved_mixture_comes_back(kind, tmp_path):
    model = mixture(kind, means_init=[[4.0] * 3, [-1.0] * 3], verbose=False).fit(X, gaps())
    model.save(tmp_path / "m.sc")
    again = sc.load(tmp_path / "m.sc")
    assert type(again) is sc.GaussianMixture and again.covariance_type == kind
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.covariances_, model.covariances_)
    assert again.trace_ == model.trace_ and again.classes_.tolist() == ["high", "low"]
    assert again.n_parameters_ == model.n_parameters_ and again.lower_bound_ == model.lower_bound_


def test_what_was_tried_held_and_shown_by_halves_comes_back(tmp_path):
    model = mixture("tied_diag", components="auto", n_init=1).fit(X)
    model.save(tmp_path / "auto.sc")
    again = sc.load(tmp_path / "auto.sc")
    assert again.selection_.equals(model.selection_)
    assert again.n_components == "auto" and again.n_components_ == 2
    assert all(isinstance(trial, Trial) for trial in again.fitted_.selection)
    held = mixture("diag", fixed={"weights": [0.5, 0.5], "covariances": np.ones((2, 3))}, half_steps=True, max_iter=3)
    held.fit(X).save(tmp_path / "held.sc")
    again = sc.load(tmp_path / "held.sc")
    assert again.n_iter_ == held.n_iter_ and again.trace_ == held.trace_
    assert again.n_parameters_ == held.n_parameters_
    assert again.fit(X).weights_.tolist() == [0.5, 0.5]
    np.testing.assert_allclose(again.covariances_, 1.0)


# -- the type of covariance, where nobody says


def drawn_heaps(kind):
    """Three heaps of rows of a type of covariance."""
    rng = np.random.default_rng(0)
    slant = np.array([[1.0, 0.9], [0.0, 0.3]])
    turns = {"tied": [slant] * 3, "full": [slant, slant[:, ::-1], 0.3 * np.eye(2)], "spherical": [np.eye(2) * 0.5] * 3}
    centres = ([0, 0], [8, 0], [0, 8])
    return np.concatenate([rng.normal(size=(80, 2)) @ turn + at for turn, at in zip(turns[kind], centres, strict=True)])


@pytest.mark.parametrize("kind", ["tied", "full", "spherical"])
def test_the_type_of_covariance_is_chosen_with_the_number(kind):
    points = drawn_heaps(kind)
    found = sc.GaussianMixture("auto", random_state=0).fit(points)
    assert (found.covariance_type_, found.n_components_) == (kind, 3)
    given = {name: sc.GaussianMixture("auto", name, random_state=0).fit(points) for name in CHOSEN_FROM}
    assert min(given, key=lambda name: given[name].bic(points)) == kind
    np.testing.assert_allclose(found.bic(points), given[kind].bic(points), rtol=1e-9)
    said = [note for note in found.notes_ if note.startswith(f"covariance_type='{kind}' is chosen by the BIC")]
    assert len(said) == 1 and all(repr(name) in said[0] for name in CHOSEN_FROM)


def test_with_a_given_number_no_type_means_full():
    points = drawn_heaps("tied")
    plain, full = (sc.GaussianMixture(3, *kind, random_state=0).fit(points) for kind in ((), ("full",)))
    assert plain.get_params()["covariance_type"] == "auto" and plain.covariance_type_ == "full"
    np.testing.assert_array_equal(plain.covariances_, full.covariances_)
    warm = sc.GaussianMixture("auto", warm_start=True, random_state=0).fit(points)
    assert warm.fit(points).covariance_type_ == "tied"


def test_a_chosen_type_is_saved(tmp_path):
    points = drawn_heaps("tied")
    found = sc.GaussianMixture("auto", random_state=0).fit(points)
    found.save(tmp_path / "chosen.sc")
    again = sc.load(tmp_path / "chosen.sc")
    assert again.covariance_type_ == "tied"
    np.testing.assert_array_equal(again.covariances_, found.covariances_)


def test_memberships_are_a_step_of_a_pipeline():
    points = drawn_heaps("full")
    mixture = sc.GaussianMixture(3, random_state=0).fit(points)
    np.testing.assert_array_equal(mixture.transform(points), mixture.predict_proba(points))
    assert list(mixture.get_feature_names_out()) == [f"gaussianmixture{k}" for k in range(3)]
    named = sc.Mixture(3, random_state=0).set_output(transform="pandas").fit_transform(points)
    assert list(named.columns) == ["mixture0", "mixture1", "mixture2"]
    piped = make_pipeline(sc.Mixture(3, random_state=0), LogisticRegression()).fit(points, np.repeat([0, 1, 2], 80))
    assert piped.score(points, np.repeat([0, 1, 2], 80)) > 0.99
