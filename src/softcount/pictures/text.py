"""Numbers, names and curves as text, without any character that a terminal could obey."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import ceil, floor, inf, isfinite, log10

CELL_LIMIT = 64
"""Characters of a cell in a table; longer text is cut with an ellipsis."""


def printable(value: object) -> str:
    r"""Return the value as text in which every control character is escaped.

    Column names and categories come from files: a terminal would obey an escape sequence in one, and a newline would
    break the table. Line, paragraph and direction marks are escaped too.

    >>> print(printable("red\x1b[31m"), printable("a\nb"))
    red\x1b[31m a\nb
    """
    return escape_controls(str(value), lambda char: char.encode("unicode_escape", "surrogatepass").decode("ascii"))


def escape_controls(text: str, escape: Callable[[str], str]) -> str:
    """Apply `escape` to each character that is neither visible nor a space."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or unicodedata.category(char) == "Zs" else escape(char) for char in text)


def cell_width(text: str) -> int:
    """Count the terminal columns of a text: two for a wide character, none for a combining accent.

    >>> cell_width("abc"), cell_width("日本"), cell_width("e\\u0301")
    (3, 4, 1)
    """
    if text.isascii():
        return len(text)
    wide = (2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text if not unicodedata.combining(char))
    return sum(wide)


def clip(text: str, columns: int) -> str:
    """Cut the text, with an ellipsis, to this many terminal columns.

    >>> clip("abcdef", 4), clip("日本語", 4), clip("日本", 4)
    ('abc…', '日…', '日本')
    """
    if cell_width(text) <= columns:
        return text
    text = text[:columns]
    while text and cell_width(text) > columns - 1:
        text = text[:-1]
    return text + "…"


def shorten(text: str, longest: int = CELL_LIMIT) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def format_number(value: float | None, digits: int = 4) -> str:
    """Format a number with a few significant digits; "-" for None and NaN.

    >>> format_number(1234567.0), format_number(0.00001234), format_number(2.5), format_number(None)
    ('1,234,567', '1.234e-05', '2.5', '-')
    """
    if value is None or math.isnan(value):
        return "-"
    value = value or 0  # not -0
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.{digits}g}"


def format_share(part: float | None) -> str:
    """Format a fraction as a percentage that never rounds something to nothing or nearly all to all.

    >>> format_share(0.1234), format_share(0.00001), format_share(0.0), format_share(0.99999), format_share(None)
    ('12.3 %', '< 0.1 %', '0 %', '> 99.9 %', '-')
    """
    if part is None or math.isnan(part):
        return "-"
    if part in (0.0, 1.0):
        return f"{part:.0%}".replace("%", " %")
    if part < 0.0005:
        return "< 0.1 %"
    return "> 99.9 %" if part > 0.9995 else f"{100 * part:.1f} %"


def format_loss(loss: float) -> str:
    """Format a log-loss with four decimals, so that those below each other are compared at a glance.

    >>> format_loss(0.489), format_loss(0.000121)
    ('0.4890', '0.00012')
    """
    return f"{loss:.4f}" if 0.001 <= loss < 1000 else format_number(loss, 2)


def format_count(n: float, one: str, many: str = "") -> str:
    """Format a number with its noun.

    >>> format_count(1, "row"), format_count(1500, "row"), format_count(2, "class", "classes")
    ('1 row', '1,500 rows', '2 classes')
    """
    amount = f"{n:,.0f}" if float(n).is_integer() else f"{n:,.2f}"
    return f"{amount} {one if n == 1 else many or one + 's'}"


def format_list(names: Sequence[str], most: int = 6) -> str:
    """Join the first few names.

    >>> format_list(["a", "b"]), format_list(list("abcdefgh"), most=3)
    ('a, b', 'a, b, c and 5 more')
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def wrap_list(start: str, names: Sequence[str], width: int) -> list[str]:
    """Write names after a start, separated by commas, in lines that break between names.

    >>> wrap_list("a -> ", ["bb", "cc", "dd"], 12)
    ['a -> bb, cc,', '    dd']
    """
    lines = [start]
    for place, name in enumerate(names):
        piece = name if place == len(names) - 1 else f"{name}, "
        if place and cell_width(lines[-1] + piece.rstrip()) > width:
            lines[-1] = lines[-1].rstrip()
            lines.append("    ")
        lines[-1] += piece
    return lines


# -- ticks of an axis


def nice_ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Choose about this many round numbers between two; only the lower one if there is nothing between.

    >>> nice_ticks(0, 1, 5), nice_ticks(-3.2, 8.9)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [-2.0, 0.0, 2.0, 4.0, 6.0, 8.0])
    """
    span = high - low
    if not (isfinite(span) and span > 0) or span / about == 0:
        return [low]
    rough = span / about
    power = 10.0 ** floor(log10(rough))
    step = next((power * part for part in (1.0, 2.0, 5.0, 10.0) if power * part >= rough * 0.8), 0.0)
    if not (step > 0 and low + step > low and isfinite(low / step)):  # closer together than floats can represent
        return [low]
    first = ceil(low / step - 1e-6)
    count = floor(high / step + 1e-6) - first
    return [round((first + i) * step, 12 - floor(log10(step))) + 0.0 for i in range(int(count) + 1)] or [low]


def tick_text(value: float) -> str:
    """Format the number of a tick.

    >>> tick_text(0.2), tick_text(1500000.0), tick_text(-3.0)
    ('0.2', '1.5e+06', '-3')
    """
    return f"{value:.6g}" if abs(value) < 1e5 or value == 0 else f"{value:.4g}"


def tick_texts(ticks: Sequence[float]) -> dict[float, str]:
    """Format the ticks of an axis with as many digits as distinguish them.

    >>> tick_texts([-12563.95, -12563.9]), tick_texts([0.0, 0.5])
    ({-12563.95: '-12563.95', -12563.9: '-12563.9'}, {0.0: '0', 0.5: '0.5'})
    """
    found, ordered = {tick: tick_text(tick) for tick in ticks}, sorted(set(ticks))
    near = min((right - left for left, right in pairwise(ordered)), default=inf) / 20
    for digits in range(7, 17):
        if all(abs(float(text) - tick) <= near for tick, text in found.items()):
            break
        found = {tick: f"{tick:.{digits}g}" for tick in ticks}
    return found


# -- curves for a terminal

EIGHTHS = " ▁▂▃▄▅▆▇█"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
STEP, LEFT = 8, 8
"""Characters from one place of a lettered axis to the next, and before it."""


def spark(values: Iterable[float], top: float | None = None) -> str:
    """Draw numbers of 0 or more as one line of blocks; the largest (or `top`) is a whole block.

    >>> spark([0, 1, 2, 3, 4])
    ' ▂▄▆█'
    """
    return "".join(EIGHTHS[height] for height in _eighths(values, 1, top))


def area(values: Iterable[float], lines: int = 8) -> list[str]:
    """Draw numbers of 0 or more as a filled curve of several lines.

    >>> print("\\n".join(area([0, 1, 3, 4, 2], lines=2)))
      ▄█
     ▄███
    """
    filled = _eighths(values, lines)
    return [
        "".join(EIGHTHS[min(max(height - 8 * below, 0), 8)] for height in filled).rstrip()
        for below in range(lines - 1, -1, -1)
    ]


def _eighths(values: Iterable[float], lines: int, top: float | None = None) -> list[int]:
    """Heights in eighths of a line; what is not finite has the height 0."""
    heights = [value if isfinite(value) else 0.0 for value in map(float, values)]
    most = max(heights, default=0.0) if top is None else top
    return [round(min(max(height / most, 0.0), 1.0) * 8 * lines) if most > 0 else 0 for height in heights]


def axis(low: float, high: float, width: int) -> list[str]:
    """Draw a line with a mark at round numbers, and the numbers below it.

    >>> print("\\n".join(axis(0, 10, 31)))
    ┬─────┬─────┬─────┬─────┬─────┬
    0     2     4     6     8    10
    """
    marks, numbers, free = ["─"] * width, [" "] * width, 0
    for tick in nice_ticks(low, high, max(2, width // 7)):
        place = round((tick - low) / (high - low) * (width - 1)) if high > low else 0
        text = tick_text(tick)
        start = max(0, min(place - len(text) // 2, width - len(text)))
        if start < free:
            continue
        marks[place] = "┬"
        numbers[start : start + len(text)] = text
        free = start + len(text) + 1
    return ["".join(marks), "".join(numbers).rstrip()]


def lettered_curves(
    heights: Iterable[Iterable[float]], marks: Sequence[str], ends: tuple[float, float], lines: int = 12
) -> list[str]:
    """Draw each row of `heights` with its letter; values beyond an end stand there, NaN nowhere.

    Curves that meet stand side by side.

    >>> print("\\n".join(lettered_curves([[0.0, 0.5, 1.0], [1.0, 0.5, 0.5]], ["10", "20", "50"], (0, 1), 3)))
           1 ┤  b               a
             ┤          ab      b
           0 ┤  a
             └──────────────────────────
                10      20      50
    """
    low, high = ends
    grid = [[" "] * (STEP * len(marks) + 2) for _ in range(lines)]
    for letter, curve in zip(LETTERS, heights, strict=False):
        for place, height in enumerate(curve):
            if isfinite(height):
                row = grid[lines - 1 - round(min(max((height - low) / (high - low), 0.0), 1.0) * (lines - 1))]
                start = STEP * place + 2
                free = [at for at in range(start, min(start + STEP, len(row))) if row[at] == " "]
                if free:
                    row[free[0]] = letter
    edges = {0: tick_text(float(f"{high:.3g}")), lines - 1: tick_text(float(f"{low:.3g}"))}
    drawn = [f"{edges.get(at, ''):>{LEFT}} ┤{''.join(row)}".rstrip() for at, row in enumerate(grid)]
    below = "".join(f"{mark:<{STEP}}" for mark in marks).rstrip()
    return [*drawn, f"{'':>{LEFT}} └{'─' * (STEP * len(marks) + 2)}", f"{'':>{LEFT + 2}}  {below}"]
