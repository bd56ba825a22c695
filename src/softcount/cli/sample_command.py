"""softcount sample: new rows, drawn from a model."""

from __future__ import annotations

import click

from softcount.cli.options import given_option, json_option, model_argument, output_option, seed_option

EPILOG = """\b
Examples:
  softcount sample adult.sc -n 1000 -o imagined.csv
  softcount sample adult.sc -n 5 --given income='>50K' --seed 7"""


@click.command("sample", epilog=EPILOG, short_help="Draw new rows from a model.")
@model_argument
@click.option("-n", "n", type=click.IntRange(0), default=100, show_default=True, metavar="N", help="How many rows.")
@given_option
@seed_option
@output_option("Write here instead of to standard output (CSV; Parquet if it ends in .parquet).")
@json_option
def command(model: str, n: int, given: tuple[str, ...], seed: int, output: str | None, json_wanted: bool) -> None:
    """Draw N new rows from MODEL, as CSV."""
    from softcount.cli import library_calls as engine
    from softcount.cli.named_columns import understood_given
    from softcount.cli.outputs import check_output, put_rows, refuse_overwriting

    refuse_overwriting(output, model)
    check_output(output)
    fitted = engine.load(model)
    put_rows(engine.sample(fitted, n, understood_given(fitted, given), seed), output, json_wanted)
