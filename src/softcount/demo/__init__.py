"""Small tables that come with the library, for trying things out: `<name>.csv` beside this file."""

from __future__ import annotations

from pathlib import Path

from softcount.errors import DataError

TABLES: dict[str, str] = {"bicycles": "type"}
"""Every bundled table's name and the column worth predicting; the first is shown when none is asked for."""


def table_path(name: str = "bicycles") -> Path:
    """Where the bundled table of that name is.

    >>> table_path("bicycles").name
    'bicycles.csv'
    """
    if name not in TABLES:
        raise DataError(f"there is no demo table {name!r}. There is: {', '.join(TABLES)}.")
    return Path(__file__).parent / f"{name}.csv"
