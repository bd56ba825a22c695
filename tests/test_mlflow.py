"""MLflow's flavour: models go in and come out as model files, never as pickles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import softcount as sc

mlflow = pytest.importorskip("mlflow")
import softcount.mlflow as flavour  # noqa: E402


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A store of files in a folder of its own; nothing is asked of any network."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.chdir(tmp_path)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield tmp_path
    mlflow.set_tracking_uri(before)


@pytest.fixture(scope="module")
def bought() -> tuple[Any, pd.DataFrame]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=60),
            "colour": ["red", "blue", None] * 20,
            "rooms": [1, 2, 3, 4] * 15,
            "new": [True, False] * 30,
        }
    )
    return sc.NaiveBayes(kinds={"rooms": "categorical"}).fit(frame, ["yes", "no"] * 30), frame


def test_a_saved_model_comes_back_and_predicts_the_same(bought: Any, tmp_path: Path) -> None:
    model, frame = bought
    flavour.save_model(model, tmp_path / "model")
    files = {path.name for path in (tmp_path / "model").iterdir()}
    assert files == {"MLmodel", "model.sc", "requirements.txt"}
    back = flavour.load_model(str(tmp_path / "model"))
    assert (back.predict_proba(frame) == model.predict_proba(frame)).all()
    said = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(frame)
    assert (
        list(said) == ["predicted", "p(no)", "p(yes)"] and said["predicted"].tolist() == model.predict(frame).tolist()
    )
    assert (said[["p(no)", "p(yes)"]].to_numpy() == model.predict_proba(frame)).all()


def test_the_signature_is_that_of_the_columns_and_holes_are_no_error(bought: Any, tmp_path: Path) -> None:
    model, frame = bought
    flavour.save_model(model, tmp_path / "model", input_example=frame.head(2))
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    columns = {
        spec.name: (getattr(spec.type, "name", type(spec.type).__name__), spec.required)
        for spec in loaded.metadata.signature.inputs.inputs
    }
    assert columns == {
        "size": ("double", False), "colour": ("string", False), "rooms": ("AnyType", False), "new": ("boolean", False)
    }  # fmt: skip
    holes = frame.drop(columns="colour").assign(rooms=np.where(frame["rooms"] > 3, np.nan, frame["rooms"]))
    assert np.allclose(loaded.predict(holes)["p(yes)"], model.predict_proba(holes)[:, 1])
    assert loaded.metadata.saved_input_example_info is not None


def test_a_model_is_logged_to_a_run(bought: Any, store: Path) -> None:
    model, frame = bought
    with mlflow.start_run():
        logged = flavour.log_model(model, name="bought")
    assert (flavour.load_model(logged.model_uri).predict(frame) == model.predict(frame)).all()
    assert not [path for path in store.rglob("*") if path.suffix in (".pkl", ".pickle")]


def test_clusters_and_mixtures_are_logged_too(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1.0, 1.1, 1.2, 9.0, 9.1, 9.2], "y": [0.0, 0.1, 0.2, 5.0, 5.1, 5.2]})
    for place, model in enumerate((sc.KMeans(2, random_state=0), sc.Mixture(2, random_state=0))):
        model.fit(frame)
        flavour.save_model(model, tmp_path / str(place))
        said = mlflow.pyfunc.load_model(str(tmp_path / str(place))).predict(frame)
        assert said["predicted"].tolist() == model.predict(frame).tolist()


def test_what_is_in_the_way_is_said(bought: Any, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    with pytest.raises(sc.DataError, match="holds something already"):
        flavour.save_model(bought[0], tmp_path / "full")
