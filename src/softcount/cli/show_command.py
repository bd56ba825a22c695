"""softcount show: what a model holds, and who of a table is in its classes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from softcount.cli.options import (
    cell_options,
    json_option,
    lines_option,
    lines_way,
    model_argument,
    optional_data_argument,
)

if TYPE_CHECKING:
    from softcount.cli.data_input import Cells
    from softcount.cli.library_calls import OnlyCentres
    from softcount.fitted.fitted_model import Fitted
    from softcount.report.class_page import SortedRows

EPILOG = """\b
Examples:
  softcount show adult.sc
  softcount show cars.sc cars.csv --anomalies 20
  softcount show adult.sc --json | jq .classes

With DATA, its rows are sorted into the classes: the surest and least sure members of each, how unsure the rows
are, and those that fit worst, with the columns that make them odd. Rows are counted from 1.

Influence is how far a class's column departs from the whole table's, in nats, as AutoClass reports it: summed over
the classes for a column, and relative to the most influential.

A column of text has the words that most mark each class: likelier there than in all other classes together, ranked
by how sure that is. Log-odds are in nats."""


@click.command("show", epilog=EPILOG, short_help="Say what a model holds.")
@model_argument
@optional_data_argument
@click.option(
    "--anomalies",
    type=click.IntRange(0),
    metavar="N",
    help="How many of the rows that fit worst to show.  [default: 10]",
)
@cell_options
@lines_option
@json_option
def command(
    model: str,
    data: str | None,
    anomalies: int | None,
    missing: tuple[str, ...],
    no_header: bool,
    lines: bool,
    json_wanted: bool,
) -> None:
    """Say what MODEL holds: its classes, its columns, and how the classes differ.

    With DATA, also who of its rows is in which class, and which rows fit nowhere.
    """
    if data is None and (anomalies is not None or missing or no_header or lines):
        raise click.UsageError("--anomalies, --missing, --no-header and --lines are about DATA, and none is given")
    from softcount.cli import library_calls as engine
    from softcount.cli.data_input import Cells
    from softcount.cli.outputs import put_document, put_page
    from softcount.report.model_page import model_document, model_page

    try:
        fitted = engine.load(model)
    except engine.OnlyCentres as found:
        if data is not None:
            raise
        show_centres(found, json_wanted)
        return
    cells = Cells(missing, no_header, lines_way(lines))
    rows = None if data is None else sort(fitted, data, cells, 10 if anomalies is None else anomalies)
    if json_wanted:
        put_document(model_document(fitted, rows))
    else:
        put_page(model_page(fitted, rows))


def show_centres(found: OnlyCentres, json_wanted: bool) -> None:
    """The page of a k-means file."""
    from softcount.cli.outputs import put_document, put_page
    from softcount.report.centres_page import centres_document, centres_page

    if json_wanted:
        put_document(centres_document(found.centres, found.names))
    else:
        put_page(centres_page(found.centres, found.names))


def sort(fitted: Fitted, data: str, cells: Cells, anomalies: int) -> SortedRows:
    """The rows of the table, sorted into the model's classes."""
    from softcount.cli import library_calls as engine
    from softcount.cli.prediction_notes import say_what_was_met
    from softcount.report.class_page import SortedRows as Rows
    from softcount.run.progress import progress_on

    with progress_on(sys.stderr) as tell:
        table = engine.open_like(fitted, data, cells, tell)
        sorting = engine.sort_rows(fitted, table, anomalies)
    say_what_was_met(fitted, table)
    return Rows(sorting, data, table.source.files)
