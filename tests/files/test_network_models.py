"""Network files that lie: damaged, senseless, or changed anywhere and signed again."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import softcount as sc
from contract.networks import drawn
from files.test_changed_models import changed
from softcount.errors import DataError, ModelFileError, SoftcountError
from softcount.files import read, write
from spoiling import Change, put, say, spoilt

TABLE = drawn(0, 40)
EDGES = [("z", "a"), ("a", "b"), ("b", "x"), ("c", "h"), ("h", "b")]
TIMES = 120
"""How often each network's file is changed."""


def learned(**own: Any) -> Any:
    how = {"hidden": {"h": 2}, "cut": {"z": [0.0, 1.0]}, "n_init": 1, "max_iter": 3, "random_state": 0} | own
    return sc.BayesNet(EDGES, **how).fit(TABLE, "c")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network nobody has spoilt: nodes z (cut), a, b, x (a number), c (the class), h (hidden)."""
    path = tmp_path_factory.mktemp("sound") / "net.sc"
    learned().save(path)
    return path


def refused(path: Path) -> str:
    with pytest.raises(ModelFileError) as caught:
        sc.load(path)
    message = str(caught.value)
    assert path.name in message and "\n" not in message
    return message


def test_the_file_that_is_spoilt_below_is_sound(sound):
    names = [leaf["key"] for leaf in read(sound)[0]["leaves"]]
    assert names == ["z", "a", "b", "x", "c", "h"]
    assert sc.load(sound).query("b", {"x": 1.0}) == learned().query("b", {"x": 1.0})


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_file_cut_short_is_refused(sound, tmp_path, share):
    content = sound.read_bytes()
    (tmp_path / "cut.sc").write_bytes(content[: int(len(content) * share)])
    refused(tmp_path / "cut.sc")


def test_any_flipped_bit_is_refused_or_changes_nothing(sound, tmp_path):
    content, path = sound.read_bytes(), tmp_path / "flipped.sc"
    expected = sc.load(sound).predict_proba(TABLE)
    refusals = 0
    for place in np.random.default_rng(0).integers(0, len(content), 80):
        spoiled = bytearray(content)
        spoiled[place] ^= 1 << int(place % 8)
        path.write_bytes(spoiled)
        try:
            found = sc.load(path)
        except ModelFileError:
            refusals += 1
        else:
            np.testing.assert_array_equal(found.predict_proba(TABLE), expected)
    assert refusals > 40


def parents(said: list[Any]) -> Change:
    return lambda document, arrays: _inside(document).update({"parents": said})


def _inside(document: dict[str, Any]) -> dict[str, Any]:
    """The part of the document that the network itself wrote."""
    return next(part for part in _parts(document) if "parents" in part)


def _parts(document: Any) -> list[dict[str, Any]]:
    if not isinstance(document, dict):
        return []
    return [document, *(found for value in document.values() for found in _parts(value))]


def inside(**said: Any) -> Change:
    return lambda document, arrays: _inside(document).update(said)


def cuts(*changes: dict[str, Any]) -> Change:
    """The first of the cut nodes changed, once for each of the cut nodes that the file then has."""

    def change(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        network = _inside(document)
        network["cuts"] = [network["cuts"][0] | said for said in changes]

    return change


SOUND = [[], [0], [1, 5], [2], [], [4]]
SENSELESS: dict[str, tuple[Change, str]] = {
    "parents in a circle": (parents([[1], [0], [1, 5], [2], [], [4]]), "cycle"),
    "a node its own parent": (parents([[0], [0], [1, 5], [2], [], [4]]), "cycle"),
    "parents out of range": (parents([[], [9], [1, 5], [2], [], [4]]), "parents (9,) are not all there"),
    "parents below zero": (parents([[], [-1], [1, 5], [2], [], [4]]), "parents (-1,) are not all there"),
    "half a parent": (parents([[], [0.5], [1, 5], [2], [], [4]]), "at `$.parents[1][0]`"),
    "a parent in words": (parents([[], ["z"], [1, 5], [2], [], [4]]), "at `$.parents[1][0]`"),
    "a parent twice": (parents([[], [0], [1, 1], [2], [], [4]]), "twice"),
    "too few parents": (parents(SOUND[:-1]), "parents (1, 5) are not all there"),
    "too many parents": (parents([*SOUND, []]), "not as many"),
    "parents in words": (parents("many"), ""),  # type: ignore[arg-type]
    "parents that are none": (parents([[], 0, [1, 5], [2], [], [4]]), ""),
    "groups that do not fit": (parents([[], [], [1, 5], [2], [], [4]]), "configurations"),
    "a number for a parent": (parents([[], [0], [1, 5], [], [], [3]]), ""),
    "cuts that fall": (cuts({"edges": [-2.0, 1.0, 0.0, 3.0]}), "ascending"),
    "cuts alike": (cuts({"edges": [-2.0, 1.0, 1.0, 3.0]}), "ascending"),
    "a cut in words of no number": (cuts({"edges": [-2.0, 0.0, None, 3.0]}), ""),
    "a mean too many": (cuts({"means": [-1.0, 0.5, 2.0, 3.0]}), "one density for each"),
    "means in words": (cuts({"means": ["a", "b", "c"]}), ""),
    "ends inside": (cuts({"edges": [0.5, 0.0, 1.0, 2.0]}), "ascending"),
    "shares that are none": (cuts({"shares": [[0.5] * 8] * 3}), "impossible density"),
    "all of it beyond": (cuts({"beyond": [0.5, 0.5]}), "impossible density"),
    "cuts in words": (cuts({"edges": ["a", "b", "c", "d"]}), ""),
    "one cut too many": (cuts({"edges": [-2.0, 0.0, 1.0, 2.0, 3.0]}), "one level more"),
    "a cut of levels": (cuts({"node": 1}, {}), "not a column of numbers"),
    "a cut of a number that is not a level": (cuts({"node": 3}, {}), ""),
    "a cut of nothing": (cuts({"node": 17}), "a cut node"),
    "no cuts": (cuts(), "'z' is a column, but its cuts are missing"),
    "labels of nothing": (inside(label=17), "the class"),
    "labels of a number": (inside(label=3), "both a column and the class"),
    "labels of a column": (inside(label=1), "both a column and the class"),
    "labels of a cut number": (inside(label=0), "both cut and the class"),
    "labels in words": (inside(label="c"), "Expected `int | null`, got `str` - at `$.label`"),
    "cells below zero": (inside(cells=-1), "cells"),
    "a level twice": (say(["u", "u", "w"], "leaves", 4, "levels"), "'c' has a level twice"),
    "a hidden level too many": (say([0, 1, 2], "leaves", 5, "levels"), ""),
    "an interval too many": (say(["p", "q", "r", "s"], "leaves", 0, "levels"), ""),
    "probabilities beyond one": (put("params/'b'/probability", lambda a: a * 1.1), "do not sum to one"),
    "probabilities below zero": (put("params/'a'/probability", lambda a: a * [[2.0, -1.0]] * 3), "do not sum to one"),
    "probabilities not known": (put("params/'h'/probability", lambda a: a * np.nan), ""),
    "tables of another shape": (put("params/'b'/probability", lambda a: a[:2]), ""),
    "counts of another shape": (put("counts/'b'/hi", lambda a: a[:2]), ""),
    "counts below zero": (put("counts/'b'/hi", lambda a: -a), "below zero"),
    "counts not known": (put("counts/'h'/hi", lambda a: a * np.nan), "make no sense"),
    "imagined counts below zero": (put("hyper/'b'/alpha", lambda a: -a), "prior of column 'b'"),
    "variances below zero": (put("params/'x'/variance", lambda a: -a), "not all positive"),
    "a table that is not there": (lambda document, arrays: arrays.pop("params/'b'/probability"), ""),
    "another model": (say("star", "model"), ""),
    "another estimator": (say("NaiveBayes", "estimator", "name"), ""),
}


@pytest.mark.parametrize("name", SENSELESS)
def test_a_network_that_makes_no_sense_is_refused(name, sound, tmp_path):
    change, said = SENSELESS[name]
    assert said in refused(spoilt(sound, tmp_path, change))


# -- changed anywhere

QUESTIONS: list[Callable[[Any, pd.DataFrame], Any]] = [
    lambda net, rows: net.predict_proba(rows, net.nodes[0] if net.nodes[0] in net.levels_ else net.nodes[1]),
    lambda net, rows: net.score_samples(rows),
    lambda net, rows: [net.query(node) for node in net.nodes],
    lambda net, rows: net.anomalies(rows, 3),
    lambda net, rows: net.sample(3, random_state=0),
    lambda net, rows: net.most_probable(),
    lambda net, rows: net.impute(rows),
    lambda net, rows: net.n_parameters_,
]
NETWORKS: dict[str, Callable[[], Any]] = {
    "everything": learned,
    "maximum likelihood": lambda: learned(estimate="ml"),
    "levels": lambda: sc.BayesNet([("a", "b"), ("b", "c")]).fit(TABLE),
    "found": lambda: sc.BayesNet.tan(TABLE[["a", "b", "c"]], "c"),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.filterwarnings("ignore")
def test_a_changed_network_is_refused_or_makes_sense(name, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # files that need not outlive the machine
    NETWORKS[name]().save(tmp_path / "sound.sc")
    document, arrays = read(tmp_path / "sound.sc")
    chance, loaded = random.Random(name), 0
    for turn in range(TIMES):
        said = changed(document, arrays, chance)
        try:
            write(tmp_path / "changed.sc", *said)
        except DataError:  # no file can hold it
            continue
        try:
            net = sc.load(tmp_path / "changed.sc")
        except ModelFileError as refusal:
            assert "\n" not in str(refusal) and "changed.sc" in str(refusal)
            continue
        try:
            chance.choice(QUESTIONS)(net, TABLE)
        except SoftcountError:
            pass
        except Exception as error:
            raise AssertionError(f"change {turn} of {name!r}") from error
        loaded += 1
    assert 0 < loaded < TIMES
