"""The error that nobody can do better than, if a model is the truth: rows are drawn from it and told by it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.fitted.answers import drawn
from softcount.fitted.fitted_model import Fitted
from softcount.numerics.late_scipy import softmax, sparse
from softcount.records import dataclass
from softcount.run.threads import Threads

AT_ONCE = 16_384


@dataclass(frozen=True, slots=True)
class BestError:
    """The share of rows that even the model that made them tells wrong, and how far chance may have moved it."""

    error: float
    standard_error: float
    rows: int

    def __str__(self) -> str:
        return f"{self.error:.5f} (standard error {self.standard_error:.2g}, {self.rows:,} rows drawn)"

    @classmethod
    def of(cls, parts: Iterator[np.ndarray]) -> BestError:
        """From probabilities of every class of rows that were drawn.

        What is left of a row's likeliest class is averaged, rather than who was wrong: it varies far less.
        """
        left = np.concatenate([1.0 - proba.max(axis=1) for proba in parts])
        return cls(float(left.mean()), float(left.std() / np.sqrt(len(left))), len(left))


def best_error(fitted: Fitted, n: int, rng: np.random.Generator) -> BestError:
    """By n rows drawn from a model of known classes; a correction of its probabilities is left aside."""
    if fitted.classes is None:
        raise DataError("a mixture found its classes itself: there is no error to speak of.")
    return BestError.of(_told(replace(fitted, calibration=None), n, rng))


def _told(fitted: Fitted, n: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    with Threads() as threads:
        for start in range(0, n, AT_ONCE):
            columns, _ = drawn(fitted, min(AT_ONCE, n - start), None, rng)
            data: Any = sparse.csr_matrix(np.stack(list(columns.values()), axis=1)) if fitted.bag else columns
            yield softmax(fitted.log_joint(fitted.table(data), threads), axis=1)
