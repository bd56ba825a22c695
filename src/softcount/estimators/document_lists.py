"""Documents in a row: a list, an array or a series of strings, as the one column of a model of text."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy import sparse

from softcount.errors import DataError
from softcount.families import Text
from softcount.models.declared import read_kinds
from softcount.table.frames import is_frame, is_missing
from softcount.table.schema import Key, Schema
from softcount.table.texts import TEXT, text_column


class Documents(dict[Key, Any]):
    """A table of one column of Arrow text, made of documents that came in a row."""

    def kept(self, keep: np.ndarray) -> Documents:
        """The documents where `keep` is true."""
        import pyarrow as pa

        # By way of Python: Arrow cannot take from the views that polars keeps text in.
        some = {key: np.array(column.to_pylist(), dtype=object)[keep] for key, column in self.items()}
        return Documents({key: pa.array(cells, pa.large_string()) for key, cells in some.items()})


def documents_in(estimator: Any, X: Any, reset: bool) -> Documents | None:
    """Documents in a row as a table, for a model that has one column of text; None where X is something else.

    A model that has no such column is told, and how to have one.
    """
    if isinstance(X, (set, frozenset)):
        raise DataError(
            f"a {type(X).__name__} has no order, so neither labels nor answers belong to its rows. Give a list."
        )
    rows = isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], (list, tuple, np.ndarray))
    found = None if rows else text_column(X)
    wanted = _asked_for(estimator) if reset else _only_text(estimator)
    if rows and wanted is not None:
        _refuse_split(X)
    if found is not None:
        if wanted is None:
            raise _unexpected(estimator, len(next(iter(found.values()))), reset)
        return Documents({wanted: next(iter(found.values()))})
    if wanted is None:
        return None
    if isinstance(X, str) and not reset and X != "-" and not os.path.exists(X):
        raise DataError(f"there is no file {X[:60]!r}. A single document is given in a list: [text].")
    if hasattr(X, "__next__") and not is_frame(X):
        raise DataError(f"documents come in a list, an array or a series, not in a {type(X).__name__}. Use list(...).")
    return _odd_row(X, wanted)


def _refuse_split(rows: Any) -> None:
    """Raise where documents are lists of words, which differ in length as rows of a table do not."""
    lengths = {len(row) for row in rows if isinstance(row, (list, tuple))}
    if len(lengths) > 1 and all(isinstance(word, str) for word in rows[0]):
        raise DataError("documents come as whole strings, not as lists of words. Join them: ' '.join(words).")


def _asked_for(estimator: Any) -> Key | None:
    """The column that documents in a row are to be, where everything was declared text."""
    kinds = getattr(estimator, "kinds", None)
    return TEXT if kinds is not None and isinstance(read_kinds(kinds).everything, Text) else None


def _only_text(estimator: Any) -> Key | None:
    """The column of text that a fitted model has, where it has no other."""
    schema = _schema(estimator)
    return None if schema is None else schema.only_text


def _schema(estimator: Any) -> Schema | None:
    fitted = getattr(estimator, "fitted_", None)
    return None if fitted is None else fitted.schema


def _unexpected(estimator: Any, rows: int, reset: bool) -> DataError:
    """What to do with texts that are no table to this model."""
    said = f"Expected 2D array, got 1D array instead: {rows:,} texts in a row."
    if not reset:
        schema = _schema(estimator)
        columns = ", ".join(repr(spec.key) for spec in (schema.used if schema else ())[:5])
        reads = f"It has the columns {columns}." if columns else "It has a block of counts."
        return DataError(f"{said} The model was not fitted on documents alone. {reads} Give a table of them.")
    if "kinds" in estimator.get_params(deep=False):
        return DataError(
            f'{said} To learn from documents, give kinds="text". Reshape your data with array.reshape(-1, 1) if they '
            "are one column of categories."
        )
    return DataError(f"{said} Give rows of numbers; BagOfWords turns documents into some.")


def _odd_row(X: Any, wanted: Key) -> Documents | None:
    """Nothing but missing documents, or a row of something else: the first cell that is no text is named."""
    flat = isinstance(X, (list, tuple)) or len(getattr(X, "shape", ())) == 1
    if not flat and not (hasattr(X, "to_pylist") and not hasattr(X, "column_names")):
        return None
    texts = False
    for row, cell in enumerate(X.to_pylist() if hasattr(X, "to_pylist") else X, start=1):
        if isinstance(cell, (list, tuple, np.ndarray)):
            return None
        cell = cell.item() if isinstance(cell, np.generic) else cell
        texts |= isinstance(cell, str)
        if not isinstance(cell, str) and not is_missing(cell):
            raise DataError(
                f"document {row} is {cell!r:.40} ({type(cell).__name__}), which is no text. "
                "Documents are strings, None where one is missing."
            )
    import pyarrow as pa

    return None if texts else Documents({wanted: pa.nulls(len(X), pa.large_string())})


def refuse_no_text(estimator: Any, X: Any) -> None:
    """Raise where a model that reads text is given nothing but numbers."""
    schema = _schema(estimator)
    texts = [] if schema is None else schema.texts
    numbers = sparse.issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind in "iufbc")
    if not texts or not numbers:
        return
    assert schema is not None
    alone = len(texts) == len(schema.used)
    remedy = "Give documents: a list of strings." if alone else "Give a table of the columns it was fitted on."
    raise DataError(f"the model reads text in column {texts[0]!r}, but X holds nothing but numbers. {remedy}")
