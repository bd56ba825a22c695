"""What is written down of a fit's climbs, so that a process that was killed goes on where it was.

A fit makes its climbs in an order that data and options decide. Of those that ended, and of the one under way, the
parameters, the trace and what the rule remembers are kept as plain values and arrays; the counts follow from one pass
over the same rows, with the same bits.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from math import isclose
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core.counts import Counts
from softcount.errors import DataError
from softcount.models.nodes import Params

Arrays = dict[str, np.ndarray]
Write = Callable[[dict[str, Any], Arrays], None]
EVERY = 5.0
"""Seconds between two writings, at least."""
SELDOM = 20.0
"""Times as long as a writing takes that passes before the next."""
SAME_HEIGHT = 1e-9
"""How far apart two machines may find the objective of the same rows."""


class SavedClimb(Struct, frozen=True):
    """A climb that ended, or as it was between two steps: plain values, and arrays by name."""

    facts: Mapping[str, Any]
    arrays: Arrays = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        return bool(self.facts["ended"])

    @property
    def height(self) -> float:
        """The objective where it was."""
        return float(self.arrays["ends"][-1])


class ClimbLog:
    """The climbs of one fit; `write` puts them down, and `found` is what an earlier process has put down."""

    def __init__(
        self, write: Write, found: tuple[Mapping[str, Any], Arrays] | None = None, name: str = "checkpoint"
    ) -> None:
        self._write, self.name, self.every = write, name, EVERY
        self._climbs = [] if found is None else _climbs_of(*found)
        self._data: str | None = None if found is None else str(found[0]["data"])
        self.seed: int = int(np.random.SeedSequence().entropy) % 2**62 if found is None else int(found[0]["seed"])  # type: ignore[arg-type]
        self._checked, self._closed = False, False
        self._number, self._next = -1, time.monotonic() + self.every

    def refuse_other_rows(self, counts: Counts) -> None:
        """Raise where these are not the counts of the table that the climbs are of; asked once, before the first."""
        if self._checked:
            return
        arrays = [half for array in counts.arrays.values() for half in (array.hi, array.lo)]
        digest = _digest(arrays, [counts.rows, *map(str, counts.arrays)])
        if self._data is not None and self._data not in ("", digest):
            raise self._of_other_data()
        self._data, self._checked = digest, True

    def refuse_other_height(self, saved: SavedClimb, height: float) -> None:
        """Raise where the rows put a climb elsewhere than it was: the same ones in sequences cut otherwise, say."""
        if not isclose(height, saved.height, rel_tol=SAME_HEIGHT):
            raise self._of_other_data()

    def _of_other_data(self) -> DataError:
        return DataError(f"{self.name} is a checkpoint of other data. Give the same data, or remove the file.")

    def begin(self, params: Params, how: Any) -> SavedClimb | None:
        """What is known of the climb that starts here, or nothing; `how` says in words how it is to climb."""
        if self._closed:
            return None
        self._number += 1
        own = _digest(list(params_arrays(params).values()), [how])
        if self._number < len(self._climbs):
            saved = self._climbs[self._number]
            if saved.facts["start"] != own:
                raise DataError(
                    f"{self.name} is a checkpoint of other options. Give the same options, or remove the file."
                )
            return saved
        self._climbs.append(SavedClimb({"start": own, "ended": False}))
        return None

    def keep(self, saved: SavedClimb) -> None:
        """Take down where the climb is, or how it ended, and write where it is time to."""
        if self._closed:
            return
        start = self._climbs[self._number].facts["start"]
        self._climbs[self._number] = replace(saved, facts={**saved.facts, "start": start})
        if time.monotonic() >= self._next:
            self.flush()

    def flush(self) -> None:
        """Write what was taken down."""
        began = time.monotonic()
        climbs = [climb for climb in self._climbs if climb.ended or climb.arrays]
        document = {"data": self._data or "", "seed": self.seed, "climbs": [dict(climb.facts) for climb in climbs]}
        arrays = {f"{number}.{key}": a for number, climb in enumerate(climbs) for key, a in climb.arrays.items()}
        self._write({"checkpoint": document}, arrays)
        now = time.monotonic()
        self._next = now + max(self.every, SELDOM * (now - began))

    def interrupt(self) -> None:
        """Write, and take nothing more down: what comes after an interrupt only gathers what there is."""
        if not self._closed:
            self.flush()
            self._closed = True


def _climbs_of(document: Mapping[str, Any], arrays: Arrays) -> list[SavedClimb]:
    own: list[Arrays] = [{} for _ in document["climbs"]]
    for name, array in arrays.items():
        number, _, key = name.partition(".")
        own[int(number)][key] = array
    return [SavedClimb(facts, found) for facts, found in zip(document["climbs"], own, strict=True)]


def params_arrays(params: Params, name: str = "params") -> Arrays:
    """Parameters as arrays by name."""
    places = enumerate(params.bundles.values())
    return {f"{name}.{place}.{part}": np.asarray(value) for place, own in places for part, value in own.items()}


def params_from(arrays: Arrays, like: Params, name: str = "params") -> Params:
    """Parameters back from arrays, of the same bundles as others."""
    bundles: dict[Any, dict[str, np.ndarray]] = {key: {} for key in like.bundles}
    names = list(like.bundles)
    for key, array in arrays.items():
        if key.startswith(f"{name}."):
            place, part = key.removeprefix(f"{name}.").split(".", 1)
            bundles[names[int(place)]][part] = array
    return replace(like, bundles=bundles)


def _digest(arrays: list[np.ndarray], words: list[Any]) -> str:
    found = hashlib.sha256("\0".join(map(repr, words)).encode("utf-8", "surrogateescape"))
    for array in arrays:
        found.update(f"{array.shape}{array.dtype.str}".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()
