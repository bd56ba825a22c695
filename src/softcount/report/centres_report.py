"""The report of k-means: its centres, how its cost fell, and what its clusters look like in two columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.pictures.curve_pictures import LinePlot, PlottedLine, lines_drawing
from softcount.pictures.plane_pictures import Plane, plane_drawing
from softcount.pictures.plot_frame import widened
from softcount.pictures.table_pictures import ShadedTable, shaded_drawing
from softcount.report.discretion import RARE, Discretion
from softcount.report.page import Page, grid_of
from softcount.report.plain_text import counted, number, share

if TYPE_CHECKING:
    from softcount.learn.kmeans.fit import Centres
    from softcount.pictures.drawing import Drawing

MOST_COLUMNS, MOST_CENTRES, MOST_POINTS = 20, 12, 400


def centres_report(found: Centres, names: Sequence[str], rows: np.ndarray | None = None, redact: bool = False) -> Page:
    """All that is known of k-means centres; `rows` are numbers to show beside them."""
    page, centres, told = Page(), found.centres, Discretion(redact)
    large = [told.tells(n) for n in ([0.0] * len(centres) if found.sizes is None else found.sizes.tolist())]
    called = [f"cluster {place}" for place in range(len(centres))]
    page.heading(f"k-means: {counted(len(centres), 'cluster')}, {counted(centres.shape[1], 'column')}")
    best, run = found.agreed
    page.line(
        f"Cost (sum of squared distances) {number(found.inertia, 6)}; {best} of {counted(run, 'start')} reached it."
    )
    if not found.converged:
        page.line("It had not converged.")
    if found.notes and not redact:
        page.heading("Notes", level=2)
        page.line(*found.notes)
    page.heading("The clusters")
    _add_centres(page, _figures(centres, large, told), centres, names, called)
    spread = centres.std(axis=0)
    pair = np.sort(np.argsort(-spread, kind="stable")[:2])
    if not all(large):
        page.line("no plane of the clusters: some have fewer than five rows, whose cells it would show")
    elif len(pair) == 2 and len(centres) > 1 and not found.frame.unit:
        shown = None if rows is None or redact else rows
        page.picture(
            "Who is nearest where",
            _regions(centres, (int(pair[0]), int(pair[1])), names, called, shown),
            grid_of(
                ("cluster", *(names[at] for at in pair)),
                [(name, *map(told.number, line)) for name, line in zip(called, centres[:, pair].tolist(), strict=True)],
                right=[names[at] for at in pair],
            ),
            "The two columns in which centres lie farthest apart; regions by the nearest centre in these two alone.",
            small=True,
        )
    if found.sizes is not None:
        _add_sizes(page, found.sizes, called, "rows it was learned from")
    if rows is not None:
        _add_sizes(page, np.bincount(_nearest(centres, rows), minlength=len(centres)), called, "rows given")
    page.heading("How the fit went")
    _add_cost(page, found.trace)
    return page


def _figures(centres: np.ndarray, large: Sequence[bool], told: Discretion) -> list[list[str]]:
    """The centres as they are shown: that of few rows would show their cells."""
    return [
        [told.number(x) if there else RARE for x in line] for line, there in zip(centres.tolist(), large, strict=True)
    ]


def _add_centres(
    page: Page, figures: list[list[str]], centres: np.ndarray, names: Sequence[str], called: Sequence[str]
) -> None:
    """Centres across, columns down, in shades of how far each lies from the mean of all."""
    spread = centres.std(axis=0)
    order = np.argsort(-spread, kind="stable")[:MOST_COLUMNS]
    some = centres[:MOST_CENTRES][:, order].T
    off = some - centres[:, order].mean(axis=0)[:, None]
    most = np.abs(off).max(axis=1, keepdims=True)
    shades = np.abs(off) / np.where(most > 0, most, 1.0)
    tones = [["plus" if x >= 0 else "minus" for x in line] for line in off]
    texts = [[line[at] for line in figures[:MOST_CENTRES]] for at in order]
    table = ShadedTable([names[at] for at in order], called[:MOST_CENTRES], shades, texts, tones)
    headings = ("column", *called[:MOST_CENTRES])
    rows = [(names[at], *line) for at, line in zip(order, texts, strict=True)]
    reading = "The centre of each cluster, column by column: blue above the middle of all centres, orange below."
    drawing = shaded_drawing(table, "centres in shades")
    page.picture("Centres", drawing, grid_of(headings, rows, right=headings[1:]), reading)
    if centres.shape[0] > MOST_CENTRES or centres.shape[1] > MOST_COLUMNS:
        page.line(
            f"shown are {some.shape[1]} of {centres.shape[0]} clusters and {len(order)} of {centres.shape[1]} columns"
        )


def _nearest(centres: np.ndarray, rows: np.ndarray) -> np.ndarray:
    squares = (centres**2).sum(axis=1) - 2.0 * np.nan_to_num(rows) @ centres.T
    return np.asarray(squares.argmin(axis=1))


def _regions(
    centres: np.ndarray, pair: tuple[int, int], names: Sequence[str], called: Sequence[str], rows: np.ndarray | None
) -> Drawing:
    places = centres[:, pair]
    shown = np.zeros((0, 2)) if rows is None else rows[:MOST_POINTS][:, pair]
    ends = [widened(np.concatenate([places[:, k], shown[:, k]]), 0.08 if len(shown) else 0.3) for k in (0, 1)]
    x, y = (np.linspace(low, high, 48 + 1)[:-1] + (high - low) / 96 for low, high in ends)
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    regions = ((grid[:, :, None, :] - places) ** 2).sum(axis=-1).argmin(axis=-1)
    own = _nearest(centres, rows[:MOST_POINTS]) if rows is not None else np.zeros(0)
    points = [shown[own == place] for place in range(len(centres))] if len(shown) else []
    plane = Plane(names[pair[0]], names[pair[1]], ends[0], ends[1], called, points, (), regions)
    return plane_drawing(plane, "regions by the nearest centre")


def _add_sizes(page: Page, sizes: np.ndarray, called: Sequence[str], what: str) -> None:
    whole = float(sizes.sum())
    lines = [(name, number(n), share(n / whole)) for name, n in zip(called, sizes.astype(float).tolist(), strict=True)]
    page.grid(("cluster", what, "share"), lines, right=(what, "share"))


def _add_cost(page: Page, trace: Sequence[float]) -> None:
    """J after each half-step: rows to centres, centres to rows."""
    if len(trace) < 2 or trace[0] - trace[-1] <= 1e-9 * abs(trace[-1]):
        page.line("the best start began where it ended: nothing was left to gain")
        return
    plot = LinePlot("half-steps", "cost")
    drawing = lines_drawing(
        [PlottedLine("cost", range(len(trace)), trace, dots=len(trace) < 40)], plot, "the cost by half-step"
    )
    rows = [(str(k), "rows to centres" if k % 2 == 0 else "centres to rows", number(x, 6)) for k, x in enumerate(trace)]
    grid = grid_of(("half-step", "what moved", "cost"), rows[:60], right=("half-step", "cost"))
    reading = "The cost after each half-step of the best start. It never rises."
    page.picture("How the cost fell", drawing, grid, reading, small=True)


def numbers_of(X: Any) -> np.ndarray | None:
    """The rows as numbers; None where they are sparse, or none."""
    if X is None or hasattr(X, "tocsr"):
        return None
    return np.asarray(X, dtype=float)
