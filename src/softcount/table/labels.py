"""Class labels as codes, and checks of row weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcount.core import remedies
from softcount.core.lazy import pa
from softcount.errors import DataError, warn
from softcount.sources import wording
from softcount.sources.frames import arrow_column, filled, flat, is_frame, is_missing, numpy_of
from softcount.table.cell_values import MissingWords, distinct
from softcount.table.chunk import UNKNOWN
from softcount.table.levels import check_weight_values, in_order, order_codes

WINDOW = 1 << 16
"""Widest range of integer labels that are looked up in a table."""

NO_WORDS = MissingWords(frozenset())

NUMBERED_CLASSES = 20
"""Distinct integers up to which a target holds classes; with more it is a numeric target.

Grades, ratings and digits stay classes. The months of a contract (73 values) and the ages of a survey (61) are numbers.
"""


def code_labels(y: Any, decimals: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes, and the class code of every row, `UNKNOWN` if the label is None or NaN.

    Numbers with decimals raise an error unless `decimals` allows them.

    >>> classes, codes = code_labels(["spam", None, "ham", "spam"])
    >>> classes.tolist(), codes.tolist()
    (['ham', 'spam'], [1, -1, 0, 1])
    """
    if isinstance(y, np.ndarray) and y.dtype.kind in "iub" and y.ndim == 1 and len(y):
        return _whole_labels(y)
    if isinstance(y, np.ndarray) and y.dtype.kind == "f" and y.ndim == 1:
        if len(y) and np.abs(y).max() < 2**31:  # also False if there is a NaN
            whole = y.astype(np.int64)
            if np.array_equal(whole, y):
                classes, codes = _whole_labels(whole)
                return classes.astype(y.dtype), codes
        known = ~np.isnan(y)
        values = y[known]
        fractional = (values != np.floor(values)) | np.isinf(values)
        if fractional.any() and not decimals:
            at = int(np.flatnonzero(known)[np.argmax(fractional)])
            raise DataError(
                f"Unknown label type: continuous. Labels name classes, but row {at + 1} holds {float(y[at])}. "
                f"{NO_REGRESSION} {AS_TEXT}"
            )
        classes, found = np.unique(values, return_inverse=True)
        codes = np.full(len(y), UNKNOWN, dtype=np.int32)
        codes[known] = found
        return classes, codes
    if isinstance(y, np.ndarray) and y.dtype.kind in "US" and y.ndim == 1 and len(y) and y.dtype.itemsize:
        packed = np.ascontiguousarray(y)
        cells = pa.Array.from_buffers(pa.binary(y.dtype.itemsize), len(y), [None, pa.py_buffer(packed)])
        coded = cells.dictionary_encode()
        buffer = coded.dictionary.buffers()[1]
        levels = np.frombuffer(buffer, dtype=y.dtype, count=len(coded.dictionary))
        classes, ranks = np.unique(levels, return_inverse=True)
        return classes, ranks.astype(np.int32)[numpy_of(coded.indices)[0]]
    if isinstance(y, np.ndarray) and y.dtype.kind == "O" and y.ndim == 1:
        cells = y.tolist()
        distinct_cells = set(cells)
        words = sorted(cell for cell in distinct_cells if type(cell) is str)
        if words and all(type(cell) is str or is_missing(cell) for cell in distinct_cells):
            code_of = {cell: UNKNOWN for cell in distinct_cells} | {word: rank for rank, word in enumerate(words)}
            codes = np.fromiter(map(code_of.__getitem__, cells), dtype=np.int32, count=len(cells))
            return np.array(words, dtype=object), codes
    return _other_labels(y, decimals)


def _whole_labels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if y.dtype.kind == "b":
        classes, codes = _whole_labels(y.view(np.uint8))
        return classes.astype(bool), codes
    low, high = int(y.min()), int(y.max())
    if high - low >= WINDOW:
        classes, places = np.unique(y, return_inverse=True)
        return classes, places.astype(np.int32)
    # Truncated to 32 bits, differences still wrap around to the right step, whatever the type and its range.
    steps = y.astype(np.int32)
    steps -= np.array(low, dtype=y.dtype).astype(np.int32)
    # The first rows usually show which steps occur; only the remaining steps are searched for.
    seen = np.zeros(high - low + 1, dtype=bool)
    seen[steps[:4_096]] = True
    doubtful = np.flatnonzero(~seen)
    if len(doubtful) > 16:
        seen[steps] = True
    else:
        seen[doubtful] = [bool(np.any(steps == step)) for step in doubtful]
    classes = np.add(np.flatnonzero(seen).astype(y.dtype), y.dtype.type(low), dtype=y.dtype)
    if seen.all():
        return classes, steps
    return classes, (np.cumsum(seen) - 1).astype(np.int32)[steps]


NO_REGRESSION = "Numeric targets are not supported yet."
AS_TEXT = "To make every number a class, give y as text: [str(value) for value in y]"


def numeric_target(key: object, found: str) -> DataError:
    insist = remedies.kind(key, "categorical")
    joint = remedies.either("Mixture().fit(X)", "softcount fit DATA --model mixture")
    bins = f"pandas.qcut(frame[{key!r}], 4).astype(str)"
    return DataError(
        f"{wording.column(key)} holds numbers ({found}), and a target holds classes. {NO_REGRESSION}\n"
        f"  To model it with the other columns, and get its mean by query or impute: {joint}\n"
        f"  To predict ranges of it, replace it by bins: {bins}\n"
        f"  To make every number a class: {insist}"
    )


def refuse_many_numbers(classes: Sequence[Any], key: object = None) -> None:
    """Raise an error if labels are more than `NUMBERED_CLASSES` distinct whole numbers; `key` is their column.

    Labels that came as an array may be codes 0, 1, ... of a label encoder. Those only get a warning.
    """
    count = len(classes)
    if count <= NUMBERED_CLASSES or any(isinstance(name, str | bool | np.bool_) for name in classes):
        return
    if key is not None:
        raise numeric_target(key, f"{count:,} different whole numbers")
    if not np.array_equal(np.asarray(classes), np.arange(count)):
        raise DataError(
            f"y holds {count:,} different whole numbers, from {classes[0]} to {classes[-1]}, and labels name classes. "
            f"{NO_REGRESSION} {AS_TEXT}"
        )
    warn(f"y holds the whole numbers 0 to {count - 1}: every number is a class. {NO_REGRESSION}")


def _other_labels(y: Any, decimals: bool) -> tuple[np.ndarray, np.ndarray]:
    if is_frame(y) and not hasattr(y, "dtype") and hasattr(y, "column_names"):
        raise DataError("labels must be one column. Pass the name of the column, or the column itself.")
    column = arrow_column("labels", y)
    if len(column) == 0:
        return np.zeros(0), np.zeros(0, dtype=np.int32)
    if pa.types.is_integer(column.type) and column.null_count == 0:
        return code_labels(numpy_of(flat(column))[0], decimals)
    if pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        return code_labels(filled(flat(column.cast(pa.float64()))), decimals)
    values, places = distinct(column, NO_WORDS)
    levels = [value for value in values if value is not None]
    ordered = in_order(levels)
    table = np.full(len(values) + 1, UNKNOWN, dtype=np.int32)
    table[[place for place, value in enumerate(values) if value is not None]] = order_codes(levels, ordered)[1:] - 1
    kind = getattr(getattr(y, "dtype", None), "kind", "")
    objects = bool(ordered) and kind == "O" and all(isinstance(level, str) for level in ordered)
    return np.array(ordered, dtype=object if objects else y.dtype.type if kind in ("U", "S") else None), table[places]


def check_weights(w: Any, n_rows: int) -> np.ndarray:
    """Return row weights as float64; negative, infinite or missing weights, or only zeros, raise an error."""
    try:
        weights = np.asarray(w, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"weights must be numbers: {error}.") from None
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1 or len(weights) != n_rows:
        raise DataError(f"weights have shape {weights.shape} for a table of {n_rows} rows. Give one weight per row.")
    check_weight_values(weights, 0)
    if n_rows and not weights.any():
        raise no_weight()
    return weights


def no_weight() -> DataError:
    return DataError("all weights are zero, so no row counts. Give at least one row a weight above zero.")
