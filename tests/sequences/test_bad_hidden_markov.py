"""Hidden Markov models given what cannot be: a clear line each; and model files that lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.errors import ModelFileError
from softcount.files import read, write
from spoiling import Change, say, spoilt

STEPS = [["a", "b", "a", "b"], ["b", "b", "a"]]
ONE = {"n_init": 1, "max_iter": 3, "random_state": 0}
START = {"first": [0.5, 0.5], "transitions": [[0.9, 0.1], [0.2, 0.8]], 0: {"a": [0.7, 0.2], "b": [0.3, 0.8]}}

BAD: dict[str, tuple[dict[str, Any], Any, str]] = {
    "an empty sequence": ({}, [["a"], []], "sequence 2 is empty"),
    "no sequence": ({}, [], "no sequences"),
    "steps of different widths": ({}, [[(1.0, 2.0), (3.0,)]], "step 2"),
    "no list": ({}, 7, "no sequences"),
    "a fraction of states": ({"n_states": 1.5}, STEPS, "n_states"),
    "states in words": ({"n_states": "many"}, STEPS, "n_states"),
    "a criterion": ({"n_states": "auto", "criterion": "cv"}, STEPS, "criterion"),
    "a start in words": ({"init": "somewhere"}, STEPS, "init"),
    "a start that is none": ({"init": 3.0}, STEPS, "init"),
    "transitions that do not sum to one": (
        {"init": START | {"transitions": [[0.9, 0.1], [0.2, 0.7]]}}, STEPS, "of state 1 sum to 0.9, not to one",
    ),
    "first states that do not sum to one": ({"init": START | {"first": [0.5, 0.6]}}, STEPS, "'first' sum to 1.1"),
    "transitions below zero": ({"init": START | {"transitions": [[1.1, -0.1], [0.2, 0.8]]}}, STEPS, "0 or more"),
    "too few transitions": ({"init": START | {"transitions": [[1.0]]}}, STEPS, "2 x 2"),
    "a start of other columns": ({"init": START | {"pages": {"a": [1, 1]}}}, STEPS, "'pages'"),
    "a start without a column": ({"init": {"first": [0.5, 0.5]}}, STEPS, "no parameters for column 0"),
    "a word for transitions": ({"transitions": "round"}, STEPS, "left-right"),
    "nothing may follow": ({"transitions": [[0, 0], [1, 1]]}, STEPS, "nothing may follow state 0"),
    "transitions of three": ({"transitions": np.ones((3, 3))}, STEPS, "2 x 2"),
    "a first state that is none": ({"first": [4]}, STEPS, "first has the numbers"),
    "tied of three": ({"tied": ["a", "a", "b"]}, STEPS, "tied"),
    "a prior that chooses": ({"prior": "auto"}, STEPS, "prior='auto'"),
    "a column that is not there": ({"prior": {"pages": 1.0}}, STEPS, "'pages'"),
    "a kind for known classes": ({"kinds": "kde"}, [[1.0, 2.0, 5.0]], "known class alone"),
    "jobs": ({"n_jobs": 0}, STEPS, "n_jobs"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_is_refused_in_a_line(what: str) -> None:
    own, steps, words = BAD[what]
    with pytest.raises(sc.DataError) as caught:
        sc.HiddenMarkov(**{"n_states": 2, **ONE, **own}).fit(steps)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_known_states_must_be_of_these_steps() -> None:
    model = sc.HiddenMarkov(2, **ONE)
    with pytest.raises(sc.DataError, match="y is of 1 sequences, but there are 2"):
        model.fit(STEPS, [["x", "y", "x", "y"]])
    with pytest.raises(sc.DataError, match="sequence 2 has 3 steps, but y has 2"):
        model.fit(STEPS, [["x", None, None, "y"], ["x", "y"]])
    with pytest.raises(sc.DataError, match="1 weights for 2 sequences"):
        model.fit(STEPS, sample_weight=[1.0])
    with pytest.raises(sc.DataError, match="partial_fit"):
        model.fit(STEPS).partial_fit(STEPS, STEPS)


def test_transitions_that_forbid_what_was_seen_name_sequence_and_step() -> None:
    """Known states that follow each other where no step may go."""
    known = [["x", "x", None, None], ["x", "y", "x"]]
    with pytest.raises(sc.DataError, match="sequence 2, step 3: no path of states leads here"):
        sc.HiddenMarkov(2, transitions=[[1, 1], [0, 1]], **ONE).fit(STEPS, known)
    rows = {"who": ["p", "p", "q", "q"], "shown": [*"abab"], "mood": ["x", "y", "y", "x"]}
    long = sc.read_sequences(rows, sequence="who")
    with pytest.raises(sc.DataError, match="sequence 'q', step 2: no path"):
        sc.HiddenMarkov(2, transitions=[[1, 1], [0, 1]], **ONE).fit(long, "mood")


def test_a_sequence_that_cannot_be_is_named_when_it_is_asked_about() -> None:
    shown = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
    start = {"first": [1.0, 0.0], "transitions": [[0.5, 0.5], [0.0, 1.0]], 0: shown}
    line = sc.HiddenMarkov(2, init=start, estimate="ml", max_iter=0).fit([["a", "a", "b"], ["a", "b", "b"]])
    for question in (line.predict, line.predict_proba, line.score_samples, line.explain, line.anomalies, line.forecast):
        with pytest.raises(sc.DataError, match="sequence 2, step 3: no path"):
            question([["a", "b"], ["a", "b", "a"]])


def test_a_symbol_never_seen_is_counted_and_no_evidence_under_ml() -> None:
    model = sc.HiddenMarkov(2, estimate="ml", **ONE).fit(STEPS)
    with pytest.warns(sc.DataWarning, match="never seen in training"):
        odd = model.score_samples([["a", "z", "b"]])
    assert odd[0] == pytest.approx(model.score_samples([["a", None, "b"]])[0], rel=1e-12)


def test_questions_that_mean_nothing_are_refused() -> None:
    model = sc.HiddenMarkov(2, **ONE).fit(STEPS)
    for ask, words in (
        (lambda: model.forecast(STEPS, h=0), "h, the number of steps"),
        (lambda: model.forecast(STEPS, level=1.0), "level"),
        (lambda: model.sample(2, length=0), "length"),
        (lambda: model.sample(2, start=5), "there is no state 5"),
        (lambda: model.explain(STEPS, against="x"), "there is no state 'x'"),
        (lambda: model.anomalies(STEPS, -1), "number of steps"),
    ):
        with pytest.raises(sc.DataError, match=words):
            ask()


# -- files that lie


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "chain.sc"
    sc.HiddenMarkov(2, **ONE).fit([[(0.1, "a"), (3.0, "b")], [(2.9, "b"), (0.2, "a")]]).save(path)
    return path


LIES: dict[str, Change] = {
    "more states than there are": say(3, "structure", "groups"),
    "no states": say(0, "structure", "groups"),
    "states that share with nobody": say([0, 2], "structure", "shown"),
    "sharing in words": say("many", "structure", "shown"),
    "a state too many that shows": say([0, 1, 1], "structure", "shown"),
    "cells below zero": say(-1, "structure", "cells"),
    "a successor that is no state": say([0, 7], "leaves", 1, "levels"),
    "a successor twice": say([0, 0], "leaves", 1, "levels"),
    "no successor": say([], "leaves", 1, "levels"),
    "another estimator": say("Mixture", "estimator", "name"),
    "a network": say("BayesNet", "estimator", "name"),
    "another model": say("network", "model"),
    "a star": say("star", "model"),
    "settings that are none": say({"n_states": "many"}, "estimator", "settings"),
}


def test_the_file_that_is_spoilt_below_is_sound(sound: Path) -> None:
    assert sc.load(sound).n_states_ == 2
    assert [leaf["levels"] for leaf in read(sound)[0]["leaves"]][:3] == [[0, 1]] * 3


@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_lies_is_refused(sound: Path, tmp_path: Path, lie: str) -> None:
    with pytest.raises(ModelFileError):
        sc.load(spoilt(sound, tmp_path, LIES[lie]))


@pytest.mark.parametrize("section", ["params", "counts", "hyper"])
def test_arrays_that_make_no_sense_are_refused(sound: Path, tmp_path: Path, section: str) -> None:
    document, arrays = read(sound)
    refused = 0
    for name in [name for name in arrays if name.startswith(f"{section}/")]:
        changed = {**arrays, name: -1.0 - np.abs(arrays[name])}
        write(tmp_path / "odd.sc", document, changed)
        try:
            sc.load(tmp_path / "odd.sc").score_samples([[(0.1, "a")]])
        except (ModelFileError, sc.DataError):
            refused += 1
    assert refused > 0


def test_a_file_cut_short_or_flipped_is_refused(sound: Path, tmp_path: Path) -> None:
    content, path = sound.read_bytes(), tmp_path / "damaged.sc"
    right = sc.load(sound).score_samples([[(0.1, "a")]])
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelFileError):
        sc.load(path)
    refused = 0
    for place in np.random.default_rng(0).integers(0, len(content), 40):
        spoiled = bytearray(content)
        spoiled[place] ^= 1 << int(place % 8)
        path.write_bytes(spoiled)
        try:
            assert np.array_equal(sc.load(path).score_samples([[(0.1, "a")]]), right)
        except ModelFileError:
            refused += 1
    assert refused > 20


def test_probabilities_that_do_not_sum_to_one_are_refused(sound: Path, tmp_path: Path) -> None:
    arrays = read(sound)[1]
    names = [name for name in arrays if name.startswith("params/") and name.endswith("probability")]
    for name in names:
        with pytest.raises(ModelFileError):
            sc.load(spoilt_array(sound, tmp_path, name))


def spoilt_array(sound: Path, folder: Path, name: str) -> Path:
    document, arrays = read(sound)
    write(folder / "sums.sc", document, {**arrays, name: arrays[name] * 0.9})
    return folder / "sums.sc"
