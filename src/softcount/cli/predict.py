"""softcount predict, impute, evaluate and explain: predictions for rows, and the reasons for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import asdict, replace

from softcount.cli import models, outputs, read
from softcount.cli.options import DecisionRequest, Request, class_numbers, find_class, find_name, suggestion
from softcount.cli.read import open_like, open_rows, read_sequences
from softcount.core.special import log_of
from softcount.errors import DataError
from softcount.evaluate import ranking, scores
from softcount.fitted.answers import labels_in
from softcount.fitted.characteristic_words import explain_words, row_of
from softcount.fitted.decisions import ESTIMATE, Decision, Threshold, apply_class_prior, cost_matrix, estimate_shares
from softcount.fitted.fitted import Fitted
from softcount.fitted.network_answers import cells_of_rows
from softcount.pictures.text import format_count, format_number
from softcount.report import answers, evaluation
from softcount.report.answers import ExplainedRow, make_array, reasons_table
from softcount.report.classes import class_names
from softcount.report.page import Page, format_cell, key_text
from softcount.report.words import add_moved_words, begin_document, find_moved_words
from softcount.run.local import Threads
from softcount.sources.frames import ArrowSource
from softcount.table import Chunks, Table, document_at, open_table, read_labels

if TYPE_CHECKING:
    from softcount.fitted.network import FittedNet


def predict(request: Request) -> None:
    outputs.check_output(request.output, request.model, request.data)
    model, given = models.open_model(request.model, sequences=True), request.decide != DecisionRequest()
    if models.is_of_sequences(model):
        if request.of is not None or request.anomaly or request.keep or given:
            raise DataError(
                f"{request.model} is a model of sequences: --of, --anomaly, --keep, --cost and similar options do "
                "not apply."
            )
        found, table = predict_steps(model, request), None
    else:
        request.layout.refuse(request.model)
        found, table = predict_rows(model, request)
    found = read.round_numbers(found, request.digits, outputs.writes_csv(request))
    outputs.write_rows(found if table is None else read.keep_columns(found, table.source, request.keep), request)
    if table is not None:
        models.print_prediction_notes(model, table)


def predict_rows(model: Any, request: Request) -> tuple[pa.Table, Table]:
    """The class of every row, or a node of a network given the rest of it, with the probability of each; the table."""
    if models.is_joint(model):
        return predict_column(model, request)
    decide, names, node = request.decide, model.names, None
    if models.is_network(model):
        node = models.find_node(model, request.of, "predict")
    elif request.of not in (None, str(model.target)):
        raise DataError(f"{request.model}: not a network, so it predicts only its class. Leave out --of.")
    with outputs.progress() as tell, Threads() as threads:
        table, rows = open_rows(model, request.data, request.form, node, tell)
        odd = model.anomaly_scores(rows, threads) if request.anomaly else None
        if node is None:
            plain, logs = partial(model.proba, table, threads), partial(model.log_proba, table, threads)
            proba = reweight(decide, logs, names, lambda: model.shares)
        elif model.is_number(node) or node in model.net.cuts:
            if decide != DecisionRequest():
                raise DataError(f"{node!r} is a number: --cost, --class-prior and --threshold are for classes.")
            found = {"predicted": pa.array(model.means(rows, node))}
            return pa.table(found if odd is None else found | {"anomaly": pa.array(odd)}), table
        else:
            names, plain = list(model.levels[node]), partial(model.proba, rows, of=node)
            proba = reweight(decide, lambda: log_of(plain()), names, lambda: np.array(list(model.query(node).values())))
        proba = plain() if proba is None else proba
    return answers.prediction_table(names, proba, choose(decide, proba, names), odd, table.source.files), table


def predict_column(model: Any, request: Request) -> tuple[pa.Table, Table]:
    """The most probable category or the mean of one column given the rest of every row, by a joint model."""
    if request.of is None:
        raise click.UsageError(f"{request.model}: a joint model predicts any column: name one with --of COLUMN")
    if request.decide != DecisionRequest():
        raise DataError("--cost, --class-prior and --threshold are for models of a target.")
    key = find_name(models.column_keys(model), request.of, "--of")
    with outputs.progress() as tell, Threads() as threads:
        table = open_like(model, request.data, request.form, tell)
        odd = model.anomaly_scores(table, threads) if request.anomaly else None
        values, shares = model.predict_column(table, key)
    if shares is not None:
        names = list(model.schema[key].levels)
        return answers.prediction_table(names, shares, shares.argmax(axis=1), odd, table.source.files), table
    found = {"predicted": pa.array(values)}
    return pa.table(found if odd is None else found | {"anomaly": pa.array(odd)}), table


def predict_steps(model: Any, request: Request) -> pa.Table:
    """The state of every step with the probability of each; for a chain, the next symbol of every sequence."""
    hidden, sequences = models.is_hidden(model), read_steps(model, request)
    proba: Any = model.predict_proba(sequences)
    if hidden:
        proba, at = np.concatenate(proba), np.repeat(np.arange(len(sequences)), sequences.lengths)
        columns: dict[str, Any] = {
            "sequence": make_array([sequences.names[place] for place in at.tolist()]),
            "step": np.arange(sequences.n_steps) - sequences.starts[at] + 1,
            "predicted": make_array(np.concatenate(model.predict(sequences)).tolist()),
        }
    else:
        best = [str(model.next_symbols_[at]) for at in proba.argmax(axis=1)]
        columns = {"sequence": make_array(list(sequences.names)), "predicted": best}
    names = model.states_ if hidden else model.next_symbols_
    return pa.table(columns | {f"p({name})": proba[:, place] for place, name in enumerate(names)})


def read_steps(model: Any, request: Request) -> Any:
    return read_sequences(request, column=None if models.is_hidden(model) else model.schema_.used[0].key)


def reweight(
    decide: DecisionRequest, logs: Callable[[], np.ndarray], names: Sequence[Any], shares: Callable[[], np.ndarray]
) -> np.ndarray | None:
    """(rows x classes) probabilities under the shares of --class-prior; None without it.

    Estimated shares are printed.
    """
    class_prior = decide.shares(names)
    if class_prior is None:
        return None
    found, trained = logs(), shares()
    if class_prior == ESTIMATE:
        class_prior = estimate_shares(found, trained)
        listed = ", ".join(f"{name} {share:.4g}" for name, share in list(zip(names, class_prior, strict=True))[:8])
        outputs.print_note(f"shares of the classes, estimated from these rows: {listed}")
    return np.asarray(np.exp(apply_class_prior(found, class_prior, names, trained)))


def choose(decide: DecisionRequest, proba: np.ndarray, names: Sequence[Any]) -> np.ndarray:
    """The index of every row's class."""
    threshold = None if decide.threshold is None else dict(class_numbers("--threshold", [decide.threshold], names))
    return Decision.of(names, decide.costs(names), threshold)(proba)


def impute(request: Request) -> None:
    outputs.check_output(request.output, request.model, request.data)
    fitted = models.open_model(request.model)
    with outputs.progress() as tell:
        table, _ = open_rows(fitted, request.data, request.form, None, tell)
        found = fitted.fills(table)
    outputs.write_rows(read.fill_columns(table.source, found, request.digits), request)
    models.print_prediction_notes(fitted, table)
    cells = sum(len(rows) for rows, _ in found.values())
    if cells:
        models.print_answering_model(fitted)
    outputs.print_info(f"filled {format_count(cells, 'missing cell')}")


# -- evaluation


class LiftTable(Struct, frozen=True):
    """Rows ranked by the probability of the class `of`, in equal parts."""

    of: str
    parts: Sequence[ranking.LiftLine]


class Judgement(Struct, frozen=True):
    """What `evaluate` found on the rows of DATA; `passed_over` are those without a class."""

    classes: list[str]
    evaluation: scores.Evaluation
    passed_over: int
    costs: scores.CostFigures | None
    threshold: Threshold | None
    lift: LiftTable | None


def evaluate(request: Request) -> None:
    if request.precision is not None and request.recall is not None:
        raise click.UsageError("--precision and --recall both choose the threshold: give only one of them")
    fitted = models.open_model(request.model)
    models.refuse_joint(request.model, fitted, "evaluate")
    net = models.is_network(fitted)
    if not net and fitted.classes is None:
        raise DataError(f"{request.model}: a model of found classes has no target to evaluate.")
    column = request.target if request.target is not None and not net else fitted.target
    if column is None:
        raise DataError(f"{request.model}: the file does not name the column it predicts. Name it: --target COL")
    with outputs.progress() as tell:
        table = open_like(fitted, request.data, request.form, tell)
        names = list(fitted.names)
        labels, weights = read_labels_and_weights(table, request.target or column, request)
        with Threads() as threads:
            plain = fitted.proba(table, threads)
        proba = reweight(request.decide, partial(log_of, plain), names, lambda: fitted.shares)
        models.print_prediction_notes(fitted, table)
    codes = ranking.find_classes(scores.match_names(labels, names), names)
    weights = np.ones(len(codes)) if weights is None else weights
    held = scores.match_labels(plain if proba is None else proba, codes, weights, ranking.FOLDS)
    found = judge(held, names, request, scores.evaluate_rows(held, fitted.shares), int((codes < 0).sum()))
    outputs.write_answer(
        request.json,
        lambda: asdict(found) | {"evaluation": evaluation.evaluation_record(found.evaluation)},
        lambda: judgement_page(found),
    )


def read_labels_and_weights(table: Table, target: Any, request: Request) -> tuple[list[Any], np.ndarray | None]:
    weight, keys = request.weight, table.source.keys
    for option, column in (("--target", target), ("--weight", weight)):
        if column is not None and column not in keys:
            hint = suggestion(str(column), map(str, keys))
            raise DataError(f"{option}: {request.data} has no column {column!r}.\n  {hint}")
    missing = read.list_missing(request.form, table.schema.missing)
    labels = read_labels(table.source, target, missing)
    if weight is None:
        return labels, None
    side = open_table(table.source, target=target, weight=weight, missing=missing, kinds={target: "categorical"})
    return labels, np.concatenate([part for _, part in side.weights() if part is not None])


def judge(
    held: ranking.ScoredRows, names: list[Any], request: Request, figures: scores.Evaluation, skipped: int
) -> Judgement:
    pairs = request.decide.costs(names)
    costs = None if pairs is None else scores.cost_figures(held, cost_matrix(pairs, names), names)
    threshold = None
    rates = {"precision": request.precision, "recall": request.recall}
    for rate, text in rates.items():
        if text is not None:
            ((name, value),) = class_numbers(f"--{rate}", [text], names)
            ranking.read_rate(*(value if each == rate else None for each in rates))
            threshold = ranking.choose_threshold(held, names.index(name), name, rate, value)
    place = None if request.lift is None else names.index(find_class("--lift", request.lift, names))
    place = scores.find_rarer_class(held) if place is None and len(names) == 2 else place
    lift = None if place is None else LiftTable(str(names[place]), scores.compute_lift(held, names, place))
    return Judgement(list(map(str, names)), figures, skipped, costs, threshold, lift)


def judgement_page(found: Judgement) -> Page:
    page = Page()
    page.heading(f"On {format_count(found.evaluation.n_rows, 'row')} whose class is known")
    intro = "if the model was fitted on these rows, the figures are too optimistic"
    evaluation.add_figures(page, found.evaluation, intro)
    if found.passed_over:
        page.line(f"{format_count(found.passed_over, 'row')} without a class skipped")
    evaluation.add_overconfidence(page, found.evaluation, "")
    evaluation.add_confusion(page, found.evaluation, found.classes)
    if found.costs is not None:
        costs = [format_number(x) for x in (found.costs.cheapest, found.costs.likeliest, found.costs.always)]
        page.line(
            f"mean cost of a row: {costs[0]} with the lowest expected cost, {costs[1]} with the most probable class, "
            f"{costs[2]} if always deciding for {found.costs.always_class}"
        )
    if found.threshold is not None:
        page.line(*f"threshold: {found.threshold}".split("; "))
    if found.lift is not None:
        evaluation.add_lift(page, found.lift.of, found.lift.parts)
    return page


# -- reasons


def explain(request: Request) -> None:
    request.form = replace(request.form, default_unit="lines" if request.row else "document")
    outputs.check_output(request.output, request.model, request.data)
    model = models.open_model(request.model, sequences=True)
    if models.is_of_sequences(model):
        if request.row or request.of is not None:
            raise DataError(f"{request.model}: a model of sequences explains every step. Leave out --row and --of.")
        outputs.write_rows(explain_steps(model, request), request)
        return
    request.layout.refuse(request.model)
    models.refuse_joint(request.model, model, "explain")
    if models.is_network(model):
        explain_network(model, request)
    elif request.of is not None:
        raise DataError(f"{request.model}: not a network, so only its class is explained. Leave out --of.")
    else:
        explain_classes(model, request)


def explain_classes(fitted: Fitted, request: Request) -> None:
    """Explain all rows as a table, or a few of them as a page with their words."""
    title: str | None = None
    few: list[ExplainedRow] = []
    other = None if request.against is None else models.class_value(fitted, request.against, "--against")
    with outputs.progress() as tell:
        table = open_like(fitted, request.data, request.form, tell)
        if isinstance(table.source, ArrowSource):  # DATA is one document
            title = "The document" if request.data == outputs.STANDARD else request.data
        if request.row or title is not None:
            reasons, few = explain_few(fitted, table, request.row or (1,), other, title)
        else:
            kept: Any = find_chunks(fitted, table, ())
            rows = [row for x in kept.chunks for row in range(x.start + 1, x.start + x.n_rows + 1)]
            found = fitted.explain(kept, other)
            reasons = reasons_table(found, labels_in(fitted), fitted.names, rows, table.source.files)
    if few and request.output is None:
        outputs.write_answer(request.json, few_record, few_page, fitted, few)
    else:
        outputs.write_rows(reasons, request)
    models.print_prediction_notes(fitted, table, cells=not few)


def few_page(fitted: Fitted, few: list[ExplainedRow]) -> Page:
    page, names = Page(), class_names(fitted)
    called = dict(zip(map(str, fitted.names), names, strict=True))
    for row in few:
        answers.add_reasons(page, row, called, fitted.scorer.is_calibrated)
        for found, document in row.words:
            add_moved_words(page, found, document, names)
    return page


def few_record(fitted: Fitted, few: list[ExplainedRow]) -> list[dict[str, Any]]:
    """The figures of rows by column and, if the model reads text, their words and where they are."""
    found = []
    for row in few:
        document = dict(row.line) | {row.ours[answers.PROBABILITY]: row.probability}
        if row.words:
            document[row.ours[answers.WORDS]] = [find_moved_words(fitted, *pair) for pair in row.words]
        found.append(document)
    return found


def find_chunks(fitted: Fitted, table: Table, rows: Iterable[int]) -> Chunks:
    """The chunks that hold the rows, counted from 1; every chunk if no rows are given."""
    wanted, kept, n_rows = set(rows), [], 0
    for chunk in fitted.chunks(table):
        n_rows += chunk.n_rows
        here = range(chunk.start + 1, chunk.start + chunk.n_rows + 1)
        if not wanted or not wanted.isdisjoint(here):
            kept.append(chunk)
    _refuse_beyond(sorted(wanted), n_rows)
    return Chunks(kept, n_rows)


def _refuse_beyond(rows: Iterable[int], n_rows: int) -> None:
    for row in rows:
        if row > n_rows:
            raise DataError(f"there is no row {row}: the table has {n_rows:,} rows, counted from 1.")


def explain_few(
    fitted: Fitted, table: Table, rows: Sequence[int], other: Any, title: str | None
) -> tuple[pa.Table, list[ExplainedRow]]:
    """A line of reasons for each of the rows, counted from 1, and the row with its cells and words."""
    kept: Any = find_chunks(fitted, table, rows)
    single: Any = Chunks([row_of(fitted, kept, row - 1) for row in rows])
    why = fitted.explain(single, other)
    for row in (row for row, same in zip(rows, why.chosen == why.against, strict=True) if same and other is not None):
        raise DataError(
            f"{title or f'row {row}'} is in class {str(other)!r} itself. "
            "Name another class with --against, or leave that out for the runner-up."
        )
    names, files = labels_in(fitted), table.source.files
    reasons = reasons_table(why, names, fitted.names, rows, files)
    with Threads() as threads:
        likely = fitted.proba(single, threads)[range(len(rows)), why.chosen].tolist()
    found, ours = [], answers.name_ours(names)
    target = None if fitted.target is None else key_text(fitted.target)
    for chunk, line, probability in zip(single.chunks, reasons.to_pylist(), likely, strict=True):
        parts = explain_words(fitted, chunk, other) if fitted.schema.texts else []
        words = [(part, document_at(table, part.key, chunk.start)) for part in parts]
        cells = answers.find_cells(fitted, chunk) | {names[part.key]: begin_document(text) for part, text in words}
        name = title or f"Row {chunk.start + 1}" + (f" ({files[chunk.start]})" if files else "")
        found.append(ExplainedRow(line, cells, name, probability, words, ours, target))
    return reasons, found


def explain_network(fitted: FittedNet, request: Request) -> None:
    """The contribution of every node to the log-odds of one node: of all rows a table, of a few a page."""
    node = models.find_node(fitted, request.of, "explain")
    _, rows = open_rows(fitted, request.data, request.form, node)
    found = fitted.explain(rows, request.against, of=node)
    count = len(found.chosen)
    _refuse_beyond(request.row, count)
    names = labels_in(fitted)
    table, ours = reasons_table(found, names, fitted.levels[node], range(1, count + 1)), answers.name_ours(names)
    places = [row - 1 for row in request.row]
    table = table.take(places) if places else table
    if not places or request.output is not None or request.json:
        outputs.write_rows(table, request)
        return
    page, cells = Page(), cells_of_rows(fitted, rows, np.unique(places).astype(np.int64))
    for place, line in zip(places, table.to_pylist(), strict=True):
        shown = {names[key]: format_cell(cell) for key, cell in cells[place].items() if key in names}
        probability = float(found.probability[place])
        answers.add_reasons(page, ExplainedRow(line, shown, probability=probability, ours=ours, target=names[node]))
    outputs.write_answer(False, table.to_pylist, lambda: page)


def explain_steps(model: Any, request: Request) -> pa.Table:
    """The reasons for the state of each step; for a chain, how surprising each step is after those before it."""
    hidden, against, sequences = models.is_hidden(model), request.against, read_steps(model, request)
    if not hidden and against is not None:
        raise DataError("--against is for models with states or classes; a chain shows the most probable symbol.")
    names = {str(name): name for name in model.states_.tolist()} if hidden else {}
    if against is not None and against not in names:
        raise DataError(f"there is no state {against!r}. The states are: {', '.join(names)}.")
    return read.arrow_of(model.explain(sequences, names.get(against)) if hidden else model.explain(sequences))
