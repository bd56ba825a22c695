"""A network: its record, its page for `show` and for a report, the page of a fit, and answers about several nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from softcount.core.lazy import rel_entr
from softcount.errors import DataError
from softcount.families.base import family_title
from softcount.learn.record import bic, description_length
from softcount.pictures.chart import share_chart
from softcount.pictures.text import format_count, format_number, format_share
from softcount.report import evaluation, quality
from softcount.report.classes import add_anomalies
from softcount.report.graph import Monitor, NetworkPicture, graph_lines
from softcount.report.page import Figure, Page, Redaction, key_text, make_grid, redaction_of

if TYPE_CHECKING:
    from softcount.fitted.classes import Anomaly
    from softcount.fitted.network import FittedNet
    from softcount.models.nodes import Node
    from softcount.networks.network import Graph
    from softcount.table.column_summary import TableSummary
    from softcount.table.schema import Key

NOT_EVALUATED = "not evaluated on held-out rows (--folds 0, too few labelled rows, or a file without figures)"
PAGE_NODES, PAGE_LINES, PAGE_LEVELS = 40, 16, 8
"""Nodes, lines and categories of tables on a page; JSON has all."""
DRAWN_NODES, DRAWN_TABLES, DRAWN_ROWS, MONITORED = 60, 24, 12, 5
"""The same of a report's pictures."""


def hidden_names(fitted: FittedNet) -> set[Key]:
    return {fitted.net.with_levels[place].key for place in fitted.net.hidden}


def is_learned(fitted: FittedNet) -> bool:
    """Whether rows were counted; the tables of a network file come without any."""
    return fitted.counts.rows > 0


def title_of(fitted: FittedNet) -> str:
    graph = fitted.net.graph
    of = "" if fitted.target is None else f" for {key_text(fitted.target)}"
    return f"A network{of}: {format_count(len(graph.names), 'node')}, {format_count(len(graph.edges), 'edge')}"


class NodeTable(Struct, frozen=True):
    """A node's categories (None: it is a number), those of its parents, and the rows counted in each configuration.

    Parents that are numbers have no categories: they are in `node.family.facts.number_parents`.
    """

    node: Node
    levels: Sequence[Any] | None
    parents: Mapping[Key, Sequence[Any]]
    rows: np.ndarray | None

    @classmethod
    def of(cls, fitted: FittedNet, place: int, known: Mapping[Key, Sequence[Any]]) -> NodeTable:
        """Find the table of the node at a place; `known` are the categories of all nodes."""
        node = fitted.net.each[place]
        names = [fitted.net.each[parent].key for parent in fitted.net.graph.parents[place]]
        counted = is_learned(fitted) and node.key in known
        rows = fitted.counts.arrays[node.key].value.sum(axis=-1) if counted else None
        return cls(node, known.get(node.key), {name: known[name] for name in names if name in known}, rows)

    def configurations(self) -> Iterator[tuple[Any, ...]]:
        return product(*self.parents.values())

    def parameters(self, fitted: FittedNet) -> Any:
        return self.node.family.public(fitted.estimates[self.node.key], self.node.setting)


# -- as data


def network_record(fitted: FittedNet, **fit: Any) -> dict[str, Any]:
    """Return what a network holds as data: a node has probabilities of categories, or the parameters of a number."""
    known, hidden, nodes = fitted.levels, hidden_names(fitted), []
    for place in range(len(fitted.net.graph.names)):
        table = NodeTable.of(fitted, place, known)
        lines: list[dict[str, Any]] = [{"given": list(levels)} for levels in table.configurations()]
        if table.rows is not None:
            lines = [line | {"rows": float(rows)} for line, rows in zip(lines, table.rows, strict=True)]
        key, family = table.node.key, table.node.family
        if table.levels is None:
            own = {"family": family.name, "table": lines, "parameters": table.parameters(fitted)}
        else:
            shares = fitted.estimates[key]["probability"]
            own = {"table": [line | {"probabilities": p} for line, p in zip(lines, shares, strict=True)]}
        nodes.append({
            "node": key, "parents": [*table.parents, *family.facts.number_parents], "hidden": key in hidden,
            "cut": fitted.net.cuts.get(key), "levels": table.levels, **own,
        })  # fmt: skip
    return {
        "model": fitted.net.name, "target": fitted.target, "rows": fitted.counts.rows,
        "parameters": fitted.n_parameters, **find_figures(fitted), "edges": fitted.net.graph.edges, "nodes": nodes,
        "columns": quality.column_records(fitted.schema, fitted.missing),
        "objective": {"name": fitted.objective, "trace": fitted.trace}, "iterations": fitted.n_iter,
        "converged": fitted.converged, "interrupted": fitted.interrupted,
        "evaluation": evaluation.evaluation_record(fitted.record.evaluation), "notes": fitted.notes, **fit,
    }  # fmt: skip


def find_figures(fitted: FittedNet) -> dict[str, float | None]:
    """Compute log-likelihood, BIC and description length; the last has no meaning for densities, which have units."""
    if not is_learned(fitted):
        return {"log_likelihood": None, "bic": None, "description_length_bits": None}
    height = fitted.log_likelihood or 0.0
    cost = bic(height, fitted.n_parameters, fitted.counts.rows)
    bits = None if fitted.net.stacks else description_length(cost)
    return {"log_likelihood": height, "bic": cost, "description_length_bits": bits}


# -- as a page


def network_page(
    fitted: FittedNet, full: bool = False, now: TableSummary | None = None, name: str = "", redact: bool = False
) -> Page:
    """Write what a network holds, for `softcount show`; in `full`, for a report: with quality, pictures and origin.

    `now` is the summary of a table called `name`, whose drift against training a report shows.
    """
    redaction = redaction_of(fitted, redact)
    for key, levels in fitted.levels.items() if redact and is_learned(fitted) else ():
        counts = np.asarray(fitted.counts.arrays[key].value, dtype=float)
        redaction.rows[key] = dict(zip(levels, counts.reshape(-1, counts.shape[-1]).sum(axis=0).tolist(), strict=False))
    page = Page()
    if full:
        _add_overview(page, fitted, redaction)
        page.heading("Tables")
    else:
        page.heading(title_of(fitted))
        _add_fit(page, fitted)
        _add_performance(page, fitted, redaction, full)
        _add_graph(page, fitted, redaction, full)
    known, most = fitted.levels, DRAWN_TABLES if full else PAGE_NODES
    for place in fitted.net.graph.order[:most]:
        _add_node(page, fitted, NodeTable.of(fitted, place, known), redaction, full)
    after = f"more ({'softcount show' if full else '--json'} has all)"
    page.rest(len(fitted.net.graph.names) - most, "node", after=after)
    if full:
        if is_learned(fitted):
            quality.add_quality(page, fitted, redaction, now)
        if now is not None:
            quality.add_drift(page, fitted.record.table, now, name)
        page.heading("How the fit went")
        _add_fit(page, fitted)
        quality.add_origin(page, fitted.record, redaction)
        return page
    if fitted.missing:
        quality.add_missing(page, fitted)
    quality.add_notes(page, fitted.notes)
    return page


def _add_overview(page: Page, fitted: FittedNet, redaction: Redaction) -> None:
    """Add the first parts of a report: table and target, figures, the graph, notes, and how good the network is."""
    tried = fitted.record.evaluation
    subject = quality.subject_of(fitted) if redaction.shows_cells else ""
    page.heading(subject or title_of(fitted))
    if subject:
        page.line(title_of(fitted))
    graph = fitted.net.graph
    shape = Figure("Nodes", str(len(graph.names)), format_count(len(graph.edges), "edge"))
    page.facts([shape, *evaluation.list_figures(tried, fitted.counts.rows)])
    evaluation.add_warning(page, tried)
    _add_graph(page, fitted, redaction, True)
    if redaction.shows_cells:
        quality.add_ordered_notes(page, fitted.notes)
    if fitted.target is not None:
        page.heading("How good it is")
    _add_performance(page, fitted, redaction, True)


def _add_performance(page: Page, fitted: FittedNet, redaction: Redaction, full: bool) -> None:
    tried, target = fitted.record.evaluation, fitted.target
    if target is None:
        return
    if tried is None:
        page.line(NOT_EVALUATED)
        return
    names = redaction.levels(target, fitted.levels[target])
    if full and evaluation.shown_above(tried):
        evaluation.add_confusion(page, tried, names, picture=True)
    intro = f"{tried.how}, on rows the network had not seen ({format_count(tried.n_rows, 'labelled row')}):"
    evaluation.add_evaluation(page, tried, names, intro, remedy="", full=full)


def _add_fit(page: Page, fitted: FittedNet) -> None:
    parameters = format_count(fitted.n_parameters, "free parameter")
    if is_learned(fitted):
        figures = find_figures(fitted)
        page.line(f"from {format_count(fitted.counts.rows, 'row')}, {parameters}")
        bits = figures["description_length_bits"]
        length = "" if bits is None else f", description length {format_number(bits)} bits"
        cost = f"BIC {figures['bic']:,.1f} (smaller is better)"
        page.line(f"log-likelihood {figures['log_likelihood']:,.3f}, {cost}{length}")
    else:
        page.line(f"{parameters}; nothing was learned: the tables are those of the file")
    if fitted.n_iter:
        state = "converged" if fitted.converged else "stopped before it had converged"
        page.line(f"EM {state} after {format_count(fitted.n_iter, 'iteration')}")
    if fitted.agreed is not None and fitted.agreed[1] > 1:
        page.line(quality.describe_starts(fitted.agreed))


def _add_graph(page: Page, fitted: FittedNet, redaction: Redaction, full: bool) -> None:
    """Add the graph as lines of text or, in `full`, as a picture with the distribution of each node."""
    graph, hidden = fitted.net.graph, hidden_names(fitted)
    if not full:
        page.heading("Graph (hidden nodes in parentheses)" if hidden else "Graph")
        page.line(*graph_lines(graph, hidden))
        return
    if len(graph.names) > DRAWN_NODES:
        nodes = format_count(len(graph.names), "node")
        page.line(f"{nodes} are too many to draw here: softcount show MODEL --svg graph.svg")
        return
    nats = edge_information(fitted)
    chart = NetworkPicture(title_of(fitted), graph, _find_monitors(fitted, redaction), nats)
    reading = (
        "Each node with the probabilities of its categories. The width of an edge is the mutual information of its "
        "nodes. Dashed nodes are hidden: no column shows them."
    )
    headings = ("from", "to", "information (nats)")
    grid = make_grid(headings, edge_rows(graph, nats), right=headings[2:])
    page.picture("Nodes and edges", chart, grid, reading)


def _add_node(page: Page, fitted: FittedNet, table: NodeTable, redaction: Redaction, full: bool) -> None:
    """Add the table of a node; in `full`, as a picture with a bar for each configuration of its parents."""
    key, family, parents = table.node.key, table.node.family, [key_text(parent) for parent in table.parents]
    above = [*parents, *map(key_text, family.facts.number_parents)]
    title = f"{key_text(key)}, given {', '.join(above)}" if above else key_text(key)
    given = [list(map(redaction.level, table.parents, levels)) for levels in table.configurations()]
    if table.levels is None:
        heads = [family_title(family)]
        words = table.node.density(fitted.estimates).describe()
        cells = [[text if redaction.shows_cells else "a number"] for text in words]
    else:
        heads = redaction.levels(key, table.levels[:PAGE_LEVELS])
        shares = np.asarray(fitted.estimates[key]["probability"], dtype=float)
        cells = [[format_share(float(p)) for p in line[:PAGE_LEVELS]] for line in shares]
    if table.rows is not None and redaction.shows_cells:
        heads = [*heads, "rows"]
        cells = [[*line, format_number(float(rows))] for line, rows in zip(cells, table.rows, strict=True)]
    lines = [[*levels, *line] for levels, line in zip(given, cells, strict=True)]
    grid = make_grid([*parents, *heads], lines[:PAGE_LINES], right=heads)
    if full and table.levels is not None:
        rows = [", ".join(levels) or "(always)" for levels in given]
        chart = share_chart(
            rows[:DRAWN_ROWS], redaction.levels(key, table.levels), shares[:DRAWN_ROWS], f"the table of {title}"
        )
        cut = f"The first {DRAWN_ROWS} of {len(rows)} configurations." if len(rows) > DRAWN_ROWS else ""
        page.picture(title, chart, grid, cut, small=True)
    else:
        page.heading(title, level=2 if full else 1)
        page.blocks.append(grid)
    page.rest(len(lines) - PAGE_LINES, "line", after="more (--json has all)")
    page.rest(len(table.levels or ()) - PAGE_LEVELS, "level", after="more (--json has all)")


# -- pictures


def _find_monitors(fitted: FittedNet, redaction: Redaction) -> list[Monitor]:
    names, hidden = list(fitted.net.graph.names), hidden_names(fitted)
    answers, found = fitted.query(names, each=True), []
    for name in names:
        answer = answers[name]
        if name in fitted.net.cuts:
            answer = dict(zip(fitted.levels[name], answer.shares.tolist(), strict=True))
        if isinstance(answer, dict):
            many = len(answer) > MONITORED
            ranked = sorted(answer.items(), key=lambda item: -item[1]) if many else list(answer.items())
            lines = [(redaction.level(name, level), part) for level, part in ranked[:MONITORED]]
            if many:
                lines.append((f"{len(answer) - MONITORED} more", sum(part for _, part in ranked[MONITORED:])))
        else:
            lines = [(f"{redaction.number(answer.mean)} ± {redaction.number(answer.variance**0.5, 3)}", float("nan"))]
        found.append(Monitor(key_text(name), lines, name in hidden))
    return found


def edge_information(fitted: FittedNet) -> dict[tuple[int, int], float]:
    """Compute the mutual information of the two nodes of each edge, in nats; edges with a number are left out."""
    graph, levels = fitted.net.graph, fitted.levels
    found: dict[tuple[int, int], float] = {}
    for parent, child in graph.edges:
        if parent not in levels or child not in levels:
            continue
        try:
            joint = np.array(list(fitted.query([parent, child]).values()))
        except DataError:  # too large to be computed
            continue
        joint = joint.reshape(len(levels[parent]), len(levels[child]))
        alone = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
        found[graph.place(parent), graph.place(child)] = max(float(rel_entr(joint, alone).sum()), 0.0)
    return found


def edge_rows(graph: Graph, nats: Mapping[tuple[int, int], float], digits: int = 4) -> list[tuple[str, str, str]]:
    """Return the two nodes of each edge and their mutual information, the largest first; "-" if it is not known."""
    places = [(graph.place(a), graph.place(b)) for a, b in graph.edges]
    ranked = sorted(nats, key=lambda edge: -nats[edge]) + [edge for edge in places if edge not in nats]
    names = [key_text(name) for name in graph.names]
    return [(names[a], names[b], format_number(nats.get((a, b)), digits)) for a, b in ranked]


# -- rows


def anomalies_record(found: Sequence[Anomaly]) -> list[dict[str, Any]]:
    lines = []
    for row in found:
        reasons = [{"node": key, "value": row.cells.get(key), "surprise": x} for key, x in row.parts.items()]
        lines.append({"row": row.row + 1, "score": row.score, "reasons": reasons})
    return lines


def anomalies_page(found: Sequence[Anomaly], files: Sequence[str]) -> Page:
    page = Page()
    page.heading("Rows that fit worst (score: nats of log-probability below the expected value)")
    add_anomalies(page, found, None, files)
    return page
