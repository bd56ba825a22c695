"""Floors: how narrow the density of a group may be, and which groups have reached the limit.

`facts.spread` names the parameter of a family that is limited: from below by the prior parameter `floor` or, if large
values are narrow (a rate, a shape), from above by `top`. A variance in `known` is fixed. Covariances are limited by
their eigenvalues, with each column in units of its deviation in the table.
"""

from __future__ import annotations

from threading import local
from typing import TYPE_CHECKING

import numpy as np

from softcount.core.counts import Twofold
from softcount.families.moments import block_moments
from softcount.families.setting import SLACK, SMALLEST, Facts, Hyper, Params, Setting

if TYPE_CHECKING:
    from softcount.families.base import Family

_last = local()


def clip(family: Family, params: Params, hyper: Hyper) -> Params:
    """Return the nearest parameters that respect the limits."""
    facts = family.facts
    found = params | {name: np.clip(params[name], *ends) for name, ends in facts.bounds.items()}
    return found | {facts.spread: clip_spread(family, params[facts.spread], hyper)} if facts.spread else found


def clip_spread(family: Family, spread: np.ndarray, hyper: Hyper) -> np.ndarray:
    """Return the nearest values of the spread parameter that respect its limit."""
    if "top" in hyper:
        return np.asarray(np.minimum(spread, hyper["top"]))
    if _is_covariance(family.facts):
        return clip_covariance(spread, _unit(family, hyper), float(hyper["floor"]))
    spread = np.maximum(spread, np.max(hyper["floor"]) if family.facts.shared_by_columns else hyper["floor"])
    return np.where(hyper["known"] > 0, hyper["known"], spread) if "known" in hyper else spread


def find_narrow(family: Family, params: Params, hyper: Hyper) -> np.ndarray:
    """Return which groups have a spread at its limit."""
    facts = family.facts
    name = facts.spread
    if not name:
        return np.zeros(len(next(iter(params.values()))), dtype=bool)
    if _is_covariance(facts):
        return _count_narrow(family, params[name], hyper) > 0
    if "top" in hyper:
        return np.asarray(params[name] >= hyper["top"] * (1 - SLACK))
    narrow: np.ndarray = np.asarray(params[name] <= hyper["floor"] * (1 + SLACK))
    if "shares" not in facts.chart.values():
        return narrow
    every = np.asarray(narrow.all(axis=1))  # a mixture is narrow if all of its parts are
    return np.asarray(every.any(axis=-1)) if every.ndim > 1 else every


def find_spikes(family: Family, params: Params, hyper: Hyper, stats: Twofold) -> np.ndarray:
    """Return which groups have a spread at its limit, unless that of the whole column is there too."""
    if _is_covariance(family.facts):
        rows, _, scatter = block_moments(stats.sum(0).spread(0))
        spread = scatter / np.maximum(rows, 1e-300)[..., None, None]
        before = _count_directions(spread, _unit(family, hyper), float(hyper["floor"]))
        return np.asarray(_count_narrow(family, params[family.facts.spread], hyper) > before)
    narrow = find_narrow(family, params, hyper)
    if not narrow.any():
        return narrow
    if "floor" in hyper and family.facts.exact:  # the rows of the table are those of the prior
        known = np.asarray(hyper.get("known", 0.0)) > 0
        return np.asarray(narrow & ~known & (hyper["whole"] > hyper["floor"] * (1 + SLACK)))
    whole = family.estimate(stats.sum(0).spread(0), hyper, "ml")
    return np.asarray(narrow & ~find_narrow(family, whole, hyper))


def rows_needed(family: Family, setting: Setting) -> float:
    """Return the number of rows that estimating the spread of a group requires; 0 if groups share it or it is known."""
    name = family.facts.spread
    free = 0 if not name or name in family.facts.shared_by_groups else family._free_numbers(name, setting)
    if not free:
        return 0.0
    columns = len(setting.anchor)
    return columns + 1.0 if _is_covariance(family.facts) and free > columns else 2.0


def spread_of_table(family: Family, hypers: list[Hyper], setting: Setting, groups: int, fixed: Params) -> Params:
    """Return the public spread of the whole table in every group, averaged over columns that share it.

    `hypers` are those of these columns. The result is empty if the family is not a mean with a spread around it.
    """
    name = family.facts.spread
    if set(family.facts.chart) != {"mean", name} or "whole" not in hypers[0]:
        return {}
    whole = np.mean([np.atleast_1d(hyper["whole"]) for hyper in hypers], axis=0)
    spread, inner = (np.diag(whole), whole.shape) if _is_covariance(family.facts) else (whole[0], ())
    private = {"mean": np.zeros((groups, *inner)), name: np.broadcast_to(spread, (groups, *spread.shape))} | fixed
    return {name: family.public(private, setting)[name]}


def deviation(family: Family, params: Params) -> np.ndarray | float:
    """Return the unit of the plain parameters in every group: the deviation of the numbers around them, or 1."""
    name, places = family.facts.spread, [params[x] for x, line in family.facts.chart.items() if line == "plain"]
    if not name or not places:
        return 1.0
    spread = params[name]
    spread = np.diagonal(spread, axis1=-2, axis2=-1) if _is_covariance(family.facts) else spread
    spread = np.sqrt(np.maximum(spread, SMALLEST))
    return np.asarray(spread[..., None] if spread.ndim < places[0].ndim else spread)


def _is_covariance(facts: Facts) -> bool:
    return facts.chart.get(facts.spread) == "covariance"


def _unit(family: Family, hyper: Hyper) -> np.ndarray:
    """Return the variances in whose units spread is measured: their mean if all columns share one variance."""
    whole = hyper["whole"]
    return np.full(whole.shape, whole.mean()) if family.facts.isotropic else whole


def _count_narrow(family: Family, covariance: np.ndarray, hyper: Hyper) -> np.ndarray:
    """Return how many directions of each covariance are as narrow as the floor.

    The result is cached for the same covariances, because a check for spikes needs it four times.
    """
    if getattr(_last, "covariance", None) is not covariance or _last.hyper is not hyper:
        _last.narrow = _count_directions(covariance, _unit(family, hyper), float(hyper["floor"]))
        _last.covariance, _last.hyper = covariance, hyper
    found: np.ndarray = _last.narrow
    return found


def clip_covariance(covariance: np.ndarray, whole: np.ndarray, floor: float) -> np.ndarray:
    """Clip eigenvalues from below in units of each column's spread in the table: the exact constrained maximum."""
    unit = np.sqrt(whole)
    outer = unit[..., :, None] * unit[..., None, :]
    within = covariance / outer
    flat = np.diagonal(within, axis1=-2, axis2=-1) == 0  # constant columns are independent of all others
    if flat.any():
        within = within + floor * flat[..., None] * np.eye(len(unit))
        covariance = within * outer
    low = _below(within.reshape(-1, *within.shape[-2:]), (1.0 - SLACK) * floor).reshape(within.shape[:-2])
    if not low.any():
        return covariance
    values, vectors = np.linalg.eigh(within[low])
    some = int((values < floor).any(axis=0).sum())  # the smallest come first
    lacking, narrow = np.maximum(floor - values[:, :some], 0.0), vectors[..., :some]
    wider = narrow * np.sqrt(lacking)[:, None]  # one factor for both sides makes the product symmetric to the last bit
    clipped = within[low] + wider @ wider.swapaxes(-1, -2)
    moved = covariance.copy()
    moved[low] = clipped * np.broadcast_to(outer, covariance.shape)[low]
    return moved


def _count_directions(covariance: np.ndarray, whole: np.ndarray, floor: float) -> np.ndarray:
    """Return how many eigenvalues of each matrix are at the floor, in units of each column's spread in the table."""
    unit = np.sqrt(whole)
    within = (covariance / (unit[:, None] * unit)).reshape(-1, *covariance.shape[-2:])
    found, low = np.zeros(len(within), dtype=np.int64), _below(within, 2.0 * floor)
    found[low] = (np.linalg.eigvalsh(within[low]) <= floor * (1 + SLACK)).sum(axis=-1)
    return found.reshape(covariance.shape[:-2])


def _below(matrices: np.ndarray, least: float) -> np.ndarray:
    """Return which matrices have an eigenvalue below `least`: a Cholesky factor decides in a tenth of the time.

    The smallest diagonal entry is an upper bound of the smallest eigenvalue, which decides for a constant column.
    """
    low = np.diagonal(matrices, axis1=-2, axis2=-1).min(axis=-1) < least
    low[~low] = _find_rootless(matrices[~low] - least * np.eye(matrices.shape[-1]))
    return np.asarray(low)


def _find_rootless(matrices: np.ndarray) -> np.ndarray:
    """Return which matrices have no Cholesky factor, by recursive division into four if some have none."""
    try:
        np.linalg.cholesky(matrices)
        return np.zeros(len(matrices), dtype=bool)
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.ones(1, dtype=bool)
    return np.concatenate([_find_rootless(part) for part in np.array_split(matrices, min(4, len(matrices)))])
