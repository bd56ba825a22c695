"""Parameters and priors of a star, and what is done with columns of one family side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softcount.counts import Counts
from softcount.errors import DataError
from softcount.families import Family, How, Hyper, Params, Text
from softcount.models.nodes import Node
from softcount.numerics.twofold import Twofold, stack
from softcount.table.schema import Key


@dataclass(frozen=True, slots=True)
class StarParams:
    """Shares of the groups, and each leaf's parameters in counting units."""

    shares: np.ndarray
    leaves: Mapping[Key, Params]


@dataclass(frozen=True, slots=True)
class Imagined:
    """What the priors imagine: hyperparameters of the root and of each leaf, and how they are used.

    `fixed` are parameters, in counting units, that nothing changes.
    """

    root: Hyper
    leaves: Mapping[Key, Hyper]
    how: How
    root_how: How
    fixed_shares: np.ndarray | None = None
    fixed: Mapping[Key, Params] = field(default_factory=dict)
    _stacked: dict[Any, Hyper] = field(init=False, repr=False, compare=False, default_factory=dict)

    def stacked(self, keys: list[Key]) -> Hyper:
        """The hyperparameters of columns estimated together; joined once, because every EM step asks for them."""
        name = tuple(keys)
        if name not in self._stacked:
            hypers = [self.leaves[key] for key in keys]
            self._stacked[name] = {part: _joined([hyper[part] for hyper in hypers]) for part in hypers[0]}
        return self._stacked[name]


def refuse_scores(leaves: Iterable[Node], why: str) -> None:
    """Raise where a column only tells classes apart: complement weights are no probabilities."""
    for leaf in leaves:
        if isinstance(leaf.family, Text) and leaf.family.model == "complement":
            raise DataError(
                f"column {leaf.key!r} is text by complement, which {why}: it only tells known classes apart. "
                "Use another model of text: 'multinomial' or 'bernoulli'."
            )


def estimate_stack(
    family: Family, keys: list[Key], stats: Mapping[Any, Twofold], imagined: Imagined
) -> dict[Key, Params]:
    """Estimates of columns together; what cannot be estimated is named by its column."""
    try:
        return _estimate_together(family, keys, stats, imagined)
    except DataError as error:
        for key in keys if len(keys) > 1 else ():
            estimate_stack(family, [key], stats, imagined)
        raise DataError(f"column {keys[0]!r}, {error}") from None


def _estimate_together(
    family: Family, keys: list[Key], stats: Mapping[Any, Twofold], imagined: Imagined
) -> dict[Key, Params]:
    fixed = [imagined.fixed.get(key, {}) for key in keys]
    if family.alone:
        hyper, how = imagined.leaves[keys[0]], imagined.how
        own = stats[keys[0]]
        return {keys[0]: family.held(own, hyper, how, fixed[0]) if fixed[0] else family.estimate(own, hyper, how)}
    whole = stack([stats[key] for key in keys], axis=1)
    if fixed[0]:
        same = {name: np.stack([part[name] for part in fixed], axis=1) for name in fixed[0]}
        params = family.held(whole, imagined.stacked(keys), imagined.how, same)
    else:
        params = family.estimate(whole, imagined.stacked(keys), imagined.how)
    return {key: {name: value[:, j] for name, value in params.items()} for j, key in enumerate(keys)}


def log_prior_together(keys: list[Key], family: Family, params: StarParams, imagined: Imagined) -> float:
    """The prior's part of the objective, of several columns."""
    if len(keys) == 1:
        return family.log_prior(params.leaves[keys[0]], imagined.leaves[keys[0]], imagined.how)
    together = side_by_side([params.leaves[key] for key in keys], family)
    return family.log_prior(together, imagined.stacked(keys), imagined.how)


def completed_together(family: Family, keys: list[Key], counts: Counts, params: StarParams) -> float:
    """Log-likelihood of the complete rows of several columns."""
    if len(keys) == 1:
        return family.completed(counts.arrays[keys[0]], params.leaves[keys[0]])
    stats = stack([counts.arrays[key] for key in keys], axis=1)
    return family.completed(stats, side_by_side([params.leaves[key] for key in keys], family))


def within_together(family: Family, keys: list[Key], params: StarParams, imagined: Imagined) -> dict[Key, Params]:
    """Parameters of several columns within the floors they share."""
    own = [params.leaves[key] for key in keys]
    if len(keys) == 1:
        return {keys[0]: family.within(own[0], imagined.leaves[keys[0]])}
    kept = family.within(side_by_side(own, family), imagined.stacked(keys))
    return {
        key: part | {name: value[:, j] for name, value in kept.items()}
        for j, (key, part) in enumerate(zip(keys, own, strict=True))
    }


def slope_together(
    family: Family, keys: list[Key], counts: Counts, params: StarParams, imagined: Imagined
) -> dict[Key, Params] | None:
    """How the objective rises with the parameters of several columns."""
    if len(keys) == 1:
        key = keys[0]
        own = family.slope(counts.arrays[key], params.leaves[key], imagined.leaves[key], imagined.how)
        return None if own is None else {key: own}
    together = side_by_side([params.leaves[key] for key in keys], family)
    stats = stack([counts.arrays[key] for key in keys], axis=1)
    found = family.slope(stats, together, imagined.stacked(keys), imagined.how)
    if found is None:
        return None
    return {key: {name: value[:, j] for name, value in found.items()} for j, key in enumerate(keys)}


def side_by_side(parts: list[Params], family: Family) -> Params:
    """The charted parameters of several columns on a second axis."""
    return {name: np.stack([part[name] for part in parts], axis=1) for name in family.chart}


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """Hyperparameters of several columns on one axis: second to last for vectors per level, last for numbers."""
    same = np.broadcast_arrays(*parts)
    return np.stack(same, axis=-2) if same[0].ndim else np.stack(same, axis=-1)
