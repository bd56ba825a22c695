"""Unknown classes: a mixture, several starts, the best kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core import remedies
from softcount.core.counts import ROOT, Counts, Twofold
from softcount.errors import DataError, warn
from softcount.learn import initialise, record
from softcount.learn.em import run_em
from softcount.learn.prepare import Prepared, dead, prepare, scale_to_rows, sizes, spikes, starved, weight_lift
from softcount.learn.record import EMRun, Learned, Plan
from softcount.learn.search import SCOUTS, SMALL, Race, RaceSearch, Search, SearchResult
from softcount.models.align import align_counts
from softcount.models.base import ClassModel, Problem, with_weight
from softcount.models.batched import SideBySide
from softcount.models.declare import auto_priors, priors_of
from softcount.models.nodes import Imagined, Params
from softcount.priors import Distribution
from softcount.run.local import Runner
from softcount.table import Table

VERY_FEW_ROWS = 400
"""Distinct rows times tries per initialisation: a pass over so few costs the same for one try or ten."""
MOST_TRIES = 10
SMALL_PRODUCTS, TINY_PRODUCTS = 2 * SMALL, 1 << 15
"""Cells per set and pass up to which an initialisation is the best of three tries, or of five: in 30 searches for ten
classes of iris with one covariance the mean was -172.1 with five, -172.9 with three."""
MORE_SCOUTS = 5
A_FEW_ROWS = 2.0
"""Rows below which a group is degenerate, whatever its columns."""
A_SMALL_SHARE = 0.1
"""Of an equal share of the rows: smaller groups are blamed if a width that all groups share is too narrow."""
Maker = Callable[[ClassModel, Imagined], Params]
"""Makes initial parameters, in counting units."""


class Starts(Struct, frozen=True):
    """How many groups, and how to initialise."""

    groups: int
    init: Any = "k-means++"
    n_init: int = 10
    seed: Any = None


def fit_groups(table: Table, plan: Plan, starts: Starts, runner: Runner) -> Learned:
    """Fit a mixture, the best of several initialisations."""
    prepared = prepare(table, plan, runner)
    lift = weight_lift(prepared.chunks, plan.how)
    if lift == 1.0:
        return fit_prepared(prepared, plan, starts, runner)
    weigh = partial(with_weight, factor=lift)
    heavier = replace(prepared, chunks=prepared.chunks.made(weigh), ready=prepared.ready.made(weigh), kept={})
    found = fit_prepared(heavier, plan, starts, runner)
    counts, trace = found.counts * (1.0 / lift), [height / lift for height in found.trace]
    return replace(found, counts=counts, trace=trace, log_likelihood=counts.log_likelihood)


def fit_prepared(
    prepared: Prepared, plan: Plan, starts: Starts, runner: Runner, extra: Sequence[Maker] = (), rough: bool = False
) -> Learned:
    """Fit a mixture to a prepared table; `extra` makes further initial parameters.

    A `rough` fit ends where the race of its initialisations ended, without the last digits.
    """
    refuse_more_named(prepared.named, starts.groups, "classes")
    model = prepared.model(starts.groups)
    task = Task(prepared, plan, starts, runner, model, rough)
    found, imagined, notes = task.search(extra)
    best = found.best
    priors = plan.prior.values() if isinstance(plan.prior, Mapping) else [plan.prior]
    by_group = any(isinstance(one, Distribution) and one.by_group for one in priors)  # each keeps its place
    drawn = isinstance(starts.init, str) and prepared.named is None and not (plan.fixed or by_group)
    params, counts = best.params, model.nodes.unstacked(best.counts)
    if drawn:
        order = np.argsort(-sizes(counts), kind="stable")
        params, counts = model.regrouped(params, order), counts.map(lambda array: array[order])
    gone = dead(task.rows_in(sizes(counts))) & (np.arange(model.groups) >= len(prepared.named or ()))
    if gone.any() and not gone.all() and not plan.fixed and not found.interrupted:
        return _drop_empty(task, params, gone, found, notes)
    return as_learned(prepared, model, plan, imagined, found, params, counts, notes)


def as_learned(
    prepared: Prepared, model: Any, plan: Plan, imagined: Imagined,
    found: SearchResult, params: Params, counts: Counts, notes: Sequence[str],
) -> Learned:  # fmt: skip
    """Return the groups that a search found, with remarks on the search and on degenerate columns."""
    if plan.estimate == "predictive":
        params = model.nodes.estimate(model.nodes.stacked(counts), imagined)
    notes = [
        *prepared.notes, *notes,
        *record.explain_stop(replace(found.best, interrupted=found.interrupted), plan),
        *note_search(found, plan, all_rounded(model)),
        *record.note_degenerate(model, params, imagined),
    ]  # fmt: skip
    return Learned(
        model=model, estimates=params, counts=counts, imagined=imagined, notes=notes, prior=plan.prior,
        estimate=plan.estimate, missing=record.count_missing(model, counts, prepared.table),
        agreed=(found.agreed, found.tried), named=prepared.named, interrupted=found.interrupted,
        half_steps=plan.stop.half_steps, **record.em_facts(found.best, plan, counts),
    )  # fmt: skip


def refuse_more_named(named: Sequence[Any] | None, groups: int, what: str) -> None:
    if named is not None and len(named) > groups:
        raise DataError(
            f"{len(named)} {what} are known, but only {groups} are asked for. Ask for at least as many as are known."
        )


def all_rounded(model: Any) -> bool:
    """Return whether every column with a width is rounded."""
    return all(leaf.setting.rounded for leaf in model.leaves if leaf.family.facts.spread)


def _drop_empty(task: Task, params: Params, gone: np.ndarray, found: SearchResult, notes: list[str]) -> Learned:
    kept, starts = np.flatnonzero(~gone), task.starts
    fewer = replace(starts, groups=len(kept), init=lambda model, imagined: model.regrouped(params, kept), n_init=1)
    fitted = fit_prepared(task.prepared, task.plan, fewer, task.runner)
    note = f"asked for {starts.groups} classes, but no row is in {gone.sum()} of them: {len(kept)} are left."
    return replace(fitted, notes=[*fitted.notes, *notes, note], agreed=(found.agreed, found.tried))


def note_search(found: SearchResult, plan: Plan, rounded: bool) -> list[str]:
    """Remarks on the search; those that no number shows are also warnings.

    Densities of columns that are all `rounded` have a bound.
    """
    notes = []
    if found.interrupted:
        notes.append(f"interrupted: this is the best result of {_with_noun(found.tried, 'start')} so far.")
    if found.degenerate and plan.how == "ml" and not rounded:
        notes.append(
            "EM stopped at its smallest variance: a class shrinks to a few rows, so the likelihood has no maximum "
            "and its value here means nothing. Use fewer classes, or a prior "
            f"({remedies.estimate_mean()})."
        )
    for note in notes:
        warn(note)
    if found.spiked and not found.degenerate:
        notes.append(
            f"{found.spiked} of {found.tried} starts were discarded: they ended with a class that has too few rows, "
            f"or is narrower than the rounding of its columns."
        )
    return notes


def _with_noun(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' * (n != 1)}"


class Task(Struct, frozen=True, eq=False):
    """One fit: a number of groups, from these initialisations."""

    prepared: Prepared
    plan: Plan
    starts: Starts
    runner: Runner
    model: ClassModel
    rough: bool = False

    def rows_in(self, sizes: np.ndarray) -> np.ndarray:
        return scale_to_rows(sizes, self.prepared.n_rows)

    def search(self, extra: Sequence[Maker]) -> tuple[SearchResult, Imagined, list[str]]:
        """Run the search. Priors are estimated from the whole table, to which any memberships add up.

        An `"auto"` prior needs classes: fit with one prior row first, then take the prior with the best marginal
        likelihood.
        """
        model, plan = self.model, self.plan
        whole = self.prepared.whole  # as the counts of one group; the classes share its rows equally
        shares = Twofold.of(np.full(model.groups, whole.rows / model.groups))
        counts = replace(whole, arrays={**whole.arrays, ROOT: shares})
        if plan.log is not None:
            plan.log.check_rows(counts)
        priors = priors_of(plan.prior, model.leaves, "row")
        auto = [key for key, prior in priors.items() if isinstance(prior, str) and prior == "auto"]
        imagined = self.imagine(counts, priors | dict.fromkeys(auto, "row"))
        notes: list[str] = []
        found = self.best_of(imagined, extra, notes)
        if auto:
            priors |= auto_priors(priors, model.leaves, model.nodes.unstacked(found.best.counts))
            imagined = self.imagine(counts, priors)
            again = run_em(self.problem(imagined), found.best.params, plan.stop, plan.watching())
            degenerate = self.degenerate(imagined, again.params, again.counts)
            stopped = found.interrupted or again.interrupted
            found = replace(found, best=again, degenerate=degenerate, interrupted=stopped)
            notes += [
                f"column {key!r}: a prior of {priors[key]:.4g} has the highest marginal likelihood." for key in auto
            ]
        return found, imagined.using(plan.how), notes

    def best_of(self, imagined: Imagined, extra: Sequence[Maker], notes: list[str]) -> SearchResult:
        """The best of all initialisations: short runs first if there are several and EM has no special rules."""
        wanted = self.starts.n_init if isinstance(self.starts.init, str) else 1
        several = wanted + len(extra) > 1 and self.model.groups > 1
        racing = several and self.plan.stop.tol > 0 and self.plan.stop.assign == "soft"
        table, drawn = self.problem(imagined), isinstance(self.starts.init, str)
        rows = len(self.prepared.sketch.weights) if drawn else self.model.groups
        if rows < self.model.groups:
            distinct = _with_noun(rows, "distinct row")
            notes.append(f"asked for {self.model.groups} classes, but the table has only {distinct}.")
        together = racing and drawn and not self.plan.stop.half_steps
        many = self.prepared.side_by_side(self.model, imagined) if together else None
        found = None if many is None else self._together(imagined, table, many, extra)
        if found is not None:
            return found
        ground = self.ground(imagined, table) if racing else table
        if drawn:
            seeds = self._seeds(SCOUTS if racing and ground.work <= SMALL else 1)
            tries = [[partial(self._draw_params, imagined, seed) for seed in own] for own in seeds]
        else:
            tries = [[partial(self._separate_params, imagined, notes)]]
        tries += [[partial(make, self.model, imagined)] for make in extra]
        search = Search(table, ground, self.plan, partial(self.degenerate, imagined), partial(self.repair, imagined))
        if racing:
            return search.best_of(tries)
        children = np.random.SeedSequence(self._entropy).spawn(2 * len(tries))[len(tries) :]
        return search.each_of([own[0] for own in tries], list(map(np.random.default_rng, children)))

    def _together(
        self, imagined: Imagined, table: Problem, many: SideBySide, extra: Sequence[Maker]
    ) -> SearchResult | None:
        """The best of all initialisations, run side by side; None if that loses too many digits."""
        rows = self.prepared.sketch
        ground = replace(table, ready=[], exact=rows.whole)
        scouts = min(max(VERY_FEW_ROWS // rows.chunk.n_rows, 1), MOST_TRIES)
        one_each = scouts < SCOUTS and many.work <= SMALL_PRODUCTS
        if one_each:
            scouts = MORE_SCOUTS if many.work <= TINY_PRODUCTS else SCOUTS
        seeds = self._seeds(scouts)
        rngs = [np.random.default_rng(seed) for own in seeds for seed in own]
        # Columns that share their widths are near to what k-means takes for granted: if every start has only one try,
        # seeds are moved by it first. Of nine searches for ten such classes of handwritten digits, seven reached the
        # best optimum then, four without.
        init = self.starts.init
        alike = [leaf.family.facts.shared_by_columns for leaf in self.model.leaves if leaf.family.facts.spread]
        moved = init == "k-means++" and any(alike) and all(alike) and len(rngs) == self.starts.n_init
        members = initialise.draw_memberships(rows, self.model.groups, "k-means" if moved else init, rngs)
        params = many.estimate(many.counted(members))
        owners = np.repeat(np.arange(len(seeds)), [len(own) for own in seeds])
        if extra:
            params = many.joined(params, many.together([make(self.model, imagined) for make in extra]))
            owners = np.append(owners, len(seeds) + np.arange(len(extra)))
        judge, repair = partial(self.degenerate, imagined), partial(self.repair, imagined)
        bad, repair_sets = partial(self.degenerate_sets, imagined), partial(self.repair_sets, imagined, many)
        search = RaceSearch(
            table, ground, self.plan, judge, repair,
            degenerate_sets=bad, repair_sets=repair_sets, rough=self.rough, one_each=one_each,
        )  # fmt: skip
        return search.best(many, params, owners)

    def degenerate_sets(self, imagined: Imagined, race: Race) -> np.ndarray:
        """Which sets of parameters have a degenerate group.

        If all of them are as narrow as rounding allows, the table is so: pixels that are always dark.
        """
        params, stats, rows = race.here, race.statistics, self.rows_in(race.statistics[ROOT][0, 0].T)
        bad = (race.many.spikes(params, stats) | starved(self.model, rows, imagined.how) | dead(rows)).any(axis=0)
        if not bad.all():
            return np.asarray(bad)
        alone = rows < A_FEW_ROWS if all_rounded(self.model) else starved(self.model, rows, imagined.how) | dead(rows)
        return np.asarray((race.many.spikes(params, stats, rounded=False) | alone).any(axis=0))

    def imagine(self, counts: Counts, priors: Mapping[Any, Any]) -> Imagined:
        """Prior parameters from the table's counts; kept for other numbers of groups."""
        plain = {key: prior for key, prior in priors.items() if isinstance(prior, (int, float, str))}
        alike = {key: prior for key, prior in plain.items() if prior not in ("auto", "bdeu")}  # which know the groups
        known = self.prepared.kept.setdefault("hypers", {})
        hypers = {key: known[key, prior] for key, prior in alike.items() if (key, prior) in known}
        imagined = initialise.imagine_groups(self.model, counts, priors, self.plan, hypers)
        known |= {(key, prior): imagined.hypers[key] for key, prior in alike.items()}
        return imagined

    def problem(self, imagined: Imagined) -> Problem:
        return Problem(self.model, imagined, self.prepared.ready, self.runner, log=self.plan.log)

    def ground(self, imagined: Imagined, table: Problem) -> Problem:
        """The rows for short runs: the sketch, if that saves half of the rows."""
        rows = self.prepared.sketch
        if 2 * rows.chunk.n_rows > table.n_rows:
            return table
        ready = [self.model.prepare(rows.as_heavy_as_the_table())]
        return Problem(self.model, imagined, ready, self.runner, rows.whole)

    def degenerate(self, imagined: Imagined, params: Params, counts: Counts) -> bool:
        return bool(self.bad(imagined, params, counts).any())

    def bad(self, imagined: Imagined, params: Params, counts: Counts) -> np.ndarray:
        """Which groups are degenerate: spikes, too few rows for their widths, or no rows."""
        rows = self.rows_in(sizes(counts))
        hungry = starved(self.model, rows, imagined.how)
        return np.asarray(spikes(self.model, params, imagined, counts) | hungry | dead(rows))

    def repair(self, imagined: Imagined, reached: EMRun) -> Params:
        """Initial parameters in which other groups take the rows of degenerate ones, which get half of the largest."""
        model, rows = self.model, self.prepared.sketch
        ready = model.prepare(rows.chunk, base=False)
        joint = model.score(ready, model.compile(reached.params), slice(0, ready.n_rows))
        return initialise.start_params(model, imagined, rows, self._repair_members(imagined, reached, joint, 0))

    def repair_sets(self, imagined: Imagined, many: SideBySide, ends: Sequence[EMRun]) -> Params:
        joint = many.scores(many.together([reached.params for reached in ends]))
        each = [self._repair_members(imagined, reached, joint[:, place].T, place) for place, reached in enumerate(ends)]
        return many.estimate(many.counted(np.stack(each).transpose(2, 0, 1)))

    def _repair_members(self, imagined: Imagined, reached: EMRun, joint: np.ndarray, place: int) -> np.ndarray:
        bad = self.bad(imagined, reached.params, reached.counts)
        if bad.all():  # a width that groups share: the small ones made it narrow
            rows = sizes(reached.counts)
            bad = rows <= max(rows.min(), A_SMALL_SHARE * rows.mean())
        rng = np.random.default_rng((len(reached.trace), place))
        return initialise.repair_memberships(self.prepared.sketch, joint, bad, rng)

    @property
    def _entropy(self) -> Any:
        return initialise.entropy(self.starts.seed, self.plan.log)

    def _seeds(self, scouts: int) -> list[list[np.random.SeedSequence]]:
        """For every initialisation, a seed for each of its tries."""
        children = np.random.SeedSequence(self._entropy).spawn(self.starts.n_init if self.model.groups > 1 else 1)
        return [child.spawn(scouts) if scouts > 1 else [child] for child in children]

    def _draw_params(self, imagined: Imagined, seed: np.random.SeedSequence) -> Params:
        rows = self.prepared.sketch
        members = initialise.draw_memberships(rows, self.model.groups, self.starts.init, [np.random.default_rng(seed)])
        return initialise.start_params(self.model, imagined, rows, members[:, 0].T)

    def _separate_params(self, imagined: Imagined, notes: list[str]) -> Params:
        """The user's initial parameters; groups that are copies of others are changed slightly."""
        params = self._given_params(imagined)
        same = initialise.find_twins(self.model, params)
        if not same.any() or self.prepared.named is not None or self.plan.stop.tol == 0:
            return params
        which = ", ".join(str(g) for g in np.flatnonzero(same))
        notes.append(
            f"init: classes {which} are initial copies of other classes, which EM cannot separate; they were "
            f"changed slightly."
        )
        rng = np.random.default_rng(self._entropy or 0)
        moved = {leaf.key: initialise.perturb(leaf.family, params[leaf.key], same, rng) for leaf in self.model.leaves}
        return self.model.nodes.params({ROOT: params[ROOT], **moved})

    def _given_params(self, imagined: Imagined) -> Params:
        model, init = self.model, self.starts.init
        if isinstance(init, Learned):
            if not {leaf.key for leaf in init.model.leaves} & {leaf.key for leaf in model.leaves}:
                raise DataError("init: the initial model has no column or block of columns in common with this one.")
            return model.nodes.estimate(model.nodes.stacked(align_counts(init, model, None)), imagined)
        if isinstance(init, Mapping):
            return initialise.given_params(model, init)
        if callable(init):
            params: Params = init(model, imagined)
            return params
        ready = self.prepared.ready.here
        members = initialise.check_memberships(init, ready, model.groups)
        return model.nodes.estimate(initialise.members_counts(model, ready, members), imagined)
