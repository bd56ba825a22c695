"""Examples of families: a few rows of the columns that each models, and the range of other cells.

Contract tests run over all of them.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from softcount.families.base import Family

Row = tuple[Any, ...]
Units = tuple[float, ...]
OFFSETS: Units = (0.0, 0.0, 1e8, -1e8)
SCALES: Units = (1.0, 1.0, 3e-7, 1e-100, 1e100)


class Cells(Struct, frozen=True):
    """The range of the cells of a column.

    "levels" are some of `among`. "documents" consist of the words `among`, "sequences" of these characters. "counts"
    are whole numbers up to `most`. "reals" lie around one of `offsets`, "positives" are above zero, "waits" are 0 or
    more, all in units of one of `scales`.
    """

    what: Literal["levels", "documents", "sequences", "counts", "reals", "positives", "waits"]
    among: tuple[str, ...] = ()
    most: int = 30
    offsets: Units = OFFSETS
    scales: Units = SCALES


class Example(Struct, frozen=True):
    """A family, the columns of a table it models, rows of that table (None is missing), and the range of its cells.

    With `one_unit` all columns have the same offset and scale. With `rising` no cell of a row is below the one before.
    """

    family: Family
    columns: tuple[str, ...]
    values: tuple[Row, ...]
    cells: tuple[Cells, ...]
    one_unit: bool = False
    rising: bool = False


def example(
    family: Family, columns: str, values: list[Any], *cells: Cells, one_unit: bool = False, rising: bool = False
) -> Example:
    """Return an example of columns named in one string; the values of a single column are cells, otherwise rows."""
    names = tuple(columns.split())
    rows = tuple((value,) if len(names) == 1 else tuple(value) for value in values)
    return Example(family, names, rows, cells * (len(names) // len(cells)), one_unit, rising)
