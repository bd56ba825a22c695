"""Rows scored by SQLite, DuckDB and onnxruntime, with naive Bayes and with an ensemble."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import duckdb
import numpy as np
import onnxruntime
import pyarrow as pa

import softcount as sc
from benchmarks.timing import Bound
from softcount.export.onnx_graph import as_onnx, feed_column
from softcount.export.sql_query import scoring_query

LEARNED, SCORED = 2_000, 100_000
KINDS = {"visits": "poisson"}


def people(rows: int, seed: int) -> tuple[pa.Table, np.ndarray]:
    """Two numbers, a count and a colour that tell three classes, with holes in all."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, rows)
    holes = rng.random((4, rows)) < 0.05
    colours = np.array(["red", "blue", "green", "grey"])[(group + rng.integers(0, 2, rows)) % 4]
    cells = [rng.normal(170.0 + 5 * group, 8.0), np.exp(rng.normal(7.0 + group, 0.5)), rng.poisson(1 + 2 * group)]
    arrays = [pa.array(cell, mask=hole) for cell, hole in zip([*cells, colours], holes, strict=True)]
    return pa.table(arrays, names=["height", "pay", "visits", "colour"]), np.array(["a", "b", "c"])[group]


def seconds(work: Callable[[], object], rounds: int) -> float:
    """The least time on the processor, of all threads."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def in_sqlite(plan: Any, table: pa.Table) -> Callable[[], object]:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE rows (height REAL, pay REAL, visits INTEGER, colour TEXT)")
    columns = [column.to_pylist() for column in table.columns]
    base.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", zip(*columns, strict=True))
    query = scoring_query(plan, "sqlite")

    def work() -> None:
        with closing(base.execute(query)) as found:
            for _ in found:
                pass

    return work


def in_duckdb(plan: Any, table: pa.Table) -> Callable[[], object]:
    base = duckdb.connect(":memory:", config={"threads": 1})
    base.register("given", table)
    base.execute("CREATE TABLE rows AS SELECT * FROM given")
    query = scoring_query(plan, "duckdb")
    return lambda: base.sql(query).to_arrow_table()


def by_onnxruntime(graph: bytes, plan: Any, table: pa.Table) -> Callable[[], object]:
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph, settings, providers=["CPUExecutionProvider"])
    fed = {column.name: feed_column(column, table[column.name].to_pylist()) for column in plan.columns}
    return lambda: session.run(None, fed)


def run(rounds: int) -> Iterator[Bound]:
    learned, scored = people(LEARNED, 0), people(SCORED, 1)[0]
    for title, model, most in (
        ("naive Bayes", sc.NaiveBayes(kinds=KINDS), 2.0),
        ("Classifier", sc.Classifier(kinds=KINDS, n_jobs=1), None),
    ):
        fitted = model.fit(*learned)
        plan, graph = fitted._export_plan(), as_onnx(fitted)[0].SerializeToString()
        ours = f"Softcount {seconds(lambda model=fitted: model.predict_proba(scored), rounds):.2f} s"
        makers = {"SQLite": in_sqlite, "DuckDB": in_duckdb, "onnxruntime": partial(by_onnxruntime, graph)}
        for where, make in makers.items():
            took = seconds(make(plan, scored), rounds)
            rate = f"{SCORED / took:,.0f} rows a second; {ours}"
            yield Bound(f"{title}, 100,000 rows in {where}, CPU", took, "s", most if where == "SQLite" else None, rate)
