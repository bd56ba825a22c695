"""How surprising a row is, and which of its columns make it so.

With r the row's memberships, its log-density splits exactly:

    -log p(x) = KL(r || shares) + sum over columns of sum_g r_g * -log p_g(x_j)

A column's *surprise* is its part less what is usual for it in the row's classes, the entropy of its distribution there;
the class's is KL(r || shares) less the entropy of the shares, large where the class is rare. The *score* of a row is
the sum of these, in nats: about 0 for an ordinary row. A missing cell adds nothing, and no unit changes anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import entr, psi, xlogy

from softcount.families import Joint, Multinormal, Params, Text
from softcount.families.multinormal import patterns
from softcount.fitted.answers import CLASS, label
from softcount.fitted.fitted_model import Fitted
from softcount.models.nodes import Node
from softcount.models.parts import refuse_scores
from softcount.models.star import TILE, Ready, Star, StarParams
from softcount.numerics.logspace import softmax_rows
from softcount.table import Chunk

COUNTED = ("multinomial", "binomial")
"""Blocks whose size is not modelled: their counts are scored one by one, and so many are usual."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """What a run of rows is under a model: memberships (zeros where impossible), log-density and score."""

    members: np.ndarray
    log_density: np.ndarray
    score: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Gauge:
    """A fitted model made ready to say how surprising rows are."""

    fitted: Fitted
    compiled: list[Any]
    entropies: dict[Any, np.ndarray]

    @classmethod
    def of(cls, fitted: Fitted) -> Gauge:
        refuse_scores(fitted.star.leaves, "has no density to be surprised by")
        entropies = {x.key: _entropy(x, fitted.estimates.leaves[x.key]) for x in fitted.star.leaves}
        return cls(fitted, fitted.star.compile(fitted.estimates), entropies)

    @property
    def _usual_class(self) -> float:
        return float(entr(self.fitted.shares).sum())

    def weigh(self, chunk: Chunk) -> Weighed:
        """Every row's memberships, log-density and score."""
        star = self.fitted.star
        ready = star.prepare(chunk)
        joint = star.score(ready, self.compiled, slice(0, chunk.n_rows))
        members, evidence = softmax_rows(joint)
        usual = sum((self._usual(leaf, chunk, members) for leaf in self._apart()), self._usual_cells(chunk, members))
        score = -(evidence + own_base(star, ready)) - usual - self._usual_class
        return Weighed(members, evidence + ready.base, score)

    def reasons(self, chunk: Chunk) -> dict[str, np.ndarray]:
        """The parts that add up to each row's score: one for each column or block of counts, and that of the class."""
        star, shares = self.fitted.star, self.fitted.shares
        members, evidence = softmax_rows(star.score(star.prepare(chunk), self.compiled, slice(0, chunk.n_rows)))
        members[np.isneginf(evidence)] = shares  # impossible in every class, so nothing is known of its own
        with np.errstate(divide="ignore", invalid="ignore"):
            rare = xlogy(members, members) - xlogy(members, shares)
        parts = {CLASS: np.where(members > 0, rare, 0.0).sum(axis=1) - self._usual_class}
        for leaf in star.leaves:
            if isinstance(leaf.family, Multinormal):
                parts |= _by_column(leaf, self.fitted.estimates.leaves[leaf.key], star.column(leaf, chunk), members)
                continue
            with np.errstate(invalid="ignore"):
                held = np.where(members > 0, members * self._density(leaf, chunk), 0.0)
            parts[label(leaf.key)] = -held.sum(axis=1) - self._usual(leaf, chunk, members)
        return parts

    def _density(self, leaf: Node, chunk: Chunk) -> np.ndarray:
        """(rows x groups) log-density of one column or block, as the whole model scores it."""
        alone = replace(self.fitted.star, leaves=(leaf,))
        even = StarParams(np.ones(alone.groups), self.fitted.estimates.leaves)
        ready = alone.prepare(chunk)
        scored = alone.score(ready, alone.compile(even), slice(0, chunk.n_rows))
        return scored + np.reshape(own_base(alone, ready), (-1, 1))

    def _apart(self) -> list[Node]:
        """Leaves whose usual surprise depends on more than whether the cell is there."""
        return [x for x in self.fitted.star.leaves if x.family.alone]

    def _usual_cells(self, chunk: Chunk, members: np.ndarray) -> Any:
        plain = [x for x in self.fitted.star.leaves if not x.family.alone]
        if not plain:
            return 0.0
        there = np.stack([self._there(leaf, chunk) for leaf in plain], axis=1).astype(np.float64)
        return (members * (there @ np.stack([self.entropies[leaf.key] for leaf in plain]))).sum(axis=1)

    def _there(self, leaf: Node, chunk: Chunk) -> np.ndarray:
        """Whether the cell is evidence: not missing, nor a level never seen where that counts for nothing."""
        column = self.fitted.star.column(leaf, chunk)
        if not leaf.family.discrete:
            return ~np.isnan(column)
        known = (self.fitted.estimates.leaves[leaf.key]["unseen"] > 0).any()
        return column > 0 if known else (column > 0) & (column <= len(leaf.setting.levels))

    def _usual(self, leaf: Node, chunk: Chunk, members: np.ndarray) -> np.ndarray:
        """What is usual for one column or block of each row, in its classes."""
        if not leaf.family.alone:
            return np.where(self._there(leaf, chunk), members @ self.entropies[leaf.key], 0.0)
        if leaf.family.name in COUNTED or isinstance(leaf.family, Text):
            return _counts_of(self.fitted.star, leaf, chunk) * (members @ self.entropies[leaf.key])
        out = np.zeros(chunk.n_rows)
        for rows, present in _holes(self.fitted.star, leaf, chunk):
            if present.any():
                entropy = _entropy(leaf, self.fitted.estimates.leaves[leaf.key], present)
                out[rows] = members[rows] @ entropy
        return out


def _by_column(leaf: Node, params: Params, block: np.ndarray, members: np.ndarray) -> dict[str, np.ndarray]:
    """The surprise of a correlated block, column by column.

    The squared distance from a group's mean is the sum of (x - m)_i (C^-1 (x - m))_i over the columns, each of which is
    1 on average: a column adds what it has more of. Below 0 it is what the others lead one to expect.
    """
    moved = (block - leaf.setting.anchor) * leaf.setting.scale
    out = np.zeros(block.shape)
    for rows, present in patterns(block):
        if present.any():
            cells = np.ix_(rows, present)
            out[cells] = sum(
                members[rows, g, None] * _excess(_distances(moved[cells], params, g, present), params, g)
                for g in range(members.shape[1])
            )
    return {label(column): out[:, j] for j, column in enumerate(leaf.columns)}


def _distances(moved: np.ndarray, params: Params, g: int, present: np.ndarray) -> np.ndarray:
    """Each column's part of the squared distance from a group's mean, columns brought to one size first."""
    covariance = params["covariance"][g][np.ix_(present, present)]
    unit = np.sqrt(np.diagonal(covariance))
    off = (moved - params["mean"][g][present]) / unit
    return off * np.linalg.solve(covariance / np.outer(unit, unit), off.T).T


def _excess(parts: np.ndarray, params: Params, g: int) -> np.ndarray:
    """What the parts of a squared distance add to the surprise, less what is usual."""
    if "freedom" not in params:
        return 0.5 * (parts - 1.0)
    d, nu = parts.shape[1], min(float(params["freedom"][g]), 1e6)
    parts = parts / params["spread"][g]
    whole = parts.sum(axis=1, keepdims=True)
    each = 0.5 * (nu + d) * np.log1p(whole / nu) / np.where(whole > 0, whole, 1.0)
    return parts * each - 0.5 * (nu + d) * (psi((nu + d) / 2) - psi(nu / 2)) / d


def own_base(star: Star, ready: Ready) -> Any:
    """The part of the log-density no group changes, without the ways to order counts that are scored one by one."""
    pairs = zip(star.plates, ready.data, strict=True)
    one_by_one = (*COUNTED, "text")
    return sum((plate.base(data) for plate, data in pairs if plate.leaves[0].family.name not in one_by_one), 0.0)


def tiles(chunk: Chunk) -> Iterator[Chunk]:
    """The chunk a few thousand rows at a time, so that rows x groups and rows x columns stay small."""
    for a in range(0, chunk.n_rows, TILE):
        yield part_of(chunk, slice(a, min(a + TILE, chunk.n_rows)))


def part_of(chunk: Chunk, rows: Any) -> Chunk:
    """Some rows of a chunk, numbered anew, whatever their labels."""
    return replace(chunk.take(rows), start=0, labels=None)


def _entropy(leaf: Node, params: Params, present: np.ndarray | None = None) -> np.ndarray:
    """The entropy of a column in every group, or of the part of a block that is present.

    Normals are asked in counting units: a variance of 1e-400 is no float, but its logarithm is.
    """
    family, setting = leaf.family, leaf.setting
    if isinstance(family, Multinormal):
        keep = np.ones(len(setting.scale), dtype=bool) if present is None else present
        part = params | {"mean": params["mean"][:, keep], "covariance": params["covariance"][:, keep][:, :, keep]}
        return family.entropy(part) - np.log(setting.scale[keep]).sum()
    if isinstance(family, Joint) and present is not None:
        table = params["probability"].reshape(-1, *family.shape)
        gone = tuple(1 + j for j in np.flatnonzero(~present))
        return family.entropy({"probability": table.sum(axis=gone).reshape(len(table), -1)})
    if family.name in ("normal", "student"):
        return family.entropy(params) - np.log(setting.scale[0])
    return family.entropy(family.public(params, setting))


def _counts_of(star: Star, leaf: Node, chunk: Chunk) -> np.ndarray:
    """How many counts or trials each row's block holds."""
    if isinstance(leaf.family, Text):
        return leaf.family.sizes(star.column(leaf, chunk))
    if not leaf.columns:
        return np.ravel(chunk.bags[0].sum(axis=1)).astype(np.float64)
    return leaf.family.features(star.column(leaf, chunk), leaf.setting).sum(axis=1)


def _holes(star: Star, leaf: Node, chunk: Chunk) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows that share a pattern of holes in a block, with that pattern (true where present)."""
    if not isinstance(leaf.family, Joint):
        return patterns(star.column(leaf, chunk))
    places = [star.schema.places[c] for c in leaf.columns]
    codes = np.stack([getattr(chunk, p.store)[:, p.slot].astype(float) for p in places], axis=1)
    known = (codes > 0) & (codes <= np.array(leaf.family.shape))
    return patterns(np.where(known, codes, np.nan))
