"""What a normal needs to know of its rows: how many, their mean, and how they scatter around it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from softcount.errors import DataError
from softcount.priors.distribution import nonnegative, numbers, require

EITHER = "Give either values, or rows with their mean and sum_squares (of the differences from that mean)."


class Moments(NamedTuple):
    """Rows, their mean (0 where there are no rows) and the sum of squared differences from it."""

    rows: np.ndarray
    mean: np.ndarray
    sum_squares: np.ndarray


def moments(
    values: ArrayLike | None, rows: ArrayLike | None, mean: ArrayLike | None, sum_squares: ArrayLike | None
) -> Moments:
    """The moments of the values (rows on the last axis, NaN is missing), or those given, checked."""
    given = (rows, mean, sum_squares)
    if values is not None:
        if any(part is not None for part in given):
            raise DataError(EITHER)
        return _of_values(values)
    if any(part is None for part in given):
        raise DataError(EITHER)
    return _checked(nonnegative("rows", rows), numbers("mean", mean), nonnegative("sum_squares", sum_squares))


def _of_values(values: ArrayLike) -> Moments:
    array = np.atleast_1d(numbers("values", values))
    require(~np.isinf(array), array, "a value", "Values are finite, or NaN where missing.", ("group", "row"))
    seen = ~np.isnan(array)
    rows = seen.sum(axis=-1)
    first = _first(array, seen)
    apart = np.where(seen, array - first, 0.0)  # from the first value: equal values then scatter by exactly 0
    centre = apart.sum(axis=-1, keepdims=True) / np.maximum(rows, 1)[..., None]
    squares = np.square(np.where(seen, apart - centre, 0.0)).sum(axis=-1)
    return Moments(rows.astype(float), (first + centre)[..., 0], squares)


def _first(array: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The first value that is there, on a last axis of one; 0 where there is none."""
    if array.shape[-1] == 0:
        return np.zeros((*array.shape[:-1], 1))
    picked = np.take_along_axis(array, seen.argmax(axis=-1)[..., None], axis=-1)
    return np.where(np.isnan(picked), 0.0, picked)


def _checked(rows: np.ndarray, mean: np.ndarray, sum_squares: np.ndarray) -> Moments:
    empty = rows == 0
    require(empty | np.isfinite(mean), mean, "mean", "The mean of at least one row is a finite number.")
    require(~empty | (sum_squares == 0), sum_squares, "sum_squares", "No rows scatter by 0.")
    return Moments(rows, np.where(empty, 0.0, mean), sum_squares)
