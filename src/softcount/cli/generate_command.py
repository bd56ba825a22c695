"""softcount generate: new text, or new sequences, from a chain."""

from __future__ import annotations

import click

from softcount.cli import options
from softcount.errors import DataError

EPILOG = """\b
Examples:
  softcount generate names.sc -n 20 --seed 7         twenty names
  softcount generate shakespeare.sc -n 500           a text of 500 characters
  softcount generate names.sc -n 5 --start el

A chain learned with --ends makes N sequences, each to its end, one on a line; another makes one of N steps.
Characters stand close, words and other symbols with blanks between them. `softcount sample` has the same as CSV, and
is for models of tables and of hidden states too."""


@click.command("generate", epilog=EPILOG, short_help="Write new text or sequences from a chain.")
@options.model_argument
@click.option("-n", "n", type=click.IntRange(1), default=100, show_default=True, metavar="N", help="How many.")
@click.option("--start", metavar="STEPS", help="How each begins: characters, or symbols with blanks between them.")
@options.seed_option
@options.output_option("Write here instead of to standard output.")
def command(model: str, n: int, start: str | None, seed: int, output: str | None) -> None:
    """Write N new sequences, or one of N steps, as the Markov chain MODEL makes them."""
    from softcount.cli import sequence_calls
    from softcount.cli.outputs import check_output, put_bytes

    check_output(output, model)
    chain = sequence_calls.sequence_model(model)
    if chain is None or sequence_calls.is_hidden(chain):
        raise DataError(f"{model}: no Markov chain, which this command needs. New rows: softcount sample {model}")
    put_bytes(sequence_calls.generated(chain, n, start, seed).encode(), output)
