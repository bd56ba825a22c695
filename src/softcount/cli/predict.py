"""Predictions and completed tables: the class of every row, any node of a network, missing cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import asdict

from softcount.cli.models import (
    is_hidden,
    is_network,
    load_any,
    node_key,
    say_answering_model,
    say_prediction_notes,
    sequence_model,
)
from softcount.cli.options import DecisionRequest, InputFormat, SequenceForm, class_numbers, suggestion
from softcount.cli.outputs import inform, progress, say_note
from softcount.cli.read import filled_columns, open_like, open_rows, read_sequences, rounded, with_kept
from softcount.errors import DataError
from softcount.evaluate.ranking import FOLDS, LiftLine, ScoredRows, chosen_threshold, wanted_rate
from softcount.evaluate.scores import (
    CostFigures,
    Evaluation,
    as_named,
    cost_figures,
    judged,
    label_places,
    lift_of,
    rarer,
    scored_rows,
)
from softcount.fitted.answers import fills
from softcount.fitted.classes import anomaly_scores
from softcount.fitted.decisions import ESTIMATE, Decision, Threshold, cost_matrix, estimated_shares, log_of, with_prior
from softcount.fitted.fitted import Fitted
from softcount.fitted.network_rows import surprises
from softcount.pictures.text import format_count, format_number
from softcount.report.answers import make_array, prediction_table
from softcount.report.evaluation import add_confusion, add_figures, add_lift, add_overconfidence, evaluation_record
from softcount.report.page import Page
from softcount.run.local import Threads
from softcount.run.progress import Tell
from softcount.table import Table, open_table, read_labels

if TYPE_CHECKING:
    from softcount.fitted.network import FittedNet


def predict_rows(  # noqa: PLR0913 - what can be asked for
    model: str,
    data: str,
    of: str | None,
    anomaly: bool,
    decide: DecisionRequest,
    layout: SequenceForm,
    form: InputFormat,
    keep: tuple[str, ...],
    digits: int | None,
) -> tuple[pa.Table, Callable[[], None]]:
    """A line for every row, or step, and what notes to say of the rows afterwards."""
    states = sequence_model(model)
    if states is not None:
        if of is not None or anomaly or keep or decide != DecisionRequest():
            raise DataError(
                f"{model}: a model of sequences, for which --of, --anomaly, --keep, --cost and such mean nothing."
            )
        return rounded(predict_steps(states, data, layout, form), digits), lambda: None
    layout.refuse(model)
    fitted = load_any(model)
    if not isinstance(fitted, Fitted):
        found, table = predict_node(fitted, data, of, anomaly, form, decide)
    elif of is None or of == str(fitted.target):
        found, table = predict_classes(fitted, data, anomaly, form, decide)
    else:
        raise DataError(f"{model}: no network, so it predicts its class alone. Leave out --of.")
    return with_kept(rounded(found, digits), table.source, keep), lambda: say_prediction_notes(fitted, table)


def predict_classes(
    fitted: Fitted, data: str, anomaly: bool, form: InputFormat, decide: DecisionRequest
) -> tuple[pa.Table, Table]:
    """The class of every row, with the probability of each; and the table as it was read."""
    with progress() as tell, Threads() as threads:
        table = open_like(fitted, data, form, tell)
        proba = reweighted(decide, partial(fitted.log_proba, table, threads), fitted.names, lambda: fitted.shares)
        proba = fitted.proba(table, threads) if proba is None else proba
        scores = anomaly_scores(fitted, table, threads) if anomaly else None
    chosen = choose(decide, proba, fitted.names)
    return prediction_table(fitted.names, proba, chosen, scores, table.source.files), table


def predict_node(
    fitted: FittedNet,
    data: str,
    of: str | None,
    anomaly: bool,
    form: InputFormat,
    decide: DecisionRequest,
) -> tuple[pa.Table, Table]:
    """A node of a network in every row, given the rest of it; and the table as it was read."""
    if of is None and fitted.target is None:
        raise DataError("the network was learned without a class. Say which node to predict: --of NODE")
    node = fitted.target if of is None else node_key(fitted, of, "--of")
    assert node is not None
    with progress() as tell:
        table, rows = open_rows(fitted, data, form, node, tell)
        scores = np.asarray(sum(surprises(fitted, rows).values())) if anomaly else None
        if fitted.is_number(node) or node in fitted.net.cuts:
            if decide != DecisionRequest():
                raise DataError(f"{node!r} is a number: --cost, --prior and --threshold are for classes.")
            found = pa.table({"predicted": pa.array(fitted.means(rows, node))})
            if scores is not None:
                found = found.append_column("anomaly", pa.array(scores))
        else:
            levels, plain = list(fitted.levels[node]), fitted.proba(rows, node)
            proba = reweighted(
                decide, partial(log_of, plain), levels, lambda: np.array(list(fitted.query(node).values()))
            )
            proba = plain if proba is None else proba
            found = prediction_table(levels, proba, choose(decide, proba, levels), scores, table.source.files)
    return found, table


def predict_steps(model: Any, data: str, layout: SequenceForm, form: InputFormat) -> pa.Table:
    """The state of every step with the probability of each; of a chain, what comes next after every sequence."""
    sequences = read_sequences(layout, data, form, column=None if is_hidden(model) else model.schema_.used[0].key)
    if not is_hidden(model):
        proba, names = model.predict_proba(sequences), [str(name) for name in model.next_symbols_]
        best = [names[at] for at in proba.argmax(axis=1)]
        columns: dict[str, Any] = {"sequence": make_array(list(sequences.names)), "predicted": best}
        return pa.table(columns | {f"p({name})": proba[:, place] for place, name in enumerate(names)})
    path, proba = np.concatenate(model.predict(sequences)), np.concatenate(model.predict_proba(sequences))
    at = np.repeat(np.arange(len(sequences)), sequences.lengths)
    columns = {
        "sequence": make_array([sequences.names[place] for place in at.tolist()]),
        "step": np.arange(sequences.n_steps) - sequences.starts[at] + 1,
        "predicted": make_array(path.tolist()),
    }
    return pa.table(columns | {f"p({name})": proba[:, place] for place, name in enumerate(model.states_)})


def reweighted(
    decide: DecisionRequest, logs: Callable[[], np.ndarray], names: Sequence[Any], shares: Callable[[], np.ndarray]
) -> np.ndarray | None:
    """(rows x classes) probabilities under the shares asked for, from those of training; None if none were.

    Estimated shares are shown.
    """
    prior = decide.shares(names)
    if prior is None:
        return None
    found, was = logs(), shares()
    if prior == ESTIMATE:
        prior = estimated_shares(found, was)
        told = ", ".join(f"{name} {share:.4g}" for name, share in list(zip(names, prior, strict=True))[:8])
        say_note(f"shares of the classes, estimated from these rows: {told}")
    return np.asarray(np.exp(with_prior(found, prior, names, was)))


def choose(decide: DecisionRequest, proba: np.ndarray, names: Sequence[Any]) -> np.ndarray:
    """The place of every row's class."""
    threshold = None if decide.threshold is None else dict(class_numbers("--threshold", [decide.threshold], names))
    return Decision.of(names, decide.cost_pairs(names), threshold)(proba)


def impute_rows(model: str, data: str, digits: int | None, form: InputFormat) -> tuple[pa.Table, Callable[[], None]]:
    """DATA with its missing cells filled, and what to say afterwards."""
    fitted = load_any(model)
    with progress() as tell:
        if isinstance(fitted, Fitted):
            table = open_like(fitted, data, form, tell)
            found = fills(fitted, table)
        else:
            table = open_rows(fitted, data, form, None, tell)[0]
            found = fitted.fills(table)

    def tell_notes() -> None:
        say_prediction_notes(fitted, table)
        cells = sum(len(rows) for rows, _ in found.values())
        if cells:
            say_answering_model(fitted)
        inform(f"{cells:,} holes filled" if cells != 1 else "1 hole filled")

    return filled_columns(table.source, found, digits), tell_notes


# -- evaluation


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
    fitted: Any = load_any(request.model)
    net = is_network(fitted)
    if not net and fitted.classes is None:
        raise DataError(f"{request.model}: it found its classes itself, so no column says which are right.")
    column = request.target if request.target is not None and not net else fitted.target
    if column is None:
        raise DataError(f"{request.model}: it does not say which column it predicts. Name it: --target COL")
    table = open_like(fitted, request.data, request.form, tell)
    names = list(fitted.levels[column] if net else fitted.names)
    labels, weights = side_columns(table, request.target or column, request)
    proba = probabilities(fitted, table, column if net else None, names, request.decide)
    say_prediction_notes(fitted, table)
    codes = label_places(as_named(labels, names), names)
    held = scored_rows(proba, codes, np.ones(len(codes)) if weights is None else weights, FOLDS)
    return JudgedRows(held, names, fitted.shares, int((codes < 0).sum()))


def probabilities(fitted: Any, table: Table, node: Any, names: list[Any], decide: DecisionRequest) -> np.ndarray:
    """(rows x classes) probabilities, under the shares asked for; of a network those of its node."""
    with Threads() as threads:
        plain = fitted.proba(table, threads if node is None else node)
        found = reweighted(decide, partial(log_of, plain), names, lambda: fitted.shares)
    return plain if found is None else found


def side_columns(table: Table, target: Any, request: EvaluateRequest) -> tuple[list[Any], np.ndarray | None]:
    """The label and the weight of every row."""
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
    if text not in map(str, names):
        raise DataError(f"--lift: there is no class {text!r}.\n  {suggestion(text, map(str, names))}")
    return text


def page_of(told: Told) -> Page:
    """The figures for a person."""
    page = Page()
    page.heading(f"On {format_count(told.evaluation.n_rows, 'row')} whose class is known")
    add_figures(page, told.evaluation, "figures of rows the model has learned from would be too good:")
    if told.passed_over:
        page.line(f"{format_count(told.passed_over, 'row')} without a class passed over")
    add_overconfidence(page, told.evaluation, "")
    add_confusion(page, told.evaluation, told.names)
    if told.costs is not None:
        costs = [format_number(x) for x in (told.costs.cheapest, told.costs.likeliest, told.costs.always)]
        page.line(
            f"a row costs {costs[0]} by the lowest expected cost, {costs[1]} by the likeliest class, {costs[2]} by "
            f"always deciding for {told.costs.always_class}"
        )
    if told.threshold is not None:
        page.line(*f"threshold: {told.threshold}".split("; "))
    if told.lift_of is not None:
        add_lift(page, told.lift_of, told.lift)
    return page


def document_of(told: Told) -> dict[str, Any]:
    """The same as data."""
    return {
        "classes": told.names,
        "evaluation": evaluation_record(told.evaluation),
        "passed_over": told.passed_over,
        "costs": None if told.costs is None else asdict(told.costs),
        "threshold": None if told.threshold is None else asdict(told.threshold),
        "lift": None if told.lift_of is None else {"of": told.lift_of, "parts": [asdict(x) for x in told.lift]},
    }
