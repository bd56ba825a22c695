"""Answers for rows that an engine has: given where the rows are, a partition at a time, when they are asked for.

What travels is the model, some kilobytes. The form of the answer is found here, by asking for one row made up.
"""

from __future__ import annotations

import io
import pickle
import threading
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.errors import DataError, warn
from softcount.estimators.result_frames import arrow_table
from softcount.run.local import one_blas_thread
from softcount.table.schema import labels

NAMED = {
    "predict": "predicted", "score_samples": "log_density", "anomaly_score": "anomaly", "cdf": "cdf",
}  # fmt: skip
"""What a column of answers is called: as the shell calls it, and queries that were exported."""
PER_CLASS = {"predict_proba": "p({})", "predict_log_proba": "log p({})"}
"""The same of answers with a column for each class."""
PLACES = ("row",)
"""Columns of an answer that number its rows, which those of an engine have no numbers for."""
ENGINE_CLASSES = ("distributed", "dask", "pyspark")


class Question(Struct, frozen=True):
    """A method of a model, and what else it was called with: small, and sent to whoever has rows."""

    model: bytes
    method: str
    how: tuple[Any, ...]
    named: dict[str, Any]

    @classmethod
    def of(cls, model: Any, method: str, how: Sequence[Any], named: Mapping[str, Any]) -> Question:
        """The question, unless its answer for a row depends on the others."""
        if any(isinstance(said, str) and said == "estimate" for said in (*how, *named.values())):
            raise DataError(
                'prior="estimate" learns from all rows at once, and an engine asks them part by part. '
                "Give the shares that estimate_prior finds in some of them."
            )
        return cls(_pickled(model), method, tuple(how), dict(named))

    @property
    def fills(self) -> bool:
        """Whether the answer is the rows themselves, with their holes filled."""
        return self.method == "impute"

    def asked(self, rows: Any) -> Any:
        """The answer of some rows."""
        with one_blas_thread():
            return getattr(_model(self.model, threading.get_ident()), self.method)(rows, *self.how, **self.named)

    def tried(self, rows: Any) -> Any:
        """The answer of a row made up, which is of no interest but for its form; columns that lack are told of."""
        with warnings.catch_warnings(record=True) as met:
            warnings.simplefilter("always")
            found = self.asked(rows)
        said = [part for warning in met for part in str(warning.message).rstrip(".").split("; ")]
        for part in dict.fromkeys(part for part in said if part.startswith("not in the table")):
            warn(f"{part}.")
        return found

    def names(self, width: int) -> list[str]:
        """What the columns of an answer are called that is an array."""
        model = _model(self.model, threading.get_ident())
        if self.method in PER_CLASS:
            called = labels(_classes(model, self.named.get("of", *self.how[:1]) if _has_nodes(model) else None))
            return [PER_CLASS[self.method].format(name) for name in called.values()]
        if hasattr(model, "get_feature_names_out") and self.method == "transform":
            return [str(name) for name in model.get_feature_names_out()]
        name = NAMED.get(self.method, self.method)
        return [name] if width == 1 else [f"{name}_{place}" for place in range(width)]

    def columns(self, answer: Any) -> dict[str, Any]:
        """The columns of an answer by name, whether it came as an array or as an Arrow table."""
        if not isinstance(answer, np.ndarray):
            return {name: answer[name] for name in answer.column_names if name not in PLACES}
        cells = answer[:, None] if answer.ndim == 1 else answer
        table = arrow_table(dict(zip(self.names(cells.shape[1]), cells.T, strict=True)))
        return {name: table[name] for name in table.column_names}


def _has_nodes(model: Any) -> bool:
    """Whether any node of the model can be asked for, not the classes alone."""
    return hasattr(type(model), "edges_") or hasattr(type(model), "edge_probabilities_")


def _classes(model: Any, of: Any) -> list[Any]:
    """What the columns of probabilities are of."""
    if hasattr(type(model), "models_"):
        return _classes(model.models_[0], of)
    if not _has_nodes(model):
        return list(model.fitted_.names)
    fitted = model._fitted
    return list(fitted.levels[fitted.target if of is None else of])


# -- models on their way


class _ModelPickler(pickle.Pickler):
    """Pickles a model without the client or session that it was fitted by."""

    def persistent_id(self, obj: Any) -> str | None:
        return "engine" if type(obj).__module__.partition(".")[0] in ENGINE_CLASSES else None


class _ModelUnpickler(pickle.Unpickler):
    def persistent_load(self, pid: Any) -> None:
        return None


def _pickled(model: Any) -> bytes:
    sink = io.BytesIO()
    _ModelPickler(sink).dump(model)
    return sink.getvalue()


@lru_cache(maxsize=16)
def _model(content: bytes, thread: int) -> Any:
    """The model, which works on one thread: the engine has others for other parts. Each of its threads has its own."""
    model = _ModelUnpickler(io.BytesIO(content)).load()
    for each in (model, *getattr(model, "models_", ())):
        if hasattr(each, "n_jobs"):
            each.n_jobs = 1
    return model
