"""Scoring queries run by Spark SQL, against the library.

`make scale` runs these; they need pyspark and Java 17 or newer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import UTC
from typing import Any

import pyarrow as pa
import pytest

import softcount as sc
from export.test_pools import asked, members, pooled
from export.test_sql import Answers, Cells, agrees, hostile, numbered, people, query
from written_forms import FORMS

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed; make scale installs it")
__all__ = ["asked", "hostile", "members", "people"]


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "1").config("spark.ui.showConsoleProgress", "false")
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()


def run_spark(session: Any, cells: Cells, model: Any) -> Answers:
    from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructField, StructType

    types = {float: DoubleType(), int: LongType(), str: StringType(), bool: BooleanType()}
    kinds = {name: next((type(x) for x in column if x is not None), str) for name, column in cells.items()}
    schema = StructType([StructField(name, types[kind]) for name, kind in kinds.items()])
    session.createDataFrame(list(zip(*cells.values(), strict=True)), schema).createOrReplaceTempView("rows")
    return sorted(tuple(row) for row in session.sql(query(model, "spark", "rows")).collect())


def test_spark_says_what_the_library_says(session: Any, people: tuple[Any, Cells]) -> None:
    model, cells = people
    agrees(run_spark(session, cells, model), model, cells)


def test_hostile_names_are_inert(session: Any, hostile: tuple[Any, Cells]) -> None:
    model, cells = hostile
    agrees(run_spark(session, cells, model), model, cells)


def test_dates_times_and_units_are_read(session: Any) -> None:
    names = ["iso", "half days", "zones", "long months", "ISO durations", "dollars"]
    cells = {name: FORMS[name] for name in names}
    model = sc.NaiveBayes(kinds=dict.fromkeys(names, "normal")).fit(pa.table(cells), ["a", "b"] * 20)
    agrees(run_spark(session, numbered(cells), model), model, cells)
    typed = {name: FORMS[name] for name in ("typed moments", "typed days")}
    model = sc.NaiveBayes().fit(pa.table(typed), ["a", "b"] * 20)
    session.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    moments = [moment.replace(tzinfo=UTC) for moment in typed["typed moments"]]
    rows = list(zip(range(40), moments, typed["typed days"], strict=True))
    frame = session.createDataFrame(rows, "row long, `typed moments` timestamp, `typed days` date")
    frame.createOrReplaceTempView("rows")
    agrees(sorted(tuple(row) for row in session.sql(query(model, "spark", "rows")).collect()), model, typed)


def test_words_of_documents_are_found_and_summed(session: Any) -> None:
    documents = [
        "The cat, the MAT_1 x",
        "dog & DOG: caf\u00e9s",
        "\u00c4rger \u00c9COLE",
        "\u0414\u043e\u043c",
        "",
        None,
    ] * 4
    for kind in (sc.Text(), sc.Text("bernoulli")):
        model = sc.NaiveBayes(kinds={"t": kind}).fit(pa.table({"t": documents}), ["a", "b", "a", "b", "a", "b"] * 4)
        agrees(run_spark(session, numbered({"t": documents}), model), model, {"t": documents})


def test_tables_and_lines_of_a_classifier_are_scored(session: Any, members: Any, asked: Cells) -> None:
    model = pooled(members, ["naive Bayes", "tables and lines"])
    agrees(run_spark(session, asked, model), model, asked)
