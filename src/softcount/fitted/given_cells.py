"""Cells that somebody gives to ask what follows from them: what is no single value is refused, the unknown is told."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from softcount.errors import DataError, DataWarning
from softcount.sources import wording
from softcount.table import Table
from softcount.table.schema import Field, Key, Schema

BRACKETS, QUOTES, BETWEEN = "[](){} ", "'\" ", re.compile(r"[,;|]")
"""What a list of levels that was written as text has around it, around each, and between them."""


def refuse_several(schema: Schema, given: Mapping[Key, Any]) -> None:
    """Raise where a column is given several values, be it in one string."""
    for key, value in given.items():
        several = isinstance(value, (list, tuple, set, frozenset, dict)) or np.ndim(value) > 0
        if several or (schema[key].kind.coded and _names_several(str(value), schema[key].levels)):
            raise DataError(
                f"{wording.column(key)} is given {wording.cell(value)}, which is several values. "
                "A row holds one: ask once for each."
            )


def _names_several(text: str, levels: Sequence[object]) -> bool:
    """Whether a text that is no level itself names at least two of them."""
    known = {str(level) for level in levels}
    parts = [part.strip(QUOTES) for part in BETWEEN.split(text.strip(BRACKETS))]
    return text not in known and sum(part in known for part in parts) > 1


def warn_of_given(table: Table, given: Mapping[Key, Any]) -> None:
    """Warn of values that the model of a table, read for one row of them, has not seen or cannot take."""
    for key, value in given.items():
        spec = table.schema[key]
        if spec.kind.coded and table.unseen[key]:
            said = f"{wording.column(key)} never held {wording.cell(value)} in training. {_meant(value, spec)}"
            warnings.warn(said, DataWarning, stacklevel=6)
        if key in table.outside:
            said = f"{wording.column(key)} is {spec.kind} ({spec.why}), so {wording.cell(value)} is no evidence."
            warnings.warn(said, DataWarning, stacklevel=6)


def _meant(value: Any, spec: Field) -> str:
    """What was probably meant, or the levels there are."""
    known = {str(level).casefold(): level for level in spec.levels}
    near = get_close_matches(str(value).strip().casefold(), list(known), n=1)
    return f"Did you mean {known[near[0]]!r}?" if near else f"It held {wording.and_others(spec.levels)}."
