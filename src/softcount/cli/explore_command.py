"""softcount explore: a page to play with a model, any column from any others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from softcount.cli import options

if TYPE_CHECKING:
    from softcount.cli.data_input import InputFormat

EPILOG = """\b
Examples:
  softcount explore adult.sc                             writes adult.html
  softcount explore adult.sc -o explore.html
  softcount explore adult.sc new.csv -o explore.html     with the first rows of new.csv, to load

The page is one file that asks nothing of any other place: open it in a browser, send it to somebody. Click a level or
a bar to say that it is so, and every other column moves. It holds the model's probabilities, and with DATA its first
200 rows."""


@click.command("explore", epilog=EPILOG, short_help="Write a page to play with a model, any column from any others.")
@options.model_argument
@options.optional_data_argument
@options.output_option("Write the page here.  [default: the model's name with .html]")
@options.format_options()
def command(model: str, data: str | None, output: str | None, form: InputFormat) -> None:
    """Write a page on which every column of MODEL answers to every other."""
    from pathlib import Path

    from softcount.cli import library_calls as library
    from softcount.cli.outputs import check_output, put_bytes, say
    from softcount.explore import explored

    output = output or str(Path(model).with_suffix(".html"))
    check_output(output, model, *([] if data is None else [data]))
    fitted = library.load_any(model)
    rows = None if data is None else library.open_like(fitted, data, form)
    page = explored(fitted, model, rows)
    put_bytes(page.html.encode(), output)
    if output != "-":
        say(f"Wrote {output}. Open it in a browser.")
