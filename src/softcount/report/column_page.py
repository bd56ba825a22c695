"""The columns of a table as they were understood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from softcount.report.json_page import key_text
from softcount.report.page import Page
from softcount.report.plain_text import counted, listed, share
from softcount.table.schema import Field, Key, Kind, Schema

Missing = Mapping[Key, float]
"""Missing cells per column; a column that was not read has no entry."""

HEADINGS = ("column", "kind", "why", "missing")


def schema_page(schema: Schema, n_rows: int, missing: Missing) -> Page:
    """How a table is read, for `softcount schema`."""
    page = Page()
    page.heading(f"{counted(n_rows, 'row')}, {counted(len(schema.fields), 'column')}")
    page.grid(HEADINGS, column_lines(schema, missing, n_rows), right=("missing",))
    left_out = [key_text(spec.key) for spec in schema.fields if not spec.used]
    if left_out:
        page.heading("Left out")
        page.line(f"{listed(left_out)}. To use one anyway, declare its kind: --kind {left_out[0]}=categorical")
    return page


def column_lines(schema: Schema, missing: Missing, n_rows: float) -> list[tuple[str, ...]]:
    """One line per column: its name, kind, why, and the share of its cells that are missing."""
    return [
        (key_text(spec.key), role(spec), spec.why, missing_share(spec.key, missing, n_rows)) for spec in schema.fields
    ]


def role(spec: Field) -> str:
    """The kind of a column, and whether it is left out."""
    if spec.used:
        return str(spec.kind)
    return "left out" if spec.declared else f"{spec.kind} (left out)"


def missing_share(key: Key, missing: Missing, n_rows: float) -> str:
    return share(float(missing[key]) / n_rows) if key in missing and n_rows > 0 else "-"


def schema_document(schema: Schema, n_rows: int, missing: Missing) -> dict[str, Any]:
    """How a table is read, as data."""
    return {"rows": n_rows, "columns": column_documents(schema, missing), "missing_words": list(schema.missing)}


def column_documents(schema: Schema, missing: Missing) -> list[dict[str, Any]]:
    return [
        {
            "column": spec.key,
            "kind": str(spec.kind),
            "why": spec.why,
            "used": spec.used,
            "declared": spec.declared,
            "missing": missing.get(spec.key),
            **_values(spec),
        }
        for spec in schema.fields
    ]


def _values(spec: Field) -> dict[str, Any]:
    """The levels of a column; of a column of text, which may have millions of words, only how many."""
    return {"words": len(spec.levels)} if spec.kind is Kind.TEXT else {"levels": list(spec.levels)}
