"""Densities come back from a file as they were, and from a spoilt file not at all."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import softcount as sc
from softcount.errors import ModelFileError
from softcount.files.archive import read, write

VALUES = np.random.default_rng(0).gamma(2.0, size=300)
TWO = pd.DataFrame({"a": VALUES, "b": VALUES[::-1] ** 2})
MODELS = {
    "plain": lambda: sc.KernelDensity().fit(VALUES),
    "weighed": lambda: sc.KernelDensity("biweight", 0.4, True, (0, None)).fit(VALUES, sample_weight=np.arange(300.0)),
    "streamed": lambda: sc.KernelDensity().partial_fit(VALUES[:1]),
    "two columns": lambda: sc.KernelDensity(bandwidth=[0.3, "scott"], bounds=[(0, None), None]).fit(TWO),
    "histogram": lambda: sc.Histogram(("count", 9)).fit(VALUES),
    "blocks": lambda: sc.Histogram("blocks").fit(TWO[["a"]]),
}
every_model = pytest.mark.parametrize("name", MODELS)


@every_model
def test_a_saved_density_is_the_same_when_loaded(name, tmp_path):
    model = MODELS[name]()
    model.save(tmp_path / "density.sc")
    again = sc.load(tmp_path / "density.sc")
    assert type(again) is type(model) and again.n_features_in_ == model.n_features_in_
    if name == "streamed":
        model, again = model.partial_fit(VALUES), again.partial_fit(VALUES)
    asked = TWO[list(getattr(model, "feature_names_in_", ["a"]))]
    asked = VALUES if model.plain_column_ else asked
    np.testing.assert_array_equal(again.score_samples(asked), model.score_samples(asked))
    np.testing.assert_array_equal(again.cdf(asked), model.cdf(asked))
    np.testing.assert_array_equal(again.sample(5, random_state=0), model.sample(5, random_state=0))
    again.save(tmp_path / "again.sc")
    assert name == "streamed" or (tmp_path / "again.sc").read_bytes() == (tmp_path / "density.sc").read_bytes()


NAME, SETTINGS = ("estimator", "name"), ("estimator", "settings")
WIDTH, NAMES = ("estimator", "columns", "n"), ("estimator", "columns", "names")
PLAIN, LEVEL = ("density", "plain"), ("density", "level")
SPOILT = {
    "plain": [
        (NAME, "NaiveBayes"), (NAME, "os.system"), (WIDTH, 2), (WIDTH, True), (PLAIN, 1), (NAMES, ["a", "b"]),
        (LEVEL, 1e9), (LEVEL, "x"), ((*SETTINGS, "kernel"), "round"), ((*SETTINGS, "bandwidth"), -1),
        ((*SETTINGS, "bandwidth"), None), ((*SETTINGS, "bounds"), [50, None]), ((*SETTINGS, "other"), 1),
        (SETTINGS, None),
    ],
    "histogram": [(NAME, "KernelDensity"), (WIDTH, 3), (LEVEL, 2), (NAMES, [1])],
}  # fmt: skip


@pytest.mark.parametrize("name, where, value", [(name, *case) for name, cases in SPOILT.items() for case in cases])
def test_a_document_that_makes_no_sense_is_refused(name, where, value, tmp_path):
    MODELS[name]().save(tmp_path / "density.sc")
    document, arrays = read(tmp_path / "density.sc")
    part = document
    for key in where[:-1]:
        part = part[key]
    part[where[-1]] = value
    write(tmp_path / "density.sc", document, arrays)
    with pytest.raises(ModelFileError, match=r"density\.sc"):
        sc.load(tmp_path / "density.sc")


@pytest.mark.parametrize(
    "name, array, spoil",
    [
        ("plain", "cells", lambda x: x[:, 0]),
        ("plain", "cells", lambda x: x[:0]),
        ("plain", "cells", lambda x: x * np.nan),
        ("plain", "cells", lambda x: x.astype(int)),
        ("weighed", "cells", lambda x: -x),
        ("weighed", "weights", lambda x: -x),
        ("weighed", "weights", lambda x: x[1:]),
        ("histogram", "edges", lambda x: x[::-1].copy()),
        ("histogram", "edges", lambda x: x[:1]),
        ("histogram", "counts", lambda x: x - 1000),
        ("histogram", "counts", lambda x: x[1:]),
    ],
)
def test_arrays_that_make_no_sense_are_refused(name, array, spoil, tmp_path):
    MODELS[name]().save(tmp_path / "density.sc")
    document, arrays = read(tmp_path / "density.sc")
    write(tmp_path / "density.sc", document, {**arrays, array: spoil(arrays[array])})
    with pytest.raises(ModelFileError, match=r"density\.sc"):
        sc.load(tmp_path / "density.sc")
