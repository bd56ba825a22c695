"""Results in the type of frame that came in: pandas with its index, polars, and Arrow otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.families import FAMILIES, Family
from softcount.fitted.fitted import Fitted
from softcount.fitted.network import FittedNet
from softcount.table.schema import Key


def arrow_table(columns: Any) -> Any:
    """An Arrow table of columns by name; those that hold words and numbers hold text."""
    import pyarrow as pa

    return pa.table({name: values if _alike(values) else list(map(str, values)) for name, values in columns.items()})


def _alike(values: Any) -> bool:
    """Whether Arrow can hold these values in one column."""
    objects = isinstance(values, list) or getattr(values, "dtype", np.dtype(float)).kind == "O"
    return not objects or len({bool if isinstance(x, (bool, np.bool_)) else isinstance(x, str) for x in values}) < 2


def arrow_lines(lines: list[dict[str, Any]], types: Any = None) -> Any:
    """An Arrow table of lines that all have the same names; `types` of them where there may be no line."""
    import pyarrow as pa

    return pa.Table.from_pylist(lines, schema=None if types is None else pa.schema(types))


def frame_library(X: Any) -> str | None:
    """Whose frame X is; None for whatever is no frame of pandas or polars."""
    if hasattr(X, "iloc") and hasattr(X, "index"):
        return "pandas"
    return "polars" if type(X).__module__.partition(".")[0] == "polars" else None


def sequences_library(X: Any) -> str | None:
    """Whose frame X is, or those in a list of them are."""
    return frame_library(X[0] if isinstance(X, (list, tuple)) and X else X)


def as_frame(table: Any, library: str | None, index: Any = None) -> Any:
    """An Arrow table as a frame of that library; `index` are labels of its rows where it is of pandas."""
    if library == "pandas":
        frame = table.to_pandas()
        return frame if index is None else frame.set_axis(index, axis=0)
    if library == "polars":
        import polars

        return polars.from_arrow(table)
    return table


def arrow_of(result: Any) -> Any:
    """A result in whatever type of frame as an Arrow table; labels of rows are left out."""
    library = frame_library(result)
    if library == "pandas":
        import pyarrow as pa

        return pa.Table.from_pandas(result, preserve_index=False).replace_schema_metadata(None)
    return result.to_arrow() if library == "polars" else result


class ResultFrames:
    """An estimator whose results come in the type of frame that it was given, and that says how columns are read."""

    fitted_: Any
    _library: str | None = None  # whose frame was learned from

    def _result(self, table: Any, X: Any = None, rows: Any = None) -> Any:
        """A result of the rows of X, or of some of them, as X is; a result of the model, as what it was learned from.

        A frame of pandas gets the labels of those rows.
        """
        if X is None:
            return as_frame(table, self._library)
        index = getattr(X, "index", None) if frame_library(X) == "pandas" else None
        return as_frame(table, frame_library(X), index if rows is None or index is None else index.take(rows))

    @property
    def kinds_(self) -> dict[Key, Any]:
        """What every column was taken for: given as `kinds`, it has the same model learned again."""
        return kinds_of(self.fitted_)

    @property
    def schema_(self) -> Any:
        """A frame with a line for each column: its kind and why, its distribution, and how many levels it has."""
        return self._result(arrow_lines(_schema_lines(self.fitted_), _schema_types()))


def kinds_of(fitted: Fitted | FittedNet) -> dict[Key, Any]:
    """Column or block -> what `kinds` takes for it: a family by its name, or itself where it has settings."""
    found = node_families(fitted) if isinstance(fitted, FittedNet) else _leaf_families(fitted)
    said = {key: family.as_kind() for key, family in found.items()}
    named = {column for key in said for column in _columns(key)}
    left = {spec.key: "ignore" for spec in fitted.schema.fields if spec.key not in named}
    order = [spec.key for spec in fitted.schema.fields]
    return {key: kind for key, kind in sorted((said | left).items(), key=lambda pair: _place(pair[0], order))}


def _place(key: Key, order: list[Key]) -> int:
    first = key[0] if isinstance(key, tuple) and key not in order else key
    return order.index(first) if first in order else len(order)


def _leaf_families(fitted: Fitted) -> dict[Key, Family]:
    return {leaf.key: leaf.family for leaf in fitted.model.leaves if leaf.columns}


def node_families(fitted: FittedNet) -> dict[Key, Family]:
    """The family of every node that is a column; numbers that were cut or follow others are normal by themselves."""
    net = fitted.net
    lines = [node.key for node in net.each if node.family.number_parents]
    own = {node.key: node.family for node in net.each if node.columns}
    return own | dict.fromkeys([*net.cuts, *lines], FAMILIES["normal"]())


def _schema_lines(fitted: Fitted | FittedNet) -> list[dict[str, Any]]:
    families = node_families(fitted) if isinstance(fitted, FittedNet) else _leaf_families(fitted)
    told = {key: family.title for key, family in families.items()}
    if isinstance(fitted, FittedNet):
        told |= {key: f"cut into {len(edges) + 1} intervals" for key, edges in fitted.net.cuts.items()}
    titles = {column: title for key, title in told.items() for column in _columns(key)}
    return [
        {
            "column": str(spec.key),
            "kind": str(spec.kind),
            "why": spec.why,
            "used": spec.used,
            "distribution": titles.get(spec.key) if spec.used else None,
            "levels": len(spec.levels) if spec.kind.coded and spec.used else None,
        }
        for spec in fitted.schema.fields
    ]


def _columns(key: Key) -> tuple[Key, ...]:
    return key if isinstance(key, tuple) else (key,)


def _schema_types() -> list[tuple[str, Any]]:
    import pyarrow as pa

    text = ("column", "kind", "why", "distribution")
    types = {"used": pa.bool_(), "levels": pa.int64()} | dict.fromkeys(text, pa.string())
    return [(name, types[name]) for name in ("column", "kind", "why", "used", "distribution", "levels")]
