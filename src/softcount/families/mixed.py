"""Mixed columns: several normals per group, for columns with more than one mode; alone or as a block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.counts import Twofold, concatenate
from softcount.core.formulas import Cell, Formula, Keys, Sizes, log_sum, normal_density
from softcount.core.special import NARROW, least_share, log_of, ndtr, softmax_rows
from softcount.errors import DataError
from softcount.families.base import Family, format_number, register, scalar_prior
from softcount.families.categorical import Categorical, estimate_shares, prior_counts
from softcount.families.density import Density
from softcount.families.normal import Normal, NormalDensity, centred_sums
from softcount.families.setting import SMALLEST, Facts, How, Hyper, Labels, Params, Setting
from softcount.priors import NormalInverseChi2
from softcount.table.schema import Field, Key

MOST_ROWS = 1_000
"""Number of rows to which an initialisation is fitted; of more, evenly spaced ones are taken."""
STEPS = 25
ENOUGH = 1e-3
"""Nats per unit of weight that a step must gain for another step to follow."""
WITHIN = 0.01
"""Share of a column's variance for the prior row of each of several parts: a part is narrower than the whole."""
NORMAL = Normal()
Parts = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Shares (parts,), means and variances (parts, columns)."""


def fit_parts(values: np.ndarray, weights: np.ndarray, parts: int) -> Parts:
    """Fit normal parts to (rows x columns) numbers, NaN if missing; parts with smaller means come first."""
    there = (weights > 0) & ~np.isnan(values).all(axis=1)
    values, weights = values[there], weights[there]
    if not len(values):
        return np.full(parts, 1.0 / parts), np.zeros((parts, values.shape[1])), np.ones((parts, values.shape[1]))
    every = -(-len(values) // MOST_ROWS)
    values, weights = values[::every], weights[::every]
    # A constant column, or one without values, gets a deviation of one.
    here = ~np.isnan(values)
    mass = np.maximum(weights @ here, 1e-300)
    centre = weights @ np.where(here, values, 0.0) / mass
    square = weights @ np.where(here, values - centre, 0.0) ** 2 / mass
    unit = np.where(square > 0, np.sqrt(square), 1.0)
    share, mean, variance = _best_start((values - centre) / unit, weights, parts)
    order = np.lexsort(np.round(mean, 6).T[::-1])
    return share[order], mean[order] * unit + centre, variance[order] * unit * unit


def _best_start(moved: np.ndarray, weights: np.ndarray, parts: int) -> Parts:
    """Return the parts of the most likely EM run; a later run must be clearly better than an earlier one.

    A run is initialised by sorting the rows and dividing them into parts: by each column, by the first principal axis,
    by the distance from 0.
    """
    here = ~np.isnan(moved)
    filled = np.where(here, moved, 0.0)
    features = np.concatenate([here, filled, filled * filled], axis=1)
    found: tuple[float, Parts] | None = None
    orders = [*filled.T]
    if filled.shape[1] > 1:
        _, axes = np.linalg.eigh((filled * weights[:, None]).T @ filled)
        orders.append(np.round(filled @ axes[:, -1], 12))
    orders.append(np.round((filled * filled).sum(axis=1), 12))
    for order in orders:
        run = _run_em(features, weights, _cut(order, weights, parts))
        if found is None or run[0] > found[0] + 1e-3 * weights.sum():
            found = run
    assert found is not None
    return found[1]


def _cut(order: np.ndarray, weights: np.ndarray, parts: int) -> np.ndarray:
    """Return (rows x parts) memberships of equal weight along an order; equal rows have equal memberships."""
    _, which = np.unique(order, return_inverse=True)
    mass = np.bincount(which, weights)
    ends = np.cumsum(mass) / mass.sum() * parts
    begins = np.concatenate([[0.0], ends[:-1]])
    bounds = np.arange(parts)
    inside = np.minimum(ends[:, None], bounds + 1.0) - np.maximum(begins[:, None], bounds)
    inside = np.maximum(inside, 0.0)
    return np.asarray((inside / inside.sum(axis=1, keepdims=True))[which])


def _run_em(features: np.ndarray, weights: np.ndarray, members: np.ndarray) -> tuple[float, Parts]:
    """Return the log-posterior and the parts after at most 25 steps of EM, with a prior row in every part."""
    columns, height, parts = features.shape[1] // 3, -np.inf, None
    for _ in range(STEPS):
        sums = (members * weights[:, None]).T @ features
        rows, total, squares = (sums[:, k * columns : (k + 1) * columns] for k in range(3))
        mass = members.T @ weights + 1.0
        mean = total / np.maximum(rows, 1e-12)
        variance = (np.maximum(squares - mean * total, 0.0) + WITHIN) / (rows + 1.0)
        share = mass / mass.sum()
        parts = share, mean, variance
        constant = -0.5 * (mean * mean / variance + np.log(variance))
        eta = np.concatenate([constant, mean / variance, -0.5 / variance], axis=1)
        members, rowwise = softmax_rows(features @ eta.T + np.log(share))
        prior = float(np.log(share).sum() - 0.5 * (np.log(variance) + WITHIN / variance).sum())
        before, height = height, float(rowwise @ weights) + prior
        if height - before < ENOUGH * weights.sum():
            break
    assert parts is not None
    return height, parts


MOST_PARTS = 20
WORTH_TRYING = (2, 3, 4)
"""Numbers of parts among which the rows choose."""
USUAL_PARTS = 2
"""Default number of parts if no rows can choose."""


class MixedDensity(Density):
    """A mixture of normals in every group: `bells` has one density per column, over all groups and parts."""

    family: Mixed

    @cached_property
    def bells(self) -> list[NormalDensity]:
        wide = self.family._wide(self.own)
        return [
            NormalDensity(
                NORMAL, {name: wide[name][..., j].ravel() for name in ("mean", "variance")}, _unit(self.setting, j)
            )
            for j in range(len(self.setting.anchor))
        ]

    def members(self, rows: np.ndarray) -> np.ndarray:
        """Return (rows x groups x parts) probabilities of the parts in every group."""
        joint = self._joint(rows)
        return softmax_rows(joint.reshape(-1, joint.shape[-1]))[0].reshape(joint.shape)

    def _joint(self, rows: np.ndarray) -> np.ndarray:
        """Return (rows x groups x parts) logs of share times density."""
        joint = np.tile(log_of(self.own["share"]), (len(rows), 1, 1))
        for column, bell in zip(rows.T, self.bells, strict=True):
            joint += bell.score(column).reshape(joint.shape)
        return joint

    def score(self, column: np.ndarray) -> np.ndarray:
        rows = _rows(column)
        joint = self._joint(rows)
        found = softmax_rows(joint.reshape(-1, joint.shape[-1]))[1].reshape(joint.shape[:2])
        return np.where(np.isnan(rows).all(axis=1)[:, None], 0.0, found)

    def cdf(self, x: float, above: bool = False) -> np.ndarray:
        params = self.params
        off = params["mean"] - x if above else x - params["mean"]
        return np.asarray((params["share"] * ndtr(off / np.sqrt(params["variance"]))).sum(axis=1))

    def draw(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        params = self.params
        ends = params["share"].cumsum(axis=1)[:, :-1]
        part = (rng.random(len(groups))[:, None] > ends[groups]).sum(axis=1)
        mean, variance = params["mean"][groups, part], params["variance"][groups, part]
        return np.asarray(rng.normal(mean, np.sqrt(variance)))

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        share, mean = self.params["share"], self.params["mean"]
        middle = (share * mean).sum(axis=1)
        return middle, (share * (self.params["variance"] + (mean - middle[:, None]) ** 2)).sum(axis=1)

    def entropy(self, present: np.ndarray | None = None) -> np.ndarray:
        """Return the entropy, computed in counting units, in which variances do not underflow."""
        keep = np.ones(len(self.setting.scale), dtype=bool) if present is None else present
        wide = self.family._wide(self.own)
        part = {"share": wide["share"], "mean": wide["mean"][..., keep], "variance": wide["variance"][..., keep]}
        zero, one = np.zeros(int(keep.sum())), np.ones(int(keep.sum()))
        plain = MixedBlock(self.family.of, self.family.parts).density(part, Setting(anchor=zero, scale=one))
        return np.asarray(Density.entropy(plain) - np.log(self.setting.scale[keep]).sum())

    def divergence(self, shares: np.ndarray) -> np.ndarray:
        return Density.divergence(self.in_counting_units(), shares)

    def conditional(self, cells: np.ndarray, want: int) -> Density:
        """Return the mixture of one column, with the shares of parts given the other cells."""
        if not self.family.facts.block:
            return self
        others = np.where(np.arange(len(cells)) == want, np.nan, cells)
        params = self.params
        own = {"mean": params["mean"][..., want], "variance": params["variance"][..., want]}
        single = Mixed(self.family.of, self.family.parts)
        return single.density({"share": self.members(others[None])[0]} | own, Setting())

    def describe(self) -> list[str]:
        wide, lines = self.family._wide(self.params), []
        for shares, means, deviations in zip(wide["share"], wide["mean"], np.sqrt(wide["variance"]), strict=True):
            parts = []
            for share, *around in zip(shares, means, deviations, strict=True):
                each = (
                    f"{format_number(m, 4, spread=s)} sd {format_number(s, 3)}" for m, s in zip(*around, strict=True)
                )
                parts.append(f"{share:.0%} around {', '.join(each)}")
            lines.append("; ".join(parts))
        return lines

    def typical(self) -> list[Any]:
        if not self.family.facts.block:
            return super().typical()
        middle = (self.params["share"][..., None] * self.params["mean"]).sum(axis=1)
        return [tuple(row) for row in middle.tolist()]

    def formula(self, keys: Keys, sizes: Sizes) -> Formula | None:
        params = self.params
        if params["mean"].ndim != 2:
            return None
        shares = log_of(params["share"]).T
        each = zip(params["mean"].T, np.sqrt(params["variance"]).T, shares, strict=True)
        return log_sum([normal_density(Cell(keys[0]), mean, spread) + share for mean, spread, share in each])

    def present(self, column: np.ndarray) -> np.ndarray:
        return np.asarray(~np.isnan(_rows(column)))


@cache
def _facts(parts: int, block: bool) -> Facts:
    return Facts(
        chart={"share": "shares", "mean": "plain", "variance": "log"}, title=f"{parts} normals", block=block,
        as_block="" if block else "mixed_block", choices=("parts", WORTH_TRYING), exact=False, mergeable=False,
        has_products=False, alone=True, signed=True, hidden="are of hidden parts", spread="variance",
        rows=None if block else slice(0, None, 4),
    )  # fmt: skip


@register
class Mixed(Family, Struct, frozen=True):
    """Mixture of normal distributions within every class: numbers with several modes.

    The density of x is the sum over parts of `share` times the normal density with the `mean` and `variance` of the
    part. A tuple of columns, `{("x", "y"): families.Mixed("normal", 2)}`, is one block: within a part the columns are
    independent, and the parts make them depend on each other. Such a block solves XOR.

    Parameters
    ----------
    of : {'normal'}, default='normal'
        Family of the parts.
    parts : int or None, default=None
        Number of parts. None chooses it from the rows.

    See Also
    --------
    Normal : One mode.
    Kernel : Any shape, if the classes are known.
    Histogram : Any shape, as shares of bins.

    Notes
    -----
    A model has `share`, `mean` and `variance` (classes x parts). The part of a row is hidden, so fitting takes EM even
    if every class is known. Statistics are the expected rows of each part and, for each part and column, rows, sum and
    squares of `(x - anchor) * scale`.

    References
    ----------
    .. [1] T. Hastie and R. Tibshirani (1996). "Discriminant analysis by Gaussian mixtures". Journal of the Royal
       Statistical Society B 58 (1), 155-176.

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> rows = {"hour": [8.0, 9.0, 17.0, 18.0, 11.0, 11.5, 13.0, 13.5]}
    >>> kinds = {"hour": families.Mixed("normal", 2)}
    >>> model = NaiveBayes(kinds=kinds, estimate="ml").fit(rows, ["commute"] * 4 + ["lunch"] * 4)
    >>> model.params_["hour"]["mean"].round(2).tolist()
    [[8.5, 17.5], [11.25, 13.25]]
    """

    of: str = "normal"
    parts: int | None = None

    name = "mixed"
    _density = MixedDensity
    _is_block: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.of != "normal":
            raise DataError(f"Mixed({self.of!r}): parts are normal. Use Mixed('normal', 2).")
        parts = self.parts
        if parts is not None and not (
            isinstance(parts, int) and not isinstance(parts, bool) and 1 <= parts <= MOST_PARTS
        ):
            raise DataError(f"parts={parts!r}: the number of parts is a whole number from 1 to {MOST_PARTS}, or None.")

    @property
    def facts(self) -> Facts:  # type: ignore[override]
        return _facts(self._parts, self._is_block)

    @property
    def _parts(self) -> int:
        return self.parts or USUAL_PARTS

    def set_up(self, key: Key, fields: Sequence[Field], groups: int, floor: float) -> tuple[Family, Setting]:
        return replace(self, parts=self._parts), Family.set_up(self, key, fields, groups, floor)[1]

    def _inner_shape(self, name: str, setting: Setting) -> tuple[int, ...]:
        wide = (len(setting.anchor),) if self.facts.block and name != "share" else ()
        return self._parts, *wide

    def width(self, setting: Setting) -> int:
        return self._parts * (1 + 3 * len(setting.anchor))

    # -- statistics and parameters with an axis for parts, and one for columns

    def _split(self, stats: Twofold) -> tuple[Twofold, Twofold]:
        """Return (groups x parts) rows, and (groups x parts x columns x 3) rows, sums and squares."""
        apart = (*stats.shape[:-1], self._parts, stats.shape[-1] // self._parts)
        by_part = Twofold(stats.hi.reshape(apart), stats.lo.reshape(apart))
        inner, columns = by_part[..., 1:], (*apart[:-1], (apart[-1] - 1) // 3, 3)
        return by_part[..., 0], Twofold(inner.hi.reshape(columns), inner.lo.reshape(columns))

    def _wide(self, params: Params) -> Params:
        """Return means and variances as (groups x parts x columns)."""
        if params["mean"].ndim > params["share"].ndim:
            return params
        return params | {name: params[name][..., None] for name in params if name != "share"}

    def _narrow(self, params: Params) -> Params:
        """Remove the axis of the columns if there is one column."""
        return params if self.facts.block else {k: v if k == "share" else v[..., 0] for k, v in params.items()}

    def _normals(self, params: Params) -> Params:
        wide = self._wide(params)
        return {"mean": wide["mean"], "variance": wide["variance"]}

    # -- counting

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        """Return the features of rows with equal memberships in all parts."""
        rows = _rows(column)
        there = ~np.isnan(rows).all(axis=1)
        each = [NORMAL.features(rows[:, j], _unit(setting, j)) for j in range(rows.shape[1])]
        part = np.concatenate([there[:, None].astype(float), *each], axis=1) / self._parts
        return np.tile(part, (1, self._parts))

    def blank(
        self, columns: Sequence[np.ndarray], weights: Sequence[np.ndarray], setting: Setting, labels: Labels = ()
    ) -> Any:
        """Return initial parts, from all rows and from those of each group, and the variance floors of the columns."""
        rows, mass = np.concatenate([_rows(column) for column in columns]), np.concatenate(weights)
        rows = (rows - setting.anchor) * setting.scale
        known = np.concatenate(labels) if labels else np.full(len(rows), -1)
        alike = fit_parts(rows, mass, self._parts)
        own, floors = [], []
        for g in range(setting.groups if labels else 0):
            heavy = mass * (known == g)
            own.append(fit_parts(rows, heavy, self._parts) if (heavy > 0).any() else alike)
        for column in rows.T:
            there = ~np.isnan(column) & (mass > 0)
            floors.append(least_share(column[there], mass[there]).share if there.any() else NARROW)
        return *(np.stack(found) for found in zip(alike, *own, strict=True)), np.array(floors)

    def count(self, column: np.ndarray, memberships: np.ndarray, params: Params | None, setting: Setting) -> Twofold:
        """Return (groups x width) expected statistics, each part centred on its own rows before it is anchored."""
        rows, groups = _rows(column), memberships.shape[1]
        if params is not None:
            start = self._wide(params)
        elif setting.blank is None:
            return super().count(column, memberships, params, setting)
        else:
            share, mean, variance, _ = setting.blank
            which = np.arange(1, groups + 1) if len(share) == groups + 1 else np.zeros(groups, dtype=int)
            start = {"share": share[which], "mean": mean[which], "variance": variance[which]}
        density = MixedDensity(self, self._narrow(start), setting)
        members = density.members(rows) * memberships[:, :, None]
        there = ~np.isnan(rows)
        parts = [Twofold.of((members * there.any(axis=1)[:, None, None]).sum(axis=0)).spread(2)]
        for j in range(rows.shape[1]):
            own = members * there[:, j, None, None]
            z, _ = density.bells[j].standardise(np.where(there[:, j], rows[:, j], setting.anchor[j]))
            off = z.reshape(own.shape) * np.sqrt(start["variance"][..., j])
            parts.append(centred_sums(off, own, start["mean"][..., j]))
        flat = concatenate(parts, axis=2)
        return Twofold(flat.hi.reshape(groups, -1), flat.lo.reshape(groups, -1))

    def rebase(self, stats: Twofold, was: Any, old: Setting, new: Setting) -> Twofold:
        rows, inner = was._split(stats)
        moved = [NORMAL.rebase(inner[:, :, j], NORMAL, _unit(old, j), _unit(new, j)) for j in range(len(new.anchor))]
        flat = concatenate([rows.spread(2), *moved], axis=2)
        return Twofold(flat.hi.reshape(len(flat.hi), -1), flat.lo.reshape(len(flat.lo), -1))

    # -- learning

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        """Return the prior of a normal column with a hundredth of the variance, and the prior rows of every part."""
        if not isinstance(prior, (str, int, float, np.number, NormalInverseChi2)):
            raise DataError(f"a {self.name} column cannot take {prior!r} as its prior.")
        normal = NORMAL.hyper(prior, self._split(stats.sum(0))[1].sum(0).spread(0), setting)
        least = np.full(len(setting.anchor), NARROW) if setting.blank is None else setting.blank[3]
        normal["floor"] = np.maximum(normal["floor"], normal["whole"] * least)
        if isinstance(prior, NormalInverseChi2):
            return normal | {"alpha": np.ones(self._parts)}
        plain = scalar_prior(prior, self, self._parts, setting.groups)
        spread = normal["s2"] * (WITHIN if self._parts > 1 else 1.0)
        return normal | {"s2": spread, "alpha": np.full(self._parts, plain)}

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        """Estimate. Under `predictive`, which has no closed form, parameters are plugged in."""
        plugged: How = "mean" if how == "predictive" else how
        rows, inner = self._split(stats)
        around = None
        if fixed and "mean" in fixed:
            around = {"mean": fixed["mean"] if self.facts.block else fixed["mean"][..., None]}
        normals = NORMAL.estimate(inner, hyper, plugged, around)
        share = estimate_shares(rows.value, hyper["alpha"], plugged, self.name)
        return self._narrow({"share": share} | normals)

    def completed(self, stats: Twofold, params: Params) -> float:
        rows, inner = self._split(stats)
        chosen = Categorical().completed(rows, {"probability": params["share"]})
        return chosen + NORMAL.completed(inner, self._normals(params))

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params:
        rows, inner = self._split(stats)
        counts = rows.value + prior_counts(hyper, how)
        steep = NORMAL.slope(inner, self._normals(params), hyper, how)
        return self._narrow({"share": counts / np.maximum(params["share"], SMALLEST)} | steep)

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        chosen = Categorical().log_prior({"probability": params["share"]}, {"alpha": hyper["alpha"]}, how)
        return float(np.sum(chosen)) + float(np.sum(NORMAL.log_prior(self._normals(params), hyper, how)))

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        """Return the log evidence of rows with expected parts."""
        rows, inner = self._split(stats)
        return Categorical().evidence(rows, {"alpha": hyper["alpha"]}) + NORMAL.evidence(inner, hyper)

    def proper(self, hyper: Hyper) -> Hyper:
        """Without prior rows, use one row for every part, and the proper prior of a normal column."""
        normal = NORMAL.proper(hyper)
        narrow = np.where(hyper["s2"] > 0, hyper["s2"], normal["s2"] * (WITHIN if self._parts > 1 else 1.0))
        return normal | {"s2": narrow, "alpha": np.where(hyper["alpha"] > 0, hyper["alpha"], 1.0)}

    def log_unit(self, stats: Twofold, setting: Setting) -> float:
        rows = self._split(stats)[1].value[..., 0]
        return float((rows * np.log(setting.scale)).sum())

    def public(self, params: Params, setting: Setting) -> Params:
        return self._narrow(self._wide(params) | NORMAL.public(self._normals(params), setting))

    def private(self, params: Params, setting: Setting) -> Params:
        given = {name: np.asarray(params[name], float) for name in self.facts.chart}
        return self._narrow({"share": given["share"]} | NORMAL.private(self._normals(given), setting))


@register
class MixedBlock(Mixed, frozen=True):
    """Several columns of numbers as one mixture in every group: `{("x", "y"): sc.families.Mixed("normal", 2)}`.

    Given its part, the cells of a row are independent; the parts make the columns depend on each other.
    """

    name = "mixed_block"
    _is_block = True


def _rows(column: np.ndarray) -> np.ndarray:
    return column.reshape(len(column), -1)


def _unit(setting: Setting, j: int) -> Setting:
    return replace(setting, anchor=setting.anchor[j : j + 1], scale=setting.scale[j : j + 1])
