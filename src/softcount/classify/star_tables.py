"""Averaged one-dependence stars (AODE): for every column a star in which all others hang on it and the class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from softcount.classify.number_sums import StarNormals
from softcount.classify.pair_counts import PairCounts
from softcount.classify.terms import Terms
from softcount.numerics.logspace import log_sum_exp, times_log
from softcount.records import dataclass

LEAST_WEIGHT = 1e-6
"""Of a star whose parent tells nothing of the class, where one that tells a nat has 1."""


@dataclass(frozen=True, slots=True, eq=False)
class StarTables:
    """`shares` (classes), `alone` (classes x cells) and `given` (classes x cells x cells of the parent), as logarithms.

    Cells that nothing is known of say nothing, and a column that is missing is nobody's parent. Where there are
    `normals`, numbers are parents by their interval and children by their density.
    """

    terms: Terms
    shares: np.ndarray
    alone: np.ndarray
    given: np.ndarray
    normals: StarNormals | None = None

    @classmethod
    def estimated(cls, counts: PairCounts, sizes: np.ndarray, concentration: float = 1.0) -> StarTables:
        """Shares with so much weight imagined in every distribution, spread evenly over its cells.

        `sizes` is the weight of the rows of each class.
        """
        terms, starts = counts.terms, counts.starts
        if not len(starts):
            none = np.zeros((len(sizes), 1))
            return cls(terms, _shares(sizes), none, none[:, :, None])
        widths = np.diff([*starts, terms.width])
        even = np.concatenate([[0.0], np.repeat(concentration / widths, widths)])
        column = np.concatenate([[0], np.repeat(np.arange(len(starts)), widths)])
        own = np.diagonal(counts.counts, axis1=1, axis2=2)
        known = np.add.reduceat(own, starts, axis=1)[:, column]
        pairs = counts.known()[:, :, column]  # rows that hold a cell, and anything of the other's column
        with np.errstate(divide="ignore"):
            alone = np.log(own + even) - np.log(known + concentration)
            given = np.log(counts.counts + even) - np.log(pairs + concentration)
        for array in (alone, given):
            array[..., 0] = 0.0
        given[:, 0] = 0.0
        for start, width in zip(starts.tolist(), widths.tolist(), strict=True):
            given[:, start : start + width, start : start + width] = 0.0  # a column says nothing of itself
        return cls(terms, _shares(sizes), alone, given.transpose(0, 2, 1))

    def weighed(self, weights: np.ndarray) -> StarTables:
        """The same with a weight for every star, which is that of its parent's cells."""
        each = np.log(np.maximum(weights, LEAST_WEIGHT))
        widths = np.diff([*self.terms.offsets, self.terms.width])
        return replace(self, alone=self.alone + np.concatenate([[0.0], np.repeat(each, widths)]))

    def with_normals(self, normals: StarNormals) -> StarTables:
        """The same with numbers as normals where they are children."""
        given, widths = self.given.copy(), np.diff([*self.terms.offsets, self.terms.width])
        spans = zip(self.terms.columns, self.terms.offsets.tolist(), widths.tolist(), strict=True)
        own = {column: slice(start, start + width) for (column,), start, width in spans if column < normals.numbers}
        for cells in own.values():
            given[:, cells] = 0.0
        return replace(self, given=given, normals=normals.without(own))

    def stars(self, codes: np.ndarray, powers: np.ndarray | None = None) -> np.ndarray:
        """(rows x stars x classes) log-probability of a class and the row in every star; -inf without its parent."""
        cells = self.terms.indicators(codes)
        places = cells.places.T
        found = np.empty((*places.shape, len(self.shares)))
        for label, (share, alone, given) in enumerate(zip(self.shares, self.alone, self.given, strict=True)):
            sums = cells.product(given)  # (rows x cells of a parent)
            if self.normals is not None and powers is not None:
                sums = sums + self.normals.sums(label, powers)
            found[:, :, label] = share + alone[places] + np.take_along_axis(sums, places, axis=1)
        found[places == 0] = -np.inf
        return found

    def scores(self, codes: np.ndarray, numbers: np.ndarray | None = None) -> np.ndarray:
        """(rows x classes) logarithm of the stars' mean; without any parent, what is known under the class alone."""
        powers = self._powers(numbers)
        stars, alone = self.stars(codes, powers), self._without_parent(len(codes), powers)
        if not stars.shape[1]:
            return alone
        there = np.isfinite(stars[:, :, 0]).sum(axis=1)
        mean = log_sum_exp(stars, axis=1) - np.log(np.maximum(there, 1))[:, None]
        return np.where((there > 0)[:, None], mean, alone)

    def _powers(self, numbers: np.ndarray | None) -> np.ndarray | None:
        return None if self.normals is None or numbers is None else self.normals.powers(numbers)

    def _without_parent(self, rows: int, powers: np.ndarray | None) -> np.ndarray:
        found = np.tile(self.shares, (rows, 1))
        if self.normals is not None and powers is not None:
            for label in range(found.shape[1]):
                found[:, label] += self.normals.alone(label, powers).sum(axis=1)
        return found

    def parts(self, codes: np.ndarray, numbers: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(rows x columns x classes) what each column adds to the scores, and (rows x classes) what none of them does.

        The logarithm of a sum is the mean of the terms' logarithms, each weighed by its share of the sum, and the
        entropy of these shares, which no column adds.
        """
        powers = self._powers(numbers)
        stars, places = self.stars(codes, powers), self.terms.places(codes)
        found = np.zeros((len(codes), len(self.terms.sizes), len(self.shares)))
        rest = np.tile(self.shares, (len(codes), 1))
        none = (places == 0).all(axis=1)
        some, columns = np.flatnonzero(~none), np.array([column for (column,) in self.terms.columns], dtype=np.intp)
        here, shares = places[some], np.exp(stars[some] - np.asarray(log_sum_exp(stars[some], axis=1))[:, None])
        for label, (alone, given) in enumerate(zip(self.alone, self.given, strict=True)):
            own = shares[:, :, label]
            each = given[here[:, :, None], here[:, None, :]]  # (rows x columns x parents)
            found[some[:, None], columns, label] = alone[here] * own + np.einsum("rcp,rp->rc", each, own)
            rest[some, label] -= times_log(own).sum(axis=1) + np.log((here > 0).sum(axis=1))
            if self.normals is not None and powers is not None:
                numbers_own = found[:, : powers.shape[2], label]
                numbers_own[some] += np.einsum("rcp,rp->rc", self.normals.each(label, powers[:, some], here), own)
                numbers_own[none] += self.normals.alone(label, powers[:, none])
        return found, rest


def _shares(sizes: np.ndarray) -> np.ndarray:
    """Logarithms of the classes' shares, half a row imagined in each."""
    return np.asarray(np.log((sizes + 0.5) / (sizes + 0.5).sum()))
