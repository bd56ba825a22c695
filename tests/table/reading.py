"""How the tests of tables read one: to its end, starting again when a row contradicts, and back to plain values."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from softcount.table import Chunk, Contradiction, Settled, Table, open_table


class Read(NamedTuple):
    """A table read to its end."""

    table: Table
    chunks: list[Chunk]
    settled: Settled

    @property
    def kinds(self) -> dict[Any, str]:
        return {spec.key: spec.kind.value for spec in self.table.schema.fields}

    @property
    def used(self) -> list[Any]:
        return [spec.key for spec in self.table.schema.used]


def with_room(table: Table, most_levels: int) -> Table:
    """The same table with so many levels kept apart in a column at most."""
    plans = tuple(replace(plan, most_levels=most_levels) for plan in table.plans)
    return Table(replace(table.parts, plans=plans))


def read(data: Any, threads: int = 1, **said: Any) -> Read:
    """Every chunk of a table; a contradiction widens it and starts again, as the engine does."""
    return read_table(open_table(data, **said), threads)


def read_table(table: Table, threads: int = 1) -> Read:
    """The same of a table that is open."""
    while True:
        try:
            return Read(table, chunks_of(table, threads), table.settle())
        except Contradiction as why:
            table = table.widened(why)


def chunks_of(table: Table, threads: int = 1) -> list[Chunk]:
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda task: task(), table.tasks()))


def cells(found: Read, key: Any) -> list[Any]:
    """A column as plain values, None where missing, "unseen" where a closed table does not know the level."""
    place = found.table.schema.places[key]
    column = np.concatenate([getattr(chunk, place.store)[:, place.slot] for chunk in found.chunks])
    if place.store == "reals":
        return [None if np.isnan(value) else float(value) for value in column]
    levels = found.settled.schema[key].levels
    remap = found.settled.remap[key]
    named = [None, *levels, "unseen"]
    return [named[int(remap[code]) if code < len(remap) else int(code)] for code in column]


def labels(found: Read) -> list[Any]:
    """The labels as plain values, None where not known."""
    codes = np.concatenate([chunk.labels for chunk in found.chunks])
    return [None if code < 0 else found.settled.classes[found.settled.label_remap[code]] for code in codes]


def written(path: Path, text: str | bytes) -> str:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def csv_of(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows as the simplest CSV: nothing quoted."""
    return "\n".join(",".join(map(str, row)) for row in [names, *rows]) + "\n"
