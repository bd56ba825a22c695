"""Every kind of model is exported, or refused in a line that says why and what to do, and nothing else happens."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from scipy.sparse import csr_matrix

import softcount as sc
from softcount.cli import main

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2)) + np.repeat([[0.0], [2.0]], 30, axis=0)
TABLE = pa.table({"a": X[:, 0], "c": np.where(X[:, 1] > 1, "u", "v"), "d": ["2024-01-31", "2024-03-05"] * 30})
Y = np.repeat(["no", "yes"], 30)
NOTES = ["win money now", "see you at noon", "money for nothing", "noon it is then"] * 5
STEPS = [["a", "b", "a"], ["b", "b", "a", "a"]] * 5

MODELS: dict[str, Any] = {
    "NaiveBayes": lambda: sc.NaiveBayes().fit(TABLE, Y),
    "NaiveBayes, sparse": lambda: sc.NaiveBayes().fit(csr_matrix(np.abs(X).round()), Y),
    "NaiveBayes, text": lambda: sc.NaiveBayes(kinds="text").fit(NOTES, ["spam", "ham"] * 10),
    "Classifier": lambda: sc.Classifier().fit(TABLE, Y),
    "AODE": lambda: sc.AODE().fit(TABLE, Y),
    "Mixture": lambda: sc.Mixture(2, random_state=0).fit(TABLE),
    "GaussianMixture": lambda: sc.GaussianMixture(2, random_state=0).fit(X),
    "JointModel": lambda: sc.JointModel(2, random_state=0).fit(TABLE),
    "KMeans": lambda: sc.KMeans(2, random_state=0).fit(X),
    "SphericalKMeans": lambda: sc.SphericalKMeans(2, random_state=0).fit(X),
    "BagOfWords": lambda: sc.BagOfWords().fit(NOTES),
    "KernelDensity": lambda: sc.KernelDensity().fit(X[:, :1]),
    "Histogram": lambda: sc.Histogram().fit(X[:, :1]),
    "BayesNet": lambda: sc.BayesNet.tan(TABLE.select(["a", "c"]), Y),
    "MarkovChain": lambda: sc.MarkovChain().fit(STEPS),
    "HiddenMarkov": lambda: sc.HiddenMarkov(2, random_state=0).fit(STEPS),
}


def test_no_model_is_forgotten() -> None:
    public = (name for name in sc.__all__ if inspect.isclass(getattr(sc, name)) and hasattr(getattr(sc, name), "fit"))
    assert set(public) <= set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_exported_or_refused_in_a_line(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    if not hasattr(model, "save"):
        return
    path = tmp_path / "model.sc"
    model.save(path)
    for how in (["sql"], ["sql", "--dialect", "sqlite"], ["onnx"], ["bif"]):
        out = tmp_path / "out.bif"
        found = CliRunner().invoke(main, ["export", str(path), "--to", *how, "-o", str(out)])
        said = found.stderr.strip()
        assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
        if found.exit_code == 0:
            assert out.stat().st_size > 0 and ("checked on" in said or how == ["bif"])
            out.unlink()
        else:
            assert not out.exists() and said.startswith("error: ") and "\n" not in said, said
            assert any(remedy in said for remedy in ("Fit ", "Export ", "Use it ")), said
