"""Unknown classes: a mixture, several starts, the best kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from softcount.counts import ROOT, Counts
from softcount.errors import DataError, DataWarning
from softcount.fitted.fitted_model import Fitted
from softcount.learn.degenerate import dead, spikes, starved, with_floors
from softcount.learn.em import Climb, climb
from softcount.learn.fixed import holding
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
from softcount.learn.search import SCOUTS, Found, Ground, Make, Search
from softcount.learn.sketch import Sketch, sketch
from softcount.learn.start import (
    checked_memberships,
    drawn_memberships,
    entropy,
    given_params,
    members_params,
    mended_memberships,
    nudged,
    start_params,
    taken,
    twins,
)
from softcount.models.align import Older, aligned
from softcount.models.blanks import with_blanks
from softcount.models.declared import nodes_of, priors_of
from softcount.models.imagine import best_evidence
from softcount.models.parts import refuse_scores
from softcount.models.plates import Kernels
from softcount.models.settle import Settling, remapped, settling
from softcount.models.star import Imagined, Ready, Star, StarParams
from softcount.run.threads import Threads, total
from softcount.table import Chunk, Table
from softcount.table.schema import Kind, Schema

NOT_USED = "y names the class of every row, so it was not used: NaiveBayes learns from known classes."
Maker = Callable[[Star, Imagined], StarParams]
"""Makes parameters to start from, in counting units."""


@dataclass(frozen=True, slots=True)
class Starts:
    """How many groups, and where to start from."""

    groups: int
    init: Any = "k-means++"
    n_init: int = 10
    seed: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A table read, settled and encoded once, for any number of groups."""

    table: Table
    settled: Settling
    plan: Plan
    chunks: list[Chunk]
    one: Star
    ready: list[Ready]
    named: list[Any] | None
    _kept: dict[str, Any] = field(default_factory=dict, repr=False)

    def star(self, groups: int) -> Star:
        """The model with so many groups; the ready chunks are for all of them."""
        leaves = nodes_of(self.settled.schema, self.plan.declared, groups, self.table.bag_width, MIXTURE_FLOOR)
        blanks = {leaf.key: leaf.setting.blank for leaf in self.one.leaves}
        same = tuple(replace(x, setting=replace(x.setting, blank=blanks[x.key])) for x in leaves)
        return with_floors(replace(self.one, leaves=same, groups=groups), self.sketch)

    @property
    def sketch(self) -> Sketch:
        """The table's distinct rows, or a sample of them; made when first asked for."""
        if "sketch" not in self._kept:
            self._kept["sketch"] = sketch(self.chunks, self._logged, marked=self.table.bag_width is None)
        found: Sketch = self._kept["sketch"]
        return found

    @property
    def _logged(self) -> list[int]:
        """Places of the columns whose logarithms are modelled."""
        logs = {leaf.key for leaf in self.one.leaves if leaf.family.kind is Kind.POSITIVE}
        return [place for place, spec in enumerate(self.settled.schema.stored("reals")) if spec.key in logs]

    @property
    def notes(self) -> list[str]:
        return [*self.table.notes, *self.settled.notes]


def prepare(table: Table, plan: Plan, threads: Threads) -> Prepared:
    """The table read, settled and encoded: what fits with any number of groups share."""
    if isinstance(plan.prior, Older):
        raise DataError(
            "prior: an older model's counts are for known classes (NaiveBayes): a mixture's groups have no names. "
            "To start from an older mixture give it as init."
        )
    return retyping(table, lambda t: _prepare(t, plan, threads), threads, known_classes=False)


def _prepare(table: Table, plan: Plan, threads: Threads) -> Prepared:
    raw = list(threads.map(lambda task: task(), table.tasks()))
    if not raw:
        raise DataError("the table has no rows.")
    named = _known_names(table, plan, raw)
    settled = settling(table, plan.declared, named)
    if table.sides.target is not None and table.unknown_labels == 0:
        raw = [replace(chunk, labels=None) for chunk in raw]
        settled = replace(settled, classes=[], notes=[*settled.notes, NOT_USED])
    chunks = [remapped(chunk, settled) for chunk in raw]
    settled = replace(settled, notes=[*settled.notes, *empty_notes(settled.schema, chunks)])
    leaves = nodes_of(settled.schema, plan.declared, 1, table.bag_width, MIXTURE_FLOOR)
    star = Star(settled.schema, leaves, 1, Kernels(20 * cells_of(table)), plan.unlabelled_weight)
    refuse_scores(leaves, "is not for classes to be found")
    star = with_blanks(star, chunks)
    ready = list(threads.map(star.prepare, chunks))
    return Prepared(table, settled, plan, chunks, star, ready, named or settled.classes or None)


def empty_notes(schema: Schema, chunks: Sequence[Chunk]) -> list[str]:
    """Columns of numbers without a number: somebody said what they are, so they are kept."""
    empty = [
        spec.key
        for place, spec in enumerate(schema.stored("reals"))
        if all(np.isnan(chunk.reals[:, place]).all() for chunk in chunks)
    ]
    return [f"column {key!r} has no values: what its parameters say means nothing. Leave it out." for key in empty]


def _known_names(table: Table, plan: Plan, raw: Sequence[Chunk]) -> list[Any] | None:
    """Names of classes that some rows are known to be in, where their codes came in order; None where read by name."""
    if plan.named is not None:
        return list(plan.named)
    if raw[0].labels is None or table.sides.target is not None:
        return None
    return list(range(1 + max(int(chunk.labels.max(initial=-1)) for chunk in raw if chunk.labels is not None)))


def fit_groups(table: Table, plan: Plan, starts: Starts, threads: Threads) -> Fitted:
    """A mixture: several starts, the best kept."""
    return fit_prepared(prepare(table, plan, threads), plan, starts, threads)


def fit_prepared(
    prepared: Prepared, plan: Plan, starts: Starts, threads: Threads, extra: Sequence[Maker] = ()
) -> Fitted:
    """A mixture of a table that has been read already; `extra` makes starts beside those that `starts` asks for."""
    if prepared.named is not None and len(prepared.named) > starts.groups:
        raise DataError(
            f"{len(prepared.named)} classes are known, but only {starts.groups} are asked for. "
            "Ask for at least as many as are known."
        )
    star = prepared.star(starts.groups)
    task = Task(prepared, plan, starts, threads, star)
    found, imagined, notes = task.searched(extra)
    best = found.best
    drawn = isinstance(starts.init, str) and prepared.named is None and not plan.fixed
    params, counts = _largest_first(best) if drawn else (best.params, best.counts)
    gone = dead(counts) & (np.arange(star.groups) >= len(prepared.named or ()))
    if gone.any() and not gone.all() and not plan.fixed and not found.interrupted:
        return _without(prepared, plan, starts, threads, params, gone, found, notes)
    if plan.estimate == "predictive":
        params = star.estimate(counts, imagined)
    way = replace(best, interrupted=found.interrupted)
    notes += [*stopped_notes(way, plan), *search_notes(found, plan), *degenerate_notes(star, params, imagined)]
    return Fitted(
        star=star, estimates=params, counts=counts, imagined=imagined, classes=None, target=None,
        notes=[*prepared.notes, *notes], prior=plan.prior, class_prior=None, estimate=plan.estimate,
        missing=absent(star, counts, prepared.table), agreed=(found.agreed, found.tried), named=prepared.named,
        interrupted=found.interrupted, half_steps=plan.stop.half_steps, **way_facts(best, plan, counts),
    )  # fmt: skip


def _without(
    prepared: Prepared, plan: Plan, starts: Starts, threads: Threads, params: StarParams, gone: np.ndarray,
    found: Found, notes: list[str],
) -> Fitted:  # fmt: skip
    """The fit without the groups that no row is in."""
    kept = np.flatnonzero(~gone)
    fewer = replace(starts, groups=len(kept), init=lambda star, imagined: taken(params, kept), n_init=1)
    fitted = fit_prepared(prepared, plan, fewer, threads)
    said = f"asked for {starts.groups} classes, but no row is in {gone.sum()} of them: {len(kept)} are left."
    return replace(fitted, notes=[*fitted.notes, *notes, said], agreed=(found.agreed, found.tried))


def search_notes(found: Found, plan: Plan) -> list[str]:
    """What the search for the best start met; what no number shows is a warning as well."""
    notes = []
    if found.interrupted:
        notes.append(f"interrupted: this is the best of what {_counted(found.tried, 'start')} had come to.")
    if _unbounded(found, plan):
        notes.append(
            "EM stopped at a floor: a class narrows down on a few rows for ever, so the likelihood has no maximum and "
            "its value here means nothing. Ask for fewer classes, or let a prior imagine rows (estimate='mean')."
        )
    for note in notes:
        warnings.warn(note, DataWarning, stacklevel=2)
    if found.spiked and not found.spoilt:
        notes.append(
            f"{found.spiked} of {found.tried} starts ended in a class narrower than its columns can tell apart, "
            "or with too few rows, and were set aside."
        )
    return notes


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' * (n != 1)}"


def _unbounded(found: Found, plan: Plan) -> bool:
    return found.spoilt and plan.how == "ml"


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What one fit is to find: so many groups in this table, from these starts."""

    prepared: Prepared
    plan: Plan
    starts: Starts
    threads: Threads
    star: Star

    def searched(self, extra: Sequence[Maker]) -> tuple[Found, Imagined, list[str]]:
        """What the starts lead to. Priors look at the whole table, which any memberships add up to.

        An `"auto"` prior needs classes to choose by: one imagined row first, then the best evidence in what that found.
        """
        star, plan = self.star, self.plan
        counts = _shared_counts(star, self.prepared.ready, self.threads)
        priors = priors_of(plan.prior, star.leaves, "row")
        auto = [key for key, prior in priors.items() if isinstance(prior, str) and prior == "auto"]
        imagined = _imagine_groups(star, counts, priors | dict.fromkeys(auto, "row"), plan)
        notes: list[str] = []
        found = self.best_of(imagined, extra, notes)
        if auto:
            arrays = found.best.counts.arrays
            priors |= {leaf.key: best_evidence(leaf, arrays[leaf.key]) for leaf in star.leaves if leaf.key in auto}
            imagined = _imagine_groups(star, counts, priors, plan)
            again = self._climbed(imagined, found.best.params, 1, 1)
            spoilt, stopped = self.spoilt(imagined, again.params, again.counts), found.interrupted or again.interrupted
            found = replace(found, best=again, spoilt=spoilt, interrupted=stopped)
            notes += [f"column {key!r}: a prior of {priors[key]:.4g} has the best evidence." for key in auto]
        return found, replace_how(imagined, plan.how), notes

    def best_of(self, imagined: Imagined, extra: Sequence[Maker], notes: list[str]) -> Found:
        """The best of all starts: short runs first where there are several, and nobody told EM how to go."""
        asked = self.starts.n_init if isinstance(self.starts.init, str) else 1
        several = asked + len(extra) > 1 and self.star.groups > 1
        racing = several and self.plan.stop.tol > 0 and self.plan.stop.assign == "soft"
        table = Ground(self.star, imagined, self.prepared.ready, self.threads)
        ground = self.ground(imagined) if racing else table
        tries = self._tries(imagined, SCOUTS if racing and ground.small else 1, notes)
        tries += [[partial(make, self.star, imagined)] for make in extra]
        search = Search(table, ground, self.plan, partial(self.spoilt, imagined), partial(self.mended, imagined))
        return search.best_of(tries) if racing else search.each_of(tries, self._rngs(len(tries)))

    def ground(self, imagined: Imagined) -> Ground:
        """Where short runs go: on the sketch if that saves half of the rows."""
        prepared, rows = self.prepared, self.prepared.sketch
        if 2 * rows.chunk.n_rows > sum(part.n_rows for part in prepared.ready):
            return Ground(self.star, imagined, prepared.ready, self.threads)
        ready = [self.star.prepare(rows.as_heavy_as_the_table())]
        return Ground(self.star, imagined, ready, self.threads, rows.whole)

    def spoilt(self, imagined: Imagined, params: StarParams, counts: Counts) -> bool:
        return bool(self.bad(imagined, params, counts).any())

    def bad(self, imagined: Imagined, params: StarParams, counts: Counts) -> np.ndarray:
        """Which groups are none: spikes, groups with too few rows for their widths, groups with no rows."""
        n_rows = sum(part.n_rows for part in self.prepared.ready)
        hungry = starved(self.star, counts, imagined.how, n_rows)
        return spikes(self.star, params, imagined, counts) | hungry | dead(counts)

    def mended(self, imagined: Imagined, way: Climb) -> StarParams:
        """A start in which other groups take the rows of bad ones, which get half of the largest instead."""
        rng = np.random.default_rng(len(way.trace))
        bad = self.bad(imagined, way.params, way.counts)
        members = mended_memberships(self.star, self.prepared.sketch, way.params, bad, rng)
        return start_params(self.star, imagined, self.prepared.sketch, members)

    def _climbed(self, imagined: Imagined, params: StarParams, number: int, of: int) -> Climb:
        watch = self.plan.watching(number, of)
        return climb(self.star, imagined, self.prepared.ready, params, self.threads, self.plan.stop, watch)

    def _rngs(self, count: int) -> list[np.random.Generator]:
        """For assignments that are drawn: one for each start."""
        children = np.random.SeedSequence(entropy(self.starts.seed)).spawn(2 * count)[count:]
        return [np.random.default_rng(child) for child in children]

    def _tries(self, imagined: Imagined, scouts: int, notes: list[str]) -> list[list[Make]]:
        """The starts that were asked for, each as one or more tries."""
        if not isinstance(self.starts.init, str):
            return [[partial(self._given, imagined, notes)]]
        rows, groups = self.prepared.sketch, self.star.groups
        if len(rows.weights) < groups:
            distinct = _counted(len(rows.weights), "distinct row")
            notes.append(f"asked for {groups} classes, but the table has only {distinct}.")
        children = np.random.SeedSequence(entropy(self.starts.seed)).spawn(self.starts.n_init if groups > 1 else 1)
        seeds = [child.spawn(scouts) if scouts > 1 else [child] for child in children]
        return [[partial(self._drawn, imagined, seed) for seed in own] for own in seeds]

    def _drawn(self, imagined: Imagined, seed: np.random.SeedSequence) -> StarParams:
        rows = self.prepared.sketch
        members = drawn_memberships(rows, self.star.groups, self.starts.init, np.random.default_rng(seed))
        return start_params(self.star, imagined, rows, members)

    def _given(self, imagined: Imagined, notes: list[str]) -> StarParams:
        """The parameters that were given, or that what was given implies; groups that are alike nudged apart."""
        params = self._said(imagined)
        same = twins(params)
        if not same.any() or self.prepared.named is not None or self.plan.stop.tol == 0:
            return params
        which = ", ".join(str(g) for g in np.flatnonzero(same))
        notes.append(
            f"init: classes {which} start as copies of others, which EM would never tell apart; they were nudged."
        )
        return nudged(params, same, np.random.default_rng(entropy(self.starts.seed) or 0))

    def _said(self, imagined: Imagined) -> StarParams:
        star, init, ready = self.star, self.starts.init, self.prepared.ready
        if isinstance(init, Fitted):
            if not {leaf.key for leaf in init.star.leaves} & {leaf.key for leaf in star.leaves}:
                raise DataError("init: the model to start from has no column or block of columns that this one has.")
            return star.estimate(aligned(init, star, None), imagined)
        if isinstance(init, Mapping):
            return given_params(star, init)
        if callable(init):
            params: StarParams = init(star, imagined)
            return params
        return members_params(star, imagined, ready, checked_memberships(init, ready, star.groups))


def _imagine_groups(star: Star, counts: Counts, priors: Mapping[Any, Any], plan: Plan) -> Imagined:
    root = plan.prior if isinstance(plan.prior, (int, float, str)) and plan.prior != "auto" else "row"
    return holding(star, star.imagine(counts, priors, root, plug(plan.how), plug(plan.how)), plan.fixed)


def _shared_counts(star: Star, ready: Sequence[Ready], threads: Threads) -> Counts:
    """The whole table's counts, every row shared equally between the groups."""

    def work(part: Ready) -> Counts:
        return star.tally_members(part, np.full((part.n_rows, star.groups), 1.0 / star.groups))

    return star.unstacked(or_empty(total(threads, work, ready)))


def _largest_first(way: Climb) -> tuple[StarParams, Counts]:
    """Groups in the order of their size."""
    order = np.argsort(-way.counts[ROOT], kind="stable")
    leaves = {key: {k: v[order] for k, v in part.items()} for key, part in way.params.leaves.items()}
    return StarParams(way.params.shares[order], leaves), way.counts.map(lambda array: array[order])
