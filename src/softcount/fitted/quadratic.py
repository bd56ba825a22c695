"""Where two classes of normal columns are equally likely: a quadratic, or a line where spreads are shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.errors import DataError
from softcount.records import dataclass
from softcount.table.schema import Key

if TYPE_CHECKING:
    from softcount.fitted.fitted_model import Fitted


@dataclass(frozen=True, slots=True, eq=False)
class Quadratic:
    """Log-odds of one class against another: z' square z + slope' z + constant, where z is x minus the `centre`.

    The centre is the mean of the first class: far from 0 a form in x itself would lose its digits. Where every spread
    is shared by the classes, `square` is 0 and the form a line.
    """

    classes: tuple[Any, Any]
    columns: tuple[Key, ...]
    centre: np.ndarray
    square: np.ndarray
    slope: np.ndarray
    constant: float

    def __call__(self, X: Any) -> np.ndarray:
        """The log-odds of rows of these columns, in their order."""
        z = np.asarray(X, dtype=float).reshape(-1, len(self.columns)) - self.centre
        return np.asarray(np.einsum("ni,ij,nj->n", z, self.square, z) + z @ self.slope + self.constant)

    @property
    def roots(self) -> tuple[float, ...]:
        """Where the two classes are equally likely, from the left: none, one or two values of a single column.

        >>> one = Quadratic(("a", "b"), ("x",), np.array([10.0]), np.array([[1.0]]), np.array([0.0]), -4.0)
        >>> one.roots
        (8.0, 12.0)
        """
        if len(self.columns) != 1:
            raise DataError(f"roots are of one column, and the boundary is in {len(self.columns)}. Call it with rows.")
        a, b, c = float(self.square[0, 0]), float(self.slope[0]), self.constant
        return tuple(sorted(float(self.centre[0] + z) for z in _roots(a, b, c)))


def _roots(a: float, b: float, c: float) -> list[float]:
    if a == 0:
        return [] if b == 0 else [-c / b]
    under = b * b - 4 * a * c
    if under < 0:
        return []
    # The larger root first: the other would be a difference of near equals.
    q = -0.5 * (b + np.copysign(np.sqrt(under), b))
    return [q / a] if q == 0 or under == 0 else [q / a, c / q]


def quadratic_form(model: Fitted, first: Any, second: Any) -> Quadratic:
    """The log-odds of the first class against the second, of a model whose columns are all normal."""
    from scipy.linalg import block_diag

    if model.pool is not None:
        raise DataError(
            "the classes are told by more than naive Bayes, whose boundary alone is a quadratic: NaiveBayes."
        )
    one, other = model.group_of(first), model.group_of(second)
    public, columns = model.params, tuple(column for leaf in model.model.leaves for column in leaf.columns)
    means, spreads = [], []
    for leaf in model.model.leaves:
        found = leaf.family.as_normal(public[leaf.key])
        if found is None:
            raise DataError(
                f"column {leaf.key!r} ({leaf.family.title}) is not normal within the classes, so their boundary is no "
                "quadratic. Quadratic are normal and multinormal columns; to_linear() is for others."
            )
        means.append(found[0][[one, other]])
        spreads.append(found[1][[one, other]])
    mean = np.concatenate(means, axis=1)
    inner = [block_diag(*(np.linalg.inv(spread[side]) for spread in spreads)) for side in (0, 1)]
    logs = [sum(np.linalg.slogdet(spread[side])[1] for spread in spreads) for side in (0, 1)]
    away = mean[0] - mean[1]
    with np.errstate(divide="ignore"):
        prior = np.log(model.shares[one]) - np.log(model.shares[other])
    constant = prior - 0.5 * (logs[0] - logs[1]) + 0.5 * away @ inner[1] @ away
    return Quadratic((first, second), columns, mean[0], 0.5 * (inner[1] - inner[0]), inner[1] @ away, float(constant))
