"""Columns on a grid: maps of classes, where they can be told apart, and pictures of both."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ElementTree
import zlib
from base64 import b64decode
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

import softcount as sc
from softcount import images
from softcount.estimators.column_choice import score_columns
from softcount.images import find_neighbours

DIGITS, DIGIT = load_digits(return_X_y=True)


# Maps of classes


def test_maps_of_digits_are_their_means():
    maps = images.class_maps(DIGITS, DIGIT, (8, 8))
    apart = images.class_maps(DIGITS, DIGIT, (8, 8), contrast=True)
    assert list(maps) == list(range(10))
    for digit in range(10):
        mean = DIGITS[digit == DIGIT].mean(axis=0)
        np.testing.assert_allclose(maps[digit], mean.reshape(8, 8), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(apart[digit].ravel(), mean - DIGITS.mean(axis=0), atol=1e-12)


def test_holes_are_left_out_of_means_and_labels_may_have_gaps():
    X = pd.DataFrame({"a": [1.0, 3.0, np.nan, 100.0], "b": [np.nan, np.nan, 5.0, 100.0]})
    maps = images.class_maps(X, ["u", "u", "v", None], (2,))
    np.testing.assert_array_equal(maps["u"], [2.0, np.nan])
    np.testing.assert_array_equal(maps["v"], [np.nan, 5.0])


# Rank accuracy


def test_rank_accuracy_by_hand():
    proba = [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.4, 0.4, 0.2]]
    assert images.rank_accuracy(["a", "a", "a"], proba, ["a", "b", "c"]) == pytest.approx((1 + 1 + 0.75) / 3)
    assert images.rank_accuracy(["b", "c", None], proba, ["a", "b", "c"]) == pytest.approx((0.5 + 0) / 2)
    assert images.rank_accuracy([0, 1], [[0.9, 0.1], [0.2, 0.8]]) == 1.0


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 6), st.integers(0, 10_000))
def test_rank_accuracy_counts_the_classes_below(classes, seed):
    rng = np.random.default_rng(seed)
    proba = rng.integers(0, 4, (8, classes)) / 4.0
    labels = rng.integers(0, classes, 8)
    each = []
    for row, label in zip(proba, labels, strict=True):
        others = [value for k, value in enumerate(row) if k != label]
        each.append(sum(1.0 if value < row[label] else 0.5 if value == row[label] else 0.0 for value in others))
    expected = np.mean(each) / (classes - 1)
    assert images.rank_accuracy(labels, proba, np.arange(classes)) == pytest.approx(expected, rel=1e-12)


def test_rank_accuracy_refuses_what_it_cannot_rank():
    for y, proba, classes, said in (
        (["a", "b"], [[0.5, 0.3, 0.2]] * 2, None, "a column for each"),
        (["a", "d"], [[0.5, 0.5]] * 2, ["a", "b"], "class 'd' is not one of 'a', 'b'"),
        (["a", "a"], [[1.0], [1.0]], None, "two classes or more"),
        (["a", "b"], [[0.5, np.nan], [0.5, 0.5]], None, "row 1 holds NaN"),
    ):
        with pytest.raises(sc.DataError, match=said):
            images.rank_accuracy(y, proba, classes)


# Where classes can be told apart


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 3), (1, 1)])
@pytest.mark.parametrize("radius", [0, 1, 2])
def test_neighbours_are_those_within_so_many_steps(shape, radius):
    near, places = find_neighbours(shape, radius).toarray(), list(product(*map(range, shape)))
    for i, one in enumerate(places):
        for j, other in enumerate(places):
            assert near[i, j] == (max(abs(a - b) for a, b in zip(one, other, strict=True)) <= radius)


def test_a_cube_of_a_volume_has_27_places():
    near = np.asarray(find_neighbours((5, 5, 5)).sum(axis=1)).reshape(5, 5, 5)
    assert near[2, 2, 2] == 27 and near[0, 0, 0] == 8


@pytest.mark.filterwarnings("ignore::softcount.DataWarning")
def test_the_map_is_what_refits_of_every_neighbourhood_say():
    rng = np.random.default_rng(0)
    y = np.array(["u", "v", "w"])[np.arange(60) % 3]
    X = rng.normal(np.outer(np.arange(60) % 3, rng.normal(size=12)), 2.0)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 5] = 7.0  # constant, so left out
    found = images.neighbourhood_accuracy(X, y, (3, 4))
    folds, near = score_columns(sc.NaiveBayes(), X, y).folds, find_neighbours((3, 4)).toarray() > 0
    for place in range(12):
        columns = [j for j in np.flatnonzero(near[place]) if j != 5]
        right = 0
        for fold in range(5):
            inside = folds == fold
            other = sc.NaiveBayes().fit(X[~inside][:, columns], y[~inside])
            right += (other.predict(X[inside][:, columns]) == y[inside]).sum()
        assert found.accuracy.ravel()[place] == pytest.approx(right / 60)
    assert found.rows == 60 and found.chance == pytest.approx(1 / 3)


def test_a_planted_region_is_found_in_a_volume():
    rng = np.random.default_rng(1)
    sort = np.arange(160) % 2
    volume = rng.normal(size=(160, 8, 9, 10))
    volume[:, 2:5, 3:6, 6:9] += 0.7 * sort[:, None, None, None]
    found = images.neighbourhood_accuracy(volume.reshape(160, -1), sort, (8, 9, 10))
    assert np.abs(np.array(found.best) - [3, 4, 7]).max() <= 1
    assert found.accuracy[3, 4, 7] > 0.85 and found.accuracy.shape == (8, 9, 10)
    far = found.accuracy.copy()
    far[1:6, 2:7, 5:10] = np.nan
    assert np.nanmax(far) < 0.5 + 5 * found.standard_error < found.accuracy[3, 4, 7]


def test_settings_and_a_named_target_are_kept():
    codes = (DIGITS[:300] // 6).astype(int)
    frame = pd.DataFrame(codes, columns=[f"p{k}" for k in range(64)]).assign(digit=DIGIT[:300])
    named = images.neighbourhood_accuracy(frame, "digit", (8, 8), model=sc.NaiveBayes(prior=0.5, kinds=None))
    bare = images.neighbourhood_accuracy(codes, DIGIT[:300], (8, 8), model=sc.NaiveBayes(prior=0.5))
    np.testing.assert_allclose(named.accuracy, bare.accuracy)
    alone = images.neighbourhood_accuracy(codes, DIGIT[:300], (8, 8), radius=0)
    assert alone.accuracy.max() < bare.accuracy.max()


def test_a_grid_of_another_size_is_refused():
    for shape, said in (
        ((8, 9), r"a grid of 8 x 9 has 72 places, but there are 64 columns"),
        ((0, 64), "whole numbers of at least 1"),
        ((6.4, 10), "whole numbers"),
        ("88", "whole numbers"),
        (64, "sizes of the grid"),
    ):
        with pytest.raises(sc.DataError, match=said):
            images.class_maps(DIGITS[:20], DIGIT[:20], shape)
        with pytest.raises(sc.DataError, match=said):
            images.neighbourhood_accuracy(DIGITS[:20], DIGIT[:20], shape)
    with pytest.raises(sc.DataError, match="needs numeric columns"):
        images.class_maps([["a", "b"]], ["u"], (2,))
    with pytest.raises(sc.DataError, match="3 dimensions"):
        images.class_maps(DIGITS[:20].reshape(20, 8, 8), DIGIT[:20], (8, 8))
    with pytest.raises(sc.DataError, match="radius must be a whole number"):
        images.neighbourhood_accuracy(DIGITS[:20], DIGIT[:20], (8, 8), radius=-1)
    with pytest.raises(sc.DataError, match="block"):
        blocks = sc.NaiveBayes(kinds={(20, 21): "multinormal"})
        images.neighbourhood_accuracy(DIGITS[:50], DIGIT[:50], (8, 8), model=blocks)


# Pictures


def decoded(content: bytes) -> np.ndarray:
    """The pixels of a PNG of ours, every part checked."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    parts, at = {}, 8
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        kind, body = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        assert struct.unpack(">I", content[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        parts[kind], at = body, at + 12 + length
    wide, high, depth, colour = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    assert (depth, colour) == (8, 2)
    lines = np.frombuffer(zlib.decompress(parts[b"IDAT"]), dtype=np.uint8).reshape(high, 1 + 3 * wide)
    assert (lines[:, 0] == 0).all()
    return lines[:, 1:].reshape(high, wide, 3)


def test_a_png_has_a_colour_for_every_place(tmp_path: Path):
    images.save_maps(np.array([[-2.0, 0.0], [np.nan, 2.0]]), tmp_path / "map.png")
    pixels = decoded((tmp_path / "map.png").read_bytes())
    colours = {tuple(colour) for colour in pixels.reshape(-1, 3).tolist()}
    assert colours == {(26, 76, 140), (250, 250, 250), (225, 225, 225), (150, 28, 42), (255, 255, 255)}


@pytest.mark.parametrize("shape", [(7,), (3, 50), (5, 4, 3), (1, 1)])
def test_every_grid_is_drawn(tmp_path: Path, shape: tuple[int, ...]):
    maps = {name: np.random.default_rng(0).random(shape) for name in ("one", "two")}
    for ending in ("png", "svg"):
        images.save_maps(maps, tmp_path / f"maps.{ending}", centre=0.5)
    assert decoded((tmp_path / "maps.png").read_bytes()).size
    root = ElementTree.parse(tmp_path / "maps.svg").getroot()
    pictures = [node for node in root.iter() if node.tag.endswith("image")]
    assert len(pictures) == 3  # two maps and the scale
    for image in pictures:
        content = b64decode(image.get("href").partition(",")[2])
        assert decoded(content).shape[:2] == (int(image.get("height")), int(image.get("width")))


def test_one_value_everywhere_can_be_drawn(tmp_path: Path):
    images.save_maps(np.zeros((2, 2)), tmp_path / "zero.svg")
    images.save_maps(np.ones((2, 2)), tmp_path / "one.svg", centre=1.0)
    assert ElementTree.parse(tmp_path / "one.svg") is not None


def test_names_are_text_and_nothing_else(tmp_path: Path):
    name = '</text><script>alert("1")</script>\x1b[31m'
    images.save_maps({name: np.eye(2)}, tmp_path / "map.svg", title=name)
    written = (tmp_path / "map.svg").read_text()
    assert "<script>" not in written and "\x1b" not in written
    assert sum(node.tag.endswith("script") for node in ElementTree.fromstring(written).iter()) == 0


def test_what_cannot_be_drawn_is_refused(tmp_path: Path):
    for maps, name, said in (
        (np.eye(2), "map.jpg", "ends in .svg or .png"),
        ({}, "map.svg", "no map"),
        (np.zeros((2, 2, 2, 2)), "map.svg", "can be drawn"),
        (np.full((2, 2), np.nan), "map.svg", "no place of any map has a value"),
        (np.array([[np.inf]]), "map.svg", "holds infinity"),
        ([["a"]], "map.svg", "does not hold numbers"),
    ):
        with pytest.raises(sc.DataError, match=said):
            images.save_maps(maps, tmp_path / name)
        assert not (tmp_path / name).exists()
