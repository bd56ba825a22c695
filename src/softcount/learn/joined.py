"""Fits of known classes joined: counts added or taken away, and what follows from them worked out anew."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from softcount.learn.labelled import estimated, imagine_classes
from softcount.learn.learned import Learned
from softcount.learn.plan import Plan, state_notes
from softcount.models.align import Older, aligned, chosen_notes, outgrown, refuse_overdrawn, sorted_levels, united
from softcount.table.odd_cells import missing_notes
from softcount.table.schema import Key

Fit = TypeVar("Fit", bound=Learned)
FADED = "older rows count for less"


def joined(left: Fit, right: Fit, plan: Plan, sign: float = 1.0, grow: Collection[Key] | None = None) -> Fit:
    """The model of both tables, or of the left one without the rows of the right; `grow` as `united` has it."""
    model, classes = united(left, right, grow)
    mine, theirs = aligned(left, model, classes), aligned(right, model, classes)
    if isinstance(right.prior, Older):
        # An older model stands behind each part; in the whole it counts once.
        theirs = theirs - aligned(right.prior.model, model, classes) * right.prior.weight
    counts = mine + theirs if sign > 0 else mine - theirs
    if sign < 0:
        refuse_overdrawn(model, mine, counts)
    imagined = imagine_classes(model, counts, plan)
    missing = {k: left.missing.get(k, 0) + sign * right.missing.get(k, 0) for k in {*left.missing, *right.missing}}
    estimates = estimated(model, counts, imagined)
    before = state_notes(left.model, left.estimates, left.imagined, left.classes or [])
    before += outgrown(left.notes, model.leaves)
    notes = [note for note in left.notes if note not in before]
    more = state_notes(model, estimates, imagined, classes)
    more += chosen_notes(left.schema, right.schema, merged=grow is None)
    more += missing_notes(right.notes) if sign > 0 else []
    notes += [note for note in more if note not in notes]
    return replace(
        left, model=model, estimates=estimates, counts=counts, imagined=imagined, classes=classes, missing=missing,
        notes=notes, record=None,
    )  # fmt: skip


def with_classes(fitted: Fit, classes: Sequence[Any], plan: Plan) -> Fit:
    """The same model with room for classes that may come."""
    names = sorted_levels(classes)
    model = fitted.model.with_leaves(fitted.model.leaves, len(names))
    counts = aligned(fitted, model, names)
    imagined = imagine_classes(model, counts, plan)
    estimates = estimated(model, counts, imagined)
    return replace(
        fitted, model=model, counts=counts, imagined=imagined, classes=names, estimates=estimates, record=None
    )


def faded(learned: Fit, rows: float, half_life: float | None) -> Fit:
    """What was learned with its counts faded, as so many more rows come; as it was without a half-life."""
    if half_life is None:
        return learned
    kept = 0.5 ** (rows / half_life)
    missing = {key: kept * n for key, n in learned.missing.items()}
    notes = [*(note for note in learned.notes if not note.startswith(FADED)), faded_note(half_life)]
    return replace(learned, counts=learned.counts * kept, missing=missing, notes=notes)


def faded_note(half_life: float) -> str:
    """What is said where older rows count for less."""
    return f"{FADED}: half as much after {half_life:,.6g} others."
