"""Vocabularies of two models of one text column: united, and counts moved from one to the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.families import Text
from softcount.models.nodes import Node
from softcount.numerics.twofold import Twofold
from softcount.table import wording
from softcount.table.schema import Field, Key, Schema
from softcount.table.texts import WORDLESS
from softcount.text import Reading, Words

WORDING = ("analyzer", "ngrams", "pattern", "lowercase", "stop_words")
"""The parts of a reading that say what a word is; the others choose among the words of a whole table."""


def every_word(reading: Reading) -> Reading:
    """The same reading without what chooses words by how often they occur.

    That cannot be told from a part of the rows. `max_words` stays, which bounds memory.
    """
    return replace(reading.unlimited, max_words=reading.max_words)


def is_choosy(reading: Reading | None) -> bool:
    """Whether a reading leaves words out by how often they occur."""
    if reading is None:
        return False
    low, high = reading.min_df, reading.max_df
    any_word = low == 0 or (isinstance(low, int) and low <= 1)
    all_words = isinstance(high, float) and high >= 1.0
    return reading.min_count > 1 or reading.drop_top > 0 or not any_word or not all_words


def text_fields(schema: Schema) -> list[Field]:
    """The columns that are used as text."""
    return [spec for spec in schema.used if spec.reading is not None and isinstance(spec.levels, Words)]


def united_words(left: Words, right: Words) -> Words:
    """The words of both, in order; the left ones themselves where the right has no others."""
    new = right.take(np.flatnonzero(left.columns(right) < 0))
    if not len(new):
        return left
    offsets = np.concatenate([left.offsets, new.offsets[1:] + left.offsets[-1]])
    both = Words(np.concatenate([left.data, new.data]), offsets)
    return both.take(both.order())


def with_united_words(spec: Field, other: Field) -> Field:
    """A text column with the words of both models, which must mean the same by a word."""
    assert spec.reading is not None
    if not isinstance(spec.levels, Words) or not isinstance(other.levels, Words) or other.reading is None:
        return spec
    for name in WORDING:
        mine, theirs = getattr(spec.reading, name), getattr(other.reading, name)
        if mine != theirs:
            raise DataError(
                f"column {spec.key!r} is read with {name}={mine!r} in one model and {name}={theirs!r} in the other. "
                "Give both the same with kinds."
            )
    words = united_words(spec.levels, other.levels)
    said, _, counted = spec.why.rpartition("; ")
    why = f"{said}; {len(words):,} different words" if counted.endswith(" different words") else spec.why
    return replace(spec, levels=words, why=why)


def moved_words(stats: Twofold, old: Node, new: Node) -> Twofold:
    """Counts of documents and words in another vocabulary; words it does not have are left out."""
    mine, theirs = old.setting.levels, new.setting.levels
    assert isinstance(mine, Words) and isinstance(theirs, Words)
    assert isinstance(old.family, Text) and isinstance(new.family, Text)
    if old.family.by_document != new.family.by_document:
        raise DataError(
            f"column {old.key!r} counts words in one model and documents that hold them (bernoulli) in the other. "
            "Declare it the same in both with kinds."
        )
    if mine == theirs:
        return stats
    columns = theirs.columns(mine)
    there = np.flatnonzero(columns >= 0)
    hi, lo = np.zeros((2, stats.shape[0], 1 + len(theirs)))
    for out, part in ((hi, stats.hi), (lo, stats.lo)):
        out[:, 0] = part[:, 0]
        out[:, 1 + columns[there]] = part[:, 1 + there]
    return Twofold(hi, lo)


def refuse_unknown_words(schema: Schema, other: Schema) -> None:
    """Raise at the first word of the other table that a model of every word has never met."""
    for spec in text_fields(schema):
        theirs: Any = other.by_key[spec.key].levels if spec.key in other.by_key else ()
        if not isinstance(theirs, Words) or not isinstance(spec.levels, Words) or is_choosy(spec.reading):
            continue
        new = np.flatnonzero(spec.levels.columns(theirs) < 0)
        if len(new):
            raise DataError(
                f"column {spec.key!r}: the word {theirs[int(new[0])]!r} is to be forgotten, but was never learned. "
                "Give rows the model was fitted on."
            )


def read_in_parts(kinds: Mapping[Key, Any]) -> tuple[dict[Key, Any], list[str]]:
    """Kinds under which every word of a text column is kept, and what that has to say."""
    choosy = [key for key, said in kinds.items() if isinstance(said, Reading) and is_choosy(said)]
    kept = {key: every_word(said) if isinstance(said, Reading) else said for key, said in kinds.items()}
    return kept, [
        f"column {key!r}: learned in parts, so every word is kept: how often one occurs in all rows is not known yet."
        for key in choosy
    ]


def growing(schema: Schema) -> set[Key]:
    """Text columns that take new words: those that have every word met so far."""
    return {spec.key for spec in text_fields(schema) if not is_choosy(spec.reading)}


def outgrown(notes: Sequence[str], leaves: Sequence[Node]) -> list[str]:
    """Notes that say of a column that has words now that it has none."""
    worded = [leaf.key for leaf in leaves if isinstance(leaf.family, Text) and len(leaf.setting.levels)]
    return [note for note in notes if note.startswith(tuple(f"{wording.column(key)} {WORDLESS}" for key in worded))]


def chosen_notes(schema: Schema, other: Schema, merged: bool) -> list[str]:
    """What joining has to say of text columns whose words were chosen from one table by how often they occur."""
    choosy = [spec.key for part in (schema, other) for spec in text_fields(part) if is_choosy(spec.reading)]
    said = (
        "its words were chosen in each model apart, so one that only one model kept is counted in that model alone."
        if merged
        else "its words are those that the first fit chose; others are left out."
    )
    return [f"column {key!r}: {said}" for key in dict.fromkeys(choosy)]
