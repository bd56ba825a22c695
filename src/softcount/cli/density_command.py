"""softcount density: which density fits a column, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from softcount.cli import options

if TYPE_CHECKING:
    from softcount.cli.data_input import InputFormat

EPILOG = """\b
Examples:
  softcount density adult.csv --column age
  softcount density adult.csv --column age --compare         every density, ranked
  softcount density adult.csv --column age --by income --plot age.svg
  softcount density adult.csv --column age --json | jq '.densities[0]'

The candidates are those of --kind auto: normal; lognormal and gamma (if every value is above 0); exponential (if
none is below 0); Student's t; Poisson and geometric (if the values are counts); a spike and a density beside it (if
many values are equal); a histogram, Gaussian kernels, and two to four normals. Each is fitted to four fifths of the
rows and scored on the others, five times. With --by every group has densities of its own. A density is never
narrower than the rounding of the values."""


@click.command("density", epilog=EPILOG, short_help="Say which density fits a column, and draw it.")
@options.data_argument
@click.option("--column", required=True, metavar="COL", help="The column, of numbers.")
@click.option("--by", metavar="COL", help="A column whose levels have densities of their own.")
@click.option("--compare", is_flag=True, help="Show every density that was tried, not the best alone.")
@click.option("--plot", metavar="FILE", help="Write the picture as SVG (- is standard output).")
@options.format_options()
@options.seed_option
@options.json_option
def command(
    data: str,
    column: str,
    by: str | None,
    compare: bool,
    plot: str | None,
    form: InputFormat,
    seed: int,
    json_wanted: bool,
) -> None:
    """Rank densities of a column of DATA by the log-likelihood of rows held out, and draw them."""
    from softcount.cli.density_calls import read_column
    from softcount.cli.outputs import STANDARD, check_plot, progress, put_answer, put_bytes
    from softcount.evaluate.density_ranking import rank_densities
    from softcount.report.density_page import DensityReport, density_document, density_page, density_picture

    check_plot(plot, data, json_wanted)
    with progress() as tell:
        found = read_column(data, column, by, form, tell)
        report = DensityReport(
            column, by, found.missing, rank_densities(found.values, found.labels, seed, tell), compare
        )
    if plot is not None:
        put_bytes(density_picture(report).encode(), plot)
    if plot != STANDARD:
        put_answer(lambda: density_document(report), lambda: density_page(report, plot), json_wanted)
