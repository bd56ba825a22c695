"""Mixtures of normals within a class: what they find, what they say, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

import softcount as sc
from softcount.families.mixed import fit_parts

RNG = np.random.default_rng(5)
TWO = np.concatenate([RNG.normal(-3.0, 0.5, 150), RNG.normal(2.0, 1.0, 250)])
HALF = ["p", "q"] * 200


def test_parts_are_what_scikit_learn_finds() -> None:
    model = sc.NaiveBayes(kinds={"x": sc.families.Mixed("normal", 2)}, estimate="ml", tol=1e-12).fit(
        {"x": TWO}, ["p"] * 400
    )
    peer = GaussianMixture(2, tol=1e-10, max_iter=5000, reg_covar=0.0, random_state=0).fit(TWO[:, None])
    order, mine = np.argsort(peer.means_.ravel()), model.params_["x"]
    np.testing.assert_allclose(mine["share"][0], peer.weights_[order], rtol=1e-5)
    np.testing.assert_allclose(mine["mean"][0], peer.means_.ravel()[order], rtol=1e-5)
    np.testing.assert_allclose(mine["variance"][0], peer.covariances_.ravel()[order], rtol=1e-5)
    assert model.fitted_.log_likelihood == pytest.approx(400 * peer.score(TWO[:, None]), rel=1e-9)


def test_a_block_is_scikit_learns_diagonal_mixture() -> None:
    rows = np.stack([TWO, np.where(TWO < 0, 10.0, -10.0) + RNG.normal(size=400)], axis=1)
    kinds = {(0, 1): sc.families.Mixed("normal", 2)}
    model = sc.NaiveBayes(kinds=kinds, estimate="ml", tol=1e-12).fit(rows, ["p"] * 400)
    peer = GaussianMixture(2, covariance_type="diag", tol=1e-10, reg_covar=0.0, random_state=0).fit(rows)
    order = np.argsort(peer.means_[:, 0])
    np.testing.assert_allclose(model.params_[0, 1]["mean"][0], peer.means_[order], rtol=1e-6)
    np.testing.assert_allclose(model.params_[0, 1]["variance"][0], peer.covariances_[order], rtol=1e-5)


def test_one_part_is_a_normal_column() -> None:
    one = sc.NaiveBayes(kinds={"x": sc.families.Mixed("normal", 1)}).fit({"x": TWO}, HALF)
    plain = sc.NaiveBayes(kinds={"x": "normal"}).fit({"x": TWO}, HALF)
    np.testing.assert_allclose(one.predict_proba({"x": TWO}), plain.predict_proba({"x": TWO}), atol=1e-12)


def test_a_cell_of_a_block_tells_of_the_other() -> None:
    table = {"x": TWO, "z": np.where(TWO < 0, 10.0, -10.0) + RNG.normal(size=400)}
    model = sc.NaiveBayes(kinds={("x", "z"): "mixed"}).fit(table, HALF)
    left, right = (model.query(of="x", given={"z": z}).mean for z in (10.0, -10.0))
    assert left == pytest.approx(-3.0, abs=0.2) and right == pytest.approx(2.0, abs=0.3)
    holes = model.impute({"x": [None, None, 2.0], "z": [10.0, -10.0, -10.0]})
    np.testing.assert_allclose(holes["x"][:2], [left, right], rtol=1e-6)
    drawn = model.sample(200, given={"z": 10.0}, random_state=1)["x"].to_numpy()
    assert np.abs(drawn + 3.0).max() < 3.0


def test_rounded_numbers_have_no_part_narrower_than_the_rounding() -> None:
    ages = np.round(RNG.normal(40.0, 10.0, 400))
    ages[:200] = 40.0
    model = sc.NaiveBayes(kinds={"age": sc.families.Mixed("normal", 2)}, estimate="ml").fit({"age": ages}, HALF)
    assert model.params_["age"]["variance"].min() >= (1 / 12) * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_starts_take_weights_as_repetition_and_rows_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = rng.integers(1, 4, 60)
    rows = np.round(rng.normal(size=(60, 2)), 1)
    heavy = fit_parts(rows, times.astype(float), 3)
    order = rng.permutation(int(times.sum()))
    long = fit_parts(np.repeat(rows, times, axis=0)[order], np.ones(int(times.sum())), 3)
    for one, other in zip(heavy, long, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("given", "said"), [
    (("poisson", 2), "parts are normal"),
    (("normal", 0), "from 1 to 20"),
    (("normal", 2.5), "from 1 to 20"),
    (("normal", True), "from 1 to 20"),
    (("normal", 1000), "from 1 to 20"),
])  # fmt: skip
def test_senseless_parts_are_refused(given: Any, said: str) -> None:
    with pytest.raises(sc.DataError, match=said):
        sc.families.Mixed(*given)


def test_what_is_no_prior_of_numbers_is_refused() -> None:
    with pytest.raises(sc.DataError, match="cannot take"):
        sc.NaiveBayes(kinds={"x": "mixed"}, prior=sc.priors.Beta(1, 1)).fit({"x": TWO}, HALF)


def test_fixed_parts_stay_and_the_rest_is_around_them() -> None:
    model = sc.Mixture(
        1, kinds={"x": sc.families.Mixed("normal", 2)}, estimate="ml", fixed={"x": {"mean": [-2.5, 2.5]}}
    )
    found = model.fit({"x": TWO}).params_["x"]
    np.testing.assert_array_equal(found["mean"], [[-2.5, 2.5]])
    assert found["variance"][0, 0] > 0.25 + 0.2


def test_a_column_of_one_value_and_one_of_none_are_taken() -> None:
    table = {"x": [7.0] * 8, "z": [None] * 8}
    kinds = {"x": sc.families.Mixed("normal", 2), "z": sc.families.Mixed("normal", 2)}
    model = sc.NaiveBayes(kinds=kinds).fit(table, ["p", "q"] * 4)
    np.testing.assert_allclose(model.predict_proba(table), 0.5, atol=1e-9)
