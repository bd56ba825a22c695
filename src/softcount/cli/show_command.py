"""softcount show: what a model holds, and who of a table is in its classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from softcount.cli import options

if TYPE_CHECKING:
    from softcount.cli.data_input import InputFormat
    from softcount.fitted.fitted_model import Fitted
    from softcount.report.class_page import SortedRows

EPILOG = """\b
Examples:
  softcount show adult.sc
  softcount show cars.sc cars.csv --anomalies 20
  softcount show adult.sc --json | jq .classes

With DATA, its rows are sorted into the classes: the surest and least sure members of each, how unsure the rows
are, and those that fit worst, with the columns that make them odd. Rows are counted from 1.

Shares, means and deviations are those of the rows that MODEL was learned from. Rows are scored with parameters that
the prior has a part in; --parameters shows those.

Influence is how far a class's column departs from the whole table's, in nats, as AutoClass reports it: summed over
the classes for a column, and relative to the most influential.

A column of text has the words that most mark each class: likelier there than in all other classes together, ranked
by how sure that is. Log-odds are in nats."""


@click.command("show", epilog=EPILOG, short_help="Say what a model holds.")
@options.model_argument
@options.optional_data_argument
@click.option(
    "--anomalies",
    type=click.IntRange(0),
    metavar="N",
    help="How many of the rows that fit worst to show.  [default: 10]",
)
@click.option(
    "--parameters", is_flag=True, help="Show what rows are scored with, the prior included, not what they are like."
)
@options.format_options()
@options.json_option
def command(
    model: str, data: str | None, anomalies: int | None, parameters: bool, form: InputFormat, json_wanted: bool
) -> None:
    """Say what MODEL holds: its classes, its columns, and how the classes differ.

    With DATA, also who of its rows is in which class, and which rows fit nowhere.
    """
    if data is None and (anomalies is not None or form.is_asked_for):
        raise click.UsageError("--anomalies, --missing, --no-header and --lines are about DATA, and none is given")
    from softcount.cli import library_calls as library
    from softcount.cli.outputs import put_answer
    from softcount.report.model_page import centres_document, centres_page, model_document, model_page

    try:
        fitted = library.load(model)
    except library.KMeansFile as found:
        if data is not None:
            raise
        held = found.centres, found.names
        put_answer(lambda: centres_document(*held), lambda: centres_page(*held), json_wanted)
        return
    rows = None if data is None else sort(fitted, data, form, 10 if anomalies is None else anomalies)
    shown = fitted, rows, parameters
    put_answer(lambda: model_document(*shown), lambda: model_page(*shown), json_wanted)


def sort(fitted: Fitted, data: str, form: InputFormat, anomalies: int) -> SortedRows:
    """The rows of the table, sorted into the model's classes."""
    from softcount.cli import library_calls as library
    from softcount.cli.named_columns import say_prediction_notes
    from softcount.cli.outputs import progress
    from softcount.fitted.classes import sort_rows
    from softcount.report.class_page import SortedRows as Rows
    from softcount.run.threads import Threads

    with progress() as tell, Threads() as threads:
        table = library.open_like(fitted, data, form, tell)
        sorting = sort_rows(fitted, table, threads, anomalies=anomalies)
    say_prediction_notes(fitted, table)
    return Rows(sorting, data, table.source.files)
