"""The vocabulary of documents that come in blocks, and the part of it that is kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softcount.text.block import Block
from softcount.text.reading import Reading
from softcount.text.words import Words


@dataclass(frozen=True, slots=True)
class Chosen:
    """The words that are kept, in order; the column of every gathered word (-1: not kept); what they were met.

    `counts` and `documents` say how often each kept word occurs in all, and in how many documents.
    """

    words: Words
    columns: np.ndarray
    counts: np.ndarray
    documents: np.ndarray
    n_documents: int
    notes: tuple[str, ...] = ()


class Gathered:
    """Words of blocks, added one after another; which is first does not change what is chosen."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.places: dict[str, int] = {}
        self.counts = np.zeros(0, np.int64)
        self.documents = np.zeros(0, np.int64)
        self.n_documents = 0

    def add(self, block: Block, n_documents: int | None = None) -> np.ndarray:
        """The number, here, of each of the block's words; `n_documents` without those that are missing."""
        ids = np.array([self.places.setdefault(word, len(self.places)) for word in block.words], np.int32)
        more = len(self.places) - len(self.counts)
        self.counts, self.documents = np.pad(self.counts, (0, more)), np.pad(self.documents, (0, more))
        self.counts[ids] += np.bincount(block.ids, block.counts, len(ids)).astype(np.int64)
        self.documents[ids] += np.bincount(block.ids, minlength=len(ids))
        self.n_documents += block.n_documents if n_documents is None else n_documents
        return ids

    def chosen(self) -> Chosen:
        """The words that the reading keeps of all that were gathered."""
        asked = self.reading
        words = list(self.places)
        keep = [i for i in range(len(words)) if self.counts[i] >= asked.min_count]
        keep = sorted(keep, key=lambda i: (-self.counts[i], words[i]))[asked.drop_top :]
        keep.sort(key=words.__getitem__)
        columns = np.full(len(words), -1, np.int32)
        columns[keep] = np.arange(len(keep))
        return Chosen(
            Words.of(words[i] for i in keep), columns, self.counts[keep], self.documents[keep], self.n_documents
        )
