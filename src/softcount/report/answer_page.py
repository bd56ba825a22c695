"""What a model answers and why: predictions, distributions of a column, log-odds that add up; CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import exp
from typing import IO, TYPE_CHECKING, Any

from msgspec import Struct, field

from softcount.report.class_page import value_text
from softcount.report.page import Page, key_text
from softcount.report.plain_text import number, share

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from softcount.fitted.characteristic_words import DocumentWords
    from softcount.fitted.explain import Explanation
    from softcount.fitted.fitted import Fitted
    from softcount.table import Chunk

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def prediction_table(
    names: Sequence[Any],
    proba: np.ndarray,
    chosen: np.ndarray,
    scores: np.ndarray | None = None,
    files: Sequence[str] = (),
) -> pa.Table:
    """One line per row: the class at the place chosen, the probability of each, and the anomaly score if there is one.

    Where rows are files, their names come first.
    """
    import pyarrow as pa

    from softcount.table.schema import labels

    columns = [cells_array(names).take(pa.array(chosen, pa.int64())), *(pa.array(column) for column in proba.T)]
    headings = ["predicted", *(f"p({name})" for name in labels(names).values())]
    if scores is not None:
        columns, headings = [*columns, pa.array(scores)], [*headings, "anomaly"]
    if files:
        columns, headings = [pa.array(files, pa.string()), *columns], ["file", *headings]
    return pa.Table.from_arrays(columns, names=headings)


def cells_array(cells: Any) -> pa.Array:
    """Cells as Arrow holds them; as text where they are of several kinds, or whole numbers beyond 64 bits."""
    import pyarrow as pa

    try:
        return pa.array(cells)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())


def query_page(of: object, given: Mapping[Any, Any], answer: Any) -> Page:
    """A distribution for a person, the likeliest level first."""
    page = Page()
    page.heading(f"{key_text(of)}{given_words(given)}")
    if isinstance(answer, Mapping):
        ranked = sorted(answer.items(), key=lambda item: -item[1])
        heads, errors = answer_errors(answer)
        lines = [(str(level), share(p), *errors(level)) for level, p in ranked]
        page.grid(("level", "probability", *heads), lines, right=("probability", *heads))
    else:
        rows = [(name, _figure(answer, name, value)) for name, value in figures(answer).items()]
        page.grid(("figure", "value"), rows, right=("value",))
    return page


def given_words(given: Mapping[Any, str]) -> str:
    """What is given, at the end of a heading."""
    known = ", ".join(f"{key_text(key)} {value}" for key, value in given.items())
    return f", given {known}" if known else ""


def answer_errors(answer: Any) -> tuple[tuple[str, ...], Callable[[Any], tuple[str, ...]]]:
    """A heading and, by level, the standard error of an answer that is from samples; nothing of one that is exact."""
    errors = getattr(answer, "errors", None)
    if errors is None:
        return (), lambda level: ()
    return ("standard error",), lambda level: (share(errors[level]),)


def figures(answer: Any) -> dict[str, float]:
    """Mean, standard deviation and quantiles of a numeric answer."""
    spread = {"mean": float(answer.mean), "standard deviation": float(answer.variance) ** 0.5}
    return spread | {f"{level:.0%} quantile": float(answer.quantile(level)) for level in QUANTILES}


def _figure(answer: Any, name: str, value: float) -> str:
    """A figure of a column as its cells are written, a deviation in their units."""
    from softcount.table.cell_forms import is_plain

    form: Any = getattr(answer, "written", None)
    if is_plain(form):
        return number(value, 6)
    return str(form.spread(value)) if name.startswith("standard") else str(form.written(value))


def query_document(of: object, given: Mapping[Any, Any], answer: Any) -> dict[str, Any]:
    """The same as data."""
    return {"of": of, "given": given_document(given), **_answer_document(answer)}


def given_document(given: Mapping[Any, Any]) -> dict[str, Any]:
    """What is given of each column, as data."""
    from softcount.fitted.conditions import given_data

    return {key_text(key): value for key, value in given_data(given).items()}


def _answer_document(answer: Any) -> dict[str, Any]:
    if isinstance(answer, Mapping):
        errors = getattr(answer, "errors", {})
        told = [{"level": x, "probability": p} | ({"error": errors[x]} if errors else {}) for x, p in answer.items()]
        return {"levels": told}
    from softcount.table.cell_forms import as_cell

    form = getattr(answer, "written", None)
    quantiles = [{"level": level, "value": as_cell(form, float(answer.quantile(level)))} for level in QUANTILES]
    return {"mean": as_cell(form, answer.mean), "variance": answer.variance, "quantiles": quantiles}


MOST_LEVELS = 3
"""Levels that the line of a column names; a page of one column has all."""


def answers_page(given: Mapping[Any, str], answers: Mapping[Any, Any]) -> Page:
    """Every column in a line: its likeliest levels, or its middle and what nine of ten numbers lie between."""
    page = Page()
    page.heading(f"Every column{given_words(given)}")
    lines = [(key_text(key), *_answer_words(answer)) for key, answer in answers.items()]
    page.grid(("column", "answer", "nine of ten between"), lines)
    return page


def _answer_words(answer: Any) -> tuple[str, str]:
    if not isinstance(answer, Mapping):
        ends = (_figure(answer, "quantile", float(answer.quantile(level))) for level in (QUANTILES[0], QUANTILES[-1]))
        return f"mean {_figure(answer, 'mean', float(answer.mean))}", " and ".join(ends)
    ranked = sorted(answer.items(), key=lambda item: -item[1])[:MOST_LEVELS]
    more = f" and {len(answer) - MOST_LEVELS} more" if len(answer) > MOST_LEVELS else ""
    return ", ".join(f"{level}: {share(p)}" for level, p in ranked) + more, ""


def answers_document(given: Mapping[Any, Any], answers: Mapping[Any, Any]) -> dict[str, Any]:
    """The same as data."""
    told = [{"of": key, **_answer_document(answer)} for key, answer in answers.items()]
    return {"given": given_document(given), "columns": told}


ROWS_AT_ONCE = 10_000


def write_csv(table: pa.Table, sink: IO[bytes]) -> None:
    """UTF-8, one header line, quotes only where a cell needs them; a missing cell is empty.

    A cell that begins like a formula is left as it is: the file is for programs, and changing data is worse.
    """
    sink.write(csv_lines([table.column_names]))
    for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
        sink.write(csv_lines(zip(*(column.to_pylist() for column in batch.columns), strict=True)))
    sink.flush()


def csv_lines(rows: Iterator[Sequence[object]] | list[list[str]]) -> bytes:
    r"""The rows as CSV text.

    >>> csv_lines([["a", 'b"c', "d,e"]])
    b'a,"b""c","d,e"\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "surrogatepass")


def write_parquet(table: pa.Table, sink: IO[bytes]) -> None:
    """The rows as Parquet."""
    import pyarrow.parquet as pq

    pq.write_table(table, sink)


ROW, CLASS, AGAINST, PRIOR, TOTAL = "(row)", "(class)", "(against)", "(prior)", "(total)"
"""What a line of reasons holds besides a figure for each column."""
FILE = "(file)"
"""Where each row is a file, its name."""
PROBABILITY, WORDS = "(probability)", "(words)"
"""What a row that was asked for has besides, as data."""
OURS = (ROW, FILE, CLASS, AGAINST, PRIOR, TOTAL, PROBABILITY, WORDS)


def ours_in(fitted: Fitted) -> dict[str, str]:
    """What each of these is called beside the columns of a model."""
    from softcount.fitted.answers import name_apart

    return {name: name_apart(fitted, name) for name in OURS}


MOST_CERTAIN = 1.0 - 1e-15
CellTexts = Mapping[str, str]


def reasons_table(fitted: Fitted, explanation: Explanation, rows: Sequence[int]) -> pa.Table:
    """One line per row: its number, its class, the class it is compared with, every figure, and their sum."""
    import pyarrow as pa

    names, ours = cells_array(fitted.names), ours_in(fitted)
    lines: dict[str, Any] = {ours[ROW]: pa.array(rows, pa.int64())}
    lines[ours[CLASS]] = names.take(pa.array(explanation.chosen, pa.int64()))
    lines[ours[AGAINST]] = names.take(pa.array(explanation.against, pa.int64()))
    figures = {name: pa.array(part) for name, part in explanation.named(fitted).items()}
    return pa.table({**lines, **figures, ours[TOTAL]: pa.array(explanation.total)})


def rows_of(chunks: Iterable[Chunk]) -> list[int]:
    """The numbers of the rows, counted from 1."""
    return [row for chunk in chunks for row in range(chunk.start + 1, chunk.start + chunk.n_rows + 1)]


def cells_of(fitted: Fitted, chunks: Iterable[Chunk], row: int) -> CellTexts:
    """What the row holds, by column or block of columns, as a person reads it."""
    from softcount.fitted.answers import labels_in
    from softcount.fitted.classes import cells

    chunk = next(chunk for chunk in chunks if chunk.start < row <= chunk.start + chunk.n_rows)
    held = cells(fitted, chunk, row - chunk.start - 1)
    names, parts = labels_in(fitted), {k: value if isinstance(value, tuple) else (value,) for k, value in held.items()}
    return {names[key]: ", ".join(value_text(part, 6) for part in own) for key, own in parts.items()}


class ExplainedRow(Struct, frozen=True):
    """One row: its figures, what its cells hold, its name, how probable its class is, and its documents' words.

    `ours` is what its line calls what is no column.
    """

    line: Mapping[str, Any]
    cells: CellTexts
    title: str | None = None
    probability: float | None = None
    words: Sequence[tuple[DocumentWords, str | None]] = ()
    ours: Mapping[str, str] = field(default_factory=lambda: dict(zip(OURS, OURS, strict=True)))


def add_reasons(
    page: Page, row: ExplainedRow, called: Mapping[str, str] | None = None, calibrated: bool = False
) -> None:
    """The reasons for one row's class, the weightiest first, and how probable the class is where that is given."""
    line, ours = row.line, row.ours
    both = (line[ours[CLASS]], line[ours[AGAINST]])
    chosen, against = ((called or {}).get(str(name), name) for name in both)
    compared = f" rather than {against}" if chosen != against else ", which nothing is compared with"
    page.heading(f"{row.title or f'Row {line[ours[ROW]]}'}: {chosen}{compared}")
    if row.probability is not None:
        how = " (calibrated, which log-odds are not)" if calibrated else ""
        # A probability that only rounding has made 1 is not quite that: 0 nats are no comparison, infinite ones exact.
        most = MOST_CERTAIN if 0 < line[ours[TOTAL]] < float("inf") else 1.0
        page.line(f"probability of {chosen}: {share(min(row.probability, most))}{how}")
    page.grid(("column", "value", "log-odds", ""), _ranked(line, row.cells, ours), right=("log-odds",))


def _ranked(line: Mapping[str, Any], held: CellTexts, ours: Mapping[str, str]) -> list[tuple[str, ...]]:
    beside = {ours[name] for name in (ROW, FILE, CLASS, AGAINST, TOTAL)}
    figures = {name: value for name, value in line.items() if name not in beside}
    most = max((abs(value) for value in figures.values()), default=0.0)
    ranked = sorted(figures.items(), key=lambda item: -abs(item[1]))
    drawn = [(name, held.get(name, ""), signed(value), bar(value, most)) for name, value in ranked]
    total = line[ours[TOTAL]]
    return [*drawn, (ours[TOTAL], "", signed(total), odds(total))]


def signed(value: float) -> str:
    """A figure with its sign; nothing is plainly 0.

    >>> signed(2134.56), signed(-0.2), signed(0.0)
    ('+2,134.56', '-0.20', '0')
    """
    return "0" if value == 0 else f"{value:+,.2f}"


def bar(value: float, most: float, width: int = 20) -> str:
    """A bar whose length is the figure's share of the largest.

    >>> bar(1.0, 2.0, width=4), bar(-2.0, 2.0, width=4)
    ('++', '----')
    """
    length = round(width * abs(value) / most) if 0 < most < float("inf") else 0
    return ("+" if value > 0 else "-") * length


def odds(log_odds: float) -> str:
    """Log-odds as people say odds.

    >>> odds(0.0), odds(2.302585093)
    ('odds 1 to 1', 'odds 10 to 1')
    """
    if abs(log_odds) > 30:
        return "as good as certain" if log_odds > 0 else "as good as impossible"
    ratio = number(exp(abs(log_odds)), 3)
    return f"odds {ratio} to 1" if log_odds >= 0 else f"odds 1 to {ratio}"
