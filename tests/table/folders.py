"""Folders of documents, written and opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from softcount.sources.open_source import open_source
from softcount.sources.source import FileFormat

MAIL = {
    "spam/1.txt": b"win money now",
    "spam/2.txt": b"",
    "ham/a": "see you at the caf\u00e9".encode(),
    "ham/old/b": b"caf\xe9 at noon",
    "ham/a.b/c": b"lunch?\r\n",
}


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    folder.mkdir(exist_ok=True)
    return folder


def opened(path: Path) -> Any:
    return open_source(str(path), (), FileFormat(), None)
