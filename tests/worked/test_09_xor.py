"""Worked example 9: XOR defeats naive Bayes, and neither a joint block of its two columns nor a mixture per class."""

import numpy as np
import pytest

import softcount as sc

TABLE = {"a": ["no", "no", "yes", "yes"] * 5, "b": ["no", "yes", "no", "yes"] * 5}
DIFFERENT = [a != b for a, b in zip(TABLE["a"], TABLE["b"], strict=True)]


@pytest.mark.parametrize("estimate", ["ml", "mean", "predictive"])
def test_naive_bayes_cannot_tell_the_classes_apart(estimate):
    model = sc.NaiveBayes(estimate=estimate).fit(TABLE, DIFFERENT)
    assert model.score(TABLE, DIFFERENT) == 0.5
    np.testing.assert_allclose(model.predict_proba(TABLE), 0.5, atol=1e-15)


@pytest.mark.parametrize("estimate", ["ml", "mean", "predictive"])
def test_a_joint_block_can(estimate):
    model = sc.NaiveBayes(kinds={("a", "b"): "categorical"}, estimate=estimate).fit(TABLE, DIFFERENT)
    assert model.score(TABLE, DIFFERENT) == 1.0


def test_the_joint_block_is_the_counted_table():
    model = sc.NaiveBayes(kinds={("a", "b"): "categorical"}, estimate="ml").fit(TABLE, DIFFERENT)
    assert model.levels_["a", "b"] == [("no", "no"), ("no", "yes"), ("yes", "no"), ("yes", "yes")]
    np.testing.assert_allclose(model.params_["a", "b"]["probability"], [[0.5, 0, 0, 0.5], [0, 0.5, 0.5, 0]])
    np.testing.assert_allclose(model.predict_proba(TABLE), np.eye(2)[np.array(DIFFERENT, dtype=int)])


def test_laplace_smooths_every_combination():
    model = sc.NaiveBayes(kinds={("a", "b"): "categorical"}).fit(TABLE, DIFFERENT)
    np.testing.assert_allclose(model.params_["a", "b"]["probability"][0], np.array([6, 1, 1, 6]) / 14)
    np.testing.assert_allclose(model.predict_proba(TABLE).max(axis=1), 6 / 7)


def test_with_one_cell_missing_the_block_says_nothing():
    model = sc.NaiveBayes(kinds={("a", "b"): "categorical"}).fit(TABLE, DIFFERENT)
    chances = model.predict_proba({"a": ["yes", None], "b": [None, None]})
    np.testing.assert_allclose(chances, 0.5, atol=1e-15)


def test_the_block_with_a_hole_in_training_counts_the_row_where_it_could_be():
    table = {"a": [*TABLE["a"], "no"], "b": [*TABLE["b"], None]}
    model = sc.NaiveBayes(kinds={("a", "b"): "categorical"}, estimate="ml").fit(table, [*DIFFERENT, False])
    # class False: five (no, no), five (yes, yes) and one (no, ?), which can only be (no, no)
    np.testing.assert_allclose(model.params_["a", "b"]["probability"][0], np.array([6, 0, 0, 5]) / 11, atol=1e-12)


def per_class(estimate, components=2):
    """A mixture of each class: a row's class is the one whose share times density is largest."""
    parts = {}
    for name in (False, True):
        rows = [i for i, different in enumerate(DIFFERENT) if different == name]
        table = {key: [values[i] for i in rows] for key, values in TABLE.items()}
        mixture = sc.Mixture(components, estimate=estimate, random_state=0).fit(table)
        parts[name] = np.log(len(rows) / len(DIFFERENT)) + mixture.score_samples(TABLE)
    return np.stack([parts[False], parts[True]], axis=1)


@pytest.mark.parametrize("estimate", ["ml", "mean"])
def test_a_mixture_per_class_can(estimate):
    joint = per_class(estimate)
    np.testing.assert_array_equal(joint.argmax(axis=1).astype(bool), DIFFERENT)


def test_a_mixture_per_class_finds_the_counted_table():
    joint = np.exp(per_class("ml"))
    wanted = np.where(np.array(DIFFERENT)[:, None] == [False, True], 0.25, 0.0)
    np.testing.assert_allclose(joint, wanted, atol=1e-9)


def test_one_component_per_class_is_naive_bayes_and_cannot():
    np.testing.assert_allclose(np.diff(per_class("ml", components=1), axis=1), 0.0, atol=1e-12)


@pytest.mark.parametrize("estimate", ["ml", "mean", "map"])
@pytest.mark.parametrize("edges", ["tan", "joint"])
def test_a_tree_augmented_network_and_the_whole_joint_can(edges, estimate):
    net = sc.BayesNet(edges, estimate=estimate).fit(TABLE, DIFFERENT)
    assert net.score(TABLE, DIFFERENT) == 1.0
    assert net.classes_.tolist() == [False, True]


def test_a_naive_network_cannot():
    net = sc.BayesNet("naive").fit(TABLE, DIFFERENT)
    np.testing.assert_allclose(net.predict_proba(TABLE), 0.5, atol=1e-15)


def test_so_can_they_by_the_names_of_their_own():
    assert sc.BayesNet.tan(TABLE, DIFFERENT).score(TABLE, DIFFERENT) == 1.0
    assert sc.BayesNet.joint(TABLE, DIFFERENT).score(TABLE, DIFFERENT) == 1.0


def around(rows=300):
    """The four corners with some noise: XOR of numbers."""
    rng = np.random.default_rng(9)
    corner = rng.integers(0, 2, size=(2, rows))
    table = dict(zip("ab", corner + 0.15 * rng.normal(size=(2, rows)), strict=True))
    return table, corner[0] != corner[1]


def test_a_mixture_within_each_class_can_where_the_columns_are_one_block():
    table, different = around()
    naive = sc.NaiveBayes().fit(table, different)
    parts = sc.NaiveBayes(kinds={("a", "b"): sc.families.Mixed("normal", 2)}).fit(table, different)
    assert naive.score(table, different) < 0.65
    assert parts.score(table, different) >= 0.99
    means = np.round(parts.params_["a", "b"]["mean"])
    np.testing.assert_array_equal(means, [[[0, 0], [1, 1]], [[0, 1], [1, 0]]])


def test_a_mixture_within_each_class_cannot_column_by_column():
    table, different = around()
    assert sc.NaiveBayes(kinds=sc.families.Mixed("normal", 2)).fit(table, different).score(table, different) < 0.65
