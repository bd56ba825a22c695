"""Models of classes: naive Bayes, the ensemble and AODE for known classes, mixtures for classes to be found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.classify.encode import GLANCED_AT, EncodedColumns
from softcount.classify.ensemble import SMALLEST, Ensemble, HeldScores, count_copies, fit_ensemble, log_posteriors
from softcount.classify.members import Training
from softcount.core import remedies
from softcount.core.lazy import lazy_function
from softcount.errors import warn
from softcount.evaluate.calibrate import calibrate
from softcount.evaluate.folds import FoldCounter, KnownRows, draw_known_rows
from softcount.evaluate.ranking import ScoredRows
from softcount.evaluate.scores import Evaluation, cross_validate, evaluate_rows
from softcount.evaluate.warnings import find_warnings, measure_dependence
from softcount.files.other_models import open_checkpoint
from softcount.fit import reread
from softcount.fitted.ensemble_scorers import EnsembleScorer
from softcount.fitted.fitted import Fitted
from softcount.learn.known_classes import fit_labelled
from softcount.learn.record import FitRecord, Plan, StartTraces, memberships_entropy
from softcount.run.local import Runner, Threads
from softcount.run.progress import announce
from softcount.table import Table
from softcount.table.chunk import Split
from softcount.table.column_summary import find_repeats, row_keys

if TYPE_CHECKING:
    from softcount.evaluate.aode import AodePlan
    from softcount.learn import choose
    from softcount.learn.mixture import Starts


choose_families = lazy_function("softcount.learn.density_choice", "choose_families")


class ClassSearch(Struct, frozen=True):
    """A search for classes: its initialisations, and the criterion that chooses their number (None: it is given).

    The criterion also chooses among `plans`, if there are any: one for each value of `setting`.
    """

    starts: Starts
    criterion: str | None = None
    plans: Mapping[str, Plan] | None = None
    setting: str = ""


def _search_numbers(table: Table, plan: Plan, runner: Runner, search: ClassSearch) -> choose.ClassSearch:
    """Choose the number of classes under the chosen densities, or under the default ones if these are better.

    Densities are chosen by all rows together, which classes may contradict, and a column whose density is chosen is
    not put in a block: on breast cancer that lost 19 nats per held-out row.
    """
    from softcount.learn.choose import search_classes

    def search_under(plan: Plan) -> choose.ClassSearch:
        assert search.criterion is not None
        opened, own = choose_families(table, plan, runner, known_classes=False)
        return search_classes(opened, own, search.starts, runner, search.criterion)

    found = search_under(plan)
    if found.interrupted or not (plan.declared.all_auto or plan.declared.auto):
        return found
    other = search_under(replace(plan, declared=replace(plan.declared, auto=frozenset(), all_auto=False)))
    if found.merit >= other.merit:
        return found
    other.remarks.append(
        f"Columns keep their default kinds: the {search.criterion} is {other.figure} with {other.best} classes; with "
        f"densities chosen by all rows together it is {found.figure} with {found.best}."
    )
    return other


# -- the models that predict the classes, chosen by held-out rows: naive Bayes, or an ensemble that does better

FEW_ROWS = 10
"""Labelled rows below which naive Bayes is used without cross-validation."""
MOST_NAMED = 20
"""Columns left out that are named."""
FEW_CELLS = 20_000
"""Cells and words up to which one thread is quicker than two, which wait for each other."""
WEIGHTED = "Held-out figures use the row weights: they hold for new rows that are weighted in the same way."
NAIVE_BAYES_ALONE = "Using standard naive Bayes alone"


def _count_labelled(given: KnownRows) -> int:
    """Count the rows with a label; copies of a row count once if there are few distinct rows."""
    total = int(count_copies(given.weights).sum())
    blocks, bags = (given.rows.numbers, given.rows.codes), given.rows.bags
    some = row_keys([block[:GLANCED_AT] for block in blocks], [bag[:GLANCED_AT] for bag in bags])
    if len(np.unique(some)) >= FEW_ROWS:
        return total
    counts = given.weights if (given.weights == np.round(given.weights)).all() else np.ones(len(given.labels))
    found = find_repeats(row_keys(blocks, bags), given.labels, counts, blocks, bool(bags))
    return found.rows - found.repeats if found.copies else total


def _training(fitted: Fitted, given: KnownRows) -> Training:
    columns = EncodedColumns.of(fitted.schema)
    return Training(given.rows, given.labels, given.weights, fitted.n_groups, columns.sizes, columns.measured)


def _ensemble_notes(held: HeldScores, given: KnownRows, copies: dict[int, int], keys: Sequence[object]) -> list[str]:
    """Note columns that were left out, repeated rows, and weights that do not count independent rows."""
    notes = [f"column {keys[copy]!r} repeats {keys[lead]!r} and is left out." for copy, lead in copies.items()]
    if len(copies) > 1:
        pairs = [f"{keys[copy]!r} (repeats {keys[lead]!r})" for copy, lead in list(copies.items())[:MOST_NAMED]]
        more = f" and {len(copies) - MOST_NAMED} more" if len(copies) > MOST_NAMED else ""
        notes = [f"{len(copies)} columns repeat another one and are left out: {', '.join(pairs)}{more}."]
    assert held.repeats is not None
    notes += [note for note in [held.repeats.describe()] if note is not None]
    counts = not held.repeats.copies and np.array_equal(given.weights, np.round(given.weights))
    if not counts and np.ptp(given.weights) > 0:
        notes.append(WEIGHTED)
    if len(given.labels) < given.of:
        notes.append(f"The ensemble was trained on {len(given.labels):,} of {given.of:,} rows.")
    if (held.logs.argmax(axis=1) == held.labels).all():
        notes.append("Cross-validation made no errors, so probabilities on new data may be overconfident.")
    return notes


def keep_better(
    fitted: Fitted, ensemble: Ensemble, naive_bayes: Evaluation | None, held: ScoredRows | None = None
) -> Fitted:
    """Predict by the ensemble, or by naive Bayes alone if text has a lower cross-validated log-loss under it.

    Naive Bayes also learns from rows without a label, which helps if few have one. The note has the spread of the
    log-loss over the folds of the rows `held` out.
    """
    if naive_bayes is not None:
        ensemble = replace(ensemble, plain=naive_bayes.log_loss, plain_accuracy=naive_bayes.accuracy)
    if fitted.texts and ensemble.plain <= ensemble.log_loss:
        note = f"{NAIVE_BAYES_ALONE}: cross-validated log-loss {ensemble.plain:.4g}; the ensemble of "
        note += f"{' and '.join(ensemble.names)} has {ensemble.log_loss:.4g}."
        return fitted.with_notes(note)
    spread = ""
    if held is not None:
        own = -np.log(np.maximum(held.proba[np.arange(len(held.labels)), held.labels], SMALLEST))
        folds = [held.folds == fold for fold in np.unique(held.folds)]
        losses = [np.average(own[rows], weights=held.weights[rows]) for rows in folds]
        spread = f" (± {np.std(losses, ddof=1):.2g} over {len(losses)} folds)" if len(losses) > 1 else ""
    parts = sorted(zip(ensemble.names, ensemble.weights.tolist(), strict=True), key=lambda part: -part[1])
    (first, weight), *rest = parts
    members = ", ".join([f"{first} (weight {weight:.2f})", *(f"{name} ({weight:.2f})" for name, weight in rest)])
    plain = "" if np.isnan(ensemble.plain) else f"; standard naive Bayes has {ensemble.plain:.4g}"
    note = f"Ensemble: {members}. Cross-validated log-loss {ensemble.log_loss:.4g}{spread}{plain}."
    return replace(fitted, scorer=EnsembleScorer(ensemble)).with_notes(note)


# -- the request

FOLDS = 5
MOST_MEMBERSHIPS = 10_000_000
"""Rows times classes up to which the entropy of a mixture's memberships is computed."""
UNTRIED = (
    "the model was not evaluated on held-out rows: with missing labels, or missing cells in a block of columns, every "
    "fold needs EM, which needs all rows on one machine."
)


class ClassRequest(Struct, frozen=True):
    """A model of known classes or, with a `search`, of classes to be found.

    `classes` are the names of coded labels. Known classes are predicted by naive Bayes, by an `ensemble` (chosen by
    cross-validation, within a `budget` of seconds) or by `aode`. The model is evaluated in `folds` (default 5; 0: not
    at all), or on the share `holdout` of the rows.
    """

    plan: Plan = field(default_factory=Plan)
    search: ClassSearch | None = None
    classes: Sequence[Any] | None = None
    calibration: str | None = None
    column_weights: bool = False
    aode: AodePlan | None = None
    ensemble: bool = False
    budget: float | None = None
    folds: int | None = None
    holdout: float | None = None
    seed: int = 0
    checkpoint: str | None = None

    @property
    def n_folds(self) -> int:
        """Number of folds of the evaluation; 0 for none."""
        return FOLDS if self.folds is None else self.folds

    @property
    def _share(self) -> Split | None:
        return None if self.holdout is None else Split(2, self.seed, self.holdout)

    def settle(self, table: Table, runner: Runner, evaluated: bool = False) -> tuple[Table, Self]:
        """Choose the densities that were left open, and plan to count folds in the pass that learns."""
        if self.search is not None and self.search.criterion is not None:
            return table, self  # the search compares the densities chosen with the default ones
        plan = self.plan
        if plan.declared.leaves_open:
            table, plan = choose_families(table, plan, runner, self.search is None)
        counted = evaluated and self.search is None and not self.aode and self.n_folds and self.holdout is None
        if counted and runner.keeps_rows and not table.has_weights:
            plan = replace(plan, fold_counter=FoldCounter(Split(self.n_folds, self.seed)))
        return table, replace(self, plan=plan)

    def learn(self, table: Table, runner: Runner) -> Fitted:
        """Learn the model, and the ensemble that predicts its classes if one is wanted."""
        if (why := table.schema.unsaveable) is not None:
            warn(f"this model cannot be saved: {why}")  # before the work, not when it is to be saved
        if self.search is not None:
            return self._find_classes(table, runner, self.search)
        fitted = Fitted.of(fit_labelled(table, self.plan, runner, self.classes))
        if fitted.interrupted:
            return fitted
        if self.calibration:
            plan = replace(self.plan, watch=None)
            fitted = calibrate(fitted, table, plan, runner, self.calibration, self.classes)
        if self.column_weights:
            from softcount.evaluate.columns import fit_column_weights

            return fit_column_weights(fitted, table, self.plan, runner, self.classes)
        if self.aode:
            from softcount.evaluate.aode import fit_aode

            return fit_aode(fitted, reread(table, fitted.schema), runner, self.aode, self.classes)
        return self._with_ensemble(fitted, table, runner) if self.ensemble else fitted

    def _find_classes(self, table: Table, runner: Runner, search: ClassSearch) -> Fitted:
        traces = StartTraces(self.plan.watch or (lambda *seen: None))
        with nullcontext() if self.checkpoint is None else open_checkpoint(self.checkpoint) as log:
            plan = replace(self.plan, watch=traces, log=log)
            if search.plans is not None:
                from softcount.learn.choose import fit_best_plan

                assert search.criterion is not None
                plans = {name: replace(own, watch=traces, log=log) for name, own in search.plans.items()}
                found = fit_best_plan(table, plans, search.setting, search.starts, runner, search.criterion)
            elif search.criterion is not None:
                found = _search_numbers(table, plan, runner, search).chosen()
            else:
                from softcount.learn.mixture import fit_groups

                found = fit_groups(table, plan, search.starts, runner)
        chosen_by = None if found.selection is None else search.criterion
        starts = traces.nearest(found.trace[-1]) if found.trace else ()
        return replace(Fitted.of(found), record=FitRecord(criterion=chosen_by, starts=starts))

    def _with_ensemble(self, fitted: Fitted, table: Table, runner: Runner) -> Fitted:
        """Predict the classes by an ensemble, unless naive Bayes alone is better, and evaluate the predictions."""
        naive_bayes = self._cross_validate(table, runner, None)
        # Rows of an engine are fetched to choose by.
        with nullcontext(runner) if runner.keeps_rows else Threads() as threads:
            found, ensemble, held = self._choose_ensemble(fitted, table, runner, threads)
        if ensemble is not None:
            found = keep_better(found, ensemble, naive_bayes, held)
        evaluation = naive_bayes if found.scorer.is_naive else self._judge(held, found)
        return replace(found, record=replace(found.record, evaluation=evaluation))

    def _choose_ensemble(
        self, fitted: Fitted, table: Table, runner: Runner, threads: Runner
    ) -> tuple[Fitted, Ensemble | None, ScoredRows | None]:
        """Return the model with notes, the ensemble that predicts held-out rows best, and its predictions of them.

        With `holdout`, these are predictions of that share of the rows by an ensemble of the others, unless there are
        too few of either. The rows are not read if there is only one class.
        """
        if fitted.n_groups < 2:
            return fitted.with_notes(f"{NAIVE_BAYES_ALONE}: there is only one class."), None, None
        given = draw_known_rows(fitted, reread(table, fitted.schema), runner, self.classes)
        if _count_labelled(given) < FEW_ROWS:
            note = f"{NAIVE_BAYES_ALONE}: fewer than {FEW_ROWS} rows have a label."
            return fitted.with_notes(note), None, None
        copies = given.rows.find_copies()
        if copies:
            given = replace(given, rows=given.rows.mask_columns(copies))
        scored = None
        with Threads(1) as alone:
            worker = alone if given.rows.cells <= FEW_CELLS else threads
            if self._share is not None:
                out = self._share.of_numbers(given.numbers) == 0
                inside, tested = given.take(np.flatnonzero(~out)), given.take(np.flatnonzero(out))
                if len(inside.labels) >= FEW_ROWS and len(tested.labels):
                    other, _ = fit_ensemble(_training(fitted, inside), worker, self.budget, self.folds or None)
                    proba = np.exp(log_posteriors(other.scores(tested.rows)))
                    scored = ScoredRows(proba, tested.labels, tested.weights, np.zeros_like(tested.labels))
            ensemble, held = fit_ensemble(_training(fitted, given), worker, self.budget, self.folds or None)
        notes = [*fitted.notes, *_ensemble_notes(held, given, copies, EncodedColumns.of(fitted.schema).keys)]
        record = replace(fitted.record, gains=held.gains)
        if self._share is None:
            scored = ScoredRows(np.exp(held.logs), held.labels, held.weights, held.folds)
        return replace(fitted, notes=notes, record=record), ensemble, scored

    def complete(self, fitted: Fitted, table: Table, runner: Runner) -> Fitted:
        """Evaluate a model of known classes and add warnings; measure the overlap of classes that were found."""
        if self.search is not None:
            return self._with_entropy(fitted, table, runner)
        evaluation = fitted.record.evaluation if self.ensemble else self._evaluate(fitted, table, runner)
        losses = None if evaluation is None else (evaluation.log_loss, evaluation.baseline_log_loss)
        fitted = replace(fitted, record=replace(fitted.record, evaluation=evaluation))
        if runner.keeps_rows:
            announce("looking for columns that depend on each other")
            columns, pairs = measure_dependence(fitted, reread(table, fitted.schema))
            return replace(fitted, notes=[*find_warnings(fitted, columns, losses), *fitted.notes], dependent=pairs)
        found = find_warnings(fitted, [], losses)
        if evaluation is None and self.n_folds and fitted.trace:
            found.append(f"{UNTRIED} Leave out {remedies.either('engine', '--engine')} for that.")
        return replace(fitted, notes=[*found, *fitted.notes])

    def _evaluate(self, fitted: Fitted, table: Table, runner: Runner) -> Evaluation | None:
        if self.column_weights:
            return None
        if not self.aode:
            return self._cross_validate(table, runner, self.calibration if fitted.scorer.is_calibrated else None)
        from softcount.evaluate.aode import cross_validate_aode

        if not self.n_folds:
            return None
        announce("cross-validating AODE")
        known = draw_known_rows(fitted, reread(table, fitted.schema), runner, self.classes)
        return self._judge(cross_validate_aode(fitted, known, self.aode, self.n_folds, self._share), fitted)

    def _cross_validate(self, table: Table, runner: Runner, calibration: str | None) -> Evaluation | None:
        if not self.n_folds:
            return None
        announce("cross-validating naive Bayes")
        how = self.n_folds, self.seed, calibration, self.classes, self.holdout
        return cross_validate(table, self.plan, runner, *how)

    def _judge(self, held: ScoredRows | None, fitted: Fitted) -> Evaluation | None:
        if held is None or not self.n_folds:
            return None
        how = f"{self.n_folds}-fold cross-validation"
        tested = len(np.unique(held.folds))
        if self.holdout is not None:
            how = f"{100 * self.holdout:g} % held out"
        elif tested != self.n_folds:
            how = f"cross-validation, {tested} of {self.n_folds} folds"
        return evaluate_rows(held, fitted.shares, how, by_fold=True)

    def _with_entropy(self, fitted: Fitted, table: Table, runner: Runner) -> Fitted:
        """Add the entropy of the memberships, unless the table is long."""
        many = (table.n_rows or MOST_MEMBERSHIPS) * fitted.n_groups > MOST_MEMBERSHIPS
        if fitted.undecided is not None or not runner.keeps_rows or many or fitted.estimate == "predictive":
            return fitted
        ready = [fitted.model.prepare(chunk) for chunk in reread(table, fitted.schema).chunks(runner.map)]
        return replace(fitted, undecided=memberships_entropy(fitted.model, fitted.estimates, ready, runner))
