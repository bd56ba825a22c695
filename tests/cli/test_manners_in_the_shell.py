"""impute, diff, merge, completion, --keep, --digits, -q, -v, and conditions in --given."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import softcount as sc
from cli.tables import fruit_rows, write_table
from softcount.cli import main

ROWS = fruit_rows()


def run(*words: Any) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def done(*words: Any) -> Result:
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    return result


def sheet(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, its halves, and a model of each."""
    found = tmp_path_factory.mktemp("fruit")
    for name, rows in (("fruit", ROWS), ("first", ROWS[:60]), ("second", ROWS[60:])):
        write_table(found / f"{name}.csv", rows)
        words = ["--target", "sort", "--folds", 0, "--model", "naive-bayes", "--kind", "visits=poisson"]
        done("fit", found / f"{name}.csv", *words, "--kind", "ref=ignore", "-o", found / f"{name}.sc")
    return found


# -- predict


def test_kept_columns_come_first_and_as_they_are_written(place: Path) -> None:
    plain = sheet(done("predict", place / "fruit.sc", place / "fruit.csv").stdout)
    kept = sheet(done("predict", place / "fruit.sc", place / "fruit.csv", "--keep", "ref,weight").stdout)
    assert list(kept[0])[:3] == ["ref", "weight", "predicted"]
    assert [line["ref"] for line in kept] == [row[0] for row in ROWS]
    assert [line["weight"] for line in kept] == [row[2] if row[2] not in ("NA", "?") else "" for row in ROWS]
    assert [{key: line[key] for key in plain[0]} for line in kept] == plain
    whole = sheet(done("predict", place / "fruit.sc", place / "fruit.csv", "--keep", "all").stdout)
    assert list(whole[0])[:7] == ["ref", "colour", "weight", "visits", "site", "sort", "predicted"]


def test_a_kept_column_of_our_name_stays_what_it_is(place: Path, tmp_path: Path) -> None:
    rows = [("predicted", "colour"), ("x", "red"), ("y", "green")]
    write_table(tmp_path / "t.csv", rows[1:], rows[0])
    found = sheet(done("predict", place / "fruit.sc", tmp_path / "t.csv", "--keep", "all").stdout)
    assert [line["predicted"] for line in found] == ["x", "y"]
    assert {line["(predicted)"] for line in found} <= {"apple", "banana"}


def test_digits_round_numbers_and_nothing_else(place: Path) -> None:
    words = ["predict", place / "fruit.sc", place / "fruit.csv"]
    plain, few = sheet(done(*words).stdout), sheet(done(*words, "--digits", 2).stdout)
    for line, short in zip(plain, few, strict=True):
        assert float(short["p(apple)"]) == round(float(line["p(apple)"]), 2)
        assert short["predicted"] == line["predicted"]


def test_a_column_to_keep_that_is_not_there_is_refused(place: Path) -> None:
    result = run("predict", place / "fruit.sc", place / "fruit.csv", "--keep", "wieght")
    assert result.exit_code == 3 and "no column 'wieght'" in result.stderr and "Did you mean 'weight'" in result.stderr


# -- impute


def test_holes_are_filled_as_python_fills_them_and_nothing_else_changes(place: Path) -> None:
    result = done("impute", place / "fruit.sc", place / "fruit.csv")
    found, missing = sheet(result.stdout), ("", "NA", "?")
    columns = dict(zip(("colour", "weight", "visits"), (1, 2, 3), strict=True))
    frame = {name: [None if row[at] in missing else row[at] for row in ROWS] for name, at in columns.items()}
    wanted = sc.load(place / "fruit.sc").impute(frame)
    holes = 0
    for number, (line, row) in enumerate(zip(found, ROWS, strict=True)):
        for name, at in columns.items():
            if row[at] not in missing:
                assert line[name] == row[at]
                continue
            holes += 1
            expected = wanted[name][number]
            assert line[name] == (expected if name == "colour" else f"{float(expected):.6g}")
        assert (line["ref"], line["sort"]) == (row[0], row[5])
    assert f"filled {holes} missing cells" in result.stderr


def test_filled_rows_can_be_parquet_and_rounded(place: Path, tmp_path: Path) -> None:
    done("impute", place / "fruit.sc", place / "fruit.csv", "--digits", 1, "-o", tmp_path / "whole.parquet")
    table = pq.read_table(tmp_path / "whole.parquet")
    assert table.column_names == ["ref", "colour", "weight", "visits", "site", "sort"]
    assert table.column("weight").null_count == 0


def test_a_network_fills_holes_too(tmp_path: Path) -> None:
    rows = [("a", "b")] + [("x", "u"), ("y", "v")] * 20 + [("x", ""), ("", "v")]
    write_table(tmp_path / "t.csv", rows[1:], rows[0])
    done("fit", tmp_path / "t.csv", "--net", "a>b", "-o", tmp_path / "net.sc")
    found = sheet(done("impute", tmp_path / "net.sc", tmp_path / "t.csv").stdout)
    assert (found[-2]["b"], found[-1]["a"]) == ("u", "y")


# -- merge and diff


def test_two_halves_merged_are_the_whole(place: Path, tmp_path: Path) -> None:
    result = done("merge", place / "first.sc", place / "second.sc", "-o", tmp_path / "both.sc")
    assert "120 rows in 2 models" in result.stderr
    both, whole = (
        sheet(done("predict", at, place / "fruit.csv").stdout) for at in (tmp_path / "both.sc", place / "fruit.sc")
    )
    for one, other in zip(both, whole, strict=True):
        assert float(one["p(apple)"]) == pytest.approx(float(other["p(apple)"]), rel=1e-9)


@pytest.mark.parametrize("number", [1, 3])
def test_merging_takes_two_models_or_more(place: Path, tmp_path: Path, number: int) -> None:
    result = run("merge", *[place / "first.sc"] * number, "-o", tmp_path / "m.sc")
    assert result.exit_code == (2 if number == 1 else 0)
    assert (tmp_path / "m.sc").exists() == (number > 1)


def test_models_of_two_kinds_are_not_merged(place: Path, tmp_path: Path) -> None:
    done("fit", place / "fruit.csv", "--classes", 2, "--kind", "sort=ignore", "-o", tmp_path / "found.sc")
    result = run("merge", place / "fruit.sc", tmp_path / "found.sc", "-o", tmp_path / "m.sc")
    assert result.exit_code == 3 and "is a NaiveBayes" in result.stderr and "of one kind" in result.stderr
    assert not (tmp_path / "m.sc").exists()


def test_a_model_does_not_differ_from_itself(place: Path) -> None:
    assert "nothing else changed" in done("diff", place / "fruit.sc", place / "fruit.sc").stdout
    found = json.loads(done("diff", place / "fruit.sc", place / "fruit.sc", "--json").stdout)
    assert found["schema"] == [] and {line["moved"] for line in found["columns"]} == {0.0}


def test_what_was_changed_is_what_is_said(place: Path, tmp_path: Path) -> None:
    """Weights of the second half are 30 more, green became blue, the column of visits went."""
    changed = [
        (ref, colour.replace("green", "blue"), f"{float(weight) + 30:.2f}" if weight[:1].isdigit() else "", site, sort)
        for ref, colour, weight, _, site, sort in ROWS
    ]
    write_table(tmp_path / "new.csv", changed, ("ref", "colour", "weight", "site", "sort"))
    words = ["--target", "sort", "--folds", 0, "--model", "naive-bayes", "--kind", "ref=ignore"]
    done("fit", tmp_path / "new.csv", *words, "-o", tmp_path / "new.sc")
    page = done("diff", place / "fruit.sc", tmp_path / "new.sc").stdout
    for said in ("rows: 120, then 120", "column 'visits' is gone", "new level 'blue'", "gone level 'green'"):
        assert said in page
    found = json.loads(done("diff", place / "fruit.sc", tmp_path / "new.sc", "--json").stdout)
    columns = {line["column"]: line for line in found["columns"]}
    assert columns["weight"]["after"]["mean"] - columns["weight"]["before"]["mean"] == pytest.approx(30, abs=0.01)
    old = {line["level"]: line["probability"] for line in columns["colour"]["before"]["levels"]}
    assert columns["colour"]["moved"] == pytest.approx(old["green"], rel=1e-6)
    assert all(line["before"] == line["after"] for line in found["classes"])


def test_changes_can_be_asked_for_in_python(place: Path) -> None:
    one, other = sc.load(place / "first.sc"), sc.load(place / "second.sc")
    found = sc.model_changes(one, other)
    assert found.rows == (60, 60) and [x.column for x in found.columns] and not found.nothing
    with pytest.raises(sc.DataError, match="needs two fitted models"):
        sc.model_changes(one, "b.sc")


# -- query


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("weight=120..140", ("weight", sc.conditions.between(120, 140))),
        ("weight=120..", ("weight", sc.conditions.between(low=120))),
        ("weight=..140", ("weight", sc.conditions.between(high=140))),
        ("weight>140", ("weight", sc.conditions.above(140))),
        ("weight>=140", ("weight", sc.conditions.between(low=140))),
        ("weight<120", ("weight", sc.conditions.below(120))),
        ("visits<=2", ("visits", sc.conditions.between(high=2))),
        ("visits!=2", ("visits", sc.conditions.not_(2))),
        ("colour=red|green", ("colour", sc.conditions.any_of("red", "green"))),
        ("colour!=red", ("colour", sc.conditions.not_("red"))),
        ("colour!=red|green", ("colour", sc.conditions.not_("red", "green"))),
        ("sort!=apple", ("sort", sc.conditions.not_("apple"))),
    ],
)
def test_a_condition_in_the_shell_is_that_of_python(place: Path, text: str, condition: tuple[str, Any]) -> None:
    of = "sort" if condition[0] != "sort" else "colour"
    told = json.loads(done("query", place / "fruit.sc", "--of", of, "--given", text, "--json").stdout)["levels"]
    found = {line["level"]: line["probability"] for line in told}
    assert found == pytest.approx(sc.load(place / "fruit.sc").query(of, dict([condition])), rel=1e-12)


def test_without_a_column_every_column_is_told(place: Path) -> None:
    page = done("query", place / "fruit.sc", "--given", "weight>140").stdout
    assert page.startswith("Every column, given weight above 140\n")
    found = json.loads(done("query", place / "fruit.sc", "--given", "weight>140", "--json").stdout)
    assert [line["of"] for line in found["columns"]] == ["sort", "colour", "visits", "site"]  # a constant
    assert found["given"] == {"weight": {"above": 140.0}}


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("weight", 2, "in quotes"),
        ("weight>heavy", 3, "'heavy' is not a number"),
        ("weight=140..120", 3, "holds nothing"),
        ("colour!=rad", 3, "Did you mean 'red'"),
        ("colour=red|rad", 3, "Did you mean 'red'"),
        ("wight>3", 3, "Did you mean 'weight'"),
        ("colour>3", 3, "no numbers for levels"),
    ],
)
def test_a_condition_that_means_nothing_is_refused(place: Path, text: str, code: int, said: str) -> None:
    result = run("query", place / "fruit.sc", "--of", "sort", "--given", text)
    assert result.exit_code == code and said in result.stderr


def test_samples_keep_to_conditions(place: Path) -> None:
    words = ["sample", place / "fruit.sc", "-n", 50, "--given", "weight=120..140", "--given", "colour!=red"]
    found = sheet(done(*words).stdout)
    assert len(found) == 50 and all(120 <= float(line["weight"]) <= 140 for line in found)
    assert "red" not in {line["colour"] for line in found}


# -- how much is said


def test_missing_cells_are_told_to_who_wants_to_know(place: Path) -> None:
    words = ["predict", place / "fruit.sc", place / "fruit.csv"]
    assert "missing" not in done(*words).stderr
    loud = done(*words, "-v").stderr
    assert "missing cells treated as unknown" in loud and done("-v", *words).stderr == loud


def test_quiet_is_quiet_but_for_errors(place: Path, tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", [("mauve", "1")], ("colour", "other"))
    words = ["predict", place / "fruit.sc", tmp_path / "t.csv"]
    assert "not in the model" in done(*words).stderr
    assert done(*words, "-q").stderr == done("-q", *words).stderr == ""
    assert done(*words, "-q").stdout == done(*words).stdout
    assert "no column" in run(*words, "--keep", "x", "-q").stderr
    assert run(*words, "-q", "-v").exit_code == run("-q", *words, "-v").exit_code == 2


# -- every command


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell: str) -> None:
    assert "_SOFTCOUNT_COMPLETE" in done("completion", shell).stdout


def test_another_shell_is_refused() -> None:
    assert run("completion", "tcsh").exit_code == 2


@pytest.mark.parametrize("name", list(main.commands))
def test_every_command_is_in_the_documentation_and_has_help_alike(name: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    assert f"softcount {name}" in text or f"`{name} " in text
    page = done(name, "--help-all").stdout
    assert "Examples:" in page and "-q, --quiet" in page and "-v, --verbose" in page
