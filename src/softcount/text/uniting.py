"""Vocabularies put together: what was gathered of some documents, added to what was gathered of others."""

from __future__ import annotations

from copy import copy

import numpy as np

from softcount.errors import DataError
from softcount.text.block import Block
from softcount.text.gather import Chosen, Gathered
from softcount.text.hashing import GatheredHashes
from softcount.text.words import Words

_MOST = 1 << 22


def everything(gathered: Gathered | GatheredHashes) -> Chosen:
    """All the words that were gathered, in order, kept or not."""
    if isinstance(gathered, GatheredHashes):
        return gathered.chosen()
    all_of_it = copy(gathered)
    all_of_it.reading = gathered.reading.unlimited
    return all_of_it.chosen()


def continued(before: Gathered | GatheredHashes, new: Gathered | GatheredHashes) -> Gathered | GatheredHashes:
    """What was gathered before, to be added to under the limits of the new; a `DataError` if its words are others."""
    width = getattr(before, "width", None)
    if before.reading.unlimited != new.reading.unlimited or width != getattr(new, "width", None):
        raise DataError("documents were read in another way before: words of two kinds do not add up. Use fit.")
    before.reading = new.reading
    return before


def take(gathered: Gathered | GatheredHashes, more: Chosen) -> None:
    """Add words with their counts and documents, as if the documents they came from had been added."""
    if isinstance(gathered, GatheredHashes):
        gathered.counts += more.counts
        gathered.documents += more.documents
        gathered.n_documents += more.n_documents
        return
    # As blocks in which each word has a cell for every document that held it, so few at a time that they need no room.
    n_documents, ends = more.n_documents, np.cumsum(more.documents)
    for first in range(0, int(ends[-1]) if len(ends) else 0, _MOST):
        gathered.add(_block(more, ends, first, first + _MOST), n_documents=n_documents)
        n_documents = 0
    gathered.n_documents += n_documents


def _block(more: Chosen, ends: np.ndarray, first: int, last: int) -> Block:
    """The cells from `first` to `last` of all words in one long document; a word may begin or end in another block."""
    low, high = int(np.searchsorted(ends, first, side="right")), int(np.searchsorted(ends, last, side="left")) + 1
    held, counts, ends = more.documents[low:high], more.counts[low:high], ends[low:high]
    starts = ends - held
    here = np.minimum(ends, last) - np.maximum(starts, first)
    share = np.repeat(counts // held, here)
    begun = np.flatnonzero(starts >= first)  # what does not divide evenly is in a word's first cell
    share[starts[begun] - first] += (counts % held)[begun]
    offsets = more.words.offsets[low : low + len(held) + 1]
    words = Words(more.words.data[offsets[0] : offsets[-1]], offsets - offsets[0])
    ids = np.repeat(np.arange(len(held), dtype=np.int32), here)
    return Block(np.array([0, len(ids)], dtype=np.int64), ids, share.astype(np.int32), words)
