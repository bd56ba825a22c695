"""Sequences with hidden states: several starts climbed by the one driver, the best kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np

from softcount.counts import Counts
from softcount.errors import DataError
from softcount.learn.degenerate import as_rows, dead, spikes, starved, with_floors
from softcount.learn.groups import search_notes
from softcount.learn.learned import Learned
from softcount.learn.plan import Plan, absent, cells_of, climb_facts, degenerate_notes, plug, retyping, stopped_notes
from softcount.learn.prepare import MIXTURE_FLOOR, check_reach, empty_notes, measures_of, read_all, with_blanks
from softcount.learn.search import Make, Search, SearchResult
from softcount.learn.sketch import Sketch, sketch
from softcount.learn.start import entropy
from softcount.learn.state_starts import StateStarts, drawn_state_start
from softcount.models.base import ClassModel, DeadEnd, Problem, StateModel
from softcount.models.declared import priors_of
from softcount.models.nodes import Imagined, Params, refuse_scores, refuse_unknown
from softcount.models.row_steps import count_equally
from softcount.numerics.twofold import Twofold
from softcount.records import dataclass
from softcount.run.base import Runner
from softcount.sequences import Sequences
from softcount.table import Chunk, Settled, Table

Build = Callable[[ClassModel, int], StateModel]
"""Makes a model of so many states, each of which shows what the columns of the given model say."""
MANY_PASSES = 64
"""Passes over all steps, about: starts are not raced on distinct rows, and paths are compiled in any case."""
GROUND = 65_536
"""Steps up to which every start is climbed on all of them; of more, on a part."""


@dataclass(frozen=True, slots=True, eq=False)
class StepRows:
    """Sequences read, settled and encoded once, for any number of states."""

    sequences: Sequences
    table: Table
    settled: Settled
    chunks: Sequence[Chunk]
    one: ClassModel
    sketch: Sketch
    named: list[Any] | None
    kept: dict[str, Any] = field(default_factory=dict, repr=False)

    def ready(self, model: StateModel) -> list[Any]:
        """The rows as models of any number of states want them."""
        if "ready" not in self.kept:
            self.kept["ready"] = model.arranged([model.prepare(chunk) for chunk in self.chunks])
        found: list[Any] = self.kept["ready"]
        return found

    @property
    def whole(self) -> Counts:
        """All steps' counts by column, as those of one group."""
        if "whole" not in self.kept:
            count = count_equally(self.one)
            parts = [count(self.one.prepare(chunk, base=False)) for chunk in self.chunks]
            self.kept["whole"] = self.one.named(sum(parts[1:], parts[0]))
        found: Counts = self.kept["whole"]
        return found

    @property
    def notes(self) -> list[str]:
        return [*self.table.told, *self.settled.notes]


def read_steps(sequences: Sequences, table: Table, plan: Plan, runner: Runner) -> StepRows:
    """The steps read, settled and encoded: what fits with any number of states share."""
    return retyping(table, lambda t: _read(sequences, t, plan, runner), runner, known_classes=False)


def _read(sequences: Sequences, table: Table, plan: Plan, runner: Runner) -> StepRows:
    chunks, settled = read_all(table, plan, runner, plan.named)
    check_reach(table, chunks)
    settled = replace(settled, notes=[*settled.notes, *empty_notes(settled.schema, chunks)])
    one = plan.declared.model(settled.schema, 1, MANY_PASSES * cells_of(table), MIXTURE_FLOOR, table.bag_width)
    refuse_scores(one.leaves, "is not for states to be found")
    refuse_unknown(one.leaves, "is not for states to be found", "")
    one = with_blanks(one, chunks.here)
    rows = sketch(chunks.here, measures_of(one, settled.schema), marked=table.bag_width is None)
    one = one.with_leaves(with_floors(one.leaves, settled.schema, rows))
    whole = [sequences.bordered(chunk) for chunk in chunks.here]
    return StepRows(sequences, table, settled, whole, one, rows, settled.classes or None)


def fit_states(
    steps: StepRows, build: Build, plan: Plan, starts: StateStarts, runner: Runner, extra: Sequence[Params] = ()
) -> Learned:
    """A chain of so many hidden states: several starts, the best kept; `extra` are starts beside those asked for."""
    model = build(steps.one, starts.states)
    if steps.named is not None and len(steps.named) > model.states:
        raise DataError(
            f"{len(steps.named)} states are known, but only {model.states} are asked for. "
            "Ask for at least as many as are known."
        )
    task = StateTask(steps, plan, starts, runner, model)
    try:
        found, imagined = task.searched(extra)
    except DeadEnd as end:
        raise end.at(steps.sequences.place(end.row)) from None
    best, params = found.best, found.best.params
    counts = model.nodes.unstacked(best.counts)
    if isinstance(starts.init, str) and steps.named is None and model.links.is_free:
        order = np.argsort(-model.occupied(counts), kind="stable")
        params, counts = model.reordered(params, order), model.reordered_counts(counts, order)
    if plan.estimate == "predictive":
        params = model.nodes.estimate(model.nodes.stacked(counts), imagined)
    rounded = all(leaf.setting.rounded for leaf in model.leaves if leaf.family.spread_parameters)
    notes = [
        *stopped_notes(replace(best, interrupted=found.interrupted), plan),
        *search_notes(found, plan, rounded),
        *degenerate_notes(model, params, imagined),  # type: ignore[arg-type]  # of whose leaves alone it speaks
        *_empty_states(model, counts),
    ]
    return Learned(
        model=model, estimates=params, counts=counts, imagined=imagined, notes=[*steps.notes, *notes],  # type: ignore[arg-type]
        prior=plan.prior, estimate=plan.estimate, missing=absent(model, counts, steps.table),  # type: ignore[arg-type]
        agreed=(found.agreed, found.tried), named=steps.named, interrupted=found.interrupted,
        **climb_facts(best, plan, counts),
    )  # fmt: skip


def _empty_states(model: StateModel, counts: Counts) -> list[str]:
    gone = np.flatnonzero(dead(model.occupied(counts)))
    if not len(gone):
        return []
    return [f"no step is in state {', '.join(map(str, gone))}: ask for fewer states."]


@dataclass(frozen=True, slots=True, eq=False)
class StateTask:
    """What one fit is to find: so many states in these sequences, from these starts."""

    steps: StepRows
    plan: Plan
    starts: StateStarts
    runner: Runner
    model: StateModel

    def searched(self, extra: Sequence[Params]) -> tuple[SearchResult, Imagined]:
        """What the starts lead to. Priors look at all steps together."""
        imagined = self.imagined()
        if self.plan.log is not None:
            self.plan.log.refuse_other_rows(self.steps.whole)
        problem = Problem(self.model, imagined, self.steps.ready(self.model), self.runner, log=self.plan.log)
        makes: list[Make] = [*self._makes(imagined), *(partial(_itself, params) for params in extra)]
        stop = self.plan.stop
        racing = len(makes) > 1 and stop.tol > 0
        ground = self._ground(problem) if racing else problem
        search = Search(problem, ground, self.plan, partial(self.spoilt, imagined))
        tries = [[make] for make in makes]
        rngs = [np.random.default_rng(0) for _ in tries]
        found = search.best_of(tries) if racing else search.each_of(tries, rngs)
        return found, imagined.using(self.plan.how)

    def imagined(self) -> Imagined:
        """What priors imagine: of first states and transitions what a plain prior says, else one row of each."""
        prior = self.plan.prior
        plain = prior if isinstance(prior, (int, float, str)) else "row"
        own = {node.key: plain for node in self.model.nodes if not node.columns and node not in self.model.leaves}
        leaves = priors_of(prior, self.model.leaves, "row")
        if "auto" in [own for own in leaves.values() if isinstance(own, str)]:
            raise DataError("prior='auto' is for known classes and mixtures. Use 'row' or a number of imagined rows.")
        arrays = dict(self.steps.whole.arrays)
        arrays |= {key: Twofold.of(np.zeros((1, len(self.model.nodes[key].setting.levels)))) for key in own}
        hypers = self.model.nodes.hypers(replace(self.steps.whole, arrays=arrays), {**own, **leaves})
        return Imagined(hypers, plug(self.plan.how))

    def _makes(self, imagined: Imagined) -> list[Make]:
        init = self.starts.init
        if not isinstance(init, str):
            return [partial(init, self.model, imagined)]
        number = self.starts.n_init if self._several else 1
        seeds = np.random.SeedSequence(entropy(self.starts.seed, self.plan.log)).spawn(number)
        draw = partial(drawn_state_start, self.model, imagined, self.steps.sketch, self.steps.ready(self.model))
        return [partial(draw, self.starts.init, seed, number) for number, seed in enumerate(seeds)]

    @property
    def _several(self) -> bool:
        """Whether one start may lead elsewhere than another: not with one state, nor where all states are known."""
        ready = self.steps.ready(self.model)
        known = all(part.labels is not None and (part.labels >= 0).all() for part in ready)
        return self.model.states > 1 and not known

    def _ground(self, problem: Problem) -> Problem:
        """Where short runs go: on a part of long tables, spread over all of them, as heavy as the whole."""
        if problem.n_rows <= GROUND:
            return problem
        parts = problem.rows.here
        wanted = max(1, len(parts) * GROUND // problem.n_rows)
        some = [parts[len(parts) * i // wanted].shortened(GROUND) for i in range(wanted)]
        factor = problem.n_rows / sum(part.n_rows for part in some)
        return Problem(self.model, problem.imagined, [part.heavier(factor) for part in some], self.runner, False)

    def spoilt(self, imagined: Imagined, params: Params, counts: Counts) -> bool:
        """Whether some state is none: narrower than its columns can tell apart, or with too few steps."""
        model: Any = self.model
        rows = as_rows(model.occupied(model.nodes.unstacked(counts)), self.steps.sequences.n_steps)
        narrow = spikes(model, params, imagined, counts) | starved(model, rows @ model.sharing, imagined.how)
        return bool(narrow.any() or dead(rows).any())


def _itself(params: Params) -> Params:
    return params
