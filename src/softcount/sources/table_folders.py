"""Folders that hold one table in several files, as Spark and others write them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

ENDINGS = (".parquet", ".pq", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".arrow", ".feather")
"""How files that hold rows are named."""
NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""What a folder is called whose rows have nothing in its column."""


class TablePart(NamedTuple):
    """A file of a table, and what the names of the folders it is in say of all its rows."""

    path: str
    said: Mapping[str, str | None]


def table_parts(folder: str) -> list[TablePart]:
    """The files of a folder that holds one table, in the order of their names; none where it holds anything else.

    Names that begin with a dot or an underscore are nobody's rows (`_SUCCESS`, `.part.crc`). The name of a folder such
    as `year=2024` is a column.
    """
    if not os.path.isdir(folder):
        return []
    found: list[TablePart] = []
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        inside = os.path.relpath(here, folder)
        said = _said([] if inside == os.curdir else inside.split(os.sep))
        for name in sorted(name for name in files if name[0] not in "._"):
            if not name.lower().endswith(ENDINGS) or said is None:
                return []
            found.append(TablePart(os.path.join(here, name), said))
    return found


def _said(names: Sequence[str]) -> dict[str, str | None] | None:
    """The columns that names of folders are; None where one is no column and its value, and so perhaps a class."""
    found: dict[str, str | None] = {}
    for name in names:
        key, sign, value = name.partition("=")
        if not (sign and key):
            return None
        found[unquote(key)] = None if value == NOTHING else unquote(value)
    return found
