"""What words weigh in a document: rare ones more, and repeated ones less than they are repeated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from softcount.classify.encoded_rows import EncodedRows
from softcount.numerics.late_scipy import sparse
from softcount.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class WordScale:
    """A factor for every column of every text's bag, 0 where nothing is known of a word; and how long documents are.

    Words weigh the logarithm of one more than their count, times the factor, a document's being 1 together (the root of
    the sum of their squares). With `counts` they weigh as much as they are counted.
    """

    factors: tuple[np.ndarray, ...]
    middle: np.ndarray  # of the logarithm of one more than the words of a document, for every text
    spread: np.ndarray
    counts: bool = False

    @classmethod
    def learned(cls, rows: EncodedRows, weights: np.ndarray) -> WordScale:
        """Factors are 1 for a word of every document, and more by the logarithm of how rare it is otherwise."""
        held = [_holding(bag, weights) for bag in rows.bags]
        factors = tuple(map(_rarity, held))
        sizes = [_sizes(bag, own > 1) for bag, own in zip(rows.bags, held, strict=True)]
        return cls(factors, *_moments(sizes, weights))

    @property
    def plain(self) -> WordScale:
        """The same words as they are counted."""
        factors = tuple((own > 0).astype(np.float64) for own in self.factors)
        return WordScale(factors, self.middle, self.spread, counts=True)

    @property
    def ends(self) -> np.ndarray:
        """Where the bag of each text begins among the columns of all, and where the last one ends."""
        return np.cumsum([0, *map(len, self.factors)])

    @property
    def width(self) -> int:
        return sum(map(len, self.factors))

    def weighed(self, text: int, bag: Any) -> Any:
        """A bag by what its words weigh, cell by cell."""
        factors = self.factors[text][bag.indices]
        if self.counts:
            return sparse.csr_matrix((bag.data * factors, bag.indices, bag.indptr), shape=bag.shape)
        data = np.log1p(bag.data) * factors
        found = sparse.csr_matrix((data, bag.indices, bag.indptr), shape=bag.shape)
        lengths = np.sqrt(np.asarray(found.multiply(found).sum(axis=1))[:, 0])
        data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(bag.indptr))
        return found

    def words(self, rows: EncodedRows) -> Any:
        """(rows x columns of all bags) what words weigh, made once for the same rows where that takes time."""
        return self._words(rows) if self.counts else rows.remembered((self,), lambda: self._words(rows))

    def _words(self, rows: EncodedRows) -> Any:
        each = [self.weighed(text, bag) for text, bag in enumerate(rows.bags)]
        return each[0] if len(each) == 1 else sparse.hstack(each, format="csr")

    def lengths(self, rows: EncodedRows) -> np.ndarray:
        """(rows x texts) how much longer documents are than usual, in deviations; 0 where there is none.

        Only words that are known count.
        """
        return self._deviations([_sizes(bag, own > 0) for bag, own in zip(rows.bags, self.factors, strict=True)])

    def own_lengths(self, rows: EncodedRows, weights: np.ndarray) -> np.ndarray:
        """The same of the rows that it was learned from: words count that would be known without the row itself."""
        return self._deviations([_sizes(bag, _holding(bag, weights) > 1) for bag in rows.bags])

    def _deviations(self, sizes: Sequence[np.ndarray]) -> np.ndarray:
        return np.asarray(np.nan_to_num((np.stack(sizes, axis=1) - self.middle) / self.spread, nan=0.0))

    def by_class(self, rows: EncodedRows, labels: np.ndarray, weights: np.ndarray, classes: int) -> np.ndarray:
        """(columns of all bags x classes) what words weigh in all documents of a class."""
        each = sparse.csr_matrix((weights, (labels, np.arange(len(labels)))), shape=(classes, len(labels)))
        return np.asarray((each @ self.words(rows)).toarray().T)

    def of_each(self, columns: np.ndarray) -> list[np.ndarray]:
        """What is given for the columns of all bags, text by text."""
        return [columns[first:last] for first, last in pairwise(self.ends.tolist())]


def _holding(bag: Any, weights: np.ndarray) -> np.ndarray:
    """The weight of the documents that hold each word, the first being that of all documents."""
    there = sparse.csr_matrix(((bag.data > 0).astype(np.float64), bag.indices, bag.indptr), shape=bag.shape)
    return np.asarray(weights @ there)


def _rarity(held: np.ndarray) -> np.ndarray:
    found = np.where(held > 0, 1.0 + np.log((1.0 + held[0]) / (1.0 + held)), 0.0)
    found[0] = 0.0  # the mark of a document
    return found


def _sizes(bag: Any, known: np.ndarray) -> np.ndarray:
    """The logarithm of one more than the known words of every document; NaN where there is none."""
    counted = known.astype(np.float64)
    counted[0] = 0.0
    return np.where(bag[:, :1].toarray()[:, 0] > 0, np.log1p(bag @ counted), np.nan)


def _moments(sizes: Sequence[np.ndarray], weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of each, of what is known; the deviation is 1 where all are alike."""
    middle, spread = np.zeros(len(sizes)), np.ones(len(sizes))
    for k, own in enumerate(sizes):
        known = ~np.isnan(own)
        mass = float(weights[known].sum())
        if mass > 0:
            middle[k] = weights[known] @ own[known] / mass
            spread[k] = np.sqrt(weights[known] @ (own[known] - middle[k]) ** 2 / mass) or 1.0
    return middle, spread
