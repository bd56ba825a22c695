"""A number predicted in several ways: the figures by hand, the mixture against its own queries, targets with holes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import softcount as sc
from softcount.errors import DataError
from softcount.estimators import number_comparison
from softcount.estimators.mixture_regression import MixtureRegression
from softcount.report.comparison_page import number_document, number_page
from softcount.report.page import plain


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is learned at once."""
    every = number_comparison.forecasters
    monkeypatch.setattr(
        number_comparison,
        "forecasters",
        lambda *how: {name: way for name, way in every(*how).items() if "mixture" not in name},
    )


def rows(n: int = 100) -> tuple[dict[str, Any], np.ndarray]:
    rng = np.random.default_rng(0)
    x, z, w = rng.normal(size=n), rng.normal(size=n), rng.choice(["a", "b"], n)
    y = np.where(w == "a", 2 * x, -x) + 0.1 * z + 0.3 * rng.normal(size=n)
    return {"x": x, "z": z, "w": w.tolist()}, y


@pytest.mark.parametrize("numbers", [["x", "z"], []])
def test_the_mixture_says_what_its_queries_say(numbers: list[str]) -> None:
    columns, y = rows(60)
    columns["x"][::7] = np.nan
    table = pa.table({"x": pa.array(columns["x"], from_pandas=True), "z": columns["z"], "w": columns["w"]})
    table = table.select([*numbers, "w"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MixtureRegression("y", numbers, {}, 0).fit(table, y)
        found = model.answer(table)
    expected, low = found.expected, found.quantile(0.05)
    for row in (0, 1, 7, 20):
        given = {name: cell for name, cell in table.slice(row, 1).to_pylist()[0].items() if cell is not None}
        asked = model.model_.query("y", given)
        assert expected[row] == pytest.approx(asked.mean, abs=1e-9)
        assert low[row] == pytest.approx(asked.quantile(0.05), abs=1e-6)


def test_classes_have_lines_of_their_own_and_intervals_hold() -> None:
    found = {line["model"]: line for line in sc.compare(*rows(200), folds=2).table.to_pylist()}
    mixture, ridge = found["mixture regression"], found["ridge regression"]
    assert mixture["rmse"] < 0.5 * ridge["rmse"] and 0.8 < mixture["coverage"] < 0.98
    assert mixture["width"] < ridge["width"] and "classes" in mixture["settings"]


def test_figures_are_those_by_hand(few: None) -> None:
    columns, y = rows()
    X = np.column_stack([columns["x"], columns["z"]])
    found = {line["model"]: line for line in sc.compare(X, y).table.to_pylist()}["support vector regression"]
    errors, vectors = np.empty(len(y)), 0
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        scaled = StandardScaler().fit(X[train])
        centre, scale = y[train].mean(), y[train].std()
        model = SVR().fit(scaled.transform(X[train]), (y[train] - centre) / scale)
        errors[test] = y[test] - centre - scale * model.predict(scaled.transform(X[test]))
        vectors = len(model.support_)
    assert found["rmse"] == pytest.approx(np.sqrt((errors**2).mean()), rel=1e-9)
    assert found["mae"] == pytest.approx(np.abs(errors).mean(), rel=1e-9)
    assert found["settings"] == f"rbf, C 1, epsilon 0.1, {vectors} support vectors" and np.isnan(found["coverage"])


def test_rows_without_a_number_are_left_out_and_said(few: None) -> None:
    columns, y = rows(60)
    y[4] = np.nan
    found = sc.compare(columns, y)
    assert found.rows == 59 and "rows without a number to predict are left out: 1, row 5 the first." in found.notes
    told = plain(number_page(found, "price\x1b[31m"))
    assert "59 rows; 5 folds" in told and "\x1b" not in told and "90 % interval" in told
    assert number_document(found, "price")["models"][0]["tie"] is True


def test_what_cannot_be_predicted_is_refused(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    columns, y = rows(60)
    with pytest.raises(DataError, match="learning curves are of classes"):
        sc.compare(columns, y, curve=True)
    with pytest.raises(DataError, match="60 rows with a number, fewer than 61 folds"):
        sc.compare(columns, y, folds=61)
    with pytest.raises(DataError, match="the target of row 3 is infinite"):
        sc.compare(columns, [float("inf") if row == 2 else value for row, value in enumerate(y)])
    monkeypatch.setattr(number_comparison, "MOST_ROWS", 40)
    assert "40 of 60 rows are drawn to compare on." in sc.compare(columns, y).notes


def test_the_target_may_be_a_column_of_the_table(few: None) -> None:
    columns, y = rows(60)
    whole, apart = sc.compare({**columns, "y": y}, "y"), sc.compare(columns, y)
    assert whole.table["rmse"].to_pylist() == apart.table["rmse"].to_pylist() and whole.notes == apart.notes
