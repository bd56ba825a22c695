"""Checkpoints: one record per EM run, from which an interrupted fit continues to a bit-for-bit identical model.

Data and options determine the order of the EM runs. A record holds the parameters, the trace and the memory of the
acceleration. Expected counts are not saved: one pass over the same rows computes them again.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec.structs import replace

from softcount.core.counts import Counts
from softcount.errors import DataError
from softcount.models.nodes import Params

Arrays = dict[str, np.ndarray]
EVERY, SELDOM = 5.0, 20.0
"""Minimum pause between two writes, in seconds and in multiples of the time that a write takes."""


class Checkpoint:
    """The EM runs of one fit. `found` is the content that an earlier process passed to `write`."""

    def __init__(self, write: Callable[..., None], found: Any = None, name: str = "checkpoint") -> None:
        entropy: Any = np.random.SeedSequence().entropy
        header, arrays = found or ({"data": "", "seed": entropy % 2**62, "climbs": []}, {})
        self.seed: int = header["seed"]
        self._write, self._name, self._data = write, name, header["data"]
        self._runs: list[tuple[dict[str, Any], Arrays]] = [(facts, {}) for facts in header["climbs"]]
        for key, array in arrays.items():
            number, _, part = key.partition(".")
            self._runs[int(number)][1][part] = array
        self._checked = self._closed = False
        self._number, self._next = -1, time.monotonic() + EVERY

    def check_rows(self, counts: Counts) -> None:
        """Raise DataError if the saved runs belong to a table with other counts. Only the first call checks."""
        if self._checked:
            return
        halves = [half for array in counts.arrays.values() for half in (array.hi, array.lo)]
        digest = _digest(halves, [counts.rows, *map(str, counts.arrays)])
        if self._data not in ("", digest):
            raise self.mismatch("data")
        self._data, self._checked = digest, True

    def mismatch(self, what: str) -> DataError:
        return DataError(
            f"{self._name} is a checkpoint of a fit with other {what}. Give the same {what}, or remove the file."
        )

    def begin_run(self, params: Params, how: Any) -> tuple[dict[str, Any], Arrays] | None:
        """Return the saved record of the EM run that starts at these parameters, or None. `how` holds its options."""
        if self._closed:
            return None
        self._number += 1
        start = _digest(list(params_arrays(params).values()), [how])
        if self._number == len(self._runs):
            self._runs.append(({"start": start, "ended": False}, {}))
            return None
        if self._runs[self._number][0]["start"] != start:
            raise self.mismatch("options")
        return self._runs[self._number]

    def keep(self, facts: dict[str, Any], arrays: Arrays) -> None:
        """Record the current run, between two steps or at its end. Write the file if the last write is long ago."""
        if self._closed:
            return
        self._runs[self._number] = ({**facts, "start": self._runs[self._number][0]["start"]}, arrays)
        if time.monotonic() >= self._next:
            self._flush()

    def _flush(self) -> None:
        began = time.monotonic()
        runs = [run for run in self._runs if run[1]]
        document = {"data": self._data, "seed": self.seed, "climbs": [facts for facts, _ in runs]}
        self._write(
            {"checkpoint": document}, {f"{n}.{key}": a for n, run in enumerate(runs) for key, a in run[1].items()}
        )
        now = time.monotonic()
        self._next = now + max(EVERY, SELDOM * (now - began))

    def interrupt(self) -> None:
        """Write the file and ignore all later calls: after an interrupt, a fit only collects its best result."""
        if not self._closed:
            self._flush()
        self._closed = True


def params_arrays(params: Params) -> Arrays:
    places = enumerate(params.bundles.values())
    return {f"params.{place}.{part}": np.asarray(value) for place, own in places for part, value in own.items()}


def params_from(arrays: Arrays, like: Params) -> Params:
    """Invert `params_arrays`, for parameters with the same bundles as `like`."""
    bundles = {}
    for place, bundle in enumerate(like.bundles):
        start = f"params.{place}."
        bundles[bundle] = {key.removeprefix(start): array for key, array in arrays.items() if key.startswith(start)}
    return replace(like, bundles=bundles)


def _digest(arrays: list[np.ndarray], words: list[Any]) -> str:
    found = hashlib.sha256("\0".join(map(repr, words)).encode("utf-8", "surrogateescape"))
    for array in arrays:
        found.update(f"{array.shape}{array.dtype.str}".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()
