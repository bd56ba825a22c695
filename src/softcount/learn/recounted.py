"""A fit of known classes with counts that were made elsewhere in place of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from softcount.counts import Counts
from softcount.learn.joined import Fit
from softcount.learn.labelled import chosen_notes, estimated, imagine_classes
from softcount.learn.plan import Plan, climb_facts, state_notes
from softcount.table.schema import Key


def recounted(fitted: Fit, counts: Counts, missing: Mapping[Key, float], plan: Plan) -> Fit:
    """The same model, estimated from these counts by node; what was said of its columns stays."""
    model, classes = fitted.model, fitted.classes or []
    before = {
        *chosen_notes(model, fitted.counts, plan), *state_notes(model, fitted.estimates, fitted.imagined, classes),
    }  # fmt: skip
    imagined = imagine_classes(model, counts, plan)
    estimates = estimated(model, counts, imagined)
    notes = [note for note in fitted.notes if note not in before]
    notes += [*chosen_notes(model, counts, plan), *state_notes(model, estimates, imagined, classes)]
    return replace(
        fitted, counts=counts, imagined=imagined, estimates=estimates, missing=dict(missing), notes=notes, record=None,
        **climb_facts(None, plan, counts),
    )  # fmt: skip
