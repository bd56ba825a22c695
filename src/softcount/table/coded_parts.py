"""A part of a table that was encoded elsewhere: its chunks stay there, and what the table must hear comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from softcount.records import dataclass
from softcount.sources.source import Source, Wanted
from softcount.table.chunk import Chunk, Settled
from softcount.table.encode import ChunkTask, RowCoding, Tally, add_counts
from softcount.table.levels import order_codes
from softcount.table.schema import Key, Schema


@dataclass(frozen=True, slots=True)
class PartFacts:
    """What a pass over a part has shown: how many rows there are, and which levels were met, in the order of first
    sight, those that every copy of the vocabulary came with among them."""

    n_rows: int = 0
    weight: float = 0.0
    unknown_labels: int = 0
    missing: Mapping[Key, int] = field(default_factory=dict)
    unseen: Mapping[Key, int] = field(default_factory=dict)
    outside: Mapping[Key, np.ndarray] = field(default_factory=dict)
    levels: Mapping[Key, list[Any]] = field(default_factory=dict)
    labels: list[Any] | None = None
    digest: str | None = None
    """Of the cells, where these need not be the same when the part is read again."""


def read_part(
    source: Source, coding: RowCoding, wanted: Mapping[Key, Wanted], keep: Callable[[Chunk], Any]
) -> PartFacts:
    """A part's facts; `keep` takes its chunks, with levels and rows numbered as they come.

    The coding learns what it meets.
    """
    tally, rows = Tally(), 0
    for piece in source.pieces(wanted):
        chunk = ChunkTask(piece, coding, tally)()
        keep(chunk)
        rows += chunk.n_rows
    levels = {key: coder.vocabulary.levels for key, coder in coding.encoder.coders.items()}
    labels = None if coding.sides.labels is None else coding.sides.labels.vocabulary.levels
    outside = {key: np.sort(np.concatenate(rows)) for key, rows in tally.outside.items()}
    return PartFacts(rows, tally.weight, tally.unknown_labels, tally.missing, tally.unseen, outside, levels, labels)


@dataclass(frozen=True, slots=True)
class FinalOrder:
    """The levels and labels of all parts in their settled order."""

    schema: Schema
    labels: list[Any] | None

    def settled(self, chunk: Chunk, facts: PartFacts, start: int) -> Chunk:
        """A chunk of a part that starts at this row of the table, in the settled codes."""
        remap = {key: order_codes(own, self.schema[key].levels) for key, own in facts.levels.items()}
        labels = None
        if self.labels is not None and facts.labels is not None:
            labels = order_codes(facts.labels, self.labels)[1:] - 1
        found = Settled(self.schema, remap, [], labels).recoded(chunk)
        return replace(found, start=chunk.start + start)


def add_facts(tally: Tally, facts: PartFacts, start: int) -> None:
    """Count a part that starts at this row."""
    tally.unknown_labels += facts.unknown_labels
    tally.weight += facts.weight
    add_counts(tally.missing, facts.missing)
    add_counts(tally.unseen, facts.unseen)
    for key, rows in facts.outside.items():
        tally.outside.setdefault(key, []).append(rows + start)
