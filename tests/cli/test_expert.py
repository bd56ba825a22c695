"""softcount fit --expert: beliefs counted beside the data, shown beside what the data alone say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import softcount as sc
from softcount.cli import main

SKY, WEATHER = ["grey", "blue", "grey", "red", "grey", "blue"] * 4, ["rain", "sun", "rain", "sun", "sun", "sun"] * 4
BELIEFS = "column,level,class,n,m\nSky,grey,rain,8,10\nSky,black,rain,1,10\nSky,blue,,3,6\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text("Sky,weather\n" + "\n".join(map(",".join, zip(SKY, WEATHER, strict=True))) + "\n")
    (tmp_path / "beliefs.csv").write_text(BELIEFS)
    return tmp_path


def run(folder: Path, *words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["fit", str(folder / "t.csv"), "-o", str(folder / "m.sc"), *words])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def with_expert(folder: Path, *words: str, code: int = 0) -> Result:
    return run(
        folder,
        "--target",
        "weather",
        "--model",
        "naive-bayes",
        "--expert",
        str(folder / "beliefs.csv"),
        *words,
        code=code,
    )


def test_the_model_is_that_of_the_library(folder: Path) -> None:
    found = json.loads(with_expert(folder, "--json").stdout)
    table = {"Sky": SKY}
    plain = sc.NaiveBayes().fit(table, WEATHER)
    wanted = sc.NaiveBayes(prior=sc.priors.expert_prior(folder / "beliefs.csv", plain)).fit(table, WEATHER)
    model = sc.load(folder / "m.sc")
    assert model.levels_["Sky"] == wanted.levels_["Sky"] == ["black", "blue", "grey", "red"]
    np.testing.assert_allclose(model.params_["Sky"]["probability"], wanted.params_["Sky"]["probability"], atol=1e-15)
    beside = sc.priors.compare_beliefs(folder / "beliefs.csv", plain).to_pylist()
    assert [line["both"] for line in found["expert"]] == [line["both"] for line in beside]


def test_the_page_shows_expert_data_and_both(folder: Path) -> None:
    told = with_expert(folder).stdout
    part = told.split("Expert and data")[1].split("\n\n")[0]
    assert "8 of 10" in part and "80.0 %" in part and "100 %" in part and "surprise" in part


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Sky,grey,rain,11,10", "line 2: Expert's n is 11. It is at most m, which is 10"),
        ("Sea,grey,rain,1,10", "no column 'Sea'"),
        ("Sky,grey,fog,1,10", "no class 'fog'"),
        ("Sky,grey,rain,many,10", "Both are numbers"),
    ],
)
def test_beliefs_that_make_no_sense_are_refused_by_their_line(folder: Path, line: str, said: str) -> None:
    (folder / "beliefs.csv").write_text(f"column,level,class,n,m\n{line}\n")
    result = with_expert(folder, code=3)
    assert said in result.stderr and not (folder / "m.sc").exists()


def test_options_that_contradict_it_are_refused(folder: Path) -> None:
    assert "needs --target" in run(folder, "--expert", "beliefs.csv", code=2).stderr
    assert "give one of the two" in with_expert(folder, "--prior", "2", code=2).stderr
    assert "cannot be given with --net" in with_expert(folder, "--net", "tan", code=2).stderr
