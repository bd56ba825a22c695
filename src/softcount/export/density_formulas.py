"""The closed forms that families give of their densities, as formulas of cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from softcount.export.block_formulas import block_formula
from softcount.export.formulas import (
    Cell,
    Choose,
    Code,
    CombinedCode,
    Compare,
    Formula,
    IntervalCode,
    LevelCode,
    LookUp,
    Missing,
    WordsCode,
    clamped,
    formula,
    log,
    log1p,
    log_sum,
    there,
    total,
)  # fmt: skip
from softcount.families.setting import ClosedForm
from softcount.table.schema import Key

ENDLESS = 1e300
"""Degrees of freedom from which Student's t is normal to the last digit."""
SERIES = (1 / 3, 1 / 5, 1 / 7, 1 / 9, 1 / 11, 1 / 13, 1 / 15)

Sizes = tuple[int, ...]


def column_formula(form: ClosedForm, keys: tuple[Key, ...], sizes: Sizes) -> Formula | None:
    """What columns add in every group, nothing where they are missing; None where the form is not known here.

    `sizes` are how many levels each has.
    """
    several = SEVERAL.get(form["form"])
    if several is not None:
        return several(form, keys, sizes)
    single = SINGLE.get(form["form"])
    if single is None or len(keys) != 1:
        return None
    cell = Cell(keys[0])
    found = single(form, log(cell) if form.get("of") == "log" else cell)
    return None if found is None else Choose((Missing(keys[0]),), formula(0.0), found)


def _normal(form: ClosedForm, x: Formula) -> Formula:
    z = (x - formula(form["mean"])) / formula(form["deviation"])
    return formula(-np.log(form["deviation"])) - z * z * 0.5


def _student(form: ClosedForm, x: Formula) -> Formula:
    z = (x - formula(form["mean"])) / formula(form["deviation"])
    freedom: np.ndarray = np.minimum(form["freedom"], ENDLESS)
    return formula(form["top"]) - log1p(z * z / freedom) * (0.5 * (freedom + 1.0))


def _line(form: ClosedForm, x: Formula) -> Formula:
    return x * formula(form["slope"]) + formula(form["start"])


def _square(form: ClosedForm, x: Formula) -> Formula:
    moved = (x - formula(form["anchor"])) * formula(form["scale"])
    start, slope, bend = map(formula, form["weights"].T)
    return (moved * bend + slope) * moved + start if form["weights"][:, 2].any() else moved * slope + start


def _gamma(form: ClosedForm, x: Formula) -> Formula:
    """x / mean - 1 - log(x / mean) by a series where that is little (`numerics.shapes.excess`)."""
    mean = formula(form["mean"])
    apart = (x - mean) / mean
    s = apart / (apart + 2.0)
    square, rest = s * s, formula(SERIES[-1])
    for term in SERIES[-2::-1]:
        rest = square * rest + term
    near = apart * s - s * square * rest * 2.0
    is_near = (Compare("<", apart, formula(0.125)), Compare("<", formula(-0.125), apart))
    return formula(form["top"]) - Choose(is_near, near, apart - log(x / mean)) * formula(form["shape"])


def _parts(form: ClosedForm, x: Formula) -> Formula:
    with np.errstate(divide="ignore"):
        shares = np.log(form["share"]).T
    both = zip(form["mean"].T, form["deviation"].T, shares, strict=True)
    return log_sum([_normal({"mean": mean, "deviation": spread}, x) + share for mean, spread, share in both])


def _spike(form: ClosedForm, x: Formula) -> Formula | None:
    inner = form["inner"]
    make = SINGLE.get(inner["form"])
    beside = None if make is None else make(inner, log(x) if inner.get("of") == "log" else x)
    if beside is None:
        return None
    return Choose((Compare("=", x, formula(form["at"])),), formula(form["on"]), beside + formula(form["off"]))


def _steps(form: ClosedForm, x: Formula) -> Formula | None:
    if not isinstance(x, Cell):
        return None
    edges, heights = form["edges"], form["heights"]
    # The last cell holds its upper edge too.
    code = IntervalCode(x.key, np.append(edges[:-1], np.nextafter(edges[-1], np.inf)))
    inside = LookUp(code, clamped(np.concatenate([np.zeros((1, len(heights))), heights.T])))
    below = log1p((formula(edges[0]) - x) / formula(form["reach"])) * 2.0
    above = log1p((x - formula(edges[-1])) / formula(form["reach"])) * 2.0
    outside = Choose((Compare("<", formula(edges[-1]), x),), inside - above, inside)
    return Choose((Compare("<", x, formula(edges[0])),), inside - below, outside)


SINGLE: dict[str, Callable[[ClosedForm, Formula], Formula | None]] = {
    "normal": _normal, "student": _student, "line": _line, "square": _square, "gamma": _gamma, "parts": _parts,
    "spike": _spike, "steps": _steps,
}  # fmt: skip
"""By form of a single number, what it adds where it is not missing."""


# -- levels, and several columns


def _levels(form: ClosedForm, keys: tuple[Key, ...], sizes: Sizes) -> Formula:
    return LookUp(LevelCode(keys[0], sizes[0]), clamped(form["table"].T))


def _joint(form: ClosedForm, keys: tuple[Key, ...], sizes: Sizes) -> Formula:
    codes: tuple[Code, ...] = tuple(LevelCode(key, size) for key, size in zip(keys, sizes, strict=True))
    return LookUp(CombinedCode(codes, tuple(size + 1 for size in form["shape"])), clamped(form["table"].T))


def _sum(form: ClosedForm, keys: tuple[Key, ...], sizes: Sizes) -> Formula:
    each = zip(keys, form["slopes"].T, strict=True)
    return total([Choose((Missing(key),), formula(0.0), Cell(key) * slope) for key, slope in each])


def _trials(form: ClosedForm, keys: tuple[Key, ...], sizes: Sizes) -> Formula:
    hits, trials = Cell(keys[0]), Cell(keys[1])
    found = (trials - hits) * formula(form["failure"]) + hits * formula(form["success"])
    return Choose(there(keys), found, formula(0.0))


def _words(form: ClosedForm, keys: tuple[Key, ...], sizes: Sizes) -> Formula:
    start, table = form["weights"][:, 0], form["weights"][:, 1:].T
    found = LookUp(WordsCode(keys[0], "once" if form["once"] else "times"), clamped(table)) + formula(start)
    return Choose((Missing(keys[0]),), formula(0.0), found)


def _block(form: ClosedForm, keys: tuple[Key, ...], sizes: Sizes) -> Formula:
    return block_formula(form, keys, [Cell(key) for key in keys])


SEVERAL: dict[str, Callable[[ClosedForm, tuple[Key, ...], Sizes], Formula]] = {
    "levels": _levels, "joint": _joint, "sum": _sum, "trials": _trials, "block": _block,
    "words": _words,
}  # fmt: skip
"""By form of levels and of several columns, what they add."""


def squared_distances(centres: np.ndarray, keys: Sequence[Any]) -> Formula:
    """Minus the squared distance of a row from every centre."""
    offs = [Cell(key) - centre for key, centre in zip(keys, centres.T, strict=True)]
    return formula(0.0) - total([off * off for off in offs])


def products(centres: np.ndarray, keys: Sequence[Any]) -> Formula:
    """A row times every centre."""
    return total([Cell(key) * centre for key, centre in zip(keys, centres.T, strict=True)])
