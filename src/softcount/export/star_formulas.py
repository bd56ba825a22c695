"""Averaged stars as formulas: tables of pairs of columns, and the logarithm of a mean over parents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount.classify.star_tables import StarTables
from softcount.export.formulas import (
    Apply,
    Choose,
    Code,
    CombinedCode,
    Compare,
    Formula,
    LevelCode,
    LookUp,
    Once,
    Whole,
    formula,
    largest,
    log,
    total,
)  # fmt: skip
from softcount.families.setting import CLAMPED, IMPOSSIBLE
from softcount.records import dataclass


@dataclass(frozen=True, eq=False)
class StarsMean(Whole):
    """The logarithm of the mean over the stars of all columns; `codes` are those of parents."""

    stars: StarTables
    codes: tuple[Code, ...]

    def _written_out(self) -> Formula:
        return star_mean(star_sums(self.stars, self.codes), formula(self.stars.shares))


def star_sums(stars: StarTables, codes: Sequence[Code]) -> list[Formula]:
    """The log-probability of class and row in the star of every column, impossible if that column is missing."""
    ends = [*stars.terms.offsets.tolist(), stars.terms.width]
    cells = [slice(ends[place], ends[place + 1]) for place in range(len(codes))]
    found: list[Formula] = []
    for parent, own in enumerate(cells):
        terms: list[Formula] = [_alone(codes[parent], stars.shares[:, None] + stars.alone[:, own])]
        for child, others in enumerate(cells):
            if child < parent:
                terms.append(_pair((codes[child], codes[parent]), stars.given[:, others, own]))
            elif child > parent:
                terms.append(_pair((codes[parent], codes[child]), stars.given[:, others, own].transpose(0, 2, 1)))
        found.append(Once(total(terms)))
    return found


def _alone(code: Code, table: np.ndarray) -> Formula:
    """A table of a parent's cells, impossible where it is not known."""
    return LookUp(code, _bordered(code, table, CLAMPED))


def _bordered(code: Code, table: np.ndarray, unknown: float) -> np.ndarray:
    """A (classes x cells) table as it is looked up, with a row for what is not known, and one for levels never seen."""
    row = np.full((1, len(table)), unknown)
    return np.vstack([row, table.T, *([row] if isinstance(code, LevelCode) else [])])


def _pair(codes: tuple[Code, Code], table: np.ndarray) -> Formula:
    """A table of the cells of two columns, nothing where one is not known."""
    classes, *sizes = table.shape
    whole = np.zeros((sizes[0] + 1, sizes[1] + 1, classes))
    whole[1:, 1:] = table.transpose(1, 2, 0)
    return LookUp(CombinedCode(codes, (sizes[0] + 1, sizes[1] + 1)), whole.reshape(-1, classes))


def star_mean(stars: Sequence[Formula], alone: Formula) -> Formula:
    """The logarithm of the mean over the stars that are possible; what is known without a parent where none is."""
    if not stars:
        return alone
    top = Once(largest(stars))
    sums = total([Apply("exp", (star - top,)) for star in stars])
    known = [Choose((Compare("<", star, formula(IMPOSSIBLE)),), formula(0.0), formula(1.0)) for star in stars]
    there = Once(total(known))
    mean = top + log(sums) - log(largest([there, formula(1.0)]))
    return Choose((Compare("=", there, formula(0.0)),), alone, mean)
