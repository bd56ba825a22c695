"""Model files that lie: changes to the document and arrays of a sound one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from softcount.files import read, write
from softcount.files.model_file import SECTIONS

CLASSES = "(groups)"
"""The name of the classes among the columns."""
Change = Callable[[dict[str, Any], dict[str, np.ndarray]], object]


def spoilt(sound: Path, folder: Path, change: Change) -> Path:
    """The same model with its document and arrays changed, every checksum right again."""
    document, bunched = read(sound)
    document = copy.deepcopy(document)
    keys = [repr(leaf["key"]) for leaf in document.get("leaves", [])]
    arrays = by_column(document, bunched)
    change(document, arrays)
    write(folder / "spoilt.sc", document, in_bunches(document, arrays, keys))
    return folder / "spoilt.sc"


def by_column(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays with a name for every array of every column, such as "params/'size'/mean"."""
    stacks, found = document.pop("stacks", []), {}
    leaves = document.get("leaves", [])
    classes = [CLASSES] if sum(map(len, stacks)) > len(leaves) else []
    keys = [*classes, *(leaf["key"] for leaf in leaves)]
    for name, array in arrays.items():
        section, _, rest = name.partition("/")
        if section in SECTIONS:
            number, _, part = rest.partition("/")
            own = [keys[place] for place in stacks[int(number)]]
            found |= {f"{section}/{key!r}/{part}": np.array(each) for key, each in zip(own, array, strict=True)}
        else:
            found[name] = array.copy()
    return found


def in_bunches(document: dict[str, Any], arrays: dict[str, np.ndarray], keys: list[str]) -> dict[str, np.ndarray]:
    """The same arrays as the file has them, every column in a stack of its own."""
    if not keys:
        return arrays
    classes = [repr(CLASSES)] if any(repr(CLASSES) in name for name in arrays) else []
    found, places = {}, [*classes, *keys]
    for name, array in arrays.items():
        section, _, rest = name.partition("/")
        key, _, part = rest.rpartition("/")
        if section in SECTIONS and key in places:
            found[f"{section}/{places.index(key)}/{part}"] = np.asarray(array)[None]
        else:
            found[name] = array
    document["stacks"] = [[place] for place in range(len(places))]
    return found


def put(name: str, make: Callable[[np.ndarray], Any]) -> Change:
    return lambda document, arrays: arrays.update({name: np.asarray(make(arrays[name]))})


def drop(name: str) -> Change:
    return lambda document, arrays: arrays.pop(name)


def say(value: Any, *keys: Any) -> Change:
    def change(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        inner: Any = document
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value

    return change
