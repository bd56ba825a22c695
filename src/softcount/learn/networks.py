"""Fitting of networks: one pass if all rows are complete, otherwise EM from one or several initialisations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.counts import Counts
from softcount.errors import DataError
from softcount.learn.em import run_em
from softcount.learn.initialise import entropy
from softcount.learn.prepare import check_reach, read_all
from softcount.learn.record import Learned
from softcount.learn.search import Search, SearchResult
from softcount.learn.settings import Plan, em_facts, em_note, plug, retyping, stopped_notes
from softcount.models.base import Problem
from softcount.models.network import Net
from softcount.models.nodes import Imagined, Params
from softcount.run.local import Runner, one_blas_thread
from softcount.table import Chunk, Settled, Table
from softcount.table.chunk import end_to_end

Build = Callable[[Settled, Sequence[Chunk]], tuple[Net, list[str]]]
"""Returns a model of a settled table, and notes."""
PriorsOf = Callable[[Net], Mapping[Any, Any]]


class GraphStarts(Struct, frozen=True):
    """Initialisation of EM: given parameters, or `n_init` random ones."""

    n_init: int = 10
    seed: Any = None
    given: Callable[[Net, Imagined], Params] | None = None


def fit_network(
    table: Table, build: Build, priors_of: PriorsOf, plan: Plan, starts: GraphStarts, runner: Runner
) -> Learned:
    def fit(opened: Table) -> Learned:
        chunks, settled = read_all(opened, plan, runner, None)
        if not chunks.n_rows:
            raise DataError("the table has no rows.")
        model, notes = build(settled, chunks.here)
        ready = model.arranged([model.prepare(chunk) for chunk in end_to_end(chunks.here)])
        check_reach(opened, chunks)
        found = _estimate(model, ready, priors_of(model), plan, starts, runner)
        return replace(found, notes=[*opened.all_notes, *settled.notes, *notes, *found.notes])

    return retyping(table, fit, runner, known_classes=False)


def _estimate(
    model: Net, ready: Sequence[Any], priors: Mapping[Any, Any], plan: Plan, starts: GraphStarts, runner: Runner
) -> Learned:
    seen = reduce(add, [model.seen(part) for part in ready])
    incomplete = any(model.needs_em(part) for part in ready)
    shown = reduce(add, [model.seen(part, all_numbers=True) for part in ready]) if incomplete else seen
    imagined = Imagined(model.nodes.hypers(shown, priors), plug(plan.how))
    problem = Problem(model, imagined, ready, runner)
    reached, agreed, notes = None, None, list[str]()
    if incomplete:
        with one_blas_thread():
            result = _search(problem, plan, starts)
        reached, agreed = result.best, (result.agreed, result.tried)
        counts, params = model.nodes.unstacked(reached.counts), reached.params
        notes += [em_note("cells or nodes not seen", reached), *stopped_notes(reached, plan)]
        notes += model.guessed_notes(ready)
    else:
        stacked = model.nodes.stacked(seen)
        params = model.nodes.estimate(stacked, imagined)
        height = model.likelihood_of(stacked, params)
        counts = Counts(seen.arrays, seen.rows, problem.expected(params).log_likelihood if height is None else height)
    notes += model.unseen_notes(counts)
    imagined = imagined.using(plan.how)
    if plan.how != plug(plan.how):
        params = model.nodes.estimate(model.nodes.stacked(counts), imagined)
    facts = em_facts(reached, plan, counts) | {"log_likelihood": counts.log_likelihood}
    return Learned(
        model=model, estimates=params, counts=counts, imagined=imagined, notes=notes, prior=plan.prior,  # type: ignore[arg-type]
        estimate=plan.estimate, interrupted=reached is not None and reached.interrupted, agreed=agreed, **facts,
    )  # fmt: skip


def _search(problem: Problem, plan: Plan, starts: GraphStarts) -> SearchResult:
    """Return the best of all initialisations; several are compared by short runs first."""
    model: Net = problem.model  # type: ignore[assignment]
    if starts.given is not None:
        makes = [partial(starts.given, model, problem.imagined)]
    else:
        rows = problem.rows.here[0]
        seeds = np.random.SeedSequence(entropy(starts.seed)).spawn(starts.n_init if model.hidden else 1)
        rngs = [np.random.default_rng(seed) for seed in seeds]
        makes = [partial(model.drawn_start, rows, problem.imagined, rng) for rng in rngs]
    search = Search(problem, problem, plan)
    if len(makes) > 1 and plan.stop.tol > 0:
        return search.best_of([[make] for make in makes])
    reached = run_em(problem, makes[0](), plan.stop, plan.watching(1, 1))
    return SearchResult(reached, 1, 1, 0, False, reached.interrupted)
