"""Averaged one-dependence stars (AODE): for every column a star in which all others hang on it and the class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from softcount.classify.pair_counts import PairCounts
from softcount.classify.terms import Terms
from softcount.numerics.logspace import log_sum_exp, times_log
from softcount.records import dataclass

LEAST_WEIGHT = 1e-6
"""Of a star whose parent tells nothing of the class, where one that tells a nat has 1."""


@dataclass(frozen=True, slots=True, eq=False)
class StarTables:
    """`shares` (classes), `alone` (classes x cells) and `given` (classes x cells x cells of the parent), as logarithms.

    Cells that nothing is known of say nothing, and a column that is missing is not a parent.
    """

    terms: Terms
    shares: np.ndarray
    alone: np.ndarray
    given: np.ndarray

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

    def stars(self, codes: np.ndarray) -> np.ndarray:
        """(rows x stars x classes) log-probability of a class and the row in every star; -inf without its parent."""
        cells = self.terms.indicators(codes)
        places = cells.places.T
        found = np.empty((*places.shape, len(self.shares)))
        for label, (share, alone, given) in enumerate(zip(self.shares, self.alone, self.given, strict=True)):
            sums = cells.product(given)  # (rows x cells of a parent)
            found[:, :, label] = share + alone[places] + np.take_along_axis(sums, places, axis=1)
        found[places == 0] = -np.inf
        return found

    def scores(self, codes: np.ndarray) -> np.ndarray:
        """(rows x classes) logarithm of the stars' mean; without any parent, that of the classes' shares."""
        stars, alone = self.stars(codes), np.tile(self.shares, (len(codes), 1))
        if not stars.shape[1]:
            return alone
        there = np.isfinite(stars[:, :, 0]).sum(axis=1)
        mean = log_sum_exp(stars, axis=1) - np.log(np.maximum(there, 1))[:, None]
        return np.where((there > 0)[:, None], mean, alone)

    def parts(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows x columns x classes) what each column adds to the scores, and (rows x classes) what none of them does.

        The logarithm of a sum is the mean of the terms' logarithms, each weighed by its share of the sum, and the
        entropy of these shares, which no column adds.
        """
        stars, places = self.stars(codes), self.terms.places(codes)
        found = np.zeros((len(codes), len(self.terms.sizes), len(self.shares)))
        rest = np.tile(self.shares, (len(codes), 1))
        some = np.flatnonzero((places > 0).any(axis=1))
        columns = np.array([column for (column,) in self.terms.columns], dtype=np.intp)
        here, shares = places[some], np.exp(stars[some] - np.asarray(log_sum_exp(stars[some], axis=1))[:, None])
        for label, (alone, given) in enumerate(zip(self.alone, self.given, strict=True)):
            own = shares[:, :, label]
            each = given[here[:, :, None], here[:, None, :]]  # (rows x columns x parents)
            found[some[:, None], columns, label] = alone[here] * own + np.einsum("rcp,rp->rc", each, own)
            rest[some, label] -= times_log(own).sum(axis=1) + np.log((here > 0).sum(axis=1))
        return found, rest


def _shares(sizes: np.ndarray) -> np.ndarray:
    """Logarithms of the classes' shares, half a row imagined in each."""
    return np.asarray(np.log((sizes + 0.5) / (sizes + 0.5).sum()))
