"""softcount schema: how a table is read."""

from __future__ import annotations

import sys

import click

from softcount.cli.options import data_argument, json_option, reading_options

EPILOG = """\b
Examples:
  softcount schema adult.csv
  softcount schema adult.csv --kind zip=categorical --missing unknown
  softcount schema adult.csv --json | jq '.columns[].kind'"""


@click.command("schema", epilog=EPILOG, short_help="Say how a table is read.")
@data_argument
@reading_options
@json_option
def command(data: str, kinds: dict[str, str], missing: tuple[str, ...], no_header: bool, json_wanted: bool) -> None:
    """Say how the table DATA is read: the kind of each column and why, its levels, and what is missing."""
    from softcount.cli import engine
    from softcount.cli.outputs import put_document, put_page
    from softcount.report.columns import schema_document, schema_page
    from softcount.run.progress import progress_on

    with progress_on(sys.stderr) as tell:
        table = engine.open_data(data, engine.wishes(kinds), missing, no_header, tell)
        read, counts, n_rows = engine.read_through(table)
    if json_wanted:
        put_document(schema_document(read, n_rows, counts))
    else:
        put_page(schema_page(read, n_rows, counts))
