"""Which model answers about columns is said, and a warning says when it takes dependent columns as independent."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import softcount
from softcount.cli import main

WARNED = "naive Bayes takes columns as independent given the class, but 'line' and 'charge'"


def run(*words: object) -> Result:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result


def bills() -> pd.DataFrame:
    """The charge depends on the line whatever the class, the age on nothing."""
    rng = np.random.default_rng(4)
    line, left = rng.choice(["dsl", "fibre", "none"], 400), rng.choice(["no", "yes"], 400)
    charge = rng.normal(50, 4, 400) + 40 * (line == "fibre") - 30 * (line == "none") + 5 * (left == "yes")
    return pd.DataFrame({"line": line, "charge": charge.round(2), "age": rng.normal(45, 9, 400).round(), "left": left})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bills")
    bills().to_csv(folder / "bills.csv", index=False)
    bills().assign(charge="").head(5).to_csv(folder / "holes.csv", index=False)
    for name, options in {"plain": [], "network": ["--model", "network"], "mixture": ["--model", "mixture"]}.items():
        run("fit", folder / "bills.csv", "--target", "left", *options, "-o", folder / f"{name}.sc")
    return folder


def mean_charge(folder: Path, model: str) -> tuple[float, dict[str, Any], str]:
    found = run("query", folder / model, "--of", "charge", "--given", "left=yes", "--given", "line=fibre", "--json")
    answer = json.loads(found.stdout)
    return answer["mean"], answer, found.stderr


def test_naive_bayes_is_named_and_warned_of_where_columns_depend_on_each_other(folder: Path) -> None:
    mean, answer, said = mean_charge(folder, "plain.sc")
    assert answer["model"] == "naive Bayes" and "answered by: naive Bayes" in said
    assert WARNED in said and "fit --model joint" in said
    rows = bills()
    truth = rows["charge"][(rows["left"] == "yes") & (rows["line"] == "fibre")].mean()
    assert abs(mean - truth) > 30  # the answer that the warning is about
    for model, name in (("network.sc", "Bayesian network"), ("mixture.sc", "mixture of")):
        mean, answer, said = mean_charge(folder, model)
        assert answer["model"].startswith(name) and name in said and "note:" not in said
        assert mean == pytest.approx(truth, abs=4)


def test_a_question_about_independent_columns_is_answered_without_a_warning(folder: Path) -> None:
    said = run("query", folder / "plain.sc", "--of", "age", "--given", "line=dsl").stderr
    assert "answered by: naive Bayes" in said and "note:" not in said
    assert run("-q", "query", folder / "plain.sc", "--of", "charge", "--given", "line=dsl").stderr == ""


def test_sample_impute_and_explore_name_the_model(folder: Path, tmp_path: Path) -> None:
    for command in (["sample", folder / "plain.sc"], ["impute", folder / "plain.sc", folder / "holes.csv"]):
        said = run(*command).stderr
        assert "answered by: naive Bayes" in said and WARNED in said
        others = run(command[0], folder / "network.sc", *command[2:]).stderr
        assert "answered by: Bayesian network" in others and WARNED not in others
    assert WARNED in run("explore", folder / "plain.sc", "-o", tmp_path / "page.html").stderr
    page = (tmp_path / "page.html").read_text()
    assert re.search(r'"answers": ?"naive Bayes"', page) and "naive Bayes takes columns as independent" in page


def test_the_library_warns_too(folder: Path) -> None:
    rows = bills()
    fitted = softcount.Classifier().fit(rows.drop(columns="left"), rows["left"])
    for model in (fitted, softcount.load(folder / "plain.sc")):
        assert model.answering_model_ == "naive Bayes"
        for ask in (lambda: model.query("charge", {"line": "dsl"}), lambda: model.sample(3)):  # noqa: B023
            with pytest.warns(softcount.DataWarning, match="JointModel"):
                ask()
    assert len(softcount.load(folder / "network.sc").sample(3)) == 3
    assert softcount.load(folder / "mixture.sc").answering_model_.startswith("mixture of")


@pytest.mark.parametrize("model", ["mixture", "network"])
def test_a_model_of_all_columns_takes_the_target_for_one_of_them(model: str, folder: Path) -> None:
    assert list(softcount.load(folder / f"{model}.sc").query("left")) == ["no", "yes"]
    said = CliRunner().invoke(main, ["fit", str(folder / "bills.csv"), "--target", "gone", "--model", model])
    assert said.exit_code == 3 and "'gone'" in said.stderr
    for option in (["--folds", "3"], ["--net", "tan"], ["--calibrate", "isotonic"]):
        words = ["fit", str(folder / "bills.csv"), "--target", "left", "--model", model, *option]
        assert CliRunner().invoke(main, words).exit_code == 2
