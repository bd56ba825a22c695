"""Rows made ready to learn from: read, levels settled, encoded and counted, for known, partly known and unknown classes
and for folds alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from softcount.counts import Counts
from softcount.errors import DataError
from softcount.families import How
from softcount.learn.degenerate import with_floors
from softcount.learn.plan import Plan, cells_of, retyping
from softcount.learn.sketch import Measures, Sketch, sketch
from softcount.models.align import Older
from softcount.models.base import ClassModel
from softcount.models.nodes import Imagined, Node, refuse_scores, refuse_unknown
from softcount.models.side_by_side import SideBySide
from softcount.models.tiles import Ready
from softcount.run.base import Runner, total
from softcount.table import Chunk, Settled, Table
from softcount.table.schema import Schema

MIXTURE_FLOOR = 1e-6
LABELLED_FLOOR = 1e-24
"""Of the column's variance, so a deviation of 1e-12: a class a million deviations from the others is not degenerate."""
EXACT_PASSES = 8
"""Passes over the table that a mixture makes once its starts have been raced, about."""
NOT_USED = "y names the class of every row, so it was not used: NaiveBayes learns from known classes."
Result = TypeVar("Result")
Weighed = TypeVar("Weighed", Chunk, Ready)


def on_task(work: Callable[[Chunk], Result], task: Callable[[], Chunk]) -> Result:
    """Something done with the chunk that a task reads."""
    return work(task())


def count_labelled(model: ClassModel, chunk: Chunk) -> Counts:
    """The counts of the rows of a chunk whose class is known."""
    return model.tally(model.prepare(chunk, base=False))


def count_equally(model: ClassModel, ready: Any) -> Counts:
    """The counts of prepared rows, each shared equally between the groups."""
    return model.tally_members(ready, np.full((ready.n_rows, model.groups), 1.0 / model.groups))


def read_all(table: Table, plan: Plan, runner: Runner, classes: Sequence[Any] | None) -> tuple[list[Chunk], Settled]:
    """Every row in memory, its levels and classes in their final order."""
    raw = list(table.chunks(runner.map))
    if classes is None and raw and raw[0].labels is not None and table.sides.target is None:
        classes = range(1 + max(int(chunk.labels.max(initial=-1)) for chunk in raw if chunk.labels is not None))
    settled = plan.declared.settle(table, classes)
    chunks = table.in_order(raw, settled)
    return chunks, plan.declared.with_points(settled, chunks)


@dataclass(frozen=True, slots=True)
class Tallied(Generic[Result]):
    """What rows add up to, the schema they came to, and the chunks if they had to be kept.

    `in_order` says whether levels were settled before they were counted: otherwise counts are still to be put in order.
    """

    total: Result
    model: ClassModel
    settled: Settled
    chunks: list[Chunk] | None

    @property
    def in_order(self) -> bool:
        return self.chunks is not None


def recoded_chunks(table: Table, settled: Settled, runner: Runner) -> list[Chunk]:
    """Every row again, in the settled codes."""
    return [settled.recoded(chunk) for chunk in table.chunks(runner.map)]


def tallied(
    table: Table,
    plan: Plan,
    runner: Runner,
    classes: Sequence[Any] | None,
    counting: Callable[[ClassModel, Chunk], Result],
) -> Tallied[Result]:
    """Rows of known class added up in one pass; where a family needs all levels beforehand, they are settled first."""
    cells = cells_of(table)
    chunks, settled, schema, groups = None, None, table.schema, 1 if classes is None else len(classes)
    if plan.declared.needs_levels or not runner.shares_memory:
        chunks, settled = read_all(table, plan, runner, classes)
        schema, groups = settled.schema, len(settled.classes)
    model = plan.declared.model(schema, groups, cells, LABELLED_FLOOR, table.bag_width)
    work = partial(counting, model)
    found = total(runner, partial(on_task, work), table.tasks()) if chunks is None else total(runner, work, chunks)
    if found is None:
        raise DataError("the table has no rows.")
    return Tallied(found, model, settled or plan.declared.settle(table, classes), chunks)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A table read, settled and encoded once, for any number of groups."""

    table: Table
    settled: Settled
    plan: Plan
    chunks: list[Chunk]
    one: ClassModel
    ready: list[Any]
    named: list[Any] | None
    kept: dict[str, Any] = field(default_factory=dict, repr=False)

    def model(self, groups: int) -> ClassModel:
        """The model with so many groups; the ready chunks are for all of them."""
        if "leaves" not in self.kept:
            self.kept["leaves"] = with_floors(self.one.leaves, self.settled.schema, self.sketch)
        leaves: tuple[Node, ...] = self.kept["leaves"]
        return self.one.with_leaves(leaves, groups)

    @property
    def sketch(self) -> Sketch:
        """The table's distinct rows, or a sample of them; made when first asked for."""
        if "sketch" not in self.kept:
            self.kept["sketch"] = sketch(
                self.chunks, measures_of(self.one, self.settled.schema), marked=self.table.bag_width is None
            )
        found: Sketch = self.kept["sketch"]
        return found

    def side_by_side(self, model: ClassModel, imagined: Imagined) -> SideBySide | None:
        """The sketched rows for many sets of parameters at once; None where some score is no product."""
        return SideBySide(model, imagined, self.products) if self.races and not imagined.fixed else None

    @property
    def n_rows(self) -> int:
        return sum(part.n_rows for part in self.ready)

    @property
    def races(self) -> bool:
        """Whether many sets of parameters can be tried at once."""
        return self.products is not None

    @property
    def products(self) -> Any:
        """The sketched rows as features; made when first asked for."""
        if "products" not in self.kept:
            self.kept["products"] = self.one.products(self.one.prepare(self.sketch.as_heavy_as_the_table()))
        return self.kept["products"]

    @property
    def notes(self) -> list[str]:
        return [*self.table.notes, *self.settled.notes]


def measures_of(model: ClassModel, schema: Schema) -> Measures:
    """Columns whose logarithms are modelled, and lots of columns that share a width and so a unit."""
    place = {spec.key: number for number, spec in enumerate(schema.stored("reals"))}
    logged = [place[leaf.key] for leaf in model.leaves if leaf.family.logged and leaf.key in place]
    lots: dict[Any, list[int]] = {}
    for leaf in model.leaves:
        if leaf.family.shared_by_columns and leaf.key in place:
            lots.setdefault(leaf.family, []).append(place[leaf.key])
    return Measures(logged, list(lots.values()))


def prepare(table: Table, plan: Plan, runner: Runner) -> Prepared:
    """The table read, settled and encoded: what fits with any number of groups share."""
    if isinstance(plan.prior, Older):
        raise DataError(
            "prior: an older model's counts are for known classes (NaiveBayes): a mixture's groups have no names. "
            "To start from an older mixture give it as init."
        )
    return retyping(table, lambda t: _prepare(t, plan, runner), runner, known_classes=False)


def _prepare(table: Table, plan: Plan, runner: Runner) -> Prepared:
    chunks, settled = read_all(table, plan, runner, plan.named)
    if not chunks:
        raise DataError("the table has no rows.")
    table.within_reach(chunks)
    if table.sides.target is not None and table.unknown_labels == 0:
        chunks = [replace(chunk, labels=None) for chunk in chunks]
        settled = replace(settled, classes=[], notes=[*settled.notes, NOT_USED])
    settled = replace(settled, notes=[*settled.notes, *empty_notes(settled.schema, chunks)])
    cells, weight = EXACT_PASSES * cells_of(table), plan.unlabelled_weight
    model = plan.declared.model(settled.schema, 1, cells, MIXTURE_FLOOR, table.bag_width, weight)
    refuse_scores(model.leaves, "is not for classes to be found")
    refuse_unknown(model.leaves, "is not for classes to be found", "")
    model = with_blanks(model, chunks)
    ready = list(runner.map(model.prepare, chunks))
    return Prepared(table, settled, plan, chunks, model, ready, settled.classes or None)


def empty_notes(schema: Schema, chunks: Sequence[Chunk]) -> list[str]:
    """Columns of numbers without a number: somebody said what they are, so they are kept."""
    empty = [
        spec.key
        for place, spec in enumerate(schema.stored("reals"))
        if all(np.isnan(chunk.reals[:, place]).all() for chunk in chunks)
    ]
    return [f"column {key!r} has no values: what its parameters say means nothing. Leave it out." for key in empty]


def weight_lift(chunks: Sequence[Chunk], how: How) -> float:
    """What weights below one on average are multiplied by, a power of two, so that they are about one.

    Maximum likelihood does not depend on it, but a tolerance does: with weights of 1e-10 nothing was left to gain at
    any start. With a prior, weights say how much the rows count beside it, and stay.
    """
    total, rows = sum(chunk.total_weight for chunk in chunks), sum(chunk.n_rows for chunk in chunks)
    return 2.0 ** -round(np.log2(total / rows)) if how == "ml" and 0 < total < rows else 1.0


def with_weight(rows: Weighed, factor: float) -> Weighed:
    """Rows that weigh so many times as much."""
    weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    return replace(rows, weights=weights * factor)


def with_blanks(model: ClassModel, chunks: Sequence[Chunk]) -> ClassModel:
    """The model with what a hole is taken for before anything is known of its group, where a family needs that."""
    leaves = tuple(_blanked(leaf, model, chunks) for leaf in model.leaves)
    same = all(new is old for new, old in zip(leaves, model.leaves, strict=True))
    return model if same else model.with_leaves(leaves)


def _blanked(leaf: Node, model: ClassModel, chunks: Sequence[Chunk]) -> Node:
    if leaf.family.exact:
        return leaf
    columns = [model.column(leaf, chunk) for chunk in chunks]
    weights = [np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights for chunk in chunks]
    labels = [chunk.labels for chunk in chunks if chunk.labels is not None]
    blank = leaf.family.blank(columns, weights, leaf.setting, labels)
    return leaf if blank is None else replace(leaf, setting=replace(leaf.setting, blank=blank))
