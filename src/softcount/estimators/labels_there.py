"""Answers and labels of rows that an engine has, brought here beside each other; the rows stay where they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.sources.frames import engine_holding


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
