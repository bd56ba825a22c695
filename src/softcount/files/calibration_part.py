"""How a model's probabilities are corrected, in a model file."""

from __future__ import annotations

from dataclasses import asdict, fields
from math import isfinite
from typing import Any

import numpy as np

from softcount.errors import ModelFileError
from softcount.fitted.calibration import METHODS, Bin, Calibration, Curve

Document = dict[str, Any]
Arrays = dict[str, np.ndarray]


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
    if not sound or len(loss) != 2 or not all(x == 0 or _above(x, 0.0) for x in loss):
        raise ModelFileError("its calibration makes no sense.")
    before, after = (tuple(_bin(part) for part in value[name]) for name in ("before", "after"))
    curves = tuple(_curve(arrays, k) for k in range(wanted))
    return Calibration(method, value["rows"], float(loss[0]), float(loss[1]), before, after, temperature, curves)


def _above(value: Any, least: float) -> bool:
    return type(value) in (int, float) and isfinite(value) and value > least


def _bin(part: Any) -> Bin:
    names = {x.name for x in fields(Bin)}
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
