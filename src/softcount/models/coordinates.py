"""Parameters as one vector, in coordinates in which linear steps make sense: for acceleration and L-BFGS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from math import prod

import numpy as np
from msgspec import Struct

from softcount.core.counts import ROOT
from softcount.families import Hyper, floors
from softcount.families.base import Line
from softcount.families.base import Params as Own
from softcount.models.base import Model
from softcount.models.nodes import Bundle, Imagined, Name, Params

SMALLEST = 1e-300
lower = cache(np.tril_indices)


class Part(Struct, frozen=True, eq=False):
    """One array of parameters: its bundle, its name there, its scale (`line`), and its free columns (None: all).

    `axis` is the axis of the sets if there are several. Of several sets, what all groups share is held once.
    """

    bundle: Bundle
    name: str
    line: Line
    free: np.ndarray | None = None
    axis: int | None = None

    @property
    def is_shared(self) -> bool:
        return self.name in self.bundle.family.facts.shared_by_groups

    def of(self, params: Params) -> np.ndarray:
        value = params.bundles[self.bundle.name][self.name]
        if self.axis is not None and self.is_shared:
            return value[:1]
        return value if self.free is None else value[:, self.free]

    def put(self, value: np.ndarray, old: np.ndarray) -> np.ndarray:
        """Return the whole array, if only some columns have changed or if all groups share it."""
        if self.free is None:
            return value if value.shape == old.shape else np.array(np.broadcast_to(value, old.shape))
        whole = old.copy()
        whole[:, self.free] = value
        return whole

    def flatten(self, value: np.ndarray) -> np.ndarray:
        """Return (numbers,), or (sets x numbers)."""
        if self.axis is None:
            return value.ravel()
        return np.moveaxis(value, self.axis, 0).reshape(value.shape[self.axis], -1)

    def unflatten(self, vector: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        if self.axis is None:
            return vector.reshape(shape)
        axis = self.axis
        return np.moveaxis(vector.reshape(shape[axis], *shape[:axis], *shape[axis + 1 :]), 0, axis)


class Coordinates:
    """All parameters that EM changes, as one vector in which complete rows have about equal curvature everywhere.

    Shares are represented by their roots; variances, rates and covariances (as Cholesky factors) by their logarithms.
    With `every` above one the vector has only every n-th word, and cannot be converted back. If `hypers` are given, the
    prior parameters of every bundle with an axis for sets, parameters have that axis too, and every set has a vector.
    """

    def __init__(
        self, model: Model, imagined: Imagined, every: int = 1, hypers: Mapping[Name, Hyper] | None = None
    ) -> None:
        self.model, self.imagined, self.every, self.hypers = model, imagined, every, hypers
        self.parts: list[Part] = []
        for bundle in model.nodes.bundles:
            axis = None if hypers is None else set_axis(bundle)
            for name, line in bundle.family.facts.chart.items():
                free = [place for place, key in enumerate(bundle.keys) if name not in imagined.fixed.get(key, {})]
                if free:
                    some = None if len(free) == len(bundle.keys) else np.array(free)
                    self.parts.append(Part(bundle, name, line, some, axis))
        self.whole = all(bundle.family.facts.chart for bundle in model.nodes.bundles) and every == 1

    def vector(self, params: Params) -> np.ndarray:
        parts = [part.flatten(straight(self._some(part, params), part.line)) for part in self.parts]
        return np.concatenate(parts, axis=-1) if parts else np.zeros(0)

    def _some(self, part: Part, params: Params) -> np.ndarray:
        value = part.of(params)
        return value[:, :: self.every] if value.ndim == 2 and part.line in ("share", "shares") else value

    def weights(self, params: Params) -> np.ndarray:
        """Return the weight of each coordinate: the root of its group's share, in deviations of its column."""
        parts = [part.flatten(self._weight(part, params)) for part in self.parts]
        return np.concatenate(parts, axis=-1) if parts else np.zeros(0)

    def _weight(self, part: Part, params: Params) -> np.ndarray:
        shape = straight_shape(self._some(part, params).shape, part.line)
        if part.line != "plain" and part.is_shared:
            return np.ones(shape)
        if part.axis is None:
            shares = self.model.group_shares(params, part.bundle)
        else:
            shares = np.ones(1) if part.bundle.name == ROOT else shares_of(params)
        roots = np.sqrt(np.maximum(shares, 1e-12))
        at = len(shape) if part.axis is None or roots.ndim == 1 else part.axis
        after = [1] * (len(shape) - at - (roots.ndim - 1))
        weight = np.broadcast_to(roots.reshape(len(roots), *[1] * (at - 1), *roots.shape[1:], *after), shape)
        if part.line != "plain":
            return weight
        own = params.bundles[part.bundle.name]
        deviation = np.broadcast_to(floors.deviation(part.bundle.family, own), own[part.name].shape)
        return np.asarray(weight / (deviation if part.free is None else deviation[:, part.free]))

    def params(self, vector: np.ndarray, like: Params, free: bool = False) -> Params:
        """Convert a vector to parameters, within their floors; those without a coordinate are taken from `like`.

        Shares keep some of their old values unless they are `free`.
        """
        moved: dict[Name, Own] = {name: dict(own) for name, own in like.bundles.items()}
        for part, old, straightened in self._pieces(vector, like):
            value = bent(straightened, part.line, np.zeros_like(old) if free else old)
            moved[part.bundle.name][part.name] = part.put(value, moved[part.bundle.name][part.name])
        for x in self.model.nodes.bundles:
            hyper = self.imagined.of(x) if self.hypers is None else self.hypers[x.name]
            moved[x.name] = floors.clip(x.family, moved[x.name], hyper)
        return self.model.nodes.held(like.replaced(moved), self.imagined)

    def gradient(self, vector: np.ndarray, slopes: Params) -> np.ndarray:
        """Return the gradient along each coordinate, from the gradient with respect to the parameters."""
        pieces = self._pieces(vector, slopes)
        parts = [_along(straightened, part.line, slope).ravel() for part, slope, straightened in pieces]
        return np.concatenate([np.zeros(0), *parts])

    def _pieces(self, vector: np.ndarray, like: Params) -> Iterator[tuple[Part, np.ndarray, np.ndarray]]:
        """Yield every part with its array in `like` and its coordinates in the vector."""
        at = 0
        for part in self.parts:
            own = part.of(like)
            shape = straight_shape(own.shape, part.line)
            size = prod(shape) // (1 if part.axis is None else shape[part.axis])
            yield part, own, part.unflatten(vector[..., at : at + size], shape)
            at += size


def set_axis(bundle: Bundle) -> int:
    """Return the axis of the sets, after those of groups and columns."""
    return 1 if bundle.alone else 2


def shares_of(params: Params) -> np.ndarray:
    """Return the share of every class in every set, of shape (groups, sets)."""
    shares: np.ndarray = params.bundles[ROOT]["probability"][0, 0].T
    return shares


def straight(value: np.ndarray, line: Line) -> np.ndarray:
    if line == "log":
        return np.asarray(np.log(np.maximum(value, SMALLEST)) / np.sqrt(2.0))
    if line == "shares":
        return np.asarray(2.0 * np.sqrt(value))
    if line == "share":
        return np.asarray(2.0 * np.arcsin(np.sqrt(value)))
    if line == "covariance":
        factor = np.linalg.cholesky(value)
        own = np.arange(factor.shape[-1])
        diagonal = factor[..., own, own]
        factor = factor / diagonal[..., :, None]  # a row and its diagonal have the same unit
        factor[..., own, own] = np.log(diagonal)
        return factor[(..., *lower(factor.shape[-1]))]
    return value


def straight_shape(shape: tuple[int, ...], line: Line) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1] * (shape[-1] + 1) // 2) if line == "covariance" else shape


def bent(moved: np.ndarray, line: Line, old: np.ndarray) -> np.ndarray:
    """Convert coordinates back to a parameter.

    A share keeps at least a hundredth of its old value: from zero it could not grow.
    """
    if line == "log":
        return np.asarray(np.exp(np.clip(np.sqrt(2.0) * moved, -690.0, 690.0)))
    if line == "shares":
        inside = np.where(moved > 0.2 * np.sqrt(old), moved, np.where(old > 0, 0.2 * np.sqrt(old), moved)) ** 2
        return np.asarray(inside / inside.sum(axis=-1, keepdims=True))
    if line == "share":
        near = 0.2 * np.arcsin(np.sqrt(np.minimum(old, 1.0 - old)))
        return np.sin(0.5 * np.where(old > 0, np.clip(moved, near, np.pi - near), moved)) ** 2
    if line == "covariance":
        factor = _factor(moved, old.shape)
        return np.asarray(factor @ np.swapaxes(factor, -1, -2))
    return moved


def _along(moved: np.ndarray, line: Line, slope: np.ndarray) -> np.ndarray:
    """Return the slope along the coordinate, given that along the parameter."""
    if line == "log":
        return np.asarray(np.sqrt(2.0) * bent(moved, line, slope) * slope)
    if line == "shares":
        shares, size = bent(moved, line, np.zeros_like(slope)), (moved * moved).sum(axis=-1, keepdims=True)
        return np.asarray(2.0 * moved / size * (slope - (shares * slope).sum(axis=-1, keepdims=True)))
    if line == "share":
        return np.asarray(0.5 * np.sin(moved) * slope)
    if line == "covariance":
        factor, own = _factor(moved, slope.shape), np.arange(slope.shape[-1])
        steep = 2.0 * slope @ factor
        together = (np.tril(steep) * factor).sum(axis=-1)
        steep = steep * factor[..., own, own][..., :, None]
        steep[..., own, own] = together
        return np.asarray(steep[(..., *lower(slope.shape[-1]))])
    return slope


def _factor(moved: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    factor, own = np.zeros(shape), np.arange(shape[-1])
    factor[(..., *lower(shape[-1]))] = moved
    diagonal = np.exp(np.clip(factor[..., own, own], -345.0, 345.0))
    factor[..., own, own] = 1.0
    return factor * diagonal[..., :, None]
