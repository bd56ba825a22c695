"""softcount export, from the shell."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

from softcount.cli import main

ROWS = "id,size,colour,kind\n" + "".join(
    f"{j},{1 + j % 7 + 5 * (j % 2)},{'red' if j % 3 else 'blue'},{'a' if j % 2 else 'b'}\n" for j in range(60)
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    (folder / "rows.csv").write_text(ROWS)
    words = ["fit", str(folder / "rows.csv"), "--target", "kind", "--model", "naive-bayes", "-o", str(folder / "m.sc")]
    found = CliRunner().invoke(main, [*words, "--kind", "size=normal", "--kind", "id=ignore"])
    assert found.exit_code == 0, found.output
    return folder / "m.sc"


def run(*words: object) -> tuple[int, str, str]:
    found = CliRunner().invoke(main, ["export", *map(str, words)])
    return found.exit_code, found.stdout, found.stderr


def test_a_query_is_written_and_what_came_of_its_check_is_said(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "score.sql"
    code, out, err = run(model, "--to", "sql", "--dialect", "sqlite", "--table", "things", "--keep", "id", "-o", target)
    assert (code, out) == (0, "")
    assert "score.sql; checked on 1,000 rows drawn from the model, by SQLite: probabilities differ by at most" in err
    with sqlite3.connect(":memory:") as base:
        base.execute("CREATE TABLE things (id, size, colour)")
        base.execute("INSERT INTO things VALUES (7, 6.0, 'red'), (8, NULL, 'blue')")
        found = base.execute(target.read_text()).fetchall()
    assert [row[0] for row in found] == [7, 8] and all(abs(sum(row[2:]) - 1.0) < 1e-12 for row in found)


def test_a_query_goes_to_standard_output(model: Path) -> None:
    code, out, _ = run(model, "--to", "sql", "--dialect", "spark")
    assert code == 0 and out.startswith("-- Scores rows") and out.endswith(";\n") and "MATERIALIZED" not in out


def test_a_graph_is_written(model: Path, tmp_path: Path) -> None:
    import onnxruntime

    code, out, err = run(model, "--to", "onnx", "-o", tmp_path / "m.onnx")
    assert (code, out) == (0, "") and "m.onnx; checked on 1,000 rows drawn from the model, by onnxruntime" in err
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    assert [(x.name, x.type) for x in session.get_inputs()] == [
        ("size", "tensor(double)"),
        ("colour", "tensor(string)"),
    ]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--to", "sql", "--dialect", "mysql"), 2, "'mysql' is not one of"),
        (("--to", "bif"), 2, "name the output"),
        (("--to", "bif", "-o", "x.bif"), 3, "only networks are written as BIF"),
        (("--to", "sql", "--table", "a..b"), 3, "not a name of a table"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(model: Path, words: tuple[str, ...], code: int, said: str) -> None:
    found, out, err = run(model, *words)
    assert found == code and out == "" and said in err


def test_a_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    import softcount as sc

    sc.MarkovChain(1).fit([["a", "b", "a"]]).save(tmp_path / "chain.sc")
    code, _, err = run(tmp_path / "chain.sc", "--to", "sql")
    assert code == 3 and "MarkovChain, which is not a sum over columns" in err
