"""A pool asked about the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from softcount.classify.encoded_rows import EncodedRows, column_keys
from softcount.classify.pool import Pool, log_posteriors
from softcount.run.base import Runner, one_blas_thread
from softcount.table import Chunk, Table
from softcount.table.schema import Key, Schema

AT_ONCE = 8192
"""Rows that are scored at a time."""


def pooled(pool: Pool, schema: Schema, table: Table, runner: Runner) -> np.ndarray:
    """(rows x classes) log-probability of each class given the row."""

    def work(task: Callable[[], Chunk]) -> np.ndarray:
        rows = EncodedRows.of(schema, [task()])
        places = [np.arange(a, min(a + AT_ONCE, len(rows))) for a in range(0, len(rows), AT_ONCE)]
        parts = [log_posteriors(pool.scores(rows.take(place))) for place in places]
        return np.concatenate(parts) if parts else np.empty((0, len(pool.bias)))

    with one_blas_thread():
        parts = list(runner.map(work, table.tasks()))
    return np.concatenate(parts) if parts else np.empty((0, len(pool.bias)))


def pooled_parts(
    pool: Pool, schema: Schema, texts: Sequence[Key], chunk: Chunk
) -> tuple[dict[Key, np.ndarray], np.ndarray]:
    """What each column adds to the classes' scores, in the order of the table, and what none of them does."""
    parts, rest = pool.parts(EncodedRows.of(schema, [chunk]))
    found = {key: parts[:, place] for place, key in enumerate((*column_keys(schema), *texts))}
    order = [spec.key for spec in schema.used if spec.key in found]
    return {key: found[key] for key in order or found}, rest
