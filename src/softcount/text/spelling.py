"""Documents as UTF-8 bytes one after another, from Arrow or from Python strings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np


class Spelled(NamedTuple):
    """Document i is the bytes from `offsets[i]` to `offsets[i + 1]`, and empty where it is `hidden` (null)."""

    data: np.ndarray  # uint8
    offsets: np.ndarray  # int64
    hidden: np.ndarray  # uint8

    @property
    def size(self) -> int:
        return int(self.offsets[-1] - self.offsets[0])

    def bytes_of(self, place: int) -> bytes:
        return b"" if self.hidden[place] else bytes(self.data[self.offsets[place] : self.offsets[place + 1]])

    def texts(self) -> Iterator[str]:
        return (decoded(self.bytes_of(place)) for place in range(len(self.hidden)))


def decoded(spelled: bytes) -> str:
    """Bytes as text. Half of a surrogate pair stands for itself; what is no UTF-8 becomes U+FFFD, no word character."""
    try:
        return spelled.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return spelled.decode("utf-8", "replace")


def encoded(text: str) -> bytes:
    """Text as bytes, half of a surrogate pair as itself."""
    return text.encode("utf-8", "surrogatepass")


def joined(parts: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Bytes one after another, and where each of the parts begins and ends among them."""
    return np.frombuffer(b"".join(parts), dtype=np.uint8), offsets_of(parts)


def offsets_of(parts: Sequence[Any]) -> np.ndarray:
    """Where each of the parts begins when they are put together, and where the last ends."""
    offsets = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=offsets[1:])
    return offsets


def spelled_list(texts: Sequence[str | None]) -> Spelled:
    """Python strings; None is a null."""
    hidden = np.fromiter((text is None for text in texts), np.uint8, len(texts))
    known: Sequence[Any] = [text or "" for text in texts] if hidden.any() else texts
    if all(map(str.isascii, known)):
        return Spelled(np.frombuffer("".join(known).encode("ascii"), dtype=np.uint8), offsets_of(known), hidden)
    # Not by Arrow, which would leave a second copy of each of these strings in the caller's hands.
    return Spelled(*joined([encoded(text) for text in known]), hidden)


def spelled_arrow(array: Any) -> Spelled:
    """An Arrow array of text, whole or in chunks, sliced or not; dictionaries and views are written out first."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        # Wide offsets first: put together, chunks may hold more than 2 GB.
        array = array.chunk(0) if array.num_chunks == 1 else array.cast(pa.large_string()).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], pa.large_string())
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        array = array.cast(pa.large_string())
    width = np.int32 if pa.types.is_string(array.type) else np.int64
    _, places, letters = array.buffers()
    offsets = np.zeros(1, np.int64)
    if len(array):
        offsets = np.frombuffer(places, dtype=width, count=len(array) + 1, offset=array.offset * width().itemsize)
    hidden = np.zeros(len(array), np.uint8)
    if array.null_count:
        hidden[:] = array.is_null().to_numpy(zero_copy_only=False)
    data = np.frombuffer(letters or b"", dtype=np.uint8)
    return Spelled(data, np.ascontiguousarray(offsets, dtype=np.int64), hidden)


def spelled(documents: Any) -> Spelled:
    """Documents of any kind as bytes."""
    if isinstance(documents, Spelled):
        return documents
    if hasattr(documents, "to_pylist"):
        return spelled_arrow(documents)
    return spelled_list(documents if isinstance(documents, (list, tuple)) else list(documents))
