"""The columns of DATA as they stand there: kept beside what a model says, or with their holes filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from softcount.cli.named_columns import suggestion
from softcount.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from softcount.sources.source import Source
    from softcount.table import Key

ALL = "all"
Fills = Mapping[Any, tuple["np.ndarray", "np.ndarray"]]


def columns_of(source: Source, keys: Sequence[Key]) -> dict[Key, pa.ChunkedArray]:
    """Columns of a source, read anew, cell by cell as they are written; missing cells are null."""
    import pyarrow as pa

    from softcount.sources.source import Wanted

    parts: list[Mapping[Key, Any]] = [
        piece.load() for piece in source.pieces(dict.fromkeys(keys, Wanted(numeric=False, text=True)))
    ]
    return {key: _joined(pa, [part[key] for part in parts]) for key in keys}


def _joined(pa: Any, parts: list[Any]) -> Any:
    chunks = [chunk for part in parts for chunk in (part.chunks if hasattr(part, "chunks") else [part])]
    plain = [chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk for chunk in chunks]
    kinds = {chunk.type for chunk in plain}
    return pa.chunked_array(plain if len(kinds) < 2 else [chunk.cast(pa.large_string()) for chunk in plain])


def kept_keys(source: Source, keep: Sequence[str]) -> list[Key]:
    """The columns that --keep names: a name, several with commas between them, or all."""
    from softcount.table.schema import labels

    known = {name: key for key, name in labels(source.keys).items()}
    found: list[Key] = []
    for text in keep:
        names = list(known) if text == ALL and ALL not in known else [text] if text in known else text.split(",")
        for name in names:
            if name not in known:
                raise DataError(f"--keep: the table has no column {name!r}.\n  {suggestion(name, known)}")
            found.append(known[name])
    return list(dict.fromkeys(found))


def with_kept(predicted: pa.Table, source: Source, keep: Sequence[str]) -> pa.Table:
    """What is predicted, after the columns of DATA that are kept; where both have a name, ours is in brackets."""
    if not keep:
        return predicted
    import pyarrow as pa

    from softcount.table.schema import apart, labels

    kept = {labels(source.keys)[key]: cells for key, cells in columns_of(source, kept_keys(source, keep)).items()}
    ours = {apart(name, list(kept)): predicted.column(name) for name in predicted.column_names}
    return pa.table({**kept, **ours})


def rounded(table: pa.Table, digits: int | None) -> pa.Table:
    """The same with numbers rounded to so many digits after the point."""
    if digits is None:
        return table
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            table = table.set_column(place, field.name, pc.round(table.column(place), digits))
    return table


def filled_columns(source: Source, fills: Fills, digits: int | None) -> pa.Table:
    """DATA with its holes filled; columns that only the model has come last."""
    import pyarrow as pa

    from softcount.estimators.filling import filled_arrow
    from softcount.table.schema import labels

    columns: dict[Key, Any] = dict(columns_of(source, source.keys))
    for key, (rows, values) in fills.items():
        own = columns.get(key)
        if own is not None and _is_text(own.type):
            columns[key] = _filled_text(own, rows, values, digits)
        else:
            columns[key] = filled_arrow(key, own, rows, values)
    return pa.table(list(columns.values()), names=list(labels(columns).values()))


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _filled_text(column: Any, rows: np.ndarray, values: np.ndarray, digits: int | None) -> Any:
    """Cells as they are written, and fills as text in between, with the decimals that the other cells have."""
    import pyarrow as pa

    from softcount.table.cell_forms import decimals_of

    cells = column.to_pylist()
    own = set(rows.tolist())
    decimals = decimals_of([cell for row, cell in enumerate(cells) if row not in own])
    for row, value in zip(rows.tolist(), values.tolist(), strict=True):
        cells[row] = _written(value, digits, decimals)
    return pa.array(cells, pa.large_string())


def _written(value: Any, digits: int | None, decimals: int) -> str:
    from softcount.table.cell_forms import spell_cell

    if isinstance(value, float) and digits is not None:
        return f"{round(value, digits):.{max(digits, 0)}f}"
    if isinstance(value, float) and not decimals:
        return f"{value:.6g}"
    return spell_cell(value, decimals)
