"""The report of a model of classes: verdict first, then data, figures, what matters, classes, rows, fit and origin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from softcount.report import evidence_part, mixture_part, performance_part, quality_part, word_part
from softcount.report.class_page import class_names, only_text
from softcount.report.discretion import RARE, Discretion
from softcount.report.model_page import add_tried, headline
from softcount.report.page import Page, key_text
from softcount.report.plain_text import counted, listed, number, share

if TYPE_CHECKING:
    from softcount.evaluate.scores import RowFindings
    from softcount.fitted.classes import SortedTable
    from softcount.fitted.fitted import Fitted
    from softcount.learn.record import FitRecord, Learned
    from softcount.report.word_part import ShownDocument
    from softcount.table.column_summary import TableSummary


class GivenRows(Struct, frozen=True):
    """A table that a report is given beside the model: its name, its columns, and what its rows show."""

    name: str
    summary: TableSummary | None
    findings: RowFindings
    sorting: SortedTable | None = None
    documents: tuple[ShownDocument, ...] = ()


def model_report(fitted: Fitted, rows: GivenRows | None = None, redact: bool = False) -> Page:
    """All that is known of a model of classes, as one page."""
    told = discretion_of(fitted, redact)
    names = shown_classes(fitted, told)
    page = Page()
    page.heading(headline(fitted))
    _add_verdict(page, fitted, rows, names)
    if told.shows_cells:
        _add_notes(page, fitted.notes)
    elif fitted.notes:
        page.line(f"{counted(len(fitted.notes), 'note')} of the fit left out, which may quote cells")
    quality_part.add_quality(page, fitted, told, None if rows is None else rows.summary)
    if rows is not None and rows.summary is not None:
        before = None if fitted.record is None else fitted.record.table
        quality_part.add_drift(page, before, rows.summary, fitted.schema, rows.name)
    if fitted.classes is not None:
        _add_performance(page, fitted, rows, names)
    page.heading("What matters")
    if not only_text(fitted):
        evidence_part.add_influence(page, fitted)
    word_part.add_words(page, fitted, names, told)
    if fitted.classes is not None:
        evidence_part.add_nomograms(page, fitted, names, told)
    page.heading("The classes")
    add_sizes(page, fitted, names)
    if fitted.classes is None:
        mixture_part.add_heat_map(page, fitted, names, told)
    mixture_part.add_planes(page, fitted, names, None if rows is None else rows.findings, told)
    evidence_part.add_shapes(page, fitted, names, told)
    _add_rows(page, fitted, rows, names, told)
    add_fit(page, fitted)
    if rows is not None and fitted.classes is None and told.shows_cells:
        mixture_part.add_frames(page, fitted, rows.findings, names)
    add_origin(page, fitted.record, told)
    return page


def discretion_of(fitted: Learned, redact: bool) -> Discretion:
    """How levels and numbers of this model are shown."""
    if not redact:
        return Discretion()
    table = None if fitted.record is None else fitted.record.table
    rows: dict[Any, dict[Any, float]] = {}
    for column in () if table is None else table.columns:
        levels = fitted.schema[column.key].levels
        rows[column.key] = {levels[place]: float(n) for place, n in column.levels}
    return Discretion(True, rows)


def shown_classes(fitted: Fitted, told: Discretion) -> list[str]:
    """The names of the classes; redacted, those of fewer than five rows have none."""
    names = class_names(fitted)
    if told.shows_cells or fitted.classes is None:
        return names
    return [name if rows >= 5 else RARE for name, rows in zip(names, fitted.group_rows.tolist(), strict=True)]


# -- verdict


def _add_verdict(page: Page, fitted: Fitted, rows: GivenRows | None, names: list[str]) -> None:
    """What a reader in a hurry wants to know."""
    record = fitted.record
    page.line(f"Learned from {counted(fitted.n_rows, 'row')}; {counted(fitted.n_parameters, 'parameter')}.")
    if fitted.classes is not None:
        tried = None if record is None else record.evaluation
        if tried is not None:
            target = "" if fitted.target is None else key_text(fitted.target)
            page.line(performance_part.verdict(tried, target, names))
        else:
            page.line("How good it is on unseen rows is not in the model file.")
        if rows is not None and rows.findings.evaluation is not None:
            here = rows.findings.evaluation
            page.line(f"On {rows.name}: right in {share(here.accuracy)} of {counted(here.n_rows, 'row')} with a class.")
    else:
        page.line(_search_verdict(fitted))
    ranked = [key_text(key) for key, value in fitted.influence() if value > 0]
    if fitted.n_groups > 1 and ranked:
        page.line(f"What says most: {listed(ranked[:3])}.")


def _search_verdict(fitted: Fitted) -> str:
    sizes = listed([share(part) for part in sorted(fitted.row_shares.tolist(), reverse=True)], 5)
    said = f"{counted(fitted.n_groups, 'class', 'classes')} of {sizes} of the rows"
    if fitted.agreed is not None and fitted.n_groups > 1:
        best, run = fitted.agreed
        said += f"; {best} of {counted(run, 'start')} found these same ones"
    return said + ("." if fitted.converged else "; the search had not converged.")


def _add_notes(page: Page, notes: list[str]) -> None:
    if notes:
        page.heading("Notes", level=2)
        page.line(*notes)


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
        intro = f"{tried.how}, on rows the model had not seen ({counted(tried.n_rows, 'labelled row')}):"
        performance_part.add_performance(page, tried, names, intro, fitted.calibration)
        add_tried(page, fitted)
    if rows is not None and rows.findings.evaluation is not None:
        page.heading(f"On the rows of {rows.name}", level=2)
        intro = "on rows given with their classes; those the model has learned from would look too good:"
        performance_part.add_performance(page, rows.findings.evaluation, names, intro, lift=False)


# -- classes, rows, fit, origin


def add_sizes(page: Page, fitted: Fitted, names: list[str]) -> None:
    """How large each class is."""
    found = [
        (name, share(part), number(rows))
        for name, part, rows in zip(names, fitted.row_shares.tolist(), fitted.group_rows.tolist(), strict=True)
    ]
    page.grid(("class", "share", "rows"), found, right=("share", "rows"))


def _add_rows(page: Page, fitted: Fitted, rows: GivenRows | None, names: list[str], told: Discretion) -> None:
    page.heading("Rows")
    if not told.shows_cells:
        page.line("no row is shown: this report is redacted")
        return
    if rows is None:
        page.line("give the report a table to see rows explained: softcount report MODEL DATA -o report.html")
        return
    if fitted.n_groups > 1:
        if fitted.classes is None:
            mixture_part.add_sureness(page, rows.findings, names)
        if not only_text(fitted):
            evidence_part.add_waterfalls(page, fitted, rows.findings.picked, names)
        word_part.add_documents(page, rows.documents, names)
    if rows.sorting is not None:
        mixture_part.add_anomalies(page, rows.sorting, names)


def add_fit(page: Page, fitted: Fitted) -> None:
    """How the fit went."""
    page.heading("How the fit went")
    if fitted.n_iter:
        state = "converged" if fitted.converged else "stopped before it had converged"
        page.line(f"EM {state} after {counted(fitted.n_iter, 'iteration')}")
    else:
        page.line("one pass over the rows: nothing was hidden, so that counts are all there is to it")
    if fitted.log_likelihood is not None:
        page.line(f"log-likelihood {fitted.log_likelihood:,.3f}")
    page.line(f"estimated by {fitted.estimate}; prior {_prior_text(fitted.prior)}")
    mixture_part.add_search(page, fitted, None if fitted.record is None else fitted.record.criterion)


def _prior_text(prior: Any) -> str:
    return key_text(prior) if isinstance(prior, str | int | float) else "as given for the columns"


def add_origin(page: Page, record: FitRecord | None, told: Discretion) -> None:
    """Where the model comes from."""
    page.heading("Where it comes from")
    origin = None if record is None else record.provenance
    if origin is None:
        page.line("not in this model file, which is of an earlier version, or was merged or drawn up by hand")
        return
    rows = [("Softcount", origin.version), ("seed", str(origin.seed))]
    if told.shows_cells:
        page.line(origin.command)
        rows.append(("data", origin.data))
    rows.append(("SHA-256 of the data", origin.sha256 or "not known: it was no file"))
    page.grid(("", "value"), rows)
