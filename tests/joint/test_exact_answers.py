"""Conditionals of random small joint models against enumeration and quadrature."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.stats import norm

import softcount as sc
from joint.enumerated_trees import Enumeration, code_of, moments_by_quadrature, random_coding, random_mixture
from softcount.fitted.joint import FittedJoint
from softcount.tree_mixtures.columns import Categories, Number

MODELS, TOLERANCE = 500, 1e-12


@cache
def fitted() -> FittedJoint:
    """A joint model of three columns of categories, one of few numbers, and two of numbers."""
    rng = np.random.default_rng(0)
    n = 200
    table = {
        "a": rng.choice(["x", "y"], n).tolist(), "b": rng.choice(["u", "v", "w"], n).tolist(),
        "few": rng.choice([1.0, 2.0, 5.0], n).tolist(), "p": rng.standard_normal(n).tolist(),
        "q": rng.standard_normal(n).tolist(), "c": rng.choice(["r", "s", "t"], n).tolist(),
    }  # fmt: skip
    return sc.JointModel(n_components=1, random_state=0).fit(table).fitted_


def random_model(seed: int) -> FittedJoint:
    rng, model = np.random.default_rng(seed), fitted()
    coding = random_coding(rng, model.trees.coding, {})
    mixture = random_mixture(rng, coding.sizes, len(coding.numbers))
    return replace(model, trees=replace(model.trees, coding=coding, mixture=mixture))


def random_given(rng: np.random.Generator, model: FittedJoint) -> dict[str, Any]:
    """Values of some columns, and lists of categories of others."""
    given: dict[str, Any] = {}
    for own in model.trees.coding.columns:
        if rng.random() < 0.5:
            continue
        if isinstance(own, Number):
            given[own.key] = float(rng.normal())
        elif isinstance(own, Categories):
            levels = list(model.schema[own.key].levels)
            some = rng.choice(len(levels), size=rng.integers(1, len(levels)), replace=False)
            chosen = [levels[place] for place in some]
            given[own.key] = chosen[0] if len(chosen) == 1 else chosen
        else:
            given[own.key] = float(rng.choice(own.values))
    return given


def enumerate_given(model: FittedJoint, given: dict[str, Any]) -> Enumeration:
    allowed, numbers = [], {}
    for own in model.trees.coding.columns:
        if isinstance(own, Number):
            if own.key in given:
                numbers[own.number] = float(own.unit.forward(np.array([given[own.key]]))[0][0])
            continue
        value = given.get(own.key)
        levels = list(model.schema[own.key].levels)
        values = value if isinstance(value, list) else [value]
        allowed.append(list(range(own.size)) if value is None else sorted({code_of(own, x, levels) for x in values}))
    return Enumeration(model.trees.mixture, allowed, numbers)


@pytest.mark.parametrize("part", range(10))
def test_every_conditional_is_that_of_enumeration(part: int) -> None:
    for seed in range(part * MODELS // 10, (part + 1) * MODELS // 10):
        rng, model = np.random.default_rng(seed + 10_000), random_model(seed)
        given = random_given(rng, model)
        expected, answers = enumerate_given(model, given), model.query(None, given)
        for own in model.trees.coding.columns:
            if own.key in given:
                continue
            answer = answers[own.key]
            if isinstance(own, Number):
                normals = expected.normals(own.number)
                mean, variance = moments_by_quadrature(normals, own.unit)
                assert answer.mean == pytest.approx(mean, abs=TOLERANCE, rel=TOLERANCE)
                assert answer.variance == pytest.approx(variance, rel=1e-10)
                x = float(rng.normal())
                z = float(own.unit.forward(np.array([x]))[0][0])
                below = sum(share * norm.cdf(z, m, sd) for share, m, sd in normals)
                assert answer.cdf(x) == pytest.approx(below, abs=TOLERANCE)
                assert answer.cdf(answer.quantile(0.3)) == pytest.approx(0.3, abs=1e-9)
                continue
            shares = expected.shares(own.part)
            if isinstance(own, Categories):
                np.testing.assert_allclose(list(answer.values()), shares, rtol=0, atol=TOLERANCE)
            else:
                np.testing.assert_allclose(answer.shares, shares, rtol=0, atol=TOLERANCE)


def test_joint_distributions_are_products_of_conditionals() -> None:
    for seed in range(50):
        model = random_model(seed)
        given = {"p": 0.3, "c": ["r", "s"]}
        joint = model.query(["a", "b", "few"], given)
        assert sum(joint.values()) == pytest.approx(1.0, abs=TOLERANCE)
        first = model.query("a", given)
        for a, share in first.items():
            second = model.query("b", given | {"a": a})
            for b, other in second.items():
                both = sum(value for (x, y, _), value in joint.items() if (x, y) == (a, b))
                assert both == pytest.approx(share * other, abs=TOLERANCE)


def test_densities_add_up_to_probabilities_of_ranges() -> None:
    """A range of a number weighs the rest as the integral over its values does."""
    points, weights = np.polynomial.legendre.leggauss(60)
    for seed in range(40):
        model = random_model(seed)
        own = next(x for x in model.trees.coding.numbers if x.key == "p")
        low, high = -0.6, 0.8
        edges = np.unique(np.clip([low, high, *own.unit.x], low, high))
        total = np.zeros(2)
        for a, b in itertools.pairwise(edges):
            for x, w in zip((a + b) / 2 + (b - a) / 2 * points, weights * (b - a) / 2, strict=True):
                z, log = own.unit.forward(np.array([x]))
                given = {own.number: float(z[0])}
                free = [0, 1, 2]
                rows = [Enumeration(model.trees.mixture, [[code], free, free, free], given) for code in (0, 1)]
                total += w * np.exp(log[0]) * np.array([row.total for row in rows])
        found = list(model.query("a", {"p": (low, high)}).values())
        np.testing.assert_allclose(found, total / total.sum(), atol=1e-9)


def test_log_densities_are_those_of_enumeration() -> None:
    for seed in range(100):
        rng, model = np.random.default_rng(seed), random_model(seed)
        given = {key: value for key, value in random_given(rng, model).items() if not isinstance(value, list)}
        expected = np.log(enumerate_given(model, given).total)
        for own in model.trees.coding.columns:
            if own.key in given and isinstance(own, Number):
                expected += own.unit.forward(np.array([given[own.key]]))[1][0]
        table = model.table({spec.key: [given.get(spec.key)] for spec in model.schema.used})
        from softcount.run.local import Runner

        assert model.score_rows(table, Runner())[0] == pytest.approx(expected, abs=1e-11)
