"""The SHA-256 of data, so that one can tell later which file a model was learned from."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def data_digest(path: str) -> str | None:
    """The sum of a file's bytes, or of a folder's files with their names, in order; None for what is no file.

    `sha256sum FILE` gives the same for a file.
    """
    found = Path(path)
    if found.is_file():
        with found.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    if not found.is_dir():
        return None
    whole = hashlib.sha256()
    for folder, folders, names in os.walk(found):
        folders.sort()
        for name in sorted(names):
            part = Path(folder, name)
            whole.update(part.relative_to(found).as_posix().encode("utf-8", "surrogateescape") + b"\0")
            if part.is_file():
                whole.update(bytes.fromhex(data_digest(str(part)) or ""))
    return whole.hexdigest()
