"""EM laws: the objective never falls, and one step is the step the oracle takes row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracle
import softcount as sc
from contract.checking import check_group, check_joint, condition, oracle_groups, parts_floored
from contract.examples import EXAMPLES, LAWS, Example, every_climb, weights_for
from contract.models import MIXED, hidden, memberships, mixed_rows, named
from softcount.fitted.fitted import Fitted

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")

PLUGGED = ("ml", "map", "mean")
STEPS = 12


def groups_of(model: Fitted, key: Any) -> list[oracle.Group]:
    return [{name: value[g] for name, value in model.params[key].items()} for g in range(model.n_groups)]


def joints(example: Example, model: Fitted, rows: Any) -> list[list[float]]:
    """Every row's log of share times density in every group, by the oracle."""
    leaves = [
        (leaf.family, example.leaf_cells(rows, leaf.key), groups_of(model, leaf.key), leaf.setting.levels)
        for leaf in model.model.leaves
    ]
    return [
        [
            oracle.log_joint([(family, cells[i], groups[g], levels) for family, cells, groups, levels in leaves], share)
            for g, share in enumerate(model.shares)
        ]
        for i in range(len(rows))
    ]


def grain(model: Fitted, key: Any) -> float:
    """How closely a density can be known: what rounding does where a group is nearly flat beside its column."""
    private, whole = model.estimates[key], model.imagined.hypers[key].get("whole", 0.0)
    narrow = np.max(whole / private["variance"]) if "variance" in private else 0.0
    return 1e-9 + 4e-16 * max(narrow, *(condition(group) for group in groups_of(model, key)))


@every_climb
def test_the_objective_of_a_mixture_never_falls(example: Example) -> None:
    """With `tol=0` EM takes every step it was given, unless one of them would lower the objective."""

    @LAWS
    @given(st.data(), st.sampled_from(PLUGGED))
    def law(data: Any, how: str) -> None:
        rows, names = data.draw(named(example))
        weights = data.draw(weights_for(len(rows)))
        start = {"init": memberships(names), "n_init": 1, "max_iter": STEPS, "tol": 0.0, "n_jobs": 1}
        model = sc.Mixture(2, kinds=example.kinds, prior=1.0, estimate=how, **start)
        rises(model.fit(example.table(rows), sample_weight=weights), STEPS)

    law()


def rises(model: Any, steps: int) -> None:
    heights = np.array(model.fitted_.trace)
    assert len(heights) == steps + 1 and np.isfinite(heights).all()
    assert np.all(np.diff(heights) >= -1e-12 * np.maximum(1.0, np.abs(heights[1:])))


@every_climb
def test_the_objective_of_naive_bayes_with_gaps_never_falls(example: Example) -> None:
    @LAWS
    @given(st.data(), st.sampled_from(PLUGGED))
    def law(data: Any, how: str) -> None:
        rows, names = data.draw(named(example))
        labels = hidden(names)
        labels[-1] = None
        model = sc.NaiveBayes(
            kinds=example.kinds, estimate=how, unlabelled_weight=1.0, max_iter=STEPS, tol=0.0, n_jobs=1
        )
        rises(model.fit(example.table(rows), labels), STEPS)

    law()


@pytest.mark.parametrize("how", PLUGGED)
def test_longer_steps_never_fall_either(how: str) -> None:
    @LAWS
    @given(mixed_rows(least=12, most=24))
    def law(drawn: Any) -> None:
        rows, names = drawn
        table = MIXED.table(rows).drop_columns(["hits", "shots", "x", "y"])
        kinds = {key: said for key, said in MIXED.kinds.items() if key not in (("hits", "shots"), ("x", "y"))}
        model = sc.Mixture(
            2, kinds=kinds, prior=1.0, estimate=how, init=memberships(names), n_init=1, max_iter=60, tol=1e-9, n_jobs=1
        ).fit(table)
        assert model.converged_ or model.n_iter_ == 60
        assert np.all(np.diff(model.trace_) >= -1e-12 * np.maximum(1.0, np.abs(model.trace_[1:])))

    law()


@pytest.mark.parametrize(
    "example", [e for e in EXAMPLES if e.climbs and not e.family.facts.counts_points], ids=lambda e: e.title
)
def test_one_step_of_a_mixture_matches_the_row_by_row_oracle(example: Example) -> None:
    @LAWS
    @given(st.data(), st.sampled_from(PLUGGED))
    def law(data: Any, how: str) -> None:
        rows, names = data.draw(named(example))
        weights = [weight or 0.25 for weight in data.draw(weights_for(len(rows)))]
        told = [name.lower() for name in names]
        start = sc.NaiveBayes(kinds=example.kinds, n_jobs=1).fit(example.table(rows), told).fitted_
        given_start = {"weights": start.shares, **start.params}
        settings = {"kinds": example.kinds, "prior": 1.0, "estimate": how, "n_init": 1, "tol": 0.0, "n_jobs": 1}
        stay = sc.Mixture(2, init=given_start, max_iter=0, **settings).fit(example.table(rows), sample_weight=weights)
        step = sc.Mixture(2, init=given_start, max_iter=1, **settings).fit(example.table(rows), sample_weight=weights)
        assert step.n_iter_ == 1
        logs = joints(example, stay.fitted_, rows)
        members = [[w * p for p in oracle.posterior(row)] for row, w in zip(logs, weights, strict=True)]
        check_step(example, stay.fitted_, step.fitted_, rows, members, how)
        assert step.weights_ == pytest.approx(oracle.shares(members, 1.0, how), rel=1e-8, abs=1e-9)
        if how == "ml":
            right = sum(w * oracle.log_sum(row) for row, w in zip(logs, weights, strict=True) if w)
            assert step.trace_[0] == pytest.approx(right, rel=grain(start, example.keys[0]), abs=1e-9)

    law()


@every_climb
def test_one_step_with_gaps_matches_the_row_by_row_oracle(example: Example) -> None:
    @LAWS
    @given(st.data(), st.sampled_from(PLUGGED))
    def law(data: Any, how: str) -> None:
        rows, names = data.draw(named(example))
        labels = [*hidden(names)[:-1], None]
        settings = {"kinds": example.kinds, "estimate": how, "tol": 0.0, "n_jobs": 1}
        stay = sc.NaiveBayes(max_iter=0, unlabelled_weight=1.0, **settings).fit(example.table(rows), labels).fitted_
        step = sc.NaiveBayes(max_iter=1, unlabelled_weight=1.0, **settings).fit(example.table(rows), labels).fitted_
        assert step.n_iter == 1
        logs = joints(example, stay, rows)
        pinned = {"u": [1.0, 0.0], "v": [0.0, 1.0]}
        members = [pinned.get(label) or oracle.posterior(row) for label, row in zip(labels, logs, strict=True)]
        check_step(example, stay, step, rows, members, how)
        assert step.shares == pytest.approx(oracle.shares(members), rel=1e-8, abs=1e-9)

    law()


def check_step(example: Example, before: Fitted, after: Fitted, rows: Any, members: Any, how: str) -> None:
    """The estimates after one step, against those the oracle makes of these memberships."""
    for key in example.keys:
        assume(grain(before, key) < 1e-8)
    right = oracle_groups(example, after, rows, members, 1.0, how, groups_of(before, example.keys[0]))
    for key in example.keys:
        for g, (mine, group) in enumerate(zip(groups_of(after, key), right[key], strict=True)):
            if example.family.name == "joint":
                check_joint(mine, group, rows, [row[g] for row in members], after.levels[key], 1.0, how)
            elif "share" in group:
                if not parts_floored(group, after, key):
                    check_group(mine, group, 1e-7)
            elif not floored(group, after.model.nodes[key].setting.floor):
                check_group(mine, group, 1e-7)


def floored(group: oracle.Group, floor: float) -> bool:
    """Whether a variance would be below the least that is allowed, so that the floor decides."""
    if "usual" in group:
        return bool(group["shape"] >= 0.5 * min(group["usual"] / floor, 1e12))
    if "whole" not in group:
        return False
    if "spread" in group:
        return bool(group["spread"] <= 2 * floor * max(group["whole"], 1e-300))
    if "variance" in group:
        return bool(group["variance"] <= 2 * floor * max(group["whole"], 1e-300))
    if min(group["whole"]) == 0:
        return True
    unit = np.sqrt(group["whole"])
    return bool(np.linalg.eigvalsh(np.array(group["covariance"]) / np.outer(unit, unit)).min() <= 2 * max(floor, 1e-10))


@every_climb
def test_scores_of_rows_match_the_row_by_row_oracle(example: Example) -> None:
    @LAWS
    @given(st.data())
    def law(data: Any) -> None:
        rows, names = data.draw(named(example))
        table = example.table(rows)
        model = sc.Mixture(
            2, kinds=example.kinds, prior=1.0, init=memberships(names), n_init=1, max_iter=2, tol=0.0, n_jobs=1
        ).fit(table)
        logs = joints(example, model.fitted_, rows)
        close = 10 * max(grain(model.fitted_, key) for key in example.keys)
        assert model.score_samples(table) == pytest.approx([oracle.log_sum(row) for row in logs], rel=close, abs=close)
        shares = [oracle.posterior(row) for row in logs]
        np.testing.assert_allclose(model.predict_proba(table), shares, atol=100 * close)
        assert model.log_likelihood_ == pytest.approx(sum(map(oracle.log_sum, logs)), rel=close, abs=close)
        assert model.score(table) == pytest.approx(model.log_likelihood_ / len(rows), rel=1e-12)

    law()


def test_a_row_the_start_makes_impossible_is_named() -> None:
    start = {"weights": [0.5, 0.5], "flavour": {"cherry": [1.0, 1.0], "lime": [0.0, 0.0]}}
    with pytest.raises(sc.DataError, match="row 3 is impossible"):
        sc.Mixture(2, init=start, estimate="ml", n_init=1).fit({"flavour": ["cherry", "cherry", "lime", "cherry"]})


def test_a_start_the_prior_rules_out_is_left_at_the_first_step() -> None:
    start = {"weights": [0.5, 0.5], "flavour": {"cherry": [1.0, 0.2], "lime": [0.0, 0.8]}}
    table = {"flavour": ["cherry", "cherry", "lime", "cherry", "lime"] * 4, "wrapper": ["r", "r", "g", "g", "g"] * 4}
    start["wrapper"] = {"r": [0.7, 0.1], "g": [0.3, 0.9]}
    model = sc.Mixture(2, init=start, n_init=1, accelerate=False, tol=1e-10).fit(table)
    assert model.trace_[0] == -np.inf and np.isfinite(model.trace_[1:]).all()
    assert model.converged_ and model.n_iter_ > 5


def test_a_level_only_unlabelled_rows_have_is_learned_under_ml() -> None:
    model = sc.NaiveBayes(estimate="ml", kinds={"a": "categorical"}, unlabelled_weight=1.0)
    model.fit({"a": ["x", "y", "z", "x", "z", "y"]}, ["u", "v", None, "u", None, "v"])
    assert model.levels_["a"] == ["x", "y", "z"]
    assert model.params_["a"]["probability"][:, 2] @ model.class_prior_ == pytest.approx(2 / 6)
    assert np.isfinite(model.fitted_.trace).all()
