"""softcount compare: the page, the same as data, the picture, and what it says of columns that are not there."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from softcount.cli import main
from softcount.estimators import comparison

ODD = "<b>&\x1b[31m"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    lines = [f"{x[i]:.3f},{'u' if rng.random() < 0.5 else 'v'},{ODD if x[i] > 0 else 'no'}" for i in range(60)]
    path = tmp_path_factory.mktemp("compare") / "t.csv"
    path.write_text(f"x,word,class {ODD}\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is learned at once."""
    every, quick = comparison.list_candidates, ("naive Bayes", "logistic regression")
    monkeypatch.setattr(comparison, "list_candidates", lambda *how: [x for x in every(*how) if x.name in quick])


def run(*words: object, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["compare", *map(str, words)])
    assert result.exit_code == code, (result.output, result.exception)
    return result


TARGET = ("--target", f"class {ODD}")


def test_the_page_says_who_is_best_in_words(table: Path) -> None:
    told = run(table, *TARGET).stdout
    assert "60 rows of 2 classes; 5 folds, the same for all" in told and "\n  by log-loss " in told
    assert "logistic regression" in told and "\x1b" not in told and "Log-loss by rows" not in told


def test_curves_are_drawn_and_written(table: Path, tmp_path: Path) -> None:
    told = run(table, *TARGET, "--plot", tmp_path / "out.svg", "--folds", 3).stdout
    assert "lowest log-loss: " in told and "┤" in told and "\n  a  naive Bayes " in told and "picture: " in told
    texts = [element.text for element in ET.fromstring((tmp_path / "out.svg").read_text()).iter()]
    assert {"naive Bayes", "logistic regression", "20", "40"} <= set(texts)


def test_the_same_as_data(table: Path) -> None:
    found = json.loads(run(table, *TARGET, "--json", "--curve", "--kind", "word=ignore").stdout)
    assert found["rows"] == 60 and found["classes"] == [ODD, "no"] and found["not_tried"] == {}
    assert found["models"][0]["tie"] is True and {x["rows"] for x in found["curves"]} == {20, 48}
    assert any("column word is left out" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("--target", "wrd"), 3, "has no column 'wrd'.\n  Did you mean 'word'?"),
        ((*TARGET, "--folds", 50), 3, "no class has 50 rows or more"),
        (("--target", "x"), 3, "column 'x' holds numbers (row 1 holds"),
        ((*TARGET, "--json", "--plot", "-"), 2, "cannot both"),
    ],
)
def test_what_cannot_be_compared_is_said_in_a_line(
    table: Path, words: tuple[object, ...], code: int, line: str
) -> None:
    result = run(table, *words, code=code)
    assert line in result.stderr and "Traceback" not in result.stderr
