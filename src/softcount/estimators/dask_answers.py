"""Answers as collections of Dask's: the same partitions and the same index, computed when they are wanted."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from softcount.errors import DataError, SoftcountError
from softcount.estimators.engine_answers import PLACES, Question
from softcount.estimators.filling import as_type


def dask_answer(asking: Question, X: Any) -> Any:
    """A series where there is one answer for a row, else a frame; of an array, an array."""
    import dask

    if hasattr(X, "map_blocks"):
        return _array_answer(asking, X)
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


def _array_answer(asking: Question, X: Any) -> Any:
    """An array with the same blocks of rows."""
    if X.ndim != 2:
        raise DataError(f"Expected 2D array, got {X.ndim}D array instead. Reshape your data.")
    X = X.rechunk({1: -1})
    found = asking.tried(np.zeros((1, X.shape[1]), X.dtype))
    if not isinstance(found, np.ndarray):
        raise DataError(f"{asking.method} gives a frame: give one of Dask's, dask.dataframe.from_dask_array(X).")
    shape: dict[str, Any] = {"drop_axis": 1} if found.ndim == 1 else {"chunks": (X.chunks[0], (found.shape[1],))}
    return X.map_blocks(_block_answer, asking, found[:0], dtype=found.dtype, meta=found[:0], **shape)


def _block_answer(rows: Any, asking: Question, declared: np.ndarray) -> np.ndarray:
    return np.asarray(asking.asked(rows)) if len(rows) else declared
