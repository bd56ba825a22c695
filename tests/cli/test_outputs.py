"""Results: where they were asked for, whole or not at all, and never over an input."""

from __future__ import annotations

import errno
import io
import json

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import softcount as sc
from cli.stand_in import NASTY
from softcount.cli import main
from softcount.cli.options import Request
from softcount.cli.outputs import write_rows


@pytest.fixture
def model(tmp_path):
    """A model file whose every row is the same: a level that no terminal should see, and 7.5."""
    path = tmp_path / "m.sc"
    rows = {"colour": [NASTY] * 3, "size": [7.5] * 3}
    sc.Mixture(n_components=1, kinds=dict.fromkeys(rows, "categorical"), estimate="ml").fit(rows).save(path)
    return path


def sample(model, *arguments):
    return CliRunner().invoke(main, ["sample", str(model), "-n", "2", "--seed", "7", *map(str, arguments)])


def test_rows_go_to_standard_output_as_csv(model):
    result = sample(model)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f'colour,size\n"{NASTY}",7.5\n"{NASTY}",7.5\n'


def test_a_dash_is_standard_output(model):
    assert sample(model, "-o", "-").stdout == sample(model).stdout


def test_rows_go_to_the_file_asked_for(model, tmp_path):
    result = sample(model, "-o", tmp_path / "out.csv")
    assert (result.exit_code, result.stdout) == (0, "")
    assert (tmp_path / "out.csv").read_text() == sample(model).stdout


def test_a_parquet_name_gets_parquet(model, tmp_path):
    sample(model, "-o", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == [{"colour": NASTY, "size": 7.5}] * 2


def test_json_is_one_document_on_standard_output_or_in_the_file(model, tmp_path):
    assert json.loads(sample(model, "--json").stdout) == [{"colour": NASTY, "size": 7.5}] * 2
    sample(model, "--json", "-o", tmp_path / "out.json")
    assert (tmp_path / "out.json").read_text() == sample(model, "--json").stdout


def test_a_missing_folder_is_found_before_the_model_is_read(tmp_path):
    result = sample(tmp_path / "no-model.sc", "-o", tmp_path / "nowhere" / "out.csv")
    assert result.exit_code == 3
    assert "nowhere" in result.stderr and "no-model" not in result.stderr


def test_an_output_that_is_an_input_is_refused_and_left_alone(model):
    before = model.read_bytes()
    assert sample(model, "-o", model).exit_code == 2
    assert model.read_bytes() == before


def at_terminal(monkeypatch):
    """Standard output as a terminal has it, and the screen it goes to."""
    screen = io.TextIOWrapper(io.BytesIO())
    screen.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdout", screen)
    return screen


def test_a_person_at_a_terminal_sees_escapes_spelled_out(monkeypatch):
    screen = at_terminal(monkeypatch)
    rows = pa.table({"colour": [NASTY], "size": [7.5]})
    write_rows(rows, Request(output=None, json=False))
    write_rows(rows, Request(output=None, json=True))
    shown = screen.buffer.getvalue().decode()
    assert shown.startswith('colour,size\n"re\\x1b[31md\n[bold]\\u202e",7.5\n')
    assert all(char.isprintable() for char in shown.replace("\n", ""))


def test_a_model_is_not_sent_to_a_terminal(monkeypatch):
    at_terminal(monkeypatch)
    with pytest.raises(click.UsageError, match="to the terminal; use -o FILE"):
        main.main(["fit", "a.csv", "-o", "-"], standalone_mode=False)


def test_a_failure_leaves_the_old_file_as_it_was(model, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "out.csv").write_text("old")
    monkeypatch.setattr("os.fsync", full)
    assert sample(model, "-o", tmp_path / "out.csv").exit_code == 5
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.sc", "out.csv"]
