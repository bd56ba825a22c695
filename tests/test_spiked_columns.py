"""A spike and a density beside it: what is learned, drawn, asked and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.families.spiked import INNER

RNG = np.random.default_rng(3)
KIND = RNG.integers(0, 2, 600)
RAIN = np.where(RNG.random(600) < 0.8 - 0.3 * KIND, 0.0, np.exp(RNG.normal(2.0 + KIND, 1.0, 600)))
of_all = pytest.mark.parametrize("of", INNER)


def fitted(of: str, **how: Any) -> Any:
    return sc.NaiveBayes(kinds={"rain": sc.families.Spiked(of)}, **how).fit({"rain": RAIN}, KIND)


@of_all
@pytest.mark.parametrize("estimate", ["ml", "mean", "predictive"])
def test_rows_beside_the_spike_say_what_they_say_alone(of: str, estimate: str) -> None:
    model, beside = fitted(of, estimate=estimate), RAIN > 0
    alone = sc.NaiveBayes(kinds={"rain": of}, estimate=estimate).fit({"rain": RAIN[beside]}, KIND[beside])
    for name, value in alone.params_["rain"].items():
        np.testing.assert_allclose(model.params_["rain"][name], value, rtol=1e-9)
    zeros = np.array([((RAIN == 0) & (k == KIND)).sum() for k in (0, 1)])
    extra = 0.0 if estimate == "ml" else 1.0
    shares = (zeros + extra) / (np.bincount(KIND) + 2 * extra)
    np.testing.assert_allclose(model.params_["rain"]["spike"], shares, rtol=1e-12)


@of_all
def test_a_score_is_the_spikes_share_or_the_rest_times_a_density(of: str) -> None:
    model = fitted(of)
    mixture = sc.Mixture(1, kinds={"rain": sc.families.Spiked(of)}, prior=1.0).fit({"rain": RAIN})
    alone = sc.Mixture(1, kinds={"rain": of}, prior=1.0).fit({"rain": RAIN[RAIN > 0]})
    spike = float(mixture.params_["rain"]["spike"][0])
    scores = mixture.score_samples({"rain": [0.0, 5.0]})
    beside = alone.score_samples({"rain": [5.0, 6.0]})[0]
    np.testing.assert_allclose(scores, [np.log(spike), np.log1p(-spike) + beside], rtol=1e-9)
    odds = np.log(model.predict_proba({"rain": [0.0]})[0])
    told = np.log(model.params_["rain"]["spike"] * model.class_prior_)
    np.testing.assert_allclose(odds[1] - odds[0], told[1] - told[0], rtol=1e-9)


@pytest.mark.parametrize("of", ["lognormal", "gamma", "exponential"])
def test_amounts_are_never_drawn_below_zero_and_query_agrees_with_draws(of: str) -> None:
    model = fitted(of)
    drawn = model.sample(20_000, random_state=0)["rain"].to_numpy()
    assert drawn.min() == 0.0
    answer = model.query(of="rain")
    assert (drawn == 0).mean() == pytest.approx(answer.cdf(0.0), abs=0.015)
    assert (drawn <= 10.0).mean() == pytest.approx(answer.cdf(10.0), abs=0.015)
    assert answer.cdf(-1e-9) == 0.0


def test_the_spike_is_a_density_as_wide_as_the_rounding() -> None:
    families = [sc.families.Spiked("gamma", 0.0, wide) for wide in (1.0, 0.1)]
    plain, narrow = (sc.Mixture(1, kinds={"rain": family}).fit({"rain": RAIN}) for family in families)
    table = {"rain": [0.0, 5.0]}
    difference = narrow.score_samples(table) - plain.score_samples(table)
    np.testing.assert_allclose(difference, [np.log(10.0), 0.0], atol=1e-12)


def test_a_spike_may_be_anywhere() -> None:
    hours = np.where(RNG.random(400) < 0.5, 40.0, RNG.normal(38.0, 12.0, 400))
    model = sc.NaiveBayes(kinds={"hours": sc.families.Spiked("normal", at=40)}).fit({"hours": hours}, ["a"] * 400)
    assert model.params_["hours"]["spike"][0] == pytest.approx(0.5, abs=0.06)
    assert "at 40, else mean" in model.fitted_.describe("hours")[0]


def test_counts_add_and_files_keep_the_settings(tmp_path: Path) -> None:
    family = sc.families.Spiked("gamma", at=0.0, rounding=0.5)
    parts = (slice(300), slice(300, None), slice(None))
    models = [sc.NaiveBayes(kinds={"rain": family}).fit({"rain": RAIN[s]}, KIND[s]) for s in parts]
    merged = models[0].merge(models[1])
    told = [model.predict_proba({"rain": RAIN}) for model in (merged, models[2])]
    np.testing.assert_allclose(*told, rtol=1e-11)
    merged.save(tmp_path / "rain.sc")
    back = sc.load(tmp_path / "rain.sc")
    assert back.fitted_.model.leaves[0].family == family
    np.testing.assert_array_equal(back.predict_proba({"rain": RAIN}), told[0])


@pytest.mark.parametrize(("given", "said"), [
    ({"of": "poisson"}, "the other numbers are one of"),
    ({"of": "spiked"}, "the other numbers are one of"),
    ({"at": float("nan")}, "finite"),
    ({"at": "zero"}, "finite"),
    ({"rounding": 0.0}, "above zero"),
    ({"rounding": float("inf")}, "above zero"),
])  # fmt: skip
def test_senseless_spikes_are_refused(given: Any, said: str) -> None:
    with pytest.raises(sc.DataError, match=said):
        sc.families.Spiked(**given)


def test_what_the_other_family_cannot_hold_is_refused_by_row() -> None:
    with pytest.raises(sc.DataError, match=r"'rain'.*row 3 holds -2"):
        sc.NaiveBayes(kinds={"rain": "spiked"}).fit({"rain": [0.0, 1.0, -2.0, 3.0]}, [0, 0, 1, 1])


@of_all
def test_nothing_but_the_spike_and_nothing_at_it_are_taken(of: str) -> None:
    for column in ([0.0] * 6, [1.0, 2.0, 3.5, 1.0, 2.0, 3.0]):
        model = sc.NaiveBayes(kinds={"rain": sc.families.Spiked(of)}).fit({"rain": column}, ["a", "b"] * 3)
        assert np.isfinite(model.predict_proba({"rain": [0.0, 2.0, 50.0]})).all()
