"""The report of a network: its graph with monitors, its tables, how it tells its class, and where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.errors import DataError
from softcount.report import performance_part, quality_part
from softcount.report.discretion import Discretion
from softcount.report.model_report import add_origin, discretion_of
from softcount.report.network_page import hidden_names, is_learned, net_headline, node_lines
from softcount.report.network_picture import Monitor, network_drawing, table_bars
from softcount.report.page import Page, grid_of, key_text
from softcount.report.plain_text import counted, number, share

if TYPE_CHECKING:
    from softcount.fitted.network import FittedNet
    from softcount.table.column_summary import TableSummary
    from softcount.table.schema import Key

MOST_DRAWN = 60
"""Nodes up to which the graph is drawn with monitors."""
MOST_TABLES, MOST_ROWS, MOST_LISTED, MOST_LEVELS = 24, 12, 30, 7
MOST_MONITORED = 5


def network_report(fitted: FittedNet, now: TableSummary | None = None, name: str = "", redact: bool = False) -> Page:
    """All that is known of a network, as one page; with the summary of a table, drift against training."""
    told = _discretion(fitted, redact)
    page = Page()
    page.heading(net_headline(fitted))
    tried = None if fitted.record is None else fitted.record.evaluation
    begun = f"Learned from {counted(fitted.counts.rows, 'row')}" if is_learned(fitted) else "Tables from a network file"
    page.line(f"{begun}; {counted(fitted.n_parameters, 'free parameter')}.")
    classes = [] if fitted.target is None else told.levels(fitted.target, fitted.levels[fitted.target])
    if tried is not None:
        page.line(performance_part.verdict(tried, key_text(fitted.target), classes))
    elif fitted.target is not None:
        page.line("How good it is on unseen rows is not in the model file.")
    if fitted.notes and told.shows_cells:
        page.heading("Notes", level=2)
        page.line(*fitted.notes)
    if is_learned(fitted):
        quality_part.add_quality(page, fitted, told, now)
    if now is not None:
        before = None if fitted.record is None else fitted.record.table
        quality_part.add_drift(page, before, now, fitted.schema, name)
    if tried is not None:
        page.heading("How good it is")
        intro = f"{tried.how}, on rows the network had not seen ({counted(tried.n_rows, 'labelled row')}):"
        performance_part.add_performance(page, tried, classes, intro)
    page.heading("The graph")
    add_network(page, fitted, told)
    page.heading("Tables")
    add_tables(page, fitted, told)
    page.heading("How the fit went")
    if fitted.n_iter:
        state = "converged" if fitted.converged else "stopped before it had converged"
        page.line(f"EM {state} after {counted(fitted.n_iter, 'iteration')}")
    if not is_learned(fitted):
        page.line("nothing was learned: the tables are as the file has them")
    elif fitted.log_likelihood is not None:
        page.line(f"log-likelihood {fitted.log_likelihood:,.3f}")
    add_origin(page, fitted.record, told)
    return page


def _discretion(fitted: FittedNet, redact: bool) -> Discretion:
    """How levels are shown: those of every node by the rows that were counted of them."""
    told = discretion_of(fitted, redact)
    for key, levels in fitted.levels.items() if redact and is_learned(fitted) else ():
        counts = np.asarray(fitted.counts.arrays[key].value, dtype=float)
        told.rows[key] = dict(zip(levels, counts.reshape(-1, counts.shape[-1]).sum(axis=0).tolist(), strict=False))
    return told


def add_network(page: Page, fitted: FittedNet, told: Discretion) -> None:
    """The graph, each node with its own distribution and each arc with what it says."""
    graph = fitted.net.graph
    if len(graph.names) > MOST_DRAWN:
        page.line(
            f"{counted(len(graph.names), 'node')} are too many to draw here: softcount show MODEL --svg graph.svg"
        )
        return
    says = edge_information(fitted)
    drawing = network_drawing(graph, monitors_of(fitted, told), says, net_headline(fitted))
    edges = sorted(says.items(), key=lambda item: -item[1])
    rows = [(key_text(graph.names[a]), key_text(graph.names[b]), number(nats)) for (a, b), nats in edges]
    known = set(says)
    rows += [(key_text(a), key_text(b), "-") for a, b in graph.edges if (graph.place(a), graph.place(b)) not in known]
    reading = (
        "Each node with the shares of its levels; an arc is as wide as what its two nodes say of each other, in nats. "
        "Dashed nodes are hidden: no column shows them."
    )
    grid = grid_of(("from", "to", "says (nats)"), rows, right=("says (nats)",))
    page.picture("Nodes and arcs", drawing, grid, reading)


def monitors_of(fitted: FittedNet, told: Discretion) -> list[Monitor]:
    """Every node with its own distribution, nothing being known."""
    names, hidden = list(fitted.net.graph.names), hidden_names(fitted)
    answers = fitted.query(names, each=True)
    found = []
    for name in names:
        answer = answers[name]
        if name in fitted.net.cuts:
            answer = dict(zip(fitted.levels[name], answer.shares.tolist(), strict=True))
        if isinstance(answer, dict):
            ranked = (
                sorted(answer.items(), key=lambda item: -item[1])
                if len(answer) > MOST_MONITORED
                else list(answer.items())
            )
            lines = [(told.level(name, level), part) for level, part in ranked[:MOST_MONITORED]]
            if len(answer) > len(lines):
                lines.append((f"{len(answer) - len(lines)} more", sum(part for _, part in ranked[MOST_MONITORED:])))
        else:
            lines = [(f"{told.number(answer.mean)} ± {told.number(answer.variance**0.5, 3)}", float("nan"))]
        found.append(Monitor(key_text(name), lines, name in hidden))
    return found


def edge_information(fitted: FittedNet) -> dict[tuple[int, int], float]:
    """What the two nodes of each edge say of each other, in nats; edges with a number are left out."""
    graph, levels = fitted.net.graph, fitted.levels
    found: dict[tuple[int, int], float] = {}
    for parent, child in graph.edges:
        if parent not in levels or child not in levels:
            continue
        try:
            joint = np.array(list(fitted.query([parent, child]).values()))
        except DataError:  # too large to be worked out
            continue
        joint = joint.reshape(len(levels[parent]), len(levels[child]))
        alone = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            nats = np.where(joint > 0, joint * np.log(joint / alone), 0.0).sum()
        found[graph.place(parent), graph.place(child)] = max(float(nats), 0.0)
    return found


def add_tables(page: Page, fitted: FittedNet, told: Discretion) -> None:
    """The table of every node: a bar for each configuration of its parents."""
    known, net = fitted.levels, fitted.net
    for place in net.graph.order[:MOST_TABLES]:
        said = node_lines(fitted, place, known)
        key = said.node.key
        if said.levels is None:
            words = said.node.family.describe(_public(fitted, said.node), said.node.setting)
            page.line(f"{key_text(key)}: {'; '.join(words[:MOST_LEVELS]) if told.shows_cells else 'a number'}")
            continue
        _add_table(page, fitted, said, told)
    if len(net.graph.names) > MOST_TABLES:
        page.line(f"and {counted(len(net.graph.names) - MOST_TABLES, 'node')} more (softcount show has them)")


def _add_table(page: Page, fitted: FittedNet, said: Any, told: Discretion) -> None:
    key: Key = said.node.key
    table = np.asarray(fitted.estimates[key]["probability"], dtype=float)
    rows = [
        ", ".join(told.level(parent, level) for parent, level in zip(said.parents, levels, strict=True)) or "(always)"
        for levels in said.configurations()
    ]
    kept = np.sort(np.argsort(-table.mean(axis=0), kind="stable")[:MOST_LEVELS])
    names = told.levels(key, [said.levels[at] for at in kept])
    shares = table[:, kept]
    if len(kept) < table.shape[1]:
        names, shares = [*names, "others"], np.concatenate([shares, 1 - shares.sum(axis=1, keepdims=True)], axis=1)
    above = ", ".join(map(key_text, said.parents))
    title = f"{key_text(key)}, given {above}" if above else key_text(key)
    drawing = table_bars(rows[:MOST_ROWS], names, shares[:MOST_ROWS], f"the table of {key_text(key)}")
    headings = (above or "", *names)
    lines = [
        (row, *(share(float(x)) for x in line))
        for row, line in zip(rows[:MOST_LISTED], shares[:MOST_LISTED], strict=True)
    ]
    cut = f"The first {MOST_ROWS} of {len(rows)} configurations." if len(rows) > MOST_ROWS else ""
    page.picture(title, drawing, grid_of(headings, lines, right=names), cut)


def _public(fitted: FittedNet, node: Any) -> Any:
    return node.family.public(fitted.estimates[node.key], node.setting)
