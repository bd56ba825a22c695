"""Text explained in a terminal: a document's words, the document with them marked, and the words of every class."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from cli.terminal import on_a_terminal
from softcount.cli import main
from softcount.pictures.text import cell_width
from softcount.report.classes import model_page, model_record
from softcount.report.page import WIDTH, Page, render_text
from softcount.report.words import SHOWN_LINES, make_passage

SPAM = ["free prize call now", "claim your free prize", "win cash call claim", "free cash prize now"] * 5
HAM = ["see you at home mum", "love you mum", "call me when home", "are you at home now"] * 5


def run(*arguments: object, code: int = 0, **options: object) -> Result:
    result = CliRunner().invoke(main, [str(word) for word in arguments], **options)  # type: ignore[arg-type]
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of text alone, one of a table with a text column, and what they can be asked about."""
    place = tmp_path_factory.mktemp("mail")
    sc.NaiveBayes(kinds="text").fit(SPAM + HAM, ["spam"] * 20 + ["ham"] * 20).save(place / "spam.sc")
    lines = ["note,size,sort", *(f"{text},{i % 3}.5,spam" for i, text in enumerate(SPAM))]
    lines += [",9.5,ham", *(f"{text},{6 + i % 3}.5,ham" for i, text in enumerate(HAM))]
    (place / "table.csv").write_text("\n".join(lines) + "\n")
    run("fit", place / "table.csv", "--target", "sort", "--kind", "note=text", "-o", place / "table.sc", "--folds", "0")
    (place / "message.txt").write_text("Claim your FREE prize\nlove, mum\n")
    mail = place / "mail"
    for name, texts in (("spam", SPAM[:3]), ("ham", HAM[:3])):
        (mail / name).mkdir(parents=True)
        for i, text in enumerate(texts):
            (mail / name / f"{i}.txt").write_text(text)
    return place


# -- one document


def test_a_file_is_one_document_with_its_class_reasons_words_and_marks(folder):
    text = run("explain", folder / "spam.sc", folder / "message.txt").stdout
    assert "message.txt: spam rather than ham" in text
    assert "probability of spam: " in text
    for column in ("text", "(prior)", "(total)"):
        assert f"\n  {column} " in text
    assert "Words of text that moved it most" in text
    assert "in spam" in text
    assert "in ham" in text
    assert "+word+ supports spam, -word- supports ham" in text
    assert "++Claim++" in text
    assert "-mum-" in text


def test_standard_input_is_one_document_too(folder):
    text = run("explain", folder / "spam.sc", "-", input="love you\nmum\n").stdout
    assert "The document: ham rather than spam" in text
    assert "++mum++" in text


def test_words_as_data_add_up_and_say_where_they_stand(folder):
    (row,) = json.loads(run("explain", folder / "spam.sc", folder / "message.txt", "--json").stdout)
    (words,) = row["(words)"]
    assert words["column"] == "text"
    assert sum(word["nats"] for word in words["words"]) == pytest.approx(row["text"])
    assert row["(prior)"] + row["text"] == pytest.approx(row["(total)"])
    assert 0.5 < row["(probability)"] <= 1
    for word in words["words"]:
        written = [words["document"][start:end] for start, end in word["spans"]]
        assert [text.lower() for text in written] == [word["word"]] * int(word["count"])


def test_against_names_the_class_to_compare_with(folder):
    text = run("explain", folder / "spam.sc", folder / "message.txt", "--against", "ham").stdout
    assert "spam rather than ham" in text
    itself = run("explain", folder / "spam.sc", folder / "message.txt", "--against", "spam", code=3).stderr
    assert "message.txt is in class 'spam' itself. Name another class with --against" in itself
    assert "no class 'eggs'" in run("explain", folder / "spam.sc", "-", "--against", "eggs", code=3).stderr


def test_a_calibrated_probability_is_said_to_be_one(tmp_path):
    nb = sc.NaiveBayes(kinds="text", calibration="temperature").fit(SPAM + HAM, ["spam"] * 20 + ["ham"] * 20)
    nb.save(tmp_path / "spam.sc")
    text = run("explain", tmp_path / "spam.sc", "-", input="free call mum").stdout
    stated = next(line for line in text.splitlines() if "probability of" in line)
    assert stated.endswith("(calibrated; log-odds are not calibrated)")


def test_an_empty_document_and_one_of_unknown_words_say_so(folder, tmp_path):
    for content, said in (("", "is empty, and adds nothing"), ("zzz qqq", "holds no word that the model knows")):
        (tmp_path / "odd.txt").write_text(content)
        assert said in run("explain", folder / "spam.sc", tmp_path / "odd.txt").stdout


def test_latin_1_is_read_and_said_and_binary_files_are_refused(folder, tmp_path):
    (tmp_path / "odd.txt").write_bytes(b"caf\xe9 free prize")
    result = run("explain", folder / "spam.sc", tmp_path / "odd.txt")
    assert "café ++free++ ++prize++" in result.stdout
    assert "Latin-1" in result.stderr
    (tmp_path / "odd.txt").write_bytes(b"free\0prize")
    assert "binary" in run("explain", folder / "spam.sc", tmp_path / "odd.txt", code=3).stderr


def test_nothing_in_a_document_reaches_the_terminal_unspelled(folder, monkeypatch):
    nasty = "free \x1b[31mprize\x07 [bold]mum\u202e \x9b2J \r\ttab"
    text = run("explain", folder / "spam.sc", "-", input=nasty).stdout
    assert "\\x1b[31m" in text
    assert all(char.isprintable() for char in text.replace("\n", ""))
    shown = on_a_terminal(marked(nasty, {"free": 2.0, "prize": 1.0, "mum": -1.5}), monkeypatch)
    assert "\x1b[31mprize" not in shown
    assert "\\x1b[31m" in shown
    assert "[bold]" in shown
    assert "\x9b" not in shown


# -- rows of tables, files of folders, lines


def test_a_row_of_a_table_shows_its_words_beside_its_other_columns(folder):
    text = run("explain", folder / "table.sc", folder / "table.csv", "--row", "2").stdout
    assert "Row 2: sort = spam rather than ham" in text
    for part in ("\n  size ", "\n  note ", "Words of note that moved it most", "++claim++"):
        assert part in text
    text = run("explain", folder / "table.sc", folder / "table.csv", "--row", "21").stdout
    assert "note is missing, and adds nothing" in text


def test_every_row_is_a_line_of_figures_with_one_for_the_text(folder):
    head, first, *_ = run("explain", folder / "table.sc", folder / "table.csv").stdout.splitlines()
    assert head == "(row),(class),(against),(prior),note,size,(total)"
    assert first.startswith("1,spam,ham,")


def test_a_folder_names_its_files_and_explains_one_by_its_number(folder):
    head, first, *_ = run("explain", folder / "spam.sc", folder / "mail").stdout.splitlines()
    assert head.startswith("(row),(file),(class)")
    assert first.startswith("1,ham/0.txt,ham,spam,")
    assert "Row 4 (spam/0.txt): spam" in run("explain", folder / "spam.sc", folder / "mail", "--row", "4").stdout


def test_with_a_row_a_file_is_read_line_by_line_and_a_header_makes_it_a_table(folder, tmp_path):
    assert "++mum++" in run("explain", folder / "spam.sc", folder / "message.txt", "--row", "2").stdout
    lines = run("explain", folder / "spam.sc", folder / "message.txt", "--lines").stdout.splitlines()
    assert len(lines) == 3
    (tmp_path / "notes.csv").write_text("id,text\n1,free prize\n2,love mum\n")
    assert "Row 2: ham" in run("explain", folder / "spam.sc", tmp_path / "notes.csv", "--row", "2").stdout
    whole = run("explain", folder / "spam.sc", tmp_path / "notes.csv", "--document").stdout
    assert "notes.csv: " in whole


def test_a_model_without_text_explains_as_ever(folder, tmp_path):
    run(
        "fit",
        folder / "table.csv",
        "--target",
        "sort",
        "--kind",
        "note=ignore",
        "-o",
        tmp_path / "m.sc",
        "--folds",
        "0",
    )
    text = run("explain", tmp_path / "m.sc", folder / "table.csv", "--row", "2").stdout
    assert "Words" not in text
    (row,) = json.loads(run("explain", tmp_path / "m.sc", folder / "table.csv", "--row", "2", "--json").stdout)
    assert "(words)" not in row


# -- the document, marked


def marked(document: str, nats: dict[str, float], **limits: int) -> Page:
    places = {}
    for word, weight in nats.items():
        at = document.find(word)
        while at >= 0:
            places[at, at + len(word)] = weight
            at = document.find(word, at + 1)
    page = Page()
    page.line(make_passage(document, places, "spam", "ham", **limits))
    return page


def test_words_are_in_colour_by_sign_and_bolder_by_weight(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = on_a_terminal(marked("free call now mum", {"free": 4.0, "call": 2.0, "now": 1.0, "mum": -4.0}), monkeypatch)
    assert "\x1b[1;7;32mfree" in shown
    assert "\x1b[1;32mcall" in shown
    assert "\x1b[32mnow" in shown
    assert "\x1b[1;7;31mmum" in shown


def test_without_colour_signs_mark_them(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    page = marked("free call the mum", {"free": 4.0, "call": 1.0, "the": 0.1, "mum": -4.0})
    for text in (on_a_terminal(page, monkeypatch), render_text(page)):
        assert "++free++ +call+ the --mum--" in text


def test_a_long_document_is_shown_around_its_weightiest_words():
    rows = [f"line {i} of nothing much" for i in range(400)]
    rows[57], rows[300] = "here is a free prize", "and mum is here"
    text = render_text(marked("\n".join(rows), {"free": 4.0, "prize": 3.0, "mum": -2.0}))
    assert "++free++ ++prize++" in text
    assert "-mum-" in text
    assert "line 56 of" in text
    assert "line 58 of" in text
    assert "lines left out]" in text
    assert len(text.splitlines()) < SHOWN_LINES + 12


@settings(max_examples=150)
@given(st.text("ab 日本\u0301\n\t\x1b-", max_size=300), st.integers(0, 5))
def test_lines_fit_the_page_and_lose_nothing(document, every):
    places = {(at, at + 1): 1.0 for at in range(0, len(document), every) if document[at] == "a"} if every else {}
    shown = make_passage(document, places, "x", "y")
    assert all(cell_width(line) <= WIDTH for line in list(shown.plain())[1:])
    if len(shown.lines) <= SHOWN_LINES and not any("left out" in piece.text for line in shown.lines for piece in line):
        kept = "".join(piece.text for line in shown.lines for piece in line)
        assert "".join(kept.split()) == "".join(document.replace("\x1b", "\\x1b").split())


def test_a_document_without_end_is_looked_at_only_so_far():
    text = render_text(marked("free " + "x" * 500, {"free": 1.0}, most=100))
    assert "[only the first 100 of 505 characters were looked at]" in text


# -- the words of every class


def test_show_lists_the_words_that_mark_few_classes_with_their_figures(folder):
    text = run("show", folder / "spam.sc").stdout
    assert "Characteristic words of text (of 17 words)" in text
    assert "times here" in text
    assert "  spam   " in text
    assert "differs (" not in text  # the words have said it


def test_show_fits_80_columns_with_twenty_classes():
    rng = random.Random(0)
    names = [f"talk.politics.number{i:02d}" for i in range(20)]
    words = [[f"w{i}x{rng.randrange(10**6)}" for _ in range(30)] for i in range(20)]
    documents = [" ".join(rng.choices(words[i % 20], k=20)) for i in range(200)]
    nb = sc.NaiveBayes(kinds="text").fit(documents, [names[i % 20] for i in range(200)])
    lines = render_text(model_page(nb.fitted_)).splitlines()
    table = lines[lines.index("  class                   words") :][:21]
    assert [line.split()[0] for line in table[1:]] == names
    assert all(cell_width(line) <= 80 for line in table)
    assert all(len(line.split()) > 3 for line in table[1:])


def test_words_of_a_table_stand_beside_its_columns_and_clusters_have_theirs(folder):
    text = run("show", folder / "table.sc").stdout
    assert "Columns that matter most" in text
    assert "Characteristic words of note" in text
    mix = sc.Mixture(2, kinds="text", random_state=0).fit(SPAM + HAM)
    page = render_text(model_page(mix.fitted_))
    assert "Characteristic words of text" in page
    assert "  class 1  " in page


def test_show_as_data_has_characteristic_words_and_not_every_probability(folder):
    document = json.loads(run("show", folder / "spam.sc", "--json").stdout)
    (column,) = document["fitted"]
    assert column["words"] == 17
    assert column["model"] == "multinomial"
    spam = next(entry for entry in column["characteristic_words"] if entry["class"] == "spam")
    assert {"word", "log_odds", "evidence", "count", "elsewhere"} == set(spam["words"][0])
    assert "parameters" not in column
    assert document["columns"][0]["words"] == 17


def test_words_with_spaces_at_their_ends_are_quoted():
    nb = sc.NaiveBayes(kinds=sc.families.Text(analyzer="char_wb", ngrams=(3, 3))).fit(
        SPAM + HAM, ["s"] * 20 + ["h"] * 20
    )
    assert "' fr'" in render_text(model_page(nb.fitted_))
    assert model_record(nb.fitted_)["fitted"][0]["characteristic_words"][0]["words"]
