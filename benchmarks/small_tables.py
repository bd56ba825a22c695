"""Small tables that most people know: four of numbers, which scikit-learn brings, and four mixed or of levels."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

NUMERIC = {"iris": "load_iris", "wine": "load_wine", "breast cancer": "load_breast_cancer", "digits": "load_digits"}
HEART = ("age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak", "slope", "ca", "thal")


class MixedTable(NamedTuple):
    """A frame, and which of its columns are numbers; the others are levels."""

    frame: Any
    numbers: list[str]


@cache
def numeric(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Cells and classes of a table that scikit-learn brings, without columns of one value (three pixels of digits)."""
    from sklearn import datasets

    table = getattr(datasets, NUMERIC[name])()
    varies = table.data.min(axis=0) < table.data.max(axis=0)
    return np.ascontiguousarray(table.data[:, varies], dtype=np.float64), table.target


@cache
def mixed(name: str) -> MixedTable | None:
    """A table from the data folder, its classes left out; None where it is not here."""
    path = data_folder() / MIXED[name][0]
    return MIXED[name][1](path) if path.exists() else None


def data_folder() -> Path:
    return Path(os.environ.get("SOFTCOUNT_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


def heart(path: Path) -> MixedTable:
    return _read(path, [*HEART, "disease"], ["age", "trestbps", "chol", "thalach", "oldpeak"])


def credit(path: Path) -> MixedTable:
    return _read(path, [*(f"A{i}" for i in range(1, 16)), "class"], ["A2", "A3", "A8", "A11", "A14", "A15"])


def votes(path: Path) -> MixedTable:
    return _read(path, ["party", *(f"vote{i}" for i in range(1, 17))], [], "party")


def titanic(path: Path) -> MixedTable:
    import pandas as pd

    columns = ["pclass", "sex", "age", "sibsp", "parch", "fare", "embarked"]
    return MixedTable(pd.read_csv(path)[columns], ["age", "sibsp", "parch", "fare"])


def _read(path: Path, names: list[str], numbers: list[str], target: str | None = None) -> MixedTable:
    import pandas as pd

    frame = pd.read_csv(path, header=None, names=names, na_values="?")
    return MixedTable(frame.drop(columns=target or names[-1]), numbers)


MIXED: dict[str, tuple[str, Callable[[Path], MixedTable]]] = {
    "heart": ("uci_heart/processed.cleveland.data", heart),
    "credit approval": ("uci_credit_approval/crx.data", credit),
    "titanic": ("titanic/titanic_seaborn.csv", titanic),
    "votes": ("uci_vote/house-votes-84.data", votes),
}
