"""The same documents read both ways, compiled and in plain Python, and what comes of them in a form one can compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from unittest.mock import patch

import numpy as np
from scipy import sparse

from softcount.text import Chosen, Gathered, Reading, WordBlock, block_of, matrix_of, words
from softcount.text.count_words import cut

WAYS = ("compiled", "plain")


@contextmanager
def way(name: str) -> Iterator[None]:
    """Everything is read this way, however little or much there is."""
    least = 0 if name == "compiled" else 1 << 62
    with patch.multiple(words, WORTH_BYTES=least, LOADED_BYTES=least, WORTH_WORDS=least, LOADED_WORDS=least):
        yield


def tables(block: WordBlock) -> list[Counter[str]]:
    """How often each document of a block holds each of its words."""
    words, ends = list(block.words), block.indptr.tolist()
    assert len(set(words)) == len(words)
    assert len(np.unique(block.ids)) == len(words)
    found = []
    for start, stop in pairwise(ends):
        pairs = zip(block.ids[start:stop].tolist(), block.counts[start:stop].tolist(), strict=True)
        found.append(Counter({words[word]: count for word, count in pairs}))
        assert len(found[-1]) == stop - start
    return found


def blocks_of(
    documents: object, reading: Reading, map: Callable[..., Iterable[WordBlock]] = map
) -> Iterator[WordBlock]:
    """The documents in blocks, in order."""
    return map(partial(block_of, reading=reading), cut(documents))


def read(documents: object, reading: Reading, **how: object) -> tuple[Chosen, object]:
    """The words that are kept and the matrix of all documents."""
    gathered = Gathered(reading)
    kept = [(block, gathered.add(block)) for block in blocks_of(documents, reading, **how)]
    chosen = gathered.chosen()
    rows = [matrix_of(block, chosen.columns[ids], len(chosen.words), np.int64) for block, ids in kept]
    return chosen, sparse.vstack(rows, format="csr")


def same_matrix(one: object, other: object) -> bool:
    """Whether two sparse matrices are the same cell by cell, ours with its columns in order within each row."""
    other.sort_indices()
    pairs = ((getattr(one, part), getattr(other, part)) for part in ("indptr", "indices", "data"))
    return one.shape == other.shape and all(np.array_equal(left, right) for left, right in pairs)
