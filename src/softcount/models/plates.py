"""Plates: columns of like families, scored and counted together by one kernel.

A plate turns a chunk into the array its kernel wants, scores it for every group and counts it with memberships or
labels. What it counts is a dict of named (groups x ...) arrays; `stats` cuts one family's share out of that.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np

from softcount.families import Joint, LogNormal, Params
from softcount.families.normal import HALF_LOG_2PI
from softcount.kernels import WORTH_COMPILING, choose
from softcount.models.first import first_rows
from softcount.models.nodes import Node
from softcount.models.squares import square_form
from softcount.numerics.twofold import Twofold
from softcount.table.chunk import Chunk

Tallies = dict[Hashable, Twofold]
chosen = cache(choose)
PAIR_CELLS = 4096
"""Cells of all pairs of columns up to which kernels count two columns at once, as `kernels.codes` decides."""
ABREAST = 64


@dataclass(frozen=True, slots=True)
class Kernels:
    """The kernels for a table of so many cells: plain NumPy for small ones, compiled loops for large."""

    cells: int

    @property
    def compiled(self) -> bool:
        return self.cells >= WORTH_COMPILING

    def __getattr__(self, name: str) -> Any:
        return getattr(chosen(self.cells), name)


class Plate(Protocol):
    """What every plate can do."""

    @property
    def leaves(self) -> tuple[Node, ...]: ...
    @property
    def names(self) -> tuple[Hashable, ...]: ...
    def prepare(self, chunk: Chunk) -> Any: ...
    def base(self, data: Any) -> np.ndarray | float: ...
    def compile(self, params: list[Params]) -> Any: ...
    def score(self, data: Any, compiled: Any, out: np.ndarray) -> None: ...
    def count(self, data: Any, memberships: np.ndarray, params: list[Params] | None) -> Tallies: ...
    def count_labelled(self, data: Any, labels: np.ndarray, weights: np.ndarray | None, groups: int) -> Tallies: ...
    def stats(self, tallies: Any, leaf: int) -> Twofold: ...


@dataclass(frozen=True, slots=True)
class Reals:
    """Normal and lognormal columns: each group centred on its own rows, then anchored."""

    leaves: tuple[Node, ...]
    slots: tuple[int, ...]
    anchors: np.ndarray
    scales: np.ndarray
    kernels: Kernels
    names: tuple[Hashable, ...] = ("(reals)",)

    def prepare(self, chunk: Chunk) -> np.ndarray:
        whole = self.slots == tuple(range(chunk.reals.shape[1]))
        values = chunk.reals if whole else np.ascontiguousarray(chunk.reals[:, list(self.slots)])
        logs = [j for j, leaf in enumerate(self.leaves) if isinstance(leaf.family, LogNormal)]
        if logs:
            values = values.copy() if whole else values
            for j in logs:
                self.leaves[j].family.check(values[:, j], self.leaves[j].key, chunk.start)
                values[:, j] = np.log(values[:, j])
        return values

    @property
    def units(self) -> np.ndarray:
        return np.stack([self.anchors, self.scales])

    def base(self, data: np.ndarray) -> np.ndarray | float:
        logs = [j for j, leaf in enumerate(self.leaves) if isinstance(leaf.family, LogNormal)]
        return -np.nan_to_num(data[:, logs]).sum(axis=1) if logs else 0.0

    def compile(self, params: list[Params]) -> Any:
        public = [leaf.family.public(part, leaf.setting) for leaf, part in zip(self.leaves, params, strict=True)]
        if any("freedom" in part for part in public):
            return public
        means = np.stack([part["mean"] for part in public], axis=1)
        # The deviation is scaled after its root: a variance of 1e-320 would have lost its digits.
        roots = [np.sqrt(part["variance"]) / leaf.setting.scale for leaf, part in zip(self.leaves, params, strict=True)]
        inverse = 1.0 / np.stack(roots, axis=1)
        bells = np.ascontiguousarray(means), np.ascontiguousarray(inverse), np.log(inverse) - HALF_LOG_2PI
        return *bells, square_form(bells, self.units) if self.kernels.compiled else None

    def contrast(self, compiled: Any) -> Any:
        """The same without columns alike in every group: a cell far from a constant one would drown the others."""
        if not isinstance(compiled, tuple):
            return compiled
        means, inverse, constant, _ = compiled
        apart = (means != means[0]).any(axis=0) | (inverse != inverse[0]).any(axis=0)
        return means, np.where(apart, inverse, 0.0), np.where(apart, constant, 0.0), None

    def score(self, data: np.ndarray, compiled: Any, out: np.ndarray) -> None:
        if isinstance(compiled, tuple):
            self.kernels.score_reals(data, *compiled[:3], out)
            return
        for j, part in enumerate(compiled):
            out += self.leaves[j].family.score(_unlogged(data[:, j], self.leaves[j]), part, self.leaves[j].setting)

    def expect(
        self, data: np.ndarray, compiled: Any, log_shares: np.ndarray, weights: np.ndarray | None
    ) -> tuple[Tallies, Twofold, float] | None:
        """All of an E-step at once, where these columns are all there is: for long tables of complete, near rows."""
        eta = compiled[3] if isinstance(compiled, tuple) else None
        if eta is None or any(isinstance(leaf.family, LogNormal) for leaf in self.leaves):
            return None
        eta = eta.copy()
        eta[:, 0] += log_shares
        high, low, likelihood = self.kernels.expect_squares(data, weights, self.units, eta)
        if np.isnan(likelihood):
            return None
        return {"(reals)": Twofold(high, low)}, Twofold(high[:, 0, 0], low[:, 0, 0]), likelihood

    def count(self, data: np.ndarray, memberships: np.ndarray, params: list[Params] | None) -> Tallies:
        if params is None:
            centres = np.broadcast_to(self.anchors, (memberships.shape[1], len(self.leaves)))
        else:
            centres = np.stack([part["mean"] for part in params], axis=1) / self.scales + self.anchors
        centres = np.ascontiguousarray(centres)
        return {
            "(reals)": Twofold(*self.kernels.count_reals_soft(data, memberships, centres, self.anchors, self.scales))
        }

    def count_labelled(self, data: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, groups: int) -> Tallies:
        centres = first_rows(data, labels, groups, self.anchors)
        pair = self.kernels.count_reals_labelled(data, labels, weights, centres, self.anchors, self.scales)
        return {"(reals)": Twofold(*pair)}

    def stats(self, tallies: Any, leaf: int) -> Twofold:
        return tallies["(reals)"][:, leaf]


def _unlogged(column: np.ndarray, leaf: Node) -> np.ndarray:
    return np.exp(column) if isinstance(leaf.family, LogNormal) else column


@dataclass(frozen=True, slots=True)
class Codes:
    """Categorical columns: log-probabilities looked up by code, rows counted by code."""

    leaves: tuple[Node, ...]
    store: str
    slots: tuple[int, ...]
    kernels: Kernels
    names: tuple[Hashable, ...]

    def prepare(self, chunk: Chunk) -> np.ndarray:
        codes = getattr(chunk, self.store)
        if self.slots == tuple(range(codes.shape[1])):
            return codes
        return np.ascontiguousarray(codes[:, list(self.slots)])

    def base(self, data: np.ndarray) -> float:
        return 0.0

    def compile(self, params: list[Params]) -> tuple[np.ndarray, np.ndarray]:
        tables = self._tables(params)
        sizes = [table.shape[-1] for table in tables]
        return _starts(sizes), np.ascontiguousarray(np.concatenate([table.T for table in tables]))

    def _tables(self, params: list[Params]) -> list[np.ndarray]:
        """Each column's (groups x codes) table; columns of one size are looked up in one go."""
        alike: dict[Any, list[int]] = {}
        for j, (leaf, part) in enumerate(zip(self.leaves, params, strict=True)):
            alike.setdefault((leaf.family, part["probability"].shape), []).append(j)
        tables: dict[int, np.ndarray] = {}
        for (family, _), places in alike.items():
            joined = {name: np.stack([params[j][name] for j in places], axis=1) for name in ("probability", "unseen")}
            tables |= zip(places, family.table(joined).swapaxes(0, 1), strict=True)
        return [tables[j] for j in range(len(params))]

    def score(self, data: np.ndarray, compiled: Any, out: np.ndarray) -> None:
        self.kernels.score_codes(data, *compiled, out)

    def count(self, data: np.ndarray, memberships: np.ndarray, params: list[Params] | None) -> Tallies:
        sizes = self._sizes(data, PAIR_CELLS)
        return self._named(self.kernels.count_codes_soft(data, _starts(sizes), memberships, sum(sizes)), sizes)

    def count_labelled(self, data: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, groups: int) -> Tallies:
        sizes = self._sizes(data, 4 * PAIR_CELLS // groups)
        flat = self.kernels.count_codes_labelled(data, _starts(sizes), labels, weights, sum(sizes), groups)
        return self._named(flat, sizes)

    def _sizes(self, data: np.ndarray, most: int) -> list[int]:
        """Room for every column's codes: as the widest one needs, or its own where pairs would exceed `most` cells."""
        columns = len(self.leaves)
        room = int(data.max(initial=0)) + 1
        if columns < 2 or room * room * columns <= 2 * most:
            return [room] * columns
        return [int(top) + 1 for top in down_columns(np.maximum, data)]

    def _named(self, flat: np.ndarray, sizes: list[int]) -> Tallies:
        """The counts as (groups x columns x codes), with zeros beyond a column's own codes."""
        room = max(sizes)
        if min(sizes) < room:
            spread = np.zeros((len(sizes), room, flat.shape[1]))
            spread[np.arange(room) < np.array(sizes)[:, None]] = flat
            flat = spread
        counts = flat.reshape(len(sizes), room, -1).transpose(2, 0, 1)
        return {self.names[0]: Twofold.of(np.ascontiguousarray(counts))}

    def stats(self, tallies: Any, leaf: int) -> Twofold:
        width = self.leaves[leaf].family.width(self.leaves[leaf].setting)
        part = tallies[self.names[0]][:, leaf]
        first = 0 if isinstance(self.leaves[leaf].family, Joint) else 1
        return _fitted(part, first, width)


def _starts(sizes: list[int]) -> np.ndarray:
    """The first cell of each column when columns follow each other."""
    return np.cumsum([0, *sizes[:-1]], dtype=np.int64)


def down_columns(join: np.ufunc, table: np.ndarray) -> np.ndarray:
    """Each column's sum or largest entry; many rows abreast, because short rows would cost a loop each."""
    rows, columns = table.shape
    whole = rows // ABREAST * ABREAST
    wide = join.reduce(table[:whole].reshape(-1, ABREAST * columns), axis=0, initial=0)
    rest = join.reduce(table[whole:], axis=0, initial=0)
    return join(join.reduce(wide.reshape(ABREAST, columns), axis=0), rest)


def _fitted(part: Twofold, first: int, width: int) -> Twofold:
    """Columns first .. first + width, with zeros where nothing that far was met."""
    have = part.shape[-1]
    if have >= first + width:
        return part[:, first : first + width]
    pad = [(0, 0), (0, first + width - have)]
    return Twofold(np.pad(part.hi, pad), np.pad(part.lo, pad))[:, first:]


@dataclass(frozen=True, slots=True)
class JointCodes(Codes):
    """One block of discrete columns, looked up by the code of its combination."""

    places: tuple[tuple[str, int], ...] = ()

    def prepare(self, chunk: Chunk) -> np.ndarray:
        parts = np.stack([getattr(chunk, store)[:, slot].astype(np.int32) for store, slot in self.places], axis=1)
        family = self.leaves[0].family
        assert isinstance(family, Joint)
        return family.combine(parts)[:, None]


@dataclass(frozen=True, slots=True)
class Features:
    """Any other family, one leaf: features times natural parameters, or its own pair of score and count."""

    leaves: tuple[Node, ...]
    slots: tuple[int, ...]
    names: tuple[Hashable, ...]

    def prepare(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray | None]:
        leaf = self.leaves[0]
        column = chunk.reals[:, list(self.slots)] if leaf.family.block else chunk.reals[:, self.slots[0]]
        leaf.family.check(column, leaf.key, chunk.start)
        return column, leaf.family.features(column, leaf.setting) if leaf.family.dotted else None

    def base(self, data: Any) -> np.ndarray | float:
        return self.leaves[0].family.base(data[0])

    def compile(self, params: list[Params]) -> Any:
        leaf = self.leaves[0]
        public = leaf.family.public(params[0], leaf.setting)
        dotted = leaf.family.dotted and not {"alpha", "shape"} & set(public)
        return leaf.family.natural(public) if dotted else public

    def score(self, data: Any, compiled: Any, out: np.ndarray) -> None:
        column, features = data
        leaf = self.leaves[0]
        if isinstance(compiled, dict):
            out += leaf.family.score(column, compiled, leaf.setting)
        else:
            out += features @ compiled.T

    def count(self, data: Any, memberships: np.ndarray, params: list[Params] | None) -> Tallies:
        column, features = data
        leaf = self.leaves[0]
        if leaf.family.dotted:
            return {self.names[0]: Twofold.of(memberships.T @ features)}
        return {self.names[0]: leaf.family.count(column, memberships, params[0] if params else None, leaf.setting)}

    def count_labelled(self, data: Any, labels: np.ndarray, weights: np.ndarray | None, groups: int) -> Tallies:
        return self.count(data, one_hot(labels, weights, groups), None)

    def stats(self, tallies: Any, leaf: int) -> Twofold:
        return tallies[self.names[0]]


def one_hot(labels: np.ndarray, weights: np.ndarray | None, groups: int) -> np.ndarray:
    """(rows x groups) memberships of rows whose class is known; a row of unknown class is zeros."""
    out = np.zeros((len(labels), groups))
    known = np.flatnonzero(labels >= 0)
    out[known, labels[known]] = 1.0 if weights is None else weights[known]
    return out
