"""A fitted model made by hand, for what the reports say about one: no learning, every figure known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from softcount.families import Categorical, Normal
from softcount.fitted.classes import Card, ColumnContrast
from softcount.fitted.scorers import Scorer
from softcount.learn.record import FitRecord
from softcount.table.schema import Field, Kind, Schema

NASTY = "re\x1b[31md\n[bold]\u202e"
"""A level that would colour a terminal, break a table, be read as markup and turn the writing around."""


def two_columns(name: str = "colour") -> Schema:
    return Schema(
        (
            Field(name, Kind.CATEGORICAL, "2 levels", levels=("blue", NASTY)),
            Field("size", Kind.REAL, "numbers with decimals"),
            Field("id", Kind.IDENTIFIER, "a different value in every row", used=False),
        )
    )


@dataclass
class StandIn:
    """Two groups, one column of words and one of numbers."""

    schema: Schema = field(default_factory=two_columns)
    target: Any = "sort"
    classes: list[Any] | None = field(default_factory=lambda: ["a", "b"])
    n_groups: int = 2
    shares: Any = field(default_factory=lambda: np.array([0.75, 0.25]))
    notes: list[str] = field(default_factory=lambda: [f"level {NASTY} was seen once"])
    trace: list[float] = field(default_factory=lambda: [-20.0, -10.5])
    objective: str = "log-likelihood"
    log_likelihood: float = -10.5
    n_iter: int = 1
    converged: bool = True
    n_rows: float = 8.0
    n_parameters: int = 7
    agreed: tuple[int, int] | None = None
    named: list[Any] | None = None
    selection: list[Any] | None = None
    interrupted: bool = False
    scorer: Scorer = field(default_factory=Scorer)
    information: Any = None
    record: FitRecord = field(default_factory=FitRecord)

    params: ClassVar[dict[str, Any]] = {
        "colour": {"probability": np.array([[0.9, 0.1], [0.2, 0.8]])},
        "size": {"mean": np.array([1.0, 5.0]), "variance": np.array([1.0, float("nan")])},
    }
    levels: ClassVar[dict[str, Any]] = {"colour": ["blue", NASTY]}
    families: ClassVar[dict[str, Any]] = {"colour": Categorical(), "size": Normal()}
    missing: ClassVar[dict[str, Any]] = {"colour": 2.0, "size": 0.0}

    @property
    def names(self) -> list[Any]:
        return list(range(self.n_groups)) if self.classes is None else self.classes

    def influence(self) -> list[tuple[str, float]]:
        return [("size", 1.25), ("colour", 0.5)]

    def describe(self, key: str, parameters: bool = False) -> list[str]:
        return ["mean 1", "mean 5"] if key == "size" else ["blue 90 %", f"{NASTY} 80 %"]

    @property
    def group_rows(self) -> Any:
        return self.shares * self.n_rows

    @property
    def row_shares(self) -> Any:
        return self.shares

    def cards(self, parameters: bool = False) -> list[Card]:
        sizes = [float(size) for size in self.shares]
        return [
            Card(name, size, size * self.n_rows, 1.75, {"size": 1.5, "colour": NASTY}, self._contrasts(group))
            for group, (name, size) in enumerate(zip(self.names, sizes, strict=True))
        ]

    def _contrasts(self, group: int) -> list[ColumnContrast]:
        figures = {"size": 1.25, "colour": 0.5}
        return [ColumnContrast(key, far, self.describe(key)[group], f"other {key}") for key, far in figures.items()]


def mixture() -> StandIn:
    return StandIn(target=None, classes=None, agreed=(3, 10))
