"""Coefficients that make the classes of rows likeliest given their features, held back by a penalty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from softcount.numerics.late_scipy import sparse

LOOKED_AT = 4096
"""Rows that the shape of the problem is judged by."""
MOST_TOGETHER = 400
"""Indicators whose dependence on each other is allowed for when steps are scaled; the others are scaled one by one."""


@dataclass(frozen=True, eq=False)
class Features:
    """Rows as sparse indicators, of which the first stands for nothing known, beside a few dense columns.

    The first `together` indicators, and the dense columns, are allowed to depend on each other when steps are scaled.
    """

    indicators: sparse.csr_matrix
    dense: np.ndarray
    together: int = MOST_TOGETHER

    @cached_property
    def back(self) -> Any:
        """The same indicators turned, sharing their memory."""
        return self.indicators.T

    @property
    def width(self) -> int:
        return int(self.indicators.shape[1] + self.dense.shape[1])

    def __len__(self) -> int:
        return int(self.indicators.shape[0])

    def product(self, coefficients: np.ndarray) -> np.ndarray:
        """(rows x columns) sums of the coefficients that each row points at, and along its dense columns."""
        cut = self.indicators.shape[1]
        found = self.indicators @ coefficients[:cut]
        if self.dense.shape[1]:
            found += self.dense @ coefficients[cut:]
        return np.asarray(found)

    def turned(self, residuals: np.ndarray) -> np.ndarray:
        """(width x columns) sums over the rows."""
        own = self.back @ residuals
        return np.vstack([own, self.dense.T @ residuals]) if self.dense.shape[1] else np.asarray(own)

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean products of the features at both ends, and mean squares of those between, by some of the rows."""
        step = np.unique(np.linspace(0, len(self) - 1, min(LOOKED_AT, len(self))).astype(int))
        some, first = self.indicators[step], min(self.together, self.indicators.shape[1])
        near = np.hstack([some[:, :first].toarray(), self.dense[step]])
        squares = np.bincount(some.indices, minlength=self.indicators.shape[1])[first:] / len(step)
        return near.T @ near / len(step), squares


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """Rows of known class: the loss of coefficients, its slope, and coordinates in which it is about round.

    Of two classes only the difference is learned. `penalty` is that of each feature: half of it times its squared
    coefficients, summed over the classes, is added to the loss.
    """

    features: Features
    labels: np.ndarray
    weights: np.ndarray
    classes: int

    @property
    def columns(self) -> int:
        return 1 if self.classes == 2 else self.classes

    def scores(self, coefficients: np.ndarray) -> np.ndarray:
        """(rows x classes) from (1 + width x columns) coefficients, the first row being the intercept."""
        return spread(self.features.product(coefficients[1:]) + coefficients[0])

    def loss(self, coefficients: np.ndarray, penalty: np.ndarray) -> tuple[float, np.ndarray]:
        """The penalised loss, in nats, and its slope."""
        own = coefficients[1:]
        along = self.features.product(own) + coefficients[0]
        value, residuals = self._binary(along) if self.classes == 2 else self._several(along)
        share = 0.5 if self.classes == 2 else 1.0
        pull = share * penalty[:, None] * own
        slope = np.vstack([residuals.sum(axis=0), self.features.turned(residuals) + pull])
        return value + 0.5 * float((pull * own).sum()), slope

    def _binary(self, along: np.ndarray) -> tuple[float, np.ndarray]:
        odds = along[:, 0]
        up = self.labels == 1
        small = np.exp(-np.abs(odds))
        value = float(self.weights @ (np.log1p(small) + np.where(up, np.maximum(-odds, 0), np.maximum(odds, 0))))
        share = np.where(odds >= 0, 1.0, small) / (1.0 + small)
        return value, (self.weights * (share - up))[:, None]

    def _several(self, along: np.ndarray) -> tuple[float, np.ndarray]:
        rows = np.arange(len(along))
        along = along - along.max(axis=1, keepdims=True)
        own = along[rows, self.labels]
        shares = np.exp(along)
        total = shares.sum(axis=1)
        value = float(self.weights @ (np.log(total) - own))
        shares /= total[:, None]
        shares[rows, self.labels] -= 1.0
        return value, shares * self.weights[:, None]

    def fitted(
        self, penalty: np.ndarray, start: np.ndarray | None = None, most: int = 60, tol: float = 1e-4
    ) -> np.ndarray:
        """The coefficients of least penalised loss, by L-BFGS in round coordinates."""
        from scipy.optimize import minimize

        shape = (1 + self.features.width, self.columns)
        frame = _Frame.of(self, penalty)

        def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = self.loss(frame.out(flat.reshape(shape)), penalty)
            return value, frame.back(slope).ravel()

        first = np.zeros(shape) if start is None else frame.into(start)
        how = {"maxiter": most, "maxcor": 12, "ftol": tol, "gtol": min(1e-3, 10 * tol)}
        found = minimize(objective, first.ravel(), jac=True, method="L-BFGS-B", options=how)
        return frame.out(found.x.reshape(shape))


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    """Coordinates in which a unit step changes the loss about equally in every direction.

    The features at both ends are turned by the inverse root of their second moments, those between scaled one by one;
    the first, of nothing known, stays zero.
    """

    ends: np.ndarray  # places of the features that are turned
    between: np.ndarray
    root: np.ndarray  # lower triangular
    scale: np.ndarray
    middle: float

    @classmethod
    def of(cls, problem: Conditional, penalty: np.ndarray) -> _Frame:
        features = problem.features
        moments, squares = features.moments
        curve = float(problem.weights.sum())
        curve *= 0.25 if problem.classes == 2 else (1 - 1 / problem.classes) / problem.classes
        pull = penalty * (0.5 if problem.classes == 2 else 1.0)
        places, first = np.arange(features.width), min(features.together, features.indicators.shape[1])
        between = places[first : first + len(squares)]
        ends = np.concatenate([places[:first], places[first + len(squares) :]])
        root = cholesky(curve * moments + np.diag(pull[ends] + 1e-9), lower=True, check_finite=False)
        scale = 1.0 / np.sqrt(curve * squares + pull[between] + 1e-9)
        return cls(1 + ends, 1 + between, root, scale, float(1.0 / np.sqrt(curve)))

    def out(self, turned: np.ndarray) -> np.ndarray:
        """Coefficients from coordinates."""
        found = np.empty_like(turned)
        found[0] = turned[0] * self.middle
        found[self.between] = turned[self.between] * self.scale[:, None]
        found[self.ends] = solve_triangular(self.root, turned[self.ends], lower=True, trans=1, check_finite=False)
        found[1] = 0.0
        return found

    def into(self, plain: np.ndarray) -> np.ndarray:
        """Coordinates of coefficients."""
        found = np.empty_like(plain)
        found[0] = plain[0] / self.middle
        found[self.between] = plain[self.between] / self.scale[:, None]
        found[self.ends] = self.root.T @ plain[self.ends]
        return found

    def back(self, slope: np.ndarray) -> np.ndarray:
        """The slope along the coordinates from that along the coefficients."""
        found = np.empty_like(slope)
        found[0] = slope[0] * self.middle
        found[self.between] = slope[self.between] * self.scale[:, None]
        own = slope[self.ends]
        own[0] = 0.0
        found[self.ends] = solve_triangular(self.root, own, lower=True, check_finite=False)
        return found


def spread(columns: np.ndarray) -> np.ndarray:
    """Scores of all classes: of two, the one column is that of the second against the first."""
    return np.hstack([np.zeros_like(columns), columns]) if columns.shape[1] == 1 else columns


def folded(columns: np.ndarray) -> np.ndarray:
    """Coefficients of all classes as they are kept: of two classes only the difference."""
    return columns[:, 1:] - columns[:, :1] if columns.shape[1] == 2 else columns
