"""Why a row got its class: log-odds, column by column, that add up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp
from typing import TYPE_CHECKING, Any

from softcount.report.answer_page import name_array
from softcount.report.page import Page
from softcount.report.plain_text import number, share

if TYPE_CHECKING:
    import pyarrow as pa

    from softcount.fitted.answers import Explanation
    from softcount.fitted.fitted_model import Fitted
    from softcount.table import Chunk

ROW, CLASS, AGAINST, PRIOR, TOTAL = "(row)", "(class)", "(against)", "(prior)", "(total)"
"""What a line of reasons holds besides a figure for each column."""
FILE = "(file)"
"""Where each row is a file, its name."""
PROBABILITY, WORDS = "(probability)", "(words)"
"""What a row that was asked for has besides, as data."""

MOST_CERTAIN = 1.0 - 1e-15
Cells = Mapping[str, str]


def reasons_table(fitted: Fitted, explanation: Explanation, rows: Sequence[int]) -> pa.Table:
    """One line per row: its number, its class, the class it is compared with, every figure, and their sum."""
    import pyarrow as pa

    names = name_array(fitted)
    lines: dict[str, Any] = {ROW: pa.array(rows, pa.int64())}
    lines[CLASS] = names.take(pa.array(explanation.chosen, pa.int64()))
    lines[AGAINST] = names.take(pa.array(explanation.against, pa.int64()))
    figures = {name: pa.array(part) for name, part in explanation.parts.items()}
    return pa.table({**lines, **figures, TOTAL: pa.array(explanation.total)})


def rows_of(chunks: Iterable[Chunk]) -> list[int]:
    """The numbers of the rows, counted from 1."""
    return [row for chunk in chunks for row in range(chunk.start + 1, chunk.start + chunk.n_rows + 1)]


def cells_of(fitted: Fitted, chunks: Iterable[Chunk], row: int) -> Cells:
    """What the row holds, by column or block of columns, as a person reads it."""
    from softcount.fitted.classes import cells

    chunk = next(chunk for chunk in chunks if chunk.start < row <= chunk.start + chunk.n_rows)
    held = cells(fitted, chunk, row - chunk.start - 1)
    return {
        name: ", ".join(map(_said, value if isinstance(value, tuple) else (value,))) for name, value in held.items()
    }


def _said(value: Any) -> str:
    if value is None:
        return "missing"
    return number(value, 6) if isinstance(value, float) else str(value)


def add_reasons(
    page: Page,
    line: Mapping[str, Any],
    held: Cells,
    called: Mapping[str, str] | None = None,
    title: str | None = None,
    probability: float | None = None,
    calibrated: bool = False,
) -> None:
    """The reasons for one row's class, the weightiest first, and how probable the class is where that is given."""
    chosen, against = ((called or {}).get(str(line[key]), line[key]) for key in (CLASS, AGAINST))
    compared = f" rather than {against}" if chosen != against else ", which nothing is compared with"
    page.heading(f"{title or f'Row {line[ROW]}'}: {chosen}{compared}")
    if probability is not None:
        how = " (calibrated, which log-odds are not)" if calibrated else ""
        page.line(f"probability of {chosen}: {share(_stated(probability, line[TOTAL]))}{how}")
    page.grid(("column", "value", "log-odds", ""), _ranked(line, held), right=("log-odds",))


def _stated(probability: float, total: float) -> float:
    """A probability that only rounding has made 1 is not quite that: 0 nats are no comparison, infinite ones exact."""
    return min(probability, MOST_CERTAIN) if 0 < total < float("inf") else probability


def _ranked(line: Mapping[str, Any], held: Cells) -> list[tuple[str, ...]]:
    figures = {name: value for name, value in line.items() if name not in (ROW, FILE, CLASS, AGAINST, TOTAL)}
    most = max((abs(value) for value in figures.values()), default=0.0)
    ranked = sorted(figures.items(), key=lambda item: -abs(item[1]))
    drawn = [(name, held.get(name, ""), signed(value), bar(value, most)) for name, value in ranked]
    return [*drawn, (TOTAL, "", signed(line[TOTAL]), odds(line[TOTAL]))]


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
