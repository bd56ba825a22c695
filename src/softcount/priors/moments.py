"""What normal columns are learned from: rows, their mean, and how far they scatter around it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from softcount.errors import DataError
from softcount.priors.distribution import either, nonnegative, numbers, require

EITHER = "Give either values, or rows with their mean and sum_squares (of the differences from that mean)."


class Moments(NamedTuple):
    """Rows, their mean (0 where there are no rows) and the sum of squared differences from it."""

    rows: np.ndarray
    mean: np.ndarray
    sum_squares: np.ndarray


def moments(
    values: ArrayLike | None,
    weights: ArrayLike | None,
    rows: ArrayLike | None,
    mean: ArrayLike | None,
    sum_squares: ArrayLike | None,
) -> Moments:
    """The moments of the values (rows on the last axis, NaN is missing), or those given, checked."""
    either(values, (rows, mean, sum_squares), EITHER)
    if values is not None:
        return _of_values(*weighted(values, weights))
    no_weights(weights)
    return _checked(nonnegative("rows", rows), numbers("mean", mean), nonnegative("sum_squares", sum_squares))


def weighted(values: ArrayLike, weights: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    """The values (rows last) and how much each counts: 1 unless said, 0 where the value is missing.

    Weights may have groups before their rows: the same values then teach each group by its own weights.
    """
    array = np.atleast_1d(numbers("values", values))
    require(~np.isinf(array), array, "a value", "Values are finite, or NaN where missing.", ("group", "row"))
    if weights is not None:
        array, shares = np.broadcast_arrays(array, row_weights(weights, array.shape))
        return array, np.where(np.isnan(array), 0.0, shares)
    return array, (~np.isnan(array)).astype(float)


def row_weights(weights: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """One weight for each row of values of this shape (rows last), checked."""
    remedy = "Weights are finite and 0 or more: a weight of 2 is the row twice."
    shares = nonnegative("a weight", weights, remedy, ("group", "row"))
    right = shares.ndim > 0 and shares.shape[-1] == shape[-1]
    if not right or any(a != b and 1 not in (a, b) for a, b in zip(shares.shape[::-1], shape[::-1], strict=False)):
        raise DataError(f"weights have shape {shares.shape}, the rows {shape}. Give one weight per row, rows last.")
    return shares


def no_weights(weights: ArrayLike | None) -> None:
    """Refuse weights where there are no values to weigh."""
    if weights is not None:
        raise DataError("weights go with values. Sums are weighed already: leave weights out.")


def _of_values(array: np.ndarray, weights: np.ndarray) -> Moments:
    seen = weights > 0
    rows = weights.sum(axis=-1)
    first = _first(array, seen)
    apart = np.where(seen, array - first, 0.0)  # from the first value: equal values then scatter by exactly 0
    centre = (weights * apart).sum(axis=-1, keepdims=True) / np.where(rows > 0, rows, 1.0)[..., None]
    squares = (weights * np.square(np.where(seen, apart - centre, 0.0))).sum(axis=-1)
    return Moments(rows, (first + centre)[..., 0], squares)


def _first(array: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The first value that counts, on a last axis of one; 0 where there is none."""
    if array.shape[-1] == 0:
        return np.zeros((*array.shape[:-1], 1))
    picked = np.take_along_axis(array, seen.argmax(axis=-1)[..., None], axis=-1)
    return np.where(seen.any(axis=-1, keepdims=True), picked, 0.0)


def _checked(rows: np.ndarray, mean: np.ndarray, sum_squares: np.ndarray) -> Moments:
    empty = rows == 0
    require(empty | np.isfinite(mean), mean, "mean", "The mean of at least one row is a finite number.")
    require(~empty | (sum_squares == 0), sum_squares, "sum_squares", "No rows scatter by 0.")
    return Moments(rows, np.where(empty, 0.0, mean), sum_squares)
