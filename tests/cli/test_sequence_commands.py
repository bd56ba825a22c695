"""Sequences from the shell: learned, shown, predicted, drawn and explained; and what cannot be is said in a line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner, Result

from softcount.cli import main
from softcount.report.graph import draw_ring, transition_dot
from softcount.report.sequences import draw_states

AS_ROWS = ["--sequence", "customer", "--sort-by", "time"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A long table of visits, its rows shuffled, and two models of it."""
    place = tmp_path_factory.mktemp("visits")
    rng, rows = np.random.default_rng(0), []
    for customer in range(12):
        state = int(rng.integers(2))
        for time in range(20):
            state = 1 - state if rng.random() < 0.1 else state
            page = str(rng.choice(["home", "buy"], p=[[0.9, 0.1], [0.2, 0.8]][state]))
            spent = "" if rng.random() < 0.1 else round(float(rng.normal(10.0 * state, 1.0)), 2)
            mood = ["calm", "keen"][state] if time % 5 == 0 else ""
            rows.append([f"c{customer}", time, page, spent, mood])
    order = rng.permutation(len(rows))
    with open(place / "events.csv", "w", newline="") as file:
        csv.writer(file).writerows([["customer", "time", "page", "spent", "mood"], *(rows[i] for i in order)])
    done(run("fit", place / "events.csv", *AS_ROWS, "--states", 2, "--kind", "mood=ignore", "-o", place / "states.sc"))
    done(run("fit", place / "events.csv", *AS_ROWS, "--symbols", "page", "-o", place / "chain.sc"))
    return place


def run(*words: Any) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def lines(result: Result) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(done(result))))


def test_states_are_shown_with_what_follows_and_what_they_show(folder: Path) -> None:
    page = done(run("show", folder / "states.sc"))
    for words in ("A hidden Markov model: 2 states", "stays for", "Transitions", "page (categorical)", "not in order"):
        assert words in page
    told = json.loads(done(run("show", folder / "states.sc", "--json")))
    assert [len(row) for row in told["transitions"]] == [2, 2] and told["steps"] == 240
    odd = done(run("show", folder / "states.sc", folder / "events.csv", *AS_ROWS, "--anomalies", 3))
    assert "Steps that fit worst" in odd and odd.splitlines()[-1].lstrip().startswith("c")


def test_the_numbers_of_states_that_were_tried_are_shown(folder: Path) -> None:
    file = folder / "chosen.sc"
    done(
        run(
            "fit",
            folder / "events.csv",
            *AS_ROWS,
            "--states",
            "auto",
            "--starts",
            2,
            "--kind",
            "mood=ignore",
            "-o",
            file,
        )
    )
    found = json.loads(done(run("show", file, "--json")))
    assert [trial["states"] for trial in found["selection"]][:2] == [1, 2]
    assert min(trial["bic"] for trial in found["selection"]) == pytest.approx(found["bic"])


def test_every_step_is_predicted_and_explained(folder: Path) -> None:
    found = json.loads(done(run("predict", folder / "states.sc", folder / "events.csv", *AS_ROWS, "--json")))
    assert len(found) == 240 and list(found[0]) == ["sequence", "step", "predicted", "p(0)", "p(1)"]
    assert all(abs(float(line["p(0)"]) + float(line["p(1)"]) - 1) < 1e-9 for line in found)
    why = lines(run("explain", folder / "states.sc", folder / "events.csv", *AS_ROWS))
    for line, chosen in zip(why, found, strict=True):
        odds = sum(float(line[name]) for name in ("(before)", "page", "spent", "(after)"))
        assert odds == pytest.approx(abs(np.log(float(chosen["p(0)"]) / float(chosen["p(1)"]))), rel=1e-6, abs=1e-6)
    assert run("explain", folder / "states.sc", folder / "events.csv", *AS_ROWS, "--against", "7").exit_code == 3


def test_a_chain_says_what_comes_next(folder: Path) -> None:
    assert "A Markov chain of order 1: 2 symbols" in done(run("show", folder / "chain.sc"))
    found = lines(run("predict", folder / "chain.sc", folder / "events.csv", *AS_ROWS))
    assert len(found) == 12 and set(found[0]) == {"sequence", "predicted", "p(buy)", "p(home)"}
    assert len(lines(run("explain", folder / "chain.sc", folder / "events.csv", *AS_ROWS))) == 240
    drawn = lines(run("sample", folder / "chain.sc", "-n", 7, "--seed", 1))
    assert len(drawn) == 7 and {line["symbol"] for line in drawn} <= {"home", "buy"}


def test_new_sequences_are_drawn(folder: Path) -> None:
    drawn = lines(run("sample", folder / "states.sc", "-n", 3, "--length", 4, "--seed", 1))
    assert [line["step"] for line in drawn] == ["1", "2", "3", "4"] * 3
    assert list(drawn[0]) == ["sequence", "step", "state", "page", "spent"]


def test_known_states_have_their_names(folder: Path, tmp_path: Path) -> None:
    words = ["--states", 2, "--target", "mood", "-o", tmp_path / "known.sc"]
    assert "calm" in done(run("fit", folder / "events.csv", *AS_ROWS, *words))
    found = lines(run("predict", tmp_path / "known.sc", folder / "events.csv", *AS_ROWS))
    assert {line["predicted"] for line in found} == {"calm", "keen"}


def test_text_is_read_as_characters(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("abab\nabba\nbaba\n" * 5)
    done(run("fit", tmp_path / "words.txt", "--steps", "characters", "--order", 2, "-o", tmp_path / "t.sc"))
    found = lines(run("predict", tmp_path / "t.sc", tmp_path / "words.txt", "--steps", "characters"))
    assert len(found) == 15 and found[0]["predicted"] in "ab"


def test_pictures_of_what_follows_what_and_of_decoded_states(folder: Path, tmp_path: Path) -> None:
    for model, words in (("states.sc", []), ("chain.sc", []), ("states.sc", [folder / "events.csv", *AS_ROWS])):
        done(run("show", folder / model, *words, "--svg", tmp_path / "drawn.svg"))
        root = ElementTree.parse(tmp_path / "drawn.svg").getroot()
        assert root.tag.endswith("svg") and len(list(root.iter())) > 8
    strips = [x for x in root.iter() if x.get("class") == "s-ink"]
    assert len(strips) >= 12  # a line, cut where cells are missing, for each sequence
    assert done(run("show", folder / "states.sc", "--dot", "-")).startswith("digraph {")
    assert run("show", folder / "states.sc", "--parameters").exit_code == 3
    assert run("show", folder / "chain.sc", folder / "events.csv", *AS_ROWS, "--svg", "-").exit_code == 3


def test_names_cannot_leave_a_picture() -> None:
    odd = ["<script>", 'a"]; x', "\x1b[2J"]
    table = np.full((3, 3), 1 / 3)
    drawn = draw_ring(odd, table).svg() + draw_states(odd[:1], [np.array([0, 1])], [None], odd).svg()
    assert "<script>" not in drawn and "\x1b" not in drawn
    assert '\\"' in transition_dot(odd, table) and "\x1b" not in transition_dot(odd, table)


REFUSED = {
    "classes": ["fit", "events.csv", *AS_ROWS, "--states", 2, "--classes", 3],
    "order": ["fit", "events.csv", *AS_ROWS, "--states", 2, "--order", 1],
    "criterion": ["fit", "events.csv", *AS_ROWS, "--states", "auto", "--criterion", "icl"],
    "states": ["fit", "events.csv", *AS_ROWS, "--states", 0],
    "target": ["fit", "events.csv", *AS_ROWS, "--target", "mood"],
}
UNREADABLE = {
    "which sequence": ["fit", "events.csv", "--states", 2],
    "'who'": ["fit", "events.csv", "--sequence", "who", "--states", 2],
    "same 'page'": ["fit", "events.csv", "--sequence", "customer", "--sort-by", "page", "--states", 2],
    "one column": ["fit", "events.csv", *AS_ROWS],
    "--row": ["explain", "states.sc", "events.csv", *AS_ROWS, "--row", 3],
    "--anomaly": ["predict", "states.sc", "events.csv", *AS_ROWS, "--anomaly"],
    "--given": ["sample", "states.sc", "--given", "page=buy"],
    "hidden states": ["sample", "chain.sc", "--length", 3],
}


@pytest.mark.parametrize("word", REFUSED)
def test_options_that_contradict_each_other_are_refused(folder: Path, word: str, monkeypatch: Any) -> None:
    monkeypatch.chdir(folder)
    result = run(*REFUSED[word])
    assert result.exit_code == 2 and word in result.stderr and "Traceback" not in result.output


@pytest.mark.parametrize("word", UNREADABLE)
def test_what_cannot_be_read_so_is_said_in_a_line(folder: Path, word: str, monkeypatch: Any) -> None:
    monkeypatch.chdir(folder)
    result = run(*UNREADABLE[word])
    assert result.exit_code == 3 and word in result.stderr and "Traceback" not in result.output


def test_a_model_of_sequences_has_no_query(folder: Path) -> None:
    result = run("query", folder / "states.sc", "--of", "page")
    assert result.exit_code == 4 and "a model of sequences" in result.stderr
