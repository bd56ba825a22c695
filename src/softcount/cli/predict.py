"""softcount predict: the class of every row, with its probabilities."""

from __future__ import annotations

import sys

import click

from softcount.cli.options import cell_options, data_argument, json_option, model_argument, output_option

EPILOG = """\b
Examples:
  softcount predict adult.sc new.csv -o predicted.csv
  softcount predict adult.sc new.csv | head
  softcount predict cars.sc - < cars.csv

One line per row of DATA, in its order: the predicted class, then the probability of each class. Columns may
be in any order; a missing cell or column is no evidence, and what is not in the model is left out. With --anomaly
the last column is the row's anomaly score; `softcount show MODEL DATA` says which columns make a row odd."""


@click.command("predict", epilog=EPILOG, short_help="Predict the class of every row of a table.")
@model_argument
@data_argument
@click.option("--anomaly", is_flag=True, help="Add how odd each row is: nats more surprising than usual in its class.")
@cell_options
@output_option("Write here instead of to standard output (CSV; Parquet if it ends in .parquet).")
@json_option
def command(
    model: str,
    data: str,
    anomaly: bool,
    missing: tuple[str, ...],
    no_header: bool,
    output: str | None,
    json_wanted: bool,
) -> None:
    """Predict the class of every row of DATA by MODEL."""
    from softcount.cli import engine
    from softcount.cli.met import say_what_was_met
    from softcount.cli.outputs import check_output, put_rows, refuse_overwriting
    from softcount.report.answers import prediction_table
    from softcount.run.progress import progress_on

    refuse_overwriting(output, model, data)
    check_output(output)
    fitted = engine.load(model)
    with progress_on(sys.stderr) as tell:
        table = engine.open_like(fitted, data, missing, no_header, tell)
        proba = engine.proba(fitted, table)
        scores = engine.anomaly_scores(fitted, table) if anomaly else None
    put_rows(prediction_table(fitted, proba, scores), output, json_wanted)
    say_what_was_met(fitted, table)
