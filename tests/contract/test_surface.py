"""What users rely on: keys, shapes and order of what was learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import softcount as sc
from contract.checking import worked
from contract.examples import EXAMPLES, LAWS, Example, every_example
from contract.models import MIXED, Model, every_model, mixed_rows, told
from softcount.core.counts import ROOT
from softcount.families import HOWS

NAMED = {
    "categorical": {"probability"},
    "bernoulli": {"probability"},
    "joint": {"probability"},
    "normal": {"mean", "variance"},
    "lognormal": {"mean", "variance"},
    "poisson": {"rate"},
    "multinormal": {"mean", "covariance"},
    "multinomial": {"probability"},
    "text": {"probability", "length"},
    "markov": {"probability", "length", "often"},
    "binomial": {"probability"},
    "gamma": {"mean", "shape"},
    "student": {"mean", "spread", "freedom"},
    "spiked": {"spike"},
    "mixed": {"share", "mean", "variance"},
    "mixed_block": {"share", "mean", "variance"},
}
"""The parameters that every way of estimating has."""


@every_example
@pytest.mark.parametrize("how", HOWS)
def test_parameters_lead_with_the_groups_under_their_own_names(example: Example, how: str) -> None:
    model = worked(example, how)
    assert set(model.params) == set(example.keys)
    for params in model.params.values():
        assert NAMED.get(example.family.name, set(example.family.facts.chart)) <= set(params)
        assert all(value.shape[0] == 2 for value in params.values())


@every_example
def test_shapes_are_groups_by_levels_columns_or_words(example: Example) -> None:
    model = worked(example)
    for key, params in model.params.items():
        if example.family.facts.kind.coded or example.family.name == "multinomial":
            wide = len(model.levels[key]) if example.family.facts.kind.coded else len(example.columns)
            assert params["probability"].shape == (2, wide)
            np.testing.assert_allclose(params["probability"].sum(axis=1), 1.0, rtol=1e-14)
        elif example.family.facts.counts_points:
            wide = params["probability"].shape[1]
            assert params["probability"].shape == (2, wide) and params["edges"].shape == (2, wide + 1)
            assert all(params[name].shape == (2,) for name in set(params) - {"probability", "edges", "interval"})
        elif example.family.name == "text":
            assert params["probability"].shape == (2, len(model.levels[key])) and params["length"].shape == (2,)
        elif example.family.name == "markov":
            contexts = 4 if example.family.order == 1 else 13
            assert params["probability"].shape == (2, contexts, 3) and params["often"].shape == (2, contexts)
        elif example.family.name == "multinormal":
            d = len(example.columns)
            assert params["mean"].shape == (2, d) and params["covariance"].shape == (2, d, d)
        elif example.family.name.startswith("mixed"):
            wide = (2, 2, 2) if example.family.facts.block else (2, 2)
            assert params["share"].shape == (2, 2) and params["mean"].shape == params["variance"].shape == wide
        else:
            assert all(value.shape == (2,) for name, value in params.items() if name != "alpha")


@every_model
def test_levels_are_sorted_and_columns_keep_their_keys(model: Model) -> None:
    @LAWS
    @given(mixed_rows())
    def law(drawn: Any) -> None:
        rows, names = drawn
        fitted = model(MIXED.kinds, MIXED.table(rows), told(model, names))
        assert set(fitted.params_) == {key for part in MIXED.parts for key in part.keys}
        assert set(fitted.counts_) == {ROOT, *fitted.params_}
        for levels in fitted.levels_.values():
            assert list(levels) == sorted(levels)
        for counts in fitted.counts_:
            assert fitted.counts_[counts].shape[0] == 2

    law()


def test_positions_are_the_keys_of_an_array() -> None:
    rng = np.random.default_rng(0)
    model = sc.NaiveBayes().fit(rng.normal(size=(40, 3)), rng.integers(0, 2, 40))
    assert list(model.params_) == [0, 1, 2] and list(model.counts_) == [ROOT, 0, 1, 2]


def test_components_come_largest_first() -> None:
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(0, 1, 50), rng.normal(20, 1, 200), rng.normal(-20, 1, 100)])[:, None]
    model = sc.Mixture(3, random_state=0, n_init=5).fit(values)
    assert np.all(np.diff(model.weights_) < 0)
    np.testing.assert_allclose(model.params_[0]["mean"], [20, -20, 0], atol=0.5)
    np.testing.assert_allclose(model.counts_["(groups)"], 350 * model.weights_, rtol=0.02)


@every_example
def test_the_number_of_free_parameters_is_what_a_count_by_hand_gives(example: Example) -> None:
    by_hand = {
        "categorical": 2 * 2,
        "bernoulli": 2,
        "joint": 2 * 5,
        "poisson": 2,
        "multinomial": 2 * 2,
        "text": 2 * 3,
        "markov": 2 * 4 * 2,
        "markov-2": 2 * 13 * 2,
        "text-bernoulli": 2 * 4,
        "binomial": 2,
        "normal": 4,
        "normal-classes": 3,
        "normal-2.5": 2,
        "normal-columns": 4 + 2,
        "normal-both": 4 + 1,
        "lognormal": 4,
        "gamma": 4,
        "student": 6,
        "student-4.0": 4,
        "spiked": 6,
        "spiked-normal-2.0-0.25": 6,
        "mixed-2": 2 * (1 + 4),
        "mixed_block-2": 2 * (1 + 8),
        "multinormal": 2 * (2 + 3),
        "multinormal-tied": 4 + 3,
        "multinormal-diagonal": 4 + 4,
        "multinormal-spherical": 4 + 2,
    }
    if example.family.facts.counts_points:
        model, key = worked(example), example.keys[0]
        cells, points = model.params[key]["probability"].shape[1], model.counts[key].shape[1]
        by_hand[example.title] = 2 * ((points if example.family.name == "kde" else cells) - 1)
        if "interval" in model.params[key]:
            found = int(model.params[key]["interval"].max()) + 1
            by_hand[example.title] = 2 * (found - 1) + cells - found
    if example.family.name == "grouped":
        found = int(worked(example).params["town"]["group"].max()) + 1
        by_hand["grouped"] = 2 * (found - 1) + 4 - found
    assert worked(example).n_parameters == 1 + by_hand.get(example.title, 2 * len(example.family.facts.chart))


@every_example
def test_the_posterior_has_one_belief_for_each_group(example: Example) -> None:
    model = worked(example)
    for key in example.keys:
        if getattr(example.family, "tied", None) in ("columns", "both"):
            with pytest.raises(sc.DataError, match="shares its variance"):
                model.posterior(key)
            continue
        if (
            example.family.name in ("gamma", "student", "mixed", "mixed_block", "spiked", "grouped")
            or example.family.facts.counts_points
        ):
            with pytest.raises(sc.DataError, match="conjugate"):
                model.posterior(key)
            continue
        belief = model.posterior(key)
        assert len(np.atleast_1d(belief.mean)) == 2


def test_the_examples_of_one_family_differ_only_in_their_settings() -> None:
    for example in EXAMPLES:
        assert example.title.startswith(example.family.name)
        assert len(example.types) == len(example.columns)
        assert all(len(row) == len(example.columns) for row in example.values)
