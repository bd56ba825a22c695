"""Answers of a model: distributions of columns, predictions of rows, and the reasons for them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from math import exp
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct, field

from softcount.core.counts import ROOT
from softcount.fitted.answers import labels_in
from softcount.fitted.classes import cells
from softcount.fitted.conditions import describe_given, encode_condition
from softcount.pictures.text import format_list, format_number, format_share
from softcount.report.page import Page, format_cell, key_text
from softcount.report.words import format_bar, format_signed
from softcount.table.cell_forms import is_plain, write_cell
from softcount.table.schema import apart, labels

if TYPE_CHECKING:
    from softcount.fitted.characteristic_words import DocumentWords
    from softcount.fitted.explain import Explanation
    from softcount.fitted.fitted import Fitted
    from softcount.fitted.network_answers import LikeliestLevels
    from softcount.table import Chunk, Key

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
LINE_LEVELS, JOINT_LINES = 3, 100
"""Categories in the line of a column (a page of one column has all), and combinations of several; JSON has all."""
ROWS_AT_ONCE = 10_000
CERTAIN = 1.0 - 1e-15


# -- distributions


def query_record(of: Any, given: Mapping[Any, Any], answer: Any, model: str | None = None) -> dict[str, Any]:
    """Return the answer about a column as data, about a list of columns together, or (None) about every column.

    A column has probabilities of categories, or mean, variance and quantiles. `model` is the kind that answered.
    """
    known = {"given": _given_record(given)}
    if isinstance(of, list):
        return {"of": of, **known, "joint": [{"levels": list(x.pop("level")), **x} for x in _answer_lines(answer)]}
    own = {"of": of, **known, **_distribution(answer)} if of is not None else known
    columns = {"columns": [{"of": key, **_distribution(each)} for key, each in answer.items()]} if of is None else {}
    return own | columns | ({} if model is None else {"model": model})


def _given_record(given: Mapping[Any, Any]) -> dict[str, Any]:
    return {key_text(key): encode_condition(value) for key, value in given.items()}


def _distribution(answer: Any) -> dict[str, Any]:
    if isinstance(answer, Mapping):
        return {"levels": _answer_lines(answer)}
    form = getattr(answer, "written", None)
    quantiles = [{"level": level, "value": write_cell(form, float(answer.quantile(level)))} for level in QUANTILES]
    return {"mean": write_cell(form, answer.mean), "variance": answer.variance, "quantiles": quantiles}


def _answer_lines(answer: Any) -> list[dict[str, Any]]:
    """Return the probabilities of categories, with standard errors if they are from samples."""
    errors = getattr(answer, "errors", None) or {}
    return [
        {"level": level, "probability": p} | ({"error": errors[level]} if errors else {}) for level, p in answer.items()
    ]


def query_page(of: Any, given: Mapping[Any, Any], answer: Any) -> Page:
    """Write the answer about a column, about a list of columns together, or (None) about every column in a line."""
    page = Page()
    several = of if isinstance(of, list) else None
    title = "Every column" if of is None else key_text(tuple(several or [of]))
    page.heading(f"{title}{_describe_given(given)}")
    if of is None:
        page.grid(("column", "answer", "nine of ten between"), [_answer_line(key, own) for key, own in answer.items()])
    elif not isinstance(answer, Mapping):
        figures = [(name, _format_figure(answer, name, value)) for name, value in find_figures(answer).items()]
        page.grid(("statistic", "value"), figures, right=("value",))
    else:
        ranked = sorted(_answer_lines(answer), key=lambda line: -line["probability"])
        heads = ("probability", *(("standard error",) if getattr(answer, "errors", None) is not None else ()))
        rows = []
        for line in ranked[: JOINT_LINES if several else None]:
            levels = line.pop("level")
            own = levels if isinstance(levels, tuple) else (levels,)
            rows.append((*map(str, own), *map(format_share, line.values())))
        names = ["value"] if several is None else [key_text(key) for key in several]
        page.grid((*names, *heads), rows, right=heads)
        page.rest(len(ranked) - len(rows), "combination", after="more (--json has all)")
    return page


def _answer_line(key: Any, answer: Any) -> tuple[str, str, str]:
    """Write the likeliest categories of a column, or its mean and the interval of nine in ten numbers."""
    if isinstance(answer, Mapping):
        ranked = sorted(answer.items(), key=lambda item: -item[1])
        shares = [f"{level}: {format_share(p)}" for level, p in ranked]
        return key_text(key), format_list(shares, LINE_LEVELS), ""
    figures = find_figures(answer)
    names = ("mean", "5% quantile", "95% quantile")
    mean, low, high = (_format_figure(answer, name, figures[name]) for name in names)
    return key_text(key), f"mean {mean}", f"{low} and {high}"


def _describe_given(given: Mapping[Any, Any]) -> str:
    known = ", ".join(f"{key_text(key)} {value}" for key, value in describe_given(given).items())
    return f", given {known}" if known else ""


def find_figures(answer: Any) -> dict[str, float]:
    spread = {"mean": float(answer.mean), "standard deviation": float(answer.variance) ** 0.5}
    return spread | {f"{level:.0%} quantile": float(answer.quantile(level)) for level in QUANTILES}


def _format_figure(answer: Any, name: str, value: float) -> str:
    """Format a figure as the cells of its column are written, a deviation in their units."""
    form: Any = getattr(answer, "written", None)
    if is_plain(form):
        return format_number(value, 6)
    return str(form.write_difference(value)) if name.startswith("standard") else str(form.write(value))


def likeliest_record(given: Mapping[Key, Any], found: LikeliestLevels) -> dict[str, Any]:
    levels = [{"node": key, "level": level} for key, level in found.levels.items()]
    return {"given": _given_record(given), "levels": levels, "log_probability": found.log_probability}


def likeliest_page(given: Mapping[Key, Any], found: LikeliestLevels) -> Page:
    page = Page()
    page.heading(f"The likeliest levels{_describe_given(given)}")
    page.grid(("node", "level"), [(key_text(key), str(level)) for key, level in found.levels.items()])
    page.line(f"log-probability {found.log_probability:,.4f} (of these levels and of what is given)")
    return page


# -- tables of predictions


def prediction_table(
    names: Sequence[Any],
    proba: np.ndarray,
    chosen: np.ndarray,
    scores: np.ndarray | None = None,
    files: Sequence[str] = (),
) -> pa.Table:
    """Make a line for each row: its class, the probability of each, and its anomaly score if there is one.

    If rows are files, their names come first.
    """
    columns = [make_array(names).take(pa.array(chosen, pa.int64())), *(pa.array(column) for column in proba.T)]
    headings = ["predicted", *(f"p({name})" for name in labels(names).values())]
    if scores is not None:
        columns, headings = [*columns, pa.array(scores)], [*headings, "anomaly"]
    if files:
        columns, headings = [pa.array(files, pa.string()), *columns], ["file", *headings]
    return pa.Table.from_arrays(columns, names=headings)


def make_array(cells: Any) -> pa.Array:
    """Make an Arrow array; of text if the cells are of several kinds, or whole numbers beyond 64 bits."""
    try:
        return pa.array(cells)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())


def write_csv(table: pa.Table, sink: IO[bytes]) -> None:
    """Write UTF-8 with one header line and quotes only around cells that need them; a missing cell is empty.

    A cell that begins like a formula is left as it is: the file is for programs, and changing data is worse.
    """

    def put(rows: Iterable[Sequence[object]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        sink.write(text.getvalue().encode("utf-8", "surrogatepass"))

    put([table.column_names])
    for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
        put(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    sink.flush()


# -- reasons for predictions

ROW, FILE, CLASS, AGAINST, PRIOR, TOTAL = "(row)", "(file)", "(class)", "(against)", "(prior)", "(total)"
PROBABILITY, WORDS = "(probability)", "(words)"
OURS = (ROW, FILE, CLASS, AGAINST, PRIOR, TOTAL, PROBABILITY, WORDS)
"""The entries of a line of reasons that are no columns."""


def name_ours(names: Mapping[Key, str]) -> dict[str, str]:
    """Return our entries under names that no column has."""
    taken = set(names.values())
    return {name: apart(name, taken) for name in OURS}


def reasons_table(
    found: Explanation, names: Mapping[Key, str], levels: Sequence[Any], rows: Sequence[int],
    files: Sequence[str] = (),
) -> pa.Table:  # fmt: skip
    """Make a line for each row: its number, its class, the class it is compared with, every log-odds, and their sum.

    `rows` are counted from 1; `files` has the file of each row of the table, if each row is a file.
    """
    classes, ours = make_array(levels), name_ours(names)
    lines: dict[str, Any] = {ours[ROW]: pa.array(rows, pa.int64())}
    if files:
        lines[ours[FILE]] = [files[row - 1] for row in rows]
    lines[ours[CLASS]] = classes.take(pa.array(found.chosen, pa.int64()))
    lines[ours[AGAINST]] = classes.take(pa.array(found.against, pa.int64()))
    odds = {ours[PRIOR] if key is ROOT else names[key]: pa.array(part) for key, part in found.parts.items()}
    total = np.sum(list(found.parts.values()), axis=0) if found.parts else np.zeros(len(rows))
    return pa.table({**lines, **odds, ours[TOTAL]: pa.array(total)})


def find_cells(fitted: Fitted, chunk: Chunk) -> dict[str, str]:
    """Return the cells of the first row of a chunk, by column or block of columns, as a person reads them."""
    names, held = labels_in(fitted), cells(fitted, chunk).items()
    parts = {key: value if isinstance(value, tuple) else (value,) for key, value in held}
    return {names[key]: ", ".join(format_cell(part, 6) for part in own) for key, own in parts.items()}


class ExplainedRow(Struct, frozen=True):
    """A row: its log-odds, its cells, its name, the probability of its class, and the words of its documents.

    `ours` are the names of the entries of its line that are not columns. `target` is the column of the class, if it has
    a name.
    """

    line: Mapping[str, Any]
    cells: Mapping[str, str]
    title: str | None = None
    probability: float | None = None
    words: Sequence[tuple[DocumentWords, str | None]] = ()
    ours: Mapping[str, str] = field(default_factory=lambda: dict(zip(OURS, OURS, strict=True)))
    target: str | None = None


def add_reasons(
    page: Page, row: ExplainedRow, called: Mapping[str, str] | None = None, calibrated: bool = False
) -> None:
    """Add the reasons for a row's class, the weightiest first, and the probability of the class if it is given."""
    line, ours = row.line, row.ours
    chosen, against = ((called or {}).get(str(line[ours[name]]), line[ours[name]]) for name in (CLASS, AGAINST))
    compared = f" rather than {against}" if chosen != against else ", compared with no other class"
    chosen = chosen if row.target is None else f"{row.target} = {chosen}"
    page.heading(f"{row.title or f'Row {line[ours[ROW]]}'}: {chosen}{compared}")
    total = line[ours[TOTAL]]
    if row.probability is not None:
        how = " (calibrated; log-odds are not calibrated)" if calibrated else ""
        # A probability that only rounding has made 1 is not quite that: 0 nats are no comparison, infinite ones exact.
        most = CERTAIN if 0 < total < float("inf") else 1.0
        page.line(f"probability of {chosen}: {format_share(min(row.probability, most))}{how}")
    others = {ours[name] for name in (ROW, FILE, CLASS, AGAINST, TOTAL)}
    odds = {name: value for name, value in line.items() if name not in others}
    most = max((abs(value) for value in odds.values()), default=0.0)
    lines = [
        (name, row.cells.get(name, ""), format_signed(value), format_bar(value, most))
        for name, value in sorted(odds.items(), key=lambda item: -abs(item[1]))
    ]
    lines.append((ours[TOTAL], "", format_signed(total), format_odds(total)))
    page.grid(("column", "value", "log-odds", ""), lines, right=("log-odds",))


def format_odds(log_odds: float) -> str:
    """Write log-odds as odds.

    >>> format_odds(0.0), format_odds(2.302585093)
    ('odds 1 to 1', 'odds 10 to 1')
    """
    if abs(log_odds) > 30:
        return "as good as certain" if log_odds > 0 else "as good as impossible"
    ratio = format_number(exp(abs(log_odds)), 3)
    return f"odds {ratio} to 1" if log_odds >= 0 else f"odds 1 to {ratio}"
