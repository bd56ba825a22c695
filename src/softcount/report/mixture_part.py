"""Classes that were found: what sets them apart, where they lie, how the search went, who is unsure and who is odd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.fitted.answers import marginal, plain_columns
from softcount.fitted.explain import NormalPlane, decision_grid, most_separating, normal_planes
from softcount.fitted.influence import departures
from softcount.pictures.curve_pictures import LinePlot, PlottedLine, lines_drawing
from softcount.pictures.plane_pictures import Plane, frames_drawing, plane_drawing
from softcount.pictures.plot_frame import widened
from softcount.pictures.table_pictures import ShadedTable, bars_drawing, shaded_drawing
from softcount.report.class_page import because
from softcount.report.discretion import RARE, Discretion
from softcount.report.evaluation_page import CRITERIA, add_selection
from softcount.report.page import Page, grid_of, key_text
from softcount.report.plain_text import counted, number, share, shortened

if TYPE_CHECKING:
    from softcount.evaluate.scores import RowFindings
    from softcount.fitted.classes import SortedTable
    from softcount.fitted.fitted import Fitted
    from softcount.table.schema import Key

MOST_LINES = 20
MOST_CLASSES = 12
"""Columns and classes of the heat-map, those of the greatest influence and the largest."""
MOST_IN_FRAMES = 60
"""Rows for each class in the frames of EM."""
FRAMES = (1, 2, 3, 5, 10, 20)
"""The iterations of EM after which a frame is drawn."""
PARTS = (0.5, 0.95)
"""What the ellipses of a class hold of it."""


# -- the heat-map of classes and columns


def add_heat_map(page: Page, fitted: Fitted, names: Sequence[str], told: Discretion) -> None:
    """Classes across, columns down: how far each class departs from the whole table, and what it is like there."""
    far = column_departures(fitted)
    ranked = sorted(far, key=lambda key: -float(far[key].sum()))[:MOST_LINES]
    groups = np.sort(np.argsort(-fitted.row_shares, kind="stable")[:MOST_CLASSES])
    if not ranked or fitted.n_groups < 2:
        return
    labels = {key: key_text(key) for key in ranked}
    most = max(float(far[key][groups].max()) for key in ranked) or 1.0
    shades = np.array([np.sqrt(far[key][groups] / most) for key in ranked])
    cells = [_typical_cells(fitted, key, groups, told) for key in ranked]
    texts, tones = [[x[0] for x in line] for line in cells], [[x[1] for x in line] for line in cells]
    table = ShadedTable([labels[key] for key in ranked], [names[g] for g in groups], shades, texts, tones)
    headings = ("column", *(names[g] for g in groups))
    rows = [(labels[key], *(number(float(far[key][g]), 3) for g in groups)) for key in ranked]
    reading = (
        "What is typical of each class: the mean of numbers, the commonest level of others. The deeper the shade, the "
        "farther the class departs from the whole table there: blue above it, orange below, purple for levels."
    )
    drawing = shaded_drawing(table, "how far each class departs from the whole table in each column")
    page.picture("What sets the classes apart", drawing, grid_of(headings, rows, right=headings[1:]), reading)
    if fitted.n_groups > len(groups) or len(far) > len(ranked):
        page.line(f"shown are {len(groups)} of {fitted.n_groups} classes and {len(ranked)} of {len(far)} columns")


def column_departures(fitted: Fitted) -> dict[Key, np.ndarray]:
    """How far each group departs from the whole table in each column, in nats; of a normal block, column by column."""
    found: dict[Key, np.ndarray] = {}
    normal = normal_planes(fitted)
    for key, far in departures(fitted).items():
        columns = [column for column in (key if isinstance(key, tuple) else ()) if column in normal]
        found |= {column: _normal_departure(fitted, *normal[column]) for column in columns}
        if not columns and key not in fitted.schema.texts:
            found[key] = far
    return found


def _normal_departure(fitted: Fitted, means: np.ndarray, spreads: np.ndarray, leaf: Key, place: int) -> np.ndarray:
    """The divergence of each group's normal from the normal of all of them."""
    mean, variance, shares = means[:, place], spreads[:, place, place], fitted.row_shares
    middle = shares @ mean
    whole = shares @ (variance + (mean - middle) ** 2)
    return np.asarray(0.5 * (np.log(whole / variance) + (variance + (mean - middle) ** 2) / whole - 1.0))


def _typical_cells(fitted: Fitted, key: Key, groups: np.ndarray, told: Discretion) -> list[tuple[str, str]]:
    """What is typical of a column in each group, and the tone it is shown in."""
    if isinstance(key, tuple) or key not in fitted.schema.by_key:
        return [("", "c6")] * len(groups)
    family, params, levels = marginal(fitted, key)
    rows = fitted.group_rows
    if levels is not None:
        best = np.asarray(params["probability"]).argmax(axis=1)
        said = [shortened(told.level(key, levels[best[g]]), 18) for g in groups]
        return [(text if told.tells(rows[g]) else RARE, "c6") for g, text in zip(groups, said, strict=True)]
    means = np.asarray(family.moments(params)[0], dtype=float)
    whole = float(fitted.row_shares @ means)
    said = [told.number(float(means[g]), 3) if told.tells(rows[g]) else RARE for g in groups]
    return [(text, "plus" if means[g] >= whole else "minus") for g, text in zip(groups, said, strict=True)]


# -- planes


def plane_points(fitted: Fitted, columns: tuple[Key, Key], found: RowFindings | None) -> list[np.ndarray]:
    """(rows x 2) numbers of the rows kept, by likeliest group; nothing where there are no rows."""
    if found is None or not found.points:
        return []
    slots = [fitted.schema.places[column] for column in columns]
    if any(place.store != "reals" for place in slots):
        return []
    cells = np.concatenate([chunk.reals[:, [place.slot for place in slots]] for chunk, _ in found.points])
    best = np.concatenate([proba.argmax(axis=1) for _, proba in found.points])
    there = np.isfinite(cells).all(axis=1)
    return [cells[there & (best == group)] for group in range(fitted.n_groups)]


def add_planes(page: Page, fitted: Fitted, names: Sequence[str], found: RowFindings | None, told: Discretion) -> None:
    """Ellipses of the classes in the two columns that part them best, and who is likeliest where."""
    plane = most_separating(fitted) if fitted.n_groups > 1 else None
    found = found if told.shows_cells else None
    if not all(map(told.tells, fitted.group_rows.tolist())):
        page.line("no plane of the classes: some have fewer than five rows, whose cells it would show")
        return
    if plane is not None:
        _add_ellipses(page, plane, names, plane_points(fitted, plane.columns, found), told)
    columns = plane.columns if plane is not None else _two_numbers(fitted)
    if columns is not None and fitted.n_groups > 1 and fitted.pool is None:
        _add_regions(page, fitted, columns, names, plane_points(fitted, columns, found), told)


def _two_numbers(fitted: Fitted) -> tuple[Key, Key] | None:
    known = {key: place for place, (key, _) in enumerate(fitted.influence())}
    numbers = [key for key in plain_columns(fitted) if fitted.schema[key].kind.numeric]
    numbers.sort(key=lambda key: known.get(key, len(known)))
    return (numbers[0], numbers[1]) if len(numbers) > 1 else None


def _add_ellipses(
    page: Page, plane: NormalPlane, names: Sequence[str], points: Sequence[np.ndarray], told: Discretion
) -> None:
    groups = range(len(plane.means))
    outlines = [[plane.ellipse(g, part) for part in PARTS] for g in groups]
    every = np.concatenate([outline for each in outlines for outline in each[1:]])
    drawing = plane_drawing(_as_plane(plane.columns, every, names, points, outlines), "ellipses of the classes")
    x, y = map(key_text, plane.columns)
    headings = ("class", f"mean {x}", f"mean {y}", f"deviation {x}", f"deviation {y}", "correlation")
    rows = []
    for g in groups:
        spread = np.sqrt(np.diag(plane.covariances[g]))
        together = plane.covariances[g][0, 1] / (spread[0] * spread[1])
        figures = (*plane.means[g], *spread)
        rows.append((names[g], *(told.number(float(v)) for v in figures), f"{together:+.3f}"))
    reading = (
        "The two columns in which the classes overlap least. The inner line holds half of a class, the dashed one "
        "95 in 100" + (", by the model; dots are rows." if len(points) else ", by the model.")
    )
    page.picture("Where the classes lie", drawing, grid_of(headings, rows, right=headings[1:]), reading, small=True)


def _as_plane(
    columns: tuple[Key, Key], every: np.ndarray, names: Sequence[str], points: Sequence[np.ndarray], outlines: Any
) -> Plane:
    ends = [widened(every[:, k], 0.03) for k in (0, 1)]
    return Plane(key_text(columns[0]), key_text(columns[1]), ends[0], ends[1], names, points, outlines)


def _add_regions(
    page: Page, fitted: Fitted, columns: tuple[Key, Key], names: Sequence[str], points: Sequence[np.ndarray],
    told: Discretion,
) -> None:  # fmt: skip
    grid = decision_grid(fitted, columns)
    half = [(grid.x[1] - grid.x[0]) / 2, (grid.y[1] - grid.y[0]) / 2]
    x_range = float(grid.x[0] - half[0]), float(grid.x[-1] + half[0])
    y_range = float(grid.y[0] - half[1]), float(grid.y[-1] + half[1])
    names_of = tuple(map(key_text, columns))
    plane = Plane(names_of[0], names_of[1], x_range, y_range, names, points, (), grid.likeliest)
    places = range(0, len(grid.x), 8), range(0, len(grid.y), 6)
    headings = (f"{names_of[1]} \\ {names_of[0]}", *(told.number(float(grid.x[at]), 3) for at in places[0]))
    said = [[f"{names[grid.likeliest[i, j]]} {share(float(grid.sure[i, j]))}" for j in places[0]] for i in places[1]]
    rows = [(told.number(float(grid.y[i]), 3), *line) for i, line in zip(places[1], said, strict=True)]
    reading = f"Which class is likeliest if only {names_of[0]} and {names_of[1]} are known."
    drawing = plane_drawing(plane, "regions by the likeliest class")
    page.picture("Who is likeliest where", drawing, grid_of(headings, rows), reading, small=True)


# -- how the search went


def add_search(page: Page, fitted: Fitted, criterion: str | None) -> None:
    """The criterion over the number of classes, and how the objective climbed."""
    trials = [trial for trial in fitted.selection or [] if trial.reached >= trial.classes]
    chosen_by = criterion or "evidence"
    if len(trials) > 1:
        values = [getattr(trial, chosen_by) for trial in trials]
        values = [float("nan") if value is None else value for value in values]
        plot = LinePlot("classes", chosen_by, mark=(float(fitted.n_groups), "chosen"))
        line = PlottedLine(chosen_by, [trial.classes for trial in trials], values, dots=True)
        rows = [
            (str(x.classes), number(x.log_likelihood, 6), number(x.bic, 6), number(x.icl, 6), number(x.evidence, 6))
            for x in trials
        ]
        headings = ("classes", "log-likelihood", "BIC", "ICL", "evidence")
        reading = f"The number of classes was chosen by {CRITERIA.get(chosen_by, chosen_by)}."
        grid = grid_of(headings, rows, right=headings)
        page.picture(
            "How many classes",
            lines_drawing([line], plot, "the criterion by number of classes"),
            grid,
            reading,
            small=True,
        )
    _add_trace(page, fitted)
    if fitted.agreed is not None and fitted.n_groups > 1:
        best, run = fitted.agreed
        rest = "" if best == run else "; the others ended lower or were given up"
        page.line(f"{best} of {counted(run, 'start')} reached the best objective{rest}")
    if len(trials) < len(fitted.selection or []):
        add_selection(page, fitted)


def _add_trace(page: Page, fitted: Fitted) -> None:
    """The objectives of all starts where they were kept, else that of the best climb; nothing where it is flat."""
    starts = () if fitted.record is None else fitted.record.starts
    best = [value for value in fitted.trace if np.isfinite(value)]
    traces = [list(trace) for trace in starts if len(trace) > 1] or ([best] if len(best) > 2 else [])
    if not traces or np.ptp(np.concatenate(traces)) <= 1e-9 * abs(traces[0][-1]):
        return
    traces.sort(key=max)
    lines = [PlottedLine("a start", range(len(trace)), trace, faint=True) for trace in traces[:-1]]
    lines.append(PlottedLine("the best", range(len(traces[-1])), traces[-1]))
    plot = LinePlot("iterations", shortened(fitted.objective or "objective", 44), y_range=_shown_range(traces))
    drawing = lines_drawing(lines, plot, "the objective by iteration")
    longest = max(map(len, traces))
    steps = sorted({*range(min(longest, 12)), *range(0, longest, max(1, longest // 12)), longest - 1})
    headings = ("iteration", *(f"start {place}" for place in range(1, len(traces) + 1)))
    rows = [(str(k), *(f"{trace[k]:,.3f}" if k < len(trace) else "" for trace in traces)) for k in steps]
    reading = "The objective that EM climbs"
    reading += ", in the best of the starts (bold) and in the others." if len(traces) > 1 else "; it never falls."
    page.picture("How the objective climbed", drawing, grid_of(headings, rows, right=headings), reading, small=True)


def _shown_range(traces: Sequence[Sequence[float]]) -> tuple[float, float]:
    """From where most starts are after a few steps to the top: the first step would squeeze all the rest."""
    top = max(max(trace) for trace in traces)
    low = min(trace[min(2, len(trace) - 1)] for trace in traces)
    room = (top - low) * 0.06 or 1.0
    return low - room, top + room


# -- rows


def add_sureness(page: Page, found: RowFindings, names: Sequence[str]) -> None:
    """How surely rows are in their classes."""
    bins = found.sureness.sum(axis=0)
    first = int(np.argmax(bins > 0)) if bins.any() else 0
    labels = [f"{k / 10:.1f} to {(k + 1) / 10:.1f}" for k in range(first, 10)]
    parts = (bins / max(bins.sum(), 1.0))[first:].tolist()
    drawing = bars_drawing(labels, parts, list(map(share, parts)), "rows by how sure their class is")
    headings = ("probability", *names[:MOST_CLASSES])
    rows = [
        (label, *(number(float(x)) for x in found.sureness[:MOST_CLASSES, first + k])) for k, label in enumerate(labels)
    ]
    reading = "Rows by the probability of their likeliest class. Rows near the top could belong to several."
    page.picture("How sure rows are of their class", drawing, grid_of(headings, rows, right=headings[1:]), reading)


def add_anomalies(page: Page, sorting: SortedTable, names: Sequence[str]) -> None:
    """The rows that fit worst, and why."""
    if not sorting.anomalies:
        return
    odd = sorting.anomalies
    rows = [
        (
            str(x.row + 1), "impossible" if x.score == float("inf") else f"{x.score:.1f}",
            names[x.group] if x.probability > 0 else "none", because(x),
        )
        for x in odd
    ]  # fmt: skip
    page.heading("Rows that fit worst", level=2)
    page.line("score: how many nats the log-density of the row is below the usual one")
    page.grid(("row", "score", "likeliest", "because"), rows, right=("row", "score"))


# -- frames of EM


def add_frames(page: Page, fitted: Fitted, found: RowFindings, names: Sequence[str]) -> None:
    """What EM does: a mixture of the same number of classes in two columns, after each of its first iterations."""
    plane = most_separating(fitted)
    if plane is None or not 2 <= fitted.n_groups <= 8:
        return
    points = plane_points(fitted, plane.columns, found)
    rows = np.concatenate(points) if points else np.zeros((0, 2))
    if len(rows) < 10 * fitted.n_groups:
        return
    planes, likelihoods = _frames(rows, names, plane.columns)
    titles = [f"after {counted(steps, 'iteration')}" for steps in FRAMES]
    lines = [(str(steps), f"{found:,.3f}") for steps, found in zip(FRAMES, likelihoods, strict=True)]
    x, y = map(key_text, plane.columns)
    reading = (
        f"EM at work on {x} and {y} alone, from a random start: each row is shared out among the classes, each class "
        "moves to its rows, and again. Lines hold 50 and 95 in 100 of a class."
    )
    drawing = frames_drawing(planes, titles, "the first iterations of EM")
    page.picture(
        "The first iterations of EM",
        drawing,
        grid_of(("iteration", "log-likelihood"), lines, right=("iteration", "log-likelihood")),
        reading,
    )


def _frames(rows: np.ndarray, names: Sequence[str], columns: tuple[Key, Key]) -> tuple[list[Plane], list[float]]:
    """Some of the rows and the classes after each number of iterations, and how likely those make the rows."""
    from softcount.estimators.gaussian_mixture import GaussianMixture

    groups, rng = len(names), np.random.default_rng(0)
    rows = rows[rng.permutation(len(rows))[: MOST_IN_FRAMES * groups]]
    start = rows[rng.choice(len(rows), groups, replace=False)]
    across, up = (widened(rows[:, k], 0.12) for k in (0, 1))
    planes, likelihoods = [], []
    for steps in FRAMES:
        setting: dict[str, Any] = {"means_init": start, "n_init": 1, "max_iter": steps, "tol": 0, "accelerate": False}
        model = GaussianMixture(groups, "full", **setting).fit(rows)
        own, nearest = NormalPlane(columns, model.means_, model.covariances_), model.predict(rows)
        outlines = [[own.ellipse(g, part) for part in PARTS] for g in range(groups)]
        planes.append(Plane("", "", across, up, names, [rows[nearest == g] for g in range(groups)], outlines))
        likelihoods.append(model.log_likelihood_)
    return planes, likelihoods
