"""Rows of a table as a page can load them: what each column holds, as the model reads it."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.fitted.answers import labels_in
from softcount.fitted.classes import cells
from softcount.fitted.fitted import Fitted
from softcount.fitted.network import FittedNet
from softcount.fitted.network_rows import shown_cells
from softcount.table import Table, document_at
from softcount.table.schema import labels

MOST = 200
"""Rows that go into a page, at most: the first of the table."""


def given_rows(model: Fitted | FittedNet, table: Table) -> dict[str, Any]:
    """The first rows by the names of their columns; a level that was never seen stays as a word of its own."""
    if not isinstance(model, Fitted):
        return _node_rows(model, table)
    columns = [column for leaf in model.model.leaves for column in leaf.columns]
    names, found = labels_in(model), list[list[Any]]()
    for chunk in model.chunks(table):
        for row in range(min(chunk.n_rows, MOST - len(found))):
            held = cells(model, chunk, row)
            held |= {key: document_at(table, key, chunk.start + row) for key in columns if key in model.schema.texts}
            found.append([_plain(held[column]) for column in columns])
        if len(found) >= MOST:
            break
    return _some([names[column] for column in columns], found)


def _node_rows(model: FittedNet, table: Table) -> dict[str, Any]:
    names = labels(model.net.graph.names)
    found = shown_cells(model, table, np.arange(MOST))
    cells = [[_plain(held.get(key)) for key in names] for held in found.values()]
    return _some(list(names.values()), cells)


def _some(names: list[str], cells: list[list[Any]]) -> dict[str, Any]:
    if not cells:
        raise DataError("the table has no rows, so there is none to load. Leave it out.")
    return {"names": names, "cells": cells}


def _plain(cell: Any) -> Any:
    """A cell as JSON has it: numbers stay, levels are text."""
    if cell is None or type(cell) in (str, float):
        return cell
    return float(cell) if isinstance(cell, np.floating) else str(cell)
