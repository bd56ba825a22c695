"""Twelve tables with classes that everybody knows, and the rows of each that are held out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(os.environ.get("SOFTCOUNT_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
MANY = 15_000
"""Rows above which a third is held out once; below, there are five folds."""
COVERTYPE_ROWS = 30_000


@dataclass(frozen=True, eq=False)
class ClassTable:
    """A frame of columns c0, c1, ... and the class of each row as 0, 1, ..."""

    name: str
    frame: Any
    labels: np.ndarray

    def splits(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows to learn from and rows held out."""
        from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

        how = StratifiedKFold(5, shuffle=True, random_state=0)
        if len(self.labels) > MANY:
            how = StratifiedShuffleSplit(1, test_size=1 / 3, random_state=0)
        yield from how.split(self.frame, self.labels)


def file(path: str, target: int, rows: Callable[[Any], Any] = lambda target: target) -> Callable[[], tuple[Any, Any]]:
    """How to read a file without a header: all columns but the target's, and that one."""

    def read() -> tuple[Any, Any]:
        import pandas as pd

        frame = pd.read_csv(ROOT / path, header=None, na_values="?", skipinitialspace=True)
        return frame.drop(columns=target), rows(frame[target])

    return read


def adult() -> tuple[Any, Any]:
    import pandas as pd

    how = {"header": None, "na_values": "?", "skipinitialspace": True, "comment": "|"}
    parts = [pd.read_csv(ROOT / "uci_adult" / name, **how) for name in ("adult.data.gz", "adult.test.gz")]
    frame = pd.concat(parts, ignore_index=True).dropna(how="all")
    return frame.drop(columns=14), frame[14].astype(str).str.rstrip(".")


def titanic() -> tuple[Any, Any]:
    import pandas as pd

    frame = pd.read_csv(ROOT / "titanic" / "titanic_seaborn.csv")
    return frame.drop(columns=["survived", "alive"]), frame["survived"]


def covertype() -> tuple[Any, Any]:
    import gzip

    import pandas as pd

    path = ROOT / "covtype" / "covtype.csv.gz"
    with gzip.open(path, "rt") as text:
        named = not text.read(1).isdigit()
    frame = pd.read_csv(path, nrows=COVERTYPE_ROWS, header=0 if named else None)
    return frame.iloc[:, :-1], frame.iloc[:, -1]


def shipped(name: str) -> Callable[[], tuple[Any, Any]]:
    """A table that comes with scikit-learn."""

    def read() -> tuple[Any, Any]:
        import pandas as pd
        from sklearn import datasets

        found = getattr(datasets, f"load_{name}")()
        return pd.DataFrame(found.data), pd.Series(found.target)

    return read


TABLES = {
    "adult": adult,
    "credit": file("uci_credit_approval/crx.data", 15),
    "heart": file("uci_heart/processed.cleveland.data", 13, lambda target: (target > 0).astype(int)),
    "titanic": titanic,
    "mushroom": file("uci_mushroom/agaricus-lepiota.data", 0),
    "vote": file("uci_vote/house-votes-84.data", 0),
    "car": file("uci_car/car.data", 6),
    "covertype": covertype,
    "wine": shipped("wine"),
    "iris": shipped("iris"),
    "digits": shipped("digits"),
    "wdbc": shipped("breast_cancer"),
}


def class_tables() -> Iterator[ClassTable]:
    """Every table that is here; one whose files are not is passed over."""
    for name, read in TABLES.items():
        try:
            frame, target = read()
        except FileNotFoundError:
            continue
        frame.columns = [f"c{place}" for place in range(frame.shape[1])]
        labels = np.unique(target.to_numpy(), return_inverse=True)[1]
        yield ClassTable(name, frame.reset_index(drop=True), labels)
