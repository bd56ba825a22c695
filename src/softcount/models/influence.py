"""Influence values: how far each column of each group departs from the table taken as one single class."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from softcount.families import Family, Hyper, Params
from softcount.models.star import StarParams
from softcount.numerics.twofold import Twofold
from softcount.table.schema import Key

if TYPE_CHECKING:
    from softcount.models.fitted import Fitted


def departures(fitted: Fitted) -> dict[Key, np.ndarray]:
    """For every column, in nats, the divergence of each group's distribution from that of the single class.

    AutoClass's influence value I-jk: sum_l p_jkl log(p_jkl / p_*kl), or its integral. The single class is estimated
    from all the counts under the same priors, so that on small tables the two are equally cautious: AutoClass's
    figures for small soybean come out to the last digit printed, and from the average of the groups they do not.
    """
    own, single = fitted.estimates.leaves, _pooled(fitted, np.ones(fitted.n_groups, dtype=bool)).leaves
    return {x.key: _divergence(x.family, own[x.key], single[x.key]) for x in fitted.star.leaves}


def _divergence(family: Family, groups: Params, single: Params) -> np.ndarray:
    """The single class joins as one more group that has all the shares: the groups' average is then itself.

    In counting units, which a divergence does not depend on and in which nothing is too small for a float.
    """
    joined = {name: np.concatenate([part, single[name]]) for name, part in groups.items()}
    shares = np.zeros(len(joined[next(iter(joined))]))
    shares[-1] = 1.0
    return np.maximum(family.divergence(joined, shares)[:-1], 0.0)


def elsewhere(fitted: Fitted, group: int) -> dict[Key, Params]:
    """Every column's parameters over all groups but one, in the user's units."""
    others = np.ones(fitted.n_groups, dtype=bool)
    others[group] = fitted.n_groups == 1
    return fitted.star.public(_pooled(fitted, others))


def _pooled(fitted: Fitted, groups: np.ndarray) -> StarParams:
    """The parameters of these groups taken as one."""

    def together(array: Twofold) -> Twofold:
        return array[groups].sum(axis=0, keepdims=True)

    leaves = {key: _for_one(hyper) for key, hyper in fitted.imagined.leaves.items()}
    imagined = replace(fitted.imagined, leaves=leaves, fixed_shares=np.ones(1), fixed={})
    return fitted.star.estimate(fitted.counts.map(together), imagined)


def _for_one(hyper: Hyper) -> Hyper:
    """The prior of one class where every class has its own: what they imagine on average."""
    return {name: part.mean(axis=0) if name == "alpha" and part.ndim > 1 else part for name, part in hyper.items()}
