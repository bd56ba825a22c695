"""What a model gives back is written as the cells it was learned from, in the shell and in Python."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner

import softcount
from softcount.cli import main
from softcount.table.cell_values import type_name

FILES = Path(__file__).parent / "files"


def run(*words: object) -> str:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


def schema(path: Path) -> dict[str, Any]:
    return {x["column"]: x["why"].partition(" (")[0] for x in json.loads(run("schema", path, "--json"))["columns"]}


@pytest.mark.parametrize("file", ["currency.csv", "units.csv", "day_first.csv", "clocks.csv", "sentinels.csv"])
def test_a_sampled_table_is_read_as_the_one_it_was_learned_from(file: str, tmp_path: Path) -> None:
    run("fit", FILES / file, "--classes", 1, "-o", tmp_path / "m.sc")
    run("sample", tmp_path / "m.sc", "-n", 300, "-o", tmp_path / "drawn.csv")
    before, after = schema(FILES / file), schema(tmp_path / "drawn.csv")
    forms = {key: why for key, why in before.items() if why.startswith(("numbers in", "dates", "times"))}
    assert {key: after[key] for key in forms} == forms
    whole = [key for key, why in before.items() if why.startswith("whole numbers")]
    drawn = pd.read_csv(tmp_path / "drawn.csv")
    assert all(drawn[key].dtype == np.int64 for key in whole)


def test_a_question_is_asked_and_answered_in_the_form_of_the_cells(tmp_path: Path) -> None:
    run("fit", FILES / "day_first.csv", "--classes", 1, "-o", tmp_path / "m.sc")
    answer = json.loads(run("query", tmp_path / "m.sc", "--of", "sold", "--given", "shipped=03.02.2021", "--json"))
    assert answer["mean"].endswith("/2021") and answer["given"] == {"shipped": "03.02.2021"}
    page = run("query", tmp_path / "m.sc", "--of", "shipped", "--given", "sold=2021-05-17")
    assert "sold = 17/5/2021" in page and "days" in page


def test_a_page_and_an_explanation_show_cells_as_they_are_written(tmp_path: Path) -> None:
    run("fit", FILES / "currency.csv", "--target", "region", "-o", tmp_path / "m.sc")
    page = run("show", tmp_path / "m.sc")
    assert "mean $" in page and "%" in page
    first = (FILES / "currency.csv").read_text().splitlines()[1]
    explained = run("explain", tmp_path / "m.sc", FILES / "currency.csv", "--row", 1)
    assert first.split('"')[1] in explained


def frame() -> pd.DataFrame:
    days = pd.date_range("2020-01-01", periods=60, freq="D").astype("datetime64[us]")
    found = pd.DataFrame(
        {"day": days, "waited": pd.to_timedelta(np.arange(60) * 3600, unit="s"), "x": np.arange(60) / 7}
    )
    found.loc[3, "day"], found.loc[5, "waited"] = pd.NaT, pd.NaT
    return found


@pytest.mark.parametrize("make", [lambda x: x, pl.from_pandas, pa.table], ids=["pandas", "polars", "arrow"])
def test_a_missing_date_is_filled_by_a_date(make: Any) -> None:
    table = make(frame())
    model = softcount.Mixture(2, random_state=0).fit(table)
    filled = pa.table(model.impute(table))
    assert filled.column("day").null_count == filled.column("waited").null_count == 0
    assert pa.types.is_timestamp(filled.schema.field("day").type)
    assert pa.types.is_duration(filled.schema.field("waited").type)
    assert filled.column("day")[3].as_py().year == 2020
    drawn = pa.table(model.sample(5))
    assert pa.types.is_timestamp(drawn.schema.field("day").type)


def test_a_cell_of_money_is_filled_by_money(tmp_path: Path) -> None:
    table = pd.read_csv(FILES / "currency.csv")
    table.loc[4, "sales"] = None
    model = softcount.Mixture(1).fit(table)
    model.save(tmp_path / "m.sc")
    filled = softcount.load(tmp_path / "m.sc").impute(table)
    assert filled["sales"][4].startswith("$") and filled["sales"][3] == table["sales"][3]


def test_how_a_file_is_written_is_remembered_by_the_model(tmp_path: Path) -> None:
    names = "age,job,hours,left"
    run("fit", FILES / "headerless.data", "--names", names, "--target", "left", "-o", tmp_path / "m.sc")
    told = run("predict", tmp_path / "m.sc", FILES / "headerless.data")
    assert len(told.splitlines()) == 31
    with_names = tmp_path / "named.csv"
    with_names.write_text(names + "\n" + (FILES / "headerless.data").read_text())
    assert run("predict", tmp_path / "m.sc", with_names) == told
    model = softcount.load(tmp_path / "m.sc")
    assert len(model.predict(FILES / "headerless.data")) == 30
    in_python = softcount.NaiveBayes().fit(softcount.read(FILES / "headerless.data", names=names), "left")
    assert in_python.predict(FILES / "headerless.data").tolist() == in_python.predict(with_names).tolist()


TIMES = {
    "PT1H30M PT45M PT2H PT20M PT1H": ("durations", r"-?PT([0-9]+H)?([0-9]+M)?|PT0S"),
    "P1DT6H P2D P3D P1DT12H P5D": ("durations", r"-?P([0-9]+D)?(T[0-9]+H)?"),
    "2024-Q1 2024-Q2 2023-Q4 2024-Q3 2022-Q1": ("quarters of a year", r"20[0-9]{2}-Q[1-4]"),
    "Q1/2024 Q2/2024 Q4/2023 Q3/2024 Q1/2022": ("quarters of a year", r"Q[1-4]/20[0-9]{2}"),
    "2024-01-01T10:00:00+01:00 2024-06-01T10:00:00+02:00 2024-03-01T10:00:00Z 2024-03-05T11:30:00-05:00": (
        "dates and times in several time zones", r"2024-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z",
    ),
}  # fmt: skip


@pytest.mark.parametrize("cells", TIMES)
def test_durations_quarters_and_time_zones_are_read_and_given_back(cells: str, tmp_path: Path) -> None:
    said, pattern = TIMES[cells]
    path = tmp_path / "times.csv"
    path.write_text("when,x\n" + "".join(f"{cell},{k % 7}\n" for k, cell in enumerate(cells.split() * 12)))
    assert schema(path)["when"].startswith(said)
    run("fit", path, "--classes", 1, "-o", tmp_path / "m.sc")
    run("sample", tmp_path / "m.sc", "-n", 20, "-o", tmp_path / "drawn.csv")
    drawn = pd.read_csv(tmp_path / "drawn.csv")["when"]
    assert drawn.str.fullmatch(pattern).all()


def test_times_in_other_zones_are_the_same_moment() -> None:
    zoned = ["2024-01-01T12:00:00+02:00", "2024-01-01T10:00:00Z", "2024-01-01T05:00:00-05:00", "2024-01-02T10:00:00Z"]
    model = softcount.Mixture(1).fit({"when": zoned * 15, "x": list(range(60))})
    moment = pd.Timestamp("2024-01-01T10:00:00").timestamp()
    assert model.params_["when"]["mean"][0] == pytest.approx(moment + 86_400 / 4)


@pytest.mark.parametrize("make", [lambda x: x, pl.from_pandas, pa.table], ids=["pandas", "polars", "arrow"])
def test_numbers_come_back_as_precise_as_they_came(make: Any) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": pd.array(rng.integers(18, 80, 60), dtype="Int64"),
            "price": rng.normal(20, 4, 60).round(2),
            "exact": rng.normal(size=60),
        }
    )
    frame.loc[3, ["age", "price", "exact"]] = None
    table = make(frame)
    model = softcount.Mixture(2, random_state=0).fit(table)
    filled, drawn = pa.table(model.impute(table)), pa.table(model.sample(30, random_state=0))
    assert pa.types.is_integer(filled.schema.field("age").type)
    for found in (filled, drawn):
        assert all(float(age).is_integer() for age in found["age"].to_pylist())
        assert all(round(price, 2) == price for price in found["price"].to_pylist())
    assert any(round(value, 6) != value for value in drawn["exact"].to_pylist())


def test_results_of_sequences_and_comparisons_are_frames_of_the_library_that_came_in() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": np.r_[rng.normal(size=30), rng.normal(size=30) + 6], "y": rng.normal(size=60)})
    for make, frame in ((lambda x: x, pd.DataFrame), (pl.from_pandas, pl.DataFrame), (pa.Table.from_pandas, pa.Table)):
        own = make(rows)
        states = softcount.HiddenMarkov(2, random_state=0).fit([own, own])
        answers = [states.explain([own]), states.anomalies([own], 3), states.forecast([own], 2), states.sample(1, 3)]
        assert all(isinstance(answer, frame) for answer in answers)
    compared = softcount.compare(rows, np.repeat(["a", "b"], 30), folds=2)
    assert isinstance(compared.table, pd.DataFrame)
    steps = softcount.MarkovChain().fit([["a", "b", "a"], ["b", "a"]])
    assert isinstance(steps.explain([["a", "b"]]), pd.DataFrame)


def test_a_network_says_a_given_date_as_a_date(tmp_path: Path) -> None:
    run("fit", FILES / "day_first.csv", "--net", "chow-liu", "-o", tmp_path / "m.sc")
    page = run("query", tmp_path / "m.sc", "--of", "shipped", "--given", "sold=17/5/2021")
    assert "given sold = 17/5/2021" in page
    page = run("query", tmp_path / "m.sc", "--of", "shipped", "--given", "sold>17/5/2021")
    assert "given sold above 17/5/2021" in page
    answer = json.loads(run("query", tmp_path / "m.sc", "--of", "shipped", "--given", "sold=17/5/2021", "--json"))
    assert answer["given"] == {"sold": "17/5/2021"}


def typed_frame(rows: int = 80) -> pd.DataFrame:
    """Columns whose cells could be taken for another type; every third row or so holds each value."""
    place = np.arange(rows)
    return pd.DataFrame(
        {
            "text": np.array(["1", "2", "3"])[place % 3],
            "points": np.array(["1.0", "2.0", "3.0"])[place % 3],
            "prices": [f"{cell:.2f}" for cell in 20 + np.sin(place)],
            "whole": place % 4,
            "floats": (place % 4).astype(float),
            "truths": place % 2 == 0,
            "small": (place * 7 % 50).astype(np.int16),
            "codes": pd.Categorical(np.array(["a", "b"])[place % 2], categories=["a", "b"]),
        }
    )


@pytest.mark.parametrize("make", [lambda x: x, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"])
def test_sampled_and_imputed_columns_have_the_types_that_came_in(make: Any, tmp_path: Path) -> None:
    frame = typed_frame()
    table = make(frame)
    mixture = softcount.Mixture(1, random_state=0).fit(table)
    mixture.save(tmp_path / "m.sc")
    holes = frame.astype({"truths": "boolean", "whole": "Int64", "small": "Int16"})
    for place, name in enumerate(frame.columns):
        holes.loc[place, name] = None
    for model in (mixture, softcount.load(tmp_path / "m.sc"), softcount.NaiveBayes().fit(table, list(frame["codes"]))):
        drawn = pa.table(model.sample(40, random_state=0))
        filled = pa.table(model.impute(make(holes)))
        for found in (drawn, filled):
            for name in frame.columns:
                assert type_name(found[name].type) == type_name(pa.table(table)[name].type)
                assert found[name].null_count == 0
            assert set(found["text"].to_pylist()) <= {"1", "2", "3"}
            assert set(found["points"].to_pylist()) <= {"1.0", "2.0", "3.0"}
            assert all(len(cell.partition(".")[2]) == 2 for cell in found["prices"].to_pylist())
    assert list(mixture.query("points")) == ["1.0", "2.0", "3.0"] and list(mixture.query("text")) == ["1", "2", "3"]
    assert mixture.query("points", given={"text": "1"}) == mixture.query("points", given={"text": 1})


def test_a_sampled_file_spells_numbers_as_the_one_it_was_learned_from(tmp_path: Path) -> None:
    typed_frame().drop(columns="codes").to_csv(tmp_path / "t.csv", index=False)
    holes = typed_frame().drop(columns="codes").astype(object)
    holes.loc[0, ["points", "prices", "floats"]] = None
    holes.to_csv(tmp_path / "holes.csv", index=False)
    run("fit", tmp_path / "t.csv", "--classes", 1, "-o", tmp_path / "m.sc")
    run("sample", tmp_path / "m.sc", "-n", 50, "-o", tmp_path / "drawn.csv")
    run("impute", tmp_path / "m.sc", tmp_path / "holes.csv", "-o", tmp_path / "filled.csv")
    assert schema(tmp_path / "drawn.csv").keys() == schema(tmp_path / "t.csv").keys()
    for name in ("drawn.csv", "filled.csv"):
        found = pd.read_csv(tmp_path / name, dtype=str)
        assert set(found["points"]) <= {"1.0", "2.0", "3.0"} and set(found["floats"]) <= {"0.0", "1.0", "2.0", "3.0"}
        assert found["prices"].str.fullmatch(r"[0-9]+\.[0-9]{2}").all() and set(found["text"]) <= {"1", "2", "3"}
    library = softcount.Mixture(1).fit(tmp_path / "t.csv").sample(5)
    assert library["points"].dtype.kind == "f" and library["text"].dtype.kind == "i"


def repeating_frame() -> pd.DataFrame:
    """Columns that follow from another, and constants, which a mixture leaves out."""
    rng = np.random.default_rng(5)
    place = np.arange(120)
    size, town = rng.normal(place % 2 * 5.0, 1.0), np.array(["bonn", "essen", "lyon"])[rng.integers(0, 3, 120)]
    country = np.where(town == "lyon", "fr", "de")
    day = pd.Timestamp("2021-03-04")
    return pd.DataFrame(
        {"unit": "cm", "size": size, "minus": 3 - 2 * size, "town": town, "country": country, "code": 7, "day": day}
    )


def test_columns_that_follow_from_others_are_sampled_imputed_and_asked_about(tmp_path: Path) -> None:
    frame = repeating_frame()
    mixture = softcount.Mixture(random_state=0).fit(frame)
    assert [key for key, kind in mixture.kinds_.items() if kind == "ignore"] == [
        "unit", "minus", "country", "code", "day"
    ]  # fmt: skip
    mixture.save(tmp_path / "m.sc")
    holes = frame.copy()
    for place, name in enumerate(frame.columns):
        holes[name] = holes[name].astype("Int64") if name == "code" else holes[name]
        holes.loc[place, name] = None
    holes.loc[10, ["size", "minus"]] = None
    for model in (mixture, softcount.load(tmp_path / "m.sc")):
        drawn = pa.table(model.sample(60, random_state=0)).to_pandas()
        assert drawn.columns.tolist() == frame.columns.tolist() and (drawn.dtypes == frame.dtypes).all()
        np.testing.assert_allclose(drawn["minus"], 3 - 2 * drawn["size"], rtol=1e-12)
        assert ((drawn["town"] == "lyon") == (drawn["country"] == "fr")).all()
        assert (drawn[["unit", "code", "day"]] == frame[["unit", "code", "day"]].iloc[0]).all(axis=None)
        filled = model.impute(holes)
        assert not filled.isna().any(axis=None)
        rest = filled.index != 10
        pd.testing.assert_frame_equal(
            filled[rest].drop(columns="town"), frame[rest].drop(columns="town"), check_dtype=False
        )
        assert filled["minus"][10] == pytest.approx(3 - 2 * filled["size"][10])
        assert (filled["town"][3] == "lyon") == (frame["town"][3] == "lyon")
        own, other = model.query("size", {"town": "bonn"}), model.query("minus", {"town": "bonn"})
        assert other.mean == pytest.approx(3 - 2 * own.mean) and other.variance == pytest.approx(4 * own.variance)
        assert other.quantile(0.1) == pytest.approx(3 - 2 * own.quantile(0.9))
        assert other.cdf(1.0) == pytest.approx(1 - own.cdf(1.0)) and other.pdf(1.0) == pytest.approx(own.pdf(1.0) / 2)
        assert model.query("town", {"minus": (-9, -5)}) == pytest.approx(model.query("town", {"size": (4, 6)}))
        towns = model.query("town")
        assert model.query("country")["fr"] == pytest.approx(towns["lyon"])
        assert model.query("town", {"country": "de"})["bonn"] == pytest.approx(towns["bonn"] / (1 - towns["lyon"]))
        assert model.query("size", {"minus": 1.0}).mean == pytest.approx(1.0) and model.query("unit") == {"cm": 1.0}
        assert list(model.query())[1:] == frame.columns.tolist()
        with pytest.raises(softcount.DataError, match="follows from 'size', and both are given"):
            model.query("town", {"minus": 1.0, "size": 1.0})


def test_the_shell_answers_for_columns_that_follow_from_others(tmp_path: Path) -> None:
    repeating_frame().to_csv(tmp_path / "t.csv", index=False)
    run("fit", tmp_path / "t.csv", "-o", tmp_path / "m.sc")
    run("sample", tmp_path / "m.sc", "-n", 120, "-o", tmp_path / "drawn.csv")
    assert schema(tmp_path / "drawn.csv") == schema(tmp_path / "t.csv")
    answer = json.loads(run("query", tmp_path / "m.sc", "--of", "country", "--given", "minus=-9..-5", "--json"))
    assert {line["level"] for line in answer["levels"]} == {"de", "fr"}
    first = json.loads(run("query", tmp_path / "m.sc", "--of", "town", "--given", "country=fr", "--json"))["levels"]
    assert {line["level"]: line["probability"] for line in first}["lyon"] == 1.0


def test_a_table_without_a_constant_column_is_imputed() -> None:
    frame = repeating_frame()
    model = softcount.Mixture(1, random_state=0).fit(frame)
    fewer = frame[["town", "size"]].head(4).copy()
    fewer.loc[0, "size"] = None
    filled = model.impute(fewer)
    assert not filled["size"].isna().any() and "unit" not in filled


def test_a_target_is_spelt_as_in_its_file(tmp_path: Path) -> None:
    rows = "".join(f"{place % 7}.5,{1 + place % 2}.0\n" for place in range(40))
    (tmp_path / "t.csv").write_text("x,y\n" + rows)
    run("fit", tmp_path / "t.csv", "--target", "y", "--model", "naive-bayes", "-o", tmp_path / "m.sc")
    for command in (["sample", tmp_path / "m.sc"], ["predict", tmp_path / "m.sc", tmp_path / "t.csv"]):
        found = pd.read_csv(io.StringIO(run(*command)), dtype=str)
        assert set(found["y" if "y" in found else "predicted"]) == {"1.0", "2.0"}
