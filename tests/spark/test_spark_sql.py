"""Scoring queries run by Spark SQL, against the library.

`make scale` runs these; they need pyspark and Java 17 or newer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
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


def test_a_date_is_cast_in_a_view_or_refused(session: Any) -> None:
    days = FORMS["typed days"]
    model = sc.NaiveBayes().fit(pa.table({"day": days}), ["a", "b"] * 20)
    session.createDataFrame(list(zip(range(40), days, strict=True)), "row long, day date").createOrReplaceTempView(
        "days"
    )
    session.sql("SELECT row, unix_date(day) * 86400 AS day FROM days").createOrReplaceTempView("numbers")
    found = sorted(tuple(row) for row in session.sql(query(model, "spark", "numbers")).collect())
    agrees(found, model, {"day": days})
    session.sql("SELECT row, CAST(day AS STRING) AS day FROM days").createOrReplaceTempView("texts")
    for table in ("days", "texts"):
        with pytest.raises(Exception, match=r"column 'day' must be seconds since 1970|DATATYPE_MISMATCH"):
            session.sql(query(model, "spark", table)).collect()


def test_words_of_documents_are_found_and_summed(session: Any) -> None:
    documents = [
        "The cat, the MAT_1 x",
        "dog & DOG: caf\u00e9s",
        "\u00c4rger \u00c9COLE",
        "\u0414\u043e\u043c",
        "",
        None,
    ] * 4
    for kind in (sc.families.Text(), sc.families.Text("bernoulli")):
        model = sc.NaiveBayes(kinds={"t": kind}).fit(pa.table({"t": documents}), ["a", "b", "a", "b", "a", "b"] * 4)
        agrees(run_spark(session, numbered({"t": documents}), model), model, {"t": documents})


def test_tables_and_lines_of_a_classifier_are_scored(session: Any, members: Any, asked: Cells) -> None:
    model = pooled(members, ["Gaussian naive Bayes", "additive logistic model"])
    agrees(run_spark(session, asked, model), model, asked)
