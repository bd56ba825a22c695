"""The report of a model: what it says is what the model says, and nothing in it runs or gives a row away."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

import softcount as sc
from html_checks import HOSTILE, checked
from softcount.classify.encode import EncodedColumns, EncodedRows
from softcount.classify.ensemble import Ensemble
from softcount.classify.members import Training
from softcount.classify.recipes import RECIPES
from softcount.cli import main
from softcount.demo import table_path
from softcount.estimators.result_frames import arrow_of as arrow
from softcount.fitted.ensemble_scorers import EnsembleScorer
from softcount.fitted.explain import make_nomogram
from softcount.pictures.chart import Bars
from softcount.report import report as reports
from softcount.report.page import Heading, Picture
from softcount.table import open_table


def run(*words: object, code: int = 0) -> Result:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    run("fit", table_path(), "--target", "type", "-o", place / "bikes.sc", "--model", "naive-bayes")
    run("fit", table_path(), "--target", "type", "-o", place / "decided.sc")
    return place


@pytest.fixture(scope="module")
def bikes(folder: Path) -> Any:
    return sc.load(folder / "bikes.sc")


def drawn_rows(model: Any, n: int) -> list[dict[str, Any]]:
    rows = arrow(model.sample(n, random_state=0)).to_pylist()
    rng = np.random.default_rng(1)
    return [
        {key: None if rng.random() < 0.15 else value for key, value in row.items() if key != "type"} for row in rows
    ]


def read_out(fitted: Any, row: dict[Any, Any], first: int, second: int) -> float:
    """The log-odds of two groups for a row, read from the nomogram and added up."""
    used = {spec.key for spec in fitted.schema.used}
    given = {key: [value] for key, value in row.items() if key in used and value is not None and value == value}
    found = make_nomogram(fitted, given)
    assert found is not None
    return float(found.start[first] - found.start[second] + sum(x.odds(first, second)[0] for x in found.columns))


BY_COLUMN = ("Gaussian naive Bayes", "weighted naive Bayes", "additive logistic model")


def classifier_of(*names: str) -> Any:
    """A classifier of the demo's holed table whose ensemble has these members, good or not."""
    model = sc.Classifier().fit(str(table_path()), "type")
    fitted = model.fitted_
    found = open_table(str(table_path()), schema=fitted.schema, target="type")
    chunks = list(found.chunks())
    labels = np.concatenate([chunk.labels for chunk in chunks])
    rows = EncodedRows.of(fitted.schema, chunks).take(np.flatnonzero(labels >= 0))
    labels = labels[labels >= 0]
    columns = EncodedColumns.of(fitted.schema)
    training = Training(rows, labels, np.ones(len(labels)), fitted.n_groups, columns.sizes, columns.measured)
    members = tuple(next(iter(RECIPES[x].fit(training, RECIPES[x].settings(training)[-1:]))) for x in names)
    ensemble = Ensemble(names, members, np.linspace(0.3, 0.9, len(names)), np.array([0.1, -0.2, 0.3]))
    model.fitted_ = replace(fitted, scorer=EnsembleScorer(ensemble))
    return model


NOMOGRAMS: dict[str, Callable[[], Any]] = {
    "naive Bayes": lambda: sc.NaiveBayes().fit(str(table_path()), "type"),
    "predictive": lambda: sc.NaiveBayes(estimate="predictive").fit(str(table_path()), "type"),
    "weights": lambda: sc.NaiveBayes(weights="columns").fit(str(table_path()), "type"),
    "an ensemble of sums over columns": lambda: classifier_of(*BY_COLUMN),
}


@pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
@pytest.mark.parametrize("kind", list(NOMOGRAMS))
def test_what_is_read_off_a_nomogram_is_the_probability(kind: str) -> None:
    model = NOMOGRAMS[kind]()
    rows = drawn_rows(model, 200)
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    logs = model.predict_log_proba(columns)
    worst = 0.0
    for row, own in zip(rows, logs, strict=True):
        for first, second in ((0, 1), (0, 2), (1, 2)):
            odds = read_out(model.fitted_, row, first, second)
            worst = max(worst, abs(odds - (own[first] - own[second])) / max(1.0, abs(odds)))
    assert worst < 1e-9


@pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
def test_all_classes_are_read_off_nomograms_against_one() -> None:
    model = sc.NaiveBayes().fit(str(table_path()), "type")
    for row in drawn_rows(model, 20):
        odds = [read_out(model.fitted_, row, place, 0) for place in range(3)]
        shares = np.exp(odds) / np.exp(odds).sum()
        np.testing.assert_allclose(shares, model.predict_proba({key: [x] for key, x in row.items()})[0], atol=1e-9)


@pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
def test_a_pool_has_a_nomogram_where_it_is_a_sum_over_columns_and_else_a_line_on_why_not() -> None:
    assert "Nomogram: " in classifier_of(*BY_COLUMN).report().html
    other = classifier_of("Gaussian naive Bayes", "pairwise interactions", "AODE")
    assert make_nomogram(other.fitted_) is None
    said = "No nomogram: the ensemble scores columns together (pairwise interactions, AODE), not one by one"
    assert said in other.report().html and "Nomogram: " not in other.report().html


def test_no_nomogram_where_columns_do_not_speak_alone() -> None:
    model = sc.NaiveBayes(kinds={("gears", "photos"): "categorical"}).fit(str(table_path()), "type")
    found = make_nomogram(model.fitted_)
    assert found is not None and found.left_out == (("gears", "photos"),)
    assert "because they are scored together: gears, photos" in str(model.report().html)


PARTS = [
    "How good it is", "Classes", "Columns in each class", "Rows", "Data quality", "How the fit went",
    "Where it comes from",
]  # fmt: skip


def test_the_report_has_its_parts_in_order(bikes: Any) -> None:
    html = bikes.report(str(table_path())).html
    found = re.findall(r'<h2 id="part-\d+">(.*?)</h2>', html)
    assert [part for part in found if part != "Drift"] == PARTS and "Drift" in found
    checked(html)
    right = bikes.fitted_.record.evaluation.accuracy
    first = html.split("<h2 id=")[0]
    assert f"<dt>Accuracy</dt><dd><b>{100 * right:.1f} %</b>" in first and "Columns that matter most" in first
    assert first.index("<svg") < first.index("Notes") and "Confusion matrix" in first
    assert html.count("<svg ") == html.count("<figure>") == html.count("<details>")


@pytest.mark.parametrize("model", ["bikes.sc", "decided.sc"])
def test_the_demo_fits_its_size(folder: Path, model: str) -> None:
    run("report", folder / model, table_path(), "-o", folder / "with.html")
    run("report", folder / model, "-o", folder / "alone.html")
    for name in ("with.html", "alone.html"):
        assert (folder / name).stat().st_size <= 150_000
        checked((folder / name).read_text())


def test_a_report_is_text_and_data_too(folder: Path, bikes: Any) -> None:
    run("report", folder / "bikes.sc", "-o", folder / "r.txt")
    run("report", folder / "bikes.sc", "-o", folder / "r.json")
    assert (folder / "r.txt").read_text() == str(bikes.report())
    assert '"picture": "Confusion matrix"' in (folder / "r.json").read_text()


def test_five_rows_are_explained_by_steps_that_add_up(bikes: Any) -> None:
    page = bikes.report(str(table_path())).page
    shown = [block for block in page.blocks if isinstance(block, Picture) and block.title.startswith("Row ")]
    assert len(shown) == 5
    table = sc.read(str(table_path()))
    logs = bikes.predict_log_proba(table)
    for block in shown:
        row = int(re.findall(r"Row (\d+)", block.title)[0]) - 1
        first, second = sorted(logs[row])[::-1][:2]
        assert abs(sum(float(cells[1]) for cells in block.table.rows) - (first - second)) < 1e-3


@pytest.mark.parametrize("start", range(0, 40, 10))
def test_hostile_names_and_cells_stay_text(start: int) -> None:
    names = HOSTILE[start : start + 10]
    rng = np.random.default_rng(0)
    table: dict[str, Any] = {name: rng.choice([*names[:3], "plain"], 60).tolist() for name in names[:4]}
    table |= {name: rng.normal(size=60).round(3).tolist() for name in names[4:7]}
    labels = rng.choice(names[7:], 60).tolist()
    model = sc.NaiveBayes().fit(table, labels)
    checked(model.report(table, labels).html)


def test_a_redacted_report_holds_no_cell_and_no_rare_level(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    names = [*rng.choice(["cat", "dog"], 296), *["secretlevel"] * 4]
    sizes = rng.normal(70, 9, 300).round(4)
    kinds = np.where(np.arange(300) % 3 == 0, "yes", "no")
    lines = [f"{name},{size},{kind}" for name, size, kind in zip(names, sizes, kinds, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["animal,size,kept", *lines, "dog,71.5,maybeonce"]))
    run("fit", tmp_path / "t.csv", "--target", "kept", "-o", tmp_path / "m.sc", "--kind", "size=normal")
    for more in ([], [tmp_path / "t.csv"]):
        run("report", tmp_path / "m.sc", *more, "--redact", "-o", tmp_path / "r.html")
        html = (tmp_path / "r.html").read_text()
        assert "secretlevel" not in html and "maybeonce" not in html
        assert not any(f"{size:g}" in html for size in sizes if len(f"{size:g}") > 5)
    run("report", tmp_path / "m.sc", "-o", tmp_path / "open.html")
    assert "secretlevel" in (tmp_path / "open.html").read_text()


def test_drift_is_told_from_chance(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def write(name: str, shift: float, colours: list[str]) -> Path:
        lines = [f"{rng.normal(shift):.4f},{rng.normal():.4f},{rng.choice(colours)},{'ab'[i % 2]}" for i in range(800)]
        (tmp_path / name).write_text("\n".join(["moved,still,colour,y", *lines]))
        return tmp_path / name

    run("fit", write("before.csv", 0.0, ["red", "blue"]), "--target", "y", "-o", tmp_path / "m.sc")
    model = sc.load(tmp_path / "m.sc")
    text = str(model.report(str(write("same.csv", 0.0, ["red", "blue"]))))
    assert "no column differs by more than chance" in text
    text = str(model.report(str(write("other.csv", 1.0, ["red", "blue", "green"]))))
    assert "2 columns of 3 differ by more than chance" in text


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["other.csv", "-o", "r.html"], 3, "none of the model's columns"),
        (["empty.csv", "-o", "r.html"], 3, "no rows"),
        (["-o", "nowhere/r.html"], 3, "there is no folder"),
        (["-o", "r.pdf"], 2, "ends in .html"),
        (["--missing", "x", "-o", "r.html"], 2, "about DATA"),
    ],
)
def test_bad_input_is_one_clear_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, said: str
) -> None:
    monkeypatch.chdir(folder)
    Path("other.csv").write_text("a,b\n1,2\n")
    Path("empty.csv").write_text(table_path().read_text().split("\n")[0] + "\n")
    done = run("report", "bikes.sc", *words, code=code)
    assert said in done.output and not Path("r.html").exists()


def test_what_makes_a_page_too_large_is_left_out_and_that_is_said(bikes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report = bikes.report()
    whole = len(report.html)
    monkeypatch.setattr(reports, "SIZE_LIMIT", whole - 1)
    assert "The numbers of the pictures are left out" in report.html and "<svg " in report.html
    monkeypatch.setattr(reports, "SIZE_LIMIT", 50_000)
    assert "Pictures are left out" in report.html and "<svg " not in report.html
    checked(report.html)


def test_scores_of_the_training_table_are_one_line_and_those_of_another_table_a_part(
    bikes: Any, tmp_path: Path
) -> None:
    learned = bikes.report(str(table_path())).page
    other = tmp_path / "other.csv"
    other.write_text("\n".join(table_path().read_text("utf-8").splitlines()[:120]), "utf-8")
    apart = bikes.report(str(other)).page
    for page, matrices in ((learned, 1), (apart, 2)):
        assert sum(isinstance(x, Picture) and x.title == "Confusion matrix" for x in page.blocks) == matrices
    assert any(isinstance(x, str) and x.startswith("On the training rows") for x in learned.blocks)
    assert any(isinstance(x, Heading) and x.text.startswith("On the rows of ") for x in apart.blocks)


def test_densities_stand_on_a_histogram_of_the_rows(bikes: Any) -> None:
    charts = {x.title: x.chart for x in bikes.report().page.blocks if isinstance(x, Picture)}
    price = charts["price"]
    [bars] = [mark for mark in price.marks if isinstance(mark, Bars)]
    assert 0.85 < float((np.asarray(bars.ends) * bars.thick).sum()) < 1.001
    low, high = price.ranges()[0]
    prices = pd.read_csv(table_path())["price"]
    assert prices.min() <= low < high <= prices.max()
    python = sc.NaiveBayes().fit(str(table_path()), "type").report(str(table_path()))
    assert "Grey bars: all rows." in python.html and "Grey bars" not in bikes.report(redact=True).html


def test_more_than_four_classes_are_divided_bars_and_missing_cells_go_up_to_all(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = {"kind": rng.choice(list("abc"), 200).tolist(), "size": [None if x < 0.3 else x for x in rng.random(200)]}
    report = sc.NaiveBayes().fit(table, [f"class {k % 6}" for k in range(200)]).report()
    charts = {x.title: x.chart for x in report.page.blocks if isinstance(x, Picture)}
    assert len(charts["kind"].y.labels) == 6 and charts["kind"].legend == ["a", "b", "c"]
    assert charts["Missing cells"].ranges()[0] == (0.0, 1.0)
