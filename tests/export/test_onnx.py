"""ONNX graphs: every family's, run by onnxruntime, against the library."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pyarrow as pa
import pytest

import softcount as sc
from contract.examples import EXAMPLES, Example
from export.test_sql import CLOSE, HOSTILE, fitted, iris, is_refused
from softcount.export.onnx_graph import as_onnx, feed_column


def run(model: Any, cells: dict[str, Any]) -> list[Any]:
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"])
    fed = {column.name: feed_column(column, cells[column.name]) for column in model._export_plan().columns}
    return list(session.run(None, fed))


@pytest.mark.parametrize("estimate", ["mean", "predictive"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_every_family_is_a_graph_that_agrees_or_is_refused_by_name(example: Example, estimate: str) -> None:
    model = fitted(example, estimate)
    if is_refused(example, estimate) or example.family.name == "text":
        with pytest.raises(sc.DataError, match="cannot be exported"):
            model.to_onnx()
        return
    check = as_onnx(model)[1]
    assert check.rows == 1_000 and check.difference <= CLOSE and check.otherwise == 0


def difference(model: Any) -> float:
    check = as_onnx(model)[1]
    assert check.otherwise == 0
    return check.difference


def test_all_models_that_are_sums_are_graphs() -> None:
    X, y = iris()
    for calibration in ("temperature", "isotonic"):
        assert difference(sc.NaiveBayes(calibration=calibration).fit(X[:, :2], y)) <= CLOSE
        assert difference(sc.NaiveBayes(calibration=calibration).fit(X[y < 2, :2], y[y < 2])) <= CLOSE
    assert difference(sc.NaiveBayes(weights="columns").fit(X, y)) <= CLOSE
    assert difference(sc.Classifier().fit(X, y)) <= CLOSE
    assert difference(sc.GaussianMixture(3, random_state=0).fit(X)) <= CLOSE
    assert difference(sc.Mixture(3, random_state=0).fit(X)) <= CLOSE
    assert np.isnan(difference(sc.KMeans(3, random_state=0).fit(X)))


def test_rows_with_holes_in_a_block_of_any_size_are_scored() -> None:
    """Whole rows by one product, others one by one: also where none is whole, all are, or there is none."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 40)) @ rng.normal(size=(40, 40))
    X[::3] += 1.0
    for estimate in ("mean", "predictive"):
        model = sc.NaiveBayes(kinds={tuple(range(40)): "multinormal"}, estimate=estimate).fit(X, ["a", "b", "c"] * 40)
        check = as_onnx(model)[1]
        assert check.rows == 1_000 and check.difference <= CLOSE and check.otherwise == 0 and not check.notes
    holes = np.where(rng.random((20, 40)) < 0.3, np.nan, X[:20])
    holes[3] = np.nan
    for asked in (X[:20], holes, X[:0]):
        _, proba = run(model, {str(j): list(asked[:, j]) for j in range(40)})
        assert proba.shape == (len(asked), 3)
        assert not len(asked) or np.abs(proba - model.predict_proba(asked)).max() <= CLOSE


def test_double_precision_holds_a_column_far_from_zero() -> None:
    rng = np.random.default_rng(0)
    X = 1e8 + np.concatenate([rng.normal(size=50), rng.normal(size=50) + 2])
    model = sc.NaiveBayes().fit(pa.table({"x": X}), np.repeat(["a", "b"], 50))
    told, proba = run(model, {"x": X})
    assert np.abs(proba - model.predict_proba(pa.table({"x": X}))).max() <= CLOSE and (told[:50] == "a").mean() > 0.7


def test_missing_unseen_and_outside_cells_are_taken_as_the_model_takes_them() -> None:
    cells = {
        "colour": ["red", "blue"] * 10,
        "rooms": [1, 2, 3, 4] * 5,
        "visits": list(range(20)),
        "on": [True, False] * 10,
    }
    kinds = {"rooms": "categorical", "visits": "poisson"}
    model = sc.NaiveBayes(kinds=kinds).fit(pa.table(cells), [5, 7] * 10)
    asked = {"colour": ["green", None, "n/a"], "rooms": [9, None, 2], "visits": [None, 3, 4], "on": [None, True, False]}
    told, proba = run(model, asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sc.DataWarning)
        assert np.abs(proba - model.predict_proba(pa.table(asked))).max() <= CLOSE
        assert told.tolist() == model.predict(pa.table(asked)).tolist()
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    fed = {"colour": [["red"]] * 2, "rooms": [["1"]] * 2, "on": [["True"]] * 2}
    fed = {name: np.array(column, dtype=object) for name, column in fed.items()}
    first, second = session.run(["probabilities"], fed | {"visits": np.array([[-1.0], [np.nan]])})[0]
    assert (first == second).all()


def test_hostile_names_are_inert() -> None:
    rng = np.random.default_rng(0)
    names = [*HOSTILE, "predicted", "probabilities", "softcount_3"]
    cells = {name: rng.normal(size=30) for name in names}
    model = sc.NaiveBayes().fit(pa.table(cells), np.array(["it's", "b\n", "c"] * 10))
    told, proba = run(model, cells)
    assert np.abs(proba - model.predict_proba(pa.table(cells))).max() <= CLOSE
    assert told.tolist() == model.predict(pa.table(cells)).tolist()
    assert [output.name for output in model.to_onnx().graph.output] == ["(predicted)", "(probabilities)"]


def test_a_row_that_no_class_can_have_made_has_none() -> None:
    table = pa.table({"a": ["x", "x", "y", "y"], "b": ["u", "u", "v", "v"]})
    model = sc.NaiveBayes(estimate="ml", kinds={"a": "categorical", "b": "categorical"}).fit(table, [0, 0, 1, 1])
    told, proba = run(model, {"a": ["x", "x"], "b": ["u", "v"]})
    assert told.tolist() == [0, -1] and proba[0].tolist() == [1.0, 0.0] and np.isnan(proba[1]).all()


def test_the_classes_are_in_the_file(tmp_path: Path) -> None:
    X, y = iris()
    graph = sc.NaiveBayes().fit(X, np.array(["a", "b", "c"])[y]).to_onnx()
    assert json.loads({prop.key: prop.value for prop in graph.metadata_props}["classes"]) == ["a", "b", "c"]
