"""Files of other kinds, and files made to do harm, are refused in one line."""

from __future__ import annotations

import json
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.making import entries_of, npy, refusal, rezip, saved, with_array, with_manifest, with_value
from softcount.errors import ModelFileError
from softcount.files import FORMAT, read

# Other files


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (pickle.dumps({"a": 1}), "pickle"),
        (pickle.dumps({"a": 1}, protocol=0), "pickle"),
        (b"age,income\n37,low\n", "CSV"),
        (b"\xef\xbb\xbfage;income\r\n" + "37;ö\r\n".encode() * 100, "CSV"),
        (b'{"format": 1}', "JSON"),
        (b"PAR1" + bytes(20), "Parquet"),
        (b"\x1f\x8b" + bytes(20), "gzip"),
        (npy(np.zeros(3)), "NumPy"),
        (bytes(100), "zeros"),
        (b"<html></html>", "HTML"),
        (b"\xc3\x28\xff\x01", "binary"),
    ],
)
def test_another_kind_of_file_is_called_by_its_name(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "m.sc").write_bytes(content)
    assert said in refusal(tmp_path / "m.sc")


def test_a_zip_of_something_else_is_called_so(tmp_path: Path) -> None:
    assert "no model.json" in refusal(rezip(tmp_path / "m.sc", [("word/document.xml", b"<x/>")]))
    assert "pickle" in refusal(rezip(tmp_path / "m.sc", [("archive/data.pkl", pickle.dumps(1))]))


def test_a_folder_a_missing_file_a_pipe_and_no_path_are_refused(tmp_path: Path) -> None:
    assert "folder" in refusal(tmp_path)
    assert "no such file" in refusal(tmp_path / "none.sc")
    os.mkfifo(tmp_path / "pipe")
    assert "pipe" in refusal(tmp_path / "pipe")
    for odd in ("", "a\0b", None, 7):
        refusal(odd)


def test_an_unreadable_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    path = saved(tmp_path)
    monkeypatch.setattr("builtins.open", forbid)
    with pytest.raises(ModelFileError, match="Permission denied"):
        read(path)


# Files made to do harm


def test_a_newer_format_says_to_upgrade(tmp_path: Path) -> None:
    message = refusal(with_value(saved(tmp_path), FORMAT + 1, "format"))
    assert f"written in format {FORMAT + 1}; this version reads format {FORMAT}: upgrade softcount" in message


@pytest.mark.parametrize("number", [0, -1, True, "1", 1.0, None])
def test_a_format_that_is_no_number_is_refused(tmp_path: Path, number: Any) -> None:
    assert "which format" in refusal(with_value(saved(tmp_path), number, "format"))


@pytest.mark.parametrize("name", ["../m.npy", "/m.npy", "a/../../m", "..\\m", "2.npy", "model.json/", "0.npy\0x"])
def test_an_entry_that_is_not_listed_is_refused(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path)
    refusal(rezip(path, [*entries_of(path).items(), (name, b"harm")]))
    assert os.listdir(tmp_path) == ["m.sc"]


def test_entries_with_two_of_a_name_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    entries = entries_of(path)
    assert "twice" in refusal(rezip(path, [*entries.items(), ("0.npy", entries["0.npy"])]))


def test_a_listed_array_that_is_missing_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    entries = entries_of(path)
    del entries["1.npy"]
    assert "'codes' is listed but missing" in refusal(rezip(path, list(entries.items())))


def test_compressed_entries_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    assert "compressed" in refusal(rezip(path, list(entries_of(path).items()), zipfile.ZIP_DEFLATED))


def test_a_bomb_is_refused_before_memory_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "m.sc"
    bomb = rezip(path, [("model.json", b"0" * 50_000_000)], zipfile.ZIP_DEFLATED)
    assert bomb.stat().st_size < 100_000
    assert "compressed" in refusal(bomb)


def test_entries_that_claim_more_than_the_file_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    place = whole.index(b"PK\x01\x02")
    claimed = struct.pack("<LL", 1 << 30, 1 << 30)
    path.write_bytes(whole[: place + 20] + claimed + whole[place + 28 :])
    assert "claim" in refusal(path)


def test_an_entry_that_contradicts_itself_about_its_size_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    place = whole.index(b"PK\x01\x02")
    path.write_bytes(whole[: place + 24] + struct.pack("<L", 5) + whole[place + 28 :])
    assert "contradicts itself" in refusal(path)


def test_a_small_file_with_the_directory_of_a_huge_one_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-22] + b"PK\x06\x07" + bytes(16) + whole[-22:])
    assert "far beyond its own" in refusal(path)


def test_a_shape_of_another_size_is_refused_before_memory_is_asked_for(tmp_path: Path) -> None:
    path = with_value(saved(tmp_path), [10**6, 10**6], "arrays", "counts", "shape")
    assert "does not fit its shape" in refusal(path)


def test_bytes_with_another_digest_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    told = json.loads(entries_of(path)["model.json"])["arrays"]["counts"]["sha256"]
    assert "SHA-256" in refusal(with_array(path, npy(np.ones((2, 2))), sha256=told))


@pytest.mark.parametrize("shape", [[10**9, 10**6], [2, 2**61], [0, 2**61], [2]])
def test_a_shape_the_file_cannot_hold_is_refused(tmp_path: Path, shape: list[int]) -> None:
    refusal(with_value(saved(tmp_path), shape, "arrays", "counts", "shape"))


def test_honest_listings_of_other_bytes_are_read(tmp_path: Path) -> None:
    """The helper that the next tests rely on makes readable files."""
    path = with_array(saved(tmp_path), npy(np.ones((2, 2))))
    assert read(path)[1]["counts"].tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_an_object_array_is_refused(tmp_path: Path) -> None:
    content = npy(np.array([[print, 1], [2, 3]], dtype=object), allow_pickle=True)
    path = saved(tmp_path)
    refusal(with_array(path, content))
    assert "'|O'" in refusal(with_array(path, content, dtype="|O"))


@pytest.mark.parametrize(
    "content",
    [
        npy(np.ones((2, 2)))[:-1],
        npy(np.ones((2, 2))) + b"\0",
        npy(np.array([[0.0, 1.0], [2.0, 3.0]], order="F")),
        npy(np.ones((4, 1))),
        npy(np.ones((2, 2), dtype=">f8")),
        npy(np.ones((2, 2), dtype=np.int64)),
        b"\x93NUMPY\x02\x00" + npy(np.ones((2, 2)))[8:],
        b"\x93NUMPY\x01\x00v\x00" + b"[" * 118 + bytes(32),
        b"",
    ],
)
def test_a_header_that_differs_from_its_listing_is_refused(tmp_path: Path, content: bytes) -> None:
    assert "'counts'" in refusal(with_array(saved(tmp_path), content))


def test_values_no_array_can_hold_are_refused(tmp_path: Path) -> None:
    booleans = npy(np.zeros((2, 2), dtype=bool))[:-1] + b"\7"
    assert "Boolean" in refusal(with_array(saved(tmp_path), booleans, dtype="|b1"))
    text = npy(np.array([["a", "b"], ["c", "d"]]))[:-1] + b"\x7f"
    assert "characters" in refusal(with_array(saved(tmp_path), text, dtype="<U1"))


@pytest.mark.parametrize(
    ("piece", "said"),
    [
        (b'"tol": NaN', "tol' is nan, which JSON cannot hold"),
        (b'"tol": -Infinity', "tol' is -inf, which JSON cannot hold"),
        (b'"tol": 1e999', "tol' is inf, which JSON cannot hold"),
        (b'"tol": 1, "tol": 1', "given twice"),
        (b'"tol": ' + b"[" * 100 + b"]" * 100, "nested"),
        (b'"tol": ' + b"[" * 100_000 + b"]" * 100_000, "recursion"),
        (b'"tol": ' + b"9" * 5_000, "digits"),
        (b'"tol": ' + b"9" * 1_000, "1024 bits"),
        (b'"tol": \xff', "utf-8"),
        (b'"tol": ', "Expecting"),
    ],
)
def test_json_that_readers_usually_let_through_is_refused(tmp_path: Path, piece: bytes, said: str) -> None:
    path = with_manifest(saved(tmp_path), lambda text: text.replace(b'"tol": 1e-08', piece))
    assert said in refusal(path)


@pytest.mark.parametrize(
    "text", [b"[]", b"null", b'{"format": 1}', b'{"format": 1, "softcount": "", "document": [], "arrays": {}}']
)
def test_a_manifest_of_another_shape_is_refused(tmp_path: Path, text: bytes) -> None:
    refusal(rezip(tmp_path / "m.sc", [("model.json", text)]))
