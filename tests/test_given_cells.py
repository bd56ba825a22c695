"""What is given to a query: a level never seen is said, with what was probably meant; several are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import softcount as sc
from softcount.cli import main
from softcount.errors import DataError, DataWarning

X = {
    "colour": ["red", "blue", "red", "green"] * 5,
    "of,two": ["a,b", "a", "b", "c"] * 5,
    "length": [1.5, 2.5, 3.7] * 6 + [9.1] * 2,
}
Y = ["apple", "plum", "apple", "plum"] * 5


@pytest.fixture(scope="module")
def model() -> sc.NaiveBayes:
    return sc.NaiveBayes().fit(X, Y)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("rad", r"'colour' never held 'rad' in training\. Did you mean 'red'\?"),
        ("RED", r"'colour' never held 'RED' in training\. Did you mean 'red'\?"),
        ("['red']", r"Did you mean 'red'\?"),
        ("xylophone", "It held 'blue', 'green', 'red'"),
        (7, "never held 7 in training. It held 'blue', 'green', 'red'"),
    ],
)
def test_a_level_never_seen_is_said_with_what_was_meant(model: sc.NaiveBayes, value: Any, said: str) -> None:
    with pytest.warns(DataWarning, match=said):
        model.query("length", {"colour": value})
    with pytest.warns(DataWarning, match=said):
        model.sample(2, {"colour": value}, random_state=0)


@pytest.mark.parametrize("value", ["red,blue", "red, blue", "['red', 'blue']", "red;blue", "red|green", {"red": 1}])
def test_several_levels_are_no_level(model: sc.NaiveBayes, value: Any) -> None:
    with pytest.raises(DataError, match=r"column 'colour' is given .*several values.*any_of"):
        model.query("length", {"colour": value})


@pytest.mark.filterwarnings("error")
def test_a_level_that_holds_a_comma_is_a_level(model: sc.NaiveBayes) -> None:
    assert model.query("colour", {"of,two": "a,b"})["red"] > 0.5
    assert model.query("colour", {"of,two": None}) == model.query("colour")


def test_the_command_line_says_the_same(model: sc.NaiveBayes, tmp_path: Path) -> None:
    model.save(tmp_path / "m.sc")
    asked = ["query", str(tmp_path / "m.sc"), "--of", "length", "--given"]
    unseen = CliRunner().invoke(main, [*asked, "colour=rad"])
    assert unseen.exit_code == 0
    assert "note: column 'colour' never held 'rad' in training. Did you mean 'red'?" in unseen.stderr
    several = CliRunner().invoke(main, [*asked, "colour=red,blue"])
    assert several.exit_code == 3
    assert "several values" in several.stderr
