"""Joint models of a table: the marginals of its columns, and the mixture of trees over all of them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.errors import DataError
from softcount.fit import reread
from softcount.fit.classes import ClassRequest, ClassSearch
from softcount.fitted.joint import FittedJoint, Trees
from softcount.learn.mixture import Starts
from softcount.learn.record import Plan
from softcount.models.joint import JointColumns
from softcount.run.local import Runner
from softcount.table import Table
from softcount.table.schema import Schema
from softcount.tree_mixtures.columns import Coding, find_coding
from softcount.tree_mixtures.learn import Learned, learn, split_rows
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
        keys, columns, weights = read_columns(table, schema, runner)
        n_levels = [len(schema[key].levels) if schema[key].kind.coded else 0 for key in keys]
        codings = {}
        for units in ("linear", "normal scores"):
            coding = find_coding(keys, columns, n_levels, weights, units == "normal scores")
            if units == "linear" or coding.numbers:
                codings[units] = coding
        choices = []
        for units, coding in codings.items():
            place = {key: at for at, key in enumerate(keys)}
            codes, numbers, logs = coding.encode([columns[place[own.key]] for own in coding.columns])
            split = np.random.default_rng(self.seed + SPLIT_SEED)
            choices.append(split_rows(units, Parts(codes, numbers, weights), coding.sizes, logs.sum(axis=1), split))
        found = learn(choices, np.random.default_rng(self.seed), self.most)
        return found, codings[found.units]

    def complete(self, fitted: FittedJoint, table: Table, runner: Runner) -> FittedJoint:
        again = reread(table, fitted.schema)
        for task in again.tasks():
            task()
        return replace(fitted, missing={key: float(n) for key, n in again.missing.items()})


def read_columns(table: Table, schema: Schema, runner: Runner) -> tuple[list[Any], list[np.ndarray], np.ndarray]:
    """Return keys, columns and weights of all rows; columns of text are left out."""
    chunks = list(table.chunks(runner.map))
    keys = [spec.key for spec in schema.used if schema.places[spec.key].store != "bags"]
    if not keys or not sum(chunk.n_rows for chunk in chunks):
        raise DataError("a joint model needs rows, and a column of categories or numbers.")
    columns = [np.concatenate([chunk.column(schema.places[key]) for chunk in chunks]) for key in keys]
    return keys, columns, np.concatenate([chunk.row_weights for chunk in chunks])
