"""Pairs of columns that depend on each other within a few classes: what more classes are found for."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from softcount.learn.correlated_blocks import NAMED, classes_of
from softcount.learn.learned import Learned
from softcount.learn.plan import Plan
from softcount.learn.prepare import Prepared
from softcount.learn.repeated_columns import MOST_CELLS, column_of, is_free
from softcount.networks.dependence import informations
from softcount.run.held_rows import HeldRows
from softcount.table.schema import Field, Key

PARTS = 4
"""Intervals of about equal count that the numbers of a class are cut into."""
MOST_COLUMNS = 40
MOST_LEVELS = 32
"""Columns and levels up to which pairs are looked at."""
WORTH_SAYING = 0.03
"""Nats beyond what chance shows that two columns must say of each other."""


def forcing_pairs(prepared: Prepared, plan: Plan, fitted: Learned) -> list[str]:
    """Pairs that say most of each other within the classes of a fit, in words; numbers in four intervals each."""
    if not isinstance(prepared.chunks, HeldRows):
        return []
    schema, chunks = prepared.settled.schema, prepared.chunks.here
    specs = [spec for spec in schema.used if is_free(spec, plan) and (spec.kind.numeric or spec.kind.coded)]
    specs = [spec for spec in specs if spec.kind.numeric or 2 <= len(spec.levels) <= MOST_LEVELS]
    rows = sum(chunk.n_rows for chunk in chunks)
    if not 2 <= len(specs) <= MOST_COLUMNS or rows * len(specs) > MOST_CELLS:
        return []
    classes = classes_of(prepared, fitted)
    codes = {spec.key: _codes(spec, column_of(schema, spec, chunks), classes) for spec in specs}
    found = [(_nats(classes, codes[a], codes[b]), a, b) for a, b in combinations(codes, 2)]
    told = sorted((pair for pair in found if pair[0] >= WORTH_SAYING), key=lambda pair: -round(pair[0], 9))
    return [_said(*pair) for pair in told[:NAMED]]


def _said(nats: float, a: Key, b: Key) -> str:
    return f"{a!r} and {b!r} ({nats:.2f} nats)"


def _codes(spec: Field, column: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The level of every row, or the part of its class's numbers that its number is in; -1 where there is none."""
    if not spec.kind.numeric:
        return np.where(column <= len(spec.levels), column.astype(np.int64) - 1, -1)
    codes = np.full(len(column), -1)
    for group in np.unique(classes):
        there = (classes == group) & np.isfinite(column)
        if there.any():
            edges = np.unique(np.quantile(column[there], np.arange(1, PARTS) / PARTS))
            codes[there] = np.searchsorted(edges, column[there])
    return codes


def _nats(classes: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """What two columns say of each other within classes, less what chance would have them say."""
    both = (a >= 0) & (b >= 0)
    if not both.any():
        return 0.0
    groups, of_a, of_b = (int(x.max()) + 1 for x in (classes, a, b))
    place = (classes[both] * of_a + a[both]) * of_b + b[both]
    table = np.bincount(place, minlength=groups * of_a * of_b).reshape(groups, of_a, of_b)
    seen_a, seen_b = (table.sum(axis=2) > 0).sum(axis=1), (table.sum(axis=1) > 0).sum(axis=1)
    by_chance = (np.maximum(seen_a - 1, 0) * np.maximum(seen_b - 1, 0)).sum() / (2 * both.sum())
    return float(informations(table, [of_b])[0][0] - by_chance)
