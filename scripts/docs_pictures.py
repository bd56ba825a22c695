"""The pictures of the tutorials, the guide and the worked examples: `python scripts/docs_pictures.py [NAME...]`.

Each function below returns one picture as SVG and is named after its file in docs/pictures, with _ for -.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import replace
from sklearn.datasets import load_iris, load_wine, make_classification, make_moons
from sklearn.model_selection import train_test_split
from sklearn.svm import SVR

import softcount as sc
from softcount.demo import table_path
from softcount.pictures.chart import Axis, Bars, Chart, Line, Points, Regions, Rule, class_lines
from softcount.pictures.drawing import class_tone
from softcount.plot import (
    BoundaryDisplay,
    CharacteristicWordsDisplay,
    ClusterDisplay,
    EllipseDisplay,
    ExplanationDisplay,
    HistogramDisplay,
    InfluenceDisplay,
    KernelDensityDisplay,
    LearningCurveDisplay,
    LowerBoundDisplay,
    NetworkDisplay,
    NomogramDisplay,
    PriorDisplay,
    ReliabilityDisplay,
    SelectionDisplay,
    SimplexDisplay,
    TraceDisplay,
)
from softcount.priors import Beta, Dirichlet
from softcount.report.page import Picture

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
PETALS = ["petal length (cm)", "petal width (cm)"]


def bicycles() -> tuple[pd.DataFrame, pd.Series]:
    """The bundled table, and the types of its bicycles."""
    table = pd.read_csv(table_path(), na_values="?")
    return table.drop(columns="type"), table["type"]


def petals() -> pd.DataFrame:
    return load_iris(as_frame=True).data[PETALS]


def svg(chart: Any, **changed: Any) -> str:
    """A chart as SVG; `changed` are its parts to set, such as the axes or the height."""
    return str((replace(chart, **changed) if changed else chart).draw().svg_file())


def from_report(model: Any, title: str, *rows: Any) -> str:
    """The picture of a model's report whose title begins so."""
    pictures = [block for block in model.report(*rows).page.blocks if isinstance(block, Picture)]
    return next(svg(picture.chart) for picture in pictures if picture.title.startswith(title))


def nomogram() -> str:
    model = sc.NaiveBayes().fit(*bicycles())
    return svg(NomogramDisplay.from_estimator(model, classes=("city", "road"), n=9).chart)


def classifier_explanation() -> str:
    X, y = bicycles()
    return svg(ExplanationDisplay.from_estimator(sc.Classifier().fit(X, y), X, row=4).chart)


def classifier_boundary() -> str:
    points, moons = make_moons(400, noise=0.25, random_state=0)
    frame = pd.DataFrame(points, columns=["x", "y"])
    model = sc.Classifier().fit(frame, np.where(moons == 0, "upper", "lower"))
    chart = BoundaryDisplay.from_estimator(model, frame, columns=("x", "y")).chart
    x, y = points.T
    own = [Points(x[moons == side], y[moons == side], class_tone(1 - side), 1.8, 0.8) for side in (0, 1)]
    return svg(chart, marks=[*chart.marks, *own], title="", height=180.0)


def mixture_profile() -> str:
    model = sc.Mixture(random_state=0).fit(bicycles()[0])
    return from_report(model, "Class profiles")


def mixture_ellipses() -> str:
    rows = petals().to_numpy()
    model = sc.GaussianMixture(3, random_state=0).fit(rows)
    chart = EllipseDisplay.from_estimator(model, rows).chart
    return svg(chart, x=Axis(PETALS[0]), y=Axis(PETALS[1]), title="", height=180.0)


def kmeans_regions() -> str:
    rows = petals()
    model = sc.KMeans(3, random_state=0).fit(rows)
    ends = [(float(rows[name].min()) - 0.3, float(rows[name].max()) + 0.3) for name in PETALS]
    across, up = (each.ravel() for each in np.meshgrid(*(np.linspace(*end, 120) for end in ends)))
    places = model.predict(pd.DataFrame({PETALS[0]: across, PETALS[1]: up})).reshape(120, 120)
    marks: list[Any] = [Regions(places, ends[0], ends[1])]
    for cluster, centre in enumerate(model.cluster_centers_):
        own = rows[model.labels_ == cluster].to_numpy()
        marks += [
            Points(own[:, 0], own[:, 1], class_tone(cluster), 2.2),
            Points(centre[:1], centre[1:], "ink", 5.0, 1.0),
        ]
    names = [f"cluster {cluster}" for cluster in range(3)]
    x, y = Axis(PETALS[0], ends[0]), Axis(PETALS[1], ends[1])
    return svg(Chart("k-means: clusters and centres", marks, x, y, names, height=180.0))


def beta() -> str:
    shares = np.linspace(0.005, 0.995, 100)
    prior = Beta(5, 3)
    after = prior.update(successes=1, failures=2)
    names = ["prior: Beta(5, 3)", "posterior: Beta(6, 5)"]
    lines = class_lines(names, shares, [np.asarray(each.pdf(shares)) for each in (prior, after)])
    title = "A Beta prior and its posterior after one success and two failures"
    return svg(Chart(title, lines, Axis("share of successes"), Axis("density"), names))


def hypotheses() -> str:
    shares = {"all cherry": 1, "three of four": 0.75, "half": 0.5, "one of four": 0.25, "all lime": 0}
    likelihood = {bag: {"cherry": share, "lime": 1 - share} for bag, share in shares.items()}
    prior = dict(zip(shares, [0.1, 0.2, 0.4, 0.2, 0.1], strict=True))
    return str(sc.Hypotheses(prior, likelihood).observe(["lime"] * 10).history_svg())


def bandwidths() -> str:
    draw = np.random.default_rng
    x = np.concatenate([draw(0).normal(0, 1, 300), draw(1).normal(6, 0.5, 200)])
    at, rules = np.linspace(-4, 9, 160), {"ISJ": "isj", "too small: 0.05": 0.05, "too large: 1.5": 1.5}
    curves = [np.exp(sc.KernelDensity(bandwidth=rule).fit(x).score_samples(at)) for rule in rules.values()]
    title = "Kernel densities of three bandwidths"
    return svg(Chart(title, class_lines(list(rules), at, curves, width=1.5), Axis("x"), Axis("density"), list(rules)))


def missing() -> str:
    points = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 2000)
    hidden = points[:, 0] > 0
    gaps = points.copy()
    gaps[hidden, 1] = np.nan
    chart = EllipseDisplay.from_estimator(sc.GaussianMixture(1).fit(gaps)).chart
    seen = points[~hidden][:250]
    marks = [Points(seen[:, 0], seen[:, 1], "muted", 2.0), *chart.marks]
    x, y = Axis("first column"), Axis("second column")
    return svg(Chart("Ellipses fitted to rows with missing cells", marks, x, y, height=180.0))


def network() -> str:
    X, y = bicycles()
    table = X[["brakes", "lights", "colour"]].assign(gears=X["gears"].astype(str), type=y)
    model = sc.BayesNet("tan").fit(table, "type")
    return svg(NetworkDisplay.from_estimator(model).chart)


def states() -> str:
    rng = np.random.default_rng(0)
    rain = np.concatenate([rng.normal(2, 0.5, 25), rng.normal(6, 1.0, 15), rng.normal(2, 0.5, 20)])
    model = sc.HiddenMarkov(2, random_state=0).fit([rain.tolist()])
    path, steps = model.predict([rain.tolist()])[0], np.arange(len(rain))
    marks: list[Any] = [Line(steps, rain, "series", "muted", 1.2)]
    marks += [Points(steps[path == state], rain[path == state], class_tone(state), 3.5, 0.9) for state in (0, 1)]
    return svg(Chart("A series and its states", marks, Axis("step"), Axis("value"), ["state 0", "state 1"]))


def tutorial_rows() -> tuple[Any, pd.DataFrame]:
    """The classifier of the first tutorial, and its test rows."""
    table = pd.read_csv(table_path(), na_values="?", dtype={"postcode": str}).dropna(subset=["type"])
    train, test = train_test_split(table, test_size=0.25, random_state=0, stratify=table["type"])
    return sc.Classifier().fit(train, "type"), test


def tutorial_reliability() -> str:
    model, test = tutorial_rows()
    return svg(ReliabilityDisplay.from_estimator(model, test, test["type"]).chart, width=340.0, height=200.0)


def tutorial_influence() -> str:
    return svg(InfluenceDisplay.from_estimator(tutorial_rows()[0]).chart, title="", width=420.0)


def tutorial_explanation() -> str:
    return svg(ExplanationDisplay.from_estimator(*tutorial_rows()).chart, width=420.0)


def wines() -> pd.DataFrame:
    """The wines of the second tutorial."""
    return load_wine(as_frame=True).data.rename(columns={"od280/od315_of_diluted_wines": "od280_od315"})


def tutorial_selection() -> str:
    chart = SelectionDisplay.from_estimator(sc.Mixture(random_state=0).fit(wines())).chart
    return svg(chart, title="", width=420.0)


def tutorial_profile() -> str:
    return from_report(sc.Mixture(random_state=0).fit(wines()), "Class profiles")


def tutorial_ellipses() -> str:
    pair = wines()[["flavanoids", "proline"]]
    model = sc.GaussianMixture(3, random_state=0).fit(pair)
    chart = EllipseDisplay.from_estimator(model, pair.to_numpy()).chart
    return svg(chart, x=Axis("flavanoids"), y=Axis("proline"), title="", width=420.0, height=240.0)


def tutorial_words() -> str:
    modules = ["metrics", "datasets", "linear_model", "preprocessing", "cluster", "decomposition", "feature_selection"]
    rows: list[tuple[str, str]] = []
    for name in [*modules, "ensemble"]:
        module = import_module(f"sklearn.{name}")
        for member in module.__all__:
            text = (getattr(module, member).__doc__ or "").split("----------")[0].removesuffix("Parameters\n    ")
            rows.append((name, " ".join(text.split())))
    docs = pd.DataFrame(rows, columns=["module", "text"])
    train, _ = train_test_split(docs, test_size=0.4, random_state=0, stratify=docs["module"])
    model = sc.NaiveBayes(kinds="text").fit(train[["text"]], train["module"])
    chart = CharacteristicWordsDisplay.from_estimator(model, n=3).chart
    return svg(chart, x=Axis("log-odds"), y=replace(chart.y, room=290.0), title="", width=560.0)


# -- worked examples

HILL = {"G": (29, 17), "D": (6, 18), "M": (27, 3)}
"""People who said yes: of 32 on the hill, of 48 elsewhere."""
NUMBERS = [1.0, 2.0, 2.5, 4.0, 4.2, 7.0]
SIX_POINTS = np.array([[0.0, 0], [1, 0], [0, 1], [4, 4], [5, 4], [4, 5]])


def people() -> tuple[pd.DataFrame, np.ndarray]:
    columns = {
        name: [int(i < on) for i in range(32)] + [int(i < off) for i in range(48)] for name, (on, off) in HILL.items()
    }
    return pd.DataFrame(columns), np.array(["hill"] * 32 + ["elsewhere"] * 48)


def beta_shapes() -> str:
    return svg(PriorDisplay.from_prior(Beta(1, 1), Beta(2, 3), Beta(4, 7), Beta(5, 11)).chart)


def dirichlet_shapes() -> str:
    names = ["share 1: Beta(8, 6)", "share 2: Beta(4, 10)", "share 3: Beta(2, 12)"]
    return svg(PriorDisplay.from_prior(Beta(8, 6), Beta(4, 10), Beta(2, 12), names=names).chart)


def simplex() -> str:
    return svg(SimplexDisplay.from_prior(Dirichlet(np.array([8.0, 4.0, 2.0]))).chart)


def wealth() -> str:
    shares = {"F, at most 40.5 h": 0.088543, "F, more": 0.216133, "M, at most 40.5 h": 0.226704, "M, more": 0.441316}
    bars = Bars(np.arange(4), np.zeros(4), list(shares.values()), texts=[f"{share:.3f}" for share in shares.values()])
    x = Axis("share of rich people", (0.0, 0.5))
    return svg(Chart("Share of rich people by gender and hours", [bars], x, Axis(labels=list(shares)), height=24.0))


def hill() -> str:
    model = sc.NaiveBayes(kinds="bernoulli", estimate="ml").fit(*people())
    row = pd.DataFrame({"G": [1], "D": [1], "M": [1]})
    return svg(ExplanationDisplay.from_estimator(model, row).chart)


def xor() -> str:
    corner = np.tile([[0, 0], [0, 1], [1, 0], [1, 1]], (75, 1))
    points = corner + 0.15 * np.random.default_rng(9).normal(size=(300, 2))
    side = np.where(corner[:, 0] == corner[:, 1], "equal", "differ")
    model = sc.NaiveBayes(kinds={(0, 1): sc.families.Mixed("normal", 2)}).fit(points, side)
    chart = BoundaryDisplay.from_estimator(model, points).chart
    marks = [
        Points(points[side == name, 0], points[side == name, 1], class_tone(place), 1.8, 0.8)
        for place, name in enumerate(model.classes_)
    ]
    return svg(
        chart,
        marks=[*chart.marks, *marks],
        x=Axis("a", chart.x.ends),
        y=Axis("b", chart.y.ends),
        title="",
        height=200.0,
    )


def copies() -> str:
    columns, home = people()
    row, both = pd.DataFrame({"G": [1], "D": [1], "M": [0]}), []
    for copy in range(1, 5):
        wide, one = (frame.assign(**{f"G{i}": frame["G"] for i in range(1, copy)}) for frame in (columns, row))
        naive = sc.NaiveBayes(kinds="bernoulli", estimate="ml").fit(wide, home)
        logistic = sc.NaiveBayes(kinds="bernoulli").fit(wide, home).to_logistic(wide, home)
        both.append([float(model.predict_proba(one)[0, 1]) for model in (naive, logistic)])
    names, times = ["naive Bayes", "logistic regression"], [1, 2, 3, 4]
    lines = class_lines(names, times, np.array(both).T, dots=3.0)
    x, y = (
        Axis("copies of G", ticks={float(n): f"{n}" for n in times}),
        Axis("probability of living on the hill", (0.0, 1.0)),
    )
    return svg(Chart("Probability by the number of copies", lines, x, y, names))


def heights() -> str:
    free = sc.NaiveBayes(estimate="ml").fit([[72.0], [66.0], [74.0], [62.0], [67.0]], ["tall"] * 3 + ["short"] * 2)
    at = np.linspace(42, 86, 160)
    mean, variance = free.params_[0]["mean"], free.params_[0]["variance"]
    density = np.exp(-((at[:, None] - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    names = ["short", "tall"]
    lines = class_lines(names, at, (density * free.class_prior_).T)
    rules = [Rule(root, f"{root:.1f}") for root in free.to_quadratic("tall", "short").roots]
    x, y = Axis("height (inches)"), Axis("share times density", (0.0, 0.08))
    return svg(Chart("Two normal densities and their boundaries", [*rules, *lines], x, y, names))


def lower_bound() -> str:
    counts = {"111": 273, "110": 93, "101": 104, "100": 90, "011": 79, "010": 100, "001": 94, "000": 167}
    candies = pd.DataFrame([list(candy) for candy in counts], columns=["flavor", "wrapper", "hole"])
    start: dict[str, Any] = {"weights": [0.6, 0.4]}
    start |= {name: {"1": [0.6, 0.4], "0": [0.4, 0.6]} for name in candies.columns}
    model = sc.Mixture(
        2, init=start, n_init=1, max_iter=10, tol=0, accelerate=False, estimate="ml", half_steps=True,
        kinds="categorical",
    )  # fmt: skip
    chart = LowerBoundDisplay.from_estimator(model.fit(candies, sample_weight=list(counts.values()))).chart
    return svg(chart, y=Axis("log-likelihood"), height=180.0)


def kmeans_steps() -> str:
    model = sc.KMeans(2, init=SIX_POINTS[:2], n_init=1, tol=0).fit(SIX_POINTS)
    return svg(ClusterDisplay.from_estimator(model, SIX_POINTS).chart, title="")


def kmeans_cost() -> str:
    model = sc.KMeans(2, init=SIX_POINTS[:2], n_init=1, tol=0).fit(SIX_POINTS)
    return svg(TraceDisplay.from_estimator(model).chart, y=Axis("J"), title="")


def covariance_ellipse() -> str:
    root = 3**0.5
    model = sc.GaussianMixture(1, estimate="ml").fit(np.array([[root, root], [-root, -root], [1, -1], [-1, 1]]))
    drawn, _ = model.sample(1000, random_state=0)
    chart = EllipseDisplay.from_estimator(model, drawn).chart
    return svg(chart, x=Axis("x", (-6.0, 6.0)), y=Axis("y", (-6.0, 6.0)), title="", height=265.0)


def kernels() -> str:
    return svg(KernelDensityDisplay.from_estimator(sc.KernelDensity(bandwidth=0.5).fit(NUMBERS)).chart, height=160.0)


def three_bandwidths() -> str:
    model = sc.KernelDensity(bandwidth=0.5).fit(NUMBERS)
    return svg(KernelDensityDisplay.from_estimator(model, bandwidths=[0.2, 1.5], kernels=False).chart, height=160.0)


def histogram_edges() -> str:
    return svg(HistogramDisplay.from_estimator(sc.Histogram([0, 2, 3, 5, 8]).fit(NUMBERS)).chart, title="")


def learning_curve() -> str:
    table = pd.read_csv(table_path(), na_values="?").dropna(subset="type")
    found = sc.compare(table, "type", curve=True, folds=2)
    models = ["naive Bayes", "logistic regression", "Classifier"]
    return svg(LearningCurveDisplay.from_comparison(found, models=models).chart, title="")


def reliability_naive_bayes() -> str:
    X, y = make_classification(4000, 10, n_informative=3, n_redundant=7, flip_y=0.1, random_state=0)
    model = sc.NaiveBayes(kinds=sc.families.Normal(tied="classes")).fit(X[:2000], y[:2000])
    return svg(ReliabilityDisplay.from_estimator(model, X[2000:], y[2000:]).chart)


def hidden_node() -> str:
    names = ["cause 1", "cause 2", "cause 3", "symptom 1", "symptom 2", "symptom 3"]
    table = {name: [(i // 3**j + j * i) % 3 for i in range(60)] for j, name in enumerate(names)}
    edges = [*((cause, "disease") for cause in names[:3]), *(("disease", symptom) for symptom in names[3:])]
    net = sc.BayesNet(edges, {"disease": 3}, n_init=1, max_iter=3, random_state=0).fit(table)
    return svg(NetworkDisplay.from_estimator(net).chart)


def vowels() -> str:
    word = ["V" if letter == "I" else "C" for letter in "MISSISSIPPI"]
    return from_report(sc.MarkovChain(order=1, prior=0).fit([word]), "Transition graph")


def svr_tube() -> str:
    x, y = np.arange(5.0), np.array([1, 1.2, 2, 3.8, 3])
    tube = SVR(kernel="linear", C=100, epsilon=0.5).fit(x[:, None], y)
    ends = np.array([-0.2, 4.2])
    middle, least = tube.predict(ends[:, None]), 0.88 + 0.66 * ends
    names = ["SVR, with its tube", "least squares"]
    edges = [Line(ends, middle + side, tone="c0", width=1.0, dashes="4 4") for side in (-0.5, 0.5)]
    marks = [*class_lines(names, ends, [middle, least]), *edges, Points(x, y, "ink", 3.5, 1.0)]
    title = "The regression lines of SVR and of least squares"
    return svg(Chart(title, marks, Axis("x"), Axis("y", (0.0, 4.6)), names, height=180.0))


PICTURES: dict[str, Callable[[], str]] = {
    draw.__name__.replace("_", "-"): draw
    for draw in (
        nomogram, classifier_explanation, classifier_boundary, mixture_profile, mixture_ellipses, kmeans_regions, beta,
        hypotheses, bandwidths, missing, network, states, tutorial_reliability, tutorial_influence,
        tutorial_explanation, tutorial_selection, tutorial_profile, tutorial_ellipses, tutorial_words,
        beta_shapes, dirichlet_shapes, simplex, wealth, hill, xor,
        copies, heights, lower_bound, kmeans_steps, kmeans_cost, covariance_ellipse, kernels, three_bandwidths,
        histogram_edges, learning_curve, reliability_naive_bayes, hidden_node, vowels, svr_tube,
    )
}  # fmt: skip


def main() -> None:
    for name in sys.argv[1:] or PICTURES:
        (FOLDER / f"{name}.svg").write_text(PICTURES[name](), encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main()
