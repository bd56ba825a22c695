"""What the owner of a classifier should know before trusting it: guessing that is better, tiny classes, twins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount import remedies
from softcount.fitted.fitted_model import Fitted
from softcount.sources.wording import and_others

FEW_ROWS = 5
"""Rows of a class below which little is learned of it, and nothing can be checked."""
WORSE = "worse than guessing"
"""How the first of all doubts begins."""
DEPENDENT = ("says the same as", "follows from", "depend on each other")


def doubts(fitted: Fitted, columns: Sequence[str], losses: tuple[float, float] | None) -> list[str]:
    """The doubts about a model of known classes; `columns` are notes on columns that depend on each other.

    `losses` are the log-losses, on rows held out, of the model and of saying how frequent the classes are.
    """
    sizes = class_notes(fitted)
    return [*worse_notes(fitted, losses, [*sizes, *columns]), *sizes, *columns]


def class_notes(fitted: Fitted) -> list[str]:
    """Classes of which there are too few rows, or as many as rows, or whose name means missing in a text file."""
    rows, names = fitted.group_rows, fitted.names
    if len(rows) > 2 and len(rows) >= 0.5 * rows.sum():
        return [
            f"the target has {len(rows):,} different values in {rows.sum():,.0f} rows: it may be a number or an "
            "identifier rather than classes. Name another, or put its values into few classes first."
        ]
    single = [names[g] for g in np.flatnonzero(rows <= 1)]
    few = [names[g] for g in np.flatnonzero((rows > 1) & (rows < FEW_ROWS))]
    return [
        *_sized(single, "one row", "nothing of it can be checked on rows held out"),
        *_sized(few, f"fewer than {FEW_ROWS} rows", "what is said of it rests on those"),
        *_unknown(fitted),
    ]


def _unknown(fitted: Fitted) -> list[str]:
    """Labels given apart from the table are classes whatever they say; a table's own cells of that word are missing."""
    words = [name for name in fitted.names if isinstance(name, str) and name.strip() in fitted.schema.missing]
    if not words:
        return []
    named = f"{and_others(words)} {'is' if len(words) == 1 else 'are'}"
    return [f"{named} a class here, and means missing in a text file. If it means missing here, give None instead."]


def _sized(names: Sequence[object], size: str, so: str) -> list[str]:
    if not names:
        return []
    who = f"class {names[0]!r} has" if len(names) == 1 else f"{len(names)} classes have {'each ' * (size == 'one row')}"
    listed = "" if len(names) == 1 else f" ({and_others(names)})"
    return [f"{who.rstrip()} {size}{listed}: {so if len(names) == 1 else so.replace('of it', 'of them')}."]


def worse_notes(fitted: Fitted, losses: tuple[float, float] | None, others: Sequence[str]) -> list[str]:
    """That saying how frequent the classes are does better than the model, why that may be, and what to try."""
    if losses is None or not losses[0] > losses[1]:
        return []
    return [
        f"{WORSE}: log-loss {losses[0]:.4g} on rows held out, where saying how frequent the classes are has "
        f"{losses[1]:.4g}. {_cause(fitted, others)}"
    ]


def _cause(fitted: Fitted, others: Sequence[str]) -> str:
    """The likeliest reason for that, and the remedy."""
    rows = fitted.group_rows
    if fitted.pool is not None:
        return "These columns may not tell the classes at all, or there are too few rows to see how."
    if rows.sum() < 2 * FEW_ROWS * len(rows):
        return f"Likeliest cause: few rows, {rows.sum() / len(rows):.1f} for a class. Try {_classifier()}."
    if any(said in note for note in others for said in DEPENDENT):
        return (
            "Likeliest cause: columns that depend on each other (below) are counted as if each were evidence of its "
            f"own. Try {_classifier()}, or leave some out."
        )
    if not any(spec.kind.numeric for spec in fitted.schema.used):
        return f"Likeliest cause: these columns tell little of the classes. Try {_classifier()}, or others."
    auto = remedies.either("kinds='auto'", "--kind auto")
    return f"Likeliest cause: numbers that are not shaped as taken. Try {_classifier()}, or {auto}."


def _classifier() -> str:
    return remedies.either("Classifier", "--model auto")
