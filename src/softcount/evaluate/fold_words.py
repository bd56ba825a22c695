"""Words of every class in every fold, kept sparse: most words are met in few of them.

Twenty classes in five folds of 75,000 words are 60 MB of numbers for every chunk, nine tenths of them zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from softcount.numerics.twofold import Twofold

MOST_PARTS = 16
"""Chunks' counts that are kept apart before they are added up."""


@dataclass(frozen=True, slots=True)
class FoldWords:
    """(groups x words) counts in parts that add up, group (class, fold) being number class * folds + fold."""

    parts: list[Any]

    @classmethod
    def of(cls, bag: Any, groups: np.ndarray, weights: np.ndarray | None) -> FoldWords:
        """Counts of rows of a sparse matrix; those of a negative group are passed over."""
        rows = np.flatnonzero(groups >= 0)
        each = np.ones(len(rows)) if weights is None else weights[rows]
        shape = (int(groups.max(initial=-1)) + 1, bag.shape[0])
        return cls([sparse.csr_matrix((each, (groups[rows], rows)), shape=shape) @ bag])

    def __add__(self, other: FoldWords) -> FoldWords:
        parts = [*self.parts, *other.parts]
        return FoldWords(parts if len(parts) <= MOST_PARTS else [_sum(parts)])

    def fold(self, fold: int, folds: int, order: Sequence[int] | np.ndarray, groups: int) -> np.ndarray:
        """(groups x words) counts of one fold, class c in group `order[c]`; words by groups in memory."""
        order = np.asarray(order, dtype=np.int64)
        places, counts = [], []
        for part in self.parts:
            here = part[fold::folds].tocoo()
            places.append(here.col.astype(np.int64) * groups + order[here.row])
            counts.append(here.data)
        width = self.parts[0].shape[1]
        flat = np.bincount(np.concatenate(places), np.concatenate(counts), minlength=width * groups)
        return flat.reshape(width, groups).T

    def total(self, folds: int, order: Sequence[int] | np.ndarray, groups: int) -> np.ndarray:
        return sum(self.fold(fold, folds, order, groups) for fold in range(folds))  # type: ignore[return-value]


def _sum(parts: Sequence[Any]) -> Any:
    """One matrix of them all; classes that a chunk has not met are rows of nothing."""
    rows = max(part.shape[0] for part in parts)
    whole = sparse.csr_matrix((rows, parts[0].shape[1]))
    for part in parts:
        ends = np.concatenate([part.indptr, np.full(rows - part.shape[0], part.indptr[-1])])
        whole = whole + sparse.csr_matrix((part.data, part.indices, ends), shape=whole.shape)
    return whole


def without(total: np.ndarray, fold: np.ndarray) -> Twofold:
    """Counts of all folds but one; a word that only this one holds leaves exactly nothing."""
    rest = np.maximum(total - fold, 0.0)
    return Twofold(rest, np.zeros(rest.T.shape).T)
