"""softcount show: what a model holds."""

from __future__ import annotations

import click

from softcount.cli.options import json_option, model_argument

EPILOG = """\b
Examples:
  softcount show adult.sc
  softcount show adult.sc --json | jq .classes"""


@click.command("show", epilog=EPILOG, short_help="Say what a model holds.")
@model_argument
@json_option
def command(model: str, json_wanted: bool) -> None:
    """Say what MODEL holds: its classes, its columns, and how the classes differ."""
    from softcount.cli import engine
    from softcount.cli.outputs import put_document, put_page
    from softcount.report.model import model_document, model_page

    fitted = engine.load(model)
    if json_wanted:
        put_document(model_document(fitted))
    else:
        put_page(model_page(fitted))
