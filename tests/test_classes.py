"""Understanding classes: influence, class reports, membership entropy, anomaly scores and their reasons."""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import oracle
import softcount as sc
from contract.checking import chunk_of, fitted, worked
from contract.examples import EXAMPLES, LAWS, Example, every_example, labelled
from softcount.core.counts import ROOT
from softcount.errors import DataError
from softcount.estimators.result_frames import arrow_of as arrow
from softcount.fitted.classes import SurpriseMeter, sort_rows
from softcount.fitted.explain import measure_departures
from softcount.run.local import Threads
from softcount.table.schema import Kind

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")

# -- influence, against integrals of densities that the oracle knows


def whole_rows(example: Example) -> list[Any]:
    """The example's rows, without those in which a block has holes: EM would complete them class by class."""
    rows = [row for row in example.values if None not in row or not example.family.facts.block]
    return rows * 2


def expectation(example: Example, model: Any, key: Any, group: dict[str, Any], of: Any) -> float:
    """The average of `of(cell)` under one group's distribution, by adding up or integrating."""
    family, levels = example.family, model.model.nodes[key].setting.levels
    if example.title == "text-bernoulli":
        documents = [" ".join(words) for n in range(len(levels) + 1) for words in combinations(levels, n)]
        return math.fsum(math.exp(oracle.log_density(family, x, group, levels)) * of(x) for x in documents)
    if family.name == "markov":  # one step: a context as often as it is there, and what follows it
        cells = np.ndindex(group["probability"].shape)
        return math.fsum(group["often"][at[0]] * group["probability"][at] * of(at) for at in cells)
    if family.facts.kind.coded or one_by_one(example):
        return math.fsum(p * of(level) for level, p in zip(levels, group["probability"], strict=True) if p > 0)
    if family.name == "binomial":
        p = float(group["probability"])
        return p * of((1, 1)) + (1 - p) * of((0, 1))
    if family.facts.counts_points:
        places, weights = np.polynomial.legendre.leggauss(12)
        parts = []
        for (a, b), share in zip(pairwise(group["edges"]), group["probability"], strict=True):
            cells = a + (b - a) * (places + 1) / 2
            density = weights * np.exp([oracle.log_density(family, x, group, levels) for x in cells])
            parts += [share * p * of(x) for x, p in zip(cells, density / density.sum(), strict=True) if share > 0]
        return math.fsum(parts)
    if family.name == "spiked":
        share = float(group["spike"])
        return share * float(of(family.at)) + (1 - share) * integral(family.inner, group, of)
    return integral(family, group, of)


def integral(family: Any, group: dict[str, Any], of: Any) -> float:
    """The average of `of(cell)` under one group of a family that SciPy has too."""
    known = reference(family.name, group)
    if family.facts.kind is Kind.COUNT:
        points = np.arange(200)
        return float(known.pmf(points) @ of(points))
    # The trapezium rule, in the logarithm of what is positive: right to all digits, as the ends are flat.
    if family.name == "normal":
        points = known.mean() + known.std() * np.linspace(-12, 12, 4_001)
        return float(np.trapezoid(known.pdf(points) * of(points), points))
    logs = np.linspace(-200, 40, 40_001)
    return float(np.trapezoid(known.pdf(np.exp(logs)) * np.exp(logs) * of(np.exp(logs)), logs))


def one_by_one(example: Example) -> bool:
    """Whether rows hold several counts or words, each a draw of its own."""
    return example.title in ("multinomial", "text") or example.family.name == "markov"


def reference(name: str, group: dict[str, Any]) -> Any:
    """One group's distribution as SciPy has it."""
    if name in oracle.REFERENCES:
        return oracle.REFERENCES[name](group)
    if name == "gamma":
        return stats.gamma(group["shape"], scale=group["mean"] / group["shape"])
    deviation = math.sqrt(group["variance"])
    if name == "lognormal":
        return stats.lognorm(deviation, scale=math.exp(group["mean"]))
    return stats.norm(group["mean"], deviation)


def one_count(example: Example, cell: Any, group: dict[str, Any], levels: Any) -> Any:
    """The log-density of a cell; of a block of counts, that of one count."""
    if example.family.name == "markov":
        return math.log(group["probability"][cell])
    if one_by_one(example):
        return math.log(group["probability"][list(levels).index(cell)])
    if (
        example.family.facts.kind.coded
        or example.family.facts.counts_points
        or example.family.name in ("binomial", "text")
    ):
        return oracle.log_density(example.family, cell, group, levels)
    if example.family.name == "spiked":
        spiked, spike = example.family, float(group["spike"])
        beside = math.log1p(-spike) + reference(spiked.of, group).logpdf(cell)
        return np.where(np.equal(cell, spiked.at), math.log(spike / spiked.rounding), beside)
    known = reference(example.family.name, group)
    return known.logpmf(cell) if example.family.facts.kind is Kind.COUNT else known.logpdf(cell)


SINGLE = [x for x in EXAMPLES if x.family.facts.mergeable and x.family.name != "multinormal"]
"""Families whose one-class fit is the sum of the classes' counts, and whose densities have one cell."""


@pytest.mark.parametrize("example", [x for x in SINGLE if x.climbs], ids=lambda example: example.title)
def test_influence_is_the_divergence_from_the_fit_of_one_class(example):
    rows = whole_rows(example)
    names = ["uv"[i % 3 == 0] for i in range(len(rows))]
    model, single = fitted(example, rows, names), fitted(example, rows, ["u"] * len(rows))
    for key, far in measure_departures(model).items():
        levels = model.model.nodes[key].setting.levels
        whole = {name: value[0] for name, value in single.params[key].items()}
        for g in range(2):
            group = {name: value[g] for name, value in model.params[key].items()}

            def ratio(cell: Any, group: Any = group, whole: Any = whole, levels: Any = levels) -> Any:
                return one_count(example, cell, group, levels) - one_count(example, cell, whole, levels)

            words = group.get("length", 1.0) if one_by_one(example) else 1.0  # of a usual document
            assert far[g] == pytest.approx(words * expectation(example, model, key, group, ratio), abs=2e-6)


def test_a_blocks_influence_is_the_divergence_of_its_joint_distribution():
    rng = np.random.default_rng(3)
    table = {"x": rng.normal(size=400), "y": rng.normal(size=400)}
    table["y"][::2] += 2.0 * table["x"][::2] + 1.0
    model = sc.NaiveBayes(kinds={("x", "y"): "multinormal"}).fit(table, ["a", "b"] * 200).fitted_
    single = sc.NaiveBayes(kinds={("x", "y"): "multinormal"}).fit(table, ["a"] * 400).fitted_
    far = measure_departures(model)["x", "y"]
    params, whole = model.params["x", "y"], single.params["x", "y"]
    for g in range(2):
        draws = rng.multivariate_normal(params["mean"][g], params["covariance"][g], size=200_000)
        heights = [log_normal(draws, p["mean"][i], p["covariance"][i]) for p, i in ((params, g), (whole, 0))]
        assert far[g] == pytest.approx(np.mean(heights[0] - heights[1]), abs=0.02)


def log_normal(x: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    off = x - mean
    distance = np.einsum("ni,ij,nj->n", off, np.linalg.inv(covariance), off)
    return -0.5 * (distance + np.log(np.linalg.det(2 * np.pi * covariance)))


@every_example
def test_a_single_class_departs_from_nothing(example):
    model = fitted(example, whole_rows(example), ["u"] * len(whole_rows(example)))
    for far in measure_departures(model).values():
        assert np.all(np.abs(far) < 1e-6) and np.all(far >= 0)


@pytest.mark.parametrize("example", SINGLE, ids=lambda example: example.title)
def test_entropy_is_the_average_surprise(example):
    model = worked(example)
    close = 0.04 if example.family.name == "poisson" else 1e-6  # 4,096 draws where there is no formula
    for key, params in model.params.items():
        levels = model.model.nodes[key].setting.levels
        for g, entropy in enumerate(model.model.nodes[key].density(model.estimates).entropy()):
            group = {name: value[g] for name, value in params.items()}

            def surprise(cell: Any, group: Any = group, levels: Any = levels) -> Any:
                return -one_count(example, cell, group, levels)

            assert entropy == pytest.approx(expectation(example, model, key, group, surprise), abs=close)


def test_influence_adds_up_over_the_classes_and_the_largest_is_one():
    mixture = mixture_of(shapes())
    summed, each = arrow(mixture.summary("column")).to_pydict(), arrow(mixture.summary("class and column")).to_pandas()
    assert each.columns.tolist() == ["column", "class", "influence", "relative", "words"]
    assert dict(zip(summed["column"], summed["influence"], strict=True)) == pytest.approx(mixture.influence_)
    totals = each.groupby("column")["influence"].sum()
    assert [totals[name] for name in summed["column"]] == pytest.approx(summed["influence"])
    assert summed["relative"][0] == 1.0 and each["relative"][0] == 1.0
    assert summed["influence"] == sorted(summed["influence"], reverse=True)
    assert len(each) == 3 * len(summed["column"])


def test_where_every_class_has_a_prior_of_its_own_the_whole_has_their_average():
    table = {"colour": ["red", "blue", "red", "blue", "red", "red"]}
    prior = sc.priors.Dirichlet([[2.0, 1.0], [1.0, 5.0]])
    model = sc.NaiveBayes(prior={"colour": prior}).fit(table, ["a", "a", "a", "b", "b", "b"])
    whole = np.array([2 + 1.5, 4 + 3.0]) / 10.5  # levels are sorted: blue, red
    groups = np.array([[1 + 2, 2 + 1], [1 + 1, 2 + 5]]) / [[6], [9]]
    right = [sum(p * math.log(p / q) for p, q in zip(group, whole, strict=True)) for group in groups]
    np.testing.assert_allclose(measure_departures(model.fitted_)["colour"], right)


# -- scores and reasons


@every_example
def test_reasons_add_up_to_the_score_and_a_hole_adds_nothing(example):
    @LAWS
    @given(st.data(), st.sampled_from(["mean", "predictive"]))
    def law(data: Any, how: str) -> None:
        rows, names = data.draw(labelled(example))
        model = fitted(example, rows, names, how)
        meter, chunk = SurpriseMeter.of(model), chunk_of(model, example, rows)
        measured, parts = meter.measure(chunk), meter.reasons(chunk)
        total = np.sum([*parts.values()], axis=0)
        size = np.max(np.abs([*parts.values()]), axis=0)
        assert np.all(np.abs(total - measured.score) <= 1e-9 * (1.0 + size))
        for name, part in parts.items():
            empty = [all(cell is None for cell in np.atleast_1d(np.array(row, object))) for row in rows]
            assert name is ROOT or not part[empty].any()

    law()


@every_example
def test_the_score_is_the_surprise_less_what_is_usual(example):
    rows = list(example.values)
    model = worked(example)
    measured = SurpriseMeter.of(model).measure(chunk_of(model, example, rows))
    shares = model.shares
    for i, row in enumerate(rows):
        joints = [
            oracle.log_joint([_leaf(example, model, key, row, g) for key in example.keys], shares[g]) for g in range(2)
        ]
        assert measured.log_density[i] == pytest.approx(oracle.log_sum(joints), rel=1e-9, abs=1e-9)
        if one_by_one(example) or example.family.name == "binomial" or (example.family.facts.block and None in row):
            continue
        expected = oracle.posterior(joints) if example.family.facts.counted else shares
        usual = -math.fsum(share * math.log(share) for share in shares)
        for key in example.keys:
            if example.leaf_cells([row], key)[0] is not None:
                usual += float(np.dot(expected, model.model.nodes[key].density(model.estimates).entropy()))
        assert measured.score[i] == pytest.approx(-oracle.log_sum(joints) - usual, rel=1e-8, abs=1e-8)


def _leaf(example: Example, model: Any, key: Any, row: Any, g: int) -> Any:
    group = {name: value[g] for name, value in model.params[key].items()}
    return example.family, example.leaf_cells([row], key)[0], group, model.model.nodes[key].setting.levels


KINDS = {"price": "lognormal", "parts": "poisson"}


def shapes(rows: int = 240, seed: int = 5) -> pd.DataFrame:
    """Three kinds of thing with holes; none is odd."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, rows)
    frame = pd.DataFrame(
        {
            "length": rng.normal(np.array([1.0, 5.0, 9.0])[kind], 0.5),
            "price": rng.lognormal(np.array([0.0, 1.0, 3.0])[kind], 0.3),
            "colour": np.array(["red", "blue", "green"])[np.where(rng.random(rows) < 0.9, kind, (kind + 1) % 3)],
            "parts": rng.poisson(np.array([2, 20, 60])[kind]).astype(float),
        }
    )
    return frame.mask(rng.random(frame.shape) < 0.08)


def mixture_of(table: pd.DataFrame, **own: Any) -> sc.Mixture:
    kinds = {key: kind for key, kind in KINDS.items() if key in table}
    return sc.Mixture(3, **({"kinds": kinds, "n_init": 2, "random_state": 0} | own)).fit(table)


def test_a_planted_odd_row_is_first_and_its_odd_column_is_the_first_reason():
    table = shapes()
    table.loc[17, ["length", "price", "colour", "parts"]] = [5.2, 2.9, "blue", 61.0]
    mixture = mixture_of(table)
    frame = arrow(mixture.anomalies(table, n=5)).to_pylist()
    assert frame[0]["row"] == 17 and len(frame) == 5
    assert frame[0]["reason"] == "parts"
    first = frame[0]["reasons"][0]
    assert (first["column"], first["value"]) == ("parts", "61.0") and first["surprise"] > 5
    for line in frame:
        assert sum(reason["surprise"] for reason in line["reasons"]) == pytest.approx(line["score"], abs=1e-9)
    scores = mixture.anomaly_score(table)
    assert [line["score"] for line in frame] == pytest.approx(np.sort(scores)[::-1][:5])
    assert [line["row"] for line in frame] == np.argsort(-scores, kind="stable")[:5].tolist()
    assert [line["log_density"] for line in frame] == pytest.approx(
        mixture.score_samples(table)[[line["row"] for line in frame]]
    )


def test_rows_score_nothing_on_average_but_for_what_they_are_unsure_of():
    table = shapes()[["length", "price", "colour"]].dropna()
    mixture = mixture_of(table, kinds={"price": "lognormal"}, estimate="ml", tol=1e-12)
    unsure = np.mean(mixture.membership_entropy(table)["entropy"])
    assert mixture.anomaly_score(table).mean() == pytest.approx(-unsure, abs=1e-4)


@pytest.mark.parametrize("kinds", [None, {("x", "y"): "multinormal"}])
@pytest.mark.parametrize("estimate", ["mean", "predictive"])
def test_complete_rows_rank_by_log_density_even_if_outliers_form_a_wide_class(kinds, estimate):
    """A class of its own for the outliers must not make them usual."""
    rng = np.random.default_rng(0)
    near, far = rng.normal(size=(190, 2)), rng.normal(0.0, [40.0, 1.0], size=(10, 2))
    table = pd.DataFrame(np.concatenate([near, far]), columns=["x", "y"])
    mixture = sc.Mixture(2, kinds=kinds, estimate=estimate, random_state=0).fit(table)
    density, lines = mixture.score_samples(table), arrow(mixture.anomalies(table, 10)).to_pylist()
    order = np.argsort(density, kind="stable")
    assert np.argsort(-mixture.anomaly_score(table), kind="stable").tolist() == order.tolist()
    assert [line["row"] for line in lines] == order[:10].tolist()
    assert np.mean(order[:10] >= 190) >= 0.8
    assert all(line["reason"] == "x" for line in lines if abs(table["x"][line["row"]]) > 10)
    for line in lines:
        assert sum(reason["surprise"] for reason in line["reasons"]) == pytest.approx(line["score"], abs=1e-9)


@pytest.mark.parametrize("estimate", ["ml", "predictive"])
def test_a_correlated_block_gives_its_reasons_column_by_column(estimate):
    rng = np.random.default_rng(4)
    near = rng.normal(size=200)
    table = pd.DataFrame({"x": near, "y": near + 0.1 * rng.normal(size=200), "z": rng.normal(size=200)})
    mixture = sc.Mixture(1, kinds={("x", "y", "z"): "multinormal"}, estimate=estimate).fit(table)
    odd = pd.DataFrame({"x": [1.5, 0.0, 0.1], "y": [-1.5, 0.1, None], "z": [0.0, 6.0, 5.0]})
    lines = arrow(mixture.anomalies(odd, 3)).to_pylist()
    for line in lines:
        assert sum(reason["surprise"] for reason in line["reasons"]) == pytest.approx(line["score"], abs=1e-9)
    assert lines[0]["row"] == 0 and {reason["column"] for reason in lines[0]["reasons"][:2]} == {"x", "y"}
    assert [line["reason"] for line in lines[1:]] == ["z", "z"]
    hole = {reason["column"]: reason for reason in lines[2]["reasons"]}["y"]
    assert (hole["value"], hole["surprise"]) == (None, 0.0)


@pytest.mark.parametrize(("scale", "offset"), [(1e-150, 0.0), (1e150, 0.0), (1.0, 1e8), (1e-3, -5.0)])
def test_no_unit_changes_a_score(scale, offset):
    table = shapes()[["length", "colour"]]
    moved = table.assign(length=table["length"] * scale + offset)
    one, other = (mixture_of(frame).anomaly_score(frame) for frame in (table, moved))
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-5)


def test_a_row_that_no_class_allows_leads_and_says_why():
    table = {"colour": ["red", "blue"] * 5, "form": ["round", "square"] * 5, "size": [1.0, 8.0, 1.5, 8.5, 2.0] * 2}
    model = sc.NaiveBayes(estimate="ml").fit(table, ["a", "b"] * 5)
    new = {"colour": ["red", "blue", "red"], "form": ["round", "square", "square"], "size": [1.2, 8.2, 5.0]}
    line = arrow(model.anomalies(new, 2)).to_pylist()[0]
    assert (line["row"], line["score"], line["log_density"], line["class"]) == (2, math.inf, -math.inf, None)
    assert [reason["column"] for reason in line["reasons"] if reason["surprise"] == math.inf] == ["colour", "form"]
    assert line["reason"] == "colour"
    with Threads(1) as threads:
        sorting = sort_rows(model.fitted_, model.fitted_.table(new), threads)
    assert sorting.impossible == 1 and [crowd.rows for crowd in sorting.classes] == [1.0, 1.0]


# -- who is in which class


def test_members_and_entropy_are_those_of_the_probabilities():
    table = shapes(9_000)
    mixture = mixture_of(table[:500])
    members, frame = mixture.predict_proba(table), arrow(mixture.summary(X=table, members=4)).to_pylist()
    entropy = np.array([-sum(p * math.log(p) for p in row if p > 0) for row in members])
    likeliest = members.argmax(axis=1)
    for g, line in enumerate(frame):
        assert line["members"] == (likeliest == g).sum()
        assert line["entropy"] == pytest.approx(members[:, g] @ entropy / members[:, g].sum(), rel=1e-9)
        assert line["relative_entropy"] == pytest.approx(line["entropy"] / math.log(3))
        inside = np.flatnonzero(likeliest == g)
        least = inside[np.argsort(members[inside, g], kind="stable")][:4]
        assert [member["row"] for member in line["least_sure"]] == least.tolist()
        for member in line["surest"]:
            assert member["probability"] == pytest.approx(members[member["row"], g]) and member["probability"] > 0.999


def test_the_surest_are_typical_and_an_outlier_is_not_among_them():
    table = shapes()
    table.loc[0] = [90.0, None, "green", 60.0]
    mixture = mixture_of(table[1:])
    line = arrow(mixture.summary(X=table)).to_pylist()[int(mixture.predict(table)[0])]
    scores = mixture.anomaly_score(table)
    assert scores.argmax() == 0
    assert all(scores[member["row"]] < 0 for member in line["surest"])


def test_membership_entropy_says_how_unsure_each_row_is():
    table = {"x": [0.0, 0.1, 0.2, 10.0, 10.1, 10.2, 5.1]}
    mixture = sc.Mixture(2, fixed=None, random_state=0).fit(table)
    frame = arrow(mixture.membership_entropy(table)).to_pydict()
    members = mixture.predict_proba(table)
    assert frame["row"] == list(range(7)) and frame["class"] == members.argmax(axis=1).tolist()
    assert frame["probability"] == pytest.approx(members.max(axis=1))
    for row, entropy, share in zip(members, frame["entropy"], frame["relative_entropy"], strict=True):
        assert entropy == pytest.approx(-sum(p * math.log(p) for p in row if p > 0), abs=1e-12)
        assert share == pytest.approx(entropy / math.log(2)) and 0 <= share <= 1


def test_a_weight_of_two_is_the_row_twice():
    table = shapes(60)
    model = mixture_of(table).fitted_
    twice = model.table(pd.concat([table, table[:20]], ignore_index=True))
    weighted = model.table(table, weights=np.repeat([2.0, 1.0], [20, 40]))
    with Threads(1) as threads:
        one, other = (sort_rows(model, t, threads) for t in (twice, weighted))
    assert one.rows == other.rows == 80 and one.entropy == pytest.approx(other.entropy)
    assert [crowd.rows for crowd in one.classes] == [crowd.rows for crowd in other.classes]


def test_four_threads_equal_one_bit_for_bit():
    table = shapes(9_000)
    model = mixture_of(table[:500]).fitted_
    sortings = []
    for jobs in (1, 4):
        with Threads(jobs) as threads:
            sortings.append(sort_rows(model, model.table(table), threads))
    assert sortings[0] == sortings[1]


# -- class reports


def test_a_class_report_has_size_typical_row_and_what_sets_the_class_apart():
    table = shapes()
    mixture = mixture_of(table)
    assert sum(line["rows"] for line in arrow(mixture.summary()).to_pylist()) == pytest.approx(240)
    for g, line in enumerate(arrow(mixture.summary(parameters=True)).to_pylist()):
        assert line["share"] == mixture.weights_[g] and line["rows"] == pytest.approx(240 * line["share"], abs=0.5)
        assert line["typical"]["length"] == mixture.params_["length"]["mean"][g]
        assert line["typical"]["price"] == pytest.approx(math.exp(mixture.params_["price"]["mean"][g]))
        levels = mixture.levels_["colour"]
        assert line["typical"]["colour"] == levels[mixture.params_["colour"]["probability"][g].argmax()]
        far = [entry["influence"] for entry in line["contrasts"]]
        assert far == sorted(far, reverse=True) and line["departure"] == pytest.approx(sum(far))
        assert {entry["column"] for entry in line["contrasts"]} == set(table.columns)


def test_elsewhere_is_what_the_other_rows_look_like():
    table = {"x": [1.0, 2.0, 3.0, 11.0, 12.0, 13.0], "c": ["a", "a", "b", "b", "b", "b"]}
    model = sc.NaiveBayes(estimate="ml").fit(table, ["u", "u", "u", "v", "v", "v"])
    first = {entry["column"]: entry for entry in arrow(model.summary()).to_pylist()[0]["contrasts"]}
    assert first["x"]["here"].startswith("mean 2,") and first["x"]["elsewhere"].startswith("mean 12,")
    assert first["c"]["here"] == "a 67 %, b 33 %" and first["c"]["elsewhere"] == "b 100 %"


def test_shown_figures_are_those_of_the_rows_and_parameters_are_shown_on_request(data):
    """Iris: setosa's petals have a deviation of 0.172; the prior's row widens what is scored with to 0.299."""
    iris = pd.read_csv(data("r_datasets/iris_fisher.csv"))
    column = next(name for name in iris.columns if "Petal" in name and "Length" in name)
    target = next(name for name in iris.columns if "pecies" in name)
    model = sc.NaiveBayes().fit(iris.drop(columns=target), iris[target].tolist())
    rows = iris[iris[target] == model.classes_[0]][column]
    others = iris[iris[target] != model.classes_[0]][column]
    card = next(x for x in arrow(model.summary()).to_pylist()[0]["contrasts"] if x["column"] == column)
    assert card["here"] == f"mean {rows.mean():.4g}, sd {rows.std(ddof=0):.3g}"
    assert card["elsewhere"] == f"mean {others.mean():.4g}, sd {others.std(ddof=0):.3g}"
    scored = next(x for x in arrow(model.summary(parameters=True)).to_pylist()[0]["contrasts"] if x["column"] == column)
    assert scored["here"].endswith(f"sd {model.params_[column]['variance'][0] ** 0.5:.3g}") and scored != card


def test_a_level_of_nearly_every_row_is_shown_as_such_however_strong_the_prior():
    """Eight of nine rows hold 000; a prior of a row for each of 60 levels made that 13 %."""
    codes = [f"{n:03d}" for n in range(60)]
    table = {"code": [*["000"] * 8, "001", *codes], "again": ["000"] * 8 + ["001"] + codes}
    y = ["few"] * 9 + ["many"] * 60
    model = sc.NaiveBayes({"code": "categorical", "again": "categorical"}).fit(table, y)
    few = arrow(model.summary()).to_pylist()[0]
    assert {entry["here"] for entry in few["contrasts"]} == {"000: 89 %, 001: 11 %"}
    assert few["share"] == pytest.approx(9 / 69)
    words = arrow(model.summary("class and column")).to_pylist()
    assert {line["words"] for line in words if line["class"] == "few"} == {"000: 89 %, 001: 11 %"}
    scored = arrow(model.summary("class and column", parameters=True)).to_pylist()
    assert all(line["words"].startswith("000: 13 %") for line in scored if line["class"] == "few")


@pytest.mark.parametrize("kind", ["normal", "lognormal", "gamma", "student", "exponential"])
def test_a_class_without_a_value_in_a_column_has_none_to_show(kind):
    table = {"x": [1.5, 2.5, 4.0, None, None, None], "c": ["a", "b", "a", None, None, None], "z": [1.0, 2.0] * 3}
    model = sc.NaiveBayes({"x": kind, "c": "categorical", "z": "normal"}).fit(table, ["u"] * 3 + ["v"] * 3)
    v = {entry["column"]: entry for entry in arrow(model.summary()).to_pylist()[1]["contrasts"]}
    assert v["x"]["here"] == v["c"]["here"] == "no values"
    assert "no values" not in v["x"]["elsewhere"]
    assert arrow(model.summary()).to_pylist()[1]["typical"]["x"] is None


def test_shares_shown_of_a_mixture_are_those_of_its_rows():
    table = {"x": [1.0, 1.1, 0.9, 1.05, 9.0, 9.1]}
    found = sc.Mixture(2, prior=3.0, random_state=0).fit(table)
    members = found.predict_proba(table).mean(axis=0)
    assert [line["share"] for line in arrow(found.summary()).to_pylist()] == pytest.approx(members, abs=1e-4)
    assert found.weights_ != pytest.approx(members, abs=1e-2)
    assert [line["share"] for line in arrow(found.summary(parameters=True)).to_pylist()] == found.weights_.tolist()


def test_one_class_and_known_classes_are_reported_too():
    table = shapes(40)
    one = sc.Mixture(1).fit(table)
    assert arrow(one.summary(X=table)).to_pylist()[0]["relative_entropy"] == 0.0
    assert set(arrow(one.membership_entropy(table)).to_pydict()["relative_entropy"]) == {0.0}
    assert len(one.anomalies(table, 3)) == 3
    bayes = sc.NaiveBayes().fit(table, ["a", "b"] * 20)
    assert arrow(bayes.summary(X=table)).to_pydict()["class"] == ["a", "b"]


def test_sparse_counts_have_classes_and_anomalies():
    from scipy import sparse

    rng = np.random.default_rng(0)
    counts = rng.poisson(np.repeat([[4, 4, 0.2, 0.2], [0.2, 0.2, 4, 4]], 30, axis=0))
    counts[7] = [0, 40, 40, 0]
    rows = sparse.csr_matrix(counts.astype(float))
    mixture = sc.Mixture(2, random_state=0).fit(rows)
    assert arrow(mixture.anomalies(rows, 1)).to_pydict()["row"] == [7]
    assert sum(arrow(mixture.summary(X=rows)).to_pydict()["members"]) == 60


@pytest.mark.parametrize("n", [-1, 2.5, "all", None, True])
def test_a_senseless_number_of_rows_is_refused(n):
    mixture = sc.Mixture(1).fit({"x": [1.0, 2.0]})
    with pytest.raises(DataError, match="whole number"):
        mixture.anomalies({"x": [1.0]}, n)
    with pytest.raises(DataError, match="whole number"):
        mixture.summary(X={"x": [1.0]}, members=n)


def test_a_model_that_was_never_fitted_says_so():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        sc.Mixture(2).summary()


def test_no_anomalies_asked_for_are_none_and_no_rows_are_refused():
    mixture = mixture_of(shapes(60))
    assert arrow(mixture.anomalies(shapes(), 0)).num_rows == 0
    with pytest.raises(DataError, match="at least one row"):
        mixture.anomalies(shapes()[:0])
