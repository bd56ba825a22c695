"""Reports: one page on a model of any kind, to be read in a browser, in a terminal or by a program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.errors import DataError
from softcount.fitted.fitted import Fitted
from softcount.pictures.text import format_count, format_list, format_share
from softcount.report import evidence, mixture, words
from softcount.report.classes import (
    add_anomalies,
    add_influence,
    add_members,
    add_sizes,
    class_names,
    is_only_text,
    title_of,
)
from softcount.report.evaluation import add_performance, summarize_evaluation
from softcount.report.html import render_html
from softcount.report.page import (
    FEWEST_ROWS,
    RARE,
    Grid,
    Page,
    Picture,
    Redaction,
    as_json,
    key_text,
    page_blocks,
    redaction_of,
    render_text,
)
from softcount.report.quality import add_drift, add_notes, add_origin, add_quality

if TYPE_CHECKING:
    from softcount.evaluate.scores import RowFindings
    from softcount.fitted.classes import SortedTable
    from softcount.run.local import Threads
    from softcount.table import Table
    from softcount.table.column_summary import TableSummary

SIZE_LIMIT = 3_000_000
"""Bytes of an HTML file: a larger one takes a browser seconds to read, and is hard to mail."""
ENDINGS = (".html", ".htm", ".json", ".txt")
FOOTER = "Made by Softcount. This file loads nothing and runs nothing; docs/report.md says how to read each picture."


class Report(Struct, frozen=True):
    """A page on a model. `save` writes it as HTML, JSON or text, by the ending of the name; printed, it is text."""

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
            said = f"The numbers of the pictures are left out: {note}"
            found = render_html(Page([*cut[:1], said, *cut[1:]]), FOOTER)
        if len(found.encode()) > SIZE_LIMIT:
            cut = [block for block in blocks if not isinstance(block, Picture)]
            found = render_html(Page([*cut[:1], f"Pictures are left out: {note}", *cut[1:]]), FOOTER)
        return found

    def __str__(self) -> str:
        return render_text(self.page)

    def render(self, ending: str) -> str:
        """Render the report in the format that an ending stands for."""
        if ending.lower() not in ENDINGS:
            raise DataError(f"a report ends in {', '.join(ENDINGS)}, not in {ending or 'nothing'!r}.")
        if ending.lower() == ".json":
            return as_json(page_blocks(self.page))
        return str(self) if ending.lower() == ".txt" else self.html

    def save(self, path: Any) -> None:
        """Write the report, whole or not at all."""
        from softcount.files import atomic_writer

        content = self.render(Path(path).suffix)
        with atomic_writer(path, "wb") as sink:
            sink.write(content.encode())


class GivenRows(Struct, frozen=True):
    """A table given to a report: its name, its columns, and what its rows show."""

    name: str
    summary: TableSummary | None
    findings: RowFindings
    sorting: SortedTable | None = None
    documents: tuple[words.ShownDocument, ...] = ()


def make_report(model: Any, rows: Any = None, redact: bool = False) -> Report:
    """Report on a model of any kind: a fitted model of classes or network, or an estimator of sequences or k-means.

    `rows` are `GivenRows` for classes; the summary of a table and its name for a network; numbers for k-means.
    """
    if isinstance(model, Fitted):
        return Report(classes_report(model, rows, redact))
    if hasattr(model, "net"):
        from softcount.report.network import network_page

        summary, name = (None, "") if rows is None else rows
        return Report(network_page(model, True, summary, name, redact))
    if hasattr(model, "found_"):
        from softcount.report.kmeans import centres_page

        names = [str(name) for name in getattr(model, "feature_names_in_", range(model.n_features_in_))]
        numbers = None if rows is None or hasattr(rows, "tocsr") else np.asarray(rows, dtype=float)
        return Report(centres_page(model.found_, names, True, numbers, redact))
    from softcount.report.sequences import sequence_report

    return Report(sequence_report(model, redact))


def find_rows(fitted: Fitted, table: Table, threads: Threads, name: str, labels: np.ndarray | None = None) -> GivenRows:
    """Compute what a table shows with the model that it is read for; `labels` are the places of its rows' classes."""
    from softcount.evaluate.scores import row_findings
    from softcount.fitted.classes import sort_rows
    from softcount.table.column_summary import summarise

    before = None if fitted.record is None else fitted.record.table
    summary = None if fitted.bag else summarise(table.chunks(threads.map), fitted.schema, before)
    findings = row_findings(fitted, table.chunks(threads.map), threads, labels)
    if not findings.rows:
        raise DataError(f"{name}: no rows, so there is nothing to report of it. Leave it out to see the model alone.")
    sorting = sort_rows(fitted, table, threads) if fitted.classes is None else None
    documents = tuple(words.find_documents(fitted, table, findings.picked))
    return GivenRows(name, summary, findings, sorting, documents)


# -- the report of a model of classes


def classes_report(fitted: Fitted, rows: GivenRows | None = None, redact: bool = False) -> Page:
    """Write all that is known of a model of classes, the verdict first."""
    told = redaction_of(fitted, redact)
    names = class_names(fitted)
    if redact and fitted.classes is not None:
        rare = (fitted.group_rows < FEWEST_ROWS).tolist()
        names = [RARE if hidden else name for name, hidden in zip(names, rare, strict=True)]
    page = Page()
    page.heading(title_of(fitted))
    _add_verdict(page, fitted, rows)
    if told.shows_cells:
        add_notes(page, fitted.notes, level=2)
    elif fitted.notes:
        page.line(f"{format_count(len(fitted.notes), 'note')} of the fit left out, which may quote cells")
    add_quality(page, fitted, told, None if rows is None else rows.summary)
    if rows is not None and rows.summary is not None:
        add_drift(page, None if fitted.record is None else fitted.record.table, rows.summary, rows.name)
    if fitted.classes is not None:
        _add_performance(page, fitted, rows, names)
    page.heading("What matters")
    if not is_only_text(fitted):
        add_influence(page, fitted, told=told, picture=True)
    words.add_word_pictures(page, fitted, names, told)
    if fitted.classes is not None:
        evidence.add_nomograms(page, fitted, names, told)
    page.heading("The classes")
    add_sizes(page, fitted, names)
    if fitted.classes is None:
        mixture.add_heat_map(page, fitted, names, told)
    mixture.add_planes(page, fitted, names, None if rows is None else rows.findings, told)
    evidence.add_shapes(page, fitted, names, told)
    _add_rows(page, fitted, rows, names, told)
    _add_fit(page, fitted)
    if rows is not None and fitted.classes is None and told.shows_cells:
        mixture.add_frames(page, fitted, rows.findings, names)
    add_origin(page, fitted.record, told)
    return page


def _add_verdict(page: Page, fitted: Fitted, rows: GivenRows | None) -> None:
    page.line(f"Learned from {format_count(fitted.n_rows, 'row')}; {format_count(fitted.n_parameters, 'parameter')}.")
    if fitted.classes is not None:
        tried = None if fitted.record is None else fitted.record.evaluation
        if tried is not None:
            page.line(summarize_evaluation(tried, "" if fitted.target is None else key_text(fitted.target)))
        else:
            page.line("How good it is on unseen rows is not in the model file.")
        if rows is not None and rows.findings.evaluation is not None:
            here = rows.findings.evaluation
            labelled = format_count(here.n_rows, "row")
            page.line(f"On {rows.name}: right in {format_share(here.accuracy)} of {labelled} with a class.")
    else:
        sizes = format_list([format_share(part) for part in sorted(fitted.row_shares.tolist(), reverse=True)], 5)
        line = f"{format_count(fitted.n_groups, 'class', 'classes')} of {sizes} of the rows"
        if fitted.agreed is not None and fitted.n_groups > 1:
            best, run = fitted.agreed
            line += f"; {best} of {format_count(run, 'start')} found these same ones"
        page.line(line + ("." if fitted.converged else "; the search had not converged."))
    ranked = [key_text(key) for key, value in fitted.influence() if value > 0]
    if fitted.n_groups > 1 and ranked:
        page.line(f"What says most: {format_list(ranked[:3])}.")


def _add_performance(page: Page, fitted: Fitted, rows: GivenRows | None, names: list[str]) -> None:
    page.heading("How good it is")
    tried = None if fitted.record is None else fitted.record.evaluation
    if tried is None:
        page.line(
            "not in this model file: it was fitted with --folds 0, in parts, in a database, by an earlier version, or "
            "from too many or too few labelled rows. softcount fit keeps it; a table with the classes shows it for "
            "its own rows: report MODEL DATA, or model.report(X, y)"
        )
    else:
        intro = f"{tried.how}, on rows the model had not seen ({format_count(tried.n_rows, 'labelled row')}):"
        add_performance(page, tried, names, intro, fitted.calibration)
        add_members(page, fitted)
    if rows is not None and rows.findings.evaluation is not None:
        page.heading(f"On the rows of {rows.name}", level=2)
        intro = "on rows given with their classes; those the model has learned from would look too good:"
        add_performance(page, rows.findings.evaluation, names, intro, lift=False)


def _add_rows(page: Page, fitted: Fitted, rows: GivenRows | None, names: list[str], told: Redaction) -> None:
    page.heading("Rows")
    if not told.shows_cells:
        page.line("no row is shown: this report is redacted")
        return
    if rows is None:
        page.line("give the report a table to see rows explained: softcount report MODEL DATA -o report.html")
        return
    if fitted.n_groups > 1:
        if fitted.classes is None:
            mixture.add_sureness(page, rows.findings, names)
        if not is_only_text(fitted):
            evidence.add_waterfalls(page, fitted, rows.findings.picked, names)
        words.add_documents(page, rows.documents, names)
    if rows.sorting is not None and rows.sorting.anomalies:
        page.heading("Rows that fit worst", level=2)
        page.line("score: how many nats the log-density of the row is below the usual one")
        add_anomalies(page, rows.sorting.anomalies, names)


def _add_fit(page: Page, fitted: Fitted) -> None:
    page.heading("How the fit went")
    if fitted.n_iter:
        state = "converged" if fitted.converged else "stopped before it had converged"
        page.line(f"EM {state} after {format_count(fitted.n_iter, 'iteration')}")
    else:
        page.line("one pass over the rows: nothing was hidden, so that counts are all there is to it")
    if fitted.log_likelihood is not None:
        page.line(f"log-likelihood {fitted.log_likelihood:,.3f}")
    plain = isinstance(fitted.prior, str | int | float)
    page.line(
        f"estimated by {fitted.estimate}; prior {key_text(fitted.prior) if plain else 'as given for the columns'}"
    )
    mixture.add_search(page, fitted, None if fitted.record is None else fitted.record.criterion)
