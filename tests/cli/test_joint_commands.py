"""A joint model from the shell: fit, query, sample, impute, predict any column, rows that fit worst."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from softcount.cli import main
from softcount.demo import table_path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("joint")
    rows = [f"{kind},{size + place % 7 / 10},{place}" for place in range(120) for kind, size in KINDS[place % 3]]
    rows += [",2.1,7", "b,,9", "a,9.0,11"]
    (found / "rows.csv").write_text("\n".join(["kind,size,place", *rows]))
    return found


KINDS = [[("a", 2.0)], [("b", 9.0)], [("c", 5.0)]]


def run(folder: Path, line: str, code: int = 0) -> Result:
    words = [str(folder / word) if word.endswith((".csv", ".sc", ".html")) else word for word in line.split()]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def fitted(folder: Path) -> Result:
    return run(folder, "fit rows.csv --model joint --target kind -o rows.sc")


def test_a_fit_says_how_the_model_was_chosen_and_that_the_target_is_an_ordinary_column(fitted: Result) -> None:
    assert "Joint model, a " in fitted.output
    assert "nats per held-out row" in fitted.output
    assert "'kind' is an ordinary column of the joint" in fitted.output


def test_a_query_conditions_on_numbers_and_on_categories(folder: Path, fitted: Result) -> None:
    kinds = json.loads(run(folder, "query rows.sc --of kind --given size=9.2 --json").stdout)
    assert max(kinds["levels"], key=lambda level: level["probability"])["level"] == "b"
    size = json.loads(run(folder, "query rows.sc --of size --given kind=c --json").stdout)
    assert size["mean"] == pytest.approx(5.3, abs=0.2)
    assert "tree" in run(folder, "query rows.sc --of kind").stderr


def test_samples_have_the_columns_and_the_condition(folder: Path, fitted: Result) -> None:
    rows = list(csv.DictReader(io.StringIO(run(folder, "sample rows.sc -n 20 --given kind=a --seed 3").stdout)))
    assert list(rows[0]) == ["kind", "size", "place"]
    assert {row["kind"] for row in rows} == {"a"}
    assert sum(abs(float(row["size"]) - 2.3) < 1 for row in rows) > 15


def test_missing_cells_are_filled_from_the_rest_of_the_row(folder: Path, fitted: Result) -> None:
    rows = list(csv.DictReader(io.StringIO(run(folder, "impute rows.sc rows.csv").stdout)))
    assert rows[-3]["kind"] == "a"
    assert float(rows[-2]["size"]) == pytest.approx(9.3, abs=0.3)


def test_any_column_is_predicted_from_the_others(folder: Path, fitted: Result) -> None:
    kinds = list(csv.DictReader(io.StringIO(run(folder, "predict rows.sc rows.csv --of kind").stdout)))
    assert [row["predicted"] for row in kinds[:3]] == ["a", "b", "c"]
    assert sum(float(kinds[0][f"p({kind})"]) for kind in "abc") == pytest.approx(1.0, abs=1e-4)
    sizes = list(csv.DictReader(io.StringIO(run(folder, "predict rows.sc rows.csv --of size").stdout)))
    assert float(sizes[1]["predicted"]) == pytest.approx(9.3, abs=0.3)
    run(folder, "predict rows.sc rows.csv", code=2)


def test_the_row_that_fits_worst_is_named_with_its_reason(folder: Path, fitted: Result) -> None:
    first = json.loads(run(folder, "show rows.sc rows.csv --anomalies 1 --json").stdout)[0]
    assert first["row"] == 123
    assert {reason["column"] for reason in first["reasons"][:2]} <= {"size", "kind"}
    assert sum(reason["surprise"] for reason in first["reasons"]) == pytest.approx(first["score"])


def test_pages_show_the_candidates_and_the_columns(folder: Path, fitted: Result) -> None:
    found = json.loads(run(folder, "show rows.sc --json").stdout)
    assert found["model"] == "joint"
    assert found["tried"][0]["held_out"] == max(trial["held_out"] for trial in found["tried"])
    run(folder, "report rows.sc -o report.html")
    assert "Candidates" in (folder / "report.html").read_text()


@pytest.mark.parametrize("line", ["explain rows.sc rows.csv --row 1", "evaluate rows.sc rows.csv", "explore rows.sc"])
def test_commands_without_an_answer_name_those_that_have_one(folder: Path, fitted: Result, line: str) -> None:
    assert "a joint model, which" in run(folder, line, code=3).stderr


@pytest.mark.parametrize(
    ("more", "code"), [("--classes 3", 2), ("--holdout 10", 2), ("--engine dask", 2), ("--kind size=auto", 3)]
)
def test_options_of_other_models_are_refused(folder: Path, more: str, code: int) -> None:
    run(folder, f"fit rows.csv --model joint -o other.sc {more}", code)


def test_an_unknown_column_is_named_with_a_suggestion(folder: Path, fitted: Result) -> None:
    assert "size" in run(folder, "query rows.sc --of siz", code=3).stderr


def test_the_bundled_table_is_fitted(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["fit", str(table_path()), "--model", "joint", "-o", str(tmp_path / "b.sc")])
    assert result.exit_code == 0, result.output
    assert result.output.count("\n") <= 40
