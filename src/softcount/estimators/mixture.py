"""Mixtures over any table: classes nobody named, found by EM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils import ClassifierTags

from softcount.errors import DataError
from softcount.estimators.base import FittedEstimator
from softcount.estimators.inputs import checked, refuse_fraction, remember_columns, weights_of, without_zeros
from softcount.estimators.naive_bayes import prior_levels
from softcount.learn.em import Stop
from softcount.learn.groups import Starts, fit_groups
from softcount.learn.start import start_levels
from softcount.models.fitted import Fitted
from softcount.run.threads import Threads
from softcount.table import check_weights, open_table
from softcount.table.schema import Kind


class Mixture(DensityMixin, FittedEstimator):
    """Classes nobody named (AutoClass, latent classes): columns of any kind, independent given the class.

    Several starts are climbed by EM and the best kept; `notes_` and `agreed_` say how many reached it. Components
    are reported largest first. `init` is "k-means++", "random", memberships (rows x groups), a fitted model, or
    parameters in the shape of `params_` with "weights" beside them.
    """

    def __init__(
        self,
        n_components: int = 2,
        kinds: Any = None,
        prior: Any = "row",
        estimate: str = "mean",
        init: Any = "k-means++",
        n_init: int = 10,
        max_iter: int = 1000,
        tol: float = 1e-8,
        accelerate: bool = True,
        missing: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kinds = kinds
        self.prior = prior
        self.estimate = estimate
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.accelerate = accelerate
        self.missing = missing
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Mixture:
        """Find the classes. `y` is not used."""
        self._check_settings()
        data = checked(self, X, reset=True)
        weights = weights_of(sample_weight, data)
        start = self._start()
        per_row = isinstance(start, np.ndarray) and weights is not None and start.shape[:1] == weights.shape
        data, weights, kept = without_zeros(data, weights, start if per_row else None)
        plan = self._plan(Stop(self.max_iter, self.tol, self.accelerate))
        levels = start_levels(self.init) | prior_levels(self.prior)
        forced = {key: Kind.CATEGORICAL for key in levels} | self._forced(plan.wishes, data)
        table = open_table(data, kinds=forced, levels=levels, missing=self._missing(), weights=weights)
        remember_columns(self, table, X)
        starts = Starts(self.n_components, kept if per_row else start, self.n_init, self.random_state)
        with Threads(self.n_jobs) as threads:
            self.fitted_ = fit_groups(table, plan, starts, threads)
        return self

    def _start(self) -> Any:
        """Where to start from: a word, parameters, a fitted model, or memberships as an array."""
        init = getattr(self.init, "fitted_", self.init)
        if isinstance(init, (str, Mapping, Fitted)):
            return init
        try:
            return np.asarray(init, dtype=float)
        except (TypeError, ValueError):
            raise DataError(
                f"init={init!r} is not known. Use 'k-means++', 'random', memberships, parameters or a model."
            ) from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn asks whatever has predict_proba whether it tells several y apart; these classes are our own.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    def _check_settings(self) -> None:
        refuse_fraction("n_components", self.n_components, 1)
        refuse_fraction("n_init", self.n_init, 1)
        super()._check_settings()

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class of each row, numbered from 0."""
        return self._answer(X, "proba").argmax(axis=1)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Find the classes and say which each row is in."""
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-density per row."""
        scores = self.score_samples(X)
        return float(np.average(scores, weights=_checked_weights(sample_weight, len(scores))))

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Bayesian information criterion: smaller is better."""
        scores = self.score_samples(X)
        weights = _checked_weights(sample_weight, len(scores))
        return float(-2 * (weights @ scores) + self.n_parameters_ * np.log(weights.sum()))

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        """Integrated completed likelihood: BIC plus twice the memberships' entropy; smaller is better."""
        log_members = self.predict_log_proba(X)
        with np.errstate(invalid="ignore"):
            entropy = -np.nan_to_num(np.exp(log_members) * log_members).sum(axis=1)
        weights = _checked_weights(sample_weight, len(entropy))
        return self.bic(X, sample_weight) + 2 * float(weights @ entropy)

    @property
    def weights_(self) -> np.ndarray:
        return self.fitted_.shares

    @property
    def log_likelihood_(self) -> float | None:
        return self.fitted_.log_likelihood

    @property
    def trace_(self) -> list[float]:
        return self.fitted_.trace

    @property
    def objective_(self) -> str:
        """Which objective `trace_` shows, in words."""
        return self.fitted_.objective

    @property
    def n_iter_(self) -> int:
        return self.fitted_.n_iter

    @property
    def converged_(self) -> bool:
        return self.fitted_.converged

    @property
    def agreed_(self) -> tuple[int, int] | None:
        """How many starts reached the best optimum, of how many."""
        return self.fitted_.agreed


def _checked_weights(sample_weight: Any, rows: int) -> np.ndarray:
    return np.ones(rows) if sample_weight is None else check_weights(sample_weight, rows)
