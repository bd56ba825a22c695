"""Blocks of rows made one matrix, without holding all of it twice."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from scipy import sparse

Item = TypeVar("Item")


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
