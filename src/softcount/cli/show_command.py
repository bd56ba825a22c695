"""softcount show: what a model holds, and who of a table is in its classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from softcount.cli import options
from softcount.cli.options import SequenceForm, sequence_form
from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.cli.models import KMeansFile
    from softcount.cli.options import InputFormat
    from softcount.cli.sequence_calls import ShowRequest
    from softcount.fitted.fitted import Fitted
    from softcount.fitted.network import FittedNet
    from softcount.report.classes import GivenRows

EPILOG = """\b
Examples:
  softcount show adult.sc
  softcount show cars.sc cars.csv --anomalies 20
  softcount show adult.sc --json | jq .classes
  softcount show alarm.bif --svg alarm.svg           the picture of a network
  softcount show alarm.bif --dot alarm.dot
  softcount show visits.sc events.csv --sequence customer --order time

With DATA, its rows are sorted into the classes: the surest and least sure members of each, how unsure the rows
are, and those that fit worst, with the columns that make them odd. Rows are counted from 1.

Shares, means and deviations are those of the rows that MODEL was learned from. Rows are scored with parameters that
the prior has a part in; --parameters shows those.

Influence is how far a class's column departs from the whole table's, in nats, as AutoClass reports it: summed over
the classes for a column, and relative to the most influential.

A column of text has the words that most mark each class: likelier there than in all other classes together, ranked
by how sure that is. Log-odds are in nats.

Of hidden states: how many steps each has, how long it lasts, what follows it and what it shows; with DATA, the
steps that fit worst after those before them, and why. --svg and --dot draw what follows what; with DATA --svg draws
the states of its first sequences under their first number.

With DATA, a network shows the rows that fit it worst, with the nodes that make them odd.

Of a network, which may also be a network file (.bif, gzipped or not), its graph is drawn and the table
of each node shown: a line for every combination of its parents' levels. Hidden nodes are in parentheses; in the
pictures of --dot and --svg, dashed."""


@click.command("show", epilog=EPILOG, short_help="Say what a model holds.")
@options.model_argument
@options.optional_data_argument
@click.option(
    "--anomalies",
    type=click.IntRange(0),
    metavar="N",
    help="How many of the rows that fit worst to show.  [default: 10]",
)
@click.option(
    "--parameters", is_flag=True, help="Show what rows are scored with, the prior included, not what they are like."
)
@click.option(
    "--dot", metavar="FILE", help="Write the graph of a network, or of states, for Graphviz (- is standard output)."
)
@click.option(
    "--svg", metavar="FILE", help="Write the graph of a network, or of states, as a picture (- is standard output)."
)
@sequence_form
@options.format_options()
@options.json_option
def command(  # noqa: PLR0913 - what can be asked for
    model: str,
    data: str | None,
    anomalies: int | None,
    parameters: bool,
    dot: str | None,
    svg: str | None,
    layout: SequenceForm,
    form: InputFormat,
    json_wanted: bool,
) -> None:
    """Say what MODEL holds: its classes, its columns, and how the classes differ; or the nodes of a network.

    With DATA, also who of its rows is in which class, and which rows fit nowhere.
    """
    if data is None and (anomalies is not None or form.is_asked_for):
        raise click.UsageError("--anomalies, --missing, --lines and the like are about DATA, and none is given")
    from softcount.cli import models as library
    from softcount.cli import sequence_calls
    from softcount.cli.outputs import put_answer
    from softcount.fitted.fitted import Fitted
    from softcount.report.classes import model_page, model_record

    most = 10 if anomalies is None else anomalies
    drawings = {name: output for name, output in (("dot", dot), ("svg", svg)) if output is not None}
    check_drawings(drawings, model, json_wanted)
    states = library.sequence_model(model)
    if states is not None:
        asked = sequence_calls.ShowRequest(data, layout, form, most, parameters)
        show_sequences(states, asked, drawings, json_wanted)
        return
    layout.refuse(model)
    try:
        fitted = library.load_any(model)
    except library.KMeansFile as found:
        if data is not None or drawings:
            raise
        show_centres(found, json_wanted)
        return
    if not isinstance(fitted, Fitted):
        if parameters:
            raise DataError(f"{model}: a network shows its parameters anyway. Leave out --parameters.")
        if data is not None and not drawings:
            show_odd_rows(fitted, data, form, most, json_wanted)
        else:
            show_network(fitted, drawings, json_wanted)
        return
    if drawings:
        raise DataError(f"{model}: no network, so --{next(iter(drawings))} has no graph to draw.")
    rows = None if data is None else sort(fitted, data, form, most)
    shown = fitted, rows, parameters
    put_answer(lambda: model_record(*shown), lambda: model_page(*shown), json_wanted)


def show_sequences(states: Any, asked: ShowRequest, drawings: dict[str, str], json_wanted: bool) -> None:
    """The pictures of a model of sequences where they are asked for, or else all that it holds."""
    from softcount.cli import sequence_calls
    from softcount.cli.outputs import put_answer, put_bytes

    for name, output in drawings.items():
        put_bytes(sequence_calls.drawn(states, name, asked).encode(), output)
    if not drawings:
        document, page = sequence_calls.shown(states, asked)
        put_answer(lambda: document, lambda: page, json_wanted)


def show_centres(found: KMeansFile, json_wanted: bool) -> None:
    """The centres of a model of k-means."""
    from softcount.cli.outputs import put_answer
    from softcount.report.kmeans import centres_page, centres_record

    held = found.centres, found.names
    put_answer(lambda: centres_record(*held), lambda: centres_page(*held), json_wanted)


def check_drawings(drawings: dict[str, str], model: str, json_wanted: bool) -> None:
    """Refuse what cannot be written together, or at all."""
    from softcount.cli.outputs import check_output

    if drawings and json_wanted:
        raise click.UsageError(f"--json and --{next(iter(drawings))} cannot both be given")
    if len(drawings) > len(set(drawings.values())):
        raise click.UsageError("--dot and --svg cannot both go to one place")
    for output in drawings.values():
        check_output(output, model)


def show_network(fitted: FittedNet, drawings: dict[str, str], json_wanted: bool) -> None:
    """A network's pictures where they are asked for, or else all that it holds."""
    from softcount.cli.outputs import put_answer, put_bytes
    from softcount.report.graph import NetworkPicture, graph_dot
    from softcount.report.network import hidden_names, network_page, network_record

    for name, output in drawings.items():
        graph, hidden = fitted.net.graph, hidden_names(fitted)
        drawn = graph_dot(graph, hidden) if name == "dot" else NetworkPicture.of(graph, hidden).draw().svg_file()
        put_bytes(drawn.encode(), output)
    if not drawings:
        put_answer(lambda: network_record(fitted), lambda: network_page(fitted), json_wanted)


def show_odd_rows(fitted: FittedNet, data: str, form: InputFormat, most: int, json_wanted: bool) -> None:
    """The rows of a table that fit a network worst, and why."""
    from softcount.cli.models import say_prediction_notes
    from softcount.cli.outputs import progress, put_answer
    from softcount.cli.read import open_rows
    from softcount.fitted.network_rows import odd_rows
    from softcount.report.network import anomalies_page, anomalies_record

    with progress() as tell:
        table, rows = open_rows(fitted, data, form, None, tell)
        found = odd_rows(fitted, rows, most)
    put_answer(lambda: anomalies_record(found), lambda: anomalies_page(found, list(table.source.files)), json_wanted)
    say_prediction_notes(fitted, table)


def sort(fitted: Fitted, data: str, form: InputFormat, anomalies: int) -> GivenRows:
    """The rows of the table, sorted into the model's classes."""
    from softcount.cli.models import say_prediction_notes
    from softcount.cli.outputs import progress
    from softcount.cli.read import open_like
    from softcount.fitted.classes import sort_rows
    from softcount.report.classes import GivenRows as Rows
    from softcount.run.local import Threads

    with progress() as tell, Threads() as threads:
        table = open_like(fitted, data, form, tell)
        sorting = sort_rows(fitted, table, threads, anomalies=anomalies)
    say_prediction_notes(fitted, table)
    return Rows(data, sorting, table.source.files)
