"""The rows of a table that fit a network worst, and the nodes that make them odd."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.fitted.classes import Anomaly
from softcount.fitted.fitted_net import FittedNet
from softcount.fitted.net_rows import surprises
from softcount.models.net import levels_of
from softcount.table import Chunk, Table
from softcount.table.cell_forms import as_cell
from softcount.table.schema import Key


def odd_rows(fitted: FittedNet, table: Table, most: int) -> list[Anomaly]:
    """The rows that fit worst, the oddest first: nats less likely than is usual, and what each node adds to them."""
    found = surprises(fitted, table)
    if not found:
        return []
    parts = np.stack(list(found.values()), axis=1)
    score = parts.sum(axis=1)
    worst = np.argsort(-score, kind="stable")[:most]
    cells = shown_cells(fitted, table, worst)
    return [
        Anomaly(int(row), float(score[row]), float("nan"), 0, 1.0, _largest_first(list(found), parts[row]), cells[row])
        for row in worst
    ]


def _largest_first(keys: list[Key], parts: np.ndarray) -> dict[Key, float]:
    return {keys[place]: float(parts[place]) for place in np.argsort(-parts, kind="stable")}


def shown_cells(fitted: FittedNet, table: Table, rows: np.ndarray) -> dict[int, dict[Key, Any]]:
    """What some rows, counted from 0, show of every node."""
    found: dict[int, dict[Key, Any]] = {}
    for task in table.tasks():
        chunk = task()
        own = rows[(rows >= chunk.start) & (rows < chunk.start + chunk.n_rows)]
        found |= {int(row): _row(fitted, chunk, int(row) - chunk.start) for row in own}
    return found


def _row(fitted: FittedNet, chunk: Chunk, row: int) -> dict[Key, Any]:
    net = fitted.net
    found: dict[Key, Any] = {}
    codes = net.codes(chunk.take(np.array([row])))[0]
    for code, place in zip(codes, net.places, strict=True):
        if code >= 0:
            found[net.each[place].key] = list(levels_of(net.each[place]) or ())[code]
    for key in (*net.cuts, *net.levels_above):
        where = net.schema.places.get(key)
        if where is not None and where.store == "reals" and not np.isnan(chunk.reals[row, where.slot]):
            found[key] = as_cell(net.schema[key].written, float(chunk.reals[row, where.slot]))
    return found
