"""The model file: an uncompressed zip of one JSON document and one .npy file per array.

`model.json` holds the format number, the version that wrote it, the document, and for every array its shape, type and
SHA-256. The first array is the entry 0.npy, the next is 1.npy, and so on. Nothing in the file is imported or evaluated,
and every size in it is compared with the size of the file before use. Equal content gives identical bytes at any time
and on any system.
"""

from __future__ import annotations

import codecs
import hashlib
import math
import os
import pathlib
import re
import stat
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import IO, Any

import numpy as np
from msgspec import Struct
from numpy.lib import format as npy

import softcount
from softcount.errors import DataError, ModelFileError
from softcount.files.atomic import Path, atomic_writer
from softcount.files.codec import Arrays, Document, decode, from_json, require, show, to_json

FORMAT = 10
"""The format of model files that this version writes, and the only one that it reads."""
TYPES = ("<f8", "<i8", "<i4", "|u1", "|b1")
"""Allowed array types, in addition to text of fixed width."""

_TEXT = re.compile(r"<U([1-9][0-9]{0,6})")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_DOCUMENT = "model.json"
_MOST_ARRAYS = 60_000  # the limit of a plain zip directory is 65,535
_MOST_DIRECTORY = 1 << 23  # each entry becomes a Python object
_MOST_AXES = 16
_LAST_CHARACTER = 0x10FFFF
_BLOCK = 1 << 20
_TIME = (1980, 1, 1, 0, 0, 0)
_MAGIC = b"\x93NUMPY\x01\x00"
_END = struct.Struct("<4s8xLLH")  # signature, size and start of the directory, length of the comment
_LOCAL, _CLOSING, _WIDE_CLOSING = b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x07"


class ArrayEntry(Struct, frozen=True):
    """The listing of an array; the digest is that of its .npy file."""

    shape: tuple[int, ...]
    dtype: str
    sha256: str


# -- writing


def write(path: Path, document: Document, arrays: Arrays) -> None:
    """Save a document and its arrays as one file, completely or not at all.

    The document holds JSON values: finite numbers, text, Booleans, None, lists, and dicts with text keys. Arrays are
    float64, int64, int32, uint8, bool or text. Any other value, or a path that cannot be written, raises a `DataError`
    and leaves the disk unchanged.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/small.sc", {"model": "star"}, {"counts": np.array([3.0, 4.0])})
    ...     read(folder + "/small.sc")
    ({'model': 'star'}, {'counts': array([3., 4.])})
    """
    try:
        if len(arrays) > _MOST_ARRAYS:
            raise ValueError(f"a model file holds at most {_MOST_ARRAYS:,} arrays, not {len(arrays):,}")
        kept = {name: _as_kept(name, array) for name, array in arrays.items()}
        listed = {}
        for name, array in kept.items():
            digest = hashlib.sha256()
            for piece in _pieces(array):
                digest.update(piece)
            listed[name] = {"shape": array.shape, "dtype": array.dtype.str, "sha256": digest.hexdigest()}
        version = getattr(softcount, "__version__", "unknown")
        text = to_json({"format": FORMAT, "softcount": version, "document": document, "arrays": listed})
    except ValueError as error:
        raise DataError(f"cannot write {_show_path(path)}: {error}.") from None
    with atomic_writer(path, "wb") as target, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, _DOCUMENT, [text])
        for place, array in enumerate(kept.values()):
            _add(archive, f"{place}.npy", list(_pieces(array)))


def _as_kept(name: str, array: np.ndarray) -> np.ndarray:
    """Return the array in C order and little-endian; raise a `ValueError` for a type that files do not keep."""
    array = np.asarray(array)
    if array.dtype.kind == "U":
        array = array.astype(f"<U{max(array.dtype.itemsize // 4, 1)}", copy=False)
    elif array.dtype.kind in "fiub":
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if not _is_kept(array.dtype.str) or array.ndim > _MOST_AXES:
        raise ValueError(
            f"array {name!r} is {array.dtype} with {array.ndim} axes; a model file keeps float64, int64, int32, uint8, "
            f"bool and text, with at most {_MOST_AXES} axes"
        )
    return np.require(array, requirements="C")


def _is_kept(dtype: str) -> bool:
    return dtype in TYPES or _TEXT.fullmatch(dtype) is not None


def _pieces(array: np.ndarray) -> Iterator[bytes | memoryview]:
    """Yield the bytes of an array's .npy file without copying the array."""
    head = BytesIO()
    npy.write_array_header_1_0(head, {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape})
    yield head.getvalue()
    yield _bytes_of(array)


def _bytes_of(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def _add(archive: zipfile.ZipFile, name: str, pieces: list[Any]) -> None:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.create_system = 3  # identical bytes on every system
    entry.external_attr = 0o644 << 16
    entry.file_size = sum(map(len, pieces))
    with archive.open(entry, "w") as out:
        for piece in pieces:
            out.write(piece)


# -- reading


def read(path: Path) -> tuple[Document, Arrays]:
    """Return the document and the arrays of a model file, as they were given to `write`.

    Any problem with the file raises a `ModelFileError` of one line that names the file; no other exception escapes.
    """
    try:
        return _read(os.fspath(path))
    except (ModelFileError, ValueError) as error:
        problem = str(error)
    except FileNotFoundError:
        problem = "there is no such file"
    except OSError as error:
        problem = f"it cannot be read: {error.strerror or error}"
    except MemoryError:
        problem = "there is not enough memory to load it"
    except Exception as error:  # zipfile raises many types on damaged files; none may escape
        problem = f"it is damaged ({type(error).__name__}: {error})"
    raise ModelFileError(f"model file {_show_path(path)}: {' '.join(problem.split())}")


@contextmanager
def naming(path: object, what: str, unsound: tuple[type[Exception], ...] = (Exception,)) -> Iterator[None]:
    """Convert errors of the types `unsound` to a `ModelFileError` that starts with the name of the file."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except unsound as error:
        raise ModelFileError(f"{path}: {what} ({type(error).__name__}: {error}).") from None


def _show_path(path: object) -> str:
    return repr(os.fspath(path)) if isinstance(path, str | os.PathLike) else repr(path)


def _read(name: str) -> tuple[Document, Arrays]:
    mode = os.stat(name).st_mode  # check first: opening a pipe would block
    require(not stat.S_ISDIR(mode), "it is a folder; give the path of a model file")
    require(stat.S_ISREG(mode), "it is a pipe or a device; save it to a file first")
    with open(name, "rb") as source:
        size = os.fstat(source.fileno()).st_size
        _check_ends(source, size)
        with zipfile.ZipFile(source) as archive:
            entries = _check_entries(archive, size)
            manifest = _read_manifest(archive, entries)
            listed = _read_listing(manifest["arrays"], entries)
            kept = (_read_array(archive, f"{place}.npy", *x) for place, x in enumerate(listed.items()))
            return manifest["document"], dict(zip(listed, kept, strict=True))


def _check_ends(source: IO[bytes], size: int) -> None:
    """Check both ends of the archive before its directory is used."""
    start = source.read(512)
    require(start.startswith(_LOCAL), f"it is not a model file but looks like {looks_like(start)}")
    source.seek(max(size - 42, 0))
    tail = source.read()
    signature, length, begin, comment = _END.unpack(tail[-22:].rjust(22, b"\0"))
    whole = signature == _CLOSING and not comment
    require(whole, "its end is missing or damaged; it was probably cut short. Copy or save it again")
    is_wide = tail[:4] == _WIDE_CLOSING
    sound = not is_wide or size >= zipfile.ZIP64_LIMIT
    require(sound, "it declares sizes far beyond its own; it is damaged or made to do harm")
    sound = length <= _MOST_DIRECTORY and (is_wide or begin + length + 22 == size)
    require(sound, "its directory does not fit the file; it is damaged or made to do harm")


def _check_entries(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the entries by name; raise for compressed, encrypted, repeated or oversized entries."""
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        name = show(entry.orig_filename)
        require(entry.orig_filename not in entries, f"it holds the entry {name} twice")
        plain = entry.compress_type == zipfile.ZIP_STORED and not entry.flag_bits & 1
        require(plain, f"its entry {name} is compressed or encrypted; ours never are")
        require(entry.file_size == entry.compress_size, f"its entry {name} contradicts itself about its size")
        entries[entry.orig_filename] = entry
    declared = sum(entry.file_size for entry in entries.values())
    require(declared <= size, f"its entries claim {declared:,} bytes, but the file has {size:,}")
    return entries


def _read_manifest(archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo]) -> dict[str, Any]:
    if _DOCUMENT not in entries:
        pickled = any(name.endswith((".pkl", ".pickle", ".joblib")) for name in entries)  # another library's model
        kind = "a zip with a Python pickle in it, which is never loaded" if pickled else "a zip"
        raise ModelFileError(f"it is not a model file but looks like {kind}: there is no {_DOCUMENT} in it")
    try:
        manifest: dict[str, Any] = from_json(archive.read(_DOCUMENT))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its {_DOCUMENT} cannot be used: {error}") from None
    number: Any = manifest.get("format") if isinstance(manifest, dict) else None
    require(type(number) is int and number >= 1, f"its {_DOCUMENT} does not say which format it has")
    remedy = "upgrade softcount" if number > FORMAT else "fit the model again and save it"
    same = number == FORMAT
    require(same, f"written in format {show(number)}; this version reads format {FORMAT}: {remedy}")
    whole = set(manifest) == {"format", "softcount", "document", "arrays"}
    require(whole, f"its {_DOCUMENT} must hold exactly format, softcount, document and arrays")
    objects = isinstance(manifest["document"], dict) and isinstance(manifest["arrays"], dict)
    require(objects, f"its {_DOCUMENT} must hold objects under document and arrays")
    return manifest


def _read_listing(arrays: dict[str, Any], entries: dict[str, zipfile.ZipInfo]) -> dict[str, ArrayEntry]:
    """Return the listed arrays after checking that each has an entry, and that there are no other entries."""
    listed: dict[str, ArrayEntry] = {}
    for name, found in arrays.items():
        entry = decode(ArrayEntry, found, {}, "", f"the listing of array {show(name)}")
        sound = all(0 <= length < 1 << 62 for length in entry.shape) and _DIGEST.fullmatch(entry.sha256)
        require(sound, f"array {show(name)} is listed with values that make no sense")
        kept = _is_kept(entry.dtype)
        require(kept, f"array {show(name)} has the type {show(entry.dtype)}, which model files never hold")
        require(f"{len(listed)}.npy" in entries, f"array {show(name)} is listed but missing")
        listed[name] = entry
    names = {_DOCUMENT, *(f"{place}.npy" for place in range(len(listed)))}
    for name in entries:
        require(name in names, f"it holds the entry {show(name)}, which is not listed; nothing was unpacked")
    return listed


def _read_array(archive: zipfile.ZipFile, place: str, name: str, entry: ArrayEntry) -> np.ndarray:
    """Read an array and verify its digest; the memory allocated is bounded by the size of the file."""
    what = f"array {show(name)} cannot be used"
    with archive.open(place) as stream:
        digest = hashlib.sha256(_read_head(stream, archive.getinfo(place).file_size, entry, what))
        array = np.empty(entry.shape, dtype=entry.dtype)
        room = _bytes_of(array)
        for start in range(0, len(room), _BLOCK):
            block = stream.read(min(_BLOCK, len(room) - start))
            room[start : start + len(block)] = block
            digest.update(block)
    same = digest.hexdigest() == entry.sha256
    require(same, f"{what}: its bytes are not those that were saved (SHA-256 differs)")
    if array.dtype.kind == "b" and array.size:
        require(array.view(np.uint8).max() <= 1, f"{what}: it holds Booleans that are neither true nor false")
    if array.dtype.kind == "U" and array.size:
        known = array.reshape(-1).view("<u4").max() <= _LAST_CHARACTER
        require(known, f"{what}: it holds characters that do not exist")
    return array


def _read_head(stream: IO[bytes], size: int, entry: ArrayEntry, what: str) -> bytes:
    """Return the header's bytes after comparing them with the entry.

    NumPy would evaluate the header as a Python literal. Here only one text is possible, so it is compared instead.
    """
    length = size - math.prod(entry.shape) * np.dtype(entry.dtype).itemsize
    fits = 10 <= length < 1 << 16
    require(fits, f"{what}: its size, {size:,} bytes, does not fit its shape {entry.shape}")
    head = stream.read(length)
    text = f"{{'descr': {entry.dtype!r}, 'fortran_order': False, 'shape': {entry.shape!r}, }}"
    same = head[:10] == _MAGIC + struct.pack("<H", length - 10) and head[10:].rstrip(b" \n") == text.encode("ascii")
    require(same, f"{what}: its .npy header differs from the listing")
    return head


# -- guesses about files that are not model files

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
    """Guess the kind of a file from its first bytes.

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
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(start)  # the last character may be incomplete
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


# -- data files


def data_digest(path: str) -> str | None:
    """Return the SHA-256 of a file, or of a folder's files and names in order; None for anything else.

    For a file, `sha256sum FILE` gives the same digest.
    """
    found = pathlib.Path(path)
    if found.is_file():
        with found.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    if not found.is_dir():
        return None
    whole = hashlib.sha256()
    for folder, folders, names in os.walk(found):
        folders.sort()
        for name in sorted(names):
            part = pathlib.Path(folder, name)
            whole.update(part.relative_to(found).as_posix().encode("utf-8", "surrogateescape") + b"\0")
            if part.is_file():
                whole.update(bytes.fromhex(data_digest(str(part)) or ""))
    return whole.hexdigest()
