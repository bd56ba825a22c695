"""Joint models of a table: the marginals of its columns, and the mixture of trees over all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.classify.ensemble import count_copies
from softcount.errors import DataError
from softcount.fit import reread
from softcount.fit.classes import ClassRequest, ClassSearch
from softcount.fitted.joint import FittedJoint, Trees
from softcount.learn.mixture import Starts
from softcount.learn.record import Plan
from softcount.models.joint import JointColumns
from softcount.run.local import Runner
from softcount.table import Table
from softcount.table.column_summary import find_repeats, fold_units, row_keys
from softcount.table.schema import Schema
from softcount.tree_mixtures.columns import Coding, find_coding
from softcount.tree_mixtures.learn import MOST_SEARCHED, Learned, hold_out, learn, split_rows
from softcount.tree_mixtures.mixture import Parts

SPLIT_SEED = 0x5EED
"""Added to the seed for the choice of the held-out rows."""


class JointRequest(Struct, frozen=True):
    """A mixture of trees over the columns of a table. `most` limits the number of components (None: no limit)."""

    plan: Plan
    most: int | None = None
    seed: int = 0

    def settle(self, table: Table, runner: Runner, evaluated: bool = False) -> tuple[Table, Self]:
        return table, self

    def learn(self, table: Table, runner: Runner) -> FittedJoint:
        alone = ClassRequest(self.plan, ClassSearch(Starts(1, "k-means++", 1, 0)))
        columns = alone.learn(table, runner)
        found, coding = self._learn_trees(reread(table, columns.schema), columns.schema, runner)
        star = columns.model
        model = JointColumns(star.schema, star.leaves, star.groups, star.kernels, star.unknown_weight)
        trees = Trees(coding, found.mixture, found.units, found.trials, found.held_out)
        facts = {name: getattr(columns, name) for name in FittedJoint.__struct_fields__ if hasattr(columns, name)}
        facts |= {"model": model, "log_likelihood": None, "undecided": None, "selection": None, "agreed": None}
        facts |= {"trace": found.trace, "converged": True, "objective": "log-likelihood per row"}
        return FittedJoint(**facts, trees=trees)

    def _learn_trees(self, table: Table, schema: Schema, runner: Runner) -> tuple[Learned, Coding]:
        keys, columns, weights, units_of_rows = read_columns(table, schema, runner)
        n_levels = [len(schema[key].levels) if schema[key].kind.coded else 0 for key in keys]
        held, rest = hold_out(units_of_rows, np.random.default_rng(self.seed + SPLIT_SEED))
        everything = np.ones(len(weights), dtype=bool)
        known = everything.copy()
        known[np.setdiff1d(held, rest)] = False
        choices, codings = [], {}
        for units in ("linear", "normal scores"):
            scores = units == "normal scores"
            coding = find_coding(keys, columns, n_levels, weights, scores, everything)
            if not coding.columns:
                raise DataError(
                    "no column has two values (n_samples=1, or equal rows): a joint model learns nothing here."
                )
            if scores and not coding.numbers:
                continue
            codings[units], own = coding, {own.key: columns[keys.index(own.key)] for own in coding.columns}
            parts, logs = encode_parts(coding, own, weights)
            tried, logs_tried = parts, logs
            if (
                len(weights) <= MOST_SEARCHED
            ):  # of a large table, units that know a few held-out rows make no difference
                blind = find_coding(keys, columns, n_levels, weights, scores, known)
                tried, logs_tried = encode_parts(blind, own, weights)
            choices.append(split_rows(units, parts, tried, coding.sizes, logs_tried, held, rest))
        found = learn(choices, np.random.default_rng(self.seed), self.most)
        return found, codings[found.units]

    def complete(self, fitted: FittedJoint, table: Table, runner: Runner) -> FittedJoint:
        again = reread(table, fitted.schema)
        for task in again.tasks():
            task()
        return replace(fitted, missing={key: float(n) for key, n in again.missing.items()})


def encode_parts(coding: Coding, columns: Mapping[Any, np.ndarray], weights: np.ndarray) -> tuple[Parts, np.ndarray]:
    """Return the parts of all rows, and the constant of each row's log-density."""
    codes, numbers, logs = coding.encode([columns[own.key] for own in coding.columns])
    return Parts(codes, numbers, weights), logs.sum(axis=1)


def read_columns(
    table: Table, schema: Schema, runner: Runner
) -> tuple[list[Any], list[np.ndarray], np.ndarray, np.ndarray]:
    """Return keys, columns and weights of all rows, and the unit of each row; columns of text are left out.

    Rows are sorted by their cells, and a row of whole weight n is n rows, so that neither the order of rows nor weights
    in place of repetitions change the model. Rows of a unit are copies of one, which are held out together.
    """
    chunks = list(table.chunks(runner.map))
    keys = [spec.key for spec in schema.used if schema.places[spec.key].store != "bags"]
    if not keys or not sum(chunk.n_rows for chunk in chunks):
        raise DataError("a joint model needs rows, and a column of categories or numbers.")
    columns = [np.concatenate([chunk.column(schema.places[key]) for chunk in chunks]) for key in keys]
    weights = np.concatenate([chunk.row_weights for chunk in chunks])
    order = np.lexsort((weights, *columns))
    columns, weights = [column[order] for column in columns], weights[order]
    blocks = [column[:, None] for column in columns]
    marks, one_class = row_keys(blocks), np.zeros(len(order), dtype=np.int64)
    whole = bool((weights == np.round(weights)).all())
    copies = find_repeats(marks, one_class, weights if whole else np.ones(len(order)), blocks).copies
    times = count_copies(weights, copies)
    rows = np.repeat(np.arange(len(order)), times)
    units = fold_units(marks[rows], one_class[rows], copies)
    return keys, [column[rows] for column in columns], (weights / np.maximum(times, 1))[rows], units
