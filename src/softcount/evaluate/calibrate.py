"""Calibration of probabilities by cross-validation, and scores per column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.special import brent_root
from softcount.errors import DataError
from softcount.evaluate.folds import FoldModels, fold_models
from softcount.evaluate.ranking import find_classes
from softcount.fitted.calibration import (
    FARTHEST,
    METHODS,
    Bin,
    Calibration,
    Curve,
    apply_curves,
    bin_sums,
    bins_of,
    log_odds,
    soften_log_proba,
)
from softcount.fitted.fitted import Fitted
from softcount.fitted.scorers import CALIBRATION_NOTES
from softcount.learn.record import Plan, retry_wider
from softcount.run.local import Runner
from softcount.run.progress import end_on_interrupt
from softcount.table import Chunk, Table
from softcount.table.chunk import Split

Correction = float | tuple[Curve, ...]
FOLDS = 5
MOST_CELLS = 20_000_000
"""Rows times classes; of longer tables a random part of the rows is used."""
COLDEST, HOTTEST = 0.05, 1e5
"""Range of temperatures."""
SMALLEST = 1e-15
"""Log-losses count smaller probabilities as this."""
UNBOUND = 1.0
"""The temperature if the held-out rows are so often right that they set it no lower bound."""
STAYS = (
    f"the temperature stays 1: held-out rows are right so often that no temperature above {COLDEST} can be estimated."
)


class HeldOut(Struct, frozen=True):
    """Held-out rows with the log-posteriors of a model that has not seen them.

    `repeated`: the weights say how many rows each is. `part` is the share of the rows that was drawn.
    """

    logs: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    folds: np.ndarray
    repeated: bool = False
    part: float = 1.0

    @property
    def rows(self) -> int:
        return round(float(self.weights.sum())) if self.repeated else len(self.labels)

    def take(self, rows: np.ndarray) -> HeldOut:
        return HeldOut(self.logs[rows], self.labels[rows], self.weights[rows], self.folds[rows], self.repeated)


def check_method(method: Any) -> None:
    if method not in METHODS:
        raise DataError(f"calibration={method!r} is not known. Use None, 'temperature' or 'isotonic'.")


def calibrate(
    fitted: Fitted, table: Table, plan: Plan, runner: Runner, method: str, classes: Sequence[Any] | None = None
) -> Fitted:
    """Calibrate probabilities by cross-validation; a note says why if that is not possible.

    `table` holds the rows it was fitted on; `classes` are those of coded labels.
    """
    check_method(method)
    if fitted.n_groups < 2:
        return fitted.with_notes("not calibrated: there is only one class.")
    split = Split(FOLDS, 0)
    held = retry_wider(table, lambda t: hold_out(t, plan, runner, split, classes), runner)
    if held is None or len(np.unique(held.labels)) < 2:
        return fitted.with_notes("not calibrated: too few rows have a label.")
    if held.part < 1:
        rows = f"{len(held.labels):,} rows, about {100 * held.part:.2g} % of those with a label"
        fitted = fitted.with_notes(f"calibrated on a random part: {rows}.")
    return _with_calibration(fitted, learn_calibration(held, method))


def calibrate_on_rows(
    fitted: Fitted, joint: np.ndarray, names: Sequence[Any], weights: np.ndarray | None, method: str
) -> Fitted:
    """Calibrate by unseen rows: `joint` is the log of share times density, `names` are their classes.

    Rows without a class are skipped.
    """
    check_method(method)
    labels = find_classes(names, fitted.names)
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not len(labels) == len(weights) == len(joint):
        raise DataError(f"{len(joint)} rows have {len(labels)} labels and {len(weights)} weights. Give one of each.")
    kept = (labels >= 0) & (weights > 0) & np.isfinite(joint).any(axis=1)
    if len(np.unique(labels[kept])) < 2:
        raise DataError("calibration needs labelled rows of at least two classes.")
    logs = soften_log_proba(joint[kept], 1.0).astype(np.float32)
    folds = np.arange(len(logs)) % FOLDS
    found = learn_calibration(HeldOut(logs, labels[kept], weights[kept], folds), method)
    notes = [note for note in fitted.notes if not note.startswith(CALIBRATION_NOTES)]
    return _with_calibration(replace(fitted, notes=notes), found)


def _with_calibration(fitted: Fitted, found: Calibration) -> Fitted:
    scorer = replace(fitted.scorer, calibration=found)
    return replace(fitted, scorer=scorer).with_notes(*([STAYS] if found.temperature == UNBOUND else []))


def learn_corrections(
    table: Table, plan: Plan, runner: Runner, models: FoldModels, method: str
) -> list[Correction] | None:
    """The correction of each tested fold, learned from rows outside of it.

    With several folds these are the others; of a single held-out share, folds of the rest. None if too few rows are
    labelled.
    """
    learn, split = LEARN[method], models.split
    if split.share is not None:
        within = Split(FOLDS, 0, repeats=split.repeats, inside=split, units=split.units)
        held = hold_out(table, plan, runner, within, None)
        parts = [] if held is None else [held]
    else:
        held = _hold_out_folds(table, runner, models)
        parts = [] if held is None else [held.take(np.flatnonzero(held.folds != fold)) for fold in split.tested]
    if not parts or any(len(np.unique(part.labels)) < 2 for part in parts):
        return None
    return [learn(part) for part in parts]


@end_on_interrupt()
def hold_out(table: Table, plan: Plan, runner: Runner, split: Split, classes: Sequence[Any] | None) -> HeldOut | None:
    """Answers of the models of the other folds; None if too few rows have a label."""
    models = fold_models(table, plan, runner, split, classes)
    return None if models is None else _hold_out_folds(table, runner, models)


def _hold_out_folds(table: Table, runner: Runner, models: FoldModels) -> HeldOut | None:
    """Answers of every fold's model for its rows, or for a random part of them."""
    split = models.split
    cells = int(models.counts.rows if table.n_rows is None else table.n_rows) * models.model.groups
    part = min(1.0, MOST_CELLS / max(cells, 1))
    drawn = Split(2, split.seed + 1, part) if part < 1 else None
    parts = models.map(table, runner, partial(_hold_out_chunk, drawn=drawn))
    if not parts:
        return None
    whole = {name: np.concatenate([getattr(x, name) for x in parts]) for name in ("logs", "labels", "weights", "folds")}
    return HeldOut(**whole, repeated=split.counts_weights, part=part)


def _hold_out_chunk(models: FoldModels, chunk: Chunk, drawn: Split | None) -> list[HeldOut]:
    kept = np.ones(chunk.n_rows, dtype=bool) if drawn is None else drawn.of(chunk) == 0
    parts = []
    for found in models.answers(chunk):
        some = kept[found.rows - chunk.start] & (found.weights > 0) & np.isfinite(found.joint).any(axis=1)
        joint = found.joint[some]
        logs = (joint - models.model.kernels.normalise(joint.copy())[:, None]).astype(np.float32)
        folds = np.full(len(logs), found.fold, dtype=np.int32)
        parts.append(HeldOut(logs, found.labels[some], found.weights[some], folds))
    return parts


def learn_calibration(held: HeldOut, method: Any) -> Calibration:
    """The correction learned from all these rows. Its figures are of every fold under the correction of the others."""
    learn = LEARN[method]
    outcomes = np.empty((3, len(held.labels)))
    for fold in np.unique(held.folds):
        inside = held.folds == fold
        others = held.take(np.flatnonzero(~inside)) if not inside.all() else held
        logs = correct(held.logs[inside].astype(np.float64), learn(others))
        outcomes[:, inside] = _outcomes(logs, held.labels[inside])
    found = learn(held)
    (loss, bins), (loss_after, bins_after) = _figures(held, _outcomes(held.logs, held.labels)), _figures(held, outcomes)
    kept = {"temperature": found} if isinstance(found, float) else {"curves": found}
    return Calibration(method, held.rows, loss, loss_after, bins, bins_after, **kept)


def correct(logs: np.ndarray, found: Correction) -> np.ndarray:
    """Log-probabilities of each class from the log of share times density."""
    return soften_log_proba(logs, found) if isinstance(found, float) else np.log(apply_curves(logs, found))


def _outcomes(logs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(3 x rows) log-probability of each row's class, largest probability, whether that is right."""
    rows, best = np.arange(len(labels)), logs.argmax(axis=1)
    return np.stack([logs[rows, labels], np.minimum(np.exp(logs[rows, best]), 1.0), best == labels])


def _figures(held: HeldOut, outcomes: np.ndarray) -> tuple[float, tuple[Bin, ...]]:
    """Log-loss and reliability."""
    own = np.maximum(outcomes[0], np.log(SMALLEST))
    return float(held.weights @ -own / held.weights.sum()), bins_of(bin_sums(outcomes[1], outcomes[2], held.weights))


def _temperature(held: HeldOut) -> float:
    """The temperature that maximises the likelihood of the held-out rows; above 1 if the model was overconfident.

    It is 1 if lower ones would always be better.
    """
    rows = np.arange(len(held.labels))
    # A class absent from the other folds is impossible at any temperature.
    fair = np.flatnonzero(np.isfinite(held.logs[rows, held.labels]))
    ahead = np.maximum(held.logs[fair] - held.logs[fair].max(axis=1, keepdims=True, initial=-FARTHEST), -FARTHEST)
    own, weights = ahead[rows[: len(fair)], held.labels[fair]], held.weights[fair]
    ones = np.ones(ahead.shape[1], dtype=np.float32)

    def slope(log_temperature: float) -> float:
        """Of the loss as the inverse temperature rises, which it does ever faster: it has one lowest point."""
        shares = np.exp(ahead * np.float32(np.exp(-log_temperature)))
        total = shares @ ones
        return float(weights @ ((shares * ahead) @ ones / total - own))

    cold, hot = np.log([COLDEST, HOTTEST])
    if slope(cold) <= 0:
        return UNBOUND
    return HOTTEST if slope(hot) >= 0 else float(np.exp(brent_root(slope, cold, hot, 1e-9)))


def _curves(held: HeldOut) -> tuple[Curve, ...]:
    """Isotonic regressions of every class against all others on its log-odds; of two classes, of the second.

    Shares stay one row away from 0 and 1: new rows may hold what these did not.
    """
    from sklearn.isotonic import IsotonicRegression

    odds = np.clip(log_odds(held.logs.astype(np.float64)), -FARTHEST, FARTHEST)
    least = 1.0 / (held.weights.sum() + 2.0)
    curves = []
    for k in [1] if odds.shape[1] == 2 else range(odds.shape[1]):
        line = IsotonicRegression(y_min=least, y_max=1.0 - least)
        line.fit(odds[:, k], (held.labels == k).astype(np.float64), held.weights)
        curves.append(Curve(line.X_thresholds_, line.y_thresholds_))
    return tuple(curves)


LEARN: dict[str, Callable[[HeldOut], Correction]] = {"temperature": _temperature, "isotonic": _curves}
