"""The scoring plan of a model: its columns, the formula of its score, its classes, and rows to check an export with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np
from msgspec import Struct

from softcount.core.formulas import Cell, Formula, formula, total
from softcount.errors import DataError
from softcount.fitted.answers import labels_in
from softcount.fitted.calibration import Calibration
from softcount.fitted.fitted import Fitted
from softcount.fitted.scorers import not_exported
from softcount.run.local import Threads
from softcount.sources.frames import number_words
from softcount.table.cell_forms import CellForm, NumberForm, TimeForm, is_plain, write_cell
from softcount.table.schema import BLANK, DASHES, MISSING, Key, Kind, asked_words, labels
from softcount.text import Reading

NOT_A_NUMBER = ("nan", "NaN", "NAN")
SINCE_1970 = "seconds since 1970"


class InputColumn(Struct, frozen=True, eq=False):
    """A column to read: its name, texts that mean missing, and its levels or the kind of its numbers."""

    key: Key
    name: str
    missing: tuple[str, ...]
    levels: tuple[object, ...] | None = None
    kind: Kind = Kind.REAL
    valued: bool = False
    """Whether its levels are numbers and are read as numbers; others are missing."""
    form: CellForm | None = None
    """How its cells are written if they are no plain numbers: dates, times, numbers with a unit."""
    reading: Reading | None = None
    """How the words of a text are found; they are its levels."""

    @property
    def number(self) -> bool:
        return self.levels is None or self.valued

    @property
    def expected(self) -> str:
        """What other programs must give as the numbers of the column."""
        form = self.form
        if form is None:
            return "numbers"
        if isinstance(form, NumberForm):
            return f"numbers in {form.unit}" if form.unit else "numbers"
        if isinstance(form, TimeForm) and form.is_date:
            return SINCE_1970
        clock = isinstance(form, TimeForm) and "%D" not in form.pattern and not form.typed.startswith("duration")
        return "seconds since midnight" if clock else "seconds"

    def numbers(self, cells: Sequence[Any]) -> list[float | None]:
        """Return cells as the numbers they stand for."""
        if self.form is None:
            return [None if cell is None else float(cell) for cell in cells]
        found = self.form.read([None if cell is None else str(cell) for cell in cells])[0]
        return [None if np.isnan(value) else float(value) for value in found]

    def spellings(self) -> Iterator[tuple[str, int]]:
        """Yield every way that a level is written, and the number of the level, from 1."""
        for place, level in enumerate(self.levels or (), start=1):
            for text in ("", *self.missing, BLANK) if level == BLANK else spell_level(level):
                yield text, place


class ScoringPlan(Struct, frozen=True, eq=False):
    """The columns, the terms whose sum is the score of every group, and the groups' names.

    The result is "probabilities" with the most probable group, or only the group with the "highest" score.
    """

    columns: tuple[InputColumn, ...]
    terms: tuple[Formula, ...]
    names: tuple[Any, ...]
    finish: Literal["probabilities", "highest"] = "probabilities"
    calibration: Calibration | None = None

    @property
    def headings(self) -> list[str]:
        return list(labels(self.names).values())

    def column(self, key: Key) -> InputColumn:
        return next(column for column in self.columns if column.key == key)


class Exported(Protocol):
    """A model that can be exported."""

    def _export_plan(self) -> ScoringPlan: ...

    def _export_rows(self) -> DrawnRows: ...


def plan_model(model: Fitted) -> ScoringPlan:
    """Return the plan of a model of classes; an error names a column that has no formula."""
    if model.bag:
        raise DataError(
            "the model was fitted on a sparse table, whose columns have no names: it cannot be exported. "
            "Fit a table whose columns have names, or the texts themselves."
        )
    score = model.scorer.formula(model)
    columns = describe_columns(model, score.columns, score.valued)
    return ScoringPlan(tuple(columns), score.terms, tuple(model.names), calibration=model.scorer.calibration)


def plan_centres(centres: np.ndarray, keys: Sequence[Any], unit: bool) -> ScoringPlan:
    """Return the plan of clusters around centres; with `unit`, of directions."""
    columns = tuple(InputColumn(key, name, MISSING) for key, name in labels(keys).items())
    each = list(zip(keys, centres.T, strict=True))
    if unit:
        score = total([Cell(key) * centre for key, centre in each])
    else:
        offs = [Cell(key) - centre for key, centre in each]
        score = formula(0.0) - total([off * off for off in offs])
    return ScoringPlan(columns, (score,), tuple(range(len(centres))), "highest")


def describe_columns(model: Fitted, keys: Sequence[Key], valued: Sequence[Key] = ()) -> list[InputColumn]:
    """Return how these columns of a model are read."""
    names, schema, found = labels_in(model), model.schema, []
    for key in dict.fromkeys(keys):
        spec = schema[key]
        form = None if is_plain(spec.written) else spec.written
        if form is not None and not spec.kind.numeric:
            raise not_exported(key, f"holds {form.description}", "other programs read otherwise")
        if spec.kind is Kind.TEXT:
            reading = spec.reading or Reading()
            if reading.analyzer == "steps":
                raise not_exported(key, "holds sequences", "only Softcount counts the steps of")
            asked = () if set(schema.missing) == set(MISSING) else ("", *map(str.strip, schema.missing))
            found.append(InputColumn(key, names[key], asked, tuple(spec.levels), spec.kind, reading=reading))
            continue
        levels = None if spec.kind.numeric else tuple(spec.levels)
        dashes = DASHES if spec.kind.numeric and set(MISSING) <= set(schema.missing) else ()
        # Databases have real nulls: among categories the usual words are words, as in frames.
        given = schema.missing if levels is None else asked_words(schema.missing)
        words = dict.fromkeys(("", *map(str.strip, given), *spec.missing, *dashes))
        marks = (text for mark in number_words(tuple(words)) for text in spell_level(mark))
        of_numbers = levels is None or not all(isinstance(level, str) for level in levels)
        missing = dict.fromkeys((*words, *marks, *(NOT_A_NUMBER if of_numbers else ())))
        kept = tuple(word for word in missing if levels is None or word not in levels)
        found.append(InputColumn(key, names[key], kept, levels, spec.kind, key in valued, form))
    return found


def spell_level(level: object) -> list[str]:
    """Return how databases write a level as text.

    >>> spell_level(2), spell_level(0.5), spell_level(True)
    (['2', '2.0'], ['0.5'], ['True', 'true', '1', '1.0'])
    """
    if isinstance(level, (bool, np.bool_)):
        return [str(bool(level)), str(bool(level)).lower(), *spell_level(int(level))]
    if isinstance(level, (float, np.floating)) and not float(level).is_integer():
        return [repr(float(level))]
    if isinstance(level, (int, float, np.integer, np.floating)):
        return [str(int(level)), f"{float(level)!r}"] if abs(float(level)) < 1e16 else [repr(level)]
    return [str(level)]


def type_names(names: Sequence[Any]) -> Mapping[str, Any]:
    """Return the names of the groups as text, numbers or Booleans, and their type."""
    own = [name.item() if isinstance(name, np.generic) else name for name in names]
    for kind in (bool, int, float):
        if all(type(name) is kind for name in own):
            return {"type": kind, "values": own}
    return {"type": str, "values": list(labels(own).values())}


# -- rows to check an export with: drawn from the model, with missing cells and unseen levels

ROWS = 1_000
HOLES = 0.15
"""Share of missing cells in the second half of the rows."""
UNSEEN = "(never seen)"
WRONG = 1e-9
"""A difference of probabilities from which an export is refused: it is no rounding."""


class DrawnRows(Struct, frozen=True, eq=False):
    """Cells by column, None if missing, and the model's answer for each row: probabilities and place of the class."""

    cells: Mapping[Key, list[Any]]
    proba: np.ndarray | None
    places: np.ndarray


class ExportCheck(Struct, frozen=True):
    """The result of a check: where it ran, on how many rows, the largest difference, and rows of another class."""

    where: str
    rows: int
    difference: float
    otherwise: int
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        apart = f"probabilities differ by at most {self.difference:.1e}" if np.isfinite(self.difference) else ""
        labels = "every row has the same class" if not self.otherwise else f"{self.otherwise:,} rows have another class"
        found = ", ".join(part for part in (apart, labels) if part)
        return f"checked on {self.rows:,} rows drawn from the model, by {self.where}: {'; '.join((found, *self.notes))}"


def draw_rows(model: Fitted) -> DrawnRows:
    """Draw rows of a fitted model, the same every time."""
    rng = np.random.default_rng(0)
    found = model.condition(None).draw_columns(ROWS, rng)[0]
    columns: dict[Key, list[Any]] = {}
    for key in (spec.key for spec in model.schema.used if spec.key in found):
        cells = [cell.item() if isinstance(cell, np.generic) else cell for cell in found[key]]
        holes = rng.random(len(cells)) < HOLES
        holes[: len(cells) // 2] = False
        columns[key] = [None if hole else cell for cell, hole in zip(cells, holes, strict=True)]
    for key, cells in columns.items():
        cells[:] = [write_cell(model.schema[key].written, cell) for cell in cells]
        if not model.schema[key].kind.numeric and all(isinstance(x, str) for x in cells if x is not None):
            cells[-1] = UNSEEN
    # An array has a column for what is left out, too.
    whole = {spec.key: columns.get(spec.key, [None] * ROWS) for spec in model.schema.fields}
    with Threads(1) as threads:
        proba = model.proba(model.table(whole), threads)
    return DrawnRows(columns, proba, proba.argmax(axis=1))


def draw_around(centres: np.ndarray, keys: Sequence[Any]) -> dict[Key, list[Any]]:
    """Draw rows between and around centres, the same every time."""
    rng = np.random.default_rng(0)
    spread = np.maximum(centres.std(axis=0), 1e-3 * np.abs(centres).max(axis=0))
    own = centres[rng.integers(len(centres), size=ROWS)] + rng.normal(size=(ROWS, len(keys))) * spread
    return {key: own[:, place].tolist() for place, key in enumerate(keys)}


def compare(
    plan: ScoringPlan, rows: DrawnRows, where: str, places: np.ndarray, proba: np.ndarray | None
) -> ExportCheck:
    """Compare the answers of an export with those of the model; raise if they differ by more than rounding.

    A row that the export cannot score has a place below 0; at least half of the rows must be scored.
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
            f"the export does not agree with the model ({where}: probabilities differ by {difference:.1e}, "
            f"{otherwise} of {len(places)} rows have another class), so it was not written. "
            "Columns with offsets beyond 1e10 of their spread lose digits in other programs."
        )
    return ExportCheck(where, int(scored.sum()), difference, otherwise)
