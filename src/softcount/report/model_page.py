"""A fitted model as a person reads it: its classes and columns, or its centres; also how a table is read, and a fit."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from softcount.fitted.influence import influence_meaning
from softcount.report import class_page, evaluation_page
from softcount.report.class_page import SortedRows, class_names
from softcount.report.expert_page import add_expert
from softcount.report.page import Page, key_text
from softcount.report.plain_text import counted, listed, number, share
from softcount.report.word_page import add_marks, marks_document
from softcount.table.schema import Field, Key, Kind, Schema

if TYPE_CHECKING:
    from softcount.evaluate.scores import Evaluation
    from softcount.fitted.fitted import Fitted
    from softcount.learn.kmeans.fit import Centres
    from softcount.learn.record import Learned

MOST_COLUMNS = 10
"""How many columns a report names; --json names all."""

SIDE_BY_SIDE = 4
"""Up to this many classes are columns of one table; more get a table each."""


def model_page(fitted: Fitted, rows: SortedRows | None = None, parameters: bool = False) -> Page:
    """What a model holds, for `softcount show`; with a table sorted into its classes, who is in them.

    Shares, means and deviations are those of the rows or, with `parameters`, those that rows are scored with.
    """
    page = Page()
    page.heading(headline(fitted))
    page.line(f"from {counted(fitted.n_rows, 'row')}, {counted(fitted.n_parameters, 'parameter')}")
    if parameters:
        page.line("figures are the parameters that rows are scored with: the prior has its part in them")
    if fitted.calibration is not None:
        evaluation_page.add_calibration(page, fitted.calibration)
    evaluation_page.add_selection(page, fitted)
    if fitted.information is not None:
        page.line(f"log-likelihood {fitted.log_likelihood:,.3f}")
        add_information(page, fitted)
    add_groups(page, fitted, parameters)
    add_apart(page, fitted, brief=False, parameters=parameters)
    if fitted.n_groups > 1:
        class_page.add_cards(page, fitted, parameters)
    if rows is not None:
        class_page.add_sorting(page, fitted, rows)
    _add_columns(page, fitted)
    add_notes(page, fitted.notes)
    return page


def headline(fitted: Fitted) -> str:
    """What kind of model it is, in a few words."""
    groups = counted(fitted.n_groups, "class", "classes")
    if fitted.classes is None:
        return f"A mixture of {groups}"
    kind = "Naive Bayes" if fitted.pool is None else "Classifier" if fitted.stars is None else "Averaged stars"
    return f"{kind}: {groups}" if fitted.target is None else f"{kind} for {key_text(fitted.target)}: {groups}"


def add_groups(page: Page, fitted: Fitted, parameters: bool = False) -> None:
    """How large each class is; where it is taken to have another share of the rows to come, that too."""
    page.heading("Classes")
    taken, found = fitted.shares.tolist(), fitted.row_shares.tolist()
    other = parameters or any(abs(a - b) > 0.01 for a, b in zip(taken, found, strict=True))
    headings: tuple[str, ...] = ("class", "share", "rows", "taken to be") if other else ("class", "share", "rows")
    figures = zip(map(share, found), map(number, fitted.group_rows.tolist()), map(share, taken), strict=True)
    rows = [(name, *each)[: len(headings)] for name, each in zip(class_names(fitted), figures, strict=True)]
    page.grid(headings, rows, right=headings[1:])
    if other:
        page.line("taken to be is the share that a class is given before a row is read")


def add_apart(page: Page, fitted: Fitted, brief: bool = True, parameters: bool = False) -> None:
    """The columns that tell the classes apart, and what they look like in each class; the words of columns of text."""
    if not class_page.only_text(fitted):
        _add_influence(page, fitted, parameters)
    if fitted.schema.texts:
        add_marks(page, fitted, brief)


def _add_influence(page: Page, fitted: Fitted, parameters: bool) -> None:
    ranked = fitted.influence()
    if fitted.n_groups == 1 and fitted.params:
        _add_whole(page, fitted, parameters)
    if fitted.n_groups < 2 or not ranked:
        return
    chosen, most = ranked[:MOST_COLUMNS], ranked[0][1]
    page.heading(f"Columns that matter most (influence: {influence_meaning(fitted)})")
    headings: tuple[str, ...] = ("column", "influence", "relative")
    figures: list[tuple[str, ...]] = [
        (key_text(key), number(value, 3), f"{value / most:.3f}" if most > 0 else "-") for key, value in chosen
    ]
    if fitted.n_groups <= SIDE_BY_SIDE:
        words = [fitted.describe(key, parameters) for key, _ in chosen]
        headings = (*headings, *class_names(fitted))
        figures = [(*figure, *said) for figure, said in zip(figures, words, strict=True)]
    page.grid(headings, figures, right=("influence", "relative"))
    if len(ranked) > len(chosen):
        page.line(f"and {counted(len(ranked) - len(chosen), 'column that matters', 'columns that matter')} less")


def _add_whole(page: Page, fitted: Fitted, parameters: bool) -> None:
    """The columns of a single class: nothing sets it apart, but it looks like something."""
    page.heading("What the rows look like")
    rows = [(key_text(key), *fitted.describe(key, parameters)) for key in list(fitted.params)[:MOST_COLUMNS]]
    page.grid(("column", *class_names(fitted)), rows)
    if len(fitted.params) > len(rows):
        page.line(f"and {counted(len(fitted.params) - len(rows), 'column')} more (--json has all)")


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
        column: family.title
        for key, family in fitted.families.items()
        for column in (key if isinstance(key, tuple) else (key,))
    }


def add_missing(page: Page, fitted: Learned) -> None:
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
    """What the owner of the table wants to know."""
    if notes:
        page.heading("Notes")
        page.line(*notes)


def model_document(fitted: Fitted, rows: SortedRows | None = None, parameters: bool = False) -> dict[str, Any]:
    """What a model holds, as data; with a table sorted into its classes, that too. Figures as of the page."""
    from softcount.fitted.answers import labels_in

    cards, names = fitted.cards(parameters), labels_in(fitted)
    return {
        "target": fitted.target,
        "rows": fitted.n_rows,
        "parameters": fitted.n_parameters,
        "classes": [class_page.card_document(card, names) for card in cards],
        "columns": column_documents(fitted.schema, fitted.missing),
        "influence": class_page.influence_document(fitted, cards, names),
        "fitted": _fitted_columns(fitted, names),
        "objective": {"name": fitted.objective, "trace": list(fitted.trace)},
        "log_likelihood": fitted.log_likelihood,
        "information": fitted.information,
        "iterations": fitted.n_iter,
        "converged": fitted.converged,
        "interrupted": fitted.interrupted,
        "calibration": evaluation_page.calibration_document(fitted.calibration),
        "starts": starts_document(fitted.agreed),
        "selection": evaluation_page.selection_document(fitted),
        "notes": list(fitted.notes),
        "data": None if rows is None else class_page.sorting_document(fitted, rows),
    }


def _fitted_columns(fitted: Fitted, names: Mapping[Key, str]) -> list[dict[str, Any]]:
    families, levels, texts, found = fitted.families, fitted.levels, set(fitted.schema.texts), []
    for key, params in fitted.params.items():
        own = {"levels": list(levels.get(key, ())), "parameters": params}
        if key in texts:
            own = marks_document(fitted, key)
        found.append({"column": names[key], "family": families[key].name} | own)
    return found


def starts_document(agreed: tuple[int, int] | None) -> dict[str, int] | None:
    """How many starts were run, and how many of them reached the best; None where there were none."""
    return None if agreed is None else {"run": agreed[1], "reached_the_best": agreed[0]}


# -- the columns of a table as they were understood

Missing = Mapping[Key, float]
"""Missing cells per column; a column that was not read has no entry."""

HEADINGS = ("column", "kind", "why", "missing")


def schema_page(schema: Schema, n_rows: int, missing: Missing, notes: Sequence[str] = ()) -> Page:
    """How a table is read, for `softcount schema`."""
    page = Page()
    page.heading(f"{counted(n_rows, 'row')}, {counted(len(schema.fields), 'column')}")
    page.grid(HEADINGS, column_lines(schema, missing, n_rows), right=("missing",))
    left_out = [key_text(spec.key) for spec in schema.fields if not spec.used]
    if left_out:
        page.heading("Left out")
        page.line(f"{listed(left_out)}. To use one anyway, declare its kind: --kind {left_out[0]}=categorical")
    add_notes(page, list(notes))
    return page


def column_lines(schema: Schema, missing: Missing, n_rows: float) -> list[tuple[str, ...]]:
    """One line per column: its name, kind, why, and the share of its cells that are missing."""
    return [
        (key_text(spec.key), role(spec), spec.why, missing_share(spec.key, missing, n_rows)) for spec in schema.fields
    ]


def role(spec: Field) -> str:
    """The kind of a column, and whether it is left out."""
    if spec.used:
        return str(spec.kind)
    return "left out" if spec.declared else f"{spec.kind} (left out)"


def missing_share(key: Key, missing: Missing, n_rows: float) -> str:
    """The share of a column's cells that are missing."""
    return share(float(missing[key]) / n_rows) if key in missing and n_rows > 0 else "-"


def schema_document(schema: Schema, n_rows: int, missing: Missing, notes: Sequence[str] = ()) -> dict[str, Any]:
    """How a table is read, as data."""
    words = list(schema.missing)
    return {
        "rows": n_rows, "columns": column_documents(schema, missing), "missing_words": words, "notes": list(notes),
    }  # fmt: skip


def column_documents(schema: Schema, missing: Missing) -> list[dict[str, Any]]:
    """The columns as data."""
    return [
        {
            "column": spec.key,
            "kind": str(spec.kind),
            "why": spec.why,
            "used": spec.used,
            "declared": spec.declared,
            "missing": missing.get(spec.key),
            **_values(spec),
        }
        for spec in schema.fields
    ]


def _values(spec: Field) -> dict[str, Any]:
    """The levels of a column; of a column of text, which may have millions of words, only how many."""
    return {"words": len(spec.levels)} if spec.kind is Kind.TEXT else {"levels": list(spec.levels)}


class FitReport(Struct, frozen=True):
    """A fit and what became of it. `evaluation` is None where the model was not tried on unseen rows.

    `criterion` is what the number of classes was chosen by, if it was; `reading`, the options the data were read with;
    `beside` is what an expert believes beside what the data say.
    """

    fitted: Fitted
    evaluation: Evaluation | None
    n_rows: int
    saved: str
    data: str
    criterion: str = "evidence"
    reading: tuple[str, ...] = ()
    beside: Any = None


def fit_page(report: FitReport) -> Page:
    """What was learned, how well it predicts, and what to do next."""
    fitted = report.fitted
    page = Page()
    _add_table(page, report)
    page.heading(headline(fitted))
    first = _said_first(fitted)
    page.line(*first)
    if fitted.classes is None:
        _add_search(page, report)
    else:
        evaluation_page.add_evaluation(page, report.evaluation, fitted.calibration, fitted.pool is None)
        add_tried(page, fitted)
    add_groups(page, fitted)
    add_apart(page, fitted)
    if fitted.n_groups > SIDE_BY_SIDE:
        class_page.add_cards(page, fitted)
    if report.beside is not None:
        add_expert(page, report.beside)
    add_missing(page, fitted)
    add_notes(page, [note for note in fitted.notes if note not in first])
    _add_saved(page, report)
    return page


def _said_first(fitted: Fitted) -> list[str]:
    """What is said before any figure: that guessing would do better."""
    if fitted.classes is None:
        return []
    from softcount.evaluate.warnings import WORSE

    return [note for note in fitted.notes if note.startswith(WORSE)]


def add_tried(page: Page, fitted: Fitted) -> None:
    """What was tried to tell the classes, and what of it does so with which weight."""
    if fitted.pool is None or not fitted.pool.tried:
        return
    page.line("what was tried to tell the classes, each by itself, on rows held out:")
    rows = [
        (line.name, share(line.accuracy), number(line.log_loss), f"{line.weight:.2f}" if line.weight else "-")
        for line in fitted.pool.tried
    ]
    page.grid(("", "accuracy", "log-loss", "weight"), rows, right=("accuracy", "log-loss", "weight"))


def _add_table(page: Page, report: FitReport) -> None:
    """The columns as understood, the target last."""
    fitted = report.fitted
    lines = column_lines(fitted.schema, fitted.missing, report.n_rows)
    if fitted.target is not None:
        missing = missing_share(fitted.target, fitted.missing, report.n_rows)
        lines.append((key_text(fitted.target), "target", counted(fitted.n_groups, "class", "classes"), missing))
    page.heading(f"{counted(report.n_rows, 'row')}, {counted(len(lines), 'column')}")
    page.grid(HEADINGS, lines, right=("missing",))


def _add_search(page: Page, report: FitReport) -> None:
    """How the classes were found, and whether another search would find the same."""
    fitted = report.fitted
    evaluation_page.add_selection(page, fitted, report.criterion)
    page.line(f"log-likelihood {fitted.log_likelihood or 0.0:,.3f}; {_ending(fitted)}")
    add_information(page, fitted)
    if fitted.agreed is not None and fitted.n_groups > 1:
        best, run = fitted.agreed
        page.line(f"{best} of {counted(run, 'start')} reached the best")
        if best == 1 and run > 1:
            # While a number is looked for, each gets a few starts; all that are asked for go to one that is given.
            given = f"--classes {fitted.n_groups} " if fitted.selection else ""
            page.line(f"more starts may find better classes: {given}--starts {10 * run}")


def add_information(page: Page, fitted: Fitted) -> None:
    """What a mixture's figures are for comparing with other models of the same rows."""
    found = fitted.information
    if found is None:
        return
    said = f"BIC {found['bic']:,.1f}, AIC {found['aic']:,.1f} (smaller is better)"
    if "entropy" in found:
        said += f"; entropy of all memberships {found['entropy']:,.1f} nats, so ICL {found['icl']:,.1f}"
    page.line(said)


def _ending(fitted: Fitted) -> str:
    steps = counted(fitted.n_iter, "iteration")
    if fitted.interrupted:
        return f"interrupted after {steps}: the best so far"
    return f"converged after {steps}" if fitted.converged else f"stopped after {steps}, before it had converged"


def _add_saved(page: Page, report: FitReport) -> None:
    page.heading("Saved")
    page.line(f"the model, in {report.saved}" if report.saved != "-" else "the model, to standard output")
    page.heading("Next")
    page.line(*next_commands(report))


def next_commands(report: FitReport) -> list[str]:
    """Commands that go on from here, as one would type them."""
    model = "MODEL" if report.saved == "-" else shlex.quote(report.saved)
    data = "DATA" if report.data == "-" else shlex.quote(report.data)
    data = " ".join([data, *report.reading])
    page = f"softcount report {model} {data} -o report.html"
    if report.fitted.classes is None:
        return [page, f"softcount show {model} {data}", f"softcount predict {model} {data}"]
    return [page, f"softcount explain {model} {data} --row 1", f"softcount predict {model} {data} -o predicted.csv"]


def fit_document(report: FitReport) -> dict[str, Any]:
    """The same as data: the model, the evaluation and where it was saved."""
    return {
        **model_document(report.fitted),
        "evaluation": evaluation_page.evaluation_document(report.evaluation),
        "criterion": report.criterion if report.fitted.selection else None,
        "expert": None if report.beside is None else report.beside.to_pylist(),
        "saved": report.saved,
        "next": next_commands(report),
    }


CENTRES_ABREAST = 6
"""Up to this many centres are columns of one table; more are its lines, with as many columns."""


def centres_page(found: Centres, names: list[str]) -> Page:
    """The centres, the columns in which they differ most first."""
    page = Page()
    clusters = counted(len(found.centres), "cluster")
    page.heading(f"K-means, rows of length one: {clusters}" if found.frame.unit else f"K-means: {clusters}")
    ending = "converged" if found.converged else "stopped before it had converged"
    page.line(f"cost {number(found.inertia, 6)}; {ending} after {counted(found.n_iter, 'pass', 'passes')}")
    page.heading("Centres")
    _add_centres(page, found, names)
    add_notes(page, found.notes)
    return page


def _add_centres(page: Page, found: Centres, names: list[str]) -> None:
    spread = found.frame.inside(found.centres).var(axis=0)
    order = sorted(range(len(spread)), key=lambda column: -spread[column])
    few = len(found.centres) <= CENTRES_ABREAST
    chosen = order[: MOST_COLUMNS if few else CENTRES_ABREAST]
    if few:
        headings = [f"cluster {cluster}" for cluster in range(len(found.centres))]
        rows = [(names[j], *(number(float(x)) for x in found.centres[:, j])) for j in chosen]
    else:
        headings = [names[j] for j in chosen]
        rows = [(str(g), *(number(float(centre[j])) for j in chosen)) for g, centre in enumerate(found.centres)]
    page.grid(("column" if few else "cluster", *headings), rows, right=headings)
    if len(order) > len(chosen):
        page.line(f"and {counted(len(order) - len(chosen), 'column')} in which the centres differ less")


def centres_document(found: Centres, names: list[str]) -> dict[str, Any]:
    """The same as data."""
    return {
        "clusters": len(found.centres),
        "columns": names,
        "centres": found.centres,
        "unit_length": found.frame.unit,
        "cost": found.inertia,
        "trace": found.trace,
        "iterations": found.n_iter,
        "converged": found.converged,
        "starts": starts_document(found.agreed),
        "notes": found.notes,
    }
