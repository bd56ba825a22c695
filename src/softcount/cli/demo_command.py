"""softcount demo: the main job on a table that comes with the library."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import click

QUESTIONS = {"bicycles": ["--of", "price", "--given", "type=road", "--given", "brakes=disc"]}
"""What is worth asking about a bundled table."""

EPILOG = """\b
Examples:
  softcount demo
  softcount demo --keep playground      keep the table and the model, to go on with"""


@click.command("demo", epilog=EPILOG, short_help="Show the main job on a small table.")
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--keep", metavar="FOLDER", help="Put the table and the model in this folder and leave them there.")
def command(name: str | None, keep: str | None) -> None:
    """Run the main job on the table NAME that comes with Softcount, showing each command before it runs."""
    from softcount.demo import TABLES, table_path

    chosen = name or next(iter(TABLES))
    table = table_path(chosen)
    with place(keep) as folder, chdir(folder):
        shutil.copyfile(table, table.name)
        for line in commands(table.name, TABLES[chosen], QUESTIONS.get(chosen)):
            perform(line)


def commands(file: str, target: str, question: list[str] | None = None) -> list[list[str]]:
    """The main job, as one would type it."""
    model = Path(file).stem + ".sc"
    return [
        ["fit", file, "--target", target],
        ["explain", model, file, "--row", "2"],
        ["query", model, *(question or ["--of", target])],
        ["sample", model, "-n", "3"],
    ]


def perform(arguments: list[str]) -> None:
    """Show the command and run it."""
    from softcount.cli import main

    click.echo(f"$ softcount {shlex.join(arguments)}")
    main.main(arguments, prog_name="softcount", standalone_mode=False)
    click.echo()


@contextmanager
def place(keep: str | None) -> Iterator[Path]:
    """The folder to work in: the one to keep, or one that is gone afterwards."""
    if keep is None:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
        return
    Path(keep).mkdir(parents=True, exist_ok=True)
    yield Path(keep)
