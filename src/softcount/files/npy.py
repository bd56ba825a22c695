"""dict[str, np.ndarray] as the bytes of .npy files, with nothing left to the reader's trust."""

from __future__ import annotations

import hashlib
import math
import re
import struct
from collections.abc import Iterator
from io import BytesIO
from math import prod
from typing import IO

import numpy as np
from msgspec import Struct
from numpy.lib import format as npy

from softcount.core.twofold import Twofold
from softcount.errors import ModelFileError

PLAIN = ("<f8", "<i8", "<i4", "|u1", "|b1")
"""The types an array may have, besides text of fixed width."""

_TEXT = re.compile(r"<U([1-9][0-9]{0,6})")
_MOST_AXES = 16
_LAST_CHARACTER = 0x10FFFF
_BLOCK = 1 << 20
_MAGIC = b"\x93NUMPY\x01\x00"


class ArrayEntry(Struct, frozen=True):
    """What the document says of one array: where it is, what it looks like, and the digest of its bytes."""

    entry: str
    shape: tuple[int, ...]
    dtype: str
    sha256: str
    size: int


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


def array_entry(file: str, array: np.ndarray) -> ArrayEntry:
    """What to say of a plain array in the document."""
    digest, size = hashlib.sha256(), 0
    for piece in pieces(array):
        digest.update(piece)
        size += len(piece)
    return ArrayEntry(file, array.shape, array.dtype.str, digest.hexdigest(), size)


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


def load(stream: IO[bytes], entry: ArrayEntry) -> np.ndarray:
    """The array of a .npy stream, if it is what the entry tells; otherwise a `ValueError`.

    The caller has compared `entry.size` with the file, so what is allocated here is bounded by the file's own size.
    """
    digest = hashlib.sha256()
    head = _read_head(stream, entry)
    digest.update(head)
    array = np.empty(entry.shape, dtype=entry.dtype)
    room = _bytes_of(array)
    for start in range(0, len(room), _BLOCK):
        block = stream.read(min(_BLOCK, len(room) - start))
        room[start : start + len(block)] = block
        digest.update(block)
    if digest.hexdigest() != entry.sha256:
        raise ValueError("its bytes are not those that were saved (SHA-256 differs)")
    _check_values(array)
    return array


def _read_head(stream: IO[bytes], entry: ArrayEntry) -> bytes:
    """The header's bytes, after comparing them with the entry.

    NumPy would evaluate the header as a literal; here it has one possible text, so nothing needs to be.
    """
    length = entry.size - math.prod(entry.shape) * np.dtype(entry.dtype).itemsize
    if not 10 <= length < 1 << 16:
        raise ValueError(f"its size, {entry.size:,} bytes, does not fit its shape {entry.shape}")
    head = stream.read(length)
    text = f"{{'descr': {entry.dtype!r}, 'fortran_order': False, 'shape': {entry.shape!r}, }}"
    if head[:10] != _MAGIC + struct.pack("<H", length - 10) or head[10:].rstrip(b" \n") != text.encode("ascii"):
        raise ValueError("its .npy header differs from the listing")
    return head


def _bytes_of(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def _check_values(array: np.ndarray) -> None:
    """Refuse bytes that no array of this type can hold: a Boolean 7, a character beyond the last."""
    if array.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise ValueError("it holds Booleans that are neither true nor false")
    if array.dtype.kind == "U" and array.size and array.reshape(-1).view("<u4").max() > _LAST_CHARACTER:
        raise ValueError("it holds characters that do not exist")


# -- large tables of counts in little room: which cells are not zero, one bit each, and what those hold.
# Twenty classes of 60,000 words are 9.6 MB of numbers, four fifths of them zero; packed they take less than 2 MB.

LARGEST = 1e290
"""Counts beyond this could not be added up."""

SMALL = 4_096
"""Cells below which a table is kept as it is."""


def counts_parts(counts: Twofold) -> dict[str, np.ndarray]:
    """Counts as arrays of the file: both halves, or packed where that is shorter and loses nothing."""
    hi = np.ascontiguousarray(counts.hi)
    if hi.size < SMALL or counts.lo.any() or np.signbit(hi[hi == 0]).any():
        return {"hi": hi, "lo": np.ascontiguousarray(counts.lo)}
    there = hi.reshape(-1) != 0
    return {"cells": np.packbits(there), "values": _narrow(hi.reshape(-1)[there])}


def _narrow(values: np.ndarray) -> np.ndarray:
    """The same numbers in the smallest type of the file that holds them exactly."""
    top = values.max(initial=0.0)
    if top >= 2**31 or values.min(initial=0.0) < 0 or not (values == np.floor(values)).all():
        return values
    return values.astype(np.uint8 if top < 256 else np.int32)


def counts_from(parts: dict[str, np.ndarray], shape: tuple[int, ...], name: str) -> Twofold:
    """Counts back from a file; what is made here is at most 64 times what the file holds."""
    if "cells" not in parts:
        pair = Twofold(parts["hi"], parts["lo"])
        sound = set(parts) == {"hi", "lo"} and pair.hi.shape == pair.lo.shape
        sound = sound and pair.hi.dtype == pair.lo.dtype == np.float64
    else:
        cells, values, size = parts["cells"], parts["values"], prod(shape)
        sound = set(parts) == {"cells", "values"} and cells.dtype == np.uint8 and cells.shape == (-(-size // 8),)
        sound = sound and values.ndim == 1 and values.dtype.kind in "iuf"
        there = np.unpackbits(cells, count=size).astype(bool) if sound else np.zeros(0, bool)
        sound = sound and np.count_nonzero(there) == len(values)
        whole = np.zeros(len(there))
        if sound:
            whole[there] = values
            whole = whole.reshape(shape)
        pair = Twofold.of(whole)
    if not sound or pair.shape != shape or not (np.abs(pair.value) <= LARGEST).all():
        raise ModelFileError(f"the counts of {name} make no sense.")
    return pair
