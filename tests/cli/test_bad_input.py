"""Bad input at the command line: one clear line, the documented exit code, no traceback, nothing half-written."""

from __future__ import annotations

import gzip
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from cli.shell import softcount_command
from cli.tables import HEADER, fruit_rows, write_table
from softcount.cli import main

ROWS = fruit_rows()
DATA, MODEL, USAGE = 3, 4, 2


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in arguments])


def refused(result: Result, code: int, *words: str) -> None:
    """The command failed with that code and one line that holds the words."""
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    first, *hints = result.stderr.splitlines()
    assert first.startswith("error: ")
    assert not any(line.startswith(("Traceback", "error:")) for line in hints)
    assert "internal error" not in first
    for word in words:
        assert word in result.stderr, (word, result.stderr)


def table_text(rows: list[tuple[str, ...]] = ROWS) -> bytes:
    return b"".join(",".join(row).encode() + b"\n" for row in [HEADER, *rows])


def parquet_bytes() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({name: [row[place] for row in ROWS] for place, name in enumerate(HEADER)}), sink)
    return bytes(sink.getvalue())


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


CONTENT: dict[str, tuple[str, bytes, tuple[str, ...]]] = {
    "empty": ("a.csv", b"", ("empty",)),
    "header only": ("a.csv", b"a,b,sort\n", ("row",)),
    "truncated gzip": ("a.csv.gz", gzip.compress(table_text())[:-20], ("a.csv.gz",)),
    "truncated parquet": ("a.parquet", parquet_bytes()[:-50], ("a.parquet",)),
    "bit-flipped parquet": ("a.parquet", flipped(parquet_bytes(), -20), ("a.parquet",)),
    "parquet by name only": ("a.parquet", b"PAR1" + bytes(100), ("a.parquet",)),
    "NUL": ("a.csv", b"a,sort\n1,x\n\x00,y\n2,x\n", ("NUL",)),
    "short row": ("a.csv", b"a,b,sort\n1,2,x\n3\n1,4,y\n", ("row 2",)),
    "long row": ("a.csv", b"a,b,sort\n1,2,x\n3,4,y,5\n", ("row 2",)),
    "unclosed quote": ("a.csv", b'a,sort\n1,x\n"2,y\n3,x\n', ("quote",)),
    "duplicate names": ("a.csv", b"a,a,sort\n1,2,x\n3,4,y\n", ("'a'",)),
}


@pytest.mark.parametrize("name", CONTENT)
def test_a_file_that_is_no_table_is_refused_by_name(name, tmp_path):
    file, content, words = CONTENT[name]
    path = tmp_path / file
    path.write_bytes(content)
    refused(run("fit", path, "--target", "sort", "-o", tmp_path / "m.sc"), DATA, *words)
    assert [entry.name for entry in tmp_path.iterdir()] == [file]


def test_a_missing_file_a_folder_and_an_unreadable_file_are_refused(tmp_path):
    refused(run("schema", tmp_path / "none.csv"), DATA, "none.csv")
    refused(run("schema", tmp_path), DATA, tmp_path.name)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="this user may read every file")
def test_an_unreadable_file_is_refused(tmp_path):
    path = write_table(tmp_path / "a.csv", ROWS)
    path.chmod(0)
    refused(run("schema", path), DATA, "a.csv")


CELLS: dict[str, tuple[str, list[str], tuple[str, ...]]] = {
    "infinite value": ("x=normal", ["1.5", "inf", "2.5"], ("'x'", "row 2")),
    "beyond double": ("x=normal", ["1.5", "2.5", "1e400"], ("'x'", "row 3")),
    "negative count": ("x=poisson", ["1", "2", "-3"], ("'x'", "row 3", "-3")),
    "word among numbers": ("x=normal", ["1.5", "many", "2.5"], ("'x'", "row 2", "many")),
    "unknown kind": ("x=nomral", ["1", "2", "3"], ("nomral",)),
    "kind of an unknown column": ("zz=normal", ["1", "2", "3"], ("zz",)),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_that_breaks_its_columns_kind_is_named(name, tmp_path):
    kind, cells, words = CELLS[name]
    write_table(tmp_path / "a.csv", [(cell, sort) for cell, sort in zip(cells, "pqp", strict=True)], ("x", "sort"))
    result = run("fit", tmp_path / "a.csv", "--target", "sort", "--kind", kind, "-o", tmp_path / "m.sc")
    refused(result, DATA, *words)
    assert not (tmp_path / "m.sc").exists()


@pytest.mark.parametrize("weights", [["1", "-1", "1"], ["0", "0", "0"], ["1", "heavy", "1"]], ids=" ".join)
def test_weights_that_are_no_weights_are_refused(weights, tmp_path):
    rows = [(cell, weight, sort) for cell, weight, sort in zip("abc", weights, "pqp", strict=True)]
    write_table(tmp_path / "a.csv", rows, ("x", "w", "sort"))
    refused(run("fit", tmp_path / "a.csv", "--target", "sort", "--weight", "w", "-o", tmp_path / "m.sc"), DATA, "w")


def test_a_target_or_weight_that_is_not_there_is_refused_with_what_is(tmp_path):
    write_table(tmp_path / "a.csv", ROWS)
    refused(run("fit", tmp_path / "a.csv", "--target", "sorts", "-o", tmp_path / "m.sc"), DATA, "sorts", "sort")
    refused(run("fit", tmp_path / "a.csv", "--target", "sort", "--weight", "zz", "-o", tmp_path / "m.sc"), DATA, "zz")


def test_a_wrong_extension_or_another_delimiter_is_seen_through(tmp_path):
    lines = b"".join(b";".join(cell.encode() for cell in row) + b"\n" for row in [HEADER, *ROWS])
    for name, content in {"a.parquet": table_text(), "a.csv": lines, "b.csv": gzip.compress(table_text())}.items():
        (tmp_path / name).write_bytes(content)
        result = run("schema", tmp_path / name)
        assert result.exit_code == 0, result.output
        assert "120 rows, 6 columns" in result.stdout


def test_more_classes_than_distinct_rows_are_noted(tmp_path):
    write_table(tmp_path / "a.csv", [("a", "1.5"), ("b", "2.5")] * 5, ("x", "y"))
    result = run("fit", tmp_path / "a.csv", "--classes", "9", "-o", tmp_path / "m.sc")
    assert result.exit_code == 0, result.output
    assert "9 classes" in result.stdout and "2 distinct rows" in result.stdout


def test_one_class_fits_and_is_noted(tmp_path):
    write_table(tmp_path / "a.csv", [(row[1], row[2], "apple") for row in ROWS], ("colour", "weight", "sort"))
    result = run("fit", tmp_path / "a.csv", "--target", "sort", "-o", tmp_path / "m.sc")
    assert result.exit_code == 0, result.output
    assert "one class" in result.output


def test_missing_labels_are_counted_and_used_as_unlabelled(tmp_path):
    rows = [(*row[:-1], "" if place % 4 == 0 else row[-1]) for place, row in enumerate(ROWS)]
    write_table(tmp_path / "a.csv", rows)
    result = run("fit", tmp_path / "a.csv", "--target", "sort", "-o", tmp_path / "m.sc")
    assert result.exit_code == 0, result.output
    assert "30" in result.stdout and "label" in result.stdout


def test_every_label_missing_is_refused_with_what_to_do(tmp_path):
    write_table(tmp_path / "a.csv", [(*row[:-1], "") for row in ROWS])
    refused(run("fit", tmp_path / "a.csv", "--target", "sort", "-o", tmp_path / "m.sc"), DATA, "label")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model")
    write_table(place / "fruit.csv", ROWS)
    done = run("fit", place / "fruit.csv", "--target", "sort", "--folds", "0", "-o", place / "m.sc")
    assert done.exit_code == 0, done.output
    return place / "m.sc"


def zip_bomb(path: Path, content: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("model.json", b" " * 50_000_000)


def traversal(path: Path, content: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../evil.npy", b"x")


def pickled(path: Path, content: bytes) -> None:
    import pickle

    path.write_bytes(pickle.dumps({"a": np.arange(3)}))


SPOILERS: dict[str, Callable[[Path, bytes], object]] = {
    "truncated": lambda path, content: path.write_bytes(content[: len(content) // 2]),
    "bit-flipped": lambda path, content: path.write_bytes(flipped(content, len(content) // 2)),
    "empty": lambda path, content: path.write_bytes(b""),
    "a table": lambda path, content: path.write_bytes(table_text()),
    "a pickle": pickled,
    "a zip bomb": zip_bomb,
    "traversal names": traversal,
}


@pytest.mark.parametrize("name", SPOILERS)
def test_a_file_that_is_no_model_is_refused(name, model, tmp_path):
    path = tmp_path / "spoilt.sc"
    SPOILERS[name](path, model.read_bytes())
    refused(run("show", path), MODEL, "spoilt.sc")


def test_a_model_that_is_not_there_or_is_a_folder_is_refused(tmp_path):
    refused(run("show", tmp_path / "none.sc"), MODEL, "none.sc")
    refused(run("show", tmp_path), MODEL, tmp_path.name)


def test_a_table_of_no_rows_has_nothing_to_predict(model, tmp_path):
    write_table(tmp_path / "none.csv", [])
    refused(run("predict", model, tmp_path / "none.csv"), DATA, "no rows")


def test_a_row_beyond_the_table_is_refused(model):
    refused(run("explain", model, model.parent / "fruit.csv", "--row", "121"), DATA, "row 121", "120")


def test_a_wrong_type_at_prediction_is_refused_by_column_and_row(model, tmp_path):
    write_table(tmp_path / "a.csv", [("red", "120.5", "2"), ("red", "heavy", "2")], ("colour", "weight", "visits"))
    refused(run("predict", model, tmp_path / "a.csv"), DATA, "weight", "heavy", "row 2")


def test_an_unseen_level_is_counted_and_no_error(model, tmp_path):
    write_table(tmp_path / "a.csv", [("violet", "120.5", "2")], ("colour", "weight", "visits"))
    result = run("predict", model, tmp_path / "a.csv")
    assert result.exit_code == 0, result.output
    assert "colour" in result.stderr


@pytest.mark.parametrize("command", ["fit", "predict", "sample"])
def test_a_missing_output_folder_is_found_before_the_work(command, model, tmp_path):
    table = model.parent / "fruit.csv"
    words = {"fit": [table, "--target", "sort"], "predict": [model, table], "sample": [model]}[command]
    refused(run(command, *words, "-o", tmp_path / "none" / "out"), DATA, "none")
    assert list(tmp_path.iterdir()) == []


def test_a_model_is_never_written_over_its_data(model):
    table = model.parent / "fruit.csv"
    before = table.read_bytes()
    refused(run("fit", table, "--target", "sort", "-o", table), USAGE, "fruit.csv")
    assert table.read_bytes() == before


def test_names_and_levels_cannot_reach_the_terminal_unescaped(tmp_path):
    nasty = "\x1b[31mred"
    write_table(tmp_path / "a.csv", [(nasty, "p"), ("blue", "q")] * 10, ("co\x1b[2Jlour", "sort"))
    for words in (
        ["fit", tmp_path / "a.csv", "--target", "sort", "-o", tmp_path / "m.sc"],
        ["show", tmp_path / "m.sc"],
    ):
        result = run(*words)
        assert result.exit_code == 0, result.output
        assert "\x1b" not in result.output
        assert "\\x1b[31mred" in result.output


def test_a_closed_pipe_ends_a_command_quietly(model):
    """`softcount predict ... | head -1`, through a real shell."""
    import subprocess
    import sys

    from cli.shell import SOURCES

    typed = f'"{sys.executable}" -m softcount.cli sample "{model}" -n 100000 | head -1'
    done = subprocess.run(
        ["sh", "-c", typed], capture_output=True, check=False, env={**os.environ, "PYTHONPATH": SOURCES}
    )
    assert done.stdout.startswith(b"colour,")
    assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
@pytest.mark.parametrize("words", [["show"], ["show", "--json"], ["sample"]], ids=" ".join)
def test_a_full_disk_is_one_line_and_a_matter_of_resources(words, model):
    import subprocess
    import sys

    from cli.shell import SOURCES

    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "softcount.cli", words[0], str(model), *words[1:]],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            env={**environment, "PYTHONPATH": SOURCES},
        )
    assert done.returncode == 5
    assert done.stderr.decode().strip() == "error: no space left on device"


def test_an_empty_standard_input_is_refused():
    done = softcount_command("schema", "-", input=b"")
    assert done.returncode == DATA
    assert done.stderr.startswith(b"error: ")
