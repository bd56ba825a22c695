"""Columns that repeat or determine each other, and blocks of correlated columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core import remedies
from softcount.families import FAMILIES
from softcount.families.multinormal import Multinormal, PriorScale
from softcount.learn.initialise import Sketch
from softcount.learn.prepare import Prepared, prepare
from softcount.learn.record import Learned, Plan
from softcount.models.declare import fit_to_key
from softcount.models.nodes import Node
from softcount.networks.scores import CodeCounts, dependent_pairs
from softcount.run.local import HeldRows, Rows, Runner
from softcount.table import Chunk
from softcount.table.schema import Derived, Field, Key, Kind, Schema

MOST_CELLS = 4_000_000
MOST_COLUMNS = 200
MOST_LEVELS = 64
"""Larger tables, and columns with more categories, are not examined."""
ENOUGH = 5
"""Minimum rows of two categories of a determined column, and rows per category of the determining column."""
ROUNDING = 1e-10
"""Maximum difference from 1 of the absolute correlation of two numeric columns that repeat each other."""


def drop_repeats(prepared: Prepared, plan: Plan, runner: Runner) -> Prepared:
    """Prepare the table again without columns that repeat others, and note each. Declared columns stay."""
    found = find_repeats(prepared.settled.schema, prepared.chunks, plan)
    if not found:
        return prepared
    table = prepared.table
    schema, chunks = prepared.settled.schema, prepared.chunks
    assert isinstance(chunks, HeldRows)  # repeated_columns finds none in other rows
    plans = {
        spec.key: (
            replace(spec, field=replace(spec.field, used=False, derived=_rule(schema, chunks, spec.key, lead))),
            f"{spec.field.why}; determined by {lead!r}",
        )
        for spec in table.plans
        if (lead := found.get(spec.key)) is not None
    }
    key, lead = next(iter(found.items()))
    keep = remedies.kind(key, str(table.schema[key].kind))
    if len(found) == 1:
        note = f"column {key!r} is determined by {lead!r}: left out ({keep} to keep it)"
    else:
        named = ", ".join(f"{key!r} (by {lead!r})" for key, lead in found.items())
        note = f"columns determined by another column are left out: {named} ({keep} keeps the first)"
    fewer = table.chosen(plans)
    fewer.notes.append(note)
    return prepare(fewer, plan, runner)


def _rule(schema: Schema, chunks: Sequence[Chunk], key: Key, lead: Key) -> Derived:
    """Return how a column follows from another: by category, or by a line through the two most distant numbers."""
    own, other = (column_of(schema, schema[name], chunks) for name in (key, lead))
    if not schema[key].kind.numeric:
        both = (own > 0) & (other > 0)
        pairs = np.unique(np.stack([other[both], own[both]], axis=1).astype(np.int64), axis=0)
        levels, leads = schema[key].levels, schema[lead].levels
        return Derived(lead, tuple((leads[a - 1], levels[b - 1]) for a, b in pairs.tolist()))
    there = np.flatnonzero(np.isfinite(own) & np.isfinite(other))
    low, high = there[other[there].argmin()], there[other[there].argmax()]
    slope = (own[high] - own[low]) / (other[high] - other[low])
    return Derived(lead, slope=float(slope), intercept=float(own[low] - slope * other[low]))


def find_repeats(schema: Schema, chunks: Rows, plan: Plan) -> dict[Key, Key]:
    """Return columns that are a copy or a function of another column, with that column.

    Of mutual copies the first stays.
    """
    free = [spec for spec in schema.used if is_free(spec, plan)]
    too_large = chunks.n_rows * len(schema.used) > MOST_CELLS or len(free) > MOST_COLUMNS
    if plan.declared.everything is not None or too_large or not isinstance(chunks, HeldRows):
        return {}
    levels = [spec for spec in free if schema.places[spec.key].store == "codes" and 1 < len(spec.levels) <= MOST_LEVELS]
    numbers = [spec for spec in free if spec.kind.numeric]
    codes = {spec.key: column_of(schema, spec, chunks).astype(np.int64) for spec in levels}
    found: dict[Key, Key] = {}
    for place, first in enumerate(levels):
        for second in levels[place + 1 :]:
            if first.key in found or second.key in found:
                continue
            rows, columns = len(first.levels) + 2, len(second.levels) + 2
            both = np.bincount(codes[first.key] * columns + codes[second.key], minlength=rows * columns)
            both = both.reshape(rows, columns)[1:, 1:]  # without missing cells
            if _follows(both):
                found[second.key] = first.key
            elif _follows(both.T):
                found[first.key] = second.key
    if len(numbers) < 2:
        return found
    block = np.stack([column_of(schema, spec, chunks) for spec in numbers], axis=1)
    block = block[np.isfinite(block).all(axis=1)]
    if len(block) < 2 * ENOUGH:
        return found
    same = np.triu(np.abs(correlations(block)) >= 1.0 - ROUNDING, 1)  # the same column in two units
    copies: dict[Key, Key] = {}
    for one, other in np.argwhere(same).tolist():
        if numbers[one].key not in copies:
            copies.setdefault(numbers[other].key, numbers[one].key)
    return found | copies


def is_free(spec: Field, plan: Plan) -> bool:
    """Return whether the user did not declare the column."""
    declared = plan.declared
    return not spec.declared and spec.key not in declared.families and not any(spec.key in x for x in declared.blocks)


def column_of(schema: Schema, spec: Field, chunks: Sequence[Chunk]) -> np.ndarray:
    return np.concatenate([chunk.column(schema.places[spec.key]) for chunk in chunks])


def _follows(both: np.ndarray) -> bool:
    """Return whether the columns of a contingency table are a function of its rows, by more than chance."""
    seen = both > 0
    often = np.count_nonzero(both.sum(axis=0) >= ENOUGH) >= 2
    enough = both.sum() >= ENOUGH * np.count_nonzero(seen.any(axis=1))
    return bool(often and enough and (seen.sum(axis=1) <= 1).all())


def correlations(block: np.ndarray) -> np.ndarray:
    """Return the correlations of complete rows; 0 for a constant column."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        off = block - block.mean(axis=0)
        off = off / np.abs(off).max(axis=0)
        off = off / np.sqrt((off * off).sum(axis=0))
        return np.asarray(np.nan_to_num(off.T @ off))


# Blocks of columns that depend on each other within classes.

FEW_CLASSES = 5
"""Number of classes that a person can look at: if independent columns need more, blocks are tried."""
CORRELATED = 0.3
"""Minimum correlation within classes for two numeric columns to be in one block."""
DEPENDENT = 0.1
"""Minimum mutual information within classes, in nats, of two categorical columns in one block."""
CHANCE = 0.001
"""Significance level for all pairs of the table together."""
MOST_COMBINED = 64
ROWS_EACH = 10
"""Maximum combinations of categories of a block, and minimum rows of the table per combination."""
MOST_WORK = 2_000_000
"""Maximum rows times squared columns of a block of numbers."""
MOST_PATTERNS = 32
"""Maximum patterns of missing cells in blocks of numbers: each takes about 1 ms per EM step."""
NAMED = 3
"""Maximum number of pairs that a note names."""


class CorrelatedBlocks(Struct, frozen=True):
    """Blocks of dependent columns with their families, and descriptions of the most dependent pairs."""

    blocks: Mapping[tuple[Key, ...], str]
    pairs: tuple[str, ...]

    @property
    def columns(self) -> int:
        return sum(map(len, self.blocks))

    def prior_scales(self, plan: Plan) -> tuple[PriorScale, ...]:
        """Return the prior scales to try. The table's correlations are used only with numbers and a prior."""
        correlated = plan.estimate != "ml" and Multinormal.name in self.blocks.values()
        return ("table", "columns") if correlated else ("columns",)

    def prepared(self, before: Prepared, plan: Plan, runner: Runner, scale: PriorScale) -> tuple[Prepared, Plan]:
        """Prepare the table for these blocks; `scale` is that of the prior on covariances."""
        families = {
            block: Multinormal(prior_scale=scale) if kind == Multinormal.name else fit_to_key(FAMILIES[kind](), block)
            for block, kind in self.blocks.items()
        }
        plan = replace(plan, declared=replace(plan.declared, families=plan.declared.families | families))
        found, ranges = prepare(before.table, plan, runner), before.settled.schema.by_key
        columns = (replace(x, bounds=ranges[x.key].bounds) for x in found.settled.schema.fields)
        schema = replace(found.settled.schema, fields=tuple(columns))
        model = found.one.with_leaves(found.one.leaves, schema=schema)
        return replace(found, settled=replace(found.settled, schema=schema), one=model), plan


def find_blocks(prepared: Prepared, plan: Plan, fitted: Learned) -> CorrelatedBlocks | None:
    """Return blocks of columns that are dependent within the classes of a fit, or None."""
    declared = plan.declared.everything is not None or prepared.table.bag_width is not None
    if declared or not isinstance(prepared.chunks, HeldRows):
        return None
    classes = classes_of(prepared, fitted)
    numbers, correlated = _find_correlated(prepared, plan, classes)
    levels, dependent = _find_dependent(prepared, plan, classes)
    blocks = {block: "multinormal" for block in numbers} | {block: "categorical" for block in levels}
    return CorrelatedBlocks(blocks, (*correlated[:NAMED], *dependent[:NAMED])) if blocks else None


def blocks_with_missing(prepared: Prepared) -> list[Node]:
    """Return the blocks of correlated numbers with missing cells. EM handles each of their patterns separately."""
    leaves = [leaf for leaf in prepared.one.leaves if leaf.setting.blank is not None]
    return [leaf for leaf in leaves if leaf.describe_hidden(True) != leaf.describe_hidden(False)]


def take_complete(prepared: Prepared) -> Sketch | None:
    """Return the sketched rows without missing cells in blocks of numbers.

    Return None if no cell is missing, fewer than half of the rows are complete, or there are too many patterns.
    """
    blocks = blocks_with_missing(prepared)
    if not blocks:
        return None
    rows, schema = prepared.sketch, prepared.settled.schema
    slots = [schema.places[column].slot for leaf in blocks for column in leaf.columns]
    missing = np.isnan(rows.chunk.reals[:, slots])
    whole = np.flatnonzero(~missing.any(axis=1))
    if 2 * len(whole) < len(missing) or len(np.unique(missing, axis=0)) > MOST_PATTERNS:
        return None
    return rows.take(whole)


def classes_of(prepared: Prepared, fitted: Learned) -> np.ndarray:
    compiled = fitted.model.compile(fitted.estimates)
    found = [
        fitted.model.memberships(part, compiled, rows).argmax(axis=1)
        for part in prepared.ready.here
        for rows in part.tiles()
    ]
    return np.concatenate(found)


# -- numbers


def _find_correlated(prepared: Prepared, plan: Plan, classes: np.ndarray) -> tuple[list[tuple[Key, ...]], list[str]]:
    """Return blocks of numbers that are correlated within classes, and their pairs, most correlated first."""
    from scipy.sparse.csgraph import connected_components

    schema = prepared.settled.schema
    specs = [spec for spec in schema.used if spec.kind is Kind.REAL and is_free(spec, plan)]
    if len(specs) < 2:
        return [], []
    keys = [spec.key for spec in specs]
    values = np.stack([column_of(schema, spec, prepared.chunks.here) for spec in specs], axis=1)
    within = np.abs(_correlate_within(values, classes))
    near = within >= CORRELATED
    count, part = connected_components(near, directed=False)
    own = [np.flatnonzero(part == number) for number in range(count)]
    blocks = [tuple(keys[place] for place in places) for places in own if len(places) > 1]
    if any(len(values) * len(block) ** 2 > MOST_WORK for block in blocks):
        # Small blocks next to one that is too large change little: on digits, a search of half a minute for two pixels.
        return [], []
    pairs = sorted(np.argwhere(np.triu(near, 1)).tolist(), key=lambda pair: -within[pair[0], pair[1]])
    return blocks, [f"{keys[a]!r} and {keys[b]!r} (correlation {within[a, b]:.2f})" for a, b in pairs]


def _correlate_within(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the correlations of complete rows around the means of their classes."""
    there = np.isfinite(values).all(axis=1)
    values, classes = values[there], classes[there]
    if len(values) < 2 * values.shape[1]:
        return np.zeros((values.shape[1], values.shape[1]))
    centred = values.copy()
    for group in np.unique(classes):
        centred[classes == group] -= values[classes == group].mean(axis=0)
    return correlations(centred)


# -- categories


def _find_dependent(prepared: Prepared, plan: Plan, classes: np.ndarray) -> tuple[list[tuple[Key, ...]], list[str]]:
    """Return blocks of columns with few categories that are dependent within classes, and their pairs."""
    schema, chunks = prepared.settled.schema, prepared.chunks.here
    specs = [spec for spec in schema.stored("codes") if is_free(spec, plan) and 2 <= len(spec.levels) <= MOST_COMBINED]
    codes = [column_of(schema, spec, chunks).astype(np.int64) - 1 for spec in specs]
    whole = [place for place, column in enumerate(codes) if (column >= 0).all()]
    specs, codes = [specs[place] for place in whole], [codes[place] for place in whole]
    if len(specs) < 2:
        return [], []
    weights = np.concatenate([chunk.row_weights for chunk in chunks])
    sizes = [int(classes.max()) + 1, *(len(spec.levels) for spec in specs)]
    pairs = dependent_pairs(CodeCounts(np.stack([classes, *codes], axis=1), sizes, weights), 0)
    strong = [x for x in pairs if x.information >= DEPENDENT and x.p_value * len(pairs) < CHANCE]
    blocks = _combine_blocks([(x.a - 1, x.b - 1) for x in strong], specs, len(classes))
    inside = {spec.key for block in blocks for spec in block}
    keys = [(specs[x.a - 1].key, specs[x.b - 1].key, x.information) for x in strong]
    described = [f"{a!r} and {b!r} ({nats:.2f} nats)" for a, b, nats in keys if a in inside and b in inside]
    return [tuple(spec.key for spec in block) for block in blocks], described


def _combine_blocks(pairs: Sequence[tuple[int, int]], specs: Sequence[Field], rows: int) -> list[list[Field]]:
    """Merge blocks by pairs, most dependent first, as long as combinations have enough rows."""
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


# Notes on pairs of columns that depend on each other within classes.

PARTS = 4
"""Number of bins of about equal count for the numbers of a class."""
MOST_FORCING_COLUMNS = 40
MOST_FORCING_LEVELS = 32
"""Maximum number of columns, and of categories of a column, for which pairs are examined."""
WORTH_SAYING = 0.03
"""Minimum nats beyond chance for a pair to be named."""


def find_forcing_pairs(prepared: Prepared, plan: Plan, fitted: Learned) -> list[str]:
    """Describe the most dependent pairs within the classes of a fit. Numbers are discretised into four bins."""
    if not isinstance(prepared.chunks, HeldRows):
        return []
    schema, chunks = prepared.settled.schema, prepared.chunks.here
    specs = [spec for spec in schema.used if is_free(spec, plan) and (spec.kind.numeric or spec.kind.coded)]
    specs = [spec for spec in specs if spec.kind.numeric or 2 <= len(spec.levels) <= MOST_FORCING_LEVELS]
    rows = sum(chunk.n_rows for chunk in chunks)
    if not 2 <= len(specs) <= MOST_FORCING_COLUMNS or rows * len(specs) > MOST_CELLS:
        return []
    classes = classes_of(prepared, fitted)
    codes = [classes, *(_codes(spec, column_of(schema, spec, chunks), classes) for spec in specs)]
    counting = CodeCounts(np.stack(codes, axis=1), [max(int(column.max()), 0) + 1 for column in codes])
    # Subtract the information expected by chance.
    found = [(x.information - x.freedom / (2 * max(x.weight, 1.0)), x.a, x.b) for x in dependent_pairs(counting, 0)]
    strong = sorted((x for x in found if x[0] >= WORTH_SAYING), key=lambda x: (-round(x[0], 9), x[1], x[2]))
    return [f"{specs[a - 1].key!r} and {specs[b - 1].key!r} ({nats:.2f} nats)" for nats, a, b in strong[:NAMED]]


def _codes(spec: Field, column: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the category of every row, or the quartile of its number within its class; -1 if missing."""
    if not spec.kind.numeric:
        return np.where(column <= len(spec.levels), column.astype(np.int64) - 1, -1)
    codes = np.full(len(column), -1)
    for group in np.unique(classes):
        there = (classes == group) & np.isfinite(column)
        if there.any():
            edges = np.unique(np.quantile(column[there], np.arange(1, PARTS) / PARTS))
            codes[there] = np.searchsorted(edges, column[there])
    return codes
