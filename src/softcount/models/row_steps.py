"""What is done with every part of the rows, by name: each function makes, from what it is told, something to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.counts import Counts
from softcount.errors import DataError
from softcount.run.rows import Step

if TYPE_CHECKING:
    from softcount.models.base import Assign, ClassModel, Model
    from softcount.models.nodes import Params

HERE = __name__


def expecting(model: Model, params: Params, assign: Assign | None = None) -> Step:
    """The step whose total are the expected counts, under the model's own names."""
    return Step(f"{HERE}:expect", (model, params, assign), model.worth_threads())


def expect(state: tuple[Model, Params, Assign | None]) -> Callable[[Any], Counts]:
    """Expected counts of a prepared part."""
    model, params, assign = state
    return partial(_expected, model, model.compile(params), assign)


def _expected(model: Model, compiled: Any, assign: Assign | None, ready: Any) -> Counts:
    return model.expect(compiled, ready, assign)


def finding_impossible(model: Model, params: Params) -> Step:
    """The step that finds rows of probability zero."""
    return Step(f"{HERE}:find_impossible", (model, params), model.worth_threads())


def find_impossible(state: tuple[Model, Params]) -> Callable[[Any], DataError | None]:
    """The error where a prepared part has such a row, or nothing."""
    model, params = state
    return partial(_impossible, model, params, model.compile(params))


def _impossible(model: Model, params: Params, compiled: Any, ready: Any) -> DataError | None:
    fits = np.isfinite(model.expect(compiled, ready).log_likelihood)
    return None if fits else model.impossible(params, [ready])


def preparing(model: Model) -> Step:
    """The step that makes chunks what the model wants them to be."""
    return Step(f"{HERE}:prepare", model)


def prepare(model: Model) -> Callable[[Any], Any]:
    """A chunk as the model wants it."""
    return model.prepare


def arranging(model: Model) -> Step:
    """The step that puts prepared rows into parts of a good length for many passes."""
    return Step(f"{HERE}:arrange", model)


def arrange(model: Model) -> Callable[[Sequence[Any]], Iterable[Any]]:
    """Prepared parts in a better length."""
    return partial(_arranged, model)


def _arranged(model: Model, ready: Sequence[Any]) -> Iterable[Any]:
    return model.arranged(list(ready))


def counting_equally(model: ClassModel) -> Step:
    """The step whose total are the counts of rows that are shared equally between the groups."""
    return Step(f"{HERE}:count_equally", model)


def count_equally(model: ClassModel) -> Callable[[Any], Counts]:
    """The counts of prepared rows, each shared equally between the groups."""
    return partial(_equally, model)


def _equally(model: ClassModel, ready: Any) -> Counts:
    return model.tally_members(ready, np.full((ready.n_rows, model.groups), 1.0 / model.groups))


def tallying(model: ClassModel) -> Step:
    """The step whose total are the counts of rows of known class."""
    return Step(f"{HERE}:tally", model)


def tally(model: ClassModel) -> Callable[[Any], Counts]:
    """The counts of prepared rows of known class."""
    return model.tally


def weighing(factor: float) -> Step:
    """The step that makes rows weigh so many times as much."""
    return Step(f"{HERE}:weigh", factor)


def weigh(factor: float) -> Callable[[Any], Any]:
    """Rows, encoded or prepared, that weigh so many times as much."""
    return partial(with_weight, factor=factor)


def with_weight(rows: Any, factor: float) -> Any:
    """The same for some rows."""
    weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    return replace(rows, weights=weights * factor)
