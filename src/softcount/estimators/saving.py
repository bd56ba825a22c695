"""Estimators in model files: name, settings and columns, and the parts that every estimator writes and reads itself.

A setting is written if its parameter is declared as saved. Plain values are JSON; mappings, tuples, families and priors
are objects that name what they are.
"""

from __future__ import annotations

import os
import tempfile
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Struct

import softcount
from softcount.core.lazy import LazyModule
from softcount.core.ranges import Floats
from softcount.errors import ModelFileError
from softcount.files.archive import naming, read, write
from softcount.files.codec import Arrays, Document, decode, encode
from softcount.files.model_file import decode_value, encode_value, load_model

averages: Any = LazyModule("softcount.estimators.average")  # which imports this module

PARTS = {
    "centres": ("KMeans", "SphericalKMeans"),
    "vocabulary": ("BagOfWords",),
    "density": ("KernelDensity", "Histogram"),
    "chain": ("MarkovChain",),
}
"""The estimators that a file with such a part may name: public ones, never a class to import."""
MODELS = ("NaiveBayes", "Classifier", "AODE", "Mixture", "GaussianMixture", "BayesNet", "HiddenMarkov", "JointModel")
"""Estimators that a file with the model of a table or of sequences may name."""
ONE_MODEL = ("AODE", "BayesNet", "HiddenMarkov", "JointModel")
"""Estimators with a kind of model that no other has."""
MOST_MEMBERS = 1000


class SavedColumns(Struct, frozen=True, forbid_unknown_fields=True):
    """The columns that an estimator was fitted on."""

    n: int
    names: tuple[str, ...] | None


class SavedEstimator(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An estimator in a model file, besides what it learned."""

    name: str
    settings: dict[str, Any]
    columns: SavedColumns | None = None


def save_estimator(estimator: Any, path: Any) -> None:
    """Write what an estimator learned, and its settings."""
    arrays: Arrays = {}
    parts = estimator._parts(arrays)
    saved = [name for name, declared in estimator._declared.items() if declared.saved]
    settings = {name: encode_value(getattr(estimator, name)) for name in saved}
    columns = None
    if hasattr(estimator, "n_features_in_"):
        names = getattr(estimator, "feature_names_in_", None)
        columns = SavedColumns(int(estimator.n_features_in_), None if names is None else tuple(map(str, names)))
    about = msgspec.to_builtins(SavedEstimator(type(estimator).__name__, settings, columns))
    write(path, parts | {"estimator": about}, arrays)


def load_estimator(path: Any) -> Any:
    """The estimator that was saved; a model that the command line saved gets the estimator that suits it.

    A model without an estimator is returned as it is.
    """
    document, arrays = read(path)
    if "average" in document:
        return load_average(path, document, arrays)
    part = next((part for part in PARTS if part in document), None)
    learned = load_model(path, document, arrays) if part is None else None
    if learned is not None and learned.suitable_estimator() is None:
        return learned
    with naming(path, "its settings make no sense"):
        usual = None if learned is None else suitable_estimator(learned)
        keys = [] if usual is None else [spec.key for spec in usual.fitted_.schema.fields]
        if usual is not None and not document["estimator"]:
            named = all(isinstance(key, str) for key in keys)
            return _with_columns(usual, SavedColumns(len(keys), tuple(keys) if named else None))
        about = msgspec.convert(document["estimator"], SavedEstimator)
        if about.name not in (MODELS if part is None else PARTS[part]):
            raise ModelFileError(f"the estimator {about.name!r} is not known to this version.")
        settings = {name: decode_value(value) for name, value in about.settings.items()}
        estimator = _with_columns(getattr(softcount, about.name)(**settings), about.columns)
        estimator._check_settings()
        if usual is None:
            estimator._restore(document, arrays)
            return estimator
        if {type(usual).__name__, about.name} & {*ONE_MODEL} and type(usual) is not type(estimator):
            raise ModelFileError(f"the estimator {about.name!r} is not one for this model.")
        fitted, names = usual.fitted_, getattr(estimator, "feature_names_in_", keys)
        if list(names) != keys or (estimator.n_features_in_ != len(keys) and not getattr(fitted, "bag", False)):
            raise ModelFileError("its estimator was fitted on other columns than its model has.")
        estimator._keep(fitted)
        return estimator


def _with_columns(estimator: Any, columns: SavedColumns | None) -> Any:
    """The estimator with the columns it was fitted on."""
    if columns is None:
        return estimator
    if columns.n < 0 or (columns.names is not None and len(set(columns.names)) != columns.n):
        raise ModelFileError("its columns have other names than columns can have.")
    estimator.n_features_in_ = columns.n
    if columns.names is not None:
        estimator.feature_names_in_ = np.array(columns.names, dtype=object)
    return estimator


def suitable_estimator(fitted: Any) -> Any:
    """The estimator of a model from a file, with the settings that follow from the model."""
    name, settings = fitted.suitable_estimator()
    estimator = getattr(softcount, name)(**settings)
    estimator._keep(fitted)
    return estimator


# -- averages: every member is a file of its own inside


class SavedAverage(Struct, frozen=True):
    """The members of an average, each the bytes of a model file."""

    by: str
    names: tuple[str, ...]
    weights: Annotated[np.ndarray, Floats(("names",), least=0.0)]
    members: list[np.ndarray]


def save_average(average: Any, path: Any) -> None:
    """Write the members and their weights."""
    members: list[Any] = []
    arrays: Arrays = {}
    with tempfile.TemporaryDirectory() as folder:
        for place, model in enumerate(average.models_):
            own = os.path.join(folder, f"{place}.sc")
            model.save(own)
            members.append(np.fromfile(own, dtype=np.uint8))
    about = SavedAverage(average.by, tuple(average.names_), np.asarray(average.weights_, dtype=np.float64), members)
    write(path, {"average": encode(about, arrays, "average")}, arrays)


def load_average(path: Any, document: Document, arrays: Arrays) -> Any:
    """The average that was saved; members are checked as files of their own."""
    with naming(path, "its average makes no sense"), tempfile.TemporaryDirectory() as folder:
        about = decode(SavedAverage, document["average"], arrays, "average", "its average", sizes={})
        if not 0 < len(about.names) == len(about.members) == len(set(about.names)) <= MOST_MEMBERS:
            raise ModelFileError("its members have no names, or one of them twice.")
        if abs(about.weights.sum() - 1) >= 1e-9:
            raise ModelFileError("the weights of its members do not sum to one.")
        models = {}
        for name, content in zip(about.names, about.members, strict=True):
            if content.dtype != np.uint8 or content.ndim != 1:
                raise ModelFileError("a member is no file.")
            member = os.path.join(folder, "member.sc")
            content.tofile(member)
            if "average" in read(member)[0]:
                raise ModelFileError("a member is itself an average.")
            models[name] = load_estimator(member)
        return averages.ModelAverage(models, about.weights, about.by)
