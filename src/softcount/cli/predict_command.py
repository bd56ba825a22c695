"""softcount predict: the class of every row, with its probabilities."""

from __future__ import annotations

import sys

import click

from softcount.cli.options import (
    cell_options,
    data_argument,
    document_option,
    json_option,
    lines_option,
    model_argument,
    output_option,
    way_of,
)

EPILOG = """\b
Examples:
  softcount predict adult.sc new.csv -o predicted.csv
  softcount predict adult.sc new.csv | head
  softcount predict cars.sc - < cars.csv
  softcount predict spam.sc mail/                    one line per document, its file first
  softcount predict spam.sc - < messages.txt         one line per line

One line per row of DATA, in its order: the predicted class, then the probability of each class. Columns may
be in any order; a missing cell or column is no evidence, and what is not in the model is left out. With --anomaly
the last column is the row's anomaly score; `softcount show MODEL DATA` says which columns make a row odd.

A folder or a tar file holds one document in each file. Where text is all that MODEL reads, each line of any other
file, or of standard input, is a document, unless the first line (as CSV or TSV) names the model's column or
--no-header is given: then it is a table. What looks like a table without that column is refused. --lines and
--document leave nothing to be decided."""


@click.command("predict", epilog=EPILOG, short_help="Predict the class of every row of a table.")
@model_argument
@data_argument
@click.option("--anomaly", is_flag=True, help="Add how odd each row is: nats more surprising than usual in its class.")
@cell_options
@lines_option
@document_option
@output_option("Write here instead of to standard output (CSV; Parquet if it ends in .parquet).")
@json_option
def command(
    model: str,
    data: str,
    anomaly: bool,
    missing: tuple[str, ...],
    no_header: bool,
    lines: bool,
    document: bool,
    output: str | None,
    json_wanted: bool,
) -> None:
    """Predict the class of every row of DATA by MODEL."""
    from softcount.cli import library_calls as engine
    from softcount.cli.data_input import Cells
    from softcount.cli.outputs import check_output, put_rows, refuse_overwriting
    from softcount.cli.prediction_notes import say_what_was_met
    from softcount.report.answer_page import prediction_table
    from softcount.run.progress import progress_on

    cells = Cells(missing, no_header, way_of(lines, document))
    refuse_overwriting(output, model, data)
    check_output(output)
    fitted = engine.load(model)
    with progress_on(sys.stderr) as tell:
        table = engine.open_like(fitted, data, cells, tell)
        proba = engine.proba(fitted, table)
        scores = engine.anomaly_scores(fitted, table) if anomaly else None
    put_rows(prediction_table(fitted, proba, scores, table.source.files), output, json_wanted)
    say_what_was_met(fitted, table)
