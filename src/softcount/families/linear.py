"""Linear: a number that depends linearly on other numbers, with normal noise, in every group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.counts import Twofold
from softcount.core.special import HALF_LOG_2PI
from softcount.errors import DataError
from softcount.families.base import Family, format_number, register, scalar_prior
from softcount.families.density import Density
from softcount.families.moments import block_moments
from softcount.families.multinormal import Multinormal
from softcount.families.normal import scale_evidence
from softcount.families.setting import Facts, How, Hyper, Params, Setting
from softcount.table.schema import Field, Key

LINEAR_FACTS = Facts(
    chart={"line": "plain", "variance": "log"},
    exact=False, has_products=False, rows=0, alone=True, signed=True, joins_numbers=True,
    spread="variance",
)  # fmt: skip
FLAT = 1e-13
"""Share of the total variation below which numbers count as constant along a direction, which gets no coefficient."""


class LinearDensity(Density):
    """A normal around a line in other numbers."""

    family: Linear

    def regression(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return intercepts, coefficients (groups x numeric parents) and residual variances, in counting units."""
        return self.own["line"][:, 0], self.own["line"][:, 1:], self.own["variance"]

    def entropy(self, present: np.ndarray | None = None) -> np.ndarray:
        """Return the entropy given its parents."""
        return np.asarray(HALF_LOG_2PI + 0.5 + 0.5 * np.log(self.own["variance"]) - np.log(self.setting.scale[0]))

    def describe(self) -> list[str]:
        lines, names = [], self.family.parents
        each = (self.params[name] for name in ("intercept", "coefficients", "variance"))
        for start, slopes, variance in zip(*each, strict=True):
            terms = [f"{format_number(slope, 4)} {parent}" for slope, parent in zip(slopes, names, strict=True)]
            lines.append(f"{' + '.join([format_number(start, 4), *terms])}, sd {format_number(np.sqrt(variance), 3)}")
        return lines


@register
class Linear(Family, Struct, frozen=True):
    """A number of a network that depends on the numbers `parents`: intercept + coefficients . parents + noise.

    Statistics are those of a correlated block of the number and its parents: rows, sums and products of `(x - anchor) *
    scale`. A prior of `a` rows has the columns' own variances and no correlation. Coefficients are (SS_xx + a s2_x)^-1
    SS_xy; with one parent and no prior, those of least squares:

    >>> height, age = np.array([1.0, 2.0, 4.0]), np.array([0.0, 1.0, 2.0])
    >>> rows = np.stack([height, age], axis=1)
    >>> sums = np.concatenate([[3.0], rows.sum(axis=0), (rows.T @ rows).ravel()])
    >>> line = Linear(("age",))
    >>> setting = Setting(("height",), anchor=np.zeros(2), scale=np.ones(2))
    >>> stats = Twofold.of(sums[None])
    >>> found = line.public(line.estimate(stats, line.hyper(0.0, stats, setting), "ml"), setting)
    >>> found["coefficients"].round(9), found["intercept"].round(6)
    (array([[1.5]]), array([0.833333]))
    """

    parents: tuple[Key, ...] = ()

    name = "linear"
    _density = LinearDensity

    def __post_init__(self) -> None:
        if not isinstance(self.parents, tuple):
            raise DataError(f"the parents of a number are a tuple of columns, not {self.parents!r}.")

    @property
    def facts(self) -> Facts:  # type: ignore[override]
        return replace(LINEAR_FACTS, number_parents=self.parents)

    def set_up(self, key: Key, fields: Sequence[Field], groups: int, floor: float) -> tuple[Family, Setting]:
        if not self.parents or len(fields) != 1 + len(self.parents):
            raise DataError(
                f"column {key!r}: linear is the distribution of a normal node with normal parents, which the edges "
                f"of a network determine. Declare it normal."
            )
        family, setting = Family.set_up(self, key, fields, groups, floor)
        return family, replace(setting, keys=(key,), levels=(key,))

    def width(self, setting: Setting) -> int:
        d = 1 + len(self.parents)
        return 1 + d + d * d

    def rebase(self, stats: Twofold, was: Any, old: Setting, new: Setting) -> Twofold:
        """Convert statistics, also if the other family names the same parents in another order."""
        d, order = 1 + len(self.parents), np.array([0, *(1 + was.parents.index(key) for key in self.parents)])
        picked = np.concatenate([[0], 1 + order, (1 + d + order[:, None] * d + order).ravel()])
        before = replace(old, anchor=old.anchor[order], scale=old.scale[order])
        return Multinormal.rebase(Multinormal(), stats[:, picked], Multinormal(), before, new)

    is_overdrawn = Multinormal.is_overdrawn

    # -- learning

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        rows, mean, scatter = block_moments(stats.sum(0).spread(0))
        mass, middle = float(rows[0]), mean[0]
        spread = np.diagonal(scatter[0]) / mass if mass > 0 else np.ones(len(middle))
        finest = setting.resolution(middle, 1e-140) ** 2
        whole = np.maximum(spread, finest)
        extra = scalar_prior(prior, self, groups=setting.groups) if mass > 0 else 0.0
        floor = np.array(max(setting.floor * whole[0], finest[0]))
        return {"centre": middle, "whole": whole, "floor": floor, "nu": np.array(extra)}

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        rows, mean, scatter = block_moments(stats)
        nu = _prior_rows(hyper, how)
        slopes, squares, _ = _best_line(scatter, hyper["whole"], nu)
        mean = np.where(rows[:, None] > 0, mean, hyper["centre"])
        intercept = mean[:, 0] - (slopes * mean[:, 1:]).sum(axis=1)
        weight = rows + nu
        variance = np.where(weight > 0, squares / np.where(weight > 0, weight, 1.0), hyper["whole"][0])
        line = np.concatenate([intercept[:, None], slopes], axis=1)
        return {"line": line, "variance": np.maximum(variance, hyper["floor"])}

    def completed(self, stats: Twofold, params: Params) -> float:
        rows, mean, scatter = block_moments(stats)
        line, variance = params["line"], params["variance"]
        against = np.concatenate([np.ones((len(line), 1)), -line[:, 1:]], axis=1)
        off = (against * mean).sum(axis=1) - line[:, 0]
        squares = np.einsum("gi,gij,gj->g", against, scatter, against) + rows * off**2
        return float((-0.5 * (squares / variance + rows * np.log(variance)) - rows * HALF_LOG_2PI).sum())

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        nu, whole, variance = _prior_rows(hyper, how), hyper["whole"], params["variance"]
        squares = whole[0] + (params["line"][:, 1:] ** 2 * whole[1:]).sum(axis=1)
        return np.asarray(-0.5 * nu * (np.log(variance) + squares / variance))

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        """Return the log evidence with coefficients and variance integrated out.

        For the intercept, only the part that does not depend on its prior is included. The variance has one more degree
        of freedom for every parent, so that graphs with the same independences have the same evidence. Coefficients
        without prior rows are treated like the intercept.
        """
        rows, _, scatter = block_moments(stats)
        nu, k = float(hyper["nu"]), len(self.parents)
        _, squares, grown = _best_line(scatter, hyper["whole"], nu)
        before = np.full(len(rows), nu * hyper["whole"][0])
        slopes = -0.5 * grown if nu > 0 else np.zeros(len(rows))
        freedom = np.full(len(rows), nu + k if nu > 0 else 0.0)
        return float((slopes + scale_evidence(rows, squares - before, freedom, before)).sum())

    def _inner_shape(self, name: str, setting: Setting) -> tuple[int, ...]:
        return (1 + len(self.parents),) if name == "line" else ()

    def log_unit(self, stats: Twofold, setting: Setting) -> float:
        return float(stats.value[:, 0].sum() * np.log(setting.scale[0]))

    def public(self, params: Params, setting: Setting) -> Params:
        unit, anchor = setting.scale, setting.anchor
        slopes = params["line"][:, 1:] * (unit[1:] / unit[0])
        intercept = params["line"][:, 0] / unit[0] + (anchor[0] - slopes @ anchor[1:])
        with np.errstate(over="ignore"):
            variance = params["variance"] / unit[0] / unit[0]
        return {"intercept": intercept, "coefficients": slopes, "variance": variance}

    def private(self, params: Params, setting: Setting) -> Params:
        unit, anchor, k = setting.scale, setting.anchor, len(self.parents)
        slopes, start = np.asarray(params["coefficients"], float), np.asarray(params["intercept"], float)
        if slopes.shape != (*start.shape[:1], k) or start.ndim != 1:
            raise DataError(
                f"column {setting.keys[0]!r} needs an intercept and {k} coefficient{'s' * (k > 1)} of each group, "
                f"not arrays of {start.shape} and {slopes.shape}."
            )
        start = (start - (anchor[0] - slopes @ anchor[1:])) * unit[0]
        line = np.concatenate([start[:, None], slopes * (unit[0] / unit[1:])], axis=1)
        return {"line": line, "variance": np.asarray(params["variance"], float) * unit[0] ** 2}


def _prior_rows(hyper: Hyper, how: How) -> float:
    return 0.0 if how == "ml" else float(hyper["nu"])


def _best_line(scatter: np.ndarray, whole: np.ndarray, nu: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return coefficients, squared residuals, and the growth of the parents' log-determinant from `nu`, by group.

    All include prior rows. A direction in which the parents do not vary has no coefficient.
    """
    unit = np.sqrt(whole)
    full = scatter / (unit[:, None] * unit) + nu * np.eye(len(unit))
    across = full[:, 1:, 0]
    values, vectors = np.linalg.eigh(full[:, 1:, 1:])
    varies = values > FLAT * values.sum(axis=1, keepdims=True)
    inverse = np.where(varies, 1.0 / np.where(varies, values, 1.0), 0.0)
    turned = np.einsum("gji,gj->gi", vectors, across)
    slopes = np.einsum("gij,gj->gi", vectors, inverse * turned)
    squares = np.maximum(full[:, 0, 0] - (turned * inverse * turned).sum(axis=1), 0.0)
    grown = np.log(np.where(varies, values / nu, 1.0)).sum(axis=1) if nu > 0 else np.zeros(len(full))
    return slopes * (unit[0] / unit[1:]), squares * whole[0], grown
