"""The parameters of a mixture of trees as flat arrays, and its passes over rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.core.special import log_of, log_sum_exp


class Block(Struct, frozen=True):
    """Numbers that are jointly normal given the code of a discrete part, the `anchor` (-1: none)."""

    anchor: int
    members: tuple[int, ...]


class Shape(Struct, frozen=True):
    """The structure of one component: the parent of every discrete part (-1: none), and the blocks of numbers."""

    parents: tuple[int, ...]
    blocks: tuple[Block, ...]

    @property
    def n_edges(self) -> int:
        """Number of edges between discrete parts, and of blocks that depend on one."""
        return sum(p >= 0 for p in self.parents) + sum(block.anchor >= 0 for block in self.blocks)


NO_SOFT = np.zeros((0, 1, 1))


class Parts(Struct, frozen=True, eq=False):
    """Rows in parts: codes (rows x D, -1 missing), numbers (rows x R, NaN missing) and weights.

    `soft` (rows x 1 or K x levels) holds log-likelihoods of the codes of missing parts; without rows there are none.
    """

    codes: np.ndarray
    numbers: np.ndarray
    weights: np.ndarray
    soft: np.ndarray = NO_SOFT

    @property
    def n_rows(self) -> int:
        return len(self.weights)

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.codes, self.numbers, self.soft

    def take(self, rows: Any) -> Parts:
        soft = self.soft[rows] if len(self.soft) else self.soft
        return Parts(self.codes[rows], self.numbers[rows], self.weights[rows], soft)


class Layout(Struct, frozen=True, eq=False, dict=True):
    """Where the tables and blocks of all components lie in the flat arrays."""

    sizes: tuple[int, ...]
    n_numbers: int
    shapes: tuple[Shape, ...]

    @cached_property
    def starts(self) -> np.ndarray:
        """The first level of every part among the levels of all parts, and their number."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @cached_property
    def parents(self) -> np.ndarray:
        return np.array([s.parents for s in self.shapes], dtype=np.int64).reshape(len(self.shapes), len(self.sizes))

    @cached_property
    def order(self) -> np.ndarray:
        return np.array([order_of(s.parents) for s in self.shapes], dtype=np.int64).reshape(self.parents.shape)

    @cached_property
    def table_sizes(self) -> np.ndarray:
        sizes = np.array([*self.sizes, 1], dtype=np.int64)
        return np.asarray(sizes[self.parents] * sizes[:-1])

    @cached_property
    def offsets(self) -> np.ndarray:
        ends = np.cumsum(self.table_sizes.ravel())
        return np.asarray((ends - self.table_sizes.ravel()).reshape(self.table_sizes.shape), dtype=np.int64)

    @cached_property
    def entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The row of every table entry, its level within its component, and whether its part has a parent."""
        rows, levels, inner, row = [], [], [], 0
        n_levels = int(self.starts[-1])
        for k in range(len(self.shapes)):
            for d, size in enumerate(self.sizes):
                count = int(self.table_sizes[k, d]) // size
                rows.append(np.repeat(np.arange(row, row + count), size))
                levels.append(np.tile(np.arange(size) + self.starts[d] + k * n_levels, count))
                inner.append(np.full(count * size, self.parents[k, d] >= 0))
                row += count
        if not rows:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, bool)
        return np.concatenate(rows), np.concatenate(levels), np.concatenate(inner)

    @cached_property
    def blocks(self) -> np.ndarray:
        """(blocks x 6): anchor, first member, size, first cell, place of the first mean and of the first covariance."""
        found, at = [], np.zeros(4, dtype=np.int64)
        for shape in self.shapes:
            for block in shape.blocks:
                size, cells = len(block.members), self.sizes[block.anchor] if block.anchor >= 0 else 1
                found.append([block.anchor, int(at[0]), size, *at[1:].tolist()])
                at += np.array([size, cells, cells * size, cells * size**2])
        return np.array(found, dtype=np.int64).reshape(-1, 6)

    @cached_property
    def block_starts(self) -> np.ndarray:
        return np.cumsum([0, *(len(shape.blocks) for shape in self.shapes)]).astype(np.int64)

    @cached_property
    def members(self) -> np.ndarray:
        return np.array([j for s in self.shapes for b in s.blocks for j in b.members], dtype=np.int64)

    def cells(self, b: int) -> tuple[slice, slice, slice, int, int]:
        """Slices of the cells, means and covariances of a block, its number of cells and its size."""
        anchor, _, size, cell, mean, cov = (int(x) for x in self.blocks[b])
        n = self.sizes[anchor] if anchor >= 0 else 1
        return slice(cell, cell + n), slice(mean, mean + n * size), slice(cov, cov + n * size**2), n, size

    def members_of(self, b: int) -> np.ndarray:
        first, size = self.blocks[b, 1:3]
        return np.asarray(self.members[first : first + size])

    @cached_property
    def widths(self) -> tuple[int, int, int, int]:
        """Number of table entries, cells, means and covariances."""
        tables = int(self.table_sizes.sum())
        if not len(self.blocks):
            return tables, 0, 0, 0
        cells, means, covs, _, _ = self.cells(len(self.blocks) - 1)
        return tables, cells.stop, means.stop, covs.stop

    def empty_counts(self) -> tuple[np.ndarray, ...]:
        return (np.zeros(len(self.shapes)), *(np.zeros(width) for width in self.widths))

    @cached_property
    def tree(self) -> tuple[np.ndarray, ...]:
        return self.parents, self.order, self.offsets, np.array(self.sizes, dtype=np.int64), self.starts


def order_of(parents: Sequence[int]) -> list[int]:
    """Return the parts with parents before children."""
    children: dict[int, list[int]] = {}
    for d, p in enumerate(parents):
        children.setdefault(p, []).append(d)
    found = list(children.get(-1, ()))
    for d in found:
        found += children.get(d, ())
    return found


class TreeMixture(Struct, frozen=True, eq=False, dict=True):
    """A mixture of trees: log-weights of the components, probabilities of all tables, means and covariances."""

    layout: Layout
    log_weights: np.ndarray
    tables: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    @property
    def n_components(self) -> int:
        return len(self.log_weights)

    @property
    def n_parameters(self) -> int:
        """Free parameters: weights, tables, means and covariances."""
        rows = self.layout.entries[0]
        tables = len(self.tables) - (int(rows[-1]) + 1 if len(rows) else 0)
        products = sum(
            (n * size * (size + 1)) // 2 for *_, n, size in map(self.layout.cells, range(len(self.layout.blocks)))
        )
        return self.n_components - 1 + tables + len(self.means) + products

    @cached_property
    def compiled(self) -> tuple[Any, Any]:
        """The arrays that the kernels take: `tree` and `normal`."""
        own = self.layout
        whites = np.zeros_like(self.covariances)
        for b in range(len(own.blocks)):
            _, _, at, n, size = own.cells(b)
            cov = self.covariances[at].reshape(n, size, size)
            whites[at] = (1.0 / np.sqrt(cov) if size == 1 else np.linalg.inv(np.linalg.cholesky(cov))).ravel()
        normal = (own.block_starts, own.blocks, own.members, self.means, self.covariances, whites)
        return (*own.tree, log_of(self.tables), self.tables), normal

    def log_joint(self, parts: Parts, first: np.ndarray | None = None) -> np.ndarray:
        """Return (rows x K) logs of weight times density; `first` (rows x K) replaces the log-weights."""
        from softcount.kernels.trees import score

        out = np.empty((parts.n_rows, self.n_components))
        score(parts.rows, *self.compiled, self.log_weights[None] if first is None else first, out)
        return out

    def log_density(self, parts: Parts) -> np.ndarray:
        return np.asarray(log_sum_exp(self.log_joint(parts), axis=1))

    def beliefs(self, parts: Parts, units: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return (rows x levels) posteriors of codes, and (rows x R x 2) mean and mean square of missing numbers."""
        from softcount.kernels.trees import fill

        beliefs = np.zeros((parts.n_rows, int(self.layout.starts[-1])))
        moments = np.zeros((parts.n_rows, self.layout.n_numbers, 2))
        fill(parts.rows, *self.compiled, self.log_weights[None], units, beliefs, moments)
        return beliefs, moments

    def number_terms(self, parts: Parts, members: np.ndarray, r: int) -> np.ndarray:
        """Return (terms x 3) weights, means and variances of a missing number, given those of rows and components."""
        from softcount.kernels.trees import number_terms

        out = np.zeros((*members.shape, max(self.layout.sizes, default=1), 3))
        number_terms(parts.rows, *self.compiled, members, r, out)
        terms = out.reshape(-1, 3)
        return terms[terms[:, 0] > 0]

    def code_shares(self, parts: Parts, members: np.ndarray) -> np.ndarray:
        """Return the posteriors of the codes of all parts (levels), summed over rows and components by weight."""
        from softcount.kernels.trees import code_shares

        out = np.zeros(int(self.layout.starts[-1]))
        code_shares(parts.rows, *self.compiled, members, out)
        return out

    def condition_rows(self, parts: Parts, chosen: np.ndarray, r: int) -> np.ndarray:
        """Return (rows x 2) mean and variance of a missing number given the rest of the row and its component."""
        from softcount.kernels.trees import condition_rows

        out = np.empty((parts.n_rows, 2))
        condition_rows(parts.rows, *self.compiled, chosen, r, out)
        return out

    def draw(self, parts: Parts, rng: np.random.Generator, first: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
        """Draw the missing parts of every row; return codes, numbers and components."""
        from softcount.kernels.trees import draw

        codes, numbers = np.empty_like(parts.codes), np.empty_like(parts.numbers)
        chosen = np.empty(parts.n_rows, dtype=np.int64)
        uniforms = rng.random((parts.n_rows, 1 + codes.shape[1]))
        normals = rng.standard_normal(numbers.shape)
        start = self.log_weights[None] if first is None else first
        draw(parts.rows, *self.compiled, start, uniforms, normals, codes, numbers, chosen)
        return codes, numbers, chosen


def join_mixtures(mixtures: Sequence[TreeMixture], weights: np.ndarray) -> TreeMixture:
    """Return the mixture of several mixtures, with the components in the order of their weights."""
    parts = [(mix, k, np.log(share) + mix.log_weights[k]) for mix, share in zip(mixtures, weights, strict=True)
             for k in range(mix.n_components)]  # fmt: skip
    parts.sort(key=lambda part: -part[2])
    first = mixtures[0].layout
    layout = Layout(first.sizes, first.n_numbers, tuple(mix.layout.shapes[k] for mix, k, _ in parts))
    pieces: list[list[np.ndarray]] = [[], [], []]
    for mix, k, _ in parts:
        own = mix.layout
        if own.sizes:
            start = int(own.offsets[k, 0])
            pieces[0].append(mix.tables[start : start + int(own.table_sizes[k].sum())])
        for b in range(own.block_starts[k], own.block_starts[k + 1]):
            _, means, covs, _, _ = own.cells(b)
            pieces[1].append(mix.means[means])
            pieces[2].append(mix.covariances[covs])
    logs = np.array([log for *_, log in parts])
    flat = (np.concatenate([np.zeros(0), *own]) for own in pieces)
    return TreeMixture(layout, logs - float(log_sum_exp(logs)), *flat)
