"""softcount plot: one picture of a report, by itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from softcount.cli import options

if TYPE_CHECKING:
    from softcount.cli.options import InputFormat
    from softcount.report.page import Picture
    from softcount.report.report import Report

PICTURES = {
    "confusion": "Who is taken for whom",
    "reliability": "Reliability",
    "lift": "Gain and lift",
    "influence": "Influence",
    "nomogram": "Nomogram",
    "profile": "What sets the classes apart",
    "ellipses": "Where the classes lie",
    "regions": "Who is likeliest where",
    "selection": "How many classes",
    "trace": "How the objective climbed",
    "frames": "The first iterations of EM",
    "sureness": "How sure rows are of their class",
    "missing": "Missing cells",
    "drift": "How far each column has moved",
    "rows": "Row ",
    "network": "Nodes and arcs",
    "transitions": "What follows",
    "graph": "As a graph",
    "centres": "Centres",
    "cost": "How the cost fell",
}
"""What can be asked for, and how the title of its picture begins; a column is asked for by --column."""

EPILOG = (
    """\b
Examples:
  softcount plot adult.sc --what nomogram -o nomogram.svg
  softcount plot adult.sc --what density --column age -o age.png
  softcount plot cars.sc cars.csv --what ellipses -o cars.svg

Pictures: density (with --column), """
    + ", ".join(PICTURES)
    + """.
Some need DATA (rows, drift, frames, sureness), others a model that has them. They are the pictures of `softcount
report`; a name that ends in .png needs matplotlib (pip install "softcount[plot]")."""
)


@click.command("plot", epilog=EPILOG, short_help="Write one picture of a model.")
@options.model_argument
@options.optional_data_argument
@click.option("--what", required=True, metavar="PICTURE", help="Which picture; see below.")
@click.option("--column", metavar="COL", help="The column of a density, or of bars of levels.")
@options.format_options()
@click.option("-o", "--output", required=True, metavar="FILE", help="The picture: .svg or .png.")
def command(model: str, data: str | None, what: str, column: str | None, form: InputFormat, output: str) -> None:
    """Write one picture of MODEL, and of DATA where the picture is of rows."""
    from softcount.cli.outputs import check_output, progress, put_bytes
    from softcount.cli.report_command import report_on

    ending = Path(output).suffix.lower()
    if ending not in (".svg", ".png"):
        raise click.UsageError(f"-o {output}: a picture ends in .svg or .png")
    if what not in (*PICTURES, "density"):
        raise click.UsageError(f"--what {what}: there is density, {', '.join(PICTURES)}")
    if (what == "density") != (column is not None):
        raise click.UsageError("--what density and --column go together")
    check_output(output, model, *([] if data is None else [data]))
    with progress() as tell:
        found = picture_of(report_on(model, data, form, False, tell), what, column, model)
    put_bytes(found.svg.encode() if ending == ".svg" else found.chart.draw().png(), output)


def picture_of(report: Report, what: str, column: str | None, model: str) -> Picture:
    """The first picture of the report that is what was asked for."""
    from softcount.errors import DataError
    from softcount.report.page import Picture

    found = [block for block in report.page.blocks if isinstance(block, Picture)]
    begins = column if column is not None else PICTURES[what]
    fitting = [x for x in found if (x.title == column if column is not None else x.title.startswith(str(begins)))]
    if fitting:
        return fitting[0]
    there = [name for name, title in PICTURES.items() if any(x.title.startswith(title) for x in found)]
    if column is not None:
        raise DataError(
            f"{model}: no picture of a column {column!r}: it has none such, or others say more of the classes."
        )
    more = " With DATA there are more." if what in ("rows", "drift", "frames", "sureness") else ""
    raise DataError(f"{model}: no picture {what!r}. There is: {', '.join(there)}.{more}")
