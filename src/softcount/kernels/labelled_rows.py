"""Rows of known group: how many there are, and what counting them has in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from softcount.kernels.jit import overload, register_jitable
from softcount.kernels.lanes import fused
from softcount.kernels.reference import check_labels


def count_labels(labels: np.ndarray, weights: np.ndarray | None, n_groups: int) -> np.ndarray:
    """As in `reference`."""
    check_labels(labels, n_groups)
    return np.asarray(_count_labels(labels, weights, n_groups), dtype=np.float64)


@fused
def _count_labels(labels: np.ndarray, weights: Any, n_groups: int) -> np.ndarray:
    sums: np.ndarray = empty_sums(weights, n_groups)
    for i in range(labels.size):
        if labels[i] >= 0:
            sums[labels[i]] += 1 if weights is None else weights[i]
    return sums


def empty_sums(weights: Any, size: int) -> Any:
    """Integers while rows count one each, which is exact (a call never has 2^31 rows); else doubles."""
    raise NotImplementedError


@overload(empty_sums)
def _empty_sums(weights: Any, size: Any) -> Any:
    kind = np.int32 if isinstance(weights, types.NoneType) else np.float64
    return lambda weights, size: np.zeros(size, kind)


@register_jitable
def weights_from(weights: Any, start: int) -> Any:
    """Row weights from a row on; None for all ones."""
    return None if weights is None else weights[start:]
