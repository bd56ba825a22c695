"""Fits that are killed and go on: the same bits as if nothing had happened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from cli.shell import python, softcount_command
from softcount.errors import DataError, DataWarning, ModelFileError
from softcount.learn import checkpoints
from softcount.models.base import Problem

WAYS: dict[str, dict[str, Any]] = {
    "leaps": {"n_components": 3, "n_init": 3},
    "plain maps": {"n_components": 3, "n_init": 1, "tol": 0, "max_iter": 25, "accelerate": False},
    "hard": {"n_components": 2, "n_init": 2, "assign": "hard"},
    "drawn": {"n_components": 2, "n_init": 2, "assign": "drawn", "max_iter": 12},
    "half steps": {"n_components": 2, "n_init": 1, "half_steps": True, "max_iter": 20},
    "last digits": {"n_components": 2, "n_init": 1, "finish": "lbfgs"},
    "how many": {"n_components": "auto", "n_init": 2, "max_iter": 30},
    "heavy rows": {"n_components": 2, "n_init": 2, "estimate": "ml"},
}


class Killed(Exception):
    """The process ends here."""


def rows(number: int = 700, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, number)
    return {
        "x": rng.normal(size=number) + 1.5 * group, "y": rng.normal(size=number) * (1 + group),
        "level": [("a", "b", "c")[i] for i in (group + (rng.random(number) < 0.3)) % 3],
    }  # fmt: skip


def kill_after(passes: int, patch: pytest.MonkeyPatch, how: type[BaseException] = Killed) -> list[int]:
    """From now on the pass after so many ends the process; what comes back counts them."""
    expected, made = Problem.expected, [0]

    def counted(self: Problem, *given: Any) -> Any:
        made[0] += 1
        if made[0] > passes:
            raise how
        return expected(self, *given)

    patch.setattr(Problem, "expected", counted)
    return made


def same(one: Any, other: Any) -> None:
    assert one.trace_ == other.trace_
    assert one.notes_ == other.notes_
    assert one.agreed_ == other.agreed_
    assert np.array_equal(one.weights_, other.weights_)
    for key, own in one.counts_.arrays.items():
        assert np.array_equal(own.hi, other.counts_.arrays[key].hi)
        assert np.array_equal(own.lo, other.counts_.arrays[key].lo)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is written down at once."""
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(checkpoints, "SELDOM", 0.0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("often")
def test_a_fit_that_is_killed_goes_on_to_the_same_bits(way: str, tmp_path: Path) -> None:
    setting, path = {"random_state": 0, "n_jobs": 1} | WAYS[way], tmp_path / "fit.checkpoint"
    weights = np.full(700, 1e-3) if way == "heavy rows" else None
    whole = sc.Mixture(**setting).fit(rows(), sample_weight=weights)
    with pytest.MonkeyPatch.context() as patch:
        needed = kill_after(10**9, patch)
        same(sc.Mixture(**setting, checkpoint=path).fit(rows(), sample_weight=weights), whole)
    assert not path.exists()
    for moment in sorted({1, needed[0] // 2, needed[0] - 2}):
        with pytest.MonkeyPatch.context() as patch:
            kill_after(moment, patch)
            with pytest.raises(Killed):
                sc.Mixture(**setting, checkpoint=path).fit(rows(), sample_weight=weights)
        with pytest.MonkeyPatch.context() as patch:
            again = kill_after(10**9, patch)
            same(sc.Mixture(**setting, checkpoint=path).fit(rows(), sample_weight=weights), whole)
        assert not path.exists()
        assert way != "plain maps" or again[0] <= needed[0] - moment + 2  # it did go on, and not begin anew


@pytest.mark.usefixtures("often")
def test_a_fit_goes_on_after_an_interrupt_and_draws_by_the_seed_it_began_with(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    mixture = sc.Mixture(3, n_init=1, tol=0, max_iter=20, checkpoint=path, n_jobs=1)
    with pytest.MonkeyPatch.context() as patch:
        kill_after(6, patch, KeyboardInterrupt)
        with pytest.warns(DataWarning, match="interrupted"):
            assert mixture.fit(rows()).fitted_.interrupted
    assert path.exists()
    kept = path.read_bytes()
    first = mixture.fit(rows()).trace_
    path.write_bytes(kept)
    assert mixture.fit(rows()).trace_ == first


@pytest.mark.usefixtures("often")
def test_other_data_other_options_and_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    mixture = sc.Mixture(3, n_init=1, random_state=0, tol=0, max_iter=20, checkpoint=path, n_jobs=1)
    with pytest.MonkeyPatch.context() as patch:
        kill_after(8, patch)
        with pytest.raises(Killed):
            mixture.fit(rows())
    with pytest.raises(DataError, match=r"^\S*fit.checkpoint is a checkpoint of a fit with other data\. "):
        mixture.fit(rows(seed=1))
    for changed in ({"random_state": 1}, {"max_iter": 5}, {"prior": 2.0}, {"n_components": 2}):
        with pytest.raises(
            DataError, match=r"^\S*fit.checkpoint is a checkpoint of a fit with other (options|data)\. "
        ):
            sc.Mixture(**(mixture.get_params() | changed)).fit(rows())
    mixture.fit(rows())
    mixture.save(path)
    with pytest.raises(ModelFileError, match="is a model, not a checkpoint"):
        mixture.fit(rows())
    path.write_bytes(b"PK\x03\x04 no")
    with pytest.raises(ModelFileError):
        mixture.fit(rows())
    with pytest.raises(DataError, match="checkpoint must be"):
        sc.Mixture(2, checkpoint=3).fit(rows())


def series() -> list[list[float]]:
    rng = np.random.default_rng(3)
    return [list(rng.normal(size=40) + 2 * (rng.random(40) < 0.2).cumsum() % 3) for _ in range(6)]


@pytest.mark.parametrize("states", [3, "auto"])
@pytest.mark.usefixtures("often")
def test_hidden_states_go_on_to_the_same_bits(states: Any, tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    setting = {"n_states": states, "n_init": 2, "max_iter": 40, "random_state": 0, "n_jobs": 1, "checkpoint": path}
    with pytest.MonkeyPatch.context() as patch:
        needed = kill_after(10**9, patch)
        whole = sc.HiddenMarkov(**{**setting, "checkpoint": None}).fit(series())
    for moment in (needed[0] // 3, needed[0] - 2):
        with pytest.MonkeyPatch.context() as patch:
            kill_after(moment, patch)
            with pytest.raises(Killed):
                sc.HiddenMarkov(**setting).fit(series())
        assert path.exists()
        found = sc.HiddenMarkov(**setting).fit(series())
        assert found.trace_ == whole.trace_ and found.agreed_ == whole.agreed_ and found.notes_ == whole.notes_
        assert np.array_equal(found.transitions_, whole.transitions_)
        for key, own in found.params_.items():
            assert all(np.array_equal(value, whole.params_[key][name]) for name, value in own.items())
        assert not path.exists()


@pytest.mark.usefixtures("often")
def test_the_same_steps_in_other_sequences_are_other_data(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    shown = {"mean": [0, 4], "variance": [1, 1]}
    start = {"first": [0.5, 0.5], "transitions": [[0.9, 0.1], [0.1, 0.9]], 0: shown}
    states = sc.HiddenMarkov(2, init=start, tol=0, max_iter=9, checkpoint=path)
    with pytest.MonkeyPatch.context() as patch:
        kill_after(5, patch)
        with pytest.raises(Killed):
            states.fit(series())
    whole = [step for own in series() for step in own]
    with pytest.raises(DataError, match="is a checkpoint of a fit with other data"):
        states.fit([whole[:100], whole[100:]])


KILLED = """
import os, signal, sys
from softcount.learn import checkpoints
from softcount.models.base import Problem
checkpoints.EVERY = checkpoints.SELDOM = 0.0
left, expected = int(os.environ["PASSES"]), Problem.expected
def counted(self, *given):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), getattr(signal, os.environ["SIGNAL"]))
    return expected(self, *given)
Problem.expected = counted
from softcount.cli import main
main(prog_name="softcount")
"""


def test_a_command_that_was_killed_resumes_to_the_same_model(tmp_path: Path) -> None:
    table = rows()
    lines = ["x,y,level", *(f"{x},{y},{level}" for x, y, level in zip(*table.values(), strict=True))]
    (tmp_path / "data.csv").write_text("\n".join(lines))
    words = ["fit", "data.csv", "--classes", "3", "--starts", "1", "--jobs", "1"]
    assert softcount_command(*words, "-o", "whole.sc", cwd=tmp_path).returncode == 0
    resumed = [*words, "-o", "model.sc", "--checkpoint", "c.part", "--resume"]
    for name, passes, code in (("SIGKILL", 7, -9), ("SIGTERM", 12, 130)):
        done = python("-c", KILLED, *resumed, cwd=tmp_path, env={"PASSES": str(passes), "SIGNAL": name})
        assert done.returncode == code
        assert (tmp_path / "c.part").exists()
    assert b"--checkpoint c.part --resume goes on" in done.stderr
    again = softcount_command(*resumed[:-1], cwd=tmp_path)
    assert again.returncode == 2 and again.stderr.decode().splitlines()[0].endswith(
        "c.part is there already: give --resume to go on from it, or remove it"
    )
    assert softcount_command(*resumed, cwd=tmp_path).returncode == 0
    assert not (tmp_path / "c.part").exists()
    whole, found = sc.load(tmp_path / "whole.sc"), sc.load(tmp_path / "model.sc")
    same(whole, found)
    assert sorted(os.listdir(tmp_path)) == ["data.csv", "model.sc", "whole.sc"]
