"""softcount explain: the reasons for a row's class, column by column, and for a document's, word by word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from softcount.cli import options
from softcount.cli.sequence_options import SequenceForm, sequence_form
from softcount.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from softcount.cli.data_input import InputFormat
    from softcount.fitted.characteristic_words import DocumentWords
    from softcount.fitted.explain import Explanation
    from softcount.fitted.fitted import Fitted
    from softcount.fitted.network import FittedNet
    from softcount.report.answer_page import ExplainedRow
    from softcount.report.page import Page
    from softcount.table import Chunk, Chunks, Table

EPILOG = """\b
Examples:
  softcount explain adult.sc new.csv --row 17
  softcount explain adult.sc new.csv --row 17 --against '>50K'
  softcount explain adult.sc new.csv -o reasons.csv
  softcount explain spam.sc message.txt
  softcount explain spam.sc mail/ --row 3
  softcount explain visits.sc events.csv --sequence customer --order time -o why.csv

The figures are log-odds, in nats, of the predicted class against the runner-up (or the class of --against).
They add up exactly: (prior) plus every column gives (total). A missing cell gives 0. Rows are counted from 1.
Without --row, every row is explained, one line of CSV each; with --against, rows of that class itself get 0.

Of hidden states every step is explained: what the steps before, each column, and the steps after say for its state
against the runner-up. Of a Markov chain: how surprising each step is after those before it.

Of a network the class is explained, or the node of --of: what every node adds to what those before
it, parents first, have said.

A column of text is explained by its words too, whose log-odds add up to the column's, and the document is shown
with them marked. Where text is all that MODEL reads, a file (or standard input) is one document, unless its first
line names the model's column or --no-header is given: then it is a table. With --row or --lines each line is a
document, as for `softcount predict`."""


@click.command("explain", epilog=EPILOG, short_help="Say why a row got its class, column by column.")
@options.model_argument
@options.data_argument
@click.option(
    "--row", "rows", multiple=True, type=click.IntRange(1), metavar="N", help="A row to explain. May be repeated."
)
@click.option("--of", "of", metavar="NODE", help="The node of a network to explain.  [default: its class]")
@click.option("--against", metavar="CLASS", help="The class to compare with.  [default: the runner-up]")
@sequence_form
@options.format_options(document=True)
@options.output_option("Write the CSV here instead of to standard output.")
@options.json_option
def command(  # noqa: PLR0913 - what can be asked for
    model: str,
    data: str,
    rows: tuple[int, ...],
    of: str | None,
    against: str | None,
    layout: SequenceForm,
    form: InputFormat,
    output: str | None,
    json_wanted: bool,
) -> None:
    """Say why each row of DATA, or the document that it is, got its class from MODEL."""
    from softcount.cli import library_calls as library
    from softcount.cli import sequence_calls
    from softcount.cli.outputs import check_output, put_rows

    form = replace(form, default_unit="lines" if rows else "document")
    check_output(output, model, data)
    states = sequence_calls.sequence_model(model)
    if states is not None:
        if rows or of is not None:
            raise DataError(f"{model}: a model of sequences explains every step. Leave out --row and --of.")
        put_rows(sequence_calls.explained(states, data, layout, form, against), output, json_wanted)
        return
    layout.refuse(model)
    fitted: Any = library.load_any(model)
    put = output, json_wanted
    if library.is_network(fitted):
        explain_network(fitted, data, form, rows, (of, against), put)
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
    from softcount.cli import library_calls as library
    from softcount.cli.named_columns import say_prediction_notes
    from softcount.cli.outputs import progress, put_answer, put_rows

    output, json_wanted = put
    with progress() as tell:
        table = library.open_like(fitted, data, form, tell)
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
    from softcount.cli.outputs import STANDARD
    from softcount.sources.frames import ArrowSource

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
    from softcount.cli.network_calls import explained_lines
    from softcount.cli.outputs import put_answer, put_rows
    from softcount.report.answer_page import add_reasons
    from softcount.report.page import Page

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
    from softcount.report.answer_page import add_reasons
    from softcount.report.class_page import class_names
    from softcount.report.page import Page
    from softcount.report.word_page import add_moved

    called = dict(zip(map(str, fitted.names), class_names(fitted), strict=True))
    page = Page()
    for row in few:
        add_reasons(page, row, called, fitted.calibration is not None)
        for found, document in row.words:
            add_moved(page, fitted, found, document)
    return page


def explained_document(fitted: Fitted, row: ExplainedRow) -> dict[str, Any]:
    """A row's figures by column and, where the model reads text, its words and where they stand."""
    from softcount.report.answer_page import PROBABILITY, WORDS
    from softcount.report.word_page import moved_document

    document = dict(row.line) | {row.ours[PROBABILITY]: row.probability}
    words = [moved_document(fitted, *pair) for pair in row.words]
    return document | {row.ours[WORDS]: words} if words else document


def chunks_with(fitted: Fitted, table: Table, rows: Iterable[int]) -> Chunks:
    """The chunks that hold the rows (counted from 1); every chunk where none are named."""
    from softcount.table import Chunks

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
    from softcount.fitted.explain import explained
    from softcount.report.answer_page import reasons_table, rows_of

    kept: Any = chunks_with(fitted, table, ())
    rows = rows_of(kept.chunks)
    why = explained(fitted, kept, _other(fitted, against))
    return _with_files(fitted, table, reasons_table(fitted, why, rows), rows)


def some_rows(
    fitted: Fitted, table: Table, rows: Sequence[int], against: str | None, title: str | None
) -> tuple[pa.Table, list[ExplainedRow]]:
    """A line of reasons for each of the rows, counted from 1, and all there is to tell about it."""
    from softcount.fitted.characteristic_words import row_of
    from softcount.fitted.explain import explained
    from softcount.report.answer_page import ExplainedRow, ours_in, reasons_table
    from softcount.run.local import Threads
    from softcount.table import Chunks

    other = _other(fitted, against)
    kept: Any = chunks_with(fitted, table, rows)
    single: Any = Chunks([row_of(fitted, kept, row - 1) for row in rows])
    why = explained(fitted, single, other)
    _refuse_itself(rows, why, against, title)
    reasons = _with_files(fitted, table, reasons_table(fitted, why, rows), rows)
    with Threads() as threads:
        likely = fitted.proba(single, threads)[range(len(rows)), why.chosen].tolist()
    found, ours = [], ours_in(fitted)
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
    from softcount.report.answer_page import FILE, ours_in

    files = table.source.files
    return reasons if not files else reasons.add_column(1, ours_in(fitted)[FILE], [[files[row - 1] for row in rows]])


def _words(fitted: Fitted, table: Table, chunk: Chunk, other: Any) -> list[tuple[DocumentWords, str | None]]:
    """The words of each column of text in a chunk's only row, and the document they are in."""
    from softcount.fitted.characteristic_words import explain_words
    from softcount.table import document_at

    found = explain_words(fitted, chunk, other) if fitted.schema.texts else []
    return [(part, document_at(table, part.key, chunk.start)) for part in found]


def _cells(fitted: Fitted, chunk: Chunk, words: list[tuple[DocumentWords, str | None]]) -> dict[str, str]:
    """What the row holds; a document is told by how it begins."""
    from softcount.fitted.answers import labels_in
    from softcount.report.answer_page import cells_of
    from softcount.report.word_page import beginning

    held, names = cells_of(fitted, [chunk], chunk.start + 1), labels_in(fitted)
    return {**held, **{names[part.key]: beginning(text) for part, text in words}}


def _other(fitted: Fitted, against: str | None) -> Any:
    from softcount.cli.named_columns import class_value

    return None if against is None else class_value(fitted, against, "--against")
