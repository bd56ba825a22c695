"""Initial parameters for EM: seeds from a sketch of the rows, and memberships given by the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.counts import ROOT, Counts
from softcount.core.lazy import sparse
from softcount.errors import DataError
from softcount.families import FAMILIES, Family, Hyper, floors
from softcount.families import Params as Own
from softcount.families.setting import fixed_numbers, held_numbers, initial_params
from softcount.learn.checkpoints import Checkpoint
from softcount.learn.record import Plan
from softcount.models.base import ClassModel
from softcount.models.nodes import Imagined, Node, Params
from softcount.models.stacks import one_hot
from softcount.run.local import Rows
from softcount.table.chunk import Chunk

SKETCH_ROWS = 4096
"""Distinct rows that seeds are drawn from; a larger table is sampled by a hash of each row's content."""
LARGEST = np.uint64(2**64 - 1)


class Sketch(Struct, frozen=True):
    """Distinct rows in sorted order with their weights, and coordinates in which they can be compared.

    `texts` has a point of length one for each row's document, or sparse block. `mass` is the weight of all rows of the
    table, also of those the sketch passed over.
    """

    chunk: Chunk
    points: np.ndarray
    present: np.ndarray
    mass: float = 0.0
    whole: bool = True
    texts: tuple[Any, ...] = ()

    @property
    def blank(self) -> np.ndarray:
        """Rows without any value: they are equally far from all others."""
        cells = [self.present.sum(axis=1), *(np.diff(text.indptr) for text in self.texts)]
        return np.asarray(sum(cells) == 0)

    @property
    def weights(self) -> np.ndarray:
        assert self.chunk.weights is not None
        return self.chunk.weights

    def take(self, rows: np.ndarray) -> Sketch:
        texts = tuple(text[rows] for text in self.texts)
        return replace(
            self, chunk=self.chunk.take(rows), points=self.points[rows], present=self.present[rows], texts=texts
        )

    def as_heavy_as_the_table(self) -> Chunk:
        """The rows with weights that sum to the table's, so that priors weigh as much against them."""
        return replace(self.chunk, weights=self.weights * (self.mass / self.weights.sum()))


class Measures(Struct, frozen=True):
    """How numbers are compared: `logged` columns by logarithms, each list `in_one_unit` as they are, all others in
    standard deviations of their own column."""

    logged: Sequence[int] = ()
    in_one_unit: Sequence[Sequence[int]] = ()


AS_THEY_ARE = Measures()


def sketch_rows(chunks: Rows | Sequence[Chunk], measures: Measures = AS_THEY_ARE, marked: bool = False) -> Sketch:
    """The table's distinct rows, or a sample of them that does not depend on the order of rows.

    Rows of different known classes are distinct. `marked` sparse blocks are text, whose first column says whether there
    is a document. Rows with sparse blocks come in the order of their hashes, others are sorted by value.
    """
    if isinstance(chunks, Sequence):
        found = distinct_rows(chunks[0])
        for chunk in chunks[1:]:
            found = found + distinct_rows(chunk, found.last)
    else:
        found = chunks.total(distinct_rows_on_worker)
    if not len(found.weights):
        raise DataError("the table has no rows with weight.")
    chunk = replace(found.rows, weights=found.weights)
    columns = [*chunk.wide.T, *([] if chunk.labels is None else [chunk.labels]), *chunk.codes.T, *chunk.reals.T]
    order = np.lexsort(columns) if columns and not chunk.bags else np.arange(chunk.n_rows)
    chunk = chunk.take(order[order < SKETCH_ROWS])
    chunk = replace(chunk, start=0, reals=np.ascontiguousarray(chunk.reals) + 0.0)  # -0.0 is 0.0
    texts = tuple(_unit_roots(bag, marked) for bag in chunk.bags)
    return Sketch(chunk, *_coordinates(chunk, measures), found.mass, found.whole, texts)


class DistinctRows(Struct, frozen=True):
    """Distinct rows with the smallest hashes, in that order, and their weights: `most`, one more if there are more.

    Those of two parts add up to those of both. Rows are a chunk or a matrix; `mass` is the weight of all rows.
    """

    hashes: np.ndarray
    rows: Any
    weights: np.ndarray
    most: int
    mass: float = 0.0

    @classmethod
    def of(cls, hashes: np.ndarray, rows: Any, weights: np.ndarray, most: int, mass: float = 0.0) -> DistinctRows:
        distinct, first, which = np.unique(hashes, return_index=True, return_inverse=True)
        summed, kept = np.bincount(which, weights, len(first)), first[: most + 1]
        own = rows.take(kept) if isinstance(rows, Chunk) else rows[kept]
        return cls(distinct[: most + 1], own, summed[: most + 1], most, mass)

    def __add__(self, other: DistinctRows) -> DistinctRows:
        hashes, weights = (np.concatenate([getattr(x, name) for x in (self, other)]) for name in ("hashes", "weights"))
        return DistinctRows.of(hashes, _concatenate(self.rows, other.rows), weights, self.most, self.mass + other.mass)

    @property
    def whole(self) -> bool:
        return len(self.hashes) <= self.most

    @property
    def last(self) -> np.uint64:
        """The largest hash that further rows may have."""
        return LARGEST if self.whole else self.hashes[-1]


def _concatenate(one: Any, other: Any) -> Any:
    if not isinstance(one, Chunk):
        return sparse.vstack([one, other], format="csr") if sparse.issparse(one) else np.concatenate([one, other])
    names = [name for name in ("reals", "codes", "wide", "labels") if getattr(one, name) is not None]
    stores = {name: _concatenate(getattr(one, name), getattr(other, name)) for name in names}
    bags = tuple(map(_concatenate, one.bags, other.bags))
    return replace(one, n_rows=one.n_rows + other.n_rows, bags=bags, **stores)


def distinct_rows(chunk: Chunk, last: np.uint64 = LARGEST) -> DistinctRows:
    """The distinct rows of a chunk that have weight, up to a hash of `last`."""
    weights = np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights
    chunk = replace(chunk, weights=None, borders=None, bags=tuple(map(_clean, chunk.bags)))
    hashes = _hash_rows(chunk)
    kept = np.flatnonzero((hashes <= last) & (weights > 0))
    first = DistinctRows.of(hashes[kept], kept, weights[kept], SKETCH_ROWS, float(weights.sum()))
    return replace(first, rows=chunk.take(first.rows))


def distinct_rows_on_worker(chunk: Chunk) -> DistinctRows:
    if chunk.bags:
        raise DataError("classes of texts, or of sparse rows, are found on one machine. Leave the engine out.")
    return distinct_rows(chunk)


def _hash_rows(chunk: Chunk) -> np.ndarray:
    """A hash of each row's columns, blocks and label."""
    reals = np.ascontiguousarray(chunk.reals, dtype=np.float64) + 0.0
    reals[np.isnan(reals)] = np.nan
    wide = chunk.wide if chunk.labels is None else np.column_stack([chunk.wide, chunk.labels.astype(np.int32)])
    parts = [reals, np.ascontiguousarray(wide), np.ascontiguousarray(chunk.codes)]
    flat = [part.view(np.uint8).reshape(chunk.n_rows, -1) for part in parts if part.shape[1]]
    marks = _hash(np.concatenate(flat, axis=1)) if flat else np.zeros(chunk.n_rows, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for bag in chunk.bags:
            cells = (bag.indices.astype(np.uint64) + np.uint64(1)) * np.uint64(11400714819323198485)
            cells = (cells ^ bag.data.view(np.uint64)) * np.uint64(13787848793156543929)
            cells ^= cells >> np.uint64(31)
            cells *= np.uint64(10723151780598845931)
            sums = np.concatenate([[np.uint64(0)], np.cumsum(cells, dtype=np.uint64)])
            own = sums[bag.indptr[1:]] - sums[bag.indptr[:-1]]
            marks = (marks * np.uint64(11400714819323198485)) ^ own
    return marks


def _clean(bag: sparse.csr_matrix) -> sparse.csr_matrix:
    if bag.data.dtype == np.float64 and bag.has_canonical_format and bag.data.all():
        return bag
    bag = bag.astype(np.float64)
    bag.sum_duplicates()
    bag.eliminate_zeros()
    return bag


def _unit_roots(bag: sparse.csr_matrix, marked: bool) -> sparse.csr_matrix:
    """Square roots of each row's relative counts: points of length one, or zeros without counts."""
    counts = bag[:, 1:] if marked else bag
    total = np.asarray(counts.sum(axis=1)).ravel()
    return (sparse.diags_array(1.0 / np.where(total > 0, total, 1.0)) @ counts).sqrt().tocsr()


def _hash(octets: np.ndarray) -> np.ndarray:
    """A hash of each row's bytes, eight at a time."""
    short = -octets.shape[1] % 8
    words = (np.pad(octets, [(0, 0), (0, short)]) if short else octets).view(np.uint64)
    mixed = np.full(len(octets), 14695981039346656037, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in words.T:
            mixed = (mixed ^ column) * np.uint64(1099511628211)
            mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(11400714819323198485)
    return mixed ^ (mixed >> np.uint64(32))


def _coordinates(chunk: Chunk, measures: Measures) -> tuple[np.ndarray, np.ndarray]:
    """Standardised numbers and level codes (compared as equal or not), and where they are present."""
    reals = chunk.reals.copy()
    logged = list(measures.logged)
    reals[:, logged] = np.log(reals[:, logged])
    assert chunk.weights is not None
    there = ~np.isnan(reals)
    weight = np.where(there, chunk.weights[:, None], 0.0)
    mass = np.maximum(weight.sum(axis=0), 1e-300)
    middle = np.where(there.any(axis=0), np.nanmin(np.where(there, reals, np.inf), axis=0, initial=np.inf), 0.0)
    moved = np.where(there, reals - np.where(np.isfinite(middle), middle, 0.0), 0.0)
    top = np.abs(moved).max(axis=0, initial=0.0)
    moved = moved / np.where(top > 0, top, 1.0)
    mean = (weight * moved).sum(axis=0) / mass
    spread = np.sqrt((weight * (moved - mean) ** 2).sum(axis=0) / mass)
    for lot in map(list, measures.in_one_unit):
        units = top[lot]
        largest = units.max()
        share = units / largest if largest > 0 else np.ones(len(units))
        whole = np.sqrt(np.mean((spread[lot] * share) ** 2))
        spread[lot] = np.asarray(whole / np.where(share > 0, share, 1.0))
    points = np.where(there, (moved - mean) / np.where(spread > 0, spread, 1.0), 0.0)
    codes = np.concatenate([chunk.codes.astype(float), chunk.wide.astype(float)], axis=1)
    return np.concatenate([points, codes], axis=1), np.concatenate([there, codes > 0], axis=1)


def far_from(sketch: Sketch, seeds: np.ndarray) -> np.ndarray:
    """(seeds x rows) squared distances: of standardised numbers, and 2 for each level that differs.

    Texts are at most 2 apart. If either cell is missing the column adds its average, 2, so that rows with missing cells
    are not close to all.
    """
    p = sketch.chunk.reals.shape[1]
    points, codes, here = sketch.points[:, :p], sketch.points[:, p:], sketch.present
    if here[:, :p].all():
        squares = (points * points).sum(axis=1)
        far = squares[seeds, None] + squares - 2.0 * points[seeds] @ points.T
        spare = squares[seeds, None] + squares
    else:
        there = here[:, :p].astype(float)  # a missing cell's point is 0
        squares = points * points
        spare = squares[seeds] @ there.T + there[seeds] @ squares.T
        far = spare - 2.0 * points[seeds] @ points.T
        far += 2.0 * (there[seeds].sum(axis=1, keepdims=True) - there[seeds] @ there.T)
    far = np.where(far > 1e-13 * spare, far, 0.0)  # rows that are alike but for rounding
    if codes.shape[1]:
        there = here[:, p:]
        for place, seed in enumerate(seeds):
            apart = (codes != codes[seed]) | ~there
            far[place] += 2.0 * (apart & there[seed]).sum(axis=1)
    for text in sketch.texts:
        for place, seed in enumerate(seeds):
            if text.indptr[seed] < text.indptr[seed + 1]:
                far[place] += 2.0 - 2.0 * (text @ text[[seed]].toarray().ravel())
    return far


def flatten(sketch: Sketch, rows: np.ndarray, widest: int = 512) -> np.ndarray:
    """The rows as points whose squared distances are those of `far_from`: a coordinate for every level.

    Only the most frequent levels and words get one; a missing number is the average.
    """
    p = sketch.chunk.reals.shape[1]
    codes = sketch.points[:, p:]
    room = max(2, widest // max(1, codes.shape[1]))
    parts = [sketch.points[rows, :p]]
    for column in codes.T:
        levels, which = np.unique(column, return_inverse=True)
        common = np.argsort(-np.bincount(which, sketch.weights), kind="stable")[:room]
        parts.append((column[rows, None] == levels[np.sort(common)]).astype(float))
    for text in sketch.texts:
        words = np.sort(np.argsort(-np.asarray(text.sum(axis=0)).ravel(), kind="stable")[:widest])
        parts.append(text[rows][:, words].toarray())
    return np.concatenate(parts, axis=1)


# Seeds for EM, drawn from the distinct rows, so that row order and repeated rows do not matter.

INITS = ("k-means++", "k-means", "random", "agglomerative")
LLOYD_STEPS = 10
LINKED_ROWS = 1000
"""Rows that agglomerative initialisation links: all pairs of them are compared."""
NEAREST_SHARE = 0.95
"""Membership of a row in its nearest group; the rest is spread, so that no level or variance starts at zero."""


def seeds(
    sketch: Sketch, groups: int, rngs: Sequence[np.random.Generator], weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows drawn as seeds for several initialisations at once (k-means++), and (groups x starts x rows) distances.

    Each is drawn in proportion to weight times squared distance to the nearest seed so far. The first groups are the
    known classes, each seeded by a known row. With (starts x rows) `weights` labels are ignored.
    """
    labels, blank = sketch.chunk.labels if weights is None else None, sketch.blank
    heavy = sketch.weights if weights is None else weights
    nearest = np.tile(np.ones(len(blank)) if blank.all() else (~blank).astype(float), (len(rngs), 1))
    chosen, far = np.empty((groups, len(rngs)), dtype=int), []
    for group in range(groups):
        known = 0.0 if labels is None else sketch.weights * (labels == group)
        mass = np.cumsum(np.atleast_2d(known) if np.any(known) else nearest * heavy, axis=1)
        for place, rng in enumerate(rngs):
            own = mass[place % len(mass)]
            if own[-1] > 0:
                row = int(own.searchsorted(rng.random() * own[-1], side="right"))
                chosen[group, place] = min(row, len(own) - 1)
            else:
                chosen[group, place] = rng.integers(len(own))
        far.append(np.maximum(far_from(sketch, chosen[group]), 0.0))
        nearest = far[-1] * ~blank if group == 0 else np.minimum(nearest, far[-1])
    return chosen.T, np.array(far)


def draw_memberships(sketch: Sketch, groups: int, init: str, rngs: Sequence[np.random.Generator]) -> np.ndarray:
    """(groups x starts x rows) initial memberships; rows of known class belong to it."""
    if init == "random":
        drawn = np.stack([rng.dirichlet(np.ones(groups), len(sketch.weights)).T for rng in rngs], axis=1)
    elif init == "agglomerative":
        linked = np.stack([link_rows(sketch, groups, rng) for rng in rngs])
        drawn = np.full((groups, *linked.shape), (1 - NEAREST_SHARE) / groups)
        drawn[linked == np.arange(groups)[:, None, None]] += NEAREST_SHARE
    else:
        far = seeds(sketch, groups, rngs)[1]
        drawn = assign_nearest(far if init == "k-means++" else lloyd_distances(sketch, far))
    labels = sketch.chunk.labels
    if labels is not None:
        known = labels >= 0
        drawn[:, :, known] = np.eye(groups)[:, None, labels[known]]
    return drawn


def assign_nearest(far: np.ndarray) -> np.ndarray:
    """Mostly the nearest group, and a little of every other; groups first."""
    nearest = far == far.min(axis=0)
    return np.asarray(NEAREST_SHARE * nearest / nearest.sum(axis=0) + (1 - NEAREST_SHARE) / len(far))


def pin_known(members: np.ndarray, labels: np.ndarray | None) -> np.ndarray:
    """Set the memberships of rows of known class, in place."""
    if labels is not None:
        members[labels >= 0] = np.eye(members.shape[1])[labels[labels >= 0]]
    return members


def lloyd_distances(sketch: Sketch, far: np.ndarray) -> np.ndarray:
    """(groups x starts x rows) distances to centres after a few k-means steps, up to a constant per row.

    `far` are the distances to the seeds.
    """
    points, weights = flatten(sketch, np.arange(len(sketch.weights))), sketch.weights
    groups, starts, n = far.shape
    nearest = far.argmin(axis=0)
    centres = np.zeros((groups, starts, points.shape[1]))
    for _ in range(LLOYD_STEPS):
        members = (nearest == np.arange(groups)[:, None, None]) * weights
        mass = members.sum(axis=2)[..., None]
        sums = (members.reshape(-1, n) @ points).reshape(centres.shape)
        centres = np.where(mass > 0, sums / np.where(mass > 0, mass, 1.0), centres)
        far = _far(points, centres.reshape(-1, points.shape[1])).T.reshape(far.shape)
        before, nearest = nearest, far.argmin(axis=0)
        if (before == nearest).all():
            break
    return far


def _far(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return np.asarray((centres * centres).sum(axis=1) - 2.0 * points @ centres.T)


def link_rows(sketch: Sketch, groups: int, rng: np.random.Generator) -> np.ndarray:
    """Each row's cluster by Ward's method on a sample.

    Other rows go to the nearest cluster mean; clusters take the numbers of the known classes they hold.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.optimize import linear_sum_assignment

    count = min(LINKED_ROWS, len(sketch.weights))
    sample = np.sort(rng.choice(len(sketch.weights), count, replace=False, p=sketch.weights / sketch.weights.sum()))
    points = flatten(sketch, np.arange(len(sketch.weights)))
    tree = linkage(points[sample], "ward") if count > 1 else np.zeros((0, 4))
    found = fcluster(tree, groups, "maxclust") - 1 if count > 1 else np.zeros(1, dtype=int)
    held = np.eye(groups)[found] * sketch.weights[sample, None]
    mass = held.sum(axis=0)[:, None]
    centres = np.where(mass > 0, held.T @ points[sample] / np.maximum(mass, 1e-300), np.inf)
    far = np.where(mass.T > 0, _far(points, np.where(mass > 0, centres, 0.0)), np.inf)
    nearest = far.argmin(axis=1)
    labels = sketch.chunk.labels
    if labels is None:
        return np.asarray(nearest)
    known = labels >= 0
    overlap = np.zeros((groups, groups))
    np.add.at(overlap, (nearest[known], labels[known]), sketch.weights[known])
    return np.asarray(np.argsort(linear_sum_assignment(-overlap.T)[1])[nearest])


def repair_memberships(sketch: Sketch, joint: np.ndarray, bad: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Memberships without the `bad` groups, each replaced by half of the largest other group.

    `joint` are (rows x groups) logs of share times density of the sketched rows.
    """
    groups = joint.shape[1]
    if bad.all():
        return draw_memberships(sketch, groups, "random", [rng])[:, 0].T
    joint = np.where(bad, -np.inf, joint)
    joint[np.isneginf(joint).all(axis=1)] = np.where(bad, -np.inf, 0.0)
    members = np.exp(joint - joint.max(axis=1, keepdims=True))
    members /= members.sum(axis=1, keepdims=True)
    for group in np.flatnonzero(bad):
        largest = int(np.argmax(sketch.weights @ members))
        share = members[:, largest] * sketch.weights
        # By weight alone: drawn by distance, the second seed would be the very outlier that a spike had sat on.
        near, far = rng.choice(len(share), 2, p=share / share.sum())
        leaving = far_from(sketch, np.array([far]))[0] < far_from(sketch, np.array([near]))[0]
        members[:, group] = members[:, largest] * leaving
        members[:, largest] *= ~leaving
    return pin_known(NEAREST_SHARE * members + (1 - NEAREST_SHARE) / groups, sketch.chunk.labels)


def start_params(model: ClassModel, imagined: Imagined, sketch: Sketch, memberships: np.ndarray) -> Params:
    counts = model.tally_members(model.prepare(sketch.chunk, base=False), memberships)
    return model.nodes.estimate(model.gathered(counts), imagined)


def members_counts(model: ClassModel, ready: Sequence[Any], memberships: np.ndarray) -> Counts:
    parts = [model.tally_members(part, memberships[part.start : part.start + part.n_rows]) for part in ready]
    return model.gathered(reduce(add, parts))


def count_open(model: ClassModel, ready: Any) -> Counts:
    """Counts of the rows of a part, those of unknown class shared equally."""
    members = one_hot(ready.labels, None, model.groups)
    members[ready.labels < 0] = 1.0 / model.groups
    return model.tally_members(ready, members)


def entropy(seed: Any, log: Checkpoint | None = None) -> Any:
    """The entropy of a `random_state`: a number, or None for a new one each time.

    A fit that continues from a checkpoint uses the one it began with.
    """
    if isinstance(seed, np.random.RandomState):
        return int(seed.randint(0, 2**31 - 1))
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**62))
    if seed is None:
        return None if log is None else log.seed
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise DataError(f"random_state must be None, a whole number of at least 0, or a generator, not {seed!r}.")
    return int(seed)


def find_twins(model: ClassModel, params: Params) -> np.ndarray:
    """Which groups are copies of an earlier one in every column: EM never separates them (a saddle)."""
    rows = model.by_group(params)[:, 1:]  # whatever their shares
    found = np.zeros(len(rows), dtype=bool)
    for group in range(1, len(rows)):
        gap = np.abs(rows[:group] - rows[group]) <= 1e-9 * (np.abs(rows[group]) + 1e-300)
        found[group] = (gap | (rows[:group] == rows[group])).all(axis=1).any()
    return found


def perturb(family: Family, params: Own, which: np.ndarray, rng: np.random.Generator) -> Own:
    """Parameters with some groups changed: means by a tenth of a deviation, shares and rates by a tenth.

    Spreads around a mean stay unchanged.
    """
    moved, places = dict(params), "plain" in family.facts.chart.values()
    for name, line in reversed(list(family.facts.chart.items())):
        old = params[name]
        if line == "plain":
            new = old + 0.1 * floors.deviation(family, params) * rng.standard_normal(old.shape)
        elif line in ("share", "shares"):
            shares = old * np.exp(0.1 * rng.standard_normal(old.shape))
            kept = old.sum(axis=-1, keepdims=True) / np.maximum(shares.sum(axis=-1, keepdims=True), 1e-300)
            new = np.minimum(shares * kept, 1.0)
        elif line == "log" and not places:
            new = old * np.exp(0.1 * rng.standard_normal(old.shape))
        else:
            continue
        moved[name] = np.where(which.reshape(-1, *[1] * (old.ndim - 1)), new, old)
    return moved


# Parameters, memberships and labels given by the user, as initialisation or fixed.


def holding(model: ClassModel, imagined: Imagined, fixed: Mapping[Any, Any] | None) -> Imagined:
    """The priors with some parameters fixed.

    `fixed` has "weights" for the groups' shares, and for a column some of its parameters by name. One number, or that
    of one group, is for all groups.
    """
    if not fixed:
        return imagined
    if not isinstance(fixed, Mapping):
        raise DataError(f"fixed is a mapping of 'weights' and columns to what they are fixed at, not {fixed!r}.")
    leaves = {leaf.key: leaf for leaf in model.leaves}
    name = name_of_shares(fixed)
    unknown = [key for key in fixed if key != name and key not in leaves]
    if unknown:
        names = ", ".join(repr(key) for key in leaves)
        raise DataError(f"fixed names {unknown[0]!r}, which is not a column of the model. It has: {names}.")
    columns = {key: what for key, what in fixed.items() if key != name}
    held = {
        key: held_numbers(leaves[key].family, what, leaves[key].setting, model.groups) for key, what in columns.items()
    }
    for leaf in model.leaves:
        for other in _sharing(model, leaf):
            if set(held.get(leaf.key, ())) != set(held.get(other.key, ())):
                raise DataError(
                    f"fixed: columns {leaf.key!r} and {other.key!r} share a variance, so fix the same in both."
                )
    if name in fixed:
        shares = fixed_numbers(fixed[name], "weights")
        if shares.shape != (model.groups,) or (shares < 0).any() or abs(shares.sum() - 1) > 1e-6:
            raise DataError(f"fixed: 'weights' must be {model.groups} shares that sum to one, not {fixed[name]!r}.")
        held[ROOT] = {"probability": np.asarray(shares / shares.sum())[None]}
    return replace(imagined, fixed={**imagined.fixed, **{key: part for key, part in held.items() if part}})


def imagine_groups(
    model: ClassModel, counts: Counts, priors: Mapping[Any, Any], plan: Plan, known: Mapping[Any, Hyper] | None = None
) -> Imagined:
    """Prior parameters of groups to be found, from the counts of all rows as those of one group."""
    root = plan.prior if isinstance(plan.prior, (int, float, str)) and plan.prior != "auto" else "row"
    found = model.nodes.hypers(counts, {ROOT: root, **priors}, known)
    return holding(model, Imagined(found, plan.em_how), plan.fixed)


def name_of_shares(given: Mapping[Any, Any]) -> Any:
    """The key of the shares in parameters by column: "weights", or "(weights)" if that is a column."""
    name = "weights"
    while isinstance(given.get(name), Mapping):
        name = f"({name})"
    return ROOT if ROOT in given else name


def _sharing(model: ClassModel, leaf: Node) -> list[Node]:
    """The columns that share a parameter with this one, itself included."""
    return [x for x in model.leaves if x.family == leaf.family] if leaf.family.facts.shared_by_columns else [leaf]


def given_params(model: ClassModel, given: Mapping[Any, Any]) -> Params:
    """Parameters given by the user in the shape of `params_`, levels by name or in order."""
    groups, name = model.groups, name_of_shares(given)
    try:
        shares = np.asarray(given.get(name, np.full(groups, 1 / groups)), dtype=float)
    except (TypeError, ValueError):
        shares = np.full(0, np.nan)
    if shares.shape != (groups,) or not abs(shares.sum() - 1) <= 1e-6 or (shares < 0).any():
        raise DataError(f"init: 'weights' must be {groups} shares that sum to one, not {given.get(name)!r}.")
    known = {leaf.key for leaf in model.leaves}
    for key in given:
        if key != name and key not in known:
            raise DataError(f"init names {key!r}, which is not a column of the model.")
    leaves: dict[Any, Own] = {}
    for leaf in model.leaves:
        if leaf.key not in given:
            raise DataError(
                f"init has no parameters for column {leaf.key!r}. Give every column, or leave it out of the table."
            )
        leaves[leaf.key] = initial_params(leaf.family, dict(given[leaf.key]), leaf.setting, groups)
    return model.params(shares, leaves)


def params_around(given: Mapping[Any, Any]) -> Callable[[ClassModel, Imagined], Params]:
    """Makes parameters from given means and shares (`ROOT`); all others are fixed ones or those of the whole table."""

    def make(model: ClassModel, imagined: Imagined) -> Params:
        named = {ROOT: given[ROOT]}
        for key in given:
            if key is not ROOT:
                leaf, fixed = model.nodes[key], imagined.fixed.get(key, {})
                hypers = [imagined.hypers[x.key] for x in _sharing(model, leaf)]
                spread = floors.spread_of_table(leaf.family, hypers, leaf.setting, model.groups, fixed)
                named[key] = spread | dict(given[key])
        return given_params(model, named)

    return make


def start_levels(init: Any) -> dict[Any, list[Any]]:
    if not isinstance(init, Mapping):
        return {}
    names = {name for family in FAMILIES.values() for name in family().facts.chart}
    return {
        key: list(own) for key, own in init.items() if isinstance(own, Mapping) and not names & {str(x) for x in own}
    }


def check_memberships(init: np.ndarray, ready: Sequence[Any], groups: int) -> np.ndarray:
    """The given memberships, or those of given labels."""
    rows = sum(part.n_rows for part in ready)
    if init.ndim == 1:
        if len(init) != rows:
            raise DataError(f"init: labels must be one for each of {rows} rows, not {len(init)}.")
        known = np.where(np.isnan(init), -1, init)
        wrong = (known != np.floor(known)) | (known < -1) | (known >= groups)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"init: row {row + 1} is labelled {init[row]:g}. Labels to start from are 0 to {groups - 1}, "
                "and -1 or NaN if unknown."
            )
        labels = known.astype(int)
        return np.where(labels[:, None] < 0, 1.0 / groups, np.eye(groups)[np.maximum(labels, 0)])
    if init.shape != (rows, groups):
        raise DataError(f"init: memberships must be {rows} rows x {groups} groups, not {init.shape}.")
    if not np.isfinite(init).all() or (init < 0).any() or np.abs(init.sum(axis=1) - 1).max() > 1e-6:
        raise DataError("init: memberships must be 0 or more and sum to one in every row.")
    return np.asarray(init, dtype=float)
