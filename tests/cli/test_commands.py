"""Every command on good input, from a file on disk to what the person sees."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import softcount
from cli.shell import python, softcount_command
from cli.tables import HEADER, fruit_rows, write_table
from softcount.cli import main

ROWS = fruit_rows()


def run(*arguments: object, **options: object) -> Result:
    """Run a command that must succeed."""
    result = CliRunner().invoke(main, [str(word) for word in arguments], **options)  # type: ignore[arg-type]
    assert result.exit_code == 0, result.output
    return result


def sheet(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, the model that predicts its last column and the model that finds classes in it."""
    place = tmp_path_factory.mktemp("fruit")
    write_table(place / "fruit.csv", ROWS)
    run("fit", place / "fruit.csv", "--target", "sort", "-o", place / "sorts.sc", "--folds", "0")
    run("fit", place / "fruit.csv", "--classes", "2", "--kind", "sort=ignore", "-o", place / "found.sc")
    return place


def test_fit_says_all_that_was_promised(folder, tmp_path):
    result = run("fit", folder / "fruit.csv", "--target", "sort", "-o", tmp_path / "m.sc")
    for promised in ("120 rows and 3 of 5 columns", "identifier", "always", "5-fold", "accuracy", "log-loss",
                     "this model", "standard naive Bayes", "baseline", "Columns that matter most", "missing cells",
                     "left out", "m.sc", "softcount explain"):  # fmt: skip
        assert promised in result.stdout, promised
    assert (tmp_path / "m.sc").is_file()


def test_fit_counts_the_missing_cells_of_every_column(folder):
    document = json.loads(run("show", folder / "sorts.sc", "--json").stdout)
    counted = {entry["column"]: entry["missing"] for entry in document["columns"]}
    for place, name in ((1, "colour"), (2, "weight"), (3, "visits")):
        assert counted[name] == sum(row[place] in ("", "NA", "?") for row in ROWS), name


def test_the_accuracy_said_is_better_than_the_commonest_class(folder, tmp_path):
    result = run("fit", folder / "fruit.csv", "--target", "sort", "-o", tmp_path / "m.sc", "--json")
    evaluation = json.loads(result.stdout)["evaluation"]
    apples = sum(row[-1] == "apple" for row in ROWS) / len(ROWS)
    assert evaluation["accuracy"] > evaluation["baseline"]["accuracy"]
    assert evaluation["baseline"]["accuracy"] == pytest.approx(max(apples, 1 - apples))
    assert evaluation["log_loss"] < evaluation["baseline"]["log_loss"]


def test_a_holdout_is_said_to_be_one(folder, tmp_path):
    result = run("fit", folder / "fruit.csv", "--target", "sort", "--holdout", "0.25", "-o", tmp_path / "m.sc")
    assert "25 % held out" in result.stdout


def test_without_an_output_the_model_is_named_after_the_data(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("fit", folder / "fruit.csv", "--target", "sort", "--folds", "0")
    assert [path.name for path in tmp_path.iterdir()] == ["fruit.sc"]


def test_a_saved_model_predicts_as_the_library_does(folder):
    answers = sheet(run("predict", folder / "sorts.sc", folder / "fruit.csv", "--digits", "17").stdout)
    fitted = softcount.load(folder / "sorts.sc")
    assert len(answers) == len(ROWS)
    for line in answers:
        shares = [float(line["p(apple)"]), float(line["p(banana)"])]
        assert math.isclose(sum(shares), 1, abs_tol=1e-12)
        assert line["predicted"] == ["apple", "banana"][int(np.argmax(shares))]
    assert list(fitted.classes_ if hasattr(fitted, "classes_") else fitted.classes) == ["apple", "banana"]


def test_most_fruit_is_told_right(folder):
    answers = sheet(run("predict", folder / "sorts.sc", folder / "fruit.csv").stdout)
    right = sum(line["predicted"] == row[-1] for line, row in zip(answers, ROWS, strict=True))
    assert right > 0.85 * len(ROWS)


def test_columns_may_be_reordered_missing_or_extra(folder, tmp_path):
    order = [2, 5, 1, 3]
    write_table(
        tmp_path / "other.csv",
        [(*(row[place] for place in order), "extra") for row in ROWS],
        (*(HEADER[place] for place in order), "note"),
    )
    whole = run("predict", folder / "sorts.sc", folder / "fruit.csv").stdout
    assert run("predict", folder / "sorts.sc", tmp_path / "other.csv").stdout == whole


def test_a_column_that_is_not_there_is_no_evidence_and_is_said(folder, tmp_path):
    write_table(tmp_path / "few.csv", [(row[1],) for row in ROWS], ("colour",))
    result = run("predict", folder / "sorts.sc", tmp_path / "few.csv")
    assert len(sheet(result.stdout)) == len(ROWS)
    assert "weight" in result.stderr


def test_found_classes_are_numbered_and_tell_the_sorts_apart(folder):
    answers = sheet(run("predict", folder / "found.sc", folder / "fruit.csv").stdout)
    same = sum((line["predicted"] == "0") == (row[-1] == "apple") for line, row in zip(answers, ROWS, strict=True))
    assert max(same, len(ROWS) - same) > 0.8 * len(ROWS)


def test_found_classes_come_with_sizes_and_agreement(folder, tmp_path):
    text = run("fit", folder / "fruit.csv", "--classes", "2", "-o", tmp_path / "m.sc", "--starts", "4").stdout
    assert "A mixture of 2 classes" in text
    assert "of 4 initialisations reached the best" in text
    assert "class 1" in text


def test_the_same_seed_gives_the_same_classes(folder, tmp_path):
    texts = [
        run("fit", folder / "fruit.csv", "--classes", "3", "--seed", "5", "-o", tmp_path / "m.sc", "--json").stdout
        for _ in range(2)
    ]
    assert texts[0] == texts[1]


def test_show_gives_the_page_and_the_document(folder):
    assert "Classifier for sort: 2 classes" in run("show", folder / "sorts.sc").stdout
    document = json.loads(run("show", folder / "sorts.sc", "--json").stdout)
    assert [entry["class"] for entry in document["classes"]] == ["apple", "banana"]
    assert sum(entry["share"] for entry in document["classes"]) == pytest.approx(1)


def test_schema_says_kind_and_why(folder):
    text = run("schema", folder / "fruit.csv").stdout
    assert "identifier (left out)" in text
    kinds = {
        entry["column"]: entry for entry in json.loads(run("schema", folder / "fruit.csv", "--json").stdout)["columns"]
    }
    assert kinds["colour"]["kind"] == "categorical"
    assert kinds["site"]["kind"] == "constant"
    assert kinds["ref"]["used"] is False
    assert all(entry["why"] for entry in kinds.values())


def test_a_declared_kind_is_obeyed(folder):
    kinds = json.loads(run("schema", folder / "fruit.csv", "--kind", "visits=categorical", "--json").stdout)["columns"]
    assert next(entry["kind"] for entry in kinds if entry["column"] == "visits") == "categorical"


def test_a_word_for_missing_can_be_chosen(tmp_path):
    write_table(tmp_path / "a.csv", [("x",), ("y",), ("gone",), ("x",), ("y",)], ("a",))
    document = json.loads(run("schema", tmp_path / "a.csv", "--missing", "gone", "--json").stdout)
    assert document["columns"][0]["missing"] == 1


def test_a_table_without_a_header_has_numbered_columns(tmp_path):
    write_table(tmp_path / "a.csv", [row[1:] for row in ROWS], None)
    run("fit", tmp_path / "a.csv", "--no-header", "--target", "c5", "--folds", "0", "-o", tmp_path / "m.sc")
    answers = sheet(run("predict", tmp_path / "m.sc", tmp_path / "a.csv", "--no-header").stdout)
    assert len(answers) == len(ROWS)
    assert "red" in run("query", tmp_path / "m.sc", "--of", "c1", "--given", "c5=apple").stdout


def test_the_reasons_add_up_to_the_log_odds_of_the_prediction(folder):
    reasons = json.loads(run("explain", folder / "sorts.sc", folder / "fruit.csv", "--json").stdout)
    answers = sheet(run("predict", folder / "sorts.sc", folder / "fruit.csv", "--digits", "17").stdout)
    for line, answer in zip(reasons, answers, strict=True):
        assert line["(class)"] == answer["predicted"]
        parts = sum(value for name, value in line.items() if name not in ("(row)", "(class)", "(against)", "(total)"))
        assert parts == pytest.approx(line["(total)"], abs=1e-9)
        odds = float(answer[f"p({line['(class)']})"]) / float(answer[f"p({line['(against)']})"])
        assert line["(total)"] == pytest.approx(math.log(odds), abs=1e-6)


def test_a_missing_cell_is_no_reason(folder):
    row = next(place for place, cells in enumerate(ROWS, 1) if cells[2] in ("", "NA", "?"))
    line = json.loads(run("explain", folder / "sorts.sc", folder / "fruit.csv", "--row", row, "--json").stdout)[0]
    assert line["weight"] == 0


def test_a_row_is_explained_in_words(folder):
    text = run("explain", folder / "sorts.sc", folder / "fruit.csv", "--row", "2", "--row", "1").stdout
    assert text.index("Row 2:") < text.index("Row 1:")
    assert "rather than" in text
    assert "(total)" in text


def test_a_block_of_columns_is_one_reason_and_shows_its_cells(folder, tmp_path):
    block = ["--kind", "colour,visits=joint", "--model", "naive-bayes"]
    run("fit", folder / "fruit.csv", "--target", "sort", *block, "-o", tmp_path / "m.sc")
    row = next(place for place, cells in enumerate(ROWS, 1) if cells[1] == "red" and cells[3] == "2")
    lines = run("explain", tmp_path / "m.sc", folder / "fruit.csv", "--row", row).stdout.splitlines()
    assert any(line.startswith("  colour, visits  red, 2") for line in lines)


def test_the_class_to_compare_with_can_be_chosen(folder):
    line = json.loads(
        run("explain", folder / "sorts.sc", folder / "fruit.csv", "--row", "1", "--against", "banana", "--json").stdout
    )[0]
    assert line["(against)"] == "banana"
    asked = ["explain", str(folder / "sorts.sc"), str(folder / "fruit.csv"), "--against", line["(class)"]]
    itself = CliRunner().invoke(main, [*asked, "--row", "1"])
    assert itself.exit_code == 3 and f"row 1 is in class {line['(class)']!r} itself" in itself.stderr
    rows = sheet(run(*asked).stdout)
    assert {float(row["(total)"]) == 0 for row in rows if row["(class)"] == line["(class)"]} == {True}
    assert all(float(row["(total)"]) > 0 for row in rows if row["(class)"] != line["(class)"])


def test_a_query_about_words_gives_probabilities(folder):
    document = json.loads(
        run("query", folder / "sorts.sc", "--of", "colour", "--given", "sort=banana", "--json").stdout
    )
    shares = {entry["level"]: entry["probability"] for entry in document["levels"]}
    assert sum(shares.values()) == pytest.approx(1)
    assert max(shares, key=shares.__getitem__) == "yellow"


def test_a_query_about_numbers_gives_mean_and_quantiles(folder):
    document = json.loads(run("query", folder / "sorts.sc", "--of", "weight", "--given", "sort=apple", "--json").stdout)
    assert 140 < document["mean"] < 160
    values = [entry["value"] for entry in document["quantiles"]]
    assert values == sorted(values)
    assert "standard deviation" in run("query", folder / "sorts.sc", "--of", "weight").stdout


def test_a_sample_looks_like_the_table_and_obeys_what_is_given(folder):
    lines = sheet(run("sample", folder / "sorts.sc", "-n", "50", "--given", "sort=banana", "--seed", "3").stdout)
    assert len(lines) == 50
    assert {line["sort"] for line in lines} == {"banana"}
    assert {line["colour"] for line in lines} <= {"red", "green", "yellow"}


def test_the_same_seed_draws_the_same_rows(folder):
    drawn = [run("sample", folder / "sorts.sc", "-n", "5", "--seed", seed).stdout for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_row_weights_count_as_repetition(tmp_path):
    twice = [row for row in ROWS for _ in range(2)]
    write_table(tmp_path / "twice.csv", [row[1:] for row in twice], HEADER[1:])
    write_table(tmp_path / "weighted.csv", [(*row[1:], "2") for row in ROWS], (*HEADER[1:], "w"))
    how = ("--target", "sort", "--folds", "0", "--kind", "visits=count")  # a guess looks at numbers of rows
    run("fit", tmp_path / "twice.csv", *how, "-o", tmp_path / "t.sc")
    run("fit", tmp_path / "weighted.csv", *how, "--weight", "w", "-o", tmp_path / "w.sc")
    answers = [sheet(run("predict", tmp_path / name, tmp_path / "twice.csv").stdout) for name in ("t.sc", "w.sc")]
    for one, other in zip(*answers, strict=True):
        assert float(one["p(apple)"]) == pytest.approx(float(other["p(apple)"]), abs=1e-12)


def test_parquet_and_csv_give_the_same_predictions(folder, tmp_path):
    cells = [[None if cell in ("", "NA", "?") else cell for cell in row] for row in ROWS]
    columns = {name: [row[place] for row in cells] for place, name in enumerate(HEADER)}
    columns["weight"] = [None if cell is None else float(cell) for cell in columns["weight"]]
    columns["visits"] = [None if cell is None else int(cell) for cell in columns["visits"]]
    pq.write_table(pa.table(columns), tmp_path / "fruit.parquet")
    whole = run("predict", folder / "sorts.sc", folder / "fruit.csv").stdout
    assert run("predict", folder / "sorts.sc", tmp_path / "fruit.parquet").stdout == whole


def test_standard_input_is_a_table_too(folder, tmp_path):
    content = (folder / "fruit.csv").read_bytes()
    whole = run("predict", folder / "sorts.sc", folder / "fruit.csv").stdout
    piped = softcount_command("predict", str(folder / "sorts.sc"), "-", input=content)
    assert (piped.returncode, piped.stdout.decode()) == (0, whole)


def test_a_model_can_go_to_standard_output(folder, tmp_path):
    done = softcount_command("fit", str(folder / "fruit.csv"), "--target", "sort", "--folds", "0", "-o", "-")
    assert done.returncode == 0, done.stderr
    (tmp_path / "m.sc").write_bytes(done.stdout)
    whole = run("predict", folder / "sorts.sc", folder / "fruit.csv").stdout
    assert run("predict", tmp_path / "m.sc", folder / "fruit.csv").stdout == whole
    assert b"Classifier for sort" in done.stderr


def test_the_demo_shows_each_command_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = run("demo").stdout
    assert text.count("$ softcount ") >= 4
    assert "accuracy" in text
    assert list(tmp_path.iterdir()) == []


def test_the_demo_keeps_its_files_where_asked(tmp_path):
    run("demo", "--keep", tmp_path / "play")
    assert {path.suffix for path in (tmp_path / "play").iterdir()} >= {".csv", ".sc"}


def test_off_a_terminal_no_command_sends_an_escape_sequence(folder, tmp_path):
    model, table = str(folder / "sorts.sc"), str(folder / "fruit.csv")
    lines = [
        ["fit", table, "--target", "sort", "-o", str(tmp_path / "m.sc")],
        ["schema", table],
        ["predict", model, table],
        ["explain", model, table, "--row", "1"],
        ["sample", model],
        ["query", model, "--of", "sort"],
        ["show", model],
    ]
    code = f"from softcount.cli import main\nfor words in {lines!r}: main.main(words, standalone_mode=False)"
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b"\n") > 100 and b"\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("options", [["--model", "naive-bayes"], []])
def test_a_small_fit_loads_no_more_than_it_needs(folder, tmp_path, options):
    words = ["fit", str(folder / "fruit.csv"), "--target", "sort", *options, "-o", str(tmp_path / "m.sc")]
    code = (
        "import sys\nfrom softcount.cli import main\n"
        f"main.main({words!r}, standalone_mode=False)\nprint(*sys.modules, file=sys.stderr)"
    )
    done = python("-c", code)
    heavy = {"sklearn", "numba", "pandas", "polars", "scipy", "pyarrow.compute", "multiprocessing"}
    heavy |= {"concurrent.futures", "softcount.learn.search", "softcount.learn.k_means"}
    assert done.returncode == 0 and "softcount.learn.known_classes" in done.stderr.decode().split()
    assert heavy & set(done.stderr.decode().split()) == set()


def test_probabilities_in_csv_have_six_significant_digits_and_json_has_all(folder):
    rows = sheet(run("predict", folder / "sorts.sc", folder / "fruit.csv").stdout)
    exact = json.loads(run("predict", folder / "sorts.sc", folder / "fruit.csv", "--json").stdout)
    for row, own in zip(rows, exact, strict=True):
        for name in ("p(apple)", "p(banana)"):
            assert float(row[name]) == float(f"{own[name]:.6g}")
            assert len(row[name].partition("e")[0].replace(".", "").lstrip("0")) <= 6


def test_a_picture_without_a_file_name_is_named_after_it(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "Wrote influence.svg" in run("plot", folder / "sorts.sc", "influence").stderr
    assert (tmp_path / "influence.svg").read_text().startswith("<svg")


def test_python_runs_the_package_as_the_command():
    done = python("-m", "softcount", "fti")
    assert done.returncode == 2 and b"Did you mean 'fit'?" in done.stderr
    done = python("-m", "softcount", "classify", "x.csv")
    assert done.returncode == 2 and b"Did you mean 'predict'?" in done.stderr
