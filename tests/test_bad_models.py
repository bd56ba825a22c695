"""Model files that cannot be trusted are refused by name when they are loaded, whatever is wrong with them."""

from __future__ import annotations

import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from small_tables import KINDS, fruit
from softcount.errors import DataError, ModelFileError
from spoiling import Change, drop, put, say, spoilt

FRAME, LABELS = fruit()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file nobody has spoilt."""
    path = tmp_path_factory.mktemp("sound") / "m.sc"
    sc.NaiveBayes(kinds=KINDS).fit(FRAME.assign(state=LABELS), "state").save(path)
    return path


def refused(path: Path) -> str:
    """What the refusal says; it is one line that names the file."""
    with pytest.raises(ModelFileError) as caught:
        sc.load(path)
    message = str(caught.value)
    assert path.name in message and "\n" not in message
    return message


def test_the_file_that_is_spoilt_below_is_sound(sound):
    model = sc.load(sound)
    plain = sc.NaiveBayes(kinds=KINDS).fit(FRAME, LABELS)
    np.testing.assert_array_equal(model.predict_proba(FRAME), plain.predict_proba(FRAME))


# The file itself


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_file_cut_short_is_refused(sound, tmp_path, share):
    content = sound.read_bytes()
    path = tmp_path / "cut.sc"
    path.write_bytes(content[: int(len(content) * share)])
    refused(path)


def test_any_flipped_bit_is_refused_or_changes_nothing(sound, tmp_path):
    """Bits of dates and names' flags inside the archive mean nothing; all others are found out."""
    content = bytearray(sound.read_bytes())
    path = tmp_path / "flipped.sc"
    expected = sc.load(sound).predict_proba(FRAME)
    refusals = 0
    for place in np.random.default_rng(0).integers(0, len(content), 150):
        spoilt = bytearray(content)
        spoilt[place] ^= 1 << int(place % 8)
        path.write_bytes(spoilt)
        try:
            found = sc.load(path)
        except ModelFileError:
            refusals += 1
        else:
            np.testing.assert_array_equal(found.predict_proba(FRAME), expected)
    assert refusals > 100


def newer(path: Path, sound: Path) -> None:
    with zipfile.ZipFile(sound) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(entries["model.json"])
    manifest["format"] += 1
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (entries | {"model.json": json.dumps(manifest).encode()}).items():
            archive.writestr(name, content)


def bomb(path: Path, sound: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", b" " * 50_000_000)


def traversal(path: Path, sound: Path) -> None:
    with zipfile.ZipFile(sound) as archive, zipfile.ZipFile(path, "w") as out:
        for name in archive.namelist():
            out.writestr(name, archive.read(name))
        out.writestr("../../harm.npy", b"harm")


def claims_more(path: Path, sound: Path) -> None:
    whole = sound.read_bytes()
    place = whole.index(b"PK\x01\x02")
    path.write_bytes(whole[: place + 20] + struct.pack("<LL", 1 << 30, 1 << 30) + whole[place + 28 :])


SPOILERS: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "newer": (newer, "upgrade softcount"),
    "a pickle": (lambda path, sound: path.write_bytes(pickle.dumps({"model": 1})), "pickle"),
    "a bomb": (bomb, "compressed"),
    "traversal names": (traversal, "not listed"),
    "claims more than it has": (claims_more, "claim"),
    "a table": (lambda path, sound: path.write_text("a,b\n1,2\n"), "CSV"),
    "a folder": (lambda path, sound: path.mkdir(), "folder"),
    "nothing": (lambda path, sound: None, "no such file"),
}


@pytest.mark.parametrize("name", SPOILERS)
def test_what_is_no_model_file_is_refused(name, sound, tmp_path):
    spoil, said = SPOILERS[name]
    path = tmp_path / "spoilt.sc"
    spoil(path, sound)
    assert said in refused(path)
    assert set(os.listdir(tmp_path)) <= {"spoilt.sc"}


# A sound archive of a senseless model


def both_levels(levels: list[str]) -> Change:
    def change(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        document["leaves"][1]["levels"] = document["schema"]["fields"][1]["levels"] = levels

    return change


ARRAYS: dict[str, tuple[Change, str]] = {
    "probabilities beyond one": (put("params/'colour'/probability", lambda a: a * 1.1), "do not sum to one"),
    "probabilities below zero": (
        put("params/'colour'/probability", lambda a: [[1.2, -0.2, 0.0], [0.2, 0.3, 0.5]]),
        "do not sum to one",
    ),
    "a share for the unseen": (put("params/'colour'/unseen", lambda a: -a), "never seen"),
    "negative variances": (put("params/'size'/variance", lambda a: -a), "not all positive"),
    "variances of zero": (put("params/'size'/variance", lambda a: 0 * a), "not all positive"),
    "means not known": (put("params/'size'/mean", lambda a: a * np.nan), "not finite"),
    "negative rates": (put("params/'visits'/rate", lambda a: -a), "not all 0 or more"),
    "infinite rates": (put("params/'visits'/rate", lambda a: a * np.inf), "not finite"),
    "class shares beyond one": (put("params/'(groups)'/probability", lambda a: [[0.5, 0.6]]), "shares of the classes"),
    "class shares below zero": (put("params/'(groups)'/probability", lambda a: [[1.5, -0.5]]), "shares of the classes"),
    "class shares not known": (put("params/'(groups)'/probability", lambda a: a * np.nan), "shares of the classes"),
    "rates beyond all rows": (put("params/'visits'/rate", lambda a: a * 1e300), "rate is beyond 1e+150"),
    "means as truths": (put("params/'size'/mean", lambda a: a > 0), "not make sense"),
    "counts as truths": (put("counts/'size'/hi", lambda a: a > 0), "make no sense"),
    "half of the counts": (drop("counts/'size'/hi"), "the counts of column 'size' make no sense"),
    "counts beyond all sums": (put("counts/'colour'/hi", lambda a: a * 1e300), "make no sense"),
    "a prior for every class": (put("hyper/'size'/floor", lambda a: np.stack([a, a])), "floor has the shape"),
    "one mean too many": (put("params/'size'/mean", lambda a: [1.0, 2.0, 3.0]), "each of 2 groups"),
    "means of two columns": (put("params/'size'/mean", lambda a: np.stack([a, a], 1)), "shape"),
    "text for means": (put("params/'size'/mean", lambda a: a.astype(str)), "not make sense"),
    "no mean": (lambda document, arrays: arrays.pop("params/'size'/mean"), "'mean'"),
    "no variance": (lambda document, arrays: arrays.pop("params/'size'/variance"), "'variance'"),
    "a parameter too many": (lambda document, arrays: arrays.update({"params/'size'/odd": np.ones(2)}), "'odd'"),
    "negative counts": (put("counts/'colour'/hi", lambda a: -a), "below zero"),
    "negative rows": (put("counts/'size'/hi", lambda a: -a), "below zero"),
    "negative counts of classes": (put("counts/'(groups)'/hi", lambda a: -a), "below zero"),
    "counts not known": (put("counts/'colour'/hi", lambda a: a * np.nan), "make no sense"),
    "counts of more levels": (put("counts/'colour'/hi", lambda a: np.ones((2, 9))), "make no sense"),
    "a negative prior": (put("hyper/'colour'/alpha", lambda a: -a - 100), "prior of column 'colour'"),
    "a prior not known": (put("hyper/'colour'/alpha", lambda a: a * np.nan), "prior of column 'colour'"),
    "a prior of more levels": (put("hyper/'colour'/alpha", lambda a: np.ones(7)), "not make sense"),
    "no prior": (
        lambda document, arrays: arrays.pop("hyper/'colour'/alpha"),
        "the prior parameters of column 'colour'",
    ),
}
DOCUMENTS: dict[str, tuple[Change, str]] = {
    "half a truth": (say(-0.5, "schema", "fields", 0, "wide"), "`bool`, got `float` - at `$.fields[0].wide`"),
    "a truth beyond all numbers": (
        say(10**30, "schema", "fields", 0, "wide"),
        "`bool`, got `int` - at `$.fields[0].wide`",
    ),
    "a truth in words": (say("no", "history", "converged"), "Expected `bool`, got `str` - at `$.converged`"),
    "a number among classes of text": (say(["ripe", 7], "classes"), "not all text, all numbers or all truths"),
    "a class that is none": (say(["ripe", None], "classes"), "not all text"),
    "a level that is none": (both_levels([["red"], "green", "yellow"]), "neither text nor numbers"),
    "a column without a name": (say(None, "schema", "fields", 0, "key"), "None is not a column"),
    "an anchor in words": (say("1.5", "schema", "fields", 0, "anchor"), "`float`, got `str` - at `$.fields[0].anchor`"),
    "an anchor of several": (say([[0.5]], "leaves", 0, "anchor"), "anchor"),
    "rows beyond all numbers": (say(2**1024 - 1, "rows"), "rows"),
    "a note that is none": (say([1], "history", "notes"), "Expected `str`, got `int` - at `$.notes[0]`"),
    "an unknown model": (say("wheel", "model"), "'wheel' is not one of star"),
    "an unknown family": (say("banana", "leaves", 0, "family"), "family 'banana' is not known"),
    "another family": (say("categorical", "leaves", 0, "family"), "more than there should be"),
    "a family of a setting it lacks": (say({"odd": 1}, "leaves", 0, "own"), "more than there should be"),
    "a family of a senseless setting": (say({"tied": "odd", "variance": None}, "leaves", 0, "own"), "value 'odd'"),
    "an unknown kind": (say("banana", "schema", "fields", 0, "kind"), "banana"),
    "another kind": (say("categorical", "schema", "fields", 0, "kind"), "'size' (categorical) cannot be normal"),
    "a column left out but modelled": (say(False, "schema", "fields", 0, "used"), "cannot be normal"),
    "a column that is not there": (say(["length"], "leaves", 0, "columns"), "length"),
    "a column of no columns": (say([], "leaves", 0, "columns"), "'size'"),
    "a column twice": (lambda document, arrays: document["leaves"].append(document["leaves"][0]), "2 times"),
    "a field twice": (
        lambda document, arrays: document["schema"]["fields"].append(document["schema"]["fields"][0]),
        "2 times",
    ),
    "no columns": (say([], "leaves"), "models no column"),
    "two lists of levels": (say(["blue", "red"], "leaves", 1, "levels"), "two different lists of levels"),
    "too few levels": (both_levels(["blue", "red"]), "2 levels but"),
    "a level twice": (both_levels(["blue", "blue", "red"]), "level 'blue' is there 2 times"),
    "a scale of zero": (say(0.0, "schema", "fields", 0, "scale"), "`float` > 0.0 - at `$.fields[0].scale`"),
    "a negative scale": (say([-1.0], "leaves", 0, "scale"), "`float` > 0.0 - at `$.leaves[0].scale[0]`"),
    "two anchors": (say([0.0, 1.0], "leaves", 0, "anchor"), "anchor"),
    "a negative floor": (say(-1.0, "leaves", 0, "floor"), "floor"),
    "too few classes": (say(["ripe"], "classes"), "1 class names for 2 classes"),
    "a class twice": (say(["ripe", "ripe"], "classes"), "class 'ripe' is there 2 times"),
    "another number of groups": (say(3, "structure", "groups"), "shares of the classes"),
    "no groups": (say(0, "structure", "groups"), ">= 1"),
    "groups in words": (say("two", "structure", "groups"), "Expected `int`, got `str`"),
    "an unknown estimate": (say("banana", "estimate"), "Invalid enum value 'banana' - at `$.estimate`"),
    "an unknown way": (say(["banana", "ml"], "how"), "Invalid enum value 'banana'"),
    "negative rows": (say(-5.0, "rows"), "below zero"),
    "rows in words": (say("many", "rows"), "Expected `float`, got `str` - at `$.rows`"),
    "a negative weight": (say(-1.0, "structure", "unknown_weight"), ">= 0"),
    "numbers as missing words": (say([5], "schema", "missing"), "Expected `str`, got `int` - at `$.missing[0]`"),
    "a target that is not a name": (say({"a": 1}, "target"), "not a column"),
    "notes that are none": (say(5, "history", "notes"), "Expected `array`, got `int` - at `$.notes`"),
    "a trace in words": (say(["up"], "history", "trace"), "Expected `float`, got `str` - at `$.trace[0]`"),
    "an unknown prior": (say({"prior": "os", "values": {}}, "prior"), "'os' is not one of Beta"),
    "no estimator": (lambda document, arrays: document.pop("estimator"), "estimator"),
    "an unknown estimator": (say("os.system", "estimator", "name"), "'os.system' is not known"),
    "settings it lacks": (say({"prior": 1.0, "odd": 1}, "estimator", "settings"), "odd"),
    "a setting that is no prior": (say({"prior": "os", "values": {}}, "estimator", "settings", "prior"), "'os'"),
    "another estimator's settings": (say("Mixture", "estimator", "name"), "settings make no sense"),
    "more columns than the model": (say({"n": 9, "names": None}, "estimator", "columns"), "other columns"),
    "other columns": (say({"n": 3, "names": ["a", "b", "c"]}, "estimator", "columns"), "other columns"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_numbers_that_make_no_sense_are_refused(name, sound, tmp_path):
    change, said = ARRAYS[name]
    assert said in refused(spoilt(sound, tmp_path, change))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_that_makes_no_sense_is_refused(name, sound, tmp_path):
    change, said = DOCUMENTS[name]
    assert said in refused(spoilt(sound, tmp_path, change))


# Saving


def test_a_folder_that_is_not_there_is_refused_and_nothing_is_written(tmp_path):
    model = sc.NaiveBayes(kinds=KINDS).fit(FRAME, LABELS)
    with pytest.raises(DataError, match=r"no folder.*Create it"):
        model.save(tmp_path / "none" / "m.sc")
    with pytest.raises(DataError, match="it is a folder"):
        model.save(tmp_path)
    with pytest.raises(DataError, match="file name"):
        model.save("")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="this user may write everywhere")
def test_a_folder_that_may_not_be_written_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(DataError, match="cannot write"):
        sc.NaiveBayes(kinds=KINDS).fit(FRAME, LABELS).save(tmp_path / "m.sc")


def test_a_failed_save_leaves_the_earlier_file_whole(sound, tmp_path, monkeypatch):
    path = tmp_path / "m.sc"
    path.write_bytes(sound.read_bytes())

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(DataError, match="no space left"):
        sc.NaiveBayes(kinds=KINDS).fit(FRAME, LABELS).save(path)
    assert path.read_bytes() == sound.read_bytes()
    assert os.listdir(tmp_path) == ["m.sc"]


# What is sound is taken, whatever the model

MODELS: dict[str, Callable[[], Any]] = {
    "two numbers": lambda: sc.NaiveBayes(kinds={"size": "normal", "visits": "normal", "colour": "ignore"}),
    "predictive": lambda: sc.NaiveBayes(kinds=KINDS, estimate="predictive"),
    "maximum likelihood": lambda: sc.NaiveBayes(kinds=KINDS, estimate="ml"),
    "jeffreys": lambda: sc.NaiveBayes(kinds=KINDS, prior="jeffreys", estimate="map"),
    "a block": lambda: sc.NaiveBayes(kinds={("size", "visits"): "multinormal"}),
    "a predictive block": lambda: sc.NaiveBayes(kinds={("size", "visits"): "multinormal"}, estimate="predictive"),
    "a joint block": lambda: sc.NaiveBayes(kinds={("colour", "visits"): "categorical"}),
    "tied": lambda: sc.NaiveBayes(
        kinds={"size": sc.families.Normal(tied="both"), "visits": sc.families.Normal(tied="both")}
    ),
    "known variance": lambda: sc.NaiveBayes(kinds={"size": sc.families.Normal(variance=1.0)}),
    "a mixture": lambda: sc.Mixture(2, kinds=KINDS, random_state=0, n_init=1),
    "a predictive mixture": lambda: sc.Mixture(2, kinds=KINDS, random_state=0, n_init=1, estimate="predictive"),
    "fixed shares": lambda: sc.NaiveBayes(kinds=KINDS, class_prior="uniform"),
    "positions": lambda: sc.NaiveBayes(kinds={np.int64(0): "normal"}),
}


def posteriors(model):
    return model.posterior_given_memberships_ if isinstance(model, sc.Mixture) else model.posterior_


@pytest.mark.parametrize("name", MODELS)
def test_every_sound_model_is_loaded_as_it_was(name, tmp_path):
    X = FRAME[["size", "visits"]].to_numpy() if name == "positions" else FRAME
    model = MODELS[name]().fit(X, LABELS)
    model.save(tmp_path / "m.sc")
    again = sc.load(tmp_path / "m.sc")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    assert again.get_params().keys() == model.get_params().keys()
    for key in model.params_:
        if name != "tied":  # columns that share a variance have no posterior of their own
            one, other = (posteriors(own)[key] for own in (again, model))
            assert repr(one) == repr(other)
