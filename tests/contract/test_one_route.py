"""One scoring route: predict = explain = query = score, for every family, model and estimate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from contract.checking import chunk_of, condition, public_density
from contract.examples import EXAMPLES, LAWS, Example, every_climb
from contract.models import MODELS, every_fit, named, told
from explained import contributions
from softcount.families import HOWS, How, Params, Poisson, Setting
from softcount.families.density import Density
from softcount.families.normal import centred_form
from softcount.fitted.answers import CLASS, fill_as_written
from softcount.fitted.classes import SurpriseMeter
from softcount.fitted.fitted import Fitted
from softcount.models.nodes import Node

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
CLOSE = 1e-9
every_how = pytest.mark.parametrize("how", HOWS)


def names_of(rows: Any) -> list[str]:
    """A class for every row by turns; a capital is one that models with gaps are not told."""
    return ["uvUuvV"[i % 6] for i in range(len(rows))]


def model_of(make: Any, example: Example, rows: Any, names: Any, how: str) -> Any:
    return make(example.kinds, example.table(rows), told(make, names), estimate=how)


# -- the law


def check_one_route(model: Any, example: Example, rows: Any) -> None:
    """Whatever is asked of these rows, the groups' log-odds behind the answer are the same."""
    fitted, table = model.fitted_, example.table(rows)
    logs = model.predict_log_proba(table)
    check_explained(model, table, logs)
    check_asked(model, example, rows, logs)
    check_filled(fitted, example, rows, logs)
    check_scored(fitted, example, rows, logs)
    check_counted(fitted, example, rows)
    measured = SurpriseMeter.of(fitted).measure(chunk_of(fitted, example, rows))
    with np.errstate(divide="ignore"):
        same(np.log(measured.members), logs)


def check_explained(model: Any, table: Any, logs: np.ndarray) -> None:
    """The columns and the prior add up to the log-odds of the two likeliest groups."""
    parts = contributions(model.explain(table))
    total = np.sum([parts[name].to_numpy() for name in parts.column_names], axis=0)
    ranked = np.sort(logs, axis=1)
    same(total, ranked[:, -1] - ranked[:, -2])


def check_asked(model: Any, example: Example, rows: Any, logs: np.ndarray) -> None:
    """The class asked for, with a row given, is the class predicted; and rows are drawn in that class."""
    for row, own in zip(rows, logs, strict=True):
        given = dict(zip(example.columns, row, strict=True))
        with np.errstate(divide="ignore"):
            same(np.log([*model.query(of=CLASS, given=given).values()]), own)
        _, groups = model.fitted_.condition(given).draw_columns(50, np.random.default_rng(7))
        chances = np.exp(own) / np.exp(own).sum()
        assert np.array_equal(groups, np.random.default_rng(7).choice(len(own), size=50, p=chances))


def check_filled(fitted: Fitted, example: Example, rows: Any, logs: np.ndarray) -> None:
    """Holes are filled by what the groups expect, each as likely as it is predicted to be."""
    found = fitted.fills(fitted.table(example.table(rows)))
    chunk = chunk_of(fitted, example, rows)
    for leaf in fitted.model.leaves:
        for place, column in enumerate(leaf.columns):
            where, values = found.get(column, (np.zeros(0, dtype=int), ()))
            stores = [fitted.schema.places[name] for name in leaf.columns]
            for i, value in zip(where.tolist(), values, strict=True):
                cells = np.array([[float(getattr(chunk, store)[i, slot]) for store, slot in stores]])
                right = leaf.density(fitted.estimates).fill(np.exp(logs[i : i + 1]), cells, place)
                if isinstance(value, str):
                    assert value == right[0]
                else:  # cells are written with few digits, and a mean between two of them may go either way
                    near = [fill_as_written(fitted.schema, column, right * way)[0] for way in (1 - CLOSE, 1 + CLOSE)]
                    assert any(value == pytest.approx(one, rel=CLOSE) for one in near)


def check_scored(fitted: Fitted, example: Example, rows: Any, logs: np.ndarray) -> None:
    """Predictions are the shares times what the families themselves say of their columns."""
    chunk = chunk_of(fitted, example, rows)
    with np.errstate(divide="ignore"):
        joint = np.tile(np.log(fitted.shares), (len(rows), 1))
    slack = 0.0
    for leaf in fitted.model.leaves:
        params = fitted.params[leaf.key]
        own = scored_by(fitted, leaf).score(fitted.model.column(leaf, chunk))
        own = np.where(own < -1e199, -np.inf, own)
        same(odds(scored_columns(fitted, chunk)[leaf.key]), odds(own), slack_of(params))
        joint, slack = joint + own, max(slack, slack_of(params))
    same(odds(logs), odds(joint), slack)


def scored_columns(fitted: Fitted, chunk: Any) -> dict[Any, np.ndarray]:
    return fitted.scorer.score_columns(fitted, chunk, fitted.scorer.compile(fitted))[0]


def scored_by(fitted: Fitted, leaf: Node) -> Density:
    """The density a leaf is scored with: normal columns by means in one float, as long as that has a deviation."""
    own, setting = fitted.estimates[leaf.key], leaf.setting
    bell = leaf.family.facts.stack == "reals" and centred_form(own, setting.anchor, setting.scale) is not None
    return public_density(leaf, fitted.params[leaf.key]) if bell else leaf.density(fitted.estimates)


def check_counted(fitted: Fitted, example: Example, rows: Any) -> None:
    """How much better rows of known class fit their own than the other is what their statistics say.

    Counting and scoring then mean one density, whatever the units.
    """
    if fitted.classes is None or fitted.n_iter or fitted.imagined.how == "predictive":
        return
    chunk, own = chunk_of(fitted, example, rows), [fitted.classes.index(name.lower()) for name in names_of(rows)]
    for leaf in fitted.model.leaves:
        stats, params = fitted.counts.arrays[leaf.key], fitted.estimates[leaf.key]
        scores, order = scored_columns(fitted, chunk)[leaf.key], np.arange(len(rows))
        scored = (scores[order, own] - scores[order, 1 - np.array(own)]).sum()
        if leaf.family.facts.exact and np.isfinite(scored):  # others count what they expect of what is hidden
            other = {name: part[::-1] for name, part in params.items()}
            counted = leaf.family.completed(stats, params) - leaf.family.completed(stats, other)
            assert scored == pytest.approx(counted, rel=CLOSE, abs=CLOSE)


def odds(scores: np.ndarray) -> np.ndarray:
    """Relative to the first group that is possible in each row."""
    possible = np.isfinite(scores)
    first = scores[np.arange(len(scores)), possible.argmax(axis=1)][:, None]
    return np.where(possible, scores - np.where(np.isfinite(first), first, 0.0), scores)


def slack_of(params: Params) -> float:
    """What rounding may do: to a covariance that is nearly flat, and to the mean of a block far from zero.

    A block is scored by means that are kept apart from what rounding left over; `params` have them rounded.
    """
    if "covariance" not in params:
        return 0.0
    far = np.abs(params["mean"]) / np.sqrt(np.diagonal(params["covariance"], axis1=1, axis2=2))
    flat = max(condition({name: value[g] for name, value in params.items()}) for g in range(len(far)))
    return 4e-16 * (flat + 10.0 * float(far.max()))


def same(one: Any, other: Any, slack: float = 0.0) -> None:
    """Log-odds to 1e-9 of a nat, or of themselves where they are large."""
    np.testing.assert_allclose(one, other, rtol=CLOSE + slack, atol=CLOSE + slack)


@every_how
@every_fit
def test_predict_is_explain_is_query_is_score(example: Example, model: Any, how: str) -> None:
    rows = example.values
    check_one_route(model_of(model, example, rows, names_of(rows), how), example, rows)


@every_fit
def test_explanations_and_scores_are_predictions_whatever_the_table(example: Example, model: Any) -> None:
    @LAWS
    @given(st.data(), st.sampled_from(["map", "mean", "predictive"]))
    def law(data: Any, how: str) -> None:
        rows, names = data.draw(named(example))
        found, table = model_of(model, example, rows, names, how), example.table(rows)
        logs = found.predict_log_proba(table)
        check_explained(found, table, logs)
        check_scored(found.fitted_, example, rows, logs)

    law()


@every_how
@every_climb
def test_the_score_of_a_row_is_the_sum_of_shares_times_densities(example: Example, how: str) -> None:
    rows = example.values
    mixture = model_of(MODELS["mixture"], example, rows, names_of(rows), how)
    fitted, scores = mixture.fitted_, mixture.score_samples(example.table(rows))
    logs = mixture.predict_log_proba(example.table(rows))
    for i, row in enumerate(rows):
        joints = [
            oracle.log_joint([_leaf(example, fitted, key, row, g) for key in example.keys], fitted.shares[g])
            for g in range(2)
        ]
        assert scores[i] == pytest.approx(oracle.log_sum(joints), rel=CLOSE, abs=CLOSE)
        with np.errstate(divide="ignore"):
            same(np.exp(logs[i]), oracle.posterior(joints))


def _leaf(example: Example, fitted: Fitted, key: Any, row: Any, g: int) -> Any:
    group = {name: value[g] for name, value in fitted.params[key].items()}
    return example.family, example.leaf_cells([row], key)[0], group, fitted.model.nodes[key].setting.levels


# -- families made to break it

COUNTS = next(example for example in EXAMPLES if example.family.name == "poisson")
TABLE = COUNTS.table(COUNTS.values)


class Renamed(Poisson, frozen=True):
    """A Poisson whose predictive parameters have names of their own."""

    name = "renamed"

    def estimate(self, stats: Any, hyper: Any, how: How) -> Params:
        names = {"rate": "rate", "shape": "events", "rows": "days"}
        return {names[name]: part for name, part in Poisson.estimate(self, stats, hyper, how).items()}

    def density(self, params: Params, setting: Setting) -> Density:
        names = {"rate": "rate", "events": "shape", "days": "rows"}
        return Poisson().density({names[name]: part for name, part in params.items()}, setting)


class Shaped(Poisson, frozen=True):
    """A Poisson whose one and only parameter is called as another family's predictive one."""

    name = "shaped"

    def estimate(self, stats: Any, hyper: Any, how: How) -> Params:
        plain = "mean" if how == "predictive" else how
        return {"shape": Poisson.estimate(self, stats, hyper, plain)["rate"]}

    def natural(self, params: Params) -> np.ndarray:
        return Poisson.natural(self, {"rate": params["shape"]})

    def density(self, params: Params, setting: Setting) -> Density:
        return ShapedDensity(self, params, setting)


class ShapedDensity(Density):
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        return self.own["shape"], self.own["shape"]

    def draw(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.poisson(self.own["shape"][groups]).astype(np.float64)


class Contradicting(Poisson, frozen=True):
    """A Poisson that scores rows at twice the rate that it counts them at."""

    name = "contradicting"

    def density(self, params: Params, setting: Setting) -> Density:
        return Poisson().density({"rate": 2.0 * params["rate"] + 1.0}, setting)


def naive_bayes_of(family: Poisson, how: str) -> Any:
    """Counts in two classes, modelled by this family."""
    names = told(MODELS["naive-bayes"], names_of(COUNTS.values))
    return MODELS["naive-bayes"](dict.fromkeys(COUNTS.columns, family), TABLE, names, estimate=how)


@every_how
@pytest.mark.parametrize("family", [Renamed(), Shaped()], ids=lambda family: family.name)
def test_a_family_with_names_of_its_own_is_right_everywhere_or_caught(family: Poisson, how: str) -> None:
    model = naive_bayes_of(family, how)
    plain = naive_bayes_of(Poisson(), "mean" if family.name == "shaped" and how == "predictive" else how)
    right = np.allclose(model.predict_log_proba(TABLE), plain.predict_log_proba(TABLE), rtol=0, atol=CLOSE)
    assert right == (not caught(model))


@pytest.mark.parametrize("how", ["ml", "map", "mean"])
def test_a_family_that_scores_otherwise_than_it_counts_is_caught(how: str) -> None:
    assert caught(naive_bayes_of(Contradicting(), how)) and not caught(naive_bayes_of(Poisson(), how))


def caught(model: Any) -> bool:
    """Whether the law fails."""
    try:
        check_one_route(model, COUNTS, COUNTS.values)
    except AssertionError:
        return True
    return False
