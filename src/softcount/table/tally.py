"""What one pass over a table counts besides its chunks."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

import numpy as np

from softcount.table.chunk import UNKNOWN, Chunk
from softcount.table.encode import Encoded
from softcount.table.schema import Key


class Tally:
    """What one pass has counted; a chunk read twice counts once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._seen: set[int] = set()
        self.missing: dict[Key, int] = {}
        self.unseen: dict[Key, int] = {}
        self.unknown_labels = 0
        self.weight = 0.0

    def add(self, chunk: Chunk, encoded: Encoded) -> None:
        unknown = 0 if chunk.labels is None else int(np.count_nonzero(chunk.labels == UNKNOWN))
        weight = float(chunk.n_rows) if chunk.weights is None else float(chunk.weights.sum())
        with self._lock:
            if chunk.start in self._seen:
                return
            self._seen.add(chunk.start)
            self.unknown_labels += unknown
            self.weight += weight
            add_counts(self.missing, encoded.missing)
            add_counts(self.unseen, encoded.unseen)


def add_counts(totals: dict[Key, int], counts: Mapping[Key, int]) -> None:
    """Add counts by column to what was counted before."""
    for key, count in counts.items():
        totals[key] = totals.get(key, 0) + count
