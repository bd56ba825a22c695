"""softcount demo and completion."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from contextlib import chdir, nullcontext
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
    if request.keep is not None:
        Path(request.keep).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() if request.keep is None else nullcontext(request.keep) as folder, chdir(folder):
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


def completion(request: Request) -> None:
    found = get_completion_class(request.shell)
    assert found is not None  # one of click's own
    click.echo(found(main, {}, "softcount", "_SOFTCOUNT_COMPLETE").source())
