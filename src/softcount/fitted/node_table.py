"""The table of a node, to be read: a row of probabilities for every configuration of its parents."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.records import dataclass


@dataclass(frozen=True, eq=False)
class NodeTable:
    """Probabilities of a node's levels given its parents; `np.asarray` gives them, an axis for each parent first.

    >>> wet = NodeTable("Wet", {"Rain": ["no", "yes"]}, ["dry", "wet"], np.array([[0.9, 0.1], [0.2, 0.8]]))
    >>> print(wet)
    Rain    dry    wet
    no   0.9000 0.1000
    yes  0.2000 0.8000
    >>> wet["wet", "yes"], wet.given(Rain="no")
    (0.8, {'dry': 0.9, 'wet': 0.1})
    """

    name: Any
    parents: Mapping[Any, list[Any]]
    levels: list[Any]
    values: np.ndarray

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __getitem__(self, levels: Any) -> float:
        """The probability of a level, given the levels of the parents in their order after it."""
        own, *others = levels if isinstance(levels, tuple) and levels not in self.levels else (levels,)
        at = [_place(name, known, level) for (name, known), level in zip(self.parents.items(), others, strict=True)]
        return float(self.values[(*at, _place(self.name, self.levels, own))])

    def given(self, **parents: Any) -> dict[Any, float]:
        """Level -> probability where every parent has the level named."""
        at = [_place(name, known, parents[str(name)]) for name, known in self.parents.items()]
        return dict(zip(self.levels, map(float, self.values[tuple(at)]), strict=True))

    def rows(self) -> list[tuple[tuple[Any, ...], list[float]]]:
        """Every configuration of the parents with its probabilities."""
        flat = self.values.reshape(-1, len(self.levels))
        return list(zip(product(*self.parents.values()), flat.tolist(), strict=True))

    def __str__(self) -> str:
        shown = [[*map(str, names), *(f"{share:.4f}" for share in shares)] for names, shares in self.rows()]
        head = [*map(str, self.parents), *map(str, self.levels)]
        widths = [max(len(line[column]) for line in [head, *shown]) for column in range(len(head))]
        words = len(self.parents)
        lines = [
            " ".join(
                cell.ljust(w) if j < words else cell.rjust(w)
                for j, (cell, w) in enumerate(zip(line, widths, strict=True))
            )
            for line in [head, *shown]
        ]
        return "\n".join(line.rstrip() for line in lines)


def _place(name: Any, levels: list[Any], level: Any) -> int:
    if level not in levels:
        raise DataError(f"node {name!r} has no level {level!r}. It has: {', '.join(map(str, levels))}.")
    return levels.index(level)
