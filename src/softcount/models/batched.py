"""Many sets of parameters of one class model on few rows: one product scores them all, another counts for all.

If a log-density is features times natural parameters, sets times groups is just more groups. Arrays of parameters and
statistics have an axis for the sets after those of groups and columns. Totals are plain doubles: precise enough to
compare initialisations, of which EM continues the best in full precision.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.counts import ROOT, Counts, Single, Twofold
from softcount.core.special import log_of
from softcount.families import Hyper, floors
from softcount.families import Params as Own
from softcount.models.base import ClassModel
from softcount.models.coordinates import Coordinates, set_axis, shares_of
from softcount.models.nodes import Bundle, Imagined, Params, per_level
from softcount.models.stacks import Stack
from softcount.table.schema import Key

Statistics = Mapping[Hashable, np.ndarray]
Sets = TypeVar("Sets", Params, Statistics)
"""Parameters or statistics with an axis for the sets."""


class ProductRows(Struct, frozen=True, eq=False):
    """Rows as (features x rows): a 1 for the class, then the features of every stack, for any number of groups.

    A single stack that begins with a 1 shares it with the class, which saves a copy of the features. `weights` has one
    number for each row, or shape (sets, rows). Features that are `common` have natural parameters that all groups of a
    set share: they do not separate groups, and their totals never change.
    """

    stacks: tuple[Stack, ...]
    places: tuple[slice, ...]
    features: np.ndarray
    common: slice
    weights: np.ndarray
    base: float
    labels: np.ndarray | None

    @classmethod
    def of(
        cls,
        stacks: tuple[Stack, ...],
        parts: Sequence[Any],
        weights: np.ndarray,
        base: float,
        labels: np.ndarray | None,
    ) -> ProductRows:
        shares = len(parts) == 1 and bool((parts[0][:, 0] == 1.0).all())
        ends = np.cumsum([0 if shares else 1, *(part.shape[1] for part in parts)])
        places = tuple(slice(a, b) for a, b in pairwise(ends.tolist()))
        common = slice(int(ends[-1]), int(ends[-1]))
        if stacks[-1].common is not None:  # the common features are last, so that the others are contiguous
            common = slice(places[-1].start + stacks[-1].common, places[-1].stop)
        ones = np.ones((1, len(weights)))
        features = np.ascontiguousarray(parts[0].T) if shares else np.concatenate([ones, *(part.T for part in parts)])
        return cls(stacks, places, features, common, weights, base, labels)


class SideBySide(Struct, frozen=True, eq=False, dict=True):
    """A class model with its priors, and rows on which many sets of parameters are tried."""

    model: ClassModel
    imagined: Imagined
    rows: ProductRows

    @cached_property
    def hypers(self) -> dict[Hashable, Hyper]:
        """Prior parameters of every bundle, with an axis for the sets."""
        found = {}
        for bundle in self.bundles:
            hyper, levels = self.imagined.of(bundle), per_level(bundle.family)
            if not bundle.alone:
                hyper = {
                    name: np.expand_dims(value, -2) if levels else value[..., None] if np.ndim(value) else value
                    for name, value in hyper.items()
                }
            found[bundle.name] = hyper
        return found

    @cached_property
    def bundles(self) -> tuple[Bundle, ...]:
        return self.model.nodes.bundles

    @cached_property
    def coordinates(self) -> Coordinates:
        return Coordinates(self.model, self.imagined, hypers=self.hypers)

    @cached_property
    def pins(self) -> np.ndarray | None:
        """Minus infinity for the groups that a labelled row is not in; None without labels."""
        labels = self.rows.labels
        if labels is None:
            return None
        own = np.arange(self.model.groups)[:, None] == labels
        return np.where(own | (labels < 0), 0.0, -np.inf)[:, None]

    def weighed(self, weights: np.ndarray) -> SideBySide:
        """Return the rows without labels, with weights (sets x rows) that differ between sets."""
        return replace(self, rows=replace(self.rows, weights=weights, base=0.0, labels=None))

    @property
    def work(self) -> int:
        """Cells that a pass multiplies for every set: rows times groups times the features that separate groups."""
        return int(self.rows.features.shape[1] * self.rows.common.start * self.model.groups)

    # -- rows -> statistics -> parameters

    def counted(self, members: np.ndarray) -> Statistics:
        """Return the statistics of (groups x sets x rows) memberships, not yet multiplied by the weights."""
        return self._totals(members * self.rows.weights)

    @cached_property
    def _common_totals(self) -> np.ndarray:
        return np.asarray(self.rows.weights @ self.rows.features[self.rows.common].T)

    def _totals(self, members: np.ndarray) -> Statistics:
        groups, sets, n = members.shape
        own = self.rows.common.start
        totals = np.empty((groups, sets, len(self.rows.features)))
        totals[..., :own] = (members.reshape(groups * sets, n) @ self.rows.features[:own].T).reshape(groups, sets, -1)
        totals[..., own:] = self._common_totals / groups  # an equal part for every group
        found: dict[Hashable, np.ndarray] = {ROOT: np.ascontiguousarray(totals[..., 0].T)[None, None]}
        for stack, place in zip(self.rows.stacks, self.rows.places, strict=True):
            found |= stack.statistics(totals[..., place])
        return found

    def estimate(self, stats: Statistics) -> Params:
        how = self.imagined.how_of
        return Params(
            {x.name: x.family.estimate(Single.of(stats[x.name]), self.hypers[x.name], how(x)) for x in self.bundles},
            self.model.nodes.places,
        )

    def expected(self, params: Params) -> tuple[Statistics, np.ndarray]:
        """Return expected statistics and objective of every set; minus infinity if the products overflowed."""
        rows, eta = self.rows, self._naturals(params)
        joint = self._scores(eta)
        top = joint.max(axis=0)
        joint -= top
        np.exp(joint, out=joint)
        total = joint.sum(axis=0)
        joint *= rows.weights / total
        heights = ((np.log(total) + top) * rows.weights).sum(axis=1) + rows.base
        heights = heights + (eta[0, :, rows.common] * self._common_totals).sum(axis=1) + self.log_prior(params)
        return self._totals(joint), np.where(np.isnan(heights), -np.inf, heights)

    def scores(self, params: Params) -> np.ndarray:
        """Return (groups x sets x rows) logs of share times density, without the common features."""
        return self._scores(self._naturals(params))

    def _naturals(self, params: Params) -> np.ndarray:
        rows = self.rows
        log_shares = np.maximum(log_of(shares_of(params)), -1e5)
        parts = [
            stack.naturals(params, place.stop - place.start)
            for stack, place in zip(rows.stacks, rows.places, strict=True)
        ]
        if rows.places[0].start == 0:
            whole = parts[0].copy()
            whole[..., 0] += log_shares
            return whole
        return np.concatenate([log_shares[..., None], *parts], axis=-1)

    def _scores(self, eta: np.ndarray) -> np.ndarray:
        own = self.rows.common.start
        apart = np.ascontiguousarray(eta[..., :own]).reshape(-1, own)
        joint: np.ndarray = (apart @ self.rows.features[:own]).reshape(*eta.shape[:2], -1)
        if self.pins is not None:
            joint += self.pins
        return joint

    def memberships(self, params: Params) -> np.ndarray:
        """Return (groups x sets x rows) probabilities of every group given the row."""
        joint = self.scores(params)
        joint -= joint.max(axis=0)
        np.exp(joint, out=joint)
        joint /= joint.sum(axis=0)
        return joint

    def by_group(self, params: Params, place: int) -> np.ndarray:
        """Return (groups x numbers) parameters of one set. Permuting groups gives the same model."""
        parts = [shares_of(params)[:, place, None]]
        for x in self.bundles:
            if x.name != ROOT:
                own = (value.take(place, axis=set_axis(x)) for value in params.bundles[x.name].values())
                parts += [value.reshape(len(value), -1) for value in own]
        return np.concatenate(parts, axis=1)

    def spikes(self, params: Params, stats: Statistics, rounded: bool = True) -> np.ndarray:
        """Return which groups are spikes, as in `find_spikes`, of shape (groups, sets)."""
        by_bundle = {name: Single.of(array) for name, array in stats.items()}
        return find_spikes(self.bundles, params, self.hypers, by_bundle, shares_of(params).shape, rounded)

    def log_prior(self, params: Params) -> np.ndarray:
        found = np.zeros(shares_of(params).shape[1])
        for x in self.bundles:
            how = self.imagined.how_of(x)
            if how != "ml":
                part = np.asarray(x.family.log_prior(params.bundles[x.name], self.hypers[x.name], how))
                found += part.sum(axis=tuple(range(part.ndim - 1)))
        return found

    # -- sets

    def _each(self, work: Callable[..., np.ndarray], *sets: Sets) -> Sets:
        """Apply `work` to the axis of the sets and the arrays of one name in each of `sets`."""
        if not isinstance(sets[0], Params):
            return {x.name: work(set_axis(x), *(stats[x.name] for stats in sets)) for x in self.bundles}
        bundles: dict[Hashable, Own] = {}
        for x in self.bundles:
            parts = {part: [own.bundles[x.name][part] for own in sets] for part in sets[0].bundles[x.name]}
            bundles[x.name] = {part: work(set_axis(x), *values) for part, values in parts.items()}
        return Params(bundles, self.model.nodes.places)

    def together(self, sets: Sequence[Params]) -> Params:
        return self._each(lambda axis, *values: np.stack(values, axis=axis), *sets)

    def joined(self, one: Params, other: Params) -> Params:
        return self._each(lambda axis, *values: np.concatenate(values, axis=axis), one, other)

    def some(self, sets: Sets, places: np.ndarray | int) -> Sets:
        """Select some of the sets; a single one loses the axis of the sets."""
        return self._each(lambda axis, value: value.take(places, axis=axis), sets)

    def either(self, first: np.ndarray, one: Sets, other: Sets) -> Sets:
        """Select `one` for the sets where `first` is true, else `other`."""

        def choose(axis: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return np.where(first.reshape(-1, *[1] * (a.ndim - axis - 1)), a, b)

        return self._each(choose, one, other)

    def with_room(self, stats: Statistics, more: int) -> Statistics:
        """Append zeros for this many further sets."""
        return self._each(lambda axis, a: np.pad(a, [(0, more * (at == axis)) for at in range(a.ndim)]), stats)

    def counts(self, stats: Statistics, place: int, log_likelihood: float = 0.0) -> Counts:
        arrays = {x.name: Twofold.of(stats[x.name].take(place, axis=set_axis(x))) for x in self.bundles}
        return Counts(arrays, float(arrays[ROOT].hi.sum()), log_likelihood)


def find_spikes(
    bundles: Sequence[Bundle],
    params: Params,
    hypers: Mapping[Hashable, Hyper],
    stats: Mapping[Hashable, Twofold],
    shape: tuple[int, ...],
    rounded: bool = True,
    fixed: Mapping[Key, Own] | None = None,
) -> np.ndarray:
    """Return which groups are at the floor of some column that as a whole is not, for each set if there are sets.

    If the floor is the rounding of a column, rows may well be equal in it, and no density grows without bound: a group
    is a spike there only if its rows are equal in every such column, and without `rounded` not even then. In
    handwritten digits nearly every class has pixels that are always empty, so that all runs reached a floor, and a run
    with a group on a single row won. Columns whose spread is `fixed` are skipped.
    """
    found, alike, some = np.zeros(shape, dtype=bool), np.ones(shape, dtype=bool), np.zeros(shape[1:], dtype=bool)
    for x in bundles:
        spread = x.family.facts.spread
        free = np.array([spread not in (fixed or {}).get(key, ()) for key in x.keys])
        if x.name == ROOT or not spread or not free.any():
            continue
        own, hyper = params.bundles[x.name], hypers[x.name]
        held, low = floors.find_spikes(x.family, own, hyper, stats[x.name]), floors.find_narrow(x.family, own, hyper)
        if x.alone:
            held, low = held[:, None], low[:, None]
        coarse = np.array([node.setting.rounded for node in x.nodes])
        found |= held[:, free & ~coarse].any(axis=1)
        varies = held.any(axis=0) | ~low.any(axis=0)  # not a constant column
        counted = varies & (free & coarse).reshape(-1, *[1] * (held.ndim - 2))
        alike &= (held | ~counted).all(axis=1)
        some |= counted.any(axis=0)
    return np.asarray(found | (alike & some) if rounded else found)
