"""Joint tables: several dependent discrete columns as one, with a probability for every combination of categories."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.counts import Twofold
from softcount.core.formulas import CombinedCode, Formula, Keys, LevelCode, LookUp, Sizes, clamp
from softcount.core.lazy import xlogy
from softcount.core.special import log_of
from softcount.errors import DataError, ResourceError
from softcount.families.base import Family, register
from softcount.families.categorical import Categorical, CategoricalDensity, concentration, estimate_shares, prior_counts
from softcount.families.density import Columns, Density, Rng
from softcount.families.setting import SMALLEST, How, Hyper, Params, Setting
from softcount.priors import Dirichlet
from softcount.table.schema import Field, Key

MOST_CELLS = 20_000_000
STEPS = 500


class JointDensity(CategoricalDensity):
    """A probability for every combination of categories."""

    family: Joint

    def table(self) -> np.ndarray:
        """Return log-probabilities by the code of a pattern."""
        shares, shape = self.own["probability"], self.family.shape
        full = add_missing_level(shares.reshape(*shares.shape[:-1], *shape), len(shape))
        full = full.reshape(*shares.shape[:-1], -1)
        full[..., 0] = 1.0
        flat = log_of(full)
        return np.concatenate([flat, np.zeros((*flat.shape[:-1], 1))], axis=-1)

    def formula(self, keys: Keys, sizes: Sizes) -> Formula | None:
        """Return a look-up by the codes of the columns, the last changing fastest; an unseen category is missing."""
        code = CombinedCode(tuple(map(LevelCode, keys, sizes)), tuple(size + 1 for size in self.family.shape))
        return LookUp(code, clamp(self.table()[..., :-1].T))

    def conditional(self, cells: np.ndarray, want: int) -> Density:
        table = self.own["probability"].reshape(-1, *self.family.shape)
        for axis in range(table.ndim - 1, 0, -1):
            code = int(cells[axis - 1])
            if axis - 1 == want:
                continue
            known = 1 <= code <= table.shape[axis]
            table = table.take(code - 1, axis) if known else table.sum(axis=axis)
        total = table.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, table / np.where(total > 0, total, 1.0), 1.0 / table.shape[1])
        return Categorical().density({"probability": shares}, Setting(levels=self.setting.levels_of_column(want)))

    def draw_columns(self, groups: np.ndarray, rng: Rng, cells: np.ndarray | None = None) -> Columns:
        columns = range(len(self.family.shape))
        if cells is None:
            drawn: Any = [self.setting.levels[code - 1] for code in self.draw(groups, rng)]
            return [[level[want] for level in drawn] for want in columns]
        codes = self._draw_one_by_one(groups, rng, cells).astype(np.int64)
        levels = [self.setting.levels_of_column(want) for want in columns]
        known = ~np.isnan(cells)
        return [[] if known[j] else [levels[j][code - 1] for code in part] for j, part in enumerate(codes.T)]

    fill = Density.fill
    there = Density.there

    def present(self, column: np.ndarray) -> np.ndarray:
        return self.family.present(column)

    def entropy(self, present: np.ndarray | None = None) -> np.ndarray:
        gone = () if present is None else tuple(1 + j for j in np.flatnonzero(~present))
        table = self.own["probability"].reshape(-1, *self.family.shape).sum(axis=gone)
        shares = table.reshape(len(table), -1)
        return np.asarray(-xlogy(shares, shares).sum(axis=-1))


@register
class Joint(Categorical, frozen=True):
    """A block of discrete columns: `{("a", "b"): "categorical"}`.

    Statistics count every pattern of categories. A missing cell is one more category of its column, so incomplete rows
    are kept and divided among the combinations they could be.
    """

    shape: tuple[int, ...] = ()

    name = "joint"
    _density = JointDensity
    facts = replace(
        Categorical.facts, block=True, as_block="", stack="joint", needs_levels=True, alone=True,
        rows=None, linear=False,
    )  # fmt: skip

    def set_up(self, key: Key, fields: Sequence[Field], groups: int, floor: float) -> tuple[Family, Setting]:
        empty = [spec.key for spec in fields if not spec.levels]
        if empty:
            raise DataError(f"column {empty[0]!r} of the block {key!r} has no values. Leave it out of the block.")
        family, levels = joint_of([spec.levels for spec in fields], groups)
        return family, Setting(tuple(spec.key for spec in fields), groups, levels, floor=floor)

    def rebase(self, stats: Twofold, was: Any, old: Setting, new: Setting) -> Twofold:
        axes = []
        for before, after in zip(_axes(old), _axes(new), strict=True):
            axes.append(np.array([0, *(after.index(level) + 1 for level in before)]))
        groups = stats.shape[0]
        hi, lo = np.zeros((2, groups, *(m + 1 for m in self.shape)))
        spot = np.ix_(np.arange(groups), *axes)
        small = (groups, *(m + 1 for m in was.shape))
        hi[spot], lo[spot] = stats.hi.reshape(small), stats.lo.reshape(small)
        return Twofold(hi.reshape(groups, -1), lo.reshape(groups, -1))

    def width(self, setting: Setting) -> int:
        return prod(m + 1 for m in self.shape)

    def combine(self, codes: np.ndarray) -> np.ndarray:
        """Return one code for each row's pattern; 0 if every cell is missing. An unseen category counts as missing."""
        combined = np.zeros(len(codes), dtype=np.int32)
        for column, m in zip(codes.T, self.shape, strict=True):
            combined = combined * np.int32(m + 1) + np.where(column > m, 0, column).astype(np.int32)
        return combined

    def present(self, column: np.ndarray) -> np.ndarray:
        """Return which (rows x columns) cells a pattern has."""
        return np.stack(np.unravel_index(column, [m + 1 for m in self.shape]), axis=1) > 0

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        """Return prior counts of every combination of categories; patterns with a missing cell have none."""
        return {"alpha": concentration(prior, self, setting, prod(self.shape))}

    def _rows(self, stats: Twofold, hyper: Hyper, how: How) -> IncompleteRows:
        """Return counts of complete combinations, and of patterns in which some cells (but not all) are missing."""
        counts = np.maximum(stats.value, 0.0)
        counts[..., 0] = 0.0
        partial = counts.reshape(*stats.shape[:-1], *(m + 1 for m in self.shape))
        inside: Any = (..., *(slice(1, None),) * len(self.shape))
        whole = partial[inside].copy()
        partial[inside] = 0.0
        return IncompleteRows(whole, partial, hyper["alpha"], how, len(self.shape))

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        rows = self._rows(stats, hyper, how)
        plain = not rows.partial.any()
        shares = estimate_shares(rows.complete, hyper["alpha"], how, self.name) if plain else rows.shares()
        return {"probability": shares, "unseen": np.zeros(shares.shape[:-1])}

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        return np.asarray((column[:, None] == np.arange(self.width(setting))).astype(np.float64))

    def completed(self, stats: Twofold, params: Params) -> float:
        table = JointDensity(self, params, Setting()).table()
        return float(xlogy(stats.value, np.exp(table[..., :-1])).sum())

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params:
        rows, shares = self._rows(stats, hyper, how), params["probability"]
        counts = rows.complete + prior_counts(hyper, how)
        return {"probability": counts / np.maximum(shares, SMALLEST) + rows.ratios(shares)}

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        """Return the log evidence, exact if the block has no missing cells.

        Incomplete rows are completed in expectation (Cheeseman and Stutz).
        """
        rows = self._rows(stats, hyper, "mean")
        if not rows.partial.any():
            return Categorical().evidence(Twofold.of(rows.complete), hyper)
        params = {"probability": rows.shares()}
        filled = Twofold.of(rows.filled(params["probability"]))
        seen, complete = self.completed(stats, params), Categorical().completed(filled, params)
        return Categorical().evidence(filled, hyper) + seen - complete

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> Dirichlet:
        shares = self.estimate(stats, hyper, "ml")["probability"]
        seen = stats.value[..., 1:].sum(axis=-1, keepdims=True)
        return Dirichlet(shares * seen + hyper["alpha"])

    # -- answers


def _axes(setting: Setting) -> list[list[object]]:
    """Return the categories of each column of a block, in order; a category of the block is a tuple of them."""
    combinations: Sequence[Any] = setting.levels
    return [list(dict.fromkeys(part)) for part in zip(*combinations, strict=True)]


def joint_of(levels: list[Sequence[object]], groups: int) -> tuple[Joint, tuple[object, ...]]:
    """Return the family for these columns and its combined categories.

    A table that is too large raises an error before anything is allocated.
    """
    shape = tuple(len(part) for part in levels)
    cells = prod(m + 1 for m in shape) * groups
    if cells > MOST_CELLS:
        raise ResourceError(
            f"a joint table of {len(shape)} columns needs {cells:,} cells; at most {MOST_CELLS:,} are allowed. "
            "Split the block into smaller ones, or model the columns one by one."
        )
    return Joint(shape), tuple(product(*levels))


class IncompleteRows(Struct, frozen=True):
    """Rows of a joint table with missing cells, divided among the combinations they could be.

    Holds counts of complete combinations (groups x ...), counts of patterns with missing cells, and prior counts.
    """

    whole: np.ndarray
    partial: np.ndarray
    alpha: np.ndarray
    how: How
    columns: int

    @property
    def complete(self) -> np.ndarray:
        """Counts of complete combinations, on one axis."""
        return self.whole.reshape(*self.whole.shape[: -self.columns], -1)

    def shares(self) -> np.ndarray:
        """Return the most probable shares of the combinations, to convergence.

        Each iteration is two EM steps and an extrapolation: with 200 plain steps, a share whose best value is 0 would
        still be near 1/200.
        """
        shares = estimate_shares(self.complete, np.ones(self.complete.shape[-1]), "mean", "joint")
        for _ in range(STEPS):
            first = self.step(shares)
            second = self.step(first)
            ahead = self.step(leap(shares, first, second))
            better = self.height(ahead) > self.height(second)
            before, shares = shares, np.where(better[:, None], ahead, second)
            if np.abs(shares - before).max() < 1e-15:
                break
        return shares

    def step(self, shares: np.ndarray) -> np.ndarray:
        """Do one EM step: count an incomplete row towards every combination it could be, by the previous shares."""
        return estimate_shares(self.filled(shares), self.alpha, self.how, "joint")

    def filled(self, shares: np.ndarray) -> np.ndarray:
        """Return the expected counts of every combination, with one row per group."""
        return np.asarray(self.complete + shares * self.ratios(shares))

    def ratios(self, shares: np.ndarray) -> np.ndarray:
        """Return the expected incomplete rows of every combination, divided by its share."""
        patterns, there = add_missing_level(shares.reshape(self.whole.shape), self.columns), self.partial > 0
        ratio = np.divide(self.partial, patterns, out=np.zeros_like(self.partial), where=there)
        return spread_back(ratio, self.columns).reshape(shares.shape)

    def height(self, shares: np.ndarray) -> np.ndarray:
        """Return each group's log-likelihood plus log-prior, which no step lowers."""
        patterns = add_missing_level(shares.reshape(self.whole.shape), self.columns)
        extra = {"ml": 0.0 * self.alpha, "map": self.alpha - 1.0}.get(self.how, self.alpha)
        own = xlogy(self.complete + extra, shares)
        return np.asarray(own.sum(axis=1) + xlogy(self.partial, patterns).reshape(len(shares), -1).sum(axis=1))


def leap(start: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Extrapolate two steps, group by group.

    A share that would be negative becomes a hundredth of its value.
    """
    step, bend = first - start, second - 2 * first + start
    turn = np.sqrt((bend * bend).sum(axis=-1, keepdims=True))
    far = np.maximum(np.sqrt((step * step).sum(axis=-1, keepdims=True)) / np.where(turn > 0, turn, np.inf), 1.0)
    moved = start + 2 * far * step + far * far * bend
    inside = np.where(moved > 0, moved, 0.01 * second)
    return np.asarray(inside / inside.sum(axis=-1, keepdims=True))


def add_missing_level(table: np.ndarray, columns: int) -> np.ndarray:
    """Add a 'missing' category first in each column of the table, holding the sum over that column."""
    for axis in range(table.ndim - columns, table.ndim):
        table = np.concatenate([table.sum(axis=axis, keepdims=True), table], axis=axis)
    return table


def spread_back(ratio: np.ndarray, columns: int) -> np.ndarray:
    """Return, for every complete combination, the sum over the patterns it matches."""
    for axis in range(ratio.ndim - columns, ratio.ndim):
        ratio = np.take(ratio, [0], axis) + np.take(ratio, range(1, ratio.shape[axis]), axis)
    return ratio
