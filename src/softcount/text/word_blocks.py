"""A block of documents as counts of the words in them; of few documents, or of words of another kind, by Python."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from softcount.records import dataclass
from softcount.text.spelling import Spelled, spelled, spelled_arrow
from softcount.text.word_list import Words, worth_bytes
from softcount.text.word_rules import WORD, Reading

BLOCK_BYTES = 1 << 22
"""Bytes of text in a block. Always as many, so that blocks do not depend on the number of threads."""
BLOCK_DOCUMENTS = 1 << 16
"""Documents in a block, however short they are."""


Analysis = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class WordBlock:
    """Document i holds word `ids[j]` of `words` `counts[j]` times, for j from `indptr[i]` to `indptr[i + 1]`.

    `words` are those that occur in the block, each once, in no particular order.
    """

    indptr: np.ndarray  # (documents + 1,) int64
    ids: np.ndarray  # int32
    counts: np.ndarray  # int32
    words: Words

    @property
    def n_documents(self) -> int:
        return len(self.indptr) - 1

    def only(self, rows: np.ndarray) -> WordBlock:
        """The block with nothing in the other documents; `rows` says of each whether it stays."""
        lengths = np.diff(self.indptr)
        cells = np.repeat(rows, lengths)
        ends = np.concatenate([[0], np.cumsum(np.where(rows, lengths, 0))])
        return WordBlock(ends, self.ids[cells], self.counts[cells], self.words)


def block_of(documents: Any, reading: Reading) -> WordBlock:
    """The words of documents: an Arrow array of strings, or a list of them; a null is a document without words."""
    span = spelled(documents)
    if reading.pattern is None and worth_bytes(span.size * _effort(reading)):
        from softcount.text import compiled

        indptr, ids, counts, words = compiled.counted(span, reading, partial(_stopped, reading))
        return WordBlock(indptr, ids, counts, Words(*words))
    indptr, ids, counts, found = counted(span.texts(), reading)
    return WordBlock(indptr, ids, counts, Words.of(found))


def _effort(reading: Reading) -> int:
    """How much longer than for single words plain Python takes, about."""
    low, high = reading.ngrams
    return (high - low + 1) * (1 if reading.analyzer == "word" else 6)


def _stopped(reading: Reading, words: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return Words.of(dict.fromkeys(reading.stopped)).columns(Words(*words)) >= 0


def blocks_of(documents: Any, reading: Reading, map: Callable[..., Iterable[WordBlock]] = map) -> Iterator[WordBlock]:
    """The documents in blocks of about 4 MB, in order; `map` may read several at a time, each on a thread.

    >>> [block.n_documents for block in blocks_of(["an ink pot", None], Reading())]
    [2]
    """
    yield from map(partial(block_of, reading=reading), cut(documents))


def cut(documents: Any) -> Iterator[Any]:
    """Documents in pieces of about 4 MB: spans of an Arrow array, or lists of what any other collection holds."""
    if hasattr(documents, "to_pylist"):
        for chunk in documents.chunks if hasattr(documents, "chunks") else [documents]:
            yield from _parts(spelled_arrow(chunk))
    else:
        yield from _lists(documents)


def _parts(span: Spelled) -> Iterator[Spelled]:
    """A span cut at the documents nearest to each 4 MB."""
    first, count = 0, len(span.hidden)
    while first < count:
        last = int(np.searchsorted(span.offsets, span.offsets[first] + BLOCK_BYTES, side="right")) - 1
        last = min(max(last, first + 1), first + BLOCK_DOCUMENTS, count)
        yield Spelled(span.data, span.offsets[first : last + 1], span.hidden[first:last])
        first = last


def _lists(documents: Iterable[Any]) -> Iterator[list[Any]]:
    """Python objects in lists of 4 million characters or more."""
    rest = iter(documents)
    while piece := list(islice(rest, 1)):
        size = _length(piece[0])
        for text in islice(rest, BLOCK_DOCUMENTS - 1) if size < BLOCK_BYTES else ():
            piece.append(text)
            size += _length(text)
            if size >= BLOCK_BYTES:
                break
        yield piece


def _length(text: Any) -> int:
    return len(text) if isinstance(text, str | bytes) else 0


def counted(texts: Iterable[str], reading: Reading) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Where each document ends, its words by number, how often it holds them, and the words."""
    words_in = analysis(reading)
    places: dict[str, int] = {}
    ids: list[int] = []
    counts: list[int] = []
    ends = [0]
    for text in texts:
        found = Counter(words_in(text))
        ids += [places.setdefault(word, len(places)) for word in found]
        counts += found.values()
        ends.append(len(ids))
    return np.array(ends, np.int64), np.array(ids, np.int32), np.array(counts, np.int32), list(places)


def analysis(reading: Reading) -> Analysis:
    """What turns a document into its words, each as often as it occurs."""
    low, high = reading.ngrams
    if reading.analyzer == "char":
        split = _characters(low, high)
    elif reading.analyzer == "char_wb":
        split = _characters_by_word(low, high)
    else:
        split = _words(reading)
    return (lambda text: split(text.lower())) if reading.lowercase else split


def _words(reading: Reading) -> Analysis:
    low, high = reading.ngrams
    find, stopped = re.compile(reading.pattern or WORD).findall, frozenset(reading.stopped)

    def words(text: str) -> list[str]:
        found = find(text)
        if stopped:
            found = [word for word in found if word not in stopped]
        if (low, high) == (1, 1):
            return found
        return [" ".join(found[at : at + n]) for n in range(low, high + 1) for at in range(len(found) - n + 1)]

    return words


def _characters(low: int, high: int) -> Analysis:
    blanks = re.compile(r"\s\s+")

    def runs(text: str) -> list[str]:
        text = blanks.sub(" ", text)
        return [text[at : at + n] for n in range(low, high + 1) for at in range(len(text) - n + 1)]

    return runs


def _characters_by_word(low: int, high: int) -> Analysis:
    def runs(text: str) -> list[str]:
        found: list[str] = []
        for word in text.split():
            padded = f" {word} "
            if len(padded) < low:  # a word too short for any run is one by itself
                found.append(padded)
            found += [padded[at : at + n] for n in range(low, high + 1) for at in range(len(padded) - n + 1)]
        return found

    return runs
