"""softcount explain: the reasons for a row's class, column by column, and for a document's, word by word."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from softcount.cli.row_reasons import Told
    from softcount.fitted.fitted_model import Fitted
    from softcount.report.page import Page
    from softcount.table import Table

EPILOG = """\b
Examples:
  softcount explain adult.sc new.csv --row 17
  softcount explain adult.sc new.csv --row 17 --against '>50K'
  softcount explain adult.sc new.csv -o reasons.csv
  softcount explain spam.sc message.txt
  softcount explain spam.sc mail/ --row 3

The figures are log-odds, in nats, of the predicted class against the runner-up (or the class of --against).
They add up exactly: (prior) plus every column gives (total). A missing cell gives 0. Rows are counted from 1.
Without --row, every row is explained, one line of CSV each; with --against, rows of that class itself get 0.

A column of text is explained by its words too, whose log-odds add up to the column's, and the document is shown
with them marked. Where text is all that MODEL reads, a file (or standard input) is one document, unless its first
line names the model's column or --no-header is given: then it is a table. With --row or --lines each line is a
document, as for `softcount predict`."""


@click.command("explain", epilog=EPILOG, short_help="Say why a row got its class, column by column.")
@model_argument
@data_argument
@click.option(
    "--row", "rows", multiple=True, type=click.IntRange(1), metavar="N", help="A row to explain. May be repeated."
)
@click.option("--against", metavar="CLASS", help="The class to compare with.  [default: the runner-up]")
@cell_options
@lines_option
@document_option
@output_option("Write the CSV here instead of to standard output.")
@json_option
def command(
    model: str,
    data: str,
    rows: tuple[int, ...],
    against: str | None,
    missing: tuple[str, ...],
    no_header: bool,
    lines: bool,
    document: bool,
    output: str | None,
    json_wanted: bool,
) -> None:
    """Say why each row of DATA, or the document that it is, got its class from MODEL."""
    from softcount.cli import library_calls as engine
    from softcount.cli.data_input import Cells
    from softcount.cli.outputs import check_output, put_rows, refuse_overwriting
    from softcount.cli.prediction_notes import say_what_was_met
    from softcount.cli.row_reasons import every_row, some_rows
    from softcount.run.progress import progress_on

    cells = Cells(missing, no_header, way_of(lines, document), loose="lines" if rows else "document")
    refuse_overwriting(output, model, data)
    check_output(output)
    fitted = engine.load(model)
    with progress_on(sys.stderr) as tell:
        table = engine.open_like(fitted, data, cells, tell)
        title = document_title(table, data)
        if rows or title is not None:
            reasons, told = some_rows(fitted, table, rows or (1,), against, title)
        else:
            reasons, told = every_row(fitted, table, against), []
    if told and output is None:
        put_told(fitted, told, json_wanted)
    else:
        put_rows(reasons, output, json_wanted)
    say_what_was_met(fitted, table, cells=not told)


def document_title(table: Table, data: str) -> str | None:
    """What to call the one document that DATA is; None where it is a table."""
    from softcount.cli.outputs import STANDARD
    from softcount.table.source import ArrowSource

    if not isinstance(table.source, ArrowSource):
        return None
    return "The document" if data == STANDARD else data


def put_told(fitted: Fitted, told: list[Told], json_wanted: bool) -> None:
    """What there is to tell about a few rows, as pages or as one JSON document."""
    from softcount.cli.outputs import put_document, put_page

    if json_wanted:
        put_document([told_document(fitted, row) for row in told])
    else:
        put_page(told_page(fitted, told))


def told_page(fitted: Fitted, told: list[Told]) -> Page:
    from softcount.report.class_page import class_names
    from softcount.report.page import Page
    from softcount.report.reason_page import add_reasons
    from softcount.report.word_page import add_moved

    called = dict(zip(map(str, fitted.names), class_names(fitted), strict=True))
    page = Page()
    for row in told:
        add_reasons(page, row.line, row.cells, called, row.title, row.probability, fitted.calibration is not None)
        for found, document in row.words:
            add_moved(page, fitted, found, document)
    return page


def told_document(fitted: Fitted, row: Told) -> dict[str, Any]:
    """A row's figures by column and, where the model reads text, its words and where they stand."""
    from softcount.report.reason_page import PROBABILITY, WORDS
    from softcount.report.word_page import moved_document

    document = dict(row.line) | {PROBABILITY: row.probability}
    return document | {WORDS: [moved_document(fitted, *pair) for pair in row.words]} if row.words else document
