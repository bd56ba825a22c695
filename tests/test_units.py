"""The same rows in other units: the same classes, and a log-likelihood that differs by the change of variable alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softcount as sc

SHAPES: dict[str, Any] = {
    "full": {(0, 1): sc.families.Multinormal("full")},
    "tied": {(0, 1): sc.families.Multinormal("tied")},
    "diag": sc.families.Normal(),
    "spherical": sc.families.Normal(tied="columns"),
}


def rows() -> np.ndarray:
    rng = np.random.default_rng(7)
    first = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 2]], 120)
    second = rng.multivariate_normal([5, -4], [[1.5, -0.3], [-0.3, 0.5]], 80)
    # On a grid that an offset of 1e8 keeps exactly, so that the table itself is the same.
    return np.round(np.concatenate([first, second]) * 2**20) / 2**20


def fitted(table: np.ndarray, shape: str, estimate: str) -> sc.Mixture:
    return sc.Mixture(2, kinds=SHAPES[shape], estimate=estimate, n_init=3, random_state=0, n_jobs=1).fit(table)


@pytest.mark.parametrize("estimate", ["ml", "mean"])
@pytest.mark.parametrize("shape", SHAPES)
def test_an_offset_changes_nothing(shape: str, estimate: str) -> None:
    table = rows()
    plain, moved = fitted(table, shape, estimate), fitted(table + 1e8, shape, estimate)
    np.testing.assert_array_equal(plain.predict(table), moved.predict(table + 1e8))
    assert moved.log_likelihood_ / 200 == pytest.approx(plain.log_likelihood_ / 200, abs=1e-9)


@pytest.mark.parametrize("estimate", ["ml", "mean"])
@pytest.mark.parametrize("factor", [1e-150, 3.0, 1e4, 1e150])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_scale_changes_the_unit_alone(shape: str, factor: float, estimate: str) -> None:
    table = rows()
    plain, scaled = fitted(table, shape, estimate), fitted(table * factor, shape, estimate)
    np.testing.assert_array_equal(plain.predict(table), scaled.predict(table * factor))
    back = scaled.log_likelihood_ / 200 + 2 * np.log(factor)
    assert back == pytest.approx(plain.log_likelihood_ / 200, abs=1e-9)


def test_clusters_a_thousandth_apart_stay_perfect() -> None:
    rng = np.random.default_rng(8)
    table = np.concatenate([rng.normal(0, 1e-4, 100), rng.normal(1e-3, 1e-4, 100)])[:, None]
    labels = sc.Mixture(2, kinds="normal", estimate="ml", random_state=0, n_init=3).fit_predict(table)
    assert len(set(labels[:100])) == len(set(labels[100:])) == 1
    assert labels[0] != labels[100]
