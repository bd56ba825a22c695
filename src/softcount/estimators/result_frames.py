"""Answers as frames of the library that the rows came in, and tables with their missing cells filled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from softcount.errors import DataError
from softcount.estimators.inputs import frame_library, is_table
from softcount.families import FAMILIES, Family
from softcount.fitted.fitted import Fitted
from softcount.fitted.network import FittedNet
from softcount.sources.arrow_columns import number_of
from softcount.sources.frames import ArrowSource, arrow_column, columns_source, frame_source
from softcount.table.cell_forms import decimals_of, spell_cells
from softcount.table.schema import Key, labels


def arrow_table(columns: Any) -> Any:
    """An Arrow table of columns by name; those that hold words and numbers hold text."""
    return pa.table({name: values if _alike(values) else list(map(str, values)) for name, values in columns.items()})


def _alike(values: Any) -> bool:
    """Whether Arrow can hold these values in one column."""
    objects = isinstance(values, list) or getattr(values, "dtype", np.dtype(float)).kind == "O"
    return not objects or len({bool if isinstance(x, (bool, np.bool_)) else isinstance(x, str) for x in values}) < 2


def arrow_lines(lines: list[dict[str, Any]], types: Any = None) -> Any:
    """An Arrow table of lines that all have the same names; `types` of them where there may be no line."""
    return pa.Table.from_pylist(lines, schema=None if types is None else pa.schema(types))


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
    text = ("column", "kind", "why", "distribution")
    types = {"used": pa.bool_(), "levels": pa.int64()} | dict.fromkeys(text, pa.string())
    return [(name, types[name]) for name in ("column", "kind", "why", "used", "distribution", "levels")]


# Holes filled in whatever type the table came in.

Fills = dict[Key, tuple[np.ndarray, np.ndarray]]


def filled(X: Any, fills: Fills, order: Sequence[Key]) -> Any:
    """X with the fills put in; an array, a pandas or polars frame, an Arrow table or a mapping like the one given.

    Columns that a model knows by name and X by place, or the other way round, are in the `order` of the model.
    """
    if not is_table(X):
        return _filled_array(X, {order.index(key): found for key, found in fills.items() if key in order})
    source = _memory_columns(X)
    if len(source.keys) == len(order) and not set(source.keys) & set(order):
        places = {key: source.keys[place] for place, key in enumerate(order)}
        fills = {places.get(key, key): found for key, found in fills.items()}
    if hasattr(X, "iloc"):
        return _filled_pandas(X, fills, source.keys)
    columns = dict(zip(source.keys, source.table.columns, strict=True))
    for key, (rows, values) in fills.items():
        columns[key] = filled_arrow(key, columns.get(key), rows, values)
    if isinstance(X, dict):
        theirs = dict(zip(source.keys, X, strict=True))
        return {theirs.get(key, key): column.to_pylist() for key, column in columns.items()}
    table = pa.table(list(columns.values()), names=list(labels(columns).values()))
    # pandas' own note of the types would turn a filled 4.3 back into a whole number, or fail to.
    notes = {name: note for name, note in (source.table.schema.metadata or {}).items() if name != b"pandas"}
    table = table.replace_schema_metadata(notes or None)
    return type(X)(table) if hasattr(X, "with_columns") else table


def _filled_array(X: Any, fills: Mapping[int, tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    out = X.toarray() if hasattr(X, "toarray") else np.array(X, copy=True)
    if any(values.dtype == object for _, values in fills.values()) and out.dtype.kind != "O":
        out = out.astype(object)
    for key, (rows, values) in fills.items():
        out[rows, key] = _like_cells(values, out[:, key]) if out.dtype.kind == "O" else values
    return out


def _like_cells(values: np.ndarray, cells: Iterable[Any]) -> np.ndarray:
    """Fills as the other cells of their column are: numbers as text among text, the numbers spelt among numbers."""
    known = [cell for cell in cells if cell is not None and cell == cell]  # NaN is missing
    text = any(isinstance(cell, str) for cell in known)
    if text and not any(isinstance(value, str) for value in values):
        decimals = decimals_of([cell for cell in known if isinstance(cell, str)])
        return np.array(spell_cells(values, decimals), dtype=object)
    if known and not text and any(isinstance(value, str) for value in values):
        spelt = {str(cell): cell for cell in known}  # a level is spelt; the cell that is spelt so may be a date
        found = [spelt.get(value, number_of(str(value))) for value in values]
        if None not in found:
            same = {type(value) for value in found}
            return np.array(found, dtype=None if len(same) == 1 and same <= {int, float} else object)
    return values


def _filled_pandas(X: Any, fills: Fills, keys: list[Key]) -> Any:
    out = X.copy()
    for key, (rows, values) in fills.items():
        if key not in keys:
            out.insert(out.shape[1], key, values)
            continue
        at = keys.index(key)
        out.isetitem(at, _filled_series(out.iloc[:, at].copy(), rows, values))
    return out


def _filled_series(column: Any, rows: np.ndarray, values: np.ndarray) -> Any:
    """A column of pandas with the fills: of its own type where that can hold them, else of objects."""
    kind = str(column.dtype)
    values = _like_cells(values, np.delete(column.to_numpy(dtype=object), rows))
    whole = values.dtype.kind in "iu"
    if (column.dtype.kind in "iu" or kind.startswith(("Int", "UInt"))) and not whole:
        column = column.astype("Float64" if kind[0] in "IU" else float)
    for own in (column.dtype, object):
        changed = column.astype(own)
        try:
            changed.iloc[rows] = type(column)(list(values)).astype(own).array
        except (TypeError, ValueError, ArithmeticError, NotImplementedError):  # each type has its own
            continue
        if not changed.iloc[rows].isna().any():  # what a category or a date cannot be is missing again
            return changed
    return changed


def as_type(column: Any, dtype: Any) -> Any:
    """A column of pandas as another type; text that is to be numbers is the numbers that it spells."""
    numbers = getattr(dtype, "kind", "O") in "iuf" and getattr(column.dtype, "kind", "O") not in "iufb"
    return (column.astype(object).map(_number) if numbers else column).astype(dtype)


def _number(cell: Any) -> float | None:
    """The number a cell is or spells; None for words that mean missing, which are about to be filled."""
    try:
        return None if cell is None else float(cell)
    except (TypeError, ValueError):
        return None


def as_arrow_type(column: Any, kind: Any) -> Any:
    """A column of Arrow as another type; text that is to be numbers is the numbers that it spells."""
    if column.type == kind:
        return column
    if pa.types.is_floating(kind) and not pa.types.is_primitive(column.type):
        return pa.array(list(map(_number, column.to_pylist())), kind)
    return column.cast(kind)


def filled_arrow(key: Key, column: Any, rows: np.ndarray, values: np.ndarray) -> Any:
    """A column of Arrow with the fills: of its own type where that can hold them, else of theirs, else text."""
    if column is None:
        return arrow_column(key, list(values))
    own, cells = column.type, column.to_pylist()
    coded = pa.types.is_dictionary(own)
    fills = arrow_column(key, list(_like_cells(values, np.delete(np.array(cells, dtype=object), rows))))
    plain = own.value_type if coded else own
    wider = pa.types.is_integer(plain) and pa.types.is_floating(fills.type)
    for kind in (*([] if wider else [plain]), fills.type, pa.large_string()):
        try:
            cells = pa.array(cells, plain).cast(kind).to_pylist()
            for row, value in zip(rows, fills.cast(kind).to_pylist(), strict=True):
                cells[row] = value
            found = pa.array(cells, kind)
            return found.dictionary_encode() if coded and kind == plain else found
        except pa.ArrowException:
            continue
    raise DataError(f"column {key!r} holds {own}, which the values that were found do not fit into.")


def as_arrow(X: Any) -> Any:
    """X as an Arrow table, whatever it is."""
    source = _memory_columns(X)
    return _without_views(source.table.rename_columns(list(labels(source.keys).values())))


def _memory_columns(X: Any) -> ArrowSource:
    """The columns of a table that is in memory."""
    if isinstance(X, Mapping):
        return columns_source(X)
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        return frame_source(X)
    if is_table(X):
        raise DataError(f"give the rows themselves (a frame or an array), not {type(X).__name__}.")
    array = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=None if hasattr(X, "dtype") else object)
    return columns_source({place: array[:, place] for place in range(array.shape[1])}, named=False)


def _without_views(table: Any) -> Any:
    """The table with text that rows can be taken from: Arrow cannot take from the views that polars keeps text in."""
    for place, column in enumerate(table.schema):
        if pa.types.is_string_view(column.type):
            table = table.set_column(place, column.name, table.column(place).cast(pa.large_string()))
    return table
