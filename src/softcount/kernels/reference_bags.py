"""Scoring and counting sparse rows in plain SciPy: what small tables use, and what the loops are held against.

Row i holds column `ids[j]` `counts[j]` times, for j from `indptr[i]` to `indptr[i + 1]`; `indptr` need not begin at 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def score_bags(indptr: np.ndarray, ids: np.ndarray, counts: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """Add to `out` (rows, groups) each row's counts times the `table` (columns, groups)."""
    out += _matrix(indptr, ids, counts, len(table)) @ table


def count_bags_soft(
    indptr: np.ndarray, ids: np.ndarray, counts: np.ndarray, memberships: np.ndarray, width: int
) -> np.ndarray:
    """Counts of every column in every group, (columns, groups), each row shared out by its memberships."""
    return np.ascontiguousarray(_matrix(indptr, ids, counts, width).T @ memberships)


def count_bags_labelled(
    indptr: np.ndarray,
    ids: np.ndarray,
    counts: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray | None,
    out: np.ndarray,
) -> None:
    """Add to `out` (columns, groups) the counts of every column in every group; rows labelled -1 are left out."""
    from scipy import sparse

    from softcount.kernels.reference import check_labels

    width, groups = out.shape
    check_labels(labels, groups)
    known = np.flatnonzero(labels >= 0)
    weight = np.ones(len(known)) if weights is None else weights[known]
    members = sparse.csr_matrix((weight, (known, labels[known])), shape=(len(labels), groups))
    out += (_matrix(indptr, ids, counts, width).T @ members).toarray()


def _matrix(indptr: np.ndarray, ids: np.ndarray, counts: np.ndarray, width: int) -> Any:
    from scipy import sparse

    first, last = indptr[0], indptr[-1]
    return sparse.csr_matrix((counts[first:last], ids[first:last], indptr - first), shape=(len(indptr) - 1, width))
