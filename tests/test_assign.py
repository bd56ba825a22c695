"""Hard and drawn assignment: k-means step by step, a classification likelihood that never falls, repeatable draws."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from small_tables import fruit, mixture, refused
from softcount.learn.em import assign_drawn, assign_hard

# The cost J after every assignment and update, from the worked example 11.
COSTS = [
    1201.957842, 252.290779, 119.169959, 80.670249, 79.613137, 79.342883, 79.313142, 79.283401, 79.283401,
]  # fmt: skip
BAGS: dict[Any, Any] = {"weights": [0.5, 0.5], 0: {"mean": [-1.75, 1.75]}, 1: {"mean": [1.0, -1.0]}}


def start(variance: float) -> dict[Any, Any]:
    spread = {"variance": [variance, variance]}
    return {"weights": BAGS["weights"], 0: BAGS[0] | spread, 1: BAGS[1] | spread}


def held(variance: float) -> dict[Any, Any]:
    return {"weights": [0.5, 0.5], 0: {"variance": variance}, 1: {"variance": variance}}


@pytest.fixture
def faithful(data: Callable[[str], Path]) -> np.ndarray:
    rows = np.loadtxt(data("r_datasets/faithful.csv"), delimiter=",", skiprows=1)[:, -2:]
    return (rows - rows.mean(axis=0)) / rows.std(axis=0, ddof=1)


def as_k_means(rows: np.ndarray, **how: Any) -> Any:
    settings = {"kinds": "normal", "estimate": "ml", "n_init": 1, "init": start(1.0), "fixed": held(1.0)}
    return sc.Mixture(2, **{**settings, **how}).fit(rows)


def costs(rows: np.ndarray, trace: list[float], variance: float = 1.0) -> np.ndarray:
    """The k-means cost that a classification log-likelihood with these variances and equal shares stands for."""
    constant = len(rows) * (np.log(0.5) - np.log(2 * np.pi * variance))
    return -2.0 * variance * (np.array(trace) - constant)


def lloyd(rows: np.ndarray, centres: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """k-means row by row: every row to its nearest centre, every centre to the mean of its rows."""
    for _ in range(steps):
        near = [min(range(len(centres)), key=lambda g, row=row: sum((row - centres[g]) ** 2)) for row in rows]
        centres = np.array([np.mean([row for row, own in zip(rows, near, strict=True) if own == g], axis=0)
                            for g in range(len(centres))])  # fmt: skip
    return centres, np.array(near)


def test_hard_assignment_with_equal_fixed_variances_has_the_costs_of_k_means(faithful: np.ndarray) -> None:
    model = as_k_means(faithful, assign="hard", half_steps=True)
    np.testing.assert_allclose(costs(faithful, model.trace_), COSTS, atol=5e-7)
    assert model.converged_ and model.n_iter_ == 4


def test_every_step_is_a_step_of_k_means(faithful: np.ndarray) -> None:
    for steps in (1, 2, 3, 4):
        model = as_k_means(faithful, assign="hard", max_iter=steps, tol=0)
        centres, _ = lloyd(faithful, np.array([[-1.75, 1.0], [1.75, -1.0]]), steps)
        found = np.stack([model.params_[0]["mean"], model.params_[1]["mean"]], axis=1)
        np.testing.assert_allclose(found, centres, rtol=1e-12)


def test_soft_assignment_tends_to_k_means_as_the_variance_shrinks(faithful: np.ndarray) -> None:
    centres, _ = lloyd(faithful, np.array([[-1.75, 1.0], [1.75, -1.0]]), 8)
    apart = []
    for variance in (0.3, 0.1, 0.03, 0.01, 0.003, 0.0003):
        model = as_k_means(faithful, init=start(variance), fixed=held(variance))
        found = np.stack([model.params_[0]["mean"], model.params_[1]["mean"]], axis=1)
        apart.append(np.abs(found - centres).max())
    assert all(after <= before + 1e-12 for before, after in pairwise(apart))
    assert apart[0] > 1e-3 and apart[-1] < 1e-6


def test_the_classification_likelihood_never_falls() -> None:
    frame, _ = fruit(200)
    for seed in range(8):
        model = mixture(assign="hard", n_components=3, random_state=seed).fit(frame)
        assert model.converged_
        assert (np.diff(model.trace_) >= -1e-12 * np.abs(model.trace_[1:])).all()


def test_the_log_likelihood_is_that_of_the_rows_whatever_the_assignment() -> None:
    frame, _ = fruit(200)
    for assign in ("soft", "hard", "drawn"):
        model = mixture(assign=assign, max_iter=30).fit(frame)
        assert model.log_likelihood_ == pytest.approx(model.score_samples(frame).sum(), rel=1e-10)


def test_drawn_assignment_repeats_to_the_bit_on_any_number_of_threads() -> None:
    frame, _ = fruit(20_000)
    one, two, other = (
        mixture(assign="drawn", max_iter=6, n_jobs=jobs, random_state=seed).fit(frame)
        for jobs, seed in ((1, 5), (2, 5), (1, 6))
    )
    assert one.trace_ == two.trace_ and one.trace_ != other.trace_
    assert np.array_equal(one.params_["size"]["mean"], two.params_["size"]["mean"])


def test_drawn_assignment_takes_every_step_and_keeps_the_best() -> None:
    frame, _ = fruit(100)
    model = mixture(assign="drawn", estimate="ml", prior=0.0, max_iter=40).fit(frame)
    assert model.n_iter_ == 40 and len(model.trace_) == 41
    assert min(np.diff(model.trace_)) < 0
    assert model.log_likelihood_ == pytest.approx(max(model.trace_), rel=1e-12)


def test_ties_go_to_the_lowest_group_and_impossible_rows_to_none() -> None:
    members = np.array([[0.5, 0.5], [0.25, 0.75], [0.0, 0.0]])
    assign_hard(members, 0)
    assert members.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]


def test_draws_follow_the_posterior() -> None:
    members = np.tile([0.2, 0.0, 0.5, 0.3], (40_000, 1))
    assign_drawn(members, 0, seed=1, turn=2)
    assert set(members.sum(axis=1)) == {1.0} and set(np.unique(members)) == {0.0, 1.0}
    shares = members.mean(axis=0)
    assert shares[1] == 0.0
    np.testing.assert_allclose(shares, [0.2, 0.0, 0.5, 0.3], atol=4 * np.sqrt(0.25 / 40_000))


def test_an_unknown_assignment_is_refused() -> None:
    refused(lambda: mixture(assign="firm").fit(fruit()[0]), "firm", "'soft', 'hard' or 'drawn'")
