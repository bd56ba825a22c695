"""Which fold each row of a table is in, by its number alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Rows(Protocol):
    """Anything that is some rows of a table, one after another."""

    @property
    def start(self) -> int: ...
    @property
    def n_rows(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Split:
    """Which fold a row is in, from its number and the seed. With a share, fold 0 is held out and fold 1 trains."""

    folds: int
    seed: int
    share: float | None = None

    @property
    def tested(self) -> range:
        return range(1) if self.share is not None else range(self.folds)

    def of(self, rows: Rows) -> np.ndarray:
        mixed = np.arange(rows.start, rows.start + rows.n_rows, dtype=np.uint64)
        with np.errstate(over="ignore"):
            mixed += np.uint64(self.seed & (2**63 - 1)) * np.uint64(11400714819323198485)
            for shift, factor in ((30, 13787848793156543929), (27, 10723151780598845931)):
                mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
        if self.share is not None:
            return (mixed / 2.0**64 >= self.share).astype(np.int32)
        return (mixed % np.uint64(self.folds)).astype(np.int32)
