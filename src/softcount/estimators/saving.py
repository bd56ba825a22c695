"""Estimators in model files: the fitted model with the estimator's own settings beside it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from softcount.errors import ModelFileError
from softcount.estimators.mixture import Mixture
from softcount.estimators.naive_bayes import NaiveBayes
from softcount.families import FAMILIES, Family
from softcount.files.model import load_model, prior_document, prior_from, save_model

KNOWN: dict[str, Any] = {"NaiveBayes": NaiveBayes, "Mixture": Mixture}
LEFT_OUT = ("n_jobs", "init", "random_state")
"""Settings of the machine or the run, not of the model."""


def save_estimator(estimator: Any, path: Any) -> None:
    """Write an estimator's fitted model and settings."""
    settings = {name: value for name, value in estimator.get_params(deep=False).items() if name not in LEFT_OUT}
    settings["prior"] = prior_document(settings["prior"])
    settings["kinds"] = kinds_document(settings["kinds"])
    for name in ("class_prior", "missing"):
        if isinstance(settings.get(name), (tuple, np.ndarray)):
            settings[name] = np.asarray(settings[name]).tolist()
    about = {"name": type(estimator).__name__, "settings": settings, "columns": _columns(estimator)}
    save_model(estimator.fitted_, path, about)


def _columns(estimator: Any) -> dict[str, Any]:
    names = getattr(estimator, "feature_names_in_", None)
    return {"n": int(estimator.n_features_in_), "names": None if names is None else [str(x) for x in names]}


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


def load_estimator(path: Any) -> Any:
    """The estimator that was saved; a model saved without one gets the estimator that suits it."""
    fitted, about = load_model(path)
    try:
        name = about.get("name", "Mixture" if fitted.classes is None else "NaiveBayes")
        if name not in KNOWN:
            raise ModelFileError(f"{path}: the estimator {name!r} is not known to this version.")
        settings = dict(about.get("settings", {"prior": prior_document(fitted.prior), "estimate": fitted.estimate}))
        settings["prior"] = prior_from(settings["prior"])
        settings["kinds"] = kinds_from(settings.get("kinds"))
        estimator = KNOWN[name](**settings)
        if isinstance(estimator, NaiveBayes):
            estimator._keep(fitted)
        else:
            estimator.fitted_ = fitted
        _restore_columns(estimator, about.get("columns"), fitted)
        return estimator
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None
    except Exception as error:
        raise ModelFileError(f"{path}: its settings make no sense ({type(error).__name__}: {error}).") from None


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
