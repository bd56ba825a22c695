"""Explanations as tables of numbers."""

from __future__ import annotations

from typing import Any

from softcount.estimators.result_frames import arrow_of


def contributions(explained: Any) -> Any:
    """The columns of an explanation that add up, as an Arrow table: all after the two classes that it compares."""
    table = arrow_of(explained)
    return table.select(table.column_names[2:])
