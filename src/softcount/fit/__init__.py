"""The front door: a table and a request in, a fitted model out, evaluated and recorded.

The command line and the estimators both come in here, so that they learn equal models. Nothing here needs scikit-learn.
A request (`fit.classes.ClassRequest`, `fit.network.NetworkRequest`) says what to learn, in three steps:

`settle(table, runner)`
    decides what the rows have to decide first, such as the density of a column declared "auto";
`learn(table, runner)`
    gives the fitted model;
`complete(fitted, table, runner)`
    evaluates the model and adds warnings.

`fit` takes all three and adds the record of the fit. Estimators take the third step, which may cost as much as the
second, when somebody reads the notes, asks for a report or saves the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

from msgspec.structs import replace

from softcount.learn.record import Provenance
from softcount.priors import Dirichlet
from softcount.run.local import Runner
from softcount.table import Schema, Table, open_table
from softcount.table.column_summary import PassSummary, TableSummary, summarise


class Request(Protocol):
    """What to learn from a table."""

    def settle(self, table: Table, runner: Runner, evaluated: bool = False) -> tuple[Table, Self]:
        """The table and the request once the rows have decided what was left to them; `evaluated`: at once."""

    def learn(self, table: Table, runner: Runner) -> Any:
        """The fitted model."""

    def complete(self, fitted: Any, table: Table, runner: Runner) -> Any:
        """The model with its evaluation in the record, and with warnings in its notes."""


def fit(table: Table, request: Request, runner: Runner, origin: Provenance | None = None) -> Any:
    """Learn a model, evaluate it on rows it has not seen, and record what its table looks like and where it is from."""
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
    """The model with evaluation, warnings and record; `seen` watched the rows as the model learned from them."""
    if not fitted.interrupted:
        fitted = request.complete(fitted, table, runner)
    summary = None
    # Rows on other machines are not read here to be summarised.
    if runner.keeps_rows and not fitted.interrupted and table.bag_width is None:
        there = None if seen is None or table.has_weights else seen.under(fitted.schema)
        summary = there or summarise_rows(fitted, table, runner)
    return replace(fitted, record=replace(fitted.record, table=summary, provenance=origin))


def summarise_rows(fitted: Any, table: Table, runner: Runner) -> TableSummary:
    """What the columns look like, under the schema that the model has learned."""
    # Rows that are held are not read again; which class a row has does not matter.
    settled = None if table.has_weights or table.closed is not None else replace(table.settle(), label_remap=None)
    if settled is not None and settled.schema == fitted.schema:
        return summarise(map(settled.recoded, table.chunks(runner.map)), fitted.schema)
    return summarise(reread(table, fitted.schema).chunks(runner.map), fitted.schema)


def reread(table: Table, schema: Schema) -> Table:
    """The same rows with their labels and weights, read under the schema that a model has learned."""
    sides = table.sides
    return open_table(
        table.source, schema=schema, missing=schema.missing, target=None if sides.target is None else sides.target.key,
        weight=sides.weight, labels=sides.labels, weights=sides.weights,
    )  # fmt: skip


def prior_levels(prior: Any) -> dict[Any, list[Any]]:
    """Categories that priors name: they exist whether seen or not."""
    if not isinstance(prior, Mapping):
        return {}
    named = {key: own.levels for key, own in prior.items() if isinstance(own, Dirichlet)}
    return {key: list(levels) for key, levels in named.items() if levels is not None}
