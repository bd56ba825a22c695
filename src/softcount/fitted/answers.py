"""What every fitted model answers: distributions of columns, drawn rows and imputed cells, written like the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.errors import DataError
from softcount.families.density import Density
from softcount.pictures.inline_html import boxed, small_table, upright_bars
from softcount.table import Chunk
from softcount.table.cell_forms import CellForm, NumberForm, fixed_decimals, restore_cells
from softcount.table.cell_values import cast_to_type
from softcount.table.discretise import IntervalDensity, bins_of
from softcount.table.schema import BLANK, Key, Kind, Schema, apart, labels

CLASS = "(class)"
COUNT = "(count)"

Expect = Callable[[Key, np.ndarray], tuple[np.ndarray, np.ndarray | None]]
"""From a column and places of rows: values to impute and, if they are categories, (rows x levels) probabilities."""


def labels_in(model: Any) -> dict[Key, str]:
    """Return distinct names of all columns and blocks of a model."""
    return labels([*(spec.key for spec in model.schema.fields), *model.families])


def name_apart(model: Any, name: object) -> str:
    """Return the name, changed if necessary so that no column has it."""
    return apart(str(name), set(labels_in(model).values()))


class Conditioned:
    """A fitted model given some values.

    Attributes
    ----------
    log_probability : float
        Logarithm of the probability of what is given; of a density if it holds numbers.
    columns : list
        The columns that have an exact answer, in the order of the table.
    """

    __slots__ = ()

    log_probability: Any
    columns: Any

    def answer(self, of: Any) -> Any:
        """Return category -> probability for a column, or the distribution of a number."""
        raise NotImplementedError

    def answers(self, asked: Iterable[Key]) -> dict[Key, Any]:
        """Return the answer for each column."""
        return {key: self.answer(key) for key in asked}

    def draw(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw new rows as columns by name; given values are kept."""
        raise NotImplementedError


# Distributions of numbers.

LEAST_INSIDE = 1e-3
"""Minimum share of a normal within the bounds of its column; below it the normal is not truncated."""


class NumberAnswer:
    """The distribution of a number that `query` returns.

    Attributes
    ----------
    mean : float
        Mean.
    variance : float
        Variance.
    """

    __slots__ = ()

    mean: Any
    variance: Any

    def cdf(self, x: float) -> float:
        """Return the probability of at most x."""
        raise NotImplementedError

    def _pdf(self, values: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def quantile(self, q: float) -> float:
        """Return a quantile.

        Parameters
        ----------
        q : float
            Probability, above 0 and below 1.

        Returns
        -------
        float
            The value with this share of the distribution below it.
        """
        if not 0 < q < 1:
            raise DataError(f"a quantile needs a probability between 0 and 1, not {q}.")
        return float(self._quantile(q))

    def _quantile(self, q: float) -> float:
        """Return the smallest float x with cdf(x) >= q, by bisection over all floats from 1e-320 to 1e300."""
        most = int(np.array(np.finfo(float).max).view(np.int64))
        lower, upper = -most, most
        with np.errstate(over="ignore"):
            while upper - lower > 1:
                middle = (lower + upper) // 2
                lower, upper = (lower, middle) if self.cdf(_float_at(middle)) >= q else (middle, upper)
        return _float_at(upper)

    def pdf(self, x: Any) -> Any:
        """Return the density; for counts, the probability.

        Parameters
        ----------
        x : float or array
            Values.

        Returns
        -------
        float or ndarray
            Density at each value; infinite at a number that is known.
        """
        found = self._pdf(np.atleast_1d(np.asarray(x, dtype=float)))
        return float(found[0]) if np.ndim(x) == 0 else found

    def _figures(self) -> list[tuple[str, float]]:
        found = [("mean", self.mean), ("deviation", self.variance**0.5)]
        return found + [(f"{100 * share:g} % below", self.quantile(share)) for share in (0.05, 0.5, 0.95)]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(f'{name} {value:.4g}' for name, value in self._figures())}>"

    def _repr_html_(self) -> str:
        figures = self._figures()
        table = small_table([name for name, _ in figures], [[f"{value:.5g}" for _, value in figures]])
        low, high = self.quantile(0.005), self.quantile(0.995)
        if not high > low:
            return boxed("Answer", "a number", [table])
        shares = np.diff([self.cdf(float(edge)) for edge in np.linspace(low, high, 33)])
        return boxed("Answer", "a number", [upright_bars(shares.tolist(), f"{low:.4g}", f"{high:.4g}"), table])


def _float_at(place: int) -> float:
    """Return the float at an index in the ordered list of all floats; 0.0 has index 0."""
    value = float(np.array(abs(place), dtype=np.int64).view(np.float64))
    return value if place >= 0 else -value


class Answer(NumberAnswer, Struct, frozen=True):
    """The distribution of a numeric column: a mixture over the groups; `written` is the form of its cells.

    Normal distributions are truncated to the `bounds` of the column.
    """

    weights: np.ndarray
    density: Density
    written: CellForm | None = None
    bounds: tuple[float, float] | None = None

    @property
    def mean(self) -> float:
        return float(self.weights @ self._moments[0])

    @property
    def variance(self) -> float:
        means, variances = self._moments
        return float(self.weights @ (variances + (means - self.weights @ means) ** 2))

    @property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        means, variances = self.density.moments()
        inside = self._inside
        if inside is None or self.bounds is None:
            return means, variances
        sd, ends = np.sqrt(variances), np.array(self.bounds)[:, None]
        z = (ends - means) / sd
        heights = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) / (inside[1] - inside[0])
        slopes = np.where(np.isfinite(z), z, 0.0) * heights
        shift = heights[0] - heights[1]
        return means + sd * shift, variances * np.maximum(1.0 + slopes[0] - slopes[1] - shift**2, 0.0)

    @property
    def _inside(self) -> np.ndarray | None:
        """The (2 x groups) shares of each group below the two bounds; None if the answer is not truncated."""
        if self.bounds is None or self.density.as_normal() is None:
            return None
        ends = np.stack([self.density.cdf(end) for end in self.bounds])
        return ends if (ends[1] - ends[0] > LEAST_INSIDE).all() else None

    def _pdf(self, values: np.ndarray) -> np.ndarray:
        density = np.exp(self.density.log_pdf(values))
        inside = self._inside
        if inside is not None and self.bounds is not None:
            there = (values >= self.bounds[0]) & (values <= self.bounds[1])
            density = np.where(there[:, None], density / (inside[1] - inside[0]), 0.0)
        return np.asarray(density @ self.weights)

    def cdf(self, x: float) -> float:
        return float(self.weights @ self.group_cdfs(x))

    def group_cdfs(self, x: float) -> np.ndarray:
        """Return the (groups,) shares of each group at or below x."""
        below, inside = self.density.cdf(float(x)), self._inside
        return below if inside is None else np.clip((below - inside[0]) / (inside[1] - inside[0]), 0.0, 1.0)

    @property
    def truncated(self) -> bool:
        return self._inside is not None

    def _quantile(self, q: float) -> float:
        found = NumberAnswer._quantile(self, q)
        return float(np.ceil(found)) if self.density.family.facts.kind.whole else found


class AveragedAnswer(NumberAnswer, Struct, frozen=True):
    """The weighted average of the answers of several models."""

    weights: np.ndarray
    answers: tuple[NumberAnswer, ...]

    @property
    def mean(self) -> float:
        return float(self.weights @ [answer.mean for answer in self.answers])

    @property
    def variance(self) -> float:
        means = np.array([answer.mean for answer in self.answers])
        return float(self.weights @ ([answer.variance for answer in self.answers] + (means - self.mean) ** 2))

    def _pdf(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(self.weights @ np.stack([answer.pdf(values) for answer in self.answers]))

    def cdf(self, x: float) -> float:
        return float(self.weights @ [answer.cdf(x) for answer in self.answers])


class IntervalAnswer(NumberAnswer, Struct, frozen=True):
    """The distribution of a number that a network discretises; `shares` are the probabilities of its bins.

    Within a bin, numbers are distributed as in training.
    """

    shares: np.ndarray
    density: IntervalDensity
    written: CellForm | None = None

    @property
    def mean(self) -> float:
        return float(self.shares @ self.density.means / self.shares.sum())

    @property
    def variance(self) -> float:
        widths, middles = np.diff(self.density.bounds), self.density.bounds[:-1] / 2 + self.density.bounds[1:] / 2
        return float(self._bins @ ((middles - self._bins @ middles) ** 2 + widths**2 / 12))

    @property
    def _bins(self) -> np.ndarray:
        found = (self.shares[:, None] * self.density.shares).ravel()
        return np.asarray(found / found.sum())

    def _pdf(self, values: np.ndarray) -> np.ndarray:
        """Return the density, which is 0 outside the range seen in training."""
        bounds = self.density.bounds
        inside = (values >= bounds[0]) & (values <= bounds[-1])
        return np.where(inside, (self._bins / np.diff(bounds))[bins_of(values, bounds)], 0.0)

    def cdf(self, x: float) -> float:
        return self.density.cdf(self.shares, float(x))

    def _quantile(self, q: float) -> float:
        return float(np.interp(q, np.concatenate([[0.0], np.cumsum(self._bins)]), self.density.bounds))


class LineAnswer(NumberAnswer, Struct, frozen=True):
    """The distribution of `intercept + slope * lead`; `lead` is an answer, or a known number."""

    lead: Any
    slope: float
    intercept: float
    written: CellForm | None = None

    @property
    def mean(self) -> float:
        return float(self.intercept + self.slope * (self.lead if isinstance(self.lead, float) else self.lead.mean))

    @property
    def variance(self) -> float:
        return 0.0 if isinstance(self.lead, float) else float(self.slope**2 * self.lead.variance)

    def _pdf(self, values: np.ndarray) -> np.ndarray:
        if isinstance(self.lead, float):
            return np.where(values == self.mean, np.inf, 0.0)
        return np.asarray(self.lead.pdf((values - self.intercept) / self.slope)) / abs(self.slope)

    def cdf(self, x: float) -> float:
        if isinstance(self.lead, float):
            return float(x >= self.mean)
        below = float(self.lead.cdf((float(x) - self.intercept) / self.slope))
        return below if self.slope > 0 else 1.0 - below

    def _quantile(self, q: float) -> float:
        own = self.lead if isinstance(self.lead, float) else self.lead.quantile(q if self.slope > 0 else 1.0 - q)
        return float(self.intercept + self.slope * own)


def average_answers(weights: np.ndarray, answers: Sequence[Any]) -> Any:
    """Return the answer of several models for one column, each with its weight."""
    if not isinstance(answers[0], dict):
        return AveragedAnswer(weights, tuple(answers))
    levels = dict.fromkeys(level for answer in answers for level in answer)
    parts = list(zip(weights.tolist(), answers, strict=True))
    return {level: float(sum(share * answer.get(level, 0.0) for share, answer in parts)) for level in levels}


# Drawn rows.

MOST_DRAWS = 20_000
"""Maximum number of draws of a cell until it satisfies a condition."""

TRIES = 100
"""Number of redraws of a cell outside the bounds of its column before it is clipped."""

Draw = Callable[[np.ndarray], dict[Key, Any]]
Test = Callable[[Any], np.ndarray]
"""Marks the cells of a column that satisfy a condition."""


def draw_within(draw: Draw, groups: np.ndarray, tests: Mapping[Key, Test]) -> dict[Key, Any]:
    """Draw columns with one cell per group; rows that fail a test are drawn again."""
    columns = draw(groups)
    for _ in range(MOST_DRAWS if tests else 0):
        passed = np.all([test(columns[key]) for key, test in tests.items()], axis=0)
        left = np.flatnonzero(~passed)
        if not len(left):
            return columns
        for key, cells in draw(groups[left]).items():
            _put(columns[key], left, cells)
    if tests:
        raise DataError(
            f"what is given of {next(iter(tests))!r} has a probability too small to draw rows. Give a wider range, "
            f"or a value."
        )
    return columns


def draw_inside(
    draw: Draw, groups: np.ndarray, bounds: Mapping[Key, tuple[float, float]], tests: Mapping[Key, Test]
) -> dict[Key, Any]:
    """Draw columns that pass their tests and lie within their bounds; clip after TRIES redraws."""
    columns = draw_within(draw, groups, tests)
    inside = {key: ends for key, ends in bounds.items() if isinstance(columns.get(key), np.ndarray)}
    for _ in range(TRIES):
        beyond = [(columns[key] < low) | (columns[key] > high) for key, (low, high) in inside.items()]
        left = np.flatnonzero(np.any(beyond, axis=0)) if beyond else np.zeros(0, dtype=np.intp)
        if not len(left):
            return columns
        for key, cells in draw_within(draw, groups[left], tests).items():
            _put(columns[key], left, cells)
    return columns | {key: np.clip(columns[key], low, high) for key, (low, high) in inside.items()}


def _put(column: Any, rows: np.ndarray, cells: Any) -> None:
    if isinstance(column, np.ndarray):
        column[rows] = cells
        return
    for row, cell in zip(rows.tolist(), cells, strict=True):
        column[row] = cell


# Values as the table has them.


def as_written(schema: Schema, key: Key, values: Any) -> Any:
    """Round values like the column's cells and cast them to the column's type."""
    spec = schema.by_key.get(key)
    if spec is None:
        return values
    if spec.kind is Kind.CATEGORICAL and BLANK in spec.levels:
        values = [None if value == BLANK else value for value in values]
    decimals = fixed_decimals(spec.written)
    moments = isinstance(values, np.ndarray) and values.dtype.kind == "f"  # a constant date is also a number
    if not (spec.kind.numeric or moments) or not isinstance(values, np.ndarray):
        if not spec.cells and decimals:  # "1.0" in a text file is the number 1.0
            return [float(value) if isinstance(value, int) else value for value in values]
        return cast_to_type(values, spec.cells, decimals, spec.levels) if spec.cells else values
    found = restore_cells(spec.written, values)
    if spec.kind is Kind.POSITIVE and isinstance(spec.written, NumberForm) and isinstance(found, np.ndarray):
        least = 10.0**-spec.written.digits if spec.written.digits else 1  # positive numbers never round to zero
        found = np.maximum(found, least) if found.dtype.kind in "fi" else found
    return cast_to_type(found, spec.cells, decimals) if spec.cells and isinstance(found, np.ndarray) else found


def levels_as_written(schema: Schema, key: Key, levels: Sequence[object]) -> list[Any]:
    found = as_written(schema, key, list(levels))
    values = found.to_pylist() if hasattr(found, "to_pylist") else list(found)
    return [BLANK if level == BLANK else value for level, value in zip(levels, values, strict=True)]


def fill_as_written(schema: Schema, key: Key, values: np.ndarray) -> np.ndarray:
    found = as_written(schema, key, values.tolist() if values.dtype == object else values)
    if isinstance(found, np.ndarray):
        return found
    filled = found.to_pylist() if hasattr(found, "to_pylist") else found
    numbers = {type(value) for value in filled}
    return np.array(filled, dtype=None if len(numbers) == 1 and numbers <= {int, float} else object)


def absent_cells(schema: Schema, chunk: Chunk, column: Key) -> np.ndarray:
    """Mark the rows with a missing cell that can be imputed.

    A missing text stays missing, and an unseen category is not missing.
    """
    place = schema.places[column]
    if place.store == "bags":
        return np.zeros(chunk.n_rows, dtype=bool)
    values = chunk.column(place)
    return np.asarray(np.isnan(values) if place.store == "reals" else values == 0)
