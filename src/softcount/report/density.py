"""Densities of a column: ranked, drawn as text, and as an SVG picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from softcount.densities.histogram import counts_of, edges_of
from softcount.densities.kernels import WeightedPoints
from softcount.evaluate.density_ranking import LEAST_ROWS, DensityRanking, RankedDensity, between_steps
from softcount.pictures import text
from softcount.pictures.chart import PAGE, Axis, Bars, Chart, class_lines
from softcount.pictures.text import format_count, format_list, format_number, printable, shorten, wrap_list
from softcount.report.page import WIDTH, Page, pick

ACROSS = 64
"""Columns of a drawing in a terminal."""
POINTS = 400
"""Points of a curve in a picture."""
REACH = 0.04
"""How far a drawing goes beyond the values, as a share of their range."""
DRAWN_GROUPS = 12
"""Groups that a drawing holds."""
NAME_LIMIT = 16


class DensityReport(Struct, frozen=True):
    """What was found of a column; `compare` shows every density instead of the best alone."""

    column: str
    by: str | None
    missing: int
    ranking: DensityRanking
    compare: bool = False

    @property
    def range(self) -> tuple[float, float]:
        """What is drawn: all values but for the last thousandth at either end, and a little beyond."""
        values = np.concatenate(list(self.ranking.groups.values()))
        low, high = np.quantile(values, [0.001, 0.999]) if len(values) >= 1000 else (values.min(), values.max())
        low, high = (low, high) if high > low else (values.min(), values.max())
        beyond = REACH * (high - low)
        start = low - beyond if values.min() < 0 or low - beyond > 0 else -self.ranking.step / 2
        return float(start), float(high + beyond)

    def curve(self, density: RankedDensity, group: Any, points: int) -> tuple[np.ndarray, np.ndarray]:
        x = np.linspace(*self.range, points)
        return x, np.exp(density.fits[group].log_density(x))


# -- for a terminal


def density_page(report: DensityReport, plot: str | None = None) -> Page:
    page, ranking = Page(), report.ranking
    by = "" if report.by is None else f" by {printable(report.by)}"
    page.heading(f"Density of {printable(report.column)}{by}: {ranking.best.name}")
    page.line(_describe_rows(report))
    _add_drawing(page, report)
    page.heading("Ranked by held-out log-likelihood" if report.compare else "Held-out log-likelihood, in nats per row")
    if report.compare:
        headings = ("density", "nats per row", "behind", "±", "what it is")
        rows = []
        for density in ranking.densities:
            words = next(iter(density.fits.values())).description if len(density.fits) == 1 else ""
            behind = ("", "") if density is ranking.best else map(_format_nats, (density.behind, density.error))
            rows.append((density.name, _format_nats(density.log_likelihood), *behind, shorten(words, WIDTH - 46)))
        page.grid(headings, rows, right=headings[1:4])
        for density in ranking.densities:
            if density.impossible:
                values = format_count(density.impossible, "held-out value")
                page.line(f"{density.name} has density 0 at {values}")
    else:
        first = f"{ranking.best.name} {_format_nats(ranking.best.log_likelihood)}"
        rest = [f"{density.name} {_format_nats(density.behind)}" for density in ranking.densities[1:]]
        page.line(*wrap_list(f"{first}; behind it: " if rest else first, rest, WIDTH))
        page.line("every density and its parameters: --compare")
    for name, why in ranking.failed.items():
        page.line(f"not tried: {name} ({why.splitlines()[0]})")
    if plot is not None:
        page.line(f"picture: {plot}")
    return page


def _describe_rows(report: DensityReport) -> str:
    ranking = report.ranking
    line = format_count(ranking.rows, "value")
    line += "" if ranking.ranked_rows == ranking.rows else f", ranked by a sample of {ranking.ranked_rows:,}"
    line += f", {report.missing:,} missing" if report.missing else ""
    line += f", {ranking.unlabelled:,} without {printable(report.by)}" if ranking.unlabelled else ""
    if ranking.left_out:
        names = [f"{printable(name)} ({rows:,})" for name, rows in ranking.left_out.items()]
        line += f"; left out, with fewer than {LEAST_ROWS} rows or one value only: {format_list(names)}"
    return line


def _add_drawing(page: Page, report: DensityReport) -> None:
    """Add the best density as an area, or a line of blocks for each density or group."""
    ranking, (low, high) = report.ranking, report.range
    if report.by is None and not report.compare:
        page.line(ranking.best.fits[None].description, "")
        page.line(*text.area(report.curve(ranking.best, None, ACROSS)[1]), *text.axis(low, high, ACROSS), "")
        return
    if report.by is None:
        counts = np.histogram(ranking.groups[None], np.linspace(low, high, ACROSS + 1))[0].astype(float)
        lines = [("the values", counts), *((x.name, report.curve(x, None, ACROSS)[1]) for x in ranking.densities)]
    else:
        lines = [(str(name), report.curve(ranking.best, name, ACROSS)[1]) for name in ranking.groups]
        page.line(*(f"{printable(name)}: {fit.description}" for name, fit in ranking.best.fits.items()))
    page.line("")
    for name, heights in lines[:DRAWN_GROUPS]:
        page.line(f"{shorten(printable(name), NAME_LIMIT):<{NAME_LIMIT}} {text.spark(heights)}")
    if len(lines) > DRAWN_GROUPS:
        page.line(f"and {len(lines) - DRAWN_GROUPS} more")
    page.line(*(" " * (NAME_LIMIT + 1) + line for line in text.axis(low, high, ACROSS)), "")


def _format_nats(value: float) -> str:
    return "-" if not np.isfinite(value) else f"{value:,.4f}" if abs(value) < 1000 else format_number(value)


# -- as data and as a picture


def density_record(report: DensityReport) -> dict[str, Any]:
    """Return the densities of a column, the best first."""
    ranking, densities = report.ranking, []
    for density in ranking.densities:
        found = [{"group": name, "found": fit.description} for name, fit in density.fits.items()]
        densities.append({
            **pick(density, "name", "log_likelihood", "behind"),
            "standard_error": density.error,
            **pick(density, "bits_behind", "impossible"),
            **({"found": density.fits[None].description} if report.by is None else {"groups": found}),
        })  # fmt: skip
    left_out = [{"group": name, "rows": rows} for name, rows in ranking.left_out.items()]
    return {
        **pick(report, "column", "by"), **pick(ranking, "rows", "ranked_rows"), "missing": report.missing,
        "unlabelled": ranking.unlabelled, "left_out": left_out, "not_tried": ranking.failed, "densities": densities,
    }  # fmt: skip


def density_chart(report: DensityReport) -> Chart:
    """Describe the values as bars and the densities as curves; with groups, the best density of each."""
    ranking = report.ranking
    if report.by is None:
        shown = ranking.densities if report.compare else ranking.densities[:1]
        names, curves = [f"{x.name}: {x.fits[None].description}" for x in shown], [(x, None) for x in shown]
    else:
        names = [str(name) for name in [*ranking.groups][:DRAWN_GROUPS]]
        curves = [(ranking.best, name) for name in [*ranking.groups][:DRAWN_GROUPS]]
    ys = [report.curve(density, group, POINTS)[1] for density, group in curves]
    marks: list[Any] = [*_bars(report), *class_lines(names, np.linspace(*report.range, POINTS), ys)]
    tops = sorted(float(y.max()) for y in ys if np.isfinite(y.max()))
    high = max([*(t for t in tops), *(float(np.max(x.ends)) for x in marks if isinstance(x, Bars))], default=1.0)
    if len(tops) > 1 and tops[-1] >= 4 * tops[-2]:  # one peak far above all else would flatten it
        high = 2 * tops[-2] / 1.05
    title = f"Density of {report.column}{'' if report.by is None else f' by {report.by}'}: {ranking.best.name}"
    y = Axis("density", (0.0, 1.05 * high or 1.0))
    return Chart(title, marks, Axis(report.column, report.range), y, names, title, PAGE, 320)


def _bars(report: DensityReport) -> list[Bars]:
    if report.by is not None:
        return []
    low, high = report.range
    values = report.ranking.groups[None]
    inside = values[(values >= low) & (values <= high)]
    if np.ptp(inside) == 0:
        return []
    points = WeightedPoints(inside)
    edges = between_steps(edges_of("fd", points), report.ranking.step)
    heights = counts_of(points, edges) / (len(values) * np.diff(edges))
    middle = (edges[1:] + edges[:-1]) / 2
    return [Bars(middle, np.zeros(len(middle)), heights, ("line",), thick=np.diff(edges), strength=0.6, upright=True)]
