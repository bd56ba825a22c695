"""Models asked about frames of Spark's: the rows with the answers beside them, those of one machine.

`make scale` runs these; they need pyspark and Java 17 or newer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import softcount as sc
from parted_rows import ROWS, columns
from softcount.errors import DataError

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed; make scale installs it")


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    found = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    """Rows with a number of their own, a hole, a level never met, and a number that is text."""
    found = pa.table(columns(3)).append_column("id", pa.array(range(ROWS)))
    found = found.set_column(2, "colour", pa.array(["violet", None, *found["colour"].to_pylist()[2:]]))
    return found.append_column("dose", pa.array([f"{row % 7}.5" if row % 5 else None for row in range(ROWS)]))


@pytest.fixture(scope="module")
def frame(session: Any, rows: pa.Table) -> Any:
    """Three partitions, of which one is empty."""
    found = session.createDataFrame(rows).repartitionByRange(3, "id")
    return found.where(f"id < {ROWS // 4} or id > {3 * ROWS // 4}")


@pytest.fixture(scope="module")
def bayes(rows: pa.Table) -> Any:
    return sc.NaiveBayes(kinds={"id": "ignore"}).fit(rows, "kind")


def by_id(frame: Any) -> pa.Table:
    return frame.toArrow().sort_by("id")


@pytest.mark.filterwarnings("ignore")
def test_answers_stand_beside_their_rows(frame: Any, bayes: Any) -> None:
    rows = by_id(frame)
    new = {
        "predict": ["predicted"], "predict_proba": ["p(a)", "p(b)", "p(c)"], "score_samples": ["log_density"],
        "anomaly_score": ["anomaly"],
    }  # fmt: skip
    for question, names in new.items():
        answer = getattr(bayes, question)(frame)
        assert answer.columns == [*frame.columns, *names]
        found, here = by_id(answer), np.asarray(getattr(bayes, question)(rows))
        assert found.select(frame.columns).equals(rows)
        told = np.stack([np.asarray(found[name]) for name in names], axis=1)
        assert np.array_equal(told, here.reshape(len(rows), -1)), question
    told = bayes.explain(frame)
    assert told.columns[len(frame.columns) :][2:4] == ["evidence((prior))", "evidence(x)"]
    assert np.array_equal(np.asarray(by_id(told)["evidence(x)"]), np.asarray(bayes.explain(rows)["x"]))


@pytest.mark.filterwarnings("ignore")
def test_filled_rows_clusters_and_figures_are_those_of_one_machine(frame: Any, bayes: Any) -> None:
    rows = by_id(frame)
    filled, here = by_id(bayes.impute(frame)), bayes.impute(rows)
    assert filled.column_names == here.column_names and filled["dose"].type == here["dose"].type == pa.string()
    assert filled["colour"].to_pylist() == here["colour"].to_pylist()
    assert filled["dose"].to_pylist() == here["dose"].to_pylist()
    numbers = frame.select("id", "y", "visits")
    centres = sc.KMeans(3, random_state=0).fit(rows.select(["y", "visits"]))
    assert by_id(centres.predict(numbers))["predicted"].to_pylist() == centres.predict(rows).tolist()
    assert bayes.score(frame, "kind") == bayes.score(rows, "kind")
    np.testing.assert_allclose(bayes.evaluate(frame, "kind").log_loss, bayes.evaluate(rows, "kind").log_loss, 1e-13)


def test_words_are_gathered_where_the_frame_is(session: Any) -> None:
    words = [f"word{row % 7} {'good' if row % 3 else 'bad'} film" for row in range(300)]
    rows = pa.table({"said": words, "kind": ["yes" if row % 3 else "no" for row in range(300)]})
    frame, kinds = session.createDataFrame(rows).repartition(2, "said"), {"said": "text"}
    here, there = (sc.NaiveBayes(kinds=kinds).fit(given, "kind") for given in (rows, frame))
    assert list(here.levels_["said"]) == list(there.levels_["said"])
    assert np.array_equal(here.predict_proba(rows), there.predict_proba(rows))


@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_is_refused_with_the_remedy(frame: Any, bayes: Any) -> None:
    with pytest.raises(DataError, match=r"column 'Predicted' already.*withColumnRenamed"):
        bayes.predict(frame.withColumnRenamed("dose", "Predicted"))
    with pytest.raises(DataError, match=r"Fetch them: X\.toPandas\(\)"):
        bayes.anomalies(frame)
    with pytest.raises(DataError, match="Name the column"):
        bayes.score(frame, ["a", "b"])
