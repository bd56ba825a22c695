"""`estimate="predictive"`: the distributions scipy.stats knows, learned by counting.

With one class the log-density of a row is that of its column alone.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import softcount as sc

PRIORS = [0.0, 1.0, 2.5]


def scores(X, asked, **settings):
    """Log-density of each row asked for, under a model of one class."""
    model = sc.NaiveBayes(estimate="predictive", **settings).fit(X, np.zeros(len(X), dtype=int))
    return model.score_samples(asked)


@pytest.mark.parametrize("a", PRIORS)
@pytest.mark.parametrize("n", [2, 5, 200])
def test_a_normal_column_is_students_t(a, n):
    rng = np.random.default_rng(n)
    x = rng.normal(3, 2, size=n)
    asked = np.linspace(-10, 15, 11)
    variance = (((x - x.mean()) ** 2).sum() + a * x.var()) / (n + a)
    wanted = stats.t.logpdf(asked, df=n + a, loc=x.mean(), scale=np.sqrt(variance * (1 + 1 / n)))
    np.testing.assert_allclose(scores(x[:, None], asked[:, None], prior=a), wanted, rtol=1e-11)


def test_under_the_reference_prior_it_is_the_textbook_t():
    x = np.random.default_rng(0).normal(size=9)
    asked = np.linspace(-5, 5, 7)
    prior = {0: sc.priors.NormalInverseChi2(mean=0, kappa=0, nu=-1, variance=0)}
    wanted = stats.t.logpdf(asked, df=8, loc=x.mean(), scale=x.std(ddof=1) * np.sqrt(1 + 1 / 9))
    np.testing.assert_allclose(scores(x[:, None], asked[:, None], prior=prior), wanted, rtol=1e-11)


def test_weighted_rows_count_by_their_weight():
    x, w = np.array([1.0, 2.0, 4.0]), np.array([0.1, 0.2, 0.1])
    asked = np.linspace(-5, 9, 7)
    model = sc.NaiveBayes(estimate="predictive", kinds="normal").fit(x[:, None], np.zeros(3, dtype=int), w)
    n, mean = w.sum(), np.average(x, weights=w)
    squares = (w * (x - mean) ** 2).sum()
    variance = (squares + squares / n) / (n + 1)
    wanted = stats.t.logpdf(asked, df=n + 1, loc=mean, scale=np.sqrt(variance * (1 + 1 / n)))
    np.testing.assert_allclose(model.score_samples(asked[:, None]), wanted, rtol=1e-10)


def test_a_normal_column_equals_what_its_posterior_predicts():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 1)), np.arange(30) % 2
    prior = {0: sc.priors.NormalInverseChi2(mean=1.0, kappa=2.0, nu=3.0, variance=0.5)}
    model = sc.NaiveBayes(estimate="predictive", prior=prior).fit(X, y)
    asked = np.linspace(-4, 4, 9)
    coming = model.posterior_[0].predict().log_pdf(asked)
    joint = coming.T + np.log(model.class_prior_)
    np.testing.assert_allclose(model.score_samples(asked[:, None]), np.logaddexp(*joint.T), rtol=1e-11)


def test_a_known_variance_stays_normal():
    x = np.random.default_rng(2).normal(size=12)
    asked = np.linspace(-5, 5, 7)
    wanted = stats.norm.logpdf(asked, x.mean(), np.sqrt(4 * (1 + 1 / 12)))
    found = scores(x[:, None], asked[:, None], kinds=sc.families.Normal(variance=4.0), prior=0)
    np.testing.assert_allclose(found, wanted, rtol=1e-11)


def test_a_shared_variance_has_the_freedom_of_every_class():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=20), np.arange(20) % 2
    model = sc.NaiveBayes(kinds=sc.families.Normal(tied="classes"), estimate="predictive", prior=0).fit(x[:, None], y)
    means = np.array([x[y == g].mean() for g in (0, 1)])
    variance = ((x - means[y]) ** 2).sum() / 20
    asked = np.linspace(-3, 3, 7)
    each = [stats.t.logpdf(asked, df=20, loc=m, scale=np.sqrt(variance * 1.1)) + np.log(0.5) for m in means]
    np.testing.assert_allclose(model.score_samples(asked[:, None]), np.logaddexp(*each), rtol=1e-11)


@pytest.mark.parametrize("a", PRIORS[1:])
def test_a_lognormal_column_is_students_t_of_the_logarithm(a):
    x = np.exp(np.random.default_rng(4).normal(1, 0.7, size=15))
    asked = np.array([0.1, 1.0, 3.0, 50.0])
    z = np.log(x)
    variance = (((z - z.mean()) ** 2).sum() + a * z.var()) / (15 + a)
    wanted = stats.t.logpdf(np.log(asked), 15 + a, z.mean(), np.sqrt(variance * (1 + 1 / 15))) - np.log(asked)
    found = scores(x[:, None], asked[:, None], kinds="lognormal", prior=a)
    np.testing.assert_allclose(found, wanted, rtol=1e-11)


@pytest.mark.parametrize(("shape", "rate"), [(3.0, 2.0), (0.5, 0.1)])
def test_a_poisson_column_is_negative_binomial(shape, rate):
    x = np.random.default_rng(5).poisson(4, size=25)
    asked = np.arange(0, 40, 3)
    after = x.sum() + shape, 25 + rate
    wanted = stats.nbinom.logpmf(asked, after[0], after[1] / (1 + after[1]))
    found = scores(x[:, None], asked[:, None], kinds="poisson", prior={0: sc.priors.Gamma(shape, rate)})
    np.testing.assert_allclose(found, wanted, rtol=1e-11)


@pytest.mark.parametrize("a", PRIORS[1:])
def test_a_poisson_column_imagines_rows_at_the_whole_rate(a):
    x = np.random.default_rng(6).poisson(4, size=25)
    asked = np.arange(0, 20)
    rows = 25 + a
    wanted = stats.nbinom.logpmf(asked, x.mean() * rows, rows / (1 + rows))
    np.testing.assert_allclose(scores(x[:, None], asked[:, None], kinds="poisson", prior=a), wanted, rtol=1e-11)


@pytest.mark.parametrize("a", PRIORS[1:])
def test_a_multinomial_block_is_dirichlet_multinomial(a):
    rng = np.random.default_rng(7)
    X, asked = rng.poisson([3, 1, 0.2, 5], size=(20, 4)), rng.poisson(2, size=(8, 4))
    alpha = X.sum(axis=0) + a
    wanted = [stats.dirichlet_multinomial.logpmf(row, alpha, row.sum()) for row in asked]
    np.testing.assert_allclose(scores(X, asked, kinds="multinomial", prior=a), wanted, rtol=1e-10)


@pytest.mark.parametrize("a", PRIORS[1:])
def test_a_categorical_column_has_the_posterior_mean(a):
    X = np.array([["a"], ["b"], ["a"], ["c"], ["a"]])
    asked = np.array([["a"], ["b"], ["c"]])
    wanted = [stats.dirichlet_multinomial.logpmf(row, np.array([3, 1, 1]) + a, 1) for row in np.eye(3, dtype=int)]
    np.testing.assert_allclose(scores(X, asked, prior=a), wanted, rtol=1e-12)


@pytest.mark.parametrize("a", PRIORS[1:])
def test_a_binomial_block_is_beta_binomial(a):
    rng = np.random.default_rng(8)
    trials = rng.integers(1, 20, size=30)
    X = np.stack([rng.binomial(trials, 0.3), trials], axis=1)
    asked = np.array([[0, 5], [3, 5], [5, 5], [2, 40]])
    hits, misses = X[:, 0].sum() + a, (X[:, 1] - X[:, 0]).sum() + a
    wanted = stats.betabinom.logpmf(asked[:, 0], asked[:, 1], hits, misses)
    found = scores(X, asked, kinds={(0, 1): "binomial"}, prior=a)
    np.testing.assert_allclose(found, wanted, rtol=1e-11)


def test_a_correlated_block_is_a_multivariate_t():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(25, 2)) @ [[1, 0.5], [0, 2]] + 3
    asked = rng.normal(3, 3, size=(6, 2))
    model = sc.NaiveBayes(kinds={(0, 1): "multinormal"}, estimate="predictive").fit(X, np.zeros(25, dtype=int))
    mean, n, a = X.mean(axis=0), 25, 1
    scatter = (X - mean).T @ (X - mean) + a * np.diag(X.var(axis=0))
    freedom = n + a - 2 + 1
    wanted = stats.multivariate_t.logpdf(asked, mean, scatter * (1 + 1 / n) / freedom, df=freedom)
    np.testing.assert_allclose(model.score_samples(asked), wanted, rtol=1e-10)
    np.testing.assert_allclose(np.ravel(model.posterior_[0, 1].predict_log(asked)), wanted, rtol=1e-10)


def test_predictive_probabilities_are_more_cautious_than_plugged_in_ones():
    """Ten rows: a point far out is far from certain once the variance had to be learned."""
    rng = np.random.default_rng(10)
    X, y = np.concatenate([rng.normal(0, 1, 5), rng.normal(2, 1, 5)])[:, None], np.repeat([0, 1], 5)
    asked = np.array([[-6.0], [8.0]])
    plugged = sc.NaiveBayes(estimate="mean").fit(X, y).predict_proba(asked).max(axis=1)
    predictive = sc.NaiveBayes(estimate="predictive").fit(X, y).predict_proba(asked).max(axis=1)
    assert (predictive < plugged).all()
