"""Cells of every form that columns of numbers and times are written in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np

START = datetime(2023, 12, 20, 23, 30, 15)


def moments(write: Callable[[datetime], Any]) -> list[Any]:
    """Moments of two years, the last of February among them."""
    steps = np.random.default_rng(0).integers(0, 63_000_000, 38).tolist()
    return [write(START + timedelta(seconds=step)) for step in steps] + [write(datetime(2024, 2, 29, 12))] * 2


def amounts(write: Callable[[float], str]) -> list[str]:
    return [write(round(x, 2)) for x in np.random.default_rng(1).lognormal(6, 2, 40).tolist()]


def european(x: float) -> str:
    return f"{x:,.2f} \u20ac".translate({44: ".", 46: ","})


FORMS: dict[str, list[Any]] = {
    "iso": moments(lambda t: f"{t:%Y-%m-%d}"),
    "iso moment": moments(lambda t: f"{t:%Y-%m-%dT%H:%M:%S}.25"),
    "month first": moments(lambda t: f"{t:%m/%d/%Y}"),
    "day first, unpadded": moments(lambda t: f"{t.day}.{t.month}.{t:%Y}"),
    "short years": moments(lambda t: f"{t:%y}".join([f"{t:%d/%m/}", ""])),
    "named months": moments(lambda t: f"{t:%d %b %Y}"),
    "long months": moments(lambda t: f"{t:%B} {t.day}, {t:%Y}"),
    "half days": moments(lambda t: f"{t:%d/%m/%Y %I:%M %p}"),
    "quarters": moments(lambda t: f"{t:%Y}-Q{(t.month + 2) // 3}"),
    "zones": moments(lambda t: f"{t:%Y-%m-%dT%H:%M:%S}{'+02:30' if t.day % 2 else '-0500'}"),
    "clock": moments(lambda t: f"{t:%H:%M}"),
    "typed moments": moments(lambda t: t),
    "typed days": moments(lambda t: t.date()),
    "typed clock": moments(lambda t: t.time()),
    "typed durations": moments(lambda t: t - START),
    "durations": moments(lambda t: f"{(t - START).days} days {t:%H:%M:%S}"),
    "ISO durations": moments(lambda t: f"P{t.day}DT{t.hour}H{t.minute}M{t.second}.5S"),
    "dollars": amounts(lambda x: f"${x:,.2f}"),
    "below zero": amounts(lambda x: f"(${x:,.2f})" if x > 300 else f"${x:,.2f}"),
    "euros": amounts(european),
    "percent": amounts(lambda x: f"{x:.1f}%"),
    "kilos": amounts(lambda x: f"{x:.2f} kg"),
    "decimal commas": amounts(lambda x: f"{x:.2f}".replace(".", ",")),
}
