"""softcount predict: the class of every row, with its probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from softcount.cli import options

if TYPE_CHECKING:
    from softcount.cli.data_input import InputFormat

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
@options.model_argument
@options.data_argument
@click.option("--anomaly", is_flag=True, help="Add how odd each row is: nats more surprising than usual in its class.")
@options.format_options(document=True)
@options.output_option("Write here instead of to standard output (CSV; Parquet if it ends in .parquet).")
@options.json_option
def command(model: str, data: str, anomaly: bool, form: InputFormat, output: str | None, json_wanted: bool) -> None:
    """Predict the class of every row of DATA by MODEL."""
    from softcount.cli import library_calls as library
    from softcount.cli.named_columns import say_prediction_notes
    from softcount.cli.outputs import check_output, progress, put_rows
    from softcount.fitted.classes import anomaly_scores
    from softcount.report.answer_page import prediction_table
    from softcount.run.threads import Threads

    check_output(output, model, data)
    fitted = library.load(model)
    with progress() as tell, Threads() as threads:
        table = library.open_like(fitted, data, form, tell)
        proba = fitted.proba(table, threads)
        scores = anomaly_scores(fitted, table, threads) if anomaly else None
    put_rows(prediction_table(fitted, proba, scores, table.source.files), output, json_wanted)
    say_prediction_notes(fitted, table)
