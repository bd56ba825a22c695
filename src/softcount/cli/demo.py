"""softcount demo and completion."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from softcount.cli import main
from softcount.cli.options import Request
from softcount.demo import TABLES, table_path

QUESTIONS = {"bicycles": ["--of", "price", "--given", "type=road", "--given", "brakes=disc"]}
"""A query worth showing for each bundled table."""


def demo(request: Request) -> None:
    name = request.name or next(iter(TABLES))
    table = table_path(name)
    model = f"{table.stem}.sc"
    with _folder(request.keep) as folder, chdir(folder):
        shutil.copyfile(table, table.name)
        for words in (
            ["fit", table.name, "--target", TABLES[name]],
            ["explain", model, table.name, "--row", "2"],
            ["query", model, *QUESTIONS[name]],
            ["sample", model, "-n", "3"],
        ):
            click.echo(f"$ softcount {shlex.join(words)}")
            main.main(words, prog_name="softcount", standalone_mode=False)
            click.echo()


@contextmanager
def _folder(keep: str | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
        return
    Path(keep).mkdir(parents=True, exist_ok=True)
    yield Path(keep)


def completion(request: Request) -> None:
    found = get_completion_class(request.shell)
    assert found is not None  # one of click's own
    click.echo(found(main, {}, "softcount", "_SOFTCOUNT_COMPLETE").source())
