"""Cells that somebody gives to ask what follows from them: what is no single value is refused, the unknown is told."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from softcount import remedies
from softcount.errors import DataError, warn
from softcount.fitted.conditions import Condition, condition_of
from softcount.sources import wording
from softcount.table import Chunk, Table
from softcount.table.cell_forms import is_plain
from softcount.table.schema import Field, Key, Kind, Schema

LARGEST_WHOLE = 2**53
"""Numbers up to here are what they are as floats."""
BRACKETS, QUOTES, BETWEEN = "[](){} ", "'\" ", re.compile(r"[,;|]")
"""What a list of levels that was written as text has around it, around each, and between them."""


def refuse_several(schema: Schema, given: Mapping[Key, Any]) -> None:
    """Raise where a column is given several values, be it in one string."""
    for key, value in given.items():
        several = isinstance(value, (Condition, Mapping)) or condition_of(value) is not None or np.ndim(value) > 0
        if several or (schema[key].kind.coded and _names_several(str(value), schema[key].levels)):
            raise DataError(
                f"{wording.column(key)} is given {wording.cell(value)}, which is several values. A row holds one; of "
                f"several that are possible: {remedies.either('any_of(...)', 'COL=A|B')}"
            )


def _names_several(text: str, levels: Sequence[object]) -> bool:
    """Whether a text that is no level itself names at least two of them."""
    known = {str(level) for level in levels}
    parts = [part.strip(QUOTES) for part in BETWEEN.split(text.strip(BRACKETS))]
    return text not in known and sum(part in known for part in parts) > 1


def plain_row(schema: Schema, given: Mapping[Key, Any]) -> Chunk | None:
    """One row that holds what is given, where all of it are levels as they are, and numbers that their kind may be.

    None where it must be read as a table is: that takes 0.06 s the first time, for loading Arrow.
    """
    if schema.texts:
        return None
    stores = {name: len(schema.stored(name)) for name in ("reals", "codes", "wide")}
    reals = np.full((1, stores["reals"]), np.nan)
    codes, wide = np.zeros((1, stores["codes"]), np.uint8), np.zeros((1, stores["wide"]), np.int32)
    arrays: dict[str, np.ndarray] = {"reals": reals, "codes": codes, "wide": wide}
    for key, value in given.items():
        cell = None if value is None else _plain_cell(schema[key], value)
        if cell is None and value is not None:
            return None
        if cell is not None:
            store, slot = schema.places[key]
            arrays[store][0, slot] = cell
    return Chunk(0, 1, reals, codes, wide)


def _plain_cell(spec: Field, value: Any) -> float | None:
    """The number or the code of a cell; None where it must be looked at more closely."""
    if type(value) not in (str, int, float):
        return None
    if spec.kind.coded:
        places = [place for place, level in enumerate(spec.levels, start=1) if level == value]
        return places[0] if places and type(spec.levels[places[0] - 1]) is type(value) else None
    if isinstance(value, str) or not is_plain(spec.written) or not abs(value) <= LARGEST_WHOLE:
        return None
    fine = {Kind.REAL: True, Kind.POSITIVE: value > 0, Kind.COUNT: value >= 0 and float(value).is_integer()}
    return float(value) if fine.get(spec.kind, False) else None


def warn_of_given(table: Table, given: Mapping[Key, Any]) -> None:
    """Warn of values that the model of a table, read for one row of them, has not seen or cannot take."""
    for key, value in given.items():
        spec = table.schema[key]
        if spec.kind.coded and table.unseen[key]:
            said = f"{wording.column(key)} never held {wording.cell(value)} in training. {_meant(value, spec)}"
            warn(said)
        if key in table.outside:
            said = f"{wording.column(key)} is {spec.kind} ({spec.why}), so {wording.cell(value)} is no evidence."
            warn(said)


def _meant(value: Any, spec: Field) -> str:
    """What was probably meant, or the levels there are."""
    known = {str(level).casefold(): level for level in spec.levels}
    near = get_close_matches(str(value).strip().casefold(), list(known), n=1)
    return f"Did you mean {known[near[0]]!r}?" if near else f"It held {wording.and_others(spec.levels)}."
