"""Columns that depend on each other within classes: in blocks, where independent ones ask for many classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from softcount.families import FAMILIES
from softcount.families.multinormal import Multinormal, PriorScale
from softcount.learn.learned import Learned
from softcount.learn.plan import Plan
from softcount.learn.prepare import Prepared, prepare
from softcount.learn.repeated_columns import column_of, correlations, is_free
from softcount.learn.sketch import Sketch
from softcount.models.nodes import Node
from softcount.networks.code_counts import CodeCounts
from softcount.networks.dependence import dependent_pairs
from softcount.records import dataclass
from softcount.run.base import Runner
from softcount.run.held_rows import HeldRows
from softcount.table.schema import Field, Key, Kind

FEW_CLASSES = 5
"""Classes that a person can look at: where independent columns ask for more, blocks are tried."""
CORRELATED = 0.3
"""The correlation within classes from which on two columns of numbers go into a block."""
DEPENDENT = 0.1
"""Nats that two columns of levels must say of each other within classes."""
CHANCE = 0.001
"""How often chance may show as much in any pair of the table."""
MOST_COMBINED = 64
ROWS_EACH = 10
"""Combinations of levels of a block at most, and rows of the table for each of them."""
MOST_WORK = 2_000_000
"""Rows times squared columns of a block of numbers up to which it is tried."""
MOST_PATTERNS = 32
"""Patterns of missing cells in blocks of numbers up to which these are tried: each takes about 1 ms per EM step."""
NAMED = 3
"""Pairs that are named."""


@dataclass(frozen=True, slots=True)
class CorrelatedBlocks:
    """Columns to be modelled together, by the kind of block, and how much the most dependent pairs are, in words."""

    blocks: Mapping[tuple[Key, ...], str]
    pairs: tuple[str, ...]

    @property
    def columns(self) -> int:
        return sum(map(len, self.blocks))

    def prior_scales(self, plan: Plan) -> tuple[PriorScale, ...]:
        """The scales to try: with the table's correlations only if there are numbers and a prior."""
        correlated = plan.estimate != "ml" and Multinormal.name in self.blocks.values()
        return ("table", "columns") if correlated else ("columns",)

    def prepared(self, before: Prepared, plan: Plan, runner: Runner, scale: PriorScale) -> tuple[Prepared, Plan]:
        """The same table, ready for these blocks; `scale` is the prior's for the covariances of numbers."""
        families = {
            block: Multinormal(prior_scale=scale) if kind == Multinormal.name else FAMILIES[kind]().for_key(block)
            for block, kind in self.blocks.items()
        }
        plan = replace(plan, declared=replace(plan.declared, families=plan.declared.families | families))
        found, ranges = prepare(before.table, plan, runner), before.settled.schema.by_key
        columns = (replace(x, bounds=ranges[x.key].bounds) for x in found.settled.schema.fields)
        schema = replace(found.settled.schema, fields=tuple(columns))
        model = found.one.with_leaves(found.one.leaves, schema=schema)
        return replace(found, settled=replace(found.settled, schema=schema), one=model), plan


def correlated_blocks(prepared: Prepared, plan: Plan, fitted: Learned) -> CorrelatedBlocks | None:
    """Blocks of columns that depend on each other within the classes of a fit; None where there are none."""
    if plan.declared.everything is not None or prepared.table.bag_width is not None:
        return None
    if not isinstance(prepared.chunks, HeldRows):
        return None
    classes = classes_of(prepared, fitted)
    numbers, correlated = _of_numbers(prepared, plan, classes)
    levels, dependent = _of_levels(prepared, plan, classes)
    blocks = {block: "multinormal" for block in numbers} | {block: "categorical" for block in levels}
    return CorrelatedBlocks(blocks, (*correlated[:NAMED], *dependent[:NAMED])) if blocks else None


def has_missing_in_blocks(prepared: Prepared) -> bool:
    """Whether a block of correlated numbers has missing cells, each pattern of which EM works out by itself."""
    return bool(_worked_out_by_pattern(prepared))


def _worked_out_by_pattern(prepared: Prepared) -> list[Node]:
    """Blocks of numbers with missing cells."""
    leaves = [leaf for leaf in prepared.one.leaves if leaf.setting.blank is not None]
    return [leaf for leaf in leaves if leaf.family.hidden(leaf.key, True) != leaf.family.hidden(leaf.key, False)]


def complete_in_blocks(prepared: Prepared) -> Sketch | None:
    """The sketched rows without missing cells in blocks of numbers; None if no cell is missing or few are complete.

    Few are less than half of the rows, or more patterns of missing cells than there is time for.
    """
    if not has_missing_in_blocks(prepared):
        return None
    rows, schema = prepared.sketch, prepared.settled.schema
    slots = [schema.places[column].slot for leaf in _worked_out_by_pattern(prepared) for column in leaf.columns]
    missing = np.isnan(rows.chunk.reals[:, slots])
    whole = np.flatnonzero(~missing.any(axis=1))
    if 2 * len(whole) < len(missing) or len(np.unique(missing, axis=0)) > MOST_PATTERNS:
        return None
    points, present = rows.points[whole], rows.present[whole]
    return replace(rows, chunk=rows.chunk.take(whole), points=points, present=present)


def classes_of(prepared: Prepared, fitted: Learned) -> np.ndarray:
    """The likeliest class of every row."""
    compiled = fitted.model.compile(fitted.estimates)
    found = [
        fitted.model.memberships(part, compiled, rows).argmax(axis=1)
        for part in prepared.ready.here
        for rows in part.tiles()
    ]
    return np.concatenate(found)


# -- numbers


def _of_numbers(prepared: Prepared, plan: Plan, classes: np.ndarray) -> tuple[list[tuple[Key, ...]], list[str]]:
    """Plain numbers that are correlated within classes, and their pairs, most correlated first."""
    schema = prepared.settled.schema
    specs = [spec for spec in schema.used if spec.kind is Kind.REAL and is_free(spec, plan)]
    if len(specs) < 2:
        return [], []
    keys = [spec.key for spec in specs]
    values = np.stack([column_of(schema, spec, prepared.chunks.here) for spec in specs], axis=1)
    within = np.abs(_within(values, classes))
    blocks = [block for block in _joined(within, keys) if len(block) > 1]
    if any(len(values) * len(block) ** 2 > MOST_WORK for block in blocks):
        # Small blocks beside one that is too large change little: on digits a search of half a minute for two pixels.
        return [], []
    inside = {key for block in blocks for key in block}
    pairs = [(within[a, b], keys[a], keys[b]) for a, b in np.argwhere(np.triu(within >= CORRELATED, 1)).tolist()]
    pairs = sorted((pair for pair in pairs if pair[1] in inside and pair[2] in inside), key=lambda pair: -pair[0])
    return blocks, [f"{a!r} and {b!r} (correlation {r:.2f})" for r, a, b in pairs]


def _within(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Correlations of complete rows around the means of their classes."""
    there = np.isfinite(values).all(axis=1)
    values, classes = values[there], classes[there]
    if len(values) < 2 * values.shape[1]:
        return np.zeros((values.shape[1], values.shape[1]))
    centred = values.copy()
    for group in np.unique(classes):
        centred[classes == group] -= values[classes == group].mean(axis=0)
    return correlations(centred)


def _joined(within: np.ndarray, keys: Sequence[Key]) -> list[tuple[Key, ...]]:
    """Columns that correlated pairs connect, in the order of the table."""
    near = within >= CORRELATED
    left, found = list(range(len(keys))), []
    while left:
        reached = {left[0]}
        while more := {b for a in reached for b in np.flatnonzero(near[a]).tolist()} - reached:
            reached |= more
        found.append(tuple(keys[place] for place in sorted(reached)))
        left = [place for place in left if place not in reached]
    return found


# -- levels


def _of_levels(prepared: Prepared, plan: Plan, classes: np.ndarray) -> tuple[list[tuple[Key, ...]], list[str]]:
    """Columns of few levels, without holes, that say enough of each other within classes; and their pairs."""
    schema, chunks = prepared.settled.schema, prepared.chunks.here
    specs = [spec for spec in schema.stored("codes") if is_free(spec, plan) and 2 <= len(spec.levels) <= MOST_COMBINED]
    codes = [column_of(schema, spec, chunks).astype(np.int64) - 1 for spec in specs]
    whole = [place for place, column in enumerate(codes) if (column >= 0).all()]
    specs, codes = [specs[place] for place in whole], [codes[place] for place in whole]
    if len(specs) < 2:
        return [], []
    weights = np.concatenate([np.ones(x.n_rows) if x.weights is None else x.weights for x in chunks])
    sizes = [int(classes.max()) + 1, *(len(spec.levels) for spec in specs)]
    pairs = dependent_pairs(CodeCounts(np.stack([classes, *codes], axis=1), sizes, weights), 0)
    told = [x for x in pairs if x.information >= DEPENDENT and x.p_value * len(pairs) < CHANCE]
    blocks = _combined([(x.a - 1, x.b - 1) for x in told], specs, len(classes))
    inside = {spec.key for block in blocks for spec in block}
    keys = [(specs[x.a - 1].key, specs[x.b - 1].key, x.information) for x in told]
    said = [f"{a!r} and {b!r} ({nats:.2f} nats)" for a, b, nats in keys if a in inside and b in inside]
    return [tuple(spec.key for spec in block) for block in blocks], said


def _combined(pairs: Sequence[tuple[int, int]], specs: Sequence[Field], rows: int) -> list[list[Field]]:
    """Blocks that pairs join, the most dependent first, as long as combinations of levels have rows enough."""
    most = min(MOST_COMBINED, rows // ROWS_EACH)
    blocks = [[spec] for spec in specs]
    for a, b in pairs:
        first = next(block for block in blocks if specs[a] in block)
        second = next(block for block in blocks if specs[b] in block)
        if first is not second and prod(len(spec.levels) for spec in (*first, *second)) <= most:
            first += second
            blocks = [block for block in blocks if block is not second]
    order = {spec.key: place for place, spec in enumerate(specs)}
    return [sorted(block, key=lambda spec: order[spec.key]) for block in blocks if len(block) > 1]
