"""A block of documents as counts of the words in them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.text.reading import Reading
from softcount.text.words import Words


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


def block_of(documents: Any, reading: Reading) -> Block:
    """The words of documents: an Arrow array of strings, or a list of them; a null is a document without words."""
    # The plain way, for words of one length only: replaced by the kernel.
    texts = documents.to_pylist() if hasattr(documents, "to_pylist") else documents
    find = re.compile(reading.pattern or r"(?u)\b\w\w+\b").findall
    places: dict[str, int] = {}
    ids: list[int] = []
    counts: list[int] = []
    ends = [0]
    for text in texts:
        text = text or ""
        found = Counter(find(text.lower() if reading.lowercase else text))
        ids += [places.setdefault(word, len(places)) for word in found]
        counts += found.values()
        ends.append(len(ids))
    arrays = np.array(ends, np.int64), np.array(ids, np.int32), np.array(counts, np.int32)
    return Block(*arrays, Words.of(places))
