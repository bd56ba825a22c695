"""Text at the command line: folders, tar files, lines and tables in; classes, files and clear lines out."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from cli.shell import softcount_command
from cli.tables import fruit_rows, write_table
from softcount.cli import main
from softcount.cli.fit import default_output
from softcount.cli.read import find_width

DATA, USAGE = 3, 2
TOPICS = {"ham": "lunch noon see you tomorrow office", "spam": "free money win prize claim now"}
WORDS = {name: words.split() for name, words in TOPICS.items()}


def messages(n: int = 40, seed: int = 3) -> list[tuple[str, str]]:
    """Classes and their messages: mostly words of their own, some of the other's."""
    rng = random.Random(seed)
    found = []
    for place in range(n):
        name, other = ("ham", "spam") if place % 2 else ("spam", "ham")
        words = rng.choices(WORDS[name], k=8) + rng.choices(WORDS[other], k=2)
        found.append((name, " ".join(["the", *words])))
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("text")


@pytest.fixture(autouse=True)
def _here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(place)
    yield


@pytest.fixture(scope="module")
def mail(place: Path) -> Path:
    for number, (name, text) in enumerate(messages()):
        folder = place / "mail" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:02d}.txt").write_text(text)
    (place / "mail" / "spam" / "old").write_bytes(b"free money \xa3 100")
    (place / "mail" / "spam" / "x.gif").write_bytes(b"GIF\0")
    return place / "mail"


@pytest.fixture(scope="module")
def spam(place: Path, mail: Path) -> Path:
    path = place / "spam.sc"
    result = run("fit", mail, "-o", path)
    assert result.exit_code == 0, result.output
    return path


@pytest.fixture(scope="module")
def fruit(place: Path) -> Path:
    """A model that reads no text."""
    table = write_table(place / "fruit.csv", fruit_rows())
    assert run("fit", table, "--target", "sort", "-o", place / "fruit.sc").exit_code == 0
    return place / "fruit.sc"


def run(*arguments: object, input: bytes | None = None) -> Result:
    return CliRunner().invoke(main, [str(word) for word in arguments], input=input)


def refused(result: Result, *words: str, code: int = DATA) -> None:
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    assert result.stderr.startswith("error: ") and "internal error" not in result.stderr
    for word in words:
        assert word in result.stderr, (word, result.stderr)


def predicted(result: Result) -> list[dict[str, str]]:
    assert result.exit_code == 0, (result.output, result.exception)
    return list(csv.DictReader(io.StringIO(result.stdout)))


# -- learning


def test_a_folder_is_learned_with_one_command(mail: Path) -> None:
    result = run("fit", mail, "--full")
    assert result.exit_code == 0, result.output
    page = result.stdout
    assert "from 41 rows" in page
    assert "documents; 14 different words" in page
    assert "the target is 'class', the sub-folder of a document" in page
    assert "1 document was not UTF-8 and read as Latin-1" in page
    assert "1 file holds NUL bytes, left out as binary: spam/x.gif" in page
    assert "accuracy" in page and "the model, in mail.sc" in page
    assert "left out: file" not in page


def test_a_tar_file_is_learned_as_its_folder_is(mail: Path, place: Path) -> None:
    with tarfile.open(place / "packed.tar.gz", "w:gz") as archive:
        archive.add(mail, "mail")
    one = json.loads(run("fit", mail, "--json", "-o", "one.sc").stdout)
    two = json.loads(run("fit", "packed.tar.gz", "--json").stdout)
    assert two["saved"] == "packed.sc"
    for document in (one, two):
        del document["saved"], document["next"]
    assert one == two


def test_the_options_for_text_do_what_they_say(mail: Path) -> None:
    asked = ("--min-count", 2, "--drop-top", 1, "--stop-words", "stop.txt", "--holdout", 0.3)
    Path("stop.txt").write_text("Free\nmoney prize\n")
    result = run("fit", mail, *asked, "--json", "-o", "x.sc")
    assert result.exit_code == 0, result.output
    column = next(column for column in json.loads(result.stdout)["columns"] if column["column"] == "text")
    # 12 words of the topics and "the" are there often, "100" once; "the" is the most frequent.
    assert column["words"] == 9
    assert json.loads(result.stdout)["evaluation"]["how"] == "30 % held out"


@pytest.mark.parametrize("model", ["multinomial", "bernoulli", "complement"])
def test_each_model_of_text_is_learned(mail: Path, model: str) -> None:
    assert run("fit", mail, "--text", model, "-o", "x.sc").exit_code == 0
    rows = predicted(run("predict", "x.sc", mail))
    assert [row["predicted"] for row in rows] == [row["file"].partition("/")[0] for row in rows]


def test_classes_are_looked_for_where_that_is_asked(mail: Path) -> None:
    result = run("fit", mail, "--classes", 2, "-o", "found.sc")
    assert result.exit_code == 0, result.output
    assert "A mixture of 2 classes" in result.stdout and "the sub-folders are not used" in result.stdout
    rows = predicted(run("predict", "found.sc", mail))
    assert len({(row["predicted"], row["file"].partition("/")[0]) for row in rows}) == 2


def test_a_flat_folder_is_clustered(mail: Path) -> None:
    result = run("fit", mail / "ham", "-o", "flat.sc")
    assert result.exit_code == 0, result.output
    assert "A mixture of" in result.stdout
    refused(run("fit", mail / "ham", "--holdout", 0.3), "--holdout needs something to predict", "no sub-folders")


def test_loose_files_are_unlabelled_rows(mail: Path, place: Path) -> None:
    folder = place / "half"
    for name in ("ham/1", "spam/1", "loose"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(" ".join(WORDS["ham" if name.startswith("ham") else "spam"]))
    assert "without a label are used as unlabelled rows" in run("fit", folder, "-o", "x.sc").stdout
    result = run("fit", folder, "--unlabelled-weight", 0, "-o", "x.sc")
    assert "1 document lies outside of the sub-folders, without a class" in result.stdout
    assert "used as unlabelled" not in result.stdout


def test_lines_are_clustered(place: Path) -> None:
    Path("lines.txt").write_text("".join(f"{text}\n" for _, text in messages()))
    result = run("fit", "lines.txt", "--lines", "--classes", 2, "--full")
    assert result.exit_code == 0, result.output
    assert "from 40 rows" in result.stdout and "lines; 13 different words" in result.stdout
    assert "softcount show lines.sc lines.txt --lines" in result.stdout
    assert run("show", "lines.sc", "lines.txt", "--lines").exit_code == 0


def test_a_table_with_a_column_of_text_is_a_table(place: Path) -> None:
    rows = [(text, str(len(text)), name) for name, text in messages()]
    table = write_table(place / "notes.csv", rows, ("note", "length", "sort"))
    result = run("fit", table, "--target", "sort", "--min-count", 2, "-o", "notes.sc", "--full")
    assert result.exit_code == 0, result.output
    assert "text of about 11 words; 13 different words" in result.stdout
    found = [row["predicted"] for row in predicted(run("predict", "notes.sc", table))]
    assert found == [name for name, _ in messages()]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--text", "poisson"), "not one of"),
        (("--ngrams", "2-1"), "such as 1-2"),
        (("--min-df", "x"), "neither a number of documents"),
        (("--max-df", "1.5"), "neither a number of documents"),
        (("--min-count", "0"), "min-count"),
        (("--classes", "2", "--holdout", "0.3"), "--holdout needs --target"),
        (("--classes", "2", "--unlabelled-weight", "1"), "--unlabelled-weight needs --target"),
        (("--target", "class", "--classes", "2"), "--classes is for finding classes"),
    ],
)
def test_options_that_make_no_sense_are_usage(mail: Path, words: tuple[str, ...], said: str) -> None:
    refused(run("fit", mail, *words), said, code=USAGE)


def test_options_for_text_need_a_column_of_text(place: Path, fruit: Path) -> None:
    refused(run("fit", "fruit.csv", "--min-count", 2, "-o", "x.sc"), "--min-count is for columns of text")
    refused(run("fit", "fruit.csv", "--text", "bernoulli", "-o", "x.sc"), "--text is for columns of text")


def test_stop_words_come_from_a_file_that_has_some(mail: Path) -> None:
    refused(run("fit", mail, "--stop-words", "no.txt"), "no.txt: there is no such file")
    Path("empty.txt").write_text("\n")
    refused(run("fit", mail, "--stop-words", "empty.txt"), "holds no stop words")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "no file in it"),
        ({"a/1": b"\0", "b/1": b"\0"}, "NUL bytes"),
        ({"a/1": b"...", "b/1": b"!"}, "without words"),
    ],
)
def test_a_folder_of_nothing_to_learn_from_is_refused(tmp_path: Path, files: dict[str, bytes], said: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    refused(run("fit", folder, "-o", tmp_path / "x.sc"), said)
    assert os.listdir(tmp_path) == ["folder"]


def test_one_class_is_learned_and_said(mail: Path, tmp_path: Path) -> None:
    (tmp_path / "ham").mkdir()
    (tmp_path / "ham" / "1").write_text("see you")
    result = run("fit", tmp_path, "-o", "x.sc")
    assert result.exit_code == 0 and "only one class, 'ham'" in result.stdout


@pytest.mark.parametrize(
    ("data", "model"),
    [("mail/", "mail.sc"), ("mail", "mail.sc"), ("mail/.", "mail.sc"), ("a/news.tar.gz", "news.sc"), ("n.tgz", "n.sc")],
)
def test_the_model_is_named_after_the_data(mail: Path, data: str, model: str) -> None:
    assert default_output(data) == model


# -- answering


def test_documents_are_answered_one_line_each_with_their_file_first(spam: Path, mail: Path) -> None:
    result = run("predict", spam, mail)
    rows = predicted(result)
    assert list(rows[0]) == ["file", "predicted", "p(ham)", "p(spam)"]
    assert len(rows) == 41 and rows[0]["file"] == "ham/01.txt"
    assert "note: 1 file holds NUL bytes" in result.stderr and "not in the model" not in result.stderr
    listed = json.loads(run("predict", spam, mail, "--json").stdout)
    assert [row["file"] for row in listed] == [row["file"] for row in rows]


def test_each_line_is_a_document_and_odd_bytes_are_counted(spam: Path) -> None:
    lines = b"claim your prize, now\n\nsee you at lunch\ncaf\xe9 at noon\n"
    result = run("predict", spam, "-", input=lines)
    rows = predicted(result)
    assert [row["predicted"] for row in rows][::2] == ["spam", "ham"]
    assert len(rows) == 4 and "file" not in rows[0]
    assert "note: 1 line was not UTF-8 and read as Latin-1" in result.stderr
    Path("lines.gz").write_bytes(gzip.compress(lines))
    assert predicted(run("predict", spam, "lines.gz")) == rows


def test_a_header_that_names_the_column_makes_a_table(spam: Path) -> None:
    table = b"id\ttext\n7\tclaim your prize\n8\tsee you\n"
    assert len(predicted(run("predict", spam, "-", input=table))) == 2
    Path("t.csv").write_bytes(b'text\n"two\nlines"\nfree money\n')
    assert [row["predicted"] for row in predicted(run("predict", spam, "t.csv"))][1:] == ["spam"]
    assert len(predicted(run("predict", spam, "t.csv"))) == 2
    assert len(predicted(run("predict", spam, "t.csv", "--lines"))) == 4
    pq.write_table(pa.table({"text": ["see you", "free"]}), "t.parquet")
    assert [row["predicted"] for row in predicted(run("predict", spam, "t.parquet"))] == ["ham", "spam"]


def test_a_table_without_the_column_is_not_taken_for_lines(spam: Path, fruit: Path) -> None:
    refused(run("predict", spam, "fruit.csv"), "looks like a table of 6 columns", "'text'", "--lines")
    assert len(predicted(run("predict", spam, "fruit.csv", "--lines"))) == 121
    Path("few.csv").write_text("message\nsee you\n")
    refused(run("predict", spam, "few.csv"), "few.csv is named like a table", "'text'", "--lines")
    Path("quoted").write_text("kind,message\n" + 'a,"free, or\nnot"\n' * 9)
    refused(run("predict", spam, "quoted"), "looks like a table of 2 columns")
    refused(run("explain", spam, "quoted"), "looks like a table of 2 columns", "--document")
    pq.write_table(pa.table({"a": [1, 2]}), "other.parquet")
    refused(run("predict", spam, "other.parquet"), "'text'")


def test_a_whole_file_is_one_document(spam: Path, mail: Path) -> None:
    Path("letter").write_bytes(b"see you\nat noon\nin the office\n")
    (row,) = predicted(run("predict", spam, "letter", "--document"))
    assert row["predicted"] == "ham"
    assert [row] == predicted(run("predict", spam, "-", "--document", input=Path("letter").read_bytes()))
    refused(run("predict", spam, "letter", "--document", "--lines"), "cannot both", code=USAGE)


def test_a_model_of_a_text_column_reads_documents_whatever_its_name(place: Path) -> None:
    rows = [(name, text) for name, text in messages()]
    table = write_table(place / "sms.tsv", rows, None)
    assert run("fit", table, "--no-header", "--target", "c1", "-o", "sms.sc").exit_code == 0
    for words in (("sms.tsv", "--no-header"), ("only.txt",)):
        Path("only.txt").write_text("".join(f"{text}\n" for _, text in rows))
        assert [row["predicted"] for row in predicted(run("predict", "sms.sc", *words))] == [name for name, _ in rows]


def test_documents_for_a_model_beside_other_columns_are_evidence_by_themselves(place: Path, mail: Path) -> None:
    rows = [(text, str(len(text)), name) for name, text in messages()]
    table = write_table(place / "both.csv", rows, ("note", "length", "sort"))
    assert run("fit", table, "--target", "sort", "-o", "both.sc").exit_code == 0
    result = run("predict", "both.sc", mail)
    rows_found = predicted(result)
    assert [row["predicted"] for row in rows_found] == [row["file"].partition("/")[0] for row in rows_found]
    assert "not in the table, treated as missing: length" in result.stderr


def test_a_model_without_text_takes_no_documents(fruit: Path, mail: Path) -> None:
    refused(run("predict", fruit, mail), "holds documents, but the model reads no text", "'colour'")
    refused(run("predict", fruit, "-", "--lines", input=b"hello\n"), "the model reads no text")
    refused(run("predict", fruit, "-", "--document", input=b"hello\n"), "the model reads no text")


def test_a_document_can_be_asked_about(spam: Path) -> None:
    answer = json.loads(run("query", spam, "--of", "class", "--given", "text=free prize", "--json").stdout)
    assert {level["level"]: level["probability"] > 0.9 for level in answer["levels"]} == {"ham": False, "spam": True}
    drawn = run("sample", spam, "-n", 5)
    assert drawn.exit_code == 0 and len(list(csv.DictReader(io.StringIO(drawn.stdout)))) == 5


def test_lines_come_from_standard_input(spam: Path) -> None:
    lines = "".join(f"{text}\n" for _, text in messages()).encode()
    assert run("fit", "-", "--lines", "--classes", 2, "-o", "x.sc", input=lines).exit_code == 0
    assert len(predicted(run("predict", "x.sc", "-", input=lines))) == 40


def test_schema_says_how_documents_are_read(mail: Path) -> None:
    result = run("schema", mail)
    assert result.exit_code == 0, result.output
    assert "41 rows" in result.stdout and "documents; 14 different words" in result.stdout
    assert "1 document was not UTF-8" in result.stdout


def test_lines_are_a_table_only_where_they_look_like_one() -> None:
    assert find_width(["a\tb"] * 5) == 2
    assert find_width(["a,b,c"] * 5) == 3
    assert find_width(["a,b"] * 5) == find_width(['a,"b, c"', "d,e"] * 3) == find_width(['a,"b', 'c",d'] * 5) - 1 == 2
    assert find_width(["a, b"] * 5) == find_width(["a,b,c"] * 4) == find_width(["a,b,c"] * 5 + ["a"]) == 0
    assert find_width([]) == find_width([""] * 9) == 0


def test_help_has_the_options_for_text_under_their_own_heading() -> None:
    page = run("fit", "--help-all").stdout
    assert page.index("Task:") < page.index("Text columns:") < page.index("--min-count") < page.index("File format:")
    assert "--min-count" not in run("fit", "--help").stdout
    assert "first line" in run("predict", "--help-all").stdout


def test_text_from_documents_never_reaches_a_terminal_as_it_is(tmp_path: Path) -> None:
    for name in ("a\x1b[31m", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "\x1b[2J").write_text(f"hello {name[0] * 3} there")
        (tmp_path / name / "\x1b.gif").write_bytes(b"\0")
    result = run("fit", tmp_path, "-o", "x.sc")
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output


def test_it_works_as_a_command_of_its_own(mail: Path, place: Path) -> None:
    assert softcount_command("fit", "mail/", "-o", "own.sc", cwd=place).returncode == 0
    answer = softcount_command("predict", "own.sc", "-", cwd=place, input=b"free money\nlunch at noon\n")
    assert [line.split(b",")[0] for line in answer.stdout.split()] == [b"predicted", b"spam", b"ham"]


def test_sms_spam_is_told_from_one_table(data: Callable[[str], Path]) -> None:
    table = data("sms_spam") / "SMSSpamCollection"
    result = run("fit", table, "--no-header", "--target", "c1", "--json", "-o", "sms_spam.sc")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["evaluation"]["accuracy"] > 0.98
    answers = predicted(run("predict", "sms_spam.sc", "-", input=b"Free entry! claim your prize\nsee you tonight\n"))
    assert [row["predicted"] for row in answers] == ["spam", "ham"]
