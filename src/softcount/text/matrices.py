"""Blocks of counted words as sparse matrices, matrices put together, and what a word weighs in a document."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from softcount.errors import DataError
from softcount.text.word_blocks import WordBlock
from softcount.text.word_list import worth_bytes

if TYPE_CHECKING:
    from scipy import sparse

Item = TypeVar("Item")
WEIGHTINGS: tuple[str, ...] = ("count", "binary", "tf", "idf", "tfidf")
IDFS: tuple[str, ...] = ("smooth", "plain", "plus-one")


def matrix_of(block: WordBlock, columns: np.ndarray, width: int, dtype: Any = np.float64) -> sparse.csr_matrix:
    """A block's counts as a matrix of so many columns; `columns` places each of its words, or drops it (-1).

    The columns rise within each row; counts of words in one column are added up.
    """
    from scipy import sparse

    if worth_bytes(len(block.ids)) and 4 * len(block.ids) >= width:
        from softcount.text import compiled

        indices, values = np.empty(len(block.ids), np.int32), np.empty(len(block.ids), dtype)
        ends = compiled.place(block, columns, width, indices, values)
        cells = values[: ends[-1]], indices[: ends[-1]], _narrow(ends)
        rows = sparse.csr_matrix(cells, shape=(len(ends) - 1, width))
        rows.has_canonical_format = True
        return rows
    place = columns[block.ids]
    keep = place >= 0
    ends = np.concatenate([[0], np.cumsum(keep)])[block.indptr]
    cells = block.counts[keep].astype(dtype), place[keep].astype(np.int32, copy=False), _narrow(ends)
    rows = sparse.csr_matrix(cells, shape=(len(ends) - 1, width))
    rows.sum_duplicates()
    return rows


def _narrow(ends: np.ndarray) -> np.ndarray:
    """Row ends of the same type as the columns, where they fit: otherwise SciPy makes both wide."""
    return ends.astype(np.int32) if ends[-1] < 2**31 else ends


def emptied(items: deque[Item]) -> Iterator[Item]:
    """The items one after another, each gone from the queue when it is given.

    >>> queue = deque([1, 2, 3])
    >>> list(emptied(queue)), len(queue)
    ([1, 2, 3], 0)
    """
    while items:
        yield items.popleft()


def stacked(made: Iterable[sparse.csr_matrix], width: int, dtype: Any) -> sparse.csr_matrix:
    """The rows of all parts, in their order, as cells of one type; a part is let go once it is copied."""
    from scipy import sparse

    parts = deque(made)
    if len(parts) == 1:
        return parts[0]
    cells, rows = sum(part.nnz for part in parts), sum(part.shape[0] for part in parts)
    narrow = np.int32 if cells < 2**31 else np.int64
    indptr = np.zeros(rows + 1, dtype=narrow)
    indices, data = np.empty(cells, dtype=narrow), np.empty(cells, dtype=dtype)
    row = cell = 0
    for part in emptied(parts):
        last, end = row + part.shape[0], cell + part.nnz
        np.add(part.indptr[1:], cell, out=indptr[row + 1 : last + 1], dtype=narrow)
        indices[cell:end], data[cell:end] = part.indices, part.data
        row, cell = last, end
    whole = sparse.csr_matrix((data, indices, indptr), shape=(rows, width))
    whole.has_canonical_format = True
    return whole


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
