"""Small mixed tables that several tests fit, and how their refusals are looked at."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import softcount as sc
from softcount.errors import DataError, SoftcountError

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


def naive(**how: Any) -> sc.NaiveBayes:
    return sc.NaiveBayes(**{"kinds": KINDS, **how})


def mixture(**how: Any) -> sc.Mixture:
    return sc.Mixture(**{"n_components": 2, "kinds": KINDS, "random_state": 0, "n_init": 1, **how})


def refused(action: Callable[[], object], *words: str) -> None:
    """The action fails with a `DataError` (so a `ValueError`) whose message holds the words."""
    with pytest.raises(DataError) as caught:
        action()
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, SoftcountError)
    for word in words:
        assert re.search(word, str(caught.value)), (word, str(caught.value))
