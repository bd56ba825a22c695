"""What trying a model on unseen rows comes to: figures, apart from what computes them, so that files load quickly."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from softcount.evaluate.ranking import LiftLine
from softcount.fitted.calibration import Bin, calibration_error
from softcount.records import dataclass


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Accuracy and log-loss on unseen rows, beside those of always saying how frequent each class is.

    `balanced_accuracy` is the share right of each class, averaged over the classes. `reliability` sets the probability
    of the predicted class against how often it was right, in ten equal bins of which the empty ones are left out;
    `calibration_error` is how far the two are apart on average. `brier` is the mean square of what the probabilities
    are off by, summed over the classes; `confusion` the weight of every true class (rows) in every predicted one, and
    `confusions` the same fold by fold, up to twelve classes; `lift` ranks the rows by the probability of each class, up
    to as many; `auc` is how often a row of a class has a higher probability of it than one of another, averaged over
    the classes, where every row was at hand.
    """

    how: str
    n_rows: int
    accuracy: float
    log_loss: float
    baseline_accuracy: float
    baseline_log_loss: float
    folds: list[dict[str, float]] = field(default_factory=list)
    balanced_accuracy: float = float("nan")
    baseline_balanced_accuracy: float = float("nan")
    reliability: tuple[Bin, ...] = ()
    brier: float = float("nan")
    baseline_brier: float = float("nan")
    confusion: tuple[tuple[float, ...], ...] = ()
    auc: float = float("nan")
    confusions: tuple[tuple[tuple[float, ...], ...], ...] = ()
    lift: tuple[tuple[LiftLine, ...], ...] = ()

    @property
    def log_loss_spread(self) -> float:
        """The standard deviation of the log-loss over folds; NaN for a single fold."""
        losses = [fold["log_loss"] for fold in self.folds]
        return float(np.std(losses, ddof=1)) if len(losses) > 1 else float("nan")

    @property
    def calibration_error(self) -> float:
        return calibration_error(self.reliability) if self.reliability else float("nan")
