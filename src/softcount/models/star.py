"""The star: one nullable root (class or cluster) and leaves independent of each other given it.

All labels known is naive Bayes; some null, semi-supervised; all null, a mixture.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import local
from typing import Any

import numpy as np
from scipy.special import xlogy

from softcount.counts import ROOT, Counts
from softcount.errors import DataError
from softcount.families import Categorical, Family, How, Joint, Params, Setting
from softcount.families.base import IMPOSSIBLE
from softcount.models.imagine import leaf_hypers
from softcount.models.layout import plates_of
from softcount.models.nodes import Node
from softcount.models.parts import (
    Imagined,
    StarParams,
    completed_together,
    estimate_stack,
    log_prior_together,
    slope_together,
    within_together,
)
from softcount.models.plates import Kernels, Plate, Reals, down_columns
from softcount.numerics.twofold import Twofold
from softcount.table.chunk import Chunk
from softcount.table.schema import Key, Kind, Schema

TILE = 4096
"""Rows scored at a time, so that rows x groups stays in the cache."""
ASSIGNED = "(assigned)"
"""The name, among the notes of counts, of the log-likelihood of the rows together with the groups they were put in."""
Assign = Callable[[np.ndarray, int], None]
"""Turns rows' posteriors into memberships, in place; told the number of the first row."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A chunk as the plates want it, with the part of its log-density no group changes; done `tile` rows at a time."""

    data: list[Any]
    labels: np.ndarray | None
    weights: np.ndarray | None
    base: np.ndarray | float
    start: int
    n_rows: int
    tile: int = TILE


@dataclass(frozen=True, slots=True, eq=False)
class Star:
    """Structure only: which leaves, how many groups. Parameters and data are passed in."""

    schema: Schema
    leaves: tuple[Node, ...]
    groups: int
    kernels: Kernels
    unknown_weight: float = 1.0
    plates: tuple[Plate, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "plates", plates_of(self.leaves, self.schema, self.kernels))

    # -- data -> counts

    def prepare(self, chunk: Chunk, base: bool = True) -> Ready:
        """What the plates need of a chunk; kept between EM's passes."""
        data = [plate.prepare(chunk) for plate in self.plates]
        parts = [plate.base(part) for plate, part in zip(self.plates, data, strict=True)] if base else []
        return Ready(data, chunk.labels, self._weights(chunk), sum(parts, 0.0), chunk.start, chunk.n_rows)

    def _weights(self, chunk: Chunk) -> np.ndarray | None:
        if chunk.labels is None or self.unknown_weight == 1.0:
            return chunk.weights
        factor = np.where(chunk.labels < 0, self.unknown_weight, 1.0)
        return factor if chunk.weights is None else chunk.weights * factor

    def tally(self, ready: Ready) -> Counts:
        """Counts of rows whose class is known; the others are passed over. Classes yet unknown make room."""
        assert ready.labels is not None
        groups = max(self.groups, int(ready.labels.max(initial=0)) + 1)
        arrays: dict[Hashable, Twofold] = {}
        for plate, data in zip(self.plates, ready.data, strict=True):
            arrays |= plate.count_labelled(data, ready.labels, ready.weights, groups)
        coded = arrays.get("(codes)") if ready.weights is None else None
        # Every row has one code in a column, if only that of a missing cell: the classes are counted already.
        sizes = _label_counts(ready.labels, ready.weights, groups) if coded is None else coded.hi[:, 0].sum(axis=-1)
        arrays[ROOT] = Twofold.of(sizes)
        rows = float(sizes.sum())
        return Counts(arrays, rows)

    def tally_members(self, ready: Ready, memberships: np.ndarray) -> Counts:
        """Counts under given memberships (rows x groups)."""
        if ready.weights is not None:
            memberships = memberships * ready.weights[:, None]
        memberships = np.ascontiguousarray(memberships)
        arrays: dict[Hashable, Twofold] = {}
        for plate, data in zip(self.plates, ready.data, strict=True):
            arrays |= plate.count(data, memberships, None)
        arrays[ROOT] = Twofold.of(memberships.sum(axis=0))
        return Counts(arrays, float(memberships.sum()))

    def compile(self, params: StarParams, contrast: bool = False) -> list[Any]:
        """The parameters as the kernels want them, made once per pass; `contrast` is all that tells groups apart."""
        with np.errstate(divide="ignore"):
            log_shares = np.log(params.shares)
        parts = [plate.compile([params.leaves[x.key] for x in plate.leaves]) for plate in self.plates]
        if contrast:
            pairs = zip(self.plates, parts, strict=True)
            parts = [plate.contrast(part) if isinstance(plate, Reals) else part for plate, part in pairs]
        return [np.tile(log_shares, (TILE, 1)), *parts]

    def score(self, ready: Ready, compiled: list[Any], rows: slice, out: np.ndarray | None = None) -> np.ndarray:
        """(rows x groups) log of share times density, without the part no group changes."""
        joint = np.empty((rows.stop - rows.start, self.groups)) if out is None else out
        for a in range(0, len(joint), TILE):
            joint[a : a + TILE] = compiled[0][: len(joint) - a]
        clamped = False
        for plate, data, part in zip(self.plates, ready.data, compiled[1:], strict=True):
            plate.score(rows_of(data, rows), part, joint)
            clamped |= type(plate).__name__ in ("Features", "Bag")
        if clamped:
            joint[joint < IMPOSSIBLE] = -np.inf
        return joint

    def expect(self, params: StarParams, compiled: list[Any], ready: Ready, assign: Assign | None = None) -> Counts:
        """Expected counts and log-likelihood of a chunk under these parameters.

        With `assign` the counts are those of the memberships it makes, and the notes say how likely rows and groups
        are together.
        """
        alone = self._expect_alone(compiled, ready) if assign is None else None
        if alone is not None:
            return alone
        parts = [
            self._expect_tile(params, compiled, ready, slice(a, min(a + ready.tile, ready.n_rows)), assign)
            for a in range(0, ready.n_rows, ready.tile)
        ]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def _expect_alone(self, compiled: list[Any], ready: Ready) -> Counts | None:
        """The whole chunk in one go, where the model is a single plate that can."""
        expect = getattr(self.plates[0], "expect", None) if len(self.plates) == 1 else None
        if expect is None or ready.labels is not None:
            return None
        found = expect(ready.data[0], compiled[1], compiled[0][0], ready.weights)
        if found is None:
            return None
        tallies, sizes, likelihood = found
        mass = ready.n_rows if ready.weights is None else ready.weights.sum()
        return Counts({ROOT: sizes, **tallies}, float(mass), likelihood)

    def _expect_tile(
        self, params: StarParams, compiled: list[Any], ready: Ready, rows: slice, assign: Assign | None
    ) -> Counts:
        joint = self.score(ready, compiled, rows, _scratch(rows.stop - rows.start, self.groups))
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
        for plate, data in zip(self.plates, ready.data, strict=True):
            arrays |= plate.count(rows_of(data, rows), joint, [params.leaves[x.key] for x in plate.leaves])
        mass = float(len(joint) if weights is None else weights.sum())
        return Counts(arrays, mass, float(likelihood.sum()), notes)

    def impossible_rows(self, compiled: list[Any], ready: Ready) -> np.ndarray:
        """Rows, numbered within the chunk, to which every group that may hold them gives probability zero."""
        joint = self.score(ready, compiled, slice(0, ready.n_rows))
        if ready.labels is not None:
            _pin(joint, ready.labels)
        weighty = True if ready.weights is None else ready.weights > 0
        return np.flatnonzero(np.isneginf(joint).all(axis=1) & weighty)

    # -- counts -> parameters

    def stats(self, counts: Counts) -> dict[Key, Twofold]:
        """Each leaf's own (groups x features) statistics, in the order of the leaves."""
        places = {leaf.key: (plate, j) for plate in self.plates for j, leaf in enumerate(plate.leaves)}
        return {leaf.key: places[leaf.key][0].stats(counts.arrays, places[leaf.key][1]) for leaf in self.leaves}

    def unstacked(self, counts: Counts) -> Counts:
        """The same counts under the names of the leaves: what is saved, merged and shown."""
        arrays: dict[Hashable, Twofold] = {ROOT: counts.arrays[ROOT]}
        return Counts(arrays | self.stats(counts), counts.rows, counts.log_likelihood, counts.notes)

    def imagine(self, named: Counts, priors: Mapping[Key, Any], root: Any, how: How, root_how: How) -> Imagined:
        """The imagined counts of every prior, given the whole table's statistics (any grouping of them)."""
        hypers = leaf_hypers(self.leaves, priors, named.arrays)
        fixed = np.asarray(root, dtype=float) if isinstance(root, np.ndarray) else None
        setting = Setting(keys=("class",), levels=tuple(range(self.groups)))
        share = 0.0 if fixed is not None else root
        root_hyper = Categorical().hyper(share, named.arrays[ROOT].spread(0), setting)
        return Imagined(root_hyper, hypers, how, root_how, fixed)

    def estimate(self, counts: Counts, imagined: Imagined) -> StarParams:
        """Parameters from counts under the leaves' names; columns of one family and size at once."""
        stats = counts.arrays
        shares = imagined.fixed_shares
        if shares is None:
            root = counts.arrays[ROOT].spread(0)
            shares = Categorical().estimate(root, imagined.root, imagined.root_how)["probability"][0]
        leaves: dict[Key, Params] = {}
        for family, keys in self.stacks(stats, imagined.fixed):
            leaves |= estimate_stack(family, keys, stats, imagined)
        return StarParams(shares, leaves)

    def held(self, params: StarParams, imagined: Imagined) -> StarParams:
        """The same parameters with the fixed ones in their place."""
        shares = params.shares if imagined.fixed_shares is None else imagined.fixed_shares
        leaves = {key: part | imagined.fixed.get(key, {}) for key, part in params.leaves.items()}
        return StarParams(shares, leaves)

    def within(self, params: StarParams, imagined: Imagined) -> StarParams:
        """The nearest parameters that an estimate may be; columns that share a floor keep the same."""
        leaves = dict(params.leaves)
        for like in self._alike(params):
            family, keys = like[0].family, [leaf.key for leaf in like]
            if type(family).within is not Family.within:
                leaves |= within_together(family, keys, params, imagined)
        return StarParams(params.shares, leaves)

    def stacks(
        self, stats: Mapping[Any, Twofold], fixed: Mapping[Key, Params] | None = None
    ) -> Iterator[tuple[Family, list[Key]]]:
        """Leaves that can be estimated together: of one family and size, with the same parameters fixed."""
        groups: dict[Any, tuple[Family, list[Key]]] = {}
        for leaf in self.leaves:
            alone = leaf.key if leaf.family.alone else tuple((fixed or {}).get(leaf.key, ()))
            name = (leaf.family.stack_key(), stats[leaf.key].shape, alone)
            groups.setdefault(name, (leaf.family, []))[1].append(leaf.key)
        yield from groups.values()

    def log_prior(self, params: StarParams, imagined: Imagined) -> float:
        """The prior's part of the objective."""
        total = 0.0
        if imagined.fixed_shares is None:
            total += Categorical().log_prior({"probability": params.shares[None]}, imagined.root, imagined.root_how)
        for leaves in self._alike(params):
            total += log_prior_together([leaf.key for leaf in leaves], leaves[0].family, params, imagined)
        return total

    def _alike(self, params: StarParams) -> list[list[Node]]:
        """Columns of one family and size together, blocks alone."""
        alike: dict[Any, list[Node]] = {}
        for leaf in self.leaves:
            part = params.leaves[leaf.key]
            size = leaf.key if leaf.family.alone else tuple((name, part[name].shape) for name in leaf.family.chart)
            alike.setdefault((leaf.family, size or leaf.key), []).append(leaf)
        return list(alike.values())

    def completed(self, counts: Counts, params: StarParams) -> float:
        """Log-likelihood of complete rows that have these counts, in counting units and without `base`.

        With expected counts this is what an M-step raises: the lower bound is it plus the memberships' entropy.
        """
        total = float(xlogy(counts.arrays[ROOT].value, params.shares).sum())
        for leaves in self._alike(params):
            total += completed_together(leaves[0].family, [leaf.key for leaf in leaves], counts, params)
        return total

    def slope(self, counts: Counts, params: StarParams, imagined: Imagined) -> StarParams | None:
        """How steeply the objective rises with each parameter where these are the expected counts (Fisher's identity).

        None where a family does not know its own slope.
        """
        root, own = counts.arrays[ROOT].spread(0), {"probability": params.shares[None]}
        shares = Categorical().slope(root, own, imagined.root, imagined.root_how)
        assert shares is not None
        leaves: dict[Key, Params] = {}
        for like in self._alike(params):
            family, keys = like[0].family, [leaf.key for leaf in like]
            found = slope_together(family, keys, counts, params, imagined)
            if found is None:
                return None
            leaves |= found
        return StarParams(shares["probability"][0], leaves)

    def log_units(self, counts: Counts) -> float:
        """The part of the log-likelihood that only the columns' units decide."""
        return sum(leaf.family.log_unit(counts.arrays[leaf.key], leaf.setting) for leaf in self.leaves)

    def n_parameters(self, fixed_shares: bool = False, fixed: Mapping[Key, Params] | None = None) -> int:
        """How many parameters may vary freely, those that are fixed left out."""
        held = fixed or {}
        total = 0 if fixed_shares else self.groups - 1
        for leaf in self.leaves:
            total += leaf.family.free(leaf.setting, self.groups)
            if leaf.key in held:
                total -= leaf.family.held_free(held[leaf.key], leaf.setting, self.groups)
        return total - self._tied_columns({key for key, part in held.items() if "variance" in part})

    def _tied_columns(self, known: set[Key]) -> int:
        """Variances that columns share, counted once."""
        free = [x.family for x in self.leaves if x.key not in known]
        tied = [family for family in free if getattr(family, "tied", None) in ("columns", "both")]
        saved = 0
        for family in set(tied):
            each = self.groups if getattr(family, "tied", None) == "columns" else 1
            saved += (tied.count(family) - 1) * each
        return saved

    def leaf_scores(self, chunk: Chunk, params: StarParams) -> dict[Key, np.ndarray]:
        """(rows x groups) log-density of every leaf against its best group; -inf where a group cannot have made it."""
        public = self.public(params)
        scores = {x.key: x.family.score(self.column(x, chunk), public[x.key], x.setting) for x in self.leaves}
        return {key: _against_best(score) for key, score in scores.items()}

    def column(self, leaf: Node, chunk: Chunk) -> np.ndarray:
        """One leaf's own values in a chunk: codes, numbers, a block of numbers, or sparse counts."""
        if not leaf.columns or leaf.family.kind is Kind.TEXT:
            return chunk.bags[self.schema.places[leaf.key].slot if leaf.columns else 0]
        parts = [getattr(chunk, self.schema.places[c].store)[:, self.schema.places[c].slot] for c in leaf.columns]
        if isinstance(leaf.family, Joint):
            return leaf.family.combine(np.stack([part.astype(np.int32) for part in parts], axis=1))
        return np.stack(parts, axis=1) if leaf.family.block else parts[0]

    def leaf(self, key: Key) -> Node:
        for leaf in self.leaves:
            if leaf.key == key:
                return leaf
        raise DataError(f"the model has no column {key!r}. It has: {', '.join(str(x.key) for x in self.leaves)}.")

    def public(self, params: StarParams) -> dict[Key, Params]:
        """Every leaf's parameters in the user's units, groups first."""
        return {x.key: x.family.public(params.leaves[x.key], x.setting) for x in self.leaves}


def _against_best(score: np.ndarray) -> np.ndarray:
    score = np.where(score < IMPOSSIBLE, -np.inf, score)
    best = score.max(axis=1, keepdims=True)
    return score - np.where(np.isfinite(best), best, 0.0)


def _assigned(members: np.ndarray, assign: Assign, start: int) -> np.ndarray:
    """Logarithm of each row's posterior of the group it is put in."""
    posterior = members.copy()
    assign(members, start)
    with np.errstate(divide="ignore"):
        return np.log((posterior * members).sum(axis=1))


def _weighed(terms: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    return terms if weights is None else np.where(weights > 0, terms * weights, 0.0)


_own = local()


def _scratch(rows: int, groups: int) -> np.ndarray:
    """A thread's own (rows x groups) memory, the same each time: fresh memory is mapped page by page when written."""
    if getattr(_own, "room", np.empty(0)).size < rows * groups:
        _own.room = np.empty(rows * groups)
    return _own.room[: rows * groups].reshape(rows, groups)


def _label_counts(labels: np.ndarray, weights: np.ndarray | None, groups: int) -> np.ndarray:
    known = labels if labels.min(initial=0) >= 0 else labels[labels >= 0]
    if weights is not None:
        weights = weights if known is labels else weights[labels >= 0]
    return np.bincount(known, weights, minlength=groups).astype(np.float64)


def _pin(joint: np.ndarray, labels: np.ndarray) -> None:
    """Rows whose class is known belong to it alone."""
    known = np.flatnonzero(labels >= 0)
    own = joint[known, labels[known]]
    joint[known] = -np.inf
    joint[known, labels[known]] = own


def rows_of(data: Any, rows: slice) -> Any:
    """Some rows of what a plate keeps of a chunk."""
    if isinstance(data, tuple):
        return tuple(None if part is None else part[rows] for part in data)
    return data[rows]
