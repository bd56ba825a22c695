"""softcount export: a model as a query, a graph or a network file, for programs that do not know Softcount."""

from __future__ import annotations

from typing import Any

import click

from softcount.cli import options
from softcount.errors import DataError
from softcount.export import DIALECTS

EPILOG = """\b
Examples:
  softcount export adult.sc --to sql --dialect postgres --table people --keep id -o score.sql
  softcount export adult.sc --to sql --dialect sqlite | sqlite3 people.db
  softcount export adult.sc --to onnx -o adult.onnx
  softcount export asia.sc --to bif -o asia.bif

A query reads the columns of the model from --table and gives a line for every row: the predicted class, then the
probability of each, as `softcount predict` does; --keep has columns of the table come first. Cells that mean missing,
and levels never seen, are taken as the model takes them. Dates, durations and amounts with a unit go in as numbers
(seconds since 1970, numbers in the unit): the first lines of the query name the columns to cast in a view.

Words of a text are found in DuckDB, Postgres, Spark and BigQuery. A graph takes a tensor for every column: numbers
(dates as seconds since 1970) with NaN for missing, levels as text.

What is exported is first run on 1,000 rows drawn from the model, and the largest difference is said; where the two
differ by more than rounding nothing is written. Naive Bayes, mixtures, k-means, averaged stars and classifiers can be
exported, networks as BIF; a column that no such program can compute is named, with what to do."""


@click.command("export", epilog=EPILOG, short_help="Write a model for other programs.")
@options.model_argument
@click.option("--to", "form", required=True, type=click.Choice(["sql", "onnx", "bif"]), help="What to write.")
@click.option(
    "--dialect", type=click.Choice(DIALECTS), default="duckdb", show_default=True, help="The dialect of a query."
)
@click.option("--table", metavar="NAME", default="rows", show_default=True, help="The table that a query reads.")
@click.option("--keep", multiple=True, metavar="COLS", help="Columns of the table that come first (a,b). Repeatable.")
@options.output_option("Write here; a query goes to standard output otherwise.")
def command(model: str, form: str, dialect: str, table: str, keep: tuple[str, ...], output: str | None) -> None:
    """Write MODEL as something that other programs run."""
    from softcount.cli.outputs import check_output, inform, put_bytes
    from softcount.estimators.saving import load_estimator

    if form != "sql" and output is None:
        raise click.UsageError(f"say where to write: softcount export {model} --to {form} -o FILE")
    check_output(output, model)
    found = load_estimator(model)
    if form == "bif":
        _written(found, model, output)
        return
    from softcount.export.export_model import as_onnx, as_sql

    if form == "onnx":
        graph, check = as_onnx(_exporting(found, model))
        put_bytes(graph.SerializeToString(), output)
        inform(f"{_wrote(output)}{check}.")
        return
    text, check = as_sql(_exporting(found, model), dialect, table, [name for one in keep for name in one.split(",")])
    put_bytes(text.encode(), output)
    inform(f"{_wrote(output)}{check}.")


def _exporting(found: Any, model: str) -> Any:
    from softcount.estimators.exporting import Exporting

    if not isinstance(found, Exporting):
        raise DataError(
            f"{model} holds {type(found).__name__}, which is no sum over columns. Naive Bayes, mixtures, k-means and "
            "classifiers can be exported; networks with --to bif. Use it in Python: softcount.load(...)"
        )
    return found


def _written(found: Any, model: str, output: str | None) -> None:
    from softcount.cli.outputs import inform

    if not hasattr(found, "write"):
        raise DataError(
            f"{model} holds {type(found).__name__}, and only networks are written as BIF. Export it with --to sql or "
            "--to onnx, or fit a network: softcount fit DATA --net tan"
        )
    found.write(output)
    inform(f"Wrote {output}.")


def _wrote(output: str | None) -> str:
    return "" if output in (None, "-") else f"Wrote {output}; "
