"""K-means: its centres, its sizes, how its cost fell, and its clusters in two columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.pictures.chart import PAGE, Axis, Cells, Chart, Line, Regions, widen
from softcount.pictures.text import format_count, format_number, format_share
from softcount.report.class_pictures import plane_marks
from softcount.report.classes import starts_record
from softcount.report.page import RARE, Figure, Page, Redaction, make_grid
from softcount.report.quality import add_notes

if TYPE_CHECKING:
    from softcount.learn.k_means import Centres

PAGE_COLUMNS, PAGE_CENTRES = 10, 6
"""Columns of the table of centres; up to this many centres are its columns, more are its lines."""
MAP_COLUMNS, MAP_CENTRES, DRAWN_ROWS, TRACE_LINES = 20, 12, 400, 60


def centres_record(found: Centres, names: list[str]) -> dict[str, Any]:
    return {
        "clusters": len(found.centres), "columns": names, "centres": found.centres, "unit_length": found.frame.unit,
        "cost": found.inertia, "trace": found.trace, "iterations": found.n_iter, "converged": found.converged,
        "starts": starts_record(found.agreed), "notes": found.notes,
    }  # fmt: skip


def centres_page(
    found: Centres, names: Sequence[str], full: bool = False, rows: np.ndarray | None = None, redact: bool = False
) -> Page:
    """Write the centres; in `full`, for a report: with pictures, sizes, and how the cost fell.

    `rows` are numbers that a report draws and counts.
    """
    page, redaction, centres = Page(), Redaction(redact), found.centres
    clusters = format_count(len(centres), "cluster")
    page.heading(f"K-means, rows of length one: {clusters}" if found.frame.unit else f"K-means: {clusters}")
    ending = "converged" if found.converged else "stopped before it had converged"
    ending = f"{ending} after {format_count(found.n_iter, 'pass', 'passes')}"
    best, run = found.agreed
    if full:
        figures = [
            Figure("Clusters", str(len(centres)), ""),
            Figure("Rows", format_number(float(found.sizes.sum())), "in training"),
            Figure("Cost", format_number(found.inertia, 4), ending),
            Figure("Initialisations", str(run), f"{best} reached this cost"),
        ]
        page.facts(figures)
    else:
        page.line(f"cost {format_number(found.inertia, 6)}; {ending}")
        page.heading("Centres")
    shown = [redaction.allows(n) for n in found.sizes.tolist()]  # a centre of few rows would show their cells
    _add_centres(page, found, names, [redaction.number if there else lambda x: RARE for there in shown], full)
    if full:
        _add_plane(page, centres, names, rows, found.frame.unit, redaction if all(shown) else None)
        given = None if rows is None else np.bincount(_nearest(centres, rows), minlength=len(centres))
        page.heading("Sizes")
        headings, lines = ["cluster"], [[f"cluster {k}"] for k in range(len(centres))]
        for counts, what in ((found.sizes, "training rows"), (given, "rows given")):
            if counts is not None:
                headings += [what, "share"]
                for line, n in zip(lines, counts.astype(float).tolist(), strict=True):
                    line += [format_number(n), format_share(n / counts.sum())]
        page.grid(headings, lines, right=None)
        page.heading("How the fit went")
        _add_cost(page, found.trace)
    if not redact:
        add_notes(page, found.notes)
    return page


def _add_centres(
    page: Page, found: Centres, names: Sequence[str], formats: Sequence[Callable[[float], str]], full: bool
) -> None:
    """Add the columns in which centres differ most, as a table or as a heat map."""
    spread = found.frame.inside(found.centres).var(axis=0)
    order = np.argsort(-spread, kind="stable")
    few = full or len(found.centres) <= PAGE_CENTRES
    chosen = order[: (MAP_COLUMNS if full else PAGE_COLUMNS) if few else PAGE_CENTRES]
    centres = found.centres[: MAP_CENTRES if full else None][:, chosen]
    texts = [[write(x) for x in line] for write, line in zip(formats, centres.tolist(), strict=False)]
    called = [f"cluster {cluster}" for cluster in range(len(centres))]
    columns = [names[j] for j in chosen]
    if few:
        across = [(name, *line) for name, line in zip(columns, zip(*texts, strict=True), strict=True)]
        grid = make_grid(("column", *called), across, None)
    else:
        grid = make_grid(("cluster", *columns), [(str(g), *line) for g, line in enumerate(texts)], None)
    if full:
        off = (centres - found.centres[:, chosen].mean(axis=0)).T
        most = np.abs(off).max(axis=1, keepdims=True)
        tones = [["plus" if x >= 0 else "minus" for x in line] for line in off]
        cells = Cells(np.abs(off) / np.where(most > 0, most, 1.0), list(zip(*texts, strict=True)), tones)
        x, y = Axis(labels=called), Axis(labels=columns)
        chart = Chart("centres in shades", [cells], x, y, width=PAGE, height=26)
        reading = "The centre of each cluster, column by column: blue above the middle of all centres, orange below."
        page.picture("Centres", chart, grid, reading)
    else:
        page.blocks.append(grid)
    if len(found.centres) > len(centres):
        page.line(f"shown are {len(centres)} of {len(found.centres)} clusters")
    page.rest(len(order) - len(chosen), "column", after="in which the centres differ less")


def _add_plane(
    page: Page, centres: np.ndarray, names: Sequence[str], rows: np.ndarray | None, unit: bool,
    redaction: Redaction | None,
) -> None:  # fmt: skip
    """Add the two columns in which centres lie farthest apart, with regions by the nearest centre."""
    pair = np.sort(np.argsort(-centres.std(axis=0), kind="stable")[:2])
    if redaction is None:
        page.line("The picture of the clusters is left out: it would show cells of clusters with fewer than five rows.")
        return
    if len(pair) < 2 or len(centres) < 2 or unit:
        return
    places, two, called = centres[:, pair], [names[at] for at in pair], [f"cluster {k}" for k in range(len(centres))]
    some = np.zeros((0, centres.shape[1])) if rows is None or redaction.redacted else rows[:DRAWN_ROWS]
    shown, own = some[:, pair], _nearest(centres, some)
    ends = [widen(np.concatenate([places[:, k], shown[:, k]]), 0.08 if len(shown) else 0.3) for k in (0, 1)]
    x, y = (np.linspace(low, high, 48 + 1)[:-1] + (high - low) / 96 for low, high in ends)
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    regions = ((grid[:, :, None, :] - places) ** 2).sum(axis=-1).argmin(axis=-1)
    marks = [Regions(regions, ends[0], ends[1]), *plane_marks([shown[own == k] for k in range(len(centres))])]
    axes = Axis(two[0], ends[0]), Axis(two[1], ends[1])
    chart = Chart("regions by the nearest centre", marks, *axes, called, height=230)
    lines = [(name, *map(redaction.number, line)) for name, line in zip(called, places.tolist(), strict=True)]
    reading = (
        "The two columns in which the centres differ most. A region holds the points whose nearest centre, in these "
        "two columns, is the same."
    )
    page.picture("Nearest centre", chart, make_grid(("cluster", *two), lines, None), reading, small=True)


def _nearest(centres: np.ndarray, rows: np.ndarray) -> np.ndarray:
    squares = (centres**2).sum(axis=1) - 2.0 * np.nan_to_num(rows) @ centres.T
    return np.asarray(squares.argmin(axis=1))


def _add_cost(page: Page, trace: Sequence[float]) -> None:
    if len(trace) < 2 or trace[0] - trace[-1] <= 1e-9 * abs(trace[-1]):
        page.line("The best initialisation was already at its final cost.")
        return
    line = Line(range(len(trace)), trace, "cost", dots=3.2 if len(trace) < 40 else 0.0)
    chart = Chart("the cost by half-step", [line], Axis("half-steps"), Axis("cost"))
    rows = [
        (str(k), "rows to centres" if k % 2 == 0 else "centres to rows", format_number(x, 6))
        for k, x in enumerate(trace)
    ]
    grid = make_grid(("half-step", "what moved", "cost"), rows[:TRACE_LINES], right=("half-step", "cost"))
    reading = "The cost after each half-step of the best start. It never rises."
    page.picture("Cost by half-step", chart, grid, reading, small=True)
