"""Rows learned one by one, in helpings or all at once, with weights, give what exact fractions give."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from softcount.errors import DataError
from softcount.priors import (
    Beta,
    Dirichlet,
    Gamma,
    MultivariateStudentT,
    NormalInverseChi2,
    NormalInverseWishart,
    NormalKnownVariance,
)

# The oracle: posteriors by the textbook's formulas, in fractions, which round nothing.


def exact_sums(rows, weights):
    """Weight, weighted mean of each column and weighted products of differences from it."""
    rows = [[Fraction(float(x)) for x in np.atleast_1d(row)] for row in rows]
    weights = [Fraction(float(w)) for w in weights]
    total, size = sum(weights), len(rows[0])
    means = [sum(w * row[j] for w, row in zip(weights, rows, strict=True)) / total for j in range(size)]
    products = [
        [
            sum(w * (r[i] - means[i]) * (r[j] - means[j]) for w, r in zip(weights, rows, strict=True))
            for j in range(size)
        ]
        for i in range(size)
    ]
    return total, means, products


def exact_normal(mean, kappa, nu, scale, rows, weights):
    """Mean, kappa, nu and summed products after rows, for one column or several."""
    n, centre, products = exact_sums(rows, weights)
    mean, kappa, nu = [Fraction(m) for m in mean], Fraction(kappa), Fraction(nu)
    after = [(kappa * m + n * c) / (kappa + n) for m, c in zip(mean, centre, strict=True)]
    moved = kappa * n / (kappa + n)
    summed = [
        [
            Fraction(scale[i][j]) + products[i][j] + moved * (centre[i] - mean[i]) * (centre[j] - mean[j])
            for j in range(len(mean))
        ]
        for i in range(len(mean))
    ]
    return after, kappa + n, nu + n, summed


def as_floats(table):
    return np.array([[float(cell) for cell in row] for row in table])


# Helpings

RNG = np.random.default_rng(11)
CUTS = {"one by one": range(1, 40), "in helpings": [3, 4, 17, 30], "at once": []}
VALUES = RNG.normal(1000.0, 3.0, 40)
BLOCK = RNG.normal([1000.0, -50.0], [3.0, 20.0], (40, 2))
WEIGHTS = {"unweighted": np.ones(40), "weighted": RNG.integers(0, 5, 40) + RNG.random(40)}


def taught(prior, rows, weights, cuts, **options):
    for some, share in zip(np.split(rows, cuts), np.split(weights, cuts), strict=True):
        prior = prior.update(values=some, weights=share, **options)
    return prior


every_way = pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS.keys())
every_weight = pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS.keys())


@every_way
@every_weight
def test_a_mean_and_variance_are_those_of_fractions(cuts, weights):
    learned = taught(NormalInverseChi2(990.0, 0.5, 3.0, 2.0), VALUES, weights, cuts)
    (mean,), kappa, nu, ((squares,),) = exact_normal([990], 0.5, 3, [[6]], VALUES, weights)
    wanted = [float(x) for x in (mean, kappa, nu, squares / nu)]
    assert [learned.mean, learned.kappa, learned.nu, learned.variance] == pytest.approx(wanted, rel=1e-12)


@every_way
@every_weight
def test_a_mean_of_known_variance_is_that_of_fractions(cuts, weights):
    learned = taught(NormalKnownVariance(990.0, 0.5, 2.0), VALUES, weights, cuts)
    n, (centre,), _ = exact_sums(VALUES, weights)
    precision = 2 + n / 2
    assert learned.mean == pytest.approx(float((2 * 990 + n / 2 * centre) / precision), rel=1e-12)
    assert learned.mean_variance == pytest.approx(float(1 / precision), rel=1e-12)


@every_way
@every_weight
def test_a_block_is_that_of_fractions(cuts, weights):
    scale = [[2.0, 0.5], [0.5, 1.0]]
    learned = taught(NormalInverseWishart([990.0, 0.0], 0.5, 4.0, scale), BLOCK, weights, cuts)
    mean, kappa, nu, summed = exact_normal([990, 0], 0.5, 4, scale, BLOCK, weights)
    np.testing.assert_allclose(learned.mean, [float(m) for m in mean], rtol=1e-12)
    np.testing.assert_allclose(learned.scale, as_floats(summed), rtol=1e-12)
    assert (learned.kappa, learned.nu) == pytest.approx((float(kappa), float(nu)), rel=1e-12)


@every_way
@every_weight
def test_a_rate_is_that_of_fractions(cuts, weights):
    counts = np.random.default_rng(2).poisson(30, 40)
    learned = taught(Gamma(1.5, 0.25), counts, weights, cuts)
    total = sum(Fraction(float(w)) * int(c) for w, c in zip(weights, counts, strict=True))
    assert learned.shape == pytest.approx(float(total) + 1.5, rel=1e-12)
    assert learned.rate == pytest.approx(float(sum(map(Fraction, weights.tolist()))) + 0.25, rel=1e-12)


@every_way
def test_shares_are_those_of_adding(cuts):
    counts = np.random.default_rng(4).random((40, 3))
    beta, dirichlet = Beta(0.5, 2), Dirichlet([0.5, 1, 2])
    for some in np.split(counts, cuts):
        beta = beta.update(some[:, 0].sum(), some[:, 1].sum())
        dirichlet = dirichlet.update(some.sum(axis=0))
    exact = [float(sum(Fraction(x) for x in column)) for column in counts.T.tolist()]
    assert [beta.alpha, beta.beta] == pytest.approx([exact[0] + 0.5, exact[1] + 2], rel=1e-12)
    np.testing.assert_allclose(dirichlet.alpha, np.add(exact, [0.5, 1, 2]), rtol=1e-12)


# Weights

TAKE_VALUES = [
    (NormalInverseChi2(1.0, 0.5, 3.0, 2.0), VALUES),
    (NormalKnownVariance(1.0, 0.5, 2.0), VALUES),
    (NormalInverseWishart([1.0, 2.0], 0.5, 4.0, np.eye(2)), BLOCK),
    (Gamma(1.5, 0.25), np.abs(VALUES).round()),
]
every_taker = pytest.mark.parametrize(("prior", "rows"), TAKE_VALUES, ids=[type(p).__name__ for p, _ in TAKE_VALUES])


@every_taker
def test_weight_two_is_the_row_twice_and_weight_zero_is_no_row(prior, rows):
    weights = np.random.default_rng(1).integers(0, 4, len(rows))
    repeated = np.repeat(rows, weights, axis=0)
    heavy, long = prior.update(values=rows, weights=weights), prior.update(values=repeated)
    for name in type(prior).__match_args__:
        np.testing.assert_allclose(getattr(heavy, name), getattr(long, name), rtol=1e-12)
    evidence = prior.evidence(values=rows, weights=weights)
    assert evidence == pytest.approx(prior.evidence(values=repeated), rel=1e-12)


@every_taker
def test_a_wild_row_of_weight_zero_costs_no_digits(prior, rows):
    wild = np.concatenate([np.full_like(rows[:1], 1e15), rows])
    learned, plain = prior.update(values=wild, weights=[0.0] + [1.0] * len(rows)), prior.update(values=rows)
    for name in type(prior).__match_args__:
        np.testing.assert_allclose(getattr(learned, name), getattr(plain, name), rtol=1e-14)


@every_taker
def test_each_group_may_weigh_the_same_rows_its_own_way(prior, rows):
    weights = np.random.default_rng(5).random((3, len(rows)))
    weights[2] = 0.0
    together = prior.update(values=rows, weights=weights)
    for group in range(3):
        alone = prior.update(values=rows, weights=weights[group])
        for name in type(prior).__match_args__:
            mine = np.broadcast_to(getattr(together, name), (3, *np.shape(getattr(alone, name))))
            np.testing.assert_allclose(mine[group], getattr(alone, name), rtol=1e-13)
    evidence = together.evidence(values=rows[:2], weights=[1.0, 0.5])
    assert np.shape(evidence) == (3,)


@every_taker
@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, "heavy"], ids=str)
def test_a_weight_that_is_none_is_refused_by_its_row(prior, rows, bad):
    where = "weight" if bad == "heavy" else "a weight is .* at row 1. Weights are finite and 0 or more"
    with pytest.raises(DataError, match=where):
        prior.update(values=rows[:3], weights=[1.0, bad, 1.0])


@every_taker
def test_weights_of_another_shape_or_without_values_are_refused(prior, rows):
    for wrong in ([1.0], 2.0, np.ones((2, 4))):
        with pytest.raises(DataError, match="one weight per row"):
            prior.update(values=rows[:3], weights=wrong)
    with pytest.raises(DataError, match="one weight per row"):
        prior.update(values=np.stack([rows[:3]] * 2), weights=np.ones((3, 3)))


def test_sums_are_weighed_already():
    with pytest.raises(DataError, match="leave weights out"):
        Gamma(1, 1).update(total=3, rows=2, weights=[1.0])
    with pytest.raises(DataError, match="leave weights out"):
        NormalInverseChi2(0, 1, 1, 1).update(rows=2, mean=0, sum_squares=1, weights=[1.0])
    with pytest.raises(DataError, match="leave weights out"):
        NormalInverseWishart([0], 1, 1, [[1]]).update(rows=2, mean=[0], scatter=[[1]], weights=[1.0])


# What a belief says of itself


@pytest.mark.parametrize("belief", [Beta(2, 3), Dirichlet([1, 2]), Gamma(2, 3), *(p for p, _ in TAKE_VALUES)], ids=repr)
def test_every_belief_answers_every_question(belief):
    for name in ("mean", "mode", "variance"):
        assert np.all(np.isfinite(getattr(belief, name)))
    low, high = belief.interval(0.9)
    assert np.all(np.asarray(low) < np.asarray(high))
    assert belief.predict() is not None
    assert type(belief).evidence is type(belief).log_evidence


def test_a_prediction_at_a_value_is_the_density_there():
    for belief, x in ((Gamma(2, 3), 4.0), (NormalInverseChi2(1, 2, 3, 4), 0.5), (NormalKnownVariance(1, 2, 3), 0.5)):
        assert belief.predict(x) == belief.predict().pdf(x) == pytest.approx(math.exp(belief.predict_log(x)))
    block = NormalInverseWishart([1.0, 2.0], 0.5, 4.0, np.eye(2))
    assert block.predict([0.5, 0.5]) == pytest.approx(math.exp(block.predict_log([0.5, 0.5])))
    assert (Beta(1, 3).predict(), Beta(1, 3).predict(False)) == (0.25, 0.75)
    with pytest.raises(DataError, match="True or False"):
        Beta(1, 3).predict(0.5)


def test_the_mean_spreads_as_its_draws_do():
    for belief in (
        NormalInverseChi2(1.0, 2.0, 9.0, 3.0),
        NormalInverseWishart([1.0, -1.0], 2.0, 12.0, [[2, 1], [1, 3]]),
    ):
        means = belief.sample(20000, random_state=6)[0]
        np.testing.assert_allclose(means.var(axis=0), belief.mean_variance, rtol=0.05)
    assert NormalInverseChi2(1.0, 2.0, 2.0, 3.0).mean_variance == math.inf


def test_a_block_seen_column_by_column():
    belief = NormalInverseWishart([1.0, -1.0], 0.5, 4.0, [[2.0, 0.5], [0.5, 1.0]])
    coming = belief.predict()
    assert isinstance(coming, MultivariateStudentT)
    np.testing.assert_allclose(belief.variance, [0.5, 0.25])
    for column, scale in enumerate([2.0, 1.0]):
        spread = math.sqrt(scale / 3)
        lone = stats.t(3, belief.mean[column], spread / math.sqrt(0.5))
        assert [end[column] for end in belief.interval(0.9)] == pytest.approx(lone.interval(0.9), rel=1e-12)
        assert belief.mean_variance[column] == pytest.approx(lone.var())
        ahead = stats.t(3, belief.mean[column], spread * math.sqrt(3))
        assert coming.quantile([0.2, 0.5])[column].tolist() == pytest.approx(ahead.ppf([0.2, 0.5]).tolist(), rel=1e-12)
        assert coming.variance[column] == pytest.approx(ahead.var())
    assert coming.mean.tolist() == [1.0, -1.0]
    with pytest.raises(DataError, match="2 columns"):
        coming.log_pdf([1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="update with data first"):
        _ = NormalInverseWishart([0, 0], 0, 0, np.eye(2)).variance


def test_shares_learned_from_many_rows_keep_the_digits_of_their_density():
    alpha = 2.0**27
    # By Legendre's duplication formula: 2 gamma(alpha + 1/2) / (gamma(alpha) sqrt(pi)), the ratio by its series.
    at_half = 2 * math.sqrt(alpha / math.pi) * (1 - 1 / (8 * alpha))
    assert Dirichlet([alpha, alpha]).pdf([0.5, 0.5]) == pytest.approx(at_half, rel=1e-13)
    three = Dirichlet([2.0, 1.5, 3.0]).pdf([[0.2, 0.3, 0.5], [0.0, 0.5, 0.5]])
    reference = [stats.dirichlet.pdf([0.2, 0.3, 0.5], [2.0, 1.5, 3.0]), 0.0]
    np.testing.assert_allclose(three, reference, rtol=1e-13)
    assert Dirichlet([1, 1, 1]).pdf([1, 0, 0]) == pytest.approx(2.0)
