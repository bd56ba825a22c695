"""Where EM starts: seeds drawn from the distinct rows, so that row order and repetition cannot matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softcount.counts import Counts
from softcount.errors import DataError
from softcount.learn.kmeans.fit_kmeans import lloyd
from softcount.learn.sketch import Sketch, distances, flat_points
from softcount.models.plates import one_hot
from softcount.models.star import Imagined, Ready, Star, StarParams
from softcount.table.schema import Kind

INITS = ("k-means++", "k-means", "random", "agglomerative")
LLOYD_STEPS = 10
LINKED_ROWS = 1000
"""Rows that agglomerative starts link: all pairs of them are compared."""
NEAREST_SHARE = 0.95
"""Of a row, in the group it is nearest to: a little of the whole table in every group, so that no level starts at zero
and no variance at nothing."""


def seeds(sketch: Sketch, groups: int, rng: np.random.Generator) -> np.ndarray:
    """(rows x groups) distances to seeds drawn one by one with probability by squared distance (k-means++).

    The first groups are those of known classes: a known row of each is its seed.
    """
    chosen = seed_rows(sketch, groups, rng)
    return np.stack([distances(sketch, seed) for seed in chosen], axis=1)


def seed_rows(sketch: Sketch, groups: int, rng: np.random.Generator) -> list[int]:
    """The rows drawn as seeds: each with probability by its weight times its squared distance to the nearest so far."""
    labels = sketch.chunk.labels
    chosen: list[int] = []
    blank = sketch.blank
    nearest = np.ones(len(sketch.weights)) if blank.all() else (~blank).astype(float)
    for group in range(groups):
        known = 0.0 if labels is None else sketch.weights * (labels == group)
        mass = np.cumsum(known if np.any(known) else nearest * sketch.weights)
        if mass[-1] > 0:
            drawn = int(np.searchsorted(mass, rng.random() * mass[-1], side="right"))
        else:
            drawn = int(rng.integers(len(mass)))
        chosen.append(min(drawn, len(mass) - 1))
        far = np.maximum(distances(sketch, chosen[-1]), 0.0)
        nearest = far * ~blank if group == 0 else np.minimum(nearest, far)
    return chosen


def drawn_memberships(sketch: Sketch, groups: int, init: str, rng: np.random.Generator) -> np.ndarray:
    """Memberships to start from; rows of known class belong to it whatever was drawn."""
    if init not in INITS:
        words = ", ".join(repr(name) for name in INITS)
        raise DataError(f"init={init!r} is not known. Use {words}, memberships, labels, parameters or a model.")
    if init == "random":
        members = rng.dirichlet(np.ones(groups), len(sketch.weights))
    elif init == "agglomerative":
        members = mostly(linked(sketch, groups, rng), groups)
    else:
        far = seeds(sketch, groups, rng) if init == "k-means++" else moved_centres(sketch, groups, rng)
        nearest = far == far.min(axis=1, keepdims=True)
        members = NEAREST_SHARE * nearest / nearest.sum(axis=1, keepdims=True) + (1 - NEAREST_SHARE) / groups
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


def moved_centres(sketch: Sketch, groups: int, rng: np.random.Generator) -> np.ndarray:
    """(rows x groups) distances to k-means++ seeds that a few steps of k-means have moved."""
    points = flat_points(sketch, np.arange(len(sketch.weights)))
    centres, _ = lloyd(points, sketch.weights, points[seed_rows(sketch, groups, rng)], LLOYD_STEPS)
    return _far(points, centres)


def _far(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return (centres * centres).sum(axis=1) - 2.0 * points @ centres.T


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
        return nearest
    known = labels >= 0
    overlap = np.zeros((groups, groups))
    np.add.at(overlap, (nearest[known], labels[known]), sketch.weights[known])
    return np.argsort(linear_sum_assignment(-overlap.T)[1])[nearest]


def mended_memberships(
    star: Star, sketch: Sketch, params: StarParams, bad: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Memberships without the bad groups, whose places are taken by halves of the largest of the others."""
    if bad.all():
        return drawn_memberships(sketch, star.groups, "random", rng)
    ready = star.prepare(sketch.chunk, base=False)
    joint = star.score(ready, star.compile(params), slice(0, ready.n_rows))
    joint[:, bad] = -np.inf
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
    return pinned(NEAREST_SHARE * members + (1 - NEAREST_SHARE) / star.groups, sketch.chunk.labels)


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
    if shares.shape != (star.groups,) or not abs(shares.sum() - 1) <= 1e-6 or (shares < 0).any():
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
        text = leaf.family.kind is Kind.TEXT
        given_by = _given_words if text else _given_shares if leaf.family.discrete else _given_numbers
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


def _given_words(leaf: Any, said: Mapping[Any, Any], groups: int) -> dict[str, np.ndarray]:
    """A probability for every word, in the order of the vocabulary; documents of no certain length."""
    params = _given_numbers(leaf, {"probability": said.get("probability", [])}, groups)
    words = len(leaf.setting.levels)
    if params["probability"].shape != (groups, words):
        raise DataError(f"init: column {leaf.key!r} needs a probability of each of its {words:,} words in each group.")
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


def entropy(seed: Any) -> Any:
    """What a `random_state` gives to draw from: a number, or None for something new each time."""
    if isinstance(seed, np.random.RandomState):
        return int(seed.randint(0, 2**31 - 1))
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**62))
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise DataError(f"random_state must be None, a whole number of at least 0, or a generator, not {seed!r}.")
    return int(seed)


def checked_memberships(init: np.ndarray, ready: Sequence[Ready], groups: int) -> np.ndarray:
    """Memberships as they were given, or those that a label for each row implies."""
    rows = sum(part.n_rows for part in ready)
    if init.ndim == 1:
        return mostly(_checked_labels(init, rows, groups), groups)
    if init.shape != (rows, groups):
        raise DataError(f"init: memberships must be {rows} rows x {groups} groups, not {init.shape}.")
    if not np.isfinite(init).all() or (init < 0).any() or np.abs(init.sum(axis=1) - 1).max() > 1e-6:
        raise DataError("init: memberships must be 0 or more and sum to one in every row.")
    return np.asarray(init, dtype=float)


def _checked_labels(init: np.ndarray, rows: int, groups: int) -> np.ndarray:
    if len(init) != rows:
        raise DataError(f"init: labels must be one for each of {rows} rows, not {len(init)}.")
    labels = np.where(np.isnan(init), -1, init)
    wrong = (labels != np.floor(labels)) | (labels < -1) | (labels >= groups)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"init: row {row + 1} is labelled {init[row]:g}. Labels to start from are 0 to {groups - 1}, "
            "and -1 or NaN where nothing is said."
        )
    return labels.astype(int)


def twins(params: StarParams) -> np.ndarray:
    """Which groups are copies of an earlier one in every column: EM keeps them alike for ever (a saddle)."""
    groups = len(params.shares)
    parts = [array.reshape(groups, -1) for leaf in params.leaves.values() for array in leaf.values()]
    rows = np.concatenate(parts, axis=1) if parts else np.zeros((groups, 0))
    found = np.zeros(groups, dtype=bool)
    for group in range(1, groups):
        gap = np.abs(rows[:group] - rows[group]) <= 1e-9 * (np.abs(rows[group]) + 1e-300)
        found[group] = (gap | (rows[:group] == rows[group])).all(axis=1).any()
    return found


def nudged(params: StarParams, which: np.ndarray, rng: np.random.Generator) -> StarParams:
    """The same parameters with some groups moved a little: means by a tenth of a deviation, the rest by a tenth."""
    leaves = {key: _nudged(part, which, rng) for key, part in params.leaves.items()}
    return StarParams(params.shares, leaves)


def _nudged(part: Mapping[str, np.ndarray], which: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    moved = dict(part)
    positive = ("rate", "shape", "mean") if "shape" in part else ("rate",)  # a gamma column's mean goes by factors
    if "mean" in part and "mean" not in positive:
        wide = np.sqrt(np.diagonal(part["covariance"], axis1=1, axis2=2) if "covariance" in part else _wide(part))
        moved["mean"] = _where(which, part["mean"] + 0.1 * wide * rng.standard_normal(part["mean"].shape), part["mean"])
    if "probability" in part:
        shares = part["probability"] * np.exp(0.1 * rng.standard_normal(part["probability"].shape))
        kept = part["probability"].sum(axis=-1, keepdims=True) / np.maximum(shares.sum(axis=-1, keepdims=True), 1e-300)
        moved["probability"] = _where(which, np.minimum(shares * kept, 1.0), part["probability"])
    for name in positive:
        if name in part:
            factor = np.exp(0.1 * rng.standard_normal(part[name].shape))
            moved[name] = _where(which, part[name] * factor, part[name])
    return moved


def _wide(part: Mapping[str, np.ndarray]) -> np.ndarray:
    return next((part[name] for name in ("variance", "spread") if name in part), np.ones(1))


def _where(which: np.ndarray, new: np.ndarray, old: np.ndarray) -> np.ndarray:
    return np.where(which.reshape(-1, *[1] * (old.ndim - 1)), new, old)


def taken(params: StarParams, groups: np.ndarray) -> StarParams:
    """Some of the groups, their shares again adding up to one."""
    leaves = {key: {name: array[groups] for name, array in part.items()} for key, part in params.leaves.items()}
    return StarParams(params.shares[groups] / params.shares[groups].sum(), leaves)
