"""Durations as ISO 8601 writes them: PT1H30M, P2D, P1DT6H."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from softcount.records import dataclass
from softcount.table.cell_forms import DAY, CellForm, Read, time_spread

UNITS = {"W": 7 * DAY, "D": DAY, "H": 3600.0, "M": 60.0, "S": 1.0}
_duration = re.compile(
    r"(?P<sign>-?)P(?=[0-9T])(?:(?P<W>[0-9]+)W)?(?:(?P<D>[0-9]+)D)?"
    r"(?:T(?=[0-9])(?:(?P<H>[0-9]+)H)?(?:(?P<M>[0-9]+)M)?(?:(?P<S>[0-9]+(?:\.[0-9]+)?)S)?)?"
)


@dataclass(frozen=True)
class DurationForm(CellForm):
    """Weeks, days, hours, minutes and seconds, as seconds; years and months, which differ in length, are not read.

    The smallest part that is written is `unit`, and of seconds `digits` decimals.

    >>> form = DurationForm()
    >>> form.read(["PT1H30M", "P2D", "P1Y"])[0].tolist(), form.written(5400.0)
    ([5400.0, 172800.0, nan], 'PT1H30M')
    """

    name = "duration"
    of_time = True
    digits: int = 0
    unit: str = "S"

    @property
    def spelt(self) -> bool:
        return True

    @property
    def said(self) -> str:
        return "durations, as seconds"

    def read(self, cells: Sequence[str | None]) -> Read:
        found = [None if cell is None else _duration.fullmatch(cell.strip()) for cell in cells]
        values = np.array([np.nan if match is None else _seconds(match) for match in found], dtype=np.float64)
        there = np.array([cell is not None for cell in cells], dtype=bool)
        return values, there & np.isnan(values)

    def written(self, value: float) -> str:
        if not np.isfinite(value):
            return str(value)
        finest = UNITS.get(self.unit, 1.0) * 10.0**-self.digits
        days, left = divmod(round(round(abs(value) / finest) * finest, self.digits), DAY)
        hours, left = divmod(left, 3600.0)
        minutes, seconds = divmod(left, 60.0)
        last = f"{seconds:.{self.digits}f}"
        clock = "".join(f"{part:.0f}{unit}" for part, unit in ((hours, "H"), (minutes, "M")) if part)
        clock += f"{last}S" if float(last) else ""
        date = f"{days:.0f}D" if days else ""
        return f"{'-' if value < 0 and (date or clock) else ''}P{date}{f'T{clock}' if clock else '' if date else 'T0S'}"

    def spread(self, value: float) -> str:
        return time_spread(value)


def duration_form(cells: Sequence[str]) -> DurationForm | None:
    """The form of cells that are all durations; None where one is not."""
    matches = [_duration.fullmatch(cell) for cell in cells]
    seconds = [match["S"] or "" for match in matches if match is not None]
    if len(seconds) < len(cells):
        return None
    digits = min(max(len(part.partition(".")[2]) for part in seconds), 6)
    units = [unit for unit in UNITS if unit != "W" and any(match is not None and match[unit] for match in matches)]
    return DurationForm(digits, units[-1] if units else "D")


def _seconds(match: re.Match[str]) -> float:
    total = sum(float(match[unit]) * worth for unit, worth in UNITS.items() if match[unit] is not None)
    return -total if match["sign"] else total
