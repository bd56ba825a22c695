"""The naive Bayes structure: a nullable class, and columns that are independent given it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from threading import local
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from softcount.core.counts import ROOT, Counts
from softcount.core.twofold import Twofold
from softcount.errors import DataError, ModelFileError
from softcount.families import Params as Own
from softcount.families.base import IMPOSSIBLE, number, whole
from softcount.models.bag_stack import Bag, regrouped
from softcount.models.base import ASSIGNED, Assign, ClassModel, register_model
from softcount.models.batched import ProductRows
from softcount.models.block_stack import Block
from softcount.models.nodes import Bundle, Node, Nodes, Params, class_node
from softcount.models.stacks import Codes, JointCodes, Kernels, PointStack, Ragged, Reals, Stack, down_columns
from softcount.models.tiles import TILE, Ready, lengthened, rows_of
from softcount.table import Settled
from softcount.table.chunk import Chunk
from softcount.table.schema import ColumnPlace, Key, Schema

MOST_PRODUCTS = 1 << 23
"""Cells of a table of features up to which it is made."""
STACKS: dict[str, type[Stack]] = {
    "reals": Reals, "codes": Codes, "joint": JointCodes, "block": Block, "bag": Bag, "points": PointStack,
    "features": Stack,
}  # fmt: skip
"""The stack that a family asks for by name."""
SHARED = ("reals", "codes")
"""Stacks that hold all columns of their kind."""


@register_model
class Star(ClassModel, Struct, frozen=True, eq=False, dict=True):
    """Structure only: which leaves, how many groups. Parameters and data are passed in."""

    schema: Schema
    leaves: tuple[Node, ...]
    groups: int
    kernels: Kernels
    unknown_weight: float = 1.0

    name: ClassVar[str] = "star"

    def __post_init__(self) -> None:
        leaves = tuple(_of_groups(leaf, self.groups) for leaf in self.leaves)
        force_setattr(self, "leaves", leaves)

    @cached_property
    def nodes(self) -> Nodes:  # type: ignore[override]
        wide = frozenset(key for key, place in self.schema.places.items() if place.store == "wide")
        return Nodes((class_node(self.groups), *self.leaves), wide)

    @cached_property
    def stacks(self) -> tuple[Stack, ...]:
        return tuple(stacks_of(self.nodes, self.schema, self.kernels))

    @cached_property
    def stacked(self) -> Mapping[Key, tuple[Stack, int]]:
        """The stack and place of every leaf."""
        return {node.key: (stack, place) for stack in self.stacks for place, node in enumerate(stack.nodes)}

    def with_leaves(self, leaves: tuple[Node, ...], groups: int | None = None, schema: Schema | None = None) -> Star:
        return replace(self, leaves=leaves, groups=groups or self.groups, schema=schema or self.schema)

    # -- rows -> counts

    def prepare(self, chunk: Chunk, base: bool = True) -> Ready:
        """What the stacks need of a chunk; kept between EM's passes."""
        data = [stack.prepare(chunk) for stack in self.stacks]
        parts = [stack.base(part) for stack, part in zip(self.stacks, data, strict=True)] if base else []
        return Ready(data, chunk.labels, self._weights(chunk), sum(parts, 0.0), chunk.start, chunk.n_rows)

    def arranged(self, ready: list[Ready]) -> list[Ready]:
        return lengthened(ready, self.groups)

    def worth_threads(self) -> bool:
        return self.kernels.compiled

    def _weights(self, chunk: Chunk) -> np.ndarray | None:
        if chunk.labels is None or self.unknown_weight == 1.0:
            return chunk.weights
        factor = np.where(chunk.labels < 0, self.unknown_weight, 1.0)
        return factor if chunk.weights is None else chunk.weights * factor

    def tally(self, ready: Ready) -> Counts:
        assert ready.labels is not None
        groups = max(self.groups, int(ready.labels.max(initial=0)) + 1)
        arrays: dict[Hashable, Twofold] = {}
        for stack, data in zip(self.stacks, ready.data, strict=True):
            arrays |= stack.count_labelled(data, ready.labels, ready.weights, groups)
        coded = arrays.get("codes") if ready.weights is None else None
        # Every row has one code in a column, if only that of a missing cell: the classes are counted already.
        if isinstance(coded, Ragged):
            sizes = coded.column(0).hi.sum(axis=-1)
        else:
            sizes = self.kernels.count_labels(ready.labels, ready.weights, groups)
        arrays[ROOT] = Twofold.of(sizes)
        return Counts(arrays, float(sizes.sum()))

    def tally_members(self, ready: Ready, memberships: np.ndarray) -> Counts:
        if ready.weights is not None:
            memberships = memberships * ready.weights[:, None]
        memberships = np.ascontiguousarray(memberships)
        arrays: dict[Hashable, Twofold] = {}
        for stack, data in zip(self.stacks, ready.data, strict=True):
            arrays |= stack.count(data, memberships, None)
        arrays[ROOT] = Twofold.of(memberships.sum(axis=0))
        return Counts(arrays, float(memberships.sum()))

    def in_order(self, counts: Counts, settled: Settled, groups: int) -> Counts:
        order = settled.label_remap if settled.label_remap is not None else np.arange(groups)
        arrays = {stack.name: stack.recoded(counts.arrays[stack.name], settled.remap) for stack in self.stacks}
        both = {ROOT: counts.arrays[ROOT], **arrays}
        return replace(counts, arrays={name: regrouped(array, order, groups) for name, array in both.items()})

    def gathered(self, counts: Counts) -> Counts:
        arrays: dict[Hashable, Twofold] = {ROOT: counts.arrays[ROOT].spread(0).spread(0)}
        for stack in self.stacks:
            arrays |= stack.split(counts.arrays[stack.name])
        return replace(counts, arrays=arrays)

    def compile(self, params: Params, contrast: bool = False) -> list[Any]:
        """The parameters as the stacks want them, after the logarithms of the shares; `contrast` tells groups apart."""
        with np.errstate(divide="ignore"):
            log_shares = np.log(params.shares)
        parts = [stack.compile(params) for stack in self.stacks]
        if contrast:
            parts = [stack.contrast(part) for stack, part in zip(self.stacks, parts, strict=True)]
        return [np.tile(log_shares, (TILE, 1)), *parts]

    def score(self, ready: Ready, compiled: list[Any], rows: slice, out: np.ndarray | None = None) -> np.ndarray:
        joint = np.empty((rows.stop - rows.start, self.groups)) if out is None else out
        for a in range(0, len(joint), TILE):
            joint[a : a + TILE] = compiled[0][: len(joint) - a]
        for stack, data, part in zip(self.stacks, ready.data, compiled[1:], strict=True):
            stack.score(rows_of(data, rows), part, joint)
        if any(stack.clamped for stack in self.stacks):
            joint[joint < IMPOSSIBLE] = -np.inf
        return joint

    def score_parts(self, compiled: list[Any], ready: Ready) -> dict[Key, np.ndarray]:
        found: dict[Key, np.ndarray] = {}
        for stack, data, part in zip(self.stacks, ready.data, compiled[1:], strict=True):
            own = stack.score_nodes(data, part, np.zeros((len(stack.nodes), ready.n_rows, self.groups)))
            if stack.clamped:
                own[own < IMPOSSIBLE] = -np.inf
            found |= {node.key: own[place] for place, node in enumerate(stack.nodes)}
        return {leaf.key: found[leaf.key] for leaf in self.leaves}

    def memberships(self, ready: Ready, compiled: list[Any], rows: slice | None = None) -> np.ndarray:
        members = self.score(ready, compiled, slice(0, ready.n_rows) if rows is None else rows)
        self.kernels.normalise(members)
        return members

    def posterior(self, ready: Ready, compiled: list[Any], out: np.ndarray) -> np.ndarray | None:
        """In one go, where the model is a single stack that can."""
        if len(self.stacks) > 1:
            return None
        return self.stacks[0].posterior(ready.data[0], compiled[1], compiled[0][0], out)

    def expect(self, compiled: list[Any], ready: Ready, assign: Assign | None = None) -> Counts:
        alone = self._expect_alone(compiled, ready) if assign is None else None
        if alone is not None:
            return alone
        parts = [self._expect_tile(compiled, ready, rows, assign) for rows in ready.tiles()]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def _expect_alone(self, compiled: list[Any], ready: Ready) -> Counts | None:
        """The whole chunk in one go, where the model is a single stack that can."""
        stack = self.stacks[0]
        if len(self.stacks) > 1 or not isinstance(stack, (Reals, Block)) or ready.labels is not None:
            return None
        found = stack.expect(ready.data[0], compiled[1], compiled[0][0], ready.weights)
        if found is None:
            return None
        tally, sizes, likelihood = found
        mass = ready.n_rows if ready.weights is None else ready.weights.sum()
        return Counts({ROOT: sizes, stack.name: tally}, float(mass), likelihood)

    def _expect_tile(self, compiled: list[Any], ready: Ready, rows: slice, assign: Assign | None) -> Counts:
        joint = self.score(ready, compiled, rows, scratch(rows.stop - rows.start, self.groups))
        if ready.labels is not None:
            _pin(joint, ready.labels[rows])
        weights = None if ready.weights is None else ready.weights[rows]
        evidence = self.kernels.normalise(joint)
        base = ready.base if isinstance(ready.base, float) else ready.base[rows]
        likelihood = evidence + base
        notes = {}
        if assign is not None:
            together = likelihood + _assigned(joint, assign, ready.start + rows.start)
            notes = {ASSIGNED: float(_weighed(together, weights).sum())}
        likelihood = _weighed(likelihood, weights)
        if weights is not None:
            joint *= weights[:, None]
        arrays: dict[Hashable, Twofold] = {ROOT: Twofold.of(down_columns(np.add, joint))}
        for stack, data, part in zip(self.stacks, ready.data, compiled[1:], strict=True):
            arrays |= stack.count(rows_of(data, rows), joint, part)
        mass = float(len(joint) if weights is None else weights.sum())
        return Counts(arrays, mass, float(likelihood.sum()), notes)

    def impossible(self, params: Params, ready: Sequence[Ready]) -> DataError:
        compiled = self.compile(params)
        rows = (part.start + int(row) for part in ready for row in self._impossible_rows(compiled, part))
        return DataError(
            f"row {next(rows) + 1} is impossible under every class of the start (probability zero), so EM cannot use "
            "it. Start from probabilities above zero."
        )

    def _impossible_rows(self, compiled: list[Any], ready: Ready) -> np.ndarray:
        """Rows, numbered within the chunk, to which every group that may hold them gives probability zero."""
        joint = self.score(ready, compiled, slice(0, ready.n_rows))
        if ready.labels is not None:
            _pin(joint, ready.labels)
        weighty = True if ready.weights is None else ready.weights > 0
        return np.flatnonzero(np.isneginf(joint).all(axis=1) & weighty)

    def products(self, ready: Ready) -> ProductRows | None:
        width = 1 + sum(bundle.width * len(bundle.nodes) for stack in self.stacks for bundle in stack.bundles)
        if ready.n_rows * width > MOST_PRODUCTS or any(isinstance(stack, Bag) for stack in self.stacks):
            return None
        parts = [stack.features(data) for stack, data in zip(self.stacks, ready.data, strict=True)]
        if any(part is None for part in parts):
            return None
        weights = np.ones(ready.n_rows) if ready.weights is None else ready.weights
        base = float((weights * ready.base).sum())
        return ProductRows.of(self.stacks, parts, weights, base, ready.labels)

    # -- groups

    def group_shares(self, params: Params, bundle: Bundle) -> np.ndarray:
        return np.ones(1) if bundle.name == ROOT else params.shares

    def by_group(self, params: Params) -> np.ndarray:
        parts = [part.reshape(self.groups, -1) for key in params if key != ROOT for part in params[key].values()]
        return np.concatenate([params.shares[:, None], *parts], axis=1)

    def cells_per_row(self) -> int:
        return max(1, len(self.schema.used)) * self.groups

    def regrouped(self, params: Params, order: np.ndarray) -> Params:
        bundles: dict[Hashable, Own] = {
            name: {part: value[order] for part, value in own.items()}
            for name, own in params.bundles.items()
            if name != ROOT
        }
        own = params.bundles[ROOT]
        shares = own["probability"][..., order]
        return replace(
            params, bundles={ROOT: own | {"probability": shares / shares.sum(axis=-1, keepdims=True)}, **bundles}
        )

    # -- what is seen from outside

    def is_sparse(self, leaf: Node) -> bool:
        return isinstance(self.stacked[leaf.key][0], Bag)

    def column(self, leaf: Node, chunk: Chunk) -> Any:
        stack, place = self.stacked[leaf.key]
        return stack.column(chunk, place)

    def public(self, params: Params) -> dict[Key, Own]:
        return {x.key: x.family.public(params[x.key], x.setting) for x in self.leaves}

    def params(self, shares: np.ndarray, leaves: Mapping[Key, Own]) -> Params:
        own = {"probability": np.asarray(shares, dtype=float)[None], "unseen": np.zeros(1)}
        return self.nodes.params({ROOT: own, **leaves})

    def document(self) -> dict[str, Any]:
        weight, cells = float(self.unknown_weight), int(self.kernels.cells)
        return {"groups": self.groups, "unknown_weight": weight, "cells": cells}

    @classmethod
    def from_document(cls, document: Mapping[str, Any], schema: Schema, nodes: tuple[Node, ...]) -> Star:
        groups, cells = document["groups"], whole(document["cells"], 0, 1 << 62, "cells")
        weight = number(document["unknown_weight"], "the weight of rows without a class")
        if not weight >= 0:
            raise ModelFileError("its counts of rows are below zero.")
        return cls(schema, nodes, groups, Kernels(cells), weight)


def _of_groups(leaf: Node, groups: int) -> Node:
    same = leaf.setting.groups == groups
    return leaf if same else replace(leaf, setting=replace(leaf.setting, groups=groups))


def stacks_of(nodes: Nodes, schema: Schema, kernels: Kernels) -> Iterable[Stack]:
    """Every leaf on the stack that its family asks for; wide codes, blocks and others on stacks of their own."""
    shared: dict[str, list[Bundle]] = {kind: [] for kind in SHARED}
    order = {node.key: place for place, node in enumerate(nodes)}
    alone = []
    for bundle in nodes.bundles:
        if bundle.name == ROOT:
            continue
        kind = _kind(bundle)
        wide = kind == "codes" and schema.places[bundle.name].store == "wide"
        if kind in SHARED and not wide:
            shared[kind].append(bundle)
        else:
            alone.append(bundle)
    for kind, bundles in shared.items():
        if bundles:
            own = sorted((node for bundle in bundles for node in bundle.nodes), key=lambda node: order[node.key])
            places = tuple(schema.places[node.key] for node in own)
            yield STACKS[kind](kind, tuple(own), tuple(bundles), places, kernels)
    for bundle in alone:
        yield stack_apart(bundle, schema, kernels)


def stack_apart(bundle: Bundle, schema: Schema, kernels: Kernels) -> Stack:
    """The stack of one bundle by itself."""
    kind = _kind(bundle)
    columns = [column for node in bundle.nodes for column in node.columns]
    places = tuple(schema.places[column] for column in columns) or (ColumnPlace("bags", 0),)
    return STACKS[kind]((kind, bundle.name), bundle.nodes, (bundle,), places, kernels)


def _kind(bundle: Bundle) -> str:
    """The stack of a bundle: a table that is one sparse block is a bag, whatever family counts it."""
    return bundle.family.stack if bundle.nodes[0].columns else "bag"


def _assigned(members: np.ndarray, assign: Assign, start: int) -> np.ndarray:
    """Logarithm of each row's posterior of the group it is put in."""
    posterior = members.copy()
    assign(members, start)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log((posterior * members).sum(axis=1)))


def _weighed(terms: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    return terms if weights is None else np.where(weights > 0, terms * weights, 0.0)


_own = local()


def scratch(rows: int, groups: int) -> np.ndarray:
    """A thread's own (rows x groups) memory, the same each time: fresh memory is mapped page by page when written."""
    if getattr(_own, "room", np.empty(0)).size < rows * groups:
        _own.room = np.empty(rows * groups)
    room: np.ndarray = _own.room
    return room[: rows * groups].reshape(rows, groups)


def _pin(joint: np.ndarray, labels: np.ndarray) -> None:
    """Rows whose class is known belong to it alone."""
    known = np.flatnonzero(labels >= 0)
    own = joint[known, labels[known]]
    joint[known] = -np.inf
    joint[known, labels[known]] = own


# A star whose leaves score by weights of their own: what tells classes once those are learned by conditional loss.


class LinearStar(Struct, frozen=True, eq=False):
    """Scores are each leaf's features times (groups x features) weights, and a bias for every class.

    It only tells classes: densities, samples and everything else are the star's own. A missing cell adds nothing, and
    neither does a level never seen.
    """

    star: Star
    weights: Mapping[Key, np.ndarray]
    bias: np.ndarray

    def compile(self, params: Params) -> list[Any]:
        """The bias, and for every stack the weights of its nodes; no parameter of the star matters."""
        return [
            np.tile(self.bias, (TILE, 1)),
            *([self.weights[node.key] for node in stack.nodes] for stack in self.star.stacks),
        ]

    def score(self, ready: Ready, compiled: list[Any], rows: slice, out: np.ndarray | None = None) -> np.ndarray:
        """(rows x groups) the sum."""
        joint = np.empty((rows.stop - rows.start, self.star.groups)) if out is None else out
        joint[:] = self.bias
        for stack, data, weights in zip(self.star.stacks, ready.data, compiled[1:], strict=True):
            here = rows_of(data, rows)
            for place, own in enumerate(weights):
                stack.score_linear(here, place, own, joint)
        return joint

    def score_parts(self, compiled: list[Any], ready: Ready) -> dict[Key, np.ndarray]:
        """Each leaf's own part of the sum."""
        found: dict[Key, np.ndarray] = {}
        for stack, data, weights in zip(self.star.stacks, ready.data, compiled[1:], strict=True):
            for place, (node, own) in enumerate(zip(stack.nodes, weights, strict=True)):
                found[node.key] = np.zeros((ready.n_rows, self.star.groups))
                stack.score_linear(data, place, own, found[node.key])
        return {leaf.key: found[leaf.key] for leaf in self.star.leaves}


# A star whose leaves have a weight each: what tells classes where columns repeat each other.

LOWEST = -1e3
"""What an impossible cell adds to a score, times the weight of its column."""


def bounded(own: np.ndarray, words: bool) -> np.ndarray:
    """What a leaf adds to the classes' scores, no less than the lowest; of words no less than that below the best.

    A document of two hundred words has a log-density below the lowest in every class, and would tell none.
    """
    if words:
        best = own.max(axis=-1, keepdims=True)
        own = own - np.where(np.isfinite(best), best, 0.0)
    return np.asarray(np.maximum(own, LOWEST))


class WeighedStar(Struct, frozen=True, eq=False):
    """Scores are the leaves' log-densities, each times its weight, and a bias for every class in place of the shares.

    It only tells classes: densities, samples and everything else are the star's own.
    """

    star: Star
    weights: np.ndarray  # in the order of the star's leaves
    bias: np.ndarray

    def compile(self, params: Params) -> list[Any]:
        """The bias, and for every stack its parameters, weighed where that is possible, and else the weights beside."""
        by_key = dict(zip((leaf.key for leaf in self.star.leaves), self.weights.tolist(), strict=True))
        compiled = self.star.compile(params, contrast=True)
        found: list[Any] = [np.tile(self.bias, (TILE, 1))]
        for stack, part in zip(self.star.stacks, compiled[1:], strict=True):
            own = np.array([by_key[node.key] for node in stack.nodes])
            weighed = stack.weighed(part, own)
            found.append((part, own) if weighed is None else (weighed, None))
        return found

    def score(self, ready: Ready, compiled: list[Any], rows: slice, out: np.ndarray | None = None) -> np.ndarray:
        """(rows x groups) the sum."""
        joint = np.empty((rows.stop - rows.start, self.star.groups)) if out is None else out
        for a in range(0, len(joint), TILE):
            joint[a : a + TILE] = compiled[0][: len(joint) - a]
        for stack, data, (part, weights) in zip(self.star.stacks, ready.data, compiled[1:], strict=True):
            here = rows_of(data, rows)
            if weights is None:
                stack.score(here, part, joint)
            else:
                own = stack.score_nodes(here, part, np.zeros((len(weights), *joint.shape)))
                joint += np.tensordot(weights, bounded(own, isinstance(stack, Bag)), 1)
        return joint

    def score_parts(self, compiled: list[Any], ready: Ready) -> dict[Key, np.ndarray]:
        """Each leaf's own part of the sum."""
        found: dict[Key, np.ndarray] = {}
        for stack, data, (part, weights) in zip(self.star.stacks, ready.data, compiled[1:], strict=True):
            own = stack.score_nodes(data, part, np.zeros((len(stack.nodes), ready.n_rows, self.star.groups)))
            if weights is not None:
                own = bounded(own, isinstance(stack, Bag)) * weights[:, None, None]
            found |= {node.key: own[place] for place, node in enumerate(stack.nodes)}
        return {leaf.key: found[leaf.key] for leaf in self.star.leaves}
