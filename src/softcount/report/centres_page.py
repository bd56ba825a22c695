"""What a k-means file holds: its centres, how they were found, and which columns tell them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softcount.report.model_page import MOST_COLUMNS, add_notes
from softcount.report.page import Page
from softcount.report.plain_text import counted, number

if TYPE_CHECKING:
    from softcount.learn.kmeans.fit_kmeans import Centres

SIDE_BY_SIDE = 6
"""Up to this many centres are columns of one table; more are its lines, with as many columns."""


def centres_page(found: Centres, names: list[str]) -> Page:
    """The centres, the columns in which they differ most first."""
    page = Page()
    clusters = counted(len(found.centres), "cluster")
    page.heading(f"K-means, rows of length one: {clusters}" if found.frame.unit else f"K-means: {clusters}")
    ending = "converged" if found.converged else "stopped before it had converged"
    page.line(f"cost {number(found.inertia, 6)}; {ending} after {counted(found.n_iter, 'pass', 'passes')}")
    page.heading("Centres")
    if len(found.centres) <= SIDE_BY_SIDE:
        _add_side_by_side(page, found, names)
    else:
        _add_lines(page, found, names)
    add_notes(page, found.notes)
    return page


def _apart(found: Centres) -> list[int]:
    """Columns by how far the centres lie apart in them."""
    spread = found.frame.inside(found.centres).var(axis=0)
    return sorted(range(len(spread)), key=lambda column: -spread[column])


def _add_side_by_side(page: Page, found: Centres, names: list[str]) -> None:
    headings = [f"cluster {cluster}" for cluster in range(len(found.centres))]
    order = _apart(found)
    rows = [(names[j], *(number(float(x)) for x in found.centres[:, j])) for j in order[:MOST_COLUMNS]]
    page.grid(("column", *headings), rows, right=headings)
    _add_rest(page, len(order) - MOST_COLUMNS)


def _add_lines(page: Page, found: Centres, names: list[str]) -> None:
    order = _apart(found)
    chosen = order[:SIDE_BY_SIDE]
    headings = [names[j] for j in chosen]
    rows = [(str(g), *(number(float(centre[j])) for j in chosen)) for g, centre in enumerate(found.centres)]
    page.grid(("cluster", *headings), rows, right=headings)
    _add_rest(page, len(order) - SIDE_BY_SIDE)


def _add_rest(page: Page, left: int) -> None:
    if left > 0:
        page.line(f"and {counted(left, 'column')} in which the centres differ less")


def centres_document(found: Centres, names: list[str]) -> dict[str, Any]:
    best, run = found.agreed
    return {
        "clusters": len(found.centres),
        "columns": names,
        "centres": found.centres,
        "unit_length": found.frame.unit,
        "cost": found.inertia,
        "trace": found.trace,
        "iterations": found.n_iter,
        "converged": found.converged,
        "starts": {"run": run, "reached_the_best": best},
        "notes": found.notes,
    }
