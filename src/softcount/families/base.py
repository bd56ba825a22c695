"""The interface that every family implements, and the registry of families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from softcount.core import remedies
from softcount.core.twofold import Twofold
from softcount.errors import DataError, ModelFileError
from softcount.families import answers
from softcount.families.answers import NOTHING, Answering
from softcount.families.setting import (
    HOWS,
    IMPOSSIBLE,
    How,
    Hyper,
    Line,
    Params,
    Setting,
    given_numbers,
    held_numbers,
    inner_shape,
)
from softcount.table.cell_forms import is_plain, write_cell
from softcount.table.schema import Field, Key, Kind

LARGEST = 1e150
"""Limit of parameters, in counting units: beyond it squares and products overflow."""

MAY_BE_INFINITE = ("freedom",)
"""Parameters that have no largest value: with infinite freedom a t distribution is normal."""


class Filing(Answering):
    """The part of a family that files and reports use."""

    __struct_fields__: ClassVar[tuple[str, ...]]

    @property
    def word_model(self) -> str | None:
        """The name of its model of words; None if it does not model words."""
        return None

    # -- itself

    @classmethod
    def key_in(cls, text: str) -> Key:
        """The column that a text names, or the block of columns with commas between them."""
        return tuple(text.split(",")) if cls.block else text

    @classmethod
    def spelt(cls, how: str) -> Family:
        """The family with the settings written after its name and a colon."""
        raise DataError(f"{cls.name}:{how} is not a kind we know: nothing can stand after {cls.name}.")

    # -- its columns

    def takes(self, kind: Kind) -> bool:
        """Whether it can model a column of this kind."""
        return kind.numeric

    def check_columns(self, key: Key, columns: tuple[Key, ...], alone: bool) -> None:
        """Raise an error if the columns do not match the key; `alone` if nothing else is modelled."""
        if not columns or key != (columns if self.block else columns[0]):
            raise ModelFileError(f"{key!r} is {self.name} of the columns {list(columns)!r}.")

    def check_field(self, spec: Field, setting: Setting, place: int) -> None:
        """Raise an error if it cannot model a column, or if the levels of the column differ from its own."""
        if not spec.used or not self.takes(spec.kind):
            raise ModelFileError(f"column {spec.key!r} ({spec.kind}) cannot be {self.name}.")
        levels = self.levels_of(setting, place)
        if levels is not None and tuple(levels) != spec.levels:
            raise ModelFileError(f"column {spec.key!r} has two different lists of levels.")

    # -- its setting

    def filed_levels(self, setting: Setting) -> Any:
        """Its levels for a file: plain values and tuples of them."""
        return len(setting.levels)

    def setting_parts(self, levels: Any, specs: Sequence[Field], widest: int) -> dict[str, Any]:
        """Levels from a file, and other arguments of its `setting_type`; no table there is wider than `widest`."""
        if not specs and (type(levels) is not int or not 0 <= levels <= widest):
            raise ModelFileError(f"width is {levels!r}, which is not a whole number between 0 and {widest}.")
        return {"levels": tuple(spec.key for spec in specs) or tuple(range(levels))}

    def units(self, columns: tuple[Key, ...]) -> int:
        """How many anchors and scales it has."""
        return len(columns) or 1

    # -- its numbers

    def misshapen(self, params: Params, setting: Setting, groups: int) -> str | None:
        """A description of what is wrong with the shape or the range of parameters that were read, or None."""
        for name, value in params.items():
            if value.shape[:1] != (groups,):
                return f"{name} is not given for each of {groups} groups"
            if not np.isfinite(value).all() and name not in MAY_BE_INFINITE:
                return f"{name} is not finite"
            if name in MAY_BE_INFINITE and not (value > 0).all():
                return f"{name} is not above zero"
            if (np.abs(value[np.isfinite(value)]) > LARGEST).any():
                return f"{name} is beyond {LARGEST:g}"
        table, levels = params.get("probability"), setting.levels
        if table is None or table.shape[1:] == inner_shape(self._core, "probability", setting):
            return None
        return f"it has {len(levels)} levels but {table.shape[1:]} probabilities"

    def check_hyper(self, hyper: Hyper) -> str | None:
        """A description of what is wrong with prior parameters that were read, or None."""
        if not all(np.isfinite(value).all() for value in hyper.values()):
            return "it imagines what is not finite"
        imagined = hyper.get("alpha", np.zeros(1))
        return None if (imagined >= 0).all() else "it imagines less than nothing"


__all__ = ["FAMILIES", "HOWS", "IMPOSSIBLE", "Family", "How", "Hyper", "Line", "Params", "Setting", "register"]

NEVER_BELOW_ONE = ("jeffreys", "row", "bdeu")
"""Priors without a mode, which imply `mean`."""


class Family(Filing):
    """A configured distribution. It holds neither data nor parameters.

    A family whose log-density is features times natural parameters implements only those two; `score` follows. A new
    family must implement or inherit the members of this class; optional ones are in `Capabilities`.
    """

    chart: ClassVar[Mapping[str, Line]] = {}
    """The parameters that EM changes, each with the scale on which straight lines make sense.

    Plain, logarithm, share, shares that sum to one along the last axis, or covariance. Every M-step computes all other
    parameters again.
    """

    # Of what can be derived in a few lines or more, the default is a function of the family.
    slope = answers.slope_by_differences
    evidence = answers.schwarz_evidence
    divergence = answers.divergence
    given = given_numbers
    held_at = held_numbers

    def width(self, setting: Setting) -> int:
        """How many features a column has."""
        raise NotImplementedError

    def check(self, column: np.ndarray, key: Key, start: int) -> None:
        """Refuse values the family cannot hold, naming column and row; here those that its kind cannot."""
        if self.kind is Kind.COUNT:
            check_counts(column, key, start)
        elif self.kind is Kind.POSITIVE:
            bad = column <= 0
            if bad.any():
                row = where_first(bad, start)
                raise DataError(
                    f"column {key!r} is positive ({self.name}), but row {row} holds {column[row - start - 1]:g}. "
                    f"Declare it real: {remedies.kind(key, 'normal')}"
                )

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        """The (rows x width) matrix whose sums are all that is ever learned; a null row is zeros."""
        raise NotImplementedError

    def base(self, column: np.ndarray) -> np.ndarray | float:
        """The part of each row's log-density that no group changes."""
        return 0.0

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        """The prior parameters for `prior`."""
        raise NotImplementedError

    def estimate(self, stats: Twofold, hyper: Hyper, how: How) -> Params:
        """Parameters of every group from its statistics and the prior."""
        raise NotImplementedError

    def natural(self, params: Params) -> np.ndarray:
        """(groups x width) parameters that multiply the features."""
        raise NotImplementedError

    def score(self, column: np.ndarray, params: Params, setting: Setting) -> np.ndarray:
        """(rows x groups) log-density of one column, without `base`."""
        return np.asarray(self.features(column, setting) @ self.natural(params).T)

    def completed(self, stats: Twofold, params: Params) -> float:
        """Log-likelihood of complete rows with these statistics, in counting units and without `base`."""
        counts = stats.value
        with np.errstate(invalid="ignore"):
            return float(np.where(counts != 0, counts * self.natural(params), 0.0).sum())

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        """The log prior, in every group and column, without its normalising constant."""
        imagined = self.imagined_stats(hyper, how)
        if imagined is None:
            raise NotImplementedError
        height = answers.product(imagined, self.natural(params))
        return np.where(height > IMPOSSIBLE, height, -np.inf)

    def free(self, setting: Setting, groups: int, columns: int = 1) -> int:
        """The number of free parameters over all groups, for this many like columns; shared ones count once."""
        return groups * columns * len(self.chart)

    def draw(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One value for each entry of `groups`, from public parameters."""
        raise NotImplementedError

    def describe(self, params: Params, setting: Setting) -> list[str]:
        """Each group in a few words, from public parameters."""
        said = [[f"{name} {value:.4g}" for value in params[name]] for name in self.chart]
        return [", ".join(group) for group in zip(*said, strict=True)]

    def entropy(self, params: Params) -> np.ndarray:
        """The entropy of a value in each group, in nats, from public parameters.

        Computed from the mean features if they are known and the density has no other part. Otherwise from 4,096 draws,
        the same every time: good to about 0.01.
        """
        return answers.entropy(self, params, simple=type(self).base is Family.base)

    def moments(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of each group, for a numeric column; here by 4,096 draws."""
        drawn = answers.draws(self, params)
        return drawn.mean(axis=1), drawn.var(axis=1)

    def cdf(self, params: Params, x: float) -> np.ndarray:
        """The probability in each group of a value of at most x; here by 4,096 draws."""
        return np.asarray((answers.draws(self, params) <= x).mean(axis=1))

    def survival(self, params: Params, x: float) -> np.ndarray:
        """The probability in each group of a value above x.

        The default is 1 - `cdf`, which loses digits in the upper tail.
        """
        return np.asarray(1.0 - self.cdf(params, x))

    def mass_at(self, params: Params, x: float) -> np.ndarray:
        """The probability in each group of exactly x, which is 0 for a density."""
        nearest = self.cdf(params, x) - self.cdf(params, x - 1.0) if self.whole_numbers else np.zeros(1)
        return np.asarray(nearest + np.zeros(len(next(iter(params.values())))))

    @property
    def has_cdf(self) -> bool:
        """Whether probabilities of ranges are exact: by draws they are not."""
        return type(self).cdf is not Family.cdf

    def check_params(self, params: Params) -> str | None:
        """A description of what is wrong with these parameters, or None."""
        return answers.senseless(self.chart, params)


FAMILIES: dict[str, type[Family]] = {}


def register(family: type[Family]) -> type[Family]:
    """Make a family known by its name everywhere: kinds, model files, contract tests, the command line."""
    FAMILIES[family.name] = family
    return family


def given_family(said: object) -> Family | None:
    """A declared kind if it is a family and not a name."""
    return said if isinstance(said, Family) else None


def scalar_prior(prior: Any, family: Family, levels: int = 1, groups: int = 1) -> float:
    """The number of prior rows, or counts per level, for a prior given as a word or a number.

    "row" is one row in every group, "bdeu" one row in the whole table, shared by groups and levels.
    """
    if isinstance(prior, str):
        words = {"flat": 1.0, "laplace": 1.0, "jeffreys": 0.5, "row": 1 / levels, "bdeu": 1 / (levels * max(groups, 1))}
        if prior not in words:
            raise DataError(f"prior {prior!r} is not known. Use a number, 'flat', 'jeffreys', 'bdeu', 'row' or 'auto'.")
        return words[prior]
    if isinstance(prior, bool) or not isinstance(prior, (int, float, np.integer, np.floating)):
        raise DataError(f"a {family.name} column cannot take {prior!r} as its prior.")
    if not np.isfinite(prior) or prior < 0:
        raise DataError(f"a prior is a number of imagined counts, 0 or more, not {prior}.")
    return float(prior)


def spoken(value: float, digits: int, beside: float = 0.0) -> str:
    """A number in a few digits as people write it; 0 if it is negligible compared with a spread.

    >>> spoken(21387.6, 4), spoken(0.2461, 3), spoken(1.597e-133, 4, beside=6.21)
    ('21,388', '0.246', '0')
    """
    if abs(value) < NOTHING * beside:
        return "0"
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.{digits}g}"


def said(setting: Setting, value: float, plain: str) -> str:
    """A number of a column as its cells are written; `plain` if they are plain numbers."""
    return plain if is_plain(setting.written) else str(write_cell(setting.written, float(value)))


def said_spread(setting: Setting, value: float) -> str:
    """The spread of a column in a few digits, in the units of its cells."""
    written = setting.written
    return spoken(value, 3) if written is None or is_plain(written) else written.write_difference(float(value))


def check_counts(column: np.ndarray, key: Key, start: int) -> None:
    """Raise an error, naming column and row, for a value that is not 0, 1, 2, ..."""
    bad = (column < 0) | (column != np.floor(column)) & ~np.isnan(column)
    if bad.any():
        row = where_first(bad, start)
        raise DataError(
            f"column {key!r} is a count, but row {row} holds {column[row - start - 1]:g}. Counts are 0, 1, 2, ...\n"
            f"  Declare it real: {remedies.kind(key, 'normal')}     or leave it out: {remedies.kind(key, 'ignore')}"
        )


def where_first(bad: np.ndarray, start: int) -> int:
    """The 1-based row number of the first true entry."""
    return start + int(np.argmax(bad if bad.ndim == 1 else bad.any(axis=1))) + 1
