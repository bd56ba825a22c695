"""Learning hidden states of sequences: initial states, EM, and how many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.counts import Counts, Twofold
from softcount.errors import DataError
from softcount.learn import prepare
from softcount.learn.how_many import LEAST_ROWS, SMALL_TOL, EMSearch
from softcount.learn.initialise import NEAREST_SHARE, Sketch, draw_memberships, entropy, given_params, pin_known
from softcount.learn.mixture import Starts, as_learned, refuse_more_named
from softcount.learn.record import Learned, Plan, Trial, bic, cheeseman_stutz, retry_wider
from softcount.learn.search import Make, Search, SearchResult
from softcount.models.base import ClassModel, DeadEnd, Problem
from softcount.models.declare import priors_of
from softcount.models.hidden_chain import HiddenChain, PathRows  # seam: of the one model that this module prepares
from softcount.models.nodes import Imagined, Params
from softcount.run.local import Runner
from softcount.sequences import Sequences
from softcount.table import Table

STAYING = (0.0, 0.8)
"""Shares of steps that stay in their state, for every other initialisation: no assumption, or slow to move."""
FEW_SYMBOLS = 64
"""Distinct steps up to which every other initialisation assigns them to states at random."""
FIRST_NAME, NEXT_NAME = "first", "transitions"


def draw_state_start(
    model: HiddenChain,
    imagined: Imagined,
    sketch: Sketch,
    ready: Sequence[Any],
    init: str,
    seed: np.random.SeedSequence,
    number: int,
) -> Params:
    """Initial parameters. If states come in line, sequences are cut into as many stretches."""
    rng = np.random.default_rng(seed)
    line = model.links.in_line()
    if line is not None:
        parts = [model.counts_under(part, cut_into_stretches(part, line, model.links.states, rng)) for part in ready]
        return model.nodes.estimate(model.gathered(reduce(add, parts)), imagined)
    rows, labels = sketch, sketch.chunk.labels
    if labels is not None:  # steps of known state, labelled by what the state shows
        shown = np.where(labels < 0, -1, np.array(model.links.shown)[np.maximum(labels, 0)])
        rows = replace(sketch, chunk=replace(sketch.chunk, labels=shown.astype(np.int32)))
    way = "random" if init == "k-means++" and number % 2 and len(rows.weights) <= FEW_SYMBOLS else init
    members = draw_memberships(rows, model.groups, way, [rng])[:, 0].T
    emitted = model.star.tally_members(model.star.prepare(rows.chunk, base=False), members)
    nexts = draw_transitions(model.links.nexts, STAYING[number % len(STAYING)], rng) * sketch.mass / model.states
    counts = model.with_steps(emitted, np.full(model.states, 1.0 / model.states), nexts)
    return model.nodes.estimate(model.gathered(counts), imagined)


def draw_transitions(nexts: Sequence[Sequence[int]], staying: float, rng: np.random.Generator) -> np.ndarray:
    """(states x states) random probabilities around staying; zero where no step may go."""
    states = len(nexts)
    found = np.zeros((states, states))
    for state, levels in enumerate(nexts):
        found[state, list(levels)] = (1 - staying) * rng.dirichlet(np.full(len(levels), 4.0))
        found[state, state] += staying if state in levels else 0.0
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def cut_into_stretches(part: Any, line: Sequence[int], states: int, rng: np.random.Generator) -> np.ndarray:
    """(rows x states) memberships of sequences cut into a stretch per state, of random lengths."""
    members = np.full((part.n_rows, states), (1 - NEAREST_SHARE) / states)
    cuts = np.cumsum(rng.dirichlet(np.full(states, 8.0)))[:-1]
    for begin, end in zip(part.borders[:-1], part.borders[1:], strict=True):
        turn = np.searchsorted(cuts, (np.arange(end - begin) + 0.5) / (end - begin))
        members[np.arange(begin, end), np.array(line)[turn]] += NEAREST_SHARE
    return pin_known(members, part.labels)


def given_state_start(given: Mapping[Any, Any], model: HiddenChain, imagined: Imagined) -> Params:
    """Parameters given by the user: `first`, `draw_transitions`, and those of every column as in `params_`."""
    columns = {key: own for key, own in given.items() if isinstance(own, Mapping)}
    odd = [key for key in given if key not in columns and key not in (FIRST_NAME, NEXT_NAME)]
    if odd:
        raise DataError(f"init names {odd[0]!r}, which is neither a column nor 'first' nor 'transitions'.")
    shown = given_params(model.star, columns)
    first = check_shares(given.get(FIRST_NAME), (model.states,), "init: 'first'")
    nexts = check_shares(given.get(NEXT_NAME), (model.states, model.states), "init: 'transitions'")
    own = model.step_params(first, nexts)
    return model.nodes.params({**own, **{leaf.key: shown[leaf.key] for leaf in model.leaves}})


def check_shares(given: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """Probabilities that sum to one along the last axis; equal ones for None."""
    if given is None:
        return np.full(shape, 1.0 / shape[-1])
    try:
        found = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"{what} must be numbers, not {given!r}.") from None
    size = " x ".join(map(str, shape))
    if found.shape != shape or not np.isfinite(found).all() or (found < 0).any():
        raise DataError(f"{what} must be {size} probabilities of 0 or more, not an array of shape {found.shape}.")
    far = np.abs(found.sum(axis=-1) - 1.0)
    if far.max() > 1e-6:
        at = f" of state {int(far.argmax())}" if found.ndim > 1 else ""
        total = np.atleast_1d(found.sum(axis=-1))[int(far.argmax())]
        raise DataError(f"{what}{at} sum to {total:.6g}, not to one.")
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


# Fitting hidden states: the best of several EM runs.

Build = Callable[[ClassModel, int], HiddenChain]
"""Makes a model of this many states; the given model describes the columns of one step."""
MANY_PASSES = 64
"""Passes over all steps, about, which decides on compiled kernels: paths have no sketch."""
GROUND = 65_536
"""Steps up to which every run uses all of them; of more, a part."""


class StepRows(prepare.Prepared, frozen=True, eq=False, kw_only=True):
    """Sequences read, settled and encoded once, for any number of states."""

    sequences: Sequences

    def paths(self, model: HiddenChain) -> list[Any]:
        """Return the sequences in parts of a good length."""
        return self.once("paths", lambda: model.arranged(list(map(PathRows.of, self.ready.here, self.chunks.here))))

    @property
    def most_groups(self) -> int:
        return self.sequences.n_steps


def read_steps(sequences: Sequences, table: Table, plan: Plan, runner: Runner) -> StepRows:
    return retry_wider(table, lambda t: _read(sequences, t, plan, runner), runner, known_classes=False)


def _read(sequences: Sequences, table: Table, plan: Plan, runner: Runner) -> StepRows:
    chunks, settled = prepare.read_all(table, plan, runner, plan.named)
    prepare.check_reach(table, chunks)
    settled = replace(settled, notes=[*settled.notes, *prepare.empty_notes(settled.schema, chunks)])
    model = prepare.model_to_find(table, settled, chunks, plan, MANY_PASSES, "states")
    whole, named = chunks.made(sequences.bordered), settled.classes or None
    return StepRows(table, settled, plan, whole, model, whole.made(model.prepare), named, sequences=sequences)


def fit_states(
    steps: StepRows, build: Build, plan: Plan, starts: Starts, runner: Runner, extra: Sequence[Params] = ()
) -> Learned:
    """Fit this many hidden states, the best of several initialisations; `extra` are further ones."""
    model = build(steps.model(1), starts.groups)
    refuse_more_named(steps.named, model.states, "states")
    task = StateTask(steps, plan, starts, runner, model)
    try:
        found, imagined = task.search(extra)
    except DeadEnd as end:
        raise end.at(steps.sequences.place(end.row)) from None
    best, params = found.best, found.best.params
    counts = model.nodes.unstacked(best.counts)
    if isinstance(starts.init, str) and steps.named is None and model.links.is_free:
        order = np.argsort(-model.occupied(counts), kind="stable")
        params, counts = model.reordered(params, counts, order)
    fitted = as_learned(steps, model, plan, imagined, found, params, counts, [])
    if len(gone := np.flatnonzero(prepare.dead(model.occupied(counts)))):
        fitted.notes.append(f"no step is in state {', '.join(map(str, gone))}: ask for fewer states.")
    return fitted


class StateTask(Struct, frozen=True, eq=False):
    """One fit: a number of states, from these initialisations."""

    steps: StepRows
    plan: Plan
    starts: Starts
    runner: Runner
    model: HiddenChain

    def search(self, extra: Sequence[Params]) -> tuple[SearchResult, Imagined]:
        imagined = self.imagined()
        if self.plan.log is not None:
            self.plan.log.check_rows(self.steps.whole)
        problem = Problem(self.model, imagined, self.steps.paths(self.model), self.runner, log=self.plan.log)
        makes: list[Make] = [*self._makes(imagined), *((lambda params=params: params) for params in extra)]
        stop = self.plan.stop
        racing = len(makes) > 1 and stop.tol > 0
        ground = problem
        if racing and problem.n_rows > GROUND:
            # Short runs use a part of a long table, spread over all of it, with its total weight.
            parts = problem.rows.here
            wanted = max(1, len(parts) * GROUND // problem.n_rows)
            some = [parts[len(parts) * i // wanted].shortened(GROUND) for i in range(wanted)]
            factor = problem.n_rows / sum(part.n_rows for part in some)
            heavier = [part.heavier(factor) for part in some]
            ground = Problem(self.model, problem.imagined, heavier, self.runner, False)
        search = Search(problem, ground, self.plan, partial(self.degenerate, imagined))
        found = search.best_of([[make] for make in makes]) if racing else search.each_of(makes)
        return found, imagined.using(self.plan.how)

    def imagined(self) -> Imagined:
        """Prior parameters. First states and transitions have a plain prior, or else that of one row."""
        prior = self.plan.prior
        plain = prior if isinstance(prior, (int, float, str)) else "row"
        own = {node.key: plain for node in self.model.nodes if not node.columns and node not in self.model.leaves}
        leaves = priors_of(prior, self.model.leaves, "row")
        if "auto" in [own for own in leaves.values() if isinstance(own, str)]:
            raise DataError("prior='auto' is for known classes and mixtures. Use 'row' or a number of prior counts.")
        arrays = dict(self.steps.whole.arrays)
        arrays |= {key: Twofold.of(np.zeros((1, len(self.model.nodes[key].setting.levels)))) for key in own}
        hypers = self.model.nodes.hypers(replace(self.steps.whole, arrays=arrays), {**own, **leaves})
        return Imagined(hypers, self.plan.em_how)

    def _makes(self, imagined: Imagined) -> list[Make]:
        init = self.starts.init
        if not isinstance(init, str):
            return [partial(init, self.model, imagined)]
        # With one state, or where all states are known, every initialisation leads to the same place.
        known = all(part.labels is not None and (part.labels >= 0).all() for part in self.steps.paths(self.model))
        number = self.starts.n_init if self.model.states > 1 and not known else 1
        seeds = np.random.SeedSequence(entropy(self.starts.seed, self.plan.log)).spawn(number)
        draw = partial(draw_state_start, self.model, imagined, self.steps.sketch, self.steps.paths(self.model))
        return [partial(draw, self.starts.init, seed, number) for number, seed in enumerate(seeds)]

    def degenerate(self, imagined: Imagined, params: Params, counts: Counts) -> bool:
        """Whether some state is narrower than the resolution of its columns, or has too few steps."""
        model: Any = self.model
        rows = prepare.scale_to_rows(model.occupied(model.nodes.unstacked(counts)), self.steps.sequences.n_steps)
        narrow = prepare.spikes(model, params, imagined, counts) | prepare.starved(
            model, rows @ model.sharing, imagined.how
        )
        return bool(narrow.any() or prepare.dead(rows).any())


# Choosing the number of hidden states.

TRIAL_STARTS = 5
TRIAL_MAPS = 100


def fit_auto_states(
    steps: StepRows, build: Build, plan: Plan, starts: Starts, runner: Runner, criterion: str = "evidence"
) -> Learned:
    """Fit the number of states with the best criterion; `selection` has all numbers tried."""
    if not isinstance(starts.init, str):
        raise DataError("init: initial parameters or a model fix the number of states: give that number.")
    search = StateSearch(steps, plan, starts, runner, build, criterion=criterion)
    search.run()
    return search.chosen()


class StateSearch(EMSearch):
    """The numbers of states tried so far, with their fits."""

    prepared: StepRows
    build: Build

    def attempt(self, number: int) -> None:
        plan, few = self.trial_plan(SMALL_TOL, TRIAL_MAPS), self.few(number, TRIAL_STARTS)
        self.fits[number] = fit_states(self.prepared, self.build, plan, few, self.runner)
        self.trials[number] = self.measure(self.fits[number], number)

    def measure(self, fitted: Learned, number: int, cv: float | None = None) -> Trial:
        model: HiddenChain = fitted.model  # type: ignore[assignment]
        counts = model.nodes.stacked(fitted.counts)
        height, size = counts.log_likelihood, model.nodes.n_parameters()
        enough = int((model.occupied(fitted.counts) >= LEAST_ROWS).sum())
        known = len(fitted.named or ()) if model.links.is_free else model.groups
        evidence = cheeseman_stutz(model, fitted.imagined, fitted.estimates, counts, known)  # type: ignore[arg-type]
        return Trial(number, height, size, bic(height, size, counts.rows), np.nan, evidence, cv, enough)

    def converge(self, fitted: Learned, plan: Plan) -> Learned:
        """Continue a fit to convergence, in addition to all initialisations unless the search was interrupted."""
        starts = replace(self.starts, groups=fitted.model.states)  # type: ignore[attr-defined]
        if self.interrupted:
            starts = replace(starts, init=lambda model, imagined: fitted.estimates)
        extra = [] if self.interrupted else [fitted.estimates]
        return fit_states(self.prepared, self.build, plan, starts, self.runner, extra)

    def notes(self) -> list[str]:
        if self.interrupted:
            return ["interrupted: this is the best of the numbers of states tried so far."]
        numbers = ", ".join(map(str, sorted(self.trials)))
        return [f"{self.best} states have the best {self.criterion} of the numbers tried: {numbers}."]
