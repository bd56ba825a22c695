"""A model of classes: its record, its page for `show`, and the page of a fit."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType, field

from softcount.fitted.influence import influence_meaning
from softcount.pictures.chart import bar_chart
from softcount.pictures.text import CELL_LIMIT, format_count, format_list, format_number, format_share, shorten
from softcount.report import evaluation
from softcount.report.page import OPEN, Page, Record, Redaction, format_cell, key_text, make_grid, make_record
from softcount.report.quality import ColumnRecord, add_missing, add_notes, add_table, column_records, describe_role
from softcount.report.words import add_words, find_text_column

if TYPE_CHECKING:
    from softcount.evaluate.scores import Evaluation
    from softcount.fitted.classes import Anomaly, Card, ClassMember, SortedTable
    from softcount.fitted.fitted import Fitted
    from softcount.table.schema import Key

PAGE_COLUMNS, CARD_COLUMNS, PICTURE_COLUMNS = 10, 5, 20
"""Columns on a page, on the card of one class, and in a picture; JSON has all."""
SIDE_BY_SIDE = 4
"""Up to this many classes are columns of one table; more have a card each."""
REASON_NATS, REASON_LIMIT = 0.5, 40
"""A column is a reason, after the first, from so many nats on; its text is cut after so many characters."""
EXPERT_LINES = 40


def class_names(fitted: Fitted) -> list[str]:
    """Name the classes as a person does: by category, or by number if they were found."""
    known = fitted.n_groups if fitted.classes is not None else len(fitted.named or ())
    return [str(name) if g < known else f"class {name}" for g, name in enumerate(fitted.names)]


def is_only_text(fitted: Fitted) -> bool:
    """Whether the model reads nothing but text columns."""
    return bool(fitted.families) and set(fitted.families) <= set(fitted.schema.texts)


def title_of(fitted: Fitted) -> str:
    """Name the kind of model in a few words."""
    groups = format_count(fitted.n_groups, "class", "classes")
    if fitted.classes is None:
        return f"A mixture of {groups}"
    kind = "Naive Bayes" if fitted.ensemble is None else "Classifier" if fitted.aode is None else "Averaged stars"
    return f"{kind}: {groups}" if fitted.target is None else f"{kind} for {key_text(fitted.target)}: {groups}"


class SortedRows(Struct, frozen=True):
    """A table's rows sorted into classes, the name of the table, and the files of the rows if each row is one."""

    sorting: SortedTable
    data: str
    files: Sequence[str] = ()

    def file(self, row: int) -> Any:
        return self.files[row] if self.files else UNSET


# -- as data


class ContrastRecord(Struct, frozen=True):
    """A column in a class and in the rest of the table."""

    column: str
    influence: float
    here: str
    elsewhere: str


class ClassRecord(Struct, frozen=True):
    """A class: its size, its typical row, and the columns that set it apart."""

    name: Any = field(name="class")
    share: float
    rows: float
    departure: float
    typical: dict[str, Any]
    apart: list[ContrastRecord]


class InfluenceRecord(Struct, frozen=True):
    """The influence of a column: summed over the classes, relative to the largest, and class by class."""

    column: str
    value: float
    relative: float
    per_class: list[float]


class MemberRecord(Struct, frozen=True):
    """A row of a class, counted from 1."""

    row: int
    probability: float
    file: str | UnsetType = UNSET


class AnomalyRecord(Struct, frozen=True):
    """A row that fits badly, counted from 1, and how many nats each column adds to that."""

    row: int
    score: float
    log_density: float
    name: Any = field(name="class")
    reasons: list[dict[str, Any]]
    file: str | UnsetType = UNSET


class CrowdRecord(Struct, frozen=True):
    """The rows whose likeliest class this is."""

    name: Any = field(name="class")
    rows: float
    entropy: float
    relative_entropy: float
    surest: list[MemberRecord]
    least_sure: list[MemberRecord]


class SortingRecord(Struct, frozen=True):
    """A table sorted into the classes."""

    name: str
    rows: int
    entropy: float
    relative_entropy: float
    impossible_rows: int
    classes: list[CrowdRecord]
    anomalies: list[AnomalyRecord]


class ModelRecord(Struct, frozen=True):
    """A model of classes."""

    target: Key | None
    rows: float
    parameters: int
    classes: list[ClassRecord]
    columns: list[ColumnRecord]
    influence: list[InfluenceRecord]
    fitted: list[dict[str, Any]]
    objective: dict[str, Any]
    log_likelihood: float | None
    information: dict[str, float] | None
    iterations: int
    converged: bool
    interrupted: bool
    calibration: evaluation.CalibrationRecord | None
    starts: dict[str, int] | None
    selection: list[dict[str, Any]] | None
    notes: list[str]
    data: SortingRecord | None


class FitRecord(ModelRecord, frozen=True):
    """A model of classes that has just been fitted."""

    evaluation: evaluation.EvaluationRecord | None
    criterion: str | None
    expert: list[dict[str, Any]] | None
    saved: str
    next: list[str]


def model_record(fitted: Fitted, rows: SortedRows | None = None, parameters: bool = False) -> ModelRecord:
    """Return what a model holds as data; with a table sorted into its classes, that too."""
    return _record(ModelRecord, fitted, rows, parameters)


def _record(kind: type[Record], fitted: Fitted, rows: SortedRows | None, parameters: bool, **others: Any) -> Record:
    from softcount.fitted.answers import labels_in

    cards, names = fitted.cards(parameters), labels_in(fitted)
    families, levels, columns = fitted.families, fitted.levels, []
    for key, params in fitted.params.items():
        own: Any = {"levels": list(levels.get(key, ())), "parameters": params}
        if key in fitted.schema.texts:
            text = find_text_column(fitted, key)
            own = {name: getattr(text, name) for name in text.__struct_fields__}
        columns.append({"column": names[key], "family": families[key].name} | own)
    return make_record(
        kind, fitted, rows=fitted.n_rows, parameters=fitted.n_parameters,
        classes=[_class_record(card, names) for card in cards],
        columns=column_records(fitted.schema, fitted.missing), influence=_influence_records(fitted, cards, names),
        fitted=columns, objective={"name": fitted.objective, "trace": list(fitted.trace)}, iterations=fitted.n_iter,
        calibration=evaluation.calibration_record(fitted.calibration), starts=starts_record(fitted.agreed),
        selection=evaluation.selection_record(fitted), data=None if rows is None else _sorting_record(fitted, rows),
        **others,
    )  # fmt: skip


def starts_record(agreed: tuple[int, int] | None) -> dict[str, int] | None:
    """Return how many EM runs there were, and how many of them reached the best."""
    return None if agreed is None else {"run": agreed[1], "reached_the_best": agreed[0]}


def _class_record(card: Card, names: Mapping[Any, str]) -> ClassRecord:
    apart = [ContrastRecord(names[x.key], x.influence, x.here, x.elsewhere) for x in card.apart]
    return make_record(ClassRecord, card, typical={names[key]: x for key, x in card.typical.items()}, apart=apart)


def _influence_records(fitted: Fitted, cards: list[Card], names: Mapping[Any, str]) -> list[InfluenceRecord]:
    ranked = fitted.influence()
    most = max((value for _, value in ranked), default=0.0)
    each = [{x.key: x.influence for x in card.apart} for card in cards]
    return [
        InfluenceRecord(names[key], value, value / most if most > 0 else 0.0, [far[key] for far in each])
        for key, value in ranked
    ]


def _sorting_record(fitted: Fitted, found: SortedRows) -> SortingRecord:
    from softcount.core.counts import ROOT
    from softcount.fitted.answers import CLASS, labels_in, name_apart
    from softcount.fitted.classes import relative

    names, groups, sorting = {**labels_in(fitted), ROOT: name_apart(fitted, CLASS)}, fitted.n_groups, found.sorting

    def members(own: list[ClassMember]) -> list[MemberRecord]:
        return [MemberRecord(x.row + 1, x.probability, found.file(x.row)) for x in own]

    classes = [
        CrowdRecord(
            name, crowd.rows, crowd.entropy, relative(crowd.entropy, groups), members(crowd.most), members(crowd.least)
        )
        for name, crowd in zip(fitted.names, sorting.classes, strict=True)
    ]
    anomalies = [
        AnomalyRecord(
            odd.row + 1, odd.score, odd.log_density, fitted.names[odd.group] if odd.probability > 0 else None,
            [{"column": names[key], "value": odd.cells.get(key), "surprise": x} for key, x in odd.parts.items()],
            found.file(odd.row),
        )
        for odd in sorting.anomalies
    ]  # fmt: skip
    return make_record(
        SortingRecord, sorting, name=found.data, relative_entropy=relative(sorting.entropy, groups),
        impossible_rows=sorting.impossible, classes=classes, anomalies=anomalies,
    )  # fmt: skip


# -- as a page


def model_page(fitted: Fitted, rows: SortedRows | None = None, parameters: bool = False) -> Page:
    """Write what a model holds, for `softcount show`; with a table sorted into its classes, who is in them.

    Shares, means and deviations are those of the rows or, with `parameters`, those that rows are scored with.
    """
    page = Page()
    page.heading(title_of(fitted))
    page.line(f"from {format_count(fitted.n_rows, 'row')}, {format_count(fitted.n_parameters, 'parameter')}")
    if parameters:
        page.line("figures are the parameters that rows are scored with: the prior has its part in them")
    if fitted.calibration is not None:
        evaluation.add_calibration(page, fitted.calibration)
    evaluation.add_selection(page, fitted)
    if fitted.information is not None:
        page.line(f"log-likelihood {fitted.log_likelihood:,.3f}")
        _add_information(page, fitted)
    _add_classes(page, fitted, parameters)
    _add_columns_that_matter(page, fitted, brief=False, parameters=parameters)
    if fitted.n_groups > 1:
        _add_cards(page, fitted, parameters)
    if rows is not None:
        _add_sorting(page, fitted, rows)
    page.heading("Columns")
    families = {
        column: family.title
        for key, family in fitted.families.items()
        for column in (key if isinstance(key, tuple) else (key,))
    }
    lines = [
        (
            key_text(spec.key), describe_role(spec), families.get(spec.key, "-"), spec.why,
            format_number(fitted.missing.get(spec.key)),
        )
        for spec in fitted.schema.fields
    ]  # fmt: skip
    page.grid(("column", "kind", "modelled as", "why", "missing cells"), lines, right=("missing cells",))
    add_notes(page, fitted.notes)
    return page


def add_sizes(page: Page, fitted: Fitted, names: Sequence[str], prior: bool = False) -> None:
    """Add how large each class is; with `prior`, also the share it is given before a row is read."""
    headings: tuple[str, ...] = ("class", "share", "rows", "taken to be")[: 4 if prior else 3]
    shares = map(format_share, fitted.row_shares.tolist())
    figures = zip(
        shares, map(format_number, fitted.group_rows.tolist()), map(format_share, fitted.shares.tolist()), strict=True
    )
    page.grid(headings, [(name, *each)[: len(headings)] for name, each in zip(names, figures, strict=True)], None)


def _add_classes(page: Page, fitted: Fitted, parameters: bool = False) -> None:
    page.heading("Classes")
    shares = zip(fitted.shares.tolist(), fitted.row_shares.tolist(), strict=True)
    prior = parameters or any(abs(a - b) > 0.01 for a, b in shares)
    add_sizes(page, fitted, class_names(fitted), prior)
    if prior:
        page.line("taken to be is the share that a class is given before a row is read")


def _add_columns_that_matter(page: Page, fitted: Fitted, brief: bool = True, parameters: bool = False) -> None:
    """Add the columns with most influence, and what they look like in each class; the words of text columns."""
    if not is_only_text(fitted):
        if fitted.n_groups == 1 and fitted.params:
            page.heading("What the rows look like")
            rows = [(key_text(key), *fitted.describe(key, parameters)) for key in list(fitted.params)[:PAGE_COLUMNS]]
            page.grid(("column", *class_names(fitted)), rows)
            if len(fitted.params) > len(rows):
                page.line(f"and {format_count(len(fitted.params) - len(rows), 'column')} more (--json has all)")
        add_influence(page, fitted, parameters)
    if fitted.schema.texts:
        add_words(page, fitted, class_names(fitted), brief)


def add_influence(
    page: Page, fitted: Fitted, parameters: bool = False, told: Redaction = OPEN, picture: bool = False
) -> None:
    """Add the columns by their influence and what they look like in each class, or a picture with these numbers."""
    ranked = fitted.influence()
    if fitted.n_groups < 2 or not ranked:
        return
    chosen, most, meaning = (
        ranked[: PICTURE_COLUMNS if picture else PAGE_COLUMNS],
        ranked[0][1],
        influence_meaning(fitted),
    )
    headings: tuple[str, ...] = ("column", "influence", "relative")
    rows: list[tuple[str, ...]] = [
        (key_text(key), format_number(value, 3), f"{value / most:.3f}" if most > 0 else "-") for key, value in chosen
    ]
    if fitted.n_groups <= SIDE_BY_SIDE and told.shows_cells:
        headings = (*headings, *class_names(fitted))
        rows = [(*row, *fitted.describe(key, parameters)) for row, (key, _) in zip(rows, chosen, strict=True)]
    grid = make_grid(headings, rows, right=("influence", "relative"))
    if picture:
        chart = bar_chart(
            [row[0] for row in rows], [x for _, x in chosen], [row[1] for row in rows], "influence by column"
        )
        page.picture("Influence", chart, grid, f"{meaning[0].upper()}{meaning[1:]}.")
    else:
        page.heading(f"Columns that matter most (influence: {meaning})")
        page.blocks.append(grid)
    if len(ranked) > len(chosen):
        page.line(f"and {format_count(len(ranked) - len(chosen), 'column that matters', 'columns that matter')} less")


def _add_cards(page: Page, fitted: Fitted, parameters: bool = False) -> None:
    """Add what sets each class apart from the rest of the table, and its typical row.

    If the model reads only text, the characteristic words say it already.
    """
    if is_only_text(fitted):
        return
    for name, part, card in zip(class_names(fitted), fitted.row_shares, fitted.cards(parameters), strict=True):
        page.heading(f"What sets {name} apart ({format_share(float(part))} of the rows)")
        rows = [
            (key_text(x.key), format_number(x.influence, 3), x.here, x.elsewhere) for x in card.apart[:CARD_COLUMNS]
        ]
        page.grid(("column", "influence", "here", "elsewhere"), rows, right=("influence",))
        cells: list[tuple[Any, Any]] = []
        for key in [x.key for x in card.apart]:
            typical = card.typical[key]
            value = typical.replace(",", "") if key in fitted.schema.texts else typical  # words without commas
            cells += zip(key, value, strict=True) if isinstance(key, tuple) else [(key, value)]
        shown = format_list([f"{key_text(column)} {format_cell(value)}" for column, value in cells], most=8)
        page.line(f"typical row: {shown}")


def _add_sorting(page: Page, fitted: Fitted, found: SortedRows) -> None:
    """Add who is in which class and how certainly, and the rows that fit worst."""
    from softcount.fitted.classes import relative

    names, sorting = class_names(fitted), found.sorting

    def unsure(entropy: float) -> str:
        return format_share(relative(entropy, fitted.n_groups))

    def members(own: list[ClassMember]) -> str:
        return ", ".join(f"{member.row + 1} ({format_share(member.probability)})" for member in own) or "-"

    page.heading(f"The rows of {found.data}, by their likeliest class")
    rows = [
        (name, format_number(crowd.rows), unsure(crowd.entropy), members(crowd.most), members(crowd.least))
        for name, crowd in zip(names, sorting.classes, strict=True)
    ]
    page.grid(("class", "rows", "unsure", "surest rows", "least sure rows"), rows, right=("rows", "unsure"))
    total = unsure(sorting.entropy)
    page.line(f"unsure, over all rows: {total} (membership entropy; 0 % where every row is sure of its class)")
    if sorting.impossible:
        page.line(f"{format_count(sorting.impossible, 'row')} impossible under every class, and in none")
    if sorting.anomalies:
        page.heading("Rows that fit worst (score: nats of log-density below the usual)")
        add_anomalies(page, sorting.anomalies, names, found.files)


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
    from softcount.core.counts import ROOT

    first, *others = odd.parts.items()
    reasons = []
    for key, part in [first, *(pair for pair in others if pair[1] >= REASON_NATS)][:most]:
        held = f" {shorten(format_cell(odd.cells[key]), REASON_LIMIT) or '(empty)'}" if key in odd.cells else ""
        what = "a rare class" if key is ROOT else f"{key_text(key)}{held}"
        reasons.append(f"{what} (impossible)" if part == float("inf") else f"{what} ({part:+.1f})")
    while len(reasons) > 1 and len(", ".join(reasons)) > CELL_LIMIT:  # whole reasons, none cut in mid-number
        reasons.pop()
    return ", ".join(reasons)


# -- a fit


class FitReport(Struct, frozen=True):
    """A fit and its outcome. `evaluation` is None if the model was not evaluated on unseen rows.

    `criterion` chose the number of classes, if it was searched; `reading` are the options the data were read with;
    `beside` compares an expert's beliefs with the data.
    """

    fitted: Fitted
    evaluation: Evaluation | None
    n_rows: int
    saved: str
    data: str
    criterion: str = "evidence"
    reading: tuple[str, ...] = ()
    beside: Any = None


def fit_record(report: FitReport) -> FitRecord:
    """Return a fit as data: the model, the evaluation, and where it was saved."""
    return _record(
        FitRecord, report.fitted, None, False, evaluation=evaluation.evaluation_record(report.evaluation),
        criterion=report.criterion if report.fitted.selection else None,
        expert=None if report.beside is None else report.beside.to_pylist(),
        saved=report.saved, next=suggest_commands(report),
    )  # fmt: skip


def fit_page(report: FitReport) -> Page:
    """Write what was learned, how well it predicts, and what to do next."""
    from softcount.evaluate.warnings import WORSE

    fitted, page = report.fitted, Page()
    add_table(page, fitted, report.n_rows, fitted.n_groups)
    page.heading(title_of(fitted))
    # Before any figure: that guessing would do better.
    first = [note for note in fitted.notes if fitted.classes is not None and note.startswith(WORSE)]
    page.line(*first)
    if fitted.classes is None:
        _add_search(page, report)
    else:
        evaluation.add_evaluation(page, report.evaluation, fitted.calibration, fitted.ensemble is None)
        add_members(page, fitted)
    _add_classes(page, fitted)
    _add_columns_that_matter(page, fitted)
    if fitted.n_groups > SIDE_BY_SIDE:
        _add_cards(page, fitted)
    if report.beside is not None:
        _add_expert(page, report.beside)
    add_missing(page, fitted)
    add_notes(page, [note for note in fitted.notes if note not in first])
    add_saved(page, report.saved, suggest_commands(report))
    return page


def add_saved(page: Page, saved: str, commands: Sequence[str]) -> None:
    """Add where the model was saved, and commands that go on from here."""
    page.heading("Saved")
    page.line(f"the model, in {saved}" if saved != "-" else "the model, to standard output")
    page.heading("Next")
    page.line(*commands)


def add_members(page: Page, fitted: Fitted) -> None:
    """Add the models that were tried for the ensemble, and the weights of its members."""
    if fitted.ensemble is None or not fitted.ensemble.tried:
        return
    page.line("what was tried to tell the classes, each by itself, on rows held out:")
    rows = [
        (x.name, format_share(x.accuracy), format_number(x.log_loss), f"{x.weight:.2f}" if x.weight else "-")
        for x in fitted.ensemble.tried
    ]
    page.grid(("", "accuracy", "log-loss", "weight"), rows, right=None)


def _add_search(page: Page, report: FitReport) -> None:
    """Add how the classes were found, and whether another search would find the same."""
    fitted = report.fitted
    evaluation.add_selection(page, fitted, report.criterion)
    steps = format_count(fitted.n_iter, "iteration")
    ending = f"converged after {steps}" if fitted.converged else f"stopped after {steps}, before it had converged"
    ending = f"interrupted after {steps}: the best so far" if fitted.interrupted else ending
    page.line(f"log-likelihood {fitted.log_likelihood or 0.0:,.3f}; {ending}")
    _add_information(page, fitted)
    if fitted.agreed is not None and fitted.n_groups > 1:
        best, run = fitted.agreed
        page.line(f"{best} of {format_count(run, 'start')} reached the best")
        if best == 1 and run > 1:
            # While a number is searched, each gets a few starts; all starts go to a number that is given.
            given = f"--classes {fitted.n_groups} " if fitted.selection else ""
            page.line(f"more starts may find better classes: {given}--starts {10 * run}")


def _add_information(page: Page, fitted: Fitted) -> None:
    """Add the figures that compare a mixture with other models of the same rows."""
    found = fitted.information
    if found is not None:
        line = f"BIC {found['bic']:,.1f}, AIC {found['aic']:,.1f} (smaller is better)"
        if "entropy" in found:
            line += f"; entropy of all memberships {found['entropy']:,.1f} nats, so ICL {found['icl']:,.1f}"
        page.line(line)


def _add_expert(page: Page, beside: Any) -> None:
    """Add a line for each belief of an expert: the expert's share, that of the rows, and that of both together."""
    lines = beside.to_pylist()
    page.heading("Expert and data")
    rows = [
        (
            x["column"], x["level"], x["class"], f"{format_number(x['n'])} of {format_number(x['m'])}",
            *(format_share(x[name]) for name in ("expert", "data", "both")), f"{x['surprise_bits']:+,.1f}",
        )
        for x in lines[:EXPERT_LINES]
    ]  # fmt: skip
    headings = ("column", "level", "class", "believed", "expert", "data", "both", "surprise")
    page.grid(headings, rows, right=headings[3:])
    if len(lines) > EXPERT_LINES:
        page.line(f"and {len(lines) - EXPERT_LINES:,} more: --json has them all")
    page.line("surprise: bits more that the rows of the column and class take than by 1 imagined row of each level;")
    page.line("below 0 the expert knew something, far above 0 the data contradict the expert")


def suggest_commands(report: FitReport) -> list[str]:
    """Return commands that go on from a fit, as one would type them."""
    model, data = quote_files(report.saved, report.data, report.reading)
    page = f"softcount report {model} {data} -o report.html"
    if report.fitted.classes is None:
        return [page, f"softcount show {model} {data}", f"softcount predict {model} {data}"]
    return [page, f"softcount explain {model} {data} --row 1", f"softcount predict {model} {data} -o predicted.csv"]


def quote_files(saved: str, data: str, reading: Sequence[str]) -> tuple[str, str]:
    """Return the model and the data, with the options it was read with, as one would type them."""
    model = "MODEL" if saved == "-" else shlex.quote(saved)
    return model, " ".join(["DATA" if data == "-" else shlex.quote(data), *reading])
