"""What users pass to densities: a plain column, or a table of a few, with weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.densities.kernels import Reflection
from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.sources.frames import text_column
from softcount.table import check_weights


def cells_of(estimator: Any, X: Any, reset: bool) -> tuple[np.ndarray, bool]:
    """(rows x columns) numbers, NaN where missing, and whether X was a plain column; names are kept or compared."""
    if text_column(X) is not None:
        raise DataError(f"X is {len(X):,} texts, and a density needs numbers.")
    X = _unwrapped(X)
    if not is_plain(X):
        X, least = X if reset else inputs.in_fitted_order(estimator, X), int(reset)
        cells = inputs.validated(estimator, X, reset=reset, dtype=np.float64, order="C", ensure_min_samples=least)
        if not isinstance(cells, np.ndarray):
            raise DataError("sparse input is not supported, as a density needs every number: give X.toarray().")
        return cells, False
    column = _numbers(X)
    if reset:
        estimator.n_features_in_ = 1
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif estimator.n_features_in_ != 1:
        raise DataError(
            f"X is one column, but {type(estimator).__name__} was fitted on {estimator.n_features_in_}: "
            "give rows of as many cells."
        )
    return column[:, None], True


def is_plain(X: Any) -> bool:
    """Whether X is one column and no table."""
    try:
        return np.ndim(X) == 1 if isinstance(X, (list, tuple)) else len(getattr(X, "shape", ())) == 1
    except ValueError as error:
        raise DataError("the rows of X have different numbers of cells.") from error


def _unwrapped(X: Any) -> Any:
    """Arrow's columns and tables, and any mapping of columns, as NumPy's or a frame."""
    if hasattr(X, "to_pandas") and hasattr(X, "column_names"):
        return X.to_pandas()
    if hasattr(X, "to_numpy") and hasattr(X, "to_pylist"):
        return X.to_numpy(zero_copy_only=False)
    return X


def _numbers(column: Any) -> np.ndarray:
    """A plain column as float64, missing cells as NaN."""
    if hasattr(column, "to_numpy") and str(getattr(column, "dtype", "")) not in ("float64", "object"):
        nullable = hasattr(column, "isna")  # pandas: its own missing values do not become NaN by themselves
        column = column.to_numpy(dtype=np.float64, na_value=np.nan) if nullable and _is_number(column) else column
    cells = np.asarray(column)
    if cells.dtype.kind in "mMcUS":
        raise DataError(f"X is a column of {cells.dtype}, and a density needs numbers.")
    try:
        return np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"X is not all numbers ({error}), and a density needs numbers.") from None


def _is_number(column: Any) -> bool:
    return getattr(column.dtype, "kind", "") in "iufb"


def known_rows(estimator: Any, cells: np.ndarray, sample_weight: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows without a missing cell and with a weight above 0, as an array of their own; their weights, or None."""
    weights = None if sample_weight is None else check_weights(sample_weight, len(cells))
    if not len(cells):
        raise DataError("there is no row (n_samples=0), so there is no density.")
    if weights is None and np.isfinite([cells.min(), cells.max()]).all():  # a missing cell would be both
        return cells.copy(), None
    kept = ~np.isnan(cells).any(axis=1)
    if weights is not None:
        kept &= weights > 0
    refuse_infinite(estimator, cells, kept)
    if not kept.any():
        raise DataError("there is no row with a value and a weight above zero, so there is no density.")
    return cells[kept], None if weights is None else weights[kept]


def refuse_infinite(estimator: Any, cells: np.ndarray, kept: np.ndarray) -> None:
    """Raise at the first infinite cell of the rows that count."""
    bad = np.isinf(cells) & kept[:, None]
    if bad.any():
        row, column = (int(at) for at in np.argwhere(bad)[0])
        where = f"{name_of(estimator, column)}, row {row + 1}"
        raise DataError(
            f"{where} holds {cells[row, column]}: values are finite. Leave the row out, or make it missing."
        )


def refuse_outside(estimator: Any, cells: np.ndarray, column: int, ends: Reflection) -> None:
    """Raise where a value lies beyond the ends that were said of its column."""
    inside = ends.inside(cells)
    if not inside.all():
        at = int(np.argmin(inside))
        raise DataError(
            f"{name_of(estimator, column)} holds {cells[at]:g}, outside its bounds {ends.low:g} and {ends.high:g}. "
            "Widen the bounds, or leave such rows out."
        )


def name_of(estimator: Any, column: int) -> str:
    """A column as messages call it."""
    names = getattr(estimator, "feature_names_in_", None)
    return f"column {names[column]!r}" if names is not None else f"column {column + 1}"
