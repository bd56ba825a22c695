"""The vocabulary of documents that come in blocks, and the part of it that is kept."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softcount.records import dataclass
from softcount.text.word_blocks import WordBlock
from softcount.text.word_list import Words, worth_words
from softcount.text.word_rules import Reading

TOO_MANY = 4
"""Where only so many words are asked for: when so many times as many are in memory, the rarer half is given up."""
ALWAYS_HELD = 1 << 20
"""Words that are held in any case: they take 70 MB."""
FEW = 1_000
"""Words of labelled documents up to which limits are counted over all documents, so that a few labels keep enough."""


class Lookup:
    """Numbers from 0 up for words, each the same whenever it comes again; a dictionary at first, arrays from then on.

    >>> lookup = Lookup()
    >>> lookup.learn(Words.of(["ink", "pot"])).tolist(), lookup.learn(Words.of(["pot", "pen"])).tolist()
    ([0, 1], [1, 2])
    >>> list(lookup.words())
    ['ink', 'pot', 'pen']
    """

    __slots__ = ("_places", "_sizes", "_table")

    def __init__(self, words: Words | None = None) -> None:
        self._places: dict[bytes, int] | None = {}
        self._table: tuple[Any, ...] = ()
        self._sizes = np.zeros(2, dtype=np.int64)  # words and their bytes, once in arrays
        if words is not None:
            self.learn(words)

    def __len__(self) -> int:
        return int(self._sizes[0]) if self._places is None else len(self._places)

    def learn(self, words: Words) -> np.ndarray:
        """The number of each word, with new ones for those not met before."""
        if self._places is not None and worth_words(len(self._places) + len(words)):
            self._change()
        if self._places is None:
            from softcount.text import compiled

            ids, self._table = compiled.learned((words.data, words.offsets), self._table, self._sizes)
            return ids
        number, places = self._places.setdefault, self._places
        return np.array([number(word, len(places)) for word in words.spelled()], dtype=np.int32)

    def _change(self) -> None:
        """From the dictionary to arrays."""
        known = Words.of_bytes(list(self._places or ()))
        self._places = None
        self._table = np.zeros((1 << 15, 2), np.uint64), np.empty(1 << 16, np.uint8), np.zeros(1 << 12, np.int64)
        self.learn(known)

    def words(self) -> Words:
        """All the words, in the order they were met."""
        if self._places is not None:
            return Words.of_bytes(list(self._places))
        _, store, places = self._table
        return Words(store[: self._sizes[1]], places[: self._sizes[0] + 1])


@dataclass(frozen=True, slots=True)
class Chosen:
    """The words that are kept, in order; the column of every gathered word (-1: not kept); what they were met.

    `counts` and `documents` say how often each kept word occurs in all, and in how many documents. Where only some
    documents are labelled, `unlabelled` is how many words none of these holds, and `cells` how many cells the kept
    words have in all documents, labelled or not.
    """

    words: Words
    columns: np.ndarray
    counts: np.ndarray
    documents: np.ndarray
    n_documents: int
    notes: tuple[str, ...] = ()
    unlabelled: int = 0
    cells: int = 0


class WordTotals(NamedTuple):
    """How often each word was met, in how many documents, of how many."""

    counts: np.ndarray
    documents: np.ndarray
    n_documents: int


def _tally(ids: np.ndarray, block: WordBlock, counts: np.ndarray, documents: np.ndarray) -> None:
    """Add a block's words to how often they were met, in place."""
    counts[ids] += np.bincount(block.ids, block.counts, len(ids)).astype(np.int64)
    documents[ids] += np.bincount(block.ids, minlength=len(ids))


class Gathered:
    """Words of blocks, added one after another; which is first does not change what is chosen.

    With `max_words`, the rarest are given up whenever four times as many are held, and more than a million. A word
    given up has lost what was counted of it and, met again, is a new one: counts are then low by at most `lost`, and a
    note says so.

    Where only some documents are labelled, words are chosen that these hold: the limits are counted among them, or,
    where that would leave few words, among all.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.counts = np.zeros(0, np.int64)
        self.documents = np.zeros(0, np.int64)
        self.n_documents = 0
        self.lost = 0
        self.given_up = 0
        self._labelled: np.ndarray | None = None  # as `counts` and `documents`, where not all are labelled
        self._n_labelled = 0
        self._words = Lookup()
        self._numbers: np.ndarray | None = None  # of the words held, once some were given up
        self._owed = np.zeros(0, np.int64)  # how much each of them may have lost before it was met
        self._met = 0

    def add(self, block: WordBlock, n_documents: int | None = None, labelled: np.ndarray | None = None) -> np.ndarray:
        """The number, here, of each of the block's words; `n_documents` without those that are missing.

        `labelled` says which documents are; None, that all are. A number is given out once: `Chosen.columns` has -1
        for a word that was given up.
        """
        ids = self._words.learn(block.words)
        self._make_room()
        n_documents = block.n_documents if n_documents is None else n_documents
        if labelled is not None and self._labelled is None:
            self._labelled, self._n_labelled = np.stack([self.counts, self.documents]), self.n_documents
        if self._labelled is not None:
            _tally(ids, block if labelled is None else block.only(labelled), *self._labelled)
            self._n_labelled += n_documents if labelled is None else int(np.count_nonzero(labelled))
        _tally(ids, block, self.counts, self.documents)
        self.n_documents += n_documents
        if self._numbers is not None:
            ids = self._numbers[ids]
        self._prune()
        return ids

    def join(self, other: Gathered) -> None:
        """Take in the words that others have gathered from documents of their own."""
        ids = self._words.learn(other.words)
        self._make_room()
        if other._labelled is not None and self._labelled is None:
            self._labelled, self._n_labelled = np.stack([self.counts, self.documents]), self.n_documents
        if self._labelled is not None:
            all_told = other._labelled is None
            self._labelled[:, ids] += np.stack([other.counts, other.documents]) if all_told else other._labelled
            self._n_labelled += other.n_documents if all_told else other._n_labelled
        self.counts[ids] += other.counts
        self.documents[ids] += other.documents
        self.n_documents += other.n_documents
        self.lost, self.given_up = self.lost + other.lost, self.given_up + other.given_up
        self._prune()

    @property
    def words(self) -> Words:
        """All words that are held, in the order they were met."""
        return self._words.words()

    def _make_room(self) -> None:
        """Zeros for the words that are new."""
        more = len(self._words) - len(self.counts)
        self.counts, self.documents = np.pad(self.counts, (0, more)), np.pad(self.documents, (0, more))
        if self._labelled is not None:
            self._labelled = np.pad(self._labelled, ((0, 0), (0, more)))
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
        if self._labelled is not None:  # only words of labelled documents are chosen: the others go first
            order = order[np.argsort(self._labelled[0][order] == 0, kind="stable")]
        stay, go = np.split(order, [most_held // 2])
        self.lost, self.given_up = max(self.lost, int(most[go].max())), self.given_up + len(go)
        stay.sort()
        self._words = Lookup(self._words.words().take(stay))
        self.counts, self.documents = self.counts[stay], self.documents[stay]
        self._labelled = None if self._labelled is None else self._labelled[:, stay]
        self._numbers, self._owed = self._numbers[stay], self._owed[stay]

    def chosen(self) -> Chosen:
        """The words that the reading keeps of all that were gathered."""
        kept, (counts, documents, n_documents) = self._kept()
        words = self._words.words().take(kept)
        order = words.order()
        order = order[self._frequent(counts[kept[order]])]
        kept, words = kept[order], words.take(order)
        columns = np.full(self._met, -1, np.int32)
        columns[kept if self._numbers is None else self._numbers[kept]] = np.arange(len(kept))
        unlabelled = 0 if self._labelled is None else int(np.count_nonzero(self._labelled[0] == 0))
        cells = int(self.documents[kept].sum())
        return Chosen(words, columns, counts[kept], documents[kept], n_documents, self._notes(), unlabelled, cells)

    def _kept(self) -> tuple[np.ndarray, WordTotals]:
        """The words within the limits, in the order met, and how often words were, where the limits were counted."""
        everywhere = WordTotals(self.counts, self.documents, self.n_documents)
        if self._labelled is None:
            return np.flatnonzero(self._within(everywhere)), everywhere
        told = WordTotals(self._labelled[0], self._labelled[1], self._n_labelled)
        found = np.flatnonzero(self._within(told) & (told.counts > 0))
        if len(found) > FEW:
            return found, told
        return np.flatnonzero(self._within(everywhere) & (told.counts > 0)), everywhere

    def _within(self, met: WordTotals) -> np.ndarray:
        """Which words are met often enough, and in neither too few nor too many documents."""
        counts, documents, n_documents = met
        asked = self.reading
        least, most = (
            limit * n_documents if isinstance(limit, float) else limit for limit in (asked.min_df, asked.max_df)
        )
        return (counts >= asked.min_count) & (documents >= least) & (documents <= most)

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
