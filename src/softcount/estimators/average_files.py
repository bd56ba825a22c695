"""Averages in model files: every member as a file of its own inside, and the weights."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

import softcount
from softcount.errors import ModelFileError
from softcount.files.archive import Arrays, Document, read, write

MOST_MEMBERS = 1000


def save_average(average: Any, path: Any, mixture: Document | None = None) -> None:
    """Write the members and what they weigh; `mixture` is what to say of the estimator that has them, if one does."""
    about = {"by": average.by, "names": average.names_, "mixture": mixture}
    arrays: Arrays = {"weights": np.asarray(average.weights_, dtype=np.float64)}
    with tempfile.TemporaryDirectory() as folder:
        for place, model in enumerate(average.models_):
            own = os.path.join(folder, f"{place}.sc")
            model.save(own)
            with open(own, "rb") as file:
                arrays[f"member/{place}"] = np.frombuffer(file.read(), dtype=np.uint8)
    write(path, {"average": about}, arrays)


def holds_average(document: Document) -> bool:
    """Whether a model file is one of an average."""
    return "average" in document


def average_from(about: Any, arrays: Arrays, load: Callable[[str], Any]) -> Any:
    """The average from what a file says of it; members are looked at as files of their own are."""
    names, weights = about["names"], arrays["weights"]
    sound = isinstance(names, list) and 0 < len(names) <= MOST_MEMBERS and all(isinstance(x, str) for x in names)
    if not sound or len(set(names)) < len(names):
        raise ModelFileError("what it says of its members makes no sense.")
    summed = weights.dtype == np.float64 and weights.shape == (len(names),) and abs(weights.sum() - 1) < 1e-9
    if not summed or not (weights >= 0).all():
        raise ModelFileError("the weights of its members do not sum to one.")
    models = {name: _member(arrays[f"member/{place}"], load) for place, name in enumerate(names)}
    return softcount.ModelAverage(models, weights, about["by"])


def _member(content: np.ndarray, load: Callable[[str], Any]) -> Any:
    if content.dtype != np.uint8 or content.ndim != 1:
        raise ModelFileError("a member is no file.")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "member.sc")
        with open(path, "wb") as file:
            file.write(content.tobytes())
        if holds_average(read(path)[0]):
            raise ModelFileError("a member is itself an average.")
        return load(path)
