"""Coefficients that make the classes of rows likeliest given their features, held back by a penalty."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from softcount.classify.descent import lowest
from softcount.classify.indicators import WideFeatures
from softcount.numerics.logspace import softmax_rows
from softcount.records import dataclass

LOOKED_AT = 4096
"""Rows that the shape of the problem is judged by."""
LOOKED_CLOSER = 16384
"""The same where it is that around a start, near which the optimum is taken to be."""
MOST_TOGETHER = 400
"""Indicators whose dependence on each other is allowed for when steps are scaled; the others are scaled one by one."""


@dataclass(frozen=True, eq=False)
class Features:
    """Rows as sparse indicators, of which the first stands for nothing known, beside a few dense columns.

    The first `together` indicators, and the dense columns, are allowed to depend on each other when steps are scaled.
    """

    indicators: WideFeatures
    dense: np.ndarray
    together: int = MOST_TOGETHER

    @property
    def width(self) -> int:
        return self.indicators.width + int(self.dense.shape[1])

    def __len__(self) -> int:
        return len(self.indicators)

    def product(self, coefficients: np.ndarray) -> np.ndarray:
        """(rows x columns) sums of the coefficients that each row points at, and along its dense columns."""
        cut = self.indicators.width
        found = self.indicators.product(coefficients[:cut])
        if self.dense.shape[1]:
            found += self.dense @ coefficients[cut:]
        return found

    def turned(self, residuals: np.ndarray) -> np.ndarray:
        """(width x columns) sums over the rows."""
        own = self.indicators.turned(residuals)
        return np.concatenate([own, self.dense.T @ residuals]) if self.dense.shape[1] else own

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean products of the features at both ends, and mean squares of those between, by some of the rows."""
        step = np.unique(np.linspace(0, len(self) - 1, min(LOOKED_AT, len(self))).astype(int))
        some, first = self.indicators.take(step), min(self.together, self.indicators.width)
        near = np.hstack([some.first(first), self.dense[step]])
        squares = some.squares(np.ones(len(step)))[first:] / len(step)
        return near.T @ near / len(step), squares


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """Rows of known class: the loss of coefficients, its slope, and coordinates in which it is about round.

    Of two classes only the difference is learned. `penalty` is that of each feature: half of it times its squared
    coefficients, summed over the classes, is added to the loss; or how far they are from those it draws `towards`.
    """

    features: Features
    labels: np.ndarray
    weights: np.ndarray
    classes: int
    towards: np.ndarray | None = None  # (width x columns)

    @property
    def columns(self) -> int:
        return 1 if self.classes == 2 else self.classes

    def scores(self, coefficients: np.ndarray) -> np.ndarray:
        """(rows x classes) from (1 + width x columns) coefficients, the first row being the intercept."""
        return spread(self.features.product(coefficients[1:]) + coefficients[0])

    def loss(self, coefficients: np.ndarray, penalty: np.ndarray) -> tuple[float, np.ndarray]:
        """The penalised loss, in nats, and its slope."""
        along = self.features.product(coefficients[1:]) + coefficients[0]
        own = coefficients[1:] if self.towards is None else coefficients[1:] - self.towards
        value, residuals = self._binary(along) if self.classes == 2 else self._several(along)
        share = 0.5 if self.classes == 2 else 1.0
        pull = share * penalty[:, None] * own
        slope = np.concatenate([residuals.sum(axis=0)[None], self.features.turned(residuals) + pull])
        return value + 0.5 * float((pull * own).sum()), slope

    def _binary(self, along: np.ndarray) -> tuple[float, np.ndarray]:
        odds = along[:, 0]
        signed = np.where(self.labels == 1, -odds, odds)
        small = np.exp(-np.abs(signed))
        value = float(self.weights @ (np.log1p(small) + np.maximum(signed, 0.0)))
        wrong = np.where(signed >= 0, 1.0, small) / (1.0 + small) * self.weights
        return value, np.where(self.labels == 1, -wrong, wrong)[:, None]

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
        self, penalty: np.ndarray, start: np.ndarray | None = None, most: int = 60, tol: float = 3e-4
    ) -> np.ndarray:
        """The coefficients of least penalised loss, by L-BFGS in round coordinates."""
        return self.solved(penalty, start, most, tol)[0]

    def solved(
        self,
        penalty: np.ndarray,
        start: np.ndarray | None = None,
        most: int = 60,
        tol: float = 1e-4,
        near: bool = False,
    ) -> tuple[np.ndarray, int]:
        """The same, and how many iterations it took. A start that is `near` also says how the loss is curved."""
        shape = (1 + self.features.width, self.columns)
        frame = _Frame.of(self, penalty) if start is None or not near else _Frame.around(self, penalty, start)

        def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = self.loss(frame.out(flat.reshape(shape)), penalty)
            return value, frame.back(slope).ravel()

        first = np.zeros(shape) if start is None else frame.into(start)
        found, steps = lowest(objective, first.ravel(), most, tol)
        return frame.out(found.reshape(shape)), steps


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    """Coordinates in which a unit step changes the loss about equally in every direction.

    The features at both ends are turned by the inverse root of their second moments, those between scaled one by one;
    the first, of nothing known, stays zero. The intercept is that of a row of these `means`, one column after a nought.
    """

    ends: np.ndarray  # places of the features that are turned
    between: np.ndarray
    root: np.ndarray  # lower triangular
    inverse: np.ndarray  # of the root: a product is done sooner than a solution where there are many
    scale: np.ndarray
    middle: float
    means: np.ndarray  # (1 + width x 1)

    @classmethod
    def of(cls, problem: Conditional, penalty: np.ndarray) -> _Frame:
        curve = float(problem.weights.sum())
        curve *= 0.25 if problem.classes == 2 else (1 - 1 / problem.classes) / problem.classes
        return cls._made(problem, penalty, curve, problem.features.moments, np.zeros(problem.features.width))

    @classmethod
    def around(cls, problem: Conditional, penalty: np.ndarray, start: np.ndarray) -> _Frame:
        """By the curvature at these coefficients, of all classes on average."""
        rows = np.unique(np.linspace(0, len(problem.labels) - 1, min(LOOKED_CLOSER, len(problem.labels))).astype(int))
        some, dense = problem.features.indicators.take(rows), problem.features.dense[rows]
        cut = some.width
        scores = spread(some.product(start[1 : 1 + cut]) + dense @ start[1 + cut :] + start[0])
        shares = softmax_rows(scores)[0]
        heavy = problem.weights[rows] * (shares * (1 - shares)).mean(axis=1)
        heavy = np.maximum(heavy, 1e-6 * problem.weights[rows])
        curve = float(problem.weights.sum() * heavy.sum() / problem.weights[rows].sum())
        heavy /= heavy.sum()
        means = np.concatenate([some.turned(heavy[:, None])[:, 0], dense.T @ heavy])
        first = min(problem.features.together, cut)
        ends = np.hstack([some.first(first), dense]) - np.delete(means, np.s_[first:cut])
        squares = some.squares(heavy)[first:] - means[first:cut] ** 2
        return cls._made(problem, penalty, curve, ((ends.T * heavy) @ ends, np.maximum(squares, 0.0)), means)

    @classmethod
    def _made(
        cls,
        problem: Conditional,
        penalty: np.ndarray,
        curve: float,
        seen: tuple[np.ndarray, np.ndarray],
        means: np.ndarray,
    ) -> _Frame:
        features = problem.features
        moments, squares = seen
        pull = penalty * (0.5 if problem.classes == 2 else 1.0)
        places, first = np.arange(features.width), min(features.together, features.indicators.width)
        between = places[first : first + len(squares)]
        ends = np.concatenate([places[:first], places[first + len(squares) :]])
        root = np.linalg.cholesky(curve * moments + np.diag(pull[ends] + 1e-9))
        back = np.linalg.inv(root)
        scale = 1.0 / np.sqrt(curve * squares + pull[between] + 1e-9)
        shifts = np.append(0.0, means)[:, None]
        return cls(1 + ends, 1 + between, root, back, scale, float(1.0 / np.sqrt(curve)), shifts)

    def out(self, turned: np.ndarray) -> np.ndarray:
        """Coefficients from coordinates."""
        found = np.empty_like(turned)
        found[self.between] = turned[self.between] * self.scale[:, None]
        found[self.ends] = self.inverse.T @ turned[self.ends]
        found[1] = 0.0
        found[0] = 0.0
        found[0] = turned[0] * self.middle - self.means[:, 0] @ found
        return found

    def into(self, plain: np.ndarray) -> np.ndarray:
        """Coordinates of coefficients."""
        found = np.empty_like(plain)
        found[0] = (plain[0] + self.means[:, 0] @ plain) / self.middle
        found[self.between] = plain[self.between] / self.scale[:, None]
        found[self.ends] = self.root.T @ plain[self.ends]
        return found

    def back(self, slope: np.ndarray) -> np.ndarray:
        """The slope along the coordinates from that along the coefficients."""
        found = np.empty_like(slope)
        found[0] = slope[0] * self.middle
        slope = slope - self.means * slope[0]
        found[self.between] = slope[self.between] * self.scale[:, None]
        own = slope[self.ends]
        own[0] = 0.0
        found[self.ends] = self.inverse @ own
        return found


def spread(columns: np.ndarray) -> np.ndarray:
    """Scores of all classes: of two, the one column is that of the second against the first."""
    return np.hstack([np.zeros_like(columns), columns]) if columns.shape[1] == 1 else columns


def folded(columns: np.ndarray) -> np.ndarray:
    """Coefficients of all classes as they are kept: of two classes only the difference."""
    return columns[:, 1:] - columns[:, :1] if columns.shape[1] == 2 else columns
