"""The page as one file: the model's document, the code that computes with it, and nothing from anywhere else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core import remedies
from softcount.errors import DataError
from softcount.explore.classes import classes_document, keep_categories
from softcount.explore.network import chain_document, network_document, states_document
from softcount.files import atomic_writer
from softcount.fitted.answers import labels_in
from softcount.fitted.classes import cells
from softcount.fitted.fitted import Fitted
from softcount.fitted.network import FittedNet
from softcount.fitted.network_answers import cells_of_rows
from softcount.pictures.drawing import markup
from softcount.pictures.inline_html import framed
from softcount.pictures.text import format_count, format_list
from softcount.report.classes import title_of as class_title
from softcount.report.evaluation import list_figures
from softcount.report.html import STYLE, content_policy, html_document, render_facts, sentence_markup
from softcount.report.page import Figure
from softcount.report.quality import subject_of, trouble_of
from softcount.table import Table, document_at
from softcount.table.column_summary import TableSummary, summarise
from softcount.table.schema import Key, labels

SCRIPTS = ("numbers", "calibration", "words", "formula", "star", "network", "evidence", "graph", "page", "begin")
"""Names of the files of the page's code, in the order in which they need each other."""
LARGEST = 3_000_000
"""Bytes of a page: a larger one takes a browser seconds to read, and is hard to mail."""


class ExplorePage(Struct, frozen=True):
    """The interactive explorer of a model: any column given any others, computed by the page itself.

    Attributes
    ----------
    title : str
        Title of the page.
    html : str
        The page as one file that loads nothing.

    Examples
    --------
    >>> import softcount as sc
    >>> model = sc.NaiveBayes().fit({"colour": ["red", "red", "blue"]}, ["apple", "apple", "plum"])
    >>> page = model.explore()
    >>> page.html[:15]
    '<!doctype html>'
    """

    title: str
    document: dict[str, Any]
    model_name: str = "model.sc"
    rows: dict[str, Any] | None = None

    @property
    def html(self) -> str:
        """The page as text.

        A page of more than 3 MB leaves out rows, rare categories and the ensemble, and a note says so. If that is not
        enough, the page is refused.
        """
        for page in shrinking(self):
            found = page_html(page)
            size = len(found.encode())
            if size <= LARGEST:
                return found
        raise DataError(
            f"the page would take {size / 1e6:.1f} MB, and a page of more than {LARGEST / 1e6:.0f} MB is slow to "
            "open and to send.\n  Let a server on this machine answer: "
            + remedies.either(
                "in a shell, softcount explore MODEL --serve", f"softcount explore {self.model_name} --serve"
            )
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.title!r}: save(path) writes it, a notebook shows it>"

    def _repr_html_(self) -> str:
        return framed(self.html, 720)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, completely or not at all.

        Parameters
        ----------
        path : str or path
            File to write.
        """
        found = self.html
        with atomic_writer(Path(path)) as file:
            file.write(found)


def shrinking(page: ExplorePage) -> Iterator[ExplorePage]:
    """Yield the page, and then smaller ones that say what they leave out."""
    yield page
    document, held = page.document, page.rows
    if held is not None and len(held["cells"]) > FEW_ROWS:
        held = held | {"cells": held["cells"][:FEW_ROWS]}
        yield replace(page, rows=held)
    if document["kind"] != "star":
        return
    short = f"To stay below {LARGEST / 1e6:.0f} MB, this page"
    for most in (200, 60, 25):
        smaller, names = keep_categories(document, most)
        if names:
            note = f"{short} has the {most} most frequent categories of {format_list(names)}; the others are one bar."
            yield replace(page, rows=held, document=smaller | {"notes": [note, *document["notes"]]})
    smaller, names = keep_categories(document, most)
    note = f"{short} leaves out the ensemble, so naive Bayes answers; `predict` may differ."
    note += f" It has the {most} most frequent categories of {format_list(names)}." if names else ""
    smaller |= {"ensemble": None, "asks": True, "notes": [note, *document["notes"]]}
    yield replace(page, rows=None, document=smaller)


def make_explorer(model: Any, name: str = "model.sc", rows: Any = None, note: str = "") -> ExplorePage:
    """Make the page of a fitted model; `name` is its file, and the first of `rows` can be loaded in the page.

    Histograms show the rows, or those that the model was learned from. A `note` says what the model stands for, if it
    is not what the file holds; `query` does not know it then.
    """
    describe, list_rows = TABLE_MODELS.get(type(model), (_describe_sequences, None))
    summary = None
    if rows is not None and list_rows is not None and not getattr(model, "bag", False):
        summary = summarise(rows.chunks(), model.schema, model.record.table)
    document = describe(model, summary)
    if note:
        document |= {"notes": [note, *document["notes"]], "elsewhere": False}
    held = None
    if rows is not None and list_rows is not None:
        names, found = list_rows(model, rows)
        if not found:
            raise DataError("the table has no rows, so there is none to load. Leave it out.")
        held = {"names": list(names.values()), "cells": [[_plain(row.get(key)) for key in names] for row in found]}
    # A frame in Python has no name; the file of the model often has that of the table.
    kind, title = document.pop("model"), "" if name == "model.sc" else Path(name).stem
    if list_rows is not None:
        title = subject_of(model, title)
    tried = model.record.evaluation if hasattr(model, "record") else None
    facts = list_figures(tried, model.counts.rows if hasattr(model, "counts") else 0)
    if Path(name).is_file():
        made = datetime.fromtimestamp(Path(name).stat().st_mtime, UTC).date().isoformat()
        facts.append(Figure("Model of", made, Path(name).name))
    document |= {"facts": [*document.pop("facts", []), *facts]}
    return ExplorePage(title or kind, document, name, held)


def _describe_classes(model: Fitted, given: TableSummary | None) -> dict[str, Any]:
    found, warning = classes_document(model, given), model.dependence_warning()
    trouble = trouble_of(model.notes)
    notes = [*trouble, *([warning] if warning else []), *found["notes"]]
    own = {"answers": model.answering_model, "notes": notes, "urgent": bool(trouble)}
    target = found["target"]["name"] if model.target is not None else "the class"
    lead = f"{format_count(len(found['columns']), 'column')} and {target}"
    if all(column["kind"] == "text" for column in found["columns"]):
        own["hint"] = "Type or paste a document: the page updates the probabilities."
    facts = [Figure("Classes", str(model.n_groups), "found in the rows")] if model.classes is None else []
    return found | own | {"lead": lead, "model": class_title(model), "facts": facts}


def _describe_network(model: FittedNet, given: TableSummary | None) -> dict[str, Any]:
    found = network_document(model, given)
    lead = f"A network of {format_count(len(found['nodes']) + len(found['leaves']), 'node')}"
    return found | {"lead": lead, "model": lead}


def _describe_sequences(model: Any, given: TableSummary | None) -> dict[str, Any]:
    title = "Hidden Markov model" if hasattr(model, "fitted_") else "Markov chain"
    found = states_document(model.fitted_) if hasattr(model, "fitted_") else chain_document(model)
    steps = model.counts_.rows if hasattr(model, "fitted_") else model.counts_.steps
    learned = f", learned from {format_count(steps, 'step')}" if steps > 0 else ""
    return found | {"lead": f"The first {found.pop('steps')} steps of a sequence{learned}", "model": title}


def page_html(page: ExplorePage, asking: dict[str, str] | None = None) -> str:
    """Render the whole file, however large; `asking` is what our server wants with every question."""
    held = {
        "model": page.document,
        "name": page.model_name,
        "rows": page.rows,
        "sets": page.document["kind"] == "network",
        "elsewhere": page.document.get("elsewhere", True),
        "asking": asking,
    }
    text = json.dumps(held, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    # Nothing in the JSON can end the element it stands in, or begin another.
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    notes, facts = page.document["notes"], page.document.get("facts", ())
    listed = "".join(f'<p class="quiet">{sentence_markup(note)}</p>' for note in notes)
    if listed:
        heading = f"{format_count(len(notes), 'note')} on this model"
        shown = " open" if page.document.get("urgent") else ""
        listed = f'<details class="notes"{shown}><summary>{heading}</summary>{listed}</details>'
    figures = render_facts(facts) if facts else ""
    rows = "" if page.rows is None else _asset("rows.html").format(count=len(page.rows["cells"]))
    title, lead = markup(page.title), markup(page.document["lead"])
    hint = page.document.get("hint", "Click a bar to set a value: the page updates all other columns.")
    body = _asset("body.html").format(title=title, lead=lead, hint=hint, facts=figures, notes=listed, rows=rows)
    body += f'<script type="application/json" id="model">{text}</script>'
    policy = page_policy(reach=asking is not None)
    return html_document(page.title, body, _styles(), [script()], policy)


def page_policy(reach: bool = False) -> str:
    """Return what a browser may load and run: this page's own style and code; with `reach` it may ask its server."""
    return content_policy(_styles(), [script()]) + ("; connect-src 'self'" if reach else "")


def _styles() -> list[str]:
    return [STYLE, _asset("explore.css")]


@cache
def _asset(name: str) -> str:
    return files("softcount.explore").joinpath("browser", name).read_text(encoding="utf-8")


@cache
def script() -> str:
    """Return all code of the page, in its own scope."""
    return '"use strict";\n{\n' + "\n".join(_asset(f"{name}.js") for name in SCRIPTS) + "}\n"


FIRST_ROWS, FEW_ROWS = 200, 20
"""Rows of the table that go into a page, and into one that would be too large."""


def _first_rows(model: Fitted, table: Table) -> tuple[dict[Key, str], list[dict[Key, Any]]]:
    """Return the names of the columns, and the cells of the first rows."""
    names, found = labels_in(model), list[dict[Key, Any]]()
    columns = [column for leaf in model.model.leaves for column in leaf.columns]
    for chunk in model.chunks(table):
        for row in range(min(chunk.n_rows, FIRST_ROWS - len(found))):
            texts = {key: document_at(table, key, chunk.start + row) for key in columns if key in model.schema.texts}
            found.append(cells(model, chunk, row) | texts)
        if len(found) >= FIRST_ROWS:
            break
    return {column: names[column] for column in columns}, found


def _first_rows_of_network(model: FittedNet, table: Table) -> tuple[dict[Key, str], list[dict[Key, Any]]]:
    return labels(model.net.graph.names), list(cells_of_rows(model, table, np.arange(FIRST_ROWS)).values())


TABLE_MODELS: dict[type, tuple[Any, Any]] = {
    Fitted: (_describe_classes, _first_rows), FittedNet: (_describe_network, _first_rows_of_network),
}  # fmt: skip
"""How a model of a table is described, and how the first rows of a table are listed, by its class."""


def _plain(cell: Any) -> Any:
    """Convert a cell to JSON: numbers stay; categories are text, unseen ones too."""
    if cell is None or type(cell) in (str, float):
        return cell
    return float(cell) if isinstance(cell, np.floating) else str(cell)
