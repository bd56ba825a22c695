"""Displays draw what the model's own tables say."""

from __future__ import annotations

import math
from itertools import pairwise
from types import SimpleNamespace

import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import load_iris

import softcount as sc
from softcount import plot, priors
from softcount.demo import table_path
from softcount.errors import DataError
from softcount.estimators.comparison import LearningCurves
from softcount.priors import Beta, Dirichlet, Gamma, NormalKnownVariance

matplotlib.use("Agg")

BICYCLES = str(table_path())
X, Y = load_iris(return_X_y=True)
MESSAGES = ["win a prize now", "claim your free prize", "dinner at eight", "see you at dinner", "free entry to win"]
LABELS = ["spam", "spam", "ham", "ham", "spam"]


@pytest.fixture(scope="module")
def known():
    return sc.NaiveBayes().fit(BICYCLES, "type")


@pytest.fixture(scope="module")
def hidden():
    return sc.Mixture("auto", kinds={"type": "ignore"}, n_init=2, random_state=0).fit(BICYCLES)


@pytest.fixture(scope="module")
def bells():
    return sc.GaussianMixture(3, random_state=0).fit(X)


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def every_display(known, hidden, bells):
    text = sc.NaiveBayes(kinds="text").fit(MESSAGES, LABELS)
    net = sc.BayesNet([("a", "b"), ("a", "c")]).fit({"a": [0, 1, 1], "b": [0, 1, 0], "c": [1, 1, 0]})
    return {
        plot.InfluenceDisplay: (known, None, {}),
        plot.ExplanationDisplay: (known, BICYCLES, {}),
        plot.SelectionDisplay: (hidden, None, {}),
        plot.TraceDisplay: (hidden, None, {}),
        plot.AnomalyDisplay: (hidden, BICYCLES, {}),
        plot.ProfileDisplay: (hidden, None, {}),
        plot.DensityDisplay: (known, None, {"column": "price"}),
        plot.EllipseDisplay: (bells, X, {}),
        plot.BoundaryDisplay: (sc.NaiveBayes().fit(X, Y), X, {"columns": (2, 3)}),
        plot.CharacteristicWordsDisplay: (text, None, {}),
        plot.NetworkDisplay: (net, None, {}),
        plot.NomogramDisplay: (known, None, {"classes": ("road", "city")}),
        plot.KernelDensityDisplay: (sc.KernelDensity().fit(X[:20, 0]), None, {"bandwidths": ["scott", 0.1]}),
        plot.HistogramDisplay: (sc.Histogram([4, 5, 6, 8]).fit(X[:, 0]), None, {}),
        plot.ClusterDisplay: (sc.KMeans(3, random_state=0).fit(X[:, 2:]), X[:, 2:], {}),
        plot.LowerBoundDisplay: (em_in_halves(), None, {}),
    }


def em_in_halves():
    return sc.GaussianMixture(2, half_steps=True, accelerate=False, max_iter=6, tol=0, random_state=0).fit(X)


@pytest.mark.filterwarnings("ignore::softcount.DataWarning")
def test_every_display_keeps_to_the_habits_of_scikit_learn(known, hidden, bells):
    import matplotlib.pyplot as plt

    made = every_display(known, hidden, bells)
    others = {"PriorDisplay", "SimplexDisplay", "ReliabilityDisplay", "LearningCurveDisplay"}  # below
    assert {kind.__name__ for kind in made} | others == set(plot.__all__)
    for kind, (model, rows, how) in made.items():
        figure, ax = plt.subplots()
        shown = kind.from_estimator(model, rows, **how, ax=ax)
        assert shown.ax_ is ax and shown.figure_ is figure and shown.table.num_rows > 0
        assert shown.ax_.has_data() or ax.texts, kind
        again = shown.plot()
        assert again is shown and shown.ax_ is not ax
        assert shown.svg().startswith("<svg ") and "ax_ : matplotlib Axes" in kind.__doc__
        plt.close("all")


def test_the_bars_are_the_influence(known):
    shown = plot.InfluenceDisplay.from_estimator(known)
    table = known.summary("column")
    wanted = table["influence"].tolist()
    assert [bar.get_width() for bar in shown.ax_.patches] == pytest.approx(wanted)
    assert [tick.get_text() for tick in shown.ax_.get_yticklabels()] == table["column"].tolist()


def test_the_waterfall_ends_where_the_log_odds_are(known):
    row = {"gears": [20], "price": [900.0], "brakes": ["rim"]}
    shown = plot.ExplanationDisplay.from_estimator(known, row)
    *parts, total = shown.ax_.patches
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in parts]
    assert ends[0][0] == 0
    assert all(before[1] == pytest.approx(after[0], abs=1e-12) for before, after in pairwise(ends))
    first, second = np.sort(known.predict_log_proba(row)[0])[:-3:-1]
    assert ends[-1][1] == pytest.approx(total.get_width()) == pytest.approx(first - second, abs=1e-9)


def test_ellipses_hold_half_and_ninety_five_in_a_hundred_of_what_is_drawn(bells):
    drawn, labels = bells.sample(20_000, random_state=0)
    shown = plot.EllipseDisplay.from_estimator(bells, X, columns=(0, 1))
    for line in shown.table.to_pylist():
        points = drawn[labels == line["component"]][:, :2] - [line["x"], line["y"]]
        turn = np.radians(line["angle"])
        along = points @ [np.cos(turn), np.sin(turn)] / line["long"]
        across = points @ [-np.sin(turn), np.cos(turn)] / line["short"]
        assert np.mean(along**2 + across**2 <= 1) == pytest.approx(line["level"], abs=0.015)


@pytest.mark.parametrize("shape", ["full", "tied", "diag", "spherical", "tied_diag", "tied_spherical"])
def test_every_shape_of_covariance_has_its_ellipses(shape):
    model = sc.GaussianMixture(2, shape, n_init=2, random_state=0).fit(X)
    shown = plot.EllipseDisplay.from_estimator(model, X, columns=(1, 2))
    spread = {"full": lambda c: c[0][1:3, 1:3], "tied": lambda c: c[1:3, 1:3], "diag": lambda c: np.diag(c[0][1:3])}
    first = shown.table.to_pylist()[0]
    if shape in spread:
        values = np.linalg.eigvalsh(spread[shape](model.covariances_))
        assert [first["short"], first["long"]] == pytest.approx(np.sqrt(values * 2 * np.log(2)), rel=1e-9)
    assert first["long"] >= first["short"] > 0


def test_the_regions_are_what_the_model_predicts():
    model = sc.NaiveBayes().fit(X[:, 2:], Y)
    shown = plot.BoundaryDisplay.from_estimator(model, X[:, 2:])
    grid = np.stack([shown.table["x"].to_numpy(), shown.table["y"].to_numpy()], axis=1)
    np.testing.assert_array_equal(shown.table["class"].to_numpy(), model.predict(grid))


def test_densities_are_what_a_query_of_the_class_answers(known):
    table = plot.DensityDisplay.from_estimator(known, column="weight_kg").table.to_pandas()
    for name, mine in table.groupby("class"):
        wanted = known.query("weight_kg", given={"type": name}).pdf(mine["value"].to_numpy())
        np.testing.assert_allclose(mine["density"], wanted, rtol=1e-12)
    levels = plot.DensityDisplay.from_estimator(known, column="brakes").table.to_pandas()
    assert levels.groupby("class")["density"].sum().to_numpy() == pytest.approx(1, rel=1e-12)


@pytest.mark.filterwarnings("ignore::softcount.DataWarning")
def test_places_of_a_nomogram_add_up_to_the_log_odds(known):
    shown = plot.NomogramDisplay.from_estimator(known, classes=("road", "city"))
    places = {(line["column"], line["value"]): line["log_odds"] for line in shown.table.to_pylist()}
    row = {"gears": [20], "brakes": ["rim"], "lights": ["no"]}
    read = shown.start + sum(places[name, str(cell)] for name, (cell,) in row.items())
    chances = dict(zip(known.classes_, known.predict_log_proba(row)[0], strict=True))
    assert read == pytest.approx(chances["road"] - chances["city"], abs=1e-9)


def test_a_nomogram_has_whole_numbers_for_counts():
    rng = np.random.default_rng(0)
    visits = rng.poisson(np.repeat([4, 30], 100))
    model = sc.NaiveBayes(kinds={"visits": "poisson"}).fit({"visits": visits, "x": rng.normal(size=200)}, visits > 15)
    lines = plot.NomogramDisplay.from_estimator(model).table.to_pylist()
    values = [float(line["value"]) for line in lines if line["column"] == "visits"]
    assert len(values) > 10 and all(value.is_integer() and value >= 0 for value in values)
    assert "Nomogram: " in model.report().html


def test_a_model_of_a_pandas_frame_is_drawn_the_same():
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    model, plainly = sc.NaiveBayes().fit(frame, Y), sc.NaiveBayes().fit({n: frame[n].to_numpy() for n in "abc"}, Y)
    for kind, rows in [(plot.InfluenceDisplay, None), (plot.ProfileDisplay, None), (plot.AnomalyDisplay, frame),
                       (plot.ExplanationDisplay, frame)]:  # fmt: skip
        shown, wanted = (kind.from_estimator(each, rows).table for each in (model, plainly))
        assert shown.to_pylist() == wanted.to_pylist() or kind is plot.AnomalyDisplay
        assert shown.num_rows == wanted.num_rows > 0


def test_the_best_number_of_classes_is_marked(hidden):
    shown = plot.SelectionDisplay.from_estimator(hidden)
    line, marked = shown.ax_.lines
    assert marked.get_xdata()[0] == len(hidden.weights_)
    assert marked.get_ydata()[0] == max(line.get_ydata())


def test_priors_are_the_formula_of_their_density():
    shown = plot.PriorDisplay.from_prior(Beta(4, 7), Beta(2, 3), Beta(0.5, 0.5), names=["a", "b", "c"])
    for name, a, b in (("a", 4, 7), ("b", 2, 3), ("c", 0.5, 0.5)):
        own = shown.table.to_pandas().set_index("prior").loc[name].iloc[1:-1]
        constant = math.gamma(a + b) / math.gamma(a) / math.gamma(b)
        np.testing.assert_allclose(own["density"], constant * own["value"] ** (a - 1) * (1 - own["value"]) ** (b - 1))
    a = shown.table.to_pandas().query("prior == 'a'")
    assert a["value"].iloc[int(a["density"].argmax())] == pytest.approx(3 / 9)  # the mode
    assert np.trapezoid(a["density"], a["value"]) == pytest.approx(1, abs=1e-4)
    gamma = plot.PriorDisplay.from_prior(Gamma(3, 2)).table.to_pandas()
    np.testing.assert_allclose(gamma["density"], stats.gamma(3, scale=0.5).pdf(gamma["value"]), rtol=1e-9)
    for prior in (Gamma(3, 2), NormalKnownVariance(1.0, 4.0, 2.0)):
        table = plot.PriorDisplay.from_prior(prior).table.to_pandas()
        assert np.trapezoid(table["density"], table["value"]) == pytest.approx(0.998, abs=1e-3)


def test_a_dirichlet_is_drawn_as_marginals_and_as_points_of_a_triangle():
    prior = Dirichlet([2.0, 3.0, 5.0])
    marginals = plot.PriorDisplay.from_prior(prior).table.to_pandas()
    for place, alpha in enumerate((2, 3, 5)):
        own = marginals[marginals["prior"] == f"Dirichlet([2.0, 3.0, 5.0]): share {place + 1}"]
        np.testing.assert_allclose(own["density"], stats.beta(alpha, 10 - alpha).pdf(own["value"]), atol=1e-12)
    shown = plot.SimplexDisplay.from_prior(prior, names=["a", "b", "c"], n_samples=20_000)
    drawn = np.stack([shown.table[name].to_numpy() for name in "abc"], axis=1)
    np.testing.assert_allclose(drawn.sum(axis=1), 1)
    np.testing.assert_allclose(drawn.mean(axis=0), [0.2, 0.3, 0.5], atol=0.005)
    x, y = shown.ax_.collections[0].get_offsets().T
    np.testing.assert_allclose(np.stack([drawn[:, 1] + drawn[:, 2] / 2, drawn[:, 2] * np.sqrt(0.75)]), [x, y])
    with pytest.raises(DataError, match="three shares"):
        plot.SimplexDisplay.from_prior(Dirichlet([1, 1]))
    with pytest.raises(DataError, match="give a prior"):
        plot.PriorDisplay.from_prior()
    with pytest.raises(DataError, match="not one distribution"):
        plot.PriorDisplay.from_prior(Beta([1, 2], [3, 4]))


@pytest.mark.parametrize("bounds", [None, (0.0, None)])
def test_single_kernels_add_up_to_the_density(bounds):
    rows, weights = np.array([0.4, 1.0, 2.5, 2.5]), np.array([1.0, 2.0, 1.0, 0.5])
    model = sc.KernelDensity(bandwidth=0.5, bounds=bounds).fit(rows, sample_weight=weights)
    table = plot.KernelDensityDisplay.from_estimator(model, bandwidths=[1.5]).table.to_pandas()
    single = table[table["row"].notna()].groupby("value")["density"].sum()
    whole = table[table["row"].isna() & (table["bandwidth"] == 0.5)].set_index("value")["density"]
    np.testing.assert_allclose(single, whole, rtol=1e-9, atol=1e-15)
    if bounds is None:
        value = whole.index.to_numpy()[:, None]
        plain = (weights * stats.norm.pdf((value - rows) / 0.5)).sum(axis=1) / (weights.sum() * 0.5)
        np.testing.assert_allclose(whole, plain, rtol=1e-9)
    assert table["bandwidth"].unique().tolist() == [0.5, 1.5]
    with pytest.raises(DataError, match="one column"):
        plot.KernelDensityDisplay.from_estimator(sc.KernelDensity(bandwidth=1.0).fit(X[:, :2]))


def test_the_area_of_a_bar_is_the_probability_of_its_bin():
    model = sc.Histogram([4, 5, 5.5, 8]).fit(X[:, 0])
    shown = plot.HistogramDisplay.from_estimator(model)
    table = shown.table.to_pandas()
    np.testing.assert_array_equal(table["count"], np.histogram(X[:, 0], [4, 5, 5.5, 8])[0])
    np.testing.assert_allclose((table["high"] - table["low"]) * table["density"], model.probabilities_)
    assert [bar.get_height() for bar in shown.ax_.patches] == pytest.approx(table["density"].tolist())


@pytest.mark.parametrize("frame", [False, True])
def test_the_regions_of_clusters_are_the_nearest_centres(frame):
    rows = pd.DataFrame(X[:, 2:], columns=["length", "width"]) if frame else X[:, 2:]
    model = sc.KMeans(3, random_state=0).fit(rows)
    shown = plot.ClusterDisplay.from_estimator(model, rows)
    assert shown.table["rows"].to_pylist() == np.bincount(model.labels_).tolist()
    regions = shown.chart.marks[0]
    low, high = regions.x_range
    place = regions.places[7, 31]
    at = [np.linspace(low, high, plot.GRID)[31], np.linspace(*regions.y_range, plot.GRID)[7]]
    assert place == np.argmin(((model.cluster_centers_ - at) ** 2).sum(axis=1))
    with pytest.raises(DataError, match="two columns"):
        plot.ClusterDisplay.from_estimator(sc.KMeans(2, random_state=0).fit(X), X)


def test_bound_and_objective_climb_in_turn():
    table = plot.LowerBoundDisplay.from_estimator(em_in_halves()).table.to_pylist()
    assert table[0]["lower_bound"] is None and len(table) == 7
    for before, after in pairwise(table):
        assert before["objective"] <= after["lower_bound"] + 1e-9 <= after["objective"] + 2e-9
    with pytest.raises(DataError, match="half_steps=True"):
        plot.LowerBoundDisplay.from_estimator(sc.GaussianMixture(2, random_state=0).fit(X))


def test_reliability_is_the_share_that_came_true(known):
    model = sc.NaiveBayes().fit(X[::2], Y[::2])
    table = plot.ReliabilityDisplay.from_estimator(model, X[1::2], Y[1::2]).table.to_pandas()
    sure, right = model.predict_proba(X[1::2]).max(axis=1), model.predict(X[1::2]) == Y[1::2]
    assert table["rows"].sum() == 75
    assert table["rows"] @ table["right"] == pytest.approx(right.sum())
    assert table["rows"] @ table["stated"] == pytest.approx(sure.sum())


def test_learning_curves_are_those_of_the_comparison():
    curves = LearningCurves(["plain", "lines"], np.array([20, 50]), np.array([[0.5, 0.4], [0.9, 0.3]]), np.eye(2))
    found = SimpleNamespace(curves=curves)
    shown = plot.LearningCurveDisplay.from_comparison(found)
    assert shown.table.to_pylist()[3] == {"model": "lines", "rows": 50, "log_loss": 0.3, "accuracy": 1.0}
    one = plot.LearningCurveDisplay.from_comparison(found, models=["lines"], measure="accuracy")
    np.testing.assert_allclose(one.ax_.lines[0].get_xydata(), [[np.log10(20), 0.0], [np.log10(50), 1.0]])
    for wrong, problem in (({"models": ["x"]}, "no model 'x'"), ({"measure": "auc"}, "measure must be")):
        with pytest.raises(DataError, match=problem):
            plot.LearningCurveDisplay.from_comparison(found, **wrong)
    with pytest.raises(DataError, match="curve=True"):
        plot.LearningCurveDisplay.from_comparison(SimpleNamespace(curves=None))


def test_names_from_data_begin_no_formula_and_send_no_escapes():
    table = {"$\\frac{a$": ["x", "y", "x", "y"] * 5, "b\x1b[31m": [1.0, 2.0, 1.5, 2.5] * 5}
    model = sc.NaiveBayes().fit(table, ["<b>", "c"] * 10)
    shown = plot.InfluenceDisplay.from_estimator(model)
    shown.figure_.canvas.draw()
    labels = {tick.get_text() for tick in shown.ax_.get_yticklabels()}
    assert labels == {"\\$\\frac{a\\$", "b\\x1b[31m"}


def test_what_cannot_be_drawn_is_said(known):
    with pytest.raises(DataError, match="no row 600"):
        plot.ExplanationDisplay.from_estimator(known, {"gears": [20]}, row=600)
    with pytest.raises(DataError, match="two columns"):
        plot.EllipseDisplay.from_estimator(sc.GaussianMixture(2, random_state=0).fit(X[:, :1]))
    with pytest.raises(DataError, match="nomogram needs two classes"):
        plot.NomogramDisplay.from_estimator(sc.Mixture(1, random_state=0).fit(X))
    with pytest.raises(DataError, match="give the rows"):
        plot.BoundaryDisplay.from_estimator(known)


def test_an_experts_counts_are_drawn_as_their_beta():
    expert, beta = (plot.PriorDisplay.from_prior(prior).table for prior in (priors.Expert(2, 5), Beta(2, 3)))
    assert expert["prior"].unique().to_pylist() == ["Expert(2, 5)"]
    np.testing.assert_allclose(expert["density"].to_numpy(), beta["density"].to_numpy())


def test_a_legend_names_the_shares_of_a_dirichlet():
    table = plot.PriorDisplay.from_prior(Dirichlet([8, 4, 2])).table
    assert table["prior"].unique().to_pylist() == [f"share {k} of Dirichlet(8, 4, 2)" for k in (1, 2, 3)]


def test_the_states_of_a_chain_are_selected_like_classes():
    model = sc.HiddenMarkov("auto", random_state=0).fit([[1.0, 2.0, 9.0, 8.0, 1.0, 2.0] * 5])
    shown = plot.SelectionDisplay.from_estimator(model)
    assert shown.ax_.get_title() == f"How many states: {model.n_states_}"
    with pytest.raises(DataError, match="'auto'"):
        plot.SelectionDisplay.from_estimator(sc.Mixture(2, random_state=0).fit(X))


def test_clusters_of_a_frame_of_any_library_are_drawn():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"length": X[:, 2], "width": X[:, 3]})
    shown = plot.ClusterDisplay.from_estimator(sc.KMeans(3, random_state=0).fit(frame), frame)
    assert shown.ax_.get_xlabel() == "length" and sum(shown.table["rows"].to_pylist()) == len(X)


def test_the_bars_of_the_oddest_rows_are_not_squeezed_by_their_texts(hidden):
    import re

    shown = plot.AnomalyDisplay.from_estimator(hidden, BICYCLES, n=5)
    widths = [float(width) for width in re.findall(r'<rect class="f-minus"[^>]*width="([\d.]+)"', shown.svg())]
    assert max(widths) > 100
