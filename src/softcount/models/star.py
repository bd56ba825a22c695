"""The naive Bayes structure: a nullable class, and columns that are independent given it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from threading import local
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import force_setattr, replace

from softcount.core.counts import ROOT, Counts, Twofold
from softcount.core.special import log_of
from softcount.errors import DataError
from softcount.families import Categorical, Setting
from softcount.families import Params as Own
from softcount.families.base import IMPOSSIBLE
from softcount.models.bag_stack import Bag, Pending, SparseRows
from softcount.models.base import ASSIGNED, Assign, Model, register_model
from softcount.models.batched import ProductRows
from softcount.models.block_stack import Block
from softcount.models.nodes import Bundle, Node, Nodes, Params
from softcount.models.stacks import Codes, JointCodes, Kernels, Ragged, Reals, Stack, down_columns
from softcount.table import Settled
from softcount.table.chunk import Chunk
from softcount.table.schema import ColumnPlace, Key, Schema

MOST_PRODUCTS = 1 << 23
"""Largest table of features, in cells, that is made."""
STACKS: dict[str, type[Stack]] = {
    "reals": Reals, "codes": Codes, "joint": JointCodes, "block": Block, "bag": Bag, "features": Stack,
}  # fmt: skip
"""Stacks by the names that families use."""


TILE = 4096
"""Rows scored in one step, so that rows x groups stays in the cache."""
PORTION = 2 * TILE
PORTIONS = 12
"""Number of portions that two threads share fairly; more of them cost interpreter time and gain nothing."""
SECOND_CACHE = 1 << 20
"""Bytes of cells and scores that a tile may hold."""


class Ready(Struct, frozen=True):
    """A chunk in the form of the stacks, in tiles of `tile` rows; `base` is the log-density common to all groups."""

    data: list[Any]
    labels: np.ndarray | None
    weights: np.ndarray | None
    base: np.ndarray | float
    start: int
    n_rows: int
    tile: int = TILE

    @classmethod
    def of_rows(cls, rows: Ready, **more: Any) -> Self:
        """Return prepared rows with the further fields of a subclass."""
        return cls(**{name: getattr(rows, name) for name in Ready.__struct_fields__}, **more)

    def tiles(self) -> Iterator[slice]:
        for a in range(0, self.n_rows, self.tile):
            yield slice(a, min(a + self.tile, self.n_rows))

    def cut(self, start: int, stop: int) -> Self:
        rows = slice(start, stop)
        own: dict[str, Any] = {
            name: value[rows] if isinstance(value, np.ndarray) else value
            for name, value in (("labels", self.labels), ("weights", self.weights), ("base", self.base))
        }
        data = [rows_of(data, rows) for data in self.data]
        return replace(self, data=data, **own, start=self.start + start, n_rows=stop - start)


class FiledStar(Struct, frozen=True):
    groups: Annotated[int, Meta(ge=1)]
    unknown_weight: Annotated[float, Meta(ge=0)]
    cells: Annotated[int, Meta(ge=0)]


@register_model
class Star(Model, Struct, frozen=True, eq=False, dict=True):
    """The structure: leaves and number of groups. Parameters and data are passed in."""

    schema: Schema
    leaves: tuple[Node, ...]
    groups: int
    kernels: Kernels
    unknown_weight: float = 1.0

    name: ClassVar[str] = "star"
    one_class: ClassVar[bool] = True

    def __post_init__(self) -> None:
        force_setattr(self, "leaves", tuple([leaf.with_groups(self.groups) for leaf in self.leaves]))

    @cached_property
    def nodes(self) -> Nodes:  # type: ignore[override]
        wide = frozenset([key for key, place in self.schema.places.items() if place.store == "wide"])
        root = Node(ROOT, (), Categorical(), Setting(keys=("class",), levels=tuple(range(self.groups))))
        return Nodes((root, *self.leaves), wide)

    @cached_property
    def stacks(self) -> tuple[Stack, ...]:
        """Put every leaf on the stack of its family; wide codes, blocks and other families each get a stack."""
        shared: dict[str, list[Bundle]] = {"reals": [], "codes": []}
        alone: list[Stack] = []
        for bundle in self.nodes.bundles[1:]:
            kind = bundle.family.facts.stack
            wide = kind == "codes" and self.schema.places[bundle.name].store == "wide"
            if kind in shared and not wide:
                shared[kind].append(bundle)
            else:
                alone.append(stack_apart(bundle, self.schema, self.kernels))
        found: list[Stack] = []
        for kind, bundles in shared.items():
            if bundles:
                keys = set(chain(*[bundle.keys for bundle in bundles]))
                own = tuple([leaf for leaf in self.leaves if leaf.key in keys])
                found.append(make_stack(kind, kind, own, tuple(bundles), self.schema, self.kernels))
        return (*found, *alone)

    @cached_property
    def stacked(self) -> Mapping[Key, tuple[Stack, int]]:
        return {node.key: (stack, place) for stack in self.stacks for place, node in enumerate(stack.nodes)}

    def with_leaves(self, leaves: tuple[Node, ...], groups: int | None = None, schema: Schema | None = None) -> Star:
        """Return the model with other leaves and, if given, other groups or another schema."""
        return replace(self, leaves=leaves, groups=groups or self.groups, schema=schema or self.schema)

    # -- rows -> counts

    def prepare(self, chunk: Chunk, base: bool = True) -> Ready:
        data = [stack.prepare(chunk) for stack in self.stacks]
        parts = [stack.base(part) for stack, part in zip(self.stacks, data, strict=True)] if base else []
        weights = chunk.weights
        if chunk.labels is not None and self.unknown_weight != 1.0:
            factor = np.where(chunk.labels < 0, self.unknown_weight, 1.0)
            weights = factor if weights is None else weights * factor
        return Ready(data, chunk.labels, weights, sum(parts, 0.0), chunk.start, chunk.n_rows)

    def arranged(self, ready: list[Ready]) -> list[Ready]:
        return lengthen(ready, self.groups)

    def worth_threads(self) -> bool:
        return self.kernels.compiled

    def tally(self, ready: Ready) -> Counts:
        """Count the rows whose class is known. Labels beyond the known classes add new groups."""
        assert ready.labels is not None
        groups = max(self.groups, int(ready.labels.max(initial=0)) + 1)
        arrays: dict[Hashable, Twofold] = {}
        for stack, data in zip(self.stacks, ready.data, strict=True):
            arrays |= stack.count_labelled(data, ready.labels, ready.weights, groups)
        coded = arrays.get("codes") if ready.weights is None else None
        # Every row has one code in a column, if only that of a missing cell, so the classes are counted already.
        if isinstance(coded, Ragged):
            sizes = coded.hi[:, : coded.sizes[0]].sum(axis=-1)
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
        """Reorder counts made while categories and classes were still being discovered."""
        order = settled.label_remap if settled.label_remap is not None else np.arange(groups)
        arrays: dict[Hashable, Twofold] = {ROOT: rearrange_groups(counts.arrays[ROOT], order, groups)}
        for stack in self.stacks:
            recoded = stack.recoded(counts.arrays[stack.name], settled.remap)
            arrays[stack.name] = rearrange_groups(recoded, order, groups)
        return replace(counts, arrays=arrays)

    def gathered(self, counts: Counts) -> Counts:
        arrays: dict[Hashable, Twofold] = {ROOT: counts.arrays[ROOT].spread(0).spread(0)}
        for stack in self.stacks:
            arrays |= stack.split(counts.arrays[stack.name])
        return replace(counts, arrays=arrays)

    def named(self, counts: Counts) -> Counts:
        """Convert counts to the names of the nodes, as they are saved, merged and shown."""
        return self.nodes.unstacked(self.gathered(counts))

    def compile(self, params: Params, contrast: bool = False) -> list[Any]:
        """Return the logarithms of the shares, then the parameters of every stack.

        With `contrast`, only parameters that differ between groups are kept.
        """
        log_shares = log_of(params.shares)
        parts = [stack.compile(params) for stack in self.stacks]
        if contrast:
            parts = [stack.contrast(part) for stack, part in zip(self.stacks, parts, strict=True)]
        return [np.tile(log_shares, (TILE, 1)), *parts]

    def score(self, ready: Ready, compiled: list[Any], rows: slice, out: np.ndarray | None = None) -> np.ndarray:
        """Return (rows x groups) logs of share times density, without the part that is equal in all groups."""
        joint = begin_scores(compiled[0], rows, out)
        for stack, data, part in zip(self.stacks, ready.data, compiled[1:], strict=True):
            stack.score(rows_of(data, rows), part, joint)
        if any(stack.clamped for stack in self.stacks):
            joint[joint < IMPOSSIBLE] = -np.inf
        return joint

    def score_parts(self, compiled: list[Any], ready: Ready) -> dict[Key, np.ndarray]:
        """Return the part of `score` that each leaf adds: (rows x groups) log-densities."""
        found: dict[Key, np.ndarray] = {}
        for stack, data, part in zip(self.stacks, ready.data, compiled[1:], strict=True):
            own = stack.score_nodes(data, part, np.zeros((len(stack.nodes), ready.n_rows, self.groups)))
            if stack.clamped:
                own[own < IMPOSSIBLE] = -np.inf
            found |= {node.key: own[place] for place, node in enumerate(stack.nodes)}
        return {leaf.key: found[leaf.key] for leaf in self.leaves}

    def memberships(self, ready: Ready, compiled: list[Any], rows: slice | None = None) -> np.ndarray:
        """Return (rows x groups) probabilities of every group given the row, whatever its label."""
        members = self.score(ready, compiled, slice(0, ready.n_rows) if rows is None else rows)
        self.kernels.normalise(members)
        return members

    def posterior(self, ready: Ready, compiled: list[Any], out: np.ndarray) -> np.ndarray | None:
        """Write the memberships of a chunk to `out` and return their log evidence; None if only `score` can.

        Only compiled kernels gain by it.
        """
        if len(self.stacks) > 1 or not self.kernels.compiled:
            return None
        return self.stacks[0].posterior(ready.data[0], compiled[1], compiled[0][0], out)

    def expect(self, compiled: list[Any], ready: Ready, assign: Assign | None = None) -> Counts:
        stack = self.stacks[0] if len(self.stacks) == 1 else None
        if assign is None and isinstance(stack, (Reals, Block)) and ready.labels is None:
            # The whole chunk in one step, if the stack supports that for these rows and parameters.
            found = stack.expect(ready.data[0], compiled[1], compiled[0][0], ready.weights)
            if found is not None:
                tally, sizes, likelihood = found
                mass = ready.n_rows if ready.weights is None else ready.weights.sum()
                return Counts({ROOT: sizes, stack.name: tally}, float(mass), likelihood)
        parts = [self._expect_tile(compiled, ready, rows, assign) for rows in ready.tiles()]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

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
            posterior = joint.copy()
            assign(joint, ready.start + rows.start)
            together = likelihood + log_of((posterior * joint).sum(axis=1))
            notes = {ASSIGNED: float(_weight_terms(together, weights).sum())}
        likelihood = _weight_terms(likelihood, weights)
        if weights is not None:
            joint *= weights[:, None]
        arrays: dict[Hashable, Twofold] = {ROOT: Twofold.of(down_columns(np.add, joint))}
        for stack, data, part in zip(self.stacks, ready.data, compiled[1:], strict=True):
            arrays |= stack.count(rows_of(data, rows), joint, part)
        mass = float(len(joint) if weights is None else weights.sum())
        return Counts(arrays, mass, float(likelihood.sum()), notes)

    def impossible_row(self, compiled: list[Any], ready: Ready) -> DataError | None:
        joint = self.score(ready, compiled, slice(0, ready.n_rows))
        if ready.labels is not None:
            _pin(joint, ready.labels)
        counted = True if ready.weights is None else ready.weights > 0
        rows = np.flatnonzero(np.isneginf(joint).all(axis=1) & counted)
        if not len(rows):
            return None
        return DataError(
            f"row {ready.start + rows[0] + 1} is impossible under every class of the start (probability zero), "
            "so EM cannot use it. Start from probabilities above zero."
        )

    def products(self, ready: Ready) -> ProductRows | None:
        """Return the rows as a table of features, to score many sets of parameters; None if scores are no products."""
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
        """Select some of the groups, in this order; their shares are renormalised."""
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

    # -- leaves

    def is_sparse(self, leaf: Node) -> bool:
        return isinstance(self.stacked[leaf.key][0], Bag)

    def column(self, leaf: Node, chunk: Chunk) -> Any:
        """Return the values of one leaf in a chunk: codes, numbers, a block of numbers, or sparse counts."""
        stack, place = self.stacked[leaf.key]
        return stack.column(chunk, place)

    def public(self, params: Params) -> dict[Key, Own]:
        """Return the parameters of every leaf in the user's units, groups first."""
        return {x.key: x.family.public(params[x.key], x.setting) for x in self.leaves}

    def params(self, shares: np.ndarray, leaves: Mapping[Key, Own]) -> Params:
        """Return parameters from the shares of the groups and those of every leaf."""
        own = {"probability": np.asarray(shares, dtype=float)[None], "unseen": np.zeros(1)}
        return self.nodes.params({ROOT: own, **leaves})

    filed_as = FiledStar

    def filed(self) -> FiledStar:
        return FiledStar(self.groups, float(self.unknown_weight), int(self.kernels.cells))

    @classmethod
    def from_filed(cls, filed: FiledStar, schema: Schema, nodes: tuple[Node, ...]) -> Star:
        return cls(schema, nodes, filed.groups, Kernels(filed.cells), filed.unknown_weight)


def stack_apart(bundle: Bundle, schema: Schema, kernels: Kernels) -> Stack:
    kind = bundle.family.facts.stack if bundle.nodes[0].columns else "bag"  # a table that is one sparse block
    return make_stack(kind, (kind, bundle.name), bundle.nodes, (bundle,), schema, kernels)


def make_stack(
    kind: str, name: Hashable, nodes: tuple[Node, ...], bundles: tuple[Bundle, ...], schema: Schema, kernels: Kernels
) -> Stack:
    places = [schema.places[column] for node in nodes for column in node.columns]
    return STACKS[kind](name, nodes, bundles, tuple(places) or (ColumnPlace("bags", 0),), kernels)


def begin_scores(first: np.ndarray, rows: slice, out: np.ndarray | None) -> np.ndarray:
    """Return (rows x groups) that begin with the same numbers in every row; `first` holds them for a tile of rows."""
    joint = np.empty((rows.stop - rows.start, first.shape[1])) if out is None else out
    for a in range(0, len(joint), TILE):
        joint[a : a + TILE] = first[: len(joint) - a]
    return joint


def _weight_terms(terms: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    return terms if weights is None else np.where(weights > 0, terms * weights, 0.0)


_own = local()


def scratch(rows: int, groups: int) -> np.ndarray:
    """Return (rows x groups) memory that a thread reuses: new memory is mapped page by page when written."""
    if getattr(_own, "room", np.empty(0)).size < rows * groups:
        _own.room = np.empty(rows * groups)
    room: np.ndarray = _own.room
    return room[: rows * groups].reshape(rows, groups)


def _pin(joint: np.ndarray, labels: np.ndarray) -> None:
    """Assign labelled rows to their class alone: all other groups get minus infinity."""
    known = np.flatnonzero(labels >= 0)
    own = joint[known, labels[known]]
    joint[known] = -np.inf
    joint[known, labels[known]] = own


def rearrange_groups(array: Twofold, order: np.ndarray, groups: int) -> Twofold:
    """Move group g to `order[g]` among `groups`; a negative order drops it."""
    if len(order) == array.shape[0] == groups and (order == np.arange(groups)).all():
        return array
    if isinstance(array, Pending):
        return array.regrouped(order, groups)
    hi, lo = np.zeros((2, groups, *array.shape[1:]))
    have = min(len(order), array.shape[0])
    kept = np.flatnonzero(order[:have] >= 0)
    hi[order[kept]], lo[order[kept]] = array.hi[kept], array.lo[kept]
    return array.alike(hi, lo)


# Rows in parts of a good length.


def lengthen(ready: Sequence[Ready], groups: int) -> list[Ready]:
    """Return the rows in tiles that just fill the second-level cache; short chunks are joined.

    Between kernels a thread holds the interpreter, and others wait: with 12,288 rows of 20 codes per tile instead of
    4,096, an iteration on two threads took 2.2 ms instead of 3.4. The length depends only on the table and the model.
    """
    first = ready[0]
    width = sum(map(size_of, first.data)) // max(first.n_rows, 1) + 8 * groups
    tile = TILE * min(max(SECOND_CACHE // (width * TILE), 1), 4)
    for sparse in (part for part in first.data if isinstance(part, SparseRows)):
        # Enough rows to be worth a table of all words: adding two cells takes about as long as scoring one word.
        words = max(sparse.cells, 1) / max(first.n_rows, 1)
        tile = max(tile, TILE * int(sparse.width * groups / (2 * words) / TILE))
    count = max(1, tile // max(first.n_rows, 1))
    parts = [replace(joined(ready[a : a + count]), tile=tile) for a in range(0, len(ready), count)]
    fair = sum(part.n_rows for part in parts) // PORTIONS // TILE * TILE
    # Long chunks are split: of seven chunks two threads do four and three, of twenty-five 13 and 12.
    rows, found = max(tile, PORTION, fair), []
    for part in parts:
        if part.n_rows <= rows:
            found.append(part)
        else:
            found += [part.cut(a, min(a + rows, part.n_rows)) for a in range(0, part.n_rows, rows)]
    return found


def size_of(data: Any) -> int:
    """Return the bytes of a chunk's array, of several, or of the cells of sparse rows."""
    if isinstance(data, tuple):
        return sum(map(size_of, data))
    return 0 if data is None else data.nbytes


def joined(parts: Sequence[Ready]) -> Ready:
    first = parts[0]
    if len(parts) == 1:
        return first
    whole = {name: end_to_end([getattr(part, name) for part in parts]) for name in ("labels", "weights", "base")}
    data = [end_to_end(list(arrays)) for arrays in zip(*(part.data for part in parts), strict=True)]
    return Ready(data, **whole, start=first.start, n_rows=sum(part.n_rows for part in parts))


def end_to_end(parts: list[Any]) -> Any:
    """Concatenate arrays, or tuples of arrays element by element; anything else is equal in all parts."""
    first = parts[0]
    if isinstance(first, tuple):
        return tuple(end_to_end(list(arrays)) for arrays in zip(*parts, strict=True))
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if first is None or isinstance(first, float):
        return first
    return SparseRows.joined(parts)


def rows_of(data: Any, rows: slice | np.ndarray) -> Any:
    if isinstance(data, tuple):
        return tuple(None if part is None else part[rows] for part in data)
    return data[rows]
