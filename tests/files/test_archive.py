"""The model file comes back as it was saved, or is refused in one line."""

from __future__ import annotations

import io
import json
import os
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from files.making import ARRAYS, DOCUMENT, entries_of, refusal, same, saved, with_manifest, with_value
from softcount.errors import DataError, ModelFileError
from softcount.files import FORMAT, read, write

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
tables = st.sampled_from(["<f8", "<i8", "<i4", "|u1", "|b1", "<U5", ">f8", ">U3"]).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)


# What is saved comes back


@quick
@given(st.dictionaries(st.text(), values, max_size=4), st.dictionaries(st.text(), tables, max_size=4))
def test_what_is_saved_comes_back(tmp_path: Path, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    write(tmp_path / "m.sc", document, arrays)
    told, found = read(tmp_path / "m.sc")
    assert repr(told) == repr(document)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].shape == array.shape
        assert found[name].dtype == array.dtype.newbyteorder("<")
        assert found[name].tobytes() == array.astype(array.dtype.newbyteorder("<")).tobytes()
        assert found[name].flags.writeable and found[name].flags.c_contiguous


def test_any_memory_layout_is_kept_by_value(tmp_path: Path) -> None:
    grid = np.arange(12.0).reshape(3, 4)
    views = {"by columns": np.asfortranarray(grid), "every other": grid[:, ::2], "back": grid[::-1]}
    write(tmp_path / "m.sc", {}, views)
    found = read(tmp_path / "m.sc")[1]
    assert found["by columns"].tolist() == grid.tolist()
    assert found["every other"].tolist() == grid[:, ::2].tolist()
    assert found["back"].tolist() == grid[::-1].tolist()


def test_not_a_number_and_infinities_live_in_arrays(tmp_path: Path) -> None:
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324])
    write(tmp_path / "m.sc", {}, {"odd": odd})
    assert read(tmp_path / "m.sc")[1]["odd"].tobytes() == odd.tobytes()


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    write(tmp_path / "one.sc", DOCUMENT, ARRAYS)
    write(tmp_path / "two.sc", DOCUMENT, {name: np.asfortranarray(array) for name, array in ARRAYS.items()})
    assert (tmp_path / "one.sc").read_bytes() == (tmp_path / "two.sc").read_bytes()


def test_entries_are_stored_and_readable_by_others(tmp_path: Path) -> None:
    path = saved(tmp_path)
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["model.json", "0.npy", "1.npy"]
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert np.load(io.BytesIO(archive.read("0.npy")), allow_pickle=False).tolist() == ARRAYS["counts"].tolist()
        assert json.loads(archive.read("model.json"))["format"] == FORMAT


def test_array_names_may_be_any_text(tmp_path: Path) -> None:
    names = ["../../etc", "", "a\nb", "\0", "päron", "x" * 300]
    write(tmp_path / "m.sc", {}, {name: np.array([i]) for i, name in enumerate(names)})
    assert list(read(tmp_path / "m.sc")[1]) == names


# What cannot be kept is refused before the disk is touched


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"a": {"b": float("nan")}}, "document.a.b"),
        ({"a": [1.0, float("inf")]}, "document.a[1]"),
        ({1: "one"}, "key 1"),
        ({"a": np.int64(3)}, "int64"),
        ({"a": {3}}, "set"),
        ({"a": 10**400}, "1024 bits"),
    ],
)
def test_a_document_json_cannot_hold_is_refused_by_place(tmp_path: Path, document: dict, named: str) -> None:
    with pytest.raises(DataError, match="cannot write") as caught:
        write(tmp_path / "m.sc", document, {})
    assert named in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_a_document_inside_itself_is_refused(tmp_path: Path) -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    with pytest.raises(DataError, match="nested"):
        write(tmp_path / "m.sc", loop, {})


@pytest.mark.parametrize("dtype", ["O", "f4", "u8", "c16", "S3", "M8[s]", "i4,f8"])
def test_an_array_of_another_type_is_refused_by_name(tmp_path: Path, dtype: str) -> None:
    with pytest.raises(DataError, match="'odd one'"):
        write(tmp_path / "m.sc", {}, {"odd one": np.zeros(2, dtype=dtype)})
    assert os.listdir(tmp_path) == []


# Damage


def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    path = saved(tmp_path)
    good, whole = read(path), bytearray(path.read_bytes())
    noticed = 0
    with open(path, "r+b", buffering=0) as target:
        for place in range(len(whole)):
            for bit in range(8):
                os.pwrite(target.fileno(), bytes([whole[place] ^ (1 << bit)]), place)
                try:
                    assert same(read(path), good), f"bit {bit} of byte {place}"
                except ModelFileError:
                    noticed += 1
            os.pwrite(target.fileno(), whole[place : place + 1], place)
    assert noticed > 6 * len(whole)  # the rest are dates, attributes and the like


def test_no_cut_goes_unnoticed(tmp_path: Path) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        refusal(path)


def test_a_cut_file_says_that_it_was_cut(tmp_path: Path) -> None:
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    assert "cut short" in refusal(path)


def test_bytes_added_at_either_end_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    for changed in (whole + b"x", b"x" + whole, whole + whole, whole[:40] + whole):
        path.write_bytes(changed)
        refusal(path)


@quick
@given(st.binary(max_size=400), st.sampled_from([b"", b"PK\x03\x04", b"PK\x05\x06"]))
def test_random_bytes_are_refused(tmp_path: Path, content: bytes, start: bytes) -> None:
    path = tmp_path / "m.sc"
    path.write_bytes(start + content)
    refusal(path)


@settings(quick, max_examples=300)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_random_damage_is_refused_or_harmless(tmp_path: Path, seed: int, changes: int) -> None:
    path = saved(tmp_path)
    good, dice, whole = read(path), random.Random(seed), bytearray(path.read_bytes())
    for _ in range(changes):
        place = dice.randrange(len(whole))
        run = dice.choice([1, 1, 1, 4, 20])
        piece = dice.choice([dice.randbytes(run), bytes(run), b"\xff" * run, b"", whole[:run]])
        whole[place : place + dice.choice([0, run])] = piece
    path.write_bytes(whole)
    try:
        assert same(read(path), good)
    except ModelFileError as error:
        assert "m.sc" in str(error) and "\n" not in str(error)


@quick
@given(st.binary(max_size=80))
def test_any_document_bytes_are_refused_in_one_line(tmp_path: Path, text: bytes) -> None:
    refusal(with_manifest(saved(tmp_path), lambda _: text))


@quick
@given(st.sampled_from(["shape", "dtype", "sha256"]), values)
def test_any_nonsense_in_a_listing_is_refused(tmp_path: Path, key: str, value: Any) -> None:
    path = saved(tmp_path)
    if json.loads(entries_of(path)["model.json"])["arrays"]["counts"][key] != value:
        refusal(with_value(path, value, "arrays", "counts", key))
