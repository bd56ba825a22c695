"""What speaks against a classifier is said in Python and on the command line alike, the worst of it first."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import softcount as sc
from softcount.cli import main

RNG = np.random.default_rng(4)
ROWS = 300


def told(**more: object) -> pd.DataFrame:
    """Two classes that a number tells apart in part, and more columns."""
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, ROWS)
    return pd.DataFrame({"y": np.where(y, "yes", "no"), "size": rng.normal(y, 1.0), **more})


def same_in_the_shell(frame: pd.DataFrame, tmp_path: Path) -> tuple[list[str], str]:
    """The notes of a fit in Python, which those of the command line are, and the page that it prints."""
    frame.to_csv(tmp_path / "rows.csv", index=False)
    words = [
        "fit",
        str(tmp_path / "rows.csv"),
        "--target",
        "y",
        "-o",
        str(tmp_path / "m.sc"),
        "--model",
        "naive-bayes",
        "--full",
    ]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    shown = json.loads(CliRunner().invoke(main, ["show", str(tmp_path / "m.sc"), "--json"]).stdout)["notes"]
    found = sc.NaiveBayes().fit(frame, "y").notes_
    assert [note[:40] for note in found] == [note[:40] for note in shown]
    return found, done.stdout


def test_a_sound_model_has_nothing_against_it() -> None:
    assert sc.NaiveBayes().fit(told(), "y").notes_ == []


def test_a_model_that_guessing_beats_says_so_before_any_figure(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(size=ROWS)
    frame = told(**{f"copy{n}": noise + n for n in range(30)})
    found, page = same_in_the_shell(frame, tmp_path)
    assert found[0].startswith("worse than guessing: cross-validated log-loss")
    assert "depend on each other" in found[0] and "Classifier" in found[0]
    assert page.index("worse than guessing") < page.index("log-loss  ") < page.index("Notes")
    assert page.count("worse than guessing") == 1


def test_what_guessing_beats_is_what_rows_held_out_say(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(size=ROWS)
    frame = told(**{f"copy{n}": noise + n for n in range(30)})
    found, page = same_in_the_shell(frame, tmp_path)
    line = next(line for line in page.splitlines() if line.split()[:1] == ["log-loss"])
    assert [line.split()[1], line.split()[-1]] == [
        found[0].split("log-loss ")[1].split(";")[0],
        found[0].split("has ")[1].split(". ")[0],
    ]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (lambda y: np.where(y == "yes", "alive", "dead"), "'it' matches the class exactly"),
        (
            lambda y: np.char.add(np.where(RNG.random(ROWS) < 0.5, "p", "q"), y.to_numpy(str)),
            "'it' predicts the class without error",
        ),
        (lambda y: RNG.uniform(0, 1, ROWS) + 5 * (y == "yes"), "'it' predicts the class without error"),
    ],
)
def test_a_column_that_gives_the_class_away_is_named_with_the_remedy(column, said, tmp_path: Path) -> None:
    found, _ = same_in_the_shell(told(it=column(told()["y"])), tmp_path)
    assert any(said in note and "ignore" in note for note in found)


def test_a_number_that_only_mostly_tells_the_class_is_not_named() -> None:
    frame = told(it=RNG.uniform(0, 1, ROWS) + 5 * (told()["y"] == "yes"))
    frame.loc[0, "it"] = 5.5 - 5 * (frame.loc[0, "y"] == "yes")
    assert not any("away" in note for note in sc.NaiveBayes().fit(frame, "y").notes_)


def test_copies_and_functions_are_said_to_count_twice(tmp_path: Path) -> None:
    rank = np.random.default_rng(1).integers(1, 4, ROWS)
    words = np.array(["", "First", "Second", "Third"])[rank]
    found, _ = same_in_the_shell(told(rank=rank, word=words, best=np.where(rank == 1, "yes", "no")), tmp_path)
    assert "'word' repeats 'rank': naive Bayes counts it twice." in found
    assert "'best' is determined by 'rank': naive Bayes counts it twice." in found


def test_tiny_classes_are_named() -> None:
    frame = told()
    frame.loc[:3, "y"] = ["one", "other", "three", "three"]
    notes = sc.NaiveBayes().fit(frame, "y").notes_
    assert (
        "2 classes have one row each ('one', 'other'): their predictions cannot be checked on held-out rows." in notes
    )
    assert "class 'three' has fewer than 5 rows: its estimates are uncertain." in notes


def test_a_label_that_means_missing_in_a_table_is_said_to_be_a_class() -> None:
    frame = told()
    frame.loc[:8, "y"] = "?"
    for notes in (
        sc.NaiveBayes().fit(frame, "y").notes_,
        sc.NaiveBayes().fit(frame.drop(columns="y"), frame["y"]).notes_,
    ):
        assert any(note.startswith("'?' is a class here, but means missing in a text file.") for note in notes)


def test_a_target_with_a_class_for_every_row_is_said_to_be_none(tmp_path: Path) -> None:
    found, _ = same_in_the_shell(told().assign(y=[f"n{n}" for n in range(ROWS)]), tmp_path)
    assert any("300 different values in 300 rows" in note for note in found)


def test_a_classifier_says_so_of_what_tells_its_classes() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.normal(size=60), "y": rng.integers(0, 2, 60).astype(str)})
    model = sc.Classifier().fit(frame, "y")
    worse = any(note.startswith("worse than guessing") for note in model.notes_)
    assert worse == (model.ensemble_.log_loss > np.log(2))
    leaky = sc.Classifier().fit(told(it=told()["y"].str.upper()), "y")
    assert any("'it' matches the class exactly" in note for note in leaky.notes_)
    assert not any("in naive Bayes" in note for note in leaky.notes_)


def test_a_model_is_saved_pickled_and_added_to_without_its_rows(tmp_path: Path) -> None:
    frame = told(it=told()["y"].str.upper())
    model = sc.NaiveBayes().fit(frame, "y")
    pickled = pickle.dumps(model)
    again = pickle.loads(pickled)
    assert len(pickled) <= len(pickle.dumps(again)) and again.notes_ == []
    assert any("'it' matches" in note for note in model.notes_)
    model.partial_fit(frame, "y")
    assert any("'it' matches" in note for note in model.notes_)
