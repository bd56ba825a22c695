"""Levels and classes in their final, sorted order once every row has been met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from softcount.models.declared import Declared
from softcount.table import Chunk, Table
from softcount.table.schema import Key, Schema

PAIRS: tuple[tuple[object, object], ...] = (
    (0, 1),
    (False, True),
    ("no", "yes"),
    ("No", "Yes"),
    ("n", "y"),
    ("N", "Y"),
    ("f", "t"),
    ("F", "T"),
    ("false", "true"),
    ("False", "True"),
)
"""Opposites, so that a yes-or-no column knows its other level even if it was never met."""


@dataclass(frozen=True, slots=True)
class Settling:
    """The final schema, and where every code met along the way went."""

    schema: Schema
    remap: dict[Key, np.ndarray]
    classes: list[Any]
    label_remap: np.ndarray | None
    notes: list[str] = field(default_factory=list)


def settling(table: Table, declared: Declared, classes: Sequence[Any] | None) -> Settling:
    """Sort levels and classes. Classes given by the caller are already coded in order."""
    found = table.settle()
    schema, remap = found.schema, dict(found.remap)
    for spec in schema.used:
        family = declared.families.get(spec.key) or declared.everything
        if family is not None and family.name == "bernoulli" and len(spec.levels) == 1:
            schema, remap[spec.key] = _with_opposite(schema, spec.key, remap.get(spec.key, np.array([0, 1])))
    if classes is not None:
        return Settling(schema, remap, list(classes), None)
    return Settling(schema, remap, list(found.classes or []), found.label_remap)


def _with_opposite(schema: Schema, key: Key, remap: np.ndarray) -> tuple[Schema, np.ndarray]:
    spec = schema[key]
    for low, high in PAIRS:
        if spec.levels[0] in (low, high) and type(spec.levels[0]) is type(low):
            moved = remap + (remap > 0) * int(spec.levels[0] == high)
            return schema.with_field(replace(spec, levels=(low, high))), moved
    return schema, remap


def remapped(chunk: Chunk, settled: Settling) -> Chunk:
    """The chunk with its codes and labels in the settled order."""
    codes = _recoded(chunk.codes, "codes", settled)
    wide = _recoded(chunk.wide, "wide", settled)
    labels = chunk.labels
    if labels is not None and settled.label_remap is not None:
        labels = np.where(labels < 0, labels, settled.label_remap[np.maximum(labels, 0)]).astype(np.int32)
    return replace(chunk, codes=codes, wide=wide, labels=labels)


def _recoded(codes: np.ndarray, store: str, settled: Settling) -> np.ndarray:
    fields = settled.schema.stored(store)
    moves = [(j, settled.remap[spec.key]) for j, spec in enumerate(fields) if spec.key in settled.remap]
    moves = [(j, move) for j, move in moves if (move != np.arange(len(move))).any()]
    if not moves:
        return codes
    codes = codes.copy()
    for j, move in moves:
        codes[:, j] = move.astype(codes.dtype)[codes[:, j]]
    return codes
