"""Model files that lie: changes to the document and arrays of a sound one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from softcount.files import read, write

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
    places, found = document.pop("places", {}), {}
    for name, array in arrays.items():
        section, _, rest = name.partition("/")
        if section in places:
            number, _, part = rest.partition("/")
            keys = [document["leaves"][place]["key"] for place in places[section][int(number)]]
            found |= {f"{section}/{key!r}/{part}": np.array(own) for key, own in zip(keys, array, strict=True)}
        else:
            found[f"counts/'(groups)'/{rest}" if section == "groups" else name] = array.copy()
    return found


def in_bunches(document: dict[str, Any], arrays: dict[str, np.ndarray], keys: list[str]) -> dict[str, np.ndarray]:
    """The same arrays as the file has them, every column in a bunch of its own."""
    if not keys:
        return arrays
    places: dict[str, list[list[int]]] = {section: [] for section in ("counts", "params", "hyper", "fixed")}
    found = {}
    for name, array in arrays.items():
        section, _, rest = name.partition("/")
        key, _, part = rest.rpartition("/")
        if section == "counts" and key == "'(groups)'":
            found[f"groups/{part}"] = array
        elif section in places and key in keys:
            own = [keys.index(key)]
            if own not in places[section]:
                places[section].append(own)
            found[f"{section}/{places[section].index(own)}/{part}"] = np.asarray(array)[None]
        else:
            found[name] = array
    document["places"] = places
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
