"""What follows for the groups of a model once something is known of some columns: values, or conditions on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.errors import DataError
from softcount.families import Family, Params
from softcount.fitted.conditions import Condition, Levels, condition_of, evidence_within, is_number, within
from softcount.models.nodes import Node
from softcount.numerics.logspace import softmax_rows
from softcount.records import dataclass
from softcount.sources import wording
from softcount.table import Chunk
from softcount.table.schema import Key

if TYPE_CHECKING:
    from softcount.fitted.fitted_model import Fitted

MOST_ROWS = 100_000
"""Ways in which the levels of blocks can be what is given: so many at most are tried, one by one."""

Given = Mapping[Key, Any]


@dataclass(frozen=True, slots=True)
class RowsGiven:
    """Rows that hold what is given, one for every way in which levels of blocks may be, and the group of each.

    `weights` are the probabilities of rows and groups together; `ranges` are the conditions that no row can hold.
    """

    chunk: Chunk
    weights: np.ndarray
    ranges: Mapping[Key, Condition]

    @property
    def groups(self) -> np.ndarray:
        return np.asarray(self.weights.sum(axis=0))


def parted(model: Fitted, given: Given) -> tuple[dict[Key, Any], dict[Key, Condition]]:
    """What is given of columns: their values, and conditions; those on the class are told apart elsewhere."""
    found = {key: condition_of(value) for key, value in given.items() if key != model.target}
    conditions = {key: condition for key, condition in found.items() if condition is not None}
    return {key: given[key] for key in found if key not in conditions}, conditions


def given_rows(model: Fitted, given: Given) -> RowsGiven:
    """Everything that is given as rows, with the probability of each row and group."""
    sure, conditions = parted(model, given)
    if not conditions:
        chunk = model.single(sure)
        return RowsGiven(chunk, _normalised(model, given, model.joint_of(chunk, model.compiled())), {})
    _refuse_conditions(model, conditions)
    spread = [key for key in conditions if len(leaf_with(model, key).columns) > 1 and _levels(model, key) is not None]
    if model.linear is not None or (spread and model.weights is not None):
        raise DataError(
            "the classes are told by learned weights, under which what is given has no probability. Give single values."
        )
    chunk = model.single(sure, _ways(model, {key: conditions[key] for key in spread}))
    ranges = {key: condition for key, condition in conditions.items() if key not in spread}
    joint = _joint(model, chunk, bool(spread)) + _range_logs(model, chunk, ranges)
    return RowsGiven(chunk, _normalised(model, given, joint), ranges)


def _joint(model: Fitted, chunk: Chunk, spread: bool) -> np.ndarray:
    """(rows x groups) logs; what tells groups apart is enough where there is one row."""
    if not spread:
        return model.joint_of(chunk, model.compiled())
    ready = model.model.prepare(chunk)
    joint = model.model.score(ready, model.model.compile(model.estimates), slice(0, chunk.n_rows))
    return np.asarray(joint + np.broadcast_to(ready.base, chunk.n_rows)[:, None])


def _normalised(model: Fitted, given: Given, joint: np.ndarray) -> np.ndarray:
    """The logs as probabilities of rows and groups together, of groups that what is given of the class allows."""
    if given.get(model.target) is not None:
        joint[:, ~_allowed_groups(model, given[model.target])] = -np.inf
    weights, evidence = softmax_rows(joint.reshape(1, -1))
    if not np.isfinite(evidence).all():
        raise DataError("what is given has probability zero under this model, so nothing follows from it.")
    return weights.reshape(joint.shape)


def _allowed_groups(model: Fitted, known: Any) -> np.ndarray:
    condition = condition_of(known)
    if condition is None:
        return np.asarray(np.arange(model.n_groups) == model.group_of(known))
    return condition.allows(Levels(wording.column(model.target), model.names))


# -- conditions


def leaf_with(model: Fitted, column: Key) -> Node:
    """The leaf that models a column."""
    for leaf in model.model.leaves:
        if column in (leaf.columns or (leaf.key,)):
            return leaf
    known = [str(c) for leaf in model.model.leaves for c in leaf.columns]
    raise DataError(f"the model has no column {column!r}. It has: {', '.join(known)}.")


def cells_of_leaf(model: Fitted, leaf: Node, chunk: Chunk) -> np.ndarray:
    """(rows x columns) codes or numbers of a leaf's columns."""
    places = [model.schema.places[column] for column in leaf.columns]
    return np.stack([getattr(chunk, store)[:, slot].astype(float) for store, slot in places], axis=1)


def conditional(model: Fitted, leaf: Node, cells: np.ndarray, place: int) -> tuple[Family, Params]:
    """One column's family and parameters in every group, given the other cells of its block."""
    own = leaf.family.scorable(model.estimates[leaf.key], leaf.setting)
    return leaf.family.conditional(own, leaf.setting, cells, place)


def _refuse_conditions(model: Fitted, conditions: Mapping[Key, Condition]) -> None:
    """Raise where a condition has no probability: on text, or on counts of a block."""
    for key in conditions:
        leaf = leaf_with(model, key)
        if key in model.schema.texts:
            raise DataError(f"column {key!r} is text, of which a single document can be given, and nothing else.")
        leaf.family.refuse_query(key)


def _levels(model: Fitted, key: Key) -> Levels | None:
    leaf = leaf_with(model, key)
    levels = leaf.family.levels_of(leaf.setting, leaf.columns.index(key))
    return None if levels is None else Levels(wording.column(key), levels)


def _ways(model: Fitted, conditions: Mapping[Key, Condition]) -> dict[Key, list[Any]]:
    """For columns of blocks that have levels, every way in which conditions can be met, column by column."""
    allowed = {key: allowed_levels(model, key, condition) for key, condition in conditions.items()}
    count = prod(map(len, allowed.values()))
    if count > MOST_ROWS:
        raise DataError(f"what is given can be met in {count:,} ways, at most {MOST_ROWS:,} are tried. Give less.")
    rows = list(product(*allowed.values()))
    return {key: [row[place] for row in rows] for place, key in enumerate(allowed)}


def allowed_levels(model: Fitted, key: Key, condition: Condition) -> list[Any]:
    """The levels of a column that a condition allows; where it allows none, it is refused."""
    own = _levels(model, key)
    assert own is not None
    found = [level for level, allowed in zip(own.levels, condition.allows(own), strict=True) if allowed]
    if not found:
        raise DataError(f"what is given of column {key!r} ({condition!r}) leaves none of its levels possible.")
    return found


def _range_logs(model: Fitted, chunk: Chunk, ranges: Mapping[Key, Condition]) -> np.ndarray:
    """(rows x groups) what conditions add: the log-probability of what they allow, given the cells of the row."""
    found = np.zeros((chunk.n_rows, model.n_groups))
    leaves = {key: leaf_with(model, key) for key in ranges}
    for key, leaf in leaves.items():
        other = next((k for k, own in leaves.items() if own is leaf and k != key), None)
        if other is not None:
            raise not_together(key, other)
        cells, place = cells_of_leaf(model, leaf, chunk), leaf.columns.index(key)
        shares = [_evidence(model, key, ranges[key], *conditional(model, leaf, row, place)) for row in cells]
        with np.errstate(divide="ignore"):
            found += _weight(model, leaf) * np.log(shares)
    return found


def not_together(key: Key, other: Key) -> DataError:
    """The refusal of a range of one column of a block beside another that is not known."""
    return DataError(
        f"only a range of {key!r} is given, and {other!r} is of the same block: together they have no exact answer. "
        f"Give a number in place of the range."
    )


def _evidence(model: Fitted, key: Key, condition: Condition, family: Family, params: Params) -> np.ndarray:
    levels = _levels(model, key)
    if levels is not None:
        allowed_levels(model, key, condition)
        return np.asarray(params["probability"] @ condition.allows(levels))
    return evidence_within(key, family, params, condition.pieces(number_reader(model, key)))


def fits(model: Fitted, key: Key, condition: Condition) -> Callable[[Any], np.ndarray]:
    """Which cells of a column a condition allows."""
    if _levels(model, key) is not None:
        allowed = set(allowed_levels(model, key, condition))
        return lambda cells: np.array([cell in allowed for cell in cells], dtype=bool)
    return partial(within, condition.pieces(number_reader(model, key)))


def number_reader(model: Any, key: Key) -> Callable[[Any], float]:
    """What turns an end of a range into a number: it is read as a cell of the column would be."""
    return partial(_as_cell, model, key)


def _as_cell(model: Any, key: Key, value: Any) -> float:
    if is_number(value):
        return float(value)
    try:
        table = model.table({spec.key: [value if spec.key == key else None] for spec in model.schema.used})
        chunk = next(iter(task() for task in table.tasks()))
    except DataError:
        raise _no_number(key, value) from None
    store, slot = model.schema.places[key]
    found = float(getattr(chunk, store)[0, slot])
    if found != found:
        raise _no_number(key, value)
    return found


def _no_number(key: Key, value: Any) -> DataError:
    return DataError(f"{wording.column(key)} holds numbers, and {wording.cell(value)} is none.")


def _weight(model: Fitted, leaf: Node) -> float:
    """How much a leaf counts where columns have weights."""
    if model.weights is None:
        return 1.0
    return float(model.weights.weights[[x.key for x in model.model.leaves].index(leaf.key)])
