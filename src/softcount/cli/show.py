"""softcount show: a summary of a model, and the rows of a table in its classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np

from softcount.cli.models import (
    KMeansModel,
    is_hidden,
    is_network,
    is_of_sequences,
    open_model,
    print_prediction_notes,
)
from softcount.cli.options import Request
from softcount.cli.outputs import check_output, progress, write_answer, write_bytes
from softcount.cli.read import open_like, open_rows, read_sequences
from softcount.core.lazy import LazyModule
from softcount.errors import DataError
from softcount.fitted.classes import sort_rows
from softcount.report.classes import GivenRows, model_page, model_record
from softcount.run.local import Threads

if TYPE_CHECKING:
    from softcount.fitted.network import FittedNet

graphs: Any = LazyModule("softcount.report.graph")
kmeans_pages: Any = LazyModule("softcount.report.kmeans")
network_pages: Any = LazyModule("softcount.report.network")
network_rows: Any = LazyModule("softcount.fitted.network_rows")
sequence_pages: Any = LazyModule("softcount.report.sequences")

MOST_DRAWN = 12
"""Sequences whose states are drawn."""


def show(request: Request) -> None:
    if request.data is None and (request.anomalies is not None or request.form.is_given):
        raise click.UsageError("--anomalies, --missing, --lines and the like are about DATA, which is not given")
    request.anomalies = 10 if request.anomalies is None else request.anomalies
    drawings = {name: getattr(request, name) for name in ("dot", "svg") if getattr(request, name) is not None}
    if drawings and request.json:
        raise click.UsageError(f"--json and --{next(iter(drawings))} cannot both be given")
    if len(drawings) > len(set(drawings.values())):
        raise click.UsageError("--dot and --svg cannot both go to one place")
    for output in drawings.values():
        check_output(output, request.model)
    model = open_model(request.model, sequences=True, centres=request.data is None and not drawings)
    if not is_of_sequences(model):
        request.layout.refuse(request.model)
    if isinstance(model, KMeansModel):
        found = model.centres, model.names
        write_answer(request.json, kmeans_pages.centres_record, kmeans_pages.centres_page, *found)
    elif is_of_sequences(model):
        show_sequences(model, request, drawings)
    elif is_network(model):
        show_network(model, request, drawings)
    elif drawings:
        raise DataError(f"{request.model}: not a network, so --{next(iter(drawings))} has no graph to draw.")
    else:
        rows = None
        if request.data is not None:
            with progress() as tell, Threads() as threads:
                table = open_like(model, request.data, request.form, tell)
                sorting = sort_rows(model, table, threads, anomalies=request.anomalies)
            print_prediction_notes(model, table)
            rows = GivenRows(request.data, sorting, table.source.files)
        write_answer(request.json, model_record, model_page, model, rows, request.parameters)


def show_network(fitted: FittedNet, request: Request, drawings: dict[str, str]) -> None:
    """Write the pictures of a network, or print its nodes or, with DATA, the rows that fit worst."""
    if request.parameters:
        raise DataError(f"{request.model}: a network shows its parameters anyway. Leave out --parameters.")
    for name, output in drawings.items():
        graph, hidden = fitted.net.graph, network_pages.hidden_names(fitted)
        dot = name == "dot"
        drawn = graphs.graph_dot(graph, hidden) if dot else graphs.NetworkPicture.of(graph, hidden).draw().svg_file()
        write_bytes(drawn.encode(), output)
    if drawings:
        return
    if request.data is None:
        write_answer(request.json, network_pages.network_record, network_pages.network_page, fitted)
        return
    with progress() as tell:
        table, rows = open_rows(fitted, request.data, request.form, None, tell)
        found = network_rows.odd_rows(fitted, rows, request.anomalies)
    files = list(table.source.files)
    write_answer(
        request.json,
        lambda: network_pages.anomalies_record(found),
        lambda: network_pages.anomalies_page(found, files),
    )
    print_prediction_notes(fitted, table)


def show_sequences(model: Any, request: Request, drawings: dict[str, str]) -> None:
    """Write the pictures of a model of sequences, or print it with the steps of DATA that fit worst."""
    for name, output in drawings.items():
        write_bytes(draw_sequences(model, name, request).encode(), output)
    if drawings:
        return
    if request.parameters:
        raise DataError("a model of sequences shows its parameters anyway. Leave out --parameters.")
    page, odd = sequence_pages.sequence_page(model), []
    if request.data is not None:
        if not is_hidden(model):
            raise DataError("a chain shows how surprising every step is: softcount explain MODEL DATA.")
        odd = [model.anomalies(read_sequences(request), request.anomalies)]
        sequence_pages.add_odd_steps(page, *odd)
    write_answer(request.json, lambda: sequence_pages.sequence_record(model, *odd), lambda: page)


def draw_sequences(model: Any, kind: str, request: Request) -> str:
    """A picture of the transitions; with DATA, as SVG, of the states of its first sequences and their first number."""
    if request.data is None or kind == "dot":
        names = model.states_.tolist() if is_hidden(model) else model.contexts_
        table = model.transitions_
        if table.shape != (len(names), len(names)):
            raise DataError("transitions are drawn for hidden states, and for chains of order 1 without ends.")
        if kind == "dot":
            return str(graphs.transition_dot(names, table))
        return str(graphs.draw_ring(names, table).svg_file())
    if not is_hidden(model):
        raise DataError("a chain has no hidden states to draw: leave out DATA for its transitions.")
    sequences = read_sequences(request)
    place = {name: at for at, name in enumerate(model.states_.tolist())}
    paths = model.predict(sequences)[:MOST_DRAWN]
    values: list[Any] = [None] * len(paths)
    if model.fitted_.schema.stored("reals"):
        chunks = sequences.chunks(model.fitted_.table(sequences))
        numbers = np.concatenate([chunk.reals[:, 0] for chunk in chunks])
        values = np.split(numbers, sequences.starts[1:-1])[: len(paths)]
    codes = [np.array([place[name] for name in path.tolist()], dtype=int) for path in paths]
    titles = [sequences.called(at) for at in range(len(paths))]
    return str(sequence_pages.draw_states(titles, codes, values, list(place)).svg_file())
