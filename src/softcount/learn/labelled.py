"""Known classes: naive Bayes in one pass, EM where some labels or cells of a block are hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softcount.counts import Counts
from softcount.errors import DataError
from softcount.families import How, Text
from softcount.fitted.fitted_model import Fitted
from softcount.learn.em import Climb, climb, expected
from softcount.learn.plan import (
    LABELLED_FLOOR,
    Plan,
    absent,
    cells_of,
    climb_note,
    or_empty,
    plug,
    replace_how,
    retyping,
    state_notes,
    way_facts,
)
from softcount.learn.start import open_counts
from softcount.models.align import Older, aligned, grown, reordered
from softcount.models.blanks import with_blanks
from softcount.models.declared import nodes_of, priors_of
from softcount.models.imagine import best_evidence
from softcount.models.parts import refuse_scores
from softcount.models.plates import Kernels
from softcount.models.settle import Settling, remapped, settling
from softcount.models.star import Imagined, Star
from softcount.run.threads import Threads, total
from softcount.table import Chunk, Table

MANY_WORDS = 1_000
"""Words from which on it is said that a prior drowns the labelled documents."""


def fit_labelled(table: Table, plan: Plan, threads: Threads, classes: Sequence[Any] | None = None) -> Fitted:
    """Naive Bayes: one pass if every class is known; EM over the unknown ones if not."""
    fitted = retyping(table.unchecked(), lambda t: _fit_labelled(t, plan, threads, classes), threads)
    if not fitted.counts.finite:
        _refuse_infinite(table)
    return fitted


def _refuse_infinite(table: Table) -> None:
    """Sums that are not finite come from cells that are not: read again, checking each, to name the first."""
    for task in table.tasks():
        task()
    raise DataError("the numbers of some column are too large to be squared and added. Divide the column by its scale.")


def _fit_labelled(table: Table, plan: Plan, threads: Threads, classes: Sequence[Any] | None) -> Fitted:
    fast = Kernels(cells_of(table))
    counts, settled, kept = _tallied(table, plan, threads, fast, classes)
    names = settled.classes
    if counts.rows <= 0:
        raise DataError(
            "every label is unknown, so there is nothing to learn a class from. To find classes, use Mixture."
        )
    leaves = nodes_of(settled.schema, plan.declared, len(names), table.bag_width, LABELLED_FLOOR)
    star = Star(settled.schema, leaves, len(names), fast, plan.unlabelled_weight)
    star, counts = grown(star, star.unstacked(counts), plan.prior)
    imagined = imagine_classes(star, counts, plan)
    counts, imagined = with_older(star, counts, imagined, plan, names)
    notes = [*table.notes, *settled.notes, *chosen_notes(star, counts, plan)]
    params = star.estimate(counts, replace_how(imagined, plug(plan.how)))
    hidden = _hidden(table, star, plan)
    if hidden:
        refuse_scores(star.leaves, f"is not for what is hidden ({hidden})")
    way = None
    if hidden and isinstance(plan.prior, Older):
        raise DataError(
            f"{hidden}: an older model's counts cannot be joined with what EM expects yet. "
            "Leave those rows out (unlabelled_weight=0 for rows without a label), or merge() the two models."
        )
    if hidden:
        notes += _swamped_notes(star, counts, imagined)
        kept = kept or list(threads.map(lambda task: remapped(task(), settled), table.tasks()))
        way, imagined = climb_labelled(star, kept, plan, threads)
        counts, params = way.counts, way.params
        notes.append(climb_note(hidden, way))
    if plan.estimate == "predictive" or plan.how != plug(plan.how):
        params = star.estimate(counts, imagined)
    notes += state_notes(star, params, imagined, names)
    return Fitted(
        star=star, estimates=params, counts=counts, imagined=imagined, classes=list(names), target=plan.target,
        notes=notes, prior=plan.prior, class_prior=plan.class_prior, estimate=plan.estimate,
        missing=absent(star, counts, table), interrupted=way is not None and way.interrupted,
        **way_facts(way, plan, counts),
    )  # fmt: skip


def _tallied(
    table: Table, plan: Plan, threads: Threads, fast: Any, classes: Sequence[Any] | None
) -> tuple[Counts, Settling, list[Chunk] | None]:
    """Counts of labelled rows with levels and classes in sorted order, and the chunks if they had to be kept."""
    groups = len(classes) if classes is not None else 1
    if any(family.name == "joint" for family in plan.declared.families.values()):
        raw = list(threads.map(lambda task: task(), table.tasks()))
        settled = settling(table, plan.declared, classes)
        kept = [remapped(chunk, settled) for chunk in raw]
        leaves = nodes_of(settled.schema, plan.declared, groups, table.bag_width, LABELLED_FLOOR)
        star = Star(settled.schema, leaves, len(settled.classes), fast)
        counts = total(threads, lambda chunk: star.tally(star.prepare(chunk, base=False)), kept)
        return or_empty(counts), settled, kept
    leaves = nodes_of(table.schema, plan.declared, groups, table.bag_width, LABELLED_FLOOR)
    star = Star(table.schema, leaves, groups, fast)
    counts = or_empty(total(threads, lambda task: star.tally(star.prepare(task(), base=False)), table.tasks()))
    settled = settling(table, plan.declared, classes)
    return reordered(counts, star, settled), settled, None


def _hidden(table: Table, star: Star, plan: Plan) -> str:
    """What is hidden that one pass cannot count, in words, or nothing."""
    if table.unknown_labels and plan.unlabelled_weight > 0:
        return f"{table.unknown_labels:,} rows without a label used as unlabelled"
    return hidden_in_columns(table, star)


def hidden_in_columns(table: Table, star: Star) -> str:
    """The first column or block that even known classes leave to EM, in words, or nothing."""
    for leaf in star.leaves:
        if not leaf.family.hidden(leaf.key, holes=True):
            continue  # counting the holes of an array that was not read cell by cell takes longer than the fit
        hidden = leaf.family.hidden(leaf.key, any(table.missing.get(c) for c in leaf.columns))
        if hidden:
            return hidden
    return ""


def climb_labelled(star: Star, kept: list[Chunk], plan: Plan, threads: Threads) -> tuple[Climb, Imagined]:
    """EM over what is hidden beside known classes: labels with gaps, holes in a correlated block.

    It starts from the labelled rows, in units that all rows have: a few labels may not vary at all.
    """
    star = with_blanks(star, kept)
    ready = list(threads.map(star.prepare, kept))
    rows, told = open_counts(star, ready), star.unstacked(or_empty(total(threads, star.tally, ready)))
    plan = _decided(plan, star, told)
    first = replace_how(imagine_classes(star, rows, plan), plug(plan.how))
    params = star.estimate(told, first)
    everything = expected(star, params, ready, threads)
    if np.isneginf(everything.log_likelihood):
        # An unlabelled row holds what no labelled one does: under `ml` it would be impossible in every class for ever.
        params = star.estimate(rows, first)
        everything = expected(star, params, ready, threads)
    imagined = imagine_classes(star, everything, plan)
    # Hidden weights of rows are found slowly: 40 rows of a student column took 378 plain steps.
    weighted = any(leaf.family.hidden(leaf.key, holes=False) for leaf in star.leaves)
    stop = replace(plan.stop, accelerate=plan.stop.accelerate or weighted)
    way = climb(star, replace_how(imagined, plug(plan.how)), ready, params, threads, stop, plan.watching())
    return way, imagined


def _swamped_notes(star: Star, counts: Counts, imagined: Imagined) -> list[str]:
    """Columns of text of which the prior imagines more words in a class than its labelled documents have.

    EM then learns less: with a prior of 1, 300 messages of 20 Newsgroups gained a point or two less by 10,000
    unlabelled ones than with 0.1.
    """
    notes = []
    for leaf in star.leaves:
        if isinstance(leaf.family, Text) and len(leaf.setting.levels) >= MANY_WORDS and imagined.how != "ml":
            guessed = float(imagined.leaves[leaf.key]["alpha"].sum())
            known = float(counts.arrays[leaf.key].hi[:, 1:].sum()) / star.groups
            if leaf.family.model == "multinomial" and guessed > known:
                notes.append(
                    f"column {leaf.key!r}: the prior imagines {guessed:,.0f} words in every class, and the labelled "
                    f"documents have about {known:,.0f}. Rows without a label teach more with prior=0.1 or 'auto'."
                )
    return notes


def _decided(plan: Plan, star: Star, told: Counts) -> Plan:
    """The plan with what `"auto"` stands for. Labelled rows choose: before EM the others are in all classes alike."""
    priors = priors_of(plan.prior, star.leaves, 1.0)
    auto = [leaf for leaf in star.leaves if isinstance(priors[leaf.key], str) and priors[leaf.key] == "auto"]
    chosen = {leaf.key: best_evidence(leaf, told.arrays[leaf.key]) for leaf in auto}
    return replace(plan, prior=priors | chosen) if auto else plan


def imagine_classes(star: Star, counts: Counts, plan: Plan) -> Imagined:
    """Priors of a model whose classes are known: the scalar prior is for columns, class shares are as counted.

    Where complements of classes are all that is scored, classes are equally likely before, as in scikit-learn: how
    often each occurs is in the words of the others already.
    """
    priors = priors_of(_own_prior(plan.prior), star.leaves, 1.0)
    complements = all(getattr(leaf.family, "model", "") == "complement" for leaf in star.leaves)
    shares = "uniform" if plan.class_prior is None and complements else plan.class_prior
    root, root_how = _class_root(shares, star.groups)
    return star.imagine(counts, priors, root, plan.how, root_how)


def chosen_notes(star: Star, counts: Counts, plan: Plan) -> list[str]:
    """What `"auto"` chose, column by column."""
    priors = priors_of(_own_prior(plan.prior), star.leaves, 1.0)
    auto = [leaf for leaf in star.leaves if isinstance(priors[leaf.key], str) and priors[leaf.key] == "auto"]
    return [
        f"column {leaf.key!r}: a prior of {best_evidence(leaf, counts.arrays[leaf.key]):.4g} has the best evidence."
        for leaf in auto
    ]


def _class_root(class_prior: Any, groups: int) -> tuple[Any, How]:
    if class_prior is None:
        return 0.0, "ml"
    if isinstance(class_prior, str) and class_prior == "uniform":
        return np.full(groups, 1.0 / groups), "ml"
    try:
        shares = np.asarray(class_prior, dtype=float)
    except (TypeError, ValueError):
        raise DataError(
            f"class_prior={class_prior!r} is not known. Use None, 'uniform', a number, or one share per class."
        ) from None
    if shares.ndim == 0:
        return float(shares), "mean"
    if shares.shape != (groups,) or not (shares >= 0).all() or abs(shares.sum() - 1) > 1e-8:
        raise DataError(f"class_prior must be {groups} shares, one per class in sorted order, that sum to one.")
    return shares, "ml"


def _own_prior(prior: Any) -> Any:
    return prior.prior if isinstance(prior, Older) else prior


def with_older(
    star: Star, counts: Counts, imagined: Imagined, plan: Plan, names: Sequence[Any]
) -> tuple[Counts, Imagined]:
    """The older model's counts, times its weight, added to what was observed."""
    if not isinstance(plan.prior, Older):
        return counts, imagined
    both = counts + aligned(plan.prior.model, star, names) * plan.prior.weight
    return both, imagine_classes(star, both, plan)
