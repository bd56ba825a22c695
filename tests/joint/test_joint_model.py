"""A joint model through its public methods: types, ranges, files, weights, missing cells, draws and anomalies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import softcount as sc


def make_table(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Dependent columns of every kind, with missing cells."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    place = pd.Series(kind).map({"a": 0.0, "b": 1.0, "c": 2.0}).to_numpy()
    frame = pd.DataFrame({
        "kind": kind,
        "age": np.round(30 + 12 * place + 6 * rng.standard_normal(n)).astype(int),
        "pay": np.round(np.exp(2 + 0.7 * place + 0.4 * rng.standard_normal(n)), 2),
        "gain": np.where(rng.random(n) < 0.7, 0.0, np.round(rng.gamma(2.0, 100 * (1 + place)), 1)),
        "children": rng.poisson(0.4 + place),
        "member": rng.random(n) < 0.2 + 0.3 * place,
    })  # fmt: skip
    frame["town"] = np.where(rng.random(n) < 0.9, kind, rng.choice(["a", "b", "c"], n))
    for name in ("kind", "pay", "town"):
        frame.loc[rng.random(n) < 0.1, name] = np.nan
    return frame


TABLE = make_table()
MODEL = sc.JointModel(random_state=0).fit(TABLE)


def test_every_column_is_answered() -> None:
    answers = MODEL.query()
    assert set(answers) == set(TABLE.columns)
    assert sum(answers["kind"].values()) == pytest.approx(1.0)
    assert answers["age"].mean == pytest.approx(TABLE["age"].mean(), abs=1.0)
    assert answers["gain"].mean == pytest.approx(TABLE["gain"].mean(), rel=0.15)
    assert answers["gain"].pdf(0.0) == pytest.approx((TABLE["gain"] == 0).mean(), abs=0.03)
    assert answers["children"][0] == pytest.approx((TABLE["children"] == 0).mean(), abs=0.05)


def test_answers_follow_what_is_given() -> None:
    of_c = TABLE[TABLE["kind"] == "c"]
    assert MODEL.query("town", {"kind": "c"})["c"] > 0.8
    assert MODEL.query("age", {"kind": "c"}).mean == pytest.approx(of_c["age"].mean(), abs=2.0)
    assert MODEL.query("kind", {"age": (60, 80)})["c"] > MODEL.query("kind", {"age": (20, 30)})["c"]
    assert MODEL.query("gain", {"kind": ["b", "c"]}).mean > MODEL.query("gain", {"kind": "a"}).mean
    both = MODEL.query(["kind", "town"], {"member": True})
    assert sum(both.values()) == pytest.approx(1.0) and both["a", "a"] > both["a", "b"]


def test_a_range_is_an_average_over_its_values() -> None:
    """Conditioning on a range and its complement, weighted by their probabilities, gives the marginal."""
    whole, inside = MODEL.query("kind"), MODEL.fitted_.log_probability({"pay": sc.conditions.between(5, 20)})
    outside = MODEL.fitted_.log_probability({"pay": sc.conditions.not_(sc.conditions.between(5, 20))})
    assert np.exp(inside) + np.exp(outside) == pytest.approx(1.0, abs=1e-6)
    one = MODEL.query("kind", {"pay": sc.conditions.between(5, 20)})
    other = MODEL.query("kind", {"pay": sc.conditions.not_(sc.conditions.between(5, 20))})
    for level, share in whole.items():
        assert np.exp(inside) * one[level] + np.exp(outside) * other[level] == pytest.approx(share, abs=1e-6)


def test_a_range_of_a_spiked_number_may_hold_the_spike() -> None:
    zero = np.exp(MODEL.fitted_.log_probability({"gain": 0.0}))
    positive = np.exp(MODEL.fitted_.log_probability({"gain": sc.conditions.above(0)}))
    some = np.exp(MODEL.fitted_.log_probability({"gain": sc.conditions.between(-1e9, 1e9)}))
    assert zero == pytest.approx((TABLE["gain"] == 0).mean(), abs=0.03)
    assert zero + positive == pytest.approx(1.0, abs=0.02) and some == pytest.approx(1.0, abs=1e-9)


def test_sampled_rows_look_like_the_table() -> None:
    rows = MODEL.sample(2000, random_state=0)
    assert list(rows.columns) == list(TABLE.columns) and (rows.dtypes == TABLE.dtypes).all()
    assert rows["age"].mean() == pytest.approx(TABLE["age"].mean(), abs=1.0)
    assert (rows["gain"] == 0).mean() == pytest.approx((TABLE["gain"] == 0).mean(), abs=0.04)
    assert rows["pay"].min() > 0 and rows["gain"].min() >= 0 and rows["children"].min() >= 0
    given = MODEL.sample(500, given={"kind": "c", "age": (50, 70), "gain": sc.conditions.above(0)}, random_state=1)
    assert (given["kind"] == "c").all() and given["age"].between(50, 70).all() and (given["gain"] > 0).all()
    again = MODEL.sample(500, given={"kind": "c", "age": (50, 70), "gain": sc.conditions.above(0)}, random_state=1)
    pd.testing.assert_frame_equal(given, again)


def test_missing_cells_are_filled_in_their_types() -> None:
    filled = MODEL.impute(TABLE)
    assert not filled.isna().any().any() and (filled.dtypes == TABLE.dtypes).all()
    known = TABLE.notna()
    pd.testing.assert_frame_equal(filled.where(known), TABLE.where(known), check_dtype=False)
    holes = TABLE.assign(age=TABLE["age"].astype(float).where(np.arange(len(TABLE)) % 5 > 0))
    completed = sc.JointModel(random_state=0).fit(holes).impute(holes)["age"]
    missing = holes["age"].isna()
    error = np.sqrt(((completed - TABLE["age"])[missing] ** 2).mean())
    assert error < 0.8 * TABLE["age"].std()


def test_the_mean_that_fills_a_cell_is_that_of_the_query() -> None:
    row = pd.DataFrame({"kind": ["b"], "age": [np.nan], "pay": [12.0], "gain": [np.nan], "member": [True]})
    filled, given = MODEL.impute(row), {"kind": "b", "pay": 12.0, "member": True}
    assert MODEL.query("age", given).mean == pytest.approx(float(filled["age"].iloc[0]), abs=0.51)
    assert MODEL.query("gain", given).mean == pytest.approx(float(filled["gain"].iloc[0]), abs=0.06)


def test_draws_differ_where_cells_are_missing_and_only_there() -> None:
    tables = MODEL.impute(TABLE, draws=3, random_state=0)
    assert len(tables) == 3
    known = TABLE.notna()
    for completed in tables:
        assert not completed.isna().any().any()
        pd.testing.assert_frame_equal(completed.where(known), TABLE.where(known), check_dtype=False)
    assert not tables[0].equals(tables[1])


def test_reasons_add_up_to_the_score_of_an_anomaly() -> None:
    odd = pd.concat([TABLE, pd.DataFrame({"kind": ["a"], "age": [95], "pay": [900.0], "gain": [0.0], "children": [0],
                                          "member": [False], "town": ["c"]})], ignore_index=True)  # fmt: skip
    found = MODEL.anomalies(odd, n=5)
    assert found["row"].iloc[0] == len(TABLE)
    scores = MODEL.anomaly_score(odd)
    for _, line in found.iterrows():
        total = sum(reason["surprise"] for reason in line["reasons"])
        assert total == pytest.approx(line["score"], abs=1e-9) and scores[line["row"]] == line["score"]


def test_a_missing_cell_adds_nothing() -> None:
    empty = TABLE.iloc[:1].astype(object)
    empty.iloc[:] = np.nan
    assert MODEL.score_samples(empty)[0] == pytest.approx(0.0, abs=1e-12)
    assert MODEL.anomaly_score(empty)[0] == pytest.approx(0.0, abs=1e-12)


def test_a_file_holds_the_model(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "joint.sc")
    loaded = sc.load(tmp_path / "joint.sc")
    assert isinstance(loaded, sc.JointModel)
    np.testing.assert_array_equal(loaded.score_samples(TABLE), MODEL.score_samples(TABLE))
    pd.testing.assert_frame_equal(
        loaded.sample(20, random_state=0).astype(str), MODEL.sample(20, random_state=0).astype(str)
    )
    assert loaded.query("kind", {"age": 40}) == MODEL.query("kind", {"age": 40})


def test_fits_are_reproducible_and_a_clone_is_unfitted() -> None:
    again = clone(MODEL).fit(TABLE)
    np.testing.assert_array_equal(again.score_samples(TABLE), MODEL.score_samples(TABLE))


def test_a_row_of_weight_zero_is_not_there() -> None:
    weights = np.where(np.arange(len(TABLE)) < 300, 1.0, 0.0)
    one = sc.JointModel(n_components=2, random_state=0).fit(TABLE, sample_weight=weights)
    other = sc.JointModel(n_components=2, random_state=0).fit(TABLE.iloc[:300])
    np.testing.assert_allclose(one.score_samples(TABLE), other.score_samples(TABLE), rtol=1e-9)


def test_held_out_rows_are_more_probable_than_under_independent_columns() -> None:
    new = make_table(seed=1)
    alone = sc.Mixture(1).fit(TABLE)
    assert MODEL.score_samples(new).mean() > alone.score_samples(new).mean() + 0.5


def test_mixtures_of_numbers_find_correlations() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 4)) @ rng.standard_normal((4, 4))
    model = sc.JointModel(random_state=0).fit(x)
    direct = sc.GaussianMixture(1).fit(x)
    assert model.score_samples(x).mean() > direct.score_samples(x).mean() - 0.05
    given = {0: 1.0, 1: -0.5}
    cov, mean = np.cov(x.T), x.mean(axis=0)
    expected = mean[2] + cov[2, :2] @ np.linalg.solve(cov[:2, :2], np.array([1.0, -0.5]) - mean[:2])
    assert model.query(2, given).mean == pytest.approx(expected, abs=0.15)


def test_questions_that_make_no_sense_are_errors() -> None:
    with pytest.raises(sc.DataError, match="both `of` and given"):
        MODEL.query("kind", {"kind": "a"})
    with pytest.raises(sc.DataError, match="no column"):
        MODEL.query("knid")
    with pytest.raises(sc.DataError, match="no category"):
        MODEL.query("age", {"kind": ["a", "z"]})
    with pytest.raises(sc.DataError, match="leaves none"):
        MODEL.query("age", {"children": sc.conditions.between(20, 40)})
    with pytest.raises(sc.DataError, match="mapping"):
        MODEL.query("age", ["kind"])


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_few_rows_are_enough(n: int) -> None:
    frame = pd.DataFrame({"x": np.arange(n, dtype=float), "kind": ["a", "b", "a", "c", "a", "b", "b"][:n]})
    model = sc.JointModel(random_state=0).fit(frame)
    assert np.isfinite(model.score_samples(frame)).all()
    assert len(model.sample(3, random_state=0)) == 3
