"""Parts that the workers of a host share on its disk: what one has encoded another finds, and nobody else can."""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softcount.errors import DataError
from softcount.run.workers import LEFT_BEHIND, SharedFolder, remove_shared

TABLE, OTHER = "0" * 32, "1" * 32


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def pieces(size: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(size)
    return [{"x": rng.normal(size=(size, 3)), "few": np.arange(5), "name": "é"}, {"x": rng.normal(size=size)}]


def writing(size: int) -> Callable[[Callable[[Any], None]], str]:
    def write(add: Callable[[Any], None]) -> str:
        for piece in pieces(size):
            add(piece)
        return f"{size} rows"

    return write


@pytest.mark.parametrize("mapped", [True, False])
def test_a_part_is_found_by_others_as_it_was_written(mapped: bool) -> None:
    SharedFolder(TABLE).keep(3, writing(2_000))
    found = SharedFolder(TABLE).found(3, mapped)
    assert found is not None and found[0] == "2000 rows"
    for own, wanted in zip(found[1], pieces(2_000), strict=True):
        np.testing.assert_equal(own, wanted)
        own["x"][0] = 0  # what a worker does with its rows no other sees
    again = SharedFolder(TABLE).found(3, mapped)
    assert again is not None
    np.testing.assert_equal(again[1][0], pieces(2_000)[0])
    assert SharedFolder(TABLE).found(4, mapped) is None


def test_a_part_that_could_not_be_read_to_its_end_is_not_there(folder: Path) -> None:
    def write(add: Callable[[Any], None]) -> str:
        add(pieces(2_000)[0])
        raise DataError("row 17 is broken")

    shared = SharedFolder(TABLE)
    with pytest.raises(DataError, match="row 17"):
        shared.keep(0, write)
    assert shared.found(0, True) is None
    assert [entry.name for entry in Path(shared.path).iterdir()] == []


def test_a_full_disk_is_one_line_and_leaves_nothing(folder: Path) -> None:
    shared, before = SharedFolder(TABLE), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        with pytest.raises(
            DataError, match=r"file too large\. Free some space, or name .*TMPDIR=DIR for the workers"
        ) as found:
            shared.keep(0, writing(20_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(found.value)
    assert list(Path(shared.path).iterdir()) == []


def test_only_this_user_can_enter_and_a_folder_that_others_can_is_refused(folder: Path) -> None:
    assert os.stat(SharedFolder(TABLE).path).st_mode & 0o777 == 0o700
    os.chmod(SharedFolder(TABLE).path, 0o755)
    with pytest.raises(DataError, match="is not a folder that only this user can enter"):
        SharedFolder(TABLE)
    (folder / f"softcount-parts-{OTHER}").symlink_to(folder)
    with pytest.raises(DataError, match="is not a folder that only this user can enter"):
        SharedFolder(OTHER)


def test_what_a_dead_session_left_is_removed_and_what_is_used_is_not(folder: Path) -> None:
    left, used = SharedFolder("a" * 32), SharedFolder("b" * 32)
    other = folder / "softcount-parts-of-mine"
    other.mkdir()
    for path in (left.path, used.path, other):
        os.utime(path, (time.time() - LEFT_BEHIND - 60,) * 2)
    assert used.exists  # asking is using
    SharedFolder(TABLE)
    assert not os.path.exists(left.path) and not left.exists
    assert os.path.exists(used.path) and other.exists()
    remove_shared("b" * 32)
    assert not os.path.exists(used.path)
