"""What the page of a model says, asked in the page, and what the library says in the page's terms."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

TOLERANCE = 1e-5

CLASSES = "e => Array.from(softcount.engine.answer(e).shares[0])"
COLUMNS = "e => softcount.engine.answer(e).shares.map(s => s && Array.from(s))"


def asked(page: Any, code: str, evidences: list[Any]) -> list[Any]:
    """What a function says of each, run in the page in one go; as text, which is ten times quicker to hand over."""
    return json.loads(page.run(f"told => JSON.stringify(JSON.parse(told).map({code}))", json.dumps(evidences)))


def variables_of(page: Any) -> list[dict[str, Any]]:
    """What the page has: names, levels, and where bars meet."""
    return page.run(
        "() => softcount.engine.variables.map(({name, kind, levels, edges}) => ({name, kind, levels, edges}))"
    )


def as_evidence(variables: list[dict[str, Any]], row: dict[str, Any]) -> list[Any]:
    """A row's cells as the page takes them: exact numbers, and one level of several."""
    found: list[Any] = []
    for variable in variables:
        cell = row.get(variable["name"])
        if cell is None or (isinstance(cell, float) and math.isnan(cell)):
            found.append(None)
        elif variable["kind"] == "number":
            found.append({"value": float(cell)})
        elif variable["kind"] == "text":
            found.append({"text": str(cell)})
        else:
            found.append({"cells": [int(level == str(cell)) for level in variable["levels"]]})
    return found


def distribution(answer: Any, variable: dict[str, Any]) -> np.ndarray:
    """The library's answer by the page's levels or bars."""
    if isinstance(answer, dict):
        return np.array(list(answer.values()))
    if variable["edges"] is None:  # the network discretises this number
        return np.asarray(answer.shares)
    return np.diff([0.0, *(answer.cdf(edge) for edge in variable["edges"]), 1.0])
