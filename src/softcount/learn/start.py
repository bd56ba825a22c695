"""Where EM starts: seeds drawn from the distinct rows, so that row order and repetition cannot matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from softcount.counts import Counts
from softcount.errors import DataError
from softcount.models.plates import one_hot
from softcount.models.star import Imagined, Ready, Star, StarParams
from softcount.table.chunk import Chunk

SKETCH_ROWS = 4096
"""Distinct rows that starts are drawn from; a larger table is sampled by a hash of each row's content."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """Distinct rows in sorted order with their weights, and coordinates in which they can be compared."""

    chunk: Chunk
    points: Any
    present: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        assert self.chunk.weights is not None
        return self.chunk.weights


def sketch(chunks: Sequence[Chunk]) -> Sketch:
    """The table's distinct rows, or a sample of them that no order of rows can change."""
    if chunks[0].bag is not None:
        return _bag_sketch(chunks)
    kept: np.ndarray | None = None
    weights = np.zeros(0)
    widths = (0, 0, 0)
    for chunk in chunks:
        widths = chunk.reals.shape[1], chunk.codes.shape[1], chunk.wide.shape[1]
        rows, extra = _as_bytes(chunk), chunk.weights if chunk.weights is not None else np.ones(chunk.n_rows)
        rows, extra = rows[extra > 0], extra[extra > 0]
        kept, weights = _merged(kept, weights, rows, extra)
    if kept is None or not len(kept):
        raise DataError("the table has no rows with weight.")
    return _sketch_of(kept, weights, widths)


def _as_bytes(chunk: Chunk) -> np.ndarray:
    reals = np.ascontiguousarray(chunk.reals, dtype=np.float64) + 0.0
    reals[np.isnan(reals)] = np.nan
    parts = [reals, np.ascontiguousarray(chunk.wide), np.ascontiguousarray(chunk.codes)]
    flat = [part.view(np.uint8).reshape(chunk.n_rows, -1) for part in parts if part.shape[1]]
    if not flat:
        return np.zeros((chunk.n_rows, 1), dtype="V1").ravel().view("V1")
    joined = np.ascontiguousarray(np.concatenate(flat, axis=1))
    return joined.view(f"V{joined.shape[1]}").ravel()


def _merged(
    kept: np.ndarray | None, weights: np.ndarray, rows: np.ndarray, extra: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    if kept is not None:
        rows, extra = np.concatenate([kept, rows]), np.concatenate([weights, extra])
    distinct, which = np.unique(rows, return_inverse=True)
    summed = np.bincount(which, extra, minlength=len(distinct))
    if len(distinct) > SKETCH_ROWS:
        chosen = np.sort(np.argsort(_hash(distinct), kind="stable")[:SKETCH_ROWS])
        distinct, summed = distinct[chosen], summed[chosen]
    return distinct, summed


def _bag_sketch(chunks: Sequence[Chunk]) -> Sketch:
    """Distinct rows of a sparse block in the order of a hash of their content; points are roots of relative counts."""
    bag = sparse.vstack([chunk.bag for chunk in chunks], format="csr").astype(np.float64)
    bag.sum_duplicates()
    bag.eliminate_zeros()
    weights = np.concatenate([np.ones(c.n_rows) if c.weights is None else c.weights for c in chunks])
    _, first, which = np.unique(_bag_hash(bag), return_index=True, return_inverse=True)
    summed = np.bincount(which, weights, minlength=len(first))
    keep = np.flatnonzero(summed > 0)[:SKETCH_ROWS]
    rows, n = bag[first[keep]], len(keep)
    nothing = np.zeros((n, 0))
    chunk = Chunk(0, n, nothing, nothing.astype(np.uint8), nothing.astype(np.int32), rows, weights=summed[keep])
    total = np.maximum(np.asarray(rows.sum(axis=1)).ravel(), 1e-300)
    roots = sparse.diags_array(1.0 / total) @ rows
    return Sketch(chunk, roots.sqrt(), nothing)


def _bag_hash(bag: sparse.csr_matrix) -> np.ndarray:
    """A number per row that depends on its counts alone."""
    with np.errstate(over="ignore"):
        cells = (bag.indices.astype(np.uint64) + np.uint64(1)) * np.uint64(11400714819323198485)
        cells = (cells ^ bag.data.view(np.uint64)) * np.uint64(13787848793156543929)
        cells ^= cells >> np.uint64(31)
        cells *= np.uint64(10723151780598845931)
        sums = np.concatenate([[np.uint64(0)], np.cumsum(cells, dtype=np.uint64)])
        return sums[bag.indptr[1:]] - sums[bag.indptr[:-1]]


def _hash(rows: np.ndarray) -> np.ndarray:
    octets = rows.view(np.uint8).reshape(len(rows), -1).astype(np.uint64)
    mixed = np.full(len(rows), 14695981039346656037, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in octets.T:
            mixed = (mixed ^ column) * np.uint64(1099511628211)
            mixed ^= mixed >> np.uint64(29)
    return mixed


def _sketch_of(rows: np.ndarray, weights: np.ndarray, widths: tuple[int, int, int]) -> Sketch:
    p, q, r = widths
    octets = np.frombuffer(rows.tobytes(), np.uint8).reshape(len(rows), -1)
    ends = np.cumsum([8 * p, 4 * r, q])
    reals = np.ascontiguousarray(octets[:, : ends[0]]).view(np.float64).reshape(len(rows), p)
    wide = np.ascontiguousarray(octets[:, ends[0] : ends[1]]).view(np.int32).reshape(len(rows), r)
    codes = np.ascontiguousarray(octets[:, ends[1] : ends[2]]).reshape(len(rows), q)
    order = np.lexsort([*wide.T, *codes.T, *reals.T]) if p + q + r else np.arange(len(rows))
    chunk = Chunk(0, len(rows), reals[order], codes[order], wide[order], weights=weights[order])
    return Sketch(chunk, *_coordinates(chunk))


def _coordinates(chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
    """Standardised numbers beside level codes (compared as equal or not), and where they are present."""
    reals = chunk.reals
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
    points = np.where(there, (moved - mean) / np.where(spread > 0, spread, 1.0), 0.0)
    codes = np.concatenate([chunk.codes.astype(float), chunk.wide.astype(float)], axis=1)
    return np.concatenate([points, codes], axis=1), np.concatenate([there, codes > 0], axis=1)


def distances(sketch: Sketch, seed: int) -> np.ndarray:
    """Squared distance of every row to one: standardised numbers, two for each level that differs.

    Where either cell is missing the column adds its average, two, so that rows with holes are not close to all.
    """
    if sketch.chunk.bag is not None:
        return 2.0 - 2.0 * np.asarray((sketch.points @ sketch.points[[seed]].T).todense()).ravel()
    p = sketch.chunk.reals.shape[1]
    both = sketch.present & sketch.present[seed]
    apart = sketch.points - sketch.points[seed]
    apart[:, :p] **= 2
    apart[:, p:] = 2.0 * (apart[:, p:] != 0)
    return np.where(both, apart, 2.0).sum(axis=1) - 2.0 * (~sketch.present[seed]).sum()


def seeds(sketch: Sketch, groups: int, rng: np.random.Generator) -> np.ndarray:
    """(rows x groups) distances to seeds drawn one by one with probability by squared distance (k-means++)."""
    first = int(np.searchsorted(np.cumsum(sketch.weights), rng.random() * sketch.weights.sum(), side="right"))
    first = min(first, len(sketch.weights) - 1)
    out = [distances(sketch, first)]
    nearest = np.maximum(out[0], 0.0)
    for _ in range(groups - 1):
        mass = np.cumsum(nearest * sketch.weights)
        if mass[-1] > 0:
            drawn = int(np.searchsorted(mass, rng.random() * mass[-1], side="right"))
        else:
            drawn = int(rng.integers(len(mass)))
        out.append(distances(sketch, min(drawn, len(mass) - 1)))
        nearest = np.minimum(nearest, np.maximum(out[-1], 0.0))
    return np.stack(out, axis=1)


def drawn_memberships(sketch: Sketch, groups: int, init: str, rng: np.random.Generator) -> np.ndarray:
    """Memberships to start from: the nearest of k-means++ seeds, or at random."""
    if init == "random":
        return rng.dirichlet(np.ones(groups), len(sketch.weights))
    if init != "k-means++":
        raise DataError(f"init={init!r} is not known. Use 'k-means++', 'random', memberships, parameters or a model.")
    far = seeds(sketch, groups, rng)
    nearest = far == far.min(axis=1, keepdims=True)
    # A little of the whole table in every group: no level starts at zero and no variance at nothing.
    return 0.95 * nearest / nearest.sum(axis=1, keepdims=True) + 0.05 / groups


def start_params(star: Star, imagined: Imagined, sketch: Sketch, memberships: np.ndarray) -> StarParams:
    """The parameters these memberships imply."""
    ready = star.prepare(sketch.chunk, base=False)
    return star.estimate(star.unstacked(star.tally_members(ready, memberships)), imagined)


def members_params(star: Star, imagined: Imagined, ready: Sequence[Ready], memberships: np.ndarray) -> StarParams:
    """The parameters that memberships of every row of the table imply."""
    return star.estimate(members_counts(star, ready, memberships), imagined)


def members_counts(star: Star, ready: Sequence[Ready], memberships: np.ndarray) -> Counts:
    """The counts that memberships of every row of the table imply."""
    counts: Counts | None = None
    for part in ready:
        here = star.tally_members(part, memberships[part.start : part.start + part.n_rows])
        counts = here if counts is None else counts + here
    assert counts is not None
    return star.unstacked(counts)


def open_counts(star: Star, ready: Sequence[Ready]) -> Counts:
    """Counts of every row, those of unknown class in all classes alike."""
    labels = np.concatenate([part.labels for part in ready if part.labels is not None])
    members = one_hot(labels, None, star.groups)
    members[labels < 0] = 1.0 / star.groups
    return members_counts(star, ready, members)


def given_params(star: Star, given: Mapping[Any, Any]) -> StarParams:
    """Parameters as the user wrote them: in the shape of `params_`, levels by name or in order."""
    try:
        shares = np.asarray(given.get("weights", np.full(star.groups, 1 / star.groups)), dtype=float)
    except (TypeError, ValueError):
        shares = np.full(0, np.nan)
    if shares.shape != (star.groups,) or abs(shares.sum() - 1) > 1e-6 or (shares < 0).any():
        raise DataError(f"init: 'weights' must be {star.groups} shares that sum to one, not {given.get('weights')!r}.")
    known = {leaf.key for leaf in star.leaves}
    for key in given:
        if key != "weights" and key not in known:
            raise DataError(f"init names {key!r}, which is not a column of the model.")
    leaves = {}
    for leaf in star.leaves:
        if leaf.key not in given:
            raise DataError(
                f"init has no parameters for column {leaf.key!r}. Give every column, or leave it out of the table."
            )
        said = dict(given[leaf.key])
        given_by = _given_shares if leaf.family.discrete else _given_numbers
        leaves[leaf.key] = given_by(leaf, said, star.groups)
    return StarParams(shares, leaves)


def _given_numbers(leaf: Any, said: Mapping[Any, Any], groups: int) -> dict[str, np.ndarray]:
    try:
        params = leaf.family.private({k: np.asarray(v, float) for k, v in said.items()}, leaf.setting)
        wrong = leaf.family.check_params(params)
    except KeyError as absent:
        raise DataError(f"init: column {leaf.key!r} is {leaf.family.name} and needs {absent} of each group.") from None
    for name, value in params.items():
        if value.shape[:1] != (groups,) or not np.isfinite(value).all():
            raise DataError(f"init: column {leaf.key!r} needs {name} of each of {groups} groups, as finite numbers.")
    if wrong:
        raise DataError(f"init: column {leaf.key!r} makes no sense: {wrong}.")
    return params


def _given_shares(leaf: Any, said: Mapping[Any, Any], groups: int) -> dict[str, np.ndarray]:
    if "probability" in said and "probability" not in leaf.setting.levels:
        table = np.asarray(said["probability"], dtype=float)
    else:
        by_text = {str(level): share for level, share in said.items()}
        shares = [said.get(level, by_text.get(str(level), 0.0)) for level in leaf.setting.levels]
        table = np.stack([np.broadcast_to(np.asarray(share, dtype=float), (groups,)) for share in shares], axis=1)
    shaped = table.shape == (groups, len(leaf.setting.levels))
    if not shaped or not (table >= 0).all() or (table.size and np.abs(table.sum(axis=1) - 1).max() > 1e-6):
        raise DataError(f"init: the probabilities of column {leaf.key!r} must sum to one in each of {groups} groups.")
    unseen = np.zeros(groups)
    return {"probability": table, "unseen": unseen}


def start_levels(init: Any) -> dict[Any, list[Any]]:
    """Levels that the user's starting parameters name."""
    if not isinstance(init, Mapping):
        return {}
    words = {"probability", "mean", "variance", "rate", "covariance"}
    return {
        key: list(said)
        for key, said in init.items()
        if key != "weights" and isinstance(said, Mapping) and not words & {str(x) for x in said}
    }
