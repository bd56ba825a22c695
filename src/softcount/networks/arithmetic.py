"""Sums of products, in plain numbers or in logarithms, and largest products: what messages are computed with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from softcount.networks.row_evidence import Array
from softcount.records import dataclass


@dataclass(frozen=True)
class Arithmetic:
    """What is a product, a quotient, a total over the first axis, nothing, one; and the least number to divide by.

    With that least number, nothing over nothing is nothing.
    """

    times: np.ufunc
    over: np.ufunc
    total: Callable[[Array], Array]
    zero: float
    one: float
    least: float

    def logarithm(self, values: Array) -> Array:
        return np.asarray(np.log(values) if self is PLAIN else values)

    def quotient(self, values: Array, divisor: Array) -> Array:
        return np.asarray(self.over(values, np.maximum(divisor, self.least)))

    def product(self, parts: Sequence[Array]) -> Array:
        """From small to large, so that the largest is gone through as late as possible."""
        return reduce(self.times, sorted(parts, key=_size)) if len(parts) > 1 else parts[0]

    def mix(self, table: Array, own: Array | None, low: float) -> Array:
        """The total of a table (own, rest, lanes) over what is its own, (rest, lanes).

        `low` is at most the least number in the table that is not zero.
        """
        if own is None:
            return self.total(table)
        if self is PLAIN and table.shape[-1] == 1:
            # Nobody hears of an underflow inside a matrix product: provoke it beforehand.
            np.multiply(own, low)
            return np.asarray(table[:, :, 0].T @ own)
        return self.total(self.times(table, own[:, None]))

    def margin(self, values: Array, axes: tuple[int, ...]) -> Array:
        """The total over these axes."""
        if self is PLAIN:
            return np.asarray(np.add.reduce(values, axis=axes))
        front = np.moveaxis(values, axes, range(len(axes)))
        return self.total(front.reshape(-1, *front.shape[len(axes) :]))


def _size(values: Array) -> int:
    return values.size


def _log_total(logs: Array) -> Array:
    top = np.maximum(logs.max(axis=0), LEAST_LOG)
    return np.asarray(np.log(np.exp(logs - top).sum(axis=0)) + top)


LEAST_LOG = float(np.finfo(float).min)
PLAIN = Arithmetic(np.multiply, np.divide, np.add.reduce, 0.0, 1.0, float(np.finfo(float).tiny))
LOGS = Arithmetic(np.add, np.subtract, _log_total, -np.inf, 0.0, LEAST_LOG)
MAXIMA = Arithmetic(np.add, np.subtract, np.maximum.reduce, -np.inf, 0.0, LEAST_LOG)
