"""Simulation-based calibration: a truth drawn from the prior, rows drawn from the truth, a posterior learned from them.

If learning is right, the truth's rank among draws from its posterior is as often low as high, and an interval of 90 %
holds the truth in 90 % of the simulations. All simulations are groups of one object.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

from softcount.priors import Beta, Dirichlet, Gamma, NormalInverseChi2, NormalInverseWishart, NormalKnownVariance

SIMULATIONS, DRAWS, BINS, ROWS = 5000, 99, 10, 2


@dataclass
class Simulated:
    """A prior, how rows come from a truth and teach it, what is ranked, and the same posterior a step off."""

    prior: Any
    learn: Callable[[Any, Any, np.random.Generator], Any]
    ranked: Callable[[Any], list[np.ndarray]]
    intervals: Callable[[Any], list[tuple[np.ndarray, np.ndarray]]]
    steps_off: list[Callable[[Any], Any]]


def normal_rows(means, variances, rng):
    return means[:, None] + np.sqrt(variances)[:, None] * rng.standard_normal((SIMULATIONS, ROWS))


def block_rows(means, covariances, rng):
    noise = rng.standard_normal((SIMULATIONS, ROWS, 2))
    return means[:, None, :] + noise @ np.swapaxes(np.linalg.cholesky(covariances), -1, -2)


def learn_trials(prior, truth, rng):
    won = rng.binomial(ROWS, truth)
    return prior.update(successes=won, failures=ROWS - won)


def block_parts(drawn):
    means, covariances = drawn
    a, b, c = covariances[..., 0, 0], covariances[..., 1, 1], covariances[..., 0, 1]
    return [means[..., 0], means[..., 1], a, b, c / np.sqrt(a * b), a * b - c * c]


CASES = [
    Simulated(
        Beta(2.5, 1.5),
        learn_trials,
        lambda share: [share],
        lambda after: [after.interval(0.9)],
        [lambda b: Beta(b.alpha + 1, b.beta), lambda b: Beta(b.alpha, b.beta + 1)],
    ),
    Simulated(
        Dirichlet([1.5, 2.0, 0.7]),
        lambda prior, truth, rng: prior.update(rng.multinomial(ROWS, truth)),
        lambda shares: [shares[..., 0], shares[..., 1], shares[..., 2]],
        lambda after: [*zip(*(end.T for end in after.interval(0.9)), strict=True)],
        [lambda d: d.update([0, 1, 0]), lambda d: d.update([0, 0, 1])],
    ),
    Simulated(
        Gamma(3.0, 2.0),
        lambda prior, truth, rng: prior.update(values=rng.poisson(truth[:, None], (SIMULATIONS, ROWS))),
        lambda rate: [rate],
        lambda after: [after.interval(0.9)],
        [lambda g: Gamma(g.shape + 1, g.rate), lambda g: Gamma(g.shape, g.rate + 1)],
    ),
    Simulated(
        NormalInverseChi2(1.0, 0.5, 3.0, 2.0),
        lambda prior, truth, rng: prior.update(normal_rows(*truth, rng)),
        lambda drawn: [*drawn],
        lambda after: [after.interval(0.9), after.variance_interval(0.9)],
        [
            lambda n: NormalInverseChi2(n.mean, n.kappa, n.nu - 1, n.variance * n.nu / (n.nu - 1)),
            lambda n: NormalInverseChi2(n.mean, n.kappa, n.nu + 1, n.variance * n.nu / (n.nu + 1)),
            lambda n: NormalInverseChi2(n.mean, n.kappa + 1, n.nu, n.variance),
        ],
    ),
    Simulated(
        NormalKnownVariance(1.0, 4.0, 2.0),
        lambda prior, truth, rng: prior.update(normal_rows(truth, np.full(SIMULATIONS, 2.0), rng)),
        lambda mean: [mean],
        lambda after: [after.interval(0.9)],
        [lambda n: NormalKnownVariance(n.mean, 1 / (1 / n.mean_variance + 1 / n.variance), n.variance)],
    ),
    Simulated(
        NormalInverseWishart([1.0, -1.0], 0.5, 6.0, [[2.0, 0.5], [0.5, 1.0]]),
        lambda prior, truth, rng: prior.update(block_rows(*truth, rng)),
        block_parts,
        lambda after: [*zip(*(end.T for end in after.interval(0.9)), strict=True)],
        [
            lambda n: NormalInverseWishart(n.mean, n.kappa, n.nu - 1, n.scale),
            lambda n: NormalInverseWishart(n.mean, n.kappa, n.nu + 1, n.scale),
            lambda n: NormalInverseWishart(n.mean, n.kappa + 1, n.nu, n.scale),
        ],
    ),
]  # fmt: skip

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: type(case.prior).__name__)


def simulated(case, seed):
    """Truths drawn from the prior, and what was learned from rows of each."""
    rng = np.random.default_rng(seed)
    truths = case.prior.sample(SIMULATIONS, random_state=rng)
    return truths, case.learn(case.prior, truths, rng)


def worst_of_ranks(case, truths, posterior):
    """The smallest of the chi-square tests' probabilities that the truths' ranks are evenly spread."""
    drawn = case.ranked(posterior.sample(DRAWS, random_state=17))
    ranks = [(some < true[:, None]).sum(axis=1) for some, true in zip(drawn, case.ranked(truths), strict=True)]
    tallies = [np.bincount(rank * BINS // (DRAWS + 1), minlength=BINS) for rank in ranks]
    return min(stats.chisquare(tally).pvalue for tally in tallies)


@every_case
def test_truths_rank_evenly_among_draws_from_their_posteriors(case):
    truths, posterior = simulated(case, seed=3)
    assert worst_of_ranks(case, truths, posterior) > 1e-3


@every_case
def test_a_count_or_degree_of_freedom_too_many_is_noticed(case):
    truths, posterior = simulated(case, seed=3)
    for step_off in case.steps_off:
        assert worst_of_ranks(case, truths, step_off(posterior)) < 1e-6


@every_case
def test_ninety_percent_intervals_hold_ninety_percent_of_truths(case):
    truths, posterior = simulated(case, seed=5)
    error = np.sqrt(0.9 * 0.1 / SIMULATIONS)
    for true, (low, high) in zip(case.ranked(truths), case.intervals(posterior), strict=False):
        held = np.mean((low <= true) & (true <= high))
        assert abs(held - 0.9) < 4 * error
        assert abs(np.mean(true < low) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / SIMULATIONS)


@every_case
def test_rows_learned_in_two_helpings_leave_truths_ranking_evenly(case):
    truths, posterior = simulated(case, seed=7)
    assert worst_of_ranks(case, truths, case.learn(posterior, truths, np.random.default_rng(8))) > 1e-3
