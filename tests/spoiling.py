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
    document, arrays = read(sound)
    document = copy.deepcopy(document)
    arrays = in_older_names(document, arrays)
    change(document, arrays)
    write(folder / "spoilt.sc", document, arrays)
    return folder / "spoilt.sc"


def in_older_names(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays as files up to format 3 have them: an entry for every array of every column, under its name."""
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
