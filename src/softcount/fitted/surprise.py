"""How surprising a row is, and which of its columns make it so.

With r the row's memberships, its log-density splits exactly:

    -log p(x) = KL(r || shares) + sum over columns of sum_g r_g * -log p_g(x_j)

A column's *surprise* is its part less the entropy of its distribution averaged over the class shares; the class's is
KL(r || shares) less the entropy of the shares, large for a rare class. The *score* of a row is the sum of these, in
nats: about 0 for an ordinary row. The subtracted terms are the same for all complete rows, so these rank by their
log-density. A missing cell adds nothing, and the units of a column do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.counts import ROOT
from softcount.models.nodes import Node, refuse_scores
from softcount.models.tiles import TILE
from softcount.numerics.late_scipy import entr, xlogy
from softcount.numerics.logspace import softmax_rows
from softcount.records import dataclass
from softcount.table import Chunk
from softcount.table.schema import Key

if TYPE_CHECKING:
    from softcount.fitted.fitted_model import Fitted


@dataclass(frozen=True, slots=True)
class RowScores:
    """What a run of rows is under a model: memberships (zeros where impossible), log-density and score."""

    members: np.ndarray
    log_density: np.ndarray
    score: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class SurpriseMeter:
    """A fitted model made ready to say how surprising rows are; `usual` is the average surprise of every leaf."""

    fitted: Fitted
    compiled: Any
    usual: dict[Any, np.ndarray]

    @classmethod
    def of(cls, fitted: Fitted) -> SurpriseMeter:
        """The model's own; refused where a column has no density."""
        refuse_scores(fitted.model.leaves, "has no density to be surprised by")
        own = fitted.estimates
        usual = {x.key: x.family.average_surprise(own[x.key], x.setting) for x in fitted.model.leaves}
        return cls(fitted, fitted.model.compile(fitted.estimates), usual)

    @property
    def _usual_class(self) -> float:
        return float(entr(self.fitted.shares).sum())

    def measure(self, chunk: Chunk) -> RowScores:
        """Every row's memberships, log-density and score."""
        star = self.fitted.model
        ready, columns = star.prepare(chunk), self._columns(chunk)
        members, evidence = softmax_rows(star.score(ready, self.compiled, slice(0, chunk.n_rows)))
        base: Any = ready.base
        if any(leaf.family.counted for leaf in star.leaves):
            base = sum((leaf.family.own_base(columns[leaf.key]) for leaf in star.leaves), 0.0)
        score = -(evidence + base) - self._usual_of(columns, members) - self._usual_class
        return RowScores(members, evidence + ready.base, score)

    def reasons(self, chunk: Chunk) -> dict[Key, np.ndarray]:
        """The parts that add up to each row's score: each column or block of counts, and the class under `ROOT`."""
        star, shares, columns = self.fitted.model, self.fitted.shares, self._columns(chunk)
        ready = star.prepare(chunk, base=False)
        members, evidence = softmax_rows(star.score(ready, self.compiled, slice(0, chunk.n_rows)))
        members[np.isneginf(evidence)] = shares  # impossible in every class, so nothing is known of its own
        with np.errstate(divide="ignore", invalid="ignore"):
            rare = xlogy(members, members) - xlogy(members, shares)
        parts: dict[Key, np.ndarray] = {ROOT: np.where(members > 0, rare, 0.0).sum(axis=1) - self._usual_class}
        scores = star.score_parts(self.compiled, ready)
        for leaf in star.leaves:
            parts |= self.reasons_of(leaf, columns[leaf.key], scores[leaf.key], members, shares)
        return parts

    def reasons_of(
        self, leaf: Node, column: Any, scores: np.ndarray, members: np.ndarray, expected: np.ndarray
    ) -> dict[Key, np.ndarray]:
        """A leaf's part of the score, or those of its columns; `expected` are the class probabilities before the row.

        They have the shape of `members`, or of one row of it.
        """
        params = self.fitted.estimates[leaf.key]
        expected = np.broadcast_to(expected, members.shape)
        each = leaf.family.surprise_by_column(column, params, leaf.setting, members, expected)
        if each is not None:
            return {name: part for name, part in zip(leaf.columns, each.T, strict=True)}
        density = scores + np.reshape(leaf.family.own_base(column), (-1, 1))
        with np.errstate(invalid="ignore"):
            held = np.where(members > 0, members * density, 0.0).sum(axis=1)
        return {leaf.key: -held - self._usual_leaf(leaf, column, members, expected)}

    def _columns(self, chunk: Chunk) -> dict[Any, Any]:
        return {leaf.key: self.fitted.model.column(leaf, chunk) for leaf in self.fitted.model.leaves}

    def _usual_of(self, columns: dict[Any, Any], members: np.ndarray) -> Any:
        """The usual surprise of the cells that each row holds: single cells in one product, blocks one by one."""
        expected = np.broadcast_to(self.fitted.shares, members.shape)
        there, average, rest = [], [], []
        for leaf in self.fitted.model.leaves:
            cells = leaf.family.there(columns[leaf.key], self.fitted.estimates[leaf.key], leaf.setting)
            if cells is None:
                rest.append(self._usual_leaf(leaf, columns[leaf.key], members, expected))
            else:
                there.append(cells)
                average.append(self.usual[leaf.key])
        single: Any = 0.0
        if there:
            single = np.stack(there, axis=1).astype(np.float64) @ (np.stack(average) @ self.fitted.shares)
        return sum(rest, single)

    def _usual_leaf(self, leaf: Node, column: Any, members: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """The entropy of a leaf averaged over the expected classes; of words or counts, over the row's own classes.

        The number of words is not modelled, so a long text of a class with many words would otherwise seem odd.
        """
        params = self.fitted.estimates[leaf.key]
        weights = members if leaf.family.counted else expected
        return leaf.family.usual(column, params, leaf.setting, weights, self.usual[leaf.key])


def tiles(chunk: Chunk) -> Iterator[Chunk]:
    """The chunk a few thousand rows at a time, so that rows x groups and rows x columns stay small."""
    for a in range(0, chunk.n_rows, TILE):
        yield part_of(chunk, slice(a, min(a + TILE, chunk.n_rows)))


def part_of(chunk: Chunk, rows: Any) -> Chunk:
    """Some rows of a chunk, numbered anew, whatever their labels."""
    return replace(chunk.take(rows), start=0, labels=None)
