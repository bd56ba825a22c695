"""Scores of the ensemble's members as formulas over the cells of a row."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct

from softcount.classify.encode import LARGEST, Binning, EncodedColumns, NumberScale
from softcount.classify.features import Terms
from softcount.core import formulas as fm
from softcount.core.formulas import Formula
from softcount.families.setting import IMPOSSIBLE
from softcount.table.schema import Key


def column_code(columns: EncodedColumns, column: int, cuts: Binning) -> fm.Code:
    """Return the code of a column: its interval, or its level."""
    if column < columns.numbers:  # an interval holds its upper edge
        return fm.IntervalCode(columns.keys[column], np.nextafter(cuts.edges[column], np.inf))
    return fm.LevelCode(columns.keys[column], cuts.sizes[column])


def look_up_terms(columns: EncodedColumns, cuts: Binning, terms: Terms, table: np.ndarray) -> list[Formula]:
    """Return a look-up for every term; the first row of the table is for unknown cells."""
    found: list[Formula] = []
    for term, first in zip(terms.columns, terms.offsets.tolist(), strict=True):
        sizes = [cuts.sizes[column] for column in term]
        own = table[first : first + int(np.prod(sizes))].reshape(*sizes, table.shape[1])
        found.append(look_up(tuple(column_code(columns, column, cuts) for column in term), own, table[0]))
    return found


def if_known(columns: EncodedColumns, place: int, share: np.ndarray) -> Formula:
    """Return `share` if the column or text at this place is known, else 0."""
    if columns.numbers <= place < len(columns.keys):
        code = fm.LevelCode(columns.keys[place], columns.sizes[place - columns.numbers])
        return look_up((code,), np.tile(share, (code.size, 1)), np.zeros_like(share))
    return fm.unless_missing((*columns.keys, *columns.texts)[place], fm.formula(share[0]))


def look_up(codes: tuple[fm.Code, ...], table: np.ndarray, unknown: np.ndarray) -> Formula:
    """Return a look-up in a (cells of each column x classes) table.

    `unknown` is for missing cells and unseen categories.
    """
    sizes = tuple(size + 1 for size in table.shape[:-1])
    whole = np.broadcast_to(unknown, (*sizes, len(unknown))).copy()
    whole[(slice(1, None),) * len(codes)] = table
    if len(codes) > 1:
        return fm.LookUp(fm.CombinedCode(codes, sizes), whole.reshape(-1, len(unknown)))
    return fm.LookUp(codes[0], np.vstack([whole, unknown]) if isinstance(codes[0], fm.LevelCode) else whole)


def standardise(scale: NumberScale, columns: EncodedColumns, most: float = LARGEST) -> dict[Key, Formula]:
    """Return numbers, or their logarithms, in standard deviations from the mean, at most `most` on either side."""
    found: dict[Key, Formula] = {}
    for place, column in enumerate(scale.columns.tolist()):
        floor, key = float(scale.floor[place]), columns.keys[column]
        sign = float(np.sign(floor))
        value = fm.log(fm.largest([fm.Cell(key) * sign, fm.formula(abs(floor))])) * sign if floor else fm.Cell(key)
        found[key] = fm.clip((value - fm.formula(scale.middle[place])) / fm.formula(scale.spread[place]), most)
    return found


class AodeMean(fm.Whole, Struct, frozen=True, eq=False):
    """The logarithm of the mean over the parents of AODE, by log-probabilities as in `classify.members.Aode`."""

    codes: tuple[fm.Code, ...]  # of the parents
    terms: Terms
    shares: np.ndarray
    alone: np.ndarray
    given: np.ndarray

    @cached_property
    def out(self) -> Formula:
        """The logarithm of the mean over the parents that are known; the shares of the classes if none is.

        Each parent has the joint log-probability of class and row, which is impossible if the parent is missing.
        """
        if not self.codes:
            return fm.formula(self.shares)
        ends = [*self.terms.offsets.tolist(), self.terms.width]
        cells = [slice(ends[place], ends[place + 1]) for place in range(len(self.codes))]
        stars: list[Formula] = []
        impossible, nothing = np.full(len(self.shares), fm.CLAMPED), np.zeros(len(self.shares))
        for parent, (code, own) in enumerate(zip(self.codes, cells, strict=True)):
            sums = [look_up((code,), (self.shares[:, None] + self.alone[:, own]).T, impossible)]
            for child, others in enumerate(cells):
                table = self.given[:, others, own]
                if child < parent:
                    sums.append(look_up((self.codes[child], code), table.transpose(1, 2, 0), nothing))
                elif child > parent:
                    sums.append(look_up((code, self.codes[child]), table.transpose(2, 1, 0), nothing))
            stars.append(fm.Once(fm.total(sums)))
        top = fm.Once(fm.largest(stars))
        mean = fm.total([fm.Apply("exp", (star - top,)) for star in stars])
        known = [
            fm.Choose((fm.Compare("<", star, fm.formula(IMPOSSIBLE)),), fm.formula(0.0), fm.formula(1.0))
            for star in stars
        ]
        there = fm.Once(fm.total(known))
        score = top + fm.log(mean) - fm.log(fm.largest([there, fm.formula(1.0)]))
        return fm.Choose((fm.Compare("=", there, fm.formula(0.0)),), fm.formula(self.shares), score)
