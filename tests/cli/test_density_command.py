"""softcount density: the ranking, the drawings, and what it says of columns that have no density."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from softcount.cli import main

ODD = "<b>&\x1b[31m"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("density") / "t.csv"
    price = np.exp(rng.normal(3, 1, 60)).round(2)
    lines = [f"{'' if i == 4 else price[i]},{ODD if i % 3 else 'plain'},{'same'},7,{i}x" for i in range(60)]
    path.write_text("price,kind <&>,word,constant,id\n" + "\n".join(lines) + "\n")
    return path


def run(*words: object, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["density", *map(str, words)])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def test_the_best_density_is_drawn(table: Path) -> None:
    told = run(table, "--column", "price").stdout
    assert told.startswith("Density of price: ")
    assert "59 values, 1 missing" in told and "█" in told and "┬" in told and "behind it: " in told


def test_all_densities_are_compared(table: Path) -> None:
    told = run(table, "--column", "price", "--compare").stdout
    for name in ("normal", "lognormal", "gamma", "exponential", "histogram", "kde", "2 normals"):
        assert told.count(f"\n  {name} ") == 2, name  # drawn, and in the table
    assert "nats per row" in told and "poisson" not in told


def test_groups_and_the_picture(table: Path, tmp_path: Path) -> None:
    told = run(table, "--column", "price", "--by", "kind <&>", "--plot", tmp_path / "out.svg").stdout
    assert "plain: " in told and "\x1b" not in told
    svg = (tmp_path / "out.svg").read_text()
    texts = [element.text for element in ET.fromstring(svg).iter()]
    assert "<b>&\\x1b[31m" in texts and "plain" in texts and "\x1b" not in svg


def test_the_picture_alone_goes_to_standard_output(table: Path) -> None:
    root = ET.fromstring(run(table, "--column", "price", "--compare", "--plot", "-").stdout)
    assert sum(element.tag.endswith("path") and len(element) == 1 for element in root.iter()) >= 7


def test_the_same_as_data(table: Path) -> None:
    found = json.loads(run(table, "--column", "price", "--json").stdout)
    assert (found["column"], found["rows"], found["missing"]) == ("price", 59, 1)
    heights = [density["log_likelihood"] for density in found["densities"]]
    assert len(heights) >= 7 and heights == sorted(heights, reverse=True)
    assert found["densities"][0]["behind"] == 0 and found["densities"][1]["found"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--column", "prize"), "has no column 'prize'.\n  Did you mean 'price'?"),
        (("--column", "price", "--by", "sort"), "--by: "),
        (("--column", "price", "--by", "price"), "is the column itself"),
        (("--column", "price", "--by", "id"), "60 levels, and at most 50"),
        (("--column", "word"), "column 'word' holds numbers, but row 1 holds 'same'"),
        (("--column", "constant"), "all 60 values are 7"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_a_line(table: Path, words: tuple[str, ...], line: str) -> None:
    result = run(table, *words, code=3)
    assert line in result.stderr and "Traceback" not in result.stderr


def test_an_infinite_cell_is_named(tmp_path: Path) -> None:
    path = tmp_path / "i.csv"
    path.write_text("x\n" + "\n".join(["1.5", "2.5", "inf", "3.5"] * 5) + "\n")
    assert "row 3" in run(path, "--column", "x", code=3).stderr


def test_json_and_a_picture_cannot_share_standard_output(table: Path) -> None:
    assert "cannot both" in run(table, "--column", "price", "--json", "--plot", "-", code=2).stderr
