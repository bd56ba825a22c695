"""Results: where they were asked for, whole or not at all, and never over an input."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from cli.stand_in import NASTY, StandIn
from softcount.cli import main
from softcount.cli.outputs import put_rows


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A model file whose content is the stand-in, whatever it holds."""
    path = tmp_path / "m.sc"
    path.write_bytes(b"model")
    monkeypatch.setattr("softcount.cli.library_calls.load", lambda path: StandIn())
    monkeypatch.setattr("softcount.cli.library_calls.sample", rows_of)
    return path


def rows_of(fitted, n, given, seed):
    return pa.table({"colour": [NASTY] * n, "size": [float(seed)] * n})


def sample(model, *arguments):
    return CliRunner().invoke(main, ["sample", str(model), "-n", "2", "--seed", "7", *map(str, arguments)])


def test_rows_go_to_standard_output_as_csv(model):
    result = sample(model)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f'colour,size\n"{NASTY}",7.0\n"{NASTY}",7.0\n'


def test_a_dash_is_standard_output(model):
    assert sample(model, "-o", "-").stdout == sample(model).stdout


def test_rows_go_to_the_file_asked_for(model, tmp_path):
    result = sample(model, "-o", tmp_path / "out.csv")
    assert (result.exit_code, result.stdout) == (0, "")
    assert (tmp_path / "out.csv").read_text() == sample(model).stdout


def test_a_parquet_name_gets_parquet(model, tmp_path):
    sample(model, "-o", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == [{"colour": NASTY, "size": 7.0}] * 2


def test_json_is_one_document_on_standard_output_or_in_the_file(model, tmp_path):
    assert json.loads(sample(model, "--json").stdout) == [{"colour": NASTY, "size": 7.0}] * 2
    sample(model, "--json", "-o", tmp_path / "out.json")
    assert (tmp_path / "out.json").read_text() == sample(model, "--json").stdout


def test_a_missing_folder_is_found_before_the_model_is_read(model, tmp_path, monkeypatch):
    def load(path):
        raise AssertionError("read first")

    monkeypatch.setattr("softcount.cli.library_calls.load", load)
    result = sample(model, "-o", tmp_path / "nowhere" / "out.csv")
    assert result.exit_code == 3
    assert "nowhere" in result.stderr


def test_an_output_that_is_an_input_is_refused_and_left_alone(model):
    result = sample(model, "-o", model)
    assert result.exit_code == 2
    assert model.read_bytes() == b"model"


def test_a_person_at_a_terminal_sees_escapes_spelled_out(monkeypatch):
    screen = io.TextIOWrapper(io.BytesIO())
    screen.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdout", screen)
    put_rows(rows_of(None, 1, {}, 7), None, json_wanted=False)
    put_rows(rows_of(None, 1, {}, 7), None, json_wanted=True)
    shown = screen.buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert shown.startswith('colour,size\n"re\\x1b[31md\n[bold]\\u202e",7.0\n')
    assert all(char.isprintable() for char in shown.replace("\n", ""))


def test_a_model_is_not_sent_to_a_terminal(monkeypatch, tmp_path):
    monkeypatch.setattr("softcount.cli.fit_command.at_terminal", lambda: True)
    result = CliRunner().invoke(main, ["fit", "a.csv", "-o", "-"])
    assert result.exit_code == 2
    assert "standard output" in result.stderr


def test_a_failure_leaves_the_old_file_as_it_was(model, tmp_path, monkeypatch):
    def fail(table, sink):
        sink.write(b"half")
        raise MemoryError

    (tmp_path / "out.csv").write_text("old")
    monkeypatch.setattr("softcount.report.sheet.write_csv", fail)
    assert sample(model, "-o", tmp_path / "out.csv").exit_code == 5
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.sc", "out.csv"]
