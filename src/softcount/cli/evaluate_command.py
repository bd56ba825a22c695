"""softcount evaluate: how well a model does on rows whose class is known, what decisions cost, thresholds, lift."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct
from msgspec.structs import asdict

from softcount.cli import options
from softcount.cli.decision_options import DecisionRequest, class_numbers
from softcount.errors import DataError

if TYPE_CHECKING:
    import numpy as np

    from softcount.cli.data_input import InputFormat
    from softcount.evaluate.ranking import LiftLine, ScoredRows
    from softcount.evaluate.scores import CostFigures, Evaluation
    from softcount.fitted.decisions import Threshold
    from softcount.report.page import Page
    from softcount.run.progress import Tell
    from softcount.table import Table

EPILOG = """\b
Examples:
  softcount evaluate adult.sc kept-back.csv
  softcount evaluate adult.sc kept-back.csv --precision '>50K=0.9'
  softcount evaluate ill.sc rows.csv --cost ill,well=10 --lift ill --json

DATA holds rows the model has not learned from, with their class; rows without one are passed over. The figures stand
beside those of always saying how frequent each class was in training. AUC is how often a row of a class has a higher
probability of it than one of another, averaged over the classes.

--precision and --recall find the probability from which on to decide for a class (`softcount predict --threshold`),
and what it gives here: for every fold of DATA also by the threshold that its other rows would have chosen."""


@click.command("evaluate", epilog=EPILOG, short_help="Say how well a model does on rows whose class is known.")
@options.model_argument
@options.data_argument
@click.option("--target", metavar="COL", help="The column that holds the class.  [default: as in the fit]")
@click.option("--weight", metavar="COL", help="A column of row weights.")
@click.option("--cost", "costs", multiple=True, metavar="TRUE,DECIDED=N", help="As for predict: what decisions cost.")
@click.option(
    "--prior", "prior", multiple=True, metavar="CLASS=SHARE", help="As for predict: how frequent classes are."
)
@click.option("--precision", metavar="CLASS=P", help="Find the threshold for this precision.")
@click.option("--recall", metavar="CLASS=R", help="Find the threshold for this recall.")
@click.option("--lift", metavar="CLASS", help="The class of the lift table.  [default: the rarer of two]")
@options.format_options()
@options.json_option
def command(  # noqa: PLR0913 - what can be asked for
    model: str,
    data: str,
    target: str | None,
    weight: str | None,
    costs: tuple[str, ...],
    prior: tuple[str, ...],
    precision: str | None,
    recall: str | None,
    lift: str | None,
    form: InputFormat,
    json_wanted: bool,
) -> None:
    """Say how well MODEL does on the rows of DATA, whose class is known."""
    from softcount.cli.outputs import progress, put_answer

    if precision is not None and recall is not None:
        raise click.UsageError("--precision and --recall each choose a threshold: give one of them")
    decide = DecisionRequest(costs, prior)
    with progress() as tell:
        found = rows_of(EvaluateRequest(model, data, target, weight, decide, form), tell)
    told = told_of(found, decide, {"precision": precision, "recall": recall}, lift)
    put_answer(lambda: document_of(told), lambda: page_of(told), json_wanted)


class EvaluateRequest(Struct, frozen=True):
    """Which model on which rows; None where the choice is ours."""

    model: str
    data: str
    target: str | None
    weight: str | None
    decide: DecisionRequest
    form: InputFormat


class JudgedRows(Struct, frozen=True):
    """Rows whose class is known, the names of the classes, and their shares in training."""

    held: ScoredRows
    names: list[Any]
    shares: np.ndarray
    passed_over: int


class Told(Struct, frozen=True):
    """All there is to tell."""

    evaluation: Evaluation
    names: list[str]
    passed_over: int
    costs: CostFigures | None
    threshold: Threshold | None
    lift_of: str | None
    lift: Sequence[LiftLine]


def rows_of(request: EvaluateRequest, tell: Tell) -> JudgedRows:
    """What the model says of the rows, and what they are."""
    import numpy as np

    from softcount.cli import library_calls as library
    from softcount.cli.named_columns import say_prediction_notes
    from softcount.evaluate.ranking import FOLDS
    from softcount.evaluate.scores import as_named, label_places, scored_rows

    fitted: Any = library.load_any(request.model)
    net = library.is_network(fitted)
    if not net and fitted.classes is None:
        raise DataError(f"{request.model}: it found its classes itself, so no column says which are right.")
    column = request.target if request.target is not None and not net else fitted.target
    if column is None:
        raise DataError(f"{request.model}: it does not say which column it predicts. Name it: --target COL")
    table = library.open_like(fitted, request.data, request.form, tell)
    names = list(fitted.levels[column] if net else fitted.names)
    labels, weights = side_columns(table, request.target or column, request)
    proba = probabilities(fitted, table, column if net else None, names, request.decide)
    say_prediction_notes(fitted, table)
    codes = label_places(as_named(labels, names), names)
    held = scored_rows(proba, codes, np.ones(len(codes)) if weights is None else weights, FOLDS)
    return JudgedRows(held, names, fitted.shares, int((codes < 0).sum()))


def probabilities(fitted: Any, table: Table, node: Any, names: list[Any], decide: DecisionRequest) -> np.ndarray:
    """(rows x classes) probabilities, under the shares asked for; of a network those of its node."""
    from softcount.fitted.decisions import log_of
    from softcount.run.local import Threads

    with Threads() as threads:
        plain = fitted.proba(table, threads if node is None else node)
        found = decide.reweighted(partial(log_of, plain), names, lambda: fitted.shares)
    return plain if found is None else found


def side_columns(table: Table, target: Any, request: EvaluateRequest) -> tuple[list[Any], np.ndarray | None]:
    """The label and the weight of every row."""
    import numpy as np

    from softcount.cli.named_columns import suggestion
    from softcount.table import open_table, read_labels

    weight, keys = request.weight, table.source.keys
    for option, column in (("--target", target), ("--weight", weight)):
        if column is not None and column not in keys:
            hint = suggestion(str(column), map(str, keys))
            raise DataError(f"{option}: {request.data} has no column {column!r}.\n  {hint}")
    missing = request.form.words(table.schema.missing)
    labels = read_labels(table.source, target, missing)
    if weight is None:
        return labels, None
    side = open_table(table.source, target=target, weight=weight, missing=missing, kinds={target: "categorical"})
    return labels, np.concatenate([part for _, part in side.weights() if part is not None])


def told_of(found: JudgedRows, decide: DecisionRequest, rates: dict[str, str | None], lift: str | None) -> Told:
    """Every figure that was asked for."""
    from softcount.evaluate.ranking import chosen_threshold, wanted_rate
    from softcount.evaluate.scores import cost_figures, judged, lift_of, rarer
    from softcount.fitted.decisions import cost_matrix

    held, names = found.held, found.names
    pairs = decide.cost_pairs(names)
    costs = None if pairs is None else cost_figures(held, cost_matrix(pairs, names), names)
    threshold = None
    for rate, text in rates.items():
        if text is not None:
            ((name, value),) = class_numbers(f"--{rate}", [text], names)
            wanted_rate(*(value if each == rate else None for each in rates))
            threshold = chosen_threshold(held, names.index(name), name, rate, value)
    place = list(map(str, names)).index(lift_class(lift, names)) if lift is not None else None
    place = rarer(held) if place is None and len(names) == 2 else place
    lines = [] if place is None else lift_of(held, names, place)
    of = None if place is None else str(names[place])
    return Told(judged(held, found.shares), list(map(str, names)), found.passed_over, costs, threshold, of, lines)


def lift_class(text: str, names: Sequence[Any]) -> str:
    """A class by its name; an error says which there are."""
    from softcount.cli.named_columns import suggestion

    if text not in map(str, names):
        raise DataError(f"--lift: there is no class {text!r}.\n  {suggestion(text, map(str, names))}")
    return text


def page_of(told: Told) -> Page:
    """The figures for a person."""
    from softcount.report.evaluation_page import add_confusion, add_doubts, add_figures, add_lift
    from softcount.report.page import Page
    from softcount.report.plain_text import counted, number

    page = Page()
    page.heading(f"On {counted(told.evaluation.n_rows, 'row')} whose class is known")
    add_figures(page, told.evaluation, "figures of rows the model has learned from would be too good:")
    if told.passed_over:
        page.line(f"{counted(told.passed_over, 'row')} without a class passed over")
    add_doubts(page, told.evaluation, "")
    add_confusion(page, told.evaluation, told.names)
    if told.costs is not None:
        page.line(
            f"a row costs {number(told.costs.cheapest)} by the lowest expected cost, {number(told.costs.likeliest)} by "
            f"the likeliest class, {number(told.costs.always)} by always deciding for {told.costs.always_class}"
        )
    if told.threshold is not None:
        page.line(*f"threshold: {told.threshold}".split("; "))
    if told.lift_of is not None:
        add_lift(page, told.lift_of, told.lift)
    return page


def document_of(told: Told) -> dict[str, Any]:
    """The same as data."""
    from softcount.report.evaluation_page import evaluation_document

    return {
        "classes": told.names,
        "evaluation": evaluation_document(told.evaluation),
        "passed_over": told.passed_over,
        "costs": None if told.costs is None else asdict(told.costs),
        "threshold": None if told.threshold is None else asdict(told.threshold),
        "lift": None if told.lift_of is None else {"of": told.lift_of, "parts": [asdict(x) for x in told.lift]},
    }
