"""Where EM starts: seeds drawn from the distinct rows, so that row order and repetition cannot matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from softcount.counts import ROOT, Counts
from softcount.errors import DataError
from softcount.learn.climb_log import ClimbLog
from softcount.learn.sketch import Sketch, distances, far_from, flat_points
from softcount.models.base import ClassModel
from softcount.models.nodes import Imagined, Params
from softcount.models.stacks import one_hot
from softcount.run.rows import Rows, Step

INITS = ("k-means++", "k-means", "random", "agglomerative")
LLOYD_STEPS = 10
LINKED_ROWS = 1000
"""Rows that agglomerative starts link: all pairs of them are compared."""
NEAREST_SHARE = 0.95
"""Of a row, in the group it is nearest to: a little of the whole table in every group, so that no level starts at zero
and no variance at nothing."""


def seeds(
    sketch: Sketch, groups: int, rngs: Sequence[np.random.Generator], weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows drawn as seeds for several starts at once (k-means++), and (groups x starts x rows) distances to them.

    Each is drawn with probability by its weight times its squared distance to the nearest of its start so far. The
    first groups are those of known classes: a known row of each is its seed. With (starts x rows) `weights` every start
    has its own, and nothing is known of classes.
    """
    labels, blank = sketch.chunk.labels if weights is None else None, sketch.blank
    heavy = sketch.weights if weights is None else weights
    nearest = np.tile(np.ones(len(blank)) if blank.all() else (~blank).astype(float), (len(rngs), 1))
    chosen, far = np.empty((groups, len(rngs)), dtype=int), []
    for group in range(groups):
        known = 0.0 if labels is None else sketch.weights * (labels == group)
        mass = np.cumsum(np.atleast_2d(known) if np.any(known) else nearest * heavy, axis=1)
        chosen[group] = [_drawn_row(mass[place % len(mass)], rng) for place, rng in enumerate(rngs)]
        far.append(np.maximum(far_from(sketch, chosen[group]), 0.0))
        nearest = far[-1] * ~blank if group == 0 else np.minimum(nearest, far[-1])
    return chosen.T, np.array(far)


def _drawn_row(mass: np.ndarray, rng: np.random.Generator) -> int:
    """A row drawn by the steps of a rising mass; any row where it does not rise."""
    if not mass[-1] > 0:
        return int(rng.integers(len(mass)))
    return min(int(mass.searchsorted(rng.random() * mass[-1], side="right")), len(mass) - 1)


def seed_rows(sketch: Sketch, groups: int, rng: np.random.Generator) -> list[int]:
    """The rows drawn as seeds for one start."""
    return [int(row) for row in seeds(sketch, groups, [rng])[0][0]]


def drawn_together(sketch: Sketch, groups: int, init: str, rngs: Sequence[np.random.Generator]) -> np.ndarray:
    """(groups x starts x rows) memberships to start from; rows of known class belong to it whatever was drawn."""
    if init not in ("k-means++", "k-means"):
        one_by_one = [drawn_memberships(sketch, groups, init, rng) for rng in rngs]
        return np.ascontiguousarray(np.stack(one_by_one).transpose(2, 0, 1))
    far = seeds(sketch, groups, rngs)[1]
    members = nearest_members(far if init == "k-means++" else moved_centres(sketch, far))
    labels = sketch.chunk.labels
    if labels is not None:
        known = labels >= 0
        members[:, :, known] = np.eye(groups)[:, None, labels[known]]
    return members


def nearest_members(far: np.ndarray) -> np.ndarray:
    """Mostly the nearest group, and a little of every other; groups first."""
    nearest = far == far.min(axis=0)
    return np.asarray(NEAREST_SHARE * nearest / nearest.sum(axis=0) + (1 - NEAREST_SHARE) / len(far))


def drawn_memberships(sketch: Sketch, groups: int, init: str, rng: np.random.Generator) -> np.ndarray:
    """Memberships to start from; rows of known class belong to it whatever was drawn."""
    if init not in INITS:
        words = ", ".join(repr(name) for name in INITS)
        raise DataError(f"init={init!r} is not known. Use {words}, memberships, labels, parameters or a model.")
    if init == "random":
        members = rng.dirichlet(np.ones(groups), len(sketch.weights))
    elif init == "agglomerative":
        members = mostly(linked(sketch, groups, rng), groups)
    elif init == "k-means":
        members = nearest_members(moved_centres(sketch, seeds(sketch, groups, [rng])[1])[:, 0]).T
    else:
        members = nearest_members(seeds(sketch, groups, [rng])[1][:, 0]).T
    return pinned(members, sketch.chunk.labels)


def mostly(labels: np.ndarray, groups: int) -> np.ndarray:
    """Memberships of rows with these labels, a little of each row in every group; unknown ones (-1) in all alike."""
    members = np.full((len(labels), groups), (1 - NEAREST_SHARE) / groups)
    members[np.flatnonzero(labels >= 0), labels[labels >= 0]] += NEAREST_SHARE
    members[labels < 0] = 1.0 / groups
    return members


def pinned(members: np.ndarray, labels: np.ndarray | None) -> np.ndarray:
    """The memberships, with rows of known class in it alone."""
    if labels is not None:
        members[labels >= 0] = np.eye(members.shape[1])[labels[labels >= 0]]
    return members


def moved_centres(sketch: Sketch, far: np.ndarray) -> np.ndarray:
    """(groups x starts x rows) distances to seeds that a few steps of k-means have moved, but for a number that all
    groups share; the distances `far` to the seeds tell where the steps begin."""
    points, weights = flat_points(sketch, np.arange(len(sketch.weights))), sketch.weights
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


def linked(sketch: Sketch, groups: int, rng: np.random.Generator) -> np.ndarray:
    """Each row's cluster when the rows of a sample, joined two by two as Ward says, have become so many.

    Rows outside the sample go to the nearest cluster's mean; clusters take the numbers of the known classes they hold.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.optimize import linear_sum_assignment

    count = min(LINKED_ROWS, len(sketch.weights))
    sample = np.sort(rng.choice(len(sketch.weights), count, replace=False, p=sketch.weights / sketch.weights.sum()))
    points = flat_points(sketch, np.arange(len(sketch.weights)))
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


def mended_memberships(sketch: Sketch, joint: np.ndarray, bad: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Memberships without the bad groups, whose places are taken by halves of the largest of the others.

    `joint` are the sketched rows' (rows x groups) logs of share times density.
    """
    groups = joint.shape[1]
    if bad.all():
        return drawn_memberships(sketch, groups, "random", rng)
    joint = np.where(bad, -np.inf, joint)
    joint[np.isneginf(joint).all(axis=1)] = np.where(bad, -np.inf, 0.0)
    members = np.exp(joint - joint.max(axis=1, keepdims=True))
    members /= members.sum(axis=1, keepdims=True)
    for group in np.flatnonzero(bad):
        largest = int(np.argmax(sketch.weights @ members))
        share = members[:, largest] * sketch.weights
        # By weight alone: drawn by distance, the second seed would be the very outlier that a spike had sat on.
        near, far = rng.choice(len(share), 2, p=share / share.sum())
        leaving = distances(sketch, int(far)) < distances(sketch, int(near))
        members[:, group] = members[:, largest] * leaving
        members[:, largest] *= ~leaving
    return pinned(NEAREST_SHARE * members + (1 - NEAREST_SHARE) / groups, sketch.chunk.labels)


def start_params(model: ClassModel, imagined: Imagined, sketch: Sketch, memberships: np.ndarray) -> Params:
    """The parameters these memberships imply."""
    counts = model.tally_members(model.prepare(sketch.chunk, base=False), memberships)
    return model.nodes.estimate(model.gathered(counts), imagined)


def members_counts(model: ClassModel, ready: Sequence[Any], memberships: np.ndarray) -> Counts:
    """The counts, by bundle, that memberships of every row of the table imply."""
    parts = [model.tally_members(part, memberships[part.start : part.start + part.n_rows]) for part in ready]
    return model.gathered(reduce(add, parts))


def open_counts(model: ClassModel, ready: Rows) -> Counts:
    """Counts, by bundle, of every row, those of unknown class in all classes alike."""
    return model.gathered(ready.total(Step(f"{__name__}:count_open", model)))


def count_open(model: ClassModel) -> Callable[[Any], Counts]:
    """Such counts of a prepared part, under the model's own names."""
    return partial(_open, model)


def _open(model: ClassModel, ready: Any) -> Counts:
    members = one_hot(ready.labels, None, model.groups)
    members[ready.labels < 0] = 1.0 / model.groups
    return model.tally_members(ready, members)


def entropy(seed: Any, log: ClimbLog | None = None) -> Any:
    """What a `random_state` gives to draw from: a number, or None for something new each time.

    Where nobody gave one, a fit that goes on draws by what it began with.
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


def twins(model: ClassModel, params: Params) -> np.ndarray:
    """Which groups are copies of an earlier one in every column: EM keeps them alike for ever (a saddle)."""
    rows = model.by_group(params)[:, 1:]  # whatever their shares
    found = np.zeros(len(rows), dtype=bool)
    for group in range(1, len(rows)):
        gap = np.abs(rows[:group] - rows[group]) <= 1e-9 * (np.abs(rows[group]) + 1e-300)
        found[group] = (gap | (rows[:group] == rows[group])).all(axis=1).any()
    return found


def nudged(model: ClassModel, params: Params, which: np.ndarray, rng: np.random.Generator) -> Params:
    """The same parameters with some groups moved a little."""
    moved = {leaf.key: leaf.family.nudged(params[leaf.key], which, rng) for leaf in model.leaves}
    return model.nodes.params({ROOT: params[ROOT], **moved})
