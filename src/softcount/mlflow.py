"""The MLflow flavour of Softcount: models are kept as model files, never as pickles.

`softcount.mlflow.log_model(model, name="model")` logs a fitted estimator, `load_model(uri)` loads it, and
`mlflow.pyfunc.load_model(uri).predict(frame)` predicts with it. It needs `pip install "softcount[mlflow]"`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import softcount
from softcount.errors import DataError, import_extra
from softcount.table.schema import labels

FLAVOR_NAME = "softcount"
FILE = "model.sc"


def _mlflow() -> Any:
    problem = 'this takes MLflow, which is not installed. Install it: pip install "softcount[mlflow]"'
    import_extra("mlflow.models", problem)
    import_extra("mlflow.pyfunc", problem)
    return import_extra("mlflow", problem)


def get_default_pip_requirements() -> list[str]:
    """The packages that a logged model needs."""
    return [f"softcount=={softcount.__version__}", "pandas"]


def save_model(
    model: Any, path: Any, mlflow_model: Any = None, signature: Any = None, input_example: Any = None, **kwargs: Any
) -> None:
    """Write a fitted estimator as an MLflow model into a new folder.

    Without a `signature` it is that of the model's columns. `pip_requirements`, `conda_env`, `code_paths` and
    `metadata` are as in other flavours.
    """
    mlflow = _mlflow()
    folder = Path(path)
    if folder.exists() and any(folder.iterdir()):
        raise DataError(f"{str(path)!r} holds something already. Give a folder that is empty or not there yet.")
    folder.mkdir(parents=True, exist_ok=True)
    found = mlflow.models.Model() if mlflow_model is None else mlflow_model
    found.signature = signature_of(model) if signature is None else signature
    if input_example is not None:
        from mlflow.models.utils import _save_example

        _save_example(found, input_example, str(folder))
    if kwargs.get("metadata") is not None:
        found.metadata = kwargs["metadata"]
    model.save(folder / FILE)
    needs = list(kwargs.get("pip_requirements") or get_default_pip_requirements())
    (folder / "requirements.txt").write_text("\n".join(needs) + "\n")
    mlflow.pyfunc.add_to_model(found, loader_module="softcount.mlflow", data=FILE, pip_env="requirements.txt")
    kind = type(model).__name__
    found.add_flavor(FLAVOR_NAME, data=FILE, softcount_version=softcount.__version__, estimator=kind)
    found.save(str(folder / "MLmodel"))


def log_model(model: Any, name: str | None = None, **kwargs: Any) -> Any:
    """Log a fitted estimator to the active run, or to a new one; the result has its `model_uri`."""
    mlflow = _mlflow()
    return mlflow.models.Model.log(artifact_path=None, name=name, flavor=sys.modules[__name__], model=model, **kwargs)


def load_model(model_uri: str, dst_path: str | None = None) -> Any:
    """The estimator that was logged or saved."""
    mlflow = _mlflow()
    from mlflow.tracking.artifact_utils import _download_artifact_from_uri

    folder = Path(_download_artifact_from_uri(artifact_uri=model_uri, output_path=dst_path))
    flavors = mlflow.models.Model.load(str(folder / "MLmodel")).flavors
    if FLAVOR_NAME not in flavors:
        raise DataError(f"{model_uri}: it was not logged by softcount.mlflow.")
    return softcount.load(folder / FILE)


def _load_pyfunc(path: str) -> PredictedFrames:
    """The hook of `mlflow.pyfunc.load_model`, given the model file."""
    file = Path(path)
    return PredictedFrames(softcount.load(file / FILE if file.is_dir() else file))


class PredictedFrames:
    """A model for MLflow: a frame in; the predicted class and the probability of each class, if there are any, out."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def get_raw_model(self) -> Any:
        """The estimator itself."""
        return self.model

    def predict(self, model_input: Any, params: Any = None) -> Any:
        """One line per row, under the names that `softcount predict` gives."""
        import pandas as pd

        columns = {"predicted": self.model.predict(model_input)}
        if hasattr(self.model, "predict_proba"):
            proba = self.model.predict_proba(model_input)
            names = labels(self.model.fitted_.names).values()
            columns |= {f"p({name})": proba[:, place] for place, name in enumerate(names)}
        index = model_input.index if isinstance(model_input, pd.DataFrame) else None
        return pd.DataFrame(columns, index=index)


def signature_of(model: Any) -> Any:
    """The columns that a model reads, none of them required, and its answers; None if it has no schema."""
    import mlflow.types.schema
    from mlflow.models import ModelSignature

    types: Any = mlflow.types.schema
    schema = getattr(getattr(model, "fitted_", None), "schema", None)
    if schema is None or not all(isinstance(spec.key, str) for spec in schema.used):
        return None
    read = []
    for spec in schema.used:
        kind = _kind(spec)
        read.append(types.ColSpec(types.DataType[kind] if kind else types.AnyType(), spec.key, required=False))
    names = model.fitted_.names
    label = types.DataType.string if all(isinstance(name, str) for name in names) else types.DataType.long
    probabilities = [types.ColSpec(types.DataType.double, f"p({name})") for name in labels(names).values()]
    return ModelSignature(types.Schema(read), types.Schema([types.ColSpec(label, "predicted"), *probabilities]))


def _kind(spec: Any) -> str:
    """The type of a column; none for whole numbers, which MLflow takes for another type if one is missing."""
    if spec.written is not None and spec.written.is_text:
        return "string"
    if spec.written is not None and spec.written.typed:
        return "datetime"
    if spec.kind.numeric:
        return "double" if spec.written is None and spec.kind.value != "count" else ""
    if spec.levels and all(isinstance(level, bool) for level in spec.levels):
        return "boolean"
    return "" if spec.levels and all(isinstance(level, (int, float)) for level in spec.levels) else "string"
