"""softcount schema: how a table is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from softcount.cli import options

if TYPE_CHECKING:
    from softcount.cli.data_input import InputFormat

EPILOG = """\b
Examples:
  softcount schema adult.csv
  softcount schema adult.csv --kind zip=categorical --missing unknown
  softcount schema adult.csv --kind auto
  softcount schema adult.csv --json | jq '.columns[].kind'
  softcount schema mail/"""


@click.command("schema", epilog=EPILOG, short_help="Say how a table is read.")
@options.data_argument
@options.kind_option
@options.format_options()
@options.json_option
def command(data: str, kinds: dict[str, str], form: InputFormat, json_wanted: bool) -> None:
    """Say how the table DATA is read: the kind of each column and why, its levels, and what is missing."""
    from softcount.cli import library_calls as library
    from softcount.cli.outputs import progress, put_answer
    from softcount.evaluate.learn_model import choose_densities
    from softcount.learn.settings import Plan
    from softcount.report.model_page import schema_document, schema_page
    from softcount.run.local import Threads

    with progress() as tell:
        asked = library.declared(kinds)
        table = library.open_data(data, asked, form, tell)
        with Threads() as threads:
            table, _ = choose_densities(table, Plan(asked), threads, known_classes=True)
        found = library.read_through(table)
    put_answer(lambda: schema_document(*found), lambda: schema_page(*found), json_wanted)
