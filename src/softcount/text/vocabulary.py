"""Vocabularies, hashed columns and sparse matrices of word counts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct

from softcount.core.lazy import lazy_function, sparse
from softcount.errors import DataError
from softcount.text.count_words import WordBlock
from softcount.text.words import Reading, Words, read_only, worth_bytes, worth_words

divide_by_sums = lazy_function("sklearn.utils.sparsefuncs_fast", "inplace_csr_row_normalize_l1")
divide_by_lengths = lazy_function("sklearn.utils.sparsefuncs_fast", "inplace_csr_row_normalize_l2")

TOO_MANY = 4
"""With `max_words`: if this many times as many words are in memory, the rarer half is given up."""
ALWAYS_HELD = 1 << 20
"""Words that are kept in any case: they take 70 MB."""
FEW = 1_000
"""Words of labelled documents up to which limits apply to counts over all documents."""


class Lookup:
    """Numbers 0, 1, ... for words in the order of first occurrence; a dictionary, for many words a compiled table.

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
        if self._places is not None and worth_words(len(self._places) + len(words)):
            known = Words.of_bytes(list(self._places or ()))
            self._places = None
            self.learn(known)
        if self._places is None:
            from softcount.kernels.token_counts import learn_words, new_table
            from softcount.kernels.tokenise import EVERY

            self._table = self._table or new_table()
            ids, self._table = learn_words(words.data, words.offsets, self._table, self._sizes, EVERY)
            return ids
        number, places = self._places.setdefault, self._places
        return np.array([number(word, len(places)) for word in words.spelled()], dtype=np.int32)

    def words(self) -> Words:
        if self._places is not None:
            return Words.of_bytes(list(self._places))
        _, store, places = self._table
        return Words(store[: self._sizes[1]], places[: self._sizes[0] + 1])


class Chosen(Struct, frozen=True):
    """The kept words in order, and the column of every gathered word (-1: not kept).

    `counts` and `documents` are the occurrences of each kept word, and the documents with it. If only some documents
    are labelled, `unlabelled` is the number of words that none of these holds. `cells` is the number of distinct pairs
    of a document and a kept word, in all documents.
    """

    words: Words
    columns: np.ndarray
    counts: np.ndarray
    documents: np.ndarray
    n_documents: int
    notes: tuple[str, ...] = ()
    unlabelled: int = 0
    cells: int = 0

    @property
    def totals(self) -> WordTotals:
        return WordTotals(self.counts, self.documents, self.n_documents)


class WordTotals(NamedTuple):
    """Occurrences of each word, documents with it, and the number of documents."""

    counts: np.ndarray
    documents: np.ndarray
    n_documents: int

    @classmethod
    def of(cls, block: WordBlock, n_documents: int) -> WordTotals:
        counts = np.bincount(block.ids, block.counts, len(block.words)).astype(np.int64)
        return cls(counts, np.bincount(block.ids, minlength=len(block.words)), n_documents)


class Gathered:
    """Words of blocks, added one after another; their order does not change the choice.

    With `max_words`, the rarest are given up whenever four times as many are held, and more than a million. A word
    given up loses its count and, met again, is a new one: counts are then low by at most `lost`, and a note says so.

    If only some documents are labelled, words are chosen from these: the limits apply to them, or, if that would leave
    few words, to all documents.
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
        """The number of each of the block's words; `n_documents` without those that are missing.

        `labelled`: which documents are; None for all. `Chosen.columns` has -1 for a word that was given up.
        """
        totals = WordTotals.of(block, block.n_documents if n_documents is None else n_documents)
        some = None
        if labelled is not None:
            some = WordTotals.of(block.only(labelled), int(np.count_nonzero(labelled)))
        return self.add_totals(block.words, totals, some)

    def add_totals(self, words: Words, totals: WordTotals, labelled: WordTotals | None = None) -> np.ndarray:
        """Add totals of words and return their numbers; `labelled` are the totals of labelled documents (None: all)."""
        ids = self._words.learn(words)
        self._make_room()
        if labelled is not None and self._labelled is None:
            self._labelled, self._n_labelled = np.stack([self.counts, self.documents]), self.n_documents
        if self._labelled is not None:
            counts, documents, number = labelled or totals
            self._labelled[:, ids] += np.stack([counts, documents])
            self._n_labelled += number
        self.counts[ids] += totals.counts
        self.documents[ids] += totals.documents
        self.n_documents += totals.n_documents
        if self._numbers is not None:
            ids = self._numbers[ids]
        self._prune()
        return ids

    def join(self, other: Gathered) -> None:
        """Add all words of another."""
        some = None
        if other._labelled is not None:
            some = WordTotals(other._labelled[0], other._labelled[1], other._n_labelled)
        self.lost, self.given_up = self.lost + other.lost, self.given_up + other.given_up
        self.add_totals(other.words, WordTotals(other.counts, other.documents, other.n_documents), some)

    @property
    def words(self) -> Words:
        return self._words.words()

    def _make_room(self) -> None:
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
        """Give up the rarest words if there are too many, those met last first."""
        reading = self.reading
        if reading.max_words is None:
            return
        most_held = max(TOO_MANY * (reading.max_words + reading.drop_top), ALWAYS_HELD)
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
        everywhere = WordTotals(self.counts, self.documents, self.n_documents)
        totals = everywhere
        if self._labelled is None:
            kept = np.flatnonzero(self._within(everywhere))
        else:
            labelled = WordTotals(self._labelled[0], self._labelled[1], self._n_labelled)
            kept = np.flatnonzero(self._within(labelled) & (labelled.counts > 0))
            if len(kept) > FEW:
                totals = labelled
            else:
                kept = np.flatnonzero(self._within(everywhere) & (labelled.counts > 0))
        counts, documents, n_documents = totals
        words = self._words.words().take(kept)
        order = words.order()
        reading, found = self.reading, counts[kept[order]]
        if reading.drop_top or (reading.max_words is not None and len(found) > reading.max_words):
            most_first = np.argsort(-found, kind="stable")[reading.drop_top :]
            order = order[np.sort(most_first[: reading.max_words])]
        kept, words = kept[order], words.take(order)
        columns = np.full(self._met, -1, np.int32)
        columns[kept if self._numbers is None else self._numbers[kept]] = np.arange(len(kept))
        unlabelled = 0 if self._labelled is None else int(np.count_nonzero(self._labelled[0] == 0))
        cells = int(self.documents[kept].sum())
        note = (
            f"more words than memory was meant for: {self.given_up:,} rare ones were given up on the way,"
            f" and counts may be low by up to {self.lost:,}. Raise max_words to count exactly."
        )
        notes = (note,) if self.given_up else ()
        return Chosen(words, columns, counts[kept], documents[kept], n_documents, notes, unlabelled, cells)

    def every(self) -> Chosen:
        """All words in order, kept or not."""
        unlimited = copy(self)
        unlimited.reading = self.reading.unlimited
        return unlimited.chosen()

    def _within(self, met: WordTotals) -> np.ndarray:
        """Which words are frequent enough, and in neither too few nor too many documents."""
        counts, documents, n_documents = met
        reading = self.reading
        least, most = (
            limit * n_documents if isinstance(limit, float) else limit for limit in (reading.min_df, reading.max_df)
        )
        return (counts >= reading.min_count) & (documents >= least) & (documents <= most)


# -- blocks of words as sparse matrices, and weights of words

Item = TypeVar("Item")
WEIGHTINGS: tuple[str, ...] = ("count", "binary", "tf", "idf", "tfidf")
IDFS: tuple[str, ...] = ("smooth", "plain", "plus-one")


def matrix_of(block: WordBlock, columns: np.ndarray, width: int, dtype: Any = np.float64) -> sparse.csr_matrix:
    """A block's counts as a matrix; `columns` has the column of each word, or -1.

    Columns are sorted within each row; counts of words in one column are added.
    """
    if worth_bytes(len(block.ids)) and 4 * len(block.ids) >= width:
        from softcount.kernels.token_counts import place_counts

        indices, values = np.empty(len(block.ids), np.int32), np.empty(len(block.ids), dtype)
        room = np.zeros(width + 2, np.int32 if len(block.ids) < 2**31 - 1 else np.int64)
        given = (block.indptr, np.int64), (block.ids, np.int32), (block.counts, np.int32), (columns, np.int32)
        indptr, ids, counts, places = (read_only(part.astype(kind, copy=False)) for part, kind in given)
        ends = place_counts(indptr, ids, counts, places, room, (indices, values))
        cells = values[: ends[-1]], indices[: ends[-1]], _narrow(ends)
        rows = sparse.csr_matrix(cells, shape=(len(ends) - 1, width))
        rows.has_sorted_indices = True
        rows.sum_duplicates()
        return rows
    place = columns[block.ids]
    keep = place >= 0
    ends = np.concatenate([[0], np.cumsum(keep)])[block.indptr]
    cells = block.counts[keep].astype(dtype), place[keep].astype(np.int32, copy=False), _narrow(ends)
    rows = sparse.csr_matrix(cells, shape=(len(ends) - 1, width))
    rows.sum_duplicates()
    return rows


def _narrow(ends: np.ndarray) -> np.ndarray:
    """Row ends as int32, if they fit: otherwise SciPy makes the columns int64 too."""
    return ends.astype(np.int32) if ends[-1] < 2**31 else ends


def emptied(items: deque[Item]) -> Iterator[Item]:
    """The items one after another, each gone from the queue when it is given.

    >>> queue = deque([1, 2, 3])
    >>> list(emptied(queue)), len(queue)
    ([1, 2, 3], 0)
    """
    while items:
        yield items.popleft()


def stacked(made: Iterable[sparse.csr_matrix], width: int, dtype: Any) -> sparse.csr_matrix:
    """The rows of all parts, in their order, as cells of one type; a part is let go once it is copied."""
    parts = deque(made)
    if len(parts) == 1:
        return parts[0]
    cells, rows = sum(part.nnz for part in parts), sum(part.shape[0] for part in parts)
    narrow = np.int32 if cells < 2**31 else np.int64
    indptr = np.zeros(rows + 1, dtype=narrow)
    indices, data = np.empty(cells, dtype=narrow), np.empty(cells, dtype=dtype)
    row = cell = 0
    for part in emptied(parts):
        last, end = row + part.shape[0], cell + part.nnz
        np.add(part.indptr[1:], cell, out=indptr[row + 1 : last + 1], dtype=narrow)
        indices[cell:end], data[cell:end] = part.indices, part.data
        row, cell = last, end
    whole = sparse.csr_matrix((data, indices, indptr), shape=(rows, width))
    whole.has_canonical_format = True
    return whole


def idf_of(documents: np.ndarray, n_documents: int, kind: str) -> np.ndarray:
    """Inverse document frequencies from the number of documents with each word.

    "plain" is log(N / df), "plus-one" log(N / (df + 1)), "smooth" scikit-learn's log((N + 1) / (df + 1)) + 1.
    A word of every document gets 0 under "plain", a little less under "plus-one", and 1 under "smooth". A column that
    no document had (there are such only with hashing) is as rare under "plain" as one that a single document had.

    >>> idf_of(np.array([1, 2, 4]), 4, "plain") / np.log(2)
    array([2., 1., 0.])
    """
    held = np.asarray(documents, dtype=np.float64)
    if kind == "plain":
        return np.log(n_documents / np.maximum(held, 1.0))
    if kind == "plus-one":
        return np.log(n_documents / (held + 1.0))
    if kind == "smooth":
        return np.log((n_documents + 1.0) / (held + 1.0)) + 1.0
    raise DataError(f"idf={kind!r} is not known. Use one of: {', '.join(map(repr, IDFS))}.")


def weighted(
    counts: sparse.csr_matrix, weighting: str, idf: np.ndarray | None = None, unit: bool = False
) -> sparse.csr_matrix:
    """The counts of words as weights, in the matrix that was given; with `unit` every row has length one or is zero.

    "tf" divides by the words of the document (those with a column), "idf" is presence times `idf`, "tfidf" is "tf"
    times `idf`; in a row of length one the division cancels.
    """
    if weighting == "count" and not unit:
        return counts
    counts.data = counts.data.astype(np.float64, copy=False)
    if weighting in ("binary", "idf"):
        counts.data[:] = 1.0
    if weighting == "tf" or (weighting == "tfidf" and not unit):
        divide_by_sums(counts)
    if weighting in ("idf", "tfidf"):
        if idf is None:
            raise DataError(f"weighting={weighting!r} needs to know how rare words are: fit first.")
        counts.data *= idf[counts.indices]
    if unit:
        divide_by_lengths(counts)
    return counts


# -- hashed columns in place of a vocabulary, the same on every machine

# Odd numbers, so that no product loses a bit: the binary digits of the golden ratio, of sqrt(2) and of sqrt(3).
_STEP, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0x6A09E667F3BCC909, 0xBB67AE8584CAA73B))
PIECE = 1 << 20
"""Bytes of words that are taken at a time."""


def hashed_columns(words: Words, width: int, piece: int = PIECE) -> np.ndarray:
    """A column from 0 to `width` - 1 for each word, by its spelling alone.

    A word's number is the sum over its bytes of (a random number for the byte) * STEP ** place, modulo 2 ** 64; its
    bits are then mixed, because words that differ in a letter or two differ in few of them.

    >>> hashed_columns(Words.of(["ink", "kin", "öl"]), 2**18).tolist()
    [87346, 129380, 34280]
    """
    return (_mixed(_numbers(words, piece)) % np.uint64(width)).astype(np.int32)


def _numbers(words: Words, piece: int) -> np.ndarray:
    """The 64-bit number of each word; its bytes are taken in pieces, so that a word of 100 MB needs little room."""
    offsets = np.asarray(words.offsets, dtype=np.int64)
    numbers = np.zeros(len(words), dtype=np.uint64)
    last = int(offsets[-1])
    for start in range(int(offsets[0]), last, piece):
        stop = min(start + piece, last)
        low = int(np.searchsorted(offsets, start, side="right")) - 1
        high = int(np.searchsorted(offsets, stop, side="left"))
        begins = np.maximum(offsets[low:high], start)
        place = np.arange(start, stop) - np.repeat(offsets[low:high], np.diff(np.append(begins, stop)))
        terms = BYTE_NUMBERS[words.data[start:stop]] * np.power(_STEP, place.astype(np.uint64))  # modulo 2 ** 64
        there = np.flatnonzero(np.diff(np.append(begins, stop)))  # an empty word has the number 0
        numbers[low + there] += np.add.reduceat(terms, begins[there] - start)
    return numbers


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Every bit of a number brought to bear on every bit of the result: two rounds of shift and multiply."""
    for shift, factor in ((32, _FIRST), (29, _SECOND)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * factor
    return np.asarray(numbers ^ (numbers >> np.uint64(32)))


BYTE_NUMBERS = _mixed(np.arange(1, 257, dtype=np.uint64) * _STEP)
"""A number for each byte, none of them related to the next."""


class Hashed(Sequence[str]):
    """Columns in the place of a vocabulary: they have numbers for names, and every word has one of them.

    >>> hashed = Hashed(8)
    >>> list(hashed)[:2], len(hashed), hashed.columns(Words.of(["ink", "kin"])).tolist()
    (['hash0', 'hash1'], 8, [2, 4])
    """

    __slots__ = ("width",)

    def __init__(self, width: int) -> None:
        self.width = width

    def __len__(self) -> int:
        return self.width

    def __getitem__(self, at: Any) -> Any:
        places = range(self.width)[at]
        return [f"hash{place}" for place in places] if isinstance(at, slice) else f"hash{places}"

    def columns(self, words: Words) -> np.ndarray:
        """The column of each of the words."""
        return hashed_columns(words, self.width)


class GatheredHashes:
    """How often each column occurs, and in how many documents, in blocks that are added one after another."""

    def __init__(self, reading: Reading, width: int) -> None:
        self.reading, self.width, self.words = reading, width, Hashed(width)
        self.counts, self.documents = np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.int64)
        self.n_documents = 0

    def add(self, block: WordBlock) -> np.ndarray:
        """The column of each of the block's words; words of one column count as one word."""
        columns = self.words.columns(block.words)
        rows = matrix_of(block, columns, self.width, np.int64)
        np.add.at(self.counts, rows.indices, rows.data)
        np.add.at(self.documents, rows.indices, 1)
        self.n_documents += block.n_documents
        return columns

    def chosen(self) -> Chosen:
        columns = np.arange(self.width, dtype=np.int32)
        return Chosen(self.words, columns, self.counts.copy(), self.documents.copy(), self.n_documents)  # type: ignore[arg-type]

    every = chosen

    def add_totals(self, words: Words, totals: WordTotals) -> None:
        """Add the counts of all columns."""
        self.counts += totals.counts
        self.documents += totals.documents
        self.n_documents += totals.n_documents


def continued(before: Gathered | GatheredHashes, new: Gathered | GatheredHashes) -> Gathered | GatheredHashes:
    """Earlier words, to be added to under the limits of `new`; a `DataError` if documents are read in another way."""
    width = getattr(before, "width", None)
    if before.reading.unlimited != new.reading.unlimited or width != getattr(new, "width", None):
        raise DataError("documents were read in another way before: words of two kinds do not add up. Use fit.")
    before.reading = new.reading
    return before
