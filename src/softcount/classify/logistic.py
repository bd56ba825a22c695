"""Logistic regression on features: penalised conditional likelihood by L-BFGS."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct, field

from softcount.classify.features import Features, StackedFeatures
from softcount.core.special import softmax_rows

KEPT = 10
"""Steps by which L-BFGS estimates the curvature."""
HALVINGS = 20
ENOUGH = 1e-4
"""Armijo's constant: the share of the decrease promised by the slope that a step must bring."""

Objective = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From (problems x unknowns) points, the value and the gradient of each."""


def minimise(
    objective: Objective, start: np.ndarray, most: int, tol: float, least: float | np.ndarray = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise several independent objectives by L-BFGS; return the minima and the number of steps each took.

    A unit step should be about right in every direction. An objective ends if neither its last step nor a plain
    gradient step of unit length gains more than `tol` times its value (or times one) plus `least`. The gain of the last
    step alone proves nothing: if one direction is far steeper than the rest, the step is short because of that
    direction, and the curvature learned from it makes the next step short as well.
    """
    at = start
    value, slope = objective(at)
    path = _StepHistory()
    going, taken = np.ones(len(at), dtype=bool), np.zeros(len(at), dtype=np.int64)
    plain = np.ones(len(at), dtype=bool)  # the next step follows the gradient alone
    for _ in range(most):
        along = path.direction(slope)
        along[~going] = 0.0
        ahead, lower, new = _search_along(objective, at, value, slope, along)
        gained = lower < value
        path.add(ahead - at, new - slope)
        taken += going & gained
        small = tol * np.maximum(np.abs(lower), 1.0) + least
        unfinished = np.maximum(value - lower, 0.5 * np.vecdot(new, new)) > small
        going &= unfinished & (gained | ~plain)
        plain = going & ~gained
        if plain.any():  # the curvature learned so far misleads
            path.forget(plain)
        at, value, slope = ahead, lower, new
        if not going.any():
            break
    return at, taken


class _StepHistory(Struct):
    """The last steps and gradient changes of every problem."""

    steps: deque[tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=lambda: deque(maxlen=KEPT))
    scale: np.ndarray | float = 1.0

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        """A problem that did not move, or shows no positive curvature, learns nothing."""
        curved, bent = np.vecdot(step, change), np.vecdot(change, change)
        fair = curved > 1e-12 * bent
        over = np.divide(1.0, curved, out=np.zeros_like(curved), where=fair)
        self.scale = np.divide(curved, bent, out=np.broadcast_to(self.scale, bent.shape).copy(), where=fair)
        self.steps.append((step, change, over))

    def forget(self, which: np.ndarray) -> None:
        for _, _, over in self.steps:
            over[which] = 0.0
        self.scale = np.where(which, 1.0, self.scale)

    def direction(self, slope: np.ndarray) -> np.ndarray:
        """The quasi-Newton direction (two-loop recursion)."""
        found = -slope
        shares = []
        for step, change, over in reversed(self.steps):
            share = (np.vecdot(step, found) * over)[:, None]
            shares.append(share)
            found -= share * change
        if self.steps:
            found *= np.broadcast_to(self.scale, (len(found),))[:, None]
        for (step, change, over), share in zip(self.steps, reversed(shares), strict=True):
            found += (share - (np.vecdot(change, found) * over)[:, None]) * step
        return found


def _search_along(
    objective: Objective, at: np.ndarray, value: np.ndarray, slope: np.ndarray, along: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Backtracking line search; a problem stays where it is if no point is low enough."""
    promised = np.vecdot(slope, along)
    share = np.where(promised < 0, 1.0, 0.0)
    for _ in range(HALVINGS):
        ahead = at + share[:, None] * along
        lower, new = objective(ahead)
        far = ~(lower <= value + ENOUGH * share * promised) & (share > 0)
        if not far.any():
            break
        # the lowest point of the parabola through what is known, if it is not too near to either end
        best = -0.5 * promised * share**2 / np.maximum(lower - value - promised * share, 1e-300)
        share = np.where(far, np.minimum(np.maximum(best, 0.1 * share), 0.5 * share), share)
    still = far | (share == 0)
    if still.any():
        ahead, lower = np.where(still[:, None], at, ahead), np.where(still, value, lower)
        new = np.where(still[:, None], slope, new)
    return ahead, lower, new


# Penalised maximum likelihood of the coefficients.

SAMPLED_ROWS = 16384
"""Rows by which the curvature near a start is estimated."""
MOST_STEPS = 60
LARGE = 300.0
"""Scores up to which their exponentials are summed without a shift."""
ROUGH, ROUGH_ROWS = 3e-4, 1e-4
"""Tolerances along a path of penalties: shares of the loss, and nats per row."""
MOST_DECORRELATED = 1_000
"""Features up to which steps are scaled by the full second-moment matrix; inverting 4,000 took 100 s."""


class LogisticProblem(Struct, frozen=True, eq=False):
    """Labelled rows of a penalised logistic regression; of two classes only the difference is fitted.

    `penalty` is that of each feature: half of it times its squared coefficients, summed over the classes, is added to
    the loss.
    """

    features: Features
    labels: np.ndarray
    weights: np.ndarray
    classes: int

    @property
    def columns(self) -> int:
        return 1 if self.classes == 2 else self.classes


class LogisticProblems(Struct, frozen=True, eq=False, dict=True):
    """Problems with the same features in different rows, such as folds, solved side by side: one product serves all."""

    problems: tuple[LogisticProblem, ...]

    @cached_property
    def rows(self) -> int:
        return max(len(problem.labels) for problem in self.problems)

    @cached_property
    def _classes(self) -> np.ndarray:
        """The class of each row as the losses need it: a sign, or a place among the flattened scores."""
        labels = np.concatenate([_pad(problem.labels, self.rows) for problem in self.problems])
        columns = self.problems[0].columns
        return np.where(labels == 1, -1.0, 1.0) if columns == 1 else np.arange(len(labels)) * columns + labels

    @cached_property
    def weights(self) -> np.ndarray:
        return np.concatenate([_pad(problem.weights, self.rows) for problem in self.problems])

    @cached_property
    def features(self) -> StackedFeatures:
        return StackedFeatures.of([problem.features for problem in self.problems])

    def losses(self, coefficients: np.ndarray, penalty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Penalised losses in nats and gradients from (problems x 1 + width x columns) coefficients."""
        problems, _, columns = coefficients.shape
        along = self.features.product(coefficients[:, 1:]) + coefficients[:, :1]
        rowwise = _two_class_rows if self.problems[0].classes == 2 else _many_class_rows
        values, residuals = rowwise(along.reshape(-1, columns), self._classes)
        residuals *= self.weights[:, None]
        own = coefficients[:, 1:]
        pull = (0.5 if self.problems[0].classes == 2 else 1.0) * penalty[:, None] * own
        residuals = residuals.reshape(problems, -1, columns)
        slopes = self.features.transposed_product(residuals) + pull
        slope = np.concatenate([residuals.sum(axis=1)[:, None], slopes], axis=1)
        value = np.vecdot(values.reshape(problems, -1), self.weights.reshape(problems, -1))
        return value + 0.5 * np.vecdot(pull.reshape(problems, -1), own.reshape(problems, -1)), slope

    def path(self, penalties: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """(problems x 1 + width x columns) coefficients under one penalty after the other, to rough tolerances."""
        shapes, starts = [Curvature.of(problem) for problem in self.problems], None
        for penalty in penalties:
            starts, _ = self.solve(penalty, shapes, starts, MOST_STEPS, ROUGH, ROUGH_ROWS)
            yield starts

    def solve(
        self,
        penalty: np.ndarray,
        shapes: Sequence[Curvature],
        starts: np.ndarray | None,
        most: int,
        tol: float,
        each_row: float = 0.0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients of least penalised loss, by L-BFGS in preconditioned coordinates, and the iterations."""
        first = self.problems[0]
        frame = _Coordinates.of(first.features, [shape.penalised(first, penalty) for shape in shapes])
        shape = (len(self.problems), 1 + first.features.width, first.columns)

        def objective(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            values, slopes = self.losses(frame.to_coefficients(flat.reshape(shape)), penalty)
            return values, frame.gradient(slopes).reshape(len(slopes), -1)

        start = np.zeros(shape) if starts is None else frame.from_coefficients(starts)
        least = each_row * self.weights.reshape(len(self.problems), -1).sum(axis=1)
        found, steps = minimise(objective, start.reshape(len(start), -1), most, tol, least)
        return frame.to_coefficients(found.reshape(shape)), steps


def _pad(values: np.ndarray, rows: int) -> np.ndarray:
    return np.concatenate([values, np.zeros(rows - len(values), dtype=values.dtype)])


def _two_class_rows(along: np.ndarray, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Loss of each row, and its derivative by the log-odds; `signs` are -1 for the second class."""
    signed = along[:, 0] * signs
    small = np.exp(-np.abs(signed))
    values = np.log1p(small) + np.maximum(signed, 0.0)
    wrong = np.where(signed >= 0, 1.0, small) / (1.0 + small)
    return values, (wrong * signs)[:, None]


def _many_class_rows(along: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Loss of each row, and its derivatives by the scores; `own` are places of the rows' classes among all scores."""
    if np.abs(along).max(initial=0.0) > LARGE:
        along = along - along.max(axis=1, keepdims=True)
    shares = np.exp(along)
    total = shares @ np.ones(shares.shape[1])
    values = np.log(total) - along.reshape(-1)[own]
    shares /= total[:, None]
    shares.reshape(-1)[own] -= 1.0
    return values, shares


class Curvature(Struct, frozen=True, eq=False):
    """Curvature of the loss: `curve` is that of the intercept, `means` are of the features.

    `moments` are second moments of the features scaled together, `squares` those of each of the others; with a penalty,
    second derivatives.
    """

    curve: float
    moments: np.ndarray
    squares: np.ndarray
    means: np.ndarray

    @classmethod
    def of(cls, problem: LogisticProblem) -> Curvature:
        """At coefficients of 0."""
        curve = float(problem.weights.sum())
        curve *= 0.25 if problem.classes == 2 else (1 - 1 / problem.classes) / problem.classes
        return cls(curve, *problem.features.moments(problem.weights), np.zeros(problem.features.width))

    @classmethod
    def around(cls, problem: LogisticProblem, start: np.ndarray) -> Curvature:
        """At the coefficients `start`, averaged over the classes."""
        sample = np.unique(np.linspace(0, len(problem.labels) - 1, min(SAMPLED_ROWS, len(problem.labels))).astype(int))
        some, given = problem.features.take(sample), problem.weights[sample]
        first, last = some.correlated, some.wide_width
        scores = some.wide @ start[1 : 1 + last] + some.dense @ start[1 + last :] + start[0]
        shares = softmax_rows(expand_classes(np.asarray(scores)))[0]
        heavy = np.maximum(given * (shares * (1 - shares)).mean(axis=1), 1e-6 * given)
        curve = float(problem.weights.sum() * heavy.sum() / given.sum())
        heavy /= heavy.sum()
        means = np.concatenate([some.wide.T @ heavy, some.dense.T @ heavy])
        ends = some.ends - np.delete(means, np.s_[first:last])
        squares = some.squares(heavy)[first:] - means[first:last] ** 2
        return cls(curve, (ends.T * heavy) @ ends, np.maximum(squares, 0.0), means)

    def penalised(self, problem: LogisticProblem, penalty: np.ndarray) -> Curvature:
        """Second derivatives of the loss with a penalty."""
        pull = penalty * (0.5 if problem.classes == 2 else 1.0) + 1e-9
        first, last = problem.features.correlated, problem.features.wide_width
        together = self.curve * self.moments
        together[np.diag_indices(len(together))] += np.concatenate([pull[:first], pull[last:]])
        return Curvature(self.curve, together, self.curve * self.squares + pull[first:last], self.means)


class _Coordinates(Struct, frozen=True, eq=False):
    """Preconditioned coordinates, in which a unit step changes the losses about equally in every direction.

    The features at both ends are multiplied by the inverse Cholesky factor of their second derivatives, the others
    scaled one by one. The first, of missing cells, stays zero. The intercept is that of a row of these `means`, one
    column after a 0. All but the places have a first axis for the problems.
    """

    ends: np.ndarray  # places of the features that are decorrelated
    between: np.ndarray
    root: np.ndarray  # lower triangular, or its diagonal as a column if there are many features
    inverse: np.ndarray  # of the root: a product is faster than solving
    scale: np.ndarray
    middle: np.ndarray
    means: np.ndarray  # (problems x 1 + width x 1)

    @classmethod
    def of(cls, features: Features, shapes: Sequence[Curvature]) -> _Coordinates:
        places = 1 + np.arange(features.width)
        between = slice(features.correlated, features.wide_width)
        together = np.stack([shape.moments for shape in shapes])
        if together.shape[1] > MOST_DECORRELATED:
            root = np.sqrt(np.diagonal(together, axis1=1, axis2=2))[:, :, None]
            inverse = 1.0 / root
        else:
            root = np.linalg.cholesky(together)
            inverse = np.linalg.inv(root)
        scale = 1.0 / np.sqrt(np.stack([shape.squares for shape in shapes]))[:, :, None]
        middle = np.array([1.0 / np.sqrt(shape.curve) for shape in shapes])[:, None]
        means = np.stack([np.concatenate([[0.0], shape.means]) for shape in shapes])[:, :, None]
        return cls(np.delete(places, between), places[between], root, inverse, scale, middle, means)

    def to_coefficients(self, coordinates: np.ndarray) -> np.ndarray:
        found = np.empty_like(coordinates)
        found[:, self.between] = coordinates[:, self.between] * self.scale
        found[:, self.ends] = _multiply(self.inverse.mT, coordinates[:, self.ends])
        found[:, :2] = 0.0
        found[:, 0] = coordinates[:, 0] * self.middle - (self.means.mT @ found)[:, 0]
        return found

    def from_coefficients(self, plain: np.ndarray) -> np.ndarray:
        found = np.empty_like(plain)
        found[:, 0] = (plain[:, 0] + (self.means.mT @ plain)[:, 0]) / self.middle
        found[:, self.between] = plain[:, self.between] / self.scale
        found[:, self.ends] = _multiply(self.root.mT, plain[:, self.ends])
        return found

    def gradient(self, slope: np.ndarray) -> np.ndarray:
        """The gradient by the coordinates from that by the coefficients."""
        found = np.empty_like(slope)
        found[:, 0] = slope[:, 0] * self.middle
        slope = slope - self.means * slope[:, :1]
        found[:, self.between] = slope[:, self.between] * self.scale
        own = slope[:, self.ends]
        own[:, 0] = 0.0
        found[:, self.ends] = _multiply(self.inverse, own)
        return found


def _multiply(matrix: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The product with a matrix, or with a diagonal matrix given as a row or a column."""
    if 1 in matrix.shape[1:]:
        return np.asarray(matrix.reshape(len(matrix), -1, 1) * columns)
    return np.asarray(matrix @ columns)


def expand_classes(columns: np.ndarray) -> np.ndarray:
    """Scores of all classes from kept columns: of two classes only the second against the first is kept."""
    return np.hstack([np.zeros_like(columns), columns]) if columns.shape[1] == 1 else columns


def contrast_classes(columns: np.ndarray) -> np.ndarray:
    """The columns to keep: of two classes only the difference."""
    return columns[:, 1:] - columns[:, :1] if columns.shape[1] == 2 else columns


def contrast_first(columns: np.ndarray) -> np.ndarray:
    """Subtract the first of two columns from both; leave more columns as they are."""
    return columns - columns[:, :1] if columns.shape[1] == 2 else columns
