"""Naive Bayes whose columns depend on each other as well: the same questions, asked of a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softcount.errors import DataError
from softcount.estimators.asked_instead import handing_on

if TYPE_CHECKING:
    from softcount.estimators.bayes_net import BayesNet
    from softcount.fitted.fitted_net import FittedNet

DEPENDENCE = (None, "tan")
ASKED = (
    "score_samples", "explain", "sample", "query", "impute", "anomalies", "anomaly_score",
)  # fmt: skip
"""What a network answers by the same name."""
NOT_ASKED = (
    "to_linear",
    "to_quadratic",
    "calibrate",
    "augment",
    "membership_entropy",
    "marking_words",
    "explain_words",
)
"""What only independent columns can say."""

with_dependence = handing_on(
    "network_", ASKED, NOT_ASKED, "for columns that are independent given the class: dependence=None."
)
"""A class decorator: with `dependence` the methods above ask `network_`, or are refused."""


def check_dependence(estimator: Any) -> None:
    """Refuse what is no word for dependence, and what does not go with it."""
    if estimator.dependence not in DEPENDENCE:
        raise DataError(f"dependence={estimator.dependence!r} is not known. Use None or 'tan'.")
    if estimator.dependence is not None and (estimator.calibration is not None or estimator.class_prior is not None):
        raise DataError(f"dependence={estimator.dependence!r} goes with neither calibration nor class_prior yet.")
    if estimator.dependence is not None and estimator.unlabelled_weight not in (None, 1):
        raise DataError(f"dependence={estimator.dependence!r} takes no unlabelled_weight; give rows a sample_weight.")


def network_like(estimator: Any) -> BayesNet:
    """A network with an estimator's settings, not yet fitted; a prior nobody set is that of `BayesNet.tan`."""
    from softcount.estimators.bayes_net import BayesNet  # only who asks for dependence pays for loading it

    prior = "row" if estimator.prior == 1.0 else estimator.prior
    return BayesNet(
        estimator.dependence, prior=prior, estimate=estimator.estimate, kinds=estimator.kinds, tol=estimator.tol,
        max_iter=estimator.max_iter, missing=estimator.missing, n_jobs=estimator.n_jobs,
    )  # fmt: skip


def keep_network(estimator: Any, net: BayesNet) -> None:
    """The estimator with what a network has learned."""
    estimator.network_, estimator.fitted_, estimator.classes_ = net, net.fitted_, net.classes_
    for name in ("n_features_in_", "feature_names_in_", "_library"):
        if hasattr(net, name):
            setattr(estimator, name, getattr(net, name))


def keep_loaded(estimator: Any, fitted: FittedNet) -> None:
    """The estimator with a network that was read from a file."""
    net = network_like(estimator)
    net._keep(fitted)
    keep_network(estimator, net)
