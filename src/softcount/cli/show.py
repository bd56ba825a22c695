"""softcount show, report, plot and explore: summaries, pages and pictures of a model, and of a table."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from softcount.cli import models
from softcount.cli.commands import PICTURES
from softcount.cli.options import Request
from softcount.cli.outputs import STANDARD, check_output, print_info, print_message, progress, write_answer, write_bytes
from softcount.cli.read import arrow_of, open_like, open_rows, read_sequences
from softcount.core.lazy import LazyModule
from softcount.errors import DataError
from softcount.evaluate.ranking import find_classes
from softcount.evaluate.scores import match_names
from softcount.fitted.classes import sort_rows
from softcount.fitted.fitted import Fitted
from softcount.report.class_pictures import GivenRows
from softcount.report.classes import model_page, model_record
from softcount.report.page import Picture, page_blocks
from softcount.run.local import Threads
from softcount.run.progress import Tell
from softcount.table import Table, read_labels
from softcount.table.column_summary import summarise

if TYPE_CHECKING:
    from softcount.fitted.network import FittedNet
    from softcount.report.report import Report

explore_pages: Any = LazyModule("softcount.explore")
explore_server: Any = LazyModule("softcount.explore.server")
changes: Any = LazyModule("softcount.fitted.compare")
graphs: Any = LazyModule("softcount.report.graph")
joint_pages: Any = LazyModule("softcount.report.joint")
kmeans_pages: Any = LazyModule("softcount.report.kmeans")
network_pages: Any = LazyModule("softcount.report.network")
network_answers: Any = LazyModule("softcount.fitted.network_answers")
reports: Any = LazyModule("softcount.report.report")
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
    model = models.open_model(request.model, sequences=True, centres=request.data is None and not drawings)
    if not models.is_of_sequences(model):
        request.layout.refuse(request.model)
    if request.parameters and models.is_network(model):
        raise DataError(f"{request.model}: a network shows its parameters anyway. Leave out --parameters.")
    if isinstance(model, models.KMeansModel):
        found = model.centres, model.names
        write_answer(request.json, kmeans_pages.centres_record, kmeans_pages.centres_page, *found)
    elif drawings:
        for kind, output in drawings.items():
            write_bytes(draw_graph(model, kind, request).encode(), output)
    elif models.is_of_sequences(model):
        show_sequences(model, request)
    elif models.is_network(model):
        show_network(model, request)
    elif models.is_joint(model):
        show_joint(model, request)
    elif not isinstance(model, Fitted):
        page = reports.make_report(model).page
        write_answer(request.json, page_blocks, lambda _: page, page)
    else:
        rows = None
        if request.data is not None:
            with progress() as tell, Threads() as threads:
                table = open_like(model, request.data, request.form, tell)
                sorting = sort_rows(model, table, threads, anomalies=request.anomalies)
            models.print_prediction_notes(model, table)
            rows = GivenRows(request.data, sorting, table.source.files)
        write_answer(request.json, model_record, model_page, model, rows, request.parameters)


def draw_graph(model: Any, kind: str, request: Request) -> str:
    """The graph of a network or of states, as "dot" or "svg"."""
    if models.is_of_sequences(model):
        return draw_sequences(model, kind, request)
    if not models.is_network(model):
        raise DataError(f"{request.model}: not a network, so --{kind} has no graph to draw.")
    graph, hidden = model.net.graph, network_pages.hidden_names(model)
    if kind == "dot":
        return str(graphs.graph_dot(graph, hidden))
    return str(graphs.NetworkPicture.of(graph, hidden).draw().svg_file())


def show_network(fitted: FittedNet, request: Request) -> None:
    """Print the nodes of a network or, with DATA, the rows that fit worst."""
    if request.data is None:
        write_answer(request.json, network_pages.network_record, network_pages.network_page, fitted)
        return
    with progress() as tell:
        table, rows = open_rows(fitted, request.data, request.form, None, tell)
        found = network_answers.find_anomalies(fitted, rows, request.anomalies)
    files = list(table.source.files)
    write_answer(
        request.json, lambda: network_pages.anomalies_record(found), lambda: network_pages.anomalies_page(found, files)
    )
    models.print_prediction_notes(fitted, table)


def show_joint(fitted: Any, request: Request) -> None:
    """Print a joint model or, with DATA, the rows that fit worst."""
    if request.data is None:
        write_answer(request.json, joint_pages.joint_record, joint_pages.joint_page, fitted)
        return
    with progress() as tell, Threads() as threads:
        table = open_like(fitted, request.data, request.form, tell)
        found = fitted.find_anomalies(table, threads, request.anomalies)
    files = list(table.source.files)
    write_answer(
        request.json, lambda: joint_pages.anomalies_record(found), lambda: joint_pages.anomalies_page(found, files)
    )
    models.print_prediction_notes(fitted, table)


def show_sequences(model: Any, request: Request) -> None:
    """Print a model of sequences, with the steps of DATA that fit worst."""
    if request.parameters:
        raise DataError("a model of sequences shows its parameters anyway. Leave out --parameters.")
    page, odd = sequence_pages.sequence_page(model), []
    if request.data is not None:
        if not models.is_hidden(model):
            raise DataError("a chain shows how surprising every step is: softcount explain MODEL DATA.")
        odd = [arrow_of(model.anomalies(read_sequences(request), request.anomalies))]
        sequence_pages.add_odd_steps(page, *odd)
    write_answer(request.json, lambda: sequence_pages.sequence_record(model, *odd), lambda: page)


def draw_sequences(model: Any, kind: str, request: Request) -> str:
    """A picture of the transitions; with DATA, as SVG, of the states of its first sequences and their first number."""
    if request.data is None or kind == "dot":
        names = model.states_.tolist() if models.is_hidden(model) else model.contexts_
        table = model.transitions_
        if table.shape != (len(names), len(names)):
            raise DataError("transitions are drawn for hidden states, and for chains of order 1 without ends.")
        if kind == "dot":
            return str(graphs.transition_dot(names, table))
        return str(graphs.draw_ring(names, table).svg_file())
    if not models.is_hidden(model):
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


# -- report


def refuse_data(request: Request, why: str) -> None:
    if request.data is not None:
        raise DataError(f"{request.model}: {why}. Leave {request.data} out.")


def report(request: Request) -> None:
    if request.data is None and request.form.is_given:
        raise click.UsageError("--missing, --no-header and --lines are about DATA, which is not given")
    output = request.output or f"{Path(request.model).stem}.html"
    ending = ".html" if output == STANDARD else Path(output).suffix
    if ending.lower() not in reports.ENDINGS:
        raise click.UsageError(f"-o {output}: a report ends in {', '.join(reports.ENDINGS)}")
    check_output(output, request.model, request.data)
    with progress() as tell:
        content = report_on(request, request.redact, tell).render(ending).encode()
    write_bytes(content, output)
    if output != STANDARD:
        print_message(f"Wrote {output} ({len(content) / 1000:,.0f} KB).")


def report_on(request: Request, redact: bool, tell: Tell) -> Any:
    """The `Report` of a model, and of DATA."""
    rows: Any = None
    model = models.open_model(request.model, sequences=True, centres=True)
    if models.is_of_sequences(model):
        refuse_data(request, "a model of sequences")
    elif isinstance(model, models.KMeansModel):
        if model.centres.frame.unit:
            refuse_data(request, "spherical k-means, whose report takes rows in Python: load(MODEL).report(X)")
        rows, model = numbers_in(model, request), models.load_estimator(request.model)
    elif models.is_joint(model):
        refuse_data(request, "a joint model, whose report takes no rows")
    elif request.data is not None and models.is_network(model):
        rows = summarise_rows(model, request, tell)
    elif request.data is not None:
        table = open_like(model, request.data, request.form, tell)
        with Threads() as threads:
            name = Path(request.data).name if request.data != STANDARD else "standard input"
            rows = reports.find_rows(model, table, threads, name, read_classes(model, table, request))
        models.print_prediction_notes(model, table)
    return reports.make_report(model, rows, redact)


def numbers_in(model: models.KMeansModel, request: Request) -> np.ndarray | None:
    """(rows x columns) the numbers of DATA for k-means, without rows that miss one."""
    if request.data is None:
        return None
    classes = changes.make_centre_classes(model.centres, model.names)
    chunks = open_like(classes, request.data, request.form).chunks()
    rows: np.ndarray = np.concatenate([np.zeros((0, len(model.names))), *(chunk.reals for chunk in chunks)])
    whole = ~np.isnan(rows).any(axis=1)
    if not whole.any():
        raise DataError(f"{request.data}: no row has all numbers, so there is nothing to report. Leave it out.")
    return np.asarray(rows[whole])


def summarise_rows(fitted: Any, request: Request, tell: Tell) -> tuple[Any, str]:
    table, _ = open_rows(fitted, request.data, request.form, None, tell)
    with Threads() as threads:
        found = summarise(table.chunks(threads.map), fitted.schema, fitted.record.table)
    if not found.rows:
        raise DataError(f"{request.data}: no rows, so there is nothing to report. Leave it out for the network alone.")
    return found, Path(request.data).name


def read_classes(fitted: Fitted, table: Table, request: Request) -> np.ndarray | None:
    """The codes of the rows' classes, if the table holds the target."""
    known = (*table.source.keys, *table.source.aside)
    if fitted.classes is None or fitted.target is None or fitted.target not in known:
        return None
    labels = read_labels(table.source, fitted.target, request.form.missing or fitted.schema.missing)
    return find_classes(match_names(labels, fitted.names), fitted.names)


# -- plot


def plot(request: Request) -> None:
    what = request.what
    if what is None:  # the picture is the last argument, after DATA if that is given
        what, request.picture = request.picture or request.data, None
        request.data = None if what == request.data else request.data
        request.what = what
    names = f"density, {', '.join(PICTURES)}"
    if request.picture is not None:
        raise click.UsageError(f"the picture is given twice: {request.picture} and --what {what}")
    if what is None:
        raise click.UsageError(f"name a picture: {names}")
    output = request.output or f"{what}.svg"
    ending = Path(output).suffix.lower()
    if ending not in (".svg", ".png"):
        raise click.UsageError(f"-o {output}: a picture ends in .svg or .png")
    if what not in (*PICTURES, "density"):
        raise click.UsageError(f"{what}: no such picture; choose {names}")
    if (what == "density") != (request.column is not None):
        raise click.UsageError("the picture 'density' and --column go together")
    check_output(output, request.model, request.data)
    with progress() as tell:
        found = find_picture(report_on(request, False, tell), request)
    write_bytes(found.svg.encode() if ending == ".svg" else found.chart.draw().png(), output)
    if request.output is None:
        print_info(f"Wrote {output}.")


def find_picture(report: Report, request: Request) -> Picture:
    """The first picture of the report with the title of --what or --column."""
    pictures = [block for block in report.page.blocks if isinstance(block, Picture)]
    titles = {name: [x for x in pictures if x.title.startswith(title)] for name, title in PICTURES.items()}
    if request.column is not None:
        found = [x for x in pictures if x.title == request.column]
        missing = f"there is no picture of column {request.column!r}: other columns differ more between the classes."
    else:
        found = titles[request.what]
        more = " With DATA there are more." if request.what in ("rows", "drift", "frames", "certainty") else ""
        there = ", ".join(name for name, own in titles.items() if own)
        if request.what == "nomogram" and "influence" in there:
            more = " A nomogram needs one sum over the columns: softcount fit DATA --target COL --model naive-bayes"
        missing = f"this model has no picture {request.what!r}. It has: {there}.{more}"
    if not found:
        raise DataError(f"{request.model}: {missing}")
    return found[0]


# -- explore


def explore(request: Request) -> None:
    if request.serve and request.output is not None:
        raise click.UsageError("--serve writes no file: leave out -o")
    if request.serve:
        with explore_server.PageServer(*make_page(request)) as server, suppress(KeyboardInterrupt):
            print_message(f"Open {server.address}")
            print_message("Ctrl+C ends it.")
            server.serve_forever()
        return
    request.output = request.output or str(Path(request.model).with_suffix(".html"))
    check_output(request.output, request.model, request.data)
    write_explorer(request)
    if request.output != STANDARD:
        print_info(f"Wrote {request.output}. Open it in a browser.")


def write_explorer(request: Request) -> None:
    page, _ = make_page(request)
    write_bytes(page.html.encode(), request.output)


def make_page(request: Request) -> tuple[Any, Any]:
    """The page of a model, and a function that predicts if the page cannot compute the prediction by itself."""
    model, note, predict = models.open_model(request.model, sequences=True, centres=True), "", None
    models.refuse_joint(request.model, model, "explore")
    if models.is_of_sequences(model):
        refuse_data(request, "a model of sequences, whose page takes none")
    elif isinstance(model, models.KMeansModel):
        model, note = changes.make_centre_classes(model.centres, model.names), changes.NOTE
    elif not models.is_network(model):
        predict = explore_server.make_predictor(model)
    rows = None if request.data is None else open_like(model, request.data, request.form)
    if not (request.serve or note or models.is_of_sequences(model)):
        models.print_answering_model(model)
    return explore_pages.make_explorer(model, request.model, rows, note), predict
