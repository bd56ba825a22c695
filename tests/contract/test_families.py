"""Laws that every family keeps by itself, without a model around it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from contract.checking import check_estimates, chunk_of, condition, dense, fitted, public_density, worked
from contract.examples import EXAMPLES, Example, every_example, labelled, laws
from softcount.families import FAMILIES, HOWS, Family, floors
from softcount.families.density import Density
from softcount.families.learning import schwarz_evidence
from softcount.learn.initialise import perturb


def test_every_registered_family_has_an_example() -> None:
    """But one that is nothing without a network: it has laws of its own (`test_linear_family.py`)."""
    assert {example.family.name for example in EXAMPLES} == set(FAMILIES) - {"linear"}


def test_no_two_examples_are_the_same() -> None:
    assert len({example.title for example in EXAMPLES}) == len(EXAMPLES)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_family_is_known_by_its_own_name(name: str) -> None:
    assert FAMILIES[name].name == name and issubclass(FAMILIES[name], Family)


@every_example
def test_a_row_of_holes_has_no_features_and_scores_nothing(example: Example) -> None:
    model = worked(example)
    chunk = chunk_of(model, example, [(None,) * len(example.columns)])
    for leaf in model.model.leaves:
        column = model.model.column(leaf, chunk)
        first = 1 if leaf.family.name == "joint" else 0  # the joint table's own place for rows that say nothing
        assert not dense(leaf.family.features(column, leaf.setting))[:, first:].any()
        assert not leaf.density(model.estimates).score(column).any()
        assert not np.any(leaf.family.base(column) if not leaf.family.facts.kind.coded else 0.0)


@every_example
def test_score_matches_the_row_by_row_oracle(example: Example) -> None:
    @laws(example)
    @given(st.data(), st.sampled_from(HOWS))
    def law(data: Any, how: str) -> None:
        rows, names = data.draw(labelled(example))
        model = fitted(example, rows, names, how)
        chunk = chunk_of(model, example, rows)
        for leaf in model.model.leaves:
            column, params = model.model.column(leaf, chunk), model.params[leaf.key]
            base = np.zeros(len(rows)) + (0.0 if leaf.family.facts.kind.coded else leaf.family.base(column))
            mine = public_density(leaf, params).score(column) + base[:, None]
            for g in range(2):
                group = {name: value[g] for name, value in params.items()}
                close = 1e-9 + 4e-16 * condition(group)
                for cell, found in zip(example.leaf_cells(rows, leaf.key), mine[:, g], strict=True):
                    right = oracle.log_density(leaf.family, cell, group, leaf.setting.levels)
                    assert found < -1e199 if right == -np.inf else found == pytest.approx(right, rel=close, abs=close)

    law()


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.is_product], ids=lambda e: e.title)
def test_features_times_natural_parameters_are_the_score(example: Example) -> None:
    model = worked(example)
    chunk = chunk_of(model, example, example.values)
    for leaf in model.model.leaves:
        column, private = model.model.column(leaf, chunk), model.estimates[leaf.key]
        units = np.log(leaf.setting.scale).sum() if "mean" in private else 0.0
        there = ~np.isnan(column) if column.ndim == 1 else np.ones(len(column), dtype=bool)
        product = leaf.family.features(column, leaf.setting) @ leaf.family.natural(private).T + units * there[:, None]
        np.testing.assert_allclose(product, public_density(leaf, model.params[leaf.key]).score(column), rtol=1e-11)


@every_example
def test_estimate_matches_the_row_by_row_oracle(example: Example) -> None:
    @laws(example)
    @given(st.data(), st.sampled_from(HOWS))
    def law(data: Any, how: str) -> None:
        rows, names = data.draw(labelled(example, whole=True))
        prior = data.draw(st.sampled_from([1.0, 1.0, 2.5]))
        members = [[1.0 if name == group else 0.0 for group in "uv"] for name in names]
        model = fitted(example, rows, names, how, prior)
        check_estimates(example, model, rows, members, prior, how)

    law()


@every_example
def test_predictive_is_what_the_posterior_predicts(example: Example) -> None:
    """Students, negative binomials and Polya urns agree with the conjugate objects that stand for the same belief."""
    model = worked(example, "predictive")
    chunk = chunk_of(model, example, example.values)
    for leaf in model.model.leaves:
        if getattr(leaf.family, "tied", None) in ("columns", "both") or leaf.family.name not in (
            "normal", "lognormal", "poisson", "multinormal",
        ):  # fmt: skip
            continue
        column = model.model.column(leaf, chunk)
        complete = column[~np.isnan(column)] if column.ndim == 1 else column[~np.isnan(column).any(axis=1)]
        base = leaf.family.base(complete) if leaf.family.name == "poisson" else 0.0
        mine = public_density(leaf, model.params[leaf.key]).score(complete).T + base
        said = np.log(complete) if leaf.family.name == "lognormal" else complete
        if leaf.family.name == "multinormal" and leaf.family.covariance in ("diagonal", "spherical", "tied"):  # type: ignore[attr-defined]
            continue
        np.testing.assert_allclose(mine, model.posterior(leaf.key).predict_log(said), rtol=1e-9, atol=1e-9)


@every_example
@pytest.mark.parametrize("how", HOWS)
def test_describe_has_one_line_for_each_group(example: Example, how: str) -> None:
    model = worked(example, how)
    for leaf in model.model.leaves:
        lines = model.describe(leaf.key)
        assert len(lines) == 2 and all(line and "\n" not in line for line in lines)


@every_example
def test_groups_that_are_alike_do_not_diverge(example: Example) -> None:
    model = worked(example)
    for leaf in model.model.leaves:
        alike = {name: value[[0, 0]] for name, value in model.estimates[leaf.key].items()}
        far = leaf.family.density(alike, leaf.setting).divergence(np.array([0.25, 0.75]))
        assert np.all(np.abs(far) < 1e-12)


@every_example
def test_public_parameters_come_back_private(example: Example) -> None:
    model = worked(example)
    for leaf in model.model.leaves:
        back = leaf.family.private(model.params[leaf.key], leaf.setting)
        for name in back:
            np.testing.assert_allclose(back[name], model.estimates[leaf.key][name], rtol=1e-12, atol=1e-12)


@every_example
def test_sensible_parameters_pass_and_senseless_ones_are_told(example: Example) -> None:
    model = worked(example)
    for leaf in model.model.leaves:
        wrong = {name: -np.abs(value) - 1.0 for name, value in model.estimates[leaf.key].items()}
        assert leaf.density(model.estimates).find_fault() is None
        assert leaf.family.density(wrong, leaf.setting).find_fault()


def test_the_interface_of_a_family_stays_small() -> None:
    assert len([name for name in dir(Family) if not name.startswith("_")]) <= 24


# -- what is derived from the core, against what families say themselves


@every_example
@pytest.mark.parametrize("how", ["ml", "mean"])
def test_a_slope_is_that_of_differences_along_every_way_the_parameters_may_go(example: Example, how: Any) -> None:
    model, rng = worked(example), np.random.default_rng(3)
    for leaf in model.model.leaves:
        family, hyper, stats = leaf.family, model.imagined.hypers[leaf.key], model.counts.arrays[leaf.key]
        params = perturb(family, model.estimates[leaf.key], np.ones(2, dtype=bool), rng)
        own, plain = (of(stats, params, hyper, how) for of in (family.slope, partial(Family.slope, family)))
        for name, line in family.facts.chart.items():
            way = direction(params[name], line, family, rng)
            moved = floors.clip(family, params | {name: params[name] + 0.01 * way}, hyper)
            if np.array_equal(moved[name], params[name]):
                continue  # known, so it goes nowhere
            size = np.abs(plain[name] * way).sum()
            assert (own[name] * way).sum() == pytest.approx((plain[name] * way).sum(), abs=1e-7 * (1.0 + size))


def direction(value: np.ndarray, line: str, family: Family, rng: np.random.Generator) -> np.ndarray:
    """A way to go that keeps shares adding up to one, tied spreads tied and covariances of their shape."""
    if line == "plain":
        return rng.normal(size=value.shape)
    if line == "share":
        return rng.normal(size=value.shape) * value * (1.0 - value)
    if line == "shares":
        way = rng.normal(size=value.shape)
        return value * (way - (value * way).sum(axis=-1, keepdims=True))
    return value * rng.normal()


@every_example
def test_what_follows_by_draws_is_near_what_a_family_says(example: Example) -> None:
    """Entropy, moments and shares below a value, of families with one number a row; evidence is a number."""
    model = worked(example)
    for leaf in model.model.leaves:
        family, density, stats = leaf.family, leaf.density(model.estimates), model.counts.arrays[leaf.key]
        assert np.isfinite(schwarz_evidence(family, stats, model.imagined.hypers[leaf.key]))
        if family.facts.block or not family.facts.kind.numeric:
            continue
        np.testing.assert_allclose(Density.entropy(density), density.entropy(), atol=0.1)
        mean, variance = density.moments()
        middle = float(mean[0])
        np.testing.assert_allclose(Density.cdf(density, middle), density.cdf(middle), atol=0.04)
        logged = family.facts.kind.logged or getattr(family, "of", "") == "lognormal"
        if np.isfinite(variance).all() and not logged and family.facts.exact:
            found = Density.moments(density)
            np.testing.assert_allclose(found[0], mean, atol=0.1 * np.sqrt(variance).max())
            np.testing.assert_allclose(found[1], variance, rtol=0.25)
