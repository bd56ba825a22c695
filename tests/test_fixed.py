"""Fixed parameters stay as they were given, to the bit of their units, and the others are the best beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import softcount as sc
from small_tables import KINDS, fruit, mixture, refused
from softcount.families import Multinormal, Normal


def two_heaps(rows: int = 400, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(5.0, 2.0, rows // 2), rng.normal(9.0, 1.0, rows - rows // 2)])[:, None]


def fitted(rows: Any, fixed: Any, kinds: Any = "normal", **how: Any) -> Any:
    settings = {"estimate": "ml", "prior": 0.0, "n_init": 2, "random_state": 0, "tol": 1e-13}
    return sc.Mixture(2, kinds=kinds, fixed=fixed, **{**settings, **how}).fit(rows)


def likelihood(rows: np.ndarray, shares: Any, means: Any, variances: Any) -> float:
    """The log-likelihood of a mixture of normals, straight from its definition."""
    density = np.exp(-0.5 * (rows - np.array(means)) ** 2 / variances) / np.sqrt(2 * np.pi * variances)
    return float(np.log(density @ np.array(shares)).sum())


@pytest.mark.parametrize(
    ("fixed", "names"),
    [
        ({"weights": [0.25, 0.75]}, []),
        ({0: {"variance": [4.5, 0.5]}}, ["variance"]),
        ({0: {"mean": [4.0, 9.5]}}, ["mean"]),
        ({"weights": [0.5, 0.5], 0: {"mean": [4.0, 9.5], "variance": 2.0}}, ["mean", "variance"]),
    ],
)
def test_what_is_fixed_stays_and_the_rest_is_the_best(fixed: dict[Any, Any], names: list[str]) -> None:
    rows = two_heaps()
    model = fitted(rows, fixed)
    for name in names:
        wanted = np.broadcast_to(fixed[0][name], (2,))
        np.testing.assert_allclose(model.params_[0][name], wanted, rtol=1e-14)
    if "weights" in fixed:
        assert model.weights_.tolist() == fixed["weights"]
    best = direct_ascent(rows, model, fixed)
    assert model.log_likelihood_ == pytest.approx(best, abs=1e-6)


def direct_ascent(rows: np.ndarray, model: Any, fixed: dict[Any, Any]) -> float:
    """The best log-likelihood near the model's own parameters, looked for without EM."""
    own = fixed.get(0, {})

    def spelled(x: np.ndarray) -> tuple[Any, Any, Any]:
        share = 1 / (1 + np.exp(-x[0]))
        shares = fixed.get("weights", [share, 1 - share])
        return shares, own.get("mean", x[1:3]), np.broadcast_to(own.get("variance", np.exp(x[3:5])), (2,))

    part = model.params_[0]
    start = np.concatenate(
        [[np.log(model.weights_[0] / model.weights_[1])], part["mean"] + 0.01, np.log(part["variance"]) + 0.01]
    )
    found = minimize(lambda x: -likelihood(rows, *spelled(x)), start, method="BFGS", options={"gtol": 1e-6})
    return -float(found.fun)


def test_a_fixed_mean_has_its_variance_around_it() -> None:
    rows = two_heaps()
    one = sc.Mixture(1, kinds="normal", estimate="ml", fixed={0: {"mean": 6.0}}).fit(rows)
    assert one.params_[0]["variance"][0] == pytest.approx(np.mean((rows - 6.0) ** 2), rel=1e-12)
    block = np.hstack([rows, rows[::-1] ** 2])
    kinds = {(0, 1): Multinormal()}
    two = sc.Mixture(1, kinds=kinds, estimate="ml", fixed={(0, 1): {"mean": [6.0, 50.0]}}).fit(block)
    off = block - [6.0, 50.0]
    np.testing.assert_allclose(two.params_[0, 1]["covariance"][0], off.T @ off / len(off), rtol=1e-10)


@pytest.mark.parametrize("how", ["ml", "map", "mean"])
def test_the_objective_never_falls_beside_fixed_parameters(how: str) -> None:
    frame, _ = fruit(80)
    choices: list[dict[Any, Any]] = [
        {"size": {"mean": [0.0, 0.5]}}, {"size": {"variance": 0.7}}, {"visits": {"rate": [3.0, 5.0]}},
        {"colour": {"probability": [[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]]}}, {"weights": [0.3, 0.7]},
    ]  # fmt: skip
    for fixed in choices:
        model = mixture(fixed=fixed, estimate=how, prior=1.0).fit(frame)
        assert (np.diff(model.trace_) >= -1e-12 * np.abs(model.trace_[1:])).all()
        for key, part in fixed.items():
            if key != "weights":
                for name, value in part.items():
                    found = model.params_[key][name]
                    np.testing.assert_allclose(found, np.broadcast_to(value, found.shape), rtol=1e-13)


def test_levels_can_be_fixed_by_name() -> None:
    frame, _ = fruit(80)
    shares = {"red": [0.6, 0.1], "blue": [0.2, 0.4], "green": [0.2, 0.5]}
    model = mixture(fixed={"colour": shares}).fit(frame)
    for level, share in shares.items():
        place = model.levels_["colour"].index(level)
        np.testing.assert_allclose(model.params_["colour"]["probability"][:, place], share)


def test_the_order_of_the_groups_is_that_of_the_fixed_values() -> None:
    model = fitted(two_heaps(), {0: {"mean": [9.0, 5.0]}})
    assert model.params_[0]["mean"].tolist() == pytest.approx([9.0, 5.0], rel=1e-14)


@pytest.mark.parametrize(
    ("kinds", "fixed", "free"),
    [
        (KINDS, None, 1 + 4 + 4 + 2),
        (KINDS, {"weights": [0.5, 0.5]}, 4 + 4 + 2),
        (KINDS, {"size": {"variance": 1.0}}, 1 + 2 + 4 + 2),
        (KINDS, {"size": {"mean": 1.0, "variance": 1.0}, "visits": {"rate": 2.0}}, 1 + 4),
        (KINDS | {"size": Normal(tied="classes")}, {"size": {"variance": 1.0}}, 1 + 2 + 4 + 2),
        (KINDS | {"size": Normal(tied="classes")}, {"size": {"mean": 1.0}}, 1 + 1 + 4 + 2),
    ],
)
def test_fixed_parameters_are_not_counted(kinds: Any, fixed: Any, free: int) -> None:
    frame, _ = fruit(60)
    assert mixture(kinds=kinds, fixed=fixed).fit(frame).n_parameters_ == free


def test_a_fixed_covariance_is_not_counted() -> None:
    rng = np.random.default_rng(0)
    block = rng.normal(size=(60, 2))
    kinds = {(0, 1): Multinormal()}
    assert fitted(block, None, kinds).n_parameters_ == 1 + 4 + 6
    assert fitted(block, {(0, 1): {"covariance": 1.0}}, kinds).n_parameters_ == 1 + 4
    assert fitted(block, {(0, 1): {"mean": [0.0, 0.0]}}, kinds).n_parameters_ == 1 + 6


@pytest.mark.parametrize(
    ("fixed", "words"),
    [
        ({"weights": [0.5, 0.4]}, ["weights", "2 shares that sum to one"]),
        ({"weights": [0.5, 0.3, 0.2]}, ["weights", "2 shares"]),
        ({"height": {"mean": 1.0}}, ["'height'", "not a column", "'size'"]),
        ({"size": {"sigma": 1.0}}, ["'size' is normal", "mean and variance", "'sigma'"]),
        ({"size": {"variance": [1.0, 2.0, 3.0]}}, ["variance", "'size'", r"\(2,\)", r"\(3,\)"]),
        ({"size": {"variance": -1.0}}, ["'size'", "not all positive"]),
        ({"size": {"mean": float("nan")}}, ["'size'", "finite"]),
        ({"size": {"mean": "tall"}}, ["'size'", "numbers", "'tall'"]),
        ({"size": 3.0}, ["'size'", "mapping"]),
        ({"colour": {"red": 1.0, "blue": 0.5}}, ["'colour'", "sum to one"]),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(fixed: Any, words: list[str]) -> None:
    refused(lambda: mixture(fixed=fixed).fit(fruit()[0]), *words)


def test_columns_that_share_a_variance_are_fixed_alike() -> None:
    rows = np.random.default_rng(1).normal(size=(50, 2))
    refused(lambda: fitted(rows, {0: {"variance": 1.0}}, Normal(tied="both")), "share a variance", "the same in both")
    assert fitted(rows, {0: {"variance": 1.0}, 1: {"variance": 1.0}}, Normal(tied="both")).n_parameters_ == 5


def test_a_covariance_that_is_not_symmetric_is_refused() -> None:
    rows = np.random.default_rng(1).normal(size=(50, 2))
    lopsided = np.array([[1.0, 0.5], [0.0, 1.0]])
    refused(lambda: fitted(rows, {(0, 1): {"covariance": lopsided}}, Multinormal()), "(0, 1)", "not symmetric")
    starts = sc.GaussianMixture(2, means_init=rows[:2], precisions_init=np.stack([lopsided, lopsided]))
    refused(lambda: starts.fit(rows), "precisions_init", "symmetric")
