"""What a fit wants said about how it ended."""

from __future__ import annotations

import numpy as np

import softcount as sc


def overlapping() -> np.ndarray:
    rng = np.random.default_rng(5)
    return np.concatenate([rng.normal(0, 1, 200), rng.normal(1, 1, 200)])[:, None]


def test_a_mixture_that_ran_out_of_iterations_says_so() -> None:
    short = sc.Mixture(2, max_iter=2, n_init=1, random_state=0).fit(overlapping())
    assert not short.converged_
    assert any("max_iter=2" in note for note in short.notes_)


def test_a_mixture_that_converged_or_was_told_how_many_steps_to_take_says_nothing_of_it() -> None:
    told = sc.Mixture(2, max_iter=2, tol=0, n_init=1, random_state=0).fit(overlapping())
    whole = sc.Mixture(2, max_iter=5000, n_init=1, random_state=0).fit(overlapping())
    assert whole.converged_
    assert not any("EM stopped" in note for note in [*told.notes_, *whole.notes_])


def test_a_start_narrower_than_the_floor_is_said_to_have_been_left_at_once() -> None:
    x = overlapping()
    start = {"weights": [0.5, 0.5], 0: {"mean": [x[0, 0], 1.0], "variance": [1e-12, 1.0]}}
    model = sc.Mixture(2, init=start, n_init=1, estimate="ml").fit(x)
    assert model.converged_ or any("EM stopped" in note for note in model.notes_)
