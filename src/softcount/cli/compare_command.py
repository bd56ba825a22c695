"""softcount compare: naive Bayes and what else tells classes, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from softcount.cli import options

if TYPE_CHECKING:
    from softcount.cli.data_input import InputFormat

EPILOG = """\b
Examples:
  softcount compare adult.csv --target income
  softcount compare adult.csv --target income --curve         who wins with few rows, who with many
  softcount compare adult.csv --target income --plot curves.svg
  softcount compare adult.csv --target income --json | jq '.models[0]'

Tried are naive Bayes with numbers as they are, cut and under kernels, with a weight for each column, and with a tree
of columns; averaged one-dependence stars; a mixture for every class; what lies between naive Bayes and logistic
regression; the classifier that decides for itself; scikit-learn's logistic regression and gradient boosting. All learn
from the same rows and are asked for the same others: five folds, or above 15,000 rows a third held out once.
Rows without a class are left out."""


@click.command("compare", epilog=EPILOG, short_help="Set classifiers side by side on a table.")
@options.data_argument
@click.option("--target", required=True, metavar="COL", help="The column that holds the classes.")
@options.kind_option
@click.option("--curve", is_flag=True, help="Learn from ever more of the rows, too.")
@click.option("--plot", metavar="FILE", help="Write the learning curves as SVG (- is standard output).")
@click.option("--folds", type=click.IntRange(2), metavar="N", help="Folds instead of what the number of rows suggests.")
@options.format_options()
@options.seed_option
@options.json_option
def command(  # noqa: PLR0913 - one for each option
    data: str,
    target: str,
    kinds: dict[str, str],
    curve: bool,
    plot: str | None,
    folds: int | None,
    form: InputFormat,
    seed: int,
    json_wanted: bool,
) -> None:
    """Set classifiers of a column of DATA side by side, on rows they have not seen."""
    from softcount.cli import library_calls as library
    from softcount.cli.named_columns import suggestion
    from softcount.cli.outputs import STANDARD, check_plot, progress, put_answer, put_bytes
    from softcount.errors import DataError
    from softcount.estimators.comparison import compared
    from softcount.report import comparison_page as pages

    check_plot(plot, data, json_wanted)
    with progress() as tell:
        table = library.open_data(data, library.declared(kinds), form, tell)
        names = {str(key): key for key in table.source.keys}
        if target not in names:
            raise DataError(f"--target: {data} has no column {target!r}.\n  {suggestion(target, names)}")
        found = compared(table, names[target], kinds, curve or plot is not None, folds, seed, tell)
    if plot is not None and found.curves is not None:
        put_bytes(found.curves.svg().encode(), plot)
    if plot != STANDARD:
        put_answer(
            lambda: pages.comparison_document(found, target),
            lambda: pages.comparison_page(found, target, plot),
            json_wanted,
        )
