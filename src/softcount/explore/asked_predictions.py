"""What `predict` says of what is given on a page: with all that tells the classes, calibrated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from softcount.errors import DataError
from softcount.fitted.answers import labels_in
from softcount.fitted.fitted import Fitted
from softcount.run.local import AtOnce
from softcount.table.schema import Key


def predictor(model: Fitted) -> Callable[[dict[str, Any]], dict[str, float]]:
    """What turns a question, cells by the names of their columns, into the probability of each class.

    A level comes as its place among the levels, a number as a number, a document as text; anything else is refused.
    """
    keys = {name: key for key, name in labels_in(model).items()}
    leaves = {column: leaf for leaf in model.model.leaves for column in leaf.columns}
    levels = {
        column: leaf.family.levels_of(leaf.setting, leaf.columns.index(column)) for column, leaf in leaves.items()
    }

    def cell(key: Key, said: Any) -> Any:
        own = levels[key]
        if own is None:
            if type(said) in ((str,) if key in model.schema.texts else (int, float)):
                return said
        elif type(said) is int and 0 <= said < len(own):
            return own[said]
        raise DataError(f"column {key!r} cannot be given as {said!r}.")

    runner: Any = AtOnce()

    def predict(asked: dict[str, Any]) -> dict[str, float]:
        row = {keys[name]: cell(keys[name], said) for name, said in asked.items()}
        table = model.table({spec.key: [row.get(spec.key)] for spec in model.schema.used})
        return dict(zip(map(str, model.names), model.proba(table, runner)[0].tolist(), strict=True))

    return predict
