"""An output file is there whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import softcount
from softcount.errors import DataError
from softcount.files import atomic_writer, check_writable, write

OLD = "what was there before"


def failing(error: BaseException) -> Any:
    def fail(*_: Any, **__: Any) -> NoReturn:
        raise error

    return fail


def put(path: object, text: str = "new") -> None:
    with atomic_writer(path) as out:  # type: ignore[arg-type]
        out.write(text)


def test_the_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    with atomic_writer(tmp_path / "out.csv") as out:
        out.write("a,b\r\n1,ö\n")
        assert not (tmp_path / "out.csv").exists()
    assert (tmp_path / "out.csv").read_bytes() == "a,b\r\n1,ö\n".encode()
    assert os.listdir(tmp_path) == ["out.csv"]


def test_bytes_are_written_as_they_are(tmp_path: Path) -> None:
    with atomic_writer(str(tmp_path / "out.bin"), "wb") as out:
        out.write(b"\0\xff\r\n")
    assert (tmp_path / "out.bin").read_bytes() == b"\0\xff\r\n"


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), OSError(errno.EBADF, "another file")])
def test_an_error_in_the_block_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: BaseException) -> None:
    (tmp_path / "out.csv").write_text(OLD)
    with pytest.raises(type(error)) as caught, atomic_writer(tmp_path / "out.csv") as out:
        out.write("half")
        raise error
    assert caught.value is error
    assert (tmp_path / "out.csv").read_text() == OLD
    assert os.listdir(tmp_path) == ["out.csv"]


@pytest.mark.parametrize("step", ["os.fsync", "os.replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_a_disk_that_fails_at_any_step_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, code: int
) -> None:
    (tmp_path / "m.sc").write_text(OLD)
    monkeypatch.setattr(step, failing(OSError(code, os.strerror(code))))
    with pytest.raises(DataError, match=r"m\.sc"):
        write(tmp_path / "m.sc", {}, {"a": np.zeros(3)})
    monkeypatch.undo()
    assert (tmp_path / "m.sc").read_text() == OLD
    assert os.listdir(tmp_path) == ["m.sc"]


def test_a_disk_that_fills_up_while_writing_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Free some space"), atomic_writer(tmp_path / "out.csv"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("act", [put, check_writable, lambda path: write(path, {}, {})])
def test_a_place_that_cannot_be_written_is_named_with_the_remedy(tmp_path: Path, act: Any) -> None:
    (tmp_path / "file").write_text(OLD)
    for place, said in [
        (tmp_path / "none" / "m.sc", "no folder"),
        (tmp_path, "is a folder"),
        (f"{tmp_path}/new/", "names a folder"),
        (tmp_path / "file" / "m.sc", "directory"),
        (tmp_path / ("n" * 300), "too long"),
        ("a\0b", "null"),
    ]:
        with pytest.raises(DataError, match=r"Choose|Add|Create") as caught:
            act(place)
        assert said in str(caught.value) and repr(str(place)) in str(caught.value)
    with pytest.raises(DataError, match="empty path"):
        act("")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("act", [put, check_writable, lambda path: write(path, {}, {})])
def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    monkeypatch.setattr("os.open", failing(PermissionError(errno.EACCES, "Permission denied")))
    with pytest.raises(DataError, match=r"m\.sc.*permission denied.*Choose a folder you may write to"):
        act(tmp_path / "m.sc")
    monkeypatch.undo()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("act", [put, check_writable])
def test_a_read_only_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    (tmp_path / "m.sc").write_text(OLD)
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(DataError, match="read-only"):
        act(tmp_path / "m.sc")
    assert (tmp_path / "m.sc").read_text() == OLD


def test_checking_leaves_no_trace(tmp_path: Path) -> None:
    (tmp_path / "m.sc").write_text(OLD)
    check_writable(tmp_path / "m.sc")
    check_writable(tmp_path / "new.sc")
    assert os.listdir(tmp_path) == ["m.sc"] and (tmp_path / "m.sc").read_text() == OLD


def test_permissions_follow_the_old_file_or_the_umask(tmp_path: Path) -> None:
    (tmp_path / "old").write_text(OLD)
    os.chmod(tmp_path / "old", 0o640)
    (tmp_path / "plain").touch()
    put(tmp_path / "old")
    put(tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o640
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_link_keeps_pointing_where_it_did(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "out").write_text(OLD)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "out")
    put(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real" / "out").read_text() == "new"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_text()))
    reader.start()
    put(tmp_path / "pipe")
    reader.join(10)
    assert got == ["new"] and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_device_is_never_replaced() -> None:
    put("/dev/null")
    check_writable("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_two_writers_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    texts = [letter * 50_000 for letter in "abcd"]
    writers = [threading.Thread(target=put, args=(tmp_path / "out", text)) for text in texts]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert (tmp_path / "out").read_text() in texts and os.listdir(tmp_path) == ["out"]


HELD = """
import os, sys, time
from softcount.files import atomic_writer
with atomic_writer(sys.argv[1]) as out:
    out.write("half")
    out.flush()
    print("writing", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_writer_left_is_removed_by_the_next_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(softcount.__file__).parents[1])}
    command = [sys.executable, "-c", HELD, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"writing\n"
        (left,) = os.listdir(tmp_path)
        put(tmp_path / "mine")
        check_writable(tmp_path / "other")
        assert sorted(os.listdir(tmp_path)) == [left, "mine"]
        writer.kill()
    check_writable(tmp_path / "other")
    assert os.listdir(tmp_path) == ["mine"]


def test_only_files_of_ours_are_taken_for_left_over(tmp_path: Path) -> None:
    names = [".softcount-0123456789ab.part.txt", ".softcount-xyz.part", "softcount-0123456789ab.part", "a.part"]
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / ".softcount-0123456789ab.part").symlink_to(tmp_path / "a.part")
    (tmp_path / ".softcount-0123456789cd.part").mkdir()
    before = set(os.listdir(tmp_path))
    put(tmp_path / "out")
    assert set(os.listdir(tmp_path)) == before | {"out"}
