"""Choice of the number of classes: candidates, their order, and the criterion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core import remedies
from softcount.core.counts import ROOT, concatenate
from softcount.errors import DataError
from softcount.learn import correlated_columns, record
from softcount.learn.em import run_em
from softcount.learn.how_many import LEAST_ROWS, MOST_GROUPS, SMALL_TOL, EMSearch
from softcount.learn.initialise import Sketch, assign_nearest, draw_memberships, seeds, start_params
from softcount.learn.mixture import Maker, Starts, fit_prepared
from softcount.learn.prepare import Prepared, prepare, spikes, starved
from softcount.learn.prepare import sizes as sizes_of
from softcount.learn.record import Learned, Plan, Trial
from softcount.learn.search import Race, best_of_each
from softcount.models.base import ClassModel, Problem, expected
from softcount.models.batched import SideBySide
from softcount.models.nodes import Imagined
from softcount.run.local import HeldRows, Runner
from softcount.table import Chunk, Table
from softcount.table.chunk import Repeats, Split
from softcount.table.column_summary import MOST_COMPARED, deal_repeats

TRIES = 2
"""Pairs of seeds from which each class is split."""
SPLIT_STOP = record.Stop(max_iter=8, tol=1e-4)
LEAST_SHARE = 1e-3
"""Rows lighter than this, relative to the heaviest row of a class, are ignored when the class is split."""


class Halves(Struct, frozen=True):
    """A class split in two: its gain, and the share of each sketched row that belongs to the second half."""

    group: int
    gain: float
    shares: np.ndarray


def split_classes(prepared: Prepared, fitted: Learned, groups: int, runner: Runner, seed: int) -> list[Maker]:
    """Return initial parameters with more classes, by splitting the classes that gain most.

    For one additional class, the second best split is returned as well.
    """
    ready = fitted.model.prepare(prepared.sketch.chunk, base=False)
    members = fitted.model.memberships(ready, fitted.model.compile(fitted.estimates))
    hypers, how = fitted.imagined.hypers, fitted.imagined.how
    one, two = (Imagined({**hypers, ROOT: {"alpha": np.full(n, 1.0 / n)}}, how) for n in (1, 2))
    pair = Pair(prepared.model(1), prepared.model(2), (one, two), runner)
    halve = split_together if prepared.races else split_each
    splits = sorted(halve(prepared, pair, members, seed), key=lambda split: -split.gain)
    more = groups - fitted.n_groups
    if len(splits) < more:
        return []
    choices = [splits[:more], *([splits[1:2]] if more == 1 and len(splits) > 1 else [])]
    makers: list[Maker] = []
    for chosen in choices:
        halves = np.stack([members[:, split.group] * split.shares for split in chosen], axis=1)
        kept = members.copy()
        for place, split in enumerate(chosen):
            kept[:, split.group] -= halves[:, place]
        divided = np.maximum(np.concatenate([kept, halves], axis=1), 0.0)
        # As in a random initialisation, add a little of the whole table to every class: no category has probability
        # zero.
        loose = 0.99 * divided + 0.01 / divided.shape[1]
        makers.append(partial(start_params, sketch=prepared.sketch, memberships=loose))
    return makers


def merge_classes(fitted: Learned, groups: int) -> Maker:
    """Return initial parameters with fewer classes, by repeatedly merging the two classes that lose least."""
    known, nodes = range(len(fitted.named or ())), fitted.model.nodes
    stacked = nodes.stacked(fitted.counts)
    met = []
    for group in range(fitted.n_groups):
        own = slice(group, group + 1)
        alone = {name: array[..., own] if name == ROOT else array[own] for name, array in stacked.arrays.items()}
        met.append(replace(stacked, arrays=alone))
    left = list(range(len(met)))
    imagined = replace(fitted.imagined, fixed={})

    @cache
    def height(first: int, second: int) -> float:
        """Return the log marginal likelihood of the rows of two classes as one class."""
        rows = met[first] if first == second else met[first] + met[second]
        return record.complete_evidence(fitted.model, imagined, fitted.estimates, rows, leaves_only=True)

    def loss(pair: tuple[int, int]) -> float:
        return height(pair[0], pair[0]) + height(pair[1], pair[1]) - height(*pair)

    while len(left) > groups:
        pairs = (pair for pair in combinations(range(len(left)), 2) if pair[1] not in known)
        first, second = min(pairs, key=lambda pair: loss((left[pair[0]], left[pair[1]])))
        met.append(met[left[first]] + met[left.pop(second)])
        left[first] = len(met) - 1
    classes = [met[place] for place in left]
    arrays = {
        name: concatenate([part.arrays[name] for part in classes], -1 if name == ROOT else 0) for name in classes[0]
    }
    together = replace(classes[0], arrays=arrays)
    return lambda model, imagined: model.nodes.estimate(together, imagined)


class Pair(Struct, frozen=True):
    """Models of one and of two classes with their priors, to measure the gain of a split."""

    one: ClassModel
    two: ClassModel
    imagined: tuple[Imagined, Imagined]
    runner: Runner

    def halves(self, rows: Sketch, rng: np.random.Generator) -> tuple[float, np.ndarray]:
        """Return the gain in marginal likelihood of two classes over one, and memberships of the second class."""
        model, imagined = self.two, self.imagined[1]
        ready = model.prepare(rows.chunk, base=False)
        problem = Problem(model, imagined, [ready], self.runner)
        ends = []
        for _ in range(TRIES):
            start = start_params(model, imagined, rows, draw_memberships(rows, 2, "k-means++", [rng])[:, 0].T)
            ends.append(run_em(problem, start, SPLIT_STOP))
            if ends[-1].interrupted:
                raise KeyboardInterrupt
        best = max(ends, key=lambda reached: reached.objective)
        both = record.cheeseman_stutz(model, imagined, best.params, best.counts, known=2)
        params = start_params(self.one, self.imagined[0], rows, np.ones((ready.n_rows, 1)))
        counts = expected(self.one, params, [self.one.prepare(rows.chunk, base=False)], self.runner)
        alone = record.cheeseman_stutz(self.one, self.imagined[0], params, counts, known=1)
        return both - alone, model.memberships(ready, model.compile(best.params))[:, 1]


def split_each(prepared: Prepared, pair: Pair, members: np.ndarray, seed: int) -> Iterator[Halves]:
    """Yield the best split of every class that has two different rows."""
    rng = np.random.default_rng(seed)
    for group in range(members.shape[1]):
        weights = members[:, group] * prepared.sketch.weights
        kept = np.flatnonzero(weights > LEAST_SHARE * weights.max(initial=0.0))
        if len(kept) > 1:
            rows = prepared.sketch.take(kept)
            chunk = replace(rows.chunk, start=0, labels=None, weights=weights[kept])
            gain, halves = pair.halves(replace(rows, chunk=chunk), rng)
            shares = np.full(len(members), 0.5)
            shares[kept] = halves
            yield Halves(group, gain, shares)


def split_together(prepared: Prepared, pair: Pair, members: np.ndarray, seed: int) -> Iterator[Halves]:
    """Yield the best split of every class, all classes and tries side by side. The gain is penalised as in BIC."""
    heavy = members.T * prepared.sketch.weights
    heavy = np.where(heavy > LEAST_SHARE * heavy.max(axis=1, keepdims=True), heavy, 0.0)
    split = np.flatnonzero((heavy > 0).sum(axis=1) > 1)
    if not len(split):
        return
    one, two = (
        SideBySide(model, imagined, prepared.products)
        for model, imagined in zip((pair.one, pair.two), pair.imagined, strict=True)
    )
    one, weights = one.weighed(heavy[split]), np.repeat(heavy[split], TRIES, axis=0)
    alone = one.expected(one.estimate(one.counted(np.ones((1, *heavy[split].shape)))))[1]
    rngs = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(len(weights))]
    two = two.weighed(weights)
    first = two.estimate(two.counted(assign_nearest(seeds(prepared.sketch, 2, rngs, weights)[1])))
    race = Race(two, first, np.repeat(np.arange(len(split)), TRIES), SPLIT_STOP)
    race.run(SPLIT_STOP.max_iter, plain=True)
    race.keep(best_of_each(race.owners, race.heights))
    more = 0.5 * (pair.two.nodes.n_parameters() - pair.one.nodes.n_parameters())
    gains = race.heights - alone - more * np.log(np.maximum(heavy[split].sum(axis=1), 1.0))
    halves = race.many.memberships(race.here)[1]
    for place, group in enumerate(split):
        yield Halves(int(group), float(gains[place]), np.where(heavy[group] > 0, halves[place], 0.5))


# Choosing the number of classes.

CRITERIA = ("evidence", "bic", "icl", "cv")
TRIAL_STARTS = 3
"""Initialisations per candidate; neighbouring numbers contribute two or three more."""
SMALL = 50_000
"""Maximum cells of a table of which all rows are searched and the chosen number gets all `n_init` initialisations."""
LARGE_TOL = 1e-5
"""Tolerance of trials on a large table: there, candidates differ by thousands of nats."""
SHORT, LONG = 40, 100
"""Steps of trials on a sample of a large table, and on all rows."""
FOLDS = 5


def search_classes(table: Table, plan: Plan, starts: Starts, runner: Runner, criterion: str) -> ClassSearch:
    """Search the number of classes; `ClassSearch.chosen` fits the best one."""
    if criterion not in CRITERIA:
        raise DataError(f"criterion={criterion!r} is not known. Use one of {', '.join(CRITERIA)}.")
    if not isinstance(starts.init, str):
        raise DataError("init: initial memberships, parameters or a model fix the number of classes: give that number.")
    prepared = correlated_columns.drop_repeats(prepare(table, plan, runner), plan, runner)
    search = ClassSearch(prepared, plan, starts, runner, criterion=criterion)
    search.run(correlated_columns.FEW_CLASSES)
    if search.interrupted or search.best <= correlated_columns.FEW_CLASSES:
        return search
    rival, why = search_blocks(search)
    if rival is None or not rival.far_ahead(search):
        search.run()
    if rival is None or search.merit >= rival.merit:
        return search
    rival.remarks.append(why(search))
    return rival


def search_blocks(search: ClassSearch) -> tuple[ClassSearch | None, Callable[[ClassSearch], str]]:
    """Repeat a search with dependent columns in blocks. Return it with a function that writes a note if it wins.

    Return None if no columns are dependent within classes. Independent columns need more classes: 13 on breast cancer,
    5 with blocks.
    """
    few = [search.fits[number] for number in sorted(search.fits) if number <= correlated_columns.FEW_CLASSES]
    tried = (correlated_columns.find_blocks(search.prepared, search.plan, fitted) for fitted in (few[-1], few[0]))
    found = next(filter(None, tried), None)  # few classes may hide a dependence that all rows together show
    if found is None:
        return None, str
    rivals = list[ClassSearch]()
    for scale in found.prior_scales(search.plan):
        prepared, plan = found.prepared(search.prepared, search.plan, search.runner, scale)
        if correlated_columns.blocks_with_missing(prepared) and correlated_columns.take_complete(prepared) is None:
            return None, str
        rival = ClassSearch(prepared, plan, search.starts, search.runner, criterion=search.criterion)
        rivals.append(rival)
        rival.run(enough=lambda: any(other.far_ahead(rivals[-1]) for other in (search, *rivals[:-1])))
    rival = max(rivals, key=lambda tried: tried.merit)

    def why(other: ClassSearch) -> str:
        return (
            f"{found.columns} columns are modelled in blocks, because they depend on each other within classes: "
            f"{', '.join(found.pairs)}. The {rival.criterion} is {rival.figure} with {rival.best} classes; with "
            f"independent columns it is {other.figure} with {other.best}{'' if other.exhausted else ' or more'}."
        )

    return rival, why


class ClassSearch(EMSearch):
    """The numbers of classes tried so far, with their fits."""

    remarks: list[str] = field(default_factory=list)

    @property
    def figure(self) -> str:
        return f"{getattr(self.trials[self.best], self.criterion):,.1f}"

    def far_ahead(self, other: ClassSearch) -> bool:
        """Return whether this search is better than an unfinished one can still become.

        Gains about halve from number to number, so all further ones together gain no more than the last one did: 974 of
        1,187 nats on breast cancer, 314 of 376 on Titanic.
        """
        before = [other.trials[number].merit(self.criterion) for number in sorted(other.trials)]
        gain = max(before[-1] - before[-2], 0.0) if len(before) > 1 else np.inf
        return self.merit - other.merit > gain

    def attempt(self, classes: int) -> None:
        """Fit `classes` classes from new initialisations and from the fits of neighbouring numbers.

        For a large table, a sample is fitted first; for blocks with missing cells, the complete rows. One run over all
        rows follows.
        """
        starts, extra = self.few(classes, TRIAL_STARTS), list(self.extra(classes))
        if self.small and self.complete is None:
            fitted = fit_prepared(self.prepared, self.rough_plan(LONG), starts, self.runner, extra, rough=True)
        else:
            sampled = fit_prepared(self.sample(), self.rough_plan(SHORT), starts, self.runner, extra, rough=True)
            if sampled.interrupted:
                raise KeyboardInterrupt
            fitted = self.fit_all_rows(sampled, self.rough_plan(LONG))
        cv = self.held_out(classes) if self.criterion == "cv" else None
        self.fits[classes], self.trials[classes] = fitted, self.measure(fitted, classes, cv)

    @property
    def small(self) -> bool:
        """Whether all rows are searched: there are few cells, or few distinct rows."""
        rows = self.prepared.n_rows
        few = rows * max(1, len(self.prepared.one.schema.used)) <= SMALL
        return few or (self.prepared.sketch.whole and self.prepared.races)

    @property
    def complete(self) -> Sketch | None:
        """The sketched rows without missing cells in blocks of numbers; None if none is missing or too few rows remain.

        Complete rows can be fitted side by side: 150 x 4 cells, 18 of them missing, took 20 s without this.
        """
        return self.prepared.once("complete", lambda: correlated_columns.take_complete(self.prepared))

    def sample(self) -> Prepared:
        """Return the sketched rows in place of the table, with its total weight."""
        rows = self.complete or self.prepared.sketch
        chunk = rows.as_heavy_as_the_table()
        kept = {**self.prepared.kept, "sketch": replace(rows, whole=True)}
        chunks = HeldRows([chunk], self.runner)
        return replace(self.prepared, chunks=chunks, ready=chunks.made(self.prepared.one.prepare), kept=kept)

    def fit_all_rows(self, fitted: Learned, plan: Plan) -> Learned:
        """Run EM on all rows, from the parameters of a fit."""
        start = replace(self.starts, groups=fitted.n_groups, init=lambda model, imagined: fitted.estimates, n_init=1)
        return replace(fit_prepared(self.prepared, plan, start, self.runner), agreed=fitted.agreed)

    def rough_plan(self, most: int) -> Plan:
        """Return the plan of a trial: a coarse tolerance and at most `most` steps."""
        plan = self.trial_plan(SMALL_TOL if self.small else LARGE_TOL, most)
        return replace(plan, stop=replace(plan.stop, finish=None, half_steps=False))

    def extra(self, classes: int) -> Iterator[Maker]:
        below = max((tried for tried in self.fits if tried < classes), default=None)
        above = min((tried for tried in self.fits if tried > classes), default=None)
        if below is not None and self.fits[below].n_groups < classes:
            rows = self.prepared if self.complete is None else self.sample()
            yield from split_classes(rows, self.fits[below], classes, self.runner, seed=classes)
        if above is not None and self.fits[above].n_groups > classes:
            yield merge_classes(self.fits[above], classes)

    def measure(self, fitted: Learned, classes: int, cv: float | None = None) -> Trial:
        model, imagined, params = fitted.model, fitted.imagined, fitted.estimates
        counts = model.nodes.stacked(fitted.counts)
        height, size = counts.log_likelihood, fitted.n_parameters
        short = record.bic(height, size, counts.rows)
        undecided = record.memberships_entropy(model, params, self.prepared.ready, self.runner)
        evidence = record.cheeseman_stutz(model, imagined, params, counts, len(self.prepared.named or ()))
        reached = int(find_sound(fitted).sum())
        return Trial(classes, height, size, short, short + 2 * undecided, evidence, cv, reached)

    def held_out(self, classes: int) -> float:
        """Return the cross-validated log-likelihood per row, with new initialisations for each fold.

        Continuing from the fit to all rows costs less but has seen the fold: on soybean it chose six classes, this one
        four.
        """
        chunks, starts, height, mass = self.prepared.chunks.here, self.few(classes, TRIAL_STARTS), 0.0, 0.0
        split = self._split(chunks)
        for fold in split.tested:
            without = partial(_without_fold, split, fold)
            ready, rows = self.prepared.ready.made(without), self.prepared.chunks.made(without)
            others = replace(self.prepared, ready=ready, chunks=rows, kept={})
            fitted = fit_prepared(others, self.rough_plan(LONG), starts, self.runner)
            if fitted.interrupted:
                raise KeyboardInterrupt
            rest = [replace(part, weights=split.weights_in(part, fold)) for part in self.prepared.ready.here]
            tested = expected(fitted.model, fitted.estimates, rest, self.runner)
            height, mass = height + tested.log_likelihood, mass + tested.rows
        return height / mass if mass > 0 else -np.inf

    def _split(self, chunks: Sequence[Chunk]) -> Split:
        def weights() -> Iterator[tuple[int, np.ndarray | None]]:
            return ((chunk.start, chunk.weights) for chunk in chunks)

        split = Split(FOLDS, 0)
        if sum(chunk.n_rows for chunk in chunks) > MOST_COMPARED:
            return replace(split, repeats=Repeats.of(weights))
        return deal_repeats(split, chunks, weights, complete=True)

    def chosen(self) -> Learned:
        fitted = super().chosen()
        undecided = (self.trials[self.best].icl - self.trials[self.best].bic) / 2
        return replace(fitted, notes=[*fitted.notes, *note_disagreement(fitted)], undecided=undecided)

    def converge(self, fitted: Learned, plan: Plan) -> Learned:
        """Continue a fit to convergence; on a small table with all `n_init` initialisations."""
        if self.interrupted or not self.small or self.complete is not None:
            return self.fit_all_rows(fitted, plan)
        starts = replace(self.starts, groups=fitted.n_groups)
        return fit_prepared(self.prepared, plan, starts, self.runner, [lambda model, imagined: fitted.estimates])

    def notes(self) -> list[str]:
        if self.interrupted:
            return ["interrupted: this is the best of the numbers of classes tried so far."]
        notes = [*self.remarks, *self._many_classes_notes()]
        rows, worth = self.prepared.n_rows, self.prepared.sketch.mass
        if worth < 0.1 * rows:
            notes.append(
                f"the weights of {rows:,} rows sum to {worth:.4g}, so they count as that many rows when the number of "
                "classes is chosen. Scale the weights to sum to the number of rows if each stands for one."
            )
        if self.best >= MOST_GROUPS:
            notes.append(f"the largest number tried, {MOST_GROUPS} classes, is the best: more may be better still.")
        return notes

    def _many_classes_notes(self) -> list[str]:
        """Return a note that explains many classes, and how much of the gain a few of them have."""
        few = max((number for number in self.fits if 1 < number <= correlated_columns.FEW_CLASSES), default=None)
        if self.best <= correlated_columns.FEW_CLASSES or few is None or 1 not in self.trials:
            return []
        one, some, all_of_it = (self.trials[number].merit(self.criterion) for number in (1, few, self.best))
        pairs = correlated_columns.find_forcing_pairs(self.prepared, self.plan, self.fits[few])
        if not pairs or not np.isfinite(some - one):
            return []
        hint = remedies.either(f"n_components={few}", f"--classes {few}")
        share = 100 * (some - one) / (all_of_it - one)
        return [
            f"{few} classes reach {share:.0f} % of the improvement of {self.best} classes over one class: {hint}. "
            f"With {few}, columns still depend on each other: {', '.join(pairs)}."
        ]


def note_disagreement(fitted: Learned) -> list[str]:
    best, run = fitted.agreed or (0, 0)
    if best != 1 or run < 2 or fitted.n_groups < 2 or fitted.interrupted:
        return []
    return [
        f"only 1 of {run} initialisations reached the best, so these {fitted.n_groups} classes are one of several ways "
        "to group the rows. Try fewer classes, more initialisations, or leave out columns that are not related to them."
    ]


def find_sound(fitted: Learned) -> np.ndarray:
    """Return which classes have enough rows and, under `ml`, are wider than the resolution of their columns."""
    model, imagined, counts = fitted.model, fitted.imagined, fitted.model.nodes.stacked(fitted.counts)
    enough: np.ndarray = sizes_of(counts) >= LEAST_ROWS
    if imagined.how != "ml":
        return enough
    return np.asarray(
        enough & ~spikes(model, fitted.estimates, imagined, counts) & ~starved(model, sizes_of(counts), imagined.how)
    )


def _without_fold(split: Split, fold: int, rows: Any) -> Any:
    """Return rows, encoded or prepared, with weight zero for those of one fold."""
    weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    return replace(rows, weights=weights - split.weights_in(rows, fold))


# Choice between several models of one table, each with its best number of classes.

CRITERION_NAMES = {"bic": "BIC", "icl": "ICL"}
FEW = 2
"""Every plan is tried with at least this number of classes."""


def fit_best_plan(
    table: Table, plans: Mapping[str, Plan], setting: str, starts: Starts, runner: Runner, criterion: str
) -> Learned:
    """Return the mixture of the best plan, with a note on the others; the first one if several are equal.

    Plans are named by the values of `setting`. Each is tried as long as it may still be the best. Only the best is
    fitted to convergence.
    """
    tried: dict[str, ClassSearch] = {}
    for name, plan in plans.items():
        others = [*tried.values()]
        search = tried[name] = ClassSearch(prepare(table, plan, runner), plan, starts, runner, criterion=criterion)
        while True:
            search.run(max(FEW, search.best if search.trials else 0))
            if search.interrupted or search.exhausted or any(other.far_ahead(search) for other in others):
                break
        if search.interrupted:
            break
    best = max(tried, key=lambda name: tried[name].merit)
    order = sorted(tried, key=lambda name: (name != best, -tried[name].merit))
    more = {name: "" if tried[name].exhausted or tried[name].interrupted else " and more" for name in order}
    figures = [f"{name!r} {tried[name].figure} with {tried[name].best} classes{more[name]}" for name in order]
    why = f"{setting}={best!r} is chosen by the {CRITERION_NAMES.get(criterion, criterion)}: {', '.join(figures)}."
    found = tried[best].chosen()
    return replace(found, notes=[*found.notes, why])
