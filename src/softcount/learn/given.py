"""Starting around given means, where nothing is said of how far rows lie from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from softcount.families import Params
from softcount.learn.start import given_params
from softcount.models.nodes import Node
from softcount.models.star import Imagined, Star, StarParams


def around(given: Mapping[Any, Any]) -> Callable[[Star, Imagined], StarParams]:
    """Makes parameters of normal columns or a normal block: what `given` leaves out is held or the whole table's."""

    def make(star: Star, imagined: Imagined) -> StarParams:
        said = {key: _spread(star, imagined, star.leaf(key)) | dict(given[key]) for key in given if key != "weights"}
        return given_params(star, {"weights": given["weights"], **said})

    return make


def _spread(star: Star, imagined: Imagined, leaf: Node) -> Params:
    """A leaf's whole variance in every group, in the user's units; columns that share one have their mean."""
    shared = getattr(leaf.family, "tied", None) in ("columns", "both")
    peers = [x.key for x in star.leaves if x.family == leaf.family] if shared else [leaf.key]
    whole = np.mean([np.atleast_1d(imagined.leaves[key]["whole"]) for key in peers], axis=0)
    name = "covariance" if leaf.family.block else "variance"
    spread = np.diag(whole) if leaf.family.block else whole[0]
    private = {"mean": np.zeros((star.groups, len(whole)) if leaf.family.block else star.groups)}
    private[name] = np.broadcast_to(spread, (star.groups, *np.shape(spread)))
    return {name: leaf.family.public(private | dict(imagined.fixed.get(leaf.key, {})), leaf.setting)[name]}
