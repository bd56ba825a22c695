"""A block of documents as counts of the words in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from softcount.text import plain
from softcount.text.reading import Reading
from softcount.text.size import worth_bytes
from softcount.text.spelling import Spelled, spelled, spelled_arrow
from softcount.text.words import Words

BLOCK_BYTES = 1 << 22
"""Bytes of text in a block. Always as many, so that blocks do not depend on the number of threads."""
BLOCK_DOCUMENTS = 1 << 16
"""Documents in a block, however short they are."""


@dataclass(frozen=True, slots=True)
class Block:
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

    def only(self, rows: np.ndarray) -> Block:
        """The block with nothing in the other documents; `rows` says of each whether it stays."""
        lengths = np.diff(self.indptr)
        cells = np.repeat(rows, lengths)
        ends = np.concatenate([[0], np.cumsum(np.where(rows, lengths, 0))])
        return Block(ends, self.ids[cells], self.counts[cells], self.words)


def block_of(documents: Any, reading: Reading) -> Block:
    """The words of documents: an Arrow array of strings, or a list of them; a null is a document without words."""
    span = spelled(documents)
    if reading.pattern is None and worth_bytes(span.size * _effort(reading)):
        from softcount.text import compiled

        indptr, ids, counts, words = compiled.counted(span, reading, partial(_stopped, reading))
        return Block(indptr, ids, counts, Words(*words))
    indptr, ids, counts, found = plain.counted(span.texts(), reading)
    return Block(indptr, ids, counts, Words.of(found))


def _effort(reading: Reading) -> int:
    """How much longer than for single words plain Python takes, about."""
    low, high = reading.ngrams
    return (high - low + 1) * (1 if reading.analyzer == "word" else 6)


def _stopped(reading: Reading, words: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return Words.of(dict.fromkeys(reading.stopped)).columns(Words(*words)) >= 0


def blocks_of(documents: Any, reading: Reading, map: Callable[..., Iterable[Block]] = map) -> Iterator[Block]:
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
