"""Known classes: naive Bayes in one pass, EM where some labels or cells of a block are hidden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softcount import remedies
from softcount.counts import ROOT, Counts
from softcount.errors import DataError
from softcount.families import How, Hyper
from softcount.families import Params as Own
from softcount.learn.em import climb
from softcount.learn.learned import Learned
from softcount.learn.plan import (
    Plan,
    absent,
    cells_of,
    climb_facts,
    climb_note,
    plug,
    retyping,
    state_notes,
)
from softcount.learn.prepare import (
    LABELLED_FLOOR,
    check_reach,
    count_labelled,
    recoded_chunks,
    tallied_beside,
    weight_lift,
    with_blanks,
)
from softcount.learn.rules import Climb
from softcount.learn.start import open_counts
from softcount.models.align import Older, aligned, grown
from softcount.models.base import ClassModel, Problem, expected
from softcount.models.declared import priors_of
from softcount.models.nodes import Imagined, Params, best_evidence, node_hyper, refuse_scores, refuse_unknown
from softcount.models.row_steps import preparing, tallying, weighing
from softcount.run.base import Runner
from softcount.run.rows import Rows
from softcount.table import Table, wording


def fit_labelled(table: Table, plan: Plan, runner: Runner, classes: Sequence[Any] | None = None) -> Learned:
    """Naive Bayes: one pass if every class is known; EM over the unknown ones if not."""
    try:
        return retyping(table.unchecked(), lambda t: _fit_labelled(t, plan, runner, classes), runner)
    except InfiniteSums:
        # Cells are infinite, or too far from the first ones: read again, checking each, to name it or count anew.
        wider = retyping(table, lambda t: t.within_reach(t.chunks(runner.map)), runner)
        return retyping(wider, lambda t: _fit_labelled(t, plan, runner, classes), runner)


class InfiniteSums(DataError):
    """Sums of some column that are no numbers."""

    def __init__(self) -> None:
        said = "the numbers of some column are too large to be squared and added. Divide the column by its scale."
        super().__init__(said)


def _fit_labelled(table: Table, plan: Plan, runner: Runner, classes: Sequence[Any] | None) -> Learned:
    plan = plan.for_labels(table)
    found = tallied_beside(table, plan, runner, classes, count_labelled)
    if not found.total.finite:
        raise InfiniteSums
    settled, names = found.settled, found.settled.classes
    counts = found.total if found.in_order else found.model.in_order(found.total, settled, len(names))
    if counts.rows <= 0:
        raise DataError(
            "every label is unknown, so there is nothing to learn a class from. To find classes, use Mixture."
        )
    groups, weight, labelled = len(names), plan.unlabelled_weight or 0.0, counts[ROOT]
    cells = cells_of(table)
    model = found.model
    if not (model.groups == groups and weight == 1.0 and model.schema == settled.schema):
        model = plan.declared.model(settled.schema, groups, cells, LABELLED_FLOOR, table.bag_width, weight)
    model, counts = grown(model, model.named(counts), plan.prior)
    imagined = imagine_classes(model, counts, plan)
    counts, imagined = with_older(model, counts, imagined, plan, names)
    notes = [*table.told, *settled.notes, *chosen_notes(model, counts, plan)]
    params = estimated(model, counts, imagined.using(plug(plan.how)))
    hidden = what_is_hidden(table, model, plan)
    reached = None
    if hidden:
        _refuse_hidden(model, plan, hidden, known=not table.unknown_labels)
        notes += _swamped_notes(model, counts, imagined)
        kept = recoded_chunks(table, settled, runner) if found.chunks is None else found.chunks
        check_reach(table, kept)
        reached, imagined = climb_labelled(model, kept, plan, runner)
        counts, params = model.nodes.unstacked(reached.counts), reached.params
        notes.append(climb_note(hidden, reached))
    if table.unknown_labels:
        notes += _unlabelled_notes(table, weight, names, labelled, counts[ROOT])
    if plan.estimate == "predictive" or plan.how != plug(plan.how):
        params = estimated(model, counts, imagined)
    notes += state_notes(model, params, imagined, names)
    return Learned(
        model=model, estimates=params, counts=counts, imagined=imagined, classes=list(names), target=plan.target,
        notes=notes, prior=plan.prior, class_prior=plan.class_prior, estimate=plan.estimate,
        missing=absent(model, counts, table), interrupted=reached is not None and reached.interrupted,
        **climb_facts(reached, plan, counts),
    )  # fmt: skip


def _unlabelled_notes(
    table: Table, weight: float, names: Sequence[Any], labelled: np.ndarray, counted: np.ndarray
) -> list[str]:
    """What became of rows without a label: that they are not used, or the class that grew most by them."""
    if not weight:
        use = remedies.setting("unlabelled_weight", 1)
        rows = f"{table.unknown_labels:,} rows" if table.unknown_labels > 1 else "1 row"
        return [f"{rows} without a label not used. To learn from unlabelled rows by EM: {use}"]
    grown = int(np.argmax(counted / np.maximum(labelled, 1.0)))
    before, after = float(labelled[grown]), float(counted[grown])
    if after <= 1.1 * before:
        return []
    leave = remedies.setting("unlabelled_weight", 0)
    return [
        f"class {wording.cell(names[grown])} has {before:,.0f} labelled rows and counts as {after:,.0f} with the "
        f"unlabelled ones (to leave those out: {leave})."
    ]


def estimated(model: ClassModel, counts: Counts, imagined: Imagined) -> Params:
    """The parameters that counts by node give."""
    return model.nodes.estimate(model.nodes.stacked(counts), imagined)


def _refuse_hidden(model: ClassModel, plan: Plan, hidden: str, known: bool) -> None:
    """Raise where a column cannot do without what is hidden; `known` are the classes of all rows."""
    why = f"is not for what is hidden ({hidden})"
    refuse_scores(model.leaves, why)
    if not known:
        refuse_unknown(model.leaves, why, ", or leave those rows out (unlabelled_weight=0)")
    if isinstance(plan.prior, Older):
        raise DataError(
            f"{hidden}: an older model's counts cannot be joined with what EM expects yet. "
            "Leave those rows out (unlabelled_weight=0 for rows without a label), or merge() the two models."
        )


def what_is_hidden(table: Table, model: ClassModel, plan: Plan) -> str:
    """What is hidden that one pass cannot count, in words, or nothing: labels, or the first such column or block."""
    if table.unknown_labels and plan.for_labels(table).unlabelled_weight:
        return f"{table.unknown_labels:,} rows without a label used as unlabelled"
    for leaf in model.leaves:
        if not leaf.family.hidden(leaf.key, holes=True):
            continue  # counting the holes of an array that was not read cell by cell takes longer than the fit
        hidden = leaf.family.hidden(leaf.key, any(table.missing.get(c) for c in leaf.columns))
        if hidden:
            return hidden
    return ""


def climb_labelled(model: ClassModel, kept: Rows, plan: Plan, runner: Runner) -> tuple[Climb, Imagined]:
    """EM over what is hidden beside known classes: labels with gaps, holes in a correlated block.

    It starts from the labelled rows, in units that all rows have: a few labels may not vary at all.
    """
    lift = weight_lift(kept, plan.how)
    kept = kept if lift == 1.0 else kept.made(weighing(lift))
    if not all(leaf.family.exact for leaf in model.leaves):
        model = with_blanks(model, kept.here)
    ready = kept.made(preparing(model))
    rows, told = open_counts(model, ready), model.named(ready.total(tallying(model)))
    plan = _decided(plan, model, told)
    decided = _from_classes(model, told, plan)
    first = imagine_classes(model, model.nodes.unstacked(rows), plan, decided).using(plug(plan.how))
    params = estimated(model, told, first)
    everything = expected(model, params, ready, runner)
    if np.isneginf(everything.log_likelihood):
        # An unlabelled row holds what no labelled one does: under `ml` it would be impossible in every class for ever.
        params = model.nodes.estimate(rows, first)
        everything = expected(model, params, ready, runner)
    imagined = imagine_classes(model, model.nodes.unstacked(everything), plan, decided)
    # Hidden weights of rows are found slowly: 40 rows of a student column took 378 plain steps.
    weighted = any(leaf.family.hidden(leaf.key, holes=False) for leaf in model.leaves)
    stop = replace(plan.stop, accelerate=plan.stop.accelerate or weighted)
    problem = Problem(model, imagined.using(plug(plan.how)), ready, runner)
    reached = climb(problem, params, stop, plan.watching())
    if lift != 1.0:
        trace = [height / lift for height in reached.trace]
        reached = replace(reached, counts=reached.counts * (1.0 / lift), trace=trace)
    return reached, imagined


def _swamped_notes(model: ClassModel, counts: Counts, imagined: Imagined) -> list[str]:
    """Columns of which the prior imagines more than the labelled rows have: EM then learns less."""
    if imagined.how == "ml":
        return []
    said = [x.family.swamped(counts.arrays[x.key], imagined.hypers[x.key], x.setting) for x in model.leaves]
    return [note for note in said if note is not None]


def _decided(plan: Plan, model: ClassModel, told: Counts) -> Plan:
    """The plan with what `"auto"` stands for. Labelled rows choose: before EM the others are in all classes alike."""
    priors = priors_of(plan.prior, model.leaves, 1.0)
    auto = [leaf for leaf in model.leaves if isinstance(priors[leaf.key], str) and priors[leaf.key] == "auto"]
    chosen = {leaf.key: best_evidence(leaf, told.arrays[leaf.key]) for leaf in auto}
    return replace(plan, prior=priors | chosen) if auto else plan


def _from_classes(model: ClassModel, told: Counts, plan: Plan) -> dict[Any, Hyper]:
    """What is decided by known classes alone: where numbers are cut, how wide their kernels are."""
    leaves = [leaf for leaf in model.leaves if leaf.family.needs_classes]
    priors = priors_of(_own_prior(plan.prior), model.leaves, 1.0)
    return {leaf.key: node_hyper(leaf, priors[leaf.key], told.arrays[leaf.key]) for leaf in leaves}


def imagine_classes(
    model: ClassModel, counts: Counts, plan: Plan, known: Mapping[Any, Hyper] | None = None
) -> Imagined:
    """Priors of a model whose classes are known: the scalar prior is for columns, class shares are as counted.

    Where complements of classes are all that is scored, classes are equally likely before, as in scikit-learn: how
    often each occurs is in the words of the others already.
    """
    priors = priors_of(_own_prior(plan.prior), model.leaves, 1.0)
    alike = all(leaf.family.equal_classes for leaf in model.leaves)
    shares = "uniform" if plan.class_prior is None and alike else plan.class_prior
    root, how, fixed = _class_prior(shares, model.groups)
    return Imagined(model.nodes.hypers(counts, {ROOT: root, **priors}, known), plan.how, {ROOT: how}, fixed)


def chosen_notes(model: ClassModel, counts: Counts, plan: Plan) -> list[str]:
    """What `"auto"` chose, column by column."""
    priors = priors_of(_own_prior(plan.prior), model.leaves, 1.0)
    auto = [leaf for leaf in model.leaves if isinstance(priors[leaf.key], str) and priors[leaf.key] == "auto"]
    return [
        f"column {leaf.key!r}: a prior of {best_evidence(leaf, counts.arrays[leaf.key]):.4g} has the best evidence."
        for leaf in auto
    ]


def _class_prior(class_prior: Any, groups: int) -> tuple[float, How, dict[Any, Own]]:
    """Counts imagined of every class, how they are used, and the shares where they are given."""
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


def _own_prior(prior: Any) -> Any:
    return prior.prior if isinstance(prior, Older) else prior


def with_older(
    model: ClassModel, counts: Counts, imagined: Imagined, plan: Plan, names: Sequence[Any]
) -> tuple[Counts, Imagined]:
    """The older model's counts, times its weight, added to what was observed."""
    if not isinstance(plan.prior, Older):
        return counts, imagined
    both = counts + aligned(plan.prior.model, model, names) * plan.prior.weight
    return both, imagine_classes(model, both, plan)
