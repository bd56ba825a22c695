"""Engines: what runs the passes of a fit, and answers for the rows of Dask and Spark DataFrames."""

from __future__ import annotations

import io
import os
import pickle
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from softcount.errors import DataError, SoftcountError, warn
from softcount.estimators.result_frames import arrow_table, as_arrow_type, as_type
from softcount.files.checkpoint_file import checkpointed, remove_checkpoint
from softcount.learn.settings import Plan
from softcount.run.local import Threads, one_blas_thread
from softcount.run.workers import WorkersEngine
from softcount.sources.frames import engine_holding, refuse_elsewhere
from softcount.sources.open_source import PartsSource
from softcount.sources.source import Source
from softcount.table import Table, open_table
from softcount.table.schema import labels


def runner_of(estimator: Any, table: Table) -> Threads | WorkersEngine:
    """What runs the passes of a fit: an engine where one was given or has the rows, else threads of this process."""
    engine = getattr(estimator, "engine", None)
    if engine is None and not isinstance(table.source, PartsSource):
        return Threads(estimator.n_jobs, path_of(getattr(estimator, "spill", None)))
    return engine_of(engine, table.source)


def engine_of(engine: Any, source: Source) -> WorkersEngine:
    """The engine that a client or session is of; where nothing was given, the one that has the rows."""
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
    """The name of the package that a thing's class is of."""
    return type(thing).__module__.split(".")[0]


def from_engine(X: Any, missing: tuple[str, ...]) -> Any:
    """A frame that an engine has, as a table; anything else as it came."""
    library = library_of(X)
    if library == "pyspark":
        from softcount.run.spark import spark_source

        return open_table(spark_source(X), missing=missing)
    if library not in ("dask", "dask_expr"):
        return X
    from softcount.run.dask import collection_source

    return open_table(collection_source(X), missing=missing)


def is_elsewhere(X: Any) -> bool:
    """Whether rows are a table that an engine has."""
    return isinstance(X, Table) and isinstance(X.source, PartsSource)


@contextmanager
def climbs_logged(estimator: Any, plan: Plan, keep: bool = False) -> Iterator[tuple[Plan, Callable[[bool], None]]]:
    """The plan with a checkpoint where one was asked for, and what to call at the end: with whether all is done.

    The file is taken away then, unless it is to be kept until the model is saved.
    """
    path = path_of(estimator.checkpoint)
    if path is None:
        yield plan, lambda done: None
        return
    with checkpointed(path) as log:
        yield replace(plan, log=log), lambda done: remove_checkpoint(path) if done and not keep else None


def path_of(path: Any) -> str | None:
    """The path of a file or folder as text, or None."""
    return None if path is None else os.fsdecode(path)


# Questions that every row answers by itself, which rows of an engine are asked where they are; and the others.

Method = TypeVar("Method", bound=Callable[..., Any])


def row_by_row(method: Method) -> Method:
    """A method of a model and rows whose answer for a row depends on no other row.

    Of a frame of Dask's or Spark's the answer is one of theirs, computed when it is asked for, where the rows are.
    """

    @wraps(method)
    def asked(self: Any, X: Any, *how: Any, **named: Any) -> Any:
        engine = engine_holding(X)
        if engine is None:
            return method(self, X, *how, **named)

        asking = Question.of(self, method.__name__, how, named)
        if engine == "Spark":
            return spark_answer(asking, X)

        return dask_answer(asking, X)

    asked.row_by_row = True  # type: ignore[attr-defined]
    return cast(Method, asked)


def needs_all_rows(method: Method) -> Method:
    """A method whose answer is of all rows together: those in the frame of an engine are to be brought first."""

    @wraps(method)
    def asked(self: Any, X: Any, *how: Any, **named: Any) -> Any:
        refuse_elsewhere(X)
        return method(self, X, *how, **named)

    return cast(Method, asked)


# Answers and labels of rows that an engine has, brought here beside each other; the rows stay where they are.


def answers_and_labels(answers: Any, X: Any, y: Any) -> tuple[np.ndarray, Any]:
    """What a model said of the rows of X, as an array, and their labels: a column of X by its name, or an array."""
    if isinstance(y, str) and hasattr(X, "columns") and y not in X.columns:
        raise DataError(f"there is no column {y!r} to compare with. The columns are: {', '.join(map(str, X.columns))}.")
    if engine_holding(X) == "Dask":
        import dask

        labels = X[y] if isinstance(y, str) else y
        found, labels = dask.compute(answers, labels)  # type: ignore[attr-defined,no-untyped-call]
        return np.asarray(found), labels if isinstance(labels, list) else np.asarray(labels)
    if not isinstance(y, str):
        raise DataError("rows of a Spark frame have no order that labels could be in. Name the column that holds them.")
    from softcount.run.spark import failing_in_a_line

    names = [y, *(name for name in answers.columns if name not in X.columns)]
    with failing_in_a_line():
        table = answers.select(*(f"`{name.replace('`', '``')}`" for name in names)).toArrow()
    cells = [np.asarray(table[name].to_pylist() if name == y else table[name]) for name in names]
    return cells[1] if len(cells) == 2 else np.stack(cells[1:], axis=1), cells[0]


# Answers for rows that an engine has: given where the rows are, a partition at a time, when they are asked for.

NAMED = {
    "predict": "predicted", "score_samples": "log_density", "anomaly_score": "anomaly", "cdf": "cdf",
}  # fmt: skip
"""What a column of answers is called: as the shell calls it, and queries that were exported."""
PER_CLASS = {"predict_proba": "p({})", "predict_log_proba": "log p({})"}
"""The same of answers with a column for each class."""
PLACES = ("row",)
"""Columns of an answer that number its rows, which those of an engine have no numbers for."""
ENGINE_CLASSES = ("distributed", "dask", "pyspark")


class Question(Struct, frozen=True):
    """A method of a model, and what else it was called with: small, and sent to whoever has rows."""

    model: bytes
    method: str
    how: tuple[Any, ...]
    named: dict[str, Any]

    @classmethod
    def of(cls, model: Any, method: str, how: Sequence[Any], named: Mapping[str, Any]) -> Question:
        """The question, unless its answer for a row depends on the others."""
        if any(isinstance(said, str) and said == "estimate" for said in (*how, *named.values())):
            raise DataError(
                'prior="estimate" learns from all rows at once, and an engine asks them part by part. '
                "Give the shares that estimate_prior finds in some of them."
            )
        return cls(_pickled(model), method, tuple(how), dict(named))

    @property
    def fills(self) -> bool:
        """Whether the answer is the rows themselves, with their holes filled."""
        return self.method == "impute"

    def asked(self, rows: Any) -> Any:
        """The answer of some rows."""
        with one_blas_thread():
            return getattr(_model(self.model, threading.get_ident()), self.method)(rows, *self.how, **self.named)

    def tried(self, rows: Any) -> Any:
        """The answer of a row made up, which is of no interest but for its form; columns that lack are told of."""
        with warnings.catch_warnings(record=True) as met:
            warnings.simplefilter("always")
            found = self.asked(rows)
        said = [part for warning in met for part in str(warning.message).rstrip(".").split("; ")]
        for part in dict.fromkeys(part for part in said if part.startswith("not in the table")):
            warn(f"{part}.")
        return found

    def names(self, width: int) -> list[str]:
        """What the columns of an answer are called that is an array."""
        model = _model(self.model, threading.get_ident())
        if self.method in PER_CLASS:
            called = labels(_classes(model, self.named.get("of", *self.how[:1]) if _has_nodes(model) else None))
            return [PER_CLASS[self.method].format(name) for name in called.values()]
        if hasattr(model, "get_feature_names_out") and self.method == "transform":
            return [str(name) for name in model.get_feature_names_out()]
        name = NAMED.get(self.method, self.method)
        return [name] if width == 1 else [f"{name}_{place}" for place in range(width)]

    def columns(self, answer: Any) -> dict[str, Any]:
        """The columns of an answer by name, whether it came as an array or as an Arrow table."""
        if not isinstance(answer, np.ndarray):
            return {name: answer[name] for name in answer.column_names if name not in PLACES}
        cells = answer[:, None] if answer.ndim == 1 else answer
        table = arrow_table(dict(zip(self.names(cells.shape[1]), cells.T, strict=True)))
        return {name: table[name] for name in table.column_names}


def _has_nodes(model: Any) -> bool:
    """Whether any node of the model can be asked for, not the classes alone."""
    return hasattr(type(model), "edges_") or hasattr(type(model), "edge_probabilities_")


def _classes(model: Any, of: Any) -> list[Any]:
    """What the columns of probabilities are of."""
    if hasattr(type(model), "models_"):
        return _classes(model.models_[0], of)
    if not _has_nodes(model):
        return list(model.fitted_.names)
    fitted = model._fitted
    return list(fitted.levels[fitted.target if of is None else of])


# -- models on their way


class _ModelPickler(pickle.Pickler):
    """Pickles a model without the client or session that it was fitted by."""

    def persistent_id(self, obj: Any) -> str | None:
        return "engine" if type(obj).__module__.partition(".")[0] in ENGINE_CLASSES else None


class _ModelUnpickler(pickle.Unpickler):
    def persistent_load(self, pid: Any) -> None:
        return None


def _pickled(model: Any) -> bytes:
    sink = io.BytesIO()
    _ModelPickler(sink).dump(model)
    return sink.getvalue()


@lru_cache(maxsize=16)
def _model(content: bytes, thread: int) -> Any:
    """The model, which works on one thread: the engine has others for other parts. Each of its threads has its own."""
    model = _ModelUnpickler(io.BytesIO(content)).load()
    for each in (model, *getattr(model, "models_", ())):
        if hasattr(each, "n_jobs"):
            each.n_jobs = 1
    return model


# Answers as collections of Dask's: the same partitions and the same index, computed when they are wanted.


def dask_answer(asking: Question, X: Any) -> Any:
    """A series where there is one answer for a row, else a frame; of an array, an array."""
    import dask

    if hasattr(X, "map_blocks"):
        if X.ndim != 2:
            raise DataError(f"Expected 2D array, got {X.ndim}D array instead. Reshape your data.")
        X = X.rechunk({1: -1})
        found = asking.tried(np.zeros((1, X.shape[1]), X.dtype))
        if not isinstance(found, np.ndarray):
            raise DataError(f"{asking.method} gives a frame: give one of Dask's, dask.dataframe.from_dask_array(X).")
        shape: dict[str, Any] = {"drop_axis": 1} if found.ndim == 1 else {"chunks": (X.chunks[0], (found.shape[1],))}
        return X.map_blocks(_block_answer, asking, found[:0], dtype=found.dtype, meta=found[:0], **shape)
    if not hasattr(X, "map_partitions") or not hasattr(X, "_meta"):
        raise DataError("of Dask's collections, frames, series and arrays are taken. Make a frame: to_dataframe()")
    work = PartAnswer(asking, _declared(asking, X._meta))
    one = dask.delayed(work, traverse=False)  # type: ignore[attr-defined]  # sent once to each worker, not with each task
    return X.map_partitions(_part_answer, one, meta=work.declared)


class PartAnswer(Struct, frozen=True):
    """A question, and the answer of no rows."""

    asking: Question
    declared: Any


def _part_answer(rows: Any, work: PartAnswer, partition_info: Any = None) -> Any:
    """What runs on a worker, for one partition."""
    asking, declared = work.asking, work.declared
    if not len(rows):
        return declared.set_axis(rows.index, axis=0)
    try:
        found = _as_pandas(asking, asking.asked(rows), rows.index)
        return _with_types(found, declared) if asking.fills else found
    except SoftcountError as error:
        where = "a partition" if not partition_info else f"partition {partition_info['number']}"
        raise DataError(f"{where}: {error}") from None


def _declared(asking: Question, empty: Any) -> Any:
    """The answer of no rows, found by asking for one that is made up."""
    row = _made_up(empty, asking.fills)
    found = _as_pandas(asking, asking.tried(row), row.index)
    return found.iloc[:0].set_axis(empty.index, axis=0)


def _made_up(empty: Any, holes: bool) -> Any:
    """One row of zeros where there are numbers, nothing elsewhere; with `holes` nothing wherever a cell can be missing.

    A hole in every column shows what types the fills want.
    """
    import pandas as pd  # type: ignore[import-untyped]

    frame = empty.to_frame() if empty.ndim == 1 else empty
    row = frame.reset_index(drop=True).reindex([0])
    for place, dtype in enumerate(frame.dtypes):
        whole = isinstance(dtype, np.dtype) and dtype.kind in "iub"
        if whole or (pd.api.types.is_numeric_dtype(dtype) and not holes):
            row.isetitem(place, pd.Series([0]).astype(dtype))
    return row.iloc[:, 0] if empty.ndim == 1 else row


def _as_pandas(asking: Question, answer: Any, index: Any) -> Any:
    import pandas as pd

    if not isinstance(answer, np.ndarray):
        return answer if asking.fills else answer.drop(columns=[*PLACES], errors="ignore")
    if answer.ndim == 1:
        return pd.Series(answer, index, name=asking.names(1)[0])
    return pd.DataFrame(answer, index, asking.names(answer.shape[1]))


def _with_types(found: Any, declared: Any) -> Any:
    """Filled rows with the types that all partitions have: one without a hole may have kept narrower ones."""
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


def _block_answer(rows: Any, asking: Question, declared: np.ndarray) -> np.ndarray:
    return np.asarray(asking.asked(rows)) if len(rows) else declared


# Answers as frames of Spark's: the rows that were asked, with the answers as further columns.

EXPLAINED = "evidence({})"
"""What an explanation's columns are called, which bear the names of columns that are there."""


def spark_answer(asking: Question, X: Any) -> Any:
    """The frame with columns appended; filled rows are the frame itself, with types that hold the fills."""
    from softcount.run.spark import failing_in_a_line

    if not hasattr(X, "mapInArrow"):
        raise DataError("of Spark's collections, DataFrames are taken. Make one of a pandas-on-Spark frame: to_spark()")
    with failing_in_a_line():
        cells = X.limit(0).toArrow().schema
    found = _answered(asking, _made_up_types(cells, asking.fills), asking.tried)
    types = {name: column.type for name, column in found.items()}
    fields = _filled_fields(X, cells, types) if asking.fills else [*X.schema.fields, *_new_fields(X, types)]

    from pyspark.sql.types import StructType

    return X.mapInArrow(_task(asking, types), StructType(fields))


def _task(asking: Question, types: dict[str, Any]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What runs in Spark's workers, for the batches of a partition."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            if not batch.num_rows:
                continue
            rows = pa.Table.from_batches([batch])
            try:
                found = _answered(asking, rows, asking.asked)
            except SoftcountError as error:
                raise DataError(str(error)) from None  # in a few lines of Spark's, not with all that led to it
            kept = {} if asking.fills else dict(zip(rows.column_names, rows.columns, strict=True))
            own = {name: as_arrow_type(column, types[name]) for name, column in found.items()}
            yield from pa.table(kept | own).combine_chunks().to_batches()

    return task


def _answered(asking: Question, rows: Any, ask: Callable[[Any], Any]) -> dict[str, Any]:
    """The columns of an answer by the names that they get."""
    found = asking.columns(ask(rows))
    return {EXPLAINED.format(name): found[name] for name in found} if asking.method == "explain" else found


def _made_up_types(schema: Any, holes: bool) -> Any:
    """One row of zeros where there are numbers and nothing elsewhere; with `holes` nothing at all.

    Nothing is written as such where cells are text, which shows that numbers among them are to be read as numbers.
    """

    def cell(kind: Any) -> Any:
        if holes and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            return pa.array([""], kind)
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        return pa.array([0], pa.int64()).cast(kind) if number and not holes else pa.nulls(1, kind)

    return pa.table([cell(field.type) for field in schema], names=schema.names)


def _new_fields(X: Any, types: dict[str, Any]) -> list[Any]:
    from pyspark.sql.types import StructField

    there = {name.lower(): name for name in X.columns}
    taken = [there[name.lower()] for name in types if name.lower() in there]
    if taken:
        raise DataError(
            f"the frame has a column {taken[0]!r} already, so the answer cannot be put beside it. "
            f"Rename it: X.withColumnRenamed({taken[0]!r}, ...), or drop it."
        )
    return [StructField(name, _spark_type(kind)) for name, kind in types.items()]


def _filled_fields(X: Any, cells: Any, types: dict[str, Any]) -> list[Any]:
    """The frame's own fields where their types hold the fills."""
    from pyspark.sql.types import StructField

    own = {field.name: field for field in X.schema.fields if cells.field(field.name).type == types.get(field.name)}
    return [own.get(name) or StructField(name, _spark_type(kind)) for name, kind in types.items()]


def _spark_type(kind: Any) -> Any:
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(kind)
