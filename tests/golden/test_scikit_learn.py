"""scikit-learn's naive Bayes classifiers, reproduced to 1e-10 where the settings mean the same."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from sklearn.preprocessing import OrdinalEncoder

import softcount as sc

SEEDS = range(4)
ALPHAS = [1.0, 0.5, 2.5]
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def labels(rng, rows, classes=3):
    """Every class at least six times, in no order, of unequal sizes."""
    several = np.repeat(np.arange(classes), 6)
    return rng.permutation(np.concatenate([several, rng.integers(classes - 1, size=rows - len(several))]))


def weights(rng, rows, weighted):
    """Row weights, some of them zero but not in the first rows; None for no weights."""
    if not weighted:
        return None
    made = rng.exponential(size=rows)
    made[rows // 2 :: 7] = 0
    return made


def codes(rng, rows, widths):
    """Integer codes; each level is in the first rows of every column, which have weight."""
    columns = [np.concatenate([np.arange(m), rng.integers(m, size=rows - m)]) for m in widths]
    return np.stack(columns, axis=1)


def same_probabilities(ours, theirs, X, our_X=None):
    shown = X if our_X is None else our_X
    np.testing.assert_allclose(ours.predict_proba(shown), theirs.predict_proba(X), **CLOSE)
    np.testing.assert_allclose(ours.predict_log_proba(shown), theirs.predict_log_proba(X), rtol=1e-10, atol=1e-9)
    assert (ours.predict(shown) == theirs.predict(X)).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_gaussian(seed, weighted):
    rng = np.random.default_rng(seed)
    y = labels(rng, 80)
    X = rng.normal(size=(80, 5)) * 10.0 ** rng.integers(-3, 4, size=5) + y[:, None]
    w = weights(rng, 80, weighted)
    theirs = GaussianNB(var_smoothing=0).fit(X, y, w)
    ours = sc.NaiveBayes(estimate="ml").fit(X, y, w)
    same_probabilities(ours, theirs, X)
    means = np.stack([ours.params_[j]["mean"] for j in range(5)], axis=1)
    variances = np.stack([ours.params_[j]["variance"] for j in range(5)], axis=1)
    np.testing.assert_allclose(means, theirs.theta_, rtol=1e-10)
    np.testing.assert_allclose(variances, theirs.var_, rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("seed", SEEDS)
def test_categorical_codes(seed, alpha, weighted):
    rng = np.random.default_rng(seed)
    X, y, w = codes(rng, 90, [2, 3, 5, 8]), labels(rng, 90), weights(rng, 90, weighted)
    theirs = CategoricalNB(alpha=alpha).fit(X, y, w)
    ours = sc.NaiveBayes(kinds="categorical", prior=alpha).fit(X, y, w)
    same_probabilities(ours, theirs, X)
    for j in range(4):
        np.testing.assert_allclose(np.log(ours.params_[j]["probability"]), theirs.feature_log_prob_[j], **CLOSE)
        np.testing.assert_allclose(ours.counts_[j], theirs.category_count_[j], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_categorical_strings_are_the_codes(seed, weighted):
    rng = np.random.default_rng(seed)
    words = np.array(["amber", "beige", "coral", "denim", "ebony"])
    X, w = words[codes(rng, 70, [5, 4, 3])], weights(rng, 70, weighted)
    y = np.array(["no", "perhaps", "yes"])[labels(rng, 70)]
    coded = OrdinalEncoder().fit_transform(X).astype(int)
    theirs = CategoricalNB(alpha=0.7).fit(coded, y, w)
    for shown in (X, X.astype(object), pd.DataFrame(X, columns=["a", "b", "c"])):
        ours = sc.NaiveBayes(prior=0.7).fit(shown, y, w)
        assert ours.classes_.tolist() == theirs.classes_.tolist()
        same_probabilities(ours, theirs, coded, shown)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("seed", SEEDS)
def test_bernoulli(seed, alpha, weighted):
    rng = np.random.default_rng(seed)
    X, y, w = codes(rng, 60, [2] * 6), labels(rng, 60), weights(rng, 60, weighted)
    theirs = BernoulliNB(alpha=alpha).fit(X, y, w)
    for shown in (X, X.astype(bool), X.astype(float)):
        ours = sc.NaiveBayes(kinds="bernoulli", prior=alpha).fit(shown, y, w)
        same_probabilities(ours, theirs, X, shown)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("seed", SEEDS)
def test_multinomial_dense_and_sparse(seed, alpha, weighted):
    rng = np.random.default_rng(seed)
    y, w = labels(rng, 60), weights(rng, 60, weighted)
    X = rng.poisson(rng.exponential(size=(3, 12))[y])
    theirs = MultinomialNB(alpha=alpha).fit(X, y, w)
    dense = sc.NaiveBayes(kinds="multinomial", prior=alpha).fit(X, y, w)
    same_probabilities(dense, theirs, X)
    bag = sc.NaiveBayes(prior=alpha).fit(sparse.csr_matrix(X), y, w)
    same_probabilities(bag, theirs, sparse.csr_matrix(X))
    np.testing.assert_allclose(bag.predict_proba(sparse.csc_matrix(X)), theirs.predict_proba(X), **CLOSE)


@pytest.mark.parametrize("shares", ["uniform", [0.2, 0.5, 0.3]])
def test_class_shares_given(shares):
    rng = np.random.default_rng(9)
    X, y = codes(rng, 50, [3, 4]), labels(rng, 50)
    fixed = {"fit_prior": False} if shares == "uniform" else {"class_prior": shares}
    theirs = CategoricalNB(**fixed).fit(X, y)
    same_probabilities(sc.NaiveBayes(kinds="categorical", class_prior=shares).fit(X, y), theirs, X)


def test_rows_never_seen_in_training():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(40, 3)), labels(rng, 40)
    new = rng.normal(size=(200, 3)) * 4
    theirs, ours = GaussianNB(var_smoothing=0).fit(X, y), sc.NaiveBayes(estimate="ml").fit(X, y)
    same_probabilities(ours, theirs, new)


def test_batches_of_partial_fit():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(90, 3)) * 5 + 100, labels(rng, 90)
    theirs, ours = GaussianNB(var_smoothing=0), sc.NaiveBayes(estimate="ml")
    for rows in np.array_split(np.arange(90), 4):
        theirs.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
        ours.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    same_probabilities(ours, theirs, X)
