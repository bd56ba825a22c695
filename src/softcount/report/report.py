"""Reports: one page on a model of any kind, to be read in a browser, in a terminal or by a program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.errors import DataError
from softcount.evaluate.scores import describe_rows
from softcount.families.base import family_title
from softcount.files import atomic_writer
from softcount.fitted.classes import sort_rows
from softcount.fitted.fitted import Fitted
from softcount.learn.record import Learned
from softcount.pictures.inline_html import framed
from softcount.pictures.text import format_count
from softcount.report.class_pictures import GivenRows
from softcount.report.classes import model_page
from softcount.report.html import render_html
from softcount.report.joint import joint_page
from softcount.report.kmeans import centres_page
from softcount.report.network import network_page
from softcount.report.page import Grid, Heading, Page, Picture, as_json, key_text, page_blocks, render_text
from softcount.report.sequences import sequence_page
from softcount.report.words import find_documents
from softcount.table.column_summary import summarise

if TYPE_CHECKING:
    from softcount.run.local import Threads
    from softcount.table import Table

SIZE_LIMIT = 3_000_000
"""Bytes of an HTML file: a larger one takes a browser seconds to read, and is hard to mail."""
ENDINGS = (".html", ".htm", ".json", ".txt")
FOOTER = "Made by Softcount. This file loads nothing and runs nothing; docs/how-to/report.md explains each picture."


class Report(Struct, frozen=True):
    """A report on a model.

    Printed, it is text. `save` writes it as HTML, JSON or text.

    Attributes
    ----------
    html : str
        One HTML file without scripts or links.
    page : Page
        The content.
    """

    page: Page

    @property
    def html(self) -> str:
        """One HTML file that loads and runs nothing.

        If it would be larger than 3 MB, numbers of pictures are left out, then pictures; a line says so.
        """
        blocks, note = self.page.blocks, "with them this file would be larger than 3 MB."
        found = render_html(self.page, FOOTER)
        if len(found.encode()) > SIZE_LIMIT:
            none = Grid(("left out",), (("this page would have been larger than 3 MB",),), (False,))
            cut = [replace(block, table=none) if isinstance(block, Picture) else block for block in blocks]
            line = f"The numbers of the pictures are left out: {note}"
            found = render_html(Page([*cut[:1], line, *cut[1:]]), FOOTER)
        if len(found.encode()) > SIZE_LIMIT:
            cut = [block for block in blocks if not isinstance(block, Picture)]
            found = render_html(Page([*cut[:1], f"Pictures are left out: {note}", *cut[1:]]), FOOTER)
        return found

    def __str__(self) -> str:
        return render_text(self.page)

    def __repr__(self) -> str:
        title = next((block.text for block in self.page.blocks if isinstance(block, Heading)), "")
        return f"<{type(self).__name__} {title!r}: print it, or save(path); a notebook shows it>"

    def _repr_html_(self) -> str:
        return framed(self.html, 720)

    def render(self, ending: str) -> str:
        """Render the report in the format of a file ending.

        Parameters
        ----------
        ending : {'.html', '.htm', '.json', '.txt'}
            The ending.

        Returns
        -------
        str
            The content of the file.
        """
        if ending.lower() not in ENDINGS:
            raise DataError(f"a report ends in {', '.join(ENDINGS)}, not in {ending or 'nothing'!r}.")
        if ending.lower() == ".json":
            return as_json(page_blocks(self.page))
        return str(self) if ending.lower() == ".txt" else self.html

    def save(self, path: Any) -> None:
        """Write the report, completely or not at all.

        Parameters
        ----------
        path : str or path
            File to write; its ending (.html, .json or .txt) is the format.
        """
        content = self.render(Path(path).suffix)
        with atomic_writer(path, "wb") as sink:
            sink.write(content.encode())


def make_report(model: Any, rows: Any = None, redact: bool = False) -> Report:
    """Report on a model of any kind: a fitted model of classes or network, or an estimator of sequences or k-means.

    `rows` are `GivenRows` for classes; the summary of a table and its name for a network; numbers for k-means.
    """
    if isinstance(model, Fitted):
        return Report(model_page(model, rows, full=True, redact=redact))
    if hasattr(model, "net"):
        summary, name = (None, "") if rows is None else rows
        return Report(network_page(model, True, summary, name, redact))
    if hasattr(model, "found_"):
        names = [str(name) for name in getattr(model, "feature_names_in_", range(model.n_features_in_))]
        numbers = None if rows is None or hasattr(rows, "tocsr") else np.asarray(rows, dtype=float)
        return Report(centres_page(model.found_, names, True, numbers, redact))
    if hasattr(model, "trees"):
        return Report(joint_page(model))
    if isinstance(model, Learned):
        return Report(nodes_page(model, redact))
    return Report(sequence_page(model, full=True, redact=redact))


def nodes_page(model: Learned, redact: bool = False) -> Page:
    """Describe any model by its nodes: the parameters of each in every group; redacted, only how many there are."""
    page = Page()
    page.heading(model.title)
    learned = f"from {format_count(model.counts.rows, 'row')}, {format_count(model.n_parameters, 'free parameter')}"
    page.line(learned, *model.notes)
    for node in model.model.nodes if not redact else ():
        page.heading(key_text(node.key))
        words = node.density(model.estimates).describe()
        page.grid(("group", family_title(node.family)), [(str(group), text) for group, text in enumerate(words)])
    return page


def find_rows(fitted: Fitted, table: Table, threads: Threads, name: str, labels: np.ndarray | None = None) -> GivenRows:
    """Compute what a table shows with the model that it is read for; `labels` are the places of its rows' classes."""
    before = fitted.record.table
    summary = None if fitted.bag else summarise(table.chunks(threads.map), fitted.schema, before)
    findings = describe_rows(fitted, table.chunks(threads.map), threads, labels)
    if not findings.rows:
        raise DataError(
            f"{name}: no rows, so there is nothing to report. Leave it out for a report on the model alone."
        )
    sorting = sort_rows(fitted, table, threads) if fitted.classes is None else None
    return GivenRows(name, sorting, (), summary, findings, find_documents(fitted, table, findings.picked))
