"""The oracle of joint models: every answer by enumeration of components and codes, in plain loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise, product
from typing import Any

import numpy as np
from scipy.stats import norm

from softcount.tree_mixtures.columns import Categories, Coding, Number, Unit
from softcount.tree_mixtures.mixture import Block, Layout, Shape, TreeMixture


def random_forest(rng: np.random.Generator, count: int) -> tuple[int, ...]:
    order, parents = rng.permutation(count), [-1] * count
    for place in range(1, count):
        if rng.random() < 0.8:
            parents[order[place]] = int(order[rng.integers(place)])
    return tuple(parents)


def random_blocks(rng: np.random.Generator, parts: int, numbers: int) -> tuple[Block, ...]:
    groups: dict[int, list[int]] = {}
    for r in range(numbers):
        groups.setdefault(int(rng.integers(numbers)), []).append(r)
    return tuple(Block(int(rng.integers(-1, parts)), tuple(members)) for members in groups.values())


def random_mixture(rng: np.random.Generator, sizes: tuple[int, ...], numbers: int) -> TreeMixture:
    """A mixture with random trees, tables, anchors and covariances."""
    count = int(rng.integers(1, 4))
    shapes = tuple(Shape(random_forest(rng, len(sizes)), random_blocks(rng, len(sizes), numbers)) for _ in range(count))
    layout = Layout(sizes, numbers, shapes)
    rows = layout.entries[0]
    tables = rng.gamma(0.7, size=len(rows)) + 0.01
    tables /= np.bincount(rows, tables)[rows]
    covariances = []
    for b in range(len(layout.blocks)):
        *_, n, size = layout.cells(b)
        for _ in range(n):
            root = rng.standard_normal((size, size))
            covariances.append((root @ root.T + 0.3 * np.eye(size)).ravel())
    weights = rng.dirichlet(np.ones(count))
    flat = np.concatenate([np.zeros(0), *covariances])
    return TreeMixture(layout, np.log(weights), tables, rng.standard_normal(layout.widths[2]), flat)


def random_coding(rng: np.random.Generator, coding: Coding, spikes: Mapping[Any, np.ndarray]) -> Coding:
    """The coding with random piecewise linear units."""
    columns = []
    for own in coding.columns:
        if isinstance(own, Number):
            x = np.cumsum(rng.uniform(0.2, 1.0, size=4)) - 1.5
            z = np.cumsum(rng.uniform(0.2, 1.0, size=4)) - 1.2
            own = Number(own.key, own.number, Unit(x, z), own.part, own.spikes, (-np.inf, np.inf))
        columns.append(own)
    return Coding(tuple(columns))


Case = tuple[float, int, tuple[int, ...]]
"""A weight, a component and the codes of all parts."""


class Enumeration:
    """All codes of a small mixture with given codes, numbers (in units) and ranges of single numbers."""

    def __init__(self, mixture: TreeMixture, allowed: list[list[int]], numbers: Mapping[int, float]) -> None:
        self.mixture, self.layout, self.numbers = mixture, mixture.layout, dict(numbers)
        self.cases = list(self._cases(allowed))
        self.total = sum(weight for weight, *_ in self.cases)

    def _cases(self, allowed: list[list[int]]) -> Iterator[Case]:
        for k in range(self.mixture.n_components):
            for codes in product(*allowed):
                yield self._weight(k, codes), k, codes

    def _weight(self, k: int, codes: tuple[int, ...]) -> float:
        weight, own = float(np.exp(self.mixture.log_weights[k])), self.layout
        for d, p in enumerate(own.shapes[k].parents):
            above = codes[p] if p >= 0 else 0
            weight *= self.mixture.tables[own.offsets[k, d] + above * own.sizes[d] + codes[d]]
        for place in range(len(own.shapes[k].blocks)):
            seen, mean, cov = self._block(k, place, codes)
            here = [j for j, r in enumerate(seen) if r in self.numbers]
            if here:
                x = np.array([self.numbers[seen[j]] for j in here]) - mean[here]
                part = cov[np.ix_(here, here)]
                weight *= np.exp(-0.5 * x @ np.linalg.solve(part, x)) / np.sqrt(np.linalg.det(2 * np.pi * part))
        return weight

    def _block(self, k: int, place: int, codes: tuple[int, ...]) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
        block = self.layout.shapes[k].blocks[place]
        _, means, square, n, size = self.layout.cells(int(self.layout.block_starts[k]) + place)
        c = codes[block.anchor] if block.anchor >= 0 else 0
        mean = self.mixture.means[means].reshape(n, size)[c]
        return block.members, mean, self.mixture.covariances[square].reshape(n, size, size)[c]

    def shares(self, part: int) -> np.ndarray:
        found = np.zeros(self.layout.sizes[part])
        for weight, _, codes in self.cases:
            found[codes[part]] += weight
        return found / self.total

    def normals(self, r: int) -> list[tuple[float, float, float]]:
        """Weight, mean and deviation of a missing number in every case."""
        found = []
        for weight, k, codes in self.cases:
            for place, block in enumerate(self.layout.shapes[k].blocks):
                if r not in block.members:
                    continue
                members, mean, cov = self._block(k, place, codes)
                j, here = members.index(r), [i for i, x in enumerate(members) if x in self.numbers]
                gain = np.linalg.solve(cov[np.ix_(here, here)], cov[here, j]) if here else np.zeros(0)
                off = np.array([self.numbers[members[i]] for i in here]) - mean[here]
                variance = cov[j, j] - gain @ cov[here, j]
                found.append((weight / self.total, float(mean[j] + gain @ off), float(np.sqrt(variance))))
        return found


def moments_by_quadrature(normals: list[tuple[float, float, float]], unit: Unit) -> tuple[float, float]:
    """Mean and variance of a number whose transform is a mixture of normals, by Gauss-Legendre between the knots."""
    points, weights = np.polynomial.legendre.leggauss(24)
    first = second = 0.0
    for share, mean, sd in normals:
        edges = np.unique(np.concatenate([unit.z, np.linspace(mean - 12 * sd, mean + 12 * sd, 13)]))
        for low, high in pairwise(edges):
            z = (low + high) / 2 + (high - low) / 2 * points
            mass = share * norm.pdf(z, mean, sd) * weights * (high - low) / 2
            x = unit.backward(z)
            first += mass @ x
            second += mass @ x**2
    return first, second - first**2


def code_of(own: Any, value: Any, levels: list[Any]) -> int:
    return (
        int(own.codes[1 + levels.index(value)])
        if isinstance(own, Categories)
        else int(np.argmin(abs(own.values - value)))
    )
