"""The reasons for the class of a row, column by column, and of a document, word by word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from softcount.cli.models import (
    class_value,
    is_hidden,
    is_network,
    load_any,
    node_key,
    say_prediction_notes,
    sequence_model,
)
from softcount.cli.options import InputFormat, SequenceForm
from softcount.cli.outputs import STANDARD, progress, put_answer, put_rows
from softcount.cli.read import open_like, open_rows, read_sequences
from softcount.core.counts import ROOT
from softcount.errors import DataError
from softcount.fitted.answers import labels_in
from softcount.fitted.characteristic_words import DocumentWords, explain_words, row_of
from softcount.fitted.explain import Explanation, explained
from softcount.fitted.fitted import Fitted
from softcount.fitted.network_rows import ExplainedLevels, explained_rows, shown_cells
from softcount.report.answers import (
    AGAINST,
    CLASS,
    FILE,
    OURS,
    PRIOR,
    PROBABILITY,
    ROW,
    TOTAL,
    WORDS,
    ExplainedRow,
    add_reasons,
    find_cells,
    make_array,
    name_ours,
    number_rows,
    reasons_table,
)
from softcount.report.classes import class_names
from softcount.report.page import Page, format_cell
from softcount.report.words import add_moved_words, begin_document, find_moved_words
from softcount.run.local import Threads
from softcount.sources.frames import ArrowSource
from softcount.table import Chunk, Chunks, Key, Table, document_at
from softcount.table.schema import apart, labels

if TYPE_CHECKING:
    from softcount.fitted.network import FittedNet


def explain_rows(
    model: str, data: str, rows: tuple[int, ...], asked: tuple[str | None, str | None], layout: SequenceForm,
    form: InputFormat, put: tuple[str | None, bool],
) -> None:  # fmt: skip
    """Explain every row or those named, of any kind of model; `asked` are a node and what to compare with."""
    of, against = asked
    states = sequence_model(model)
    if states is not None:
        if rows or of is not None:
            raise DataError(f"{model}: a model of sequences explains every step. Leave out --row and --of.")
        put_rows(explain_steps(states, data, layout, form, against), *put)
        return
    layout.refuse(model)
    fitted: Any = load_any(model)
    if is_network(fitted):
        explain_network(fitted, data, form, rows, asked, put)
    elif of is not None:
        raise DataError(f"{model}: no network, so its class alone is explained. Leave out --of.")
    else:
        explain_classes(fitted, data, form, rows, against, put)


def explain_classes(
    fitted: Fitted,
    data: str,
    form: InputFormat,
    rows: tuple[int, ...],
    against: str | None,
    put: tuple[str | None, bool],
) -> None:
    """What every column adds to the log-odds of a row's class, against another or the runner-up."""
    output, json_wanted = put
    with progress() as tell:
        table = open_like(fitted, data, form, tell)
        title = document_title(table, data)
        if rows or title is not None:
            reasons, few = some_rows(fitted, table, rows or (1,), against, title)
        else:
            reasons, few = every_row(fitted, table, against), []
    if few and output is None:
        documents = (explained_document(fitted, row) for row in few)
        put_answer(lambda: list(documents), lambda: explained_page(fitted, few), json_wanted)
    else:
        put_rows(reasons, output, json_wanted)
    say_prediction_notes(fitted, table, cells=not few)


def document_title(table: Table, data: str) -> str | None:
    """What to call the one document that DATA is; None where it is a table."""
    if not isinstance(table.source, ArrowSource):
        return None
    return "The document" if data == STANDARD else data


def explain_network(
    fitted: FittedNet,
    data: str,
    form: InputFormat,
    rows: tuple[int, ...],
    asked: tuple[str | None, str | None],
    put: tuple[str | None, bool],
) -> None:
    """What every node of a network adds to the log-odds of a node, against a level or the runner-up."""
    table, few = explained_lines(fitted, data, form, rows, *asked)
    output, json_wanted = put
    if not few or output is not None or json_wanted:
        put_rows(table, output, json_wanted)
        return
    page = Page()
    for row in few:
        add_reasons(page, row)
    put_answer(table.to_pylist, lambda: page, json_wanted)


def explained_page(fitted: Fitted, few: list[ExplainedRow]) -> Page:
    """What there is to say about a few rows, for a person."""
    names = class_names(fitted)
    called = dict(zip(map(str, fitted.names), names, strict=True))
    page = Page()
    for row in few:
        add_reasons(page, row, called, fitted.calibration is not None)
        for found, document in row.words:
            add_moved_words(page, found, document, names)
    return page


def explained_document(fitted: Fitted, row: ExplainedRow) -> dict[str, Any]:
    """A row's figures by column and, where the model reads text, its words and where they stand."""
    document = dict(row.line) | {row.ours[PROBABILITY]: row.probability}
    words = [find_moved_words(fitted, *pair) for pair in row.words]
    return document | {row.ours[WORDS]: words} if words else document


def chunks_with(fitted: Fitted, table: Table, rows: Iterable[int]) -> Chunks:
    """The chunks that hold the rows (counted from 1); every chunk where none are named."""
    wanted, kept, n_rows = set(rows), [], 0
    for chunk in fitted.chunks(table):
        n_rows += chunk.n_rows
        here = range(chunk.start + 1, chunk.start + chunk.n_rows + 1)
        if not wanted or not wanted.isdisjoint(here):
            kept.append(chunk)
    for row in sorted(wanted):
        if row > n_rows:
            raise DataError(f"there is no row {row}: the table has {n_rows:,}. Rows are counted from 1.")
    return Chunks(kept, n_rows)


def every_row(fitted: Fitted, table: Table, against: str | None) -> pa.Table:
    """A line of reasons for every row."""
    kept: Any = chunks_with(fitted, table, ())
    rows = number_rows(kept.chunks)
    why = explained(fitted, kept, _other(fitted, against))
    return _with_files(fitted, table, reasons_table(fitted, why, rows), rows)


def some_rows(
    fitted: Fitted, table: Table, rows: Sequence[int], against: str | None, title: str | None
) -> tuple[pa.Table, list[ExplainedRow]]:
    """A line of reasons for each of the rows, counted from 1, and all there is to tell about it."""
    other = _other(fitted, against)
    kept: Any = chunks_with(fitted, table, rows)
    single: Any = Chunks([row_of(fitted, kept, row - 1) for row in rows])
    why = explained(fitted, single, other)
    _refuse_itself(rows, why, against, title)
    reasons = _with_files(fitted, table, reasons_table(fitted, why, rows), rows)
    with Threads() as threads:
        likely = fitted.proba(single, threads)[range(len(rows)), why.chosen].tolist()
    found, ours = [], name_ours(fitted)
    for chunk, line, probability in zip(single.chunks, reasons.to_pylist(), likely, strict=True):
        words = _words(fitted, table, chunk, other)
        file = f" ({table.source.files[chunk.start]})" if table.source.files else ""
        named = title or f"Row {chunk.start + 1}{file}"
        found.append(ExplainedRow(line, _cells(fitted, chunk, words), named, probability, words, ours))
    return reasons, found


def _refuse_itself(rows: Sequence[int], why: Explanation, against: str | None, title: str | None) -> None:
    """Raise where a row is in the very class that it is to be compared with."""
    if against is None:
        return
    for row, same in zip(rows, why.chosen == why.against, strict=True):
        if same:
            raise DataError(
                f"{title or f'row {row}'} is in class {against!r} itself. "
                "Name another class with --against, or leave that out for the runner-up."
            )


def _with_files(fitted: Fitted, table: Table, reasons: pa.Table, rows: Sequence[int]) -> pa.Table:
    """The lines with the file of each row, where each row is a file."""
    files = table.source.files
    return reasons if not files else reasons.add_column(1, name_ours(fitted)[FILE], [[files[row - 1] for row in rows]])


def _words(fitted: Fitted, table: Table, chunk: Chunk, other: Any) -> list[tuple[DocumentWords, str | None]]:
    """The words of each column of text in a chunk's only row, and the document they are in."""
    found = explain_words(fitted, chunk, other) if fitted.schema.texts else []
    return [(part, document_at(table, part.key, chunk.start)) for part in found]


def _cells(fitted: Fitted, chunk: Chunk, words: list[tuple[DocumentWords, str | None]]) -> dict[str, str]:
    """What the row holds; a document is told by how it begins."""
    held, names = find_cells(fitted, [chunk], chunk.start + 1), labels_in(fitted)
    return {**held, **{names[part.key]: begin_document(text) for part, text in words}}


def _other(fitted: Fitted, against: str | None) -> Any:
    return None if against is None else class_value(fitted, against, "--against")


def explained_lines(
    fitted: FittedNet, data: str, form: InputFormat, wanted: Sequence[int], of: str | None, against: str | None
) -> tuple[pa.Table, list[ExplainedRow]]:
    """A line for each row, or each of those wanted, counted from 1: what every node adds to its log-odds.

    Of the rows wanted also what a page says of them.
    """
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
            line, {names[key]: format_cell(cell) for key, cell in cells[place].items() if key in names},
            probability=float(found.probability[place]), ours=ours,
        )
        for place, line in zip(places, table.to_pylist() if wanted else [], strict=True)
    ]  # fmt: skip
    return table, few


def _reasons(found: ExplainedLevels, levels: Sequence[Any], names: dict[Key, str], ours: dict[str, str]) -> pa.Table:
    """A line for each row, counted from 1: its level and the one beside it, and what every node adds to their odds."""
    count, cells = len(found.chosen), make_array(levels)
    return pa.table(
        {
            ours[ROW]: pa.array(range(1, count + 1)),
            ours[CLASS]: cells.take(pa.array(found.chosen)),
            ours[AGAINST]: cells.take(pa.array(found.against)),
            **{ours[PRIOR] if key is ROOT else names[key]: own for key, own in found.parts.items()},
            ours[TOTAL]: sum(found.parts.values(), np.zeros(count)),
        }
    )


def explain_steps(model: Any, data: str, layout: SequenceForm, form: InputFormat, against: str | None) -> pa.Table:
    """Why each step has its state; of a chain, how surprising each step is after those before it."""
    sequences = read_sequences(layout, data, form, column=None if is_hidden(model) else model.schema_.used[0].key)
    if not is_hidden(model):
        if against is not None:
            raise DataError("--against is for models with states or classes; a chain says what was likeliest.")
        found: pa.Table = model.explain(sequences)
        return found
    names = {str(name): name for name in model.states_.tolist()}
    if against is not None and against not in names:
        raise DataError(f"there is no state {against!r}. The states are: {', '.join(names)}.")
    found = model.explain(sequences, None if against is None else names[against])
    return found
