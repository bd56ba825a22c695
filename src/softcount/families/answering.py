"""What a family says of its columns once they have parameters: answers, draws, fills, surprise, words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from softcount.errors import DataError
from softcount.families.capabilities import Capabilities
from softcount.families.setting import ClosedForm, How, Hyper, Params, Setting
from softcount.numerics.twofold import Twofold
from softcount.table.schema import Key, Kind

if TYPE_CHECKING:
    from softcount.families.base import Family
    from softcount.families.text_family import WordFigures

Columns = list[Sequence[Any] | np.ndarray]
Rng = np.random.Generator
NOTHING = 1e-6
"""Of its spread, below which a mean is said to be 0: memberships of 1e-140 left "mean 1.597e-133" in Adult."""


class Answering(Capabilities):
    """Parameters are the public ones, in the user's units, unless a method says otherwise.

    Defaults are those of a single column of numbers. `cells` of a block are its columns' codes or numbers as floats,
    and `want` is the place of one of its columns.
    """

    in_units: ClassVar[bool] = False
    """Whether its linear form is of one number in some unit, besides whether it is there."""
    counted: ClassVar[bool] = False
    """Whether a row holds counts that are scored one by one: the ways to order them are then no surprise."""

    @property
    def title(self) -> str:
        """Its name as a report has it."""
        return self.name

    @property
    def whole_numbers(self) -> bool:
        """Whether its values are 0, 1, 2, ..."""
        return self.kind is Kind.COUNT

    def as_kind(self) -> str | Family:
        """What `kinds` takes for it: its name, where all its settings are the usual, or itself."""
        parts = signature(type(self._core)).parameters.values()
        usual = all(getattr(self, part.name) == part.default for part in parts)
        return self.name if usual else self._core

    # -- a column from others

    def levels_of(self, setting: Setting, want: int | None = None) -> Sequence[object] | None:
        """The levels of one of its columns, or of all together; None where it holds numbers or words."""
        return None

    def refuse_query(self, column: Key) -> None:
        """Raise where one of its columns cannot be asked for."""
        if self.counted:
            raise DataError(
                f"{column!r} is part of a {self.name} block, whose size is not modelled: it cannot be asked for."
            )

    @property
    def answers(self) -> bool:
        """Whether its columns can be asked for, one by one."""
        return not self.counted and self.kind is not Kind.TEXT

    def conditional(self, params: Params, setting: Setting, cells: np.ndarray, want: int) -> tuple[Family, Params]:
        """One column's family and parameters in every group, given the other cells of its block."""
        return self._core, params

    # -- draws and fills

    def draw_columns(
        self, params: Params, setting: Setting, groups: np.ndarray, rng: Rng, cells: np.ndarray | None = None
    ) -> Columns:
        """Each column's values as the user writes them, one for each entry of `groups`.

        Where some `cells` of a block are known, only those that are NaN are drawn, as far as the others tell of them.
        """
        return list(np.atleast_2d(self._core.draw(params, groups, rng).T))

    def fill(self, params: Params, setting: Setting, weights: np.ndarray, cells: np.ndarray, want: int) -> np.ndarray:
        """The mean, or the likeliest level, of one column in rows that have these `weights` of the groups."""
        return np.zeros(len(weights)) if self.counted else np.asarray(weights @ self._core.moments(params)[0])

    # -- classes

    def typical(self, params: Params, setting: Setting) -> list[Any]:
        """What is typical of each group: the commonest level, the mean, the median of what spans sizes."""
        mean, variance = self._core.moments(params)
        spread = np.sqrt(np.where(np.isfinite(variance), variance, 0.0))
        found: list[Any] = np.where(np.abs(mean) < NOTHING * spread, 0.0, mean).tolist()
        return found

    def of_rows(self, stats: Twofold, hyper: Hyper) -> Params:
        """What the rows alone are like, in counting units: nothing imagined. It is shown, not scored with."""
        return self._core.estimate(stats, hyper, "ml")

    def pooled_hyper(self, hyper: Hyper) -> Hyper:
        """The prior of one class where every class has its own counts of levels: what they imagine on average."""
        alpha = hyper.get("alpha", np.zeros(0))
        return hyper | {"alpha": alpha.mean(axis=0)} if alpha.ndim > 1 else hyper

    def linear(self, params: Params, setting: Setting) -> tuple[np.ndarray, np.ndarray] | None:
        """(groups x features) weights and (groups,) intercepts of log-densities that are linear but for what all
        groups have in common; None where they are not."""
        return None

    def linear_of(self, natural: np.ndarray, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
        """The same weights and intercepts from natural parameters, for a family that is linear."""
        return natural, np.zeros(len(natural))

    def linear_basis(self, setting: Setting) -> np.ndarray | None:
        """(features x parts) what natural parameters are made of where linear weights vary; None: each by itself."""
        return None

    def as_normal(self, params: Params) -> tuple[np.ndarray, np.ndarray] | None:
        """(groups x columns) means and (groups x columns x columns) covariances of columns that are normal in every
        group as they stand; None where they are not."""
        return None

    def closed_form(self, params: Params) -> ClosedForm | None:
        """Its log-density in every group, up to what no group changes, as a formula that needs no special function.

        It is for places where there is no NumPy: `form` is the formula's name, the rest are its numbers by group. None
        where there is no such formula.
        """
        return None

    def weighted_form(self, weights: np.ndarray, setting: Setting) -> ClosedForm | None:
        """Its features times (groups x features) weights as such a formula; None where there is none."""
        return None

    # -- surprise

    def own_base(self, column: Any) -> np.ndarray | float:
        """The part of the log-density that no group changes, as far as it is a surprise."""
        return 0.0 if self.counted else self._core.base(column)

    def average_surprise(self, params: Params, setting: Setting, present: np.ndarray | None = None) -> np.ndarray:
        """The entropy in every group, from private parameters; of a block, of the columns that are present."""
        return self._core.entropy(self.public(params, setting))

    def there(self, column: np.ndarray, params: Params, setting: Setting) -> np.ndarray | None:
        """Which cells are evidence; None where a row holds more than one."""
        return None if self.alone else np.asarray(~np.isnan(column))

    def present(self, column: np.ndarray) -> np.ndarray:
        """(rows x columns) which cells of a block are there."""
        return np.asarray(~np.isnan(column))

    def sizes(self, column: Any, setting: Setting) -> np.ndarray:
        """How many counts or words each row holds: so many are usual, as their number is not modelled."""
        return np.ravel(self._core.features(column, setting).sum(axis=1)).astype(np.float64)

    def usual(
        self, column: Any, params: Params, setting: Setting, weights: np.ndarray, average: np.ndarray
    ) -> np.ndarray:
        """The entropy of the cells that each row holds, averaged over the groups by (rows x groups) weights.

        Takes private parameters and their `average_surprise`.
        """
        if self.counted:
            return np.asarray(self.sizes(column, setting) * (weights @ average))
        there = self.there(column, params, setting)
        if there is not None:
            return np.where(there, weights @ average, 0.0)
        out = np.zeros(len(weights))
        for rows, present in patterns(self.present(column)):
            if present.any():
                out[rows] = weights[rows] @ self.average_surprise(params, setting, present)
        return out

    def surprise_by_column(
        self, column: np.ndarray, params: Params, setting: Setting, members: np.ndarray, expected: np.ndarray
    ) -> np.ndarray | None:
        """(rows x columns) surprise of a block beyond what is usual, from private parameters; None: it is one.

        The density is averaged over the groups by `members`, what is usual by `expected`.
        """
        return None

    # -- words

    def words_of(self, setting: Setting) -> WordFigures | None:
        """What there is to say of its words, where it has any."""
        return None

    def seen(self, stats: Twofold) -> np.ndarray | None:
        """Which of its words any group holds; None where it has none."""
        return None

    def estimate_seen(self, stats: Twofold, hyper: Hyper, how: How, seen: np.ndarray) -> Params:
        """What a fit that knew only the seen words would give."""
        return self._core.estimate(stats, hyper, how)


# -- blocks whose columns tell of each other


def draw_one_by_one(
    family: Family, params: Params, setting: Setting, groups: np.ndarray, rng: Rng, cells: np.ndarray
) -> np.ndarray:
    """(rows x columns) cells of a block: those that are NaN one after another, each given those already known."""
    start = np.nan_to_num(cells) if family.levels_of(setting) else cells  # an open level has the code 0
    values = np.tile(start, (len(groups), 1))
    for want in np.flatnonzero(np.isnan(cells)):
        # What is still open is open in every row, and NaN would make each row a state of its own.
        states = np.nan_to_num(np.column_stack([groups, values]))
        _, first, which = np.unique(states, axis=0, return_index=True, return_inverse=True)
        for i, row in enumerate(first):
            here = np.flatnonzero(which.ravel() == i)
            single, own = family.conditional(params, setting, values[row], int(want))
            values[here, want] = single.draw(own, np.full(len(here), int(groups[row])), rng)
    return values


def fill_one_by_one(
    family: Family, params: Params, setting: Setting, weights: np.ndarray, cells: np.ndarray, want: int
) -> np.ndarray:
    """Fills of one column of a block, row by row: each given the other cells of its row."""
    alone, found = replace(setting, levels=family.levels_of(setting, want) or ()), []
    for row, own in zip(cells, weights, strict=True):
        single, part = family.conditional(params, setting, row, want)
        found.append(single.fill(part, alone, own, row, 0))
    return np.array(found)


def patterns(present: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Row numbers that share a pattern of holes, with that pattern (true where present)."""
    if present.all():
        yield np.arange(len(present)), np.ones(present.shape[1], dtype=bool)
        return
    distinct, which = np.unique(present, axis=0, return_inverse=True)
    for i, pattern in enumerate(distinct):
        yield np.flatnonzero(which.ravel() == i), pattern
