"""Densities in model files: their rows or bins with their settings, and back, trusting nothing that is read."""

from __future__ import annotations

from typing import Any

import numpy as np

import softcount
from softcount.errors import ModelFileError
from softcount.files.archive import Arrays, Document, naming, write
from softcount.files.json_document import key_of, nested_document

DENSITIES = ("KernelDensity", "Histogram")
"""The estimators that such a file may name."""


def save_density(estimator: Any, path: Any, arrays: Arrays, level: int | None = None) -> None:
    """Write what a density learned and the settings it has."""
    settings = {name: nested_document(value) for name, value in estimator.get_params(deep=False).items()}
    names = getattr(estimator, "feature_names_in_", None)
    about = {
        "name": type(estimator).__name__, "settings": settings, "columns": int(estimator.n_features_in_),
        "names": None if names is None else [str(name) for name in names],
        "plain": bool(estimator.plain_column_), "level": level,
    }  # fmt: skip
    write(path, {"density": about}, arrays)


def holds_density(document: Document) -> bool:
    """Whether a model file is one of a density."""
    return "density" in document


def load_density(path: Any, document: Document, arrays: Arrays) -> Any:
    """The density that was saved."""
    with naming(path, "its density makes no sense"):
        about = document["density"]
        if about["name"] not in DENSITIES:
            raise ModelFileError(f"the estimator {about['name']!r} is not known to this version.")
        estimator = getattr(softcount, about["name"])(**{key: key_of(said) for key, said in about["settings"].items()})
        columns, names = about["columns"], about["names"]
        if type(columns) is not int or columns < 1 or type(about["plain"]) is not bool:
            raise ModelFileError("what it says of its columns makes no sense.")
        if names is not None and (len(set(names)) != columns or not all(isinstance(name, str) for name in names)):
            raise ModelFileError("its columns have other names than columns can have.")
        estimator.n_features_in_, estimator.plain_column_ = columns, about["plain"]
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        estimator._restore(arrays, about["level"])
        return estimator


def finite(arrays: Arrays, name: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """An array of a file, if it holds finite numbers, and has this shape where one is said."""
    array = arrays[name]
    if array.dtype != np.float64 or not np.isfinite(array).all() or (shape is not None and array.shape != shape):
        raise ModelFileError(f"its {name} are not finite numbers, one for each place.")
    return array
