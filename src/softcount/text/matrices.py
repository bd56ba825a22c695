"""Blocks of counted words as sparse matrices, and matrices put together without holding all of it twice."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from softcount.text.block import Block
from softcount.text.size import worth_bytes

if TYPE_CHECKING:
    from scipy import sparse

Item = TypeVar("Item")


def matrix_of(block: Block, columns: np.ndarray, width: int, dtype: Any = np.float64) -> sparse.csr_matrix:
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
