"""Rows of numbers as one array: in memory, or mapped from a file of its own where they do not fit."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain

import numpy as np

from softcount.run.spill import Spill, refused
from softcount.scratch import new_scratch


def joined(parts: Iterable[np.ndarray], spill: Spill, rows: int | None = None) -> np.ndarray:
    """All parts, each (rows, columns) float64, one after another, in memory that nobody else has.

    Where it is known how many rows there are, they are put in place as they come.
    """
    parts, held = iter(parts), []
    for part in parts:
        held.append(part)
        if rows and len(held) == 1 and spill.takes(rows * part.shape[1] * 8):
            return _in_place(chain(held, parts), rows, part.shape[1])
        if rows or not spill.takes(part.nbytes):
            return _in_a_file(chain(held, parts), spill.folder or tempfile.gettempdir())
    return np.concatenate(held)


def _in_place(parts: Iterator[np.ndarray], rows: int, columns: int) -> np.ndarray:
    cells, at = np.empty((rows, columns)), 0
    for part in parts:
        cells[at : at + len(part)] = part
        at += len(part)
    return cells[:at]


def _in_a_file(parts: Iterator[np.ndarray], folder: str) -> np.ndarray:
    try:
        handle, path = new_scratch(folder, 0o600, reading=True)
        try:
            with suppress(OSError):  # some systems keep the name of an open file
                os.unlink(path)
            rows, columns = _written(parts, handle)
            # The map stays when the file is closed; the space is free again once nobody has the array.
            mapped = mmap.mmap(handle, rows * columns * 8)
        finally:
            os.close(handle)
    except OSError as error:
        raise refused(folder, error) from error
    return np.frombuffer(mapped, np.float64).reshape(rows, columns)


def _written(parts: Iterator[np.ndarray], handle: int) -> tuple[int, int]:
    rows = columns = at = 0
    for part in parts:
        raw = np.ascontiguousarray(part, np.float64).data.cast("B")
        done = 0
        while done < raw.nbytes:
            done += os.pwrite(handle, raw[done:], at + done)
        at, rows, columns = at + raw.nbytes, rows + len(part), part.shape[1]
    return rows, columns
