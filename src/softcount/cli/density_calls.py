"""One column of DATA as numbers, beside another as labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from softcount.cli import library_calls as library
from softcount.cli.data_input import InputFormat, source_of
from softcount.cli.named_columns import suggestion
from softcount.errors import DataError

if TYPE_CHECKING:
    import numpy as np

    from softcount.run.progress import Tell
    from softcount.table import Table

MOST_GROUPS = 50
"""Levels of `--by` beyond which nobody could tell the densities apart."""


class ReadColumn(Struct, frozen=True):
    """The numbers of a column, NaN where missing; the label of each row where some were asked for; the missing."""

    values: np.ndarray
    labels: list[Any] | None
    missing: int


def read_column(data: str, column: str, by: str | None, form: InputFormat, tell: Tell) -> ReadColumn:
    """A column of numbers, and the labels of its rows; a cell that is no number is refused with its row."""
    from softcount.table import Contradiction

    source = source_of(data, form, library.bytes_read(tell))
    names = {str(key): key for key in source.keys}
    for option, name in (("--column", column), ("--by", by)):
        if name is not None and name not in names:
            raise DataError(f"{option}: {data} has no column {name!r}.\n  {suggestion(name, names)}")
    if column == by:
        raise DataError(f"--by: {column!r} is the column itself. Name another, whose levels are to be told apart.")
    wanted = {name: "normal" if name == column else "categorical" if name == by else "ignore" for name in names}
    asked = library.declared({names[name]: kind for name, kind in wanted.items()})
    table: Table = library.table_of(source, asked, form)
    while True:
        try:
            return _read(table, names[column], None if by is None else names[by])
        except Contradiction as why:
            table = table.widened(why)


def _read(table: Table, column: Any, by: Any) -> ReadColumn:
    import numpy as np

    chunks = list(table.chunks())
    settled = table.settle()
    chunks = list(table.in_order(chunks, settled))
    places = settled.schema.places
    values = np.concatenate([chunk.reals[:, places[column].slot] for chunk in chunks] or [np.zeros(0)])
    labels = None
    if by is not None:
        levels = settled.schema[by].levels
        if len(levels) > MOST_GROUPS:
            raise DataError(
                f"--by: column {str(by)!r} has {len(levels):,} levels, and at most {MOST_GROUPS} can be shown."
            )
        store, slot = places[by]
        codes = np.concatenate([getattr(chunk, store)[:, slot] for chunk in chunks])
        labels = [None, *levels, None]
        labels = [labels[code] for code in codes.tolist()]
    return ReadColumn(values, labels, int(np.isnan(values).sum()))
