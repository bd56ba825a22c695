"""What goes wrong with text at the command line: a clear line each, and no figure that makes no sense."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.test_text import DATA, USAGE, messages, refused, run
from softcount.cli import main
from softcount.pictures.text import format_number


@pytest.fixture(scope="module")
def mail(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("refusals")
    for number_, (name, text) in enumerate(messages()):
        folder = place / "mail" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number_:02d}.txt").write_text(text)
    assert run("fit", place / "mail", "-o", place / "spam.sc").exit_code == 0
    return place / "mail"


@pytest.fixture(autouse=True)
def _here(mail: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(mail.parent)
    yield


def test_a_class_that_is_declared_is_not_what_to_predict() -> None:
    result = run("fit", "mail", "--kind", "class=ignore", "--classes", 2, "-o", "x.sc")
    assert result.exit_code == 0 and "A mixture of 2 classes" in result.stdout
    assert "A mixture" in run("fit", "mail", "--kind", "class=ignore", "-o", "x.sc").stdout
    used = run("fit", "mail", "--kind", "class=categorical", "--classes", 2, "-o", "x.sc").stdout
    assert "ham 9" in used or "ham 100 %" in used
    assert "sub-folders are not used" not in used
    refused(
        run("fit", "mail", "--kind", "class=ignore", "--folds", 3), "--folds needs something to predict", "--target"
    )


def test_lines_are_not_looked_for_in_folders_and_tar_files() -> None:
    for command in (("fit", "mail"), ("schema", "mail"), ("predict", "spam.sc", "mail"), ("show", "spam.sc", "mail")):
        refused(run(*command, "--lines"), "mail holds documents in files of their own", "--lines")


@pytest.mark.parametrize(
    "content",
    ["Well, I never.\nDid you see that?\n\nNo, never in all my life.\n", "one two three four\nfive, six seven\n"],
)
def test_a_file_of_sentences_that_is_no_table_may_be_lines(content: str) -> None:
    Path("verses.txt").write_text(content)
    refused(run("fit", "verses.txt"), "If each line is a document: --lines")
    refused(run("schema", "verses.txt"), "If each line is a document: --lines")


def test_a_table_that_is_wrong_is_not_said_to_be_lines() -> None:
    Path("t.csv").write_text("a,b,c\n" + "1,2,3\n" * 9)
    refused(run("fit", "t.csv", "--target", "nope"), "'nope'")
    assert "--lines" not in run("fit", "t.csv", "--target", "nope").stderr


def test_a_column_of_text_cannot_be_asked_for() -> None:
    refused(
        run("query", "spam.sc", "--of", "text"), "'text' is text", "softcount sample spam.sc", "softcount show spam.sc"
    )


def test_stop_words_say_which_option_their_file_is_for() -> None:
    refused(run("fit", "mail", "--stop-words", "no-such"), "--stop-words: no-such: there is no such file", "english")
    Path("binary").write_bytes(b"a\0b")
    refused(run("fit", "mail", "--stop-words", "binary"), "binary holds no stop words")


def test_runs_of_words_have_an_end() -> None:
    refused(run("fit", "mail", "--ngrams", "1-999999"), "such as 1-2", code=USAGE)


def test_a_link_to_nothing_is_said_to_be_one() -> None:
    Path("gone").symlink_to("nowhere")
    result = run("predict", "spam.sc", "gone")
    refused(result, "gone: it is a link to a file that is gone.", code=DATA)
    assert "Did you mean" not in result.stderr


def test_one_class_has_no_other_to_speak_for(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for place in range(6):
        (tmp_path / "a" / str(place)).write_text("hello world")
    page = run("fit", tmp_path, "-o", "one.sc", "--full").stdout
    assert next(line for line in page.splitlines() if "log-loss" in line).split() == ["log-loss", "0", "0"]
    assert "+word+" not in run("explain", "one.sc", tmp_path, "--row", 1).stdout
    assert format_number(-0.0) == "0"


def test_an_empty_document_among_odd_rows_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "nothing").write_text("")
    assert "text (empty) (" in run("show", "spam.sc", tmp_path).stdout


def test_a_target_that_is_all_there_is_leaves_nothing(tmp_path: Path) -> None:
    result: Result = CliRunner().invoke(main, ["fit", "mail", "--target", "text"])
    refused(result, "no column is left to model (the target is the only one)")


def test_rows_that_fit_worst_are_named_by_their_files() -> None:
    lines = run("show", "spam.sc", "mail", "--anomalies", 2).stdout.splitlines()
    place = next(place for place, line in enumerate(lines) if line.startswith("Rows that fit worst"))
    assert lines[place + 1].split()[:3] == ["row", "file", "score"]
    assert lines[place + 2].split()[1].startswith(("ham/", "spam/"))
    data = json.loads(run("show", "spam.sc", "mail", "--json").stdout)["data"]
    assert all(odd["file"].endswith(".txt") for odd in data["anomalies"])
    assert all(member["file"].startswith("ham/") for member in data["classes"][0]["surest"])


def test_documents_do_not_fill_the_line_that_refuses_them(tmp_path: Path) -> None:
    for place in range(4):
        (tmp_path / str(place % 2)).mkdir(exist_ok=True)
        (tmp_path / str(place % 2) / str(place)).write_text(f"{place} words " * 10_000)
    refused(run("fit", tmp_path, "--kind", "text=normal"), "row 1 holds", "--kind text=text")
    refused(run("fit", tmp_path, "--kind", "text=bernoulli"), "has 4 values")
    for kind in ("normal", "bernoulli"):
        assert len(run("fit", tmp_path, "--kind", f"text={kind}").stderr) < 500


def test_rows_are_those_counted_where_classes_are_taken_as_equally_likely(tmp_path: Path) -> None:
    for place in range(9):
        folder = tmp_path / ("many" if place < 6 else "few")
        folder.mkdir(exist_ok=True)
        (folder / str(place)).write_text(f"word{place % 2} {folder.name}")
    page = run("fit", tmp_path, "--text", "complement", "-o", "x.sc", "--full").stdout
    lines = [line.split() for line in page.splitlines()]
    assert ["few", "33.3", "%", "3", "50.0", "%"] in lines and ["many", "66.7", "%", "6", "50.0", "%"] in lines
    assert "prior is the probability that a class has before any cell of a row is known" in page
    classes = json.loads(run("show", "x.sc", "--json").stdout)["classes"]
    assert [(card["class"], card["rows"]) for card in classes] == [("few", 3), ("many", 6)]
    assert "prior is the probability" not in run("fit", tmp_path, "-o", "x.sc", "--full").stdout
