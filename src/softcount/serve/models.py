"""Served models: their columns as tensors, and their answers."""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import to_builtins

import softcount
from softcount.core import remedies
from softcount.errors import DataError, ModelFileError
from softcount.estimators.inputs import describe_unseen
from softcount.estimators.k_means import KMeans
from softcount.fitted.fitted import fitted_table
from softcount.run.local import Runner
from softcount.serve.protocol import MOST_CELLS, InferRequest, InferResponse, Refused, Tensor, clip
from softcount.sources import wording
from softcount.table import Table
from softcount.table.cell_forms import parse_cell
from softcount.table.schema import DASHES, Field, Kind, labels

LABEL, PROBABILITIES, CLASSES = "label", "probabilities", "classes"
PLAIN = {bool: "BOOL", int: "INT64", float: "FP64"}


class ServedModel(ABC):
    """A model behind HTTP. Requests do not change it, so that many can be answered in parallel."""

    example: float | None = None
    """A cell that every column can hold."""
    inputs: list[Tensor]
    outputs: list[Tensor]

    @abstractmethod
    def infer(self, request: InferRequest, runner: Runner) -> InferResponse:
        """The predictions for the rows."""

    def explain(self, request: InferRequest, runner: Runner) -> InferResponse:
        """The reasons for the predictions."""
        raise Refused(400, "k-means has no explanations, only predictions.")

    def refuse_large(self, request: InferRequest) -> None:
        """Raise an error if the rows have too many cells as the model reads them, or as it answers."""
        answered = sum(math.prod(size for size in x.shape if size >= 0) for x in self.outputs if x.shape[0] < 0)
        width = max(len(request.cells), len(self.inputs), answered)
        if request.n_rows * width > MOST_CELLS:
            raise Refused(
                413,
                f"{request.n_rows:,} rows of up to {width:,} cells each are more than {MOST_CELLS:,} cells. "
                f"Send at most {max(1, MOST_CELLS // width):,} rows at a time.",
            )

    def metadata(self, name: str) -> dict[str, Any]:
        sides = to_builtins({"inputs": self.inputs, "outputs": self.outputs})
        return {"name": name, "platform": "softcount", **sides}

    def warm(self, runner: Runner) -> None:
        """Answer once, so that the first request does not wait for loading and compiling."""
        self.infer(InferRequest({tensor.name: [self.example] for tensor in self.inputs}, 1), runner)

    def _refuse_unknown(self, request: InferRequest, known: Collection[str]) -> None:
        for name in request.cells:
            if name not in known:
                hint = remedies.similar(name, known, f"It has {wording.and_others(known)}.", any_case=True)
                raise DataError(f"the model has no column {wording.cell(name)}. {hint}")


class ServedClasses(ServedModel):
    """A model of known or hidden classes, or a network with a class: the probability of each class."""

    def __init__(self, fitted: Any) -> None:
        self.fitted = fitted
        # A network keeps what it built for a question, so it answers one at a time.
        self.lock: AbstractContextManager[Any] = threading.Lock() if fitted.caches_answers else nullcontext()
        self.names = labels(spec.key for spec in fitted.schema.fields)
        target = set() if fitted.target is None else {str(fitted.target)}
        self.fields = {name: fitted.schema[key] for key, name in self.names.items()}
        self.known = [*self.fields, *(target - set(self.fields))]  # a request may contain the target column
        used = [(name, spec) for name, spec in self.fields.items() if spec.used and name not in target]
        self.inputs = []
        for name, spec in used:
            text = spec.kind is Kind.TEXT
            datatype = "FP64" if spec.kind.numeric else "BYTES" if text else find_datatype(spec.levels)
            self.inputs.append(Tensor(name, datatype))
        self.groups = list(fitted.names)
        self.outputs = [tensor for tensor, _ in self._tensors(np.zeros(0, int), np.zeros((0, len(self.groups))))]

    def infer(self, request: InferRequest, runner: Runner) -> InferResponse:
        table = self._table(request)
        with self.lock:
            proba = self.fitted.proba(table, runner)
        return InferResponse(self._tensors(proba.argmax(axis=1), proba), self._note(request, table))

    def _tensors(self, chosen: np.ndarray, proba: np.ndarray) -> list[tuple[Tensor, Sequence[Any]]]:
        datatype, number = find_datatype(self.groups), len(self.groups)
        return [
            (Tensor(LABEL, datatype), self._class_names(chosen)),
            (Tensor(PROBABILITIES, "FP64", (-1, number)), proba.ravel().tolist()),
            (Tensor(CLASSES, datatype, (number,)), self._class_names(np.arange(number))),
        ]

    def _class_names(self, places: np.ndarray) -> list[Any]:
        names = self.groups if find_datatype(self.groups) != "BYTES" else [str(name) for name in self.groups]
        return [names[place] for place in places.tolist()]

    def explain(self, request: InferRequest, runner: Runner) -> InferResponse:
        table = self._table(request)
        with self.lock:
            found = self.fitted.explain(table, run=runner.map)
        parts = found.named(self.fitted)
        cells = np.stack(list(parts.values()), axis=1)
        datatype, names = find_datatype(self.groups), list(parts)
        tensors: list[tuple[Tensor, Sequence[Any]]] = [
            (Tensor(LABEL, datatype), self._class_names(found.chosen)),
            (Tensor("against", datatype), self._class_names(found.against)),
            (Tensor("contributions", "FP64", (-1, len(names))), [clip(cell) for cell in cells.ravel().tolist()]),
            (Tensor("columns", "BYTES", (len(names),)), names),
        ]
        return InferResponse(tensors, self._note(request, table))

    def _table(self, request: InferRequest) -> Table:
        """The rows as the model reads them; a column that is not sent is missing in all of them."""
        self._refuse_unknown(request, self.known)
        for name, cells in request.cells.items():
            if name in self.fields and self.fields[name].used:
                self._check(name, self.fields[name], cells)
        nothing = [None] * request.n_rows
        cells_of = {key: request.cells.get(name, nothing) for key, name in self.names.items()}
        found: Table = self.fitted.table(cells_of)
        return found

    def _check(self, name: str, spec: Field, cells: list[Any]) -> None:
        text = spec.kind is Kind.TEXT
        if not (text or spec.kind.numeric):
            return
        words = {*self.fitted.schema.missing, *spec.missing, *DASHES}
        for row, cell in enumerate(cells, start=1):
            if text and cell is not None and not isinstance(cell, str):
                raise DataError(
                    f"{wording.column(name)} holds text, but row {row} holds {cell!r}. Send it as BYTES, or null "
                    "where it is missing."
                )
            if not text and isinstance(cell, str) and cell not in words and isnan(parse_cell(spec.written, cell)):
                raise DataError(
                    f"{wording.column(name)} holds numbers, but row {row} holds {wording.cell(cell)}. Send a number, "
                    "or null where it is missing."
                )

    def _note(self, request: InferRequest, table: Table) -> str:
        """Notes about unseen categories in the rows, and about columns that were not sent."""
        absent = [tensor.name for tensor in self.inputs if tensor.name not in request.cells]
        parts = [f"not sent, taken as missing: {wording.and_others(absent)}"] if absent else []
        seen = describe_unseen(table)
        return "; ".join(parts + ([seen] if seen else []))


class ServedCentres(ServedModel):
    """k-means: the nearest centre, and the distance of each."""

    example = 0.0

    def __init__(self, estimator: KMeans) -> None:
        self.found = estimator.found_
        names = getattr(estimator, "feature_names_in_", range(estimator.n_features_in_))
        self.inputs = [Tensor(str(name), "FP64") for name in names]
        self.outputs = [Tensor(LABEL, "INT64"), Tensor("distances", "FP64", (-1, len(self.found.centres)))]

    def infer(self, request: InferRequest, runner: Runner) -> InferResponse:
        self._refuse_unknown(request, [tensor.name for tensor in self.inputs])
        rows = np.stack([self._numbers(tensor.name, request.cells.get(tensor.name)) for tensor in self.inputs], axis=1)
        nearest, _ = self.found.assign(rows, runner)  # type: ignore[arg-type]  # whatever runs work
        far = self.found.distances(rows, runner)  # type: ignore[arg-type]
        cells = (nearest.tolist(), [clip(cell) for cell in far.ravel().tolist()])
        return InferResponse(list(zip(self.outputs, cells, strict=True)))

    def _numbers(self, name: str, cells: list[Any] | None) -> np.ndarray:
        if cells is None:
            raise DataError(f"{wording.column(name)} is not sent, and k-means needs every column.")
        for row, cell in enumerate(cells, start=1):
            if isinstance(cell, str) or cell is None:
                held = "is missing" if cell is None else f"holds {wording.cell(cell)}"
                raise DataError(f"{wording.column(name)}, row {row}, {held}, and k-means needs a number in every cell.")
        return np.array(cells, dtype=float)


def find_datatype(values: Sequence[Any]) -> str:
    """The datatype of levels or classes; mixed types are sent as text."""
    types = {type(value) for value in values}
    return PLAIN.get(types.pop(), "BYTES") if len(types) == 1 else "BYTES"


def open_served(path: str) -> ServedModel:
    """The model of a file, ready to serve. Raises an error if a server cannot serve it."""
    estimator = softcount.load(path)
    if isinstance(estimator, KMeans):
        return ServedCentres(estimator)
    fitted = fitted_table(estimator)
    if fitted is None:
        raise ModelFileError(
            f"{path}: a {type(estimator).__name__}, which is not served. The server supports models of classes "
            f"(NaiveBayes, "
            f"Classifier, mixtures, networks with a class) and k-means.\n  Use it in Python: softcount.load({path!r})"
        )
    if fitted.bag:
        raise ModelFileError(
            f"{path}: fitted on a sparse matrix, whose columns have no names, so requests cannot name them."
        )
    if not fitted.names:
        raise ModelFileError(f"{path}: a network that was learned without a class. {learn_class()}")
    return ServedClasses(fitted)


def learn_class() -> str:
    how = remedies.either("BayesNet.tan(X, y)", "softcount fit DATA --target COL --net tan")
    return f"Learn one with a class: {how}"


def open_by_name(paths: Sequence[str]) -> dict[str, ServedModel]:
    """The models of files, by the names of the files without their endings."""
    found: dict[str, ServedModel] = {}
    files: dict[str, str] = {}
    for path in paths:
        name = Path(path).stem
        if name in files:
            raise DataError(f"{files[name]} and {path} would both be called {name!r}. Rename one of the files.")
        files[name] = path
        found[name] = open_served(path)
    return found
