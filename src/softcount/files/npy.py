"""Arrays as the bytes of .npy files, with nothing left to the reader's trust."""

from __future__ import annotations

import hashlib
import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

PLAIN = ("<f8", "<i8", "<i4", "|u1", "|b1")
"""The types an array may have, besides text of fixed width."""

_TEXT = re.compile(r"<U([1-9][0-9]{0,6})")
_MOST_AXES = 16
_LAST_CHARACTER = 0x10FFFF
_BLOCK = 1 << 20
_MAGIC = b"\x93NUMPY\x01\x00"


@dataclass(frozen=True, slots=True)
class Listing:
    """What the document says of one array: where it is, what it looks like, and the digest of its bytes."""

    entry: str
    shape: tuple[int, ...]
    dtype: str
    sha256: str
    size: int

    def as_json(self) -> dict[str, Any]:
        return {
            "entry": self.entry,
            "shape": list(self.shape),
            "dtype": self.dtype,
            "sha256": self.sha256,
            "size": self.size,
        }


def plain(name: str, array: np.ndarray) -> np.ndarray:
    """The array in the layout the file keeps: rows first, little-endian; a `ValueError` if its type is not kept.

    >>> plain("codes", np.arange(6, dtype=">i4").reshape(2, 3)).dtype.str
    '<i4'
    """
    array = np.asarray(array)
    if array.dtype.kind == "U":
        width = max(array.dtype.itemsize // 4, 1)
        array = array.astype(f"<U{width}", copy=False)
    elif array.dtype.kind in "fiub":
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if not is_kept(array.dtype.str) or array.ndim > _MOST_AXES:
        raise ValueError(
            f"array {name!r} is {array.dtype} with {array.ndim} axes; a model file keeps float64, int64, int32, uint8, "
            f"bool and text, with at most {_MOST_AXES} axes"
        )
    return np.require(array, requirements="C")


def listing(entry: str, array: np.ndarray) -> Listing:
    """What to say of a plain array in the document."""
    digest, size = hashlib.sha256(), 0
    for piece in pieces(array):
        digest.update(piece)
        size += len(piece)
    return Listing(entry, array.shape, array.dtype.str, digest.hexdigest(), size)


def pieces(array: np.ndarray) -> Iterator[bytes | memoryview]:
    """The bytes of the .npy file of a plain array, without copying it."""
    head = BytesIO()
    npy.write_array_header_1_0(head, {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape})
    yield head.getvalue()
    yield _bytes_of(array)


def is_kept(dtype: str) -> bool:
    """Whether a model file may hold arrays of this type.

    >>> is_kept("<f8"), is_kept("<U12"), is_kept("|O")
    (True, True, False)
    """
    return dtype in PLAIN or _TEXT.fullmatch(dtype) is not None


def load(stream: IO[bytes], told: Listing) -> np.ndarray:
    """The array of a .npy stream, if it is what the listing tells; otherwise a `ValueError`.

    The caller has compared `told.size` with the file, so what is allocated here is bounded by the file's own size.
    """
    digest = hashlib.sha256()
    head = _read_head(stream, told)
    digest.update(head)
    array = np.empty(told.shape, dtype=told.dtype)
    _fill(stream, _bytes_of(array), digest)
    if digest.hexdigest() != told.sha256:
        raise ValueError("its bytes are not those that were saved (SHA-256 differs)")
    _check_values(array)
    return array


def _read_head(stream: IO[bytes], told: Listing) -> bytes:
    """The header's bytes, after comparing them with the listing.

    NumPy would evaluate the header as a literal; here it has one possible text, so nothing needs to be.
    """
    length = told.size - math.prod(told.shape) * np.dtype(told.dtype).itemsize
    if not 10 <= length < 1 << 16:
        raise ValueError(f"its size, {told.size:,} bytes, does not fit its shape {told.shape}")
    head = stream.read(length)
    text = f"{{'descr': {told.dtype!r}, 'fortran_order': False, 'shape': {told.shape!r}, }}"
    if head[:10] != _MAGIC + struct.pack("<H", length - 10) or head[10:].rstrip(b" \n") != text.encode("ascii"):
        raise ValueError("its .npy header differs from the listing")
    return head


def _fill(stream: IO[bytes], room: memoryview, digest: Any) -> None:
    for start in range(0, len(room), _BLOCK):
        block = stream.read(min(_BLOCK, len(room) - start))
        room[start : start + len(block)] = block
        digest.update(block)


def _bytes_of(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def _check_values(array: np.ndarray) -> None:
    """Refuse bytes that no array of this type can hold: a Boolean 7, a character beyond the last."""
    if array.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise ValueError("it holds Booleans that are neither true nor false")
    if array.dtype.kind == "U" and array.size and array.reshape(-1).view("<u4").max() > _LAST_CHARACTER:
        raise ValueError("it holds characters that do not exist")
