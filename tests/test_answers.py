"""What a fitted model answers: queries, samples, fills, explanations and expected rows, each against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import softcount as sc
from explained import contributions
from softcount.errors import DataWarning
from softcount.estimators.result_frames import arrow_of as arrow

KINDS = {"visits": "poisson", "size": "normal", "income": "lognormal"}
LEVELS = {"colour": ["blue", "green", "red"], "rich": [False, True]}
pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")


def people(n: int = 300, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A mixed table of two classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    colour = np.where(rng.random(n) < 0.3 + 0.4 * y, "red", np.where(rng.random(n) < 0.5, "blue", "green"))
    frame = pd.DataFrame({"colour": colour, "size": rng.normal(2.0 * y, 1.0), "visits": rng.poisson(2 + 3 * y)})
    return frame.assign(rich=rng.random(n) < 0.2 + 0.5 * y, income=np.exp(rng.normal(y, 0.5, size=n))), y


def with_holes(frame: pd.DataFrame, seed: int = 1) -> pd.DataFrame:
    """The same rows with every fifth cell or so gone."""
    rng = np.random.default_rng(seed)
    nullable = frame.astype({"visits": "Int64", "rich": "boolean"})
    return nullable.mask(rng.random(nullable.shape) < 0.2)


@pytest.fixture(scope="module")
def classes() -> sc.NaiveBayes:
    frame, y = people()
    return sc.NaiveBayes(kinds=KINDS).fit(frame.assign(y=y), "y")


@pytest.fixture(scope="module")
def mixture() -> sc.Mixture:
    return sc.Mixture(2, kinds=KINDS, n_init=3, random_state=0).fit(with_holes(people()[0]))


@pytest.fixture(scope="module", params=["classes", "mixture"])
def model(request):
    return request.getfixturevalue(request.param)


def shares_of(model) -> np.ndarray:
    return model.class_prior_ if hasattr(model, "class_prior_") else model.weights_


def density(model, group: int, column: str, value) -> float:
    """One cell's probability or density in one group, from params_ alone."""
    own = {name: part[group] for name, part in model.params_[column].items()}
    if column in LEVELS:
        return own["probability"][model.levels_[column].index(value)]
    if column == "visits":
        return stats.poisson.pmf(value, own["rate"])
    deviation = np.sqrt(own["variance"])
    if column == "income":
        return stats.lognorm.pdf(value, s=deviation, scale=np.exp(own["mean"]))
    return stats.norm.pdf(value, own["mean"], deviation)


def memberships(model, row: dict) -> np.ndarray:
    """The probability of each group given the cells of a row that are there."""
    joint = shares_of(model).copy()
    for group in range(len(joint)):
        for column, value in row.items():
            joint[group] *= density(model, group, column, value)
    return joint / joint.sum()


GIVEN = [
    {},
    {"colour": "red"},
    {"size": 1.5, "rich": True},
    {"visits": 4, "income": 0.7},
    {"colour": "green", "visits": 0, "rich": False, "income": 2.0},
]


# -- query


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("of", LEVELS)
def test_a_discrete_query_is_the_sum_over_groups(model, of, given):
    given = {column: value for column, value in given.items() if column != of}
    weights, answer = memberships(model, given), model.query(of=of, given=given)
    assert list(answer) == model.levels_[of] == LEVELS[of]
    for level, chance in answer.items():
        wanted = sum(w * density(model, g, of, level) for g, w in enumerate(weights))
        assert chance == pytest.approx(wanted, rel=1e-12)
    assert sum(answer.values()) == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("of", ["size", "visits", "income"])
def test_a_numeric_query_is_a_mixture_of_densities(model, of, given):
    given = {column: value for column, value in given.items() if column != of}
    weights, answer = memberships(model, given), model.query(of=of, given=given)
    for x in (1, 2, 5):
        wanted = sum(w * density(model, g, of, x) for g, w in enumerate(weights))
        assert answer.pdf(x) == pytest.approx(wanted, rel=1e-11)
    grid = np.arange(0, 200) if of == "visits" else np.linspace(1e-9 if of == "income" else -40, 80, 400_001)
    chances = answer.pdf(grid) * (1 if of == "visits" else grid[1] - grid[0])
    mean = (chances * grid).sum()
    assert answer.mean == pytest.approx(mean, rel=1e-5)
    assert answer.variance == pytest.approx((chances * (grid - mean) ** 2).sum(), rel=1e-4)


@pytest.mark.parametrize("of", ["size", "income"])
@pytest.mark.parametrize("q", [0.01, 0.5, 0.9])
def test_a_quantile_has_that_share_below_it(model, of, q):
    answer = model.query(of=of, given={"colour": "red"})
    at = answer.quantile(q)
    low = 1e-12 if of == "income" else -60.0
    grid = np.linspace(low, at, 200_001)
    assert np.trapezoid(answer.pdf(grid), grid) == pytest.approx(q, abs=1e-6)


def test_a_quantile_of_counts_is_the_first_count_that_reaches_it(model):
    answer = model.query(of="visits")
    below = np.cumsum(answer.pdf(np.arange(60)))
    for q in (0.05, 0.5, 0.95):
        assert answer.quantile(q) == int(np.argmax(below >= q))


@pytest.mark.parametrize("given", GIVEN)
def test_the_class_can_be_asked_for(classes, given):
    answer = classes.query(of="y", given=given)
    np.testing.assert_allclose(list(answer.values()), memberships(classes, given), rtol=1e-12)


def test_the_class_can_be_given(classes):
    for g in (0, 1):
        answer = classes.query(of="colour", given={"y": g})
        np.testing.assert_allclose(list(answer.values()), classes.params_["colour"]["probability"][g], rtol=1e-14)


def test_columns_of_a_joint_block_are_asked_with_the_others_of_the_block():
    frame, y = people()
    block = ("colour", "rich")
    model = sc.NaiveBayes(kinds={block: "categorical"}, prior=0.3).fit(frame[list(block)], y)
    table = model.params_[block]["probability"].reshape(2, 3, 2)
    joint = (model.class_prior_[:, None, None] * table).sum(axis=0)
    answer = model.query(of="colour", given={"rich": True})
    np.testing.assert_allclose(list(answer.values()), joint[:, 1] / joint[:, 1].sum(), rtol=1e-12)


def test_columns_of_a_correlated_block_are_asked_with_the_others_of_the_block():
    rng = np.random.default_rng(2)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 2)) @ [[1.0, 0.8], [0.0, 0.6]] + y[:, None]
    model = sc.NaiveBayes(kinds={(0, 1): "multinormal"}, estimate="ml").fit(X, y)
    mean, cov = model.params_[0, 1]["mean"], model.params_[0, 1]["covariance"]
    answer = model.query(of=1, given={0: 0.4})
    weight = model.class_prior_ * stats.norm.pdf(0.4, mean[:, 0], np.sqrt(cov[:, 0, 0]))
    centre = mean[:, 1] + cov[:, 0, 1] / cov[:, 0, 0] * (0.4 - mean[:, 0])
    assert answer.mean == pytest.approx(weight @ centre / weight.sum(), rel=1e-10)


@pytest.mark.parametrize(
    ("of", "given", "said"),
    [("shape", {}, "shape"), ("colour", {"shape": 1}, "shape"), ("colour", {"colour": "red"}, "both `of` and given")],
)
def test_a_question_that_makes_no_sense_is_refused(model, of, given, said):
    with pytest.raises(sc.DataError, match=said):
        model.query(of=of, given=given)


# -- sample


def test_samples_follow_the_model(model):
    n = 20_000
    rows = arrow(model.sample(n, random_state=3)).to_pandas()
    assert len(rows) == n
    for column in LEVELS:
        wanted = model.query(of=column)
        seen = rows[column].value_counts()
        _, chance = stats.chisquare([seen[level] for level in wanted], [n * p for p in wanted.values()])
        assert chance > 1e-4, column
    for column in ("size", "visits", "income"):
        answer = model.query(of=column)
        z = (rows[column].mean() - answer.mean) / np.sqrt(answer.variance / n)
        assert abs(z) < 4, column


@pytest.mark.parametrize("given", GIVEN[1:])
def test_samples_given_cells_follow_the_query(model, given):
    n = 8_000
    rows = arrow(model.sample(n, given=given, random_state=4)).to_pandas()
    for column, value in given.items():
        assert (rows[column] == value).all()
    for column in rows.columns.intersection([*LEVELS, *KINDS]).difference(list(given)):
        answer = model.query(of=column, given=given)
        if isinstance(answer, dict):
            seen = rows[column].value_counts()
            assert stats.chisquare([seen.get(k, 0) for k in answer], [n * p for p in answer.values()])[1] > 1e-4
        else:
            assert abs(rows[column].mean() - answer.mean) < 4 * np.sqrt(answer.variance / n)


def test_a_sample_keeps_the_table_together(classes):
    """Given the class, a sampled column has that class's mean, not the table's."""
    rows = arrow(classes.sample(10_000, random_state=5)).to_pandas()
    for g, part in rows.groupby("y"):
        deviation = np.sqrt(classes.params_["size"]["variance"][g] / len(part))
        assert abs(part["size"].mean() - classes.params_["size"]["mean"][g]) < 4 * deviation


def test_the_same_seed_draws_the_same_rows(model):
    assert model.sample(50, random_state=6).equals(model.sample(50, random_state=6))
    assert not model.sample(50, random_state=6).equals(model.sample(50, random_state=7))


def test_types_of_a_sample_are_those_of_the_table(model):
    types = {field.name: field.type for field in arrow(model.sample(3, random_state=0)).schema}
    assert [types[name] for name in ("size", "visits", "rich")] == [pa.float64(), pa.int64(), pa.bool_()]
    assert types["colour"] in (pa.string(), pa.large_string())


# -- impute


def best_fill(model, row: dict, column: str):
    """The likeliest level, or the expected number, from params_ alone."""
    there = {name: value for name, value in row.items() if not pd.isna(value)}
    weights = memberships(model, there)
    if column in LEVELS:
        chances = [sum(w * density(model, g, column, x) for g, w in enumerate(weights)) for x in LEVELS[column]]
        return LEVELS[column][int(np.argmax(chances))]
    own = model.params_[column]
    if column == "visits":
        return round(weights @ own["rate"])
    return weights @ (np.exp(own["mean"] + own["variance"] / 2) if column == "income" else own["mean"])


def as_pandas(table) -> pd.DataFrame:
    return table if isinstance(table, pd.DataFrame) else table.to_pandas()


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_holes_are_filled_in_the_type_given(model, kind):
    frame = with_holes(people()[0]).head(40)
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    table = {"pandas": frame, "polars": pl.from_arrow(arrow), "arrow": arrow}[kind]
    filled = model.impute(table)
    assert type(filled) is type(table)
    got = as_pandas(filled)
    assert list(got.columns)[: frame.shape[1]] == list(frame.columns)
    for i, row in enumerate(frame.to_dict("records")):
        for column, value in row.items():
            wanted = best_fill(model, row, column) if pd.isna(value) else value
            found = got[column].iloc[i]
            assert found == wanted if column in LEVELS else found == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_column_that_is_not_there_at_all_is_filled(model, kind):
    frame = people()[0].head(5).drop(columns="colour")
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    table = {"pandas": frame, "polars": pl.from_arrow(arrow), "arrow": arrow}[kind]
    found = as_pandas(model.impute(table))["colour"].tolist()
    assert found == [best_fill(model, row, "colour") for row in frame.to_dict("records")]


def test_the_table_given_is_not_changed(model):
    frame = with_holes(people()[0]).head(30)
    before = frame.copy()
    model.impute(frame)
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize(
    "made",
    [sc.NaiveBayes(), sc.Mixture(2, n_init=1, random_state=0), sc.BayesNet([("colour", "taste")])],
    ids=["classes", "mixture", "network"],
)
def test_a_level_never_seen_is_no_hole(made):
    frame = pd.DataFrame({"colour": ["red", "blue"] * 10, "taste": ["sweet", "sour"] * 10})
    known = {"y": ["u", "v"] * 10} if isinstance(made, sc.NaiveBayes) else {}
    model = made.fit(frame, **known)
    odd = pd.DataFrame({"colour": ["red", "mauve", None], "taste": [None, None, "sour"]})
    with pytest.warns(DataWarning, match=r"1 cell holds levels never seen in training, in 'colour' \(1\); they stay"):
        filled = model.impute(odd)
    assert filled["colour"].tolist() == ["red", "mauve", "blue"]
    assert filled["taste"].notna().all() and filled["taste"][2] == "sour"


def test_an_array_is_filled_as_an_array():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(60, 3)) + 3 * (np.arange(60) % 2)[:, None]
    X[rng.random(X.shape) < 0.1] = np.nan
    model = sc.Mixture(2, random_state=0, n_init=2).fit(X)
    filled = model.impute(X)
    assert type(filled) is np.ndarray and filled.dtype == X.dtype and not np.isnan(filled).any()
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    members = model.predict_proba(X)
    for i, j in np.argwhere(np.isnan(X)):
        assert filled[i, j] == pytest.approx(members[i] @ model.params_[j]["mean"], rel=1e-12)


# -- explain


def explained_odds(model, table) -> tuple[np.ndarray, np.ndarray]:
    """What the columns add up to, and the log-odds of the two likeliest groups."""
    parts = contributions(model.explain(table))
    total = np.sum([parts[name].to_numpy() for name in parts.column_names], axis=0)
    logs = np.sort(model.predict_log_proba(table), axis=1)
    return total, logs[:, -1] - logs[:, -2]


@pytest.mark.parametrize("estimate", ["ml", "map", "mean", "predictive"])
def test_explanations_add_up_to_the_log_odds(estimate):
    frame, y = people()
    model = sc.NaiveBayes(kinds=KINDS, estimate=estimate).fit(frame, y)
    for table in (frame, with_holes(frame)):
        total, odds = explained_odds(model, table)
        np.testing.assert_allclose(total, odds, rtol=1e-12, atol=1e-12)


def test_a_mixture_stays_in_the_range_of_its_columns(tmp_path):
    """Never negative: from 0. An end that many rows share: up to there. Declared families are as they are."""
    rng = np.random.default_rng(0)
    months = np.minimum(rng.integers(0, 100, 300), 72).astype(float)
    table = pd.DataFrame({"age": np.abs(rng.normal(20, 15, 300)), "months": months, "change": rng.normal(0, 1, 300)})
    model = sc.Mixture(1, random_state=0).fit(table)
    model.save(tmp_path / "m.sc")
    for own in (model, sc.load(tmp_path / "m.sc")):
        drawn = arrow(own.sample(2_000, random_state=0)).to_pandas()
        assert drawn["age"].min() >= 0 and drawn["months"].min() >= 0 and drawn["months"].max() <= 72
        assert drawn["change"].max() > table["change"].max()
        age = own.query(of="age")
        x = np.linspace(-5.0, 120.0, 20_001)
        weight = np.trapezoid(age.pdf(x), x), np.trapezoid(age.pdf(x) * x, x), np.trapezoid(age.pdf(x) * x**2, x)
        assert weight[0] == pytest.approx(1.0, abs=1e-3) and age.mean == pytest.approx(weight[1], abs=0.05)
        assert age.variance == pytest.approx(weight[2] - weight[1] ** 2, rel=5e-3)
        assert age.cdf(0.0) == 0.0 and age.quantile(0.001) > 0 and own.query(of="months").quantile(0.999) <= 72
        assert drawn["age"].mean() == pytest.approx(age.mean, abs=4 * drawn["age"].std() / 2_000**0.5)
    asked = sc.Mixture(1, kinds={"age": "normal"}, random_state=0).fit(table)
    assert arrow(asked.sample(2_000, random_state=0)).to_pandas()["age"].min() < 0


def test_explanations_of_clusters_add_up(mixture):
    total, odds = explained_odds(mixture, with_holes(people()[0]))
    np.testing.assert_allclose(total, odds, rtol=1e-12, atol=1e-12)


def test_a_missing_cell_adds_nothing(model):
    holes = with_holes(people()[0])
    parts = model.explain(holes)
    for name in holes.columns:
        gone = holes[name].isna().to_numpy()
        part = parts[name].to_numpy()
        assert (part[gone] == 0).all()
        assert (part[~gone] != 0).all()


def test_an_explanation_against_a_named_class():
    rng = np.random.default_rng(9)
    y = np.repeat(["a", "b", "c"], 30)
    X = rng.normal(size=(90, 2)) + np.repeat([0, 1, 3], 30)[:, None]
    model = sc.NaiveBayes().fit(X, y)
    found, logs = model.explain(X, against="b"), model.predict_log_proba(X)
    parts = contributions(found)
    assert found["(class)"].tolist() == model.predict(X).tolist() and set(found["(against)"]) == {"b"}
    total = np.sum([parts[name].to_numpy() for name in parts.column_names], axis=0)
    np.testing.assert_allclose(total, logs.max(axis=1) - logs[:, 1], atol=1e-12)
    with pytest.raises(sc.DataError, match="no class 'd'"):
        model.explain(X, against="d")


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_explanations_add_up_whatever_the_table(seed, k):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), rng.integers(k, size=25)])
    table = pd.DataFrame(
        {"a": rng.choice(list("xyz"), len(y)), "b": rng.normal(size=len(y)) * 10.0 ** rng.integers(-6, 7)}
    )
    model = sc.NaiveBayes().fit(table, y)
    asked = pd.concat([table, pd.DataFrame({"a": ["new", None], "b": [np.nan, table["b"].max()]})], ignore_index=True)
    total, odds = explained_odds(model, asked)
    np.testing.assert_allclose(total, odds, rtol=1e-12, atol=1e-12)


# -- augment


def test_expected_counts_of_a_row_add_up_to_one(model):
    table = with_holes(people()[0]).head(25)
    rows = arrow(model.augment(table))
    counts = rows["(count)"].to_numpy().reshape(25, 2)
    np.testing.assert_allclose(counts.sum(axis=1), 1, atol=1e-14)
    np.testing.assert_allclose(counts, model.predict_proba(table), atol=1e-15)
    assert rows["(class)"].to_pylist() == [0, 1] * 25
    assert rows["colour"].to_pylist()[::2] == [None if pd.isna(x) else x for x in table["colour"]]


def test_the_augmented_table_gives_the_expected_counts_back(mixture):
    """Fitting the augmented rows with their counts as weights is EM's next estimate."""
    table = with_holes(people()[0])
    rows = arrow(mixture.augment(table)).to_pandas()
    again = sc.NaiveBayes(kinds=KINDS).fit(rows[table.columns], rows["(class)"], sample_weight=rows["(count)"])
    for name in LEVELS:
        np.testing.assert_allclose(again.counts_[name], mixture.counts_[name], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("made", [pd.DataFrame, pa.table, dict, pl.DataFrame])
def test_numbers_written_as_text_with_words_for_missing_are_filled_as_numbers(made: Any) -> None:
    cells = {"x": ["1.5", "?", "2.5", "9.5", "NA"], "c": ["a", "b", "?", "b", "a"]}
    table = made(cells)
    filled = sc.Mixture(1, missing=["?", "NA"]).fit(table).impute(table)
    whole = [float(x) for x in filled["x"].to_pylist()] if made is pa.table else [float(x) for x in filled["x"]]
    assert whole[0] == 1.5 and whole[3] == 9.5 and whole[1] == pytest.approx(4.5) == whole[4]
