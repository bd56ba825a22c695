"""Numeric nodes of a network in queries, and tables of its discrete nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import product
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.errors import DataError
from softcount.families import Family
from softcount.families import Params as Own
from softcount.models.network import Net, NetRows
from softcount.models.nodes import Node, Params
from softcount.models.numeric_parts import NumberPart
from softcount.models.stacks import Stack
from softcount.table import Chunk
from softcount.table.schema import Key


class NumberNode(Struct, frozen=True):
    """A number, the leaf that it is in, and its place there."""

    net: Net
    estimates: Params
    compiled: Any
    leaf: int
    want: int

    @classmethod
    def of(cls, key: Key, net: Net, estimates: Params, compiled: tuple[Any, list[Any]]) -> NumberNode:
        """The number of this name."""
        for leaf, own in enumerate(net.stacks):
            for want, node in enumerate(own.nodes):
                if node.key == key:
                    return cls(net, estimates, compiled[1][leaf], leaf, want)
        raise DataError(f"{key!r} is not a number of this network.")

    @property
    def stack(self) -> Stack:
        return self.net.stacks[self.leaf]

    @property
    def node(self) -> Node:
        return self.stack.nodes[self.want]

    @property
    def _public(self) -> Own:
        return self.node.family.public(self.estimates[self.node.key], self.node.setting)

    @property
    def scope(self) -> tuple[int, ...]:
        """The discrete nodes that its leaf depends on."""
        return self.net.parents_of_leaves[self.leaf]

    def means(self, data: Any) -> np.ndarray:
        """(rows, or one for all, x configurations) its expected value, given the other numbers of the leaf's rows."""
        own = self.stack
        if isinstance(own, NumberPart):
            return own.conditional_means(self.compiled, data[0], self.want)
        return np.asarray(self.node.family.moments(self._public)[0][None])

    def holes(self, chunk: Chunk) -> np.ndarray:
        """(rows x its columns) which cells a fill could stand for; a missing text stays missing."""
        places = [self.net.schema.places[column] for column in self.node.columns]
        if any(place.store != "reals" for place in places):
            return np.zeros((chunk.n_rows, 0), dtype=bool)
        return np.asarray(np.isnan(chunk.reals[:, [place.slot for place in places]]))

    def fill(self, shares: np.ndarray, chunk: Chunk, rows: np.ndarray, column: int) -> np.ndarray:
        """What to put into one of its columns in some rows of a chunk, which have these shares of configurations."""
        own = self.stack
        cells = chunk.reals[np.ix_(rows, np.array([place.slot for place in own.places]))]
        if isinstance(own, NumberPart):
            return np.asarray((shares * own.conditional_means(self.compiled, cells, self.want)).sum(axis=1))
        return self.node.family.fill(self._public, self.node.setting, shares, cells, column)

    def spread(self, ready: NetRows) -> tuple[Family, Own]:
        """Its family, and its parameters in every configuration, given the other numbers of one row."""
        own = self.stack
        if isinstance(own, NumberPart):
            return own.conditional(self.compiled, ready.leaves[self.leaf][0][0], self.want)
        return self.node.family, self.node.family.scorable(self.estimates[self.node.key], self.node.setting)

    def hidden_in(self, ready: NetRows) -> tuple[NetRows, int | None]:
        """The rows as if they did not show it, and the leaf to leave out, where all of the leaf is hidden with it."""
        own = self.stack
        if not isinstance(own, NumberPart):
            return ready, self.leaf
        leaves = list(ready.leaves)
        leaves[self.leaf] = own.hiding(leaves[self.leaf], [self.want])
        return replace(ready, leaves=leaves), None

    def refuse_range_beside(self, known: Collection[Key]) -> None:
        """Raise where only a range of it is given, and another number that it is joined to is known or asked for."""
        key = self.node.key
        others = [node.key for node in self.stack.nodes if node.key in known and node.key != key]
        if others:
            raise DataError(
                f"only a range of {key!r} is given, and {others[0]!r} follows from it or it from that: together they "
                f"have no exact answer. Give a number in place of the range, or cut {key!r} into levels."
            )

    def refuse_draws_in_range(self) -> None:
        """Raise where rows are to be drawn within a range of it, and it is joined to other numbers."""
        if isinstance(self.stack, NumberPart):
            key = self.node.key
            raise DataError(
                f"rows are drawn with {key!r} at a number, or not held at all, but not in a range of it: it is joined "
                f"to other numbers. Give a number in place of the range, or cut {key!r} into levels."
            )


# The table of a node: a row of probabilities for every configuration of its parents.


class NodeTable(Struct, frozen=True, eq=False):
    """Probabilities of a node's levels given its parents; `np.asarray` gives them, an axis for each parent first.

    >>> wet = NodeTable("Wet", {"Rain": ["no", "yes"]}, ["dry", "wet"], np.array([[0.9, 0.1], [0.2, 0.8]]))
    >>> print(wet)
    Rain    dry    wet
    no   0.9000 0.1000
    yes  0.2000 0.8000
    >>> wet["wet", "yes"], wet.given(Rain="no")
    (0.8, {'dry': 0.9, 'wet': 0.1})
    """

    name: Any
    parents: Mapping[Any, list[Any]]
    levels: list[Any]
    values: np.ndarray

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __getitem__(self, levels: Any) -> float:
        """The probability of a level, given the levels of the parents in their order after it."""
        own, *others = levels if isinstance(levels, tuple) and levels not in self.levels else (levels,)
        at = [_place(name, known, level) for (name, known), level in zip(self.parents.items(), others, strict=True)]
        return float(self.values[(*at, _place(self.name, self.levels, own))])

    def given(self, **parents: Any) -> dict[Any, float]:
        """Level -> probability where every parent has the level named."""
        at = [_place(name, known, parents[str(name)]) for name, known in self.parents.items()]
        return dict(zip(self.levels, map(float, self.values[tuple(at)]), strict=True))

    def rows(self) -> list[tuple[tuple[Any, ...], list[float]]]:
        """Every configuration of the parents with its probabilities."""
        flat = self.values.reshape(-1, len(self.levels))
        return list(zip(product(*self.parents.values()), flat.tolist(), strict=True))

    def __str__(self) -> str:
        shown = [[*map(str, names), *(f"{share:.4f}" for share in shares)] for names, shares in self.rows()]
        head = [*map(str, self.parents), *map(str, self.levels)]
        widths = [max(len(line[column]) for line in [head, *shown]) for column in range(len(head))]
        words = len(self.parents)
        lines = [
            " ".join(
                cell.ljust(w) if j < words else cell.rjust(w)
                for j, (cell, w) in enumerate(zip(line, widths, strict=True))
            )
            for line in [head, *shown]
        ]
        return "\n".join(line.rstrip() for line in lines)


def _place(name: Any, levels: list[Any], level: Any) -> int:
    if level not in levels:
        raise DataError(f"node {name!r} has no level {level!r}. It has: {', '.join(map(str, levels))}.")
    return levels.index(level)
