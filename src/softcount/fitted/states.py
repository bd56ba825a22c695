"""A fitted hidden Markov model and its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar, cast

import numpy as np
from msgspec.structs import replace

from softcount.core.counts import ROOT, Counts, Twofold
from softcount.core.lazy import entr, xlogy
from softcount.families import Params as Own
from softcount.fitted.answers import Answer
from softcount.fitted.class_answers import marginal
from softcount.fitted.classes import SurpriseMeter
from softcount.fitted.explain import runner_up
from softcount.fitted.fitted import Fitted, complete_names, register_fitted
from softcount.learn.record import Learned
from softcount.models.base import DeadEnd, impossible_error
from softcount.models.hidden_chain import CompiledChain, HiddenChain, PathRows
from softcount.models.nodes import Imagined
from softcount.run.local import Runner, runs_of
from softcount.sequences import Sequences
from softcount.table import Chunk, Table
from softcount.table.schema import Key, Kind

Result = TypeVar("Result")


@register_fitted("hidden-chain")
class FittedStates(Learned, frozen=True, eq=False, dict=True):
    def suitable_estimator(self) -> tuple[str, dict[str, Any]]:
        return "HiddenMarkov", {"n_states": self.n_states, "prior": self.prior, "estimate": self.estimate}

    @property
    def chain(self) -> HiddenChain:
        return cast(HiddenChain, self.model)

    # -- what was learned

    @property
    def n_states(self) -> int:
        return self.chain.states

    @property
    def first(self) -> np.ndarray:
        return self.compiled.first

    @property
    def transitions(self) -> np.ndarray:
        """Transition matrix (states x states): row i holds the probabilities of the state that follows state i."""
        return self.compiled.following

    @property
    def names(self) -> list[Any]:
        """The known names of the states; states without a name are numbered from 0."""
        return complete_names(self.named or [], self.n_states)

    @property
    def durations(self) -> np.ndarray:
        """The expected number of steps spent in each state per visit; infinite if the state is never left."""
        leaving = 1.0 - np.diag(self.transitions)
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(leaving > 0, 1.0 / np.maximum(leaving, 1e-300), np.inf))

    @property
    def stationary(self) -> np.ndarray:
        """The long-run share of each state if the chain begins with the initial probabilities."""
        return self.chain.long_run(self.estimates)

    @property
    def occupied(self) -> np.ndarray:
        """The expected number of training steps in each state."""
        return self.chain.occupied(self.counts)

    @cached_property
    def compiled(self) -> CompiledChain:
        return self.chain.compile(self.estimates)

    @cached_property
    def shown(self) -> Fitted:
        """The emissions as a mixture model of single steps, weighted by the long-run shares of the states."""
        star, arrays = self.chain.star, {leaf.key: self.counts.arrays[leaf.key] for leaf in self.chain.leaves}
        sizes = self.occupied @ self.chain.sharing
        shares = np.maximum(self.stationary @ self.chain.sharing, 1e-300)
        counts = Counts({ROOT: Twofold.of(sizes), **arrays}, self.counts.rows, self.counts.log_likelihood)
        hypers = {leaf.key: self.imagined.hypers[leaf.key] for leaf in self.chain.leaves}
        imagined = Imagined({ROOT: {"alpha": np.full(star.groups, 1.0 / star.groups)}, **hypers}, self.imagined.how)
        leaves = {leaf.key: self.estimates[leaf.key] for leaf in self.chain.leaves}
        names = self.names if self.named is not None and self.chain.groups == self.n_states else None
        return Fitted(
            model=star, estimates=star.params(shares / shares.sum(), leaves), counts=counts, imagined=imagined,
            prior=self.prior, estimate=self.estimate, missing=self.missing, named=names,
        )  # fmt: skip

    @property
    def params(self) -> dict[Key, Own]:
        """The parameters of every column in the user's units, with states on the first axis.

        States that share emissions have the same values.
        """
        places = list(self.chain.links.shown)
        own = self.chain.star.public(self.shown.estimates)
        return {key: {name: part[places] for name, part in values.items()} for key, values in own.items()}

    @property
    def levels(self) -> dict[Key, Any]:
        return dict(self.shown.levels)

    # -- sequences

    def table(self, sequences: Sequences) -> Table:
        return sequences.table(schema=self.schema, missing=self.schema.missing)

    def each(
        self, sequences: Sequences, table: Table, runner: Runner, question: Callable[[PathRows], Result]
    ) -> list[Result]:
        """Apply `question` to parts of whole sequences and return the results in order.

        A step that is impossible under the model raises an error that names its place.
        """
        chunks = sequences.chunks(table, runner.map)
        parts = [part for chunk in chunks for part in self.chain.arranged([self.chain.prepare(chunk)])]
        runs = runs_of(parts, runner.n_jobs) if self.chain.worth_threads() else [parts]
        try:
            return [found for run in runner.map(partial(_each_of, question), runs) for found in run]
        except DeadEnd as end:
            raise end.at(sequences.place(end.row)) from None

    def best_paths(self, part: PathRows) -> tuple[np.ndarray, np.ndarray]:
        """Return the most probable path of every sequence (Viterbi) and its log-probability with the observations."""
        own = self.compiled
        path, logs = self.chain.paths.best_paths(
            self.chain.scores(own, part, own=False), part.borders, own.first, own.following
        )
        self._refuse(part, logs)
        return path, logs + np.add.reduceat(np.broadcast_to(part.base, part.n_rows), part.borders[:-1])

    def smooth(self, part: PathRows) -> np.ndarray:
        """Return the (steps x states) probabilities of each state given the whole sequence."""
        own = self.compiled
        found = self.chain.scores(own, part)
        self._refuse(part, self.chain.paths.expect_paths(found, part.borders, None, own.first, own.following)[0])
        return found

    def filter(self, part: PathRows) -> tuple[np.ndarray, np.ndarray]:
        """Return the (steps x states) probabilities given the steps so far, and each step's log-probability."""
        own = self.compiled
        found = self.chain.scores(own, part)
        heights = self.chain.paths.filter_paths(found, part.borders, own.first, own.following)
        self._refuse(part, heights)
        return found, heights + part.base

    def predict_ahead(self, part: PathRows, filtered: np.ndarray) -> np.ndarray:
        """Return the (steps x states) probabilities of each state given the previous steps only."""
        found = np.empty_like(filtered)
        found[1:] = filtered[:-1] @ self.transitions
        found[part.borders[:-1]] = self.first
        return found

    def sequence_logs(self, part: PathRows) -> np.ndarray:
        """Return the log-probability of every sequence of a part; a log-density if there are numeric columns."""
        return np.add.reduceat(self.filter(part)[1], part.borders[:-1])

    def _refuse(self, part: PathRows, logs: np.ndarray) -> None:
        if not np.isfinite(logs).all():
            raise impossible_error(self.chain, self.compiled, part)

    def count(self, part: PathRows) -> Counts:
        found = self.chain.expect(self.compiled, part)
        self._refuse(part, np.array([found.log_likelihood]))
        return self.chain.nodes.unstacked(self.chain.gathered(found))

    def with_counts(self, counts: Counts) -> FittedStates:
        params = self.chain.nodes.estimate(self.chain.nodes.stacked(counts), self.imagined)
        return replace(self, counts=counts, estimates=params, log_likelihood=counts.log_likelihood)


def _each_of(question: Callable[[PathRows], Result], parts: Sequence[PathRows]) -> list[Result]:
    return [question(part) for part in parts]


# Queries on a fitted hidden Markov model: explanations of a state, anomalies, forecasts, new sequences.

BEFORE, AFTER, STATE = "(before)", "(after)", "(state)"
"""Keys of an explanation: the steps before, the steps after, and the state itself."""


def explain_states(fitted: FittedStates, part: PathRows, against: int | None) -> dict[Any, np.ndarray]:
    """Explain each step's most probable state by the steps before, each column and the steps after.

    The contributions add up exactly to the log-odds of the state against the runner-up, or against `against` if given.
    All probabilities are given the whole sequence.
    """
    members = fitted.smooth(part)
    predicted = fitted.predict_ahead(part, fitted.filter(part)[0])
    rows, state = np.arange(part.n_rows), members.argmax(axis=1)
    other = runner_up(members, state) if against is None else np.full(part.n_rows, against)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(members[rows, state]) - np.log(members[rows, other])
        before = np.log(predicted[rows, state]) - np.log(predicted[rows, other])
    found: dict[Any, np.ndarray] = {"state": state, "against": other, BEFORE: before}
    shown, chain = np.array(fitted.chain.links.shown), fitted.chain
    for key, own in chain.star.score_parts(fitted.compiled.emissions, part).items():
        found[key] = own[rows, shown[state]] - own[rows, shown[other]]
    seen = sum(value for key, value in found.items() if key not in ("state", "against"))
    with np.errstate(invalid="ignore"):
        found[AFTER] = odds - seen
    return found


def surprises(fitted: FittedStates, meter: SurpriseMeter, chunk: Chunk, part: PathRows) -> dict[Any, np.ndarray]:
    """Return how much less likely each step is than usual given the steps before, in nats, by column and state.

    With r the filtered and f the predicted state probabilities, the surprise of a step splits exactly into KL(r, f) and
    the contribution of each column in its states. From each part its entropy averaged over f is subtracted.
    """
    members, _ = fitted.filter(part)
    predicted = fitted.predict_ahead(part, members)
    with np.errstate(divide="ignore", invalid="ignore"):
        rare = np.where(members > 0, xlogy(members, members) - xlogy(members, predicted), 0.0).sum(axis=1)
    found: dict[Any, np.ndarray] = {STATE: rare - entr(predicted).sum(axis=1)}
    shown, expected = members @ fitted.chain.sharing, predicted @ fitted.chain.sharing
    scores = fitted.chain.star.score_parts(fitted.compiled.emissions, part)
    for leaf in fitted.chain.leaves:
        column = fitted.chain.star.column(leaf, chunk)
        found |= meter.reasons_of(leaf, column, scores[leaf.key], shown, expected)
    return found


# -- forecasts


def forecast_states(fitted: FittedStates, part: PathRows, steps: int) -> np.ndarray:
    """Return the (sequences x steps x states) probabilities of each state in the next steps."""
    here = fitted.filter(part)[0][part.borders[1:] - 1]
    found = np.empty((len(here), steps, fitted.n_states))
    for step in range(steps):
        here = here @ fitted.transitions
        found[:, step] = here
    return found


def forecast_values(fitted: FittedStates, states: np.ndarray, level: float) -> dict[str, list[Any]]:
    """Return forecast columns under (steps x states) probabilities.

    A number has its mean and the central interval of probability `level`. A discrete column has its most probable
    category and that category's probability.
    """
    shares, found = states @ fitted.chain.sharing, dict[str, list[Any]]()
    tail = 0.5 * (1 - level)
    for column in (column for leaf in fitted.chain.leaves for column in leaf.columns):
        density, levels = marginal(fitted.shown, column)
        name = str(column)
        if levels is not None:
            odds = shares @ density.params["probability"]
            found |= {name: [levels[at] for at in odds.argmax(axis=1)], f"{name} p": odds.max(axis=1).tolist()}
            continue
        answers = [Answer(row / row.sum(), density) for row in shares]
        found[name] = [answer.mean for answer in answers]
        found[f"{name} low"] = [answer.quantile(tail) for answer in answers]
        found[f"{name} high"] = [answer.quantile(1 - tail) for answer in answers]
    return found


# -- new sequences


def draw_path(fitted: FittedStates, length: int, rng: np.random.Generator, state: int | None = None) -> np.ndarray:
    """Draw the states of a new sequence; if `state` is given, the path continues after that state."""
    edges, path = np.cumsum(fitted.transitions, axis=1), np.empty(length, dtype=int)
    first = np.cumsum(fitted.first)
    for step, luck in enumerate(rng.random(length)):
        row = first if state is None else edges[state]
        state = min(int(np.searchsorted(row, luck * row[-1], side="right")), fitted.n_states - 1)
        path[step] = state
    return path


def draw_cells(fitted: FittedStates, path: np.ndarray, rng: np.random.Generator) -> Mapping[Key, Any]:
    groups, found = np.array(fitted.chain.links.shown)[path], dict[Key, Any]()
    for leaf in fitted.chain.leaves:
        values = leaf.density(fitted.estimates).draw_columns(groups, rng)
        for column, part in zip(leaf.columns, values, strict=True):
            whole = fitted.schema[column].kind is Kind.COUNT
            found[column] = np.asarray(part, np.int64) if whole else part
    return {spec.key: found[spec.key] for spec in fitted.schema.used if spec.key in found}
