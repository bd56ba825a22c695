"""What users pass as X, y and weights, checked and opened as tables."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import validate_data

from softcount.errors import DataError, DataWarning
from softcount.estimators.document_lists import Documents, documents_in, refuse_no_text
from softcount.table import Table, check_weights, code_labels, open_table
from softcount.table.schema import Field, Kind


def is_table(X: Any) -> bool:
    """Whether X has named columns of its own: a frame, an Arrow table, a file, or an opened table."""
    named = (str, os.PathLike, Mapping, Table)
    return isinstance(X, named) or hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")


def refuse_fraction(name: str, value: Any, least: int) -> None:
    """Raise where a setting is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise DataError(f"{name} must be a whole number of at least {least}, not {value!r}.")


def refuse_negative(name: str, value: Any) -> None:
    """Raise where a setting is not a number of 0 or more."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not value >= 0:
        raise DataError(f"{name} must be 0 or more, not {value!r}.")


def checked(estimator: BaseEstimator, X: Any, reset: bool) -> Any:
    """X as `open_table` takes it; arrays get scikit-learn's checks of shape and type.

    Documents in a row, one string each, are the one column of a model of text.
    """
    documents = documents_in(estimator, X, reset)
    if documents is not None:
        return documents
    if not reset:
        refuse_no_text(estimator, X)
    if is_table(X):
        return X
    how = {"accept_sparse": "csr", "dtype": None, "ensure_all_finite": False, "ensure_min_samples": int(reset)}
    try:
        return validate_data(estimator, X, reset=reset, **how)
    except DataError:
        raise
    except ValueError as error:
        raise DataError(str(error)) from None


def remember_columns(estimator: Any, table: Table, X: Any) -> None:
    """scikit-learn's record of what was fitted: how many columns, and their names if all are text."""
    if not is_table(X):
        return
    estimator.n_features_in_ = len(table.keys)
    if all(isinstance(key, str) for key in table.keys) and not isinstance(X, Documents):
        estimator.feature_names_in_ = np.array(table.keys, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def rows_in(X: Any) -> int | None:
    """How many rows, where that is known without reading."""
    shape = getattr(X, "shape", None)
    if shape is not None:
        return int(shape[0])
    if hasattr(X, "num_rows"):
        return int(X.num_rows)
    if isinstance(X, Mapping) and X:
        return len(next(iter(X.values())))
    return getattr(X, "n_rows", None)


def labels_of(y: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Sorted classes and a code per row, after scikit-learn's checks."""
    rows = rows_in(X)
    if not hasattr(y, "__arrow_c_stream__") and not hasattr(y, "__arrow_c_array__"):
        y = y if isinstance(y, list) else np.asarray(y)
    shape = np.shape(y)
    if len(shape) == 2 and shape[1] == 1:
        message = (
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,)."
        )
        warnings.warn(message, DataConversionWarning, stacklevel=3)
        y = np.asarray(y).ravel()
    elif len(shape) > 1:
        raise DataError(f"y should be a 1d array, got an array of shape {shape} instead.")
    if sparse.issparse(y):
        raise DataError("y is sparse; give one label per row.")
    classes, codes = code_labels(y)
    if rows is not None and len(codes) != rows:
        raise DataError(f"Found input variables with inconsistent numbers of samples: [{rows}, {len(codes)}]")
    return classes, codes


def weighty_labels(y: Any, X: Any, weights: np.ndarray | None) -> tuple[list[Any], np.ndarray]:
    """Sorted classes and a code per row; a class that only rows of weight zero have does not exist."""
    if isinstance(y, str):
        raise DataError(f"y={y!r} names a column, but X is a bare array. Give the labels themselves.")
    classes, codes = labels_of(y, X)
    if weights is not None and len(classes):
        seen = np.bincount(codes[codes >= 0], weights[codes >= 0], minlength=len(classes)) > 0
        moved = np.where(seen, np.cumsum(seen) - 1, -1)
        codes = np.where(codes >= 0, moved[np.maximum(codes, 0)], -1).astype(np.int32)
        classes = classes[seen]
    return list(classes), codes


def weights_of(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Row weights checked, or None."""
    if sample_weight is None:
        return None
    rows = rows_in(X)
    sample_weight = np.asarray(sample_weight)
    if sample_weight.dtype.kind in "US":
        raise DataError(f"weights must be numbers, one per row, not {sample_weight.ravel()[:1].tolist()}.")
    if np.ndim(sample_weight) == 0:
        sample_weight = np.full(rows or 0, float(sample_weight))
    if np.ndim(sample_weight) != 1:
        raise DataError("Sample weights must be 1D array or scalar")
    return check_weights(sample_weight, rows if rows is not None else len(sample_weight))


def without_zeros(X: Any, weights: np.ndarray | None, codes: np.ndarray | None) -> tuple[Any, Any, Any]:
    """Rows of weight zero taken out: they count for nothing, not even as a level seen."""
    if weights is None or (weights > 0).all():
        return X, weights, codes
    keep = weights > 0
    if hasattr(X, "filter") and hasattr(X, "schema") and hasattr(X, "num_rows"):
        import pyarrow as pa

        X = X.filter(pa.array(keep))
    elif isinstance(X, Documents):
        X = X.kept(keep)
    elif isinstance(X, Mapping):
        X = {key: np.asarray(values, dtype=object)[keep].tolist() for key, values in X.items()}
    elif not isinstance(X, (str, os.PathLike, Table)):
        from sklearn.utils import _safe_indexing

        X = _safe_indexing(X, np.flatnonzero(keep))
    else:
        return X, weights, codes
    return X, weights[keep], None if codes is None else codes[keep]


def say_met(table: Table) -> None:
    """One warning with what prediction met: missing cells, levels and words never seen, columns not there."""
    met = {key: n for key, n in table.unseen.items() if n}
    wordless = {key: n for key, n in met.items() if table.schema[key].kind is Kind.TEXT}
    unseen = {key: n for key, n in met.items() if key not in wordless}
    missing = int(sum(table.missing.values()))
    parts = []
    if unseen:
        parts.append(f"{sum(unseen.values()):,} cells hold levels never seen in training, in {_where(unseen)}")
    if wordless:
        parts.append(f"{sum(wordless.values()):,} documents hold no word known from training, in {_where(wordless)}")
    if missing:
        parts.append(f"{missing:,} cells are missing and were taken as no evidence")
    parts += [note for note in table.notes if note.startswith("not in the table")]
    if parts:
        warnings.warn("; ".join(parts) + ".", DataWarning, stacklevel=4)


def _where(cells: Mapping[Any, int]) -> str:
    return ", ".join(f"{key!r} ({n:,})" for key, n in list(cells.items())[:5])


def declared_kinds(X: Any) -> dict[Any, Any]:
    """What was said of the columns of a table when it was opened; nothing of anything else."""
    if not isinstance(X, Table):
        return {}
    return {spec.key: kind_in(spec) for spec in X.schema.fields if spec.declared}


def kind_in(spec: Field) -> Any:
    """What a field says of its column, as `open_table` takes it: its kind, how its text is read, or to leave it out."""
    return "ignore" if not spec.used else spec.kind if spec.reading is None else spec.reading


def opened(X: Any, missing: tuple[str, ...], needed: bool) -> Any:
    """A file or folder as a table, where it must be known what is in it; anything else as it came."""
    return open_table(X, missing=missing) if needed and isinstance(X, (str, os.PathLike)) else X


def default_target(X: Any) -> Any:
    """The column that holds the classes of a folder of documents; None for anything else."""
    return X.source.default_target if isinstance(X, Table) else None


def known_columns(X: Any) -> list[Any]:
    """The names of a table's columns, where it has names; of a file, from its head."""
    if isinstance(X, (str, os.PathLike)) and os.fspath(X) != "-":
        return open_table(X).keys
    if isinstance(X, Table):
        return X.source.keys
    for name in ("column_names", "columns"):  # an Arrow table's `columns` are the cells
        if hasattr(X, name):
            return list(getattr(X, name))
    if isinstance(X, Mapping):
        return list(X)
    return list(getattr(getattr(X, "schema", None), "names", []))  # a stream of Arrow batches
