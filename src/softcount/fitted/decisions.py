"""From probabilities to decisions: costs of errors, changed class shares, and thresholds.

All functions start from (rows x classes) probabilities and the names of the classes, so they serve every classifier.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.core.lazy import softmax, sparse
from softcount.errors import DataError
from softcount.fitted.fitted import Fitted
from softcount.run.local import Threads

ESTIMATE = "estimate"
"""The value of `class_prior` that estimates the class shares from the rows themselves."""
NEAR_ONE = 1e-6
"""Tolerance of the sum of shares: one third written with six digits, three times."""
SETTLED, MOST_STEPS = 1e-10, 10_000
"""Change of the shares at which EM stops, and the maximum number of steps."""


def place_of(names: Sequence[Any], name: Any, what: str) -> int:
    """Return the index of a class; `what` begins the error message for an unknown class."""
    try:
        return list(names).index(name)
    except ValueError:
        known = ", ".join(map(repr, list(names)[:8]))
        raise DataError(f"{what}: there is no class {name!r}. The classes are: {known}.") from None


def cost_matrix(costs: Any, names: Sequence[Any]) -> np.ndarray:
    """Return (true class x decided class) costs from an array in the order of the classes or from names.

    By name, `costs` is {(true, decided): cost} or {true: {decided: cost}}. Other errors cost 1 and correct decisions 0.

    >>> cost_matrix({("ill", "well"): 10}, ["ill", "well"]).tolist()
    [[0.0, 10.0], [1.0, 0.0]]
    """
    if isinstance(costs, Mapping):
        whole = 1.0 - np.eye(len(names))
        pairs: dict[Any, Any] = {}
        for key, given in costs.items():
            named = isinstance(given, Mapping)
            pairs |= {(key, decided): cost for decided, cost in given.items()} if named else {key: given}
        for pair, cost in pairs.items():
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise DataError(f"costs: {pair!r} is not a pair (true class, decided class), as in {{('a', 'b'): 5}}.")
            place = tuple(place_of(names, name, "costs") for name in pair)
            whole[place] = _numbers(cost, f"the cost of {pair!r}")
    else:
        whole = _numbers(costs, "costs")
    if whole.shape != (len(names), len(names)):
        raise DataError(
            f"costs has the shape {whole.shape}, but there are {len(names)} classes: it takes a row for every true "
            f"class and a column for every class decided for, ({len(names)}, {len(names)})."
        )
    if not np.isfinite(whole).all():
        true, decided = (names[place] for place in np.argwhere(~np.isfinite(whole))[0])
        raise DataError(f"costs: deciding for {decided!r} where {true!r} is true must cost a finite number.")
    return whole


def _numbers(given: Any, what: str) -> np.ndarray:
    try:
        return np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"{what} must be numbers, not {given!r:.60}.") from None


def choose_cheapest(proba: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Return for every row the index of the class with the lowest expected cost.

    >>> choose_cheapest(np.array([[0.2, 0.8], [0.05, 0.95]]), np.array([[0, 10], [1, 0]])).tolist()
    [0, 1]
    """
    return np.asarray((proba @ costs).argmin(axis=1))


# -- class shares that differ from training


def read_shares(class_prior: Any, names: Sequence[Any], was: np.ndarray) -> np.ndarray:
    """Return shares in the order of the classes, from "uniform", a sequence, or a mapping of names.

    Classes that are not named share the remainder as in training.

    >>> read_shares({"rare": 0.1}, ["a", "b", "rare"], np.array([0.2, 0.6, 0.2])).round(3).tolist()
    [0.225, 0.675, 0.1]
    """
    if isinstance(class_prior, str) and class_prior == "uniform":
        return np.full(len(names), 1.0 / len(names))
    if isinstance(class_prior, str):
        raise DataError(f"class_prior={class_prior!r} is not known. Use shares by class, 'uniform' or 'estimate'.")
    named = isinstance(class_prior, Mapping)
    shares = _complete_shares(class_prior, names, was) if named else _numbers(class_prior, "class_prior")
    if shares.shape != (len(names),):
        raise DataError(f"class_prior takes {len(names)} shares, one for every class in the order of classes_.")
    if not (shares >= 0).all() or not abs(shares.sum() - 1.0) <= NEAR_ONE:
        listed = ", ".join(f"{share:.6g}" for share in shares[:8])
        raise DataError(
            f"class_prior: shares are 0 or more and sum to one, but these are {listed} (sum {shares.sum():.6g})."
        )
    return np.asarray(shares / shares.sum())


def _complete_shares(class_prior: Mapping[Any, Any], names: Sequence[Any], was: np.ndarray) -> np.ndarray:
    shares = np.full(len(names), np.nan)
    for name, share in class_prior.items():
        place = place_of(names, name, "class_prior")
        value = _numbers(share, f"the class_prior of {name!r}")
        if value.ndim or not 0 <= value <= 1:
            raise DataError(f"class_prior: the share of {name!r} is a number from 0 to 1, not {share!r}.")
        shares[place] = value
    rest = np.isnan(shares)
    left = 1.0 - shares[~rest].sum()
    if rest.any() and left < -NEAR_ONE:
        raise DataError(f"class_prior: the shares named sum to {1.0 - left:.6g}, which leaves nothing for the others.")
    whole = was[rest].sum()
    shares[rest] = max(left, 0.0) * (was[rest] / whole if whole > 0 else 1.0 / max(rest.sum(), 1))
    return shares


def apply_class_prior(logs: np.ndarray, class_prior: Any, names: Sequence[Any], was: np.ndarray) -> np.ndarray:
    """Return log-probabilities of the classes under other class shares.

    Each probability is multiplied by the ratio of new to old share, then normalised. With `class_prior="estimate"`, the
    new shares are estimated from these rows.

    >>> with np.printoptions(precision=4):
    ...     print(np.exp(apply_class_prior(np.log([[0.5, 0.5]]), [0.9, 0.1], "ab", np.array([0.5, 0.5]))))
    [[0.9 0.1]]
    """
    estimated = isinstance(class_prior, str) and class_prior == ESTIMATE
    now = estimate_shares(logs, was) if estimated else read_shares(class_prior, names, was)
    gone = (was <= 0) & (now > 0)
    if gone.any():
        raise DataError(
            f"class_prior: class {names[int(np.argmax(gone))]!r} had no share in training, so nothing is known of its "
            "rows."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = logs + np.where(was > 0, np.log(now) - np.log(was), -np.inf)
    peak = moved.max(axis=1, keepdims=True)
    if np.isneginf(peak).any():
        row = int(np.argmax(np.isneginf(peak[:, 0]))) + 1
        raise DataError(f"class_prior: row {row} can only be of a class whose share is 0 now. Give it some share.")
    moved -= peak
    return np.asarray(moved - np.log(np.exp(moved).sum(axis=1, keepdims=True)))


def estimate_shares(logs: np.ndarray, was: np.ndarray) -> np.ndarray:
    """Return the class shares of maximum posterior probability in unlabelled rows, by EM.

    One prior row has the shares of training, so that a small table does not leave a class with share 0.

    >>> rows = np.log([[0.9, 0.1]] * 8 + [[0.1, 0.9]] * 2)
    >>> estimate_shares(rows, np.array([0.5, 0.5])).round(2).tolist()
    [0.81, 0.19]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.where(was > 0, logs - np.log(was), -np.inf)
    ratio = np.exp(odds - odds.max(axis=1, keepdims=True, initial=-1e300))
    shares = was
    for _ in range(MOST_STEPS):
        moved = _step(ratio, was, shares)
        if np.abs(moved - shares).max() < SETTLED:
            break
        shares = _extrapolate(ratio, was, shares, moved)
    return np.asarray(moved / moved.sum())


def _step(ratio: np.ndarray, was: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the shares after one EM step: the mean of the rows' posteriors and the prior row."""
    counts = shares * ((1.0 / (ratio @ shares)) @ ratio)
    return np.asarray((counts + was) / (len(ratio) + 1.0))


def _extrapolate(ratio: np.ndarray, was: np.ndarray, shares: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Return the shares after two EM steps, extrapolated (Varadhan and Roland) if they stay positive.

    The likelihood is concave, so EM reaches the maximum from any interior point. Without extrapolation, overlapping
    classes took a thousand steps.
    """
    further = _step(ratio, was, moved)
    first, bend = moved - shares, further - moved - (moved - shares)
    if not np.linalg.norm(bend) > 0:
        return further
    far = -np.linalg.norm(first) / np.linalg.norm(bend)
    leap = shares - 2.0 * far * first + far**2 * bend
    inside = far < -1.0 and bool((leap[was > 0] > 0).all())
    return np.asarray(leap / leap.sum()) if inside else further


# -- thresholds


class Threshold(Struct, frozen=True):
    """The probability from which a row is assigned to a class, and the effect on held-out rows.

    Attributes
    ----------
    of : object
        The class.
    value : float
        The probability.
    wanted : str
        The required precision or recall.
    precision : float
        Share of correct rows among those assigned to the class.
    recall : float
        Share of the class that is found.
    called : float
        Share of all rows that are assigned to the class.
    checked_precision, checked_recall : float
        The same if each fold is assigned by the threshold chosen on the other folds.
    usual_precision, usual_recall : float
        The same if every row is assigned to its most probable class.
    rows : int
        Number of held-out rows.
    """

    of: Any
    value: float
    wanted: str
    precision: float
    recall: float
    called: float
    checked_precision: float
    checked_recall: float
    usual_precision: float
    usual_recall: float
    rows: int

    def __str__(self) -> str:
        return (
            f"{self.of!r} if its probability is at least {self.value:.4g} ({self.wanted}): "
            f"precision {self.precision:.3f}, recall {self.recall:.3f}, "
            f"{100 * self.called:.1f} % of {self.rows:,} held-out rows get this class; "
            f"thresholds chosen on the other folds: precision {self.checked_precision:.3f}, "
            f"recall {self.checked_recall:.3f}; most probable class: precision {self.usual_precision:.3f}, "
            f"recall {self.usual_recall:.3f}"
        )


def apply_threshold(proba: np.ndarray, place: int, value: float) -> np.ndarray:
    """Return the class at `place` if its probability reaches the value, else the most probable other class.

    >>> apply_threshold(np.array([[0.3, 0.4, 0.3], [0.6, 0.1, 0.3]]), 0, 0.3).tolist()
    [0, 0]
    >>> apply_threshold(np.eye(1), 0, 1.0).tolist()
    [0]
    """
    others = proba.copy()
    others[:, place] = -1.0
    return np.where(proba[:, place] >= value, place, others.argmax(axis=1))


class Decision(Struct, frozen=True):
    """A rule that chooses a class from probabilities: the most probable, the cheapest, or by a threshold."""

    costs: np.ndarray | None = None
    threshold: tuple[int, float] | None = None

    @classmethod
    def of(cls, names: Sequence[Any], costs: Any = None, threshold: Any = None) -> Decision:
        if costs is not None and threshold is not None:
            raise DataError("costs and threshold are two rules for the same decision. Give only one of them.")
        if threshold is None:
            return cls(None if costs is None else cost_matrix(costs, names))
        given = {threshold.of: threshold.value} if isinstance(threshold, Threshold) else threshold
        if not isinstance(given, Mapping) or len(given) != 1:
            raise DataError(f"threshold is one class and its probability, as in {{'yes': 0.3}}, not {threshold!r:.60}.")
        (name, value), *_ = given.items()
        at = _numbers(value, f"the threshold of {name!r}")
        if at.ndim or not 0 <= at <= 1:
            raise DataError(f"threshold: the probability of {name!r} is a number from 0 to 1, not {value!r}.")
        return cls(threshold=(place_of(names, name, "threshold"), float(at)))

    def __call__(self, proba: np.ndarray) -> np.ndarray:
        """Return the index of the class of every row."""
        if not len(proba):
            return np.zeros(0, dtype=np.int64)
        if self.costs is not None:
            return choose_cheapest(proba, self.costs)
        return np.asarray(proba.argmax(axis=1)) if self.threshold is None else apply_threshold(proba, *self.threshold)


# The Bayes error if the model is true: rows are drawn from the model and classified with it.

AT_ONCE = 16_384


class BestError(Struct, frozen=True):
    """Bayes error if the model is true: the error rate of the best possible rule.

    Attributes
    ----------
    error : float
        Estimate of the error rate.
    standard_error : float
        Its standard error.
    rows : int
        Number of rows that were drawn.
    """

    error: float
    standard_error: float
    rows: int

    def __str__(self) -> str:
        return f"{self.error:.5f} (standard error {self.standard_error:.2g}, {self.rows:,} rows drawn)"

    @classmethod
    def of(cls, parts: Iterable[np.ndarray]) -> BestError:
        """Estimate the error from the class probabilities of drawn rows.

        The mean of one minus the largest probability varies far less than the share of errors.
        """
        left = np.concatenate([1.0 - proba.max(axis=1) for proba in parts])
        return cls(float(left.mean()), float(left.std() / np.sqrt(len(left))), len(left))


def estimate_best_error(fitted: Fitted, n: int, rng: np.random.Generator) -> BestError:
    """Estimate the Bayes error from n rows drawn from a model of known classes, without calibration."""
    parts = []
    with Threads() as threads:
        for start in range(0, n, AT_ONCE):
            columns, _ = fitted.condition(None).draw_columns(min(AT_ONCE, n - start), rng)
            data: Any = sparse.csr_matrix(np.stack(list(columns.values()), axis=1)) if fitted.bag else columns
            parts.append(softmax(fitted.log_joint(fitted.table(data), threads), axis=1))
    return BestError.of(parts)
