"""Bayesian networks: structure, categories of hidden nodes, tables and an evaluation of the class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from math import lgamma
from typing import Any, Self

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.errors import DataError
from softcount.evaluate.scores import Evaluation, LabelledRows, refitted
from softcount.fit import reread
from softcount.fit.network_priors import network_priors
from softcount.fit.network_structure import SearchSettings, Structure, structure_of
from softcount.fitted.network import FittedNet
from softcount.learn.networks import GraphStarts, fit_network
from softcount.learn.record import FitRecord, Learned, complete_evidence
from softcount.learn.settings import Plan
from softcount.models.declare import DeclaredNet
from softcount.run.local import Runner
from softcount.table import Chunk, Chunks, Key, Table, open_table
from softcount.table.chunk import Split

AUTO = "auto"
FOLDS = 5
MOST_LEVELS = 12
PATIENCE = 2
"""Numbers of levels tried beyond the best one."""


class NetworkRequest(Struct, frozen=True):
    """A Bayesian network of a table's columns, of `hidden` nodes, and of the target of the plan.

    `edges` is anything that `network_structure.structure_of` takes; `classes` are the names of coded labels, and
    `class_levels` further levels of the class that a prior names. The class is evaluated in `folds` (None: not at all),
    or on the share `holdout` of the rows.
    """

    plan: Plan
    edges: Any = None
    search: SearchSettings = field(default_factory=SearchSettings)
    hidden: Any = None
    cut: Mapping[Key, Any] = field(default_factory=dict)
    prior: Any = 1.0
    sample_size: float = 1.0
    starts: GraphStarts = field(default_factory=GraphStarts)
    classes: list[Any] | None = None
    class_levels: list[Any] = field(default_factory=list)
    intervals: int | None = None
    folds: int | None = None
    holdout: float | None = None
    seed: int = 0

    def settle(self, table: Table, runner: Runner, evaluated: bool = False) -> tuple[Table, Self]:
        """Nothing is left to the rows before they are learned from."""
        return table, self

    def learn(self, table: Table, runner: Runner) -> FittedNet:
        """The network: its edges, where they are to be found, and its tables; by EM where something is not seen."""
        declared = self.declare(table, structure_of(self.edges, self.plan.target, self.search))
        priors = partial(network_priors, prior=self.prior, sample_size=self.sample_size)
        fit = partial(fit_network, table, priors_of=priors, plan=self.plan, starts=self.starts, runner=runner)
        return replace(FittedNet.of(choose_levels(declared, fit)), target=self.plan.target)

    def declare(self, table: Table, structure: Structure) -> DeclaredNet:
        """What is said of the network, for a table whose columns are known."""
        target, hidden = self.plan.target, self.hidden or {}
        if hidden == AUTO:
            named = () if structure.graph is None else structure.graph.names
            hidden = {name: AUTO for name in named if name not in table.keys and name != target}
        cells = 0 if table.n_rows is None else table.n_rows * max(1, len(table.schema.used))
        declared = DeclaredNet(
            self.plan.declared, structure.graph, structure.shape, structure.search, dict(hidden), dict(self.cut),
            target, self.classes, self.class_levels, cells,
        )  # fmt: skip
        return declared if self.intervals is None else replace(declared, intervals=self.intervals)

    def complete(self, fitted: FittedNet, table: Table, runner: Runner) -> FittedNet:
        """Count missing cells, and evaluate how the class of unseen rows is predicted."""
        again = reread(table, fitted.schema)
        for task in again.tasks():
            task()
        missing = {key: float(n) for key, n in again.missing.items() if key in fitted.net.graph.number}
        if self.plan.target is not None:
            missing[self.plan.target] = float(again.unknown_labels)
        record = fitted.record or FitRecord()
        if self.plan.target is not None and self.folds:
            record = replace(record, evaluation=self._evaluate(fitted, table, again, runner))
        return replace(fitted, missing=missing, record=record)

    def _evaluate(self, fitted: FittedNet, table: Table, again: Table, runner: Runner) -> Evaluation | None:
        """Fit a network to the other rows for every fold, with a structure of its own if structure is searched.

        None if too few rows have a class.
        """
        codes = class_codes(fitted, again)
        parts = [np.ones(0), *(w for _, w in again.weights() if w is not None)]
        weights = np.concatenate(parts) if again.has_weights else np.ones(len(codes))
        rows = LabelledRows(codes, weights, len(fitted.levels[fitted.target]))
        folds = FOLDS if self.folds is None else self.folds
        split, how = Split(folds, self.seed), f"{folds}-fold cross-validation"
        if self.holdout is not None:
            split, how = Split(2, self.seed, self.holdout), f"{100 * self.holdout:g} % held out"
        return refitted(rows, split, how, partial(self._refit, fitted, table, runner))

    def _refit(
        self, fitted: FittedNet, table: Table, runner: Runner, weights: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        """The probabilities of the class in some rows, by a network that was learned with these weights."""
        kinds: Any = dict(self.plan.declared.forced)
        if table.sides.weight is not None:
            kinds[table.sides.weight] = "ignore"
        missing, target = table.schema.missing, self.plan.target
        weighted = open_table(table.source, kinds=kinds, missing=missing, target=target, weights=weights)
        net = replace(self, plan=replace(self.plan, watch=None)).learn(weighted, runner)
        some: Any = Chunks(list(_take_rows((task() for task in reread(table, net.schema).tasks()), rows)))
        order = [net.levels[target].index(level) for level in fitted.levels[target]]
        return net.proba(some, target)[:, order]


def _take_rows(chunks: Iterable[Chunk], rows: np.ndarray) -> Iterator[Chunk]:
    for chunk in chunks:
        own = rows[(rows >= chunk.start) & (rows < chunk.start + chunk.n_rows)] - chunk.start
        if len(own):
            yield chunk.take(own)


def class_codes(fitted: FittedNet, table: Table) -> np.ndarray:
    """The class of every row of a table that is open with its target, as the network numbers it; -1 where unknown."""
    known = {str(level): place for place, level in enumerate(fitted.levels[fitted.target])}
    return np.array([-1 if x is None else known.get(str(x), -1) for x in table.labels()], dtype=np.int64)


# -- how many levels a hidden node has


def choose_levels(declared: DeclaredNet, fit: Callable[..., Learned]) -> Learned:
    """The fit; hidden nodes whose number of levels is "auto" get the number of the most evidence, one after another."""
    unknown = [key for key, levels in declared.hidden.items() if isinstance(levels, str) and levels == AUTO]
    for key, levels in declared.hidden.items():
        if isinstance(levels, str) and levels != AUTO:
            raise DataError(f"hidden: {key!r} has a number of levels, their names, or 'auto', not {levels!r}.")
    if not unknown:
        return fit(build=declared.build)
    known: dict[Any, Any] = {key: 1 if key in unknown else levels for key, levels in declared.hidden.items()}
    best: Learned | None = None
    for key in unknown:
        tried: dict[int, float] = {}
        found: dict[int, Learned] = {}
        for levels in range(1, MOST_LEVELS + 1):
            found[levels] = fit(build=replace(declared, hidden={**known, key: levels}).build)
            tried[levels] = network_evidence(found[levels]) + lgamma(levels + 1)
            known[key] = max(tried, key=tried.__getitem__)
            if levels - known[key] >= PATIENCE or found[levels].interrupted:
                break
        best = found[known[key]]
        listed = ", ".join(f"{levels}: {height:,.1f}" for levels, height in tried.items())
        best = replace(best, notes=[*best.notes, f"{key!r} has {known[key]} levels by evidence ({listed})."])
    assert best is not None
    return best


def network_evidence(learned: Learned) -> float:
    """Log marginal likelihood of the rows: exact if they are complete, else by Cheeseman and Stutz."""
    nodes = learned.model.nodes
    counts = nodes.stacked(learned.counts)
    whole = complete_evidence(learned.model, learned.imagined, learned.estimates, counts)
    return whole + (learned.log_likelihood or 0.0) - nodes.completed(counts, learned.estimates)
