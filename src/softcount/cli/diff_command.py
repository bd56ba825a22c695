"""softcount diff: what changed between two models."""

from __future__ import annotations

import click

from softcount.cli import options

EPILOG = """\b
Examples:
  softcount diff monday.sc tuesday.sc
  softcount diff old.sc new.sc --json | jq '.columns[0]'

Columns and levels that came or went, rows, shares of classes, and columns by how far they moved: the share of a
column's probability that lies elsewhere now, 0 % where nothing changed and 100 % where the two have nothing in common.
Classes that were looked for have numbers, which mean nothing in another model: then whole columns are compared."""


@click.command("diff", epilog=EPILOG, short_help="Say what changed between two models.")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@options.json_option
def command(old: str, new: str, json_wanted: bool) -> None:
    """Say what changed from the model OLD to the model NEW."""
    from softcount.cli import library_calls as library
    from softcount.cli.outputs import put_answer
    from softcount.fitted.compare import model_changes
    from softcount.report.change_page import change_document, change_page

    found = model_changes(library.load_any(old), library.load_any(new))
    put_answer(lambda: change_document(found), lambda: change_page(found, old, new), json_wanted)
