"""Pictures for notebooks, drawn by matplotlib: `pip install "softcount[plot]"`.

Displays follow scikit-learn. `XDisplay.from_estimator(model, X, ax=None)` computes and draws; `plot(ax)` draws again.
`ax_` and `figure_` are the axes and the figure. `table` has the numbers as an Arrow table, and `svg()` returns the
picture as an SVG file.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from msgspec.structs import replace

from softcount.core.lazy import pa
from softcount.densities.density import ColumnDensity
from softcount.densities.kernels import WeightedPoints, named_kernel, reflection_of
from softcount.errors import DataError
from softcount.estimators.docstrings import document_methods
from softcount.estimators.result_frames import arrow_of
from softcount.fitted.class_answers import column_shape
from softcount.fitted.explain import find_normals, join_normals, make_nomogram, most_separating
from softcount.networks.network import Graph
from softcount.pictures.chart import (
    PAGE,
    Axis,
    Bars,
    Cells,
    Chart,
    Line,
    Note,
    Points,
    Regions,
    class_lines,
    waterfall_chart,
)
from softcount.pictures.drawing import class_tone, new_axes
from softcount.pictures.text import format_count
from softcount.priors import Beta, Dirichlet, Expert
from softcount.report.class_pictures import ELLIPSES, nomogram_chart, plane_marks, shape_chart
from softcount.report.evaluation import reliability_chart
from softcount.report.graph import NetworkPicture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    import softcount as sc

__all__ = [
    "AnomalyDisplay",
    "BoundaryDisplay",
    "CharacteristicWordsDisplay",
    "ClusterDisplay",
    "DensityDisplay",
    "EllipseDisplay",
    "ExplanationDisplay",
    "HistogramDisplay",
    "InfluenceDisplay",
    "KernelDensityDisplay",
    "LearningCurveDisplay",
    "LowerBoundDisplay",
    "NetworkDisplay",
    "NomogramDisplay",
    "PriorDisplay",
    "ProfileDisplay",
    "ReliabilityDisplay",
    "SelectionDisplay",
    "SimplexDisplay",
    "TraceDisplay",
]


DENSITY_POINTS = 301
"""Values at which a curve is computed."""
MOST_KERNELS = 30
"""Rows whose kernels are drawn by default."""
DRAWN_BANDWIDTHS = 3.5
"""Bandwidths beyond the outermost rows that a kernel density is drawn to."""
GRID = 120
"""Points along each axis of the regions."""
LARGER_IS_BETTER = ("evidence", "cv", "log_likelihood")


PARTS_OF_DISPLAYS = """
Parameters
----------
table : pyarrow.Table
    Numbers of the picture.
chart : object
    Description of the picture, which is drawn on matplotlib axes or as SVG.
finish : callable, default=None
    Called with the axes after the chart was drawn on them.

Attributes
----------
ax_ : matplotlib Axes
    Where the display was last drawn.
figure_ : matplotlib Figure
    The figure of `ax_`.

"""
"""Sections that the documentation of every display has, in front of See Also."""


ARGUMENTS = {
    "estimator": ("", "A fitted model."),
    "X": ("object", "Not used."),
    "against": ("class", "The class to compare with; None takes the runner-up."),
    "ax": ("matplotlib Axes", "Axes to draw on; None makes new ones."),
    "bandwidths": ("sequence", "Further bandwidths, or rules for them, to draw the rows with."),
    "classes": ("tuple of two classes", "The classes to compare; None takes the first two."),
    "column": ("column", "The column to draw."),
    "comparison": ("Comparison", "What `compare(..., curve=True)` returned."),
    "criterion": ("str", "A column of `selection_`; by default the criterion of the model."),
    "evaluation": ("Evaluation", "What the `evaluate` of a classifier returned."),
    "kernels": ("bool", "Whether the kernel of every row is drawn; None draws them if there are at most 30 rows."),
    "key": ("column", "The column of text, if there are several."),
    "measure": ('{"log_loss", "accuracy"}', "The figure to draw."),
    "models": ("sequence of str", "Names of the classifiers to draw; all by default."),
    "n": ("int", "Number of columns, of rows, or of words of each class."),
    "n_samples": ("int", "Number of points."),
    "names": ("sequence of str", "Names of the distributions, or of the categories of one."),
    "prior": ("Dirichlet", "A prior or posterior of three shares."),
    "row": ("int", "The row to explain, counted from 0."),
}
"""Parameters of the methods of displays, see `estimators.docstrings`; a docstring has those with another meaning."""


class Display:
    """A table of numbers, and the chart that draws it."""

    def __init__(self, table: Any, chart: Any, finish: Callable[[Axes], Any] | None = None) -> None:
        self.table = table
        self.chart = chart
        self.finish = finish

    def __init_subclass__(cls) -> None:
        before, see, after = inspect.cleandoc(cls.__doc__ or "").partition("See Also\n")
        cls.__doc__ = before.rstrip() + "\n" + PARTS_OF_DISPLAYS + see + after
        document_methods(cls, ARGUMENTS, Self="The display, drawn.")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.table.num_rows:,} rows: {', '.join(self.table.column_names)}>"

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes, or on new ones.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on.

        Returns
        -------
        Display
            The display itself.
        """
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        self.chart.plot(self.ax_)
        if self.finish is not None:
            self.finish(self.ax_)
        return self

    def svg(self) -> str:
        """Return the picture as an SVG file, for light and dark screens.

        Returns
        -------
        str
            The text of the file.
        """
        return str(self.chart.draw().svg_file())


def _read_columns(table: Any, *names: str) -> list[list[Any]]:
    return [table.column(name).to_pylist() for name in names]


def _chart(title: str, marks: Sequence[Any], x: Axis, y: Axis, **more: Any) -> Chart:
    return Chart(title, marks, x, y, title=title, **more)


class InfluenceDisplay(Display):
    """A bar for each column: its influence on the classes in nats, the largest first.

    `table` is the model's `summary("column")`.

    See Also
    --------
    ProfileDisplay : Columns by class.

    Examples
    --------
    >>> import softcount as sc
    >>> from softcount.demo import table_path
    >>> model = sc.NaiveBayes().fit(table_path(), "type")
    >>> InfluenceDisplay.from_estimator(model, n=2).table["column"].to_pylist()
    ['gears', 'price']
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, n: int = 20, ax: Axes | None = None) -> Self:
        """Draw the columns with most influence."""
        table = arrow_of(estimator.summary("column")).slice(0, n)
        names, values = _read_columns(table, "column", "influence")
        return cls(table, _make_bars(names, values, "influence (nats)", "Columns that matter most")).plot(ax)


def _make_bars(names: Sequence[Any], values: Sequence[float], x_name: str, title: str, **more: Any) -> Chart:
    bars = Bars(np.arange(len(names)), np.zeros(len(names)), values, **more)
    return _chart(title, [bars], Axis(x_name), Axis(labels=[str(name) for name in names]), height=22.0)


class ExplanationDisplay(Display):
    """A waterfall of log-odds: the bar of each column starts at the end of the one before, and the last bar is the sum.

    `table` has `column` and `log_odds` as in `explain`, the largest first and `(total)` last.

    See Also
    --------
    NomogramDisplay : The log-odds of all values of all columns.

    Examples
    --------
    >>> import softcount as sc
    >>> from softcount.demo import table_path
    >>> model = sc.NaiveBayes().fit(table_path(), "type")
    >>> shown = ExplanationDisplay.from_estimator(model, {"gears": [21], "brakes": ["disc"]})
    >>> shown.table["column"].to_pylist()[:3]
    ['brakes', 'gears', '(prior)']
    """

    @classmethod
    def from_estimator(
        cls, estimator: sc.NaiveBayes | sc.Classifier, X: Any = None, *, row: int = 0, against: Any = None,
        ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw one row: its class against the runner-up, or against another class.

        Parameters
        ----------
        X : table, default=None
            Rows.
        """
        parts = arrow_of(estimator.explain(X, against=against))
        if not 0 <= row < len(parts):
            raise DataError(f"there is no row {row}: rows are counted from 0, and there are {len(parts):,}.")
        found = {name: float(parts.column(name)[row].as_py()) for name in parts.column_names[2:]}
        ranked = sorted(found.items(), key=lambda part: -abs(part[1]))
        names, odds = zip(*ranked, strict=True)
        table = pa.table({"column": [*names, "(total)"], "log_odds": [*odds, sum(found.values())]})
        first, second = (parts.column(place)[row].as_py() for place in (0, 1))
        title = f"Log-odds of {first} against {second}"
        chart = waterfall_chart(names, odds, "(total)", title, "log-odds")

        def widen(axes: Axes) -> None:
            low, high = axes.get_xlim()
            room = 0.12 * (high - low)  # for the figures at the ends of the bars
            axes.set_xlim(low - room, high + room)

        return cls(table, replace(chart, title=title), widen).plot(ax)


class AnomalyDisplay(Display):
    """A bar for each of the rows that fit worst, with the anomaly score as its length and the unusual cells as text.

    `table` is the model's `anomalies(X)`.

    See Also
    --------
    ExplanationDisplay : Why a row has its class.

    Examples
    --------
    >>> import softcount as sc
    >>> from softcount.demo import table_path
    >>> model = sc.Mixture(2, random_state=0).fit(table_path())
    >>> AnomalyDisplay.from_estimator(model, table_path(), n=3).table.num_rows
    3
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, n: int = 10, ax: Axes | None = None) -> Self:
        """Draw the rows that fit worst.

        Parameters
        ----------
        X : table, default=None
            Rows.
        """
        table = arrow_of(estimator.anomalies(X, n=n))
        rows, scores, reasons = _read_columns(table, "row", "score", "reasons")
        odd = [[x for x in each if x["surprise"] > 0 and x["value"] is not None][:3] for each in reasons]
        texts = [", ".join(f"{x['column']} {x['value']}" for x in each) for each in odd]
        chart = _make_bars(
            [f"row {row}" for row in rows], scores, "nats of log-density below the usual", "Rows that fit worst",
            tones=("minus",), texts=texts,
        )  # fmt: skip
        return cls(table, replace(chart, width=PAGE), lambda axes: axes.margins(x=0.8)).plot(ax)


class CharacteristicWordsDisplay(Display):
    """A bar for each characteristic word of each class; its length is the log-odds of the word for the class.

    `table` is the model's `characteristic_words()`.

    See Also
    --------
    InfluenceDisplay : Columns instead of words.

    Examples
    --------
    >>> import softcount as sc
    >>> model = sc.NaiveBayes(kinds="text").fit(["win a prize", "see you at eight"] * 3, ["spam", "ham"] * 3)
    >>> sorted(set(CharacteristicWordsDisplay.from_estimator(model, n=2).table["class"].to_pylist()))
    ['ham', 'spam']
    """

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, n: int = 8, key: Any = None, ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw the most characteristic words of each class."""
        table = arrow_of(estimator.characteristic_words(key, n=n))
        names, words, odds = _read_columns(table, "class", "word", "log_odds")
        places = {name: place for place, name in enumerate(dict.fromkeys(names))}
        labels = [f"{word} ({name})" for name, word in zip(names, words, strict=True)]
        tones = [class_tone(places[name]) for name in names]
        title = "log-odds against the other classes"
        return cls(table, _make_bars(labels, odds, title, "Characteristic words", tones=tones)).plot(ax)


class ProfileDisplay(Display):
    """A map of classes by columns. A darker cell means that the class differs more from the whole table in this column.

    `table` is the model's `summary("class and column")`, whose `words` describe the column in the class.

    See Also
    --------
    InfluenceDisplay : All classes together.

    Examples
    --------
    >>> import softcount as sc
    >>> from softcount.demo import table_path
    >>> model = sc.Mixture(3, kinds={"type": "ignore"}, random_state=0).fit(table_path())
    >>> ProfileDisplay.from_estimator(model, n=4).table.num_rows
    12
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, n: int = 20, ax: Axes | None = None) -> Self:
        """Draw the columns with most influence."""
        kept = set(arrow_of(estimator.summary("column")).slice(0, n).column("column").to_pylist())
        lines = arrow_of(estimator.summary("class and column"))
        table = lines.filter([name in kept for name in lines.column("column").to_pylist()])
        columns, classes, far = _read_columns(table, "column", "class", "influence")
        down, across = list(dict.fromkeys(columns)), sorted(dict.fromkeys(classes), key=str)
        shades = np.zeros((len(down), len(across)))
        for column, name, value in zip(columns, classes, far, strict=True):
            shades[down.index(column), across.index(name)] = value
        x, y = Axis("class", labels=[str(name) for name in across]), Axis(labels=[str(name) for name in down])
        cells = Cells(shades, scale="departure (nats)")
        return cls(table, _chart("Class profiles", [cells], x, y, height=24.0)).plot(ax)


class SelectionDisplay(Display):
    """A line chart of a criterion by the number of classes; the best number is marked.

    `table` is the model's `selection_`.

    See Also
    --------
    TraceDisplay : One EM run.

    Examples
    --------
    >>> import softcount as sc
    >>> from softcount.demo import table_path
    >>> model = sc.Mixture("auto", kinds={"type": "ignore"}, n_init=1, random_state=0).fit(table_path())
    >>> shown = SelectionDisplay.from_estimator(model)
    >>> len(model.weights_) in shown.table["classes"].to_pylist()
    True
    """

    @classmethod
    def from_estimator(
        cls, estimator: sc.Mixture | sc.HiddenMarkov, X: Any = None, *, criterion: str | None = None,
        ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw the criterion of a model that chose its number of classes or states."""
        if estimator.selection_ is None:
            raise DataError("the number of classes was given, so there is nothing to compare: fit with 'auto'.")
        table, criterion = arrow_of(estimator.selection_), criterion or estimator.criterion
        number = table.column_names[0]  # classes of a mixture, states of a hidden Markov model
        classes, values = _read_columns(table, number, criterion)
        known = [(n, value) for n, value in zip(classes, values, strict=True) if value is not None]
        best = (max if criterion in LARGER_IS_BETTER else min)(known, key=lambda pair: pair[1])
        x, y = zip(*known, strict=True)
        marks = [Line(x, y, criterion, dots=3.2), Line([best[0]], [best[1]], "best", "minus", dots=6.0)]
        ticks = {float(n): f"{n}" for n in x}
        chart = _chart(f"How many {number}: {best[0]}", marks, Axis(number, ticks=ticks), Axis(criterion))
        return cls(table, chart).plot(ax)


class TraceDisplay(Display):
    """The objective after every iteration: log-likelihood and log-prior of a mixture, the cost J of k-means.

    `table` has `step` and `objective`, the model's `trace_`.

    See Also
    --------
    LowerBoundDisplay : The two halves of every iteration.
    ClusterDisplay : The result of k-means.

    Examples
    --------
    >>> import softcount as sc
    >>> model = sc.KMeans(2, init=[[0.0], [8.0]], n_init=1).fit([[0.0], [2.0], [8.0], [12.0]])
    >>> TraceDisplay.from_estimator(model).table["objective"].to_pylist()
    [20.0, 10.0, 10.0]
    """

    @classmethod
    def from_estimator(
        cls, estimator: sc.Mixture | sc.KMeans | sc.HiddenMarkov, X: Any = None, *, ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw the objective of the EM run that was kept."""
        values = [float(value) for value in estimator.trace_]
        table = pa.table({"step": list(range(len(values))), "objective": values})
        line, x = Line(range(len(values)), values, dots=2.0), Axis("step", ticks=_make_ticks(len(values)))
        return cls(table, _chart("The objective by iteration", [line], x, Axis("objective"))).plot(ax)


def _make_ticks(steps: int) -> dict[float, str] | None:
    """Return a tick for each of a few steps: round numbers would lie between them."""
    return {float(step): f"{step}" for step in range(steps)} if steps <= 12 else None


class DensityDisplay(Display):
    """The density of a column in each class; for categories and counts, the probability of each value.

    `table` has `class`, `value` and `density`.

    See Also
    --------
    KernelDensityDisplay : A kernel density and its kernels.
    HistogramDisplay : A histogram.

    Examples
    --------
    >>> import softcount as sc
    >>> from softcount.demo import table_path
    >>> model = sc.NaiveBayes().fit(table_path(), "type")
    >>> table = DensityDisplay.from_estimator(model, column="brakes").table.to_pandas()
    >>> table.groupby("class")["density"].sum().round(6).unique().tolist()
    [1.0]
    """

    @classmethod
    def from_estimator(
        cls, estimator: sc.NaiveBayes | sc.Mixture, X: Any = None, *, column: Any, ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw one column."""
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
    """The ellipses of each component in two columns: the inner holds 50 % of its rows, the outer 95 %.

    `table` has a row for each component and level: the centre (`x`, `y`), the half-axes (`long`, `short`) and the
    `angle` of the longer one in degrees.

    See Also
    --------
    BoundaryDisplay : The regions of classes.

    Examples
    --------
    >>> import softcount as sc
    >>> rows = [[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [2.0, 1.0]]
    >>> model = sc.GaussianMixture(1, "diag", estimate="ml").fit(rows)
    >>> line = EllipseDisplay.from_estimator(model).table.to_pylist()[0]
    >>> line["x"], line["y"], round(line["long"] / line["short"], 6)
    (1.0, 0.5, 2.0)
    """

    @classmethod
    def from_estimator(
        cls, estimator: sc.GaussianMixture, X: Any = None, *, columns: Any = None, ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw the components in two columns.

        Parameters
        ----------
        X : array, default=None
            Rows to draw as points.
        columns : tuple of two int, default=None
            Places of the columns; None takes those that separate the components best.
        """
        fitted = estimator.fitted_
        keys = [spec.key for spec in fitted.schema.fields]
        if len(keys) < 2:
            raise DataError("ellipses need two columns, and this mixture has one.")
        plane = most_separating(fitted) if columns is None else None
        if plane is None:
            first, second = (0, 1) if columns is None else columns
            plane = join_normals(find_normals(fitted), (keys[first], keys[second]))
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
        across, up = (Axis(key if isinstance(key, str) else f"column {key}") for key in plane.columns)
        chart = _chart("Components: 50 and 95 % of each", marks, across, up)
        return cls(pa.Table.from_pylist(lines), chart).plot(ax)


class BoundaryDisplay(Display):
    """Regions of two columns by their most probable class, paler where the model is less sure.

    All other columns are left missing. `table` has `x`, `y`, `class` and `probability` on a grid.

    See Also
    --------
    ClusterDisplay : The regions of clusters.

    Examples
    --------
    >>> import softcount as sc
    >>> rows = np.array([[0.0, 0.0], [1.0, 2.0], [8.0, 9.0], [9.0, 7.0]])
    >>> model = sc.NaiveBayes().fit(rows, ["a", "a", "b", "b"])
    >>> BoundaryDisplay.from_estimator(model, rows).table.column_names
    ['x', 'y', 'class', 'probability']
    """

    @classmethod
    def from_estimator(
        cls, estimator: sc.NaiveBayes | sc.Classifier | sc.Mixture, X: Any = None, *, columns: Any = (0, 1),
        ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw two numeric columns over their range.

        Parameters
        ----------
        X : array, DataFrame or mapping, default=None
            Rows that give the range of both columns.
        columns : tuple of two columns, default=(0, 1)
            By place in an array, by name in a frame.
        """
        if X is None:
            raise DataError("the range to draw is that of X: give the rows, BoundaryDisplay.from_estimator(model, X).")
        is_array = isinstance(X, np.ndarray)
        own = [np.asarray(X[:, column] if is_array else X[column], dtype=float) for column in columns]
        ranges, grid = _make_grid(*own)
        across, up = grid.T
        rows: Any = dict(zip(columns, (across, up), strict=True))
        if is_array:
            rows = np.full((len(across), X.shape[1]), np.nan)
            rows[:, columns[0]], rows[:, columns[1]] = across, up
        chances = estimator.predict_proba(rows)
        names, best, sure = getattr(estimator, "classes_", range(chances.shape[1])), chances.argmax(1), chances.max(1)
        table = pa.table({"x": across, "y": up, "class": [names[place] for place in best], "probability": sure})
        strength = (sure - 1 / (len(names) + 1)).reshape(GRID, GRID)
        marks = [Regions(best.reshape(GRID, GRID), ranges[0], ranges[1], np.clip(strength, 0, 1))]
        x, y = (Axis(str(column), ends) for column, ends in zip(columns, ranges, strict=True))
        legend = [str(name) for name in names]
        return cls(table, _chart("Most probable class", marks, x, y, legend=legend)).plot(ax)


class NetworkDisplay(Display):
    """The graph of a network: nodes in layers, with all edges pointing down.

    `table` has `parent` and `child`.

    See Also
    --------
    NomogramDisplay : A naive Bayes model.

    Examples
    --------
    >>> import softcount as sc
    >>> net = sc.BayesNet([("a", "b")]).fit({"a": [0, 1, 1], "b": [0, 1, 0]})
    >>> NetworkDisplay.from_estimator(net).table.to_pylist()
    [{'parent': 'a', 'child': 'b'}]
    """

    @classmethod
    def from_estimator(cls, estimator: sc.BayesNet, X: Any = None, *, ax: Axes | None = None) -> Self:
        """Draw the graph of a network."""
        edges = [(str(a), str(b)) for a, b in estimator.edges_]
        table = pa.table({"parent": [a for a, _ in edges], "child": [b for _, b in edges]})
        return cls(table, NetworkPicture.of(Graph.of(edges, [str(node) for node in estimator.nodes]))).plot(ax)


class NomogramDisplay(Display):
    """The log-odds of each value of each column on a scale: positive for the first of two classes.

    To read a row, add the log-odds of its cells to `start`. The sum is the log-odds of the two classes. `table`
    has `column`, `value` (as text) and `log_odds`, the columns with the largest range of log-odds first.

    See Also
    --------
    ExplanationDisplay : One row.

    Examples
    --------
    >>> import softcount as sc
    >>> from softcount.demo import table_path
    >>> model = sc.NaiveBayes().fit(table_path(), "type")
    >>> shown = NomogramDisplay.from_estimator(model, classes=("road", "city"))
    >>> shown.table.column_names
    ['column', 'value', 'log_odds']
    """

    @property
    def start(self) -> float:
        """The log-odds of a row in which all cells are missing."""
        return float(self.chart.start)

    @classmethod
    def from_estimator(
        cls, estimator: sc.NaiveBayes, X: Any = None, *, classes: Any = None, n: int = 12, ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw two classes of a model that is scored column by column."""
        fitted = estimator.fitted_
        found = make_nomogram(fitted)
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


class PriorDisplay(Display):
    """The densities of priors or posteriors over one parameter, on the same axes.

    A Dirichlet is drawn as the marginal distribution Beta(a_k, a - a_k) of each share. `table` has `prior`, `value` and
    `density`.

    See Also
    --------
    SimplexDisplay : A Dirichlet of three shares.
    softcount.priors : The distributions.

    Examples
    --------
    >>> from softcount.priors import Beta
    >>> table = PriorDisplay.from_prior(Beta(4, 7), Beta(1, 1)).table
    >>> table["prior"].unique().to_pylist(), round(max(table["density"].to_pylist()), 3)
    (['Beta(4, 7)', 'Beta(1, 1)'], 2.731)
    """

    @classmethod
    def from_prior(cls, *priors: Any, names: Sequence[str] = (), ax: Axes | None = None) -> Self:
        """Draw one or more distributions of a number.

        Parameters
        ----------
        *priors : Beta, Dirichlet, Expert, Gamma, NormalKnownVariance or NormalInverseChi2
            The distributions. For a joint distribution of a mean and a variance, the density of the mean is drawn.
        """
        shown = _name_priors(priors, names)
        if not shown:
            raise DataError("give a prior to draw, such as PriorDisplay.from_prior(sc.priors.Beta(4, 7)).")
        shares = all(isinstance(prior, Beta) for _, prior in shown)
        ends = [(0.0, 1.0) if isinstance(prior, Beta) else prior.interval(0.998) for _, prior in shown]
        x = np.linspace(min(low for low, _ in ends), max(high for _, high in ends), DENSITY_POINTS)
        with np.errstate(divide="ignore", invalid="ignore"):
            ys = [np.asarray(prior.pdf(x), dtype=float) for _, prior in shown]
        y = [np.where(np.isfinite(each), each, np.nan) for each in ys]  # at 0 or 1 a Beta may be infinite
        names = [name for name, _ in shown]
        return cls(*_make_densities("prior", names, x, y, "share" if shares else "value")).plot(ax)


def _name_priors(priors: Sequence[Any], names: Sequence[str]) -> list[tuple[str, Any]]:
    found = []
    for place, given in enumerate(priors):
        prior = given.as_beta() if isinstance(given, Expert) else given
        if getattr(prior, "by_group", True) or not hasattr(prior, "pdf"):
            raise DataError(f"{given!r} is not one distribution: give each prior by itself.")
        name = names[place] if names else _name_prior(given)
        if not isinstance(prior, Dirichlet):
            found.append((name, prior))
            continue
        counts = np.asarray(prior.alpha, dtype=float)
        found += [(f"share {k + 1} of {name}", Beta(own, counts.sum() - own)) for k, own in enumerate(counts)]
    return found


def _name_prior(prior: Any) -> str:
    """Return the name of a distribution with its parameters: Beta(4, 7), Dirichlet(8, 4, 2)."""
    fields = [getattr(prior, name) for name in prior.__struct_fields__]
    numbers = [f"{x:g}" for field in fields if field is not None for x in np.ravel(field)]
    return f"{type(prior).__name__}({', '.join(numbers)})"


def _make_densities(
    key: str, names: Sequence[str], x: np.ndarray, ys: Sequence[np.ndarray], x_name: str
) -> tuple[Any, Chart]:
    """Make the table and the chart of several densities over the same values."""
    columns = {key: np.repeat(np.array(names), len(x)), "value": np.tile(x, len(ys)), "density": np.concatenate(ys)}
    y = Axis("density", (0.0, 1.05 * float(np.nanmax(columns["density"])) or 1.0))
    return pa.table(columns), Chart("Densities", class_lines(names, x, ys), Axis(x_name), y, names)


class SimplexDisplay(Display):
    """Draws from a Dirichlet of three shares, as points in a triangle whose corners are the categories.

    `table` has a row for each draw, with a column for each share.

    See Also
    --------
    PriorDisplay : The marginal densities.

    Examples
    --------
    >>> from softcount.priors import Dirichlet
    >>> table = SimplexDisplay.from_prior(Dirichlet([40, 20, 20]), n_samples=4000).table
    >>> [round(sum(table[name].to_pylist()) / 4000, 2) for name in table.column_names]
    [0.5, 0.25, 0.25]
    """

    @classmethod
    def from_prior(
        cls, prior: Dirichlet, *, names: Sequence[str] = ("1", "2", "3"), n_samples: int = 1000, random_state: Any = 0,
        ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw a Dirichlet of three categories."""
        if not isinstance(prior, Dirichlet) or np.shape(prior.alpha) != (3,) or len(names) != 3:
            raise DataError(f"the triangle is for a Dirichlet of three shares, not {prior!r}.")
        drawn = np.asarray(prior.sample(n_samples, random_state=random_state))
        corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
        points, outline = drawn @ corners, corners[[0, 1, 2, 0]]
        marks = [
            Line(outline[:, 0], outline[:, 1], tone="muted", width=1.2),
            Points(points[:, 0], points[:, 1]),
            Note(0.5, 0.9, f"all {names[2]}"),
        ]
        x = Axis(ends=(-0.1, 1.1), ticks={0.0: f"all {names[0]}", 1.0: f"all {names[1]}"})
        table = pa.table({str(name): drawn[:, place] for place, name in enumerate(names)})
        chart = _chart(_name_prior(prior), marks, x, Axis(ends=(-0.05, 0.95), ticks={}), height=270.0)
        return cls(table, chart, lambda axes: axes.set(yticks=[], aspect="equal")).plot(ax)


class KernelDensityDisplay(Display):
    """A kernel density, the kernel of each row, and the densities of the same rows with other bandwidths.

    `table` has `bandwidth`, `row` (None for the sum), `value` and `density`. The kernel of a row has the height
    K((x - x_i) / h) / (n h), so that the kernels add up to the sum.

    See Also
    --------
    HistogramDisplay : A density that is constant within bins.
    DensityDisplay : A column in every class of a model.

    Examples
    --------
    >>> import softcount as sc
    >>> model = sc.KernelDensity(bandwidth=0.5).fit([1.0, 2.0, 2.5])
    >>> table = KernelDensityDisplay.from_estimator(model, bandwidths=[0.2, 1.0]).table.to_pandas()
    >>> table[table["row"].isna()]["bandwidth"].unique().tolist(), table["row"].nunique()
    ([0.5, 0.2, 1.0], 3)
    """

    @classmethod
    def from_estimator(
        cls, estimator: sc.KernelDensity, X: Any = None, *, bandwidths: Sequence[Any] = (),
        kernels: bool | None = None, ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw a density of one column."""
        first = estimator._density
        if not isinstance(first, ColumnDensity):
            raise DataError("a kernel density is drawn of one column, and this one has more.")
        points, ends = first.points, reflection_of(estimator.bounds)
        others = [type(estimator)(estimator.kernel, rule, True, estimator.bounds) for rule in bandwidths]
        densities = [first, *(other.fit(points.values, sample_weight=points.weights)._density for other in others)]
        far = DRAWN_BANDWIDTHS * max(density.h for density in densities)
        values, weights = points.ordered
        low, high = max(values[0] - far, ends.low), min(values[-1] + far, ends.high)
        x = np.linspace(low, high, DENSITY_POINTS)
        names = [f"bandwidth {density.h:.3g}" for density in densities]
        table, chart = _make_densities("bandwidth", names, x, [np.exp(d.log_density(x)) for d in densities], "value")
        table = table.set_column(0, "bandwidth", pa.array(np.repeat([d.h for d in densities], len(x))))
        row = np.full(table.num_rows, None, dtype=object)
        marks: list[Any] = []
        if len(values) <= MOST_KERNELS if kernels is None else kernels:
            for place, (value, weight) in enumerate(zip(values, weights, strict=True)):
                one = ColumnDensity(
                    WeightedPoints(np.array([value])), named_kernel(estimator.kernel), first.h, True, ends
                )
                height = np.exp(one.log_density(x)) * weight / points.total
                near = height > 1e-4 * height.max()
                marks.append(Line(x[near], height[near], tone="muted", width=1.0, strength=0.7))
                columns = {"bandwidth": np.full(len(x), first.h), "value": x, "density": height}
                table = pa.concat_tables([table, pa.table(columns)])
                row = np.append(row, np.full(len(x), place))
        marks.append(Points(values, np.zeros(len(values)), "ink", 2.5, 0.8))
        table = table.add_column(1, "row", pa.array(row.tolist(), pa.int64()))
        return cls(table, replace(chart, marks=[*marks, *chart.marks])).plot(ax)


class HistogramDisplay(Display):
    """The bars of a histogram. The area of a bar is its probability.

    `table` has `low`, `high`, `count` and `density` of each bin.

    See Also
    --------
    KernelDensityDisplay : A smooth density.

    Examples
    --------
    >>> import softcount as sc
    >>> model = sc.Histogram([0, 1, 2, 10]).fit([0.0, 1.0, 2.0, 8.0])
    >>> HistogramDisplay.from_estimator(model).table["count"].to_pylist()
    [1.0, 1.0, 2.0]
    """

    @classmethod
    def from_estimator(cls, estimator: sc.Histogram, X: Any = None, *, ax: Axes | None = None) -> Self:
        """Draw a fitted histogram."""
        edges, width = estimator.edges_, np.diff(estimator.edges_)
        heights = estimator.probabilities_ / width
        table = pa.table({"low": edges[:-1], "high": edges[1:], "count": estimator.counts_, "density": heights})
        middle = edges[:-1] + width / 2
        bars = Bars(middle, np.zeros(len(middle)), heights, ("c0",), thick=width * 0.98, strength=0.6, upright=True)
        y = Axis("density", (0.0, 1.05 * float(heights.max())))
        return cls(table, _chart(f"Histogram: {format_count(len(middle), 'bin')}", [bars], Axis("value"), y)).plot(ax)


class ClusterDisplay(Display):
    """The regions of clusters in two columns, with the rows and the centres.

    `table` has `cluster`, the centre (`x`, `y`) and `rows`.

    See Also
    --------
    TraceDisplay : The cost J after every step.
    BoundaryDisplay : The regions of classes.

    Examples
    --------
    >>> import softcount as sc
    >>> rows = [[0.0, 0.0], [0.0, 1.0], [5.0, 5.0], [5.0, 6.0], [5.0, 7.0]]
    >>> model = sc.KMeans(2, init=[rows[0], rows[2]], n_init=1).fit(rows)
    >>> ClusterDisplay.from_estimator(model, rows).table.to_pylist()[1]
    {'cluster': 1, 'x': 5.0, 'y': 6.0, 'rows': 3}
    """

    @classmethod
    def from_estimator(cls, estimator: sc.KMeans, X: Any, *, ax: Axes | None = None) -> Self:
        """Draw the clusters of two columns.

        Parameters
        ----------
        X : array or DataFrame of shape (n_rows, 2)
            Rows.
        """
        centres, rows = estimator.cluster_centers_, np.asarray(X, dtype=float)
        if centres.shape[1] != 2 or rows.ndim != 2 or rows.shape[1] != 2:
            raise DataError(f"clusters are drawn in two columns, and these have {centres.shape[1]}.")
        names, labels = [str(name) for name in getattr(X, "columns", ("x", "y"))], np.asarray(estimator.predict(X))
        ranges, grid = _make_grid(rows[:, 0], rows[:, 1])
        frame = dict(zip(X.columns, grid.T, strict=True)) if hasattr(X, "columns") else grid
        marks: list[Any] = [Regions(np.asarray(estimator.predict(frame)).reshape(GRID, GRID), ranges[0], ranges[1])]
        for cluster, centre in enumerate(centres):
            own = rows[labels == cluster]
            marks.append(Points(own[:, 0], own[:, 1], class_tone(cluster), 2.2))
            marks.append(Points(centre[:1], centre[1:], "ink", 5.0, 1.0))
        clusters = np.arange(len(centres))
        counts = np.bincount(labels, minlength=len(centres))
        table = pa.table({"cluster": clusters, "x": centres[:, 0], "y": centres[:, 1], "rows": counts})
        x, y = map(Axis, names, ranges)
        legend = [f"cluster {cluster}" for cluster in clusters]
        return cls(table, _chart("Clusters and centres", marks, x, y, legend=legend, height=200.0)).plot(ax)


def _make_grid(*columns: np.ndarray) -> tuple[list[tuple[float, float]], np.ndarray]:
    """Return the ranges of two columns with a margin, and the points of a grid over both, (points x 2)."""
    ranges = []
    for values in columns:
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        room = 0.05 * (high - low or 1.0)
        ranges.append((low - room, high + room))
    across, up = np.meshgrid(*(np.linspace(*ends, GRID) for ends in ranges))
    return ranges, np.stack([across.ravel(), up.ravel()], axis=1)


class LowerBoundDisplay(Display):
    """The two halves of every EM iteration: the lower bound after the M-step, and the objective after the E-step.

    The M-step raises the lower bound at fixed memberships. The E-step makes the bound equal to the objective again.
    `table` has `iteration`, `lower_bound` (None at the start) and `objective`.

    See Also
    --------
    TraceDisplay : The objective alone.

    Examples
    --------
    >>> import softcount as sc
    >>> model = sc.Mixture(2, half_steps=True, n_init=1, random_state=0, accelerate=False, max_iter=3)
    >>> table = LowerBoundDisplay.from_estimator(model.fit({"x": [1.0, 1.5, 2.0, 5.0, 5.5, 7.0]})).table.to_pylist()
    >>> all(a["objective"] <= b["lower_bound"] <= b["objective"] for a, b in zip(table, table[1:]))
    True
    """

    @classmethod
    def from_estimator(
        cls, estimator: sc.Mixture | sc.GaussianMixture, X: Any = None, *, ax: Axes | None = None
    ) -> Self:
        """Draw the EM run of a mixture that was fitted with `half_steps=True`."""
        trace = np.asarray(estimator.trace_, dtype=float)
        if not getattr(estimator, "half_steps", False) or len(trace) < 3:
            raise DataError("the lower bound is kept by a mixture fitted with half_steps=True and max_iter above 0.")
        objective, bound = trace[::2], trace[1::2]
        steps = np.arange(len(objective))
        table = pa.table({
            "iteration": steps, "lower_bound": [None, *bound[: len(steps) - 1].tolist()], "objective": objective
        })  # fmt: skip
        names = ["objective after the E-step", "lower bound after the M-step"]
        halves = np.arange(len(trace)) / 2
        marks: list[Any] = [
            Line(halves, trace, tone="muted", width=1.0),
            Points(steps, objective, "c0", 3.0, 1.0),
            Points(steps[1:] - 0.5, bound[: len(steps) - 1], "c1", 3.0, 1.0),
        ]
        x = Axis("iteration", ticks=_make_ticks(len(steps)))
        return cls(table, _chart("Lower bound and objective of EM", marks, x, Axis("objective"), legend=names)).plot(ax)


class LearningCurveDisplay(Display):
    """The log-loss or the accuracy of several classifiers by the number of training rows.

    `table` has `model`, `rows`, `log_loss` and `accuracy`, all on held-out rows.

    See Also
    --------
    softcount.compare : Computes the curves with `curve=True`.

    Examples
    --------
    >>> import softcount as sc
    >>> from softcount.demo import table_path
    >>> found = sc.compare(table_path(), "type", curve=True)  # doctest: +SKIP
    >>> LearningCurveDisplay.from_comparison(found, measure="accuracy").table.column_names  # doctest: +SKIP
    ['model', 'rows', 'log_loss', 'accuracy']
    """

    @classmethod
    def from_comparison(
        cls, comparison: Any, *, models: Sequence[str] = (), measure: str = "log_loss", ax: Axes | None = None,
    ) -> Self:  # fmt: skip
        """Draw the curves of a comparison."""
        curves = comparison.curves
        if curves is None:
            raise DataError("this comparison has no learning curves: compare(X, y, curve=True) computes them.")
        if measure not in ("log_loss", "accuracy"):
            raise DataError(f"measure must be 'log_loss' or 'accuracy', not {measure!r}.")
        if unknown := set(models) - set(curves.names):
            raise DataError(f"there is no model {min(unknown)!r}. There are: {', '.join(curves.names)}.")
        kept = curves.only(models) if models else curves
        return cls(kept.table, kept.chart(measure)).plot(ax)


class ReliabilityDisplay(Display):
    """Mean predicted probability against the share of correct predictions, in bins. On the diagonal both are equal.

    Below the diagonal the model is overconfident. The bars are 95 % intervals. `table` has `low`, `high`, `rows`,
    `stated` (the mean probability) and `right` (the share of correct predictions).

    See Also
    --------
    LearningCurveDisplay : Log-loss and accuracy by the number of rows.

    Examples
    --------
    >>> import softcount as sc
    >>> from softcount.demo import table_path
    >>> model = sc.NaiveBayes().fit(table_path(), "type")
    >>> shown = ReliabilityDisplay.from_estimator(model, table_path(), "type")
    >>> shown.table.column_names
    ['low', 'high', 'rows', 'stated', 'right']
    """

    @classmethod
    def from_estimator(
        cls, estimator: sc.NaiveBayes | sc.Classifier, X: Any, y: Any, *, ax: Axes | None = None
    ) -> Self:
        """Draw the predictions for labelled rows. Use held-out rows: on training rows a model looks too good.

        Parameters
        ----------
        X : table
            Rows.
        y : array-like
            Their labels.
        """
        return cls.from_evaluation(estimator.evaluate(X, y), ax=ax)

    @classmethod
    def from_evaluation(cls, evaluation: Any, *, ax: Axes | None = None) -> Self:
        """Draw the figures of an evaluation."""
        bins = evaluation.reliability
        columns = ("low", "high", "rows", "stated", "right")
        table = pa.table({name: [float(getattr(part, name)) for part in bins] for name in columns})
        return cls(table, reliability_chart(bins)).plot(ax)
