"""What a word weighs in a document: its count, its share, how rare it is, or both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from softcount.errors import DataError

if TYPE_CHECKING:
    from scipy import sparse

Weighting = Literal["count", "binary", "tf", "idf", "tfidf"]
Idf = Literal["smooth", "plain", "plus-one"]
WEIGHTINGS: tuple[str, ...] = ("count", "binary", "tf", "idf", "tfidf")
IDFS: tuple[str, ...] = ("smooth", "plain", "plus-one")


def idf_of(documents: np.ndarray, n_documents: int, kind: str) -> np.ndarray:
    """How rare each word is, from the number of documents that hold it, of `n_documents` in all.

    "plain" is log(N / df), "plus-one" log(N / (df + 1)), "smooth" scikit-learn's log((N + 1) / (df + 1)) + 1.
    A word of every document gets 0 under "plain", a little less under "plus-one", and 1 under "smooth". A column that
    no document had (there are such only with hashing) is as rare under "plain" as one that a single document had.

    >>> idf_of(np.array([1, 2, 4]), 4, "plain") / np.log(2)
    array([2., 1., 0.])
    """
    held = np.asarray(documents, dtype=np.float64)
    if kind == "plain":
        return np.log(n_documents / np.maximum(held, 1.0))
    if kind == "plus-one":
        return np.log(n_documents / (held + 1.0))
    if kind == "smooth":
        return np.log((n_documents + 1.0) / (held + 1.0)) + 1.0
    raise DataError(f"idf={kind!r} is not known. Use one of: {', '.join(map(repr, IDFS))}.")


def weighted(
    counts: sparse.csr_matrix, weighting: str, idf: np.ndarray | None = None, unit: bool = False
) -> sparse.csr_matrix:
    """The counts of words as weights, in the matrix that was given; with `unit` every row has length one or is zero.

    "tf" divides by the words of the document (those with a column), "idf" is presence times `idf`, "tfidf" is "tf"
    times `idf`; in a row of length one the division cancels.
    """
    if weighting == "count" and not unit:
        return counts
    data = counts.data.astype(np.float64, copy=False)
    if weighting in ("binary", "idf"):
        data[:] = 1.0
    if weighting == "tf" or (weighting == "tfidf" and not unit):
        _divide(data, counts.indptr, _row_sums(data, counts.indptr))
    if weighting in ("idf", "tfidf"):
        if idf is None:
            raise DataError(f"weighting={weighting!r} needs to know how rare words are: fit first.")
        data *= idf[counts.indices]
    if unit:
        _divide(data, counts.indptr, np.sqrt(_row_sums(data * data, counts.indptr)))
    counts.data = data
    return counts


def _row_sums(data: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """The sum of each row's cells; 0 for a row without any."""
    sums = np.zeros(len(indptr) - 1)
    there = np.flatnonzero(np.diff(indptr))  # reduceat gives an empty row the next row's first cell
    if len(there):
        sums[there] = np.add.reduceat(data, indptr[there], dtype=np.float64)
    return sums


def _divide(data: np.ndarray, indptr: np.ndarray, by: np.ndarray) -> None:
    """Divide each row by its number, where it is; rows of number 0 stay as they are."""
    data /= np.repeat(np.where(by > 0, by, 1.0), np.diff(indptr))
