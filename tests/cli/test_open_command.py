"""softcount open: a table in, an explorer in the browser out."""

from __future__ import annotations

import shutil
import webbrowser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import softcount as sc
from softcount.cli import main
from softcount.demo import table_path

FAST = ("--model", "naive-bayes")


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that a browser was asked to show, in a folder with a table."""
    shutil.copy(table_path(), tmp_path / "bicycles.csv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISPLAY", ":0")
    found: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: found.append(address) or True)
    return found


def run(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["open", *words])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def test_the_model_and_its_page_are_written_and_the_page_is_shown(opened: list[str]) -> None:
    said = run("bicycles.csv", "--target", "type", *FAST)
    assert opened == [Path("bicycles.html").resolve().as_uri()]
    assert sc.load("bicycles.sc").classes_.tolist() == ["city", "mountain", "road"]
    assert "bicycles.html" in said.stderr and "Accuracy" in said.stderr
    page = Path("bicycles.html").read_text(encoding="utf-8")
    assert "<title>" in page and "road" in page


def test_the_page_is_that_of_explore(opened: list[str]) -> None:
    run("bicycles.csv", "--target", "type", *FAST, "-o", "one.html", "--model-file", "m.sc")
    CliRunner().invoke(main, ["explore", "m.sc", "bicycles.csv", "-o", "other.html"])
    assert Path("one.html").read_bytes() == Path("other.html").read_bytes()


def test_without_a_browser_or_a_display_the_page_is_only_written(
    opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("bicycles.csv", "--target", "type", *FAST, "--no-browser")
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    run("bicycles.csv", "--classes", "2", "--kind", "type=ignore")
    assert opened == [] and Path("bicycles.html").exists()


def test_standard_input_is_refused(opened: list[str]) -> None:
    assert "standard input" in run("-", code=2).stderr
