"""Rows prepared for learning: encoded, counted, anchored, and checked for degenerate columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter, is_
from typing import Any, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core.counts import ROOT, Counts
from softcount.core.special import least_share
from softcount.errors import DataError
from softcount.families import How, floors
from softcount.learn.initialise import Measures, Sketch, sketch_rows
from softcount.learn.record import Plan, count_cells, retry_wider
from softcount.models.base import ClassModel, tally_equally
from softcount.models.batched import SideBySide, find_spikes
from softcount.models.nodes import Imagined, Node, Params, refuse_families
from softcount.priors import Older
from softcount.run.local import HeldRows, Rows, Runner
from softcount.table import Chunk, Settled, Table
from softcount.table.chunk import reach_of
from softcount.table.schema import Kind, Schema

NO_ROWS = 1e-6
"""Rows below which a group counts as empty."""
SLACK = 1e-6


def with_floors(leaves: tuple[Node, ...], schema: Schema, sketch: Sketch) -> tuple[Node, ...]:
    """The leaves with the least variance of every column of numbers, by its spread and its rounding."""
    logged = {column for leaf in leaves if leaf.family.facts.kind.logged for column in leaf.columns}
    floors = {}
    for place, spec in enumerate(schema.stored("reals")):
        values = sketch.chunk.reals[:, place]
        there = ~np.isnan(values)
        values = np.log(values[there]) if spec.key in logged else values[there]
        floors[spec.key] = least_share(values, sketch.weights[there])
    found = []
    for leaf in leaves:
        own = [floors[column] for column in leaf.columns if column in floors]
        if own:
            least, rounded = min(floor.share for floor in own), all(floor.rounded for floor in own)
            leaf = replace(leaf, setting=replace(leaf.setting, floor=least, rounded=rounded))
        found.append(leaf)
    return tuple(found)


def spikes(model: ClassModel, params: Params, imagined: Imagined, counts: Counts) -> np.ndarray:
    """Which groups are spikes, as in `find_spikes`; counts are by bundle."""
    bundles = model.nodes.bundles
    hypers = {bundle.name: imagined.of(bundle) for bundle in bundles}
    return find_spikes(bundles, params, hypers, counts.arrays, (model.groups,), fixed=imagined.fixed)


def starved(model: ClassModel, rows: np.ndarray, how: str) -> np.ndarray:
    """Which groups have fewer rows than their widths need under `ml`; with a prior, none."""
    if how != "ml":
        return np.zeros(rows.shape, dtype=bool)
    needed = max([floors.rows_needed(leaf.family, leaf.setting) for leaf in model.leaves], default=0.0)
    return np.asarray(rows < needed - SLACK)


def sizes(counts: Counts) -> np.ndarray:
    return counts[ROOT].ravel()


def dead(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows < NO_ROWS)


def scale_to_rows(sizes: np.ndarray, n_rows: int) -> np.ndarray:
    """Rows of each group.

    Weights that sum to less than the number of rows are taken as shares of it: a hundred rows of weight 0.01 are not
    one row.
    """
    whole = sizes.sum(axis=0)
    return sizes * np.where((whole > 0) & (whole < n_rows), n_rows / np.where(whole > 0, whole, 1.0), 1.0)


# Preparing rows: read, settle categories and encode.

MIXTURE_FLOOR = 1e-6
EXACT_PASSES = 8
"""Passes over the table, about, that a mixture makes once its initialisations have been raced."""
SHARED_END, SHARED_ROWS = 0.02, 5
"""The share and the number of rows that must have the least or greatest number for the range to end there."""
NOT_USED = "y names the class of every row, so it was not used: NaiveBayes learns from known classes."
Result = TypeVar("Result")


def read_all(table: Table, plan: Plan, runner: Runner, classes: Sequence[Any] | None) -> tuple[Rows, Settled]:
    """All rows encoded and kept for further passes, their levels and classes in final order."""
    raw = runner.encoded(table)
    if classes is None and table.sides.labels is not None:
        classes = range(1 + int(table.sides.labels.max(initial=-1)))
    settled = plan.declared.settle(table, classes)
    chunks = runner.settled(table, raw, settled)
    return chunks, plan.declared.with_points(settled, chunks)


def recode_chunks(table: Table, settled: Settled, runner: Runner) -> Rows:
    return HeldRows(map(settled.recoded, table.chunks(runner.map)), runner)


class Prepared(Struct, frozen=True, eq=False):
    """A table read, settled and encoded once, for any number of groups."""

    table: Table
    settled: Settled
    plan: Plan
    chunks: Rows
    one: ClassModel
    ready: Rows
    named: list[Any] | None
    kept: dict[str, Any] = field(default_factory=dict)

    def once(self, name: str, make: Callable[[], Result]) -> Result:
        """Return what is kept under a name, made on first use."""
        if name not in self.kept:
            self.kept[name] = make()
        found: Result = self.kept[name]
        return found

    def model(self, groups: int) -> ClassModel:
        """The model with this many groups; the prepared chunks serve all of them."""
        leaves = self.once("leaves", lambda: with_floors(self.one.leaves, self.settled.schema, self.sketch))
        return self.one.with_leaves(leaves, groups)

    @property
    def sketch(self) -> Sketch:
        """The table's distinct rows, or a sample of them."""
        return self.once("sketch", lambda: _sketch(self.chunks, self.one, self.table))

    def side_by_side(self, model: ClassModel, imagined: Imagined) -> SideBySide | None:
        """The sketched rows for many sets of parameters at once; None if some score is not a product."""
        return SideBySide(model, imagined, self.products) if self.races and not imagined.fixed else None

    @property
    def n_rows(self) -> int:
        return self.ready.n_rows

    @property
    def most_groups(self) -> int:
        return len(self.sketch.weights)

    @property
    def races(self) -> bool:
        return self.products is not None

    @property
    def products(self) -> Any:
        return self.once("products", lambda: self.one.products(self.one.prepare(self.sketch.as_heavy_as_the_table())))

    @property
    def whole(self) -> Counts:
        """Return the counts of all rows by node, as those of one group."""
        return self.once("whole", lambda: self.one.named(self.ready.total(partial(tally_equally, self.one))))

    @property
    def notes(self) -> list[str]:
        return [*self.table.all_notes, *self.settled.notes]


def _sketch(chunks: Rows, model: ClassModel, table: Table) -> Sketch:
    """Sketch the rows in the units of the model: logarithms where it takes them, one unit for shared widths."""
    place = {spec.key: number for number, spec in enumerate(model.schema.stored("reals"))}
    logged = [place[leaf.key] for leaf in model.leaves if leaf.family.facts.kind.logged and leaf.key in place]
    lots: dict[Any, list[int]] = {}
    for leaf in model.leaves:
        if leaf.family.facts.shared_by_columns and leaf.key in place:
            lots.setdefault(leaf.family, []).append(place[leaf.key])
    return sketch_rows(chunks, Measures(logged, list(lots.values())), marked=table.bag_width is None)


def prepare(table: Table, plan: Plan, runner: Runner) -> Prepared:
    """Read, settle and encode a table, for fits with any number of groups."""
    if isinstance(plan.prior, Older):
        raise DataError(
            "prior: an older model's counts are for known classes (NaiveBayes): a mixture's groups have no names. "
            "To start from an older mixture give it as init."
        )
    return retry_wider(table, lambda t: _prepare(t, plan, runner), runner, known_classes=False)


def _prepare(table: Table, plan: Plan, runner: Runner) -> Prepared:
    chunks, settled = read_all(table, plan, runner, plan.named)
    if not chunks.n_rows:
        raise DataError("the table has no rows.")
    check_reach(table, chunks)
    if table.sides.target is not None and table.unknown_labels == 0:
        chunks = chunks.made(partial(replace, labels=None))
        settled = replace(settled, classes=[], notes=[*settled.notes, NOT_USED])
    settled = replace(settled, schema=_with_bounds(settled.schema, chunks, plan))
    settled = replace(settled, notes=[*settled.notes, *empty_notes(settled.schema, chunks)])
    model = model_to_find(table, settled, chunks, plan, EXACT_PASSES, "classes")
    return Prepared(table, settled, plan, chunks, model, chunks.made(model.prepare), settled.classes or None)


def model_to_find(table: Table, settled: Settled, chunks: Rows, plan: Plan, passes: int, groups: str) -> ClassModel:
    """Return the model of all rows as one group, for searches that make so many passes over the table."""
    cells = passes * count_cells(table)
    model = plan.declared.model(settled.schema, 1, cells, MIXTURE_FLOOR, table.bag_width)
    refuse_families(model.leaves, f"is not for {groups} to be found", remedy="")
    if all(leaf.family.facts.exact for leaf in model.leaves):
        return model
    # All rows say what a missing cell is taken for; if they are on other machines, a sample does.
    rows = chunks.here if isinstance(chunks, HeldRows) else [_sketch(chunks, model, table).as_heavy_as_the_table()]
    return with_blanks(model, rows)


def check_reach(table: Table, chunks: Rows) -> None:
    """Raise if numbers lie too far from the first ones to be squared."""
    chunks.total(partial(reach_of, table.schema)).check(table.schema)


def _with_bounds(schema: Schema, chunks: Rows, plan: Plan) -> Schema:
    """The schema with the range of every numeric column whose kind is not declared.

    A column that is never negative begins at 0. An end that many rows share ends the range, as the 72 months of the
    longest contracts do.
    """
    numbers = schema.stored("reals")
    declared = {key for named in plan.declared.families for key in (named if isinstance(named, tuple) else (named,))}
    free = {x.key for x in numbers if x.kind is Kind.REAL and not x.declared and x.key not in declared}
    if plan.declared.everything is not None or not free:
        return schema
    ends: ColumnEnds = chunks.total(find_ends)
    bounds = dict(zip((spec.key for spec in numbers), ends.bounds(), strict=True))
    return replace(
        schema, fields=tuple(replace(x, bounds=bounds[x.key]) if x.key in free else x for x in schema.fields)
    )


class ColumnEnds(NamedTuple):
    """The least and greatest number of every column, the weight of rows that have each, and of rows that have any."""

    least: np.ndarray
    greatest: np.ndarray
    at_least: np.ndarray
    at_greatest: np.ndarray
    rows: np.ndarray

    def __add__(self, other: Any) -> ColumnEnds:
        least, greatest = np.minimum(self.least, other.least), np.maximum(self.greatest, other.greatest)
        sides = (self, other)
        at_least = sum((x.least == least) * x.at_least for x in sides)
        at_greatest = sum((x.greatest == greatest) * x.at_greatest for x in sides)
        return ColumnEnds(least, greatest, np.asarray(at_least), np.asarray(at_greatest), self.rows + other.rows)

    def bounds(self) -> list[tuple[float, float] | None]:
        """The range of every column; None if it is open at both ends."""
        many = np.maximum(SHARED_END * self.rows, SHARED_ROWS)
        low = np.where(self.at_least >= many, self.least, np.where(self.least >= 0, 0.0, -np.inf))
        high = np.where(self.at_greatest >= many, self.greatest, np.inf)
        pairs = zip(low.tolist(), high.tolist(), strict=True)
        return [pair if pair[0] < pair[1] and np.isfinite(pair).any() else None for pair in pairs]


def find_ends(chunk: Chunk) -> ColumnEnds:
    there = np.isfinite(chunk.reals) & (True if chunk.weights is None else chunk.weights[:, None] > 0)
    least = np.where(there, chunk.reals, np.inf).min(axis=0, initial=np.inf)
    greatest = np.where(there, chunk.reals, -np.inf).max(axis=0, initial=-np.inf)
    weights = np.where(there, 1.0 if chunk.weights is None else chunk.weights[:, None], 0.0)
    at_least, at_greatest = (np.where(chunk.reals == end, weights, 0.0).sum(axis=0) for end in (least, greatest))
    return ColumnEnds(least, greatest, at_least, at_greatest, weights.sum(axis=0))


def empty_notes(schema: Schema, chunks: Rows) -> list[str]:
    """Notes on declared columns of numbers without any number."""
    numbers = schema.stored("reals")
    there = chunks.total(count_numbers) if numbers else ()
    empty = [spec.key for spec, count in zip(numbers, there, strict=True) if not count]
    return [f"column {key!r} has no values: its parameters mean nothing. Leave it out." for key in empty]


def count_numbers(chunk: Chunk) -> np.ndarray:
    return np.asarray(np.count_nonzero(~np.isnan(chunk.reals), axis=0))


def weight_lift(chunks: Rows, how: How) -> float:
    """A power of two that brings weights below one to about one on average.

    Maximum likelihood does not depend on it, but tolerances do: with weights of 1e-10 no run gained anything. With a
    prior, weights are relative to it and stay.
    """
    if how != "ml":
        return 1.0
    total, rows = sum(chunks.each(attrgetter("total_weight"))), chunks.n_rows
    return 2.0 ** -round(np.log2(total / rows)) if 0 < total < rows else 1.0


def with_blanks(model: ClassModel, chunks: Sequence[Chunk]) -> ClassModel:
    """The model with the values that stand for missing cells in the first pass, for families that need them."""
    weights = [np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights for chunk in chunks]
    labels = [chunk.labels for chunk in chunks if chunk.labels is not None]
    leaves = list(model.leaves)
    for place, leaf in enumerate(model.leaves):
        if not leaf.family.facts.exact:
            columns = [model.column(leaf, chunk) for chunk in chunks]
            blank = leaf.family.blank(columns, weights, leaf.setting, labels)
            if blank is not None:
                leaves[place] = replace(leaf, setting=replace(leaf.setting, blank=blank))
    return model if all(map(is_, leaves, model.leaves)) else model.with_leaves(tuple(leaves))
