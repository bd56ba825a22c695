"""Fitting of networks: one pass if all rows are complete, otherwise EM from one or several initialisations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from math import lgamma
from operator import add
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.counts import Counts
from softcount.errors import DataError
from softcount.learn import record
from softcount.learn.how_many import NumberSearch
from softcount.learn.initialise import entropy
from softcount.learn.prepare import check_reach, read_all
from softcount.learn.record import Learned, Plan, Trial
from softcount.learn.search import Search, SearchResult
from softcount.models.base import Problem
from softcount.models.declare import DeclaredNet
from softcount.models.network import Net, NetRows, levels_of
from softcount.models.nodes import Imagined, Params
from softcount.networks.network import describe_configuration
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

    return record.retry_wider(table, fit, runner, known_classes=False)


def _estimate(
    model: Net, ready: Sequence[Any], priors: Mapping[Any, Any], plan: Plan, starts: GraphStarts, runner: Runner
) -> Learned:
    seen = reduce(add, [model.seen(part) for part in ready])
    incomplete = any(model.needs_em(part) for part in ready)
    shown = reduce(add, [model.seen(part, all_numbers=True) for part in ready]) if incomplete else seen
    imagined = Imagined(model.nodes.hypers(shown, priors), plan.em_how)
    problem = Problem(model, imagined, ready, runner)
    reached, agreed, notes = None, None, list[str]()
    if incomplete:
        with one_blas_thread():
            result = _search(problem, plan, starts)
        reached, agreed = result.best, (result.agreed, result.tried)
        counts, params = model.nodes.unstacked(reached.counts), reached.params
        notes += [record.note_em("cells or nodes not seen", reached), *record.explain_stop(reached, plan)]
        notes += note_sampled(model, ready)
    else:
        stacked = model.nodes.stacked(seen)
        params = model.nodes.estimate(stacked, imagined)
        # The counts of complete rows give their log-likelihood, unless there are numbers.
        log_likelihood = (
            problem.expected(params).log_likelihood if model.stacks else model.nodes.completed(stacked, params)
        )
        counts = Counts(seen.arrays, seen.rows, log_likelihood)
    notes += note_unseen(model, counts)
    imagined = imagined.using(plan.how)
    if plan.how != plan.em_how:
        params = model.nodes.estimate(model.nodes.stacked(counts), imagined)
    facts = {} if reached is None else record.em_facts(reached, plan, counts)
    facts["log_likelihood"] = counts.log_likelihood
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
        makes = [partial(draw_start, model, rows, problem.imagined, rng) for rng in rngs]
    search = Search(problem, problem, plan)
    racing = len(makes) > 1 and plan.stop.tol > 0
    return search.best_of([[make] for make in makes]) if racing else search.each_of(makes[:1])


# How many categories a hidden node has.

AUTO = "auto"
MOST_LEVELS = 12


class LevelSearch(NumberSearch):
    """The numbers of categories of a hidden node tried so far, with the networks fitted with them."""

    declared: DeclaredNet
    hidden: dict[Any, Any]
    key: Any
    fit: Callable[..., Learned]

    def candidates(self) -> Iterable[int]:
        return range(1, MOST_LEVELS + 1)

    def attempt(self, number: int) -> None:
        declared = replace(self.declared, hidden={**self.hidden, self.key: number})
        self.fits[number] = found = self.fit(build=declared.build)
        height, size = found.counts.log_likelihood, found.n_parameters
        evidence = network_evidence(found) + lgamma(number + 1)
        short = record.bic(height, size, found.counts.rows)
        self.trials[number] = Trial(number, height, size, short, np.nan, evidence, None, number)


def fit_hidden_levels(declared: DeclaredNet, fit: Callable[..., Learned]) -> Learned:
    """Fit a network. Hidden nodes with "auto" categories get, one after another, the number with the most evidence."""
    unknown = [key for key, levels in declared.hidden.items() if isinstance(levels, str) and levels == AUTO]
    for key, levels in declared.hidden.items():
        if isinstance(levels, str) and levels != AUTO:
            raise DataError(f"hidden: {key!r} has a number of levels, their names, or 'auto', not {levels!r}.")
    known: dict[Any, Any] = {key: 1 if key in unknown else levels for key, levels in declared.hidden.items()}
    best: Learned | None = None
    for key in unknown:
        search = LevelSearch(declared, known, key, fit)
        search.run()
        known[key] = search.best
        listed = ", ".join(f"{levels}: {trial.evidence:,.1f}" for levels, trial in search.trials.items())
        best = search.fits[search.best]
        best = replace(best, notes=[*best.notes, f"{key!r} has {known[key]} levels by evidence ({listed})."])
    return best or fit(build=declared.build)


def network_evidence(learned: Learned) -> float:
    """Return the log marginal likelihood of the rows: exact if they are complete, else by Cheeseman and Stutz."""
    nodes = learned.model.nodes
    counts = nodes.stacked(learned.counts)
    whole = record.complete_evidence(learned.model, learned.imagined, learned.estimates, counts)
    return whole + (learned.log_likelihood or 0.0) - nodes.completed(counts, learned.estimates)


# Remarks on a fit.


def note_unseen(net: Net, counts: Counts) -> list[str]:
    """Return notes on the nodes with a configuration of their parents that no row has."""
    notes, graph = [], net.discrete
    levels = [[str(level) for level in levels_of(node) or ()] for node in net.with_levels]
    for name, parents in zip(graph.names, graph.parents, strict=True):
        empty = np.flatnonzero(counts.arrays[name].value.sum(axis=1) <= 0) if parents else np.zeros(0, int)
        if len(empty):
            names = [graph.names[parent] for parent in parents]
            where = describe_configuration(names, [levels[parent] for parent in parents], int(empty[0]))
            more = f" and {len(empty) - 1:,} more" if len(empty) > 1 else ""
            notes.append(f"{name!r}: no row was seen{where}{more}; its probabilities come from the prior alone.")
    return notes


def note_sampled(net: Net, ready: Sequence[NetRows]) -> list[str]:
    rows = sum(part.incomplete.sampled for part in ready) if net.sizes else 0
    if not rows:
        return []
    subject = "1 row shows" if rows == 1 else f"{rows:,} rows show"
    return [f"{subject} too little for exact sums: their expected counts and likelihood come from Gibbs sampling."]


# Initialisation of EM: rows near the same seed get the same category of a hidden node.

BLUR = 0.1
"""Share of every initial table that is taken from the marginal of its node."""
ENOUGH_ROWS = 4096
"""Number of rows among which seeds are drawn."""


def draw_start(net: Net, ready: NetRows, imagined: Imagined, rng: np.random.Generator) -> Params:
    """Estimate initial parameters from rows with filled-in hidden nodes.

    Part of every table is taken from the marginal of its node, smoothed so that no category is impossible.
    """
    codes = ready.codes.copy()
    for node in reversed(net.discrete.order):
        if node in net.hidden:
            codes[:, node] = _nearest_seeds(_neighbours(net, ready, codes, node), net.sizes[node], ready.weights, rng)
    counts = net.nodes.stacked(net.seen(replace(ready, codes=codes)))
    params, blurred = net.nodes.estimate(counts, imagined), {}
    for bundle in net.nodes.bundles:
        own = params.bundles[bundle.name]
        if "probability" in own:
            marginal = np.maximum(counts.arrays[bundle.name].value.sum(axis=0), 0.0) + 0.5
            marginal = marginal / marginal.sum(axis=-1, keepdims=True)
            blurred[bundle.name] = own | {"probability": (1 - BLUR) * own["probability"] + BLUR * marginal}
    return params.replaced(blurred)


def _neighbours(net: Net, ready: NetRows, codes: np.ndarray, node: int) -> np.ndarray:
    """Return (rows x features) neighbours of a node: its children, or else its parents and their other children."""
    graph, features = net.discrete, []
    for data, scope in zip(ready.data, net.parents_of_leaves, strict=True):
        if node in scope:
            values = data[0] if isinstance(data, tuple) else data
            features.append(_standardise(np.asarray(values, dtype=float).reshape(ready.n_rows, -1), ready.weights))
    near = list(graph.children[node])
    if not features and not any((codes[:, other] >= 0).any() for other in near):
        near = [*graph.parents[node], *(child for parent in graph.parents[node] for child in graph.children[parent])]
    # A column for every category of a neighbour; zeros in rows that do not show it.
    features += [
        (codes[:, other, None] == np.arange(net.sizes[other])) / np.sqrt(2.0)
        for other in near
        if other != node and (codes[:, other] >= 0).any()
    ]
    return np.concatenate([np.zeros((len(codes), 0)), *features], axis=1)


def _standardise(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the columns with mean 0 and variance 1; 0 for missing and infinite values."""
    with np.errstate(all="ignore"):
        weights = np.where(np.isfinite(values), weights[:, None], 0.0)
        values = values - (weights * np.where(weights > 0, values, 0.0)).sum(axis=0) / weights.sum(axis=0)
        spread = np.sqrt((weights * np.where(weights > 0, values, 0.0) ** 2).sum(axis=0) / weights.sum(axis=0))
        values = values / np.where(spread > 0, spread, 1.0)
    return np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)


def _nearest_seeds(features: np.ndarray, levels: int, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return for each row the number of its nearest seed; seeds are drawn by their distance from earlier ones."""
    if not features.shape[1] or not len(features):
        return rng.integers(levels, size=len(features))
    # Distinct rows in sorted order, so that neither row order nor repetition changes an initialisation.
    features, back = np.unique(features, axis=0, return_inverse=True)
    weights, n = np.bincount(back.ravel(), weights, len(features)), len(features)
    some = np.arange(n) if n <= ENOUGH_ROWS else np.sort(rng.choice(n, ENOUGH_ROWS, replace=False))
    apart = np.full(len(some), np.inf)
    seeds: list[np.ndarray] = []
    for _ in range(levels):
        chance = weights[some] * (apart if seeds else 1.0)
        total = chance.sum()
        picked = some[rng.choice(len(some), p=chance / total)] if total > 0 else rng.integers(n)
        seeds.append(features[picked])
        apart = np.minimum(apart, ((features[some] - seeds[-1]) ** 2).sum(axis=1))
    far = np.stack([((features - seed) ** 2).sum(axis=1) for seed in seeds], axis=1)
    # Break ties at random: without noise, all rows as near to several seeds would go to the first.
    return np.asarray((far + 1e-9 * rng.random(far.shape)).argmin(axis=1)[back.ravel()])
