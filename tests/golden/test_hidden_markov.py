"""Hidden Markov models beside hmmlearn 0.3.3: likelihood, posteriors, Viterbi paths and one step of Baum-Welch."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import softcount as sc

hmm = pytest.importorskip("hmmlearn.hmm", reason="hmmlearn is not installed: pip install -e .[test]")
logging.getLogger("hmmlearn").setLevel(logging.ERROR)

LENGTHS = [60, 1, 35, 80]
FIRST = np.array([0.51, 0.29, 0.20])
NEXT = np.array([[0.811, 0.137, 0.052], [0.103, 0.694, 0.203], [0.261, 0.227, 0.512]])
MEANS = np.array([[0.0, 1.0], [3.0, -1.0], [6.0, 2.0]])
SPREADS = np.array([[[1.0, 0.3], [0.3, 2.0]], [[0.5, -0.2], [-0.2, 1.0]], [[2.0, 0.0], [0.0, 0.7]]])
SYMBOLS = np.array([[0.587, 0.213, 0.083, 0.117], [0.131, 0.479, 0.293, 0.097], [0.073, 0.141, 0.107, 0.679]])
RATES = np.array([1.0, 4.0, 12.0])


def states() -> np.ndarray:
    rng = np.random.default_rng(7)
    found = []
    for length in LENGTHS:
        state = rng.choice(3, p=FIRST)
        for _ in range(length):
            found.append(state)
            state = rng.choice(3, p=NEXT[state])
    return np.array(found)


def case(kind: str) -> tuple[np.ndarray, Any, Any, Any, Any]:
    """Steps, their model, the same start for both, and which of its parameters EM moves."""
    rng, path = np.random.default_rng(8), states()
    if kind == "categorical":
        steps = np.array([rng.choice(4, p=SYMBOLS[state]) for state in path])[:, None]
        peer = hmm.CategoricalHMM(3, params="ste", init_params="", n_iter=1, tol=-np.inf)
        peer.emissionprob_ = SYMBOLS
        return steps, peer, {0: "categorical"}, {0: {"probability": SYMBOLS}}, {0: ("probability", "emissionprob_")}
    if kind == "poisson":
        steps = rng.poisson(RATES[path])[:, None]
        peer = hmm.PoissonHMM(3, params="stl", init_params="", n_iter=1, tol=-np.inf, lambdas_prior=0, lambdas_weight=0)
        peer.lambdas_ = RATES[:, None]
        return steps, peer, {0: "poisson"}, {0: {"rate": RATES}}, {0: ("rate", "lambdas_")}
    steps = np.array([rng.multivariate_normal(MEANS[state], SPREADS[state]) for state in path])
    usual: dict[str, Any] = {"params": "stmc", "init_params": "", "n_iter": 1, "tol": -np.inf}
    usual |= {"covars_prior": 0.0, "covars_weight": 0.0, "min_covar": 0.0}
    if kind == "full":
        peer = hmm.GaussianHMM(3, "full", **usual)
        peer.means_, peer.covars_ = MEANS, SPREADS
        return (
            steps, peer, {(0, 1): "multinormal"}, {(0, 1): {"mean": MEANS, "covariance": SPREADS}},
            {(0, 1): ("mean", "means_")},
        )  # fmt: skip
    peer = hmm.GaussianHMM(3, "diag", **usual)
    variances = np.stack([np.diag(own) for own in SPREADS])
    peer.means_, peer.covars_ = MEANS, variances
    given = {j: {"mean": MEANS[:, j], "variance": variances[:, j]} for j in (0, 1)}
    return steps, peer, {0: "normal", 1: "normal"}, given, {j: ("mean", "means_") for j in (0, 1)}


def ours(kinds: Any, given: Any, maps: int) -> sc.HiddenMarkov:
    start = {"first": FIRST, "transitions": NEXT, **given}
    return sc.HiddenMarkov(3, kinds=kinds, estimate="ml", init=start, max_iter=maps, tol=0, n_init=1)


def in_sequences(steps: np.ndarray) -> list[np.ndarray]:
    return np.split(steps, np.cumsum(LENGTHS)[:-1])


KINDS = ("categorical", "diag", "full", "poisson")


@pytest.mark.parametrize("kind", KINDS)
def test_likelihood_posteriors_and_paths_are_theirs(kind: str) -> None:
    steps, peer, kinds, given, _ = case(kind)
    peer.startprob_, peer.transmat_ = FIRST, NEXT
    model = ours(kinds, given, 0).fit(in_sequences(steps))
    height, members = peer.score_samples(steps, LENGTHS)
    assert model.log_likelihood(in_sequences(steps)) == pytest.approx(height, rel=1e-10)
    assert np.abs(np.concatenate(model.predict_proba(in_sequences(steps))) - members).max() < 1e-8
    _, path = peer.decode(steps, LENGTHS)
    assert np.array_equal(np.concatenate(model.predict(in_sequences(steps))), path)


@pytest.mark.parametrize("kind", KINDS)
def test_one_step_of_baum_welch_is_theirs(kind: str) -> None:
    steps, peer, kinds, given, moved = case(kind)
    peer.startprob_, peer.transmat_ = FIRST, NEXT
    peer.fit(steps, LENGTHS)
    model = ours(kinds, given, 1).fit(in_sequences(steps))
    assert np.abs(model.first_ - peer.startprob_).max() < 1e-8
    assert np.abs(model.transitions_ - peer.transmat_).max() < 1e-8
    for key, (mine, theirs) in moved.items():
        own, other = model.params_[key][mine], np.asarray(getattr(peer, theirs))
        other = other[:, key] if kind == "diag" else other.reshape(own.shape)
        assert np.abs(own - other).max() < 1e-8
    if kind == "full":
        assert np.abs(model.params_[(0, 1)]["covariance"] - peer.covars_).max() < 1e-8
    if kind == "diag":
        variances = np.stack([model.params_[j]["variance"] for j in (0, 1)], axis=1)
        assert np.abs(variances - np.stack([np.diag(own) for own in peer.covars_])).max() < 1e-8
