"""Rows of a text table read by a kernel of ours where they are plain: what Arrow would give, at twice its speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from softcount.sources.csv_rows import RowBytes
from softcount.sources.source import Key, Wanted

LONGEST_WORD = 7
"""Bytes of a word for missing that the kernel compares at once."""


class PlainRows(NamedTuple):
    """Rows as bytes, the columns they have, and what stands between their cells."""

    run: RowBytes
    keys: Sequence[Key]
    delimiter: str


def plain_columns(rows: PlainRows, wanted: Mapping[Key, Wanted], missing: Sequence[str]) -> dict[Key, Any] | None:
    """The wanted columns as Arrow arrays: numbers, or levels as they are met; None where some cell is not plain."""
    from softcount.kernels import csv_cells

    if any(want.text for want in wanted.values()) or not all(map(_is_plain, missing)):
        return None
    data, n_rows = rows.run.data, rows.run.n_rows
    numbers, coded = (
        [key for key in rows.keys if key in wanted and wanted[key].numeric is kind] for kind in (True, False)
    )
    reals, codes = np.empty((len(numbers), n_rows)), np.empty((len(coded), n_rows), dtype=np.int32)
    tables = np.zeros((len(coded), csv_cells.CELLS, 2), dtype=np.uint64)
    levels = np.empty((len(coded), csv_cells.MOST_LEVELS, 2), dtype=np.int64)
    met = np.zeros(len(coded), dtype=np.int64)
    kinds = np.array([_kind(wanted.get(key)) for key in rows.keys], dtype=np.int64)
    words = np.array([int.from_bytes(word.encode(), "little") for word in missing], dtype=np.uint64)
    letters, room = np.frombuffer(data + bytes(8), dtype=np.uint8), (reals, codes, tables, levels, met)
    if not csv_cells.read_cells(letters, n_rows, ord(rows.delimiter), kinds, words, room):
        return None
    columns: dict[Key, Any] = {key: _numbers(line) for key, line in zip(numbers, reals, strict=True)}
    for place, key in enumerate(coded):
        spans = levels[place, : met[place]] - [letters.ctypes.data, 0]
        texts = [data[begun : begun + size] for begun, size in spans.tolist()]
        try:
            columns[key] = _levels(codes[place], [text.decode() for text in texts], missing)
        except UnicodeDecodeError:  # Arrow says which
            return None
    return {key: columns[key] for key in wanted}


def _is_plain(word: str) -> bool:
    """Whether a word for missing is short enough to be compared, and no number."""
    return len(word.encode()) <= LONGEST_WORD and not (word[:1].isdigit() or word.startswith(("+", "-", ".")))


def _kind(want: Wanted | None) -> int:
    from softcount.kernels import csv_cells

    if want is None:
        return csv_cells.SKIP
    if not want.numeric:
        return csv_cells.LEVEL
    return csv_cells.PADDED if want.padded else csv_cells.NUMBER


def _numbers(values: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.Array.from_buffers(pa.float64(), len(values), [_validity(~np.isnan(values)), pa.py_buffer(values)])


def _levels(codes: np.ndarray, texts: list[str], missing: Sequence[str]) -> Any:
    """A dictionary array; levels that mean missing are null."""
    import pyarrow as pa

    there = np.array([text not in missing for text in texts], dtype=bool)
    places = (np.cumsum(there) - there).astype(np.int32)[codes]
    kept = [text for text in texts if text not in missing]
    indices = pa.Array.from_buffers(pa.int32(), len(codes), [_validity(there[codes]), pa.py_buffer(places)])
    return pa.DictionaryArray.from_arrays(indices, pa.array(kept, pa.string()))


def _validity(known: np.ndarray) -> Any:
    import pyarrow as pa

    return None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
