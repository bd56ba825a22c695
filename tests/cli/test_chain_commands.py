"""Chains from the shell: learned with their ends, generated from, and columns of sequences in tables."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import softcount as sc
from softcount.cli import main

NAMES = ["anna", "hannah", "ava", "eva", "nina", "ivan", "vanja"] * 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Names, words, and a table with a column of clicks, and models of them."""
    place = tmp_path_factory.mktemp("chains")
    (place / "names.txt").write_text("\n".join(NAMES) + "\n\n")
    (place / "lines.txt").write_text("to be or not to be\nto be is to do\n" * 4)
    clicks = [["home", "shop", "buy"], ["home", "home"], ["shop", "buy", "buy"], ["home", None, "home", "shop"]] * 6
    bought = ["yes", "no", "yes", "no"] * 6
    pq.write_table(pa.table({"clicks": clicks, "bought": bought}), place / "visits.parquet")
    rows = [[" ".join(step or "help" for step in row), answer] for row, answer in zip(clicks, bought, strict=True)]
    with open(place / "visits.csv", "w", newline="") as file:
        csv.writer(file).writerows([["clicks", "bought"], *rows])
    done(run("fit", place / "names.txt", "--steps", "characters", "--ends", "--order", 2, "-o", place / "names.sc"))
    done(run("fit", place / "lines.txt", "--steps", "words", "-o", place / "lines.sc"))
    return place


def run(*words: Any) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def test_names_are_generated_one_on_a_line(folder: Path) -> None:
    made = done(run("generate", folder / "names.sc", "-n", 8, "--seed", 3)).splitlines()
    assert made == sc.load(folder / "names.sc").sample(8, random_state=3)
    begun = done(run("generate", folder / "names.sc", "-n", 8, "--start", "an")).splitlines()
    assert len(begun) == 8 and all(name.startswith("an") for name in begun)


def test_words_are_generated_with_blanks_between_them(folder: Path, tmp_path: Path) -> None:
    (line,) = done(run("generate", folder / "lines.sc", "-n", 12, "--start", "to be")).splitlines()
    assert len(line.split()) == 12 and line.startswith("to be ")
    done(run("generate", folder / "lines.sc", "-n", 5, "-o", tmp_path / "made.txt"))
    assert len((tmp_path / "made.txt").read_text().split()) == 5


def test_a_chain_is_shown_with_what_was_chosen(folder: Path, tmp_path: Path) -> None:
    page = done(run("fit", folder / "names.txt", "--steps", "characters", "--order", "auto", "-o", tmp_path / "a.sc"))
    assert "has the most evidence" in page and "1 empty line was left out" in page and "irreducible" in page
    told = json.loads(done(run("show", folder / "names.sc", "--json")))
    assert told["ends"] is True and told["next"][-1] == "(end)" and told["steps"] == sum(map(len, NAMES)) + len(NAMES)
    assert abs(sum(told["shares"].values()) - 1) < 1e-12


def test_a_column_of_sequences_is_declared(folder: Path, tmp_path: Path) -> None:
    lists = ["fit", folder / "visits.parquet", "--target", "bought", "--kind", "clicks=markov", "-o", tmp_path / "v.sc"]
    assert "12 transitions of sequences" in done(run(*lists, "--full"))
    assert "Markov chain" in done(run("show", tmp_path / "v.sc"))
    why = done(run("explain", tmp_path / "v.sc", folder / "visits.parquet", "--row", 1))
    assert "home → shop" in why and "shop → buy" in why
    words = ["fit", folder / "visits.csv", "--target", "bought", "--kind", "clicks=markov:words", "--folds", 0]
    done(run(*words, "-o", tmp_path / "w.sc"))
    found = list(csv.DictReader(io.StringIO(done(run("predict", tmp_path / "w.sc", folder / "visits.csv")))))
    assert [line["predicted"] for line in found[:4]] == ["yes", "no", "yes", "no"]


UNREADABLE = {
    "not a Markov chain": ["generate", "table.sc"],
    "'q' is not a symbol": ["generate", "names.sc", "--start", "q"],
    "did not occur": ["predict", "names.sc", "lines.txt", "--steps", "characters"],
    "markov:2": ["fit", "visits.csv", "--target", "bought", "--kind", "clicks=markov:pages,3,4"],
    "'pages' is not known": ["fit", "visits.csv", "--target", "bought", "--kind", "clicks=markov:pages"],
    "takes no suffix": ["fit", "visits.csv", "--target", "bought", "--kind", "clicks=categorical:3"],
    "no line that holds": ["fit", "blank.txt", "--steps", "words"],
    "longest": ["fit", "names.txt", "--steps", "characters", "--order", "11"],
    "which sequence": ["fit", "visits.csv", "--order", "1"],
}


@pytest.mark.parametrize("said", UNREADABLE)
def test_what_cannot_be_is_said_in_a_line(folder: Path, said: str, monkeypatch: Any) -> None:
    monkeypatch.chdir(folder)
    (folder / "blank.txt").write_text("\n\n")
    if said == "not a Markov chain":
        done(run("fit", "visits.csv", "--target", "bought", "-o", "table.sc", "--folds", 0))
    result = run(*UNREADABLE[said])
    assert result.exit_code == 3 and said in result.stderr and "Traceback" not in result.output


def test_ends_are_for_chains(folder: Path) -> None:
    result = run("fit", folder / "visits.csv", "--sequence", "bought", "--states", 2, "--ends")
    assert result.exit_code == 2 and "--ends" in result.stderr
