"""The model file: a zip of stored entries, a document and one .npy file per array.

`model.json` holds the format's number, who wrote it, the document, and for every array its entry, shape, type, size and
SHA-256. Nothing in the file is ever imported or evaluated, and no size in it is believed before the file's own size
has been compared. The same content gives the same bytes, whenever and wherever it is written.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from msgspec.structs import asdict

import softcount
from softcount.errors import DataError, ModelFileError
from softcount.files import json_document as plain_json
from softcount.files import npy
from softcount.files.atomic import Path, atomic_writer
from softcount.files.json_document import show
from softcount.files.npy import ArrayEntry

Document = dict[str, Any]
Arrays = dict[str, np.ndarray]

FORMAT = 4
"""The newest format of model files that this version reads, and the one it writes.

Format 2 adds to mixtures what was fixed, known and tried; 3 adds text columns and calibration, and packs large tables
of counts; 4 keeps the arrays of like columns side by side. Older files are read as before. A document names the kind of
its model, and readers that do not look there take it for a star, which every file of format 4 is: another kind needs
the next number.
"""

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
        text = plain_json.encode(manifest)
    except ValueError as error:
        raise DataError(f"cannot write {_shown(path)}: {error}.") from None
    with atomic_writer(path, "wb") as target, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, _DOCUMENT, len(text), [text])
        for entry, array in zip(listed, kept, strict=True):
            _add(archive, entry.entry, entry.size, npy.pieces(array))


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
    kept = [npy.plain(name, array) for name, array in arrays.items()]
    return kept, [npy.array_entry(f"{position}.npy", array) for position, array in enumerate(kept)]


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
        manifest: dict[str, Any] = plain_json.decode(archive.read(_DOCUMENT))
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
    if number > FORMAT:
        raise ModelFileError(
            f"written by Softcount format {show(number)}; this version reads up to {FORMAT}: upgrade softcount"
        )


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
    if not isinstance(said["dtype"], str) or not npy.is_kept(said["dtype"]):
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
            return npy.load(stream, entry)
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
