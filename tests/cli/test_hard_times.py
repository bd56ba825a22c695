"""A shell that closes streams, ends processes and has little memory; data that would like to drive the terminal."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from cli.shell import SOURCES, python
from cli.tables import fruit_rows, write_table
from softcount.cli import main
from softcount.cli.outputs import exit_code, message_lines

DATA, RESOURCES, INTERRUPTED = 3, 5, 130
ESCAPES = ["re\x1b[31md", "left\u202eto right", "c1\x9b31m", "two\u2028lines"]


def run(*arguments: object) -> Any:
    return CliRunner().invoke(main, [str(word) for word in arguments])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table and a model whose classes, levels and columns no terminal should see."""
    folder = tmp_path_factory.mktemp("hard")
    columns = {
        "x": [row * 0.37 % 5 for row in range(80)],
        "w\x1b[2J": [ESCAPES[row % 3] for row in range(80)],
        "y\u202e": [ESCAPES[row // 2 % 4] for row in range(80)],
    }
    pq.write_table(pa.table(columns), folder / "t.parquet")
    done = run("fit", folder / "t.parquet", "--target", "y\u202e", "--folds", "2", "-o", folder / "m.sc")
    assert done.exit_code == 0, done.output
    write_table(folder / "fruit.csv", fruit_rows())
    return folder


# -- text from data


PAGES = [
    ["fit", "t.parquet", "--target", "y\u202e", "--folds", "2", "-o", "again.sc"],
    ["show", "m.sc"],
    ["show", "m.sc", "t.parquet"],
    ["schema", "t.parquet"],
    ["explain", "m.sc", "t.parquet", "--row", "1"],
    ["query", "m.sc", "--of", "y\u202e"],
    ["query", "m.sc", "--of", "w\x1b[2J", "--given", f"y\u202e={ESCAPES[0]}"],
]


@pytest.mark.parametrize("json_wanted", [False, True])
@pytest.mark.parametrize("words", PAGES, ids=lambda words: " ".join(words[:2]).replace("\u202e", ""))
def test_no_text_from_data_reaches_a_pipe_as_it_is(words, json_wanted, place, monkeypatch):
    monkeypatch.chdir(place)
    result = run(*words, *(["--json"] if json_wanted else []))
    assert result.exit_code == 0, result.output
    assert all(char.isprintable() or char == "\n" for char in result.output)
    if json_wanted:
        assert any(name in str(json.loads(result.stdout)) for name in map(repr, ESCAPES))


# -- streams that are closed


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    typed = line.replace("softcount", f'"{sys.executable}" -m softcount.cli')
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    return subprocess.run(["sh", "-c", typed], capture_output=True, check=False, cwd=folder, env=environment)


def test_standard_input_that_is_closed_is_said(place):
    done = shell("softcount schema - <&-", place)
    assert (done.returncode, done.stderr[:33]) == (DATA, b"error: standard input is closed. ")


@pytest.mark.parametrize(
    "words", ["show m.sc", "predict m.sc t.parquet", "--version", "show --help", "schema t.parquet --json"]
)
def test_a_result_that_cannot_be_delivered_is_a_failure(words, place):
    done = shell(f"softcount {words} >&-", place)
    assert (done.returncode, done.stderr) == (DATA, b"error: standard output is closed\n")


def test_a_result_that_goes_to_a_file_needs_no_standard_output(place):
    done = shell("softcount predict m.sc t.parquet -o p.csv >&- 2>&-", place)
    assert done.returncode == 0
    assert (place / "p.csv").read_text().count("\n") == 81


# -- being told to end


def listening() -> None:
    """A shell makes what runs behind it deaf to Ctrl-C, and `nohup` to the end of the terminal."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def started(folder: Path, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    room = folder / "room"
    room.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "softcount.cli", *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": SOURCES, "TMPDIR": str(room)},
        preexec_fn=listening,
        **options,
    )


def wait_for(condition: Any) -> None:
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_standard_input_that_was_copied_is_removed_however_the_command_ends(number, tmp_path):
    done = started(tmp_path, "fit", "-", "-o", "m.sc", stdin=subprocess.PIPE)
    assert done.stdin is not None and done.stderr is not None
    done.stdin.write(b"a,b\n" + b"1.5,x\n" * 800_000)
    done.stdin.flush()
    wait_for(lambda: any(path.stat().st_size for path in (tmp_path / "room").iterdir()))
    done.send_signal(number)
    assert done.wait(60) == INTERRUPTED
    assert done.stderr.read().strip() == b"error: interrupted"
    assert os.listdir(tmp_path / "room") == []


def test_a_copy_that_a_killed_command_left_is_removed_by_the_next(tmp_path):
    done = started(tmp_path, "schema", "-", stdin=subprocess.PIPE)
    assert done.stdin is not None
    # Python itself first tries whether it can write there, for an instant, under a name of its own.
    wait_for(lambda: any(name.startswith(".softcount-") for name in os.listdir(tmp_path / "room")))
    done.kill()
    done.wait(60)
    assert len(os.listdir(tmp_path / "room")) == 1
    other = started(tmp_path, "schema", "-", stdin=subprocess.PIPE)
    other.communicate(b"a,b\n1.5,x\n2.5,y\n", timeout=60)
    assert other.returncode == 0
    assert os.listdir(tmp_path / "room") == []


def test_more_than_half_of_the_room_is_not_taken_for_a_copy(tmp_path, monkeypatch):
    code = (
        "import shutil, sys, types, softcount.cli\n"
        "shutil.disk_usage = lambda folder: types.SimpleNamespace(free=2_000_000)\n"
        "softcount.cli.main()"
    )
    done = python("-c", code, "schema", "-", input=b"a,b\n" + b"1.5,x\n" * 400_000, env={"TMPDIR": str(tmp_path)})
    assert done.returncode == DATA
    assert b"half of what is free" in done.stderr
    assert os.listdir(tmp_path) == []


ENDING = """
import os, signal
import softcount.cli
from softcount.cli import fit

steps = iter(range(1_000_000))

def told(*_):
    if next(steps) == 40:
        os.kill(os.getpid(), getattr(signal, os.environ["ENDS_BY"]))

fit.report_starts = lambda *_: told
softcount.cli.main()
"""


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGHUP"])
def test_being_told_to_end_keeps_the_best_so_far(signal_name, place, tmp_path):
    words = ["fit", str(place / "fruit.csv"), "--classes", "3", "--starts", "50", "-o", "m.sc"]
    done = python("-c", ENDING, *words, cwd=tmp_path, env={"ENDS_BY": signal_name}, preexec_fn=listening)
    assert done.returncode == INTERRUPTED
    assert b"the best so far is saved in m.sc" in done.stderr
    assert run("show", tmp_path / "m.sc").exit_code == 0


# -- little memory


MEASURED = """
import softcount.cli
try:
    softcount.cli.main()
finally:
    most = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(int(most.split()[1]) >> 10)
"""
"""A command, and how many megabytes it took at most; `getrusage` would count what its parent had held before."""


def packed(path: Path, *parts: bytes) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as out:
        for part in parts:
            out.write(part)
    return path


LONG = b"abcdefg " * (2 << 20)
"""16 MB; three are more than a row may have."""

BOMBS = {
    "a line": ([b"a,b\n1,2\n3,", LONG, LONG, LONG, b"\n"], [], b"row 2 is longer than 32 MB"),
    "a first line": ([LONG] * 3, [], b"the first line of bomb.gz is longer than 32 MB"),
    "a quote": ([b'a,b\n1,2\n3,"x', *[LONG.replace(b" ", b"\n")] * 3], [], b"row 2 is longer than 32 MB"),
    "a document": ([b"one\n", *[LONG] * 3], ["--lines"], b"line 2 of bomb.gz is longer than 32 MB"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_unpacks_to_a_long_row_is_refused_in_little_memory(name, tmp_path):
    parts, options, said = BOMBS[name]
    packed(tmp_path / "bomb.gz", *parts)
    done = python("-c", MEASURED, "schema", "bomb.gz", *options, cwd=tmp_path)
    assert done.returncode == DATA
    assert said in done.stderr
    assert int(done.stdout) < 500


def test_a_small_tar_file_that_unpacks_to_a_long_document_is_refused_in_little_memory(tmp_path):
    (tmp_path / "long.txt").write_bytes(LONG * 3)
    with tarfile.open(tmp_path / "mail.tgz", "w:gz", compresslevel=1) as archive:
        archive.add(tmp_path / "long.txt", "mail/spam/long.txt")
    done = python("-c", MEASURED, "fit", "mail.tgz", cwd=tmp_path)
    assert done.returncode == DATA
    assert b"long.txt in mail.tgz is longer than 32 MB" in done.stderr
    assert int(done.stdout) < 500


OUT = [
    RuntimeError("can't start new thread"),
    pa.ArrowException("Unknown error: Failed to launch worker thread: Resource temporarily unavailable"),
    pa.ArrowMemoryError("malloc of size 22501504 failed"),
    ImportError("libx.so: failed to map segment from shared object"),
    MemoryError(),
]


@pytest.mark.parametrize("error", OUT, ids=lambda error: type(error).__name__)
def test_running_out_of_memory_is_said_and_ends_with_its_code(error):
    assert exit_code(error) == RESOURCES
    assert message_lines(error)[0].startswith("not enough memory")


def test_a_command_without_memory_for_threads_says_so(place):
    code = (
        "import threading, softcount.cli\n"
        'def start(self): raise RuntimeError("can\'t start new thread")\n'
        "threading.Thread.start = start\n"
        "softcount.cli.main()"
    )
    rows = "".join(f"{row % 7}.5,{'xy'[row % 2]}\n" for row in range(9_000))
    (place / "long.csv").write_text("a,b\n" + rows)
    done = python("-c", code, *["fit", "long.csv", "--target", "b", "--folds", "0", "--jobs", "2"], cwd=place)
    assert (done.returncode, done.stderr) == (RESOURCES, b"error: not enough memory: can't start new thread\n")


LIMITED = """
import mmap, resource, sys, numpy as np, softcount.cli
from softcount.core.scratch import reserve_room
square = np.ones((300, 300))
def leave(megabytes):
    taken = int(open("/proc/self/statm").read().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (taken + (megabytes << 20), resource.RLIM_INFINITY))
"""


def test_matrix_products_have_their_room_before_memory_is_filled_or_the_command_says_so():
    """Their library ends the process with a code of its own where it finds no room for its first product."""
    some = LIMITED + "leave(200)\nreserve_room()\nleave(8)\nassert (square @ square)[0, 0] == 300.0"
    assert python("-c", some).returncode == 0
    little = python("-c", LIMITED + "leave(20)\nsys.argv = ['softcount', 'demo']\nsoftcount.cli.main()")
    assert little.returncode == RESOURCES and little.stderr.startswith(b"error: not enough memory"), little.stderr


# -- numbers at the ends of what numbers are


@pytest.mark.parametrize("json_wanted", [False, True])
def test_classes_and_levels_beyond_64_bits_are_predicted_and_drawn(json_wanted, tmp_path):
    rows = [(f"{row * 0.37 % 5:.3f}", 2**70 + row // 2 % 2, 10**25 + row % 3) for row in range(60)]
    write_table(tmp_path / "t.csv", [tuple(map(str, row)) for row in rows], ("x", "w", "y"))
    said = run(
        "fit", tmp_path / "t.csv", "--target", "y", "--folds", "0", "--kind", "w=categorical", "-o", tmp_path / "m.sc"
    )
    assert said.exit_code == 0, said.output
    words = ["--json"] if json_wanted else []
    for asked in (["predict", tmp_path / "m.sc", tmp_path / "t.csv"], ["sample", tmp_path / "m.sc", "-n", "5"]):
        result = run(*asked, *words)
        assert result.exit_code == 0, result.stderr
        assert str(10**25)[:20] in result.stdout
    assert run("explain", tmp_path / "m.sc", tmp_path / "t.csv", *words).exit_code == 0


@pytest.mark.parametrize("json_wanted", [False, True])
def test_numbers_too_large_to_have_a_variance_are_no_fault_of_ours(json_wanted, tmp_path):
    rows = [(f"{1 + row % 7 / 10}e300", "ab"[row % 2]) for row in range(60)]
    write_table(tmp_path / "t.csv", rows, ("x", "y"))
    for words in (["--target", "y", "--folds", "0"], ["--classes", "2"]):
        fit = run("fit", tmp_path / "t.csv", "--kind", "x=normal", *words, "-o", tmp_path / "m.sc")
        if fit.exit_code == 0:
            fit = run("query", tmp_path / "m.sc", "--of", "x", *(["--json"] if json_wanted else []))
        assert "internal error" not in fit.stderr
        if fit.exit_code:
            assert fit.exit_code == DATA
            continue
        quantiles = [one["value"] for one in json.loads(fit.stdout)["quantiles"]] if json_wanted else []
        assert quantiles == sorted(quantiles) and all(5e299 < value < 2.1e300 for value in quantiles)
