"""softcount explain: contributions of columns to the class of a row, and of words to that of a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from softcount.cli.models import (
    class_value,
    find_node,
    is_hidden,
    is_network,
    is_of_sequences,
    open_model,
    print_prediction_notes,
)
from softcount.cli.options import Request
from softcount.cli.outputs import STANDARD, check_output, progress, write_answer, write_rows
from softcount.cli.read import open_like, open_rows, read_sequences
from softcount.errors import DataError
from softcount.fitted.answers import labels_in
from softcount.fitted.characteristic_words import explain_words, row_of
from softcount.fitted.fitted import Fitted
from softcount.fitted.network_rows import shown_cells
from softcount.report import answers
from softcount.report.answers import ExplainedRow, add_reasons, find_cells, reasons_table
from softcount.report.classes import class_names
from softcount.report.page import Page, format_cell
from softcount.report.words import add_moved_words, begin_document, find_moved_words
from softcount.run.local import Threads
from softcount.sources.frames import ArrowSource
from softcount.table import Chunks, Table, document_at

if TYPE_CHECKING:
    from softcount.fitted.network import FittedNet


def explain(request: Request) -> None:
    request.form = replace(request.form, default_unit="lines" if request.row else "document")
    check_output(request.output, request.model, request.data)
    model = open_model(request.model, sequences=True)
    if is_of_sequences(model):
        if request.row or request.of is not None:
            raise DataError(f"{request.model}: a model of sequences explains every step. Leave out --row and --of.")
        write_rows(explain_steps(model, request), request)
        return
    request.layout.refuse(request.model)
    if is_network(model):
        explain_network(model, request)
    elif request.of is not None:
        raise DataError(f"{request.model}: not a network, so only its class is explained. Leave out --of.")
    else:
        explain_classes(model, request)


def explain_classes(fitted: Fitted, request: Request) -> None:
    """Explain all rows as a table, or a few of them as a page with their words."""
    title: str | None = None
    few: list[ExplainedRow] = []
    other = None if request.against is None else class_value(fitted, request.against, "--against")
    with progress() as tell:
        table = open_like(fitted, request.data, request.form, tell)
        if isinstance(table.source, ArrowSource):  # DATA is one document
            title = "The document" if request.data == STANDARD else request.data
        if request.row or title is not None:
            reasons, few = explain_few(fitted, table, request.row or (1,), other, title)
        else:
            kept: Any = chunks_with(fitted, table, ())
            rows = [row for x in kept.chunks for row in range(x.start + 1, x.start + x.n_rows + 1)]
            found = fitted.explain(kept, other)
            reasons = reasons_table(found, labels_in(fitted), fitted.names, rows, table.source.files)
    if few and request.output is None:
        write_answer(request.json, few_record, few_page, fitted, few)
    else:
        write_rows(reasons, request)
    print_prediction_notes(fitted, table, cells=not few)


def few_page(fitted: Fitted, few: list[ExplainedRow]) -> Page:
    names = class_names(fitted)
    called = dict(zip(map(str, fitted.names), names, strict=True))
    page = Page()
    for row in few:
        add_reasons(page, row, called, fitted.calibration is not None)
        for found, document in row.words:
            add_moved_words(page, found, document, names)
    return page


def few_record(fitted: Fitted, few: list[ExplainedRow]) -> list[dict[str, Any]]:
    """The figures of rows by column and, if the model reads text, their words and where they are."""
    found = []
    for row in few:
        document = dict(row.line) | {row.ours[answers.PROBABILITY]: row.probability}
        if row.words:
            document[row.ours[answers.WORDS]] = [find_moved_words(fitted, *pair) for pair in row.words]
        found.append(document)
    return found


def chunks_with(fitted: Fitted, table: Table, rows: Iterable[int]) -> Chunks:
    """The chunks that hold the rows, counted from 1; every chunk if no rows are given."""
    wanted, kept, n_rows = set(rows), [], 0
    for chunk in fitted.chunks(table):
        n_rows += chunk.n_rows
        here = range(chunk.start + 1, chunk.start + chunk.n_rows + 1)
        if not wanted or not wanted.isdisjoint(here):
            kept.append(chunk)
    _refuse_beyond(sorted(wanted), n_rows)
    return Chunks(kept, n_rows)


def _refuse_beyond(rows: Iterable[int], n_rows: int) -> None:
    for row in rows:
        if row > n_rows:
            raise DataError(f"there is no row {row}: the table has {n_rows:,}. Rows are counted from 1.")


def explain_few(
    fitted: Fitted, table: Table, rows: Sequence[int], other: Any, title: str | None
) -> tuple[pa.Table, list[ExplainedRow]]:
    """A line of reasons for each of the rows, counted from 1, and the row with its cells and words."""
    kept: Any = chunks_with(fitted, table, rows)
    single: Any = Chunks([row_of(fitted, kept, row - 1) for row in rows])
    why = fitted.explain(single, other)
    for row in (row for row, same in zip(rows, why.chosen == why.against, strict=True) if same and other is not None):
        raise DataError(
            f"{title or f'row {row}'} is in class {str(other)!r} itself. "
            "Name another class with --against, or leave that out for the runner-up."
        )
    names = labels_in(fitted)
    reasons = reasons_table(why, names, fitted.names, rows, table.source.files)
    with Threads() as threads:
        likely = fitted.proba(single, threads)[range(len(rows)), why.chosen].tolist()
    found, ours = [], answers.name_ours(names)
    for chunk, line, probability in zip(single.chunks, reasons.to_pylist(), likely, strict=True):
        parts = explain_words(fitted, chunk, other) if fitted.schema.texts else []
        words = [(part, document_at(table, part.key, chunk.start)) for part in parts]
        cells = find_cells(fitted, chunk)
        cells |= {names[part.key]: begin_document(text) for part, text in words}
        file = f" ({table.source.files[chunk.start]})" if table.source.files else ""
        found.append(ExplainedRow(line, cells, title or f"Row {chunk.start + 1}{file}", probability, words, ours))
    return reasons, found


def explain_network(fitted: FittedNet, request: Request) -> None:
    """The contribution of every node to the log-odds of one node: of all rows a table, of a few a page."""
    node = find_node(fitted, request.of, "explain")
    _, rows = open_rows(fitted, request.data, request.form, node)
    found = fitted.explain(rows, request.against, of=node)
    count = len(found.chosen)
    _refuse_beyond(request.row, count)
    names = labels_in(fitted)
    table, ours = reasons_table(found, names, fitted.levels[node], range(1, count + 1)), answers.name_ours(names)
    places = [row - 1 for row in request.row]
    table = table.take(places) if places else table
    if not places or request.output is not None or request.json:
        write_rows(table, request)
        return
    page, cells = Page(), shown_cells(fitted, rows, np.unique(places).astype(np.int64))
    for place, line in zip(places, table.to_pylist(), strict=True):
        shown = {names[key]: format_cell(cell) for key, cell in cells[place].items() if key in names}
        add_reasons(page, ExplainedRow(line, shown, probability=float(found.probability[place]), ours=ours))
    write_answer(False, table.to_pylist, lambda: page)


def explain_steps(model: Any, request: Request) -> pa.Table:
    """The reasons for the state of each step; for a chain, how surprising each step is after those before it."""
    hidden, against = is_hidden(model), request.against
    sequences = read_sequences(request, column=None if hidden else model.schema_.used[0].key)
    if not hidden and against is not None:
        raise DataError("--against is for models with states or classes; a chain shows the most probable symbol.")
    names = {str(name): name for name in model.states_.tolist()} if hidden else {}
    if against is not None and against not in names:
        raise DataError(f"there is no state {against!r}. The states are: {', '.join(names)}.")
    found: pa.Table = model.explain(sequences, names.get(against)) if hidden else model.explain(sequences)
    return found
