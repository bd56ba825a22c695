"""softcount explain: the reasons for a row's class, column by column."""

from __future__ import annotations

import sys

import click

from softcount.cli.options import cell_options, data_argument, json_option, model_argument, output_option

EPILOG = """\b
Examples:
  softcount explain adult.sc new.csv --row 17
  softcount explain adult.sc new.csv --row 17 --against '>50K'
  softcount explain adult.sc new.csv -o reasons.csv

The figures are log-odds, in nats, of the predicted class against the runner-up (or the class of --against).
They add up exactly: (prior) plus every column gives (total). A missing cell gives 0. Rows are counted from 1.
Without --row, every row is explained, one line of CSV each."""


@click.command("explain", epilog=EPILOG, short_help="Say why a row got its class, column by column.")
@model_argument
@data_argument
@click.option(
    "--row", "rows", multiple=True, type=click.IntRange(1), metavar="N", help="A row to explain. May be repeated."
)
@click.option("--against", metavar="CLASS", help="The class to compare with.  [default: the runner-up]")
@cell_options
@output_option("Write the CSV here instead of to standard output.")
@json_option
def command(
    model: str,
    data: str,
    rows: tuple[int, ...],
    against: str | None,
    missing: tuple[str, ...],
    no_header: bool,
    output: str | None,
    json_wanted: bool,
) -> None:
    """Say why each row of DATA got its class from MODEL."""
    from softcount.cli import engine
    from softcount.cli.met import say_what_was_met
    from softcount.cli.outputs import check_output, put_page, put_rows, refuse_overwriting
    from softcount.report.classes import class_names
    from softcount.report.reasons import explanation_page
    from softcount.run.progress import progress_on

    refuse_overwriting(output, model, data)
    check_output(output)
    fitted = engine.load(model)
    with progress_on(sys.stderr) as tell:
        table = engine.open_like(fitted, data, missing, no_header, tell)
        reasons = engine.explain(fitted, table, rows, against)
    if rows and not json_wanted and output is None:
        called = dict(zip(map(str, fitted.names), class_names(fitted), strict=True))
        put_page(explanation_page(reasons.table, reasons.cells, called))
    else:
        put_rows(reasons.table, output, json_wanted)
    say_what_was_met(fitted, table, cells=not rows)
