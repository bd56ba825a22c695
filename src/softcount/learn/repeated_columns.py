"""Columns that repeat another, or follow from it: classes that are looked for would be found twice as sure by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from softcount import remedies
from softcount.learn.plan import Plan
from softcount.learn.prepare import Prepared, prepare
from softcount.run.base import Runner
from softcount.run.held_rows import HeldRows
from softcount.run.rows import Rows
from softcount.table import Chunk
from softcount.table.schema import Derived, Field, Key, Schema

MOST_CELLS = 4_000_000
MOST_COLUMNS = 200
MOST_LEVELS = 64
"""Tables that are larger, and columns with more levels, are not looked at."""
ENOUGH = 5
"""Rows that two levels of a column that follows must have, and rows for every level of the one it follows from."""
ROUNDING = 1e-10
"""How far from 1 the correlation of two columns of numbers that repeat each other may be."""


def without_repeats(prepared: Prepared, plan: Plan, runner: Runner) -> Prepared:
    """The table prepared without the columns that repeat others, and a note on each; declared ones stay."""
    found = repeated_columns(prepared.settled.schema, prepared.chunks, plan)
    if not found:
        return prepared
    table = prepared.table
    schema, chunks = prepared.settled.schema, prepared.chunks
    assert isinstance(chunks, HeldRows)  # no other rows are looked at
    plans = {
        spec.key: (
            replace(spec, field=replace(spec.field, used=False, derived=_rule(schema, chunks, spec.key, lead))),
            f"{spec.field.why}; follows from {lead!r}",
        )
        for spec in table.plans
        if (lead := found.get(spec.key)) is not None
    }
    fewer = table.chosen(plans)
    fewer.notes.append(_said(found, table.schema))
    return prepare(fewer, plan, runner)


def _rule(schema: Schema, chunks: Sequence[Chunk], key: Key, lead: Key) -> Derived:
    """How a column follows from another: level by level, or along the line through the two numbers farthest apart."""
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


def _said(found: Mapping[Key, Key], schema: Schema) -> str:
    """Which columns are left out, all in one note."""
    key, lead = next(iter(found.items()))
    kept = remedies.kind(key, str(schema[key].kind))
    if len(found) == 1:
        same = "so that both would tell the classes the same"
        return f"column {key!r} follows from {lead!r}, {same}: left out ({kept} to keep it)"
    told = ", ".join(f"{key!r} from {lead!r}" for key, lead in found.items())
    return f"columns that follow from others would tell the classes the same twice: left out {told} ({kept} keeps one)"


def repeated_columns(schema: Schema, chunks: Rows, plan: Plan) -> dict[Key, Key]:
    """By column that is a copy or a function of another, that other; where each is one of the other's, the first."""
    if plan.declared.everything is not None or chunks.n_rows * len(schema.used) > MOST_CELLS:
        return {}
    if not isinstance(chunks, HeldRows):
        return {}
    free = [spec for spec in schema.used if is_free(spec, plan)]
    if len(free) > MOST_COLUMNS:
        return {}
    levels = [spec for spec in free if schema.places[spec.key].store == "codes" and 1 < len(spec.levels) <= MOST_LEVELS]
    numbers = [spec for spec in free if spec.kind.numeric]
    codes = {spec.key: column_of(schema, spec, chunks).astype(np.int64) for spec in levels}
    return _functions(codes, levels) | _proportional({x.key: column_of(schema, x, chunks) for x in numbers})


def is_free(spec: Field, plan: Plan) -> bool:
    """Whether nobody said what a column is."""
    declared = plan.declared
    return not spec.declared and spec.key not in declared.families and not any(spec.key in x for x in declared.blocks)


def column_of(schema: Schema, spec: Field, chunks: Sequence[Chunk]) -> np.ndarray:
    """A column's codes or numbers in every row."""
    store, slot = schema.places[spec.key]
    return np.concatenate([getattr(chunk, store)[:, slot] for chunk in chunks])


def _functions(codes: Mapping[Key, np.ndarray], levels: Sequence[Field]) -> dict[Key, Key]:
    """Columns of levels that follow from another."""
    found: dict[Key, Key] = {}
    for place, first in enumerate(levels):
        for second in levels[place + 1 :]:
            if first.key in found or second.key in found:
                continue
            both = _table(codes[first.key], codes[second.key], len(first.levels) + 2, len(second.levels) + 2)
            if _follows(both):
                found[second.key] = first.key
            elif _follows(both.T):
                found[first.key] = second.key
    return found


def _table(first: np.ndarray, second: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """How often levels are met together, those of missing cells left out."""
    both = np.bincount(first * columns + second, minlength=rows * columns).reshape(rows, columns)
    return both[1:, 1:]


def _follows(both: np.ndarray) -> bool:
    """Whether the column of a table follows from its row, by more than chance."""
    seen = both > 0
    often = np.count_nonzero(both.sum(axis=0) >= ENOUGH) >= 2
    enough = both.sum() >= ENOUGH * np.count_nonzero(seen.any(axis=1))
    return bool(often and enough and (seen.sum(axis=1) <= 1).all())


def _proportional(numbers: Mapping[Key, np.ndarray]) -> dict[Key, Key]:
    """Columns of numbers that are another in other units."""
    keys = list(numbers)
    if len(keys) < 2:
        return {}
    block = np.stack([numbers[key] for key in keys], axis=1)
    block = block[np.isfinite(block).all(axis=1)]
    if len(block) < 2 * ENOUGH:
        return {}
    alike = np.triu(np.abs(correlations(block)) >= 1.0 - ROUNDING, 1)
    found: dict[Key, Key] = {}
    for first, second in np.argwhere(alike).tolist():
        if keys[first] not in found:
            found.setdefault(keys[second], keys[first])
    return found


def correlations(block: np.ndarray) -> np.ndarray:
    """Correlations of the columns of complete rows; 0 with one that does not vary."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        off = block - block.mean(axis=0)
        off = off / np.abs(off).max(axis=0)
        off = off / np.sqrt((off * off).sum(axis=0))
        return np.asarray(np.nan_to_num(off.T @ off))
