"""Unknown classes: a mixture, several starts, the best kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.counts import ROOT, Counts
from softcount.errors import DataError
from softcount.learn.em import Climb, climb
from softcount.learn.plan import (
    MIXTURE_FLOOR,
    Plan,
    absent,
    cells_of,
    degenerate_notes,
    or_empty,
    plug,
    replace_how,
    retyping,
    stopped_notes,
    way_facts,
)
from softcount.learn.start import drawn_memberships, given_params, members_params, sketch, start_params
from softcount.models.align import Older, aligned
from softcount.models.blanks import with_blanks
from softcount.models.fitted import Fitted
from softcount.models.imagine import best_evidence
from softcount.models.leaves import leaves_of, priors_of
from softcount.models.plates import Kernels
from softcount.models.settle import remapped, settling
from softcount.models.star import Imagined, Ready, Star, StarParams
from softcount.run.threads import Threads, total
from softcount.table import Chunk, Table


@dataclass(frozen=True, slots=True)
class Starts:
    """How many groups, and where to start from."""

    groups: int
    init: Any = "k-means++"
    n_init: int = 10
    seed: Any = None


def fit_groups(table: Table, plan: Plan, starts: Starts, threads: Threads) -> Fitted:
    """A mixture: several starts, the best kept."""
    if isinstance(plan.prior, Older):
        raise DataError(
            "prior: an older model's counts are for known classes (NaiveBayes): a mixture's groups have no names. "
            "To start from an older mixture give it as init."
        )
    return retyping(table, lambda t: _fit_groups(t, plan, starts, threads))


def _fit_groups(table: Table, plan: Plan, starts: Starts, threads: Threads) -> Fitted:
    fast = Kernels(20 * cells_of(table))
    raw = list(threads.map(lambda task: task(), table.tasks()))
    if not raw:
        raise DataError("the table has no rows.")
    settled = settling(table, plan.wishes, None)
    chunks = [remapped(chunk, settled) for chunk in raw]
    leaves = leaves_of(settled.schema, plan.wishes, starts.groups, table.bag_width, MIXTURE_FLOOR)
    star = Star(settled.schema, leaves, starts.groups, fast, plan.unlabelled_weight)
    star = with_blanks(star, chunks)
    ready = list(threads.map(star.prepare, chunks))
    ways, imagined, notes = _climbs(star, chunks, ready, plan, starts, threads)
    best = max(ways, key=lambda way: way.objective)
    named = isinstance(starts.init, (Mapping, np.ndarray, Fitted))
    params, counts = (best.params, best.counts) if named else _largest_first(best)
    if plan.estimate == "predictive":
        params = star.estimate(counts, imagined)
    notes = [
        *table.notes,
        *settled.notes,
        *notes,
        *stopped_notes(best, plan),
        *degenerate_notes(star, params, imagined),
    ]
    return Fitted(
        star=star, estimates=params, counts=counts, imagined=imagined, classes=None, target=None, notes=notes,
        prior=plan.prior, class_prior=None, estimate=plan.estimate, missing=absent(star, counts, table),
        agreed=(sum(_same(way, best) for way in ways), len(ways)), **way_facts(best, plan, counts),
    )  # fmt: skip


def _climbs(
    star: Star, chunks: list[Chunk], ready: list[Ready], plan: Plan, starts: Starts, threads: Threads
) -> tuple[list[Climb], Imagined, list[str]]:
    """Every start's climb. Priors look at the whole table, which any memberships add up to.

    An `"auto"` prior needs classes to choose by: one imagined row first, then the best evidence in what that found.
    """
    counts = _shared_counts(star, ready, threads)
    priors = priors_of(plan.prior, star.leaves, "row")
    auto = [key for key, prior in priors.items() if isinstance(prior, str) and prior == "auto"]
    imagined = _imagine_groups(star, counts, priors | dict.fromkeys(auto, "row"), plan)
    notes: list[str] = []
    ways = []
    for params in _start_params(star, imagined, chunks, ready, starts, notes):
        ways.append(climb(star, imagined, ready, params, threads, plan.stop, plan.watch))
    if auto:
        best = max(ways, key=lambda way: way.objective)
        found = best.counts.arrays
        priors |= {leaf.key: best_evidence(leaf, found[leaf.key]) for leaf in star.leaves if leaf.key in auto}
        imagined = _imagine_groups(star, counts, priors, plan)
        ways = [climb(star, imagined, ready, best.params, threads, plan.stop, plan.watch)]
        notes += [f"column {key!r}: a prior of {priors[key]:.4g} has the best evidence." for key in auto]
    return ways, replace_how(imagined, plan.how), notes


def _imagine_groups(star: Star, counts: Counts, priors: Mapping[Any, Any], plan: Plan) -> Imagined:
    root = plan.prior if isinstance(plan.prior, (int, float, str)) and plan.prior != "auto" else "row"
    return star.imagine(counts, priors, root, plug(plan.how), plug(plan.how))


def _shared_counts(star: Star, ready: list[Ready], threads: Threads) -> Counts:
    """The whole table's counts, every row shared equally between the groups."""

    def work(part: Ready) -> Counts:
        return star.tally_members(part, np.full((part.n_rows, star.groups), 1.0 / star.groups))

    return star.unstacked(or_empty(total(threads, work, ready)))


def _start_params(
    star: Star, imagined: Imagined, chunks: list[Chunk], ready: list[Ready], starts: Starts, notes: list[str]
) -> Any:
    init = starts.init
    if isinstance(init, Fitted):
        yield star.estimate(aligned(init, star, None), imagined)
    elif isinstance(init, Mapping):
        yield given_params(star, init)
    elif isinstance(init, np.ndarray):
        yield members_params(star, imagined, ready, _checked_memberships(init, ready, star.groups))
    else:
        yield from _drawn_params(star, imagined, chunks, ready, starts, notes)


def _drawn_params(
    star: Star, imagined: Imagined, chunks: list[Chunk], ready: list[Ready], starts: Starts, notes: list[str]
) -> Any:
    rows = sketch(chunks)
    if len(rows.weights) < star.groups:
        notes.append(f"asked for {star.groups} classes, but the table has only {len(rows.weights)} distinct rows.")
    for child in np.random.SeedSequence(_entropy(starts.seed)).spawn(starts.n_init if star.groups > 1 else 1):
        members = drawn_memberships(rows, star.groups, starts.init, np.random.default_rng(child))
        yield start_params(star, imagined, rows, members)


def _entropy(seed: Any) -> Any:
    if isinstance(seed, np.random.RandomState):
        return int(seed.randint(0, 2**31 - 1))
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**62))
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise DataError(f"random_state must be None, a whole number of at least 0, or a generator, not {seed!r}.")
    return int(seed)


def _checked_memberships(init: np.ndarray, ready: list[Ready], groups: int) -> np.ndarray:
    rows = sum(part.n_rows for part in ready)
    if init.shape != (rows, groups):
        raise DataError(f"init: memberships must be {rows} rows x {groups} groups, not {init.shape}.")
    if not np.isfinite(init).all() or (init < 0).any() or np.abs(init.sum(axis=1) - 1).max() > 1e-6:
        raise DataError("init: memberships must be 0 or more and sum to one in every row.")
    return np.asarray(init, dtype=float)


def _largest_first(way: Climb) -> tuple[StarParams, Counts]:
    """Groups in the order of their size."""
    order = np.argsort(-way.counts[ROOT], kind="stable")
    leaves = {key: {k: v[order] for k, v in part.items()} for key, part in way.params.leaves.items()}
    return StarParams(way.params.shares[order], leaves), way.counts.map(lambda array: array[order])


def _same(way: Climb, best: Climb) -> bool:
    return best.objective - way.objective <= 1e-3 + 1e-7 * abs(best.objective)
