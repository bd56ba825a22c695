"""Learning a network and putting tables to it, as the commands want it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from softcount.errors import DataError
from softcount.run.progress import Tell, keep_quiet

if TYPE_CHECKING:
    import pyarrow as pa

    from softcount.cli.data_input import InputFormat
    from softcount.fitted.network import FittedNet
    from softcount.fitted.network_rows import ExplainedLevels
    from softcount.report.answer_page import ExplainedRow
    from softcount.table import Key, Table


# -- answering for tables


def open_rows(fitted: FittedNet, data: str, form: InputFormat, of: Any, tell: Tell = keep_quiet) -> tuple[Table, Any]:
    """A table to be answered for, and its rows: with their classes as evidence where another node is asked for."""
    from softcount.cli.library_calls import open_like
    from softcount.fit.network import class_codes
    from softcount.table import Chunks, open_table

    table = open_like(fitted, data, form, tell)
    label = fitted.net.target
    if label is None or of == label or label not in table.source.keys:
        return table, table
    words = form.words(fitted.schema.missing)
    table = open_table(table.source, schema=fitted.schema, missing=words, target=label)
    codes = class_codes(fitted, table)
    chunks = (task() for task in table.tasks())
    return table, Chunks([replace(x, labels=codes[x.start : x.start + x.n_rows]) for x in chunks])


def explained_lines(
    fitted: FittedNet, data: str, form: InputFormat, wanted: Sequence[int], of: str | None, against: str | None
) -> tuple[pa.Table, list[ExplainedRow]]:
    """A line for each row, or each of those wanted, counted from 1: what every node adds to its log-odds.

    Of the rows wanted also what a page says of them.
    """
    import numpy as np

    from softcount.cli.named_columns import node_key
    from softcount.core.counts import ROOT
    from softcount.fitted.network_rows import explained_rows, shown_cells
    from softcount.report.answer_page import OURS, ExplainedRow
    from softcount.report.class_page import value_text
    from softcount.table.schema import apart, labels

    if of is None and fitted.target is None:
        raise DataError("the network was learned without a class. Say which node to explain: --of NODE")
    node = fitted.target if of is None else node_key(fitted, of, "--of")
    assert node is not None
    _, rows = open_rows(fitted, data, form, node)
    found = explained_rows(fitted, rows, node, against)
    count = len(found.chosen)
    for row in wanted:
        if row > count:
            raise DataError(f"there is no row {row}: the table has {count:,}. Rows are counted from 1.")
    names = labels(key for key in found.parts if key is not ROOT)
    ours = {name: apart(name, names.values()) for name in OURS}
    places = [row - 1 for row in wanted]
    table = _reasons(found, fitted.levels[node], names, ours)
    table = table.take(places) if wanted else table
    cells = shown_cells(fitted, rows, np.unique(places).astype(np.int64)) if wanted else {}
    few = [
        ExplainedRow(
            line, {names[key]: value_text(cell) for key, cell in cells[place].items() if key in names},
            probability=float(found.probability[place]), ours=ours,
        )
        for place, line in zip(places, table.to_pylist() if wanted else [], strict=True)
    ]  # fmt: skip
    return table, few


def _reasons(found: ExplainedLevels, levels: Sequence[Any], names: dict[Key, str], ours: dict[str, str]) -> pa.Table:
    """A line for each row, counted from 1: its level and the one beside it, and what every node adds to their odds."""
    import numpy as np
    import pyarrow as pa

    from softcount.core.counts import ROOT
    from softcount.report.answer_page import AGAINST, CLASS, PRIOR, ROW, TOTAL, cells_array

    count, cells = len(found.chosen), cells_array(levels)
    return pa.table(
        {
            ours[ROW]: pa.array(range(1, count + 1)),
            ours[CLASS]: cells.take(pa.array(found.chosen)),
            ours[AGAINST]: cells.take(pa.array(found.against)),
            **{ours[PRIOR] if key is ROOT else names[key]: own for key, own in found.parts.items()},
            ours[TOTAL]: sum(found.parts.values(), np.zeros(count)),
        }
    )
