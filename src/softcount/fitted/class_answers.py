"""Answers of a model of classes given some values: conditional distributions, draws and imputed cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from softcount.core import remedies
from softcount.core.special import log_sum_exp, softmax_rows
from softcount.errors import DataError
from softcount.families.base import family_title
from softcount.families.density import Density, concatenate_groups
from softcount.fitted.answers import (
    CLASS,
    Answer,
    Conditioned,
    Expect,
    LineAnswer,
    as_written,
    draw_inside,
    levels_as_written,
    name_apart,
)
from softcount.fitted.conditions import (
    Condition,
    Levels,
    condition_of,
    evidence_within,
    impossible,
    number_reader,
    within,
)
from softcount.fitted.derived_columns import add_derived, answer_derived, find_derived_fields
from softcount.models.nodes import Node, refuse_families
from softcount.run.local import Runner
from softcount.sources import wording
from softcount.table import Chunk, Table
from softcount.table.chunk import Chunks
from softcount.table.schema import Key, Kind, labels

if TYPE_CHECKING:
    from softcount.fitted.fitted import Fitted

MOST_ROWS = 100_000
"""Maximum number of combinations of categories in blocks that are enumerated."""

Given = Mapping[Key, Any]


# What is given, as rows.


class ClassesGiven(Conditioned, Struct, frozen=True, dict=True):
    """A model of classes given some values, and rows that hold them.

    There is one row per combination of allowed categories in blocks. `known` is what is given, of derived columns that
    of their lead columns. `weights` holds the joint probabilities (rows x groups), and `ranges` the conditions that
    cannot be expressed as cells of a row.
    """

    model: Fitted
    known: Given
    chunk: Chunk
    weights: np.ndarray
    ranges: Mapping[Key, Condition]

    @classmethod
    def of(cls, model: Fitted, known: Given) -> ClassesGiven:
        sure, conditions = split_given(model, known)
        if not conditions:
            chunk = model.single(sure)
            joint = model.joint_of(chunk, model.scorer.compile(model))
            return cls(model, known, chunk, _normalise(model, known, joint), {})
        for key in conditions:
            leaf = find_leaf(model, key)
            if key in model.schema.texts:
                raise DataError(f"column {key!r} is text: the given value must be one document.")
            refuse_query(leaf, key)
        blocks = [key for key in conditions if len(find_leaf(model, key).columns) > 1]
        spread = [key for key in blocks if _levels(model, key) is not None]
        if not model.scorer.has_ranges or (spread and not model.scorer.has_density):
            raise DataError(
                "this model predicts with learned weights, so ranges and sets have no probability. Give single values."
            )
        # For categorical columns of blocks, enumerate the combinations of categories that the conditions allow.
        allowed = {key: find_allowed_levels(model, key, conditions[key]) for key in spread}
        count = prod(map(len, allowed.values()))
        if count > MOST_ROWS:
            raise DataError(
                f"what is given can be met in {count:,} ways, but at most {MOST_ROWS:,} are tried. Give fewer "
                "conditions."
            )
        rows = list(product(*allowed.values()))
        chunk = model.single(sure, {key: [row[place] for row in rows] for place, key in enumerate(allowed)})
        # For one row, score differences between the groups are enough.
        joint = _log_densities(model, chunk) if spread else model.joint_of(chunk, model.scorer.compile(model))
        ranges = {key: condition for key, condition in conditions.items() if key not in spread}
        return cls(model, known, chunk, _normalise(model, known, joint + _range_logs(model, chunk, ranges)), ranges)

    @property
    def groups(self) -> np.ndarray:
        return np.asarray(self.weights.sum(axis=0))

    @cached_property
    def log_probability(self) -> float:
        """The log-density of the given values, and the log-probability that the model predicts for a given class."""
        model = self.model
        refuse_families(model.model.leaves, "has no density")
        joint = _log_densities(model, self.chunk) + _range_logs(model, self.chunk, self.ranges)
        found = float(log_sum_exp(joint.ravel()))
        if self.known.get(model.target) is None:
            return found
        logs = np.asarray(log_sum_exp(joint, axis=0)) - found
        if not self.ranges and len(joint) == 1:
            logs = model.log_proba(Chunks([self.chunk], 1), Runner())[0]  # type: ignore[arg-type]
        return found + float(log_sum_exp(logs[_allowed_groups(model, self.known)]))

    # -- queries

    @property
    def columns(self) -> list[Key]:
        model, known = self.model, self.known
        joined = {column for key in self.ranges for column in find_leaf(model, key).columns}
        leaves = {spec.key: find_leaf(model, spec.key) for spec in model.schema.used if spec.key not in joined}
        found = {key for key, leaf in leaves.items() if not leaf.family.facts.counted and key not in known}
        for spec, rule in find_derived_fields(model.schema):
            sure = rule.lead is None or (rule.lead in known and condition_of(known[rule.lead]) is None)
            found |= {spec.key} if sure or rule.lead in found else set()
        target = name_apart(model, CLASS) if model.target is None else model.target
        return [target, *(spec.key for spec in model.schema.fields if spec.key in found)]

    def answer(self, of: Key) -> Any:
        """Answer for a column of the model or for a derived column.

        What is given contains the column itself if a column derived from it is given.
        """
        model, known = self.model, self.known
        spec = model.schema.by_key.get(of)
        if spec is not None and spec.derived is not None and not spec.used:
            found = answer_derived(model.schema, spec, self.answer, known)
            if isinstance(found, dict):
                return dict(zip(levels_as_written(model.schema, of, list(found)), found.values(), strict=True))
            return found
        if spec is None or of == model.target or of not in known:
            return self._answer_column(of)
        value, condition = known[of], condition_of(known[of])
        if spec.kind.numeric:
            if condition is not None:
                raise DataError(f"only a range of {of!r} follows from what is given. Give a value.")
            return LineAnswer(float(value), 1.0, 0.0, spec.written)
        allowed = {value} if condition is None else set(find_allowed_levels(model, of, condition))
        others = {key: x for key, x in known.items() if key != of}
        shares = ClassesGiven.of(model, others)._answer_column(of)
        kept = {level: shares[level] for level in levels_as_written(model.schema, of, sorted(allowed, key=str))}
        return {level: kept.get(level, 0.0) / sum(kept.values()) for level in shares}

    def _answer_column(self, of: Key) -> Any:
        model = self.model
        if of in (model.target, name_apart(model, CLASS)):
            return dict(zip(model.names, map(float, self.groups), strict=True))
        leaf = find_leaf(model, of)
        refuse_query(leaf, of)
        for key in self.ranges:
            if find_leaf(model, key) is leaf:
                raise not_together(key, of)
        place, levels = leaf.columns.index(of), leaf.levels_of(leaf.columns.index(of))
        cells = read_leaf(model, leaf, self.chunk)
        block = leaf.density(model.estimates)
        weights, density = self.groups, block.conditional(cells[0], place)
        if len(leaf.columns) > 1 and len(cells) > 1:  # a mixture over groups and rows
            weights = self.weights.ravel()
            density = concatenate_groups([block.conditional(row, place) for row in cells])
        if levels is None:
            return Answer(weights, density, model.schema[of].written, model.schema[of].bounds)
        shares = map(float, weights @ density.params["probability"])
        return dict(zip(levels_as_written(model.schema, of, levels), shares, strict=True))

    # -- samples

    def draw_columns(self, n: int, rng: np.random.Generator) -> tuple[dict[Key, Any], np.ndarray]:
        """Draw the columns of new rows by key, and the group of each row."""
        model = self.model
        sure, limits = split_given(model, self.known)
        groups = rng.choice(model.n_groups, size=n, p=self.groups / self.groups.sum())
        chunk = model.single(sure) if limits else self.chunk
        columns: dict[Key, Any] = {}
        for leaf in model.model.leaves:
            draw = partial(_draw_leaf, model, leaf, given=sure, chunk=chunk, rng=rng)
            tests = {key: _test(model, key, condition) for key, condition in limits.items() if key in leaf.columns}
            bounds = {
                key: ends for key in leaf.columns if (ends := model.schema[key].bounds) is not None and key not in sure
            }
            columns |= draw_inside(draw, groups, bounds, tests)
        return columns, groups

    def draw(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw new rows as columns named by text, with the class if classes are known."""
        model = self.model
        columns, groups = self.draw_columns(n, rng)
        columns = add_derived(model.schema, columns, n)
        order = [spec.key for spec in model.schema.fields if spec.key in columns]
        names = labels([*order, *columns])
        ordered = {name: as_written(model.schema, key, columns[key]) for key, name in names.items()}
        if model.classes is not None:
            name = name_apart(model, CLASS if model.target is None else model.target)
            ordered[name] = [model.classes[g] for g in groups]
        return ordered


def split_given(model: Fitted, given: Given) -> tuple[dict[Key, Any], dict[Key, Condition]]:
    """Split given values into single values and conditions; the class column is dropped."""
    found = {key: condition_of(value) for key, value in given.items() if key != model.target}
    conditions = {key: condition for key, condition in found.items() if condition is not None}
    return {key: given[key] for key in found if key not in conditions}, conditions


def _log_densities(model: Fitted, chunk: Chunk) -> np.ndarray:
    """Return (rows x groups) logs of share times density."""
    ready = model.model.prepare(chunk)
    joint = model.model.score(ready, model.model.compile(model.estimates), slice(0, chunk.n_rows))
    return np.asarray(joint + np.broadcast_to(ready.base, chunk.n_rows)[:, None])


def _allowed_groups(model: Fitted, given: Given) -> np.ndarray:
    """Mark the groups that what is given of the class allows."""
    known = given.get(model.target)
    if known is None:
        return np.ones(model.n_groups, dtype=bool)
    condition = condition_of(known)
    if condition is None:
        return np.asarray(np.arange(model.n_groups) == model.group_of(known))
    return condition.allows(Levels(wording.column(model.target), model.names))


def _normalise(model: Fitted, given: Given, joint: np.ndarray) -> np.ndarray:
    """Return the joint probabilities of rows and groups, limited to the groups allowed by the class condition."""
    joint[:, ~_allowed_groups(model, given)] = -np.inf
    weights, evidence = softmax_rows(joint.reshape(1, -1))
    if not np.isfinite(evidence).all():
        raise impossible()
    return weights.reshape(joint.shape)


# Columns and their leaves.


def find_leaf(model: Fitted, column: Key) -> Node:
    for leaf in model.model.leaves:
        if column in (leaf.columns or (leaf.key,)):
            return leaf
    known = [str(c) for leaf in model.model.leaves for c in leaf.columns]
    known += [] if model.target is None else [str(model.target)]
    hint = remedies.similar(column, known, f"It has: {', '.join(known)}.", any_case=True)
    raise DataError(f"the model has no column {column!r}. {hint}")


def read_leaf(model: Fitted, leaf: Node, chunk: Chunk) -> np.ndarray:
    """Return the (rows x columns) codes or numbers of a leaf's columns."""
    return np.stack([chunk.column(model.schema.places[key]).astype(float) for key in leaf.columns], axis=1)


def refuse_query(leaf: Node, column: Key) -> None:
    if leaf.family.facts.words:
        raise DataError(
            f"{column!r} ({family_title(leaf.family)}) cannot be queried: sample() draws documents or sequences."
        )
    if leaf.family.facts.counted:
        raise DataError(
            f"{column!r} is part of a {leaf.family.name} block, whose size is not modelled: it cannot be queried."
        )


def _levels(model: Fitted, key: Key) -> Levels | None:
    leaf = find_leaf(model, key)
    levels = leaf.levels_of(leaf.columns.index(key))
    return None if levels is None else Levels(wording.column(key), levels)


def find_allowed_levels(model: Fitted, key: Key, condition: Condition) -> list[Any]:
    """Return the categories of a column that a condition allows; raise if there are none."""
    own = _levels(model, key)
    assert own is not None
    found = [level for level, allowed in zip(own.levels, condition.allows(own), strict=True) if allowed]
    if not found:
        raise DataError(f"what is given of column {key!r} ({condition!r}) leaves none of its levels possible.")
    return found


def _range_logs(model: Fitted, chunk: Chunk, ranges: Mapping[Key, Condition]) -> np.ndarray:
    """Return (rows x groups) log-probabilities of the conditions given the cells of each row."""
    found = np.zeros((chunk.n_rows, model.n_groups))
    leaves, keys = {key: find_leaf(model, key) for key in ranges}, [x.key for x in model.model.leaves]
    for key, leaf in leaves.items():
        other = next((k for k, own in leaves.items() if own is leaf and k != key), None)
        if other is not None:
            raise not_together(key, other)
        density, place = leaf.density(model.estimates), leaf.columns.index(key)
        each = [density.conditional(row, place) for row in read_leaf(model, leaf, chunk)]
        levels = _levels(model, key)
        if levels is None:
            pieces = ranges[key].pieces(number_reader(model, key))
            shares = [evidence_within(key, density, pieces) for density in each]
        else:
            find_allowed_levels(model, key, ranges[key])
            shares = [density.params["probability"] @ ranges[key].allows(levels) for density in each]
        with np.errstate(divide="ignore"):
            found += model.scorer.leaf_weights(model)[keys.index(leaf.key)] * np.log(shares)
    return found


def not_together(key: Key, other: Key) -> DataError:
    """Return the error for a range on one column of a block while another column of the block is unknown."""
    return DataError(
        f"only a range of {key!r} is given, and {other!r} is of the same block: together they have no exact answer. "
        f"Give a number in place of the range."
    )


def _test(model: Fitted, key: Key, condition: Condition) -> Callable[[Any], np.ndarray]:
    if _levels(model, key) is not None:
        allowed = set(find_allowed_levels(model, key, condition))
        return lambda cells: np.array([cell in allowed for cell in cells], dtype=bool)
    return partial(within, condition.pieces(number_reader(model, key)))


def _draw_leaf(
    model: Fitted, leaf: Node, groups: np.ndarray, given: Mapping[Key, Any], chunk: Chunk, rng: np.random.Generator
) -> dict[Key, Any]:
    """Draw the columns of one leaf; given values stay, and the rest of their block is drawn given them."""
    held = {c: [given[c]] * len(groups) for c in leaf.columns if c in given}
    if held and len(held) == len(leaf.columns):
        return held
    cells = None
    if held:
        cells = np.where([c in held for c in leaf.columns], read_leaf(model, leaf, chunk)[0], np.nan)
    values = leaf.density(model.estimates).draw_columns(groups, rng, cells)
    if not leaf.columns:
        return {f"{leaf.key}_{i}": part for i, part in enumerate(values)}
    counts = [model.schema[c].kind is Kind.COUNT for c in leaf.columns]
    typed = [np.asarray(part, np.int64) if whole else part for part, whole in zip(values, counts, strict=True)]
    return dict(zip(leaf.columns, typed, strict=True)) | held


# Imputed cells.


def expected_cells(model: Fitted, table: Table) -> Iterator[tuple[Chunk, Expect]]:
    """Yield every chunk with a function that imputes cells of it; a column of a block has no shares of categories."""
    compiled = model.scorer.compile(model)
    for chunk in model.chunks(table):
        joint = model.joint_of(chunk, compiled)
        yield chunk, partial(_expect, model, chunk, softmax_rows(joint)[0], np.isfinite(joint).any(axis=1))


def _expect(
    model: Fitted, chunk: Chunk, weights: np.ndarray, possible: np.ndarray, column: Key, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    model.refuse_impossible(chunk, possible | ~np.isin(np.arange(chunk.n_rows), rows))
    leaf = find_leaf(model, column)
    density = leaf.density(model.estimates)
    values = density.fill(weights[rows], read_leaf(model, leaf, chunk)[rows], leaf.columns.index(column))
    if (bounds := model.schema[column].bounds) is not None:
        values = np.clip(values, *bounds)
    alone = len(leaf.columns) == 1 and not model.schema[column].kind.numeric
    return values, weights[rows] @ density.params["probability"] if alone else None


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
    leaf = find_leaf(fitted, column)
    refuse_query(leaf, column)
    place = leaf.columns.index(column)
    unknown = np.full(len(leaf.columns), np.nan) if fitted.schema[column].kind.numeric else np.zeros(len(leaf.columns))
    return leaf.density(fitted.estimates).conditional(unknown, place), leaf.levels_of(place)


def column_shape(fitted: Fitted, column: Key) -> ColumnShape:
    density, levels = marginal(fitted, column)
    if levels is not None:
        shares = np.asarray(density.params["probability"], dtype=float)
        return ColumnShape(column, levels, np.arange(len(levels)), shares)
    low, high = column_range(fitted, column)
    whole = density.family.facts.kind.whole and high - low < WHOLE_NUMBERS
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
