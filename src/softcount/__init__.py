"""Softcount: generative models by counting.

A table in, a probabilistic model out: naive Bayes when classes are known, AutoClass-style classes when they are not.
Names are loaded when first used, so that `import softcount` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "NaiveBayes": "softcount.estimators.naive_bayes",
    "Mixture": "softcount.estimators.mixture",
    "GaussianMixture": "softcount.estimators.gaussian_mixture",
    "KMeans": "softcount.estimators.k_means",
    "SphericalKMeans": "softcount.estimators.k_means",
    "BagOfWords": "softcount.estimators.bag_of_words",
    "Bernoulli": "softcount.families",
    "Binomial": "softcount.families",
    "Categorical": "softcount.families",
    "GammaFamily": "softcount.families",
    "LogNormal": "softcount.families",
    "Multinomial": "softcount.families",
    "Multinormal": "softcount.families",
    "Normal": "softcount.families",
    "Poisson": "softcount.families",
    "Student": "softcount.families",
    "Text": "softcount.families",
    "Beta": "softcount.priors",
    "Dirichlet": "softcount.priors",
    "Expert": "softcount.priors",
    "Gamma": "softcount.priors",
    "NormalInverseChi2": "softcount.priors",
    "NormalInverseWishart": "softcount.priors",
    "NormalKnownVariance": "softcount.priors",
    "Older": "softcount.models.align",
    "Counts": "softcount.counts",
    "Table": "softcount.table",
    "DataError": "softcount.errors",
    "DataWarning": "softcount.errors",
    "ModelFileError": "softcount.errors",
    "SoftcountError": "softcount.errors",
}

__all__ = ["__version__", "load", "read", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'softcount' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


def read(path: Any, **how: Any) -> Any:
    """A table from a file or anything tabular, encoded once and accepted wherever X is."""
    from softcount.table import open_table

    return open_table(path, **how)


def load(path: Any) -> Any:
    """The model that `save` wrote, as the estimator it was."""
    from softcount.estimators.saving import load_estimator

    return load_estimator(path)
