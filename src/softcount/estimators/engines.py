"""Engines: they run the passes of a fit, and methods of an estimator on Dask and Spark DataFrames."""

from __future__ import annotations

import io
import pickle
import threading
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from softcount.errors import DataError, SoftcountError, warn
from softcount.estimators.result_frames import arrow_table, as_arrow_type, as_type
from softcount.run.local import one_blas_thread
from softcount.run.workers import WorkersEngine
from softcount.sources.frames import engine_holding
from softcount.sources.open_source import PartsSource
from softcount.table import Table, open_table
from softcount.table.schema import labels


def make_engine(engine: Any, source: Any) -> WorkersEngine:
    """The engine that was given (None: the one that holds the rows of the source)."""
    owner = source.owner if isinstance(source, PartsSource) else None
    engine = owner if engine is None else engine
    library = library_of(engine)
    if owner is not None and library != library_of(owner):
        raise DataError(
            f"the frame is one of {library_of(owner)}'s, which engine={engine!r} cannot read. Leave engine out."
        )
    if library == "pyspark":
        from softcount.run.spark import SparkEngine

        return SparkEngine(engine)
    if engine is None or library in ("distributed", "dask"):
        from softcount.run.dask import DaskEngine, client_of

        return DaskEngine(client_of(engine))
    raise DataError(f"engine must be None, a client of Dask's (distributed.Client) or a Spark session, not {engine!r}.")


def library_of(thing: Any) -> str:
    """The top-level package of an object's class."""
    return type(thing).__module__.split(".")[0]


def engine_table(X: Any, missing: tuple[str, ...]) -> Table:
    """A Dask or Spark DataFrame as a table."""
    if engine_holding(X) == "Spark":
        from softcount.run.spark import spark_source

        return open_table(spark_source(X), missing=missing)
    from softcount.run.dask import collection_source

    return open_table(collection_source(X), missing=missing)


# -- methods on Dask and Spark DataFrames: they run where the rows are, a partition at a time, when they are computed

COLUMN_NAMES = {
    "predict": "predicted", "score_samples": "log_density", "anomaly_score": "anomaly", "cdf": "cdf",
}  # fmt: skip
"""What a column of answers is called, as in the shell and in exported queries."""
CLASS_COLUMN_NAMES = {"predict_proba": "p({})", "predict_log_proba": "log p({})"}
"""Names of the columns of answers that have one column per class."""
EXPLAINED = "evidence({})"
"""What the columns of an explanation are called in Spark, next to the columns that they explain."""
ROW_NUMBERS = ["row"]
"""Columns of an answer that number its rows; the rows of an engine have no numbers."""
ENGINE_LIBRARIES = ("distributed", "dask", "pyspark")


def ask_elsewhere(model: Any, method: str, X: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The lazy answer of a method of a model for a Dask or Spark DataFrame, in the same library."""
    if any(isinstance(value, str) and value == "estimate" for value in (*args, *options.values())):
        raise DataError(
            'class_prior="estimate" needs all rows at once, but an engine predicts them in parts. '
            "Give the shares that estimate_class_prior finds in a sample of the rows."
        )
    question = Question(_ModelPickler.to_bytes(model), method, args, options)
    return (answer_on_spark if engine_holding(X) == "Spark" else answer_on_dask)(question, X)


def answers_and_labels(answers: Any, X: Any, y: Any) -> tuple[np.ndarray, Any]:
    """The answers for the rows of an engine, fetched as an array, and their labels: a column of X, or an array."""
    if isinstance(y, str) and hasattr(X, "columns") and y not in X.columns:
        raise DataError(f"there is no column {y!r} to compare with. The columns are: {', '.join(map(str, X.columns))}.")
    if engine_holding(X) == "Dask":
        import dask

        labels = X[y] if isinstance(y, str) else y
        found, labels = dask.compute(answers, labels)  # type: ignore[attr-defined,no-untyped-call]
        return np.asarray(found), labels if isinstance(labels, list) else np.asarray(labels)
    if not isinstance(y, str):
        raise DataError(
            "the rows of a Spark DataFrame have no fixed order, so labels cannot be matched with them. "
            "Name the column that holds the labels."
        )
    from softcount.run.spark import failing_in_a_line

    names = [y, *(name for name in answers.columns if name not in X.columns)]
    with failing_in_a_line():
        table = answers.select(*(f"`{name.replace('`', '``')}`" for name in names)).toArrow()
    cells = [np.asarray(table[name].to_pylist() if name == y else table[name]) for name in names]
    return cells[1] if len(cells) == 2 else np.stack(cells[1:], axis=1), cells[0]


class Question(Struct, frozen=True):
    """A method of a model and its arguments: small, and sent to the workers that hold rows."""

    model: bytes
    method: str
    args: tuple[Any, ...]
    options: dict[str, Any]

    @property
    def fills(self) -> bool:
        """Whether the answer is the rows themselves, with their missing cells filled."""
        return self.method == "impute"

    def ask(self, rows: Any) -> Any:
        """The answer for some rows."""
        with one_blas_thread():
            return getattr(_load_model(self.model, threading.get_ident()), self.method)(
                rows, *self.args, **self.options
            )

    def ask_example(self, row: Any) -> Any:
        """The answer for an invented row, which shows the form of all answers; missing columns are warned of."""
        with warnings.catch_warnings(record=True) as met:
            warnings.simplefilter("always")
            found = self.ask(row)
        parts = [part for warning in met for part in str(warning.message).rstrip(".").split("; ")]
        for part in dict.fromkeys(part for part in parts if part.startswith("not in the table")):
            warn(f"{part}.")
        return found

    def column_names(self, width: int) -> list[str]:
        """The names of the columns of an answer that is an array."""
        model = _load_model(self.model, threading.get_ident())
        if self.method in CLASS_COLUMN_NAMES:
            first = model.models_[0] if hasattr(model, "models_") else model
            if hasattr(type(first), "edges_"):  # a network: any node may be predicted
                of = self.options.get("of", *self.args[:1])
                classes = first._fitted.levels[first._fitted.target if of is None else of]
            else:
                classes = first.fitted_.names or range(width)  # components have no names
            return [CLASS_COLUMN_NAMES[self.method].format(name) for name in labels(list(classes)).values()]
        if hasattr(model, "get_feature_names_out") and self.method == "transform":
            return [str(name) for name in model.get_feature_names_out()]
        name = COLUMN_NAMES.get(self.method, self.method)
        return [name] if width == 1 else [f"{name}_{place}" for place in range(width)]


class _ModelPickler(pickle.Pickler):
    """Pickles a model without the client or session that it was fitted by."""

    def reducer_override(self, obj: Any) -> Any:
        return (type(None), ()) if library_of(obj) in ENGINE_LIBRARIES else NotImplemented

    @classmethod
    def to_bytes(cls, model: Any) -> bytes:
        sink = io.BytesIO()
        cls(sink).dump(model)
        return sink.getvalue()


@lru_cache(maxsize=16)
def _load_model(content: bytes, thread: int) -> Any:
    """The model of a thread of the engine; it works on that thread alone, as others have other parts."""
    model = pickle.loads(content)
    for each in (model, *getattr(model, "models_", ())):
        if hasattr(each, "n_jobs"):
            each.n_jobs = 1
    return model


# -- Dask: the same partitions and the same index


def answer_on_dask(question: Question, X: Any) -> Any:
    """A series if there is one answer for a row, else a frame; for an array, an array."""
    import dask

    if hasattr(X, "map_blocks"):
        if X.ndim != 2:
            raise DataError(f"Expected 2D array, got {X.ndim}D array instead. Reshape your data.")
        X = X.rechunk({1: -1})
        found = question.ask_example(np.zeros((1, X.shape[1]), X.dtype))
        if not isinstance(found, np.ndarray):
            raise DataError(f"{question.method} gives a frame: give one of Dask's, dask.dataframe.from_dask_array(X).")
        shape: dict[str, Any] = {"drop_axis": 1} if found.ndim == 1 else {"chunks": (X.chunks[0], (found.shape[1],))}
        return X.map_blocks(_answer_block, question, found[:0], dtype=found.dtype, meta=found[:0], **shape)
    if not hasattr(X, "map_partitions") or not hasattr(X, "_meta"):
        raise DataError(
            "of the Dask collections, DataFrames, Series and arrays are supported. Convert others: to_dataframe()"
        )
    row = _example_row(X._meta, question.fills)
    found = _as_pandas(question, question.ask_example(row), row.index)
    declared = found.iloc[:0].set_axis(X._meta.index, axis=0)
    once = dask.delayed((question, declared), traverse=False)  # type: ignore[attr-defined]  # sent once to each worker
    return X.map_partitions(_answer_partition, once, meta=declared)


def _answer_block(rows: Any, question: Question, declared: np.ndarray) -> np.ndarray:
    return np.asarray(question.ask(rows)) if len(rows) else declared


def _answer_partition(rows: Any, work: tuple[Question, Any], partition_info: Any = None) -> Any:
    question, declared = work
    if not len(rows):
        return declared.set_axis(rows.index, axis=0)
    try:
        found = _as_pandas(question, question.ask(rows), rows.index)
        return _with_types(found, declared) if question.fills else found
    except SoftcountError as error:
        where = "a partition" if not partition_info else f"partition {partition_info['number']}"
        raise DataError(f"{where}: {error}") from None


def _example_row(empty: Any, missing: bool) -> Any:
    """One row of zeros in columns of numbers, missing elsewhere; with `missing`, wherever a cell can be missing.

    A missing cell in every column shows the types that the fills need.
    """
    import pandas as pd

    frame = empty.to_frame() if empty.ndim == 1 else empty
    row = frame.reset_index(drop=True).reindex([0])
    for place, dtype in enumerate(frame.dtypes):
        whole = isinstance(dtype, np.dtype) and dtype.kind in "iub"
        if whole or (pd.api.types.is_numeric_dtype(dtype) and not missing):
            row.isetitem(place, pd.Series([0]).astype(dtype))
    return row.iloc[:, 0] if empty.ndim == 1 else row


def _as_pandas(question: Question, answer: Any, index: Any) -> Any:
    import pandas as pd

    if not isinstance(answer, np.ndarray):
        return answer if question.fills else answer.drop(columns=ROW_NUMBERS, errors="ignore")
    if answer.ndim == 1:
        return pd.Series(answer, index, name=question.column_names(1)[0])
    return pd.DataFrame(answer, index, question.column_names(answer.shape[1]))


def _with_types(found: Any, declared: Any) -> Any:
    """Filled rows with the types of all partitions: one without a missing cell may have kept narrower ones."""
    for place, dtype in enumerate(declared.dtypes):
        column = found.iloc[:, place]
        if column.dtype != dtype:
            found.isetitem(place, as_type(column, dtype))
            if found.iloc[:, place].isna().sum() > column.isna().sum():
                raise DataError(
                    f"column {found.columns[place]!r} is filled with what its type ({dtype}) cannot hold. "
                    f"Make it text: X.astype({{{found.columns[place]!r}: 'string'}})"
                )
    return found


# -- Spark: the rows, with the answers as further columns


def answer_on_spark(question: Question, X: Any) -> Any:
    """The frame with columns appended; filled rows are the frame itself, with types that hold the fills."""
    from softcount.run.spark import failing_in_a_line

    if not hasattr(X, "mapInArrow"):
        raise DataError("only Spark DataFrames are supported. Convert a pandas-on-Spark frame: to_spark()")
    with failing_in_a_line():
        cells = X.limit(0).toArrow().schema
    found = _named_columns(question, question.ask_example(_example_table(cells, question.fills)))
    types = {name: column.type for name, column in found.items()}

    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    fields = X.schema.fields
    if question.fills:
        # The frame's own fields, if their types hold the fills.
        kept = {field.name: field for field in fields if cells.field(field.name).type == types.get(field.name)}
        fields = [kept.get(name) or StructField(name, from_arrow_type(kind)) for name, kind in types.items()]
    else:
        there = {name.lower(): name for name in X.columns}
        taken = [there[name.lower()] for name in types if name.lower() in there]
        if taken:
            raise DataError(
                f"the frame has a column {taken[0]!r} already, so the result cannot be added under that name. "
                f"Rename it: X.withColumnRenamed({taken[0]!r}, ...), or drop it."
            )
        fields = [*fields, *(StructField(name, from_arrow_type(kind)) for name, kind in types.items())]

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            if not batch.num_rows:
                continue
            rows = pa.Table.from_batches([batch])
            try:
                found = _named_columns(question, question.ask(rows))
            except SoftcountError as error:
                raise DataError(str(error)) from None  # a few lines of Spark's, not the whole traceback
            own = {name: as_arrow_type(column, types[name]) for name, column in found.items()}
            before = {} if question.fills else dict(zip(rows.column_names, rows.columns, strict=True))
            yield from pa.table(before | own).combine_chunks().to_batches()

    return X.mapInArrow(task, StructType(fields))


def _named_columns(question: Question, answer: Any) -> dict[str, Any]:
    """The Arrow columns of an answer, an array or a table, by the names that they get."""
    if isinstance(answer, np.ndarray):
        cells = answer[:, None] if answer.ndim == 1 else answer
        answer = arrow_table(dict(zip(question.column_names(cells.shape[1]), cells.T, strict=True)))
    form = EXPLAINED if question.method == "explain" else "{}"
    return {form.format(name): answer[name] for name in answer.column_names if name not in ROW_NUMBERS}


def _example_table(schema: Any, missing: bool) -> Any:
    """One row of zeros in columns of numbers and missing elsewhere; with `missing`, everywhere.

    Missing text is written as such, which shows that numbers among text are to be read as numbers.
    """

    def cell(kind: Any) -> Any:
        if missing and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            return pa.array([""], kind)
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        return pa.array([0], pa.int64()).cast(kind) if number and not missing else pa.nulls(1, kind)

    return pa.table([cell(field.type) for field in schema], names=schema.names)
