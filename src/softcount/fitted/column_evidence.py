"""Which columns carry the classes: the evidence for a column that differs between them over one that does not."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from softcount.counts import Counts
from softcount.fitted.influence import together
from softcount.models.base import ClassModel
from softcount.models.nodes import Imagined
from softcount.table import Table
from softcount.table.schema import Key

if TYPE_CHECKING:
    from softcount.fitted.fitted_model import Fitted


def column_evidence(fitted: Fitted) -> dict[Key, float]:
    """For every column or block, in nats, by how much its values are likelier where each class has its own parameters.

    Parameters are integrated out, so what the classes cost is paid: a column that says nothing has less than nothing.
    Columns are independent given the class, so the best set is simply that of the columns above 0.
    """
    return _gains(fitted.model, fitted.imagined, fitted.counts)


def evidence_under(one: Fitted, table: Table, memberships: np.ndarray) -> dict[Key, float]:
    """The same of every column of a table for classes that other columns found, as (rows x groups) memberships.

    `one` is the fit of a single class to all columns.
    """
    groups = memberships.shape[1]
    model = one.model.with_leaves(one.model.leaves, groups)
    parts = [
        model.tally_members(model.prepare(chunk, base=False), memberships[chunk.start : chunk.start + chunk.n_rows])
        for chunk in one.chunks(table)
    ]
    return _gains(model, one.imagined, model.named(reduce(lambda left, right: left + right, parts)))


def _gains(model: ClassModel, imagined: Imagined, counts: Counts) -> dict[Key, float]:
    single, found = counts.map(together), {}
    for leaf in model.leaves:
        family, hyper = leaf.family, imagined.hypers[leaf.key]
        apart = family.evidence(counts.arrays[leaf.key], family.proper(hyper))
        whole = family.evidence(single.arrays[leaf.key], family.proper(family.pooled_hyper(hyper)))
        found[leaf.key] = float(apart - whole)
    return found
