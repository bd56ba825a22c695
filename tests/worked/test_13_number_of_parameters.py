"""Worked example 13: how many parameters a model has, and a table refused for being too large."""

import tracemalloc

import numpy as np
import pytest

import softcount as sc
from softcount.errors import ResourceError


def table_of(n, levels, rows=None):
    """n columns in which every level occurs."""
    rng = np.random.default_rng(n)
    rows = rows or 4 * levels
    return {f"x{j}": rng.permutation(np.arange(rows) % levels).astype(str).tolist() for j in range(n)}


def labels(k, rows):
    return [i % k for i in range(rows)]


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_boolean_naive_bayes_has_two_per_attribute_and_one(n):
    model = sc.NaiveBayes().fit(table_of(n, 2), labels(2, 8))
    assert model.n_parameters_ == 2 * n + 1


@pytest.mark.parametrize("n", [1, 2, 5])
def test_they_come_from_four_counts_per_attribute_and_three(n):
    """Each attribute is counted for 2 values in 2 classes; each class is counted, and so are the rows."""
    counts = sc.NaiveBayes().fit(table_of(n, 2), labels(2, 8)).counts_
    numbers = sum(counts[name].size for name in counts) + 1
    assert numbers == 4 * n + 3
    assert counts.rows == counts["(groups)"].sum() == 8


@pytest.mark.parametrize(("k", "n", "m"), [(2, 3, 2), (3, 4, 5), (4, 1, 3), (5, 7, 4)])
def test_k_classes_of_n_attributes_of_m_values(k, n, m):
    table = table_of(n, m, 20)
    model = sc.NaiveBayes().fit(table, labels(k, 20))
    assert model.n_parameters_ == k * n * (m - 1) + k - 1
    mixture = sc.Mixture(k, n_init=1, max_iter=1, random_state=0).fit(table)
    assert mixture.n_parameters_ == k * n * (m - 1) + k - 1


@pytest.mark.parametrize("n", [2, 3, 6])
def test_the_full_joint_table_of_attributes_and_class(n):
    """A joint block per class is the whole joint: 2^(n+1) - 1."""
    block = tuple(f"x{j}" for j in range(n))
    model = sc.NaiveBayes(kinds={block: "categorical"}).fit(table_of(n, 2), labels(2, 8))
    assert model.n_parameters_ == 2 ** (n + 1) - 1


@pytest.mark.parametrize(
    ("family", "free"),
    [
        (sc.families.Normal(), 6 + 6),
        (sc.families.Normal(tied="classes"), 6 + 2),
        (sc.families.Normal(tied="columns"), 6 + 3),
        (sc.families.Normal(tied="both"), 6 + 1),
        (sc.families.Normal(variance=2.0), 6),
    ],
)
def test_a_shared_variance_is_one_parameter(family, free):
    X = np.random.default_rng(1).normal(size=(30, 2))
    assert sc.NaiveBayes(kinds=family).fit(X, labels(3, 30)).n_parameters_ == free + 2


def test_bic_uses_them():
    table = table_of(3, 3, 30)
    mixture = sc.Mixture(2, n_init=2, random_state=0, estimate="ml").fit(table)
    wanted = -2 * mixture.log_likelihood_ + mixture.n_parameters_ * np.log(30)
    assert mixture.bic(table) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("estimator", [sc.NaiveBayes, sc.Mixture])
def test_thirty_booleans_in_one_table_are_refused_before_anything_is_allocated(estimator):
    table = table_of(30, 2)
    block = tuple(table)
    tracemalloc.start()
    try:
        with pytest.raises(ResourceError, match="joint table of 30 columns"):
            estimator(kinds={block: "categorical"}).fit(table, labels(2, 8))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 50_000_000, f"{most:,} bytes were asked for before the refusal"


def test_the_refusal_says_how_many_cells_and_what_to_do():
    with pytest.raises(sc.SoftcountError, match=r"[0-9,]{13,} cells.*Split the block"):
        sc.NaiveBayes(kinds={tuple(f"x{j}" for j in range(30)): "categorical"}).fit(table_of(30, 2), labels(2, 8))


# Networks


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_naive_network_has_as_many_as_naive_bayes(n):
    table, names = table_of(n, 2), labels(2, 8)
    assert sc.BayesNet("naive").fit(table, names).n_parameters_ == 2 * n + 1
    assert sc.BayesNet("joint").fit(table, names).n_parameters_ == 2 ** (n + 1) - 1


def test_each_column_of_a_tree_augmented_network_has_one_parent_more():
    k, n, m = 3, 4, 5
    net = sc.BayesNet("tan").fit(table_of(n, m, 60), labels(k, 60))
    assert net.n_parameters_ == (k - 1) + k * (m - 1) + (n - 1) * k * m * (m - 1)


def test_the_whole_joint_of_thirty_booleans_is_refused_before_anything_is_allocated():
    table = table_of(30, 2)
    tracemalloc.start()
    try:
        with pytest.raises(sc.SoftcountError, match=r"1,073,741,824 cells|2,147,483,648 cells"):
            sc.BayesNet.joint(table, labels(2, 8))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 50_000_000, f"{most:,} bytes were asked for before the refusal"
