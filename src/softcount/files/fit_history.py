"""The story of a fit in a model file: how EM climbed, what was tried, which classes were known."""

from __future__ import annotations

from dataclasses import asdict, fields
from math import isfinite
from typing import Any

from softcount.errors import ModelFileError
from softcount.files.plain_values import key_of, plain
from softcount.files.validate import refuse_twice
from softcount.fitted.fitted_model import Fitted
from softcount.learn.choose import Trial

Document = dict[str, Any]


def story_document(model: Fitted) -> Document:
    """What happened, as JSON."""
    return {
        "notes": list(model.notes),
        "trace": [_number(x) for x in model.trace],
        "half_steps": bool(model.half_steps),
        "converged": bool(model.converged),
        "interrupted": bool(model.interrupted),
        "log_likelihood": _number(model.log_likelihood),
        "objective": model.objective,
        "agreed": None if model.agreed is None else [int(x) for x in model.agreed],
        "named": None if model.named is None else [plain(name) for name in model.named],
        "selection": None if model.selection is None else [_trial(trial) for trial in model.selection],
    }


def story_from(document: Document, groups: int) -> Document:
    """The same as arguments of `Fitted`; files of format 1 do not have all of it."""
    return {
        "notes": [str(x) for x in document["notes"]],
        "trace": [-float("inf") if x is None else float(x) for x in document["trace"]],
        "half_steps": bool(document.get("half_steps", False)),
        "converged": bool(document["converged"]),
        "interrupted": bool(document.get("interrupted", False)),
        "log_likelihood": None if document["log_likelihood"] is None else float(document["log_likelihood"]),
        "objective": str(document["objective"]),
        "agreed": _agreed(document["agreed"]),
        "named": _named(document.get("named"), groups),
        "selection": _selection(document.get("selection")),
    }


def _number(value: float | None) -> float | None:
    """JSON has no infinity; a start that a prior rules out is at minus infinity."""
    return None if value is None or not isfinite(value) else float(value)


def _trial(trial: Trial) -> Document:
    return {name: _number(x) if isinstance(x, float) else plain(x) for name, x in asdict(trial).items()}


def _agreed(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2 or not all(type(x) is int and x >= 0 for x in value):
        raise ModelFileError(f"{value!r} is not how many starts agreed, of how many.")
    return value[0], value[1]


def _named(value: Any, groups: int) -> list[Any] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not 0 < len(value) <= groups:
        raise ModelFileError(f"the known classes are {value!r}, which cannot be {groups} groups.")
    names = [key_of(name) for name in value]
    refuse_twice(names, "class")
    return names


def _selection(value: Any) -> list[Trial] | None:
    if value is None:
        return None
    known = {part.name for part in fields(Trial)}
    if not isinstance(value, list) or not value or not all(isinstance(x, dict) and set(x) == known for x in value):
        raise ModelFileError("the table of numbers of classes that were tried makes no sense.")
    if not all(x is None or type(x) in (int, float) for trial in value for x in trial.values()):
        raise ModelFileError("the numbers of classes that were tried hold what is no number.")
    return [Trial(**trial) for trial in value]
