"""Closed forms against numerical integration of what they claim to integrate."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from softcount.priors import Beta, Dirichlet, Gamma, NormalInverseChi2, NormalInverseWishart, NormalKnownVariance


def area(function, low, high, **options):
    return integrate.quad(function, low, high, epsabs=1e-13, epsrel=1e-11, limit=400, **options)[0]


def inverse_chi2(v, nu, variance):
    """The density of a variance under an inverse chi-square, written out."""
    return stats.invgamma.pdf(v, nu / 2, scale=nu * variance / 2)


BETAS = [Beta(5, 3), Beta(1, 1), Beta(1.7, 30), Beta(0.5, 0.5)]


@pytest.mark.parametrize("belief", BETAS, ids=repr)
def test_beta_integrates_to_its_moments_evidence_and_interval(belief):
    assert area(belief.pdf, 0, 1) == pytest.approx(1, abs=1e-8)
    assert area(lambda p: p * belief.pdf(p), 0, 1) == pytest.approx(belief.mean, abs=1e-8)
    spread = area(lambda p: (p - belief.mean) ** 2 * belief.pdf(p), 0, 1)
    assert spread == pytest.approx(belief.variance, abs=1e-8)
    evidence = area(lambda p: p**3 * (1 - p) ** 2 * belief.pdf(p), 0, 1)
    assert math.exp(belief.log_evidence(3, 2)) == pytest.approx(evidence, rel=1e-7)
    low, high = belief.interval(0.8)
    assert area(belief.pdf, 0, low) == pytest.approx(0.1, abs=1e-8)
    assert area(belief.pdf, low, high) == pytest.approx(0.8, abs=1e-8)


@pytest.mark.parametrize("belief", [b for b in BETAS if b.alpha >= 1 and b.beta >= 1], ids=repr)
def test_beta_is_nowhere_denser_than_at_its_mode(belief):
    assert np.all(belief.pdf(np.linspace(0, 1, 1001)) <= belief.pdf(belief.mode) * (1 + 1e-12))


def test_dirichlet_integrates_to_its_moments_evidence_and_interval():
    belief = Dirichlet([2.0, 1.5, 3.0])

    def over_the_triangle(function):
        inner = lambda a, b: function(np.array([a, b, max(1 - a - b, 0.0)]))  # noqa: E731
        return integrate.dblquad(inner, 0, 1, 0, lambda b: 1 - b, epsabs=1e-8, epsrel=1e-8)[0]

    assert over_the_triangle(belief.pdf) == pytest.approx(1, abs=1e-6)
    assert over_the_triangle(lambda p: p[2] * belief.pdf(p)) == pytest.approx(belief.mean[2], abs=1e-6)
    evidence = over_the_triangle(lambda p: p[0] * p[2] ** 2 * belief.pdf(p))
    assert math.exp(belief.log_evidence([1, 0, 2])) == pytest.approx(evidence, rel=1e-5)
    low, high = belief.interval(0.9)
    for level in range(3):
        lone = Beta(belief.alpha[level], belief.alpha.sum() - belief.alpha[level])
        assert (low[level], high[level]) == pytest.approx(lone.interval(0.9), rel=1e-12)
        assert belief.variance[level] == pytest.approx(lone.variance, rel=1e-12)


@pytest.mark.parametrize("belief", [Gamma(2, 1), Gamma(12, 5), Gamma(0.6, 0.2), Gamma(40, 3)], ids=repr)
def test_gamma_integrates_to_its_moments_evidence_and_interval(belief):
    top = belief.interval(1 - 1e-13)[1]
    assert area(belief.pdf, 0, top) == pytest.approx(1, abs=1e-7)
    assert area(lambda r: r * belief.pdf(r), 0, top) == pytest.approx(belief.mean, rel=1e-7)
    assert area(lambda r: (r - belief.mean) ** 2 * belief.pdf(r), 0, top) == pytest.approx(belief.variance, rel=1e-7)
    seen = [0, 3, 5]
    evidence = area(lambda r: np.prod(stats.poisson.pmf(seen, r)) * belief.pdf(r), 0, top)
    assert math.exp(belief.log_evidence(values=seen)) == pytest.approx(evidence, rel=1e-7)
    low, high = belief.interval(0.8)
    assert area(belief.pdf, low, high) == pytest.approx(0.8, abs=1e-7)
    assert area(belief.pdf, 0, low) == pytest.approx(0.1, abs=1e-7)


def test_gamma_predicts_a_negative_binomial():
    coming = Gamma(3, 1.5).predict()
    counts = np.arange(400)
    mass = coming.pdf(counts)
    assert mass.sum() == pytest.approx(1, abs=1e-12)
    assert counts @ mass == pytest.approx(coming.mean, rel=1e-10)
    assert (counts - coming.mean) ** 2 @ mass == pytest.approx(coming.variance, rel=1e-10)
    np.testing.assert_allclose(coming.log_pdf(counts[:30]), stats.nbinom.logpmf(counts[:30], 3, 1.5 / 2.5), rtol=1e-11)
    for q in (0.1, 0.5, 0.9):
        at = coming.quantile(q)
        assert mass[: int(at) + 1].sum() >= q > mass[: int(at)].sum()
    assert coming.log_pdf([-1, 0.5]).tolist() == [-math.inf, -math.inf]


def test_gamma_density_is_right_where_the_plain_formula_loses_digits():
    shape = 1e8
    belief = Gamma(shape, 1e6)
    at_mode = belief.pdf(belief.mode)
    # Around the mode a Gamma of large shape is a normal of variance (shape - 1) / rate^2, but for 1 / (12 shape).
    normal = 1 / math.sqrt(2 * math.pi * (shape - 1)) * 1e6 * (1 - 1 / (12 * shape))
    assert at_mode == pytest.approx(normal, rel=1e-12)


CHI2 = NormalInverseChi2(mean=1.0, kappa=2.0, nu=5.0, variance=3.0)


def over_variances(function):
    return area(lambda t: function(math.exp(t)) * math.exp(t), -12, 14)


def test_normal_inverse_chi2_integrates_to_its_prediction_and_evidence():
    def given_variance(v, x):
        return stats.norm.pdf(x, 1.0, math.sqrt(v + v / 2)) * inverse_chi2(v, 5, 3)

    for x in (-4.0, 1.0, 2.5):
        assert math.exp(CHI2.predict_log(x)) == pytest.approx(
            over_variances(lambda v, x=x: given_variance(v, x)), rel=1e-7
        )
    seen = np.array([0.0, 2.0, 5.0])

    def joint(v):
        covariance = v * np.eye(3) + v / 2
        return stats.multivariate_normal.pdf(seen, np.ones(3), covariance) * inverse_chi2(v, 5, 3)

    assert math.exp(CHI2.log_evidence(seen)) == pytest.approx(over_variances(joint), rel=1e-7)


def test_normal_inverse_chi2_intervals_hold_what_they_promise():
    low, high = CHI2.interval(0.9)
    assert area(CHI2.pdf, low, high) == pytest.approx(0.9, abs=1e-9)
    assert low + high == pytest.approx(2 * CHI2.mean)
    lone = over_variances(lambda v: stats.norm.pdf(2.0, 1.0, math.sqrt(v / 2)) * inverse_chi2(v, 5, 3))
    assert CHI2.pdf(2.0) == pytest.approx(lone, rel=1e-7)
    low, high = CHI2.variance_interval(0.9)
    assert area(lambda v: inverse_chi2(v, 5, 3), low, high) == pytest.approx(0.9, abs=1e-8)
    assert area(lambda v: inverse_chi2(v, 5, 3), 0, low) == pytest.approx(0.05, abs=1e-8)


def test_normal_inverse_chi2_has_its_modes_and_mean_where_the_density_says():
    assert over_variances(lambda v: v * inverse_chi2(v, 5, 3)) == pytest.approx(CHI2.variance_mean, rel=1e-4)
    variances = np.linspace(0.5, 6, 55001)
    assert variances[inverse_chi2(variances, 5, 3).argmax()] == pytest.approx(CHI2.variance_mode, abs=2e-4)
    joint = stats.norm.pdf(1.0, 1.0, np.sqrt(variances / 2)) * inverse_chi2(variances, 5, 3)
    mean, variance = CHI2.joint_mode
    assert (mean, variances[joint.argmax()]) == pytest.approx((1.0, variance), abs=2e-4)


def test_the_predicted_normal_has_its_moments_and_quantiles():
    coming = CHI2.predict()
    assert area(coming.pdf, -np.inf, np.inf) == pytest.approx(1, abs=1e-9)
    assert area(lambda x: x * coming.pdf(x), -np.inf, np.inf) == pytest.approx(coming.mean, abs=1e-8)
    assert area(lambda x: (x - 1) ** 2 * coming.pdf(x), -np.inf, np.inf) == pytest.approx(coming.variance, rel=1e-7)
    assert area(coming.pdf, -np.inf, coming.quantile(0.2)) == pytest.approx(0.2, abs=1e-9)


def test_normal_known_variance_integrates_to_its_prediction_evidence_and_interval():
    belief = NormalKnownVariance(mean=1.0, mean_variance=0.7, variance=2.0)
    seen = np.array([0.0, 2.0, 5.0])
    evidence = area(lambda m: np.prod(stats.norm.pdf(seen, m, math.sqrt(2))) * belief.pdf(m), -12, 14)
    assert math.exp(belief.log_evidence(seen)) == pytest.approx(evidence, rel=1e-9)
    one = area(lambda m: stats.norm.pdf(4.0, m, math.sqrt(2)) * belief.pdf(m), -12, 14)
    assert math.exp(belief.predict_log(4.0)) == pytest.approx(one, rel=1e-9)
    low, high = belief.interval(0.9)
    assert area(belief.pdf, low, high) == pytest.approx(0.9, abs=1e-10)


def test_the_updated_density_is_prior_times_likelihood_rescaled():
    prior = NormalKnownVariance(mean=1.0, mean_variance=0.7, variance=2.0)
    seen = np.array([0.0, 2.0, 5.0])
    after = prior.update(seen)
    for m in (-1.0, 0.3, 2.0):
        product = prior.pdf(m) * np.prod(stats.norm.pdf(seen, m, math.sqrt(2)))
        assert after.pdf(m) == pytest.approx(product / math.exp(prior.log_evidence(seen)), rel=1e-10)


def test_one_column_of_wishart_is_the_inverse_chi2():
    wide = NormalInverseWishart(mean=[1.0], kappa=2.0, nu=5.0, scale=[[15.0]])
    seen = np.array([0.0, 2.0, 5.0])
    assert wide.log_evidence(seen[:, None]) == pytest.approx(CHI2.log_evidence(seen), rel=1e-12)
    assert wide.predict_log([4.0]) == pytest.approx(CHI2.predict_log(4.0), rel=1e-12)
    assert wide.pdf([4.0]) == pytest.approx(CHI2.pdf(4.0), rel=1e-12)
    after, alone = wide.update(seen[:, None]), CHI2.update(seen)
    assert (after.mean[0], after.kappa, after.nu) == pytest.approx((alone.mean, alone.kappa, alone.nu))
    assert after.scale[0, 0] / after.nu == pytest.approx(alone.variance)
    assert after.joint_mode[1][0, 0] == pytest.approx(alone.joint_mode[1])
    assert after.covariance_mode[0, 0] == pytest.approx(alone.variance_mode)
    assert after.covariance_mean[0, 0] == pytest.approx(alone.variance_mean)


def test_wishart_predicts_the_multivariate_t():
    scale = np.array([[2.0, 0.5], [0.5, 1.0]])
    belief = NormalInverseWishart([1.0, -1.0], 0.5, 4.0, scale)
    points = np.array([[0.0, 0.0], [3.0, -2.0], [1.0, -1.0]])
    reference = stats.multivariate_t(loc=[1.0, -1.0], shape=scale * 1.5 / (0.5 * 3), df=3)
    np.testing.assert_allclose(belief.predict_log(points), reference.logpdf(points), rtol=1e-12)


def test_wishart_evidence_is_the_average_likelihood_of_draws():
    """Covariances drawn by somebody else's sampler; the answer agrees within its own scatter."""
    scale = np.array([[2.0, 0.5], [0.5, 1.0]])
    belief, rng = NormalInverseWishart([1.0, -1.0], 2.0, 6.0, scale), np.random.default_rng(3)
    seen = np.array([[0.0, 0.0], [1.5, -1.0]])
    likelihoods = []
    for covariance in stats.invwishart.rvs(6, scale, size=4000, random_state=rng):
        mean = rng.multivariate_normal([1.0, -1.0], covariance / 2)
        likelihoods.append(np.prod(stats.multivariate_normal.pdf(seen, mean, covariance)))
    error = np.std(likelihoods) / math.sqrt(4000)
    assert math.exp(belief.log_evidence(seen)) == pytest.approx(np.mean(likelihoods), abs=5 * error)


def test_wishart_draws_have_the_expected_covariance():
    belief = NormalInverseWishart([1.0, -1.0], 2.0, 12.0, [[2.0, 0.5], [0.5, 1.0]])
    means, covariances = belief.sample(6000, random_state=5)
    error = covariances.std(axis=0) / math.sqrt(6000)
    assert np.all(np.abs(covariances.mean(axis=0) - belief.covariance_mean) < 5 * error)
    np.testing.assert_allclose(np.cov(means.T), belief.covariance_mean / 2, atol=0.02)
