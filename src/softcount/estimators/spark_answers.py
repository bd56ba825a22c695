"""Answers as frames of Spark's: the rows that were asked, with the answers as further columns.

A frame of Spark's has no index that an answer could be joined by, and no order, so answers come beside their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from softcount.errors import DataError, SoftcountError
from softcount.estimators.engine_answers import Question
from softcount.estimators.filling import as_arrow_type

EXPLAINED = "evidence({})"
"""What an explanation's columns are called, which bear the names of columns that are there."""


def spark_answer(asking: Question, X: Any) -> Any:
    """The frame with columns appended; filled rows are the frame itself, with types that hold the fills."""
    from softcount.run.spark import failing_in_a_line

    if not hasattr(X, "mapInArrow"):
        raise DataError("of Spark's collections, DataFrames are taken. Make one of a pandas-on-Spark frame: to_spark()")
    with failing_in_a_line():
        cells = X.limit(0).toArrow().schema
    found = _answered(asking, _made_up(cells, asking.fills), asking.tried)
    types = {name: column.type for name, column in found.items()}
    fields = _filled_fields(X, cells, types) if asking.fills else [*X.schema.fields, *_new_fields(X, types)]

    from pyspark.sql.types import StructType

    return X.mapInArrow(_task(asking, types), StructType(fields))


def _task(asking: Question, types: dict[str, Any]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What runs in Spark's workers, for the batches of a partition."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

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


def _made_up(schema: Any, holes: bool) -> Any:
    """One row of zeros where there are numbers and nothing elsewhere; with `holes` nothing at all.

    Nothing is written as such where cells are text, which shows that numbers among them are to be read as numbers.
    """
    import pyarrow as pa

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
