"""Learning with known classes: one pass of counting, updates, merges and forgetting."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core import remedies
from softcount.core.counts import ROOT, Counts, Twofold
from softcount.errors import DataError
from softcount.families import How, Hyper
from softcount.families import Params as Own
from softcount.learn import record
from softcount.learn.em import run_em
from softcount.learn.initialise import count_open, imagine_groups
from softcount.learn.prepare import check_reach, read_all, recode_chunks, weight_lift, with_blanks
from softcount.learn.record import EMRun, FitRecord, Learned, Plan, count_cells
from softcount.models import align
from softcount.models.base import ClassModel, Problem, expected, with_weight
from softcount.models.declare import auto_priors, priors_of
from softcount.models.nodes import Imagined, Node, Params, node_hyper, refuse_families
from softcount.priors import Older
from softcount.run.local import Rows, Runner, total
from softcount.table import Chunk, Settled, Table, wording
from softcount.table.cell_values import missing_notes
from softcount.table.schema import Key, Schema

MANY_WORDS = 1_000
"""Number of words from which on a note warns of prior counts that exceed the labelled documents."""
LABELLED_FLOOR = 1e-24
"""Of the column's variance, a deviation of 1e-12: a class a million deviations from the others is not degenerate."""
Result = TypeVar("Result")

# One pass over rows of known classes.


def on_task(work: Callable[[Chunk], Result], task: Callable[[], Chunk]) -> Result:
    return work(task())


class Tallied(Struct, Generic[Result], frozen=True):
    """Sums over the rows, the settled schema, and the chunks if they had to be kept.

    Kept chunks were settled before they were counted. Without them the counts are still to be reordered.
    """

    total: Result
    model: ClassModel
    settled: Settled
    chunks: Rows | None


def count_once(
    table: Table,
    plan: Plan,
    runner: Runner,
    classes: Sequence[Any] | None,
    counting: Callable[[ClassModel, Chunk], Result],
) -> Tallied[Result]:
    """Rows of known class counted in one pass; levels are settled first if a family needs them."""
    cells = count_cells(table)
    chunks, settled, schema, groups = None, None, table.schema, 1 if classes is None else len(classes)
    if plan.declared.needs_levels or not runner.keeps_rows:
        chunks, settled = read_all(table, plan, runner, classes)
        schema, groups = settled.schema, len(settled.classes)
        cells = cells if runner.keeps_rows else count_cells(table)  # how many rows there are is known by now
    model = plan.declared.model(schema, groups, cells, LABELLED_FLOOR, table.bag_width)
    if chunks is None:
        found = total(runner, partial(on_task, partial(counting, model)), table.tasks())
    else:
        found = chunks.total(partial(counting, model)) if chunks.n_rows else None
    if found is None:
        raise DataError("the table has no rows.")
    return Tallied(found, model, settled or plan.declared.settle(table, classes), chunks)


def count_labelled(model: ClassModel, chunk: Chunk) -> Counts:
    return model.tally(model.prepare(chunk, base=False))


class _Both(NamedTuple):
    """Two results of a chunk that add separately."""

    one: Any
    other: Any

    def __add__(self, more: Any) -> _Both:
        return _Both(self.one + more.one, self.other + more.other)


def count_with_folds(table: Table, plan: Plan, runner: Runner, classes: Sequence[Any] | None) -> Tallied[Counts]:
    """Counts of rows of known class, and in the same pass what `plan.fold_counter` counts."""
    counter = plan.fold_counter

    def count_both(model: ClassModel, chunk: Chunk) -> _Both:
        return _Both(count_labelled(model, chunk), counter.counting(model, chunk))

    found = count_once(table, plan, runner, classes, count_both)
    counter.found = table, replace(found, total=found.total.other)
    return Tallied(found.total.one, found.model, found.settled, found.chunks)


def fit_labelled(table: Table, plan: Plan, runner: Runner, classes: Sequence[Any] | None = None) -> Learned:
    """Naive Bayes: one pass if every class is known; EM over the unknown ones if not."""
    learn = partial(_fit_labelled, plan=plan, runner=runner, classes=classes)
    try:
        return record.retry_wider(table.unchecked(), learn, runner)
    except InfiniteSums:
        # Cells are infinite, or too far from the first ones: read again, checking each, to name it or count anew.
        wider = record.retry_wider(table, lambda t: t.within_reach(t.chunks(runner.map)), runner)
        return record.retry_wider(wider, learn, runner)


class InfiniteSums(DataError):
    """Sums of some column that are no numbers."""

    def __init__(self) -> None:
        message = "the numbers of some column are too large to be squared and added. Divide the column by its scale."
        super().__init__(message)


def _fit_labelled(table: Table, plan: Plan, runner: Runner, classes: Sequence[Any] | None) -> Learned:
    plan = plan.for_labels(table)
    if plan.fold_counter is None or not runner.keeps_rows:
        found = count_once(table, plan, runner, classes, count_labelled)
    else:
        found = count_with_folds(table, plan, runner, classes)
    if not found.total.finite:
        raise InfiniteSums
    settled, names = found.settled, found.settled.classes
    counts = found.total if found.chunks is not None else found.model.in_order(found.total, settled, len(names))
    if counts.rows <= 0:
        raise DataError(
            "every label is unknown, so there is nothing to learn a class from. "
            + remedies.either("To find classes, use Mixture.", "To find classes, leave out --target.")
        )
    groups, weight, labelled = len(names), plan.unlabelled_weight or 0.0, counts[ROOT]
    cells = count_cells(table)
    model = found.model
    if not (model.groups == groups and weight == 1.0 and model.schema == settled.schema):
        model = plan.declared.model(settled.schema, groups, cells, LABELLED_FLOOR, table.bag_width, weight)
    counts, older = model.named(counts), plan.prior if isinstance(plan.prior, Older) else None
    if older is not None:
        model, counts = align.widen_model(
            model, counts, align.unite_schemas(model.schema, older.model.model.schema, None)
        )
    imagined = imagine_classes(model, counts, plan)
    if older is not None:
        counts, imagined = add_older(model, counts, imagined, plan, names)
    notes = [*table.all_notes, *settled.notes]
    chosen = auto_priors(_column_priors(plan, model.leaves), model.leaves, counts)
    for key, prior in chosen.items():
        notes.append(f"column {key!r}: a prior of {prior:.4g} has the highest marginal likelihood.")
    params = estimate_params(model, counts, imagined.using(plan.em_how))
    hidden = describe_hidden(table, model, plan)
    reached = None
    if hidden:
        why = f"is not for what is hidden ({hidden})"
        remedy = ", or leave those rows out (unlabelled_weight=0)"
        refuse_families(model.leaves, why, remedy if table.unknown_labels else None)
        if older is not None:
            raise DataError(
                f"{hidden}: an older model's counts cannot be joined with what EM expects yet. "
                "Leave those rows out (unlabelled_weight=0 for rows without a label), or merge() the two models."
            )
        if imagined.how != "ml":
            # Columns of which the prior counts more than the labelled rows: EM then learns less.
            notes += _note_heavy_priors(model, counts, imagined)
        kept = recode_chunks(table, settled, runner) if found.chunks is None else found.chunks
        check_reach(table, kept)
        reached, imagined = run_labelled_em(model, kept, plan, runner)
        counts, params = model.nodes.unstacked(reached.counts), reached.params
        notes.append(record.note_em(hidden, reached))
    if table.unknown_labels:
        notes += _unlabelled_notes(table, weight, names, labelled, counts[ROOT])
    if plan.how != plan.em_how:
        params = estimate_params(model, counts, imagined)
    notes += record.note_states(model, params, imagined, names)
    return Learned(
        model=model, estimates=params, counts=counts, imagined=imagined, classes=list(names), target=plan.target,
        notes=notes, prior=plan.prior, class_prior=plan.class_prior, estimate=plan.estimate,
        missing=record.count_missing(model, counts, table), interrupted=reached is not None and reached.interrupted,
        **({} if reached is None else record.em_facts(reached, plan, counts)),
    )  # fmt: skip


def _unlabelled_notes(
    table: Table, weight: float, names: Sequence[Any], labelled: np.ndarray, counted: np.ndarray
) -> list[str]:
    """That unlabelled rows are not used, or which class grew most by them."""
    if not weight:
        use = remedies.either("unlabelled_weight=1", "--model naive-bayes --unlabelled-weight 1")
        rows = f"{table.unknown_labels:,} rows" if table.unknown_labels > 1 else "1 row"
        return [f"{rows} without a label were not used. To learn from them by EM: {use}"]
    grown = int(np.argmax(counted / np.maximum(labelled, 1.0)))
    before, after = float(labelled[grown]), float(counted[grown])
    if after <= 1.1 * before:
        return []
    leave = remedies.setting("unlabelled_weight", 0)
    return [
        f"class {wording.cell(names[grown])} has {before:,.0f} labelled rows and counts as {after:,.0f} with the "
        f"unlabelled ones (to leave those out: {leave})."
    ]


def estimate_params(model: ClassModel, counts: Counts, imagined: Imagined) -> Params:
    return model.nodes.estimate(model.nodes.stacked(counts), imagined)


def _note_heavy_priors(model: ClassModel, counts: Counts, imagined: Imagined) -> list[str]:
    """Return notes on texts whose prior counts exceed the words of the labelled documents: EM then learns less.

    With a prior of 1, 300 messages of 20 Newsgroups gained a point or two less from 10,000 unlabelled ones than with
    0.1.
    """
    notes = []
    for leaf in model.leaves:
        facts, stats, hyper = leaf.family.facts, counts.arrays[leaf.key], imagined.hypers[leaf.key]
        if not facts.heavy_prior or len(leaf.setting.levels) < MANY_WORDS:
            continue
        added, known = float(hyper["alpha"].sum()), float(stats.hi[:, 1:].sum()) / stats.shape[0]
        if added > known:
            notes.append(
                f"column {leaf.key!r}: the prior adds {added:,.0f} words to every class, and the labelled documents "
                f"have about {known:,.0f}. Rows without a label teach more with prior=0.1 or 'auto'."
            )
    return notes


def describe_hidden(table: Table, model: ClassModel, plan: Plan) -> str:
    """What one pass cannot count, in words, or "": labels, or the first such column or block."""
    if table.unknown_labels and plan.for_labels(table).unlabelled_weight:
        return f"{table.unknown_labels:,} rows without a label are used as unlabelled rows"
    for leaf in model.leaves:
        if not leaf.describe_hidden(True):
            continue  # counting the holes of an array that was not read cell by cell takes longer than the fit
        hidden = leaf.describe_hidden(any(table.missing.get(c) for c in leaf.columns))
        if hidden:
            return hidden
    return ""


def run_labelled_em(model: ClassModel, kept: Rows, plan: Plan, runner: Runner) -> tuple[EMRun, Imagined]:
    """EM over missing labels, or over missing cells of a correlated block.

    It starts from the labelled rows, in units that all rows have: a few labels may not vary at all.
    """
    lift = weight_lift(kept, plan.how)
    kept = kept if lift == 1.0 else kept.made(partial(with_weight, factor=lift))
    if not all(leaf.family.facts.exact for leaf in model.leaves):
        model = with_blanks(model, kept.here)
    ready = kept.made(model.prepare)
    rows = model.gathered(ready.total(partial(count_open, model)))
    counts = model.named(ready.total(model.tally))
    priors = priors_of(plan.prior, model.leaves, 1.0)
    chosen = auto_priors(priors, model.leaves, counts)
    plan = replace(plan, prior=priors | chosen) if chosen else plan
    # Known classes alone decide where numbers are cut, and how wide their kernels are.
    own = _column_priors(plan, model.leaves)
    needing = [leaf for leaf in model.leaves if leaf.family.facts.needs_classes]
    decided = {leaf.key: node_hyper(leaf, own[leaf.key], counts.arrays[leaf.key]) for leaf in needing}
    first = imagine_classes(model, model.nodes.unstacked(rows), plan, decided).using(plan.em_how)
    params = estimate_params(model, counts, first)
    everything = expected(model, params, ready, runner)
    if np.isneginf(everything.log_likelihood):
        # An unlabelled row holds what no labelled one does: under `ml` it would be impossible in every class for ever.
        params = model.nodes.estimate(rows, first)
        everything = expected(model, params, ready, runner)
    imagined = imagine_classes(model, model.nodes.unstacked(everything), plan, decided)
    # Hidden weights of rows are found slowly: 40 rows of a student column took 378 plain steps.
    weighted = any(leaf.describe_hidden(False) for leaf in model.leaves)
    stop = replace(plan.stop, accelerate=plan.stop.accelerate or weighted)
    problem = Problem(model, imagined.using(plan.em_how), ready, runner)
    reached = run_em(problem, params, stop, plan.watching())
    if lift != 1.0:
        trace = [height / lift for height in reached.trace]
        reached = replace(reached, counts=reached.counts * (1.0 / lift), trace=trace)
    return reached, imagined


def imagine_classes(
    model: ClassModel, counts: Counts, plan: Plan, known: Mapping[Any, Hyper] | None = None
) -> Imagined:
    """Priors of a model whose classes are known: the scalar prior is for columns, class shares are as counted.

    Where complements of classes are all that is scored, classes are equally likely before, as in scikit-learn: how
    often each occurs is in the words of the others already.
    """
    priors = _column_priors(plan, model.leaves)
    alike = all(not leaf.family.facts.has_density for leaf in model.leaves)
    shares = "uniform" if plan.class_prior is None and alike else plan.class_prior
    root, how, fixed = _class_prior(shares, model.groups)
    return Imagined(model.nodes.hypers(counts, {ROOT: root, **priors}, known), plan.how, {ROOT: how}, fixed)


def _class_prior(class_prior: Any, groups: int) -> tuple[float, How, dict[Any, Own]]:
    """Prior counts of every class, how they are used, and the shares if they are given."""
    if class_prior is None:
        return 0.0, "ml", {}
    if isinstance(class_prior, str) and class_prior == "uniform":
        return 0.0, "ml", {ROOT: {"probability": np.full((1, groups), 1.0 / groups)}}
    try:
        shares = np.asarray(class_prior, dtype=float)
    except (TypeError, ValueError):
        raise DataError(
            f"class_prior={class_prior!r} is not known. Use None, 'uniform', a number, or one share per class."
        ) from None
    if shares.ndim == 0:
        return float(shares), "mean", {}
    if shares.shape != (groups,) or not (shares >= 0).all() or abs(shares.sum() - 1) > 1e-8:
        raise DataError(f"class_prior must be {groups} shares, one per class in sorted order, that sum to one.")
    return 0.0, "ml", {ROOT: {"probability": shares[None]}}


def _column_priors(plan: Plan, leaves: Sequence[Node]) -> dict[Any, Any]:
    """The prior of every column; an older model stands for its own."""
    return priors_of(plan.prior.prior if isinstance(plan.prior, Older) else plan.prior, leaves, 1.0)


def add_older(
    model: ClassModel, counts: Counts, imagined: Imagined, plan: Plan, names: Sequence[Any]
) -> tuple[Counts, Imagined]:
    """Add the older model's counts, times its weight."""
    if not isinstance(plan.prior, Older):
        return counts, imagined
    both = counts + align.align_counts(plan.prior.model, model, names) * plan.prior.weight
    return both, imagine_classes(model, both, plan)


# Merging fits of known classes: add or subtract counts and estimate again.

Fit = TypeVar("Fit", bound=Learned)
FADED = "older rows count for less"


def merge_fits(left: Fit, right: Fit, plan: Plan, sign: float = 1.0, grow: Collection[Key] | None = None) -> Fit:
    """The model of both tables, or of the left one without the rows of the right; `grow` as in `unite_models`."""
    model, classes = align.unite_models(left, right, grow)
    mine, theirs = align.align_counts(left, model, classes), align.align_counts(right, model, classes)
    if isinstance(right.prior, Older):
        # An older model stands behind each part; in the whole it counts once.
        theirs = theirs - align.align_counts(right.prior.model, model, classes) * right.prior.weight
    counts = mine + theirs if sign > 0 else mine - theirs
    if sign < 0:
        align.refuse_overdrawn(model, mine, counts)
    imagined = imagine_classes(model, counts, plan)
    missing = {k: left.missing.get(k, 0) + sign * right.missing.get(k, 0) for k in {*left.missing, *right.missing}}
    estimates = estimate_params(model, counts, imagined)
    before = record.note_states(left.model, left.estimates, left.imagined, left.classes or [])
    before += align.find_outdated_notes(left.notes, model.leaves)
    notes = [note for note in left.notes if note not in before]
    more = record.note_states(model, estimates, imagined, classes)
    more += align.describe_word_choice(left.schema, right.schema, merged=grow is None)
    more += missing_notes(right.notes) if sign > 0 else []
    notes += [note for note in more if note not in notes]
    return replace(
        left, model=model, estimates=estimates, counts=counts, imagined=imagined, classes=classes, missing=missing,
        notes=notes, record=FitRecord(),
    )  # fmt: skip


def add_classes(fitted: Fit, classes: Sequence[Any], plan: Plan) -> Fit:
    """A copy of the model with room for further classes."""
    names = align.sorted_levels(classes)
    model = fitted.model.with_leaves(fitted.model.leaves, len(names))
    counts = align.align_counts(fitted, model, names)
    imagined = imagine_classes(model, counts, plan)
    estimates = estimate_params(model, counts, imagined)
    return replace(
        fitted, model=model, counts=counts, imagined=imagined, classes=names, estimates=estimates, record=FitRecord()
    )


def discount(learned: Fit, rows: float, half_life: float | None) -> Fit:
    """Discount the counts as `rows` more rows come; no change without a half-life."""
    if half_life is None:
        return learned
    kept = 0.5 ** (rows / half_life)
    missing = {key: kept * n for key, n in learned.missing.items()}
    notes = [*(note for note in learned.notes if not note.startswith(FADED)), discount_note(half_life)]
    return replace(learned, counts=learned.counts * kept, missing=missing, notes=notes)


def discount_note(half_life: float) -> str:
    return f"{FADED}: half as much after {half_life:,.6g} others."


# Stepwise EM: each batch of rows is seen once.

STEPWISE = "learned in parts by stepwise EM: close to, but not exactly, the result of EM on all rows."
CHOSEN_EARLY = "the number of classes was chosen by the first part alone."


class Batch(Struct, frozen=True, eq=False):
    """Rows under a schema with room for all of their levels, and missing cells per column."""

    chunks: Sequence[Chunk]
    schema: Schema
    missing: dict[Key, float]

    @property
    def empty(self) -> bool:
        """Whether no row has a value."""
        return all(
            np.isnan(x.reals).all() and not x.codes.any() and not x.wide.any() and all(bag.nnz == 0 for bag in x.bags)
            for x in self.chunks
        )


def step_batch(learned: Fit, batch: Batch, plan: Plan, runner: Runner, step: float, half_life: float | None) -> Fit:
    """The mixture after one more batch (stepwise EM).

    It is learned from by the rate `step`, or so that rows count half after `half_life` others.
    """
    model, counts, problem = _make_room(learned, batch, plan, runner)
    found = model.nodes.unstacked(problem.expected(problem.estimate(model.nodes.stacked(counts))))
    before, rows = counts.rows, found.rows
    if half_life is not None:
        old, new = 0.5 ** (rows / half_life), 1.0
    else:
        eta = (before / rows + 2.0) ** -step
        old, new = (1.0 - eta) * (before + rows) / before, eta * (before + rows) / rows
    counts = counts * old + found * new
    imagined = _imagine_whole(model, counts, plan).using(plan.how)
    params = model.nodes.estimate(model.nodes.stacked(counts), imagined)
    kept = old if half_life is not None else 1.0
    missing = {key: kept * learned.missing.get(key, 0.0) + n for key, n in batch.missing.items()}
    more = record.note_degenerate(model, params, imagined)
    own = [STEPWISE]
    own += [CHOSEN_EARLY] if learned.selection is not None else []
    own += [discount_note(half_life)] if half_life is not None else []
    return replace(
        learned, model=model, estimates=params, counts=counts, imagined=imagined, missing=missing, trace=[],
        converged=False, log_likelihood=None, objective="", agreed=None, undecided=None, record=FitRecord(),
        notes=[*own, *_lasting_notes(learned), *more],
    )  # fmt: skip


def finish_batch(learned: Fit, batch: Batch, plan: Plan, runner: Runner) -> Fit:
    """The mixture after EM on these rows, starting from the stream's parameters."""
    model, counts, problem = _make_room(learned, batch, plan, runner)
    start = problem.estimate(model.nodes.stacked(counts))
    whole = model.nodes.unstacked(problem.expected(start))
    problem = replace(problem, imagined=_imagine_whole(model, whole, plan))
    reached = run_em(problem, start, plan.stop)
    counts, imagined = model.nodes.unstacked(reached.counts), problem.imagined.using(plan.how)
    last = plan.estimate == "predictive"
    params = model.nodes.estimate(model.nodes.stacked(counts), imagined) if last else reached.params
    more = [*record.explain_stop(reached, plan), *record.note_degenerate(model, params, imagined)]
    return replace(
        learned, model=model, estimates=params, counts=counts, imagined=imagined, missing=batch.missing, agreed=None,
        undecided=None, record=FitRecord(), interrupted=reached.interrupted, half_steps=plan.stop.half_steps,
        notes=[*_lasting_notes(learned), *more], **record.em_facts(reached, plan, counts),
    )  # fmt: skip


def _make_room(learned: Learned, batch: Batch, plan: Plan, runner: Runner) -> tuple[ClassModel, Counts, Problem]:
    """The model with room for the batch, its counts, and the batch as a problem."""
    model, counts = align.widen_model(learned.model, learned.counts, batch.schema)
    ready: list[Any] = list(runner.map(model.prepare, batch.chunks))
    return model, counts, Problem(model, _imagine_whole(model, counts, plan), ready, runner)


def _imagine_whole(model: ClassModel, counts: Counts, plan: Plan) -> Imagined:
    """Prior parameters from the counts of all groups together."""
    priors = priors_of(plan.prior, model.leaves, "row")
    priors |= auto_priors(priors, model.leaves, counts)
    shares = Twofold.of(np.full(model.groups, counts.rows / model.groups))
    whole = {key: array.sum(0, keepdims=True) for key, array in counts.arrays.items() if key is not ROOT}
    return imagine_groups(model, replace(counts, arrays={**whole, ROOT: shares}), priors, plan)


def _lasting_notes(learned: Learned) -> list[str]:
    before = record.note_degenerate(learned.model, learned.estimates, learned.imagined)
    passing = (STEPWISE, CHOSEN_EARLY, FADED)
    return [note for note in learned.notes if not note.startswith(passing) and note not in before]
