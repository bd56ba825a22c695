"""A report of any model: one page, to be read in a browser, in a terminal or by a program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.errors import DataError
from softcount.fitted.fitted import Fitted
from softcount.report.html_page import html_of
from softcount.report.model_report import GivenRows, model_report
from softcount.report.page import Grid, Page, Picture, as_json, page_document, plain

if TYPE_CHECKING:
    from softcount.run.local import Threads
    from softcount.table import Table

LARGEST = 3_000_000
"""Bytes that an HTML file may have: more takes a browser seconds to read, and mail to carry."""
WRITTEN = (".html", ".htm", ".json", ".txt")


class Report(Struct, frozen=True):
    """A page on a model. `save` writes it as HTML, JSON or text, by the ending of the name; printed, it is text."""

    page: Page

    @property
    def html(self) -> str:
        """One HTML file that loads and runs nothing; what would make it larger than 3 MB is left out, and that said."""
        found = html_of(self.page, FOOTER)
        for cut in (_without_numbers, _without_pictures):
            if len(found.encode()) <= LARGEST:
                break
            found = html_of(cut(self.page), FOOTER)
        return found

    def __str__(self) -> str:
        return plain(self.page)

    def written(self, ending: str) -> str:
        """The report in the form that an ending stands for."""
        if ending.lower() not in WRITTEN:
            raise DataError(f"a report ends in {', '.join(WRITTEN)}, not in {ending or 'nothing'!r}.")
        if ending.lower() == ".json":
            return as_json(page_document(self.page))
        return str(self) if ending.lower() == ".txt" else self.html

    def save(self, path: Any) -> None:
        """Write the report, whole or not at all."""
        from softcount.files import atomic_writer

        content = self.written(Path(path).suffix)
        with atomic_writer(path, "wb") as sink:
            sink.write(content.encode())


FOOTER = "Made by Softcount. This file loads nothing and runs nothing; docs/report.md says how to read each picture."


def _without_numbers(page: Page) -> Page:
    """The page without the numbers of its pictures, which it says."""
    none = Grid(("left out",), (("this page would have been larger than 3 MB",),), (False,))
    blocks = [replace(block, numbers=none) if isinstance(block, Picture) else block for block in page.blocks]
    said = "The numbers of the pictures are left out: with them this file would be larger than 3 MB."
    return Page([*blocks[:1], said, *blocks[1:]])


def _without_pictures(page: Page) -> Page:
    blocks = [block for block in page.blocks if not isinstance(block, Picture)]
    said = "Pictures are left out: with them this file would be larger than 3 MB."
    return Page([*blocks[:1], said, *blocks[1:]])


def given_rows(
    fitted: Fitted, table: Table, threads: Threads, name: str, labels: np.ndarray | None = None
) -> GivenRows:
    """What a table shows beside the model that it is read for; `labels` are the places of its rows' classes."""
    from softcount.evaluate.scores import row_findings
    from softcount.fitted.classes import sort_rows
    from softcount.report.word_part import shown_documents
    from softcount.table.column_summary import summarise

    before = None if fitted.record is None else fitted.record.table
    summary = None if fitted.bag else summarise(table.chunks(threads.map), fitted.schema, before)
    findings = row_findings(fitted, table.chunks(threads.map), threads, labels)
    if not findings.rows:
        raise DataError(f"{name}: no rows, so there is nothing to report of it. Leave it out to see the model alone.")
    sorting = sort_rows(fitted, table, threads) if fitted.classes is None else None
    documents = tuple(shown_documents(fitted, table, findings.picked))
    return GivenRows(name, summary, findings, sorting, documents)


def reported(model: Any, rows: Any = None, redact: bool = False) -> Report:
    """The report of a model, of whatever kind: what learning gave of classes, or a fitted network, chain or k-means.

    `rows` are `GivenRows` of a model of classes; the summary of a table and its name of a network; numbers of k-means.
    """
    if isinstance(model, Fitted):
        return Report(model_report(model, rows, redact))
    if hasattr(model, "net"):
        from softcount.report.network_report import network_report

        summary, name = (None, "") if rows is None else rows
        return Report(network_report(model, summary, name, redact))
    if hasattr(model, "found_"):
        from softcount.report.centres_report import centres_report, numbers_of

        names = getattr(model, "feature_names_in_", range(model.n_features_in_))
        return Report(centres_report(model.found_, [str(name) for name in names], numbers_of(rows), redact))
    from softcount.report.sequence_report import sequence_report

    return Report(sequence_report(model, redact))
