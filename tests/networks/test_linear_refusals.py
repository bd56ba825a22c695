"""Networks of numbers that depend on numbers: compiled loops, files, and what is refused or cut."""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace

import softcount as sc
from files.test_changed_models import changed
from networks.plain_numbers import drawn_and_fitted
from softcount.errors import DataError, ModelFileError
from softcount.estimators.network import BayesNet
from softcount.files import read, write
from softcount.models import block_stack
from softcount.models.stacks import Kernels


@pytest.mark.parametrize("seed", range(2))
def test_compiled_loops_give_what_plain_ones_give(seed: int) -> None:
    net, rows = drawn_and_fitted(seed, holes=0.2)
    plain = net.fitted_.net
    fast = replace(plain, kernels=Kernels(1 << 40))
    table = net.fitted_.table(rows)
    chunk = next(task() for task in table.tasks())
    params = net.fitted_.estimates
    one, other = (model.gathered(model.expect(model.compile(params), model.prepare(chunk))) for model in (plain, fast))
    assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-11)
    for name in one.arrays:
        np.testing.assert_allclose(one.arrays[name].value, other.arrays[name].value, rtol=1e-9, atol=1e-9)


def test_a_saved_network_says_the_same(tmp_path: Path) -> None:
    net, rows = drawn_and_fitted(1, holes=0.1)
    net.save(tmp_path / "net.sc")
    again = sc.load(tmp_path / "net.sc")
    np.testing.assert_array_equal(again.score_samples(rows), net.score_samples(rows))
    for name, own in net.params_.items():
        for part, value in own.items():
            np.testing.assert_array_equal(again.params_[name][part], value)


def small_file(folder: Path) -> tuple[Any, Any]:
    """What is in the file of a network of a level and three numbers."""
    rng = np.random.default_rng(0)
    x, g = rng.normal(size=20), rng.integers(2, size=20)
    table = {"g": np.array(["a", "b"])[g], "x": x, "y": x + g + rng.normal(size=20), "z": rng.normal(size=20)}
    BayesNet([("x", "y"), ("g", "y"), ("z", "y")]).fit(table).save(folder / "net.sc")
    return read(folder / "net.sc")


@pytest.mark.parametrize("parents", [[], ["z"], ["z", "x"], ["x", "x"], "xz", 3, ["x", "g"], ["x", "y"], None])
def test_a_file_in_which_a_number_follows_others_than_the_graph_says_is_refused(parents: Any, tmp_path: Path) -> None:
    document, arrays = small_file(tmp_path)
    leaf = next(leaf for leaf in document["leaves"] if leaf["family"] == "linear")
    assert leaf["own"]["parents"] == ["x", "z"]
    leaf["own"]["parents"] = parents
    write(tmp_path / "odd.sc", document, arrays)
    with pytest.raises(ModelFileError):
        sc.load(tmp_path / "odd.sc")


@pytest.mark.filterwarnings("ignore")
def test_a_changed_file_is_refused_or_makes_sense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    document, arrays = small_file(tmp_path)
    chance, loaded = random.Random(5), 0
    for _ in range(120):
        try:
            write(tmp_path / "changed.sc", *changed(document, arrays, chance))
            net = sc.load(tmp_path / "changed.sc")
        except (DataError, ModelFileError):
            continue
        loaded += 1
        with contextlib.suppress(DataError):
            asked = net.query("y", {"x": 0.5})
            assert np.isfinite(asked.mean) and asked.variance > 0
            assert not np.isnan(net.score_samples({"g": ["a"], "x": [1.0], "y": [None], "z": [0.0]})).any()
            net.sample(2, {"y": 1.0}, random_state=0)
    assert 0 < loaded < 120


def numbers(rows: int = 30) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=rows)
    table = pd.DataFrame({"x": x, "y": x + rng.normal(size=rows), "n": rng.poisson(3.0, rows)})
    return table.assign(p=np.exp(x), g=np.where(rng.random(rows) < 0.5, "a", "b"))


def test_a_number_that_levels_depend_on_is_cut_and_so_is_what_it_depends_on() -> None:
    net = BayesNet([("x", "y"), ("y", "g"), ("x", "p")], kinds={"p": "normal"}).fit(numbers())
    assert set(net.levels_) == {"x", "y", "g"}
    assert sum("is discretised into" in note for note in net.notes_) == 2
    assert not any("would not be cut" in note for note in net.notes_)


def test_a_number_that_is_to_be_cut_is_cut() -> None:
    net = BayesNet([("x", "y")], cut={"x": [0.0]}).fit(numbers())
    assert len(net.levels_["x"]) == 2 and net.params_["y"]["mean"].shape == (2,)


def test_a_number_that_no_line_starts_from_is_cut_and_said_to_be() -> None:
    net = BayesNet([("n", "y"), ("x", "y")], kinds={"n": "poisson"}).fit(numbers())
    assert list(net.levels_) == ["n"] and net.params_["y"]["coefficients"].shape[1] == 1
    assert any("'n'" in note and "would not be cut" in note for note in net.notes_)


@pytest.mark.parametrize("kind", ["poisson", "student", "exponential"])
def test_what_is_not_normal_cannot_follow_numbers(kind: str) -> None:
    with pytest.raises(DataError, match=rf"'n' depends on the number 'x', but is {kind}.*kinds=.*cut="):
        BayesNet([("x", "n")], kinds={"n": kind}).fit(numbers())


@pytest.mark.parametrize(
    "given", [{"x": (0.0, 1.0), "y": 0.5}, {"x": (0.0, 1.0), "y": (0.0, 1.0)}], ids=["a number", "another range"]
)
def test_a_range_beside_a_joined_number_is_refused(given: Any) -> None:
    net = BayesNet([("x", "y"), ("g", "x")]).fit(numbers())
    with pytest.raises(DataError, match="only a range of 'x'"):
        net.query("g", given)


def test_a_joined_number_is_not_asked_for_beside_a_range_nor_drawn() -> None:
    net = BayesNet([("x", "y"), ("g", "x")]).fit(numbers())
    with pytest.raises(DataError, match="only a range of 'x'"):
        net.query("y", {"x": (0.0, 1.0)})
    with pytest.raises(DataError, match="not in a range"):
        net.sample(3, {"x": (0.0, 1.0)})


def test_linear_is_not_for_declaring() -> None:
    for kinds in ("linear", {"y": "linear"}, {"y": sc.families.Linear(("x",))}):
        with pytest.raises(DataError, match="Declare it normal"):
            sc.NaiveBayes(kinds=kinds).fit(numbers()[["x", "y"]], numbers()["g"])


def test_a_start_of_another_shape_is_refused() -> None:
    table = numbers().assign(y=lambda t: t["y"].where(t["x"] > 0), x=lambda t: t["x"].where(t["x"] < 1))
    for said in ({"intercept": 0.0, "coefficients": [[1.0]], "variance": [1.0]},
                 {"intercept": [0.0], "coefficients": [[1.0, 2.0]], "variance": [1.0]},
                 {"intercept": [0.0], "coefficients": [[1.0]]}):  # fmt: skip
        with pytest.raises(DataError, match="'y'"):
            BayesNet([("x", "y")], init={"y": said}).fit(table)
    said = {"intercept": [0.0], "coefficients": [[1.0]], "variance": [1.0]}
    assert BayesNet([("x", "y")], init={"y": said}).fit(table).converged_


def test_too_many_configurations_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_stack, "MOST_NUMBERS", 7)
    with pytest.raises(DataError, match=r"'?x'?, '?y'?.*'?g'?.*2 configurations"):
        BayesNet([("x", "y"), ("g", "y")]).fit(numbers())


def test_a_row_that_shows_nothing_says_nothing() -> None:
    net = BayesNet([("x", "y"), ("g", "y")]).fit(numbers())
    nothing = pd.DataFrame({"x": [np.nan], "y": [np.nan], "g": [None]})
    np.testing.assert_allclose(net.score_samples(nothing), [0.0], atol=1e-12)
    np.testing.assert_allclose(net.predict(nothing, "x"), net.params_["x"]["mean"])


def test_a_block_under_a_level_is_filled_as_naive_bayes_fills_it() -> None:
    table = numbers(40).assign(y=lambda t: t["y"].where(np.arange(40) % 3 > 0))[["g", "x", "y"]]
    kinds = {("x", "y"): "multinormal"}
    net = BayesNet([("g", ("x", "y"))], kinds=kinds, estimate="ml", tol=1e-12).fit(table)
    star = sc.NaiveBayes(kinds=kinds, estimate="ml", tol=1e-12).fit(table[["x", "y"]], table["g"])
    mine = net.impute(table.assign(g=None))
    np.testing.assert_allclose(mine["y"].astype(float), star.impute(table[["x", "y"]])["y"], rtol=1e-5, atol=1e-5)
