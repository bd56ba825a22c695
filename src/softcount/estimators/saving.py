"""Estimators in model files: the fitted model with the estimator's own settings beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from softcount.errors import ModelFileError
from softcount.estimators.bag_of_words import load_bag
from softcount.estimators.gaussian_mixture import GaussianMixture
from softcount.estimators.k_means import KMeans, SphericalKMeans
from softcount.estimators.mixture import Mixture
from softcount.estimators.naive_bayes import NaiveBayes
from softcount.families import FAMILIES, Family
from softcount.files.archive import read
from softcount.files.centres_part import centres_of, holds_centres, save_centres
from softcount.files.model_file import load_model, prior_document, prior_from, save_model
from softcount.files.plain_values import nested_document, nested_from
from softcount.files.vocabulary_part import holds_vocabulary
from softcount.fitted.fitted_model import Fitted

KNOWN: dict[str, Any] = {"NaiveBayes": NaiveBayes, "Mixture": Mixture, "GaussianMixture": GaussianMixture}
LEFT_OUT = ("n_jobs", "init", "weights_init", "means_init", "precisions_init", "random_state", "verbose")
"""Settings of the machine or the run, not of the model."""


def save_estimator(estimator: Any, path: Any) -> None:
    """Write an estimator's fitted model and settings."""
    settings = {
        name: DOCUMENTS[name](value) if name in DOCUMENTS else nested_document(value)
        for name, value in estimator.get_params(deep=False).items()
        if name not in LEFT_OUT
    }
    about = {"name": type(estimator).__name__, "settings": settings, "columns": _columns(estimator)}
    save_model(estimator.fitted_, path, about)


def _columns(estimator: Any) -> dict[str, Any]:
    names = getattr(estimator, "feature_names_in_", None)
    return {"n": int(estimator.n_features_in_), "names": None if names is None else [str(x) for x in names]}


CLUSTERING: dict[str, Any] = {"KMeans": KMeans, "SphericalKMeans": SphericalKMeans}


def save_kmeans(estimator: Any, path: Any) -> None:
    """Write an estimator's centres and settings."""
    settings = {
        name: nested_document(value) for name, value in estimator.get_params(deep=False).items() if name not in LEFT_OUT
    }
    about = {"name": type(estimator).__name__, "settings": settings, "columns": _columns(estimator)}
    save_centres(estimator.found_, path, about)


def load_kmeans(path: Any, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """The k-means estimator that was saved."""
    try:
        found, about = centres_of(document, arrays), document["estimator"]
        estimator = CLUSTERING[about["name"]](**about["settings"])
        estimator._check_settings()
        names, number = about["columns"]["names"], about["columns"]["n"]
        if number != found.centres.shape[1] or (names is not None and len(names) != number):
            raise ModelFileError("its estimator was fitted on other columns than its centres have.")
        if estimator.n_clusters != len(found.centres) or estimator._unit != found.frame.unit:
            raise ModelFileError("its settings are not those of its centres.")
        estimator._keep(found)
        estimator.n_features_in_ = number
        if names is not None:
            estimator.feature_names_in_ = np.array([str(name) for name in names], dtype=object)
        return estimator
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except Exception as error:
        raise ModelFileError(f"{path}: its centres make no sense ({type(error).__name__}: {error}).") from None


def kinds_document(kinds: Any) -> Any:
    """The user's kinds as JSON: family names with their own settings."""
    if kinds is None or isinstance(kinds, str):
        return kinds
    if isinstance(kinds, Family):
        own = {f.name: getattr(kinds, f.name) for f in fields(kinds)}  # type: ignore[arg-type]
        return {"family": kinds.name, "own": own}
    return {"columns": [[_column(key), kinds_document(said)] for key, said in dict(kinds).items()]}


def _column(key: Any) -> Any:
    if isinstance(key, tuple):
        return [_column(part) for part in key]
    return key.item() if isinstance(key, np.generic) else key


def kinds_from(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    if "columns" in value:
        return {tuple(k) if isinstance(k, list) else k: kinds_from(v) for k, v in value["columns"]}
    return FAMILIES[value["family"]](**{k: tuple(v) if isinstance(v, list) else v for k, v in value["own"].items()})


DOCUMENTS: dict[str, Callable[[Any], Any]] = {"prior": prior_document, "kinds": kinds_document}
READERS: dict[str, Callable[[Any], Any]] = {"prior": prior_from, "kinds": kinds_from, "fixed": nested_from}
"""How settings that JSON cannot hold as they are become documents, and come back."""


def load_estimator(path: Any) -> Any:
    """The estimator that was saved; a model saved without one gets the estimator that suits it."""
    content = read(path)
    if holds_centres(content[0]):
        return load_kmeans(path, *content)
    if holds_vocabulary(content[0]):
        return load_bag(path, *content)
    fitted, about = load_model(path, content)
    try:
        name = about.get("name", "Mixture" if fitted.classes is None else "NaiveBayes")
        if name not in KNOWN:
            raise ModelFileError(f"{path}: the estimator {name!r} is not known to this version.")
        settings = dict(about.get("settings", _settings_of(fitted)))
        settings |= {name: READERS[name](value) for name, value in settings.items() if name in READERS}
        estimator = KNOWN[name](**settings)
        estimator._check_settings()
        estimator._keep(fitted)
        _restore_columns(estimator, about.get("columns"), fitted)
        return estimator
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None
    except Exception as error:
        raise ModelFileError(f"{path}: its settings make no sense ({type(error).__name__}: {error}).") from None


def _settings_of(fitted: Fitted) -> dict[str, Any]:
    """The settings of a model that was saved without an estimator."""
    shared = {"prior": prior_document(fitted.prior), "estimate": fitted.estimate}
    return shared if fitted.classes is not None else shared | {"n_components": fitted.n_groups}


def _restore_columns(estimator: Any, columns: Any, fitted: Any) -> None:
    keys = [spec.key for spec in fitted.schema.fields]
    if columns is None:
        columns = {"n": len(keys), "names": keys if all(isinstance(k, str) for k in keys) else None}
    number, names = int(columns["n"]), columns["names"]
    if (not fitted.bag and number != len(keys)) or number < 0 or (names is not None and names != keys):
        raise ModelFileError("its estimator was fitted on other columns than its model has.")
    estimator.n_features_in_ = number
    if names is not None:
        estimator.feature_names_in_ = np.array(columns["names"], dtype=object)
