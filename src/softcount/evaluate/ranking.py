"""Classifiers ranked on the same held-out rows, with paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field

from softcount.core.ranges import Amount, NotNegative, Positive, Share
from softcount.errors import DataError
from softcount.fitted.calibration import Bin, calibration_error
from softcount.fitted.decisions import Threshold, apply_threshold
from softcount.pictures.inline_html import boxed, small_table

RATES = ("precision", "recall")
PARTS = 10
FOLDS = 5
ROUNDING = 1e-12
"""How far a rate may be below the wanted one: 9 of 10 rows are 0.9, whatever the division gives."""


class LiftLine(Struct, frozen=True):
    """One part of the rows, ranked by the probability of a class, the most probable first.

    Attributes
    ----------
    part : int
        Number of the part, from 1.
    rows : float
        Weight of its rows.
    of_class : float
        Weight of those that are of the class.
    share : float
        `of_class` / `rows`.
    lift : float
        `share` divided by the share of the class among all rows.
    captured : float
        Share of the class in this part and those before it.
    lift_so_far : float
        Lift of this part and those before it together.
    """

    part: int
    rows: Positive
    of_class: NotNegative
    share: Share
    lift: NotNegative
    captured: Share
    lift_so_far: NotNegative


class Ranking(Struct, frozen=True, eq=False):
    """Distinct scores from the highest down, with the weight of the rows at least as high, and of the class."""

    scores: np.ndarray
    rows: np.ndarray
    hits: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, hit: np.ndarray, weights: np.ndarray) -> Ranking:
        """`hit` says which rows are of the class."""
        distinct, place = np.unique(-np.asarray(scores, dtype=float), return_inverse=True)
        sums = [np.bincount(place, w, minlength=len(distinct)) for w in (weights, weights * hit)]
        return cls(-distinct, np.cumsum(sums[0]), np.cumsum(sums[1]))

    @property
    def total(self) -> float:
        return float(self.rows[-1]) if len(self.rows) else 0.0

    @property
    def positives(self) -> float:
        return float(self.hits[-1]) if len(self.hits) else 0.0

    @property
    def auc(self) -> float:
        """How often a row of the class scores above one of another, ties counting half; NaN if either is missing."""
        own, others = np.diff(self.hits, prepend=0.0), np.diff(self.rows - self.hits, prepend=0.0)
        pairs = self.positives * (self.total - self.positives)
        if not pairs > 0:
            return float("nan")
        below = (self.total - self.positives) - np.cumsum(others)
        return float(own @ (below + 0.5 * others) / pairs)

    def lift(self, parts: int = PARTS) -> list[LiftLine]:
        """Equal parts of the rows, the most probable first; rows with one score share what they hold evenly."""
        if not self.positives > 0:
            return []
        cuts = self.total * np.arange(parts + 1) / parts
        hits = np.interp(cuts, np.concatenate([[0.0], self.rows]), np.concatenate([[0.0], self.hits]))
        rate, size = self.positives / self.total, self.total / parts
        return [
            LiftLine(
                k + 1, size, float(hits[k + 1] - hits[k]), float((hits[k + 1] - hits[k]) / size),
                float((hits[k + 1] - hits[k]) / size / rate), float(hits[k + 1] / self.positives),
                float(hits[k + 1] / cuts[k + 1] / rate),
            )
            for k in range(parts)
        ]  # fmt: skip

    def rates(self) -> dict[str, np.ndarray]:
        """Precision and recall of assigning every row from each distinct score on."""
        return {"precision": self.hits / self.rows, "recall": self.hits / self.positives}

    def threshold(self, rate: str, wanted: float) -> int | None:
        """The place of the score from which on the rate is reached and the other one best; None if it never is."""
        reached = np.flatnonzero(self.rates()[rate] >= wanted - ROUNDING)
        if not len(reached):
            return None
        return int(reached[-1] if rate == "precision" else reached[0])


def read_rate(precision: Any, recall: Any) -> tuple[str, float]:
    given = {name: value for name, value in zip(RATES, (precision, recall), strict=True) if value is not None}
    if len(given) != 1:
        raise DataError("give either precision or recall, such as precision=0.9.")
    (rate, value), *_ = given.items()
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < value <= 1:
        raise DataError(f"{rate} is a number above 0 and up to 1, not {value!r}.")
    return rate, float(value)


class ScoredRows(Struct, frozen=True, eq=False):
    """Held-out rows: probability of every class, the place of the true one, weights, and folds."""

    proba: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    folds: np.ndarray

    def ranking(self, place: int, rows: np.ndarray | slice = slice(None)) -> Ranking:
        return Ranking.of(self.proba[rows, place], self.labels[rows] == place, self.weights[rows])


def find_classes(labels: Sequence[Any], names: Sequence[Any]) -> np.ndarray:
    """The place of each row's class among the names, -1 if it is missing; unknown classes are refused."""
    places = {name: place for place, name in enumerate(names)}
    codes = np.full(len(labels), -1, dtype=np.int64)
    for row, label in enumerate(labels):
        label = label.item() if isinstance(label, np.generic) else label
        if label is None or label != label:
            continue
        if label not in places:
            known = ", ".join(map(repr, list(names)[:8]))
            raise DataError(f"row {row + 1}: class {label!r} is not one of the model's: {known}.")
        codes[row] = places[label]
    return codes


def choose_threshold(held: ScoredRows, place: int, name: Any, rate: str, wanted: float) -> Threshold:
    """The threshold that all these rows choose for one class, with its rates."""
    ranking = held.ranking(place)
    if not 0 < ranking.positives < ranking.total:
        there = "every row" if ranking.positives > 0 else "no row"
        raise DataError(f"{there} with a label is of class {name!r}: a threshold needs rows of it and of others.")
    at = ranking.threshold(rate, wanted)
    if at is None:
        best = int(np.argmax(ranking.rates()[rate]))
        raise DataError(
            f"no threshold for {name!r} reaches a precision of {wanted:g} on held-out rows: the highest is "
            f"{ranking.rates()[rate][best]:.4g}, from a probability of {ranking.scores[best]:.4g} on."
        )
    value = float(ranking.scores[at])
    checked = np.zeros(len(held.labels), dtype=bool)
    for fold in np.unique(held.folds):
        inside, threshold = held.folds == fold, value
        others = held.ranking(place, ~inside)
        if others.positives > 0:  # the best threshold of the other folds if they do not reach the rate
            reached = others.threshold(rate, wanted)
            threshold = float(others.scores[int(np.argmax(others.rates()[rate])) if reached is None else reached])
        checked[inside] = held.proba[inside, place] >= threshold
    all_rows = _rates(held, place, apply_threshold(held.proba, place, value) == place)
    fair, usual = _rates(held, place, checked), _rates(held, place, held.proba.argmax(axis=1) == place)
    return Threshold(name, value, f"{rate} {wanted:g}", *all_rows, *fair[:2], *usual[:2], rows=len(held.labels))


def _rates(held: ScoredRows, place: int, assigned: np.ndarray) -> tuple[float, float, float]:
    """Precision, recall and the share of rows assigned; precision is NaN if there are none."""
    true = held.labels == place
    all_called, both = held.weights @ assigned, held.weights @ (assigned & true)
    precision = both / all_called if all_called > 0 else float("nan")
    return float(precision), float(both / (held.weights @ true)), float(all_called / held.weights.sum())


# Ranking models on the same rows: the best one, and those that are not significantly worse.

ERRORS = 2.0
"""Standard errors within which a difference is a tie."""


class Behind(Struct, frozen=True):
    """Mean difference of the losses of two models per row, paired by row.

    Attributes
    ----------
    mean : float
        Mean difference.
    error : float
        Standard error of the mean, for other held-out rows and the same models.
    """

    mean: float
    error: float

    @property
    def is_tie(self) -> bool:
        """Whether the rows cannot distinguish the two.

        >>> Behind(0.01, 0.006).is_tie, Behind(0.01, 0.004).is_tie, Behind(0.0, 0.0).is_tie
        (True, False, True)
        """
        return self.mean <= ERRORS * self.error


def compare_losses(losses: np.ndarray, best: np.ndarray) -> Behind:
    """The mean additional loss per row; a single row has an infinite error.

    >>> compare_losses(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]))
    Behind(mean=1.0, error=0.5773502691896258)
    """
    more = losses - best
    if len(more) < 2:
        return Behind(float(more.mean()), float("inf"))
    return Behind(float(more.mean()), float(more.std(ddof=1) / np.sqrt(len(more))))


def rank_by_loss(losses: Mapping[str, np.ndarray]) -> list[str]:
    """Names from the lowest mean loss up; of equals the one named first, which is the simpler."""
    return sorted(losses, key=lambda name: float(losses[name].mean()))


def verdict(losses: Mapping[str, np.ndarray], what: str) -> str:
    """Which model is best, and which tie with it, in words; names come from the simplest on.

    >>> rows = np.arange(8.0)
    >>> print(verdict({"plain": rows + 1, "pairs": rows}, "log-loss"))
    by log-loss pairs is best, and no other is within two standard errors of it.
    >>> print(verdict({"plain": rows[::-1], "pairs": rows}, "log-loss"))
    by log-loss it is a tie between plain and pairs: within two standard errors of each other. plain is the simplest.
    """
    first = rank_by_loss(losses)[0]
    tied = [name for name in losses if name == first or compare_losses(losses[name], losses[first]).is_tie]
    if len(losses) == 1:
        return f"by {what} there is only {first}."
    if len(tied) == 1:
        return f"by {what} {first} is best, and no other is within two standard errors of it."
    near = "each other" if len(tied) == 2 else f"{first}, whose mean is the best"
    names = f"{', '.join(tied[:-1])} and {tied[-1]}"
    return f"by {what} it is a tie between {names}: within two standard errors of {near}. {tied[0]} is the simplest."


# The scores alone, without the code that computes them, so that model files load quickly.


class Evaluation(Struct, frozen=True):
    """Figures of a classifier on unseen rows, and of the baseline that always predicts the shares of the classes.

    Attributes
    ----------
    how : str
        Which rows these are.
    n_rows : float
        Weight of the rows.
    accuracy, baseline_accuracy : float
        Share of rows whose class is predicted.
    log_loss, baseline_log_loss : float
        Mean of -log(probability of the true class), in nats per row.
    balanced_accuracy, baseline_balanced_accuracy : float
        Accuracy within each class, averaged over the classes.
    brier, baseline_brier : float
        Mean squared error of the probabilities, summed over the classes [1]_.
    auc : float
        Probability that a row of a class has a higher probability of it than a row of another class, averaged over the
        classes; NaN if not all rows were at hand.
    reliability : tuple of Bin
        Probability of the predicted class against the share of correct predictions, in ten bins of equal width; empty
        bins are left out.
    calibration_error : float
        Mean absolute difference of the two over the bins (expected calibration error).
    confusion : tuple of tuple of float
        Weight of every true class (rows) in every predicted one (columns).
    confusions : tuple
        The same for each fold, for up to twelve classes.
    lift : tuple of tuple of LiftLine
        Rows ranked by the probability of each class, for up to twelve classes.
    folds : list of dict
        Accuracy and log-loss of each fold.
    log_loss_spread : float
        Standard deviation of the log-loss over folds.

    References
    ----------
    .. [1] G. W. Brier (1950). "Verification of forecasts expressed in terms of probability". Monthly Weather Review 78
       (1), 1-3.
    """

    how: str
    n_rows: Amount
    accuracy: float
    log_loss: float
    baseline_accuracy: float
    baseline_log_loss: float
    folds: list[dict[str, int | float]] = field(default_factory=list)
    balanced_accuracy: float = float("nan")
    baseline_balanced_accuracy: float = float("nan")
    reliability: tuple[Bin, ...] = ()
    brier: float = float("nan")
    baseline_brier: float = float("nan")
    confusion: tuple[tuple[NotNegative, ...], ...] = ()
    auc: float = float("nan")
    confusions: tuple[tuple[tuple[NotNegative, ...], ...], ...] = ()
    lift: tuple[tuple[LiftLine, ...], ...] = ()

    def __repr__(self) -> str:
        figures = [f"{name} {own:.4g} (baseline {baseline:.4g})" for name, own, baseline in self._figures()]
        return f"<{type(self).__name__} of {self.n_rows:,.6g} rows: {', '.join(figures)}>"

    def _repr_html_(self) -> str:
        rows = [(name, f"{own:.4g}", f"{baseline:.4g}") for name, own, baseline in self._figures()]
        rows += [("AUC", f"{self.auc:.4g}", ""), ("calibration error", f"{self.calibration_error:.4g}", "")]
        table = small_table(("", "model", "baseline"), rows)
        return boxed(type(self).__name__, f"{self.how}, {self.n_rows:,.6g} rows", [table])

    def _figures(self) -> list[tuple[str, float, float]]:
        return [
            ("accuracy", self.accuracy, self.baseline_accuracy),
            ("log-loss", self.log_loss, self.baseline_log_loss),
            ("balanced accuracy", self.balanced_accuracy, self.baseline_balanced_accuracy),
            ("Brier score", self.brier, self.baseline_brier),
        ]

    @property
    def log_loss_spread(self) -> float:
        """The standard deviation of the log-loss over folds; NaN for a single fold."""
        losses = [fold["log_loss"] for fold in self.folds]
        return float(np.std(losses, ddof=1)) if len(losses) > 1 else float("nan")

    @property
    def calibration_error(self) -> float:
        return calibration_error(self.reliability) if self.reliability else float("nan")
