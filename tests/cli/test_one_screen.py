"""`softcount fit` prints one screen: the verdict first, trouble next, and nothing twice."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.tables import write_table
from softcount.cli import main
from softcount.demo import table_path
from softcount.report.fit import LINES
from softcount.report.page import LONGEST_LINE
from softcount.report.quality import group_notes

CLASSES = [f"kind{number}" for number in range(28)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 119 columns and 28 classes, with a leak, constants and identifiers."""
    place, rng = tmp_path_factory.mktemp("screen"), random.Random(1)
    rows = []
    for row in range(280):
        kind = rng.choice(CLASSES)
        number = CLASSES.index(kind)
        plain = [rng.choice("abcde"[: 2 + column % 4]) for column in range(56)]
        near = ["xyz"[(number + rng.randrange(column + 1)) % 3] for column in range(20)]
        sizes = [f"{rng.gauss(number, 1 + column):.2f}" if rng.random() > 0.1 else "" for column in range(20)]
        fixed, names = ["same"] * 10, [f"{column}-{row}-{rng.random():.9f}" for column in range(11)]
        rows.append([kind, *plain, *near, *sizes, *fixed, *names, str(number)])
    header = ["kind", *(f"c{place}" for place in range(len(rows[0]) - 2)), "leak"]
    write_table(place / "wide.csv", rows, header)
    lines = [(str(place // 30), str(place), rng.choice("abcdefghijkl"), str(rng.random())) for place in range(300)]
    write_table(place / "steps.csv", lines, ("who", "when", "what", "size"))
    (place / "bicycles.csv").write_bytes(table_path().read_bytes())
    return place


FITS = {
    "a class": ("bicycles.csv", "--target", "type"),
    "many columns and classes": ("wide.csv", "--target", "kind", "--model", "naive-bayes", "--folds", "2"),
    "many found classes": ("steps.csv", "--classes", "30", "--starts", "1"),
    "text": ("bicycles.csv", "--target", "type", "--kind", "note=text"),
    "a network": ("bicycles.csv", "--target", "type", "--net", "tan", "--folds", "0"),
    "states": ("steps.csv", "--sequence", "who", "--sort-by", "when", "--states", "2", "--starts", "1"),
    "a chain": ("steps.csv", "--sequence", "who", "--sort-by", "when", "--symbols", "what"),
}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_prints_one_screen(name: str, folder: Path) -> None:
    table, *words = FITS[name]
    command = ["fit", str(folder / table), *words, "-o", str(folder / "m.sc")]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert 10 < len(lines) <= LINES
    headings = [line for line in lines if line and not line.startswith(" ")]
    assert headings[-2] == "Next" and headings[-1].startswith("Saved")
    if "Check" in headings:
        assert headings.index("Check") == 1  # trouble comes before the columns and classes


def test_the_page_names_what_is_left_out_once_and_the_leak_first(folder: Path) -> None:
    table, *words = FITS["many columns and classes"]
    page = CliRunner().invoke(main, ["fit", str(folder / table), *words, "-o", str(folder / "m.sc")]).stdout
    trouble = page.partition("Check\n")[2].splitlines()
    assert any("'leak' matches the class exactly" in line for line in trouble[:2])
    assert sum("always 'same'" in line for line in page.splitlines()) == 1
    assert sum("every row" in line for line in page.splitlines()) <= 1
    assert "missing cells, treated as unknown" in page


def test_one_log_loss_for_naive_bayes(folder: Path) -> None:
    command = ["fit", str(folder / "bicycles.csv"), "--target", "type", "-o", str(folder / "m.sc")]
    page = CliRunner().invoke(main, command).stdout
    (line,) = [line for line in page.splitlines() if "standard naive Bayes" in line]
    alone = CliRunner().invoke(main, [*command, "--model", "naive-bayes"]).stdout
    (own,) = [line for line in alone.splitlines() if "this model" in line]
    assert own.split()[2:4] == line.split()[3:5]
    assert own.split()[4] == line.split()[5]  # its log-loss, whichever model is saved


def test_notes_that_differ_in_names_and_numbers_are_one() -> None:
    notes = [f"column {name!r} holds {count} odd cells" for count, name in enumerate("abcdef")]
    assert group_notes([*notes, "another"]) == [
        "column 'a' holds 0 odd cells (likewise 'b', 'c', 'd' and 2 more)",
        "another",
    ]
    assert group_notes(["'a' and 'b' agree", "two agree", "'a' and 'b' agree"]) == ["'a' and 'b' agree", "two agree"]


def printed(*words: str) -> str:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_verdict_compares_with_the_best_single_model_and_the_baseline(folder: Path) -> None:
    page = printed("fit", folder / "bicycles.csv", "--target", "type", "-o", folder / "m.sc")
    names = [line.split("  ")[1] for line in page.splitlines()[2:6]]
    assert names[0] == "this model" and names[1].startswith("best single model (")
    assert names[2:] == ["standard naive Bayes", "class shares alone (baseline)"]


def test_long_names_are_cut_and_only_commands_are_longer_than_a_line(tmp_path: Path) -> None:
    rng, question = random.Random(2), "Which of the following would you choose, if you had to choose one of them"
    rows = []
    for _ in range(200):
        kind = rng.choice(["the first of two classes with a long name", "the second of two classes with a long name"])
        near = kind.upper() if rng.random() < 0.8 else "neither of the answers applies to the person"
        rows.append([kind, near, "the same in every row of the table, however long it is", rng.choice("abc")])
    write_table(tmp_path / "long.csv", rows, ("kind", *(f"{question}, {place}?" for place in range(2)), "x"))
    page = printed("fit", tmp_path / "long.csv", "--target", "kind", "-o", tmp_path / "m.sc")
    assert "Which of the following" in page and "…" in page
    assert all(len(line) <= LONGEST_LINE for line in page.splitlines() if not line.startswith("  softcount "))


def test_a_class_of_a_block_is_described_by_its_own_columns(tmp_path: Path) -> None:
    rng, rows = random.Random(3), []
    for place in range(400):
        shared = rng.gauss(0, 1)
        shift = 9 * (place % 2)
        rows.append([f"{shared + rng.gauss(0, 0.2) + shift:.3f}", f"{shared + rng.gauss(0, 0.2):.3f}"])
    write_table(tmp_path / "pair.csv", rows, ("far", "near"))
    kind = ["--classes", "2", "--kind", "far,near=multinormal"]
    page = printed("fit", tmp_path / "pair.csv", *kind, "-o", tmp_path / "m.sc")
    lines = [line for line in page.splitlines() if line.startswith("  class ") and "%" in line]
    assert len(lines) == 2 and all("far: mean " in line for line in lines)


def test_a_number_below_zero_that_repeats_is_named_as_a_mark_of_missing(tmp_path: Path) -> None:
    rows = [[f"{-200 if place % 5 == 0 else place % 13 + 0.5}", "ab"[place % 2]] for place in range(200)]
    write_table(tmp_path / "marks.csv", rows, ("level", "kind"))
    page = printed("fit", tmp_path / "marks.csv", "--target", "kind", "-o", tmp_path / "m.sc")
    assert "column 'level' holds -200 in 40 cells" in page and "--missing -200" in page
    rows = [[f"{place % 13 - 6}", "ab"[place % 2]] for place in range(200)]
    write_table(tmp_path / "marks.csv", rows, ("level", "kind"))
    assert "holds -" not in printed("fit", tmp_path / "marks.csv", "--target", "kind", "-o", tmp_path / "m.sc")
