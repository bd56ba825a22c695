"""A model of classes: its record, and its page at two lengths, for `show` and as a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.core.counts import ROOT
from softcount.evaluate.warnings import WORSE
from softcount.families.base import family_title
from softcount.fitted.answers import CLASS, labels_in, name_apart
from softcount.fitted.classes import relative
from softcount.fitted.explain import influence_meaning
from softcount.pictures.chart import PANEL, bar_chart
from softcount.pictures.text import (
    CELL_LIMIT,
    format_count,
    format_list,
    format_loss,
    format_number,
    format_share,
    shorten,
)
from softcount.report import class_pictures, evaluation, quality, words
from softcount.report.class_pictures import GivenRows, View
from softcount.report.page import (
    OPEN,
    RARE,
    Figure,
    Page,
    Redaction,
    format_cell,
    key_text,
    make_grid,
    pick,
    redaction_of,
)  # fmt: skip

if TYPE_CHECKING:
    from softcount.fitted.classes import Anomaly, ClassMember, SortedTable
    from softcount.fitted.fitted import Fitted

PAGE_COLUMNS, CARD_COLUMNS, PICTURE_COLUMNS = 10, 5, 20
"""Columns on a page, on the card of one class, and in a picture; JSON has all."""
SIDE_BY_SIDE = 4
"""Up to this many classes are columns of one table; more have a card each."""
REASON_NATS, REASON_LIMIT = 0.5, 40
"""A column after the first is a reason from this many nats on; its text is cut after this many characters."""


def class_names(fitted: Fitted, redaction: Redaction = OPEN) -> list[str]:
    """Name the classes as a person does: by category, or by number if they were found."""
    known = fitted.n_groups if fitted.classes is not None else len(fitted.named or ())
    names = [str(name) if g < known else f"class {name}" for g, name in enumerate(fitted.names)]
    if fitted.classes is None:
        return names
    return [name if redaction.allows(n) else RARE for name, n in zip(names, fitted.group_rows.tolist(), strict=True)]


def is_only_text(fitted: Fitted) -> bool:
    return bool(fitted.families) and set(fitted.families) <= set(fitted.schema.texts)


def title_of(fitted: Fitted) -> str:
    groups = format_count(fitted.n_groups, "class", "classes")
    if fitted.classes is None:
        return f"A mixture of {groups}"
    kind = fitted.scorer.title
    return f"{kind}: {groups}" if fitted.target is None else f"{kind} for {key_text(fitted.target)}: {groups}"


# -- as data


def model_record(fitted: Fitted, rows: GivenRows | None = None, parameters: bool = False, **fit: Any) -> dict[str, Any]:
    """Return what a model holds as data; with a table sorted into its classes, that too; `fit` is about the fit."""
    cards, names, ranked = fitted.cards(parameters), labels_in(fitted), fitted.influence()
    most = max((value for _, value in ranked), default=0.0)
    by_class = [{x.key: x.influence for x in card.contrasts} for card in cards]
    families, levels, columns = fitted.families, fitted.levels, []
    for key, params in fitted.params.items():
        own: Any = {"levels": list(levels.get(key, ())), "parameters": params}
        if key in fitted.schema.texts:
            own = words.find_text_column(fitted, key)
        columns.append({"column": names[key], "family": families[key].name} | own)
    influence = [
        {"column": names[key], "value": value, "relative": value / most if most > 0 else 0.0,
         "per_class": [far[key] for far in by_class]}
        for key, value in ranked
    ]  # fmt: skip
    selection = None
    if fitted.selection is not None:
        selection = [{**trial.figures, "chosen": trial.classes == fitted.n_groups} for trial in fitted.selection]
    return {
        "target": fitted.target, "rows": fitted.n_rows, "parameters": fitted.n_parameters,
        "classes": [card.as_data(names) for card in cards],
        "columns": quality.column_records(fitted.schema, fitted.missing), "influence": influence, "fitted": columns,
        "objective": {"name": fitted.objective, "trace": fitted.trace}, **pick(fitted, "log_likelihood", "information"),
        "iterations": fitted.n_iter, **pick(fitted, "converged", "interrupted"),
        "calibration": evaluation.calibration_record(fitted.scorer.calibration), "starts": starts_record(fitted.agreed),
        "selection": selection, "criterion": fitted.record.criterion,
        "evaluation": evaluation.evaluation_record(fitted.record.evaluation), "notes": fitted.notes,
        "data": None if rows is None else _sorting_record(fitted, rows), **fit,
    }  # fmt: skip


def starts_record(agreed: tuple[int, int] | None) -> dict[str, int] | None:
    return None if agreed is None else {"run": agreed[1], "reached_the_best": agreed[0]}


def _sorting_record(fitted: Fitted, given: GivenRows) -> dict[str, Any]:
    """Return the rows of each class, and the rows that fit worst. Rows are counted from 1."""
    assert given.sorting is not None
    names, groups, sorting = {**labels_in(fitted), ROOT: name_apart(fitted, CLASS)}, fitted.n_groups, given.sorting

    def with_file(line: dict[str, Any], row: int) -> dict[str, Any]:
        return line | ({"file": given.files[row]} if given.files else {})

    def members(own: list[ClassMember]) -> list[dict[str, Any]]:
        return [with_file({"row": x.row + 1, "probability": x.probability}, x.row) for x in own]

    classes = [
        {
            "class": name, "rows": crowd.rows, "entropy": crowd.entropy,
            "relative_entropy": relative(crowd.entropy, groups),
            "surest": members(crowd.most), "least_sure": members(crowd.least),
        }
        for name, crowd in zip(fitted.names, sorting.classes, strict=True)
    ]  # fmt: skip
    anomalies = []
    for odd in sorting.anomalies:
        reasons = [{"column": names[key], "value": odd.cells.get(key), "surprise": x} for key, x in odd.parts.items()]
        likeliest = fitted.names[odd.group] if odd.probability > 0 else None
        line = {"row": odd.row + 1, "score": odd.score, "log_density": odd.log_density, "class": likeliest}
        anomalies.append(with_file(line | {"reasons": reasons}, odd.row))
    return {
        "name": given.name, "rows": sorting.rows, "entropy": sorting.entropy,
        "relative_entropy": relative(sorting.entropy, groups), "impossible_rows": sorting.impossible,
        "classes": classes, "anomalies": anomalies,
    }  # fmt: skip


# -- as a page


def model_page(
    fitted: Fitted, rows: GivenRows | None = None, parameters: bool = False, full: bool = False, redact: bool = False
) -> Page:
    """Write what a model holds, for `softcount show` or, in `full`, as a report; with a table, what its rows show."""
    page, redaction = Page(), redaction_of(fitted, redact)
    view = View(fitted, class_names(fitted, redaction), full, rows, parameters, redaction)
    if full:
        _add_overview(page, view)
    else:
        page.heading(title_of(fitted))
        page.line(_describe_size(fitted))
        if parameters:
            page.line("figures are the parameters that rows are scored with, which include the prior")
    if fitted.classes is not None:
        _add_performance(page, view)
    elif not full:
        _add_search(page, view)
    for add_part in (_add_classes, _add_columns, _add_cards, _add_rows):
        add_part(page, view)
    if full:
        summary = None if rows is None else rows.summary
        quality.add_quality(page, fitted, redaction, summary)
        if rows is not None and summary is not None:
            quality.add_drift(page, fitted.record.table, summary, rows.name)
        _add_search(page, view)
        quality.add_origin(page, fitted.record, redaction)
        return page
    families: dict[Any, str] = {}
    for key, family in fitted.families.items():
        families |= dict.fromkeys(key if isinstance(key, tuple) else (key,), family_title(family))
    page.heading("Columns")
    modelled = {"modelled as": lambda spec: families.get(spec.key, "-")}
    quality.add_columns(page, fitted.schema, fitted.missing, fitted.n_rows, more=modelled)
    quality.add_missing(page, fitted)
    shown_above = [note for note in fitted.notes if note.startswith(WORSE) and fitted.classes is not None]
    quality.add_notes(page, [note for note in fitted.notes if note not in shown_above])
    return page


def _describe_size(fitted: Fitted) -> str:
    return f"from {format_count(fitted.n_rows, 'row')}, {format_count(fitted.n_parameters, 'parameter')}"


def _add_overview(page: Page, view: View) -> None:
    """Add the first screen of a report: table and target, figures, the pictures that sum it up, and the notes."""
    fitted, rows, tried = view.fitted, view.rows, view.fitted.record.evaluation
    subject = quality.subject_of(fitted) if view.redaction.shows_cells else ""
    page.heading(subject or title_of(fitted))
    page.line(f"{title_of(fitted)}, {_describe_size(fitted)}" if subject else _describe_size(fitted))
    figures = evaluation.list_figures(tried, fitted.n_rows)
    if fitted.classes is None:
        sizes = sorted(fitted.row_shares.tolist(), reverse=True)
        largest = f"{format_share(sizes[0])} to {format_share(sizes[-1])} of the rows" if len(sizes) > 1 else ""
        figures.insert(0, Figure("Classes", str(fitted.n_groups), largest))
    here = None if rows is None or rows.findings is None else rows.findings.evaluation
    if rows is not None and here is not None and not view.learned_rows:
        labelled = format_count(here.n_rows, "labelled row")
        figures.append(Figure(f"Accuracy on {rows.name}", format_share(here.accuracy), labelled))
    page.facts(figures)
    evaluation.add_warning(page, tried)
    if fitted.classes is None:
        class_pictures.add_heat_map(page, view)
    if is_only_text(fitted):
        words.add_words(page, view)
    else:
        _add_influence(page, view)
    if tried is not None and evaluation.shown_above(tried):
        evaluation.add_confusion(page, tried, view.names, picture=True)
    if view.redaction.shows_cells:
        quality.add_ordered_notes(page, fitted.notes)
    elif fitted.notes:
        page.line(f"{format_count(len(fitted.notes), 'note')} of the fit left out, which may quote cells")


def _add_performance(page: Page, view: View) -> None:
    fitted, tried = view.fitted, view.fitted.record.evaluation
    calibration = fitted.scorer.calibration
    if view.full:
        page.heading("How good it is")
    page.line(*(note for note in fitted.notes if note.startswith(WORSE) and not view.full))
    if tried is None:
        page.line(
            "not evaluated on held-out rows (--folds 0, too few labelled rows, merged, or learned in parts). On "
            "labelled rows: softcount report MODEL DATA, or model.report(X, y)"
        )
    else:
        intro = f"{tried.how}, on rows the model had not seen ({format_count(tried.n_rows, 'labelled row')}):"
        remedy = evaluation.REMEDY if fitted.scorer.is_naive else ""
        evaluation.add_evaluation(page, tried, view.names, intro, calibration, remedy, view.full)
    if tried is None and calibration:
        evaluation.add_calibration(page, calibration)
    ensemble = fitted.scorer.ensemble
    if ensemble and ensemble.tried:
        page.line("models tried for the ensemble, each cross-validated alone:")
        rows = [
            (x.name, format_share(x.accuracy), format_loss(x.log_loss), f"{x.weight:.2f}" if x.weight else "-")
            for x in ensemble.tried
        ]
        page.grid(("", "accuracy", "log-loss", "weight"), rows, right=None)
    here = None if view.findings is None else view.findings.evaluation
    if not view.full or here is None or view.rows is None:
        return
    if tried is not None and view.learned_rows:
        accuracy, loss = format_share(here.accuracy), format_loss(here.log_loss)
        page.line(
            f"On the training rows the model has accuracy {accuracy} and log-loss {loss}: too optimistic for new rows."
        )
    else:
        page.heading(f"On the rows of {view.rows.name}", level=2)
        intro = "on the labelled rows given; figures on rows that the model has learned from are too good:"
        evaluation.add_evaluation(page, here, view.names, intro, full=True, lift=False)


def _add_search(page: Page, view: View) -> None:
    fitted = view.fitted
    if view.full:
        page.heading("How the fit went")
    evaluation.add_selection(page, fitted, fitted.record.criterion, view.full)
    steps = format_count(fitted.n_iter, "iteration")
    ending = f"EM converged after {steps}" if fitted.converged else f"EM stopped after {steps}, before it had converged"
    if fitted.interrupted:
        ending = f"interrupted after {steps}: the best so far"
    elif not fitted.n_iter:
        ending = "one pass over the rows: no class had to be estimated by EM"
    if fitted.log_likelihood is not None:
        ending = f"log-likelihood {fitted.log_likelihood:,.3f}; {ending}"
    page.line(ending)
    found = fitted.information
    if found is not None:
        line = f"BIC {found['bic']:,.1f}, AIC {found['aic']:,.1f} (smaller is better)"
        if "entropy" in found:
            line += f"; entropy of all memberships {found['entropy']:,.1f} nats, so ICL {found['icl']:,.1f}"
        page.line(line)
    if fitted.agreed is not None and fitted.n_groups > 1:
        page.line(quality.describe_starts(fitted.agreed), *suggest_starts(fitted))
    if view.full:
        prior = key_text(fitted.prior) if isinstance(fitted.prior, str | int | float) else "as given for the columns"
        page.line(f"estimated by {fitted.estimate}; prior {prior}")
        class_pictures.add_trace(page, fitted)
        if fitted.classes is None:
            class_pictures.add_frames(page, view)


def suggest_starts(fitted: Fitted) -> list[str]:
    """Suggest more initialisations if only one of several reached the best."""
    if fitted.agreed is None or fitted.agreed[0] > 1 or min(fitted.agreed[1], fitted.n_groups) == 1:
        return []
    # While a number is searched, each gets a few starts; all starts go to a number that is given.
    given = f"--classes {fitted.n_groups} " if fitted.selection else ""
    return [f"more initialisations may find better classes: {given}--starts {10 * fitted.agreed[1]}"]


def _add_classes(page: Page, view: View) -> None:
    """Add how large each class is, and its prior probability if that differs; in full, where the classes lie."""
    fitted = view.fitted
    page.heading("Classes")
    prior = view.parameters or bool(np.any(np.abs(fitted.shares - fitted.row_shares) > 0.01))
    headings = ("class", "share", "rows", "prior")[: 4 if prior else 3]
    shares, rows = map(format_share, fitted.row_shares.tolist()), map(format_number, fitted.group_rows.tolist())
    figures = zip(view.names, shares, rows, map(format_share, fitted.shares.tolist()), strict=True)
    page.grid(headings, [line[: len(headings)] for line in figures], None)
    if prior:
        page.line("prior is the probability that a class has before any cell of a row is known")
    if view.full:
        class_pictures.add_planes(page, view)


def _add_columns(page: Page, view: View) -> None:
    fitted = view.fitted
    if view.full and is_only_text(fitted):
        return  # its words are at the top
    if view.full:
        page.heading("Columns in each class" if fitted.n_groups > 1 else "Columns")
    elif not is_only_text(fitted):
        if fitted.n_groups == 1 and fitted.params:
            page.heading("What the rows look like")
            keys = list(fitted.params)[:PAGE_COLUMNS]
            page.grid(
                ("column", *view.names), [(key_text(key), *fitted.describe(key, view.parameters)) for key in keys]
            )
            page.rest(len(fitted.params) - len(keys), "column", after="more (--json has all)")
        _add_influence(page, view)
    words.add_words(page, view)


def _add_influence(page: Page, view: View) -> None:
    fitted, ranked = view.fitted, view.fitted.influence()
    if fitted.n_groups < 2 or not ranked:
        return
    chosen, most = ranked[: PICTURE_COLUMNS if view.full else PAGE_COLUMNS], ranked[0][1]
    meaning = influence_meaning(fitted)
    headings: tuple[str, ...] = ("column", "influence", "relative")
    rows: list[tuple[str, ...]] = [
        (key_text(key), format_number(value, 3), f"{value / most:.3f}" if most > 0 else "-") for key, value in chosen
    ]
    if fitted.n_groups <= SIDE_BY_SIDE and view.redaction.shows_cells:
        headings = (*headings, *view.names)
        rows = [(*row, *fitted.describe(key, view.parameters)) for row, (key, _) in zip(rows, chosen, strict=True)]
    grid = make_grid(headings, rows, right=("influence", "relative"))
    if view.full:
        names, texts = [row[0] for row in rows[:PAGE_COLUMNS]], [row[1] for row in rows[:PAGE_COLUMNS]]
        values = [max(x, 0.0) for _, x in chosen[:PAGE_COLUMNS]]
        chart = bar_chart(names, values, texts, "influence by column", room=140, width=PANEL)
        reading = f"Influence: {meaning}."
        page.picture("Columns that matter most", chart, grid, reading, small=True)
    else:
        page.heading(f"Columns that matter most (influence: {meaning})")
        page.blocks.append(grid)
        page.rest(len(ranked) - len(chosen), "column that matters", "columns that matter", "less")


def _add_cards(page: Page, view: View) -> None:
    """Add what distinguishes each class from the rest of the table, and its typical row; in full, as pictures.

    If the model reads only text, its characteristic words show it already.
    """
    fitted = view.fitted
    if view.full:
        if fitted.classes is not None:
            class_pictures.add_nomograms(page, view)
        class_pictures.add_shapes(page, view)
        return
    if is_only_text(fitted) or fitted.n_groups == 1:
        return
    for name, part, card in zip(view.names, fitted.row_shares, fitted.cards(view.parameters), strict=True):
        page.heading(f"How {name} differs ({format_share(float(part))} of the rows)")
        rows = [
            (key_text(x.key), format_number(x.influence, 3), x.here, x.elsewhere) for x in card.contrasts[:CARD_COLUMNS]
        ]
        page.grid(("column", "influence", "in this class", "in the others"), rows, right=("influence",))
        cells: list[tuple[Any, Any]] = []
        for key in [x.key for x in card.contrasts]:
            typical = card.typical[key]
            value = typical.replace(",", "") if key in fitted.schema.texts else typical  # words without commas
            cells += zip(key, value, strict=True) if isinstance(key, tuple) else [(key, value)]
        shown = format_list([f"{key_text(column)} {format_cell(value)}" for column, value in cells], most=8)
        page.line(f"typical row: {shown}")


def _add_rows(page: Page, view: View) -> None:
    rows = view.rows
    if view.full:
        page.heading("Rows")
        if not view.redaction.shows_cells:
            page.line("no row is shown: this report is redacted")
            return
        if rows is None:
            page.line("To see rows explained, give the report a table: softcount report MODEL DATA -o report.html")
            return
        if view.fitted.n_groups > 1 and view.findings is not None:
            if view.fitted.classes is None:
                class_pictures.add_sureness(page, view.findings.sureness, view.names)
            if not is_only_text(view.fitted):
                class_pictures.add_waterfalls(page, view, view.findings.picked)
            words.add_documents(page, rows.documents, view.names)
    if rows is None or rows.sorting is None:
        return
    if not view.full:
        _add_sorting(page, view, rows.name, rows.sorting)
    if rows.sorting.anomalies:
        title = "Rows that fit worst (score: nats of log-density below the expected value)"
        page.heading(title, 2 if view.full else 1)
        add_anomalies(page, rows.sorting.anomalies, view.names, rows.files)


def _add_sorting(page: Page, view: View, data: str, sorting: SortedTable) -> None:
    def unsure(entropy: float) -> str:
        return format_share(relative(entropy, view.fitted.n_groups))

    def members(own: list[ClassMember]) -> str:
        return ", ".join(f"{member.row + 1} ({format_share(member.probability)})" for member in own) or "-"

    page.heading(f"The rows of {data}, by their likeliest class")
    lines = [
        (name, format_number(crowd.rows), unsure(crowd.entropy), members(crowd.most), members(crowd.least))
        for name, crowd in zip(view.names, sorting.classes, strict=True)
    ]
    page.grid(("class", "rows", "unsure", "surest rows", "least sure rows"), lines, right=("rows", "unsure"))
    total = unsure(sorting.entropy)
    page.line(f"unsure, over all rows: {total} (membership entropy; 0 % if every row is certain of its class)")
    if sorting.impossible:
        page.line(
            f"{format_count(sorting.impossible, 'row')} with probability zero in every class; no class contains them"
        )


def add_anomalies(page: Page, found: Sequence[Anomaly], names: Sequence[str] | None, files: Sequence[str] = ()) -> None:
    """Add the rows that fit worst, with the columns that make them odd; `names` are those of classes, if there are."""
    rows = []
    for odd in found:
        score = "impossible" if odd.score == float("inf") else f"{odd.score:.1f}"
        likeliest = [] if names is None else [names[odd.group] if odd.probability > 0 else "none"]
        file = [files[odd.row]] if files else []
        rows.append((str(odd.row + 1), *file, score, *likeliest, give_reasons(odd)))
    headings = ("row", *(["file"] if files else []), "score", *([] if names is None else ["likeliest"]), "because")
    page.grid(headings, rows, right=("row", "score"))


def give_reasons(odd: Anomaly, most: int = 3) -> str:
    """Name the columns that make a row odd, with their cells and what they add to its score."""
    first, *others = odd.parts.items()
    reasons = []
    for key, part in [first, *(pair for pair in others if pair[1] >= REASON_NATS)][:most]:
        held = f" {shorten(format_cell(odd.cells[key]), REASON_LIMIT) or '(empty)'}" if key in odd.cells else ""
        what = "a rare class" if key is ROOT else f"{key_text(key)}{held}"
        reasons.append(f"{what} (impossible)" if part == float("inf") else f"{what} ({part:+.1f})")
    while len(reasons) > 1 and len(", ".join(reasons)) > CELL_LIMIT:  # whole reasons, none cut in mid-number
        reasons.pop()
    return ", ".join(reasons)
