"""Small mixed tables that several tests fit, and one cell of them changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

KINDS = {"size": "normal", "colour": "categorical", "visits": "poisson"}


def fruit(rows: int = 60, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A number, a category and a count, and the class of every row."""
    rng = np.random.default_rng(seed)
    ripe = rng.random(rows) < 0.55
    frame = pd.DataFrame(
        {
            "size": rng.normal(np.where(ripe, 0.6, -0.4), 1.0),
            "colour": np.where(rng.random(rows) < 0.25 + 0.5 * ripe, "red", rng.choice(["blue", "green"], rows)),
            "visits": rng.poisson(np.where(ripe, 4.0, 2.0)),
        }
    )
    return frame, np.where(ripe, "ripe", "sour")


def numbers(rows: int = 60, columns: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, columns))


def with_cell(frame: pd.DataFrame, column: str, row: int, value: Any) -> pd.DataFrame:
    """The same table with another cell; rows count from 0."""
    changed = frame.copy()
    kind = object if isinstance(value, str) else float
    changed[column] = changed[column].astype(kind)
    changed.loc[row, column] = value
    return changed
