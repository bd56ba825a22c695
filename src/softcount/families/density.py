"""Densities: what a family's parameters say about values, in the user's units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from softcount.core.formulas import Formula, Keys, Sizes
from softcount.core.special import log_of
from softcount.families.learning import find_range_fault
from softcount.families.setting import Params, Setting
from softcount.table.schema import Kind

if TYPE_CHECKING:
    from softcount.families.base import Family

Columns = list[Sequence[Any] | np.ndarray]
Rng = np.random.Generator
NOTHING = 1e-6
"""Means below this share of their spread are shown as 0: memberships of 1e-140 gave "mean 1.597e-133" in Adult."""
DRAWS = 4096
LARGEST = 1e150
"""Limit of parameters, in counting units: beyond it squares and products overflow."""
MAY_BE_INFINITE = ("freedom",)
"""Parameters without an upper limit: with infinite `freedom` a t distribution is normal."""


class Density:
    """The distribution of a column, or of a block of columns, in every group.

    It is made by `Family.density` from `own`, the parameters in counting units. A density must implement `draw` and, if
    its scores are not features times natural parameters, `score`. Everything else has a default. Answers are in the
    user's units, and their first axis is the group. `cells` of a block are the codes or numbers of its columns as
    floats, and `want` is the position of one column.
    """

    def __init__(self, family: Family, own: Params, setting: Setting) -> None:
        self.family = family
        self.own = own
        self.setting = setting

    @cached_property
    def params(self) -> Params:
        """The public parameters, and those too small for the user's units."""
        return self.family.public(self.own, self.setting)

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(next(iter(self.own.values())))

    def in_counting_units(self) -> Density:
        """Return the density of numbers in counting units, in which no parameter underflows."""
        plain = replace(self.setting, anchor=0.0 * self.setting.anchor, scale=np.ones_like(self.setting.scale))
        return self.family.density(self.own, plain)

    # -- values

    @property
    def is_product(self) -> bool:
        """Whether a row's score is features times natural parameters.

        It is not in a predictive form, which has more parameters than the chart.
        """
        return self.family.facts.has_products and set(self.own) <= set(self.family.facts.chart)

    def score(self, column: np.ndarray) -> np.ndarray:
        """Return the (rows x groups) log-density, without the part that is the same in all groups."""
        return np.asarray(self.family.features(column, self.setting) @ self.family.natural(self.params).T)

    def log_pdf(self, column: np.ndarray) -> np.ndarray:
        """Return the (rows x groups) log-density."""
        return np.asarray(self.score(column) + np.reshape(self.family.base(column), (-1, 1)))

    def cdf(self, x: float, above: bool = False) -> np.ndarray:
        """Return the probability in each group of a value of at most x or, if `above`, of more than x.

        By default it is estimated from 4,096 draws. A density computes both tails to full precision: 1 - cdf would lose
        digits.
        """
        below = (self._draws() <= x).mean(axis=1)
        return np.asarray(1.0 - below if above else below)

    @property
    def has_cdf(self) -> bool:
        """Whether probabilities of ranges are exact; estimates from draws are not."""
        return type(self).cdf is not Density.cdf

    def mass_at(self, x: float) -> np.ndarray:
        """Return the probability in each group of exactly x, which is 0 for a density."""
        return self.cdf(x) - self.cdf(x - 1.0) if self.family.facts.kind is Kind.COUNT else np.zeros(self.groups)

    def draw(self, groups: np.ndarray, rng: Rng) -> np.ndarray:
        """Draw one value for each entry of `groups`."""
        raise NotImplementedError

    def _draws(self) -> Any:
        """Return (groups x 4,096) draws from every group, the same each time."""
        drawn = self.draw(np.repeat(np.arange(self.groups), DRAWS), np.random.default_rng(0))
        return drawn.reshape(self.groups, DRAWS, *drawn.shape[1:])

    # -- summaries

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of each group, for a numeric column; by default from 4,096 draws."""
        drawn = self._draws()
        return drawn.mean(axis=1), drawn.var(axis=1)

    def entropy(self, present: np.ndarray | None = None) -> np.ndarray:
        """Return the entropy of a value in each group, in nats; for a block, that of the columns that are present.

        By default it is estimated from 4,096 draws, the same every time, to about 0.01.
        """
        drawn = self._draws()
        values = drawn.reshape(-1, *drawn.shape[2:])
        groups = np.repeat(np.arange(self.groups), DRAWS)
        scored = self.score(values)[np.arange(len(groups)), groups] + self.family.base(values)
        return np.asarray(-scored.reshape(-1, DRAWS).mean(axis=1))

    def divergence(self, shares: np.ndarray) -> np.ndarray:
        """Return the divergence of each group's distribution from that of the whole table, in nats.

        By default the whole is the mixture of the groups, and divergences are averages over 4,096 draws.
        """
        return self.from_mixture(self._draws(), shares)

    def from_mixture(self, values: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return the mean log-ratio of each group's density to the mixture of all, over (groups x values)."""
        scored = self.score(values.reshape(-1, *values.shape[2:])).reshape(*values.shape[:2], -1)
        whole = np.logaddexp.reduce(scored + log_of(shares), axis=-1)
        own = scored[np.arange(len(shares)), :, np.arange(len(shares))]
        return np.asarray((own - whole).mean(axis=1))

    def describe(self) -> list[str]:
        """Describe each group in a few words."""
        each = [[f"{name} {value:.4g}" for value in self.params[name]] for name in self.family.facts.chart]
        return [", ".join(group) for group in zip(*each, strict=True)]

    def typical(self) -> list[Any]:
        """Return a typical value of each group: the most frequent category, the mean, or the median if skewed."""
        mean, variance = self.moments()
        spread = np.sqrt(np.where(np.isfinite(variance), variance, 0.0))
        found: list[Any] = np.where(np.abs(mean) < NOTHING * spread, 0.0, mean).tolist()
        return found

    def decision(self) -> str | None:
        """Describe a setting that was chosen from the counts, such as cut points; None if there is none."""
        return None

    # -- columns

    def conditional(self, cells: np.ndarray, want: int) -> Density:
        """Return the density of one column in every group, given the other cells of its block."""
        return self

    def draw_columns(self, groups: np.ndarray, rng: Rng, cells: np.ndarray | None = None) -> Columns:
        """Draw the values of each column as the user writes them, one for each entry of `groups`.

        If some `cells` of a block are known, only those that are NaN are drawn, given the others.
        """
        if cells is not None:
            return list(self._draw_one_by_one(groups, rng, cells).T)
        return list(np.atleast_2d(self.draw(groups, rng).T))

    def _draw_one_by_one(self, groups: np.ndarray, rng: Rng, cells: np.ndarray) -> np.ndarray:
        """Draw the missing cells of a block one after another, each given those already known; (rows x columns)."""
        start = np.nan_to_num(cells) if self.family.facts.kind.coded else cells  # an open category has the code 0
        values = np.tile(start, (len(groups), 1))
        for want in np.flatnonzero(np.isnan(cells)):
            # Open cells are open in every row. As NaN they would make every row a distinct state.
            states = np.nan_to_num(np.column_stack([groups, values]))
            _, first, which = np.unique(states, axis=0, return_index=True, return_inverse=True)
            for i, row in enumerate(first):
                here = np.flatnonzero(which.ravel() == i)
                single = self.conditional(values[row], int(want))
                values[here, want] = single.draw(np.full(len(here), int(groups[row])), rng)
        return values

    def fill(self, weights: np.ndarray, cells: np.ndarray, want: int) -> np.ndarray:
        """Return the mean or the most probable category of one column, in rows with these group weights."""
        if self.family.facts.counted:
            return np.zeros(len(weights))
        if not self.family.facts.block:
            return np.asarray(weights @ self.moments()[0])
        each = zip(cells, weights, strict=True)
        return np.array([self.conditional(row, want).fill(own, row, 0) for row, own in each])

    def as_normal(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return means (groups x columns) and covariances (groups x columns x columns) of normal columns, else None."""
        return None

    # -- scores as formulas

    def linear(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return weights (groups x features) and intercepts (groups,) of linear log-densities; None if not linear.

        Terms that are common to all groups are left out.
        """
        if not self.family.facts.linear:
            return None
        return self.linear_of(self.family.natural(self.params))

    def linear_of(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and intercepts from natural parameters, or other weights of the features."""
        return natural, np.zeros(len(natural))

    def linear_basis(self) -> np.ndarray | None:
        """Return the (features x parts) basis of natural parameters for linear weights; None for the identity."""
        return None

    def weighted_formula(self, weights: np.ndarray, keys: Keys, sizes: Sizes) -> Formula | None:
        """Return the features times (groups x features) weights as a formula, or None."""
        return None

    def formula(self, keys: Keys, sizes: Sizes) -> Formula | None:
        """Return the log-density in every group, up to terms common to all groups, as a formula.

        The formula uses no special functions, because exports run without NumPy. The result is None if there is no such
        formula. A single column is present, unless the formula looks up a category; of several columns, each may be
        missing. `sizes` holds their numbers of categories. By default it is that of features times natural parameters.
        """
        if not self.is_product:
            return None
        return self.weighted_formula(self.family.natural(self.params), keys, sizes)

    @property
    def lacking(self) -> np.ndarray | None:
        """Weights that count the words that a document must contain but does not; None if no word is certain."""
        return None

    # -- surprise

    def there(self, column: np.ndarray) -> np.ndarray | None:
        """Return which cells are evidence; None if a row holds several."""
        return None if self.family.facts.alone else np.asarray(~np.isnan(column))

    def present(self, column: np.ndarray) -> np.ndarray:
        """Return which cells of a block are present, of shape (rows, columns)."""
        return np.asarray(~np.isnan(column))

    def sizes(self, column: Any) -> np.ndarray:
        """Return the number of counts or words in each row, which is not modelled."""
        return np.ravel(self.family.features(column, self.setting).sum(axis=1)).astype(np.float64)

    def surprise_by_column(self, column: np.ndarray, members: np.ndarray, expected: np.ndarray) -> np.ndarray | None:
        """Return the (rows x columns) surprise of a block in excess of its entropy; None if it cannot be divided.

        The density is averaged over the groups by `members`, the entropy by `expected`.
        """
        return None

    # -- checks of stored parameters

    def find_shape_fault(self) -> str | None:
        """Return a description of what is wrong with the shape or the range of parameters from a file, or None."""
        for name, value in self.own.items():
            if value.shape[:1] != (self.setting.groups,):
                return f"{name} is not given for each of {self.setting.groups} groups"
            if not np.isfinite(value).all() and name not in MAY_BE_INFINITE:
                return f"{name} is not finite"
            if name in MAY_BE_INFINITE and not (value > 0).all():
                return f"{name} is not above zero"
            if (np.abs(value[np.isfinite(value)]) > LARGEST).any():
                return f"{name} is beyond {LARGEST:g}"
        table, levels = self.own.get("probability"), self.setting.levels
        if table is None or table.shape[1:] == self.family._inner_shape("probability", self.setting):
            return None
        return f"it has {len(levels)} levels but {table.shape[1:]} probabilities"

    def find_fault(self) -> str | None:
        """Return a description of what is wrong with these parameters, or None."""
        return find_range_fault(self.family.facts.chart, self.own)


def concatenate_groups(parts: Sequence[Density]) -> Density:
    """Return one density with the groups of all parts, which have one family and one setting."""
    own = {name: np.concatenate([part.own[name] for part in parts]) for name in parts[0].own}
    return parts[0].family.density(own, parts[0].setting)


def patterns(present: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rows with the same pattern of missing cells, and that pattern (true if present)."""
    if present.all():
        yield np.arange(len(present)), np.ones(present.shape[1], dtype=bool)
        return
    distinct, which = np.unique(present, axis=0, return_inverse=True)
    for i, pattern in enumerate(distinct):
        yield np.flatnonzero(which.ravel() == i), pattern
