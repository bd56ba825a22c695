"""Laws that every family keeps by itself, without a model around it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracle
import softcount as sc
from contract.examples import EXAMPLES, LAWS, Example, every_example, labelled
from softcount.families import FAMILIES, HOWS, Family
from softcount.models.fitted import Fitted
from softcount.table import Chunk

DRAWS = 40_000


def fitted(example: Example, rows: Any, names: Any, how: str = "mean", prior: Any = 1.0) -> Fitted:
    model = sc.NaiveBayes(kinds=example.kinds, estimate=how, prior=prior, n_jobs=1)
    return model.fit(example.table(rows), names).fitted_


def worked(example: Example, how: str = "mean") -> Fitted:
    """The example's own rows in two classes, by turns."""
    return fitted(example, example.values, ["uv"[i % 2] for i in range(len(example.values))], how)


def chunk_of(model: Fitted, example: Example, rows: Any) -> Chunk:
    return next(model.chunks(model.table(example.table(rows))))


def test_every_registered_family_has_an_example() -> None:
    assert {example.family.name for example in EXAMPLES} == set(FAMILIES)


def test_no_two_examples_are_the_same() -> None:
    assert len({example.title for example in EXAMPLES}) == len(EXAMPLES)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_family_is_known_by_its_own_name(name: str) -> None:
    assert FAMILIES[name].name == name and issubclass(FAMILIES[name], Family)


@every_example
def test_a_row_of_holes_has_no_features_and_scores_nothing(example: Example) -> None:
    model = worked(example)
    chunk = chunk_of(model, example, [(None,) * len(example.columns)])
    for leaf in model.star.leaves:
        column = model.star.column(leaf, chunk)
        first = 1 if leaf.family.name == "joint" else 0  # the joint table's own place for rows that say nothing
        assert not leaf.family.features(column, leaf.setting)[:, first:].any()
        assert not leaf.family.score(column, model.params[leaf.key], leaf.setting).any()
        assert not np.any(leaf.family.base(column) if not leaf.family.discrete else 0.0)


@every_example
@pytest.mark.parametrize("how", HOWS)
def test_score_matches_the_row_by_row_oracle(example: Example, how: str) -> None:
    @LAWS
    @given(st.data())
    def law(data: Any) -> None:
        rows, names = data.draw(labelled(example))
        model = fitted(example, rows, names, how)
        chunk = chunk_of(model, example, rows)
        for leaf in model.star.leaves:
            column, params = model.star.column(leaf, chunk), model.params[leaf.key]
            base = np.zeros(len(rows)) + (0.0 if leaf.family.discrete else leaf.family.base(column))
            mine = leaf.family.score(column, params, leaf.setting) + base[:, None]
            for g in range(2):
                group = {name: value[g] for name, value in params.items()}
                close = 1e-9 + 4e-16 * condition(group)
                for cell, found in zip(example.leaf_cells(rows, leaf.key), mine[:, g], strict=True):
                    right = oracle.log_density(leaf.family, cell, group, leaf.setting.levels)
                    assert found < -1e199 if right == -np.inf else found == pytest.approx(right, rel=close, abs=close)

    law()


def condition(group: oracle.Group) -> float:
    """How many times a rounding error of a covariance can grow in its density."""
    if "covariance" not in group:
        return 1.0
    unit = np.sqrt(np.diagonal(group["covariance"]))
    return float(np.linalg.cond(group["covariance"] / np.outer(unit, unit)))


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.dotted], ids=lambda e: e.title)
def test_features_times_natural_parameters_are_the_score(example: Example) -> None:
    model = worked(example)
    chunk = chunk_of(model, example, example.values)
    for leaf in model.star.leaves:
        column, private = model.star.column(leaf, chunk), model.estimates.leaves[leaf.key]
        units = np.log(leaf.setting.scale).sum() if "mean" in private else 0.0
        there = ~np.isnan(column) if column.ndim == 1 else np.ones(len(column), dtype=bool)
        product = leaf.family.features(column, leaf.setting) @ leaf.family.natural(private).T + units * there[:, None]
        np.testing.assert_allclose(product, leaf.family.score(column, model.params[leaf.key], leaf.setting), rtol=1e-11)


@every_example
@pytest.mark.parametrize("how", HOWS)
def test_estimate_matches_the_row_by_row_oracle(example: Example, how: str) -> None:
    @LAWS
    @given(st.data())
    def law(data: Any) -> None:
        rows, names = data.draw(labelled(example, whole=True))
        prior = data.draw(st.sampled_from([1.0, 1.0, 2.5]))
        members = [[1.0 if name == group else 0.0 for group in "uv"] for name in names]
        model = fitted(example, rows, names, how, prior)
        check_estimates(example, model, rows, members, prior, how)

    law()


def check_estimates(example: Example, model: Fitted, rows: Any, members: Any, prior: float, how: str) -> None:
    right = oracle_groups(example, model, rows, members, prior, how)
    for key in example.keys:
        for g, group in enumerate(right[key]):
            check_group({name: value[g] for name, value in model.params[key].items()}, group)


def oracle_groups(
    example: Example, model: Fitted, rows: Any, members: Any, prior: float, how: str, before: Any = None
) -> dict[Any, list[oracle.Group]]:
    """What the oracle makes of the rows: each leaf's groups."""
    family = example.family
    cells = {key: example.leaf_cells(rows, key) for key in example.keys}
    if family.name in ("normal", "lognormal"):
        found = oracle.normals(family, [cells[key] for key in example.keys], members, prior, how)
        return dict(zip(example.keys, found, strict=True))
    if family.name == "multinormal":
        key = example.keys[0]
        return {key: oracle.multinormals(family, cells[key], members, prior, how, before)}
    levels = {leaf.key: leaf.setting.levels for leaf in model.star.leaves}
    return {key: oracle.estimate(family, cells[key], members, prior, how, levels[key]) for key in example.keys}


def check_group(mine: dict[str, Any], right: oracle.Group, tolerance: float = 1e-11) -> None:
    """One group's parameters; a variance that is nothing beside its column's is only held above zero."""
    if "covariance" in mine:
        return check_covariance(mine, right, tolerance)
    unit = max(right.get("whole", 0.0), 1e-300) ** 0.5
    for name, value in mine.items():
        if name == "mean":
            assert abs(value - right["mean"]) <= tolerance * unit + 4e-16 * abs(right["mean"])
        elif name in ("variance", "spread") and right[name] < 1e-20 * unit**2 + 1e-280:
            assert 0 < value <= 1e-20 * unit**2 + (1e-12 * abs(right["mean"])) ** 2 + 1e-250
        else:
            np.testing.assert_allclose(value, right[name], rtol=tolerance, atol=tolerance * (name in ("probability", "shape")))


def check_covariance(mine: dict[str, Any], right: oracle.Group, tolerance: float) -> None:
    unit = np.sqrt(np.maximum(right["whole"], 1e-300))
    assume(np.min(right["whole"]) > 0)
    off = np.abs(mine["mean"] - right["mean"])
    assert np.all(off <= tolerance * unit + 4e-16 * np.abs(right["mean"]))
    wanted = np.array(right["covariance"]) / np.outer(unit, unit)
    assume(np.linalg.eigvalsh(wanted).min() > 1e-10)
    np.testing.assert_allclose(mine["covariance"] / np.outer(unit, unit), wanted, rtol=tolerance, atol=tolerance)


@every_example
def test_predictive_is_what_the_posterior_predicts(example: Example) -> None:
    """Students, negative binomials and Polya urns agree with the conjugate objects that stand for the same belief."""
    model = worked(example, "predictive")
    chunk = chunk_of(model, example, example.values)
    for leaf in model.star.leaves:
        if getattr(leaf.family, "tied", None) in ("columns", "both") or leaf.family.name not in (
            "normal", "lognormal", "poisson", "multinormal",
        ):  # fmt: skip
            continue
        column = model.star.column(leaf, chunk)
        complete = column[~np.isnan(column)] if column.ndim == 1 else column[~np.isnan(column).any(axis=1)]
        base = leaf.family.base(complete) if leaf.family.name == "poisson" else 0.0
        mine = leaf.family.score(complete, model.params[leaf.key], leaf.setting).T + base
        said = np.log(complete) if leaf.family.name == "lognormal" else complete
        if leaf.family.name == "multinormal" and leaf.family.covariance in ("diagonal", "spherical", "tied"):  # type: ignore[attr-defined]
            continue
        np.testing.assert_allclose(mine, model.posterior(leaf.key).predict_log(said), rtol=1e-9, atol=1e-9)


@every_example
@pytest.mark.parametrize("how", ["mean", "predictive"])
def test_draws_follow_the_distribution(example: Example, how: str) -> None:
    """Sums of features of many draws lie within six standard errors of where the oracle's densities put them."""
    model = worked(example, how)
    rng = np.random.default_rng(20)
    for leaf in model.star.leaves:
        for g in range(2):
            drawn = leaf.family.draw(model.params[leaf.key], np.full(DRAWS, g), rng)
            group = {name: value[g] for name, value in model.params[leaf.key].items()}
            check_draws(leaf, drawn, group, g)


def check_draws(leaf: Any, drawn: np.ndarray, group: oracle.Group, g: int) -> None:
    if leaf.family.discrete:
        check_shares(np.bincount(drawn, minlength=len(leaf.setting.levels) + 1)[1:], group["probability"])
    elif leaf.family.name == "multinomial":
        check_shares(drawn.sum(axis=0), group["probability"])
    elif leaf.family.name == "binomial":
        share = group["probability"]
        check_shares(np.bincount(drawn[:, 0].astype(int), minlength=2), [1 - share, share])
    elif leaf.family.name == "multinormal":
        check_block(drawn, group)
    else:
        params = {name: np.array([value]) for name, value in group.items()}
        check_steps(np.sort(drawn), lambda x: float(leaf.family.cdf(params, x)[0]))


def check_shares(counts: np.ndarray, shares: Any) -> None:
    shares = np.asarray(shares)
    assert counts.sum() == DRAWS
    assert np.all(np.abs(counts - DRAWS * shares) <= 6 * np.sqrt(DRAWS * shares * (1 - shares)) + 1e-9)


def check_steps(drawn: np.ndarray, cdf: Any) -> None:
    """The share of draws at or below each of many points, against the family's own."""
    for x in drawn[:: DRAWS // 40]:
        below, right = np.searchsorted(drawn, x, side="right") / DRAWS, cdf(x)
        assert abs(below - right) <= 6 * np.sqrt(max(right * (1 - right), 1e-4) / DRAWS)


def check_block(drawn: np.ndarray, group: oracle.Group) -> None:
    """Squared distances from the mean follow F (chi-squared over freedom), all directions alike."""
    from scipy.stats import chi2, f

    factor = np.linalg.cholesky(group["covariance"])
    moved = np.linalg.solve(factor, (drawn - group["mean"]).T)
    d, distance = len(moved), np.sort((moved**2).sum(axis=0) / group.get("spread", 1.0))
    law = f(d, group["freedom"]) if "freedom" in group else None
    check_steps(distance, lambda x: float(law.cdf(x / d)) if law else float(chi2.cdf(x, d)))
    signs = (moved > 0).sum(axis=1) / DRAWS
    both = ((moved[0] > 0) == (moved[1] > 0)).mean()
    assert np.all(np.abs([*signs, both] - np.array(0.5)) <= 6 * 0.5 / np.sqrt(DRAWS))


@every_example
@pytest.mark.parametrize("how", HOWS)
def test_describe_has_one_line_for_each_group(example: Example, how: str) -> None:
    model = worked(example, how)
    for leaf in model.star.leaves:
        lines = model.describe(leaf.key)
        assert len(lines) == 2 and all(line and "\n" not in line for line in lines)


@every_example
def test_groups_that_are_alike_do_not_diverge(example: Example) -> None:
    model = worked(example)
    for leaf in model.star.leaves:
        alike = {name: value[[0, 0]] for name, value in model.params[leaf.key].items()}
        assert np.all(np.abs(leaf.family.divergence(alike, np.array([0.25, 0.75]))) < 1e-12)


@every_example
def test_public_parameters_come_back_private(example: Example) -> None:
    model = worked(example)
    for leaf in model.star.leaves:
        back = leaf.family.private(model.params[leaf.key], leaf.setting)
        for name in back:
            np.testing.assert_allclose(back[name], model.estimates.leaves[leaf.key][name], rtol=1e-12, atol=1e-12)


@every_example
def test_sensible_parameters_pass_and_senseless_ones_are_told(example: Example) -> None:
    model = worked(example)
    for leaf in model.star.leaves:
        private = model.estimates.leaves[leaf.key]
        assert leaf.family.check_params(private) is None
        wrong = {name: -np.abs(value) - 1.0 for name, value in private.items()}
        assert leaf.family.check_params(wrong)
