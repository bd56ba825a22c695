"""softcount explore: a page to play with a model, any column from any others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from softcount.cli import options

if TYPE_CHECKING:
    from softcount.cli.options import InputFormat
    from softcount.explore import ExplorePage
    from softcount.explore.server import Predict

EPILOG = """\b
Examples:
  softcount explore adult.sc                             writes adult.html
  softcount explore adult.sc -o explore.html
  softcount explore adult.sc new.csv -o explore.html     with the first rows of new.csv, to load
  softcount explore spam.sc --serve                      from a server on this machine, until Ctrl+C

The page is one file that asks nothing of any other place: open it in a browser, send it to somebody. Click a level or
a bar to say that it is so, and every other column moves. It holds the model's probabilities, and with DATA its first
200 rows. Of a model of sequences it has the first steps, each from any others, before and after.

A page of more than 3 MB is slow to open and to send: --serve hands it out on 127.0.0.1 instead, to whoever has the
address it prints. Beside it `predict` answers too, with all that a classifier learned, calibrated."""


@click.command("explore", epilog=EPILOG, short_help="Write a page to play with a model, any column from any others.")
@options.model_argument
@options.optional_data_argument
@options.output_option("Write the page here.  [default: the model's name with .html]")
@click.option("--serve", is_flag=True, help="Hand the page out on this machine instead of writing it.")
@options.format_options()
def command(model: str, data: str | None, output: str | None, serve: bool, form: InputFormat) -> None:
    """Write a page on which every column of MODEL answers to every other."""
    from pathlib import Path

    from softcount.cli.outputs import check_output, inform, put_bytes

    if serve and output is not None:
        raise click.UsageError("--serve writes no file: leave out -o")
    output = output or str(Path(model).with_suffix(".html"))
    if not serve:
        check_output(output, model, *([] if data is None else [data]))
    page, predict = page_of(model, data, form, told=not serve)
    if serve:
        hand_out(page, predict)
        return
    put_bytes(page.html.encode(), output)
    if output != "-":
        inform(f"Wrote {output}. Open it in a browser.")


def page_of(model: str, data: str | None, form: InputFormat, told: bool = False) -> tuple[ExplorePage, Predict | None]:
    """The page of a model file, and what answers for `predict` where there is more to it than the page computes.

    With `told` the model that answers is named on standard error, as it is in the page.
    """
    from softcount.cli import models as library
    from softcount.cli.models import say_answering_model, sequence_model
    from softcount.cli.read import open_like, refuse_data
    from softcount.explore import make_explorer
    from softcount.fitted.fitted import Fitted

    sequences = sequence_model(model)
    if sequences is not None:
        refuse_data(model, data, "a model of sequences, whose page takes none")
        return make_explorer(sequences, model), None
    try:
        fitted = library.load_any(model)
    except library.KMeansFile as found:
        from softcount.fitted.compare import NOTE, centre_classes

        classes = centre_classes(found.centres, found.names)
        rows = None if data is None else open_like(classes, data, form)
        return make_explorer(classes, model, rows, NOTE), None
    rows = None if data is None else open_like(fitted, data, form)
    if told:
        say_answering_model(fitted)
    if not isinstance(fitted, Fitted):
        return make_explorer(fitted, model, rows), None
    from softcount.explore.server import make_predictor

    return make_explorer(fitted, model, rows), make_predictor(fitted)


def hand_out(page: ExplorePage, predict: Predict | None) -> None:
    """Hand the page out until the person has seen enough."""
    from contextlib import suppress

    from softcount.cli.outputs import say
    from softcount.explore.server import PageServer

    with PageServer(page, predict) as server:
        say(f"Open {server.address}")
        say("Ctrl+C ends it.")
        with suppress(KeyboardInterrupt):
            server.serve_forever()
