"""The model file: a zip of stored entries, a document and one .npy file per array.

`model.json` holds the format's number, who wrote it, the document, and for every array its entry, shape, type, size and
SHA-256. Nothing in the file is ever imported or evaluated, and no size in it is believed before the file's own size
has been compared. The same content gives the same bytes, whenever and wherever it is written.
"""

from __future__ import annotations

import codecs
import hashlib
import math
import os
import re
import stat
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from math import prod
from typing import IO, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict
from numpy.lib import format as npy

import softcount
from softcount.core.twofold import Twofold
from softcount.errors import DataError, ModelFileError
from softcount.files.atomic import Path, atomic_writer
from softcount.files.codec import SMALL, Arrays, Document, from_json, show, to_json

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


# The model file: a zip of stored entries, a document and one .npy file per array.

FORMAT = 5
"""The format of model files that this version writes, and the only one that it reads."""

_DOCUMENT = "model.json"
_MOST_ARRAYS = 60_000  # a plain zip directory counts up to 65,535
_MOST_DIRECTORY = 1 << 23  # each entry is a Python object once read
_TIME = (1980, 1, 1, 0, 0, 0)
_END = struct.Struct("<4s8xLLH")  # signature, size and start of the directory, length of the comment
_LOCAL, _CLOSING, _WIDE_CLOSING = b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x07"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_KEYS = set(ArrayEntry.__struct_fields__)


def write(path: Path, document: Document, arrays: Arrays) -> None:
    """Save a document and its arrays as one file, which is there whole or not at all.

    The document holds what JSON holds: finite numbers, text, Booleans, None, lists, and dicts with text as keys. Arrays
    are float64, int64, int32, uint8, bool or text. Anything else, and a place that cannot be written, is a `DataError`
    that leaves the disk as it was.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/small.sc", {"model": "star"}, {"counts": np.array([3.0, 4.0])})
    ...     read(folder + "/small.sc")
    ({'model': 'star'}, {'counts': array([3., 4.])})
    """
    try:
        kept, listed = _kept(arrays)
        entries = {name: asdict(entry) for name, entry in zip(arrays, listed, strict=True)}
        version = getattr(softcount, "__version__", "unknown")
        manifest = {"format": FORMAT, "softcount": version, "document": document, "arrays": entries}
        text = to_json(manifest)
    except ValueError as error:
        raise DataError(f"cannot write {_shown(path)}: {error}.") from None
    with atomic_writer(path, "wb") as target, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, _DOCUMENT, len(text), [text])
        for entry, array in zip(listed, kept, strict=True):
            _add(archive, entry.entry, entry.size, pieces(array))


def read(path: Path) -> tuple[Document, Arrays]:
    """The document and the arrays of a model file, as they were given to `write`.

    Whatever is wrong with the file is a `ModelFileError` of one line that names it; no other error comes out.
    """
    with _reading(path), _opened(os.fspath(path)) as source:
        size = os.fstat(source.fileno()).st_size
        _check_frame(source, size)
        with zipfile.ZipFile(source) as archive:
            return _read_archive(archive, size)


@contextmanager
def naming(path: object, what: str, unsound: tuple[type[Exception], ...] = (Exception,)) -> Iterator[None]:
    """Make errors over the content of a file, of these types, a `ModelFileError` that starts with the file's name."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except unsound as error:
        raise ModelFileError(f"{path}: {what} ({type(error).__name__}: {error}).") from None


def _kept(arrays: dict[str, np.ndarray]) -> tuple[list[np.ndarray], list[ArrayEntry]]:
    """The arrays as the file keeps them, and how they are listed."""
    if len(arrays) > _MOST_ARRAYS:
        raise ValueError(f"a model file holds at most {_MOST_ARRAYS:,} arrays, not {len(arrays):,}")
    kept = [plain(name, array) for name, array in arrays.items()]
    return kept, [array_entry(f"{position}.npy", array) for position, array in enumerate(kept)]


def _add(archive: zipfile.ZipFile, name: str, size: int, pieces: Any) -> None:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.create_system = 3  # the same bytes on every system
    entry.external_attr = 0o644 << 16
    entry.file_size = size
    with archive.open(entry, "w") as out:
        for piece in pieces:
            out.write(piece)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Make every error a `ModelFileError` that starts with the file's name."""
    try:
        yield
    except (ModelFileError, ValueError) as error:
        problem = str(error)
    except FileNotFoundError:
        problem = "there is no such file"
    except OSError as error:
        problem = f"it cannot be read: {error.strerror or error}"
    except MemoryError:
        problem = "there is not enough memory to load it"
    except Exception as error:  # zipfile answers damage with many types; a loader must let none of them out
        problem = f"it is damaged ({type(error).__name__}: {error})"
    else:
        return
    raise ModelFileError(f"model file {_shown(path)}: {' '.join(problem.split())}")


def _shown(path: object) -> str:
    return repr(os.fspath(path)) if isinstance(path, str | os.PathLike) else repr(path)


def _opened(name: str) -> IO[bytes]:
    """The file, after making sure that it is one: opening a pipe would wait for ever."""
    mode = os.stat(name).st_mode
    if stat.S_ISDIR(mode):
        raise ModelFileError("it is a folder; give the path of a model file")
    if not stat.S_ISREG(mode):
        raise ModelFileError("it is a pipe or a device; save it to a file first")
    return open(name, "rb")


def _check_frame(source: IO[bytes], size: int) -> None:
    """Look at both ends of the archive before anything is made of its directory."""
    start = source.read(512)
    if not start.startswith(_LOCAL):
        raise ModelFileError(f"it is not a model file but looks like {looks_like(start)}")
    source.seek(max(size - 42, 0))
    tail = source.read()
    signature, length, begin, comment = _END.unpack(tail[-22:].rjust(22, b"\0"))
    if signature != _CLOSING or comment:
        raise ModelFileError("its end is missing or damaged; it was probably cut short. Copy or save it again")
    is_wide = tail[:4] == _WIDE_CLOSING
    if is_wide and size < zipfile.ZIP64_LIMIT:
        raise ModelFileError("it declares sizes far beyond its own; it is damaged or made to do harm")
    if length > _MOST_DIRECTORY or (not is_wide and begin + length + 22 != size):
        raise ModelFileError("its directory does not fit the file; it is damaged or made to do harm")


def _read_archive(archive: zipfile.ZipFile, size: int) -> tuple[Document, Arrays]:
    entries = _checked_entries(archive, size)
    manifest = _manifest(archive, entries)
    listed = {name: _array_entry(name, said) for name, said in manifest["arrays"].items()}
    _check_listed(listed, entries)
    found = {name: _array(archive, name, entry) for name, entry in listed.items()}
    return manifest["document"], found


def _checked_entries(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """The archive's entries by name, none of them packed, locked, twice there, or larger than the file."""
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        if entry.orig_filename in entries:
            raise ModelFileError(f"it holds the entry {show(entry.orig_filename)} twice")
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            raise ModelFileError(f"its entry {show(entry.orig_filename)} is compressed or encrypted; ours never are")
        if entry.file_size != entry.compress_size:
            raise ModelFileError(f"its entry {show(entry.orig_filename)} contradicts itself about its size")
        entries[entry.orig_filename] = entry
    declared = sum(entry.file_size for entry in entries.values())
    if declared > size:
        raise ModelFileError(f"its entries claim {declared:,} bytes, but the file has {size:,}")
    return entries


def _manifest(archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo]) -> dict[str, Any]:
    """The content of `model.json`, of a format this version knows."""
    if _DOCUMENT not in entries:
        pickled = any(name.endswith((".pkl", ".pickle", ".joblib")) for name in entries)  # another library's model
        kind = "a zip with a Python pickle in it, which is never loaded" if pickled else "a zip"
        raise ModelFileError(f"it is not a model file but looks like {kind}: there is no {_DOCUMENT} in it")
    try:
        manifest: dict[str, Any] = from_json(archive.read(_DOCUMENT))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its {_DOCUMENT} cannot be used: {error}") from None
    _check_format(manifest)
    if set(manifest) != {"format", "softcount", "document", "arrays"}:
        raise ModelFileError(f"its {_DOCUMENT} must hold exactly format, softcount, document and arrays")
    if not isinstance(manifest["document"], dict) or not isinstance(manifest["arrays"], dict):
        raise ModelFileError(f"its {_DOCUMENT} must hold objects under document and arrays")
    return manifest


def _check_format(manifest: Any) -> None:
    number = manifest.get("format") if isinstance(manifest, dict) else None
    if type(number) is not int or number < 1:
        raise ModelFileError(f"its {_DOCUMENT} does not say which format it has")
    if number != FORMAT:
        remedy = "upgrade softcount" if number > FORMAT else "fit the model again and save it"
        raise ModelFileError(f"written in format {show(number)}; this version reads format {FORMAT}: {remedy}")


def _array_entry(name: str, said: Any) -> ArrayEntry:
    """How one array is listed, of which everything makes sense by itself."""
    if not isinstance(said, dict) or set(said) != _KEYS:
        raise ModelFileError(f"array {show(name)} must be listed with exactly {', '.join(sorted(_KEYS))}")
    shape, size = said["shape"], said["size"]
    sound = (
        isinstance(said["entry"], str)
        and isinstance(shape, list)
        and all(type(length) is int and 0 <= length < 1 << 62 for length in shape)
        and isinstance(said["sha256"], str)
        and _DIGEST.fullmatch(said["sha256"])
        and type(size) is int
    )
    if not sound:
        raise ModelFileError(f"array {show(name)} is listed with values that make no sense")
    if not isinstance(said["dtype"], str) or not is_kept(said["dtype"]):
        raise ModelFileError(f"array {show(name)} has the type {show(said['dtype'])}, which model files never hold")
    return ArrayEntry(**{**said, "shape": tuple(shape)})


def _check_listed(listed: dict[str, ArrayEntry], entries: dict[str, zipfile.ZipInfo]) -> None:
    """Every entry is listed once, with the size it has."""
    names = {f"{position}.npy" for position in range(len(listed))}
    if {entry.entry for entry in listed.values()} != names:
        raise ModelFileError("its arrays are not listed as 0.npy, 1.npy and so on")
    for name in entries:
        if name not in names and name != _DOCUMENT:
            raise ModelFileError(f"it holds the entry {show(name)}, which is not listed; nothing was unpacked")
    for name, entry in listed.items():
        if entry.entry not in entries:
            raise ModelFileError(f"array {show(name)} is listed but missing")
        if entry.size != entries[entry.entry].file_size:
            raise ModelFileError(f"array {show(name)} does not have the size listed")


def _array(archive: zipfile.ZipFile, name: str, entry: ArrayEntry) -> np.ndarray:
    try:
        with archive.open(entry.entry) as stream:
            return load(stream, entry)
    except ValueError as error:
        raise ModelFileError(f"array {show(name)} cannot be used: {error}") from None


# -- what a file that is no model file seems to be, in a few words

_STARTS = (
    (b"PK", "a damaged zip archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a zstandard file"),
    (b"PAR1", "a Parquet table"),
    (b"ARROW1", "an Arrow table"),
    (b"\x93NUMPY", "a NumPy array (.npy)"),
    (b"\x89HDF", "an HDF5 file"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x89PNG", "a picture"),
    (b"%PDF", "a PDF"),
    (b"\x7fELF", "a program"),
)
_PICKLE = "a Python pickle, which is never loaded as it could run any code"


def looks_like(start: bytes) -> str:
    """A guess from the first bytes.

    >>> looks_like(b"age,income"), looks_like(b"PAR1...")
    ('a CSV or other text table', 'a Parquet table')
    """
    if not start:
        return "an empty file"
    if start[0] == 0x80 and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return _PICKLE
    for magic, name in _STARTS:
        if start.startswith(magic):
            return name
    if not start.strip(b"\0"):
        return "a file of zeros"
    return _kind_of_text(start)


def _kind_of_text(start: bytes) -> str:
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(start)  # the last character may be cut
    except UnicodeDecodeError:
        return "some other binary file"
    if not all(character.isprintable() or character in "\r\n\t\f" for character in text):
        return "some other binary file"
    if text.startswith(("(dp", "(lp", "ccopy_reg", "c__")):
        return _PICKLE
    if text.lstrip().startswith(("{", "[")):
        return "JSON text"
    if text.lstrip().startswith("<"):
        return "HTML or XML text"
    line = text.split("\n", 1)[0]
    return "a CSV or other text table" if any(mark in line for mark in ",;\t|") else "plain text"
