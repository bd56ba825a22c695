"""Words as bytes one after another: millions of them without a Python object each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, overload

import numpy as np

if TYPE_CHECKING:
    from scipy import sparse

    from softcount.text.block import Block


class Words(Sequence[str]):
    """Words in the order of their spelling (of their code points), each once; or any list of words, as met.

    >>> words = Words.of(["ink", "öl"])
    >>> list(words), words[1], len(words)
    (['ink', 'öl'], 'öl', 2)
    """

    __slots__ = ("data", "offsets")

    def __init__(self, data: np.ndarray, offsets: np.ndarray) -> None:
        self.data, self.offsets = data, offsets

    @classmethod
    def of(cls, words: Iterable[str]) -> Words:
        spelled = [word.encode("utf-8", "surrogatepass") for word in words]
        offsets = np.zeros(len(spelled) + 1, dtype=np.int64)
        np.cumsum([len(word) for word in spelled], out=offsets[1:])
        return cls(np.frombuffer(b"".join(spelled), dtype=np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        place = range(len(self))[at]
        return bytes(self.data[self.offsets[place] : self.offsets[place + 1]]).decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        whole, ends = self.data.tobytes(), self.offsets.tolist()
        for start, stop in pairwise(ends):
            yield whole[start:stop].decode("utf-8", "surrogatepass")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Words):
            return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.data, other.data)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((len(self), self.data[:256].tobytes()))

    def columns(self, words: Words) -> np.ndarray:
        """The place here of each of the other words, -1 for those that are not here."""
        places = {word: place for place, word in enumerate(self)}
        return np.array([places.get(word, -1) for word in words], dtype=np.int32)


def matrix_of(block: Block, columns: np.ndarray, width: int) -> sparse.csr_matrix:
    """A block's counts as a float64 matrix of so many columns; `columns` places each of its words, or drops it (-1)."""
    from scipy import sparse

    place = columns[block.ids]
    keep = place >= 0
    ends = np.concatenate([[0], np.cumsum(keep)])[block.indptr]
    rows = sparse.csr_matrix((block.counts[keep].astype(np.float64), place[keep], ends), shape=(len(ends) - 1, width))
    rows.sum_duplicates()
    return rows
