"""softcount merge: several models as one of all their rows."""

from __future__ import annotations

import click

from softcount.cli import options
from softcount.errors import DataError

EPILOG = """\b
Examples:
  softcount merge monday.sc tuesday.sc -o both.sc
  softcount merge shops/*.sc -o all.sc

What models have counted is added, as if one had learned from the rows of all. Naive Bayes, networks without hidden
nodes, Markov chains, densities and bags of words can be merged; classes that were looked for cannot, as those of one
model are not those of another."""


@click.command("merge", epilog=EPILOG, short_help="Make one model of several.")
@click.argument("models", metavar="MODEL MODEL...", nargs=-1, required=True)
@options.output_option("Write the model of all rows here.", required=True)
def command(models: tuple[str, ...], output: str) -> None:
    """Add up what models have counted."""
    from softcount.cli.library_calls import save_by
    from softcount.cli.outputs import check_output, inform
    from softcount.estimators.saving import load_estimator

    if len(models) < 2:
        raise click.UsageError("give two models at least: softcount merge A B -o C")
    check_output(output, *models)
    found = load_estimator(models[0])
    for path in models[1:]:
        other = load_estimator(path)
        if type(other) is not type(found) or not hasattr(found, "merge"):
            names = f"{models[0]} is a {type(found).__name__}, {path} a {type(other).__name__}"
            alike = "both have to be of one kind" if type(other) is not type(found) else "which cannot be merged"
            raise DataError(f"{names}: {alike}.")
        found = found.merge(other)
    save_by(found.save, output)
    if output != "-":
        inform(f"Wrote {output}, of {_rows(found)}{len(models)} models.")


def _rows(model: object) -> str:
    counts = getattr(model, "counts_", None)
    rows = getattr(counts, "rows", None)
    return "" if rows is None else f"{rows:,.0f} rows in "
