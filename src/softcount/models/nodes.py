"""Nodes: columns or blocks of columns, each with its family."""

from __future__ import annotations

from dataclasses import dataclass

from softcount.families import Family, Setting
from softcount.table.schema import Key


@dataclass(frozen=True, slots=True)
class Node:
    """A column, or a block of columns, with its family: independent of all others given the group."""

    key: Key
    columns: tuple[Key, ...]
    family: Family
    setting: Setting
