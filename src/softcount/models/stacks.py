"""Stacks: columns of one kind of family, scored and counted together by one kernel."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from msgspec import Struct

from softcount.core.counts import Twofold, stack
from softcount.core.formulas import CLAMPED
from softcount.families.normal import centred_form
from softcount.kernels import WORTH_COMPILING, choose
from softcount.models.nodes import Bundle, Name, Node, Params
from softcount.table.chunk import Chunk
from softcount.table.schema import ColumnPlace, Key

if TYPE_CHECKING:
    from softcount.families.categorical import CategoricalDensity
    from softcount.families.joint import Joint
    from softcount.families.point_counts import PointCounts


class Ragged(Twofold):
    """Counts (groups x cells): column j owns `sizes[j]` neighbouring cells, one for each of its codes.

    Adding two of them makes room for classes and codes that only one of them has.
    """

    __slots__ = ("sizes",)

    def __init__(self, hi: np.ndarray, lo: np.ndarray, sizes: tuple[int, ...]) -> None:
        super().__init__(hi, lo)
        self.sizes = sizes

    def __reduce__(self) -> Any:
        return Ragged, (self.hi, self.lo, self.sizes)

    def alike(self, hi: np.ndarray, lo: np.ndarray) -> Self:
        return type(self)(hi, lo, self.sizes)

    def joined(self, other: Ragged) -> Ragged:
        groups = max(self.shape[0], other.shape[0])
        sizes = self.sizes
        if sizes != other.sizes:
            sizes = tuple(max(pair) for pair in zip(sizes, other.sizes, strict=True))
        both = self.grown(groups, sizes) + other.grown(groups, sizes)
        return Ragged(both.hi, both.lo, sizes)

    def grown(self, groups: int, sizes: tuple[int, ...]) -> Twofold:
        if groups == self.shape[0] and sizes == self.sizes:
            return self
        own = np.arange(sum(self.sizes)) + np.repeat(starts_of(sizes) - starts_of(self.sizes), self.sizes)
        hi, lo = np.zeros((2, groups, sum(sizes)))
        hi[: self.shape[0], own], lo[: self.shape[0], own] = self.hi, self.lo
        return Twofold(hi, lo)

    def recoded(self, moves: Sequence[np.ndarray | None]) -> Ragged:
        sizes = self.sizes
        for j, move in enumerate(moves):
            if move is not None and move.max(initial=0) >= sizes[j]:
                sizes = (*sizes[:j], int(move.max()) + 1, *sizes[j + 1 :])
        hi, lo = np.zeros((2, self.shape[0], sum(sizes)))
        for move, size, old, new in zip(moves, self.sizes, starts_of(self.sizes), starts_of(sizes), strict=True):
            own = np.arange(size) if move is None else move[:size]
            hi[:, new + own] = self.hi[:, old : old + len(own)]
            lo[:, new + own] = self.lo[:, old : old + len(own)]
        return Ragged(hi, lo, sizes)

    def side_by_side(self, columns: np.ndarray, first: int, width: int) -> Twofold:
        """Return (groups x columns x width) counts from code `first` on; zero beyond the counted codes."""
        sizes = np.array(self.sizes)[columns]
        codes = np.arange(first, first + width)
        cells = starts_of(self.sizes)[columns][:, None] + codes
        met = codes < sizes[:, None]
        if met.all():
            return self.take(cells, 1)
        hi, lo = np.zeros((2, self.shape[0], len(columns), width))
        hi[:, met], lo[:, met] = self.hi[:, cells[met]], self.lo[:, cells[met]]
        return Twofold(hi, lo)


def starts_of(sizes: tuple[int, ...] | list[int]) -> np.ndarray:
    """Return the first cell of each column when columns follow each other."""
    return np.cumsum([0, *sizes[:-1]], dtype=np.int64)


Tallies = dict[Hashable, Twofold]
chosen = cache(choose)
PAIR_CELLS = 4096
"""Cells of all pairs of columns up to which kernels count two columns together, as `kernels.codes` decides."""
ABREAST = 64
STEADY = 1e5
"""Largest terms of a product form for typical rows: a row's score may be off by 1e-16 of them, 1e-11."""


class Kernels(Struct, frozen=True):
    """The kernels for a table of this many cells: plain NumPy for small tables, compiled loops for large ones."""

    cells: int

    @property
    def compiled(self) -> bool:
        return self.cells >= WORTH_COMPILING

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(chosen(self.cells), name)


class Stack(Struct, frozen=True, eq=False):
    """The interface of all stacks, and the default implementation.

    The default uses the family's features and natural parameters, or its `score` and `count`. `places` holds the places
    of its columns in a chunk, in the order of the nodes.
    """

    name: Hashable
    nodes: tuple[Node, ...]
    bundles: tuple[Bundle, ...]
    places: tuple[ColumnPlace, ...]
    kernels: Kernels

    clamped: ClassVar[bool] = True
    """Whether a very low score stands for probability zero, because products must stay finite."""

    @property
    def node(self) -> Node:
        return self.nodes[0]

    @property
    def _is_block(self) -> bool:
        return isinstance(self.node.key, tuple)

    def prepare(self, chunk: Chunk) -> Any:
        """Return the columns, and the features of all of them if counting is a product."""
        columns = chunk.reals[:, [place.slot for place in self.places]]
        parts = []
        for place, node in enumerate(self.nodes):
            own = self._own(columns, place)
            node.family.check(own, node.key, chunk.start)
            parts += [node.family.features(own, node.setting)] if node.family.facts.has_products else []
        return columns, np.concatenate(parts, axis=1) if parts else None

    def _own(self, columns: np.ndarray, node: int) -> np.ndarray:
        return columns if self._is_block else columns[:, node]

    def column(self, chunk: Chunk, node: int = 0) -> Any:
        """Return the values of a node in a chunk: a column, or all columns of a block."""
        stored = getattr(chunk, self.places[node].store)
        slots = [place.slot for place in self.places]
        return stored[:, slots if self._is_block else slots[node]]

    def there(self, data: Any, node: int = 0) -> np.ndarray:
        """Return which rows have a value in the only node of this stack."""
        values = np.asarray(data[0] if isinstance(data, tuple) else data, dtype=float)
        return np.asarray(~np.isnan(values.reshape(len(values), -1)).all(axis=1))

    def base(self, data: Any) -> np.ndarray | float:
        """Return the part of each row's log-density that is the same in all groups."""
        return sum((node.family.base(self._own(data[0], place)) for place, node in enumerate(self.nodes)), 0.0)

    def compile(self, params: Params) -> Any:
        """Return the densities of the nodes, and natural parameters if scores are products (else None)."""
        densities, family = [node.density(params) for node in self.nodes], self.node.family
        product = family.facts.has_products and all(density.is_product for density in densities)
        return densities, np.concatenate([family.natural(x.own) for x in densities], axis=1) if product else None

    def contrast(self, compiled: Any) -> Any:
        """Reduce the parameters to the differences between groups."""
        return compiled

    def weighed(self, compiled: Any, weights: np.ndarray) -> Any:
        """Return parameters that multiply each node's log-density by its weight; None if that is impossible."""
        return None

    def score(self, data: Any, compiled: Any, out: np.ndarray) -> None:
        """Add the log-density of every row in every group to `out`."""
        eta = compiled[1]
        if eta is not None:
            out += data[1] @ eta.T
            return
        for place in range(len(self.nodes)):
            self.score_node(data, compiled, place, out)

    def posterior(self, data: Any, compiled: Any, log_shares: np.ndarray, out: np.ndarray) -> np.ndarray | None:
        """Write the memberships of rows to `out` and return their log evidence; None if this stack cannot."""
        return None

    def score_node(self, data: Any, compiled: Any, node: int, out: np.ndarray) -> None:
        densities, eta = compiled
        if eta is not None:
            own = slice(node * self.bundles[0].width, (node + 1) * self.bundles[0].width)
            out += data[1][:, own] @ eta[:, own].T
        else:
            out += densities[node].score(self._own(data[0], node))

    def score_nodes(self, data: Any, compiled: Any, out: np.ndarray) -> np.ndarray:
        """Add the part of `score` of each node to (nodes x rows x groups) zeros."""
        for place in range(len(self.nodes)):
            self.score_node(data, compiled, place, out[place])
        return out

    def score_linear(self, data: Any, node: int, weights: np.ndarray, out: np.ndarray) -> None:
        """Add one node's features times (groups x features) weights; a missing cell adds 0."""
        width = weights.shape[1]
        out += data[1][:, node * width : (node + 1) * width] @ weights.T

    def count(self, data: Any, memberships: np.ndarray, compiled: Any) -> Tallies:
        """Return statistics under memberships; expected ones under the parameters, or without any."""
        columns, features = data
        if features is not None:
            flat = memberships.T @ features
            return {self.name: Twofold.of(flat.reshape(len(flat), len(self.nodes), -1))}
        private = [None] * len(self.nodes) if compiled is None else [density.own for density in compiled[0]]
        parts = [
            node.family.count(self._own(columns, place), memberships, private[place], node.setting)
            for place, node in enumerate(self.nodes)
        ]
        return {self.name: stack(parts, axis=1)}

    def count_labelled(self, data: Any, labels: np.ndarray, weights: np.ndarray | None, groups: int) -> Tallies:
        family, setting = self.node.family, self.node.setting
        if family.facts.counts_points:  # a stack of one column
            counted = cast("PointCounts", family).count_labels(self._own(data[0], 0), labels, weights, groups, setting)
            return {self.name: counted.spread(1)}
        return self.count(data, one_hot(labels, weights, groups), None)

    def count_shown(self, data: Any, labels: np.ndarray, weights: np.ndarray | None) -> Tallies:
        """Count the rows that show the nodes; `labels` (rows x nodes) holds the group of each node."""
        return self.count_labelled(data, np.ascontiguousarray(labels[:, 0]), weights, self.bundles[0].groups)

    def unsettled(self, data: Any) -> np.ndarray | bool:
        """Return which rows of known class need parameters to be counted."""
        return any(node.describe_hidden(False) for node in self.nodes)

    def split(self, counts: Twofold) -> dict[Name, Twofold]:
        return {self.bundles[0].name: counts[:, 0] if self.bundles[0].alone else counts}

    def recoded(self, counts: Twofold, moves: Mapping[Key, np.ndarray]) -> Twofold:
        return counts

    # -- many sets of parameters together: arrays have an axis for them after those of groups and columns

    def features(self, data: Any) -> np.ndarray | None:
        """Return (rows x features) whose product with natural parameters is the score; None if it is not a product."""
        if not all(node.family.facts.races for node in self.nodes):
            return None
        if data[1] is not None:
            return np.asarray(data[1])
        parts = (node.family.features(self._own(data[0], at), node.setting) for at, node in enumerate(self.nodes))
        return np.concatenate(list(parts), axis=1)

    def naturals(self, params: Params, wide: int) -> np.ndarray:
        """Return (groups x sets x features) natural parameters of `wide` features."""
        parts = [node.family.natural(params[node.key]) for node in self.nodes]
        return np.concatenate(parts, axis=-1)

    @property
    def common(self) -> int | None:
        """First feature whose natural parameters are equal in all groups: only totals over groups matter."""
        return None

    def statistics(self, totals: np.ndarray) -> dict[Name, np.ndarray]:
        """Convert totals of the features (groups x sets x features) to statistics of every bundle."""
        if self.bundles[0].alone:
            return {self.bundles[0].name: totals}
        apart = totals.reshape(*totals.shape[:2], len(self.nodes), -1)
        return {self.bundles[0].name: np.swapaxes(apart, 1, 2)}

    def positions(self) -> Iterable[tuple[Bundle, Any]]:
        order = [node.key for node in self.nodes]
        for bundle in self.bundles:
            yield bundle, slice(None) if bundle.keys == order else np.array(list(map(order.index, bundle.keys)))


def wanted(stored: np.ndarray, places: tuple[ColumnPlace, ...]) -> np.ndarray:
    """Return the columns of a chunk's array at these places; the array itself if they are all of it."""
    slots = [place.slot for place in places]
    return stored if slots == list(range(stored.shape[1])) else np.ascontiguousarray(stored[:, slots])


class Reals(Stack, frozen=True, eq=False, dict=True):
    """Normal and lognormal columns: each group is centred on its own rows, then anchored.

    `units` holds the anchors and scales of all columns; every pass uses them several times.
    """

    clamped: ClassVar[bool] = False

    @cached_property
    def units(self) -> np.ndarray:
        return np.array([(x.setting.anchor[0], x.setting.scale[0]) for x in self.nodes], dtype=np.float64).T.copy()

    def prepare(self, chunk: Chunk) -> np.ndarray:
        values = wanted(chunk.reals, self.places)
        if self._log_columns:
            values = values.copy()
            for j in self._log_columns:
                self.nodes[j].family.check(values[:, j], self.nodes[j].key, chunk.start)
                values[:, j] = np.log(values[:, j])
        return values

    @cached_property
    def _log_columns(self) -> list[int]:
        return [j for j, node in enumerate(self.nodes) if node.family.facts.kind.logged]

    def base(self, data: np.ndarray) -> np.ndarray | float:
        return -np.nan_to_num(data[:, self._log_columns]).sum(axis=1) if self._log_columns else 0.0

    def compile(self, params: Params) -> Any:
        """Return means, inverse deviations and constants in the user's units, and their product form if faster."""
        units, groups = self.units, self.bundles[0].groups
        means, inverse, constants = np.empty((3, groups, len(self.nodes)))
        for bundle, at in self.positions():
            form = centred_form(params.bundles[bundle.name], *units[:, at])
            if form is None:
                return [node.density(params) for node in self.nodes]
            means[:, at], inverse[:, at], constants[:, at] = form
        bells = means, inverse, constants
        return *bells, square_form(bells, units) if self.kernels.compiled else None

    def contrast(self, compiled: Any) -> Any:
        """Remove columns that are equal in all groups: an outlier in one of them would hide the others."""
        if not isinstance(compiled, tuple):
            return compiled
        means, inverse, constant, _ = compiled
        apart = (means != means[0]).any(axis=0) | (inverse != inverse[0]).any(axis=0)
        return means, np.where(apart, inverse, 0.0), np.where(apart, constant, 0.0), None

    def weighed(self, compiled: Any, weights: np.ndarray) -> Any:
        if not isinstance(compiled, tuple):
            return None
        means, inverse, constants, _ = compiled
        return means, inverse * np.sqrt(weights), constants * weights, None

    def score(self, data: np.ndarray, compiled: Any, out: np.ndarray) -> None:
        if isinstance(compiled, tuple):
            self.kernels.score_reals(data, *compiled[:3], out)
            return
        for j in range(len(self.nodes)):
            self.score_node(data, compiled, j, out)

    def posterior(self, data: np.ndarray, compiled: Any, log_shares: np.ndarray, out: np.ndarray) -> np.ndarray | None:
        if not isinstance(compiled, tuple):
            return None
        evidence: np.ndarray = self.kernels.posterior_reals(data, *compiled[:3], log_shares, out)
        return evidence

    def score_node(self, data: np.ndarray, compiled: Any, node: int, out: np.ndarray) -> None:
        if isinstance(compiled, tuple):
            own = [np.ascontiguousarray(part[:, node : node + 1]) for part in compiled[:3]]
            self.kernels.score_reals(np.ascontiguousarray(data[:, node : node + 1]), *own, out)
            return
        column = data[:, node]
        out += compiled[node].score(np.exp(column) if self.nodes[node].family.facts.kind.logged else column)

    def score_nodes(self, data: np.ndarray, compiled: Any, out: np.ndarray) -> np.ndarray:
        if not isinstance(compiled, tuple):
            return Stack.score_nodes(self, data, compiled, out)
        means, inverse, constants = (part.T[:, None] for part in compiled[:3])
        with np.errstate(over="ignore", invalid="ignore"):
            np.subtract(data.T[:, :, None], means, out=out)
            out *= inverse
            np.square(out, out=out)
            out *= -0.5
            out += constants
        out[np.isnan(data.T)] = 0.0
        return out

    def score_linear(self, data: np.ndarray, node: int, weights: np.ndarray, out: np.ndarray) -> None:
        anchor, scale = self.units[:, node]
        moved, there = (data[:, node] - anchor) * scale, ~np.isnan(data[:, node])
        for feature, column in zip(weights.T, (np.ones(len(moved)), moved, moved * moved), strict=True):
            if feature.any():
                out += np.where(there, column, 0.0)[:, None] * feature

    def expect(
        self, data: np.ndarray, compiled: Any, log_shares: np.ndarray, weights: np.ndarray | None
    ) -> tuple[Twofold, Twofold, float] | None:
        """Run a whole E-step in one kernel, for long tables of complete rows near their means; None otherwise."""
        eta = compiled[3] if isinstance(compiled, tuple) else None
        if eta is None or self._log_columns:
            return None
        eta = eta.copy()
        eta[:, 0] += log_shares
        high, low, likelihood = self.kernels.expect_squares(data, weights, self.units, eta)
        if np.isnan(likelihood):
            return None
        return Twofold(high, low), Twofold(high[:, 0, 0], low[:, 0, 0]), likelihood

    def count(self, data: np.ndarray, memberships: np.ndarray, compiled: Any) -> Tallies:
        anchors, scales = self.units
        if not isinstance(compiled, tuple):
            centres = np.ascontiguousarray(np.broadcast_to(anchors, (memberships.shape[1], len(self.nodes))))
        else:
            centres = compiled[0]
        return {self.name: Twofold(*self.kernels.count_reals_soft(data, memberships, centres, anchors, scales))}

    def count_labelled(self, data: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, groups: int) -> Tallies:
        anchors, scales = self.units
        centres = first_rows(data, labels, groups, anchors)
        return {self.name: Twofold(*self.kernels.count_reals_labelled(data, labels, weights, centres, anchors, scales))}

    def split(self, counts: Twofold) -> dict[Name, Twofold]:
        return {bundle.name: counts[:, at] for bundle, at in self.positions()}

    def features(self, data: np.ndarray) -> np.ndarray:
        """Return presence, numbers and squares, column by column; complete rows have one presence for all columns."""
        anchors, scales = self.units
        moved, here = (data - anchors) * scales, ~np.isnan(data)
        if here.all():
            return np.concatenate([np.ones((len(data), 1)), moved, moved * moved], axis=1)
        moved = np.where(here, moved, 0.0)
        return np.concatenate([here, moved, moved * moved], axis=1)

    def naturals(self, params: Params, wide: int) -> np.ndarray:
        columns, logs = len(self.nodes), np.log(self.units[1])
        (groups, _, sets) = next(iter(params.bundles[self.bundles[0].name].values())).shape[:3]
        eta = np.empty((groups, columns, sets, 3))
        for bundle, at in self.positions():
            eta[:, at] = bundle.family.natural(params.bundles[bundle.name])
        eta[..., 0] += logs[:, None]
        constants = eta[..., 0].sum(axis=1)[..., None] if wide == 1 + 2 * columns else eta[..., 0].swapaxes(1, 2)
        return np.concatenate([constants, eta[..., 1].swapaxes(1, 2), eta[..., 2].swapaxes(1, 2)], axis=2)

    def statistics(self, totals: np.ndarray) -> dict[Name, np.ndarray]:
        columns = len(self.nodes)
        first = np.swapaxes(totals[..., : totals.shape[2] - 2 * columns], 1, 2)
        stats = np.empty((len(totals), columns, totals.shape[1], 3))
        stats[..., 0] = first
        stats[..., 1] = np.swapaxes(totals[..., -2 * columns : -columns], 1, 2)
        stats[..., 2] = np.swapaxes(totals[..., -columns:], 1, 2)
        return {bundle.name: stats[:, at] for bundle, at in self.positions()}


def square_form(compiled: Any, units: np.ndarray) -> np.ndarray | None:
    """Return (groups, 1 + 2 d) that multiply 1, t and t^2 of t = (x - anchor) * scale; None if digits are lost.

    `compiled` holds means, inverse deviations and constants in the user's units, as `score_reals` takes them.
    """
    means, inverse, constants = compiled
    anchors, scales = units
    with np.errstate(over="ignore", invalid="ignore"):
        pace, off = inverse / scales, (means - anchors) * inverse
        reach = np.abs(off) + 1.0
        eta = np.concatenate(
            [(constants - 0.5 * off * off).sum(axis=1, keepdims=True), pace * off, -0.5 * pace * pace], axis=1
        )
        steady = np.sqrt((reach**4).sum(axis=1)).max(initial=0.0) < STEADY
    return eta if steady and np.isfinite(eta).all() else None


def first_rows(data: np.ndarray, labels: np.ndarray, groups: int, anchors: np.ndarray) -> np.ndarray:
    """Return a row of each group to count around: any member is within a few deviations of its group's mean."""
    if not len(labels):
        return np.tile(anchors, (groups, 1))
    first = _first_of(labels[:1024], groups)
    if (first < 0).any() and len(labels) > 1024:
        first = _first_of(labels, groups)
    rows = data[first]
    return np.where(np.isfinite(rows) & (first >= 0)[:, None], rows, anchors)


def _first_of(labels: np.ndarray, groups: int) -> np.ndarray:
    first = np.full(groups + 1, -1)
    # The last row written for a group stays, so rows are written backwards; unknown ones go to the end.
    first[labels[::-1]] = np.arange(len(labels) - 1, -1, -1)
    return first[:groups]


class Codes(Stack, frozen=True, eq=False):
    """Categorical columns: log-probabilities looked up by code, rows counted by code."""

    clamped: ClassVar[bool] = False
    first: ClassVar[int] = 1
    """Code of the first category: 0 is missing."""

    def prepare(self, chunk: Chunk) -> np.ndarray:
        return wanted(getattr(chunk, self.places[0].store), self.places)

    def base(self, data: np.ndarray) -> float:
        return 0.0

    def compile(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        """Return the first cell of every column, and log-probabilities by code with the groups side by side."""
        tables = self._by_node(lambda bundle: table_of(bundle, params))
        starts = starts_of([table.shape[-1] for table in tables])
        return starts, np.ascontiguousarray(np.concatenate([table.T for table in tables]))

    def _by_node(self, table_of: Callable[[Bundle], np.ndarray]) -> list[np.ndarray]:
        """Return the table of each node, from the tables of the bundles, which have the nodes on their second axis."""
        found: dict[Key, np.ndarray] = {}
        for bundle in self.bundles:
            table = table_of(bundle)
            found |= dict(zip(bundle.keys, table[None] if bundle.alone else table.swapaxes(0, 1), strict=True))
        return [found[node.key] for node in self.nodes]

    def weighed(self, compiled: Any, weights: np.ndarray) -> Any:
        starts, table = compiled
        if not np.isfinite(table).all():
            return None
        each = np.repeat(weights, np.diff([*starts, len(table)]))
        return starts, table * each[:, None]

    def score(self, data: np.ndarray, compiled: Any, out: np.ndarray) -> None:
        self.kernels.score_codes(data, *compiled, out)

    def posterior(self, data: np.ndarray, compiled: Any, log_shares: np.ndarray, out: np.ndarray) -> np.ndarray:
        evidence: np.ndarray = self.kernels.posterior_codes(data, *compiled, log_shares, out)
        return evidence

    def score_node(self, data: np.ndarray, compiled: Any, node: int, out: np.ndarray) -> None:
        starts, table = compiled
        stop = starts[node + 1] if node + 1 < len(starts) else len(table)
        own = np.ascontiguousarray(data[:, node : node + 1])
        self.kernels.score_codes(own, np.zeros(1, dtype=np.int64), table[starts[node] : stop], out)

    def score_linear(self, data: np.ndarray, node: int, weights: np.ndarray, out: np.ndarray) -> None:
        table = np.pad(weights.T, ((1, 1), (0, 0)))  # zeros for a missing cell and for an unseen category
        out += table[np.minimum(data[:, node], len(table) - 1)]

    def count(self, data: np.ndarray, memberships: np.ndarray, compiled: Any) -> Tallies:
        sizes = self._sizes(data)
        return self._as_counts(self.kernels.count_codes_soft(data, starts_of(sizes), memberships, sum(sizes)), sizes)

    def count_labelled(self, data: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, groups: int) -> Tallies:
        sizes = self._sizes(data)
        flat = self.kernels.count_codes_labelled(data, starts_of(sizes), labels, weights, sum(sizes), groups)
        return self._as_counts(flat, sizes)

    def _sizes(self, data: np.ndarray) -> list[int]:
        """Return the room for codes: that of the widest column, or per column if there would be too many pairs."""
        columns = len(self.nodes)
        room = int(data.max(initial=0)) + 1
        if columns < 2 or room * room * columns <= 2 * PAIR_CELLS:
            return [room] * columns
        sizes: list[int] = (down_columns(np.maximum, data).astype(np.int64) + 1).tolist()
        return sizes

    def _as_counts(self, flat: np.ndarray, sizes: list[int]) -> Tallies:
        counts = np.ascontiguousarray(flat.T)
        return {self.name: Ragged(counts, np.zeros_like(counts), tuple(sizes))}

    def recoded(self, counts: Twofold, moves: Mapping[Key, np.ndarray]) -> Twofold:
        assert isinstance(counts, Ragged)
        return counts.recoded([moves.get(node.key) for node in self.nodes])

    def split(self, counts: Twofold) -> dict[Name, Twofold]:
        assert isinstance(counts, Ragged)
        found = {}
        for bundle, at in self.positions():
            own = counts.side_by_side(np.arange(len(self.nodes))[at], self.first, bundle.width)
            found[bundle.name] = own[:, 0] if bundle.alone else own
        return found

    def features(self, data: np.ndarray) -> np.ndarray | None:
        """Return a feature for every category of every column, 1 if the row has that category."""
        own = [node.family.features(data[:, place], node.setting) for place, node in enumerate(self.nodes)]
        return np.concatenate(own, axis=1)

    def naturals(self, params: Params, wide: int) -> np.ndarray:
        tables = self._by_node(lambda bundle: bundle.family.natural(params.bundles[bundle.name]))
        return np.asarray(np.maximum(np.concatenate(tables, axis=-1), CLAMPED))

    def statistics(self, totals: np.ndarray) -> dict[Name, np.ndarray]:
        ends = np.cumsum([node.family.width(node.setting) for node in self.nodes])[:-1]
        parts = np.split(totals, ends, axis=-1)
        return {
            bundle.name: np.stack([parts[place] for place in np.arange(len(self.nodes))[at]], axis=1)
            for bundle, at in self.positions()
        }


def down_columns(join: np.ufunc, table: np.ndarray) -> np.ndarray:
    """Reduce each column with `join`, many rows at a time: short rows would cost a loop each."""
    rows, columns = table.shape
    whole = rows // ABREAST * ABREAST
    wide = join.reduce(table[:whole].reshape(-1, ABREAST * columns), axis=0, initial=0)
    rest = join.reduce(table[whole:], axis=0, initial=0)
    found: np.ndarray = join(join.reduce(wide.reshape(ABREAST, columns), axis=0), rest)
    return found


class JointCodes(Codes, frozen=True, eq=False):
    """One block of discrete columns, looked up by the code of its combination."""

    first: ClassVar[int] = 0

    def prepare(self, chunk: Chunk) -> np.ndarray:
        return self.column(chunk)[:, None]

    def column(self, chunk: Chunk, node: int = 0) -> np.ndarray:
        parts = [getattr(chunk, place.store)[:, place.slot].astype(np.int32) for place in self.places]
        return cast("Joint", self.node.family).combine(np.stack(parts, axis=1))

    def features(self, data: np.ndarray) -> np.ndarray | None:
        """Return a feature for every pattern; None if the block has incomplete rows, which are filled set by set."""
        there = cast("Joint", self.node.family).present(data[:, 0])
        holes = there.any(axis=1) & ~there.all(axis=1)
        return None if holes.any() else Codes.features(self, data)

    def naturals(self, params: Params, wide: int) -> np.ndarray:
        table = table_of(self.bundles[0], params)
        return np.asarray(np.maximum(table[..., :-1], CLAMPED))

    def statistics(self, totals: np.ndarray) -> dict[Name, np.ndarray]:
        return {self.bundles[0].name: totals}


def table_of(bundle: Bundle, params: Params) -> np.ndarray:
    """Return the log-probabilities by code of all nodes of a bundle."""
    density = bundle.family.density(params.bundles[bundle.name], bundle.nodes[0].setting)
    return cast("CategoricalDensity", density).table()


def one_hot(labels: np.ndarray, weights: np.ndarray | None, groups: int) -> np.ndarray:
    """Return (rows x groups) memberships of labelled rows; a row of unknown class is zeros."""
    out = np.zeros((len(labels), groups))
    known = np.flatnonzero(labels >= 0)
    out[known, labels[known]] = 1.0 if weights is None else weights[known]
    return out


class SingleStack(Stack, frozen=True, eq=False):
    """Base of stacks of a single node, whose log-density has no part that all groups share."""

    def base(self, data: Any) -> np.ndarray | float:
        return 0.0

    def score_node(self, data: Any, compiled: Any, node: int, out: np.ndarray) -> None:
        self.score(data, compiled, out)

    def split(self, counts: Twofold) -> dict[Name, Twofold]:
        return {self.bundles[0].name: counts}
