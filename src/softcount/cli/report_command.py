"""softcount report: a model, and a table if one is given, as one page with pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from softcount.cli import options
from softcount.errors import DataError

if TYPE_CHECKING:
    import numpy as np

    from softcount.cli.models import KMeansFile
    from softcount.cli.options import InputFormat
    from softcount.fitted.fitted import Fitted
    from softcount.report.classes import GivenRows
    from softcount.report.report import Report
    from softcount.run.progress import Tell
    from softcount.table import Table

EPILOG = """\b
Examples:
  softcount report adult.sc -o report.html           what the model file holds, as a page with pictures
  softcount report adult.sc new.csv -o report.html   also rows explained, and drift of new.csv against training
  softcount report adult.sc --redact -o for-all.html
  softcount report adult.sc -o report.json

The page is one file: it loads nothing, runs nothing, and opens anywhere. A name that ends in .json or .txt gets the
same page as data or as text. How good the model is on unseen rows is what `softcount fit` found and kept in the model
file; where DATA holds the target, the page also says how good it is there."""


@click.command("report", epilog=EPILOG, short_help="Write a page on a model, with pictures.")
@options.model_argument
@options.optional_data_argument
@click.option(
    "--redact",
    is_flag=True,
    help="Leave out every cell, and the name of every level of fewer than five rows: to be shown to anyone.",
)
@options.format_options()
@options.output_option("The page: .html, .json or .txt.  [default: MODEL's name with .html, in this folder]")
def command(model: str, data: str | None, redact: bool, form: InputFormat, output: str | None) -> None:
    """Write all that is known of MODEL as one page: verdict, data, how good, what matters, classes, rows, fit, origin.

    With DATA, a table read as the model reads it, also its rows and how its columns differ from training.
    """
    if data is None and form.is_asked_for:
        raise click.UsageError("--missing, --no-header and --lines are about DATA, and none is given")
    from softcount.cli.outputs import check_output, progress, put_bytes, say
    from softcount.report.report import ENDINGS

    saved = output or f"{Path(model).stem}.html"
    ending = ".html" if saved == "-" else Path(saved).suffix
    if ending.lower() not in ENDINGS:
        raise click.UsageError(f"-o {saved}: a report ends in {', '.join(ENDINGS)}")
    check_output(saved, model, *([] if data is None else [data]))
    with progress() as tell:
        content = report_on(model, data, form, redact, tell).render(ending).encode()
    put_bytes(content, saved)
    if saved != "-":
        say(f"the report, in {saved} ({len(content) / 1000:,.0f} KB)")


def report_on(model: str, data: str | None, form: InputFormat, redact: bool, tell: Tell) -> Report:
    """The report of a model file, and of a table beside it."""
    from softcount.cli import models as library
    from softcount.cli.models import sequence_model
    from softcount.cli.read import refuse_data
    from softcount.report.report import make_report

    chain = sequence_model(model)
    if chain is not None:
        refuse_data(model, data, "a model of sequences")
        return make_report(chain, None, redact)
    try:
        fitted: Any = library.load_any(model)
    except library.KMeansFile as found:
        from softcount.estimators.saving import load_estimator

        if found.centres.frame.unit:
            refuse_data(model, data, "spherical k-means, whose report takes rows in Python: load(MODEL).report(X)")
        return make_report(load_estimator(model), None if data is None else numbers_in(found, data, form), redact)
    if data is None:
        return make_report(fitted, None, redact)
    rows = summary_of if library.is_network(fitted) else rows_of
    return make_report(fitted, rows(fitted, data, form, tell), redact)


def numbers_in(found: KMeansFile, data: str, form: InputFormat) -> np.ndarray:
    """(rows x columns) the numbers of a table beside k-means; rows that miss one are left out."""
    import numpy as np

    from softcount.cli.read import open_like
    from softcount.fitted.compare import centre_classes

    chunks = open_like(centre_classes(found.centres, found.names), data, form).chunks()
    rows: np.ndarray = np.concatenate([np.zeros((0, len(found.names))), *(chunk.reals for chunk in chunks)])
    whole = ~np.isnan(rows).any(axis=1)
    if not whole.any():
        raise DataError(f"{data}: no row with all numbers, so there is nothing to report of it. Leave it out.")
    return np.asarray(rows[whole])


def summary_of(fitted: Any, data: str, form: InputFormat, tell: Tell) -> tuple[Any, str]:
    """The summary of a table beside a network, and its name."""
    from softcount.cli.read import open_rows
    from softcount.run.local import Threads
    from softcount.table.column_summary import summarise

    table, _ = open_rows(fitted, data, form, None, tell)
    before = None if fitted.record is None else fitted.record.table
    with Threads() as threads:
        found = summarise(table.chunks(threads.map), fitted.schema, before)
    if not found.rows:
        raise DataError(f"{data}: no rows, so there is nothing to report of it. Leave it out to see the network alone.")
    return found, Path(data).name


def rows_of(fitted: Fitted, data: str, form: InputFormat, tell: Tell) -> GivenRows:
    """What a table shows beside the model."""
    from softcount.cli.models import say_prediction_notes
    from softcount.cli.read import open_like
    from softcount.report.report import find_rows
    from softcount.run.local import Threads

    table = open_like(fitted, data, form, tell)
    labels = labels_of(fitted, table, form)
    with Threads() as threads:
        found = find_rows(fitted, table, threads, Path(data).name if data != "-" else "standard input", labels)
    say_prediction_notes(fitted, table)
    return found


def labels_of(fitted: Fitted, table: Table, form: InputFormat) -> np.ndarray | None:
    """The places of the rows' classes, where the table holds the target."""
    from softcount.evaluate.scores import as_named, label_places
    from softcount.table import read_labels

    if (
        fitted.classes is None
        or fitted.target is None
        or fitted.target not in (*table.source.keys, *table.source.aside)
    ):
        return None
    missing = form.missing or fitted.schema.missing
    labels = read_labels(table.source, fitted.target, missing)
    return label_places(as_named(labels, fitted.names), fitted.names)
