"""Python is spoken to in Python, the shell in shell; results are frames like the one given; no needless warning."""

from __future__ import annotations

import ast
import runpy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner

import softcount as sc
from softcount.cli import main
from softcount.errors import DataError, DataWarning
from softcount.estimators import result_frames

RNG = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "colour": RNG.choice(["red", "blue", "green"], 60),
        "size": np.where(RNG.random(60) < 0.2, np.nan, RNG.normal(5, 1, 60)),
        "mass": RNG.normal(2, 1, 60),
        "code": [f"id-{i}" for i in range(60)],
    },
    index=[f"r{i}" for i in range(60)],
)
Y = np.where(FRAME["mass"] > 2, "big", "small")
PLAIN = FRAME.drop(columns="code")


def naive() -> Any:
    return sc.NaiveBayes()


MODELS: dict[str, Any] = {
    "bayes": lambda X: sc.NaiveBayes().fit(X, Y),
    "tree": lambda X: sc.BayesNet.tan(X, Y),
    "classifier": lambda X: sc.Classifier(budget=0).fit(X, Y),
    "mixture": lambda X: sc.Mixture(2, n_init=2, random_state=0).fit(X),
    "net": lambda X: sc.BayesNet([("colour", "mass")]).fit(X),
}


def as_made(frame: pd.DataFrame, library: str) -> Any:
    if library == "pandas":
        return frame
    return pl.from_pandas(frame) if library == "polars" else pa.Table.from_pandas(frame, preserve_index=False)


LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.Table}


# -- frames


@pytest.mark.parametrize("library", list(LIBRARIES))
@pytest.mark.parametrize("made", list(MODELS))
def test_results_come_in_the_frame_that_came_in(made: str, library: str) -> None:
    X, wanted = as_made(PLAIN, library), LIBRARIES[library]
    model = MODELS[made](X)
    asked = [model.sample(3, random_state=0), model.anomalies(X, 2), model.impute(X), model.schema_]
    if made != "mixture" and made != "net":
        asked.append(model.explain(X))
    assert {type(found) for found in asked} == {wanted}


def test_rows_keep_their_labels() -> None:
    model = MODELS["bayes"](PLAIN)
    assert model.explain(PLAIN).index.equals(PLAIN.index)
    worst = model.anomalies(PLAIN, 4)
    assert worst.index.tolist() == [f"r{row}" for row in worst["row"]]
    assert model.membership_entropy(PLAIN).index.equals(PLAIN.index)
    assert model.augment(PLAIN).index.tolist()[:4] == ["r0", "r0", "r1", "r1"]
    assert model.impute(PLAIN).index.equals(PLAIN.index)


def test_what_is_asked_decides_and_not_what_was_learned_from() -> None:
    model = MODELS["bayes"](PLAIN)
    assert isinstance(model.explain(as_made(PLAIN, "polars")), pl.DataFrame)
    assert isinstance(model.explain(as_made(PLAIN, "arrow")), pa.Table)


def test_figures_are_the_same_in_every_frame() -> None:
    tables = [MODELS["bayes"](as_made(PLAIN, name)).explain(as_made(PLAIN, name)) for name in LIBRARIES]
    for found in tables[1:]:
        np.testing.assert_array_equal(np.asarray(found["size"]), tables[0]["size"].to_numpy())


@pytest.mark.parametrize("installed", [True, False])
def test_an_array_a_list_or_a_file_gives_pandas_if_it_is_installed(
    installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PLAIN.assign(y=Y).to_csv(tmp_path / "t.csv", index=False)
    if not installed:
        monkeypatch.setattr(result_frames, "find_spec", lambda name: None)
    wanted = pd.DataFrame if installed else pa.Table
    numbers = PLAIN[["mass"]].to_numpy()
    for X, y in [(tmp_path / "t.csv", "y"), (numbers, Y), (numbers.tolist(), Y), ({"mass": [*numbers[:, 0]]}, Y)]:
        model = sc.NaiveBayes().fit(X, y)
        found = [model.sample(2), model.explain(X), model.anomalies(X, 2), model.summary(), model.schema_]
        assert {type(own) for own in found} == {wanted}


def test_the_missing_cells_of_a_file_are_filled(tmp_path: Path) -> None:
    rows = pd.DataFrame(
        {"size": [1.5, 1.5, None, 9.5, 9.5, 9.5], "zip": [*"aaabbb"], "code": ["01", "02", "03", "04", "05", "06"]}
    )
    rows.to_csv(tmp_path / "t.csv", index=False)
    model = sc.Mixture(2, kinds={"code": "ignore"}, random_state=0).fit(tmp_path / "t.csv")
    found = model.impute(tmp_path / "t.csv")
    assert found["size"].tolist() == pytest.approx(model.impute(rows)["size"].tolist())
    assert found["code"].tolist() == rows["code"].tolist()  # text, with its zeros
    pd.testing.assert_frame_equal(model.impute(sc.read(tmp_path / "t.csv")), found)
    assert len(model.augment(tmp_path / "t.csv")) >= len(rows)


# -- kinds_ and schema_


BLOCK = {("size", "mass"): "multinormal"}
SET = {"mass": sc.families.Normal(tied="classes"), "size": "student"}


@pytest.mark.parametrize("kinds", [None, BLOCK, SET], ids=["guessed", "block", "settings"])
def test_kinds_given_back_make_the_same_model(kinds: Any) -> None:
    model = sc.NaiveBayes(kinds=kinds).fit(FRAME, Y)
    again = sc.NaiveBayes(kinds=model.kinds_).fit(FRAME, Y)
    np.testing.assert_array_equal(again.predict_proba(FRAME), model.predict_proba(FRAME))
    assert again.kinds_ == model.kinds_


@pytest.mark.parametrize("made", list(MODELS))
def test_kinds_of_every_model_can_be_given_back(made: str) -> None:
    model = MODELS[made](PLAIN)
    assert set(model.kinds_) == set(PLAIN.columns)
    settings = model.get_params(deep=False) | {"kinds": model.kinds_}
    type(model)(**settings).fit(PLAIN, *([] if made in ("mixture", "net") else [Y]))


def test_kinds_and_schema_say_what_was_left_out_and_why() -> None:
    model = MODELS["bayes"](FRAME)
    assert model.kinds_ == {"colour": "categorical", "size": "normal", "mass": "normal", "code": "ignore"}
    schema = model.schema_.set_index("column")
    assert schema.loc["code", "kind"] == "identifier" and not schema.loc["code", "used"]
    assert schema.loc["colour", "levels"] == 3 and "decimals" in schema.loc["mass", "why"]


# -- warnings


@pytest.mark.parametrize("made", list(MODELS))
def test_missing_cells_are_nothing_to_warn_of(made: str) -> None:
    holed = PLAIN.assign(size=np.nan)
    model = MODELS[made](PLAIN)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        model.predict(holed) if made != "net" else model.predict(holed, "colour")
        model.impute(holed)
        model.anomalies(holed, 1)


ASKED = ["predict", "predict_proba", "predict_log_proba", "score_samples", "anomaly_score", "impute"]


@pytest.mark.parametrize("made", ["bayes", "tree", "classifier", "mixture"])
@pytest.mark.parametrize("asked", ASKED)
def test_a_level_never_seen_is_told_once_at_the_line_that_asked(made: str, asked: str) -> None:
    if made == "tree" and asked in ("predict_log_proba", "score_samples", "anomaly_score"):
        return  # a network warns of nothing there
    odd = PLAIN.assign(colour=["mauve", *PLAIN["colour"][1:]])
    model = MODELS[made](PLAIN)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        getattr(model, asked)(odd)
    assert [note.filename for note in told] == [__file__]
    assert "1 cell holds levels never seen in training, in 'colour' (1)" in str(told[0].message)


# -- remedies


@pytest.mark.parametrize(
    ("kind", "cells", "python", "shell"),
    [
        ("poisson", [1, 2, -3, 4], "kinds={'b': 'real'}", "--kind b=real"),
        ("lognormal", [1.5, 2.5, -3.0, 4.5], "kinds={'b': 'ignore'}", "--kind b=ignore"),
        ("exponential", [1.5, 2.5, -3.0, 4.5], "kinds={'b': 'normal'}", "--kind b=normal"),
        ("normal", ["x", "y", "x", "z"], "kinds={'b': 'categorical'}", "--kind b=categorical"),
    ],
)
def test_errors_speak_the_language_of_who_asked(
    kind: str, cells: list[Any], python: str, shell: str, tmp_path: Path
) -> None:
    frame = pd.DataFrame({"b": cells * 5, "c": np.arange(20) / 7.0})
    with pytest.raises(DataError) as error:
        sc.NaiveBayes(kinds={"b": kind}).fit(frame, ["u", "v"] * 10)
    assert python in str(error.value) and "--" not in str(error.value)
    frame.assign(y=["u", "v"] * 10).to_csv(tmp_path / "t.csv", index=False)
    words = ["fit", str(tmp_path / "t.csv"), "--target", "y", "--kind", f"b={kind}", "-o", str(tmp_path / "m.sc")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 3 and shell in result.stderr and "kinds=" not in result.stderr
    with pytest.raises(DataError, match="kinds="):  # and after a command Python is Python again
        sc.NaiveBayes(kinds={"b": kind}).fit(frame, ["u", "v"] * 10)


def test_notes_speak_the_language_of_who_asked(tmp_path: Path) -> None:
    assert any("kinds={'code': 'categorical'}" in note for note in MODELS["bayes"](FRAME).notes_)
    FRAME.assign(y=Y).to_csv(tmp_path / "t.csv", index=False)
    told = CliRunner().invoke(main, ["fit", str(tmp_path / "t.csv"), "--target", "y", "-o", str(tmp_path / "m.sc")])
    assert "--kind code=categorical" in told.stdout and "kinds=" not in told.stdout


def test_a_text_that_names_an_option_is_found_by_the_seams() -> None:
    seams = runpy.run_path(str(Path(__file__).parents[1] / "scripts" / "check_seams.py"))
    for text, found in [('"""--kind"""\nx = f"use --kind {1}=a"', True), ('x = remedies.either("a", "--kind")', False)]:
        told = [what for _, what in seams["speaks_shell"]([*ast.walk(ast.parse(text))])]
        assert any("names an option" in what for what in told) == found
