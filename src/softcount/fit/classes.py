"""Models of classes: naive Bayes, the ensemble and AODE for known classes, mixtures for classes to be found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core import remedies
from softcount.evaluate.decide import HowDecided, choose_ensemble, keep_better
from softcount.evaluate.folds import FoldsBeside
from softcount.evaluate.known_rows import known_rows
from softcount.evaluate.learn_model import ClassSearch, choose_densities, learn_model
from softcount.evaluate.scores import Evaluation, cross_validate, hold_out, judged
from softcount.evaluate.warnings import doubts, measure_dependence
from softcount.fit import reread
from softcount.fitted.fitted import Fitted
from softcount.learn.record import FitRecord, StartTraces
from softcount.learn.settings import Plan
from softcount.run.local import Runner, Threads
from softcount.table import Table
from softcount.table.chunk import Split

if TYPE_CHECKING:
    from softcount.evaluate.aode import StarPlan
    from softcount.evaluate.ranking import ScoredRows

FOLDS = 5
MOST_MEMBERSHIPS = 10_000_000
"""Rows times classes up to which the entropy of a mixture's memberships is computed."""
UNTRIED = (
    "how good the model is on rows held out was not found: with rows without a label, or holes in a block of columns, "
    "every fold takes EM, which needs all rows on one machine."
)


class ClassRequest(Struct, frozen=True):
    """A model of the classes that a target or labels tell or, with a `search`, of classes to be found.

    `classes` are the names of coded labels. Known classes are predicted by naive Bayes unless `ensemble` (whatever does
    best in cross-validation, within a `budget` of seconds) or `stars` (AODE) is asked for. The model is evaluated in
    `folds` (default 5; 0: not at all), or on the share `holdout` of the rows.
    """

    plan: Plan = field(default_factory=Plan)
    search: ClassSearch | None = None
    classes: Sequence[Any] | None = None
    calibration: str | None = None
    column_weights: bool = False
    stars: StarPlan | None = None
    ensemble: bool = False
    budget: float | None = None
    folds: int | None = None
    holdout: float | None = None
    seed: int = 0
    checkpoint: str | None = None

    @property
    def n_folds(self) -> int:
        """How many folds the model is evaluated in; 0 for none."""
        return FOLDS if self.folds is None else self.folds

    @property
    def _share(self) -> Split | None:
        return None if self.holdout is None else Split(2, self.seed, self.holdout)

    def settle(self, table: Table, runner: Runner, evaluated: bool = False) -> tuple[Table, Self]:
        """Choose the densities that were left open, and have folds counted in the pass that learns."""
        if self.search is not None and self.search.criterion is not None:
            return table, self  # the search compares the densities chosen with the default ones
        table, plan = choose_densities(table, self.plan, runner, known_classes=self.search is None)
        counted = self.search is None and self.stars is None and self.n_folds and self.holdout is None
        if evaluated and counted and runner.keeps_rows and not table.has_weights:
            plan = replace(plan, beside=FoldsBeside(Split(self.n_folds, self.seed)))
        return table, replace(self, plan=plan)

    def learn(self, table: Table, runner: Runner) -> Fitted:
        """The model, with the ensemble that predicts its classes if one is asked for."""
        if self.search is not None:
            traces = StartTraces(self.plan.watch or (lambda *seen: None))
            with self._logged(replace(self.plan, watch=traces)) as plan:
                found = learn_model(table, plan, runner, self.search)
            chosen_by = None if found.selection is None else self.search.criterion
            starts = traces.nearest(found.trace[-1]) if found.trace else ()
            return replace(found, record=FitRecord(criterion=chosen_by, starts=starts))
        fitted = learn_model(table, self.plan, runner, calibration=self.calibration, classes=self.classes)
        if fitted.interrupted:
            return fitted
        if self.column_weights:
            from softcount.evaluate.column_weights import weighed

            return weighed(fitted, table, self.plan, runner, self.classes)
        if self.stars is not None:
            from softcount.evaluate.aode import with_stars

            return with_stars(fitted, reread(table, fitted.schema), runner, self.stars, self.classes)
        return self._with_ensemble(fitted, table, runner) if self.ensemble else fitted

    @contextmanager
    def _logged(self, plan: Plan) -> Iterator[Plan]:
        """The plan with the checkpoint that EM runs are written to, if there is one."""
        if self.checkpoint is None:
            yield plan
            return
        from softcount.files.checkpoint_file import checkpointed

        with checkpointed(self.checkpoint) as log:
            yield replace(plan, log=log)

    def _with_ensemble(self, fitted: Fitted, table: Table, runner: Runner) -> Fitted:
        """Have the classes predicted by the ensemble, unless naive Bayes alone is better; with how that did."""
        naive_bayes = self._cross_validate(table, runner, None)
        how = HowDecided(self.budget, self.folds or None, self._share)
        again = reread(table, fitted.schema)
        # Rows that an engine has are brought here to choose by.
        with nullcontext(runner) if runner.keeps_rows else Threads() as threads:
            found, held = choose_ensemble(fitted, lambda: known_rows(fitted, again, runner, self.classes), threads, how)
        if found.pool is not None:
            found = keep_better(found, None if naive_bayes is None else naive_bayes.log_loss, held)
        evaluation = naive_bayes if found.pool is None else self._judge(held, found)
        return replace(found, record=replace(found.record or FitRecord(), evaluation=evaluation))

    def complete(self, fitted: Fitted, table: Table, runner: Runner) -> Fitted:
        """Evaluate a model of known classes and warn of what speaks against it; measure how classes overlap."""
        if self.search is not None:
            return self._with_entropy(fitted, table, runner)
        record = fitted.record or FitRecord()
        evaluation = record.evaluation if self.ensemble else self._evaluate(fitted, table, runner)
        losses = None if evaluation is None else (evaluation.log_loss, evaluation.baseline_log_loss)
        fitted = replace(fitted, record=replace(record, evaluation=evaluation))
        if runner.keeps_rows:
            columns, pairs = measure_dependence(fitted, reread(table, fitted.schema))
            return replace(fitted, notes=[*doubts(fitted, columns, losses), *fitted.notes], dependent=pairs)
        found = doubts(fitted, [], losses)
        if evaluation is None and self.n_folds and fitted.trace:
            found.append(f"{UNTRIED} Leave out {remedies.either('engine', '--engine')} for that.")
        return replace(fitted, notes=[*found, *fitted.notes])

    def _evaluate(self, fitted: Fitted, table: Table, runner: Runner) -> Evaluation | None:
        if self.column_weights:
            return None
        if self.stars is None:
            return self._cross_validate(table, runner, None if fitted.calibration is None else self.calibration)
        from softcount.evaluate.aode import held_stars

        if not self.n_folds:
            return None
        known = known_rows(fitted, reread(table, fitted.schema), runner, self.classes)
        return self._judge(held_stars(fitted, known, self.stars, self.n_folds, self._share), fitted)

    def _cross_validate(self, table: Table, runner: Runner, calibration: str | None) -> Evaluation | None:
        if not self.n_folds:
            return None
        if self.holdout is not None:
            return hold_out(table, self.plan, runner, self.holdout, self.seed, calibration, self.classes)
        return cross_validate(table, self.plan, runner, self.n_folds, self.seed, calibration, self.classes)

    def _judge(self, held: ScoredRows | None, fitted: Fitted) -> Evaluation | None:
        """What the answers for held-out rows are worth."""
        if held is None or not self.n_folds:
            return None
        how = f"{self.n_folds}-fold cross-validation"
        tested = len(np.unique(held.folds))
        if self.holdout is not None:
            how = f"{100 * self.holdout:g} % held out"
        elif tested != self.n_folds:
            how = f"{tested} of {self.n_folds} folds held out"
        return replace(judged(held, fitted.shares, by_fold=True), how=how)

    def _with_entropy(self, fitted: Fitted, table: Table, runner: Runner) -> Fitted:
        """The same with how undecided its rows are between the classes; for a long table that is left out."""
        many = (table.n_rows or MOST_MEMBERSHIPS) * fitted.n_groups > MOST_MEMBERSHIPS
        if fitted.undecided is not None or not runner.keeps_rows or many or fitted.estimate == "predictive":
            return fitted
        from softcount.learn.record import memberships_entropy

        ready = [fitted.model.prepare(chunk) for chunk in reread(table, fitted.schema).chunks(runner.map)]
        return replace(fitted, undecided=memberships_entropy(fitted.model, fitted.estimates, ready, runner))
