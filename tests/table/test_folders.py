"""Folders as people have them: links, great depth, files of another encoding."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from softcount.errors import DataError
from table.folders import MAIL, opened, write


def test_a_folder_goes_by_its_own_name_and_links_to_it_are_said(tmp_path: Path) -> None:
    folder = write(tmp_path / "mail", MAIL)
    os.symlink(folder / "ham", folder / "aaa")  # sorts before the folder it leads to
    other = write(tmp_path / "other", {"x": b"from elsewhere"})
    os.symlink(other, folder / "zzz")
    source = opened(folder)
    assert sorted(set(source.classes)) == ["ham", "spam", "zzz"] and source.n_rows == len(MAIL) + 1
    assert "1 link leads to folders that are read anyway, and not followed: aaa" in source.notes


def test_folders_may_lie_as_deep_as_names_can_say(tmp_path: Path) -> None:
    folder = write(tmp_path / "mail", MAIL)
    deep = os.open(folder / "ham", os.O_RDONLY)
    for _ in range(3_000):  # beyond what a path may hold, and beyond what recursion would bear
        os.mkdir("d", dir_fd=deep)
        below = os.open("d", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(os.open("lost", os.O_CREAT | os.O_WRONLY, dir_fd=deep))
    os.close(deep)
    source = opened(folder)
    assert source.n_rows == len(MAIL)
    (noted,) = (note for note in source.notes if "cannot be read" in note)
    assert noted.startswith("1 file cannot be read, left out: ham/d/d/") and len(noted) < 200
    _remove_deep(folder / "ham")


def _remove_deep(folder: Path) -> None:
    """Take away the folders below, which are too deep for those who tidy up: the lower half is moved up first."""
    while (folder / "d").exists():
        here = folder / "d"
        for _ in range(500):
            if not (here / "d").exists():
                break
            here /= "d"
        if (here / "d").exists():
            (here / "d").rename(folder / "e")
        shutil.rmtree(folder / "d")
        if (folder / "e").exists():
            (folder / "e").rename(folder / "d")


def test_utf_16_is_binary_and_said_to_be_what_it_is(tmp_path: Path) -> None:
    source = opened(write(tmp_path / "mail", {**MAIL, "ham/wide": "see you".encode("utf-16")}))
    assert "1 of them begins like UTF-16, to be used once converted to UTF-8" in source.notes
    with pytest.raises(DataError, match="2 of them begin like UTF-16"):
        opened(write(tmp_path / "wide", {name: "see you".encode("utf-16") for name in "ab"}))


def test_classes_one_folder_further_down_are_pointed_at(tmp_path: Path) -> None:
    write(tmp_path / "outer" / "mail", MAIL)
    (noted,) = opened(tmp_path / "outer").notes[1:]
    assert noted == f"all documents are in folders of 'mail'; to use those as classes: {tmp_path / 'outer' / 'mail'}"
    assert not any("to use those as classes" in note for note in opened(tmp_path / "outer" / "mail").notes)
