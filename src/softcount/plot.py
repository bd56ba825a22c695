"""Pictures for notebooks, drawn by matplotlib: `pip install "softcount[plot]"`.

Displays follow scikit-learn: `XDisplay.from_estimator(model, X, ax=None)` computes and draws, `plot(ax)` draws again,
`ax_` and `figure_` are where it was drawn. `table` has the numbers as an Arrow table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from softcount.core.lazy import pa
from softcount.errors import DataError
from softcount.estimators.result_frames import arrow_of
from softcount.fitted.answers import column_shape
from softcount.fitted.explain import most_separating, nomogram_of, normal_plane, normal_planes
from softcount.networks.network import Graph
from softcount.pictures.chart import Axis, Bars, Cells, Chart, Line, Points, Regions, waterfall_chart
from softcount.pictures.drawing import class_tone, new_axes
from softcount.report.class_pictures import ELLIPSES, nomogram_chart, plane_marks, shape_chart
from softcount.report.graph import NetworkPicture

__all__ = [
    "AnomalyDisplay",
    "BoundaryDisplay",
    "DensityDisplay",
    "EllipseDisplay",
    "ExplanationDisplay",
    "InfluenceDisplay",
    "MarkingWordsDisplay",
    "NetworkDisplay",
    "NomogramDisplay",
    "ProfileDisplay",
    "SelectionDisplay",
    "TraceDisplay",
]


GRID = 120
"""Points along each axis of the regions."""
LARGER_IS_BETTER = ("evidence", "cv", "log_likelihood")


class Display:
    """A table of numbers, and the chart that draws it."""

    def __init__(self, table: Any, chart: Any) -> None:
        self.table = table
        self.chart = chart

    def plot(self, ax: Any = None) -> Self:
        """Draw on these axes, or on new ones."""
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        self.chart.plot(self.ax_)
        return self


def _columns(table: Any, *names: str) -> list[list[Any]]:
    return [table.column(name).to_pylist() for name in names]


class InfluenceDisplay(Display):
    """A bar for each column: its influence on the classes in nats, the largest first.

    `table` is the model's `summary("column")`.
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, n: int = 20, ax: Any = None) -> Self:
        """Draw the n columns with most influence in a fitted model; X is not needed."""
        table = arrow_of(estimator.summary("column")).slice(0, n)
        names, values = _columns(table, "column", "influence")
        return cls(table, _bars(names, values, "influence (nats)", "Columns that matter most")).plot(ax)


def _bars(names: Sequence[Any], values: Sequence[float], x_name: str, title: str, **more: Any) -> Chart:
    bars = Bars(np.arange(len(names)), np.zeros(len(names)), values, **more)
    return Chart(title, [bars], Axis(x_name), Axis(labels=[str(name) for name in names]), title=title)


class ExplanationDisplay(Display):
    """A waterfall: the log-odds of every column begin where the one before ended, and the last bar is their sum.

    `table` has `column` and `log_odds`, the weightiest first, `(total)` last: the figures of `explain`, which add up.
    """

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, row: int = 0, against: Any = None, ax: Any = None
    ) -> Self:
        """Draw row `row` of X, its class against the runner-up, or `against` another class."""
        parts = arrow_of(estimator.explain(X, against=against))
        if not 0 <= row < len(parts):
            raise DataError(f"there is no row {row}: rows are counted from 0, and there are {len(parts):,}.")
        found = {name: float(parts.column(name)[row].as_py()) for name in parts.column_names[2:]}
        ranked = sorted(found.items(), key=lambda part: -abs(part[1]))
        names, odds = zip(*ranked, strict=True)
        table = pa.table({"column": [*names, "(total)"], "log_odds": [*odds, sum(found.values())]})
        chart = waterfall_chart(names, odds, "(total)", "Why", "log-odds of the class against the other")
        return cls(table, chart).plot(ax)


class AnomalyDisplay(Display):
    """A bar for each of the oddest rows, as long as its score, with the cells that make it odd.

    `table` is the model's `anomalies(X)`.
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, n: int = 10, ax: Any = None) -> Self:
        """Draw the n rows of X that fit worst."""
        table = arrow_of(estimator.anomalies(X, n=n))
        rows, scores, reasons = _columns(table, "row", "score", "reasons")
        odd = [[x for x in each if x["surprise"] > 0 and x["value"] is not None][:3] for each in reasons]
        texts = [", ".join(f"{x['column']} {x['value']}" for x in each) for each in odd]
        chart = _bars(
            [f"row {row}" for row in rows], scores, "nats of log-density below the usual", "Rows that fit worst",
            tones=("minus",), texts=texts,
        )  # fmt: skip
        return cls(table, chart).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on these axes, or on new ones, with room for the reasons."""
        super().plot(ax)
        self.ax_.margins(x=0.8)
        return self


class MarkingWordsDisplay(Display):
    """A bar for each characteristic word, as long as its log-odds for its class; the classes one below another.

    `table` is the model's `marking_words()`.
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, n: int = 8, key: Any = None, ax: Any = None) -> Self:
        """Draw the n most characteristic words of each class of a fitted model of text; X is not needed."""
        table = arrow_of(estimator.marking_words(key, n=n))
        names, words, odds = _columns(table, "class", "word", "log_odds")
        places = {name: place for place, name in enumerate(dict.fromkeys(names))}
        labels = [f"{word} ({name})" for name, word in zip(names, words, strict=True)]
        tones = [class_tone(places[name]) for name in names]
        title = "log-odds in the class against the others"
        return cls(table, _bars(labels, odds, title, "Characteristic words", tones=tones)).plot(ax)


class ProfileDisplay(Display):
    """A map of classes by columns, darker where the class departs further from the whole table.

    `table` is the model's `summary("class and column")`, whose `words` describe the column in the class.
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, n: int = 20, ax: Any = None) -> Self:
        """Draw the n columns with most influence in a fitted model; X is not needed."""
        kept = set(arrow_of(estimator.summary("column")).slice(0, n).column("column").to_pylist())
        lines = arrow_of(estimator.summary("class and column"))
        table = lines.filter([name in kept for name in lines.column("column").to_pylist()])
        columns, classes, far = _columns(table, "column", "class", "influence")
        down, across = list(dict.fromkeys(columns)), sorted(dict.fromkeys(classes), key=str)
        shades = np.zeros((len(down), len(across)))
        for column, name, value in zip(columns, classes, far, strict=True):
            shades[down.index(column), across.index(name)] = value
        x, y = Axis("class", labels=[str(name) for name in across]), Axis(labels=[str(name) for name in down])
        title = "What sets the classes apart"
        return cls(table, Chart(title, [Cells(shades, scale="departure (nats)")], x, y, title=title)).plot(ax)


class SelectionDisplay(Display):
    """A criterion by the number of classes, the best one marked.

    `table` is the model's `selection_`.
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, criterion: str | None = None, ax: Any = None) -> Self:
        """Draw a fitted mixture that chose the number of classes, by its own criterion unless another is named."""
        table, criterion = arrow_of(estimator.selection_), criterion or estimator.criterion
        classes, values = _columns(table, "classes", criterion)
        known = [(n, value) for n, value in zip(classes, values, strict=True) if value is not None]
        best = (max if criterion in LARGER_IS_BETTER else min)(known, key=lambda pair: pair[1])
        x, y = zip(*known, strict=True)
        marks = [Line(x, y, criterion, dots=3.2), Line([best[0]], [best[1]], "best", "minus", dots=6.0)]
        ticks = {float(n): f"{n}" for n in x}
        title = f"How many classes: {best[0]}"
        return cls(table, Chart(title, marks, Axis("classes", ticks=ticks), Axis(criterion), title=title)).plot(ax)


class TraceDisplay(Display):
    """The objective after every iteration: log-likelihood and log-prior of a mixture, the cost J of k-means.

    `table` has `step` and `objective`, the model's `trace_`.
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, ax: Any = None) -> Self:
        """Draw the EM run that a fitted model kept; X is not needed."""
        values = [float(value) for value in estimator.trace_]
        table = pa.table({"step": list(range(len(values))), "objective": values})
        marks = [Line(range(len(values)), values, dots=2.0)]
        title = "The objective by iteration"
        return cls(table, Chart(title, marks, Axis("step"), Axis("objective"), title=title)).plot(ax)


class DensityDisplay(Display):
    """A column's density in every class; for categories, and for counts, the probability of each.

    `table` has `class`, `value` and `density`.
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, column: Any, ax: Any = None) -> Self:
        """Draw a column of a fitted naive Bayes model or mixture; X is not needed."""
        shape, names = column_shape(estimator.fitted_, column), estimator.fitted_.names
        values = list(shape.points) if shape.levels is None else list(shape.levels)
        table = pa.table({
            "class": [name for name in names for _ in values],
            "value": values * len(names),
            "density": shape.heights.ravel(),
        })  # fmt: skip
        shown = [str(name) for name in names]
        return cls(table, shape_chart(shape, shown, shape.heights, levels=len(values))).plot(ax)


class EllipseDisplay(Display):
    """Each component's ellipses in two columns: the inner holds half of its rows, the outer 95 in 100.

    `table` has, for each component and level, the centre (`x`, `y`), the half axes (`long`, `short`) and the `angle` of
    the longer one in degrees.
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, columns: Any = None, ax: Any = None) -> Self:
        """Draw a fitted `GaussianMixture` in two columns, by place; by default those that separate components best.

        Rows of X, an array, are drawn as points.
        """
        fitted = estimator.fitted_
        keys = [spec.key for spec in fitted.schema.fields]
        if len(keys) < 2:
            raise DataError("ellipses need two columns, and this mixture has one.")
        plane = most_separating(fitted) if columns is None else None
        if plane is None:
            first, second = (0, 1) if columns is None else columns
            plane = normal_plane(normal_planes(fitted), (keys[first], keys[second]))
        pair, lines, marks = [keys.index(key) for key in plane.columns], [], plane_marks((), plane)
        if X is not None:
            shown = np.asarray(X, dtype=float)[:, pair]
            marks.insert(0, Points(shown[:, 0], shown[:, 1], "muted", 2.0, 0.5))
        for component, (mean, covariance) in enumerate(zip(plane.means, plane.covariances, strict=True)):
            values, vectors = np.linalg.eigh(covariance)
            angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
            for level in ELLIPSES:
                # In two dimensions the squared distance is exponential: a share p lies within -2 log(1 - p).
                short, long = np.sqrt(values * -2 * np.log1p(-level)).tolist()
                x, y = map(float, mean)
                line = {"component": component, "level": level, "x": x, "y": y, "long": long, "short": short}
                lines.append(line | {"angle": angle})
        across, up, title = Axis(f"column {pair[0]}"), Axis(f"column {pair[1]}"), "Components: 50 and 95 % of each"
        return cls(pa.Table.from_pylist(lines), Chart(title, marks, across, up, title=title)).plot(ax)


class BoundaryDisplay(Display):
    """Regions of two columns by the class that is likeliest there, paler where the model is less sure.

    All other columns are left missing, which is no evidence. `table` has the two columns, `class` and `probability` on
    a grid.
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, columns: Any = (0, 1), ax: Any = None) -> Self:
        """Draw two numeric columns of X over their range: by place in an array, by name in a frame or a mapping."""
        if X is None:
            raise DataError("the range to draw is that of X: give the rows, BoundaryDisplay.from_estimator(model, X).")
        is_array, ranges, steps = isinstance(X, np.ndarray), [], []
        for column in columns:
            values = np.asarray(X[:, column] if is_array else X[column], dtype=float)
            low, high = np.nanmin(values), np.nanmax(values)
            room = 0.05 * (high - low or 1.0)
            ranges.append((float(low - room), float(high + room)))
            steps.append(np.linspace(*ranges[-1], GRID))
        across, up = (each.ravel() for each in np.meshgrid(*steps))
        rows: Any = dict(zip(columns, (across, up), strict=True))
        if is_array:
            rows = np.full((len(across), X.shape[1]), np.nan)
            rows[:, columns[0]], rows[:, columns[1]] = across, up
        chances = estimator.predict_proba(rows)
        names, best, sure = getattr(estimator, "classes_", range(chances.shape[1])), chances.argmax(1), chances.max(1)
        table = pa.table({"x": across, "y": up, "class": [names[place] for place in best], "probability": sure})
        strength = (sure - 1 / (len(names) + 1)).reshape(GRID, GRID)
        marks = [Regions(best.reshape(GRID, GRID), ranges[0], ranges[1], np.clip(strength, 0, 1))]
        x, y, title = Axis(str(columns[0]), ranges[0]), Axis(str(columns[1]), ranges[1]), "Which class is likeliest"
        chart = Chart(title, marks, x, y, [str(name) for name in names], title)
        return cls(table, chart).plot(ax)


class NetworkDisplay(Display):
    """Nodes in layers, every edge pointing down.

    `table` has `parent` and `child`.
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, ax: Any = None) -> Self:
        """Draw a fitted `BayesNet`; X is not needed."""
        edges = [(str(a), str(b)) for a, b in estimator.edges_]
        table = pa.table({"parent": [a for a, _ in edges], "child": [b for _, b in edges]})
        return cls(table, NetworkPicture.of(Graph.of(edges, [str(node) for node in estimator.nodes]))).plot(ax)


class NomogramDisplay(Display):
    """A line for each column with its values at their log-odds: right for the first class, left for the second.

    To read a row, add the places of its cells to `start`: the sum is the log-odds of the two classes, exactly. `table`
    has `column`, `value` (as text) and `log_odds`, the columns that can move most first.
    """

    @property
    def start(self) -> float:
        """The log-odds of a row with nothing but missing cells."""
        return float(self.chart.start)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, classes: Any = None, n: int = 12, ax: Any = None) -> Self:
        """Draw two classes that are scored column by column, the first two unless named; n columns. X is not needed."""
        fitted = estimator.fitted_
        found = nomogram_of(fitted)
        if found is None:
            raise DataError("a nomogram needs two classes that are scored column by column, as in NaiveBayes.")
        pair = tuple(fitted.names[:2] if classes is None else classes)
        first, second = (fitted.group_of(name) for name in pair)
        rows = [
            {
                "column": str(column.key),
                "value": f"{value:.4g}" if column.numeric else str(value),
                "log_odds": float(odds),
            }
            for column in found.reach(first, second)[:n]
            for value, odds in zip(column.values, column.odds(first, second), strict=True)
        ]
        chart = nomogram_chart(found, (first, second), (str(pair[0]), str(pair[1])), most=n)
        return cls(pa.Table.from_pylist(rows), chart).plot(ax)
