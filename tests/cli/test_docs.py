"""The pages of the command line that the documentation shows are what the commands print."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from softcount.cli import main
from softcount.demo import table_path

ROOT = Path(__file__).parents[2]
NAMES = (
    "README.md", "docs/cli.md", "docs/contributing/demo-table.md", "docs/guide/densities.md", "docs/how-to/export.md",
)  # fmt: skip
PAGES = [path for path in (ROOT / name for name in NAMES) if path.exists()]
MADE = {"found.sc": "fit bicycles.csv --kind type=ignore -o found.sc", "bicycles.sc": "fit bicycles.csv --target type"}
"""The models that commands read, and the commands that make them."""


def shown(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Each command about the bundled table, and the lines shown below it."""
    for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *lines = part.splitlines()
            if command.startswith("softcount ") and ("bicycles" in command or "found.sc" in command) and lines:
                yield command.partition("#")[0].removeprefix("softcount ").strip(), lines


EXAMPLES = [(page, command, lines) for page in PAGES for command, lines in shown(page)]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What every command printed so far, in a folder that has the bundled table."""
    folder = tmp_path_factory.mktemp("docs")
    shutil.copy(table_path(), folder / "bicycles.csv")
    return {"folder": str(folder)}


def ran(command: str, printed: dict[str, str]) -> str:
    if command not in printed:
        for made, maker in MADE.items():
            if made in command and command != maker:
                ran(maker, printed)
        result = CliRunner().invoke(main, shlex.split(command))
        assert result.exit_code == 0, (command, result.output)
        printed[command] = result.stdout
    return printed[command]


@pytest.mark.skipif(not PAGES, reason="the documentation is not here")
def test_examples_are_found() -> None:
    assert len(EXAMPLES) >= 8


@pytest.mark.parametrize(("page", "command", "lines"), EXAMPLES, ids=[f"{p.name}: {c}" for p, c, _ in EXAMPLES])
def test_the_documentation_shows_what_is_printed(
    page: Path, command: str, lines: list[str], printed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(printed["folder"])
    left = iter(ran(command, printed).splitlines())
    skipping = False
    for line in lines:
        if line.strip() == "...":
            skipping = True
            continue
        found = next((there for there in left if there == line), None) if skipping else next(left, None)
        assert found == line, (page.name, command, line)
        skipping = False
