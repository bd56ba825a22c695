"""The page as one file: the model's document, the code that computes with it, and nothing from anywhere else."""

from __future__ import annotations

import json
import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.core import remedies
from softcount.errors import DataError
from softcount.files import atomic_writer
from softcount.fitted.answers import labels_in
from softcount.fitted.classes import cells
from softcount.fitted.fitted import Fitted
from softcount.fitted.network import FittedNet
from softcount.fitted.network_rows import shown_cells
from softcount.pictures.drawing import markup
from softcount.pictures.text import format_count
from softcount.report.html import STYLE, content_policy, html_document
from softcount.table import Table, document_at
from softcount.table.schema import labels

SCRIPTS = ("numbers", "calibration", "words", "formula", "star", "network", "evidence", "page", "begin")
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
        """The page as text; refused if it is larger than 3 MB."""
        found = page_html(self)
        size = len(found.encode())
        if size > LARGEST:
            raise DataError(
                f"the page would take {size / 1e6:.1f} MB, and a page of more than {LARGEST / 1e6:.0f} MB is slow to "
                "open and to send.\n  Let a server on this machine answer: "
                + remedies.either(
                    "in a shell, softcount explore MODEL --serve", f"softcount explore {self.model_name} --serve"
                )
            )
        return found

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


def make_explorer(model: Any, name: str = "model.sc", rows: Any = None, note: str = "") -> ExplorePage:
    """Make the page of a fitted model; `name` is its file, and the first of `rows` can be loaded in the page.

    A `note` says what the model stands for, if it is not what the file holds; `query` does not know it then.
    """
    document = describe_model(model)
    if note:
        document |= {"notes": [note, *document["notes"]], "elsewhere": False}
    held = None if rows is None else _first_rows(model, rows)
    return ExplorePage(f"Explore {Path(name).stem}", document, name, held)


def describe_model(model: Any) -> dict[str, Any]:
    def learned(rows: float, what: str) -> str:
        return f", learned from {format_count(rows, what)}" if rows > 0 else ""

    if isinstance(model, Fitted):
        from softcount.explore.classes import classes_document

        found = classes_document(model)
        what = f"{found['target']['name']} and {format_count(len(found['columns']), 'column')}"
        lead = f"{what}{learned(model.counts.rows, 'row')}: any from any others. Model: {model.answering_model}."
        warning = model.dependence_warning()
        return found | {"lead": lead, "notes": [*([warning] if warning else []), *found["notes"]]}
    if hasattr(model, "net"):
        from softcount.explore.network import network_document

        found = network_document(model)
        what = f"A network of {format_count(len(found['nodes']) + len(found['leaves']), 'node')}"
        return found | {"lead": f"{what}{learned(model.counts.rows, 'row')}: any from any others."}
    from softcount.explore.network import chain_document, states_document

    found = states_document(model.fitted_) if hasattr(model, "fitted_") else chain_document(model)
    steps = model.counts_.rows if hasattr(model, "fitted_") else model.counts_.steps
    what = f"The first {found.pop('steps')} steps of a sequence"
    return found | {"lead": f"{what}{learned(steps, 'step')}: any from any others, before and after."}


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
    notes = "".join(f'<p class="quiet">{markup(note)}</p>' for note in page.document["notes"])
    rows = "" if page.rows is None else _asset("rows.html").format(count=len(page.rows["cells"]))
    title, lead = markup(page.title), markup(page.document["lead"])
    body = _asset("body.html").format(title=title, lead=lead, notes=notes, rows=rows)
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


FIRST_ROWS = 200
"""Rows of the table that go into a page."""


def _first_rows(model: Fitted | FittedNet, table: Table) -> dict[str, Any]:
    """Return the first rows by the names of their columns; an unseen category stays text."""
    found: list[list[Any]] = []
    if isinstance(model, Fitted):
        names, texts = labels_in(model), model.schema.texts
        columns = [column for leaf in model.model.leaves for column in leaf.columns]
        for chunk in model.chunks(table):
            for row in range(min(chunk.n_rows, FIRST_ROWS - len(found))):
                held = cells(model, chunk, row)
                held |= {key: document_at(table, key, chunk.start + row) for key in columns if key in texts}
                found.append([_plain(held[column]) for column in columns])
            if len(found) >= FIRST_ROWS:
                break
    else:
        names = labels(model.net.graph.names)
        columns = list(names)
        shown = shown_cells(model, table, np.arange(FIRST_ROWS))
        found = [[_plain(held.get(key)) for key in columns] for held in shown.values()]
    if not found:
        raise DataError("the table has no rows, so there is none to load. Leave it out.")
    return {"names": [names[column] for column in columns], "cells": found}


def _plain(cell: Any) -> Any:
    """Convert a cell to JSON: numbers stay, categories are text."""
    if cell is None or type(cell) in (str, float):
        return cell
    return float(cell) if isinstance(cell, np.floating) else str(cell)
