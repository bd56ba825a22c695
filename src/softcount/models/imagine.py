"""What priors stand for, column by column: imagined counts, given the whole table's statistics."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softcount.families import Hyper
from softcount.models.nodes import Node
from softcount.numerics.twofold import Twofold, stack
from softcount.table.schema import Key


def leaf_hypers(
    leaves: Sequence[Node], priors: Mapping[Key, Any], stats: Mapping[Hashable, Twofold]
) -> dict[Key, Hyper]:
    """Every leaf's hyperparameters; normal columns that share a plain prior are pooled at once."""
    alike: dict[Any, list[Node]] = {}
    for leaf in leaves:
        prior = priors[leaf.key]
        plain = isinstance(prior, (int, float, str)) and prior != "auto" and leaf.family.name in ("normal", "lognormal")
        alike.setdefault((leaf.family, prior, leaf.setting.floor) if plain else leaf.key, []).append(leaf)
    found: dict[Key, Hyper] = {}
    for same in alike.values():
        prior = priors[same[0].key]
        found |= _pooled(same, prior, stats) if len(same) > 1 else {
            same[0].key: leaf_hyper(same[0], prior, stats[same[0].key])
        }  # fmt: skip
    return {leaf.key: found[leaf.key] for leaf in leaves}


def _pooled(leaves: list[Node], prior: Any, stats: Mapping[Hashable, Twofold]) -> dict[Key, Hyper]:
    anchor, scale = (np.concatenate([getattr(x.setting, name) for x in leaves]) for name in ("anchor", "scale"))
    setting = replace(leaves[0].setting, keys=tuple(x.key for x in leaves), anchor=anchor, scale=scale)
    hyper = leaves[0].family.hyper(prior, stack([stats[x.key] for x in leaves], axis=1), setting)
    return {x.key: {name: value[j, ...] for name, value in hyper.items()} for j, x in enumerate(leaves)}


def leaf_hyper(leaf: Node, prior: Any, stats: Twofold) -> Hyper:
    """One leaf's hyperparameters; `"auto"` takes the concentration with the most evidence."""
    if isinstance(prior, str) and prior == "auto":
        prior = best_evidence(leaf, stats)
    if leaf.family.alone:
        return leaf.family.hyper(prior, stats, leaf.setting)
    hyper = leaf.family.hyper(prior, stats.spread(1), leaf.setting)
    return {name: value if name == "alpha" else np.reshape(value, ()) for name, value in hyper.items()}


def best_evidence(leaf: Node, stats: Twofold) -> float:
    """The number of imagined counts under which the statistics are most probable."""
    from scipy.optimize import minimize_scalar

    def loss(log_a: float) -> float:
        evidence = leaf.family.evidence(stats, leaf_hyper(leaf, float(np.exp(log_a)), stats))
        return -evidence if np.isfinite(evidence) else 1e300

    found = minimize_scalar(loss, bounds=(np.log(1e-4), np.log(1e4)), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(found.x))
