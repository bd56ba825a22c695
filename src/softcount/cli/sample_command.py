"""softcount sample: new rows, drawn from a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from softcount.cli import options
from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.table.schema import Schema

EPILOG = """\b
Examples:
  softcount sample adult.sc -n 1000 -o imagined.csv
  softcount sample adult.sc -n 5 --given income='>50K' --seed 7
  softcount sample alarm.bif -n 20000 -o alarm.csv
  softcount sample visits.sc -n 5 --length 40        sequences, with their hidden states

MODEL may be a network file (.bif, gzipped or not); of a network, hidden nodes are drawn too."""


@click.command("sample", epilog=EPILOG, short_help="Draw new rows from a model.")
@options.model_argument
@click.option(
    "-n",
    "n",
    type=click.IntRange(0),
    default=100,
    show_default=True,
    metavar="N",
    help="How many rows; sequences, where there are hidden states; steps, of a chain.",
)
@click.option(
    "--length",
    type=click.IntRange(1),
    metavar="STEPS",
    help="How long a sequence with hidden states is.  [default: 100]",
)
@options.given_option
@options.seed_option
@options.rows_output_option
@options.json_option
def command(
    model: str, n: int, length: int | None, given: tuple[str, ...], seed: int, output: str | None, json_wanted: bool
) -> None:
    """Draw N new rows from MODEL, as CSV."""
    import numpy as np
    import pyarrow as pa

    from softcount.cli import library_calls as library
    from softcount.cli import sequence_calls
    from softcount.cli.given_values import given_columns, given_nodes
    from softcount.cli.named_columns import say_answering_model
    from softcount.cli.outputs import check_output, is_parquet, put_rows
    from softcount.fitted.answers import sampled
    from softcount.fitted.fitted import Fitted
    from softcount.report.answer_page import cells_array
    from softcount.table.schema import labels

    check_output(output, model)
    states = sequence_calls.sequence_model(model)
    if states is not None:
        if given:
            raise DataError(f"{model}: a model of sequences, which takes no --given.")
        put_rows(sequence_calls.sampled(states, n, length, seed), output, json_wanted)
        return
    if length is not None:
        raise DataError(f"{model}: no model of sequences. Leave out --length.")
    fitted, rng = library.load_any(model), np.random.default_rng(seed)
    if isinstance(fitted, Fitted):
        rows = sampled(fitted, n, given_columns(fitted, given), rng)
    else:
        drawn = fitted.drawn(n, given_nodes(fitted, given), rng)
        rows = {name: drawn[key] for key, name in labels(drawn).items()}
    if not json_wanted and not is_parquet(output):
        rows = {name: _as_spelt(fitted.schema, name, cells) for name, cells in rows.items()}
    put_rows(pa.table({name: cells_array(cells) for name, cells in rows.items()}), output, json_wanted)
    say_answering_model(fitted)


def _as_spelt(schema: Schema, name: str, cells: Any) -> Any:
    """Numbers as text with the decimals that every cell of their column has; others as they are."""
    from softcount.table.cell_forms import spell_cells, spelt_decimals

    spec = schema.by_key.get(name)
    decimals = 0 if spec is None else spelt_decimals(spec.written)
    return spell_cells(cells, decimals) if decimals else cells
