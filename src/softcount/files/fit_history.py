"""How a model was learned, in a model file: how EM climbed, what was tried, how probabilities were corrected."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from msgspec.structs import asdict

from softcount.errors import ModelFileError
from softcount.families.base import number, truth
from softcount.files.archive import Arrays, Document
from softcount.files.json_document import plain
from softcount.files.validate import check_names
from softcount.fitted.fitted import METHODS, Bin, Calibration, Curve
from softcount.learn.record import Learned, Trial


def fit_history_document(model: Learned) -> Document:
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
        "undecided": _number(model.undecided),
    }


def fit_history_from(document: Document, groups: int) -> Document:
    """The same as arguments of `Fitted`; files of format 1 do not have all of it."""
    likelihood, undecided = document["log_likelihood"], document.get("undecided")
    return {
        "notes": [_text(x, "a note") for x in document["notes"]],
        "trace": [-float("inf") if x is None else number(x, "a step of the trace") for x in document["trace"]],
        "half_steps": truth(document.get("half_steps", False), "half_steps"),
        "converged": truth(document["converged"], "converged"),
        "interrupted": truth(document.get("interrupted", False), "interrupted"),
        "log_likelihood": None if likelihood is None else number(likelihood, "the log-likelihood"),
        "objective": _text(document["objective"], "the objective"),
        "agreed": _agreed(document["agreed"]),
        "named": _named(document.get("named"), groups),
        "selection": _selection(document.get("selection")),
        "undecided": None if undecided is None else number(undecided, "the entropy of memberships"),
    }


def _number(value: float | None) -> float | None:
    """JSON has no infinity; a start that a prior rules out is at minus infinity."""
    return None if value is None or not isfinite(value) else float(value)


def _trial(trial: Trial) -> Document:
    return {name: _number(x) if isinstance(x, float) else plain(x) for name, x in asdict(trial).items()}


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ModelFileError(f"{what} is {value!r}, which is no text.")
    return value


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
    check_names(value)
    return value


def _selection(value: Any) -> list[Trial] | None:
    if value is None:
        return None
    known = set(Trial.__struct_fields__)
    if not isinstance(value, list) or not value or not all(isinstance(x, dict) and set(x) == known for x in value):
        raise ModelFileError("the table of numbers of classes that were tried makes no sense.")
    if not all(x is None or type(x) in (int, float) for trial in value for x in trial.values()):
        raise ModelFileError("the numbers of classes that were tried hold what is no number.")
    return [Trial(**trial) for trial in value]


# -- calibration


def calibration_document(found: Calibration | None, arrays: Arrays) -> Document | None:
    """The correction as JSON; the points of its curves go to arrays."""
    if found is None:
        return None
    for k, curve in enumerate(found.curves):
        arrays[f"calibration/{k}/odds"] = np.ascontiguousarray(curve.odds, dtype=np.float64)
        arrays[f"calibration/{k}/share"] = np.ascontiguousarray(curve.share, dtype=np.float64)
    return {
        "method": found.method,
        "rows": int(found.rows),
        "log_loss": [float(found.log_loss_before), float(found.log_loss_after)],
        "before": [asdict(part) for part in found.before],
        "after": [asdict(part) for part in found.after],
        "temperature": found.temperature,
        "curves": len(found.curves),
    }


def calibration_from(value: Any, arrays: Arrays, groups: int, known: bool) -> Calibration | None:
    """The same back; only a model of `known` classes can have one. Older files have none."""
    if value is None:
        return None
    method, temperature, loss = value["method"], value["temperature"], value["log_loss"]
    wanted = 0 if method == "temperature" else 1 if groups == 2 else groups
    sound = known and groups > 1 and method in METHODS and value["curves"] == wanted
    sound = sound and (temperature is None) == (wanted > 0) and (temperature is None or _above(temperature, 0.0))
    sound = sound and type(value["rows"]) is int and value["rows"] > 0
    sound = sound and bool(value["before"]) and bool(value["after"])
    if not sound or len(loss) != 2 or not all(x == 0 or _above(x, 0.0) for x in loss):
        raise ModelFileError("its calibration makes no sense.")
    before, after = (tuple(bin_from(part) for part in value[name]) for name in ("before", "after"))
    curves = tuple(_curve(arrays, k) for k in range(wanted))
    return Calibration(method, value["rows"], float(loss[0]), float(loss[1]), before, after, temperature, curves)


def _above(value: Any, least: float) -> bool:
    return type(value) in (int, float) and isfinite(value) and value > least


def bin_from(part: Any) -> Bin:
    """A line of a table of reliability back."""
    names = set(Bin.__struct_fields__)
    if set(part) != names or not all(type(x) in (int, float) and x >= 0 for x in part.values()):
        raise ModelFileError("its table of reliability makes no sense.")
    found = Bin(**{name: float(x) for name, x in part.items()})
    if not found.rows > 0 or max(found.low, found.high, found.stated, found.right) > 1 + 1e-9:
        raise ModelFileError("its table of reliability holds shares that are none.")
    return found


def _curve(arrays: Arrays, k: int) -> Curve:
    odds, share = arrays[f"calibration/{k}/odds"], arrays[f"calibration/{k}/share"]
    sound = odds.ndim == 1 and odds.shape == share.shape and len(odds) > 0 and odds.dtype == share.dtype == np.float64
    sound = sound and bool(np.isfinite(odds).all() and (np.diff(odds) > 0).all())
    if not sound or not ((share > 0) & (share < 1)).all() or (np.diff(share) < 0).any():
        raise ModelFileError(f"curve {k + 1} of its calibration does not rise from point to point.")
    return Curve(odds, share)
