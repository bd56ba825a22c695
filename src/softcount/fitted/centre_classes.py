"""k-means as classes that can be asked: the mixture whose memberships, made hard, are the nearest centres.

Its clusters are equally frequent and equally wide in every direction, so the likeliest of a whole row is the nearest.
The width is what the rows were off their centres on average; k-means itself has none.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from softcount.counts import ROOT, Counts
from softcount.errors import DataError
from softcount.families import Hyper, Normal, Setting
from softcount.fitted.fitted_model import Fitted
from softcount.models.nodes import Imagined, Node
from softcount.models.stacks import Kernels
from softcount.models.star import Star
from softcount.numerics.twofold import Twofold
from softcount.table.schema import Field, Key, Kind, Schema

if TYPE_CHECKING:
    from softcount.learn.kmeans.fit_kmeans import Centres

NOTE = (
    "k-means has no probabilities of its own: these are of clusters equally frequent and equally wide in every "
    "direction, of which the likeliest for a whole row is the nearest, as `predict` tells it."
)
NARROWEST = 1e-12
"""The least variance, as a share of that of the centres: where every row lies on its centre."""


def centre_classes(found: Centres, keys: Sequence[Key]) -> Fitted:
    """The classes of such centres, ready to answer; directions have no distances in some columns alone."""
    if found.frame.unit:
        raise DataError(
            "spherical k-means compares directions, which some columns alone do not have: there is no page of any "
            "column from any others. Look at its centres: report."
        )
    if found.sizes is None:
        raise DataError("the file is of an earlier version, which kept no sizes of clusters. Fit it again.")
    groups, columns = found.centres.shape
    apart = float(found.centres.var(axis=0).mean())
    width = found.inertia / (float(found.sizes.sum()) * columns)
    variance = np.full(groups, max(width, NARROWEST * apart, 1e-300))
    anchors = found.frame.anchor.tolist()
    schema = Schema(tuple(Field(key, Kind.REAL, "k-means", anchor=a) for key, a in zip(keys, anchors, strict=True)))
    leaves = tuple(
        Node(spec.key, (spec.key,), Normal(), Setting((spec.key,), groups, anchor=np.array([spec.anchor])))
        for spec in schema.fields
    )
    star = Star(schema, leaves, groups, Kernels(groups))
    means = found.centres - found.frame.anchor
    params = {leaf.key: {"mean": own, "variance": variance} for leaf, own in zip(star.leaves, means.T, strict=True)}
    arrays: dict[Hashable, Twofold] = {ROOT: Twofold.of(found.sizes)}
    for leaf, own in zip(star.leaves, means.T, strict=True):
        arrays[leaf.key] = Twofold.of(np.stack([found.sizes, found.sizes * own, found.sizes * (own**2 + variance)], 1))
    shares = np.full(groups, 1.0 / groups)
    counts = Counts(arrays, float(found.sizes.sum()))
    priors = dict.fromkeys([node.key for node in star.nodes], 1.0)
    known: dict[Key, Hyper] = {ROOT: {"alpha": np.full(groups, 1.0 / groups)}}
    imagined = Imagined(star.nodes.hypers(counts, priors, known), "ml")
    return Fitted(star, star.params(shares, params), counts, imagined, estimate="ml", notes=list(found.notes))
