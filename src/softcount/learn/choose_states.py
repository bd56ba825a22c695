"""How many hidden states there are, where nobody said."""

from __future__ import annotations

import warnings
from dataclasses import field, replace
from math import lgamma

import numpy as np

from softcount.errors import DataError, DataWarning, warn
from softcount.learn.choose import LEAST_ROWS, MOST_CLASSES, PATIENCE, SMALL_TOL, gap_beside, growing
from softcount.learn.evidence import bic, complete_evidence
from softcount.learn.hidden_states import Build, StepRows, fit_states
from softcount.learn.learned import Learned, Trial
from softcount.learn.plan import Plan, plug
from softcount.learn.state_starts import StateStarts
from softcount.models.base import StateModel
from softcount.records import dataclass
from softcount.run.base import Runner
from softcount.run.progress import best_so_far

TRIAL_STARTS = 5
TRIAL_MAPS = 100


def fit_auto_states(
    steps: StepRows, build: Build, plan: Plan, starts: StateStarts, runner: Runner, criterion: str = "evidence"
) -> Learned:
    """A chain of as many states as the criterion likes best; `selection` tells of all the numbers tried."""
    if not isinstance(starts.init, str):
        raise DataError("init: a start from parameters or a model says how many states there are. Say so.")
    search = StateSearch(steps, build, plan, starts, runner, criterion)
    search.run()
    return search.chosen()


@dataclass(slots=True)
class StateSearch:
    """The numbers of states tried so far, with their fits."""

    steps: StepRows
    build: Build
    plan: Plan
    starts: StateStarts
    runner: Runner
    criterion: str
    trials: dict[int, Trial] = field(default_factory=dict)
    fits: dict[int, Learned] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def best(self) -> int:
        """The number with the most merit so far; of equals the smallest."""
        return max(sorted(self.trials), key=lambda states: self.trials[states].merit(self.criterion))

    def run(self) -> None:
        """Numbers grow by about half while one of the last two brought something; then gaps beside the best."""
        least = max(1, len(self.steps.named or ()))
        most = max(least, min(MOST_CLASSES, self.steps.sequences.n_steps))
        for states in growing(least, most):
            if not self._tried(states) or sum(tried > self.best for tried in self.trials) >= PATIENCE:
                break
        while not self.interrupted and (gap := gap_beside(self.best, sorted(self.trials))) is not None:
            self._tried(gap)

    def _tried(self, states: int) -> bool:
        stop = self.plan.stop
        stop = replace(stop, tol=max(stop.tol, SMALL_TOL) if stop.tol else 0.0, max_iter=min(stop.max_iter, TRIAL_MAPS))
        plan = replace(self.plan, stop=stop, estimate=plug(self.plan.estimate))
        few = replace(self.starts, states=states, n_init=min(self.starts.n_init, TRIAL_STARTS))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # of a number that is only tried nothing is said
                self.fits[states] = fit_states(self.steps, self.build, plan, few, self.runner)
        except KeyboardInterrupt:
            best_so_far()
            if not self.trials:
                raise
            self.interrupted = True
            return False
        self.trials[states] = weighed(self.fits[states])
        self.interrupted = self.fits[states].interrupted
        return not self.interrupted

    def chosen(self) -> Learned:
        """The best number climbed to its end, from all starts and from what its trial came to."""
        best = self.best
        stop = replace(self.plan.stop, max_iter=0) if self.interrupted else self.plan.stop
        starts = replace(self.starts, states=best)
        if self.interrupted:
            known = self.fits[best].estimates
            starts = replace(starts, init=lambda model, imagined: known)
        extra = [] if self.interrupted else [self.fits[best].estimates]
        plan = replace(self.plan, stop=stop)
        fitted = fit_states(self.steps, self.build, plan, starts, self.runner, extra)
        if self.plan.estimate != "predictive":
            self.trials[best] = weighed(fitted)
        tried = [self.trials[states] for states in sorted(self.trials)]
        numbers = ", ".join(str(trial.classes) for trial in tried)
        why = f"{best} states have the best {self.criterion} of the numbers tried: {numbers}."
        if self.interrupted:
            why = "interrupted: this is the best of the numbers of states tried so far."
            warn(why)
        stopped = self.interrupted or fitted.interrupted
        return replace(fitted, selection=tried, interrupted=stopped, notes=[*fitted.notes, why])


def weighed(fitted: Learned) -> Trial:
    """Every criterion at a fit."""
    model: StateModel = fitted.model  # type: ignore[assignment]
    counts = model.nodes.stacked(fitted.counts)
    height, size = counts.log_likelihood, model.nodes.n_parameters()
    enough = model.occupied(fitted.counts) >= LEAST_ROWS
    evidence = state_evidence(fitted)
    return Trial(model.states, height, size, bic(height, size, counts.rows), np.nan, evidence, None, int(enough.sum()))


def state_evidence(fitted: Learned) -> float:
    """Log marginal likelihood of the sequences by Cheeseman and Stutz, as of a mixture: see `cheeseman_stutz`."""
    model: StateModel = fitted.model  # type: ignore[assignment]
    params, counts = fitted.estimates, model.nodes.stacked(fitted.counts)
    whole = complete_evidence(model, fitted.imagined, params, counts)
    unnamed = model.states - len(fitted.named or ()) if model.links.is_free else 0
    return whole + counts.log_likelihood - model.nodes.completed(counts, params) + lgamma(unnamed + 1)
