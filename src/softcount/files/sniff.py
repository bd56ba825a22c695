"""What a file that is no model file seems to be, in a few words."""

from __future__ import annotations

import codecs

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


def holds_pickle(names: list[str]) -> bool:
    """Whether an archive's entries are those of another library's pickled model."""
    return any(name.endswith((".pkl", ".pickle", ".joblib")) for name in names)


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
