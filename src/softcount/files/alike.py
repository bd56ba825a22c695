"""Arrays of many columns in few entries of a model file: those of one name, type and shape are kept side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcount.errors import ModelFileError
from softcount.files.archive import Arrays

Places = dict[str, list[list[int]]]
"""By section, the columns that each bunch of arrays is of, by their place in the order."""


def put_alike(arrays: Arrays, section: str, each: Sequence[Arrays]) -> list[list[int]]:
    """Put what each column has, like ones in a bunch; back come the places of the columns of every bunch."""
    alike: dict[Any, list[int]] = {}
    for place, own in enumerate(each):
        if own:
            form = tuple((name, array.dtype.str, array.shape) for name, array in own.items())
            alike.setdefault(form, []).append(place)
    for number, (form, places) in enumerate(alike.items()):
        for name, *_ in form:
            arrays[f"{section}/{number}/{name}"] = np.stack([each[place][name] for place in places])
    return list(alike.values())


class FiledArrays:
    """The arrays of a file by what they are of; older files, without `places`, have an entry for each of a column."""

    def __init__(self, arrays: Arrays, names: Sequence[str], places: Places | None) -> None:
        self.names, self.places = names, places
        self._parts: dict[str, Arrays] = {}
        for name, array in arrays.items():
            prefix, _, part = name.rpartition("/")
            self._parts.setdefault(prefix, {})[part] = array

    def of(self, prefix: str) -> Arrays:
        """The arrays under one name."""
        return dict(self._parts.get(prefix, {}))

    def root(self) -> Arrays:
        """The shares of the classes, what is imagined of them, and what is fixed."""
        return _numbers(self.of("root"))

    def each(self, section: str, needed: Sequence[bool] = ()) -> list[Arrays]:
        """What every column has of this section, in their order; nothing where it has none and it is not `needed`."""
        found = self._older(section) if self.places is None else self._apart(section, self.places[section])
        if section != "counts":
            found = [_numbers(own) for own in found]
        for name, own, wanted in zip(self.names, found, needed, strict=False):
            if wanted and not own:
                raise ModelFileError(f"the {section} of column {name} is not there.")
        return found

    def _older(self, section: str) -> list[Arrays]:
        return [self.of(f"{section}/{name}") for name in self.names]

    def _apart(self, section: str, bunches: list[list[int]]) -> list[Arrays]:
        found: list[Arrays] = [{} for _ in self.names]
        for number, places in enumerate(bunches):
            bunch = self.of(f"{section}/{number}")
            if not bunch or any(array.shape[:1] != (len(places),) for array in bunch.values()):
                raise ModelFileError(f"the {section} of {len(places)} columns are not those of each.")
            for at, place in enumerate(places):
                if type(place) is not int or not 0 <= place < len(found) or found[place]:
                    raise ModelFileError(f"the {section} of column number {place!r} are there twice, or it is not.")
                found[place] = {name: array[at, ...] for name, array in bunch.items()}
        return found


def _numbers(own: Arrays) -> Arrays:
    for name, array in own.items():
        if array.dtype != np.float64:
            raise ModelFileError(f"its {name} does not make sense: it holds {array.dtype}, not float64.")
    return own
