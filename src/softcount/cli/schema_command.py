"""softcount schema: how a table is read."""

from __future__ import annotations

import sys

import click

from softcount.cli.options import data_argument, json_option, lines_option, lines_way, reading_options

EPILOG = """\b
Examples:
  softcount schema adult.csv
  softcount schema adult.csv --kind zip=categorical --missing unknown
  softcount schema adult.csv --json | jq '.columns[].kind'
  softcount schema mail/"""


@click.command("schema", epilog=EPILOG, short_help="Say how a table is read.")
@data_argument
@reading_options
@lines_option
@json_option
def command(
    data: str, kinds: dict[str, str], missing: tuple[str, ...], no_header: bool, lines: bool, json_wanted: bool
) -> None:
    """Say how the table DATA is read: the kind of each column and why, its levels, and what is missing."""
    from softcount.cli import library_calls as engine
    from softcount.cli.data_input import Cells
    from softcount.cli.outputs import put_document, put_page
    from softcount.cli.prediction_notes import notes_of
    from softcount.cli.streams import say
    from softcount.report.column_page import schema_document, schema_page
    from softcount.run.progress import progress_on

    with progress_on(sys.stderr) as tell:
        table = engine.open_data(data, engine.declared(kinds), Cells(missing, no_header, lines_way(lines)), tell)
        read, counts, n_rows = engine.read_through(table)
    for note in notes_of(table):
        say(f"note: {note}")
    if json_wanted:
        put_document(schema_document(read, n_rows, counts))
    else:
        put_page(schema_page(read, n_rows, counts))
