"""Rows to check an export by: drawn from the model, with holes and levels never seen, and what the model says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.export.scoring_plan import ScoringPlan
from softcount.fitted.answers import drawn
from softcount.fitted.fitted_model import Fitted
from softcount.records import dataclass
from softcount.run.threads import Threads
from softcount.table.cell_forms import as_cell
from softcount.table.schema import Key

ROWS = 1_000
HOLES = 0.15
"""Share of missing cells in the second half of the rows."""
UNSEEN = "(never seen)"
WRONG = 1e-9
"""A difference of probabilities from which an export is refused: it is no rounding."""


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Cells by column, None where missing, and what the model says of each row: probabilities, or a place."""

    cells: Mapping[Key, list[Any]]
    proba: np.ndarray | None
    places: np.ndarray


@dataclass(frozen=True)
class ExportCheck:
    """What came of a check: where it ran, on how many rows, the largest difference, and rows told otherwise."""

    where: str
    rows: int
    difference: float
    otherwise: int
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        apart = f"probabilities differ by at most {self.difference:.1e}" if np.isfinite(self.difference) else ""
        told = "every row has the same class" if not self.otherwise else f"{self.otherwise:,} rows have another class"
        said = ", ".join(part for part in (apart, told) if part)
        return f"checked on {self.rows:,} rows drawn from the model, by {self.where}: {'; '.join((said, *self.notes))}"


def drawn_rows(model: Fitted) -> DrawnRows:
    """Rows of a fitted model, the same every time."""
    rng = np.random.default_rng(0)
    columns = _with_holes(_cells(model, drawn(model, ROWS, None, rng)[0]), rng)
    for key, cells in columns.items():
        cells[:] = [as_cell(model.schema[key].written, cell) for cell in cells]
        if not model.schema[key].kind.numeric and all(isinstance(x, str) for x in cells if x is not None):
            cells[-1] = UNSEEN
    # An array has a column for what is left out, too.
    whole = {spec.key: columns.get(spec.key, [None] * ROWS) for spec in model.schema.fields}
    with Threads(1) as threads:
        proba = model.proba(model.table(whole), threads)
    return DrawnRows(columns, proba, proba.argmax(axis=1))


def _cells(model: Fitted, columns: Mapping[Key, Any]) -> dict[Key, list[Any]]:
    return {
        key: [cell.item() if isinstance(cell, np.generic) else cell for cell in columns[key]]
        for key in (spec.key for spec in model.schema.used)
        if key in columns
    }


def rows_around(centres: np.ndarray, keys: Sequence[Any]) -> dict[Key, list[Any]]:
    """Rows between and around centres, the same every time."""
    rng = np.random.default_rng(0)
    spread = np.maximum(centres.std(axis=0), 1e-3 * np.abs(centres).max(axis=0))
    own = centres[rng.integers(len(centres), size=ROWS)] + rng.normal(size=(ROWS, len(keys))) * spread
    return {key: own[:, place].tolist() for place, key in enumerate(keys)}


def _with_holes(columns: dict[Key, list[Any]], rng: np.random.Generator) -> dict[Key, list[Any]]:
    found = {}
    for key, cells in columns.items():
        holes = rng.random(len(cells)) < HOLES
        holes[: len(cells) // 2] = False
        found[key] = [None if hole else cell for cell, hole in zip(cells, holes, strict=True)]
    return found


def compared(
    plan: ScoringPlan, rows: DrawnRows, where: str, places: np.ndarray, proba: np.ndarray | None
) -> ExportCheck:
    """What an export says of rows beside what the model says; refused where the two differ by more than rounding.

    A place below 0 is of a row that the export cannot score: of such there are fewer than half.
    """
    scored = places >= 0
    difference, near = float("nan"), np.zeros(len(places), dtype=bool)
    if rows.proba is not None and proba is not None:
        difference = float(np.abs(proba - rows.proba)[scored].max(initial=0.0))
        top = np.sort(rows.proba, axis=1)
        near = top[:, -1] - top[:, -2] < WRONG if top.shape[1] > 1 else near
    otherwise = int(((places != rows.places) & scored & ~near).sum())
    if scored.mean() < 0.5 or difference > WRONG or otherwise > (0 if proba is not None else len(places) // 100):
        raise DataError(
            f"what was exported does not say what the model says ({where}: probabilities differ by {difference:.1e}, "
            f"{otherwise} of {len(places)} rows have another class), so it was not written. "
            "Columns with offsets beyond 1e10 of their spread lose their digits elsewhere."
        )
    return ExportCheck(where, int(scored.sum()), difference, otherwise)
