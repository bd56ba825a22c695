"""Model files for the tests: sound ones, and ones put together by hand."""

from __future__ import annotations

import hashlib
import io
import json
import os
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softcount.errors import ModelFileError
from softcount.files import read, write

DOCUMENT = {"model": "star", "tol": 1e-8, "levels": ["no", "yes"], "deep": {"none": None, "on": True}}
ARRAYS = {"counts": np.array([[3.0, 0.5], [4.0, -0.0]]), "codes": np.array([1, 0, 2], dtype=np.uint8)}


def saved(folder: Path) -> Path:
    path = folder / "m.sc"
    write(path, DOCUMENT, ARRAYS)
    return path


def same(left: tuple[Any, Any], right: tuple[Any, Any]) -> bool:
    """Equal to the last bit: NaN equals NaN, and -0.0 does not equal 0.0."""
    if left[0] != right[0] or list(left[1]) != list(right[1]):
        return False
    pairs = [(left[1][name], right[1][name]) for name in left[1]]
    return all(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)


def refusal(path: object) -> str:
    """What the refusal says besides the file's name (which, here, holds words of the test's own name)."""
    with pytest.raises(ModelFileError) as caught:
        read(path)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    name = repr(os.fspath(path)) if isinstance(path, str | os.PathLike) else repr(path)
    assert name in message
    return message.replace(name, "", 1)


def entries_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rezip(path: Path, entries: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", method) as archive:
        warnings.simplefilter("ignore")  # zipfile warns of the duplicates we make on purpose
        for name, content in entries:
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return path


def with_manifest(path: Path, change: Any) -> Path:
    """The same file with its model.json passed through `change`, its checksums right again."""
    entries = entries_of(path)
    entries["model.json"] = change(entries["model.json"])
    return rezip(path, list(entries.items()))


def with_value(path: Path, value: Any, *keys: str) -> Path:
    def change(text: bytes) -> bytes:
        manifest = json.loads(text)
        inner = manifest
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value
        return json.dumps(manifest).encode()

    return with_manifest(path, change)


def with_array(path: Path, content: bytes, **told: Any) -> Path:
    """The same file with other bytes for 'counts', listed honestly."""
    entries = entries_of(path)
    manifest = json.loads(entries["model.json"])
    honest = {"sha256": hashlib.sha256(content).hexdigest()}
    manifest["arrays"]["counts"] |= honest | told
    return rezip(path, [("model.json", json.dumps(manifest).encode()), ("0.npy", content), ("1.npy", entries["1.npy"])])


def npy(array: np.ndarray, **kwargs: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **kwargs)
    return out.getvalue()
