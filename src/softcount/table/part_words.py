"""Words of the parts of a table that others read: each part tells what it met, and the table chooses among all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from softcount.records import dataclass
from softcount.sources.source import TablePiece, Wanted
from softcount.table.chunk import Chunk
from softcount.table.coded_parts import PartFacts
from softcount.table.encode import CodedChunk, Encoder, RowCoding
from softcount.table.labels import SideColumns
from softcount.table.schema import Key
from softcount.table.text_columns import TextColumn, TextPiece, WordReader
from softcount.text import Gathered


@dataclass(slots=True)
class WordsMet:
    """The words of a column of text that a part holds; `among`: how many of its rows have a label.

    It stands where the coder of a column of levels does, and is what has been learned itself.
    """

    gathered: Gathered
    rows: int = 0
    among: int = 0
    learned: None = None

    @property
    def vocabulary(self) -> WordsMet:
        return self

    @property
    def levels(self) -> WordsMet:
        return self


class WordsEncoder(Encoder):
    """Gathers the words of rows; its chunks are empty."""

    def __init__(self, reader: WordReader) -> None:
        self.reader = reader
        self.coders: Any = {key: WordsMet(Gathered(reading)) for key, (_, reading) in reader.readings.items()}

    def encode(self, piece: TablePiece, raw: Any) -> CodedChunk:
        """A chunk without columns, once its words are gathered."""
        _, labelled, blocks = self.reader(TextPiece(piece._replace(load=lambda: raw), None))
        for met, (block, known) in zip(self.coders.values(), blocks, strict=True):
            some = None if labelled.all() else known & labelled
            met.gathered.add(block, int(np.count_nonzero(known)), some)
            met.rows, met.among = met.rows + len(labelled), met.among + int(np.count_nonzero(labelled))
        nothing = np.empty((piece.n_rows, 0))
        return CodedChunk(Chunk(piece.start, piece.n_rows, nothing, nothing.astype(np.uint8), nothing.astype(np.int32)))


class WordsCoding(RowCoding):
    """Rows whose words are gathered; columns have the names that the source has for them."""

    def renamed(self, raw: Any) -> Any:
        return raw


def words_coding(reader: WordReader) -> tuple[RowCoding, dict[Key, Wanted]]:
    """How others gather the words of parts of a table, and the columns they read."""
    return WordsCoding(WordsEncoder(reader), {}, SideColumns(None, None, reader.missing)), reader.wanted


def choose_words(columns: Mapping[Key, TextColumn], facts: Iterable[PartFacts]) -> bool:
    """Choose the words of columns among those that all parts met; False where no row has a label."""
    parts: list[Any] = [part.levels for part in facts if part.levels]
    first = next(iter(columns))
    rows, among = sum(part[first].rows for part in parts), sum(part[first].among for part in parts)
    if parts and not among:
        return False
    for key, column in columns.items():
        whole = Gathered(column.reading)
        for part in parts:
            whole.join(part[key].gathered)
        column.among = among if among < rows else None
        column.settle(whole, {}, complete=False)
    return True
