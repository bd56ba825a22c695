"""The pictures of the tutorials and the user guide, drawn by the library: `python scripts/docs_pictures.py [NAME...]`.

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
from sklearn.datasets import load_iris, load_wine, make_moons
from sklearn.model_selection import train_test_split

import softcount as sc
from softcount.demo import table_path
from softcount.pictures.chart import Axis, Chart, Line, Points, Regions, class_lines
from softcount.pictures.drawing import class_tone
from softcount.plot import (
    BoundaryDisplay,
    EllipseDisplay,
    ExplanationDisplay,
    InfluenceDisplay,
    MarkingWordsDisplay,
    NetworkDisplay,
    NomogramDisplay,
    ReliabilityDisplay,
    SelectionDisplay,
)
from softcount.priors import Beta
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
    return from_report(model, "What sets the classes apart")


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
    return from_report(sc.Mixture(random_state=0).fit(wines()), "What sets the classes apart")


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
    chart = MarkingWordsDisplay.from_estimator(model, n=3).chart
    return svg(chart, x=Axis("log-odds"), y=replace(chart.y, room=290.0), title="", width=560.0)


PICTURES: dict[str, Callable[[], str]] = {
    draw.__name__.replace("_", "-"): draw
    for draw in (
        nomogram, classifier_explanation, classifier_boundary, mixture_profile, mixture_ellipses, kmeans_regions, beta,
        hypotheses, bandwidths, missing, network, states, tutorial_reliability, tutorial_influence,
        tutorial_explanation, tutorial_selection, tutorial_profile, tutorial_ellipses, tutorial_words,
    )
}  # fmt: skip


def main() -> None:
    for name in sys.argv[1:] or PICTURES:
        (FOLDER / f"{name}.svg").write_text(PICTURES[name](), encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main()
