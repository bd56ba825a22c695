"""The front door: a table and a request in, a fitted model out, evaluated and recorded.

The command line and the estimators both call it, so that they learn equal models. Nothing here needs scikit-learn.
A request (`fit.classes.ClassRequest`, `fit.network.NetworkRequest`) has three steps:

`settle(table, runner)`
    chooses from the rows what was left open, such as the density of a column declared "auto";
`learn(table, runner)`
    gives the fitted model;
`complete(fitted, table, runner)`
    evaluates the model and adds warnings.

`fit` takes all three and adds the record of the fit. Estimators take the third step, which may cost as much as the
second, when notes, a report or a file are wanted.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

from msgspec.structs import replace

from softcount.learn.record import Provenance
from softcount.run.local import Runner
from softcount.table import Schema, Table, open_table
from softcount.table.column_summary import PassSummary, TableSummary, summarise


class Request(Protocol):
    """What to learn from a table."""

    def settle(self, table: Table, runner: Runner, evaluated: bool = False) -> tuple[Table, Self]:
        """Return the table and the request with every open choice made; `evaluated` if an evaluation follows."""

    def learn(self, table: Table, runner: Runner) -> Any:
        """Return the fitted model."""

    def complete(self, fitted: Any, table: Table, runner: Runner) -> Any:
        """Return the model with its evaluation in the record, and with warnings in its notes."""


def fit(table: Table, request: Request, runner: Runner, origin: Provenance | None = None) -> Any:
    """Learn a model, evaluate it on held-out rows, and record a summary of its table and its origin."""
    seen = PassSummary()
    table, request = request.settle(table.watched(seen), runner, evaluated=True)
    fitted = request.learn(table, runner)
    seen.closed = True
    return complete(fitted, table, request, runner, origin, seen)


def complete(
    fitted: Any,
    table: Table,
    request: Request,
    runner: Runner,
    origin: Provenance | None = None,
    seen: PassSummary | None = None,
) -> Any:
    """Return the model with evaluation, warnings and record; `seen` is a summary made during the fit."""
    if not fitted.interrupted:
        fitted = request.complete(fitted, table, runner)
    summary = None
    # Rows on other machines are not read here to be summarised.
    if runner.keeps_rows and not fitted.interrupted and table.bag_width is None:
        there = None if seen is None or table.has_weights else seen.under(fitted.schema)
        summary = there or summarise_rows(fitted, table, runner)
    return replace(fitted, record=replace(fitted.record, table=summary, provenance=origin))


def summarise_rows(fitted: Any, table: Table, runner: Runner) -> TableSummary:
    """Summarise the columns under the schema that the model has learned."""
    # Rows in memory are not read again; their classes do not matter.
    settled = None if table.has_weights or table.closed is not None else replace(table.settle(), label_remap=None)
    if settled is not None and settled.schema == fitted.schema:
        return summarise(map(settled.recoded, table.chunks(runner.map)), fitted.schema)
    return summarise(reread(table, fitted.schema).chunks(runner.map), fitted.schema)


def reread(table: Table, schema: Schema) -> Table:
    """Open the same rows with their labels and weights under the schema that a model has learned."""
    sides = table.sides
    return open_table(
        table.source, schema=schema, missing=schema.missing, target=None if sides.target is None else sides.target.key,
        weight=sides.weight, labels=sides.labels, weights=sides.weights,
    )  # fmt: skip
