"""Small tables that come with the library: `<name>.csv` in this folder."""

from __future__ import annotations

from pathlib import Path

from softcount.errors import DataError

TABLES: dict[str, str] = {"bicycles": "type"}
"""Bundled tables and their targets; the first is the default of `softcount demo`."""


def table_path(name: str = "bicycles") -> Path:
    """The path of a bundled table.

    >>> table_path("bicycles").name
    'bicycles.csv'
    """
    if name not in TABLES:
        raise DataError(f"there is no demo table {name!r}. There is: {', '.join(TABLES)}.")
    return Path(__file__).parent / f"{name}.csv"
