"""Everything that a classifier may be made of, in databases and as a graph, against the library."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace
from sklearn.datasets import load_iris

import softcount as sc
from export.test_onnx import run as run_onnx
from export.test_sql import CLOSE, Cells, agrees, numbered, run_duckdb, run_sqlite
from softcount.classify.encode import EncodedColumns
from softcount.classify.members import Training
from softcount.classify.recipes import RECIPES
from softcount.evaluate.folds import draw_known_rows
from softcount.export.onnx_graph import as_onnx
from softcount.export.sql_query import as_sql
from softcount.fitted.ensemble_scorers import EnsembleScorer
from softcount.run.local import Threads


def mixed(n: int = 240) -> tuple[Cells, np.ndarray]:
    """Numbers of either sign and of few values, levels as texts, numbers and truths; missing cells in all."""
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 3, n)
    numbers = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 3)) + groups[:, None] * [1.0, 0.5, 0.0]
    cells: Cells = {
        "a": numbers[:, 0].tolist(),
        "b": numbers[:, 1].tolist(),
        "c": (-np.exp(numbers[:, 2])).tolist(),
        "pay": np.exp(rng.normal(7 + groups, 0.5)).tolist(),
        "age": (30 + 5 * groups + rng.integers(0, 30, n)).astype(float).tolist(),
        "rooms": ((groups + rng.integers(0, 4, n)) % 5).tolist(),
        "it's": np.array(["red", "blue", "n'one", "4"])[(groups + rng.integers(0, 3, n)) % 4].tolist(),
        "own": (rng.random(n) < 0.3 + 0.2 * groups).tolist(),
    }
    for column in cells.values():
        for hole in rng.integers(0, n, 25):
            column[hole] = None
    return cells, np.array(["x", "y", "z"])[groups]


@pytest.fixture(scope="module")
def asked() -> Cells:
    """Rows as they are, with levels never seen, numbers far out, edges of intervals, and a row of nothing."""
    cells = {name: list(column) for name, column in mixed()[0].items()}
    cells["it's"][0], cells["rooms"][1], cells["a"][2], cells["pay"][3] = "new", 17, 1e6, 1e-9
    cells["b"][5], cells["c"][6] = -1e200, 1e200
    for column in cells.values():
        column[4] = None
    return numbered(cells)


@pytest.fixture(scope="module")
def members() -> tuple[Any, dict[str, Any]]:
    """A fitted classifier, and a member of every recipe learned from the same rows."""
    cells, labels = mixed()
    model = sc.Classifier(n_jobs=1).fit(pa.table(cells), labels)
    fitted = model.fitted_
    with Threads(1) as threads:
        codes = np.searchsorted(["x", "y", "z"], labels).astype(np.int32)
        known = draw_known_rows(fitted, fitted.table(pa.table(cells), labels=codes), threads, ["x", "y", "z"])
    columns = EncodedColumns.of(fitted.schema)
    training = Training(known.rows, known.labels, known.weights, 3, columns.sizes, columns.measured)
    made = {name: RECIPES[name].fit(training, RECIPES[name].settings(training)[:1]) for name in RECIPES}
    return model, {name: next(iter(found)) for name, found in made.items()}


def pooled(members: tuple[Any, dict[str, Any]], names: list[str]) -> Any:
    model, found = members
    weights = np.linspace(0.3, 0.6, len(names))
    ensemble = replace(
        model.ensemble_, names=tuple(names), members=tuple(found[name] for name in names), weights=weights
    )
    model.fitted_ = replace(model.fitted_, scorer=EnsembleScorer(replace(ensemble, bias=np.array([0.1, 0.0, -0.2]))))
    return model


@pytest.mark.parametrize("names", [*([name] for name in RECIPES), list(RECIPES)], ids=", ".join)
def test_every_member_of_a_pool_is_exported_and_agrees(members: Any, asked: Cells, names: list[str]) -> None:
    model = pooled(members, names)
    agrees(run_sqlite(asked, model), model, asked)
    agrees(run_duckdb(asked, model), model, asked)
    told, proba = run_onnx(model, asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sc.DataWarning)
        table = pa.table({name: column for name, column in asked.items() if name != "row"})
        assert np.abs(proba - model.predict_proba(table)).max() <= CLOSE
        assert told.tolist() == model.predict(table).tolist()


@pytest.mark.parametrize("power", [False, True], ids=["lengths", "exponentials of lengths"])
def test_discriminant_analysis_of_four_columns_fits_the_parser_of_sqlite(power: bool) -> None:
    """Its 16 patterns of missing values are written out; logarithms make each formula deeper."""
    X, y = load_iris(return_X_y=True)
    columns = (np.exp(3 * X) if power else X).T
    cells: Cells = {name: column.tolist() for name, column in zip("abcd", columns, strict=True)}
    model = sc.Classifier(n_jobs=1).fit(pa.table(cells), y)
    assert "discriminant analysis" in model.ensemble_.names
    for place, column in enumerate(cells.values()):
        column[:] = [None if row >> place & 1 and row < 32 else x for row, x in enumerate(column)]
    asked = numbered(cells)
    agrees(run_sqlite(asked, model), model, asked)
    assert as_onnx(model)[1].difference <= CLOSE


def test_words_among_numbers_leave_a_row_without_a_class(members: Any, asked: Cells) -> None:
    model = pooled(members, ["additive logistic model"])
    odd = asked | {"a": ["tall", "2024-01-31", "1e", *(str(x) for x in asked["a"][3:] if x is not None)]}
    odd = {name: column[:4] for name, column in odd.items()}
    assert [row[1] is None for row in run_sqlite(odd, model)] == [True, True, True, False]


@pytest.mark.parametrize("how", [{}, {"parents": "information"}], ids=str)
def test_averaged_stars_are_exported(how: dict[str, str], asked: Cells) -> None:
    cells, labels = mixed()
    model = sc.AODE(**how).fit(pa.table(cells), labels)
    agrees(run_sqlite(asked, model), model, asked)
    for check in (as_sql(model, "duckdb", "rows", ())[1], as_onnx(model)[1]):
        assert check.rows == 1_000 and check.difference <= CLOSE and check.otherwise == 0


def test_a_query_that_no_database_would_plan_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    cells, labels = mixed()
    model = sc.AODE().fit(pa.table(cells), labels)
    monkeypatch.setattr("softcount.export.sql_query.MOST_TABLES", 20)
    with pytest.raises(sc.DataError, match=r"28 tables of [\d,]+ numbers.*Export it as ONNX"):
        model.to_sql()


def test_a_text_that_only_counts_as_there_is_exported() -> None:
    """No member reads its words, but rows with few cells are scored by the share of the columns that they hold."""
    cells, labels = mixed()
    notes = np.random.default_rng(5).choice(["win", "money", "now", "noon", "you"], (len(labels), 6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sc.Classifier(kinds={"note": "text"}).fit({**cells, "note": list(map(" ".join, notes))}, labels)
    pool = model.ensemble_
    kept = [place for place, member in enumerate(pool.members) if not member.reads_texts]
    names, members = (tuple(part[place] for place in kept) for part in (pool.names, pool.members))
    pool = replace(pool, names=names, members=members, weights=pool.weights[kept])
    model.fitted_ = replace(model.fitted_, scorer=EnsembleScorer(pool))
    assert pool.sparse is not None and pool.sparse.presence[-1].any()
    for dialect in ("duckdb", "sqlite"):
        check = as_sql(model, dialect, "rows", ())[1]
        assert check.difference <= CLOSE and check.otherwise == 0
    with pytest.raises(sc.DataError, match="a graph cannot find the words"):
        as_onnx(model)
