"""A network as a person reads it: its graph, its tables, how well it tells its class; answers of several nodes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from softcount.learn.record import bic, description_length
from softcount.report import evaluation_page
from softcount.report.answer_page import answer_errors, given_document, given_words
from softcount.report.class_page import because
from softcount.report.graph_drawing import graph_lines
from softcount.report.model_page import HEADINGS, add_missing, add_notes, column_documents, column_lines, missing_share
from softcount.report.page import Page, key_text
from softcount.report.plain_text import counted, number, share

if TYPE_CHECKING:
    import numpy as np

    from softcount.evaluate.scores import Evaluation
    from softcount.fitted.classes import Anomaly
    from softcount.fitted.network import FittedNet, LikeliestLevels
    from softcount.models.nodes import Node
    from softcount.table.schema import Key

MOST_NODES = 40
"""How many nodes have their table on a page; --json has all."""

MOST_LINES = 16
"""How many combinations of the parents' levels are shown of a table."""

MOST_LEVELS = 8
"""How many levels of a node are shown of a table."""


MOST_ANSWERS = 100
"""How many combinations of several nodes' levels are shown, the likeliest first."""


def hidden_names(fitted: FittedNet) -> set[Key]:
    """The nodes that no column shows."""
    net = fitted.net
    return {net.each[net.places[place]].key for place in net.hidden}


def is_learned(fitted: FittedNet) -> bool:
    """Whether rows were counted; the tables of a network file come without any."""
    return fitted.counts.rows > 0


# -- the whole network


def net_page(fitted: FittedNet) -> Page:
    """What a network holds, for `softcount show`."""
    page = Page()
    page.heading(net_headline(fitted))
    _add_figures(page, fitted)
    add_graph(page, fitted)
    known = fitted.levels
    for place in fitted.net.graph.order[:MOST_NODES]:
        _add_node(page, fitted, node_lines(fitted, place, known))
    left = len(fitted.net.graph.names) - MOST_NODES
    if left > 0:
        page.line(f"and {counted(left, 'node')} more (--json has all)")
    if fitted.missing:
        add_missing(page, fitted)
    add_notes(page, fitted.notes)
    return page


def net_headline(fitted: FittedNet) -> str:
    """What the network is, in a few words."""
    graph = fitted.net.graph
    of = "" if fitted.target is None else f" for {key_text(fitted.target)}"
    return f"A network{of}: {counted(len(graph.names), 'node')}, {counted(len(graph.edges), 'edge')}"


def _add_figures(page: Page, fitted: FittedNet) -> None:
    parameters = counted(fitted.n_parameters, "free parameter")
    if not is_learned(fitted):
        page.line(parameters)
        return
    figures = _figures(fitted)
    page.line(f"from {counted(fitted.counts.rows, 'row')}, {parameters}")
    bits = figures["description_length_bits"]
    length = "" if bits is None else f", description length {number(bits)} bits"
    page.line(f"log-likelihood {figures['log_likelihood']:,.3f}, BIC {figures['bic']:,.1f} (smaller is better){length}")


def _figures(fitted: FittedNet) -> dict[str, float | None]:
    """The description length is half of BIC in bits; it has no meaning for numbers, whose densities depend on units."""
    if not is_learned(fitted):
        return {"log_likelihood": None, "bic": None, "description_length_bits": None}
    height = fitted.log_likelihood or 0.0
    cost = bic(height, fitted.n_parameters, fitted.counts.rows)
    return {
        "log_likelihood": height,
        "bic": cost,
        "description_length_bits": None if fitted.net.stacks else description_length(cost),
    }


def add_graph(page: Page, fitted: FittedNet) -> None:
    """The graph, drawn."""
    hidden = hidden_names(fitted)
    page.heading("Graph (hidden nodes in parentheses)" if hidden else "Graph")
    page.line(*graph_lines(fitted.net.graph, hidden))


# -- one node


class NodeLines(Struct, frozen=True):
    """A node's levels (None: it is a number), those of its parents, and the rows counted in each configuration.

    Parents that are numbers have no levels: they are in `node.family.number_parents`.
    """

    node: Node
    levels: Sequence[object] | None
    parents: Mapping[Key, Sequence[object]]
    rows: np.ndarray | None

    def configurations(self) -> Iterator[tuple[object, ...]]:
        return product(*self.parents.values())


def node_lines(fitted: FittedNet, place: int, known: Mapping[Key, Sequence[object]]) -> NodeLines:
    """What there is to say of a node, by its number; `known` are the levels of all nodes."""
    net = fitted.net
    node = net.each[place]
    names = [net.each[parent].key for parent in net.graph.parents[place]]
    parents = {name: known[name] for name in names if name in known}
    rows = None
    if is_learned(fitted) and node.key in known:
        rows = fitted.counts.arrays[node.key].value.sum(axis=-1)
    return NodeLines(node, known.get(node.key), parents, rows)


def _add_node(page: Page, fitted: FittedNet, said: NodeLines) -> None:
    key, parents = said.node.key, [key_text(parent) for parent in said.parents]
    above = [*parents, *map(key_text, said.node.family.number_parents)]
    page.heading(f"{key_text(key)}, given {', '.join(above)}" if above else key_text(key))
    heads, cells = _cells(fitted, said)
    if said.rows is not None:
        heads = [*heads, "rows"]
        cells = [[*line, number(float(rows))] for line, rows in zip(cells, said.rows, strict=True)]
    lines = [[*map(str, levels), *line] for levels, line in zip(said.configurations(), cells, strict=True)]
    page.grid([*parents, *heads], lines[:MOST_LINES], right=heads)
    if len(lines) > MOST_LINES:
        page.line(f"and {counted(len(lines) - MOST_LINES, 'line')} more (--json has all)")
    left = len(said.levels or ()) - MOST_LEVELS
    if left > 0:
        page.line(f"and {counted(left, 'level')} more (--json has all)")


def _cells(fitted: FittedNet, said: NodeLines) -> tuple[list[str], list[list[str]]]:
    """Headings and a line for every configuration: shares of levels, or what a number looks like."""
    key, node = said.node.key, said.node
    if said.levels is None:
        return [node.family.title], [[words] for words in node.family.describe(_public(fitted, node), node.setting)]
    heads = [str(level) for level in said.levels[:MOST_LEVELS]]
    table = fitted.estimates[key]["probability"]
    return heads, [[share(float(p)) for p in line[:MOST_LEVELS]] for line in table]


def _public(fitted: FittedNet, node: Node) -> Any:
    """A node's parameters as its family names them."""
    return node.family.public(fitted.estimates[node.key], node.setting)


# -- the same as data


def net_document(fitted: FittedNet) -> dict[str, Any]:
    """What a network holds, as data."""
    known, hidden = fitted.levels, hidden_names(fitted)
    each = [node_lines(fitted, place, known) for place in range(len(fitted.net.graph.names))]
    return {
        "model": fitted.net.name,
        "target": fitted.target,
        "rows": fitted.counts.rows,
        "parameters": fitted.n_parameters,
        **_figures(fitted),
        "edges": [list(edge) for edge in fitted.net.graph.edges],
        "nodes": [_node_document(fitted, said, said.node.key in hidden) for said in each],
        "columns": column_documents(fitted.schema, fitted.missing),
        "objective": {"name": fitted.objective, "trace": list(fitted.trace)},
        "iterations": fitted.n_iter,
        "converged": fitted.converged,
        "interrupted": fitted.interrupted,
        "notes": list(fitted.notes),
    }


def _node_document(fitted: FittedNet, said: NodeLines, hidden: bool) -> dict[str, Any]:
    key, cuts = said.node.key, fitted.net.cuts
    found = {
        "node": key,
        "parents": [*said.parents, *said.node.family.number_parents],
        "hidden": hidden,
        "cut": list(cuts[key]) if key in cuts else None,
        "levels": said.levels,
    }
    lines: list[dict[str, Any]] = [{"given": list(levels)} for levels in said.configurations()]
    if said.rows is not None:
        lines = [line | {"rows": float(rows)} for line, rows in zip(lines, said.rows, strict=True)]
    if said.levels is not None:
        table = fitted.estimates[key]["probability"]
        return found | {"table": [line | {"probabilities": p} for line, p in zip(lines, table, strict=True)]}
    return found | {"family": said.node.family.name, "table": lines, "parameters": _public(fitted, said.node)}


# -- a fit


class NetFitReport(Struct, frozen=True):
    """A fit of a network and what became of it; `evaluation` is None where it was not tried on unseen rows."""

    fitted: FittedNet
    evaluation: Evaluation | None
    n_rows: int
    saved: str
    data: str
    reading: tuple[str, ...] = ()


def net_fit_page(report: NetFitReport) -> Page:
    """What was learned, how well it tells its class, and what to do next."""
    fitted, page = report.fitted, Page()
    lines = column_lines(fitted.schema, fitted.missing, report.n_rows)
    if fitted.target is not None:
        missing = missing_share(fitted.target, fitted.missing, report.n_rows)
        classes = counted(len(fitted.levels[fitted.target]), "class", "classes")
        lines.append((key_text(fitted.target), "target", classes, missing))
    page.heading(f"{counted(report.n_rows, 'row')}, {counted(len(lines), 'column')}")
    page.grid(HEADINGS, lines, right=("missing",))
    page.heading(net_headline(fitted))
    _add_figures(page, fitted)
    if fitted.agreed is not None and fitted.agreed[1] > 1:
        page.line(f"{fitted.agreed[0]} of {counted(fitted.agreed[1], 'start')} reached the best")
    if fitted.target is not None:
        evaluation_page.add_evaluation(page, report.evaluation, calibrates=False)
    add_graph(page, fitted)
    add_missing(page, fitted)
    add_notes(page, fitted.notes)
    page.heading("Saved")
    page.line(f"the model, in {report.saved}" if report.saved != "-" else "the model, to standard output")
    page.heading("Next")
    page.line(*next_commands(report))
    return page


def next_commands(report: NetFitReport) -> list[str]:
    """Commands that go on from here, as one would type them."""
    fitted, names = report.fitted, report.fitted.net.graph.names
    model = "MODEL" if report.saved == "-" else shlex.quote(report.saved)
    data = "DATA" if report.data == "-" else shlex.quote(report.data)
    node = shlex.quote(str(names[0] if fitted.target is None else fitted.target))
    of = f" --of {node}" if fitted.target is None else ""
    return [
        " ".join([f"softcount report {model}", data, *report.reading]) + " -o report.html",
        f"softcount show {model}",
        f"softcount query {model} --of {node}",
        " ".join([f"softcount predict {model}", data, *report.reading]) + f"{of} -o predicted.csv",
    ]


def net_fit_document(report: NetFitReport) -> dict[str, Any]:
    """The same as data: the network, the evaluation and where it was saved."""
    return {
        **net_document(report.fitted),
        "evaluation": evaluation_page.evaluation_document(report.evaluation),
        "saved": report.saved,
        "next": next_commands(report),
    }


# -- answers


def joint_page(of: Sequence[Key], given: Mapping[Key, str], answer: Mapping[tuple[Any, ...], float]) -> Page:
    """The probabilities of several nodes together, the likeliest first."""
    page, names = Page(), [key_text(key) for key in of]
    page.heading(f"{', '.join(names)}{given_words(given)}")
    ranked = sorted(answer.items(), key=lambda item: -item[1])
    heads, errors = answer_errors(answer)
    lines = [(*map(str, levels), share(p), *errors(levels)) for levels, p in ranked[:MOST_ANSWERS]]
    page.grid((*names, "probability", *heads), lines, right=("probability", *heads))
    if len(ranked) > len(lines):
        page.line(f"and {counted(len(ranked) - len(lines), 'combination')} more (--json has all)")
    return page


def joint_document(of: Sequence[Key], given: Mapping[Key, Any], answer: Mapping[tuple[Any, ...], float]) -> Any:
    """The same as data."""
    errors = getattr(answer, "errors", {})
    lines = [
        {"levels": list(levels), "probability": p} | ({"error": errors[levels]} if errors else {})
        for levels, p in answer.items()
    ]
    return {"of": list(of), "given": given_document(given), "joint": lines}


def likeliest_page(given: Mapping[Key, str], found: LikeliestLevels) -> Page:
    """The likeliest levels of all nodes together."""
    page = Page()
    page.heading(f"The likeliest levels{given_words(given)}")
    page.grid(("node", "level"), [(key_text(key), str(level)) for key, level in found.levels.items()])
    page.line(f"log-probability {found.log_probability:,.4f} (of these levels and of what is given)")
    return page


def likeliest_document(given: Mapping[Key, Any], found: LikeliestLevels) -> dict[str, Any]:
    """The same as data."""
    levels = [{"node": key, "level": level} for key, level in found.levels.items()]
    return {"given": given_document(given), "levels": levels, "log_probability": found.log_probability}


# -- rows that fit badly


def odd_rows_page(odd: Sequence[Anomaly], files: Sequence[str]) -> Page:
    """The rows of a table that fit a network worst."""
    page = Page()
    page.heading("Rows that fit worst (score: nats less likely than is usual for what they show)")
    names = ("file",) if files else ()
    lines = [
        (
            str(row.row + 1),
            *([files[row.row]] if files else []),
            "impossible" if row.score == float("inf") else f"{row.score:.1f}",
            because(row),
        )
        for row in odd
    ]
    page.grid(("row", *names, "score", "because"), lines, right=("row", "score"))
    return page


def odd_rows_document(odd: Sequence[Anomaly]) -> list[dict[str, Any]]:
    """The same as data."""
    return [
        {
            "row": row.row + 1,
            "score": row.score,
            "reasons": [{"node": key, "value": row.cells.get(key), "surprise": x} for key, x in row.parts.items()],
        }
        for row in odd
    ]
