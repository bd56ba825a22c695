"""softcount impute: a table with its holes filled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from softcount.cli import options

if TYPE_CHECKING:
    from softcount.cli.data_input import InputFormat

EPILOG = """\b
Examples:
  softcount impute cars.sc cars.csv -o whole.csv
  softcount impute cars.sc cars.csv --digits 2 | head
  softcount impute asia.bif rows.csv -o whole.parquet

All columns of DATA, in its order, as they are written there. A missing number is what the model expects given the rest
of the row, a missing level the likeliest. Text, and columns that the model does not know, stay as they are."""


@click.command("impute", epilog=EPILOG, short_help="Fill the holes of a table.")
@options.model_argument
@options.data_argument
@options.digits_option
@options.format_options()
@options.rows_output_option
@options.json_option
def command(
    model: str, data: str, digits: int | None, form: InputFormat, output: str | None, json_wanted: bool
) -> None:
    """Fill the holes of DATA by what MODEL expects there."""
    from softcount.cli import library_calls as library
    from softcount.cli.data_columns import filled_columns
    from softcount.cli.named_columns import say_answering_model, say_prediction_notes
    from softcount.cli.network_calls import open_rows
    from softcount.cli.outputs import check_output, inform, progress, put_rows
    from softcount.fitted.answers import fills
    from softcount.fitted.fitted import Fitted

    check_output(output, model, data)
    fitted = library.load_any(model)
    with progress() as tell:
        if isinstance(fitted, Fitted):
            table = library.open_like(fitted, data, form, tell)
            found = fills(fitted, table)
        else:
            table = open_rows(fitted, data, form, None, tell)[0]
            found = fitted.fills(table)
    put_rows(filled_columns(table.source, found, digits), output, json_wanted)
    say_prediction_notes(fitted, table)
    cells = sum(len(rows) for rows, _ in found.values())
    if cells:
        say_answering_model(fitted)
    inform(f"{cells:,} holes filled" if cells != 1 else "1 hole filled")
