"""Answers of a fitted model: conditions.conditional distributions, draws and imputed cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from softcount.core.special import softmax_rows
from softcount.errors import DataError
from softcount.families.density import Density, concatenate_groups
from softcount.fitted import conditions, derived_columns
from softcount.models.nodes import Node
from softcount.table import Chunk, Table
from softcount.table.cell_forms import CellForm, NumberForm, fixed_decimals, restore_cells
from softcount.table.cell_values import cast_to_type
from softcount.table.discretise import IntervalDensity, bins_of
from softcount.table.schema import BLANK, Key, Kind, Schema, apart, labels

if TYPE_CHECKING:
    from softcount.fitted.fitted import Fitted

MOST_DRAWS = 20_000
"""Maximum number of draws of a cell until it satisfies a condition."""

TRIES = 100
"""Number of redraws of a cell outside the bounds of its column before it is clipped."""

Draw = Callable[[np.ndarray], dict[Key, Any]]
Test = Callable[[Any], np.ndarray]
"""Marks the cells of a column that satisfy a condition."""


def drawn_within(draw: Draw, groups: np.ndarray, tests: Mapping[Key, Test]) -> dict[Key, Any]:
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
    columns = drawn_within(draw, groups, tests)
    inside = {key: ends for key, ends in bounds.items() if isinstance(columns.get(key), np.ndarray)}
    for _ in range(TRIES):
        beyond = [(columns[key] < low) | (columns[key] > high) for key, (low, high) in inside.items()]
        left = np.flatnonzero(np.any(beyond, axis=0)) if beyond else np.zeros(0, dtype=np.intp)
        if not len(left):
            return columns
        for key, cells in drawn_within(draw, groups[left], tests).items():
            _put(columns[key], left, cells)
    return columns | {key: np.clip(columns[key], low, high) for key, (low, high) in inside.items()}


def _put(column: Any, rows: np.ndarray, cells: Any) -> None:
    if isinstance(column, np.ndarray):
        column[rows] = cells
        return
    for row, cell in zip(rows.tolist(), cells, strict=True):
        column[row] = cell


# Queries: any column given any others, samples, imputed cells.

CLASS = "(class)"
COUNT = "(count)"
LEAST_INSIDE = 1e-3
"""Minimum share of a normal within the bounds of its column; below it the normal is not truncated."""


def labels_in(model: Any) -> dict[Key, str]:
    """Return distinct names of all columns and blocks of a model."""
    return labels([*(spec.key for spec in model.schema.fields), *model.families])


def name_apart(model: Any, name: object) -> str:
    """Return the name, changed if necessary so that no column has it."""
    return apart(str(name), set(labels_in(model).values()))


# -- any column given any others


class Answer(derived_columns.NumberAnswer, Struct, frozen=True):
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
        found = _first_float(self.cdf, q)
        return float(np.ceil(found)) if self.density.family.kind.whole else found


class AveragedAnswer(derived_columns.NumberAnswer, Struct, frozen=True):
    """The weighted average of the answers of several models."""

    weights: np.ndarray
    answers: tuple[Answer, ...]

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

    def _quantile(self, q: float) -> float:
        return _first_float(self.cdf, q)


class IntervalAnswer(derived_columns.NumberAnswer, Struct, frozen=True):
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


def _first_float(cdf: Callable[[float], float], q: float) -> float:
    """Return the smallest float x with cdf(x) >= q, by bisection over all floats from 1e-320 to 1e300."""
    most = int(np.array(np.finfo(float).max).view(np.int64))
    lower, upper = -most, most
    with np.errstate(over="ignore"):
        while upper - lower > 1:
            middle = (lower + upper) // 2
            lower, upper = (lower, middle) if cdf(_float_at(middle)) >= q else (middle, upper)
    return _float_at(upper)


def _float_at(place: int) -> float:
    """Return the float at an index in the ordered list of all floats; 0.0 has index 0."""
    value = float(np.array(abs(place), dtype=np.int64).view(np.float64))
    return value if place >= 0 else -value


def query(model: Fitted, of: Key | None = None, given: Mapping[Key, Any] | None = None) -> Any:
    """Answer for any column given any others: category -> probability, or an `Answer` for a number.

    Without `of`, answer for all columns. A given column has a value, a condition such as `between(1, 2)`, a range (1,
    2) or a list of values.
    """
    given = _mapping(given)
    if isinstance(of, list | set | dict):
        raise DataError(
            f"query: {of!r} names several columns, but this model answers for one. Leave `of` out to get each "
            f"column. A BayesNet answers for several jointly."
        )
    if of in given:
        raise DataError(f"{of!r} is both `of` and given: leave it out of one.")
    known = derived_columns.move_to_leads(model.schema, given)
    rows = conditions.read_given_rows(model, known)
    if of is not None:
        return _answer(model, of, rows, known)
    joined = {column for key in rows.ranges for column in conditions.find_leaf(model, key).columns}
    leaves = {spec.key: conditions.find_leaf(model, spec.key) for spec in model.schema.used if spec.key not in joined}
    columns = {key for key, leaf in leaves.items() if conditions.can_query(leaf) and key not in known}
    for spec, rule in derived_columns.find_derived_fields(model.schema):
        sure = rule.lead is None or (rule.lead in known and conditions.condition_of(known[rule.lead]) is None)
        columns |= {spec.key} if sure or rule.lead in columns else set()
    order = [spec.key for spec in model.schema.fields if spec.key in columns]
    return {
        key: _answer(model, key, rows, known)
        for key in [name_apart(model, CLASS) if model.target is None else model.target, *order]
        if key not in given
    }


def _answer(model: Fitted, of: Key, rows: conditions.RowsGiven, known: Mapping[Key, Any]) -> Any:
    """Answer for a column of the model or for a derived column.

    `known` contains the column itself if a column derived from it is given.
    """
    spec = model.schema.by_key.get(of)
    if spec is not None and spec.derived is not None and not spec.used:
        ask = partial(_answer, model, rows=rows, known=known)
        found = derived_columns.answer_derived(model.schema, spec, ask, known)
        if isinstance(found, dict):
            return dict(zip(levels_as_written(model.schema, of, list(found)), found.values(), strict=True))
        return found
    if spec is None or of == model.target or of not in known:
        return _answer_column(model, of, rows)
    value, condition = known[of], conditions.condition_of(known[of])
    if spec.kind.numeric:
        if condition is not None:
            raise DataError(f"only a range of {of!r} follows from what is given. Give a value.")
        return derived_columns.LineAnswer(float(value), 1.0, 0.0, spec.written)
    allowed = {value} if condition is None else set(conditions.find_allowed_levels(model, of, condition))
    others = {key: x for key, x in known.items() if key != of}
    shares = _answer_column(model, of, conditions.read_given_rows(model, others))
    kept = {level: shares[level] for level in levels_as_written(model.schema, of, sorted(allowed, key=str))}
    return {level: kept.get(level, 0.0) / sum(kept.values()) for level in shares}


def _answer_column(model: Fitted, of: Key, rows: conditions.RowsGiven) -> Any:
    if of in (model.target, name_apart(model, CLASS)):
        return dict(zip(model.names, map(float, rows.groups), strict=True))
    leaf = conditions.find_leaf(model, of)
    conditions.refuse_query(leaf, of)
    for key in rows.ranges:
        if conditions.find_leaf(model, key) is leaf:
            raise conditions.not_together(key, of)
    place, levels = leaf.columns.index(of), leaf.levels_of(leaf.columns.index(of))
    cells = conditions.read_leaf(model, leaf, rows.chunk)
    block = leaf.density(model.estimates)
    weights, density = rows.groups, block.conditional(cells[0], place)
    if len(leaf.columns) > 1 and len(cells) > 1:  # a mixture over groups and rows
        weights = rows.weights.ravel()
        density = concatenate_groups([block.conditional(row, place) for row in cells])
    if levels is None:
        return Answer(weights, density, model.schema[of].written, model.schema[of].bounds)
    shares = map(float, weights @ density.params["probability"])
    return dict(zip(levels_as_written(model.schema, of, levels), shares, strict=True))


def _mapping(given: Any) -> dict[Key, Any]:
    if given is not None and not isinstance(given, Mapping):
        got = type(given).__name__
        raise DataError(f"given is a mapping of columns to values, such as {{'age': 40}}, not an object of type {got}.")
    return dict(given or {})


# -- samples


def draw_columns(
    model: Fitted, n: int, given: Mapping[Key, Any] | None, rng: np.random.Generator
) -> tuple[dict[Key, Any], np.ndarray]:
    """Draw the columns of n new rows under some given values, and the group of each row."""
    given = derived_columns.move_to_leads(model.schema, _mapping(given))
    rows = conditions.read_given_rows(model, given)
    sure, limits = conditions.split_given(model, given)
    groups = rng.choice(model.n_groups, size=n, p=rows.groups / rows.groups.sum())
    chunk = model.single(sure) if limits else rows.chunk
    columns: dict[Key, Any] = {}
    for leaf in model.model.leaves:
        draw = partial(_draw_leaf, model, leaf, given=sure, chunk=chunk, rng=rng)
        own = {key: condition for key, condition in limits.items() if key in leaf.columns}
        bounds = {
            key: ends for key in leaf.columns if (ends := model.schema[key].bounds) is not None and key not in sure
        }
        columns |= draw_inside(draw, groups, bounds, {key: conditions.fits(model, key, own[key]) for key in own})
    return columns, groups


def sample(model: Fitted, n: int, given: Mapping[Key, Any] | None, rng: np.random.Generator) -> dict[str, Any]:
    """Draw n new rows as columns named by text, with the class if classes are known."""
    columns, groups = draw_columns(model, n, given, rng)
    columns = derived_columns.add_derived(model.schema, columns, n)
    order = [spec.key for spec in model.schema.fields if spec.key in columns]
    names = labels([*order, *columns])
    ordered = {name: as_written(model.schema, key, columns[key]) for key, name in names.items()}
    if model.classes is not None:
        name = name_apart(model, CLASS if model.target is None else model.target)
        ordered[name] = [model.classes[g] for g in groups]
    return ordered


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


def _draw_leaf(
    model: Fitted, leaf: Node, groups: np.ndarray, given: Mapping[Key, Any], chunk: Chunk, rng: np.random.Generator
) -> dict[Key, Any]:
    """Draw the columns of one leaf; given values stay, and the rest of their block is drawn given them."""
    held = {c: [given[c]] * len(groups) for c in leaf.columns if c in given}
    if held and len(held) == len(leaf.columns):
        return held
    cells = None
    if held:
        cells = np.where([c in held for c in leaf.columns], conditions.read_leaf(model, leaf, chunk)[0], np.nan)
    values = leaf.density(model.estimates).draw_columns(groups, rng, cells)
    if not leaf.columns:
        return {f"{leaf.key}_{i}": part for i, part in enumerate(values)}
    counts = [model.schema[c].kind is Kind.COUNT for c in leaf.columns]
    typed = [np.asarray(part, np.int64) if whole else part for part, whole in zip(values, counts, strict=True)]
    return dict(zip(leaf.columns, typed, strict=True)) | held


# -- imputed cells


def fills(model: Fitted, table: Table) -> dict[Key, tuple[np.ndarray, np.ndarray]]:
    """Return for each column with missing values the rows (from 0) and the mean or the most probable category."""
    found: dict[Key, list[tuple[np.ndarray, np.ndarray]]] = {}
    leads = {rule.lead for _, rule in derived_columns.find_derived_fields(model.schema)}
    shares: dict[Key, dict[int, np.ndarray]] = {}
    compiled, columns = (
        model.scorer.compile(model),
        [(x, at, key) for x in model.model.leaves for at, key in enumerate(x.columns)],
    )
    for chunk in model.chunks(table):
        joint = model.joint_of(chunk, compiled)
        weights, possible = softmax_rows(joint)[0], np.isfinite(joint).any(axis=1)
        for leaf, place, column in columns:
            rows = np.flatnonzero(absent_cells(model.schema, chunk, column))
            rows = np.setdiff1d(rows, table.outside.get(column, np.zeros(0)) - chunk.start)
            if not len(rows):
                continue
            model.refuse_impossible(chunk, possible | ~np.isin(np.arange(chunk.n_rows), rows))
            cells = conditions.read_leaf(model, leaf, chunk)[rows]
            density = leaf.density(model.estimates)
            values = density.fill(weights[rows], cells, place)
            if (bounds := model.schema[column].bounds) is not None:
                values = np.clip(values, *bounds)
            found.setdefault(column, []).append((rows + chunk.start, values))
            if column in leads and not model.schema[column].kind.numeric and len(leaf.columns) == 1:
                own = weights[rows] @ density.params["probability"]
                shares.setdefault(column, {}).update(zip((rows + chunk.start).tolist(), own, strict=True))
    return join_fills(model.schema, table, found, shares)


def join_fills(
    schema: Schema,
    table: Table,
    found: Mapping[Key, Sequence[tuple[np.ndarray, np.ndarray]]],
    shares: dict[Key, dict[int, np.ndarray]],
) -> derived_columns.Fills:
    """Join the fills of all chunks, add those of derived columns, and write the values like the cells of the column."""
    joined = {key: tuple(np.concatenate(side) for side in zip(*parts, strict=True)) for key, parts in found.items()}
    whole = derived_columns.add_derived_fills(schema, table, joined, shares)
    return {key: (rows, fill_as_written(schema, key, values)) for key, (rows, values) in whole.items()}


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
    store, slot = schema.places[column]
    if store == "bags":
        return np.zeros(chunk.n_rows, dtype=bool)
    values = getattr(chunk, store)[:, slot]
    return np.asarray(np.isnan(values) if store == "reals" else values == 0)


# The distribution of each column in each group: shares of categories, densities over a range.

WHOLE_NUMBERS, POINTS = 49, 97
"""Whole numbers up to which a column has a point for each, and the points of a density curve."""
TAIL = 0.01
"""Probability beyond each end of a range that is computed from the model alone."""


class ColumnShape(Struct, frozen=True):
    """A column in every group: (groups x levels) shares or, for numbers, (groups x points) densities at `points`."""

    key: Key
    levels: Sequence[object] | None
    points: np.ndarray
    heights: np.ndarray
    whole: bool = False


def plain_columns(fitted: Fitted) -> list[Key]:
    """Return the columns that can be queried one by one: no text, no words, no binomial successes."""
    kinds = {column: fitted.schema[column].kind for leaf in fitted.model.leaves for column in leaf.columns}
    return [column for column, kind in kinds.items() if kind.numeric or kind.coded]


def marginal(fitted: Fitted, column: Key) -> tuple[Density, Sequence[object] | None]:
    """Return the density in every group and the categories of one column, also inside a block."""
    leaf = conditions.find_leaf(fitted, column)
    conditions.refuse_query(leaf, column)
    place = leaf.columns.index(column)
    unknown = np.full(len(leaf.columns), np.nan) if fitted.schema[column].kind.numeric else np.zeros(len(leaf.columns))
    return leaf.density(fitted.estimates).conditional(unknown, place), leaf.levels_of(place)


def column_shape(fitted: Fitted, column: Key) -> ColumnShape:
    density, levels = marginal(fitted, column)
    if levels is not None:
        shares = np.asarray(density.params["probability"], dtype=float)
        return ColumnShape(column, levels, np.arange(len(levels)), shares)
    low, high = column_range(fitted, column)
    whole = density.family.kind.whole and high - low < WHOLE_NUMBERS
    points = np.arange(np.floor(low), np.ceil(high) + 1) if whole else np.linspace(low, high, POINTS)
    each = np.eye(fitted.n_groups)
    bounds = fitted.schema[column].bounds
    heights = np.stack([np.asarray(Answer(one, density, bounds=bounds).pdf(points)) for one in each])
    return ColumnShape(column, None, points, heights, whole)


def column_range(fitted: Fitted, column: Key) -> tuple[float, float]:
    """Return the range of nearly all numbers of a column, from the training summary or else from the model."""
    known = None if fitted.record.table is None else fitted.record.table.column(column)
    if known is not None and known.quantiles:
        low, high = known.quantiles[1], known.quantiles[-2]
        room = 0.15 * (high - low)
        low, high = max(low - room, known.quantiles[0]), min(high + room, known.quantiles[-1])
    else:
        density, _ = marginal(fitted, column)
        whole = Answer(fitted.shares, density, bounds=fitted.schema[column].bounds)
        low, high = whole.quantile(TAIL), whole.quantile(1 - TAIL)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
