"""What naive Bayes gets wrong is said where it is learned and where it is shown: dependent columns and copies."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.tables import write_table
from softcount.cli import main


def notes(table: Path, *options: str) -> list[str]:
    """The notes of a fit on dependence; the model's own are the same."""
    model = str(table.with_suffix(".sc"))
    how = ["--model", "naive-bayes", "--folds", "0", "--full"]
    words = ["fit", str(table), "--target", "sort", *how, "-o", model, *options]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    shown = json.loads(CliRunner().invoke(main, ["show", model, "--json"]).stdout)["notes"]
    found = [note for note in shown if "counts it twice" in note or "matches the class" in note or "depend on" in note]
    assert all(note in " ".join(done.stdout.split()) for note in found)
    assert any("--net tan" in note for note in shown) == any(
        "the class" not in note or "within" in note for note in found
    )
    return found


def columns(n: int = 400, seed: int = 5) -> list[dict[str, str]]:
    """Rows of a class and columns that are independent within it."""
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        sort = rng.choice("ab")
        share = 0.7 if sort == "a" else 0.3
        letter = rng.choices("xyz", [share, 1 - share, 0.5])[0]
        rows.append({"letter": letter, "digit": "1" if rng.random() < share else "2",
                     "size": f"{rng.gauss(5 if sort == 'a' else 6, 1):.3f}", "sort": sort})  # fmt: skip
    return rows


def written(path: Path, rows: list[dict[str, str]]) -> Path:
    return write_table(path / "rows.csv", [tuple(row.values()) for row in rows], tuple(rows[0]))


@pytest.mark.parametrize("seed", range(5))
def test_columns_that_are_independent_within_the_classes_are_not_named(tmp_path, seed):
    assert notes(written(tmp_path, columns(seed=seed))) == []


def test_a_copy_under_other_names_is_one(tmp_path):
    rows = [{"again": row["letter"].upper(), **row} for row in columns()]
    assert notes(written(tmp_path, rows)) == ["'letter' repeats 'again': naive Bayes counts it twice."]


def test_a_coarser_column_follows_from_the_finer(tmp_path):
    for place in ("first", "last"):
        coarse = [{"coarse": "z" if row["letter"] == "z" else "other"} for row in columns()]
        pairs = zip(coarse, columns(), strict=True)
        rows = [extra | row if place == "first" else row | extra for extra, row in pairs]
        (note,) = notes(written(tmp_path, rows))
        assert note.startswith("'coarse' is determined by 'letter'")


def test_numbers_that_depend_on_each_other_are_named_with_how_much(tmp_path):
    rng = random.Random(1)
    rows = [{"near": f"{float(row['size']) + rng.gauss(0, 0.1):.3f}", **row} for row in columns()]
    (note,) = notes(written(tmp_path, rows))
    assert note.startswith("'near' and 'size' depend on each other within the classes (")
    assert notes(written(tmp_path, rows), "--kind", "near,size=multinormal") == []


def test_a_copy_of_the_class_is_named_with_the_remedy(tmp_path):
    rows = [{"told": "yes" if row["sort"] == "a" else "no", **row} for row in columns()]
    (note,) = notes(written(tmp_path, rows))
    assert note.startswith("column 'told' matches the class exactly: a leak") and "--kind told=ignore" in note
    assert notes(written(tmp_path, rows), "--kind", "told=ignore") == []


def test_holes_and_rows_without_a_class_are_passed_over(tmp_path):
    spoiled = [{"again": row["letter"].upper(), **row} for row in columns()]
    for place, row in enumerate(spoiled):
        if place % 3 == 0:
            row[("again", "letter", "size", "sort")[place % 4]] = ""
    assert [note[:25] for note in notes(written(tmp_path, spoiled))] == ["'letter' repeats 'again':"]


def test_at_most_five_pairs_are_named_and_each_copy_once(tmp_path):
    rows = [{f"copy{n}": row["letter"] * (n + 1) for n in range(4)} | row for row in columns()]
    assert [note.split("'")[3] for note in notes(written(tmp_path, rows))] == ["copy0"] * 4
    rows = [{f"copy{n}": row["letter"] * (n + 1) for n in range(9)} | row for row in columns()]
    assert len(notes(written(tmp_path, rows))) == 5
