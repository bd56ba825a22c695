"""The schema of a model in its file: columns, what means missing, how the data is read; nothing there is trusted."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from msgspec.structs import replace

from softcount.errors import ModelFileError
from softcount.families.base import number, truth, whole
from softcount.files.archive import Arrays, Document
from softcount.files.json_document import plain
from softcount.files.text_part import reading_document, reading_from, words_from
from softcount.sources.source import FileFormat
from softcount.table.cell_forms import CellForm, DurationForm, NumberForm, TimeForm, is_named_type, is_typed
from softcount.table.schema import MOST_POINTS, CountedPoints, Derived, Field, Key, Kind, Schema
from softcount.text.word_list import Words

FORMS: dict[str, type[CellForm]] = {form.name: form for form in (NumberForm, TimeForm, DurationForm)}
MOST_DIGITS = 30
"""Decimals that a number may be written with."""


def filed_schema(schema: Schema) -> Document:
    """A schema as JSON; the words of its columns of text are in arrays of their own."""
    form = schema.form.document
    more = {"form": {name: list(x) if isinstance(x, tuple) else x for name, x in form.items()}} if form else {}
    return {"missing": list(schema.missing), "fields": [_field(spec) for spec in schema.fields], **more}


def schema_from(document: Document, arrays: Arrays) -> Schema:
    """A schema back."""
    fields = tuple(_read_field(x, arrays) for x in document["fields"])
    return Schema(fields, _words(document["missing"]), _form_from(document.get("form", {})))


def _form_from(said: Any) -> FileFormat:
    """How files are read, if every part of it is of its type."""
    types = {"header": bool, "skip_lines": int, "names": list}
    if not isinstance(said, dict) or not all(type(value) is types.get(name, str) for name, value in said.items()):
        raise ModelFileError(f"how data is read makes no sense: {said!r}.")
    return FileFormat.of(**said | {"names": _words(said.get("names", []))})


def _field(spec: Field) -> Document:
    more: Document = {"missing": list(spec.missing)} if spec.missing else {}
    more |= {} if spec.written is None else {"written": spec.written.document}
    more |= {"cells": spec.cells} if spec.cells else {}
    more |= {} if spec.derived is None else {"derived": _derived(spec.derived)}
    more |= {} if spec.bounds is None else {"bounds": [x if np.isfinite(x) else None for x in spec.bounds]}
    return more | _points(spec.points) | {
        "key": plain(spec.key), "kind": spec.kind.value, "why": spec.why, "levels": _levels(spec.levels),
        "anchor": float(spec.anchor), "scale": float(spec.scale), "used": bool(spec.used), "wide": bool(spec.wide),
        "declared": bool(spec.declared), "reading": None if spec.reading is None else reading_document(spec.reading),
    }  # fmt: skip


def _levels(levels: Any) -> list[Any] | None:
    """Levels as JSON; words are in arrays of their own."""
    return None if isinstance(levels, Words) else [plain(x) for x in levels]


def array_name(key: Hashable) -> str:
    """What stands for a column in the names of arrays."""
    return repr(plain(key))


def _read_field(x: Document, arrays: Arrays) -> Field:
    key, kind, reading, levels = column_from(x["key"]), Kind(x["kind"]), x.get("reading"), x["levels"]
    scale, anchor = (number(x[name], f"the {name} of column {key!r}") for name in ("scale", "anchor"))
    used, wide, declared = (truth(x[name], f"column {key!r}: {name}") for name in ("used", "wide", "declared"))
    if not scale > 0:
        raise ModelFileError(f"column {key!r} has an impossible anchor or scale.")
    if (kind is Kind.TEXT and used) != (levels is None) or (levels is None and reading is None):
        raise ModelFileError(f"column {key!r} ({kind}) has no levels, or words where it is no text.")
    known = words_from(arrays, f"words/{array_name(key)}", key) if levels is None else tuple(levels)
    if levels is not None and not all(isinstance(level, (str, int, float)) for level in levels):
        raise ModelFileError(f"column {key!r} has levels that are neither text nor numbers.")
    read = None if reading is None else reading_from(reading, key)
    points = None if "points" not in x else _read_points(x["points"], key)
    missing, written = _words(x.get("missing", [])), x.get("written")
    form = None if written is None else _read_form(written, key)
    cells = x.get("cells", "")
    if not isinstance(cells, str) or (cells and not is_named_type(cells)):
        raise ModelFileError(f"column {key!r} has cells of an unknown type: {cells!r}.")
    derived = None if x.get("derived") is None else _read_derived(x["derived"], key)
    bounds = None if x.get("bounds") is None else _read_bounds(x["bounds"], key)
    found = Field(key, kind, str(x["why"]), known, anchor, scale, used, wide, declared, read, points, missing, form)
    return replace(found, cells=cells, derived=derived, bounds=bounds)


def _derived(rule: Derived) -> Document:
    """How a column follows from another, as JSON."""
    if rule.lead is None:
        return {"constant": plain(rule.constant)}
    if rule.levels:
        return {"lead": plain(rule.lead), "levels": [[plain(x) for x in pair] for pair in rule.levels]}
    return {"lead": plain(rule.lead), "slope": float(rule.slope), "intercept": float(rule.intercept)}


def _read_derived(x: Document, key: Key) -> Derived:
    what = f"what column {key!r} follows from"
    if "lead" not in x:
        if not isinstance(x["constant"], (str, int, float)):
            raise ModelFileError(f"{what}: {x!r} is no constant.")
        return Derived(constant=x["constant"])
    lead = column_from(x["lead"])
    if "levels" not in x:
        slope, intercept = number(x["slope"], what), number(x["intercept"], what)
        if slope == 0 or lead == key:
            raise ModelFileError(f"{what} makes no sense: {x!r}.")
        return Derived(lead, slope=slope, intercept=intercept)
    pairs = tuple((one, other) for one, other in x["levels"])
    if lead == key or not pairs or not all(isinstance(level, (str, int, float)) for pair in pairs for level in pair):
        raise ModelFileError(f"{what} makes no sense: {x!r}.")
    return Derived(lead, pairs)


def _read_bounds(x: Any, key: Key) -> tuple[float, float]:
    what = f"the bounds of column {key!r}"
    low, high = (-np.inf if x[0] is None else number(x[0], what)), (np.inf if x[1] is None else number(x[1], what))
    if len(x) != 2 or not low < high:
        raise ModelFileError(f"{what} make no sense: {x!r}.")
    return low, high


def _read_form(x: Any, key: Key) -> CellForm:
    """How numbers are written, if every part is of its type and something that is read anywhere."""
    said = dict(x)
    kind = FORMS.get(said.pop("form"))
    if kind is NumberForm:
        said.setdefault("decimals", 0)  # files of before 0.1 have none
    parts = {} if kind is None else {part: type(getattr(kind(), part)) for part in kind.__struct_fields__}
    if kind is None or {name: type(value) for name, value in said.items()} != parts:
        raise ModelFileError(f"column {key!r} is written in a way that makes no sense: {x!r}.")
    found = kind(**said)
    places = (said["digits"], said.get("decimals", 0))
    if not all(0 <= x <= MOST_DIGITS for x in places) or (found.typed and not is_typed(found.typed)):
        raise ModelFileError(f"column {key!r} is written in a way that makes no sense: {x!r}.")
    return found


def _points(points: CountedPoints | None) -> Document:
    if points is None:
        return {}
    return {"points": {"values": list(points.values), "step": points.step, "most": points.most}}


def _read_points(x: Document, key: Key) -> CountedPoints:
    """The numbers that a column is counted at, if they are different ones in order."""
    step, values = number(x["step"], f"the step of column {key!r}"), x["values"]
    most = whole(x["most"], 1, MOST_POINTS, f"the number of points of column {key!r}")
    if not isinstance(values, list) or not all(type(value) is float for value in values):
        raise ModelFileError(f"column {key!r} is counted at what are no numbers.")
    found = np.array(values)
    if step < 0 or not np.isfinite(found).all() or not (np.diff(found) > 0).all() or len(found) > most:
        raise ModelFileError(f"column {key!r} is counted at numbers that are out of order, or too many.")
    return CountedPoints(tuple(values), step, most)


def _words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ModelFileError(f"the cells that count as missing are {value!r}, which are no words.")
    return tuple(value)


def column_from(value: Any) -> Key:
    """A column's name or place back."""
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        raise ModelFileError(f"{value!r} is no column: neither a name nor a place.")
    return value
