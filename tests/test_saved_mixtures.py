"""Mixtures in model files: all that was found comes back, older files are read, and senseless ones are refused."""

from __future__ import annotations

import copy
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import softcount as sc
from small_tables import KINDS, fruit
from softcount.errors import ModelFileError
from spoiling import spoilt

FRAME, LABELS = fruit()
NUMBERS = FRAME[["size", "visits"]].astype(float)
GAPS = np.where(np.arange(60) % 4 == 0, LABELS, None)
HOW = {"random_state": 0, "n_init": 1}

MODELS: dict[str, Callable[[], Any]] = {
    "auto": lambda: sc.Mixture(kinds=KINDS, **HOW).fit(FRAME),
    "labels with gaps": lambda: sc.Mixture(3, kinds=KINDS, **HOW).fit(FRAME, GAPS),
    "half steps": lambda: sc.Mixture(2, kinds=KINDS, half_steps=True, max_iter=4, **HOW).fit(FRAME),
    "hard": lambda: sc.Mixture(2, kinds=KINDS, assign="hard", **HOW).fit(FRAME),
    "held": lambda: sc.Mixture(
        2, kinds=KINDS, fixed={"weights": [0.4, 0.6], "size": {"variance": [1.0, 2.0]}}, **HOW
    ).fit(FRAME),
    "full": lambda: sc.GaussianMixture(2, **HOW).fit(NUMBERS, GAPS),
    "held block": lambda: sc.GaussianMixture(2, fixed={"covariances": 2.5}, **HOW).fit(NUMBERS),
    "predictive": lambda: sc.GaussianMixture(2, "diag", estimate="predictive", **HOW).fit(NUMBERS),
    "tied": lambda: sc.GaussianMixture(np.int64(2), "tied_spherical", **HOW).fit(NUMBERS),
}  # fmt: skip


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Any, Path]]:
    """Each model and the file it is in, made once."""
    folder, kept = tmp_path_factory.mktemp("mixtures"), {}

    def make(name: str) -> tuple[Any, Path]:
        if name not in kept:
            model, path = MODELS[name](), folder / f"{name}.sc"
            model.save(path)
            kept[name] = model, path
        return kept[name]

    return make


def table_of(model: Any) -> pd.DataFrame:
    return NUMBERS if isinstance(model, sc.GaussianMixture) else FRAME


@pytest.mark.parametrize("name", MODELS)
def test_all_that_was_found_comes_back(name, saved):
    model, path = saved(name)
    again, X = sc.load(path), table_of(model)
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    for what in ("trace_", "n_iter_", "converged_", "agreed_", "notes_", "n_parameters_", "n_components_"):
        assert getattr(again, what) == getattr(model, what), what
    assert again.fitted_.named == model.fitted_.named and again.fitted_.selection == model.fitted_.selection
    assert again.fitted_.half_steps == model.fitted_.half_steps
    assert again.fitted_.interrupted == model.fitted_.interrupted
    settings, before = again.get_params(), model.get_params()
    for what in ("n_components", "criterion", "assign", "half_steps", "finish", "estimate", "max_iter"):
        assert settings[what] == before[what], what


def test_a_fit_that_was_interrupted_says_so_in_its_file(saved, tmp_path):
    from msgspec.structs import replace

    model = copy.copy(saved("full")[0])
    model.fitted_ = replace(model.fitted_, interrupted=True, trace=[-np.inf, *model.trace_])
    model.save(tmp_path / "m.sc")
    again = sc.load(tmp_path / "m.sc")
    assert again.fitted_.interrupted
    assert again.trace_ == model.trace_  # a prior may rule the start out: minus infinity comes back too


def test_a_file_of_an_earlier_format_is_refused_with_what_to_do(saved, tmp_path):
    with zipfile.ZipFile(saved("full")[1]) as archive:
        entries = {part: archive.read(part) for part in archive.namelist()}
    manifest = json.loads(entries["model.json"]) | {"format": 4}
    older = tmp_path / "older.sc"
    with zipfile.ZipFile(older, "w") as archive:
        for part, content in (entries | {"model.json": json.dumps(manifest).encode()}).items():
            archive.writestr(zipfile.ZipInfo(part), content)
    with pytest.raises(
        ModelFileError, match=r"older\.sc.*format 4; this version reads format \d+: fit the model again"
    ):
        sc.load(older)


def put(name: str, value: Any) -> Callable[..., None]:
    def change(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        (document["history"] if name in document["history"] else document)[name] = value

    return change


def set_to(name: str, value: Any) -> Callable[..., None]:
    def change(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        document["estimator"]["settings"][name] = value

    return change


def stretched(part: str) -> Callable[..., None]:
    def change(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        name = next(name for name in arrays if name.startswith(part))
        arrays[name] = arrays[name] * 1.5

    return change


def renamed(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    name = next(name for name in arrays if name.startswith("fixed/"))
    arrays[name.rpartition("/")[0] + "/banana"] = arrays.pop(name)


def trial(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    document["history"]["selection"][0]["bic"] = "low"


def odd_trial(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    document["history"]["selection"][0]["banana"] = 1.0


SPOILT = {
    "more names than groups": ("full", put("named", ["a", "b", "c"]), "cannot be 2 groups"),
    "no names": ("full", put("named", []), "cannot be 2 groups"),
    "a name twice": ("full", put("named", ["a", "a"]), "2 times"),
    "names as a word": ("full", put("named", "ab"), "at `$.named`"),
    "an empty selection": ("auto", put("selection", []), "length >= 1 - at `$.selection`"),
    "a word in the selection": ("auto", trial, "Expected `float`, got `str` - at `$.selection[0].bic`"),
    "another part in the selection": ("auto", odd_trial, "more than there should be"),
    "agreement of three": ("auto", put("agreed", [1, 2, 3]), "agreed"),
    "a trace of words": ("auto", put("trace", ["high"]), "Expected `float`, got `str` - at `$.trace[0]`"),
    "held shares that are others": ("held", stretched("fixed/'(groups)'"), "fixed"),
    "a held variance that is another": ("held", stretched("fixed/"), "fixed"),
    "something unknown held": ("held", renamed, "fixed"),
    "another type of covariance": ("full", set_to("covariance_type", "diag"), "covariance_type"),
    "no type of covariance": ("full", set_to("covariance_type", "round"), "covariance_type"),
    "a criterion nobody knows": ("auto", set_to("criterion", "banana"), "criterion"),
    "a setting nobody knows": ("auto", set_to("banana", 1), "settings"),
    "a half of a number of components": ("full", set_to("n_components", 1.5), "n_components"),
    "an odd setting by column": ("held", set_to("fixed", {"rows": []}), "rows"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_mixture_that_makes_no_sense_is_refused(name, saved, tmp_path):
    which, change, said = SPOILT[name]
    with pytest.raises(ModelFileError) as caught:
        sc.load(spoilt(saved(which)[1], tmp_path, change))
    message = str(caught.value)
    assert "spoilt.sc" in message and "\n" not in message
    assert said in message.replace("spoilt.sc", "")
