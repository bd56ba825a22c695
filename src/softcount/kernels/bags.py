"""Scoring and counting sparse rows, such as words of documents: one pass, all groups side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.kernels.lanes import fused
from softcount.kernels.reference import check_labels


@fused
def score_bags(indptr: np.ndarray, ids: np.ndarray, counts: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """As in `reference`."""
    groups = out.shape[1]
    sums = np.empty(groups)
    for i in range(out.shape[0]):
        sums[:] = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            times, row = counts[j], np.uintp(ids[j])
            for g in range(groups):
                sums[g] += times * table[row, g]
        for g in range(groups):
            out[i, g] += sums[g]


@fused
def count_bags_soft(
    indptr: np.ndarray, ids: np.ndarray, counts: np.ndarray, memberships: np.ndarray, width: int
) -> np.ndarray:
    """As in `reference`."""
    groups = memberships.shape[1]
    out = np.zeros((width, groups))
    for i in range(memberships.shape[0]):
        for j in range(indptr[i], indptr[i + 1]):
            times, row = counts[j], np.uintp(ids[j])
            for g in range(groups):
                out[row, g] += times * memberships[i, g]
    return out


def count_bags_labelled(
    indptr: np.ndarray,
    ids: np.ndarray,
    counts: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray | None,
    out: np.ndarray,
) -> None:
    """As in `reference`."""
    check_labels(labels, out.shape[1])
    _count_labelled(indptr, ids, counts, labels, weights, out)


@fused
def _count_labelled(
    indptr: np.ndarray, ids: np.ndarray, counts: np.ndarray, labels: np.ndarray, weights: Any, out: np.ndarray
) -> None:
    for i in range(labels.size):
        if labels[i] < 0:
            continue
        weight = 1.0 if weights is None else weights[i]
        group = np.uintp(labels[i])
        for j in range(indptr[i], indptr[i + 1]):
            out[np.uintp(ids[j]), group] += weight * counts[j]
