"""Pictures of a model of classes: where classes lie, what sets them apart, what each cell adds, how EM went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from softcount.errors import DataError
from softcount.fitted import explain
from softcount.fitted.answers import labels_in
from softcount.fitted.class_answers import ColumnShape, column_shape, marginal, plain_columns
from softcount.fitted.explain import measure_departures
from softcount.pictures.chart import (
    PANEL,
    Axis,
    Bars,
    Cells,
    Chart,
    Line,
    Mark,
    Points,
    Regions,
    bar_chart,
    class_lines,
    share_chart,
    waterfall_chart,
    widen,
)
from softcount.pictures.drawing import class_tone, stack
from softcount.pictures.nomogram import Nomogram, NomogramLine
from softcount.pictures.text import format_count, format_list, format_number, format_share, shorten
from softcount.report.page import OPEN, RARE, Grid, Page, Redaction, format_cell, key_text, make_grid

if TYPE_CHECKING:
    from softcount.evaluate.scores import PickedRow, RowFindings
    from softcount.fitted.classes import SortedTable
    from softcount.fitted.fitted import Fitted
    from softcount.report.words import ShownDocument
    from softcount.table.column_summary import ColumnSummary, TableSummary
    from softcount.table.schema import Key

MAP_COLUMNS, MAP_CLASSES, MAP_WIDTH = 20, 12, 940.0
"""Columns and classes of the heat map, those with the greatest influence and the largest; and its greatest width."""
FRAME_ROWS, FRAMES = 60, (1, 2, 3, 5, 10, 20)
"""Rows for each class in the pictures of EM, and the iterations after which one is drawn."""
ELLIPSES = (0.5, 0.95)
"""The shares of a class that its ellipses hold."""
NOMOGRAM_LINES, NOMOGRAM_PAIRS, PANELS = 14, 3, 12
"""Columns of a nomogram, nomograms of many classes, and columns with a panel."""
DRAWN_LEVELS, LISTED_LEVELS, DRAWN_CLASSES, STEPS = 8, 30, 8, 10
"""Categories with a bar and in the numbers, classes in a panel, and steps of a row's explanation."""
GROUPED_CLASSES = 4
"""Up to this many classes have their own bar for each category; more are divided bars."""
LEAST_STEP = 0.005
"""Log-odds below which a step of an explanation has no bar of its own: it would be written as 0.00."""


class GivenRows(Struct, frozen=True):
    """A table given to a page: its name, its rows sorted into the classes, and what a report shows of it besides.

    `files` are the names of the rows if each row is a file.
    """

    name: str
    sorting: SortedTable | None = None
    files: Sequence[str] = ()
    summary: TableSummary | None = None
    findings: RowFindings | None = None
    documents: Sequence[ShownDocument] = ()


class View(Struct, frozen=True):
    """A model of classes as a page shows it, with the names of its classes.

    With `parameters`, shares, means and deviations are those that rows are scored with, not those of the rows.
    """

    fitted: Fitted
    names: Sequence[str]
    full: bool = False
    rows: GivenRows | None = None
    parameters: bool = False
    redaction: Redaction = OPEN

    @property
    def learned_rows(self) -> bool:
        """Whether the rows given are those that the model was learned from."""
        before, now = self.fitted.record.table, None if self.rows is None else self.rows.summary
        if before is None or now is None:
            return False
        return (now.rows, now.columns) == (before.rows, before.columns)  # labels may be given separately

    @property
    def findings(self) -> RowFindings | None:
        return None if self.rows is None else self.rows.findings

    def largest(self, most: int) -> np.ndarray:
        """The places of the largest classes, in order."""
        return np.sort(np.argsort(-self.fitted.row_shares, kind="stable")[:most])

    def by_influence(self, columns: Sequence[Key]) -> list[Key]:
        """Sort columns by their influence; those without any come last."""
        known = {key: place for place, (key, _) in enumerate(self.fitted.influence())}
        return sorted(columns, key=lambda key: known.get(key, len(known)))


def _legend(names: Sequence[str]) -> Sequence[str]:
    return names if len(names) > 1 else ()


# -- the heat map of classes and columns


def add_heat_map(page: Page, view: View) -> None:
    """Add how far each class departs from the whole table in each column, and its typical value there."""
    far, groups, names = _column_departures(view.fitted), view.largest(MAP_CLASSES), view.names
    ranked = sorted(far, key=lambda key: -float(far[key].sum()))[:MAP_COLUMNS]
    if not ranked or len(names) < 2:
        return
    most = max(float(far[key][groups].max()) for key in ranked) or 1.0
    shades = np.array([np.sqrt(far[key][groups] / most) for key in ranked])
    cells = [_typical_cells(view, key, groups) for key in ranked]
    texts, tones = ([[cell[part] for cell in line] for line in cells] for part in (0, 1))
    x, y = Axis(labels=[names[g] for g in groups]), Axis(labels=[key_text(key) for key in ranked])
    description = "how far each class departs from the whole table in each column"
    chart = Chart(description, [Cells(shades, texts, tones)], x, y, width=MAP_WIDTH, height=26)
    rows = [(key_text(key), *(format_number(float(far[key][g]), 3) for g in groups)) for key in ranked]
    reading = (
        "Each cell has the mean of a number, or the most frequent category. The deeper the shade, the more the class "
        "differs from the whole table: blue above its mean, orange below, purple for categories."
    )
    page.picture("Class profiles", chart, make_grid(("column", *x.labels), rows, None), reading)
    if len(names) > len(groups) or len(far) > len(ranked):
        page.line(f"shown are {len(groups)} of {len(names)} classes and {len(ranked)} of {len(far)} columns")


def _column_departures(fitted: Fitted) -> dict[Key, np.ndarray]:
    """Return the departure of each class from the whole table in nats; of a normal block, column by column."""
    found: dict[Key, np.ndarray] = {}
    normal = explain.find_normals(fitted)
    for key, far in measure_departures(fitted).items():
        columns = [column for column in (key if isinstance(key, tuple) else ()) if column in normal]
        for column in columns:
            density, _ = marginal(fitted, column)
            found[column] = density.divergence(fitted.row_shares)
        if not columns and key not in fitted.schema.texts:
            found[key] = far
    return found


def _typical_cells(view: View, key: Key, groups: np.ndarray) -> list[tuple[str, str]]:
    """The text and the tone of a cell for each class."""
    fitted, redaction = view.fitted, view.redaction
    if isinstance(key, tuple):
        parts = [[text for text, _ in _typical_cells(view, column, groups)] for column in key]
        return [(", ".join(filter(None, own)), "c6") for own in zip(*parts, strict=True)]
    if key not in fitted.schema.by_key:
        return [("", "c6")] * len(groups)
    density, levels = marginal(fitted, key)
    if levels is not None:
        best = np.asarray(density.params["probability"]).argmax(axis=1)
        found = [(shorten(redaction.level(key, levels[best[g]]), 18), "c6") for g in groups]
    else:
        means = np.asarray(density.moments()[0], dtype=float)
        whole = float(fitted.row_shares @ means)
        found = [(redaction.number(float(means[g]), 3), "plus" if means[g] >= whole else "minus") for g in groups]
    shown = map(redaction.allows, fitted.group_rows[groups])
    return [(text if there else RARE, tone) for (text, tone), there in zip(found, shown, strict=True)]


# -- planes


def _plane_points(view: View, columns: tuple[Key, Key]) -> list[np.ndarray]:
    """Return (rows x 2) numbers of the rows kept, by likeliest class; nothing without rows."""
    fitted, found = view.fitted, view.findings
    slots = [fitted.schema.places[column] for column in columns]
    if found is None or not found.points or not view.redaction.shows_cells:
        return []
    if any(place.store != "reals" for place in slots):
        return []
    cells = np.concatenate([chunk.reals[:, [place.slot for place in slots]] for chunk, _ in found.points])
    best = np.concatenate([proba.argmax(axis=1) for _, proba in found.points])
    there = np.isfinite(cells).all(axis=1)
    return [cells[there & (best == group)] for group in range(fitted.n_groups)]


def add_planes(page: Page, view: View) -> None:
    """Add ellipses of the classes in the two columns that separate them best, and which class is likeliest where."""
    fitted = view.fitted
    plane = explain.most_separating(fitted) if fitted.n_groups > 1 else None
    if not all(map(view.redaction.allows, fitted.group_rows.tolist())):
        page.line("no plane of the classes: some have fewer than five rows, whose cells it would show")
        return
    if plane is not None:
        columns: Any = plane.columns
        _add_ellipses(page, view, plane, _plane_points(view, columns))
    else:
        columns = view.by_influence([key for key in plain_columns(fitted) if fitted.schema[key].kind.numeric])[:2]
    if len(columns) == 2 and fitted.n_groups > 1 and fitted.scorer.is_naive:
        _add_regions(page, view, (columns[0], columns[1]))


def plane_marks(points: Sequence[np.ndarray], planes: explain.NormalPlane | None = None) -> list[Any]:
    marks: list[Any] = [Points(own[:, 0], own[:, 1], class_tone(place)) for place, own in enumerate(points) if len(own)]
    for place in range(0 if planes is None else len(planes.means)):
        for order, part in enumerate(ELLIPSES):
            x, y = planes.ellipse(place, part).T  # type: ignore[union-attr]
            width, dashes = (2.2, "") if order == 0 else (1.4, "5 3")
            marks.append(Line(x, y, "", class_tone(place), width, dashes))
    return marks


def _add_ellipses(page: Page, view: View, plane: explain.NormalPlane, points: Sequence[np.ndarray]) -> None:
    outer = np.concatenate([plane.ellipse(g, ELLIPSES[1]) for g in range(len(plane.means))])
    x, y = (Axis(key_text(plane.columns[k]), widen(outer[:, k], 0.03)) for k in (0, 1))
    chart = Chart("ellipses of the classes", plane_marks(points, plane), x, y, _legend(view.names), height=230)
    figures = [f"{what} {axis.name}" for what in ("mean", "deviation") for axis in (x, y)]
    rows = []
    for name, mean, covariance in zip(view.names, plane.means, plane.covariances, strict=True):
        spread = np.sqrt(np.diag(covariance))
        numbers = [view.redaction.number(float(value)) for value in (*mean, *spread)]
        rows.append((name, *numbers, f"{covariance[0, 1] / (spread[0] * spread[1]):+.3f}"))
    reading = (
        "The two columns in which the classes overlap least. The inner ellipse has 50 % of a class, the dashed one "
        "95 %, by the model." + (" Dots are rows." if len(points) else "")
    )
    grid = make_grid(("class", *figures, "correlation"), rows, None)
    page.picture("Class ellipses", chart, grid, reading, small=True)


def _add_regions(page: Page, view: View, columns: tuple[Key, Key]) -> None:
    grid, (x, y), names = explain.make_decision_grid(view.fitted, columns), map(key_text, columns), view.names
    marks = [Regions(grid.likeliest, *grid.ranges), *plane_marks(_plane_points(view, columns))]
    axes = Axis(x, grid.ranges[0]), Axis(y, grid.ranges[1])
    chart = Chart("regions by the likeliest class", marks, *axes, _legend(names), height=230)
    across = range(0, len(grid.x), 8)
    headings = (f"{y} \\ {x}", *(view.redaction.number(float(grid.x[at]), 3) for at in across))
    rows = []
    for i in range(0, len(grid.y), 6):
        line = [f"{names[grid.likeliest[i, j]]} {format_share(float(grid.sure[i, j]))}" for j in across]
        rows.append((view.redaction.number(float(grid.y[i]), 3), *line))
    reading = f"The most probable class if only {x} and {y} are known."
    page.picture("Decision regions", chart, make_grid(headings, rows), reading, small=True)


# -- how the search went


def add_trace(page: Page, fitted: Fitted) -> None:
    """Add the objectives of all EM runs if they were kept, else that of the best; nothing if it is flat."""
    best = [value for value in fitted.trace if np.isfinite(value)]
    traces = [list(trace) for trace in fitted.record.starts if len(trace) > 1] or ([best] if len(best) > 2 else [])
    if not traces or np.ptp(np.concatenate(traces)) <= 1e-9 * abs(traces[0][-1]):
        return
    traces.sort(key=max)
    marks = [Line(range(len(trace)), trace, "a start", "muted", 1.0, strength=0.45) for trace in traces[:-1]]
    marks.append(Line(range(len(traces[-1])), traces[-1], "the best"))
    # From where most runs are after a few steps to the top: the first step would squeeze all the rest.
    top, low = max(max(trace) for trace in traces), min(trace[min(2, len(trace) - 1)] for trace in traces)
    room = (top - low) * 0.06 or 1.0
    y = Axis("objective", (low - room, top + room))
    chart = Chart("the objective by iteration", marks, Axis("iterations"), y)
    longest = max(map(len, traces))
    steps = sorted({*range(min(longest, 12)), *range(0, longest, max(1, longest // 12)), longest - 1})
    headings = ("iteration", *(f"start {place}" for place in range(1, len(traces) + 1)))
    rows = [(str(k), *(f"{trace[k]:,.3f}" if k < len(trace) else "" for trace in traces)) for k in steps]
    reading = f"The objective that EM increases, {fitted.objective or 'the log-likelihood'}"
    reading += ": the best initialisation in bold, the others in grey." if len(traces) > 1 else "."
    page.picture("Objective by iteration", chart, make_grid(headings, rows, headings), reading, small=True)


# -- rows


def add_sureness(page: Page, sureness: np.ndarray, names: Sequence[str]) -> None:
    """Add how many rows have a class of which probability; `sureness` counts rows by class and by tenths."""
    bins = sureness.sum(axis=0)
    first = int(np.argmax(bins > 0)) if bins.any() else 0
    labels = [f"{k / 10:.1f} to {(k + 1) / 10:.1f}" for k in range(first, 10)]
    parts = (bins / max(bins.sum(), 1.0))[first:].tolist()
    description = "rows by the probability of their class"
    chart = bar_chart(labels, parts, list(map(format_share, parts)), description, room=140, width=PANEL)
    counts = sureness[:MAP_CLASSES, first:].T.tolist()
    rows = [(label, *map(format_number, line)) for label, line in zip(labels, counts, strict=True)]
    reading = "Rows by the probability of their most probable class. Rows in the top bars may belong to several."
    grid = make_grid(("probability", *names[:MAP_CLASSES]), rows, None)
    page.picture("Certainty of the class of each row", chart, grid, reading, small=True)


def add_frames(page: Page, view: View) -> None:
    """Add pictures of EM: a mixture of the same number of classes in two columns, after some of its iterations."""
    plane, groups = explain.most_separating(view.fitted), view.fitted.n_groups
    if plane is None or not 2 <= groups <= 8:
        return
    points = _plane_points(view, plane.columns)
    rows = np.concatenate(points) if points else np.zeros((0, 2))
    if len(rows) < 10 * groups:
        return
    rng = np.random.default_rng(0)
    rows = rows[rng.permutation(len(rows))[: FRAME_ROWS * groups]]
    start = rows[rng.choice(len(rows), groups, replace=False)]
    states = [state for state in _run_em(rows, start) if state[0] in FRAMES]
    planes = [explain.NormalPlane(plane.columns, means, covariances) for _, means, covariances, _, _ in states]
    outer = [own.ellipse(group, ELLIPSES[-1]) for own in planes for group in range(groups)]
    x, y = (Axis(ends=widen(np.concatenate([rows, *outer])[:, k], 0.03), ticks={}) for k in (0, 1))
    frames, lines = [], []
    for (steps, _, _, weights, log_likelihood), own in zip(states, planes, strict=True):
        nearest = weights.argmax(axis=1)
        marks = plane_marks([rows[nearest == g] for g in range(groups)], own)
        title = f"after {format_count(steps, 'iteration')}"
        frames.append(Chart(title, marks, x, y, title=title, width=236, height=156).draw())
        lines.append((str(steps), f"{log_likelihood:,.3f}"))
    reading = (
        f"EM at work on {' and '.join(map(key_text, plane.columns))} alone, from a random start: each row is shared "
        "out among the classes, and each class moves to its rows. Ellipses have 50 % and 95 % of a class."
    )
    headings = ("iteration", "log-likelihood")
    chart = stack(frames, "the first iterations of EM", across=3)
    page.picture("The first iterations of EM", chart, make_grid(headings, lines, headings), reading)


def _run_em(rows: np.ndarray, means: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray, float]]:
    """Run standard EM for a mixture of normals in the plane; yield it after each iteration.

    Yields the iteration, means, covariances, (rows x classes) memberships and the log-likelihood.
    """
    whole = np.cov(rows.T)
    floor = 1e-6 * np.diag(np.diag(whole)) + 1e-300 * np.eye(2)
    covariances, shares = np.repeat(whole[None] + floor, len(means), axis=0), np.full(len(means), 1 / len(means))
    for step in range(max(FRAMES) + 1):
        off = rows[:, None, :] - means
        far = np.einsum("ngi,gij,ngj->ng", off, np.linalg.inv(covariances), off)
        logs = np.log(shares) - 0.5 * (far + np.linalg.slogdet(covariances)[1]) - np.log(2 * np.pi)
        total = np.logaddexp.reduce(logs, axis=1)
        weights = np.exp(logs - total[:, None])
        yield step, means, covariances, weights, float(total.sum())
        counts = weights.sum(axis=0) + 1e-12
        shares, means = counts / counts.sum(), (weights.T @ rows) / counts[:, None]
        off = rows[:, None, :] - means
        covariances = np.einsum("ng,ngi,ngj->gij", weights, off, off) / counts[:, None, None] + floor


# -- nomogram


def add_nomograms(page: Page, view: View) -> None:
    """Add what every value adds, the largest class against each of the next."""
    fitted, names, redaction = view.fitted, view.names, view.redaction
    found = explain.make_nomogram(fitted)
    if found is None or not found.columns:
        if fitted.scorer.together:
            together = format_list(fitted.scorer.together)
            page.line(f"no nomogram: the ensemble scores columns together ({together}), not one by one")
        return
    reading = (
        "Find the value of the row on each line, read the log-odds above it and add them up, with the start; the "
        "probability is below the sum. A missing cell adds nothing."
    )
    if fitted.n_groups > 2:
        reading += " With more than two classes, these are the odds of the two alone."
    if found.left_out:
        reading += f" Not on it, because they are scored together: {', '.join(map(key_text, found.left_out))}."
    if fitted.scorer.is_calibrated:
        reading += " Probabilities here are before the correction by calibration."
    first, *order = np.argsort(-fitted.row_shares, kind="stable").tolist()
    for second in order[:NOMOGRAM_PAIRS]:
        chart = nomogram_chart(found, (first, second), (names[first], names[second]), redaction)
        rows = [("(start)", "", f"{chart.start:+.4f}")]
        for column in found.reach(first, second)[:NOMOGRAM_LINES]:
            odds = column.odds(first, second)
            for place in range(0, len(odds), 4 if column.numeric and len(odds) > 20 else 1):
                rows.append((key_text(column.key), _format_value(column, place, redaction), f"{odds[place]:+.4f}"))
        grid = make_grid(("column", "value", "log-odds"), rows, right=("log-odds",))
        page.picture(f"Nomogram: {names[first]} against {names[second]}", chart, grid, reading)
    if len(order) > NOMOGRAM_PAIRS:
        more = format_count(len(order) - NOMOGRAM_PAIRS, "class", "classes")
        page.line(f"{more} more against {names[first]} not drawn")


def nomogram_chart(
    found: explain.Nomogram, pair: tuple[int, int], names: tuple[str, str], redaction: Redaction = OPEN,
    most: int = NOMOGRAM_LINES,
) -> Nomogram:  # fmt: skip
    """Describe the log-odds of the values of `most` columns, those that can move most first."""
    first, second = pair
    lines = []
    for column in found.reach(first, second)[:most]:
        odds, name = column.odds(first, second), key_text(column.key)
        if column.numeric:
            marked = set(np.linspace(0, len(odds) - 1, 5).round().astype(int).tolist())
            texts = [redaction.number(x, 3) if place in marked else "" for place, x in enumerate(column.values)]
            lines.append(NomogramLine(name, odds, texts, True))
        else:
            kept = [place for place in range(len(odds)) if np.isfinite(odds[place])][:DRAWN_LEVELS]
            texts = [_format_value(column, place, redaction) for place in kept]
            lines.append(NomogramLine(name, odds[kept], texts, False))
    start = float(found.start[first] - found.start[second])
    return Nomogram(f"nomogram of {names[0]} against {names[1]}", lines, start, names)


def _format_value(column: explain.NomogramColumn, place: int, redaction: Redaction) -> str:
    value = column.values[place]
    return redaction.number(value) if column.numeric else redaction.level(column.key, value)


# -- columns in each class


def add_shapes(page: Page, view: View) -> None:
    """Add panels of the columns with most influence: densities over a histogram of the rows, or shares of categories.

    The rows are those of training or, if no summary of them was kept, those of the table given.
    """
    fitted, redaction, drawn = view.fitted, view.redaction, 0
    table = fitted.record.table or (None if view.rows is None else view.rows.summary)
    columns = view.by_influence(plain_columns(fitted))
    ranked = [g for g in np.argsort(-fitted.row_shares, kind="stable") if redaction.allows(float(fitted.group_rows[g]))]
    order = np.sort(np.array(ranked[:DRAWN_CLASSES], dtype=int))
    shown = [view.names[g] for g in order]
    for key in columns if len(order) else ():
        if drawn == PANELS:
            break
        try:
            shape = column_shape(fitted, key)
        except DataError:  # a family that cannot be asked about one column
            continue
        heights, reading = shape.heights[order], ""
        scaled = shape.levels is None and fitted.classes is None and len(order) > 1
        if scaled:  # the curves of a mixture add up to the histogram behind them
            heights = heights * fitted.row_shares[order, None]
        described = shape, shown, heights, redaction
        seen = None if table is None or not redaction.shows_cells else table.column(key)
        if shape.levels is None and seen is not None:
            curves = "Curves: the fitted density in each class." if len(order) > 1 else "Curve: the fitted density."
            curves = "Curves: the fitted density of each class, times its share." if scaled else curves
            reading = f"{curves} Grey bars: all rows."
        chart = shape_chart(*described, seen=seen)
        if shape.levels is not None and len(order) > GROUPED_CLASSES:
            levels = redaction.levels(key, shape.levels)
            chart = share_chart(shown, levels, heights, f"{key_text(key)} in each class")
        page.picture(key_text(key), chart, shape_grid(*described), reading, small=True)
        drawn += 1
    if len(columns) > drawn:
        page.line(f"{format_count(len(columns) - drawn, 'column')} with less influence not drawn")
    if fitted.n_groups > len(order):
        page.line(f"drawn are the {len(order)} largest of {fitted.n_groups} classes")


def shape_chart(
    shape: ColumnShape, names: Sequence[str], heights: np.ndarray, redaction: Redaction = OPEN,
    levels: int = DRAWN_LEVELS, seen: ColumnSummary | None = None,
) -> Chart:  # fmt: skip
    """Describe the density of a number in each class, or the shares of the most frequent categories.

    With the summary of a column, a histogram of its cells stands behind the densities.
    """
    column = key_text(shape.key)
    description = f"{column} in each class"
    if shape.levels is None:
        tall = heights[np.isfinite(heights)]
        # A spike would flatten all the rest: the frame ends a little above what nearly all points stay below.
        top = (min(np.quantile(tall, 0.995) * 1.1, np.quantile(tall, 0.9) * 6.0) if len(tall) else 1.0) or 1.0
        histogram = None if seen is None else _histogram(seen, shape)
        if histogram is not None:
            tallest = float(np.max(np.where(histogram.thick > 0.01 * np.ptp(shape.points), histogram.ends, 0.0)))
            top = max(top, min(1.05 * tallest, 2 * top))
        capped = np.nan_to_num(heights, posinf=top)
        filled = not shape.whole and histogram is None and len(names) <= GROUPED_CLASSES
        marks: list[Mark] = [] if histogram is None else [histogram]
        marks += class_lines(names, shape.points, capped, dots=3.2 * shape.whole, filled=filled)
        x = Axis(column, (float(shape.points[0]), float(shape.points[-1])))
        y = Axis("probability" if shape.whole else "density", (0.0, top), ticks={})
        return Chart(description, marks, x, y, _legend(names))
    kept = np.sort(np.argsort(-heights.max(axis=0), kind="stable")[:levels])
    top, bar = float(np.max(heights[:, kept], initial=0.0)) or 1.0, 7.0 if len(names) <= 4 else 4.0
    group = max(bar * len(names) + 7, 18.0)
    # The bars of a category in the order of the classes, a pixel between them.
    bars = [
        Bars(
            np.arange(len(kept)) + (place - (len(names) - 1) / 2) * bar / group, np.zeros(len(kept)), own[kept],
            (class_tone(place),), thick=(bar - 1) / group, strength=1.0,
        )
        for place, own in enumerate(heights)
    ]  # fmt: skip
    ticks = {float(tick): f"{tick:.0%}" for tick in np.arange(0.0, top + 1e-9, 0.1 if top <= 0.4 else 0.25)}
    y = Axis(labels=[redaction.level(shape.key, shape.levels[at]) for at in kept], room=110)
    return Chart(description, bars, Axis(ends=(0.0, top), ticks=ticks), y, _legend(names), height=group)


def _histogram(seen: ColumnSummary, shape: ColumnShape) -> Bars | None:
    """Make the bars of a column, as densities, within the range that its curves have."""
    if not seen.bars or not sum(seen.in_bars):
        return None
    ends = seen.quantiles[0] - shape.whole, seen.quantiles[-1]
    edges = np.array([min(ends[0], seen.bars[0]), *seen.bars, max(ends[1], seen.bars[-1])])
    low, high = float(shape.points[0]), float(shape.points[-1])
    wide = np.maximum(np.diff(edges), 1e-3 * (high - low))  # a spike at the least number has a bar without width
    heights = np.array(seen.in_bars) / sum(seen.in_bars) / wide
    # A bar holds its upper edge: the bar (2, 3] of whole numbers stands at 3.
    half = 0.5 * shape.whole
    left, right = np.maximum(edges[:-1] + half, low - half), np.minimum(edges[:-1] + wide + half, high + half)
    there = (right > left) & (heights > 0)
    if not there.any():
        return None
    left, right = left[there], right[there]
    middle, none = (left + right) / 2, np.zeros(len(left))
    return Bars(middle, none, heights[there], ("muted",), thick=right - left, strength=0.22, upright=True)


def shape_grid(shape: ColumnShape, names: Sequence[str], heights: np.ndarray, redaction: Redaction) -> Grid:
    headings = (key_text(shape.key), *names)
    if shape.levels is None:
        places: Any = range(0, len(shape.points), max(1, len(shape.points) // 10))
        lines = [(redaction.number(float(shape.points[at])), *map(format_number, heights[:, at], [3] * len(names)))
                 for at in places]  # fmt: skip
        return make_grid(headings, lines, right=headings)
    places = np.sort(np.argsort(-heights.max(axis=0), kind="stable")[:LISTED_LEVELS])
    lines = [(redaction.level(shape.key, shape.levels[at]), *map(format_share, heights[:, at])) for at in places]
    if heights.shape[1] > LISTED_LEVELS:
        lines.append((f"{heights.shape[1] - LISTED_LEVELS} more", *("" for _ in heights)))
    return make_grid(headings, lines, None)


# -- rows


PICKED = {
    "right": "the most confident correct prediction",
    "wrong": "one of the most confident mistakes",
    "unsure": "one of the least certain predictions",
    "sure": "one of the most certain predictions",
}


def describe_prediction(row: PickedRow, names: Sequence[str]) -> tuple[str, str]:
    """Return what was predicted for a row, and why the row is shown."""
    truth = "" if row.truth is None else f", true class {names[row.truth]}"
    why = f"{PICKED[row.kind].capitalize()}: probability {format_share(row.probability)}."
    return f"predicted {names[row.chosen]}{truth}", why


def add_waterfalls(page: Page, view: View, picked: Sequence[PickedRow]) -> None:
    labels, names = labels_in(view.fitted), view.names
    for row in picked:
        steps = [(key, odds) for key, odds in sorted(row.odds.items(), key=lambda item: -abs(item[1])) if odds != 0]
        few = min(STEPS, sum(abs(odds) >= LEAST_STEP for _, odds in steps))
        shown = [("(start)", row.start)]
        for key, odds in steps[:few]:
            shown.append((f"{labels[key]} {shorten(format_cell(row.cells.get(key)), 24)}", odds))
        if len(steps) > few:
            others = format_count(len(steps) - few, "other column")
            shown.append((others, sum(odds for _, odds in steps[few:])))
        cells, odds_of = zip(*shown, strict=True)
        chart = waterfall_chart(cells, odds_of, "total", "what each cell adds to the log-odds")
        predicted, why = describe_prediction(row, names)
        reading = f"{why} Log-odds of {names[row.chosen]} against {names[row.against]}."
        grid = make_grid(("cell", "log-odds"), [(name, f"{odds:+.4f}") for name, odds in shown], None)
        page.picture(f"Row {row.row + 1}: {predicted}", chart, grid, reading, small=True)
