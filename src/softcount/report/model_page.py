"""A fitted model as a person reads it: classes, columns, and what sets the classes apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from softcount.report.class_page import (
    SortedRows,
    add_cards,
    add_sorting,
    card_document,
    class_names,
    influence_document,
    only_text,
    sorting_document,
)
from softcount.report.column_page import column_documents, role
from softcount.report.json_page import key_text
from softcount.report.page import Page
from softcount.report.plain_text import counted, listed, number, share
from softcount.report.reliability import add_calibration, calibration_document
from softcount.report.selection_page import add_selection, selection_document
from softcount.report.word_page import add_marks, marks_document

if TYPE_CHECKING:
    from softcount.fitted.fitted_model import Fitted

MOST_COLUMNS = 10
"""How many columns a report names; --json names all."""

SIDE_BY_SIDE = 4
"""Up to this many classes are columns of one table; more get a table each."""


def model_page(fitted: Fitted, rows: SortedRows | None = None) -> Page:
    """What a model holds, for `softcount show`; with a table sorted into its classes, who is in them."""
    page = Page()
    page.heading(headline(fitted))
    page.line(f"from {counted(fitted.n_rows, 'row')}, {counted(fitted.n_parameters, 'parameter')}")
    if fitted.calibration is not None:
        add_calibration(page, fitted.calibration)
    add_selection(page, fitted)
    add_groups(page, fitted)
    add_apart(page, fitted, brief=False)
    if fitted.n_groups > 1:
        add_cards(page, fitted)
    if rows is not None:
        add_sorting(page, fitted, rows)
    _add_columns(page, fitted)
    add_notes(page, fitted.notes)
    return page


def headline(fitted: Fitted) -> str:
    groups = counted(fitted.n_groups, "class", "classes")
    if fitted.classes is None:
        return f"A mixture of {groups}"
    return f"Naive Bayes: {groups}" if fitted.target is None else f"Naive Bayes for {key_text(fitted.target)}: {groups}"


def add_groups(page: Page, fitted: Fitted) -> None:
    """How large each class is."""
    page.heading("Classes")
    shares, sizes = ([float(size) for size in sizes] for sizes in (fitted.shares, fitted.group_rows))
    rows = [
        (name, share(part), number(size)) for name, part, size in zip(class_names(fitted), shares, sizes, strict=True)
    ]
    page.grid(("class", "share", "rows"), rows, right=("share", "rows"))
    if any(abs(part * sum(sizes) - size) > 0.01 * sum(sizes) for part, size in zip(shares, sizes, strict=True)):
        page.line("share is what a class is taken to have before a row is read, not its share of these rows")


def add_apart(page: Page, fitted: Fitted, brief: bool = True) -> None:
    """The columns that tell the classes apart, and what they look like in each class; the words of columns of text."""
    if not only_text(fitted):
        _add_influence(page, fitted)
    if fitted.schema.texts:
        add_marks(page, fitted, brief)


def _add_influence(page: Page, fitted: Fitted) -> None:
    ranked = fitted.influence()
    if fitted.n_groups == 1 and fitted.params:
        _add_whole(page, fitted)
    if fitted.n_groups < 2 or not ranked:
        return
    chosen = ranked[:MOST_COLUMNS]
    page.heading("Columns that matter most (influence: how far the classes depart from the whole table, in nats)")
    headings: tuple[str, ...] = ("column", "influence", "relative")
    figures: list[tuple[str, ...]] = [
        (key_text(key), number(value, 3), _of_most(value, ranked[0][1])) for key, value in chosen
    ]
    if fitted.n_groups <= SIDE_BY_SIDE:
        words = [fitted.describe(key) for key, _ in chosen]
        headings = (*headings, *class_names(fitted))
        figures = [(*figure, *said) for figure, said in zip(figures, words, strict=True)]
    page.grid(headings, figures, right=("influence", "relative"))
    if len(ranked) > len(chosen):
        page.line(f"and {counted(len(ranked) - len(chosen), 'column that matters', 'columns that matter')} less")


def _add_whole(page: Page, fitted: Fitted) -> None:
    """The columns of a single class: nothing sets it apart, but it looks like something."""
    page.heading("What the rows look like")
    rows = [(key_text(key), *fitted.describe(key)) for key in list(fitted.params)[:MOST_COLUMNS]]
    page.grid(("column", *class_names(fitted)), rows)
    if len(fitted.params) > len(rows):
        page.line(f"and {counted(len(fitted.params) - len(rows), 'column')} more (--json has all)")


def _of_most(value: float, most: float) -> str:
    """Beside the most influential column, which is 1."""
    return f"{value / most:.3f}" if most > 0 else "-"


def _add_columns(page: Page, fitted: Fitted) -> None:
    page.heading("Columns")
    families = _families(fitted)
    rows = [
        (key_text(spec.key), role(spec), families.get(spec.key, "-"), spec.why, number(fitted.missing.get(spec.key)))
        for spec in fitted.schema.fields
    ]
    page.grid(("column", "kind", "modelled as", "why", "missing cells"), rows, right=("missing cells",))


def _families(fitted: Fitted) -> dict[Any, str]:
    """The family of each column, by the column."""
    return {
        column: f"text, {getattr(family, 'model', '')}" if family.name == "text" else family.name
        for key, family in fitted.families.items()
        for column in (key if isinstance(key, tuple) else (key,))
    }


def add_missing(page: Page, fitted: Fitted) -> None:
    """Which cells were missing and which columns were left out, and what became of them."""
    page.heading("Missing and left out")
    holes = [f"{key_text(key)} ({n:,.0f})" for key, n in fitted.missing.items() if n > 0]
    if holes:
        cells = counted(sum(fitted.missing.values()), "missing cell")
        page.line(f"{cells}, taken as no evidence; no row was dropped: {listed(holes)}")
    else:
        page.line("no missing cells")
    left_out = [f"{key_text(spec.key)} ({spec.why})" for spec in fitted.schema.fields if not spec.used]
    if left_out:
        page.line(f"{counted(len(left_out), 'column')} left out: {listed(left_out)}")


def add_notes(page: Page, notes: list[str]) -> None:
    if notes:
        page.heading("Notes")
        page.lines(notes)


def model_document(fitted: Fitted, rows: SortedRows | None = None) -> dict[str, Any]:
    """What a model holds, as data; with a table sorted into its classes, that too."""
    cards = fitted.cards()
    return {
        "target": fitted.target,
        "rows": fitted.n_rows,
        "parameters": fitted.n_parameters,
        "classes": [card_document(card) for card in cards],
        "columns": column_documents(fitted.schema, fitted.missing),
        "influence": influence_document(cards, fitted.influence()),
        "fitted": _fitted_columns(fitted),
        "objective": {"name": fitted.objective, "trace": list(fitted.trace)},
        "log_likelihood": fitted.log_likelihood,
        "iterations": fitted.n_iter,
        "converged": fitted.converged,
        "interrupted": fitted.interrupted,
        "calibration": calibration_document(fitted.calibration),
        "starts": _starts_document(fitted),
        "selection": selection_document(fitted),
        "notes": list(fitted.notes),
        "data": None if rows is None else sorting_document(fitted, rows),
    }


def _fitted_columns(fitted: Fitted) -> list[dict[str, Any]]:
    families, levels = fitted.families, fitted.levels
    return [
        {"column": key_text(key), "family": families[key].name}
        | (marks_document(fitted, key) if families[key].name == "text" else _parameters(levels.get(key, ()), params))
        for key, params in fitted.params.items()
    ]


def _parameters(levels: Iterable[Any], params: Any) -> dict[str, Any]:
    return {"levels": list(levels), "parameters": params}


def _starts_document(fitted: Fitted) -> dict[str, int] | None:
    if fitted.agreed is None:
        return None
    best, run = fitted.agreed
    return {"run": run, "reached_the_best": best}
