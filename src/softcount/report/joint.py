"""Pages on a joint model: how well it fits held-out rows, the candidates that were tried, and the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softcount.fitted.classes import Anomaly
from softcount.pictures.text import format_count, format_number
from softcount.report.classes import add_anomalies
from softcount.report.page import Page, key_text
from softcount.report.quality import group_notes, order_notes

if TYPE_CHECKING:
    from softcount.fitted.joint import FittedJoint

SHOWN_TRIALS, SHOWN_COLUMNS = 5, 12


def title_of(fitted: FittedJoint) -> str:
    return f"Joint model, a {fitted.answering_model}"


def joint_record(fitted: FittedJoint, **fit: Any) -> dict[str, Any]:
    """Return what the page shows, as data."""
    trees = fitted.trees
    return {
        "model": "joint", "components": trees.mixture.n_components, "units": trees.units,
        "held_out_log_density": trees.held_out, "free_parameters": fitted.n_parameters, "rows": fitted.counts.rows,
        "tried": [
            {name: getattr(trial, name) for name in trial.__struct_fields__}
            for trial in sorted(trees.trials, key=lambda trial: -trial.held_out)
        ],
        "columns": {key_text(leaf.key): leaf.density(fitted.estimates).describe()[0] for leaf in fitted.model.leaves},
        "notes": list(fitted.notes), **fit,
    }  # fmt: skip


def joint_page(fitted: FittedJoint, size: str = "", full: bool = True) -> Page:
    """Write how the model was chosen, and each column by itself; all candidates and columns if `full`."""
    page, trees = Page(), fitted.trees
    page.heading(title_of(fitted) + (f", from {size}" if size else ""))
    parameters = format_count(fitted.n_parameters, "free parameter")
    page.line(f"log-density {format_number(trees.held_out)} nats per held-out row, {parameters}")
    trials = sorted(trees.trials, key=lambda trial: -trial.held_out)
    rows = [
        (trial.units, trial.numbers, str(trial.components), str(trial.edges), format_number(trial.held_out))
        for trial in trials[: None if full else SHOWN_TRIALS]
    ]
    page.heading("Candidates; the best are combined")
    headings = ("units of numbers", "numbers", "components", "edges", "nats per held-out row")
    page.grid(headings, rows, right=headings[2:])
    page.rest(len(trials) - len(rows), "candidate")
    if fitted.notes:
        page.heading("Check")
        page.line(*order_notes(group_notes(fitted.notes)))
    leaves = fitted.model.leaves
    described = [
        (key_text(leaf.key), leaf.density(fitted.estimates).describe()[0])
        for leaf in leaves[: None if full else SHOWN_COLUMNS]
    ]
    page.heading("Columns")
    page.grid(("column", "in all rows"), described)
    page.rest(len(leaves) - len(described), "column")
    return page


def anomalies_record(found: list[Anomaly]) -> list[dict[str, Any]]:
    return [
        {
            "row": odd.row + 1, "score": odd.score, "log_density": odd.log_density,
            "reasons": [
                {"column": key_text(key), "value": odd.cells.get(key), "surprise": part}
                for key, part in odd.parts.items()
            ],
        }
        for odd in found
    ]  # fmt: skip


def anomalies_page(found: list[Anomaly], files: list[str]) -> Page:
    page = Page()
    page.heading("Rows that fit worst (score: nats of log-density below the expected value)")
    add_anomalies(page, found, None, files)
    return page
