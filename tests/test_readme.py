"""What the README shows can be pasted: its Python block, and the commands of its shell block in their order."""

from __future__ import annotations

import ast
import re
import shlex
import warnings
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from softcount import families
from softcount.cli import main

README = Path(__file__).parents[1] / "README.md"
pytestmark = pytest.mark.skipif(not README.exists(), reason="the README is not here")


def block(language: str, word: str) -> str:
    """The first block in this language that has the word."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    return next(text for kind, text in blocks if kind == language and word in text)


def test_the_python_block_gives_the_values_in_its_comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text, names, checked = block("python", "Classifier"), {}, 0
    scope: dict[str, Any] = names
    lines = text.splitlines()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns that are left out on purpose
        for statement in ast.parse(text).body:
            source = ast.get_source_segment(text, statement) or ""
            _, arrow, expected = lines[(statement.end_lineno or 1) - 1].partition("# -> ")
            if arrow:
                assert str(eval(source, scope)) == expected, source
                checked += 1
            else:
                exec(source, scope)
    assert checked >= 2
    assert {"report.html", "bikes.sc"} <= {path.name for path in tmp_path.iterdir()}


def test_the_shell_block_runs_on_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line in block("", "softcount demo --keep").splitlines():
        command, *rest = shlex.split(line)
        if command == "cd":
            monkeypatch.chdir(Path.cwd() / rest[0])
            continue
        result = CliRunner().invoke(main, rest)
        assert result.exit_code == 0, (line, result.output)
    written = {path.name for path in Path.cwd().iterdir()}
    assert {"bicycles.sc", "predicted.csv", "report.html", "explore.html"} <= written


def test_every_link_of_the_readme_is_a_file() -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README.read_text(encoding="utf-8"))
    assert len(links) > 20
    for link in links:
        assert link.startswith("http") or (README.parent / link).exists(), link


def test_the_accuracy_table_is_that_of_the_benchmark() -> None:
    page = README.parent / "docs" / "benchmarks" / "classifiers.md"
    mean = next(line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| mean |"))
    figures = re.findall(r"\.\d+ / \.\d+", mean)
    shown = re.findall(r"^\| .* \| (\.\d+) \| (\.\d+) \|$", README.read_text(encoding="utf-8"), flags=re.M)
    assert len(shown) == 4
    assert {f"{accuracy} / {loss}" for accuracy, loss in shown} == set(figures)


def test_the_changelog_counts_commands_and_families() -> None:
    text = (README.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"{len(main.commands)} subcommands" in text
    assert f"{len(families.__all__)} families" in text
