"""softcount fit --model auto: what tells the classes is chosen, said, saved and used."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import softcount as sc
from softcount.cli import main


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.choice(["x", "y"], 160), "b": rng.choice(["u", "v"], 160), "c": rng.normal(size=160)}
    )
    frame["same"] = np.where((frame["a"] == "x") == (frame["b"] == "u"), "yes", "no")
    path = tmp_path_factory.mktemp("auto") / "table.csv"
    frame.to_csv(path, index=False)
    return path


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def test_what_was_chosen_is_said_saved_and_used(table, tmp_path):
    told = run("fit", table, "--target", "same", "--model", "auto", "-o", tmp_path / "model.sc")
    assert told.exit_code == 0, told.output
    assert "Classifier for same: 2 classes" in told.output
    assert "classes are told by pairs of columns" in told.output
    model = sc.load(tmp_path / "model.sc")
    assert model.fitted_.pool.names == ("pairs of columns",)
    predicted = run("predict", tmp_path / "model.sc", table)
    assert predicted.exit_code == 0
    rows = [line.split(",")[0] for line in predicted.stdout.splitlines()[1:]]
    assert rows == pd.read_csv(table)["same"].tolist()
    page = run("explain", tmp_path / "model.sc", table, "--row", 1)
    assert "(total)" in page.output


def test_the_figures_are_those_of_what_is_saved(table, tmp_path):
    told = run("fit", table, "--target", "same", "--model", "auto", "--json", "-o", tmp_path / "model.sc")
    figures = json.loads(told.stdout)["evaluation"]
    assert figures["accuracy"] > 0.95
    plain = run("fit", table, "--target", "same", "--json", "-o", tmp_path / "plain.sc")
    assert json.loads(plain.stdout)["evaluation"]["accuracy"] < 0.7


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--model", "auto"], "needs --target"), (["--target", "same", "--model", "auto", "--holdout", "0.2"], "held out"),
     (["--target", "same", "--model", "magic"], "magic")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(table, words, said):
    told = run("fit", table, *words)
    assert told.exit_code == 2
    assert said in told.output
