"""A new distribution is one file: Weibull's and von Mises' are held to the laws and go all the way of a model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import vonmises, weibull_min

import oracle
import softcount as sc
from contract import test_counting, test_draws, test_em, test_families
from contract.examples import Example
from contract.family_examples import Cells, example
from contract.von_mises import LEAST, MOST, VonMises, resultant
from contract.weibull import Weibull
from softcount.families import FAMILIES

HOURS = [1.5, 2.25, None, 9.0, 2.5, 8.75, 1.0, 9.5, 4.0]
ANGLES = [0.3, -0.4, None, 2.9, -3.0, 0.1, 3.1, 0.2, -2.8]
EXAMPLES = [
    Example(x)
    for x in (
        example(Weibull(), "hours", HOURS, Cells("positives", scales=(1.0,))),
        example(VonMises(), "angle", ANGLES, Cells("reals", offsets=(0.0,), scales=(1.0,))),
    )
]


def weibull_density(cell: Any, group: oracle.Group, levels: Any) -> float:
    if cell is None:
        return 0.0
    if "rows" in group:
        y = cell**2
        after = math.log(group["rows"] / group["total"]) - (group["rows"] + 1) * math.log1p(y / group["total"])
        return after + math.log(2 * cell)
    return float(weibull_min(2.0, scale=group["rate"] ** -0.5).logpdf(cell))


def von_mises_density(cell: Any, group: oracle.Group, levels: Any) -> float:
    return 0.0 if cell is None else float(vonmises(group["concentration"], group["direction"]).logpdf(cell))


def weibull_fit(cells: Any, members: Any, prior: float, how: str, levels: Any) -> list[oracle.Group]:
    squares = [None if cell is None else cell**2 for cell in cells]
    fits = oracle._of_totals(lambda rows, total, _: {"rate": rows / total}, ("rows", "total"))
    return fits(squares, members, prior, how, levels)


def von_mises_fit(cells: Any, members: Any, prior: float, how: str, levels: Any) -> list[oracle.Group]:
    found = []
    for g in range(len(members[0])):
        rows, east, north = 0.0 if how == "ml" else prior, 0.0, 0.0
        for cell, row in zip(cells, members, strict=True):
            if cell is not None:
                rows, east, north = rows + row[g], east + row[g] * math.cos(cell), north + row[g] * math.sin(cell)
        length = math.hypot(east, north) / (rows or 1.0)
        kappa = LEAST if length <= resultant(LEAST) else MOST
        if resultant(LEAST) < length < resultant(MOST):
            kappa = brentq(lambda k, at=length: resultant(k) - at, LEAST, MOST, xtol=1e-13)
        found.append({"direction": math.atan2(north, east), "concentration": kappa})
    return found


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for family, density, fit in ((Weibull, weibull_density, weibull_fit), (VonMises, von_mises_density, von_mises_fit)):
        monkeypatch.setitem(FAMILIES, family.name, family)
        monkeypatch.setitem(oracle.DENSITIES, family.name, density)
        monkeypatch.setitem(oracle.ESTIMATES, family.name, fit)


LAWS = [
    test_families.test_a_row_of_holes_has_no_features_and_scores_nothing,
    test_families.test_score_matches_the_row_by_row_oracle,
    test_families.test_features_times_natural_parameters_are_the_score,
    test_families.test_estimate_matches_the_row_by_row_oracle,
    test_families.test_groups_that_are_alike_do_not_diverge,
    test_families.test_public_parameters_come_back_private,
    test_families.test_sensible_parameters_pass_and_senseless_ones_are_told,
    test_families.test_what_follows_by_draws_is_near_what_a_family_says,
    test_counting.test_two_halves_add_to_the_whole,
    test_counting.test_rows_added_later_are_rows_seen_at_once,
    test_counting.test_rows_forgotten_were_never_there,
    test_em.test_the_objective_of_a_mixture_never_falls,
    test_em.test_one_step_of_a_mixture_matches_the_row_by_row_oracle,
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_a_new_distribution_keeps_the_laws(law: Any, example: Example) -> None:
    law(example)


@pytest.mark.parametrize("how", ["mean", "predictive"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_its_draws_follow_it(example: Example, how: str) -> None:
    test_draws.test_draws_follow_the_distribution(example, how)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
@pytest.mark.parametrize("how", ["ml", "mean"])
def test_its_slope_is_that_of_differences(example: Example, how: Any) -> None:
    law = test_families.test_a_slope_is_that_of_differences_along_every_way_the_parameters_may_go
    law(example, how)


@pytest.mark.parametrize("family", [Weibull(1.5), VonMises()], ids=lambda family: family.name)
@pytest.mark.parametrize("how", ["mean", "predictive"])
def test_a_model_with_it_is_saved_asked_drawn_and_reported(family: Any, how: str, tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 100)
    x = np.where(y == "a", rng.vonmises(2.0, 8.0, 200), rng.vonmises(1.0, 8.0, 200))
    x = np.abs(x) + 0.1
    model = sc.NaiveBayes(kinds={"x": family}, estimate=how).fit({"x": x}, y)
    assert np.mean(model.predict({"x": x}) == y) > 0.8
    model.save(tmp_path / "m.sc")
    again = sc.load(tmp_path / "m.sc")
    rows = {"x": [0.5, None, 2.5]}
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    assert again.query("x").mean == pytest.approx(x.mean(), abs=0.2)
    assert np.mean(again.sample(2_000, random_state=0)["x"]) == pytest.approx(again.query("x").mean, abs=0.1)
    assert float(again.impute({"x": [None]})["x"][0]) == pytest.approx(x.mean(), abs=0.2)
    odds = np.log(model.predict_proba(rows))
    reasons = model.explain(rows)
    total = np.asarray(reasons["(prior)"], dtype=float) + np.asarray(reasons["x"], dtype=float)
    np.testing.assert_allclose(total, np.abs(odds[:, 0] - odds[:, 1]), atol=1e-9)
    assert "x" in model.report().render(".txt") and np.isfinite(model.anomaly_score(rows)).all()


def test_weibull_is_exported_and_von_mises_is_refused_by_name() -> None:
    x, y = np.abs(np.random.default_rng(1).normal(size=60)) + 0.1, ["a", "b"] * 30
    assert "EXP" in sc.NaiveBayes(kinds={"x": Weibull()}).fit({"x": x}, y).to_sql().upper()
    with pytest.raises(sc.DataError, match="von_mises"):
        sc.NaiveBayes(kinds={"x": VonMises()}).fit({"x": x}, y).to_sql()
