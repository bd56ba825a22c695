"""The vocabulary of documents that come in blocks, and the part of it that is kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softcount.text.block import Block
from softcount.text.lookup import Lookup
from softcount.text.reading import Reading
from softcount.text.size import worth_bytes
from softcount.text.words import Words

TOO_MANY = 4
"""Where only so many words are asked for: when so many times as many are in memory, the rarer half is given up."""
ALWAYS_HELD = 1 << 20
"""Words that are held in any case: they take 70 MB."""


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
    """Words of blocks, added one after another; which is first does not change what is chosen.

    With `max_words`, the rarest are given up whenever four times as many are held, and more than a million. A word
    given up has lost what was counted of it and, met again, is a new one: counts are then low by at most `lost`, and a
    note says so.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.counts = np.zeros(0, np.int64)
        self.documents = np.zeros(0, np.int64)
        self.n_documents = 0
        self.lost = 0
        self.given_up = 0
        self._words = Lookup()
        self._numbers: np.ndarray | None = None  # of the words held, once some were given up
        self._owed = np.zeros(0, np.int64)  # how much each of them may have lost before it was met
        self._met = 0

    def add(self, block: Block, n_documents: int | None = None, counted: np.ndarray | None = None) -> np.ndarray:
        """The number, here, of each of the block's words; `n_documents` without those that are missing.

        `counted` says which documents count; words that only others hold are numbered, and never chosen. A number is
        given out once: `Chosen.columns` has -1 for a word that was given up.
        """
        ids = self._words.learn(block.words)
        self._make_room()
        if counted is not None:
            n_documents = int(np.count_nonzero(counted))
            block = block if counted.all() else block.only(counted)
        self.n_documents += block.n_documents if n_documents is None else n_documents
        if worth_bytes(len(block.ids)):
            from softcount.text import compiled

            compiled.add(ids, block, self.counts, self.documents)
        else:
            self.counts[ids] += np.bincount(block.ids, block.counts, len(ids)).astype(np.int64)
            self.documents[ids] += np.bincount(block.ids, minlength=len(ids))
        if self._numbers is not None:
            ids = self._numbers[ids]
        self._prune()
        return ids

    def _make_room(self) -> None:
        """Zeros for the words that are new."""
        more = len(self._words) - len(self.counts)
        self.counts, self.documents = np.pad(self.counts, (0, more)), np.pad(self.documents, (0, more))
        if self._numbers is not None:
            new = np.arange(self._met, self._met + more, dtype=np.int32)
            self._numbers = np.concatenate([self._numbers, new])
            self._owed = np.pad(self._owed, (0, more), constant_values=self.lost)
        self._met += more

    def _prune(self) -> None:
        """Give up the rarest words where there are too many, those met last first."""
        asked = self.reading
        if asked.max_words is None:
            return
        most_held = max(TOO_MANY * (asked.max_words + asked.drop_top), ALWAYS_HELD)
        if len(self.counts) <= most_held:
            return
        if self._numbers is None:
            self._numbers, self._owed = np.arange(self._met, dtype=np.int32), np.zeros(self._met, np.int64)
        most = self.counts + self._owed  # what a word may have been met at most
        order = np.argsort(-most, kind="stable")
        stay, go = np.split(order, [most_held // 2])
        self.lost, self.given_up = max(self.lost, int(most[go[0]])), self.given_up + len(go)
        stay.sort()
        self._words = Lookup(self._words.words().take(stay))
        self.counts, self.documents = self.counts[stay], self.documents[stay]
        self._numbers, self._owed = self._numbers[stay], self._owed[stay]

    def chosen(self) -> Chosen:
        """The words that the reading keeps of all that were gathered."""
        kept = np.flatnonzero(self._within())
        words = self._words.words().take(kept)
        order = words.order()
        order = order[self._frequent(self.counts[kept[order]])]
        kept, words = kept[order], words.take(order)
        columns = np.full(self._met, -1, np.int32)
        columns[kept if self._numbers is None else self._numbers[kept]] = np.arange(len(kept))
        return Chosen(words, columns, self.counts[kept], self.documents[kept], self.n_documents, self._notes())

    def _within(self) -> np.ndarray:
        """Which words are met often enough, and in neither too few nor too many documents."""
        asked = self.reading
        least, most = (
            limit * self.n_documents if isinstance(limit, float) else limit for limit in (asked.min_df, asked.max_df)
        )
        return (self.counts >= max(asked.min_count, 1)) & (self.documents >= least) & (self.documents <= most)

    def _frequent(self, counts: np.ndarray) -> np.ndarray:
        """The places, in order, of the words that stay when the most frequent go and only so many are asked for."""
        asked = self.reading
        if not asked.drop_top and (asked.max_words is None or len(counts) <= asked.max_words):
            return np.arange(len(counts))
        most_first = np.argsort(-counts, kind="stable")[asked.drop_top :]
        return np.sort(most_first[: asked.max_words])

    def _notes(self) -> tuple[str, ...]:
        if not self.given_up:
            return ()
        return (
            f"more words than memory was meant for: {self.given_up:,} rare ones were given up on the way,"
            f" and counts may be low by up to {self.lost:,}. Raise max_words to count exactly.",
        )
