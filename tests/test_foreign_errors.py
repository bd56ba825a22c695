"""Whatever is given as a table, an error is ours: one sentence, and no TypeError, IndexError or Arrow's own."""

from __future__ import annotations

import datetime
import decimal
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import softcount as sc
from softcount.errors import SoftcountError

N = 12
LABELS = np.array(["a", "b"] * 6)
NUMBERS = np.random.default_rng(0).normal(size=(N, 2))
ROWS = pd.DataFrame({"x": np.linspace(0, 1, N), "c": list("uvw") * 4})


def beside(column: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": column, "b": range(N)})


TABLES: dict[str, Callable[[], Any]] = {
    "an empty frame": pd.DataFrame,
    "no rows": lambda: ROWS.head(0),
    "one row": lambda: ROWS.head(1),
    "no columns": lambda: pd.DataFrame(index=range(N)),
    "a column of holes": lambda: ROWS.assign(z=np.nan),
    "holes only": lambda: beside([None] * N)[["a"]],
    "integers beyond 64 bits": lambda: beside([10**30 + k for k in range(N)]),
    "unsigned": lambda: beside(np.arange(N, dtype=np.uint64) + np.uint64(2**63)),
    "mixed objects": lambda: beside([1, "x", None, 2.5, True, (1, 2)] * 2),
    "mappings": lambda: beside([{"k": 1}] * N),
    "lists": lambda: beside([[1, 2]] * N),
    "sets": lambda: beside([{1}] * N),
    "any objects": lambda: beside([object() for _ in range(N)]),
    "one name twice": lambda: pd.DataFrame(NUMBERS, columns=["a", "a"]),
    "names of two parts": lambda: pd.DataFrame(NUMBERS, columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])),
    "rows of two parts": lambda: ROWS.set_index(pd.MultiIndex.from_product([range(3), range(4)])),
    "names that are numbers": lambda: pd.DataFrame(NUMBERS),
    "names and numbers": lambda: pd.DataFrame(NUMBERS, columns=["a", 1]),
    "no name": lambda: pd.DataFrame(NUMBERS, columns=[None, "b"]),
    "infinite": lambda: beside([1, np.inf] * 6),
    "an array of NaN": lambda: np.full((N, 2), np.nan),
    "complex": lambda: NUMBERS * 1j,
    "truths": lambda: np.eye(N, 3, dtype=bool),
    "half precision": lambda: NUMBERS.astype(np.float16),
    "long doubles": lambda: NUMBERS.astype(np.longdouble),
    "as far as numbers go": lambda: np.array([[1e308], [-1e308]] * 6),
    "next to nothing": lambda: np.array([[1e-320], [2e-320]] * 6),
    "bytes": lambda: np.array([[b"a", b"b"]] * N),
    "words": lambda: np.array([["a", "b"]] * N),
    "days": lambda: np.array([["2020-01-01", "2021-01-01"]] * N, dtype="datetime64[D]"),
    "an array of objects": lambda: np.array([[1, "a"], [None, 2]] * 6, dtype=object),
    "a structured array": lambda: np.zeros(N, dtype=[("a", float), ("b", "U3")]),
    "a masked array": lambda: np.ma.masked_array(np.arange(2.0 * N).reshape(N, 2), mask=np.eye(N, 2)),
    "three axes": lambda: np.zeros((N, 2, 2)),
    "one axis": lambda: np.arange(float(N)),
    "no axis": lambda: np.array(1.0),
    "a number": lambda: 3,
    "nothing": lambda: None,
    "a file that is not there": lambda: "no such file.csv",
    "lists of cells": lambda: [[1, 2], [3, "x"]] * 6,
    "ragged lists": lambda: [[1, 2], [3]] * 6,
    "a list of mappings": lambda: [{"a": 1, "b": "x"}] * N,
    "a generator": lambda: (k for k in range(N)),
    "a set": lambda: {1, 2},
    "ragged columns": lambda: {"a": [1, 2], "b": [1]},
    "numbers for columns": lambda: {"a": 1},
    "an empty mapping": dict,
    "an empty list": list,
    "sparse": lambda: sp.csr_matrix(np.eye(N, 4)),
    "sparse pairs": lambda: sp.coo_matrix(np.eye(N, 4)),
    "sparse diagonals": lambda: sp.dia_matrix(np.eye(N, 4)),
    "sparse below zero": lambda: sp.csr_matrix(-np.eye(N, 4)),
    "sparse NaN": lambda: sp.csr_matrix(np.full((N, 2), np.nan)),
    "sparse without rows": lambda: sp.csr_matrix((0, 4)),
    "sparse zeros": lambda: sp.csr_matrix((N, 4)),
    "a sparse frame": lambda: pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(np.eye(N, 4))),
    "polars' empty frame": pl.DataFrame,
    "polars' lists": lambda: pl.DataFrame({"a": [[1, 2]] * N, "b": range(N)}),
    "polars' structs": lambda: pl.DataFrame({"a": [{"x": 1}] * N, "b": range(N)}),
    "polars' decimals": lambda: pl.DataFrame({"a": [decimal.Decimal("1.5"), decimal.Decimal(2)] * 6}),
    "polars' times": lambda: pl.DataFrame({"a": [datetime.time(k, 0) for k in range(N)], "b": range(N)}),
    "Arrow's nulls": lambda: pa.table({"a": pa.nulls(N), "b": range(N)}),
    "Arrow's bytes": lambda: pa.table({"a": [b"x"] * N, "b": range(N)}),
    "Arrow's maps": lambda: pa.table({"a": pa.array([[("k", 1)]] * N, pa.map_(pa.string(), pa.int64()))}),
    "Arrow's name twice": lambda: pa.table([pa.array(range(N))] * 2, names=["a", "a"]),
    "Arrow's long decimals": lambda: pa.table({"a": pa.array([decimal.Decimal(1)] * N, pa.decimal256(60, 2))}),
    "periods": lambda: beside(pd.period_range("2020-01", periods=N, freq="M")),
    "intervals": lambda: beside(pd.cut(np.arange(N), 3)),
    "truths with gaps": lambda: beside(pd.array([True, None] * 6, dtype="boolean")),
    "integers with gaps": lambda: beside(pd.array([1, None] * 6, dtype="Int64")),
    "categories without any": lambda: beside(pd.Categorical([None] * N, categories=["x"])),
    "half characters": lambda: beside(pd.Series(["\ud800x"] * N, dtype=object)),
    "NUL": lambda: beside(["a\0b", "c"] * 6),
    "far dates": lambda: beside([datetime.datetime(9999, 12, 31), datetime.datetime(1, 1, 1)] * 6),
    "long texts": lambda: beside(["x" * 100_000, "y"] * 6),
    "one value": lambda: beside([1] * N)[["a"]],
    "decimals beyond floats": lambda: beside([decimal.Decimal("NaN"), decimal.Decimal("1e400")] * 6),
}
MODELS = {
    "naive Bayes": sc.NaiveBayes(),
    "classifier": sc.Classifier(budget=0.0),
    "mixture": sc.Mixture(2, n_init=1, max_iter=5, random_state=0),
    "Gaussian mixture": sc.GaussianMixture(2, n_init=1, max_iter=5, random_state=0),
    "k-means": sc.KMeans(2, n_init=1, random_state=0),
    "network": sc.BayesNet("chow-liu"),
    "hidden Markov": sc.HiddenMarkov(2, n_init=1, max_iter=5, random_state=0),
    "Markov chain": sc.MarkovChain(),
    "kernels": sc.KernelDensity(),
    "histogram": sc.Histogram(),
    "words": sc.BagOfWords(),
}
OF_ROWS = ("predict", "predict_proba", "explain", "impute", "score_samples", "transform", "anomalies")
OF_MODELS = ("sample", "query", "classes", "influence")


def outcome(ask: Callable[..., Any], *given: Any) -> Any:
    """What comes back; None where one of our errors does, and that error where it is another."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ask(*given)
    except SoftcountError:
        return None
    except Exception as error:
        return error


def foreign(model: Any, name: str, questions: tuple[str, ...], *given: Any) -> list[str]:
    """The errors of others that questions end in."""
    asked = {question: getattr(model, question) for question in questions if hasattr(model, question)}
    if isinstance(model, sc.BayesNet):  # which is asked for a node
        asked = {question: ask for question, ask in asked.items() if not question.startswith("predict")}
    found = {question: outcome(ask, *given) for question, ask in asked.items()}
    return [f"{name}.{key}: {error!r}" for key, error in found.items() if isinstance(error, Exception)]


@pytest.mark.parametrize("table", TABLES)
def test_an_error_of_a_fit_or_of_what_follows_is_ours(table: str) -> None:
    wrong = []
    for name, settings in MODELS.items():
        model, rows = clone(settings), TABLES[table]()
        size = rows.shape[0] if getattr(rows, "shape", ()) else N
        labels = [LABELS[:size]] if name in ("naive Bayes", "classifier") else []
        fitted = outcome(model.fit, rows, *labels)
        if isinstance(fitted, Exception):
            wrong.append(f"{name}.fit: {fitted!r}")
        elif fitted is not None:
            wrong += foreign(model, name, OF_ROWS, TABLES[table]()) + foreign(model, name, OF_MODELS)
    assert not wrong


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    """Models of plain tables: of a frame, and of an array where words are not taken."""
    found = {}
    for kind, rows in (("frame", ROWS), ("array", NUMBERS)):
        for name, settings in MODELS.items():
            labels = [LABELS] if name in ("naive Bayes", "classifier") else []
            model = outcome(clone(settings).fit, rows, *labels)
            found |= {} if model is None else {f"{name} of {kind}": model}
    return found


@pytest.mark.parametrize("table", TABLES)
def test_an_error_of_rows_unlike_those_learned_from_is_ours(table: str, fitted: dict[str, Any]) -> None:
    assert not [line for name, model in fitted.items() for line in foreign(model, name, OF_ROWS, TABLES[table]())]
